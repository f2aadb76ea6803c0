//! RPS, XPS and RFS in step with the vectors.
//!
//! RPS stands in for receive queues that a card does not have. XPS parts the online CPUs among the transmit
//! queues by where completions arrive (`Documentation/networking/scaling.rst`).

use std::collections::BTreeMap;

use crate::cpuset::CpuSet;
use crate::host::Topology;
use crate::plan::place::Places;

/// How far one CPU is from another: 0 itself, 1 its core, 2 its L3 domain, 3 its node, beyond that by the
/// distance of the nodes.
pub(crate) fn distance(topology: &Topology, places: &Places, from: u32, to: u32) -> u32 {
    if from == to {
        return 0;
    }
    let (Some(a), Some(b)) = (places.of(from), places.of(to)) else { return u32::MAX };
    match (a.node, b.node) {
        _ if a.core == b.core => 1,
        (a_node, b_node) if a_node == b_node => 3 - u32::from(a.domain == b.domain),
        (Some(a), Some(b)) => 4 + topology.distance(a, b),
        _ => u32::MAX,
    }
}

/// Parts the online CPUs among transmit queues, of which queue k completes on CPU `completions[k]`. Every CPU
/// is in exactly one set of the answer. On the nodes that have completions a core's CPUs go to the
/// nearest queue, the one with fewer CPUs among equals; the CPUs of other nodes are dealt evenly, each queue's
/// share in one piece.
pub(crate) fn xps(topology: &Topology, places: &Places, completions: &[u32]) -> Vec<CpuSet> {
    let mut shares = vec![CpuSet::new(); completions.len()];
    if completions.is_empty() {
        return shares;
    }
    let node_of = |cpu: u32| places.of(cpu).and_then(|place| place.node);
    let near: Vec<Option<u32>> = completions.iter().map(|&cpu| node_of(cpu)).collect();
    let mut remote: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
    let mut local: Vec<(u32, &CpuSet)> = Vec::new();
    for core in &topology.cores {
        let Some(first) = core.first() else { continue };
        if near.contains(&node_of(first)) {
            let away = |&to: &u32| core.iter().map(|cpu| distance(topology, places, cpu, to)).min();
            local.push((completions.iter().filter_map(away).min().unwrap_or(u32::MAX), core));
        } else {
            remote.entry(node_of(first)).or_default().extend(core.iter());
        }
    }
    // Cores that take completions first, so that what they hold counts when the others are dealt.
    local.sort_by_key(|&(away, core)| (away, core.first()));
    for (away, core) in local {
        if away <= 1 {
            for cpu in core.iter() {
                let queue = nearest(topology, places, completions, &shares, cpu);
                shares[queue].insert(cpu);
            }
        } else if let Some(first) = core.first() {
            let queue = nearest(topology, places, completions, &shares, first);
            shares[queue].extend(core.iter());
        }
    }
    for cpus in remote.into_values() {
        deal(&mut shares, &cpus);
    }
    shares
}

/// The queue that completes nearest to a CPU; among equals the one with fewer CPUs so far.
fn nearest(topology: &Topology, places: &Places, completions: &[u32], shares: &[CpuSet], cpu: u32) -> usize {
    let away = |queue: usize| distance(topology, places, cpu, completions[queue]);
    (0..completions.len()).min_by_key(|&queue| (away(queue), shares[queue].len(), queue)).unwrap_or(0)
}

/// Deals CPUs in consecutive pieces so that the shares end up as even as they can.
fn deal(shares: &mut [CpuSet], cpus: &[u32]) {
    let mut sizes: Vec<usize> = shares.iter().map(CpuSet::len).collect();
    let mut pieces = vec![0_usize; shares.len()];
    for _ in cpus {
        if let Some(queue) = (0..sizes.len()).min_by_key(|&queue| (sizes[queue], queue)) {
            sizes[queue] += 1;
            pieces[queue] += 1;
        }
    }
    let mut rest = cpus;
    for (share, piece) in shares.iter_mut().zip(pieces) {
        let (own, after) = rest.split_at(piece);
        share.extend(own.iter().copied());
        rest = after;
    }
}

/// Parts the candidate CPUs among receive queues, of which queue k is interrupted on the CPUs
/// `interrupted[k]`. Queues choose in turn, each the CPU nearest to it that is left. Interrupted CPUs are dealt
/// only when there are no others.
pub(crate) fn rps(
    topology: &Topology,
    places: &Places,
    candidates: &CpuSet,
    interrupted: &[CpuSet],
) -> Vec<CpuSet> {
    let mut shares = vec![CpuSet::new(); interrupted.len()];
    let busy = interrupted.iter().fold(CpuSet::new(), |all, cpus| all.union(cpus));
    let mut left = candidates.difference(&busy);
    if left.is_empty() {
        left.clone_from(candidates);
    }
    let mut turns = (0..interrupted.len()).cycle();
    while let (false, Some(queue)) = (left.is_empty(), turns.next()) {
        let own = &interrupted[queue];
        let away = |cpu: u32| own.iter().map(|from| distance(topology, places, from, cpu)).min().unwrap_or(0);
        if let Some(cpu) = left.iter().min_by_key(|&cpu| (away(cpu), cpu)) {
            shares[queue].insert(cpu);
            left = left.difference(&CpuSet::single(cpu));
        }
    }
    shares
}

/// A queue's share of a flow table of `entries` over `queues` receive queues: the largest power of two that
/// fits, since the kernel rounds up.
pub(crate) fn flow_share(entries: u32, queues: usize) -> u32 {
    let share = entries / u32::try_from(queues.max(1)).unwrap_or(u32::MAX);
    if share == 0 { 1 } else { 1 << share.ilog2() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Node;

    /// Two nodes of four cores, two threads each: CPUs n and n+8 are siblings, node 0 has 0-3 and 8-11.
    fn machine() -> Topology {
        let set = |text: &str| CpuSet::parse_list(text).unwrap();
        let node = |cpus: &str| Node { cpus: set(cpus), distances: BTreeMap::new() };
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
        let places = Places::new(&topology);
        let four = xps(&topology, &places, &[1, 2, 3, 0]);
        assert_eq!(shown(&four), ["1,4,9,12", "2,5,10,13", "3,6,11,14", "0,7-8,15"]);
        // Queues on both L3 domains of node 0: each takes its own domain, and half of node 1.
        assert_eq!(shown(&xps(&topology, &places, &[1, 2])), ["0-1,4-5,8-9,12-13", "2-3,6-7,10-11,14-15"]);
        assert_eq!(shown(&xps(&topology, &places, &[5])), ["0-15"]);
        assert!(xps(&topology, &places, &[]).is_empty());
    }

    #[test]
    fn rps_shares_are_even_near_and_without_the_interrupted_cpu() {
        let topology = machine();
        let places = Places::new(&topology);
        let set = |text: &str| CpuSet::parse_list(text).unwrap();
        let node0 = set("0-3,8-11");
        assert_eq!(shown(&rps(&topology, &places, &node0, &[set("1"), set("2")])), ["0,8-9", "3,10-11"]);
        assert_eq!(shown(&rps(&topology, &places, &node0, &[set("1")])), ["0,2-3,8-11"]);
        // Only the interrupted CPU is left: better that one than none.
        assert_eq!(shown(&rps(&topology, &places, &set("1"), &[set("1")])), ["1"]);
    }

    #[test]
    fn flow_shares_never_add_up_to_more_than_the_table() {
        for (entries, queues, expected) in
            [(32768, 16, 2048), (32768, 12, 2048), (32768, 1, 32768), (4, 8, 1)]
        {
            assert_eq!(flow_share(entries, queues), expected, "{entries}/{queues}");
        }
    }
}
