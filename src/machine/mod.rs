//! The machine as a snapshot of facts, read once by [`read`](crate::read). Nothing later reads the machine again for
//! planning.

pub mod channels;
pub mod interface;
pub mod netdev;
pub mod others;
pub mod rx_hash;
pub mod sample;
pub mod selection;
pub mod setting;
pub mod topology;
pub mod wording;

use std::collections::{BTreeMap, HashSet};

pub use channels::Channels;
pub use interface::{
    Device, Interface, NapiThread, PcieLink, Polling, QueueId, Role, RxQueue, Sharer, Source,
    Stacked, TreeInterrupt, TxQueue, UnknownVector, Vector, VmbusChannel,
};
pub use others::{Neighbour, NeighbourKind, OtherTools, Others, Program, ProgramCpus};
pub use rx_hash::Rss;
pub use sample::{CountRow, Counts};
pub use selection::{SelectError, Selection};
pub use setting::{IRQ_FILES, Setting, SettingValue, WriteKind};
pub use topology::{Node, NodeSource, Topology};

pub use crate::cpuset::MaskFile;
use crate::cpuset::{CpuSet, NodeSet};

/// A machine as it was when it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Machine {
    /// CPUs, cores, caches, nodes.
    pub topology: Topology,
    /// Interfaces with a device behind them, by name.
    pub interfaces: Vec<Interface>,
    /// Interfaces above others.
    pub stacked: Vec<Stacked>,
    /// Other names of interfaces (`ip link property`), by their names.
    pub altnames: BTreeMap<String, Vec<String>>,
    /// What else a selector can name.
    pub others: Others,
    /// `rps_sock_flow_entries`; `None` where the kernel has none (no RFS, or inside a network namespace).
    pub flow_entries: Option<u32>,
    /// The drivers' `affinity_hint` by IRQ, if hints were read.
    pub hints: BTreeMap<u32, CpuSet>,
    /// The memory of each node in KiB, if it was read; nodes that do not report it are absent.
    pub memory: BTreeMap<u32, u64>,
    /// GPUs, accelerators, disks and RDMA devices, if they were read.
    pub neighbours: Vec<Neighbour>,
    /// Whether this is a dump of `/sys` alone, without vectors.
    pub without_proc: bool,
    /// Whether IRQs have handlers but `/proc/irq` is absent, so that no affinity can be read.
    pub without_irqs: bool,
    /// Where the programs that the policy names may run; unknown ones are absent.
    pub programs: BTreeMap<Program, ProgramCpus>,
    /// Other tools that set affinity.
    pub other_tools: OtherTools,
    /// How many interrupt vectors of each CPU are held by IRQs that are none of the interfaces'. `None` where a CPU can hold
    /// all IRQs of the machine: with few of them, or on other architectures than x86.
    pub vectors_held: Option<BTreeMap<u32, usize>>,
    /// Whether every waiting socket polls its device (`net.core.busy_read`, `net.core.busy_poll`).
    pub sockets_poll: bool,
}

impl Machine {
    /// The missing directory without which vectors cannot be read; `None` if none is missing.
    pub fn missing(&self) -> Option<&'static str> {
        match (self.without_proc, self.without_irqs) {
            (true, _) => Some("/proc"),
            (_, true) => Some(IRQ_FILES),
            _ => None,
        }
    }

    /// The CPUs of network cards' IRQs that are not understood or not its own, and of `VMBus` channels that take the packets,
    /// which are no more idle than those of others.
    pub(crate) fn not_understood_cpus(&self) -> CpuSet {
        let unknown = self.interfaces.iter().map(|of| &of.unknown_vector_cpus);
        let unknown = CpuSet::union_of(unknown.chain([&self.others.card_cpus]));
        let is_below = |of: &&Interface| self.stacked(&of.name).is_none();
        let alone = self.interfaces.iter().filter(is_below);
        let channels = alone.flat_map(|of| of.vmbus.iter().flatten());
        channels
            .map(|channel| channel.cpu)
            .chain(unknown.iter())
            .collect()
    }

    /// The node of an interface; several if they are equally near, none if it is unknown.
    pub fn nodes_of(&self, interface: &Interface) -> NodeSet {
        let Topology { online, .. } = &self.topology;
        self.topology.home(&interface.device, online).nodes
    }

    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces
            .iter()
            .find(|interface| interface.name == name)
    }

    /// The names of all interfaces, for many searches.
    pub(crate) fn names(&self) -> HashSet<&str> {
        self.interfaces.iter().map(|of| &*of.name).collect()
    }

    /// The node with memory that is nearest to a node: itself, unless it is known to have no memory.
    pub fn memory_near(&self, node: u32) -> u32 {
        [node]
            .into_iter()
            .chain(self.topology.nearest_nodes(node))
            .find(|near| self.memory.get(near) != Some(&0))
            .unwrap_or(node)
    }
}
