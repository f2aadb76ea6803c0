//! Trusted files: the policy, and nicpin's lock and record. Only root and the user who runs nicpin (in a tree, also its
//! owner) may be able to write or replace the file, or a directory or link on the way to it. POSIX ACLs count like the
//! mode.

use std::ffi::CString;
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;

use nix::dir::Dir;
use nix::errno::Errno::{self, EEXIST, ENOENT, ESRCH};
use nix::fcntl::{self, OFlag};
use nix::libc::{S_ISVTX, S_IWGRP, S_IWOTH};
use nix::sys::signal::kill;
use nix::sys::stat::{self, FchmodatFlags, Mode, SFlag};
use nix::unistd::{self, Pid, UnlinkatFlags};

use crate::root::faults::FileAction::{self, MakeDir, Read, RemoveState, ReplaceState, WriteState};
use crate::root::files::Root;
use crate::root::regular::{AT_ONCE, check_writable, kind, open_component, read_whole};
use crate::root::sys::acl_writers;
use crate::root::{FileError, Result};

impl Root {
    /// Reads a whole file; `None` if it does not exist, an error if other users can write or replace it.
    pub fn read_trusted(&self, path: &str) -> Result<Option<String>> {
        if self.is_capture() {
            self.read_opt(path)
        } else {
            self.read_checked(path, OFlag::empty())
        }
    }

    /// Must not be a link. Not recorded.
    pub(crate) fn read_state(&self, path: &str) -> Result<Option<String>> {
        if self.is_capture() {
            Ok(None)
        } else {
            self.read_checked(path, OFlag::O_NOFOLLOW)
        }
    }

    /// `None` in a tree, where inodes mean nothing.
    pub(crate) fn inode(&self, path: &str) -> Option<u64> {
        let file = self
            .is_real()
            .then(|| self.open_at(path, OFlag::O_PATH).ok())??;
        Some(stat::fstat(&file).ok()?.st_ino)
    }

    fn read_checked(&self, path: &str, flags: OFlag) -> Result<Option<String>> {
        self.ask(Read, path)?;
        let Some(file) = existing(self.open_trusted(path, OFlag::O_RDONLY | AT_ONCE | flags))?
        else {
            return Ok(None);
        };
        self.about(
            path,
            read_whole(&file.into(), path, <[u8]>::to_vec).and_then(|(_, bytes)| {
                String::from_utf8(bytes).map_err(|_| io::Error::other("is not UTF-8 text"))
            }),
        )
        .map(Some)
    }

    /// With mode 0755, parents too.
    fn make_state_dir(&self, path: &str) -> Result<()> {
        for end in path
            .match_indices('/')
            .skip(1)
            .map(|(end, _)| end)
            .chain([path.len()])
        {
            let made = &path[..end];
            if self.exists(made) || !self.about(path, self.faults.ask(MakeDir, made, ""))? {
                continue;
            }
            let (directory, name) = self.open_parent(made, OFlag::empty())?;
            let readable = Mode::from_bits_truncate(0o755);
            let done = match stat::mkdirat(&directory, name, readable) {
                // Whatever the umask: others may read the record.
                Ok(()) => stat::fchmodat(&directory, name, readable, FchmodatFlags::FollowSymlink),
                Err(EEXIST) => Ok(()),
                failed => failed,
            };
            self.about(path, done)?;
        }
        self.open_parent(&format!("{path}/"), OFlag::O_NOFOLLOW)
            .map(drop)
    }

    /// Creates the file (mode 0600) and its directory if needed.
    pub fn open_state(&self, path: &str) -> Result<File> {
        self.make_state_dir(path.rsplit_once('/').map_or("", |(above, _)| above))?;
        self.ask(WriteState, path)?;
        let (directory, name) = self.open_parent(path, OFlag::O_NOFOLLOW)?;
        let file = File::from(self.about(
            path,
            open_component(&directory, name, OFlag::O_RDWR | OFlag::O_CREAT | AT_ONCE),
        )?);
        self.check(path, &file, false)?;
        self.about(path, check_writable(&file))?;
        // Anybody who can open the file can hold a lock on it. Earlier versions created it with mode 0644.
        let _ = file.set_permissions(Permissions::from_mode(0o600));
        Ok(file)
    }

    /// A crash at any point leaves the old or the new text.
    pub fn replace_state(&self, path: &str, text: &str) -> Result<()> {
        let (directory, name) = self.open_parent(path, OFlag::O_NOFOLLOW)?;
        let beside = format!(".{name}.{}", std::process::id());
        self.about(path, remove_left(&directory, &format!(".{name}."), ""))?;
        let write = || -> io::Result<()> {
            if self.faults.ask(WriteState, path, "")? {
                let mut file = File::from(open_component(
                    &directory,
                    &beside,
                    OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL,
                )?);
                file.write_all(text.as_bytes())?;
                file.set_permissions(Permissions::from_mode(0o644))?;
                file.sync_all()?;
            }
            if self.faults.ask(ReplaceState, path, "")? {
                fcntl::renameat(&directory, beside.as_str(), &directory, name)?;
            }
            Ok(())
        };
        self.about(
            path,
            write()
                .inspect_err(|_| {
                    // The error of the write is reported, not that of the removal.
                    let _ = remove(&directory, beside.as_str());
                })
                .and_then(|()| File::from(directory).sync_all()),
        )
    }

    pub(crate) fn remove_state(&self, path: &str) -> Result<()> {
        if !self.ask(RemoveState, path)? {
            return Ok(());
        }
        let Some((directory, name)) = existing(self.open_parent(path, OFlag::O_NOFOLLOW))? else {
            return Ok(());
        };
        match remove(&directory, name) {
            Err(ENOENT) => Ok(()),
            Err(errno) => Err(self.io_error(path, errno)),
            Ok(()) => self.about(path, File::from(directory).sync_all()),
        }
    }

    fn ask(&self, action: FileAction, path: &str) -> Result<bool> {
        self.about(path, self.faults.ask(action, path, ""))
    }

    fn open_parent<'p>(&self, path: &'p str, flags: OFlag) -> Result<(OwnedFd, &'p str)> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((
            self.open_trusted(above, OFlag::O_RDONLY | OFlag::O_DIRECTORY | flags)?,
            name,
        ))
    }

    fn open_trusted(&self, path: &str, flags: OFlag) -> Result<OwnedFd> {
        let mut passed = Vec::new();
        let opened = self.about(path, self.walk(path, flags, &mut passed))?;
        for (path, file) in &passed {
            self.check(path, file, true)?;
        }
        if !path.is_empty() {
            self.check(path, &opened, !flags.contains(OFlag::O_NOFOLLOW))?;
        }
        Ok(opened)
    }

    /// `sticky_is_enough`: in a sticky directory such as /tmp, others cannot replace files, if the file's owner is
    /// checked, too.
    fn check(&self, path: &str, file: &impl AsFd, sticky_is_enough: bool) -> Result<()> {
        let stat = self.about(path, stat::fstat(file))?;
        let (kind, mode) = (kind(&stat), stat.st_mode & 0o7777);
        let (mut users, mut groups) = (
            vec![0, unistd::geteuid().as_raw()],
            vec![0, unistd::getegid().as_raw()],
        );
        if !self.is_real() {
            let top = self.about(path, self.top().and_then(stat::fstat))?;
            users.push(top.st_uid);
            groups.push(top.st_gid);
        }
        let is_directory = kind == SFlag::S_IFDIR;
        let (reason, fix) = if !users.contains(&stat.st_uid) {
            (
                format!("is owned by user {}", stat.st_uid),
                "chown it to root",
            )
        // The mode of a link means nothing.
        } else if kind == SFlag::S_IFLNK || is_directory && sticky_is_enough && mode & S_ISVTX != 0
        {
            return Ok(());
        } else if mode & S_IWOTH != 0 {
            (
                format!("is writable by everybody (mode {mode:04o})"),
                "chmod go-w it",
            )
        } else if mode & S_IWGRP == 0 {
            return Ok(());
        } else if !groups.contains(&stat.st_gid) {
            (
                format!("is writable by group {} (mode {mode:04o})", stat.st_gid),
                "chmod g-w it",
            )
        } else {
            // With an ACL, the group's bits are the mask: the most that any entry of the ACL can allow.
            let writers = if is_directory {
                open_component(file, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY)
                    .and_then(|opened| acl_writers(&opened))
            } else {
                acl_writers(file)
            };
            let is_other = |(who, id): &(&str, u32)| match *who {
                "user" => !users.contains(id),
                _ => !groups.contains(id),
            };
            let Some((who, id)) = self.about(path, writers)?.into_iter().find(is_other) else {
                return Ok(());
            };
            (
                format!("is writable by {who} {id} (POSIX ACL)"),
                "setfacl -b it",
            )
        };
        let reason = format!("{reason}, so nicpin does not trust it; fix: {fix}");
        Err(self.content_error(path, reason))
    }
}

fn existing<T>(opened: Result<T>) -> Result<Option<T>> {
    match opened {
        Err(FileError::Io { answer, .. })
            if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&answer.kind()) =>
        {
            Ok(None)
        }
        opened => opened.map(Some),
    }
}

fn remove(directory: &OwnedFd, name: &(impl nix::NixPath + ?Sized)) -> Result<(), Errno> {
    unistd::unlinkat(directory, name, UnlinkatFlags::NoRemoveDir)
}

/// Removes files of processes that were killed while they wrote: `before`, the id of a process that has ended, `after`.
/// This process writes none now; in a container, another may have had its id.
pub fn remove_left(directory: &OwnedFd, before: &str, after: &str) -> io::Result<()> {
    let has_ended = |name: &CString| {
        let name = name.to_str().ok()?;
        let pid = name.strip_prefix(before)?.strip_suffix(after)?;
        let pid = pid.parse().ok().filter(|pid| *pid > 0)?;
        let pid = Pid::from_raw(pid);
        Some(pid == Pid::this() || kill(pid, None) == Err(ESRCH))
    };
    let mut left: Vec<CString> = Dir::openat(directory, ".", OFlag::O_RDONLY, Mode::empty())?
        .iter()
        .filter_map(|entry| Some(entry.ok()?.file_name().to_owned()))
        .collect();
    left.retain(|name| has_ended(name) == Some(true));
    for name in left {
        // Another process may have removed it.
        let _ = remove(directory, name.as_c_str());
    }
    Ok(())
}
