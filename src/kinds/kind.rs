//! What each kind of setting says of itself.

use std::io;

use nix::errno::Errno;

use crate::cpuset::CpuSet;
use crate::plan::Write;
use crate::report::outcome::Outcome;
use crate::root::{FileError, Root};

/// A kind of setting.
pub(crate) trait Kind {
    /// Reads the text of a setting; `None` if the setting is absent.
    fn read(&self, root: &Root, write: &Write) -> Result<Option<String>, FileError> {
        root.read_opt(&write.path)
    }

    fn set(&self, root: &Root, write: &Write, text: &str) -> io::Result<()> {
        root.write(&write.path, text)
    }

    /// The outcome of a write that the kernel answered with an error, and what the error means; `None` if it means what
    /// it does for any file. `text`: what was written.
    fn refusal(
        &self,
        _root: &Root,
        _path: &str,
        _text: &str,
        _errno: Errno,
    ) -> Option<(Outcome, &'static str)> {
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
