//! Where interrupts arrived after an apply.

use serde::Serialize;

use crate::cpuset::CpuSet;
use crate::machine::Role;

/// The interrupts of one vector after an apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VectorProof {
    pub interface: String,
    pub role: Role,
    pub queue: Option<u32>,
    pub irq: u32,
    /// The planned CPUs.
    pub cpus: CpuSet,
    pub verdict: Evidence,
    /// Interrupts that arrived on the planned CPUs.
    pub interrupts: u64,
    /// Other CPUs on which interrupts arrived: before the first one on a planned CPU, while the move was pending, or, if
    /// the vector is not proven, at any time.
    pub others: CpuSet,
}

/// The evidence for where a vector's interrupts arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Interrupts arrived on the planned CPUs.
    Proven,
    /// No interrupt arrived.
    NoTraffic,
    /// Interrupts arrived on other CPUs.
    Elsewhere,
    /// Its affinity was changed meanwhile.
    MovedAway,
    /// The vector no longer exists.
    Gone,
}
