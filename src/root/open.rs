//! Opens files below the root; no link leads out of it, whatever is renamed meanwhile.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno::{self, EAGAIN, EILSEQ, ELOOP, ENOENT, ENOSYS, ENOTDIR, EPERM};
use nix::fcntl::{self, OFlag, OpenHow, ResolveFlag};
use nix::sys::stat::{self, Mode, SFlag};

use crate::root::files::Root;
use crate::root::regular::{AT_ONCE, check_writable, kind, open_component};
use crate::root::tree::resolve;

const DIRECTORY: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY);

impl Root {
    pub(super) fn open_at(&self, path: &str, flags: OFlag) -> Result<OwnedFd, Errno> {
        let pinned = self.pinned.borrow();
        let below = pinned.iter().find_map(|(pinned, directory)| {
            let rest = path.strip_prefix(pinned.as_str())?;
            (rest.is_empty() || rest.starts_with('/'))
                .then(|| (directory, rest.trim_start_matches('/')))
        });
        let open = |(directory, rest): (&Option<OwnedFd>, _)| match directory {
            Some(directory) => open_below(directory, rest, flags),
            None => Err(ENOENT),
        };
        match below.map(open) {
            // A tree may have links where the kernel has none.
            Some(Err(ELOOP | ENOTDIR)) if !self.is_real() => {}
            Some(opened) => return opened,
            None => {}
        }
        self.open_by_path(path, flags)
    }

    fn open_by_path(&self, path: &str, flags: OFlag) -> Result<OwnedFd, Errno> {
        let (top, flags) = (self.top()?, flags | OFlag::O_CLOEXEC);
        let below = match path.trim_start_matches('/') {
            "" => ".",
            below => below,
        };
        if self.is_real() {
            return fcntl::openat(top, below, flags, Mode::empty());
        }
        match fcntl::openat2(
            top,
            below,
            OpenHow::new()
                .flags(flags)
                .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS),
        ) {
            // Kernels before 5.6 and some sandboxes have no openat2. EAGAIN: something on the system was renamed while
            // `..` was followed.
            Err(ENOSYS | EPERM | EAGAIN) => self.walk(path, flags, &mut Vec::new()),
            result => result,
        }
    }

    /// While `work` runs, these directories and all files below them are those that have these paths now, or had them
    /// when pinned before. On the live machine, no link below them is followed. An absent directory stays absent:
    /// another one may get its path. One that cannot be opened is found by its path.
    pub(crate) fn with_pinned<T>(
        &self,
        paths: impl IntoIterator<Item = impl Into<String>>,
        work: impl FnOnce() -> T,
    ) -> T {
        let mut added: Vec<String> = paths.into_iter().map(Into::into).collect();
        added.retain(|path| !self.pinned.borrow().contains_key(path));
        let open = |path: &String| match self.open_by_path(path, DIRECTORY) {
            Ok(directory) => Some((path.clone(), Some(directory))),
            Err(errno) => (errno == ENOENT).then(|| (path.clone(), None)),
        };
        self.pinned
            .borrow_mut()
            .extend(added.iter().filter_map(open));
        let result = work();
        self.pinned
            .borrow_mut()
            .retain(|path, _| !added.contains(path));
        result
    }

    pub(crate) fn is_pinned_in_place(&self, path: &str) -> bool {
        self.pinned.borrow().contains_key(path) && self.is_at(path, path)
    }

    /// Whether the directory pinned as `pinned` is at `path` now, or both are absent; true if it is not pinned.
    pub(crate) fn is_at(&self, pinned: &str, path: &str) -> bool {
        let directories = self.pinned.borrow();
        let Some(directory) = directories.get(pinned) else {
            return true;
        };
        let now = self.open_by_path(path, DIRECTORY).and_then(stat::fstat);
        match (directory.as_ref().map(stat::fstat), now) {
            (Some(Ok(then)), Ok(now)) => (then.st_dev, then.st_ino) == (now.st_dev, now.st_ino),
            (None, Err(ENOENT)) => true,
            _ => false,
        }
    }

    /// As `openat2` with `RESOLVE_IN_ROOT`, each component below the descriptor of the one before it. `passed` gets the
    /// directories and links on the way.
    pub(super) fn walk(
        &self,
        path: &str,
        flags: OFlag,
        passed: &mut Vec<(String, OwnedFd)>,
    ) -> Result<OwnedFd, Errno> {
        let top = self.top()?;
        let open = |passed: &[(String, OwnedFd)], path: &str, flags| {
            let (above, name) = path.rsplit_once('/').unwrap_or(("", "."));
            open_component(
                passed
                    .iter()
                    .rfind(|(passed, _)| passed == above)
                    .map_or(top, |(_, directory)| directory),
                name,
                flags,
            )
        };
        let found = resolve(path, |path, last| {
            let file = open(passed, path, OFlag::O_PATH)?;
            let is_link = kind(&stat::fstat(&file)?) == SFlag::S_IFLNK;
            if last && (!is_link || flags.contains(OFlag::O_NOFOLLOW)) {
                return Ok(None);
            }
            let target = is_link.then(|| fcntl::readlinkat(&file, "")).transpose()?;
            passed.push((path.to_owned(), file));
            target
                .map(|target| target.into_string().map_err(|_| EILSEQ))
                .transpose()
        })?;
        open(passed, &found, flags)
    }

    pub(super) fn open_to_write(&self, path: &str, length: usize) -> io::Result<File> {
        let file = File::from(self.open_at(path, OFlag::O_WRONLY | AT_ONCE)?);
        if !self.is_real() {
            // A copy would keep the end of a longer text.
            if usize::try_from(check_writable(&file)?.st_size).is_ok_and(|now| now > length) {
                file.set_len(0)?;
            }
        }
        Ok(file)
    }
}

fn open_below(directory: impl AsFd, path: &str, flags: OFlag) -> Result<OwnedFd, Errno> {
    let Some((first, rest)) = path.split_once('/') else {
        return open_component(directory, if path.is_empty() { "." } else { path }, flags);
    };
    let how = OpenHow::new()
        .flags(flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    match fcntl::openat2(&directory, path, how) {
        // As in `open_by_path`.
        Err(ENOSYS | EPERM | EAGAIN) => {
            open_below(open_component(directory, first, DIRECTORY)?, rest, flags)
        }
        opened => opened,
    }
}
