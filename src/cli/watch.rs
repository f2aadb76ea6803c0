//! The command line of `nicpin watch`, and those of the runs that it starts.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::cli::{PolicyArgs, SelectArgs, help};

#[derive(Debug, Args)]
#[command(after_help = help::after("watch"))]
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
