//! The arrangement of queues on cores that the objective finds best; the order of the cores decides where it finds several
//! equal.
//!
//! Each queue goes to the least loaded core of its candidates that is not full; where all are, queues move on along a
//! chain of cores, or every core may take one more. Exchanges between two cores then lower the load of the busiest one,
//! and the pairs of queues that share a core.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::iter::successors;

use crate::cpuset::CpuSet;
use crate::machine::Topology;
use crate::plan::objective::pairs;
use crate::plan::place::{CpuLocation, Locations};
use crate::policy::{AVOID_CPU0, Choice, Domains, L3};

/// Candidate CPUs that some queues have in common.
struct Set {
    cpus: CpuSet,
    /// The same by increasing distance, where the policy widens; else empty.
    tiers: Vec<CpuSet>,
    avoid_cpu0: bool,
    /// Whether it fills one L3 domain before it begins another.
    packs: bool,
    /// Its cores, and by core whether it is one of them.
    cores: Vec<usize>,
    has: Vec<bool>,
}

/// A queue that can be moved.
pub(crate) struct Queue {
    /// A number from [`Spread::set`].
    pub(crate) set: usize,
    pub(crate) weight: u64,
    /// Where it is.
    pub(crate) core: usize,
}

impl Queue {
    pub(crate) fn new(set: usize, weight: u64) -> Self {
        Self {
            set,
            weight,
            core: usize::MAX,
        }
    }
}

/// What is on a core, or on a thread where each counts as a core.
#[derive(Clone, Default)]
struct Core {
    cpus: Vec<u32>,
    queues: usize,
    load: u64,
    /// Those of the queues that can be moved.
    movable: Vec<usize>,
    /// The sets that have it.
    sets: Vec<usize>,
}

/// The queues on each core, and those that are arranged.
pub(crate) struct Spread<'a> {
    locations: &'a Locations,
    /// The core of each CPU.
    of_cpu: Vec<usize>,
    places: Vec<CpuLocation>,
    cores: Vec<Core>,
    sets: Vec<Set>,
    pub(crate) queues: Vec<Queue>,
    in_domain: Vec<usize>,
    on_cpu: Vec<usize>,
    /// The core of CPU 0, where it is used last.
    last: Option<usize>,
}

impl<'a> Spread<'a> {
    /// `apart`: the CPUs each of which counts as a core.
    pub(crate) fn new(topology: &Topology, locations: &'a Locations, apart: &CpuSet) -> Self {
        let end = topology.online.last().map_or(0, |last| last as usize + 1);
        let (mut of_cpu, mut places) = (vec![usize::MAX; end], Vec::new());
        let mut cores: Vec<Core> = Vec::new();
        for cpu in topology.online.iter() {
            let Some(place) = locations.of(cpu) else {
                continue;
            };
            let first = locations.core_of(topology, cpu).and_then(CpuSet::first);
            let first = first.filter(|&first| first < cpu && !apart.contains(cpu));
            let core = first.map_or(cores.len(), |first| of_cpu[first as usize]);
            of_cpu[cpu as usize] = core;
            if first.is_none() {
                places.push(place);
                cores.push(Core::default());
            }
            if let Some(core) = cores.get_mut(core) {
                core.cpus.push(cpu);
            }
        }
        Self {
            locations,
            of_cpu,
            cores,
            places,
            sets: Vec::new(),
            queues: Vec::new(),
            in_domain: vec![0; locations.domain_sizes.len()],
            on_cpu: vec![0; end],
            last: None,
        }
    }

    /// The number of cores.
    pub(crate) fn len(&self) -> usize {
        self.cores.len()
    }

    pub(crate) fn core(&self, cpu: u32) -> Option<usize> {
        let core = self.of_cpu.get(cpu as usize).copied();
        core.filter(|&core| core < self.cores.len())
    }

    /// The number of a set of candidates.
    pub(crate) fn set(&mut self, cpus: &CpuSet, tiers: &[CpuSet], choice: &Choice) -> usize {
        let (avoid_cpu0, packs) = (choice.get(&AVOID_CPU0), choice.get(&L3) == Domains::Pack);
        let same = |set: &Set| {
            set.cpus == *cpus
                && set.tiers == tiers
                && (set.avoid_cpu0, set.packs) == (avoid_cpu0, packs)
        };
        if let Some(known) = self.sets.iter().position(same) {
            return known;
        }
        let mut has = vec![false; self.cores.len()];
        for core in cpus.iter().filter_map(|cpu| self.core(cpu)) {
            has[core] = true;
        }
        let cores: Vec<usize> = (0..has.len()).filter(|&core| has[core]).collect();
        for &core in &cores {
            self.cores[core].sets.push(self.sets.len());
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
            has,
        });
        self.sets.len() - 1
    }

    /// Counts a queue that stays on a CPU.
    pub(crate) fn add(&mut self, cpu: u32, weight: u64) {
        if let Some(core) = self.core(cpu) {
            self.count(core, weight);
            self.on_cpu[cpu as usize] += 1;
        }
    }

    fn count(&mut self, core: usize, weight: u64) {
        self.cores[core].queues += 1;
        self.cores[core].load += weight;
        self.in_domain[self.places[core].domain] += 1;
    }

    fn move_to(&mut self, queue: usize, to: usize) {
        let (from, weight) = (self.queues[queue].core, self.queues[queue].weight);
        if let Some(core) = self.cores.get_mut(from) {
            core.movable.retain(|&other| other != queue);
            core.queues -= 1;
            core.load -= weight;
            self.in_domain[self.places[from].domain] -= 1;
        }
        self.count(to, weight);
        self.cores[to].movable.push(queue);
        self.queues[queue].core = to;
    }

    /// Where a core comes among those of a set that are equally loaded: near ones first, fast ones, that of CPU 0 last,
    /// those of an L3 domain that has few queues for its size, or many of a set that packs them.
    fn rank(&self, set: usize, core: usize) -> (usize, usize, bool, usize, usize) {
        let (set, place) = (&self.sets[set], self.places[core]);
        let is_near = |tier: &CpuSet| tier.iter().any(|cpu| self.core(cpu) == Some(core));
        let tier = set.tiers.iter().position(is_near).unwrap_or(0);
        let last = set.avoid_cpu0 && self.core(0) == Some(core);
        let queues = self.in_domain[place.domain];
        let density = if set.packs {
            usize::MAX - queues
        } else {
            queues * 4096 / self.locations.domain_sizes[place.domain].max(1)
        };
        (tier, place.class, last, density, core)
    }

    /// The best core of a set of those with fewer than `most` queues.
    fn best(&self, set: usize, most: usize) -> Option<usize> {
        let fits = |core: &usize| self.cores[*core].queues < most;
        let load = |core: usize| (self.cores[core].load, self.cores[core].queues);
        let cores = || self.sets[set].cores.iter().copied().filter(fits);
        let least = cores().map(load).min()?;
        let least = cores().filter(|&core| load(core) == least);
        least.min_by_key(|&core| self.rank(set, core))
    }

    /// Places one queue more, of no weight, on a core with the fewest, and returns its CPU.
    pub(crate) fn take(&mut self, set: usize) -> Option<u32> {
        let cores = self.sets[set].cores.iter().copied();
        let core = cores.min_by_key(|&core| (self.cores[core].queues, self.rank(set, core)))?;
        self.count(core, 0);
        self.thread(set, core)
    }

    /// The CPU of a core with the fewest queues, which counts one more.
    pub(crate) fn thread(&mut self, set: usize, core: usize) -> Option<u32> {
        let cpus = self.cores[core].cpus.iter().copied();
        let own = cpus.filter(|&cpu| self.sets[set].cpus.contains(cpu));
        let cpu = own.min_by_key(|&cpu| self.on_cpu[cpu as usize])?;
        self.on_cpu[cpu as usize] += 1;
        Some(cpu)
    }

    /// Queues on a CPU.
    pub(crate) fn on_cpu(&self, cpu: u32) -> usize {
        self.on_cpu.get(cpu as usize).copied().unwrap_or(0)
    }

    /// Places all queues, in their order.
    pub(crate) fn arrange(&mut self) {
        let mut most = self.least_most();
        for queue in 0..self.queues.len() {
            let set = self.queues[queue].set;
            if self.sets[set].cores.is_empty() {
                continue;
            }
            let core = loop {
                if let Some(core) = self.best(set, most) {
                    break core;
                }
                let cores = self.sets[set].cores.clone();
                if self.shift(&cores, most, u64::MAX).is_err() {
                    most += 1;
                }
            };
            self.move_to(queue, core);
        }
        self.lower_load(most);
        self.lower_pairs(most);
    }

    /// A number of queues below which the busiest core cannot be: those that must be in a set, by its cores.
    fn least_most(&self) -> usize {
        let inside = |set: &Set| {
            let within: Vec<bool> = self
                .sets
                .iter()
                .map(|s| s.cpus.is_subset(&set.cpus))
                .collect();
            let own = self.queues.iter().filter(|queue| within[queue.set]).count();
            let fixed: usize = set.cores.iter().map(|&core| self.cores[core].queues).sum();
            (own + fixed).div_ceil(set.cores.len().max(1))
        };
        self.sets.iter().map(inside).max().unwrap_or(1).max(1)
    }

    /// Moves a queue from one of some cores to another, from there one to the next, and so on to a core with fewer than
    /// `room` queues, by the shortest chain on which no core gets a load above `limit`. Without such a chain, returns the
    /// cores that were looked at.
    fn shift(&mut self, from: &[usize], room: usize, limit: u64) -> Result<(), Vec<bool>> {
        let mut came: Vec<Option<usize>> = vec![None; self.cores.len()];
        let mut seen = vec![false; self.cores.len()];
        let mut least: Vec<u64> = vec![u64::MAX; self.sets.len()];
        let mut line: VecDeque<usize> = from.iter().copied().collect();
        for &core in from {
            seen[core] = true;
        }
        while let Some(core) = line.pop_front() {
            let more = came[core].map_or(0, |queue| self.queues[queue].weight);
            for at in 0..self.cores[core].movable.len() {
                let queue = self.cores[core].movable[at];
                let Queue { set, weight, .. } = self.queues[queue];
                if weight >= least[set]
                    || self.cores[core].load + more > limit.saturating_add(weight)
                {
                    continue;
                }
                least[set] = weight;
                for &to in &self.sets[set].cores {
                    let Core { queues, load, .. } = self.cores[to];
                    let chain = || successors(Some(queue), |&last| came[self.queues[last].core]);
                    let fits = queues < room
                        && load.saturating_add(weight) <= limit
                        && chain().all(|queue| self.queues[queue].core != to);
                    if fits {
                        let (mut queue, mut to) = (queue, to);
                        loop {
                            let left = self.queues[queue].core;
                            self.move_to(queue, to);
                            let Some(before) = came[left] else {
                                return Ok(());
                            };
                            (queue, to) = (before, left);
                        }
                    }
                    if !seen[to] {
                        seen[to] = true;
                        came[to] = Some(queue);
                        line.push_back(to);
                    }
                }
            }
        }
        Err(seen)
    }

    fn busiest(&self) -> usize {
        let cores = 0..self.cores.len();
        cores
            .max_by_key(|&core| (self.cores[core].load, usize::MAX - core))
            .unwrap_or(0)
    }

    /// Lowers the load of the busiest core while an exchange does.
    fn lower_load(&mut self, most: usize) {
        let cost = |_: &Self, [own, other]: [After; 2]| {
            let load = own.load.max(other.load);
            Some((load, pairs(own.queues) + pairs(other.queues), 0))
        };
        while self.exchange(self.busiest(), most, cost) {}
    }

    /// Lowers the pairs of queues that share a core, then the queues on slow cores and on that of CPU 0, while the load of
    /// the busiest core stays.
    fn lower_pairs(&mut self, most: usize) {
        let limit = self.cores.get(self.busiest()).map_or(0, |core| core.load);
        let cost = |spread: &Self, cores: [After; 2]| {
            let shared: u64 = cores.iter().map(|core| pairs(core.queues)).sum();
            let slow = cores
                .iter()
                .map(|core| spread.order(core.core) * core.queues as u64);
            let fits = cores.iter().all(|core| core.load <= limit);
            fits.then(|| (shared, slow.sum::<u64>(), 0))
        };
        loop {
            let mut order: Vec<usize> = (0..self.cores.len()).collect();
            order.sort_by_key(|&core| std::cmp::Reverse(self.cores[core].queues));
            let mut looked_at = vec![false; self.cores.len()];
            let mut changed = false;
            for from in order {
                let room = self.cores[from].queues.saturating_sub(1);
                if room > 0 && !looked_at[from] {
                    match self.shift(&[from], room, limit) {
                        Ok(()) => changed = true,
                        // From those there is no chain either.
                        Err(seen) => {
                            for (core, seen) in seen.into_iter().enumerate() {
                                looked_at[core] |= seen;
                            }
                        }
                    }
                }
                changed |= self.may_gain(from) && self.exchange(from, most, cost);
            }
            if !changed {
                break;
            }
        }
    }

    /// 0 for a core that is used as any other.
    fn order(&self, core: usize) -> u64 {
        2 * self.places[core].class as u64 + u64::from(self.last == Some(core))
    }

    /// Whether a queue of a core could be on one with fewer, or one that is as good with it and better placed.
    fn may_gain(&self, from: usize) -> bool {
        let (queues, order) = (self.cores[from].queues, self.order(from));
        let mut sets: Vec<usize> = self.cores[from]
            .movable
            .iter()
            .map(|&queue| self.queues[queue].set)
            .collect();
        sets.sort_unstable();
        sets.dedup();
        let is_better = |&to: &usize| {
            let to_queues = self.cores[to].queues;
            to_queues + 1 < queues || to_queues + 1 == queues && self.order(to) < order
        };
        sets.iter()
            .any(|&set| self.sets[set].cores.iter().any(is_better))
    }

    /// Exchanges at most three queues of a core for at most three of another, where that lowers the cost of the two cores;
    /// the exchange with the least.
    fn exchange<Cost: Ord>(
        &mut self,
        from: usize,
        most: usize,
        cost: impl Fn(&Self, [After; 2]) -> Option<Cost>,
    ) -> bool {
        let mut best: Option<(Cost, Vec<usize>, usize, Vec<usize>)> = None;
        let mut known = BTreeSet::new();
        let outs = self.handfuls(from);
        for to in (0..self.cores.len()).filter(|&to| to != from) {
            let core = &self.cores[to];
            let mut kinds: Vec<_> = core.movable.iter().map(|&queue| self.kind(queue)).collect();
            kinds.sort_unstable();
            let alike = (core.queues, core.load, &core.sets, kinds, self.order(to));
            let outs: Vec<_> = outs.iter().filter(|out| self.fit(out, to)).collect();
            // One of them is to exchange nothing.
            if outs.len() < 2 || !known.insert(alike) {
                continue;
            }
            let now = cost(self, [self.after(from, &[], &[]), self.after(to, &[], &[])]);
            for back in self.handfuls(to).iter().filter(|back| self.fit(back, from)) {
                for out in &outs {
                    let after = [self.after(from, back, out), self.after(to, out, back)];
                    if after.iter().any(|core| core.queues > most) {
                        continue;
                    }
                    let Some(after) = cost(self, after) else {
                        continue;
                    };
                    let least = best.as_ref().map(|(best, ..)| best).or(now.as_ref());
                    if least.is_none_or(|least| after < *least)
                        && now.as_ref().is_none_or(|now| after < *now)
                    {
                        best = Some((after, (*out).clone(), to, back.clone()));
                    }
                }
            }
        }
        let Some((_, out, to, back)) = best else {
            return false;
        };
        for queue in out {
            self.move_to(queue, to);
        }
        for queue in back {
            self.move_to(queue, from);
        }
        true
    }

    /// A core after an exchange.
    fn after(&self, core: usize, gained: &[usize], lost: &[usize]) -> After {
        let weigh = |queues: &[usize]| -> u64 {
            queues.iter().map(|&queue| self.queues[queue].weight).sum()
        };
        let now = &self.cores[core];
        After {
            core,
            queues: now.queues + gained.len() - lost.len(),
            load: now.load + weigh(gained) - weigh(lost),
        }
    }

    /// None to three of a core's queues, each mixture of kinds once.
    fn handfuls(&self, core: usize) -> Vec<Vec<usize>> {
        let mut kinds: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for &queue in &self.cores[core].movable {
            kinds.entry(self.kind(queue)).or_default().push(queue);
        }
        let mut handfuls = vec![Vec::new()];
        for queues in kinds.into_values() {
            for at in 0..handfuls.len() {
                for more in 1..=queues.len().min(3 - handfuls[at].len()) {
                    handfuls.push([&handfuls[at], &queues[..more]].concat());
                }
            }
        }
        handfuls
    }

    fn kind(&self, queue: usize) -> (usize, u64) {
        (self.queues[queue].set, self.queues[queue].weight)
    }

    /// Some cores, each time one of them, in the order in which queues are numbered: one on each core before the second on
    /// any; the core of CPU 0 last, fast ones first.
    pub(crate) fn in_order(&self, mut cores: Vec<usize>) -> Vec<usize> {
        cores.retain(|&core| core < self.cores.len());
        cores.sort_unstable();
        let rounds = cores
            .chunk_by(|a, b| a == b)
            .flat_map(|same| same.iter().enumerate());
        let key = |(round, &core): (usize, &usize)| {
            (
                round,
                self.last == Some(core),
                self.places[core].class,
                core,
            )
        };
        let mut keys: Vec<_> = rounds.map(key).collect();
        keys.sort_unstable();
        keys.into_iter().map(|(.., core)| core).collect()
    }

    /// For each list of cores one of them, so that the same one is taken as rarely as can be; `taken`: how often each is
    /// already. That of CPU 0 only where others would be taken once more.
    pub(crate) fn firsts(&self, options: &[&[usize]], taken: &[usize]) -> Vec<usize> {
        let without_last = |cores: &&[usize]| -> Vec<usize> {
            let cores = cores.iter().copied();
            cores.filter(|&core| self.last != Some(core)).collect()
        };
        let others: Vec<Vec<usize>> = options.iter().map(without_last).collect();
        let all: Vec<Vec<usize>> = options.iter().map(|cores| cores.to_vec()).collect();
        let mut on: Vec<Vec<usize>> = vec![Vec::new(); taken.len()];
        let mut without: Vec<usize> = (0..options.len()).collect();
        for most in 1.. {
            for options in [&others, &all] {
                without.retain(|&claimant| {
                    let seen = &mut vec![false; taken.len()];
                    !claim(options, taken, most, &mut on, seen, claimant)
                });
            }
            if without.is_empty() {
                break;
            }
        }
        let mut chosen = vec![0; options.len()];
        for (core, claimants) in on.iter().enumerate() {
            for &claimant in claimants {
                chosen[claimant] = core;
            }
        }
        chosen
    }

    fn fit(&self, queues: &[usize], core: usize) -> bool {
        queues
            .iter()
            .all(|&queue| self.sets[self.queues[queue].set].has[core])
    }
}

/// A core as an exchange would leave it.
struct After {
    core: usize,
    queues: usize,
    load: u64,
}

/// Gives a claimant a core that is free, or one whose claimant can have another.
fn claim(
    options: &[Vec<usize>],
    taken: &[usize],
    most: usize,
    on: &mut [Vec<usize>],
    seen: &mut [bool],
    claimant: usize,
) -> bool {
    if let Some(&core) = options[claimant]
        .iter()
        .find(|&&core| on[core].len() + taken[core] < most)
    {
        on[core].push(claimant);
        return true;
    }
    for &core in &options[claimant] {
        if std::mem::replace(&mut seen[core], true) {
            continue;
        }
        for at in 0..on[core].len() {
            let other = on[core][at];
            if claim(options, taken, most, on, seen, other) {
                on[core][at] = claimant;
                return true;
            }
        }
    }
    false
}
