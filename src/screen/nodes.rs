//! The nodes of a machine as tables.

use crate::screen::page::Page;
use crate::screen::text::count;
use nicpin::machine::memory::Rate;
use nicpin::report::nodes::{NodeInterface, NodeReport, Nodes, counts};

/// Memory, CPUs and interfaces of each node, distances, page counters and, if measured, memory bandwidth.
pub fn nodes(nodes: &Nodes) -> Page {
    let cpus = nodes.nodes.iter().map(|node| node.cpus.len()).sum();
    let mut page = Page::default();
    page.line(format!(
        "machine  {}, {}",
        count(cpus, "CPU"),
        count(nodes.nodes.len(), "node")
    ));
    page.line("");
    let mut rows = vec![
        ["node", "memory", "free", "CPUs"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(nodes.nodes.iter().map(node));
    page.table(0, rows);
    page.line("");
    for node in nodes
        .nodes
        .iter()
        .filter(|node| !node.interfaces.is_empty())
    {
        page.item(
            format!("on node {}  ", node.node),
            interfaces(&node.interfaces),
        );
    }
    if !nodes.unknown.is_empty() {
        page.item("node unknown  ", interfaces(&nodes.unknown));
    }
    for node in nodes
        .nodes
        .iter()
        .filter(|node| !node.neighbours.is_empty())
    {
        page.item(
            format!("also on node {}  ", node.node),
            counts(&node.neighbours),
        );
    }
    if !nodes.unknown_neighbours.is_empty() {
        page.item("also, node unknown  ", counts(&nodes.unknown_neighbours));
    }
    for node in &nodes.nodes {
        for (cpus, what) in [
            (&node.kept_free, "isolated or nohz_full"),
            (&node.exclusive, "exclusive to cgroups"),
        ] {
            if !cpus.is_empty() {
                page.item(format!("{what} on node {}  CPUs ", node.node), cpus.short());
            }
        }
    }
    page.line("");
    page.aligned(0, RIGHT, distances(nodes));
    page.line("");
    if nodes.nodes.iter().all(|node| node.usage.pages.is_none()) {
        page.line("pages  -");
    } else {
        page.aligned(0, RIGHT, pages(nodes));
    }
    if let Some(rates) = &nodes.bandwidth {
        page.line("");
        page.aligned(0, RIGHT, bandwidth(rates));
    }
    page
}

fn node(node: &NodeReport) -> Vec<String> {
    let cpus = if node.cpus.is_empty() {
        "none".to_owned()
    } else {
        node.cpus.short()
    };
    vec![
        node.node.to_string(),
        size(node.memory_kib),
        size(node.usage.free_kib),
        cpus,
    ]
}

fn interfaces(interfaces: &[NodeInterface]) -> String {
    let one = |interface: &NodeInterface| {
        format!(
            "{} ({})",
            interface.name,
            interface.driver.as_deref().unwrap_or("no driver")
        )
    };
    interfaces.iter().map(one).collect::<Vec<_>>().join(", ")
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

fn distances(nodes: &Nodes) -> Vec<Vec<String>> {
    let distance = |from: &NodeReport, to: u32| {
        from.distances
            .get(&to)
            .map_or("-".to_owned(), u32::to_string)
    };
    let mut rows = vec![vec!["distance".to_owned()]];
    rows[0].extend(nodes.nodes.iter().map(|to| format!("to {}", to.node)));
    for from in &nodes.nodes {
        let mut row = vec![format!("from {}", from.node)];
        row.extend(nodes.nodes.iter().map(|to| distance(from, to.node)));
        rows.push(row);
    }
    rows
}

/// All columns but the first.
const RIGHT: (usize, usize) = (1, usize::MAX);

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
    let mut rows = vec![vec!["pages".to_owned()]];
    rows[0].extend(COUNTERS.map(str::to_owned));
    for node in &nodes.nodes {
        let mut row = vec![format!("node {}", node.node)];
        row.extend(match node.usage.pages {
            Some(p) => [p.hit, p.miss, p.foreign, p.interleave_hit, p.local, p.other]
                .map(|n| n.to_string()),
            None => [const { String::new() }; 6].map(|_| "-".to_owned()),
        });
        rows.push(row);
    }
    rows
}

fn bandwidth(rates: &[Rate]) -> Vec<Vec<String>> {
    let mut memory: Vec<u32> = rates.iter().map(|rate| rate.memory_of).collect();
    memory.sort_unstable();
    memory.dedup();
    let mut rows = vec![vec!["read, GB/s".to_owned()]];
    rows[0].extend(memory.iter().map(|node| format!("memory of {node}")));
    for row in rates.chunk_by(|a, b| a.cpus_of == b.cpus_of) {
        let Some(first) = row.first() else { continue };
        let mut cells = vec![format!(
            "CPUs of {} ({})",
            first.cpus_of,
            count(first.threads, "thread")
        )];
        cells.extend(memory.iter().map(|node| {
            let rate = row.iter().find(|rate| rate.memory_of == *node);
            // Tenths, rounded down.
            rate.map_or("-".to_owned(), |rate| {
                let tenths = rate.bytes_per_second / 100_000_000;
                format!("{}.{}", tenths / 10, tenths % 10)
            })
        }));
        rows.push(cells);
    }
    rows
}
