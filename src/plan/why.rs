//! Why a setting has its planned value, or none: as data, and in words. Screens compare the data.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::machine::NodeSource;
use crate::machine::wording::count;

/// The reason for a planned value, or for none. Its words are its JSON form.
#[derive(Debug, Clone)]
pub struct Why {
    #[doc(hidden)]
    pub cause: Cause,
    /// Queues on the core before this one.
    pub(crate) queues_before: usize,
    pub(crate) uncounted: Option<Uncounted>,
}

/// Why a vector does not count as a queue of its core.
#[derive(Debug, Clone, Copy, Error)]
pub(crate) enum Uncounted {
    #[error("; for RDMA")]
    Rdma,
    #[error("; idle, not counted")]
    Idle,
}

/// What decided on a value. Equal causes have the same words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Error)]
pub enum Cause {
    /// The words of a plan that was stored.
    #[error("{0}")]
    Stored(Arc<str>),

    // Of several kinds of settings.
    #[error("skipped by the policy")]
    Skipped,
    #[error("skipped: the policy cannot be met")]
    PolicyUnmet,
    #[error("kept by the policy")]
    Kept,
    #[error("off by the policy")]
    Off,
    #[error("a change would gain nothing")]
    NothingGained,
    #[error("no queue IRQ is placed")]
    NoQueuePlaced,

    // CPUs that are no candidates.
    #[error("excluded by the policy")]
    Excluded,
    #[error("isolated")]
    Isolated,
    #[error("nohz_full")]
    NohzFull,
    #[error("in an exclusive cpuset partition")]
    Exclusive,
    #[error("not for IRQs, by {0}")]
    KeptFree(String),
    #[error("not near what the policy wants its IRQs to be near")]
    NotNear,
    #[error("not in the scope or number of cores that the policy sets")]
    NotInScope,

    // Vectors that stay.
    #[error("kernel-managed")]
    KernelManaged,
    #[error("cannot be moved")]
    CannotBeMoved,
    #[error("of another network namespace, and on its node")]
    OtherNamespace,
    #[error("the IRQ is shared with {0} and planned there")]
    SharedWith(Arc<str>),
    #[error("its candidate CPUs have no interrupt vector left")]
    NoVectorLeft,
    #[error("no usable CPU")]
    NoUsableCpu,

    // Control vectors.
    #[error("control IRQ; unchanged")]
    Control,
    #[error("control IRQ; moved off an isolated CPU")]
    ControlOffIsolated,
    #[error("control IRQ; moved off a CPU of an exclusive cpuset partition")]
    ControlOffExclusive,
    #[error("control IRQ; moved off a CPU that the administrator keeps free of IRQs")]
    ControlOffKeptFree,

    // Vectors that are placed.
    #[error("a group of CPUs, by the policy")]
    Group,
    #[error("hinted by the driver")]
    Hinted,
    #[error("hinted by the driver for the queue's other vector")]
    OtherHinted,
    #[error("among the CPUs that the policy names")]
    NamedCpus,
    #[error("any node, by the policy")]
    AnyNode,
    #[error("another node, by the policy")]
    RemoteNode,
    #[error("node {0}, by the policy")]
    NamedNode(u32),
    #[error("node {0}, where the IRQ's device is")]
    DeviceOfIrq(u32),
    #[error("nearest to node {0}, where the IRQ's device is")]
    NearDeviceOfIrq(u32),
    #[error("node {node} of the same package: no core of node {own} has fewer queues")]
    SamePackage { node: u32, own: u32 },
    #[error("node {0}, one of the nearest to the device's node")]
    OneOfNearest(u32),
    #[error("node {0}, nearest to the device's node")]
    Nearest(u32),
    #[error("node {0}, by local_cpulist")]
    ListedNode(u32),
    #[error("local, by local_cpulist")]
    ListedCpus,
    #[error("{}", .0.reason(*.1))]
    OwnNode(NodeSource, Option<u32>),

    // RPS and RFS.
    #[error("given by the policy")]
    Given,
    #[error("its queues get IRQs when it comes up")]
    IrqsWhenUp,
    #[error("the kernel removes all of its CPUs")]
    RpsFiltered,
    #[error("there is no rps_cpus")]
    NoRpsCpus,
    #[error("every core{} already has a queue{}{}", if *.limited { " that may take IRQs" } else { "" }, if *.rdma { " or an RDMA IRQ" } else { "" }, if *.others { " or an IRQ that is not planned" } else { "" })]
    EveryCoreTaken {
        limited: bool,
        rdma: bool,
        others: bool,
    },
    #[error("the machine is too small to gain from it")]
    TooSmall,
    #[error("the device is an SR-IOV virtual function")]
    VirtualFunction,
    #[error("the device can have more queues")]
    MoreQueuesPossible,
    #[error("the number of queues that the device can have is unknown")]
    MostQueuesUnknown,
    #[error("too few idle cores")]
    FewIdleCores,
    #[error("too few idle cores: {cores} for {}", count(*.queues, "queue"))]
    IdleCoresForQueues { cores: usize, queues: usize },
    #[error("there are too few other cores")]
    FewOtherCores,
    #[error("to idle cores: the device has no more queues")]
    IdleCores,
    #[error("to idle cores (not CPU 0's): the device has no more queues")]
    IdleCoresWithoutCpu0,
    #[error("to idle fast cores: the device has no more queues")]
    IdleFastCores,
    #[error("to the cores that carry least: the device has no more queues")]
    LeastLoadedCores,
    #[error("its share of the flow table")]
    FlowShare,
    #[error("one flow table for all interfaces")]
    FlowTable,
    #[error("accelerated RFS")]
    AcceleratedRfs,

    // XPS.
    #[error("nothing to steer: it is the only transmit queue")]
    OnlyTxQueue,
    #[error("there are no xps_cpus")]
    NoXpsCpus,
    #[error("the driver picks the transmit queue and never reads XPS")]
    DriverPicks,
    #[error("it has no readable xps_cpus: it may be in no traffic class")]
    XpsUnreadable,
    #[error("the machine has one CPU")]
    OneCpu,
    #[error("nearest to the queue's CPU")]
    NearestToQueue,
    #[error("its completion vector is unknown")]
    CompletionUnknown,
    #[error("more transmit queues than CPUs")]
    MoreQueuesThanCpus,
    #[error("every CPU has another transmit queue that is as near or nearer")]
    OthersAsNear,
    #[error("flows of this receive queue")]
    OfReceiveQueue,

    // Channels.
    #[error("as requested")]
    Requested,
    #[error("a receive queue for each of {0} cores")]
    QueueForEachCore(usize),
    #[error("as many as the device can have, for {0} cores")]
    MostQueues(usize),

    // RSS.
    #[error("unchanged")]
    Unchanged,
    #[error("it is the only receive queue")]
    OnlyRxQueue,
    #[error("the first queues, as requested")]
    FirstQueues,
    #[error("a queue on each candidate core")]
    QueueOnEachCore,

    // Threads that poll queues.
    #[error("candidate CPUs: its queue interrupts a CPU that is isolated or excluded")]
    QueueOnUnusable,
    #[error("the CPUs that its queue interrupts")]
    CpusOfQueue,
    #[error("the CPU of its queue, which gets no interrupts while the thread polls all the time")]
    BusyPolls,
    #[error("free sibling of the CPU that its queue interrupts")]
    FreeSibling,
    #[error("the CPU that its queue interrupts, which has no free sibling")]
    NoFreeSibling,
    #[error("its queue could not be determined: the CPUs of the interface's other threads")]
    CpusOfOtherThreads,
    #[error("its queue could not be determined: the CPUs that the interface's queues interrupt")]
    CpusOfQueues,
    #[error("its queue could not be determined: the interface's candidate CPUs")]
    Candidates,

    // Restores.
    #[error("as it was before the first apply")]
    BeforeFirstApply,
    #[error("as it was before this apply")]
    BeforeThisApply,
    #[error("as it was before apply --try")]
    BeforeTrial,
}

impl Why {
    pub(crate) const fn because(cause: Cause) -> Self {
        Self {
            cause,
            queues_before: 0,
            uncounted: None,
        }
    }
}

impl Display for Why {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        match self.cause {
            Cause::KernelManaged => f.write_str("; cannot be moved")?,
            Cause::CannotBeMoved => f.write_str(": the kernel does not let its affinity be set")?,
            _ => {}
        }
        match self.queues_before {
            0 => {}
            1 => f.write_str("; its core already has a queue")?,
            before => write!(f, "; its core already has {before} queues")?,
        }
        self.uncounted
            .map_or(Ok(()), |uncounted| write!(f, "{uncounted}"))
    }
}

/// A stored plan has only the words.
impl PartialEq for Why {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Why {}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Why {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Arc::deserialize(deserializer).map(|words| Self::because(Cause::Stored(words)))
    }
}
