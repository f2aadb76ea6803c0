//! The report of an interface, parts of which `status`, `check`, metrics and monitoring plugins show.
//!
//! The planned affinity, the affinity and the effective affinity are three different things. None of them proves where
//! packets are received: only interrupts that arrived do.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Deref;

use itertools::{Itertools as _, izip};
use serde::Serialize;

use crate::cpuset::{CpuSet, QueueSet};
use crate::machine::netdev::{Netdev, QueueUser};
use crate::machine::sample::Delta;
use crate::machine::wording::selector;
use crate::machine::{Interface, Machine, Polling};
use crate::plan::{
    NodeSource, Note, Plan, PlannedInterface, PlannedRss, SettingKind, Standing, standings,
};
use crate::report::difference::{Differences, Gain, MeasureChange, NoteAbout, counts, gains};
use crate::report::state::state;
pub use crate::report::state::{InterfaceState, StateRow};
use crate::report::vectors::VectorState::Unmovable;
use crate::report::vectors::{ThreadStatus, VectorStatus};

/// The part of a report that `check` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InterfaceSummary {
    pub name: String,
    pub state: InterfaceState,
    pub driver: Option<String>,
    pub device: String,
    pub pci_id: Option<String>,
    /// `None` if the local node is unknown.
    pub node: Option<u32>,
    pub candidates: CpuSet,
    pub candidate_cores: usize,
    pub rx_queues: usize,
    pub tx_queues: usize,
    pub queue_vectors: usize,
    /// Queue vectors on a local CPU; `None` if no node, or not every vector's location, is known.
    pub local: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<MeasureChange>,
}

impl InterfaceSummary {
    /// From 0 to 1; `None` without queue vectors, or if no node is known.
    pub fn local_share(&self) -> Option<f64> {
        let local = self.local.filter(|_| self.queue_vectors > 0)?;
        Some(local as f64 / self.queue_vectors as f64)
    }

    pub fn local_percent(&self) -> Option<f64> {
        self.local_share().map(|share| share * 100.0)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InterfaceReport {
    #[serde(flatten)]
    pub summary: InterfaceSummary,
    pub driver_version: Option<String>,
    pub firmware: Option<String>,
    /// In bytes.
    pub mtu: Option<u32>,
    pub node_source: NodeSource,
    pub speed_mbps: Option<u32>,
    pub link: String,
    /// Receive queues in use, or transmit queues if these are more.
    pub queues: usize,
    /// The maximum of receiving channels; `None` if the driver does not report it.
    pub max_queues: Option<u32>,
    pub max_per_cpu: usize,
    /// Most queues, of all interfaces, on a core with one of this interface.
    pub max_per_core: usize,
    /// `max_per_core` if all settings were as planned.
    pub max_per_core_planned: usize,
    pub own_per_core: usize,
    /// `own_per_core` if all settings were as planned.
    pub own_per_core_planned: usize,
    /// Vectors with an isolated or `nohz_full` effective CPU, or with an exclusive one that the policy leaves out.
    pub on_isolated: usize,
    /// Settings that differ from the plan, a change of channels included.
    pub differ: usize,
    /// Settings that have changed since apply set them.
    pub drifted: usize,
    /// Settings that differ, without channels.
    #[serde(skip)]
    pub kinds: BTreeMap<SettingKind, usize>,
    pub unmovable: usize,
    /// Interrupts of all vectors; `None` if they were not watched.
    pub per_second: Option<f64>,
    /// Vectors of queues in use with interrupts, all on planned CPUs.
    pub proven: Option<usize>,
    pub vectors: Vec<VectorStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadStatus>,
    /// Receive packet steering, with the flow table.
    pub rps: Steering,
    pub xps: Steering,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss: Option<PlannedRss>,
    pub polling: Polling,
    pub notes: Vec<Note>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Deref for InterfaceReport {
    type Target = InterfaceSummary;

    fn deref(&self) -> &InterfaceSummary {
        &self.summary
    }
}

/// Counts of queues for one kind of steering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Steering {
    /// Queues with a plan, "off" included.
    pub planned: usize,
    pub on: usize,
    pub differ: usize,
}

impl Steering {
    /// `differ`: the settings that differ, of all kinds. `direction` is `rx` or `tx`.
    fn new(planned: &[&CpuSet], differ: &BTreeMap<SettingKind, usize>, direction: &str) -> Self {
        let is_of = |kind: SettingKind| kind.of_queue().is_some_and(|(way, _)| way == direction);
        let differ = differ.iter().filter(|(kind, _)| is_of(**kind));
        Self {
            planned: planned.len(),
            on: planned.iter().filter(|cpus| !cpus.is_empty()).count(),
            differ: differ.map(|(_, many)| many).sum(),
        }
    }
}

/// The plan's interfaces that are not judged, without those whose state is unknown, and those that differ although all
/// their IRQs are understood.
pub fn not_judged(plan: &Plan, interfaces: &[InterfaceReport]) -> Vec<String> {
    let mut names = plan.not_judged.clone();
    names.retain(|name| {
        let planned = plan.interface(name);
        let is_left = planned.is_some_and(PlannedInterface::has_unknown);
        let mut own = interfaces.iter().filter(|report| report.name == *name);
        !own.any(|InterfaceReport { summary, .. }| {
            summary.state == InterfaceState::Unknown || summary.state.differs() && !is_left
        })
    });
    names
}

/// The worst first. `unknown`: interfaces whose state could not be determined.
pub fn interfaces(
    machine: &Machine,
    plan: &Plan,
    found: &Differences,
    unknown: &[NoteAbout],
    watched: Option<&Delta>,
) -> Vec<InterfaceReport> {
    let differs = found.differs.iter();
    let drifted = differs
        .clone()
        .filter(|difference| difference.reason.is_change_since_apply())
        .map(|difference| &difference.write)
        .collect_vec();
    let gain = gains(
        machine,
        plan,
        &differs.map(|difference| &difference.write).collect_vec(),
    );
    let lost = match drifted[..] {
        [] => vec![Gain::default(); plan.interfaces.len()],
        _ => gains(machine, plan, &drifted),
    };
    let as_is = standings(machine, &plan.interfaces, &|_, _, _| false);
    let reports =
        izip!(&plan.interfaces, gain, lost, as_is).map(|(interface, mut gain, lost, as_is)| {
            // What was lost may be made up for, as by the loss of a CPU.
            gain.made_worse = lost.is_better() && gain.is_better();
            let mut report = report(machine, plan, interface, found, gain, &as_is, watched);
            if unknown.iter().any(|note| note.interface == report.name) {
                report.summary.state = InterfaceState::Unknown;
            }
            report
        });
    reports
        .sorted_by_key(|report| {
            let remote = report.queue_vectors - report.local.unwrap_or(0);
            Reverse((report.state, remote, report.differ))
        })
        .collect()
}

fn report(
    machine: &Machine,
    plan: &Plan,
    interface: &PlannedInterface,
    found: &Differences,
    gain: Gain,
    as_is: &Standing,
    watched: Option<&Delta>,
) -> InterfaceReport {
    let absent = Interface::default();
    let read = machine.interface(&interface.name).unwrap_or(&absent);
    let vectors = interface
        .vectors
        .iter()
        .map(|vector| plan.with_shared(vector))
        .map(|vector| VectorStatus::new(machine, interface, &vector, &found.fallbacks, watched))
        .collect_vec();
    let thread = |thread| ThreadStatus::new(machine, interface, thread, watched);
    let count =
        |holds: &dyn Fn(&VectorStatus) -> bool| vectors.iter().filter(|row| holds(row)).count();
    let own = found
        .differs
        .iter()
        .filter(|difference| difference.is_of(&interface.name));
    let kinds = counts(own.clone().map(|difference| difference.write.kind));
    let drifted = own
        .filter(|difference| difference.reason.is_change_since_apply())
        .count();
    let (rx, tx) = (interface.rx_queues.iter(), interface.tx_queues.iter());
    let rps = rx.filter_map(|rx| rx.rps_cpus.as_ref()).collect_vec();
    let xps = tx.filter_map(|tx| tx.xps_cpus.as_ref()).collect_vec();
    let mut channels = plan.channels.iter();
    let channels_asked = channels.any(|change| change.interface == interface.name);
    let differ = kinds.values().sum::<usize>() + usize::from(channels_asked);
    let state = state(
        machine,
        read,
        interface,
        &vectors,
        [differ, drifted],
        channels_asked,
        &gain,
    );
    let local = count(&|row| row.is_active() && row.local == Some(true));
    let is_located = count(&|row| row.local.is_some()) > 0
        && count(&|row| row.is_active() && row.local.is_none()) == 0;
    InterfaceReport {
        driver_version: read.driver_version.clone(),
        firmware: read.firmware.clone(),
        mtu: read.mtu,
        node_source: interface.node_source,
        speed_mbps: interface.speed_mbps,
        link: interface.link.clone(),
        queues: if read.is_elsewhere() {
            vectors
                .iter()
                .filter(|row| row.is_active())
                .map(VectorStatus::queue_id)
                .unique()
                .count()
        } else {
            interface.rx_queues.len().max(interface.tx_queues.len())
        },
        max_queues: interface.channels.map(|channels| channels.max_busier()),
        max_per_cpu: most_queues(&vectors),
        max_per_core: as_is.score.max_vectors_per_core,
        max_per_core_planned: gain.busiest[1],
        own_per_core: as_is.own_per_core,
        own_per_core_planned: gain.own_planned,
        on_isolated: count(&|row| row.on_isolated),
        differ,
        drifted,
        unmovable: count(&|row| row.state == Unmovable),
        per_second: watched.map(|_| vectors.iter().filter_map(|row| row.per_second).sum()),
        proven: watched.map(|_| count(&|row| row.is_active() && row.is_proven())),
        fix: (differ > 0).then(|| format!("nicpin apply {}", selector(&interface.name))),
        rps: Steering::new(&rps, &kinds, "rx"),
        xps: Steering::new(&xps, &kinds, "tx"),
        rss: interface.rss.clone(),
        threads: interface.threads.iter().map(thread).collect(),
        polling: read.polling,
        notes: notes(plan, interface, read),
        summary: InterfaceSummary {
            name: interface.name.clone(),
            state,
            driver: interface.driver.clone(),
            device: interface.device.clone(),
            pci_id: interface.pci_id.clone(),
            node: interface.node,
            candidates: interface.candidates.clone(),
            candidate_cores: interface.candidate_cores,
            rx_queues: interface.rx_queues.len(),
            tx_queues: interface.tx_queues.len(),
            queue_vectors: count(&VectorStatus::is_active),
            local: is_located.then_some(local),
            changes: gain.changes,
        },
        kinds,
        vectors,
    }
}

/// The notes of the plan, and those about channels and about settings because of which packets are not received on the
/// vector's CPU, or not at its interrupt.
fn notes(plan: &Plan, interface: &PlannedInterface, read: &Interface) -> Vec<Note> {
    let name = || interface.name.clone();
    let mut notes = interface.notes.clone();
    notes.retain(|note| !matches!(note, Note::KernelManaged { .. } | Note::NotMovable { .. }));
    let channels = plan.channels.iter();
    notes.extend(
        channels
            .filter(|change| change.interface == interface.name)
            .map(|change| Note::ChannelsDiffer {
                interface: name(),
                wanted: change.wanted.receiving(),
                why: change.why.clone(),
            }),
    );
    let placed = interface
        .threads
        .iter()
        .filter(|thread| thread.cpus.is_some());
    let pids = placed.map(|thread| thread.pid).collect_vec();
    if !pids.is_empty() {
        notes.push(Note::ThreadedNapi {
            interface: name(),
            pids,
            placed: true,
        });
    }
    let polling = read.polling;
    if polling.defers_interrupts() {
        notes.push(Note::InterruptsDeferred {
            napi_defer_hard_irqs: polling.napi_defer_hard_irqs,
            gro_flush_timeout: polling.gro_flush_timeout,
            irq_suspend_timeout: polling.irq_suspend_timeout,
        });
    }
    let pids = read
        .threads
        .iter()
        .filter(|thread| thread.busy_polls)
        .map(|thread| thread.pid)
        .collect_vec();
    if !pids.is_empty() {
        notes.push(Note::BusyPolling { pids });
    }
    let mut taken: BTreeMap<QueueUser, QueueSet> = BTreeMap::new();
    for (queue, user) in read.netdev.iter().flat_map(Netdev::taken) {
        taken.entry(user).or_default().insert(queue);
    }
    notes.extend(
        taken
            .into_iter()
            .map(|(user, queues)| Note::QueuesTaken { user, queues }),
    );
    notes
}

fn most_queues(vectors: &[VectorStatus]) -> usize {
    vectors
        .iter()
        .filter(|row| row.is_active())
        .filter_map(|row| Some((row.now.first()?, row.queue_id()?)))
        .unique()
        .counts_by(|(cpu, _)| cpu)
        .into_values()
        .max()
        .unwrap_or(0)
}
