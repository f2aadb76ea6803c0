//! A machine, read once.

use std::collections::{BTreeMap, BTreeSet};

use crate::cpuset::CpuSet;
use crate::machine::setting::{FLOW_ENTRIES, IRQ_FILES};
use crate::machine::{Interface, Machine, Others};
use crate::read::files::{read_mask, read_number};
use crate::read::interfaces::{self, Listed};
use crate::read::interrupts::{Handlers, INTERRUPTS, IRQS};
use crate::read::wants::Wants;
use crate::read::{
    cgroups, memory, netlink, others, polling, rx_hash, threads, tools, topology, vectors,
};
use crate::root::tree::ABOUT;
use crate::root::{FileError, Root};

/// Reads the machine below a root: what is always needed, and what else is wanted.
pub fn machine(root: &Root, wants: Wants) -> Result<Machine, FileError> {
    let mut topology = topology::read(root)?;
    if wants.exclusive {
        let found = cgroups::partitions(root)?;
        topology.exclusive = found.cpus.intersection(&topology.online);
        topology.exclusive_cut = found.cut;
    }
    let machine = settings(root, wants)?;
    let interfaces = &machine.interfaces;
    let hints = if wants.hints {
        hints(root, interfaces)?
    } else {
        BTreeMap::new()
    };
    let neighbours = if wants.neighbours {
        others::neighbours(root)?
    } else {
        Vec::new()
    };
    let memory = if wants.memory {
        memory::totals(root, &topology)?
    } else {
        BTreeMap::new()
    };
    Ok(Machine {
        topology,
        hints,
        memory,
        neighbours,
        altnames: netlink::altnames(root)?,
        other_tools: tools::read(root),
        sockets_poll: polling::sockets_poll(root)?,
        ..machine
    })
}

/// Reads the settings of a machine, and nothing that only planning needs: a restore must not fail because of it.
pub(crate) fn settings(root: &Root, wants: Wants) -> Result<Machine, FileError> {
    let Listed {
        mut interfaces,
        stacked,
        virtuals,
    } = interfaces::read(root, wants)?;
    // A topology dump has no /proc at all; any other machine needs its interrupts.
    let without_proc = !root.is_there("/proc")?;
    let rdma = others::rdma(root)?;
    let mut cards = others::cards(root, &interfaces)?;
    for card in cards.iter().filter(|card| card.may_be_elsewhere()) {
        interfaces.extend(interfaces::elsewhere(root, &card.address)?);
    }
    if !interfaces.is_empty() && !without_proc {
        let mut netlink = netlink::Netlink::open(root)?;
        for interface in interfaces
            .iter_mut()
            .filter(|interface| !interface.in_other_namespace)
        {
            if wants.flows {
                interface.rx_hash = rx_hash::read(root, &interface.name)?;
            }
            interface.netdev = netlink.netdev(root, &interface.name, interface.polling.threaded)?;
            for napi in interface.netdev.iter().flat_map(|answer| &answer.napis) {
                interface.polling.add(napi);
            }
        }
        let handlers = Handlers::new(root);
        if wants.interrupts {
            handlers.listed()?;
        }
        root.with_pinned([IRQ_FILES, IRQS], || {
            vectors::read(root, &handlers, &mut interfaces, &rdma)
        })?;
        threads::read(root, &mut interfaces)?;
    }
    // Nobody has set up the interface of such a function, or its driver has failed.
    interfaces.retain(|of| {
        !of.is_elsewhere() || !of.vectors.is_empty() || !of.unknown_vectors.is_empty()
    });
    cards.retain(|card| interfaces.iter().all(|of| of.name != card.address));
    Ok(Machine {
        others: Others {
            virtuals,
            rdma,
            cards,
        },
        stacked,
        without_proc,
        without_irqs: !without_proc && without_irqs(root, &interfaces)?,
        interfaces,
        flow_entries: read_number(root, FLOW_ENTRIES)?,
        ..Machine::default()
    })
}

/// Reads how the queues of some interfaces are steered, where only their numbers were read before
/// ([`Queues::Numbers`](crate::read::Queues::Numbers)).
pub fn read_queue_settings(
    root: &Root,
    machine: &mut Machine,
    names: &BTreeSet<String>,
) -> Result<(), FileError> {
    let wanted = machine
        .interfaces
        .iter_mut()
        .filter(|interface| names.contains(&interface.name));
    wanted
        .into_iter()
        .try_for_each(|interface| interfaces::read_queue_settings(root, interface))
}

/// The host name; `None` where the machine reports none, as in a capture that does not identify it.
pub fn host_name(root: &Root) -> Result<Option<String>, FileError> {
    let identity = root.read_opt(ABOUT)?;
    let captured = identity
        .as_deref()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("host ")));
    let name = match captured {
        Some(name) => Some(name.to_owned()),
        None => root.read_opt("/proc/sys/kernel/hostname")?,
    };
    Ok(name
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty()))
}

/// Whether the directories of IRQs are absent or masked by an empty directory, as in a container.
fn without_irqs(root: &Root, interfaces: &[Interface]) -> Result<bool, FileError> {
    let is_irq = |name: &String| name.bytes().all(|b| b.is_ascii_digit());
    let mut vectors = interfaces.iter().flat_map(|interface| &interface.vectors);
    if vectors.next().is_some() {
        return Ok(false);
    }
    let names = root.list(IRQ_FILES)?.unwrap_or_default();
    Ok(!names.iter().any(is_irq) && (root.is_there(INTERRUPTS)? || root.is_there(IRQS)?))
}

fn hints(root: &Root, interfaces: &[Interface]) -> Result<BTreeMap<u32, CpuSet>, FileError> {
    let mut hints = BTreeMap::new();
    for vector in interfaces.iter().flat_map(|interface| &interface.vectors) {
        let hint = read_mask(root, &format!("{IRQ_FILES}/{}/affinity_hint", vector.irq))?;
        // An all-zero mask is not a hint.
        hints.extend(
            hint.filter(|cpus| !cpus.is_empty())
                .map(|cpus| (vector.irq, cpus)),
        );
    }
    Ok(hints)
}
