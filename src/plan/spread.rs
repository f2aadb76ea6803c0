//! The arrangement of queues on cores that the objective finds best; the order of the cores decides where it finds several
//! equal.
//!
//! Each queue goes to the least loaded core of its candidates that is not full; where all are, queues move on along a
//! chain of cores, or every core may take one more. Exchanges between two cores then lower the load of the busiest one,
//! and the pairs of queues that share a core.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::{replace, take};

use itertools::Itertools as _;

use crate::cpuset::CpuSet;
use crate::plan::place::{CpuLocation, Locations};
use crate::policy::{AVOID_CPU0, Choice, PACK_L3};

mod arrange;

/// The room of a CPU that can take all IRQs of any machine.
const UNLIMITED: usize = u32::MAX as usize;

/// Candidate CPUs that some queues have in common.
struct Set {
    cpus: CpuSet,
    /// The same by increasing distance, where the policy widens; else empty.
    tiers: Vec<CpuSet>,
    avoid_cpu0: bool,
    /// Whether it fills one L3 domain before it begins another.
    packs: bool,
    cores: Vec<usize>,
    /// Of each core: near ones come first, then fast ones, those with IRQs that are not understood late, that of CPU 0 last.
    ranks: Vec<(usize, (usize, bool, bool))>,
}

/// A queue that can be moved.
pub(crate) struct Queue {
    /// The caller's number for it.
    pub(crate) id: usize,
    /// The place of its interface among those that take part.
    pub(crate) work: usize,
    /// Whether it is the interface's queue 0.
    pub(crate) is_first: bool,
    /// A number from [`Spread::set`].
    pub(crate) set: usize,
    pub(crate) weight: u64,
    /// The number of its IRQs.
    pub(crate) irqs: usize,
    /// Where it is.
    pub(crate) core: Option<usize>,
}

impl Queue {
    /// Whether they can change places.
    fn is_alike(&self, other: &Self) -> bool {
        (self.weight, self.set, self.irqs) == (other.weight, other.set, other.irqs)
    }
}

/// Moves a first queue to a core, in exchange for a queue there that is none.
fn move_first(queues: &mut [Queue], first: usize, core: usize) {
    if queues[first].core == Some(core) {
        return;
    }
    let is_there = |other: &Queue| {
        other.core == Some(core) && !other.is_first && other.is_alike(&queues[first])
    };
    if let Some(there) = queues.iter().position(is_there) {
        queues[there].core = queues[first].core.replace(core);
    }
}

fn cores(queues: &[Queue]) -> Vec<usize> {
    queues.iter().filter_map(|queue| queue.core).collect()
}

/// What is on a core, or on a thread where each counts as a core.
#[derive(Default)]
struct Core {
    place: CpuLocation,
    cpus: Vec<u32>,
    queues: usize,
    load: u64,
    /// IRQs of queues that can be moved, and how many it can take.
    irqs: usize,
    room: usize,
    /// Whether IRQs are on it that are not understood.
    has_others: bool,
    /// First queues of interfaces that stay on it.
    firsts: usize,
    /// Those of the queues that can be moved.
    movable: Vec<usize>,
    /// The sets that have it.
    sets: Vec<usize>,
}

/// The queues on each core, and those that are arranged.
pub(crate) struct Spread<'a> {
    locations: &'a Locations<'a>,
    /// The CPUs each of which counts as a core.
    apart: CpuSet,
    /// By the first CPU of each core; empty at other CPUs.
    cores: Vec<Core>,
    sets: Vec<Set>,
    queues: Vec<Queue>,
    /// The most IRQs of one of them.
    most_irqs: usize,
    in_domain: Vec<usize>,
    /// IRQs that each CPU can still take, by its number.
    pub(crate) room: Vec<usize>,
    /// Queues on each CPU, by its number.
    pub(crate) on_cpu: Vec<usize>,
    /// The core of CPU 0, where it is used last.
    last: Option<usize>,
}

impl<'a> Spread<'a> {
    /// `apart`: the CPUs each of which counts as a core. `others`: those of IRQs that are not understood.
    pub(crate) fn new(locations: &'a Locations<'a>, apart: CpuSet, others: &CpuSet) -> Self {
        let end = locations.by_cpu.len();
        let mut spread = Self {
            locations,
            apart,
            cores: Vec::new(),
            sets: Vec::new(),
            queues: Vec::new(),
            most_irqs: 0,
            in_domain: vec![0; locations.domain_sizes.len()],
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

    /// The number of a set of candidates.
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
        let with_cpu0 = self.locations.core_of(0).cloned();
        let with_cpu0 = with_cpu0.unwrap_or_else(|| CpuSet::single(0));
        for &core in &cores {
            let core = &mut self.cores[core];
            core.sets.push(self.sets.len());
            let has = |tier: &CpuSet| core.cpus.iter().any(|&cpu| tier.contains(cpu));
            let tier = tiers.iter().position(has).unwrap_or(0);
            let is_last = avoid_cpu0 && core.cpus.iter().any(|&cpu| with_cpu0.contains(cpu));
            ranks.push((tier, (core.place.class, core.has_others, is_last)));
        }
        if avoid_cpu0 {
            self.last = self.core(0);
        }
        self.sets.push(Set {
            cpus: cpus.clone(),
            tiers: tiers.to_vec(),
            avoid_cpu0,
            packs,
            cores,
            ranks,
        });
        self.sets.len() - 1
    }

    /// Whether a set has a CPU.
    pub(crate) fn has(&self, set: usize, cpu: u32) -> bool {
        self.sets[set].cpus.contains(cpu)
    }

    /// The sets whose CPUs have no room for all IRQs that must be there. `irqs`: those of a set alone.
    pub(crate) fn full(
        &self,
        room: &BTreeMap<u32, usize>,
        irqs: impl Fn(usize) -> usize,
    ) -> BTreeSet<usize> {
        let irqs = (0..self.sets.len()).map(irqs).collect_vec();
        let mut full = BTreeSet::new();
        for set in &self.sets {
            let within = self
                .sets
                .iter()
                .positions(|of| of.cpus.is_subset(&set.cpus));
            let within = within.collect_vec();
            let has: usize = set.cpus.iter().filter_map(|cpu| room.get(&cpu)).sum();
            if within.iter().map(|&of| irqs[of]).sum::<usize>() > has {
                full.extend(within);
            }
        }
        full
    }

    /// Counts a queue that stays on a CPU.
    pub(crate) fn add(&mut self, cpu: u32, weight: u64, is_first: bool) {
        if let Some(core) = self.core(cpu) {
            self.count(core, weight);
            self.on_cpu[cpu as usize] += 1;
            self.cores[core].firsts += usize::from(is_first);
        }
    }

    fn count(&mut self, core: usize, weight: u64) {
        let core = &mut self.cores[core];
        core.queues += 1;
        core.load += weight;
        self.in_domain[core.place.domain] += 1;
    }

    fn move_to(&mut self, queue: usize, to: usize) {
        let Queue { weight, irqs, .. } = self.queues[queue];
        if let Some(from) = self.queues[queue].core.replace(to) {
            let core = &mut self.cores[from];
            core.movable.retain(|&other| other != queue);
            core.queues -= 1;
            core.load -= weight;
            core.irqs -= irqs;
            self.in_domain[core.place.domain] -= 1;
        }
        self.count(to, weight);
        self.cores[to].irqs += irqs;
        self.cores[to].movable.push(queue);
    }

    /// The queues on all threads of a core, where each counts as a core.
    fn beside(&self, core: usize) -> usize {
        let topology = self.locations.topology;
        let threads = topology.cores.get(self.cores[core].place.core);
        let threads = threads.into_iter().flat_map(CpuSet::iter);
        let threads = threads.filter_map(|cpu| self.cores.get(cpu as usize));
        threads.map(|thread| thread.queues).sum()
    }

    /// The least loaded core of a set of those with fewer than `most` queues and room for `irqs`; of equal ones, the nearest, a thread of a free
    /// core before a sibling of a taken one, the first by rank, then one of an L3 domain that has few queues for its size,
    /// or many of a set that packs them.
    fn first(
        &self,
        set: usize,
        most: usize,
        irqs: usize,
        load: fn(&Core) -> (u64, usize),
    ) -> Option<usize> {
        let (set, is_apart) = (&self.sets[set], !self.apart.is_empty());
        let all = set.cores.iter().copied().zip(&set.ranks);
        let fits = all.filter(|&(core, _)| {
            let core = &self.cores[core];
            core.queues < most && core.irqs + irqs <= core.room
        });
        let best = fits.map(|(core, &(tier, rank))| {
            let domain = self.cores[core].place.domain;
            let queues = self.in_domain[domain];
            let density = if set.packs {
                usize::MAX - queues
            } else {
                queues * 4096 / self.locations.domain_sizes[domain].max(1)
            };
            let beside = if is_apart { self.beside(core) } else { 0 };
            (load(&self.cores[core]), tier, beside, rank, density, core)
        });
        best.min().map(|(.., core)| core)
    }

    /// Places one queue more, of no weight, on a core with the fewest, and returns its CPU.
    pub(crate) fn take(&mut self, set: usize, irqs: usize) -> Option<u32> {
        let core = self.first(set, usize::MAX, irqs, |core| (0, core.queues))?;
        self.count(core, 0);
        self.cores[core].irqs += irqs;
        self.thread(set, core, irqs)
    }

    /// The CPU of a core with the fewest queues of those with room for `irqs`, which counts one more.
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

    /// Places queues, and returns the CPU of each by its id; those for whose IRQs no candidate has room have none. Queues of one weight and the same candidates can change
    /// places.
    pub(crate) fn place(&mut self, mut queues: Vec<Queue>) -> BTreeMap<usize, u32> {
        queues.retain(|queue| !self.sets[queue.set].cores.is_empty());
        queues.sort_by_key(|queue| (Reverse(queue.weight), queue.set, queue.irqs));
        let candidates = CpuSet::union_of(self.sets.iter().map(|set| &set.cpus));
        for core in &mut self.cores {
            let cpus = core.cpus.iter().filter(|cpu| candidates.contains(**cpu));
            core.room = cpus.map(|&cpu| self.room[cpu as usize]).sum();
        }
        self.most_irqs = queues.iter().map(|queue| queue.irqs).max().unwrap_or(0);
        self.queues = queues;
        self.arrange();
        let mut queues = take(&mut self.queues);
        for alike in queues.chunk_by_mut(Queue::is_alike) {
            self.number(alike);
            for own in alike.chunk_by_mut(|a, b| a.work == b.work) {
                self.number(own);
            }
        }
        self.part_firsts(&mut queues);
        self.queues = queues;
        self.move_firsts();
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

    /// Numbers queues of one set by their cores: one on each core before the second on any; near ones first, the core of
    /// CPU 0 last, fast ones first.
    fn number(&self, queues: &mut [Queue]) {
        let set = queues.first().map(|queue| &self.sets[queue.set]);
        let ranks = set.map(|set| set.cores.iter().zip(&set.ranks));
        let tiers: BTreeMap<usize, usize> = ranks
            .into_iter()
            .flatten()
            .map(|(&core, &(tier, _))| (core, tier))
            .collect();
        let cores = cores(queues).into_iter().sorted_unstable().collect_vec();
        let ordered = cores
            .chunk_by(|a, b| a == b)
            .flat_map(|same| same.iter().enumerate())
            .map(|(round, &core)| {
                let Core {
                    place, has_others, ..
                } = &self.cores[core];
                let tier = tiers.get(&core).copied();
                let is_last = self.last == Some(core);
                (round, tier, *has_others, is_last, place.class, core)
            });
        // Those for which there is no room are the last ones.
        let mut ordered = ordered.sorted_unstable();
        for queue in queues {
            queue.core = ordered.next().map(|(.., core)| core);
        }
    }

    /// Puts the first queue of each interface on that of its cores which as few others take as can be, else on one of a queue
    /// that can change places with it; on that of CPU 0 only where others would be taken once more.
    fn part_firsts(&self, queues: &mut [Queue]) {
        let (mut firsts, mut own, mut alike) = (Vec::new(), Vec::new(), Vec::new());
        let mut at = 0;
        for group in queues.chunk_by(Queue::is_alike) {
            for one in group.chunk_by(|a, b| a.work == b.work) {
                if one[0].is_first && one[0].core.is_some() {
                    firsts.push(at);
                    own.push(cores(one));
                    alike.push(cores(group));
                }
                at += one.len();
            }
        }
        let without_last = |options: &[Vec<usize>]| -> Vec<Vec<usize>> {
            let others = |cores: &Vec<usize>| {
                let others = cores.iter().copied();
                others.filter(|&core| Some(core) != self.last).collect()
            };
            options.iter().map(others).collect()
        };
        let options = [&without_last(&own), &without_last(&alike), &own, &alike];
        let mut on: Vec<Vec<usize>> = vec![Vec::new(); self.cores.len()];
        let mut without = (0..firsts.len()).collect_vec();
        for most in 1.. {
            for options in options {
                without.retain(|&claimant| {
                    let seen = &mut vec![false; self.cores.len()];
                    !self.claim(options, most, &mut on, seen, claimant)
                });
            }
            if without.is_empty() {
                break;
            }
        }
        for (core, claimants) in on.iter().enumerate() {
            for &claimant in claimants {
                let cores = &mut own[claimant];
                if let Some(place) = cores.iter().position(|&other| other == core) {
                    cores[..=place].rotate_right(1);
                    for (queue, &core) in queues[firsts[claimant]..].iter_mut().zip(&*cores) {
                        queue.core = Some(core);
                    }
                }
            }
        }
        for (core, claimants) in on.iter().enumerate() {
            for &claimant in claimants {
                move_first(queues, firsts[claimant], core);
            }
        }
    }

    /// Gives a claimant a core that is free, or one whose claimant can have another.
    fn claim(
        &self,
        options: &[Vec<usize>],
        most: usize,
        on: &mut [Vec<usize>],
        seen: &mut [bool],
        claimant: usize,
    ) -> bool {
        if let Some(&core) = options[claimant]
            .iter()
            .find(|&&core| on[core].len() + self.cores[core].firsts < most)
        {
            on[core].push(claimant);
            return true;
        }
        for &core in &options[claimant] {
            if replace(&mut seen[core], true) {
                continue;
            }
            for at in 0..on[core].len() {
                let other = on[core][at];
                if self.claim(options, most, on, seen, other) {
                    on[core][at] = claimant;
                    return true;
                }
            }
        }
        false
    }
}
