//! The outcomes of writes, changes of channels and requests to irqbalance, one by one and counted.

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::plan::WriteKind;
use crate::report::outcome::Outcome::{Already, Changed, Managed, Pending, Refused, Vanished};

/// The result of a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteResult {
    pub kind: WriteKind,
    /// The absolute path, without the root.
    pub path: String,
    /// The value to write.
    pub value: String,
    /// Empty for a setting of the whole machine.
    pub interface: String,
    /// As in [`Write`](crate::plan::Write).
    #[serde(skip)]
    pub number: u32,
    pub outcome: Outcome,
    /// What the file held before; `None` where it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// The fallback that was written because the CPU of `value` had no free interrupt vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// The effective CPUs until the next interrupt, while they are not the new ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective: Option<CpuSet>,
    /// The kernel's error in words, and the fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The outcomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Written, and read back as written.
    Changed,
    /// The same, but the kernel moves the vector only at its next interrupt (`irq_move_masked_irq`). Not a failure.
    Pending,
    /// The file held the value before.
    Already,
    /// The vector is kernel-managed and cannot be moved. Not a failure.
    Managed,
    /// The kernel refused the write.
    Refused,
    /// The file is absent: its queue, vector or interface is gone.
    Vanished,
}

impl WriteResult {
    /// Whether the write failed.
    pub fn failed(&self) -> bool {
        matches!(self.outcome, Refused | Vanished)
    }

    /// Whether the file was changed.
    pub fn changed(&self) -> bool {
        matches!(self.outcome, Changed | Pending)
    }
}

/// The result of a change of channels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChannelOutcome {
    pub interface: String,
    /// The channels as `ethtool -L` takes them.
    pub wanted: String,
    /// The error; `None` on success.
    pub refused: Option<String>,
}

/// The result of a request to irqbalance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IrqbalanceOutcome {
    /// `None` when it is not running.
    pub pid: Option<i32>,
    pub done: IrqbalanceAction,
    /// Whether that changed anything.
    pub changed: bool,
    /// The number of IRQs in the request.
    pub irqs: usize,
    /// The error, or more about the result.
    pub detail: Option<String>,
}

/// The possible results of a request to irqbalance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IrqbalanceAction {
    /// It confirmed that it leaves the IRQs alone.
    Banned,
    /// Its service is stopped.
    Stopped,
    /// It may move the IRQs again that nicpin had it leave alone.
    Unbanned,
    /// Its service is started again.
    Started,
    /// No request was made, because the root is a copy of a machine.
    NotRequested,
    /// It did not accept the request.
    Refused,
}

impl IrqbalanceOutcome {
    /// Whether the request failed.
    pub fn failed(&self) -> bool {
        self.done == IrqbalanceAction::Refused
    }
}

/// How many settings came to what, channels and irqbalance included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Written and read back.
    pub changed: usize,
    /// As wanted before.
    pub already: usize,
    /// Vectors that the kernel manages.
    pub managed: usize,
    /// Refused by the kernel.
    pub refused: usize,
    /// In files that vanished.
    pub vanished: usize,
    /// Those of `changed` that stay on the old CPU until their next interrupt.
    pub pending: usize,
}

impl Tally {
    pub(crate) fn of(
        channels: &[ChannelOutcome],
        irqbalance: Option<&IrqbalanceOutcome>,
        results: &[WriteResult],
    ) -> Self {
        let of = |outcome| results.iter().filter(|of| of.outcome == outcome).count();
        let unset = channels.iter().filter(|of| of.refused.is_some()).count();
        let is_changed = irqbalance.is_some_and(|irqbalance| irqbalance.changed);
        let is_refused = irqbalance.is_some_and(IrqbalanceOutcome::failed);
        Self {
            changed: of(Changed) + of(Pending) + channels.len() - unset + usize::from(is_changed),
            already: of(Already),
            managed: of(Managed),
            refused: of(Refused) + unset + usize::from(is_refused),
            vanished: of(Vanished),
            pending: of(Pending),
        }
    }

    /// The settings that were to be changed and are not.
    pub fn failed(&self) -> usize {
        self.refused + self.vanished
    }
}
