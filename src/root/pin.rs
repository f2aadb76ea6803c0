//! Directories that stay the same while names change: a network interface may be renamed, and another one get its name.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{self, OFlag, OpenHow, ResolveFlag};
use nix::sys::stat::Mode;

/// Open directories by path.
#[derive(Debug, Default)]
pub(super) struct Pinned(pub(super) RefCell<BTreeMap<String, OwnedFd>>);

pub(super) const DIRECTORY: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY);

impl Pinned {
    /// Opens a file below the directory that had this path when it was pinned; `None` if no pinned directory did.
    pub(super) fn open(&self, path: &str, flags: OFlag) -> Option<Result<OwnedFd, Errno>> {
        let pinned = self.0.borrow();
        let (directory, rest) = pinned.iter().find_map(|(pinned, directory)| {
            let rest = path.strip_prefix(pinned.as_str())?;
            (rest.is_empty() || rest.starts_with('/'))
                .then_some((directory, rest.trim_start_matches('/')))
        })?;
        let rest = if rest.is_empty() { "." } else { rest };
        let how = OpenHow::new()
            .flags(flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
        Some(match fcntl::openat2(directory, rest, how) {
            Err(Errno::ENOSYS | Errno::EPERM | Errno::EAGAIN) => open_each(directory, rest, flags),
            opened => opened,
        })
    }
}

/// As `openat2` with `RESOLVE_NO_SYMLINKS`, one component after the other.
fn open_each(directory: &OwnedFd, path: &str, flags: OFlag) -> Result<OwnedFd, Errno> {
    let Some((first, rest)) = path.split_once('/') else {
        return open_component(directory, path, flags);
    };
    open_each(&open_component(directory, first, DIRECTORY)?, rest, flags)
}

/// Opens a name in a directory, and not what a link of that name leads to.
pub(super) fn open_component(
    directory: impl AsFd,
    name: &str,
    flags: OFlag,
) -> Result<OwnedFd, Errno> {
    // The mode of a new file.
    let mode = if flags.contains(OFlag::O_CREAT) {
        0o600
    } else {
        0
    };
    let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    fcntl::openat(directory, name, flags, Mode::from_bits_truncate(mode))
}
