//! An interface while it is planned, which interfaces take part, and a CPU for every queue, for RDMA vectors, and for
//! control vectors that have to be moved.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;
use itertools::Itertools as _;

use crate::cpuset::{CpuSet, QueueSet};
use crate::machine::interface::is_pci_address;
use crate::machine::netdev::Direction;
use crate::machine::topology::VECTORS_OF_CPU;
use crate::machine::{Interface, Machine, QueueId, Role, Selection, Vector};
use crate::plan::candidates::{
    Candidates, candidates, core_count, isolated_or_exclusive, unmet_channels, unmet_rps,
    unreserved,
};
use crate::plan::data::{DecidedBy, Placement};
use crate::plan::note::Note;
use crate::plan::objective::Weight;
use crate::plan::place::Locations;
use crate::plan::spread::{Keep, Queue, Spread};
use crate::policy::{
    Choice, GROUP, Group, KEEP_NAPI_THREADS, KEEP_RDMA, Policy, SCOPE, SIBLINGS, SKIP, Scope,
};

pub(crate) struct PlacedPort<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) locations: &'a Locations<'a>,
    pub(crate) interface: &'a Interface,
    /// The vectors of each queue that has any.
    queues: BTreeMap<QueueId, Vec<&'a Vector>>,
    /// Index in the machine's list.
    pub(crate) order: usize,
    /// The weight of each of the interface's queues.
    weight: u64,
    pub(crate) choice: Choice,
    /// Whether the interface is unchanged: by the policy, or because the policy cannot be met.
    pub(crate) skip: bool,
    /// The CPUs on which the vectors of an interface in another network namespace stay: somebody else owns it and
    /// nobody has selected it.
    kept: CpuSet,
    pub(crate) group: Option<Group>,
    pub(crate) candidates: Candidates,
    /// Candidate CPUs by the node of the vectors' device, if the interface's vectors belong to devices on several nodes
    /// (a network card with a PCI function on each socket); else empty. `None` is the interface's own device.
    /// `candidates` then holds the union.
    by_node: BTreeMap<Option<u32>, CpuSet>,
    /// The CPU of each queue, idle ones included.
    cpus: BTreeMap<QueueId, Placement>,
    /// The target CPU, by IRQ, of RDMA vectors and of control vectors that have to leave an isolated CPU.
    others: BTreeMap<u32, u32>,
    /// The CPUs that take the interface's active queues.
    pub(crate) irq_cpus: CpuSet,
    /// IRQs that are shared with and planned for another interface, with its name.
    pub(crate) shared: BTreeMap<u32, &'a str>,
}

impl<'a> PlacedPort<'a> {
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
        own.notes.extend(unmet_channels(interface, &choice));
        let skip = choice.get(&SKIP);
        own.notes.retain(|note| !skip || !note.is_unmet());
        PlacedPort {
            machine,
            locations,
            interface,
            queues,
            order,
            weight,
            skip: skip || own.notes.iter().any(Note::is_unmet),
            kept: CpuSet::new(),
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

    /// The rank among interfaces, by properties of the hardware only, so that it is the same at every boot.
    pub(crate) fn rank(&self) -> (&'a str, u32, usize) {
        let interface = self.interface;
        (&interface.device.address, interface.port, self.order)
    }

    fn rdma_vectors(&self) -> impl Iterator<Item = &'a Vector> {
        let vectors = self.interface.vectors.iter();
        vectors.filter(|vector| vector.role == Role::Rdma)
    }

    fn vectors_of(&self, role: Role) -> impl Iterator<Item = &'a Vector> {
        let vectors = self.interface.vectors.iter();
        vectors.filter(move |vector| vector.role == role || vector.role == Role::Combined)
    }

    pub(crate) fn vector_of(&self, role: Role, queue: u32) -> Option<&'a Vector> {
        let vectors = self.queues.get(&QueueId::Number(queue))?;
        let mut vectors = vectors.iter().copied();
        vectors.find(|vector| vector.role == role || vector.role == Role::Combined)
    }

    /// Why the interface is unchanged, if it is.
    pub(crate) fn why_skipped(&self) -> Option<&'static str> {
        let by_policy = self.choice.get(&SKIP);
        self.skip.then_some(if by_policy {
            "skipped by the policy"
        } else {
            "skipped: the policy cannot be met"
        })
    }

    /// Whether there is a placed queue vector, without which steering is unchanged.
    pub(crate) fn has_placed_queues(&self) -> bool {
        !self.skip && self.interface.queue_vectors().next().is_some()
    }

    /// Whether the threads keep their CPUs: by the policy or, like RPS, without a placed queue.
    pub(crate) fn keeps_threads(&self) -> bool {
        self.choice.get(&KEEP_NAPI_THREADS) || !self.has_placed_queues()
    }

    /// The CPUs of the busy-polling threads that keep their CPUs.
    pub(crate) fn polling_cpus(&self) -> impl Iterator<Item = u32> {
        let threads = self.interface.threads.iter();
        let polling = threads.filter(|thread| thread.busy_polls && self.keeps_threads());
        polling.filter_map(|thread| thread.affinity.cpus.only())
    }

    /// The planned affinity of a vector; `None`: unchanged.
    pub(crate) fn target(&self, vector: &Vector) -> Option<CpuSet> {
        if self.stays(vector) || self.is_kept(vector) || self.shared.contains_key(&vector.irq) {
            return None;
        }
        let placement = self.placement(vector);
        if placement.is_some_and(Placement::stays_put) {
            return Some(vector.affinity.cpus.clone());
        }
        let other = || self.others.get(&vector.irq).copied();
        let cpu = placement.map(|placement| placement.cpu).or_else(other)?;
        let l3 = || self.locations.l3_of(cpu);
        let group = match &self.group {
            // The candidates are this group without offline and excluded CPUs.
            Some(Group::Cpus(_)) => Some(self.candidates.cpus.clone()),
            Some(Group::L3) => l3().map(|l3| l3.intersection(self.candidates_of(vector))),
            None => None,
        };
        // A CPU that is no candidate may have no L3 domain.
        let group = group.filter(|group| vector.role != Role::Control && !group.is_empty());
        Some(group.unwrap_or_else(|| CpuSet::single(cpu)))
    }

    fn stays(&self, vector: &Vector) -> bool {
        self.skip || !vector.movable
    }

    /// Whether a vector is well placed and belongs to somebody else. Others are placed as if it were on its planned
    /// CPU, so that they do not follow its owner's changes.
    pub(crate) fn is_kept(&self, vector: &Vector) -> bool {
        if self.kept.is_empty() {
            return false;
        }
        let now = vector.known_cpus(&self.machine.topology.online);
        // The vector moves to its affinity at the next interrupt.
        let moves = now.filter(|now| now.is_subset(&vector.affinity.cpus));
        let to = moves.as_deref().unwrap_or(&vector.affinity.cpus);
        !to.is_empty() && to.is_subset(&self.kept)
    }

    fn chosen_cpu(&self, vector: &Vector) -> Option<u32> {
        let placement = self.placement(vector).map(|placement| placement.cpu);
        placement.or_else(|| self.others.get(&vector.irq).copied())
    }

    pub(crate) fn placement(&self, vector: &Vector) -> Option<&Placement> {
        self.cpus.get(&vector.queue_id()?)
    }

    /// The CPU of each queue in use under the plan, as far as known.
    pub(crate) fn queue_cpus(&self) -> impl Iterator<Item = u32> {
        let active = self.interface.active_vectors();
        let placed =
            active.filter_map(|vector| Some((vector.queue_id(), self.cpus_of(vector).first()?)));
        placed.sorted_unstable().dedup().map(|(_, cpu)| cpu)
    }

    /// Counts the candidate cores; if siblings count as cores, the CPUs.
    pub(crate) fn core_count(&self) -> usize {
        core_count(&self.machine.topology, &self.choice, &self.candidates.cpus)
    }

    /// The CPUs that take the RDMA vectors under the plan; `None` without such vectors.
    pub(crate) fn rdma_cpus(&self) -> Option<CpuSet> {
        let cpus = self.rdma_vectors().map(|vector| self.cpus_of(vector));
        cpus.reduce(|all, cpus| all.union(&cpus))
    }

    pub(crate) fn cpus_of(&self, vector: &Vector) -> CpuSet {
        let is_elsewhere = vector.movable && self.shared.contains_key(&vector.irq);
        let shared = || self.chosen_cpu(vector).filter(|_| is_elsewhere);
        self.target(vector).unwrap_or_else(|| {
            let cpu = shared().or_else(|| self.effective_cpu(vector));
            cpu.into_iter().collect()
        })
    }

    fn effective_cpu(&self, vector: &Vector) -> Option<u32> {
        vector.known_cpus(&self.machine.topology.online)?.first()
    }

    pub(crate) fn candidates_of(&self, vector: &Vector) -> &CpuSet {
        self.by_node
            .get(&vector.node)
            .unwrap_or(&self.candidates.cpus)
    }

    /// A vector's candidate CPUs if they are not the interface's: those of the driver's hint, or of a device on another
    /// node.
    pub(crate) fn own_candidates(&self, vector: &Vector) -> Option<CpuSet> {
        let queue = vector.queue_id();
        let vectors = queue.and_then(|queue| self.queues.get(&queue));
        self.hinted_cpus(vectors.map_or(&[vector], Vec::as_slice))
            .or_else(|| self.by_node.get(&vector.node).cloned())
    }

    /// The vector of a receive or transmit queue, or the shared one if there are more queues than vectors.
    pub(crate) fn serving(&self, role: Role, queue: u32) -> Option<&'a Vector> {
        let direction = if role == Role::Tx {
            Direction::Tx
        } else {
            Direction::Rx
        };
        let is_active = |vector: &&Vector| !self.interface.is_idle(vector);
        let own = self.vector_of(role, queue).filter(is_active);
        own.or_else(|| self.interface.reported_vector(direction, queue))
            .or_else(|| {
                // A vector that is not understood may serve the queue.
                if !self.interface.unknown_vectors.is_empty() {
                    return None;
                }
                let vectors = self.vectors_of(role).filter(is_active).collect_vec();
                sharing(&vectors, queue, |vector| vector.queue).copied()
            })
    }

    /// Receive queues of which no IRQ is known. One IRQ that is alone receives for all, and where names leave gaps, each
    /// tells the first queue of its IRQ, unless the device has IRQs that are not understood.
    pub(crate) fn unserved(&self) -> QueueSet {
        let interface = self.interface;
        let mut vectors = interface.vectors.iter();
        let has_data = vectors.any(|vector| vector.role == Role::Data);
        let has_unknown = has_data || !interface.unknown_vectors.is_empty();
        let receiving = self.vectors_of(Role::Rx);
        let receiving = receiving.filter(|vector| !interface.is_idle(vector));
        let receiving = receiving.collect_vec();
        let last = receiving.last().and_then(|vector| vector.queue);
        // Off PCI no list of IRQs exists: of several that receive, some names may be unknown.
        let may_share =
            !has_unknown && (receiving.len() <= 1 || is_pci_address(&interface.device.address));
        let has_gaps = may_share && last.is_some_and(|last| last as usize >= receiving.len());
        let is_alone = may_share && interface.queue_vectors().count() == 1;
        let is_served = |queue: u32| {
            is_alone
                || has_gaps
                || self.vector_of(Role::Rx, queue).is_some()
                || interface.reported_vector(Direction::Rx, queue).is_some()
        };
        let queues = interface.rx_queues.iter().map(|rx| rx.index);
        queues.filter(|&queue| !is_served(queue)).collect()
    }

    pub(crate) fn cpu_of(&self, role: Role, queue: u32) -> Option<u32> {
        let vector = self.serving(role, queue)?;
        let placed = self.placement(vector).filter(|_| vector.movable);
        // A vector that stays may be on another CPU than its queue's other vector.
        let cpu = placed.map(|placement| placement.cpu);
        cpu.or_else(|| self.effective_cpu(vector))
            .or_else(|| Some(self.placement(vector)?.cpu))
    }

    /// The usable CPUs in the driver's affinity hint for one of these vectors, if the policy's scope is `hint`.
    fn hinted_cpus(&self, vectors: &[&Vector]) -> Option<CpuSet> {
        if self.choice.get(&SCOPE) != Scope::Hint {
            return None;
        }
        let cpus = vectors
            .iter()
            .find_map(|vector| self.machine.hints.get(&vector.irq))?
            .intersection(&unreserved(&self.machine.topology, &self.choice));
        Some(cpus).filter(|cpus| !cpus.is_empty())
    }

    /// The units and their turn: vectors that get one CPU together, which are those of a queue, and single RDMA
    /// vectors.
    fn units(&self) -> impl Iterator<Item = (Turn, Vec<&'a Vector>)> {
        let queues = self.queues.values().map(|vectors| {
            let is_idle = vectors.iter().all(|vector| self.interface.is_idle(vector));
            let turn = match (is_idle, self.interface.without_netdev) {
                (true, _) => Turn::Idle,
                (_, true) => Turn::WithoutNetdev,
                _ => Turn::Active,
            };
            (turn, vectors.clone())
        });
        let keeps_rdma = self.skip || self.choice.get(&KEEP_RDMA);
        let rdma = self.rdma_vectors().map(move |vector| {
            let stays = keeps_rdma || self.stays(vector);
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

/// The order in which CPUs are chosen. Units without data of an interface come after its queues. Idle queues are not
/// counted; RDMA vectors are spread around all queues, and around RDMA vectors that stay.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Active,
    WithoutNetdev,
    Idle,
    RdmaThatStays,
    Rdma,
}

/// The interfaces that take part, with their CPUs: those that are planned by default, and those that are selected.
/// `weights`: of all interfaces of the machine. `keep`: limits for queues that may keep their CPU.
pub(crate) fn placed_ports<'a>(
    machine: &'a Machine,
    locations: &'a Locations<'a>,
    weights: &[Weight],
    policy: &Policy,
    (selection, keep): (&Selection, Option<Keep>),
) -> Vec<PlacedPort<'a>> {
    let takes_part = |interface: &Interface| {
        let mut roles = interface.vectors.iter().map(|vector| vector.role);
        selection.names.contains(&interface.name) || roles.any(|role| role != Role::Control)
    };
    let weighed = weights.iter().map(|weight| weight.planned).enumerate();
    let mut ports = weighed
        .filter(|(order, _)| takes_part(&machine.interfaces[*order]))
        .map(|weighed| PlacedPort::new(machine, locations, policy, weighed))
        .collect_vec();
    ports.sort_by_key(|port| {
        let candidates = port.candidates.cpus.len();
        (Reverse(port.weight), candidates, port.rank())
    });
    for port in &mut ports {
        let is_selected = selection.explicit && selection.names.contains(&port.interface.name);
        if port.interface.is_elsewhere() && !port.interface.without_netdev && !is_selected {
            let apart = isolated_or_exclusive(&machine.topology, &port.choice);
            port.kept = port.candidates.near.difference(&apart);
        }
    }
    let mut owners: BTreeMap<u32, &'a str> = BTreeMap::new();
    let is_selected = |port: &PlacedPort<'_>| selection.names.contains(&port.interface.name);
    let movable = ports.iter_mut().filter(|port| !port.skip);
    for port in movable.sorted_by_key(|port| {
        (
            !is_selected(port),
            port.interface.shares_vectors_of.is_some(),
        )
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
    ports.sort_by_key(|port| port.order);
    ports
}

#[derive(Clone, Copy)]
enum How {
    /// One of the unit's vectors stays on this CPU.
    Stays(u32),
    /// The unit's vectors are on this candidate; the candidates cannot take all IRQs.
    Keeps(u32),
    /// The unit's vectors are on this CPU, which is as good as any.
    StaysPut(u32),
    /// The unit of this index has the same IRQ.
    Line(usize),
    /// One CPU of the set of this index.
    Among(usize, Option<DecidedBy>),
}

fn assign(
    machine: &Machine,
    locations: &Locations<'_>,
    ports: &mut [PlacedPort<'_>],
    keep: Option<Keep>,
) {
    let apart = ports.iter().filter(|port| port.choice.get(&SIBLINGS));
    let apart = CpuSet::union_of(apart.map(|port| &port.candidates.cpus));
    let not_understood = machine.not_understood_cpus();
    let mut spread = Spread::new(locations, ports.len(), apart, &not_understood);
    // The preceding queues on each core and L3 domain.
    let mut on_core = vec![0_usize; locations.cores];
    let mut on_l3 = vec![0_usize; locations.domain_sizes.len()];
    let units = ports
        .iter()
        .enumerate()
        .flat_map(|(at, port)| port.units().map(move |(turn, vectors)| (turn, at, vectors)))
        .sorted_by_key(|unit| unit.0)
        .collect_vec();
    // Vectors that cannot or must not be moved are counted first, so that others are placed around them.
    for (_, at, vectors) in units.iter().filter(|unit| unit.0 == Turn::Active) {
        let port = &ports[*at];
        let active = vectors.iter().filter(|v| !port.interface.is_idle(v));
        let Some(cpu) = cpu_that_stays(port, active) else {
            continue;
        };
        spread.add(cpu, *at, port.weight, vectors[0].queue == Some(0));
        if let Some(place) = locations.of(cpu) {
            on_core[place.core] += 1;
            on_l3[place.domain] += 1;
        }
    }
    // Busy-polling threads that keep their CPU are counted first too, as one queue each.
    for (at, port) in ports.iter().enumerate() {
        for cpu in port.polling_cpus() {
            spread.add(cpu, at, port.weight, false);
        }
    }
    let mut lines = HashMap::default();
    let mut own_sets = vec![None; ports.len()];
    let all = units.iter().enumerate();
    let mut hows = all
        .map(|(id, (_, at, vectors))| {
            let known = (&mut lines, &mut own_sets[*at]);
            find_how(&mut spread, known, id, &ports[*at], vectors)
        })
        .collect_vec();
    limit_irqs(machine, &mut spread, ports, &units, &mut hows);
    if let Some(keep) = keep {
        stay_put(&mut spread, ports, &units, &mut hows, keep);
    }
    let movable = movable(machine, &mut spread, ports, &units, &hows);
    let mut cpus = vec![None; units.len()];
    for (id, cpu) in spread.place(movable) {
        cpus[id] = Some(cpu);
    }
    for (id, (turn, at, vectors)) in units.iter().enumerate() {
        let first = vectors[0];
        if *turn == Turn::RdmaThatStays {
            if let Some(cpu) = ports[*at].effective_cpu(first) {
                spread.add(cpu, *at, 0, false);
            }
            continue;
        }
        let found = hows[id];
        let (cpu, decided_by) = match found {
            How::Stays(cpu) => (Some(cpu), Some(DecidedBy::Vector)),
            How::Keeps(cpu) => {
                if *turn != Turn::Active {
                    spread.add(cpu, *at, 0, false);
                }
                (Some(cpu), None)
            }
            How::StaysPut(cpu) => (Some(cpu), Some(DecidedBy::Gain)),
            How::Line(unit) => (cpus[unit], Some(DecidedBy::Line)),
            How::Among(_, by) if *turn == Turn::Active => (cpus[id], by),
            How::Among(set, by) => (spread.take(set, irq_count(machine, vectors)), by),
        };
        let Some(cpu) = cpu else { continue };
        let port = &mut ports[*at];
        cpus[id] = Some(cpu);
        if *turn == Turn::Rdma {
            port.others.insert(first.irq, cpu);
        } else if let (Some(queue), Some(place)) = (first.queue_id(), locations.of(cpu)) {
            // A unit that stays was counted first.
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
            port.cpus.insert(queue, placement);
            if matches!(found, How::Among(..) | How::Keeps(_) | How::StaysPut(_)) {
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

/// Returns the queues in use that are to be arranged; counts those that keep their CPU.
fn movable(
    machine: &Machine,
    spread: &mut Spread<'_>,
    ports: &[PlacedPort<'_>],
    units: &[(Turn, usize, Vec<&Vector>)],
    hows: &[How],
) -> Vec<Queue> {
    let mut movable = Vec::new();
    let active = units.iter().enumerate();
    for (id, (_, at, vectors)) in active.filter(|(_, unit)| unit.0 == Turn::Active) {
        let (weight, is_first) = (ports[*at].weight, vectors[0].queue == Some(0));
        match hows[id] {
            How::Keeps(cpu) => spread.add(cpu, *at, weight, is_first),
            How::Among(set, _) => movable.push(Queue {
                id,
                port: *at,
                is_first,
                set,
                weight,
                irqs: irq_count(machine, vectors),
                core: None,
            }),
            How::Stays(_) | How::StaysPut(_) | How::Line(_) => {}
        }
    }
    movable
}

/// The number of IRQs of a unit; 0 if CPUs can take all.
fn irq_count(machine: &Machine, vectors: &[&Vector]) -> usize {
    machine.vectors_held.as_ref().map_or(0, |_| vectors.len())
}

/// Lets units keep their CPU as far as the cores take them.
fn stay_put(
    spread: &mut Spread<'_>,
    ports: &[PlacedPort<'_>],
    units: &[(Turn, usize, Vec<&Vector>)],
    hows: &mut [How],
    keep: Keep,
) {
    let mut rdma_on = BTreeMap::<Option<usize>, usize>::new();
    for ((turn, at, vectors), how) in units.iter().zip(hows) {
        let How::Among(set, _) = *how else { continue };
        let port = &ports[*at];
        let is_there = |vector: &&Vector| {
            let mut cpus = vector.affinity.cpus.iter();
            (*turn != Turn::Rdma || vector.affinity.cpus.len() == 1)
                && cpus.all(|cpu| spread.has(set, cpu))
        };
        let on = vectors.iter().map(|vector| {
            let on = port.effective_cpu(vector).filter(|_| is_there(vector))?;
            vector.affinity.cpus.contains(on).then_some(on)
        });
        let Some(cpu) = on.dedup().exactly_one().ok().flatten() else {
            continue;
        };
        let core = port.locations.of(cpu).map(|place| place.core);
        let is_first = vectors[0].queue == Some(0);
        let stays = match turn {
            Turn::Idle | Turn::RdmaThatStays => true,
            Turn::Rdma => rdma_on.get(&core).is_none_or(|on| *on < keep.rdma),
            Turn::Active | Turn::WithoutNetdev => {
                spread.takes_one_more(cpu, port.weight, is_first, keep)
            }
        };
        if stays && spread.room[cpu as usize] >= vectors.len() {
            *how = How::StaysPut(cpu);
            spread.room[cpu as usize] -= vectors.len();
            match turn {
                Turn::Idle | Turn::RdmaThatStays => {}
                Turn::Rdma => *rdma_on.entry(core).or_default() += 1,
                Turn::WithoutNetdev => spread.add(cpu, *at, 0, false),
                Turn::Active => spread.add(cpu, *at, port.weight, is_first),
            }
        }
    }
}

/// Limits the IRQs of each CPU to its capacity. If the candidates cannot take all IRQs, those on them stay: others
/// would not find a vector before these have left.
fn limit_irqs(
    machine: &Machine,
    spread: &mut Spread<'_>,
    ports: &[PlacedPort<'_>],
    units: &[(Turn, usize, Vec<&Vector>)],
    hows: &mut [How],
) {
    let Some(held) = &machine.vectors_held else {
        return;
    };
    let mut room = BTreeMap::new();
    for cpu in machine.topology.online.iter() {
        let held = held.get(&cpu).copied().unwrap_or(0);
        room.insert(cpu, VECTORS_OF_CPU.saturating_sub(held));
    }
    let is_moved = |how: &How| !matches!(how, How::Stays(_));
    let moved = units.iter().zip(&*hows).filter(|(_, how)| is_moved(how));
    let moved: BTreeSet<u32> = moved
        .flat_map(|(unit, _)| unit.2.iter().map(|vector| vector.irq))
        .collect();
    let vectors = machine
        .interfaces
        .iter()
        .flat_map(|interface| &interface.vectors);
    for vector in vectors.unique_by(|vector| vector.irq) {
        let cpu = vector.known_cpus(&machine.topology.online);
        if let Some(room) = cpu
            .filter(|_| !moved.contains(&vector.irq))
            .and_then(|cpus| room.get_mut(&cpus.first()?))
        {
            *room = room.saturating_sub(1);
        }
    }
    let full = spread.full(&room, |set| {
        let in_set = units.iter().zip(&*hows);
        let in_set = in_set.filter(|(_, how)| matches!(how, How::Among(other, _) if *other == set));
        in_set.map(|(unit, _)| unit.2.len()).sum()
    });
    for ((_, at, vectors), how) in units.iter().zip(&mut *hows) {
        let How::Among(set, _) = *how else { continue };
        let on = vectors
            .iter()
            .map(|vector| ports[*at].effective_cpu(vector));
        let on = on.dedup().exactly_one().ok().flatten();
        let on = on.filter(|cpu| full.contains(&set) && spread.has(set, *cpu));
        let on = on.and_then(|cpu| Some((cpu, room.get_mut(&cpu)?)));
        if let Some((cpu, room)) = on.filter(|(_, room)| **room >= vectors.len()) {
            *room -= vectors.len();
            *how = How::Keeps(cpu);
        }
    }
    for (cpu, room) in room {
        spread.room[cpu as usize] = room;
    }
}

/// Determines how the CPU of a unit is found. `lines`: the unit that had each IRQ last. `own_set`: the set of the port's
/// candidates, once it is known and if it has one.
fn find_how(
    spread: &mut Spread<'_>,
    (lines, own_set): (&mut HashMap<u32, usize>, &mut Option<usize>),
    id: usize,
    port: &PlacedPort<'_>,
    vectors: &[&Vector],
) -> How {
    let line = vectors.iter().find_map(|v| lines.get(&v.irq).copied());
    lines.extend(vectors.iter().map(|v| (v.irq, id)));
    let hint = port.hinted_cpus(vectors);
    let candidates = hint.as_ref();
    let candidates = candidates.unwrap_or_else(|| port.candidates_of(vectors[0]));
    // A movable vector does not follow another out of its candidates.
    let may_follow = |cpu: &u32| {
        let is_movable = vectors.iter().any(|vector| !port.stays(vector));
        !is_movable || candidates.contains(*cpu)
    };
    if let Some(cpu) = cpu_that_stays(port, vectors).filter(may_follow) {
        How::Stays(cpu)
    } else if let Some(unit) = line {
        How::Line(unit)
    } else if hint.is_some() {
        let set = spread.set(candidates, &[], &port.choice);
        How::Among(set, Some(DecidedBy::Hint))
    } else if let Some(set) = *own_set {
        How::Among(set, None)
    } else {
        let has_one = port.by_node.is_empty();
        let tiers = Some(port.candidates.tiers.as_slice()).filter(|_| has_one);
        let set = spread.set(candidates, tiers.unwrap_or_default(), &port.choice);
        *own_set = Some(set).filter(|_| has_one);
        How::Among(set, None)
    }
}

/// Moves control vectors off CPUs that should get no interrupts.
fn move_control(port: &mut PlacedPort<'_>, spread: &mut Spread<'_>, only_gain: bool) {
    let topology = &port.machine.topology;
    let isolated_or_exclusive = isolated_or_exclusive(topology, &port.choice);
    let kept_off = CpuSet::union_of(topology.kept_off.iter().map(|kept| &kept.cpus));
    let kept_off = kept_off.difference(&port.candidates.cpus);
    // No measure counts these vectors.
    let kept_off = Some(kept_off).filter(|_| !only_gain);
    let without = isolated_or_exclusive.union(&kept_off.unwrap_or_default());
    for vector in &port.interface.vectors {
        let on = vector.effective_cpus(&port.machine.topology.online);
        if vector.role == Role::Control && !on.is_empty() && on.is_subset(&without) {
            let cpu = port
                .candidates
                .cpus
                .difference(&isolated_or_exclusive)
                .iter()
                .filter(|&cpu| spread.room[cpu as usize] > 0)
                .min_by_key(|&cpu| spread.on_cpu[cpu as usize]);
            if let Some(cpu) = cpu {
                spread.room[cpu as usize] -= 1;
                port.others.insert(vector.irq, cpu);
            }
        }
    }
}

/// The vector of a queue without its own; `vectors` are in the order of their queues, of which `number` is the lowest.
/// If the numbers have gaps, as of ice, the queues of a vector are consecutive; else they are dealt out in turn.
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

/// The CPU of the first vector that cannot or must not be moved.
fn cpu_that_stays<'a>(
    port: &PlacedPort<'_>,
    vectors: impl IntoIterator<Item = &'a &'a Vector>,
) -> Option<u32> {
    vectors
        .into_iter()
        .filter(|vector| port.stays(vector))
        .find_map(|vector| port.effective_cpu(vector))
}
