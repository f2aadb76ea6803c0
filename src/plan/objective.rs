//! What makes a plan good: measures, in the order in which they count. The placement minimises them, and `status` and
//! `plan` show them, now and planned.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use serde::{Deserialize, Serialize};

use crate::machine::{Interface, Machine};

/// What a measure counts, and how much of it there is.
pub type Measure = (&'static str, fn(&Score) -> u64);

/// The measures, the first one first: a later one decides only between plans that all before it find equal. Less
/// is better.
pub const MEASURES: [Measure; 7] = [
    ("IRQs on the wrong CPUs", |score| score.outside as u64),
    ("queues on the busiest core", |score| {
        score.max_vectors_per_core as u64
    }),
    ("Mbit/s on the busiest core", |score| {
        score.max_load_kbps / 1000
    }),
    ("pairs of queues that share a core", |score| {
        score.pairs_on_cores
    }),
    ("first queues on one core", |score| {
        score.max_first_queues_per_core as u64
    }),
    ("queues unevenly spread over a core's threads", |score| {
        score.above_even_threads as u64
    }),
    ("CPUs that send through a farther node", |score| {
        score.far_senders as u64
    }),
];

/// How good a plan, or the current state, is: the measures, and what is only shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Share of active queue vectors on the local node, 0 to 1; `None` when no node is known.
    pub local: Option<f64>,
    /// Active queue vectors outside their candidate CPUs, which are neither offline nor, while there are others, isolated.
    pub outside: usize,
    /// Most active queues on one core. A queue's receive and transmit vectors on one CPU count once.
    pub max_vectors_per_core: usize,
    /// The largest load of a core, in what its queues' ports can carry.
    pub max_load_kbps: u64,
    /// Pairs of active queues that share a core.
    pub pairs_on_cores: u64,
    /// Most interfaces whose queue 0 is on one core.
    pub max_first_queues_per_core: usize,
    /// Queues that a CPU has beyond an even share of those of its core.
    pub above_even_threads: usize,
    /// Online CPUs whose transmit queue completes on a farther node than need be, of each interface.
    pub far_senders: usize,
    /// Vectors on isolated or `nohz_full` CPUs, or on exclusive ones that the policy leaves out; idle ones do not count.
    pub on_isolated: usize,
    /// The RDMA vectors, which count in no other figure but `on_isolated`; absent when there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdma: Option<RdmaScore>,
}

/// How well RDMA vectors are placed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RdmaScore {
    /// All of them.
    pub vectors: usize,
    /// Those on the local node.
    pub local: usize,
    /// Most of them on one core.
    pub max_per_core: usize,
}

/// The pairs of queues on a core that has so many.
pub(crate) fn pairs(queues: usize) -> u64 {
    (queues * queues.saturating_sub(1) / 2) as u64
}

/// The weight of a queue of each interface, in kbit/s: what its port can carry, divided by the queues in use of all
/// functions of that port. The speed of a link comes late, and goes with the carrier: it counts only where neither link
/// modes nor the width of the bus are known, as in some virtual machines; without any of these a queue weighs next to nothing,
/// so that no Mbit/s are shown.
pub(crate) fn weights(machine: &Machine) -> Vec<u64> {
    let port = |interface: &Interface| {
        let device = &interface.device;
        let function = device.parent.as_ref().unwrap_or(&device.address);
        (function.clone(), interface.port)
    };
    let mut ports: BTreeMap<(String, u32), [u64; 4]> = BTreeMap::new();
    for interface in &machine.interfaces {
        let [supported, pcie, speed, queues] = ports.entry(port(interface)).or_default();
        *supported = (*supported).max(interface.supported_mbps.unwrap_or(0).into());
        *pcie = (*pcie).max(interface.device.pcie_mtps);
        *speed = (*speed).max(interface.speed_mbps.unwrap_or(0).into());
        *queues += interface.active_queues() as u64;
    }
    // The ports of a card are functions of one slot, or ports of one function.
    let card = |function: &str| function.split('.').next().unwrap_or(function).to_owned();
    let on_card = ports.keys().counts_by(|(function, _)| card(function));
    machine
        .interfaces
        .iter()
        .map(|interface| {
            let port = port(interface);
            let [supported, pcie, speed, queues] = ports[&port];
            let carries = [supported, pcie / on_card[&card(&port.0)] as u64, speed]
                .into_iter()
                .find(|&mbps| mbps > 0)
                .unwrap_or(0);
            (carries.min(u32::MAX.into()) * 1000 / queues.max(1)).max(1)
        })
        .collect()
}
