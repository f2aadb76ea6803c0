//! What a root was asked for and what it answered, so that a capture holds what was planned from and not what
//! the machine says a moment later.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Mutex;

use crate::root::archive::TreeFile;

/// What a recording root has seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The paths that were looked at, found or not.
    pub paths: BTreeSet<String>,
    /// Those of them that were opened, so that a link at their end was followed.
    pub opened: BTreeSet<String>,
    /// The files that were read, as they were read last.
    pub files: BTreeMap<String, TreeFile>,
    /// The files that could not be read, and why.
    pub unread: BTreeMap<String, String>,
    /// The files and directories that this user may not read.
    pub refused: BTreeSet<String>,
    /// The directories that were listed, and the names in them.
    pub lists: BTreeMap<String, Vec<String>>,
    /// What the live machine answered beside its files, by the path where a tree keeps such an answer.
    pub answers: BTreeMap<String, String>,
}

/// Notes what a root sees, where somebody asked to know.
#[derive(Debug, Default)]
pub(super) struct Recorder(Option<Mutex<Recorded>>);

impl Recorder {
    pub(super) fn on() -> Self {
        Self(Some(Mutex::default()))
    }

    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn recorded(&self) -> Recorded {
        self.0.as_ref().and_then(|record| Some(record.lock().ok()?.clone())).unwrap_or_default()
    }

    /// Does something to the record, if there is one.
    pub(super) fn note(&self, change: impl FnOnce(&mut Recorded)) {
        if let Some(mut record) = self.0.as_ref().and_then(|record| record.lock().ok()) {
            change(&mut record);
        }
    }

    pub(super) fn note_read(&self, path: &str, read: &io::Result<TreeFile>) {
        self.note(|record| match read {
            Ok(file) => {
                record.unread.remove(path);
                record.files.insert(path.to_owned(), file.clone());
            }
            Err(error) => {
                record.files.remove(path);
                record.unread.insert(path.to_owned(), error.to_string());
            }
        });
    }
}
