//! The lock of the process that watches the time of a trial.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use crate::apply::lock::LockError;
use crate::apply::state::STATE_DIR;
use crate::root::Root;
use crate::root::sys::{try_lock, unlock};

/// The lock file of a trial. The kernel releases the lock when the process that watches the trial ends, however it ends.
///
/// Each trial has a new file: the watcher of an earlier trial may not have noticed yet that it was confirmed, or it was
/// stopped. It keeps the lock of its own file, and [`TrialGuard::is_current`] is false for it.
#[derive(Debug)]
pub struct TrialGuard(File);

fn path() -> String {
    format!("{STATE_DIR}/try.lock")
}

impl TrialGuard {
    /// Creates the file of a new trial and takes its lock. Only under the lock of an apply.
    pub fn begin(root: &Root) -> Result<Self, LockError> {
        const TRIES: u32 = 100;
        let io = |answer| LockError::Io {
            path: root.outside(&path()),
            answer,
        };
        root.remove_state(&path())?;
        let mut watch = Self::open(root)?;
        // A process that asks whether an earlier trial is watched has the lock for a moment.
        let is_taken = (0..TRIES).any(|tried| {
            std::thread::sleep(Duration::from_millis(u64::from(tried.min(1))));
            try_lock(&watch.0).unwrap_or(false)
        });
        if !is_taken {
            return Err(io(std::io::ErrorKind::WouldBlock.into()));
        }
        // For people to read.
        let _ = writeln!(watch.0, "{}", std::process::id());
        Ok(watch)
    }

    /// The file of the present trial.
    pub fn open(root: &Root) -> Result<Self, LockError> {
        root.make_state_dir(STATE_DIR)?;
        Ok(Self(root.open_state(&path())?))
    }

    /// Whether the process that watched the trial has ended.
    pub fn has_ended(&self) -> bool {
        try_lock(&self.0).unwrap_or(false) && unlock(&self.0).is_ok()
    }

    /// Whether no later trial has begun.
    pub fn is_current(&self, root: &Root) -> bool {
        self.0.metadata().map_or(true, |file| file.nlink() > 0) || !root.exists(&path())
    }
}
