//! Sampling counters at intervals, with a progress line on standard error.

use std::io::{self, IsTerminal as _, Write as _};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::screen::printable;
use crate::start::Signals;
use nicpin::machine::sample::{CounterSelection, Delta, Sample};
use nicpin::read::sample;
use nicpin::root::Root;

/// Short enough that no 32-bit counter wraps twice in it.
pub const STEP: Duration = Duration::from_secs(1);

/// Shows which counters change together: so short that not all queues have packets in each.
const SHORT_STEP: Duration = Duration::from_millis(20);

pub struct Sampler<'a> {
    root: &'a Root,
    wanted: CounterSelection,
    began: Instant,
    last: Sample,
}

impl<'a> Sampler<'a> {
    pub fn begin(root: &'a Root, wanted: CounterSelection) -> Result<Self> {
        let began = Instant::now();
        let last = sample::sample(root, &wanted, began)?;
        Ok(Self {
            root,
            wanted,
            began,
            last,
        })
    }

    /// Interfaces that were wanted before are noticed when they return.
    pub fn change(&mut self, mut wanted: CounterSelection) -> Result<()> {
        let before = self.wanted.interfaces.iter();
        wanted.interfaces.extend(before.cloned());
        if wanted != self.wanted {
            *self = Self::begin(self.root, wanted)?;
        }
        Ok(())
    }

    pub fn interval(&self) -> Duration {
        if self.wanted.queues.is_empty() {
            STEP
        } else {
            SHORT_STEP
        }
    }

    pub fn step(&mut self) -> Result<Delta> {
        let now = sample::sample(self.root, &self.wanted, self.began)?;
        let delta = Delta::between(&self.last, &now);
        self.last = now;
        Ok(delta)
    }

    /// An interrupt ends it earlier. `quiet`: without the progress line.
    pub fn over(
        &mut self,
        time: Duration,
        quiet: bool,
        interrupts: Option<&Signals>,
    ) -> Result<Delta> {
        let (end, mut delta) = (self.last.at + time, Delta::default());
        let (mut progress, step) = (Progress::default(), self.interval());
        loop {
            let left = end.saturating_sub(self.began.elapsed());
            let mut ended = left.is_zero();
            if !ended {
                if !quiet {
                    let seconds = left.as_secs() + 1;
                    progress.say(&format!("watching interrupts, {seconds} s left"));
                }
                match interrupts {
                    Some(interrupts) => ended = interrupts.within(left.min(step)).is_some(),
                    None => sleep(left.min(step)),
                }
            }
            if ended || left > step {
                delta.add(&self.step()?);
            }
            if ended {
                return Ok(delta);
            }
        }
    }
}

/// A line on standard error that the next one overwrites and drop removes; on a terminal only.
#[derive(Default)]
pub struct Progress {
    shown: bool,
}

impl Progress {
    pub fn say(&mut self, text: &str) {
        if io::stderr().is_terminal() {
            self.shown = true;
            let _ = write!(io::stderr(), "\r\x1b[K{}", printable(text));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            self.say("");
        }
    }
}
