//! What `apply`, `check` and `restore` found, as values for JSON and as text.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::apply::{Back, ChannelOutcome, Outcome, Written};
use crate::plan::{ChannelChange, Note, Plan, Write};
use crate::render::table::note;
use crate::render::text::{columns, count, wrap};

/// What `check` says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    schema: &'static str,
    /// The answer.
    pub verdict: Verdict,
    /// The plan's hash.
    hash: String,
    /// How many values are as planned.
    same: usize,
    /// What is not.
    differs: Vec<Write>,
    /// Cards that should have other channels.
    channels: Vec<ChannelChange>,
    /// Interfaces that were asked for and cannot be told, and why.
    unknown: Vec<String>,
}

/// The answers of `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything is as planned.
    Same,
    /// Something is not.
    Differs,
    /// It cannot be told.
    Unknown,
}

impl Check {
    /// Checks a plan: what it would write is what differs.
    pub fn new(plan: &Plan, unknown: Vec<String>) -> Self {
        let verdict = match (plan.writes.is_empty() && plan.channels.is_empty(), unknown.is_empty()) {
            (_, false) => Verdict::Unknown,
            (true, true) => Verdict::Same,
            (false, true) => Verdict::Differs,
        };
        Self {
            schema: "nicpin.check/1",
            verdict,
            hash: plan.hash.clone(),
            same: plan.unchanged,
            differs: plan.writes.clone(),
            channels: plan.channels.clone(),
            unknown,
        }
    }
}

/// `check` for people.
pub fn check(check: &Check) -> String {
    let mut out = String::new();
    let row = |write: &Write| {
        vec![
            write.interface.clone(),
            write.path.clone(),
            format!("is {}, planned {}", write.current, write.value),
        ]
    };
    out.push_str(&columns(0, &check.differs.iter().map(row).collect::<Vec<_>>(), &[15, 48]));
    for change in &check.channels {
        out.push_str(&wrap(&format!("{}  channels, planned  ", change.interface), &change.command));
    }
    for unknown in &check.unknown {
        out.push_str(&wrap("cannot tell  ", unknown));
    }
    out.push_str(&match check.verdict {
        Verdict::Same => format!("same: {} as planned\n", count(check.same, "value")),
        Verdict::Differs => {
            let differs = check.differs.len() + check.channels.len();
            format!("differs: {differs} of {}; nicpin apply mends it\n", check.same + differs)
        }
        Verdict::Unknown => "unknown: not everything that was asked for can be told\n".to_owned(),
    });
    out
}

/// What `apply` has done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Applied {
    schema: &'static str,
    /// The plan's hash.
    hash: String,
    /// Written and read back.
    pub changed: usize,
    /// As planned before.
    already: usize,
    /// Kernel-managed vectors.
    managed: usize,
    /// Not taken by the kernel.
    refused: usize,
    /// Gone.
    vanished: usize,
    /// Changed vectors that the old CPU serves until their next interrupt.
    pending: usize,
    /// Each change of channels.
    channels: Vec<ChannelOutcome>,
    /// Each write.
    results: Vec<Written>,
    /// Interfaces that were asked for and cannot be planned, and why.
    unknown: Vec<String>,
    /// The plan's notes; those of interfaces by name.
    notes: Vec<Note>,
}

impl Applied {
    /// Sums up the outcomes of a plan's writes.
    pub fn new(
        plan: &Plan,
        channels: Vec<ChannelOutcome>,
        results: Vec<Written>,
        unknown: Vec<String>,
    ) -> Self {
        let of = |outcome| results.iter().filter(|result| result.outcome == outcome).count();
        let notes = plan.interfaces.iter().flat_map(|interface| {
            let named =
                |note: &Note| Note { text: format!("{}: {}", interface.name, note.text), ..note.clone() };
            interface.notes.iter().map(named)
        });
        Self {
            schema: "nicpin.apply/1",
            hash: plan.hash.clone(),
            changed: of(Outcome::Changed) + channels.iter().filter(|c| c.refused.is_none()).count(),
            already: plan.unchanged + of(Outcome::Already),
            managed: of(Outcome::Managed),
            refused: of(Outcome::Refused) + channels.iter().filter(|c| c.refused.is_some()).count(),
            vanished: of(Outcome::Vanished),
            pending: results.iter().filter(|result| result.pending).count(),
            notes: notes.chain(plan.notes.iter().cloned()).collect(),
            channels,
            results,
            unknown,
        }
    }

    /// Whether the planned state was not reached.
    pub fn failed(&self) -> bool {
        self.refused + self.vanished > 0 || !self.unknown.is_empty()
    }
}

/// `apply` for people: what failed line by line, the rest summed up by interface. The last line counts.
pub fn applied(applied: &Applied) -> String {
    let mut out = channels(&applied.channels) + &results(&applied.results);
    for note in &applied.notes {
        out.push_str(&self::note("", note));
    }
    if applied.pending > 0 {
        let text =
            format!("{}: the old CPU serves until the next interrupt", count(applied.pending, "vector"));
        out.push_str(&wrap("pending  ", &text));
    }
    out.push_str(&format!(
        "plan {}: changed={} already={} managed={} refused={} vanished={}\n",
        applied.hash, applied.changed, applied.already, applied.managed, applied.refused, applied.vanished
    ));
    out
}

/// What `restore` has done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Restored {
    schema: &'static str,
    /// Put back.
    changed: usize,
    /// As it was first seen.
    already: usize,
    /// Not taken by the kernel.
    refused: usize,
    /// What was recorded and is not there now.
    absent: Vec<String>,
    /// Each change of channels.
    channels: Vec<ChannelOutcome>,
    /// Each write.
    results: Vec<Written>,
}

impl Default for Restored {
    fn default() -> Self {
        Self::new(Vec::new(), Vec::new(), &Back::default())
    }
}

impl Restored {
    /// Sums up the outcomes of writing back.
    pub fn new(channels: Vec<ChannelOutcome>, results: Vec<Written>, back: &Back) -> Self {
        let (refused, set): (Vec<_>, Vec<_>) = channels.iter().partition(|c| c.refused.is_some());
        let of = |outcome| results.iter().filter(|result| result.outcome == outcome).count();
        Self {
            schema: "nicpin.restore/1",
            changed: of(Outcome::Changed) + set.len(),
            already: back.unchanged + of(Outcome::Already),
            refused: results.iter().filter(|result| result.failed()).count() + refused.len(),
            absent: back.absent.clone(),
            channels,
            results,
        }
    }

    /// Whether something was not put back that is there.
    pub fn failed(&self) -> bool {
        self.refused > 0
    }
}

/// `restore` for people. The last line counts.
pub fn restored(restored: &Restored) -> String {
    if restored.changed + restored.already + restored.refused + restored.absent.len() == 0 {
        return "nothing to restore: no apply has left a record\n".to_owned();
    }
    let mut out = channels(&restored.channels) + &results(&restored.results);
    let mut absent: BTreeMap<&str, usize> = BTreeMap::new();
    for key in &restored.absent {
        // `0000:41:00.0 port 0 rx-3 rps_cpus`: a line for each port will do.
        let port = key.match_indices(' ').nth(2).map_or(key.as_str(), |(at, _)| &key[..at]);
        *absent.entry(port).or_default() += 1;
    }
    for (port, values) in absent {
        let text = format!("{port}: {}; kept for the next restore", count(values, "value"));
        out.push_str(&wrap("not there now  ", &text));
    }
    out.push_str(&format!(
        "restored: changed={} already={} refused={} absent={}\n",
        restored.changed,
        restored.already,
        restored.refused,
        restored.absent.len()
    ));
    out
}

fn channels(outcomes: &[ChannelOutcome]) -> String {
    let line = |outcome: &ChannelOutcome| match &outcome.refused {
        None => format!("changed   {}: channels to {}\n", outcome.interface, outcome.wanted),
        Some(why) => {
            wrap("refused   ", &format!("ethtool -L {} {}: {why}", outcome.interface, outcome.wanted))
        }
    };
    outcomes.iter().map(line).collect()
}

/// Writes that went well, counted by interface; the others with their reasons.
fn results(results: &[Written]) -> String {
    let mut changed: BTreeMap<&str, usize> = BTreeMap::new();
    let mut out = String::new();
    for result in results {
        match result.outcome {
            Outcome::Changed => *changed.entry(&result.interface).or_default() += 1,
            Outcome::Already => {}
            outcome => {
                let detail = result.detail.as_deref().unwrap_or_default();
                let text = format!("{} <- {}: {detail}", result.path, result.value);
                out.push_str(&wrap(&format!("{:<10}", format!("{outcome:?}").to_lowercase()), &text));
            }
        }
    }
    for (interface, changes) in changed {
        let name = if interface.is_empty() { "machine" } else { interface };
        out.push_str(&format!("changed   {name}: {}\n", count(changes, "value")));
    }
    out
}
