//! Every file access of nicpin, below one root directory.
//!
//! The root is `/` on a live machine, or the top of a tree that holds the same files. Paths are those of
//! the machine (`/proc/irq/71/smp_affinity`) whatever the root; links in a tree are followed as that
//! machine would follow them and never lead out of it. Absence is an answer (`None`), not an error.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{self, OFlag, OpenHow, ResolveFlag};
use nix::sys::stat::{self, Mode};

/// The directory below which the machine is read and written.
#[derive(Debug)]
pub struct Root {
    base: PathBuf,
    dir: OwnedFd,
    real: bool,
    /// What was looked at; `None` when nobody asked to know.
    record: Option<Mutex<Recorded>>,
}

/// What a recording root has seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The paths that were looked at, found or not.
    pub paths: BTreeSet<String>,
    /// What the live machine answered beside its files, by the path where a tree keeps such an answer.
    pub answers: BTreeMap<String, String>,
}

/// A file of the machine that could not be read, or does not hold what it should.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The kernel refused: the path, its answer and what to do about it.
    #[error("{}: {}{}", path.display(), errno_words(answer), cure(answer))]
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

impl Root {
    /// Opens a root. `/` (by whatever name) is the live machine.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let dir = fcntl::open(path, flags, Mode::empty()).map_err(|errno| io_error(path, errno))?;
        let same = |a: &stat::FileStat, b: &stat::FileStat| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino);
        let real = match (stat::fstat(&dir), stat::stat("/")) {
            (Ok(given), Ok(top)) => same(&given, &top),
            _ => false,
        };
        Ok(Self { base: if real { PathBuf::from("/") } else { path.to_owned() }, dir, real, record: None })
    }

    /// As [`Root::open`], and records what is looked at.
    pub fn open_recording(path: &Path) -> Result<Self, FileError> {
        Ok(Self { record: Some(Mutex::default()), ..Self::open(path)? })
    }

    /// What was looked at so far, when opened with [`Root::open_recording`].
    pub fn recorded(&self) -> Recorded {
        self.record.as_ref().and_then(|record| Some(record.lock().ok()?.clone())).unwrap_or_default()
    }

    /// Records an answer of the live machine under the path where a tree keeps it.
    pub fn remember(&self, path: &str, answer: impl FnOnce() -> String) {
        if let Some(mut record) = self.record.as_ref().and_then(|record| record.lock().ok()) {
            record.answers.insert(path.to_owned(), answer());
        }
    }

    /// Whether this is the live machine, which answers ioctls and netlink beside its files.
    pub fn is_real(&self) -> bool {
        self.real
    }

    /// The root directory itself.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// A path of the machine as this process and its user would name it.
    pub fn outside(&self, path: &str) -> PathBuf {
        self.base.join(path.trim_start_matches('/'))
    }

    /// An error about what a file holds.
    pub fn content_error(&self, path: &str, reason: impl Into<String>) -> FileError {
        FileError::Content { path: self.outside(path), reason: reason.into() }
    }

    /// The whole file.
    pub fn read(&self, path: &str) -> Result<String, FileError> {
        self.read_text(path).map_err(|answer| FileError::Io { path: self.outside(path), answer })
    }

    /// The whole file, or `None` where the machine has none, or has one that says nothing: a queue that
    /// vanished, `speed` of a link that is down (EINVAL), `xps_cpus` of a single queue (ENOENT on read).
    pub fn read_opt(&self, path: &str) -> Result<Option<String>, FileError> {
        match self.read_text(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(answer) => Err(FileError::Io { path: self.outside(path), answer }),
        }
    }

    /// The names in a directory, sorted; `None` when there is no such directory.
    pub fn list(&self, path: &str) -> Result<Option<Vec<String>>, FileError> {
        let names = self
            .open_at(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY)
            .and_then(Dir::from_fd)
            .and_then(|mut dir| {
                let entries: Result<Vec<_>, Errno> = dir.iter().collect();
                Ok(entries?.iter().map(|e| e.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>())
            })
            .map_err(io::Error::from);
        match names {
            Ok(mut names) => {
                names.retain(|name| name != "." && name != "..");
                names.sort_unstable();
                Ok(Some(names))
            }
            Err(error) if is_absent(&error) => Ok(None),
            Err(answer) => Err(FileError::Io { path: self.outside(path), answer }),
        }
    }

    /// Whether the path leads anywhere.
    pub fn exists(&self, path: &str) -> bool {
        self.open_at(path, OFlag::O_PATH).is_ok()
    }

    /// The permission bits of a file, or `None` when it is not there.
    pub fn mode(&self, path: &str) -> Option<u32> {
        let file = self.open_at(path, OFlag::O_PATH).ok()?;
        Some(stat::fstat(&file).ok()?.st_mode & 0o7777)
    }

    /// The last name in the target of a link: `driver` of a device gives the driver's name.
    pub fn link_name(&self, path: &str) -> Option<String> {
        let target = self.read_link(path)?;
        target.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned)
    }

    /// The path without links, `.` and `..`, as the machine would resolve it; `None` when it leads nowhere.
    pub fn canonical(&self, path: &str) -> Option<String> {
        self.resolve(path).filter(|resolved| self.exists(resolved))
    }

    /// Writes a value into a file that exists, with one write(2); never creates one.
    pub fn write(&self, path: &str, value: &str) -> io::Result<()> {
        let mut file = File::from(self.open_at(path, OFlag::O_WRONLY | OFlag::O_TRUNC)?);
        let written = file.write(value.as_bytes())?;
        if written == value.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Makes a directory and those above it, for nicpin's own state; 0755 where it is made.
    pub fn make_state_dir(&self, path: &str) -> io::Result<()> {
        let mut done = String::new();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            done = format!("{done}/{name}");
            match stat::mkdirat(&self.dir, relative(&done), Mode::from_bits_truncate(0o755)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Opens a file of nicpin's own state, making it when it is not there.
    pub fn open_state(&self, path: &str) -> io::Result<File> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW;
        self.open_at(path, flags).map(File::from).map_err(io::Error::from)
    }

    /// Replaces a file of nicpin's own state so that after a crash at any point it holds either the old
    /// text or the new: written beside it, synced, renamed, and the directory synced.
    pub fn replace_state(&self, path: &str, text: &str) -> io::Result<()> {
        let beside = format!("{path}.new");
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC | OFlag::O_NOFOLLOW;
        let mut file = File::from(self.open_at(&beside, flags)?);
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fcntl::renameat(&self.dir, relative(&beside), &self.dir, relative(path))?;
        self.sync_parent(path)
    }

    /// Removes a file of nicpin's own state; it need not be there.
    pub fn remove_state(&self, path: &str) -> io::Result<()> {
        match nix::unistd::unlinkat(&self.dir, relative(path), nix::unistd::UnlinkatFlags::NoRemoveDir) {
            Ok(()) => self.sync_parent(path),
            Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn sync_parent(&self, path: &str) -> io::Result<()> {
        let parent = &path[..path.rfind('/').unwrap_or(0)];
        File::from(self.open_at(parent, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?).sync_all()
    }

    fn read_text(&self, path: &str) -> io::Result<String> {
        let mut file = File::from(self.open_at(path, OFlag::O_RDONLY)?);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    fn read_link(&self, path: &str) -> Option<String> {
        self.note(path);
        let target = fcntl::readlinkat(&self.dir, relative(path)).ok()?;
        target.into_string().ok()
    }

    fn note(&self, path: &str) {
        if let Some(mut record) = self.record.as_ref().and_then(|record| record.lock().ok()) {
            record.paths.insert(path.to_owned());
        }
    }

    fn open_at(&self, path: &str, flags: OFlag) -> Result<OwnedFd, Errno> {
        self.note(path);
        let flags = flags | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(if flags.contains(OFlag::O_CREAT) { 0o644 } else { 0 });
        if self.real {
            return fcntl::openat(&self.dir, relative(path), flags, mode);
        }
        let how = OpenHow::new().flags(flags).mode(mode).resolve(ResolveFlag::RESOLVE_IN_ROOT);
        match fcntl::openat2(&self.dir, relative(path), how) {
            // Kernels before 5.6 and some sandboxes have no openat2.
            Err(Errno::ENOSYS | Errno::EPERM) => self.open_by_hand(path, flags, mode),
            result => result,
        }
    }

    /// As `openat2` with `RESOLVE_IN_ROOT` does, link by link.
    fn open_by_hand(&self, path: &str, flags: OFlag, mode: Mode) -> Result<OwnedFd, Errno> {
        let resolved = self.resolve(path).ok_or(Errno::ELOOP)?;
        fcntl::openat(&self.dir, relative(&resolved), flags | OFlag::O_NOFOLLOW, mode)
    }

    /// The path without links, `.` and `..`, whether or not it exists; `None` when links run in a circle.
    fn resolve(&self, path: &str) -> Option<String> {
        // As many links as the kernel follows before it answers ELOOP.
        let mut links = 40;
        let mut rest: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
        let mut done = String::new();
        while let Some(name) = rest.pop() {
            match name.as_str() {
                "" | "." => {}
                ".." => done.truncate(done.rfind('/').unwrap_or(0)),
                _ => {
                    let next = format!("{done}/{name}");
                    let Some(target) = self.read_link(&next) else {
                        done = next;
                        continue;
                    };
                    links -= 1;
                    if links == 0 {
                        return None;
                    }
                    if target.starts_with('/') {
                        done.clear();
                    }
                    rest.extend(target.rsplit('/').map(str::to_owned));
                }
            }
        }
        Some(done)
    }
}

/// The path as seen from the root directory's descriptor.
fn relative(path: &str) -> &str {
    match path.trim_start_matches('/') {
        "" => ".",
        path => path,
    }
}

/// Whether the answer means that the machine has no such thing, or has it no longer: ENOENT and ENOTDIR
/// before the open, ENODEV, ENXIO and EIO when a device or an IRQ went away under an open file
/// (`fs/proc/inode.c`), EINVAL and EOPNOTSUPP from attributes that have no value now.
fn is_absent(error: &io::Error) -> bool {
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

fn io_error(path: &Path, errno: Errno) -> FileError {
    FileError::Io { path: path.to_owned(), answer: errno.into() }
}

/// The kernel's answer in words and by its name: `permission denied (EACCES)`.
pub fn errno_words(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(errno) => format!("{} ({errno:?})", errno.desc().to_lowercase()),
        None => error.to_string(),
    }
}

fn cure(error: &io::Error) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EACCES | Errno::EPERM) => ": run as root, or as a user that may read it",
        Some(Errno::ENOENT) => ": is this the root of a Linux machine, with its /proc and /sys mounted?",
        Some(Errno::ENOTDIR) => ": --root takes a directory",
        _ => "",
    }
}
