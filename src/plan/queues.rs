//! RPS, RFS and XPS of each queue, by the policy.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cpuset::CpuSet;
use crate::machine::{Machine, Role, RxQueue, Topology, TxQueue, Vector};
use crate::plan::data::{PlannedRxQueue, PlannedTxQueue};
use crate::plan::note::{Note, UsedFor};
use crate::plan::place::Locations;
use crate::plan::steer::Wish;
use crate::plan::work::{Context, Work};
use crate::plan::{candidates, channels, steer};
use crate::policy::{self, AVOID_CPU0, EXCLUDE, RFS, RPS, Rfs, XPS, Xps};

/// On machines with at most this many CPUs RPS stays off: to hand a packet to another CPU costs both CPUs more than is
/// gained.
const TINY: usize = 4;

/// The plan for the receive queues, and notes about RPS.
pub(crate) fn rx(
    context: &Context<'_>,
    work: &Work<'_>,
    rps: &Rps,
) -> (Vec<PlannedRxQueue>, Vec<Note>) {
    // RFS, like RPS, is left unchanged on interfaces without queue vectors.
    let entries = flow_entries(work.choice.get(&RFS)).filter(|_| has_placed_queues(work));
    let flow = |queue: &RxQueue| {
        let entries = entries?;
        let share = if entries == 0 {
            0
        } else {
            steer::flow_share(entries, context.flow_queues)
        };
        queue.rps_flow_cnt.map(|_| share)
    };
    let RpsSets { sets, why, note } = &rps.0[&work.order];
    let is_on = sets.iter().flatten().any(|cpus| !cpus.is_empty());
    let (why, without_why): (Arc<str>, Arc<str>) =
        (why.as_str().into(), "off: too few idle cores".into());
    let mut removed = CpuSet::new();
    let mut plan = |(at, queue): (usize, &RxQueue)| {
        let rps_cpus = sets.as_ref().map(|sets| {
            let wanted = sets.get(at).cloned().unwrap_or_default();
            let kept = as_the_kernel_keeps(&context.machine.topology, queue, &wanted);
            removed.add(&wanted.difference(&kept));
            kept
        });
        let without = is_on && rps_cpus.as_ref().is_some_and(CpuSet::is_empty);
        let why = Arc::clone(if without { &without_why } else { &why });
        PlannedRxQueue {
            queue: queue.index,
            rps_cpus,
            rps_flow_cnt: flow(queue),
            why,
        }
    };
    let plans = work
        .interface
        .rx_queues
        .iter()
        .enumerate()
        .map(&mut plan)
        .collect();
    let filtered = (!removed.is_empty()).then_some(Note::RpsFiltered { cpus: removed });
    (plans, note.iter().cloned().chain(filtered).collect())
}

/// The wanted RPS CPUs of a queue, less those that the kernel removes. Whether it removes the boot CPU shows only in the
/// file.
fn as_the_kernel_keeps(topology: &Topology, queue: &RxQueue, wanted: &CpuSet) -> CpuSet {
    if wanted.is_empty() || topology.rps_filter.is_empty() {
        return wanted.clone();
    }
    let kept = wanted.difference(
        &topology
            .rps_filter
            .intersection(&topology.isolated_or_nohz()),
    );
    let made = |now: &&CpuSet| {
        !now.is_empty()
            && now.is_subset(&kept)
            && kept.difference(now).is_subset(&topology.rps_filter)
    };
    queue
        .rps_cpus
        .as_ref()
        .map(|now| &now.cpus)
        .filter(made)
        .unwrap_or(&kept)
        .clone()
}

/// Whether the interface has a placed queue vector, without which RPS and XPS are left unchanged.
fn has_placed_queues(work: &Work<'_>) -> bool {
    !work.skip && work.interface.vectors.iter().any(Vector::is_queue_vector)
}

/// The RPS CPUs of all interfaces that take part, by their order.
pub(crate) struct Rps(BTreeMap<usize, RpsSets>);

/// RPS of an interface.
struct RpsSets {
    /// Of each receive queue; `None`: left unchanged.
    sets: Option<Vec<CpuSet>>,
    why: String,
    note: Option<Note>,
}

impl Rps {
    /// Interfaces and queues get different CPUs before any is shared.
    pub(crate) fn new(context: &Context<'_>) -> Self {
        let (mut decided, mut wishes, mut of_queues) = (BTreeMap::new(), Vec::new(), Vec::new());
        // As the placement, by properties of the hardware only.
        let mut works: Vec<&Work<'_>> = context.works.iter().collect();
        works.sort_by_key(|work| {
            (
                &work.interface.device.address,
                work.interface.port,
                work.order,
            )
        });
        for work in works {
            let of_work = of_interface(context, work, &mut wishes);
            of_queues.resize(wishes.len(), work.order);
            decided.insert(work.order, of_work);
        }
        let dealt = steer::rps(context.locations, &wishes);
        for (order, cpus) in of_queues.into_iter().zip(dealt) {
            if let Some(of_work) = decided.get_mut(&order) {
                of_work.sets.get_or_insert_default().push(cpus);
            }
        }
        Self(decided)
    }

    /// All CPUs to which packets are sent.
    pub(crate) fn cpus(&self) -> CpuSet {
        CpuSet::union_of(self.0.values().flat_map(|one| &one.sets).flatten())
    }
}

/// RPS of an interface, without the sets of queues whose wishes it adds.
fn of_interface(context: &Context<'_>, work: &Work<'_>, wishes: &mut Vec<Wish>) -> RpsSets {
    let queues = work.interface.rx_queues.len();
    let (sets, why, note) = match &work.choice.get(&RPS) {
        _ if !has_placed_queues(work) => {
            (None, "unchanged: no queue IRQ is placed".to_owned(), None)
        }
        policy::Rps::Off => (Some(Vec::new()), "off by the policy".to_owned(), None),
        policy::Rps::Cpus(wanted) => {
            let online = &context.machine.topology.online;
            let cpus = wanted
                .intersection(online)
                .difference(&work.choice.get(&EXCLUDE));
            let why = if cpus.is_empty() {
                "off: no CPU that the policy names can be used"
            } else {
                "given by the policy"
            };
            let note = candidates::not_all(wanted, &cpus, UsedFor::Rps);
            (Some(vec![cpus; queues]), why.to_owned(), note)
        }
        policy::Rps::Auto => match auto_rps(context, work) {
            Ok((free, why)) => {
                let is_slow = work
                    .interface
                    .supported_mbps
                    .is_some_and(|mbps| mbps <= 1000);
                wishes.extend(work.interface.rx_queues.iter().map(|queue| {
                    let interrupted = interrupted(context.machine, work, queue);
                    let topology = &context.machine.topology;
                    Wish::new(topology, context.locations, &free, &interrupted, is_slow)
                }));
                (None, why, None)
            }
            Err((why, note)) => (Some(Vec::new()), format!("off: {why}"), note),
        },
    };
    RpsSets { sets, why, note }
}

/// RPS in place of receive queues that the device cannot have: the candidate cores on which no queue of any interface
/// lands, and the reason; or why it is off.
fn auto_rps(
    context: &Context<'_>,
    work: &Work<'_>,
) -> Result<(CpuSet, String), (String, Option<Note>)> {
    let &Context {
        machine, locations, ..
    } = context;
    let off = |why: &str, note| Err((why.to_owned(), note));
    // RPS stays on the local node where the vectors were widened to others.
    let candidates = work
        .candidates
        .tiers
        .first()
        .unwrap_or(&work.candidates.cpus);
    let load = if context.has_rdma {
        "a queue or an RDMA IRQ"
    } else {
        "a queue"
    };
    let mut free = candidates.difference(&context.busy_cores);
    if free.is_empty() {
        return off(&format!("every core already has {load}"), None);
    }
    if machine.topology.online.len() <= TINY {
        return off(
            "the machine is too small to gain from it",
            tiny(machine, work),
        );
    }
    if work.interface.is_virtual_function() {
        return off("the device is an SR-IOV virtual function", None);
    }
    match work.interface.channels {
        Some(channels) if channels.max_receiving() > channels.receiving() => {
            return off(
                "the device can have more queues",
                more_queues(context, work),
            );
        }
        None if !has_one_queue(work) => {
            return off(
                "the number of queues that the device can have is unknown",
                None,
            );
        }
        _ => {}
    }
    let needed = work.interface.rx_queues.len().max(2);
    let others = locations.core_of(&machine.topology, 0);
    let others = others.map(|core| free.difference(core)).filter(|others| {
        work.choice.get(&AVOID_CPU0) && *others != free && locations.cores_in(others) >= needed
    });
    let but_cpu0 = if others.is_some() {
        " (not CPU 0's)"
    } else {
        ""
    };
    free = others.unwrap_or(free);
    // A queue's packets go to two cores or more, and all of them to no fewer than they come from.
    let (cores, queues) = (locations.cores_in(&free), work.interface.rx_queues.len());
    if cores < needed {
        let noun = if queues == 1 { "queue" } else { "queues" };
        let why = format!("too few idle cores: {cores} for {queues} {noun}");
        return off(&why, None);
    }
    let why = format!("to idle cores{but_cpu0}: the device has no more queues");
    Ok((free, why))
}

/// Whether the device has one queue by nature: its driver supports no other number (the kernel then refuses to read
/// `xps_cpus`, `netif_is_multiqueue`), or it has one interrupt, as with `INTx`.
fn has_one_queue(work: &Work<'_>) -> bool {
    let (rx, tx) = (&work.interface.rx_queues, &work.interface.tx_queues);
    let is_single =
        tx.iter().all(|queue| queue.xps_cpus.is_none()) || work.interface.device.irqs.len() == 1;
    rx.len() == 1 && tx.len() == 1 && is_single
}

/// The note that RPS is off because the device can have more queues; only if its share of the cores takes more.
fn more_queues(context: &Context<'_>, work: &Work<'_>) -> Option<Note> {
    let channels = work.interface.channels?;
    let advised = channels::advised(context.locations, work)?;
    (advised > channels.receiving()).then(|| Note::MoreQueuesPossible {
        interface: work.interface.name.clone(),
        queues: work.interface.rx_queues.len(),
        cores: work.core_count(context.locations, &work.candidates.cpus),
        channels,
        advised,
    })
}

/// The note that RPS is off because the machine is small; only if some CPUs take no queue.
fn tiny(machine: &Machine, work: &Work<'_>) -> Option<Note> {
    let others = machine.topology.online.difference(&work.irq_cpus);
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
    target.unwrap_or_else(|| {
        work.cpu_of(Role::Rx, queue.index)
            .map(CpuSet::single)
            .unwrap_or_default()
    })
}

/// The plan for the transmit queues.
pub(crate) fn tx(machine: &Machine, locations: &Locations, work: &Work<'_>) -> Vec<PlannedTxQueue> {
    let queues = &work.interface.tx_queues;
    let completions: Option<Vec<u32>> = queues
        .iter()
        .map(|queue| work.cpu_of(Role::Tx, queue.index))
        .collect();
    let leave = |why: &str| -> (Option<Vec<CpuSet>>, String) { (None, why.to_owned()) };
    let xps = work.choice.get(&XPS);
    let (shares, why) = match (xps, completions) {
        _ if !has_placed_queues(work) => leave("unchanged: no queue IRQ is placed"),
        (Xps::Keep, _) => leave("kept by the policy"),
        (Xps::Off, _) => (
            Some(vec![CpuSet::new(); queues.len()]),
            "off by the policy".to_owned(),
        ),
        (Xps::Auto | Xps::ReceiveQueues, Some(completions)) => (
            Some(steer::xps(&machine.topology, locations, &completions)),
            "nearest to the queue's CPU".to_owned(),
        ),
        (Xps::Auto | Xps::ReceiveQueues, None) => leave("its completion vector is unknown"),
    };
    let (why, single, none_left): (Arc<str>, Arc<str>, Arc<str>) = (
        why.into(),
        "nothing to steer: it is the only transmit queue".into(),
        "more transmit queues than CPUs".into(),
    );
    let mut shares = shares.map(Vec::into_iter);
    let by_rxqs = xps == Xps::ReceiveQueues && has_placed_queues(work);
    let receives = |tx: &TxQueue| -> CpuSet {
        let numbers = work.interface.rx_queues.iter().map(|rx| rx.index);
        numbers
            .filter(|rx| *rx as usize % queues.len() == tx.index as usize)
            .collect()
    };
    let plan = |queue: &TxQueue| {
        // The file xps_cpus does not exist when there is a single transmit queue.
        let exists = queue.xps_cpus.is_some();
        let share = shares.as_mut().and_then(Iterator::next).filter(|_| exists);
        let is_none_left = matches!(xps, Xps::Auto | Xps::ReceiveQueues)
            && share.as_ref().is_some_and(CpuSet::is_empty);
        let why = if is_none_left { &none_left } else { &why };
        PlannedTxQueue {
            queue: queue.index,
            xps_cpus: share,
            xps_rxqs: (by_rxqs && exists && queue.xps_rxqs.is_some()).then(|| receives(queue)),
            why: Arc::clone(if exists { why } else { &single }),
        }
    };
    queues.iter().map(plan).collect()
}

/// Whether ntuple filters are to be on: with RFS, where the driver steers its flows in hardware. `None`: left unchanged.
pub(crate) fn ntuple(work: &Work<'_>) -> Option<bool> {
    let has_rfs = matches!(work.choice.get(&RFS), Rfs::Entries(_)) && has_placed_queues(work);
    work.interface.ntuple.filter(|_| has_rfs).map(|_| true)
}

/// The number of entries in the flow table, from the settings of all interfaces: the largest number; 0 when all are off.
/// `None`: left unchanged.
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
