//! The result of `check`: what differs from the plan, and why.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use crate::plan::{ChannelChange, HostSummary, Note, Plan};
use crate::report::difference::{
    Difference, Differences, Fallback, Reason, UnmovableVector, Unplannable,
};
use crate::report::exit::Exit;
use crate::report::interface::{InterfaceReport, InterfaceState};

/// The name and version of the JSON form.
pub const SCHEMA: &str = "nicpin.check/1";

/// The result of `check`; its JSON form is `nicpin.check/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    pub schema: &'static str,
    pub verdict: CheckState,
    /// The worst state of all interfaces; `None` without interfaces.
    pub state: Option<InterfaceState>,
    /// Worst first; the JSON form has their summaries.
    #[serde(serialize_with = "summaries")]
    pub interfaces: Vec<InterfaceReport>,
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

fn summaries<S: Serializer>(interfaces: &[InterfaceReport], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(interfaces.iter().map(|interface| &interface.summary))
}

/// The verdicts of `check`. The state of its interfaces decides, not the number of settings: see [`InterfaceState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// Everything is as planned, or as good.
    Same,
    /// Something would be better as planned.
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
        Differences { differs, fallbacks }: Differences,
        unknown: Vec<Unplannable>,
        left_alone: Vec<Unplannable>,
        interfaces: Vec<InterfaceReport>,
    ) -> Self {
        let of_machine = differs.iter().any(|one| one.write.interface.is_empty());
        let verdict = if !unknown.is_empty() {
            CheckState::CouldNotBeDetermined
        } else if of_machine || interfaces.iter().any(|one| one.state.differs()) {
            CheckState::Differs
        } else {
            CheckState::Same
        };
        let notes = plan
            .notes
            .iter()
            .filter(|note| note.is_absent() || **note == Note::NothingToDo);
        Self {
            schema: SCHEMA,
            verdict,
            state: InterfaceState::worst(interfaces.iter().map(|one| one.state)),
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

    /// The number of settings that are not as planned, channels included.
    pub fn differ(&self) -> usize {
        self.differs.len() + self.channels.len()
    }

    /// How many settings differ for each reason.
    pub fn reasons(&self) -> BTreeMap<Reason, usize> {
        counted(self.differs.iter())
    }

    /// The same of one interface, or of the whole machine where the name is empty.
    pub fn reasons_of(&self, interface: &str) -> BTreeMap<Reason, usize> {
        counted(
            self.differs
                .iter()
                .filter(|one| *one.write.interface == *interface),
        )
    }

    /// The stricter verdict, by which vectors that cannot be moved are differences.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.differs_if(!self.unmovable.is_empty());
        self
    }

    /// The stricter verdict, by which settings that are as good as planned are differences.
    #[must_use]
    pub fn exact(mut self) -> Self {
        self.differs_if(self.differ() > 0);
        self
    }

    fn differs_if(&mut self, differs: bool) {
        if self.verdict == CheckState::Same && differs {
            self.verdict = CheckState::Differs;
        }
    }
}

fn counted<'a>(differs: impl Iterator<Item = &'a Difference>) -> BTreeMap<Reason, usize> {
    let mut counts = BTreeMap::new();
    for one in differs {
        *counts.entry(one.reason).or_default() += 1;
    }
    counts
}
