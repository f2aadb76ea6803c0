//! What else is on a node beside interfaces: devices whose traffic shares the node's memory and its links.

use serde::Serialize;

/// A device beside the interfaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Neighbour {
    pub kind: NeighbourKind,
    /// The PCI address; the name of an RDMA device.
    pub name: String,
    /// The bound driver.
    pub driver: Option<String>,
    /// Its node (`numa_node`); `None` for -1.
    pub node: Option<u32>,
}

/// The kinds of neighbours, in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NeighbourKind {
    /// PCI class 03, without the displays of management controllers.
    Gpu,
    /// PCI classes 12 (processing accelerators) and 0b40 (co-processors).
    Accelerator,
    /// PCI class 0108.
    Nvme,
    /// `/sys/class/infiniband`.
    Rdma,
}

impl NeighbourKind {
    /// The kind of a PCI function by its `class` (`0x030200`) and `vendor` (`0x10de`), as sysfs has them.
    pub fn of(class: &str, vendor: &str) -> Option<Self> {
        // ASPEED and Matrox make the displays of management controllers.
        const CONTROLLERS: [&str; 2] = ["0x1a03", "0x102b"];
        let class = class.trim().strip_prefix("0x")?;
        [
            ("03", Self::Gpu),
            ("12", Self::Accelerator),
            ("0b40", Self::Accelerator),
            ("0108", Self::Nvme),
        ]
        .into_iter()
        .find(|(prefix, _)| class.len() == 6 && class.starts_with(prefix))
        .map(|(_, kind)| kind)
        .filter(|kind| *kind != Self::Gpu || !CONTROLLERS.contains(&vendor.trim()))
    }

    /// In the singular.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Gpu => "GPU",
            Self::Accelerator => "accelerator",
            Self::Nvme => "NVMe disk",
            Self::Rdma => "RDMA device",
        }
    }
}
