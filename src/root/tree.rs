//! A machine as a tree in memory, with the answers and errors of a directory.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;
use itertools::Itertools as _;
use nix::errno::Errno::{self, EISDIR, ELOOP, ENOENT, ENOTDIR};

use self::Entry::{Directory, File, Link};

/// The file that makes a tree a capture.
pub const ABOUT: &str = "/nicpin/capture";

/// In bytes. A machine with 4096 CPUs needs half of it; anything made of such a tree fits into 256 MiB.
pub(super) const MAX_SIZE: usize = 40 << 20;
pub(super) const TOO_MUCH: &str = "exceeds the limit of 40 MiB for a machine in memory";
/// Bytes of an entry beside its path and text: the nodes of two maps and two allocations.
const ENTRY_SIZE: usize = 256;
const MAX_NAME: usize = 255;
/// Directories above an entry; sysfs has about 20.
const MAX_DEPTH: usize = 64;
/// Links in a path before the kernel's ELOOP.
const MAX_LINKS: usize = 40;
/// Names in a path whose links are resolved: up to the top and down again.
const MAX_NAMES: usize = 4 * 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    entries: HashMap<String, Entry, RandomState>,
    size: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    Directory(BTreeSet<String>),
    File(TreeFile),
    Link(String),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeFile {
    /// Permission bits: `smp_affinity` of a managed vector has none to write.
    pub mode: u32,
    /// Shared: a capture of a capture copies no text.
    pub text: Arc<str>,
}

impl Entry {
    /// A copy, of a directory without its names, which may be thousands.
    #[must_use]
    pub fn without_names(&self) -> Self {
        match self {
            Self::Directory(_) => Self::Directory(BTreeSet::new()),
            entry => entry.clone(),
        }
    }
}

impl Tree {
    pub fn entry(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// The target of a link; only the last name may be one.
    pub fn link(&self, path: &str) -> Option<String> {
        match self.entries.get(path) {
            Some(Link(target)) => Some(target.clone()),
            _ => None,
        }
    }

    pub(crate) fn read_link(&self, path: &str) -> Option<String> {
        let not_last = |path: &str, last: bool| Ok::<_, Errno>(self.link(path).filter(|_| !last));
        self.link(&resolve(path, not_last).ok()?)
    }

    /// With the errors of open(2).
    pub fn get(&self, path: &str) -> Result<&Entry, Errno> {
        let path = resolve(path, |path, _| Ok::<_, Errno>(self.link(path)))?;
        self.entries.get(&path).ok_or_else(|| {
            let above = path.rmatch_indices('/').map(|(end, _)| &path[..end]);
            let mut above = above.filter_map(|above| self.entries.get(above));
            match above.next() {
                Some(File(_)) => ENOTDIR,
                _ => ENOENT,
            }
        })
    }

    pub fn file(&self, path: &str) -> Result<&TreeFile, Errno> {
        match self.get(path)? {
            File(file) => Ok(file),
            Directory(_) => Err(EISDIR),
            Link(_) => Err(ELOOP),
        }
    }

    pub fn list(&self, path: &str) -> Result<Vec<String>, Errno> {
        match self.get(path)? {
            Directory(names) => Ok(names.iter().cloned().collect()),
            _ => Err(ENOTDIR),
        }
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            entries: HashMap::from_iter([(String::new(), Directory(BTreeSet::new()))]),
            size: 0,
        }
    }
}

impl Tree {
    /// Directories come before their content.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries
            .iter()
            .map(|(path, entry)| (path.as_str(), entry))
            .filter(|(path, _)| !path.is_empty())
            .sorted_unstable_by_key(|(path, _)| *path)
    }

    pub fn add_directory(&mut self, path: &str) -> Result<(), &'static str> {
        match self.entries.get(path) {
            Some(Directory(_)) => Ok(()),
            Some(_) => Err("occurs twice"),
            None => self.add(path, Directory(BTreeSet::new())),
        }
    }

    pub fn add(&mut self, path: &str, entry: Entry) -> Result<(), &'static str> {
        let Some((above, name)) = path.rsplit_once('/') else {
            return Err("has an empty path");
        };
        let text = match &entry {
            Directory(_) => "",
            File(file) => &file.text,
            Link(target) if target.split('/').count() > MAX_NAMES => {
                return Err("is a link through more directories than any machine has");
            }
            Link(target) => target,
        };
        if name.len() > MAX_NAME {
            return Err("has a name longer than 255 bytes");
        }
        let has_control = |text: &str| text.contains(char::is_control);
        if has_control(name) || matches!(entry, Link(_)) && has_control(text) {
            return Err("has a control character in its name");
        }
        if path.matches('/').count() > MAX_DEPTH {
            return Err("is below more than 64 directories");
        }
        let size = path.len() + name.len() + text.len() + ENTRY_SIZE;
        if self.size + size > MAX_SIZE {
            return Err(TOO_MUCH);
        }
        match self.entries.get_mut(above) {
            None => {
                self.add_directory(above)?;
                return self.add(path, entry);
            }
            Some(Directory(names)) => {
                if !names.insert(name.to_owned()) {
                    return Err("occurs twice");
                }
            }
            Some(_) => return Err("is below a file"),
        }
        self.entries.insert(path.to_owned(), entry);
        self.size += size;
        Ok(())
    }

    pub fn make_read_only(&mut self, path: &str) {
        if let Some(File(file)) = self.entries.get_mut(path) {
            file.mode &= 0o555;
        }
    }

    pub fn append(&mut self, path: &str, more: &str) {
        if let Some(File(file)) = self.entries.get_mut(path) {
            file.text = format!("{}{more}", file.text).into();
        }
    }
}

/// Resolves links, `.` and `..` as the kernel does; the paths need not exist. `look` gets each path so far and whether
/// its name is the last, and returns the target of a link to follow.
pub fn resolve<E: From<Errno>>(
    path: &str,
    mut look: impl FnMut(&str, bool) -> Result<Option<String>, E>,
) -> Result<String, E> {
    let names = |path: &str| -> Vec<String> {
        path.rsplit('/')
            .filter(|name| !["", "."].contains(name))
            .map(str::to_owned)
            .collect()
    };
    let (mut rest, mut done, mut links) = (names(path), String::new(), 0);
    while let Some(name) = rest.pop() {
        if name == ".." {
            done.truncate(done.rfind('/').unwrap_or(0));
            continue;
        }
        let above = done.len();
        done = done + "/" + &name;
        let Some(target) = look(&done, rest.is_empty())? else {
            continue;
        };
        done.truncate(if target.starts_with('/') { 0 } else { above });
        rest.extend(names(&target));
        links += 1;
        if links > MAX_LINKS || rest.len() > MAX_NAMES {
            return Err(ELOOP.into());
        }
    }
    Ok(done)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn tree() -> Tree {
        let mut tree = Tree::default();
        let file = |mode, text: &str| {
            Entry::File(TreeFile {
                mode,
                text: text.into(),
            })
        };
        tree.add("/sys/devices/card/net/eth0/speed", file(0o444, "1000\n"))
            .unwrap();
        tree.add(
            "/sys/devices/card/driver",
            Entry::Link("../../bus/pci/drivers/igb".into()),
        )
        .unwrap();
        tree.add(
            "/sys/devices/card/net/eth0/device",
            Entry::Link("../..".into()),
        )
        .unwrap();
        tree.add(
            "/sys/class/net/eth0",
            Entry::Link("../../devices/card/net/eth0".into()),
        )
        .unwrap();
        tree.add("/sys/absolute", Entry::Link("/sys/class".into()))
            .unwrap();
        tree.add("/sys/loop", Entry::Link("loop".into())).unwrap();
        tree.add_directory("/sys/empty").unwrap();
        tree.add(
            &format!("/sys/{}/end", ["long"; 60].join("/")),
            file(0o600, ""),
        )
        .unwrap();
        tree
    }

    #[test]
    fn the_size_of_all_files_is_limited() {
        let mut tree = Tree::default();
        let text: Arc<str> = "x".repeat(1 << 20).into();
        let added = (0..50).map(|number| {
            let (mode, text) = (0o444, Arc::clone(&text));
            tree.add(&format!("/{number}"), Entry::File(TreeFile { mode, text }))
        });
        assert_eq!(added.take_while(Result::is_ok).count(), 39);
    }

    #[test]
    fn answers_as_a_directory_does() {
        let tree = tree();
        assert_eq!(
            &*tree.file("/sys/class/net/eth0/speed").unwrap().text,
            "1000\n"
        );
        assert_eq!(
            tree.file("/sys/absolute/net/eth0/device/net/eth0/speed")
                .unwrap()
                .mode,
            0o444
        );
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
}
