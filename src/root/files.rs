use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::mem::take;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno::{self, EIO, ENOENT, ENOTDIR, ENXIO, EROFS};
use nix::fcntl::{self, OFlag};
use nix::sys::stat::{self, Mode, SFlag};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::root::faults::{Faults, FileAccess, FileAction, InjectedAnswer};
use crate::root::regular::{AT_ONCE, check_readable, check_size, kind, read_whole, text};
use crate::root::tree::{Entry, Tree, TreeFile, resolve};
use crate::root::{EMPTY, FileError, Result, errno_of, is_absent};

/// The directory or capture below which the machine is read and written.
#[derive(Debug)]
pub struct Root {
    base: PathBuf,
    backing: Backing,
    record: Option<RefCell<Recorded>>,
    pub(super) faults: Faults,
    /// Directories by path that stay the same while names change; `None`: absent.
    pub(super) pinned: RefCell<BTreeMap<String, Option<OwnedFd>>>,
}

#[derive(Debug)]
enum Backing {
    Directory { top: OwnedFd, real: bool },
    Capture(Tree),
}

/// All that was read: a capture holds the facts of its plan, not those of a moment later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Accessed paths, existing or not, and whether each was opened (a link in its last component was followed).
    pub paths: BTreeMap<String, bool>,
    /// As read last; `None`: unreadable.
    pub files: BTreeMap<String, Option<TreeFile>>,
    pub refused: BTreeSet<String>,
    pub lists: BTreeMap<String, Vec<String>>,
    /// Answers to ioctls and netlink requests, by path in a tree.
    pub answers: BTreeMap<String, String>,
}

impl Root {
    /// Opens a directory or a capture. `/` (by whatever name) is the live machine.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |errno: Errno| FileError::Io {
            path: path.to_owned(),
            answer: errno.into(),
        };
        let open =
            |flags| fcntl::open(path, flags | OFlag::O_CLOEXEC, Mode::empty()).map_err(failed);
        let top = open(OFlag::O_PATH)?;
        let stat = stat::fstat(&top).map_err(failed)?;
        match kind(&stat) {
            SFlag::S_IFDIR => {}
            SFlag::S_IFREG | SFlag::S_IFIFO => {
                return Self::read_capture(path, &mut File::from(open(OFlag::O_RDONLY)?));
            }
            _ => return Err(failed(ENOTDIR)),
        }
        let real = stat::stat("/")
            .is_ok_and(|slash| (slash.st_dev, slash.st_ino) == (stat.st_dev, stat.st_ino));
        Ok(Self::over(
            if real { Path::new("/") } else { path },
            Backing::Directory { top, real },
        ))
    }

    fn over(base: &Path, backing: Backing) -> Self {
        Self {
            base: base.to_owned(),
            backing,
            record: None,
            faults: Faults::default(),
            pinned: RefCell::default(),
        }
    }

    #[doc(hidden)]
    pub fn read_capture(name: &Path, capture: &mut impl io::Read) -> Result<Self> {
        let tree = Tree::unpack(capture).map_err(|error| FileError::Content {
            path: name.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Self::of_tree(name, tree))
    }

    /// A root in memory; errors use `base` as its path.
    pub fn of_tree(base: &Path, tree: Tree) -> Self {
        Self::over(base, Backing::Capture(tree))
    }

    /// Records what is read. Files that the user may not read count as absent and are recorded as refused.
    #[doc(hidden)]
    pub fn open_recording(path: &Path) -> Result<Self> {
        Ok(Self {
            record: Some(RefCell::default()),
            ..Self::open(path)?
        })
    }

    #[doc(hidden)]
    pub fn open_with_faults(
        path: &Path,
        answer: impl Fn(FileAccess<'_>) -> InjectedAnswer + 'static,
    ) -> Result<Self> {
        Ok(Self {
            faults: Faults(Some(Box::new(answer))),
            ..Self::open(path)?
        })
    }

    #[doc(hidden)]
    pub fn recorded(&self) -> Recorded {
        let record = self.record.as_ref();
        record.map_or_else(Recorded::default, |record| record.borrow().clone())
    }

    fn note(&self, change: impl FnOnce(&mut Recorded)) {
        if let Some(record) = &self.record {
            change(&mut record.borrow_mut());
        }
    }

    fn note_opened(&self, path: &str) {
        self.note(|record| _ = record.paths.insert(path.to_owned(), true));
    }
}

impl Root {
    /// The live kernel's answer, or the one that a tree has at `path`; `None` if there is none. Errors name their
    /// subject: `ethtool/eth0/channels`.
    pub(crate) fn answer<T: Serialize + DeserializeOwned>(
        &self,
        path: &str,
        ask: impl FnOnce() -> io::Result<Option<T>>,
    ) -> Result<Option<T>> {
        if !self.is_real() {
            return self.recorded_answer(path);
        }
        let answer = match ask() {
            Err(error) if is_absent(&error) => None,
            answer => answer.map_err(|answer| FileError::Io {
                path: path.trim_start_matches("/nicpin/").into(),
                answer,
            })?,
        };
        if let Some(answer) = &answer {
            self.remember(path, || to_json(answer));
        }
        Ok(answer)
    }

    fn recorded_answer<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>> {
        self.read_as(path, |text| {
            let fix = "fix: capture the machine again with this version of nicpin";
            serde_json::from_str(text)
                .map_err(|error| format!("not a recorded answer: {error}; {fix}"))
        })
    }

    /// Runs `find` without recording the files that it reads, except those that the user may not read: a capture has
    /// only the result, at `path`.
    pub(crate) fn gist<T: Serialize + DeserializeOwned>(
        &self,
        path: &str,
        find: impl FnOnce() -> T,
    ) -> Result<T> {
        if !self.is_real() {
            if let Some(found) = self.recorded_answer(path)? {
                return Ok(found);
            }
        }
        let before = self.recorded();
        let found = find();
        self.note(|record| {
            let refused = take(&mut record.refused);
            *record = Recorded { refused, ..before };
        });
        self.remember(path, || to_json(&found));
        Ok(found)
    }

    pub(crate) fn write_answer(&self, path: &str, answer: &impl Serialize) -> io::Result<()> {
        self.write(path, &to_json(answer))
    }

    pub(crate) fn remember(&self, path: &str, answer: impl FnOnce() -> String) {
        self.note(|record| _ = record.answers.insert(path.to_owned(), answer()));
    }

    /// Whether this is the live machine, which also has ioctls and netlink.
    pub fn is_real(&self) -> bool {
        matches!(self.backing, Backing::Directory { real: true, .. })
    }

    pub fn is_capture(&self) -> bool {
        self.tree().is_some()
    }

    fn tree(&self) -> Option<&Tree> {
        match &self.backing {
            Backing::Capture(tree) => Some(tree),
            Backing::Directory { .. } => None,
        }
    }

    /// The root directory or the capture itself.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// The path with that of the root before it.
    pub fn outside(&self, path: &str) -> PathBuf {
        self.base.join(path.trim_start_matches('/'))
    }

    #[doc(hidden)]
    pub fn io_error(&self, path: &str, error: impl Into<io::Error>) -> FileError {
        FileError::Io {
            path: self.outside(path),
            answer: error.into(),
        }
    }

    pub(super) fn about<T>(
        &self,
        path: &str,
        answer: Result<T, impl Into<io::Error>>,
    ) -> Result<T> {
        answer.map_err(|error| self.io_error(path, error))
    }

    pub fn content_error(&self, path: &str, reason: impl Into<String>) -> FileError {
        FileError::Content {
            path: self.outside(path),
            reason: reason.into(),
        }
    }

    /// About a directory without which nothing can be said.
    #[doc(hidden)]
    pub fn nothing_in(&self, path: &str) -> FileError {
        match self.is_there(path) {
            Ok(true) => self.content_error(path, EMPTY),
            _ => self.io_error(path, ENOENT),
        }
    }

    pub fn read(&self, path: &str) -> Result<String> {
        Ok(self.about(path, self.read_file(path))?.text.to_string())
    }

    /// `None` if the file is absent or has no value: a removed queue, `speed` without a link (EINVAL), `xps_cpus` of a
    /// single queue (ENOENT on read).
    pub fn read_opt(&self, path: &str) -> Result<Option<String>> {
        let file = self.read_opt_file(path)?;
        Ok(file.map(|file| file.text.to_string()))
    }

    pub(crate) fn read_as<T, E: Display>(
        &self,
        path: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>> {
        let file = self.read_opt_file(path)?;
        file.map(|file| parse(&file.text))
            .transpose()
            .map_err(|error| self.content_error(path, error.to_string()))
    }

    pub(crate) fn read_opt_file(&self, path: &str) -> Result<Option<TreeFile>> {
        self.unless_absent(path, self.read_file(path))
    }

    /// `None` for the error of an absent file, and in a recording for that of a file which the user may not read.
    ///
    /// EIO, ENXIO (`fs/proc/inode.c`) and ENOTDIR mean absence only if the file is gone: a failing disk, a socket in
    /// its place and a listed file give them, too.
    fn unless_absent<T>(
        &self,
        path: &str,
        read: Result<T, impl Into<io::Error>>,
    ) -> Result<Option<T>> {
        let error = match read {
            Ok(read) => return Ok(Some(read)),
            Err(error) => error.into(),
        };
        let is_absent = match errno_of(&error) {
            Some(EIO | ENXIO | ENOTDIR) => !self.exists(path),
            _ => is_absent(&error),
        };
        if !is_absent {
            if self.record.is_none() || error.kind() != ErrorKind::PermissionDenied {
                return Err(self.io_error(path, error));
            }
            self.note(|record| _ = record.refused.insert(path.to_owned()));
        }
        Ok(None)
    }

    /// No recording holds binary files.
    pub(crate) fn read_bytes(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let read = self
            .open_to_read(path)
            .and_then(|file| read_whole(&file, path, <[u8]>::to_vec));
        Ok(self.unless_absent(path, read)?.map(|(_, bytes)| bytes))
    }

    /// As a stream: `/proc/interrupts` is larger than all other files together. Invalid data is an error about its
    /// content.
    pub(crate) fn read_in_parts<T>(
        &self,
        path: &str,
        read: impl FnOnce(&mut dyn io::Read) -> io::Result<T>,
    ) -> Result<T> {
        let read = if self.record.is_some() || self.is_capture() {
            self.read_file(path)
                .and_then(|file| read(&mut file.text.as_bytes()))
        } else {
            self.open_to_read(path).and_then(|mut file| {
                check_readable(&file, path)?;
                read(&mut file)
            })
        };
        match read {
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                Err(self.content_error(path, error.to_string()))
            }
            read => self.about(path, read),
        }
    }

    /// Lists a directory, sorted; `None` if it is absent, ENOTDIR for a file.
    pub fn list(&self, path: &str) -> Result<Option<Vec<String>>> {
        self.note_opened(path);
        let names = match self.tree() {
            Some(tree) => tree.list(path),
            None => self.names(path),
        };
        if let Ok(names) = &names {
            self.note(|record| _ = record.lists.insert(path.to_owned(), names.clone()));
        }
        self.unless_absent(path, names)
    }

    fn names(&self, path: &str) -> Result<Vec<String>, Errno> {
        let mut dir = Dir::from_fd(self.open_at(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?)?;
        // A control character, which an interface's name may have, could be taken for the end of a line.
        let names = dir.iter().map(|entry| {
            Ok(entry?
                .file_name()
                .to_string_lossy()
                .into_owned()
                .replace(char::is_control, "\u{fffd}"))
        });
        let mut names = names.collect::<Result<Vec<String>, Errno>>()?;
        names.retain(|name| name != "." && name != "..");
        names.sort_unstable();
        Ok(names)
    }

    /// Whether the path can be reached; [`Root::is_there`] tells an error from absence.
    pub fn exists(&self, path: &str) -> bool {
        self.find(path).is_ok()
    }

    /// Whether the path exists; an error if that cannot be determined.
    pub fn is_there(&self, path: &str) -> Result<bool> {
        Ok(self.unless_absent(path, self.find(path))?.is_some())
    }

    fn find(&self, path: &str) -> Result<(), Errno> {
        self.note_opened(path);
        match self.tree() {
            Some(tree) => tree.get(path).map(drop),
            None => self.open_at(path, OFlag::O_PATH).map(drop),
        }
    }

    /// The entry at a path, a directory without its names. Follows no link, records nothing.
    pub fn look(&self, path: &str) -> Option<Entry> {
        if let Some(tree) = self.tree() {
            return tree.entry(path).map(Entry::without_names);
        }
        let stat =
            stat::fstat(&self.open_at(path, OFlag::O_PATH | OFlag::O_NOFOLLOW).ok()?).ok()?;
        match kind(&stat) {
            SFlag::S_IFDIR => Some(Entry::Directory(BTreeSet::new())),
            SFlag::S_IFLNK => self.target(path).map(Entry::Link),
            _ => Some(Entry::File(TreeFile {
                mode: stat.st_mode & 0o7777,
                ..TreeFile::default()
            })),
        }
    }

    /// The last component of the target: the driver's name for `driver`. An error if it is no link.
    pub(crate) fn link_name(&self, path: &str) -> Result<Option<String>> {
        match self.read_link(path) {
            Some(target) => Ok(target
                .rsplit('/')
                .next()
                .filter(|name| !name.is_empty())
                .map(str::to_owned)),
            None if self.is_there(path)? => {
                Err(self.content_error(path, "is not a symbolic link with a name"))
            }
            None => Ok(None),
        }
    }

    /// The path without links, `.` and `..`; `None` if it does not exist.
    #[doc(hidden)]
    pub fn canonical(&self, path: &str) -> Result<Option<String>> {
        let found = resolve(path, |path, _| Ok::<_, Errno>(self.read_link(path)));
        self.unless_absent(path, found.and_then(|path| self.find(&path).map(|()| path)))
    }

    fn read_link(&self, path: &str) -> Option<String> {
        self.note(|record| _ = record.paths.entry(path.to_owned()).or_default());
        self.target(path)
    }

    fn target(&self, path: &str) -> Option<String> {
        if let Some(tree) = self.tree() {
            return tree.read_link(path);
        }
        let link = self.open_at(path, OFlag::O_PATH | OFlag::O_NOFOLLOW).ok()?;
        let target = fcntl::readlinkat(&link, "").ok()?.into_string().ok()?;
        (!target.contains(char::is_control)).then_some(target)
    }

    /// One write(2) into an existing file, which is never created.
    pub(crate) fn write(&self, path: &str, value: &str) -> io::Result<()> {
        if !self.faults.ask(FileAction::Write, path, value)? {
            return Ok(());
        }
        let mut file = self.open_to_write(path, value.len())?;
        if file.write(value.as_bytes())? == value.len() {
            Ok(())
        } else {
            Err(ErrorKind::WriteZero.into())
        }
    }

    pub(crate) fn check_writable(&self, path: &str) -> io::Result<()> {
        self.faults.ask(FileAction::Write, path, "")?;
        self.open_at(path, OFlag::O_WRONLY | OFlag::O_NONBLOCK)?;
        Ok(())
    }

    fn read_file(&self, path: &str) -> io::Result<TreeFile> {
        self.note_opened(path);
        let file = match self.tree() {
            Some(tree) => tree.file(path).map_err(io::Error::from).and_then(|file| {
                check_size(file.text.len() as u64, path)?;
                Ok(file.clone())
            }),
            None => self.open_to_read(path).and_then(|file| {
                let (mode, text) = read_whole(&file, path, text)?;
                Ok(TreeFile { mode, text })
            }),
        };
        self.note(|record| {
            let read = file.as_ref().ok().cloned();
            record.files.insert(path.to_owned(), read);
        });
        file
    }

    fn open_to_read(&self, path: &str) -> io::Result<File> {
        self.faults.ask(FileAction::Read, path, "")?;
        Ok(self.open_at(path, OFlag::O_RDONLY | AT_ONCE)?.into())
    }

    /// EROFS for a capture.
    pub(super) fn top(&self) -> Result<&OwnedFd, Errno> {
        match &self.backing {
            Backing::Directory { top, .. } => Ok(top),
            Backing::Capture(_) => Err(EROFS),
        }
    }
}

fn to_json(answer: &impl Serialize) -> String {
    // Serializing fails only for a map with keys that are not texts, and no recorded type has one.
    serde_json::to_string(answer).unwrap_or_default() + "\n"
}
