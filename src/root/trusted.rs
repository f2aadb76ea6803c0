//! Trusted files: the policy, and nicpin's state files (lock and record). A file is trusted only if nobody but root and
//! the user who runs nicpin can write it, or replace it or a directory or link on the way to it; in a tree, also the
//! owner of the tree. POSIX ACLs count like the mode.

use std::ffi::CString;
use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{self, OFlag};
use nix::sys::signal::kill;
use nix::sys::stat::{self, FchmodatFlags, FileStat, Mode, SFlag};
use nix::unistd::{self, Pid, UnlinkatFlags};

use crate::root::faults::FileAction;
use crate::root::pin::open_component;
use crate::root::regular::{AT_ONCE, check_writable, kind, read_text};
use crate::root::sys::{self, AclEntry};
use crate::root::{FileError, Root};

/// Write permission of the group and of all others.
const GROUP: u32 = 0o020;
const OTHERS: u32 = 0o002;
const STICKY: u32 = 0o1000;

impl Root {
    /// Reads a whole file; `None` if it does not exist. An error if other users can write or replace it.
    pub fn read_trusted(&self, path: &str) -> Result<Option<String>, FileError> {
        if self.is_capture() {
            self.read_opt(path)
        } else {
            self.read_checked(path, OFlag::empty())
        }
    }

    /// As [`Root::read_trusted`], for a state file, which must not be a link. Recording leaves it out.
    pub(crate) fn read_state(&self, path: &str) -> Result<Option<String>, FileError> {
        if self.is_capture() {
            Ok(None)
        } else {
            self.read_checked(path, OFlag::O_NOFOLLOW)
        }
    }

    /// The inode of a file of the live machine; `None` in a tree, where it means nothing.
    pub(crate) fn inode(&self, path: &str) -> Option<u64> {
        let file = self
            .is_real()
            .then(|| self.open_at(path, OFlag::O_PATH).ok())??;
        Some(stat::fstat(&file).ok()?.st_ino)
    }

    fn read_checked(&self, path: &str, flags: OFlag) -> Result<Option<String>, FileError> {
        let io = |error: io::Error| self.io_error(path, error);
        self.faults().ask(FileAction::Read, path).map_err(io)?;
        let file = match self.open_trusted(path, OFlag::O_RDONLY | AT_ONCE | flags) {
            Err(FileError::Io { answer, .. }) if is_missing(&answer) => return Ok(None),
            opened => opened?,
        };
        read_text(&mut File::from(file), path).map(Some).map_err(io)
    }

    /// Creates a directory for state files and its parents, with mode 0755. An error if other users can write it.
    pub fn make_state_dir(&self, path: &str) -> Result<(), FileError> {
        let io = |error: io::Error| self.io_error(path, error);
        for end in path
            .match_indices('/')
            .skip(1)
            .map(|(end, _)| end)
            .chain([path.len()])
        {
            let made = &path[..end];
            if self.exists(made) || !self.faults().ask(FileAction::MakeDir, made).map_err(io)? {
                continue;
            }
            let (directory, name) = self.open_parent(made, OFlag::empty())?;
            let readable = Mode::from_bits_truncate(0o755);
            match stat::mkdirat(&directory, name, readable) {
                // Whatever the umask: others may read the record.
                Ok(()) => stat::fchmodat(&directory, name, readable, FchmodatFlags::FollowSymlink)
                    .map_err(|errno| io(errno.into()))?,
                Err(Errno::EEXIST) => {}
                Err(errno) => return Err(io(errno.into())),
            }
        }
        self.open_parent(&format!("{path}/"), OFlag::O_NOFOLLOW)
            .map(drop)
    }

    /// Opens a state file, creating it if needed, with mode 0600.
    pub fn open_state(&self, path: &str) -> Result<File, FileError> {
        let io = |error: io::Error| self.io_error(path, error);
        self.faults()
            .ask(FileAction::WriteState, path)
            .map_err(io)?;
        let (directory, name) = self.open_parent(path, OFlag::O_NOFOLLOW)?;
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | AT_ONCE;
        let file =
            File::from(open_component(&directory, name, flags).map_err(|errno| io(errno.into()))?);
        self.check(path, &file, false)?;
        let stat = stat::fstat(&file).map_err(|errno| io(errno.into()))?;
        check_writable(&stat).map_err(io)?;
        // Whoever can open it can hold a lock on it. Earlier versions created it with mode 0644.
        let _ = file.set_permissions(Permissions::from_mode(0o600));
        Ok(file)
    }

    /// Replaces a state file so that after a crash at any point it holds either the old or the new text: writes a new
    /// file beside it, syncs and renames it, and syncs the directory.
    pub fn replace_state(&self, path: &str, text: &str) -> Result<(), FileError> {
        let io = |error: io::Error| self.io_error(path, error);
        let (directory, name) = self.open_parent(path, OFlag::O_NOFOLLOW)?;
        let beside = format!(".{name}.{}", std::process::id());
        remove_left(&directory, &format!(".{name}."), "").map_err(io)?;
        let write = || -> io::Result<()> {
            if self.faults().ask(FileAction::WriteState, path)? {
                let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
                let mut file = File::from(open_component(&directory, &beside, flags)?);
                file.write_all(text.as_bytes())?;
                file.set_permissions(Permissions::from_mode(0o644))?;
                file.sync_all()?;
            }
            if self.faults().ask(FileAction::ReplaceState, path)? {
                fcntl::renameat(&directory, beside.as_str(), &directory, name)?;
            }
            Ok(())
        };
        let written = write().inspect_err(|_| {
            // The error of the write is reported, not that of the removal.
            let _ = unistd::unlinkat(&directory, beside.as_str(), UnlinkatFlags::NoRemoveDir);
        });
        written
            .and_then(|()| File::from(directory).sync_all())
            .map_err(io)
    }

    /// Removes a state file, if it exists.
    pub(crate) fn remove_state(&self, path: &str) -> Result<(), FileError> {
        let io = |error: io::Error| self.io_error(path, error);
        if !self
            .faults()
            .ask(FileAction::RemoveState, path)
            .map_err(io)?
        {
            return Ok(());
        }
        let (directory, name) = match self.open_parent(path, OFlag::O_NOFOLLOW) {
            Err(FileError::Io { answer, .. }) if is_missing(&answer) => return Ok(()),
            opened => opened?,
        };
        match unistd::unlinkat(&directory, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) => File::from(directory).sync_all().map_err(io),
            Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(io(errno.into())),
        }
    }

    /// Opens the directory of a state file, and gives the file's name in it.
    fn open_parent<'p>(
        &self,
        path: &'p str,
        flags: OFlag,
    ) -> Result<(OwnedFd, &'p str), FileError> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((
            self.open_trusted(above, OFlag::O_RDONLY | OFlag::O_DIRECTORY | flags)?,
            name,
        ))
    }

    /// Opens a file or directory. An error if others can write it, or replace it or anything on the way to it below the
    /// root.
    fn open_trusted(&self, path: &str, flags: OFlag) -> Result<OwnedFd, FileError> {
        let mut passed = Vec::new();
        let opened = self
            .walk(path, flags, &mut passed)
            .map_err(|errno| self.io_error(path, errno))?;
        for (path, file) in &passed {
            self.check(path, file, true)?;
        }
        if !path.is_empty() {
            self.check(path, &opened, !flags.contains(OFlag::O_NOFOLLOW))?;
        }
        Ok(opened)
    }

    /// An error if other users can write the file. In a directory with the sticky bit, such as /tmp, they cannot
    /// replace files of others; that is enough for directories of files whose owner is checked.
    fn check(&self, path: &str, file: &impl AsFd, sticky_is_enough: bool) -> Result<(), FileError> {
        let io = |errno: Errno| self.io_error(path, errno);
        let top = if self.is_real() {
            None
        } else {
            Some(stat::fstat(self.top().map_err(io)?).map_err(io)?)
        };
        match Trusted::below(top.as_ref())
            .other_writers(file, sticky_is_enough)
            .map_err(io)?
        {
            None => Ok(()),
            Some((reason, fix)) => Err(self.content_error(
                path,
                format!("{reason}, so nicpin does not trust it; {fix}"),
            )),
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Removes files that processes have left that were killed while they wrote: those with such a name, and the id of a process
/// in its middle that has ended.
pub fn remove_left(directory: &OwnedFd, before: &str, after: &str) -> io::Result<()> {
    let mut names = Dir::openat(directory, ".", OFlag::O_RDONLY, Mode::empty())?;
    let left: Vec<CString> = names
        .iter()
        .filter_map(|entry| Some(entry.ok()?.file_name().to_owned()))
        .filter(|name| {
            let name = name.to_str().unwrap_or_default();
            let pid = name
                .strip_prefix(before)
                .and_then(|rest| rest.strip_suffix(after));
            let pid = pid.and_then(|pid| pid.parse().ok()).filter(|pid| *pid > 0);
            pid.is_some_and(|pid| kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH))
        })
        .collect();
    for name in left {
        // Another process may have removed it.
        let _ = unistd::unlinkat(directory, name.as_c_str(), UnlinkatFlags::NoRemoveDir);
    }
    Ok(())
}

/// Root, the user who runs nicpin, and the owner of the root directory of a tree, with their groups.
struct Trusted {
    users: Vec<u32>,
    groups: Vec<u32>,
}

impl Trusted {
    fn below(top: Option<&FileStat>) -> Self {
        let (uid, gid) = (unistd::geteuid().as_raw(), unistd::getegid().as_raw());
        Self {
            users: [0, uid]
                .into_iter()
                .chain(top.map(|top| top.st_uid))
                .collect(),
            groups: [0, gid]
                .into_iter()
                .chain(top.map(|top| top.st_gid))
                .collect(),
        }
    }

    /// Which other users can write a file, and the fix.
    fn other_writers(
        &self,
        file: &impl AsFd,
        sticky_is_enough: bool,
    ) -> Result<Option<(String, &'static str)>, Errno> {
        let stat = stat::fstat(file)?;
        let (kind, mode) = (kind(&stat), stat.st_mode & !SFlag::S_IFMT.bits());
        let is_directory = kind == SFlag::S_IFDIR;
        if !self.users.contains(&stat.st_uid) {
            return Ok(Some((
                format!("is owned by user {}", stat.st_uid),
                "chown it to root",
            )));
        }
        // The mode of a link means nothing.
        if kind == SFlag::S_IFLNK || is_directory && sticky_is_enough && mode & STICKY != 0 {
            return Ok(None);
        }
        if mode & OTHERS != 0 {
            return Ok(Some((
                format!("is writable by everybody (mode {mode:04o})"),
                "chmod go-w it",
            )));
        }
        if mode & GROUP == 0 {
            return Ok(None);
        }
        if !self.groups.contains(&stat.st_gid) {
            let reason = format!("is writable by group {} (mode {mode:04o})", stat.st_gid);
            return Ok(Some((reason, "chmod g-w it")));
        }
        // With an ACL, the group's bits are the mask: what any entry of the ACL can allow.
        let acl = if is_directory {
            sys::access_acl(&open_component(
                file,
                ".",
                OFlag::O_RDONLY | OFlag::O_DIRECTORY,
            )?)?
        } else {
            sys::access_acl(file)?
        };
        Ok(acl
            .iter()
            .filter(|entry| entry.permissions & AclEntry::WRITE != 0)
            .find_map(|entry| {
                let who = match entry.tag {
                    AclEntry::USER if !self.users.contains(&entry.id) => "user",
                    AclEntry::GROUP if !self.groups.contains(&entry.id) => "group",
                    _ => return None,
                };
                Some((
                    format!("is writable by {who} {} (POSIX ACL)", entry.id),
                    "setfacl -b it",
                ))
            }))
    }
}
