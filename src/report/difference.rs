//! Differences from a plan with their reasons, and the measures that a plan makes better or worse.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::repeat;

use itertools::{Itertools as _, chain, izip};
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::cpuset::{CpuSet, Inserted as _};
use crate::drivers::{Driver, Fact};
use crate::kinds::{Place, place};
use crate::machine::{Machine, Role};
use crate::plan::Measure::{
    self, BusiestLoad, BusiestQueues, BusiestShare, FarSenders, FirstQueues, Isolated, OtherRps,
    Outside, Pairs, Remote, RemoteRdma, Requested, SharedSenders, UnevenCores, UnevenThreads,
};
use crate::plan::{
    DecidedBy, Note, Plan, PlannedInterface, Score, SettingKind, Standing, Write, cores_serving,
    standings,
};

/// Why a setting differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    NotApplied,
    /// Changed since apply: by another program, the driver, or the kernel when a CPU went offline.
    MovedByOther,
    QueueCountChanged,
    KernelRefused,
    /// A CPU that apply set went offline.
    CpuOffline,
    /// The driver has freed and allocated the vector again since the last apply.
    IrqRecreated,
    /// The setting is as apply set it, but the plan has changed.
    PlanChanged,
    /// The record of the last apply cannot be read.
    Unknown,
}

impl Reason {
    pub const ALL: [Self; 8] = [
        Self::NotApplied,
        Self::MovedByOther,
        Self::QueueCountChanged,
        Self::KernelRefused,
        Self::CpuOffline,
        Self::IrqRecreated,
        Self::PlanChanged,
        Self::Unknown,
    ];

    pub fn name(self) -> &'static str {
        [
            "not-applied",
            "moved-by-other",
            "queue-count-changed",
            "kernel-refused",
            "cpu-offline",
            "irq-recreated",
            "plan-changed",
            "unknown",
        ][self as usize]
    }

    /// Whether the setting has changed since apply set it.
    pub fn is_change_since_apply(self) -> bool {
        !matches!(
            self,
            Self::NotApplied | Self::KernelRefused | Self::PlanChanged | Self::Unknown
        )
    }
}

/// A setting that differs from the plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    #[serde(flatten)]
    pub write: Write,
    pub reason: Reason,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Difference {
    /// An empty name stands for the whole machine.
    pub(super) fn is_of(&self, interface: &str) -> bool {
        *self.write.interface == *interface
    }
}

pub(super) fn counts<T: Ord>(all: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for element in all {
        *counts.entry(element).or_default() += 1;
    }
    counts
}

#[derive(Debug, Default)]
pub struct Differences {
    pub differs: Vec<Difference>,
    pub fallbacks: Vec<Fallback>,
}

/// A vector that got another CPU, because the planned one had no free interrupt vector.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fallback {
    #[serde(skip)]
    pub irq: u32,
    pub path: String,
    pub planned: String,
    pub holds: String,
}

/// A vector of a queue that cannot be moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnmovableVector {
    pub interface: String,
    pub irq: u32,
    /// `smp_affinity`.
    pub affinity: CpuSet,
    /// Whether the kernel manages the affinity, as the driver's row tells.
    pub managed: bool,
}

impl UnmovableVector {
    #[doc(hidden)]
    pub fn of(plan: &Plan) -> Vec<Self> {
        plan.interfaces
            .iter()
            .flat_map(|interface| repeat(interface).zip(&interface.vectors))
            .filter(|(_, vector)| !vector.movable && vector.role != Role::Control)
            .map(|(interface, vector)| Self {
                interface: interface.name.clone(),
                irq: vector.irq,
                affinity: vector.affinity.clone(),
                managed: Driver::has(interface.driver.as_deref(), Fact::ManagedIrqs),
            })
            .collect()
    }
}

/// A note about an interface; the name is empty for the whole machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteAbout {
    pub interface: String,
    pub note: Note,
}

impl Serialize for NoteAbout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut note = serde_json::to_value(&self.note).map_err(S::Error::custom)?;
        // Some notes contain the interface themselves.
        if !self.interface.is_empty() {
            note["interface"] = self.interface.as_str().into();
        }
        note.serialize(serializer)
    }
}

impl NoteAbout {
    #[doc(hidden)]
    pub fn of(plan: &Plan, matches: impl Fn(&PlannedInterface, &Note) -> bool) -> Vec<Self> {
        plan.interfaces
            .iter()
            .flat_map(|interface| repeat(interface).zip(&interface.notes))
            .filter(|(interface, note)| matches(interface, note))
            .map(|(interface, note)| Self {
                interface: interface.name.clone(),
                note: note.clone(),
            })
            .collect()
    }

    /// Notes on interfaces whose vectors cannot be read, or for which the policy cannot be met; if they were requested
    /// by name, also on others that cannot be planned.
    pub fn unknown(plan: &Plan) -> Vec<Self> {
        Self::of(plan, |interface, note| {
            let is_steered = || interface.wanted().next().is_some();
            note.is_unknown()
                || plan.explicit && matches!(note, Note::NoVectors { .. }) && !is_steered()
        })
    }

    /// Notes on vectors that are not understood, or found no room on a candidate CPU, and on requests of the policy
    /// that are met in part.
    pub fn left_alone(plan: &Plan) -> Vec<Self> {
        let is_left = |note: &Note| match note {
            Note::UnknownVectors { .. } | Note::VectorsExhausted { .. } => true,
            note => note.is_refusal() && !note.is_unmet(),
        };
        Self::of(plan, |_, note| is_left(note))
    }
}

/// A measure that the plan changes; less is better.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MeasureChange {
    /// In JSON its name.
    pub measure: Measure,
    pub now: u64,
    pub planned: u64,
}

impl MeasureChange {
    pub fn is_better(&self) -> bool {
        self.planned < self.now
    }

    /// `interfaces`: the changes of the machine's interfaces.
    pub fn of_machine(now: &Score, planned: &Score, interfaces: &[&Self]) -> Vec<Self> {
        let others = Measure::compared().filter(|measure| !PLAIN.contains(measure));
        let of_score =
            chain(PLAIN, others).map(|measure| (measure, now.of(measure), planned.of(measure)));
        let of_steering = OF_STEERING.into_iter().map(|measure| {
            let changes = interfaces.iter().filter(|change| change.measure == measure);
            let now = changes.clone().map(|change| change.now).sum();
            (measure, now, changes.map(|change| change.planned).sum())
        });
        Self::among(chain(of_score, of_steering))
    }

    fn among(all: impl Iterator<Item = (Measure, u64, u64)>) -> Vec<Self> {
        all.filter(|(_, now, planned)| now != planned)
            .map(|(measure, now, planned)| Self {
                measure,
                now,
                planned,
            })
            .collect()
    }

    /// All changes for the worse and the first ones for the better, three in all if the former leave room. Measures in
    /// the words of the objective are among them only if no other gets better.
    pub fn most_telling(all: &[Self]) -> Vec<&Self> {
        let has = |measure| all.iter().any(|change| change.measure == measure);
        let gets_better = |measure| {
            let mut better = all.iter().filter(|change| change.is_better());
            better.any(|change| change.measure == measure)
        };
        // If no IRQ's CPU is known now, nothing can be said of cores.
        let are_cores_known = all
            .iter()
            .all(|change| change.measure != BusiestQueues || change.now > 0);
        let is_told = |change: &&Self| match change.measure {
            // An IRQ on another node is outside its candidate CPUs, too.
            Outside if gets_better(Remote) || gets_better(Isolated) => !change.is_better(),
            RemoteRdma => !change.is_better(),
            BusiestLoad if has(BusiestShare) => false,
            measure => are_cores_known || !OF_CORES.contains(&measure),
        };
        let (better, worse): (Vec<&Self>, Vec<&Self>) = all
            .iter()
            .filter(is_told)
            .partition(|change| change.is_better());
        let is_plain = |change: &&Self| PLAIN.contains(&change.measure);
        let has_plain = better.iter().any(is_plain);
        better
            .iter()
            .filter(|change| !has_plain || is_plain(change))
            .take(MOST_TOLD.saturating_sub(worse.len()).max(1))
            .chain(&worse)
            .copied()
            .sorted_by_key(|change| all.iter().position(|other| other == *change))
            .collect()
    }
}

/// Measures that need no knowledge of the objective.
const PLAIN: [Measure; 6] = [
    Remote,
    Isolated,
    Outside,
    BusiestQueues,
    BusiestShare,
    FarSenders,
];
/// Each interface has these measures; no score has.
const OF_STEERING: [Measure; 2] = [SharedSenders, OtherRps];
const OF_CORES: [Measure; 7] = [
    BusiestQueues,
    BusiestLoad,
    BusiestShare,
    Pairs,
    UnevenCores,
    FirstQueues,
    UnevenThreads,
];
const MOST_TOLD: usize = 3;

#[derive(Debug, Clone, Default)]
pub(super) struct Gain {
    pub(super) changes: Vec<MeasureChange>,
    /// Most queues on a core with one of the interface's, now and planned.
    pub(super) busiest: [usize; 2],
    /// Most of the interface's own queues on a core.
    pub(super) own_planned: usize,
    /// Whether a measure is worse since settings of apply were changed.
    pub(super) made_worse: bool,
}

impl Gain {
    pub(super) fn is_better(&self) -> bool {
        self.changes.iter().any(MeasureChange::is_better)
    }
}

pub fn changes(machine: &Machine, plan: &Plan) -> Vec<MeasureChange> {
    gains(machine, plan, &Vec::from_iter(&plan.writes))
        .into_iter()
        .flat_map(|gain| gain.changes)
        .collect()
}

/// Counts the IRQs that a plan moves without gain: each is on one CPU, and they change places or move to CPUs that are
/// as good and as fast.
pub fn moves_without_gain(machine: &Machine, plan: &Plan) -> usize {
    let writes = plan
        .writes
        .iter()
        .filter(|write| write.kind == SettingKind::Vector)
        .collect_vec();
    let class = |cpu: u32| {
        machine
            .topology
            .speed_classes
            .iter()
            .position(|class| class.contains(cpu))
    };
    let classes: Option<(Vec<_>, Vec<_>)> = plan
        .vectors()
        .filter_map(|vector| Some((&vector.affinity, vector.cpus.as_ref()?)))
        .filter(|(now, planned)| now != planned)
        .map(|(now, to)| Some((class(now.only()?), class(to.first()?))))
        .collect::<Option<Vec<_>>>()
        .map(|all| all.into_iter().unzip());
    let are_as_fast = classes
        .is_some_and(|(now, to)| now.iter().sorted_unstable().eq(to.iter().sorted_unstable()));
    let is_gain = || gains(machine, plan, &writes).iter().any(Gain::is_better);
    if !writes.is_empty() && are_as_fast && !is_gain() {
        writes.len()
    } else {
        0
    }
}

/// The gain over a state in which the settings in `differs` have their current value, and all others the planned one.
pub(super) fn gains(machine: &Machine, plan: &Plan, differs: &[&Write]) -> Vec<Gain> {
    let differing: BTreeSet<Place<'_>> = differs.iter().map(|write| write.place()).inserted();
    let now = standings(machine, &plan.interfaces, &|kind, interface, number| {
        !differing.contains(&place(kind, number, interface))
    });
    let planned = standings(machine, &plan.interfaces, &|_, _, _| true);
    let serving = cores_serving(machine, &[]);
    let gain = |(interface, now, planned): (&PlannedInterface, Standing, Standing)| {
        let own = differs
            .iter()
            .filter(|write| *write.interface == *interface.name);
        let requested = settings_without_measure(machine, interface, own.copied(), &serving);
        let own_planned = planned.own_per_core;
        let changes = izip!(measures(&now), measures(&planned))
            .map(|((measure, now), (_, planned))| (measure, now, planned))
            .chain(requested.map(|(measure, now)| (measure, now, 0)));
        Gain {
            changes: MeasureChange::among(changes),
            busiest: [now, planned].map(|standing| standing.score.max_vectors_per_core),
            own_planned,
            made_worse: false,
        }
    };
    izip!(&plan.interfaces, now, planned).map(gain).collect()
}

fn measures(standing: &Standing) -> impl Iterator<Item = (Measure, u64)> {
    // Counted already: queue IRQs as `Outside` unless the policy allows that node, RDMA IRQs as `RemoteRdma`.
    Measure::compared()
        .filter(|measure| *measure != Remote)
        .map(|measure| (measure, standing.score.of(measure)))
        .chain([(SharedSenders, standing.shared_senders as u64)])
}

/// Counts the receive queues whose RPS is not as good as planned, and the requested settings.
fn settings_without_measure<'a>(
    machine: &Machine,
    interface: &PlannedInterface,
    differs: impl Iterator<Item = &'a Write>,
    serving: &CpuSet,
) -> [(Measure, u64); 2] {
    let tx = interface.tx_queues.iter();
    let xps_is_off = tx
        .filter_map(|tx| tx.xps_cpus.as_ref())
        .all(CpuSet::is_empty);
    let read = machine.interface(&interface.name);
    let as_good = interface.rps_as_good(read, serving).count() as u64;
    let hinted: BTreeSet<_> = interface
        .vectors
        .iter()
        .filter(|vector| {
            let placement = vector.placement.as_ref();
            placement.is_some_and(|placement| placement.decided_by == Some(DecidedBy::Hint))
        })
        .map(|vector| vector.irq)
        .collect();
    let (mut rps, mut others) = (0_u64, 0);
    for write in differs {
        match write.kind {
            SettingKind::Rps => rps += 1,
            SettingKind::Vector => others += u64::from(hinted.contains(&write.number)),
            SettingKind::Xps => others += u64::from(xps_is_off),
            _ => others += 1,
        }
    }
    [(OtherRps, rps.saturating_sub(as_good)), (Requested, others)]
}
