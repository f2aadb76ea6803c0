//! The state of each interface: whether its vectors are local, evenly spread and as planned, and whether other tools will
//! change that. It is made from the machine, its plan and, where interrupts were watched, their growth. The JSON form is
//! `nicpin.status/1`.
//!
//! The planned affinity, the affinity and the effective affinity are three different things. None of them proves where
//! packets are received: only interrupts that arrived do.

mod vectors;

pub use vectors::{VectorState, VectorStatus};

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::cpuset::CpuSet;
use crate::machine::growth::Growth;
use crate::machine::shell::word;
use crate::machine::{Interface, Machine, Polling};
use crate::plan::{ChannelChange, NodeSource, Note, Plan, PlannedInterface, WriteKind};
use crate::policy::Balancer;

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
    /// Worst first.
    pub interfaces: Vec<InterfaceStatus>,
    pub irqbalance: IrqbalanceStatus,
    /// Notes about the whole machine.
    pub notes: Vec<Note>,
}

/// The state of an interface, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InterfaceState {
    /// As planned, and interrupts arrived where planned.
    Proven,
    /// Nothing is planned for it: the kernel or the policy decides.
    LeftAlone,
    /// As planned; no interrupt arrived.
    NotProven,
    /// It has no queue vectors, or they are not recognized or cannot be read.
    Unknown,
    /// Set as planned; the kernel moves some vectors at their next interrupt.
    Pending,
    /// Set as planned, but interrupts arrived on other CPUs.
    Elsewhere,
    /// Some settings are not as planned.
    Drift,
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
    /// The most queues on one CPU.
    pub max_per_cpu: usize,
    /// The most queues on one core.
    pub max_per_core: usize,
    /// Vectors with an isolated or `nohz_full` effective CPU.
    pub on_isolated: usize,
    /// Vectors whose affinity is not as planned.
    pub drift: usize,
    /// Vectors that the kernel does not allow to move.
    pub unmovable: usize,
    /// Interrupts of its vectors per second, if they were watched.
    pub per_second: Option<f64>,
    /// Vectors of queues in use with interrupts, all of them where planned.
    pub proven: Option<usize>,
    /// Queue vectors in the order of queues, then control vectors.
    pub vectors: Vec<VectorStatus>,
    /// Receive packet steering, with the flow table.
    pub rps: Steering,
    /// Transmit packet steering.
    pub xps: Steering,
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
    Told,
    /// It moves them.
    Moves {
        /// Whether apply, by the policy, has it leave them alone.
        fixed_by_apply: bool,
    },
}

impl Status {
    /// The status of a machine, from its plan and the watched interrupts. `banned`: the IRQs that irqbalance leaves alone
    /// on request.
    pub fn new(
        machine: &Machine,
        plan: &Plan,
        watched: Option<&Growth>,
        applied: bool,
        banned: &BTreeSet<u32>,
    ) -> Self {
        let watched = watched.filter(|watched| watched.seconds() > 0.0);
        let mut interfaces: Vec<InterfaceStatus> =
            plan.interfaces.iter().map(|interface| of_interface(machine, plan, interface, watched)).collect();
        let remote = |interface: &InterfaceStatus| interface.queue_vectors - interface.local.unwrap_or(0);
        interfaces.sort_by_key(|interface| Reverse((interface.state, remote(interface))));
        let (about_irqbalance, mut notes): (Vec<Note>, Vec<Note>) =
            plan.notes.iter().cloned().partition(|note| {
                matches!(note, Note::IrqbalanceRunning { .. } | Note::IrqbalanceUnknown { .. })
            });
        if machine.sockets_poll {
            notes.push(Note::SocketsPoll);
        }
        if watched.is_some_and(|watched| !watched.cpus_changed.is_empty()) {
            let cpus = watched.map(|watched| watched.cpus_changed.clone()).unwrap_or_default();
            notes.push(Note::CpusChanged { cpus, left_out: false });
        }
        Self {
            schema: SCHEMA,
            state: interfaces.first().map(|worst| worst.state),
            hash: plan.hash.clone(),
            same: plan.unchanged,
            differ: plan.writes.len() + plan.channels.len(),
            seconds: watched.map(Growth::seconds),
            applied,
            interfaces,
            irqbalance: irqbalance(plan, banned, about_irqbalance.into_iter().next()),
            notes,
        }
    }
}

/// What irqbalance does with the planned IRQs. `banned`: the IRQs that it leaves alone on request.
fn irqbalance(plan: &Plan, banned: &BTreeSet<u32>, note: Option<Note>) -> IrqbalanceStatus {
    let Some(running) = &plan.irqbalance else {
        let state = if note.is_some() { IrqbalanceState::Unknown } else { IrqbalanceState::Absent };
        return IrqbalanceStatus { pid: None, state, irqs: 0, note };
    };
    let state = if running.lasts {
        IrqbalanceState::AsksNicpin
    } else if running.irqs.iter().all(|irq| banned.contains(irq)) {
        IrqbalanceState::Told
    } else {
        IrqbalanceState::Moves { fixed_by_apply: running.action == Balancer::Ban }
    };
    IrqbalanceStatus { pid: Some(running.pid), state, irqs: running.irqs.len(), note }
}

fn of_interface(
    machine: &Machine,
    plan: &Plan,
    planned: &PlannedInterface,
    watched: Option<&Growth>,
) -> InterfaceStatus {
    let interface = machine.interface(&planned.name);
    let vectors: Vec<VectorStatus> =
        planned.vectors.iter().map(|vector| vectors::of(machine, planned, vector, watched)).collect();
    let count = |holds: &dyn Fn(&VectorStatus) -> bool| vectors.iter().filter(|row| holds(row)).count();
    let active = |row: &VectorStatus| row.role.is_queue() && !row.idle;
    let writes = |kinds: &[WriteKind]| {
        plan.writes.iter().filter(|w| *w.interface == *planned.name && kinds.contains(&w.kind)).count()
    };
    let rps = Steering {
        planned: planned.rx_queues.iter().filter(|rx| rx.rps_cpus.is_some()).count(),
        on: planned.rx_queues.iter().filter(|rx| is_on(rx.rps_cpus.as_ref())).count(),
        differ: writes(&[WriteKind::Rps, WriteKind::RpsFlow]),
    };
    let xps = Steering {
        planned: planned.tx_queues.iter().filter(|tx| tx.xps_cpus.is_some()).count(),
        on: planned.tx_queues.iter().filter(|tx| is_on(tx.xps_cpus.as_ref())).count(),
        differ: writes(&[WriteKind::Xps]),
    };
    let channels: Vec<&ChannelChange> =
        plan.channels.iter().filter(|change| change.interface == planned.name).collect();
    let differs = !channels.is_empty() || rps.differ + xps.differ > 0;
    let polling = interface.map(|interface| interface.polling).unwrap_or_default();
    let (max_per_cpu, max_per_core) = most_queues(machine, &vectors);
    let rates: Option<f64> = watched.map(|_| vectors.iter().filter_map(|row| row.per_second).sum());
    let mut notes: Vec<Note> =
        planned.notes.iter().filter(|note| !matches!(note, Note::KernelManaged { .. })).cloned().collect();
    notes.extend(channels.into_iter().map(|change| Note::ChannelsDiffer {
        interface: change.interface.clone(),
        wanted: change.wanted.receiving(),
        why: change.why.clone(),
    }));
    notes.extend(interface.into_iter().flat_map(polling_notes));
    InterfaceStatus {
        name: planned.name.clone(),
        state: state(planned, &vectors, differs),
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
        queue_vectors: count(&active),
        local: vectors
            .iter()
            .any(|row| row.local.is_some())
            .then(|| count(&|row| active(row) && row.local == Some(true))),
        max_per_cpu,
        max_per_core,
        on_isolated: count(&|row| row.on_isolated),
        drift: count(&|row| row.state == VectorState::Drift),
        unmovable: count(&|row| row.state == VectorState::Unmovable),
        per_second: rates,
        proven: watched.map(|_| count(&|row| active(row) && row.is_proven())),
        fix: (differs || count(&|row| row.state == VectorState::Drift) > 0)
            .then(|| format!("nicpin apply {}", word(&planned.name))),
        vectors,
        rps,
        xps,
        polling,
        notes,
    }
}

fn is_on(cpus: Option<&CpuSet>) -> bool {
    cpus.is_some_and(|cpus| !cpus.is_empty())
}

fn state(planned: &PlannedInterface, vectors: &[VectorStatus], differs: bool) -> InterfaceState {
    let any = |state: VectorState| vectors.iter().any(|row| row.state == state);
    if differs || any(VectorState::Drift) {
        InterfaceState::Drift
    } else if any(VectorState::Elsewhere) {
        InterfaceState::Elsewhere
    } else if any(VectorState::Pending) {
        InterfaceState::Pending
    } else if planned.notes.iter().any(Note::is_unplannable) {
        InterfaceState::Unknown
    } else if !any(VectorState::AsPlanned) {
        InterfaceState::LeftAlone
    } else if vectors.iter().any(VectorStatus::is_proven) {
        InterfaceState::Proven
    } else {
        InterfaceState::NotProven
    }
}

/// The most queues in use on one CPU, and on one core. A queue's receive and transmit vectors on one CPU count once.
fn most_queues(machine: &Machine, vectors: &[VectorStatus]) -> (usize, usize) {
    let mut on_cpu: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for row in vectors.iter().filter(|row| row.role.is_queue() && !row.idle) {
        if let (Some(queue), Some(cpu)) = (row.queue, row.effective.as_ref().and_then(CpuSet::first)) {
            on_cpu.entry(cpu).or_default().insert(queue);
        }
    }
    let on = |cpu: u32| on_cpu.get(&cpu).map_or(0, BTreeSet::len);
    let cores = machine.topology.cores.iter().map(|core| core.iter().map(on).sum());
    (on_cpu.values().map(BTreeSet::len).max().unwrap_or(0), cores.max().unwrap_or(0))
}

/// Notes about settings by which packets are not received on the vector's CPU, or not at its interrupt.
fn polling_notes(interface: &Interface) -> Vec<Note> {
    let mut notes = Vec::new();
    let polling = interface.polling;
    if polling.threaded {
        let napis = interface.netdev.iter().flat_map(|answer| &answer.napis);
        let pids = napis.filter_map(|napi| napi.pid).collect();
        notes.push(Note::ThreadedNapi { interface: interface.name.clone(), pids });
    }
    if polling.defers_interrupts() {
        notes.push(Note::InterruptsDeferred {
            napi_defer_hard_irqs: polling.napi_defer_hard_irqs,
            gro_flush_timeout: polling.gro_flush_timeout,
        });
    }
    notes
}
