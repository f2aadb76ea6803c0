//! The result of `check`.

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::machine::Role;
use crate::plan::{ChannelChange, HostSummary, Note, Plan, PlannedInterface, PlannedVector};
use crate::report::difference::{Difference, Fallback};
use crate::report::exit::Exit;
use crate::report::state::InterfaceState;

/// The name and version of the JSON form.
pub const SCHEMA: &str = "nicpin.check/1";

/// The result of `check`; its JSON form is `nicpin.check/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    pub schema: &'static str,
    pub verdict: CheckState,
    /// The worst state of all interfaces; `None` without interfaces.
    pub state: Option<InterfaceState>,
    /// Worst first.
    pub interfaces: Vec<CheckedInterface>,
    /// The plan's hash.
    pub hash: String,
    /// The hardware class of the machine.
    pub class: String,
    /// CPUs and nodes of the machine.
    pub host: HostSummary,
    /// The number of settings that are as planned.
    pub same: usize,
    /// Settings that are not as planned.
    pub differs: Vec<Difference>,
    /// Vectors that apply placed on another CPU because the planned one had no free interrupt vector; they count as planned.
    pub fallbacks: Vec<Fallback>,
    /// Planned changes of channels.
    pub channels: Vec<ChannelChange>,
    /// Requested interfaces whose state could not be determined.
    pub unknown: Vec<Unplannable>,
    /// Vectors of queues that the kernel does not allow to move.
    pub unmovable: Vec<UnmovableVector>,
    /// Other tools on the machine that set affinity: `irqbalance`, unless it leaves the planned IRQs alone for good, with
    /// its version if it may have moved something; `tuned`, `systemd-udevd` and scripts by their paths.
    pub other_tools: Vec<String>,
    /// Notes about selectors that match nothing, and about a machine without interfaces.
    pub notes: Vec<Note>,
    /// Interfaces that are up, were not requested by name and cannot be planned.
    pub left_alone: Vec<Unplannable>,
}

/// The state of an interface, and what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckedInterface {
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

impl CheckedInterface {
    /// The share of its queue vectors that are local, 0 to 1; `None` without any, or when no node is known.
    #[allow(clippy::cast_precision_loss)] // counts of vectors
    pub fn local_share(&self) -> Option<f64> {
        let local = self.local.filter(|_| self.queue_vectors > 0)?;
        Some(local as f64 / self.queue_vectors as f64)
    }
}

/// A vector of a queue that the kernel does not allow to move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnmovableVector {
    pub interface: String,
    pub irq: u32,
    /// `smp_affinity`.
    pub affinity: CpuSet,
}

impl UnmovableVector {
    /// Those of a plan.
    #[doc(hidden)]
    pub fn of(plan: &Plan) -> Vec<Self> {
        let of_interface = |interface: &PlannedInterface| {
            let vectors = interface
                .vectors
                .iter()
                .filter(|v| !v.movable && v.role != Role::Control);
            let one = |vector: &PlannedVector| Self {
                interface: interface.name.clone(),
                irq: vector.irq,
                affinity: vector.affinity.clone(),
            };
            vectors.map(one).collect::<Vec<_>>()
        };
        plan.interfaces.iter().flat_map(of_interface).collect()
    }
}

/// An interface that cannot be planned, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unplannable {
    pub interface: String,
    #[serde(flatten)]
    pub note: Note,
}

impl Unplannable {
    /// The interfaces of a plan that have a note that `matches`.
    #[doc(hidden)]
    pub fn of(plan: &Plan, matches: impl Fn(&Note) -> bool) -> Vec<Self> {
        let notes = plan
            .interfaces
            .iter()
            .flat_map(|i| i.notes.iter().map(move |note| (i, note)));
        notes
            .filter(|(_, note)| matches(note))
            .map(|(interface, note)| Self {
                interface: interface.name.clone(),
                note: note.clone(),
            })
            .collect()
    }

    /// Interfaces selected by name that cannot be planned.
    pub fn requested(plan: &Plan, requested: bool) -> Vec<Self> {
        if requested {
            Self::of(plan, Note::is_unplannable)
        } else {
            Vec::new()
        }
    }

    /// Interfaces whose state cannot be determined: those selected by name that cannot be planned, and without a selection
    /// all those whose vectors cannot be read.
    pub fn unknown(plan: &Plan, requested: bool) -> Vec<Self> {
        if requested {
            Self::requested(plan, requested)
        } else {
            Self::of(plan, |note| matches!(note, Note::VectorsUnreadable { .. }))
        }
    }

    /// Without a selection: interfaces that are up and whose vectors are not understood.
    pub fn left_alone(plan: &Plan, requested: bool) -> Vec<Self> {
        if requested {
            return Vec::new();
        }
        let mut left = Self::of(plan, |note| {
            matches!(note, Note::VectorsNotUnderstood { .. })
        });
        let up = |name: &str| {
            plan.interfaces
                .iter()
                .any(|i| i.name == name && i.link == "up")
        };
        left.retain(|one| up(&one.interface));
        left
    }
}

/// The verdicts of `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// Everything is as planned.
    Same,
    /// Something is not as planned.
    Differs,
    /// Not every requested interface can be planned.
    CouldNotBeDetermined,
}

fn other_tools(plan: &Plan) -> Vec<String> {
    let irqbalance = plan
        .irqbalance
        .iter()
        .filter(|running| !running.lasts)
        .map(|_| "irqbalance".to_owned());
    let others = plan.notes.iter().filter_map(|note| match note {
        Note::TunedRunning { .. } => Some("tuned".to_owned()),
        Note::LinkIrqAffinity { .. } => Some("systemd-udevd".to_owned()),
        Note::CloudScript { path, .. } => Some(path.clone()),
        _ => None,
    });
    irqbalance.chain(others).collect()
}

impl Check {
    pub fn exit(&self) -> Exit {
        match self.verdict {
            CheckState::Same => Exit::Planned,
            CheckState::Differs => Exit::Differs,
            CheckState::CouldNotBeDetermined => Exit::Failed,
        }
    }

    /// The verdict on a plan, from the settings that differ, the interfaces that cannot be planned, and the states of
    /// the interfaces.
    #[doc(hidden)]
    pub fn new(
        plan: &Plan,
        (differs, fallbacks): (Vec<Difference>, Vec<Fallback>),
        unknown: Vec<Unplannable>,
        left_alone: Vec<Unplannable>,
        interfaces: Vec<CheckedInterface>,
    ) -> Self {
        let verdict = match (
            differs.is_empty() && plan.channels.is_empty(),
            unknown.is_empty(),
        ) {
            (_, false) => CheckState::CouldNotBeDetermined,
            (true, true) => CheckState::Same,
            (false, true) => CheckState::Differs,
        };
        let notes = plan
            .notes
            .iter()
            .filter(|note| note.is_absent() || **note == Note::NothingToDo);
        Self {
            schema: SCHEMA,
            verdict,
            state: interfaces.first().map(|worst| worst.state),
            interfaces,
            hash: plan.hash.clone(),
            class: plan.class.clone(),
            host: plan.host.clone(),
            same: plan.unchanged + fallbacks.len(),
            differs,
            fallbacks,
            channels: plan.channels.clone(),
            unknown,
            unmovable: UnmovableVector::of(plan),
            other_tools: other_tools(plan),
            notes: notes.cloned().collect(),
            left_alone,
        }
    }

    /// The stricter verdict, by which vectors that cannot be moved are differences.
    #[must_use]
    pub fn strict(mut self) -> Self {
        if self.verdict == CheckState::Same && !self.unmovable.is_empty() {
            self.verdict = CheckState::Differs;
        }
        self
    }
}
