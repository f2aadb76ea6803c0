//! The outcomes of writes, changes of channels and requests to irqbalance, one by one and together.

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::machine::Machine;
use crate::plan::Plan;

/// The result of a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteResult {
    /// The absolute path, without the root.
    pub path: String,
    /// The value to write.
    pub value: String,
    /// Empty for a setting of the whole machine.
    pub interface: String,
    pub outcome: Outcome,
    /// What the file held before; `None` where it could not be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub was: Option<String>,
    /// The fallback that was written because the CPU of `value` had no free interrupt vector.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fallback: Option<String>,
    /// The effective CPUs until the next interrupt, while they are not the new ones.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub effective: Option<CpuSet>,
    /// The kernel's error in words, and the fix.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
}

/// The outcomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Written, and read back as written.
    Changed,
    /// The same, but the kernel moves the vector only at its next interrupt (`irq_move_masked_irq`). Not a failure.
    Pending,
    /// The file held the value before.
    Already,
    /// The kernel manages the vector and does not allow to move it. Not a failure.
    Managed,
    /// The kernel refused the write.
    Refused,
    /// The file is absent: its queue, vector or interface is gone.
    Vanished,
}

impl WriteResult {
    /// Whether the write failed.
    pub fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Refused | Outcome::Vanished)
    }

    /// Whether the file was changed.
    pub fn changed(&self) -> bool {
        matches!(self.outcome, Outcome::Changed | Outcome::Pending)
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
    pub(crate) fn new(
        pid: Option<i32>,
        done: IrqbalanceAction,
        changed: bool,
        irqs: usize,
    ) -> Self {
        Self {
            pid,
            done,
            changed,
            irqs,
            detail: None,
        }
    }

    /// Whether the request failed.
    pub fn failed(&self) -> bool {
        self.done == IrqbalanceAction::Refused
    }
}

/// The result of a restore.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RestoreOutcome {
    pub channels: Vec<ChannelOutcome>,
    /// Each write, in the order of execution.
    pub results: Vec<WriteResult>,
    /// The number of settings that needed no write.
    pub unchanged: usize,
    /// Recorded settings whose files are absent now.
    pub absent: Vec<String>,
    /// Settings that exist and could not be restored, by the names of the record. The reasons are in `channels` and
    /// `results`.
    #[serde(skip)]
    pub(crate) refused: Vec<String>,
    /// The number of settings that are not restored: refused or absent.
    pub not_restored: usize,
    /// `None` when there was nothing to undo.
    pub irqbalance: Option<IrqbalanceOutcome>,
}

impl RestoreOutcome {
    /// Whether everything is restored.
    pub fn complete(&self) -> bool {
        self.absent.is_empty() && !self.failed()
    }

    /// Whether the kernel refused to restore a setting, which may succeed later.
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    pub(crate) fn counted(mut self) -> Self {
        let channels = self
            .channels
            .iter()
            .filter(|channel| channel.refused.is_some())
            .count();
        let irqbalance = usize::from(
            self.irqbalance
                .as_ref()
                .is_some_and(IrqbalanceOutcome::failed),
        );
        let results = self.results.iter().filter(|result| result.failed()).count();
        self.not_restored = results + channels + irqbalance + self.absent.len();
        self
    }

    /// Whether there was nothing to restore.
    pub(crate) fn had_nothing_to_do(&self) -> bool {
        self.complete() && !any_changed(&self.channels, self.irqbalance.as_ref(), &self.results)
    }

    /// Whether something exists and could not be restored.
    pub fn failed(&self) -> bool {
        any_failed(&self.channels, self.irqbalance.as_ref(), &self.results)
    }
}

/// The result of applying a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyOutcome {
    /// The machine as it was before the writes, after channels changed.
    pub machine: Machine,
    /// The plan; after a change of channels, the one for the new queues.
    pub plan: Plan,
    pub channels: Vec<ChannelOutcome>,
    /// The request to irqbalance before the first write; `None` when there was nothing to do.
    pub irqbalance: Option<IrqbalanceOutcome>,
    /// Each write, in the plan's order; with `Options::atomic`, up to the first that failed.
    pub results: Vec<WriteResult>,
    /// What was restored after a failed write, with `Options::atomic`.
    pub undone: Option<RestoreOutcome>,
    /// The restore, done first, of an earlier trial that had not been confirmed.
    pub earlier: Option<RestoreOutcome>,
}

impl ApplyOutcome {
    /// Whether any write, change or request failed.
    pub fn failed(&self) -> bool {
        any_failed(&self.channels, self.irqbalance.as_ref(), &self.results)
    }

    /// Whether everything failed, so that there is nothing to keep or restore.
    pub fn is_in_vain(&self) -> bool {
        self.failed() && !any_changed(&self.channels, self.irqbalance.as_ref(), &self.results)
    }
}

fn any_changed(
    channels: &[ChannelOutcome],
    irqbalance: Option<&IrqbalanceOutcome>,
    results: &[WriteResult],
) -> bool {
    channels.iter().any(|channel| channel.refused.is_none())
        || irqbalance.is_some_and(|irqbalance| irqbalance.changed)
        || results.iter().any(WriteResult::changed)
}

fn any_failed(
    channels: &[ChannelOutcome],
    irqbalance: Option<&IrqbalanceOutcome>,
    results: &[WriteResult],
) -> bool {
    channels.iter().any(|channel| channel.refused.is_some())
        || irqbalance.is_some_and(IrqbalanceOutcome::failed)
        || results.iter().any(WriteResult::failed)
}
