//! Sets of IRQ numbers and of queues.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// More numbers than this in a text are refused: no machine has as many IRQs or queues.
const MOST: usize = 1 << 17;

/// A set of numbers without the limit that CPUs have ([`crate::cpuset::MAX_CPUS`]); as text a list such as `0-3,9071`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumberSet(BTreeSet<u32>);

/// IRQs by number.
pub type IrqSet = NumberSet;
/// Queues of an interface by number.
pub type QueueSet = NumberSet;

impl NumberSet {
    /// The numbers from 0 up to but not including `end`.
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

impl fmt::Display for NumberSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<u32> = self.0.iter().copied().collect();
        let ranges = numbers.chunk_by(|a, b| a + 1 == *b);
        for (at, range) in ranges.enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match range {
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                number => number
                    .iter()
                    .try_for_each(|one| write!(f, "{comma}{one}"))?,
            }
        }
        Ok(())
    }
}

impl Serialize for NumberSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NumberSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| serde::de::Error::custom("a list of numbers such as 0-3,9071 is needed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
