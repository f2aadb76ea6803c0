//! One IRQ of an interface's device: its role, and where the kernel delivers it.

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::machine::mask::MaskFile;

/// One IRQ of an interface's device, with a known role.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// The IRQ number, which may change at each boot.
    pub irq: u32,
    /// The handler's name.
    pub action: String,
    pub role: Role,
    /// The number of the queue, or of the RDMA completion vector; `None` for a control vector.
    pub queue: Option<u32>,
    /// The source of role and queue.
    pub source: Source,
    /// The node of the device that raises the IRQ, if that is not the interface's own device and its node is known.
    pub node: Option<u32>,
    /// `smp_affinity`: the CPUs that the kernel may deliver it to.
    pub affinity: MaskFile,
    /// `effective_affinity`: the CPUs that the kernel delivers it to now. `None` on architectures without this file
    /// (powerpc, s390).
    pub effective: Option<CpuSet>,
    /// Whether the affinity can be changed (since 6.12 the file's mode shows it).
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
    /// Signals completions of RDMA work requests, and no packets of the interface.
    Rdma,
    /// Neither: link, mailbox, management.
    Control,
}

/// The source of a vector's role and queue, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The kernel's `netdev` family.
    Netlink,
    /// The driver's name for the vector.
    Name,
    /// The order of the MSI-X entries.
    Order,
}

/// An IRQ with a handler whose name does not show its role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownVector {
    pub irq: u32,
    /// The handlers' names.
    pub action: String,
}

impl Role {
    /// As in the plan's JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Combined => "combined",
            Self::Rx => "rx",
            Self::Tx => "tx",
            Self::Rdma => "rdma",
            Self::Control => "control",
        }
    }

    /// Whether it is for packets of the interface.
    pub fn is_queue(self) -> bool {
        matches!(self, Self::Combined | Self::Rx | Self::Tx)
    }
}

impl Vector {
    /// Whether it is for packets of the interface.
    pub fn is_queue_vector(&self) -> bool {
        self.role.is_queue()
    }
}
