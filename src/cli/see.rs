//! The commands that look and change nothing: status, measure, compare.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use crate::cli::{PolicyArgs, ReportFormat, SelectArgs};
use crate::plan::binding::MemoryBinding;

/// `nicpin status`.
#[derive(Debug, Args)]
#[command(after_help = "\
The worst interface comes first. Of each vector: where it is planned, where the kernel
may deliver it (allowed) and where it delivers it (effective). OK takes proof: interrupts
that arrived where planned while they were watched.

Exit codes: 0 it could be told, whatever it is; 1 it could not. `check` has an exit code
for a machine that is not as planned.

Examples:
  nicpin                             the whole machine; nicpin status is the same
  nicpin eth2                        one card
  nicpin status --all --seconds 0    every vector, at once: nothing is watched
  nicpin status --format json        the same facts for programs
  nicpin status --root fixtures/dl980")]
pub struct StatusArgs {
    /// Which interfaces.
    #[command(flatten)]
    pub select: SelectArgs,

    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,

    /// Every vector, those as planned, too
    #[arg(short, long)]
    pub all: bool,

    /// Watch interrupts for so long; 0 does not watch. 1, but 0 for a tree or a capture, which stand still
    #[arg(short, long, value_name = "N", value_parser = seconds)]
    pub seconds: Option<Duration>,

    /// Options that override the policy file.
    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// Seconds, of which there may be a part.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    // A day: who wants more has mistyped.
    seconds
        .filter(|seconds| seconds.as_secs() <= 86_400)
        .ok_or_else(|| format!("`{text}` is no number of seconds from 0 to 86400"))
}

/// As [`seconds`], and some.
fn some_seconds(text: &str) -> Result<Duration, String> {
    seconds(text)
        .ok()
        .filter(|time| *time >= Duration::from_millis(1))
        .ok_or_else(|| format!("`{text}` is no number of seconds from 0.001 to 86400"))
}

/// `nicpin measure`.
#[derive(Debug, Args)]
#[command(after_help = "\
Shares of time are the kernel's, which counts in ticks of 10 ms: short samples are coarse.
An interface without a device (veth0, lo) has counters, but no node and no vectors; it is
measured when it is named. CMD's standard output goes to standard error, so that standard
output holds nothing but what was measured.

With --format json each sample is a line, an object of the schema nicpin.measure/1; with
CMD and --seconds there is one every N seconds, and a last one with `whole` true.

Exit codes: 0 measured; 1 not, or CMD failed.

Examples:
  nicpin measure eth2                        one second of eth2
  nicpin measure --watch eth2                the same again and again, on the same spot
  nicpin measure -s 10 --format json         ten seconds of every card, as a line of JSON
  nicpin measure eth2 -- iperf3 -c server    while iperf3 runs")]
pub struct MeasureArgs {
    /// Which interfaces.
    #[command(flatten)]
    pub select: SelectArgs,

    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,

    /// How long a sample is; 1 by default, and with CMD as long as it runs
    #[arg(short, long, value_name = "N", value_parser = some_seconds)]
    pub seconds: Option<Duration>,

    /// How many samples, one after the other; 1 by default, with --watch no end
    #[arg(short, long, value_name = "N", conflicts_with = "command", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Sample without end; on a terminal each sample is drawn over the one before
    #[arg(short, long, conflicts_with = "command")]
    pub watch: bool,

    /// Also vectors that did not fire and CPUs that did nothing
    #[arg(short, long)]
    pub all: bool,

    /// Measure while this command runs
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `nicpin compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Near is the interface's own node, far the one with the greatest distance from it; CMD gets
CPUs and memory there as with `nicpin run`. Interrupts stay where they are: plan and apply
first, or compare twice. Gbit/s are received and sent together, by the interface's
counters; busy and softirq are of all CPUs, whatever else they do. CMD's standard output
goes to standard error. Of each figure: the median, and the least and the most.

Exit codes: 0 compared; 1 not: there is no far node, or CMD failed.

Examples:
  nicpin compare eth2 -- iperf3 -c server            three runs each, by turns
  nicpin compare --runs 10 eth2 -- iperf3 -c server -R
  nicpin compare --far 2 eth2 -- ./client            node 2 instead of the farthest
  nicpin compare --near 0 --far 1 veth0 -- ./client  an interface that has no node
  nicpin compare --format json eth2 -- ./client      every run, for programs")]
pub struct CompareArgs {
    /// The interface, or any other selector that stands for interfaces on one node
    #[arg(value_name = "INTERFACE")]
    pub interface: String,

    /// How often CMD runs on each side
    #[arg(short = 'n', long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub runs: u16,

    /// This node is near
    #[arg(long, value_name = "NODE")]
    pub near: Option<u32>,

    /// This node is far
    #[arg(long, value_name = "NODE")]
    pub far: Option<u32>,

    /// How firmly CMD's memory is bound to the node
    #[arg(long, value_enum, default_value_t)]
    pub memory: MemoryBinding,

    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
