//! A plan on trial: what was there before is kept beside the record until somebody confirms. Whoever finds a trial
//! that is over, or that nobody watches any more, puts everything back: the process that watches the time, else the
//! next nicpin that writes.

use std::fs::{File, TryLockError};
use std::io::Write as _;

use serde::{Deserialize, Serialize};

use crate::apply::irqbalance::{self, Kept};
use crate::apply::record::Record;
use crate::apply::state::{StateError, StateFile};
use crate::apply::values::{self, Texts};
use crate::apply::{ApplyError, STATE_DIR, Undone, put_back};
use crate::host::{FileError, Host, Root};

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
    /// What there was before, of all that it may have set.
    before: Texts,
    /// The record that there was before.
    record: Record,
    /// What irqbalance had been told.
    told: Kept,
}

impl Trial {
    pub(crate) fn new(seconds: u64, before: Texts, record: Record, told: Kept) -> Self {
        Self { schema: FILE.schema.to_owned(), seconds, over: false, before, record, told }
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
        let told = || Kept::load(root).map_or(true, |told| told != self.told);
        // Where it cannot be told, it is the user's word that counts.
        let differs =
            || Host::read(root).map_or(true, |host| !values::back_to(&self.before, &host, "").is_there());
        self.before.is_empty() || told() || differs()
    }

    /// Puts back what there was before, under the lock. What could not be put back stays in the record.
    pub(crate) fn put_back(mut self, root: &Root) -> Result<Undone, ApplyError> {
        let mut undone = put_back(root, &self.before, "as it was before apply --try")?;
        undone.irqbalance = irqbalance::back_to(root, &self.told);
        if undone.complete() {
            self.record.save(root)?;
        } else if let Ok(mut record) = Record::load(root) {
            record.are_back(self.before.keys().filter(|key| !undone.refused.contains(key)), &self.record);
            record.save(root)?;
        }
        self.over = true;
        self.save(root)?;
        Ok(undone)
    }
}

/// Held by the process that watches the time; the kernel lets go of it when that ends, however it ends.
#[derive(Debug)]
pub struct Watch(#[allow(dead_code)] File);

impl Watch {
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
