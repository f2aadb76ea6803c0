//! The command line of `nicpin watch`, and those of the runs that it starts.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::cli::{PolicyArgs, SelectArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Applies once, then waits for what undoes affinity: interfaces that are opened, closed,
added or removed, ethtool -L, drivers, CPUs that go offline and online, resume, a restart
of irqbalance, a changed policy file. After 200 ms without a further event (2 s at most)
it applies as a child process, and every 5 minutes. Runs that take more than 5 % of a core
over a minute are 2 s apart. Links that are virtual cause no run.

A setting to which the same value is restored three times in ten minutes, without an event
of the kernel in between, is not restored for an hour, then two, four and so on, with a
warning. While
`apply --try` waits for its confirmation, and after `nicpin restore` until the next
`nicpin apply`, nothing is written. `nicpin status` shows the last five runs.

SIGHUP: read the policy file again. SIGUSR1: run at once. SIGTERM: end; settings stay.

Exit codes: 0 ended by SIGTERM or SIGINT; 1 it could not begin to watch, or another
watcher runs; 64 usage error. What a run cannot write is reported and tried again.

Examples:
  systemctl enable --now nicpin-watch    as a service
  nicpin watch --observe                 write nothing: report what differs after each event
  nicpin watch --guard driver:mlx5_core  also restore what other programs write, at once")]
pub struct WatchArgs {
    #[command(flatten)]
    pub select: SelectArgs,

    /// Write no setting: report what apply would change
    #[arg(long)]
    pub observe: bool,

    /// Also run when another program writes the affinity of a planned vector
    #[arg(long, conflicts_with = "observe")]
    pub guard: bool,

    /// After each run, write metrics for Prometheus to this file, as `nicpin check --format prometheus --output`
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// A run of the watcher.
#[derive(Debug, Args)]
pub struct WatchRunArgs {
    /// Write the metrics, and nothing else
    #[arg(long)]
    pub metrics: bool,

    /// Leave out CPUs that cgroups have alone
    #[arg(long)]
    pub avoid_exclusive: bool,

    /// Leave this setting alone, by its name in the record
    #[arg(long, value_name = "SETTING")]
    pub leave: Vec<String>,

    /// The command line of the watcher
    #[arg(last = true, value_name = "ARGUMENT")]
    pub watcher: Vec<OsString>,
}
