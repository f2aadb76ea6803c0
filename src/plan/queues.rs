//! RPS, RFS and XPS of each queue, by the policy.

use std::sync::Arc;

use crate::cpuset::CpuSet;
use crate::machine::{Machine, Role, RxQueue, TxQueue, Vector};
use crate::plan::data::{PlannedRxQueue, PlannedTxQueue};
use crate::plan::note::{Note, UsedFor};
use crate::plan::place::Locations;
use crate::plan::work::Work;
use crate::plan::{candidates, steer};
use crate::policy::{EXCLUDE, RFS, RPS, Rfs, Rps, XPS, Xps};

/// On machines with at most this many CPUs RPS stays off: to hand a packet to another CPU costs both CPUs more than is
/// gained.
const TINY: usize = 4;

/// The plan for the receive queues, and a note about RPS.
pub(crate) fn rx(
    machine: &Machine,
    locations: &Locations,
    work: &Work<'_>,
    flow_queues: usize,
) -> (Vec<PlannedRxQueue>, Option<Note>) {
    let queues = &work.interface.rx_queues;
    let (shares, why, note) = rps(machine, locations, work);
    let any_left = shares.iter().flatten().any(|share| !share.is_empty());
    let mut shares = shares.map(Vec::into_iter);
    // RFS, like RPS, is left alone on interfaces without queue vectors.
    let entries = flow_entries(work.choice.get(&RFS)).filter(|_| has_placed_queues(work));
    let is_auto = work.choice.get(&RPS) == Rps::Auto;
    let flow = |queue: &RxQueue| {
        let entries = entries?;
        let share = if entries == 0 { 0 } else { steer::flow_share(entries, flow_queues) };
        queue.rps_flow_cnt.map(|_| share)
    };
    let (why, none_left_why): (Arc<str>, Arc<str>) =
        (why.into(), "off: no candidate CPU is left for it".into());
    let plans = (queues.iter())
        .map(|queue| {
            let share = shares.as_mut().and_then(Iterator::next);
            let none_left = is_auto && share.as_ref().is_some_and(CpuSet::is_empty) && any_left;
            let why = Arc::clone(if none_left { &none_left_why } else { &why });
            PlannedRxQueue { queue: queue.index, rps_cpus: share, rps_flow_cnt: flow(queue), why }
        })
        .collect();
    (plans, note)
}

/// Whether the interface has a placed queue vector, without which RPS and XPS are left alone.
fn has_placed_queues(work: &Work<'_>) -> bool {
    !work.skip && work.interface.vectors.iter().any(Vector::is_queue_vector)
}

type RpsShares = (Option<Vec<CpuSet>>, String, Option<Note>);

/// The RPS CPUs of each receive queue; `None`: left alone.
fn rps(machine: &Machine, locations: &Locations, work: &Work<'_>) -> RpsShares {
    let queues = &work.interface.rx_queues;
    let off = |why: &str, note| (Some(vec![CpuSet::new(); queues.len()]), why.to_owned(), note);
    if !has_placed_queues(work) {
        return (None, "left alone".to_owned(), None);
    }
    // RPS stays on the local node where the vectors were widened to others.
    let candidates = work.candidates.tiers.first().unwrap_or(&work.candidates.cpus);
    match &work.choice.get(&RPS) {
        Rps::Off => off("off by the policy", None),
        Rps::Cpus(wanted) => {
            let cpus = wanted.intersection(&machine.topology.online).difference(&work.choice.get(&EXCLUDE));
            let why = if cpus.is_empty() {
                "off: no CPU that the policy names can be used"
            } else {
                "given by the policy"
            };
            let note = candidates::not_all(wanted, &cpus, UsedFor::Rps);
            (Some(vec![cpus; queues.len()]), why.to_owned(), note)
        }
        Rps::Auto => {
            let cores = work.core_count(locations, candidates);
            if queues.len() >= cores {
                return off("off: a receive queue for each candidate core", None);
            }
            if machine.topology.online.len() <= TINY {
                let why = "off: the machine is too small to gain from it";
                return off(why, tiny(machine, work));
            }
            if let Some(channels) = work.interface.channels
                && channels.max_receiving() > channels.receiving()
            {
                let (interface, queues) = (work.interface.name.clone(), queues.len());
                let note = Note::MoreQueuesPossible { interface, queues, cores, channels };
                return off("off: the device can have more queues", Some(note));
            }
            let interrupted: Vec<CpuSet> =
                queues.iter().map(|queue| interrupted(machine, work, queue)).collect();
            let shares = steer::rps(&machine.topology, locations, candidates, &interrupted);
            let why = format!("{} of {cores} candidate cores have a receive queue", queues.len());
            (Some(shares), why, None)
        }
    }
}

/// The note that RPS is off because the machine is small; only if some CPUs take no queue.
fn tiny(machine: &Machine, work: &Work<'_>) -> Option<Note> {
    let others = machine.topology.online.difference(&work.irq_cpus(machine));
    let cpus = machine.topology.online.len();
    (cpus > 1 && !others.is_empty()).then(|| Note::TinyMachine {
        interface: work.interface.name.clone(),
        queues: work.interface.rx_queues.len(),
        cpus,
        others,
    })
}

/// The CPUs that may take a receive queue's interrupts: the planned one, or the whole group.
fn interrupted(machine: &Machine, work: &Work<'_>, queue: &RxQueue) -> CpuSet {
    let receives = |vector: &&&Vector| matches!(vector.role, Role::Rx | Role::Combined);
    let own = work.vectors_of(queue.index).iter().find(receives);
    let target = own.and_then(|vector| work.target(machine, vector));
    target.unwrap_or_else(|| work.cpu_of(Role::Rx, queue.index).map(CpuSet::single).unwrap_or_default())
}

/// The plan for the transmit queues.
pub(crate) fn tx(machine: &Machine, locations: &Locations, work: &Work<'_>) -> Vec<PlannedTxQueue> {
    let queues = &work.interface.tx_queues;
    let completions: Option<Vec<u32>> =
        queues.iter().map(|queue| work.cpu_of(Role::Tx, queue.index)).collect();
    let leave = |why: &str| -> (Option<Vec<CpuSet>>, String) { (None, why.to_owned()) };
    let xps = work.choice.get(&XPS);
    let (shares, why) = match (xps, completions) {
        _ if !has_placed_queues(work) => leave("left alone"),
        (Xps::Keep, _) => leave("kept by the policy"),
        (Xps::Off, _) => (Some(vec![CpuSet::new(); queues.len()]), "off by the policy".to_owned()),
        (Xps::Auto, Some(completions)) => (
            Some(steer::xps(&machine.topology, locations, &completions)),
            "completes nearest to these CPUs".to_owned(),
        ),
        (Xps::Auto, None) => leave("its completion vector is unknown"),
    };
    let (why, single, none_left): (Arc<str>, Arc<str>, Arc<str>) = (
        why.into(),
        "nothing to steer: it is the only transmit queue".into(),
        "more transmit queues than CPUs".into(),
    );
    let mut shares = shares.map(Vec::into_iter);
    let plan = |queue: &TxQueue| {
        // The file xps_cpus does not exist when there is a single transmit queue.
        let exists = queue.xps_cpus.is_some();
        let share = shares.as_mut().and_then(Iterator::next).filter(|_| exists);
        let is_none_left = xps == Xps::Auto && share.as_ref().is_some_and(CpuSet::is_empty);
        let why = if is_none_left { &none_left } else { &why };
        PlannedTxQueue {
            queue: queue.index,
            xps_cpus: share,
            why: Arc::clone(if exists { why } else { &single }),
        }
    };
    queues.iter().map(plan).collect()
}

/// The number of entries in the flow table, from the settings of all interfaces: the largest number; 0 when all are off.
/// `None`: left alone.
pub(crate) fn flow_table(wanted: impl Iterator<Item = Rfs>) -> Option<u32> {
    let (mut most, mut keep) = (None, false);
    for rfs in wanted {
        most = most.max(flow_entries(rfs));
        keep |= rfs == Rfs::Keep;
    }
    most.filter(|&entries| entries > 0 || !keep)
}

/// The number of entries as the kernel rounds it: up to a power of two.
pub(crate) fn flow_entries(rfs: Rfs) -> Option<u32> {
    match rfs {
        Rfs::Entries(entries) => Some(entries.next_power_of_two()),
        Rfs::Off => Some(0),
        Rfs::Keep => None,
    }
}
