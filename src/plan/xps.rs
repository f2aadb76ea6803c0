//! XPS of each transmit queue, by the policy: the online CPUs are divided among the queues by where completions arrive
//! (`Documentation/networking/scaling.rst`).

use std::collections::BTreeMap;

use foldhash::HashMap;
use itertools::Itertools as _;

use crate::cpuset::{CpuSet, NodeSet};
use crate::machine::TxQueue;
use crate::machine::netdev::Direction;
use crate::plan::data::PlannedTxQueue;
use crate::plan::place::{CpuLocation, Locations};
use crate::plan::ports::PlacedPort;
use crate::plan::why::{Cause, Why};
use crate::policy::{XPS, Xps};

/// The kernel keeps XPS for each traffic class by itself (`netif_set_xps_queue`).
pub(crate) fn plan(port: &PlacedPort<'_>) -> Vec<PlannedTxQueue> {
    let mut classes: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for tx in &port.interface.tx_queues {
        let class = (&*tx.class, tx.xps_cpus.is_some());
        classes.entry(class).or_default().push(tx);
    }
    classes
        .values()
        .flat_map(|queues| plan_class(port, queues))
        .sorted_unstable_by_key(|tx| tx.queue)
        .collect()
}

/// `queues`: of one traffic class, all with `xps_cpus` or all without.
fn plan_class(port: &PlacedPort<'_>, queues: &[&TxQueue]) -> Vec<PlannedTxQueue> {
    let exists = queues.iter().all(|tx| tx.xps_cpus.is_some());
    let policy = port.choice.get(&XPS);
    let (shares, cause) = match policy {
        // The kernel refuses to read `xps_cpus` of a single queue.
        _ if !exists && port.interface.tx_queues.len() == 1 => (None, Cause::OnlyTxQueue),
        _ if port
            .interface
            .tx_queues
            .iter()
            .all(|tx| tx.xps_cpus.is_none()) =>
        {
            (None, Cause::NoXpsCpus)
        }
        Xps::Auto if port.interface.picks_tx_queue => (None, Cause::DriverPicks),
        _ if !exists => (None, Cause::XpsUnreadable),
        _ if port.skip => (None, port.why_skipped()),
        Xps::Keep => (None, Cause::Kept),
        Xps::Off => (Some(vec![CpuSet::new(); queues.len()]), Cause::Off),
        _ if port.machine.topology.online.len() == 1 => (None, Cause::OneCpu),
        _ if !port.has_placed_queues() => (None, Cause::NoQueuePlaced),
        Xps::Auto | Xps::ReceiveQueues => {
            let completions = queues.iter().map(|tx| port.cpu_of(Direction::Tx, tx.index));
            match completions.collect::<Option<Vec<u32>>>() {
                Some(cpus) => (Some(shares(port.locations, &cpus)), Cause::NearestToQueue),
                None => (None, Cause::CompletionUnknown),
            }
        }
    };
    let without_cpus = if queues.len() > port.machine.topology.online.len() {
        Cause::MoreQueuesThanCpus
    } else {
        Cause::OthersAsNear
    };
    let by_rxqs = policy == Xps::ReceiveQueues && !port.skip && exists;
    let plan = |(at, tx): (usize, &&TxQueue)| {
        let xps_cpus = shares.as_ref().map(|shares| shares[at].clone());
        let cause = match &xps_cpus {
            Some(cpus) if cpus.is_empty() && policy != Xps::Off => &without_cpus,
            _ => &cause,
        };
        let receives = || {
            port.interface
                .rx_queues
                .iter()
                .map(|rx| rx.index)
                .filter(|&rx| rx as usize % queues.len() == at)
                .collect()
        };
        PlannedTxQueue {
            queue: tx.index,
            xps_cpus,
            xps_rxqs: by_rxqs.then(receives),
            why: Why::because(cause.clone()),
        }
    };
    queues.iter().enumerate().map(plan).collect()
}

/// Divides the online CPUs among transmit queues; queue k completes on CPU `completions[k]`. Each CPU is in exactly one
/// set. On nodes with completions, the CPUs of a core go to the nearest queue, of equally near ones to the one with the
/// fewest CPUs; those of each other node are divided evenly among the queues of the nearest one, each share in one
/// piece.
fn shares(locations: &Locations<'_>, completions: &[u32]) -> Vec<CpuSet> {
    let mut shares = vec![CpuSet::new(); completions.len()];
    // Queues by the node, the L3 domain and the core of their completions.
    let mut near: HashMap<_, Vec<usize>> = HashMap::default();
    for (queue, &cpu) in completions.iter().enumerate() {
        for place in locations.of(cpu).into_iter().flat_map(CpuLocation::around) {
            near.entry(place).or_default().push(queue);
        }
    }
    let cores = locations.topology.cores.iter().filter_map(|core| {
        let first = core.first()?;
        let here = locations.of(first)?;
        let queues = |place: (usize, _, _)| Some((place.0, near.get(&place)?));
        let nearest = here.around().into_iter().map_while(queues).last();
        Some((nearest, (here.class, first), core, here.node))
    });
    // Cores with completions come first, so that their CPUs count when the others are divided; then fast ones.
    let cores = cores.sorted_by_key(|&(nearest, class_and_first, ..)| {
        let steps = nearest.map_or(3, |(steps, _)| steps);
        (steps, class_and_first)
    });
    let class = |queue: usize| locations.of(completions[queue]).map(|place| place.class);
    let mut sizes = vec![0; completions.len()];
    let mut give = |queues: &[usize], cpus: &CpuSet| {
        if let Some(&queue) = queues
            .iter()
            .min_by_key(|&&queue| (sizes[queue], class(queue)))
        {
            shares[queue].add(cpus);
            sizes[queue] += cpus.len();
        }
    };
    let mut far: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
    for (nearest, _, core, node) in cores {
        match nearest {
            None => far.entry(node).or_default().extend(core.iter()),
            Some((steps, queues)) if steps > 0 || queues.len() == 1 => give(queues, core),
            // Each thread of a core with completions may have its own queue.
            Some((_, queues)) => {
                for cpu in core.iter() {
                    let own = queues
                        .iter()
                        .copied()
                        .filter(|&queue| completions[queue] == cpu)
                        .collect_vec();
                    let queues = if own.is_empty() { queues } else { &own };
                    give(queues, &CpuSet::single(cpu));
                }
            }
        }
    }
    let node = |cpu: u32| locations.of(cpu)?.node;
    let own = completions.iter().map(|&cpu| node(cpu)).collect_vec();
    let nodes: NodeSet = own.iter().flatten().copied().collect();
    for (from, cpus) in far {
        let distance = |&to: &u32| Some(locations.topology.distance(from?, to));
        let nearest = nodes.iter().min_set_by_key(distance);
        let is_near = |node: &u32| nearest.contains(node);
        let queues = shares
            .iter_mut()
            .zip(&own)
            .filter(|(_, node)| node.as_ref().is_none_or(is_near));
        deal(&cpus, queues.map(|(share, _)| share).collect());
    }
    shares
}

/// Divides CPUs into consecutive pieces, as evenly as possible.
fn deal(cpus: &[u32], shares: Vec<&mut CpuSet>) {
    let mut sizes = shares.iter().map(|share| share.len()).collect_vec();
    let mut left = cpus.len();
    while let (1.., Some(&lowest)) = (left, sizes.iter().min()) {
        for size in sizes.iter_mut().filter(|size| **size == lowest).take(left) {
            *size += 1;
            left -= 1;
        }
    }
    let mut cpus = cpus.iter().copied();
    for (share, size) in shares.into_iter().zip(sizes) {
        let more = size - share.len();
        share.extend(cpus.by_ref().take(more));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Node, Topology};
    use crate::plan::place::tests::two_nodes;

    fn shown(shares: &[CpuSet]) -> Vec<String> {
        shares.iter().map(CpuSet::to_string).collect()
    }

    #[test]
    fn xps_follows_completions_and_parts_all_cpus() {
        let topology = two_nodes();
        let locations = Locations::new(&topology);
        let four = shares(&locations, &[1, 2, 3, 0]);
        assert_eq!(
            shown(&four),
            ["1,4,9,12", "2,5,10,13", "3,6,11,14", "0,7-8,15"]
        );
        // Queues on both L3 domains of node 0: each takes its own domain, and half of node 1.
        assert_eq!(
            shown(&shares(&locations, &[1, 2])),
            ["0-1,4-5,8-9,12-13", "2-3,6-7,10-11,14-15"]
        );
        assert_eq!(shown(&shares(&locations, &[5])), ["0-15"]);
        assert!(shares(&locations, &[]).is_empty());
    }

    #[test]
    fn fast_cores_send_through_queues_of_fast_cores() {
        let mut topology = Topology {
            online: CpuSet::parse_list("0-6").unwrap(),
            possible: 7,
            cores: (0..7).map(CpuSet::single).collect(),
            ..Topology::default()
        };
        let same = shares(&Locations::new(&topology), &[0, 4]);
        assert_eq!(shown(&same), ["0-1,3,6", "2,4-5"]);
        topology.speed_classes = ["4-6", "0-3"]
            .map(|cpus| CpuSet::parse_list(cpus).unwrap())
            .to_vec();
        let fast_first = shares(&Locations::new(&topology), &[0, 4]);
        assert_eq!(shown(&fast_first), ["0,2,6", "1,3-5"]);
    }

    #[test]
    fn cpus_of_a_node_without_completions_send_through_the_nearest_one() {
        let node = |cpus: &str, to: [u32; 3]| Node {
            cpus: CpuSet::parse_list(cpus).unwrap(),
            distances: (0..).zip(to).collect(),
            ..Node::default()
        };
        let topology = Topology {
            online: CpuSet::parse_list("0-5").unwrap(),
            possible: 6,
            cores: (0..6).map(CpuSet::single).collect(),
            nodes: [
                (0, node("0-1", [10, 32, 12])),
                (1, node("2-3", [32, 10, 32])),
                (2, node("4-5", [12, 32, 10])),
            ]
            .into(),
            ..Topology::default()
        };
        let locations = Locations::new(&topology);
        assert_eq!(shown(&shares(&locations, &[0, 2])), ["0-1,4-5", "2-3"]);
        assert_eq!(shown(&shares(&locations, &[2])), ["0-5"]);
    }
}
