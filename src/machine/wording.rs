//! Wording that plans and screens share.

use std::borrow::Cow;
use std::fmt::Display;

use itertools::Itertools as _;

use crate::cpuset::CpuSet;

/// `1 write`, `2 writes`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", one_or(number, "", "s"))
}

/// `one` for 1, else `many`: `is`, `are`.
pub fn one_or<'a>(number: usize, one: &'a str, many: &'a str) -> &'a str {
    if number == 1 { one } else { many }
}

/// `CPU 4`, `CPUs 4-7`.
pub fn cpu_list(cpus: &CpuSet) -> String {
    let s = one_or(cpus.len(), "", "s");
    format!("CPU{s} {}", cpus.short())
}

/// Joins names by `between`; the first three and the number of others, unless `all`.
pub fn few(between: &str, names: impl IntoIterator<Item: Display>, all: bool) -> String {
    let names = names.into_iter().map(|name| name.to_string()).collect_vec();
    match names.len() {
        many if many > MOST_NAMES && !all => {
            let others = many - FIRST_NAMES;
            format!("{} and {others} others", names[..FIRST_NAMES].join(between))
        }
        _ => names.join(between),
    }
}

const MOST_NAMES: usize = 4;
const FIRST_NAMES: usize = 3;

/// A link's speed: `40 Gbit/s`, `2.5 Gbit/s`, `100 Mbit/s`.
pub fn speed(mbps: u32) -> String {
    if mbps >= 1000 && mbps % 100 == 0 {
        format!("{} Gbit/s", f64::from(mbps) / 1000.0)
    } else {
        format!("{mbps} Mbit/s")
    }
}

/// The word that `typed` may be a misspelling of: at most two letters, and less than half of them, differ.
pub fn nearest<'a>(typed: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let words = words.into_iter();
    let (distance, word) = words
        .map(|word| (strsim::damerau_levenshtein(typed, word), word))
        .min()?;
    (distance <= 2 && distance * 2 < typed.len()).then_some(word)
}

/// An interface as a selector, since a leading dash begins an option.
pub fn selector(name: &str) -> Cow<'_, str> {
    name.strip_prefix('-').map_or_else(
        || word(name),
        |rest| word(&format!("[-]{rest}")).into_owned().into(),
    )
}

/// Quotes a word of a shell: an interface's name may have nearly any character.
pub fn word(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_.-:@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::{few, word};

    #[test]
    fn of_many_names_there_are_three_and_a_number() {
        assert_eq!(few(", ", 1..5, false), "1, 2, 3, 4");
        assert_eq!(few(", ", 1..33, false), "1, 2, 3 and 29 others");
        assert_eq!(few(", ", 1..6, true), "1, 2, 3, 4, 5");
        assert_eq!(few(", ", [""; 0], false), "");
    }

    #[test]
    fn odd_names_are_quoted() {
        assert_eq!(
            word("/sys/class/net/eth0.5@x/queues"),
            "/sys/class/net/eth0.5@x/queues"
        );
        assert_eq!(
            word("/sys/class/net/a;b'c/q"),
            r"'/sys/class/net/a;b'\''c/q'"
        );
        assert_eq!(word(""), "''");
    }
}
