//! Reads a machine once.

use std::collections::{BTreeMap, BTreeSet};

use crate::cpuset::{CpuSet, Inserted as _};
use crate::drivers::{Fact, Taught};
use crate::machine::files::{FLOW_ENTRIES, IRQ_FILES, NET};
use crate::machine::{Interface, Machine};
use crate::read::files::{line_of, number};
use crate::read::handlers::Handlers;
use crate::read::interrupts::{INTERRUPTS, IRQS};
use crate::read::members::begins_with;
use crate::read::{
    Queues, ReadOptions, cgroups, device, ethtool, interfaces, links, netlink, others, queue_files,
    threads, tools, topology, vector_space, vectors,
};
use crate::root::tree::ABOUT;
use crate::root::{Result, Root};

/// Bits of a machine's masks, 8 MiB. A plan takes some twelve times as much.
const MOST_BITS: usize = 8 << 23;

/// Reads the machine below a root, with the requested optional facts.
pub fn machine(root: &Root, options: ReadOptions<'_>) -> Result<Machine> {
    let mut topology = topology::read(root)?;
    if options.exclusive {
        let found = cgroups::partitions(root)?;
        topology.exclusive = found.cpus.intersection(&topology.online);
        topology.exclusive_cut = found.cut;
    }
    let mut machine = interfaces_of(root, options)?;
    let masks: usize = machine.interfaces.iter().map(Interface::masks).sum();
    let most = MOST_BITS / (topology.possible as usize).max(1);
    if masks > most {
        let cpus = topology.possible;
        let reason = format!("{masks} IRQs and queues, of at most {most} on {cpus} CPUs");
        return Err(root.content_error(NET, reason));
    }
    let (altnames, lowers) = links::links(root)?;
    interfaces::stack(&mut machine, lowers);
    Ok(Machine {
        hints: if_wanted(options.hints, || hints(root, &machine.interfaces))?,
        neighbours: if_wanted(options.neighbours, || others::neighbours(root))?,
        memory: if_wanted(options.memory, || topology::memory(root, &topology))?,
        topology,
        altnames,
        other_tools: root.gist(tools::RECORDED, || tools::find(root))?,
        sockets_poll: sockets_poll(root)?,
        ..machine
    })
}

fn if_wanted<T: Default>(wanted: bool, read: impl FnOnce() -> Result<T>) -> Result<T> {
    if wanted { read() } else { Ok(T::default()) }
}

pub(crate) fn settings(root: &Root, drivers: &[Taught]) -> Result<Machine> {
    let options = ReadOptions {
        settings_only: true,
        drivers,
        ..ReadOptions::default()
    };
    interfaces_of(root, options)
}

fn interfaces_of(root: &Root, options: ReadOptions<'_>) -> Result<Machine> {
    let mut machine = interfaces::read(root, options)?;
    let interfaces = &mut machine.interfaces;
    // A topology dump has no /proc at all; any other machine needs its interrupts.
    machine.without_proc = !root.is_there("/proc")?;
    let rdma = others::rdma(root)?;
    let mut cards = others::cards(root, interfaces)?;
    let mut irqs_of_cards = Vec::new();
    for card in &cards {
        if card.may_be_elsewhere() {
            interfaces.extend(interfaces::read_function(root, &card.address, options)?);
        } else if card.driver.is_some() {
            irqs_of_cards.extend(device::irqs_of(root, &card.address)?);
        }
    }
    if !interfaces.is_empty() && !machine.without_proc {
        let mut client = netlink::open(root)?;
        for interface in interfaces
            .iter_mut()
            .filter(|interface| !interface.in_other_namespace)
        {
            let (name, polling) = (&interface.name, &mut interface.polling);
            if options.flows {
                interface.rx_hash = ethtool::rx_hash(root, name)?;
            }
            interface.netdev = netlink::netdev(root, client.as_mut(), name, polling.threaded)?;
            for napi in interface.netdev.iter().flat_map(|answer| &answer.napis) {
                polling.add(napi);
            }
        }
        let handlers = Handlers::new(root);
        if options.interrupts {
            handlers.listed()?;
        }
        let seconds = second_functions(&handlers, interfaces)?;
        remove_irqs_of_others(interfaces, &seconds);
        interfaces.retain(|interface| !seconds.contains_key(&interface.name));
        cards.retain(|card| !seconds.contains_key(&card.address));
        machine.others.seconds = seconds;
        let (drivers, cards) = (options.drivers, &irqs_of_cards);
        machine.others.card_cpus = root.with_pinned([IRQ_FILES, IRQS], || {
            vectors::read(root, &handlers, interfaces, &rdma, drivers, cards)
        })?;
        if !options.settings_only {
            machine.vectors_held = vector_space::held_vectors(root, &handlers, interfaces)?;
        }
        threads::read(root, interfaces)?;
    }
    // Nobody has set up such an interface, or its driver has failed.
    interfaces.retain(|interface| {
        !interface.is_elsewhere()
            || !interface.vectors.is_empty()
            || !interface.unknown_vectors.is_empty()
    });
    cards.retain(|card| {
        interfaces
            .iter()
            .all(|interface| interface.name != card.address)
    });
    machine.without_irqs = !machine.without_proc && without_irqs(root, interfaces)?;
    machine.flow_entries = root.read_as(FLOW_ENTRIES, number)?;
    (machine.others.rdma, machine.others.cards) = (rdma, cards);
    Ok(machine)
}

/// Functions whose IRQs netlink reports for an interface of the same driver, by its name; or whose IRQs have its name,
/// where the driver has queues there: then it gets the IRQs. A single IRQ may be a shared line.
fn second_functions(
    handlers: &Handlers<'_>,
    interfaces: &mut [Interface],
) -> Result<BTreeMap<String, String>> {
    let mut seconds = BTreeMap::new();
    for at in 0..interfaces.len() {
        let second = &interfaces[at];
        let irqs = second.device.irqs.clone();
        if !second.is_elsewhere() || irqs.len() < 2 {
            continue;
        }
        let has_queues = second.has_fact(Fact::QueuesOnFunctions);
        let named = irqs.iter().filter(|_| has_queues);
        let actions = named.map(|&irq| handlers.of(irq));
        let actions = actions.collect::<Result<Vec<_>>>()?;
        let reports = |owner: &Interface| {
            let mut reported = owner.napis().filter_map(|napi| napi.irq);
            reported.any(|irq| irqs.binary_search(&irq).is_ok())
        };
        let is_named = |owner: &Interface| {
            let mut actions = actions.iter().flatten();
            actions.any(|action| begins_with(action, &owner.name))
        };
        let is_owner = |owner: &Interface| {
            owner.driver == second.driver && (reports(owner) || is_named(owner))
        };
        let Some(owner) = interfaces.iter().position(is_owner) else {
            continue;
        };
        seconds.insert(second.name.clone(), interfaces[owner].name.clone());
        if !reports(&interfaces[owner]) {
            interfaces[owner].device.irqs.extend(irqs);
        }
    }
    Ok(seconds)
}

/// Removes reported IRQs of other devices: e1000e reports the line that its function has without MSI-X, whose number
/// another device's vector may have.
fn remove_irqs_of_others(interfaces: &mut [Interface], seconds: &BTreeMap<String, String>) {
    let of_seconds = interfaces.iter().filter_map(|interface| {
        let owner = seconds.get(&interface.name)?;
        Some((owner.clone(), interface.device.irqs.clone()))
    });
    let of_seconds: BTreeMap<String, Vec<u32>> = of_seconds.inserted();
    for interface in interfaces {
        let (device, second) = (&interface.device, of_seconds.get(&interface.name));
        let is_own =
            |irq: &u32| device.may_have(*irq) || second.is_some_and(|irqs| irqs.contains(irq));
        let napis = interface
            .netdev
            .iter_mut()
            .flat_map(|answer| &mut answer.napis);
        napis.for_each(|napi| napi.irq = napi.irq.filter(is_own));
    }
}

/// Reads the steering settings of interfaces that were read with [`Queues::Numbers`](crate::read::Queues::Numbers).
pub fn read_queue_settings(
    root: &Root,
    machine: &mut Machine,
    names: &BTreeSet<String>,
) -> Result<()> {
    let interfaces = machine.interfaces.iter_mut();
    interfaces
        .filter(|interface| names.contains(&interface.name) && !interface.is_elsewhere())
        .try_for_each(|interface| queue_files::read_queues(root, interface, Queues::Steering))
}

pub fn host_name(root: &Root) -> Result<Option<String>> {
    let name = match line_of(&root.read_text(ABOUT)?, "host ") {
        Some(captured) => captured.to_owned(),
        None => root.read_text("/proc/sys/kernel/hostname")?,
    };
    Ok(Some(name.trim().to_owned()).filter(|name| !name.is_empty()))
}

fn sockets_poll(root: &Root) -> Result<bool> {
    let core = root.dir("/proc/sys/net/core");
    let is_set = |name| {
        Ok(core
            .read_as(name, number::<u32>)?
            .is_some_and(|value| value > 0))
    };
    Ok(is_set("busy_read")? || is_set("busy_poll")?)
}

/// Whether the directories of IRQs are absent, or masked by an empty one as in a container.
fn without_irqs(root: &Root, interfaces: &[Interface]) -> Result<bool> {
    if interfaces
        .iter()
        .any(|interface| !interface.vectors.is_empty())
    {
        return Ok(false);
    }
    let names = root.read_names(IRQ_FILES)?;
    let is_irq = |name: &&String| name.bytes().all(|byte| byte.is_ascii_digit());
    // Looked up by name, because a capture has only files that were read.
    let first = names.iter().find(is_irq);
    let has_irqs = first.is_some_and(|irq| root.exists(&format!("{IRQ_FILES}/{irq}")));
    Ok(!has_irqs && (root.is_there(INTERRUPTS)? || root.is_there(IRQS)?))
}

fn hints(root: &Root, interfaces: &[Interface]) -> Result<BTreeMap<u32, CpuSet>> {
    let mut hints = BTreeMap::new();
    for vector in interfaces.iter().flat_map(|interface| &interface.vectors) {
        let hint = root.read_as(
            &format!("{IRQ_FILES}/{}/affinity_hint", vector.irq),
            CpuSet::parse_kernel_mask,
        )?;
        hints.extend(
            hint.filter(|cpus| !cpus.is_empty())
                .map(|cpus| (vector.irq, cpus)),
        );
    }
    Ok(hints)
}
