//! A plan as a table: at most 100 columns, CPUs as lists, one line for each vector.

use std::collections::BTreeMap;

use crate::cpuset::CpuSet;
use crate::machine::Role;
use crate::plan::{NodeSource, Plan, PlannedInterface, PlannedVector};
use crate::render::explain;
use crate::render::note::note;
use crate::render::text::{WIDTH, columns, count, ranges, speed, wrap};

/// The whole plan; with `masks`, also each file with the mask to write and the current one.
pub fn plan(plan: &Plan, masks: bool) -> String {
    let mut out = machine(plan);
    for interface in &plan.interfaces {
        out.push('\n');
        out.push_str(&self::interface(interface));
    }
    if masks && !plan.writes.is_empty() {
        out.push_str("\nmasks\n");
        for write in &plan.writes {
            let line = format!("  {}  {}  (now {})\n", write.path, write.value, write.current);
            if line.len() <= WIDTH {
                out.push_str(&line);
            } else {
                // Both masks of a large machine do not fit one line.
                let (path, now) = (format!("  {}  ", write.path), " ".repeat(write.path.len() - 1));
                out.push_str(&wrap(&path, &write.value));
                out.push_str(&wrap(&format!("{now}(now "), &format!("{})", write.current)));
            }
        }
    }
    out.push('\n');
    for change in &plan.channels {
        let text =
            format!("{}: {}; the rest is planned again for the new queues", change.command, change.why);
        out.push_str(&wrap("channels  ", &text));
    }
    for of_machine in &plan.notes {
        out.push_str(&note("", of_machine));
    }
    out.push_str(&summary(plan));
    out
}

fn machine(plan: &Plan) -> String {
    let nodes: Vec<String> = plan
        .host
        .nodes
        .iter()
        .map(|node| {
            let cpus = if node.cpus.is_empty() { "no CPU".to_owned() } else { node.cpus.to_string() };
            format!("{} = {cpus}", node.node)
        })
        .collect();
    let mut text = format!(
        "{}, {}: {}",
        count(plan.host.online.len(), "CPU"),
        count(nodes.len(), "node"),
        nodes.join("; ")
    );
    for (what, cpus) in [("isolated", &plan.host.isolated), ("nohz_full", &plan.host.nohz_full)] {
        if !cpus.is_empty() {
            text.push_str(&format!("; {what} {cpus}"));
        }
    }
    wrap("machine  ", &text)
}

fn interface(interface: &PlannedInterface) -> String {
    let mut out = heading(interface);
    let mut rows = Vec::new();
    if !interface.vectors.is_empty() {
        rows.push(["IRQ", "queue", "affinity", "effective", "planned", "why"].map(str::to_owned).to_vec());
    }
    rows.extend(interface.vectors.iter().map(vector));
    out.push_str(&columns(2, &rows, &[6, 12, 18, 9, 18]));
    out.push_str(&columns(2, &queues(interface), &[14, 34]));
    for about in &interface.notes {
        out.push_str(&note("  ", about));
    }
    out
}

fn heading(interface: &PlannedInterface) -> String {
    let node = match (interface.node, interface.node_source) {
        (Some(node), NodeSource::NumaNode) => format!("node {node}"),
        (Some(node), NodeSource::SingleNode) => format!("node {node} (the only node)"),
        (Some(node), NodeSource::Nearest) => format!("node {node} (nearest)"),
        (Some(node), NodeSource::LocalCpulist) => format!("node {node} (by local_cpulist)"),
        (Some(node), _) => format!("node {node} (by policy)"),
        (None, _) => "node unknown".to_owned(),
    };
    let speed = interface.speed_mbps.map(|mbps| format!(" {}", speed(mbps))).unwrap_or_default();
    let rules = match interface.rules.as_slice() {
        [] => String::new(),
        rules => {
            format!("  by rule {}", rules.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
    };
    let parent = interface.parent.as_ref().map(|parent| format!(" (VF of {parent})")).unwrap_or_default();
    let via = match interface.via.as_slice() {
        [] => String::new(),
        via => format!("  via {}", via.join(", ")),
    };
    let text = format!(
        "{} {}{parent}  {node}  {}{speed}  {} rx, {} tx  CPUs {}{rules}{via}",
        interface.driver.as_deref().unwrap_or("(no driver)"),
        interface.device,
        interface.link,
        interface.rx_queues.len(),
        interface.tx_queues.len(),
        interface.candidates
    );
    wrap(&format!("{}  ", interface.name), &text)
}

fn vector(vector: &PlannedVector) -> Vec<String> {
    let queue = match (vector.queue, vector.role) {
        (Some(queue), Role::Combined) => format!("{queue}"),
        (Some(queue), Role::Rx) => format!("rx {queue}"),
        (Some(queue), Role::Tx) => format!("tx {queue}"),
        (Some(vector), Role::Rdma) => format!("rdma {vector}"),
        _ => "control".to_owned(),
    };
    vec![
        vector.irq.to_string(),
        queue,
        vector.affinity.to_string(),
        list(vector.effective.as_ref()),
        list(vector.cpus.as_ref()),
        vector.why.to_string(),
    ]
}

fn list(cpus: Option<&CpuSet>) -> String {
    match cpus {
        None => "-".to_owned(),
        Some(cpus) if cpus.is_empty() => "none".to_owned(),
        Some(cpus) => cpus.to_string(),
    }
}

/// Queues with the same plan share a line.
fn queues(interface: &PlannedInterface) -> Vec<Vec<String>> {
    let rps = |cpus: Option<&CpuSet>| match cpus {
        None => "rps unchanged".to_owned(),
        Some(cpus) if cpus.is_empty() => "rps off".to_owned(),
        Some(cpus) => format!("rps {cpus}"),
    };
    let xps = |cpus: Option<&CpuSet>| match cpus {
        None => "xps unchanged".to_owned(),
        Some(cpus) if cpus.is_empty() => "xps off".to_owned(),
        Some(cpus) => format!("xps {cpus}"),
    };
    let rx = interface.rx_queues.iter().map(|rx| {
        let flow = rx.rps_flow_cnt.map(|flows| format!(", {flows} flows")).unwrap_or_default();
        ("rx", rx.queue, rps(rx.rps_cpus.as_ref()) + &flow, &*rx.why)
    });
    let tx = interface.tx_queues.iter().map(|tx| ("tx", tx.queue, xps(tx.xps_cpus.as_ref()), &*tx.why));
    let mut groups: BTreeMap<(&str, String, &str), (usize, Vec<u32>)> = BTreeMap::new();
    for (kind, queue, what, why) in rx.chain(tx) {
        let seen = groups.len();
        groups.entry((kind, what, why)).or_insert((seen, Vec::new())).1.push(queue);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (first_seen, _))| *first_seen);
    let row = |((kind, what, why), (_, queues)): ((&str, String, &str), (usize, Vec<u32>))| {
        vec![format!("{kind} {}", ranges(&queues)), what, why.to_owned()]
    };
    groups.into_iter().map(row).collect()
}

fn summary(plan: &Plan) -> String {
    let mut out = explain::score(&plan.score_now, &plan.score);
    let todo = match plan.writes.len() {
        0 => "nothing to write".to_owned(),
        writes => format!("{} to write", count(writes, "setting")),
    };
    out.push_str(&format!("plan {}: {todo}, {} already as planned\n", plan.hash, plan.unchanged));
    out
}
