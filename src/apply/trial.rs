//! A plan on trial: what was there before is kept beside the record until somebody confirms. Whoever finds a trial
//! that is over, or that nobody watches any more, puts everything back: the process that watches the time, else the
//! next nicpin that writes.
//!
//! A trial that could not be put back wholly is over all the same: it cannot be confirmed any more. What is missing
//! stays in it by name, and every later apply tries again before it writes, until that is back, is planned by an apply,
//! or `nicpin restore` has put back what the first apply found. What irqbalance was told is left to `restore` then:
//! a later apply may have told it more.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::Write as _;

use serde::{Deserialize, Serialize};

use crate::apply::error::ApplyError;
use crate::apply::irqbalance::{self, IrqbalanceRecord};
use crate::apply::put_back::put_back;
use crate::apply::record::Record;
use crate::apply::settings;
use crate::apply::settings::Texts;
use crate::apply::state::{STATE_DIR, StateError, StateFile};

use crate::read;
use crate::read::Wants;
use crate::report::outcome::IrqbalanceOutcome;
use crate::report::outcome::RestoreOutcome;
use crate::report::wording::count;
use crate::root::{FileError, Root};

const FILE: StateFile = StateFile {
    name: "try.json",
    schema: "nicpin.try/1",
    what: "a plan on trial",
    not_done: "nothing was written, since it could not be undone",
};

/// An apply that has to be confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    schema: String,
    /// How long it has been given, in seconds.
    pub seconds: u64,
    /// Whether it was put back, because nobody confirmed it in time.
    pub over: bool,
    /// What there was before, of all that it may have set; when it is over, of what could not be put back.
    before: Texts,
    /// Whether it is over, and irqbalance could not be told.
    #[serde(default)]
    untold: bool,
    /// The record that there was before.
    record: Record,
    /// What irqbalance had been told.
    told: IrqbalanceRecord,
}

impl Trial {
    pub(crate) fn new(seconds: u64, before: Texts, record: Record, told: IrqbalanceRecord) -> Self {
        Self { schema: FILE.schema.to_owned(), seconds, over: false, before, untold: false, record, told }
    }

    /// One that is over, in the place of one that cannot be read; with what could not be put back.
    pub(crate) fn ended(left: Texts, undone: &RestoreOutcome) -> Self {
        let untold = undone.irqbalance.as_ref().is_some_and(IrqbalanceOutcome::failed);
        Self { over: true, untold, ..Self::new(0, left, Record::default(), IrqbalanceRecord::default()) }
    }

    /// Reads the trial; `None` where there is none.
    pub fn load(root: &Root) -> Result<Option<Self>, StateError> {
        FILE.load(root)
    }

    pub(crate) fn save(&self, root: &Root) -> Result<(), StateError> {
        FILE.save(root, self)
    }

    /// Ends every trial: what was set stays. Under the lock.
    pub(crate) fn forget(root: &Root) -> Result<(), StateError> {
        FILE.remove(root)
    }

    /// Whether there is something to keep: an apply that ended before its first write has set nothing. One that found
    /// everything as planned has set all that it wanted.
    pub(crate) fn has_set_something(&self, root: &Root) -> bool {
        let told = || IrqbalanceRecord::load(root).map_or(true, |told| told != self.told);
        // Where it cannot be told, it is the user's word that counts.
        let differs = || {
            read::machine(root, Wants::default())
                .map_or(true, |machine| !settings::back_to(&self.before, &machine, "").is_there())
        };
        self.before.is_empty() || told() || differs()
    }

    /// Whether it is over, and something could not be put back that can be tried again.
    pub(crate) fn can_be_tried_again(&self) -> bool {
        self.over && !self.before.is_empty()
    }

    /// What was not put back when it was over, in words; `None` when everything was.
    pub fn not_back(&self) -> Option<String> {
        const NAMED: usize = 6;
        if !self.over || self.before.is_empty() && !self.untold {
            return None;
        }
        let mut names: Vec<&str> = self.untold.then_some("what irqbalance was told").into_iter().collect();
        names.extend(self.before.keys().map(String::as_str));
        let (many, more) = (names.len(), names.len().saturating_sub(NAMED));
        names.truncate(NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        Some(format!(
            "{} could not be put back ({}{more}); the next apply tries again, and `nicpin restore` puts back what the \
             first apply found",
            count(many, "value"),
            names.join(", ")
        ))
    }

    /// Leaves to an apply what it plans itself. Under the lock, before it writes.
    pub(crate) fn give_up(mut self, root: &Root, planned: &BTreeSet<String>) -> Result<(), StateError> {
        let many = self.before.len();
        self.before.retain(|key, _| !planned.contains(key));
        if self.before.len() < many { self.save(root) } else { Ok(()) }
    }

    /// Puts back what there was before, under the lock. What could not be put back stays in the record.
    pub(crate) fn put_back(mut self, root: &Root) -> Result<RestoreOutcome, ApplyError> {
        let again = self.over;
        let mut undone = put_back(root, &self.before, "as it was before apply --try")?;
        if !again {
            undone.irqbalance = irqbalance::back_to(root, &self.told);
            self.untold = undone.irqbalance.as_ref().is_some_and(IrqbalanceOutcome::failed);
        }
        // Another apply may have added to the record since.
        if undone.complete() && !again {
            self.record.save(root)?;
        } else if let Ok(mut record) = Record::load(root) {
            record.are_back(self.before.keys().filter(|key| !undone.refused.contains(key)), &self.record);
            record.save(root)?;
        }
        self.over = true;
        self.before.retain(|key, _| undone.refused.contains(key) || undone.absent.contains(key));
        self.save(root)?;
        Ok(undone.counted())
    }
}

/// Held by the process that watches the time; the kernel lets go of it when that ends, however it ends.
#[derive(Debug)]
pub struct TrialWatch(#[allow(dead_code)] File);

impl TrialWatch {
    /// Begins to watch; `None` while another process does.
    pub fn take(root: &Root) -> Result<Option<Self>, FileError> {
        let path = format!("{STATE_DIR}/try.lock");
        let mut file = root.open_state(&path)?;
        let io = |answer| FileError::Io { path: root.outside(&path), answer };
        match file.try_lock() {
            Ok(()) => {
                // Only for people to read.
                let pid = format!("{}\n", std::process::id());
                file.set_len(0).and_then(|()| file.write_all(pid.as_bytes())).map_err(io)?;
                Ok(Some(Self(file)))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(answer)) => Err(io(answer)),
        }
    }
}
