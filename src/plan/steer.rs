//! CPU sets for RPS and XPS, and flow counts for RFS, that match the vectors.
//!
//! RPS makes up for missing hardware receive queues. XPS divides the online CPUs among the transmit queues by where
//! completions arrive (`Documentation/networking/scaling.rst`).

use std::collections::{BTreeMap, BTreeSet};

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

/// Divides free cores among receive queues; queue k interrupts the CPUs `interrupted[k]`. Queues take turns, each takes
/// the nearest core that is left.
pub(crate) fn rps(
    topology: &Topology,
    locations: &Locations,
    free: &CpuSet,
    interrupted: &[CpuSet],
) -> Vec<CpuSet> {
    // A core's first free CPU stands for it.
    let cores = topology.cores.iter().map(|core| core.intersection(free));
    let cores: BTreeMap<u32, CpuSet> = cores
        .filter_map(|core| Some((core.first()?, core)))
        .collect();
    let mut left: CpuSet = cores.keys().copied().collect();
    let places = CandidatesByPlace::new(locations, &left);
    let near: Vec<Nearest> = interrupted
        .iter()
        .take(left.len())
        .map(|own| places.nearest(locations, own))
        .collect();
    let mut sets = vec![CpuSet::new(); interrupted.len()];
    let mut turns = (0..near.len()).cycle();
    while let (false, Some(queue)) = (left.is_empty(), turns.next()) {
        let Some(first) = near[queue].first(topology, &places, &left) else {
            break;
        };
        if let Some(core) = cores.get(&first) {
            sets[queue].add(core);
        }
        left = left.difference(&CpuSet::single(first));
    }
    sets
}

/// Candidate CPUs by their location.
#[derive(Default)]
struct CandidatesByPlace {
    on_core: BTreeMap<usize, CpuSet>,
    in_domain: BTreeMap<(Option<u32>, usize), CpuSet>,
    on_node: BTreeMap<Option<u32>, CpuSet>,
}

/// The candidate CPUs near some CPUs.
struct Nearest {
    /// The CPUs themselves, those of their cores, of their L3 domains, of their nodes.
    tiers: [CpuSet; 4],
    /// The nodes of those CPUs.
    nodes: BTreeSet<Option<u32>>,
}

impl CandidatesByPlace {
    fn new(locations: &Locations, candidates: &CpuSet) -> Self {
        let mut places = Self::default();
        for cpu in candidates.iter() {
            let Some(place) = locations.of(cpu) else {
                continue;
            };
            places.on_core.entry(place.core).or_default().insert(cpu);
            places
                .in_domain
                .entry((place.node, place.domain))
                .or_default()
                .insert(cpu);
            places.on_node.entry(place.node).or_default().insert(cpu);
        }
        places
    }

    fn nearest(&self, locations: &Locations, own: &CpuSet) -> Nearest {
        let places: Vec<CpuLocation> = own.iter().filter_map(|cpu| locations.of(cpu)).collect();
        let cores: BTreeSet<usize> = places.iter().map(|place| place.core).collect();
        let domains: BTreeSet<_> = places
            .iter()
            .map(|place| (place.node, place.domain))
            .collect();
        let nodes: BTreeSet<Option<u32>> = places.iter().map(|place| place.node).collect();
        let tiers = [
            own.clone(),
            CpuSet::union_of(cores.iter().filter_map(|core| self.on_core.get(core))),
            CpuSet::union_of(
                domains
                    .iter()
                    .filter_map(|domain| self.in_domain.get(domain)),
            ),
            CpuSet::union_of(nodes.iter().filter_map(|node| self.on_node.get(node))),
        ];
        Nearest { tiers, nodes }
    }
}

impl Nearest {
    /// The first of the nearest CPUs that are left; of any without CPUs to be near to.
    fn first(&self, topology: &Topology, places: &CandidatesByPlace, left: &CpuSet) -> Option<u32> {
        if self.tiers[0].is_empty() {
            return left.first();
        }
        if let Some(cpu) = self
            .tiers
            .iter()
            .find_map(|tier| tier.intersection(left).first())
        {
            return Some(cpu);
        }
        let away = |from: Option<u32>, to: Option<u32>| Some(topology.distance(from?, to?));
        let farther = places.on_node.iter().filter_map(|(node, cpus)| {
            let first = cpus.intersection(left).first()?;
            let away = self
                .nodes
                .iter()
                .filter_map(|from| away(*from, *node))
                .min();
            Some((away.unwrap_or(u32::MAX), first))
        });
        farther.min().map(|(_, cpu)| cpu).or_else(|| left.first())
    }
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

    /// The distance between CPUs: 0 the same CPU, 1 the same core, 2 the same L3 domain, 3 the same node, else 4 plus the
    /// distance of the nodes.
    fn distance(topology: &Topology, locations: &Locations, from: u32, to: u32) -> u32 {
        if from == to {
            return 0;
        }
        let (Some(a), Some(b)) = (locations.of(from), locations.of(to)) else {
            return u32::MAX;
        };
        match (a.node, b.node) {
            _ if a.core == b.core => 1,
            (a_node, b_node) if a_node == b_node => 3 - u32::from(a.domain == b.domain),
            (Some(a), Some(b)) => 4 + topology.distance(a, b),
            _ => u32::MAX,
        }
    }

    /// The rule of [`rps`] word by word: each queue in turn takes the nearest core that is left.
    fn by_turns(
        topology: &Topology,
        locations: &Locations,
        free: &CpuSet,
        interrupted: &[CpuSet],
    ) -> Vec<CpuSet> {
        let cores = topology.cores.iter().map(|core| core.intersection(free));
        let mut left: Vec<CpuSet> = cores.filter(|core| !core.is_empty()).collect();
        let mut sets = vec![CpuSet::new(); interrupted.len()];
        let mut turns = (0..interrupted.len()).cycle();
        while let (false, Some(queue)) = (left.is_empty(), turns.next()) {
            let away = |core: &CpuSet| {
                let to = core.first().unwrap();
                interrupted[queue]
                    .iter()
                    .map(|from| distance(topology, locations, from, to))
                    .min()
            };
            let nearest = (0..left.len())
                .min_by_key(|&at| (away(&left[at]), left[at].first()))
                .unwrap();
            sets[queue].add(&left.remove(nearest));
        }
        sets
    }

    proptest::proptest! {
        #[test]
        fn queues_take_the_nearest_cores_in_turn(
            candidates in proptest::collection::btree_set(0_u32..16, 0..16),
            interrupted in proptest::collection::vec(proptest::collection::btree_set(0_u32..18, 0..4), 0..5),
        ) {
            let machine = machine();
            let locations = Locations::new(&machine);
            let candidates: CpuSet = candidates.into_iter().collect();
            let interrupted: Vec<CpuSet> = interrupted.into_iter().map(|cpus| cpus.into_iter().collect()).collect();
            proptest::prop_assert_eq!(
                rps(&machine, &locations, &candidates, &interrupted),
                by_turns(&machine, &locations, &candidates, &interrupted)
            );
        }
    }

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
    fn rps_parts_whole_cores_the_nearest_first() {
        let topology = machine();
        let locations = Locations::new(&topology);
        let set = |text: &str| CpuSet::parse_list(text).unwrap();
        let rps = |free: &str, interrupted: &[CpuSet]| {
            shown(&rps(&topology, &locations, &set(free), interrupted))
        };
        // The cores 0, 1 and 2, 3 share a cache each.
        assert_eq!(rps("0,3,8,11", &[set("2"), set("1")]), ["3,11", "0,8"]);
        assert_eq!(rps("0,2-3,8,10-11", &[set("1")]), ["0,2-3,8,10-11"]);
        assert_eq!(rps("3,11", &[set("2"), set("1")]), ["3,11", ""]);
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
