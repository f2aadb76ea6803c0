//! What `restore` did, and how a trial ended.

use serde::Serialize;

use crate::report::exit::Exit;
use crate::report::outcome::{ChannelOutcome, IrqbalanceOutcome, Outcome, RestoreOutcome, WriteResult};

/// What `restore` has done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Restored {
    pub schema: &'static str,
    /// Put back.
    pub changed: usize,
    /// As it was first seen.
    pub already: usize,
    /// Not taken by the kernel.
    pub refused: usize,
    /// Vectors that may be served by their first CPUs again and that the kernel does not move back by itself.
    pub staying: usize,
    /// What was recorded and is not there now.
    pub absent: Vec<String>,
    /// Each change of channels.
    pub channels: Vec<ChannelOutcome>,
    /// What was undone about irqbalance, which counts like a write.
    pub irqbalance: Option<IrqbalanceOutcome>,
    /// Each write.
    pub results: Vec<WriteResult>,
}

impl Restored {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        if self.failed() { Exit::Failed } else { Exit::Planned }
    }

    /// Sums up what was put back.
    pub fn new(undone: RestoreOutcome) -> Self {
        let RestoreOutcome { channels, results, unchanged, absent, irqbalance, .. } = undone;
        let (refused, set): (Vec<_>, Vec<_>) = channels.iter().partition(|c| c.refused.is_some());
        let already = results.iter().filter(|result| result.outcome == Outcome::Already).count();
        let stays = |result: &&WriteResult| {
            result.outcome == Outcome::Changed && result.path.starts_with("/proc/irq/")
        };
        Self {
            schema: "nicpin.restore/1",
            changed: results.iter().filter(|result| result.changed()).count()
                + set.len()
                + usize::from(irqbalance.as_ref().is_some_and(|told| told.changed)),
            already: unchanged + already,
            refused: results.iter().filter(|result| result.failed()).count()
                + refused.len()
                + usize::from(irqbalance.as_ref().is_some_and(IrqbalanceOutcome::failed)),
            staying: results.iter().filter(stays).count(),
            absent,
            channels,
            irqbalance,
            results,
        }
    }

    /// Whether something was not put back that is there.
    pub fn failed(&self) -> bool {
        self.refused > 0
    }
}

/// Why a trial was put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialEnd {
    /// Nobody confirmed it.
    InTime,
    /// The process that watched the time is gone.
    Unwatched,
}
