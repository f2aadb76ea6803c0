//! What a selector can name beside interfaces with a device: virtual interfaces, RDMA devices, and network cards
//! without an interface; and what else is on a node: GPUs, accelerators and disks on PCI. nicpin plans none of them; they
//! are read so that messages can explain them, and for `nicpin nodes`.

use crate::machine::Interface;
use crate::machine::interface::is_pci_address;
use crate::machine::others::{Neighbour, NeighbourKind};
use crate::machine::others::{Rdma, UnusedFunction};
use crate::read::files::{name_in, name_of, read_node};
use crate::root::{FileError, Root};

pub(crate) const PCI: &str = "/sys/bus/pci/devices";
pub(crate) const RDMA: &str = "/sys/class/infiniband";
/// More PCI functions than any machine has.
const MAX_FUNCTIONS: usize = 65_536;
/// The only line of `uevent` that is read.
const DEVTYPE: &str = "DEVTYPE=";

/// Where the bus device behind an interface is. `link` is where its `device` leads: the PCI function itself, or
/// a child of it (virtio, an auxiliary device) that has neither `msi_irqs` nor `numa_node`.
pub(crate) fn device_path(root: &Root, link: &str) -> Result<String, FileError> {
    let mut above = link;
    while above.len() > "/sys/devices".len() {
        if is_pci_address(name_of(above)) || root.is_there(&format!("{above}/msi_irqs"))? {
            return Ok(above.to_owned());
        }
        above = above.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
    Ok(link.to_owned())
}

/// The machine's RDMA devices.
pub(crate) fn rdma(root: &Root) -> Result<Vec<Rdma>, FileError> {
    let mut rdma = Vec::new();
    for name in root.list(RDMA)?.unwrap_or_default() {
        let link = root.canonical(&format!("{RDMA}/{name}/device"))?;
        let path = link.map(|link| device_path(root, &link)).transpose()?;
        let device = path.map(|path| name_of(&path).to_owned());
        rdma.push(Rdma { name, device });
    }
    Ok(rdma)
}

/// What a device is by its PCI class, in hex; empty off PCI. `0x02` begins the classes of network controllers, InfiniBand
/// (`0x0207`) among them.
pub fn class(root: &Root, device: &str) -> Result<String, FileError> {
    let class = root.read_opt(&format!("{device}/class"))?;
    Ok(class.unwrap_or_default())
}

/// PCI functions of the network class without an interface here.
pub(crate) fn cards(
    root: &Root,
    interfaces: &[Interface],
) -> Result<Vec<UnusedFunction>, FileError> {
    let mut cards = Vec::new();
    for address in root.list(PCI)?.unwrap_or_default() {
        if interfaces
            .iter()
            .any(|interface| interface.device.address == address)
        {
            continue;
        }
        if class(root, &format!("{PCI}/{address}"))?.starts_with("0x02") {
            let driver = root.link_name(&format!("{PCI}/{address}/driver"))?;
            cards.push(UnusedFunction { address, driver });
        }
    }
    Ok(cards)
}

/// The neighbours, by kind and name. Virtual functions do not count: they are their physical function's.
pub(crate) fn neighbours(root: &Root) -> Result<Vec<Neighbour>, FileError> {
    let mut found = Vec::new();
    for name in root
        .list(PCI)?
        .unwrap_or_default()
        .into_iter()
        .take(MAX_FUNCTIONS)
    {
        let path = format!("{PCI}/{name}");
        let read = |file: &str| {
            Ok(root
                .read_opt(&format!("{path}/{file}"))?
                .unwrap_or_default())
        };
        let class = class(root, &path)?;
        // The vendor decides only on displays.
        let vendor = if class.starts_with("0x03") {
            read("vendor")?
        } else {
            String::new()
        };
        if let Some(kind) = NeighbourKind::of(&class, &vendor) {
            found.extend(neighbour(root, kind, name, &path)?);
        }
    }
    for name in root.list(RDMA)?.unwrap_or_default() {
        // A software device has none.
        let Some(link) = root.canonical(&format!("{RDMA}/{name}/device"))? else {
            continue;
        };
        found.extend(neighbour(
            root,
            NeighbourKind::Rdma,
            name,
            &device_path(root, &link)?,
        )?);
    }
    found.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    Ok(found)
}

/// A device at a path; `None` for a virtual function.
fn neighbour(
    root: &Root,
    kind: NeighbourKind,
    name: String,
    path: &str,
) -> Result<Option<Neighbour>, FileError> {
    if root.link_name(&format!("{path}/physfn"))?.is_some() {
        return Ok(None);
    }
    let node = read_node(root, &format!("{path}/numa_node"))?;
    Ok(Some(Neighbour {
        kind,
        name,
        driver: root.link_name(&format!("{path}/driver"))?,
        node,
    }))
}

/// What an interface without a device is, by its files.
pub(crate) fn kind(root: &Root, path: &str) -> Result<String, FileError> {
    let read = |file: &str| {
        Ok(root
            .read_opt(&format!("{path}/{file}"))?
            .unwrap_or_default())
    };
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
    if let Some(kind) = devtype(root, path)? {
        return Ok(format!("a virtual interface ({kind})"));
    }
    let (own, other) = (read("ifindex")?, read("iflink")?);
    let kind = if own == other {
        "a virtual interface (dummy or the like)"
    } else {
        "a veth or a tunnel"
    };
    Ok(kind.to_owned())
}

/// The kernel's word for the kind of an interface; absent for some.
pub(crate) fn devtype(root: &Root, path: &str) -> Result<Option<String>, FileError> {
    let uevent = root
        .read_opt(&format!("{path}/uevent"))?
        .unwrap_or_default();
    let mut lines = uevent.lines();
    Ok(lines.find_map(|line| Some(name_in(line.strip_prefix(DEVTYPE)?).to_owned())))
}

/// The line of a `uevent` file that is read, which is what a capture keeps of it. `None` for any other file.
pub fn bare(path: &str, text: &str) -> Option<String> {
    let lines = text
        .split_inclusive('\n')
        .filter(|line| line.starts_with(DEVTYPE));
    path.ends_with("/uevent").then(|| lines.collect())
}
