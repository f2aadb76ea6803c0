//! A CPU for every queue of every interface, for RDMA vectors, and for control vectors that have to be moved.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::cpuset::CpuSet;
use crate::machine::{Machine, Role, Vector};
use crate::plan::candidates::isolated_or_exclusive;
use crate::plan::data::{DecidedBy, Placement};
use crate::plan::place::Locations;
use crate::plan::spread::{Queue, Spread};
use crate::plan::work::{Work, effective_cpu};
use crate::policy::{EXCLUDE, RDMA, Rdma, SCOPE, SIBLINGS, Scope};

/// A queue of an interface, and how its CPU is found.
struct Wish {
    /// The place of the interface among those that take part.
    work: usize,
    queue: u32,
    idle: bool,
    how: How,
}

enum How {
    /// Another vector of the queue is on this CPU, and stays there.
    Stays(u32),
    /// With the wish of this number, which has the same IRQ.
    Line(usize),
    /// On one of a set of CPUs.
    Among(usize, Option<DecidedBy>),
}

/// Assigns a CPU to every queue: active queues of all interfaces first, then idle ones, which are not counted. RDMA
/// vectors follow.
pub(crate) fn assign(machine: &Machine, locations: &Locations, works: &mut [Work<'_>]) {
    let apart = works.iter().filter(|work| work.choice.get(&SIBLINGS));
    let apart = CpuSet::union_of(apart.map(|work| &work.candidates.cpus));
    let spread = &mut Spread::new(&machine.topology, locations, &apart);
    let mut before = Before::default();
    let mut firsts = vec![0; spread.len()];
    // Vectors that cannot or must not be moved are counted first, so that others are placed around them.
    for work in works.iter() {
        for (queue, vectors) in work.queues() {
            let active = vectors.iter().filter(|v| !work.interface.is_idle(v));
            if let Some(cpu) = cpu_that_stays(work, active) {
                spread.add(cpu, work.weight);
                before.add(locations, cpu);
                if let (0, Some(core)) = (queue, spread.core(cpu)) {
                    firsts[core] += 1;
                }
            }
        }
    }
    let mut wishes = Vec::new();
    let mut lines: BTreeMap<u32, usize> = BTreeMap::new();
    for idle in [false, true] {
        for (at, work) in works.iter().enumerate() {
            // A queue is active when any of its vectors is.
            let is_idle = |vectors: &[&Vector]| vectors.iter().all(|v| work.interface.is_idle(v));
            for (queue, vectors) in work
                .queues()
                .filter(|(_, vectors)| is_idle(vectors) == idle)
            {
                let line = || vectors.iter().find_map(|v| lines.get(&v.irq));
                let how = if let Some(cpu) = cpu_that_stays(work, vectors.iter()) {
                    How::Stays(cpu)
                } else if let Some(&owner) = line() {
                    How::Line(owner)
                } else if let Some(cpus) = hint(machine, work, vectors) {
                    let set = spread.set(&cpus, &[], &work.choice);
                    How::Among(set, Some(DecidedBy::Hint))
                } else {
                    How::Among(set_of(spread, work, vectors[0]), None)
                };
                lines.extend(vectors.iter().map(|v| (v.irq, wishes.len())));
                wishes.push(Wish {
                    work: at,
                    queue,
                    idle,
                    how,
                });
            }
        }
    }
    let mut cpus = arrange(spread, works, &wishes, &firsts);
    for (at, wish) in wishes.iter().enumerate() {
        let (cpu, decided_by) = match wish.how {
            How::Stays(cpu) => (Some(cpu), Some(DecidedBy::Vector)),
            How::Line(owner) => (cpus[owner], Some(DecidedBy::Line)),
            How::Among(set, by) if wish.idle => (spread.take(set), by),
            How::Among(_, by) => (cpus[at], by),
        };
        cpus[at] = cpu;
        if let Some(placement) = cpu.and_then(|cpu| before.placement(machine, locations, cpu)) {
            if matches!(wish.how, How::Among(..)) {
                before.add(locations, placement.cpu);
            }
            works[wish.work].cpus.insert(
                wish.queue,
                Placement {
                    decided_by,
                    ..placement
                },
            );
        }
    }
    let mut lines: BTreeMap<u32, u32> = (lines.into_iter())
        .filter_map(|(irq, at)| Some((irq, cpus[at]?)))
        .collect();
    assign_rdma(machine, works, spread, &mut lines);
    for work in works.iter_mut() {
        work.irq_cpus = work.cpus_of_queues(machine);
        let isolated_or_exclusive = isolated_or_exclusive(&machine.topology, &work.choice);
        let control = |vector: &&Vector| vector.role == Role::Control;
        for vector in work.interface.vectors.iter().filter(control) {
            let sits_on = vector.effective.as_ref().unwrap_or(&vector.affinity.cpus);
            if !sits_on.is_empty() && sits_on.is_subset(&isolated_or_exclusive) {
                let usable = work.candidates.cpus.difference(&isolated_or_exclusive);
                let cpu = usable.iter().min_by_key(|&cpu| (spread.on_cpu(cpu), cpu));
                work.others.extend(cpu.map(|cpu| (vector.irq, cpu)));
            }
        }
    }
}

/// The CPU of each active queue that can be moved, by the number of its wish. `firsts`: by core, the first queues that
/// stay there.
fn arrange(
    spread: &mut Spread<'_>,
    works: &[Work<'_>],
    wishes: &[Wish],
    firsts: &[usize],
) -> Vec<Option<u32>> {
    // Queues of one weight and the same candidates can change places.
    let mut alike: BTreeMap<(Reverse<u64>, usize), Vec<usize>> = BTreeMap::new();
    for (at, wish) in wishes.iter().enumerate().filter(|(_, wish)| !wish.idle) {
        if let How::Among(set, _) = wish.how {
            let weight = Reverse(works[wish.work].weight);
            alike.entry((weight, set)).or_default().push(at);
        }
    }
    for (&(Reverse(weight), set), own) in &alike {
        spread
            .queues
            .extend(own.iter().map(|_| Queue::new(set, weight)));
    }
    spread.arrange();
    let mut arranged = spread.queues.iter().map(|queue| queue.core);
    let mut groups: Vec<(usize, Vec<usize>, Vec<usize>)> = Vec::new();
    for ((_, set), own) in alike {
        let cores = spread.in_order(arranged.by_ref().take(own.len()).collect());
        let mut cores = cores.into_iter();
        for own in own.chunk_by(|&a, &b| wishes[a].work == wishes[b].work) {
            let cores = spread.in_order(cores.by_ref().take(own.len()).collect());
            groups.push((set, own.to_vec(), cores));
        }
    }
    let has_first = |group: &&mut (usize, Vec<usize>, Vec<usize>)| {
        wishes[group.1[0]].queue == 0 && !group.2.is_empty()
    };
    let mut with_first: Vec<_> = groups.iter_mut().filter(has_first).collect();
    let options: Vec<&[usize]> = with_first
        .iter()
        .map(|(_, _, cores)| cores.as_slice())
        .collect();
    let chosen = spread.firsts(&options, firsts);
    for ((_, _, cores), first) in with_first.iter_mut().zip(chosen) {
        if let Some(at) = cores.iter().position(|&core| core == first) {
            cores[..=at].rotate_right(1);
        }
    }
    let mut seats: Vec<(usize, usize, usize)> = Vec::new();
    for (set, own, cores) in groups {
        seats.extend(own.into_iter().zip(cores).map(|(at, core)| (at, set, core)));
    }
    seats.sort_unstable();
    let mut cpus = vec![None; wishes.len()];
    for (at, set, core) in seats {
        cpus[at] = spread.thread(set, core);
    }
    cpus
}

/// The active queues on each core and L3 domain that come before one.
#[derive(Default)]
struct Before {
    on_core: BTreeMap<usize, usize>,
    in_domain: BTreeMap<usize, usize>,
}

impl Before {
    fn add(&mut self, locations: &Locations, cpu: u32) {
        if let Some(place) = locations.of(cpu) {
            *self.on_core.entry(place.core).or_default() += 1;
            *self.in_domain.entry(place.domain).or_default() += 1;
        }
    }

    fn placement(&self, machine: &Machine, locations: &Locations, cpu: u32) -> Option<Placement> {
        let (place, topology) = (locations.of(cpu)?, &machine.topology);
        let core = locations.core_of(topology, cpu).cloned();
        Some(Placement {
            cpu,
            core: core.unwrap_or_else(|| CpuSet::single(cpu)),
            queues_on_core: self.on_core.get(&place.core).copied().unwrap_or(0),
            l3: locations.l3_of(topology, cpu).cloned().unwrap_or_default(),
            queues_on_l3: self.in_domain.get(&place.domain).copied().unwrap_or(0),
            decided_by: None,
        })
    }
}

/// The number of a vector's candidates.
fn set_of(spread: &mut Spread<'_>, work: &Work<'_>, vector: &Vector) -> usize {
    let tiers = if work.by_node.is_empty() {
        work.candidates.tiers.as_slice()
    } else {
        &[]
    };
    spread.set(work.candidates_of(vector), tiers, &work.choice)
}

/// Assigns a CPU to every RDMA vector, around those that stay where they are.
fn assign_rdma(
    machine: &Machine,
    works: &mut [Work<'_>],
    spread: &mut Spread<'_>,
    lines: &mut BTreeMap<u32, u32>,
) {
    for stay in [true, false] {
        for work in works.iter_mut() {
            let keep = work.skip || work.choice.get(&RDMA) == Rdma::Keep;
            for vector in work
                .interface
                .vectors
                .iter()
                .filter(|vector| vector.role == Role::Rdma)
            {
                let stays = keep || !vector.movable;
                if stays != stay {
                    continue;
                }
                if stays {
                    if let Some(cpu) = effective_cpu(vector) {
                        spread.add(cpu, 0);
                    }
                    continue;
                }
                let cpu = lines.get(&vector.irq).copied().or_else(|| {
                    let set = match hint(machine, work, &[vector]) {
                        Some(cpus) => spread.set(&cpus, &[], &work.choice),
                        None => set_of(spread, work, vector),
                    };
                    spread.take(set)
                });
                if let Some(cpu) = cpu {
                    lines.insert(vector.irq, cpu);
                    work.others.insert(vector.irq, cpu);
                }
            }
        }
    }
}

/// The CPU of the first of some vectors that cannot or must not be moved.
fn cpu_that_stays<'a>(
    work: &Work<'_>,
    mut vectors: impl Iterator<Item = &'a &'a Vector>,
) -> Option<u32> {
    vectors.find_map(|vector| effective_cpu(vector).filter(|_| work.skip || !vector.movable))
}

/// The usable CPUs in the driver's affinity hint for one of these vectors, if the policy's scope is `hint`.
fn hint(machine: &Machine, work: &Work<'_>, vectors: &[&Vector]) -> Option<CpuSet> {
    let hint = vectors
        .iter()
        .find_map(|vector| machine.hints.get(&vector.irq))?;
    if work.choice.get(&SCOPE) != Scope::Hint {
        return None;
    }
    let isolated_or_exclusive =
        isolated_or_exclusive(&machine.topology, &work.choice).union(&work.choice.get(&EXCLUDE));
    Some(
        hint.intersection(&machine.topology.online)
            .difference(&isolated_or_exclusive),
    )
    .filter(|cpus| !cpus.is_empty())
}
