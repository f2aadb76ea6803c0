//! A plan as a table: CPUs as lists, and one line for each vector and queue or, where many are alike, for all of them.

use std::collections::BTreeMap;

use crate::screen::note::note;
use crate::screen::page::Page;
use crate::screen::score;
use crate::screen::status::node;
use crate::screen::text::{count, cpus, queue, ranges, speed};
use nicpin::cpuset::CpuSet;
use nicpin::machine::Role;
use nicpin::machine::paths::{on_or_off, shown};
use nicpin::plan::{HostSummary, Plan, PlannedInterface, PlannedRss, PlannedThread, PlannedVector};

/// Vectors or queues that share their reason have a line each up to this number, and one for all beyond it.
const MOST_ALIKE: usize = 8;

/// The whole plan. `masks`: also each file with the mask to write and the current one. `all`: a line for each vector and
/// queue.
pub fn plan(plan: &Plan, masks: bool, all: bool) -> Page {
    let mut page = machine(plan);
    for interface in &plan.interfaces {
        page.line("");
        page.add(self::interface(&plan.host, interface, all));
    }
    if masks && !plan.writes.is_empty() {
        page.line("");
        page.line("masks");
        for write in &plan.writes {
            page.item(
                format!("  {}  ", shown(&write.path)),
                format!("{}  (now {})", write.value, write.current),
            );
        }
    }
    page.line("");
    for change in &plan.channels {
        let text = format!(
            "{}: {}; the rest is planned again for the new queues",
            change.command, change.why
        );
        page.item("channels  ", text);
    }
    for of_machine in &plan.notes {
        page.add(note("", of_machine));
    }
    page.add(summary(plan));
    page
}

fn machine(plan: &Plan) -> Page {
    let nodes: Vec<String> = plan
        .host
        .nodes
        .iter()
        .map(|node| {
            let cpus = if node.cpus.is_empty() {
                "no CPU".to_owned()
            } else {
                node.cpus.short()
            };
            format!("{} = {cpus}", node.node)
        })
        .collect();
    let mut text = format!(
        "{}, {}: {}",
        count(plan.host.online.len(), "CPU"),
        count(nodes.len(), "node"),
        nodes.join("; ")
    );
    for (what, cpus) in [
        ("isolated", &plan.host.isolated),
        ("nohz_full", &plan.host.nohz_full),
    ] {
        if !cpus.is_empty() {
            text.push_str(&format!("; {what} {}", cpus.short()));
        }
    }
    let legend = "affinity: CPUs to which the kernel may deliver the interrupt; effective: the one to which it does; \
                  planned -: left alone";
    let mut page = Page::default();
    page.item("machine  ", text);
    page.item("", legend);
    page
}

fn interface(host: &HostSummary, interface: &PlannedInterface, all: bool) -> Page {
    let mut page = heading(host, interface);
    let mut rows = Vec::new();
    if !interface.vectors.is_empty() {
        rows.push(
            ["IRQ", "queue", "affinity", "effective", "planned", "why"]
                .map(str::to_owned)
                .to_vec(),
        );
    }
    for alike in groups(&interface.vectors, |vector| (vector.role, reason(vector))) {
        let most = if alike[0].role.is_queue() {
            MOST_ALIKE
        } else {
            1
        };
        if all || alike.len() <= most {
            rows.extend(
                alike
                    .into_iter()
                    .map(|vector| vectors(host, &[vector], &vector.why)),
            );
        } else {
            rows.push(vectors(host, &alike, reason(alike[0])));
        }
    }
    page.table(2, rows);
    page.table(2, queues(host, interface, all));
    for about in &interface.notes {
        page.add(note("  ", about));
    }
    page
}

/// What decided on a vector's CPUs, without the other queues there.
fn reason(vector: &PlannedVector) -> &str {
    match vector.role {
        Role::Control => &vector.why,
        _ => vector.why.split("; ").next().unwrap_or_default(),
    }
}

/// The items by key, in the order of the first of each.
fn groups<'a, T, K: Ord>(items: &'a [T], key: impl Fn(&'a T) -> K) -> Vec<Vec<&'a T>> {
    let mut groups: BTreeMap<K, (usize, Vec<&T>)> = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        groups
            .entry(key(item))
            .or_insert((at, Vec::new()))
            .1
            .push(item);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|(first, _)| *first);
    groups.into_iter().map(|(_, items)| items).collect()
}

fn heading(host: &HostSummary, interface: &PlannedInterface) -> Page {
    let speed = interface
        .speed_mbps
        .map(|mbps| format!(" {}", speed(mbps)))
        .unwrap_or_default();
    let rules = match interface.rules.as_slice() {
        [] => String::new(),
        rules => {
            format!(
                "  by rule {}",
                rules
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }
    };
    let parent = interface
        .parent
        .as_ref()
        .map(|parent| format!(" (VF of {parent})"))
        .unwrap_or_default();
    let via = match interface.via.as_slice() {
        [] => String::new(),
        via => format!("  via {}", via.join(", ")),
    };
    let text = format!(
        "{} {}{parent}  {}  {}{speed}  {} rx, {} tx  candidate CPUs: {}{rules}{via}",
        interface.driver.as_deref().unwrap_or("(no driver)"),
        interface.device,
        node(interface.node, interface.node_source),
        interface.link,
        interface.rx_queues.len(),
        interface.tx_queues.len(),
        cpus(host, &interface.candidates)
    );
    let mut page = Page::default();
    page.item(format!("{}  ", interface.name), text);
    page
}

/// One line for vectors that share role and reason.
fn vectors(host: &HostSummary, alike: &[&PlannedVector], why: &str) -> Vec<String> {
    let of = |cpus: fn(&PlannedVector) -> Option<&CpuSet>| {
        let sets: Vec<&CpuSet> = alike.iter().filter_map(|vector| cpus(vector)).collect();
        sets_of(host, &sets)
    };
    let irqs: Vec<u32> = alike.iter().map(|vector| vector.irq).collect();
    let numbers: Vec<u32> = alike.iter().filter_map(|vector| vector.queue).collect();
    let role = queue(alike[0].role, None);
    vec![
        numbers_in_short(&irqs),
        format!("{role} {}", numbers_in_short(&numbers))
            .trim()
            .to_owned(),
        of(|vector| Some(&vector.affinity)),
        of(|vector| vector.effective.as_ref()),
        of(|vector| vector.cpus.as_ref()),
        why.to_owned(),
    ]
}

/// Texts of folded rows that are longer than this become a count; `--all` has every number.
const LONGEST: usize = 24;

/// `3-7,12`, or how many there are, and from which to which.
fn numbers_in_short(numbers: &[u32]) -> String {
    let text = ranges(numbers);
    match (
        text.len() > LONGEST,
        numbers.iter().min(),
        numbers.iter().max(),
    ) {
        (true, Some(first), Some(last)) => format!("{} from {first} to {last}", numbers.len()),
        _ => text,
    }
}

/// The CPUs of several vectors or queues in short.
fn sets_of(host: &HostSummary, sets: &[&CpuSet]) -> String {
    let Some(first) = sets.first() else {
        return "-".to_owned();
    };
    if sets.iter().all(|set| set == first) {
        return cpus(host, first);
    }
    let together = CpuSet::union_of(sets.iter().copied());
    let each = match sets.iter().map(|set| set.len()).max() {
        Some(1) => "one",
        _ => "some",
    };
    let text = cpus(host, &together);
    if text.len() <= LONGEST {
        return format!("{each} of {}", text.trim_start_matches("all of "));
    }
    let node = host
        .nodes
        .iter()
        .find(|node| together.is_subset(&node.cpus));
    let of = node
        .map(|node| format!(" of node {}", node.node))
        .unwrap_or_default();
    format!("{each} of {} CPUs{of}", together.len())
}

/// A queue with its planned setting and the reason.
struct Queue<'a> {
    number: u32,
    what: &'static str,
    cpus: Option<&'a CpuSet>,
    more: String,
    why: &'a str,
}

/// Queues with the same plan share a line; so do many with the same reason.
fn queues<'a>(host: &HostSummary, interface: &'a PlannedInterface, all: bool) -> Vec<Vec<String>> {
    let rx = interface.rx_queues.iter().map(|rx| {
        let more = rx
            .rps_flow_cnt
            .map(|flows| format!(", {flows} flows"))
            .unwrap_or_default();
        Queue {
            number: rx.queue,
            what: "rps",
            cpus: rx.rps_cpus.as_ref(),
            more,
            why: &rx.why,
        }
    });
    let tx = interface.tx_queues.iter().map(|tx| {
        let rxqs = tx.xps_rxqs.as_ref().filter(|rxqs| !rxqs.is_empty());
        let more = rxqs
            .map(|rxqs| format!(", flows of rx {rxqs}"))
            .unwrap_or_default();
        Queue {
            number: tx.queue,
            what: "xps",
            cpus: tx.xps_cpus.as_ref(),
            more,
            why: &tx.why,
        }
    });
    let mut rows = Vec::new();
    let mut kinds = vec![("rx", rx.collect::<Vec<_>>()), ("tx", tx.collect())];
    let roles = [
        (Some(Role::Combined), "thread"),
        (Some(Role::Rx), "thread rx"),
        (Some(Role::Tx), "thread tx"),
    ];
    for (role, way) in roles.into_iter().chain([(None, "process")]) {
        let one = |thread: &'a PlannedThread| {
            let number = thread.queue.unwrap_or(thread.pid);
            Queue {
                number,
                what: "on",
                cpus: thread.cpus.as_ref(),
                more: String::new(),
                why: &thread.why,
            }
        };
        kinds.push((
            way,
            interface
                .threads
                .iter()
                .filter(|thread| thread.role == role)
                .map(one)
                .collect(),
        ));
    }
    for (way, queues) in kinds {
        for alike in groups(&queues, |queue| {
            (queue.cpus.is_some(), &queue.more, queue.why)
        }) {
            let mut same: Vec<Vec<&Queue>> = Vec::new();
            for queue in &alike {
                match same.iter_mut().find(|same| same[0].cpus == queue.cpus) {
                    Some(same) => same.push(queue),
                    None => same.push(vec![queue]),
                }
            }
            let lines = if all || same.len() <= MOST_ALIKE {
                same
            } else {
                vec![alike]
            };
            rows.extend(lines.iter().map(|line| queue_line(host, way, line)));
        }
    }
    if let Some(rss) = &interface.rss
        && (rss.queues.is_some() || rss.now != rss.possible)
    {
        rows.push(vec![
            format!("rx {}", rss.possible),
            format!("rss {}", flows(rss)),
            rss.why.to_string(),
        ]);
    }
    if let Some(on) = interface.ntuple {
        let why = "accelerated RFS: the device sends flows to the CPUs of their programs";
        rows.push(vec![
            String::new(),
            format!("ntuple {}", on_or_off(on)),
            why.to_owned(),
        ]);
    }
    rows
}

/// The queues to which an RSS table is to send flows.
pub(crate) fn flows(rss: &PlannedRss) -> String {
    match &rss.queues {
        None => format!("unchanged, to {}", rss.now),
        Some(queues) => format!("to {queues}"),
    }
}

fn queue_line(host: &HostSummary, way: &str, alike: &[&Queue]) -> Vec<String> {
    let numbers: Vec<u32> = alike.iter().map(|queue| queue.number).collect();
    let sets: Vec<&CpuSet> = alike.iter().filter_map(|queue| queue.cpus).collect();
    let Queue {
        what, more, why, ..
    } = alike[0];
    let setting = match sets.first() {
        None => "unchanged".to_owned(),
        Some(_) if sets.iter().all(|set| set.is_empty()) => "off".to_owned(),
        Some(_) => sets_of(host, &sets),
    };
    vec![
        format!("{way} {}", ranges(&numbers)),
        format!("{what} {setting}{more}"),
        (*why).to_owned(),
    ]
}

fn summary(plan: &Plan) -> Page {
    let mut page = score::table(&plan.score_now, &plan.score);
    let todo = match plan.writes.len() {
        0 => "nothing to write".to_owned(),
        writes => format!("{} to write", count(writes, "setting")),
    };
    page.line(format!(
        "plan {}: {todo}, {} already as planned",
        plan.hash, plan.unchanged
    ));
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicpin::plan::NodeSummary;

    #[test]
    fn many_numbers_are_counted() {
        assert_eq!(numbers_in_short(&[7, 5, 6, 12]), "5-7,12");
        let every_fifth: Vec<u32> = (0..20).map(|at| 273 + 5 * at).collect();
        assert_eq!(numbers_in_short(&every_fifth), "20 from 273 to 368");
    }

    #[test]
    fn scattered_cpus_are_counted() {
        let set = |list| CpuSet::parse_list(list).unwrap();
        let nodes = [(0, "0-31"), (1, "32-63")].map(|(node, cpus)| NodeSummary {
            node,
            cpus: set(cpus),
            without_memory: false,
        });
        let (online, possible, nodes) = (set("0-63"), 64, nodes.to_vec());
        let none = CpuSet::new();
        let host = HostSummary {
            name: None,
            online,
            cores: 64,
            possible,
            isolated: none.clone(),
            nohz_full: none,
            nodes,
        };
        let of = |cpus: &[u32]| {
            let sets: Vec<CpuSet> = cpus.iter().map(|&cpu| CpuSet::single(cpu)).collect();
            sets_of(&host, &sets.iter().collect::<Vec<_>>())
        };
        assert_eq!(of(&[3, 5]), "one of 3,5");
        assert_eq!(
            of(&[1, 2, 5, 6, 9, 10, 13, 14, 21, 22, 29]),
            "one of 11 CPUs of node 0"
        );
        assert_eq!(
            of(&[1, 2, 5, 6, 9, 10, 13, 14, 21, 22, 59]),
            "one of 11 CPUs"
        );
    }
}
