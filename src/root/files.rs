//! The root, and reading and writing below it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{self, OFlag};
use nix::sys::stat::{self, Mode, SFlag};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(super) use crate::root::error::FileError;
use crate::root::error::{io_error, is_absent as is_absent_by};
use crate::root::faults::{Faults, FileAction};
use crate::root::faults::{FileAccess, InjectedAnswer};
use crate::root::pin::Pinned;
pub(super) use crate::root::recorded::Recorded;
use crate::root::recorded::Recorder;
use crate::root::regular::{check_readable, read_bytes};
use crate::root::tree::Entry;
use crate::root::tree::{Tree, TreeFile, resolve};

/// A larger read buffer is freed after use.
const KEPT_BUFFER: usize = 1 << 16;

/// The directory or capture below which the machine is read and written.
#[derive(Debug)]
pub struct Root {
    base: PathBuf,
    backing: Backing,
    record: Recorder,
    faults: Faults,
    pinned: Pinned,
    /// The read buffer, reused for each file.
    buffer: RefCell<Vec<u8>>,
}

/// What a root reads from.
#[derive(Debug)]
enum Backing {
    Directory { top: OwnedFd, real: bool },
    Capture(Tree),
}

impl Root {
    /// Opens a root: a directory or a capture. `/` (by whatever name) is the live machine.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
        let top = fcntl::open(path, flags, Mode::empty()).map_err(|errno| io_error(path, errno))?;
        let stat = stat::fstat(&top).map_err(|errno| io_error(path, errno))?;
        match SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) {
            SFlag::S_IFDIR => {}
            SFlag::S_IFREG | SFlag::S_IFIFO => return Self::open_capture(path),
            _ => return Err(io_error(path, Errno::ENOTDIR)),
        }
        let real = stat::stat("/")
            .is_ok_and(|slash| (slash.st_dev, slash.st_ino) == (stat.st_dev, stat.st_ino));
        let base = if real {
            PathBuf::from("/")
        } else {
            path.to_owned()
        };
        let backing = Backing::Directory { top, real };
        Ok(Self::over(base, backing))
    }

    fn over(base: PathBuf, backing: Backing) -> Self {
        let (record, faults) = (Recorder::default(), Faults::default());
        Self {
            base,
            backing,
            record,
            faults,
            pinned: Pinned::default(),
            buffer: RefCell::default(),
        }
    }

    fn open_capture(path: &Path) -> Result<Self, FileError> {
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let file =
            fcntl::open(path, flags, Mode::empty()).map_err(|errno| io_error(path, errno))?;
        Self::read_capture(path, &mut io::BufReader::new(File::from(file)))
    }

    /// Reads a capture from any source; errors use `name` as its path.
    #[doc(hidden)]
    pub fn read_capture(name: &Path, capture: &mut impl io::Read) -> Result<Self, FileError> {
        let tree = Tree::unpack(capture).map_err(|error| FileError::Content {
            path: name.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Self::of_tree(name, tree))
    }

    /// A root in memory; errors use `base` as its path.
    pub fn of_tree(base: &Path, tree: Tree) -> Self {
        Self::over(base.to_owned(), Backing::Capture(tree))
    }

    /// As [`Root::open`], and records what is read. Files that the user may not read count as absent and are recorded
    /// as refused.
    #[doc(hidden)]
    pub fn open_recording(path: &Path) -> Result<Self, FileError> {
        Ok(Self {
            record: Recorder::on(),
            ..Self::open(path)?
        })
    }

    /// As [`Root::open`], with fault injection: `answer` is called before each file access.
    #[doc(hidden)]
    pub fn open_with_faults(
        path: &Path,
        answer: impl Fn(FileAccess<'_>) -> InjectedAnswer + 'static,
    ) -> Result<Self, FileError> {
        Ok(Self {
            faults: Faults::on(answer),
            ..Self::open(path)?
        })
    }

    pub(super) fn faults(&self) -> &Faults {
        &self.faults
    }

    pub(super) fn pinned(&self) -> &Pinned {
        &self.pinned
    }

    /// What was read so far, if opened with [`Root::open_recording`].
    #[doc(hidden)]
    pub fn recorded(&self) -> Recorded {
        self.record.recorded()
    }

    /// An answer of the live kernel; in a tree, the one that was recorded at this path. `None` if there is none. An error
    /// of another kind is one of reading it, by what it is about: `ethtool/eth0/channels`.
    pub(crate) fn answer<T: Serialize + DeserializeOwned>(
        &self,
        path: &str,
        ask: impl FnOnce() -> io::Result<Option<T>>,
    ) -> Result<Option<T>, FileError> {
        if self.is_real() {
            let answer = match ask() {
                Err(error) if is_absent_by(&error) => None,
                answer => answer.map_err(|answer| FileError::Io {
                    path: path.trim_start_matches("/nicpin/").into(),
                    answer,
                })?,
            };
            if let Some(answer) = &answer {
                self.remember(path, || to_json(answer));
            }
            return Ok(answer);
        }
        self.parse_opt(path, |text| {
            serde_json::from_str(text).map_err(|error| {
                let fix = "fix: capture the machine again with this version of nicpin";
                self.content_error(path, format!("not a recorded answer: {error}; {fix}"))
            })
        })
    }

    /// Changes an answer that was recorded at a path.
    pub(crate) fn write_answer(&self, path: &str, answer: &impl Serialize) -> io::Result<()> {
        self.write(path, &to_json(answer))
    }

    /// Records an answer of the live kernel under the path where a tree keeps it.
    pub(crate) fn remember(&self, path: &str, answer: impl FnOnce() -> String) {
        self.record
            .note(|record| _ = record.answers.insert(path.to_owned(), answer()));
    }

    /// Whether this is the live machine, which also has ioctls and netlink.
    pub fn is_real(&self) -> bool {
        matches!(self.backing, Backing::Directory { real: true, .. })
    }

    /// Whether this is a capture, which can only be read.
    pub fn is_capture(&self) -> bool {
        matches!(self.backing, Backing::Capture(_))
    }

    /// The root directory or the capture itself.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// The path outside the root of a path below it.
    pub fn outside(&self, path: &str) -> PathBuf {
        self.base.join(path.trim_start_matches('/'))
    }

    /// The kernel's error about a file.
    pub(crate) fn io_error(&self, path: &str, error: impl Into<io::Error>) -> FileError {
        FileError::Io {
            path: self.outside(path),
            answer: error.into(),
        }
    }

    /// An error about a file's content.
    pub fn content_error(&self, path: &str, reason: impl Into<String>) -> FileError {
        FileError::Content {
            path: self.outside(path),
            reason: reason.into(),
        }
    }

    /// Reads a whole file.
    pub fn read(&self, path: &str) -> Result<String, FileError> {
        let file = self.read_file(path);
        file.map(|file| file.text.to_string())
            .map_err(|error| self.io_error(path, error))
    }

    /// Reads a whole file; `None` if it is absent or has no value: a queue that was removed, `speed` of a link that is
    /// down (EINVAL), `xps_cpus` of a single queue (ENOENT on read).
    pub fn read_opt(&self, path: &str) -> Result<Option<String>, FileError> {
        Ok(self.read_opt_file(path)?.map(|file| file.text.to_string()))
    }

    /// Parses a file's text; `None` as for [`Root::read_opt`]. The text is not copied, which matters with thousands of
    /// files.
    pub(crate) fn parse_opt<T>(
        &self,
        path: &str,
        parse: impl FnOnce(&str) -> Result<T, FileError>,
    ) -> Result<Option<T>, FileError> {
        self.parse_with_mode(path, false, |text, _| parse(text))
    }

    /// As [`Root::parse_opt`], with the file's permission bits; 0 where they are neither wanted nor recorded.
    pub(crate) fn parse_with_mode<T>(
        &self,
        path: &str,
        with_mode: bool,
        parse: impl FnOnce(&str, u32) -> Result<T, FileError>,
    ) -> Result<Option<T>, FileError> {
        if self.record.is_on() || self.is_capture() {
            let Some(file) = self.read_opt_file(path)? else {
                return Ok(None);
            };
            return parse(&file.text, file.mode).map(Some);
        }
        match self.read_directly(path, with_mode, parse) {
            Ok(parsed) => parsed.map(Some),
            Err(error) if self.is_absent(path, &error) => Ok(None),
            Err(error) => Err(self.io_error(path, error)),
        }
    }

    /// Whether an error of reading a file means that it is absent, as [`is_absent_by`] has it. EIO and ENXIO only if it was
    /// removed meanwhile (`fs/proc/inode.c`): they are also the answers of a failing disk, and of a socket in its place.
    fn is_absent(&self, path: &str, error: &io::Error) -> bool {
        let errno = error.raw_os_error().map(Errno::from_raw);
        match errno {
            Some(Errno::EIO | Errno::ENXIO) => !self.exists(path),
            _ => is_absent_by(error),
        }
    }

    /// Goes on without a file that is absent, or that a recording may leave out.
    fn without(&self, path: &str, error: impl Into<io::Error>) -> Result<(), FileError> {
        let error = error.into();
        if self.is_absent(path, &error) || self.leaves_out(path, &error) {
            Ok(())
        } else {
            Err(self.io_error(path, error))
        }
    }

    fn read_opt_file(&self, path: &str) -> Result<Option<TreeFile>, FileError> {
        match self.read_file(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) => self.without(path, error).map(|()| None),
        }
    }

    /// Reads a file as a stream, for `/proc/interrupts`, which is larger than all other files together.
    pub(crate) fn read_in_parts<T>(
        &self,
        path: &str,
        read: impl FnOnce(&mut dyn io::Read) -> io::Result<T>,
    ) -> Result<T, FileError> {
        let result = if self.record.is_on() || self.is_capture() {
            self.read_file(path)
                .and_then(|file| read(&mut file.text.as_bytes()))
        } else {
            self.open_to_read(path).and_then(|mut file| {
                check_readable(&file, path)?;
                read(&mut file)
            })
        };
        result.map_err(|error| self.io_error(path, error))
    }

    /// The names in a directory, sorted; `None` if it is absent. ENOTDIR for a file.
    pub fn list(&self, path: &str) -> Result<Option<Vec<String>>, FileError> {
        match self.names(path) {
            Ok(names) => {
                self.record
                    .note(|record| _ = record.lists.insert(path.to_owned(), names.clone()));
                Ok(Some(names))
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory && self.exists(path) => {
                Err(self.io_error(path, error))
            }
            Err(error) => self.without(path, error).map(|()| None),
        }
    }

    fn names(&self, path: &str) -> io::Result<Vec<String>> {
        self.note_opened(path);
        if let Backing::Capture(tree) = &self.backing {
            return Ok(tree.list(path)?);
        }
        let mut dir = Dir::from_fd(self.open_at(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?)?;
        let entries: Result<Vec<_>, Errno> = dir.iter().collect();
        let names = entries?
            .into_iter()
            .map(|entry| entry.file_name().to_string_lossy().into_owned());
        // No file of a kernel has such a name, which could be taken for a line of its own.
        let names = names.filter(|name| !name.contains(char::is_control));
        let mut names: Vec<String> = names.filter(|name| name != "." && name != "..").collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Whether the path exists and can be reached. Where that decides what is known, see [`Root::is_there`].
    pub fn exists(&self, path: &str) -> bool {
        self.find(path).is_ok()
    }

    /// Whether the path exists; an error if that cannot be determined.
    pub fn is_there(&self, path: &str) -> Result<bool, FileError> {
        match self.find(path) {
            Ok(()) => Ok(true),
            Err(errno) => self.without(path, errno).map(|()| false),
        }
    }

    fn find(&self, path: &str) -> Result<(), Errno> {
        self.note_opened(path);
        match &self.backing {
            Backing::Capture(tree) => tree.get(path).map(drop),
            Backing::Directory { .. } => self.open_at(path, OFlag::O_PATH).map(drop),
        }
    }

    /// The entry at a path, a directory without its names; links are not followed and nothing is recorded.
    pub fn look(&self, path: &str) -> Option<Entry> {
        if let Backing::Capture(tree) = &self.backing {
            return tree.entry(path).map(Entry::without_names);
        }
        let file = self.open_at(path, OFlag::O_PATH | OFlag::O_NOFOLLOW).ok()?;
        let stat = stat::fstat(&file).ok()?;
        match SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) {
            SFlag::S_IFDIR => Some(Entry::Directory(std::collections::BTreeSet::new())),
            SFlag::S_IFLNK => self.target(path).map(Entry::Link),
            _ => Some(Entry::File(TreeFile {
                mode: stat.st_mode & 0o7777,
                ..TreeFile::default()
            })),
        }
    }

    /// The last component of a link's target: the driver's name for a device's `driver`. `None` if it is absent; an error
    /// if it cannot be read, or is no link.
    pub(crate) fn link_name(&self, path: &str) -> Result<Option<String>, FileError> {
        let Some(target) = self.read_link(path) else {
            if self.is_there(path)? {
                return Err(self.content_error(path, "is not a symbolic link with a name"));
            }
            return Ok(None);
        };
        let name = target.rsplit('/').next().filter(|name| !name.is_empty());
        Ok(name.map(str::to_owned))
    }

    /// The path without links, `.` and `..`; `None` if it does not exist.
    #[doc(hidden)]
    pub fn canonical(&self, path: &str) -> Result<Option<String>, FileError> {
        // A recording needs each link on the way.
        let asked = if self.is_capture() || self.record.is_on() {
            Ok(None)
        } else {
            self.ask_for_path(path)
        };
        let by_links = || {
            let path = resolve(path, |path, _| Ok::<_, Errno>(self.read_link(path)))?;
            self.find(&path).map(|()| path)
        };
        let found = asked.and_then(|asked| asked.map_or_else(by_links, Ok));
        match found {
            Ok(path) => Ok(Some(path)),
            Err(errno) => self.without(path, errno).map(|()| None),
        }
    }

    /// Writes a text to an existing file with one write(2); never creates a file.
    pub(crate) fn write(&self, path: &str, value: &str) -> io::Result<()> {
        if !self.faults.ask_to_write(path, value)? {
            return Ok(());
        }
        let mut file = self.open_to_write(path, value.len())?;
        let written = file.write(value.as_bytes())?;
        if written == value.len() {
            Ok(())
        } else {
            Err(io::ErrorKind::WriteZero.into())
        }
    }

    /// Opens an existing file as [`Root::write`] does, and writes nothing.
    pub(crate) fn check_writable(&self, path: &str) -> io::Result<()> {
        self.faults.ask_to_write(path, "")?;
        self.open_at(path, OFlag::O_WRONLY | OFlag::O_NONBLOCK)?;
        Ok(())
    }

    /// Reads a file and records it. The mode is 0 unless recording.
    fn read_file(&self, path: &str) -> io::Result<TreeFile> {
        self.note_opened(path);
        let file = self.read_backing(path);
        self.record.note_read(path, &file);
        file
    }

    fn read_backing(&self, path: &str) -> io::Result<TreeFile> {
        if let Backing::Capture(tree) = &self.backing {
            return Ok(tree.file(path)?.clone());
        }
        let of = |text: &str, mode| TreeFile {
            mode,
            text: text.into(),
        };
        self.read_directly(path, self.record.is_on(), of)
    }

    /// Parses a file of a directory root, with its mode if wanted.
    fn read_directly<T>(
        &self,
        path: &str,
        with_mode: bool,
        parse: impl FnOnce(&str, u32) -> T,
    ) -> io::Result<T> {
        self.faults.ask(FileAction::Read, path)?;
        let mut file = self.open_to_read(path)?;
        let mut buffer = self.buffer.take();
        let length = read_bytes(&mut file, path, &mut buffer)?;
        let mode = if with_mode { mode_of_file(&file)? } else { 0 };
        drop(file);
        let bytes = buffer.get(..length).unwrap_or_default();
        let text = std::str::from_utf8(bytes)
            .map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
        let parsed = parse(&text, mode);
        drop(text);
        if buffer.len() <= KEPT_BUFFER {
            self.buffer.replace(buffer);
        }
        Ok(parsed)
    }

    fn read_link(&self, path: &str) -> Option<String> {
        self.record
            .note(|record| _ = record.paths.insert(path.to_owned()));
        self.target(path)
    }

    fn target(&self, path: &str) -> Option<String> {
        match &self.backing {
            Backing::Capture(tree) => tree.read_link(path),
            Backing::Directory { .. } => self
                .target_of(path)
                .filter(|target| !target.contains(char::is_control)),
        }
    }

    fn note_opened(&self, path: &str) {
        self.record.note(|record| {
            record.paths.insert(path.to_owned());
            record.opened.insert(path.to_owned());
        });
    }

    /// Whether a recording continues without a file that the user may not read.
    fn leaves_out(&self, path: &str, error: &io::Error) -> bool {
        let leaves_out = self.record.is_on() && error.kind() == io::ErrorKind::PermissionDenied;
        if leaves_out {
            self.record
                .note(|record| _ = record.refused.insert(path.to_owned()));
        }
        leaves_out
    }

    /// The root directory; EROFS for a capture.
    pub(super) fn top(&self) -> Result<&OwnedFd, Errno> {
        match &self.backing {
            Backing::Directory { top, .. } => Ok(top),
            Backing::Capture(_) => Err(Errno::EROFS),
        }
    }
}

fn to_json(answer: &impl Serialize) -> String {
    // Nothing that is recorded has a map with other keys than texts, which is all that could fail.
    serde_json::to_string(answer).unwrap_or_default() + "\n"
}

fn mode_of_file(file: &impl AsFd) -> Result<u32, Errno> {
    Ok(stat::fstat(file)?.st_mode & 0o7777)
}

/// The path relative to the root directory.
pub(super) fn relative(path: &str) -> &str {
    match path.trim_start_matches('/') {
        "" => ".",
        path => path,
    }
}
