//! Command lines of nodes, draw, completions and man.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use crate::cli::{PolicyArgs, ReportArgs, SelectArgs, help};

#[derive(Debug, Args)]
#[command(after_help = help::after("nodes"))]
pub struct NodesArgs {
    /// Measure the rate at which the CPUs of each node read the memory of each node
    #[arg(long)]
    pub bandwidth: bool,

    #[command(flatten)]
    pub report: ReportArgs,
}

#[derive(Debug, Args)]
#[command(after_help = help::after("draw"))]
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
#[command(after_help = help::after("completions"))]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = help::after("man"))]
pub struct ManArgs {
    /// A command or a topic (states, selectors, policy); by default nicpin itself
    #[arg(value_name = "COMMAND|TOPIC")]
    pub about: Option<String>,

    /// Write all pages to man5, man7 and man8 in this directory; existing ones are replaced
    #[arg(long, value_name = "DIR", conflicts_with = "about")]
    pub into: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = help::after("help"))]
pub struct HelpArgs {
    /// A command or a topic (states, selectors, policy); by default nicpin itself
    #[arg(value_name = "COMMAND|TOPIC")]
    pub about: Option<String>,
}
