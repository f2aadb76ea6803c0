//! A machine as a tree in memory, and its file format: a tar archive compressed with gzip.
//!
//! Reading the tree gives the same answers and errors as a directory. What belongs into the tree is not decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use nix::errno::Errno;
use tar::{EntryType, Header};

/// The file that makes a tree a capture.
pub(crate) const ABOUT: &str = "/nicpin/capture";
/// The first line of that file.
pub(crate) const SCHEMA: &str = "nicpin.capture/1";
/// The maximum uncompressed size, in bytes. A machine with 4096 CPUs needs a tenth of it.
const LIMIT: u64 = 256 << 20;
/// The kernel's `PATH_MAX`.
const PATH_MAX: usize = 4096;
const TOO_LONG: &str = "is longer than a path may be";

/// Directories, files and links by path, which begins with `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    entries: BTreeMap<String, Entry>,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The names in a directory.
    Directory(BTreeSet<String>),
    File(TreeFile),
    /// The target of a symbolic link.
    Link(String),
}

/// The content and mode of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeFile {
    /// The permission bits; the kernel gives `smp_affinity` of a managed vector no write bits.
    pub mode: u32,
    pub text: String,
}

/// Why a file is not read as a capture.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    #[error("not a capture: {0}; name a directory, or a file made by `nicpin capture`")]
    NotCapture(&'static str),
    #[error("damaged or truncated ({0}); copy or capture it again")]
    Damaged(String),
    #[error("larger than {} MB uncompressed, which no machine needs; capture it again", LIMIT >> 20)]
    TooLarge,
    #[error("not a valid capture: `{entry}` {reason}; capture it again")]
    Invalid { entry: String, reason: &'static str },
    #[error("the format `{0}` is not supported; use the version of nicpin that made the capture")]
    Unsupported(String),
}

impl Default for Tree {
    fn default() -> Self {
        Self { entries: BTreeMap::from([(String::new(), Entry::Directory(BTreeSet::new()))]) }
    }
}

impl Tree {
    /// The entry at a path; links on the way are not followed.
    pub(crate) fn entry(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// All entries below the top, directories before their content.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().filter(|(path, _)| !path.is_empty()).map(|(path, entry)| (path.as_str(), entry))
    }

    /// Adds a directory and its parents.
    pub(crate) fn add_directory(&mut self, path: &str) -> Result<(), &'static str> {
        match self.entries.get(path) {
            Some(Entry::Directory(_)) => Ok(()),
            Some(_) => Err("occurs twice"),
            None => self.add(path, Entry::Directory(BTreeSet::new())),
        }
    }

    /// Adds an entry, which must not exist, and its parent directories.
    pub(crate) fn add(&mut self, path: &str, entry: Entry) -> Result<(), &'static str> {
        let Some((above, name)) = path.rsplit_once('/') else { return Err("has an empty path") };
        if self.entries.contains_key(path) {
            return Err("occurs twice");
        }
        if !self.entries.contains_key(above) {
            self.add_directory(above)?;
        }
        match self.entries.get_mut(above) {
            Some(Entry::Directory(names)) => names.insert(name.to_owned()),
            _ => return Err("is below a file"),
        };
        self.entries.insert(path.to_owned(), entry);
        Ok(())
    }

    /// Changes the text of a file, if it exists.
    pub(crate) fn edit(&mut self, path: &str, change: impl FnOnce(&mut String)) {
        if let Some(Entry::File(file)) = self.entries.get_mut(path) {
            change(&mut file.text);
        }
    }

    /// The target of a link; links before the last name are not followed.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        match self.entries.get(path) {
            Some(Entry::Link(target)) => Some(target.clone()),
            _ => None,
        }
    }

    /// As readlink(2).
    pub(crate) fn read_link(&self, path: &str) -> Option<String> {
        let (above, name) = path.rsplit_once('/')?;
        self.link(&format!("{}/{name}", resolve(above, |path| self.link(path))?))
    }

    /// The entry that a path leads to, with the errors of open(2).
    pub(crate) fn get(&self, path: &str) -> Result<&Entry, Errno> {
        let path = resolve(path, |path| self.link(path)).ok_or(Errno::ELOOP)?;
        if let Some(entry) = self.entries.get(&path) {
            return Ok(entry);
        }
        let above = path.match_indices('/').map(|(end, _)| &path[..end]);
        let through_file = above.into_iter().any(|above| matches!(self.entry(above), Some(Entry::File(_))));
        Err(if through_file { Errno::ENOTDIR } else { Errno::ENOENT })
    }

    pub(crate) fn file(&self, path: &str) -> Result<&TreeFile, Errno> {
        match self.get(path)? {
            Entry::File(file) => Ok(file),
            Entry::Directory(_) => Err(Errno::EISDIR),
            Entry::Link(_) => Err(Errno::ELOOP),
        }
    }

    /// The names in a directory, sorted.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<String>, Errno> {
        match self.get(path)? {
            Entry::Directory(names) => Ok(names.iter().cloned().collect()),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// Reads an archive.
    pub(crate) fn unpack(archive: &mut impl Read) -> Result<Self, ArchiveError> {
        Self::unpack_at_most(archive, LIMIT)
    }

    fn unpack_at_most(archive: &mut impl Read, limit: u64) -> Result<Self, ArchiveError> {
        let mut magic = Vec::new();
        let damaged = |error: io::Error| ArchiveError::Damaged(error.to_string());
        archive.by_ref().take(2).read_to_end(&mut magic).map_err(damaged)?;
        if magic != [0x1f, 0x8b] {
            return Err(ArchiveError::NotCapture("it is not compressed with gzip"));
        }
        let mut unpacked = GzDecoder::new(magic.chain(archive)).take(limit);
        let tree = Self::from_tar(&mut unpacked);
        // An archive that is cut off at the limit also looks damaged.
        if unpacked.limit() == 0 {
            return Err(ArchiveError::TooLarge);
        }
        let tree = tree?;
        // Read to the end, where gzip has its checksum.
        io::copy(&mut unpacked, &mut io::sink()).map_err(damaged)?;
        if unpacked.limit() == 0 {
            return Err(ArchiveError::TooLarge);
        }
        if let Ok(about) = tree.file(ABOUT) {
            let kind = about.text.lines().next().unwrap_or_default();
            if kind != SCHEMA {
                return Err(ArchiveError::Unsupported(kind.to_owned()));
            }
        }
        Ok(tree)
    }

    fn from_tar(bytes: &mut impl Read) -> Result<Self, ArchiveError> {
        let damaged = |error: io::Error| ArchiveError::Damaged(error.to_string());
        let mut tree = Self::default();
        let mut archive = tar::Archive::new(bytes);
        for entry in archive.entries().map_err(damaged)? {
            let mut entry = entry.map_err(damaged)?;
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let kind = entry.header().entry_type();
            // The first entry of `git archive`.
            if kind == EntryType::XGlobalHeader {
                continue;
            }
            let invalid = |reason| ArchiveError::Invalid { entry: name.chars().take(100).collect(), reason };
            let path = tree_path(&name).map_err(invalid)?;
            let added = match kind {
                _ if path.is_empty() => Ok(()),
                EntryType::Directory => tree.add_directory(&path),
                EntryType::Regular => {
                    let mut bytes = Vec::new();
                    entry.read_to_end(&mut bytes).map_err(damaged)?;
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    let mode = entry.header().mode().map_err(damaged)? & 0o7777;
                    tree.add(&path, Entry::File(TreeFile { mode, text }))
                }
                EntryType::Symlink => {
                    let target = entry.link_name_bytes().unwrap_or_default();
                    let target = String::from_utf8_lossy(&target).into_owned();
                    if target.len() > PATH_MAX { Err(TOO_LONG) } else { tree.add(&path, Entry::Link(target)) }
                }
                _ => Err("is not a file, directory or symbolic link"),
            };
            added.map_err(invalid)?;
        }
        if tree.entries.len() == 1 { Err(ArchiveError::NotCapture("it is empty")) } else { Ok(tree) }
    }

    /// The archive: the same bytes for the same tree.
    pub(crate) fn pack(&self) -> io::Result<Vec<u8>> {
        let gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
        let mut archive = tar::Builder::new(gzip);
        for (path, entry) in self.iter() {
            let path = &path[1..];
            let mut header = Header::new_gnu();
            header.set_mtime(0);
            header.set_uid(0);
            header.set_gid(0);
            header.set_size(0);
            match entry {
                Entry::Directory(_) => {
                    header.set_entry_type(EntryType::Directory);
                    // A user who unpacks the archive can remove it again.
                    header.set_mode(0o755);
                    archive.append_data(&mut header, format!("{path}/"), io::empty())?;
                }
                Entry::File(TreeFile { mode, text }) => {
                    header.set_entry_type(EntryType::Regular);
                    header.set_mode(*mode);
                    header.set_size(text.len() as u64);
                    archive.append_data(&mut header, path, text.as_bytes())?;
                }
                Entry::Link(target) => {
                    header.set_entry_type(EntryType::Symlink);
                    header.set_mode(0o777);
                    archive.append_link(&mut header, path, target)?;
                }
            }
        }
        archive.into_inner()?.finish()
    }
}

/// The path in the tree of an archive's entry: `/sys/class` for `./sys/class/`.
fn tree_path(name: &str) -> Result<String, &'static str> {
    if name.len() > PATH_MAX {
        return Err(TOO_LONG);
    }
    if name.starts_with('/') {
        return Err("is an absolute path");
    }
    let mut path = String::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err("leaves the tree"),
            part => path = format!("{path}/{part}"),
        }
    }
    Ok(path)
}

/// Resolves links, `.` and `..` of a path, which need not exist; `None` for a loop of links. `link` returns the target
/// of a link.
pub(crate) fn resolve(path: &str, link: impl Fn(&str) -> Option<String>) -> Option<String> {
    // The kernel's limit before ELOOP.
    let mut links = 40;
    let mut rest: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
    let mut done = String::new();
    while let Some(name) = rest.pop() {
        match name.as_str() {
            "" | "." => {}
            ".." => done.truncate(done.rfind('/').unwrap_or(0)),
            _ => {
                let next = format!("{done}/{name}");
                let Some(target) = link(&next) else {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let mut tree = Tree::default();
        let file = |mode, text: &str| Entry::File(TreeFile { mode, text: text.to_owned() });
        tree.add("/sys/devices/card/net/eth0/speed", file(0o444, "1000\n")).unwrap();
        tree.add("/sys/devices/card/driver", Entry::Link("../../bus/pci/drivers/igb".into())).unwrap();
        tree.add("/sys/devices/card/net/eth0/device", Entry::Link("../..".into())).unwrap();
        tree.add("/sys/class/net/eth0", Entry::Link("../../devices/card/net/eth0".into())).unwrap();
        tree.add("/sys/absolute", Entry::Link("/sys/class".into())).unwrap();
        tree.add("/sys/loop", Entry::Link("loop".into())).unwrap();
        tree.add_directory("/sys/empty").unwrap();
        tree.add(&format!("/sys/{}/end", ["long"; 60].join("/")), file(0o600, "")).unwrap();
        tree
    }

    #[test]
    fn answers_as_a_directory_does() {
        let tree = tree();
        assert_eq!(tree.file("/sys/class/net/eth0/speed").unwrap().text, "1000\n");
        assert_eq!(tree.file("/sys/absolute/net/eth0/device/net/eth0/speed").unwrap().mode, 0o444);
        assert_eq!(tree.list("/sys/class/net").unwrap(), ["eth0"]);
        assert_eq!(tree.list("/sys/empty").unwrap(), [""; 0]);
        assert_eq!(tree.list("/").unwrap(), ["sys"]);
        let driver = tree.read_link("/sys/class/net/eth0/device/driver");
        assert_eq!(driver.as_deref(), Some("../../bus/pci/drivers/igb"));
        for (path, errno) in [
            ("/sys/class/net/eth1", Errno::ENOENT),
            ("/sys/class/net/eth0/speed/x", Errno::ENOTDIR),
            ("/sys/devices/card/driver", Errno::ENOENT),
            ("/sys/loop", Errno::ELOOP),
            ("/sys/empty", Errno::EISDIR),
        ] {
            assert_eq!(tree.file(path), Err(errno), "{path}");
        }
        assert_eq!(tree.list("/sys/class/net/eth0/speed"), Err(Errno::ENOTDIR));
    }

    #[test]
    fn an_archive_is_read_back_unchanged() {
        let packed = tree().pack().unwrap();
        assert_eq!(Tree::unpack(&mut packed.as_slice()).unwrap(), tree());
        assert_eq!(packed, tree().pack().unwrap());
    }

    #[test]
    fn the_uncompressed_size_is_limited() {
        let packed = tree().pack().unwrap();
        assert!(matches!(Tree::unpack_at_most(&mut packed.as_slice(), 4096), Err(ArchiveError::TooLarge)));
    }

    #[test]
    fn an_archive_truncated_at_any_length_is_an_error() {
        let packed = tree().pack().unwrap();
        for length in 0..packed.len() {
            assert!(Tree::unpack(&mut &packed[..length]).is_err(), "{length} of {} bytes", packed.len());
        }
    }
}
