//! Facts of the machine, read once by [`read`](crate::read); planning reads no more.

pub mod channels;
mod device;
pub mod files;
pub mod interface;
mod layers;
pub mod netdev;
pub mod others;
pub mod rx_hash;
pub mod sample;
pub mod selection;
pub mod topology;
pub(crate) mod vector;
pub mod wording;

use std::collections::{BTreeMap, HashSet};

pub use channels::Channels;
pub use device::{Device, PcieLink, TreeInterrupt};
pub use interface::{
    Interface, NapiThread, Polling, RxQueue, Sharer, Stacked, TxQueue, VmbusChannel,
};
pub use others::{Neighbour, NeighbourKind, OtherTools, Others, Program, ProgramCpus};
pub use rx_hash::Rss;
pub use sample::{CountRow, Counts};
pub use selection::{SelectError, Selection};
pub use topology::{Node, NodeSource, Topology};
pub use vector::{HandlerNames, QueueId, Role, Source, UnknownVector, Vector};

pub use crate::cpuset::MaskFile;
use crate::cpuset::{CpuSet, NodeSet};
use crate::machine::files::IRQ_FILES;

/// The machine when it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Machine {
    pub topology: Topology,
    /// With a device behind them, by name.
    pub interfaces: Vec<Interface>,
    pub stacked: Vec<Stacked>,
    /// Other names (`ip link property`) by interface.
    pub altnames: BTreeMap<String, Vec<String>>,
    pub others: Others,
    /// `rps_sock_flow_entries`; `None` without RFS or inside a network namespace.
    pub flow_entries: Option<u32>,
    /// `affinity_hint` by IRQ, if read.
    pub hints: BTreeMap<u32, CpuSet>,
    /// KiB of each node, if read and reported.
    pub memory: BTreeMap<u32, u64>,
    /// Empty if not read.
    pub neighbours: Vec<Neighbour>,
    /// A dump of `/sys` alone, without vectors.
    pub without_proc: bool,
    /// No affinity can be read: IRQs have handlers, but `/proc/irq` is absent.
    pub without_irqs: bool,
    /// CPUs of the policy's programs; unknown programs are absent.
    pub programs: BTreeMap<Program, ProgramCpus>,
    pub other_tools: OtherTools,
    /// Interrupt vectors of each CPU that IRQs of no interface hold; `None` if a CPU can hold all IRQs: they are few,
    /// or this is not x86.
    pub vectors_held: Option<BTreeMap<u32, usize>>,
    /// Every waiting socket polls its device (`net.core.busy_read`, `net.core.busy_poll`).
    pub sockets_poll: bool,
}

impl Machine {
    /// The missing directory without which vectors cannot be read.
    pub fn missing(&self) -> Option<&'static str> {
        match (self.without_proc, self.without_irqs) {
            (true, _) => Some("/proc"),
            (_, true) => Some(IRQ_FILES),
            _ => None,
        }
    }

    /// CPUs that are not idle: they serve network cards by IRQs that are not understood or not their own, or by `VMBus`
    /// channels.
    pub(crate) fn not_understood_cpus(&self) -> CpuSet {
        let unknown = self
            .interfaces
            .iter()
            .map(|interface| &interface.unknown_vector_cpus);
        let unknown = CpuSet::union_of(unknown.chain([&self.others.card_cpus]));
        let is_below = |interface: &&Interface| self.stacked(&interface.name).is_none();
        let alone = self.interfaces.iter().filter(is_below);
        let channels = alone.flat_map(|interface| interface.vmbus.iter().flatten());
        channels
            .map(|channel| channel.cpu)
            .chain(unknown.iter())
            .collect()
    }

    /// Several nodes if equally near, none if unknown.
    pub fn nodes_of(&self, interface: &Interface) -> NodeSet {
        let Topology { online, .. } = &self.topology;
        self.topology.home(&interface.device, online).nodes
    }

    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces
            .iter()
            .find(|interface| interface.name == name)
    }

    pub fn vectors(&self) -> impl Iterator<Item = &Vector> {
        let interfaces = self.interfaces.iter();
        interfaces.flat_map(|interface| &interface.vectors)
    }

    pub(crate) fn names(&self) -> HashSet<&str> {
        self.interfaces
            .iter()
            .map(|interface| &*interface.name)
            .collect()
    }

    /// The nearest node with memory: `node` itself unless it is known to have none.
    pub fn memory_near(&self, node: u32) -> u32 {
        [node]
            .into_iter()
            .chain(self.topology.nearest_nodes(node))
            .find(|near| self.memory.get(near) != Some(&0))
            .unwrap_or(node)
    }
}
