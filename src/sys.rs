//! System calls and ioctls: scheduling affinity, memory policy, POSIX ACLs, netlink's groups, ethtool's channels and
//! drivers. The only module with unsafe code; it knows numbers and structures, not their use.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

#[cfg(feature = "cli")]
use memmap2::MmapMut;
use nix::errno::Errno;
use nix::libc::{self, c_int, c_ulong};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::cpuset::{CpuSet, MAX_CPUS, NodeSet};

/// Bits of a node mask: the most nodes that a kernel can be built for (`CONFIG_NODES_SHIFT` is 10 at most).
const NODE_BITS: u32 = 1024;

/// The memory policy of a thread (`set_mempolicy(2)`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// The system's default policy, which is the same as [`MemoryPolicy::Local`].
    Default,
    /// The node that the thread runs on; others if it is full.
    Local,
    /// These nodes; others if they are full.
    Preferred(NodeSet),
    /// Only these nodes.
    Bind(NodeSet),
    /// Another policy, by its number in `linux/mempolicy.h`.
    Other(i32, NodeSet),
}

/// Bytes of the largest page of a supported kernel.
#[cfg(feature = "cli")]
const PAGE: usize = 64 << 10;

const MPOL_DEFAULT: c_int = 0;
const MPOL_PREFERRED: c_int = 1;
const MPOL_BIND: c_int = 2;
const MPOL_LOCAL: c_int = 4;
const MPOL_PREFERRED_MANY: c_int = 5;
#[cfg(feature = "cli")]
const MPOL_F_NODE: c_ulong = 1;
#[cfg(feature = "cli")]
const MPOL_F_ADDR: c_ulong = 2;
const MPOL_F_MEMS_ALLOWED: c_ulong = 4;

/// Restricts the calling thread and its later children to these CPUs (`sched_setaffinity(2)`). A cpuset may leave
/// fewer; [`affinity`] returns the result.
pub fn set_affinity(cpus: &CpuSet) -> io::Result<()> {
    set_affinity_of(0, cpus)
}

/// Restricts a thread to these CPUs, by its id; 0 is the calling thread.
pub(crate) fn set_affinity_of(thread: u32, cpus: &CpuSet) -> io::Result<()> {
    let mask = words(cpus, MAX_CPUS);
    let size = size_of_val(&*mask);
    // SAFETY: the kernel reads as many bytes of `mask` as the size argument says, which are all.
    let done = unsafe { libc::syscall(libc::SYS_sched_setaffinity, thread, size, mask.as_ptr()) };
    Errno::result(done).map(drop).map_err(io::Error::from)
}

/// Lets a command start without blocked signals, which it would inherit. Unblocking them on a thread that starts it would
/// let a signal end this process at that moment.
#[cfg(feature = "cli")]
pub(crate) fn unblock_signals(command: &mut std::process::Command) {
    let unblock = || Ok(nix::sys::signal::SigSet::empty().thread_set_mask()?);
    // SAFETY: it only calls sigemptyset(3) and pthread_sigmask(3), which allocate nothing and take no lock.
    unsafe { std::os::unix::process::CommandExt::pre_exec(command, unblock) };
}

/// Unmaps the pages of this program's file that nobody can have written: its code and constants. They stay in the page
/// cache, from which the kernel maps each again when it is needed (`MADV_DONTNEED` in `madvise(2)`). For a process that
/// sleeps for minutes.
#[cfg(feature = "cli")]
pub(crate) fn unmap_program() {
    unsafe extern "C" fn unmap(
        program: *mut libc::dl_phdr_info,
        _size: usize,
        _data: *mut libc::c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr(3) passes a valid structure, whose segments are those of a loaded file.
        let (base, segments) = unsafe {
            let program = &*program;
            (program.dlpi_addr, std::slice::from_raw_parts(program.dlpi_phdr, program.dlpi_phnum.into()))
        };
        for segment in segments {
            if segment.p_type != libc::PT_LOAD || segment.p_flags & libc::PF_W != 0 {
                continue;
            }
            let (Ok(start), Ok(length)) =
                (usize::try_from(base + segment.p_vaddr), usize::try_from(segment.p_memsz))
            else {
                continue;
            };
            let end = (start + length) / PAGE * PAGE;
            let start = start.next_multiple_of(PAGE);
            // Otherwise 2 MiB may come back at once.
            for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_DONTNEED] {
                // SAFETY: a segment without write permission is a private mapping of the file, so that its pages read the
                // same when they are mapped again. The first and the last page may belong to another segment, too.
                let _ = unsafe { libc::madvise(start as *mut _, end.saturating_sub(start), advice) };
            }
        }
        1 // The program is the first one; no library.
    }
    // SAFETY: `unmap` takes no data, and allocates nothing.
    unsafe { libc::dl_iterate_phdr(Some(unmap), std::ptr::null_mut()) };
}

/// The CPUs that the calling thread may run on (`sched_getaffinity(2)`).
pub fn affinity() -> io::Result<CpuSet> {
    let mut mask = words(&CpuSet::new(), MAX_CPUS);
    // SAFETY: the kernel writes at most as many bytes into `mask` as the size argument says, which are all.
    let done =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&*mask), mask.as_mut_ptr()) };
    Errno::result(done)?;
    Ok(set(&mask))
}

/// Sets the memory policy of the calling thread and its later children.
pub fn set_memory_policy(policy: &MemoryPolicy) -> io::Result<()> {
    let none = NodeSet::new();
    let (mode, nodes) = match policy {
        MemoryPolicy::Default => (MPOL_DEFAULT, &none),
        MemoryPolicy::Local => (MPOL_LOCAL, &none),
        // MPOL_PREFERRED_MANY is new in 5.15.
        MemoryPolicy::Preferred(nodes) if nodes.len() == 1 => (MPOL_PREFERRED, nodes),
        MemoryPolicy::Preferred(nodes) => (MPOL_PREFERRED_MANY, nodes),
        MemoryPolicy::Bind(nodes) => (MPOL_BIND, nodes),
        MemoryPolicy::Other(mode, nodes) => (*mode, nodes),
    };
    let mask = words(nodes, NODE_BITS);
    let pointer = if nodes.is_empty() { std::ptr::null() } else { mask.as_ptr() };
    // The kernel uses one bit less than this number.
    let bits = if nodes.is_empty() { 0 } else { c_ulong::from(NODE_BITS) + 1 };
    // SAFETY: the kernel reads `NODE_BITS` bits of `mask`, which has them, or nothing.
    let done = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, pointer, bits) };
    Errno::result(done).map(drop).map_err(io::Error::from)
}

/// The memory policy of the calling thread (`get_mempolicy(2)`).
pub fn memory_policy() -> io::Result<MemoryPolicy> {
    let (mode, nodes) = get_mempolicy(0)?;
    Ok(match mode {
        MPOL_DEFAULT => MemoryPolicy::Default,
        MPOL_LOCAL => MemoryPolicy::Local,
        // Kernels before 5.13 report a local policy like this.
        MPOL_PREFERRED if nodes.is_empty() => MemoryPolicy::Local,
        MPOL_PREFERRED | MPOL_PREFERRED_MANY => MemoryPolicy::Preferred(nodes),
        MPOL_BIND => MemoryPolicy::Bind(nodes),
        other => MemoryPolicy::Other(other, nodes),
    })
}

/// The nodes that the calling thread's cpuset allows memory of.
pub fn allowed_nodes() -> io::Result<NodeSet> {
    Ok(get_mempolicy(MPOL_F_MEMS_ALLOWED)?.1)
}

fn get_mempolicy(flags: c_ulong) -> io::Result<(c_int, NodeSet)> {
    let mut mask = words(&NodeSet::new(), NODE_BITS);
    let mut mode: c_int = 0;
    let bits = c_ulong::from(NODE_BITS) + 1;
    let mode_at = if flags == 0 { &raw mut mode } else { std::ptr::null_mut() };
    // SAFETY: the kernel writes an int at `mode_at`, if anything, and at most `NODE_BITS` bits into `mask`. With these
    // flags it looks at no address.
    let done =
        unsafe { libc::syscall(libc::SYS_get_mempolicy, mode_at, mask.as_mut_ptr(), bits, 0_u64, flags) };
    Errno::result(done)?;
    Ok((mode, set(&mask)))
}

/// Allocates and touches pages on one node and no other (`mbind(2)`).
///
/// The policy is set for the pages, not for a thread: an allocator may return pages of another node, and
/// `kernel.numa_balancing` moves pages without a policy to the node that reads them.
#[cfg(feature = "cli")]
pub(crate) fn pages_of(node: u32, bytes: usize) -> io::Result<MmapMut> {
    let mut pages = MmapMut::map_anon(bytes)?;
    let mask = words(&NodeSet::single(node), NODE_BITS);
    let bits = c_ulong::from(NODE_BITS) + 1;
    // SAFETY: the kernel reads `NODE_BITS` bits of `mask`, which has them; the policy changes nothing in the pages.
    let done = unsafe {
        libc::syscall(libc::SYS_mbind, pages.as_ptr(), bytes, MPOL_BIND, mask.as_ptr(), bits, 0_u32)
    };
    Errno::result(done)?;
    // The kernel allocates the pages at the first write.
    pages.fill(1);
    Ok(pages)
}

/// The node of the page that holds a value.
#[cfg(feature = "cli")]
pub(crate) fn node_of<T>(value: &T) -> io::Result<u32> {
    let mut node: c_int = 0;
    let (no_mask, at) = (std::ptr::null::<c_ulong>(), std::ptr::from_ref(value));
    let flags = MPOL_F_NODE | MPOL_F_ADDR;
    // SAFETY: the kernel writes an int to `node`, and looks up the page of an address that is borrowed.
    let done = unsafe { libc::syscall(libc::SYS_get_mempolicy, &raw mut node, no_mask, 0_u64, at, flags) };
    Errno::result(done)?;
    u32::try_from(node).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// A set in the kernel's format, an array of words.
fn words(numbers: &CpuSet, bits: u32) -> Vec<c_ulong> {
    let mut words = vec![0; (bits / c_ulong::BITS) as usize];
    for number in numbers.iter().filter(|&number| number < bits) {
        words[(number / c_ulong::BITS) as usize] |= 1 << (number % c_ulong::BITS);
    }
    words
}

fn set(words: &[c_ulong]) -> CpuSet {
    let bits = (0_u32..).zip(words).flat_map(|(index, &word)| {
        (0..c_ulong::BITS).filter(move |bit| word >> bit & 1 == 1).map(move |bit| index * c_ulong::BITS + bit)
    });
    bits.collect()
}

/// An entry of a POSIX ACL (`struct posix_acl_xattr_entry`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AclEntry {
    /// Whom it is about: [`AclEntry::USER`], [`AclEntry::GROUP`], or others without an id.
    pub(crate) tag: u16,
    pub(crate) permissions: u16,
    /// The user or group.
    pub(crate) id: u32,
}

impl AclEntry {
    pub(crate) const USER: u16 = 0x02;
    pub(crate) const GROUP: u16 = 0x08;
    /// The permission to write.
    pub(crate) const WRITE: u16 = 0x02;
}

/// The POSIX ACL of an open file; empty where it has none (`include/uapi/linux/posix_acl_xattr.h`).
pub(crate) fn access_acl(file: &impl AsFd) -> Result<Vec<AclEntry>, Errno> {
    // XATTR_SIZE_MAX.
    let mut bytes = vec![0_u8; 1 << 16];
    let (file, name) = (file.as_fd().as_raw_fd(), c"system.posix_acl_access");
    // SAFETY: the name ends with a NUL, and the kernel writes at most as many bytes as the size argument says, which
    // are all.
    let length = unsafe { libc::fgetxattr(file, name.as_ptr(), bytes.as_mut_ptr().cast(), bytes.len()) };
    let length = match Errno::result(length) {
        Err(Errno::ENODATA | Errno::EOPNOTSUPP) => return Ok(Vec::new()),
        length => usize::try_from(length?).unwrap_or_default(),
    };
    // After a version of four bytes.
    let (entries, _) = bytes.get(4..length).unwrap_or_default().as_chunks();
    let entry = |&[t0, t1, p0, p1, i0, i1, i2, i3]: &[u8; 8]| AclEntry {
        tag: u16::from_le_bytes([t0, t1]),
        permissions: u16::from_le_bytes([p0, p1]),
        id: u32::from_le_bytes([i0, i1, i2, i3]),
    };
    Ok(entries.iter().map(entry).collect())
}

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

/// `struct ethtool_drvinfo` (`include/uapi/linux/ethtool.h`). A text ends with a zero, unless it fills its field.
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
struct EthtoolRxfh {
    cmd: u32,
    /// 0: the one of all flows that no filter sends to another.
    context: u32,
    /// In 32-bit numbers.
    table_size: u32,
    /// In bytes.
    key_size: u32,
    /// `ETH_RSS_HASH_*`; 0 to leave it unchanged.
    function: u8,
    /// `RXH_XFRM_*`, from Linux 6.8 on; 0 before.
    transform: u8,
    reserved: [u8; 6],
}

/// The same with the table.
#[repr(C)]
struct EthtoolRxfhTable {
    header: EthtoolRxfh,
    table: [u32; MAX_RSS_ENTRIES],
}

/// The largest table that is read. Those of drivers in Linux 6.12 have 2048 entries at most (ice).
const MAX_RSS_ENTRIES: usize = 4096;

/// The set of the names of features (`ETH_SS_FEATURES`).
const FEATURES: u32 = 4;

/// The most features that are read, in words of 32: Linux 6.12 has 64.
const FEATURE_WORDS: usize = 4;

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
    names: [[u8; 32]; FEATURE_WORDS * 32],
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
unsafe trait EthtoolCommand {}
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
    let mut info =
        EthtoolDrvinfo { cmd: ETHTOOL_GDRVINFO, texts: [[0; 32]; 5], reserved: [0; 12], counts: [0; 5] };
    ethtool(interface, &mut info)?;
    let text = |at: usize| {
        let bytes: &[u8] = &info.texts[at];
        String::from_utf8_lossy(bytes.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
    };
    Ok([text(1), text(2), text(3)])
}

pub(crate) fn get_channels(interface: &str) -> Result<[u32; 8], Errno> {
    let mut channels = EthtoolChannels { cmd: ETHTOOL_GCHANNELS, numbers: [0; 8] };
    ethtool(interface, &mut channels)?;
    Ok(channels.numbers)
}

pub(crate) fn set_channels(interface: &str, numbers: [u32; 8]) -> Result<(), Errno> {
    ethtool(interface, &mut EthtoolChannels { cmd: ETHTOOL_SCHANNELS, numbers })
}

/// The RSS indirection table of context 0, the number of receive queues that it can name, and the hash function. The
/// error is EOPNOTSUPP where there is no table.
pub(crate) fn get_rss(interface: &str) -> Result<(Vec<u32>, u32, u8), Errno> {
    let header = get_rss_header(interface)?;
    let entries = header.table_size as usize;
    if entries == 0 || entries > MAX_RSS_ENTRIES {
        return Err(Errno::EOPNOTSUPP);
    }
    let mut whole = rss_command(EthtoolRxfh { cmd: ETHTOOL_GRSSH, key_size: 0, ..header }, &[]);
    ethtool(interface, &mut *whole)?;
    let mut rings = EthtoolRxnfc { cmd: ETHTOOL_GRXRINGS, flow_type: 0, data: 0, rest: [0; 22] };
    ethtool(interface, &mut rings)?;
    Ok((whole.table[..entries].to_vec(), u32::try_from(rings.data).unwrap_or(0), whole.header.function))
}

/// Sets the RSS indirection table of context 0; an empty one stands for the default. Function, key and transformation
/// of the input stay.
pub(crate) fn set_rss(interface: &str, table: &[u32]) -> Result<(), Errno> {
    let header = get_rss_header(interface)?;
    let size = u32::try_from(table.len()).unwrap_or(u32::MAX);
    if size > header.table_size || table.len() > MAX_RSS_ENTRIES {
        return Err(Errno::EINVAL);
    }
    let header = EthtoolRxfh { cmd: ETHTOOL_SRSSH, table_size: size, key_size: 0, function: 0, ..header };
    ethtool(interface, &mut *rss_command(header, table))
}

/// The sizes of table and key, the hash function and the transformation.
fn get_rss_header(interface: &str) -> Result<EthtoolRxfh, Errno> {
    let (cmd, reserved) = (ETHTOOL_GRSSH, [0; 6]);
    let mut header =
        EthtoolRxfh { cmd, context: 0, table_size: 0, key_size: 0, function: 0, transform: 0, reserved };
    ethtool(interface, &mut header)?;
    Ok(header)
}

fn rss_command(header: EthtoolRxfh, table: &[u32]) -> Box<EthtoolRxfhTable> {
    let mut command = Box::new(EthtoolRxfhTable { header, table: [0; MAX_RSS_ENTRIES] });
    command.table[..table.len()].copy_from_slice(table);
    command
}

/// A feature of an interface, such as `rx-ntuple-filter`: whether it is on, and whether it can be changed.
pub(crate) fn get_feature(interface: &str, name: &str) -> Result<(bool, bool), Errno> {
    let (bit, words) = feature_bit(interface, name)?;
    let features = [[0; 4]; FEATURE_WORDS];
    let mut answer = EthtoolFeatures { cmd: ETHTOOL_GFEATURES, words, features };
    ethtool(interface, &mut answer)?;
    let [available, _, active, never] = answer.features[bit / 32].map(|word| word >> (bit % 32) & 1 == 1);
    Ok((active, available && !never))
}

/// Turns a feature on or off. The kernel may answer without doing so, if the driver cannot.
pub(crate) fn set_feature(interface: &str, name: &str, on: bool) -> Result<(), Errno> {
    let (bit, words) = feature_bit(interface, name)?;
    let mut command = EthtoolSetFeatures { cmd: ETHTOOL_SFEATURES, words, features: [[0; 2]; FEATURE_WORDS] };
    command.features[bit / 32] = [1 << (bit % 32), u32::from(on) << (bit % 32)];
    ethtool(interface, &mut command)
}

/// The bit of a feature in this kernel, and how many words its features take.
fn feature_bit(interface: &str, name: &str) -> Result<(usize, u32), Errno> {
    let mut info =
        EthtoolSetInfo { cmd: ETHTOOL_GSSET_INFO, reserved: 0, sets: 1 << FEATURES, count: 0, padding: 0 };
    ethtool(interface, &mut info)?;
    let count = info.count as usize;
    if count > FEATURE_WORDS * 32 {
        return Err(Errno::EOPNOTSUPP);
    }
    let names = [[0; 32]; FEATURE_WORDS * 32];
    let mut strings = EthtoolStrings { cmd: ETHTOOL_GSTRINGS, set: FEATURES, count: info.count, names };
    ethtool(interface, &mut strings)?;
    let is_named = |text: &[u8; 32]| text.split(|&byte| byte == 0).next() == Some(name.as_bytes());
    let bit = strings.names[..count].iter().position(is_named).ok_or(Errno::EOPNOTSUPP)?;
    Ok((bit, info.count.div_ceil(32)))
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
    Ok((index, std::array::from_fn(|at| address.sa_data[at].to_ne_bytes()[0])))
}

fn ethtool<T: EthtoolCommand>(interface: &str, command: &mut T) -> Result<(), Errno> {
    let mut request = named_request(interface)?;
    request.ifr_ifru.ifru_data = std::ptr::from_mut(command).cast();
    // SAFETY: `request` and the `command` that it points to live until the call returns, and the kernel reads and
    // writes no more than the structure that the command is defined with.
    unsafe { ioctl::siocethtool(ioctl_socket()?.as_raw_fd(), &raw mut request) }?;
    Ok(())
}

fn ioctl_socket() -> Result<OwnedFd, Errno> {
    // Any kind of socket takes these ioctls; this one needs neither IPv4 nor a sandbox that allows it.
    socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
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

/// Joins a multicast group of netlink (`NETLINK_ADD_MEMBERSHIP`): a number that an address has no bit for, if above 32.
#[cfg(feature = "cli")]
pub(crate) fn join_netlink_group(socket: &OwnedFd, group: u32) -> io::Result<()> {
    let (socket, size) =
        (socket.as_raw_fd(), libc::socklen_t::try_from(size_of::<u32>()).unwrap_or_default());
    let (level, option) = (libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP);
    // SAFETY: the kernel reads as many bytes of `group` as the size argument says, which are all.
    let done = unsafe { libc::setsockopt(socket, level, option, (&raw const group).cast(), size) };
    Errno::result(done).map(drop).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_channels() {
        assert!(get_channels("lo").is_err());
        assert!(get_channels("a-name-that-is-too-long-for-an-interface").is_err());
        assert!(get_driver("no-such-name").is_err() && get_identity("no-such-name").is_err());
        assert_eq!(get_identity("lo").unwrap(), (1, [0; 6]));
    }

    #[test]
    fn sets_survive_the_kernels_form() {
        for list in ["", "0", "63-64", "0-1,1023", "5,64,1000"] {
            let given = CpuSet::parse_list(list).unwrap();
            assert_eq!(set(&words(&given, NODE_BITS)), given);
        }
        assert_eq!(words(&CpuSet::single(5000), NODE_BITS), words(&CpuSet::new(), NODE_BITS));
    }

    /// In a thread, so that no other test is bound.
    #[test]
    fn a_thread_is_bound_and_reports_it() {
        let bound = std::thread::spawn(|| {
            let cpu = CpuSet::single(affinity().unwrap().last().unwrap());
            set_affinity(&cpu).unwrap();
            (cpu, affinity().unwrap())
        });
        let (requested, got) = bound.join().unwrap();
        assert_eq!(requested, got);
        assert_eq!(set_affinity(&CpuSet::new()).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
