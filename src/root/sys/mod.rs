//! System calls and ioctls: the only module with unsafe code. It knows numbers and structures, not their use.
#![allow(unsafe_code)]

pub(crate) mod ethtool;

use std::fs::File;
use std::io::{self, ErrorKind};
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::ptr::{from_ref, null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno::{self, ENODATA, EOPNOTSUPP};
use nix::errno::ErrnoSentinel;
use nix::libc::{
    self, LOCK_EX, LOCK_NB, LOCK_UN, MADV_DONTNEED, MADV_NOHUGEPAGE, NETLINK_ADD_MEMBERSHIP, PF_W,
    PT_LOAD, SIG_IGN, SO_ATTACH_FILTER, SOL_NETLINK, SOL_SOCKET, SYS_close_range,
    SYS_get_mempolicy, SYS_mbind, SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_set_mempolicy,
    c_int, c_ulong, c_void, dl_phdr_info, sock_filter, sock_fprog,
};
pub use nix::libc::{MPOL_BIND, MPOL_LOCAL, MPOL_PREFERRED};
use nix::sys::resource::Resource::RLIMIT_NOFILE;
use nix::sys::resource::{getrlimit, rlim_t, setrlimit};
use nix::sys::signal::SigHandler::{self, SigDfl, SigIgn};
use nix::sys::signal::Signal::{self, SIGCHLD, SIGPIPE, SIGXFSZ};
use nix::sys::signal::{self, SigSet};
use nix::sys::socket::setsockopt;
use nix::{setsockopt_impl, sockopt_impl};

use crate::cpuset::{CpuSet, MAX_CPUS, NodeSet};

/// The most nodes of any kernel (`CONFIG_NODES_SHIFT` is 10 at most).
const NODE_BITS: u32 = 1024;
/// The kernel uses one bit less than this.
const MAX_NODE: c_ulong = 1024 + 1;

/// Bytes of the largest page of a supported kernel.
const PAGE: usize = 64 << 10;

/// Whole pages on every kernel.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(65536))]
pub struct MemPage(pub [u64; PAGE / 8]);

pub const MPOL_PREFERRED_MANY: c_int = 5;
const MPOL_F_NODE: c_ulong = 1;
const MPOL_F_ADDR: c_ulong = 2;
const MPOL_F_MEMS_ALLOWED: c_ulong = 4;
const MPOL_MF_MOVE: u32 = 2;

/// `flock(2)` until all descriptors of this opening are closed; `false` if another opening has the lock.
/// `File::try_lock` needs Rust 1.89.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match lock(file, LOCK_EX | LOCK_NB) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        answer => answer.map(|()| true),
    }
}

pub fn unlock(file: &File) -> io::Result<()> {
    lock(file, LOCK_UN)
}

fn lock(file: &File, operation: c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open while it is borrowed.
    done(unsafe { libc::flock(file.as_raw_fd(), operation) })
}

fn done(answer: impl ErrnoSentinel + PartialEq) -> io::Result<()> {
    Ok(Errno::result(answer).map(drop)?)
}

/// Binds a thread and its later children; 0 is the calling thread. A cpuset may leave fewer CPUs; see [`affinity`].
pub fn set_affinity(thread: u32, cpus: &CpuSet) -> io::Result<()> {
    let mask = words(cpus, MAX_CPUS);
    let size = size_of_val(&*mask);
    // SAFETY: the kernel reads `size` bytes, all of `mask`.
    done(unsafe { libc::syscall(SYS_sched_setaffinity, thread, size, mask.as_ptr()) })
}

/// Signals and limits of the caller that this process changes for itself (`signal(7)`).
#[derive(Debug, Clone)]
pub struct Inherited {
    ignored: Vec<Signal>,
    blocked: SigSet,
    /// Soft and hard limit of open files; `None` if unchanged (a sandbox may refuse it).
    files: Option<(rlim_t, rlim_t)>,
}

/// Read before Rust's runtime ignores SIGPIPE.
static IGNORED_PIPES: AtomicBool = AtomicBool::new(false);

/// Called by the C library before main.
#[used]
// SAFETY: the function ignores the arguments that the C library may pass, allocates nothing and calls sigaction(2).
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn ask() {
        IGNORED_PIPES.store(is_ignored(SIGPIPE), Ordering::Relaxed);
    }
    ask
};

fn is_ignored(signal: Signal) -> bool {
    // SAFETY: zeros are a valid `sigaction`, of a signal that is not ignored.
    let mut action: libc::sigaction = unsafe { zeroed() };
    // SAFETY: no action is set, and the kernel writes `action`, which outlives the call.
    unsafe { libc::sigaction(signal as c_int, null(), &raw mut action) };
    action.sa_sigaction == SIG_IGN
}

/// Sets what the program needs, whatever the caller has left: no signal blocked, ends of children reported, and a file
/// that gets too large an error (`EFBIG`) and not the end. Raises the limit of open files to the hard one
/// (`getrlimit(2)`): restore holds the directory of each interface.
pub fn take_over() -> io::Result<Inherited> {
    let blocked = SigSet::thread_get_mask()?;
    let was_ignored = |signal: &Signal| match signal {
        SIGPIPE => IGNORED_PIPES.load(Ordering::Relaxed),
        signal => is_ignored(*signal),
    };
    let ignored = Signal::iterator().filter(was_ignored).collect();
    set_action(SIGCHLD, SigDfl)?;
    set_action(SIGXFSZ, SigIgn)?;
    SigSet::empty().thread_set_mask()?;
    let files = getrlimit(RLIMIT_NOFILE);
    let raised = files.and_then(|files| setrlimit(RLIMIT_NOFILE, files.1, files.1).map(|()| files));
    Ok(Inherited {
        ignored,
        blocked,
        files: raised.ok(),
    })
}

impl Inherited {
    /// Whether the caller ignored a signal, as nohup(1) does with SIGHUP.
    pub fn ignores(&self, signal: Signal) -> bool {
        self.ignored.contains(&signal)
    }

    pub fn give_to(&self, command: &mut Command) {
        let this = self.clone();
        let give = move || {
            for signal in [SIGCHLD, SIGPIPE, SIGXFSZ] {
                set_action(signal, if this.ignores(signal) { SigIgn } else { SigDfl })?;
            }
            if let Some((soft, hard)) = this.files {
                setrlimit(RLIMIT_NOFILE, soft, hard)?;
            }
            Ok(this.blocked.thread_set_mask()?)
        };
        // SAFETY: sigaction(2), setrlimit(2) and pthread_sigmask(3) allocate nothing and take no lock.
        unsafe { command.pre_exec(give) };
    }
}

fn set_action(signal: Signal, handler: SigHandler) -> nix::Result<()> {
    // SAFETY: no handler is set that could run.
    unsafe { signal::signal(signal, handler) }.map(drop)
}

/// Closes the descriptors from `first` on that the caller left open. Only before this process has opened any.
pub fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: nothing in this process owns a descriptor that is closed here, as the caller promises.
    done(unsafe { libc::syscall(SYS_close_range, first, u32::MAX, 0) })
}

/// Starts a command without blocked signals: if the starting thread unblocked them, one could end this process.
pub fn unblock_signals(command: &mut Command) {
    // SAFETY: sigemptyset(3) and pthread_sigmask(3) allocate nothing and take no lock.
    unsafe { command.pre_exec(|| Ok(SigSet::empty().thread_set_mask()?)) };
}

/// For a process that sleeps for minutes. Code and constants stay in the page cache, from which the kernel maps each
/// page again when it is needed (`MADV_DONTNEED` in `madvise(2)`).
pub fn unmap_program() {
    unsafe extern "C" fn unmap(
        program: *mut dl_phdr_info,
        _size: usize,
        _data: *mut c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr(3) passes a valid structure with the segments of a loaded file.
        let (base, segments) = unsafe {
            let program = &*program;
            (
                program.dlpi_addr,
                std::slice::from_raw_parts(program.dlpi_phdr, program.dlpi_phnum.into()),
            )
        };
        for segment in segments {
            if segment.p_type != PT_LOAD || segment.p_flags & PF_W != 0 {
                continue;
            }
            let (Ok(start), Ok(length)) = (
                usize::try_from(base + segment.p_vaddr),
                usize::try_from(segment.p_memsz),
            ) else {
                continue;
            };
            let end = (start + length) / PAGE * PAGE;
            let start = start.next_multiple_of(PAGE);
            // Otherwise 2 MiB may come back at once.
            for advice in [MADV_NOHUGEPAGE, MADV_DONTNEED] {
                // SAFETY: a segment without write permission is a private mapping of the file, so its pages read the
                // same when mapped again. The first and the last page may belong to another segment, too, and stay.
                let _ =
                    unsafe { libc::madvise(start as *mut _, end.saturating_sub(start), advice) };
            }
        }
        1 // The program is the first one; no library.
    }
    // SAFETY: `unmap` takes no data, and allocates nothing.
    unsafe { libc::dl_iterate_phdr(Some(unmap), null_mut()) };
}

/// Of the calling thread (`sched_getaffinity(2)`).
pub fn affinity() -> io::Result<CpuSet> {
    let mut mask = words(&CpuSet::new(), MAX_CPUS);
    let size = size_of_val(&*mask);
    // SAFETY: the kernel writes at most `size` bytes, all of `mask`.
    done(unsafe { libc::syscall(SYS_sched_getaffinity, 0, size, mask.as_mut_ptr()) })?;
    Ok(set(&mask, MAX_CPUS))
}

/// For the calling thread and its later children (`set_mempolicy(2)`).
pub fn set_memory_policy(mode: c_int, nodes: &NodeSet) -> io::Result<()> {
    let mask = words(nodes, NODE_BITS);
    // SAFETY: the kernel reads `NODE_BITS` bits of `mask`, which has them.
    done(unsafe { libc::syscall(SYS_set_mempolicy, mode, mask.as_ptr(), MAX_NODE) })
}

/// Nodes from which the calling thread's cpuset allows memory.
pub fn allowed_nodes() -> io::Result<NodeSet> {
    Ok(get_mempolicy(null::<()>(), MPOL_F_MEMS_ALLOWED)?.1)
}

pub fn node_of<T>(value: &T) -> io::Result<u32> {
    let (node, _) = get_mempolicy(from_ref(value), MPOL_F_NODE | MPOL_F_ADDR)?;
    u32::try_from(node).map_err(|_| ErrorKind::InvalidData.into())
}

/// Mode or node, and the nodes, of `get_mempolicy(2)`.
fn get_mempolicy<T>(at: *const T, flags: c_ulong) -> io::Result<(c_int, NodeSet)> {
    let mut mask = words(&NodeSet::new(), NODE_BITS);
    let (mut mode, nodes): (c_int, _) = (0, mask.as_mut_ptr());
    let call = SYS_get_mempolicy;
    // SAFETY: the kernel writes an int to `mode` and at most `NODE_BITS` bits into `mask`, and only looks up the page
    // of the address.
    done(unsafe { libc::syscall(call, &raw mut mode, nodes, MAX_NODE, at, flags) })?;
    Ok((mode, set(&mask, NODE_BITS)))
}

/// Allocates and touches pages on one node only (`mbind(2)`).
///
/// The policy is the pages', not a thread's: `kernel.numa_balancing` moves pages without one to the node that reads
/// them. Pages of another node that an allocator returns are moved.
#[allow(clippy::large_stack_arrays)] // one page, which the stack of each thread has room for
pub fn pages_of(node: u32, bytes: usize) -> io::Result<Vec<MemPage>> {
    let count = bytes.div_ceil(PAGE);
    let mut pages = Vec::new();
    pages
        .try_reserve_exact(count)
        .map_err(|_| ErrorKind::OutOfMemory)?;
    let mask = words(&NodeSet::single(node), NODE_BITS);
    let (at, length, nodes) = (pages.as_ptr(), count * PAGE, mask.as_ptr());
    // SAFETY: the kernel reads `NODE_BITS` bits of `mask`, which has them; the policy changes nothing in the pages, all
    // of which are this vector's.
    done(unsafe {
        libc::syscall(
            SYS_mbind,
            at,
            length,
            MPOL_BIND,
            nodes,
            MAX_NODE,
            MPOL_MF_MOVE,
        )
    })?;
    // The kernel allocates the pages at the first write.
    pages.resize(count, MemPage([1; PAGE / 8]));
    Ok(pages)
}

fn words(numbers: &CpuSet, bits: u32) -> Vec<c_ulong> {
    let mut words = vec![0; (bits / c_ulong::BITS) as usize];
    for number in numbers.iter().filter(|&number| number < bits) {
        words[(number / c_ulong::BITS) as usize] |= 1 << (number % c_ulong::BITS);
    }
    words
}

fn set(words: &[c_ulong], bits: u32) -> CpuSet {
    let is_in = |number: &u32| {
        words[(number / c_ulong::BITS) as usize] >> (number % c_ulong::BITS) & 1 == 1
    };
    (0..bits).filter(is_in).collect()
}

/// Users and groups that the POSIX ACL of an open file lets write it; none without an ACL
/// (`include/uapi/linux/posix_acl_xattr.h`).
pub(crate) fn acl_writers(file: &impl AsFd) -> Result<Vec<(&'static str, u32)>, Errno> {
    const WRITE: u8 = 0x02;
    // XATTR_SIZE_MAX.
    let mut bytes = vec![0_u8; 1 << 16];
    let (file, at) = (file.as_fd().as_raw_fd(), bytes.as_mut_ptr().cast());
    let name = c"system.posix_acl_access".as_ptr();
    // SAFETY: the name ends with a NUL, and the kernel writes at most `bytes.len()` bytes, all of `bytes`.
    let length = unsafe { libc::fgetxattr(file, name, at, bytes.len()) };
    let length = match Errno::result(length) {
        Err(ENODATA | EOPNOTSUPP) => return Ok(Vec::new()),
        length => usize::try_from(length?).unwrap_or_default(),
    };
    // After a version of four bytes, entries: tag and permissions of two bytes, low byte first, and id.
    Ok(bytes
        .get(4..length)
        .unwrap_or_default()
        .chunks_exact(8)
        .filter_map(|entry| {
            let who = match entry[..2] {
                [0x02, 0] => "user",
                [0x08, 0] => "group",
                _ => return None,
            };
            (entry[2] & WRITE != 0)
                .then_some((who, u32::from_le_bytes(entry[4..].try_into().ok()?)))
        })
        .collect())
}

sockopt_impl!(
    AttachFilter,
    SetOnly,
    SOL_SOCKET,
    SO_ATTACH_FILTER,
    sock_fprog
);
sockopt_impl!(
    AddMembership,
    SetOnly,
    SOL_NETLINK,
    NETLINK_ADD_MEMBERSHIP,
    u32
);

/// `BPF_LD | BPF_H | BPF_ABS`, `BPF_JMP | BPF_JEQ | BPF_K`, `BPF_RET | BPF_K` (`include/uapi/linux/bpf_common.h`).
const LOAD: u16 = 0x28;
const IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// The kernel drops datagrams to the socket whose first message is of neither type.
pub fn filter_netlink(socket: &impl AsFd, types: [u16; 2]) -> io::Result<()> {
    let step = |code, jt, k| sock_filter { code, jt, jf: 0, k };
    // The type is in this machine's byte order (`struct nlmsghdr`); the filter reads network order.
    let [first, second] = types.map(|kind| kind.to_be().into());
    let mut steps = [
        step(LOAD, 0, 4),
        step(IF_EQUAL, 2, first),
        step(IF_EQUAL, 1, second),
        step(RETURN, 0, 0),
        step(RETURN, 0, u32::MAX),
    ];
    // The kernel reads `len` steps, which live until the end of this function.
    let program = sock_fprog {
        len: 5,
        filter: steps.as_mut_ptr(),
    };
    Ok(setsockopt(socket, AttachFilter, &program)?)
}

/// By a socket option: an address has no bit for a group above 32.
pub fn join_netlink_group(socket: &impl AsFd, group: u32) -> io::Result<()> {
    Ok(setsockopt(socket, AddMembership, &group)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_survive_the_kernels_form() {
        for list in ["", "0", "63-64", "0-1,1023", "5,64,1000"] {
            let given = CpuSet::parse_list(list).unwrap();
            assert_eq!(set(&words(&given, NODE_BITS), NODE_BITS), given);
        }
        assert_eq!(
            words(&CpuSet::single(5000), NODE_BITS),
            words(&CpuSet::new(), NODE_BITS)
        );
    }

    /// In a thread, so that no other test is bound.
    #[test]
    fn a_thread_is_bound_and_reports_it() {
        let bound = std::thread::spawn(|| {
            let cpu = CpuSet::single(affinity().unwrap().last().unwrap());
            set_affinity(0, &cpu).unwrap();
            (cpu, affinity().unwrap())
        });
        let (requested, got) = bound.join().unwrap();
        assert_eq!(requested, got);
        assert_eq!(
            set_affinity(0, &CpuSet::new()).unwrap_err().raw_os_error(),
            Some(libc::EINVAL)
        );
    }
}
