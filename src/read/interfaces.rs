//! Network interfaces: the bus device behind each, its queues and their steering masks.
//!
//! Only interfaces with a device behind them are interfaces here; bonds, VLANs and bridges are recorded as layers on
//! them. Read from `/sys/class/net` (`Documentation/ABI/testing/sysfs-class-net`, `sysfs-class-net-queues`,
//! `Documentation/networking/napi.rst`).

use std::collections::BTreeMap;
use std::mem::take;

use itertools::Itertools as _;
use nix::errno::Errno;

use crate::cpuset::{CpuSet, MAX_CPUS, shown};
use crate::drivers::{Driver, Fact};
use crate::machine::channels::MAX_QUEUES;
use crate::machine::interface::{is_pci_address, natural};
use crate::machine::others::Virtual;
use crate::machine::setting::{NET, queue_files};
use crate::machine::{
    Device, Interface, Machine, MaskFile, PcieLink, Polling, RxQueue, Stacked, TxQueue,
    VmbusChannel,
};
use crate::read::files::{Dir, name_in, node, number, number_after};
use crate::read::interrupts::numbers;
use crate::read::netlink::Lower;
use crate::read::others::{self, PCI, bus_device_above};
use crate::read::{Queues, ReadOptions, device_tree, ethtool};
use crate::root::{Result, Root};

/// Maximum number of interfaces with a device: sixteen times the 256 functions of a PCI bus.
const MAX_INTERFACES: usize = 4096;

/// Reads all interfaces that `/sys/class/net` lists, each kind sorted by name.
pub(crate) fn read(root: &Root, options: ReadOptions<'_>) -> Result<Machine> {
    let mut listed = Machine::default();
    let names = root
        .read_names(NET)?
        .into_iter()
        // bonding_masters is a file beside the interfaces.
        .filter(|name| name != "bonding_masters")
        // The kernel allows no white space (`dev_valid_name`): in a tree it could end up in a script.
        .map(|name| name.replace(char::is_whitespace, "\u{fffd}"))
        .sorted_by_key(|name| natural(name));
    for name in names {
        let net = root.dir(format!("{NET}/{name}"));
        let Some(entries) = root.list(&net.path)? else {
            // Without the character, the interface has been removed meanwhile.
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
        let device = net.canonical("device")?;
        if listed.interfaces.len() >= MAX_INTERFACES {
            return Err(root.content_error(NET, format!(
                "lists more than {MAX_INTERFACES} interfaces with a device, which no machine has"
            )));
        }
        if let Some(device) = &device {
            listed
                .interfaces
                .extend(read_interface(&net, &name, device, options)?);
            if lowers.is_empty() {
                continue;
            }
        }
        let devtype = others::devtype(&net)?;
        if lowers.is_empty() {
            listed.others.virtuals.push(Virtual {
                name,
                kind: others::kind(&net, devtype.as_deref())?,
                devtype,
            });
        } else {
            listed.stacked.push(Stacked {
                kind: match devtype {
                    None => vrf(&net)?,
                    kind => kind,
                },
                name,
                lowers,
            });
        }
    }
    name_ports(root, &mut listed.interfaces)?;
    Ok(listed)
}

/// Adds interfaces without a device to those below them that netlink reports and `/sys` does not.
pub(crate) fn stack(machine: &mut Machine, mut lowers: BTreeMap<String, Lower>) {
    let virtuals = take(&mut machine.others.virtuals);
    for interface in virtuals {
        match lowers.remove(&interface.name) {
            Some(Lower { on, kind }) => machine.stacked.push(Stacked {
                kind: interface.devtype.or(Some(kind)),
                name: interface.name,
                lowers: vec![on],
            }),
            None => machine.others.virtuals.push(interface),
        }
    }
    machine
        .stacked
        .sort_by_key(|interface| natural(&interface.name));
}

/// A VRF has `IFF_NOARP`, a team has not; neither has a `DEVTYPE`.
fn vrf(net: &Dir) -> Result<Option<String>> {
    const IFF_NOARP: u32 = 0x80;
    let flags = net.read_as("flags", hex)?;
    let is_vrf = flags.is_some_and(|flags| flags & IFF_NOARP != 0);
    Ok(is_vrf.then(|| "vrf".to_owned()))
}

/// Names an interface without a port name after the older interface with the same port and device.
fn name_ports(root: &Root, interfaces: &mut [Interface]) -> Result<()> {
    let mut unnamed = BTreeMap::<_, Vec<_>>::new();
    for interface in interfaces
        .iter_mut()
        .filter(|interface| interface.port_name.is_none())
    {
        let port = (interface.device.address.clone(), interface.port);
        unnamed.entry(port).or_default().push(interface);
    }
    for same_port in unnamed
        .into_values()
        .filter(|interfaces| interfaces.len() > 1)
    {
        let mut by_age = Vec::new();
        for interface in same_port {
            let index = format!("{NET}/{}/ifindex", interface.name);
            by_age.push((root.read_as(&index, number::<u32>)?, interface));
        }
        by_age.sort_by_key(|(index, _)| *index);
        for (_, interface) in by_age.into_iter().skip(1) {
            interface.port_name = Some(interface.name.clone());
        }
    }
    Ok(())
}

/// Reads an interface; `None` if it was removed meanwhile. ESTALE if its queues are pinned and no longer those of its
/// device.
fn read_interface(
    net: &Dir,
    name: &str,
    link: &Dir,
    options: ReadOptions<'_>,
) -> Result<Option<Interface>> {
    let root = net.root;
    let bus = link.link_name("subsystem")?;
    // The record separates words by spaces.
    let port_name = net.read_text("phys_port_name")?.trim().replace(' ', "_");
    let driver = read_driver(link)?;
    let mut interface = Interface {
        name: name.to_owned(),
        channel_vectors: Driver::has(driver.as_deref(), Fact::ChannelVectors),
        driver,
        in_other_namespace: !ethtool::is_same(root, name)?,
        device: read_device(link, bus.as_deref(), options)?,
        port: net.read_as("dev_port", number::<u16>)?.unwrap_or(0).into(),
        port_name: Some(name_in(&port_name).to_owned()).filter(|name| !name.is_empty()),
        polling: Polling {
            threaded: net
                .read_as("threaded", number::<u32>)?
                .is_some_and(|mode| mode > 0),
            ..Polling::default()
        },
        vmbus: match bus.as_deref() {
            Some("vmbus") => Some(read_vmbus(&link.dir("channels"))?),
            _ => None,
        },
        ..Interface::default()
    };
    read_queues(root, &mut interface, options.queues)?;
    if !interface.in_other_namespace {
        if !options.drivers.is_empty() {
            interface.ethtool_driver = ethtool::driver_name(root, name)?;
        }
        let (channels, asked) = ethtool::channels(root, name)?;
        let fixed = Driver::has(interface.driver.as_deref(), Fact::FixedChannels);
        interface.channels = channels.map(|now| if fixed { now.without_more() } else { now });
        interface.channels_fixed = asked && (fixed || channels.is_none());
    }
    if !options.settings_only {
        read_for_planning(net, &mut interface)?;
    }
    // If two interfaces exchange their names, one name may have the queues and the other the device.
    let queues = net.file("queues");
    if root.is_real() && !root.is_at(&queues, &link.file(&format!("net/{name}/queues"))) {
        return Err(root.io_error(&queues, Errno::ESTALE));
    }
    Ok(root.is_there(&net.path)?.then_some(interface))
}

fn read_for_planning(net: &Dir, interface: &mut Interface) -> Result<()> {
    interface.mtu = net.read_as("mtu", number)?;
    let flags = net.read_as("flags", hex)?;
    // `IFF_UP` is bit 0.
    interface.is_down = flags.is_some_and(|flags| flags % 2 == 0);
    interface.link = read_link_state(net, flags.is_some() && !interface.is_down)?;
    interface.speed_mbps = read_speed(net)?;
    // Kernels older than the setting have no file.
    let (timeout, polls) = ("gro_flush_timeout", "napi_defer_hard_irqs");
    interface.polling.gro_flush_timeout = net.read_as(timeout, number)?.unwrap_or_default();
    interface.polling.napi_defer_hard_irqs = net.read_as(polls, number)?.unwrap_or_default();
    if !interface.in_other_namespace {
        let (root, name) = (net.root, &interface.name);
        (interface.driver_version, interface.firmware) = ethtool::versions(root, name)?;
        interface.supported_mbps = ethtool::fastest_mode(root, name)?;
    }
    Ok(())
}

/// Reads a PCI function without an interface here, as far as its device tells; `None` for InfiniBand.
///
/// The kernel makes a directory `net` below a device for its interfaces, and shows in it those of the reader's
/// namespace alone (`class_dir_create_and_add` in `drivers/base/core.c`).
pub(crate) fn read_function(
    root: &Root,
    address: &str,
    options: ReadOptions<'_>,
) -> Result<Option<Interface>> {
    let link = format!("{PCI}/{address}");
    // The IRQs of an InfiniBand function without an interface belong to RDMA.
    if others::class(root, &link)?.starts_with("0x0207") {
        return Ok(None);
    }
    let link = root.dir(root.canonical(&link)?.unwrap_or(link));
    let driver = read_driver(&link)?;
    let mut has_netdev = link.is_there("net")?;
    if driver.as_deref() == Some("virtio_net") {
        // The device of the interface is below the function.
        let children = root.read_names(&link.path)?;
        for name in children.iter().filter(|name| name.starts_with("virtio")) {
            has_netdev |= link.dir(name).is_there("net")?;
        }
    }
    Ok(Some(Interface {
        name: address.to_owned(),
        channel_vectors: Driver::has(driver.as_deref(), Fact::ChannelVectors),
        driver,
        in_other_namespace: true,
        without_netdev: !has_netdev,
        device: read_device(&link, Some("pci"), options)?,
        link: "unknown".to_owned(),
        ..Interface::default()
    }))
}

/// Reads the speed in Mbit/s. Drivers report an unknown one as 0 or -1 (also as an unsigned number), or as an error,
/// which a copied tree has as an empty file.
fn read_speed(net: &Dir) -> Result<Option<u32>> {
    Ok(net
        .read_as("speed", |text| match text.trim() {
            "" => Ok(0),
            text => number::<i64>(text),
        })?
        .and_then(|mbps| u32::try_from(mbps).ok())
        .filter(|&mbps| mbps != 0 && mbps != u32::MAX))
}

/// Reads the kernel's word for the state of a link; if the driver does not report it, the link is up while the
/// interface is.
fn read_link_state(net: &Dir, is_up: bool) -> Result<String> {
    let state = net.read_text("operstate")?;
    let state = match name_in(&state).split_whitespace().next() {
        Some(state) if state != "unknown" => state,
        _ if is_up => "up",
        _ => "down",
    };
    Ok(state.to_owned())
}

/// Reads the interface's driver, whose name may differ from the bus driver's.
fn read_driver(link: &Dir) -> Result<Option<String>> {
    if let Some(driver) = link.link_name("driver")? {
        return Ok(Some(Driver::on_bus(driver)));
    }
    // Dumps may lack links. Only Xen's driver binds to such a device.
    Ok((link.read_text("modalias")?.trim_end() == "xen:vif").then(|| "vif".to_owned()))
}

fn read_vmbus(channels: &Dir) -> Result<Vec<VmbusChannel>> {
    let mut found = Vec::new();
    for name in channels.root.read_names(&channels.path)? {
        found.extend(channels.dir(&name).read_as("cpu", |text| {
            let cpu = number(text)?;
            let id = name.parse().ok().filter(|_| cpu < MAX_CPUS);
            let channel = id.map(|id| VmbusChannel { id, cpu });
            channel.ok_or("is not the CPU of a channel".to_owned())
        })?);
    }
    found.sort_by_key(|channel| channel.id);
    Ok(found)
}

fn read_device(link: &Dir, bus: Option<&str>, options: ReadOptions<'_>) -> Result<Device> {
    // The PCI ancestor of an adapter on USB is its controller, whose vectors are not the adapter's.
    let controller = controller(link, bus)?;
    let device = if controller.is_some() {
        link.clone()
    } else {
        bus_device_above(link.clone())?
    };
    let parent = device.link_name("physfn")?;
    let most = if options.settings_only {
        None
    } else {
        read_link(&device, "max")?
    };
    let vendor = device.read_as("vendor", hex)?;
    let id = match vendor {
        Some(_) => device.read_as("device", hex)?,
        None => None,
    };
    let mut own = device.read_as("numa_node", node)?.flatten();
    if let Some(parent) = device.canonical("physfn")?.filter(|_| own.is_none()) {
        own = parent.read_as("numa_node", node)?.flatten();
    }
    let irqs = match controller {
        Some(_) => Vec::new(),
        None => read_irqs(&device)?,
    };
    let is_unlisted = irqs.is_empty() && bus == Some("platform");
    Ok(Device {
        address: device.name().to_owned(),
        pci_id: vendor
            .zip(id)
            .map(|(vendor, id)| format!("{vendor:04x}:{id:04x}")),
        node: own,
        local_cpus: device.read_as("local_cpulist", CpuSet::parse_list)?,
        pcie_mtps: most.map_or(0, PcieLink::total),
        link: match most {
            Some(most) if parent.is_none() => read_links(&device, most)?,
            _ => None,
        },
        parent,
        irqs,
        tree: if is_unlisted {
            device_tree::read(&device)?
        } else {
            Vec::new()
        },
        controller,
    })
}

/// Finds the controller of a device on USB or SDIO, which is on the path of the device.
fn controller(link: &Dir, bus: Option<&str>) -> Result<Option<(String, Vec<u32>)>> {
    let is_hub = |name: &str| match bus {
        Some("usb") => name
            .strip_prefix("usb")
            .is_some_and(|number| number.parse::<u32>().is_ok()),
        Some("sdio") => name == "mmc_host",
        _ => false,
    };
    if !matches!(bus, Some("usb" | "sdio")) {
        return Ok(None);
    }
    let mut above = link.clone();
    while above.path.len() > "/sys/devices".len() {
        if is_hub(above.name()) {
            let device = above.above();
            let driver = device.link_name("driver")?.unwrap_or_default();
            return Ok(Some((driver, read_irqs(&device)?)));
        }
        above = above.above();
    }
    Ok(Some(Default::default()))
}

/// Parses a number such as `0x15b3`.
pub(super) fn hex(text: &str) -> Result<u32, String> {
    let text = text.trim();
    text.strip_prefix("0x")
        .and_then(|hex| u32::from_str_radix(hex, 16).ok())
        .ok_or_else(|| format!("`{}` is not a number such as 0x1003", shown(text)))
}

/// Reads the `max` or `current` link of a device; `None` if unknown.
fn read_link(device: &Dir, which: &str) -> Result<Option<PcieLink>> {
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
    let mtps = device.read_as(&format!("{which}_link_speed"), |text| {
        parse(text).ok_or("is not a speed such as `8.0 GT/s PCIe`")
    })?;
    let lanes = device.read_as(&format!("{which}_link_width"), number::<u8>)?;
    // 255 is the kernel's "unknown".
    let (mtps, lanes) = (mtps.unwrap_or(0), lanes.unwrap_or(0).into());
    Ok((mtps > 0 && ![0, 255].contains(&lanes)).then_some(PcieLink { mtps, lanes }))
}

/// The current link of a device, and the best link of which it and the port above are capable.
fn read_links(device: &Dir, most: PcieLink) -> Result<Option<(PcieLink, PcieLink)>> {
    let above = device.above();
    if !is_pci_address(above.name()) {
        return Ok(None);
    }
    let Some(now) = read_link(device, "current")? else {
        return Ok(None);
    };
    Ok(read_link(&above, "max")?.map(|port| (now, most.least(port))))
}

pub(crate) fn irqs_of(root: &Root, address: &str) -> Result<Vec<u32>> {
    read_irqs(&root.dir(format!("{PCI}/{address}")))
}

fn read_irqs(device: &Dir) -> Result<Vec<u32>> {
    let msi = device.file("msi_irqs");
    let names = device.root.read_names(&msi)?;
    let mut irqs: Vec<u32> = numbers(names.iter().map(String::as_str)).ok_or_else(|| {
        device
            .root
            .content_error(&msi, "has a name that is not the number of an IRQ")
    })?;
    irqs.sort_unstable();
    if irqs.is_empty() {
        // Without MSI, the legacy line, which the device may share; 0 is none.
        let line = device.read_as("irq", number::<u32>)?;
        irqs.extend(line.filter(|&line| line != 0));
    }
    Ok(irqs)
}

/// Reads an interface's queues, all of the same interface if it is renamed meanwhile; its RSS table, and whether ntuple
/// filters are on.
pub(crate) fn read_queues(root: &Root, interface: &mut Interface, wanted: Queues) -> Result<()> {
    let name = &interface.name;
    let queues = root.dir(queue_files(name));
    (interface.rx_queues, interface.tx_queues) =
        root.with_pinned([&queues.path], || read_pinned_queues(&queues, wanted))?;
    if interface.in_other_namespace || wanted == Queues::Numbers {
        return Ok(());
    }
    let driver = interface.driver.as_deref();
    if Driver::has(driver, Fact::AcceleratedRfs) {
        interface.ntuple = ethtool::ntuple(root, name)?;
    }
    interface.rss = ethtool::rss(root, name)?;
    Ok(())
}

fn read_pinned_queues(queues: &Dir, wanted: Queues) -> Result<(Vec<RxQueue>, Vec<TxQueue>)> {
    let (mut rx, mut tx) = (Vec::new(), Vec::new());
    for name in queues.root.read_names(&queues.path)? {
        let queue = queues.dir(&name);
        let mask = |setting: &str, may_be_empty: bool| match wanted {
            Queues::Numbers => Ok(None),
            _ => read_mask(&queue, setting, may_be_empty),
        };
        if let Some(index) = number_after(&name, "rx-", MAX_QUEUES) {
            rx.push(RxQueue {
                index,
                rps_cpus: mask("rps_cpus", false)?,
                rps_flow_cnt: match wanted {
                    Queues::Steering => queue.read_as("rps_flow_cnt", number)?,
                    _ => None,
                },
            });
        } else if let Some(index) = number_after(&name, "tx-", MAX_QUEUES) {
            tx.push(TxQueue {
                index,
                class: String::new(),
                xps_cpus: mask("xps_cpus", true)?,
                xps_rxqs: mask("xps_rxqs", true)?,
            });
        }
    }
    // The map shows whether the device has one queue by nature, which decides on its RPS.
    if let (Queues::Numbers, [only]) = (wanted, &mut tx[..]) {
        let queue = queues.dir(&format!("tx-{}", only.index));
        only.xps_cpus = read_mask(&queue, "xps_cpus", true)?;
    }
    rx.sort_by_key(|queue| queue.index);
    tx.sort_by_key(|queue| queue.index);
    read_classes(queues, &mut tx)?;
    Ok((rx, tx))
}

/// Reads the traffic classes of transmit queues. Each is a range of queues (`netdev_set_tc_queue`): if the first and
/// the last queue are of class 0, all are. Kernels before 4.10 have no such file, and one XPS map for all classes.
fn read_classes(queues: &Dir, tx: &mut [TxQueue]) -> Result<()> {
    let class = |queue: &TxQueue| queues.read_text(&format!("tx-{}/traffic_class", queue.index));
    let tx = tx.iter_mut().filter(|tx| tx.xps_cpus.is_some());
    let mut tx = tx.collect_vec();
    if let [first, .., last] = &tx[..] {
        let ends = [class(first)?, class(last)?];
        if ends.iter().any(|class| !["", "0"].contains(&class.trim())) {
            for queue in &mut tx {
                class(queue)?.trim().clone_into(&mut queue.class);
            }
        }
    }
    Ok(())
}

/// `may_be_empty`: with a single queue the kernel refuses to read `xps_cpus`, and dumps hold an empty file.
fn read_mask(queue: &Dir, setting: &str, may_be_empty: bool) -> Result<Option<MaskFile>> {
    let mask = queue.read_as(setting, |text| match text.trim() {
        "" if may_be_empty => Ok(None),
        text => MaskFile::parse(text).map(Some),
    })?;
    Ok(mask.flatten())
}
