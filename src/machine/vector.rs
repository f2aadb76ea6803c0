//! Interrupt vectors: the IRQs of an interface's device, and where the kernel delivers them.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::cpuset::{CpuSet, MaskFile};
use crate::machine::netdev::Direction;

/// An IRQ of an interface's device, with a known role.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// Number that may change at each boot.
    pub irq: u32,
    pub action: HandlerNames,
    pub role: Role,
    /// Number of the queue, or of the RDMA completion vector; `None` for data and control vectors.
    pub queue: Option<u32>,
    pub source: Source,
    /// The driver row that matched the name; `None` if netlink or the order gave the role.
    pub row: Option<String>,
    /// Node of the device that raises the IRQ, if known and not the interface's own.
    pub node: Option<u32>,
    /// `smp_affinity`: where the kernel may deliver.
    pub affinity: MaskFile,
    /// `effective_affinity`: where the kernel delivers; `None` without this file (powerpc, s390).
    pub effective: Option<CpuSet>,
    /// Where it was delivered since boot (`/proc/interrupts`), if the kernel reports no effective CPUs and the affinity
    /// has several.
    pub counted: Option<CpuSet>,
    /// The affinity can be changed (since 6.12 the file's mode shows it), or the machine has one CPU.
    pub movable: bool,
}

/// The purpose of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Receives and transmits.
    Combined,
    Rx,
    Tx,
    /// Carries packets of an unknown queue.
    Data,
    /// Signals completions of RDMA work requests, and no packets of the interface.
    Rdma,
    /// Link, mailbox, management.
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
    /// The order of the MSI-X entries, or that nothing else of the device is left.
    Order,
}

/// An IRQ whose handlers' names do not show its role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownVector {
    pub irq: u32,
    pub action: HandlerNames,
}

/// The names of an IRQ's handlers, as in `/proc/irq/N/`. In text and JSON they are joined: `eth0, ehci_hcd`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct HandlerNames(Vec<String>);

impl HandlerNames {
    pub fn new(names: Vec<String>) -> Self {
        Self(names)
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.iter().any(|own| own == name)
    }
}

impl From<String> for HandlerNames {
    fn from(joined: String) -> Self {
        Self(joined.split(", ").map(str::to_owned).collect())
    }
}

impl From<HandlerNames> for String {
    fn from(names: HandlerNames) -> Self {
        names.to_string()
    }
}

impl Display for HandlerNames {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Self::Combined => "combined",
            Self::Rx => "rx",
            Self::Tx => "tx",
            Self::Data => "data",
            Self::Rdma => "rdma",
            Self::Control => "control",
        }
    }

    /// `rx 3`, or without a queue `control`.
    pub(crate) fn with_queue(self, queue: Option<u32>) -> String {
        self.name().to_owned() + &queue.map(|queue| format!(" {queue}")).unwrap_or_default()
    }

    /// Whether such a vector carries packets.
    pub fn is_queue(self) -> bool {
        matches!(self, Self::Combined | Self::Rx | Self::Tx | Self::Data)
    }

    /// Whether such a vector serves a known queue of this direction.
    pub(crate) fn serves(self, direction: Direction) -> bool {
        match direction {
            Direction::Rx => matches!(self, Self::Combined | Self::Rx),
            Direction::Tx => matches!(self, Self::Combined | Self::Tx),
        }
    }

    pub(crate) fn queue_id(self, queue: Option<u32>, irq: u32) -> Option<QueueId> {
        let id = queue.map_or(QueueId::OfIrq(irq), QueueId::Number);
        self.is_queue().then_some(id)
    }
}

/// A queue of an interface; all its vectors get one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueId {
    Number(u32),
    /// Of a data vector, known by its IRQ only.
    OfIrq(u32),
}

impl Vector {
    pub(crate) fn queue_id(&self) -> Option<QueueId> {
        self.role.queue_id(self.queue, self.irq)
    }

    pub(crate) fn effective_cpus(&self, online: &CpuSet) -> Cow<'_, CpuSet> {
        effective(self.reported(), &self.affinity.cpus, online)
    }

    pub(crate) fn known_cpus(&self, online: &CpuSet) -> Option<Cow<'_, CpuSet>> {
        known(self.reported(), &self.affinity.cpus, online)
    }

    fn reported(&self) -> Option<&CpuSet> {
        let effective = settled(self.effective.as_ref(), &self.affinity.cpus);
        effective.or(self.counted.as_ref())
    }
}

/// The effective CPUs, unless the affinity has none of them: the kernel then moves the IRQ at its next interrupt.
pub(crate) fn settled<'a>(effective: Option<&'a CpuSet>, affinity: &CpuSet) -> Option<&'a CpuSet> {
    effective.filter(|cpus| cpus.is_empty() || cpus.intersects(affinity))
}

/// If not reported, the online CPUs of the affinity: the kernel keeps offline CPUs in it, and uses the others if there
/// are any.
pub(crate) fn effective<'a>(
    reported: Option<&'a CpuSet>,
    affinity: &'a CpuSet,
    online: &CpuSet,
) -> Cow<'a, CpuSet> {
    match reported {
        Some(cpus) => Cow::Borrowed(cpus),
        None if affinity.intersects(online) => Cow::Owned(affinity.intersection(online)),
        None => Cow::Borrowed(affinity),
    }
}

/// `None` if several are not reported: nobody knows which has the IRQ.
pub(crate) fn known<'a>(
    reported: Option<&'a CpuSet>,
    affinity: &'a CpuSet,
    online: &CpuSet,
) -> Option<Cow<'a, CpuSet>> {
    let cpus = effective(reported, affinity, online);
    (reported.is_some() || cpus.len() == 1).then_some(cpus)
}
