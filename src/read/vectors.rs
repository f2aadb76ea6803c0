//! Which IRQ serves which queue of which interface.
//!
//! A vector belongs to a device because the kernel lists it in the device's `msi_irqs` (or as its `INTx` line) or
//! reports it over netlink, never because a name looks similar. If no queue of the device is known, its vectors carry
//! packets of unknown queues; otherwise vectors that are not understood are listed and left unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use itertools::Itertools as _;

use crate::cpuset::CpuSet;
use crate::drivers::Numbering::{Lent, Mlx4, Plain, Realtek};
use crate::drivers::{
    ActionName, DriverPatterns, Fact, RTL8125B, RTL8125D, Taught, in_device_tree,
};
use crate::machine::files::{IRQ_FILES, NET, affinity_file};
use crate::machine::netdev::Netdev;
use crate::machine::others::Rdma;
use crate::machine::{
    HandlerNames, Interface, MaskFile, Role, Sharer, Source, UnknownVector, Vector,
};
use crate::read::delivery;
use crate::read::device::hex;
use crate::read::files::{node as numa_node, read_affinity, read_effective};
use crate::read::handlers::Handlers;
use crate::read::members::{Members, Port, classified, controller};
use crate::read::mlx4::Pools;
use crate::read::names::{KnownInterface, NamedVector, VectorUse, place_by_name};
use crate::read::queues::settle;
use crate::root::tree::TreeFile;
use crate::root::{Result, Root};

/// `rdma`: the machine's RDMA devices; `taught`: drivers that the policy teaches. Returns the CPUs of `cards`, the IRQs
/// of functions without an interface, and of IRQs that a device has lent to others.
pub(crate) fn read(
    root: &Root,
    handlers: &Handlers<'_>,
    interfaces: &mut [Interface],
    rdma: &[Rdma],
    taught: &[Taught],
    cards: &[u32],
) -> Result<CpuSet> {
    let several = interfaces_over_functions(interfaces);
    let mut driver_devices: BTreeMap<Option<String>, BTreeSet<String>> = BTreeMap::new();
    for Interface { driver, device, .. } in &*interfaces {
        let devices = driver_devices.entry(driver.clone()).or_default();
        devices.insert(device.address.clone());
    }
    let mut others = cards.to_vec();
    let mut devices: BTreeMap<String, Vec<Port>> = BTreeMap::new();
    for interface in interfaces {
        interface.channel_vectors = interface.has_fact(Fact::ChannelVectors);
        let has_engine = interface.has_fact(Fact::OneEngine);
        let engine = interface.driver.clone().filter(|_| has_engine);
        let device = engine.unwrap_or_else(|| interface.device.address.clone());
        let taught = taught.iter().find(|row| interface.has_driver(&row.name));
        devices.entry(device).or_default().push(Port {
            patterns: DriverPatterns::of(interface.driver.as_deref(), taught),
            reported: (interface.netdev.as_ref())
                .map(Netdev::by_irq)
                .unwrap_or_default(),
            is_only: has_engine || driver_devices[&interface.driver].len() == 1,
            is_numbered: !interface.without_netdev && !several.contains(&interface.name),
            interface,
        });
    }
    for (device, ports) in &mut devices {
        // IRQs whose names do not tell are those of the function's own interface.
        ports.sort_by_key(|port| (port.interface.port, port.interface.device.is_parent));
        let has_rdma = rdma.iter().any(|rdma| rdma.device.as_ref() == Some(device));
        others.extend(read_device(root, handlers, ports, has_rdma)?);
    }
    let interfaces = devices.into_values().flatten();
    let interfaces = interfaces.map(|port| port.interface).collect();
    delivery::read(root, handlers, interfaces, &others)
}

/// Interfaces that may have queues on another function, too, like a card in two slots (Socket Direct): a function of
/// the same kind in another slot has no interface, and netlink does not report the queues.
fn interfaces_over_functions(interfaces: &[Interface]) -> BTreeSet<String> {
    let slot = |interface: &Interface| {
        let slot = interface.device.address.rsplit_once(':');
        slot.map(|(slot, _)| slot.to_owned())
    };
    let whole = interfaces
        .iter()
        .filter(|interface| interface.device.parent.is_none());
    let is_over = |interface: &&Interface| {
        let has_unnumbered = || interface.napis().all(|napi| napi.irq.is_none());
        let may_be_over = |other: &Interface| {
            other.without_netdev
                && other.driver == interface.driver
                && other.device.pci_id == interface.device.pci_id
                && slot(other) != slot(interface)
        };
        interface.has_fact(Fact::ChannelsAlternate)
            && has_unnumbered()
            && whole.clone().any(may_be_over)
    };
    let over = whole.clone().filter(is_over);
    over.map(|interface| interface.name.clone()).collect()
}

/// Reads the vectors of one device, into the interfaces on it. Returns the IRQs that it has lent to others.
fn read_device(
    root: &Root,
    handlers: &Handlers<'_>,
    ports: &mut [Port],
    has_rdma: bool,
) -> Result<Vec<u32>> {
    let pools = Pools::read(root, ports, has_rdma)?;
    if let Some(found) = controller(handlers, ports[0].interface)? {
        for port in &mut *ports {
            port.interface.device.controller = Some(found.clone());
        }
    }
    let members = Members::read(handlers, ports)?;
    let mut named = vec![Vec::new(); ports.len()];
    for (irq, actions) in &members.requested {
        let is_reported = |port: &Port| port.reported.contains_key(irq);
        match classify_irq(ports, pools, &members, *irq, actions) {
            // If names contain no interface, all vectors belong to the first port by name; netlink is more exact.
            Some((owner, vector))
                if is_reported(&ports[owner]) || !ports.iter().any(is_reported) =>
            {
                named[owner].push(vector);
            }
            None if !ports.iter().any(is_reported) => {
                let mut owners = actions
                    .iter()
                    .filter_map(|action| port_named_in(ports, action));
                let owner = owners.next().unwrap_or(0);
                ports[owner].interface.unknown_vectors.push(UnknownVector {
                    irq: *irq,
                    action: HandlerNames::new(actions.clone()),
                });
            }
            _ => {}
        }
    }
    let lent = named.iter().flatten();
    let lent = lent.filter(|vector| vector.named.numbering == Lent);
    let lent = lent.map(|vector| vector.irq).collect_vec();
    let are_all = ports
        .iter()
        .all(|port| port.interface.unknown_vectors.is_empty());
    let is_alone = ports.len() == 1;
    for (port, mut named) in ports.iter_mut().zip(named) {
        let interface = &mut *port.interface;
        tell_chips_apart(root, interface, &mut named)?;
        let known = KnownInterface {
            driver: port.patterns.driver,
            rx_queues: interface.rx_queues.len(),
            tx_queues: interface.tx_queues.len(),
            are_all,
            is_alone,
        };
        place_by_name(known, &mut named);
        let settled = settle(interface, &named, &port.reported, |irq| handlers.of(irq))?;
        for (found, placed) in settled {
            add_vector(root, port, found, placed)?;
        }
    }
    add_data_vectors(root, ports, members.are_all)?;
    for port in &mut *ports {
        if !port.is_numbered || pools.are_shared && port.reported.is_empty() {
            let vectors = port.interface.vectors.iter_mut();
            for vector in vectors.filter(|vector| vector.role.is_queue()) {
                (vector.role, vector.queue) = (Role::Data, None);
            }
        }
    }
    share(ports);
    for Port { interface, .. } in ports {
        let mut vectors = take(&mut interface.vectors);
        if interface.device.irqs.is_empty() && !vectors.is_empty() {
            // Before Linux 6.12 the mode of the file does not show it.
            let per_cpu = handlers.per_cpu()?;
            for vector in &mut vectors {
                vector.movable &= vector.affinity.cpus.len() < 2 || !per_cpu.contains(&vector.irq);
            }
        }
        // Both drivers use a vector for a queue and for RDMA; vectors beyond the queues serve RDMA alone.
        if has_rdma && interface.has_fact(Fact::QueuesAndRdma) {
            for vector in vectors
                .iter_mut()
                .filter(|vector| interface.is_idle(vector))
            {
                vector.role = Role::Rdma;
                // mlx4 counts them over all ports.
                vector.queue = vector
                    .queue
                    .map(|queue| queue + pools.each.unwrap_or(0) * interface.port);
            }
        }
        vectors.sort_unstable_by_key(|vector| {
            let Vector {
                role, queue, irq, ..
            } = *vector;
            (!role.is_queue(), role == Role::Control, queue, role, irq)
        });
        interface.vectors = vectors;
    }
    Ok(lent)
}

/// By the revision of r8125's chip: 5 at most is RTL8125B, 0x0c RTL8125D; of others it is not known which vectors send.
fn tell_chips_apart(
    root: &Root,
    interface: &Interface,
    named: &mut [NamedVector<'_>],
) -> Result<()> {
    let numbered = named.iter_mut().map(|vector| &mut vector.named.numbering);
    let mut of_b = numbered
        .filter(|numbering| **numbering == RTL8125B)
        .peekable();
    if of_b.peek().is_none() {
        return Ok(());
    }
    let revision = format!("{NET}/{}/device/revision", interface.name);
    let chip = match root.read_as(&revision, hex)? {
        Some(0x0c) => RTL8125D,
        Some(6..) => Realtek(None),
        _ => RTL8125B,
    };
    of_b.for_each(|numbering| *numbering = chip);
    Ok(())
}

/// If no queue is known, all vectors but control vectors carry the packets. A single one serves all queues if `are_all`
/// (the device's IRQs are known) or there is one queue.
fn add_data_vectors(root: &Root, ports: &mut [Port], are_all: bool) -> Result<()> {
    // A vector that a row calls `data` tells no queue.
    let tells_queue = |port: &Port| {
        let mut vectors = port.interface.queue_vectors();
        vectors.any(|vector| vector.role != Role::Data)
    };
    if ports.iter().any(tells_queue) {
        return Ok(());
    }
    let is_single = ports.len() == 1;
    for port in ports {
        let interface = &mut *port.interface;
        let unknown = take(&mut interface.unknown_vectors);
        let has_one_queue = interface.rx_queues.len() <= 1 && interface.tx_queues.len() <= 1;
        let serves = match &unknown[..] {
            [_] if is_single && !has_queues(port) && (has_one_queue || are_all) => {
                (Role::Combined, Some(0))
            }
            _ => (Role::Data, None),
        };
        let placed = VectorUse {
            serves,
            source: Source::Order,
            told: None,
        };
        for found in unknown {
            add_vector(root, port, found, placed)?;
        }
    }
    Ok(())
}

fn add_vector(
    root: &Root,
    port: &mut Port,
    found: UnknownVector,
    placed: VectorUse<'_>,
) -> Result<()> {
    match read_vector(root, port.interface, &found, placed)? {
        Some(vector) => port.interface.vectors.push(vector),
        None => port.interface.vanished_vectors.push(found),
    }
    Ok(())
}

fn has_queues(port: &Port) -> bool {
    port.interface.queue_vectors().next().is_some()
}

/// Ports without queue vectors share another port's, if names contain no interface, or none that the device has.
fn share(ports: &mut [Port]) {
    for at in 0..ports.len() {
        let own = &ports[at];
        if has_queues(own) {
            continue;
        }
        let is_port = |name: &str| ports.iter().any(|port| port.interface.name == name);
        let is_anonymous = |name: &str| {
            !classified(ports, name).any(|named| named.interface.is_some_and(is_port))
                && port_named_in(ports, name).is_none()
        };
        let has_anonymous = |port: &usize| {
            let mut vectors = ports[*port].interface.queue_vectors();
            vectors.any(|vector| vector.action.iter().all(is_anonymous))
        };
        let mut owners = (0..ports.len()).filter(has_anonymous);
        // The owner's driver uses the same names; sub-functions without vectors share those of their parent.
        let is_own = |name: &str| {
            let named = own.patterns.classify(name);
            named.is_some_and(|named| named.role.is_queue())
        };
        let alike = owners.clone().find(|&port| {
            let vectors = ports[port].interface.queue_vectors();
            let mut names = vectors.flat_map(|vector| vector.action.iter());
            names.any(is_own)
        });
        let Some(owner) =
            alike.or_else(|| owners.next().filter(|_| own.interface.vectors.is_empty()))
        else {
            continue;
        };
        let sharer = Sharer {
            name: own.interface.name.clone(),
            rx: own.interface.rx_queues.len(),
            tx: own.interface.tx_queues.len(),
        };
        let owner = &mut *ports[owner].interface;
        owner.sharing.push(sharer);
        let (name, vectors) = (owner.name.clone(), owner.queue_vectors().cloned());
        let mut vectors = vectors.collect_vec();
        let own = &mut *ports[at].interface;
        // Steering follows the CPUs of the queues' vectors, which are planned as the owner's.
        vectors.retain(|vector| vector.role != Role::Data && !own.is_idle(vector));
        if own.has_fact(Fact::PortsShareQueues) {
            own.vectors.extend(vectors);
        }
        own.shares_vectors_of = Some(name);
    }
}

/// The port with whose name the vector's begins: `eth0d1 ring 3` is not of `eth0`.
fn port_named_in(ports: &[Port], action: &str) -> Option<usize> {
    let name = |port: usize| &*ports[port].interface.name;
    let is_own = |port: &usize| {
        let rest = action.strip_prefix(name(*port));
        rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    let own = (0..ports.len()).filter(is_own);
    own.max_by_key(|port| name(*port).len())
}

/// Role and port of a vector by its names. If an IRQ is shared or ports have several drivers, a queue vector takes
/// precedence over a control vector.
fn classify_irq<'a>(
    ports: &[Port<'a>],
    pools: Pools,
    members: &'a Members,
    irq: u32,
    actions: &'a [String],
) -> Option<(usize, NamedVector<'a>)> {
    let in_tree = members.in_tree.get(&irq);
    let by_tree = in_tree.and_then(|name| in_device_tree(name.as_deref()?));
    actions
        .iter()
        .cartesian_product(0..ports.len())
        .filter_map(|(action, port)| {
            let Port {
                interface,
                patterns,
                ..
            } = &ports[port];
            let by_name = match patterns.classify(action) {
                // An interface may be named like a queue's vector: `eth-TxRx-1`.
                Some(named) if *action == interface.name && named.interface != Some(action) => {
                    let bare = patterns.classify("eth0");
                    bare.map(|bare| ActionName {
                        interface: Some(action),
                        ..bare
                    })
                }
                named => named,
            };
            // Names that are only the interface or the device do not distinguish several IRQs.
            let is_bare = |name: &ActionName<'_>| {
                name.numbering == Plain || *action == interface.device.address
            };
            let mut named = by_name
                .filter(|name| by_tree.is_none() || !is_bare(name))
                .or(by_tree)?;
            let mut owner = owner(ports, port, &named, in_tree.is_some())?;
            if named.numbering == Mlx4 {
                owner = pools.find(&mut named, ports).unwrap_or(owner);
            }
            Some((
                owner,
                NamedVector {
                    irq,
                    action,
                    named,
                    placed: None,
                },
            ))
        })
        .min_by_key(|(_, vector)| !vector.named.role.is_queue())
}

/// A name without an interface belongs to the port by whose driver it was read; one from before a rename, to the only
/// port.
fn owner(ports: &[Port], port: usize, named: &ActionName<'_>, is_in_tree: bool) -> Option<usize> {
    let Some(name) = named.interface else {
        return Some(port);
    };
    // A single word is not enough: drivers that use the bare interface name follow renames.
    let renamed = ports.len() == 1
        && (is_in_tree || !ports[port].interface.device.irqs.is_empty())
        && named.numbering != Plain;
    ports
        .iter()
        .position(|port| port.interface.name == name)
        .or(renamed.then_some(port))
}

fn read_vector(
    root: &Root,
    interface: &Interface,
    UnknownVector { irq, action }: &UnknownVector,
    placed: VectorUse<'_>,
) -> Result<Option<Vector>> {
    let irq = *irq;
    let path = format!("{IRQ_FILES}/{irq}");
    // An interface may have two PCI functions, one on each node.
    let node = if interface.device.may_have(irq) {
        None
    } else {
        root.read_as(&format!("{path}/node"), numa_node)?.flatten()
    };
    let file = affinity_file(irq);
    // With one CPU no IRQ can be moved, and none has to; kernels without `CONFIG_SMP` have no such files.
    let has_one_cpu = || -> Result<bool> {
        let possible = root.read_as("/sys/devices/system/cpu/possible", CpuSet::parse_list)?;
        Ok(possible == Some(CpuSet::single(0)))
    };
    let (text, movable) = match read_affinity(root, &file)? {
        Some(TreeFile { mode, text }) => {
            let is_kept = placed.serves.1.is_some() && interface.has_fact(Fact::KeepsAffinity);
            (text, mode & 0o200 != 0 && !is_kept || has_one_cpu()?)
        }
        None if root.exists(&path) && has_one_cpu()? => ("1".into(), true),
        None => return Ok(None),
    };
    let (role, queue) = placed.serves;
    Ok(Some(Vector {
        irq,
        action: action.clone(),
        role,
        queue,
        source: placed.source,
        row: placed.told.map(|told| told.to_string()),
        node,
        affinity: MaskFile::parse(&text).map_err(|reason| root.content_error(&file, reason))?,
        effective: read_effective(root, irq)?,
        counted: None,
        movable,
    }))
}
