//! The words of a set: of a small one in place, of a large one shared by its copies until one of them changes. A plan
//! of a large machine holds the same sets thousands of times.

use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// How many words are kept in place.
const FEW: usize = 2;

/// A row of words.
#[derive(Debug, Clone, Default)]
pub(super) struct Words {
    few: [u64; FEW],
    length: usize,
    /// All of them, when there are more than a few; the fields above count for nothing then.
    many: Option<Arc<Vec<u64>>>,
}

impl Words {
    pub(super) const fn new() -> Self {
        Self {
            few: [0; FEW],
            length: 0,
            many: None,
        }
    }

    /// Adds zeros at the end up to a length.
    pub(super) fn grow(&mut self, to: usize) {
        if to <= self.len() {
            return;
        }
        if self.many.is_none() && to <= FEW {
            self.length = to;
        } else {
            self.many().resize(to, 0);
        }
    }

    /// Adds so many zeros before the first word.
    pub(super) fn add_below(&mut self, zeros: usize) {
        self.many().splice(..0, std::iter::repeat_n(0, zeros));
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut u64> {
        match &mut self.many {
            Some(words) => Arc::make_mut(words).get_mut(at),
            None => self.few.get_mut(..self.length)?.get_mut(at),
        }
    }

    fn many(&mut self) -> &mut Vec<u64> {
        let few = &self.few[..self.length];
        Arc::make_mut(self.many.get_or_insert_with(|| Arc::new(few.to_vec())))
    }
}

impl FromIterator<u64> for Words {
    fn from_iter<I: IntoIterator<Item = u64>>(words: I) -> Self {
        let mut words = words.into_iter();
        let mut row = Self::new();
        for (few, word) in row.few.iter_mut().zip(words.by_ref()) {
            (*few, row.length) = (word, row.length + 1);
        }
        if let Some(next) = words.next() {
            row.many = Some(Arc::new(
                row.few.into_iter().chain([next]).chain(words).collect(),
            ));
        }
        row
    }
}

impl Deref for Words {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match &self.many {
            Some(words) => words,
            None => &self.few[..self.length],
        }
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Words {}

impl Hash for Words {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self[..].hash(state);
    }
}
