//! The queues that an interface's RSS indirection table sends flows to, by the policy.

use std::collections::{BTreeMap, BTreeSet};

use crate::cpuset::{CpuSet, QueueSet};
use crate::machine::netdev::Netdev;
use crate::machine::{Role, Rss};
use crate::plan::data::PlannedRss;
use crate::plan::note::{Note, RssUnchanged};
use crate::plan::work::Work;
use crate::policy::{RSS, RssQueues, SIBLINGS};

/// The plan for the table of an interface, and a note about it.
pub(crate) fn plan(work: &Work<'_>) -> (Option<PlannedRss>, Option<Note>) {
    let requested = work.choice.get(&RSS);
    let Some(table) = &work.interface.rss else {
        let because = RssUnchanged::NoTable;
        let is_wanted = requested != RssQueues::Keep && !work.skip;
        return (None, is_wanted.then_some(Note::RssUnchanged { because }));
    };
    let unchanged = |why: &str, because| {
        let note = Note::RssUnchanged { because };
        (None, format!("unchanged: {why}"), Some(note))
    };
    let (queues, why, note) = match requested {
        _ if work.skip => (None, "skipped by the policy".to_owned(), None),
        RssQueues::Keep => (None, "unchanged".to_owned(), None),
        _ if !table.is_used() => unchanged(
            "its hash function is not known to use the table",
            RssUnchanged::Function(table.function),
        ),
        RssQueues::First(count) => {
            let queues: QueueSet = free(work, table)
                .iter()
                .copied()
                .take(count as usize)
                .collect();
            let why = if queues.len() < count as usize {
                let most = queues.len();
                format!("the policy requests {count} queues, and it can reach {most}")
            } else {
                "the first queues, as the policy requests".to_owned()
            };
            (Some(queues), why, None)
        }
        RssQueues::Candidates => match on_candidates(work, table) {
            queues if queues.is_empty() => unchanged(
                "no queue's IRQ is on a candidate CPU",
                RssUnchanged::NoQueue,
            ),
            queues => (
                Some(queues),
                "a queue on each candidate core".to_owned(),
                None,
            ),
        },
    };
    // A table cannot reach more queues than it has entries.
    let entries = table.table.len();
    let queues = queues.map(|queues: QueueSet| queues.iter().copied().take(entries).collect());
    let now = table.reached();
    let note = note.or_else(|| beyond_candidates(work, table, queues.as_ref().unwrap_or(&now)));
    let planned = PlannedRss {
        entries,
        possible: QueueSet::below(table.queues),
        now,
        queues,
        why: why.into(),
    };
    (Some(planned), note)
}

/// The queues that the table can reach, but those whose packets somebody takes in place of the kernel's stack.
fn free(work: &Work<'_>, table: &Rss) -> QueueSet {
    let taken: BTreeMap<_, _> = work
        .interface
        .netdev
        .iter()
        .flat_map(Netdev::taken)
        .collect();
    let all = 0..table.queues;
    all.filter(|queue| !taken.contains_key(queue)).collect()
}

/// The first queue on each core of those whose receive vector is on candidate CPUs under the plan. A second queue on a
/// core takes no load off it.
fn on_candidates(work: &Work<'_>, table: &Rss) -> QueueSet {
    let mut taken = BTreeSet::new();
    let is_apart = work.choice.get(&SIBLINGS);
    let mut is_first = |cpu: u32| {
        let core = work
            .locations
            .core_of(cpu)
            .filter(|_| !is_apart)
            .and_then(CpuSet::first);
        taken.insert(core.unwrap_or(cpu))
    };
    let mut queues = free(work, table);
    queues.retain(|&queue| {
        let (cpus, candidates) = receiver(work, queue);
        cpus.is_subset(candidates) && cpus.first().is_some_and(&mut is_first)
    });
    queues
}

/// The CPUs of a receive queue's vector under the plan, empty if they are unknown, and the candidates for it.
fn receiver<'a>(work: &'a Work<'_>, queue: u32) -> (CpuSet, &'a CpuSet) {
    let vector = work.receiver(queue);
    let cpus = match vector.filter(|vector| work.target(vector).is_none()) {
        Some(stays) => work.cpus_of(stays),
        // Of a group of CPUs, the one that the queue counts for.
        None => work.cpu_of(Role::Rx, queue).into_iter().collect(),
    };
    let candidates = vector.map(|vector| work.candidates_of(vector));
    (cpus, candidates.unwrap_or(&work.candidates.cpus))
}

/// A note if flows are sent to queues whose vectors cannot be moved to candidate CPUs.
fn beyond_candidates(work: &Work<'_>, table: &Rss, reached: &QueueSet) -> Option<Note> {
    let (mut queues, mut cpus) = (QueueSet::default(), CpuSet::new());
    for &queue in reached.iter().filter(|_| !work.skip) {
        let (on, candidates) = receiver(work, queue);
        if !on.is_subset(candidates) {
            queues.insert(queue);
            cpus.add(&on);
        }
    }
    (!queues.is_empty()).then(|| Note::RssBeyondCandidates {
        interface: work.interface.name.clone(),
        queues,
        cpus,
        avoidable: table.is_used() && !on_candidates(work, table).is_empty(),
    })
}
