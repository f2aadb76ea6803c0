//! Network interfaces: the bus device behind each, its queues and their steering masks.
//!
//! Only interfaces with a device behind them are interfaces here; bonds, VLANs and bridges are kept as
//! what they stand on. Read from `/sys/class/net` (`Documentation/ABI/testing/sysfs-class-net`,
//! `sysfs-class-net-queues`, `Documentation/networking/napi.rst`).

use nix::errno::Errno;

use crate::cpuset::{MAX_CPUS, shown};
use crate::machine::channels::MAX_QUEUES;
use crate::machine::interface::{is_pci_address, natural};
use crate::machine::others::Virtual;
use crate::machine::{
    Device, Interface, Machine, MaskFile, PcieLink, Polling, RxQueue, Stacked, TxQueue,
    VmbusChannel,
};
use crate::read::files::{
    Result, name_in, name_of, numbered, read_as, read_list, read_names, read_node, read_number,
    read_text,
};
use crate::read::others::{self, PCI, bus_device_above};
use crate::read::{Queues, Wants, ethtool};
use crate::root::Root;

const NET: &str = "/sys/class/net";
/// The limit of interfaces with a device: sixteen times the 256 functions of a PCI bus.
const MAX_INTERFACES: usize = 4096;

/// What `/sys/class/net` lists of a machine, each kind by name.
pub(crate) fn read(root: &Root, wants: Wants) -> Result<Machine> {
    let mut listed = Machine::default();
    let mut names = read_names(root, NET)?;
    // A file beside the interfaces.
    names.retain(|name| name != "bonding_masters");
    for name in &mut names {
        // The kernel allows no white space (`dev_valid_name`): in a tree it could end up in a script.
        if name.contains(char::is_whitespace) {
            *name = name.replace(char::is_whitespace, "\u{fffd}");
        }
    }
    names.sort_by_key(|name| natural(name));
    for name in names {
        let path = format!("{NET}/{name}");
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
        let lowers = entries
            .iter()
            .filter_map(|entry| entry.strip_prefix("lower_"));
        let lowers: Vec<String> = lowers.map(str::to_owned).collect();
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
            let devtype = others::devtype(root, &path)?;
            let kind = others::kind(root, &path, devtype.as_deref())?;
            let virtuals = &mut listed.others.virtuals;
            virtuals.push(Virtual {
                name,
                kind,
                devtype,
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
) -> Result<Option<Interface>> {
    let file = |name: &str| format!("{path}/{name}");
    let bus = root.link_name(&format!("{link}/subsystem"))?;
    let port: Option<u16> = read_number(root, &file("dev_port"))?;
    let mut interface = Interface {
        name: name.to_owned(),
        driver: read_driver(root, link)?,
        mtu: read_number(root, &file("mtu"))?,
        in_other_namespace: !ethtool::is_same(root, name)?,
        device: read_device(root, link, bus.as_deref())?,
        port: port.unwrap_or(0).into(),
        link: read_link_state(root, path)?,
        speed_mbps: read_speed(root, &file("speed"))?,
        // Each is absent on kernels older than the setting.
        polling: Polling {
            threaded: read_number::<u32>(root, &file("threaded"))?.is_some_and(|mode| mode > 0),
            gro_flush_timeout: read_number(root, &file("gro_flush_timeout"))?.unwrap_or_default(),
            napi_defer_hard_irqs: read_number(root, &file("napi_defer_hard_irqs"))?
                .unwrap_or_default(),
            irq_suspend_timeout: 0,
        },
        vmbus: match bus.as_deref() {
            Some("vmbus") => Some(read_vmbus(root, &format!("{link}/channels"))?),
            _ => None,
        },
        ..Interface::default()
    };
    read_queues(root, &mut interface, wants.queues)?;
    if !interface.in_other_namespace {
        let (channels, asked) = ethtool::channels(root, name)?;
        // This driver reports a maximum, but has no `set_channels`.
        let fixed = interface.driver.as_deref() == Some("vmxnet3");
        interface.channels = channels.map(|now| if fixed { now.without_more() } else { now });
        interface.channels_fixed = asked && (fixed || channels.is_none());
        (interface.driver_version, interface.firmware) = ethtool::versions(root, name)?;
        interface.supported_mbps = ethtool::fastest_mode(root, name)?;
    }
    // Of two interfaces that exchange their names, one may have the queues and the other the device.
    let queues = file("queues");
    if root.is_real() && !root.is_at(&queues, &format!("{link}/net/{name}/queues")) {
        return Err(root.io_error(&queues, Errno::ESTALE));
    }
    Ok(root.is_there(path)?.then_some(interface))
}

/// The interface of a PCI function that is in another network namespace: what its device tells of it. `None` for InfiniBand.
pub(crate) fn elsewhere(root: &Root, address: &str) -> Result<Option<Interface>> {
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

/// The speed in Mbit/s. Drivers report 0 or -1 (also as an unsigned number) for an unknown one, or an error, of which a
/// copied tree has an empty file.
fn read_speed(root: &Root, path: &str) -> Result<Option<u32>> {
    if read_text(root, path)?.trim().is_empty() {
        return Ok(None);
    }
    let speed: Option<i64> = read_number(root, path)?;
    Ok(speed
        .and_then(|mbps| u32::try_from(mbps).ok())
        .filter(|&mbps| mbps != 0 && mbps != u32::MAX))
}

/// The kernel's word for the state of a link; one that a driver does not report is up while the interface is.
fn read_link_state(root: &Root, path: &str) -> Result<String> {
    let state = read_text(root, &format!("{path}/operstate"))?;
    let flags = read_hex(root, &format!("{path}/flags"))?;
    let state = match name_in(&state).split_whitespace().next() {
        Some(state) if state != "unknown" => state,
        // IFF_UP is bit 0.
        _ if flags.is_some_and(|flags| flags % 2 == 1) => "up",
        _ => "down",
    };
    Ok(state.to_owned())
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

/// The interface's driver, which the bus driver may have by another name.
fn read_driver(root: &Root, link: &str) -> Result<Option<String>> {
    if let Some(driver) = root.link_name(&format!("{link}/driver"))? {
        return Ok(Some(match driver.as_str() {
            "mlx4_core" => "mlx4_en".to_owned(),
            "virtio-pci" => "virtio_net".to_owned(),
            _ => driver,
        }));
    }
    // Dumps may lack links. Only Xen's driver binds to such a device.
    let alias = read_text(root, &format!("{link}/modalias"))?;
    Ok((alias.trim_end() == "xen:vif").then(|| "vif".to_owned()))
}

fn read_vmbus(root: &Root, path: &str) -> Result<Vec<VmbusChannel>> {
    let mut channels = Vec::new();
    for name in read_names(root, path)? {
        let file = format!("{path}/{name}/cpu");
        let Some(cpu) = read_number(root, &file)? else {
            continue;
        };
        let id = name
            .parse()
            .ok()
            .filter(|_| cpu < MAX_CPUS)
            .ok_or_else(|| root.content_error(&file, "is not the CPU of a channel"))?;
        channels.push(VmbusChannel { id, cpu });
    }
    channels.sort_by_key(|channel| channel.id);
    Ok(channels)
}

fn read_device(root: &Root, link: &str, bus: Option<&str>) -> Result<Device> {
    // A USB adapter's PCI ancestor is the machine's USB controller, whose vectors are not the adapter's.
    let on_usb = bus == Some("usb");
    let path = if on_usb {
        link.to_owned()
    } else {
        bus_device_above(root, link.to_owned())?
    };
    let function = format!("{path}/physfn");
    let parent = root.link_name(&function)?;
    let most = read_link(root, &path, "max")?;
    let vendor = read_hex(root, &format!("{path}/vendor"))?;
    let device = match vendor {
        Some(_) => read_hex(root, &format!("{path}/device"))?,
        None => None,
    };

    let mut node = read_node(root, &format!("{path}/numa_node"))?;
    if let Some(parent) = root.canonical(&function)?.filter(|_| node.is_none()) {
        node = read_node(root, &format!("{parent}/numa_node"))?;
    }
    Ok(Device {
        address: name_of(&path).to_owned(),
        pci_id: vendor
            .zip(device)
            .map(|(vendor, device)| format!("{vendor:04x}:{device:04x}")),
        node,
        local_cpus: read_list(root, &format!("{path}/local_cpulist"))?,
        pcie_mtps: most.map_or(0, PcieLink::total),
        link: match most {
            Some(most) if parent.is_none() => read_links(root, &path, most)?,
            _ => None,
        },
        parent,
        irqs: if on_usb {
            Vec::new()
        } else {
            read_irqs(root, &path)?
        },
    })
}

/// A number such as `0x15b3`; `None` if it is absent.
fn read_hex(root: &Root, path: &str) -> Result<Option<u32>> {
    read_as(root, path, |text| {
        let text = text.trim();
        let number = text
            .strip_prefix("0x")
            .map(|hex| u32::from_str_radix(hex, 16));
        number
            .and_then(Result::ok)
            .ok_or_else(|| format!("`{}` is not a number such as 0x1003", shown(text)))
    })
}

/// The `max` or `current` link of a device; `None` if it is unknown.
fn read_link(root: &Root, path: &str, which: &str) -> Result<Option<PcieLink>> {
    // "8.0 GT/s PCIe", on older kernels "8 GT/s"; "Unknown" and "Unknown speed".
    let parse = |text: &str| {
        let rate = text.split_whitespace().next().unwrap_or("Unknown");
        if rate.eq_ignore_ascii_case("unknown") {
            return Some(0);
        }
        let (whole, tenths) = rate.split_once('.').unwrap_or((rate, "0"));
        let number = |digits: &str| digits.parse::<u16>().ok().map(u64::from);
        Some(number(whole)? * 1000 + number(tenths)?.min(9) * 100)
    };
    let expected = "is not a speed such as `8.0 GT/s PCIe`";
    let speed = format!("{path}/{which}_link_speed");
    let mtps = read_as(root, &speed, |text| parse(text).ok_or(expected))?;
    let lanes: Option<u8> = read_number(root, &format!("{path}/{which}_link_width"))?;
    // 255 is the kernel's "unknown".
    let (mtps, lanes) = (mtps.unwrap_or(0), lanes.unwrap_or(0).into());
    let is_known = mtps > 0 && ![0, 255].contains(&lanes);
    Ok(is_known.then_some(PcieLink { mtps, lanes }))
}

/// The current link of a device, and what it and the port above it can do.
fn read_links(root: &Root, path: &str, most: PcieLink) -> Result<Option<(PcieLink, PcieLink)>> {
    let above = path.rsplit_once('/').map_or("", |(above, _)| above);
    if !is_pci_address(name_of(above)) {
        return Ok(None);
    }
    let Some(now) = read_link(root, path, "current")? else {
        return Ok(None);
    };
    Ok(read_link(root, above, "max")?.map(|port| (now, most.least(port))))
}

fn read_irqs(root: &Root, path: &str) -> Result<Vec<u32>> {
    let directory = format!("{path}/msi_irqs");
    let irqs: Result<Vec<u32>, _> = read_names(root, &directory)?
        .iter()
        .map(|name| name.parse())
        .collect();
    let reason = "has a name that is not the number of an IRQ";
    let mut irqs = irqs.map_err(|_| root.content_error(&directory, reason))?;
    irqs.sort_unstable();
    if irqs.is_empty() {
        // Without MSI, the legacy line that the device may share; 0 is none.
        let line: Option<u32> = read_number(root, &format!("{path}/irq"))?;
        irqs.extend(line.filter(|&line| line != 0));
    }
    Ok(irqs)
}

/// Reads an interface's queues, all of the same one if it is renamed meanwhile; its RSS table, and whether ntuple filters
/// are on.
pub(crate) fn read_queues(root: &Root, interface: &mut Interface, wanted: Queues) -> Result<()> {
    let path = format!("{NET}/{}/queues", interface.name);
    (interface.rx_queues, interface.tx_queues) =
        root.with_pinned([&path], || read_pinned_queues(root, &path, wanted))?;
    if interface.in_other_namespace || wanted == Queues::Numbers {
        return Ok(());
    }
    let name = &interface.name;
    let driver = interface.driver.as_deref();
    if driver.is_some_and(|driver| ACCELERATED_RFS.contains(&driver)) {
        interface.ntuple = ethtool::ntuple(root, name)?;
    }
    interface.rss = ethtool::rss(root, name)?;
    Ok(())
}

fn read_pinned_queues(
    root: &Root,
    path: &str,
    wanted: Queues,
) -> Result<(Vec<RxQueue>, Vec<TxQueue>)> {
    let (mut rx, mut tx) = (Vec::new(), Vec::new());
    for name in read_names(root, path)? {
        let file = |setting: &str| format!("{path}/{name}/{setting}");
        // With a single queue the kernel refuses to read `xps_cpus`, and dumps hold an empty file.
        let mask = |setting: &str, may_be_empty: bool| {
            if wanted == Queues::Numbers {
                return Ok(None);
            }
            Ok(read_as(root, &file(setting), |text| match text.trim() {
                "" if may_be_empty => Ok(None),
                text => MaskFile::parse(text).map(Some),
            })?
            .flatten())
        };
        if let Some(index) = numbered(&name, "rx-", MAX_QUEUES) {
            rx.push(RxQueue {
                index,
                rps_cpus: mask("rps_cpus", false)?,
                rps_flow_cnt: match wanted {
                    Queues::Steering => read_number(root, &file("rps_flow_cnt"))?,
                    _ => None,
                },
            });
        } else if let Some(index) = numbered(&name, "tx-", MAX_QUEUES) {
            tx.push(TxQueue {
                index,
                xps_cpus: mask("xps_cpus", true)?,
                xps_rxqs: mask("xps_rxqs", true)?,
            });
        }
    }
    rx.sort_by_key(|queue| queue.index);
    tx.sort_by_key(|queue| queue.index);
    Ok((rx, tx))
}
