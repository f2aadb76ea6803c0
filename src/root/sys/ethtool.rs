//! Ioctls about a network interface (`SIOCETHTOOL`, `SIOCGIFINDEX`, `SIOCGIFHWADDR`; `include/uapi/linux/ethtool.h`).
//! Reading needs no privilege. A command and its answer are one structure of that header, here as words of 32 bits.

use std::array::from_fn;
use std::iter::once;
use std::mem::zeroed;
use std::os::fd::AsRawFd as _;

use nix::Result;
use nix::errno::Errno::{self, E2BIG, EINVAL, ENODEV, EOPNOTSUPP};
use nix::libc::{self, Ioctl, c_char, ifreq};
use nix::sys::socket::AddressFamily::Unix;
use nix::sys::socket::SockType::Datagram;
use nix::sys::socket::{SockFlag, socket};

const SIOCGIFHWADDR: Ioctl = 0x8927;
const SIOCGIFINDEX: Ioctl = 0x8933;
const SIOCETHTOOL: Ioctl = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 3;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GRXFH: u32 = 0x29;
const ETHTOOL_GRXRINGS: u32 = 0x2d;
const ETHTOOL_GRXCLSRLCNT: u32 = 0x2e;
const ETHTOOL_GRXCLSRULE: u32 = 0x2f;
const ETHTOOL_GRXCLSRLALL: u32 = 0x30;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_SCHANNELS: u32 = 0x3d;
const ETHTOOL_GRSSH: u32 = 0x46;
const ETHTOOL_SRSSH: u32 = 0x47;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;

/// More than the longest answer to the commands here.
const WORDS: usize = 1 << 13;
/// Drivers of Linux 6.12 have at most 2048 (ice).
const MAX_RSS_ENTRIES: usize = 4096;
const MAX_KEY: usize = 256;
const MAX_FILTERS: usize = 2048;
/// Linux 6.18 has 121 link modes.
const MAX_NAMES: usize = 256;
/// mlx5 with 128 channels has some 8,000. The kernel writes as many as the driver has by then, whatever number was asked
/// for: there is room for twice as many as are accepted.
const MAX_COUNTERS: usize = 1 << 14;
const ROOM_FOR_NAMES: usize = 3 + 8 * 2 * MAX_COUNTERS;
const ROOM_FOR_COUNTERS: usize = 2 + 2 * 2 * MAX_COUNTERS;
/// Of 32 features each: Linux 6.12 has 64 features.
const FEATURE_WORDS: usize = 4;

/// Sets of names: `ETH_SS_STATS`, `ETH_SS_FEATURES`, `ETH_SS_LINK_MODES` (Linux 5.6).
const STATISTICS: u32 = 1;
const FEATURES: u32 = 4;
const LINK_MODES: u32 = 9;

/// The low word of a 64-bit number.
const LOW: usize = if cfg!(target_endian = "big") { 1 } else { 0 };

/// Words of `struct ethtool_rxnfc`: a 64-bit number, a rule of 42 words that ends with its location, the number of
/// rules or a rule's RSS context, and all locations.
const DATA: usize = 2 + LOW;
const RULE: usize = 4;
const LOCATION: usize = 44;
const RULES: usize = 46;
const LOCATIONS: usize = 47;

/// Driver, its version, the firmware's version and the device's address on its bus; each may be empty.
pub(crate) fn get_driver(interface: &str) -> Result<[String; 4]> {
    let info = ethtool(interface, ETHTOOL_GDRVINFO, [])?;
    Ok([1, 9, 17, 25].map(|at| text(&info[at..])))
}

/// Maximum numbers of receive, transmit, other and combined channels, then the current numbers.
pub(crate) fn get_channels(interface: &str) -> Result<[u32; 8]> {
    let channels = ethtool(interface, ETHTOOL_GCHANNELS, [])?;
    Ok(from_fn(|at| channels[1 + at]))
}

pub(crate) fn set_channels(interface: &str, numbers: [u32; 8]) -> Result<()> {
    ethtool(interface, ETHTOOL_SCHANNELS, numbers).map(drop)
}

/// Context 0's table, how many receive queues it can name, and the hash function; EOPNOTSUPP without a table.
pub(crate) fn get_rss(interface: &str) -> Result<(Vec<u32>, u32, u8)> {
    let (function, _, _, table) = get_context(interface, 0)?;
    if table.is_empty() {
        return Err(EOPNOTSUPP);
    }
    let queues = ethtool(interface, ETHTOOL_GRXRINGS, [])?[DATA];
    Ok((table, queues, function))
}

/// For context 0. An empty table is the default. Function, key and input transformation stay.
pub(crate) fn set_rss(interface: &str, table: &[u32]) -> Result<()> {
    let now = ethtool(interface, ETHTOOL_GRSSH, [])?;
    let size = u32::try_from(table.len()).unwrap_or(u32::MAX);
    if size > now[2] || table.len() > MAX_RSS_ENTRIES {
        return Err(EINVAL);
    }
    let [_, transform, rest @ ..] = now[4].to_ne_bytes();
    let functions = u32::from_ne_bytes([0, transform, rest[0], rest[1]]);
    let header = [0, size, 0, functions, now[5]].into_iter();
    ethtool(
        interface,
        ETHTOOL_SRSSH,
        header.chain(table.iter().copied()),
    )
    .map(drop)
}

/// Function, transformation, key, table; EOPNOTSUPP if the driver has none.
pub(crate) fn get_context(interface: &str, context: u32) -> Result<(u8, u8, Vec<u8>, Vec<u32>)> {
    let sizes = ethtool(interface, ETHTOOL_GRSSH, [context])?;
    let (entries, key) = (sizes[2] as usize, sizes[3] as usize);
    if entries > MAX_RSS_ENTRIES || key > MAX_KEY {
        return Err(EOPNOTSUPP);
    }
    let whole = ethtool(interface, ETHTOOL_GRSSH, [context, sizes[2], sizes[3]])?;
    let [function, transform, ..] = whole[4].to_ne_bytes();
    let (table, after) = whole[6..].split_at(entries);
    Ok((
        function,
        transform,
        bytes(after).take(key).collect(),
        table.to_vec(),
    ))
}

/// `RXH_*` of the fields that the device hashes for a type of flow.
pub(crate) fn get_fields(interface: &str, flow_type: u32) -> Result<u32> {
    Ok(ethtool(interface, ETHTOOL_GRXFH, [flow_type])?[DATA])
}

/// In the kernel's form, each with its RSS context.
pub(crate) fn get_filters(interface: &str) -> Result<Vec<([u8; 168], u32)>> {
    let request = |command, at: usize, number| {
        let mut words = [0; RULES];
        words[at - 1] = number;
        ethtool(interface, command, words)
    };
    let count = ethtool(interface, ETHTOOL_GRXCLSRLCNT, [])?[RULES];
    if count as usize > MAX_FILTERS {
        return Err(E2BIG);
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    let all = request(ETHTOOL_GRXCLSRLALL, RULES, count)?;
    let listed = (all[RULES] as usize).min(MAX_FILTERS);
    let filter = |&location: &u32| {
        let filter = request(ETHTOOL_GRXCLSRULE, LOCATION, location)?;
        let (mut rule, mut parts) = ([0; 168], bytes(&filter[RULE..]));
        rule.fill_with(|| parts.next().unwrap_or_default());
        Ok((rule, filter[RULES]))
    };
    all[LOCATIONS..][..listed].iter().map(filter).collect()
}

pub(crate) fn get_feature(interface: &str, name: &str) -> Result<(bool, bool)> {
    let (bit, words) = feature_bit(interface, name)?;
    let features = ethtool(interface, ETHTOOL_GFEATURES, [words])?;
    // Four words: changeable, requested, active, never changeable.
    let is = |at: usize| has_bit(&features[2 + bit / 32 * 4 + at..], bit % 32);
    Ok((is(2), is(0) && !is(3)))
}

/// The kernel may report success though the driver cannot.
pub(crate) fn set_feature(interface: &str, name: &str, on: bool) -> Result<()> {
    let (bit, words) = feature_bit(interface, name)?;
    let mut command = [0; 1 + 2 * FEATURE_WORDS];
    command[0] = words;
    // Two words: which to set, and to what.
    command[1 + bit / 32 * 2] = 1 << (bit % 32);
    command[2 + bit / 32 * 2] = u32::from(on) << (bit % 32);
    ethtool(interface, ETHTOOL_SFEATURES, command).map(drop)
}

fn feature_bit(interface: &str, name: &str) -> Result<(usize, u32)> {
    let names = names(interface, FEATURES)?;
    let words = names.len().div_ceil(32);
    let bit = names.iter().position(|known| known == name);
    match (bit, u32::try_from(words)) {
        (Some(bit), Ok(count)) if words <= FEATURE_WORDS => Ok((bit, count)),
        _ => Err(EOPNOTSUPP),
    }
}

/// The kernel's names of the supported link modes (`10000baseT/Full`) and of other bits in that mask.
pub(crate) fn get_link_modes(interface: &str) -> Result<Vec<String>> {
    // Asked for masks of no words, the kernel answers how many they have, negative.
    let words = mask_words(ethtool(interface, ETHTOOL_GLINKSETTINGS, [])?[3]);
    let sizes = u32::from_ne_bytes([0, 0, 0, words]);
    let settings = ethtool(interface, ETHTOOL_GLINKSETTINGS, [0, 0, sizes])?;
    // Three masks: supported, advertised, and of the link partner.
    let supported = &settings[12..][..words.into()];
    Ok(names(interface, LINK_MODES)?
        .into_iter()
        .enumerate()
        .filter(|(bit, _)| has_bit(supported, *bit))
        .map(|(_, name)| name)
        .collect())
}

fn mask_words(answer: u32) -> u8 {
    let [.., words] = answer.to_ne_bytes();
    i8::from_ne_bytes([words]).unsigned_abs()
}

pub(crate) fn get_statistics(interface: &str) -> Result<Vec<(String, u64)>> {
    let names = names(interface, STATISTICS)?;
    let count = u32::try_from(names.len()).unwrap_or_default();
    let counters = ethtool_of(interface, ETHTOOL_GSTATS, [count], ROOM_FOR_COUNTERS)?;
    // The driver may have another number of counters by now: then none are read.
    if counters[1] != count {
        return Err(EOPNOTSUPP);
    }
    let count = |words: &[u32]| {
        let bytes = [words[0].to_ne_bytes(), words[1].to_ne_bytes()].concat();
        bytes.try_into().map_or(0, u64::from_ne_bytes)
    };
    let counts = counters[2..].chunks_exact(2).map(count);
    Ok(names.into_iter().zip(counts).collect())
}

fn names(interface: &str, set: u32) -> Result<Vec<String>> {
    // A bit for each set; the kernel answers which sets there are, and a count for each.
    let mut sets = [0; 3];
    sets[1 + LOW] = 1 << set;
    let info = ethtool(interface, ETHTOOL_GSSET_INFO, sets)?;
    let count = info[4] as usize;
    let most = if set == STATISTICS {
        MAX_COUNTERS
    } else {
        MAX_NAMES
    };
    if info[2 + LOW] == 0 || count > most {
        return Err(EOPNOTSUPP);
    }
    let names = ethtool_of(interface, ETHTOOL_GSTRINGS, [set, info[4]], ROOM_FOR_NAMES)?;
    // The driver may have another number of names by now: then none are read.
    if names[2] != info[4] {
        return Err(EOPNOTSUPP);
    }
    Ok(names[3..].chunks(8).take(count).map(text).collect())
}

fn has_bit(words: &[u32], bit: usize) -> bool {
    let word = words.get(bit / 32);
    word.is_some_and(|word| word >> (bit % 32) & 1 == 1)
}

fn bytes(words: &[u32]) -> impl Iterator<Item = u8> {
    words.iter().flat_map(|word| word.to_ne_bytes())
}

/// Up to 32 bytes, which end with a zero unless the text fills them.
fn text(words: &[u32]) -> String {
    String::from_utf8_lossy(
        &bytes(words)
            .take(32)
            .take_while(|&byte| byte != 0)
            .collect::<Vec<u8>>(),
    )
    .into_owned()
}

/// Index, and the first six bytes of the hardware address.
pub(crate) fn get_identity(interface: &str) -> Result<(i32, [u8; 6])> {
    let mut request = named_request(interface)?;
    ioctl(SIOCGIFINDEX, &mut request)?;
    // SAFETY: the kernel has just written this field.
    let index = unsafe { request.ifr_ifru.ifru_ifindex };
    ioctl(SIOCGIFHWADDR, &mut request)?;
    // SAFETY: the kernel has just written this field.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    Ok((index, from_fn(|at| address.sa_data[at].to_ne_bytes()[0])))
}

/// Words that are not given are 0.
fn ethtool(
    interface: &str,
    command: u32,
    given: impl IntoIterator<Item = u32>,
) -> Result<Vec<u32>> {
    ethtool_of(interface, command, given, WORDS)
}

/// For an answer of up to `room` words.
fn ethtool_of(
    interface: &str,
    command: u32,
    given: impl IntoIterator<Item = u32>,
    room: usize,
) -> Result<Vec<u32>> {
    let mut words = vec![0; room];
    for (word, value) in words.iter_mut().zip(once(command).chain(given)) {
        *word = value;
    }
    let mut request = named_request(interface)?;
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    ioctl(SIOCETHTOOL, &mut request)?;
    Ok(words)
}

fn ioctl(code: Ioctl, request: &mut ifreq) -> Result<()> {
    // Any socket takes these ioctls; a Unix one needs neither IPv4 nor a sandbox that allows it.
    let socket = socket(Unix, Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: the kernel reads and writes the request and, for `SIOCETHTOOL`, the structure that it points to. Both
    // outlive the call. The structures have a fixed size, room for as many entries as the command says, or for more
    // than a driver has.
    Errno::result(unsafe { libc::ioctl(socket.as_raw_fd(), code, &raw mut *request) }).map(drop)
}

fn named_request(interface: &str) -> Result<ifreq> {
    // SAFETY: an ifreq is plain old data, for which all zeros is a valid value.
    let mut request: ifreq = unsafe { zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(ENODEV);
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = c_char::from_ne_bytes([from]);
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_number_of_words_is_counted() {
        // After `mdio_support`, `eth_tp_mdix` and `eth_tp_mdix_ctrl` of `struct ethtool_link_settings`.
        assert_eq!(mask_words(u32::from_ne_bytes([0, 0, 0xff, 0xfc])), 4);
    }

    #[test]
    fn loopback_has_no_channels() {
        assert!(get_channels("lo").is_err() && get_link_modes("lo").is_err());
        assert!(get_channels("a-name-that-is-too-long-for-an-interface").is_err());
        assert!(get_driver("no-such-name").is_err() && get_identity("no-such-name").is_err());
        assert_eq!(get_identity("lo").unwrap(), (1, [0; 6]));
    }
}
