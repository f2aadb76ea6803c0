//! What a selector can name beside interfaces with a device: virtual interfaces, RDMA devices, and network cards
//! without an interface. nicpin plans none of them; they are here so that messages can explain them.

use serde::{Deserialize, Serialize};

/// All that a selector can name beside interfaces with a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Others {
    /// Interfaces without a device that stand on no other.
    pub virtuals: Vec<Virtual>,
    /// RDMA devices.
    pub rdma: Vec<Rdma>,
    /// PCI functions of the network class without an interface here and without IRQs.
    pub cards: Vec<UnusedFunction>,
}

/// A virtual interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Virtual {
    pub name: String,
    /// What it is, to follow "it is": `a bridge without ports`.
    pub kind: String,
}

/// An RDMA device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rdma {
    /// `mlx5_0`.
    pub name: String,
    /// The bus device it belongs to; `None` for a software device.
    pub device: Option<String>,
}

/// A network card without an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusedFunction {
    /// The PCI address.
    pub address: String,
    /// The bound driver.
    pub driver: Option<String>,
}

impl UnusedFunction {
    /// Whether a driver of the kernel's network stack is bound to it, so that it has an interface in another network
    /// namespace, unless that failed. Programs and guests have drivers of their own.
    pub(crate) fn may_be_elsewhere(&self) -> bool {
        let is_foreign = |driver: &String| {
            driver.contains("vfio")
                || driver.contains("uio")
                || driver.contains("pci-stub")
                || driver == "pciback"
        };
        self.driver
            .as_ref()
            .is_some_and(|driver| !is_foreign(driver))
    }
}

impl Others {
    /// What has this name, and why there is nothing to plan for it; `None` for an unknown name.
    #[doc(hidden)]
    pub fn explain(&self, name: &str) -> Option<String> {
        if let Some(other) = self.virtuals.iter().find(|one| one.name == name) {
            let kind = &other.kind;
            return Some(format!(
                "is {kind}: it has no device and no vectors, so there is nothing to plan"
            ));
        }
        let rdma = self.rdma.iter().find(|rdma| rdma.name == name)?;
        Some(match &rdma.device {
            Some(device) => format!(
                "is an RDMA device on {device}, which has no network interface, so there is nothing to plan"
            ),
            None => "is a software RDMA device: it has no vectors, so there is nothing to plan"
                .to_owned(),
        })
    }

    /// As [`Others::explain`], for a PCI address.
    #[doc(hidden)]
    pub fn explain_pci(&self, address: &str) -> Option<String> {
        let card = self
            .cards
            .iter()
            .find(|card| card.address.eq_ignore_ascii_case(address))?;
        Some(match card.driver.as_deref() {
            // https://docs.kernel.org/driver-api/vfio.html
            Some(driver) if driver.contains("vfio") => format!(
                "is a network card bound to {driver}: it has no interface, and a guest or a user program controls \
                 its vectors"
            ),
            Some(driver) => format!(
                "is a network card without an interface here: {driver} is bound to it, but has no interface or has \
                 it in another network namespace"
            ),
            None => "is a network card without an interface: no driver is bound to it".to_owned(),
        })
    }
}
