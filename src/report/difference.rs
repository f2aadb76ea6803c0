//! What differs from a plan and why, what the plan makes better or worse for each interface, and what has no plan.

use std::collections::BTreeSet;

use itertools::izip;
use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::machine::setting::affinity_file;
use crate::machine::{Machine, Role};
use crate::plan::{
    DecidedBy, MEASURES, Note, Plan, PlannedInterface, Standing, Write, WriteKind, standings,
};

/// Why a setting differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// No apply has set it.
    NotApplied,
    /// Changed since apply set it: by another program, the driver, or the kernel when a CPU went offline.
    MovedByOther,
    /// The number of the interface's queues has changed since the last apply.
    QueueCountChanged,
    /// The kernel refused the write of the last apply.
    KernelRefused,
    /// A CPU of the affinity that apply set went offline.
    CpuOffline,
    /// The driver has freed the vector and allocated it again since the last apply.
    IrqRecreated,
    /// It is as apply set it, but the plan has changed.
    PlanChanged,
    /// The record of the last apply cannot be read.
    Unknown,
}

impl Reason {
    pub const ALL: [Self; 8] = [
        Self::NotApplied,
        Self::MovedByOther,
        Self::QueueCountChanged,
        Self::KernelRefused,
        Self::CpuOffline,
        Self::IrqRecreated,
        Self::PlanChanged,
        Self::Unknown,
    ];

    /// The word in JSON.
    pub fn name(self) -> &'static str {
        [
            "not-applied",
            "moved-by-other",
            "queue-count-changed",
            "kernel-refused",
            "cpu-offline",
            "irq-recreated",
            "plan-changed",
            "unknown",
        ][self as usize]
    }

    /// Whether apply has set it, and it has changed since.
    pub fn is_change_since_apply(self) -> bool {
        !matches!(
            self,
            Self::NotApplied | Self::KernelRefused | Self::PlanChanged | Self::Unknown
        )
    }
}

/// A setting that differs from the plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The write that fixes it.
    #[serde(flatten)]
    pub write: Write,
    pub reason: Reason,
    /// More about the reason, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What differs from a plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Differences {
    pub differs: Vec<Difference>,
    /// Vectors on fallbacks, which count as planned.
    pub fallbacks: Vec<Fallback>,
}

/// A vector that apply placed on another CPU, because the planned one had no free interrupt vector.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fallback {
    pub path: String,
    /// The planned mask.
    pub planned: String,
    /// The mask that the file holds.
    pub holds: String,
}

/// A kernel-managed vector of a queue: it cannot be moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnmovableVector {
    pub interface: String,
    pub irq: u32,
    /// `smp_affinity`.
    pub affinity: CpuSet,
}

impl UnmovableVector {
    /// Those of a plan.
    #[doc(hidden)]
    pub fn of(plan: &Plan) -> Vec<Self> {
        plan.interfaces
            .iter()
            .flat_map(|one| one.vectors.iter().map(move |vector| (one, vector)))
            .filter(|(_, vector)| !vector.movable && vector.role != Role::Control)
            .map(|(interface, vector)| Self {
                interface: interface.name.clone(),
                irq: vector.irq,
                affinity: vector.affinity.clone(),
            })
            .collect()
    }
}

/// An interface that cannot be planned, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unplannable {
    pub interface: String,
    #[serde(flatten)]
    pub note: Note,
}

impl Unplannable {
    /// The interfaces of a plan that have a note that `matches`.
    #[doc(hidden)]
    pub fn of(plan: &Plan, matches: impl Fn(&Note) -> bool) -> Vec<Self> {
        plan.interfaces
            .iter()
            .flat_map(|one| one.notes.iter().map(move |note| (one, note)))
            .filter(|(_, note)| matches(note))
            .map(|(interface, note)| Self {
                interface: interface.name.clone(),
                note: note.clone(),
            })
            .collect()
    }

    /// Interfaces whose state cannot be determined: those selected by name that cannot be planned, and without a selection
    /// all those whose vectors cannot be read, or of which the policy wants what cannot be met.
    pub fn unknown(plan: &Plan, requested: bool) -> Vec<Self> {
        Self::of(plan, |note| {
            note.is_unknown() || requested && note.is_unplannable()
        })
    }

    /// Without a selection: interfaces that are up and whose vectors are not understood.
    pub fn left_alone(plan: &Plan, requested: bool) -> Vec<Self> {
        let is_left = |note: &Note| matches!(note, Note::VectorsNotUnderstood { .. });
        let mut left = Self::of(plan, |note| !requested && is_left(note));
        let up = plan.interfaces.iter().filter(|one| one.link == "up");
        left.retain(|one| up.clone().any(|up| up.name == one.interface));
        left
    }
}

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
    let now = standings(machine, &plan.interfaces, &|kind, interface, number| {
        paths.is_empty() || !paths.contains(&*kind.path(interface, number))
    });
    let planned = standings(machine, &plan.interfaces, &|_, _, _| true);
    let each = izip!(&plan.interfaces, now, planned).map(|(interface, now, planned)| {
        let own = differs
            .iter()
            .filter(|one| *one.write.interface == *interface.name);
        let [rps, others] = settings(machine, interface, own.copied());
        let requested = [
            ("receive queues with other RPS", rps, 0),
            ("settings as requested", others, 0),
        ];
        let changes = measures(&now)
            .into_iter()
            .zip(measures(&planned))
            .map(|((what, now), (_, planned))| (what, now, planned))
            .chain(requested)
            .filter(|(_, now, planned)| now != planned);
        Gain {
            changes: changes
                .map(|(measure, now, planned)| Change {
                    measure,
                    now,
                    planned,
                })
                .collect(),
            busiest: [now, planned].map(|of| of.score.max_vectors_per_core),
        }
    });
    each.collect()
}

fn measures(of: &Standing) -> Vec<(&'static str, u64)> {
    let score = &of.score;
    let rdma = score.rdma.clone().unwrap_or_default();
    let measures = MEASURES
        .iter()
        .map(|one| (one.what, (one.of)(score) / one.unit));
    let more = [
        ("vectors on isolated CPUs", score.on_isolated),
        ("RDMA vectors off the local node", rdma.vectors - rdma.local),
        ("RDMA vectors on the busiest core", rdma.max_per_core),
        ("CPUs without their own tx queue", of.shared_senders),
    ]
    .map(|(what, count)| (what, count as u64));
    measures.chain(more).collect()
}

/// Receive queues whose RPS is not as good as planned, and settings that somebody has asked for: they have no measure.
fn settings<'a>(
    machine: &Machine,
    interface: &PlannedInterface,
    differs: impl Iterator<Item = &'a Difference>,
) -> [u64; 2] {
    let read = machine.interface(&interface.name);
    let rx = || interface.rx_queues.iter();
    let has_rps = CpuSet::union_of(rx().filter_map(|rx| rx.rps_cpus.as_ref()));
    let xps_is_off = interface
        .tx_queues
        .iter()
        .filter_map(|tx| tx.xps_cpus.as_ref())
        .all(CpuSet::is_empty);
    // As many CPUs, of those to which the plan sends packets, are as good.
    let as_good = rx()
        .filter(|rx| {
            let now = read.and_then(|read| read.rx_queues.iter().find(|now| now.index == rx.queue));
            let now = now.and_then(|now| now.rps_cpus.as_ref());
            rx.rps_cpus.as_ref().zip(now).is_some_and(|(wanted, now)| {
                now.cpus != *wanted
                    && now.cpus.len() == wanted.len()
                    && now.cpus.is_subset(&has_rps)
            })
        })
        .count() as u64;
    let hinted: BTreeSet<_> = interface
        .vectors
        .iter()
        .filter(|vector| {
            let placement = vector.placement.as_ref();
            placement.is_some_and(|placement| placement.decided_by == Some(DecidedBy::Hint))
        })
        .map(|vector| affinity_file(vector.irq))
        .collect();
    let (mut rps, mut others) = (0_u64, 0);
    for Difference { write, .. } in differs {
        match write.kind {
            WriteKind::Rps => rps += 1,
            WriteKind::Vector => others += u64::from(hinted.contains(&write.path)),
            WriteKind::Xps => others += u64::from(xps_is_off),
            _ => others += 1,
        }
    }
    [rps.saturating_sub(as_good), others]
}
