//! What a selector can name beside interfaces with a device: virtual interfaces, RDMA devices, and network cards
//! without an interface; and what else is on a node: GPUs, accelerators and disks on PCI. nicpin plans none of them; they
//! are read so that messages can explain them, and for `nicpin nodes`.

use crate::machine::Interface;
use crate::machine::interface::is_pci_address;
use crate::machine::others::{Neighbour, NeighbourKind, Rdma, UnusedFunction};
use crate::read::files::{Result, line_of, name_in, name_of, read_names, read_node, read_text};
use crate::root::Root;

pub(crate) const PCI: &str = "/sys/bus/pci/devices";
pub(crate) const RDMA: &str = "/sys/class/infiniband";
/// More PCI functions than any machine has.
const MAX_FUNCTIONS: usize = 65_536;
/// The only line of `uevent` that is read.
const DEVTYPE: &str = "DEVTYPE=";

/// Where the bus device behind a network interface or RDMA device is; `None` without a device. Its `device` leads to
/// the PCI function itself, or to a child of it (virtio, an auxiliary device) that has neither `msi_irqs` nor `numa_node`.
pub(crate) fn bus_device(root: &Root, path: &str) -> Result<Option<String>> {
    let link = root.canonical(&format!("{path}/device"))?;
    link.map(|link| bus_device_above(root, link)).transpose()
}

/// The same, for where `device` leads.
pub(crate) fn bus_device_above(root: &Root, link: String) -> Result<String> {
    let mut above = link.as_str();
    while above.len() > "/sys/devices".len() {
        if is_pci_address(name_of(above)) || root.is_there(&format!("{above}/msi_irqs"))? {
            return Ok(above.to_owned());
        }
        above = above.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
    Ok(link)
}

/// The machine's RDMA devices.
pub(crate) fn rdma(root: &Root) -> Result<Vec<Rdma>> {
    let mut rdma = Vec::new();
    for name in read_names(root, RDMA)? {
        let device =
            bus_device(root, &format!("{RDMA}/{name}"))?.map(|path| name_of(&path).to_owned());
        rdma.push(Rdma { name, device });
    }
    Ok(rdma)
}

/// What a device is by its PCI class, in hex; empty off PCI. `0x02` begins the classes of network controllers, InfiniBand
/// (`0x0207`) among them.
pub fn class(root: &Root, device: &str) -> Result<String> {
    read_text(root, &format!("{device}/class"))
}

/// PCI functions of the network class without an interface here.
pub(crate) fn cards(root: &Root, interfaces: &[Interface]) -> Result<Vec<UnusedFunction>> {
    let mut cards = Vec::new();
    for address in read_names(root, PCI)? {
        let path = format!("{PCI}/{address}");
        let is_used = interfaces.iter().any(|of| of.device.address == address);
        if !is_used && class(root, &path)?.starts_with("0x02") {
            let driver = root.link_name(&format!("{path}/driver"))?;
            cards.push(UnusedFunction { address, driver });
        }
    }
    Ok(cards)
}

/// The neighbours, by kind and name. Virtual functions do not count: they are their physical function's.
pub(crate) fn neighbours(root: &Root) -> Result<Vec<Neighbour>> {
    let mut found = Vec::new();
    for name in read_names(root, PCI)?.into_iter().take(MAX_FUNCTIONS) {
        let path = format!("{PCI}/{name}");
        let class = class(root, &path)?;
        // The vendor decides only on displays.
        let vendor = if class.starts_with("0x03") {
            read_text(root, &format!("{path}/vendor"))?
        } else {
            String::new()
        };
        found.extend(NeighbourKind::of(&class, &vendor).map(|kind| (kind, name, path)));
    }
    for name in read_names(root, RDMA)? {
        // A software device has none.
        let path = bus_device(root, &format!("{RDMA}/{name}"))?;
        found.extend(path.map(|path| (NeighbourKind::Rdma, name, path)));
    }
    let mut neighbours = Vec::new();
    for (kind, name, path) in found {
        if root.link_name(&format!("{path}/physfn"))?.is_none() {
            neighbours.push(Neighbour {
                kind,
                name,
                node: read_node(root, &format!("{path}/numa_node"))?,
                driver: root.link_name(&format!("{path}/driver"))?,
            });
        }
    }
    neighbours.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    Ok(neighbours)
}

/// What an interface without a device is, by its files.
pub(crate) fn kind(root: &Root, path: &str, devtype: Option<&str>) -> Result<String> {
    let read = |file: &str| read_text(root, &format!("{path}/{file}"));
    // ARPHRD_LOOPBACK.
    if read("type")?.trim() == "772" {
        return Ok("the loopback interface".to_owned());
    }
    for (file, kind) in [
        ("tun_flags", "a TUN/TAP interface"),
        ("bridge", "a bridge without ports"),
        ("bonding", "a bond without members"),
    ] {
        if root.is_there(&format!("{path}/{file}"))? {
            return Ok(kind.to_owned());
        }
    }
    if let Some(kind) = devtype {
        return Ok(format!("a virtual interface ({kind})"));
    }
    let is_own = read("ifindex")? == read("iflink")?;
    let kinds = [
        "a veth or a tunnel",
        "a virtual interface (dummy or the like)",
    ];
    Ok(kinds[usize::from(is_own)].to_owned())
}

/// The kernel's word for the kind of an interface; absent for some.
pub(crate) fn devtype(root: &Root, path: &str) -> Result<Option<String>> {
    let uevent = read_text(root, &format!("{path}/uevent"))?;
    Ok(line_of(&uevent, DEVTYPE).map(|kind| name_in(kind).to_owned()))
}

/// The line of a `uevent` file that is read, which is what a capture keeps of it. `None` for any other file.
pub fn bare(path: &str, text: &str) -> Option<String> {
    let kept = text
        .split_inclusive('\n')
        .filter(|line| line.starts_with(DEVTYPE));
    path.ends_with("/uevent").then(|| kept.collect())
}
