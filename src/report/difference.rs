//! What differs from a plan, and why.

use serde::Serialize;

use crate::plan::Write;

/// Why a value differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// No apply has set it.
    NotApplied,
    /// Apply has set it, and something else has changed it since: another program, the driver, or the kernel when a
    /// CPU went offline.
    MovedByOther,
    /// The interface has another number of queues than at the last apply.
    QueueCountChanged,
    /// The kernel did not take it when apply wrote it.
    KernelRefused,
    /// A CPU that apply has set went offline.
    CpuOffline,
    /// The vector has been given up and allocated anew since the last apply.
    IrqRecreated,
    /// It is as apply has set it, and another plan is wanted now.
    PlanChanged,
}

/// A value that differs, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The write that would mend it.
    #[serde(flatten)]
    pub write: Write,
    /// Why it differs.
    pub reason: Reason,
    /// More about that, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A value that is not as planned because the kernel had no room for it, and that apply has put next to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fallback {
    /// The file.
    pub path: String,
    /// What the plan wants.
    pub planned: String,
    /// What it holds.
    pub holds: String,
}
