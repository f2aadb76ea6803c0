//! Finds in a text what could identify a machine, and replaces it: hardware addresses, IP addresses and GUIDs in any
//! place, also within the names of interfaces, devices and handlers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Prefixes of interface names that systemd makes of a hardware address (`systemd.net-naming-scheme(7)`).
const PREFIXES: [&str; 6] = ["enx", "ibx", "slx", "wlx", "wwx", "ethx"];
/// The least number of digits of a hardware address that a driver cut off.
const CUT: usize = 6;

/// What was found in the texts of a machine, and what replaces it: the same everywhere, so that a handler still has the
/// name of its interface.
#[derive(Debug, Default)]
pub(super) struct StandIns {
    /// Hex digits in lower case, and as many that replace them.
    digits: BTreeMap<String, String>,
}

/// What is at a place in a text.
enum Found<'a> {
    /// A word with digits of an address: how much of it comes before them, and the digits.
    Digits(&'a str, &'a str),
    /// Six pairs of hex digits and what separates them.
    Address(&'a str),
    /// `f8b3781a-1e82-4818-a1c3-63d806ec15bb`.
    Guid(&'a str),
    /// Something else with a length, and what always replaces it.
    Other(usize, String),
}

impl StandIns {
    /// Of everything that the texts have, and of these hardware addresses.
    pub(super) fn of<'a>(texts: impl Iterator<Item = &'a str>, addresses: &[String]) -> Self {
        let mut found: BTreeSet<String> = addresses
            .iter()
            .map(|address| bare(address))
            .filter(|digits| is_mixed(digits))
            .collect();
        for text in texts {
            scan(
                text,
                |_| false,
                |place| {
                    if let Place::Found(Found::Digits(_, digits) | Found::Guid(digits)) = place {
                        found.insert(bare(digits));
                    }
                },
            );
        }
        let mut digits = BTreeMap::new();
        let mut last: BTreeMap<usize, u32> = BTreeMap::new();
        let mut found = found.into_iter().peekable();
        // In order, so that the order of a plan stays.
        while let Some(address) = found.next() {
            // One that a driver cut off has the digits of the whole one.
            if found.peek().is_some_and(|next| next.starts_with(&address)) {
                continue;
            }
            let number = last.entry(address.len()).or_default();
            *number += 1;
            // 0a: a locally administered address.
            let other = format!("0a{number:0width$x}", width = address.len() - 2);
            digits.insert(address, other);
        }
        Self { digits }
    }

    /// The text with everything replaced that could identify the machine.
    pub(super) fn hide(&self, text: &str) -> String {
        let mut hidden = String::with_capacity(text.len());
        scan(
            text,
            |digits| self.digits.contains_key(&bare(digits)),
            |place| match place {
                Place::Plain(text) => hidden.push_str(text),
                Place::Found(Found::Other(_, other)) => hidden.push_str(&other),
                Place::Found(Found::Digits(before, digits)) => {
                    hidden.push_str(before);
                    hidden.push_str(&self.stand_in(digits));
                }
                Place::Found(Found::Address(address) | Found::Guid(address)) => {
                    let mut digits = self.stand_in(address).into_bytes().into_iter();
                    let digit = |c: char| {
                        if c.is_ascii_hexdigit() {
                            digits.next().map_or('0', char::from)
                        } else {
                            c
                        }
                    };
                    hidden.extend(address.chars().map(digit));
                }
            },
        );
        hidden
    }

    /// As many digits in place of some; zeros for an address that only a text has.
    fn stand_in(&self, digits: &str) -> String {
        let digits = bare(digits);
        let known = self.digits.range(digits.clone()..).next();
        match known.filter(|(known, _)| known.starts_with(&digits)) {
            Some((_, other)) => other.chars().take(digits.len()).collect(),
            None => "0".repeat(digits.len()),
        }
    }
}

/// The hex digits in lower case.
fn bare(text: &str) -> String {
    text.chars()
        .filter(char::is_ascii_hexdigit)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// Whether the digits are not all the same, as those of no address and of the broadcast address are.
fn is_mixed(digits: &str) -> bool {
    digits
        .bytes()
        .any(|digit| Some(&digit) != digits.as_bytes().first())
}

/// A part of a text.
enum Place<'a> {
    Plain(&'a str),
    Found(Found<'a>),
}

/// Divides a text into what was found and the rest. `known`: whether digits that look like a number are an address.
fn scan<'a>(text: &'a str, known: impl Fn(&str) -> bool, mut each: impl FnMut(Place<'a>)) {
    let (mut plain, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        let word = rest.len()
            - rest
                .trim_start_matches(|c: char| c.is_ascii_alphanumeric())
                .len();
        let found = if word > 0 || rest.starts_with("::") {
            find(rest, word, &known)
        } else {
            None
        };
        let length = match &found {
            Some(Found::Digits(before, digits)) => before.len() + digits.len(),
            Some(Found::Address(text) | Found::Guid(text)) => text.len(),
            Some(Found::Other(length, _)) => *length,
            // A word as a whole, or a character between words.
            None => word.max(rest.chars().next().map_or(1, char::len_utf8)),
        };
        if let Some(found) = found {
            each(Place::Plain(&text[plain..at]));
            each(Place::Found(found));
            plain = at + length;
        }
        at += length;
    }
    each(Place::Plain(&text[plain..]));
}

/// What is at the start of a text, which is the start of a word of `word` letters and digits.
fn find<'a>(text: &'a str, word: usize, known: &impl Fn(&str) -> bool) -> Option<Found<'a>> {
    for separator in [':', '-'] {
        let (pairs, length) = groups(text, 2, separator);
        match pairs {
            6 => return Some(Found::Address(&text[..length])),
            7.. => return Some(Found::Other(length, zeros(&text[..length]))),
            _ => {}
        }
    }
    if let Some(guid) = guid(text) {
        return Some(Found::Guid(guid));
    }
    // The GUID of an InfiniBand device.
    if let (4, length) = groups(text, 4, ':') {
        return Some(Found::Other(length, zeros(&text[..length])));
    }
    let run = text
        .find(|c: char| !c.is_ascii_alphanumeric() && c != ':' && c != '.')
        .unwrap_or(text.len());
    let address = text[..run].trim_end_matches(['.', ':']);
    if address.parse::<Ipv4Addr>().is_ok() {
        return Some(Found::Other(address.len(), "0.0.0.0".to_owned()));
    }
    let address = if address.parse::<Ipv6Addr>().is_ok() {
        address
    } else {
        &text[..run]
    };
    if address != "::" && address.parse::<Ipv6Addr>().is_ok() {
        return Some(Found::Other(address.len(), "::".to_owned()));
    }
    let word = &text[..word];
    if let Some(prefix) = prefix(word) {
        let digits = hex(&word[prefix..]);
        if is_mixed(digits) {
            return Some(Found::Digits(&word[..prefix], digits));
        }
    }
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    let is_address =
        hex(word).len() == word.len() && [12, 16, 32].contains(&word.len()) && is_mixed(word);
    (is_address && (!is_number || known(word))).then_some(Found::Digits("", word))
}

/// How much of a word comes before the hardware address that it was made of: `enx`, `rocex`.
fn prefix(word: &str) -> Option<usize> {
    let letters = word.find(|c: char| !c.is_ascii_lowercase() || c == 'x')?;
    let end = letters + usize::from(word[letters..].starts_with('x'));
    let least = if PREFIXES.contains(&&word[..end]) {
        CUT
    } else {
        12
    };
    (end > 1 && end > letters && hex(&word[end..]).len() >= least).then_some(end)
}

/// The hex digits at the start of a text.
fn hex(text: &str) -> &str {
    &text[..text
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(text.len())]
}

/// How many groups of so many hex digits a text begins with, and how long they are.
fn groups(text: &str, digits: usize, separator: char) -> (usize, usize) {
    let (mut count, mut end) = (0, 0);
    loop {
        let start = if count == 0 { 0 } else { end + 1 };
        let Some(rest) = text.get(start..) else {
            return (count, end);
        };
        let group = rest.len()
            - rest
                .trim_start_matches(|c: char| c.is_ascii_alphanumeric())
                .len();
        if group != digits || hex(rest).len() < digits {
            return (count, end);
        }
        (count, end) = (count + 1, start + digits);
        if !text[end..].starts_with(separator) {
            return (count, end);
        }
    }
}

/// The GUID at the start of a text.
fn guid(text: &str) -> Option<&str> {
    let mut end = 0;
    for (at, digits) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if at > 0 {
            end += text[end..].strip_prefix('-').map(|_| 1)?;
        }
        end += Some(digits).filter(|digits| hex(&text[end..]).len() == *digits)?;
    }
    let ends = !text[end..].starts_with(|c: char| c.is_ascii_alphanumeric());
    ends.then_some(&text[..end])
}

/// The text with zeros for its hex digits.
fn zeros(text: &str) -> String {
    text.replace(|c: char| c.is_ascii_hexdigit(), "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text without identity, where it is the only one of its machine.
    fn hidden(text: &str) -> String {
        StandIns::of([text].into_iter(), &["00:0d:3a:6e:4d:4b".to_owned()]).hide(text)
    }

    #[test]
    fn addresses_of_interfaces_are_replaced_in_each_form() {
        for (text, expected) in [
            ("00:0d:3a:6e:4d:4b\n", "0a:00:00:00:00:01\n"),
            ("enx000d3a6e4d4b", "enx0a0000000001"),
            ("enx000d3a6e4d4b-TxRx-0", "enx0a0000000001-TxRx-0"),
            ("enx000d3a6e4", "enx0a0000000"),
            ("enx000d3a6e4d4bnp0", "enx0a0000000001np0"),
            ("x 00-0D-3A-6E-4D-4B y", "x 0a-00-00-00-00-01 y"),
            ("mlx5_000d3a6e4d4b", "mlx5_0a0000000001"),
            // Of other devices, by the order of their digits.
            (
                "ibx98039ba1b2c9-0 ibx98039ba1b2ca",
                "ibx0a0000000002-0 ibx0a0000000003",
            ),
            ("rocex98039b0300a1b2c9", "rocex0a00000000000001"),
            (
                "f8b3781a-1e82-4818-a1c3-63d806ec15bb/net",
                "0a000000-0000-0000-0000-000000000001/net",
            ),
        ] {
            assert_eq!(hidden(text), expected, "{text}");
        }
        let known = StandIns::of([].into_iter(), &["52:54:00:12:34:56".to_owned()]);
        assert_eq!(
            known.hide("enx525400123456 525400123456 525400123457"),
            "enx0a0000000001 0a0000000001 525400123457"
        );
    }

    #[test]
    fn addresses_of_nobody_become_zeros() {
        for (text, expected) in [
            ("a 52:54:00:12:34:56, b", "a 00:00:00:00:00:00, b"),
            ("a 52-54-00-12-34-56 b", "a 00-00-00-00-00-00 b"),
            ("80:00:02:08:fe:80:00:00:01", "00:00:00:00:00:00:00:00:00"),
            ("9803:9b03:00a1:b2c8\n", "0000:0000:0000:0000\n"),
            ("via 192.168.7.12: up", "via 0.0.0.0: up"),
            ("fe80::5054:ff:fe12:3456%eth0", "::%eth0"),
            ("2001:db8:0:0:0:0:0:1 x", ":: x"),
        ] {
            assert_eq!(hidden(text), expected, "{text}");
        }
    }

    #[test]
    fn what_nicpin_reads_is_no_address() {
        for text in [
            "  71:          0          0  IR-PCI-MSIX-0000:82:00.0   1-edge      mlx4-1@0000:82:00.0\n",
            "00000000,00000000,ffffffff\n",
            "0-5,12,14-15\n",
            " 24:  1  0  Hyper-V PCIe MSI 1073741824-edge      mlx5_async0@pci:0002:00:02.0\n",
            " 25: 4294967295 100000000000 0  PCI-MSIX-0000:41:00.0   0-edge      virtio0-input.0\n",
            "6.12.43+deb13-amd64\n",
            "8.0 GT/s PCIe\n",
            "0x98039ba1b2c9 0x15b3 ethernet.30be0000 exec max_rx 4\n",
            "a::b is no address here, nor is ::\n",
            "ff:ff:ff:ff é\u{202e} 😀",
        ] {
            assert_eq!(hidden(text), text.replace("a::b", "::"), "{text}");
        }
    }

    proptest::proptest! {
        /// What was hidden has nothing more to hide: the capture of a capture is the same.
        #[test]
        fn hidden_once_is_hidden(text in "(enx[0-9a-f]{6,12}|[0-9a-f]{12}|[0-9a-f:.-]{0,30}|[ \\-_,]|\\PC){0,8}") {
            let hide = |text: &str| StandIns::of([text].into_iter(), &[]).hide(text);
            let once = hide(&text);
            proptest::prop_assert_eq!(hide(&once), once);
        }
    }
}
