//! The nodes of a machine, and the CPUs and memory of a binding to one, as text.

use std::collections::BTreeSet;
use std::iter::once;

use itertools::Itertools as _;

use crate::screen::page::{FIGURES, LEFT, Page};
use crate::screen::{count, enclose, group_by_key, join_nonempty, text_or};
use nicpin::cpuset::CpuSet;
use nicpin::machine::Neighbour;
use nicpin::machine::interface::natural;
use nicpin::machine::topology::Rate;
use nicpin::machine::wording::cpu_list;
use nicpin::plan::binding::Binding;
use nicpin::plan::binding::MemoryBinding::{Bind, Local, Preferred};
use nicpin::report::nodes::{NodeInterface, Nodes, counts};

pub fn nodes(nodes: &Nodes) -> Page {
    let all = &nodes.nodes;
    let interfaces: usize = all.iter().map(|node| node.interfaces.len()).sum();
    let mut page = Page::default();
    page.line(format!(
        "{} on {}, {}.",
        count(nodes.online.len(), "CPU"),
        count(all.len(), "node"),
        count(interfaces + nodes.unknown.len(), "interface")
    ));
    let heads = ["NODE", "MEMORY", "FREE", "CPUS", "DEVICES"];
    let rows = all.iter().map(|node| {
        [
            node.node.to_string(),
            size(node.memory_kib),
            size(node.usage.free_kib),
            text_or([node.cpus.short()], "none"),
            devices(&node.interfaces, &node.neighbours),
        ]
    });
    page.columns(0, LEFT, heads, rows);
    let devices = devices(&nodes.unknown, &nodes.unknown_neighbours);
    let cpus = Some(&nodes.unknown_cpus).filter(|cpus| !cpus.is_empty());
    let cpus = text_or(cpus.map(cpu_list), "");
    let unknown = join_nonempty(", ", [&cpus, &devices]);
    page.text(enclose("On no known node: ", [unknown], "."));
    for node in all {
        for (cpus, what) in [
            (&node.isolated, "isolated or nohz_full"),
            (&node.exclusive, "in exclusive cpuset partitions"),
        ] {
            let are = format!(" of node {} are {what}.", node.node);
            page.text(enclose("CPUs ", [cpus.short()], &are));
        }
    }
    let to = || all.iter().map(|to| to.node);
    let distances = all.iter().map(|from| {
        let cells = to().map(|to| text_or(from.distances.get(&to), "-"));
        (format!("from {}", from.node), cells.collect())
    });
    match all.iter().all(|from| from.distances.is_empty()) {
        _ if all.len() < 2 => {}
        true => page.line("The distances between the nodes are unknown."),
        false => matrix(
            &mut page,
            "DISTANCE",
            to().map(|to| format!("TO {to}")),
            distances,
        ),
    }
    if all.iter().any(|node| node.usage.pages.is_some()) {
        let rows = all.iter().map(|node| {
            let counts = node
                .usage
                .pages
                .map(|p| [p.hit, p.miss, p.foreign, p.interleave_hit, p.local, p.other].map(Some));
            let cells = counts.unwrap_or_default().map(|count| text_or(count, "-"));
            (format!("node {}", node.node), cells.into())
        });
        matrix(&mut page, "PAGES", COUNTERS.map(str::to_owned), rows);
    }
    if let Some(rates) = &nodes.bandwidth {
        bandwidth(&mut page, rates);
    }
    page
}

fn devices(interfaces: &[NodeInterface], others: &[Neighbour]) -> String {
    let by_driver = group_by_key(
        interfaces
            .iter()
            .map(|interface| (&interface.driver, &*interface.name)),
    );
    let interfaces = by_driver
        .into_iter()
        .map(|(driver, names)| format!("{} ({})", runs(&names), text_or(driver, "driver unknown")))
        .join(", ");
    join_nonempty(", ", [&interfaces, &counts(others)])
}

/// Lists names; of four or more with consecutive last numbers only the first and the last.
pub(crate) fn runs(names: &[&str]) -> String {
    let is_next = |name: &&str, next: &&str| {
        let (name, mut next) = (natural(name), natural(next));
        if let Some((_, number)) = next.last_mut() {
            *number = number.wrapping_sub(1);
        }
        name == next
    };
    let runs = names.chunk_by(is_next);
    let run = |run: &[&str]| match run {
        [first, _, _, .., last] => format!("{first} to {last}"),
        few => few.join(", "),
    };
    runs.map(run).join(", ")
}

pub fn size(kib: Option<u64>) -> String {
    const GIB: u64 = 1 << 20;
    match kib {
        None => "-".into(),
        Some(kib) if kib < GIB => format!("{} MiB", kib >> 10),
        // Tenths, rounded down.
        Some(kib) => format!("{}.{} GiB", kib / GIB, kib % GIB * 10 / GIB),
    }
}

fn matrix(
    page: &mut Page,
    head: &str,
    columns: impl IntoIterator<Item = String>,
    rows: impl IntoIterator<Item = (String, Vec<String>)>,
) {
    let heads = (head.to_owned(), columns.into_iter().collect());
    let rows = once(heads)
        .chain(rows)
        .map(|(name, cells)| once(name).chain(cells));
    page.line("");
    page.table(0, FIGURES, rows);
}

/// The names in `/sys/devices/system/node/nodeN/numastat`, in the kernel's order.
const COUNTERS: [&str; 6] = [
    "numa_hit",
    "numa_miss",
    "numa_foreign",
    "interleave_hit",
    "local_node",
    "other_node",
];

fn bandwidth(page: &mut Page, rates: &[Rate]) {
    let memory: BTreeSet<u32> = rates.iter().map(|rate| rate.memory_of).collect();
    let rows = rates.chunk_by(|a, b| a.cpus_of == b.cpus_of).map(|row| {
        let cells = memory.iter().map(|&node| {
            let rate = row.iter().find(|rate| rate.memory_of == node);
            let text = rate.map(|rate| {
                // Tenths of GB, rounded down.
                let tenths = rate.bytes_per_second / 100_000_000;
                format!("{}.{}", tenths / 10, tenths % 10)
            });
            text_or(text, "-")
        });
        let (cpus, threads) = (row[0].cpus_of, count(row[0].threads, "thread"));
        (format!("CPUs of {cpus} ({threads})"), cells.collect())
    });
    let columns = memory.iter().map(|node| format!("MEMORY OF {node}"));
    matrix(page, "READ, GB/S", columns, rows);
}

pub fn binding(name: &str, binding: &Binding, left: Option<&CpuSet>) -> Page {
    let nodes = &binding.memory_nodes;
    let memory = match binding.memory {
        Bind => format!("node {nodes} only"),
        Preferred => format!("node {nodes} preferred"),
        Local => "the node of the CPU that it runs on".into(),
    };
    let mut page = Page::default();
    let cpus = format!("{} ({})", binding.cpus.short(), binding.why);
    page.item("node    ", format!("{}, for {name}", binding.nodes));
    page.item("CPUs    ", cpus);
    page.item("memory  ", memory);
    for note in binding_notes(binding, left) {
        page.item("note    ", note);
    }
    page
}

pub fn binding_notes(binding: &Binding, left: Option<&CpuSet>) -> Vec<String> {
    let narrowed = left.filter(|&left| *left != binding.cpus).map(|left| {
        let (left, all) = (left.short(), binding.cpus.short());
        format!("this process's cpuset contains only CPUs {left} of {all}")
    });
    binding.notes.iter().cloned().chain(narrowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_follow_each_other_are_the_first_and_the_last() {
        for (names, expected) in [
            ("eth0 eth1 eth2", "eth0, eth1, eth2"),
            ("eth0 eth1 eth2 eth3", "eth0 to eth3"),
            (
                "ens1f0 ens1f0v8 ens1f0v9 ens1f0v10 ens1f0v11 ens1f1",
                "ens1f0, ens1f0v8 to ens1f0v11, ens1f1",
            ),
            ("a1b a2b a3b a4b", "a1b, a2b, a3b, a4b"),
            ("eth0 eth2 eth4 eth6", "eth0, eth2, eth4, eth6"),
        ] {
            assert_eq!(runs(&names.split(' ').collect_vec()), expected);
        }
    }
}
