//! The state of each interface: whether its vectors are local, evenly spread and as planned, and whether other tools will
//! change that. It is made from the machine, its plan and, where interrupts were watched, their growth. The JSON form is
//! `nicpin.status/1`.
//!
//! The planned affinity, the affinity and the effective affinity are three different things. None of them proves where
//! packets are received: only interrupts that arrived do.

mod threads;
mod vectors;

pub use threads::ThreadStatus;
pub use vectors::VectorStatus;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::cpuset::CpuSet;
use crate::machine::growth::Growth;
use crate::machine::shell::word;
use crate::machine::{Interface, Machine, Polling};
use crate::plan::{
    ChannelChange, HostSummary, NodeSource, Note, Plan, PlannedInterface, PlannedRss, Score,
    WriteKind,
};
use crate::policy::Balancer;
use crate::report::check::Unplannable;
use crate::report::difference::{Difference, Fallback};
use crate::report::run::Watcher;
use crate::report::state::{InterfaceState, VectorState};

/// The name and version of the JSON form.
pub const SCHEMA: &str = "nicpin.status/1";

/// The status of the machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    schema: &'static str,
    /// The worst state of all interfaces; `None` without interfaces.
    pub state: Option<InterfaceState>,
    /// The plan's hash.
    pub hash: String,
    /// The number of settings that are as planned.
    pub same: usize,
    /// The number of settings that are not.
    pub differ: usize,
    /// How long interrupts were watched; `None` when they were not.
    pub seconds: Option<f64>,
    /// Whether there is a record of an apply since boot.
    pub applied: bool,
    /// CPUs and nodes of the machine.
    pub host: HostSummary,
    /// The score of the planned state.
    pub score: Score,
    /// The score of the current state.
    pub score_now: Score,
    /// Worst first.
    pub interfaces: Vec<InterfaceStatus>,
    pub irqbalance: IrqbalanceStatus,
    /// Notes about the whole machine.
    pub notes: Vec<Note>,
    /// `nicpin watch`, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watcher: Option<Watcher>,
}

/// The status of an interface.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InterfaceStatus {
    pub name: String,
    pub state: InterfaceState,
    pub driver: Option<String>,
    /// The driver's version, as ethtool reports it.
    pub driver_version: Option<String>,
    /// The firmware's version, as ethtool reports it.
    pub firmware: Option<String>,
    /// The most bytes of a packet.
    pub mtu: Option<u32>,
    /// Address of the bus device behind it.
    pub device: String,
    /// The local node; `None` when unknown.
    pub node: Option<u32>,
    /// How the node was determined.
    pub node_source: NodeSource,
    /// The candidate CPUs of its vectors.
    pub candidates: CpuSet,
    /// Link speed in Mbit/s.
    pub speed_mbps: Option<u32>,
    /// Operational state (`operstate`).
    pub link: String,
    /// Receive queues in use, or transmit queues if there are more.
    pub queues: usize,
    /// The most receiving channels that the device can have; `None` when the driver does not report it.
    pub max_queues: Option<u32>,
    /// Vectors of queues in use.
    pub queue_vectors: usize,
    /// Those with a local effective CPU; `None` when no node is known.
    pub local: Option<usize>,
    /// The most of its queues on one CPU.
    pub max_per_cpu: usize,
    /// The most queues, of all interfaces, on a core that takes one of its queues.
    pub max_per_core: usize,
    /// Vectors with an isolated or `nohz_full` effective CPU, or with an exclusive one that the policy leaves out.
    pub on_isolated: usize,
    /// Settings that are not as planned, a change of channels included.
    pub differ: usize,
    /// Those of them that have changed since apply set them.
    pub drifted: usize,
    /// Vectors that the kernel does not allow to move.
    pub unmovable: usize,
    /// Interrupts of its vectors per second, if they were watched.
    pub per_second: Option<f64>,
    /// Vectors of queues in use with interrupts, all of them where planned.
    pub proven: Option<usize>,
    /// Queue vectors in the order of queues, then control vectors.
    pub vectors: Vec<VectorStatus>,
    /// The threads that poll its queues; empty unless NAPI is threaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadStatus>,
    /// Receive packet steering, with the flow table.
    pub rps: Steering,
    /// Transmit packet steering.
    pub xps: Steering,
    /// The RSS indirection table; absent where the device has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss: Option<PlannedRss>,
    /// How its queues are polled.
    pub polling: Polling,
    pub notes: Vec<Note>,
    /// The command that makes it as planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// One kind of steering over all queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Steering {
    /// Queues with a plan, including "off".
    pub planned: usize,
    /// Queues on which steering is planned to be on.
    pub on: usize,
    /// Settings that are not as planned.
    pub differ: usize,
}

/// What irqbalance does with the planned IRQs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IrqbalanceStatus {
    /// `None` when it is not running, or that could not be determined.
    pub pid: Option<i32>,
    #[serde(flatten)]
    pub state: IrqbalanceState,
    /// The number of planned IRQs.
    pub irqs: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}

/// What irqbalance does with the planned IRQs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum IrqbalanceState {
    /// It is not running.
    Absent,
    /// It could not be determined whether it runs.
    Unknown,
    /// Its policy script asks nicpin which IRQs to leave alone.
    AsksNicpin,
    /// It leaves them alone on request, until it restarts.
    Banned,
    /// It moves them.
    Moves {
        /// Whether apply, by the policy, has it leave them alone.
        fixed_by_apply: bool,
    },
}

impl Status {
    /// The status of a machine, from its plan, what differs from it, and the watched interrupts. `unknown`: interfaces
    /// whose state could not be determined. `banned`: the IRQs that irqbalance leaves alone on request.
    pub fn new(
        machine: &Machine,
        plan: &Plan,
        found: &(Vec<Difference>, Vec<Fallback>),
        unknown: &[Unplannable],
        watched: Option<&Growth>,
        applied: bool,
        banned: &BTreeSet<u32>,
    ) -> Self {
        let watched = watched.filter(|watched| watched.seconds() > 0.0);
        let loads = queues_by_core(machine);
        let of = |planned| of_interface(machine, plan, planned, found, &loads, watched);
        let mut interfaces: Vec<InterfaceStatus> = plan.interfaces.iter().map(of).collect();
        for interface in &mut interfaces {
            if unknown
                .iter()
                .any(|unknown| unknown.interface == interface.name)
            {
                interface.state = InterfaceState::Unknown;
            }
        }
        let remote =
            |interface: &InterfaceStatus| interface.queue_vectors - interface.local.unwrap_or(0);
        interfaces.sort_by_key(|interface| {
            Reverse((interface.state, remote(interface), interface.differ))
        });
        let (about_irqbalance, mut notes): (Vec<Note>, Vec<Note>) =
            plan.notes.iter().cloned().partition(|note| {
                matches!(
                    note,
                    Note::IrqbalanceRunning { .. } | Note::IrqbalanceUnknown { .. }
                )
            });
        if machine.sockets_poll {
            notes.push(Note::SocketsPoll);
        }
        if let Some(watched) = watched.filter(|watched| !watched.cpus_changed.is_empty()) {
            notes.push(Note::CpusChanged {
                cpus: watched.cpus_changed.clone(),
                left_out: false,
            });
        }
        let (differences, fallbacks) = found;
        Self {
            schema: SCHEMA,
            state: interfaces.first().map(|worst| worst.state),
            hash: plan.hash.clone(),
            same: plan.unchanged + fallbacks.len(),
            differ: differences.len() + plan.channels.len(),
            seconds: watched.map(Growth::seconds),
            applied,
            host: plan.host.clone(),
            score: plan.score.clone(),
            score_now: plan.score_now.clone(),
            interfaces,
            irqbalance: irqbalance(plan, banned, about_irqbalance.into_iter().next()),
            notes,
            watcher: None,
        }
    }
}

/// What irqbalance does with the planned IRQs. `banned`: the IRQs that it leaves alone on request.
fn irqbalance(plan: &Plan, banned: &BTreeSet<u32>, note: Option<Note>) -> IrqbalanceStatus {
    let Some(running) = &plan.irqbalance else {
        let state = if note.is_some() {
            IrqbalanceState::Unknown
        } else {
            IrqbalanceState::Absent
        };
        return IrqbalanceStatus {
            pid: None,
            state,
            irqs: 0,
            note,
        };
    };
    let state = if running.lasts {
        IrqbalanceState::AsksNicpin
    } else if running.irqs.iter().all(|irq| banned.contains(irq)) {
        IrqbalanceState::Banned
    } else {
        IrqbalanceState::Moves {
            fixed_by_apply: running.action == Balancer::Ban,
        }
    };
    IrqbalanceStatus {
        pid: Some(running.pid),
        state,
        irqs: running.irqs.len(),
        note,
    }
}

#[allow(clippy::too_many_lines)] // a table, or a story in one piece
fn of_interface(
    machine: &Machine,
    plan: &Plan,
    planned: &PlannedInterface,
    (differences, fallbacks): &(Vec<Difference>, Vec<Fallback>),
    loads: &BTreeMap<u32, usize>,
    watched: Option<&Growth>,
) -> InterfaceStatus {
    let interface = machine.interface(&planned.name);
    let vectors: Vec<VectorStatus> = planned
        .vectors
        .iter()
        .map(|vector| vectors::of(machine, planned, vector, fallbacks, watched))
        .collect();
    let count =
        |holds: &dyn Fn(&VectorStatus) -> bool| vectors.iter().filter(|row| holds(row)).count();
    let differences: Vec<&Difference> = differences
        .iter()
        .filter(|one| *one.write.interface == *planned.name)
        .collect();
    let of_kinds = |kinds: &[WriteKind]| {
        differences
            .iter()
            .filter(|one| kinds.contains(&one.write.kind))
            .count()
    };
    let steering = |planned: &mut dyn Iterator<Item = &CpuSet>, kinds: &[WriteKind]| {
        let planned: Vec<&CpuSet> = planned.collect();
        let on = planned.iter().filter(|cpus| !cpus.is_empty()).count();
        Steering {
            planned: planned.len(),
            on,
            differ: of_kinds(kinds),
        }
    };
    let rps = &mut planned
        .rx_queues
        .iter()
        .filter_map(|rx| rx.rps_cpus.as_ref());
    let xps = &mut planned
        .tx_queues
        .iter()
        .filter_map(|tx| tx.xps_cpus.as_ref());
    let channels: Vec<&ChannelChange> = plan
        .channels
        .iter()
        .filter(|change| change.interface == planned.name)
        .collect();
    let differ = differences.len() + channels.len();
    let drifted = differences
        .iter()
        .filter(|one| one.reason.is_change_since_apply())
        .count();
    let (max_per_cpu, max_per_core) = most_queues(&vectors, loads);
    let mut notes: Vec<Note> = planned
        .notes
        .iter()
        .filter(|note| !matches!(note, Note::KernelManaged { .. }))
        .cloned()
        .collect();
    notes.extend(channels.into_iter().map(|change| Note::ChannelsDiffer {
        interface: change.interface.clone(),
        wanted: change.wanted.receiving(),
        why: change.why.clone(),
    }));
    let placed = planned
        .threads
        .iter()
        .filter(|thread| thread.cpus.is_some());
    let pids: Vec<u32> = placed.map(|thread| thread.pid).collect();
    let interface_name = || planned.name.clone();
    notes.extend((!pids.is_empty()).then(|| Note::ThreadedNapi {
        interface: interface_name(),
        pids,
        placed: true,
    }));
    notes.extend(interface.into_iter().flat_map(polling_notes));
    InterfaceStatus {
        name: planned.name.clone(),
        state: state(planned, &vectors, (differ, drifted), loads),
        driver: planned.driver.clone(),
        driver_version: interface.and_then(|interface| interface.driver_version.clone()),
        firmware: interface.and_then(|interface| interface.firmware.clone()),
        mtu: interface.and_then(|interface| interface.mtu),
        device: planned.device.clone(),
        node: planned.node,
        node_source: planned.node_source,
        candidates: planned.candidates.clone(),
        speed_mbps: planned.speed_mbps,
        link: planned.link.clone(),
        queues: planned.rx_queues.len().max(planned.tx_queues.len()),
        max_queues: planned.channels.map(|channels| channels.max_receiving()),
        queue_vectors: count(&VectorStatus::is_active),
        local: vectors
            .iter()
            .any(|row| row.local.is_some())
            .then(|| count(&|row| row.is_active() && row.local == Some(true))),
        max_per_cpu,
        max_per_core,
        on_isolated: count(&|row| row.on_isolated),
        differ,
        drifted,
        unmovable: count(&|row| row.state == VectorState::Unmovable),
        per_second: watched.map(|_| vectors.iter().filter_map(|row| row.per_second).sum()),
        proven: watched.map(|_| count(&|row| row.is_active() && row.is_proven())),
        fix: (differ > 0).then(|| format!("nicpin apply {}", word(&planned.name))),
        rps: steering(rps, &[WriteKind::Rps, WriteKind::RpsFlow]),
        xps: steering(xps, &[WriteKind::Xps, WriteKind::XpsRxqs]),
        rss: planned.rss.clone(),
        threads: planned
            .threads
            .iter()
            .map(|thread| threads::of(machine, planned, thread, watched))
            .collect(),
        vectors,
        polling: interface
            .map(|interface| interface.polling)
            .unwrap_or_default(),
        notes,
    }
}

/// `differ`: the settings that are not as planned, and those of them that changed since apply. `loads`: the queues of all
/// interfaces on the core of each CPU.
fn state(
    planned: &PlannedInterface,
    vectors: &[VectorStatus],
    (differ, drifted): (usize, usize),
    loads: &BTreeMap<u32, usize>,
) -> InterfaceState {
    let any = |holds: &dyn Fn(&VectorStatus) -> bool| vectors.iter().any(holds);
    let moves = |row: &VectorStatus| row.state == VectorState::Differs;
    let is_crowded = |row: &VectorStatus| {
        row.cpu()
            .and_then(|cpu| loads.get(&cpu))
            .is_some_and(|&load| load > 1)
    };
    if planned
        .notes
        .iter()
        .any(|note| note.is_unplannable() && !matches!(note, Note::NoVectors { .. }))
    {
        InterfaceState::Unknown
    } else if any(&|row| moves(row) && row.on_isolated) {
        InterfaceState::Isolated
    } else if any(&|row| moves(row) && row.is_active() && row.local == Some(false)) {
        InterfaceState::Remote
    } else if drifted > 0 {
        InterfaceState::Drifted
    } else if any(&|row| moves(row) && row.is_active() && is_crowded(row))
        && planned
            .candidates
            .iter()
            .any(|cpu| loads.get(&cpu) == Some(&0))
    {
        InterfaceState::Crowded
    } else if differ > 0 {
        InterfaceState::Untuned
    } else if any(&|row| matches!(row.state, VectorState::Pending | VectorState::Elsewhere)) {
        InterfaceState::Pending
    } else if any(&|row| row.is_active() && row.has_arrived()) {
        InterfaceState::Ok
    } else {
        InterfaceState::Unproven
    }
}

/// The queues in use of all interfaces on the core of each CPU. A queue's receive and transmit vectors on one core count
/// once.
fn queues_by_core(machine: &Machine) -> BTreeMap<u32, usize> {
    let mut on_cpu: BTreeMap<u32, BTreeSet<(usize, Option<u32>)>> = BTreeMap::new();
    for (at, interface) in machine.interfaces.iter().enumerate() {
        for vector in interface
            .vectors
            .iter()
            .filter(|v| v.is_queue_vector() && !interface.is_idle(v))
        {
            let cpu = vector
                .effective
                .as_ref()
                .unwrap_or(&vector.affinity.cpus)
                .first();
            cpu.map(|cpu| on_cpu.entry(cpu).or_default().insert((at, vector.queue)));
        }
    }
    let on_core = |core: &CpuSet| {
        core.iter()
            .filter_map(|cpu| on_cpu.get(&cpu))
            .flatten()
            .collect::<BTreeSet<_>>()
            .len()
    };
    let mut loads = BTreeMap::new();
    for core in &machine.topology.cores {
        let load = on_core(core);
        loads.extend(core.iter().map(|cpu| (cpu, load)));
    }
    loads
}

/// The most queues on one CPU, of this interface, and on one core, of all interfaces.
fn most_queues(vectors: &[VectorStatus], loads: &BTreeMap<u32, usize>) -> (usize, usize) {
    let mut on_cpu: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for row in vectors.iter().filter(|row| row.is_active()) {
        if let (Some(queue), Some(cpu)) = (row.queue, row.cpu()) {
            on_cpu.entry(cpu).or_default().insert(queue);
        }
    }
    let on_core = on_cpu.keys().filter_map(|cpu| loads.get(cpu)).max();
    (
        on_cpu.values().map(BTreeSet::len).max().unwrap_or(0),
        on_core.copied().unwrap_or(0),
    )
}

/// Notes about settings by which packets are not received on the vector's CPU, or not at its interrupt.
fn polling_notes(interface: &Interface) -> Vec<Note> {
    let mut notes = Vec::new();
    let polling = interface.polling;
    if polling.defers_interrupts() {
        notes.push(Note::InterruptsDeferred {
            napi_defer_hard_irqs: polling.napi_defer_hard_irqs,
            gro_flush_timeout: polling.gro_flush_timeout,
        });
    }
    notes
}
