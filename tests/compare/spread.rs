//! systemd-udevd and irqbalance.

use std::collections::{BTreeMap, BTreeSet};

use nicpin::cpuset::CpuSet;
use nicpin::machine::Topology;

use super::facts::{Facts, State};

/// `[Link] IRQAffinityPolicy=spread` without a CPU list or node: every entry of `msi_irqs`, in the order of its name,
/// onto the first threads of all cores, far from each other first.
pub fn systemd(facts: &Facts) -> State {
    let mut state = State::found(facts);
    let cpus = far_apart(&facts.host.topology);
    for interface in facts.interfaces() {
        let mut irqs = facts.msi[&interface.name].clone();
        if interface.driver.as_deref() == Some("virtio_net") {
            // Taken to find the PCI function above the virtio device.
            irqs.clone_from(&interface.device.irqs);
        }
        irqs.sort_by_key(u32::to_string);
        for (irq, &cpu) in irqs.into_iter().zip(cpus.iter().cycle()) {
            // Entries that nobody has requested take their turn as well.
            if !facts.names(irq).is_empty() {
                state.put(irq, cpu);
            }
        }
    }
    state
}

/// The first threads, an L3 domain after the other in turn.
fn far_apart(topology: &Topology) -> Vec<u32> {
    let first_threads: CpuSet = topology.cores.iter().filter_map(CpuSet::first).collect();
    let domains: Vec<&CpuSet> = if topology.l3_domains.is_empty() {
        topology.nodes.values().map(|node| &node.cpus).collect()
    } else {
        topology.l3_domains.iter().collect()
    };
    let in_domain = domains.into_iter().map(|domain| domain.intersection(&first_threads));
    let lists: Vec<Vec<u32>> = in_domain.map(|cpus| equidistant(&cpus.iter().collect::<Vec<_>>())).collect();
    let lists = equidistant(&lists);
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(|turn| lists.iter().filter_map(move |list| list.get(turn).copied())).collect()
}

/// Both halves in turn, and each of them so.
fn equidistant<T: Clone>(items: &[T]) -> Vec<T> {
    if items.len() < 2 {
        return items.to_vec();
    }
    let (left, right) = items.split_at(items.len().div_ceil(2));
    let (left, mut right) = (equidistant(left), equidistant(right).into_iter());
    left.into_iter().flat_map(|item| [Some(item), right.next()]).flatten().collect()
}

/// `irqbalance --oneshot` on a machine without load: each vector to the CPU with the fewest, going down from the node
/// over the core, whose threads share the cache that it goes by, to the CPU. Control vectors count like others.
pub fn irqbalance(facts: &Facts) -> State {
    let mut state = State::found(facts);
    let topology = &facts.host.topology;
    let usable = topology.online.difference(&topology.isolated_or_nohz());
    let nodes: BTreeMap<u32, CpuSet> = topology
        .nodes
        .iter()
        .map(|(&id, node)| (id, node.cpus.intersection(&usable)))
        .filter(|(_, cpus)| !cpus.is_empty())
        .collect();
    let mut on_cpu: BTreeMap<u32, usize> = BTreeMap::new();
    let mut irqs: BTreeSet<(u32, Option<u32>)> = BTreeSet::new();
    for interface in facts.interfaces() {
        irqs.extend(interface.device.irqs.iter().map(|&irq| (irq, interface.device.node)));
    }
    for (irq, node) in irqs.into_iter().filter(|&(irq, _)| !facts.names(irq).is_empty()) {
        let load =
            |cpus: &CpuSet| cpus.iter().map(|cpu| on_cpu.get(&cpu).copied().unwrap_or(0)).sum::<usize>();
        let own = node.and_then(|node| nodes.get(&node));
        let node = own.unwrap_or_else(|| nodes.values().min_by_key(|cpus| load(cpus)).unwrap());
        let cores = topology.cores.iter().map(|core| core.intersection(node)).filter(|core| !core.is_empty());
        let core = cores.min_by_key(&load).unwrap();
        let cpu = core.iter().min_by_key(|&cpu| load(&CpuSet::single(cpu))).unwrap();
        *on_cpu.entry(cpu).or_default() += 1;
        state.put(irq, cpu);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_two_caches_in_turn() {
        let set = |list: &str| CpuSet::parse_list(list).unwrap();
        let topology = Topology {
            cores: (0..8).map(|cpu| set(&format!("{cpu},{}", cpu + 8))).collect(),
            l3_domains: vec![set("0-3,8-11"), set("4-7,12-15")],
            ..Topology::default()
        };
        assert_eq!(far_apart(&topology), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(equidistant(&[0, 1, 2, 3, 4, 5, 6, 7]), [0, 4, 2, 6, 1, 5, 3, 7]);
    }
}
