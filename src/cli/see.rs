//! Command lines of the commands that watch counters: status, measure, compare.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::{PolicyArgs, ReportArgs, SelectArgs};
use nicpin::plan::binding::MemoryBinding;

#[derive(Debug, Args)]
#[command(after_help = "\
The worst interface comes first. States, worst first: unknown (vectors that are not
recognized or cannot be read), isolated (vectors on isolated CPUs), remote (queue vectors
on another node), drifted (changed since apply set it), crowded (a core has several queues
while another candidate core has none), untuned (differs from the plan otherwise), pending
(the kernel moves vectors at their next interrupt), unproven (as planned, no interrupt
seen), ok. Only the first four are alarming.

Details, of interfaces that are named or with -v, are for each vector the affinity (where
the kernel may deliver the interrupt), the effective CPU (where it delivers it) and the
planned CPU.

Exit codes: 0 the state was determined, good or bad; 1 it could not be determined; 64
usage error. For an exit code that depends on the state, use `check`.

Examples:
  nicpin                             all interfaces; the same as nicpin status
  nicpin eth2                        one interface, in detail
  nicpin status --all --seconds 0    all vectors, without watching interrupts
  nicpin status --format json        the same facts for programs
  nicpin status --root fixtures/dl980")]
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
#[command(after_help = "\
CPU times are those of /proc/stat, in ticks of 10 ms: short samples are coarse. An
interface without a device (veth0, lo) has counters but no node and no vectors; it is
measured only if it is named. CMD's standard output goes to standard error, so that
standard output holds the report only.

With --format json each sample is one line, an object of the schema nicpin.measure/1.
With CMD and --seconds there is one every N seconds, then one of the whole run, in which
`whole` is true.

Ctrl-C ends the measurement with the report so far.

Exit codes: 0 measured; 1 could not be measured; 64 usage error. With CMD the status is
CMD's: 127 if there is no such command, 126 if it cannot be executed, 128 and the number
of the signal that killed it.

Examples:
  nicpin measure eth2                        one second of eth2
  nicpin measure --watch eth2                one sample after the other, until interrupted
  nicpin measure -s 10 --format json         ten seconds of all interfaces, as one line of JSON
  nicpin measure eth2 -- iperf3 -c server    while iperf3 runs")]
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
#[command(after_help = "\
Near is the interface's own node, far the node with the greatest distance from it; CMD
gets CPUs and memory there as with `nicpin run`. Interrupts are not moved: apply first, or
compare before and after. Gbit/s is the sum of received and sent, from the interface's
counters; CPU time of the machine and of softirqs is that of all CPUs, other work
included. CMD's standard output goes to standard error. Each figure has its median, mean,
standard deviation, minimum and maximum, and the ratio of the means with its standard
deviation. The order is near, far, far, near, near and so on: what changes with time weighs
on both. Ctrl-C ends the comparison with the report of the runs that have ended.

Exit codes: 0 compared; 1 could not be compared (such as without a far node), CMD failed,
or interrupted; 64 usage error; 126 CMD cannot be executed; 127 there is no such command.

Examples:
  nicpin compare eth2 -- iperf3 -c server            five runs on each node, in turn
  nicpin compare --runs 10 eth2 -- iperf3 -c server -R
  nicpin compare --far 2 eth2 -- ./client            far is node 2
  nicpin compare --near 0 --far 1 veth0 -- ./client  an interface without a node
  nicpin compare --export-markdown t.md eth2 -- ./client   also the table, for a report
  nicpin compare --format json eth2 -- ./client      each run, for programs")]
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
