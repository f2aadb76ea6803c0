//! Removes what could identify a machine: hardware and IP addresses, host names and serial numbers.
//!
//! Reading a machine does not open the files that hold them. This is a second safeguard: files about identity are left
//! out even if they were read, and addresses are replaced in names and texts. Interface
//! names stay, except for those that are made of a hardware address (`enx0242ac110002`).

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::root::tree::{Entry, Tree, TreeFile};
use crate::root::{FileError, Root};

const NET: &str = "/sys/class/net";
/// Where a site keeps its policy.
const POLICY: &str = "/etc/nicpin.toml";

/// Files that identify a machine, by the last component of their path.
const IDENTITY: [&str; 20] = [
    "address",
    "board_serial",
    "boot_id",
    "broadcast",
    "chassis_serial",
    "cmdline",
    "domainname",
    "hostname",
    "ifalias",
    "machine-id",
    "node_desc",
    "node_guid",
    "phys_port_id",
    "phys_switch_id",
    "product_serial",
    "product_uuid",
    "serial",
    "serial_number",
    "sys_image_guid",
    "vpd",
];

/// A tree that does not identify its machine.
#[derive(Debug)]
pub(super) struct Redacted {
    pub(super) tree: Tree,
    /// What was changed, a line each, for the user and not for the capture.
    pub(super) changes: Vec<String>,
}

/// A hardware address as hex digits, and the digits that replace it.
type StandIn = (Vec<u8>, Vec<u8>);

/// Removes from a tree what could identify the machine. `root` is that machine; `without_comments` gives a policy file
/// without its comments, or `None` if it is not valid.
pub(super) fn redact(
    tree: &Tree,
    root: &Root,
    without_comments: fn(&str) -> Option<String>,
) -> Result<Redacted, FileError> {
    let stand_ins = stand_ins(tree, root)?;
    let hide = |text: &str| {
        let hide = |text: String, (address, other): &StandIn| replace(&text, address, other);
        stand_ins.iter().fold(text.to_owned(), hide)
    };
    let mut redacted = Redacted { tree: Tree::default(), changes: Vec::new() };
    for (path, entry) in tree.iter() {
        let name = path.rsplit('/').next().unwrap_or_default();
        if IDENTITY.contains(&name) && !matches!(entry, Entry::Directory(_)) {
            redacted.changes.push(format!("{path} is left out: it can identify the machine"));
            continue;
        }
        let hidden = match entry {
            Entry::Directory(_) => Entry::Directory(std::collections::BTreeSet::new()),
            Entry::Link(target) => Entry::Link(hide(target)),
            Entry::File(file) => {
                let mut file = file.clone();
                if path == POLICY {
                    let Some(bare) = without_comments(&file.text) else {
                        redacted.changes.push(format!("{path} is left out: it is not a policy"));
                        continue;
                    };
                    file.text = bare;
                }
                let text = without_addresses(&hide(&file.text));
                if text != file.text {
                    redacted.changes.push(format!("{path} has addresses in it; the capture has others"));
                }
                Entry::File(TreeFile { text, ..file })
            }
        };
        let place = hide(path);
        if place != path && path.rsplit_once('/').is_some_and(|(above, _)| above == NET) {
            let new = place.rsplit('/').next().unwrap_or_default();
            redacted.changes.push(format!(
                "{name} has a hardware address in its name; the capture calls it {new}, and so does its plan"
            ));
        }
        redacted
            .tree
            .add(&place, hidden)
            .map_err(|reason| root.content_error(path, format!("{reason} when renamed; use --identify")))?;
    }
    Ok(redacted)
}

/// The hardware address of each interface that has one.
pub(super) fn addresses(root: &Root) -> Result<Vec<(String, String)>, FileError> {
    let mut addresses = Vec::new();
    for name in root.list(NET)?.unwrap_or_default() {
        if let Some(address) = root.read_opt(&format!("{NET}/{name}/address"))?
            && is_hardware_address(address.trim(), ':')
        {
            addresses.push((name, address.trim().to_owned()));
        }
    }
    Ok(addresses)
}

fn stand_ins(tree: &Tree, root: &Root) -> Result<Vec<StandIn>, FileError> {
    let named = tree.list(NET).unwrap_or_default().into_iter().filter_map(|name| {
        // systemd: `en`, `wl` and so on, `x`, and the address.
        let digits = name.get(3..).filter(|rest| rest.len() == 12 && name.as_bytes()[2] == b'x')?;
        Some(digits.to_owned())
    });
    let mut found: Vec<String> = addresses(root)?.into_iter().map(|(_, address)| address).collect();
    found.extend(named);
    let mut digits: Vec<Vec<u8>> = found
        .iter()
        .map(|address| address.bytes().filter(|&b| b != b':').map(|b| b.to_ascii_lowercase()).collect())
        .filter(|digits: &Vec<u8>| {
            digits.iter().all(u8::is_ascii_hexdigit) && digits.iter().any(|&b| b != digits[0])
        })
        .collect();
    digits.sort_unstable();
    digits.dedup();
    // 02: a locally administered address.
    let other = |(number, digits): (usize, Vec<u8>)| {
        let other = format!("02{number:0width$x}", width = digits.len() - 2);
        (digits, other.into_bytes())
    };
    Ok((1..).zip(digits).map(other).collect())
}

/// The text with a hardware address replaced, however its digits are separated (`02:42:..`, `0242..`, `0242ac-11..`).
/// Some buses name devices by an address and its beginning again; all of that goes.
fn replace(text: &str, address: &[u8], other: &[u8]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut start = 0;
    while start < bytes.len() {
        let (mut digits, mut end) = (Vec::new(), start);
        while let Some(&byte) = bytes.get(end) {
            let wanted = address[digits.len() % address.len()];
            if byte.to_ascii_lowercase() == wanted {
                digits.push(end);
            } else if digits.is_empty() || !matches!(byte, b':' | b'-') {
                break;
            }
            end += 1;
        }
        if digits.len() < address.len() {
            start += 1;
            continue;
        }
        for (number, at) in digits.into_iter().enumerate() {
            bytes[at] = other[number % other.len()];
        }
        start = end;
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// The text with zeros in everything that looks like an address.
fn without_addresses(text: &str) -> String {
    let mut done = String::new();
    for part in words(text, |c| c.is_ascii_alphanumeric() || c == '-') {
        if is_hardware_address(part, '-') { done += "00-00-00-00-00-00" } else { done += part }
    }
    let text = done;
    let mut done = String::new();
    for part in words(&text, |c| c.is_ascii_alphanumeric() || c == ':' || c == '.') {
        let word = part.trim_end_matches(['.', ':']);
        let ip4 = word.parse::<Ipv4Addr>().is_ok();
        let ip6 = word.parse::<Ipv6Addr>().is_ok() || part.parse::<Ipv6Addr>().is_ok() && part != "::";
        match () {
            () if is_hardware_address(word, ':') => done += "00:00:00:00:00:00",
            () if ip4 => done += "0.0.0.0",
            () if ip6 => done += "::",
            () => done += word,
        }
        done += &part[word.len()..];
    }
    done
}

/// A text split into words and the runs between them.
fn words(text: &str, is_word: fn(char) -> bool) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = rest.find(|c| is_word(c) != is_word(first)).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        Some(part)
    })
}

/// Six or more pairs of hex digits.
fn is_hardware_address(text: &str, between: char) -> bool {
    let pair = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
    text.split(between).count() >= 6 && text.split(between).all(pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_every_dress() {
        let (address, other) = (b"000d3a6e4d4b", b"020000000001");
        for (text, expected) in [
            ("00:0d:3a:6e:4d:4b\n", "02:00:00:00:00:01\n"),
            ("enx000d3a6e4d4b", "enx020000000001"),
            ("x 00-0D-3A-6E-4D-4B y", "x 02-00-00-00-00-01 y"),
            ("000d3a6e-4d4b-000d-3a6e-4d4b000d3a6e", "02000000-0001-0200-0000-000102000000"),
            ("000d3a6e4d4c 0000:0d:3a.6", "000d3a6e4d4c 0000:0d:3a.6"),
        ] {
            assert_eq!(replace(text, address, other), expected, "{text}");
        }
    }

    #[test]
    fn what_looks_like_an_address_goes() {
        for (text, expected) in [
            ("a 52:54:00:12:34:56, b", "a 00:00:00:00:00:00, b"),
            ("a 52-54-00-12-34-56 b", "a 00-00-00-00-00-00 b"),
            ("via 192.168.7.12: up", "via 0.0.0.0: up"),
            ("fe80::5054:ff:fe12:3456%eth0", "::%eth0"),
            ("2001:db8:0:0:0:0:0:1 x", ":: x"),
        ] {
            assert_eq!(without_addresses(text), expected, "{text}");
        }
    }

    #[test]
    fn what_nicpin_reads_is_no_address() {
        for text in [
            "  71:          0          0  IR-PCI-MSIX-0000:82:00.0   1-edge      mlx4-1@0000:82:00.0\n",
            "00000000,00000000,ffffffff\n",
            "0-5,12,14-15\n",
            " 24:  1  0  Hyper-V PCIe MSI 1073741824-edge      mlx5_async0@pci:0002:00:02.0\n",
            "6.12.43+deb13-amd64\n",
            "8.0 GT/s PCIe\n",
            "a::b is no address here, nor is ::\n",
        ] {
            assert_eq!(without_addresses(text), text.replace("a::b", "::"), "{text}");
        }
    }
}
