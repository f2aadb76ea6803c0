//! The plan as data: what each vector and queue should be, why, what has to be written for it, and how good
//! the result is. Its JSON form is `nicpin.plan/1`; CPU sets in it are CPU lists.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::machine::paths::affinity_file;
use crate::machine::paths::queue_file;
use crate::machine::{Channels, Role, Source};
use crate::plan::note::Note;
use crate::plan::value::WriteValue;
use crate::policy::Balancer;

/// The name and version of the JSON form.
pub const SCHEMA: &str = "nicpin.plan/1";

/// Everything that `apply` would do, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: String,
    /// The same for the same plan on the same class of machine: IRQ numbers and present values do not count.
    pub hash: String,
    /// The machine in short.
    pub host: HostSummary,
    /// The selected interfaces, by name.
    pub interfaces: Vec<PlannedInterface>,
    /// Cards whose channels have to be changed first. Their queues are then others, and everything is planned
    /// anew: the rest of this plan is for the queues that are there now.
    pub channels: Vec<ChannelChange>,
    /// What differs from the plan now, in the order in which it is written.
    pub writes: Vec<Write>,
    /// How many planned values are as planned already.
    pub unchanged: usize,
    /// What becomes of irqbalance; `None` where it does not run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub irqbalance: Option<IrqbalancePlan>,
    /// How good the planned state is.
    pub score: Score,
    /// How good the present state is, by where vectors are served.
    pub score_now: Score,
    /// What concerns the whole machine.
    pub notes: Vec<Note>,
}

impl Plan {
    /// Those of the CPUs that take no interrupt of an interface of this plan.
    pub fn without_interrupts(&self, cpus: &CpuSet) -> CpuSet {
        self.interfaces.iter().fold(cpus.clone(), |left, interface| left.difference(&interface.irq_cpus))
    }
}

/// What apply does about irqbalance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IrqbalancePlan {
    /// Its process id.
    pub pid: i32,
    /// What is done.
    pub action: Balancer,
    /// The IRQs that it would move: those for which the plan has CPUs.
    pub irqs: Vec<u32>,
    /// Whether it leaves them alone after it was restarted, too: its policy script asks nicpin.
    pub lasts: bool,
}

/// A card that should have another number of channels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelChange {
    /// The interface.
    pub interface: String,
    /// The channels that it has.
    pub current: Channels,
    /// The channels that it should have.
    pub wanted: Channels,
    /// The command that does the same.
    pub command: String,
    /// Why.
    pub why: String,
}

/// The machine in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostSummary {
    /// CPUs that run.
    pub online: CpuSet,
    /// The kernel's `nr_cpu_ids`.
    pub possible: u32,
    /// CPUs taken out of scheduling.
    pub isolated: CpuSet,
    /// CPUs without a timer tick.
    pub nohz_full: CpuSet,
    /// NUMA nodes by id.
    pub nodes: Vec<NodeSummary>,
}

/// A NUMA node in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeSummary {
    /// Its id.
    pub node: u32,
    /// Its online CPUs.
    pub cpus: CpuSet,
}

/// The plan for one interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedInterface {
    /// Its name.
    pub name: String,
    /// Its driver.
    pub driver: Option<String>,
    /// The bus device behind it.
    pub device: String,
    /// The physical function that the device is a virtual function of.
    pub parent: Option<String>,
    /// What it was selected by, where that is not its own name: a bond above it, an RDMA device.
    pub via: Vec<String>,
    /// The node that counts as its own; `None` when unknown.
    pub node: Option<u32>,
    /// How that node is known.
    pub node_source: NodeSource,
    /// The card's node, where that has CPUs and none of them may be used: then `node` is another.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unused_node: Option<u32>,
    /// Where its vectors may go.
    pub candidates: CpuSet,
    /// CPUs near the card that are no candidates, and why not.
    pub left_out: Vec<LeftOut>,
    /// CPUs that take its interrupts.
    pub irq_cpus: CpuSet,
    /// CPUs of its node that take no interrupt of any planned interface: for the applications that use it.
    pub worker_cpus: CpuSet,
    /// Link speed in Mbit/s.
    pub speed_mbps: Option<u32>,
    /// Operational state (`operstate`).
    pub link: String,
    /// Channels that the card has and could have, where known.
    pub channels: Option<Channels>,
    /// Rules of the policy file that matched, counted from 1.
    pub rules: Vec<usize>,
    /// Its vectors: queues in order, then control vectors.
    pub vectors: Vec<PlannedVector>,
    /// Its receive queues.
    pub rx_queues: Vec<PlannedRxQueue>,
    /// Its transmit queues.
    pub tx_queues: Vec<PlannedTxQueue>,
    /// What its owner should know.
    pub notes: Vec<Note>,
}

/// CPUs that are no candidates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The CPUs.
    pub cpus: CpuSet,
    /// Why not.
    pub why: String,
}

/// How an interface's node is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeSource {
    /// The device's `numa_node`.
    NumaNode,
    /// The device's `local_cpulist`, smaller than all CPUs.
    LocalCpulist,
    /// The node nearest to the device's own, which has no CPU to use.
    Nearest,
    /// There is only one node with CPUs.
    #[serde(rename = "single-node")]
    SingleNode,
    /// The policy names CPUs, all of one node.
    Policy,
    /// It is not known.
    Unknown,
}

/// The plan for one vector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedVector {
    /// Its IRQ number now.
    pub irq: u32,
    /// Its handler's name.
    pub action: String,
    /// What it does.
    pub role: Role,
    /// Its queue; `None` for a control vector.
    pub queue: Option<u32>,
    /// Where role and queue were learned.
    pub source: Source,
    /// The node of the device that raises it, where that is another device than the interface's own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub node: Option<u32>,
    /// Whether the queue is not in use.
    pub idle: bool,
    /// Where the plan wants it; `None`: left alone.
    pub cpus: Option<CpuSet>,
    /// The allowed CPUs now.
    pub affinity: CpuSet,
    /// The effective CPU now, where the kernel tells.
    pub effective: Option<CpuSet>,
    /// Whether the kernel lets it be moved.
    pub movable: bool,
    /// The placement that its queue was given; `None` for a vector that the plan does not place.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub placement: Option<Placement>,
    /// Why it goes there.
    pub why: Arc<str>,
}

/// A CPU as it was when a queue was given it, in words that explain why it was this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The CPU; with a group of CPUs the one of them that the queue counts for.
    pub cpu: u32,
    /// The CPUs of its core.
    pub core: CpuSet,
    /// Queues that its core had before.
    pub queues_on_core: usize,
    /// The CPUs of its L3 domain; empty where none is told.
    pub l3: CpuSet,
    /// Queues that its L3 domain (or its node, where no domain is told) had before.
    pub queues_on_l3: usize,
    /// What decided, if it was not the room that the candidates had.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub decided_by: Option<DecidedBy>,
}

/// What decides on a queue's CPU in place of the room that the candidates have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// The driver's hint.
    Hint,
    /// Another vector of the queue, which stays where it is.
    Vector,
    /// An interrupt line that it shares.
    Line,
}

/// The plan for one receive queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedRxQueue {
    /// N of `rx-N`.
    pub queue: u32,
    /// CPUs that it hands packets to; empty is RPS off, `None` left alone.
    pub rps_cpus: Option<CpuSet>,
    /// Its share of the flow table; 0 is RFS off, `None` left alone.
    pub rps_flow_cnt: Option<u32>,
    /// Why.
    pub why: Arc<str>,
}

/// The plan for one transmit queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedTxQueue {
    /// N of `tx-N`.
    pub queue: u32,
    /// CPUs that send on it; `None`: left alone.
    pub xps_cpus: Option<CpuSet>,
    /// Why.
    pub why: Arc<str>,
}

/// One value for one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// What kind of setting it is.
    pub kind: WriteKind,
    /// The file, from `/` whatever the root.
    pub path: String,
    /// The bytes that go into it, without a newline: a mask as wide as the file is now, or a number.
    pub value: WriteValue,
    /// What it holds now.
    pub current: Arc<str>,
    /// The interface; empty for a setting of the whole machine.
    pub interface: Arc<str>,
    /// Why.
    pub why: Arc<str>,
}

/// What a write sets, in the order in which writes are performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteKind {
    /// A vector's allowed CPUs.
    Vector,
    /// A receive queue's RPS CPUs.
    Rps,
    /// A receive queue's share of the flow table.
    RpsFlow,
    /// A transmit queue's CPUs.
    Xps,
    /// A setting of the whole machine.
    Sysctl,
}

impl WriteKind {
    /// Whether the file holds a mask of CPUs, and not a number.
    pub fn is_mask(self) -> bool {
        matches!(self, Self::Vector | Self::Rps | Self::Xps)
    }
}

/// What a plan wants in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannedValue<'a> {
    /// A mask of these CPUs.
    Cpus(&'a CpuSet),
    /// A number.
    Count(u32),
}

impl PlannedValue<'_> {
    /// Whether a text of the file means this.
    pub(crate) fn is(self, text: &str) -> bool {
        match self {
            Self::Cpus(cpus) => CpuSet::parse_kernel_mask(text).is_ok_and(|held| held == *cpus),
            Self::Count(count) => text.trim().parse() == Ok(count),
        }
    }
}

/// How well vectors lie.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Share of active queue vectors on their interface's node; `None` when no node is known.
    pub local: Option<f64>,
    /// Most active queues on one core. A queue's receive and transmit vectors on one CPU count once.
    pub max_vectors_per_core: usize,
    /// Fewest active queues on a candidate core.
    pub min_vectors_per_core: usize,
    /// Cores of which more than one thread takes queues.
    pub smt_collisions: usize,
    /// Vectors on isolated or `nohz_full` CPUs; idle ones do not count.
    pub on_isolated: usize,
    /// Cores that take queues of more than one interface.
    pub shared_cores: usize,
}

impl PlannedInterface {
    /// The files of this interface that the plan has an opinion on, in the order of its vectors and queues, and what
    /// it wants in each.
    pub fn wanted(&self) -> Vec<(WriteKind, String, PlannedValue<'_>)> {
        let queue = |way: &str, queue: u32, file: &str| queue_file(&self.name, way, queue, file);
        let mut files = Vec::new();
        for vector in &self.vectors {
            let cpus = vector.cpus.as_ref().map(PlannedValue::Cpus);
            files.extend(cpus.map(|cpus| (WriteKind::Vector, affinity_file(vector.irq), cpus)));
        }
        for rx in &self.rx_queues {
            let cpus = rx.rps_cpus.as_ref().map(PlannedValue::Cpus);
            files.extend(cpus.map(|cpus| (WriteKind::Rps, queue("rx", rx.queue, "rps_cpus"), cpus)));
            let count = rx.rps_flow_cnt.map(PlannedValue::Count);
            files.extend(
                count.map(|count| (WriteKind::RpsFlow, queue("rx", rx.queue, "rps_flow_cnt"), count)),
            );
        }
        for tx in &self.tx_queues {
            let cpus = tx.xps_cpus.as_ref().map(PlannedValue::Cpus);
            files.extend(cpus.map(|cpus| (WriteKind::Xps, queue("tx", tx.queue, "xps_cpus"), cpus)));
        }
        files
    }
}

impl PlannedInterface {
    /// The node on which its vectors are local: the card's own, or the nearest to that if it has no CPUs.
    pub fn local_node(&self) -> Option<u32> {
        self.unused_node.or(self.node)
    }
}

impl PlannedVector {
    /// Where it is served now; the allowed CPUs where the kernel does not tell.
    pub fn effective_cpus(&self) -> &CpuSet {
        self.effective.as_ref().unwrap_or(&self.affinity)
    }
}
