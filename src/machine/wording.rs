//! Wording that plans and screens share.

use std::borrow::Cow;

use crate::cpuset::CpuSet;

/// `1 write`, `2 writes`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// `CPU 4`, `CPUs 4-7`.
pub fn cpu_list(cpus: &CpuSet) -> String {
    let s = if cpus.len() == 1 { "" } else { "s" };
    format!("CPU{s} {}", cpus.short())
}

/// A link's speed: `40 Gbit/s`, `2.5 Gbit/s`, `100 Mbit/s`.
pub fn speed(mbps: u32) -> String {
    if mbps >= 1000 && mbps % 100 == 0 {
        format!("{} Gbit/s", f64::from(mbps) / 1000.0)
    } else {
        format!("{mbps} Mbit/s")
    }
}

/// An interface as a command of nicpin takes it on a command line: what begins with a dash is an option elsewhere.
pub fn selector(name: &str) -> Cow<'_, str> {
    name.strip_prefix('-').map_or_else(
        || word(name),
        |rest| word(&format!("[-]{rest}")).into_owned().into(),
    )
}

/// The text as a shell takes it for one word: an interface may be named with nearly any character.
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
    use super::word;

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
