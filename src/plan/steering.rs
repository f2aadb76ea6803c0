//! RPS, RFS and XPS of each queue, by the policy.
//!
//! RPS makes up for missing hardware receive queues. XPS divides the online CPUs among the transmit queues by where
//! completions arrive (`Documentation/networking/scaling.rst`).

use std::collections::BTreeMap;
use std::sync::Arc;

use itertools::Itertools as _;

use crate::cpuset::CpuSet;
use crate::machine::{Role, RxQueue, Topology, TxQueue};
use crate::plan::data::{PlannedRxQueue, PlannedTxQueue};
use crate::plan::note::{Note, UsedFor};
use crate::plan::place::{CpuLocation, Locations};
use crate::plan::work::Work;
use crate::plan::{candidates, channels};
use crate::policy::{self, AVOID_CPU0, EXCLUDE, RFS, RPS, Rfs, XPS, Xps};

/// On machines with at most this many CPUs RPS stays off: to hand a packet to another CPU costs both CPUs more than is
/// gained.
const TINY: usize = 4;

/// The most CPUs of a receive queue's RPS set: more cost more in messages between CPUs than they take off one.
const MOST: usize = 8;

/// RPS of an interface.
#[derive(Default)]
pub(crate) struct Rps {
    /// Of each receive queue; `None`: left unchanged.
    sets: Option<Vec<CpuSet>>,
    why: String,
    note: Option<Note>,
}

/// RPS of all interfaces that take part, by their order. Interfaces and queues get different CPUs before any is shared.
/// `loaded`: CPUs that take a queue or an RDMA vector.
pub(crate) fn rps(works: &[Work<'_>], loaded: &CpuSet) -> BTreeMap<usize, Rps> {
    let Some(Work {
        machine, locations, ..
    }) = works.first()
    else {
        return BTreeMap::new();
    };
    let busy = machine
        .topology
        .cores
        .iter()
        .filter(|core| core.intersects(loaded));
    let busy = CpuSet::union_of(busy);
    let has_rdma = works.iter().any(|work| work.rdma_cpus().is_some());
    let (mut decided, mut wishes, mut of_queues) = (BTreeMap::new(), Vec::new(), Vec::new());
    // As the placement, by properties of the hardware only.
    let in_order = works.iter().sorted_by_key(|work| {
        let interface = work.interface;
        (&interface.device.address, interface.port, work.order)
    });
    for work in in_order {
        let rps = Rps::of(work, &busy, has_rdma, &mut wishes);
        of_queues.resize(wishes.len(), work.order);
        decided.insert(work.order, rps);
    }
    for (order, cpus) in of_queues.into_iter().zip(deal(locations, &wishes)) {
        if let Some(rps) = decided.get_mut(&order) {
            rps.sets.get_or_insert_default().push(cpus);
        }
    }
    decided
}

impl Rps {
    fn off(why: &str, note: Option<Note>) -> Self {
        Self {
            sets: Some(Vec::new()),
            why: why.to_owned(),
            note,
        }
    }

    /// Without the sets of queues whose wishes it adds. `busy`: the cores that take a queue or an RDMA vector.
    fn of(work: &Work<'_>, busy: &CpuSet, has_rdma: bool, wishes: &mut Vec<Wish>) -> Self {
        let (topology, queues) = (&work.machine.topology, &work.interface.rx_queues);
        match work.choice.get(&RPS) {
            _ if !work.has_placed_queues() => Self {
                why: "unchanged: no queue IRQ is placed".to_owned(),
                ..Self::default()
            },
            policy::Rps::Off => Self::off("off by the policy", None),
            policy::Rps::Cpus(wanted) => {
                let cpus = wanted
                    .intersection(&topology.online)
                    .difference(&work.choice.get(&EXCLUDE));
                let why = if cpus.is_empty() {
                    "off: no CPU that the policy names can be used"
                } else {
                    "given by the policy"
                };
                Self {
                    note: candidates::not_all(&wanted, &cpus, UsedFor::Rps),
                    sets: Some(vec![cpus; queues.len()]),
                    why: why.to_owned(),
                }
            }
            policy::Rps::Auto => Self::auto(work, busy, has_rdma, wishes),
        }
    }

    /// RPS in place of receive queues that the device cannot have: the candidate cores on which no queue of any interface
    /// lands.
    fn auto(work: &Work<'_>, busy: &CpuSet, has_rdma: bool, wishes: &mut Vec<Wish>) -> Self {
        let (interface, locations) = (work.interface, work.locations);
        let topology = &work.machine.topology;
        let (name, queues) = (interface.name.clone(), interface.rx_queues.len());
        let off = |why: &str, note| Self::off(&format!("off: {why}"), note);
        // RPS stays on the local node where the vectors were widened to others.
        let mut free = work
            .candidates
            .tiers
            .first()
            .unwrap_or(&work.candidates.cpus)
            .difference(busy);
        if free.is_empty() {
            let rdma = if has_rdma { " or an RDMA IRQ" } else { "" };
            let why = format!("every core already has a queue{rdma}");
            return off(&why, None);
        }
        let cpus = topology.online.len();
        if cpus <= TINY {
            let others = topology.online.difference(&work.irq_cpus);
            let note = (cpus > 1 && !others.is_empty()).then_some(Note::TinyMachine {
                interface: name,
                queues,
                cpus,
                others,
            });
            return off("the machine is too small to gain from it", note);
        }
        if interface.is_virtual_function() {
            return off("the device is an SR-IOV virtual function", None);
        }
        match interface.channels {
            Some(channels) if channels.max_receiving() > channels.receiving() => {
                // Only if its share of the cores takes more.
                let advised = channels::advised(work);
                let advised = advised.filter(|&advised| advised > channels.receiving());
                let note = advised.map(|advised| Note::MoreQueuesPossible {
                    interface: name,
                    queues,
                    cores: work.core_count(&work.candidates.cpus),
                    channels,
                    advised,
                });
                return off("the device can have more queues", note);
            }
            None if !has_one_queue(work) => {
                let why = "the number of queues that the device can have is unknown";
                return off(why, None);
            }
            _ => {}
        }
        let needed = queues.max(2);
        let mut but_cpu0 = "";
        if let Some(core) = locations.core_of(0) {
            let others = free.difference(core);
            let has_choice = others != free && locations.cores_in(&others) >= needed;
            if work.choice.get(&AVOID_CPU0) && has_choice {
                (free, but_cpu0) = (others, " (not CPU 0's)");
            }
        }
        // A queue's packets go to two cores or more, and all of them to no fewer than they come from.
        let cores = locations.cores_in(&free);
        if cores < needed {
            let noun = if queues == 1 { "queue" } else { "queues" };
            let why = format!("too few idle cores: {cores} for {queues} {noun}");
            return off(&why, None);
        }
        let free = topology
            .cores
            .iter()
            .filter_map(|core| core.intersection(&free).first())
            .collect_vec();
        let is_slow = interface.supported_mbps.is_some_and(|mbps| mbps <= 1000);
        let most = if is_slow { MOST / 2 } else { MOST };
        wishes.extend(interface.rx_queues.iter().map(|queue| {
            let interrupted = work
                .receiver(queue.index)
                .and_then(|v| work.target(v))
                .unwrap_or_else(|| work.cpu_of(Role::Rx, queue.index).into_iter().collect());
            Wish::new(work.locations, &free, &interrupted, most)
        }));
        Self {
            why: format!("to idle cores{but_cpu0}: the device has no more queues"),
            ..Self::default()
        }
    }

    /// All CPUs to which packets are sent.
    pub(crate) fn cpus(&self) -> impl Iterator<Item = &CpuSet> {
        self.sets.iter().flatten()
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
        let is_on = self.cpus().any(|cpus| !cpus.is_empty());
        let [why, without] = [&*self.why, "off: too few idle cores"].map(Arc::<str>::from);
        let mut removed = CpuSet::new();
        let plans = work
            .interface
            .rx_queues
            .iter()
            .enumerate()
            .map(|(at, queue)| {
                let rps_cpus = self.sets.as_ref().map(|sets| {
                    let wanted = sets.get(at).cloned().unwrap_or_default();
                    let kept = as_the_kernel_keeps(&work.machine.topology, queue, &wanted);
                    removed.add(&wanted.difference(&kept));
                    kept
                });
                let has_none = is_on && rps_cpus.as_ref().is_some_and(CpuSet::is_empty);
                PlannedRxQueue {
                    queue: queue.index,
                    rps_cpus,
                    rps_flow_cnt: share.filter(|_| queue.rps_flow_cnt.is_some()),
                    why: Arc::clone(if has_none { &without } else { &why }),
                }
            })
            .collect();
        let mut notes = Vec::from_iter(self.note.clone());
        if !removed.is_empty() {
            notes.push(Note::RpsFiltered { cpus: removed });
        }
        (plans, notes)
    }
}

/// The wanted RPS CPUs of a queue, less those that the kernel removes. Whether it removes the boot CPU shows only in the
/// file.
fn as_the_kernel_keeps(topology: &Topology, queue: &RxQueue, wanted: &CpuSet) -> CpuSet {
    let filter = &topology.rps_filter;
    if wanted.is_empty() || filter.is_empty() {
        return wanted.clone();
    }
    let kept = wanted.difference(&filter.intersection(&topology.isolated_or_nohz()));
    queue
        .rps_cpus
        .as_ref()
        .map(|now| &now.cpus)
        .filter(|now| {
            !now.is_empty() && now.is_subset(&kept) && kept.difference(now).is_subset(filter)
        })
        .unwrap_or(&kept)
        .clone()
}

/// Whether the device has one queue by nature: its driver supports no other number (the kernel then refuses to read
/// `xps_cpus`, `netif_is_multiqueue`), or it has one interrupt, as with `INTx`.
fn has_one_queue(work: &Work<'_>) -> bool {
    let (rx, tx) = (&work.interface.rx_queues, &work.interface.tx_queues);
    let is_single =
        tx.iter().all(|queue| queue.xps_cpus.is_none()) || work.interface.device.irqs.len() == 1;
    rx.len() == 1 && tx.len() == 1 && is_single
}

/// The CPUs to which a receive queue may send packets, one for each core, and how many of them it should.
struct Wish {
    scope: Vec<u32>,
    most: usize,
}

impl Wish {
    /// Of a queue that interrupts these CPUs: free cores, each by a CPU, of their L3 domains if there are two of them, else
    /// of their nodes.
    fn new(locations: &Locations<'_>, free: &[u32], interrupted: &CpuSet, most: usize) -> Self {
        let own = interrupted
            .iter()
            .filter_map(|cpu| locations.of(cpu))
            .collect_vec();
        let near = |is_near: fn(CpuLocation, CpuLocation) -> bool| -> Vec<u32> {
            free.iter()
                .copied()
                .filter(|cpu| {
                    let is_near = |there| own.iter().any(|&own| is_near(own, there));
                    let there = locations.of(*cpu);
                    there.is_some_and(|there| own.is_empty() || is_near(there))
                })
                .collect()
        };
        let mut scope = near(|a, b| (a.node, a.domain) == (b.node, b.domain));
        if scope.len() < 2 {
            scope = near(|a, b| a.node == b.node);
        }
        Self { scope, most }
    }
}

/// Deals cores to receive queues: to each in turn the first of those that the fewest have, two to each, and then what no
/// queue has.
fn deal(locations: &Locations<'_>, wishes: &[Wish]) -> Vec<CpuSet> {
    let mut taken = vec![0_usize; locations.cores];
    let core = |cpu: u32| locations.of(cpu).map_or(0, |place| place.core);
    let mut sets = vec![CpuSet::new(); wishes.len()];
    for size in 0..MOST {
        for (wish, set) in wishes.iter().zip(&mut sets) {
            let best = wish
                .scope
                .iter()
                .copied()
                .filter(|&cpu| !set.contains(cpu))
                .min_by_key(|&cpu| (taken[core(cpu)], cpu));
            let is_open = size < wish.most && wish.scope.len() > 1;
            if let Some(cpu) = best.filter(|cpu| is_open && (size < 2 || taken[core(*cpu)] == 0)) {
                taken[core(cpu)] += 1;
                set.insert(cpu);
            }
        }
    }
    sets
}

/// The plan for the transmit queues.
pub(crate) fn tx(work: &Work<'_>) -> Vec<PlannedTxQueue> {
    let queues = &work.interface.tx_queues;
    let is_placed = work.has_placed_queues();
    let policy = work.choice.get(&XPS);
    let (shares, why) = match policy {
        _ if !is_placed => (None, "unchanged: no queue IRQ is placed"),
        Xps::Keep => (None, "kept by the policy"),
        Xps::Off => (Some(vec![CpuSet::new(); queues.len()]), "off by the policy"),
        Xps::Auto | Xps::ReceiveQueues => {
            let completions = queues
                .iter()
                .map(|queue| work.cpu_of(Role::Tx, queue.index));
            match completions.collect::<Option<Vec<u32>>>() {
                Some(completions) => (
                    Some(xps(work.locations, &completions)),
                    "nearest to the queue's CPU",
                ),
                None => (None, "its completion vector is unknown"),
            }
        }
    };
    let single = "nothing to steer: it is the only transmit queue";
    let [why, single, none_left] =
        [why, single, "more transmit queues than CPUs"].map(Arc::<str>::from);
    let mut shares = shares.map(Vec::into_iter);
    let receives = |tx: &TxQueue| -> CpuSet {
        work.interface
            .rx_queues
            .iter()
            .map(|rx| rx.index)
            .filter(|rx| *rx as usize % queues.len() == tx.index as usize)
            .collect()
    };
    let plan = |queue: &TxQueue| {
        // The file xps_cpus does not exist when there is a single transmit queue.
        let exists = queue.xps_cpus.is_some();
        let share = shares.as_mut().and_then(Iterator::next).filter(|_| exists);
        let has_none = policy != Xps::Off && share.as_ref().is_some_and(CpuSet::is_empty);
        let by_rxqs = policy == Xps::ReceiveQueues && is_placed && exists;
        PlannedTxQueue {
            queue: queue.index,
            xps_cpus: share,
            xps_rxqs: (by_rxqs && queue.xps_rxqs.is_some()).then(|| receives(queue)),
            why: Arc::clone(match exists {
                false => &single,
                true if has_none => &none_left,
                true => &why,
            }),
        }
    };
    queues.iter().map(plan).collect()
}

/// What a CPU shares with a completion.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Core(usize),
    Domain(Option<u32>, usize),
    Node(Option<u32>),
}

/// The places of a CPU, the smallest first.
fn places(of: CpuLocation) -> [Place; 3] {
    let domain = Place::Domain(of.node, of.domain);
    [Place::Core(of.core), domain, Place::Node(of.node)]
}

/// Divides the online CPUs among transmit queues; queue k completes on CPU `completions[k]`. Each CPU is in exactly one
/// set of the result. On nodes with completions, the CPUs of a core go to the nearest queue, of equally near ones to the
/// one with the fewest CPUs; the CPUs of other nodes are divided evenly, each queue's share in one piece.
fn xps(locations: &Locations<'_>, completions: &[u32]) -> Vec<CpuSet> {
    if completions.is_empty() {
        return Vec::new();
    }
    let mut by_place: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
    for (queue, &cpu) in completions.iter().enumerate() {
        for place in locations.of(cpu).into_iter().flat_map(places) {
            by_place.entry(place).or_default().push(queue);
        }
    }
    let nodes = locations.nodes.iter();
    let (near, far): (Vec<_>, Vec<_>) =
        nodes.partition(|(node, _)| by_place.contains_key(&Place::Node(**node)));
    let local = near
        .into_iter()
        .flat_map(|(_, cores)| cores)
        .filter_map(|&core| {
            let core = &locations.topology.cores[core];
            let first = core.first()?;
            let mut places = places(locations.of(first)?).into_iter().enumerate();
            let (away, queues) =
                places.find_map(|(away, place)| Some((away, by_place.get(&place)?)))?;
            Some((away, first, core, queues))
        });
    let mut shares = Shares(vec![Vec::new(); completions.len()]);
    // Cores with completions come first, so that their CPUs count when the others are divided.
    for (away, _, core, queues) in local.sorted_unstable_by_key(|&(away, first, ..)| (away, first))
    {
        if away > 0 {
            shares.give_smallest(queues, core.iter());
            continue;
        }
        // Each thread of a core with completions may have its own queue.
        for cpu in core.iter() {
            let own = queues
                .iter()
                .copied()
                .filter(|&queue| completions[queue] == cpu)
                .collect_vec();
            shares.give_smallest(if own.is_empty() { queues } else { &own }, [cpu]);
        }
    }
    for (_, cores) in far {
        let cpus = cores
            .iter()
            .flat_map(|&core| locations.topology.cores[core].iter());
        shares.deal(&cpus.collect_vec());
    }
    shares
        .0
        .into_iter()
        .map(|cpus| cpus.into_iter().collect())
        .collect()
}

/// The CPUs of each transmit queue so far.
struct Shares(Vec<Vec<u32>>);

impl Shares {
    /// Adds CPUs to the queue with the fewest CPUs.
    fn give_smallest(&mut self, queues: &[usize], cpus: impl IntoIterator<Item = u32>) {
        if let Some(&queue) = queues.iter().min_by_key(|&&queue| self.0[queue].len()) {
            self.0[queue].extend(cpus);
        }
    }

    /// Divides CPUs in consecutive pieces so that the shares become as even as possible.
    fn deal(&mut self, cpus: &[u32]) {
        let mut sizes = self.0.iter().map(Vec::len).collect_vec();
        let mut left = cpus.len();
        while let (1.., Some(&lowest)) = (left, sizes.iter().min()) {
            for size in sizes.iter_mut().filter(|size| **size == lowest).take(left) {
                *size += 1;
                left -= 1;
            }
        }
        let mut rest = cpus;
        for (queue, size) in self.0.iter_mut().zip(sizes) {
            let (own, after) = rest.split_at(size - queue.len());
            queue.extend(own);
            rest = after;
        }
    }
}

/// Whether ntuple filters are to be on: with RFS, where the driver steers its flows in hardware. `None`: left unchanged.
pub(crate) fn ntuple(work: &Work<'_>) -> Option<bool> {
    let has_rfs = matches!(work.choice.get(&RFS), Rfs::Entries(_)) && work.has_placed_queues();
    work.interface.ntuple.filter(|_| has_rfs).map(|_| true)
}

/// The number of entries in the flow table, from the settings of all interfaces: the largest number; 0 when all are off.
/// `None`: left unchanged.
pub(crate) fn flow_table(works: &[Work<'_>]) -> Option<u32> {
    let wanted = works
        .iter()
        .map(|work| flow_entries(work.choice.get(&RFS)))
        .collect_vec();
    let most = *wanted.iter().max()?;
    most.filter(|&entries| entries > 0 || !wanted.contains(&None))
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
    use crate::machine::Node;

    /// Two nodes of four cores, two threads each: CPUs n and n+8 are siblings, node 0 has 0-3 and 8-11.
    fn machine() -> Topology {
        let set = |text: &str| CpuSet::parse_list(text).unwrap();
        let node = |cpus: &str| Node {
            cpus: set(cpus),
            ..Node::default()
        };
        Topology {
            online: set("0-15"),
            possible: 16,
            cores: (0..8).map(|n| [n, n + 8].into_iter().collect()).collect(),
            l3_domains: ["0-1,8-9", "2-3,10-11", "4-7,12-15"].map(set).to_vec(),
            nodes: [(0, node("0-3,8-11")), (1, node("4-7,12-15"))].into(),
            ..Topology::default()
        }
    }

    fn shown(shares: &[CpuSet]) -> Vec<String> {
        shares.iter().map(CpuSet::to_string).collect()
    }

    #[test]
    fn xps_follows_completions_and_parts_all_cpus() {
        let topology = machine();
        let locations = Locations::new(&topology);
        let four = xps(&locations, &[1, 2, 3, 0]);
        assert_eq!(
            shown(&four),
            ["1,4,9,12", "2,5,10,13", "3,6,11,14", "0,7-8,15"]
        );
        // Queues on both L3 domains of node 0: each takes its own domain, and half of node 1.
        assert_eq!(
            shown(&xps(&locations, &[1, 2])),
            ["0-1,4-5,8-9,12-13", "2-3,6-7,10-11,14-15"]
        );
        assert_eq!(shown(&xps(&locations, &[5])), ["0-15"]);
        assert!(xps(&locations, &[]).is_empty());
    }

    #[test]
    fn rps_deals_free_cores_two_to_each_queue_and_then_the_rest() {
        let topology = machine();
        let locations = Locations::new(&topology);
        let set = |text: &str| CpuSet::parse_list(text).unwrap();
        let rps = |free: &str, interrupted: &[&str]| {
            let first = |core: &CpuSet| core.intersection(&set(free)).first();
            let free: Vec<u32> = topology.cores.iter().filter_map(first).collect();
            let wish = |cpus: &&str| Wish::new(&locations, &free, &set(cpus), MOST);
            let wishes: Vec<Wish> = interrupted.iter().map(wish).collect();
            shown(&deal(&locations, &wishes))
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
