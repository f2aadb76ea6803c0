//! RPS and RFS of each receive queue, by the policy. RPS makes up for missing hardware receive queues
//! (`Documentation/networking/scaling.rst`).

use std::collections::BTreeMap;

use itertools::{Itertools as _, chain};

use crate::cpuset::CpuSet;
use crate::machine::wording::count;
use crate::machine::{Role, RxQueue, Topology};
use crate::plan::candidates::{for_rps, kept_by_the_kernel, not_all};
use crate::plan::data::PlannedRxQueue;
use crate::plan::device;
use crate::plan::note::{Note, UsedFor};
use crate::plan::place::Locations;
use crate::plan::work::Work;
use crate::policy::{self, AVOID_CPU0, RFS, RPS, Rfs};

/// On machines with at most this many CPUs RPS stays off: to hand a packet to another CPU costs both CPUs more than is
/// gained.
const TINY: usize = 2;

/// The most CPUs of a set that are shared with queues of other interfaces.
const MOST_SHARED: usize = 4;

/// The most CPUs of a receive queue's RPS set: more cost more in messages between CPUs than they take off one.
const MOST: usize = 8;

/// RPS of an interface.
#[derive(Default)]
pub(crate) struct Rps {
    /// Of each receive queue; `None`: left unchanged.
    sets: Option<Vec<Set>>,
    why: String,
    note: Option<Note>,
    /// What the kernel removes from the sets.
    removed: CpuSet,
}

/// The CPUs to which a receive queue sends packets.
#[derive(Debug, Clone, Default)]
struct Set {
    cpus: CpuSet,
    /// Those that it can be given, one for each core; of several, as many as `most`.
    scope: Vec<u32>,
    most: usize,
}

/// RPS of all interfaces that take part, by their order. Interfaces and queues get different CPUs before any is shared.
/// `loaded`: CPUs that take a queue, an RDMA vector or a thread that polls all the time.
pub(crate) fn rps(
    locations: &Locations<'_>,
    works: &[Work<'_>],
    loaded: &CpuSet,
) -> BTreeMap<usize, Rps> {
    let has_rdma = works.iter().any(|work| work.rdma_cpus().is_some());
    // How many queues are on each core, without those of interfaces that are down.
    let mut crowd = vec![0; locations.cores];
    for place in works
        .iter()
        .filter(|work| !work.interface.is_down)
        .flat_map(Work::queue_cpus)
        .filter_map(|cpu| locations.of(cpu))
    {
        crowd[place.core] += 1;
    }
    let in_order = works.iter().sorted_by_key(|work| work.rank());
    let mut all = in_order
        .map(|work| (work, Rps::new(work, loaded, &crowd, has_rdma)))
        .collect_vec();
    let sets = all.iter_mut().flat_map(|(_, rps)| &mut rps.sets).flatten();
    deal(locations, &mut sets.collect_vec());
    all.into_iter()
        .map(|(work, rps)| (work.order, rps.without_removed(work)))
        .collect()
}

impl Rps {
    fn new(work: &Work<'_>, loaded: &CpuSet, crowd: &[usize], has_rdma: bool) -> Self {
        let queues = work.interface.rx_queues.len();
        let everywhere = |cpus| {
            let set = Set {
                cpus,
                ..Set::default()
            };
            Some(vec![set; queues])
        };
        let (sets, why, note) = match work.choice.get(&RPS) {
            _ if work.skip => (None, "unchanged", None),
            policy::RpsMode::Off => (everywhere(CpuSet::new()), "off by the policy", None),
            policy::RpsMode::Cpus(wanted) => {
                let cpus = for_rps(work.machine, &work.choice, &wanted);
                // The queues of a function in another namespace are out of reach.
                let note = not_all(&wanted, &cpus, UsedFor::Rps).filter(|_| queues > 0);
                (everywhere(cpus), "given by the policy", note)
            }
            // The device may have IRQs that are not known, or only while it is up.
            policy::RpsMode::Auto if !work.has_placed_queues() && !work.interface.has_no_irqs() => {
                (None, "unchanged: no queue IRQ is placed", None)
            }
            policy::RpsMode::Auto => return automatic(work, loaded, crowd, has_rdma),
        };
        Self {
            sets,
            why: why.to_owned(),
            note,
            ..Self::default()
        }
    }

    /// Without the CPUs that the kernel removes.
    fn without_removed(mut self, work: &Work<'_>) -> Self {
        let topology = &work.machine.topology;
        if topology.rps_filter.is_empty() {
            return self;
        }
        let kept = kept_by_the_kernel(topology, work.interface);
        let sets = self.sets.iter_mut().flatten();
        for (set, queue) in sets.zip(&work.interface.rx_queues) {
            let kept = kept(queue, &set.cpus);
            self.removed.add(&set.cpus.difference(&kept));
            set.cpus = kept;
        }
        if !self.removed.is_empty() && self.cpus().is_empty() {
            "off: the kernel removes all of its CPUs".clone_into(&mut self.why);
        }
        self
    }

    /// All CPUs to which packets are sent.
    pub(crate) fn cpus(&self) -> CpuSet {
        CpuSet::union_of(self.sets.iter().flatten().map(|set| &set.cpus))
    }

    /// The CPUs to which an interface's packets are sent, as planned or as they are where that is left unchanged.
    pub(crate) fn work_of(&self, work: &Work<'_>) -> CpuSet {
        if self.sets.is_some() {
            return self.cpus();
        }
        let queues = work.interface.rx_queues.iter();
        let now = queues.flat_map(|queue| &queue.rps_cpus);
        CpuSet::union_of(now.map(|file| &file.cpus))
    }

    /// The plan for the receive queues, and notes about RPS. `flow_queues`: receive queues over which a flow table is
    /// sized.
    pub(crate) fn plan(
        &self,
        work: &Work<'_>,
        flow_queues: usize,
    ) -> (Vec<PlannedRxQueue>, Vec<Note>) {
        // RFS, like RPS, is left unchanged on interfaces without queue vectors.
        let entries = flow_entries(work.choice.get(&RFS)).filter(|_| work.has_placed_queues());
        let share = entries.map(|entries| flow_share(entries, flow_queues));
        let is_on = !self.cpus().is_empty();
        let plan = |(at, queue): (usize, &RxQueue)| {
            let set = self.sets.as_ref().map(|sets| &sets[at].cpus);
            let rps_cpus = set.filter(|_| queue.rps_cpus.is_some()).cloned();
            let why = match (&rps_cpus, set) {
                (None, Some(_)) => "there is no rps_cpus",
                (Some(cpus), _) if is_on && cpus.is_empty() => "off: too few idle cores",
                _ => &self.why,
            };
            PlannedRxQueue {
                queue: queue.index,
                rps_cpus,
                rps_flow_cnt: share.filter(|_| queue.rps_flow_cnt.is_some()),
                why: why.into(),
            }
        };
        let queues = work.interface.rx_queues.iter().enumerate();
        let plans = queues.map(plan).collect();
        let cpus = self.removed.clone();
        let removed = (!cpus.is_empty()).then_some(Note::RpsFiltered { cpus });
        let has_no_table = entries > Some(0) && work.machine.flow_entries.is_none();
        let no_table = has_no_table.then_some(Note::NoFlowTable);
        let notes = chain(self.note.clone(), removed).chain(no_table);
        (plans, notes.collect())
    }
}

/// RPS in place of receive queues that the device cannot have: the candidate cores on which no queue of any interface
/// lands, for a single queue also others; else why it is off.
fn automatic(work: &Work<'_>, loaded: &CpuSet, crowd: &[usize], has_rdma: bool) -> Rps {
    let (interface, locations) = (work.interface, work.locations);
    let topology = &work.machine.topology;
    let (name, queues) = (interface.name.clone(), interface.rx_queues.len());
    let off = |why: &str, note| Rps {
        sets: Some(vec![Set::default(); queues]),
        why: format!("off: {why}"),
        note,
        ..Rps::default()
    };
    // RPS stays on the local node where the vectors were widened to others.
    let candidates = work
        .candidates
        .tiers
        .first()
        .unwrap_or(&work.candidates.cpus);
    let mut free = candidates.difference(&topology.whole_cores(loaded));
    if free.is_empty() && queues > 1 {
        let rdma = if has_rdma { " or an RDMA IRQ" } else { "" };
        return off(&format!("every core already has a queue{rdma}"), None);
    }
    if topology.online.len() <= TINY {
        return off("the machine is too small to gain from it", None);
    }
    if interface.is_virtual_function() {
        return off("the device is an SR-IOV virtual function", None);
    }
    match interface.channels {
        Some(channels) if channels.max_receiving() > channels.receiving() => {
            // Only if its share of the cores takes more.
            let advised =
                device::advised_channels(work).filter(|&advised| advised > channels.receiving());
            let note = advised.map(|advised| Note::MoreQueuesPossible {
                interface: name,
                queues,
                cores: work.core_count(),
                channels,
                advised,
            });
            return off("the device can have more queues", note);
        }
        None if !has_one_queue(work) => {
            return off(
                "the number of queues that the device can have is unknown",
                None,
            );
        }
        _ => {}
    }
    // A queue's packets go to two cores or more, and all of them to no fewer than they come from.
    let needed = queues.max(2);
    let cores_in = |cpus: &CpuSet| topology.cores_with(cpus).count();
    let mut why = "to idle cores: the device has no more queues";
    let others = free.difference(&topology.whole_cores(&CpuSet::single(0)));
    let has_choice = others != free && cores_in(&others) >= needed;
    if work.choice.get(&AVOID_CPU0) && has_choice {
        free = others;
        why = "to idle cores (not CPU 0's): the device has no more queues";
    }
    let fast = fastest(topology, &free, needed);
    if fast != free {
        free = fast;
        why = "to idle fast cores: the device has no more queues";
    }
    // A queue that nothing is known of may be served by any IRQ of which that is not known.
    let data = interface.active_vectors();
    let data = data.filter(|vector| vector.role == Role::Data);
    let data = data.map(|vector| work.cpus_of(vector));
    let unknown = CpuSet::union_of(data).union(&interface.unknown_vector_cpus);
    let set = |queue: &RxQueue| {
        let known = work.vector_of(Role::Rx, queue.index);
        known
            .and_then(|vector| work.target(vector))
            .or_else(|| Some(CpuSet::single(work.cpu_of(Role::Rx, queue.index)?)))
            .unwrap_or_else(|| unknown.clone())
    };
    let interrupted = interface.rx_queues.iter().map(set);
    let cores = cores_in(&free);
    let sets: Vec<Set> = if cores >= needed {
        let free = by_core(topology, &free);
        let is_slow = interface.supported_mbps.is_some_and(|mbps| mbps <= 1000);
        let most = if is_slow { MOST / 2 } else { MOST };
        let near = |on| Set::near(locations, &free, &on, most);
        interrupted.map(near).collect()
    } else if queues == 1 && !interface.is_down {
        why = "to the cores that carry least: the device has no more queues";
        let shared = |on| Set::shared(work, candidates, &on, crowd);
        interrupted.map(shared).collect()
    } else {
        let queues = count(queues, "queue");
        return off(&format!("too few idle cores: {cores} for {queues}"), None);
    };
    if sets.iter().all(Set::is_empty) {
        return off("there are too few other cores", None);
    }
    Rps {
        sets: Some(sets),
        why: why.to_owned(),
        ..Rps::default()
    }
}

/// Those of the fastest kinds of cores that have enough cores; all where none has.
fn fastest(topology: &Topology, cpus: &CpuSet, needed: usize) -> CpuSet {
    let mut taken = CpuSet::new();
    for class in &topology.speed_classes {
        taken.add(&class.intersection(cpus));
        if topology.cores_with(&taken).count() >= needed {
            return taken;
        }
    }
    cpus.clone()
}

/// A CPU of each core that has any of these.
fn by_core(topology: &Topology, cpus: &CpuSet) -> Vec<u32> {
    let cores = topology.cores.iter();
    cores
        .filter_map(|core| core.intersection(cpus).first())
        .collect()
}

/// Whether the device has one queue by nature: its driver supports no other number (the kernel then refuses to read
/// `xps_cpus`, `netif_is_multiqueue`), or it has one interrupt, as with `INTx`.
fn has_one_queue(work: &Work<'_>) -> bool {
    let interface = work.interface;
    let is_single = || interface.device.irqs.len() <= 1;
    interface.rx_queues.len() == 1
        && matches!(&interface.tx_queues[..], [tx] if tx.xps_cpus.is_none() || is_single())
}

impl Set {
    fn is_empty(&self) -> bool {
        self.cpus.is_empty() && self.scope.is_empty()
    }

    /// Of the candidates the cores that carry least, but the one that is interrupted; none where there is one other.
    fn shared(work: &Work<'_>, candidates: &CpuSet, interrupted: &CpuSet, crowd: &[usize]) -> Self {
        let topology = &work.machine.topology;
        let others = candidates.difference(&topology.whole_cores(interrupted));
        let avoids_cpu0 = work.choice.get(&AVOID_CPU0);
        let carries = |&cpu: &u32| {
            let place = work.locations.of(cpu).unwrap_or_default();
            let is_avoided = avoids_cpu0
                && work
                    .locations
                    .core_of(cpu)
                    .is_some_and(|core| core.contains(0));
            (place.class, crowd[place.core], is_avoided, cpu)
        };
        let cores = by_core(topology, &others).into_iter();
        let cores = cores.sorted_by_key(carries).take(MOST_SHARED);
        let cpus: CpuSet = cores.collect();
        let cpus = if cpus.len() < 2 { CpuSet::new() } else { cpus };
        Self {
            cpus,
            ..Self::default()
        }
    }

    /// To be given those of some free cores, each by a CPU, that are in an L3 domain of interrupted CPUs if there are two
    /// of them, else those on their nodes.
    fn near(locations: &Locations<'_>, free: &[u32], interrupted: &CpuSet, most: usize) -> Self {
        let own = interrupted
            .iter()
            .filter_map(|cpu| locations.of(cpu))
            .collect_vec();
        let within = |steps| {
            let is_near = |there| own.is_empty() || own.iter().any(|own| own.steps(there) <= steps);
            let free = free.iter().copied();
            free.filter(|&cpu| locations.of(cpu).is_some_and(is_near))
                .collect_vec()
        };
        let mut scope = within(1);
        if scope.len() < 2 {
            scope = within(2);
        }
        Self {
            cpus: CpuSet::new(),
            scope,
            most,
        }
    }
}

/// Deals cores to receive queues: to each in turn the first of those that the fewest have, two to each, and then what no
/// queue has.
fn deal(locations: &Locations<'_>, sets: &mut [&mut Set]) {
    let mut taken = vec![0_usize; locations.cores];
    let core = |cpu: u32| locations.of(cpu).map_or(0, |place| place.core);
    for size in 0..MOST {
        for set in &mut *sets {
            if size >= set.most || set.scope.len() < 2 {
                continue;
            }
            let others = set.scope.iter().filter(|cpu| !set.cpus.contains(**cpu));
            if let Some(&cpu) = others.min_by_key(|&&cpu| (taken[core(cpu)], cpu)) {
                if size < 2 || taken[core(cpu)] == 0 {
                    taken[core(cpu)] += 1;
                    set.cpus.insert(cpu);
                }
            }
        }
    }
}

/// Whether ntuple filters are to be on: with RFS, where the driver steers its flows in hardware. `None`: left unchanged.
pub(crate) fn ntuple(work: &Work<'_>) -> Option<bool> {
    let has_rfs = matches!(work.choice.get(&RFS), Rfs::Entries(_)) && work.has_placed_queues();
    work.interface.ntuple.and(has_rfs.then_some(true))
}

/// The interfaces that share the flow table: those with queue vectors, whichever are selected.
pub(crate) fn with_flows<'w, 'a>(
    works: &'w [Work<'a>],
) -> impl Iterator<Item = &'w Work<'a>> + Clone {
    let has_queues = |work: &&Work<'_>| work.interface.queue_vectors().next().is_some();
    works.iter().filter(has_queues)
}

/// The number of entries in the flow table, from the settings of all interfaces: the largest number; 0 when all are off.
/// `None`: left unchanged.
pub(crate) fn flow_table(works: &[Work<'_>]) -> Option<u32> {
    let wanted = with_flows(works).map(|work| flow_entries(work.choice.get(&RFS)));
    let is_kept = wanted.clone().contains(&None);
    wanted.max()?.filter(|&entries| entries > 0 || !is_kept)
}

/// The number of entries as the kernel rounds it: up to a power of two. `None`: left unchanged.
fn flow_entries(rfs: Rfs) -> Option<u32> {
    match rfs {
        Rfs::Entries(entries) => Some(entries.next_power_of_two()),
        Rfs::Off => Some(0),
        Rfs::Keep => None,
    }
}

/// The `rps_flow_cnt` of each of `queues` receive queues for a flow table of `entries`: the largest power of two that
/// fits, because the kernel rounds up.
fn flow_share(entries: u32, queues: usize) -> u32 {
    let share = entries / u32::try_from(queues.max(1)).unwrap_or(u32::MAX);
    match entries {
        0 => 0,
        _ => 1 << share.max(1).ilog2(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::place::tests::two_nodes;

    #[test]
    fn rps_deals_free_cores_two_to_each_queue_and_then_the_rest() {
        let topology = two_nodes();
        let locations = Locations::new(&topology);
        let set = |text: &str| CpuSet::parse_list(text).unwrap();
        let rps = |free: &str, interrupted: &[&str]| {
            let first = |core: &CpuSet| core.intersection(&set(free)).first();
            let free: Vec<u32> = topology.cores.iter().filter_map(first).collect();
            let wish = |cpus: &&str| Set::near(&locations, &free, &set(cpus), MOST);
            let mut sets: Vec<Set> = interrupted.iter().map(wish).collect();
            deal(&locations, &mut sets.iter_mut().collect_vec());
            sets.iter().map(|set| set.cpus.to_string()).collect_vec()
        };
        // Within the L3 domain of node 1, a thread of each core; without two cores there, on the node.
        assert_eq!(rps("0-3,5-11,13-15", &["4"]), ["5-7"]);
        assert_eq!(rps("0,2-3,8,10-11", &["1"]), ["0,2-3"]);
        assert_eq!(rps("2-3,10-11", &["0", "1"]), ["2-3", "2-3"]);
        assert_eq!(rps("5-7", &["4", "12"]), ["5,7", "5-6"]);
        assert_eq!(rps("3,11", &["2"]), [""]);
        // Nothing is known of the queue.
        assert_eq!(rps("1,4-5", &[""]), ["1,4-5"]);
    }

    #[test]
    fn flow_shares_never_add_up_to_more_than_the_table() {
        for (entries, queues, expected) in [
            (32768, 16, 2048),
            (32768, 12, 2048),
            (32768, 1, 32768),
            (4, 8, 1),
        ] {
            assert_eq!(flow_share(entries, queues), expected, "{entries}/{queues}");
        }
    }
}
