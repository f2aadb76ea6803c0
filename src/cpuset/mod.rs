//! Sets of CPUs in the kernel's two forms, parsed and made only here: the list (`0-3,8`) and the mask
//! (`00000000,0000010f`).
//!
//! Parsing is lenient where the kernel and people vary (leading zeros, `0x`, missing groups, a trailing NUL). Printing
//! is strict: `smp_affinity`, `rps_cpus` and `xps_cpus` answer a mask with more groups than the kernel has CPUs with
//! EOVERFLOW, even if these are zero (`bitmap_parse` in `lib/bitmap-str.c`).

mod inserted;
mod text;

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::iter::repeat;
use std::ops::{Deref, DerefMut};
use std::str::FromStr;

pub use inserted::Inserted;
use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};
use smallvec::SmallVec;
pub(crate) use text::shown;
pub use text::{MaskFile, MaskWidth, short};

/// The largest `NR_CPUS` of any architecture (x86's `MAXSMP`): texts with CPUs from here on are refused, and no set
/// holds them.
pub const MAX_CPUS: u32 = 8192;

/// A set of logical CPUs, by id. Equality is that of sets, whatever the width of the text.
///
/// Words of 64 CPUs, lowest first; the last is never zero. Up to 512 CPUs take no allocation.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct CpuSet(SmallVec<[u64; 8]>);

/// NUMA nodes by id: their lists and masks have the same forms.
pub type NodeSet = CpuSet;

impl CpuSet {
    pub const fn new() -> Self {
        Self(SmallVec::new_const())
    }

    pub fn single(cpu: u32) -> Self {
        Self::from_iter([cpu])
    }

    /// Ignores a CPU from [`MAX_CPUS`] on.
    pub fn insert(&mut self, cpu: u32) {
        if cpu < MAX_CPUS {
            self.insert_bits(cpu, 1);
        }
    }

    /// Adds the CPUs of the set bits, counted from `first`; some bit is set, and all are in one word.
    fn insert_bits(&mut self, first: u32, bits: u64) {
        let index = first as usize / 64;
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] |= bits << (first % 64);
    }

    fn combine_words(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        let mut words = SmallVec::from_slice(&self.0);
        for (word, other) in words.iter_mut().zip(other.0.iter().chain(repeat(&0))) {
            *word = combine(*word, *other);
        }
        while words.last() == Some(&0) {
            words.pop();
        }
        Self(words)
    }

    pub fn contains(&self, cpu: u32) -> bool {
        let word = self.0.get(cpu as usize / 64);
        word.is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.used_words().flat_map(|(index, word)| {
            std::iter::successors(Some(word), |rest| {
                Some(rest & (rest - 1)).filter(|rest| *rest != 0)
            })
            .map(move |rest| index * 64 + rest.trailing_zeros())
        })
    }

    /// The lowest CPU.
    pub fn first(&self) -> Option<u32> {
        let (index, word) = self.used_words().next()?;
        Some(index * 64 + word.trailing_zeros())
    }

    pub(crate) fn only(&self) -> Option<u32> {
        self.first().filter(|_| self.len() == 1)
    }

    /// The highest CPU.
    pub fn last(&self) -> Option<u32> {
        let highest = self.0.last()?.ilog2();
        Some((0..).step_by(64).nth(self.0.len() - 1)? + highest)
    }

    /// The CPUs in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::union_of([self, other])
    }

    /// The CPUs of all sets.
    pub fn union_of(sets: impl IntoIterator<Item = impl Borrow<Self>>) -> Self {
        let mut union = Self::new();
        for set in sets {
            union.add(set.borrow());
        }
        union
    }

    pub fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    /// The CPUs in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine_words(other, |a, b| a & b)
    }

    /// The CPUs in this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combine_words(other, |a, b| a & !b)
    }

    pub fn is_subset(&self, other: &Self) -> bool {
        self.0
            .iter()
            .zip(other.0.iter().chain(repeat(&0)))
            .all(|(a, b)| a & !b == 0)
    }

    /// Whether some CPU is in both sets.
    pub fn intersects(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// Words of 64 CPUs that are not zero, each with its number: the same for equal sets.
    pub(crate) fn used_words(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let numbered = (0..).zip(self.0.iter().copied());
        numbered.filter(|(_, word)| *word != 0)
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut set = Self::new();
        set.extend(cpus);
        set
    }
}

impl Extend<u32> for CpuSet {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, cpus: I) {
        cpus.into_iter().for_each(|cpu| self.insert(cpu));
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

impl FromStr for CpuSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
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
        String::deserialize(deserializer)?
            .parse()
            .map_err(Error::custom)
    }
}

/// No machine has as many IRQs or queues.
const MOST: usize = 1 << 17;

/// A set of numbers without [`MAX_CPUS`]; as text a list such as `0-3,9071`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumberSet(BTreeSet<u32>);

pub type IrqSet = NumberSet;
pub type QueueSet = NumberSet;

impl NumberSet {
    /// From 0 up to but not including `end`.
    pub fn below(end: u32) -> Self {
        (0..end).collect()
    }

    fn parse(text: &str) -> Option<Self> {
        let mut set = Self::default();
        for range in text.split(',').filter(|_| !text.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            let room = MOST.checked_sub(set.len())?;
            if last < first || (last - first) as usize >= room {
                return None;
            }
            set.extend(first..=last);
        }
        Some(set)
    }
}

impl Deref for NumberSet {
    type Target = BTreeSet<u32>;

    fn deref(&self) -> &BTreeSet<u32> {
        &self.0
    }
}

impl DerefMut for NumberSet {
    fn deref_mut(&mut self) -> &mut BTreeSet<u32> {
        &mut self.0
    }
}

impl FromIterator<u32> for NumberSet {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        Self(numbers.into_iter().collect())
    }
}

impl Serialize for NumberSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NumberSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?)
            .ok_or_else(|| Error::custom("a list of numbers such as 0-3,9071 is needed"))
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
        #[test]
        fn sets_are_sets(
            a in proptest::collection::btree_set(0_u32..300, 0..12),
            b in proptest::collection::btree_set(0_u32..300, 0..12),
            up in proptest::sample::select(vec![0_u32, 64, 1000, 4096]),
        ) {
            let shifted = |cpus: &BTreeSet<u32>| -> BTreeSet<u32> { cpus.iter().map(|cpu| cpu + up).collect() };
            let (a, b) = (shifted(&a), shifted(&b));
            let set = |cpus: &BTreeSet<u32>| cpus.iter().copied().collect::<CpuSet>();
            let (x, y) = (set(&a), set(&b));
            proptest::prop_assert_eq!(x.iter().collect::<BTreeSet<u32>>(), a.clone());
            proptest::prop_assert_eq!(x.union(&y), set(&(&a | &b)));
            proptest::prop_assert_eq!(x.intersection(&y), set(&(&a & &b)));
            proptest::prop_assert_eq!(x.difference(&y), set(&(&a - &b)));
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

    #[test]
    fn a_list_of_numbers_is_read_back() {
        for list in ["", "7", "0-3,9071", "8191-8193,4294967294-4294967295"] {
            let set = NumberSet::parse(list).unwrap();
            assert_eq!(set.to_string(), list);
        }
        for bad in ["x", "3-1", "1,", "-", "0-4294967295", "0-131071,2000000"] {
            assert_eq!(NumberSet::parse(bad), None, "{bad}");
        }
    }
}
