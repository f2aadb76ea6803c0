//! The CPU of each thread that polls queues (threaded NAPI): beside the CPU that its queue interrupts. The two share
//! caches there, and neither waits for the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cpuset::CpuSet;
use crate::machine::{NapiThread, Topology, Vector};
use crate::plan::candidates::exclusive;
use crate::plan::data::PlannedThread;
use crate::plan::note::Note;
use crate::plan::work::{Context, Work};
use crate::policy::{EXCLUDE, NAPI_THREADS, NapiThreads};

/// The planned CPUs of all threads.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// By interface and process id; with the reason.
    planned: BTreeMap<(usize, u32), (CpuSet, Arc<str>)>,
    /// All CPUs that take one.
    pub(crate) cpus: CpuSet,
}

/// Why a thread is on the candidate CPUs.
const NOT_THERE: &str = "candidate CPUs: its queue interrupts a CPU that is isolated or excluded";

/// A thread whose queue is known.
#[derive(Debug)]
struct Polling<'a> {
    /// The CPUs that its queue's vector may interrupt.
    interrupted: &'a CpuSet,
    /// The CPUs that may take it: neither offline nor excluded, and isolated only where the policy names them.
    usable: &'a CpuSet,
    /// The candidate CPUs of the vector.
    candidates: &'a CpuSet,
    /// Whether it polls all the time.
    is_busy: bool,
}

impl Polling<'_> {
    /// The first SMT sibling of the interrupted CPU that is not taken; else that CPU; the candidates if it is isolated or
    /// excluded. A queue that may interrupt several CPUs has its thread on all of them. A thread that polls all the time has
    /// the CPU of its queue, which interrupts it no more: so the two take one core. With the reason.
    fn place(&self, topology: &Topology, taken: &mut CpuSet) -> (CpuSet, &'static str) {
        let Self {
            interrupted,
            usable,
            candidates,
            is_busy,
        } = *self;
        let (Some(cpu), 1) = (interrupted.first(), interrupted.len()) else {
            let cpus = interrupted.intersection(usable);
            if cpus.is_empty() {
                return (candidates.clone(), NOT_THERE);
            }
            return (cpus, "the CPUs that its queue interrupts");
        };
        let core = topology.cores.iter().find(|core| core.contains(cpu));
        let beside = core
            .map(|core| core.intersection(usable).difference(taken))
            .unwrap_or_default();
        if is_busy && usable.contains(cpu) {
            taken.add(&beside);
            return (
                interrupted.clone(),
                "the CPU of its queue, which gets no interrupts while the thread polls all the time",
            );
        }
        if let Some(sibling) = beside.iter().find(|&sibling| sibling != cpu) {
            taken.insert(sibling);
            return (
                CpuSet::single(sibling),
                "free sibling of the CPU that its queue interrupts",
            );
        }
        if usable.contains(cpu) {
            return (
                interrupted.clone(),
                "the CPU that its queue interrupts, which has no free sibling",
            );
        }
        (candidates.clone(), NOT_THERE)
    }
}

impl Threads {
    /// Plans the threads of all interfaces, so that no two get one CPU while another sibling is free.
    pub(crate) fn new(context: &Context<'_>) -> Self {
        let mut planned = Self::default();
        let with_threads = || {
            context
                .works
                .iter()
                .filter(|work| !work.interface.threads.is_empty())
        };
        let mut taken = context.loaded.clone();
        for work in with_threads().filter(|work| !is_planned(work)) {
            let bound = work
                .interface
                .threads
                .iter()
                .filter(|thread| thread.affinity.cpus.len() == 1);
            bound.for_each(|thread| taken.add(&thread.affinity.cpus));
        }
        for work in with_threads().filter(|work| is_planned(work)) {
            planned.add(context, work, &mut taken);
        }
        planned
    }

    fn add(&mut self, context: &Context<'_>, work: &Work<'_>, taken: &mut CpuSet) {
        let topology = &context.machine.topology;
        let mut known: Vec<(&NapiThread, &Vector)> = (work.interface.threads.iter())
            .filter_map(|thread| Some((thread, vector_of(work, thread)?)))
            .collect();
        // Those of queues in use choose first.
        known.sort_by_key(|(thread, vector)| {
            (
                work.interface.is_idle(vector),
                vector.queue,
                vector.role,
                thread.pid,
            )
        });
        let mut of_interface = CpuSet::new();
        for (thread, vector) in known {
            let candidates = work.candidates_of(vector);
            let interrupted = work.cpus_of(context.machine, vector);
            let usable = usable(topology, work, candidates);
            let polling = Polling {
                interrupted: &interrupted,
                usable: &usable,
                candidates,
                is_busy: thread.busy_polls,
            };
            let (cpus, why) = polling.place(topology, taken);
            of_interface.add(&cpus);
            self.planned
                .insert((work.order, thread.pid), (cpus, why.into()));
        }
        let (unknown, whose) = if of_interface.is_empty() {
            (&work.candidates.cpus, "the interface's candidate CPUs")
        } else {
            (&of_interface, "the CPUs of the interface's other threads")
        };
        let why: Arc<str> = format!("its queue could not be determined: {whose}").into();
        for thread in work
            .interface
            .threads
            .iter()
            .filter(|thread| vector_of(work, thread).is_none())
        {
            self.planned.insert(
                (work.order, thread.pid),
                (unknown.clone(), Arc::clone(&why)),
            );
        }
        self.cpus.add(&of_interface);
    }

    /// The plan for the threads of an interface.
    pub(crate) fn of(&self, work: &Work<'_>) -> Vec<PlannedThread> {
        let planned = |thread: &NapiThread| {
            let vector = vector_of(work, thread);
            let to = self.planned.get(&(work.order, thread.pid));
            let kept = || {
                if work.skip {
                    "skipped by the policy"
                } else {
                    "kept by the policy"
                }
                .into()
            };
            PlannedThread {
                pid: thread.pid,
                irq: vector.map(|vector| vector.irq),
                role: vector.map(|vector| vector.role),
                queue: vector.and_then(|vector| vector.queue),
                source: vector.and(thread.woken_by).map(|(_, source)| source),
                cpus: to.map(|(cpus, _)| cpus.clone()),
                affinity: thread.affinity.cpus.clone(),
                why: to.map_or_else(kept, |(_, why)| Arc::clone(why)),
            }
        };
        work.interface.threads.iter().map(planned).collect()
    }
}

/// The note that an interface's threads are not placed: they could not be found, or are kept by the policy.
pub(crate) fn unplaced(work: &Work<'_>, planned: &[PlannedThread]) -> Option<Note> {
    let interface = work.interface;
    let is_placed = planned.iter().any(|thread| thread.cpus.is_some());
    (interface.polling.threaded && !work.skip && !is_placed).then(|| Note::ThreadedNapi {
        interface: interface.name.clone(),
        pids: pids(work),
        placed: false,
    })
}

/// The threads that are known, if only by netlink.
fn pids(work: &Work<'_>) -> Vec<u32> {
    let reported = work
        .interface
        .netdev
        .iter()
        .flat_map(|answer| &answer.napis)
        .filter_map(|napi| napi.pid);
    let mut pids: Vec<u32> = reported
        .chain(work.interface.threads.iter().map(|thread| thread.pid))
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Whether the threads of an interface are placed: as RPS, not without a placed queue.
fn is_planned(work: &Work<'_>) -> bool {
    work.choice.get(&NAPI_THREADS) == NapiThreads::Follow
        && !work.skip
        && work.interface.vectors.iter().any(Vector::is_queue_vector)
}

fn vector_of<'a>(work: &Work<'a>, thread: &NapiThread) -> Option<&'a Vector> {
    let (irq, _) = thread.woken_by?;
    work.interface
        .vectors
        .iter()
        .find(|vector| vector.irq == irq)
}

/// The CPUs that may take a thread of a vector with these candidates. Where the policy names CPUs, it names all that
/// packets may be processed on.
fn usable(topology: &Topology, work: &Work<'_>, candidates: &CpuSet) -> CpuSet {
    if work.candidates.named {
        return candidates.clone();
    }
    let others = topology
        .online
        .difference(&topology.isolated_or_nohz())
        .union(candidates);
    others
        .difference(&work.choice.get(&EXCLUDE))
        .difference(&exclusive(topology, &work.choice))
}
