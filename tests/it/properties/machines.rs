//! Generated machines of every shape.

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use crate::support::host::{add, machine};
use nicpin::cpuset::CpuSet;
use nicpin::machine::{Channels, Machine, Role, Vector};

/// Machines with one to eight nodes or none at all, cards of every kind, CPUs that are offline or kept free of
/// interrupts, and cores of several speeds.
pub fn machines() -> impl Strategy<Value = Machine> {
    (bare_machines(), vec(cards(), 0..9)).prop_map(|(mut host, cards)| {
        for card in &cards {
            card.add(&mut host);
        }
        host
    })
}

/// [`machines`] with queues that all weigh the same: load decides nothing.
pub fn machines_of_one_weight() -> impl Strategy<Value = Machine> {
    machines().prop_map(of_one_weight)
}

/// Every interface has a port of its own, which can carry as much as it has queues.
pub fn of_one_weight(mut host: Machine) -> Machine {
    for (port, interface) in (0..).zip(&mut host.interfaces) {
        let active = interface.rx_queues.len().max(interface.tx_queues.len());
        let mbps = u32::try_from(active).unwrap() * 1000;
        (interface.port, interface.supported_mbps) = (port, Some(mbps));
    }
    host
}

/// [`machines`] with one card, all of whose queues are in use.
pub fn machines_with_one_card() -> impl Strategy<Value = Machine> {
    (bare_machines(), 0_u32..8, 1_u32..64).prop_map(|(mut host, node, queues)| {
        add(&mut host, "eth0", Some(node), queues);
        host
    })
}

#[derive(Debug, Clone)]
struct RandomCard {
    node: Option<u32>,
    queues: u32,
    pcie: u64,
    idle: u32,
    split: bool,
    /// Channels that the device can have in addition; `None`: unknown.
    more: Option<u32>,
    is_virtual: bool,
}

fn cards() -> impl Strategy<Value = RandomCard> {
    let queues = prop_oneof![1_u32..5, 1_u32..24];
    let more = proptest::option::weighted(0.8, prop_oneof![Just(0_u32), 0_u32..3]);
    let card = (
        proptest::option::weighted(0.8, 0_u32..9),
        queues,
        0_u64..4,
        0_u32..3,
        any::<bool>(),
        more,
        0..8,
    );
    card.prop_map(|(node, queues, pcie, idle, split, more, kind)| RandomCard {
        node,
        queues,
        pcie,
        idle,
        split,
        more,
        is_virtual: kind == 0,
    })
}

impl RandomCard {
    fn add(&self, host: &mut Machine) {
        add(
            host,
            &format!("eth{}", host.interfaces.len()),
            self.node,
            self.queues,
        );
        let interface = host.interfaces.last_mut().unwrap();
        interface.device.pcie_mtps = self.pcie * 8000;
        let active = self.queues.saturating_sub(self.idle).max(1) as usize;
        interface.rx_queues.truncate(active);
        interface.tx_queues.truncate(active);
        let combined = u32::try_from(active).unwrap();
        interface.channels = self.more.map(|more| Channels {
            combined,
            max_combined: combined + more,
            ..Channels::default()
        });
        interface.device.parent = self.is_virtual.then(|| "0000:00:1f.0".to_owned());
        if self.split {
            let tx = interface.vectors.iter().map(|v| Vector {
                irq: v.irq + 150,
                role: Role::Tx,
                ..v.clone()
            });
            let tx: Vec<_> = tx.collect();
            interface.vectors.iter_mut().for_each(|v| v.role = Role::Rx);
            interface.vectors.extend(tx);
        }
    }
}

fn bare_machines() -> impl Strategy<Value = Machine> {
    let shape = (0_u32..9, 1_u32..9, 1_u32..3, 1_u32..5);
    let cpus =
        |most| btree_set(0_u32..128, 0..most).prop_map(|cpus| cpus.into_iter().collect::<CpuSet>());
    let speeds = prop_oneof![Just(Vec::new()), vec(0_usize..3, 1..72)];
    (shape, cpus(12), cpus(8), cpus(6), speeds, any::<bool>()).prop_map(
        |((nodes, cores, threads, per_l3), isolated, nohz_full, offline, speeds, by_domain)| {
            let mut host = machine(nodes.max(1), cores, threads, per_l3);
            if nodes == 0 {
                host.topology.nodes.clear();
            }
            take_offline(&mut host, &offline);
            let topology = &mut host.topology;
            topology.isolated = isolated.intersection(&topology.online);
            topology.nohz_full = nohz_full.intersection(&topology.online);
            set_speeds(&mut host, &speeds, by_domain);
            host
        },
    )
}

/// Any size and numbering: up to 4,096 CPUs on up to 32 nodes, with up to 32 cards.
pub fn large_machines() -> impl Strategy<Value = Machine> {
    let shape = (
        0_u32..33,
        1_u32..65,
        1_u32..5,
        1_u32..17,
        0_usize..33,
        any::<u32>(),
    );
    shape.prop_map(|(nodes, cores, threads, per_l3, cards, seed)| {
        let cores = (4096 / threads)
            .checked_div(nodes)
            .map_or(cores * 4, |most| cores.min(most));
        let mut host = machine(nodes.max(1), cores.max(1), threads, per_l3);
        let mut random = seed;
        let mut next = |end: u32| {
            // A linear congruential generator: the same machine for the same seed.
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) % end
        };
        let end = host.topology.possible;
        let mut names: Vec<u32> = (0..end).collect();
        for at in (1..end).rev() {
            names.swap(at as usize, next(at + 1) as usize);
        }
        renumber(&mut host, &names);
        if nodes == 0 {
            host.topology.nodes.clear();
        }
        take_offline(&mut host, &(0..end / 8).map(|_| next(end)).collect());
        let mut some = |part: u32| {
            let cpus: CpuSet = (0..end / part).map(|_| next(end)).collect();
            cpus.intersection(&host.topology.online)
        };
        (host.topology.isolated, host.topology.nohz_full) = (some(8), some(16));
        let speeds: Vec<usize> = (0..next(64)).map(|_| next(3) as usize).collect();
        set_speeds(&mut host, &speeds, next(2) == 0);
        for at in 0..cards {
            let node = Some(next(nodes + 2)).filter(|&node| node <= nodes);
            // With all CPUs as candidates, each queue takes the planner longer.
            let most = if node.is_some_and(|node| node < nodes) {
                64
            } else {
                8
            };
            add(&mut host, &format!("eth{at}"), node, 1 + next(most));
            host.interfaces[at].device.pcie_mtps = u64::from(next(4)) * 8000;
        }
        host
    })
}

/// The cores have these speeds in turn, or all cores of an L3 domain the same one, if that makes several kinds.
fn set_speeds(host: &mut Machine, speeds: &[usize], by_domain: bool) {
    let topology = &mut host.topology;
    let mut classes = vec![CpuSet::new(); 3];
    let groups = if by_domain {
        &topology.l3_domains
    } else {
        &topology.cores
    };
    for (group, &class) in groups.iter().zip(speeds.iter().cycle()) {
        classes[class].add(group);
    }
    classes.retain(|class| !class.is_empty());
    if classes.len() > 1 {
        topology.speed_classes = classes;
    }
}

fn renumber(host: &mut Machine, names: &[u32]) {
    let topology = &mut host.topology;
    let sets = topology.cores.iter_mut().chain(&mut topology.l3_domains);
    for set in sets.chain(topology.nodes.values_mut().map(|node| &mut node.cpus)) {
        *set = set.iter().map(|cpu| names[cpu as usize]).collect();
    }
    topology.cores.sort_by_key(CpuSet::first);
    topology.l3_domains.sort_by_key(CpuSet::first);
}

/// At least one CPU stays online.
fn take_offline(host: &mut Machine, offline: &CpuSet) {
    let topology = &mut host.topology;
    let left = topology.online.difference(offline);
    if left.is_empty() {
        return;
    }
    topology.online = left.clone();
    for set in topology.cores.iter_mut().chain(&mut topology.l3_domains) {
        *set = set.intersection(&left);
    }
    topology.cores.retain(|core| !core.is_empty());
    topology.l3_domains.retain(|domain| !domain.is_empty());
    for node in topology.nodes.values_mut() {
        node.cpus = node.cpus.intersection(&left);
    }
}
