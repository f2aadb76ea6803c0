//! Kernel threads that poll an interface's queues if NAPI is threaded (`Documentation/networking/napi.rst`).
//!
//! Since Linux 6.8 netlink reports the thread of a NAPI instance and, with some drivers, its IRQ and queues. Otherwise
//! threads are found by name, `napi/INTERFACE-ID`, among the children of `kthreadd`, whose number does not grow with
//! that of processes. A tree has them in `/nicpin/threads/INTERFACE`.

use std::collections::BTreeSet;
use std::io;

use nix::errno::Errno::{ENOENT, ESRCH};
use procfs::process::{Stat, StatFlags};
use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::machine::channels::MAX_QUEUES;
use crate::machine::netdev::{Direction, NetdevQueue};
use crate::machine::sample::ThreadCounts;
use crate::machine::{Interface, MaskFile, NapiThread, Source, Vector};
use crate::read::files::line_of;
use crate::read::tools::stat_of;
use crate::root::{Result, Root, sys};

/// Children of `kthreadd`; absent without `CONFIG_PROC_CHILDREN`.
const KERNEL_THREADS: &str = "/proc/2/task/2/children";

#[derive(Serialize, Deserialize)]
struct ThreadMask {
    pid: u32,
    /// Number of the NAPI instance, or 0.
    napi: u32,
    affinity: String,
}

pub(crate) fn read(root: &Root, interfaces: &mut [Interface]) -> Result<()> {
    let (mut named, mut left) = (None, MAX_QUEUES as usize);
    for interface in interfaces
        .iter_mut()
        .filter(|interface| !interface.in_other_namespace)
    {
        let mut pids: Vec<(u32, u32)> = interface
            .napis()
            .filter_map(|napi| Some((napi.pid?, napi.id)))
            .collect();
        if !interface.polling.threaded && pids.is_empty() {
            continue;
        }
        let file = recorded_file(&interface.name);
        let found = root.answer(&file, || {
            // Otherwise netlink reports all threads, and none is to be found by name.
            if !wake_all(interface, &pids) {
                if named.is_none() {
                    named = Some(all_named(root)?);
                }
                for (name, pid, napi) in named.iter().flatten() {
                    if *name == interface.name && pids.iter().all(|(known, _)| known != pid) {
                        pids.push((*pid, *napi));
                    }
                }
            }
            let mut found = Vec::new();
            for (pid, napi) in pids {
                found.extend(live_affinity(root, pid)?.map(|affinity| ThreadMask {
                    pid,
                    napi,
                    affinity,
                }));
            }
            Ok(Some(found))
        })?;
        let found = found.unwrap_or_default();
        left = left.checked_sub(found.len()).ok_or_else(|| {
            let most = format!("more than {MAX_QUEUES} threads, which no machine has");
            root.content_error(&file, format!("with the files beside it, lists {most}"))
        })?;
        let busy = interface.napis().filter(|napi| napi.busy_polls);
        let busy: BTreeSet<_> = busy.filter_map(|napi| napi.pid).collect();
        let mut threads = Vec::new();
        for ThreadMask {
            pid,
            napi,
            affinity,
        } in found
        {
            threads.push(NapiThread {
                pid,
                napi: Some(napi).filter(|&id| id != 0),
                woken_by: None,
                busy_polls: busy.contains(&pid),
                affinity: MaskFile::parse(&affinity)
                    .map_err(|reason| root.content_error(&file, reason))?,
            });
        }
        threads.sort_unstable_by_key(|thread| (thread.napi.is_none(), thread.napi, thread.pid));
        link(interface, &mut threads);
        interface.threads = threads;
    }
    Ok(())
}

fn wake_all(interface: &Interface, threads: &[(u32, u32)]) -> bool {
    let woken: Vec<u32> = threads
        .iter()
        .filter_map(|&(_, napi)| reported_irq(interface, napi))
        .collect();
    interface
        .queue_vectors()
        .all(|vector| woken.contains(&vector.irq))
}

/// The interface's name at the thread's creation, process id, and NAPI instance.
fn all_named(root: &Root) -> Result<Vec<(String, u32, u32)>> {
    let mut all = Vec::new();
    // In a container, process 2 is absent, or another process.
    if !stat_of(root, 2)?.is_some_and(|stat| is_kernel_thread(&stat) && stat.comm == "kthreadd") {
        return Ok(all);
    }
    for pid in root.read_text(KERNEL_THREADS)?.split_ascii_whitespace() {
        let name = root.read_text(&format!("/proc/{pid}/comm"))?;
        // Before Linux 5.17 the name has at most 15 bytes, and may end within the number.
        let napi = || {
            let (interface, napi) = name.trim_end().strip_prefix("napi/")?.rsplit_once('-')?;
            Some((interface.to_owned(), pid.parse().ok()?, napi.parse().ok()?))
        };
        all.extend(napi());
    }
    Ok(all)
}

fn is_kernel_thread(stat: &Stat) -> bool {
    stat.flags & StatFlags::PF_KTHREAD.bits() != 0
}

/// Process ids are reused, and any process may have any name.
fn is_napi_thread(stat: &Stat) -> bool {
    is_kernel_thread(stat) && stat.comm.starts_with("napi/")
}

pub(crate) fn counts(root: &Root, pid: u32) -> Result<Option<ThreadCounts>> {
    let path = format!("/proc/{pid}/status");
    let (status, stat) = (root.read_opt(&path)?, stat_of(root, pid)?);
    let Some((status, stat)) = status.zip(stat.filter(is_napi_thread)) else {
        return Ok(None);
    };
    let count = |name: &str| line_of(&status, name)?.parse::<u64>().ok();
    let counts = || {
        Some(ThreadCounts {
            switches: count("voluntary_ctxt_switches:")?
                .saturating_add(count("nonvoluntary_ctxt_switches:")?),
            cpu: u32::try_from(stat.processor?).ok()?,
        })
    };
    Ok(Some(counts().ok_or_else(|| {
        root.content_error(&path, "has no counts of a thread")
    })?))
}

/// Not by `sched_getaffinity(2)`, which leaves out offline CPUs: a restore could not restore them.
fn live_affinity(root: &Root, pid: u32) -> Result<Option<String>> {
    let status = root.read_text(&format!("/proc/{pid}/status"))?;
    let thread = stat_of(root, pid)?.filter(is_napi_thread);
    Ok(line_of(&status, "Cpus_allowed:")
        .filter(|_| thread.is_some())
        .map(str::to_owned))
}

/// The vector that wakes each thread, as netlink reports it, or by order if netlink links none and there is one
/// numbered instance for each receiving vector: drivers add these in the order of queues, and the kernel numbers them
/// upwards.
fn link(interface: &Interface, threads: &mut [NapiThread]) {
    for thread in &mut *threads {
        let irq = thread.napi.and_then(|napi| reported_irq(interface, napi));
        thread.woken_by = irq.map(|irq| (irq, Source::Netlink));
    }
    let numbers: Vec<u32> = threads.iter().map_while(|thread| thread.napi).collect();
    let is_distinct = numbers.windows(2).all(|pair| pair[0] != pair[1]);
    let mut receiving: Vec<&Vector> = interface.vectors.iter().collect();
    receiving.retain(|vector| vector.role.serves(Direction::Rx));
    receiving.sort_by_key(|vector| vector.queue);
    let is_linked = threads.iter().any(|thread| thread.woken_by.is_some());
    if is_distinct && receiving.len() == numbers.len() && !is_linked {
        for (thread, vector) in threads.iter_mut().zip(receiving) {
            thread.woken_by = Some((vector.irq, Source::Order));
        }
    }
}

/// The IRQ of the queue vector that wakes a NAPI instance by netlink: its own, or that of its queues.
fn reported_irq(interface: &Interface, napi: u32) -> Option<u32> {
    let answer = interface.netdev.as_ref()?;
    let own = answer
        .napis
        .iter()
        .find(|instance| instance.id == napi)?
        .irq;
    if interface
        .queue_vectors()
        .any(|vector| own == Some(vector.irq))
    {
        return own;
    }
    let vector = |queue: &NetdevQueue| {
        let mut vectors = interface.queue_vectors();
        vectors.find(|vector| vector.queue == Some(queue.id) && vector.role.serves(queue.direction))
    };
    Some(
        answer
            .queues
            .iter()
            .filter(|queue| queue.napi == Some(napi))
            .find_map(vector)?
            .irq,
    )
}

pub(crate) fn affinity(root: &Root, interface: &str, pid: u32) -> Result<Option<String>> {
    if root.is_real() {
        return live_affinity(root, pid);
    }
    let thread = recorded_threads(root, interface)?
        .into_iter()
        .find(|thread| thread.pid == pid);
    Ok(thread.map(|thread| thread.affinity))
}

pub(crate) fn set_affinity(root: &Root, interface: &str, pid: u32, mask: &str) -> io::Result<()> {
    if !root.is_real() {
        let mut threads = recorded_threads(root, interface)?;
        let thread = threads.iter_mut().find(|thread| thread.pid == pid);
        mask.clone_into(&mut thread.ok_or(ENOENT)?.affinity);
        return root.write_answer(&recorded_file(interface), &threads);
    }
    let cpus = CpuSet::parse_kernel_mask(mask).map_err(io::Error::other)?;
    // The id may be another process's by now.
    stat_of(root, pid)?.filter(is_napi_thread).ok_or(ESRCH)?;
    sys::set_affinity(pid, &cpus)
}

fn recorded_threads(root: &Root, interface: &str) -> Result<Vec<ThreadMask>> {
    Ok(root
        .answer(&recorded_file(interface), || Ok(None))?
        .unwrap_or_default())
}

fn recorded_file(interface: &str) -> String {
    format!("/nicpin/threads/{interface}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn no_other_process_is_moved() {
        let root = Root::open(Path::new("/")).unwrap();
        let before = sys::affinity().unwrap();
        let own = std::process::id();
        let moved = set_affinity(&root, "eth0", own, "1").unwrap_err();
        assert_eq!(moved.raw_os_error(), Some(nix::libc::ESRCH));
        assert_eq!(affinity(&root, "eth0", own).unwrap(), None);
        assert_eq!(sys::affinity().unwrap(), before);
        let mut other = stat_of(&root, own).unwrap().unwrap();
        other.comm = "napi/eth0-8193".to_owned();
        assert!(!is_napi_thread(&other));
    }
}
