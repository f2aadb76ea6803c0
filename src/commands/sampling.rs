//! Waiting while counters run: samples at intervals, and a line on standard error for somebody who waits.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crate::machine::growth::Growth;
use crate::machine::sample::CounterSelection;
use crate::machine::sample::Sample;
use crate::read::sample;
use crate::root::{FileError, Root};

/// How often a sample is taken while a longer time is watched, so that no counter goes round unseen.
pub(super) const STEP: Duration = Duration::from_secs(1);

/// Counters that are watched.
pub(super) struct Sampler<'a> {
    root: &'a Root,
    wanted: CounterSelection,
    began: Instant,
    last: Sample,
}

impl<'a> Sampler<'a> {
    pub(super) fn begin(root: &'a Root, wanted: CounterSelection) -> Result<Self, FileError> {
        let began = Instant::now();
        let last = sample::sample(root, &wanted, began)?;
        Ok(Self { root, wanted, began, last })
    }

    /// What happened since the last step.
    pub(super) fn step(&mut self) -> Result<Growth, FileError> {
        let now = sample::sample(self.root, &self.wanted, self.began)?;
        let growth = Growth::between(&self.last, &now);
        self.last = now;
        Ok(growth)
    }

    /// What happens in the time to come; `quiet`: somebody sees already that this is at work.
    pub(super) fn over(&mut self, time: Duration, quiet: bool) -> Result<Growth, FileError> {
        let from = self.last.at;
        let mut growth = Growth::default();
        let mut progress = Progress::new();
        loop {
            let left = (from + time).saturating_sub(self.began.elapsed());
            if left.is_zero() {
                growth.add(&self.step()?);
                return Ok(growth);
            }
            if !quiet {
                progress.say(&format!("watching, {} s to go", left.as_secs() + 1));
            }
            std::thread::sleep(left.min(STEP));
            if left > STEP {
                growth.add(&self.step()?);
            }
        }
    }
}

/// A line that is written over and over, on a terminal only; it is gone when this is.
pub(super) struct Progress {
    shown: bool,
    terminal: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { shown: false, terminal: io::stderr().is_terminal() }
    }

    pub(super) fn say(&mut self, text: &str) {
        if self.terminal {
            self.shown = true;
            // Nothing is lost when nobody reads it.
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
