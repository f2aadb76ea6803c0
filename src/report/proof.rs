//! Where interrupts arrived after an apply.

use serde::Serialize;

use crate::cpuset::CpuSet;
use crate::machine::Role;

/// What the counters said of one vector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VectorProof {
    /// The interface.
    pub interface: String,
    /// What the vector does.
    pub role: Role,
    /// Its queue.
    pub queue: Option<u32>,
    /// Its IRQ number.
    pub irq: u32,
    /// Where it should be served.
    pub cpus: CpuSet,
    /// The answer.
    pub verdict: Evidence,
    /// Interrupts that arrived on those CPUs.
    pub interrupts: u64,
    /// CPUs outside of them on which interrupts arrived: before the first of those, while a vector waited to be moved,
    /// or, if it is not proven, since.
    pub others: CpuSet,
}

/// What is known of where a vector is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Its interrupts arrive where they should.
    Proven,
    /// None arrived.
    NoTraffic,
    /// They arrive elsewhere.
    Elsewhere,
    /// Something has allowed it other CPUs meanwhile.
    MovedAway,
    /// The vector is gone.
    Gone,
}
