//! Finds and replaces in a text what could identify a machine: hardware addresses, IP addresses and GUIDs, also within
//! the names of interfaces, devices and handlers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::sync::LazyLock;

use regex_lite::Regex;

use self::AddressKind::{Digits, Ip, Own};

const END: &str = r"(?:[^\da-z]|$)";
const END_OF_IP: &str = r"(?-i:[^\da-z._]|$)";
const IPV4: AddressKind = Ip("0.0.0.0");

/// Patterns of addresses: each begins a word, its only group is the address, and the second text must follow it. The
/// flag: whether digits without a letter are a number, unless known as an address.
const PATTERNS: [(&str, &str, AddressKind, bool); 10] = [
    (
        r"([\da-f]{2}(?::[\da-f]{2}){5,}|[\da-f]{2}(?:-[\da-f]{2}){5,})",
        END,
        Digits,
        false,
    ),
    (
        r"([\da-f]{2}(?:\.[\da-f]{2}){5}|[\da-f]{4}(?:\.[\da-f]{4}){2})",
        END,
        Digits,
        true,
    ),
    // f8b3781a-1e82-4818-a1c3-63d806ec15bb
    (
        r"([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})",
        END,
        Own,
        false,
    ),
    // The second half of an IPv6 address in a name: fe80--9a03-9bff-fea1-b2c3
    (
        r"([\da-f]{4}-[\da-f]{2}ff-fe[\da-f]{2}-[\da-f]{4})",
        END,
        Digits,
        false,
    ),
    // The GUID of an InfiniBand device; more groups are an IPv6 address.
    (
        r"([\da-f]{4}(?::[\da-f]{4}){3})",
        r"(?:[^\da-z:]|:[^\da-f]|:?$)",
        Digits,
        false,
    ),
    // Names that systemd makes of an address (`systemd.net-naming-scheme(7)`), which a driver may have cut off.
    (r"(?:enx|ibx|slx|wlx|wwx|ethx)([\da-f]{6,})", "", Own, false),
    // After any letters: tap98039ba1b2c3
    (
        r"[\da-z]*?[g-z]([\da-f]{16}|[\da-f]{12})",
        r"(?:[^\da-f]|$)",
        Own,
        false,
    ),
    (r"([\da-f]{12}|[\da-f]{16}|[\da-f]{32})", END, Own, true),
    // Four numbers after letters: ip-10-1-2-3, ip10_1_2_3, host10.1.2.3
    (
        r"ip[-_]?(\d{1,3}(?:[-_.]\d{1,3}){3})",
        END_OF_IP,
        IPV4,
        false,
    ),
    (r"[a-z]+(\d{1,3}(?:\.\d{1,3}){3})", END_OF_IP, IPV4, false),
];

/// Bytes of a text to search for one address: more than the longest has.
const LONGEST: usize = 64;
/// Digits of a known address that suffice after a letter, if the name is too short for all.
const LEAST_DIGITS: usize = 8;

static REGEXES: LazyLock<Vec<(Regex, AddressKind, bool)>> = LazyLock::new(|| {
    let regex = |(pattern, end, kind, or_number)| {
        Some((
            Regex::new(&format!("^(?i:{pattern}{end})")).ok()?,
            kind,
            or_number,
        ))
    };
    PATTERNS.into_iter().filter_map(regex).collect()
});

/// The replacement of each identity, equal everywhere, so that a handler still has the name of its interface. Hex digits
/// in lower case, replaced by as many.
#[derive(Default)]
pub struct StandIns(BTreeMap<String, String>);

#[derive(Clone, Copy, PartialEq)]
enum AddressKind {
    /// Hex digits with separators, which get others of their own.
    Own,
    /// Hex digits, replaced by those of the known address, else by zeros.
    Digits,
    /// An IP address, and what replaces it.
    Ip(&'static str),
}

impl StandIns {
    pub fn collect<'a>(
        texts: impl Iterator<Item = &'a str>,
        addresses: impl IntoIterator<Item = String>,
    ) -> Self {
        let mut found: BTreeSet<String> = addresses
            .into_iter()
            .map(|address| hex_digits(&address))
            .filter(|digits| is_mixed(digits))
            .collect();
        for text in texts {
            let own = find_all(text, |_| false)
                .into_iter()
                .filter(|(_, kind)| *kind == Own);
            found.extend(own.map(|(place, _)| hex_digits(&text[place])));
        }
        let mut digits = BTreeMap::new();
        let mut last: BTreeMap<usize, u32> = BTreeMap::new();
        let mut found = found.into_iter().peekable();
        // In order, so that the order of a plan stays.
        while let Some(address) = found.next() {
            // An address that a driver cut off gets the digits of the whole one.
            if found.peek().is_some_and(|next| next.starts_with(&address)) {
                continue;
            }
            let number = last.entry(address.len()).or_default();
            *number += 1;
            // 0a: a locally administered address.
            let other = format!("0a{number:0width$x}", width = address.len() - 2);
            digits.insert(address, other);
        }
        Self(digits)
    }

    /// Replaces IP addresses only with `ips`: a version may have four numbers, too.
    pub fn hide(&self, text: &str, ips: bool) -> String {
        let (mut hidden, mut plain) = (String::with_capacity(text.len()), 0);
        let found =
            find_all(text, |digits| self.stand_in(&hex_digits(digits)).is_some()).into_iter();
        for (place, kind) in found.filter(|(_, kind)| ips || !matches!(kind, Ip(_))) {
            hidden.push_str(&text[plain..place.start]);
            plain = place.end;
            let address = &text[place];
            if let Ip(other) = kind {
                hidden.push_str(other);
                continue;
            }
            // Zeros for an address that only a text has.
            let mut others = self
                .stand_in(&hex_digits(address))
                .unwrap_or_default()
                .chars();
            hidden.extend(address.chars().map(|c| match c {
                ':' | '-' | '.' | '_' => c,
                _ => others.next().unwrap_or('0'),
            }));
        }
        hidden + &text[plain..]
    }

    fn stand_in(&self, digits: &str) -> Option<&str> {
        let (known, other) = self.0.range(digits.to_owned()..).next()?;
        known.starts_with(digits).then_some(other)
    }
}

fn hex_digits(text: &str) -> String {
    text.chars()
        .filter(char::is_ascii_hexdigit)
        .collect::<String>()
        .to_ascii_lowercase()
}

/// Whether the digits differ: equal ones are no address or the broadcast address.
fn is_mixed(digits: &str) -> bool {
    digits.chars().any(|digit| !digits.starts_with(digit))
}

/// `known`: whether digits are those of an address.
fn find_all(text: &str, known: impl Fn(&str) -> bool) -> Vec<(Range<usize>, AddressKind)> {
    let (mut all, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let rest = &text[at..];
        let word = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let begins = word > 0 || rest.starts_with("::");
        if let Some((place, kind)) = begins.then(|| find(rest, word, &known)).flatten() {
            all.push((at + place.start..at + place.end, kind));
            at += place.end;
        } else {
            at += word.max(rest.chars().next().map_or(1, char::len_utf8));
        }
    }
    all
}

/// The address at the start of a text or within its first word, which has `word` bytes.
fn find(
    text: &str,
    word: usize,
    known: &impl Fn(&str) -> bool,
) -> Option<(Range<usize>, AddressKind)> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b":.-_".contains(byte);
    let text = &text[..text.bytes().take(LONGEST).take_while(is_part).count()];
    // Most words of a machine are short numbers.
    if text.len() < 6 && !text.contains("::") {
        return None;
    }
    for (regex, kind, or_number) in &*REGEXES {
        let Some(address) = regex.captures(text).and_then(|found| found.get(1)) else {
            continue;
        };
        let digits = address.as_str();
        let is_number = *or_number && !digits.contains(|c: char| c.is_ascii_alphabetic());
        let mut parts = digits.split(['.', '-', '_']);
        if (is_mixed(digits) || *kind == Digits)
            && (!is_number || known(digits))
            && (*kind != IPV4 || parts.all(|part| part.parse::<u8>().is_ok()))
        {
            return Some((address.range(), *kind));
        }
    }
    let run = text.split('-').next().unwrap_or_default();
    let whole = run.trim_end_matches(['.', ':']);
    if whole.parse::<Ipv4Addr>().is_ok() {
        return Some((0..whole.len(), IPV4));
    }
    let is_address = |text: &&str| *text != "::" && text.parse::<Ipv6Addr>().is_ok();
    let before_dot = run.split('.').next().unwrap_or_default();
    if let Some(address) = [whole, run, before_dot].into_iter().find(is_address) {
        return Some((0..address.len(), Ip("::")));
    }
    // The digits of a known address anywhere, with any separators: cafe98039ba1b2c3, vnic98.03.9b.a1.b2.c3,
    // vlan98_03_9b_a1_b2_c3, and veth98039ba1b2c, which was cut off
    (0..word.min(text.len())).find_map(|at| {
        let least = match text[..at].chars().next_back() {
            Some('g'..='z' | 'G'..='Z') => LEAST_DIGITS,
            _ => 12,
        };
        // The number of a queue may follow: veth98039ba1b2c-3
        let whole = &text[at..];
        let ends = [whole.split('-').next().unwrap_or_default(), whole];
        let mut addresses = ends.into_iter().filter_map(|end| first_digits(end, least));
        let address = addresses.find(|address| known(address))?;
        Some((at..at + address.len(), Own))
    })
}

/// The text up to its twelfth hex digit, or up to the last one if it begins with at least `least`.
fn first_digits(text: &str, least: usize) -> Option<&str> {
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit() || b":.-_".contains(byte);
    let run = &text[..text.bytes().take_while(is_digit).count()];
    let (count, (end, _)) = (1..=12)
        .zip(run.match_indices(|c: char| c.is_ascii_hexdigit()))
        .last()?;
    let begins = run.starts_with(|c: char| c.is_ascii_hexdigit());
    (begins && count >= least).then(|| &run[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str) -> String {
        StandIns::collect([text].into_iter(), ["00:0d:3a:6e:4d:4b".to_owned()]).hide(text, true)
    }

    #[test]
    fn addresses_of_interfaces_are_replaced_in_each_form() {
        for (text, expected) in [
            ("00:0d:3a:6e:4d:4b\n", "0a:00:00:00:00:01\n"),
            ("enx000d3a6e4d4b", "enx0a0000000001"),
            ("enx000d3a6e4d4b-TxRx-0", "enx0a0000000001-TxRx-0"),
            ("enx000d3a6e4", "enx0a0000000"),
            ("veth000d3a6e4d4-7", "veth0a000000000-7"),
            ("veth000d3a6e4d4-b", "veth0a000000000-b"),
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
            // Other devices are numbered by the order of their digits.
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
        let known = StandIns::collect([].into_iter(), ["52:54:00:12:34:56".to_owned()]);
        assert_eq!(
            known.hide(
                "enx525400123456 525400123456 525400123457 52.54.00.12.34.56 1020.3040.5060",
                true
            ),
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
        /// The capture of a capture is the same.
        #[test]
        fn hidden_once_is_hidden(text in "(enx[0-9a-f]{6,12}|[0-9a-f]{12}|[0-9a-f:.-]{0,30}|[ \\-_,]|\\PC){0,8}") {
            let hide = |text: &str| StandIns::collect([text].into_iter(), []).hide(text, true);
            let once = hide(&text);
            proptest::prop_assert_eq!(hide(&once), once);
        }
    }
}
