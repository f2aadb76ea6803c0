//! Directories and files of one value each. Torn files are read again: the kernel prints some without the lock under
//! which it changes them.

use std::fmt::Display;
use std::io;
use std::iter::successors;
use std::str::FromStr;

use crate::cpuset::{CpuSet, shown};
use crate::machine::files::IRQ_FILES;
use crate::root::tree::TreeFile;
use crate::root::{FileError, Result, Root};

/// The largest `MAX_NUMNODES` of any architecture; nodes from this id on are ignored.
pub(crate) const MAX_NODES: u32 = 1 << 10;
const MAX_NAME: usize = 200;
const TRIES: usize = 5;

#[derive(Debug, Clone)]
pub(crate) struct Dir<'a> {
    pub(crate) root: &'a Root,
    pub(crate) path: String,
}

impl Root {
    pub(crate) fn dir(&self, path: impl Into<String>) -> Dir<'_> {
        Dir {
            root: self,
            path: path.into(),
        }
    }

    pub(crate) fn read_names(&self, path: &str) -> Result<Vec<String>> {
        Ok(self.list(path)?.unwrap_or_default())
    }

    pub(crate) fn read_text(&self, path: &str) -> Result<String> {
        Ok(self.read_opt(path)?.unwrap_or_default())
    }
}

impl Dir<'_> {
    pub(crate) fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    pub(crate) fn dir(&self, name: &str) -> Self {
        self.root.dir(self.file(name))
    }

    pub(crate) fn above(&self) -> Self {
        let above = self.path.rsplit_once('/');
        self.root.dir(above.map_or("", |(above, _)| above))
    }

    pub(crate) fn and_above(&self) -> impl Iterator<Item = Self> {
        successors(Some(self.clone()), |directory| Some(directory.above()))
            .take_while(|directory| directory.path.len() > "/sys/devices".len())
    }

    pub(crate) fn names(&self) -> Result<Vec<String>> {
        self.root.read_names(&self.path)
    }

    pub(crate) fn name(&self) -> &str {
        name_of(&self.path)
    }

    pub(crate) fn read_as<T, E: Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>> {
        self.root.read_as(&self.file(name), parse)
    }

    pub(crate) fn read_text(&self, name: &str) -> Result<String> {
        self.root.read_text(&self.file(name))
    }

    /// Not all kernels have the list, all have the mask.
    pub(crate) fn read_cpus(&self, [list, mask]: [&str; 2]) -> Result<Option<CpuSet>> {
        match self.read_as(list, CpuSet::parse_list)? {
            None => self.read_as(mask, CpuSet::parse_kernel_mask),
            cpus => Ok(cpus),
        }
    }

    pub(crate) fn read_list(&self, name: &str) -> Result<CpuSet> {
        Ok(self.read_as(name, CpuSet::parse_list)?.unwrap_or_default())
    }

    pub(crate) fn is_there(&self, name: &str) -> Result<bool> {
        self.root.is_there(&self.file(name))
    }

    pub(crate) fn read_node(&self) -> Result<Option<u32>> {
        Ok(self.read_as("numa_node", node)?.flatten())
    }

    pub(crate) fn link_name(&self, name: &str) -> Result<Option<String>> {
        self.root.link_name(&self.file(name))
    }

    pub(crate) fn canonical(&self, name: &str) -> Result<Option<Self>> {
        let path = self.root.canonical(&self.file(name))?;
        Ok(path.map(|path| self.root.dir(path)))
    }
}

/// `None` for -1 (`NUMA_NO_NODE`), which is never node 0.
pub(crate) fn node(text: &str) -> Result<Option<u32>, String> {
    match text.trim() {
        "-1" => Ok(None),
        text => number_after(text, "", MAX_NODES)
            .map(Some)
            .ok_or_else(|| format!("`{}` is not a node", shown(text))),
    }
}

pub(crate) fn number<T: FromStr>(text: &str) -> Result<T, String> {
    let text = text.trim();
    let expected = "is not a number that the kernel has there";
    text.parse()
        .map_err(|_| format!("`{}` {expected}", shown(text)))
}

pub(crate) fn read_effective(root: &Root, irq: u32) -> Result<Option<CpuSet>> {
    let effective = root
        .dir(format!("{IRQ_FILES}/{irq}"))
        .read_cpus(["effective_affinity_list", "effective_affinity"])?;
    // An empty effective mask means that the IRQ was never started.
    Ok(effective.filter(|cpus| !cpus.is_empty()))
}

/// An affinity is never empty, but `smp_affinity` reads as all zeros during a pending move: the kernel prints the
/// move's mask without a lock, and clears it when the move is done (`show_irq_affinity`, `irq_move_masked_irq` in
/// `kernel/irq`).
pub(crate) fn read_affinity(root: &Root, path: &str) -> Result<Option<TreeFile>> {
    let nowhere = |read: &Result<Option<TreeFile>>| {
        let Ok(Some(file)) = read else { return false };
        file.text.bytes().all(|byte| b"0,\n".contains(&byte)) && file.text.contains('0')
    };
    read_again_while(nowhere, || root.read_opt_file(path))
}

/// For files on which only a note or an optional fact depends, such as those of another user's process: an error counts
/// as an absent file.
pub(crate) fn read_best_effort(root: &Root, path: &str) -> Option<String> {
    root.read_opt(path).ok().flatten()
}

pub(crate) fn read_again_while<T>(torn: impl Fn(&T) -> bool, read: impl Fn() -> T) -> T {
    let mut tries = (1..TRIES).map(|_| read());
    tries.find(|value| !torn(value)).unwrap_or_else(&read)
}

/// The N of a directory such as `rx-N`, as the kernel writes it, if below `limit`.
pub(crate) fn number_after(name: &str, prefix: &str, limit: u32) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    let number = digits.parse().ok()?;
    let is_odd = digits.starts_with('+') || (digits.starts_with('0') && digits != "0");
    (number < limit && !is_odd).then_some(number)
}

pub(crate) fn name_in(text: &str) -> &str {
    let line = text.trim().lines().next().unwrap_or_default();
    let end = line.char_indices().nth(MAX_NAME);
    end.map_or(line, |(end, _)| &line[..end])
}

/// The text after `name` at the start of a line, such as `Uid:` in `/proc/PID/status`.
pub(crate) fn line_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

/// The value that a line of shell variables assigns to `name`.
pub(crate) fn assigned<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let line = line.trim_start();
    let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
    line.strip_prefix(name)?.strip_prefix('=')
}

pub(crate) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        Self::other(error)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_number_in_a_name_is_written_as_the_kernel_writes_it() {
        assert_eq!(number_after("rx-0", "rx-", 4), Some(0));
        assert_eq!(number_after("rx-3", "rx-", 4), Some(3));
        for name in ["rx-4", "rx-01", "rx-00", "rx-+1", "rx--1", "rx-", "tx-1"] {
            assert_eq!(number_after(name, "rx-", 4), None, "{name}");
        }
    }

    #[test]
    fn what_is_torn_is_read_again() {
        for (torn, expected, reads) in [(0, 8, 1), (1, 8, 2), (4, 8, 5), (9, 0, 5)] {
            let asked = Cell::new(0);
            let read = || {
                if asked.replace(asked.get() + 1) < torn {
                    0
                } else {
                    8
                }
            };
            assert_eq!(
                (read_again_while(|mask| *mask == 0, read), asked.get()),
                (expected, reads)
            );
        }
    }
}
