//! Assigns the queues of each interface to the cores of an arrangement: evenly, and first queues apart.

use std::collections::BTreeSet;
use std::iter::once;
use std::mem::replace;
use std::ops::Range;

use itertools::Itertools as _;

use crate::plan::spread::{Core, Queue, Spread};

impl Spread<'_> {
    /// Deals out the cores of an arrangement among the queues, unless a more important measure gets worse.
    pub(super) fn deal(&mut self) {
        let load_limit = self.cores[self.busiest()].load;
        for alike in self.runs(|a, b| a.exchange_key() == b.exchange_key()) {
            self.number(alike);
        }
        self.even_out(load_limit);
        let runs = self.runs(|a, b| (a.exchange_key(), a.port) == (b.exchange_key(), b.port));
        for run in &runs {
            self.number(run.clone());
        }
        let has_first = |run: &Range<usize>| {
            let first = &self.queues[run.start];
            first.is_first && first.core.is_some()
        };
        self.part_firsts(&runs.into_iter().filter(has_first).collect_vec());
        self.move_firsts(load_limit);
        self.move_to_better_cores(load_limit);
    }

    fn runs(&self, is_same: fn(&Queue, &Queue) -> bool) -> Vec<Range<usize>> {
        let mut end = 0;
        self.queues
            .chunk_by(is_same)
            .map(|run| {
                let next = end + run.len();
                replace(&mut end, next)..next
            })
            .collect()
    }

    /// Numbers queues of one set by their cores: one on each core before the second on any; near ones first, the core
    /// of CPU 0 last, fast ones first.
    fn number(&mut self, places: Range<usize>) {
        let queues = &self.queues[places.clone()];
        let set = &self.sets[queues[0].set];
        let tier = |core: usize| {
            let place = set.cores.binary_search(&core).ok()?;
            Some(set.ranks[place].0)
        };
        let cores = queues.iter().filter_map(|queue| queue.core);
        let cores = cores.sorted_unstable().collect_vec();
        let ordered = cores
            .chunk_by(|a, b| a == b)
            .flat_map(|same| same.iter().enumerate())
            .map(|(round, &core)| {
                let Core {
                    place, has_others, ..
                } = &self.cores[core];
                let is_last = self.last == Some(core);
                (round, tier(core), *has_others, is_last, place.class, core)
            });
        // Queues without room are the last ones.
        let ordered = ordered.sorted_unstable().map(|(.., core)| Some(core));
        for (queue, core) in places.zip(ordered.chain(once(None).cycle())) {
            self.move_to(queue, core);
        }
    }

    /// Moves queues of an interface off cores that have more than an even share of them.
    fn even_out(&mut self, load_limit: u64) {
        let mut sets = vec![BTreeSet::new(); self.per_core.len()];
        for queue in &self.queues {
            sets[queue.port].insert(queue.set);
        }
        for (port, sets) in sets.iter().enumerate() {
            let cores = sets.iter().flat_map(|&set| &self.sets[set].cores);
            let cores = cores.unique().count();
            let all: usize = self.per_core[port].iter().sum();
            self.max_per_core[port] = all.div_ceil(cores.max(1));
        }
        let mut changed = true;
        while replace(&mut changed, false) {
            for queue in 0..self.queues.len() {
                let Queue { port, set, .. } = self.queues[queue];
                let Some(from) = self.queues[queue].core else {
                    continue;
                };
                let per_core = &self.per_core[port];
                if per_core[from] <= self.max_per_core[port] {
                    continue;
                }
                let exchanges = self.sets[set]
                    .cores
                    .iter()
                    .copied()
                    .filter(|&to| per_core[to] + 1 < per_core[from])
                    .flat_map(|to| self.exchanges(queue, to, load_limit));
                let is_of_port = |back: usize| self.queues[back].port == port;
                let best = exchanges
                    .filter(|&(_, back)| !back.is_some_and(is_of_port))
                    .min_by_key(|&(to, back)| (per_core[to], back.is_none(), to));
                if let Some((to, back)) = best {
                    self.change_places(queue, to, back);
                    changed = true;
                }
            }
        }
        for (most, per_core) in self.max_per_core.iter_mut().zip(&self.per_core) {
            *most = per_core.iter().copied().max().unwrap_or(0).max(*most);
        }
    }

    fn exchanges(
        &self,
        queue: usize,
        to: usize,
        load_limit: u64,
    ) -> impl Iterator<Item = (usize, Option<usize>)> {
        let there = self.cores[to].movable.iter().copied().map(Some);
        there
            .chain([None])
            .filter(move |back| self.fits(queue, to, *back, load_limit))
            .map(move |back| (to, back))
    }

    /// Whether a queue can go to another core, in exchange for one there or for none, and nothing gets worse.
    fn fits(&self, queue: usize, to: usize, back: Option<usize>, load_limit: u64) -> bool {
        let going = &self.queues[queue];
        let Some(from) = going.core else { return false };
        let coming = back.map(|back| &self.queues[back]);
        let stays_even = |port: usize, from: usize, to: usize| {
            self.per_core[port][to] < self.per_core[port][from].max(self.max_per_core[port])
        };
        let is_even = match coming {
            None => {
                self.cores[to].queues < self.cores[from].queues && stays_even(going.port, from, to)
            }
            Some(coming) => {
                let is_same = coming.port == going.port;
                self.cores[from].sets.contains(&coming.set)
                    && (is_same
                        || stays_even(going.port, from, to) && stays_even(coming.port, to, from))
            }
        };
        let (weight, irqs) = coming.map_or((0, 0), |coming| (coming.weight, coming.irqs));
        let takes = |core: usize, gained: (u64, usize), lost: (u64, usize)| {
            let core = &self.cores[core];
            core.load + gained.0 <= load_limit + lost.0 && core.takes(gained.1, lost.1)
        };
        let going = (going.weight, going.irqs);
        is_even && takes(to, going, (weight, irqs)) && takes(from, (weight, irqs), going)
    }

    fn change_places(&mut self, queue: usize, to: usize, back: Option<usize>) {
        let from = self.queues[queue].core;
        self.move_to(queue, Some(to));
        if let Some(back) = back {
            self.move_to(back, from);
        }
    }

    /// Puts each interface's first queue on the core of the interface with the fewest other first queues; on that of
    /// CPU 0 only if another would otherwise take one more. `runs`: the indices of each interface's queues, the first
    /// one first.
    fn part_firsts(&mut self, runs: &[Range<usize>]) {
        let cores = |run: &Range<usize>| -> Vec<usize> {
            self.queues[run.clone()]
                .iter()
                .filter_map(|queue| queue.core)
                .collect()
        };
        let all = runs.iter().map(cores).collect_vec();
        let others = |cores: &Vec<usize>| -> Vec<usize> {
            cores
                .iter()
                .copied()
                .filter(|&core| Some(core) != self.last)
                .collect()
        };
        let without_last = all.iter().map(others).collect_vec();
        let mut on: Vec<Vec<usize>> = vec![Vec::new(); self.cores.len()];
        let mut without = (0..runs.len()).collect_vec();
        for most in 1.. {
            for options in [&without_last, &all] {
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
                let mut cores = all[claimant].clone();
                if let Some(place) = cores.iter().position(|&other| other == core) {
                    cores[..=place].rotate_right(1);
                    for (queue, core) in runs[claimant].clone().zip(cores) {
                        self.move_to(queue, Some(core));
                    }
                }
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

    /// Moves first queues off cores that take several of them, and off that of CPU 0.
    fn move_firsts(&mut self, load_limit: u64) {
        let mut firsts = self.firsts_per_core();
        let first_queues = self
            .queues
            .iter()
            .positions(|queue| queue.is_first)
            .collect_vec();
        // The core of CPU 0 takes one rather than that others take more.
        for leaves_last in [false, true] {
            let most = firsts.iter().copied().max().unwrap_or(0);
            loop {
                let is_better = |from: usize, to: usize| {
                    if leaves_last {
                        self.last == Some(from) && self.last != Some(to) && firsts[to] < most
                    } else {
                        firsts[to] + 1 < firsts[from]
                    }
                };
                let change = |&queue: &usize| {
                    let Queue { set, core, .. } = self.queues[queue];
                    let mut changes = self.sets[set]
                        .cores
                        .iter()
                        .copied()
                        .filter(|&to| core.is_some_and(|from| is_better(from, to)))
                        .flat_map(|to| self.exchanges(queue, to, load_limit));
                    let fits =
                        |back: Option<usize>| back.is_none_or(|at| !self.queues[at].is_first);
                    let (to, back) = changes.find(|&(_, back)| fits(back))?;
                    Some((queue, core?, to, back))
                };
                let Some((queue, from, to, back)) = first_queues.iter().find_map(change) else {
                    break;
                };
                self.change_places(queue, to, back);
                firsts[from] -= 1;
                firsts[to] += 1;
            }
        }
    }

    /// Moves any queue to a better core: first queues may have left room there.
    fn move_to_better_cores(&mut self, load_limit: u64) {
        let mut firsts = self.firsts_per_core();
        let most = firsts.iter().copied().max().unwrap_or(0);
        let mut changed = true;
        while replace(&mut changed, false) {
            for queue in 0..self.queues.len() {
                let Queue {
                    set,
                    core: Some(from),
                    is_first,
                    ..
                } = self.queues[queue]
                else {
                    continue;
                };
                let order = self.order(from);
                let is_good = |to: &usize| {
                    self.order(*to) < order
                        && (!is_first || firsts[*to] < most)
                        && self.fits(queue, *to, None, load_limit)
                };
                if let Some(to) = self.sets[set].cores.iter().copied().find(is_good) {
                    self.move_to(queue, Some(to));
                    firsts[from] -= usize::from(is_first);
                    firsts[to] += usize::from(is_first);
                    changed = true;
                }
            }
        }
    }

    fn firsts_per_core(&self) -> Vec<usize> {
        let mut firsts = self.cores.iter().map(|core| core.firsts).collect_vec();
        let movable = self.queues.iter().filter(|queue| queue.is_first);
        for core in movable.filter_map(|queue| queue.core) {
            firsts[core] += 1;
        }
        firsts
    }
}
