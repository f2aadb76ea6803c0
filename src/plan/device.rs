//! What the policy requests of a device: the number of its channels, and the queues that its RSS indirection table sends
//! flows to.

use std::collections::BTreeSet;

use itertools::Itertools as _;

use crate::cpuset::{CpuSet, QueueSet};
use crate::drivers::{Driver, Fact};
use crate::machine::netdev::Netdev;
use crate::machine::wording::word;
use crate::machine::{Channels, Interface, Role, Rss};
use crate::plan::data::{ChannelChange, PlannedRss};
use crate::plan::note::{Note, RssUnchanged};
use crate::plan::work::Work;
use crate::policy::{CHANNELS, ChannelCount, RSS, RssQueues, SIBLINGS};

/// Whether flows can be sent to other queues by an interface's RSS table.
pub(crate) fn has_settable_rss(interface: &Interface) -> bool {
    let is_fixed = Driver::has(interface.driver.as_deref(), Fact::FixedRss);
    !is_fixed && interface.rss.as_ref().is_some_and(Rss::is_used)
}

/// The change of channels that the policy requests; `None` when there is none, or when the driver does not report its
/// maximum.
pub(crate) fn channels(work: &Work<'_>) -> Option<ChannelChange> {
    let stays = work.skip || work.interface.channels_fixed;
    let current = work.interface.channels.filter(|_| !stays)?;
    let most = current.max_receiving();
    let (count, why) = match work.choice.get(&CHANNELS) {
        ChannelCount::Keep => return None,
        ChannelCount::Auto => {
            let cores = work.core_count();
            match u32::try_from(cores) {
                Ok(count) if count <= most => {
                    (count, format!("a receive queue for each of {cores} cores"))
                }
                _ => (
                    most,
                    format!("as many as the device can have, for {cores} cores"),
                ),
            }
        }
        ChannelCount::Count(count) => (count, "as requested".to_owned()),
    };
    // In the form that the device has now: combined, or separate ones with as many transmitting channels as it can have, up
    // to the same number.
    let wanted = if current.is_combined() {
        Channels {
            combined: count,
            rx: 0,
            tx: 0,
            ..current
        }
    } else {
        Channels {
            rx: count,
            tx: count.min(current.max_tx),
            ..current
        }
    };
    (count > 0 && count != current.receiving()).then(|| ChannelChange {
        interface: work.interface.name.clone(),
        current,
        wanted,
        command: format!(
            "ethtool -L {} {}",
            word(&work.interface.name),
            wanted.difference(&current)
        ),
        why,
    })
}

/// The number of receiving channels to advise: one for each candidate core, as far as the device is known to have them.
/// `None` for virtual functions, out of reach, where the number is fixed, where a requested one cannot be set, and where it is
/// not reported and there are no more receive queues than that.
pub(crate) fn advised_channels(work: &Work<'_>) -> Option<u32> {
    let interface = work.interface;
    let channels = interface.channels;
    let most = channels.map_or(u32::MAX, |channels| channels.max_receiving());
    let cores = work.core_count();
    let was_requested = work.choice.get(&CHANNELS) != ChannelCount::Keep;
    let may_change = !interface.channels_fixed
        && !interface.is_virtual_function()
        && !interface.in_other_namespace
        && (channels.is_some() || !was_requested);
    let cores = u32::try_from(cores).unwrap_or(u32::MAX);
    let advised = may_change.then(|| cores.min(most).max(1));
    advised.filter(|&few| channels.is_some() || (few as usize) < interface.rx_queues.len())
}

/// The plan for the table of an interface, and a note about it.
pub(crate) fn rss(work: &Work<'_>) -> (Option<PlannedRss>, Option<Note>) {
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
        _ if !has_settable_rss(work.interface) => {
            unchanged("the driver cannot set it", RssUnchanged::Fixed)
        }
        RssQueues::First(count) => {
            // Each on a vector of its own, while there are any.
            let free = free(work, table);
            let own = free.iter().copied().unique_by(|&queue| {
                let vector = work.serving(Role::Rx, queue);
                vector.map_or(Err(queue), |vector| Ok(vector.irq))
            });
            let own: QueueSet = own.take(count as usize).collect();
            let others = free.iter().copied().filter(|queue| !own.contains(queue));
            let others = others.take(count as usize - own.len());
            let queues: QueueSet = own.iter().copied().chain(others).collect();
            let why = if queues.len() < count as usize {
                let most = queues.len();
                format!("{count} queues requested, and it can reach {most}")
            } else {
                "the first queues, as requested".to_owned()
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
    let mut free = QueueSet::below(table.queues);
    for (queue, _) in work.interface.netdev.iter().flat_map(Netdev::taken) {
        free.remove(&queue);
    }
    free
}

/// The first queue on each core of those whose receive vector is on candidate CPUs under the plan. A second queue on a
/// core takes no load off it.
fn on_candidates(work: &Work<'_>, table: &Rss) -> QueueSet {
    let mut taken = BTreeSet::new();
    let is_apart = work.choice.get(&SIBLINGS);
    let mut is_first = |cpu| {
        let core = work.locations.core_of(cpu).filter(|_| !is_apart);
        taken.insert(core.and_then(CpuSet::first).unwrap_or(cpu))
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
    let vector = work.vector_of(Role::Rx, queue);
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
        avoidable: has_settable_rss(work.interface) && !on_candidates(work, table).is_empty(),
    })
}
