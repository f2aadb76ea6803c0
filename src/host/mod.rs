//! What the machine is: a snapshot of facts, read once. Nothing later looks at the machine behind its back.

mod archive;
pub mod capture;
pub mod counts;
mod error;
pub mod ethtool;
pub mod faults;
pub mod interfaces;
pub mod interrupts;
pub mod memory;
pub mod names;
mod nearby;
pub mod netlink;
mod numbering;
mod open;
pub mod others;
mod own;
pub mod polling;
mod recorded;
mod redact;
pub mod root;
mod sources;
pub mod topology;
pub(crate) mod torn;
pub mod vectors;
pub mod writers;

use interfaces::Listed;
use interrupts::Handlers;

pub use counts::{CountRow, Counts};
pub use ethtool::Channels;
pub use interfaces::{Device, Interface, MaskFile, RxQueue, Sharer, Stacked, TxQueue, VmbusChannel};
pub use interrupts::{INTERRUPTS, Interrupts};
pub use names::Role;
pub use others::Others;
pub use polling::Polling;
pub use root::{FileError, Root};
pub use topology::{Node, Topology};
pub use vectors::{Source, UnknownVector, Vector};
pub use writers::Writers;

use std::collections::{BTreeMap, BTreeSet};

use crate::cpuset::CpuSet;

/// The size of the global RFS table.
pub const FLOW_ENTRIES: &str = "/proc/sys/net/core/rps_sock_flow_entries";

/// Where each IRQ has its files.
const IRQ_FILES: &str = "/proc/irq";

/// A machine as it was when it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Host {
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
    /// Who else writes affinities.
    pub writers: Writers,
    /// Whether every socket that waits polls its card by itself (`net.core.busy_read`, `net.core.busy_poll`).
    pub sockets_poll: bool,
}

impl Host {
    /// Reads the machine below a root: what is always needed.
    pub fn read(root: &Root) -> Result<Self, FileError> {
        Self::read_for(root, Wants::default())
    }

    /// Reads the machine below a root, and what else is wanted of it.
    pub fn read_for(root: &Root, wants: Wants) -> Result<Self, FileError> {
        let topology = Topology::read(root)?;
        let Listed { mut interfaces, stacked, virtuals } = interfaces::read(root, wants)?;
        // A topology dump has no /proc at all; a machine without its interrupts is one that cannot be read.
        let without_proc = !root.exists("/proc");
        if !interfaces.is_empty() && !without_proc {
            let mut netlink = netlink::Source::open(root);
            for interface in &mut interfaces {
                interface.netlink = netlink.ask(root, &interface.name)?;
            }
            let handlers = Handlers::new(root);
            if wants.interrupts {
                handlers.listed()?;
            }
            vectors::read(root, &handlers, &mut interfaces)?;
        }
        let hints = if wants.hints { read_hints(root, &interfaces)? } else { BTreeMap::new() };
        let memory = if wants.memory { memory::totals(root, &topology)? } else { BTreeMap::new() };
        Ok(Self {
            others: Others::read(root, virtuals, &interfaces)?,
            topology,
            interfaces,
            hints,
            memory,
            without_proc,
            without_irqs: !without_proc && without_irqs(root),
            stacked,
            flow_entries: interfaces::read_number(root, FLOW_ENTRIES)?,
            writers: Writers::read(root)?,
            sockets_poll: wants.polling && polling::sockets_poll(root)?,
        })
    }

    /// The directory for want of which nothing can be told of any vector; `None` where it is there.
    pub fn missing(&self) -> Option<&'static str> {
        match (self.without_proc, self.without_irqs) {
            (true, _) => Some("/proc"),
            (_, true) => Some(IRQ_FILES),
            _ => None,
        }
    }
}

/// What is only read when something asks for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // one question has nothing to do with another
pub struct Wants {
    /// The drivers' hints.
    pub hints: bool,
    /// `/proc/interrupts` also where `/sys/kernel/irq` tells of the handlers.
    pub interrupts: bool,
    /// How much memory each node has.
    pub memory: bool,
    /// Who polls the cards' queues.
    pub polling: bool,
    /// What of the cards' queues.
    pub queues: Queues,
}

/// What is read of queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Queues {
    /// How they are steered, too.
    #[default]
    Steering,
    /// Which there are; [`Host::read_queue_values`] reads the rest.
    Numbers,
}

impl Host {
    /// Reads how the queues of some interfaces are steered ([`Queues::Numbers`]).
    pub fn read_queue_values(&mut self, root: &Root, names: &BTreeSet<String>) -> Result<(), FileError> {
        let wanted = self.interfaces.iter_mut().filter(|interface| names.contains(&interface.name));
        wanted.into_iter().try_for_each(|interface| interfaces::read_queue_values(root, interface))
    }

    /// The node whose memory is nearest to the CPUs of a node: itself, unless it is known to have none.
    pub fn memory_near(&self, node: u32) -> u32 {
        let has = |node: u32| self.memory.get(&node) != Some(&0);
        let nearest = || self.topology.nearest_nodes(node).into_iter().find(|&other| has(other));
        if has(node) { node } else { nearest().unwrap_or(node) }
    }
}

impl Wants {
    /// Whatever a command or a policy may ask for.
    pub const EVERYTHING: Self =
        Self { hints: true, interrupts: true, memory: true, polling: true, queues: Queues::Steering };
}

fn without_irqs(root: &Root) -> bool {
    !root.exists(IRQ_FILES) && [INTERRUPTS, interrupts::IRQS].iter().any(|listed| root.exists(listed))
}

fn read_hints(root: &Root, interfaces: &[Interface]) -> Result<BTreeMap<u32, CpuSet>, FileError> {
    let mut hints = BTreeMap::new();
    for vector in interfaces.iter().flat_map(|interface| &interface.vectors) {
        let hint = topology::read_mask(root, &format!("/proc/irq/{}/affinity_hint", vector.irq))?;
        // All zeros is no hint.
        hints.extend(hint.filter(|cpus| !cpus.is_empty()).map(|cpus| (vector.irq, cpus)));
    }
    Ok(hints)
}
