//! Opens files below the root; no link leads out of it, whatever is renamed meanwhile.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{self, OFlag, OpenHow, ResolveFlag};
use nix::sys::stat::{self, Mode, SFlag};

use crate::root::Root;
use crate::root::files::relative;
use crate::root::pin::{DIRECTORY, open_component};
use crate::root::regular::{AT_ONCE, check_writable, kind};
use crate::root::tree::resolve;

impl Root {
    pub(super) fn open_at(&self, path: &str, flags: OFlag) -> Result<OwnedFd, Errno> {
        match self.pinned().open(path, flags) {
            None => self.open_by_path(path, flags),
            // A tree may have links where the kernel has none.
            Some(Err(Errno::ELOOP)) if !self.is_real() => self.open_by_path(path, flags),
            Some(opened) => opened,
        }
    }

    fn open_by_path(&self, path: &str, flags: OFlag) -> Result<OwnedFd, Errno> {
        let (top, flags) = (self.top()?, flags | OFlag::O_CLOEXEC);
        if self.is_real() {
            return fcntl::openat(top, relative(path), flags, Mode::empty());
        }
        let resolve = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        match fcntl::openat2(
            top,
            relative(path),
            OpenHow::new().flags(flags).resolve(resolve),
        ) {
            // Kernels before 5.6 and some sandboxes have no openat2. EAGAIN: something on the system was renamed while
            // `..` was followed.
            Err(Errno::ENOSYS | Errno::EPERM | Errno::EAGAIN) => {
                self.walk(path, flags, &mut Vec::new())
            }
            result => result,
        }
    }

    /// Does some work, during which these directories, and all files below them, are those that have these paths now,
    /// or had them when they were pinned before. Below them the live machine's links are not followed. Directories that
    /// are absent now are found by their paths.
    pub(crate) fn with_pinned<T>(
        &self,
        paths: impl IntoIterator<Item = impl Into<String>>,
        work: impl FnOnce() -> T,
    ) -> T {
        let pinned = &self.pinned().0;
        let mut added = paths
            .into_iter()
            .map(Into::<String>::into)
            .collect::<Vec<_>>();
        added.retain(|path| !pinned.borrow().contains_key(path));
        let open = |path: &String| Some((path.clone(), self.open_by_path(path, DIRECTORY).ok()?));
        pinned.borrow_mut().extend(added.iter().filter_map(open));
        let result = work();
        pinned.borrow_mut().retain(|path, _| !added.contains(path));
        result
    }

    /// Whether a directory is pinned and still has its path.
    pub(crate) fn is_pinned_in_place(&self, path: &str) -> bool {
        self.pinned().0.borrow().contains_key(path) && self.is_at(path, path)
    }

    /// Whether the directory that was pinned by a path is at this one now; true if it is not pinned.
    pub(crate) fn is_at(&self, pinned: &str, path: &str) -> bool {
        let directories = self.pinned().0.borrow();
        let Some(directory) = directories.get(pinned) else {
            return true;
        };
        let now = self.open_by_path(path, DIRECTORY).and_then(stat::fstat);
        match (stat::fstat(directory), now) {
            (Ok(then), Ok(now)) => (then.st_dev, then.st_ino) == (now.st_dev, now.st_ino),
            _ => false,
        }
    }

    /// As `openat2` with `RESOLVE_IN_ROOT`, one component after the other, each below the descriptor of the one before
    /// it. `passed` gets the directories and links on the way, with their paths.
    pub(super) fn walk(
        &self,
        path: &str,
        flags: OFlag,
        passed: &mut Vec<(String, OwnedFd)>,
    ) -> Result<OwnedFd, Errno> {
        let top = self.top()?;
        let open = |passed: &[(String, OwnedFd)], path: &str, flags| {
            let (above, name) = path.rsplit_once('/').unwrap_or(("", "."));
            let above = passed.iter().rfind(|(passed, _)| passed == above);
            open_component(above.map_or(top, |(_, directory)| directory), name, flags)
        };
        let found = resolve(path, |path, last| {
            let file = open(passed, path, OFlag::O_PATH)?;
            let is_link = kind(&stat::fstat(&file)?) == SFlag::S_IFLNK;
            if last && (!is_link || flags.contains(OFlag::O_NOFOLLOW)) {
                return Ok(None);
            }
            let target = if is_link {
                let target = fcntl::readlinkat(&file, "")?.into_string();
                Some(target.map_err(|_| Errno::EILSEQ)?)
            } else {
                None
            };
            passed.push((path.to_owned(), file));
            Ok::<_, Errno>(target)
        })?;
        open(passed, &found, flags)
    }

    /// The path of the file that a path leads to, as the kernel has it; `None` where it does not say.
    pub(super) fn ask_for_path(&self, path: &str) -> Result<Option<String>, Errno> {
        let file = self.open_by_path(path, OFlag::O_PATH)?;
        // `proc_pid_fd(5)`: " (deleted)" follows the path of a file that is gone.
        let name = |fd: &OwnedFd| {
            let name =
                fcntl::readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()).as_str()).ok()?;
            name.into_string()
                .ok()
                .filter(|name| !name.ends_with(" (deleted)"))
        };
        let (Some(top), Some(name)) = (name(self.top()?), name(&file)) else {
            return Ok(None);
        };
        let below = name.strip_prefix(top.trim_end_matches('/'));
        let below = below.filter(|path| path.starts_with('/') && !path.contains(char::is_control));
        Ok(below.map(str::to_owned))
    }

    /// The target of a link.
    pub(super) fn target_of(&self, path: &str) -> Option<String> {
        let target = if self.is_real() {
            fcntl::readlinkat(self.top().ok()?, relative(path))
        } else {
            fcntl::readlinkat(
                self.open_at(path, OFlag::O_PATH | OFlag::O_NOFOLLOW).ok()?,
                "",
            )
        };
        target.ok()?.into_string().ok()
    }

    /// Opens a file to read it.
    pub(super) fn open_to_read(&self, path: &str) -> io::Result<File> {
        Ok(File::from(self.open_at(path, OFlag::O_RDONLY | AT_ONCE)?))
    }

    /// Opens a setting's file to write a text of so many bytes.
    pub(super) fn open_to_write(&self, path: &str, length: usize) -> io::Result<File> {
        let file = File::from(self.open_at(path, OFlag::O_WRONLY | AT_ONCE)?);
        if !self.is_real() {
            let stat = stat::fstat(&file)?;
            check_writable(&stat)?;
            // In a copy, the end of a longer text would be left behind the new one.
            if usize::try_from(stat.st_size).is_ok_and(|now| now > length) {
                file.set_len(0)?;
            }
        }
        Ok(file)
    }
}
