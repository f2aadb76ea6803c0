//! A capture: everything that nicpin reads of a machine, as one file that can be read in its place.
//!
//! It is made from the record of one reading, and checked by reading it back. The same machine gives the same bytes.
//! `redact.rs` removes what could identify the machine.

mod identity;
mod redact;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Error, Result, ensure};
use itertools::Itertools as _;
use nix::errno::Errno;

use nicpin::apply::Record;
use nicpin::machine::Machine;
use nicpin::machine::files::affinity_file;
use nicpin::read::interrupts::{INTERRUPTS, without_counts};
use nicpin::read::{ReadOptions, others, topology};
use nicpin::root::archive::SCHEMA;
use nicpin::root::tree::Entry::{Directory, File, Link};
use nicpin::root::tree::{ABOUT, Entry, Tree, TreeFile, resolve};
use nicpin::root::{FileError, Recorded, Root};

const RELEASE: &str = "/proc/sys/kernel/osrelease";
const TRIES: usize = 3;

pub struct Capture {
    pub root: Root,
    /// The machine as read; empty if nicpin cannot read it.
    pub machine: Machine,
    pub tree: Tree,
    /// Files and directories that this user may not read: the capture lacks them.
    pub refused: Vec<String>,
    /// Why nicpin cannot read the machine; the capture holds all that was read before the error.
    pub unreadable: Option<String>,
    /// Changes that hide the machine's identity, a line each.
    pub redacted: Vec<String>,
}

/// Reading the capture gives another machine, or the record has two entries for one path.
#[derive(Debug, thiserror::Error)]
#[error("{0}; fix: run again")]
struct Changed(String);

impl Capture {
    pub fn read(path: &Path) -> Result<Self> {
        let mut tries = (1..TRIES).map(|_| Self::read_once(path));
        tries
            .find(|read| !read.as_ref().is_err_and(Error::is::<Changed>))
            .unwrap_or_else(|| Self::read_once(path))
    }

    fn read_once(path: &Path) -> Result<Self> {
        let root = Root::open_recording(path)?;
        // The policy, by which others will plan the capture, says what the names of IRQs mean.
        let policy = root.read_opt(redact::POLICY)?.unwrap_or_default();
        let drivers = redact::taught_drivers(&policy);
        let options = ReadOptions {
            drivers: &drivers,
            ..ReadOptions::EVERYTHING
        };
        let mut machine = match nicpin::read::machine(&root, options) {
            // A machine that nicpin cannot read is the one most worth capturing.
            Err(error @ FileError::Content { .. }) => Err(error.to_string()),
            machine => Ok(machine?),
        };
        let record = root.recorded();
        let mut tree = build(&root, &record)?;
        let back = nicpin::read::machine(&Root::of_tree(path, tree.clone()), options);
        let path = root.base().display();
        ensure!(
            back.map_err(|error| error.to_string()) == machine,
            Changed(format!(
                "{path}: the capture does not match what was read; the machine may have changed meanwhile"
            ))
        );
        // Before Linux 6.12 only the record of an apply tells unmovable vectors.
        if let (Ok(machine), Ok(record)) = (&mut machine, Record::load(&root)) {
            record.mark_unmovable(&root, machine);
            for vector in machine.vectors().filter(|vector| !vector.movable) {
                tree.make_read_only(&affinity_file(vector.irq));
            }
        }
        let mut about = format!("{SCHEMA}\nnicpin {}\n", env!("CARGO_PKG_VERSION"));
        let of_capture = root.read_opt(ABOUT)?.unwrap_or_default();
        let mut lines = of_capture.lines();
        let kernel = match root.read_opt(RELEASE)? {
            Some(release) => Some(release.trim().to_owned()),
            // The capture of a capture.
            None => lines.find_map(|line| Some(line.strip_prefix("kernel ")?.to_owned())),
        };
        if let Some(kernel) = kernel {
            about += &format!("kernel {kernel}\n");
        }
        add(&mut tree, ABOUT, file(0o644, about))?;
        Ok(Self {
            tree,
            refused: record.refused.into_iter().collect(),
            unreadable: machine.as_ref().err().cloned(),
            machine: machine.unwrap_or_default(),
            redacted: Vec::new(),
            root,
        })
    }

    /// `names`: also the names of interfaces and of the host.
    pub fn redact(&mut self, names: bool) -> Result<()> {
        (self.tree, self.redacted) = redact::redact(&self.tree, &self.root, &self.machine, names)?;
        Ok(())
    }

    pub fn identify(&mut self) -> Result<()> {
        let mut lines = String::new();
        if let Some(name) = self.root.read_opt("/proc/sys/kernel/hostname")? {
            lines += &format!("host {}\n", name.trim());
        }
        for (interface, address) in redact::addresses(&self.root)? {
            lines += &format!("address {interface} {address}\n");
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        lines += &format!("unix-time {}\n", now.unwrap_or_default().as_secs());
        self.tree.append(ABOUT, &lines);
        Ok(())
    }

    pub fn interfaces(&self) -> usize {
        self.machine.interfaces.len()
    }

    pub fn files(&self) -> usize {
        self.tree
            .iter()
            .filter(|(_, entry)| !matches!(entry, Directory(_)))
            .count()
    }
}

fn file(mode: u32, text: String) -> Entry {
    let text = text.into();
    File(TreeFile { mode, text })
}

fn add(tree: &mut Tree, path: &str, entry: Entry) -> Result<()> {
    tree.add(path, entry).map_err(|reason| {
        Changed(format!(
            "{path}: {reason}; it may have changed while it was read"
        ))
    })?;
    Ok(())
}

fn build(root: &Root, record: &Recorded) -> Result<Tree> {
    let mut tree = Tree::default();
    // Captures contain no process data.
    let is_process = |path: &str| {
        let below = path.strip_prefix("/proc/");
        below.is_some_and(|below| below.starts_with(|c: char| c.is_ascii_digit()))
    };
    let paths = record.paths.iter().filter(|(path, _)| {
        !is_process(path) && !record.answers.contains_key(*path) && *path != ABOUT
    });
    // First files with their content, then paths that were only looked up.
    let read = |path: &String| record.files.get(path).map(Option::as_ref);
    for (path, opened) in paths.sorted_by_key(|(path, _)| !matches!(read(path), Some(Some(_)))) {
        let Some((place, mode)) = walk(root, &mut tree, path, *opened)? else {
            continue;
        };
        let mut seen = match read(path) {
            Some(Some(file)) => file.clone(),
            Some(None) => continue,
            None => TreeFile {
                mode,
                ..TreeFile::default()
            },
        };
        if tree.entry(&place).is_some() {
            continue;
        }
        let bare = match path.as_str() {
            INTERRUPTS => Some(without_counts(&seen.text)),
            path => topology::for_capture(path, &seen.text)
                .or_else(|| others::for_capture(path, &seen.text)),
        };
        seen.text = bare.map_or(seen.text, Into::into);
        add(&mut tree, &place, File(seen))?;
    }
    for (path, names) in &record.lists {
        // These names are facts without being opened.
        let is_fact = |name: &&String| path.ends_with("/msi_irqs") || name.starts_with("lower_");
        for name in names.iter().filter(is_fact) {
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

/// Returns the place and mode of the file at which the path ends.
fn walk(root: &Root, tree: &mut Tree, path: &str, follow: bool) -> Result<Option<(String, u32)>> {
    let place: Result<String> = resolve(path, |path, last| {
        let known = tree.entry(path).map(Entry::without_names);
        let is_new = known.is_none();
        match known
            .filter(|entry| !matches!(entry, File(_)))
            .or_else(|| root.look(path))
        {
            Some(entry @ Directory(_)) if is_new => add(tree, path, entry)?,
            Some(Link(target)) => {
                if is_new {
                    add(tree, path, Link(link_inside(path, &target)))?;
                }
                return Ok((follow || !last).then_some(target));
            }
            _ => {}
        }
        Ok(None)
    });
    let place = match place {
        // A loop of links leads to no file.
        Err(error) if error.is::<Errno>() => return Ok(None),
        place => place?,
    };
    match root.look(&place) {
        Some(File(file)) => Ok(Some((place, file.mode))),
        _ => Ok(None),
    }
}

/// A target that stays inside the tree wherever that is unpacked: relative, and not above the top.
fn link_inside(path: &str, target: &str) -> String {
    let depth = path.matches('/').count() - 1;
    let parts = target.split('/').filter(|part| !["", "."].contains(part));
    let above = parts.clone().take_while(|part| *part == "..").count();
    if !target.starts_with('/') && above <= depth {
        return target.to_owned();
    }
    let below: Vec<&str> = parts.filter(|part| *part != "..").collect();
    format!("{}{}", "../".repeat(depth), below.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_inside() {
        for (path, target, expected) in [
            (
                "/sys/class/net/eth0",
                "../../devices/card/net/eth0",
                "../../devices/card/net/eth0",
            ),
            ("/proc/net", "self/net", "self/net"),
            ("/sys/class/x", "/sys/devices/x", "../../sys/devices/x"),
            ("/x", "/sys", "sys"),
            ("/sys/x", "../../../etc/passwd", "../etc/passwd"),
        ] {
            assert_eq!(link_inside(path, target), expected, "{path} {target}");
        }
    }
}
