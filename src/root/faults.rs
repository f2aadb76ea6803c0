//! Fault injection, for tests of rare kernel errors. Only a program that opens its [`Root`](super::Root) with
//! `Root::open_with_faults` has it: no option, environment variable or file turns it
//! on.

use std::{fmt, io};

use nix::errno::Errno;

use self::InjectedAnswer::{Done, Lost};

/// An access to one file below the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAction {
    Read,
    /// Write a setting.
    Write,
    /// Create a directory for state files.
    MakeDir,
    /// Open or write a state file.
    WriteState,
    /// Rename the new text of a state file over the old one.
    ReplaceState,
    RemoveState,
}

/// A file access that is about to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileAccess<'a> {
    pub action: FileAction,
    /// The path below the root.
    pub path: &'a str,
    /// The text to write; empty for all but [`FileAction::Write`].
    pub value: &'a str,
}

/// What happens to a file access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedAnswer {
    /// It is done as usual.
    Done,
    /// It is not done and fails with this errno.
    Errno(i32),
    /// It is not done, but reported as done.
    Lost,
}

/// The function that decides about each file access; none but in tests.
#[derive(Default)]
pub(super) struct Faults(pub(super) Option<Answers>);

type Answers = Box<dyn Fn(FileAccess<'_>) -> InjectedAnswer>;

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faults({})", self.0.is_some())
    }
}

impl Faults {
    /// Whether an access is to be done. `value` is the text of [`FileAction::Write`].
    pub(super) fn ask(&self, action: FileAction, path: &str, value: &str) -> io::Result<bool> {
        let access = FileAccess {
            action,
            path,
            value,
        };
        match self.0.as_ref().map(|answer| answer(access)) {
            None | Some(Done) => Ok(true),
            Some(Lost) => Ok(false),
            Some(InjectedAnswer::Errno(errno)) => Err(Errno::from_raw(errno).into()),
        }
    }
}
