//! What is said of a file that could not be read, or does not hold what it should.

use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

/// A file of the machine that could not be read, or does not hold what it should.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The kernel refused: the path, its answer and what to do about it.
    #[error("{}: {}{}", path.display(), errno_words(answer), fix(path, answer))]
    Io {
        /// Where the file is, the root included.
        path: PathBuf,
        /// The kernel's answer.
        answer: io::Error,
    },
    /// The file is there and says something else than it should.
    #[error("{}: {reason}", path.display())]
    Content {
        /// Where the file is, the root included.
        path: PathBuf,
        /// What it says, what was expected and what to do.
        reason: String,
    },
}

/// Whether the answer means that the machine has no such thing, or has it no longer: ENOENT and ENOTDIR
/// before the open, ENODEV, ENXIO and EIO when a device or an IRQ went away under an open file
/// (`fs/proc/inode.c`), EINVAL and EOPNOTSUPP from attributes that have no value now.
pub(super) fn is_absent(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(
        errno,
        Some(
            Errno::ENOENT
                | Errno::ENOTDIR
                | Errno::ENODEV
                | Errno::ENXIO
                | Errno::EIO
                | Errno::EINVAL
                | Errno::EOPNOTSUPP
        )
    )
}

pub(super) fn io_error(path: &Path, errno: Errno) -> FileError {
    FileError::Io { path: path.to_owned(), answer: errno.into() }
}

/// The kernel's answer in words and by its name: `permission denied (EACCES)`.
pub fn errno_words(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(errno) => format!("{} ({errno:?})", errno.desc().to_lowercase()),
        None => error.to_string(),
    }
}

fn fix(path: &Path, error: &io::Error) -> &'static str {
    let is_kernels = path.iter().any(|part| part == "proc" || part == "sys");
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EACCES | Errno::EPERM) => ": run as root, or as a user that may read it",
        Some(Errno::ENOENT) if !is_kernels => ": name one that is there",
        Some(Errno::ENOENT) => ": is this the root of a Linux machine, with its /proc and /sys mounted?",
        Some(Errno::EISDIR) => ": name a file in it",
        Some(Errno::ENOTDIR) => ": --root takes a directory or a capture file",
        _ => "",
    }
}
