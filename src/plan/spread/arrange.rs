//! The core of each queue: the first one by load and rank, then chains and exchanges that improve the arrangement.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::iter::successors;
use std::mem::{replace, take};

use itertools::Itertools as _;

use crate::plan::objective::pairs;
use crate::plan::spread::{Core, Queue, Spread};

const MOST_EXCHANGED: usize = 3;

impl Spread<'_> {
    /// Places all queues for which there is room, and moves them until no exchange improves the arrangement.
    pub(super) fn arrange(&mut self) {
        let mut most = self.least_most();
        for queue in 0..self.queues.len() {
            let Queue { set, irqs, .. } = self.queues[queue];
            let before = most;
            // A move makes room for an IRQ.
            let mut moves = irqs.max(1);
            let core = loop {
                if let Some(core) = self.first(set, most, irqs, |core| (core.load, core.queues)) {
                    break Some(core);
                }
                let cores = self.sets[set].cores.clone();
                if moves > 0 && self.shift(&cores, most, u64::MAX).is_ok() {
                    moves -= 1;
                } else if self.cores.iter().all(|core| core.queues < most) {
                    most = before;
                    break None;
                } else {
                    (most, moves) = (most + 1, irqs.max(1));
                }
            };
            if let Some(core) = core {
                self.move_to(queue, Some(core));
            }
        }
        if !self.queues.is_empty() {
            while self.exchange(self.busiest(), most, 0) || self.relieve(most) {}
            self.lower_pairs(most);
        }
    }

    /// Lowers the load of the busiest core by a chain of moves.
    fn relieve(&mut self, most: usize) -> bool {
        let busiest = self.busiest();
        let limit = self.cores[busiest].load.checked_sub(1);
        limit.is_some_and(|limit| self.shift(&[busiest], most, limit).is_ok())
    }

    /// A lower bound for the queues on the busiest core: what cannot be moved from a core, and for each set, the queues
    /// that must be in it, divided by its cores.
    fn least_most(&self) -> usize {
        let fixed = self.cores.iter().map(|core| core.queues);
        self.sets
            .iter()
            .map(|set| {
                let within = self
                    .sets
                    .iter()
                    .map(|s| s.cpus.is_subset(&set.cpus))
                    .collect_vec();
                let own = self.queues.iter().filter(|queue| within[queue.set]).count();
                let fixed: usize = set.cores.iter().map(|&core| self.cores[core].queues).sum();
                (own + fixed).div_ceil(set.cores.len().max(1))
            })
            .chain(fixed)
            .max()
            .unwrap_or(1)
            .max(1)
    }

    /// Moves a queue from one of the `from` cores to another, from there one to the next, and so on to a core with
    /// fewer than `room` queues, by the shortest chain that gives no core a load above `limit`; else returns the cores
    /// that it could reach.
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
            let arriving = came[core].map_or(0, |queue| self.queues[queue].irqs);
            for at in 0..self.cores[core].movable.len() {
                let queue = self.cores[core].movable[at];
                let Queue {
                    set, weight, irqs, ..
                } = self.queues[queue];
                let load = self.cores[core].load + more;
                if weight >= least[set]
                    || load > limit.saturating_add(weight)
                    || !self.cores[core].takes(arriving, irqs)
                {
                    continue;
                }
                least[set] = weight;
                for &to in &self.sets[set].cores {
                    let Core { queues, load, .. } = self.cores[to];
                    let before = |&last: &usize| came[self.queues[last].core?];
                    let mut chain = successors(Some(queue), before);
                    if queues < room
                        && self.cores[to].takes(irqs, 0)
                        && load.saturating_add(weight) <= limit
                        && chain.all(|queue| self.queues[queue].core != Some(to))
                    {
                        let (mut next, mut to) = (Some(queue), Some(to));
                        while let (Some(queue), Some(core)) = (next, to) {
                            to = self.queues[queue].core;
                            next = to.and_then(|left| came[left]);
                            self.move_to(queue, Some(core));
                        }
                        return Ok(());
                    }
                    if !replace(&mut seen[to], true) {
                        came[to] = Some(queue);
                        line.push_back(to);
                    }
                }
            }
        }
        Err(seen)
    }

    pub(super) fn busiest(&self) -> usize {
        let cores = 0..self.cores.len();
        cores
            .rev()
            .max_by_key(|&core| self.cores[core].load)
            .unwrap_or(0)
    }

    /// Lowers the pairs of queues that share a core, then the queues on slow cores and on that of CPU 0, while the load
    /// of the busiest core stays.
    fn lower_pairs(&mut self, most: usize) {
        let limit = self.cores[self.busiest()].load;
        let mut changed = true;
        while take(&mut changed) {
            let order =
                (0..self.cores.len()).sorted_by_key(|&core| Reverse(self.cores[core].queues));
            let mut looked_at = vec![false; self.cores.len()];
            for from in order {
                let room = self.cores[from].queues.saturating_sub(1);
                if room > 0 && !looked_at[from] {
                    match self.shift(&[from], room, limit) {
                        Ok(()) => changed = true,
                        // No chain begins at the cores seen here either.
                        Err(seen) => {
                            for (looked_at, seen) in looked_at.iter_mut().zip(seen) {
                                *looked_at |= seen;
                            }
                        }
                    }
                }
                changed |= self.may_gain(from) && self.exchange(from, most, limit);
            }
        }
    }

    /// The cost of a queue on this core by its order; 0 for an ordinary core. No queue leaves a thread for a sibling of
    /// a taken one because of it.
    pub(super) fn order(&self, core: usize) -> u64 {
        let Core {
            cpus,
            place,
            has_others,
            ..
        } = &self.cores[core];
        if cpus.iter().any(|&cpu| self.apart.contains(cpu)) {
            return 0;
        }
        let is_last = self.last == Some(core);
        4 * place.class as u64 + 2 * u64::from(*has_others) + u64::from(is_last)
    }

    fn may_gain(&self, from: usize) -> bool {
        let (queues, order) = (self.cores[from].queues, self.order(from));
        self.cores[from]
            .movable
            .iter()
            .map(|&queue| self.queues[queue].set)
            .dedup()
            .any(|set| {
                self.sets[set].cores.iter().any(|&to| {
                    let to_queues = self.cores[to].queues + 1;
                    to_queues < queues || to_queues == queues && self.order(to) < order
                })
            })
    }

    /// Makes the exchange of a core's queues for another core's that lowers the cost of the two most. A load up to
    /// `limit` costs nothing.
    fn exchange(&mut self, from: usize, most: usize, limit: u64) -> bool {
        let mut best: Option<(_, Vec<usize>, usize, Vec<usize>)> = None;
        let mut known = BTreeSet::new();
        let outs = self.handfuls(from);
        for to in (0..self.cores.len()).filter(|&to| to != from) {
            let core = &self.cores[to];
            let keys = core
                .movable
                .iter()
                .map(|&queue| self.queues[queue].exchange_key())
                .sorted_unstable()
                .collect_vec();
            let order = self.order(to);
            let room = core.room.saturating_sub(core.irqs);
            let alike = (core.queues, core.load, room, &core.sets, keys, order);
            let outs = outs.iter().filter(|out| self.fit(out, to)).collect_vec();
            // One of them is the empty handful, which exchanges nothing.
            if outs.len() < 2 || !known.insert(alike) {
                continue;
            }
            let now = self.cost(limit, [(from, &[], &[]), (to, &[], &[])]);
            for back in self.handfuls(to).iter().filter(|back| self.fit(back, from)) {
                for out in &outs {
                    let irqs = |queues: &[usize]| -> usize {
                        queues.iter().map(|&queue| self.queues[queue].irqs).sum()
                    };
                    let fits = |core: usize, lost: &[usize], gained: &[usize]| {
                        let now = &self.cores[core];
                        now.queues + gained.len() <= most + lost.len()
                            && now.takes(irqs(gained), irqs(lost))
                    };
                    if fits(from, out, back) && fits(to, back, out) {
                        let after = self.cost(limit, [(from, out, back), (to, back, out)]);
                        if after < best.as_ref().map_or(now, |(best, ..)| now.min(*best)) {
                            best = Some((after, (*out).clone(), to, back.clone()));
                        }
                    }
                }
            }
        }
        let Some((_, out, to, back)) = best else {
            return false;
        };
        for queue in out {
            self.move_to(queue, Some(to));
        }
        for queue in back {
            self.move_to(queue, Some(from));
        }
        true
    }

    /// The load of the busier core after an exchange, if above `limit`, the pairs of queues on both, and the queues on
    /// slow cores.
    fn cost(&self, limit: u64, cores: [(usize, &[usize], &[usize]); 2]) -> (u64, u64, u64) {
        let mut cost = (limit, 0, 0);
        for (core, lost, gained) in cores {
            let weigh = |queues: &[usize]| -> u64 {
                queues.iter().map(|&queue| self.queues[queue].weight).sum()
            };
            let now = &self.cores[core];
            let queues = now.queues + gained.len() - lost.len();
            cost.0 = cost.0.max(now.load + weigh(gained) - weigh(lost));
            cost.1 += pairs(queues);
            cost.2 += u64::from(limit > 0) * self.order(core) * queues as u64;
        }
        cost
    }

    /// The choices of at most [`MOST_EXCHANGED`] of a core's queues, each mixture of exchange keys once.
    fn handfuls(&self, core: usize) -> Vec<Vec<usize>> {
        let mut by_key: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for &queue in &self.cores[core].movable {
            by_key
                .entry(self.queues[queue].exchange_key())
                .or_default()
                .push(queue);
        }
        let mut handfuls = vec![Vec::new()];
        for queues in by_key.into_values() {
            for at in 0..handfuls.len() {
                for more in 1..=queues.len().min(MOST_EXCHANGED - handfuls[at].len()) {
                    handfuls.push([&handfuls[at], &queues[..more]].concat());
                }
            }
        }
        handfuls
    }

    fn fit(&self, queues: &[usize], core: usize) -> bool {
        let sets = &self.cores[core].sets;
        queues
            .iter()
            .all(|&queue| sets.contains(&self.queues[queue].set))
    }
}
