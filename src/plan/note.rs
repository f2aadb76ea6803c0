//! Notes of plans and reports. A note holds data: its text and the command that fixes it are made by the renderer;
//! decisions match on the variant.

pub mod text;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cpuset::{CpuSet, NodeSet};
use crate::machine::others::UnusedFunction;
use crate::machine::tools::{Arguments, OtherTool};
use crate::machine::{Channels, PcieLink, UnknownVector, VmbusChannel};
use crate::policy::Balancer;

/// A note. In JSON an object with `code` (the variant's name), the variant's data, and, where the
/// renderer is built in, `text` and optionally `fix`, the command that fixes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "code", rename_all = "kebab-case")]
pub enum Note {
    /// `/sys` shows the interface from another network namespace: ethtool and netlink were not asked about it.
    OtherNamespace,

    // Nodes and candidate CPUs.
    /// `numa_node` is -1 or a node that the machine does not have, and the node could not be determined otherwise.
    NodeUnknown {
        /// Whether `numa_node` is a node that the machine does not have.
        named: bool,
    },
    /// `numa_node` is a node that the machine does not have.
    NodeMissing { node: u32 },
    /// The interface's node has no usable CPU; the nearest node with one is used.
    NodeWithoutCpus {
        node: u32,
        nearest: NodeSet,
        distance: u32,
    },
    /// Every online CPU is isolated, `nohz_full` or excluded.
    NoUsableCpu { online: CpuSet },
    /// There is no remote node for `--scope remote`.
    NoRemoteNode,
    /// The nodes of `--scope node:N` have no usable CPU; the local node is used.
    ScopeUnusable { nodes: NodeSet },
    /// None of the CPUs that the policy names can be used.
    CpusUnusable {
        wanted: CpuSet,
        /// Those that are offline or excluded; all of `wanted` when the local CPUs are used as a fallback.
        missing: CpuSet,
        used_for: UsedFor,
    },
    /// `--widen`: other nodes of the package take queues.
    Widened {
        queues: usize,
        cores: usize,
        node: u32,
        to: Vec<u32>,
    },
    /// Isolated CPUs take interrupts, because the policy names them or there are no others.
    IsolatedCpusUsed { cpus: CpuSet },
    /// CPUs that a cgroup has alone take interrupts, because the policy names them or there are no others.
    ExclusiveCpusUsed { cpus: CpuSet },
    /// The PCI Express link is slower or narrower than the device and the port above it allow.
    LinkBelow { now: PcieLink, possible: PcieLink },
    /// The policy leaves the interface alone.
    Skipped,

    // Vectors.
    /// The vectors of an interface cannot be read.
    VectorsUnreadable {
        /// The directory that is missing; `None` where only the files of `vectors` are.
        missing: Option<String>,
        vectors: Vec<UnknownVector>,
    },
    /// The vectors' names are not recognized, and no queue vector is known otherwise.
    VectorsNotUnderstood {
        driver: Option<String>,
        vectors: Vec<UnknownVector>,
    },
    /// The names of some vectors are not recognized.
    UnknownVectors { vectors: Vec<UnknownVector> },
    /// Some vectors vanished while they were read.
    VectorsVanished { vectors: Vec<UnknownVector> },
    /// There are no queue vectors.
    NoVectors { because: NoVectors },
    /// The vectors are listed under another interface of the same device.
    VectorsShared {
        owner: String,
        /// Whether `owner` is in this plan.
        planned: bool,
    },
    /// The vectors of this interface include those of others.
    VectorsOfSeveral { others: Vec<String> },
    /// An IRQ that several interfaces share.
    LineShared { irq: u32, owner: String },
    /// Queue vectors that the kernel does not allow to move.
    KernelManaged { vectors: usize },
    /// netlink and the names of vectors disagree.
    SourcesDisagree { contradictions: Vec<String> },
    /// Hyper-V's channels, which have no vectors.
    VmbusChannels {
        device: String,
        channels: Vec<VmbusChannel>,
    },
    /// Queue vectors without a hint from the driver.
    NoHint { vectors: usize },
    /// Queue vectors whose hint holds no usable CPU.
    HintUnusable { vectors: usize },
    /// The driver's hints are not limited to the local node.
    HintIgnoresLocality { driver: String },

    // Queues and channels.
    /// More queues than candidate cores.
    QueuesExceedCores {
        interface: String,
        queues: usize,
        cores: usize,
        /// The node that holds all candidates.
        node: Option<u32>,
        /// Receiving channels with which it takes its share of the cores; `None` where the driver does not report how
        /// many it can have.
        advised: Option<u32>,
        /// Whether the driver does not allow another number.
        fixed: bool,
        /// The number of cores that the policy sets, where the RSS table can leave the other queues out.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        irq_cores: Option<usize>,
    },
    /// RPS is off because the device can have more queues.
    MoreQueuesPossible {
        interface: String,
        queues: usize,
        cores: usize,
        channels: Channels,
        /// Receiving channels with which it takes its share of the cores.
        advised: u32,
    },
    /// CPUs that the policy names for RPS, and that the kernel removes from `rps_cpus`.
    RpsFiltered { cpus: CpuSet },
    /// RPS is off because the machine is small.
    TinyMachine {
        interface: String,
        queues: usize,
        cpus: usize,
        /// CPUs that take no queue.
        others: CpuSet,
    },
    /// Channels that the policy requests and that cannot be set.
    ChannelsUnchanged {
        /// The requested number; `None`: one for each candidate core.
        requested: Option<u32>,
        fixed: bool,
    },
    /// The device can have fewer channels than the policy requests.
    ChannelsAtMost { requested: u32, most: u32 },
    /// The channels differ from the plan, which has this number of receiving ones.
    ChannelsDiffer {
        interface: String,
        wanted: u32,
        why: String,
    },
    /// The RSS table that the policy requests cannot be set.
    RssUnchanged { because: RssUnchanged },
    /// The RSS table sends flows to queues whose vectors the plan cannot move to candidate CPUs.
    RssBeyondCandidates {
        interface: String,
        /// Such queues.
        queues: CpuSet,
        /// Where their vectors are.
        cpus: CpuSet,
        /// Whether a table without them can be planned.
        avoidable: bool,
    },
    /// `xps_rxqs` takes precedence over `xps_cpus`.
    XpsRxqsSet { interface: String, queues: Vec<u32> },

    // The whole machine.
    /// A selector that matches nothing.
    NotPresent { selector: String },
    /// A selector that names something without vectors.
    NoDevice {
        selector: String,
        /// What it is, such as "is the loopback interface".
        what: String,
    },
    /// No interface is up or has vectors.
    NothingToDo,
    /// A rule of the policy that matches no interface.
    RuleUnmatched {
        /// Counted from 1 in the file's order.
        rule: usize,
        /// As in the file: `name = "ens*", node = 1`.
        conditions: String,
    },
    /// Interfaces and network functions that are not in the plan.
    NotPlanned {
        down: Vec<String>,
        functions: Vec<UnusedFunction>,
    },
    /// There are so many cgroups that some were not looked at for CPUs that a cgroup has alone.
    CgroupsLeftOut,
    /// There is no `/proc`.
    NoProc,
    /// There is no `/proc/irq`.
    NoProcIrq,
    /// The machine has one CPU.
    OneCpu,
    /// irqbalance runs.
    IrqbalanceRunning {
        pid: i32,
        action: Balancer,
        /// The number of planned IRQs.
        irqs: usize,
        /// The number of them that it leaves alone since an earlier apply, where it is ignored now.
        left_alone: usize,
        /// Whether its policy script asks nicpin.
        lasts: bool,
        policy_script: Option<String>,
        arguments: Option<Arguments>,
    },
    /// It could not be determined whether irqbalance runs.
    IrqbalanceUnknown {
        /// What this user may not read.
        hidden: String,
        action: Balancer,
    },
    /// A cloud provider's script that sets affinity at boot.
    CloudScript { path: String, writes: String },
    /// tuned runs with a profile that moves interrupts.
    TunedRunning {
        active: String,
        profile: String,
        setting: String,
    },
    /// A `.link` file with `IRQAffinityPolicy=`, by which systemd-udevd sets affinity.
    LinkIrqAffinity { path: String, policy: String },

    // Reports.
    /// Sockets poll (`net.core.busy_read`, `busy_poll`).
    SocketsPoll,
    /// Queues are polled by threads.
    ThreadedNapi {
        interface: String,
        pids: Vec<u32>,
        /// Whether the plan places them; they could not be found, or are kept by the policy.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        placed: bool,
    },
    /// Interrupts are deferred (`napi_defer_hard_irqs`, `gro_flush_timeout`).
    InterruptsDeferred {
        napi_defer_hard_irqs: u32,
        gro_flush_timeout: u64,
    },
    /// The plan was made with options that apply needs, too.
    Options,
    /// CPUs went on or offline during a measurement.
    CpusChanged {
        cpus: CpuSet,
        /// Whether their figures are left out.
        left_out: bool,
    },
    /// A measurement is too short for shares of CPU time.
    Short,
    /// Vectors appeared, vanished or restarted at 0 during a measurement.
    VectorsChanged { irqs: CpuSet },
    /// Interfaces appeared, vanished or reset their counters during a measurement.
    InterfacesChanged { interfaces: Vec<String> },
    /// About the memory of a command that is measured.
    Memory { about: String },
    /// Both sides of a comparison are one node.
    SameNode { node: CpuSet },
    /// The sides of a comparison have different numbers of CPUs.
    CpusUnlike { near: usize, far: usize },
    /// Runs of a comparison, from 1, whose time or throughput is far from that of the others.
    Outliers {
        side: String,
        what: String,
        runs: Vec<usize>,
    },
}

/// The purpose for which a policy names CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UsedFor {
    /// Interrupts.
    Interrupts,
    /// Receive packet steering.
    Rps,
}

/// Why an RSS table is left alone although the policy requests one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RssUnchanged {
    /// The driver reports no table.
    NoTable,
    /// The hash function, by its number, is not known to use the table.
    Function(u8),
    /// No queue's vector is on a candidate CPU.
    NoQueue,
}

/// Why an interface has no queue vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoVectors {
    /// Its device has no vectors of its own.
    OfDevice,
    /// The driver has requested none.
    Requested,
    /// The driver has requested none while the interface is down.
    WhileDown,
}

impl Note {
    /// Whether a selector matched nothing that can be planned.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::NotPresent { .. } | Self::NoDevice { .. })
    }

    /// Whether there are no queue vectors, or they are not recognized or cannot be read.
    pub fn is_unplannable(&self) -> bool {
        matches!(
            self,
            Self::NoVectors { .. }
                | Self::VectorsNotUnderstood { .. }
                | Self::VectorsUnreadable { .. }
        )
    }

    /// The variant's name, as in JSON.
    pub fn code(&self) -> String {
        let object = serde_json::to_value(Data(self)).ok();
        let code = object
            .as_ref()
            .and_then(|object| object.get("code")?.as_str());
        code.unwrap_or_default().to_owned()
    }
}

/// A note as its code and data, without text.
pub(crate) struct Data<'a>(pub(crate) &'a Note);

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Note::serialize(self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Note {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Note::deserialize(deserializer)
    }
}

impl From<&OtherTool> for Note {
    fn from(tool: &OtherTool) -> Self {
        match tool.clone() {
            OtherTool::CloudScript { path, writes } => Self::CloudScript { path, writes },
            OtherTool::Tuned {
                active,
                profile,
                setting,
            } => Self::TunedRunning {
                active,
                profile,
                setting,
            },
            OtherTool::LinkFile { path, policy } => Self::LinkIrqAffinity { path, policy },
        }
    }
}
