//! Command lines of nodes, draw, completions and man.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use crate::cli::{PolicyArgs, ReportArgs, SelectArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Page counts are allocations since boot (numastat). A dash stands for what the machine
does not report; captures hold no counts.

--bandwidth measures each pair of nodes for 0.25 s: one thread on each core of the first
node reads a buffer in the memory of the second, in order. GB/s are 10^9 bytes per
second, the sum of all threads. The buffer is eight times the L3 caches of the node, at
least 64 MiB and at most 1 GiB or a quarter of the free memory. Measure on an idle
machine: other work lowers the figures, and is slowed down by the measurement.

Examples:
  nicpin nodes                          nodes, memory, distances, interfaces
  nicpin nodes --bandwidth              and the rate at which each node reads the others' memory
  nicpin nodes --format json            for programs
  nicpin nodes --root fixtures/dl980    another machine, from its files")]
pub struct NodesArgs {
    /// Measure the rate at which the CPUs of each node read the memory of each node
    #[arg(long)]
    pub bandwidth: bool,

    #[command(flatten)]
    pub report: ReportArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The picture follows the viewer's light or dark colours. Each interface has a letter, and
each CPU is labelled with its queues: A3 is queue 3 of interface A. Point at a CPU to see
all of its queues.

Examples:
  nicpin draw -o machine.svg                  this machine, for a browser
  nicpin draw eth2 > eth2.svg                 one interface
  nicpin draw --root fixtures/dl980 -o dl980.svg
  nicpin draw --planned --no-lines            as planned, without lines
  nicpin draw --irq-cores 2 -o two.svg        with other options
  rsvg-convert -o machine.png machine.svg     an image of it, or with -f pdf a page")]
#[allow(clippy::struct_excessive_bools)] // each is one option
pub struct DrawArgs {
    #[command(flatten)]
    pub select: SelectArgs,

    /// The file to write; by default standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,

    /// Draw only where the queues are now
    #[arg(long)]
    pub now: bool,

    /// Draw only where the plan wants the queues
    #[arg(long, conflicts_with = "now")]
    pub planned: bool,

    /// Draw no lines from queues to CPUs; the CPUs name their queues
    #[arg(long)]
    pub no_lines: bool,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The script is made from the same definitions as --help.

Examples:
  nicpin completions bash > /etc/bash_completion.d/nicpin
  nicpin completions zsh > /usr/local/share/zsh/site-functions/_nicpin
  nicpin completions fish > /etc/fish/completions/nicpin.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Pages are made from the same definitions as --help. The page of a command is nicpin-COMMAND(8).

Examples:
  nicpin man | man -l -                          the page of nicpin
  nicpin man plan | man -l -                     the page of nicpin plan
  nicpin man nicpin.toml | man -l -              the page of the policy file
  nicpin man --into /usr/local/share/man/man8    all pages of section 8")]
pub struct ManArgs {
    /// A command, or nicpin.toml; by default nicpin itself
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,

    /// Write all pages of section 8 to this directory; existing ones are replaced
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub into: Option<PathBuf>,
}
