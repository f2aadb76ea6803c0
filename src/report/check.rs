//! What `check` found.

use serde::Serialize;

use crate::plan::{ChannelChange, Note, Plan};
use crate::report::difference::{Difference, Fallback};
use crate::report::exit::Exit;

/// What `check` says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    pub schema: &'static str,
    /// The answer.
    pub verdict: CheckState,
    /// The plan's hash.
    pub hash: String,
    /// How many values are as planned.
    pub same: usize,
    /// What is not, and why.
    pub differs: Vec<Difference>,
    /// What apply has put elsewhere, since the kernel had no room for it: as good as planned.
    pub instead: Vec<Fallback>,
    /// Cards that should have other channels.
    pub channels: Vec<ChannelChange>,
    /// Interfaces that were asked for and cannot be told, and why.
    pub unknown: Vec<Unplannable>,
    /// What was named and is not there.
    pub notes: Vec<Note>,
    /// Interfaces that nobody asked for by name, which are up and cannot be planned, and why.
    pub left_alone: Vec<Unplannable>,
}

/// An interface that cannot be planned, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unplannable {
    /// Its name.
    pub interface: String,
    /// Why.
    #[serde(flatten)]
    pub note: Note,
}

impl Unplannable {
    /// The interfaces of a plan with such a note.
    pub fn of(plan: &Plan, says: impl Fn(&Note) -> bool) -> Vec<Self> {
        let notes = plan.interfaces.iter().flat_map(|i| i.notes.iter().map(move |note| (i, note)));
        notes
            .filter(|(_, note)| says(note))
            .map(|(interface, note)| Self { interface: interface.name.clone(), note: note.clone() })
            .collect()
    }
}

/// The answers of `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// Everything is as planned.
    Same,
    /// Something is not.
    Differs,
    /// It cannot be told.
    CouldNotTell,
}

impl Check {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self.verdict {
            CheckState::Same => Exit::Planned,
            CheckState::Differs => Exit::Differs,
            CheckState::CouldNotTell => Exit::Failed,
        }
    }

    /// Checks a plan: what it would write is what differs.
    pub fn new(
        plan: &Plan,
        differs: Vec<Difference>,
        instead: Vec<Fallback>,
        unknown: Vec<Unplannable>,
        left_alone: Vec<Unplannable>,
    ) -> Self {
        let verdict = match (differs.is_empty() && plan.channels.is_empty(), unknown.is_empty()) {
            (_, false) => CheckState::CouldNotTell,
            (true, true) => CheckState::Same,
            (false, true) => CheckState::Differs,
        };
        Self {
            schema: "nicpin.check/1",
            verdict,
            hash: plan.hash.clone(),
            same: plan.unchanged + instead.len(),
            differs,
            instead,
            channels: plan.channels.clone(),
            unknown,
            notes: plan.notes.iter().filter(|note| note.is_absent()).cloned().collect(),
            left_alone,
        }
    }
}
