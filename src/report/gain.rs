//! What applying a plan changes for each interface: every measure that gets better or worse.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::cpuset::CpuSet;
use crate::machine::Machine;
use crate::plan::{DecidedBy, MEASURES, Plan, PlannedInterface, Standing, WriteKind, standings};
use crate::report::difference::Difference;

/// A measure that the plan changes; less is better.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What it counts, in words.
    pub measure: &'static str,
    pub now: u64,
    pub planned: u64,
}

impl Change {
    pub fn is_better(&self) -> bool {
        self.planned < self.now
    }
}

/// What the plan changes for an interface.
#[derive(Debug, Clone, Default)]
pub(super) struct Gain {
    pub(super) changes: Vec<Change>,
    /// The most queues on a core that takes one of its own, now and planned.
    pub(super) busiest: [usize; 2],
}

impl Gain {
    /// Whether a measure gets better.
    pub(super) fn is_better(&self) -> bool {
        self.changes.iter().any(Change::is_better)
    }
}

/// The gain of each interface of a plan, if these settings are as they are and all others as planned.
pub(super) fn gains(machine: &Machine, plan: &Plan, differs: &[&Difference]) -> Vec<Gain> {
    let paths: BTreeSet<&str> = differs.iter().map(|one| &*one.write.path).collect();
    let now = standings(machine, &plan.interfaces, &|path| !paths.contains(path));
    let planned = standings(machine, &plan.interfaces, &|_| true);
    let each = plan.interfaces.iter().zip(now.iter().zip(&planned));
    each.map(|(interface, (now, planned))| {
        let own = differs
            .iter()
            .filter(|one| *one.write.interface == *interface.name);
        let mut changes = of_standings(now, planned);
        let [rps, others] = settings(machine, interface, own.copied());
        changes.extend(
            [
                ("receive queues with other RPS", rps),
                ("settings as requested", others),
            ]
            .map(|(measure, now)| Change {
                measure,
                now,
                planned: 0,
            }),
        );
        changes.retain(|change| change.now != change.planned);
        Gain {
            changes,
            busiest: [now, planned].map(|of| of.score.max_vectors_per_core),
        }
    })
    .collect()
}

fn of_standings(now: &Standing, planned: &Standing) -> Vec<Change> {
    let change = |measure, of: &dyn Fn(&Standing) -> u64| Change {
        measure,
        now: of(now),
        planned: of(planned),
    };
    let mut changes: Vec<Change> = MEASURES
        .iter()
        .map(|measure| change(measure.what, &|of| (measure.of)(&of.score) / measure.unit))
        .collect();
    let rdma = |of: &Standing| of.score.rdma.clone().unwrap_or_default();
    changes.extend([
        change("vectors on isolated CPUs", &|of| {
            of.score.on_isolated as u64
        }),
        change("RDMA vectors off the local node", &|of| {
            (rdma(of).vectors - rdma(of).local) as u64
        }),
        change("RDMA vectors on the busiest core", &|of| {
            rdma(of).max_per_core as u64
        }),
        change("CPUs without their own tx queue", &|of| {
            of.shared_senders as u64
        }),
    ]);
    changes
}

/// Receive queues whose RPS is not as good as planned, and settings that somebody has asked for: they have no measure.
fn settings<'a>(
    machine: &Machine,
    interface: &PlannedInterface,
    differs: impl Iterator<Item = &'a Difference>,
) -> [u64; 2] {
    let read = machine.interface(&interface.name);
    let has_rps = interface
        .rx_queues
        .iter()
        .filter_map(|rx| rx.rps_cpus.as_ref());
    let has_rps = CpuSet::union_of(has_rps);
    let mut xps = interface
        .tx_queues
        .iter()
        .filter_map(|tx| tx.xps_cpus.as_ref());
    let xps_is_off = xps.all(CpuSet::is_empty);
    // As many CPUs, of those to which the plan sends packets, are as good.
    let as_good = interface.rx_queues.iter().filter(|rx| {
        let now = read.and_then(|read| read.rx_queues.iter().find(|now| now.index == rx.queue));
        let now = now.and_then(|now| now.rps_cpus.as_ref());
        rx.rps_cpus.as_ref().zip(now).is_some_and(|(wanted, now)| {
            now.cpus != *wanted && now.cpus.len() == wanted.len() && now.cpus.is_subset(&has_rps)
        })
    });
    let as_good = as_good.count() as u64;
    let is_hinted = |path: &str| {
        let mut vectors = interface.vectors.iter();
        let vector =
            vectors.find(|vector| path == crate::machine::setting::affinity_file(vector.irq));
        let placement = vector.and_then(|vector| vector.placement.as_ref());
        placement.is_some_and(|placement| placement.decided_by == Some(DecidedBy::Hint))
    };
    let (mut rps, mut others) = (0_u64, 0);
    for Difference { write, .. } in differs {
        match write.kind {
            WriteKind::Rps => rps += 1,
            WriteKind::Vector => others += u64::from(is_hinted(&write.path)),
            WriteKind::Xps => others += u64::from(xps_is_off),
            _ => others += 1,
        }
    }
    [rps.saturating_sub(as_good), others]
}
