//! The result of `restore`, and how a trial ended.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::plan::Write;
use crate::report::exit::Exit;
use crate::report::outcome::{
    ChannelOutcome, IrqbalanceOutcome, Outcome, RestoreOutcome, WriteResult,
};

/// What `restore` would write; its JSON form is `nicpin.to-restore/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToRestore {
    pub schema: &'static str,
    /// Recorded channels that differ from the current ones, as `ethtool -L` takes them, by interface. They are restored
    /// first.
    pub channels: BTreeMap<String, String>,
    /// Settings that differ from the recorded ones.
    pub writes: Vec<Write>,
    /// The number of settings that are as recorded.
    pub unchanged: usize,
    /// Recorded settings whose files are absent now.
    pub absent: Vec<String>,
    /// Whether something that was done about irqbalance would be undone.
    pub irqbalance: bool,
}

impl Default for ToRestore {
    fn default() -> Self {
        Self {
            schema: "nicpin.to-restore/1",
            channels: BTreeMap::new(),
            writes: Vec::new(),
            unchanged: 0,
            absent: Vec::new(),
            irqbalance: false,
        }
    }
}

/// The result of `restore`; its JSON form is `nicpin.restore/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Restored {
    pub schema: &'static str,
    /// Settings restored, channels and irqbalance included.
    pub changed: usize,
    /// Settings that were as recorded before.
    pub already: usize,
    /// Writes that the kernel refused.
    pub refused: usize,
    /// Vectors whose affinity is restored and that the kernel does not move back by itself.
    pub staying: usize,
    /// Recorded settings whose files are absent now.
    pub absent: Vec<String>,
    pub channels: Vec<ChannelOutcome>,
    /// The request to irqbalance, which counts like a write.
    pub irqbalance: Option<IrqbalanceOutcome>,
    pub results: Vec<WriteResult>,
    /// Whether `nicpin watch` runs and writes nothing until the next apply.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub watcher_paused: bool,
}

impl Restored {
    pub fn exit(&self) -> Exit {
        if self.failed() {
            Exit::Failed
        } else {
            Exit::Planned
        }
    }

    /// Sums up a restore.
    pub fn new(undone: RestoreOutcome) -> Self {
        let RestoreOutcome {
            channels,
            results,
            unchanged,
            absent,
            irqbalance,
            ..
        } = undone;
        let (refused, set): (Vec<_>, Vec<_>) = channels.iter().partition(|c| c.refused.is_some());
        let already = results
            .iter()
            .filter(|result| result.outcome == Outcome::Already)
            .count();
        let stays = |result: &&WriteResult| {
            result.outcome == Outcome::Changed && result.path.starts_with("/proc/irq/")
        };
        Self {
            schema: "nicpin.restore/1",
            changed: results.iter().filter(|result| result.changed()).count()
                + set.len()
                + usize::from(
                    irqbalance
                        .as_ref()
                        .is_some_and(|irqbalance| irqbalance.changed),
                ),
            already: unchanged + already,
            refused: results.iter().filter(|result| result.failed()).count()
                + refused.len()
                + usize::from(irqbalance.as_ref().is_some_and(IrqbalanceOutcome::failed)),
            staying: results.iter().filter(stays).count(),
            absent,
            channels,
            irqbalance,
            results,
            watcher_paused: false,
        }
    }

    /// Whether something exists and could not be restored.
    pub fn failed(&self) -> bool {
        self.refused > 0
    }
}

/// Why a trial ended with a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialEnd {
    /// It was not confirmed in time.
    InTime,
    /// The process that watched the trial was killed.
    Unwatched,
}
