//! Computes the measures of the planned and of other states, of the whole machine and of each interface.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;
use std::slice;

use itertools::Itertools as _;

use crate::cpuset::CpuSet;
use crate::kinds::SettingKind;
use crate::machine::netdev::Direction;
use crate::machine::{Machine, NapiThread, QueueId, Role, Vector};
use crate::plan::data::{Placement, PlannedInterface, PlannedThread, PlannedVector};
use crate::plan::objective::{LoadAtSpeed, Score, Weight, pairs, weights};
use crate::plan::place::Locations;
use crate::plan::ports::sharing;

/// Whether a setting of this kind, interface and number counts with its planned value instead of the current one.
type IsPlanned<'a> = &'a dyn Fn(SettingKind, &str, u32) -> bool;

/// A queue, or a busy-polling thread, on the CPU where it counts.
struct PlacedQueue<'a> {
    interface: &'a str,
    is_first: bool,
    cpu: u32,
    weight: Weight,
}

/// The measures of an interface over its own queues and their cores.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    pub(crate) score: Score,
    /// Online CPUs that have no transmit queue of their own, or several.
    pub(crate) shared_senders: usize,
    pub(crate) own_per_core: usize,
}

/// The score of the whole machine, if all settings of the plan have their planned value, or their current one.
pub(crate) fn score(machine: &Machine, interfaces: &[PlannedInterface], planned: bool) -> Score {
    let is_planned: IsPlanned<'_> = &|_, _, _| planned;
    let state = State::new(machine, interfaces, is_planned);
    state.standing(interfaces, None).score
}

/// The standing of each interface of a plan. Settings for which `is_planned` does not hold, and interfaces that are not
/// in the plan, count with their current value.
pub(crate) fn standings(
    machine: &Machine,
    interfaces: &[PlannedInterface],
    is_planned: IsPlanned<'_>,
) -> Vec<Standing> {
    let state = State::new(machine, interfaces, is_planned);
    interfaces
        .iter()
        .map(|interface| state.standing(slice::from_ref(interface), Some(&interface.name)))
        .collect()
}

struct State<'a> {
    machine: &'a Machine,
    interfaces: &'a [PlannedInterface],
    irqs: IrqPlaces<'a>,
    all_at_speed: Option<u64>,
    /// The queues in use on each core, by its index.
    cores: Vec<Vec<PlacedQueue<'a>>>,
}

/// The CPUs of IRQs, now or planned.
pub(crate) struct IrqPlaces<'a> {
    locations: Locations<'a>,
    planned: HashMap<u32, (&'a CpuSet, Option<&'a Placement>)>,
    is_planned: IsPlanned<'a>,
}

impl<'a> State<'a> {
    fn new(
        machine: &'a Machine,
        interfaces: &'a [PlannedInterface],
        is_planned: IsPlanned<'a>,
    ) -> Self {
        let weights = weights(machine);
        let irqs = IrqPlaces::new(machine, interfaces, is_planned);
        Self {
            machine,
            interfaces,
            all_at_speed: all_at_speed(machine, &weights),
            cores: queues_by_core(machine, interfaces, &irqs, weights),
            irqs,
        }
    }

    fn standing(&self, interfaces: &[PlannedInterface], only: Option<&str>) -> Standing {
        let (mut score, mut shared_senders) = (Score::default(), 0);
        let (mut local, mut known) = (0, 0);
        let mut rdma_on = BTreeMap::<usize, usize>::new();
        let topology = &self.machine.topology;
        let near = |node: Option<u32>| node.map(|node| topology.cpus_near(node));
        for interface in interfaces {
            let (far, shared) = self.senders(interface).unwrap_or_default();
            score.far_senders += far;
            shared_senders += shared;
            let isolated = topology.isolated_or_nohz().union(&interface.exclusive);
            let near_interface = interface.local_cpus(self.machine);
            for vector in interface.vectors.iter().filter(|vector| !vector.idle) {
                let (cpus, counted_for) = self.irqs.place(vector);
                // The affinity may hold all CPUs if it does not decide, or the kernel does not report the effective
                // CPU.
                let is_vague = vector.role == Role::Control || vector.reported().is_none();
                score.on_isolated += usize::from(if is_vague {
                    !cpus.is_empty() && cpus.is_subset(&isolated)
                } else {
                    cpus.intersects(&isolated)
                });
                let is_known = counted_for.is_some() || vector.reported().is_some();
                // If only some of the CPUs are, the IRQ may be on these.
                let is_within = |allowed: &CpuSet| {
                    let is_within = cpus.is_subset(allowed);
                    (is_within || is_known || !cpus.intersects(allowed)).then_some(is_within)
                };
                let near = near(vector.node);
                let is_local = near.as_ref().or(near_interface.as_ref());
                let is_local = is_local.and_then(is_within);
                let is_remote = vector.role != Role::Control && is_local == Some(false);
                score.remote += usize::from(is_remote);
                match vector.role {
                    Role::Control => {}
                    Role::Rdma => {
                        let rdma = score.rdma.get_or_insert_default();
                        rdma.vectors += 1;
                        rdma.local += usize::from(is_local == Some(true));
                        if let Some(place) = counted_for.and_then(|cpu| self.irqs.locations.of(cpu))
                        {
                            let on_core = rdma_on.entry(place.core).or_default();
                            *on_core += 1;
                            rdma.max_per_core = rdma.max_per_core.max(*on_core);
                        }
                    }
                    _ => {
                        let own = vector.candidates.as_ref().unwrap_or(&interface.candidates);
                        score.outside += usize::from(is_within(own) == Some(false));
                        known += u32::from(is_local.is_some());
                        local += u32::from(is_local == Some(true));
                    }
                }
            }
        }
        score.local = (known > 0).then(|| f64::from(local) / f64::from(known));
        self.on_cores(only, &mut score);
        let mut own_per_core = 0;
        for interface in interfaces {
            let is_own = |queue: &&PlacedQueue<'_>| queue.interface == interface.name;
            let own = self
                .cores
                .iter()
                .map(|core| core.iter().filter(is_own).count());
            let even = own
                .clone()
                .sum::<usize>()
                .div_ceil(interface.candidate_cores.max(1));
            let most = own.max().unwrap_or(0);
            score.above_even_cores += most.saturating_sub(even);
            own_per_core = own_per_core.max(most);
        }
        Standing {
            score,
            shared_senders,
            own_per_core,
        }
    }

    /// Adds the measures of cores; with `only`, those over that interface's queues.
    fn on_cores(&self, only: Option<&str>, score: &mut Score) {
        let mut at_speed = self.all_at_speed.map(|all_kbps| LoadAtSpeed {
            busiest_kbps: 0,
            all_kbps,
        });
        let interfaces = self
            .interfaces
            .iter()
            .filter(|interface| interface.vectors.iter().any(PlannedVector::is_active));
        let candidates = CpuSet::union_of(interfaces.map(|interface| &interface.candidates));
        for (core, queues) in self.cores.iter().enumerate() {
            let is_own = |queue: &&PlacedQueue<'_>| only.is_none_or(|only| queue.interface == only);
            let own = queues.iter().filter(is_own).count();
            if own == 0 {
                continue;
            }
            let firsts = queues.iter().filter(|queue| queue.is_first);
            let has_own_first = firsts.clone().any(|queue| is_own(&queue));
            let firsts = firsts.map(|queue| queue.interface).unique().count();
            let load = queues.iter().map(|queue| queue.weight.planned).sum();
            let load_at_speed = queues
                .iter()
                .map(|queue| queue.weight.at_speed)
                .sum::<Option<u64>>();
            for (load, core) in at_speed.iter_mut().zip(load_at_speed) {
                load.busiest_kbps = load.busiest_kbps.max(core);
            }
            score.max_vectors_per_core = score.max_vectors_per_core.max(queues.len());
            score.max_load_kbps = score.max_load_kbps.max(load);
            score.pairs_on_cores += pairs(queues.len()) - pairs(queues.len() - own);
            if has_own_first {
                score.max_first_queues_per_core = score.max_first_queues_per_core.max(firsts);
            }
            let core = self.machine.topology.cores.get(core);
            let threads = core.map_or(1, |core| core.intersection(&candidates).len());
            let share = queues.len().div_ceil(threads.max(1));
            let above = queues
                .iter()
                .map(|queue| queue.cpu)
                .sorted_unstable()
                .dedup_with_count()
                .map(|(on_cpu, _)| on_cpu.saturating_sub(share));
            score.above_even_threads += above.sum::<usize>();
        }
        score.at_speed = at_speed;
    }

    /// Counts online CPUs whose transmit queue completes on a farther node than another would, and those that have no
    /// queue of their own, or several of a traffic class, or share one while another has no CPU. A class with one queue
    /// does not count: all CPUs send on it, whatever its mask.
    fn senders(&self, interface: &PlannedInterface) -> Option<(usize, usize)> {
        let topology = &self.machine.topology;
        let read = self.machine.interface(&interface.name)?;
        let senders = interface
            .vectors
            .iter()
            .filter(|vector| vector.role.serves(Direction::Tx) && !vector.idle)
            .collect_vec();
        let node = |queue: u32| {
            let vector = senders
                .iter()
                .find(|vector| vector.queue == Some(queue))
                .or_else(|| sharing(&senders, queue, |vector| vector.queue))?;
            self.irqs.locations.of(self.irqs.place(vector).1?)?.node
        };
        let mut classes: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for (wanted, read) in interface.tx_queues.iter().zip(&read.tx_queues) {
            let is_planned =
                || (self.irqs.is_planned)(SettingKind::Xps, &interface.name, wanted.queue);
            let to = wanted.xps_cpus.as_ref().filter(|_| is_planned());
            if let Some(cpus) = to.or_else(|| read.xps_cpus.as_ref().map(|file| &file.cpus)) {
                let queue = (node(wanted.queue), cpus);
                classes.entry(&read.class).or_default().push(queue);
            }
        }
        let [mut shared, mut far] = <[CpuSet; 2]>::default();
        let mut crowded = 0;
        for queues in classes.values().filter(|queues| queues.len() > 1) {
            let mut given = CpuSet::new();
            let (mut unused, mut beside) = (0, 0);
            for (_, cpus) in queues {
                shared.add(&given.intersection(cpus));
                given.add(cpus);
                match cpus.len() {
                    0 => unused += 1,
                    cpus => beside += cpus - 1,
                }
            }
            crowded += beside.min(unused);
            shared.add(&topology.online.difference(&given));
            let nodes: Option<BTreeSet<u32>> = queues.iter().map(|(node, _)| *node).collect();
            let nodes = nodes.filter(|nodes| nodes.len() > 1).unwrap_or_default();
            for (&id, node) in &topology.nodes {
                let Some(nearest) = nodes.iter().map(|&to| topology.distance(id, to)).min() else {
                    break;
                };
                for &(to, cpus) in queues {
                    if to.is_some_and(|to| topology.distance(id, to) > nearest) {
                        // A CPU without a queue sends on any queue.
                        let without = node.cpus.difference(&given);
                        far.add(&node.cpus.intersection(cpus).union(&without));
                    }
                }
            }
        }
        Some((far.len(), shared.len() + crowded))
    }
}

impl<'a> IrqPlaces<'a> {
    pub(crate) fn new(
        machine: &'a Machine,
        interfaces: &'a [PlannedInterface],
        is_planned: IsPlanned<'a>,
    ) -> Self {
        let vectors = interfaces.iter().flat_map(|interface| &interface.vectors);
        let planned = vectors.filter_map(|vector| {
            let cpus = vector.cpus.as_ref()?;
            Some((vector.irq, (cpus, vector.placement.as_ref())))
        });
        Self {
            locations: Locations::new(&machine.topology),
            planned: planned.collect(),
            is_planned,
        }
    }

    pub(crate) fn place_now<'v>(&self, vector: &'v Vector) -> (Cow<'v, CpuSet>, Option<u32>)
    where
        'a: 'v,
    {
        let now = vector.effective_cpus(&self.locations.topology.online);
        self.place_of_irq(vector.irq, now, vector.effective.as_ref())
    }

    /// The CPUs of a vector, and the CPU on which its queue counts.
    fn place<'v>(&self, vector: &'v PlannedVector) -> (Cow<'v, CpuSet>, Option<u32>)
    where
        'a: 'v,
    {
        let now = vector.effective_cpus(&self.locations.topology.online);
        self.place_of_irq(vector.irq, now, vector.effective.as_ref())
    }

    /// An IRQ shared by interfaces is planned for one of them, and moves for all, also for those that are not in the
    /// plan.
    fn place_of_irq<'v>(
        &self,
        irq: u32,
        now: Cow<'v, CpuSet>,
        effective: Option<&CpuSet>,
    ) -> (Cow<'v, CpuSet>, Option<u32>)
    where
        'a: 'v,
    {
        let is_planned = (self.is_planned)(SettingKind::Vector, "", irq);
        let planned = is_planned.then(|| self.planned.get(&irq)).flatten();
        let Some(&(cpus, placement)) = planned else {
            // With several CPUs in an affinity, the actual CPU is unknown.
            let on = effective.and_then(CpuSet::first);
            let on = on.filter(|&cpu| now.contains(cpu)).or_else(|| now.only());
            return (now, on);
        };
        // The kernel distributes vectors over the CPUs of a group.
        let counted = placement
            .map(|placement| placement.cpu)
            .filter(|&cpu| cpus.contains(cpu));
        (Cow::Borrowed(cpus), counted.or(cpus.first()))
    }
}

/// The queues in use by core: of the plan's interfaces, and of others in their current state.
fn queues_by_core<'a>(
    machine: &'a Machine,
    interfaces: &[PlannedInterface],
    irqs: &IrqPlaces<'_>,
    weights: Vec<Weight>,
) -> Vec<Vec<PlacedQueue<'a>>> {
    let mut cores = Vec::new();
    cores.resize_with(irqs.locations.cores, Vec::new);
    for (read, weight) in machine.interfaces.iter().zip(weights) {
        let planned = interfaces
            .iter()
            .find(|interface| interface.name == read.name);
        let queues = read.active_vectors().map(|vector| {
            let (_, on) = irqs.place_now(vector);
            (vector.queue_id(), on)
        });
        // Its rx and tx may be on two threads of a core.
        let core = |cpu: Option<u32>| irqs.locations.of(cpu?).map(|place| place.core);
        let queues = queues
            .sorted_unstable()
            .dedup_by(|(a, on), (b, at)| a == b && core(*on) == core(*at))
            .map(|(queue, cpu)| (queue == Some(QueueId::Number(0)), cpu));
        // Each busy-polling thread that keeps its CPU counts as a queue.
        let stays = |thread: &&NapiThread| {
            let is_moved = |to: &PlannedThread| to.pid == thread.pid && to.cpus.is_some();
            let mut threads = planned.iter().flat_map(|interface| &interface.threads);
            thread.busy_polls && !threads.any(is_moved)
        };
        let polling = read
            .threads
            .iter()
            .filter(stays)
            .map(|thread| (false, thread.affinity.cpus.only()));
        for (is_first, cpu) in queues.chain(polling) {
            let place = cpu.and_then(|cpu| irqs.locations.of(cpu));
            if let (Some(cpu), Some(place)) = (cpu, place) {
                cores[place.core].push(PlacedQueue {
                    interface: &read.name,
                    is_first,
                    cpu,
                    weight,
                });
            }
        }
    }
    cores
}

/// The total load of the ports in use at their speeds, in kbit/s; `None` if no port is in use, or a speed is unknown.
fn all_at_speed(machine: &Machine, weights: &[Weight]) -> Option<u64> {
    let all = machine
        .interfaces
        .iter()
        .zip(weights)
        .map(|(interface, weight)| (interface.queues_when_up() as u64, weight))
        .filter(|(queues, _)| *queues > 0)
        .map(|(queues, weight)| Some(queues * weight.at_speed?))
        .sum::<Option<u64>>()?;
    (all > 0).then_some(all)
}
