//! All file access of nicpin, below one root: `/` on a live machine, a directory with a copy of its files, or a capture
//! (in memory, read-only). Paths start at the root (`/proc/irq/71/smp_affinity`). Links are followed as that machine
//! would and never lead out of the root. An absent file is `None`, not an error.

pub mod archive;
pub mod faults;
mod files;
mod open;
mod regular;
pub mod sys;
pub mod tree;
mod trusted;

use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno::{
    self, EACCES, EAFNOSUPPORT, EINVAL, EISDIR, ENODEV, ENOENT, ENOTDIR, EOPNOTSUPP, EPERM,
    EPROTONOSUPPORT, ESRCH, ESTALE,
};

pub use files::{Recorded, Root};
pub use trusted::remove_left;

pub(crate) const EMPTY: &str = "is empty, as in a container that masks it; fix: run on the host";

pub(crate) type Result<T, E = FileError> = std::result::Result<T, E>;

/// A file that could not be read, or has unexpected content.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{}: {}", path.display(), io_reason(path, answer))]
    Io { path: PathBuf, answer: io::Error },
    #[error("{}: {reason}", path.display())]
    Content { path: PathBuf, reason: String },
}

impl FileError {
    /// The message without the path, if the error is about `file`.
    pub fn reason_about(&self, file: &Path) -> Option<String> {
        match self {
            Self::Io { path, answer } => (path == file).then(|| io_reason(path, answer)),
            Self::Content { path, reason } => (path == file).then(|| reason.clone()),
        }
    }
}

fn io_reason(path: &Path, error: &io::Error) -> String {
    errno_words(error) + fix(path, error)
}

/// There is nothing to read: ENOENT and ENOTDIR from open(2); ENODEV, and ESRCH of a process, removed while its file
/// was open; EINVAL and EOPNOTSUPP from attributes without a value; EPROTONOSUPPORT and EAFNOSUPPORT from a kernel
/// without such sockets. Any other error is missing evidence.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(
        errno_of(error),
        Some(
            ENOENT
                | ENOTDIR
                | ENODEV
                | ESRCH
                | EINVAL
                | EOPNOTSUPP
                | EPROTONOSUPPORT
                | EAFNOSUPPORT
        )
    )
}

pub(crate) fn errno_of(error: &io::Error) -> Option<Errno> {
    error.raw_os_error().map(Errno::from_raw)
}

/// The error in words and by name: `permission denied (EACCES)`.
pub fn errno_words(error: &io::Error) -> String {
    match errno_of(error) {
        Some(errno) => format!("{} ({errno:?})", errno.desc().to_lowercase()),
        None => error.to_string(),
    }
}

fn fix(path: &Path, error: &io::Error) -> &'static str {
    let is_kernel_file = path.iter().any(|part| part == "proc" || part == "sys");
    match errno_of(error) {
        Some(EACCES | EPERM) => "; fix: run as root, or as a user who may read it",
        Some(ENOENT) if is_kernel_file => {
            "; fix: mount /proc and /sys, or name the root of a machine that has them"
        }
        Some(ENOENT) => "; fix: name an existing file or directory",
        Some(EISDIR) => "; fix: name a file, not a directory",
        Some(ENOTDIR) if !is_kernel_file => "; fix: name a directory or a capture with --root",
        Some(ESTALE) => "; the interface was renamed meanwhile; fix: run again",
        _ => "",
    }
}
