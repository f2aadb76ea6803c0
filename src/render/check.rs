//! What `check` found, as a value for JSON and as text.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::apply::{Difference, Fallback, Reason};
use crate::plan::{ChannelChange, Note, Plan};
use crate::render::text::{columns, count, wrap};

/// What `check` says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    schema: &'static str,
    /// The answer.
    pub verdict: CheckState,
    /// The plan's hash.
    hash: String,
    /// How many values are as planned.
    same: usize,
    /// What is not, and why.
    differs: Vec<Difference>,
    /// What apply has put elsewhere, since the kernel had no room for it: as good as planned.
    instead: Vec<Fallback>,
    /// Cards that should have other channels.
    channels: Vec<ChannelChange>,
    /// Interfaces that were asked for and cannot be told, and why.
    unknown: Vec<Unplannable>,
    /// What was named and is not there.
    notes: Vec<Note>,
    /// Interfaces that nobody asked for by name, which are up and cannot be planned, and why.
    left_alone: Vec<Unplannable>,
}

/// An interface that was asked for and cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unplannable {
    /// Its name.
    pub interface: String,
    /// A fixed word for programs.
    pub reason: String,
    /// A sentence for people.
    pub text: String,
}

/// The answers of `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// Everything is as planned.
    Same,
    /// Something is not.
    Differs,
    /// It cannot be told.
    CouldNotTell,
}

impl Check {
    /// Checks a plan: what it would write is what differs.
    pub fn new(
        plan: &Plan,
        differs: Vec<Difference>,
        instead: Vec<Fallback>,
        unknown: Vec<Unplannable>,
        left_alone: Vec<Unplannable>,
    ) -> Self {
        let verdict = match (differs.is_empty() && plan.channels.is_empty(), unknown.is_empty()) {
            (_, false) => CheckState::CouldNotTell,
            (true, true) => CheckState::Same,
            (false, true) => CheckState::Differs,
        };
        Self {
            schema: "nicpin.check/1",
            verdict,
            hash: plan.hash.clone(),
            same: plan.unchanged + instead.len(),
            differs,
            instead,
            channels: plan.channels.clone(),
            unknown,
            notes: plan.notes.iter().filter(|note| note.is_absent()).cloned().collect(),
            left_alone,
        }
    }
}

/// `check` for people.
pub fn check(check: &Check) -> String {
    let mut out = String::new();
    let mut reasons: BTreeMap<(&str, Reason), (usize, Option<&str>)> = BTreeMap::new();
    let mut rows = Vec::new();
    for Difference { write, reason, detail } in &check.differs {
        rows.push(vec![
            write.interface.to_string(),
            write.path.clone(),
            format!("is {}, planned {}", write.current, write.value),
        ]);
        let (many, first) = reasons.entry((&write.interface, *reason)).or_insert((0, detail.as_deref()));
        *many += 1;
        *first = (*first).filter(|first| Some(*first) == detail.as_deref());
    }
    out.push_str(&columns(0, &rows, &[15, 48]));
    for ((interface, reason), (many, detail)) in reasons {
        let name = if interface.is_empty() { "machine" } else { interface };
        let detail = detail.map(|detail| format!("; {detail}")).unwrap_or_default();
        let text = format!("{name}: {}: {}{detail}", count(many, "value"), reason_words(reason));
        out.push_str(&wrap("because  ", &text));
    }
    for Fallback { path, planned, holds } in &check.instead {
        let text = format!("{path}: {holds} for {planned}, since the kernel had no room there");
        out.push_str(&wrap("instead  ", &text));
    }
    for change in &check.channels {
        out.push_str(&wrap(&format!("{}  channels, planned  ", change.interface), &change.command));
    }
    for Unplannable { interface, reason, text } in &check.unknown {
        out.push_str(&wrap("could not tell  ", &format!("{interface}: {text} ({reason})")));
    }
    for note in &check.notes {
        out.push_str(&wrap("note  ", &note.text));
    }
    for Unplannable { interface, text, .. } in &check.left_alone {
        out.push_str(&wrap("left alone  ", &format!("{interface}: {text}")));
    }
    out.push_str(&match check.verdict {
        CheckState::Same => format!("same: {} as planned\n", count(check.same, "value")),
        CheckState::Differs => {
            let differs = check.differs.len() + check.channels.len();
            let refused = check.differs.iter().all(|difference| difference.reason == Reason::KernelRefused);
            let fix = if refused && check.channels.is_empty() {
                "the kernel refused what apply wrote"
            } else {
                "nicpin apply mends it"
            };
            format!("differs: {differs} of {}; {fix}\n", check.same + differs)
        }
        CheckState::CouldNotTell => {
            "could not tell: not everything that was asked for can be planned\n".to_owned()
        }
    });
    out
}

/// A reason with its fixed word and in words for people.
fn reason_words(reason: Reason) -> &'static str {
    match reason {
        Reason::NotApplied => "not-applied: no apply has set it",
        Reason::MovedByOther => {
            "moved-by-other: changed since the last apply by another program, the driver or the kernel"
        }
        Reason::QueueCountChanged => "queue-count-changed",
        Reason::KernelRefused => "kernel-refused: not taken at the last apply",
        Reason::CpuOffline => "cpu-offline: its CPU went offline",
        Reason::IrqRecreated => "irq-recreated: the driver has allocated its vectors anew",
        Reason::PlanChanged => "plan-changed: the machine or the policy is another than at the last apply",
    }
}
