//! The command line of what shows a machine, and of what nicpin says of itself.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use crate::cli::{PolicyArgs, ReportFormat, SelectArgs};

/// `nicpin nodes`.
#[derive(Debug, Args)]
#[command(after_help = "\
Pages were given out since boot (numastat). A dash stands for what the machine does not
tell; captures hold no counts.

--bandwidth has one thread on each core of a node read one buffer that lies on a node,
in order, for a quarter of a second, for every pair of nodes; GB/s are 10^9 bytes a
second, all threads together. The buffer is eight times the node's L3 caches, at least
64 MiB and at most 1 GiB or a quarter of the free memory. Measure an idle machine: other
work lowers the figures, and is slowed down meanwhile.

Examples:
  nicpin nodes                          what sits where
  nicpin nodes --bandwidth              and how fast each node reads the others' memory
  nicpin nodes --format json            for programs
  nicpin nodes --root fixtures/dl980    another machine, from its files")]
pub struct NodesArgs {
    /// Measure how fast the CPUs of each node read the memory of each
    #[arg(long)]
    pub bandwidth: bool,

    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
}

/// `nicpin draw`.
#[derive(Debug, Args)]
#[command(after_help = "\
The picture is text and follows the viewer's light or dark colours. Each interface has a
letter, and a CPU says which of its queues it takes: A3 is queue 3 of interface A. Point
at a CPU for all of them.

Examples:
  nicpin draw -o machine.svg                  this machine, for a browser
  nicpin draw eth2 > eth2.svg              one card
  nicpin draw --root fixtures/dl980 -o dl980.svg
  nicpin draw --irq-cores 2 -o two.svg     as it would be with other options")]
pub struct DrawArgs {
    /// Which interfaces.
    #[command(flatten)]
    pub select: SelectArgs,

    /// The file to write; standard output without
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Replace the file if it is there
    #[arg(long)]
    pub force: bool,

    /// Options that override the policy file.
    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// `nicpin completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Made from the same definitions as --help, so that they are always those of this nicpin.

Examples:
  nicpin completions bash > /etc/bash_completion.d/nicpin
  nicpin completions zsh > /usr/local/share/zsh/site-functions/_nicpin
  nicpin completions fish > /etc/fish/completions/nicpin.fish")]
pub struct CompletionsArgs {
    /// Whose completions
    #[arg(value_enum)]
    pub shell: Shell,
}

/// `nicpin man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Made from the same definitions as --help. The page of a command is named nicpin-COMMAND.

Examples:
  nicpin man | man -l -                          the page of nicpin
  nicpin man plan | man -l -                     the page of nicpin plan
  nicpin man nicpin.toml | man -l -              the page of the policy file
  nicpin man --into /usr/local/share/man/man1    all pages of section 1")]
pub struct ManArgs {
    /// The command that the page is about, or nicpin.toml; nicpin itself without
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,

    /// Write all pages of section 1 to this directory, in place of those that are there
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub into: Option<PathBuf>,
}
