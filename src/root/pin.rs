//! Directories that stay the same while names change: a network interface may be renamed, and another one get its name.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::{self, OFlag};
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
            (rest.is_empty() || rest.starts_with('/')).then_some((directory, rest.trim_start_matches('/')))
        })?;
        let open = |above: &OwnedFd, name: &str, flags: OFlag| {
            let name = if name.is_empty() { "." } else { name };
            let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            fcntl::openat(above, name, flags, Mode::empty())
        };
        let Some((above, name)) = rest.rsplit_once('/') else { return Some(open(directory, rest, flags)) };
        let mut names = above.split('/');
        let first = open(directory, names.next().unwrap_or_default(), DIRECTORY);
        let above = names.fold(first, |above, name| open(&above?, name, DIRECTORY));
        Some(above.and_then(|above| open(&above, name, flags)))
    }
}
