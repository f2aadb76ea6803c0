//! Reading again what was torn: the kernel prints some files without the lock under which it changes what they say.

/// How often a file is read at most.
const TRIES: usize = 5;

/// Reads something again while what was read cannot be true. The last reading stands.
///
/// An `smp_affinity` is one such: no IRQ is allowed nowhere, and yet it reads as all zeros while the kernel makes a move
/// that was pending. It prints the mask of that move without a lock, and clears it when the move is made
/// (`show_irq_affinity`, `irq_move_masked_irq` in `kernel/irq`).
pub(crate) fn again_while<T>(torn: impl Fn(&T) -> bool, read: impl Fn() -> T) -> T {
    (1..TRIES).map(|_| read()).find(|value| !torn(value)).unwrap_or_else(&read)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_is_torn_is_read_again() {
        for (torn, expected, reads) in [(0, 8, 1), (1, 8, 2), (4, 8, 5), (9, 0, 5)] {
            let asked = Cell::new(0);
            let read = || if asked.replace(asked.get() + 1) < torn { 0 } else { 8 };
            assert_eq!((again_while(|mask| *mask == 0, read), asked.get()), (expected, reads));
        }
    }
}
