//! Which IRQ serves which queue of which interface.
//!
//! Membership comes first: a vector belongs to a device because the kernel lists it in the device's `msi_irqs` (or as
//! its `INTx` line) or reports it over netlink, never because a name looks similar. Its role and queue come from
//! netlink if the driver supports it ([`netlink`](super::netlink)), else from its name ([`drivers`](crate::drivers)),
//! else, for a few drivers, from the order of the vectors. If none of these tells a queue of the device, its vectors
//! carry packets of unknown queues; if some queues are known, vectors that are not understood are listed and left
//! unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use itertools::Itertools as _;

use crate::cpuset::CpuSet;
use crate::drivers::Numbering::{self, Mlx4, Plain, Queue, Realtek};
use crate::drivers::{
    ActionName, Driver, DriverPatterns, Fact, RTL8125B, RTL8125D, Taught, in_device_tree,
};
use crate::machine::netdev::Netdev;
use crate::machine::others::Rdma;
use crate::machine::setting::{IRQ_FILES, NET, affinity_file};
use crate::machine::{Interface, MaskFile, Role, Sharer, Source, UnknownVector, Vector};
use crate::read::files::{node as numa_node, read_affinity, read_effective};
use crate::read::interfaces::{hex, irqs_of};
use crate::read::interrupts::{Handlers, INTERRUPTS, POSSIBLE, counts};
use crate::read::names::{NamedVector, VectorUse, place};
use crate::read::others::PCI;
use crate::read::queues::{Reported, settle};
use crate::root::tree::TreeFile;
use crate::root::{Result, Root};

/// One of a device's interfaces, with the known facts of its vectors.
struct Port<'a> {
    interface: &'a mut Interface,
    patterns: &'a DriverPatterns<'a>,
    reported: Reported,
    queue_names: Vec<String>,
    /// Whether no other device has this driver, or all its devices have the same IRQs.
    is_only: bool,
    /// Whether names tell which queues the vectors serve.
    is_numbered: bool,
}

/// A name of an interface that is like no vector's.
const ANY_INTERFACE: &str = "eth0";

impl Port<'_> {
    fn has_name(&self, action: &str) -> bool {
        self.interface.name == action
    }
}

/// Reads the vectors of all interfaces, device by device. `rdma`: the machine's RDMA devices; `taught`: drivers that
/// the policy teaches. `cards`: IRQs of functions without an interface, which are not read otherwise; returns the CPUs
/// on which they interrupt.
pub(crate) fn read(
    root: &Root,
    handlers: &Handlers<'_>,
    interfaces: &mut [Interface],
    rdma: &[Rdma],
    taught: &[Taught],
    cards: &[u32],
) -> Result<CpuSet> {
    let patterns = interfaces.iter().map(|interface| {
        let mut taught = taught.iter();
        let taught = taught.find(|row| interface.has_driver(&row.name));
        DriverPatterns::of(interface.driver.as_deref(), taught)
    });
    let patterns = patterns.collect_vec();
    let several = interfaces_over_functions(interfaces);
    let mut driver_devices: BTreeMap<Option<String>, BTreeSet<String>> = BTreeMap::new();
    for Interface { driver, device, .. } in &*interfaces {
        let devices = driver_devices.entry(driver.clone()).or_default();
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
                is_only: has_engine || driver_devices[&interface.driver].len() == 1,
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
    let unclaimed = unclaimed_irqs(root, handlers, &interfaces, cards)?;
    count_interrupts(root, interfaces, cards, &unclaimed)
}

/// The IRQs that no known device has; empty unless some interface has no known IRQ.
fn unclaimed_irqs(
    root: &Root,
    handlers: &Handlers<'_>,
    interfaces: &[&mut Interface],
    cards: &[u32],
) -> Result<BTreeSet<u32>> {
    if !interfaces.iter().any(|interface| interface.may_have_any()) {
        return Ok(BTreeSet::new());
    }
    let mut irqs = handlers.of_devices()?;
    let known = interfaces.iter().flat_map(|interface| {
        let vectors = interface.vectors.iter().map(|vector| vector.irq);
        vectors.chain(interface.unknown_vectors.iter().map(|vector| vector.irq))
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

/// The interfaces that may have queues on another function, too, like a card in two slots (Socket Direct): a function
/// of the same kind in another slot has no interface, and netlink does not report the queues.
fn interfaces_over_functions(interfaces: &[Interface]) -> BTreeSet<String> {
    let slot = |interface: &Interface| {
        interface
            .device
            .address
            .rsplit_once(':')
            .map(|(bus, _)| bus.to_owned())
    };
    let may_be_over = |interface: &Interface, other: &Interface| {
        other.without_netdev
            && other.driver == interface.driver
            && other.device.pci_id == interface.device.pci_id
            && slot(other) != slot(interface)
    };
    let whole = |interface: &&Interface| interface.device.parent.is_none();
    interfaces
        .iter()
        .filter(whole)
        .filter(|interface| Driver::has(interface.driver.as_deref(), Fact::ChannelsAlternate))
        .filter(|interface| interface.napis().all(|napi| napi.irq.is_none()))
        .filter(|interface| {
            interfaces
                .iter()
                .filter(whole)
                .any(|other| may_be_over(interface, other))
        })
        .map(|interface| interface.name.clone())
        .collect()
}

/// Finds out from counts where interrupts arrive that the kernel does not report (powerpc, s390, x86 before Linux 4.14)
/// and whose affinity has several CPUs: those of vectors, of IRQs that are not understood or `unclaimed`, and of
/// `cards`. Returns the CPUs of `cards`.
fn count_interrupts(
    root: &Root,
    mut interfaces: Vec<&mut Interface>,
    cards: &[u32],
    unclaimed: &BTreeSet<u32>,
) -> Result<CpuSet> {
    let mut others = BTreeMap::new();
    let unknown = interfaces
        .iter()
        .flat_map(|interface| &interface.unknown_vectors);
    let beside = cards.iter().chain(unclaimed).copied();
    let controllers = interfaces
        .iter()
        .flat_map(|interface| interface.device.by_controller());
    let beside = beside.chain(controllers.copied());
    for irq in unknown.map(|vector| vector.irq).chain(beside) {
        others.insert(irq, told_cpus(root, irq)?);
    }
    let untold =
        |vector: &&mut Vector| vector.effective.is_none() && vector.affinity.cpus.len() > 1;
    let vectors = interfaces
        .iter_mut()
        .flat_map(|interface| &mut interface.vectors);
    let vectors = vectors.filter(untold).collect_vec();
    let untold = others.iter().filter(|(_, told)| told.is_none());
    let irqs = vectors.iter().map(|vector| vector.irq);
    let irqs: BTreeSet<u32> = irqs.chain(untold.map(|(irq, _)| *irq)).collect();
    let seen = counted_cpus(root, &irqs)?;
    for vector in vectors {
        let seen = seen.get(&vector.irq).cloned().unwrap_or_default();
        let seen = seen.intersection(&vector.affinity.cpus);
        vector.counted = Some(seen).filter(|seen| !seen.is_empty());
    }
    let cpus_of = |irq: u32| {
        let told = others.get(&irq).cloned().flatten();
        told.or_else(|| seen.get(&irq).cloned()).unwrap_or_default()
    };
    for interface in interfaces {
        let unknown = interface.unknown_vectors.iter();
        let unclaimed = unclaimed.iter().filter(|_| interface.may_have_any());
        let irqs = unknown.map(|vector| vector.irq).chain(unclaimed.copied());
        let irqs = irqs.chain(interface.device.by_controller().iter().copied());
        interface.unknown_vector_cpus = CpuSet::union_of(irqs.map(cpus_of));
    }
    Ok(CpuSet::union_of(cards.iter().map(|irq| cpus_of(*irq))))
}

/// The CPUs on which an IRQ interrupts, if the kernel reports them or its affinity has one CPU.
fn told_cpus(root: &Root, irq: u32) -> Result<Option<CpuSet>> {
    let effective = read_effective(root, irq)?;
    if effective.is_some() {
        return Ok(effective);
    }
    let affinity = read_affinity(root, &affinity_file(irq))?;
    let affinity = affinity.and_then(|file| CpuSet::parse_kernel_mask(&file.text).ok());
    Ok(affinity.filter(|cpus| cpus.len() == 1))
}

/// The CPUs on which these IRQs were counted since boot.
fn counted_cpus(root: &Root, irqs: &BTreeSet<u32>) -> Result<BTreeMap<u32, CpuSet>> {
    if irqs.is_empty() || !root.exists(INTERRUPTS) {
        return Ok(BTreeMap::new());
    }
    // A capture keeps no counts.
    root.gist("/nicpin/counted", || {
        // Unreadable counts count as unknown.
        let counts = counts(root, irqs).unwrap_or_default();
        let seen = counts.rows.iter().map(|(&irq, row)| {
            // The first interrupts after boot may have come elsewhere.
            let most = row.counts.iter().copied().max().unwrap_or(0);
            let on = counts.cpus.iter().zip(&row.counts);
            let on = on
                .filter(|(_, count)| **count > most / 20)
                .map(|(cpu, _)| *cpu);
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
        Some(known) => Some(find_controller(
            handlers,
            &first.device.address,
            known.clone(),
        )?),
        None if first.vmbus.is_some() => vmbus_interrupt(handlers)?,
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
            // If names contain no interface, all vectors belong to the first port by name; netlink is more exact.
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
        tell_chips_apart(root, interface, &mut named)?;
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
        // Both drivers use a vector for a queue and for RDMA; vectors beyond the queues serve RDMA alone.
        if has_rdma && Driver::has(interface.driver.as_deref(), Fact::QueuesAndRdma) {
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

/// Sets which of r8125's vectors send, by the revision of the chip: 5 at most is RTL8125B, 0x0c RTL8125D, of the others
/// it is not known.
fn tell_chips_apart(
    root: &Root,
    interface: &Interface,
    named: &mut [NamedVector<'_>],
) -> Result<()> {
    let numbered = named.iter_mut().map(|vector| &mut vector.named.numbering);
    let mut of_b = numbered.filter(|it| **it == RTL8125B).peekable();
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

/// If no vector has a known queue, takes those that are not control vectors as carrying the packets. A single one
/// serves all queues if `are_all` (the device's IRQs are known) or there is one queue.
fn understand_data(root: &Root, ports: &mut [Port], are_all: bool) -> Result<()> {
    // A vector that a row calls `data` tells no queue.
    let tells_queue = |port: &Port| {
        let vectors = port.interface.vectors.iter();
        let data = vectors.filter(|vector| vector.role == Role::Data).count();
        port.queue_names.len() > data
    };
    if ports.iter().any(tells_queue) {
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
        for unknown_vector in unknown {
            match read_vector(
                root,
                interface,
                unknown_vector.irq,
                &unknown_vector.action,
                placed,
            )? {
                Some(vector) => {
                    queue_names.push(unknown_vector.action);
                    interface.vectors.push(vector);
                }
                None => interface.vanished_vectors.push(unknown_vector),
            }
        }
    }
    Ok(())
}

/// Marks ports without queue vectors as sharing those of another port, if names contain no interface.
fn share(ports: &mut [Port]) {
    for at in 0..ports.len() {
        let own = &ports[at];
        if !own.queue_names.is_empty() {
            continue;
        }
        let has_interface = |name: &String| {
            let mut named = ports.iter().filter_map(|port| port.patterns.classify(name));
            named.any(|named| named.interface.is_some())
        };
        let has_anonymous = |port: &usize| {
            ports[*port]
                .queue_names
                .iter()
                .any(|name| !has_interface(name))
        };
        let mut owners = (0..ports.len()).filter(has_anonymous);
        // The owner's driver uses the same names; sub-functions without vectors share those of their parent.
        let is_own = |name: &String| {
            let named = own.patterns.classify(name);
            named.is_some_and(|named| named.role.is_queue())
        };
        let alike = owners
            .clone()
            .find(|&port| ports[port].queue_names.iter().any(is_own));
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
        if Driver::has(own.driver.as_deref(), Fact::PortsShareQueues) {
            own.vectors.extend(vectors);
        }
        own.shares_vectors_of = Some(name);
    }
}

/// Determines role and port of a vector by its names. If an IRQ is shared or ports have several drivers, a queue vector
/// takes precedence over a control vector.
fn understand<'a>(
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
            let by_name = match ports[port].patterns.classify(action) {
                // An interface may be named like a queue's vector: `eth-TxRx-1`.
                Some(named) if ports[port].has_name(action) && named.interface != Some(action) => {
                    let bare = ports[port].patterns.classify(ANY_INTERFACE);
                    bare.map(|bare| ActionName {
                        interface: Some(action),
                        ..bare
                    })
                }
                named => named,
            };
            // Names that are only the interface or the device do not distinguish several IRQs.
            let is_bare = |name: &ActionName<'_>| {
                name.numbering == Plain || *action == ports[port].interface.device.address
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

struct Members {
    /// IRQs with a handler, and the handlers' names.
    requested: Vec<(u32, Vec<String>)>,
    /// IRQs of the device tree, with their purpose.
    in_tree: BTreeMap<u32, Option<String>>,
    /// Whether the device has no other IRQs.
    are_all: bool,
}

impl Members {
    fn read(handlers: &Handlers<'_>, ports: &[Port]) -> Result<Self> {
        let device = &ports[0].interface.device;
        let (mut requested, mut in_tree) = (Vec::new(), BTreeMap::new());
        if device.irqs.is_empty() {
            if !device.tree.is_empty() {
                let gic_irqs = handlers.of_gic()?;
                let listed = device.tree.iter();
                in_tree.extend(listed.filter_map(|interrupt| {
                    Some((*gic_irqs.get(&interrupt.hwirq)?, interrupt.name.clone()))
                }));
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
            // The device has an IRQ for each direction, of which sysfs has one (pasemi_mac).
            if handlers.of(irq)?.iter().any(is_half) {
                for (&other, actions) in handlers
                    .listed()?
                    .iter()
                    .filter(|(other, _)| **other != irq)
                {
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

const USB: [&str; 6] = ["xhci", "ehci", "ohci", "uhci", "dwc2", "dwc3"];

/// Completes the IRQs of a device's controller, if the device's path does not tell them: by the handlers' names, else
/// by the only USB controller.
fn find_controller(
    handlers: &Handlers<'_>,
    device: &str,
    known: (String, Vec<u32>),
) -> Result<(String, Vec<u32>)> {
    if !known.1.is_empty() {
        return Ok(known);
    }
    // Handlers have the number of the bus (`xhci-hcd:usb1`) or of the host (`mmc1`), with which the device's name
    // begins.
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

/// Finds the interrupt of the `hv_vmbus` driver, which every CPU has: a row without a number on x86, and a per-CPU IRQ
/// elsewhere (`vmbus_drv.c`).
fn vmbus_interrupt(handlers: &Handlers<'_>) -> Result<Option<(String, Vec<u32>)>> {
    let mut listed = handlers.listed()?.iter();
    let is_vmbus =
        |(_, actions): &(&u32, &Vec<String>)| actions.iter().any(|action| action == VMBUS);
    if let Some((&irq, _)) = listed.find(is_vmbus) {
        return Ok(Some((VMBUS.to_owned(), vec![irq])));
    }
    let has_row = handlers.has_row("HYP")?;
    Ok(has_row.then(|| ("HYP".to_owned(), Vec::new())))
}

const VMBUS: &str = "Hyper-V VMbus";

/// Whether a name contains the name of an interface or of its device, or is a name of a driver that no other device
/// has.
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

/// Whether the interfaces are down: most drivers have then freed their IRQ, which may be a line shared with others.
fn ports_are_down(ports: &[Port]) -> bool {
    ports.iter().all(|port| port.interface.is_down)
}

/// Whether a driver may give this name, and the name is not of another interface or function.
fn may_be_own(ports: &[Port], action: &str) -> bool {
    ports.iter().any(|port| {
        let Interface { name, device, .. } = &*port.interface;
        let named = port.patterns.classify(action);
        (!action.contains("pci:") || action.contains(&device.address))
            && named.is_some_and(|named| named.interface.is_none_or(|interface| interface == name))
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

/// Whether `action` is `name`, or `name` with a suffix.
fn begins_with(action: &str, name: &str) -> bool {
    let rest = action.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '@', '_', ' ']))
}

/// The port to which a vector belongs. A name without an interface belongs to the port by whose driver it was read; a
/// name from before a rename belongs to the only port.
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
    // With one CPU no IRQ can be moved, and none has to; kernels without `CONFIG_SMP` have no such files.
    let has_one_cpu = || -> Result<bool> {
        let possible = root.read_as(POSSIBLE, CpuSet::parse_list)?;
        Ok(possible == Some(CpuSet::single(0)))
    };
    let (text, movable) = match read_affinity(root, &file)? {
        Some(TreeFile { mode, text }) => (text, mode & 0o200 != 0 || has_one_cpu()?),
        None if root.exists(&path) && has_one_cpu()? => ("1".into(), true),
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
        movable,
    }))
}

/// Minimum completion event queues for each port; with fewer, the ports of an mlx4 function share them
/// (`MIN_MSIX_P_PORT`).
const LEAST: usize = 5;

/// The completion event queues of each port of an mlx4 function. All ports have one pool, which `mlx4_enable_msi_x` in
/// `drivers/net/ethernet/mellanox/mlx4/main.c` divides.
#[derive(Debug, Clone, Copy, Default)]
struct Pools {
    /// Number of queues of each port; `None` if the ports share all of them, or there is one port.
    each: Option<u32>,
    /// Whether several interfaces share all of them: each takes those of the fewest users (`mlx4_assign_eq`), which only
    /// netlink tells.
    are_shared: bool,
    /// Whether the function has an RDMA device, which uses the queues, too.
    rdma: bool,
}

impl Pools {
    fn read(root: &Root, ports: &[Port], rdma: bool) -> Result<Self> {
        let first = &*ports[0].interface;
        if !Driver::has(first.driver.as_deref(), Fact::PortsSharePool) {
            return Ok(Self::default());
        }
        let has_several = ports.len() > 1;
        // The type of a port: Ethernet or InfiniBand.
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
        Ok(Self {
            each,
            are_shared: has_several && each.is_none(),
            rdma,
        })
    }

    /// Replaces the number of a vector's completion event queue, which counts from 1 over all ports, by the number
    /// within its port. Returns the port; `None` if all ports use it, or no interface has it.
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
