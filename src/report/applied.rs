//! What `apply` did.

use std::time::Duration;

use serde::Serialize;

use crate::plan::Note;
use crate::plan::stored::Change;
use crate::report::check::Unplannable;
use crate::report::exit::Exit;
use crate::report::outcome::{
    ApplyOutcome, ChannelOutcome, IrqbalanceOutcome, Outcome, RestoreOutcome, WriteResult,
};
use crate::report::proof::{Evidence, VectorProof};

/// What `apply` has done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Applied {
    pub schema: &'static str,
    /// The plan's hash.
    pub hash: String,
    /// WriteResult and read back, and not taken back.
    pub changed: usize,
    /// As planned before.
    pub already: usize,
    /// Kernel-managed vectors.
    pub managed: usize,
    /// Not taken by the kernel.
    pub refused: usize,
    /// Gone.
    pub vanished: usize,
    /// Those of `changed` that the old CPU serves until their next interrupt.
    pub pending: usize,
    /// Each change of channels.
    pub channels: Vec<ChannelOutcome>,
    /// What was done about irqbalance, which counts like a write.
    pub irqbalance: Option<IrqbalanceOutcome>,
    /// Each write.
    pub results: Vec<WriteResult>,
    /// What was taken back, since a write failed and all or nothing was asked for.
    pub undone: Option<RestoreOutcome>,
    /// An earlier trial that nobody confirmed and nobody had put back, which was done first.
    pub earlier: Option<RestoreOutcome>,
    /// How many seconds the plan is on trial, if it is.
    pub trial: Option<u64>,
    /// How many of them are left; for people, since it is another at every run.
    #[serde(skip)]
    pub left: Option<u64>,
    /// Where interrupts arrived, where that was waited for.
    pub proof: Option<Vec<VectorProof>>,
    /// Whether that ended early, since the time of the trial does.
    pub proof_cut_short: bool,
    /// What has changed since a stored plan was made.
    pub changes: Vec<Change>,
    /// Whether nothing was written, since a stored plan does not fit.
    pub misfit: bool,
    /// Interfaces that were asked for and cannot be planned, and why.
    pub unknown: Vec<Unplannable>,
    /// The plan's notes; those of interfaces by name.
    pub notes: Vec<NoteAbout>,
}

/// A note, and the interface that it is about; empty for the whole machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoteAbout {
    /// The interface.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub interface: String,
    /// The note.
    #[serde(flatten)]
    pub note: Note,
}

impl Applied {
    /// The exit code; `detailed`: something that was changed counts.
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
        let ApplyOutcome { plan, channels, irqbalance, results, undone, earlier, .. } = done;
        let of = |outcome| results.iter().filter(|result| result.outcome == outcome).count();
        let of_interfaces = plan.interfaces.iter().flat_map(|interface| {
            let about = |note: &Note| NoteAbout { interface: interface.name.clone(), note: note.clone() };
            interface.notes.iter().map(about)
        });
        let of_machine =
            plan.notes.iter().map(|note| NoteAbout { interface: String::new(), note: note.clone() });
        let stays = undone.as_ref().is_none_or(|undone| !undone.complete());
        let changed = results.iter().filter(|result| result.changed()).count()
            + channels.iter().filter(|c| c.refused.is_none()).count()
            + usize::from(irqbalance.as_ref().is_some_and(|told| told.changed));
        Self {
            schema: "nicpin.apply/1",
            hash: plan.hash.clone(),
            changed: if stays { changed } else { 0 },
            already: plan.unchanged + of(Outcome::Already),
            managed: of(Outcome::Managed),
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
            unknown,
        }
    }

    /// Nothing was written: a stored plan does not fit the machine as it is now.
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
            unknown: Vec::new(),
        }
    }

    /// Also tells what has changed since a stored plan was made.
    #[must_use]
    pub fn with_changes(self, changes: Vec<Change>) -> Self {
        Self { changes, ..self }
    }

    /// Also tells where interrupts arrived.
    #[must_use]
    pub fn with_proof(self, proof: Option<Vec<VectorProof>>) -> Self {
        Self { proof, ..self }
    }

    /// Also tells whether the proof ended early, since the time of the trial does.
    #[must_use]
    pub fn cut_short(self, cut_short: bool) -> Self {
        Self { proof_cut_short: cut_short, ..self }
    }

    /// Also tells how much of the time of a trial is left when so much has passed.
    #[must_use]
    pub fn since(self, written: Duration) -> Self {
        Self { left: self.trial.map(|seconds| seconds.saturating_sub(written.as_secs())), ..self }
    }

    /// Whether the planned state was not reached.
    pub fn failed(&self) -> bool {
        let mut proof = self.proof.iter().flatten();
        let disproved = proof.any(|vector| !matches!(vector.verdict, Evidence::Proven | Evidence::NoTraffic));
        let left_out = self.changes.iter().any(|change| change.left_out);
        self.refused + self.vanished > 0 || !self.unknown.is_empty() || self.misfit || left_out || disproved
    }
}
