//! What a selector can name beside interfaces with a device: virtual interfaces, RDMA devices, and network cards
//! without an interface. nicpin plans none of them; they are read so that messages can explain them.

use crate::machine::Interface;
use crate::machine::others::{Rdma, UnusedFunction};
use crate::read::device::device_path;
use crate::read::files::{name_in, name_of};
use crate::root::{FileError, Root};

pub(crate) const PCI: &str = "/sys/bus/pci/devices";
pub(crate) const RDMA: &str = "/sys/class/infiniband";
/// The only line of `uevent` that is read.
const DEVTYPE: &str = "DEVTYPE=";

/// The machine's RDMA devices.
pub(crate) fn rdma(root: &Root) -> Result<Vec<Rdma>, FileError> {
    let mut rdma = Vec::new();
    for name in root.list(RDMA)?.unwrap_or_default() {
        let link = root.canonical(&format!("{RDMA}/{name}/device"));
        let device = link.map(|link| name_of(&device_path(root, &link)).to_owned());
        rdma.push(Rdma { name, device });
    }
    Ok(rdma)
}

/// PCI functions of the network class without an interface.
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
        // Class 2 is network controllers, InfiniBand among them.
        let class = root
            .read_opt(&format!("{PCI}/{address}/class"))?
            .unwrap_or_default();
        if class.starts_with("0x02") {
            let driver = root.link_name(&format!("{PCI}/{address}/driver"));
            cards.push(UnusedFunction { address, driver });
        }
    }
    Ok(cards)
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
        if root.exists(&format!("{path}/{file}")) {
            return Ok(kind.to_owned());
        }
    }
    let uevent = read("uevent")?;
    if let Some(kind) = uevent.lines().find_map(|line| line.strip_prefix(DEVTYPE)) {
        return Ok(format!("a virtual interface ({})", name_in(kind)));
    }
    let (own, other) = (read("ifindex")?, read("iflink")?);
    let kind = if own == other {
        "a virtual interface (dummy or the like)"
    } else {
        "a veth or a tunnel"
    };
    Ok(kind.to_owned())
}

/// The line of a `uevent` file that is read, which is what a capture keeps of it. `None` for any other file.
pub fn bare(path: &str, text: &str) -> Option<String> {
    let lines = text
        .split_inclusive('\n')
        .filter(|line| line.starts_with(DEVTYPE));
    path.ends_with("/uevent").then(|| lines.collect())
}
