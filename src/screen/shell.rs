//! A plan for other programs: a script with the writes of `apply`, and the CPUs left for applications.

use crate::screen::page::Page;
use crate::screen::{count, enclose, interface_or_machine, text_or, with_prefix};
use nicpin::cpuset::{CpuSet, MaskWidth, NodeSet};
use nicpin::machine::wording::word;
use nicpin::machine::{Machine, Rss};
use nicpin::plan::SettingKind::{NapiThread, Ntuple};
use nicpin::plan::{Note, Plan, PlannedInterface, SettingKind, Write};

/// Unmet requests come first. A plan that changes channels has no script.
pub fn script(plan: &Plan) -> String {
    let mut out = format!(
        "#!/bin/sh\n# nicpin plan {}: {}, {} already as planned\n",
        plan.hash,
        count(plan.writes.len(), "write"),
        plan.unchanged
    );
    for interface in &plan.interfaces {
        for note in interface.notes.iter().filter(|note| note.is_refusal()) {
            let text = note.to_string().replace(char::is_control, " ");
            out += &format!("# {}: {text}\n", interface.name);
        }
    }
    for write in &plan.writes {
        out += &format!(
            "{}  # {}: {} (now {})\n",
            command(write),
            interface_or_machine(&write.interface),
            write.why.to_string().replace(char::is_control, " "),
            write.current
        );
    }
    out
}

fn command(write: &Write) -> String {
    let value = &write.value;
    match write.kind {
        SettingKind::Rss => format!("{} {}", write.shown(), rss(value)),
        Ntuple => format!("{} {value}", write.shown()),
        NapiThread => format!("taskset -p {value} {}", write.number),
        _ => format!("echo {value} > {}", word(&write.path)),
    }
}

fn rss(table: &str) -> String {
    let table = Rss::parse(table).filter(|table| !table.is_default());
    let Some(reached) = table.map(|table| table.reached()) else {
        return "default".into();
    };
    let [first, last] = [reached.first(), reached.last()].map(|queue| queue.copied().unwrap_or(0));
    let weight = |queue| if reached.contains(&queue) { " 1" } else { " 0" };
    match (reached.len(), first) {
        (count, _) if count < (last - first + 1) as usize => {
            format!("weight{}", (0..=last).map(weight).collect::<String>())
        }
        (count, 0) => format!("equal {count}"),
        (count, _) => format!("equal {count} start {first}"),
    }
}

/// `leaves_workers`: whether the interface has workers if so many cores of a node take queues.
pub fn workers(
    machine: &Machine,
    plan: &Plan,
    leaves_workers: impl Fn(&str, usize) -> bool,
) -> Page {
    let mut page = Page::default();
    for interface in &plan.interfaces {
        let nodes = nodes(interface);
        let node = text_or(nodes.as_ref(), "unknown");
        page.line(format!("{}  node {node}", interface.name));
        let workers = &interface.worker_cpus;
        for (what, cpus) in [
            ("  interrupts  ", &interface.irq_cpus),
            ("  workers     ", workers),
        ] {
            let mask = mask(cpus);
            page.item(
                what,
                text_or(
                    [enclose("", [cpus.short()], &format!("  mask {mask}"))],
                    "none",
                ),
            );
        }
        if workers.is_empty() {
            // IRQs that cannot be moved stay on their cores.
            let movable = interface.vectors.iter().filter(|vector| vector.is_active());
            let planned = CpuSet::union_of(movable.filter_map(|vector| vector.cpus.as_ref()));
            let half = machine.topology.cores_with(&planned).count().div_ceil(2);
            if (1..interface.candidate_cores).contains(&half)
                && leaves_workers(&interface.name, half)
            {
                page.item("              ", format!("try: --irq-cores {half}"));
            }
            continue;
        }
        let isolated = machine.topology.isolated_or_nohz().intersection(workers);
        let what = " are isolated or nohz_full; the node has no other CPU left";
        page.item("  note        ", enclose("CPUs ", [isolated.short()], what));
        let memory = nodes.map(|nodes| -> NodeSet {
            nodes.iter().map(|node| machine.memory_near(node)).collect()
        });
        let membind = with_prefix(" --membind=", memory.as_ref());
        let short = workers.short();
        page.line(format!("  taskset     taskset -c {short} COMMAND"));
        page.line(format!(
            "  numactl     numactl --physcpubind={workers}{membind} COMMAND"
        ));
        page.line(format!("  dpdk        -l {workers}"));
        // The value is added to the unit's list: an empty one clears it first (systemd.exec(5)).
        page.line("  systemd     [Service]");
        page.line("              CPUAffinity=");
        page.line(format!("              CPUAffinity={workers}"));
        if let Some(memory) = memory {
            page.line("              NUMAPolicy=bind");
            page.line(format!("              NUMAMask={memory}"));
        }
    }
    let reserved = &plan.network_cpus;
    if !reserved.is_empty() {
        // Programs do not accept a broken list.
        page.line(format!("kubelet       reservedSystemCPUs: \"{reserved}\""));
    }
    page
}

/// Returns several nodes if they are equally near to the device's; `None` if the node is unknown.
fn nodes(interface: &PlannedInterface) -> Option<NodeSet> {
    let tied = interface.notes.iter().find_map(|note| match note {
        Note::NodeWithoutCpus { nearest, .. } => Some(nearest.clone()),
        _ => None,
    });
    tied.or_else(|| interface.node.map(NodeSet::single))
}

/// Formats a mask with the prefix `0x`, as wide as the CPUs need.
fn mask(cpus: &CpuSet) -> String {
    let width = MaskWidth::for_cpus(cpus.last().map_or(1, |last| last + 1));
    let mask = cpus.to_mask(width);
    with_prefix("0x", mask.map(|mask| mask.replace(',', "")))
}
