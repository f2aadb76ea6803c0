//! The number of channels of a device, and the queues to which its RSS table sends flows, by the policy.

use std::collections::BTreeSet;

use itertools::Itertools as _;

use crate::cpuset::{CpuSet, QueueSet};
use crate::drivers::Fact;
use crate::machine::netdev::{Direction, Netdev};
use crate::machine::wording::word;
use crate::machine::{Channels, Interface, Rss};
use crate::plan::data::{ChannelChange, PlannedRss};
use crate::plan::note::{Note, RssUnchanged};
use crate::plan::ports::PlacedPort;
use crate::plan::why::{Cause, Why};
use crate::policy::{CHANNELS, ChannelCount, RSS, RssQueues, SIBLINGS};

pub(crate) fn has_settable_rss(interface: &Interface) -> bool {
    !interface.has_fact(Fact::FixedRss) && interface.rss.as_ref().is_some_and(Rss::is_used)
}

/// The change that the policy requests, if the driver reports its maximum.
pub(crate) fn channels(port: &PlacedPort<'_>) -> Option<ChannelChange> {
    let stays = port.skip || port.interface.channels_fixed;
    let current = port.interface.channels.filter(|_| !stays)?;
    let most = current.max_receiving();
    let (count, cause) = match port.choice.get(&CHANNELS) {
        ChannelCount::Keep => return None,
        ChannelCount::Auto => {
            let cores = port.core_count();
            match u32::try_from(cores) {
                Ok(count) if count <= most => (count, Cause::QueueForEachCore(cores)),
                _ => (most, Cause::MostQueues(cores)),
            }
        }
        ChannelCount::Count(count) => (count, Cause::Requested),
    };
    // In the device's present form: combined, or separate with the same number of transmitting channels, if it can have
    // so many.
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
        interface: port.interface.name.clone(),
        current,
        wanted,
        command: format!(
            "ethtool -L {} {}",
            word(&port.interface.name),
            wanted.difference(&current)
        ),
        why: Why::because(cause),
    })
}

/// One receiving channel for each candidate core, as far as the device is known to support. `None` if the number is
/// fixed, for functions that are virtual or elsewhere, and, if it is not reported, where it was requested or there are
/// no more receive queues.
pub(crate) fn advised_channels(port: &PlacedPort<'_>) -> Option<u32> {
    let interface = port.interface;
    let channels = interface.channels;
    let most = channels.map_or(u32::MAX, |channels| channels.max_receiving());
    let cores = port.core_count();
    let was_requested = port.choice.get(&CHANNELS) != ChannelCount::Keep;
    let may_change = !interface.channels_fixed
        && !interface.is_virtual_function()
        && !interface.in_other_namespace
        && (channels.is_some() || !was_requested);
    let cores = u32::try_from(cores).unwrap_or(u32::MAX);
    may_change
        .then(|| cores.min(most).max(1))
        .filter(|&few| channels.is_some() || (few as usize) < interface.rx_queues.len())
}

pub(crate) fn rss(port: &PlacedPort<'_>) -> Option<(PlannedRss, Option<Note>)> {
    let requested = port.choice.get(&RSS);
    let table = port.interface.rss.as_ref()?;
    let (queues, cause) = match requested {
        _ if port.skip => (None, port.why_skipped()),
        RssQueues::Keep => (None, Cause::Unchanged),
        _ if port.interface.rx_queues.len() == 1 => (None, Cause::OnlyRxQueue),
        RssQueues::First(count) => {
            // Each queue on a vector of its own, as long as there are any.
            let free = free_queues(port, table);
            let irq = |queue: &u32| Some(port.serving(Direction::Rx, *queue)?.irq);
            let own: QueueSet = (free.iter().copied())
                .unique_by(|queue| irq(queue).ok_or(*queue))
                .collect();
            let others = free.difference(&own);
            let queues = own.iter().chain(others).copied().take(count as usize);
            (Some(queues.collect()), Cause::FirstQueues)
        }
        RssQueues::Candidates => {
            let queues = queues_on_candidates(port, table);
            (Some(queues), Cause::QueueOnEachCore)
        }
    };
    // A table cannot reach more queues than it has entries.
    let entries = table.table.len();
    let queues = queues.map(|queues: QueueSet| queues.iter().copied().take(entries).collect());
    let now = table.reached();
    let beyond = beyond_candidates(port, table, queues.as_ref().unwrap_or(&now));
    let planned = PlannedRss {
        entries,
        possible: QueueSet::below(table.queues),
        now,
        queues,
        why: Why::because(cause),
    };
    Some((planned, beyond))
}

/// One receive queue takes all flows without a table.
pub(crate) fn unmet_rss(port: &PlacedPort<'_>) -> Option<Note> {
    let interface = port.interface;
    let requested = match port.choice.get(&RSS) {
        RssQueues::First(count) => Some(count),
        RssQueues::Candidates => None,
        RssQueues::Keep => return None,
    };
    if interface.rx_queues.len() == 1 && requested.unwrap_or(1) == 1 {
        return None;
    }
    let because = match &interface.rss {
        None => Some(RssUnchanged::NoTable),
        Some(table) if !table.is_used() => Some(RssUnchanged::Function(table.function)),
        Some(_) if !has_settable_rss(interface) => Some(RssUnchanged::Fixed),
        Some(table) if requested.is_none() => queues_on_candidates(port, table)
            .is_empty()
            .then_some(RssUnchanged::NoQueue),
        Some(table) => {
            let most = match channels(port) {
                None => free_queues(port, table).len().min(table.table.len()),
                // The number of queues is another once the channels have changed.
                Some(change) => change.wanted.receiving() as usize,
            };
            let is_beyond = requested.is_some_and(|count| most < count as usize);
            is_beyond.then_some(RssUnchanged::AtMost(most))
        }
    };
    because.map(|because| Note::RssUnchanged {
        queues: requested,
        because,
    })
}

/// The queues that the table can reach, without those whose packets bypass the kernel's stack.
fn free_queues(port: &PlacedPort<'_>, table: &Rss) -> QueueSet {
    let mut free = QueueSet::below(table.queues);
    for (queue, _) in port.interface.netdev.iter().flat_map(Netdev::taken) {
        free.remove(&queue);
    }
    free
}

/// The first queue of each core whose receive vector is on candidate CPUs under the plan: a second one takes no load
/// off the core.
fn queues_on_candidates(port: &PlacedPort<'_>, table: &Rss) -> QueueSet {
    let mut taken = BTreeSet::new();
    let is_apart = port.choice.get(&SIBLINGS);
    let mut is_first = |cpu| {
        let core = port.locations.core_of(cpu).filter(|_| !is_apart);
        taken.insert(core.and_then(CpuSet::first).unwrap_or(cpu))
    };
    let mut queues = free_queues(port, table);
    queues.retain(|&queue| {
        let (cpus, candidates) = receiving_cpus(port, queue);
        cpus.is_subset(candidates) && cpus.first().is_some_and(&mut is_first)
    });
    queues
}

/// The planned CPUs of a receive queue's vector, empty if unknown, and its candidates.
fn receiving_cpus<'a>(port: &'a PlacedPort<'_>, queue: u32) -> (CpuSet, &'a CpuSet) {
    let vector = port.vector_of(Direction::Rx, queue);
    let cpus = match vector.filter(|vector| port.target(vector).is_none()) {
        Some(stays) => port.cpus_of(stays),
        // With a group of CPUs, the one on which the queue is counted.
        None => port.cpu_of(Direction::Rx, queue).into_iter().collect(),
    };
    let candidates = vector.map(|vector| port.candidates_of(vector));
    (cpus, candidates.unwrap_or(&port.candidates.cpus))
}

fn beyond_candidates(port: &PlacedPort<'_>, table: &Rss, reached: &QueueSet) -> Option<Note> {
    let (mut queues, mut cpus) = (QueueSet::default(), CpuSet::new());
    for &queue in reached.iter().filter(|_| !port.skip) {
        let (on, candidates) = receiving_cpus(port, queue);
        if !on.is_subset(candidates) {
            queues.insert(queue);
            cpus.add(&on);
        }
    }
    (!queues.is_empty()).then(|| Note::RssBeyondCandidates {
        interface: port.interface.name.clone(),
        queues,
        cpus,
        avoidable: has_settable_rss(port.interface)
            && !queues_on_candidates(port, table).is_empty(),
    })
}
