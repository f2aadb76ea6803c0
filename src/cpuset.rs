//! Sets of CPUs, and the two forms in which the kernel writes them down: the list (`0-3,8`) and
//! the mask (`00000000,0000010f`).
//!
//! This is the only place in nicpin where either form is parsed or made. Parsing is lenient where
//! the kernel and people vary (leading zeros, `0x`, missing groups, a trailing NUL); printing is
//! strict, because `smp_affinity`, `rps_cpus` and `xps_cpus` answer a mask with more groups than the
//! kernel has CPUs with EOVERFLOW even when the extra groups are zero (`bitmap_parse` in
//! `lib/bitmap-str.c`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// CPU ids from here on are refused: eight times the largest `NR_CPUS` of any architecture, and small
/// enough that a typing error cannot ask for gigabytes.
pub const MAX_CPUS: u32 = 1 << 16;

/// A set of logical CPUs, by id. Equality is equality of sets: how wide the text was does not matter.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct CpuSet {
    /// 64 CPUs each, lowest first; the last word is never zero.
    words: Vec<u64>,
}

/// NUMA nodes by id: their lists and masks have the kernel's same forms.
pub type NodeSet = CpuSet;

/// A text that is neither a CPU list nor a CPU mask.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}: {reason}")]
pub struct CpuSetError {
    /// The text, cut after 60 characters.
    pub text: String,
    /// What was expected in its place.
    pub expected: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

const LIST: &str = "a CPU list such as 0-3,8";
const MASK: &str = "a CPU mask such as 00000000,0000010f";

impl CpuSetError {
    fn new(text: &str, expected: &'static str, reason: impl Into<String>) -> Self {
        Self { text: shown(text), expected, reason: reason.into() }
    }
}

impl CpuSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { words: Vec::new() }
    }

    /// The set of one CPU.
    pub fn single(cpu: u32) -> Self {
        [cpu].into_iter().collect()
    }

    /// The CPUs from 0 up to but not including `end`.
    pub fn below(end: u32) -> Self {
        (0..end).collect()
    }

    /// Parses the kernel's list form (`bitmap_parselist`): numbers, ranges, and ranges with a stride
    /// (`0-31:1/2`). White space and a NUL at either end are ignored; so is `(null)`, which `nohz_full`
    /// prints when it is not in use. Empty text is the empty set.
    pub fn parse_list(text: &str) -> Result<Self, CpuSetError> {
        let trimmed = trim(text);
        let mut set = Self::new();
        if trimmed == "(null)" {
            return Ok(set);
        }
        let error = |reason: String| CpuSetError::new(trimmed, LIST, reason);
        for part in trimmed.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (range, stride) = part.split_once(':').map_or((part, None), |(r, s)| (r, Some(s)));
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (parse_cpu(first).map_err(error)?, parse_cpu(last).map_err(error)?);
            if last < first {
                return Err(error(format!("{first}-{last} runs downwards")));
            }
            let (used, group) = match stride {
                None => (1, 1),
                Some(stride) => {
                    parse_stride(stride).ok_or_else(|| error(format!("`{}` is no stride", shown(stride))))?
                }
            };
            for cpu in first..=last {
                if (cpu - first) % group < used {
                    set.insert(cpu);
                }
            }
        }
        Ok(set)
    }

    /// Parses the kernel's mask form (`bitmap_parse`): groups of up to eight hex digits, most significant
    /// first. A leading `0x`, short and empty groups and a single group of any length are accepted.
    pub fn parse_mask(text: &str) -> Result<Self, CpuSetError> {
        let trimmed = trim(text);
        let error = |reason: &str| CpuSetError::new(trimmed, MASK, reason);
        let digits = trimmed.strip_prefix("0x").or_else(|| trimmed.strip_prefix("0X"));
        let digits = digits.unwrap_or(trimmed);
        if digits.is_empty() {
            return Err(error("it is empty"));
        }
        if let Some(words) = parse_full_groups(digits.as_bytes()) {
            return Ok(Self { words });
        }
        let grouped = digits.contains(',');
        let mut words = Vec::new();
        for (base, group) in (0..).step_by(32).zip(digits.rsplit(',')) {
            if grouped && group.len() > 8 {
                return Err(error("a group has more than eight digits"));
            }
            for (bit, digit) in (base..).step_by(4).zip(group.bytes().rev()) {
                let value = char::from(digit).to_digit(16);
                let value = value.ok_or_else(|| error("a character is not a hex digit"))?;
                if value == 0 {
                    continue;
                }
                if bit + value.ilog2() >= MAX_CPUS {
                    return Err(error("it is wider than any kernel's"));
                }
                let word = bit as usize / 64;
                if word >= words.len() {
                    words.resize(word + 1, 0);
                }
                words[word] |= u64::from(value) << (bit % 64);
            }
        }
        Ok(Self { words })
    }

    /// The mask as the kernel prints and accepts it at `width`; `None` when a CPU does not fit.
    pub fn to_mask(&self, width: MaskWidth) -> Option<String> {
        if self.last().is_some_and(|last| last >= width.digits * 4) {
            return None;
        }
        let length = width.digits as usize;
        // Of a wide mask nearly all digits are 0: they are laid down first, and the others put in.
        let mut mask = "00000000,".repeat(length.div_ceil(8)).into_bytes();
        mask.pop();
        mask.drain(..(8 - length % 8) % 8);
        for (place, &word) in (0..).step_by(16).zip(&self.words).filter(|(_, word)| **word != 0) {
            for digit in (0..16).filter(|digit| word >> (digit * 4) & 0xf != 0) {
                let place = place + digit;
                let at = mask.len() - 1 - place - place / 8;
                mask[at] = b"0123456789abcdef"[(word >> (digit * 4) & 0xf) as usize];
            }
        }
        String::from_utf8(mask).ok()
    }

    /// Adds a CPU.
    pub fn insert(&mut self, cpu: u32) {
        let word = cpu as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (cpu % 64);
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.words.get(cpu as usize / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// How many CPUs are in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is no CPU in the set.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0_u32..).zip(&self.words).flat_map(|(index, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    index * 64 + bit
                })
            })
        })
    }

    /// The lowest CPU.
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    /// The highest CPU.
    pub fn last(&self) -> Option<u32> {
        let word = self.words.last()?;
        let index = u32::try_from(self.words.len() - 1).ok()?;
        Some(index * 64 + 63 - word.leading_zeros())
    }

    /// The CPUs in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        union.add(other);
        union
    }

    /// Adds the CPUs of another set.
    pub fn add(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    /// The set as words of 64 CPUs, lowest first, without empty words at the end: the same for equal sets.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// The CPUs in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self::normal(self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect())
    }

    /// The CPUs in this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let others = other.words.iter().copied().chain(std::iter::repeat(0));
        Self::normal(self.words.iter().zip(others).map(|(a, b)| a & !b).collect())
    }

    /// Whether every CPU of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        let others = other.words.iter().copied().chain(std::iter::repeat(0));
        self.words.iter().zip(others).all(|(a, b)| a & !b == 0)
    }

    /// Whether some CPU is in both sets.
    pub fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    fn normal(mut words: Vec<u64>) -> Self {
        while words.last() == Some(&0) {
            words.pop();
        }
        Self { words }
    }
}

/// The text as it can stand in a line of an error: no control characters, at most 60 characters.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(61).flat_map(char::escape_default).collect();
    if shown.len() > 60 {
        shown.truncate(57);
        shown.push_str("...");
    }
    shown
}

fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\0')
}

fn parse_cpu(text: &str) -> Result<u32, String> {
    let cpu: u32 = match text.trim().parse() {
        Ok(cpu) if text.trim().starts_with(|c: char| c.is_ascii_digit()) => cpu,
        _ => return Err(format!("`{}` is no CPU number", shown(text.trim()))),
    };
    if cpu < MAX_CPUS { Ok(cpu) } else { Err(format!("CPU {cpu} is beyond any kernel's")) }
}

/// The words of a mask as kernels print it: groups of eight digits, of which only the first may be shorter. `None`
/// for any other, and for one that is wider than any kernel's.
fn parse_full_groups(mask: &[u8]) -> Option<Vec<u64>> {
    let mut words = Vec::with_capacity(mask.len().div_ceil(18));
    let mut end = mask.len();
    for base in (0..MAX_CPUS as usize).step_by(32) {
        let start = if end > 9 { end - 8 } else { 0 };
        let group = &mask[start..end];
        // Nearly all groups of a wide mask.
        if group != b"00000000" {
            let mut bits = 0_u64;
            for &digit in group {
                bits = bits << 4 | u64::from(char::from(digit).to_digit(16)?);
            }
            if group.is_empty() || group.len() > 8 {
                return None;
            }
            if bits != 0 {
                words.resize(base / 64 + 1, 0);
                words[base / 64] |= bits << (base % 64);
            }
        }
        if start == 0 {
            return Some(words);
        }
        if mask[start - 1] != b',' {
            return None;
        }
        end = start - 1;
    }
    None
}

/// `1/2`: the first CPU of every two.
fn parse_stride(text: &str) -> Option<(u32, u32)> {
    let (used, group) = text.split_once('/')?;
    let (used, group) = (used.parse().ok()?, group.parse().ok()?);
    (0 < used && used <= group).then_some((used, group))
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
        for cpu in cpus {
            self.insert(cpu);
        }
    }
}

/// The list form, as the kernel prints it (`%*pbl`).
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut digits = itoa::Buffer::new();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            f.write_str(separator)?;
            f.write_str(digits.format(first))?;
            if first != last {
                f.write_str("-")?;
                f.write_str(digits.format(last))?;
            }
            separator = ",";
        }
        Ok(())
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

/// How many hex digits a mask file holds. The kernel prints `nr_cpu_ids` bits (some kernels `NR_CPUS`),
/// in groups of eight digits of which only the first may be shorter (`bitmap_string` in `lib/vsprintf.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskWidth {
    digits: u32,
}

impl MaskWidth {
    /// The width that the kernel uses when it knows `cpus` possible CPUs (`nr_cpu_ids`).
    pub fn for_cpus(cpus: u32) -> Self {
        Self { digits: cpus.div_ceil(4).max(1) }
    }

    /// The width of a mask as a file holds it now; `None` when the text is no mask.
    pub fn of(mask: &str) -> Option<Self> {
        CpuSet::parse_mask(mask).ok().and_then(|_| Self::of_valid(mask))
    }

    /// The same for a text that has been parsed.
    pub(crate) fn of_valid(mask: &str) -> Option<Self> {
        let mask = trim(mask);
        let first = mask.find(',').unwrap_or(mask.len());
        let groups = memchr::memchr_iter(b',', &mask.as_bytes()[first..]).count();
        let digits = u32::try_from(first + groups * 8).ok()?;
        (digits > 0).then_some(Self { digits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        for (given, expected) in [
            ("", ""),
            ("\n", ""),
            ("\0\n", ""),
            ("(null)\n", ""),
            ("0", "0"),
            ("0-5\n", "0-5"),
            ("0-1,3,8-9,11\n", "0-1,3,8-9,11"),
            (" 3 , 1-2 ", "1-3"),
            ("0-31:1/2", "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30"),
            ("0-7:2/4", "0-1,4-5"),
            ("63-64,128", "63-64,128"),
            ("5,5,5-6", "5-6"),
        ] {
            assert_eq!(CpuSet::parse_list(given).unwrap().to_string(), expected, "{given:?}");
        }
        for bad in
            ["a", "1-", "-1", "3-1", "1--2", "0x3", "+1", "0-4294967295", "65536", "0-7:0/2", "0-7:3/2"]
        {
            assert!(CpuSet::parse_list(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn masks() {
        for (given, expected) in [
            ("040", "6"),
            ("fff\n", "0-11"),
            ("00000000,000000f0", "4-7"),
            ("f0000000,00000000", "60-63"),
            ("0xf00", "8-11"),
            ("F00", "8-11"),
            ("1,", "32"),
            (",f", "0-3"),
            ("ff,00000000,00000001", "0,64-71"),
            ("0000000000000003", "0-1"),
            ("0", ""),
        ] {
            assert_eq!(CpuSet::parse_mask(given).unwrap().to_string(), expected, "{given:?}");
        }
        for bad in ["", "\n", "g", "0-1", "1 2", "000000001,0", "f0zz", "0x"] {
            assert!(CpuSet::parse_mask(bad).is_err(), "{bad:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_mask_of_any_width_is_read_back(
            cpus in proptest::collection::btree_set(0_u32..4096, 0..40),
            wider in 0_u32..200,
        ) {
            let set: CpuSet = cpus.iter().copied().collect();
            let mask = set.to_mask(MaskWidth::for_cpus(set.last().map_or(1, |last| last + 1) + wider)).unwrap();
            proptest::prop_assert_eq!(&CpuSet::parse_mask(&mask).unwrap(), &set);
            proptest::prop_assert!(mask.split(',').skip(1).all(|group| group.len() == 8));
            // The lenient way to the same set.
            let short: Vec<&str> = mask.split(',').map(|group| group.trim_start_matches('0')).collect();
            proptest::prop_assert_eq!(&CpuSet::parse_mask(&format!("0x{}", short.join(","))).unwrap_or_default(), &set);
        }
    }

    /// Strings from kernels of 2, 12, 64 and 72 possible CPUs, and of 4,096-bit kernels.
    #[test]
    fn masks_are_printed_as_the_kernel_does() {
        for (cpus, nr_cpu_ids, expected) in [
            ("0", 2, "1"),
            ("", 2, "0"),
            ("6", 12, "040"),
            ("0-11", 12, "fff"),
            ("4-7", 64, "00000000,000000f0"),
            ("36-39", 64, "000000f0,00000000"),
            ("71", 72, "80,00000000,00000000"),
            ("31-32", 33, "1,80000000"),
            ("0", 1, "1"),
        ] {
            let set = CpuSet::parse_list(cpus).unwrap();
            assert_eq!(set.to_mask(MaskWidth::for_cpus(nr_cpu_ids)).unwrap(), expected);
        }
        assert_eq!(CpuSet::single(12).to_mask(MaskWidth::for_cpus(12)), None);
    }

    #[test]
    fn the_width_is_that_of_the_file() {
        for (now, expected) in [
            ("fff\n", "040"),
            ("00000000,00000fff", "00000000,00000040"),
            ("00,00000000,00000000", "00,00000000,00000040"),
        ] {
            let width = MaskWidth::of(now).unwrap();
            assert_eq!(CpuSet::single(6).to_mask(width).unwrap(), expected);
        }
        assert_eq!(MaskWidth::of("zz"), None);
        assert_eq!(MaskWidth::of(""), None);
    }

    #[test]
    fn algebra() {
        let (a, b) = (CpuSet::parse_list("0-3,70").unwrap(), CpuSet::parse_list("2-5").unwrap());
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

    #[test]
    fn a_long_bad_text_is_cut() {
        let error = CpuSet::parse_list(&"x".repeat(500)).unwrap_err();
        assert!(error.to_string().len() < 240, "{error}");
    }
}
