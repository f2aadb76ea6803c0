//! `nicpin capture`: record this machine as one file.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use itertools::Itertools as _;

use crate::capture::Capture;
use crate::commands::args::General;
use crate::commands::output::{print, say, write_file};
use nicpin::machine::wording::count;
use nicpin::report::exit::Exit;

#[derive(Debug, Args)]
pub struct CaptureArgs {
    /// The file to write; by default standard output, unless it is a terminal
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,

    /// Include host name, hardware addresses and time; rename no interface
    #[arg(long)]
    pub identify: bool,

    /// Also replace the names of interfaces and of the host
    #[arg(long, conflicts_with = "identify")]
    pub redact_names: bool,
}

pub fn run(cli: &General, args: &CaptureArgs, out: &mut String) -> Result<Exit> {
    if args.output.is_none() && io::stdout().is_terminal() {
        bail!(
            "a capture is binary and is not printed on a terminal; fix: name a file with -o FILE, or redirect standard output"
        );
    }
    let mut capture = Capture::read(&cli.root)?;
    if args.identify {
        capture.identify()?;
    } else {
        capture.redact(args.redact_names)?;
    }
    let bytes = capture.tree.pack()?;
    if let Some(path) = &args.output {
        write_file(path, &bytes, args.force)?;
        *out += &format!(
            "{}: {}, {}, {}\n",
            path.display(),
            count(capture.interfaces, "interface"),
            count(capture.files(), "file"),
            count(bytes.len(), "byte")
        );
    } else {
        print(&bytes)?;
    }
    if !cli.quiet {
        let lines = left_out(&capture.refused).into_iter();
        lines.chain(capture.redacted).for_each(|line| say(&line));
    }
    match capture.unreadable {
        Some(error) => bail!("{error}; the capture holds only what was read before this error"),
        None => Ok(Exit::Planned),
    }
}

/// One line for each kind of file that the user may not read: a device has one `affinity_hint` per IRQ.
fn left_out(refused: &[String]) -> Vec<String> {
    let name = |path: &&String| path.rsplit('/').next().map(str::to_owned);
    let kinds = refused.iter().into_group_map_by(name);
    let line = |paths: &Vec<&String>| {
        let others = match paths.len() {
            1 => "is".to_owned(),
            count => format!("and {} others are", count - 1),
        };
        let path = paths[0];
        format!("{path} {others} left out: permission denied; fix: run as root to include them")
    };
    kinds
        .iter()
        .sorted()
        .map(|(_, paths)| line(paths))
        .collect()
}
