//! Measures of a plan, in the order in which they count. The placement minimises them; `status` and `plan` show them,
//! now and planned.

use std::collections::BTreeMap;

use itertools::{Itertools as _, chain};
use serde::{Deserialize, Serialize, Serializer};

use crate::machine::{Interface, Machine};

/// A measure of a state of the machine. Less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    // The measures of the objective, in its order.
    Outside,
    BusiestQueues,
    /// Mbit/s on the busiest core, by the capacity of ports.
    BusiestLoad,
    Pairs,
    /// For each interface, its queues on the core that takes most of them above an even share: not all interfaces are
    /// busy at once.
    UnevenCores,
    FirstQueues,
    UnevenThreads,
    FarSenders,

    // Measures that are only shown.
    Remote,
    Isolated,
    /// The load of the busiest core in percent of the total, by the speeds of ports.
    BusiestShare,
    RemoteRdma,
    BusiestRdma,
    /// CPUs that have no transmit queue of their own, or several.
    SharedSenders,
    /// Receive queues whose RPS is not as good as planned.
    OtherRps,
    /// Requested settings that do not hold the requested value.
    Requested,
}

use Measure::{
    BusiestLoad, BusiestQueues, BusiestRdma, BusiestShare, FarSenders, FirstQueues, Isolated,
    OtherRps, Outside, Pairs, Remote, RemoteRdma, Requested, SharedSenders, UnevenCores,
    UnevenThreads,
};

impl Measure {
    /// The measures of the objective, in its order: a measure decides only between plans for which all earlier ones are
    /// equal.
    pub const OBJECTIVE: [Self; 8] = [
        Outside,
        BusiestQueues,
        BusiestLoad,
        Pairs,
        UnevenCores,
        FirstQueues,
        UnevenThreads,
        FarSenders,
    ];

    /// The measures of which none may get worse in a plan that is as good: those of the objective, and others that are
    /// only shown.
    pub(crate) fn compared() -> impl Iterator<Item = Self> {
        chain(Self::OBJECTIVE, [Remote, Isolated, RemoteRdma, BusiestRdma])
    }

    pub fn name(self) -> &'static str {
        match self {
            Outside => "IRQs outside the allowed CPUs",
            BusiestQueues => "queues on the busiest core",
            BusiestLoad => "Mbit/s on the busiest core",
            Pairs => "pairs of queues that share a core",
            UnevenCores => "queues unevenly spread over an interface's cores",
            FirstQueues => "queues 0 on one core",
            UnevenThreads => "queues unevenly spread over a core's threads",
            FarSenders => "CPUs that send through a farther node",
            Remote => "IRQs on another node",
            Isolated => "IRQs on isolated CPUs",
            BusiestShare => "the busiest core's share of what the ports can carry",
            RemoteRdma => "RDMA IRQs off the local node",
            BusiestRdma => "RDMA IRQs on the busiest core",
            SharedSenders => "CPUs not assigned to one tx queue",
            OtherRps => "receive queues without the planned RPS",
            Requested => "settings not as requested",
        }
    }
}

impl Serialize for Measure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The measures of the objective, and others that are only shown, of a plan or the current state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Share of active queue vectors on the local node, 0 to 1; `None` if no node is known.
    pub local: Option<f64>,
    /// Active queue vectors outside their candidate CPUs.
    pub outside: usize,
    /// Most active queues on one core. A queue's receive and transmit vectors on one CPU count once.
    pub max_vectors_per_core: usize,
    pub max_load_kbps: u64,
    pub pairs_on_cores: u64,
    /// Sum over the interfaces: queues on the core with most of them, above an even share of the candidate cores.
    #[serde(default)]
    pub above_even_cores: usize,
    pub max_first_queues_per_core: usize,
    /// Queues of a CPU beyond an even share of its core's.
    pub above_even_threads: usize,
    /// For each interface, online CPUs that send through a queue on a farther node than necessary.
    pub far_senders: usize,
    /// Vectors on another node than their device's, RDMA included; vectors with an unknown node do not count.
    #[serde(default)]
    pub remote: usize,
    /// `None` if the speed of a port in use is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_speed: Option<LoadAtSpeed>,
    /// Vectors on isolated or `nohz_full` CPUs, or on exclusive ones that the policy leaves out, without idle ones.
    pub on_isolated: usize,
    /// Absent if there are none. These vectors count in `remote` and `on_isolated`, and nowhere else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdma: Option<RdmaScore>,
}

/// A load at the speeds that ports report, or can have if they report none. The plan does not depend on it: a speed
/// appears late, and vanishes with the carrier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadAtSpeed {
    pub busiest_kbps: u64,
    pub all_kbps: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RdmaScore {
    pub vectors: usize,
    pub local: usize,
    pub max_per_core: usize,
}

impl Score {
    /// The value of a measure; 0 for measures of single interfaces, and if it is unknown.
    pub fn of(&self, measure: Measure) -> u64 {
        let rdma = self.rdma.clone().unwrap_or_default();
        let count = match measure {
            Outside => self.outside,
            BusiestQueues => self.max_vectors_per_core,
            BusiestLoad => return self.max_load_kbps / 1000,
            Pairs => return self.pairs_on_cores,
            UnevenCores => self.above_even_cores,
            FirstQueues => self.max_first_queues_per_core,
            UnevenThreads => self.above_even_threads,
            FarSenders => self.far_senders,
            Remote => self.remote,
            Isolated => self.on_isolated,
            BusiestShare => {
                let load = self.at_speed.unwrap_or_default();
                return load.busiest_kbps * 100 / load.all_kbps.max(1);
            }
            RemoteRdma => rdma.vectors - rdma.local,
            BusiestRdma => rdma.max_per_core,
            SharedSenders | OtherRps | Requested => 0,
        };
        count as u64
    }
}

pub(crate) fn pairs(queues: usize) -> u64 {
    (queues * queues.saturating_sub(1) / 2) as u64
}

/// The weight of a queue in kbit/s: the capacity of its port, divided by the queues of all functions of the port, in
/// use or once they are up.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weight {
    /// By link modes, else the width of the bus, else, as in some virtual machines, the speed of the link. A port
    /// without any of these is taken for the slowest known one.
    pub(crate) planned: u64,
    /// By the port's speed, or its fastest link mode if it reports none.
    pub(crate) at_speed: Option<u64>,
}

/// What the interfaces of a port report.
#[derive(Default)]
struct PortCapacity {
    supported_mbps: u64,
    pcie_mtps: u64,
    speed_mbps: u64,
    queues: u64,
}

pub(crate) fn weights(machine: &Machine) -> Vec<Weight> {
    let port_id = |interface: &Interface| {
        let device = &interface.device;
        (
            device.parent.as_ref().unwrap_or(&device.address).clone(),
            interface.port,
        )
    };
    let mut ports: BTreeMap<(String, u32), PortCapacity> = BTreeMap::new();
    for interface in &machine.interfaces {
        let port = ports.entry(port_id(interface)).or_default();
        let supported = interface.supported_mbps.unwrap_or(0).into();
        port.supported_mbps = port.supported_mbps.max(supported);
        port.pcie_mtps = port.pcie_mtps.max(interface.device.pcie_mtps);
        let speed = interface.speed_mbps.unwrap_or(0).into();
        port.speed_mbps = port.speed_mbps.max(speed);
        port.queues += interface.queues_when_up() as u64;
    }
    // The ports of a card are functions of one slot, or ports of one function.
    let card = |function: &str| function.split('.').next().unwrap_or(function).to_owned();
    let on_card = ports.keys().counts_by(|(function, _)| card(function));
    let known = |mbps: &u64| *mbps > 0;
    let carries = |id: &(String, u32)| {
        let port = &ports[id];
        let pcie = port.pcie_mtps / on_card[&card(&id.0)] as u64;
        [port.supported_mbps, pcie, port.speed_mbps]
            .into_iter()
            .find(known)
    };
    let slowest = ports.keys().filter_map(carries).min().unwrap_or(0);
    machine
        .interfaces
        .iter()
        .map(|interface| {
            let id = port_id(interface);
            let port = &ports[&id];
            let of_queue =
                |mbps: u64| (mbps.min(u32::MAX.into()) * 1000 / port.queues.max(1)).max(1);
            let speeds = [port.speed_mbps, port.supported_mbps];
            Weight {
                planned: of_queue(carries(&id).unwrap_or(slowest)),
                at_speed: speeds.into_iter().find(known).map(of_queue),
            }
        })
        .collect()
}
