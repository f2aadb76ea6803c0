//! An interface while it is planned: its candidates, and the CPUs of its vectors and queues once they are assigned.

use std::collections::BTreeMap;

use itertools::Itertools as _;

use crate::cpuset::{CpuSet, QueueSet};
use crate::drivers::Fact;
use crate::machine::interface::is_pci_address;
use crate::machine::netdev::Direction;
use crate::machine::{Interface, Machine, QueueId, Role, Selection, Vector};
use crate::plan::candidates::{Candidates, candidates, core_count};
use crate::plan::data::Placement;
use crate::plan::note::Note;
use crate::plan::place::Locations;
use crate::plan::requests::{out_of_reach, unmet_channels, unmet_rps};
use crate::plan::why::Cause;
use crate::policy::{Choice, GROUP, Group, KEEP_NAPI_THREADS, Policy, SCOPE, SKIP, Scope};

pub(crate) struct PlacedPort<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) locations: &'a Locations<'a>,
    pub(crate) interface: &'a Interface,
    pub(crate) selected: bool,
    pub(crate) queues: BTreeMap<QueueId, Vec<&'a Vector>>,
    pub(crate) order: usize,
    pub(crate) weight: u64,
    pub(crate) choice: Choice,
    /// Whether the interface is unchanged: by the policy, or because the policy cannot be met.
    pub(crate) skip: bool,
    /// CPUs on which the vectors of an interface in another network namespace stay, because somebody else owns it and
    /// nobody has selected it.
    pub(crate) kept: CpuSet,
    pub(crate) candidates: Candidates,
    /// Candidate CPUs by the node of a vector's device, if a card has a PCI function on each socket; else empty. `None`
    /// is the interface's own device. `candidates` has the union.
    pub(crate) by_node: BTreeMap<Option<u32>, CpuSet>,
    /// The CPU of each queue, idle ones included.
    pub(crate) cpus: BTreeMap<QueueId, Placement>,
    /// The target CPU by IRQ, of RDMA vectors and of control vectors that have to leave their CPU.
    pub(crate) others: BTreeMap<u32, u32>,
    /// CPUs of active queues.
    pub(crate) irq_cpus: CpuSet,
    /// IRQs planned for another interface, with its name.
    pub(crate) shared: BTreeMap<u32, &'a str>,
}

impl<'a> PlacedPort<'a> {
    pub(crate) fn new(
        machine: &'a Machine,
        locations: &'a Locations<'a>,
        policy: &Policy,
        selection: &Selection,
        order: usize,
        weight: u64,
    ) -> Self {
        let interface = &machine.interfaces[order];
        let choice = policy.choice(machine, interface);
        let mut queues: BTreeMap<_, Vec<&Vector>> = BTreeMap::new();
        for vector in &interface.vectors {
            if let Some(queue) = vector.queue_id() {
                queues.entry(queue).or_default().push(vector);
            }
        }
        let candidates = |interface: &Interface| candidates(machine, locations, interface, &choice);
        let mut own = candidates(interface);
        let mut by_node = BTreeMap::new();
        for node in interface.vectors.iter().filter_map(|vector| vector.node) {
            by_node.entry(Some(node)).or_insert_with(|| {
                let mut there = interface.clone();
                (there.device.node, there.device.local_cpus) = (Some(node), None);
                candidates(&there).cpus
            });
        }
        if !by_node.is_empty() {
            by_node.insert(None, own.cpus);
            own.cpus = CpuSet::union_of(by_node.values());
        }
        own.notes.extend(unmet_rps(machine, interface, &choice));
        let selected = selection.names.contains(&interface.name);
        let is_named = selection.explicit && selected;
        // Who names no interface means those that are here.
        own.notes.extend(if interface.is_elsewhere() {
            out_of_reach(&choice).filter(|_| is_named)
        } else {
            unmet_channels(interface, &choice)
        });
        let is_of_others = interface.is_elsewhere() && !interface.without_netdev;
        let kept = (is_of_others && !is_named).then(|| own.near.difference(&own.allowed.apart));
        let skip = choice.get(&SKIP);
        own.notes.retain(|note| !skip || !note.is_unmet());
        PlacedPort {
            machine,
            locations,
            interface,
            selected,
            queues,
            order,
            weight,
            skip: skip || own.notes.iter().any(Note::is_unmet),
            kept: kept.unwrap_or_default(),
            choice,
            candidates: own,
            by_node,
            cpus: BTreeMap::new(),
            others: BTreeMap::new(),
            irq_cpus: CpuSet::new(),
            shared: BTreeMap::new(),
        }
    }

    /// By properties of the hardware only, so that it is the same at every boot.
    pub(crate) fn rank(&self) -> (&'a str, u32, usize) {
        let interface = self.interface;
        (&interface.device.address, interface.port, self.order)
    }

    fn vectors_of(&self, direction: Direction) -> impl Iterator<Item = &'a Vector> {
        self.interface
            .vectors
            .iter()
            .filter(move |vector| vector.role.serves(direction))
    }

    pub(crate) fn vector_of(&self, direction: Direction, queue: u32) -> Option<&'a Vector> {
        let vectors = self.queues.get(&QueueId::Number(queue))?;
        vectors
            .iter()
            .copied()
            .find(|vector| vector.role.serves(direction))
    }

    pub(crate) fn why_skipped(&self) -> Cause {
        if self.choice.get(&SKIP) {
            Cause::Skipped
        } else {
            Cause::PolicyUnmet
        }
    }

    /// Whether there is a placed queue vector, without which steering is unchanged.
    pub(crate) fn has_placed_queues(&self) -> bool {
        !self.skip && self.interface.queue_vectors().next().is_some()
    }

    /// Threads keep their CPUs by the policy and, like RPS, without a placed queue.
    pub(crate) fn keeps_threads(&self) -> bool {
        self.choice.get(&KEEP_NAPI_THREADS) || !self.has_placed_queues()
    }

    pub(crate) fn polling_cpus(&self) -> impl Iterator<Item = u32> {
        self.interface
            .threads
            .iter()
            .filter(|thread| thread.busy_polls && self.keeps_threads())
            .filter_map(|thread| thread.affinity.cpus.only())
    }

    /// The planned affinity; `None`: unchanged.
    pub(crate) fn target(&self, vector: &Vector) -> Option<CpuSet> {
        if self.stays(vector) || self.is_kept(vector) || self.shared.contains_key(&vector.irq) {
            return None;
        }
        if self.placement(vector).is_some_and(Placement::stays_put) {
            return Some(vector.affinity.cpus.clone());
        }
        let cpu = self.chosen_cpu(vector)?;
        let group = match self.choice.get(&GROUP) {
            _ if vector.role == Role::Control => None,
            // The candidates are this group without offline and excluded CPUs.
            Some(Group::Cpus(_)) => Some(self.candidates.cpus.clone()),
            Some(Group::L3) => {
                (self.locations.l3_of(cpu)).map(|l3| l3.intersection(self.candidates_of(vector)))
            }
            None => None,
        };
        // A CPU that is no candidate may have no L3 domain.
        Some(
            group
                .filter(|group| !group.is_empty())
                .unwrap_or_else(|| CpuSet::single(cpu)),
        )
    }

    /// Functions for RDMA alone are planned only if they are selected.
    pub(crate) fn stays(&self, vector: &Vector) -> bool {
        self.skip || !vector.movable || !self.selected && self.interface.is_for_rdma()
    }

    /// Whether a vector that belongs to somebody else is well placed: it stays, and others are placed around it.
    pub(crate) fn is_kept(&self, vector: &Vector) -> bool {
        if self.kept.is_empty() {
            return false;
        }
        let now = vector.known_cpus(&self.machine.topology.online);
        let to = now.as_deref().unwrap_or(&vector.affinity.cpus);
        !to.is_empty() && to.is_subset(&self.kept)
    }

    fn chosen_cpu(&self, vector: &Vector) -> Option<u32> {
        self.placement(vector)
            .map(|placement| placement.cpu)
            .or_else(|| self.others.get(&vector.irq).copied())
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

    pub(crate) fn core_count(&self) -> usize {
        core_count(&self.machine.topology, &self.choice, &self.candidates.cpus)
    }

    pub(crate) fn rdma_cpus(&self) -> Option<CpuSet> {
        let vectors = self.interface.with_role(Role::Rdma);
        let cpus = vectors.map(|vector| self.cpus_of(vector));
        cpus.reduce(|all, cpus| all.union(&cpus))
    }

    pub(crate) fn cpus_of(&self, vector: &Vector) -> CpuSet {
        let is_elsewhere = vector.movable && self.shared.contains_key(&vector.irq);
        let shared = || self.chosen_cpu(vector).filter(|_| is_elsewhere);
        self.target(vector).unwrap_or_else(|| {
            shared()
                .or_else(|| self.effective_cpu(vector))
                .into_iter()
                .collect()
        })
    }

    pub(crate) fn effective_cpu(&self, vector: &Vector) -> Option<u32> {
        vector.known_cpus(&self.machine.topology.online)?.first()
    }

    pub(crate) fn candidates_of(&self, vector: &Vector) -> &CpuSet {
        self.by_node
            .get(&vector.node)
            .unwrap_or(&self.candidates.cpus)
    }

    pub(crate) fn own_candidates(&self, vector: &Vector) -> Option<CpuSet> {
        let queue = vector.queue_id();
        let vectors = queue.and_then(|queue| self.queues.get(&queue));
        self.hinted_cpus(vectors.map_or(&[vector], Vec::as_slice))
            .or_else(|| self.by_node.get(&vector.node).cloned())
    }

    /// The vector of a receive or transmit queue, or the shared one if there are more queues than vectors.
    pub(crate) fn serving(&self, direction: Direction, queue: u32) -> Option<&'a Vector> {
        let is_active = |vector: &&Vector| !self.interface.is_idle(vector);
        self.vector_of(direction, queue)
            .filter(is_active)
            .or_else(|| self.interface.reported_vector(direction, queue))
            .or_else(|| {
                // A vector that is not understood may serve the queue.
                if !self.interface.unknown_vectors.is_empty() {
                    return None;
                }
                let vectors = self.vectors_of(direction).filter(is_active).collect_vec();
                sharing(&vectors, queue, |vector| vector.queue).copied()
            })
    }

    /// Receive queues of which no IRQ is known. A single IRQ receives for all, where names leave gaps, each names the
    /// first queue of its IRQ, some drivers deal their queues out by turns, and some queues get IRQs when the interface
    /// comes up, unless the device has IRQs that are not understood.
    pub(crate) fn unserved(&self) -> QueueSet {
        let interface = self.interface;
        let mut data = interface.with_role(Role::Data);
        let has_unknown = data.next().is_some() || !interface.unknown_vectors.is_empty();
        let receiving = self
            .vectors_of(Direction::Rx)
            .filter(|vector| !interface.is_idle(vector))
            .collect_vec();
        let last = receiving.last().and_then(|vector| vector.queue);
        let has_gaps = last.is_some_and(|last| last as usize >= receiving.len());
        let is_alone = || interface.queue_vectors().count() == 1;
        // Off PCI no list of IRQs exists: of several that receive, some names may be unknown.
        let is_listed = receiving.len() <= 1 || is_pci_address(&interface.device.address);
        let wraps = !receiving.is_empty() && interface.has_fact(Fact::QueuesWrap);
        let is_told = has_gaps || wraps || is_alone() || interface.has_more_when_up();
        if !has_unknown && is_listed && is_told {
            return QueueSet::default();
        }
        let is_unserved = |queue: &u32| {
            self.vector_of(Direction::Rx, *queue).is_none()
                && interface.reported_vector(Direction::Rx, *queue).is_none()
        };
        interface
            .rx_queues
            .iter()
            .map(|rx| rx.index)
            .filter(is_unserved)
            .collect()
    }

    pub(crate) fn cpu_of(&self, direction: Direction, queue: u32) -> Option<u32> {
        let vector = self.serving(direction, queue)?;
        let placed = self.placement(vector).map(|placement| placement.cpu);
        // A vector that stays may be on another CPU than its queue's other vector.
        placed
            .filter(|_| vector.movable)
            .or_else(|| self.effective_cpu(vector))
            .or(placed)
    }

    /// Usable CPUs of the driver's hint for one of the vectors, if the policy's scope is `hint`.
    pub(crate) fn hinted_cpus(&self, vectors: &[&Vector]) -> Option<CpuSet> {
        if self.choice.get(&SCOPE) != Scope::Hint {
            return None;
        }
        let cpus = vectors
            .iter()
            .find_map(|vector| self.machine.hints.get(&vector.irq))?
            .intersection(&self.candidates.allowed.unreserved);
        Some(cpus).filter(|cpus| !cpus.is_empty())
    }
}

/// The vector that serves a queue without its own. `vectors` are in the order of `number`, their lowest queue. With
/// gaps in the numbers, as of ice, a vector has consecutive queues; else queues are dealt out in turn.
pub(crate) fn sharing<V>(
    vectors: &[V],
    queue: u32,
    number: impl Fn(&V) -> Option<u32>,
) -> Option<&V> {
    let last = number(vectors.last()?)?;
    vectors.get(if last as usize >= vectors.len() {
        vectors
            .partition_point(|vector| number(vector) <= Some(queue))
            .saturating_sub(1)
    } else {
        queue as usize % vectors.len()
    })
}
