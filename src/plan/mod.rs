//! The planner: a pure function from a machine and a policy to a plan. No I/O, no clock, no environment; the
//! same machine gives the same plan whatever IRQ numbers it drew and whichever links are up.
//!
//! Interfaces that share CPUs are placed together, selected or not, so that what one interface is given does
//! not depend on whether it was planned alone.

pub mod binding;
mod build;
mod candidates;
mod channels;
mod differences;
mod hash;
mod irqbalance;
mod notes;
mod place;
#[allow(clippy::module_inception)]
mod plan;
mod queues;
mod score;
mod steer;
pub mod stored;
mod value;

pub(crate) use irqbalance::IRQBALANCE_RUNNING;
pub(crate) use plan::NO_VECTORS;
pub use plan::{
    ChannelChange, DecidedBy, HostSummary, IrqbalancePlan, LeftOut, NodeSource, NodeSummary, Note, Placement,
    Plan, PlannedInterface, PlannedRxQueue, PlannedTxQueue, PlannedValue, PlannedVector, SCHEMA, Score,
    Write, WriteKind, WriteValue,
};

use std::collections::{BTreeMap, BTreeSet};

use crate::cpuset::CpuSet;
use crate::machine::Selection;
use crate::machine::netdev::Direction;
use crate::machine::{Interface, Machine, Role, Vector};
use crate::policy::{Choice, Group, Policy, Scope};

use candidates::{Candidates, candidates};
use place::{Load, Locations, PlacementRules};

/// Plans the selected interfaces of a machine.
pub fn plan(machine: &Machine, policy: &Policy, selection: &Selection) -> Plan {
    let places = Locations::new(&machine.topology);
    let mut works = works(machine, policy, selection);
    place(machine, &places, &mut works);
    works.sort_by_key(|work| work.order);
    let busy = works.iter().fold(CpuSet::new(), |all, work| all.union(&work.irq_cpus(machine)));
    let flow_queues = works.iter().map(|work| work.interface.rx_queues.len()).sum();
    let flow_entries = queues::flow_table(works.iter().map(|work| work.choice.rfs));
    let shared = build::Shared { flow_queues, flow_entries, busy };
    let chosen: Vec<&Work<'_>> =
        works.iter().filter(|work| selection.names.contains(&work.interface.name)).collect();
    let mut plan = build::build(machine, &places, &chosen, &shared, selection);
    irqbalance::add(machine, policy.irqbalance.unwrap_or_default(), &mut plan);
    plan
}

/// An interface while it is planned.
struct Work<'a> {
    interface: &'a Interface,
    /// The vectors of each queue, in the interface's order.
    by_queue: BTreeMap<u32, Vec<&'a Vector>>,
    /// Its place in the machine's list.
    order: usize,
    choice: Choice,
    candidates: Candidates,
    /// Candidate CPUs by the node of a vector, on an interface whose vectors come from devices on several nodes;
    /// else empty. `candidates` is all of them then. `None` is the interface's own device.
    by_node: BTreeMap<Option<u32>, CpuSet>,
    /// The CPU of each queue, by queue number; idle queues included.
    cpus: BTreeMap<u32, Placement>,
    /// Where control vectors go that have to leave an isolated CPU, by IRQ.
    control: BTreeMap<u32, u32>,
    /// IRQs that are planned with another interface, which has the same line; and that interface.
    shared: BTreeMap<u32, &'a str>,
}

impl<'a> Work<'a> {
    /// The vectors of a queue.
    fn vectors_of(&self, queue: u32) -> &[&'a Vector] {
        self.by_queue.get(&queue).map_or(&[], Vec::as_slice)
    }

    /// Where the plan wants a vector; `None` to leave it alone.
    fn target(&self, machine: &Machine, vector: &Vector) -> Option<CpuSet> {
        if !vector.movable || self.choice.skip || self.shared.contains_key(&vector.irq) {
            return None;
        }
        let Some(queue) = vector.queue else {
            return self.control.get(&vector.irq).copied().map(CpuSet::single);
        };
        let cpu = self.cpus.get(&queue)?.cpu;
        Some(match &self.choice.group {
            None => CpuSet::single(cpu),
            // What the candidates are in this case, offline and excluded CPUs left out.
            Some(Group::Cpus(_)) => self.candidates.cpus.clone(),
            Some(Group::L3) => {
                let domain = machine.topology.l3_domains.iter().find(|domain| domain.contains(cpu));
                domain.map_or(CpuSet::single(cpu), |domain| domain.intersection(self.candidates_of(queue)))
            }
        })
    }

    /// How many cores (CPUs, where siblings count as cores) queues can have to themselves.
    fn core_count(&self, places: &Locations, cpus: &CpuSet) -> usize {
        if self.choice.siblings { cpus.len() } else { places.cores_in(cpus) }
    }

    /// The CPUs that take its active queues.
    fn irq_cpus(&self, machine: &Machine) -> CpuSet {
        let active =
            self.interface.vectors.iter().filter(|v| v.is_queue_vector() && !self.interface.is_idle(v));
        let mut cpus = CpuSet::new();
        for vector in active {
            match self.target(machine, vector) {
                Some(target) => cpus.add(&target),
                None => cpus.extend(serving_cpu(vector)),
            }
        }
        cpus
    }

    /// Where a queue's vectors may go.
    fn candidates_of(&self, queue: u32) -> &CpuSet {
        let own = self.vectors_of(queue).first().and_then(|vector| self.by_node.get(&vector.node));
        own.unwrap_or(&self.candidates.cpus)
    }

    /// The CPU that completes a transmit queue or receives for a receive queue: its own vector's, or, where
    /// there are more queues than vectors, that of the vector it shares.
    fn cpu_of(&self, role: Role, queue: u32) -> Option<u32> {
        let with = |vector: &&Vector| vector.role == role || vector.role == Role::Combined;
        let vectors = || self.interface.vectors.iter().filter(with);
        let own = self.vectors_of(queue).iter().copied().find(with);
        let told = || {
            let direction = if role == Role::Tx { Direction::Tx } else { Direction::Rx };
            let irq = self.interface.netdev.as_ref()?.irq_of(direction, queue)?;
            self.interface.vectors.iter().find(|vector| vector.irq == irq)
        };
        let shared = || vectors().nth(queue as usize % vectors().count().max(1));
        let vector = own.or_else(told).or_else(shared)?;
        self.cpus.get(&vector.queue?).map(|taken| taken.cpu)
    }
}

/// The interfaces that take part: those that would be planned by default, and those that are selected.
fn works<'a>(machine: &'a Machine, policy: &Policy, selection: &Selection) -> Vec<Work<'a>> {
    let takes_part = |interface: &Interface| {
        selection.names.contains(&interface.name) || interface.vectors.iter().any(Vector::is_queue_vector)
    };
    let with_choice = machine.interfaces.iter().enumerate().filter(|(_, interface)| takes_part(interface));
    let mut works: Vec<Work<'a>> = with_choice
        .map(|(order, interface)| {
            let choice = policy.choice(interface);
            let mut candidates = candidates(machine, interface, &choice, active_queues(interface));
            let by_node = by_node(machine, interface, &choice, &candidates);
            candidates.cpus = by_node.values().fold(candidates.cpus, |all, cpus| all.union(cpus));
            Work {
                interface,
                by_queue: by_queue(interface),
                order,
                choice,
                candidates,
                by_node,
                cpus: BTreeMap::new(),
                control: BTreeMap::new(),
                shared: BTreeMap::new(),
            }
        })
        .collect();
    // Who chooses first: facts of the hardware only, so that it is the same at every boot. Cards that are at
    // home nowhere come after those that are, and fill what is left.
    works.sort_by(|a, b| {
        let key = |work: &Work<'_>| {
            (work.candidates.node.is_none(), std::cmp::Reverse(work.interface.device.pcie_mtps))
        };
        let address = |work: &Work<'a>| (&work.interface.device.address, work.interface.port, work.order);
        key(a).cmp(&key(b)).then_with(|| address(a).cmp(&address(b)))
    });
    let mut owners: BTreeMap<u32, &'a str> = BTreeMap::new();
    for work in works.iter_mut().filter(|work| !work.choice.skip) {
        for vector in &work.interface.vectors {
            let owner = owners.entry(vector.irq).or_insert(&work.interface.name);
            if *owner != work.interface.name {
                work.shared.insert(vector.irq, owner);
            }
        }
    }
    works
}

fn by_queue(interface: &Interface) -> BTreeMap<u32, Vec<&Vector>> {
    let mut by_queue: BTreeMap<u32, Vec<&Vector>> = BTreeMap::new();
    for vector in &interface.vectors {
        if let Some(queue) = vector.queue {
            by_queue.entry(queue).or_default().push(vector);
        }
    }
    by_queue
}

/// How many queues of an interface are in use and have a vector.
fn active_queues(interface: &Interface) -> usize {
    let active = interface.vectors.iter().filter(|v| v.is_queue_vector() && !interface.is_idle(v));
    active.filter_map(|vector| vector.queue).collect::<BTreeSet<u32>>().len()
}

/// Candidates for the vectors of each device, where an interface has several on different nodes (a card with a
/// PCI function on each socket).
fn by_node(
    machine: &Machine,
    interface: &Interface,
    choice: &Choice,
    own: &Candidates,
) -> BTreeMap<Option<u32>, CpuSet> {
    let mut by_node: BTreeMap<Option<u32>, CpuSet> = BTreeMap::new();
    for node in interface.vectors.iter().filter_map(|vector| vector.node) {
        by_node.entry(Some(node)).or_insert_with(|| {
            let mut there = interface.clone();
            there.device.node = Some(node);
            there.device.local_cpus = None;
            candidates(machine, &there, choice, active_queues(interface)).cpus
        });
    }
    if !by_node.is_empty() {
        by_node.insert(None, own.cpus.clone());
    }
    by_node
}

/// Gives every queue a CPU: active queues of all interfaces first, then idle ones, which do not count.
fn place(machine: &Machine, places: &Locations, works: &mut [Work<'_>]) {
    let mut load = Load::new(&machine.topology, places);
    // What cannot or shall not be moved takes its room before anything is placed around it.
    for work in works.iter() {
        let stays = |vector: &&Vector| work.choice.skip || !vector.movable;
        let mut queues = BTreeMap::new();
        for vector in work.interface.vectors.iter().filter(stays) {
            if let (Some(queue), Some(cpu)) = (vector.queue, serving_cpu(vector))
                && !work.interface.is_idle(vector)
            {
                queues.entry(queue).or_insert(cpu);
            }
        }
        for &cpu in queues.values() {
            load.add(cpu);
        }
    }
    let mut lines: BTreeMap<u32, u32> = BTreeMap::new();
    for idle in [false, true] {
        for work in works.iter_mut() {
            let manner =
                PlacementRules { siblings: work.choice.siblings, avoid_cpu0: work.choice.avoid_cpu0 };
            for (queue, fixed) in queues(work, idle) {
                let irqs: Vec<u32> = work.vectors_of(queue).iter().map(|vector| vector.irq).collect();
                let line = irqs.iter().find_map(|irq| lines.get(irq).copied());
                let hinted = hint(machine, work, &irqs);
                let tiers = Some(&work.candidates.tiers).filter(|_| work.by_node.is_empty());
                let tier = || tiers.and_then(|tiers| load.first_with_room(tiers, manner));
                let kept = fixed.or(line).and_then(|cpu| load.placement(cpu));
                let decided_by = match &kept {
                    Some(_) if fixed.is_some() => Some(DecidedBy::Vector),
                    Some(_) => Some(DecidedBy::Line),
                    None => hinted.as_ref().map(|_| DecidedBy::Hint),
                };
                let wanted = hinted.as_ref().or_else(tier).unwrap_or_else(|| work.candidates_of(queue));
                let Some(placement) = kept.or_else(|| load.take(wanted, manner)) else { continue };
                lines.extend(irqs.into_iter().map(|irq| (irq, placement.cpu)));
                work.cpus.insert(queue, Placement { decided_by, ..placement });
            }
        }
    }
    let kept_free = machine.topology.isolated_or_nohz();
    for work in works.iter_mut() {
        for vector in work.interface.vectors.iter().filter(|vector| vector.role == Role::Control) {
            let sits_on = vector.effective.as_ref().unwrap_or(&vector.affinity.cpus);
            if !sits_on.is_empty() && sits_on.is_subset(&kept_free) {
                let idlest = |&cpu: &u32| (load.on_cpu(cpu), cpu);
                let cpu = work.candidates.cpus.difference(&kept_free).iter().min_by_key(idlest);
                work.control.extend(cpu.map(|cpu| (vector.irq, cpu)));
            }
        }
    }
}

/// The queues of an interface that are idle, or those that are not; with the CPU that a queue is held to by a
/// vector that does not move. A queue is active when any of its vectors is.
fn queues(work: &Work<'_>, idle: bool) -> BTreeMap<u32, Option<u32>> {
    let stays = |vector: &&&Vector| work.choice.skip || !vector.movable;
    let queues = work
        .by_queue
        .iter()
        .filter(|(_, vectors)| vectors.iter().all(|vector| work.interface.is_idle(vector)) == idle);
    queues
        .map(|(&queue, vectors)| (queue, vectors.iter().filter(stays).find_map(|vector| serving_cpu(vector))))
        .collect()
}

/// Where the drivers hint that one of these IRQs should go, when the policy goes by that.
fn hint(machine: &Machine, work: &Work<'_>, irqs: &[u32]) -> Option<CpuSet> {
    let asked = work.choice.scope == Scope::Hint;
    let hint = irqs.iter().filter(|_| asked).find_map(|irq| machine.hints.get(irq))?;
    let kept_free = machine.topology.isolated_or_nohz().union(&work.choice.exclude);
    Some(hint.intersection(&machine.topology.online).difference(&kept_free)).filter(|cpus| !cpus.is_empty())
}

/// Where a vector is served, as far as the kernel tells: one CPU in nearly every case.
fn serving_cpu(vector: &Vector) -> Option<u32> {
    match &vector.effective {
        Some(cpus) => cpus.first(),
        None if vector.affinity.cpus.len() == 1 => vector.affinity.cpus.first(),
        None => None,
    }
}
