//! Files that hold one number, CPU list or mask. `None` where the file is absent. And reading again what was torn: the
//! kernel prints some files without the lock under which it changes their content.

use std::str::FromStr;

use crate::cpuset::{CpuSet, CpuSetError, shown};
use crate::machine::MaskFile;
use crate::root::{FileError, Root};

/// Ids of NUMA nodes from here on are ignored: the largest `MAX_NUMNODES` of any architecture.
pub(crate) const MAX_NODES: u32 = 1 << 10;

/// N of a directory's name such as `rx-N`, if it is below a limit.
pub(crate) fn numbered(name: &str, prefix: &str, limit: u32) -> Option<u32> {
    name.strip_prefix(prefix)?
        .parse()
        .ok()
        .filter(|number| *number < limit)
}

/// The node in a file such as `numa_node`; `None` for -1 (`NUMA_NO_NODE`), which is never node 0, and if the file is absent.
pub(crate) fn read_node(root: &Root, path: &str) -> Result<Option<u32>, FileError> {
    let parse = |text: &str| {
        let text = text.trim();
        let node = numbered(text, "", MAX_NODES);
        let is_node = text == "-1" || node.is_some();
        let reason = || format!("`{}` is not a node", shown(text));
        is_node
            .then_some(node)
            .ok_or_else(|| root.content_error(path, reason()))
    };
    Ok(root.parse_opt(path, parse)?.flatten())
}

/// How much of a text is kept where it is a name, in characters.
const MAX_NAME: usize = 200;

/// A name in a file: one line of limited length.
pub(crate) fn name_in(text: &str) -> &str {
    let line = text.trim().lines().next().unwrap_or_default();
    line.char_indices()
        .nth(MAX_NAME)
        .map_or(line, |(end, _)| &line[..end])
}

/// A file that holds one number; `None` if it is absent. An error if the number is larger than the kernel's type for it.
pub(crate) fn read_number<T: FromStr>(root: &Root, path: &str) -> Result<Option<T>, FileError> {
    root.parse_opt(path, |text| {
        let number = text.trim().parse();
        number.map_err(|_| {
            let text = shown(text.trim());
            root.content_error(
                path,
                format!("`{text}` is not a number that the kernel has there"),
            )
        })
    })
}

/// A CPU list file; `None` if it is absent.
pub(crate) fn read_list(root: &Root, path: &str) -> Result<Option<CpuSet>, FileError> {
    read_set_opt(root, path, CpuSet::parse_list)
}

/// A CPU mask file; `None` if it is absent.
pub(crate) fn read_mask(root: &Root, path: &str) -> Result<Option<CpuSet>, FileError> {
    read_set_opt(root, path, CpuSet::parse_kernel_mask)
}

/// A file with CPUs that has two forms, a list and on all kernels a mask; `None` if both are absent.
pub(crate) fn read_cpus(root: &Root, list: &str, mask: &str) -> Result<Option<CpuSet>, FileError> {
    Ok(match read_list(root, list)? {
        Some(cpus) => Some(cpus),
        None => read_mask(root, mask)?,
    })
}

type Parse = fn(&str) -> Result<CpuSet, CpuSetError>;

fn read_set_opt(root: &Root, path: &str, parse: Parse) -> Result<Option<CpuSet>, FileError> {
    root.parse_opt(path, |text| {
        parse(text).map_err(|error| root.content_error(path, error.to_string()))
    })
}

/// The text of a mask file.
pub(crate) fn parse_mask_file(root: &Root, path: &str, text: &str) -> Result<MaskFile, FileError> {
    MaskFile::parse(text).map_err(|error| root.content_error(path, error.to_string()))
}

/// The last component of a path.
pub(crate) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// A configuration file of somebody else's. One that this user may not read is as good as none: it decides what a note
/// says, and nothing more.
pub(crate) fn read_best_effort(root: &Root, path: &str) -> Option<String> {
    root.read_opt(path).ok().flatten()
}

/// How often a file is read at most.
const TRIES: usize = 5;

/// The text of an `smp_affinity`; `None` where there is none.
///
/// An affinity is never empty, but the file reads as all zeros while the kernel performs a pending move. It
/// prints the mask of that move without a lock, and clears it when the move is done (`show_irq_affinity`,
/// `irq_move_masked_irq` in `kernel/irq`).
pub(crate) fn read_affinity(root: &Root, path: &str) -> Result<Option<String>, FileError> {
    let nowhere = |read: &Result<Option<String>, FileError>| {
        let Ok(Some(text)) = read else { return false };
        CpuSet::parse_kernel_mask(text).is_ok_and(|cpus| cpus.is_empty())
    };
    again_while(nowhere, || root.read_opt(path))
}

/// Reads again while the result is not plausible. The last result is returned.
pub(crate) fn again_while<T>(torn: impl Fn(&T) -> bool, read: impl Fn() -> T) -> T {
    (1..TRIES)
        .map(|_| read())
        .find(|value| !torn(value))
        .unwrap_or_else(&read)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

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
                (again_while(|mask| *mask == 0, read), asked.get()),
                (expected, reads)
            );
        }
    }
}
