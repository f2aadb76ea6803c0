//! What there is to say about an interface: whether its vectors are local, evenly spread and as planned, and what differs.
//! It is made once, from the machine, its plan and, where interrupts were watched, their growth; `status`, `check`, metrics
//! and monitoring plugins show parts of it.
//!
//! The planned affinity, the affinity and the effective affinity are three different things. None of them proves where
//! packets are received: only interrupts that arrived do.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::machine::growth::Growth;
use crate::machine::shell::word;
use crate::machine::{Interface, Machine, Polling, Vector};
use crate::plan::{NodeSource, Note, Plan, PlannedInterface, PlannedRss, WriteKind};
use crate::report::difference::{Differences, Reason, Unplannable};
use crate::report::vectors::{ThreadStatus, VectorState, VectorStatus};

/// The state of an interface, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InterfaceState {
    /// As planned, and interrupts arrived where planned.
    Ok,
    /// As planned; no interrupt was seen.
    Unproven,
    /// Set as planned; the kernel moves some vectors at their next interrupt.
    Pending,
    /// Some settings differ from the plan.
    Untuned,
    /// Some settings differ from the plan, and a core has several queues while another candidate core has none.
    Crowded,
    /// Changed since apply set it.
    Drifted,
    /// Queue vectors are on another node, and the plan moves them to the local one.
    Remote,
    /// Vectors are on isolated CPUs, and the plan moves them off these.
    Isolated,
    /// Its queue vectors are not recognized or cannot be read.
    Unknown,
}

impl InterfaceState {
    /// Best first; the number of a state is its place.
    pub const ALL: [Self; 9] = [
        Self::Ok,
        Self::Unproven,
        Self::Pending,
        Self::Untuned,
        Self::Crowded,
        Self::Drifted,
        Self::Remote,
        Self::Isolated,
        Self::Unknown,
    ];

    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unproven => "unproven",
            Self::Pending => "pending",
            Self::Untuned => "untuned",
            Self::Crowded => "crowded",
            Self::Drifted => "drifted",
            Self::Remote => "remote",
            Self::Isolated => "isolated",
            Self::Unknown => "unknown",
        }
    }

    /// Whether somebody should look at it now.
    pub fn is_alarming(self) -> bool {
        self >= Self::Drifted
    }
}

/// What an interface is, and its state: the part of a report that `check` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InterfaceSummary {
    pub name: String,
    pub state: InterfaceState,
    pub driver: Option<String>,
    /// Address of the bus device behind it.
    pub device: String,
    /// PCI vendor and device in hex (`15b3:1017`); `None` off PCI.
    pub pci_id: Option<String>,
    /// The local node; `None` when unknown.
    pub node: Option<u32>,
    /// The candidate CPUs of its vectors.
    pub candidates: CpuSet,
    /// Receive and transmit queues in use.
    pub rx_queues: usize,
    pub tx_queues: usize,
    /// Vectors of queues in use.
    pub queue_vectors: usize,
    /// Those with a local effective CPU; `None` when no node is known.
    pub local: Option<usize>,
}

impl InterfaceSummary {
    /// The share of its queue vectors that are local, 0 to 1; `None` without any, or when no node is known.
    #[allow(clippy::cast_precision_loss)] // counts of vectors
    pub fn local_share(&self) -> Option<f64> {
        let local = self.local.filter(|_| self.queue_vectors > 0)?;
        Some(local as f64 / self.queue_vectors as f64)
    }

    /// The same in percent.
    pub fn local_percent(&self) -> Option<f64> {
        self.local_share().map(|share| share * 100.0)
    }
}

/// The report of an interface.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InterfaceReport {
    #[serde(flatten)]
    pub summary: InterfaceSummary,
    /// The driver's version, as ethtool reports it.
    pub driver_version: Option<String>,
    /// The firmware's version, as ethtool reports it.
    pub firmware: Option<String>,
    /// The most bytes of a packet.
    pub mtu: Option<u32>,
    /// How the node was determined.
    pub node_source: NodeSource,
    /// Link speed in Mbit/s.
    pub speed_mbps: Option<u32>,
    /// Operational state (`operstate`).
    pub link: String,
    /// Receive queues in use, or transmit queues if there are more.
    pub queues: usize,
    /// The most receiving channels that the device can have; `None` when the driver does not report it.
    pub max_queues: Option<u32>,
    /// The most of its queues on one CPU.
    pub max_per_cpu: usize,
    /// The most queues, of all interfaces, on a core that takes one of its queues.
    pub max_per_core: usize,
    /// The same when all is as planned.
    pub max_per_core_planned: usize,
    /// Vectors with an isolated or `nohz_full` effective CPU, or with an exclusive one that the policy leaves out.
    pub on_isolated: usize,
    /// Settings that are not as planned, a change of channels included.
    pub differ: usize,
    /// Those of them that have changed since apply set them.
    pub drifted: usize,
    /// The same settings by kind and by reason, without channels.
    #[serde(skip)]
    pub kinds: BTreeMap<WriteKind, usize>,
    #[serde(skip)]
    pub reasons: BTreeMap<Reason, usize>,
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

impl Deref for InterfaceReport {
    type Target = InterfaceSummary;

    fn deref(&self) -> &InterfaceSummary {
        &self.summary
    }
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

/// The reports of a plan's interfaces, worst first. `unknown`: interfaces whose state could not be determined.
pub fn interfaces(
    machine: &Machine,
    plan: &Plan,
    found: &Differences,
    unknown: &[Unplannable],
    watched: Option<&Growth>,
) -> Vec<InterfaceReport> {
    let planned = plan.interfaces.iter().flat_map(|planned| &planned.vectors);
    let planned: BTreeMap<u32, u32> = planned
        .filter_map(|vector| Some((vector.irq, vector.cpus.as_ref()?.first()?)))
        .collect();
    let loads = Loads {
        now: queues_by_core(machine, &BTreeMap::new()),
        planned: queues_by_core(machine, &planned),
    };
    let report = |planned| report(machine, plan, planned, found, &loads, watched);
    let mut reports: Vec<InterfaceReport> = plan.interfaces.iter().map(report).collect();
    for report in &mut reports {
        if unknown.iter().any(|one| one.interface == report.name) {
            report.summary.state = InterfaceState::Unknown;
        }
    }
    reports.sort_by_key(|report| {
        let remote = report.queue_vectors - report.local.unwrap_or(0);
        Reverse((report.state, remote, report.differ))
    });
    reports
}

fn report(
    machine: &Machine,
    plan: &Plan,
    planned: &PlannedInterface,
    found: &Differences,
    loads: &Loads,
    watched: Option<&Growth>,
) -> InterfaceReport {
    let interface = machine.interface(&planned.name);
    let vectors = planned.vectors.iter();
    let vectors: Vec<VectorStatus> = vectors
        .map(|vector| VectorStatus::new(machine, planned, vector, &found.fallbacks, watched))
        .collect();
    let count =
        |holds: &dyn Fn(&VectorStatus) -> bool| vectors.iter().filter(|row| holds(row)).count();
    let (mut kinds, mut reasons) = (BTreeMap::new(), BTreeMap::new());
    for one in &found.differs {
        if *one.write.interface == *planned.name {
            *kinds.entry(one.write.kind).or_default() += 1;
            *reasons.entry(one.reason).or_default() += 1;
        }
    }
    let sum = |reasons: &BTreeMap<Reason, usize>, holds: fn(Reason) -> bool| -> usize {
        let held = reasons.iter().filter(|(reason, _)| holds(**reason));
        held.map(|(_, many)| many).sum()
    };
    let steering = |planned: &mut dyn Iterator<Item = &CpuSet>, of: [WriteKind; 2]| {
        let planned: Vec<&CpuSet> = planned.collect();
        Steering {
            planned: planned.len(),
            on: planned.iter().filter(|cpus| !cpus.is_empty()).count(),
            differ: of.iter().filter_map(|kind| kinds.get(kind)).sum(),
        }
    };
    let rx = &mut planned
        .rx_queues
        .iter()
        .filter_map(|rx| rx.rps_cpus.as_ref());
    let tx = &mut planned
        .tx_queues
        .iter()
        .filter_map(|tx| tx.xps_cpus.as_ref());
    let channels = plan.channels.iter();
    let channels = channels
        .filter(|change| change.interface == planned.name)
        .count();
    let differ = sum(&reasons, |_| true) + channels;
    let drifted = sum(&reasons, Reason::is_change_since_apply);
    let (max_per_cpu, max_per_core) = most_queues(&vectors, VectorStatus::cpu, &loads.now);
    let planned_cpu = |row: &VectorStatus| row.planned.as_ref().map_or(row.cpu(), CpuSet::first);
    InterfaceReport {
        driver_version: interface.and_then(|interface| interface.driver_version.clone()),
        firmware: interface.and_then(|interface| interface.firmware.clone()),
        mtu: interface.and_then(|interface| interface.mtu),
        node_source: planned.node_source,
        speed_mbps: planned.speed_mbps,
        link: planned.link.clone(),
        queues: planned.rx_queues.len().max(planned.tx_queues.len()),
        max_queues: planned.channels.map(|channels| channels.max_receiving()),
        max_per_cpu,
        max_per_core,
        max_per_core_planned: most_queues(&vectors, planned_cpu, &loads.planned).1,
        on_isolated: count(&|row| row.on_isolated),
        differ,
        drifted,
        unmovable: count(&|row| row.state == VectorState::Unmovable),
        per_second: watched.map(|_| vectors.iter().filter_map(|row| row.per_second).sum()),
        proven: watched.map(|_| count(&|row| row.is_active() && row.is_proven())),
        fix: (differ > 0).then(|| format!("nicpin apply {}", word(&planned.name))),
        rps: steering(rx, [WriteKind::Rps, WriteKind::RpsFlow]),
        xps: steering(tx, [WriteKind::Xps, WriteKind::XpsRxqs]),
        rss: planned.rss.clone(),
        threads: planned
            .threads
            .iter()
            .map(|thread| ThreadStatus::new(machine, planned, thread, watched))
            .collect(),
        polling: interface
            .map(|interface| interface.polling)
            .unwrap_or_default(),
        notes: notes(plan, planned, interface),
        summary: InterfaceSummary {
            name: planned.name.clone(),
            state: state(planned, &vectors, (differ, drifted), &loads.now),
            driver: planned.driver.clone(),
            device: planned.device.clone(),
            pci_id: planned.pci_id.clone(),
            node: planned.node,
            candidates: planned.candidates.clone(),
            rx_queues: planned.rx_queues.len(),
            tx_queues: planned.tx_queues.len(),
            queue_vectors: count(&VectorStatus::is_active),
            local: vectors
                .iter()
                .any(|row| row.local.is_some())
                .then(|| count(&|row| row.is_active() && row.local == Some(true))),
        },
        kinds,
        reasons,
        vectors,
    }
}

/// The notes of the plan, and those about channels and about settings by which packets are not received on the vector's
/// CPU, or not at its interrupt.
fn notes(plan: &Plan, planned: &PlannedInterface, interface: Option<&Interface>) -> Vec<Note> {
    let of_plan = planned.notes.iter();
    let of_plan = of_plan.filter(|note| !matches!(note, Note::KernelManaged { .. }));
    let mut notes: Vec<Note> = of_plan.cloned().collect();
    let name = || planned.name.clone();
    let channels = plan
        .channels
        .iter()
        .filter(|change| change.interface == planned.name);
    notes.extend(channels.map(|change| Note::ChannelsDiffer {
        interface: name(),
        wanted: change.wanted.receiving(),
        why: change.why.clone(),
    }));
    let placed = planned
        .threads
        .iter()
        .filter(|thread| thread.cpus.is_some());
    let pids: Vec<u32> = placed.map(|thread| thread.pid).collect();
    notes.extend((!pids.is_empty()).then(|| Note::ThreadedNapi {
        interface: name(),
        pids,
        placed: true,
    }));
    let polling = interface
        .map(|interface| interface.polling)
        .unwrap_or_default();
    notes.extend(
        polling
            .defers_interrupts()
            .then_some(Note::InterruptsDeferred {
                napi_defer_hard_irqs: polling.napi_defer_hard_irqs,
                gro_flush_timeout: polling.gro_flush_timeout,
            }),
    );
    notes
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
    let load = |cpu: Option<u32>| cpu.and_then(|cpu| loads.get(&cpu)).copied();
    let is_crowded = |row: &VectorStatus| load(row.cpu()).is_some_and(|load| load > 1);
    let unplannable =
        |note: &Note| note.is_unplannable() && !matches!(note, Note::NoVectors { .. });
    if planned.notes.iter().any(unplannable) {
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
            .any(|cpu| load(Some(cpu)) == Some(0))
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

/// The queues of all interfaces on the core of each CPU, now and planned.
struct Loads {
    now: BTreeMap<u32, usize>,
    planned: BTreeMap<u32, usize>,
}

/// The queues in use of all interfaces on the core of each CPU. A queue's receive and transmit vectors on one core count
/// once. `planned`: the CPUs of IRQs that count there and not where they are.
fn queues_by_core(machine: &Machine, planned: &BTreeMap<u32, u32>) -> BTreeMap<u32, usize> {
    let mut on_cpu: BTreeMap<u32, BTreeSet<(usize, Option<u32>)>> = BTreeMap::new();
    let now = |vector: &Vector| {
        vector
            .effective
            .as_ref()
            .unwrap_or(&vector.affinity.cpus)
            .first()
    };
    for (at, interface) in machine.interfaces.iter().enumerate() {
        let vectors = interface.vectors.iter();
        for vector in vectors.filter(|v| v.is_queue_vector() && !interface.is_idle(v)) {
            if let Some(cpu) = planned.get(&vector.irq).copied().or_else(|| now(vector)) {
                on_cpu.entry(cpu).or_default().insert((at, vector.queue));
            }
        }
    }
    let mut loads = BTreeMap::new();
    for core in &machine.topology.cores {
        let queues = core.iter().filter_map(|cpu| on_cpu.get(&cpu)).flatten();
        let load = queues.collect::<BTreeSet<_>>().len();
        loads.extend(core.iter().map(|cpu| (cpu, load)));
    }
    loads
}

/// The most queues on one CPU, of this interface, and on one core, of all interfaces.
fn most_queues(
    vectors: &[VectorStatus],
    cpu: impl Fn(&VectorStatus) -> Option<u32>,
    loads: &BTreeMap<u32, usize>,
) -> (usize, usize) {
    let mut on_cpu: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for row in vectors.iter().filter(|row| row.is_active()) {
        if let (Some(queue), Some(cpu)) = (row.queue, cpu(row)) {
            on_cpu.entry(cpu).or_default().insert(queue);
        }
    }
    let on_core = on_cpu.keys().filter_map(|cpu| loads.get(cpu)).max();
    (
        on_cpu.values().map(BTreeSet::len).max().unwrap_or(0),
        on_core.copied().unwrap_or(0),
    )
}
