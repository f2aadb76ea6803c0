//! One command, run near an interface and far from it: the figures of each run and their medians. The JSON form is
//! `nicpin.compare/1`.

use std::time::Duration;

use serde::Serialize;

use crate::cpuset::{CpuSet, NodeSet};
use crate::plan::Note;
use crate::plan::binding::Binding;
use crate::report::measure::Measure;

/// The name and version of the JSON form.
pub const SCHEMA: &str = "nicpin.compare/1";

/// The comparison of both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    schema: &'static str,
    pub interface: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// On the local node.
    pub near: Side,
    /// On a remote node.
    pub far: Side,
    pub figures: Vec<Figure>,
    pub notes: Vec<Note>,
}

/// One place to run the command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// Usually one node; several when `local_cpulist` spans several.
    pub nodes: NodeSet,
    /// The CPUs that the command was bound to.
    pub cpus: CpuSet,
    /// In the order in which they ran.
    pub runs: Vec<ComparedRun>,
}

/// The figures of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ComparedRun {
    pub wall_seconds: f64,
    /// CPU time of the command and of the children that it waited for.
    pub cpu_seconds: f64,
    /// Non-idle time of all CPUs.
    pub busy_cpu_seconds: f64,
    /// Time of all CPUs in interrupts and softirqs.
    pub softirq_cpu_seconds: f64,
    /// Received and sent by the interface.
    pub gbit_per_second: f64,
    /// Gbit for each busy CPU second; `None` when no CPU was busy.
    pub gbit_per_busy_cpu_second: Option<f64>,
    /// Interrupts on the interface's node.
    pub local_interrupts: u64,
    /// Interrupts on other nodes.
    pub remote_interrupts: u64,
    /// Dropped packets.
    pub dropped: u64,
}

/// One figure, near and far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// The name of the field of [`ComparedRun`].
    pub name: &'static str,
    pub near: Option<Spread>,
    pub far: Option<Spread>,
    /// The median of far divided by that of near; `None` when near is 0.
    pub far_to_near: Option<f64>,
}

/// A figure over several runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Side {
    /// A side without runs.
    pub fn new(binding: &Binding) -> Self {
        Self { nodes: binding.nodes.clone(), cpus: binding.cpus.clone(), runs: Vec::new() }
    }
}

impl ComparedRun {
    /// The figures of a run, from the measurement of the machine and the times of the process.
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
    /// The spread of these values; `None` without any.
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
