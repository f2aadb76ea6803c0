//! Finds in a text what could identify a machine, and replaces it: hardware addresses, IP addresses and GUIDs in any
//! place, also within the names of interfaces, devices and handlers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex_lite::Regex;

/// An address from the start of a word on is the only group of a pattern; what is behind it ends it. The first flag:
/// whether each such address gets other digits of its own, and not zeros as one of nobody's. The second: whether digits
/// without a letter are a number, unless they are known as an address.
const PATTERNS: [(&str, bool, bool); 10] = [
    (
        r"([\da-f]{2}(?::[\da-f]{2}){5,})(?:[^\da-z]|$)",
        false,
        false,
    ),
    (
        r"([\da-f]{2}(?:-[\da-f]{2}){5,})(?:[^\da-z]|$)",
        false,
        false,
    ),
    (
        r"([\da-f]{2}(?:\.[\da-f]{2}){5})(?:[^\da-z]|$)",
        false,
        true,
    ),
    (
        r"([\da-f]{4}(?:\.[\da-f]{4}){2})(?:[^\da-z]|$)",
        false,
        true,
    ),
    // f8b3781a-1e82-4818-a1c3-63d806ec15bb
    (
        r"([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})(?:[^\da-z]|$)",
        true,
        false,
    ),
    // The second half of an IPv6 address in a name: fe80--9a03-9bff-fea1-b2c3
    (
        r"([\da-f]{4}-[\da-f]{2}ff-fe[\da-f]{2}-[\da-f]{4})(?:[^\da-z]|$)",
        false,
        false,
    ),
    // The GUID of an InfiniBand device; more groups are an IPv6 address.
    (
        r"([\da-f]{4}(?::[\da-f]{4}){3})(?:[^\da-z:]|:[^\da-f]|:?$)",
        false,
        false,
    ),
    // Names that systemd makes of an address (`systemd.net-naming-scheme(7)`), which a driver may have cut off.
    (r"(?:enx|ibx|slx|wlx|wwx|ethx)([\da-f]{6,})", true, false),
    // After any letters: tap98039ba1b2c3
    (
        r"[\da-z]*?[g-z]([\da-f]{16}|[\da-f]{12})(?:[^\da-f]|$)",
        true,
        false,
    ),
    (
        r"([\da-f]{12}|[\da-f]{16}|[\da-f]{32})(?:[^\da-z]|$)",
        true,
        true,
    ),
];

/// As many bytes of a text are looked at for one address, which is more than the longest has.
const LONGEST: usize = 64;

static REGEXES: LazyLock<Vec<(Regex, bool, bool)>> = LazyLock::new(|| {
    let regex = |(pattern, own_digits, or_number)| {
        let regex = Regex::new(&format!("^(?i:{pattern})")).ok()?;
        Some((regex, own_digits, or_number))
    };
    PATTERNS.into_iter().filter_map(regex).collect()
});

/// Four numbers after `ip`, or with dots after any letters.
static NAMED_IP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let (any, dotted) = (r"\d{1,3}(?:[-_.]\d{1,3}){3}", r"\d{1,3}(?:\.\d{1,3}){3}");
    let pattern = format!(r"^(?i:ip[-_]?({any})|[a-z]+({dotted}))(?:[^\da-z._]|$)");
    Regex::new(&pattern).ok()
});

/// What was found in the texts of a machine, and what replaces it: the same everywhere, so that a handler still has the
/// name of its interface.
#[derive(Debug, Default)]
pub(super) struct StandIns {
    /// Hex digits in lower case, and as many that replace them.
    digits: BTreeMap<String, String>,
}

/// An address in a text.
#[derive(Clone, Copy)]
enum Found<'a> {
    /// Its hex digits, with what separates them; and whether it gets others of its own.
    Digits(&'a str, bool),
    /// An IP address, and what replaces it.
    Ip(&'a str, &'static str),
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
                |_, address| {
                    if let Some(Found::Digits(digits, true)) = address {
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
        let known = |digits: &str| self.known(&bare(digits)).is_some();
        scan(text, known, |plain, address| {
            hidden.push_str(plain);
            match address {
                Some(Found::Ip(_, other)) => hidden.push_str(other),
                Some(Found::Digits(address, _)) => {
                    let mut digits = self.stand_in(address).into_bytes().into_iter();
                    let digit = |c: char| match c {
                        ':' | '-' | '.' | '_' => c,
                        _ => digits.next().map_or('0', char::from),
                    };
                    hidden.extend(address.chars().map(digit));
                }
                None => {}
            }
        });
        hidden
    }

    /// As many digits in place of some; zeros for an address that only a text has.
    fn stand_in(&self, digits: &str) -> String {
        let digits = bare(digits);
        match self.known(&digits) {
            Some(other) => other.chars().take(digits.len()).collect(),
            None => "0".repeat(digits.len()),
        }
    }

    /// What replaces the known address that begins with these digits.
    fn known(&self, digits: &str) -> Option<&str> {
        let (known, other) = self.digits.range(digits.to_owned()..).next()?;
        known.starts_with(digits).then_some(other)
    }
}

/// As many digits of an address name it after a letter, where a name is too short for all.
const LEAST_DIGITS: usize = 8;

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

/// Passes on each part of a text without an address, with the address behind it. `known`: whether digits are those of
/// an address.
fn scan<'a>(
    text: &'a str,
    known: impl Fn(&str) -> bool,
    mut each: impl FnMut(&'a str, Option<Found<'a>>),
) {
    let (mut plain, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        let word = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let found = if word > 0 || rest.starts_with("::") {
            find(rest, &rest[..word], &known)
        } else {
            None
        };
        if let Some((before, found)) = found {
            each(&text[plain..at + before], Some(found));
            let (Found::Digits(address, _) | Found::Ip(address, _)) = found;
            at += before + address.len();
            plain = at;
        } else {
            // A word as a whole, or a character between words.
            at += word.max(rest.chars().next().map_or(1, char::len_utf8));
        }
    }
    each(&text[plain..], None);
}

/// The address at the start of a text or within its first word, and how far from the start.
fn find<'a>(
    text: &'a str,
    word: &'a str,
    known: &impl Fn(&str) -> bool,
) -> Option<(usize, Found<'a>)> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b":.-_".contains(byte);
    let text = &text[..text.bytes().take(LONGEST).take_while(is_part).count()];
    // Most words of a machine are short numbers.
    if text.len() < 6 && !text.contains("::") {
        return None;
    }
    for (regex, own_digits, or_number) in &*REGEXES {
        let Some(address) = regex.captures(text).and_then(|found| found.get(1)) else {
            continue;
        };
        let digits = address.as_str();
        let is_number = *or_number && !digits.contains(|c: char| c.is_ascii_alphabetic());
        if (is_mixed(digits) || !own_digits) && (!is_number || known(digits)) {
            return Some((address.start(), Found::Digits(digits, *own_digits)));
        }
    }
    // An IP address after letters: ip-10-1-2-3, ip10_1_2_3, host10.1.2.3
    if let Some(address) = NAMED_IP.as_ref().and_then(|regex| regex.captures(text)) {
        if let Some(digits) = address.get(1).or_else(|| address.get(2)) {
            let is_byte = |part: &str| part.parse::<u8>().is_ok();
            if digits.as_str().split(['.', '-', '_']).all(is_byte) {
                return Some((digits.start(), Found::Ip(digits.as_str(), "0.0.0.0")));
            }
        }
    }
    let run = text.split('-').next().unwrap_or_default();
    let whole = run.trim_end_matches(['.', ':']);
    if whole.parse::<Ipv4Addr>().is_ok() {
        return Some((0, Found::Ip(whole, "0.0.0.0")));
    }
    let is_address = |text: &&str| *text != "::" && text.parse::<Ipv6Addr>().is_ok();
    if let Some(address) = [whole, run].into_iter().find(is_address) {
        return Some((0, Found::Ip(address, "::")));
    }
    // The digits of a known address anywhere, whatever is between them: cafe98039ba1b2c3, vnic98.03.9b.a1.b2.c3,
    // vlan98_03_9b_a1_b2_c3, and veth98039ba1b2c, which was cut off
    (0..word.len().min(text.len())).find_map(|at| {
        let least = match text[..at].chars().next_back() {
            Some('g'..='z' | 'G'..='Z') => LEAST_DIGITS,
            _ => 12,
        };
        let address = first_digits(&text[at..], least)?;
        known(address).then_some((at, Found::Digits(address, true)))
    })
}

/// The text up to its twelfth hex digit, or up to the last one if it begins with at least so many.
fn first_digits(text: &str, least: usize) -> Option<&str> {
    let is_mark = |byte: &u8| b":.-_".contains(byte);
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit() || is_mark(byte);
    let run = &text[..text.bytes().take_while(is_digit).count()];
    let mut digits = run.match_indices(|c: char| c.is_ascii_hexdigit());
    let begins = run.starts_with(|c: char| c.is_ascii_hexdigit());
    let (end, _) = digits.nth(least - 1).filter(|_| begins)?;
    let end = digits.take(12 - least).last().map_or(end, |(end, _)| end);
    Some(&run[..=end])
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
            ("tap000d3a6e4d4b", "tap0a0000000001"),
            ("veth000D3A6E4D4B-rx", "veth0a0000000001-rx"),
            ("cafe000d3a6e4d4b5", "cafe0a00000000015"),
            ("veth000d3a6e4d4 tap000d3a6e", "veth0a000000000 tap0a000000"),
            (
                "000d3a6e,000d3a6e tap000d3a7",
                "000d3a6e,000d3a6e tap000d3a7",
            ),
            ("br.000d.3a6e.4d4b", "br.0a00.0000.0001"),
            ("8000.000d3a6e4d4b x", "8000.0a0000000001 x"),
            ("00.0d.3a.6e.4d.4b", "0a.00.00.00.00.01"),
            ("vnic00.0d.3a.6e.4d.4b", "vnic0a.00.00.00.00.01"),
            ("veth00-0d-3a-6e-4d-4b7", "veth0a-00-00-00-00-017"),
            ("p000d:3a6e:4d4b-rx", "p0a00:0000:0001-rx"),
            ("vlan00_0d_3a_6e_4d_4b", "vlan0a_00_00_00_00_01"),
            // Digits alone are an address after letters.
            (
                "tap525400123456 veth98039b0300a1b2c9",
                "tap0a0000000002 veth0a00000000000001",
            ),
            ("0x98039ba1b2c9", "0x0a0000000002"),
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
            known
                .hide("enx525400123456 525400123456 525400123457 52.54.00.12.34.56 1020.3040.5060"),
            "enx0a0000000001 0a0000000001 525400123457 0a.00.00.00.00.01 1020.3040.5060"
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
            ("fe80--9a03-9bff-fea1-b2c3", "fe80--0000-0000-0000-0000"),
            ("ip-10-1-2-3 ip10_1_2_3", "ip-0.0.0.0 ip0.0.0.0"),
            ("host10.1.2.3-rx", "host0.0.0.0-rx"),
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
            "0x15b3 ethernet.30be0000 exec max_rx 4\n",
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
