//! The reasons of a plan, one line for each decision.

use std::collections::BTreeMap;

use crate::machine::{Role, Source};
use crate::plan::{
    ChannelChange, DecidedBy, NodeSource, Plan, PlannedInterface, PlannedVector, Score, WriteKind,
};
use crate::render::note::note;
use crate::render::text::{count, ranges, wrap};

pub fn plan(plan: &Plan) -> String {
    let mut out = String::new();
    for interface in &plan.interfaces {
        let channels = plan.channels.iter().find(|change| change.interface == interface.name);
        out.push_str(&self::interface(interface, channels));
        out.push('\n');
    }
    for write in plan.writes.iter().filter(|write| write.kind == WriteKind::Sysctl) {
        out.push_str(&wrap("flow table  ", &format!("{} entries: {}", write.value, write.why)));
    }
    for note in &plan.notes {
        out.push_str(&self::note("", note));
    }
    out.push_str(&score(&plan.score_now, &plan.score));
    out.push_str(&format!("plan {}\n", plan.hash));
    out
}

fn interface(interface: &PlannedInterface, channels: Option<&ChannelChange>) -> String {
    let mut out = format!("{}\n", interface.name);
    let mut line = |what: &str, text: &str| out.push_str(&wrap(&format!("  {what:<11} "), text));
    line("node", &node(interface));
    line("candidates", &format!("CPUs {}", interface.candidates));
    for left in &interface.left_out {
        line("left out", &format!("CPUs {}: {}", left.cpus, left.why));
    }
    for number in &interface.rules {
        line("policy", &format!("rule {number} of the file matches"));
    }
    if let Some(change) = channels {
        line("channels", &format!("{}: {}", change.command, change.why));
    }
    for vector in &interface.vectors {
        line(&role(vector), &self::vector(vector));
    }
    for (what, queues, text) in grouped(interface) {
        line(&format!("{what} {}", ranges(&queues)), &text);
    }
    for note in &interface.notes {
        out.push_str(&self::note("  ", note));
    }
    out
}

fn node(interface: &PlannedInterface) -> String {
    let node = interface.node.map_or(String::new(), |node| node.to_string());
    match interface.node_source {
        NodeSource::NumaNode => format!("{node}: numa_node of {}", interface.device),
        NodeSource::LocalCpulist if interface.node.is_some() => {
            format!(
                "{node}: it has all CPUs of local_cpulist of {}, whose numa_node is not set",
                interface.device
            )
        }
        NodeSource::LocalCpulist => {
            format!("unknown; local_cpulist of {} names the local CPUs", interface.device)
        }
        NodeSource::Nearest => {
            format!("{node}: nearest to the node of {}, which has no usable CPU", interface.device)
        }
        NodeSource::SingleNode => format!("{node}: the only node with CPUs"),
        NodeSource::Policy => format!("{node}: it has all CPUs that the policy names"),
        NodeSource::Unknown => {
            format!(
                "unknown: numa_node of {} is not a node of this machine, and local_cpulist is all CPUs",
                interface.device
            )
        }
    }
}

fn role(vector: &PlannedVector) -> String {
    match (vector.queue, vector.role) {
        (Some(queue), Role::Combined) => format!("queue {queue}"),
        (Some(queue), Role::Rx) => format!("queue rx {queue}"),
        (Some(queue), Role::Tx) => format!("queue tx {queue}"),
        (Some(vector), Role::Rdma) => format!("rdma {vector}"),
        _ => "control".to_owned(),
    }
}

fn vector(vector: &PlannedVector) -> String {
    let source = match vector.source {
        Source::Netlink => "by netlink",
        Source::Name => "by its name",
        Source::Order => "by the order of the vectors",
    };
    let known = format!("IRQ {} ({}, {source})", vector.irq, vector.action);
    let Some(cpus) = &vector.cpus else { return format!("{known}: {}", vector.why) };
    let Some(placement) = &vector.placement else { return format!("{known} to CPU {cpus}: {}", vector.why) };
    let l3 = if placement.l3.is_empty() {
        String::new()
    } else {
        format!("; L3 domain {} had {}", placement.l3, placement.queues_on_l3)
    };
    let idle = if vector.idle { "; idle" } else { "" };
    let queues = count(placement.queues_on_core, "queue");
    let held = match placement.decided_by {
        None => "no candidate had fewer",
        Some(DecidedBy::Hint) => "hinted by the driver",
        Some(DecidedBy::Vector) => "another vector of the queue stays there",
        Some(DecidedBy::Line) => "the IRQ is shared with a queue that is placed there",
    };
    format!("{known} to CPU {cpus}: core {} had {queues}, {held}{l3}{idle}", placement.core)
}

/// Groups queues that have the same setting for the same reason.
fn grouped(interface: &PlannedInterface) -> Vec<(&'static str, Vec<u32>, String)> {
    let mut groups: BTreeMap<(&'static str, String), Vec<u32>> = BTreeMap::new();
    for rx in &interface.rx_queues {
        let rps = match &rx.rps_cpus {
            None => format!("RPS unchanged: {}", rx.why),
            Some(cpus) if cpus.is_empty() => format!("RPS {}", rx.why),
            Some(cpus) => {
                format!("RPS to CPUs {cpus}: {}; CPUs that its queues interrupt are left out", rx.why)
            }
        };
        groups.entry(("rx", rps)).or_default().push(rx.queue);
    }
    for rx in &interface.rx_queues {
        let rfs = match rx.rps_flow_cnt {
            None => continue,
            Some(0) => "RFS off by the policy".to_owned(),
            Some(flows) => format!("RFS for {flows} flows: its share of the flow table"),
        };
        groups.entry(("rx", rfs)).or_default().push(rx.queue);
    }
    for tx in &interface.tx_queues {
        let xps = match &tx.xps_cpus {
            None => format!("XPS unchanged: {}", tx.why),
            Some(cpus) if cpus.is_empty() => format!("XPS for no CPU: {}", tx.why),
            Some(cpus) => format!("XPS for CPUs {cpus}: {}", tx.why),
        };
        groups.entry(("tx", xps)).or_default().push(tx.queue);
    }
    let mut groups: Vec<_> = groups.into_iter().map(|((what, text), queues)| (what, queues, text)).collect();
    groups.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    groups
}

/// The current and the planned score, side by side.
pub(crate) fn score(now: &Score, then: &Score) -> String {
    let local = |score: &Score| {
        score.local.map_or("?".to_owned(), |local| format!("{:.0}%", (local * 100.0).floor()))
    };
    let rows = [
        ("queue vectors on the local node", local(now), local(then)),
        (
            "most queues on a core",
            now.max_vectors_per_core.to_string(),
            then.max_vectors_per_core.to_string(),
        ),
        (
            "fewest queues on a candidate core",
            now.min_vectors_per_core.to_string(),
            then.min_vectors_per_core.to_string(),
        ),
        ("cores with both threads taken", now.smt_collisions.to_string(), then.smt_collisions.to_string()),
        ("vectors on isolated CPUs", now.on_isolated.to_string(), then.on_isolated.to_string()),
        ("cores with several interfaces", now.shared_cores.to_string(), then.shared_cores.to_string()),
    ];
    let mut out = format!("{:<36}{:>6}{:>9}\n", "score", "now", "planned");
    for (what, now, then) in rows {
        out.push_str(&format!("  {what:<34}{now:>6}{then:>9}\n"));
    }
    out
}
