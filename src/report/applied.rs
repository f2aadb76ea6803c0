//! The result of `apply`, and where interrupts arrived after it.

use serde::Serialize;

use crate::cpuset::CpuSet;
use crate::machine::{Machine, Role};
use crate::plan::Plan;
use crate::plan::stored::Change;
use crate::report::applied::Evidence::{NoTraffic, Proven};
use crate::report::difference::{NoteAbout, UnmovableVector};
use crate::report::exit::Exit;
use crate::report::outcome::{ChannelOutcome, IrqbalanceOutcome, Tally, WriteResult};
use crate::report::restored::Restored;

/// The result of applying a plan; its JSON form is `nicpin.apply/1`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "nicpin.apply/1")]
pub struct Applied {
    /// The plan's hash.
    pub hash: String,
    /// The settings; none is changed when all were restored.
    #[serde(flatten)]
    pub tally: Tally,
    pub channels: Vec<ChannelOutcome>,
    /// The request to irqbalance before the first write, which counts like a write; `None` when there was nothing to do.
    pub irqbalance: Option<IrqbalanceOutcome>,
    /// Each write, in the plan's order; with `Options::atomic`, up to the first that failed.
    pub results: Vec<WriteResult>,
    /// What was restored because a write failed and the request was atomic.
    pub undone: Option<Restored>,
    /// The restore, done first, of an earlier trial that had not been confirmed.
    pub earlier: Option<Restored>,
    /// The duration of the trial in seconds; `None` without one.
    pub trial: Option<u64>,
    /// The seconds of the trial that are left; not in JSON, because it differs at every run.
    #[serde(skip)]
    pub left: Option<u64>,
    /// Where interrupts arrived; `None` without `--prove`.
    pub proof: Option<Vec<VectorProof>>,
    /// Why interrupts could not be watched, although `--prove` asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof_error: Option<String>,
    /// Whether the proof ended early, with the trial.
    pub proof_cut_short: bool,
    /// Changes since a stored plan was made.
    pub changes: Vec<Change>,
    /// Whether nothing was written because a stored plan does not fit.
    pub misfit: bool,
    /// Whether vectors that cannot be moved count as failures.
    #[serde(skip)]
    pub strict: bool,
    /// Requested interfaces that cannot be planned.
    pub unknown: Vec<NoteAbout>,
    /// Interfaces that are up and cannot be judged.
    pub not_judged: Vec<String>,
    /// The plan's notes.
    pub notes: Vec<NoteAbout>,
    /// What this means for a running `nicpin watch`; `None` if nothing changes for it.
    #[serde(rename = "watcher", skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
    /// The machine as it was before the writes, after channels changed.
    #[serde(skip)]
    pub machine: Machine,
    /// The plan; after a change of channels, the one for the new queues.
    #[serde(skip)]
    pub plan: Plan,
}

/// What an apply means for a running `nicpin watch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Watched {
    /// It writes nothing until the trial is confirmed or has ended.
    WaitsForTrial,
    /// It was paused by a restore, and is not any more.
    Resumed,
}

impl Applied {
    /// The exit code. `detailed`: [`Exit::Differs`] when something was changed, by the end of an earlier trial, too.
    pub fn exit(&self, detailed: bool) -> Exit {
        let earlier = self.earlier.as_ref().map_or(0, |earlier| earlier.changed);
        if self.failed() {
            Exit::Failed
        } else if detailed && self.tally.changed + earlier > 0 {
            Exit::Differs
        } else {
            Exit::Planned
        }
    }

    /// Counts what was done.
    pub(crate) fn counted(mut self) -> Self {
        let plan = &self.plan;
        self.hash.clone_from(&plan.hash);
        self.tally = self.count();
        self.tally.already += plan.unchanged;
        self.tally.managed += UnmovableVector::of(plan).len();
        let is_undone = self.undone.as_ref().is_some_and(Restored::complete);
        self.trial = self
            .trial
            .filter(|_| !is_undone && !self.changed_nothing_and_failed());
        self.left = self.trial;
        if is_undone {
            (self.tally.changed, self.tally.pending) = (0, 0);
        }
        let of_interfaces = plan.interfaces.iter().map(|one| (&*one.name, &one.notes));
        for (interface, notes) in of_interfaces.chain([("", &plan.notes)]) {
            self.notes.extend(notes.iter().map(|note| NoteAbout {
                interface: interface.to_owned(),
                note: note.clone(),
            }));
        }
        self
    }

    /// What was written, without what the plan left as it is.
    pub(crate) fn count(&self) -> Tally {
        Tally::of(&self.channels, self.irqbalance.as_ref(), &self.results)
    }

    /// Whether everything failed, so that there is nothing to keep or restore.
    pub(crate) fn changed_nothing_and_failed(&self) -> bool {
        let tally = self.count();
        tally.failed() > 0 && tally.changed == 0
    }

    /// Whether the planned state was not reached.
    pub fn failed(&self) -> bool {
        let mut proof = self.proof.iter().flatten();
        self.strict && self.tally.managed > 0
            || self.tally.failed() > 0
            || !self.unknown.is_empty()
            || self.misfit
            || self.proof_error.is_some()
            || self.changes.iter().any(|change| change.left_out)
            || proof.any(|vector| !matches!(vector.verdict, Proven | NoTraffic))
    }
}

/// The interrupts of one vector after an apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VectorProof {
    pub interface: String,
    pub role: Role,
    pub queue: Option<u32>,
    pub irq: u32,
    /// The planned CPUs.
    pub cpus: CpuSet,
    pub verdict: Evidence,
    /// Interrupts that arrived on the planned CPUs.
    pub interrupts: u64,
    /// Other CPUs on which interrupts arrived: before the first one on a planned CPU, while the move was pending, or, if
    /// the vector is not proven, at any time.
    pub others: CpuSet,
}

/// The evidence for where a vector's interrupts arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Interrupts arrived on the planned CPUs.
    Proven,
    /// No interrupt arrived.
    NoTraffic,
    /// Interrupts arrived on other CPUs.
    Elsewhere,
    /// Its affinity was changed meanwhile.
    MovedAway,
    /// The vector no longer exists.
    Gone,
}
