//! Network interfaces with a device, and the bonds, VLANs and bridges on them, from `/sys/class/net`
//! (`Documentation/ABI/testing/sysfs-class-net`, `Documentation/networking/napi.rst`).

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use itertools::Itertools as _;
use nix::errno::Errno;

use crate::cpuset::MAX_CPUS;
use crate::drivers::Fact;
use crate::machine::files::NET;
use crate::machine::interface::natural;
use crate::machine::others::Virtual;
use crate::machine::{Interface, Machine, Polling, Stacked, VmbusChannel};
use crate::read::device::{hex, read_device, read_driver};
use crate::read::files::{Dir, name_in, number};
use crate::read::links::Lower;
use crate::read::others::{self, PCI};
use crate::read::queue_files::read_queues;
use crate::read::{ReadOptions, ethtool};
use crate::root::{Result, Root};

/// Sixteen times the 256 functions of a PCI bus.
const MAX_INTERFACES: usize = 4096;

pub(crate) fn read(root: &Root, options: ReadOptions<'_>) -> Result<Machine> {
    let mut listed = Machine::default();
    let names = root
        .read_names(NET)?
        .into_iter()
        // bonding_masters is a file beside the interfaces.
        .filter(|name| name != "bonding_masters")
        // The kernel allows no white space (`dev_valid_name`): in a tree it could end up in a script.
        .map(|name| name.replace(char::is_whitespace, "\u{fffd}"))
        .sorted_unstable_by_key(|name| natural(name));
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
        let bus = others::other_bus(&net)?;
        let device = own_device(&net, !lowers.is_empty())?.filter(|_| bus.is_none());
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
                kind: match bus {
                    Some(bus) => bus.to_owned(),
                    None => others::kind(&net, devtype.as_deref())?,
                },
                devtype,
                is_other_bus: bus.is_some(),
            });
        } else {
            listed.stacked.push(Stacked {
                kind: match devtype {
                    None if net.is_there("device")? => Some("failover".to_owned()),
                    None => vrf(&net)?,
                    kind => kind,
                },
                name,
                lowers,
            });
        }
    }
    place_above(&mut listed);
    stack_representors(&mut listed, options.settings_only);
    name_ports(root, &mut listed.interfaces)?;
    Ok(listed)
}

/// The device by which packets reach the interface itself. Those of a port of a switch (DSA) and of `net_failover`
/// arrive by the interfaces below, though both have a device; `hv_netvsc` has channels of its own beside its lower
/// interface. Devices below `/sys/devices/virtual` (VDUSE) have no interrupts.
fn own_device<'a>(net: &Dir<'a>, has_lowers: bool) -> Result<Option<Dir<'a>>> {
    let Some(device) = net.canonical("device")? else {
        return Ok(None);
    };
    let is_layer = has_lowers && device.link_name("subsystem")?.as_deref() != Some("vmbus");
    let is_virtual = device.path.starts_with("/sys/devices/virtual/");
    Ok((!is_layer && !is_virtual).then_some(device))
}

/// Makes representors, which have the card's device, layers of the card's own interface: their packets arrive by its IRQs
/// (`Documentation/networking/representors.rst`). Beside a `n0` of nfp, the physical ports are such, too. `keep`: for
/// records of versions that planned them; they only come after the card's own, which has the IRQs.
fn stack_representors(listed: &mut Machine, keep: bool) {
    let has_kind = |interface: &Interface, kinds: &[&[&str]]| {
        let port = interface.port_name.as_deref().unwrap_or_default();
        kinds.iter().any(|kind| is_numbered(port, kind))
    };
    let of_nfp: BTreeSet<String> = (listed.interfaces.iter())
        .filter(|interface| has_kind(interface, &[&["n"]]))
        .map(|interface| interface.device.address.clone())
        .collect();
    let (representors, mut interfaces): (Vec<_>, Vec<_>) = take(&mut listed.interfaces)
        .into_iter()
        .partition(|interface| {
            has_kind(interface, &REPRESENTORS)
                || of_nfp.contains(&interface.device.address)
                    && has_kind(interface, &[&["p"], &["p", "s"]])
        });
    let mut own = BTreeMap::<_, Vec<_>>::new();
    for interface in &interfaces {
        let of_device = own.entry(interface.device.address.clone()).or_default();
        of_device.push(interface.name.clone());
    }
    for representor in representors {
        match own.get(&representor.device.address) {
            Some(lowers) if !keep => listed.stacked.push(Stacked {
                kind: Some("representor".to_owned()),
                name: representor.name,
                lowers: lowers.clone(),
            }),
            _ => interfaces.push(representor),
        }
    }
    listed.interfaces = interfaces;
}

/// The names of their ports (`devlink_port_attrs`): of functions, virtual ones and sub-functions, also of another host.
const REPRESENTORS: [&[&str]; 6] = [
    &["pf"],
    &["pf", "vf"],
    &["pf", "sf"],
    &["c", "pf"],
    &["c", "pf", "vf"],
    &["c", "pf", "sf"],
];

/// Whether a name is these words, each with a number behind it.
fn is_numbered(name: &str, words: &[&str]) -> bool {
    let rest = words.iter().try_fold(name, |rest, word| {
        let number = rest.strip_prefix(word)?;
        let rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
        (rest.len() < number.len()).then_some(rest)
    });
    rest == Some("")
}

/// Makes virtual interfaces layers of the interface below them, if only netlink reports it and `/sys` does not.
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
        .sort_unstable_by_key(|interface| natural(&interface.name));
}

/// Hyper-V reports of a card the node of its first channel's CPU; its packets arrive on the virtual function below.
fn place_above(listed: &mut Machine) {
    let node = |lower: &String| listed.interface(lower).map(|lower| lower.device.node);
    let above = listed.stacked.iter().filter_map(|stacked| {
        let below = stacked.lowers.iter().filter_map(node).all_equal_value();
        Some((stacked.name.clone(), below.ok()??))
    });
    let above: BTreeMap<_, _> = above.collect();
    for interface in &mut listed.interfaces {
        if let Some(node) = above.get(&interface.name) {
            interface.device.node = Some(*node);
        }
    }
}

/// A VRF has `IFF_NOARP`, a team has not; neither has a `DEVTYPE`.
fn vrf(net: &Dir) -> Result<Option<String>> {
    const IFF_NOARP: u32 = 0x80;
    let flags = net.read_as("flags", hex)?;
    let is_vrf = flags.is_some_and(|flags| flags & IFF_NOARP != 0);
    Ok(is_vrf.then(|| "vrf".to_owned()))
}

/// Numbers the interfaces of one device and port by their age, which stays when they are renamed: `0`, `0.1`, `0.2`.
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
        by_age.sort_unstable_by_key(|(index, _)| *index);
        for (age, (_, interface)) in by_age.into_iter().enumerate().skip(1) {
            interface.port_name = Some(format!("{}.{age}", interface.port));
        }
    }
    Ok(())
}

/// `None` if it was removed meanwhile; ESTALE if its pinned queues are no longer those of its device.
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
    // The other end of `xennet` is on this bus and has no such function.
    let is_backend = bus.as_deref() == Some("xen-backend");
    interface.picks_tx_queue = interface.has_fact(Fact::PicksTxQueue) && !is_backend
        || others::devtype(net)?.as_deref() == Some("wlan");
    if !interface.in_other_namespace {
        if !options.drivers.is_empty() {
            interface.ethtool_driver = ethtool::driver_name(root, name)?;
        }
        let (channels, asked) = ethtool::channels(root, name)?;
        let fixed = interface.has_fact(Fact::FixedChannels);
        interface.channels = channels.map(|now| if fixed { now.without_more() } else { now });
        interface.channels_fixed = fixed || asked && channels.is_none();
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
    interface.is_down = flags.is_some_and(|flags| flags % 2 == 0);
    interface.link = read_link_state(net, flags.is_some() && !interface.is_down)?;
    interface.speed_mbps = read_speed(net)?;
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

/// A PCI function without an interface here; `None` for InfiniBand, whose IRQs belong to RDMA.
///
/// The kernel makes a directory `net` below a device with interfaces, and shows in it only those of the reader's
/// namespace (`class_dir_create_and_add` in `drivers/base/core.c`).
pub(crate) fn read_function(
    root: &Root,
    address: &str,
    options: ReadOptions<'_>,
) -> Result<Option<Interface>> {
    let link = format!("{PCI}/{address}");
    if others::class(root, &link)?.starts_with("0x0207") {
        return Ok(None);
    }
    let link = root.dir(root.canonical(&link)?.unwrap_or(link));
    let driver = read_driver(&link)?;
    let mut has_netdev = link.is_there("net")?;
    if driver.as_deref() == Some("virtio_net") {
        // The device of the interface is below the function.
        let children = link.names()?;
        for name in children.iter().filter(|name| name.starts_with("virtio")) {
            has_netdev |= link.dir(name).is_there("net")?;
        }
    }
    Ok(Some(Interface {
        name: address.to_owned(),
        driver,
        in_other_namespace: true,
        without_netdev: !has_netdev,
        device: read_device(&link, Some("pci"), options)?,
        link: "unknown".to_owned(),
        ..Interface::default()
    }))
}

/// In Mbit/s. Drivers report an unknown speed as 0, as -1 (also unsigned), or as an error, which a copied tree has as
/// an empty file.
fn read_speed(net: &Dir) -> Result<Option<u32>> {
    Ok(net
        .read_as("speed", |text| match text.trim() {
            "" => Ok(0),
            text => number::<i64>(text),
        })?
        .and_then(|mbps| u32::try_from(mbps).ok())
        .filter(|&mbps| mbps != 0 && mbps != u32::MAX))
}

/// The kernel's word; if the driver does not report the link, it is up while the interface is.
fn read_link_state(net: &Dir, is_up: bool) -> Result<String> {
    let state = net.read_text("operstate")?;
    let state = match name_in(&state).split_whitespace().next() {
        Some(state) if state != "unknown" => state,
        _ if is_up => "up",
        _ => "down",
    };
    Ok(state.to_owned())
}

fn read_vmbus(channels: &Dir) -> Result<Vec<VmbusChannel>> {
    let mut found = Vec::new();
    for name in channels.names()? {
        found.extend(channels.dir(&name).read_as("cpu", |text| {
            let cpu = number(text)?;
            let id = name.parse().ok().filter(|_| cpu < MAX_CPUS);
            let channel = id.map(|id| VmbusChannel { id, cpu });
            channel.ok_or("is not the CPU of a channel".to_owned())
        })?);
    }
    found.sort_unstable_by_key(|channel| channel.id);
    Ok(found)
}
