//! Scores the planned and the current placement by the same measure.

use std::collections::BTreeMap;

use crate::cpuset::CpuSet;
use crate::machine::{Machine, Role};
use crate::plan::data::{PlannedInterface, PlannedVector, RdmaScore, Score};
use crate::plan::place::Locations;

/// The CPUs of a vector, and the CPU for which its queue counts.
type Counted<'a> = (&'a CpuSet, Option<u32>);

/// The CPUs of a vector under the plan.
pub(super) fn planned(vector: &PlannedVector) -> Counted<'_> {
    let Some(cpus) = &vector.cpus else {
        return now(vector);
    };
    // The kernel distributes vectors over the CPUs of a group.
    let counted = vector
        .placement
        .as_ref()
        .map(|placement| placement.cpu)
        .filter(|&cpu| cpus.contains(cpu));
    (cpus, counted.or(cpus.first()))
}

/// The current effective CPUs of a vector.
pub(crate) fn now(vector: &PlannedVector) -> Counted<'_> {
    (vector.effective_cpus(), vector.effective_cpus().first())
}

/// The score of interfaces whose vectors are where `place` returns.
pub(crate) fn score(
    machine: &Machine,
    locations: &Locations,
    interfaces: &[PlannedInterface],
    place: fn(&PlannedVector) -> Counted<'_>,
) -> Score {
    let (mut local, mut known) = (0_u32, 0_u32);
    // Core, CPU and interface of each queue.
    let mut placed: Vec<(usize, u32, usize)> = Vec::new();
    let mut candidates = CpuSet::new();
    let mut on_isolated = 0;
    let mut rdma = RdmaScore::default();
    let mut rdma_on = BTreeMap::<usize, usize>::new();
    for (at, interface) in interfaces.iter().enumerate() {
        let of = |node: Option<u32>| node.map(|node| machine.topology.cpus_near(node));
        let mut counted = Vec::new();
        let kept_free = machine
            .topology
            .isolated_or_nohz()
            .union(&interface.exclusive);
        for vector in interface.vectors.iter().filter(|vector| !vector.idle) {
            let (cpus, _) = place(vector);
            // The affinity of a control vector may hold all CPUs: only its effective CPU counts.
            on_isolated += usize::from(match vector.role {
                Role::Control => !cpus.is_empty() && cpus.is_subset(&kept_free),
                _ => cpus.intersects(&kept_free),
            });
        }
        for vector in interface
            .vectors
            .iter()
            .filter(|vector| vector.role == Role::Rdma)
        {
            let (cpus, counted_for) = place(vector);
            rdma.vectors += 1;
            let own = of(vector.node.or(interface.local_node()));
            rdma.local += usize::from(own.is_some_and(|own| cpus.is_subset(&own)));
            if let Some(place) = counted_for.and_then(|cpu| locations.of(cpu)) {
                *rdma_on.entry(place.core).or_default() += 1;
            }
        }
        rdma.max_per_core = rdma_on.values().copied().max().unwrap_or(0);
        let active = interface
            .vectors
            .iter()
            .filter(|v| v.role.is_queue() && !v.idle);
        for vector in active {
            let (cpus, counted_for) = place(vector);
            if let Some(own) = of(vector.node.or(interface.local_node())) {
                known += 1;
                local += u32::from(cpus.is_subset(&own));
            }
            // A queue's receive and transmit vectors on one CPU count once.
            if let (Some(cpu), Some(queue)) = (counted_for, vector.queue)
                && let Some(place) = locations.of(cpu)
            {
                counted.push((queue, cpu, place.core));
            }
        }
        counted.sort_unstable();
        counted.dedup();
        placed.extend(counted.iter().map(|&(_, cpu, core)| (core, cpu, at)));
        if !counted.is_empty() {
            candidates.add(&interface.candidates);
        }
    }
    placed.sort_unstable();
    let cores = || placed.chunk_by(|a, b| a.0 == b.0);
    let mut queues_on = vec![0; locations.cores];
    cores().for_each(|queues| queues_on[queues[0].0] = queues.len());
    let possible = candidates.iter().filter_map(|cpu| locations.of(cpu));
    let differ = |queues: &&[_], of: fn(&(usize, u32, usize)) -> usize| {
        queues.iter().any(|queue| of(queue) != of(&queues[0]))
    };
    Score {
        local: (known > 0).then(|| f64::from(local) / f64::from(known)),
        max_vectors_per_core: queues_on.iter().copied().max().unwrap_or(0),
        min_vectors_per_core: possible
            .map(|place| queues_on[place.core])
            .min()
            .unwrap_or(0),
        smt_collisions: cores()
            .filter(|queues| differ(queues, |queue| queue.1 as usize))
            .count(),
        on_isolated,
        shared_cores: cores()
            .filter(|queues| differ(queues, |queue| queue.2))
            .count(),
        rdma: (rdma.vectors > 0).then_some(rdma),
    }
}
