//! The rules by which queues are placed, as assertions on a machine and its plan.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use nicpin::cpuset::CpuSet;
use nicpin::machine::{Interface, Machine, Role};
use nicpin::plan::{NodeSource, Plan, PlannedInterface};

pub struct QueuesByCore<'a> {
    host: &'a Machine,
    plan: &'a Plan,
    /// By core: the interface (by number) and the CPU of each of its queues.
    queues: Vec<Vec<(usize, u32)>>,
    /// By core: the interfaces whose first queue is there.
    firsts: Vec<Vec<usize>>,
    /// By interface: the cores that have a candidate.
    candidates: Vec<Vec<usize>>,
    /// By core: 0 for the fastest kind.
    speeds: Vec<usize>,
}

impl<'a> QueuesByCore<'a> {
    pub fn new(host: &'a Machine, plan: &'a Plan) -> Self {
        let cores = &host.topology.cores;
        let core_of: BTreeMap<u32, usize> = cores
            .iter()
            .enumerate()
            .flat_map(|(at, core)| core.iter().map(move |cpu| (cpu, at)))
            .collect();
        let mut queues = vec![Vec::new(); cores.len()];
        let mut firsts = vec![Vec::new(); cores.len()];
        for (at, interface) in plan.interfaces.iter().enumerate() {
            for (number, cpu) in active(interface).into_values().enumerate() {
                queues[core_of[&cpu]].push((at, cpu));
                if number == 0 {
                    firsts[core_of[&cpu]].push(at);
                }
            }
        }
        let own = |interface: &PlannedInterface| {
            let mut own: Vec<usize> = interface
                .candidates
                .iter()
                .map(|cpu| core_of[&cpu])
                .collect();
            own.sort_unstable();
            own.dedup();
            own
        };
        let classes = &host.topology.speed_classes;
        let speed = |core: &CpuSet| {
            classes
                .iter()
                .position(|class| class.intersects(core))
                .unwrap_or(0)
        };
        Self {
            host,
            plan,
            queues,
            firsts,
            candidates: plan.interfaces.iter().map(own).collect(),
            speeds: cores.iter().map(speed).collect(),
        }
    }

    /// A core has its last queue from an interface whose candidates that are `better` than this core have as many
    /// queues, or would make a measure worse: the interface's queues on a core, or first queues on one.
    fn best_was_taken(&self, better: impl Fn(usize, usize) -> bool) -> Result<(), TestCaseError> {
        for (core, queues) in self
            .queues
            .iter()
            .enumerate()
            .filter(|(_, queues)| !queues.is_empty())
        {
            let full = |&(interface, _): &(usize, u32)| {
                let others = self.candidates[interface]
                    .iter()
                    .filter(|&&other| better(other, core) && self.may_move(interface, core, other));
                others
                    .into_iter()
                    .all(|&other| self.queues[other].len() >= queues.len())
            };
            prop_assert!(
                queues.iter().any(full),
                "core {}: {:?}",
                self.host.topology.cores[core],
                queues
            );
        }
        Ok(())
    }

    fn may_move(&self, interface: usize, from: usize, to: usize) -> bool {
        let own = |core: usize| {
            let queues = self.queues[core].iter();
            queues.filter(|(owner, _)| *owner == interface).count()
        };
        let most_own = (0..self.queues.len()).map(own).max();
        let is_first = own(from) == 1 && self.firsts[from].contains(&interface);
        let most_firsts = self.firsts.iter().map(Vec::len).max();
        Some(own(to)) < most_own && (!is_first || Some(self.firsts[to].len()) < most_firsts)
    }

    /// Rules 3 and 4: a core has a second queue only when one of its interfaces had no free candidate core left, and
    /// a third only when each of those had two.
    pub fn even(&self) -> Result<(), TestCaseError> {
        for queues in self.queues.iter().filter(|queues| queues.len() > 1) {
            let full = |&(interface, _): &(usize, u32)| {
                self.candidates[interface]
                    .iter()
                    .all(|&other| self.queues[other].len() + 1 >= queues.len())
            };
            prop_assert!(queues.iter().any(full), "{:?}", queues);
        }
        Ok(())
    }

    /// Rule 3: before the core of CPU 0 takes a queue, every candidate core that is as fast has as many.
    pub fn cpu0_is_last(&self) -> Result<(), TestCaseError> {
        let of_cpu0 = |core: usize| self.host.topology.cores[core].contains(0);
        self.best_was_taken(|other, core| {
            of_cpu0(core) && !of_cpu0(other) && self.speeds[other] <= self.speeds[core]
        })
    }

    /// Rule 3: fast cores before slow ones.
    pub fn fast_cores_are_first(&self) -> Result<(), TestCaseError> {
        self.best_was_taken(|other, core| self.speeds[other] < self.speeds[core])
    }

    /// Rule 3: the queues of a core are on its first thread, then on the next, and so on again.
    pub fn first_threads_are_first(&self) -> Result<(), TestCaseError> {
        for (core, queues) in self.host.topology.cores.iter().zip(&self.queues) {
            let Some(&(first, _)) = queues.first() else {
                continue;
            };
            let threads = core.intersection(&self.plan.interfaces[first].candidates);
            let on = |cpu: u32| queues.iter().filter(|&&(_, at)| at == cpu).count();
            let counts: Vec<usize> = threads.iter().map(on).collect();
            prop_assert_eq!(
                counts.iter().sum::<usize>(),
                queues.len(),
                "another thread of core {}",
                core
            );
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            prop_assert!(
                most - least <= 1 && counts.is_sorted_by(|a, b| a >= b),
                "core {}: {:?}",
                core,
                counts
            );
        }
        Ok(())
    }

    /// Rule 3, with one card: of two L3 domains with cores of one speed, neither has more queues for its size with one
    /// less, unless the cores of the other one are taken.
    pub fn spread_over_l3(&self) -> Result<(), TestCaseError> {
        let topology = &self.host.topology;
        for candidates in &self.candidates {
            let domains: Vec<Domain> = topology
                .l3_domains
                .iter()
                .filter_map(|domain| self.domain(domain, candidates))
                .collect();
            for (full, other) in domains
                .iter()
                .flat_map(|a| domains.iter().map(move |b| (a, b)))
            {
                let comparable =
                    full.speed == other.speed && full.node == other.node && full.queues > 0;
                if !comparable || other.least >= full.most {
                    continue;
                }
                // The planner counts in 1/4096 of a queue for each CPU.
                let (left, right) = ((full.queues - 1) * other.size, other.queues * full.size);
                prop_assert!(
                    left * 4096 <= right * 4096 + full.size * other.size,
                    "{:?} {:?}",
                    full,
                    other
                );
            }
        }
        Ok(())
    }

    /// Returns `None` if the candidate cores of the domain are of several speeds.
    fn domain(&self, cpus: &CpuSet, candidates: &[usize]) -> Option<Domain> {
        let topology = &self.host.topology;
        let cores: Vec<usize> = candidates
            .iter()
            .copied()
            .filter(|&core| topology.cores[core].intersects(cpus))
            .collect();
        let speed = self.speeds[*cores.first()?];
        let other = |core: &usize| !topology.cores[*core].contains(0);
        let least = cores
            .iter()
            .filter(|core| other(core))
            .map(|&core| self.queues[core].len())
            .min()?;
        cores
            .iter()
            .all(|&core| self.speeds[core] == speed)
            .then(|| Domain {
                speed,
                node: topology.node_of(cpus.first().unwrap()),
                size: cpus.len(),
                queues: cores.iter().map(|&core| self.queues[core].len()).sum(),
                most: cores
                    .iter()
                    .map(|&core| self.queues[core].len())
                    .max()
                    .unwrap(),
                least,
            })
    }
}

#[derive(Debug)]
struct Domain {
    speed: usize,
    node: Option<u32>,
    /// Number of CPUs.
    size: usize,
    queues: usize,
    /// Queues on the fullest candidate core, and on the emptiest but for that of CPU 0.
    most: usize,
    least: usize,
}

/// The CPU by queue, of active ones.
fn active(interface: &PlannedInterface) -> BTreeMap<u32, u32> {
    let active = interface
        .vectors
        .iter()
        .filter(|v| v.role != Role::Control && !v.idle);
    active
        .map(|v| {
            (
                v.queue.unwrap(),
                v.cpus.as_ref().and_then(CpuSet::first).unwrap(),
            )
        })
        .collect()
}

/// Rules 3 and 4, without L3 domains, which several cards fill together.
pub fn placed_by_the_rules(host: &Machine, plan: &Plan) -> Result<(), TestCaseError> {
    let placed = QueuesByCore::new(host, plan);
    placed.even()?;
    placed.cpu0_is_last()?;
    placed.fast_cores_are_first()?;
    placed.first_threads_are_first()
}

/// Rules 1 and 2.
pub fn usable_candidates_only(host: &Machine, plan: &Plan) -> Result<(), TestCaseError> {
    let isolated_or_exclusive = host.topology.isolated_or_nohz();
    for interface in &plan.interfaces {
        prop_assert!(
            interface.candidates.is_subset(&host.topology.online)
                && !interface.candidates.is_empty()
        );
        let overruled = interface
            .notes
            .iter()
            .any(|note| note.code() == "no-usable-cpu");
        prop_assert!(overruled || !interface.candidates.intersects(&isolated_or_exclusive));
        for vector in &interface.vectors {
            let cpus = vector.cpus.as_ref().unwrap();
            prop_assert!(cpus.len() == 1 && cpus.is_subset(&interface.candidates));
        }
        if let (Some(node), false) = (interface.node, overruled) {
            // Nodes that are equally near share the vectors.
            let tied = |&(&other, _): &(&u32, _)| {
                let from = host
                    .interface(&interface.name)
                    .unwrap()
                    .device
                    .node
                    .unwrap();
                host.topology.distance(from, other) == host.topology.distance(from, node)
            };
            let nodes = host.topology.nodes.iter();
            let near: CpuSet = match interface.node_source {
                NodeSource::Nearest => nodes
                    .filter(tied)
                    .flat_map(|(_, near)| near.cpus.iter())
                    .collect(),
                _ => host.topology.nodes[&node].cpus.clone(),
            };
            prop_assert!(interface.candidates.is_subset(&near));
        }
        prop_assert!(
            interface.node.is_some() || interface.notes.iter().any(|n| n.code() == "node-unknown")
        );
    }
    Ok(())
}

/// Rule 3: the receive and transmit vectors of a queue.
pub fn queues_stay_together(plan: &Plan) -> Result<(), TestCaseError> {
    for interface in &plan.interfaces {
        let mut cpus = BTreeMap::new();
        for vector in &interface.vectors {
            let cpu = cpus
                .entry(vector.queue)
                .or_insert_with(|| vector.cpus.clone());
            prop_assert_eq!(&*cpu, &vector.cpus);
        }
    }
    Ok(())
}

/// Rule 6: every online CPU sends on exactly one queue.
pub fn xps_is_a_partition(host: &Machine, plan: &Plan) -> Result<(), TestCaseError> {
    // With one CPU, XPS has nothing to divide.
    let interfaces = plan.interfaces.iter();
    let interfaces = interfaces.filter(|_| host.topology.possible > 1);
    for interface in interfaces.filter(|interface| interface.tx_queues.len() > 1) {
        let mut all = CpuSet::new();
        for cpus in interface
            .tx_queues
            .iter()
            .filter_map(|tx| tx.xps_cpus.as_ref())
        {
            prop_assert!(!all.intersects(cpus));
            all = all.union(cpus);
        }
        prop_assert_eq!(&all, &host.topology.online);
    }
    Ok(())
}

/// Rule 6: RPS divides free candidate cores among the receive queues of an interface that can have no more: two CPUs or
/// more each, no core with a queue of any interface, and that of CPU 0 only if the others are too few for the queues of
/// all such interfaces.
pub fn rps_to_free_cores(host: &Machine, plan: &Plan) -> Result<(), TestCaseError> {
    let mut taken = CpuSet::new();
    for cpu in plan
        .interfaces
        .iter()
        .flat_map(|interface| active(interface).into_values())
    {
        taken.add(
            host.topology
                .cores
                .iter()
                .find(|core| core.contains(cpu))
                .unwrap(),
        );
    }
    let core_of = |cpu| {
        host.topology
            .cores
            .iter()
            .position(|core| core.contains(cpu))
    };
    let on_cores = |cpus: &CpuSet| cpus.iter().map(core_of).collect::<BTreeSet<_>>();
    let is_limited = |interface: &Interface| match interface.channels {
        Some(channels) => channels.combined == channels.max_combined,
        None => interface.tx_queues.len() == 1 && interface.rx_queues.len() == 1,
    };
    let limited = host
        .interfaces
        .iter()
        .filter(|interface| is_limited(interface));
    let queues: usize = limited.map(|interface| interface.rx_queues.len()).sum();
    let mut sets: Vec<&CpuSet> = Vec::new();
    for (interface, planned) in host.interfaces.iter().zip(&plan.interfaces) {
        let mut all = CpuSet::new();
        let rps = planned
            .rx_queues
            .iter()
            .map(|rx| rx.rps_cpus.as_ref().unwrap());
        for cpus in rps.filter(|cpus| !cpus.is_empty()) {
            prop_assert!(cpus.is_subset(&planned.candidates), "{cpus}");
            // A single queue shares cores if too few are idle.
            if cpus.intersects(&taken) {
                let own = active(planned)
                    .into_values()
                    .filter_map(core_of)
                    .collect::<BTreeSet<_>>();
                prop_assert_eq!(planned.rx_queues.len(), 1);
                prop_assert!((2..=4).contains(&cpus.len()), "{cpus}");
                prop_assert!(
                    on_cores(cpus)
                        .iter()
                        .flatten()
                        .all(|core| !own.contains(core))
                );
                continue;
            }
            prop_assert!((2..=8).contains(&cpus.len()), "{cpus}");
            prop_assert_eq!(on_cores(cpus).len(), cpus.len());
            // CPUs are shared if nothing else is left for a queue.
            for other in sets.iter().filter(|other| other.intersects(cpus)) {
                prop_assert!(cpus.len() == 2 || other.len() == 2, "{cpus} {other}");
            }
            sets.push(cpus);
            all.add(cpus);
        }
        let may_steer = is_limited(interface) && interface.device.parent.is_none();
        prop_assert!(all.is_empty() || may_steer);
        if let Some(core0) = host
            .topology
            .cores
            .iter()
            .find(|core| core.intersects(&all) && core.contains(0))
        {
            let others = planned.candidates.difference(&taken).difference(core0);
            prop_assert!(
                on_cores(&others).len() < queues.max(2),
                "{others} without the core of CPU 0"
            );
        }
    }
    Ok(())
}
