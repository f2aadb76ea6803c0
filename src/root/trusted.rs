//! Trusted files: the policy, and nicpin's state files (lock and record). A file is trusted only if nobody but root and
//! the user who runs nicpin can write it; in a tree, also the owner of the tree.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::fcntl::{self, OFlag};
use nix::sys::stat::{self, FileStat, Mode, SFlag};
use nix::unistd::{self, UnlinkatFlags};

use crate::root::faults::FileAction;
use crate::root::files::relative;
use crate::root::{FileError, Root};

/// Write permission of the group and of all others.
const GROUP: u32 = 0o020;
const OTHERS: u32 = 0o002;
const STICKY: u32 = 0o1000;

impl Root {
    /// Reads a whole file; `None` if it does not exist. An error if other users can write or replace it.
    pub fn read_trusted(&self, path: &str) -> Result<Option<String>, FileError> {
        if self.is_capture() {
            return self.read_opt(path);
        }
        let Some(text) = self.read_checked(path, OFlag::O_RDONLY)? else { return Ok(None) };
        let above =
            path.rsplit_once('/').map_or("/", |(above, _)| if above.is_empty() { "/" } else { above });
        self.check_dir(above, OFlag::empty())?;
        Ok(Some(text))
    }

    /// As [`Root::read_trusted`], for a state file, which must not be a link. Recording leaves it out.
    pub(crate) fn read_state(&self, path: &str) -> Result<Option<String>, FileError> {
        if self.is_capture() {
            return Ok(None);
        }
        self.read_checked(path, OFlag::O_RDONLY | OFlag::O_NOFOLLOW)
    }

    /// The inode of a file of the live machine; `None` in a tree, where it means nothing.
    pub(crate) fn inode(&self, path: &str) -> Option<u64> {
        let file = self.is_real().then(|| self.open_at(path, OFlag::O_PATH).ok())??;
        Some(stat::fstat(&file).ok()?.st_ino)
    }

    fn read_checked(&self, path: &str, flags: OFlag) -> Result<Option<String>, FileError> {
        let io = |answer: io::Error| FileError::Io { path: self.outside(path), answer };
        self.faults().ask(FileAction::Read, path).map_err(io)?;
        let mut file = match self.open_at(path, flags) {
            Ok(file) => File::from(file),
            Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(None),
            Err(errno) => return Err(io(errno.into())),
        };
        self.check(path, &file, false)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(io)?;
        Ok(Some(text))
    }

    /// Creates a directory for state files and its parents, with mode 0755. An error if other users can write it.
    pub(crate) fn make_state_dir(&self, path: &str) -> Result<(), FileError> {
        let mut done = String::new();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            done = format!("{done}/{name}");
            self.make_dir(&done).map_err(|answer| FileError::Io { path: self.outside(path), answer })?;
        }
        for (end, _) in path.match_indices('/').skip(1) {
            self.check_dir(&path[..end], OFlag::empty())?;
        }
        self.check_dir(path, OFlag::O_NOFOLLOW)
    }

    fn make_dir(&self, path: &str) -> io::Result<()> {
        if self.exists(path) || !self.faults().ask(FileAction::MakeDir, path)? {
            return Ok(());
        }
        match stat::mkdirat(self.top()?, relative(path), Mode::from_bits_truncate(0o755)) {
            Ok(()) | Err(Errno::EEXIST) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn check_dir(&self, path: &str, flags: OFlag) -> Result<(), FileError> {
        let io = |errno: Errno| FileError::Io { path: self.outside(path), answer: errno.into() };
        let dir = self.open_at(path, OFlag::O_PATH | OFlag::O_DIRECTORY | flags).map_err(io)?;
        // In a directory with the sticky bit, such as /tmp, users cannot replace files of others.
        self.check(path, &dir, !flags.contains(OFlag::O_NOFOLLOW))
    }

    /// An error if other users can write the file.
    fn check(&self, path: &str, file: &impl AsFd, sticky_is_enough: bool) -> Result<(), FileError> {
        let io = |errno: Errno| FileError::Io { path: self.outside(path), answer: errno.into() };
        let stat = stat::fstat(file).map_err(io)?;
        let top = if self.is_real() { None } else { Some(stat::fstat(self.top().map_err(io)?).map_err(io)?) };
        let Some((reason, fix)) = other_writers(&stat, top.as_ref()) else { return Ok(()) };
        if sticky_is_enough && stat.st_mode & STICKY != 0 {
            return Ok(());
        }
        Err(self.content_error(path, format!("{reason}, so nicpin does not trust it; {fix}")))
    }

    /// Opens a state file, creating it if needed.
    pub(crate) fn open_state(&self, path: &str) -> Result<File, FileError> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW;
        let opened =
            self.faults().ask(FileAction::WriteState, path).and_then(|_| Ok(self.open_at(path, flags)?));
        let file = opened.map_err(|answer| FileError::Io { path: self.outside(path), answer })?;
        self.check(path, &file, false)?;
        Ok(File::from(file))
    }

    /// Replaces a state file so that after a crash at any point it holds either the old or the new text: writes a file
    /// beside it, syncs and renames it, and syncs the directory.
    pub(crate) fn replace_state(&self, path: &str, text: &str) -> io::Result<()> {
        let beside = format!("{path}.new");
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC | OFlag::O_NOFOLLOW;
        if self.faults().ask(FileAction::WriteState, &beside)? {
            let mut file = File::from(self.open_at(&beside, flags)?);
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
        }
        if self.faults().ask(FileAction::ReplaceState, path)? {
            fcntl::renameat(self.top()?, relative(&beside), self.top()?, relative(path))?;
        }
        self.sync_parent(path)
    }

    /// Removes a state file, if it exists.
    pub(crate) fn remove_state(&self, path: &str) -> io::Result<()> {
        if !self.faults().ask(FileAction::RemoveState, path)? {
            return Ok(());
        }
        match unistd::unlinkat(self.top()?, relative(path), UnlinkatFlags::NoRemoveDir) {
            Ok(()) => self.sync_parent(path),
            Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn sync_parent(&self, path: &str) -> io::Result<()> {
        let parent = &path[..path.rfind('/').unwrap_or(0)];
        File::from(self.open_at(parent, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?).sync_all()
    }
}

/// Which other users can write a file, and the fix. `top` is the root directory of a tree, whose owner is trusted.
fn other_writers(stat: &FileStat, top: Option<&FileStat>) -> Option<(String, &'static str)> {
    let (uid, gid) = (unistd::geteuid().as_raw(), unistd::getegid().as_raw());
    // The mode bits of a link mean nothing; links were followed or refused when the file was opened.
    let mode = stat.st_mode & !SFlag::S_IFMT.bits();
    if ![0, uid].contains(&stat.st_uid) && top.is_none_or(|top| top.st_uid != stat.st_uid) {
        return Some((format!("is owned by user {}", stat.st_uid), "chown it to root"));
    }
    if mode & OTHERS != 0 {
        return Some((format!("is writable by everybody (mode {mode:04o})"), "chmod go-w it"));
    }
    let own_group = [0, gid].contains(&stat.st_gid) || top.is_some_and(|top| top.st_gid == stat.st_gid);
    if mode & GROUP != 0 && !own_group {
        return Some((format!("is writable by group {} (mode {mode:04o})", stat.st_gid), "chmod g-w it"));
    }
    None
}
