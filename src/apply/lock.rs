//! Locks: one nicpin at a time writes (the boot unit, a udev rule and an operator may run at once), and one process
//! watches a trial. And a signal's request to end before the next write.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::process;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::apply::error::ApplyError;
use crate::root::sys::{try_lock, unlock};
use crate::root::{FileError, Root, errno_words};

/// Held until dropped. The kernel releases it when the process ends, however it ends.
#[derive(Debug)]
pub struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // The next holder may fail to write its name; this one's must not remain.
        let _ = self.0.set_len(0);
    }
}

/// Creates the file of a lock if needed.
fn open(root: &Root, path: &str) -> Result<File, FileError> {
    root.open_state(path).map_err(with_fix)
}

fn with_fix(error: FileError) -> FileError {
    let FileError::Io { path, answer } = error else {
        return error;
    };
    let fix = match answer.kind() {
        ErrorKind::PermissionDenied => {
            "only root can apply and restore; `nicpin plan` and `check` need no root"
        }
        ErrorKind::ReadOnlyFilesystem => {
            "nicpin records the original settings there: /run has to be writable"
        }
        ErrorKind::StorageFull => {
            "nicpin keeps its lock and its state files there; fix: remove files to make room"
        }
        _ => "nicpin keeps its lock and its state files there",
    };
    let reason = format!("{}: {fix}", errno_words(&answer));
    FileError::Content { path, reason }
}

const PATH: &str = "/run/nicpin/lock";
const PATH_OF_TRIAL: &str = "/run/nicpin/try.lock";

impl Lock {
    /// If the lock was never taken, nicpin has written nothing since boot.
    pub fn exists(root: &Root) -> bool {
        root.exists(PATH)
    }

    pub fn take(root: &Root, command: &str, wait: Duration) -> Result<Self, ApplyError> {
        let name = format!("nicpin {command}, process {}", process::id());
        let start = Instant::now();
        let waits = || start.elapsed() < wait && stop_reason().is_none();
        let taken = Self::take_at(root, PATH, &name, waits)?;
        taken.map_err(|holder| ApplyError::Locked {
            path: root.outside(PATH),
            holder: match &*holder {
                "" => "another process".to_owned(),
                _ => holder,
            },
            seconds: start.elapsed().min(wait).as_secs(),
        })
    }

    /// Tries again while `waits`. The inner error is the name of the process that has the lock, as the file says; it
    /// may be empty.
    pub fn take_at(
        root: &Root,
        path: &str,
        name: &str,
        waits: impl Fn() -> bool,
    ) -> Result<Result<Self, String>, FileError> {
        let mut file = open(root, path)?;
        while !try_lock(&file).map_err(|error| with_fix(root.io_error(path, error)))? {
            if waits() {
                sleep(Duration::from_millis(50));
                continue;
            }
            let mut holder = String::new();
            // Empty if it is no text.
            let _ = file.read_to_string(&mut holder);
            return Ok(Err(holder.trim().to_owned()));
        }
        // Only for messages of other processes: there may be no room for it.
        let _ = (file.set_len(0)).and_then(|()| writeln!(file, "{name}"));
        Ok(Ok(Self(file)))
    }
}

/// The lock of the process that watches a trial.
///
/// Each trial has a new file: the watcher of an earlier trial may be stopped, or not have noticed its confirmation. It
/// keeps the lock of its own file, for which [`TrialGuard::is_current`] is false.
#[derive(Debug)]
pub struct TrialGuard(File);

impl TrialGuard {
    /// Creates the file of a new trial. Only under the lock of an apply.
    pub fn begin(root: &Root) -> Result<Self, FileError> {
        const TRIES: u64 = 100;
        root.remove_state(PATH_OF_TRIAL).map_err(with_fix)?;
        let mut watch = Self::open(root)?;
        // A process that asks whether an earlier trial is watched has the lock for a moment.
        let is_taken = (0..TRIES).any(|tried| {
            sleep(Duration::from_millis(tried.min(1)));
            try_lock(&watch.0).unwrap_or(false)
        });
        if !is_taken {
            return Err(with_fix(
                root.io_error(PATH_OF_TRIAL, ErrorKind::WouldBlock),
            ));
        }
        // For people to read.
        let _ = writeln!(watch.0, "{}", process::id());
        Ok(watch)
    }

    pub fn open(root: &Root) -> Result<Self, FileError> {
        Ok(Self(open(root, PATH_OF_TRIAL)?))
    }

    /// Whether the process that watched the trial has ended.
    pub fn has_ended(&self) -> bool {
        try_lock(&self.0).unwrap_or(false) && unlock(&self.0).is_ok()
    }

    /// No later trial has begun.
    pub fn is_current(&self, root: &Root) -> bool {
        self.0.metadata().map_or(true, |file| file.nlink() > 0) || !root.exists(PATH_OF_TRIAL)
    }
}

static REQUEST: OnceLock<String> = OnceLock::new();

/// Stops applies and restores before their next write; `why`, as in `ended by SIGTERM`, is the reason of the writes
/// that are left out. An atomic apply restores what it has written.
pub fn stop(why: String) {
    let _ = REQUEST.set(why);
}

pub fn stop_reason() -> Option<&'static str> {
    REQUEST.get().map(String::as_str)
}
