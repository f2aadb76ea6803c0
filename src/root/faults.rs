//! Answers that the kernel gives once in a while, for tests of what comes after them. Only a program that builds its
//! [`Root`](super::Root) with [`Root::open_with_faults`](super::Root::open_with_faults) has them: no option, no
//! environment and no file turns them on.

use std::fmt;
use std::io;

use nix::errno::Errno;

/// What is done to one file below the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAction {
    /// Read it.
    Read,
    /// Write a value of the machine.
    Write,
    /// Make a directory of nicpin's own.
    MakeDir,
    /// Open or write a file of nicpin's own.
    Keep,
    /// Put the new text of a file of nicpin's own in the place of the old one.
    Replace,
    /// Remove a file of nicpin's own.
    Remove,
}

impl FileAction {
    /// Whether it leaves something behind.
    pub fn changes(self) -> bool {
        self != Self::Read
    }
}

/// A file that is about to be touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileAccess<'a> {
    /// What is about to be done to it.
    pub deed: FileAction,
    /// Its path on the machine.
    pub path: &'a str,
    /// The value that is to be written; empty for all but [`FileAction::Write`].
    pub value: &'a str,
}

/// What is answered to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedAnswer {
    /// It is done.
    Done,
    /// It is not done, and this errno says so.
    Errno(i32),
    /// It is not done, and nothing says so.
    Lost,
}

/// What answers in the kernel's place; nothing but in tests.
#[derive(Default)]
pub(super) struct Faults(Option<Answers>);

type Answers = Box<dyn Fn(FileAccess<'_>) -> InjectedAnswer>;

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Faults(on)" } else { "Faults(off)" })
    }
}

impl Faults {
    pub(super) fn on(answer: impl Fn(FileAccess<'_>) -> InjectedAnswer + 'static) -> Self {
        Self(Some(Box::new(answer)))
    }

    /// Whether the deed is to be done.
    pub(super) fn ask(&self, deed: FileAction, path: &str) -> io::Result<bool> {
        self.answer(FileAccess { deed, path, value: "" })
    }

    /// As [`Faults::ask`], for a value of the machine.
    pub(super) fn ask_to_write(&self, path: &str, value: &str) -> io::Result<bool> {
        self.answer(FileAccess { deed: FileAction::Write, path, value })
    }

    fn answer(&self, touch: FileAccess<'_>) -> io::Result<bool> {
        match self.0.as_ref().map_or(InjectedAnswer::Done, |answer| answer(touch)) {
            InjectedAnswer::Done => Ok(true),
            InjectedAnswer::Lost => Ok(false),
            InjectedAnswer::Errno(errno) => Err(Errno::from_raw(errno).into()),
        }
    }
}
