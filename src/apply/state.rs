//! The files that nicpin keeps for itself: JSON that says in front which form and version it has.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::root::errno_words;
use crate::root::{FileError, Root};

/// Where nicpin keeps its lock and its record. On a tmpfs: what it found before is of no use after a boot.
pub(crate) const STATE_DIR: &str = "/run/nicpin";

/// One of the files, and what follows when it cannot be used.
pub(crate) struct StateFile {
    /// Its name in the state directory.
    pub(crate) name: &'static str,
    /// What its `schema` says.
    pub(crate) schema: &'static str,
    /// What it is, in words.
    pub(crate) what: &'static str,
    /// What was not done when it cannot be read or written, and why not.
    pub(crate) not_done: &'static str,
}

/// A file of nicpin's own could not be kept or read; so nothing is done.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It holds something else.
    #[error("{}: is not {what} ({reason}); {not_done}; move it away to start anew", path.display())]
    Content {
        /// The file, the root included.
        path: PathBuf,
        /// What it should be, in words.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
        /// What was not done for that.
        not_done: &'static str,
    },
    /// It could not be written.
    #[error("{}: {}; {not_done}", path.display(), errno_words(answer))]
    Save {
        /// The file, the root included.
        path: PathBuf,
        /// The kernel's answer.
        answer: std::io::Error,
        /// What was not done for that.
        not_done: &'static str,
    },
}

impl StateFile {
    fn path(&self) -> String {
        format!("{STATE_DIR}/{}", self.name)
    }

    pub(crate) fn exists(&self, root: &Root) -> bool {
        root.exists(&self.path())
    }

    /// What it holds; `None` where there is none.
    pub(crate) fn load<T: DeserializeOwned>(&self, root: &Root) -> Result<Option<T>, StateError> {
        #[derive(Deserialize)]
        struct Versioned {
            schema: String,
        }
        let path = self.path();
        let Some(text) = root.read_state(&path)? else { return Ok(None) };
        let error = |reason: String| StateError::Content {
            path: root.outside(&path),
            what: self.what,
            reason,
            not_done: self.not_done,
        };
        let Versioned { schema } = serde_json::from_str(&text).map_err(|e| error(e.to_string()))?;
        if schema != self.schema {
            return Err(error(format!("its schema is {schema}")));
        }
        serde_json::from_str(&text).map(Some).map_err(|e| error(e.to_string()))
    }

    /// Replaces it so that a crash leaves the old or the new one.
    pub(crate) fn save(&self, root: &Root, value: &impl Serialize) -> Result<(), StateError> {
        let text = serde_json::to_string_pretty(value).map_err(std::io::Error::from);
        let saved = text.and_then(|text| root.replace_state(&self.path(), &(text + "\n")));
        saved.map_err(|answer| self.not_saved(root, answer))
    }

    /// Removes it; it need not be there.
    pub(crate) fn remove(&self, root: &Root) -> Result<(), StateError> {
        root.remove_state(&self.path()).map_err(|answer| self.not_saved(root, answer))
    }

    fn not_saved(&self, root: &Root, answer: std::io::Error) -> StateError {
        StateError::Save { path: root.outside(&self.path()), answer, not_done: self.not_done }
    }
}
