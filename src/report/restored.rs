//! The result of `restore`, of an apply that was undone, and of a trial that ended.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::kinds::SettingId;
use crate::plan::{SettingKind, Write};
use crate::report::exit::Exit;
use crate::report::outcome::{ChannelOutcome, IrqbalanceOutcome, Outcome, Tally, WriteResult};

/// The writes that `restore` would perform; the JSON form is `nicpin.to-restore/1`.
#[derive(Debug, Default, Serialize)]
#[serde(tag = "schema", rename = "nicpin.to-restore/1")]
pub struct ToRestore {
    /// Recorded channels in the form of `ethtool -L`, by interface. They are restored first.
    pub channels: BTreeMap<String, String>,
    pub writes: Vec<Write>,
    /// Settings that hold the recorded value.
    pub unchanged: usize,
    /// Recorded settings whose files are absent now.
    pub absent: BTreeSet<SettingId>,
    /// Whether a request to irqbalance would be undone.
    pub irqbalance: bool,
    pub refusals: Refusals,
    /// `None` if that could not be determined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<Vec<String>>,
}

/// Recorded settings that cannot be written, known before any write, with the reasons.
#[derive(Debug, Default, Serialize)]
pub struct Refusals {
    pub channels: Vec<ChannelOutcome>,
    pub results: Vec<WriteResult>,
}

impl ToRestore {
    pub fn refused(&self) -> usize {
        self.refusals.channels.len() + self.refusals.results.len()
    }

    pub fn is_empty(&self) -> bool {
        let all = self.channels.len() + self.writes.len() + self.unchanged + self.absent.len();
        all + self.refused() == 0 && !self.irqbalance
    }

    pub fn exit(&self) -> Exit {
        Exit::of(self.refused() > 0)
    }
}

/// The result of a restore; the JSON form is `nicpin.restore/1`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "schema", rename = "nicpin.restore/1")]
pub struct Restored {
    /// Settings restored, channels and irqbalance included.
    pub changed: usize,
    pub already: usize,
    pub refused: usize,
    /// Vectors whose affinity is restored, which the kernel does not move back by itself.
    pub staying: usize,
    /// Settings that are refused or absent.
    pub not_restored: usize,
    pub unchanged: usize,
    pub absent: BTreeSet<SettingId>,
    pub channels: Vec<ChannelOutcome>,
    /// The undone request, which counts like a write; `None` if there was nothing to undo.
    pub irqbalance: Option<IrqbalanceOutcome>,
    pub results: Vec<WriteResult>,
    /// The reasons are in `channels` and `results`.
    #[serde(skip)]
    #[doc(hidden)]
    pub refused_ids: BTreeSet<SettingId>,
    /// Whether `nicpin watch` runs and writes nothing until the next apply.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub watcher_paused: bool,
    /// `None` if that could not be determined, and inside of an apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<Vec<String>>,
}

impl Restored {
    #[must_use]
    pub fn with_counts(mut self) -> Self {
        let tally = self.tally();
        self.changed = tally.changed;
        self.already = self.unchanged + tally.already;
        self.refused = tally.failed();
        self.staying = self
            .results
            .iter()
            .filter(|result| {
                result.outcome == Outcome::Changed && result.kind == SettingKind::Vector
            })
            .count();
        self.not_restored = self.refused + self.absent.len();
        self
    }

    fn tally(&self) -> Tally {
        Tally::of(&self.channels, self.irqbalance.as_ref(), &self.results)
    }

    pub fn exit(&self) -> Exit {
        Exit::of(self.failed())
    }

    pub fn complete(&self) -> bool {
        self.absent.is_empty() && !self.failed()
    }

    /// Whether the kernel refused to restore a setting, which may succeed later.
    pub fn has_refused(&self) -> bool {
        !self.refused_ids.is_empty()
    }

    pub(crate) fn left_of(
        &self,
        mut texts: BTreeMap<SettingId, String>,
    ) -> BTreeMap<SettingId, String> {
        texts.retain(|id, _| self.refused_ids.contains(id) || self.absent.contains(id));
        texts
    }

    pub(crate) fn had_nothing_to_do(&self) -> bool {
        self.complete() && self.tally().changed == 0
    }

    /// Whether something exists and could not be restored.
    pub fn failed(&self) -> bool {
        self.tally().failed() > 0
    }
}

/// Why a trial ended with a restore.
#[derive(Debug, Clone, Copy)]
pub enum TrialEnd {
    InTime,
    /// The process that watched the trial was killed.
    Unwatched,
}
