//! The states of vectors and interfaces. Every report judges by these.

use serde::{Deserialize, Serialize};

/// The state of an interface, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InterfaceState {
    /// As planned, and interrupts arrived where planned.
    Ok,
    /// As planned; no interrupt was seen.
    Unproven,
    /// Set as planned; the kernel moves some vectors at their next interrupt.
    Pending,
    /// Some settings differ from the plan.
    Untuned,
    /// Some settings differ from the plan, and a core has several queues while another candidate core has none.
    Crowded,
    /// Changed since apply set it.
    Drifted,
    /// Queue vectors are on another node, and the plan moves them to the local one.
    Remote,
    /// Vectors are on isolated CPUs, and the plan moves them off these.
    Isolated,
    /// Its queue vectors are not recognized or cannot be read.
    Unknown,
}

impl InterfaceState {
    /// Best first; the number of a state is its place.
    pub const ALL: [Self; 9] = [
        Self::Ok,
        Self::Unproven,
        Self::Pending,
        Self::Untuned,
        Self::Crowded,
        Self::Drifted,
        Self::Remote,
        Self::Isolated,
        Self::Unknown,
    ];

    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unproven => "unproven",
            Self::Pending => "pending",
            Self::Untuned => "untuned",
            Self::Crowded => "crowded",
            Self::Drifted => "drifted",
            Self::Remote => "remote",
            Self::Isolated => "isolated",
            Self::Unknown => "unknown",
        }
    }

    /// Whether somebody should look at it now.
    pub fn is_alarming(self) -> bool {
        self >= Self::Drifted
    }
}

/// The state of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VectorState {
    /// Affinity and, if reported, effective affinity are as planned.
    AsPlanned,
    /// Nothing is planned for it.
    LeftAlone,
    /// The kernel does not allow to move it.
    Unmovable,
    /// The affinity is as planned; the kernel moves the vector at its next interrupt.
    Pending,
    /// As planned, but interrupts arrived on other CPUs.
    Elsewhere,
    /// The affinity is not as planned.
    Differs,
}
