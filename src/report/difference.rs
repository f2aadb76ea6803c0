//! What differs from a plan and why, and what has no plan.

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::machine::Role;
use crate::plan::{Note, Plan, PlannedInterface, PlannedVector, Write};

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
        match self {
            Self::NotApplied => "not-applied",
            Self::MovedByOther => "moved-by-other",
            Self::QueueCountChanged => "queue-count-changed",
            Self::KernelRefused => "kernel-refused",
            Self::CpuOffline => "cpu-offline",
            Self::IrqRecreated => "irq-recreated",
            Self::PlanChanged => "plan-changed",
            Self::Unknown => "unknown",
        }
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

/// A vector of a queue that the kernel does not allow to move.
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
        let of_interface = |interface: &PlannedInterface| {
            let vectors = interface
                .vectors
                .iter()
                .filter(|v| !v.movable && v.role != Role::Control);
            let one = |vector: &PlannedVector| Self {
                interface: interface.name.clone(),
                irq: vector.irq,
                affinity: vector.affinity.clone(),
            };
            vectors.map(one).collect::<Vec<_>>()
        };
        plan.interfaces.iter().flat_map(of_interface).collect()
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
        let notes = plan
            .interfaces
            .iter()
            .flat_map(|i| i.notes.iter().map(move |note| (i, note)));
        notes
            .filter(|(_, note)| matches(note))
            .map(|(interface, note)| Self {
                interface: interface.name.clone(),
                note: note.clone(),
            })
            .collect()
    }

    /// Interfaces selected by name that cannot be planned.
    pub fn requested(plan: &Plan, requested: bool) -> Vec<Self> {
        if requested {
            Self::of(plan, Note::is_unplannable)
        } else {
            Vec::new()
        }
    }

    /// Interfaces whose state cannot be determined: those selected by name that cannot be planned, and without a selection
    /// all those whose vectors cannot be read, or of which the policy wants what cannot be met.
    pub fn unknown(plan: &Plan, requested: bool) -> Vec<Self> {
        if requested {
            Self::requested(plan, requested)
        } else {
            Self::of(plan, Note::is_unknown)
        }
    }

    /// Without a selection: interfaces that are up and whose vectors are not understood.
    pub fn left_alone(plan: &Plan, requested: bool) -> Vec<Self> {
        if requested {
            return Vec::new();
        }
        let mut left = Self::of(plan, |note| {
            matches!(note, Note::VectorsNotUnderstood { .. })
        });
        let up = |name: &str| {
            plan.interfaces
                .iter()
                .any(|i| i.name == name && i.link == "up")
        };
        left.retain(|one| up(&one.interface));
        left
    }
}
