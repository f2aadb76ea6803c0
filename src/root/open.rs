//! Opens files below the root; no link leads out of it.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::{self, OFlag, OpenHow, ResolveFlag};
use nix::sys::stat::Mode;

use crate::root::Root;
use crate::root::files::relative;
use crate::root::tree::resolve;

impl Root {
    pub(super) fn open_at(&self, path: &str, flags: OFlag) -> Result<OwnedFd, Errno> {
        self.open_from_top(path, flags)
    }

    fn open_from_top(&self, path: &str, flags: OFlag) -> Result<OwnedFd, Errno> {
        let top = self.top()?;
        let (flags, mode) = (flags | OFlag::O_CLOEXEC, new_mode(flags));
        if self.is_real() {
            return fcntl::openat(top, relative(path), flags, mode);
        }
        let how = OpenHow::new().flags(flags).mode(mode).resolve(ResolveFlag::RESOLVE_IN_ROOT);
        match fcntl::openat2(top, relative(path), how) {
            // Kernels before 5.6 and some sandboxes have no openat2. EAGAIN: something on the system was renamed while
            // `..` was followed.
            Err(Errno::ENOSYS | Errno::EPERM | Errno::EAGAIN) => self.open_by_hand(path, flags, mode),
            result => result,
        }
    }

    /// As `openat2` with `RESOLVE_IN_ROOT`, resolving link by link.
    fn open_by_hand(&self, path: &str, flags: OFlag, mode: Mode) -> Result<OwnedFd, Errno> {
        let link = |path: &str| self.target(path);
        let resolved = if flags.contains(OFlag::O_NOFOLLOW) {
            let (above, name) = path.trim_end_matches('/').rsplit_once('/').unwrap_or(("", path));
            resolve(above, link).map(|above| format!("{above}/{name}"))
        } else {
            resolve(path, link)
        };
        fcntl::openat(self.top()?, relative(&resolved.ok_or(Errno::ELOOP)?), flags | OFlag::O_NOFOLLOW, mode)
    }
}

/// The permissions of a file that this creates.
fn new_mode(flags: OFlag) -> Mode {
    Mode::from_bits_truncate(if flags.contains(OFlag::O_CREAT) { 0o644 } else { 0 })
}
