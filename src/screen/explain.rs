//! The reasons of a plan, one line for each decision.

use std::collections::BTreeMap;

use crate::screen::note::note;
use crate::screen::page::Page;
use crate::screen::score;
use crate::screen::table::flows;
use crate::screen::text::{count, cpus, queue, ranges};
use nicpin::machine::paths::on_or_off;
use nicpin::machine::{Role, Source};
use nicpin::plan::{
    ChannelChange, DecidedBy, HostSummary, NodeSource, Plan, PlannedInterface, PlannedThread,
    PlannedVector, WriteKind,
};

pub fn plan(plan: &Plan) -> Page {
    let mut page = Page::default();
    for interface in &plan.interfaces {
        let channels = plan
            .channels
            .iter()
            .find(|change| change.interface == interface.name);
        page.add(self::interface(&plan.host, interface, channels));
        page.line("");
    }
    for write in plan
        .writes
        .iter()
        .filter(|write| write.kind == WriteKind::Sysctl)
    {
        page.item(
            "flow table  ",
            format!("{} entries: {}", write.value, write.why),
        );
    }
    for note in &plan.notes {
        page.add(self::note("", note));
    }
    page.add(score::table(&plan.score_now, &plan.score));
    page.line(format!("plan {}", plan.hash));
    page
}

fn interface(
    host: &HostSummary,
    interface: &PlannedInterface,
    channels: Option<&ChannelChange>,
) -> Page {
    let mut page = Page::default();
    page.line(&*interface.name);
    let mut line = |what: &str, text: &str| page.item(format!("  {what:<11} "), text);
    line("node", &node(interface));
    line(
        "candidates",
        &format!("CPUs: {}", cpus(host, &interface.candidates)),
    );
    for left in &interface.left_out {
        line(
            "left out",
            &format!("CPUs {}: {}", left.cpus.short(), left.why),
        );
    }
    for number in &interface.rules {
        line("policy", &format!("rule {number} of the file matches"));
    }
    if let Some(change) = channels {
        line("channels", &format!("{}: {}", change.command, change.why));
    }
    for vector in &interface.vectors {
        line(&label(vector), &self::vector(host, vector));
    }
    if let Some(rss) = &interface.rss {
        let text = format!(
            "table with {} entries for {}: flows {}: {}; now to {}",
            rss.entries,
            count(rss.possible.len(), "queue"),
            flows(rss),
            rss.why,
            rss.now
        );
        line("rss", &text);
    }
    if let Some(on) = interface.ntuple {
        let driver = interface.driver.as_deref().unwrap_or_default();
        line(
            "ntuple",
            &format!("{}: {driver} has accelerated RFS", on_or_off(on)),
        );
    }
    for thread in &interface.threads {
        line("thread", &self::thread(host, thread));
    }
    for (what, queues, text) in grouped(host, interface) {
        line(&format!("{what} {}", ranges(&queues)), &text);
    }
    for note in &interface.notes {
        page.add(self::note("  ", note));
    }
    page
}

fn node(interface: &PlannedInterface) -> String {
    let node = interface
        .node
        .map_or(String::new(), |node| node.to_string());
    match interface.node_source {
        NodeSource::NumaNode => format!("{node}: numa_node of {}", interface.device),
        NodeSource::LocalCpulist if interface.node.is_some() => {
            format!(
                "{node}: it has all CPUs of local_cpulist of {}, whose numa_node is not set",
                interface.device
            )
        }
        NodeSource::LocalCpulist => {
            format!(
                "unknown; local_cpulist of {} names the local CPUs",
                interface.device
            )
        }
        NodeSource::Nearest => {
            format!(
                "{node}: nearest to the node of {}, which has no usable CPU",
                interface.device
            )
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

fn label(vector: &PlannedVector) -> String {
    let queue = queue(vector.role, vector.queue);
    if vector.role.is_queue() {
        format!("queue {queue}")
    } else {
        queue
    }
}

fn vector(host: &HostSummary, vector: &PlannedVector) -> String {
    let source = match vector.source {
        Source::Netlink => "by netlink",
        Source::Name => "by its name",
        Source::Order => "by the order of the vectors",
    };
    let known = format!("IRQ {} ({}, {source})", vector.irq, vector.action);
    let Some(planned) = &vector.cpus else {
        return format!("{known}: {}", vector.why);
    };
    let to = format!("{known} to CPU {}", cpus(host, planned));
    let Some(placement) = &vector.placement else {
        return format!("{to}: {}", vector.why);
    };
    let l3 = if placement.l3.is_empty() {
        String::new()
    } else {
        format!(
            "; L3 domain {} had {}",
            placement.l3.short(),
            placement.queues_on_l3
        )
    };
    let idle = if vector.idle { "; idle" } else { "" };
    let queues = count(placement.queues_on_core, "queue");
    let held = match placement.decided_by {
        None => "placed as evenly as can be",
        Some(DecidedBy::Hint) => "hinted by the driver",
        Some(DecidedBy::Vector) => "another vector of the queue stays there",
        Some(DecidedBy::Line) => "the IRQ is shared with a queue that is placed there",
    };
    format!(
        "{to}: core {} had {queues}, {held}{l3}{idle}",
        placement.core
    )
}

fn thread(host: &HostSummary, thread: &PlannedThread) -> String {
    let source = match thread.source {
        Some(Source::Order) => ", by the order of NAPI instances",
        Some(_) => ", by netlink",
        None => "",
    };
    let whose = match thread.role {
        Some(Role::Combined) => format!("queue {}{source}", queue(Role::Combined, thread.queue)),
        Some(role) => format!("{}{source}", queue(role, thread.queue)),
        None => "unknown queue".to_owned(),
    };
    let known = format!("process {} ({whose})", thread.pid);
    match &thread.cpus {
        Some(to) => format!("{known} to CPU {}: {}", cpus(host, to), thread.why),
        None => format!("{known}: {}", thread.why),
    }
}

/// Groups queues that have the same setting for the same reason.
fn grouped(
    host: &HostSummary,
    interface: &PlannedInterface,
) -> Vec<(&'static str, Vec<u32>, String)> {
    let mut groups: BTreeMap<(&'static str, String), Vec<u32>> = BTreeMap::new();
    for rx in &interface.rx_queues {
        let rps = match &rx.rps_cpus {
            None => format!("RPS unchanged: {}", rx.why),
            Some(set) if set.is_empty() => format!("RPS {}", rx.why),
            Some(set) => {
                format!(
                    "RPS to CPUs {}: {}; CPUs that its queues interrupt are left out",
                    cpus(host, set),
                    rx.why
                )
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
            Some(set) if set.is_empty() => format!("XPS for no CPU: {}", tx.why),
            Some(set) => format!("XPS for CPUs {}: {}", cpus(host, set), tx.why),
        };
        groups.entry(("tx", xps)).or_default().push(tx.queue);
        if let Some(rxqs) = &tx.xps_rxqs {
            let text = if rxqs.is_empty() {
                "flows of no receive queue, by the policy".to_owned()
            } else {
                format!("flows of receive queue {rxqs} first, by the policy")
            };
            groups.entry(("tx", text)).or_default().push(tx.queue);
        }
    }
    let mut groups: Vec<_> = groups
        .into_iter()
        .map(|((what, text), queues)| (what, queues, text))
        .collect();
    groups.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    groups
}
