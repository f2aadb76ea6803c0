//! Which IRQ serves which queue of which interface.
//!
//! Membership comes first: a vector is a device's because the kernel lists it in the device's `msi_irqs`
//! (or as its `INTx` line), never because a name looks alike. Only then do the driver's own names tell what
//! it does ([`names`]). A name that says nothing known is kept apart and left alone, not guessed at.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::host::interfaces::{Interface, MaskFile, read_mask_file};
use crate::host::interrupts::Interrupts;
use crate::host::names::{self, Named, Numbering, Role};
use crate::host::root::{FileError, Root};
use crate::host::topology::{read_list, read_mask};

/// One IRQ of an interface's device, understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// Its IRQ number, which changes from boot to boot.
    pub irq: u32,
    /// The name its handler was requested under.
    pub action: String,
    /// What it does.
    pub role: Role,
    /// The queue it serves; `None` for a control vector.
    pub queue: Option<u32>,
    /// Where the role and the queue were learned.
    pub source: Source,
    /// `smp_affinity`: the CPUs that it is allowed on.
    pub allowed: MaskFile,
    /// `effective_affinity`: the CPUs that the hardware delivers to now. `None` on architectures that do
    /// not tell (powerpc, s390).
    pub serving: Option<CpuSet>,
    /// Whether the kernel says that its affinity may be set (since 6.12 by the file's mode).
    pub movable: bool,
}

/// How it is known which queue a vector serves, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The kernel's own answer.
    Netlink,
    /// The driver's name for the vector.
    Name,
    /// The order of the MSI-X entries.
    Order,
}

/// A requested IRQ of the device whose name is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownVector {
    /// Its IRQ number.
    pub irq: u32,
    /// Its handlers' names.
    pub action: String,
}

impl Vector {
    /// Whether it carries packets, and is not there for link events and the like.
    pub fn is_queue_vector(&self) -> bool {
        self.role != Role::Control
    }
}

impl Interface {
    /// Whether a queue vector serves no queue in use now: cards keep vectors beyond the active queues.
    pub fn is_idle(&self, vector: &Vector) -> bool {
        let (rx, tx) = (self.rx_queues.len(), self.tx_queues.len());
        let queues = match vector.role {
            Role::Control => return false,
            Role::Combined => rx.max(tx),
            Role::Rx => rx,
            Role::Tx => tx,
        };
        // Without a `queues` directory nothing is known of them, and no vector is called idle.
        rx + tx > 0 && vector.queue.is_some_and(|queue| queue as usize >= queues)
    }
}

/// Finds the vectors of all interfaces, a device at a time.
pub(crate) fn read(
    root: &Root,
    interrupts: &Interrupts,
    interfaces: &mut [Interface],
) -> Result<(), FileError> {
    let mut devices: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, interface) in interfaces.iter().enumerate() {
        devices.entry(interface.device.address.clone()).or_default().push(at);
    }
    for mut ports in devices.into_values() {
        ports.sort_by_key(|&at| (interfaces[at].port, at));
        read_device(root, interrupts, interfaces, &ports)?;
    }
    Ok(())
}

/// A vector whose name is understood, before its number has become a queue.
struct Found {
    irq: u32,
    action: String,
    role: Role,
    numbering: Numbering,
    number: u32,
}

fn read_device(
    root: &Root,
    interrupts: &Interrupts,
    interfaces: &mut [Interface],
    ports: &[usize],
) -> Result<(), FileError> {
    let Some(&first) = ports.first() else { return Ok(()) };
    let mut found: BTreeMap<usize, Vec<Found>> = BTreeMap::new();
    for (irq, actions) in requested(interrupts, interfaces, ports) {
        let known = actions.iter().find_map(|action| {
            let named = names::classify(interfaces[first].driver.as_deref(), action)?;
            Some((action, owner(interfaces, ports, &named)?, named))
        });
        match known {
            Some((action, owner, named)) => found.entry(owner).or_default().push(Found {
                irq,
                action: action.clone(),
                role: named.role,
                number: named.number.unwrap_or(0),
                numbering: named.numbering,
            }),
            None => {
                interfaces[first].unknown_vectors.push(UnknownVector { irq, action: actions.join(", ") });
            }
        }
    }
    for &port in ports {
        let found = found.remove(&port).unwrap_or_default();
        for (found, role, queue) in number(&interfaces[port], found) {
            let Some(role) = role else {
                let Found { irq, action, .. } = found;
                interfaces[port].unknown_vectors.push(UnknownVector { irq, action });
                continue;
            };
            let vector = read_vector(root, found, role, queue)?;
            interfaces[port].vectors.extend(vector);
        }
        let order = |v: &Vector| (v.role == Role::Control, v.queue, v.role, v.irq);
        interfaces[port].vectors.sort_by_key(order);
        if port != first && interfaces[port].vectors.is_empty() && !interfaces[first].vectors.is_empty() {
            interfaces[port].shares_vectors_of = Some(interfaces[first].name.clone());
        }
    }
    Ok(())
}

/// The device's IRQs that have a handler, and the handlers' names.
fn requested(interrupts: &Interrupts, interfaces: &[Interface], ports: &[usize]) -> Vec<(u32, Vec<String>)> {
    let irqs: Vec<u32> =
        ports.first().map(|&first| interfaces[first].device.irqs.clone()).unwrap_or_default();
    if !irqs.is_empty() {
        let rows = irqs.iter().filter_map(|&irq| interrupts.row(irq));
        return rows
            .filter(|row| !row.actions.is_empty())
            .map(|row| (row.irq, row.actions.clone()))
            .collect();
    }
    // Xen, platform and other devices without a list: only names that carry the interface's own.
    let driver = ports.first().and_then(|&first| interfaces[first].driver.clone());
    let own = |action: &String| {
        let named = names::classify(driver.as_deref(), action);
        let name = named.and_then(|named| named.interface);
        ports.iter().any(|&port| name == Some(interfaces[port].name.as_str()))
    };
    interrupts
        .rows
        .iter()
        .filter(|row| row.actions.iter().any(own))
        .map(|row| (row.irq, row.actions.iter().filter(|action| own(action)).cloned().collect()))
        .collect()
}

/// The port that a vector belongs to. Names without an interface belong to the first port; a name that was
/// given before a rename belongs to the only port there is.
fn owner(interfaces: &[Interface], ports: &[usize], named: &Named<'_>) -> Option<usize> {
    match named.interface {
        None => ports.first().copied(),
        Some(name) => match ports.iter().find(|&&port| interfaces[port].name == name) {
            Some(&port) => Some(port),
            None if ports.len() == 1 && !interfaces[ports[0]].device.irqs.is_empty() => Some(ports[0]),
            None => None,
        },
    }
}

/// Turns the numbers in names into queues. A role of `None`: the name cannot be told from its neighbours'.
fn number(interface: &Interface, found: Vec<Found>) -> Vec<(Found, Option<Role>, Option<u32>)> {
    let numbered = |wanted: &Numbering| found.iter().filter(|f| f.numbering == *wanted).count();
    let data = found.iter().filter(|f| f.role != Role::Control).count();
    let (plain, of_tg3) = (numbered(&Numbering::Plain), numbered(&Numbering::Tg3));
    let blocks =
        found.iter().filter(|f| f.numbering == Numbering::Halves).map(|f| f.number + 1).max().unwrap_or(0);
    let several_tx = interface.tx_queues.len() > 1;
    let rank = |one: &Found| {
        let peers = found.iter().filter(|f| f.role == one.role && f.numbering == Numbering::Rank);
        u32::try_from(peers.filter(|f| (f.number, f.irq) < (one.number, one.irq)).count()).ok()
    };
    let resolved: Vec<(Option<Role>, Option<u32>)> = found
        .iter()
        .map(|one| match one.numbering {
            Numbering::None => (Some(Role::Control), None),
            Numbering::Queue => (Some(one.role), Some(one.number)),
            Numbering::Rank => (Some(one.role), rank(one)),
            Numbering::Shared => (Some(one.role), Some(0)),
            // The first half of the blocks transmits, the second receives.
            Numbering::Halves if one.number < blocks / 2 => (Some(Role::Tx), Some(one.number)),
            Numbering::Halves => (Some(Role::Rx), Some(one.number - blocks / 2)),
            Numbering::Plain if data > plain => (Some(Role::Control), None),
            Numbering::Plain if plain == 1 => (Some(Role::Combined), Some(0)),
            Numbering::Plain => (None, None),
            // Vector 0 takes link events, and transmits while there is one transmit queue.
            Numbering::Tg3 if one.number == 0 && data > of_tg3 => (Some(Role::Control), None),
            Numbering::Tg3 if one.number == 0 && of_tg3 == 1 => (Some(Role::Combined), Some(0)),
            Numbering::Tg3 if one.number == 0 && several_tx => (Some(Role::Control), None),
            Numbering::Tg3 if one.number == 0 => (Some(Role::Tx), Some(0)),
            Numbering::Tg3 if several_tx => (Some(Role::Combined), Some(one.number - 1)),
            Numbering::Tg3 => (Some(Role::Rx), Some(one.number - 1)),
        })
        .collect();
    found.into_iter().zip(resolved).map(|(found, (role, queue))| (found, role, queue)).collect()
}

/// Reads where a vector may go and goes; `None` when it went away.
fn read_vector(
    root: &Root,
    found: Found,
    role: Role,
    queue: Option<u32>,
) -> Result<Option<Vector>, FileError> {
    let irq = format!("/proc/irq/{}", found.irq);
    let Some(allowed) = read_mask_file(root, &format!("{irq}/smp_affinity"))? else { return Ok(None) };
    let serving = match read_list(root, &format!("{irq}/effective_affinity_list"))? {
        Some(cpus) => Some(cpus),
        None => read_mask(root, &format!("{irq}/effective_affinity"))?,
    };
    Ok(Some(Vector {
        irq: found.irq,
        action: found.action,
        role,
        queue,
        source: Source::Name,
        allowed,
        // An empty effective mask is an IRQ that has never been started.
        serving: serving.filter(|cpus| !cpus.is_empty()),
        movable: root.mode(&format!("{irq}/smp_affinity")).is_none_or(|mode| mode & 0o200 != 0),
    }))
}
