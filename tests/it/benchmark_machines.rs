//! The machines of the benchmark: every size that it accepts gives a complete machine.

use std::collections::BTreeSet;

use crate::bench_machines::Size;
use crate::support::temporary;
use nicpin::machine::Role;
use nicpin::root::Root;

/// The smallest and largest numbers of CPUs and nodes, and numbers that do not divide evenly.
const CPUS: [u32; 12] = [2, 3, 4, 5, 7, 12, 16, 31, 33, 100, 127, 4095];
const NODES: [u32; 7] = [1, 2, 3, 4, 7, 31, 32];

#[test]
fn every_cpu_is_on_one_core_one_cache_and_one_node() {
    for (cpus, nodes) in CPUS
        .iter()
        .flat_map(|&cpus| NODES.map(|nodes| (cpus, nodes)))
    {
        let machine = Size::new((cpus, nodes, 1, 1), true).machine();
        let all: Vec<u32> = (0..cpus).collect();
        assert_eq!(
            (machine.online, machine.nodes.len()),
            (all.clone(), nodes as usize),
            "{cpus} on {nodes}"
        );
        let node_sets: Vec<_> = machine.nodes.iter().map(|node| node.cpus.clone()).collect();
        for groups in [&machine.cores, &machine.l3, &node_sets] {
            let mut each = groups.concat();
            each.sort_unstable();
            assert_eq!(each, all, "{cpus} on {nodes}: {groups:?}");
        }
        for group in machine.cores.iter().chain(&machine.l3) {
            let on = node_sets
                .iter()
                .filter(|node| group.iter().any(|cpu| node.contains(cpu)))
                .count();
            assert_eq!(on, 1, "{cpus} on {nodes}: nodes of {group:?}");
        }
        let shares = node_sets.iter().map(|node| {
            machine
                .cores
                .iter()
                .filter(|core| core.iter().all(|cpu| node.contains(cpu)))
                .count()
        });
        let (least, most) = (shares.clone().min().unwrap(), shares.max().unwrap());
        assert!(
            most - least <= 1,
            "{cpus} on {nodes}: {least} to {most} cores a node"
        );
        assert_eq!(least == 0, nodes > cpus, "{cpus} on {nodes}");
        assert!(
            machine.cores.iter().all(|core| core.len() <= 2),
            "{cpus} on {nodes}"
        );
    }
}

#[test]
fn odd_machines_are_read_and_planned() {
    let sizes = [
        (2, 2, 1, 1),
        (2, 32, 3, 4),
        (3, 2, 1, 256),
        (12, 4, 5, 3),
        (41, 31, 32, 1),
    ];
    for size in sizes {
        let dir = temporary();
        let (cpus, nodes, cards, queues) = size;
        let size = Size::new(size, true);
        size.machine().write(dir.path());
        let host = nicpin::read::machine(
            &Root::open(dir.path()).unwrap(),
            nicpin::read::ReadOptions::default(),
        )
        .unwrap();
        assert_eq!(host.topology.online.len(), cpus as usize, "{size:?}");
        assert_eq!(host.topology.nodes.len(), nodes as usize, "{size:?}");
        let plan = crate::support::host::plan(&host);
        assert_eq!(plan.interfaces.len(), cards as usize, "{size:?}");
        for interface in &plan.interfaces {
            let placed = interface
                .vectors
                .iter()
                .filter(|v| v.role != Role::Control && v.cpus.is_some());
            let planned: BTreeSet<_> = placed.map(|vector| vector.queue).collect();
            assert_eq!(
                planned.len(),
                queues as usize,
                "{size:?}: {}",
                interface.name
            );
        }
    }
}
