//! What became of writes, one by one and of all of them together.

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::machine::Machine;
use crate::plan::Plan;

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteResult {
    /// The file, from `/` whatever the root.
    pub path: String,
    /// What was to be written.
    pub value: String,
    /// The interface; empty for a setting of the whole machine.
    pub interface: String,
    /// What became of it.
    pub outcome: Outcome,
    /// What the file held before; `None` where it could not be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub was: Option<String>,
    /// What it was given in place of `value`, since the kernel had no room for that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub instead: Option<String>,
    /// The CPUs that serve the vector until its next interrupt, while they are not yet the new ones.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub effective: Option<CpuSet>,
    /// The kernel's answer in words, and the fix.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
}

/// The outcomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// WriteResult, and read back as written.
    Changed,
    /// The same, and the old CPU serves until the next interrupt moves the vector (`irq_move_masked_irq`): the new
    /// CPUs are allowed, which is all that a write can do. No failure.
    Pending,
    /// It held the value already.
    Already,
    /// The kernel manages the vector and lets nobody move it: a fact, not a failure.
    Managed,
    /// The kernel did not take it.
    Refused,
    /// The file went away: its queue, its vector or its interface is gone.
    Vanished,
}

impl WriteResult {
    /// Whether the planned value was not reached and could have been.
    pub fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Refused | Outcome::Vanished)
    }

    /// Whether the file holds another value than before.
    pub fn changed(&self) -> bool {
        matches!(self.outcome, Outcome::Changed | Outcome::Pending)
    }
}

/// What became of a change of channels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChannelOutcome {
    /// The interface.
    pub interface: String,
    /// The channels as `ethtool -L` takes them.
    pub wanted: String,
    /// Why it was not done; `None` when it was.
    pub refused: Option<String>,
}

/// What was done about irqbalance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IrqbalanceOutcome {
    /// Its process id; `None` when it does not run.
    pub pid: Option<i32>,
    /// What was done.
    pub done: IrqbalanceAction,
    /// Whether that changed anything.
    pub changed: bool,
    /// How many IRQs it was told of.
    pub irqs: usize,
    /// Why it was not done, or what else there is to know.
    pub detail: Option<String>,
}

/// What can be done about irqbalance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IrqbalanceAction {
    /// It says that it leaves the IRQs alone.
    Banned,
    /// Its service is stopped.
    Stopped,
    /// The IRQs that nicpin had it leave alone are its again.
    Unbanned,
    /// Its service runs again.
    Started,
    /// Nobody was there to be told: a copy of a machine.
    NotTold,
    /// It did not do as it was told.
    Refused,
}

impl IrqbalanceOutcome {
    pub(crate) fn new(pid: Option<i32>, done: IrqbalanceAction, changed: bool, irqs: usize) -> Self {
        Self { pid, done, changed, irqs, detail: None }
    }

    /// Whether it was not done.
    pub fn failed(&self) -> bool {
        self.done == IrqbalanceAction::Refused
    }
}

/// What was put back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RestoreOutcome {
    /// Each change of channels.
    pub channels: Vec<ChannelOutcome>,
    /// Each write, in the order in which it was done.
    pub results: Vec<WriteResult>,
    /// How many values were as before without a write.
    pub unchanged: usize,
    /// Values that the machine does not have now.
    pub absent: Vec<String>,
    /// Values that are there and were not put back, by the names of the record; the reasons are with `channels` and
    /// `results`.
    #[serde(skip)]
    pub(crate) refused: Vec<String>,
    /// How many values are not as they were: refused, or not there now.
    pub not_back: usize,
    /// What was undone about irqbalance; `None` where there was nothing to undo.
    pub irqbalance: Option<IrqbalanceOutcome>,
}

impl RestoreOutcome {
    /// Whether everything is as it was.
    pub fn complete(&self) -> bool {
        self.absent.is_empty() && !self.failed()
    }

    pub(crate) fn counted(mut self) -> Self {
        let channels = self.channels.iter().filter(|channel| channel.refused.is_some()).count();
        let irqbalance = usize::from(self.irqbalance.as_ref().is_some_and(IrqbalanceOutcome::failed));
        let results = self.results.iter().filter(|result| result.failed()).count();
        self.not_back = results + channels + irqbalance + self.absent.len();
        self
    }

    /// Whether all was as it was before that.
    pub(crate) fn had_nothing_to_do(&self) -> bool {
        self.complete() && !any_changed(&self.channels, self.irqbalance.as_ref(), &self.results)
    }

    /// Whether something is there and was not put back.
    pub fn failed(&self) -> bool {
        any_failed(&self.channels, self.irqbalance.as_ref(), &self.results)
    }
}

/// A plan that was applied.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyOutcome {
    /// The machine as it was before the writes, after channels changed.
    pub machine: Machine,
    /// The plan: where channels changed, the one for the new queues.
    pub plan: Plan,
    /// Each change of channels.
    pub channels: Vec<ChannelOutcome>,
    /// What was done about irqbalance before the first write; `None` where there was nothing to do.
    pub irqbalance: Option<IrqbalanceOutcome>,
    /// Each write, in the plan's order; with [`Options::atomic`], up to the first that failed.
    pub results: Vec<WriteResult>,
    /// What was taken back, where [`Options::atomic`] made it so.
    pub undone: Option<RestoreOutcome>,
    /// An earlier trial that nobody confirmed and that was put back first.
    pub earlier: Option<RestoreOutcome>,
}

impl ApplyOutcome {
    /// Whether something was not written that could have been.
    pub fn failed(&self) -> bool {
        any_failed(&self.channels, self.irqbalance.as_ref(), &self.results)
    }

    /// Whether there was something to set and nothing of it was taken, so that there is nothing to keep or put back.
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
        || irqbalance.is_some_and(|told| told.changed)
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
