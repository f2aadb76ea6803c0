//! Network interfaces: the bus device behind each, its queues and their steering masks.
//!
//! Only interfaces with a device behind them are interfaces here; bonds, VLANs and bridges are kept as
//! what they stand on. Read from `/sys/class/net` (`Documentation/ABI/testing/sysfs-class-net`,
//! `sysfs-class-net-queues`).

use nix::errno::Errno;

use crate::cpuset::{MAX_CPUS, shown};
use crate::machine::channels::MAX_QUEUES;
use crate::machine::interface::{is_pci_address, natural};
use crate::machine::others::Virtual;
use crate::machine::{
    Channels, Device, Interface, MaskFile, PcieLink, Rss, RxQueue, Stacked, TxQueue, VmbusChannel,
};
use crate::read::files::{
    name_in, name_of, numbered, parse_mask_file, read_list, read_node, read_number,
};
use crate::read::others::{PCI, device_path};
use crate::read::wants::{Queues, Wants};
use crate::read::{ethtool, others, polling};
use crate::root::{FileError, Root};

const NET: &str = "/sys/class/net";
/// The limit of interfaces with a device: sixteen times the 256 functions of a PCI bus.
const MAX_INTERFACES: usize = 4096;

/// What `/sys/class/net` lists, each kind by name.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// Those with a device.
    pub(crate) interfaces: Vec<Interface>,
    /// Interfaces above others.
    pub(crate) stacked: Vec<Stacked>,
    /// Interfaces without a device and not above others.
    pub(crate) virtuals: Vec<Virtual>,
}

/// The interfaces of a machine.
pub(crate) fn read(root: &Root, wants: Wants) -> Result<Listed, FileError> {
    let mut listed = Listed::default();
    let mut names = root.list(NET)?.unwrap_or_default();
    // The kernel allows no such name (`dev_valid_name`); from a tree it could end up in a script.
    names.retain(|name| !name.contains(|c: char| c.is_whitespace() || c.is_control()));
    names.sort_by_key(|name| natural(name));
    for name in names {
        let path = format!("{NET}/{name}");
        // A file beside the interfaces.
        if name == "bonding_masters" {
            continue;
        }
        let Some(entries) = root.list(&path)? else {
            // Else it has been removed meanwhile.
            if name.contains(char::REPLACEMENT_CHARACTER) {
                listed.interfaces.push(Interface {
                    name,
                    unreadable_name: true,
                    in_other_namespace: true, // for nobody can be asked about it
                    link: "up".to_owned(),
                    ..Interface::default()
                });
            }
            continue;
        };
        let lowers: Vec<String> = entries
            .iter()
            .filter_map(|entry| entry.strip_prefix("lower_"))
            .map(str::to_owned)
            .collect();
        let device = root.canonical(&format!("{path}/device"))?;
        if listed.interfaces.len() >= MAX_INTERFACES {
            let reason = format!(
                "lists more than {MAX_INTERFACES} interfaces with a device, which no machine has"
            );
            return Err(root.content_error(NET, reason));
        }
        if let Some(device) = &device {
            listed
                .interfaces
                .extend(read_interface(root, &path, &name, device, wants)?);
        }
        if !lowers.is_empty() {
            let kind = others::devtype(root, &path)?;
            listed.stacked.push(Stacked { name, lowers, kind });
        } else if device.is_none() {
            listed.virtuals.push(Virtual {
                kind: others::kind(root, &path)?,
                name,
            });
        }
    }
    Ok(listed)
}

/// One interface; `None` if it was removed while it was read. ESTALE if its queues are pinned and no longer those of its
/// device.
fn read_interface(
    root: &Root,
    path: &str,
    name: &str,
    link: &str,
    wants: Wants,
) -> Result<Option<Interface>, FileError> {
    let (rx_queues, tx_queues) = read_queues(root, path, wants.queues)?;
    // Drivers report -1 (also as an unsigned number) for an unknown speed, or an error, of which a copied tree has an empty
    // file.
    let file = format!("{path}/speed");
    let speed: Option<i64> = match root.read_opt(&file)? {
        Some(text) if text.trim().is_empty() => None,
        _ => read_number(root, &file)?,
    };
    let port: Option<u16> = read_number(root, &format!("{path}/dev_port"))?;
    let driver = read_driver(root, link)?;
    let bus = root.link_name(&format!("{link}/subsystem"))?;
    let in_other_namespace = !ethtool::is_same(root, name)?;
    let (mut channels, mut channels_fixed, mut versions) = (None, false, (None, None));
    let (mut rss, mut ntuple, mut supported_mbps) = (None, None, None);
    if !in_other_namespace {
        (rss, ntuple) = read_flows(root, name, driver.as_deref(), wants.queues)?;
        (channels, channels_fixed) = read_channels(root, name, driver.as_deref())?;
        versions = ethtool::versions(root, name)?;
        supported_mbps = ethtool::fastest_mode(root, name)?;
    }
    let interface = Interface {
        name: name.to_owned(),
        channels,
        channels_fixed,
        rss,
        ntuple,
        supported_mbps,
        driver,
        driver_version: versions.0,
        firmware: versions.1,
        mtu: read_number(root, &format!("{path}/mtu"))?,
        in_other_namespace,
        device: read_device(root, link, bus.as_deref())?,
        port: port.unwrap_or(0).into(),
        link: read_link_state(root, path)?,
        speed_mbps: speed
            .and_then(|mbps| u32::try_from(mbps).ok())
            .filter(|&mbps| mbps != 0 && mbps != u32::MAX),
        rx_queues,
        tx_queues,
        polling: polling::read(root, path)?,
        vmbus: if bus.as_deref() == Some("vmbus") {
            Some(read_vmbus(root, link)?)
        } else {
            None
        },
        ..Interface::default()
    };
    // Of two interfaces that exchange their names, one may have the queues and the other the device.
    let queues = format!("{path}/queues");
    if root.is_real() && !root.is_at(&queues, &format!("{link}/net/{name}/queues")) {
        return Err(root.io_error(&queues, Errno::ESTALE));
    }
    Ok(root.is_there(path)?.then_some(interface))
}

/// The interface of a PCI function that is in another network namespace: what its device tells of it. `None` for InfiniBand.
pub(crate) fn elsewhere(root: &Root, address: &str) -> Result<Option<Interface>, FileError> {
    let link = format!("{PCI}/{address}");
    // The IRQs of an InfiniBand function without an interface are those of RDMA.
    if others::class(root, &link)?.starts_with("0x0207") {
        return Ok(None);
    }
    let link = root.canonical(&link)?.unwrap_or(link);
    Ok(Some(Interface {
        name: address.to_owned(),
        driver: read_driver(root, &link)?,
        in_other_namespace: true,
        device: read_device(root, &link, Some("pci"))?,
        link: "unknown".to_owned(),
        ..Interface::default()
    }))
}

/// The kernel's word for the state of a link; one that a driver does not report is up while the interface is.
fn read_link_state(root: &Root, path: &str) -> Result<String, FileError> {
    let state = root.read_opt(&format!("{path}/operstate"))?;
    let flags = read_hex(root, &format!("{path}/flags"))?;
    let state = state.as_deref().map(name_in).unwrap_or_default();
    match state.split_whitespace().next() {
        Some("unknown") | None => {
            // IFF_UP is bit 0.
            let up = flags.is_some_and(|flags| flags % 2 == 1);
            Ok(if up { "up" } else { "down" }.to_owned())
        }
        Some(state) => Ok(state.to_owned()),
    }
}

/// An interface's channels as ethtool reports them, corrected for drivers with a fixed number.
fn read_channels(
    root: &Root,
    name: &str,
    driver: Option<&str>,
) -> Result<(Option<Channels>, bool), FileError> {
    let (channels, asked) = ethtool::channels(root, name)?;
    // The driver reports a maximum, but has no `set_channels`.
    let fixed = driver == Some("vmxnet3");
    let channels = channels.map(|now| if fixed { now.without_more() } else { now });
    Ok((channels, asked && (fixed || channels.is_none())))
}

/// Drivers with accelerated RFS: they have `ndo_rx_flow_steer`, and a map of their queues' CPUs that follows the affinity
/// of the vectors (`irq_cpu_rmap_add`). Read in the sources of Linux 6.1 and 6.12.
const ACCELERATED_RFS: [&str; 11] = [
    "bnxt_en",
    "enic",
    "hns3",
    "ice",
    "mlx4_en",
    "mlx5_core",
    "qede",
    "sfc",
    "sfc_ef100",
    "sfc_falcon",
    "sfc_siena",
];

/// The RSS table, and whether ntuple filters are on.
fn read_flows(
    root: &Root,
    name: &str,
    driver: Option<&str>,
    wanted: Queues,
) -> Result<(Option<Rss>, Option<bool>), FileError> {
    if wanted == Queues::Numbers {
        return Ok((None, None));
    }
    let is_accelerated = driver.is_some_and(|driver| ACCELERATED_RFS.contains(&driver));
    let ntuple = if is_accelerated {
        ethtool::ntuple(root, name)?
    } else {
        None
    };
    Ok((ethtool::rss(root, name)?, ntuple))
}

fn read_driver(root: &Root, link: &str) -> Result<Option<String>, FileError> {
    if let Some(driver) = root.link_name(&format!("{link}/driver"))? {
        return Ok(Some(netdev_driver(driver)));
    }
    // Dumps may lack links. Only Xen's driver binds to such a device.
    let alias = root
        .read_opt(&format!("{link}/modalias"))?
        .unwrap_or_default();
    Ok((alias.trim_end() == "xen:vif").then(|| "vif".to_owned()))
}

/// The interface's driver, where the bus driver has another name.
fn netdev_driver(bus_driver: String) -> String {
    match bus_driver.as_str() {
        "mlx4_core" => "mlx4_en".to_owned(),
        "virtio-pci" => "virtio_net".to_owned(),
        _ => bus_driver,
    }
}

fn read_vmbus(root: &Root, link: &str) -> Result<Vec<VmbusChannel>, FileError> {
    let mut channels = Vec::new();
    for name in root.list(&format!("{link}/channels"))?.unwrap_or_default() {
        let file = format!("{link}/channels/{name}/cpu");
        let Some(cpu) = read_number(root, &file)? else {
            continue;
        };
        let channel = name.parse().ok().filter(|_| cpu < MAX_CPUS);
        let channel = channel.map(|id| VmbusChannel { id, cpu });
        let unread = || root.content_error(&file, "is not the CPU of a channel");
        channels.push(channel.ok_or_else(unread)?);
    }
    channels.sort_by_key(|channel| channel.id);
    Ok(channels)
}

fn read_device(root: &Root, link: &str, bus: Option<&str>) -> Result<Device, FileError> {
    // A USB adapter's PCI ancestor is the machine's USB controller, whose vectors are not the adapter's.
    let on_usb = bus == Some("usb");
    let path = if on_usb {
        link.to_owned()
    } else {
        device_path(root, link)?
    };
    let node = |of: &str| read_node(root, &format!("{of}/numa_node"));
    let function = format!("{path}/physfn");
    let parent_name = root.link_name(&function)?;
    let most = read_link(root, &path, "max")?;
    let parent = root.canonical(&function)?;
    Ok(Device {
        address: name_of(&path).to_owned(),
        pci_id: read_pci_id(root, &path)?,
        node: match (node(&path)?, &parent) {
            (None, Some(parent)) => node(parent)?,
            (own, _) => own,
        },
        local_cpus: read_list(root, &format!("{path}/local_cpulist"))?,
        pcie_mtps: most.map_or(0, PcieLink::total),
        link: if parent_name.is_some() {
            None
        } else {
            read_links(root, &path, most)?
        },
        parent: parent_name,
        irqs: if on_usb {
            Vec::new()
        } else {
            read_irqs(root, &path)?
        },
    })
}

fn read_pci_id(root: &Root, path: &str) -> Result<Option<String>, FileError> {
    let id = |name: &str| -> Result<Option<String>, FileError> {
        let number = read_hex(root, &format!("{path}/{name}"))?;
        Ok(number.map(|number| format!("{number:04x}")))
    };
    let Some(vendor) = id("vendor")? else {
        return Ok(None);
    };
    Ok(id("device")?.map(|device| format!("{vendor}:{device}")))
}

/// A number such as `0x15b3`; `None` if it is absent.
fn read_hex(root: &Root, path: &str) -> Result<Option<u32>, FileError> {
    root.parse_opt(path, |text| {
        let digits = text.trim().strip_prefix("0x");
        let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        number.ok_or_else(|| {
            let text = shown(text.trim());
            root.content_error(path, format!("`{text}` is not a number such as 0x1003"))
        })
    })
}

/// The `max` or `current` link of a device; `None` if it is unknown.
fn read_link(root: &Root, path: &str, which: &str) -> Result<Option<PcieLink>, FileError> {
    let file = format!("{path}/{which}_link_speed");
    // "8.0 GT/s PCIe", on older kernels "8 GT/s"; "Unknown" and "Unknown speed".
    let parse = |text: &str| {
        let rate = text.split_whitespace().next().unwrap_or("Unknown");
        if rate.eq_ignore_ascii_case("unknown") {
            return Ok(0);
        }
        let (whole, tenths) = rate.split_once('.').unwrap_or((rate, "0"));
        let number = |digits: &str| digits.parse::<u16>().ok().map(u64::from);
        let mtps = number(whole).zip(number(tenths));
        let mtps = mtps.map(|(whole, tenths)| whole * 1000 + tenths.min(9) * 100);
        mtps.ok_or_else(|| root.content_error(&file, "is not a speed such as `8.0 GT/s PCIe`"))
    };
    let mtps = root.parse_opt(&file, parse)?.unwrap_or_default();
    let lanes: Option<u8> = read_number(root, &format!("{path}/{which}_link_width"))?;
    // 255 is the kernel's "unknown".
    let lanes = lanes
        .filter(|&lanes| lanes != 255)
        .unwrap_or_default()
        .into();
    Ok(Some(PcieLink { mtps, lanes }).filter(|link| link.mtps > 0 && link.lanes > 0))
}

/// The current link of a device, and what it and the port above it can do.
fn read_links(
    root: &Root,
    path: &str,
    most: Option<PcieLink>,
) -> Result<Option<(PcieLink, PcieLink)>, FileError> {
    let Some(above) = path.rsplit_once('/').map(|(above, _)| above) else {
        return Ok(None);
    };
    let Some(most) = most.filter(|_| is_pci_address(name_of(above))) else {
        return Ok(None);
    };
    let Some(now) = read_link(root, path, "current")? else {
        return Ok(None);
    };
    Ok(read_link(root, above, "max")?.map(|port| (now, most.least(port))))
}

fn read_irqs(root: &Root, path: &str) -> Result<Vec<u32>, FileError> {
    let names = root.list(&format!("{path}/msi_irqs"))?.unwrap_or_default();
    let unread = || {
        let reason = "has a name that is not the number of an IRQ";
        root.content_error(&format!("{path}/msi_irqs"), reason)
    };
    let irqs: Option<Vec<u32>> = names.iter().map(|name| name.parse().ok()).collect();
    let mut irqs = irqs.ok_or_else(unread)?;
    irqs.sort_unstable();
    if irqs.is_empty() {
        // Without MSI, the legacy line that the device may share; 0 is none.
        let line: Option<u32> = read_number(root, &format!("{path}/irq"))?;
        irqs.extend(line.filter(|&line| line != 0));
    }
    Ok(irqs)
}

/// Reads the steering settings of an interface's queues, if only their numbers were read before.
pub(crate) fn read_queue_settings(root: &Root, interface: &mut Interface) -> Result<(), FileError> {
    if interface.is_elsewhere() {
        return Ok(());
    }
    let path = format!("{NET}/{}", interface.name);
    (interface.rx_queues, interface.tx_queues) = read_queues(root, &path, Queues::Steering)?;
    if !interface.in_other_namespace {
        let driver = interface.driver.as_deref();
        (interface.rss, interface.ntuple) =
            read_flows(root, &interface.name, driver, Queues::Steering)?;
    }
    Ok(())
}

type RxTxQueues = (Vec<RxQueue>, Vec<TxQueue>);

/// Reads an interface's queues, all of the same one if it is renamed meanwhile.
fn read_queues(root: &Root, path: &str, wanted: Queues) -> Result<RxTxQueues, FileError> {
    let path = format!("{path}/queues");
    root.with_pinned([&path], || read_pinned_queues(root, &path, wanted))
}

fn read_pinned_queues(root: &Root, path: &str, wanted: Queues) -> Result<RxTxQueues, FileError> {
    let (mut rx, mut tx): (Vec<RxQueue>, Vec<TxQueue>) = (Vec::new(), Vec::new());
    let steering = wanted != Queues::Numbers;
    for name in root.list(path)?.unwrap_or_default() {
        let queue = format!("{path}/{name}");
        if let Some(index) = numbered(&name, "rx-", MAX_QUEUES) {
            let mut new = RxQueue {
                index,
                ..RxQueue::default()
            };
            if steering {
                let path = format!("{queue}/rps_cpus");
                new.rps_cpus = root.parse_opt(&path, |text| parse_mask_file(root, &path, text))?;
            }
            if wanted == Queues::Steering {
                new.rps_flow_cnt = read_number(root, &format!("{queue}/rps_flow_cnt"))?;
            }
            rx.push(new);
        } else if let Some(index) = numbered(&name, "tx-", MAX_QUEUES) {
            let mut new = TxQueue {
                index,
                ..TxQueue::default()
            };
            if steering {
                new.xps_cpus = read_xps(root, &format!("{queue}/xps_cpus"))?;
                new.xps_rxqs = read_xps(root, &format!("{queue}/xps_rxqs"))?;
            }
            tx.push(new);
        }
    }
    rx.sort_by_key(|queue| queue.index);
    tx.sort_by_key(|queue| queue.index);
    Ok((rx, tx))
}

/// `xps_cpus` or `xps_rxqs`. With a single queue the kernel refuses to read the first, and dumps hold an empty file.
fn read_xps(root: &Root, path: &str) -> Result<Option<MaskFile>, FileError> {
    let parse = |text: &str| match text.trim() {
        "" => Ok(None),
        text => parse_mask_file(root, path, text).map(Some),
    };
    Ok(root.parse_opt(path, parse)?.flatten())
}
