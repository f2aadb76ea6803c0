//! The result of `apply`.

use std::time::Duration;

use serde::Serialize;

use crate::plan::Note;
use crate::plan::stored::Change;
use crate::report::check::{UnmovableVector, Unplannable};
use crate::report::exit::Exit;
use crate::report::outcome::{
    ApplyOutcome, ChannelOutcome, IrqbalanceOutcome, Outcome, RestoreOutcome, WriteResult,
};
use crate::report::proof::{Evidence, VectorProof};

/// The result of `apply`; its JSON form is `nicpin.apply/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Applied {
    pub schema: &'static str,
    /// The plan's hash.
    pub hash: String,
    /// Settings written and read back, channels and irqbalance included; 0 when all were restored.
    pub changed: usize,
    /// Settings that were as planned before.
    pub already: usize,
    /// Kernel-managed vectors.
    pub managed: usize,
    /// Writes that the kernel refused.
    pub refused: usize,
    /// Writes to files that vanished.
    pub vanished: usize,
    /// Those of `changed` that stay on the old CPU until their next interrupt.
    pub pending: usize,
    pub channels: Vec<ChannelOutcome>,
    /// What was done about irqbalance, which counts like a write.
    pub irqbalance: Option<IrqbalanceOutcome>,
    pub results: Vec<WriteResult>,
    /// What was restored because a write failed and the request was atomic.
    pub undone: Option<RestoreOutcome>,
    /// The restore, done first, of an earlier trial that had not been confirmed.
    pub earlier: Option<RestoreOutcome>,
    /// The duration of the trial in seconds; `None` without one.
    pub trial: Option<u64>,
    /// The seconds of the trial that are left; not in JSON, because it differs at every run.
    #[serde(skip)]
    pub left: Option<u64>,
    /// Where interrupts arrived; `None` without `--prove`.
    pub proof: Option<Vec<VectorProof>>,
    /// Whether the proof ended early, with the trial.
    pub proof_cut_short: bool,
    /// Changes since a stored plan was made.
    pub changes: Vec<Change>,
    /// Whether nothing was written because a stored plan does not fit.
    pub misfit: bool,
    /// Whether vectors that the kernel does not allow to move count as failures.
    #[serde(skip)]
    pub strict: bool,
    /// Requested interfaces that cannot be planned.
    pub unknown: Vec<Unplannable>,
    /// The plan's notes.
    pub notes: Vec<NoteAbout>,
    /// What this means for a running `nicpin watch`; `None` if nothing changes for it.
    #[serde(rename = "watcher", skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
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

/// A note and the name of its interface, which is empty for the whole machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoteAbout {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub interface: String,
    #[serde(flatten)]
    pub note: Note,
}

impl Applied {
    /// The exit code. `detailed`: [`Exit::Differs`] when something was changed.
    pub fn exit(&self, detailed: bool) -> Exit {
        if self.failed() {
            Exit::Failed
        } else if detailed && self.changed > 0 {
            Exit::Differs
        } else {
            Exit::Planned
        }
    }

    /// Sums up what was done.
    pub fn new(done: &ApplyOutcome, trial: Option<u64>, unknown: Vec<Unplannable>) -> Self {
        let ApplyOutcome {
            plan,
            channels,
            irqbalance,
            results,
            undone,
            earlier,
            ..
        } = done;
        let of = |outcome| {
            results
                .iter()
                .filter(|result| result.outcome == outcome)
                .count()
        };
        let of_interfaces = plan.interfaces.iter().flat_map(|interface| {
            let about = |note: &Note| NoteAbout {
                interface: interface.name.clone(),
                note: note.clone(),
            };
            interface.notes.iter().map(about)
        });
        let of_machine = plan.notes.iter().map(|note| NoteAbout {
            interface: String::new(),
            note: note.clone(),
        });
        let stays = undone.as_ref().is_none_or(|undone| !undone.complete());
        let changed = results.iter().filter(|result| result.changed()).count()
            + channels.iter().filter(|c| c.refused.is_none()).count()
            + usize::from(
                irqbalance
                    .as_ref()
                    .is_some_and(|irqbalance| irqbalance.changed),
            );
        Self {
            schema: "nicpin.apply/1",
            hash: plan.hash.clone(),
            changed: if stays { changed } else { 0 },
            already: plan.unchanged + of(Outcome::Already),
            managed: of(Outcome::Managed) + UnmovableVector::of(plan).len(),
            refused: of(Outcome::Refused)
                + channels.iter().filter(|c| c.refused.is_some()).count()
                + usize::from(irqbalance.as_ref().is_some_and(IrqbalanceOutcome::failed)),
            vanished: of(Outcome::Vanished),
            pending: if stays { of(Outcome::Pending) } else { 0 },
            notes: of_interfaces.chain(of_machine).collect(),
            channels: channels.clone(),
            irqbalance: irqbalance.clone(),
            results: results.clone(),
            undone: undone.clone(),
            earlier: earlier.clone(),
            trial: trial.filter(|_| stays && !done.is_in_vain()),
            left: trial,
            proof: None,
            proof_cut_short: false,
            changes: Vec::new(),
            misfit: false,
            strict: false,
            unknown,
            watched: None,
        }
    }

    /// The result when nothing was written because a stored plan does not fit the machine.
    #[doc(hidden)]
    pub fn nothing(hash: String, changes: Vec<Change>) -> Self {
        Self {
            schema: "nicpin.apply/1",
            hash,
            changed: 0,
            already: 0,
            managed: 0,
            refused: 0,
            vanished: 0,
            pending: 0,
            notes: Vec::new(),
            channels: Vec::new(),
            irqbalance: None,
            results: Vec::new(),
            undone: None,
            earlier: None,
            trial: None,
            left: None,
            proof: None,
            proof_cut_short: false,
            changes,
            misfit: true,
            strict: false,
            unknown: Vec::new(),
            watched: None,
        }
    }

    /// Adds the changes since a stored plan was made.
    #[must_use]
    pub fn with_changes(self, changes: Vec<Change>) -> Self {
        Self { changes, ..self }
    }

    /// Adds where interrupts arrived.
    #[must_use]
    pub fn with_proof(self, proof: Option<Vec<VectorProof>>) -> Self {
        Self { proof, ..self }
    }

    /// Adds whether the proof ended early, with the trial.
    #[must_use]
    pub fn cut_short(self, cut_short: bool) -> Self {
        Self {
            proof_cut_short: cut_short,
            ..self
        }
    }

    /// Adds what this means for a running `nicpin watch`.
    #[must_use]
    pub fn with_watcher(self, watched: Option<Watched>) -> Self {
        Self { watched, ..self }
    }

    /// Whether vectors that the kernel does not allow to move count as failures.
    #[must_use]
    pub fn strict(self, strict: bool) -> Self {
        Self { strict, ..self }
    }

    /// Adds the time of the trial that is left, `written` after the writes.
    #[must_use]
    pub fn since(self, written: Duration) -> Self {
        Self {
            left: self
                .trial
                .map(|seconds| seconds.saturating_sub(written.as_secs())),
            ..self
        }
    }

    /// Whether the planned state was not reached.
    pub fn failed(&self) -> bool {
        let mut proof = self.proof.iter().flatten();
        let disproved =
            proof.any(|vector| !matches!(vector.verdict, Evidence::Proven | Evidence::NoTraffic));
        let left_out = self.changes.iter().any(|change| change.left_out);
        let unmoved = self.strict && self.managed > 0;
        unmoved
            || self.refused + self.vanished > 0
            || !self.unknown.is_empty()
            || self.misfit
            || left_out
            || disproved
    }
}
