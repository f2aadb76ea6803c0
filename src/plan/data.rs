//! The plan as data. Its JSON form is `nicpin.plan/1`; CPU sets in it are CPU lists.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::cpuset::{CpuSet, QueueSet};
use crate::drivers::Taught;
use crate::machine::interface::is_pci_address;
use crate::machine::netdev::Direction;
use crate::machine::vector::{HandlerNames, effective, known, settled};
use crate::machine::{Channels, Machine, NodeSource, QueueId, Role, Source};
use crate::plan::note::Note;
use crate::plan::objective::Score;
use crate::plan::why::Why;
use crate::plan::write::Write;
use crate::policy::Balancer;

/// The name and version of the JSON form.
pub const SCHEMA: &str = "nicpin.plan/1";

/// All that `apply` would do, with reasons.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: String,
    /// Equal for equal plans on machines of one class: IRQ numbers and current settings do not count.
    pub hash: String,
    /// Equal for machines with the same CPUs, nodes, mask width and interfaces, whatever their names, slots and IRQ
    /// numbers. Empty in plans of earlier versions.
    #[serde(default)]
    pub class: String,
    pub host: HostSummary,
    /// The selected interfaces, sorted by name.
    pub interfaces: Vec<PlannedInterface>,
    /// Interfaces that are up and cannot be judged, without those whose state is unknown. Empty in plans of earlier
    /// versions.
    #[serde(default)]
    pub not_judged: Vec<String>,
    /// Performed first, and everything is planned again for the new queues: the rest of this plan is for the current
    /// ones.
    pub channels: Vec<ChannelChange>,
    /// Settings that differ from the plan, in the order of execution.
    pub writes: Vec<Write>,
    /// The number of settings that hold their planned value.
    pub unchanged: usize,
    /// The planned size of the flow table (`net.core.rps_sock_flow_entries`). Not stored, but as a write.
    #[serde(skip)]
    pub flow_entries: Option<u32>,
    /// CPUs of cores that take a queue, an RDMA vector, a polling thread or RPS work of any interface, planned or not.
    /// Not stored: empty in a plan that is read back.
    #[serde(skip)]
    pub network_cpus: CpuSet,
    /// Whether the interfaces were selected by name. Not stored.
    #[serde(skip)]
    pub explicit: bool,
    /// `None` if irqbalance is not running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irqbalance: Option<IrqbalancePlan>,
    pub score: Score,
    /// The score of the current state, by effective CPUs, and by affinities that have none of these.
    pub score_now: Score,
    pub notes: Vec<Note>,
    /// The policy's drivers, by which the vectors were recognized.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub drivers: Vec<Taught>,
}

impl Plan {
    pub(crate) fn interface(&self, name: &str) -> Option<&PlannedInterface> {
        self.interfaces
            .iter()
            .find(|interface| interface.name == name)
    }

    pub fn vectors(&self) -> impl Iterator<Item = &PlannedVector> {
        self.interfaces
            .iter()
            .flat_map(|interface| &interface.vectors)
    }

    /// Removes the CPUs that take interrupts of the planned interfaces.
    pub fn without_interrupts(&self, cpus: &CpuSet) -> CpuSet {
        let taken = self.interfaces.iter().map(|interface| &interface.irq_cpus);
        cpus.difference(&CpuSet::union_of(taken))
    }

    /// A queue's IRQ that interfaces share has the affinity that is planned for one of them.
    pub(crate) fn with_shared<'v>(&self, vector: &'v PlannedVector) -> Cow<'v, PlannedVector> {
        if !vector.is_active() || vector.cpus.is_some() {
            return Cow::Borrowed(vector);
        }
        let mut all = self.vectors();
        let owner = all.find(|other| other.irq == vector.irq && other.cpus.is_some());
        Cow::Owned(PlannedVector {
            cpus: owner.and_then(|owner| owner.cpus.clone()),
            ..vector.clone()
        })
    }
}

/// Without Hyper-V's channels while packets arrive on the virtual function below; none on a machine with one CPU, where
/// nothing could be elsewhere.
pub(crate) fn not_judged(host: &HostSummary, interfaces: &[PlannedInterface]) -> Vec<String> {
    let is_layer = |note: &Note| matches!(note, Note::VmbusChannels { interfaces, .. } if !interfaces.is_empty());
    interfaces
        .iter()
        .filter(|_| host.online.len() > 1)
        .filter(|interface| interface.link == "up" && !interface.notes.iter().any(is_layer))
        .filter(|interface| !interface.is_judged() && !interface.is_skipped())
        .filter(|interface| !interface.notes.iter().any(Note::is_unknown))
        .map(|interface| interface.name.clone())
        .collect()
}

/// The planned handling of a running irqbalance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IrqbalancePlan {
    pub pid: i32,
    pub action: Balancer,
    /// The IRQs with planned CPUs, which irqbalance would move.
    pub irqs: Vec<u32>,
    /// Whether irqbalance also leaves the IRQs unchanged after a restart, because its policy script asks nicpin.
    pub lasts: bool,
}

/// A change of an interface's channels (`ethtool -L`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelChange {
    pub interface: String,
    pub current: Channels,
    pub wanted: Channels,
    pub command: String,
    pub why: Why,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSummary {
    /// `None` from the planner, and for captures and copies of `/sys`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub online: CpuSet,
    /// Physical cores with an online CPU; 0 in plans of earlier versions.
    #[serde(default)]
    pub cores: usize,
    /// The kernel's `nr_cpu_ids`.
    pub possible: u32,
    /// `/sys/devices/system/cpu/isolated`.
    pub isolated: CpuSet,
    /// `/sys/devices/system/cpu/nohz_full`.
    pub nohz_full: CpuSet,
    pub nodes: Vec<NodeSummary>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeSummary {
    pub node: u32,
    pub cpus: CpuSet,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub without_memory: bool,
}

/// The plan for one interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedInterface {
    pub name: String,
    pub driver: Option<String>,
    /// Address on the bus, for PCI as `0000:3b:00.0`.
    pub device: String,
    /// `phys_port_name`, else `dev_port`.
    pub port: String,
    /// PCI vendor and device in hex (`15b3:1017`); `None` off PCI.
    pub pci_id: Option<String>,
    /// The physical function of a virtual one.
    pub parent: Option<String>,
    /// Selectors other than its name that matched the interface: a bond above it, an RDMA device.
    pub via: Vec<String>,
    /// The local node; `None` if unknown.
    pub node: Option<u32>,
    pub node_source: NodeSource,
    /// The device's node, if it has CPUs but none is usable, or if it has none and several nodes are equally near;
    /// `node` then differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unused_node: Option<u32>,
    pub candidates: CpuSet,
    #[serde(default)]
    pub candidate_cores: usize,
    /// Absent without a program, or if its CPUs are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<PlannedNear>,
    pub left_out: Vec<LeftOut>,
    /// CPUs of exclusive cpuset partitions on any node, if the policy leaves them out.
    #[serde(skip_serializing_if = "CpuSet::is_empty", default)]
    pub exclusive: CpuSet,
    /// Planned CPUs of queues in use.
    pub irq_cpus: CpuSet,
    /// Local CPUs outside the plan's `network_cpus`, for programs that use the interface.
    pub worker_cpus: CpuSet,
    pub speed_mbps: Option<u32>,
    /// `operstate`.
    pub link: String,
    /// `None` if the driver does not report them.
    pub channels: Option<Channels>,
    /// Rules of the policy file that matched, counted from 1.
    pub rules: Vec<usize>,
    /// Queue vectors in the order of queues, then control vectors.
    pub vectors: Vec<PlannedVector>,
    pub rx_queues: Vec<PlannedRxQueue>,
    /// Receive queues of which no IRQ is known.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub unserved: QueueSet,
    pub tx_queues: Vec<PlannedTxQueue>,
    /// Absent if the device has no indirection table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss: Option<PlannedRss>,
    /// Ntuple filters, which accelerated RFS needs; absent: unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntuple: Option<bool>,
    /// Empty unless NAPI is threaded.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub threads: Vec<PlannedThread>,
    pub notes: Vec<Note>,
}

impl PlannedInterface {
    pub(crate) fn cpus_mut(&mut self) -> impl Iterator<Item = &mut Option<CpuSet>> {
        let vectors = self.vectors.iter_mut().map(|vector| &mut vector.cpus);
        let threads = self.threads.iter_mut().map(|thread| &mut thread.cpus);
        let rx = self.rx_queues.iter_mut().map(|rx| &mut rx.rps_cpus);
        let tx = self.tx_queues.iter_mut().map(|tx| &mut tx.xps_cpus);
        vectors.chain(threads).chain(rx).chain(tx)
    }

    /// Whether an IRQ of a queue is known and movable, one of each receive queue is known, and one of a transmit queue,
    /// if there may be IRQs that are not understood.
    pub fn is_judged(&self) -> bool {
        let is_placeable =
            |vector: &PlannedVector| vector.cpus.is_some() || vector.movable && vector.is_active();
        let serving = |direction| {
            let vectors = self.vectors.iter();
            vectors
                .filter(|vector| vector.role.serves(direction))
                .count()
        };
        let sends = self.tx_queues.is_empty() || serving(Direction::Tx) > 0;
        // Off PCI no list of IRQs exists: where several receive, those that send may be unknown.
        let may_have_more = serving(Direction::Rx) > 1 && !is_pci_address(&self.device)
            || self.has_unknown()
            || self.vectors.iter().any(|vector| vector.role == Role::Data);
        self.vectors.iter().any(is_placeable)
            && self.unserved.is_empty()
            && (sends || !may_have_more)
    }

    /// Whether the policy leaves the interface as it is.
    pub(crate) fn is_skipped(&self) -> bool {
        self.notes.contains(&Note::Skipped)
    }

    pub(crate) fn has_unknown(&self) -> bool {
        self.notes
            .iter()
            .any(|note| matches!(note, Note::UnknownVectors { .. }))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedNear {
    /// As in the policy, `pid:N` or `unit:NAME`; absent if the policy names CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    pub cpus: CpuSet,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub cpus: CpuSet,
    pub why: Why,
}

/// The plan for one vector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedVector {
    pub irq: u32,
    pub action: HandlerNames,
    pub role: Role,
    /// The number of the queue, or of the RDMA completion vector; `None` for a control vector.
    pub queue: Option<u32>,
    pub source: Source,
    /// The driver's row that told the meaning of the name; `None` if netlink or the order told it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub row: Option<String>,
    /// The node of the vector's device, if other than the interface's device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    pub idle: bool,
    /// The planned affinity; `None`: unchanged.
    pub cpus: Option<CpuSet>,
    pub affinity: CpuSet,
    /// `None` if the kernel does not report it.
    pub effective: Option<CpuSet>,
    /// The CPUs on which interrupts were counted since boot, if the kernel does not report the effective ones.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub counted: Option<CpuSet>,
    pub movable: bool,
    /// The vector's own candidate CPUs: by the driver's hint, or of another device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidates: Option<CpuSet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    pub why: Why,
}

/// The CPU of a queue, with the state in which it was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// With a group of CPUs, the one on which the queue is counted.
    pub cpu: u32,
    pub core: CpuSet,
    /// Queues on the core before this one.
    pub queues_on_core: usize,
    /// All CPUs of the L3 domain; empty if the kernel reports none.
    pub l3: CpuSet,
    /// Queues on the L3 domain (or on the node, without L3 domains) before this one.
    pub queues_on_l3: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<DecidedBy>,
}

impl Placement {
    pub(crate) fn stays_put(&self) -> bool {
        self.decided_by == Some(DecidedBy::Gain)
    }
}

/// A fact that decides on a queue's CPU in place of the number of queues on the candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    Hint,
    /// Another vector of the queue, which cannot be moved.
    Vector,
    Line,
    /// The queue's present CPU is as good, and the policy changes only what gains something.
    Gain,
}

/// The plan for one receive queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedRxQueue {
    /// N of `rx-N`.
    pub queue: u32,
    /// `rps_cpus`; empty: RPS off, `None`: unchanged.
    pub rps_cpus: Option<CpuSet>,
    /// `rps_flow_cnt`, the queue's share of the flow table; 0: RFS off, `None`: unchanged.
    pub rps_flow_cnt: Option<u32>,
    pub why: Why,
}

/// The plan for one transmit queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedTxQueue {
    /// N of `tx-N`.
    pub queue: u32,
    /// `xps_cpus`; `None`: unchanged.
    pub xps_cpus: Option<CpuSet>,
    /// `xps_rxqs`, the receive queues for whose flows this queue sends; absent: unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xps_rxqs: Option<CpuSet>,
    pub why: Why,
}

/// The plan for an RSS indirection table. Queues are receive queues, as lists such as `0-3`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedRss {
    pub entries: usize,
    /// Queues that the table can reach.
    pub possible: QueueSet,
    /// Queues that it reaches now.
    pub now: QueueSet,
    /// Queues that are to get the flows evenly; `None`: unchanged.
    pub queues: Option<QueueSet>,
    pub why: Why,
}

/// The plan for a thread that polls queues of an interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedThread {
    /// The process id, which changes whenever the kernel creates the thread again.
    pub pid: u32,
    /// The IRQ that wakes the thread; `None` if unknown, as are `role`, `queue` and `source` then.
    pub irq: Option<u32>,
    pub role: Option<Role>,
    pub queue: Option<u32>,
    /// Whether netlink or the order of NAPI instances told the IRQ.
    pub source: Option<Source>,
    /// The planned CPUs; `None`: unchanged.
    pub cpus: Option<CpuSet>,
    pub affinity: CpuSet,
    pub why: Why,
}

impl PlannedInterface {
    /// The node on which vectors count as local: the device's, or the nearest one with CPUs.
    pub fn local_node(&self) -> Option<u32> {
        self.unused_node.or(self.node)
    }

    /// Online CPUs of the interface's node, or of its `local_cpulist`; `None` if neither is known.
    pub(crate) fn local_cpus(&self, machine: &Machine) -> Option<CpuSet> {
        let topology = &machine.topology;
        let listed = || {
            let is_listed = self.node_source == NodeSource::LocalCpulist;
            let interface = machine.interface(&self.name).filter(|_| is_listed)?;
            let local = interface.device.local_cpus.as_ref()?;
            Some(local.intersection(&topology.online))
        };
        let node = self.local_node().map(|node| topology.cpus_near(node));
        node.or_else(listed)
    }

    /// The CPUs that are local to a vector, by its own node or the interface's; `None` if unknown.
    pub fn local_to(&self, vector: &PlannedVector, machine: &Machine) -> Option<CpuSet> {
        let own = vector.node.map(|node| machine.topology.cpus_near(node));
        own.or_else(|| self.local_cpus(machine))
    }
}

impl PlannedVector {
    #[doc(hidden)]
    pub fn queue_id(&self) -> Option<QueueId> {
        self.role.queue_id(self.queue, self.irq)
    }

    /// Whether the vector serves a queue in use.
    #[doc(hidden)]
    pub fn is_active(&self) -> bool {
        self.role.is_queue() && !self.idle
    }

    /// The effective CPUs; if the kernel does not report them, or moves the IRQ off them at its next interrupt, the online
    /// CPUs of the affinity.
    pub(crate) fn effective_cpus(&self, online: &CpuSet) -> Cow<'_, CpuSet> {
        effective(self.reported(), &self.affinity, online)
    }

    /// The effective CPUs if they are known: reported, counted, or the only CPU of the affinity.
    #[doc(hidden)]
    pub fn known_cpus(&self, online: &CpuSet) -> Option<Cow<'_, CpuSet>> {
        known(self.reported(), &self.affinity, online)
    }

    pub(crate) fn reported(&self) -> Option<&CpuSet> {
        settled(self.effective.as_ref(), &self.affinity).or(self.counted.as_ref())
    }
}
