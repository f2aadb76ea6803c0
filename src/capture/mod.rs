//! A capture: everything that nicpin reads of a machine, as one file that can be read in its place.
//!
//! It is made from the record of one reading, not by reading again, and is checked by reading it back. It is the
//! same, byte for byte, as long as the machine is. `redact.rs` removes what could identify the machine.

mod redact;

use std::path::Path;

use crate::capture::redact::Redacted;
use nicpin::read::interrupts::{INTERRUPTS, without_counts};
use nicpin::read::memory::{is_meminfo, without_use};
use nicpin::read::{Wants, others, tools};
use nicpin::root::archive::SCHEMA;
use nicpin::root::tree::{ABOUT, Entry, Tree, TreeFile, resolve};
use nicpin::root::{FileError, Recorded, Root};
use nix::errno::Errno;

const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// A captured machine.
#[derive(Debug)]
pub struct Capture {
    root: Root,
    tree: Tree,
    /// Files and directories that this user may not read; they are missing in the capture.
    pub refused: Vec<String>,
    /// Why nicpin cannot read this machine, if it cannot; the capture holds what was read before the error.
    pub unreadable: Option<String>,
    /// What was changed so that the machine cannot be identified, a line each.
    pub redacted: Vec<String>,
    /// The number of interfaces.
    pub interfaces: usize,
}

/// The capture could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// A file that every machine has could not be read.
    #[error(transparent)]
    TreeFile(#[from] FileError),
    /// Reading the capture gives another machine.
    #[error("{}: the capture does not match what was read; the machine may have changed meanwhile; fix: run again", .0.display())]
    Changed(std::path::PathBuf),
    /// A path leads into a loop of links, and to no file.
    #[error("{0}")]
    Loop(#[from] Errno),
    /// The record has two entries for one path.
    #[error("{path}: {reason}; it may have changed while it was read; fix: run again")]
    Place {
        /// The path of the machine.
        path: String,
        /// What is wrong.
        reason: &'static str,
    },
}

impl Capture {
    /// Reads the machine below a directory or in another capture. `beside` are files that belong to it although
    /// reading a [`Machine`] does not need them.
    pub fn read(path: &Path, beside: &[&str]) -> Result<Self, CaptureError> {
        // A live machine changes while it is read; reading a copy again would not help.
        let mut tries = 3;
        loop {
            tries -= 1;
            let result = Self::read_once(path, beside);
            match &result {
                Err(CaptureError::Changed(_) | CaptureError::Place { .. }) if tries > 0 => {}
                _ => return result,
            }
        }
    }

    fn read_once(path: &Path, beside: &[&str]) -> Result<Self, CaptureError> {
        let root = Root::open_recording(path)?;
        let machine = match nicpin::read::machine(&root, Wants::EVERYTHING) {
            Ok(machine) => Ok(machine),
            // A machine that nicpin cannot read is the one most worth capturing.
            Err(error @ FileError::Content { .. }) => Err(error.to_string()),
            Err(error) => return Err(error.into()),
        };
        for path in beside {
            root.read_opt(path)?;
        }
        let record = root.recorded();
        let tree = build(&root, &record)?;
        let back = nicpin::read::machine(&Root::of_tree(path, tree.clone()), Wants::EVERYTHING);
        if back.map_err(|error| error.to_string()) != machine {
            return Err(CaptureError::Changed(root.base().to_owned()));
        }
        let mut capture = Self {
            tree,
            refused: record.refused.into_iter().collect(),
            interfaces: machine
                .as_ref()
                .map_or(0, |machine| machine.interfaces.len()),
            unreadable: machine.err(),
            redacted: Vec::new(),
            root,
        };
        capture.describe()?;
        Ok(capture)
    }

    /// Removes what could identify the machine. `without_comments` is that of a policy file; `names`: also the names of
    /// interfaces and of the host.
    pub fn redact(
        &mut self,
        without_comments: fn(&str) -> Option<String>,
        names: bool,
    ) -> Result<(), FileError> {
        let Redacted { tree, changes } =
            redact::redact(&self.tree, &self.root, without_comments, names)?;
        self.tree = tree;
        self.redacted = changes;
        Ok(())
    }

    /// Adds the machine's identity: host name, hardware addresses and the time.
    pub fn identify(&mut self) -> Result<(), FileError> {
        let mut lines = String::new();
        if let Some(name) = self.root.read_opt("/proc/sys/kernel/hostname")? {
            lines += &format!("host {}\n", name.trim());
        }
        for (interface, address) in redact::addresses(&self.root)? {
            lines += &format!("address {interface} {address}\n");
        }
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        lines += &format!("unix-time {}\n", now.as_secs());
        self.tree.append(ABOUT, &lines);
        Ok(())
    }

    /// The file: a tar archive compressed with gzip.
    pub fn pack(&self) -> std::io::Result<Vec<u8>> {
        self.tree.pack()
    }

    /// The number of files and links.
    pub fn files(&self) -> usize {
        self.tree
            .iter()
            .filter(|(_, entry)| !matches!(entry, Entry::Directory(_)))
            .count()
    }

    /// Adds the file that names the capture's format.
    fn describe(&mut self) -> Result<(), CaptureError> {
        let about = self.root.read_opt(ABOUT)?.unwrap_or_default();
        let kept = about
            .lines()
            .find_map(|line| line.strip_prefix("kernel "))
            .map(str::to_owned);
        let kernel = match self.root.read_opt(RELEASE)? {
            Some(release) => Some(release.trim().to_owned()),
            // The capture of a capture.
            None => kept,
        };
        let mut text = format!("{SCHEMA}\nnicpin {}\n", env!("CARGO_PKG_VERSION"));
        if let Some(kernel) = kernel {
            text += &format!("kernel {kernel}\n");
        }
        add(&mut self.tree, ABOUT, file(0o644, text))
    }
}

fn file(mode: u32, text: String) -> Entry {
    Entry::File(TreeFile {
        mode,
        text: text.into(),
    })
}

fn add(tree: &mut Tree, path: &str, entry: Entry) -> Result<(), CaptureError> {
    tree.add(path, entry).map_err(|reason| CaptureError::Place {
        path: path.to_owned(),
        reason,
    })
}

/// The tree of what was read through a recording root.
fn build(root: &Root, record: &Recorded) -> Result<Tree, CaptureError> {
    let mut tree = Tree::default();
    let stat = |path: &str| record.files.get(path).map(|file| &*file.text);
    let strange = |path: &str| {
        tools::is_unrelated_process(path, stat)
            || record.answers.contains_key(path)
            || path == ABOUT
    };
    let mut paths: Vec<&String> = record.paths.iter().filter(|path| !strange(path)).collect();
    // Files that were read come first, with their content; then paths that were only looked up.
    paths.sort_by_key(|path| !record.files.contains_key(*path));
    for path in paths {
        let Some((place, mode)) = walk(root, &mut tree, path, record.opened.contains(path))? else {
            continue;
        };
        if tree.entry(&place).is_some() || record.unread.contains(path) {
            continue;
        }
        let seen = record.files.get(path).cloned().unwrap_or_else(|| TreeFile {
            mode,
            ..TreeFile::default()
        });
        let changed = match path.as_str() {
            INTERRUPTS => Some(without_counts(&seen.text)),
            _ if is_meminfo(path) => Some(without_use(&seen.text)),
            _ => tools::bare(path, &seen.text).or_else(|| others::bare(path, &seen.text)),
        };
        let text = changed.map_or(seen.text, Into::into);
        add(
            &mut tree,
            &place,
            Entry::File(TreeFile {
                mode: seen.mode,
                text,
            }),
        )?;
    }
    for (path, names) in &record.lists {
        for name in names.iter().filter(|name| is_fact(path, name)) {
            let place = format!("{}/{name}", path.trim_end_matches('/'));
            if let Some((place, mode)) = walk(root, &mut tree, &place, false)? {
                if tree.entry(&place).is_none() {
                    add(&mut tree, &place, file(mode, String::new()))?;
                }
            }
        }
    }
    for (path, answer) in &record.answers {
        add(&mut tree, path, file(0o644, answer.clone()))?;
    }
    Ok(tree)
}

/// Whether the names in a directory are facts themselves, without being opened.
fn is_fact(directory: &str, name: &str) -> bool {
    directory.ends_with("/msi_irqs")
        || name.starts_with("lower_")
        || tools::is_fact(directory, name)
}

/// Adds the directories and links on the way to a path. Where it ends at a file, the file's place and mode.
fn walk(
    root: &Root,
    tree: &mut Tree,
    path: &str,
    follow: bool,
) -> Result<Option<(String, u32)>, CaptureError> {
    let look = |path: &str, last: bool| {
        let entry = match tree.entry(path) {
            Some(entry @ (Entry::Directory(_) | Entry::Link(_))) => Some(entry.without_names()),
            _ => root.look(path),
        };
        match entry {
            Some(entry @ Entry::Directory(_)) if tree.entry(path).is_none() => {
                add(tree, path, entry)?;
            }
            Some(Entry::Link(target)) => {
                if tree.entry(path).is_none() {
                    let above = path.rsplit_once('/').map_or("", |(above, _)| above);
                    add(tree, path, Entry::Link(inside(above, &target)))?;
                }
                return Ok(Some(target).filter(|_| follow || !last));
            }
            _ => {}
        }
        Ok(None)
    };
    let place = match resolve(path, look) {
        Err(CaptureError::Loop(_)) => return Ok(None),
        place => place?,
    };
    match root.look(&place) {
        Some(Entry::File(file)) => Ok(Some((place, file.mode))),
        _ => Ok(None),
    }
}

/// A link's target so that it stays inside the tree wherever that is unpacked: relative, and not above the top.
fn inside(directory: &str, target: &str) -> String {
    let depth = directory.matches('/').count();
    let mut above = 0_usize;
    for (down, part) in target
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .enumerate()
    {
        if part == ".." && above == down {
            above += 1;
        }
    }
    if !target.starts_with('/') && above <= depth {
        return target.to_owned();
    }
    let rest: Vec<&str> = target
        .split('/')
        .filter(|part| !["", ".", ".."].contains(part))
        .collect();
    format!("{}{}", "../".repeat(depth), rest.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_inside() {
        for (directory, target, expected) in [
            (
                "/sys/class/net",
                "../../devices/card/net/eth0",
                "../../devices/card/net/eth0",
            ),
            ("/proc", "self/net", "self/net"),
            ("/sys/class", "/sys/devices/x", "../../sys/devices/x"),
            ("", "/sys", "sys"),
            ("/sys", "../../../etc/passwd", "../etc/passwd"),
        ] {
            assert_eq!(inside(directory, target), expected, "{directory} {target}");
        }
    }
}
