//! Notes of plans and reports: facts that a person should know, as data. Decisions match on the variant; the text is
//! for people.

mod because;
mod json;
mod text;

pub use because::{Found, NoVectors, RssUnchanged, UsedFor};
use itertools::Itertools as _;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::cpuset::{CpuSet, IrqSet, NodeSet, QueueSet};
use crate::machine::netdev::QueueUser;
use crate::machine::others::{Arguments, UnusedFunction};
use crate::machine::wording::{count, cpu_list, few, one_or};
use crate::machine::{Channels, PcieLink, UnknownVector, VmbusChannel};
use crate::plan::note::text::{
    FLAP, by_controller, channels, cpus_unusable, data_vectors, irqbalance, near, not_planned,
    processes, queues_exceed_cores, sources_disagree, unknown_vectors, vectors_unreadable,
    vectors_vanished, vmbus,
};
use crate::plan::why::Why;
use crate::policy::Balancer;

/// The alternate form (`{:#}`) prints lists in full, the other a few elements. In JSON an object with `code` (the
/// variant's name), the variant's data, `text`, and `fix` if there is advice.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "code", rename_all = "kebab-case")]
pub enum Note {
    #[error(
        "/sys shows it from another network namespace: its channels and what netlink reports of its queues are unknown"
    )]
    OtherNamespace,
    #[error(
        "its name is not UTF-8 text without white space and control characters, so nothing of it can be read: rename it"
    )]
    NameUnreadable,
    #[error(
        "no interface here: which queues its IRQs serve is not known, and they are placed after those of all interfaces"
    )]
    NoInterface,
    #[error(
        "its interface is in another network namespace: its IRQs move only if they are off its node or it is selected, and its queues and channels are out of reach"
    )]
    Elsewhere,

    // Nodes and candidate CPUs.
    #[error("{}; all CPUs are treated as equally near", if *.named { "the device's node could not be determined" } else { "the device's node is unknown (numa_node is -1 or missing)" })]
    NodeUnknown {
        /// Whether `numa_node` is a node that the machine does not have.
        named: bool,
    },
    #[error("numa_node of the device is {node}, which this machine does not have")]
    NodeMissing { node: u32 },
    #[error("the device is on node {node}, which has no usable CPU; {} {nearest} (distance {distance}) takes its IRQs", one_or(.nearest.len(), "the nearest node", "each of the equally near nodes"))]
    NodeWithoutCpus {
        node: u32,
        nearest: NodeSet,
        distance: u32,
    },
    #[error("{}", near(.program.as_deref(), .cpus, .now.as_deref(), *.found))]
    Near {
        /// `pid:N` or `unit:NAME`; `None` if the policy names CPUs.
        program: Option<String>,
        /// The CPUs used for the plan; empty if unknown.
        cpus: CpuSet,
        /// The CPUs that the program may use now; `None` if it does not run.
        now: Option<Box<CpuSet>>,
        found: Found,
    },
    #[error("every CPU is isolated, nohz_full or in an exclusive cpuset partition; using {}", cpu_list(.online))]
    NoUsableCpu { online: CpuSet },
    #[error("without {} no CPU is left for its IRQs", cpu_list(.excluded))]
    NoCpuLeft { excluded: CpuSet },
    #[error("no node is remote and has a usable CPU")]
    NoRemoteNode,
    #[error("node {nodes} of the scope does not exist or has no usable CPU")]
    ScopeUnusable { nodes: NodeSet },
    #[error("{}", cpus_unusable(.wanted, .missing, *.used_for == UsedFor::Rps))]
    CpusUnusable {
        wanted: CpuSet,
        /// CPUs that are absent, offline or excluded; all if none is usable.
        missing: CpuSet,
        used_for: UsedFor,
    },
    #[error("node {node} has {} for {queues} queues: some go to {} of the same package: {}", count(*.cores, "core"), count(.to.len(), "other node"), .to.iter().join(", "))]
    Widened {
        queues: usize,
        cores: usize,
        node: u32,
        to: Vec<u32>,
    },
    #[error("IRQs stay on {}, by {}", cpu_list(.cpus), .by.join(" and "))]
    KeptOff {
        cpus: CpuSet,
        /// The files with the administrator's lists.
        by: Vec<String>,
    },
    #[error("{} {} IRQs no CPU that is not isolated, nohz_full or excluded, and {} not followed", .by.join(" and "), one_or(.by.len(), "leaves", "leave"), one_or(.by.len(), "is", "are"))]
    ListNotFollowed { by: Vec<String> },
    #[error("isolated or nohz_full CPUs receive interrupts: {}", .cpus.short())]
    IsolatedCpusUsed { cpus: CpuSet },
    #[error("CPUs of an exclusive cpuset partition receive interrupts: {}", .cpus.short())]
    ExclusiveCpusUsed { cpus: CpuSet },
    #[error("the PCIe link runs at {now}, but the device and its slot support {possible}: {}% of the possible bandwidth", .now.total().saturating_mul(100) / .possible.total().max(1))]
    LinkBelow { now: PcieLink, possible: PcieLink },
    #[error("unchanged: the policy skips this interface")]
    Skipped,

    // Vectors.
    #[error(fmt = vectors_unreadable)]
    VectorsUnreadable {
        /// The missing directory; `None` if only the files of `vectors` are missing.
        missing: Option<String>,
        vectors: Vec<UnknownVector>,
    },
    #[error(fmt = data_vectors)]
    DataVectors { vectors: Vec<UnknownVector> },
    #[error("the {} of receive {} {queues} {} not known", one_or(.queues.len(), "IRQ", "IRQs"), one_or(.queues.len(), "queue", "queues"), one_or(.queues.len(), "is", "are"))]
    QueuesUnserved { queues: QueueSet },
    #[error(fmt = unknown_vectors)]
    UnknownVectors { vectors: Vec<UnknownVector> },
    #[error("the record of the last apply cannot be read: {error}")]
    RecordUnreadable { error: String },
    #[error(fmt = vectors_vanished)]
    VectorsVanished { vectors: Vec<UnknownVector> },
    #[error("{because}{}", by_controller(.controller.as_deref()))]
    NoVectors {
        because: NoVectors,
        /// The controller by which packets arrive, with its IRQ.
        controller: Option<String>,
    },
    #[error("the device and IRQs are those of {owner}, where they are planned")]
    VectorsShared { owner: String, planned: bool },
    #[error("its IRQs include those of {}: the names do not show which IRQ belongs to which, and all are planned here", few(", ", .others, false))]
    VectorsOfSeveral { others: Vec<String> },
    #[error("its queues share their IRQs with those of {}", few(", ", .others, false))]
    VectorsForSeveral { others: Vec<String> },
    #[error("IRQ {irq} is shared with {owner}, where it is planned")]
    LineShared { irq: u32, owner: String },
    #[error("{} {} kernel-managed and cannot be moved", count(*.vectors, "queue IRQ"), one_or(*.vectors, "is", "are"))]
    KernelManaged { vectors: usize },
    /// No file tells why: the kernel manages them, their driver excludes them from balancing (`IRQ_NO_BALANCING`), or
    /// their controller cannot move them.
    #[error("{} cannot be moved: the kernel does not let {} affinity be set", count(*.vectors, "queue IRQ"), one_or(*.vectors, "its", "their"))]
    NotMovable { vectors: usize },
    #[error(fmt = sources_disagree)]
    SourcesDisagree { contradictions: Vec<String> },
    #[error("{}", vmbus(.controller.as_deref(), .channels, .interfaces))]
    VmbusChannels {
        device: String,
        /// The interrupt of all channels, one for each CPU, as `/proc/interrupts` names it.
        controller: Option<String>,
        channels: Vec<VmbusChannel>,
        /// The virtual function, on which packets arrive while it exists.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        interfaces: Vec<String>,
    },
    #[error("{} without a hint from the driver: placed on the local node", count(*.vectors, "queue IRQ"))]
    NoHint { vectors: usize },
    #[error("the driver's hints for {} name no CPU that may take IRQs: placed on the local node", count(*.vectors, "queue IRQ"))]
    HintUnusable { vectors: usize },
    #[error("the hints of {driver} are not limited to the local node")]
    HintIgnoresLocality { driver: String },

    // Queues and channels.
    #[error("{}", queues_exceed_cores(*.queues, *.cores, *.advised, *.unsure, *.fixed, .irq_cores.is_some()))]
    QueuesExceedCores {
        interface: String,
        queues: usize,
        cores: usize,
        node: Option<u32>,
        /// Receiving channels; `None` if there is no advice.
        advised: Option<u32>,
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        unsure: bool,
        fixed: bool,
        /// The policy's number of cores, if the RSS table can leave the other queues out.
        #[serde(skip_serializing_if = "Option::is_none")]
        irq_cores: Option<usize>,
    },
    #[error("some of its IRQs are unchanged, because {} {} no interrupt vectors left: a CPU of x86 has some 200{}", cpu_list(.cpus), one_or(.cpus.len(), "has", "have"), if .advised.is_some() { format!("; {FLAP}") } else { String::new() })]
    VectorsExhausted {
        interface: String,
        irqs: usize,
        cpus: CpuSet,
        /// Receiving channels with which all can be placed, if the driver allows another number.
        advised: Option<u32>,
    },
    #[error("{queues} queues for the {} of the node, and the package has {package}: other nodes of it can take some", count(*.cores, "core"))]
    PackageHasMore {
        interface: String,
        queues: usize,
        node: u32,
        cores: usize,
        /// The cores of the package that can take queues.
        package: usize,
    },
    #[error("{} for {}, and the device can have {}: RPS stays off; {FLAP}", count(*.queues, "receive queue"), count(*.cores, "core"), .channels.max_receiving())]
    MoreQueuesPossible {
        interface: String,
        queues: usize,
        cores: usize,
        channels: Channels,
        /// Receiving channels.
        advised: u32,
    },
    #[error("the kernel removes isolated and nohz_full CPUs from rps_cpus: {}; the others are planned", .cpus.short())]
    RpsFiltered { cpus: CpuSet },
    #[error(
        "/proc/sys/net/core/rps_sock_flow_entries, which sets the flow table that RFS needs, does not exist: only the first network namespace has it"
    )]
    NoFlowTable,
    #[error("{}, for {}: --channels auto changes nothing", channels(Some(*.now)), count(*.cores, "core"))]
    ChannelsFit { now: u32, cores: usize },
    #[error("{} requested, but the driver {}: the number stays as it is", channels(*.requested), if *.fixed { "has a fixed number" } else { "has given no answer on channels" })]
    ChannelsUnchanged {
        /// `None`: one for each candidate core.
        requested: Option<u32>,
        fixed: bool,
    },
    #[error("{} requested, but the device has {most} at most", channels(Some(*.requested)))]
    ChannelsAtMost { requested: u32, most: u32 },
    #[error("the channels are to be changed to {wanted}: {why}")]
    ChannelsDiffer {
        interface: String,
        wanted: u32,
        why: Why,
    },
    #[error("{} requested, but {because}", match .queues { Some(queues) => format!("RSS over {}", count(*queues as usize, "queue")), None => "RSS over the candidate cores".to_owned() })]
    RssUnchanged {
        /// `None`: one on each candidate core.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        queues: Option<u32>,
        because: RssUnchanged,
    },
    #[error("{file} requested, but the kernel has none for some of its queues")]
    QueueFilesMissing { setting: String, file: String },
    #[error("{setting} requested, but it has no interface in this network namespace")]
    OutOfReach { setting: String },
    #[error("xps_rxqs requested, but the driver picks the transmit queue and never reads XPS")]
    XpsIgnored,
    #[error("RSS sends flows to {} {queues}, whose IRQs cannot be moved off {}", one_or(.queues.len(), "receive queue", "receive queues"), cpu_list(.cpus))]
    RssBeyondCandidates {
        interface: String,
        queues: QueueSet,
        cpus: CpuSet,
        /// Whether a table without these queues can be planned.
        avoidable: bool,
    },
    #[error("xps_rxqs is set on {} and overrides xps_cpus for flows with a receive queue", count(.queues.len(), "transmit queue"))]
    XpsRxqsSet { interface: String, queues: Vec<u32> },

    // The whole machine.
    #[error("no interface matches `{selector}`")]
    NotPresent { selector: String },
    #[error("`{selector}` {what}")]
    NoDevice {
        selector: String,
        /// For example "is the loopback interface".
        what: String,
    },
    #[error("no interface with a device is up or has IRQs")]
    NothingToDo,
    #[error("rule {rule} of the policy ({conditions}) matches no interface")]
    RuleUnmatched {
        rule: usize,
        /// As in the file: `name = "ens*", node = 1`.
        conditions: String,
    },
    #[error("the policy has a [[driver]] {driver}, which no interface here uses; the drivers here: {}", .here.join(", "))]
    DriverUnmatched { driver: String, here: Vec<String> },
    #[error("no IRQ of {driver} has a name of the policy's [[driver]]; its IRQs: {}", few(", ", .here, false))]
    NamesUnmatched { driver: String, here: Vec<String> },
    #[error(fmt = not_planned)]
    NotPlanned {
        down: Vec<String>,
        functions: Vec<UnusedFunction>,
    },
    #[error(
        "more than 8192 cgroups: some were not checked, so CPUs of an exclusive cpuset partition may receive interrupts"
    )]
    CgroupsLeftOut,
    #[error("/proc below this root is absent or empty, so all IRQs are unknown")]
    NoProc,
    #[error("/proc/irq below this root is absent or empty, so all IRQs are unknown")]
    NoProcIrq,
    #[error("the machine has one CPU, which receives every interrupt")]
    OneCpu,
    #[error("irqbalance runs (process {pid}); {}", irqbalance(*.action, *.irqs, *.left_alone, *.lasts))]
    IrqbalanceRunning {
        pid: i32,
        action: Balancer,
        irqs: usize,
        /// IRQs that irqbalance leaves unchanged since an earlier apply, although it is ignored now.
        left_alone: usize,
        /// Whether irqbalance's policy script asks nicpin.
        lasts: bool,
        policy_script: Option<String>,
        arguments: Option<Arguments>,
    },
    #[error(
        "cannot tell whether irqbalance is running (no permission to read {hidden}); if it is, it moves IRQs"
    )]
    IrqbalanceUnknown {
        /// The path that this user may not read.
        hidden: String,
        action: Balancer,
    },
    #[error("{path} is installed and writes {writes} when it runs, usually at boot")]
    CloudScript { path: String, writes: String },
    #[error(
        "tuned runs with the profile {active}, where {profile} has {setting}: it sets the affinity of all IRQs at each start and each change of its profile"
    )]
    TunedRunning {
        active: String,
        profile: String,
        setting: String,
    },
    #[error(
        "{path} has IRQAffinityPolicy={policy}: systemd-udevd sets the affinity of matching devices' IRQs when the devices appear or are moved"
    )]
    LinkIrqAffinity { path: String, policy: String },
    #[error(
        "{path} has ReceivePacketSteeringCPUMask={mask}: systemd-udevd sets RPS of all receive queues of matching devices when the devices appear or are moved"
    )]
    LinkRps { path: String, mask: String },

    // Reports.
    #[error("an apply --try of {seconds} s {}", if *.unwatched { "was not confirmed, and the process that would restore the settings before it has ended: the next apply restores them" } else { "waits to be confirmed; otherwise the settings before it are restored" })]
    TrialWaits {
        seconds: u64,
        /// Whether the process that ends the trial was killed.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        unwatched: bool,
    },
    #[error("an apply --try was not confirmed, and {left}")]
    TrialNotRestored { left: String },
    #[error(
        "busy polling is on (net.core.busy_read, busy_poll): while a socket polls, packets are processed on the program's CPU, not on the IRQ's"
    )]
    SocketsPoll,
    #[error("threaded NAPI: packets are processed by kernel threads{} that the plan {}", processes(.pids), if *.placed { "places" } else { "does not pin" })]
    ThreadedNapi {
        interface: String,
        pids: Vec<u32>,
        /// False if the threads could not be found, or the policy keeps them.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        placed: bool,
    },
    #[error(
        "interrupt deferral is on (napi_defer_hard_irqs {napi_defer_hard_irqs}, gro_flush_timeout {gro_flush_timeout} ns, irq-suspend-timeout {irq_suspend_timeout} ns), so interrupt rates understate traffic"
    )]
    InterruptsDeferred {
        napi_defer_hard_irqs: u32,
        gro_flush_timeout: u64,
        irq_suspend_timeout: u32,
    },
    #[error("kernel threads{} poll all the time: each uses its CPU up, and its queue gets no interrupts", processes(.pids))]
    BusyPolling { pids: Vec<u32> },
    #[error("packets of receive queues {} go to {} in place of the kernel's stack: no interrupt is expected of them", .queues, .user)]
    QueuesTaken { user: QueueUser, queues: QueueSet },
    #[error(
        "compared with a plan made from the options given here; pass the same options to nicpin apply"
    )]
    Options,
    #[error("CPUs went online or offline meanwhile, and are left out: {}", .cpus.short())]
    CpusChanged { cpus: CpuSet },
    #[error(
        "the time is too short for shares of CPU time, which the kernel counts in ticks of 10 ms"
    )]
    Short,
    #[error("IRQs appeared, vanished or restarted at 0 meanwhile, and are left out: {irqs}")]
    VectorsChanged { irqs: IrqSet },
    #[error("interfaces appeared, vanished or reset their counters meanwhile, and are left out: {}", .interfaces.join(", "))]
    InterfacesChanged { interfaces: Vec<String> },
    #[error("{about}")]
    Memory { about: String },
    #[error("near and far are both node {node}")]
    SameNode { node: CpuSet },
    #[error("unequal CPU counts: {near} on the near node, {far} on the far node")]
    CpusUnlike { near: usize, far: usize },
    /// `runs` are counted from 1.
    #[error("{side}: {} {} {} in {what}; {}", one_or(.runs.len(), "run", "runs"), .runs.iter().map(ToString::to_string).join(", "), one_or(.runs.len(), "is an outlier", "are outliers"), if *.runs == [1] { "use --warmup to leave out first runs" } else { "other load may have interfered: use an idle machine and more --runs" })]
    Outliers {
        side: String,
        what: String,
        runs: Vec<usize>,
    },
}

impl Note {
    /// Whether a selector or a rule matches nothing that can be planned.
    pub fn is_of_selection(&self) -> bool {
        matches!(
            self,
            Self::NotPresent { .. }
                | Self::NoDevice { .. }
                | Self::NothingToDo
                | Self::RuleUnmatched { .. }
                | Self::DriverUnmatched { .. }
                | Self::NamesUnmatched { .. }
        )
    }

    /// Whether the state is unknown with any policy: the vectors cannot be read, or the policy cannot be met now.
    pub fn is_unknown(&self) -> bool {
        match self {
            Self::NameUnreadable
            | Self::VectorsUnreadable { .. }
            | Self::VectorsVanished { .. } => true,
            _ => self.is_unmet(),
        }
    }

    /// Whether a request of the policy is not in the plan, or not as requested.
    pub fn is_refusal(&self) -> bool {
        self.is_unmet()
            || matches!(
                self,
                Self::CpusUnusable { .. }
                    | Self::RpsFiltered { .. }
                    | Self::NoFlowTable
                    | Self::ChannelsFit { .. }
                    | Self::ChannelsUnchanged { .. }
                    | Self::NoHint { .. }
                    | Self::HintUnusable { .. }
            )
    }

    /// Whether the machine cannot meet the policy for an interface, which stays unchanged.
    pub fn is_unmet(&self) -> bool {
        self.unmet_setting().is_some()
    }

    /// The setting of the policy that the machine cannot meet for an interface.
    pub fn unmet_setting(&self) -> Option<&str> {
        match self {
            Self::NoCpuLeft { .. } => Some("exclude"),
            Self::NoRemoteNode | Self::ScopeUnusable { .. } => Some("scope"),
            Self::ChannelsAtMost { .. } => Some("channels"),
            // `None` requests one for each core, or as many as possible.
            Self::ChannelsUnchanged { requested, .. } => requested.map(|_| "channels"),
            Self::RssUnchanged { .. } => Some("rss"),
            Self::XpsIgnored => Some("xps"),
            Self::QueueFilesMissing { setting, .. } | Self::OutOfReach { setting } => Some(setting),
            Self::Near { found, .. } => (*found == Found::NoProcess).then_some("near"),
            Self::CpusUnusable {
                wanted,
                missing,
                used_for,
            } => (wanted == missing).then_some(match used_for {
                UsedFor::Interrupts => "scope",
                UsedFor::Rps => "rps",
            }),
            _ => None,
        }
    }

    /// The variant's name, as in JSON.
    pub fn code(&self) -> String {
        let object = serde_json::to_value(self).unwrap_or_default();
        object["code"].as_str().unwrap_or_default().to_owned()
    }
}
