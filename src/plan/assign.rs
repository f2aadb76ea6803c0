//! A CPU for every queue of every interface, for RDMA vectors, and for control vectors that have to be moved.

use std::collections::BTreeMap;

use crate::cpuset::CpuSet;
use crate::machine::{Machine, Role, Vector};
use crate::plan::candidates::kept_free;
use crate::plan::data::{DecidedBy, Placement};
use crate::plan::place::{Load, Locations, PlacementRules};
use crate::plan::work::{Work, effective_cpu};
use crate::policy::{AVOID_CPU0, EXCLUDE, RDMA, Rdma, SCOPE, SIBLINGS, Scope};

/// Assigns a CPU to every queue: active queues of all interfaces first, then idle ones, which are not counted. RDMA
/// vectors follow.
pub(crate) fn assign(machine: &Machine, locations: &Locations, works: &mut [Work<'_>]) {
    let mut load = Load::new(&machine.topology, locations);
    // Vectors that cannot or must not be moved are counted first, so that others are placed around them.
    for work in works.iter() {
        for (_, vectors) in work.queues() {
            let active = vectors
                .iter()
                .copied()
                .filter(|vector| !work.interface.is_idle(vector));
            if let Some(cpu) = cpu_that_stays(work, active) {
                load.add(cpu);
            }
        }
    }
    let mut lines: BTreeMap<u32, u32> = BTreeMap::new();
    for idle in [false, true] {
        for work in works.iter_mut() {
            let rules = rules(work);
            // A queue is active when any of its vectors is.
            let is_idle =
                |vectors: &[&Vector]| vectors.iter().all(|vector| work.interface.is_idle(vector));
            let mut placed = Vec::new();
            for (queue, vectors) in work
                .queues()
                .filter(|(_, vectors)| is_idle(vectors) == idle)
            {
                let fixed = cpu_that_stays(work, vectors.iter().copied());
                let line = vectors
                    .iter()
                    .find_map(|vector| lines.get(&vector.irq).copied());
                let hinted = hint(machine, work, vectors);
                let kept = fixed.or(line).and_then(|cpu| load.placement(cpu));
                let decided_by = match &kept {
                    Some(_) if fixed.is_some() => Some(DecidedBy::Vector),
                    Some(_) => Some(DecidedBy::Line),
                    None => hinted.as_ref().map(|_| DecidedBy::Hint),
                };
                let taken = kept.or_else(|| match hinted {
                    Some(hinted) => load.take(&hinted, rules),
                    None => load.take(wanted(work, &load, rules, vectors.first()?), rules),
                });
                let Some(placement) = taken else { continue };
                lines.extend(vectors.iter().map(|vector| (vector.irq, placement.cpu)));
                placed.push((
                    queue,
                    Placement {
                        decided_by,
                        ..placement
                    },
                ));
            }
            work.cpus.extend(placed);
        }
    }
    assign_rdma(machine, works, &mut load, &mut lines);
    for work in works.iter_mut() {
        work.irq_cpus = work.cpus_of_queues(machine);
        let kept_free = kept_free(&machine.topology, &work.choice);
        for vector in work
            .interface
            .vectors
            .iter()
            .filter(|vector| vector.role == Role::Control)
        {
            let sits_on = vector.effective.as_ref().unwrap_or(&vector.affinity.cpus);
            if !sits_on.is_empty() && sits_on.is_subset(&kept_free) {
                let idlest = |&cpu: &u32| (load.on_cpu(cpu), cpu);
                let cpu = work
                    .candidates
                    .cpus
                    .difference(&kept_free)
                    .iter()
                    .min_by_key(idlest);
                work.others.extend(cpu.map(|cpu| (vector.irq, cpu)));
            }
        }
    }
}

fn rules(work: &Work<'_>) -> PlacementRules {
    PlacementRules {
        siblings: work.choice.get(&SIBLINGS),
        avoid_cpu0: work.choice.get(&AVOID_CPU0),
    }
}

/// The candidate CPUs of a vector: where the policy widens, the nearest that have room.
fn wanted<'a>(
    work: &'a Work<'_>,
    load: &Load<'_>,
    rules: PlacementRules,
    vector: &Vector,
) -> &'a CpuSet {
    let tiers = Some(&work.candidates.tiers).filter(|_| work.by_node.is_empty());
    let tier = tiers.and_then(|tiers| load.first_with_room(tiers, rules));
    tier.unwrap_or_else(|| work.candidates_of(vector))
}

/// Assigns a CPU to every RDMA vector, around those that stay where they are.
fn assign_rdma(
    machine: &Machine,
    works: &mut [Work<'_>],
    load: &mut Load<'_>,
    lines: &mut BTreeMap<u32, u32>,
) {
    for stay in [true, false] {
        for work in works.iter_mut() {
            let (rules, keep) = (
                rules(work),
                work.skip || work.choice.get(&RDMA) == Rdma::Keep,
            );
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
                        load.add(cpu);
                    }
                    continue;
                }
                let cpu = lines.get(&vector.irq).copied().or_else(|| {
                    let hinted = hint(machine, work, &[vector]);
                    let wanted = hinted
                        .as_ref()
                        .unwrap_or_else(|| wanted(work, load, rules, vector));
                    load.take(wanted, rules).map(|placement| placement.cpu)
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
    mut vectors: impl Iterator<Item = &'a Vector>,
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
    let kept_free = kept_free(&machine.topology, &work.choice).union(&work.choice.get(&EXCLUDE));
    Some(
        hint.intersection(&machine.topology.online)
            .difference(&kept_free),
    )
    .filter(|cpus| !cpus.is_empty())
}
