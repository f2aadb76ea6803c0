//! A plan on trial: what was there before is kept beside the record until somebody confirms. Whoever finds a trial
//! that is over, or that nobody watches any more, puts everything back: the process that watches the time, else the
//! next nicpin that writes.

use std::fs::{File, TryLockError};
use std::io::Write as _;

use serde::{Deserialize, Serialize};

use crate::apply::irqbalance::{self, Kept};
use crate::apply::record::{Record, RecordError};
use crate::apply::values::Texts;
use crate::apply::{ApplyError, STATE_DIR, Undone, put_back};
use crate::host::{FileError, Root};

const SCHEMA: &str = "nicpin.try/1";

/// An apply that has to be confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    schema: String,
    /// How long it has been given, in seconds.
    pub seconds: u64,
    /// Whether it was put back, because nobody confirmed it in time.
    pub over: bool,
    /// What there was before.
    before: Texts,
    /// The record that there was before.
    record: Record,
    /// What irqbalance had been told.
    told: Kept,
}

impl Trial {
    fn path() -> String {
        format!("{STATE_DIR}/try.json")
    }

    pub(crate) fn new(seconds: u64, before: Texts, record: Record, told: Kept) -> Self {
        Self { schema: SCHEMA.to_owned(), seconds, over: false, before, record, told }
    }

    /// Reads the trial; `None` where there is none.
    pub fn load(root: &Root) -> Result<Option<Self>, RecordError> {
        let path = Self::path();
        let Some(text) = root.read_state(&path)? else { return Ok(None) };
        let error = |reason: String| RecordError::Content { path: root.outside(&path), reason };
        let trial: Self = serde_json::from_str(&text).map_err(|e| error(e.to_string()))?;
        if trial.schema == SCHEMA {
            Ok(Some(trial))
        } else {
            Err(error(format!("its schema is {}", trial.schema)))
        }
    }

    pub(crate) fn save(&self, root: &Root) -> Result<(), RecordError> {
        let path = Self::path();
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::from);
        let saved = text.and_then(|text| root.replace_state(&path, &(text + "\n")));
        saved.map_err(|answer| RecordError::Save { path: root.outside(&path), answer })
    }

    /// Ends every trial: what was set stays. Under the lock.
    pub(crate) fn forget(root: &Root) -> Result<(), RecordError> {
        let path = Self::path();
        root.remove_state(&path).map_err(|answer| RecordError::Save { path: root.outside(&path), answer })
    }

    /// Puts back what there was before, under the lock. What could not be put back stays in the record.
    pub(crate) fn put_back(mut self, root: &Root) -> Result<Undone, ApplyError> {
        let mut undone = put_back(root, &self.before, "as it was before apply --try")?;
        undone.irqbalance = irqbalance::back_to(root, &self.told);
        if undone.complete() {
            self.record.save(root)?;
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
