//! Which IRQ serves which queue of which interface.
//!
//! Membership comes first: a vector is a device's because the kernel lists it in the device's `msi_irqs`
//! (or as its `INTx` line) or reports it over netlink, never because a name looks similar. Its role and queue come from
//! netlink if the driver supports it ([`netlink`](super::netlink)), else from its name ([`names`](super::names)), else,
//! for a few drivers, from the order of the vectors. A vector without any of these is listed as unknown and left unchanged.

use std::collections::BTreeMap;

use crate::cpuset::CpuSet;
use crate::machine::netdev::{IrqQueues, Netdev};
use crate::machine::others::Rdma;
use crate::machine::{Interface, MaskFile, Role, Sharer, UnknownVector, Vector};
use crate::read::files::again_while;
use crate::read::files::{parse_mask_file, read_cpus, read_node};
use crate::read::interrupts::Handlers;
use crate::read::mlx4::Parts;
use crate::read::names::{DriverPatterns, Numbering};
use crate::read::numbering::{self, NamedVector, VectorUse};
use crate::read::sources;
use crate::root::tree::TreeFile;
use crate::root::{FileError, Root};

/// Reads the vectors of all interfaces, device by device. `rdma`: the machine's RDMA devices.
pub(crate) fn read(
    root: &Root,
    handlers: &Handlers<'_>,
    interfaces: &mut [Interface],
    rdma: &[Rdma],
) -> Result<(), FileError> {
    let mut devices: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, interface) in interfaces.iter().enumerate() {
        devices
            .entry(interface.device.address.clone())
            .or_default()
            .push(at);
    }
    for (device, mut ports) in devices {
        ports.sort_by_key(|&at| (interfaces[at].port, at));
        let has_rdma = rdma
            .iter()
            .any(|rdma| rdma.device.as_ref() == Some(&device));
        read_device(root, handlers, interfaces, &ports, has_rdma)?;
    }
    Ok(())
}

fn read_device(
    root: &Root,
    handlers: &Handlers<'_>,
    interfaces: &mut [Interface],
    ports: &[usize],
    has_rdma: bool,
) -> Result<(), FileError> {
    let Some(&first) = ports.first() else {
        return Ok(());
    };
    let by_netlink: BTreeMap<usize, BTreeMap<u32, IrqQueues>> = (ports.iter())
        .map(|&port| {
            (
                port,
                interfaces[port]
                    .netdev
                    .as_ref()
                    .map(Netdev::by_irq)
                    .unwrap_or_default(),
            )
        })
        .collect();
    let netlink_port = |irq: u32| {
        ports
            .iter()
            .copied()
            .find(|port| by_netlink[port].contains_key(&irq))
    };
    let dialects: Vec<(usize, DriverPatterns)> = ports
        .iter()
        .map(|&port| (port, DriverPatterns::of(interfaces[port].driver.as_deref())))
        .collect();
    let shares = Parts::read(root, &of(interfaces, &dialects), has_rdma)?;
    let mut named: BTreeMap<usize, Vec<NamedVector>> = BTreeMap::new();
    for (irq, actions) in requested(handlers, interfaces, &dialects)? {
        match understand(interfaces, &dialects, shares, irq, &actions) {
            // By names without an interface all vectors belong to the first port; netlink is more exact.
            Some((owner, _))
                if !by_netlink[&owner].contains_key(&irq) && netlink_port(irq).is_some() => {}
            Some((owner, vector)) => named.entry(owner).or_default().push(vector),
            None if netlink_port(irq).is_some() => {}
            None => interfaces[first].unknown_vectors.push(UnknownVector {
                irq,
                action: actions.join(", "),
            }),
        }
    }
    let mut actions = BTreeMap::new();
    for &irq in by_netlink.values().flat_map(BTreeMap::keys) {
        let handler_names = handlers.of(irq)?;
        actions.extend((!handler_names.is_empty()).then(|| (irq, handler_names.join(", "))));
    }
    let action = |irq: u32| actions.get(&irq).cloned();
    let mut data: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for &port in ports {
        let interface = &mut interfaces[port];
        let named = named.remove(&port).unwrap_or_default();
        let (rx, tx) = (interface.rx_queues.len(), interface.tx_queues.len());
        let mut placed = numbering::place(&named, tx > 1);
        numbering::by_order(interface.driver.as_deref(), &named, &mut placed, rx, tx);
        let settled = sources::settle(
            named.into_iter().zip(placed).collect(),
            &by_netlink[&port],
            action,
        );
        for (irq, action, placed) in settled.vectors {
            if placed.role.is_queue() {
                data.entry(port).or_default().push(action.clone());
            }
            let node = foreign_node(root, interface, irq)?;
            match read_vector(root, irq, &action, placed, node)? {
                Some(vector) => interface.vectors.push(vector),
                None => interface
                    .vanished_vectors
                    .push(UnknownVector { irq, action }),
            }
        }
        interface.unknown_vectors.extend(settled.unknown);
        interface.contradictions = settled.contradictions;
    }
    share(interfaces, &dialects, &data);
    for &port in ports {
        let interface = &mut interfaces[port];
        let mut vectors = std::mem::take(&mut interface.vectors);
        // Both drivers use a vector for a queue and for RDMA; RDMA alone uses those beyond the queues.
        if has_rdma && matches!(interface.driver.as_deref(), Some("mlx4_en" | "mlx5_core")) {
            for vector in vectors
                .iter_mut()
                .filter(|vector| interface.is_idle(vector))
            {
                vector.role = Role::Rdma;
                vector.queue = vector
                    .queue
                    .map(|queue| queue + shares.before(interface.port));
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

/// The interfaces of a device.
fn of<'a>(interfaces: &'a [Interface], ports: &[(usize, DriverPatterns)]) -> Vec<&'a Interface> {
    ports.iter().map(|(port, _)| &interfaces[*port]).collect()
}

/// Marks ports without queue vectors as sharing of another port's vectors, where names hold no interface. `data` is the
/// names of each port's queue vectors.
fn share(
    interfaces: &mut [Interface],
    dialects: &[(usize, DriverPatterns)],
    data: &BTreeMap<usize, Vec<String>>,
) {
    for (port, dialect) in dialects.iter().filter(|(port, _)| !data.contains_key(port)) {
        let has_interface = |name: &String| {
            dialects.iter().any(|(_, of)| {
                of.classify(name)
                    .is_some_and(|named| named.interface.is_some())
            })
        };
        let has_anonymous = |owner: &&usize| data[owner].iter().any(|name| !has_interface(name));
        // The driver names its vectors the same way; sub-functions without vectors share their parent's.
        let own = |name: &String| {
            dialect
                .classify(name)
                .is_some_and(|named| named.role.is_queue())
        };
        let alike = |owner: &&usize| has_anonymous(owner) && data[owner].iter().any(own);
        let owners = || {
            dialects
                .iter()
                .map(|(owner, _)| owner)
                .filter(|owner| data.contains_key(owner))
        };
        let parent = || {
            owners()
                .find(has_anonymous)
                .filter(|_| interfaces[*port].vectors.is_empty())
        };
        let Some(&owner) = owners().find(alike).or_else(parent) else {
            continue;
        };
        let Interface {
            name,
            rx_queues,
            tx_queues,
            ..
        } = &interfaces[*port];
        let sharer = Sharer {
            name: name.clone(),
            rx: rx_queues.len(),
            tx: tx_queues.len(),
        };
        interfaces[owner].sharing.push(sharer);
        interfaces[*port].shares_vectors_of = Some(interfaces[owner].name.clone());
    }
}

/// The node of a vector of another device than the interface's own: an interface may have two PCI functions, one on
/// each node.
fn foreign_node(root: &Root, interface: &Interface, irq: u32) -> Result<Option<u32>, FileError> {
    let irqs = &interface.device.irqs;
    if irqs.is_empty() || irqs.contains(&irq) {
        return Ok(None);
    }
    read_node(root, &format!("/proc/irq/{irq}/node"))
}

/// The role and port of a vector by its names. If an IRQ is shared or ports have several drivers, a queue vector takes
/// precedence over a control vector.
fn understand(
    interfaces: &[Interface],
    dialects: &[(usize, DriverPatterns)],
    shares: Parts,
    irq: u32,
    actions: &[String],
) -> Option<(usize, NamedVector)> {
    let each = actions
        .iter()
        .flat_map(|action| dialects.iter().map(move |dialect| (action, dialect)));
    let candidates = each.filter_map(|(action, (port, dialect))| {
        let named = dialect.classify(action)?;
        let mut owner = owner(
            interfaces,
            dialects,
            *port,
            named.interface,
            named.numbering,
        )?;
        let mut vector = NamedVector::new(irq, action, named);
        if named.numbering == Numbering::Mlx4 {
            if let Some(port) = shares.find(&mut vector, &of(interfaces, dialects)) {
                owner = dialects
                    .iter()
                    .find(|(at, _)| interfaces[*at].port == port)?
                    .0;
            }
        }
        Some((owner, vector))
    });
    candidates.min_by_key(|(_, vector)| !vector.role.is_queue())
}

/// The device's IRQs that have a handler, and the handlers' names.
fn requested(
    handlers: &Handlers<'_>,
    interfaces: &[Interface],
    dialects: &[(usize, DriverPatterns)],
) -> Result<Vec<(u32, Vec<String>)>, FileError> {
    let irqs: Vec<u32> = dialects
        .first()
        .map(|(first, _)| interfaces[*first].device.irqs.clone())
        .unwrap_or_default();
    if !irqs.is_empty() {
        let mut requested = Vec::new();
        for irq in irqs {
            let actions = handlers.of(irq)?;
            requested.extend((!actions.is_empty()).then_some((irq, actions)));
        }
        return Ok(requested);
    }
    // Xen, platform and other devices without a list: only names that contain the interface's or the device's name.
    let own = |action: &str| {
        dialects.iter().any(|(port, dialect)| {
            let interface = &interfaces[*port];
            let named = dialect.classify(action);
            named.and_then(|named| named.interface) == Some(interface.name.as_str())
                || names_device(action, &interface.device.address)
        })
    };
    let listed = handlers.listed()?;
    let own_of = |irq: u32| {
        let actions = listed.actions(irq).filter(|action| own(action));
        (irq, actions.map(str::to_owned).collect::<Vec<_>>())
    };
    let all = listed.irqs().map(own_of);
    Ok(all.filter(|(_, actions)| !actions.is_empty()).collect())
}

/// Whether a name contains the device's name on its bus: `30be0000.ethernet` of a platform device, also with a suffix;
/// `vif0-q1-rx` of Xen's `vif-0`; `ibmvnic-30000003-rx1` of POWER's `30000003`.
fn names_device(action: &str, device: &str) -> bool {
    let starts = |with: &str| {
        action
            .strip_prefix(with)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '@']))
    };
    match device.strip_prefix("vif-") {
        Some(handle) => starts(&format!("vif{handle}")),
        None => !device.is_empty() && (starts(device) || starts(&format!("ibmvnic-{device}"))),
    }
}

/// The port that a vector belongs to. A name without an interface belongs to the port whose driver it was read with;
/// one from before a rename belongs to the only port.
fn owner(
    interfaces: &[Interface],
    ports: &[(usize, DriverPatterns)],
    port: usize,
    named: Option<&str>,
    numbering: Numbering,
) -> Option<usize> {
    let Some(name) = named else { return Some(port) };
    if let Some((port, _)) = ports
        .iter()
        .find(|(port, _)| interfaces[*port].name == name)
    {
        return Some(*port);
    }
    // A name that is only a word is not enough: drivers that use the bare interface name follow renames.
    let renamed = ports.len() == 1 && !interfaces[port].device.irqs.is_empty();
    (renamed && numbering != Numbering::Plain).then_some(port)
}

/// The effective CPUs of the IRQ with this directory; `None` if the kernel does not report them.
pub(crate) fn read_effective(root: &Root, path: &str) -> Result<Option<CpuSet>, FileError> {
    let effective = read_cpus(
        root,
        &format!("{path}/effective_affinity_list"),
        &format!("{path}/effective_affinity"),
    )?;
    // An empty effective mask means that the IRQ was never started.
    Ok(effective.filter(|cpus| !cpus.is_empty()))
}

/// Reads a vector's affinity and effective CPUs; `None` if it was freed.
fn read_vector(
    root: &Root,
    irq: u32,
    action: &str,
    placed: VectorUse,
    node: Option<u32>,
) -> Result<Option<Vector>, FileError> {
    let path = format!("/proc/irq/{irq}");
    let affinity_path = format!("{path}/smp_affinity");
    let read = || {
        let file = root.read_opt_file(&affinity_path)?;
        let parse = |file: TreeFile| {
            Ok((
                parse_mask_file(root, &affinity_path, &file.text)?,
                file.mode,
            ))
        };
        file.map(parse).transpose()
    };
    // As `read_affinity` does.
    let nowhere = |read: &Result<Option<(MaskFile, u32)>, FileError>| matches!(read, Ok(Some((affinity, _))) if affinity.cpus.is_empty());
    let Some((affinity, mode)) = again_while(nowhere, read)? else {
        return Ok(None);
    };
    Ok(Some(Vector {
        irq,
        action: action.to_owned(),
        role: placed.role,
        queue: placed.queue,
        source: placed.source,
        node,
        affinity,
        effective: read_effective(root, &path)?,
        movable: mode & 0o200 != 0,
    }))
}
