//! Settings that differ from a plan, with reasons.

use serde::{Deserialize, Serialize};

use crate::plan::Write;

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
}

impl Reason {
    pub const ALL: [Self; 7] = [
        Self::NotApplied,
        Self::MovedByOther,
        Self::QueueCountChanged,
        Self::KernelRefused,
        Self::CpuOffline,
        Self::IrqRecreated,
        Self::PlanChanged,
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
        }
    }

    /// Whether apply has set it, and it has changed since.
    pub fn is_change_since_apply(self) -> bool {
        !matches!(
            self,
            Self::NotApplied | Self::KernelRefused | Self::PlanChanged
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

/// A vector that apply placed on another CPU, because the planned one had no free interrupt vector.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fallback {
    pub path: String,
    /// The planned mask.
    pub planned: String,
    /// The mask that the file holds.
    pub holds: String,
}
