//! The status of each vector and polling thread: planned affinity, affinity, effective affinity, and where interrupts
//! arrived.

use serde::Serialize;

use crate::cpuset::CpuSet;
use crate::machine::sample::Delta;
use crate::machine::{Machine, QueueId, Role, Topology};
use crate::plan::{PlannedInterface, PlannedThread, PlannedVector};
use crate::report::difference::Fallback;
use crate::report::vectors::VectorState::{
    AsPlanned, Differs, Elsewhere, LeftAlone, Pending, Unmovable,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VectorState {
    /// Affinity and, if reported, effective affinity are as planned.
    AsPlanned,
    LeftAlone,
    Unmovable,
    /// The affinity is as planned; the kernel moves the vector at its next interrupt.
    Pending,
    /// Interrupts arrived on other CPUs, although the affinities are as planned.
    Elsewhere,
    Differs,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VectorStatus {
    pub irq: u32,
    pub action: String,
    pub role: Role,
    pub queue: Option<u32>,
    pub idle: bool,
    /// The planned affinity; `None`: unchanged.
    pub planned: Option<CpuSet>,
    pub affinity: CpuSet,
    pub effective: Option<CpuSet>,
    #[serde(skip)]
    pub(super) now: CpuSet,
    /// The node of the effective CPUs, or of the affinity if this has none of them; `None` if they are not on one node.
    pub node: Option<u32>,
    /// `None` if the interface's node is unknown.
    pub local: Option<bool>,
    #[serde(skip)]
    pub(super) planned_local: bool,
    /// Whether the kernel reports the vector's CPU, or counts showed it.
    #[serde(skip)]
    pub(super) is_known: bool,
    /// Whether an effective CPU is isolated or `nohz_full`, or an exclusive one that the policy leaves out.
    pub on_isolated: bool,
    pub per_second: Option<f64>,
    pub arrived: Option<CpuSet>,
    pub state: VectorState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl VectorStatus {
    pub(super) fn new(
        machine: &Machine,
        interface: &PlannedInterface,
        vector: &PlannedVector,
        fallbacks: &[Fallback],
        watched: Option<&Delta>,
    ) -> Self {
        let topology = &machine.topology;
        let effective = &*vector.effective_cpus(&topology.online);
        let own = interface.local_to(vector, machine);
        let on = watched.and_then(|watched| watched.interrupts.get(&vector.irq));
        let arrived = on.map(|on| on.keys().copied().collect::<CpuSet>());
        let on_fallback = fallbacks.iter().any(|fallback| fallback.irq == vector.irq);
        let is_known = vector.reported().is_some();
        let is_apart = |cpus: &CpuSet| match vector.reported() {
            Some(_) => effective.intersects(cpus),
            None => !effective.is_empty() && effective.is_subset(cpus),
        };
        let apart = if is_apart(&topology.isolated_or_nohz()) {
            Some("isolated")
        } else {
            is_apart(&interface.exclusive).then_some("in an exclusive cpuset partition")
        };
        let (state, why) = judge(topology, vector, apart, on_fallback, arrived.as_ref());
        Self {
            irq: vector.irq,
            action: vector.action.to_string(),
            role: vector.role,
            queue: vector.queue,
            idle: vector.idle,
            planned: vector.cpus.clone(),
            affinity: vector.affinity.clone(),
            effective: vector.effective.clone(),
            now: effective.clone(),
            node: node_of(topology, effective),
            planned_local: own
                .as_ref()
                .zip(vector.cpus.as_ref())
                .is_some_and(|(own, cpus)| cpus.is_subset(own)),
            // A mask over two nodes is no evidence.
            local: own.and_then(|own| {
                let is_local = effective.is_subset(&own);
                (is_known || is_local || !effective.intersects(&own)).then_some(is_local)
            }),
            is_known,
            on_isolated: apart.is_some(),
            per_second: on
                .zip(watched)
                .map(|(on, watched)| on.values().sum::<u64>() as f64 / watched.seconds()),
            arrived,
            state,
            why,
        }
    }

    /// Whether interrupts arrived, all of them on planned CPUs.
    pub fn is_proven(&self) -> bool {
        self.state == AsPlanned && self.has_arrived()
    }

    pub(super) fn has_arrived(&self) -> bool {
        self.arrived.as_ref().is_some_and(|cpus| !cpus.is_empty())
    }

    #[doc(hidden)]
    pub fn queue_id(&self) -> Option<QueueId> {
        self.role.queue_id(self.queue, self.irq)
    }

    pub fn is_active(&self) -> bool {
        self.role.is_queue() && !self.idle
    }
}

fn node_of(topology: &Topology, cpus: &CpuSet) -> Option<u32> {
    let first = topology.node_of(cpus.first()?)?;
    let node = topology.nodes.get(&first)?;
    cpus.is_subset(&node.cpus).then_some(first)
}

/// Returns the state, and the difference from the plan in words. `apart`: `isolated` or the like, if an effective CPU
/// is.
fn judge(
    topology: &Topology,
    vector: &PlannedVector,
    apart: Option<&str>,
    on_fallback: bool,
    arrived: Option<&CpuSet>,
) -> (VectorState, Option<String>) {
    let Some(planned) = &vector.cpus else {
        let is_left = vector.movable || vector.role == Role::Control;
        return (if is_left { LeftAlone } else { Unmovable }, None);
    };
    let wanted = if on_fallback {
        &vector.affinity
    } else {
        planned
    };
    let effective = vector.effective.as_ref();
    let elsewhere = arrived.map(|cpus| cpus.difference(wanted));
    let (state, why) = if vector.affinity != *wanted {
        let node = |cpus| node_of(topology, cpus);
        let why = match (effective, apart) {
            (None, _) => "effective CPU unknown".to_owned(),
            (Some(now), _) if !now.intersects(&vector.affinity) => {
                let next = vector.affinity.short();
                format!("moves to CPU {next} at its next interrupt")
            }
            (Some(now), Some(what)) => format!("effective CPU {} is {what}", now.short()),
            (Some(now), None) => match (node(now), node(planned)) {
                (Some(on), Some(then)) if on != then => format!("effective CPU is on node {on}"),
                _ if !now.is_subset(planned) => format!("effective CPU is {}", now.short()),
                _ => "affinity has other CPUs, too".to_owned(),
            },
        };
        (Differs, why)
    } else if let Some(now) = effective.filter(|now| !now.is_subset(wanted)) {
        let why = format!("on CPU {} until its next interrupt", now.short());
        (Pending, why)
    } else if let Some(other) = elsewhere.filter(|other| !other.is_empty()) {
        let why = format!("interrupts arrived on CPU {}", other.short());
        (Elsewhere, why)
    } else {
        return (AsPlanned, None);
    };
    (state, Some(why))
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThreadStatus {
    pub pid: u32,
    /// `None` if the vector that wakes the thread could not be determined.
    pub role: Option<Role>,
    pub queue: Option<u32>,
    pub planned: Option<CpuSet>,
    pub affinity: CpuSet,
    pub local: Option<bool>,
    /// `None` if runs were not watched.
    pub runs: Option<u64>,
    pub ran_on: Option<CpuSet>,
    pub state: VectorState,
}

impl ThreadStatus {
    pub(super) fn new(
        machine: &Machine,
        interface: &PlannedInterface,
        thread: &PlannedThread,
        watched: Option<&Delta>,
    ) -> Self {
        let own = interface.local_cpus(machine);
        let ran = watched.map(|watched| {
            watched
                .threads
                .get(&thread.pid)
                .cloned()
                .unwrap_or_default()
        });
        let is_beside = |planned| ran.as_ref().is_some_and(|ran| !ran.on.is_subset(planned));
        let state = match &thread.cpus {
            None => LeftAlone,
            Some(planned) if *planned != thread.affinity => Differs,
            Some(planned) if is_beside(planned) => Elsewhere,
            Some(_) => AsPlanned,
        };
        Self {
            pid: thread.pid,
            role: thread.role,
            queue: thread.queue,
            planned: thread.cpus.clone(),
            affinity: thread.affinity.clone(),
            local: own.map(|own| thread.affinity.is_subset(&own)),
            runs: ran.as_ref().map(|ran| ran.runs),
            ran_on: ran.map(|ran| ran.on),
            state,
        }
    }

    /// Whether the thread ran; its affinity allows only planned CPUs.
    pub fn is_proven(&self) -> bool {
        self.state == AsPlanned && self.runs.is_some_and(|runs| runs > 0)
    }
}
