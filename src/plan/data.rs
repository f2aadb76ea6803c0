//! The plan as data: the target of each vector and queue, the reasons, the writes and the score. Its JSON form is
//! `nicpin.plan/1`; CPU sets in it are CPU lists.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cpuset::{CpuSet, QueueSet};
use crate::drivers::Taught;
use crate::machine::interface::{effective, is_pci_address, known};
use crate::machine::{Channels, NodeSource, QueueId, Role, Source, WriteKind};
use crate::plan::note::Note;
use crate::plan::objective::Score;
use crate::plan::write::{Planned, Target, Write};
use crate::policy::Balancer;

/// The name and version of the JSON form.
pub const SCHEMA: &str = "nicpin.plan/1";

/// Everything that `apply` would do, with reasons.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: String,
    /// Equal for equal plans on machines of one class: IRQ numbers and current settings do not count.
    pub hash: String,
    /// The hardware class: equal for machines with the same CPUs, nodes, mask width and interfaces, whatever the names,
    /// slots and IRQ numbers of these. Empty in plans of earlier versions.
    #[serde(default)]
    pub class: String,
    pub host: HostSummary,
    /// The selected interfaces, by name.
    pub interfaces: Vec<PlannedInterface>,
    /// Those that are up and cannot be judged, without those whose state is unknown. None in plans of earlier versions.
    #[serde(default)]
    pub not_judged: Vec<String>,
    /// Changes of channels, which are done first. The queues then change, and everything is planned again: the rest of
    /// this plan is for the current queues.
    pub channels: Vec<ChannelChange>,
    /// Settings that differ from the plan, in the order in which they are written.
    pub writes: Vec<Write>,
    /// The number of settings that are as planned.
    pub unchanged: usize,
    /// The CPUs of cores on which something of the network lands, of the planned interfaces and of all others: a queue, an
    /// RDMA vector, a polling thread or RPS work. Not stored: a plan that is read back has none.
    #[serde(skip)]
    pub network_cpus: CpuSet,
    /// What apply does about irqbalance; `None` when it is not running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irqbalance: Option<IrqbalancePlan>,
    /// The score of the planned state.
    pub score: Score,
    /// The score of the current state, by effective CPUs.
    pub score_now: Score,
    /// Notes about the whole machine.
    pub notes: Vec<Note>,
    /// What the policy teaches of drivers: by that the vectors are known.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub drivers: Vec<Taught>,
}

impl Plan {
    /// The plan for the interface of a name.
    pub(crate) fn interface(&self, name: &str) -> Option<&PlannedInterface> {
        self.interfaces.iter().find(|one| one.name == name)
    }

    /// Those of `cpus` that take no interrupts of the planned interfaces.
    pub fn without_interrupts(&self, cpus: &CpuSet) -> CpuSet {
        let taken = self.interfaces.iter().map(|interface| &interface.irq_cpus);
        cpus.difference(&CpuSet::union_of(taken))
    }
}

/// The interfaces that are up and cannot be judged, without those whose state is unknown.
pub(crate) fn not_judged(interfaces: &[PlannedInterface]) -> Vec<String> {
    let up = interfaces.iter().filter(|one| one.link == "up");
    up.filter(|one| !one.is_judged() && !one.notes.iter().any(Note::is_unknown))
        .map(|one| one.name.clone())
        .collect()
}

/// What apply does about irqbalance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IrqbalancePlan {
    pub pid: i32,
    pub action: Balancer,
    /// The IRQs with planned CPUs, which irqbalance would move.
    pub irqs: Vec<u32>,
    /// Whether it also leaves them alone after a restart, because its policy script asks nicpin.
    pub lasts: bool,
}

/// A change of an interface's channels (`ethtool -L`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelChange {
    pub interface: String,
    pub current: Channels,
    pub wanted: Channels,
    /// The equivalent ethtool command.
    pub command: String,
    pub why: String,
}

/// CPUs and nodes of the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSummary {
    /// The host name, where the machine reports one; captures and copies of `/sys` do not. The planner leaves it `None`.
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
    /// NUMA nodes, by id.
    pub nodes: Vec<NodeSummary>,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeSummary {
    pub node: u32,
    /// Online CPUs.
    pub cpus: CpuSet,
    /// Whether the kernel reports that it has no memory.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub without_memory: bool,
}

/// The plan for one interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedInterface {
    pub name: String,
    pub driver: Option<String>,
    /// Address of the bus device behind it, for PCI as `0000:3b:00.0`.
    pub device: String,
    /// Which port of the device it is: its name (`phys_port_name`), else its number (`dev_port`).
    pub port: String,
    /// PCI vendor and device in hex (`15b3:1017`); `None` off PCI.
    pub pci_id: Option<String>,
    /// The physical function, for a virtual one.
    pub parent: Option<String>,
    /// The selectors that matched it other than its name: a bond above it, an RDMA device.
    pub via: Vec<String>,
    /// The local node; `None` when unknown.
    pub node: Option<u32>,
    /// How the node was determined.
    pub node_source: NodeSource,
    /// The device's node, when it has CPUs but none of them can be used, or when it has none and several nodes are as
    /// near; `node` is then another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unused_node: Option<u32>,
    /// The candidate CPUs of its vectors.
    pub candidates: CpuSet,
    /// Cores that have one of them.
    #[serde(default)]
    pub candidate_cores: usize,
    /// The program that its vectors are to be near; absent without one, and where its CPUs are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<PlannedNear>,
    /// Local CPUs that are not candidates.
    pub left_out: Vec<LeftOut>,
    /// The CPUs of exclusive cpuset partitions that the policy leaves out, of all nodes.
    #[serde(skip_serializing_if = "CpuSet::is_empty", default)]
    pub exclusive: CpuSet,
    /// CPUs that take its interrupts under the plan.
    pub irq_cpus: CpuSet,
    /// Local cores on which no queue, RDMA vector, polling thread or RPS work of any interface lands: for programs that use
    /// this one.
    pub worker_cpus: CpuSet,
    /// Link speed in Mbit/s.
    pub speed_mbps: Option<u32>,
    /// Operational state (`operstate`).
    pub link: String,
    /// Current and maximum channels; `None` when the driver does not report them.
    pub channels: Option<Channels>,
    /// Rules of the policy file that matched, counted from 1.
    pub rules: Vec<usize>,
    /// Queue vectors in the order of queues, then control vectors.
    pub vectors: Vec<PlannedVector>,
    pub rx_queues: Vec<PlannedRxQueue>,
    pub tx_queues: Vec<PlannedTxQueue>,
    /// The plan for the RSS indirection table; absent where the device has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss: Option<PlannedRss>,
    /// Whether ntuple filters are to be on, for accelerated RFS; absent: left unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntuple: Option<bool>,
    /// The threads that poll its queues; empty unless NAPI is threaded.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub threads: Vec<PlannedThread>,
    pub notes: Vec<Note>,
}

impl PlannedInterface {
    /// Whether it can be judged: the IRQ of some queue is known and can be moved, and no receive queue, and not all that is
    /// sent, is served by IRQs that are not understood, or of which nothing tells their queues.
    pub fn is_judged(&self) -> bool {
        let is_placeable =
            |vector: &PlannedVector| vector.cpus.is_some() || vector.movable && vector.is_active();
        let is_known = |queue: &PlannedRxQueue| {
            let mut own = self
                .vectors
                .iter()
                .filter(|of| of.queue == Some(queue.queue));
            own.any(|vector| matches!(vector.role, Role::Combined | Role::Rx))
        };
        let is_sender = |vector: &PlannedVector| matches!(vector.role, Role::Combined | Role::Tx);
        let sends = self.tx_queues.is_empty() || self.vectors.iter().any(is_sender);
        // Off PCI nothing lists the IRQs: of several that receive, the names of some may not be known.
        let is_receiver =
            |vector: &&PlannedVector| matches!(vector.role, Role::Combined | Role::Rx);
        let receivers = self.vectors.iter().filter(is_receiver).count();
        let is_partial = receivers > 1 && !is_pci_address(&self.device);
        let has_data = self.vectors.iter().any(|vector| vector.role == Role::Data);
        self.vectors.iter().any(is_placeable)
            && (!(self.has_unknown() || has_data || is_partial)
                || sends && self.rx_queues.iter().all(is_known))
    }

    /// Whether it has IRQs that are not understood, which the plan leaves as they are.
    pub(crate) fn has_unknown(&self) -> bool {
        let mut notes = self.notes.iter();
        notes.any(|note| matches!(note, Note::UnknownVectors { .. }))
    }
}

/// The program that vectors are to be near.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedNear {
    /// As in the policy, `pid:N` or `unit:NAME`; absent where the policy names CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The CPUs that it may use.
    pub cpus: CpuSet,
}

/// Local CPUs that are not candidates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub cpus: CpuSet,
    /// The reason.
    pub why: String,
}

/// The plan for one vector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedVector {
    pub irq: u32,
    /// The name of its handler, as in `/proc/irq/N/`.
    pub action: String,
    pub role: Role,
    /// The number of the queue, or of the RDMA completion vector; `None` for a control vector.
    pub queue: Option<u32>,
    /// How role and queue were determined.
    pub source: Source,
    /// The row of a driver that told the meaning of its name; `None` if netlink or nothing but the order told it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub row: Option<String>,
    /// The node of the vector's device, when that is not the interface's device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// Whether the queue is not in use.
    pub idle: bool,
    /// The planned affinity; `None`: left unchanged.
    pub cpus: Option<CpuSet>,
    /// The current affinity (`smp_affinity`).
    pub affinity: CpuSet,
    /// The current `effective_affinity`; `None` when the kernel does not report it.
    pub effective: Option<CpuSet>,
    /// The CPUs on which its interrupts were counted since boot, where the kernel does not report that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub counted: Option<CpuSet>,
    /// Whether the kernel allows a change of its affinity.
    pub movable: bool,
    /// Its candidate CPUs, where they are not the interface's: those that the driver hints at, or those of another device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidates: Option<CpuSet>,
    /// The placement of its queue; `None` for a vector that the plan does not place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// The reason.
    pub why: Arc<str>,
}

/// The CPU of a queue, with the state in which it was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The CPU; with a group of CPUs, the one that the queue counts for.
    pub cpu: u32,
    /// All CPUs of its core.
    pub core: CpuSet,
    /// Queues on its core before this one.
    pub queues_on_core: usize,
    /// All CPUs of its L3 domain; empty when the kernel reports none.
    pub l3: CpuSet,
    /// Queues on its L3 domain (or on its node, without L3 domains) before this one.
    pub queues_on_l3: usize,
    /// What decided, if not the number of queues on the candidates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<DecidedBy>,
}

impl Placement {
    /// Whether it is as good where it is as anywhere, and the policy wants to change only what is not.
    pub(crate) fn stays_put(&self) -> bool {
        self.decided_by == Some(DecidedBy::Gain)
    }
}

/// What decides on a queue's CPU in place of the number of queues on the candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// The driver's `affinity_hint`.
    Hint,
    /// Another vector of the queue, which cannot be moved.
    Vector,
    /// Another queue on the same IRQ.
    Line,
    /// It is as good where it is, and the policy wants to change only what is not.
    Gain,
}

/// The plan for one receive queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedRxQueue {
    /// N of `rx-N`.
    pub queue: u32,
    /// `rps_cpus`; empty: RPS off, `None`: left unchanged.
    pub rps_cpus: Option<CpuSet>,
    /// `rps_flow_cnt`, its share of the flow table; 0: RFS off, `None`: left unchanged.
    pub rps_flow_cnt: Option<u32>,
    /// The reason.
    pub why: Arc<str>,
}

/// The plan for one transmit queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedTxQueue {
    /// N of `tx-N`.
    pub queue: u32,
    /// `xps_cpus`; `None`: left unchanged.
    pub xps_cpus: Option<CpuSet>,
    /// `xps_rxqs`, the receive queues for whose flows it sends; absent: left unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xps_rxqs: Option<CpuSet>,
    /// The reason.
    pub why: Arc<str>,
}

/// The plan for an RSS indirection table. Queues are lists such as `0-3`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedRss {
    /// The number of its entries.
    pub entries: usize,
    /// The receive queues that it can send flows to.
    pub possible: QueueSet,
    /// Those that it sends flows to now.
    pub now: QueueSet,
    /// Those that it is to send flows to, evenly; `None`: left unchanged.
    pub queues: Option<QueueSet>,
    /// The reason.
    pub why: Arc<str>,
}

/// The plan for a thread that polls queues of an interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedThread {
    /// Its process id, which changes whenever the kernel creates it again.
    pub pid: u32,
    /// The IRQ that wakes it; this and the next three are `None` if that could not be determined.
    pub irq: Option<u32>,
    /// The role of that vector.
    pub role: Option<Role>,
    /// The queue of that vector.
    pub queue: Option<u32>,
    /// How the vector was determined: by netlink, or by the order of NAPI instances.
    pub source: Option<Source>,
    /// Where it is to run; `None`: left unchanged.
    pub cpus: Option<CpuSet>,
    /// Where it may run now.
    pub affinity: CpuSet,
    /// The reason.
    pub why: Arc<str>,
}

impl PlannedInterface {
    /// The settings that the plan has an opinion about.
    #[doc(hidden)]
    pub fn wanted<'a>(&'a self) -> impl Iterator<Item = Planned<'a>> {
        use WriteKind::{NapiThread, Ntuple, Rps, RpsFlow, Rss, Vector, Xps, XpsRxqs};
        let mut all = Vec::new();
        let mut add = |kind, number, target: Option<Target<'a>>, why: &'a str| {
            all.extend(target.map(|target| Planned {
                interface: &self.name,
                kind,
                number,
                target,
                why,
            }));
        };
        let cpus = |cpus: &'a Option<CpuSet>| cpus.as_ref().map(Target::Cpus);
        for of in &self.vectors {
            add(Vector, of.irq, cpus(&of.cpus), &of.why);
        }
        if let Some(of) = &self.rss {
            add(Rss, 0, of.queues.as_ref().map(Target::Spread), &of.why);
        }
        for of in &self.threads {
            add(NapiThread, of.pid, cpus(&of.cpus), &of.why);
        }
        for of in &self.rx_queues {
            let flows = of.rps_flow_cnt.map(Target::Count);
            add(Rps, of.queue, cpus(&of.rps_cpus), &of.why);
            add(RpsFlow, of.queue, flows, "its share of the flow table");
        }
        for of in &self.tx_queues {
            let rxqs = cpus(&of.xps_rxqs);
            add(Xps, of.queue, cpus(&of.xps_cpus), &of.why);
            add(XpsRxqs, of.queue, rxqs, "flows of this receive queue");
        }
        add(Ntuple, 0, self.ntuple.map(Target::On), "accelerated RFS");
        all.into_iter()
    }

    /// The planned CPUs of vectors, threads and queues.
    pub(crate) fn cpus_mut(&mut self) -> impl Iterator<Item = &mut Option<CpuSet>> {
        let vectors = self.vectors.iter_mut().map(|vector| &mut vector.cpus);
        let threads = self.threads.iter_mut().map(|thread| &mut thread.cpus);
        let rx = self.rx_queues.iter_mut().map(|rx| &mut rx.rps_cpus);
        let tx = self.tx_queues.iter_mut().map(|tx| &mut tx.xps_cpus);
        vectors.chain(threads).chain(rx).chain(tx)
    }

    /// The node on which vectors count as local: the device's node, or the nearest one with CPUs.
    pub fn local_node(&self) -> Option<u32> {
        self.unused_node.or(self.node)
    }
}

impl PlannedVector {
    /// What it serves; `None` if that is no queue.
    #[doc(hidden)]
    pub fn queue_id(&self) -> Option<QueueId> {
        self.role.queue_id(self.queue, self.irq)
    }

    /// Whether it is of a queue in use.
    #[doc(hidden)]
    pub fn is_active(&self) -> bool {
        self.role.is_queue() && !self.idle
    }

    /// The effective CPUs; those of the affinity that are online when the kernel does not report them.
    pub(crate) fn effective_cpus(&self, online: &CpuSet) -> Cow<'_, CpuSet> {
        effective(self.reported(), &self.affinity, online)
    }

    /// The same, if it is known which of them the IRQ is on.
    #[doc(hidden)]
    pub fn known_cpus(&self, online: &CpuSet) -> Option<Cow<'_, CpuSet>> {
        known(self.reported(), &self.affinity, online)
    }

    /// What the kernel reports of where it is, or has counted.
    pub(crate) fn reported(&self) -> Option<&CpuSet> {
        self.effective.as_ref().or(self.counted.as_ref())
    }
}
