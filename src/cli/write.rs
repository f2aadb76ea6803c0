//! Command lines of the commands that write: apply, restore, confirm.

use std::path::PathBuf;

use clap::Args;

use crate::cli::{PolicyArgs, ReportArgs, SelectArgs};

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // each is one option
#[command(after_help = "\
Privileges of a user other than root: CAP_DAC_OVERRIDE for /proc/irq and /run/nicpin,
which belong to root; CAP_NET_ADMIN for RPS, RFS, XPS and channels. plan, check and
capture need none.

Exit codes: 0 in the planned state, changed or not; 1 it could not be reached; 2 with
--detailed-exitcode: reached, and something was changed; 64 usage error.

Examples:
  nicpin apply                       all interfaces; a second run writes nothing
  nicpin apply --dry-run eth2        what that would write
  nicpin apply --if-present ens2f0   at boot, where the interface may be absent
  nicpin apply --format json eth2    for provisioning: see `changed` in the output
  nicpin plan --format json > p.json; nicpin apply --plan p.json
  nicpin apply --atomic --prove 3    all or nothing; then report where interrupts arrive
  nicpin apply --try 60 eth2         restore after 60 s unless `nicpin confirm` or Enter comes")]
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
#[command(after_help = "\
Restores the affinity (smp_affinity). The kernel moves an interrupt only when its
effective CPU is not in the new affinity: a vector may stay on its present CPU.

Exit codes: 0 restored, but for settings that no longer exist; 1 a setting could not be
restored; 64 usage error.

Examples:
  nicpin restore                     restore the settings from before the first apply
  nicpin restore --format json       for provisioning: see `changed` in the output")]
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
#[command(after_help = "\
Exit codes: 0 the settings stay; 1 there was nothing to confirm, or they could not be kept;
64 usage error.

Examples:
  nicpin confirm                     keep what `apply --try` has set
  nicpin apply --try 60 < /dev/null && ping -c 3 192.0.2.1 && nicpin confirm
                                     in a script, without a terminal")]
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
