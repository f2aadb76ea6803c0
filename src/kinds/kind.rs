//! What each kind of setting says of itself.

use std::io;

use nix::errno::Errno;

use crate::cpuset::CpuSet;
use crate::plan::Write;
use crate::report::outcome::Outcome;
use crate::root::{FileError, Root};

/// The kernel's error as the answer to a write.
pub(crate) struct Answer<'a> {
    pub(crate) root: &'a Root,
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
    pub(crate) errno: Errno,
}

/// The outcome of a write with an error, and the words for it and its fix, after those of the error.
pub(crate) type Meaning = (Outcome, &'static str);

pub(crate) trait Kind {
    /// Reads the text of a setting; `None` if the setting is absent.
    fn read(&self, root: &Root, write: &Write) -> Result<Option<String>, FileError> {
        root.read_opt(&write.path)
    }

    fn set(&self, root: &Root, write: &Write, text: &str) -> io::Result<()> {
        root.write(&write.path, text)
    }

    /// What the kernel's error means; `None` if it means what it does for any file.
    fn refusal(&self, _answer: &Answer<'_>) -> Option<Meaning> {
        None
    }

    /// The CPUs, besides those that are offline, that the kernel removes from a written mask; `None` if it removes none.
    fn removed(&self, _root: &Root) -> Option<CpuSet> {
        None
    }
}

/// A file that is read and written as it is, and whose errors mean what they do for any file.
pub(super) struct File;

impl Kind for File {}
