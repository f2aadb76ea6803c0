//! The bus device of an interface, and its PCI Express link.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;

/// The bus device of an interface.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Device {
    /// The name on the bus: `0000:82:00.0` on PCI.
    pub address: String,
    /// PCI vendor and device in hex (`15b3:1017`); `None` off PCI.
    pub pci_id: Option<String>,
    /// `numa_node`; `None` for -1 and without such a file.
    pub node: Option<u32>,
    /// `local_cpulist`: the CPUs near the device; all CPUs if the node is unknown.
    pub local_cpus: Option<CpuSet>,
    /// `max_link_speed` times `max_link_width` in MT/s, of the device, not its slot; 0 if unknown.
    pub pcie_mtps: u64,
    /// Current link (`current_link_speed`, `current_link_width`), and the best that both device and slot can do; `None`
    /// if any of it is unknown, and for virtual functions, which have no link.
    pub link: Option<(PcieLink, PcieLink)>,
    /// The physical function of a virtual one (`physfn`).
    pub parent: Option<String>,
    /// Allocated IRQs (`msi_irqs`, or the one `INTx` or MSI line), ascending.
    pub irqs: Vec<u32>,
    /// Interrupts by the device tree, if sysfs lists no IRQs.
    pub tree: Vec<TreeInterrupt>,
    /// The controller that interrupts for a USB, SDIO or `VMBus` device: its driver, and its IRQs as far as sysfs lists
    /// them.
    pub controller: Option<(String, Vec<u32>)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeInterrupt {
    /// Number at the interrupt controller.
    pub hwirq: u32,
    /// Purpose (`interrupt-names`).
    pub name: Option<String>,
}

impl Device {
    pub(crate) fn by_controller(&self) -> &[u32] {
        self.controller.as_ref().map_or(&[], |(_, irqs)| irqs)
    }

    /// Whether an IRQ may belong to the interface; true if its IRQs are not listed.
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
    /// Returns the lower speed and width, for the two ends of a link.
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
