//! Ioctls about a network interface: ethtool's, its index and its hardware address (`SIOCETHTOOL`, `SIOCGIFINDEX`,
//! `SIOCGIFHWADDR`; `include/uapi/linux/ethtool.h`).

use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::libc::{self, c_ulong};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

const SIOCGIFHWADDR: c_ulong = 0x8927;
const SIOCGIFINDEX: c_ulong = 0x8933;
const SIOCETHTOOL: c_ulong = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 3;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GRXRINGS: u32 = 0x2d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_SCHANNELS: u32 = 0x3d;
const ETHTOOL_GRSSH: u32 = 0x46;
const ETHTOOL_SRSSH: u32 = 0x47;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;

/// `struct ethtool_drvinfo` (`include/uapi/linux/ethtool.h`).
#[repr(C)]
struct EthtoolDrvinfo {
    cmd: u32,
    /// Driver, its version, firmware version, bus address, option ROM's version.
    texts: [[u8; 32]; 5],
    reserved: [u8; 12],
    counts: [u32; 5],
}

/// `struct ethtool_channels` (`include/uapi/linux/ethtool.h`).
#[repr(C)]
struct EthtoolChannels {
    cmd: u32,
    /// The maximum numbers of receive, transmit, other and combined channels, then the current numbers.
    numbers: [u32; 8],
}

/// `struct ethtool_rxnfc` (`include/uapi/linux/ethtool.h`), of which only the number is used here.
#[repr(C)]
struct EthtoolRxnfc {
    cmd: u32,
    flow_type: u32,
    data: u64,
    /// A rule of 168 bytes, and the number of rules.
    rest: [u64; 22],
}

/// `struct ethtool_rxfh` (`include/uapi/linux/ethtool.h`), before the table.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct EthtoolRxfh {
    pub(super) cmd: u32,
    /// 0: the one of all flows that no filter sends to another.
    pub(super) context: u32,
    /// In 32-bit numbers.
    pub(super) table_size: u32,
    /// In bytes.
    pub(super) key_size: u32,
    /// `ETH_RSS_HASH_*`; 0 to leave it unchanged.
    pub(super) function: u8,
    /// `RXH_XFRM_*`, from Linux 6.8 on; 0 before.
    pub(super) transform: u8,
    pub(super) reserved: [u8; 6],
}

/// The same with the table.
#[repr(C)]
struct EthtoolRxfhTable {
    header: EthtoolRxfh,
    table: [u32; MAX_RSS_ENTRIES],
}

/// The largest table that is read. Those of drivers in Linux 6.12 have 2048 entries at most (ice).
const MAX_RSS_ENTRIES: usize = 4096;

/// The sets of the names of features (`ETH_SS_FEATURES`) and of link modes (`ETH_SS_LINK_MODES`, from Linux 5.6 on).
const FEATURES: u32 = 4;
const LINK_MODES: u32 = 9;

/// The most features that are read, in words of 32: Linux 6.12 has 64.
const FEATURE_WORDS: usize = 4;

/// The most names of a set that are read: Linux 6.18 has 121 link modes.
const MAX_NAMES: usize = 256;

/// `struct ethtool_link_settings` (`include/uapi/linux/ethtool.h`), of which only the link modes are used here.
#[repr(C)]
struct EthtoolLinkSettings {
    cmd: u32,
    speed: u32,
    before: [u8; 7],
    /// Words of each mask; what the kernel answers to another number than its own is that, negative.
    words: i8,
    after: [u8; 4],
    reserved: [u32; 7],
    /// The supported modes, those advertised, and those of the link partner.
    masks: [u32; 3 * i8::MAX as usize],
}

/// `struct ethtool_sset_info` (`include/uapi/linux/ethtool.h`) for one set.
#[repr(C)]
struct EthtoolSetInfo {
    cmd: u32,
    reserved: u32,
    /// A bit for each set.
    sets: u64,
    count: u32,
    padding: u32,
}

/// `struct ethtool_gstrings` (`include/uapi/linux/ethtool.h`).
#[repr(C)]
struct EthtoolStrings {
    cmd: u32,
    set: u32,
    count: u32,
    names: [[u8; 32]; MAX_NAMES],
}

/// `struct ethtool_gfeatures` (`include/uapi/linux/ethtool.h`).
#[repr(C)]
struct EthtoolFeatures {
    cmd: u32,
    words: u32,
    /// A bit for each feature: whether it can be changed, is requested, is on, can never be changed.
    features: [[u32; 4]; FEATURE_WORDS],
}

/// `struct ethtool_sfeatures` (`include/uapi/linux/ethtool.h`).
#[repr(C)]
struct EthtoolSetFeatures {
    cmd: u32,
    words: u32,
    /// A bit for each feature: whether it is set, and to what.
    features: [[u32; 2]; FEATURE_WORDS],
}

/// A structure of `SIOCETHTOOL` whose command the kernel answers within it.
///
/// # Safety
///
/// It begins with a command, and has the size and the layout that the kernel knows for it.
pub(super) unsafe trait EthtoolCommand {}
// SAFETY: both are as in the kernel's header, and made with no other command.
unsafe impl EthtoolCommand for EthtoolDrvinfo {}
// SAFETY: as above.
unsafe impl EthtoolCommand for EthtoolChannels {}
// SAFETY: as above; the kernel fills in no rules for the command that asks for a number.
unsafe impl EthtoolCommand for EthtoolRxnfc {}
// SAFETY: as above; it is only made with sizes of 0, for which the kernel reads and writes the header alone.
unsafe impl EthtoolCommand for EthtoolRxfh {}
// SAFETY: as above; it is only made with a table size of at most `MAX_RSS_ENTRIES`, and without a key.
unsafe impl EthtoolCommand for EthtoolRxfhTable {}
// SAFETY: as above; it is only made with the bit of one set, for which the kernel writes one count.
unsafe impl EthtoolCommand for EthtoolSetInfo {}
// SAFETY: as above; the number of words in it is one byte, and the masks are as long as it allows.
unsafe impl EthtoolCommand for EthtoolLinkSettings {}
// SAFETY: as above; it is only made for a set whose count is known to fit.
unsafe impl EthtoolCommand for EthtoolStrings {}
// SAFETY: as above; it is only made with at most `FEATURE_WORDS` words, and the kernel writes no more.
unsafe impl EthtoolCommand for EthtoolFeatures {}
// SAFETY: as above; the kernel only reads it.
unsafe impl EthtoolCommand for EthtoolSetFeatures {}

mod ioctl {
    nix::ioctl_readwrite_bad!(siocethtool, super::SIOCETHTOOL, nix::libc::ifreq);
    nix::ioctl_readwrite_bad!(siocgifindex, super::SIOCGIFINDEX, nix::libc::ifreq);
    nix::ioctl_readwrite_bad!(siocgifhwaddr, super::SIOCGIFHWADDR, nix::libc::ifreq);
}

/// Version of the driver, version of the firmware, and address of the device on its bus; each may be empty.
pub(crate) fn get_driver(interface: &str) -> Result<[String; 3], Errno> {
    let mut info = EthtoolDrvinfo {
        cmd: ETHTOOL_GDRVINFO,
        texts: [[0; 32]; 5],
        reserved: [0; 12],
        counts: [0; 5],
    };
    ethtool(interface, &mut info)?;
    Ok([1, 2, 3].map(|at: usize| text(&info.texts[at])))
}

pub(crate) fn get_channels(interface: &str) -> Result<[u32; 8], Errno> {
    let mut channels = EthtoolChannels {
        cmd: ETHTOOL_GCHANNELS,
        numbers: [0; 8],
    };
    ethtool(interface, &mut channels)?;
    Ok(channels.numbers)
}

pub(crate) fn set_channels(interface: &str, numbers: [u32; 8]) -> Result<(), Errno> {
    ethtool(
        interface,
        &mut EthtoolChannels {
            cmd: ETHTOOL_SCHANNELS,
            numbers,
        },
    )
}

/// The RSS indirection table of context 0, the number of receive queues that it can name, and the hash function. The
/// error is EOPNOTSUPP where there is no table.
pub(crate) fn get_rss(interface: &str) -> Result<(Vec<u32>, u32, u8), Errno> {
    let header = get_rss_header(interface)?;
    let entries = header.table_size as usize;
    if entries == 0 || entries > MAX_RSS_ENTRIES {
        return Err(Errno::EOPNOTSUPP);
    }
    let mut whole = rss_command(
        EthtoolRxfh {
            cmd: ETHTOOL_GRSSH,
            key_size: 0,
            ..header
        },
        &[],
    );
    ethtool(interface, &mut *whole)?;
    let mut rings = EthtoolRxnfc {
        cmd: ETHTOOL_GRXRINGS,
        flow_type: 0,
        data: 0,
        rest: [0; 22],
    };
    ethtool(interface, &mut rings)?;
    Ok((
        whole.table[..entries].to_vec(),
        u32::try_from(rings.data).unwrap_or(0),
        whole.header.function,
    ))
}

/// Sets the RSS indirection table of context 0; an empty one stands for the default. Function, key and transformation
/// of the input stay.
pub(crate) fn set_rss(interface: &str, table: &[u32]) -> Result<(), Errno> {
    let header = get_rss_header(interface)?;
    let size = u32::try_from(table.len()).unwrap_or(u32::MAX);
    if size > header.table_size || table.len() > MAX_RSS_ENTRIES {
        return Err(Errno::EINVAL);
    }
    let header = EthtoolRxfh {
        cmd: ETHTOOL_SRSSH,
        table_size: size,
        key_size: 0,
        function: 0,
        ..header
    };
    ethtool(interface, &mut *rss_command(header, table))
}

impl EthtoolRxfh {
    /// Of an RSS context, without table and key.
    pub(super) fn new(cmd: u32, context: u32) -> Self {
        Self {
            cmd,
            context,
            table_size: 0,
            key_size: 0,
            function: 0,
            transform: 0,
            reserved: [0; 6],
        }
    }
}

/// The sizes of table and key, the hash function and the transformation.
fn get_rss_header(interface: &str) -> Result<EthtoolRxfh, Errno> {
    let mut header = EthtoolRxfh::new(ETHTOOL_GRSSH, 0);
    ethtool(interface, &mut header)?;
    Ok(header)
}

fn rss_command(header: EthtoolRxfh, table: &[u32]) -> Box<EthtoolRxfhTable> {
    let mut command = Box::new(EthtoolRxfhTable {
        header,
        table: [0; MAX_RSS_ENTRIES],
    });
    command.table[..table.len()].copy_from_slice(table);
    command
}

/// A feature of an interface, such as `rx-ntuple-filter`: whether it is on, and whether it can be changed.
pub(crate) fn get_feature(interface: &str, name: &str) -> Result<(bool, bool), Errno> {
    let (bit, words) = feature_bit(interface, name)?;
    let features = [[0; 4]; FEATURE_WORDS];
    let mut answer = EthtoolFeatures {
        cmd: ETHTOOL_GFEATURES,
        words,
        features,
    };
    ethtool(interface, &mut answer)?;
    let [available, _, active, never] =
        answer.features[bit / 32].map(|word| word >> (bit % 32) & 1 == 1);
    Ok((active, available && !never))
}

/// Turns a feature on or off. The kernel may answer without doing so, if the driver cannot.
pub(crate) fn set_feature(interface: &str, name: &str, on: bool) -> Result<(), Errno> {
    let (bit, words) = feature_bit(interface, name)?;
    let mut command = EthtoolSetFeatures {
        cmd: ETHTOOL_SFEATURES,
        words,
        features: [[0; 2]; FEATURE_WORDS],
    };
    command.features[bit / 32] = [1 << (bit % 32), u32::from(on) << (bit % 32)];
    ethtool(interface, &mut command)
}

/// The bit of a feature in this kernel, and how many words its features take.
fn feature_bit(interface: &str, name: &str) -> Result<(usize, u32), Errno> {
    let names = names(interface, FEATURES)?;
    let words = names.len().div_ceil(32);
    let bit = names.iter().position(|known| known == name);
    match (bit, u32::try_from(words)) {
        (Some(bit), Ok(count)) if words <= FEATURE_WORDS => Ok((bit, count)),
        _ => Err(Errno::EOPNOTSUPP),
    }
}

/// The link modes that the driver supports, by the kernel's names: `10000baseT/Full`, and what else has a bit among them.
pub(crate) fn get_link_modes(interface: &str) -> Result<Vec<String>, Errno> {
    let mut settings = EthtoolLinkSettings {
        cmd: ETHTOOL_GLINKSETTINGS,
        speed: 0,
        before: [0; 7],
        words: 0,
        after: [0; 4],
        reserved: [0; 7],
        masks: [0; 3 * i8::MAX as usize],
    };
    ethtool(interface, &mut settings)?;
    settings.cmd = ETHTOOL_GLINKSETTINGS;
    settings.words = settings.words.checked_neg().ok_or(Errno::EINVAL)?;
    ethtool(interface, &mut settings)?;
    let supported = &settings.masks[..usize::try_from(settings.words).unwrap_or(0)];
    let is_set = |bit: usize| {
        let word = supported.get(bit / 32);
        word.is_some_and(|word| word >> (bit % 32) & 1 == 1)
    };
    let names = names(interface, LINK_MODES)?.into_iter().enumerate();
    Ok(names
        .filter(|(bit, _)| is_set(*bit))
        .map(|(_, name)| name)
        .collect())
}

/// The names of a set.
fn names(interface: &str, set: u32) -> Result<Vec<String>, Errno> {
    let mut info = EthtoolSetInfo {
        cmd: ETHTOOL_GSSET_INFO,
        reserved: 0,
        sets: 1 << set,
        count: 0,
        padding: 0,
    };
    ethtool(interface, &mut info)?;
    let count = info.count as usize;
    if info.sets == 0 || count > MAX_NAMES {
        return Err(Errno::EOPNOTSUPP);
    }
    let mut strings = Box::new(EthtoolStrings {
        cmd: ETHTOOL_GSTRINGS,
        set,
        count: info.count,
        names: [[0; 32]; MAX_NAMES],
    });
    ethtool(interface, &mut *strings)?;
    Ok(strings.names[..count]
        .iter()
        .map(|name| text(name))
        .collect())
}

/// A text that ends with a zero, unless it fills its field.
fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// The index of an interface, and the first six bytes of its hardware address.
pub(crate) fn get_identity(interface: &str) -> Result<(i32, [u8; 6]), Errno> {
    let mut request = named_request(interface)?;
    let socket = ioctl_socket()?;
    // SAFETY: the kernel writes an int into the request.
    unsafe { ioctl::siocgifindex(socket.as_raw_fd(), &raw mut request) }?;
    // SAFETY: the kernel has just written this field.
    let index = unsafe { request.ifr_ifru.ifru_ifindex };
    // SAFETY: the kernel writes a sockaddr into the request.
    unsafe { ioctl::siocgifhwaddr(socket.as_raw_fd(), &raw mut request) }?;
    // SAFETY: the kernel has just written this field.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    Ok((
        index,
        std::array::from_fn(|at| address.sa_data[at].to_ne_bytes()[0]),
    ))
}

pub(super) fn ethtool<T: EthtoolCommand>(interface: &str, command: &mut T) -> Result<(), Errno> {
    let mut request = named_request(interface)?;
    request.ifr_ifru.ifru_data = std::ptr::from_mut(command).cast();
    // SAFETY: `request` and the `command` that it points to live until the call returns, and the kernel reads and
    // writes no more than the structure that the command is defined with.
    unsafe { ioctl::siocethtool(ioctl_socket()?.as_raw_fd(), &raw mut request) }?;
    Ok(())
}

fn ioctl_socket() -> Result<OwnedFd, Errno> {
    // Any kind of socket takes these ioctls; this one needs neither IPv4 nor a sandbox that allows it.
    socket(
        AddressFamily::Unix,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
}

fn named_request(interface: &str) -> Result<libc::ifreq, Errno> {
    // SAFETY: an ifreq is plain old data, for which all zeros is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(Errno::ENODEV);
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_channels() {
        assert!(get_channels("lo").is_err() && get_link_modes("lo").is_err());
        assert!(get_channels("a-name-that-is-too-long-for-an-interface").is_err());
        assert!(get_driver("no-such-name").is_err() && get_identity("no-such-name").is_err());
        assert_eq!(get_identity("lo").unwrap(), (1, [0; 6]));
    }
}
