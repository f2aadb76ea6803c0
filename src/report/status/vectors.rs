//! One vector: planned, allowed, effective, and where its interrupts were seen to arrive.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cpuset::CpuSet;
use crate::machine::growth::Growth;
use crate::machine::{Machine, Role, Topology};
use crate::plan::{PlannedInterface, PlannedVector};

/// A vector.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VectorStatus {
    /// Its IRQ number now.
    pub irq: u32,
    /// Its handler's name.
    pub action: String,
    /// What it does.
    pub role: Role,
    /// Its queue; `None` for a control vector.
    pub queue: Option<u32>,
    /// Whether the queue is not in use.
    pub idle: bool,
    /// Where the plan wants it; `None`: left alone.
    pub planned: Option<CpuSet>,
    /// Where the kernel may deliver it (`smp_affinity`).
    pub affinity: CpuSet,
    /// Where the kernel delivers it (`effective_affinity`); `None` where it does not tell.
    pub effective: Option<CpuSet>,
    /// The node that serves it; `None` where that is not one node.
    pub node: Option<u32>,
    /// Whether that is the interface's; `None` when its node is not known.
    pub local: Option<bool>,
    /// Whether an isolated or `nohz_full` CPU serves it.
    pub on_isolated: bool,
    /// Interrupts a second while they were watched.
    pub per_second: Option<f64>,
    /// The CPUs that they arrived on.
    pub arrived: Option<CpuSet>,
    /// How it is doing.
    pub state: VectorState,
    /// Why it is not as planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// How a vector is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VectorState {
    /// Allowed where planned, and served there as far as the kernel tells.
    AsPlanned,
    /// Nothing is planned for it.
    LeftAlone,
    /// The kernel does not let it be moved.
    Unmovable,
    /// Allowed where planned; the kernel moves it at its next interrupt.
    Pending,
    /// As planned, and interrupts arrived on other CPUs all the same.
    Elsewhere,
    /// Allowed on other CPUs than planned.
    Drift,
}

impl VectorStatus {
    /// Whether interrupts were seen, all where planned.
    pub fn is_proven(&self) -> bool {
        self.state == VectorState::AsPlanned && self.arrived.as_ref().is_some_and(|cpus| !cpus.is_empty())
    }
}

pub(super) fn of(
    machine: &Machine,
    interface: &PlannedInterface,
    vector: &PlannedVector,
    watched: Option<&Growth>,
) -> VectorStatus {
    let topology = &machine.topology;
    let served = vector.effective_cpus();
    let own = vector.node.or(interface.local_node()).and_then(|node| topology.nodes.get(&node));
    let growth = watched.and_then(|watched| watched.interrupts.get(&vector.irq));
    let arrived = growth.map(|on| on.keys().copied().collect::<CpuSet>());
    let (state, why) = judge(topology, vector, served, arrived.as_ref());
    VectorStatus {
        irq: vector.irq,
        action: vector.action.clone(),
        role: vector.role,
        queue: vector.queue,
        idle: vector.idle,
        planned: vector.cpus.clone(),
        affinity: vector.affinity.clone(),
        effective: vector.effective.clone(),
        node: node_of(topology, served),
        local: own.map(|own| served.is_subset(&own.cpus)),
        on_isolated: vector.effective.is_some() && served.intersects(&topology.isolated_or_nohz()),
        per_second: growth.zip(watched).map(|(on, watched)| per_second(on, watched)),
        arrived,
        state,
        why,
    }
}

#[allow(clippy::cast_precision_loss)] // counts beyond 2^53 are no rates any more
fn per_second(on: &BTreeMap<u32, u64>, watched: &Growth) -> f64 {
    on.values().sum::<u64>() as f64 / watched.seconds()
}

/// The one node that holds all of these CPUs.
fn node_of(topology: &Topology, cpus: &CpuSet) -> Option<u32> {
    let first = cpus.first().and_then(|cpu| topology.node_of(cpu))?;
    topology.nodes.get(&first).filter(|node| cpus.is_subset(&node.cpus)).map(|_| first)
}

fn judge(
    topology: &Topology,
    vector: &PlannedVector,
    served: &CpuSet,
    arrived: Option<&CpuSet>,
) -> (VectorState, Option<String>) {
    let Some(planned) = &vector.cpus else {
        let left = vector.movable || vector.role == Role::Control;
        return (if left { VectorState::LeftAlone } else { VectorState::Unmovable }, None);
    };
    if vector.affinity != *planned {
        return (VectorState::Drift, Some(drift(topology, vector, planned, served)));
    }
    if vector.effective.as_ref().is_some_and(|effective| !effective.is_subset(planned)) {
        return (VectorState::Pending, Some(format!("CPU {served} serves until it fires")));
    }
    if let Some(other) = arrived.map(|cpus| cpus.difference(planned)).filter(|other| !other.is_empty()) {
        return (VectorState::Elsewhere, Some(format!("interrupts arrived on CPU {other}")));
    }
    (VectorState::AsPlanned, None)
}

/// What is wrong with where a vector is.
fn drift(topology: &Topology, vector: &PlannedVector, planned: &CpuSet, served: &CpuSet) -> String {
    if vector.effective.is_none() {
        return "allowed elsewhere; the kernel does not tell what serves it".to_owned();
    }
    if served.intersects(&topology.isolated_or_nohz()) {
        return format!("served by CPU {served}, which is isolated");
    }
    match (node_of(topology, served), node_of(topology, planned)) {
        (Some(now), Some(then)) if now != then => format!("served on node {now}"),
        _ if served.is_subset(planned) => "allowed elsewhere, too".to_owned(),
        _ => format!("served by CPU {served}"),
    }
}
