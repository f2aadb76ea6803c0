//! Reading, writing, and the errors of one kind of setting.

use std::io;

use nix::errno::Errno;

use crate::cpuset::CpuSet;
use crate::plan::Write;
use crate::report::outcome::Outcome;
use crate::root::{FileError, Root};

pub(crate) struct Answer<'a> {
    pub(crate) root: &'a Root,
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
    pub(crate) errno: Errno,
}

/// The outcome of a write with an error, and the words that follow those of the error, with the fix.
pub(crate) type Meaning = (Outcome, &'static str);

pub(crate) trait Access {
    /// `None` if the setting is absent.
    fn read(&self, root: &Root, write: &Write) -> Result<Option<String>, FileError> {
        root.read_opt(&write.path)
    }

    fn set(&self, root: &Root, write: &Write, text: &str) -> io::Result<()> {
        root.write(&write.path, text)
    }

    /// `None` if the kernel's error means what it does for any file.
    fn refusal(&self, _answer: &Answer<'_>) -> Option<Meaning> {
        None
    }

    /// CPUs, besides offline ones, that the kernel removes from a written mask; `None` if it removes none.
    fn removed(&self, _root: &Root) -> Option<CpuSet> {
        None
    }
}

/// A file that is read and written as it is, and whose errors mean what they do for any file.
pub(super) struct File;

impl Access for File {}
