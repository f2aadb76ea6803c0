//! The queues that an interface's RSS indirection table sends flows to, by the policy.

use std::collections::BTreeSet;

use crate::cpuset::{CpuSet, QueueSet};
use crate::machine::netdev::Netdev;
use crate::machine::{Role, Rss, Vector};
use crate::plan::data::PlannedRss;
use crate::plan::note::{Note, RssUnchanged};
use crate::plan::work::{Context, Work};
use crate::policy::{RSS, RssQueues, SIBLINGS};

/// The plan for the table of an interface, and notes about it.
pub(crate) fn plan(context: &Context<'_>, work: &Work<'_>) -> (Option<PlannedRss>, Option<Note>) {
    let requested = work.choice.get(&RSS);
    let unchanged = |because| {
        (requested != RssQueues::Keep && !work.skip).then_some(Note::RssUnchanged { because })
    };
    let Some(table) = &work.interface.rss else {
        return (None, unchanged(RssUnchanged::NoTable));
    };
    let possible = QueueSet::below(table.queues);
    let free = free(work, table);
    let (queues, why, note) = match requested {
        _ if work.skip => (None, "skipped by the policy".to_owned(), None),
        RssQueues::Keep => (None, "unchanged".to_owned(), None),
        _ if !table.is_used() => {
            let why = "unchanged: its hash function is not known to use the table".to_owned();
            (None, why, unchanged(RssUnchanged::Function(table.function)))
        }
        RssQueues::First(count) => {
            let queues: QueueSet = free.iter().copied().take(count as usize).collect();
            let why = if queues.len() < count as usize {
                format!(
                    "the policy requests {count} queues, and it can reach {}",
                    queues.len()
                )
            } else {
                "the first queues, as the policy requests".to_owned()
            };
            (Some(queues), why, None)
        }
        RssQueues::Candidates => match on_candidates(context, work, &free) {
            queues if queues.is_empty() => {
                let why = "unchanged: no queue's IRQ is on a candidate CPU".to_owned();
                (None, why, unchanged(RssUnchanged::NoQueue))
            }
            queues => (
                Some(queues),
                "a queue on each candidate core".to_owned(),
                None,
            ),
        },
    };
    // A table cannot reach more queues than it has entries.
    let queues = queues.map(|queues| {
        queues
            .iter()
            .copied()
            .take(table.table.len())
            .collect::<QueueSet>()
    });
    let reached = queues.clone().unwrap_or_else(|| table.reached());
    let note = note.or_else(|| beyond_candidates(context, work, table, &reached));
    let (entries, now) = (table.table.len(), table.reached());
    (
        Some(PlannedRss {
            entries,
            possible,
            now,
            queues,
            why: why.into(),
        }),
        note,
    )
}

/// The queues that the table can reach, but those whose packets somebody takes in place of the kernel's stack.
fn free(work: &Work<'_>, table: &Rss) -> QueueSet {
    let taken = work.interface.netdev.iter().flat_map(Netdev::taken);
    let taken: BTreeSet<u32> = taken.map(|(queue, _)| queue).collect();
    let mut free = QueueSet::below(table.queues);
    free.retain(|queue| !taken.contains(queue));
    free
}

/// The first queue on each core of those whose receive vector is on candidate CPUs under the plan. A second queue on a
/// core takes no load off it.
fn on_candidates(context: &Context<'_>, work: &Work<'_>, possible: &QueueSet) -> QueueSet {
    let mut taken = BTreeSet::new();
    let mut is_first = |cpu: u32| {
        let core = context
            .locations
            .core_of(&context.machine.topology, cpu)
            .and_then(CpuSet::first);
        taken.insert(core.filter(|_| !work.choice.get(&SIBLINGS)).unwrap_or(cpu))
    };
    let on_candidate = |queue: &u32| {
        let (cpus, candidates) = receiver(context, work, *queue);
        cpus.is_subset(candidates) && cpus.first().is_some_and(&mut is_first)
    };
    possible.iter().copied().filter(on_candidate).collect()
}

/// The CPUs of a receive queue's vector under the plan, empty if they are unknown, and the candidates for it.
fn receiver<'a>(context: &Context<'_>, work: &'a Work<'_>, queue: u32) -> (CpuSet, &'a CpuSet) {
    let receives = |vector: &&&Vector| matches!(vector.role, Role::Rx | Role::Combined);
    let counted = || {
        work.cpu_of(Role::Rx, queue)
            .map(CpuSet::single)
            .unwrap_or_default()
    };
    match work.vectors_of(queue).iter().find(receives) {
        // Of a group of CPUs, the one that the queue counts for.
        Some(vector) if work.target(context.machine, vector).is_some() => {
            (counted(), work.candidates_of(vector))
        }
        Some(vector) => (
            work.cpus_of(context.machine, vector),
            work.candidates_of(vector),
        ),
        None => (counted(), &work.candidates.cpus),
    }
}

/// A note if flows are sent to queues whose vectors cannot be moved to candidate CPUs.
fn beyond_candidates(
    context: &Context<'_>,
    work: &Work<'_>,
    table: &Rss,
    reached: &QueueSet,
) -> Option<Note> {
    if work.skip {
        return None;
    }
    let (mut queues, mut cpus) = (QueueSet::default(), CpuSet::new());
    for &queue in reached.iter() {
        let (on, candidates) = receiver(context, work, queue);
        if !on.is_subset(candidates) {
            queues.insert(queue);
            cpus.add(&on);
        }
    }
    (!queues.is_empty()).then(|| Note::RssBeyondCandidates {
        interface: work.interface.name.clone(),
        queues,
        cpus,
        avoidable: table.is_used() && !on_candidates(context, work, &free(work, table)).is_empty(),
    })
}
