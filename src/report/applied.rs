use std::collections::BTreeSet;

use serde::Serialize;

use crate::cpuset::{CpuSet, Inserted as _};
use crate::machine::{Machine, Role};
use crate::plan::stored::Change;
use crate::plan::{Plan, Write};
use crate::report::applied::Evidence::{NoTraffic, Proven};
use crate::report::difference::{NoteAbout, UnmovableVector};
use crate::report::exit::Exit;
use crate::report::outcome::{ChannelOutcome, IrqbalanceOutcome, Outcome, Tally, WriteResult};
use crate::report::restored::Restored;

/// The result of `apply`, and where interrupts arrived after it; its JSON form is `nicpin.apply/1`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "nicpin.apply/1")]
pub struct Applied {
    pub hash: String,
    /// Settings by outcome; none counts as changed if all were restored.
    #[serde(flatten)]
    pub tally: Tally,
    pub channels: Vec<ChannelOutcome>,
    /// The request before the first write, which counts like a write; `None` if there was nothing to request.
    pub irqbalance: Option<IrqbalanceOutcome>,
    /// The writes in the plan's order; with `Options::atomic`, up to the first failure.
    pub results: Vec<WriteResult>,
    /// The restore after a failed write of an atomic request.
    pub undone: Option<Restored>,
    /// The restore of an unconfirmed earlier trial, performed first.
    pub earlier: Option<Restored>,
    /// Seconds; `None` without a trial.
    pub trial: Option<u64>,
    /// Seconds left of the trial; not in JSON, because they differ at every run.
    #[serde(skip)]
    pub left: Option<u64>,
    pub proof: Option<Vec<VectorProof>>,
    /// Why `--prove` could not watch interrupts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof_error: Option<String>,
    pub proof_cut_short: bool,
    pub changes: Vec<Change>,
    /// Whether nothing was written because a stored plan does not fit.
    pub misfit: bool,
    #[serde(skip)]
    pub strict: bool,
    pub unknown: Vec<NoteAbout>,
    pub not_judged: Vec<String>,
    pub notes: Vec<NoteAbout>,
    /// `None` if no `nicpin watch` runs.
    #[serde(rename = "watcher", skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
    /// The machine before the writes, after channels changed.
    #[serde(skip)]
    pub machine: Machine,
    /// After a change of channels, the plan for the new queues.
    #[serde(skip)]
    pub plan: Plan,
}

/// The effect of an apply on a running `nicpin watch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Watched {
    /// The watcher writes nothing until the trial is confirmed or has ended.
    WaitsForTrial,
    /// A restore had paused the watcher.
    Resumed,
}

impl Applied {
    /// `detailed`: [`Exit::Differs`] if anything was changed, also by the end of an earlier trial.
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

    pub(crate) fn with_counts(mut self) -> Self {
        let plan = &self.plan;
        self.hash.clone_from(&plan.hash);
        self.tally = self.count();
        // What was written before a vector turned out to be kernel-managed needs no write any more.
        let places: BTreeSet<_> = plan.writes.iter().map(Write::place).inserted();
        let before = (self.results.iter()).filter(|result| !places.contains(&result.place()));
        let managed = |result: &&WriteResult| result.outcome == Outcome::Managed;
        let (managed, changed): (Vec<_>, Vec<_>) = before.partition(managed);
        self.tally.already += plan.unchanged.saturating_sub(changed.len());
        self.tally.managed += UnmovableVector::of(plan)
            .len()
            .saturating_sub(managed.len());
        let is_undone = self.undone.as_ref().is_some_and(Restored::complete);
        self.trial = self
            .trial
            .filter(|_| !is_undone && !self.changed_nothing_and_failed());
        if is_undone {
            (self.tally.changed, self.tally.pending) = (0, 0);
        }
        self.notes = NoteAbout::of(plan, |_, _| true);
        self.notes.extend(plan.notes.iter().map(|note| NoteAbout {
            interface: String::new(),
            note: note.clone(),
        }));
        self
    }

    /// Counts what was written, without settings that the plan leaves unchanged.
    pub(crate) fn count(&self) -> Tally {
        Tally::of(&self.channels, self.irqbalance.as_ref(), &self.results)
    }

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

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VectorProof {
    pub interface: String,
    pub role: Role,
    pub queue: Option<u32>,
    pub irq: u32,
    pub cpus: CpuSet,
    pub verdict: Evidence,
    pub interrupts: u64,
    /// Other CPUs on which interrupts arrived: while the move was pending, or at any time if the vector is not proven.
    pub others: CpuSet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    Proven,
    NoTraffic,
    Elsewhere,
    MovedAway,
    Gone,
}
