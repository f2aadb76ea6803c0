//! Fault injection for tests of rare kernel errors. Only `Root::open_with_faults` turns it on.

use std::{fmt, io};

use nix::errno::Errno;

use self::InjectedAnswer::{Done, Lost};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAction {
    Read,
    Write,
    MakeDir,
    WriteState,
    /// Rename the new text of a state file over the old one.
    ReplaceState,
    RemoveState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileAccess<'a> {
    pub action: FileAction,
    pub path: &'a str,
    /// Text that [`FileAction::Write`] writes; else empty.
    pub value: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedAnswer {
    Done,
    Errno(i32),
    /// Skip the access, and report it as done.
    Lost,
}

#[derive(Default)]
pub(super) struct Faults(pub(super) Option<Answers>);

type Answers = Box<dyn Fn(FileAccess<'_>) -> InjectedAnswer>;

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faults({})", self.0.is_some())
    }
}

impl Faults {
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
