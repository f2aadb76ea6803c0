//! The kernel threads that poll an interface's queues where NAPI is threaded (`/sys/class/net/INTERFACE/threaded`,
//! `Documentation/networking/napi.rst`): which there are, the vector that wakes each, and where each may run. Where NAPI
//! is not threaded, nothing is read.
//!
//! Since Linux 6.8 netlink reports the thread of a NAPI instance and, with some drivers, its IRQ and queues. Without
//! these, threads are found by their names, `napi/INTERFACE-ID`, among the children of `kthreadd`: their number does not
//! grow with that of processes. A tree has them in `/nicpin/threads/INTERFACE`.

use std::io;

use nix::errno::Errno;
use procfs::process::{Stat, StatFlags};
use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::machine::netdev::Direction;
use crate::machine::sample::ThreadCounts;
use crate::machine::setting::thread_of;
use crate::machine::{Interface, MaskFile, NapiThread, Role, Source, Vector};
use crate::read::tools::stat_of;
use crate::root::sys;
use crate::root::{FileError, Root};

/// The process ids of `kthreadd`'s children; absent on kernels without `CONFIG_PROC_CHILDREN`.
const KERNEL_THREADS: &str = "/proc/2/task/2/children";

/// A thread as it is found.
#[derive(Serialize, Deserialize)]
struct Found {
    pid: u32,
    /// The number of its NAPI instance, or 0.
    napi: u32,
    /// A CPU mask.
    affinity: String,
}

/// Adds the threads of interfaces whose NAPI is threaded.
pub(crate) fn read(root: &Root, interfaces: &mut [Interface]) -> Result<(), FileError> {
    let mut named: Option<Vec<(String, u32, u32)>> = None;
    for interface in interfaces
        .iter_mut()
        .filter(|interface| !interface.in_other_namespace)
    {
        let reported: Vec<(u32, u32)> = (interface.netdev.iter().flat_map(|answer| &answer.napis))
            .filter_map(|napi| Some((napi.pid?, napi.id)))
            .collect();
        if !interface.polling.threaded && reported.is_empty() {
            continue;
        }
        let found = root.answer(&recorded_file(&interface.name), || {
            let mut found = reported;
            if !wakes_all(interface, &found) {
                let threads = match named.take() {
                    Some(threads) => threads,
                    None => all_named(root).map_err(io::Error::other)?,
                };
                for (name, pid, napi) in named.insert(threads) {
                    if *name == interface.name && found.iter().all(|(known, _)| known != pid) {
                        found.push((*pid, *napi));
                    }
                }
            }
            // A thread may have ended.
            let look = |(pid, napi)| {
                let affinity = live_affinity(root, pid).map_err(io::Error::other);
                let found = affinity.map(|affinity| {
                    affinity.map(|affinity| Found {
                        pid,
                        napi,
                        affinity,
                    })
                });
                found.transpose()
            };
            let found: io::Result<Vec<_>> = found.into_iter().filter_map(look).collect();
            found.map(Some)
        })?;
        let thread = |found: Found| {
            let affinity = MaskFile::parse(&found.affinity).map_err(|error| {
                root.content_error(&recorded_file(&interface.name), error.to_string())
            })?;
            let mut napis = interface.netdev.iter().flat_map(|answer| &answer.napis);
            Ok(NapiThread {
                pid: found.pid,
                napi: Some(found.napi).filter(|&id| id != 0),
                woken_by: None,
                busy_polls: napis.any(|napi| napi.pid == Some(found.pid) && napi.busy_polls),
                affinity,
            })
        };
        let threads: Result<Vec<_>, FileError> = found.into_iter().flatten().map(thread).collect();
        let mut threads = threads?;
        threads.sort_by_key(|thread| (thread.napi.is_none(), thread.napi, thread.pid));
        link(interface, &mut threads);
        interface.threads = threads;
    }
    Ok(())
}

/// Whether netlink reports the thread of each queue vector; there is none to find by its name then.
fn wakes_all(interface: &Interface, found: &[(u32, u32)]) -> bool {
    let woken: Vec<u32> = found
        .iter()
        .filter_map(|&(_, napi)| reported_irq(interface, napi))
        .collect();
    interface
        .vectors
        .iter()
        .filter(|v| v.is_queue_vector())
        .all(|vector| woken.contains(&vector.irq))
}

/// All NAPI threads by their names: the interface when the thread was created, process id, and NAPI instance.
fn all_named(root: &Root) -> Result<Vec<(String, u32, u32)>, FileError> {
    // In a container, process 2 is another one, or none.
    let is_kthreadd = |stat: Stat| is_kernel_thread(&stat) && stat.comm == "kthreadd";
    if !stat_of(root, 2)?.is_some_and(is_kthreadd) {
        return Ok(Vec::new());
    }
    let children = root.read_opt(KERNEL_THREADS)?.unwrap_or_default();
    let mut all = Vec::new();
    for pid in children.split_ascii_whitespace() {
        let Some(name) = root.read_opt(&format!("/proc/{pid}/comm"))? else {
            continue;
        };
        // Before Linux 5.17 the name has at most 15 bytes, and may end within the number.
        let napi = |name: &str| {
            let (interface, napi) = name.trim_end().strip_prefix("napi/")?.rsplit_once('-')?;
            Some((interface.to_owned(), pid.parse().ok()?, napi.parse().ok()?))
        };
        all.extend(napi(&name));
    }
    Ok(all)
}

fn is_kernel_thread(stat: &Stat) -> bool {
    stat.flags & StatFlags::PF_KTHREAD.bits() != 0
}

/// What a NAPI thread did so far.
pub(crate) fn counts(root: &Root, pid: u32) -> Result<Option<ThreadCounts>, FileError> {
    let path = format!("/proc/{pid}/status");
    let (Some(status), Some(stat)) = (root.read_opt(&path)?, stat_of(root, pid)?) else {
        return Ok(None);
    };
    if !is_napi_thread(&stat) {
        return Ok(None);
    }
    let of = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    let counts = || {
        let switches =
            of("voluntary_ctxt_switches:")?.saturating_add(of("nonvoluntary_ctxt_switches:")?);
        let cpu = u32::try_from(stat.processor?).ok()?;
        Some(ThreadCounts { switches, cpu })
    };
    let unread = || root.content_error(&path, "has no counts of a thread");
    counts().map(Some).ok_or_else(unread)
}

/// Whether this is a NAPI thread: process ids are reused, and anybody may give a process any name.
fn is_napi_thread(stat: &Stat) -> bool {
    is_kernel_thread(stat) && stat.comm.starts_with("napi/")
}

/// The CPUs of a NAPI thread. `sched_getaffinity(2)` leaves out those that are offline, which a restore could then not
/// restore.
fn live_affinity(root: &Root, pid: u32) -> Result<Option<String>, FileError> {
    let status = root.read_opt(&format!("/proc/{pid}/status"))?;
    let mask = status.as_deref().and_then(|status| {
        let mut lines = status.lines();
        lines.find_map(|line| line.strip_prefix("Cpus_allowed:"))
    });
    let is_thread = stat_of(root, pid)?.is_some_and(|stat| is_napi_thread(&stat));
    Ok(mask
        .filter(|_| is_thread)
        .map(|mask| mask.trim().to_owned()))
}

/// Determines the vector that wakes each thread: as netlink reports it, or by order. Drivers add a NAPI instance for
/// each receiving vector, in the order of queues, and the kernel numbers them upwards; that is used if there is one
/// instance with a number for each receiving vector, and netlink links none.
fn link(interface: &Interface, threads: &mut [NapiThread]) {
    for thread in &mut *threads {
        let irq = thread.napi.and_then(|napi| reported_irq(interface, napi));
        thread.woken_by = irq.map(|irq| (irq, Source::Netlink));
    }
    let numbered = threads
        .iter()
        .take_while(|thread| thread.napi.is_some())
        .count();
    let is_distinct = threads[..numbered]
        .windows(2)
        .all(|pair| pair[0].napi != pair[1].napi);
    let mut receiving: Vec<&Vector> = interface
        .vectors
        .iter()
        .filter(|v| matches!(v.role, Role::Combined | Role::Rx))
        .collect();
    receiving.sort_by_key(|vector| vector.queue);
    if is_distinct && receiving.len() == numbered && threads.iter().all(|t| t.woken_by.is_none()) {
        for (thread, vector) in threads.iter_mut().zip(receiving) {
            thread.woken_by = Some((vector.irq, Source::Order));
        }
    }
}

/// The IRQ of the queue vector that wakes a NAPI instance, as netlink reports it: by its IRQ, or by its queues.
fn reported_irq(interface: &Interface, napi: u32) -> Option<u32> {
    let answer = interface.netdev.as_ref()?;
    let vectors = || {
        interface
            .vectors
            .iter()
            .filter(|vector| vector.is_queue_vector())
    };
    let own = answer.napis.iter().find(|one| one.id == napi)?.irq;
    let by_queue = || {
        // Receive queues come first.
        let queues = answer
            .queues
            .iter()
            .filter(|queue| queue.napi == Some(napi));
        let mut woken = queues.filter_map(|queue| {
            let role = if queue.direction == Direction::Rx {
                Role::Rx
            } else {
                Role::Tx
            };
            let of_queue = |v: &&Vector| {
                v.queue == Some(queue.id) && (v.role == role || v.role == Role::Combined)
            };
            vectors().find(of_queue)
        });
        woken.next().map(|vector| vector.irq)
    };
    own.filter(|irq| vectors().any(|vector| vector.irq == *irq))
        .or_else(by_queue)
}

/// The mask of a thread by its directory, `/proc/PID`; `None` if it has ended.
pub(crate) fn affinity(
    root: &Root,
    interface: &str,
    directory: &str,
) -> Result<Option<String>, FileError> {
    let Some(pid) = thread_of(directory) else {
        return Ok(None);
    };
    if root.is_real() {
        return live_affinity(root, pid);
    }
    let recorded = recorded(root, interface)?.into_iter();
    Ok(recorded
        .filter(|thread| thread.pid == pid)
        .map(|thread| thread.affinity)
        .next())
}

/// Sets the CPUs of a thread by its directory (`sched_setaffinity(2)`). In a tree the recorded mask changes.
pub(crate) fn set_affinity(
    root: &Root,
    interface: &str,
    directory: &str,
    mask: &str,
) -> io::Result<()> {
    let pid = thread_of(directory).ok_or(Errno::ESRCH)?;
    if !root.is_real() {
        let mut threads = recorded(root, interface).map_err(io::Error::other)?;
        let thread = threads.iter_mut().find(|thread| thread.pid == pid);
        mask.clone_into(&mut thread.ok_or(Errno::ENOENT)?.affinity);
        return root.write_answer(&recorded_file(interface), &threads);
    }
    let cpus = CpuSet::parse_kernel_mask(mask).map_err(io::Error::other)?;
    // Its id may be that of another process by now.
    let stat = stat_of(root, pid).map_err(io::Error::other)?;
    if !stat.is_some_and(|stat| is_napi_thread(&stat)) {
        return Err(Errno::ESRCH.into());
    }
    sys::set_affinity_of(pid, &cpus)
}

/// The threads of a tree.
fn recorded(root: &Root, interface: &str) -> Result<Vec<Found>, FileError> {
    let threads = root.answer(&recorded_file(interface), || Ok(None))?;
    Ok(threads.unwrap_or_default())
}

fn recorded_file(interface: &str) -> String {
    format!("/nicpin/threads/{interface}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A process id that is reused is that of another program, perhaps with such a name.
    #[test]
    fn no_other_process_is_moved() {
        let root = Root::open(Path::new("/")).unwrap();
        let before = sys::affinity().unwrap();
        let directory = format!("/proc/{}", std::process::id());
        let moved = set_affinity(&root, "eth0", &directory, "1").unwrap_err();
        assert_eq!(moved.raw_os_error(), Some(nix::libc::ESRCH));
        assert_eq!(affinity(&root, "eth0", &directory).unwrap(), None);
        assert_eq!(sys::affinity().unwrap(), before);
        let mut other = stat_of(&root, std::process::id()).unwrap().unwrap();
        other.comm = "napi/eth0-8193".to_owned();
        assert!(!is_napi_thread(&other));
    }
}
