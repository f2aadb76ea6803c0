//! CPU sets for RPS and XPS, and flow counts for RFS, that match the vectors.
//!
//! RPS makes up for missing hardware receive queues. XPS divides the online CPUs among the transmit queues by where
//! completions arrive (`Documentation/networking/scaling.rst`).

use std::collections::BTreeMap;

use crate::cpuset::CpuSet;
use crate::machine::Topology;
use crate::plan::place::{CpuLocation, Locations};

/// Divides the online CPUs among transmit queues; queue k completes on CPU `completions[k]`. Each CPU is in exactly one
/// set of the result. On nodes with completions, the CPUs of a core go to the nearest queue, of equally near ones to the
/// one with the fewest CPUs; the CPUs of other nodes are divided evenly, each queue's share in one piece.
pub(crate) fn xps(topology: &Topology, locations: &Locations, completions: &[u32]) -> Vec<CpuSet> {
    if completions.is_empty() {
        return Vec::new();
    }
    let average = topology.online.len().div_ceil(completions.len());
    let mut shares = Shares(
        completions
            .iter()
            .map(|_| Vec::with_capacity(average))
            .collect(),
    );
    let by_place = QueuesByPlace::new(locations, completions);
    let (near, far): (Vec<_>, Vec<_>) = locations
        .cores_by_node()
        .iter()
        .partition(|(node, _)| by_place.on_node.contains_key(node));
    let cores = near
        .into_iter()
        .flat_map(|(_, node)| &node.cores)
        .map(|&core| &topology.cores[core]);
    let with_queues = |core| {
        let first = CpuSet::first(core)?;
        let (away, queues) = by_place.nearest(locations.of(first)?)?;
        Some((away, first, core, queues))
    };
    let mut local: Vec<(Distance, u32, &CpuSet, &[usize])> =
        cores.filter_map(with_queues).collect();
    // Cores with completions come first, so that their CPUs count when the others are divided.
    local.sort_unstable_by_key(|&(away, first, ..)| (away, first));
    for (away, _, core, queues) in local {
        if away > Distance::Core {
            shares.give_smallest(queues, core.iter());
            continue;
        }
        // Each thread of a core with completions may have its own queue.
        for cpu in core.iter() {
            let own: Vec<usize> = queues
                .iter()
                .copied()
                .filter(|&queue| completions[queue] == cpu)
                .collect();
            shares.give_smallest(if own.is_empty() { queues } else { &own }, [cpu]);
        }
    }
    for (_, node) in far {
        shares.deal(&node.cpus);
    }
    shares
        .0
        .into_iter()
        .map(|cpus| cpus.into_iter().collect())
        .collect()
}

/// Transmit queues by the location of their completions.
#[derive(Default)]
struct QueuesByPlace {
    on_core: BTreeMap<usize, Vec<usize>>,
    in_domain: BTreeMap<(Option<u32>, usize), Vec<usize>>,
    on_node: BTreeMap<Option<u32>, Vec<usize>>,
}

/// The smallest place that a core shares with a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    Core,
    L3Domain,
    Node,
}

impl QueuesByPlace {
    fn new(locations: &Locations, completions: &[u32]) -> Self {
        let mut by_place = Self::default();
        for (queue, &cpu) in completions.iter().enumerate() {
            let Some(place) = locations.of(cpu) else {
                continue;
            };
            by_place.on_core.entry(place.core).or_default().push(queue);
            by_place
                .in_domain
                .entry((place.node, place.domain))
                .or_default()
                .push(queue);
            by_place.on_node.entry(place.node).or_default().push(queue);
        }
        by_place
    }

    /// The queues that complete nearest to a core, by the location of a CPU of it; `None` when none completes on its node.
    fn nearest(
        &self,
        CpuLocation {
            core, domain, node, ..
        }: CpuLocation,
    ) -> Option<(Distance, &[usize])> {
        let on_core = || Some((Distance::Core, self.on_core.get(&core)?));
        let in_domain = || Some((Distance::L3Domain, self.in_domain.get(&(node, domain))?));
        let on_node = || Some((Distance::Node, self.on_node.get(&node)?));
        let (away, queues) = on_core().or_else(in_domain).or_else(on_node)?;
        Some((away, queues))
    }
}

/// The CPUs of each transmit queue so far.
struct Shares(Vec<Vec<u32>>);

impl Shares {
    /// Adds CPUs to the queue with the fewest CPUs.
    fn give_smallest(&mut self, queues: &[usize], cpus: impl IntoIterator<Item = u32>) {
        if let Some(&queue) = queues
            .iter()
            .min_by_key(|&&queue| (self.0[queue].len(), queue))
        {
            self.0[queue].extend(cpus);
        }
    }

    /// Divides CPUs in consecutive pieces so that the shares become as even as possible.
    fn deal(&mut self, cpus: &[u32]) {
        let mut sizes: Vec<usize> = self.0.iter().map(Vec::len).collect();
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

/// The most CPUs of a receive queue's RPS set: more cost more in messages between CPUs than they take off one.
const MOST: usize = 8;

/// The CPUs to which a receive queue may send packets, one for each core, and how many of them it should.
pub(crate) struct Wish {
    scope: Vec<u32>,
    most: usize,
}

impl Wish {
    /// Of a queue that interrupts these CPUs: free cores of their L3 domains if there are two of them, else of their nodes.
    pub(crate) fn new(
        topology: &Topology,
        locations: &Locations,
        free: &CpuSet,
        interrupted: &CpuSet,
        is_slow: bool,
    ) -> Self {
        let first = |core: &CpuSet| core.intersection(free).first();
        let all: Vec<u32> = topology.cores.iter().filter_map(first).collect();
        let own: Vec<CpuLocation> = interrupted
            .iter()
            .filter_map(|cpu| locations.of(cpu))
            .collect();
        let near = |is_near: fn(&CpuLocation, &CpuLocation) -> bool| -> Vec<u32> {
            let fits = |cpu: &u32| {
                let there = locations.of(*cpu);
                there.is_some_and(|there| {
                    own.is_empty() || own.iter().any(|own| is_near(own, &there))
                })
            };
            all.iter().copied().filter(fits).collect()
        };
        let in_domain = near(|a, b| (a.node, a.domain) == (b.node, b.domain));
        Self {
            scope: if in_domain.len() < 2 {
                near(|a, b| a.node == b.node)
            } else {
                in_domain
            },
            most: if is_slow { MOST / 2 } else { MOST },
        }
    }
}

/// Deals cores to receive queues: to each in turn the first of those that the fewest have, two to each, and then what no
/// queue has.
pub(crate) fn rps(locations: &Locations, wishes: &[Wish]) -> Vec<CpuSet> {
    let mut taken = vec![0_usize; locations.cores];
    let core = |cpu: u32| locations.of(cpu).map_or(0, |place| place.core);
    let mut sets = vec![CpuSet::new(); wishes.len()];
    for size in 0..MOST {
        for (wish, set) in wishes.iter().zip(&mut sets) {
            let others = wish.scope.iter().copied().filter(|&cpu| !set.contains(cpu));
            let best = others.min_by_key(|&cpu| (taken[core(cpu)], cpu));
            let fits = |cpu: &u32| size < 2 || taken[core(*cpu)] == 0;
            if let Some(cpu) = best
                .filter(fits)
                .filter(|_| size < wish.most && wish.scope.len() > 1)
            {
                taken[core(cpu)] += 1;
                set.insert(cpu);
            }
        }
    }
    sets
}

/// The `rps_flow_cnt` of each of `queues` receive queues for a flow table of `entries`: the largest power of two that
/// fits, because the kernel rounds up.
pub(crate) fn flow_share(entries: u32, queues: usize) -> u32 {
    let share = entries / u32::try_from(queues.max(1)).unwrap_or(u32::MAX);
    if share == 0 { 1 } else { 1 << share.ilog2() }
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
        let four = xps(&topology, &locations, &[1, 2, 3, 0]);
        assert_eq!(
            shown(&four),
            ["1,4,9,12", "2,5,10,13", "3,6,11,14", "0,7-8,15"]
        );
        // Queues on both L3 domains of node 0: each takes its own domain, and half of node 1.
        assert_eq!(
            shown(&xps(&topology, &locations, &[1, 2])),
            ["0-1,4-5,8-9,12-13", "2-3,6-7,10-11,14-15"]
        );
        assert_eq!(shown(&xps(&topology, &locations, &[5])), ["0-15"]);
        assert!(xps(&topology, &locations, &[]).is_empty());
    }

    #[test]
    fn rps_deals_free_cores_two_to_each_queue_and_then_the_rest() {
        let topology = machine();
        let locations = Locations::new(&topology);
        let set = |text: &str| CpuSet::parse_list(text).unwrap();
        let rps = |free: &str, interrupted: &[&str]| {
            let wish =
                |cpus: &&str| Wish::new(&topology, &locations, &set(free), &set(cpus), false);
            let wishes: Vec<Wish> = interrupted.iter().map(wish).collect();
            shown(&rps(&locations, &wishes))
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
