//! What the reader of a plan or a report should know beside its settings. A note holds data: its sentence and the command
//! that fixes it are made by the renderer, decisions match on the variant.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cpuset::CpuSet;
use crate::machine::others::UnusedFunction;
use crate::machine::tools::{Arguments, OtherTool};
use crate::machine::{Channels, UnknownVector, VmbusChannel};
use crate::policy::Balancer;

/// Something to know. In JSON an object with `code` (the variant's name), the variant's data, and where the renderer is
/// built in `text` and, if there is one, `fix`: the command that fixes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "code", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Note {
    // Where an interface may be placed.
    /// `numa_node` is -1, or names a node that the machine does not have, and nothing else tells the node.
    NodeUnknown {
        /// Whether `numa_node` names a node that the machine does not have.
        named: bool,
    },
    /// `numa_node` names a node that the machine does not have.
    NodeMissing {
        /// That node.
        node: u32,
    },
    /// The interface's node has no CPU to use; another node stands in for it.
    NodeWithoutCpus { node: u32, nearest: u32, distance: u32 },
    /// Every online CPU is isolated, nohz_full or excluded.
    NoUsableCpu { online: CpuSet },
    /// There is no other node for `--scope remote`.
    NoRemoteNode,
    /// None of the CPUs that the policy names can be used.
    CpusUnusable {
        wanted: CpuSet,
        /// Those that are offline or excluded; all of `wanted` when the node's own CPUs are used instead.
        missing: CpuSet,
        /// What the policy names them for.
        used_for: UsedFor,
    },
    /// `--widen`: other nodes of the package take queues.
    Widened { queues: usize, cores: usize, node: u32, to: Vec<u32> },
    /// Isolated CPUs take interrupts, because the policy says so.
    IsolatedCpusUsed { cpus: CpuSet },
    /// The policy leaves the interface alone.
    Skipped,

    // Vectors.
    /// The vectors of an interface cannot be read.
    VectorsUnreadable {
        /// The directory that is missing; `None` where only the files of `vectors` are.
        missing: Option<String>,
        vectors: Vec<UnknownVector>,
    },
    /// The vectors' names are not known to nicpin, and no queue vector is known otherwise.
    VectorsNotUnderstood { driver: Option<String>, vectors: Vec<UnknownVector> },
    /// Some vectors' names are not known to nicpin.
    UnknownVectors { vectors: Vec<UnknownVector> },
    /// Some vectors went away while they were read.
    VectorsVanished { vectors: Vec<UnknownVector> },
    /// There are no queue vectors.
    NoVectors { because: NoVectors },
    /// The vectors are listed under another interface of the same device.
    VectorsShared {
        owner: String,
        /// Whether that one is in this plan.
        planned: bool,
    },
    /// The vectors of other interfaces are among this one's.
    VectorsOfSeveral { others: Vec<String> },
    /// One interrupt line of several interfaces.
    LineShared { irq: u32, owner: String },
    /// Queue vectors that the kernel does not let be moved.
    KernelManaged { vectors: usize },
    /// netlink and the names of vectors differ.
    SourcesDisagree { contradictions: Vec<String> },
    /// Hyper-V's channels, which have no vectors.
    VmbusChannels { device: String, channels: Vec<VmbusChannel> },
    /// Queue vectors without a hint from the driver.
    NoHint { vectors: usize },
    /// Queue vectors whose hint names no CPU to use.
    HintUnusable { vectors: usize },
    /// The driver's hints do not keep to the node.
    HintIgnoresLocality { driver: String },

    // Queues and channels.
    /// More queues than candidate cores.
    QueuesExceedCores {
        interface: String,
        queues: usize,
        cores: usize,
        /// The node that holds all candidates.
        node: Option<u32>,
        channels: Option<Channels>,
        /// Whether the driver takes no other number.
        fixed: bool,
    },
    /// RPS is off because the device can have more queues.
    MoreQueuesPossible { interface: String, queues: usize, cores: usize, channels: Channels },
    /// RPS is off because the machine is small.
    TinyMachine {
        interface: String,
        queues: usize,
        cpus: usize,
        /// CPUs that take no queue.
        others: CpuSet,
    },
    /// Channels that the policy asks for and the driver does not take.
    ChannelsUnchanged {
        /// How many; `None` for one for each candidate core.
        asked: Option<u32>,
        fixed: bool,
    },
    /// Fewer channels than the policy asks for.
    ChannelsAtMost { asked: u32, most: u32 },
    /// The channels differ from the plan.
    ChannelsDiffer { why: String, command: String },
    /// `xps_rxqs` goes before `xps_cpus`.
    XpsRxqsSet { interface: String, queues: Vec<u32> },

    // The whole machine.
    /// A selector that matches nothing.
    NotPresent { selector: String },
    /// A selector that names something without vectors.
    NoDevice {
        selector: String,
        /// What it is, as in "is the loopback interface".
        what: String,
    },
    /// No interface is up or has vectors.
    NothingToDo,
    /// Interfaces and network functions that are not in the plan.
    NotPlanned { down: Vec<String>, functions: Vec<UnusedFunction> },
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
        /// How many IRQs are planned.
        irqs: usize,
        /// How many of them an earlier apply has had it leave alone, where it is ignored now.
        left_alone: usize,
        /// Whether its policy script asks nicpin.
        lasts: bool,
        policy_script: Option<String>,
        arguments: Option<Arguments>,
    },
    /// A cloud's script that sets affinity at boot.
    CloudScript { path: String, writes: String },
    /// tuned runs with a profile that moves interrupts.
    TunedRunning { active: String, profile: String, setting: String },
    /// A `.link` file has systemd-udevd set affinity.
    LinkIrqAffinity { path: String, policy: String },

    // Reports.
    /// Sockets poll (`net.core.busy_read`, `busy_poll`).
    SocketsPoll,
    /// Queues are polled by threads.
    ThreadedNapi { interface: String, pids: Vec<u32> },
    /// Interrupts are put off while somebody polls.
    InterruptsDeferred { napi_defer_hard_irqs: u32, gro_flush_timeout: u64 },
    /// The report is by options that apply needs, too.
    Options,
    /// CPUs went on or offline during a measurement.
    CpusChanged {
        cpus: CpuSet,
        /// Whether what they did is left out.
        left_out: bool,
    },
    /// A measurement is too short for shares of CPU time.
    Short,
    /// Vectors came, went or began anew during a measurement.
    VectorsChanged { irqs: CpuSet },
    /// Interfaces came, went or began to count anew during a measurement.
    InterfacesChanged { interfaces: Vec<String> },
    /// About the memory of a command that is measured.
    Memory { about: String },
    /// Both sides of a comparison are one node.
    SameNode { node: CpuSet },
    /// The sides of a comparison have different numbers of CPUs.
    CpusUnlike { near: usize, far: usize },
}

/// What a policy names CPUs for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UsedFor {
    /// Interrupts.
    Interrupts,
    /// Receive packet steering.
    Rps,
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
    /// Whether something that was named is not there.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::NotPresent { .. } | Self::NoDevice { .. })
    }

    /// Whether there are no vectors to plan, or none that are understood or can be read.
    pub fn is_unplannable(&self) -> bool {
        matches!(
            self,
            Self::NoVectors { .. } | Self::VectorsNotUnderstood { .. } | Self::VectorsUnreadable { .. }
        )
    }

    /// The variant's name, as in JSON.
    pub fn code(&self) -> String {
        let object = serde_json::to_value(Data(self)).ok();
        let code = object.as_ref().and_then(|object| object.get("code")?.as_str());
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

/// With the renderer built in, this is `render::note`'s, which adds the text.
#[cfg(not(feature = "cli"))]
impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Note::serialize(self, serializer)
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
            OtherTool::Tuned { active, profile, setting } => Self::TunedRunning { active, profile, setting },
            OtherTool::LinkFile { path, policy } => Self::LinkIrqAffinity { path, policy },
        }
    }
}
