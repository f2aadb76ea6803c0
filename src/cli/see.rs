//! Command lines of the commands that watch counters: status, measure, compare.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::{PolicyArgs, ReportArgs, SelectArgs, help};
use nicpin::plan::binding::MemoryBinding;

#[derive(Debug, Args)]
#[command(after_help = help::after("status"))]
pub struct StatusArgs {
    #[command(flatten)]
    pub select: SelectArgs,

    #[command(flatten)]
    pub report: ReportArgs,

    /// List all vectors, also those that are as planned
    #[arg(short, long)]
    pub all: bool,

    /// Watch interrupts for N seconds; 0: do not watch. By default 1, and 0 for a tree or a capture
    #[arg(short, long, value_name = "N", value_parser = seconds)]
    pub seconds: Option<Duration>,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// Parses a number of seconds, such as `0.5`.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text
        .parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    // One day: a larger number is a typing error.
    seconds
        .filter(|seconds| seconds.as_secs() <= 86_400)
        .ok_or_else(|| format!("`{text}` is not a number of seconds from 0 to 86400"))
}

/// As [`seconds`], without 0.
fn nonzero_seconds(text: &str) -> Result<Duration, String> {
    seconds(text)
        .ok()
        .filter(|time| *time >= Duration::from_millis(1))
        .ok_or_else(|| format!("`{text}` is not a number of seconds from 0.001 to 86400"))
}

#[derive(Debug, Args)]
#[command(after_help = help::after("measure"))]
pub struct MeasureArgs {
    #[command(flatten)]
    pub select: SelectArgs,

    #[command(flatten)]
    pub report: ReportArgs,

    /// Length of a sample; by default 1, with CMD as long as it runs
    #[arg(short, long, value_name = "N", value_parser = nonzero_seconds)]
    pub seconds: Option<Duration>,

    /// Number of samples; by default 1, with --watch unlimited
    #[arg(short, long, value_name = "N", conflicts_with = "command", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Sample until interrupted; on a terminal each sample replaces the one before
    #[arg(short, long, conflicts_with = "command")]
    pub watch: bool,

    /// Also list vectors without interrupts and idle CPUs
    #[arg(short, long)]
    pub all: bool,

    /// Measure while this command runs
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = help::after("compare"))]
pub struct CompareArgs {
    /// The interface, or any other selector that stands for interfaces on one node
    #[arg(value_name = "INTERFACE")]
    pub interface: String,

    /// Number of runs on each node that count
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub runs: u16,

    /// Number of runs on each node before those, which do not count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(..=10_000))]
    pub warmup: u16,

    /// Use this node as near
    #[arg(long, value_name = "NODE")]
    pub near: Option<u32>,

    /// Use this node as far
    #[arg(long, value_name = "NODE")]
    pub far: Option<u32>,

    /// How strictly CMD's memory is bound to the node
    #[arg(long, value_parser = crate::cli::memory_binding(), default_value = "bind")]
    pub memory: MemoryBinding,

    #[command(flatten)]
    pub report: ReportArgs,

    /// Also write the comparison to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,

    /// Also write the comparison to this file as a Markdown table
    #[arg(long, value_name = "FILE")]
    pub export_markdown: Option<PathBuf>,

    /// Replace the files of --export-json and --export-markdown if they exist
    #[arg(long)]
    pub force: bool,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
