//! Makes a plan: places the queues, then decides on the target of each vector and queue, the reason, and the writes.

use crate::cpuset::CpuSet;
use crate::machine::{Machine, Node, NodeSource, Role, Selection, Vector};
use crate::plan::assign::assign;
use crate::plan::candidates::exclusive;
use crate::plan::data::{
    DecidedBy, HostSummary, NodeSummary, Placement, Plan, PlannedInterface, PlannedVector, SCHEMA,
};
use crate::plan::hash::{class, hash};
use crate::plan::note::Note;
use crate::plan::place::Locations;
use crate::plan::queues::Rps;
use crate::plan::threads::Threads;
use crate::plan::work::{Context, Work, works};
use crate::plan::write::writes;
use crate::plan::{channels, irqbalance, notes, queues, rss, score, threads};
use crate::policy::{IRQBALANCE, Policy, RDMA, RFS, Rdma, Rfs, SCOPE, Scope};

/// Plans the selected interfaces of a machine. Interfaces that share CPUs are placed together, selected or not, so that
/// the plan of an interface does not depend on the selection.
pub fn plan(machine: &Machine, policy: &Policy, selection: &Selection) -> Plan {
    let locations = &Locations::new(&machine.topology);
    let mut works = works(machine, policy, selection);
    assign(machine, locations, &mut works);
    works.sort_by_key(|work| work.order);
    let context = Context::new(machine, locations, selection, &works);
    let chosen = || {
        works
            .iter()
            .filter(|work| selection.names.contains(&work.interface.name))
    };
    let threads = Threads::new(&context);
    let rps = Rps::new(&context);
    let worker_cores = worker_cores(&context, &threads, &rps);
    let interfaces: Vec<_> = chosen()
        .map(|work| interface(&context, &threads, &rps, &worker_cores, work))
        .collect();
    let entries = queues::flow_table(works.iter().map(|work| work.choice.get(&RFS)));
    let is_chosen = chosen().any(|work| work.choice.get(&RFS) != Rfs::Keep);
    let entries = entries.filter(|_| is_chosen);
    let entries = entries.map(|entries| (entries, "one flow table for all interfaces"));
    let (writes, unchanged) = writes(machine, &interfaces, entries);
    let summary = summary(machine);
    let mut plan = Plan {
        schema: SCHEMA.to_owned(),
        hash: hash(&summary, &interfaces),
        class: class(machine),
        score: score::score(machine, locations, &interfaces, true),
        score_now: score::score(machine, locations, &interfaces, false),
        host: summary,
        channels: chosen()
            .filter_map(|work| channels::change(locations, work))
            .collect(),
        interfaces,
        writes,
        unchanged,
        irqbalance: None,
        notes: notes::of_machine(machine, policy, selection),
    };
    irqbalance::add(machine, policy.get(&IRQBALANCE), &mut plan);
    plan
}

/// CPUs and nodes of the machine.
pub(crate) fn summary(machine: &Machine) -> HostSummary {
    let summary = |(&node, facts): (&u32, &Node)| NodeSummary {
        node,
        cpus: facts.cpus.clone(),
        without_memory: facts.without_memory,
    };
    HostSummary {
        name: None,
        cores: machine.topology.cores.len(),
        online: machine.topology.online.clone(),
        possible: machine.topology.possible,
        isolated: machine.topology.isolated.clone(),
        nohz_full: machine.topology.nohz_full.clone(),
        nodes: machine.topology.nodes.iter().map(summary).collect(),
    }
}

/// The CPUs of cores on which nothing of the network lands: no queue, RDMA vector, polling thread or RPS work.
fn worker_cores(context: &Context<'_>, threads: &Threads, rps: &Rps) -> CpuSet {
    let taken = context.loaded.union(&threads.cpus).union(&rps.cpus());
    let cores = context.machine.topology.cores.iter();
    CpuSet::union_of(cores.filter(|core| !core.intersects(&taken)))
}

fn interface(
    context: &Context<'_>,
    threads: &Threads,
    rps: &Rps,
    worker_cores: &CpuSet,
    work: &Work<'_>,
) -> PlannedInterface {
    let &Context {
        machine,
        locations,
        selection,
        ..
    } = context;
    let interface = work.interface;
    let vectors: Vec<PlannedVector> = interface
        .vectors
        .iter()
        .map(|v| vector(machine, work, v))
        .collect();
    let (rx_queues, rps_notes) = queues::rx(context, work, rps);
    let tx_queues = queues::tx(machine, locations, work);
    let mut notes = work.candidates.notes.clone();
    let (rss, about_rss) = rss::plan(context, work);
    notes.extend(notes::of_interface(context, work, rss.as_ref()));
    notes.extend(rps_notes);
    notes.extend(about_rss);
    let planned_threads = threads.of(work);
    notes.extend(threads::unplaced(work, &planned_threads));
    // The kernel runs nobody else's programs on exclusive CPUs.
    let exclusive = exclusive(&machine.topology, &work.choice);
    let free = work.candidates.near.intersection(worker_cores);
    let free = free.difference(&exclusive);
    let plain = free.difference(&machine.topology.isolated_or_nohz());
    PlannedInterface {
        name: interface.name.clone(),
        driver: interface.driver.clone(),
        device: interface.device.address.clone(),
        pci_id: interface.device.pci_id.clone(),
        parent: interface.device.parent.clone(),
        via: selection
            .via
            .get(&interface.name)
            .cloned()
            .unwrap_or_default(),
        node: work.candidates.node,
        node_source: work.candidates.source,
        unused_node: unused_node(machine, work),
        candidates: work.candidates.cpus.clone(),
        candidate_cores: context.locations.cores_in(&work.candidates.cpus),
        near: work.candidates.near_to.clone(),
        left_out: work.candidates.left_out.clone(),
        exclusive,
        irq_cpus: work.irq_cpus.clone(),
        worker_cpus: if plain.is_empty() { free } else { plain },
        speed_mbps: interface.speed_mbps,
        link: interface.link.clone(),
        channels: interface.channels,
        rules: work.choice.rules.clone(),
        vectors,
        rx_queues,
        tx_queues,
        rss,
        ntuple: queues::ntuple(work),
        threads: planned_threads,
        notes,
    }
}

fn unused_node(machine: &Machine, work: &Work<'_>) -> Option<u32> {
    let own = work
        .interface
        .device
        .node
        .filter(|_| work.candidates.source == NodeSource::Nearest);
    let has_cpus = |own: &u32| {
        machine
            .topology
            .nodes
            .get(own)
            .is_some_and(|node| !node.cpus.is_empty())
    };
    own.filter(|own| work.candidates.tied || has_cpus(own))
}

fn vector(machine: &Machine, work: &Work<'_>, vector: &Vector) -> PlannedVector {
    let cpus = work.target(machine, vector);
    let idle = work.interface.is_idle(vector);
    let placement = placement(work, vector).filter(|_| cpus.is_some());
    PlannedVector {
        irq: vector.irq,
        action: vector.action.clone(),
        role: vector.role,
        queue: vector.queue,
        source: vector.source,
        node: vector.node,
        idle,
        why: why(machine, work, vector, cpus.as_ref()).into(),
        cpus,
        affinity: vector.affinity.cpus.clone(),
        effective: vector.effective.clone(),
        movable: vector.movable,
        placement: placement.cloned(),
    }
}

/// The reason for a vector's target, in a few words.
fn why(machine: &Machine, work: &Work<'_>, vector: &Vector, cpus: Option<&CpuSet>) -> String {
    if work.skip {
        let is_unmet = work.candidates.notes.iter().any(Note::is_unmet);
        let why = if is_unmet {
            "skipped: the policy cannot be met"
        } else {
            "skipped by the policy"
        };
        return why.to_owned();
    }
    if !vector.movable {
        return "kernel-managed; cannot be moved".to_owned();
    }
    if let Some(owner) = work.shared.get(&vector.irq) {
        return format!("the IRQ is shared with {owner} and planned there");
    }
    let Some(cpus) = cpus else {
        return match vector.role {
            Role::Control => "control IRQ; unchanged".to_owned(),
            Role::Rdma if work.choice.get(&RDMA) == Rdma::Keep => "kept by the policy".to_owned(),
            _ => "no usable CPU".to_owned(),
        };
    };
    if vector.role == Role::Control {
        let now = vector.effective.as_ref().unwrap_or(&vector.affinity.cpus);
        let isolated = now.is_subset(&machine.topology.isolated_or_nohz());
        let what = if isolated {
            "an isolated CPU"
        } else {
            "a CPU of an exclusive cpuset partition"
        };
        return format!("control IRQ; moved off {what}");
    }
    let taken = placement(work, vector);
    let on = || cpus.first().and_then(|cpu| machine.topology.node_of(cpu));
    let node = match (work.candidates.node, work.candidates.source) {
        _ if work.group.is_some() => "a group of CPUs, by the policy".to_owned(),
        _ if taken.is_some_and(|taken| taken.decided_by == Some(DecidedBy::Hint)) => {
            let own = machine
                .hints
                .get(&vector.irq)
                .is_some_and(|hint| cpus.is_subset(hint));
            let whose = if own {
                ""
            } else {
                " for the queue's other vector"
            };
            format!("hinted by the driver{whose}")
        }
        _ if work.candidates.named => "among the CPUs that the policy names".to_owned(),
        _ if work.choice.get(&SCOPE) == Scope::All => "any node, by the policy".to_owned(),
        _ if work.choice.get(&SCOPE) == Scope::Remote => "another node, by the policy".to_owned(),
        _ if matches!(work.choice.get(&SCOPE), Scope::Nodes(_)) => {
            let node = on().unwrap_or_default();
            format!("node {node}, by the policy")
        }
        _ if vector.node.is_some() => {
            let node = vector.node.unwrap_or_default();
            let there = machine
                .topology
                .nodes
                .get(&node)
                .is_some_and(|node| cpus.is_subset(&node.cpus));
            let near = if there { "" } else { "nearest to " };
            format!("{near}node {node}, where the IRQ's device is")
        }
        (Some(node), _)
            if !work.candidates.tiers.is_empty() && !cpus.is_subset(&work.candidates.near) =>
        {
            let other = on().map_or("another node".to_owned(), |other| format!("node {other}"));
            format!("{other} of the same package: no core of node {node} has fewer queues")
        }
        (Some(_), NodeSource::Nearest) if work.candidates.tied => {
            let node = on().unwrap_or_default();
            format!("node {node}, one of the nearest to the device's node")
        }
        (Some(node), NodeSource::Nearest) => format!("node {node}, nearest to the device's node"),
        (Some(node), NodeSource::SingleNode) => format!("node {node}, the only node"),
        (Some(node), NodeSource::LocalCpulist) => format!("node {node}, by local_cpulist"),
        (Some(node), _) => format!("local (node {node})"),
        (None, NodeSource::LocalCpulist) => "local, by local_cpulist".to_owned(),
        (None, _) => "node unknown".to_owned(),
    };
    let idle = match vector.role {
        Role::Rdma => "; for RDMA",
        _ if work.interface.is_idle(vector) => "; idle, not counted",
        _ => "",
    };
    match taken.map_or(0, |taken| taken.queues_on_core) {
        0 => node + idle,
        1 => node + "; its core already has a queue" + idle,
        before => format!("{node}; its core already has {before} queues{idle}"),
    }
}

/// The placement of a queue vector's queue.
fn placement<'a>(work: &'a Work<'_>, vector: &Vector) -> Option<&'a Placement> {
    let queue = vector.queue.filter(|_| vector.is_queue_vector())?;
    work.cpus.get(&queue)
}
