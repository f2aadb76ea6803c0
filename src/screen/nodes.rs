//! The nodes of a machine, and the CPUs and memory of a binding to one, as text.

use crate::screen::page::Page;
use crate::screen::text::count;
use itertools::Itertools as _;
use nicpin::cpuset::CpuSet;
use nicpin::machine::topology::Rate;
use nicpin::plan::binding::{Binding, MemoryBinding};
use nicpin::report::nodes::{NodeInterface, NodeReport, Nodes, counts};

/// Memory, CPUs, interfaces and other devices of each node, distances, page counters and, if measured, memory bandwidth.
pub fn nodes(nodes: &Nodes) -> Page {
    let cpus = nodes.nodes.iter().map(|node| node.cpus.len()).sum();
    let interfaces: usize = nodes.nodes.iter().map(|node| node.interfaces.len()).sum();
    let mut page = Page::default();
    page.line(format!(
        "{} on {}, {}.",
        count(cpus, "CPU"),
        count(nodes.nodes.len(), "node"),
        count(interfaces + nodes.unknown.len(), "interface")
    ));
    page.line("");
    let heads = ["NODE", "MEMORY", "FREE", "CPUS", "DEVICES"]
        .map(str::to_owned)
        .to_vec();
    page.table(
        0,
        std::iter::once(heads).chain(nodes.nodes.iter().map(node)),
    );
    let unknown = devices(&nodes.unknown, counts(&nodes.unknown_neighbours));
    if !unknown.is_empty() {
        page.item("", format!("On no known node: {unknown}."));
    }
    for node in &nodes.nodes {
        for (cpus, what) in [
            (&node.isolated, "isolated or nohz_full"),
            (&node.exclusive, "in exclusive cpuset partitions"),
        ] {
            if !cpus.is_empty() {
                page.item(
                    "",
                    format!("CPUs {} of node {} are {what}.", cpus.short(), node.node),
                );
            }
        }
    }
    page.line("");
    page.aligned(0, RIGHT, distances(nodes));
    if nodes.nodes.iter().any(|node| node.usage.pages.is_some()) {
        page.line("");
        page.aligned(0, RIGHT, pages(nodes));
    }
    if let Some(rates) = &nodes.bandwidth {
        page.line("");
        page.aligned(0, RIGHT, bandwidth(rates));
    }
    page
}

fn node(node: &NodeReport) -> Vec<String> {
    vec![
        node.node.to_string(),
        size(node.memory_kib),
        size(node.usage.free_kib),
        if node.cpus.is_empty() {
            "none".to_owned()
        } else {
            node.cpus.short()
        },
        devices(&node.interfaces, counts(&node.neighbours)),
    ]
}

/// Interfaces with their drivers, and how many others there are.
fn devices(interfaces: &[NodeInterface], others: String) -> String {
    let driver = |one: &NodeInterface| one.driver.clone().unwrap_or("no driver".to_owned());
    let one = |interface: &NodeInterface| format!("{} ({})", interface.name, driver(interface));
    let interfaces = interfaces.iter().map(one);
    let mut all = interfaces.chain((!others.is_empty()).then_some(others));
    all.join(", ")
}

/// `338 MiB`, `62.5 GiB`.
pub fn size(kib: Option<u64>) -> String {
    const GIB: u64 = 1 << 20;
    match kib {
        None => "-".to_owned(),
        Some(kib) if kib < GIB => format!("{} MiB", kib >> 10),
        // Tenths, rounded down.
        Some(kib) => format!("{}.{} GiB", kib / GIB, kib % GIB * 10 / GIB),
    }
}

/// A row of figures below the names of their columns.
fn matrix<'a>(
    head: &str,
    columns: impl IntoIterator<Item = String>,
    rows: impl IntoIterator<Item = (String, Vec<String>)> + 'a,
) -> Vec<Vec<String>> {
    let mut all = vec![std::iter::once(head.to_owned()).chain(columns).collect()];
    all.extend(
        rows.into_iter()
            .map(|(name, cells)| std::iter::once(name).chain(cells).collect::<Vec<String>>()),
    );
    all
}

/// All columns but the first.
const RIGHT: (usize, usize) = (1, usize::MAX);

fn distances(nodes: &Nodes) -> Vec<Vec<String>> {
    let to = || nodes.nodes.iter().map(|to| to.node);
    let rows = nodes.nodes.iter().map(|from| {
        let cell = |to| {
            from.distances
                .get(&to)
                .map_or("-".to_owned(), u32::to_string)
        };
        (format!("from {}", from.node), to().map(cell).collect())
    });
    matrix("DISTANCE", to().map(|to| format!("TO {to}")), rows)
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

fn pages(nodes: &Nodes) -> Vec<Vec<String>> {
    let rows = nodes.nodes.iter().map(|node| {
        let counts = node.usage.pages.map(|p| {
            [p.hit, p.miss, p.foreign, p.interleave_hit, p.local, p.other].map(|n| n.to_string())
        });
        let counts = counts.unwrap_or([const { String::new() }; 6].map(|_| "-".to_owned()));
        (format!("node {}", node.node), counts.to_vec())
    });
    matrix("PAGES", COUNTERS.map(str::to_owned), rows)
}

fn bandwidth(rates: &[Rate]) -> Vec<Vec<String>> {
    let mut memory: Vec<u32> = rates.iter().map(|rate| rate.memory_of).collect();
    memory.sort_unstable();
    memory.dedup();
    // Tenths, rounded down.
    let tenths = |rate: &Rate| rate.bytes_per_second / 100_000_000;
    let gigabytes = |rate: &Rate| format!("{}.{}", tenths(rate) / 10, tenths(rate) % 10);
    let rows = rates.chunk_by(|a, b| a.cpus_of == b.cpus_of).map(|row| {
        let of = |node: &u32| row.iter().find(|rate| rate.memory_of == *node);
        let cells = memory
            .iter()
            .map(|node| of(node).map_or("-".to_owned(), gigabytes));
        let threads = count(row[0].threads, "thread");
        (
            format!("CPUs of {} ({threads})", row[0].cpus_of),
            cells.collect(),
        )
    });
    matrix(
        "READ, GB/S",
        memory.iter().map(|node| format!("MEMORY OF {node}")),
        rows.collect::<Vec<_>>(),
    )
}

/// The node, CPUs, memory and notes, a line each. `left`: the CPUs that remain after the cpuset, if known.
pub fn binding(name: &str, binding: &Binding, left: Option<&CpuSet>) -> Page {
    let nodes = &binding.memory_nodes;
    let memory = match binding.memory {
        MemoryBinding::Bind => format!("node {nodes} only"),
        MemoryBinding::Preferred => format!("node {nodes} preferred"),
        MemoryBinding::Local => "the node of the CPU that it runs on".to_owned(),
    };
    let mut page = Page::default();
    page.item("node    ", format!("{}, for {name}", binding.nodes));
    page.item(
        "CPUs    ",
        format!("{} ({})", binding.cpus.short(), binding.why),
    );
    page.item("memory  ", memory);
    for note in binding_notes(binding, left) {
        page.item("note    ", note);
    }
    page
}

/// The notes of a binding, and a note when the cpuset leaves fewer CPUs.
pub fn binding_notes(binding: &Binding, left: Option<&CpuSet>) -> Vec<String> {
    let narrowed = left.filter(|&left| *left != binding.cpus).map(|left| {
        let (left, all) = (left.short(), binding.cpus.short());
        format!("this process's cpuset contains only CPUs {left} of {all}")
    });
    binding.notes.iter().cloned().chain(narrowed).collect()
}
