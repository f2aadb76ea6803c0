//! An interface while it is planned, and which interfaces take part.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::cpuset::CpuSet;
use crate::machine::netdev::Direction;
use crate::machine::{Interface, Machine, Role, Selection, Vector};
use crate::plan::candidates::{Candidates, candidates};
use crate::plan::data::Placement;
use crate::plan::note::Note;
use crate::plan::objective::weights;
use crate::plan::place::Locations;
use crate::policy::{Choice, GROUP, Group, Policy, SIBLINGS, SKIP};

/// What the plan of one interface takes from all that take part, chosen or not.
pub(crate) struct Context<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) locations: &'a Locations,
    pub(crate) selection: &'a Selection,
    /// All that take part, in the machine's order.
    pub(crate) works: &'a [Work<'a>],
    /// Receive queues over which a flow table is sized.
    pub(crate) flow_queues: usize,
    /// CPUs that take a queue of any interface, or an RDMA vector.
    pub(crate) loaded: CpuSet,
    /// The same with their siblings.
    pub(crate) busy_cores: CpuSet,
    /// Whether there are RDMA vectors.
    pub(crate) has_rdma: bool,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        machine: &'a Machine,
        locations: &'a Locations,
        selection: &'a Selection,
        works: &'a [Work<'a>],
    ) -> Self {
        let mut loaded = CpuSet::union_of(works.iter().map(|work| &work.irq_cpus));
        let mut has_rdma = false;
        for work in works {
            for vector in work
                .interface
                .vectors
                .iter()
                .filter(|vector| vector.role == Role::Rdma)
            {
                has_rdma = true;
                loaded.add(&work.cpus_of(machine, vector));
            }
        }
        let taken = machine
            .topology
            .cores
            .iter()
            .filter(|core| core.intersects(&loaded));
        let busy_cores = CpuSet::union_of(taken);
        let flow_queues = works
            .iter()
            .map(|work| work.interface.rx_queues.len())
            .sum();
        Self {
            machine,
            locations,
            selection,
            works,
            flow_queues,
            loaded,
            busy_cores,
            has_rdma,
        }
    }
}

/// An interface while it is planned.
pub(crate) struct Work<'a> {
    pub(crate) interface: &'a Interface,
    /// The vectors of its queues, sorted by queue.
    by_queue: Vec<&'a Vector>,
    /// The number of its queues that are in use and have a vector.
    pub(crate) active_queues: usize,
    /// Index in the machine's list.
    pub(crate) order: usize,
    /// What each of its queues weighs.
    pub(crate) weight: u64,
    pub(crate) choice: Choice,
    /// Whether it stays as it is: by the policy, or because the policy cannot be met.
    pub(crate) skip: bool,
    pub(crate) group: Option<Group>,
    pub(crate) candidates: Candidates,
    /// Candidate CPUs by the node of the vectors' device, if vectors belong to devices on several nodes; else empty.
    /// `None` is the interface's own device. `candidates` then holds all of them.
    pub(crate) by_node: BTreeMap<Option<u32>, CpuSet>,
    /// The CPU of each queue, by queue number; idle queues included.
    pub(crate) cpus: BTreeMap<u32, Placement>,
    /// The target CPU of RDMA vectors, and of control vectors that have to leave an isolated CPU, by IRQ.
    pub(crate) others: BTreeMap<u32, u32>,
    /// The CPUs that take its active queues.
    pub(crate) irq_cpus: CpuSet,
    /// IRQs that are shared with and planned for another interface, and its name.
    pub(crate) shared: BTreeMap<u32, &'a str>,
}

impl<'a> Work<'a> {
    /// The vectors of a queue.
    pub(crate) fn vectors_of(&self, queue: u32) -> &[&'a Vector] {
        let start = self
            .by_queue
            .partition_point(|vector| vector.queue < Some(queue));
        let end = self
            .by_queue
            .partition_point(|vector| vector.queue <= Some(queue));
        &self.by_queue[start..end]
    }

    /// The queues that have vectors, in order, each with its vectors.
    pub(crate) fn queues(&self) -> impl Iterator<Item = (u32, &[&'a Vector])> {
        queues(&self.by_queue)
    }

    /// The planned affinity of a vector; `None`: left unchanged.
    pub(crate) fn target(&self, machine: &Machine, vector: &Vector) -> Option<CpuSet> {
        if !vector.movable || self.skip || self.shared.contains_key(&vector.irq) {
            return None;
        }
        let cpu = match vector.queue.filter(|_| vector.is_queue_vector()) {
            Some(queue) => self.cpus.get(&queue)?.cpu,
            None => *self.others.get(&vector.irq)?,
        };
        Some(
            match self.group.as_ref().filter(|_| vector.role != Role::Control) {
                None => CpuSet::single(cpu),
                // The candidates are this group without offline and excluded CPUs.
                Some(Group::Cpus(_)) => self.candidates.cpus.clone(),
                Some(Group::L3) => {
                    let domain = machine
                        .topology
                        .l3_domains
                        .iter()
                        .find(|domain| domain.contains(cpu));
                    domain.map_or(CpuSet::single(cpu), |domain| {
                        domain.intersection(self.candidates_of(vector))
                    })
                }
            },
        )
    }

    /// The number of cores in a set; of CPUs, where siblings count as cores.
    pub(crate) fn core_count(&self, locations: &Locations, cpus: &CpuSet) -> usize {
        if self.choice.get(&SIBLINGS) {
            cpus.len()
        } else {
            locations.cores_in(cpus)
        }
    }

    /// The CPUs that take its active queues under the plan.
    pub(crate) fn cpus_of_queues(&self, machine: &Machine) -> CpuSet {
        let active = self
            .interface
            .vectors
            .iter()
            .filter(|v| v.is_queue_vector() && !self.interface.is_idle(v));
        CpuSet::union_of(active.map(|vector| self.cpus_of(machine, vector)))
    }

    /// The CPUs that take a vector under the plan.
    pub(crate) fn cpus_of(&self, machine: &Machine, vector: &Vector) -> CpuSet {
        let stays = || effective_cpu(vector).into_iter().collect();
        self.target(machine, vector).unwrap_or_else(stays)
    }

    /// The candidate CPUs of a vector.
    pub(crate) fn candidates_of(&self, vector: &Vector) -> &CpuSet {
        self.by_node
            .get(&vector.node)
            .unwrap_or(&self.candidates.cpus)
    }

    /// The planned CPU of a receive or transmit queue: that of its vector, or of the vector that it shares when there
    /// are more queues than vectors.
    pub(crate) fn cpu_of(&self, role: Role, queue: u32) -> Option<u32> {
        let with = |vector: &&Vector| vector.role == role || vector.role == Role::Combined;
        let vectors = || self.interface.vectors.iter().filter(with);
        let own = self.vectors_of(queue).iter().copied().find(with);
        let by_netlink = || {
            let direction = if role == Role::Tx {
                Direction::Tx
            } else {
                Direction::Rx
            };
            let irq = self.interface.netdev.as_ref()?.irq_of(direction, queue)?;
            self.interface
                .vectors
                .iter()
                .find(|vector| vector.irq == irq)
        };
        let shared = || vectors().nth(queue as usize % vectors().count().max(1));
        let vector = own.or_else(by_netlink).or_else(shared)?;
        self.cpus.get(&vector.queue?).map(|taken| taken.cpu)
    }
}

/// The interfaces that take part: those that are planned by default, and those that are selected.
pub(crate) fn works<'a>(
    machine: &'a Machine,
    policy: &Policy,
    selection: &Selection,
) -> Vec<Work<'a>> {
    let takes_part = |interface: &Interface| {
        selection.names.contains(&interface.name)
            || interface.vectors.iter().any(Vector::is_queue_vector)
    };
    let with_choice = machine
        .interfaces
        .iter()
        .enumerate()
        .filter(|(_, interface)| takes_part(interface));
    let weights = weights(machine);
    let mut works: Vec<Work<'a>> = with_choice
        .map(|(order, interface)| {
            let choice = policy.choice(machine, interface);
            let by_queue = by_queue(interface);
            let is_active =
                |vectors: &[&Vector]| vectors.iter().any(|vector| !interface.is_idle(vector));
            let active_queues = queues(&by_queue)
                .filter(|(_, vectors)| is_active(vectors))
                .count();
            let mut candidates = candidates(machine, interface, &choice, active_queues);
            let by_node = by_node(machine, interface, &choice, &candidates, active_queues);
            candidates.cpus = by_node
                .values()
                .fold(candidates.cpus, |all, cpus| all.union(cpus));
            let skip = choice.get(&SKIP);
            candidates.notes.retain(|note| !skip || !note.is_unmet());
            Work {
                interface,
                by_queue,
                active_queues,
                order,
                weight: weights[order],
                skip: skip || candidates.notes.iter().any(Note::is_unmet),
                group: choice.get(&GROUP),
                choice,
                candidates,
                by_node,
                cpus: BTreeMap::new(),
                others: BTreeMap::new(),
                irq_cpus: CpuSet::new(),
                shared: BTreeMap::new(),
            }
        })
        .collect();
    // The order is by properties of the hardware only, so that it is the same at every boot.
    works.sort_by(|a, b| {
        let key = |work: &Work<'_>| (Reverse(work.weight), work.candidates.cpus.len());
        let address = |work: &Work<'a>| {
            let interface = work.interface;
            (&interface.device.address, interface.port, work.order)
        };
        key(a)
            .cmp(&key(b))
            .then_with(|| address(a).cmp(&address(b)))
    });
    let mut owners: BTreeMap<u32, &'a str> = BTreeMap::new();
    for work in works.iter_mut().filter(|work| !work.skip) {
        for vector in &work.interface.vectors {
            let owner = owners.entry(vector.irq).or_insert(&work.interface.name);
            if *owner != work.interface.name {
                work.shared.insert(vector.irq, owner);
            }
        }
    }
    works
}

fn by_queue(interface: &Interface) -> Vec<&Vector> {
    let has_queue = |vector: &&Vector| vector.is_queue_vector() && vector.queue.is_some();
    let mut vectors: Vec<&Vector> = interface.vectors.iter().filter(has_queue).collect();
    vectors.sort_by_key(|vector| vector.queue);
    vectors
}

/// The queues of vectors that are sorted by queue, each with its vectors.
fn queues<'v, 'a>(by_queue: &'v [&'a Vector]) -> impl Iterator<Item = (u32, &'v [&'a Vector])> {
    let queues = by_queue.chunk_by(|a, b| a.queue == b.queue);
    queues.filter_map(|vectors| Some((vectors.first()?.queue?, vectors)))
}

/// Candidates for the vectors of each device, where an interface has devices on several nodes (a network card with a PCI
/// function on each socket).
fn by_node(
    machine: &Machine,
    interface: &Interface,
    choice: &Choice,
    own: &Candidates,
    queues: usize,
) -> BTreeMap<Option<u32>, CpuSet> {
    let mut by_node: BTreeMap<Option<u32>, CpuSet> = BTreeMap::new();
    for node in interface.vectors.iter().filter_map(|vector| vector.node) {
        by_node.entry(Some(node)).or_insert_with(|| {
            let mut there = interface.clone();
            there.device.node = Some(node);
            there.device.local_cpus = None;
            candidates(machine, &there, choice, queues).cpus
        });
    }
    if !by_node.is_empty() {
        by_node.insert(None, own.cpus.clone());
    }
    by_node
}

/// The effective CPU of a vector, if the kernel reports it or the affinity is a single CPU.
pub(crate) fn effective_cpu(vector: &Vector) -> Option<u32> {
    match &vector.effective {
        Some(cpus) => cpus.first(),
        None if vector.affinity.cpus.len() == 1 => vector.affinity.cpus.first(),
        None => None,
    }
}
