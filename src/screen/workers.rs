//! CPUs for programs that use an interface, in the formats of taskset, numactl, DPDK and systemd; and those that work for the
//! network, as kubelet's reserved CPUs.

use crate::screen::page::Page;
use nicpin::cpuset::{CpuSet, MaskWidth};
use nicpin::machine::Machine;
use nicpin::machine::wording::word;
use nicpin::plan::Plan;

/// For each interface, the CPUs that take its interrupts and the node's other CPUs.
pub fn plan(machine: &Machine, plan: &Plan) -> Page {
    let isolated = machine.topology.isolated_or_nohz();
    let mut page = Page::default();
    for interface in &plan.interfaces {
        let node = interface
            .node
            .map_or("node unknown".to_owned(), |node| format!("node {node}"));
        page.line(format!("{}  {node}", interface.name));
        let mut line = |what: &str, text: &str| page.item(format!("  {what:<12}"), text);
        for (what, cpus) in [
            ("interrupts", &interface.irq_cpus),
            ("workers", &interface.worker_cpus),
        ] {
            if cpus.is_empty() {
                line(what, "none");
                if what == "workers" {
                    let name = word(&interface.name);
                    let half = (interface.irq_cpus.len() / 2).max(1);
                    let advice = format!("try: nicpin plan --workers --irq-cores {half} {name}");
                    line("", &advice);
                }
                continue;
            }
            line(
                what,
                &format!("{}  mask {}", cpus.short(), mask(cpus, plan.host.possible)),
            );
        }
        let workers = &interface.worker_cpus;
        if !workers.is_empty() {
            let isolated = isolated.intersection(workers);
            if !isolated.is_empty() {
                let isolated = isolated.short();
                let what = "are isolated or nohz_full; the node has no other CPU left";
                line("note", &format!("CPUs {isolated} {what}"));
            }
            let mut command = |what: &str, text: &str| page.line(format!("  {what:<12}{text}"));
            command(
                "taskset",
                &format!("taskset -c {} COMMAND", workers.short()),
            );
            let node = interface.node.map(|node| machine.memory_near(node));
            let memory = node.map_or(String::new(), |node| format!(" --membind={node}"));
            command(
                "numactl",
                &format!("numactl --physcpubind={workers}{memory} COMMAND"),
            );
            command("dpdk", &format!("-l {workers}"));
            // The list is added to what a unit has: an empty one comes first (systemd.exec(5)).
            command("systemd", "[Service]");
            command("", "CPUAffinity=");
            command("", &format!("CPUAffinity={workers}"));
            if let Some(node) = node {
                command("", "NUMAPolicy=bind");
                command("", &format!("NUMAMask={node}"));
            }
        }
    }
    let online = &machine.topology.online;
    let network = online.difference(&plan.without_network(&machine.topology, online));
    if !network.is_empty() {
        page.line(format!("kubelet       reservedSystemCPUs: \"{network}\""));
    }
    page
}

/// A hex mask with the prefix `0x`, as programs expect it, in the width that the CPUs need.
fn mask(cpus: &CpuSet, possible: u32) -> String {
    let width = MaskWidth::for_cpus(cpus.last().map_or(1, |last| last + 1).min(possible.max(1)));
    cpus.to_mask(width)
        .map_or(String::new(), |mask| format!("0x{}", mask.replace(',', "")))
}
