//! Collects into maps and sets without sorting.

/// For `BTreeMap` and `BTreeSet`, whose `FromIterator` has a stable sort of its own for each type: 5 KB of the program.
pub trait Inserted: Iterator + Sized {
    /// Inserts one item after another; of equal keys the last one stays.
    fn inserted<C: Default + Extend<Self::Item>>(self) -> C {
        let mut all = C::default();
        all.extend(self);
        all
    }
}

impl<I: Iterator> Inserted for I {}
