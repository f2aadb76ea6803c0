//! A command that runs near an interface and far from it. The JSON form is `nicpin.compare/1`. Figures of a run are as
//! in [`MachineRates`](crate::report::measure::MachineRates).

use std::time::Duration;

use itertools::Itertools as _;
use serde::Serialize;

use crate::cpuset::{CpuSet, NodeSet};
use crate::plan::Note;
use crate::plan::binding::Binding;
use crate::report::measure::Measurement;

#[derive(Debug, Serialize)]
#[serde(tag = "schema", rename = "nicpin.compare/1")]
pub struct Comparison {
    pub interface: String,
    pub command: Vec<String>,
    /// Runs on each side before those that count.
    pub warmup: u16,
    pub near: Side,
    pub far: Side,
    pub figures: Vec<Figure>,
    pub notes: Vec<Note>,
}

#[derive(Debug, Serialize)]
pub struct Side {
    pub nodes: NodeSet,
    pub cpus: CpuSet,
    pub runs: Vec<ComparedRun>,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ComparedRun {
    pub wall_seconds: f64,
    /// CPU time of the command and of the children for which it waited.
    pub cpu_seconds: f64,
    pub busy_cpu_seconds: f64,
    pub softirq_cpu_seconds: f64,
    pub gbit_per_second: f64,
    /// `None` if no CPU was busy.
    pub gbit_per_busy_cpu_second: Option<f64>,
    pub local_interrupts: u64,
    pub remote_interrupts: u64,
    pub dropped: u64,
}

#[derive(Debug, Serialize)]
pub struct Figure {
    /// A field of [`ComparedRun`].
    pub name: &'static str,
    pub near: Option<Stats>,
    pub far: Option<Stats>,
    /// Quotient of the means; `None` if near is 0.
    pub far_to_near: Option<f64>,
    /// Derived from the standard deviations of the means; `None` with fewer than two runs on a side.
    pub far_to_near_stddev: Option<f64>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Stats {
    pub median: f64,
    pub mean: f64,
    /// Sample standard deviation (divisor n - 1); `None` for one value.
    pub stddev: Option<f64>,
    pub min: f64,
    pub max: f64,
}

impl Side {
    pub fn new(binding: &Binding) -> Self {
        Self {
            nodes: binding.nodes.clone(),
            cpus: binding.cpus.clone(),
            runs: Vec::new(),
        }
    }
}

impl ComparedRun {
    pub fn new(measure: &Measurement, wall: Duration, cpu: Duration) -> Self {
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

    fn of(&self, name: &str) -> Option<f64> {
        serde_json::to_value(self).ok()?[name].as_f64()
    }
}

impl Stats {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values = sorted(values);
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let stddev = (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
        Some(Self {
            min: *values.first()?,
            max: *values.last()?,
            median: median(&values),
            mean,
            stddev,
        })
    }
}

fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    values
        .into_iter()
        .sorted_unstable_by(f64::total_cmp)
        .collect()
}

/// `values` are sorted and not empty.
fn median(values: &[f64]) -> f64 {
    let (half, last) = (values.len() / 2, values.len() - 1);
    f64::midpoint(values[last - half], values[half])
}

/// The values, counted from 1, that are far from the others: by more than a twentieth of the median, and by more than
/// ten standard deviations, estimated from the median of the distances from the median. No normally distributed value
/// is so far; see B. Iglewicz and D. Hoaglin, How to Detect and Handle Outliers, 1993.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    if values.len() < 3 {
        return Vec::new();
    }
    let middle = median(&sorted(values.iter().copied()));
    let distances = values.iter().map(|value| (value - middle).abs());
    // 0.6745: the distance of the quartiles of a normal distribution from its mean, in standard deviations.
    let deviation = median(&sorted(distances.clone())) / 0.6745;
    let least = (10.0 * deviation).max(middle.abs() / 20.0);
    distances
        .zip(1..)
        .filter(|(distance, _)| *distance > least)
        .map(|(_, number)| number)
        .collect()
}

const FIGURES: [&str; 9] = [
    "wall_seconds",
    "cpu_seconds",
    "busy_cpu_seconds",
    "softirq_cpu_seconds",
    "gbit_per_second",
    "gbit_per_busy_cpu_second",
    "local_interrupts",
    "remote_interrupts",
    "dropped",
];

impl Comparison {
    pub fn new(
        interface: &str,
        command: Vec<String>,
        near: Side,
        far: Side,
        mut notes: Vec<Note>,
    ) -> Self {
        let figures = FIGURES.map(|name| {
            let stats = |side: &Side| Stats::of(side.runs.iter().filter_map(|run| run.of(name)));
            Figure::new(name, stats(&near), stats(&far))
        });
        for (place, side) in [("near", &near), ("far", &far)] {
            for (what, name) in [("time", "wall_seconds"), ("throughput", "gbit_per_second")] {
                let figures = side.runs.iter().filter_map(|run| run.of(name));
                let runs = outliers(&figures.collect_vec());
                if !runs.is_empty() {
                    notes.push(Note::Outliers {
                        side: place.to_owned(),
                        what: what.to_owned(),
                        runs,
                    });
                }
            }
        }
        Self {
            interface: interface.to_owned(),
            command,
            warmup: 0,
            near,
            far,
            figures: figures.into(),
            notes,
        }
    }
}

impl Figure {
    fn new(name: &'static str, near: Option<Stats>, far: Option<Stats>) -> Self {
        let both = near.zip(far).filter(|(near, _)| near.mean > 0.0);
        let far_to_near = both.map(|(near, far)| far.mean / near.mean);
        let stddev = both.and_then(|(near, far)| {
            // Relative errors of a quotient add as squares.
            let relative = |spread: Stats| Some(spread.stddev? / spread.mean);
            Some(far.mean / near.mean * relative(near)?.hypot(relative(far)?))
        });
        Self {
            name,
            near,
            far,
            far_to_near,
            far_to_near_stddev: stddev.filter(|stddev| stddev.is_finite()),
        }
    }
}
