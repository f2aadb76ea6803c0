//! The list form and the mask form of a set of CPUs.

use std::fmt::{self, Display};
use std::iter::repeat;
use std::sync::Arc;

use itertools::Itertools as _;

use crate::cpuset::{CpuSet, MAX_CPUS, NumberSet};

const LIST: &str = "a CPU list such as 0-3,8";
const MASK: &str = "a CPU mask such as 00000000,0000010f";

/// A text that is neither a CPU list nor a CPU mask.
fn refused(text: &str, expected: &str, reason: impl Display) -> String {
    format!("`{}` is not {expected}: {reason}", shown(text))
}

impl CpuSet {
    /// Parses the kernel's list form (`bitmap_parselist`): numbers, ranges, and ranges with a stride (`0-31:1/2`, also
    /// `0-31:2`). Ignores white space and a NUL at either end, and `(null)`, which an unused `nohz_full` prints. Empty
    /// text is the empty set.
    pub fn parse_list(text: &str) -> Result<Self, String> {
        let trimmed = trim(text);
        let error = |reason: String| refused(trimmed, LIST, reason);
        let (mut set, mut named) = (Self::new(), 0);
        for part in trimmed.split(',').map(str::trim) {
            if part.is_empty() || trimmed == "(null)" {
                continue;
            }
            let (range, stride) = part.split_once(':').unwrap_or((part, "1"));
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let first = parse_cpu(first).map_err(error)?;
            let last = parse_cpu(last).map_err(error)?;
            if last < first {
                return Err(error(format!("{first}-{last} runs downwards")));
            }
            // A kernel's list names each CPU once.
            named += last - first + 1;
            if named > 2 * MAX_CPUS {
                return Err(error(format!(
                    "it names CPUs again and again; no kernel has more than {MAX_CPUS}"
                )));
            }
            let (used, group) = parse_stride(stride)
                .ok_or_else(|| error(format!("`{}` is not a stride", shown(stride))))?;
            set.extend((first..=last).filter(|cpu| (cpu - first) % group < used));
        }
        Ok(set)
    }

    /// The list form for people; see [`short`].
    pub fn short(&self) -> String {
        short(self.iter())
    }

    /// Parses the kernel's mask form (`bitmap_parse`): groups of up to eight hex digits, most significant first.
    /// Accepts a leading `0x`, short and empty groups and a single group of any length.
    pub fn parse_mask(text: &str) -> Result<Self, String> {
        let mask = trim(text);
        let digits = mask.strip_prefix("0x").or_else(|| mask.strip_prefix("0X"));
        Self::parse_groups(mask, digits.unwrap_or(mask), false)
    }

    /// Parses a mask that a kernel printed (`bitmap_string`), and refuses what no kernel prints, so that a damaged file
    /// is not read as a mask.
    pub fn parse_kernel_mask(text: &str) -> Result<Self, String> {
        Self::parse_groups(trim(text), trim(text), true)
    }

    fn parse_groups(mask: &str, digits: &str, of_kernel: bool) -> Result<Self, String> {
        let error = |reason: &str| refused(mask, MASK, reason);
        if digits.is_empty() {
            return Err(error("it is empty"));
        }
        let is_grouped = of_kernel || digits.contains(',');
        let groups = digits.as_bytes().rsplit(|&digit| digit == b',');
        let mut set = Self::new();
        for (base, group) in (0..).step_by(32).zip(groups) {
            if is_grouped && group.len() > 8 {
                return Err(error("a group has more than eight digits"));
            }
            if of_kernel && group.is_empty() {
                return Err(error("a group has no digits"));
            }
            for (bit, digits) in (base..).step_by(32).zip(group.rchunks(8)) {
                let value = digits.iter().try_fold(0, |value, &digit| {
                    Some(value << 4 | u64::from(char::from(digit).to_digit(16)?))
                });
                let value = value.ok_or_else(|| error("a character is not a hex digit"))?;
                if bit >= MAX_CPUS && (of_kernel || value != 0) {
                    return Err(error("it is wider than any kernel's"));
                }
                if value != 0 {
                    set.insert_bits(bit, value);
                }
            }
        }
        Ok(set)
    }

    /// The mask as the kernel prints and accepts it at `width`; `None` if a CPU does not fit.
    pub fn to_mask(&self, width: MaskWidth) -> Option<String> {
        if self.last().is_some_and(|last| last >= width.digits * 4) {
            return None;
        }
        let halves = (self.0.iter()).flat_map(|word| [word & u64::from(u32::MAX), word >> 32]);
        let groups = width.digits.div_ceil(8) as usize;
        let mut groups = halves.chain(repeat(0)).take(groups).collect_vec();
        groups.reverse();
        let whole = groups
            .iter()
            .format_with(",", |group, f| f(&format_args!("{group:08x}")));
        let excess = (8 - width.digits % 8) % 8;
        Some(whole.to_string().split_off(excess as usize))
    }
}

/// For an error message: without control characters, at most 60 characters.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(61)
        .flat_map(char::escape_default)
        .collect();
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
    let text = text.trim();
    match text.parse() {
        Ok(cpu) if cpu >= MAX_CPUS => Err(format!("CPU {cpu} is beyond any kernel's")),
        Ok(cpu) if !text.starts_with('+') => Ok(cpu),
        _ => Err(format!("`{}` is not a CPU number", shown(text))),
    }
}

/// `1/2`: the first CPU of every two.
fn parse_stride(text: &str) -> Option<(u32, u32)> {
    let (used, group) = text.split_once('/').unwrap_or(("1", text));
    let (used, group) = (used.parse().ok()?, group.parse().ok()?);
    (0 < used && used <= group).then_some((used, group))
}

/// The list form for people: four or more ascending numbers at equal distances are a range with a stride, such as
/// `0-110:2`.
pub fn short(numbers: impl Iterator<Item = u32>) -> String {
    let runs = runs(numbers).collect_vec();
    let mut parts = Vec::new();
    let mut rest = runs.as_slice();
    while let [run @ (first, _), after @ ..] = rest {
        let step = after.first().map_or(0, |(next, _)| next - first);
        let is_step = |pair: &&[(u32, u32)]| {
            pair.iter().all(|(first, last)| first == last) && pair[1].0 - pair[0].0 == step
        };
        let equal = rest.windows(2).take_while(is_step).count();
        if equal >= 3 {
            parts.push(format!("{first}-{}:{step}", rest[equal].0));
            rest = &rest[equal + 1..];
        } else {
            parts.push(range(*run));
            rest = after;
        }
    }
    parts.join(",")
}

/// First and last number of each run of ascending numbers without a gap.
fn runs(numbers: impl Iterator<Item = u32>) -> impl Iterator<Item = (u32, u32)> {
    numbers
        .map(|number| (number, number))
        .coalesce(|(first, last), next| match next {
            (number, _) if number == last + 1 => Ok((first, number)),
            _ => Err(((first, last), next)),
        })
}

fn range((first, last): (u32, u32)) -> String {
    if first == last {
        first.to_string()
    } else {
        format!("{first}-{last}")
    }
}

/// The list form, as the kernel prints it (`%*pbl`).
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", runs(self.iter()).map(range).format(","))
    }
}

impl fmt::Display for NumberSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", runs(self.iter().copied()).map(range).format(","))
    }
}

/// Hex digits of a mask file. The kernel prints `nr_cpu_ids` bits (some kernels `NR_CPUS`), in groups of eight digits
/// of which only the first may be shorter (`bitmap_string` in `lib/vsprintf.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskWidth {
    digits: u32,
}

impl MaskWidth {
    /// The width for `cpus` possible CPUs (`nr_cpu_ids`).
    pub fn for_cpus(cpus: u32) -> Self {
        let digits = cpus.div_ceil(4).max(1);
        Self { digits }
    }

    /// Number of hex digits.
    pub fn digits(self) -> u32 {
        self.digits
    }
}

/// The text of a mask file, the CPUs in it and its width.
#[derive(Debug, Clone, PartialEq)]
pub struct MaskFile {
    /// Without white space at the ends. Shared with the plan: it is long on large machines.
    pub text: Arc<str>,
    pub cpus: CpuSet,
    pub width: MaskWidth,
}

impl MaskFile {
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = trim(text);
        // Eight at most, as in each group.
        let first = text.find(',').unwrap_or(text.len());
        let digits = first + 8 * text.matches(',').count();
        Ok(Self {
            cpus: CpuSet::parse_kernel_mask(text)?,
            text: text.into(),
            width: MaskWidth {
                digits: u32::try_from(digits).unwrap_or(u32::MAX),
            },
        })
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
            assert_eq!(
                CpuSet::parse_list(given).unwrap().to_string(),
                expected,
                "{given:?}"
            );
        }
        for bad in [
            "a",
            "1-",
            "-1",
            "3-1",
            "1--2",
            "0x3",
            "+1",
            "0-4294967295",
            "8192",
            "0-7:0/2",
            "0-7:3/2",
        ] {
            assert!(CpuSet::parse_list(bad).is_err(), "{bad:?}");
        }
        let again = CpuSet::parse_list(&"0-8191:1/2,".repeat(20_000)).unwrap_err();
        assert!(again.contains("no kernel has more than 8192"), "{again}");
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
            assert_eq!(
                CpuSet::parse_mask(given).unwrap().to_string(),
                expected,
                "{given:?}"
            );
        }
        for bad in ["", "\n", "g", "0-1", "1 2", "000000001,0", "f0zz", "0x"] {
            assert!(CpuSet::parse_mask(bad).is_err(), "{bad:?}");
        }
    }

    /// People may type shorter or longer masks than kernels print.
    #[test]
    fn masks_of_kernels() {
        let widest = format!("80000000{}", ",00000000".repeat(255));
        for good in [
            "0",
            "fff\n",
            "00000000,000000f0",
            "ff,00000000,00000001",
            "1,0",
            "F00",
            &widest,
        ] {
            assert_eq!(
                CpuSet::parse_kernel_mask(good),
                CpuSet::parse_mask(good),
                "{good:?}"
            );
        }
        let wider = format!("0,{widest}");
        for (bad, reason) in [
            (",,,", "a group has no digits"),
            ("ff,,00000001", "a group has no digits"),
            ("1,", "a group has no digits"),
            ("000000000000000000000f", "more than eight digits"),
            ("000000001,00000000", "more than eight digits"),
            (&*wider, "wider than any kernel's"),
            ("0xf00", "not a hex digit"),
            ("\n", "it is empty"),
        ] {
            let error = CpuSet::parse_kernel_mask(bad).unwrap_err();
            assert!(
                error.contains(reason) && !error.contains('\n'),
                "{bad:?}: {error}"
            );
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
            let short: Vec<&str> = mask.split(',').map(|group| group.trim_start_matches('0')).collect();
            proptest::prop_assert_eq!(&CpuSet::parse_mask(&format!("0x{}", short.join(","))).unwrap_or_default(), &set);
        }
    }

    /// From kernels of 2, 12, 64 and 72 possible CPUs, and from 4,096-bit kernels.
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
            assert_eq!(
                set.to_mask(MaskWidth::for_cpus(nr_cpu_ids)).unwrap(),
                expected
            );
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
            let width = MaskFile::parse(now).unwrap().width;
            assert_eq!(CpuSet::single(6).to_mask(width).unwrap(), expected);
        }
        assert!(MaskFile::parse("zz").is_err() && MaskFile::parse("").is_err());
    }

    #[test]
    fn a_long_bad_text_is_cut() {
        let error = CpuSet::parse_list(&"x".repeat(500)).unwrap_err();
        assert!(error.len() < 240, "{error}");
    }
}
