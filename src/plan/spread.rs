//! Finds the arrangement of queues on cores that is best by the objective; the order of the cores decides between equal
//! ones.
//!
//! Each queue goes to the least loaded candidate core that is not full; if all are full, queues move along a chain of
//! cores, or cores may take one more. Exchanges then lower the load of the busiest core, and the pairs of queues that
//! share a core.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::mem::take;

use itertools::Itertools as _;

use crate::cpuset::CpuSet;
use crate::plan::objective::Score;
use crate::plan::place::{CpuLocation, Locations};
use crate::policy::{AVOID_CPU0, Choice, PACK_L3};

mod arrange;
mod deal;

const UNLIMITED: usize = u32::MAX as usize;

/// Candidate CPUs common to some queues.
struct CandidateSet {
    cpus: CpuSet,
    /// Tiers of increasing distance; empty unless the policy widens.
    tiers: Vec<CpuSet>,
    avoid_cpu0: bool,
    packs: bool,
    cores: Vec<usize>,
    /// Near cores first, then fast ones; cores with IRQs that are not understood late, that of CPU 0 last.
    ranks: Vec<(usize, (usize, bool, bool))>,
}

pub(crate) struct Queue {
    pub(crate) id: usize,
    pub(crate) port: usize,
    pub(crate) is_first: bool,
    pub(crate) set: usize,
    pub(crate) weight: u64,
    pub(crate) irqs: usize,
    pub(crate) core: Option<usize>,
}

impl Queue {
    /// Queues with the same key can be exchanged without effect.
    fn exchange_key(&self) -> (usize, u64, usize) {
        (self.set, self.weight, self.irqs)
    }
}

#[derive(Default)]
struct Core {
    place: CpuLocation,
    cpus: Vec<u32>,
    queues: usize,
    load: u64,
    /// IRQs of movable queues, and their maximum.
    irqs: usize,
    room: usize,
    has_others: bool,
    /// First queues of interfaces that cannot leave the core.
    firsts: usize,
    movable: Vec<usize>,
    sets: Vec<usize>,
}

impl Core {
    fn takes(&self, gained: usize, lost: usize) -> bool {
        self.irqs + gained <= self.room.saturating_add(lost)
    }
}

pub(crate) struct Spread<'a> {
    locations: &'a Locations<'a>,
    apart: CpuSet,
    /// The cores, by their first CPU; empty at other CPUs.
    cores: Vec<Core>,
    sets: Vec<CandidateSet>,
    queues: Vec<Queue>,
    in_domain: Vec<usize>,
    /// The queues of each interface on each core, and the maximum of them for a core.
    per_core: Vec<Vec<usize>>,
    max_per_core: Vec<usize>,
    pub(crate) room: Vec<usize>,
    pub(crate) on_cpu: Vec<usize>,
    /// The core of CPU 0, if it is used last.
    last: Option<usize>,
}

impl<'a> Spread<'a> {
    /// `ports`: the number of interfaces. `apart`: CPUs each of which counts as a core. `others`: CPUs with IRQs that
    /// are not understood.
    pub(crate) fn new(
        locations: &'a Locations<'a>,
        ports: usize,
        apart: CpuSet,
        others: &CpuSet,
    ) -> Self {
        let end = locations.by_cpu.len();
        let mut spread = Self {
            locations,
            apart,
            cores: Vec::new(),
            sets: Vec::new(),
            queues: Vec::new(),
            in_domain: vec![0; locations.domain_sizes.len()],
            per_core: vec![vec![0; end]; ports],
            max_per_core: vec![0; ports],
            room: vec![UNLIMITED; end],
            on_cpu: vec![0; end],
            last: None,
        };
        spread.cores.resize_with(end, Core::default);
        for cpu in locations.topology.online.iter() {
            if let (Some(core), Some(place)) = (spread.core(cpu), locations.of(cpu)) {
                spread.cores[core].cpus.push(cpu);
                spread.cores[core].has_others |= others.contains(cpu);
                spread.cores[core].place = place;
            }
        }
        spread
    }

    fn core(&self, cpu: u32) -> Option<usize> {
        self.locations.of(cpu)?;
        let core = self
            .locations
            .core_of(cpu)
            .filter(|_| !self.apart.contains(cpu));
        Some(core.and_then(CpuSet::first).unwrap_or(cpu) as usize)
    }

    /// Returns the index of a set of candidates; adds it if it is new.
    pub(crate) fn set(&mut self, cpus: &CpuSet, tiers: &[CpuSet], choice: &Choice) -> usize {
        let (avoid_cpu0, packs) = (choice.get(&AVOID_CPU0), choice.get(&PACK_L3));
        if let Some(known) = self.sets.iter().position(|set| {
            set.cpus == *cpus
                && set.tiers == tiers
                && (set.avoid_cpu0, set.packs) == (avoid_cpu0, packs)
        }) {
            return known;
        }
        let cores = cpus
            .iter()
            .filter_map(|cpu| self.core(cpu))
            .sorted_unstable()
            .dedup()
            .collect_vec();
        let mut ranks = Vec::new();
        let with_cpu0 = self
            .locations
            .core_of(0)
            .cloned()
            .unwrap_or_else(|| CpuSet::single(0));
        for &core in &cores {
            let core = &mut self.cores[core];
            core.sets.push(self.sets.len());
            let tier = tiers
                .iter()
                .position(|tier| core.cpus.iter().any(|&cpu| tier.contains(cpu)))
                .unwrap_or(0);
            let is_last = avoid_cpu0 && core.cpus.iter().any(|&cpu| with_cpu0.contains(cpu));
            ranks.push((tier, (core.place.class, core.has_others, is_last)));
        }
        if avoid_cpu0 {
            self.last = self.core(0);
        }
        self.sets.push(CandidateSet {
            cpus: cpus.clone(),
            tiers: tiers.to_vec(),
            avoid_cpu0,
            packs,
            cores,
            ranks,
        });
        self.sets.len() - 1
    }

    pub(crate) fn has(&self, set: usize, cpu: u32) -> bool {
        self.sets[set].cpus.contains(cpu)
    }

    pub(crate) fn reserve(&mut self, cpu: u32, irqs: usize) -> bool {
        let room = &mut self.room[cpu as usize];
        let left = room.checked_sub(irqs);
        *room = left.unwrap_or(*room);
        left.is_some()
    }

    /// The sets whose CPUs have no room for all IRQs that must be on them. `confined`: sets, each with a number of such
    /// IRQs.
    pub(crate) fn full(&self, confined: impl Iterator<Item = (usize, usize)>) -> BTreeSet<usize> {
        let mut irqs = vec![0; self.sets.len()];
        for (set, more) in confined {
            irqs[set] += more;
        }
        let mut full = BTreeSet::new();
        for set in &self.sets {
            let within = self
                .sets
                .iter()
                .positions(|other| other.cpus.is_subset(&set.cpus))
                .collect_vec();
            let room: usize = set.cpus.iter().map(|cpu| self.room[cpu as usize]).sum();
            if within.iter().map(|&other| irqs[other]).sum::<usize>() > room {
                full.extend(within);
            }
        }
        full
    }

    pub(crate) fn add(&mut self, cpu: u32, port: usize, weight: u64, is_first: bool) {
        if let Some(core) = self.core(cpu) {
            self.count(core, weight);
            self.per_core[port][core] += 1;
            self.on_cpu[cpu as usize] += 1;
            self.cores[core].firsts += usize::from(is_first);
        }
    }

    /// Whether no measure of a core gets above that of `most`.
    pub(crate) fn takes_one_more(
        &self,
        cpu: u32,
        weight: u64,
        is_first: bool,
        most: &Score,
    ) -> bool {
        self.core(cpu).is_some_and(|core| {
            let core = &self.cores[core];
            let (threads, queues) = (core.cpus.len().max(1), most.max_vectors_per_core);
            core.queues < queues
                && core.load + weight <= most.max_load_kbps
                && (!is_first || core.firsts < most.max_first_queues_per_core)
                && self.on_cpu[cpu as usize] < queues.div_ceil(threads)
        })
    }

    fn count(&mut self, core: usize, weight: u64) {
        let core = &mut self.cores[core];
        core.queues += 1;
        core.load += weight;
        self.in_domain[core.place.domain] += 1;
    }

    fn move_to(&mut self, queue: usize, to: Option<usize>) {
        let Queue {
            port,
            weight,
            irqs,
            core: from,
            ..
        } = self.queues[queue];
        if from == to {
            return;
        }
        self.queues[queue].core = to;
        if let Some(from) = from {
            let core = &mut self.cores[from];
            core.movable.retain(|&other| other != queue);
            core.queues -= 1;
            core.load -= weight;
            core.irqs -= irqs;
            self.per_core[port][from] -= 1;
            self.in_domain[core.place.domain] -= 1;
        }
        if let Some(to) = to {
            self.count(to, weight);
            self.per_core[port][to] += 1;
            self.cores[to].irqs += irqs;
            self.cores[to].movable.push(queue);
        }
    }

    /// Counts the queues on all threads of a core, if each thread counts as a core.
    fn beside(&self, core: usize) -> usize {
        self.locations
            .topology
            .cores
            .get(self.cores[core].place.core)
            .into_iter()
            .flat_map(CpuSet::iter)
            .filter_map(|cpu| self.cores.get(cpu as usize))
            .map(|thread| thread.queues)
            .sum()
    }

    /// The least loaded core of a set with fewer than `most` queues and room for `irqs`. Of equal ones: the nearest, a
    /// thread of a free core before a sibling of a taken one, the first by rank, then one in the L3 domain with the
    /// fewest queues for its size, or with the most if the set packs them.
    fn first(
        &self,
        set: usize,
        most: usize,
        irqs: usize,
        load: impl Fn(&Core) -> (u64, usize),
    ) -> Option<usize> {
        let (set, is_apart) = (&self.sets[set], !self.apart.is_empty());
        let (mut least, mut best) = ((u64::MAX, usize::MAX), None);
        for (&core, &(tier, rank)) in set.cores.iter().zip(&set.ranks) {
            let on = &self.cores[core];
            let load = load(on);
            if load > least || on.queues >= most || !on.takes(irqs, 0) {
                continue;
            }
            let domain = on.place.domain;
            let queues = self.in_domain[domain];
            let density = if set.packs {
                usize::MAX - queues
            } else {
                queues * 4096 / self.locations.domain_sizes[domain].max(1)
            };
            let beside = if is_apart { self.beside(core) } else { 0 };
            least = load;
            let this = (load, tier, beside, rank, density, core);
            best = Some(best.map_or(this, |other| this.min(other)));
        }
        best.map(|(.., core)| core)
    }

    /// Places one more queue, without weight, on a core with the fewest, and returns its CPU.
    pub(crate) fn take(&mut self, set: usize, irqs: usize) -> Option<u32> {
        let core = self.first(set, usize::MAX, irqs, |core| (0, core.queues))?;
        self.count(core, 0);
        self.cores[core].irqs += irqs;
        self.thread(set, core, irqs)
    }

    /// The CPU of a core with the fewest queues and room for `irqs`; counts the queue there.
    fn thread(&mut self, set: usize, core: usize, irqs: usize) -> Option<u32> {
        let cpu = self.cores[core]
            .cpus
            .iter()
            .copied()
            .filter(|&cpu| self.sets[set].cpus.contains(cpu) && self.room[cpu as usize] >= irqs)
            .min_by_key(|&cpu| self.on_cpu[cpu as usize])?;
        self.on_cpu[cpu as usize] += 1;
        self.room[cpu as usize] -= irqs;
        Some(cpu)
    }

    /// Returns id and CPU of each queue for whose IRQs some candidate has room.
    pub(crate) fn place(&mut self, mut queues: Vec<Queue>) -> Vec<(usize, u32)> {
        queues.retain(|queue| !self.sets[queue.set].cores.is_empty());
        // An interface with few queues chooses cores before one with many.
        let mut of_port = vec![0; self.per_core.len()];
        for queue in &queues {
            of_port[queue.port] += 1;
        }
        queues.sort_by_key(|queue| {
            let alike = (Reverse(queue.weight), queue.set, queue.irqs);
            (alike, of_port[queue.port], queue.port)
        });
        let candidates = CpuSet::union_of(self.sets.iter().map(|set| &set.cpus));
        for core in &mut self.cores {
            core.room = core
                .cpus
                .iter()
                .filter(|cpu| candidates.contains(**cpu))
                .map(|&cpu| self.room[cpu as usize])
                .sum();
        }
        self.queues = queues;
        self.arrange();
        self.deal();
        let mut queues = take(&mut self.queues);
        queues.sort_unstable_by_key(|queue| queue.id);
        queues
            .into_iter()
            .filter_map(|queue| {
                let cpu = self.thread(queue.set, queue.core?, queue.irqs)?;
                Some((queue.id, cpu))
            })
            .collect()
    }
}
