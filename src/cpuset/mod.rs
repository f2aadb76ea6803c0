//! Sets of CPUs, and the two forms in which the kernel writes them down: the list (`0-3,8`) and
//! the mask (`00000000,0000010f`).
//!
//! This is the only place in nicpin where either form is parsed or made. Parsing is lenient where
//! the kernel and people vary (leading zeros, `0x`, missing groups, a trailing NUL); printing is
//! strict, because `smp_affinity`, `rps_cpus` and `xps_cpus` answer a mask with more groups than the
//! kernel has CPUs with EOVERFLOW even when the extra groups are zero (`bitmap_parse` in
//! `lib/bitmap-str.c`).

mod numbers;
mod text;
mod words;

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use words::Words;

pub use numbers::{IrqSet, NumberSet, QueueSet};
pub(crate) use text::shown;
pub use text::{CpuSetError, MaskWidth};

/// The largest `NR_CPUS` of any architecture (x86's `MAXSMP`): texts with CPUs from here on are refused, and no set holds
/// them.
pub const MAX_CPUS: u32 = 8192;

/// The words of 64 CPUs of the largest set.
const MAX_WORDS: usize = MAX_CPUS as usize / 64;

/// A set of logical CPUs, by id. Equality is equality of sets: how wide the text was does not matter.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct CpuSet {
    /// How many words are left out before the first: the set of one CPU is one word, whichever CPU that is.
    skipped: u32,
    /// 64 CPUs each, lowest first; the first and the last are never zero.
    words: Words,
}

/// NUMA nodes by id: their lists and masks have the kernel's same forms.
pub type NodeSet = CpuSet;

impl CpuSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self {
            skipped: 0,
            words: Words::new(),
        }
    }

    /// The set of one CPU.
    pub fn single(cpu: u32) -> Self {
        let mut set = Self::new();
        set.insert(cpu);
        set
    }

    /// The CPUs from 0 up to but not including `end`.
    pub fn below(end: u32) -> Self {
        let mut set = Self::new();
        if let Some(last) = end.min(MAX_CPUS).checked_sub(1) {
            set.insert_range(0, last);
        }
        set
    }

    /// Adds the CPUs from a first to a last.
    fn insert_range(&mut self, first: u32, last: u32) {
        for index in first / 64..=last / 64 {
            let from = if index == first / 64 {
                u64::MAX << (first % 64)
            } else {
                u64::MAX
            };
            let to = if index == last / 64 {
                u64::MAX >> (63 - last % 64)
            } else {
                u64::MAX
            };
            self.insert_word(index, from & to);
        }
    }

    /// Adds a CPU; one from [`MAX_CPUS`] on is left out.
    pub fn insert(&mut self, cpu: u32) {
        if cpu < MAX_CPUS {
            self.insert_word(cpu / 64, 1 << (cpu % 64));
        }
    }

    /// Adds the CPUs whose bits are set in a word.
    fn insert_word(&mut self, index: u32, cpus: u64) {
        if cpus == 0 {
            return;
        }
        if let Some(word) = index
            .checked_sub(self.skipped)
            .and_then(|at| self.words.get_mut(at as usize))
        {
            *word |= cpus;
            return;
        }
        if self.words.is_empty() {
            self.skipped = index;
        }
        if index < self.skipped {
            self.words.add_below((self.skipped - index) as usize);
            self.skipped = index;
        }
        let at = (index - self.skipped) as usize;
        self.words.grow(at + 1);
        if let Some(word) = self.words.get_mut(at) {
            *word |= cpus;
        }
    }

    /// The set of these words of 64 CPUs, the lowest first.
    fn of_words(words: &[u64]) -> Self {
        let Some(first) = words.iter().position(|word| *word != 0) else {
            return Self::new();
        };
        let last = words.iter().rposition(|word| *word != 0).unwrap_or(first);
        // No set has words beyond those of MAX_CPUS.
        let skipped = u32::try_from(first).unwrap_or(0);
        Self {
            skipped,
            words: words[first..=last].iter().copied().collect(),
        }
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.word(cpu / 64) >> (cpu % 64) & 1 == 1
    }

    /// How many CPUs are in the set.
    pub fn len(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Whether there is no CPU in the set.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (mut rest, mut index) = (0, 0);
        let mut words = self.words();
        std::iter::from_fn(move || {
            while rest == 0 {
                (index, rest) = words.next()?;
            }
            let bit = rest.trailing_zeros();
            rest &= rest - 1;
            Some(index * 64 + bit)
        })
    }

    /// The first and the last CPU of each run of CPUs without a gap, in ascending order.
    fn runs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut words = self.words();
        let (mut index, mut rest) = (0, 0_u64);
        let mut pieces = std::iter::from_fn(move || {
            while rest == 0 {
                (index, rest) = words.next()?;
            }
            let start = rest.trailing_zeros();
            let length = (rest >> start).trailing_ones();
            // Those below the end of the run are done with.
            rest &= u64::MAX.checked_shl(start + length).unwrap_or(0);
            Some((index * 64 + start, index * 64 + start + length - 1))
        })
        .peekable();
        std::iter::from_fn(move || {
            let (first, mut last) = pieces.next()?;
            while let Some((_, further)) = pieces.next_if(|(next, _)| *next == last + 1) {
                last = further;
            }
            Some((first, last))
        })
    }

    /// The lowest CPU.
    pub fn first(&self) -> Option<u32> {
        self.words
            .first()
            .map(|word| self.skipped * 64 + word.trailing_zeros())
    }

    /// The highest CPU.
    pub fn last(&self) -> Option<u32> {
        self.words()
            .next_back()
            .map(|(index, word)| index * 64 + 63 - word.leading_zeros())
    }

    /// The CPUs in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        union.add(other);
        union
    }

    /// The CPUs of all sets.
    pub fn union_of(sets: impl IntoIterator<Item = impl Borrow<Self>>) -> Self {
        let mut words = [0; MAX_WORDS];
        for set in sets {
            set.borrow()
                .words()
                .for_each(|(index, word)| words[index as usize] |= word);
        }
        Self::of_words(&words)
    }

    /// Adds the CPUs of another set.
    pub fn add(&mut self, other: &Self) {
        for (index, word) in other.words() {
            self.insert_word(index, word);
        }
    }

    /// The CPUs in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.each_word(|index, word| word & other.word(index))
    }

    /// The CPUs in this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.each_word(|index, word| word & !other.word(index))
    }

    /// Whether every CPU of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.words()
            .all(|(index, word)| word & !other.word(index) == 0)
    }

    /// Whether some CPU is in both sets.
    pub fn intersects(&self, other: &Self) -> bool {
        self.words()
            .any(|(index, word)| word & other.word(index) != 0)
    }

    /// The set as words of 64 CPUs, each with its number; words that are zero may be among them.
    fn words(&self) -> impl DoubleEndedIterator<Item = (u32, u64)> + ExactSizeIterator + '_ {
        let numbered = self.words.iter().enumerate();
        // MAX_CPUS / 64 words at most.
        numbered.map(|(at, &word)| (self.skipped + u32::try_from(at).unwrap_or(u32::MAX), word))
    }

    /// The words of 64 CPUs that are not zero, each with its number: the same for equal sets.
    pub(crate) fn used_words(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.words().filter(|(_, word)| *word != 0)
    }

    fn word(&self, index: u32) -> u64 {
        let at = index.checked_sub(self.skipped);
        at.and_then(|at| self.words.get(at as usize))
            .copied()
            .unwrap_or(0)
    }

    fn each_word(&self, change: impl Fn(u32, u64) -> u64) -> Self {
        let changed = |&(index, word): &(u32, u64)| change(index, word) != 0;
        let mut used = self.words().filter(changed).map(|(index, _)| index);
        let Some(first) = used.next() else {
            return Self::new();
        };
        let last = self
            .words()
            .rev()
            .find(changed)
            .map_or(first, |(index, _)| index);
        let words = (first..=last).map(|index| change(index, self.word(index)));
        Self {
            skipped: first,
            words: words.collect(),
        }
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut words = [0; MAX_WORDS];
        for cpu in cpus.into_iter().filter(|cpu| *cpu < MAX_CPUS) {
            words[cpu as usize / 64] |= 1 << (cpu % 64);
        }
        Self::of_words(&words)
    }
}

impl Extend<u32> for CpuSet {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, cpus: I) {
        for cpu in cpus {
            self.insert(cpu);
        }
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    fn from_str(text: &str) -> Result<Self, CpuSetError> {
        Self::parse_list(text)
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse_list(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn algebra() {
        let (a, b) = (
            CpuSet::parse_list("0-3,70").unwrap(),
            CpuSet::parse_list("2-5").unwrap(),
        );
        assert_eq!(a.union(&b).to_string(), "0-5,70");
        assert_eq!(a.intersection(&b).to_string(), "2-3");
        assert_eq!(a.difference(&b).to_string(), "0-1,70");
        assert_eq!(b.difference(&a).to_string(), "4-5");
        assert!(CpuSet::single(70).is_subset(&a) && !a.is_subset(&b));
        assert!(a.intersects(&b) && !a.intersects(&CpuSet::single(69)));
        assert_eq!((a.first(), a.last(), a.len()), (Some(0), Some(70), 5));
        assert_eq!(a.difference(&a), CpuSet::new());
        assert_eq!(CpuSet::new().last(), None);
    }

    proptest::proptest! {
        /// The same results as the sets of the standard library, for any CPU numbers.
        #[test]
        fn sets_are_sets(
            a in proptest::collection::btree_set(0_u32..300, 0..12),
            b in proptest::collection::btree_set(0_u32..300, 0..12),
            up in proptest::sample::select(vec![0_u32, 64, 1000, 4096]),
        ) {
            let shifted = |cpus: &BTreeSet<u32>| -> BTreeSet<u32> { cpus.iter().map(|cpu| cpu + up).collect() };
            let (a, b) = (shifted(&a), shifted(&b));
            let of = |cpus: &BTreeSet<u32>| cpus.iter().copied().collect::<CpuSet>();
            let (x, y) = (of(&a), of(&b));
            proptest::prop_assert_eq!(x.iter().collect::<BTreeSet<u32>>(), a.clone());
            proptest::prop_assert_eq!(x.union(&y), of(&(&a | &b)));
            proptest::prop_assert_eq!(x.intersection(&y), of(&(&a & &b)));
            proptest::prop_assert_eq!(x.difference(&y), of(&(&a - &b)));
            proptest::prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
            proptest::prop_assert_eq!(x.intersects(&y), !a.is_disjoint(&b));
            proptest::prop_assert_eq!((x.first(), x.last()), (a.first().copied(), a.last().copied()));
            proptest::prop_assert_eq!((x.len(), x.is_empty()), (a.len(), a.is_empty()));
            let backwards: CpuSet = a.iter().rev().copied().collect();
            proptest::prop_assert_eq!(&backwards, &x);
            for cpu in up..up + 300 {
                proptest::prop_assert_eq!(x.contains(cpu), a.contains(&cpu));
            }
        }
    }
}
