//! RPS of each receive queue, by the policy, in place of hardware receive queues that are missing
//! (`Documentation/networking/scaling.rst`).

use std::collections::BTreeMap;

use itertools::{Itertools as _, chain};

use crate::cpuset::{CpuSet, Inserted as _};
use crate::drivers::Fact;
use crate::machine::interface::is_pci_address;
use crate::machine::netdev::Direction;
use crate::machine::{Role, RxQueue, Topology};
use crate::plan::data::PlannedRxQueue;
use crate::plan::device;
use crate::plan::note::{Note, UsedFor};
use crate::plan::place::Locations;
use crate::plan::ports::PlacedPort;
use crate::plan::requests::{cpus_kept_by_kernel, note_of_unusable, usable_rps_cpus};
use crate::plan::rfs::{flow_entries, flow_share};
use crate::plan::why::{Cause, Why};
use crate::policy::{self, AVOID_CPU0, IRQ_CORES, ONE_PER_L3, RFS, RPS};

/// CPUs of a machine up to which RPS stays off: handing a packet over costs both CPUs more than is gained.
const TINY: usize = 2;

/// Maximum number of CPUs of an RPS set that are shared with queues of other interfaces.
const MOST_SHARED: usize = 4;

/// Maximum number of CPUs of an RPS set: more cost more in messages between CPUs than they relieve one.
const MOST: usize = 8;

pub(crate) struct Rps {
    /// The CPUs of each receive queue; `None`: unchanged.
    sets: Option<Vec<RpsSet>>,
    cause: Cause,
    note: Option<Note>,
    removed: CpuSet,
}

#[derive(Debug, Clone, Default)]
struct RpsSet {
    cpus: CpuSet,
    /// CPUs to choose from, one for each core.
    scope: Vec<u32>,
    most: usize,
}

/// RPS by the index of the interface. Interfaces and queues get different CPUs before any is shared. `loaded`: CPUs
/// that take a queue, an RDMA vector or a busy-polling thread.
pub(crate) fn rps(
    locations: &Locations<'_>,
    ports: &[PlacedPort<'_>],
    loaded: &CpuSet,
) -> BTreeMap<usize, Rps> {
    let mut crowd = vec![0; locations.cores];
    for place in ports
        .iter()
        .filter(|port| !port.interface.is_down)
        .flat_map(PlacedPort::queue_cpus)
        .filter_map(|cpu| locations.of(cpu))
    {
        crowd[place.core] += 1;
    }
    let ranked = ports.iter().sorted_unstable_by_key(|port| port.rank());
    let demand = |port: &PlacedPort<'_>| {
        let (idle, queues) = (idle_cpus(port, loaded), port.interface.rx_queues.len());
        let cores = port.machine.topology.cores_with(&idle).count();
        let is_met = cores >= queues.max(2) && !port.interface.is_down;
        let is_demanded = is_met && Rps::decided(port, ports, &idle).is_none();
        is_demanded.then_some((port.order, idle, queues))
    };
    let demands = ranked.clone().filter_map(demand).collect_vec();
    let steered = |port| {
        let idle = idle_cpus(port, loaded);
        let decided = Rps::decided(port, ports, &idle);
        let rps = decided.unwrap_or_else(|| steer(port, ports, idle, &demands, &crowd));
        (port, rps)
    };
    let mut all = ranked.map(steered).collect_vec();
    let sets = all.iter_mut().flat_map(|(_, rps)| &mut rps.sets).flatten();
    deal(locations, &mut sets.collect_vec());
    all.into_iter()
        .map(|(port, rps)| (port.order, rps.without_removed(port)))
        .inserted()
}

impl Rps {
    /// What is planned whatever cores are idle; `None`: RPS uses idle cores.
    fn decided(port: &PlacedPort<'_>, ports: &[PlacedPort<'_>], idle: &CpuSet) -> Option<Self> {
        let queues = port.interface.rx_queues.len();
        let everywhere = |cpus| {
            let set = RpsSet {
                cpus,
                ..RpsSet::default()
            };
            Some(vec![set; queues])
        };
        if port.skip {
            return Some(Self::unchanged(port.why_skipped()));
        }
        let (sets, cause, note) = match port.choice.get(&RPS) {
            policy::RpsMode::Off => (everywhere(CpuSet::new()), Cause::Off, None),
            policy::RpsMode::Cpus(wanted) => {
                let cpus = usable_rps_cpus(port.machine, &port.choice, &wanted);
                let note = note_of_unusable(&wanted, &cpus, UsedFor::Rps);
                (everywhere(cpus), Cause::Given, note)
            }
            // The device may have IRQs that are unknown, or that exist only while it is up.
            policy::RpsMode::Auto if !port.has_placed_queues() && !port.interface.has_no_irqs() => {
                (None, Cause::NoQueuePlaced, None)
            }
            policy::RpsMode::Auto if port.interface.has_more_when_up() => {
                (None, Cause::IrqsWhenUp, None)
            }
            policy::RpsMode::Auto => {
                let (cause, note) = why_off(port, ports, idle)?;
                (everywhere(CpuSet::new()), cause, note)
            }
        };
        Some(Self {
            sets,
            note,
            ..Self::unchanged(cause)
        })
    }

    fn unchanged(cause: Cause) -> Self {
        Self {
            sets: None,
            cause,
            note: None,
            removed: CpuSet::new(),
        }
    }

    fn without_removed(mut self, port: &PlacedPort<'_>) -> Self {
        let topology = &port.machine.topology;
        if topology.rps_filter.is_empty() {
            return self;
        }
        let kept = cpus_kept_by_kernel(topology, port.interface);
        let sets = self.sets.iter_mut().flatten();
        for (set, queue) in sets.zip(&port.interface.rx_queues) {
            let kept = kept(queue, &set.cpus);
            self.removed.add(&set.cpus.difference(&kept));
            set.cpus = kept;
        }
        if !self.removed.is_empty() && self.cpus().is_empty() {
            self.cause = Cause::RpsFiltered;
        }
        self
    }

    pub(crate) fn cpus(&self) -> CpuSet {
        CpuSet::union_of(self.sets.iter().flatten().map(|set| &set.cpus))
    }

    /// Planned CPUs, or the current ones if they do not change.
    pub(crate) fn steering_cpus(&self, port: &PlacedPort<'_>) -> CpuSet {
        if self.sets.is_some() {
            return self.cpus();
        }
        let now = port
            .interface
            .rx_queues
            .iter()
            .flat_map(|queue| &queue.rps_cpus);
        CpuSet::union_of(now.map(|file| &file.cpus))
    }

    pub(crate) fn plan(
        &self,
        port: &PlacedPort<'_>,
        flow_queues: usize,
    ) -> (Vec<PlannedRxQueue>, Vec<Note>) {
        let entries = flow_entries(port.choice.get(&RFS)).filter(|_| !port.skip);
        let share = entries.map(|entries| flow_share(entries, flow_queues));
        let is_on = !self.cpus().is_empty();
        let plan = |(at, queue): (usize, &RxQueue)| {
            let set = self.sets.as_ref().map(|sets| &sets[at].cpus);
            let rps_cpus = set.filter(|_| queue.rps_cpus.is_some()).cloned();
            let cause = match (&rps_cpus, set) {
                (None, Some(_)) => &Cause::NoRpsCpus,
                (Some(cpus), _) if is_on && cpus.is_empty() => &Cause::FewIdleCores,
                _ => &self.cause,
            };
            PlannedRxQueue {
                queue: queue.index,
                rps_cpus,
                rps_flow_cnt: share.filter(|_| queue.rps_flow_cnt.is_some()),
                why: Why::because(cause.clone()),
            }
        };
        let plans = port
            .interface
            .rx_queues
            .iter()
            .enumerate()
            .map(plan)
            .collect();
        let cpus = self.removed.clone();
        let removed = (!cpus.is_empty()).then_some(Note::RpsFiltered { cpus });
        let has_no_table = entries > Some(0) && port.machine.flow_entries.is_none();
        let no_table = has_no_table.then_some(Note::NoFlowTable);
        (
            plans,
            chain(self.note.clone(), removed).chain(no_table).collect(),
        )
    }
}

/// Candidate CPUs of cores without a queue of any interface.
fn idle_cpus(port: &PlacedPort<'_>, loaded: &CpuSet) -> CpuSet {
    let loaded = port.machine.topology.whole_cores(loaded);
    port.candidates.nearest().difference(&loaded)
}

/// Why RPS stays off even where cores are idle: the device can have more receive queues, or RPS is not worth it.
fn why_off(
    port: &PlacedPort<'_>,
    ports: &[PlacedPort<'_>],
    idle: &CpuSet,
) -> Option<(Cause, Option<Note>)> {
    let interface = port.interface;
    let queues = interface.rx_queues.len();
    let off = |cause| Some((cause, None));
    if idle.is_empty() && queues > 1 {
        let rdma = ports.iter().any(|port| port.rdma_cpus().is_some());
        let limited = port.choice.get(&IRQ_CORES).is_some() || port.choice.get(&ONE_PER_L3);
        return off(Cause::EveryCoreTaken {
            limited,
            rdma,
            others: !port.machine.not_understood_cpus().is_empty(),
        });
    }
    if port.machine.topology.online.len() <= TINY {
        return off(Cause::TooSmall);
    }
    if interface.is_virtual_function() {
        return off(Cause::VirtualFunction);
    }
    match interface.channels {
        Some(channels) if channels.max_receiving() > channels.receiving() => {
            // Only if the interface's share of the cores takes more queues, and packets do not arrive on the virtual
            // function below a card of Hyper-V.
            let is_layer = port.machine.stacked(&interface.name).is_some();
            let advised = device::advised_channels(port)
                .filter(|&advised| advised > channels.receiving() && !is_layer);
            let note = advised.map(|advised| Note::MoreQueuesPossible {
                interface: interface.name.clone(),
                queues,
                cores: port.core_count(),
                channels,
                advised,
            });
            Some((Cause::MoreQueuesPossible, note))
        }
        None if !has_one_queue(port) && !interface.has_fact(Fact::FixedChannels) => {
            off(Cause::MostQueuesUnknown)
        }
        _ => None,
    }
}

/// RPS on cores without a queue of any interface; for a single queue also on others. `demands`: the interfaces that could
/// use idle cores, these cores and the queues.
fn steer(
    port: &PlacedPort<'_>,
    ports: &[PlacedPort<'_>],
    mut free: CpuSet,
    demands: &[(usize, CpuSet, usize)],
    crowd: &[usize],
) -> Rps {
    let (interface, locations) = (port.interface, port.locations);
    let topology = &port.machine.topology;
    let own = interface.rx_queues.len();
    // Of an interface that could use other idle cores, too, a part of the queues needs these.
    let others = demands.iter().filter(|(order, ..)| *order != port.order);
    let shares = others.map(|(_, idle, queues)| {
        (queues * idle.intersection(&free).len()).div_ceil(idle.len().max(1))
    });
    let queues = own + shares.sum::<usize>();
    let off = |cause| Rps {
        sets: Some(vec![RpsSet::default(); own]),
        ..Rps::unchanged(cause)
    };
    // A queue's packets go to at least two cores, and all packets to at least as many as they come from; those of a single
    // queue, which has nothing else, to the idle ones.
    let needed = if own == 1 { 2 } else { queues.max(2) };
    let cores_in = |cpus: &CpuSet| topology.cores_with(cpus).count();
    let mut cause = Cause::IdleCores;
    let others = free.difference(&topology.whole_cores(&CpuSet::single(0)));
    let has_choice = others != free && cores_in(&others) >= needed;
    if port.choice.get(&AVOID_CPU0) && has_choice {
        free = others;
        cause = Cause::IdleCoresWithoutCpu0;
    }
    let fast = fastest_cores(topology, &free, needed);
    if fast != free {
        free = fast;
        cause = Cause::IdleFastCores;
    }
    let unknown = cpus_of_unknown_queues(port, ports);
    let set = |queue: &RxQueue| {
        port.vector_of(Direction::Rx, queue.index)
            .and_then(|vector| port.target(vector))
            .or_else(|| Some(CpuSet::single(port.cpu_of(Direction::Rx, queue.index)?)))
            .unwrap_or_else(|| unknown.clone())
    };
    let interrupted = interface.rx_queues.iter().map(set);
    let cores = cores_in(&free);
    let sets: Vec<RpsSet> = if cores >= needed {
        let free = cpu_of_each_core(topology, &free);
        let is_slow = interface.supported_mbps.is_some_and(|mbps| mbps <= 1000);
        let most = if is_slow { MOST / 2 } else { MOST };
        interrupted
            .map(|on| RpsSet::near(locations, &free, &on, most))
            .collect()
    } else if own == 1 && !interface.is_down {
        cause = Cause::LeastLoadedCores;
        interrupted
            .map(|on| RpsSet::shared(port, port.candidates.nearest(), &on, crowd))
            .collect()
    } else {
        return off(Cause::IdleCoresForQueues { cores, queues });
    };
    if sets.iter().all(RpsSet::is_empty) {
        return off(Cause::FewOtherCores);
    }
    Rps {
        sets: Some(sets),
        ..Rps::unchanged(cause)
    }
}

/// Where a queue without a known IRQ may be served: by any IRQ without a known queue, or by one of the interface whose
/// IRQs this one shares.
fn cpus_of_unknown_queues(port: &PlacedPort<'_>, ports: &[PlacedPort<'_>]) -> CpuSet {
    let interface = port.interface;
    let own = interface
        .with_role(Role::Data)
        .map(|vector| port.cpus_of(vector));
    let owner = interface.shares_vectors_of.as_ref();
    let owner = ports
        .iter()
        .filter(|other| Some(&other.interface.name) == owner);
    let of_owner = owner.flat_map(|owner| {
        let vectors = owner.interface.active_vectors();
        vectors.map(|vector| owner.cpus_of(vector))
    });
    CpuSet::union_of(chain(own, of_owner)).union(&interface.unknown_vector_cpus)
}

/// The CPUs of the fastest kinds of cores that have enough cores; all if none has.
fn fastest_cores(topology: &Topology, cpus: &CpuSet, needed: usize) -> CpuSet {
    let mut taken = CpuSet::new();
    for class in &topology.speed_classes {
        taken.add(&class.intersection(cpus));
        if topology.cores_with(&taken).count() >= needed {
            return taken;
        }
    }
    cpus.clone()
}

fn cpu_of_each_core(topology: &Topology, cpus: &CpuSet) -> Vec<u32> {
    topology
        .cores
        .iter()
        .filter_map(|core| core.intersection(cpus).first())
        .collect()
}

/// Whether the device can have one receive queue only: its driver supports no other number (the kernel then refuses to
/// read `xps_cpus`, `netif_is_multiqueue`), it has one interrupt, as with `INTx`, or it is built into a board.
fn has_one_queue(port: &PlacedPort<'_>) -> bool {
    let (interface, device) = (port.interface, &port.interface.device);
    let is_single = || device.irqs.len() <= 1;
    let is_built_in = !is_pci_address(&device.address)
        && interface.vmbus.is_none()
        && device.controller.is_none();
    let sends_by_one =
        matches!(&interface.tx_queues[..], [tx] if tx.xps_cpus.is_none() || is_single());
    interface.rx_queues.len() == 1 && (is_built_in || sends_by_one)
}

impl RpsSet {
    fn is_empty(&self) -> bool {
        self.cpus.is_empty() && self.scope.is_empty()
    }

    /// Takes the least loaded candidate cores without the interrupted one; none if there is only one other.
    fn shared(
        port: &PlacedPort<'_>,
        candidates: &CpuSet,
        interrupted: &CpuSet,
        crowd: &[usize],
    ) -> Self {
        let topology = &port.machine.topology;
        let others = candidates.difference(&topology.whole_cores(interrupted));
        let avoids_cpu0 = port.choice.get(&AVOID_CPU0);
        let carries = |&cpu: &u32| {
            let place = port.locations.of(cpu).unwrap_or_default();
            let is_avoided = avoids_cpu0
                && port
                    .locations
                    .core_of(cpu)
                    .is_some_and(|core| core.contains(0));
            (place.class, crowd[place.core], is_avoided, cpu)
        };
        let cpus: CpuSet = cpu_of_each_core(topology, &others)
            .into_iter()
            .sorted_by_key(carries)
            .take(MOST_SHARED)
            .collect();
        let cpus = if cpus.len() < 2 { CpuSet::new() } else { cpus };
        Self {
            cpus,
            ..Self::default()
        }
    }

    /// Sets the scope to the free cores, a CPU of each, that are in an L3 domain of interrupted CPUs if there are at
    /// least two, else to those on the CPUs' nodes.
    fn near(locations: &Locations<'_>, free: &[u32], interrupted: &CpuSet, most: usize) -> Self {
        let own = interrupted
            .iter()
            .filter_map(|cpu| locations.of(cpu))
            .collect_vec();
        let within = |steps| {
            free.iter()
                .copied()
                .filter(|&cpu| {
                    locations.of(cpu).is_some_and(|there| {
                        own.is_empty() || own.iter().any(|own| own.steps(there) <= steps)
                    })
                })
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

/// Deals cores to receive queues: in turn to each the first core that the fewest queues have, two to each queue, and
/// then the cores that no queue has.
fn deal(locations: &Locations<'_>, sets: &mut [&mut RpsSet]) {
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
            let wish = |cpus: &&str| RpsSet::near(&locations, &free, &set(cpus), MOST);
            let mut sets: Vec<RpsSet> = interrupted.iter().map(wish).collect();
            deal(&locations, &mut sets.iter_mut().collect_vec());
            sets.iter().map(|set| set.cpus.to_string()).collect_vec()
        };
        // Within the L3 domain of node 1, a thread of each core; without two cores there, on the node.
        assert_eq!(rps("0-3,5-11,13-15", &["4"]), ["5-7"]);
        assert_eq!(rps("0,2-3,8,10-11", &["1"]), ["0,2-3"]);
        assert_eq!(rps("2-3,10-11", &["0", "1"]), ["2-3", "2-3"]);
        assert_eq!(rps("5-7", &["4", "12"]), ["5,7", "5-6"]);
        assert_eq!(rps("3,11", &["2"]), [""]);
        // The queue has no known IRQ.
        assert_eq!(rps("1,4-5", &[""]), ["1,4-5"]);
    }
}
