//! Command line of fleet.

use std::path::PathBuf;

use clap::Args;

use crate::cli::ReportArgs;

#[derive(Debug, Args)]
#[command(after_help = "\
FILE is the output of `nicpin check --json` or `nicpin plan --json`, of one host or of
many, a capture (`nicpin capture`), a tree of a machine, a directory of these, - for a
stream on standard input, or @LIST for a file with one path a line. Lines may begin with
the name of their host, as clush and pdsh print them (`h1: {`). The name of a host is that
one, else the host name in its JSON, else the name of the file. A capture is checked with
the policy in it.

Hosts are grouped by hardware class, by plan and by the reason why they are not as
planned. Hosts of an odd class or with an odd plan are named with what differs. Hosts are
lists that `nodeset -f` takes. A file that cannot be read is named, and the rest goes on.

Exit codes: 0 all hosts are as planned; 1 the state of a host could not be determined, or
something could not be read; 2 some hosts differ from their plan; 64 usage error.

Examples:
  clush -w @all nicpin check --json | nicpin fleet -
  nicpin fleet captures/                         all captures of a directory
  nicpin fleet --json @hosts.list                for programs
  nicpin fleet fixtures/dl980 fixtures/x460 -v   also the hosts of each class")]
pub struct FleetArgs {
    #[command(flatten)]
    pub report: ReportArgs,

    /// Plans, checks, captures, trees, directories of these, `-` or @LIST
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}
