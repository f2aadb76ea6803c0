//! How good a placement is: the planned one and the present one, by the same measure.

use std::collections::{BTreeMap, BTreeSet};

use crate::cpuset::CpuSet;
use crate::host::{Host, Role};
use crate::plan::place::Places;
use crate::plan::plan::{InterfacePlan, Score, VectorPlan};

/// Where a vector would be served by the plan.
pub(crate) fn planned(vector: &VectorPlan) -> Option<CpuSet> {
    vector.cpus.clone().or_else(|| now(vector))
}

/// Where a vector is served now; the allowed CPUs where the kernel does not tell.
pub(crate) fn now(vector: &VectorPlan) -> Option<CpuSet> {
    vector.serving.clone().or_else(|| Some(vector.current.clone()))
}

/// Scores interfaces by where `place` says that each vector is.
pub(crate) fn score(
    host: &Host,
    places: &Places,
    interfaces: &[InterfacePlan],
    place: fn(&VectorPlan) -> Option<CpuSet>,
) -> Score {
    let (mut local, mut known) = (0_u32, 0_u32);
    let mut on_core: BTreeMap<usize, usize> = BTreeMap::new();
    let mut threads: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
    let mut candidates = CpuSet::new();
    let mut owners: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    let kept_free = host.topology.isolated_or_nohz();
    let mut on_isolated = 0;
    for interface in interfaces {
        let of = |node: Option<u32>| host.topology.nodes.get(&node?).map(|node| &node.cpus);
        let mut counted = BTreeSet::new();
        let active = interface.vectors.iter().filter(|v| v.role != Role::Control && !v.idle);
        for vector in active {
            let Some(cpus) = place(vector) else { continue };
            if let Some(own) = of(vector.node.or(interface.node)) {
                known += 1;
                local += u32::from(cpus.is_subset(own));
            }
            on_isolated += usize::from(cpus.intersects(&kept_free));
            // A queue's receive and transmit vectors on one CPU are one piece of work.
            if let (Some(cpu), Some(queue)) = (cpus.first(), vector.queue)
                && let Some(place) = places.of(cpu)
                && counted.insert((queue, cpu))
            {
                *on_core.entry(place.core).or_default() += 1;
                threads.entry(place.core).or_default().insert(cpu);
                owners.entry(place.core).or_default().insert(&interface.name);
            }
        }
        if !counted.is_empty() {
            candidates = candidates.union(&interface.candidates);
        }
    }
    let cores: BTreeSet<usize> =
        candidates.iter().filter_map(|cpu| places.of(cpu)).map(|place| place.core).collect();
    let on = |core: &usize| on_core.get(core).copied().unwrap_or(0);
    Score {
        local: (known > 0).then(|| f64::from(local) / f64::from(known)),
        max_vectors_per_core: on_core.values().copied().max().unwrap_or(0),
        min_vectors_per_core: cores.iter().map(on).min().unwrap_or(0),
        smt_collisions: threads.values().filter(|threads| threads.len() > 1).count(),
        on_isolated,
        shared_cores: owners.values().filter(|owners| owners.len() > 1).count(),
    }
}
