//! Reads again what was torn: the kernel prints some files without the lock under which it changes their content.

use crate::cpuset::CpuSet;
use crate::root::{FileError, Root};

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
