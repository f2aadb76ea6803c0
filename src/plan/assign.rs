//! Selects the interfaces that take part, and assigns CPUs to their queues, RDMA vectors and misplaced control vectors.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;
use itertools::Itertools as _;

use crate::cpuset::CpuSet;
use crate::machine::topology::VECTORS_OF_CPU;
use crate::machine::{Interface, Machine, Role, Selection, Vector};
use crate::plan::data::{DecidedBy, Placement};
use crate::plan::objective::{Measure, Score, weights};
use crate::plan::place::Locations;
use crate::plan::ports::PlacedPort;
use crate::plan::spread::{Queue, Spread};
use crate::policy::{KEEP_RDMA, Policy, SIBLINGS};

/// The order in which CPUs are chosen. Idle queues are not counted; RDMA vectors are spread around all queues, and
/// around RDMA vectors that stay.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Active,
    WithoutNetdev,
    Idle,
    RdmaThatStays,
    Rdma,
}

/// Vectors that get one CPU together: those of a queue, or a single RDMA vector.
struct Unit<'a> {
    turn: Turn,
    port: usize,
    vectors: Vec<&'a Vector>,
    weight: u64,
    /// The number of IRQs; 0 if CPUs can take all.
    irqs: usize,
    source: CpuSource,
}

#[derive(Clone, Copy)]
enum CpuSource {
    /// One of the vectors stays on this CPU (`Vector`), it is as good as any (`Gain`), or the candidates have no room
    /// for all IRQs.
    On(u32, Option<DecidedBy>),
    /// The unit with this index has the same IRQ.
    OfUnit(usize),
    /// One CPU of the set with this index.
    Among(usize, Option<DecidedBy>),
}

impl Unit<'_> {
    fn is_first(&self) -> bool {
        self.vectors[0].queue == Some(0)
    }

    /// Only queues in use have a weight.
    fn count(&self, spread: &mut Spread<'_>, cpu: u32) {
        if self.turn == Turn::Active {
            spread.add(cpu, self.port, self.weight, self.is_first());
        } else {
            spread.add(cpu, self.port, 0, false);
        }
    }

    fn common_cpu(&self, cpu: impl Fn(&Vector) -> Option<u32>) -> Option<u32> {
        self.vectors
            .iter()
            .map(|vector| cpu(vector))
            .all_equal_value()
            .ok()
            .flatten()
    }
}

fn units<'a>(port: &PlacedPort<'a>) -> impl Iterator<Item = (Turn, Vec<&'a Vector>)> {
    let queues = port.queues.values().map(|vectors| {
        let is_idle = vectors.iter().all(|vector| port.interface.is_idle(vector));
        let turn = match (is_idle, port.interface.without_netdev) {
            (true, _) => Turn::Idle,
            (_, true) => Turn::WithoutNetdev,
            _ => Turn::Active,
        };
        (turn, vectors.clone())
    });
    let keeps_rdma = port.choice.get(&KEEP_RDMA);
    let rdma = port.interface.with_role(Role::Rdma).map(move |vector| {
        let stays = keeps_rdma || port.stays(vector);
        let turn = if stays {
            Turn::RdmaThatStays
        } else {
            Turn::Rdma
        };
        (turn, vec![vector])
    });
    queues.chain(rdma)
}

/// The interfaces planned by default and those selected, with their CPUs. `keep`: limits for queues that may keep their
/// CPU.
pub(crate) fn placed_ports<'a>(
    machine: &'a Machine,
    locations: &'a Locations<'a>,
    policy: &Policy,
    selection: &Selection,
    keep: Option<&Score>,
) -> Vec<PlacedPort<'a>> {
    let takes_part = |interface: &Interface| {
        let mut vectors = interface.vectors.iter();
        selection.names.contains(&interface.name)
            || vectors.any(|vector| vector.role != Role::Control)
    };
    let weighed = machine.interfaces.iter().zip(weights(machine)).enumerate();
    let mut ports = weighed
        .filter(|(_, (interface, _))| takes_part(interface))
        .map(|(order, (_, weight))| {
            PlacedPort::new(machine, locations, policy, selection, order, weight.planned)
        })
        .collect_vec();
    ports.sort_unstable_by_key(|port| {
        let candidates = port.candidates.cpus.len();
        (Reverse(port.weight), candidates, port.rank())
    });
    let mut owners: BTreeMap<u32, &'a str> = BTreeMap::new();
    let movable = ports.iter_mut().filter(|port| !port.skip);
    for port in movable.sorted_by_key(|port| {
        let shares = port.interface.shares_vectors_of.is_some();
        (!port.selected, shares)
    }) {
        let name = port.interface.name.as_str();
        for vector in &port.interface.vectors {
            let owner = owners.entry(vector.irq).or_insert(name);
            if *owner != name {
                port.shared.insert(vector.irq, owner);
            }
        }
    }
    assign(machine, locations, &mut ports, keep);
    ports.sort_unstable_by_key(|port| port.order);
    ports
}

fn assign(
    machine: &Machine,
    locations: &Locations<'_>,
    ports: &mut [PlacedPort<'_>],
    keep: Option<&Score>,
) {
    let apart = ports.iter().filter(|port| port.choice.get(&SIBLINGS));
    let apart = CpuSet::union_of(apart.map(|port| &port.candidates.cpus));
    let not_understood = machine.not_understood_cpus();
    let mut spread = Spread::new(locations, ports.len(), apart, &not_understood);
    let mut units = all_units(&mut spread, ports);
    let mut on_core = vec![0_usize; locations.cores];
    let mut on_l3 = vec![0_usize; locations.domain_sizes.len()];
    // Vectors that stay are counted first, so that others are placed around them.
    for unit in units.iter().filter(|unit| unit.turn == Turn::Active) {
        let port = &ports[unit.port];
        let active = unit
            .vectors
            .iter()
            .filter(|vector| !port.interface.is_idle(vector));
        let Some(cpu) = cpu_that_stays(port, active) else {
            continue;
        };
        unit.count(&mut spread, cpu);
        if let Some(place) = locations.of(cpu) {
            on_core[place.core] += 1;
            on_l3[place.domain] += 1;
        }
    }
    // Busy-polling threads that stay count as one queue each.
    for (at, port) in ports.iter().enumerate() {
        for cpu in port.polling_cpus() {
            spread.add(cpu, at, port.weight, false);
        }
    }
    limit_irqs(machine, &mut spread, ports, &mut units);
    if let Some(keep) = keep {
        stay_put(&mut spread, ports, &mut units, keep);
    }
    let movable = movable(&mut spread, &units);
    let mut cpus = vec![None; units.len()];
    for (id, cpu) in spread.place(movable) {
        cpus[id] = Some(cpu);
    }
    for (id, unit) in units.iter().enumerate() {
        let (first, is_active) = (unit.vectors[0], unit.turn == Turn::Active);
        let port = &mut ports[unit.port];
        if unit.turn == Turn::RdmaThatStays {
            if let Some(cpu) = port.effective_cpu(first) {
                unit.count(&mut spread, cpu);
            }
            continue;
        }
        let (cpu, decided_by) = match unit.source {
            CpuSource::On(cpu, by) => {
                if by.is_none() && !is_active {
                    unit.count(&mut spread, cpu);
                }
                (Some(cpu), by)
            }
            CpuSource::OfUnit(other) => (cpus[other], Some(DecidedBy::Line)),
            CpuSource::Among(_, by) if is_active => (cpus[id], by),
            CpuSource::Among(set, by) => (spread.take(set, unit.irqs), by),
        };
        let Some(cpu) = cpu else { continue };
        cpus[id] = Some(cpu);
        if unit.turn == Turn::Rdma {
            port.others.insert(first.irq, cpu);
        } else if let (Some(queue), Some(place)) = (first.queue_id(), locations.of(cpu)) {
            // A unit that stays was counted first.
            let stays = decided_by == Some(DecidedBy::Vector);
            let own = usize::from(is_active && stays);
            let core = locations.core_of(cpu).cloned();
            let placement = Placement {
                cpu,
                core: core.unwrap_or_else(|| CpuSet::single(cpu)),
                queues_on_core: on_core[place.core].saturating_sub(own),
                l3: locations.l3_of(cpu).cloned().unwrap_or_default(),
                queues_on_l3: on_l3[place.domain].saturating_sub(own),
                decided_by,
            };
            port.cpus.insert(queue, placement);
            if !stays && decided_by != Some(DecidedBy::Line) {
                on_core[place.core] += 1;
                on_l3[place.domain] += 1;
            }
        }
    }
    for port in ports {
        let active = port.interface.active_vectors();
        port.irq_cpus = CpuSet::union_of(active.map(|vector| port.cpus_of(vector)));
        move_control(port, &mut spread, keep.is_some());
    }
}

/// Returns the queues to arrange; counts those that keep their CPU.
fn movable(spread: &mut Spread<'_>, units: &[Unit<'_>]) -> Vec<Queue> {
    let mut movable = Vec::new();
    let active = units.iter().enumerate();
    for (id, unit) in active.filter(|(_, unit)| unit.turn == Turn::Active) {
        match unit.source {
            CpuSource::On(cpu, None) => unit.count(spread, cpu),
            CpuSource::Among(set, _) => movable.push(Queue {
                id,
                port: unit.port,
                is_first: unit.is_first(),
                set,
                weight: unit.weight,
                irqs: unit.irqs,
                core: None,
            }),
            CpuSource::On(..) | CpuSource::OfUnit(_) => {}
        }
    }
    movable
}

fn all_units<'a>(spread: &mut Spread<'_>, ports: &[PlacedPort<'a>]) -> Vec<Unit<'a>> {
    let all = ports
        .iter()
        .enumerate()
        .flat_map(|(at, port)| units(port).map(move |(turn, vectors)| (turn, at, vectors)));
    // The last unit of each IRQ, and the set of each port's candidates once it is known.
    let mut lines = HashMap::default();
    let mut own_sets = vec![None; ports.len()];
    all.sorted_by_key(|unit| unit.0)
        .enumerate()
        .map(|(id, (turn, at, vectors))| {
            let port = &ports[at];
            let line = vectors
                .iter()
                .find_map(|vector| lines.get(&vector.irq).copied());
            lines.extend(vectors.iter().map(|vector| (vector.irq, id)));
            let source = cpu_source(spread, port, &vectors, line, &mut own_sets[at]);
            let held = port.machine.vectors_held.as_ref();
            let irqs = held.map_or(0, |_| vectors.len());
            Unit {
                turn,
                port: at,
                vectors,
                weight: port.weight,
                irqs,
                source,
            }
        })
        .collect()
}

/// `line`: an earlier unit with one of the IRQs. `own_set`: the set of the port's candidates, once it is known.
fn cpu_source(
    spread: &mut Spread<'_>,
    port: &PlacedPort<'_>,
    vectors: &[&Vector],
    line: Option<usize>,
    own_set: &mut Option<usize>,
) -> CpuSource {
    let hint = port.hinted_cpus(vectors);
    let candidates = hint
        .as_ref()
        .unwrap_or_else(|| port.candidates_of(vectors[0]));
    // A movable vector does not follow another out of its candidates.
    let may_follow = |cpu: &u32| {
        let is_movable = vectors.iter().any(|vector| !port.stays(vector));
        !is_movable || candidates.contains(*cpu)
    };
    if let Some(cpu) = cpu_that_stays(port, vectors).filter(may_follow) {
        CpuSource::On(cpu, Some(DecidedBy::Vector))
    } else if let Some(unit) = line {
        CpuSource::OfUnit(unit)
    } else if hint.is_some() {
        let set = spread.set(candidates, &[], &port.choice);
        CpuSource::Among(set, Some(DecidedBy::Hint))
    } else if !port.by_node.is_empty() {
        CpuSource::Among(spread.set(candidates, &[], &port.choice), None)
    } else {
        let tiers = &port.candidates.tiers;
        let set = own_set.get_or_insert_with(|| spread.set(candidates, tiers, &port.choice));
        CpuSource::Among(*set, None)
    }
}

/// If the candidates cannot take all IRQs, those on them stay: others would not find a vector before these have left.
fn limit_irqs(
    machine: &Machine,
    spread: &mut Spread<'_>,
    ports: &[PlacedPort<'_>],
    units: &mut [Unit<'_>],
) {
    let Some(held) = &machine.vectors_held else {
        return;
    };
    let online = &machine.topology.online;
    for cpu in online.iter() {
        let held = held.get(&cpu).copied().unwrap_or(0);
        spread.room[cpu as usize] = VECTORS_OF_CPU.saturating_sub(held);
    }
    let stays = |unit: &&Unit<'_>| matches!(unit.source, CpuSource::On(..));
    let moved: BTreeSet<u32> = units
        .iter()
        .filter(|unit| !stays(unit))
        .flat_map(|unit| &unit.vectors)
        .map(|vector| vector.irq)
        .collect();
    for vector in machine.vectors().unique_by(|vector| vector.irq) {
        let cpu = vector.known_cpus(online).and_then(|cpus| cpus.first());
        if let Some(cpu) = cpu.filter(|cpu| online.contains(*cpu) && !moved.contains(&vector.irq)) {
            spread.reserve(cpu, 1);
        }
    }
    let confined = units.iter().filter_map(|unit| match unit.source {
        CpuSource::Among(set, _) => Some((set, unit.vectors.len())),
        _ => None,
    });
    let full = spread.full(confined);
    for unit in units {
        let CpuSource::Among(set, _) = unit.source else {
            continue;
        };
        let on = unit
            .common_cpu(|vector| ports[unit.port].effective_cpu(vector))
            .filter(|cpu| full.contains(&set) && spread.has(set, *cpu));
        if let Some(cpu) = on.filter(|cpu| spread.reserve(*cpu, unit.vectors.len())) {
            unit.source = CpuSource::On(cpu, None);
        }
    }
}

fn stay_put(
    spread: &mut Spread<'_>,
    ports: &[PlacedPort<'_>],
    units: &mut [Unit<'_>],
    keep: &Score,
) {
    let mut rdma_on = BTreeMap::<Option<usize>, u64>::new();
    for unit in units {
        let CpuSource::Among(set, _) = unit.source else {
            continue;
        };
        let port = &ports[unit.port];
        let present_cpu = |vector: &Vector| {
            let affinity = &vector.affinity.cpus;
            let is_there = (unit.turn != Turn::Rdma || affinity.len() == 1)
                && affinity.iter().all(|cpu| spread.has(set, cpu));
            let on = port.effective_cpu(vector);
            on.filter(|on| is_there && affinity.contains(*on))
        };
        let Some(cpu) = unit.common_cpu(present_cpu) else {
            continue;
        };
        let core = port.locations.of(cpu).map(|place| place.core);
        let stays = match unit.turn {
            Turn::Idle | Turn::RdmaThatStays => true,
            Turn::Rdma => rdma_on
                .get(&core)
                .is_none_or(|on| *on < keep.of(Measure::BusiestRdma)),
            Turn::Active | Turn::WithoutNetdev => {
                spread.takes_one_more(cpu, unit.weight, unit.is_first(), keep)
            }
        };
        if stays && spread.reserve(cpu, unit.vectors.len()) {
            unit.source = CpuSource::On(cpu, Some(DecidedBy::Gain));
            match unit.turn {
                Turn::Idle | Turn::RdmaThatStays => {}
                Turn::Rdma => *rdma_on.entry(core).or_default() += 1,
                Turn::WithoutNetdev | Turn::Active => unit.count(spread, cpu),
            }
        }
    }
}

/// Moves control vectors off CPUs that should get no interrupts.
fn move_control(port: &mut PlacedPort<'_>, spread: &mut Spread<'_>, only_gain: bool) {
    let (candidates, allowed) = (&port.candidates.cpus, &port.candidates.allowed);
    let mut without = allowed.apart.clone();
    // No measure counts vectors on CPUs that the administrator keeps free.
    if !only_gain {
        without.add(&allowed.kept_off.difference(candidates));
    }
    let usable = candidates.difference(&allowed.apart);
    for vector in &port.interface.vectors {
        let on = vector.effective_cpus(&port.machine.topology.online);
        if vector.role == Role::Control && !on.is_empty() && on.is_subset(&without) {
            let usable = usable.iter().filter(|&cpu| spread.room[cpu as usize] > 0);
            if let Some(cpu) = usable.min_by_key(|&cpu| spread.on_cpu[cpu as usize]) {
                spread.reserve(cpu, 1);
                port.others.insert(vector.irq, cpu);
            }
        }
    }
}

fn cpu_that_stays<'a>(
    port: &PlacedPort<'_>,
    vectors: impl IntoIterator<Item = &'a &'a Vector>,
) -> Option<u32> {
    vectors
        .into_iter()
        .filter(|vector| port.stays(vector) || port.is_kept(vector))
        .find_map(|vector| port.effective_cpu(vector))
}
