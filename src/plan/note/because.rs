//! Reasons that are parts of notes.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The purpose for which a policy names CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UsedFor {
    Interrupts,
    Rps,
}

/// Why an RSS table is not changed although the policy requests a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RssUnchanged {
    #[error("the driver reports no RSS table")]
    NoTable,
    #[error("the driver cannot set its RSS table")]
    Fixed,
    #[error("hash function {0} is not known to use the RSS table")]
    Function(u8),
    #[error("its table can reach {0} at most")]
    AtMost(usize),
    #[error("no queue's IRQ is on a candidate CPU")]
    NoQueue,
}

/// Why an interface has no queue vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoVectors {
    #[error("the device has no IRQs of its own")]
    OfDevice,
    /// It has control IRQs.
    #[error("the device has no queue IRQs of its own")]
    OfQueues,
    /// No queue IRQ is known to belong to the device: sysfs lists IRQs of PCI devices alone.
    #[error("which IRQs belong to its device is not known: sysfs lists those of PCI devices only")]
    Unlisted,
    #[error("the driver has requested no queue IRQ; there is nothing to place")]
    Requested,
    #[error(
        "the driver requests no queue IRQ while the interface is down; there is nothing to place yet"
    )]
    WhileDown,
}

/// The result of a request for interrupts near a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// The candidates are in the program's L3 domains.
    There,
    /// The program may run in all L3 domains of the candidates, and on all their cores.
    Everywhere,
    /// No candidate is in the program's L3 domains.
    Nowhere,
    /// The unit does not run, and no earlier apply has recorded its CPUs.
    NotRunning,
    /// The process named by `pid:N` does not exist; the interface is unchanged.
    NoProcess,
}
