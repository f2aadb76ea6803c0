//! The machine as a whole.

use std::collections::BTreeMap;

use crate::cpuset::CpuSet;
use crate::machine::interface::{Interface, Stacked};
use crate::machine::others::Others;
use crate::machine::paths::IRQ_FILES;
use crate::machine::tools::OtherTools;
use crate::machine::topology::Topology;

/// A machine as it was when it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Machine {
    /// CPUs, cores, caches, nodes.
    pub topology: Topology,
    /// Interfaces with a device behind them, by name.
    pub interfaces: Vec<Interface>,
    /// Interfaces that stand on others.
    pub stacked: Vec<Stacked>,
    /// What else could be named.
    pub others: Others,
    /// `rps_sock_flow_entries`; `None` where the kernel has none (no RFS, or inside a network namespace).
    pub flow_entries: Option<u32>,
    /// What drivers hint (`affinity_hint`), by IRQ, where a hint was asked for and there is one.
    pub hints: BTreeMap<u32, CpuSet>,
    /// The memory of each node in KiB, where it was asked for; nodes that do not tell are absent.
    pub memory: BTreeMap<u32, u64>,
    /// Whether this is a dump of `/sys` alone, which knows of no vector.
    pub without_proc: bool,
    /// Whether handlers of IRQs are listed, and `/proc/irq` is not there to tell where they run.
    pub without_irqs: bool,
    /// Other tools that set affinity.
    pub other_tools: OtherTools,
    /// Whether every socket that waits polls its card by itself (`net.core.busy_read`, `net.core.busy_poll`).
    pub sockets_poll: bool,
}

impl Machine {
    /// The directory for want of which nothing is known of any vector; `None` where it is there.
    pub fn missing(&self) -> Option<&'static str> {
        match (self.without_proc, self.without_irqs) {
            (true, _) => Some("/proc"),
            (_, true) => Some(IRQ_FILES),
            _ => None,
        }
    }

    /// The interface of this name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }

    /// The node whose memory is nearest to the CPUs of a node: itself, unless it is known to have none.
    pub fn memory_near(&self, node: u32) -> u32 {
        let has = |node: u32| self.memory.get(&node) != Some(&0);
        let nearest = || self.topology.nearest_nodes(node).into_iter().find(|&other| has(other));
        if has(node) { node } else { nearest().unwrap_or(node) }
    }
}
