//! Takes the measures of the planned and of the current state.

use std::collections::{BTreeMap, BTreeSet};

use crate::cpuset::CpuSet;
use crate::machine::{Interface, Machine, Role};
use crate::plan::data::{PlannedInterface, PlannedVector};
use crate::plan::objective::{RdmaScore, Score, pairs, weights};
use crate::plan::place::Locations;

/// The CPUs of a vector, and the CPU for which its queue counts: under the plan, or now.
fn place(vector: &PlannedVector, is_planned: bool) -> (&CpuSet, Option<u32>) {
    let now = vector.effective_cpus();
    let Some(cpus) = vector.cpus.as_ref().filter(|_| is_planned) else {
        return (now, now.first());
    };
    // The kernel distributes vectors over the CPUs of a group.
    let counted = vector.placement.as_ref().map(|placement| placement.cpu);
    let counted = counted.filter(|&cpu| cpus.contains(cpu));
    (cpus, counted.or(cpus.first()))
}

/// A queue of an interface, by number, on a CPU.
struct Spot {
    interface: usize,
    queue: u32,
    cpu: u32,
    weight: u64,
}

/// The score of interfaces under the plan, or as they are now.
pub(crate) fn score(
    machine: &Machine,
    locations: &Locations,
    interfaces: &[PlannedInterface],
    is_planned: bool,
) -> Score {
    let weights = weights(machine);
    let (mut local, mut known) = (0_u32, 0_u32);
    let (mut outside, mut on_isolated, mut far_senders) = (0, 0, 0);
    let mut spots: BTreeMap<usize, Vec<Spot>> = BTreeMap::new();
    let mut candidates = CpuSet::new();
    let mut rdma = RdmaScore::default();
    let mut rdma_on = BTreeMap::<usize, usize>::new();
    let isolated = machine.topology.isolated_or_nohz();
    for (at, interface) in interfaces.iter().enumerate() {
        let read = machine
            .interfaces
            .iter()
            .position(|read| read.name == interface.name);
        let weight = read.map_or(0, |read| weights[read]);
        let kept_free = isolated.union(&interface.exclusive);
        let mut counted = BTreeSet::new();
        for vector in interface.vectors.iter().filter(|vector| !vector.idle) {
            let (cpus, counted_for) = place(vector, is_planned);
            // The affinity of a control vector may hold all CPUs: only its effective CPU counts.
            on_isolated += usize::from(match vector.role {
                Role::Control => !cpus.is_empty() && cpus.is_subset(&kept_free),
                _ => cpus.intersects(&kept_free),
            });
            let node = vector.node.or(interface.local_node());
            let is_local = node.map(|node| cpus.is_subset(&machine.topology.cpus_near(node)));
            let core = counted_for.and_then(|cpu| Some(locations.of(cpu)?.core));
            match vector.role {
                Role::Control => {}
                Role::Rdma => {
                    rdma.vectors += 1;
                    rdma.local += usize::from(is_local == Some(true));
                    if let Some(core) = core {
                        *rdma_on.entry(core).or_default() += 1;
                    }
                }
                _ => {
                    outside += usize::from(!cpus.is_subset(&interface.candidates));
                    known += u32::from(is_local.is_some());
                    local += u32::from(is_local == Some(true));
                    // A queue's receive and transmit vectors on one CPU count once.
                    if let (Some(core), Some(cpu), Some(queue)) = (core, counted_for, vector.queue)
                        && counted.insert((queue, cpu))
                    {
                        spots.entry(core).or_default().push(Spot {
                            interface: at,
                            queue,
                            cpu,
                            weight,
                        });
                    }
                }
            }
        }
        if !counted.is_empty() {
            candidates.add(&interface.candidates);
        }
        far_senders += read.map_or(0, |read| {
            far(
                machine,
                locations,
                (&machine.interfaces[read], interface),
                is_planned,
            )
        });
    }
    rdma.max_per_core = rdma_on.values().copied().max().unwrap_or(0);
    let most = |of: &dyn Fn(&Vec<Spot>) -> u64| spots.values().map(of).max().unwrap_or(0);
    let firsts = |spots: &Vec<Spot>| {
        let firsts = spots.iter().filter(|spot| spot.queue == 0);
        firsts
            .map(|spot| spot.interface)
            .collect::<BTreeSet<_>>()
            .len()
    };
    Score {
        local: (known > 0).then(|| f64::from(local) / f64::from(known)),
        outside,
        max_vectors_per_core: spots.values().map(Vec::len).max().unwrap_or(0),
        max_load_kbps: most(&|spots| spots.iter().map(|spot| spot.weight).sum()),
        pairs_on_cores: spots.values().map(|spots| pairs(spots.len())).sum(),
        max_first_queues_per_core: spots.values().map(firsts).max().unwrap_or(0),
        above_even_threads: spots
            .iter()
            .map(|(&core, spots)| above_even(machine, &candidates, core, spots))
            .sum(),
        far_senders,
        on_isolated,
        rdma: (rdma.vectors > 0).then_some(rdma),
    }
}

/// The queues of a core above an even share of those of its CPUs that are candidates.
fn above_even(machine: &Machine, candidates: &CpuSet, core: usize, spots: &[Spot]) -> usize {
    let threads = machine
        .topology
        .cores
        .get(core)
        .map_or(1, |core| core.intersection(candidates).len());
    let share = spots.len().div_ceil(threads.max(1));
    let mut on_cpu = BTreeMap::<u32, usize>::new();
    for spot in spots {
        *on_cpu.entry(spot.cpu).or_default() += 1;
    }
    on_cpu
        .values()
        .map(|queues| queues.saturating_sub(share))
        .sum()
}

/// The online CPUs that send on a queue of an interface that completes on a farther node than another would.
fn far(
    machine: &Machine,
    locations: &Locations,
    (read, planned): (&Interface, &PlannedInterface),
    is_planned: bool,
) -> usize {
    let topology = &machine.topology;
    let sends = |vector: &&PlannedVector| matches!(vector.role, Role::Tx | Role::Combined);
    let senders: Vec<&PlannedVector> = planned.vectors.iter().filter(sends).collect();
    // More queues than vectors share them.
    let node = |queue: u32| {
        let own = senders.iter().find(|vector| vector.queue == Some(queue));
        let vector = own.or_else(|| senders.get(queue as usize % senders.len().max(1)))?;
        locations.of(place(vector, is_planned).1?)?.node
    };
    let queues = planned.tx_queues.iter().zip(&read.tx_queues);
    let Some(queues): Option<Vec<(u32, &CpuSet)>> = queues
        .map(|(planned, read)| {
            let wanted = planned.xps_cpus.as_ref().filter(|_| is_planned);
            Some((
                node(planned.queue)?,
                wanted.or(read.xps_cpus.as_ref().map(|file| &file.cpus))?,
            ))
        })
        .collect()
    else {
        return 0;
    };
    let given = CpuSet::union_of(queues.iter().map(|(_, cpus)| *cpus));
    let mut far = CpuSet::new();
    for (&id, node) in topology
        .nodes
        .iter()
        .filter(|_| queues.iter().any(|(node, _)| *node != queues[0].0))
    {
        let away = |node: u32| topology.distance(id, node);
        let nearest = queues.iter().map(|&(node, _)| away(node)).min();
        for (_, cpus) in queues
            .iter()
            .filter(|&&(node, _)| Some(away(node)) > nearest)
        {
            // A CPU without a queue sends on any.
            let without = node.cpus.difference(&given);
            far.add(&node.cpus.intersection(cpus).union(&without));
        }
    }
    far.len()
}
