//! Requests of the policy that the machine cannot meet, and the CPUs that RPS can have.

use crate::cpuset::CpuSet;
use crate::machine::{Interface, Machine, RxQueue, Topology, TxQueue};
use crate::plan::note::{Note, UsedFor};
use crate::policy::{
    CHANNELS, ChannelCount, Choice, EXCLUDE, RFS, RPS, RSS, Rfs, RpsMode, RssQueues, XPS, Xps,
};

pub(crate) fn note_of_unusable(
    wanted: &CpuSet,
    usable: &CpuSet,
    used_for: UsedFor,
) -> Option<Note> {
    let missing = wanted.difference(usable);
    (!missing.is_empty()).then(|| Note::CpusUnusable {
        wanted: wanted.clone(),
        missing,
        used_for,
    })
}

pub(crate) fn unmet_rps(machine: &Machine, interface: &Interface, choice: &Choice) -> Option<Note> {
    let RpsMode::Cpus(wanted) = choice.get(&RPS) else {
        return None;
    };
    let cpus = usable_rps_cpus(machine, choice, &wanted);
    let kept = cpus_kept_by_kernel(&machine.topology, interface);
    interface
        .rx_queues
        .iter()
        .any(|queue| kept(queue, &cpus).is_empty())
        .then(|| Note::CpusUnusable {
            missing: wanted.clone(),
            wanted,
            used_for: UsedFor::Rps,
        })
}

pub(crate) fn unmet_channels(interface: &Interface, choice: &Choice) -> Option<Note> {
    let ChannelCount::Count(requested) = choice.get(&CHANNELS) else {
        return None;
    };
    let fixed = interface.channels_fixed;
    if let Some(known) = interface.channels.filter(|_| !fixed) {
        let most = known.max_receiving();
        return (requested > most).then_some(Note::ChannelsAtMost { requested, most });
    }
    let stays = !interface.receives_by(requested);
    let requested = Some(requested);
    stays.then_some(Note::ChannelsUnchanged { requested, fixed })
}

/// The first request about queues or channels, which are out of reach while the interface is elsewhere.
pub(crate) fn out_of_reach(choice: &Choice) -> Option<Note> {
    let has_count = matches!(choice.get(&CHANNELS), ChannelCount::Count(_));
    let mut settings = [
        (RPS.key, matches!(choice.get(&RPS), RpsMode::Cpus(_))),
        (XPS.key, choice.get(&XPS) == Xps::ReceiveQueues),
        (RFS.key, matches!(choice.get(&RFS), Rfs::Entries(_))),
        (RSS.key, choice.get(&RSS) != RssQueues::Keep),
        (CHANNELS.key, has_count),
    ]
    .into_iter();
    let (setting, _) = settings.find(|(_, is_requested)| *is_requested)?;
    let setting = setting.to_owned();
    Some(Note::OutOfReach { setting })
}

pub(crate) fn unmet_files(interface: &Interface, choice: &Choice) -> Option<Note> {
    let (rx, tx) = (&interface.rx_queues, &interface.tx_queues);
    let is_ignored = interface.picks_tx_queue && tx.len() > 1;
    if is_ignored && choice.get(&XPS) == Xps::ReceiveQueues {
        return Some(Note::XpsIgnored);
    }
    // A single transmit queue takes all flows; one in no traffic class has neither file.
    let is_complete = |tx: &TxQueue| tx.xps_rxqs.is_some() || tx.xps_cpus.is_none();
    let has_some = tx.iter().any(|tx| tx.xps_rxqs.is_some());
    let has_all = |has_file: fn(&RxQueue) -> bool| !rx.is_empty() && rx.iter().all(has_file);
    let has_rps = has_all(|rx| rx.rps_cpus.is_some());
    let has_flows = has_all(|rx| rx.rps_flow_cnt.is_some());
    let has_rxqs = tx.len() <= 1 || has_some && tx.iter().all(is_complete);
    let (setting, file) = match (choice.get(&RPS), choice.get(&RFS), choice.get(&XPS)) {
        (RpsMode::Cpus(_), ..) if !has_rps => (RPS.key, "rps_cpus"),
        (_, Rfs::Entries(_), _) if !has_flows => (RFS.key, "rps_flow_cnt"),
        (_, _, Xps::ReceiveQueues) if !has_rxqs => (XPS.key, "xps_rxqs"),
        _ => return None,
    };
    let [setting, file] = [setting, file].map(str::to_owned);
    Some(Note::QueueFilesMissing { setting, file })
}

pub(crate) fn usable_rps_cpus(machine: &Machine, choice: &Choice, wanted: &CpuSet) -> CpuSet {
    wanted
        .intersection(&machine.topology.online)
        .difference(&choice.get(&EXCLUDE))
}

/// Restricts a queue's RPS CPUs to those that the kernel keeps. Whether it removes the boot CPU shows only in the file,
/// and before Linux 5.9 it removes none: then some queue may already have a CPU that would be removed.
pub(crate) fn cpus_kept_by_kernel(
    topology: &Topology,
    interface: &Interface,
) -> impl Fn(&RxQueue, &CpuSet) -> CpuSet {
    let filter = &topology.rps_filter;
    let removed = filter.intersection(&topology.isolated_or_nohz());
    let mut now = interface.rx_queues.iter().flat_map(|rx| &rx.rps_cpus);
    let keeps_all = now.any(|now| now.cpus.intersects(&removed));
    move |queue, wanted| {
        if keeps_all {
            return wanted.clone();
        }
        let kept = wanted.difference(&removed);
        let now = queue.rps_cpus.as_ref().map(|now| &now.cpus);
        now.filter(|now| {
            !now.is_empty() && now.is_subset(&kept) && kept.difference(now).is_subset(filter)
        })
        .unwrap_or(&kept)
        .clone()
    }
}
