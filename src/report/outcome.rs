//! The outcomes of writes, changes of channels and requests to irqbalance, one by one and counted.

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::kinds::{Place, SettingKind, place};
use crate::report::outcome::Outcome::{Already, Changed, Managed, Pending, Refused, Vanished};

/// The result of a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteResult {
    pub kind: SettingKind,
    pub path: String,
    pub value: String,
    pub interface: String,
    #[serde(skip)]
    pub number: u32,
    pub outcome: Outcome,
    /// `None` if the file could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// The value that was written instead, because the CPU of `value` had no free interrupt vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// The effective CPUs until the next interrupt, while they differ from the new ones.
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
    /// Written and read back; the kernel moves the vector only at its next interrupt (`irq_move_masked_irq`). Not a
    /// failure.
    Pending,
    Already,
    /// The vector cannot be moved. Not a failure.
    Managed,
    Refused,
    /// The file is absent: the queue, vector or interface is gone.
    Vanished,
}

impl WriteResult {
    /// The setting as people see it.
    pub fn shown(&self) -> String {
        self.kind.shown(&self.interface, self.number)
    }

    pub(crate) fn place(&self) -> Place<'_> {
        place(self.kind, self.number, &self.interface)
    }

    pub fn failed(&self) -> bool {
        matches!(self.outcome, Refused | Vanished)
    }

    pub fn changed(&self) -> bool {
        matches!(self.outcome, Changed | Pending)
    }
}

/// The result of a change of channels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChannelOutcome {
    pub interface: String,
    /// In the form of `ethtool -L`.
    pub wanted: String,
    pub refused: Option<String>,
}

/// The result of a request to irqbalance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IrqbalanceOutcome {
    /// `None` if irqbalance is not running.
    pub pid: Option<i32>,
    pub done: IrqbalanceAction,
    pub changed: bool,
    pub irqs: usize,
    /// The error, or more about the result.
    pub detail: Option<String>,
}

/// The results of a request to irqbalance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IrqbalanceAction {
    /// irqbalance confirmed that it leaves the IRQs unchanged.
    Banned,
    Stopped,
    Unbanned,
    Started,
    /// No request was made, because the root is a copy of a machine.
    NotRequested,
    Refused,
}

impl IrqbalanceOutcome {
    pub fn failed(&self) -> bool {
        self.done == IrqbalanceAction::Refused
    }
}

/// Settings by outcome, channels and irqbalance included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub changed: usize,
    pub already: usize,
    pub managed: usize,
    pub refused: usize,
    pub vanished: usize,
    /// Vectors among `changed` that stay on the old CPU until their next interrupt.
    pub pending: usize,
}

impl Tally {
    pub(crate) fn of(
        channels: &[ChannelOutcome],
        irqbalance: Option<&IrqbalanceOutcome>,
        results: &[WriteResult],
    ) -> Self {
        let number = |outcome| {
            results
                .iter()
                .filter(|result| result.outcome == outcome)
                .count()
        };
        let unset = channels
            .iter()
            .filter(|change| change.refused.is_some())
            .count();
        let is_changed = irqbalance.is_some_and(|irqbalance| irqbalance.changed);
        let is_refused = irqbalance.is_some_and(IrqbalanceOutcome::failed);
        Self {
            changed: number(Changed) + number(Pending) + channels.len() - unset
                + usize::from(is_changed),
            already: number(Already),
            managed: number(Managed),
            refused: number(Refused) + unset + usize::from(is_refused),
            vanished: number(Vanished),
            pending: number(Pending),
        }
    }

    /// The number of settings that should have been changed and were not.
    pub fn failed(&self) -> usize {
        self.refused + self.vanished
    }
}
