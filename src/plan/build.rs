//! From placed queues to the plan: what each vector and queue should be, why, and which writes that takes.

use crate::cpuset::CpuSet;
use crate::host::{Host, Role, Vector};
use crate::plan::differences::Settings;
use crate::plan::hash::hash;
use crate::plan::place::{Places, Taken};
use crate::plan::plan::{
    HostSummary, InterfacePlan, NodeSource, NodeSummary, Plan, SCHEMA, Seat, VectorPlan,
};
use crate::plan::{Work, channels, notes, queues, score};
use crate::policy::Scope;
use crate::select::Selection;

/// What concerns all interfaces that take part, chosen or not.
pub(crate) struct Shared {
    /// Receive queues over which a flow table is sized.
    pub(crate) flow_queues: usize,
    /// CPUs that take a queue of any of them.
    pub(crate) busy: CpuSet,
}

/// Builds the plan of the chosen interfaces, in their order.
pub(crate) fn build(
    host: &Host,
    places: &Places,
    chosen: &[&Work<'_>],
    shared: &Shared,
    selection: &Selection,
) -> Plan {
    let mut settings = Settings::default();
    let mut interfaces = Vec::new();
    for work in chosen {
        let mut interface = interface(host, places, work, shared);
        settings.gather(host, work.interface, &interface);
        interface.via = selection.via.get(&interface.name).cloned().unwrap_or_default();
        interfaces.push(interface);
    }
    if let Some(entries) = chosen.iter().find_map(|work| queues::flow_entries(work.choice.rfs)) {
        settings.flow_entries(host, entries, &"one flow table for all interfaces".into());
    }
    let (writes, unchanged) = settings.in_order();
    let summary = summary(host);
    Plan {
        schema: SCHEMA.to_owned(),
        hash: hash(&summary, &interfaces),
        score: score::score(host, places, &interfaces, score::planned),
        score_now: score::score(host, places, &interfaces, VectorPlan::served),
        host: summary,
        channels: chosen.iter().filter_map(|work| channels::change(places, work)).collect(),
        interfaces,
        writes,
        unchanged,
        irqbalance: None,
        notes: notes::of_machine(host, selection),
    }
}

/// The machine in short.
pub(crate) fn summary(host: &Host) -> HostSummary {
    HostSummary {
        online: host.topology.online.clone(),
        possible: host.topology.possible,
        isolated: host.topology.isolated.clone(),
        nohz_full: host.topology.nohz_full.clone(),
        nodes: (host.topology.nodes.iter())
            .map(|(&node, told)| NodeSummary { node, cpus: told.cpus.clone() })
            .collect(),
    }
}

fn interface(host: &Host, places: &Places, work: &Work<'_>, shared: &Shared) -> InterfacePlan {
    let interface = work.interface;
    let name = &interface.name;
    let vectors: Vec<VectorPlan> = interface.vectors.iter().map(|v| vector(host, places, work, v)).collect();
    let (rx_queues, rps_note) = queues::rx(host, places, work, shared.flow_queues);
    let tx_queues = queues::tx(host, places, work);
    let mut notes = work.candidates.notes.clone();
    notes.extend(notes::of_interface(host, places, work));
    notes.extend(rps_note);
    let near = work.candidates.node.and_then(|node| host.topology.nodes.get(&node));
    let near = near.map_or(&host.topology.online, |node| &node.cpus);
    InterfacePlan {
        name: name.clone(),
        driver: interface.driver.clone(),
        device: interface.device.address.clone(),
        parent: interface.device.parent.clone(),
        via: Vec::new(),
        node: work.candidates.node,
        node_source: work.candidates.source,
        candidates: work.candidates.cpus.clone(),
        left_out: work.candidates.left_out.clone(),
        irq_cpus: work.irq_cpus(host),
        worker_cpus: near.difference(&shared.busy),
        speed_mbps: interface.speed_mbps,
        state: interface.state.clone(),
        channels: interface.channels,
        rules: work.choice.rules.clone(),
        vectors,
        rx_queues,
        tx_queues,
        notes,
    }
}

fn vector(host: &Host, places: &Places, work: &Work<'_>, vector: &Vector) -> VectorPlan {
    let cpus = work.target(host, vector);
    let idle = work.interface.is_idle(vector);
    let taken = vector.queue.and_then(|queue| work.cpus.get(&queue)).filter(|_| cpus.is_some());
    let seat = taken.map(|&Taken { cpu, on_core, in_domain }| Seat {
        core: places.core_of(&host.topology, cpu).cloned().unwrap_or_else(|| CpuSet::single(cpu)),
        on_core,
        l3: places.l3_of(&host.topology, cpu).cloned().unwrap_or_default(),
        on_l3: in_domain,
    });
    VectorPlan {
        irq: vector.irq,
        action: vector.action.clone(),
        role: vector.role,
        queue: vector.queue,
        source: vector.source,
        node: vector.node,
        idle,
        why: why(host, work, vector, cpus.as_ref()).into(),
        cpus,
        current: vector.allowed.cpus.clone(),
        serving: vector.serving.clone(),
        movable: vector.movable,
        seat,
    }
}

/// One line of reason for where a vector goes.
fn why(host: &Host, work: &Work<'_>, vector: &Vector, cpus: Option<&CpuSet>) -> String {
    if work.choice.skip {
        return "left alone by the policy".to_owned();
    }
    if !vector.movable {
        return "the kernel manages this vector and lets nobody move it".to_owned();
    }
    if let Some(owner) = work.shared.get(&vector.irq) {
        return format!("the line is shared with {owner} and planned there");
    }
    let Some(cpus) = cpus else {
        return match vector.role {
            Role::Control => "carries no packets; left alone".to_owned(),
            _ => "no CPU to put it on".to_owned(),
        };
    };
    if vector.role == Role::Control {
        return "carries no packets, but sits on an isolated CPU".to_owned();
    }
    let node = match (work.candidates.node, work.candidates.source) {
        _ if cpus.len() > 1 => "a group of CPUs, by the policy".to_owned(),
        _ if work.choice.scope == Scope::Hint && host.hints.contains_key(&vector.irq) => {
            "where the driver hints".to_owned()
        }
        _ if matches!(work.choice.scope, Scope::Cpus(_)) => "among the CPUs that the policy names".to_owned(),
        _ if work.choice.scope == Scope::All => "any node, by the policy".to_owned(),
        _ if work.choice.scope == Scope::Remote => "another node, by the policy".to_owned(),
        _ if vector.node.is_some() => {
            let node = vector.node.unwrap_or_default();
            let there = host.topology.nodes.get(&node).is_some_and(|node| cpus.is_subset(&node.cpus));
            let near = if there { "" } else { "nearest to " };
            format!("{near}node {node}, that of the device which raises it")
        }
        (Some(node), NodeSource::Nearest) => format!("node {node}, nearest to the card's own"),
        (Some(node), NodeSource::SingleNode) => format!("node {node}, the only one"),
        (Some(node), NodeSource::LocalCpulist) => format!("node {node}, by the card's local CPUs"),
        (Some(node), _) => format!("node {node}, the card's own"),
        (None, NodeSource::LocalCpulist) => "near the card by its local CPUs".to_owned(),
        (None, _) => "node unknown".to_owned(),
    };
    let idle = if work.interface.is_idle(vector) { "; idle, not counted" } else { "" };
    let before = vector.queue.and_then(|queue| work.cpus.get(&queue)).map_or(0, |taken| taken.on_core);
    let second = match before {
        0 => String::new(),
        1 => "; its core had a queue before".to_owned(),
        before => format!("; its core had {before} queues before"),
    };
    [&*node, &second, idle].concat()
}
