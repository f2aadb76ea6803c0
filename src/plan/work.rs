//! An interface while it is planned, which interfaces take part, and a CPU for every queue, for RDMA vectors, and for
//! control vectors that have to be moved.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use itertools::Itertools as _;

use crate::cpuset::CpuSet;
use crate::machine::netdev::Direction;
use crate::machine::{Interface, Machine, QueueId, Role, Selection, Vector};
use crate::plan::candidates::{
    Candidates, candidates, core_count, isolated_or_exclusive, unmet_rps, unreserved,
};
use crate::plan::data::{DecidedBy, Placement};
use crate::plan::note::Note;
use crate::plan::place::Locations;
use crate::plan::spread::{Queue, Spread};
use crate::policy::{
    Choice, GROUP, Group, KEEP_NAPI_THREADS, KEEP_RDMA, Policy, SCOPE, SIBLINGS, SKIP, Scope,
};

/// An interface while it is planned.
pub(crate) struct Work<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) locations: &'a Locations<'a>,
    pub(crate) interface: &'a Interface,
    /// The vectors of each of its queues that has any.
    queues: BTreeMap<QueueId, Vec<&'a Vector>>,
    /// Index in the machine's list.
    pub(crate) order: usize,
    /// What each of its queues weighs.
    weight: u64,
    pub(crate) choice: Choice,
    /// Whether it stays as it is: by the policy, or because the policy cannot be met.
    pub(crate) skip: bool,
    pub(crate) group: Option<Group>,
    pub(crate) candidates: Candidates,
    /// Candidate CPUs by the node of the vectors' device, if vectors belong to devices on several nodes (a network card
    /// with a PCI function on each socket); else empty. `None` is the interface's own device. `candidates` then holds all
    /// of them.
    by_node: BTreeMap<Option<u32>, CpuSet>,
    /// The CPU of each queue; idle queues included.
    cpus: BTreeMap<QueueId, Placement>,
    /// The target CPU of RDMA vectors, and of control vectors that have to leave an isolated CPU, by IRQ.
    others: BTreeMap<u32, u32>,
    /// The CPUs that take its active queues.
    pub(crate) irq_cpus: CpuSet,
    /// IRQs that are shared with and planned for another interface, and its name.
    pub(crate) shared: BTreeMap<u32, &'a str>,
}

impl<'a> Work<'a> {
    fn new(
        machine: &'a Machine,
        locations: &'a Locations<'a>,
        policy: &Policy,
        (order, weight): (usize, u64),
    ) -> Self {
        let interface = &machine.interfaces[order];
        let choice = policy.choice(machine, interface);
        let mut queues: BTreeMap<_, Vec<&Vector>> = BTreeMap::new();
        for vector in &interface.vectors {
            if let Some(queue) = vector.queue_id() {
                queues.entry(queue).or_default().push(vector);
            }
        }
        let mut own = candidates(machine, interface, &choice);
        let mut by_node = BTreeMap::new();
        for node in interface.vectors.iter().filter_map(|vector| vector.node) {
            by_node.entry(Some(node)).or_insert_with(|| {
                let mut there = interface.clone();
                (there.device.node, there.device.local_cpus) = (Some(node), None);
                candidates(machine, &there, &choice).cpus
            });
        }
        if !by_node.is_empty() {
            by_node.insert(None, own.cpus);
            own.cpus = CpuSet::union_of(by_node.values());
        }
        own.notes.extend(unmet_rps(machine, interface, &choice));
        let skip = choice.get(&SKIP);
        own.notes.retain(|note| !skip || !note.is_unmet());
        Work {
            machine,
            locations,
            interface,
            queues,
            order,
            weight,
            skip: skip || own.notes.iter().any(Note::is_unmet),
            group: choice.get(&GROUP),
            choice,
            candidates: own,
            by_node,
            cpus: BTreeMap::new(),
            others: BTreeMap::new(),
            irq_cpus: CpuSet::new(),
            shared: BTreeMap::new(),
        }
    }

    /// Its rank among others, by properties of the hardware only, so that it is the same at every boot.
    pub(crate) fn rank(&self) -> (&'a str, u32, usize) {
        let interface = self.interface;
        (&interface.device.address, interface.port, self.order)
    }

    fn rdma_vectors(&self) -> impl Iterator<Item = &'a Vector> {
        let vectors = self.interface.vectors.iter();
        vectors.filter(|vector| vector.role == Role::Rdma)
    }

    /// Its vectors that receive, or send.
    fn vectors_of(&self, role: Role) -> impl Iterator<Item = &'a Vector> {
        let vectors = self.interface.vectors.iter();
        vectors.filter(move |vector| vector.role == role || vector.role == Role::Combined)
    }

    /// The vector of a receive or transmit queue.
    pub(crate) fn vector_of(&self, role: Role, queue: u32) -> Option<&'a Vector> {
        let vectors = self.queues.get(&QueueId::Number(queue))?;
        let mut vectors = vectors.iter().copied();
        vectors.find(|vector| vector.role == role || vector.role == Role::Combined)
    }

    /// Whether it has a placed queue vector, without which steering is left unchanged.
    pub(crate) fn has_placed_queues(&self) -> bool {
        !self.skip && self.interface.queue_vectors().next().is_some()
    }

    /// Whether its threads stay where they are: by the policy and, as RPS, without a placed queue.
    pub(crate) fn keeps_threads(&self) -> bool {
        self.choice.get(&KEEP_NAPI_THREADS) || !self.has_placed_queues()
    }

    /// The CPUs of those of its threads that poll all the time and stay there.
    pub(crate) fn polling_cpus(&self) -> impl Iterator<Item = u32> {
        let threads = self.interface.threads.iter();
        let polling = threads.filter(|thread| thread.busy_polls && self.keeps_threads());
        polling.filter_map(|thread| thread.affinity.cpus.only())
    }

    /// The planned affinity of a vector; `None`: left unchanged.
    pub(crate) fn target(&self, vector: &Vector) -> Option<CpuSet> {
        if !vector.movable || self.skip || self.shared.contains_key(&vector.irq) {
            return None;
        }
        let cpu = self.chosen(vector)?;
        let l3 = || self.locations.l3_of(cpu);
        let group = match &self.group {
            // The candidates are this group without offline and excluded CPUs.
            Some(Group::Cpus(_)) => Some(self.candidates.cpus.clone()),
            Some(Group::L3) => l3().map(|l3| l3.intersection(self.candidates_of(vector))),
            None => None,
        };
        // The L3 domain of a CPU that is no candidate may have none.
        let group = group.filter(|group| vector.role != Role::Control && !group.is_empty());
        Some(group.unwrap_or_else(|| CpuSet::single(cpu)))
    }

    /// The CPU that is chosen for a vector; that of an IRQ that is shared is the same for all that share it.
    fn chosen(&self, vector: &Vector) -> Option<u32> {
        let placement = self.placement(vector).map(|placement| placement.cpu);
        placement.or_else(|| self.others.get(&vector.irq).copied())
    }

    /// The placement of a queue vector's queue.
    pub(crate) fn placement(&self, vector: &Vector) -> Option<&Placement> {
        self.cpus.get(&vector.queue_id()?)
    }

    /// The CPU of each of its queues in use under the plan, as far as it is known.
    pub(crate) fn queue_cpus(&self) -> impl Iterator<Item = u32> {
        let active = self.interface.active_vectors();
        let placed =
            active.filter_map(|vector| Some((vector.queue_id(), self.cpus_of(vector).first()?)));
        placed.sorted_unstable().dedup().map(|(_, cpu)| cpu)
    }

    /// The number of candidate cores; of CPUs, where siblings count as cores.
    pub(crate) fn core_count(&self) -> usize {
        core_count(&self.machine.topology, &self.choice, &self.candidates.cpus)
    }

    /// The CPUs that take its RDMA vectors under the plan; `None` without such vectors.
    pub(crate) fn rdma_cpus(&self) -> Option<CpuSet> {
        let cpus = self.rdma_vectors().map(|vector| self.cpus_of(vector));
        cpus.reduce(|all, cpus| all.union(&cpus))
    }

    /// The CPUs that take a vector under the plan.
    pub(crate) fn cpus_of(&self, vector: &Vector) -> CpuSet {
        let is_elsewhere = vector.movable && self.shared.contains_key(&vector.irq);
        let shared = || self.chosen(vector).filter(|_| is_elsewhere);
        self.target(vector).unwrap_or_else(|| {
            let cpu = shared().or_else(|| self.effective_cpu(vector));
            cpu.into_iter().collect()
        })
    }

    /// The effective CPU of a vector, if it is known.
    fn effective_cpu(&self, vector: &Vector) -> Option<u32> {
        vector.known_cpus(&self.machine.topology.online)?.first()
    }

    /// The candidate CPUs of a vector.
    pub(crate) fn candidates_of(&self, vector: &Vector) -> &CpuSet {
        self.by_node
            .get(&vector.node)
            .unwrap_or(&self.candidates.cpus)
    }

    /// The candidate CPUs of a vector where they are not the interface's: those that the driver hints at, and those of a
    /// device on another node.
    pub(crate) fn own_candidates(&self, vector: &Vector) -> Option<CpuSet> {
        let queue = vector.queue_id();
        let vectors = queue.and_then(|queue| self.queues.get(&queue));
        self.hint(vectors.map_or(&[vector], Vec::as_slice))
            .or_else(|| self.by_node.get(&vector.node).cloned())
    }

    /// The planned CPU of a receive or transmit queue: that of its vector, or of the vector that it shares when there
    /// are more queues than vectors.
    pub(crate) fn cpu_of(&self, role: Role, queue: u32) -> Option<u32> {
        let direction = if role == Role::Tx {
            Direction::Tx
        } else {
            Direction::Rx
        };
        let is_active = |vector: &&Vector| !self.interface.is_idle(vector);
        let vector = self
            .vector_of(role, queue)
            .filter(is_active)
            .or_else(|| self.interface.reported_vector(direction, queue))
            .or_else(|| {
                let vectors = self.vectors_of(role).filter(is_active).collect_vec();
                sharing(&vectors, queue, |vector| vector.queue).copied()
            })?;
        let placed = self.placement(vector)?.cpu;
        // One that stays may be on another CPU than its queue's other vector.
        let stays = self.effective_cpu(vector).filter(|_| !vector.movable);
        Some(stays.unwrap_or(placed))
    }

    /// The usable CPUs in the driver's affinity hint for one of these vectors, if the policy's scope is `hint`.
    fn hint(&self, vectors: &[&Vector]) -> Option<CpuSet> {
        if self.choice.get(&SCOPE) != Scope::Hint {
            return None;
        }
        let cpus = vectors
            .iter()
            .find_map(|vector| self.machine.hints.get(&vector.irq))?
            .intersection(&unreserved(&self.machine.topology, &self.choice));
        Some(cpus).filter(|cpus| !cpus.is_empty())
    }

    /// What has vectors that get one CPU together, and when: queues, and single RDMA vectors.
    fn units(&self) -> impl Iterator<Item = (Turn, Vec<&'a Vector>)> {
        let queues = self.queues.values().map(|vectors| {
            let is_idle = vectors.iter().all(|vector| self.interface.is_idle(vector));
            let turn = if is_idle { Turn::Idle } else { Turn::Active };
            (turn, vectors.clone())
        });
        let keeps_rdma = self.skip || self.choice.get(&KEEP_RDMA);
        let rdma = self.rdma_vectors().map(move |vector| {
            let stays = keeps_rdma || !vector.movable;
            let turn = if stays {
                Turn::RdmaThatStays
            } else {
                Turn::Rdma
            };
            (turn, vec![vector])
        });
        queues.chain(rdma)
    }
}

/// The order in which CPUs are chosen. Idle queues are not counted; RDMA vectors are spread around all queues, and around
/// those of them that stay.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Active,
    Idle,
    RdmaThatStays,
    Rdma,
}

/// The interfaces that take part, with their CPUs: those that are planned by default, and those that are selected.
/// `weights`: of all interfaces of the machine.
pub(crate) fn works<'a>(
    machine: &'a Machine,
    locations: &'a Locations<'a>,
    weights: &[u64],
    policy: &Policy,
    selection: &Selection,
) -> Vec<Work<'a>> {
    let takes_part = |interface: &Interface| {
        let mut roles = interface.vectors.iter().map(|vector| vector.role);
        selection.names.contains(&interface.name) || roles.any(|role| role != Role::Control)
    };
    let weighed = weights.iter().copied().enumerate();
    let mut works = weighed
        .filter(|(order, _)| takes_part(&machine.interfaces[*order]))
        .map(|weighed| Work::new(machine, locations, policy, weighed))
        .collect_vec();
    works.sort_by_key(|work| {
        let candidates = work.candidates.cpus.len();
        (Reverse(work.weight), candidates, work.rank())
    });
    let mut owners: BTreeMap<u32, &'a str> = BTreeMap::new();
    let is_selected = |work: &Work<'_>| selection.names.contains(&work.interface.name);
    let movable = works.iter_mut().filter(|work| !work.skip);
    for work in movable.sorted_by_key(|work| !is_selected(work)) {
        let name = work.interface.name.as_str();
        for vector in &work.interface.vectors {
            let owner = owners.entry(vector.irq).or_insert(name);
            if *owner != name {
                work.shared.insert(vector.irq, owner);
            }
        }
    }
    assign(locations, &mut works);
    works.sort_by_key(|work| work.order);
    works
}

/// How the CPU of a unit is found.
#[derive(Clone, Copy)]
enum How {
    /// One of its vectors is on this CPU, and stays there.
    Stays(u32),
    /// The unit of this number has the same IRQ.
    Line(usize),
    /// On one of a set of CPUs.
    Among(usize, Option<DecidedBy>),
}

fn assign(locations: &Locations<'_>, works: &mut [Work<'_>]) {
    let apart = works.iter().filter(|work| work.choice.get(&SIBLINGS));
    let apart = CpuSet::union_of(apart.map(|work| &work.candidates.cpus));
    let mut spread = Spread::new(locations, apart);
    // The queues on each core and L3 domain that come before one.
    let mut on_core = vec![0_usize; locations.cores];
    let mut on_l3 = vec![0_usize; locations.domain_sizes.len()];
    let units = works
        .iter()
        .enumerate()
        .flat_map(|(at, work)| work.units().map(move |(turn, vectors)| (turn, at, vectors)))
        .sorted_by_key(|unit| unit.0)
        .collect_vec();
    // Vectors that cannot or must not be moved are counted first, so that others are placed around them.
    for (turn, at, vectors) in &units {
        let work = &works[*at];
        let active = vectors.iter().filter(|v| !work.interface.is_idle(v));
        if let (Turn::Active, Some(cpu)) = (turn, cpu_that_stays(work, active)) {
            spread.add(cpu, work.weight, vectors[0].queue == Some(0));
            if let Some(place) = locations.of(cpu) {
                on_core[place.core] += 1;
                on_l3[place.domain] += 1;
            }
        }
    }
    // So are threads that poll all the time, and stay: each counts as a queue.
    for work in &*works {
        for cpu in work.polling_cpus() {
            spread.add(cpu, work.weight, false);
        }
    }
    let (mut lines, mut hows, mut movable) = (BTreeMap::new(), Vec::new(), Vec::new());
    let queues = units.iter().filter(|unit| unit.0 <= Turn::Idle);
    for (id, (turn, at, vectors)) in queues.enumerate() {
        let work = &works[*at];
        let found = how(&mut spread, &mut lines, id, work, vectors);
        if let (Turn::Active, How::Among(set, _)) = (turn, found) {
            movable.push(Queue {
                id,
                work: *at,
                is_first: vectors[0].queue == Some(0),
                set,
                weight: work.weight,
                core: None,
            });
        }
        hows.push(found);
    }
    let mut cpus = spread.place(movable);
    for (id, (turn, at, vectors)) in units.iter().enumerate() {
        let (work, first) = (&mut works[*at], vectors[0]);
        if *turn == Turn::RdmaThatStays {
            if let Some(cpu) = work.effective_cpu(first) {
                spread.add(cpu, 0, false);
            }
            continue;
        }
        let found = hows
            .get(id)
            .copied()
            .unwrap_or_else(|| how(&mut spread, &mut lines, id, work, vectors));
        let (cpu, decided_by) = match found {
            How::Stays(cpu) => (Some(cpu), Some(DecidedBy::Vector)),
            How::Line(unit) => (cpus.get(&unit).copied(), Some(DecidedBy::Line)),
            How::Among(set, by) => (cpus.get(&id).copied().or_else(|| spread.take(set)), by),
        };
        let Some(cpu) = cpu else { continue };
        cpus.insert(id, cpu);
        if *turn == Turn::Rdma {
            work.others.insert(first.irq, cpu);
        } else if let (Some(queue), Some(place)) = (first.queue_id(), locations.of(cpu)) {
            // One that stays was counted first.
            let own = usize::from(matches!((*turn, found), (Turn::Active, How::Stays(_))));
            let core = locations.core_of(cpu).cloned();
            let placement = Placement {
                cpu,
                core: core.unwrap_or_else(|| CpuSet::single(cpu)),
                queues_on_core: on_core[place.core].saturating_sub(own),
                l3: locations.l3_of(cpu).cloned().unwrap_or_default(),
                queues_on_l3: on_l3[place.domain].saturating_sub(own),
                decided_by,
            };
            work.cpus.insert(queue, placement);
            if matches!(found, How::Among(..)) {
                on_core[place.core] += 1;
                on_l3[place.domain] += 1;
            }
        }
    }
    for work in works {
        let active = work.interface.active_vectors();
        work.irq_cpus = CpuSet::union_of(active.map(|vector| work.cpus_of(vector)));
        move_control(work, &spread);
    }
}

/// How the CPU of a unit is found. `lines`: the unit that had each IRQ last.
fn how(
    spread: &mut Spread<'_>,
    lines: &mut BTreeMap<u32, usize>,
    id: usize,
    work: &Work<'_>,
    vectors: &[&Vector],
) -> How {
    let line = vectors.iter().find_map(|v| lines.get(&v.irq).copied());
    lines.extend(vectors.iter().map(|v| (v.irq, id)));
    let hint = work.hint(vectors);
    let candidates = hint.as_ref();
    let candidates = candidates.unwrap_or_else(|| work.candidates_of(vectors[0]));
    // One of them that can be moved does not follow another out of its candidates.
    let may_follow = |cpu: &u32| {
        let is_movable = !work.skip && vectors.iter().any(|vector| vector.movable);
        !is_movable || candidates.contains(*cpu)
    };
    if let Some(cpu) = cpu_that_stays(work, vectors).filter(may_follow) {
        How::Stays(cpu)
    } else if let Some(unit) = line {
        How::Line(unit)
    } else if hint.is_some() {
        let set = spread.set(candidates, &[], &work.choice);
        How::Among(set, Some(DecidedBy::Hint))
    } else {
        let tiers = Some(work.candidates.tiers.as_slice()).filter(|_| work.by_node.is_empty());
        let tiers = tiers.unwrap_or_default();
        How::Among(spread.set(candidates, tiers, &work.choice), None)
    }
}

/// Moves control vectors off CPUs that should get no interrupts.
fn move_control(work: &mut Work<'_>, spread: &Spread<'_>) {
    let isolated_or_exclusive = isolated_or_exclusive(&work.machine.topology, &work.choice);
    for vector in &work.interface.vectors {
        let on = vector.effective_cpus(&work.machine.topology.online);
        if vector.role == Role::Control && !on.is_empty() && on.is_subset(&isolated_or_exclusive) {
            let cpu = work
                .candidates
                .cpus
                .difference(&isolated_or_exclusive)
                .iter()
                .min_by_key(|&cpu| spread.on_cpu[cpu as usize]);
            work.others.extend(cpu.map(|cpu| (vector.irq, cpu)));
        }
    }
}

/// The vector of a queue that has none of its own; `vectors` are in the order of their queues, of which `number` is the
/// lowest. Where these leave gaps, as of ice, the queues of a vector follow each other; else they are dealt out in turn.
pub(crate) fn sharing<V>(
    vectors: &[V],
    queue: u32,
    number: impl Fn(&V) -> Option<u32>,
) -> Option<&V> {
    let last = number(vectors.last()?)?;
    vectors.get(if last as usize >= vectors.len() {
        let following = vectors.partition_point(|vector| number(vector) <= Some(queue));
        following.saturating_sub(1)
    } else {
        queue as usize % vectors.len()
    })
}

/// The CPU of the first of some vectors that cannot or must not be moved.
fn cpu_that_stays<'a>(
    work: &Work<'_>,
    vectors: impl IntoIterator<Item = &'a &'a Vector>,
) -> Option<u32> {
    vectors
        .into_iter()
        .filter(|vector| work.skip || !vector.movable)
        .find_map(|vector| work.effective_cpu(vector))
}
