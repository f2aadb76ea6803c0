//! What a command line can name beside interfaces with a device: virtual interfaces, RDMA devices, and network cards
//! without an interface. nicpin plans none of them; it knows them to say what they are.

use serde::{Deserialize, Serialize};

/// Everything of that kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Others {
    /// Interfaces without a device that stand on no other.
    pub virtuals: Vec<Virtual>,
    /// RDMA devices.
    pub rdma: Vec<Rdma>,
    /// PCI functions of the class of network cards without an interface.
    pub cards: Vec<UnusedFunction>,
}

/// A virtual interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Virtual {
    /// Its name.
    pub name: String,
    /// What it is, as in "it is ...".
    pub kind: String,
}

/// An RDMA device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rdma {
    /// Its name: `mlx5_0`.
    pub name: String,
    /// The bus device it belongs to; `None` for one that is all software.
    pub device: Option<String>,
}

/// A network card without an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusedFunction {
    /// Its PCI address.
    pub address: String,
    /// The driver that has it.
    pub driver: Option<String>,
}

impl Others {
    /// What something of this name is, and why there is nothing to plan for it; `None` for an unknown name.
    pub fn explain(&self, name: &str) -> Option<String> {
        if let Some(found) = self.virtuals.iter().find(|one| one.name == name) {
            let kind = &found.kind;
            return Some(format!(
                "is {kind}: it has no device behind it and no vectors, so there is nothing to plan"
            ));
        }
        let rdma = self.rdma.iter().find(|rdma| rdma.name == name)?;
        Some(match &rdma.device {
            Some(device) => format!(
                "is an RDMA device on {device}, which has no network interface; there is nothing to plan"
            ),
            None => {
                "is an RDMA device in software: it has no vectors, so there is nothing to plan".to_owned()
            }
        })
    }

    /// The same for a PCI function.
    pub fn explain_pci(&self, address: &str) -> Option<String> {
        let card = self.cards.iter().find(|card| card.address.eq_ignore_ascii_case(address))?;
        Some(match card.driver.as_deref() {
            // https://docs.kernel.org/driver-api/vfio.html
            Some(driver) if driver.contains("vfio") => format!(
                "is a network card that is given to {driver}: it has no interface, and its vectors are in the \
                 hands of a guest or a program"
            ),
            Some(driver) => format!(
                "is a network card without an interface here: {driver} has it, and has made none or has it in \
                 another network namespace"
            ),
            None => "is a network card without an interface: no driver has it".to_owned(),
        })
    }
}
