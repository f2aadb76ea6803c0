//! One command run near an interface and far from it: the figures of each run, and what they say together. Its JSON
//! form is `nicpin.compare/1`.

use std::time::Duration;

use serde::Serialize;

use crate::cpuset::{CpuSet, NodeSet};
use crate::plan::Note;
use crate::plan::binding::Binding;
use crate::report::measure::Measure;

/// The name and version of the JSON form.
pub const SCHEMA: &str = "nicpin.compare/1";

/// Both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    schema: &'static str,
    /// What the command is near to and far from.
    pub interface: String,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// On the interface's node.
    pub near: Side,
    /// On another.
    pub far: Side,
    /// Each figure over all runs.
    pub figures: Vec<Figure>,
    /// What to know about the figures.
    pub notes: Vec<Note>,
}

/// One place to run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// The node; several where a card is near to several.
    pub nodes: NodeSet,
    /// The CPUs that the command was given.
    pub cpus: CpuSet,
    /// Its runs, in their order.
    pub runs: Vec<ComparedRun>,
}

/// One run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ComparedRun {
    /// How long it took.
    pub wall_seconds: f64,
    /// CPU time of the command and of what it started and waited for.
    pub cpu_seconds: f64,
    /// Time of all CPUs in any program or in the kernel.
    pub busy_cpu_seconds: f64,
    /// Time of all CPUs in interrupts and softirqs.
    pub softirq_cpu_seconds: f64,
    /// Received and sent by the interface, in Gbit a second.
    pub gbit_per_second: f64,
    /// The same for each second that a CPU was busy; `None` when none was.
    pub gbit_per_busy_cpu_second: Option<f64>,
    /// Interrupts on the interface's node.
    pub local_interrupts: u64,
    /// Interrupts on other nodes.
    pub remote_interrupts: u64,
    /// Packets thrown away.
    pub dropped: u64,
}

/// One figure, near and far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Its name in each run.
    pub name: &'static str,
    /// Near.
    pub near: Option<Spread>,
    /// Far.
    pub far: Option<Spread>,
    /// Far in parts of near, by the medians; `None` when near is 0.
    pub far_to_near: Option<f64>,
}

/// A figure over several runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// As many runs had more as had less.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

impl Side {
    /// A place without runs so far.
    pub fn new(binding: &Binding) -> Self {
        Self { nodes: binding.nodes.clone(), cpus: binding.cpus.clone(), runs: Vec::new() }
    }
}

impl ComparedRun {
    /// What was measured of a run, with what the kernel says of the process.
    pub fn new(measure: &Measure, wall: Duration, cpu: Duration) -> Self {
        let machine = measure.machine;
        Self {
            wall_seconds: wall.as_secs_f64(),
            cpu_seconds: cpu.as_secs_f64(),
            busy_cpu_seconds: machine.busy_cpu_seconds,
            softirq_cpu_seconds: machine.softirq_cpu_seconds,
            gbit_per_second: machine.gbit_per_second,
            gbit_per_busy_cpu_second: machine.gbit_per_busy_cpu_second,
            local_interrupts: machine.local_interrupts,
            remote_interrupts: machine.remote_interrupts,
            dropped: machine.dropped,
        }
    }
}

impl Spread {
    /// Of these values; `None` without any.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Self { median, min, max })
    }
}

type Value = fn(&ComparedRun) -> Option<f64>;

/// The figures that are compared.
#[allow(clippy::cast_precision_loss)] // counts beyond 2^53 are compared well enough
const FIGURES: [(&str, Value); 9] = [
    ("wall_seconds", |run| Some(run.wall_seconds)),
    ("cpu_seconds", |run| Some(run.cpu_seconds)),
    ("busy_cpu_seconds", |run| Some(run.busy_cpu_seconds)),
    ("softirq_cpu_seconds", |run| Some(run.softirq_cpu_seconds)),
    ("gbit_per_second", |run| Some(run.gbit_per_second)),
    ("gbit_per_busy_cpu_second", |run| run.gbit_per_busy_cpu_second),
    ("local_interrupts", |run| Some(run.local_interrupts as f64)),
    ("remote_interrupts", |run| Some(run.remote_interrupts as f64)),
    ("dropped", |run| Some(run.dropped as f64)),
];

impl Comparison {
    /// Puts both sides beside each other.
    pub fn new(interface: &str, command: Vec<String>, near: Side, far: Side, notes: Vec<Note>) -> Self {
        let figure = |(name, value): (&'static str, Value)| {
            let of = |side: &Side| Spread::of(side.runs.iter().filter_map(value));
            let (near, far) = (of(&near), of(&far));
            let ratio = near.zip(far).filter(|(near, _)| near.median > 0.0);
            Figure { name, near, far, far_to_near: ratio.map(|(near, far)| far.median / near.median) }
        };
        let figures = FIGURES.into_iter().map(figure).collect();
        Self { schema: SCHEMA, interface: interface.to_owned(), command, near, far, figures, notes }
    }
}
