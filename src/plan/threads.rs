//! The CPU of each thread that polls queues (threaded NAPI): next to the CPU that the queue interrupts. There the two
//! share caches, and neither waits for the other.

use std::collections::BTreeMap;

use itertools::Itertools as _;

use crate::cpuset::CpuSet;
use crate::machine::{NapiThread, Vector};
use crate::plan::data::PlannedThread;
use crate::plan::note::Note;
use crate::plan::ports::PlacedPort;
use crate::plan::why::{Cause, Why};
use crate::policy::KEEP_NAPI_THREADS;

#[derive(Debug, Default)]
pub(crate) struct Threads {
    planned: BTreeMap<u32, (CpuSet, Cause)>,
    pub(crate) cpus: CpuSet,
}

/// The first SMT sibling of the interrupted CPU that is not taken, else that CPU; the candidates if it is isolated or
/// excluded. A queue that may interrupt several CPUs has its thread on all of them. A busy-polling thread shares the
/// CPU of its queue, which no longer interrupts: so the two take one core.
fn place_thread(
    port: &PlacedPort<'_>,
    vector: &Vector,
    is_busy: bool,
    taken: &mut CpuSet,
) -> (CpuSet, Cause) {
    let candidates = port.candidates_of(vector);
    let usable = thread_candidates(port, candidates);
    let interrupted = port.cpus_of(vector);
    let Some(cpu) = interrupted.only() else {
        let cpus = interrupted.intersection(&usable);
        if cpus.is_empty() {
            return (candidates.clone(), Cause::QueueOnUnusable);
        }
        return (cpus, Cause::CpusOfQueue);
    };
    let core = port.locations.core_of(cpu);
    let beside = core
        .map(|core| core.intersection(&usable).difference(taken))
        .unwrap_or_default();
    let sibling = beside.iter().find(|&sibling| sibling != cpu);
    match (usable.contains(cpu), sibling) {
        (true, _) if is_busy => {
            taken.add(&beside);
            (interrupted, Cause::BusyPolls)
        }
        (_, Some(sibling)) => {
            taken.insert(sibling);
            (CpuSet::single(sibling), Cause::FreeSibling)
        }
        (true, None) => (interrupted, Cause::NoFreeSibling),
        (false, None) => (candidates.clone(), Cause::QueueOnUnusable),
    }
}

/// If the policy names CPUs, only those may process packets.
fn thread_candidates(port: &PlacedPort<'_>, candidates: &CpuSet) -> CpuSet {
    if port.candidates.named {
        return candidates.clone();
    }
    let (topology, allowed) = (&port.machine.topology, &port.candidates.allowed);
    topology
        .online
        .difference(&topology.isolated_or_nohz())
        .union(candidates)
        .difference(&allowed.excluded)
        .difference(&allowed.exclusive)
}

impl Threads {
    /// No two threads get one CPU while another sibling is free.
    pub(crate) fn new(ports: &[PlacedPort<'_>], loaded: &CpuSet) -> Self {
        let mut all = Self::default();
        let mut taken = loaded.clone();
        let (kept, placed): (Vec<&PlacedPort<'_>>, Vec<_>) =
            ports.iter().partition(|port| port.keeps_threads());
        let kept = kept.iter().flat_map(|port| &port.interface.threads);
        all.cpus
            .extend(kept.filter_map(|thread| thread.affinity.cpus.only()));
        taken.add(&all.cpus);
        for port in placed {
            all.add(port, &mut taken);
        }
        all
    }

    fn add(&mut self, port: &PlacedPort<'_>, taken: &mut CpuSet) {
        let interface = port.interface;
        let threads = interface.threads.iter();
        // Threads of queues in use choose first.
        let known = threads
            .clone()
            .filter_map(|thread| Some((thread, interface.vector_of(thread)?)))
            .sorted_unstable_by_key(|(thread, vector)| {
                let is_idle = interface.is_idle(vector);
                (is_idle, vector.queue, vector.role, thread.pid)
            });
        let mut thread_cpus = CpuSet::new();
        for (thread, vector) in known {
            let (cpus, cause) = place_thread(port, vector, thread.busy_polls, taken);
            thread_cpus.add(&cpus);
            self.planned.insert(thread.pid, (cpus, cause));
        }
        let of_queues =
            (port.irq_cpus).intersection(&thread_candidates(port, &port.candidates.cpus));
        let (cpus, cause) = if !thread_cpus.is_empty() {
            (&thread_cpus, Cause::CpusOfOtherThreads)
        } else if !of_queues.is_empty() {
            (&of_queues, Cause::CpusOfQueues)
        } else {
            (&port.candidates.cpus, Cause::Candidates)
        };
        for thread in threads.filter(|thread| interface.vector_of(thread).is_none()) {
            self.planned
                .insert(thread.pid, (cpus.clone(), cause.clone()));
        }
        self.cpus.add(&thread_cpus);
    }

    /// The plan for the threads of an interface, with a note if none of them is placed.
    pub(crate) fn of(&self, port: &PlacedPort<'_>) -> (Vec<PlannedThread>, Option<Note>) {
        let (interface, threads) = (port.interface, port.interface.threads.iter());
        let kept = match port.choice.get(&KEEP_NAPI_THREADS) {
            _ if port.skip => port.why_skipped(),
            true => Cause::Kept,
            false => Cause::NoQueuePlaced,
        };
        let plan_thread = |thread: &NapiThread| {
            let vector = port.interface.vector_of(thread);
            let (cpus, cause) = self.planned.get(&thread.pid).cloned().unzip();
            PlannedThread {
                pid: thread.pid,
                irq: vector.map(|vector| vector.irq),
                role: vector.map(|vector| vector.role),
                queue: vector.and_then(|vector| vector.queue),
                source: vector.and(thread.woken_by).map(|(_, source)| source),
                cpus,
                affinity: thread.affinity.cpus.clone(),
                why: Why::because(cause.unwrap_or_else(|| kept.clone())),
            }
        };
        let all = threads.clone().map(plan_thread).collect_vec();
        let is_placed = all.iter().any(|thread| thread.cpus.is_some());
        let note = (interface.polling.threaded && !port.skip && !is_placed).then(|| {
            // Threads that are known, if only by netlink.
            let pids = interface.napis().filter_map(|napi| napi.pid);
            Note::ThreadedNapi {
                interface: interface.name.clone(),
                pids: (pids.chain(threads.map(|thread| thread.pid)))
                    .sorted_unstable()
                    .dedup()
                    .collect(),
                placed: false,
            }
        });
        (all, note)
    }
}
