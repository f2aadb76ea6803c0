//! Devices that nicpin names in messages and lists but does not plan: virtual interfaces, RDMA devices, network cards
//! without an interface, GPUs, accelerators, disks.

use crate::machine::Interface;
use crate::machine::files::NET;
use crate::machine::interface::is_pci_address;
use crate::machine::others::{Neighbour, NeighbourKind, Rdma, UnusedFunction};
use crate::read::files::{Dir, line_of, name_in};
use crate::root::{Result, Root};

pub(crate) const PCI: &str = "/sys/bus/pci/devices";
pub(crate) const RDMA: &str = "/sys/class/infiniband";
/// More than any machine's PCI functions.
const MAX_FUNCTIONS: usize = 65_536;
/// The only line of `uevent` that is read.
const DEVTYPE: &str = "DEVTYPE=";

/// The bus device behind a network interface or RDMA device, whose `device` leads to the PCI function, or to a child of
/// it (virtio, an auxiliary device) that has neither `msi_irqs` nor `numa_node`.
pub(crate) fn bus_device<'a>(device: &Dir<'a>) -> Result<Option<Dir<'a>>> {
    device
        .canonical("device")?
        .map(bus_device_above)
        .transpose()
}

pub(crate) fn bus_device_above(link: Dir<'_>) -> Result<Dir<'_>> {
    for above in link.and_above() {
        if is_pci_address(above.name()) || above.is_there("msi_irqs")? {
            return Ok(above);
        }
    }
    Ok(link)
}

pub(crate) fn rdma(root: &Root) -> Result<Vec<Rdma>> {
    let mut rdma = Vec::new();
    for name in root.read_names(RDMA)? {
        let device = bus_device(&root.dir(format!("{RDMA}/{name}")))?;
        rdma.push(Rdma {
            name,
            device: device.map(|device| device.name().to_owned()),
        });
    }
    Ok(rdma)
}

/// The PCI class in hex, empty off PCI; `0x02` begins those of network controllers, among them InfiniBand's `0x0207`.
pub fn class(root: &Root, device: &str) -> Result<String> {
    root.dir(device).read_text("class")
}

pub(crate) fn cards(root: &Root, interfaces: &[Interface]) -> Result<Vec<UnusedFunction>> {
    let mut cards = Vec::new();
    for address in root.read_names(PCI)? {
        let card = root.dir(format!("{PCI}/{address}"));
        let is_used = interfaces
            .iter()
            .any(|interface| interface.device.address == address);
        if !is_used && class(root, &card.path)?.starts_with("0x02") && !has_interface(&card)? {
            cards.push(UnusedFunction {
                address,
                driver: card.link_name("driver")?,
            });
        }
    }
    Ok(cards)
}

/// Whether the function has an interface in this namespace, which is then one that is not planned: a CAN bus, or the
/// port that leads to a switch.
fn has_interface(card: &Dir) -> Result<bool> {
    let is_here = |name: &String| card.root.exists(&format!("{NET}/{name}"));
    Ok(card.dir("net").names()?.iter().any(is_here))
}

/// Without virtual functions.
pub(crate) fn neighbours(root: &Root) -> Result<Vec<Neighbour>> {
    let mut found = Vec::new();
    for name in root.read_names(PCI)?.into_iter().take(MAX_FUNCTIONS) {
        let device = root.dir(format!("{PCI}/{name}"));
        let class = device.read_text("class")?;
        // The vendor matters only for displays.
        let vendor = if class.starts_with("0x03") {
            device.read_text("vendor")?
        } else {
            String::new()
        };
        found.extend(NeighbourKind::from_class(&class, &vendor).map(|kind| (kind, name, device)));
    }
    for name in root.read_names(RDMA)? {
        let device = bus_device(&root.dir(format!("{RDMA}/{name}")))?;
        found.extend(device.map(|device| (NeighbourKind::Rdma, name, device)));
    }
    let mut neighbours = Vec::new();
    for (kind, name, device) in found {
        if device.link_name("physfn")?.is_none() {
            neighbours.push(Neighbour {
                kind,
                name,
                node: device.read_node()?,
                driver: device.link_name("driver")?,
            });
        }
    }
    neighbours.sort_unstable_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    Ok(neighbours)
}

/// The bus of an interface that carries no IP packets, by its type (`include/uapi/linux/if_arp.h`): its frames have no
/// flows that could be steered.
pub(crate) fn other_bus(net: &Dir) -> Result<Option<&'static str>> {
    Ok(match net.read_text("type")?.trim() {
        "280" => Some("a CAN bus"),
        "290" => Some("an MCTP bus"),
        "804" | "805" => Some("an IEEE 802.15.4 radio"),
        "820" | "821" => Some("a Phonet interface"),
        "822" => Some("a CAIF interface"),
        _ => None,
    })
}

pub(crate) fn kind(net: &Dir, devtype: Option<&str>) -> Result<String> {
    // `ARPHRD_LOOPBACK`.
    if net.read_text("type")?.trim() == "772" {
        return Ok("the loopback interface".to_owned());
    }
    for (file, kind) in [
        ("tun_flags", "a TUN/TAP interface"),
        ("bridge", "a bridge without ports"),
        ("bonding", "a bond without members"),
    ] {
        if net.is_there(file)? {
            return Ok(kind.to_owned());
        }
    }
    if let Some(kind) = devtype {
        return Ok(format!("a virtual interface ({kind})"));
    }
    let kind = if net.read_text("ifindex")? == net.read_text("iflink")? {
        "a virtual interface (dummy or the like)"
    } else {
        "a veth or a tunnel"
    };
    Ok(kind.to_owned())
}

pub(crate) fn devtype(net: &Dir) -> Result<Option<String>> {
    Ok(line_of(&net.read_text("uevent")?, DEVTYPE).map(|kind| name_in(kind).to_owned()))
}

/// For a capture: the `DEVTYPE` of a `uevent` file; `None` for any other file.
pub fn for_capture(path: &str, text: &str) -> Option<String> {
    path.ends_with("/uevent").then(|| {
        text.split_inclusive('\n')
            .filter(|line| line.starts_with(DEVTYPE))
            .collect()
    })
}
