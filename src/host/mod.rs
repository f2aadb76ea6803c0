//! What the machine is: a snapshot of facts, read once. Nothing later looks at the machine behind its back.

pub mod ethtool;
pub mod interfaces;
pub mod interrupts;
pub mod names;
mod numbering;
pub mod root;
pub mod topology;
pub mod vectors;
mod writers;

pub use ethtool::Channels;
pub use interfaces::{Device, Interface, MaskFile, RxQueue, Stacked, TxQueue};
pub use interrupts::Interrupts;
pub use names::Role;
pub use root::{FileError, Root};
pub use topology::{Node, Topology};
pub use vectors::{Source, UnknownVector, Vector};

/// Where the kernel tells of every IRQ.
const INTERRUPTS: &str = "/proc/interrupts";
/// The size of the global RFS table.
pub const FLOW_ENTRIES: &str = "/proc/sys/net/core/rps_sock_flow_entries";

/// A machine as it was when it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Host {
    /// CPUs, cores, caches, nodes.
    pub topology: Topology,
    /// Interfaces with a device behind them, by name.
    pub interfaces: Vec<Interface>,
    /// Interfaces that stand on others.
    pub stacked: Vec<Stacked>,
    /// `rps_sock_flow_entries`; `None` where the kernel has none (no RFS, or inside a network namespace).
    pub flow_entries: Option<u32>,
    /// The process id of irqbalance, while it runs.
    pub irqbalance: Option<i32>,
}

impl Host {
    /// Reads the machine below a root.
    pub fn read(root: &Root) -> Result<Self, FileError> {
        let topology = Topology::read(root)?;
        let (mut interfaces, stacked) = interfaces::read(root)?;
        if !interfaces.is_empty() {
            let interrupts = read_interrupts(root)?;
            vectors::read(root, &interrupts, &mut interfaces)?;
        }
        Ok(Self {
            topology,
            interfaces,
            stacked,
            flow_entries: interfaces::read_number(root, FLOW_ENTRIES)?,
            irqbalance: writers::irqbalance(root)?,
        })
    }
}

fn read_interrupts(root: &Root) -> Result<Interrupts, FileError> {
    // The kernel prints the file without holding CPU hotplug off, so a live read can be torn. A copy can
    // not get better.
    let mut tries = if root.is_real() { 5 } else { 1 };
    loop {
        tries -= 1;
        match Interrupts::parse(&root.read(INTERRUPTS)?) {
            Ok(interrupts) => return Ok(interrupts),
            Err(_) if tries > 0 => {}
            Err(error) => return Err(root.content_error(INTERRUPTS, error.to_string())),
        }
    }
}
