//! Network interfaces: the bus device behind each, its queues and their steering masks.
//!
//! Only interfaces with a device behind them are interfaces here; bonds, VLANs and bridges are kept as
//! what they stand on. Read from `/sys/class/net` (`Documentation/ABI/testing/sysfs-class-net`,
//! `sysfs-class-net-queues`).

use std::sync::Arc;

use crate::cpuset::{CpuSet, MaskWidth};
use crate::host::ethtool::{self, Channels};
use crate::host::netlink::Answer;
use crate::host::others::{self, Virtual};
use crate::host::polling::Polling;
use crate::host::root::{FileError, Root};
use crate::host::topology::read_list;
use crate::host::vectors::{UnknownVector, Vector};
use crate::host::{Queues, Wants};

const NET: &str = "/sys/class/net";

/// A network interface with a device behind it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interface {
    /// Its name now.
    pub name: String,
    /// The driver, as ethtool names it: `mlx4_en`, `virtio_net`.
    pub driver: Option<String>,
    /// The bus device that owns its vectors.
    pub device: Device,
    /// Which port of the device it is (`dev_port`), from 0.
    pub port: u32,
    /// `up`, `down`, `lowerlayerdown` and so on (`Documentation/networking/operstates.rst`); a driver that
    /// reports `unknown` counts as up while the interface is.
    pub state: String,
    /// Link speed in Mbit/s; `None` while the link is down or the driver does not tell.
    pub speed_mbps: Option<u32>,
    /// Receive queues in use (`real_num_rx_queues`), in order.
    pub rx_queues: Vec<RxQueue>,
    /// Transmit queues in use (`real_num_tx_queues`), in order.
    pub tx_queues: Vec<TxQueue>,
    /// How many channels the card has and could have, where ethtool tells.
    pub channels: Option<Channels>,
    /// Whether their number is known to be fixed: the driver takes no other.
    pub channels_fixed: bool,
    /// Who polls its queues.
    pub polling: Polling,
    /// What netlink told of its queues and their IRQs.
    pub netlink: Option<Answer>,
    /// Its `VMBus` channels; `None` for a device on another bus.
    pub vmbus: Option<Vec<VmbusChannel>>,
    /// The vectors that are understood: queue vectors by queue, then control vectors.
    pub vectors: Vec<Vector>,
    /// Requested vectors of the device whose names say nothing that nicpin knows.
    pub unknown_vectors: Vec<UnknownVector>,
    /// Requested vectors of the device without files in `/proc/irq`: they went away while they were read.
    pub vanished_vectors: Vec<UnknownVector>,
    /// Where netlink and the name of a vector say different things: both answers, in words. Netlink is believed.
    pub contradictions: Vec<String>,
    /// The interface under which the vectors of a shared device are listed, when it is not this one.
    pub shares_vectors_of: Option<String>,
    /// Those whose vectors are among this one's, since names do not tell which are whose.
    pub sharers: Vec<Sharer>,
}

/// An interface whose vectors are listed under another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharer {
    /// Its name.
    pub name: String,
    /// How many receive queues it has in use.
    pub rx: usize,
    /// How many transmit queues it has in use.
    pub tx: usize,
}

/// The device on a bus that an interface belongs to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Device {
    /// Its name on the bus: `0000:82:00.0` on PCI.
    pub address: String,
    /// PCI vendor and device in hex (`15b3:1017`); `None` off PCI.
    pub pci_id: Option<String>,
    /// Its node (`numa_node`); `None` for -1 and where there is no such file.
    pub node: Option<u32>,
    /// `local_cpulist`: the CPUs near it, or all of them when the kernel does not know.
    pub local_cpus: Option<CpuSet>,
    /// `max_link_speed` times `max_link_width` in MT/s; 0 when unknown. What the card could move, whatever
    /// cable is in it and whatever slot it sits in.
    pub pcie_mtps: u64,
    /// The physical function that it is a virtual function of (`physfn`).
    pub parent: Option<String>,
    /// IRQs allocated to it (`msi_irqs`, or its one `INTx` or MSI line), ascending.
    pub irqs: Vec<u32>,
}

/// A mask file: its text, the set it means and its width.
#[derive(Debug, Clone, PartialEq)]
pub struct MaskFile {
    /// What the file holds, without white space at the ends. Of a wide machine it is long, and the plan holds it, too.
    pub text: Arc<str>,
    /// The CPUs.
    pub cpus: CpuSet,
    /// How wide the kernel prints this file.
    pub width: MaskWidth,
}

/// A receive queue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RxQueue {
    /// N of `rx-N`.
    pub index: u32,
    /// `rps_cpus`; `None` on a kernel without RPS.
    pub rps_cpus: Option<MaskFile>,
    /// `rps_flow_cnt`; `None` on a kernel without RFS.
    pub rps_flow_cnt: Option<u32>,
}

/// A transmit queue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TxQueue {
    /// N of `tx-N`.
    pub index: u32,
    /// `xps_cpus`; `None` on a kernel without XPS and on an interface with one transmit queue.
    pub xps_cpus: Option<MaskFile>,
    /// Whether `xps_rxqs` names a receive queue; it then goes before `xps_cpus` for the flows of that queue.
    pub has_xps_rxqs: bool,
}

/// A `VMBus` channel, over which Hyper-V hands a card's packets to one CPU; it has no IRQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VmbusChannel {
    /// N of `channels/N`.
    pub id: u32,
    /// The CPU that serves it.
    pub cpu: u32,
}

/// An interface that stands on others: a bond, team, VLAN or bridge, or a Hyper-V card on its virtual function.
#[derive(Debug, Clone, PartialEq)]
pub struct Stacked {
    /// Its name.
    pub name: String,
    /// The interfaces right below it (`lower_*`).
    pub lowers: Vec<String>,
}

/// What `/sys/class/net` lists, each kind by name.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// Those with a device.
    pub(crate) interfaces: Vec<Interface>,
    /// Those that stand on others.
    pub(crate) stacked: Vec<Stacked>,
    /// Those without a device that stand on none.
    pub(crate) virtuals: Vec<Virtual>,
}

/// The interfaces of a machine.
pub(crate) fn read(root: &Root, wants: Wants) -> Result<Listed, FileError> {
    let mut listed = Listed::default();
    let mut names = root.list(NET)?.unwrap_or_default();
    // The kernel gives no interface such a name (`dev_valid_name`); in a tree it could become a line of a script.
    names.retain(|name| !name.contains(|c: char| c.is_whitespace() || c.is_control()));
    names.sort_by_key(|name| natural(name));
    for name in names {
        let path = format!("{NET}/{name}");
        // Files beside the interfaces (`bonding_masters`), and an interface that went away.
        let Some(entries) = root.list(&path)? else { continue };
        let lowers: Vec<String> =
            entries.iter().filter_map(|entry| entry.strip_prefix("lower_")).map(str::to_owned).collect();
        let device = root.canonical(&format!("{path}/device"));
        if let Some(device) = &device {
            listed.interfaces.extend(read_interface(root, &path, &name, device, wants)?);
        }
        if !lowers.is_empty() {
            listed.stacked.push(Stacked { name, lowers });
        } else if device.is_none() {
            listed.virtuals.push(Virtual { kind: others::kind(root, &path)?, name });
        }
    }
    Ok(listed)
}

/// One interface; `None` when it went away while it was read.
fn read_interface(
    root: &Root,
    path: &str,
    name: &str,
    link: &str,
    wants: Wants,
) -> Result<Option<Interface>, FileError> {
    let (rx_queues, tx_queues) = read_queues(root, path, wants.queues)?;
    let flags = root
        .read_opt(&format!("{path}/flags"))?
        .and_then(|flags| u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).ok());
    let state = match root.read_opt(&format!("{path}/operstate"))?.as_deref().map(str::trim) {
        Some("unknown") | None => {
            // IFF_UP is bit 0.
            let up = flags.is_some_and(|flags| flags & 1 == 1);
            if up { "up" } else { "down" }.to_owned()
        }
        Some(state) => state.to_owned(),
    };
    let speed = root.read_opt(&format!("{path}/speed"))?;
    let port = root.read_opt(&format!("{path}/dev_port"))?;
    let driver = read_driver(root, link)?;
    let (channels, channels_fixed) = read_channels(root, name, driver.as_deref())?;
    let interface = Interface {
        name: name.to_owned(),
        channels,
        channels_fixed,
        driver,
        device: read_device(root, link)?,
        port: port.and_then(|port| port.trim().parse().ok()).unwrap_or(0),
        state,
        // Drivers print -1 (also as an unsigned number) for "not known".
        speed_mbps: speed
            .and_then(|speed| speed.trim().parse().ok())
            .filter(|&mbps| mbps != 0 && mbps != u32::MAX),
        rx_queues,
        tx_queues,
        polling: if wants.polling { Polling::read(root, path)? } else { Polling::default() },
        netlink: None,
        vmbus: read_vmbus(root, link)?,
        vectors: Vec::new(),
        unknown_vectors: Vec::new(),
        vanished_vectors: Vec::new(),
        contradictions: Vec::new(),
        shares_vectors_of: None,
        sharers: Vec::new(),
    };
    Ok(root.exists(path).then_some(interface))
}

/// What ethtool says of an interface's channels, as far as it is true.
fn read_channels(
    root: &Root,
    name: &str,
    driver: Option<&str>,
) -> Result<(Option<Channels>, bool), FileError> {
    Ok(match (ethtool::channels(root, name)?, driver) {
        // It names a maximum and takes no other number (it has no `set_channels`).
        (ethtool::Answer::Channels(now), Some("vmxnet3")) => (Some(now.without_more()), true),
        (ethtool::Answer::Channels(now), _) => (Some(now), false),
        (ethtool::Answer::Nothing, _) => (None, true),
        (ethtool::Answer::NotAsked, _) => (None, false),
    })
}

fn read_driver(root: &Root, link: &str) -> Result<Option<String>, FileError> {
    if let Some(driver) = root.link_name(&format!("{link}/driver")) {
        return Ok(Some(netdev_driver(driver)));
    }
    // Dumps lose links. Only Xen's own driver takes such a device.
    let alias = root.read_opt(&format!("{link}/modalias"))?.unwrap_or_default();
    Ok((alias.trim_end() == "xen:vif").then(|| "vif".to_owned()))
}

/// The driver of the interface where the bus driver has another name.
fn netdev_driver(bus_driver: String) -> String {
    match bus_driver.as_str() {
        "mlx4_core" => "mlx4_en".to_owned(),
        _ => bus_driver,
    }
}

/// The last part of a path.
pub(crate) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Where the bus device behind an interface is. `link` is where its `device` leads: the PCI function itself, or
/// a child of it (virtio, an auxiliary device) that has neither `msi_irqs` nor `numa_node`.
pub(crate) fn device_path(root: &Root, link: &str) -> String {
    let mut above = if on_usb(root, link) { "" } else { link };
    while above.len() > "/sys/devices".len() {
        if is_pci_address(name_of(above)) || root.exists(&format!("{above}/msi_irqs")) {
            return above.to_owned();
        }
        above = above.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
    link.to_owned()
}

/// A USB adapter's PCI ancestor is the host controller, whose vectors are not the adapter's.
fn on_usb(root: &Root, link: &str) -> bool {
    root.link_name(&format!("{link}/subsystem")).as_deref() == Some("usb")
}

fn read_vmbus(root: &Root, link: &str) -> Result<Option<Vec<VmbusChannel>>, FileError> {
    if root.link_name(&format!("{link}/subsystem")).as_deref() != Some("vmbus") {
        return Ok(None);
    }
    let mut channels = Vec::new();
    for name in root.list(&format!("{link}/channels"))?.unwrap_or_default() {
        let cpu = read_number(root, &format!("{link}/channels/{name}/cpu"))?;
        channels.extend(name.parse().ok().zip(cpu).map(|(id, cpu)| VmbusChannel { id, cpu }));
    }
    channels.sort_by_key(|channel| channel.id);
    Ok(Some(channels))
}

fn read_device(root: &Root, link: &str) -> Result<Device, FileError> {
    let path = device_path(root, link);
    let node = root.read_opt(&format!("{path}/numa_node"))?;
    Ok(Device {
        address: name_of(&path).to_owned(),
        pci_id: read_pci_id(root, &path)?,
        // -1, NUMA_NO_NODE, is "unknown" and never node 0.
        node: node.and_then(|node| node.trim().parse().ok()),
        local_cpus: read_list(root, &format!("{path}/local_cpulist"))?,
        pcie_mtps: read_pcie(root, &path)?,
        parent: root.link_name(&format!("{path}/physfn")),
        irqs: if on_usb(root, link) { Vec::new() } else { read_irqs(root, &path)? },
    })
}

fn read_pci_id(root: &Root, path: &str) -> Result<Option<String>, FileError> {
    let id = |name: &str| -> Result<Option<String>, FileError> {
        let text = root.read_opt(&format!("{path}/{name}"))?;
        Ok(text.and_then(|text| text.trim().strip_prefix("0x").map(str::to_lowercase)))
    };
    let Some(vendor) = id("vendor")? else { return Ok(None) };
    Ok(id("device")?.map(|device| format!("{vendor}:{device}")))
}

fn read_pcie(root: &Root, path: &str) -> Result<u64, FileError> {
    let speed = root.read_opt(&format!("{path}/max_link_speed"))?.unwrap_or_default();
    let width = root.read_opt(&format!("{path}/max_link_width"))?.unwrap_or_default();
    // "8.0 GT/s PCIe", on older kernels "8 GT/s"; "Unknown". A width of 255 is the kernel's "unknown".
    let rate = speed.split_whitespace().next().unwrap_or_default();
    let (whole, tenth) = rate.split_once('.').unwrap_or((rate, "0"));
    let mtps = whole.parse().unwrap_or(0_u64) * 1000 + tenth.parse().unwrap_or(0_u64).min(9) * 100;
    let lanes = width.trim().parse().ok().filter(|&lanes| lanes != 255).unwrap_or(0_u64);
    Ok(mtps * lanes)
}

fn read_irqs(root: &Root, path: &str) -> Result<Vec<u32>, FileError> {
    let names = root.list(&format!("{path}/msi_irqs"))?.unwrap_or_default();
    let mut irqs: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    irqs.sort_unstable();
    if irqs.is_empty() {
        // Without MSI the one line that the device shares with others; 0 is none.
        let line = root.read_opt(&format!("{path}/irq"))?;
        irqs.extend(line.and_then(|line| line.trim().parse().ok()).filter(|&line: &u32| line != 0));
    }
    Ok(irqs)
}

/// Reads how the queues of an interface are steered, where only their numbers were read before.
pub(crate) fn read_queue_values(root: &Root, interface: &mut Interface) -> Result<(), FileError> {
    let path = format!("{NET}/{}", interface.name);
    (interface.rx_queues, interface.tx_queues) = read_queues(root, &path, Queues::Steering)?;
    Ok(())
}

fn read_queues(root: &Root, path: &str, wanted: Queues) -> Result<(Vec<RxQueue>, Vec<TxQueue>), FileError> {
    let (mut rx, mut tx) = (Vec::new(), Vec::new());
    for name in root.list(&format!("{path}/queues"))?.unwrap_or_default() {
        let queue = format!("{path}/queues/{name}");
        if let Some(index) = name.strip_prefix("rx-").and_then(|index| index.parse().ok()) {
            if wanted == Queues::Numbers {
                rx.push(RxQueue { index, ..RxQueue::default() });
                continue;
            }
            rx.push(RxQueue {
                index,
                rps_cpus: {
                    let path = format!("{queue}/rps_cpus");
                    let last = rx.last().and_then(|last: &RxQueue| last.rps_cpus.as_ref());
                    root.parse_opt(&path, |text| parse_mask_file(root, &path, text, last))?
                },
                rps_flow_cnt: read_number(root, &format!("{queue}/rps_flow_cnt"))?,
            });
        } else if let Some(index) = name.strip_prefix("tx-").and_then(|index| index.parse().ok()) {
            if wanted == Queues::Numbers {
                tx.push(TxQueue { index, ..TxQueue::default() });
                continue;
            }
            let names_one = |mask: &str| Ok(mask.bytes().any(|b| b != b'0' && b.is_ascii_hexdigit()));
            tx.push(TxQueue {
                index,
                xps_cpus: {
                    let last = tx.last().and_then(|last: &TxQueue| last.xps_cpus.as_ref());
                    read_xps(root, &format!("{queue}/xps_cpus"), last)?
                },
                has_xps_rxqs: root.parse_opt(&format!("{queue}/xps_rxqs"), names_one)?.unwrap_or_default(),
            });
        }
    }
    rx.sort_by_key(|queue| queue.index);
    tx.sort_by_key(|queue| queue.index);
    Ok((rx, tx))
}

/// `xps_cpus`, which the kernel refuses to read on a single queue: dumps then hold an empty file.
fn read_xps(root: &Root, path: &str, last: Option<&MaskFile>) -> Result<Option<MaskFile>, FileError> {
    let parse = |text: &str| {
        Ok(if text.trim().is_empty() { None } else { Some(parse_mask_file(root, path, text, last)?) })
    };
    Ok(root.parse_opt(path, parse)?.flatten())
}

/// A mask file; the one that was read before it holds the same in most cases, and is shared then: on a machine of 4,096
/// CPUs each text has a kilobyte.
pub(crate) fn parse_mask_file(
    root: &Root,
    path: &str,
    text: &str,
    last: Option<&MaskFile>,
) -> Result<MaskFile, FileError> {
    match last.filter(|last| *last.text == *text.trim_ascii_end()) {
        Some(last) => Ok(last.clone()),
        None => MaskFile::parse(text).map_err(|error| root.content_error(path, error.to_string())),
    }
}

/// A file that holds one number, or `None` where the machine has none.
pub(crate) fn read_number(root: &Root, path: &str) -> Result<Option<u32>, FileError> {
    root.parse_opt(path, |text| {
        let number = text.trim().parse();
        number.map_err(|_| root.content_error(path, format!("`{}` is not a number", text.trim())))
    })
}

impl MaskFile {
    /// Parses what a mask file holds.
    pub fn parse(text: &str) -> Result<Self, crate::cpuset::CpuSetError> {
        let cpus = CpuSet::parse_kernel_mask(text)?;
        let text: Arc<str> = text.trim_matches(|c: char| c.is_whitespace() || c == '\0').into();
        let width =
            MaskWidth::of_valid(&text).unwrap_or(MaskWidth::for_cpus(cpus.last().map_or(1, |last| last + 1)));
        Ok(Self { text, cpus, width })
    }
}

/// `0000:82:00.0`: domain of four or more hex digits, bus, device, function.
pub(crate) fn is_pci_address(name: &str) -> bool {
    let hex = |text: &str, least: usize, most: usize| {
        (least..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let mut parts = name.split(':');
    let (Some(domain), Some(bus), Some(slot), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let (device, function) = slot.split_once('.').unwrap_or((slot, ""));
    hex(domain, 4, 8) && hex(bus, 2, 2) && hex(device, 2, 2) && hex(function, 1, 1)
}

/// A key that sorts `eth2` before `eth10`.
pub(crate) fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(text);
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (number, after) = after.split_at(digits);
        parts.push((word.to_owned(), number.parse().unwrap_or(0)));
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in ["0000:82:00.0", "10000:e1:00.3", "0002:00:1f.7"] {
            assert!(is_pci_address(good), "{good}");
        }
        for bad in ["82:00.0", "virtio2", "0000:82:00", "pci0000:80", "0000:82:00.0:x", "000g:82:00.0"] {
            assert!(!is_pci_address(bad), "{bad}");
        }
    }

    #[test]
    fn names_sort_as_people_count() {
        let mut names = ["eth10", "eth2", "ens1f1np1", "ens1f0np0", "eth1"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["ens1f0np0", "ens1f1np1", "eth1", "eth2", "eth10"]);
    }
}
