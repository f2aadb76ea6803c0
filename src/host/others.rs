//! What a command line can name beside interfaces with a device: virtual interfaces, RDMA devices, and network
//! cards without an interface. nicpin plans none of them; it knows them to say what they are.

use wildmatch::WildMatch;

use crate::host::interfaces::{Interface, device_path, name_of};
use crate::host::root::{FileError, Root};

const PCI: &str = "/sys/bus/pci/devices";
const RDMA: &str = "/sys/class/infiniband";

/// Everything of that kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Others {
    /// Interfaces without a device that stand on no other.
    pub virtuals: Vec<Virtual>,
    /// RDMA devices.
    pub rdma: Vec<Rdma>,
    /// PCI functions of the class of network cards without an interface.
    pub cards: Vec<Card>,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Its PCI address.
    pub address: String,
    /// The driver that has it.
    pub driver: Option<String>,
}

impl Others {
    pub(crate) fn read(
        root: &Root,
        virtuals: Vec<Virtual>,
        interfaces: &[Interface],
    ) -> Result<Self, FileError> {
        let mut rdma = Vec::new();
        for name in root.list(RDMA)?.unwrap_or_default() {
            let link = root.canonical(&format!("{RDMA}/{name}/device"));
            let device = link.map(|link| name_of(&device_path(root, &link)).to_owned());
            rdma.push(Rdma { name, device });
        }
        let mut cards = Vec::new();
        for address in root.list(PCI)?.unwrap_or_default() {
            if interfaces.iter().any(|interface| interface.device.address == address) {
                continue;
            }
            // Class 2 is network controllers, InfiniBand among them.
            let class = root.read_opt(&format!("{PCI}/{address}/class"))?.unwrap_or_default();
            if class.starts_with("0x02") {
                let driver = root.link_name(&format!("{PCI}/{address}/driver"));
                cards.push(Card { address, driver });
            }
        }
        Ok(Self { virtuals, rdma, cards })
    }

    /// RDMA devices by name or glob.
    pub fn rdma_like(&self, wanted: &str) -> impl Iterator<Item = &Rdma> {
        let wanted = WildMatch::new(wanted);
        self.rdma.iter().filter(move |rdma| wanted.matches(&rdma.name))
    }

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

/// What an interface without a device is, as far as its files tell.
pub(crate) fn kind(root: &Root, path: &str) -> Result<String, FileError> {
    let read = |file: &str| Ok(root.read_opt(&format!("{path}/{file}"))?.unwrap_or_default());
    // ARPHRD_LOOPBACK.
    if read("type")?.trim() == "772" {
        return Ok("the loopback interface".to_owned());
    }
    for (file, kind) in [
        ("tun_flags", "a TUN/TAP interface"),
        ("bridge", "a bridge without ports"),
        ("bonding", "a bond without members"),
    ] {
        if root.exists(&format!("{path}/{file}")) {
            return Ok(kind.to_owned());
        }
    }
    let uevent = read("uevent")?;
    if let Some(kind) = uevent.lines().find_map(|line| line.strip_prefix("DEVTYPE=")) {
        return Ok(format!("a virtual interface ({kind})"));
    }
    let (own, other) = (read("ifindex")?, read("iflink")?);
    let kind = if own == other { "a virtual interface (dummy or the like)" } else { "a veth or a tunnel" };
    Ok(kind.to_owned())
}
