//! The link of a PCI Express device to the port above it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a link can do, or does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PcieLink {
    /// MT/s of each lane.
    pub mtps: u64,
    pub lanes: u64,
}

impl PcieLink {
    /// Both, of two ends of one link.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        Self {
            mtps: self.mtps.min(other.mtps),
            lanes: self.lanes.min(other.lanes),
        }
    }

    /// Whether it is slower or narrower.
    pub fn is_below(self, other: Self) -> bool {
        self.mtps < other.mtps || self.lanes < other.lanes
    }

    /// MT/s of all lanes.
    pub fn total(self) -> u64 {
        self.mtps.saturating_mul(self.lanes)
    }
}

impl fmt::Display for PcieLink {
    /// `8.0 GT/s x8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{} GT/s x{}",
            self.mtps / 1000,
            self.mtps % 1000 / 100,
            self.lanes
        )
    }
}
