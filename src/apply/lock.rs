//! Only one nicpin at a time writes to a machine: the boot unit, a udev rule and an operator may run it at once.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::apply::state::STATE_DIR;
use crate::apply::stop::stopped;
use crate::root::sys::try_lock;
use crate::root::{FileError, Root, errno_words};

/// Held until dropped. The kernel releases it when the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The next holder may fail to write its name; this process's name must not remain.
        let _ = self.file.set_len(0);
    }
}

/// The lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The state directory or the lock file could not be created.
    #[error("{}: {}: {}", path.display(), errno_words(answer), fix(answer))]
    Io {
        /// The directory or file, the root included.
        path: PathBuf,
        /// The kernel's answer.
        answer: std::io::Error,
    },
    /// Other users can write the directory or the file.
    #[error(transparent)]
    NotTrusted(FileError),
    /// Another process holds it.
    #[error("{}: locked by {holder} for more than {seconds} s; fix: wait until it ends, or use --wait SECONDS", path.display())]
    Held {
        /// The lock file, the root included.
        path: PathBuf,
        /// The process that holds it, as it is named in the file: `nicpin COMMAND, process PID`.
        holder: String,
        /// How long this process waited.
        seconds: u64,
    },
}

impl From<FileError> for LockError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io { path, answer } => Self::Io { path, answer },
            error @ FileError::Content { .. } => Self::NotTrusted(error),
        }
    }
}

fn fix(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "only root can apply and restore; `nicpin plan` and `check` need no root"
        }
        std::io::ErrorKind::ReadOnlyFilesystem => {
            "nicpin records the original settings there: /run has to be writable"
        }
        std::io::ErrorKind::StorageFull => {
            "nicpin keeps its lock and its state files there; fix: remove files to make room"
        }
        _ => "nicpin keeps its lock and its state files there",
    }
}

fn path() -> String {
    format!("{STATE_DIR}/lock")
}

impl Lock {
    /// Whether it was ever taken. If not, nicpin has written nothing since boot.
    pub fn exists(root: &Root) -> bool {
        root.exists(&path())
    }

    /// Takes the lock, waiting up to `wait` for another holder.
    pub fn take(root: &Root, command: &str, wait: Duration) -> Result<Self, LockError> {
        let path = path();
        root.make_state_dir(STATE_DIR)?;
        let mut file = root.open_state(&path)?;
        let start = Instant::now();
        loop {
            match try_lock(&file) {
                Ok(true) => break,
                Err(answer) => {
                    return Err(LockError::Io {
                        path: root.outside(&path),
                        answer,
                    });
                }
                Ok(false) if start.elapsed() < wait && stopped().is_none() => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Ok(false) => {
                    let mut holder = String::new();
                    let is_named =
                        file.read_to_string(&mut holder).is_ok() && !holder.trim().is_empty();
                    let holder = if is_named {
                        holder.trim()
                    } else {
                        "another process"
                    }
                    .to_owned();
                    let (path, seconds) =
                        (root.outside(&path), start.elapsed().min(wait).as_secs());
                    return Err(LockError::Held {
                        path,
                        holder,
                        seconds,
                    });
                }
            }
        }
        // Only for the message of processes that wait: there may be no room for it.
        let holder = format!("nicpin {command}, process {}\n", std::process::id());
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(holder.as_bytes()));
        Ok(Self { file })
    }
}
