//! Which IRQ serves which queue of which interface.
//!
//! Membership comes first: a vector is a device's because the kernel lists it in the device's `msi_irqs`
//! (or as its `INTx` line) or reports it over netlink, never because a name looks similar. Its role and queue come from
//! netlink if the driver supports it ([`netlink`](super::netlink)), else from its name ([`drivers`](crate::drivers)), else,
//! for a few drivers, from the order of the vectors. Where none of these tells a queue of the device, its vectors carry
//! packets of queues that are not known; beside vectors whose queues are known one that is not understood is listed and left
//! unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use itertools::Itertools as _;

use crate::cpuset::CpuSet;
use crate::drivers::Numbering::{self, Mlx4, Plain, Queue};
use crate::drivers::{ActionName, Driver, DriverPatterns, Fact, Taught, in_device_tree};
use crate::machine::netdev::Netdev;
use crate::machine::others::Rdma;
use crate::machine::setting::{IRQ_FILES, NET, affinity_file};
use crate::machine::{Interface, MaskFile, Role, Sharer, Source, UnknownVector, Vector};
use crate::read::files::{node as numa_node, read_affinity, read_effective};
use crate::read::interfaces::irqs_of;
use crate::read::interrupts::{Handlers, INTERRUPTS, POSSIBLE, counts};
use crate::read::others::PCI;
use crate::read::queues::{NamedVector, Reported, VectorUse, place, settle};
use crate::root::tree::TreeFile;
use crate::root::{Result, Root};

/// One of a device's interfaces, and what is known of its vectors.
struct Port<'a> {
    interface: &'a mut Interface,
    patterns: &'a DriverPatterns<'a>,
    reported: Reported,
    /// The handlers' names of its queue vectors.
    queue_names: Vec<String>,
    /// Whether no other device has its driver, or all have the same IRQs.
    is_only: bool,
    /// Whether names tell which queues its vectors serve.
    is_numbered: bool,
}

/// Reads the vectors of all interfaces, device by device. `rdma`: the machine's RDMA devices; `taught`: drivers that the
/// policy teaches. `cards`: the IRQs of functions without an interface that are not read here; returns the CPUs on which they
/// interrupt.
pub(crate) fn read(
    root: &Root,
    handlers: &Handlers<'_>,
    interfaces: &mut [Interface],
    rdma: &[Rdma],
    taught: &[Taught],
    cards: &[u32],
) -> Result<CpuSet> {
    let patterns = interfaces.iter().map(|of| {
        let mut taught = taught.iter();
        let taught = taught.find(|row| of.has_driver(&row.name));
        DriverPatterns::of(of.driver.as_deref(), taught)
    });
    let patterns = patterns.collect_vec();
    let several = over_several(interfaces);
    let mut of_drivers: BTreeMap<Option<String>, BTreeSet<String>> = BTreeMap::new();
    for Interface { driver, device, .. } in &*interfaces {
        let devices = of_drivers.entry(driver.clone()).or_default();
        devices.insert(device.address.clone());
    }
    let mut devices: BTreeMap<String, Vec<Port>> = BTreeMap::new();
    for (interface, patterns) in interfaces.iter_mut().zip(&patterns) {
        let has_engine = Driver::has(interface.driver.as_deref(), Fact::OneEngine);
        let driver = interface.driver.clone().filter(|_| has_engine);
        devices
            .entry(driver.unwrap_or_else(|| interface.device.address.clone()))
            .or_default()
            .push(Port {
                patterns,
                reported: interface
                    .netdev
                    .as_ref()
                    .map(Netdev::by_irq)
                    .unwrap_or_default(),
                queue_names: Vec::new(),
                is_only: has_engine || of_drivers[&interface.driver].len() == 1,
                is_numbered: !interface.without_netdev && !several.contains(&interface.name),
                interface,
            });
    }
    for (device, ports) in &mut devices {
        ports.sort_by_key(|port| port.interface.port);
        let has_rdma = rdma.iter().any(|rdma| rdma.device.as_ref() == Some(device));
        read_device(root, handlers, ports, has_rdma)?;
    }
    let interfaces = devices.values_mut().flatten();
    let interfaces = interfaces.map(|port| &mut *port.interface).collect_vec();
    let unclaimed = unclaimed(root, handlers, &interfaces, cards)?;
    count(root, interfaces, cards, &unclaimed)
}

/// The IRQs that no device is known to have, if there is an interface of which none is known.
fn unclaimed(
    root: &Root,
    handlers: &Handlers<'_>,
    interfaces: &[&mut Interface],
    cards: &[u32],
) -> Result<BTreeSet<u32>> {
    if !interfaces.iter().any(|of| of.may_have_any()) {
        return Ok(BTreeSet::new());
    }
    let mut irqs = handlers.of_devices()?;
    let known = interfaces.iter().flat_map(|of| {
        let vectors = of.vectors.iter().map(|vector| vector.irq);
        vectors.chain(of.unknown_vectors.iter().map(|vector| vector.irq))
    });
    for irq in known.chain(cards.iter().copied()) {
        irqs.remove(&irq);
    }
    for address in root.read_names(PCI)? {
        for irq in irqs_of(root, &address)? {
            irqs.remove(&irq);
        }
    }
    irqs.retain(|&irq| root.exists(&affinity_file(irq)));
    Ok(irqs)
}

/// The interfaces that may have queues on another function, too, as that of a card in two slots (Socket Direct): where a
/// function of the same kind in another slot has no interface, and netlink does not tell the queues.
fn over_several(interfaces: &[Interface]) -> BTreeSet<String> {
    let slot = |of: &Interface| {
        of.device
            .address
            .rsplit_once(':')
            .map(|(bus, _)| bus.to_owned())
    };
    let may_be_over = |of: &Interface, other: &Interface| {
        other.without_netdev
            && other.driver == of.driver
            && other.device.pci_id == of.device.pci_id
            && slot(other) != slot(of)
    };
    let whole = |of: &&Interface| of.device.parent.is_none();
    interfaces
        .iter()
        .filter(whole)
        .filter(|of| Driver::has(of.driver.as_deref(), Fact::ChannelsAlternate))
        .filter(|of| of.napis().all(|napi| napi.irq.is_none()))
        .filter(|of| {
            interfaces
                .iter()
                .filter(whole)
                .any(|other| may_be_over(of, other))
        })
        .map(|of| of.name.clone())
        .collect()
}

/// Where interrupts were counted, for those of which the kernel does not report where they are (powerpc, s390, x86 before
/// Linux 4.14) and whose affinity does not tell it. The same of IRQs that are not understood, of those that are `unclaimed`,
/// and of `cards`, for which it returns the CPUs.
fn count(
    root: &Root,
    mut interfaces: Vec<&mut Interface>,
    cards: &[u32],
    unclaimed: &BTreeSet<u32>,
) -> Result<CpuSet> {
    let mut others = BTreeMap::new();
    let unknown = interfaces.iter().flat_map(|of| &of.unknown_vectors);
    let beside = cards.iter().chain(unclaimed).copied();
    let controllers = interfaces.iter().flat_map(|of| of.device.by_controller());
    let beside = beside.chain(controllers.copied());
    for irq in unknown.map(|of| of.irq).chain(beside) {
        others.insert(irq, told(root, irq)?);
    }
    let untold =
        |vector: &&mut Vector| vector.effective.is_none() && vector.affinity.cpus.len() > 1;
    let vectors = interfaces.iter_mut().flat_map(|of| &mut of.vectors);
    let vectors = vectors.filter(untold).collect_vec();
    let untold = others.iter().filter(|(_, told)| told.is_none());
    let irqs = vectors.iter().map(|vector| vector.irq);
    let irqs: BTreeSet<u32> = irqs.chain(untold.map(|(irq, _)| *irq)).collect();
    let seen = counted(root, &irqs)?;
    for vector in vectors {
        let seen = seen.get(&vector.irq).cloned().unwrap_or_default();
        let seen = seen.intersection(&vector.affinity.cpus);
        vector.counted = Some(seen).filter(|seen| !seen.is_empty());
    }
    let on = |irq: u32| {
        let told = others.get(&irq).cloned().flatten();
        told.or_else(|| seen.get(&irq).cloned()).unwrap_or_default()
    };
    for interface in interfaces {
        let unknown = interface.unknown_vectors.iter();
        let unclaimed = unclaimed.iter().filter(|_| interface.may_have_any());
        let irqs = unknown.map(|of| of.irq).chain(unclaimed.copied());
        let irqs = irqs.chain(interface.device.by_controller().iter().copied());
        interface.unknown_vector_cpus = CpuSet::union_of(irqs.map(on));
    }
    Ok(CpuSet::union_of(cards.iter().map(|irq| on(*irq))))
}

/// The CPUs on which an IRQ interrupts, where the kernel reports it or its affinity has one.
fn told(root: &Root, irq: u32) -> Result<Option<CpuSet>> {
    let effective = read_effective(root, irq)?;
    if effective.is_some() {
        return Ok(effective);
    }
    let affinity = read_affinity(root, &affinity_file(irq))?;
    let affinity = affinity.and_then(|file| CpuSet::parse_kernel_mask(&file.text).ok());
    Ok(affinity.filter(|cpus| cpus.len() == 1))
}

/// The CPUs on which interrupts of these IRQs were counted since boot.
fn counted(root: &Root, irqs: &BTreeSet<u32>) -> Result<BTreeMap<u32, CpuSet>> {
    if irqs.is_empty() || !root.exists(INTERRUPTS) {
        return Ok(BTreeMap::new());
    }
    // A capture keeps no counts.
    root.gist("/nicpin/counted", || {
        // What cannot be read is not known.
        let counts = counts(root, irqs).unwrap_or_default();
        let seen = counts.rows.iter().map(|(&irq, row)| {
            let on = counts.cpus.iter().zip(&row.counts);
            let on = on.filter(|(_, count)| **count > 0).map(|(cpu, _)| *cpu);
            (irq, on.collect::<CpuSet>())
        });
        seen.collect::<BTreeMap<_, _>>()
    })
}

fn read_device(
    root: &Root,
    handlers: &Handlers<'_>,
    ports: &mut [Port],
    has_rdma: bool,
) -> Result<()> {
    let pools = Pools::read(root, ports, has_rdma)?;
    let first = &ports[0].interface;
    let found = match &first.device.controller {
        Some(known) => Some(the_controller(
            handlers,
            &first.device.address,
            known.clone(),
        )?),
        None if first.vmbus.is_some() => of_vmbus(handlers)?,
        None => None,
    };
    if let Some(found) = found {
        for Port { interface, .. } in &mut *ports {
            interface.device.controller = Some(found.clone());
        }
    }
    let members = Members::read(handlers, ports)?;
    let mut named = vec![Vec::new(); ports.len()];
    for (irq, actions) in &members.requested {
        let is_reported = |port: &Port| port.reported.contains_key(irq);
        match understand(ports, pools, &members, *irq, actions) {
            // By names without an interface all vectors belong to the first port; netlink is more exact.
            Some((owner, vector))
                if is_reported(&ports[owner]) || !ports.iter().any(is_reported) =>
            {
                named[owner].push(vector);
            }
            None if !ports.iter().any(is_reported) => {
                ports[0].interface.unknown_vectors.push(UnknownVector {
                    irq: *irq,
                    action: actions.join(", "),
                });
            }
            _ => {}
        }
    }
    let action = |irq: u32| {
        let actions = handlers.of(irq)?;
        Ok((!actions.is_empty()).then(|| actions.join(", ")))
    };
    let are_all = ports[0].interface.unknown_vectors.is_empty();
    let is_alone = ports.len() == 1;
    for (port, mut named) in ports.iter_mut().zip(named) {
        let interface = &mut *port.interface;
        place(
            port.patterns.driver,
            &mut named,
            (interface.rx_queues.len(), interface.tx_queues.len()),
            (are_all, is_alone),
        );
        for (irq, action, placed) in settle(interface, &named, &port.reported, action)? {
            if placed.serves.0.is_queue() {
                port.queue_names.push(action.clone());
            }
            match read_vector(root, interface, irq, &action, placed)? {
                Some(vector) => interface.vectors.push(vector),
                None => interface
                    .vanished_vectors
                    .push(UnknownVector { irq, action }),
            }
        }
    }
    understand_data(root, ports, members.are_all)?;
    for port in &mut *ports {
        if !port.is_numbered {
            let vectors = port.interface.vectors.iter_mut();
            for vector in vectors.filter(|vector| vector.role.is_queue()) {
                (vector.role, vector.queue) = (Role::Data, None);
            }
        }
    }
    share(ports);
    for Port { interface, .. } in ports {
        let mut vectors = take(&mut interface.vectors);
        // Both drivers use a vector for a queue and for RDMA; RDMA alone uses those beyond the queues.
        if has_rdma && Driver::has(interface.driver.as_deref(), Fact::QueuesAndRdma) {
            for vector in vectors
                .iter_mut()
                .filter(|vector| interface.is_idle(vector))
            {
                vector.role = Role::Rdma;
                // Of mlx4, counted over all ports.
                vector.queue = vector
                    .queue
                    .map(|queue| queue + pools.each.unwrap_or(0) * interface.port);
            }
        }
        vectors.sort_by_key(|v| {
            (
                !v.role.is_queue(),
                v.role == Role::Control,
                v.queue,
                v.role,
                v.irq,
            )
        });
        interface.vectors = vectors;
    }
    Ok(())
}

/// Where no queue's vector could be told, those that are not control vectors carry the packets: the only one those of all
/// queues, if `are_all`, the device's IRQs are known, or there is one queue.
fn understand_data(root: &Root, ports: &mut [Port], are_all: bool) -> Result<()> {
    // One that a row calls data tells no queue.
    let tells = |port: &Port| {
        let vectors = port.interface.vectors.iter();
        let data = vectors.filter(|vector| vector.role == Role::Data).count();
        port.queue_names.len() > data
    };
    if ports.iter().any(tells) {
        return Ok(());
    }
    let is_single = ports.len() == 1;
    for Port {
        interface,
        queue_names,
        ..
    } in ports
    {
        let unknown = take(&mut interface.unknown_vectors);
        let has_one_queue = interface.rx_queues.len() <= 1 && interface.tx_queues.len() <= 1;
        let serves = match &unknown[..] {
            [_] if is_single && queue_names.is_empty() && (has_one_queue || are_all) => {
                (Role::Combined, Some(0))
            }
            _ => (Role::Data, None),
        };
        let placed = VectorUse {
            serves,
            source: Source::Order,
            told: None,
        };
        for of in unknown {
            match read_vector(root, interface, of.irq, &of.action, placed)? {
                Some(vector) => {
                    queue_names.push(of.action);
                    interface.vectors.push(vector);
                }
                None => interface.vanished_vectors.push(of),
            }
        }
    }
    Ok(())
}

/// Marks ports without queue vectors as sharing of another port's vectors, where names hold no interface.
fn share(ports: &mut [Port]) {
    for at in 0..ports.len() {
        let own = &ports[at];
        if !own.queue_names.is_empty() {
            continue;
        }
        let has_interface = |name: &String| {
            let mut named = ports.iter().filter_map(|of| of.patterns.classify(name));
            named.any(|named| named.interface.is_some())
        };
        let has_anonymous = |of: &usize| {
            ports[*of]
                .queue_names
                .iter()
                .any(|name| !has_interface(name))
        };
        let mut owners = (0..ports.len()).filter(has_anonymous);
        // The driver names its vectors the same way; sub-functions without vectors share their parent's.
        let is_own = |name: &String| {
            let named = own.patterns.classify(name);
            named.is_some_and(|named| named.role.is_queue())
        };
        let alike = owners
            .clone()
            .find(|&of| ports[of].queue_names.iter().any(is_own));
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
        // Steering follows the CPUs of the queues' vectors, which are planned with the owner's.
        vectors.retain(|vector| vector.role != Role::Data && !own.is_idle(vector));
        if Driver::has(own.driver.as_deref(), Fact::PortsShareQueues) {
            own.vectors.extend(vectors);
        }
        own.shares_vectors_of = Some(name);
    }
}

/// The role and port of a vector by its names. If an IRQ is shared or ports have several drivers, a queue vector takes
/// precedence over a control vector.
fn understand<'a>(
    ports: &[Port<'a>],
    pools: Pools,
    members: &Members,
    irq: u32,
    actions: &'a [String],
) -> Option<(usize, NamedVector<'a>)> {
    let in_tree = members.in_tree.get(&irq);
    let by_tree = in_tree.and_then(|name| in_device_tree(name.as_deref()?));
    actions
        .iter()
        .cartesian_product(0..ports.len())
        .filter_map(|(action, port)| {
            let by_name = ports[port].patterns.classify(action);
            // Names of the interface or the device alone do not tell several IRQs apart.
            let is_bare = |of: &ActionName<'_>| {
                of.numbering == Plain || *action == ports[port].interface.device.address
            };
            let mut named = by_name
                .filter(|of| by_tree.is_none() || !is_bare(of))
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

/// The IRQs of a device.
struct Members {
    /// Those that have a handler, and the handlers' names.
    requested: Vec<(u32, Vec<String>)>,
    /// Those that the device tree has, and what they are for.
    in_tree: BTreeMap<u32, Option<String>>,
    /// Whether these are all that it has.
    are_all: bool,
}

impl Members {
    fn read(handlers: &Handlers<'_>, ports: &[Port]) -> Result<Self> {
        let device = &ports[0].interface.device;
        let (mut requested, mut in_tree) = (Vec::new(), BTreeMap::new());
        if device.irqs.is_empty() {
            if !device.tree.is_empty() {
                let of_gic = handlers.of_gic()?;
                let listed = device.tree.iter();
                in_tree.extend(
                    listed.filter_map(|of| Some((*of_gic.get(&of.hwirq)?, of.name.clone()))),
                );
            }
            // Xen, platform and other devices without a list: only names that contain the interface's, the device's or the
            // driver's name.
            for (&irq, actions) in handlers.listed()? {
                let is_own =
                    |action: &&String| in_tree.contains_key(&irq) || has_name_of(ports, action);
                requested.push((irq, actions.iter().filter(is_own).cloned().collect()));
            }
        }
        let is_half = |action: &String| {
            let mut named = ports
                .iter()
                .filter_map(|port| port.patterns.classify(action));
            named.any(|named| matches!(named.role, Role::Rx | Role::Tx))
        };
        if let [irq] = device.irqs[..] {
            // A line for each direction, of which sysfs has one (pasemi_mac).
            if handlers.of(irq)?.iter().any(is_half) {
                for (&other, actions) in handlers.listed()?.iter().filter(|of| *of.0 != irq) {
                    let is_own = |action: &&String| has_name_of(ports, action) && is_half(action);
                    requested.push((other, actions.iter().filter(is_own).cloned().collect()));
                }
            }
        }
        let may_be_of_others = device.irqs.len() == 1 && ports_are_down(ports);
        for &irq in &device.irqs {
            let mut actions = handlers.of(irq)?;
            actions.retain(|action| !may_be_of_others || may_be_own(ports, action));
            requested.push((irq, actions));
        }
        requested.retain(|(_, actions)| !actions.is_empty());
        let are_all = !device.irqs.is_empty()
            || in_tree.len() == device.tree.len() && requested.len() == in_tree.len();
        Ok(Self {
            requested,
            in_tree,
            are_all,
        })
    }
}

/// The names of IRQs of USB's controllers.
const USB: [&str; 6] = ["xhci", "ehci", "ohci", "uhci", "dwc2", "dwc3"];

/// The controller of a device with its IRQs, where its path does not tell these: by the handlers' names, else the only one
/// of USB.
fn the_controller(
    handlers: &Handlers<'_>,
    device: &str,
    known: (String, Vec<u32>),
) -> Result<(String, Vec<u32>)> {
    if !known.1.is_empty() {
        return Ok(known);
    }
    // Handlers have the number of the bus (`xhci-hcd:usb1`) or of the host (`mmc1`), with which the device's name begins.
    let host = device.split(['-', ':']).next().unwrap_or_default();
    let is_bus = host.bytes().all(|byte| byte.is_ascii_digit());
    let of_bus = format!(":usb{host}");
    let is_of_host = |action: &&String| {
        if is_bus {
            action.ends_with(&of_bus)
        } else {
            *action == host
        }
    };
    for (&irq, actions) in handlers.listed()? {
        if let Some(action) = actions.iter().find(is_of_host) {
            let name = action.split(':').next().unwrap_or_default();
            return Ok((name.to_owned(), vec![irq]));
        }
    }
    let named = handlers.listed()?.iter().filter_map(|(&irq, actions)| {
        let is_usb = |action: &&String| USB.iter().any(|name| action.starts_with(name));
        let name = actions.iter().find(is_usb)?.split(':').next()?;
        Some((name.to_owned(), vec![irq]))
    });
    Ok(named.exactly_one().unwrap_or(known))
}

/// The interrupt of the `hv_vmbus` driver, which each CPU has: a row without a number on x86, and a per-CPU IRQ elsewhere
/// (`vmbus_drv.c`).
fn of_vmbus(handlers: &Handlers<'_>) -> Result<Option<(String, Vec<u32>)>> {
    let mut listed = handlers.listed()?.iter();
    let is_its = |(_, actions): &(&u32, &Vec<String>)| actions.iter().any(|of| of == VMBUS);
    if let Some((&irq, _)) = listed.find(is_its) {
        return Ok(Some((VMBUS.to_owned(), vec![irq])));
    }
    let has_row = handlers.has_row("HYP")?;
    Ok(has_row.then(|| ("HYP".to_owned(), Vec::new())))
}

/// The name of its handler.
const VMBUS: &str = "Hyper-V VMbus";

/// Whether a name contains that of an interface or of its device, or is one of a driver that no other device has.
fn has_name_of(ports: &[Port], action: &str) -> bool {
    ports.iter().any(|port| {
        let Interface {
            name,
            device,
            driver,
            ..
        } = &*port.interface;
        let named = port.patterns.classify(action);
        let is_of_driver = || {
            port.patterns.has_queue_name(action)
                || driver
                    .as_ref()
                    .is_some_and(|driver| begins_with(action, driver))
        };
        named.and_then(|named| named.interface) == Some(name)
            || names_device(action, &device.address)
            || port.is_only && is_of_driver()
    })
}

/// Whether the interfaces are down, so that most drivers have freed their IRQ, which may be a line that others share.
fn ports_are_down(ports: &[Port]) -> bool {
    ports.iter().all(|port| port.interface.is_down)
}

/// Whether a driver may name its vectors so, and the name is not of another interface or function.
fn may_be_own(ports: &[Port], action: &str) -> bool {
    ports.iter().any(|port| {
        let Interface { name, device, .. } = &*port.interface;
        let named = port.patterns.classify(action);
        (!action.contains("pci:") || action.contains(&device.address))
            && named.is_some_and(|named| named.interface.is_none_or(|of| of == name))
    })
}

/// Whether a name contains the device's name on its bus: `30be0000.ethernet` of a platform device, also with a suffix;
/// `vif0-q1-rx` of Xen's `vif-0`, and `vif1.0-q1-rx` of the other end, `vif-1-0`; `ibmvnic-30000003-rx1` of POWER's
/// `30000003`.
fn names_device(action: &str, device: &str) -> bool {
    let starts = |with: &str| begins_with(action, with);
    match device.strip_prefix("vif-") {
        Some(handle) => starts(&format!("vif{}", handle.replace('-', "."))),
        None => !device.is_empty() && (starts(device) || starts(&format!("ibmvnic-{device}"))),
    }
}

/// Whether a name is another one, or that with a suffix.
fn begins_with(action: &str, name: &str) -> bool {
    let rest = action.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '@', '_', ' ']))
}

/// The port that a vector belongs to. A name without an interface belongs to the port whose driver it was read with;
/// one from before a rename belongs to the only port.
fn owner(ports: &[Port], port: usize, named: &ActionName<'_>, is_in_tree: bool) -> Option<usize> {
    let Some(name) = named.interface else {
        return Some(port);
    };
    // A name that is only a word is not enough: drivers that use the bare interface name follow renames.
    let renamed = ports.len() == 1
        && (is_in_tree || !ports[port].interface.device.irqs.is_empty())
        && named.numbering != Plain;
    ports
        .iter()
        .position(|port| port.interface.name == name)
        .or(renamed.then_some(port))
}

/// Reads a vector's affinity and effective CPUs; `None` if it was freed.
fn read_vector(
    root: &Root,
    interface: &Interface,
    irq: u32,
    action: &str,
    placed: VectorUse<'_>,
) -> Result<Option<Vector>> {
    let path = format!("{IRQ_FILES}/{irq}");
    // An interface may have two PCI functions, one on each node.
    let node = if interface.device.may_have(irq) {
        None
    } else {
        root.read_as(&format!("{path}/node"), numa_node)?.flatten()
    };
    let file = affinity_file(irq);
    let TreeFile { mode, text } = match read_affinity(root, &file)? {
        Some(read) => read,
        // A kernel for one CPU has no such files (`CONFIG_SMP`).
        None if root.exists(&path)
            && root.read_as(POSSIBLE, CpuSet::parse_list)? == Some(CpuSet::single(0)) =>
        {
            TreeFile {
                mode: 0o444,
                text: "1".into(),
            }
        }
        None => return Ok(None),
    };
    let (role, queue) = placed.serves;
    Ok(Some(Vector {
        irq,
        action: action.to_owned(),
        role,
        queue,
        source: placed.source,
        row: placed.told.map(|told| told.to_string()),
        node,
        affinity: MaskFile::parse(&text)
            .map_err(|error| root.content_error(&file, error.to_string()))?,
        effective: read_effective(root, irq)?,
        counted: None,
        movable: mode & 0o200 != 0,
    }))
}

/// With fewer completion event queues a port, the ports of an mlx4 function share them (`MIN_MSIX_P_PORT`).
const LEAST: usize = 5;

/// Which completion event queues of an mlx4 function belong to which port. A function has one pool of them for all of
/// its ports; `mlx4_enable_msi_x` in `drivers/net/ethernet/mellanox/mlx4/main.c` parts it.
#[derive(Debug, Clone, Copy, Default)]
struct Pools {
    /// How many each port has; `None` where the ports share all of them, or there is one port.
    each: Option<u32>,
    /// Whether the function has an RDMA device, which uses them, too.
    rdma: bool,
}

impl Pools {
    /// Those of the function of these interfaces.
    fn read(root: &Root, ports: &[Port], rdma: bool) -> Result<Self> {
        let first = &*ports[0].interface;
        if !Driver::has(first.driver.as_deref(), Fact::PortsSharePool) {
            return Ok(Self::default());
        }
        // The type of a port, whether it is Ethernet or InfiniBand.
        let ports = ports
            .iter()
            .map(|port| port.interface.port as usize)
            .max()
            .max(
                root.read_opt(&format!("{NET}/{}/device/mlx4_port2", first.name))?
                    .map(|_| 1),
            )
            .unwrap_or(0)
            + 1;
        // One vector is for asynchronous events.
        let each = first.device.irqs.len().saturating_sub(1) / ports;
        let each = u32::try_from(each)
            .ok()
            .filter(|_| ports > 1 && each >= LEAST);
        Ok(Self { each, rdma })
    }

    /// Makes the number of a vector's completion event queue, which counts from 1 over all ports, that of its port's
    /// queue. Returns the port that it belongs to; `None` where all ports use it, or there is no such interface.
    fn find(self, vector: &mut ActionName<'_>, ports: &[Port]) -> Option<usize> {
        let index = vector.number?.checked_sub(1)?;
        vector.number = Some(index);
        let each = self.each?;
        let port = ports
            .iter()
            .position(|port| port.interface.port == index / each);
        match port {
            Some(_) => vector.number = Some(index % each),
            None if self.rdma => (vector.role, vector.numbering) = (Role::Rdma, Queue),
            None => (vector.role, vector.numbering) = (Role::Control, Numbering::None),
        }
        port
    }
}
