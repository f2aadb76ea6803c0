//! One IRQ of an interface's device: what it does, and where the kernel delivers it.

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::machine::mask::MaskFile;

/// One IRQ of an interface's device, understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// Its IRQ number, which changes from boot to boot.
    pub irq: u32,
    /// The name its handler was requested under.
    pub action: String,
    /// What it does.
    pub role: Role,
    /// The queue it serves; `None` for a control vector.
    pub queue: Option<u32>,
    /// Where the role and the queue were learned.
    pub source: Source,
    /// The node of the device that raises it, where that is another device than the interface's own and the
    /// kernel knows its node.
    pub node: Option<u32>,
    /// `smp_affinity`: the CPUs that it is allowed on.
    pub affinity: MaskFile,
    /// `effective_affinity`: the CPUs that the hardware delivers to now. `None` on architectures that do
    /// not tell (powerpc, s390).
    pub effective: Option<CpuSet>,
    /// Whether the kernel says that its affinity may be set (since 6.12 by the file's mode).
    pub movable: bool,
}

/// What a vector does for an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Receives and sends.
    Combined,
    /// Receives.
    Rx,
    /// Sends.
    Tx,
    /// No queue of the interface: link, mailbox, management, RDMA. To be left alone.
    Control,
}

/// How it is known which queue a vector serves, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The kernel's own answer.
    Netlink,
    /// The driver's name for the vector.
    Name,
    /// The order of the MSI-X entries.
    Order,
}

/// A requested IRQ of the device of which only its name is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownVector {
    /// Its IRQ number.
    pub irq: u32,
    /// Its handlers' names.
    pub action: String,
}

impl Vector {
    /// Whether it carries packets, and is not there for link events and the like.
    pub fn is_queue_vector(&self) -> bool {
        self.role != Role::Control
    }
}
