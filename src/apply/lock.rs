//! One nicpin at a time writes to a machine: the boot unit, a udev rule and an operator may meet.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::apply::state::STATE_DIR;
use crate::root::errno_words;
use crate::root::{FileError, Root};

/// DecidedBy while it lives; the kernel lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Whoever holds the lock next may not describe itself; this process must not stand for it.
        let _ = self.file.set_len(0);
    }
}

/// The lock could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The state directory or the lock file could not be made.
    #[error("{}: {}: {}", path.display(), errno_words(answer), fix(answer))]
    Io {
        /// The directory or file, the root included.
        path: PathBuf,
        /// The kernel's answer.
        answer: std::io::Error,
    },
    /// They are not only nicpin's own.
    #[error(transparent)]
    NotOwn(FileError),
    /// Another process has it.
    #[error("{}: held by {holder} for more than {seconds} s: let it finish, or give --wait SECONDS", path.display())]
    DecidedBy {
        /// The lock file, the root included.
        path: PathBuf,
        /// The process that has it, as it describes itself.
        holder: String,
        /// How long it was waited for.
        seconds: u64,
    },
}

impl From<FileError> for LockError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io { path, answer } => Self::Io { path, answer },
            error @ FileError::Content { .. } => Self::NotOwn(error),
        }
    }
}

fn fix(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "only root can apply and restore; `nicpin plan` and `check` need no root"
        }
        std::io::ErrorKind::ReadOnlyFilesystem => "the record of what was there needs a writable /run",
        _ => "nicpin keeps its lock and its record there",
    }
}

fn path() -> String {
    format!("{STATE_DIR}/lock")
}

impl Lock {
    /// Whether it was ever taken: without that, no nicpin has written or is writing.
    pub fn exists(root: &Root) -> bool {
        root.exists(&path())
    }

    /// Takes the lock, waiting for whoever has it.
    pub fn take(root: &Root, command: &str, wait: Duration) -> Result<Self, LockError> {
        let path = path();
        let io = |answer| LockError::Io { path: root.outside(&path), answer };
        root.make_state_dir(STATE_DIR)?;
        let mut file = root.open_state(&path)?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(answer)) => return Err(io(answer)),
                Err(TryLockError::WouldBlock) if start.elapsed() < wait => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(TryLockError::WouldBlock) => {
                    let mut holder = String::new();
                    let told = file.read_to_string(&mut holder).is_ok() && !holder.trim().is_empty();
                    let holder = if told { holder.trim().to_owned() } else { "another process".to_owned() };
                    return Err(LockError::DecidedBy {
                        path: root.outside(&path),
                        holder,
                        seconds: wait.as_secs(),
                    });
                }
            }
        }
        // Only for whoever waits to read; the lock is the kernel's.
        let holder = format!("nicpin {command}, process {}\n", std::process::id());
        let described =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(holder.as_bytes()));
        described.map_err(io)?;
        Ok(Self { file })
    }
}
