//! The status of one thread that polls queues: where it is to run, may run, and ran.

use serde::Serialize;

use crate::cpuset::CpuSet;
use crate::machine::growth::Growth;
use crate::machine::{Machine, Role};
use crate::plan::{PlannedInterface, PlannedThread};
use crate::report::state::VectorState;

/// The status of a thread that polls queues (threaded NAPI).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThreadStatus {
    pub pid: u32,
    /// The role and queue of the vector that wakes it; `None` if that could not be determined.
    pub role: Option<Role>,
    pub queue: Option<u32>,
    /// Where it is to run; `None`: left alone.
    pub planned: Option<CpuSet>,
    /// Where it may run.
    pub affinity: CpuSet,
    /// Whether these CPUs are local; `None` when the interface's node is unknown.
    pub local: Option<bool>,
    /// How often it ran, if it was watched.
    pub runs: Option<u64>,
    /// The CPUs on which it was seen to have run.
    pub ran_on: Option<CpuSet>,
    pub state: VectorState,
}

impl ThreadStatus {
    /// Whether it ran, and where planned: its affinity allows no other CPU.
    pub fn is_proven(&self) -> bool {
        self.state == VectorState::AsPlanned && self.runs.is_some_and(|runs| runs > 0)
    }
}

pub(super) fn of(
    machine: &Machine,
    interface: &PlannedInterface,
    thread: &PlannedThread,
    watched: Option<&Growth>,
) -> ThreadStatus {
    let own = interface
        .local_node()
        .map(|node| machine.topology.cpus_near(node));
    let growth = |watched: &Growth| {
        watched
            .threads
            .get(&thread.pid)
            .cloned()
            .unwrap_or_default()
    };
    let ran = watched.map(growth);
    let state = match &thread.cpus {
        None => VectorState::LeftAlone,
        Some(planned) if *planned != thread.affinity => VectorState::Differs,
        Some(planned) if ran.as_ref().is_some_and(|ran| !ran.on.is_subset(planned)) => {
            VectorState::Elsewhere
        }
        Some(_) => VectorState::AsPlanned,
    };
    ThreadStatus {
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
