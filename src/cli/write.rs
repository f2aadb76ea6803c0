//! Command lines of the commands that write: apply, restore, confirm.

use std::path::PathBuf;

use clap::Args;

use crate::cli::{PolicyArgs, ReportArgs, SelectArgs, help};

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // each is one option
#[command(after_help = help::after("apply"))]
pub struct ApplyArgs {
    #[command(flatten)]
    pub select: SelectArgs,

    #[command(flatten)]
    pub report: ReportArgs,

    /// Only print the plan, as `nicpin plan`
    #[arg(long, conflicts_with_all = ["trial", "prove", "atomic"])]
    pub dry_run: bool,

    /// Exit with 2 if something was changed
    #[arg(long)]
    pub detailed_exitcode: bool,

    /// Apply this output of `plan --format json` (`-`: standard input) if it fits the machine as it is now
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["SelectArgs", "PolicyArgs", "config"])]
    pub plan: Option<PathBuf>,

    /// Apply the part of the stored plan that still fits the machine
    #[arg(long, requires = "plan")]
    pub force: bool,

    /// Fail if the kernel does not allow to move a vector of a queue
    #[arg(long)]
    pub strict: bool,

    /// Stop at the first write that fails, and restore what was written before it
    #[arg(long)]
    pub atomic: bool,

    /// Watch interrupts for up to SECONDS, and report on which CPUs those of each queue arrived
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub prove: Option<u64>,

    /// Restore all settings after SECONDS, unless `nicpin confirm` or Enter on the terminal comes first
    #[arg(long = "try", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub trial: Option<u64>,

    #[command(flatten)]
    pub lock: LockArgs,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

#[derive(Debug, Args)]
#[command(after_help = help::after("restore"))]
pub struct RestoreArgs {
    /// Print what would be restored and write nothing
    #[arg(long, short = 'n')]
    pub dry_run: bool,

    #[command(flatten)]
    pub report: ReportArgs,

    #[command(flatten)]
    pub lock: LockArgs,
}

#[derive(Debug, Args)]
#[command(after_help = help::after("confirm"))]
pub struct ConfirmArgs {
    #[command(flatten)]
    pub lock: LockArgs,
}

#[derive(Debug, Args)]
pub struct AwaitConfirmArgs {
    /// Restore after this many seconds
    pub seconds: u64,
}

/// How long a command waits for the lock, in seconds.
pub const WAIT: u64 = 30;

#[derive(Debug, Args)]
pub struct LockArgs {
    /// Wait up to SECONDS for another nicpin that is writing
    #[arg(long, value_name = "SECONDS", default_value_t = WAIT)]
    pub wait: u64,
}
