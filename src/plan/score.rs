//! Takes the measures of the planned and of other states, of the whole machine and of each interface.

use std::collections::{BTreeMap, BTreeSet};

use crate::cpuset::CpuSet;
use crate::machine::setting::{affinity_file, queue_file};
use crate::machine::{Interface, Machine, Role, Vector};
use crate::plan::data::{PlannedInterface, PlannedVector};
use crate::plan::objective::{RdmaScore, Score, pairs, weights};
use crate::plan::place::Locations;

/// Whether the setting of a path counts as it is planned, and not as it is.
type IsPlanned<'a> = &'a dyn Fn(&str) -> bool;

/// The CPUs of a vector, and the CPU for which its queue counts.
fn place<'a>(vector: &'a PlannedVector, is_planned: IsPlanned<'_>) -> (&'a CpuSet, Option<u32>) {
    let now = vector.effective_cpus();
    let planned = vector.cpus.as_ref();
    let Some(cpus) = planned.filter(|_| is_planned(&affinity_file(vector.irq))) else {
        return (now, now.first());
    };
    // The kernel distributes vectors over the CPUs of a group.
    let counted = vector.placement.as_ref().map(|placement| placement.cpu);
    let counted = counted.filter(|&cpu| cpus.contains(cpu));
    (cpus, counted.or(cpus.first()))
}

/// A queue of an interface, by number, on a CPU.
struct Spot {
    /// Index in the machine's list.
    interface: usize,
    queue: u32,
    cpu: u32,
    weight: u64,
}

/// What is on each core.
type Spots = BTreeMap<usize, Vec<Spot>>;

/// The score of interfaces under the plan, or as they are now.
pub(crate) fn score(
    machine: &Machine,
    locations: &Locations,
    interfaces: &[PlannedInterface],
    planned: bool,
) -> Score {
    let is_planned: IsPlanned<'_> = &move |_| planned;
    let spots = spots(machine, locations, interfaces, is_planned);
    let mut total = Score::default();
    let (mut local, mut known) = (0, 0);
    let mut rdma_on = BTreeMap::new();
    for interface in interfaces {
        let own = of_vectors(machine, locations, interface, is_planned, &mut rdma_on);
        (local, known) = (local + own.local, known + own.known);
        total.outside += own.outside;
        total.on_isolated += own.on_isolated;
        total.far_senders += senders(machine, locations, interface, is_planned).far;
        if let Some(own) = own.rdma {
            let sum = total.rdma.get_or_insert_default();
            (sum.vectors, sum.local) = (sum.vectors + own.vectors, sum.local + own.local);
            sum.max_per_core = rdma_on.values().copied().max().unwrap_or(0);
        }
    }
    let spots = spots.iter().map(|(core, spots)| (*core, spots.as_slice()));
    on_cores(machine, interfaces, None, &spots.collect(), &mut total);
    total.local = share(local, known);
    total
}

/// The measures of an interface over its own queues and the cores that they are on.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Standing {
    pub(crate) score: Score,
    /// Online CPUs that have no transmit queue of their own, or several.
    pub(crate) shared_senders: usize,
}

/// The standing of each interface of a plan. Settings for which `is_planned` holds count as planned, others as they are;
/// so do interfaces of the machine that are not in the plan.
pub(crate) fn standings(
    machine: &Machine,
    interfaces: &[PlannedInterface],
    is_planned: IsPlanned<'_>,
) -> Vec<Standing> {
    let locations = &Locations::new(&machine.topology);
    let mut all = spots(machine, locations, interfaces, is_planned);
    let weights = weights(machine);
    for (at, other) in machine.interfaces.iter().enumerate() {
        if interfaces.iter().any(|planned| planned.name == other.name) {
            continue;
        }
        let active = other.vectors.iter().filter(|v| !other.is_idle(v));
        let now = |vector: &Vector| {
            let effective = vector.effective.as_ref();
            effective.unwrap_or(&vector.affinity.cpus).first()
        };
        let active = active
            .filter(|v| v.is_queue_vector())
            .map(|v| (v.queue, now(v)));
        add(locations, &mut all, at, weights[at], active);
    }
    let standing = |planned: &PlannedInterface| {
        let at = position(machine, planned);
        let own = all
            .iter()
            .filter(|(_, spots)| spots.iter().any(|spot| Some(spot.interface) == at));
        let own = own.map(|(core, spots)| (*core, spots.as_slice())).collect();
        let mut rdma_on = BTreeMap::new();
        let vectors = of_vectors(machine, locations, planned, is_planned, &mut rdma_on);
        let senders = senders(machine, locations, planned, is_planned);
        let mut score = Score {
            local: share(vectors.local, vectors.known),
            outside: vectors.outside,
            on_isolated: vectors.on_isolated,
            far_senders: senders.far,
            rdma: vectors.rdma,
            ..Score::default()
        };
        on_cores(machine, interfaces, at, &own, &mut score);
        Standing {
            score,
            shared_senders: senders.shared,
        }
    };
    interfaces.iter().map(standing).collect()
}

fn position(machine: &Machine, planned: &PlannedInterface) -> Option<usize> {
    let mut read = machine.interfaces.iter();
    read.position(|read| read.name == planned.name)
}

fn share(local: u32, known: u32) -> Option<f64> {
    (known > 0).then(|| f64::from(local) / f64::from(known))
}

/// The queues in use of interfaces, by core.
fn spots(
    machine: &Machine,
    locations: &Locations,
    interfaces: &[PlannedInterface],
    is_planned: IsPlanned<'_>,
) -> Spots {
    let weights = weights(machine);
    let mut spots = Spots::new();
    for planned in interfaces {
        let Some(at) = position(machine, planned) else {
            continue;
        };
        let active = planned
            .vectors
            .iter()
            .filter(|v| v.role.is_queue() && !v.idle);
        let active = active.map(|vector| (vector.queue, place(vector, is_planned).1));
        add(locations, &mut spots, at, weights[at], active);
    }
    spots
}

/// Adds the queues of an interface. A queue's receive and transmit vectors on one CPU count once.
fn add(
    locations: &Locations,
    spots: &mut Spots,
    interface: usize,
    weight: u64,
    queues: impl Iterator<Item = (Option<u32>, Option<u32>)>,
) {
    let mut counted = BTreeSet::new();
    for (queue, cpu) in queues {
        if let (Some(queue), Some(cpu)) = (queue, cpu) {
            if let Some(place) = locations.of(cpu) {
                if counted.insert((queue, cpu)) {
                    spots.entry(place.core).or_default().push(Spot {
                        interface,
                        queue,
                        cpu,
                        weight,
                    });
                }
            }
        }
    }
}

/// What the vectors of an interface are on.
#[derive(Default)]
struct OfVectors {
    local: u32,
    /// Those of which it is known whether they are local.
    known: u32,
    outside: usize,
    on_isolated: usize,
    rdma: Option<RdmaScore>,
}

/// `rdma_on`: the RDMA vectors on each core so far.
fn of_vectors(
    machine: &Machine,
    locations: &Locations,
    interface: &PlannedInterface,
    is_planned: IsPlanned<'_>,
    rdma_on: &mut BTreeMap<usize, usize>,
) -> OfVectors {
    let isolated_or_exclusive = machine
        .topology
        .isolated_or_nohz()
        .union(&interface.exclusive);
    let mut found = OfVectors::default();
    for vector in interface.vectors.iter().filter(|vector| !vector.idle) {
        let (cpus, counted_for) = place(vector, is_planned);
        // The affinity of a control vector may hold all CPUs: only its effective CPU counts.
        found.on_isolated += usize::from(match vector.role {
            Role::Control => !cpus.is_empty() && cpus.is_subset(&isolated_or_exclusive),
            _ => cpus.intersects(&isolated_or_exclusive),
        });
        let node = vector.node.or(interface.local_node());
        let is_local = node.map(|node| cpus.is_subset(&machine.topology.cpus_near(node)));
        match vector.role {
            Role::Control => {}
            Role::Rdma => {
                if let Some(place) = counted_for.and_then(|cpu| locations.of(cpu)) {
                    *rdma_on.entry(place.core).or_default() += 1;
                }
                let rdma = found.rdma.get_or_insert_default();
                rdma.vectors += 1;
                rdma.local += usize::from(is_local == Some(true));
                rdma.max_per_core = rdma_on.values().copied().max().unwrap_or(0);
            }
            _ => {
                found.outside += usize::from(!cpus.is_subset(&interface.candidates));
                found.known += u32::from(is_local.is_some());
                found.local += u32::from(is_local == Some(true));
            }
        }
    }
    found
}

/// The measures of some cores; those of one interface, if they are about its queues.
fn on_cores(
    machine: &Machine,
    interfaces: &[PlannedInterface],
    only: Option<usize>,
    spots: &BTreeMap<usize, &[Spot]>,
    score: &mut Score,
) {
    let is_other = |spot: &&Spot| only.is_some_and(|only| spot.interface != only);
    let most = |of: &dyn Fn(&[Spot]) -> u64| spots.values().map(|spots| of(spots)).max();
    let is_first = |spot: &&Spot| spot.queue == 0;
    let firsts = |spots: &[Spot]| {
        if only.is_some() && spots.iter().filter(is_first).all(|spot| is_other(&spot)) {
            return 0;
        }
        let firsts = spots.iter().filter(is_first).map(|spot| spot.interface);
        firsts.collect::<BTreeSet<_>>().len() as u64
    };
    let shared = |spots: &[Spot]| pairs(spots.len()) - pairs(spots.iter().filter(is_other).count());
    let has_queues =
        |planned: &&PlannedInterface| planned.vectors.iter().any(|v| v.role.is_queue() && !v.idle);
    let candidates = interfaces
        .iter()
        .filter(has_queues)
        .map(|planned| &planned.candidates);
    let candidates = CpuSet::union_of(candidates);
    score.max_vectors_per_core = spots.values().map(|spots| spots.len()).max().unwrap_or(0);
    score.max_load_kbps = most(&|spots| spots.iter().map(|spot| spot.weight).sum()).unwrap_or(0);
    score.pairs_on_cores = spots.values().map(|spots| shared(spots)).sum();
    score.max_first_queues_per_core =
        usize::try_from(most(&firsts).unwrap_or(0)).unwrap_or(usize::MAX);
    let above = spots
        .iter()
        .map(|(&core, spots)| above_even(machine, &candidates, core, spots));
    score.above_even_threads = above.sum();
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

/// Online CPUs by the transmit queue that they send on.
#[derive(Default)]
struct Senders {
    /// Those whose queue completes on a farther node than another would.
    far: usize,
    /// Those that have no queue of their own, or several.
    shared: usize,
}

fn senders(
    machine: &Machine,
    locations: &Locations,
    planned: &PlannedInterface,
    is_planned: IsPlanned<'_>,
) -> Senders {
    let topology = &machine.topology;
    let Some(read) = position(machine, planned) else {
        return Senders::default();
    };
    let sends = |vector: &&PlannedVector| matches!(vector.role, Role::Tx | Role::Combined);
    let senders: Vec<&PlannedVector> = planned.vectors.iter().filter(sends).collect();
    // More queues than vectors share them.
    let node = |queue: u32| {
        let own = senders.iter().find(|vector| vector.queue == Some(queue));
        let vector = own.or_else(|| senders.get(queue as usize % senders.len().max(1)))?;
        locations.of(place(vector, is_planned).1?)?.node
    };
    let read: &Interface = &machine.interfaces[read];
    let queues = planned.tx_queues.iter().zip(&read.tx_queues);
    let queues: Option<Vec<(Option<u32>, &CpuSet)>> = queues
        .map(|(wanted, read)| {
            let path = || queue_file(&planned.name, "tx", wanted.queue, "xps_cpus");
            let wanted_cpus = wanted.xps_cpus.as_ref().filter(|_| is_planned(&path()));
            let cpus = wanted_cpus.or(read.xps_cpus.as_ref().map(|file| &file.cpus))?;
            Some((node(wanted.queue), cpus))
        })
        .collect();
    let Some(queues) = queues else {
        return Senders::default();
    };
    let (mut given, mut several) = (CpuSet::new(), CpuSet::new());
    for (_, cpus) in &queues {
        several.add(&given.intersection(cpus));
        given.add(cpus);
    }
    let mut far = CpuSet::new();
    let several_nodes = queues.iter().any(|(node, _)| *node != queues[0].0)
        && queues.iter().all(|(node, _)| node.is_some());
    for (&id, node) in topology.nodes.iter().filter(|_| several_nodes) {
        let away = |node: Option<u32>| node.map(|node| topology.distance(id, node));
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
    Senders {
        far: far.len(),
        shared: topology.online.difference(&given).union(&several).len(),
    }
}
