//! What was read through a root, so that a capture holds what was planned from, and not what the kernel reports a
//! moment later.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Mutex;

use crate::root::tree::TreeFile;

/// What was read through a recording root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// All paths that were accessed, existing or not.
    pub paths: BTreeSet<String>,
    /// The opened paths among them, where a link in the last component was followed.
    pub opened: BTreeSet<String>,
    /// The files, as they were read last.
    pub files: BTreeMap<String, TreeFile>,
    /// The errors of files that could not be read.
    pub unread: BTreeMap<String, String>,
    /// The files and directories that this user may not read.
    pub refused: BTreeSet<String>,
    /// The names in each listed directory.
    pub lists: BTreeMap<String, Vec<String>>,
    /// Answers to ioctls and netlink requests, by the path where a tree keeps them.
    pub answers: BTreeMap<String, String>,
}

/// Records what is read, if turned on.
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
        self.0
            .as_ref()
            .and_then(|record| Some(record.lock().ok()?.clone()))
            .unwrap_or_default()
    }

    /// Changes the record, if recording is on.
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
