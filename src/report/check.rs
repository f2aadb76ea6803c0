//! The result of `check`.

use serde::Serialize;

use crate::plan::{ChannelChange, Note, Plan};
use crate::report::difference::{Difference, Fallback};
use crate::report::exit::Exit;

/// The result of `check`; its JSON form is `nicpin.check/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Check {
    pub schema: &'static str,
    pub verdict: CheckState,
    /// The plan's hash.
    pub hash: String,
    /// The number of settings that are as planned.
    pub same: usize,
    /// Settings that are not as planned.
    pub differs: Vec<Difference>,
    /// Vectors that apply placed on another CPU because the planned one had no free interrupt vector; they count as planned.
    pub fallbacks: Vec<Fallback>,
    /// Planned changes of channels.
    pub channels: Vec<ChannelChange>,
    /// Requested interfaces whose state could not be determined.
    pub unknown: Vec<Unplannable>,
    /// Notes about selectors that match nothing.
    pub notes: Vec<Note>,
    /// Interfaces that are up, were not requested by name and cannot be planned.
    pub left_alone: Vec<Unplannable>,
}

/// An interface that cannot be planned, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Unplannable {
    pub interface: String,
    #[serde(flatten)]
    pub note: Note,
}

impl Unplannable {
    /// The interfaces of a plan that have a note that `matches`.
    #[doc(hidden)]
    pub fn of(plan: &Plan, matches: impl Fn(&Note) -> bool) -> Vec<Self> {
        let notes = plan.interfaces.iter().flat_map(|i| i.notes.iter().map(move |note| (i, note)));
        notes
            .filter(|(_, note)| matches(note))
            .map(|(interface, note)| Self { interface: interface.name.clone(), note: note.clone() })
            .collect()
    }

    /// Interfaces selected by name that cannot be planned.
    pub fn requested(plan: &Plan, requested: bool) -> Vec<Self> {
        if requested { Self::of(plan, Note::is_unplannable) } else { Vec::new() }
    }

    /// Interfaces whose state cannot be determined: those selected by name that cannot be planned, and without a selection
    /// all those whose vectors cannot be read.
    pub fn unknown(plan: &Plan, requested: bool) -> Vec<Self> {
        if requested {
            Self::requested(plan, requested)
        } else {
            Self::of(plan, |note| matches!(note, Note::VectorsUnreadable { .. }))
        }
    }

    /// Without a selection: interfaces that are up and whose vectors are not understood.
    pub fn left_alone(plan: &Plan, requested: bool) -> Vec<Self> {
        if requested {
            return Vec::new();
        }
        let mut left = Self::of(plan, |note| matches!(note, Note::VectorsNotUnderstood { .. }));
        let up = |name: &str| plan.interfaces.iter().any(|i| i.name == name && i.link == "up");
        left.retain(|one| up(&one.interface));
        left
    }
}

/// The verdicts of `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CheckState {
    /// Everything is as planned.
    Same,
    /// Something is not as planned.
    Differs,
    /// Not every requested interface can be planned.
    CouldNotBeDetermined,
}

impl Check {
    pub fn exit(&self) -> Exit {
        match self.verdict {
            CheckState::Same => Exit::Planned,
            CheckState::Differs => Exit::Differs,
            CheckState::CouldNotBeDetermined => Exit::Failed,
        }
    }

    /// The verdict on a plan, from the settings that differ and the interfaces that cannot be planned.
    #[doc(hidden)]
    pub fn new(
        plan: &Plan,
        differs: Vec<Difference>,
        fallbacks: Vec<Fallback>,
        unknown: Vec<Unplannable>,
        left_alone: Vec<Unplannable>,
    ) -> Self {
        let verdict = match (differs.is_empty() && plan.channels.is_empty(), unknown.is_empty()) {
            (_, false) => CheckState::CouldNotBeDetermined,
            (true, true) => CheckState::Same,
            (false, true) => CheckState::Differs,
        };
        Self {
            schema: "nicpin.check/1",
            verdict,
            hash: plan.hash.clone(),
            same: plan.unchanged + fallbacks.len(),
            differs,
            fallbacks,
            channels: plan.channels.clone(),
            unknown,
            notes: plan.notes.iter().filter(|note| note.is_absent()).cloned().collect(),
            left_alone,
        }
    }
}
