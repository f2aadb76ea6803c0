//! The bus device of an interface, and its PCI Express link.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;

/// The bus device of an interface.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Device {
    /// `0000:82:00.0` on PCI.
    pub address: String,
    /// The interface belongs to a child of it: a sub-function (an auxiliary device), virtio.
    pub is_parent: bool,
    /// Vendor and device in hex: `15b3:1017`.
    pub pci_id: Option<String>,
    /// `numa_node`; `None` for -1.
    pub node: Option<u32>,
    /// CPUs near the device (`local_cpulist`); all CPUs if the node is unknown.
    pub local_cpus: Option<CpuSet>,
    /// MT/s of the device, not its slot: `max_link_speed` times `max_link_width`; 0 if unknown.
    pub pcie_mtps: u64,
    /// The current one, and the best of device and slot; `None` if unknown, and for virtual functions.
    pub link: Option<(PcieLink, PcieLink)>,
    /// `physfn` of a virtual function.
    pub parent: Option<String>,
    /// Allocated: `msi_irqs`, or the one `INTx` or MSI line.
    pub irqs: Vec<u32>,
    /// `irqs` is that line, which other devices may have, too.
    pub has_line: bool,
    /// By the device tree, if sysfs lists no IRQs: its own, or those of its USB or SDIO controller.
    pub tree: Vec<TreeInterrupt>,
    /// The controller that interrupts for a USB, SDIO or `VMBus` device: its driver, and its IRQs in sysfs; or the portals
    /// of several devices (DPAA).
    pub controller: Option<(String, Vec<u32>)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeInterrupt {
    /// Number at the interrupt controller.
    pub hwirq: u32,
    /// The controller is none of Arm's GICs; the name is older than controllers of several cells.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_one_cell: bool,
    /// `interrupt-names`.
    pub name: Option<String>,
}

impl Device {
    pub(crate) fn by_controller(&self) -> &[u32] {
        self.controller.as_ref().map_or(&[], |(_, irqs)| irqs)
    }

    pub(crate) fn may_have(&self, irq: u32) -> bool {
        self.irqs.is_empty() || self.irqs.contains(&irq)
    }
}

/// Speed and width of a PCI Express link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PcieLink {
    /// MT/s of each lane.
    pub mtps: u64,
    pub lanes: u64,
}

impl PcieLink {
    /// The lower speed and width of the two ends of a link.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        let (mtps, lanes) = (self.mtps.min(other.mtps), self.lanes.min(other.lanes));
        Self { mtps, lanes }
    }

    pub fn is_below(self, other: Self) -> bool {
        self.mtps < other.mtps || self.lanes < other.lanes
    }

    /// MT/s of all lanes.
    pub fn total(self) -> u64 {
        self.mtps.saturating_mul(self.lanes)
    }
}

impl fmt::Display for PcieLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mtps, lanes } = self;
        write!(f, "{}.{} GT/s x{lanes}", mtps / 1000, mtps % 1000 / 100)
    }
}
