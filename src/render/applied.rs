//! What `apply` and `restore` have done, as values for JSON and as text.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::apply::irqbalance::{self, IrqbalanceOutcome};
use crate::apply::{
    ApplyOutcome, ChannelOutcome, Evidence, Outcome, RestoreOutcome, Trial, VectorProof, WriteResult,
};
use crate::machine::Role;
use crate::plan::Note;
use crate::plan::stored::Change;
use crate::render::check::Unplannable;
use crate::render::table::note;
use crate::render::text::{count, ranges, wrap};
use crate::report::shell::word;

use crate::render::outcomes::{failures, results};

/// What `apply` has done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Applied {
    schema: &'static str,
    /// The plan's hash.
    hash: String,
    /// WriteResult and read back, and not taken back.
    pub changed: usize,
    /// As planned before.
    already: usize,
    /// Kernel-managed vectors.
    managed: usize,
    /// Not taken by the kernel.
    refused: usize,
    /// Gone.
    vanished: usize,
    /// Those of `changed` that the old CPU serves until their next interrupt.
    pending: usize,
    /// Each change of channels.
    channels: Vec<ChannelOutcome>,
    /// What was done about irqbalance, which counts like a write.
    irqbalance: Option<IrqbalanceOutcome>,
    /// Each write.
    results: Vec<WriteResult>,
    /// What was taken back, since a write failed and all or nothing was asked for.
    undone: Option<RestoreOutcome>,
    /// An earlier trial that nobody confirmed and nobody had put back, which was done first.
    earlier: Option<RestoreOutcome>,
    /// How many seconds the plan is on trial, if it is.
    trial: Option<u64>,
    /// How many of them are left; for people, since it is another at every run.
    #[serde(skip)]
    left: Option<u64>,
    /// Where interrupts arrived, where that was waited for.
    proof: Option<Vec<VectorProof>>,
    /// Whether that ended early, since the time of the trial does.
    proof_cut_short: bool,
    /// What has changed since a stored plan was made.
    changes: Vec<Change>,
    /// Whether nothing was written, since a stored plan does not fit.
    misfit: bool,
    /// Interfaces that were asked for and cannot be planned, and why.
    unknown: Vec<Unplannable>,
    /// The plan's notes; those of interfaces by name.
    notes: Vec<Note>,
}

impl Applied {
    /// Sums up what was done.
    pub fn new(done: &ApplyOutcome, trial: Option<u64>, unknown: Vec<Unplannable>) -> Self {
        let ApplyOutcome { plan, channels, irqbalance, results, undone, earlier, .. } = done;
        let of = |outcome| results.iter().filter(|result| result.outcome == outcome).count();
        let notes = plan.interfaces.iter().flat_map(|interface| {
            let named =
                |note: &Note| Note { text: format!("{}: {}", interface.name, note.text), ..note.clone() };
            interface.notes.iter().map(named)
        });
        let stays = undone.as_ref().is_none_or(|undone| !undone.complete());
        let changed = results.iter().filter(|result| result.changed()).count()
            + channels.iter().filter(|c| c.refused.is_none()).count()
            + usize::from(irqbalance.as_ref().is_some_and(|told| told.changed));
        Self {
            schema: "nicpin.apply/1",
            hash: plan.hash.clone(),
            changed: if stays { changed } else { 0 },
            already: plan.unchanged + of(Outcome::Already),
            managed: of(Outcome::Managed),
            refused: of(Outcome::Refused)
                + channels.iter().filter(|c| c.refused.is_some()).count()
                + usize::from(irqbalance.as_ref().is_some_and(IrqbalanceOutcome::failed)),
            vanished: of(Outcome::Vanished),
            pending: if stays { of(Outcome::Pending) } else { 0 },
            notes: notes.chain(plan.notes.iter().cloned()).collect(),
            channels: channels.clone(),
            irqbalance: irqbalance.clone(),
            results: results.clone(),
            undone: undone.clone(),
            earlier: earlier.clone(),
            trial: trial.filter(|_| stays && !done.is_in_vain()),
            left: trial,
            proof: None,
            proof_cut_short: false,
            changes: Vec::new(),
            misfit: false,
            unknown,
        }
    }

    /// Nothing was written: a stored plan does not fit the machine as it is now.
    pub fn nothing(hash: String, changes: Vec<Change>) -> Self {
        Self {
            schema: "nicpin.apply/1",
            hash,
            changed: 0,
            already: 0,
            managed: 0,
            refused: 0,
            vanished: 0,
            pending: 0,
            notes: Vec::new(),
            channels: Vec::new(),
            irqbalance: None,
            results: Vec::new(),
            undone: None,
            earlier: None,
            trial: None,
            left: None,
            proof: None,
            proof_cut_short: false,
            changes,
            misfit: true,
            unknown: Vec::new(),
        }
    }

    /// Also tells what has changed since a stored plan was made.
    #[must_use]
    pub fn with_changes(self, changes: Vec<Change>) -> Self {
        Self { changes, ..self }
    }

    /// Also tells where interrupts arrived.
    #[must_use]
    pub fn with_proof(self, proof: Option<Vec<VectorProof>>) -> Self {
        Self { proof, ..self }
    }

    /// Also tells whether the proof ended early, since the time of the trial does.
    #[must_use]
    pub fn cut_short(self, cut_short: bool) -> Self {
        Self { proof_cut_short: cut_short, ..self }
    }

    /// Also tells how much of the time of a trial is left when so much has passed.
    #[must_use]
    pub fn since(self, written: Duration) -> Self {
        Self { left: self.trial.map(|seconds| seconds.saturating_sub(written.as_secs())), ..self }
    }

    /// Whether the planned state was not reached.
    pub fn failed(&self) -> bool {
        let mut proof = self.proof.iter().flatten();
        let disproved = proof.any(|vector| !matches!(vector.verdict, Evidence::Proven | Evidence::NoTraffic));
        let left_out = self.changes.iter().any(|change| change.left_out);
        self.refused + self.vanished > 0 || !self.unknown.is_empty() || self.misfit || left_out || disproved
    }
}

/// `apply` for people: what failed line by line, the rest summed up by interface. The last line counts.
pub fn applied(applied: &Applied) -> String {
    let mut out = String::new();
    if let Some(earlier) = &applied.earlier {
        let (values, left) = (values_of(earlier), not_back(earlier, "the next apply tries again"));
        out.push_str(&wrap("put back  ", &format!("{values} of an apply --try that nobody confirmed{left}")));
        out.push_str(&channels(&earlier.channels));
        out.push_str(&balanced(earlier.irqbalance.as_ref()));
        out.push_str(&failures(&earlier.results));
        out.push_str(&absent(&earlier.absent, "could not be put back"));
    }
    for Change { interface, text, left_out, .. } in &applied.changes {
        let name = if interface.is_empty() { "machine" } else { interface };
        let left_out = if *left_out && !applied.misfit { "; left out" } else { "" };
        out.push_str(&wrap("differs   ", &format!("{name}: {text}{left_out}")));
    }
    if applied.misfit {
        let text = "nothing was written: that has changed since the plan was made. Plan anew, or apply what still \
                    fits with --force";
        out.push_str(&wrap("no fit    ", text));
    }
    out.push_str(&channels(&applied.channels));
    out.push_str(&balanced(applied.irqbalance.as_ref()));
    out.push_str(&results(&applied.results));
    if let Some(undone) = &applied.undone {
        let (values, left) = (values_of(undone), not_back(undone, "nicpin restore tries again"));
        out.push_str(&wrap("put back  ", &format!("{values}, since not all could be written{left}")));
        out.push_str(&channels(&undone.channels));
        out.push_str(&balanced(undone.irqbalance.as_ref()));
        out.push_str(&failures(&undone.results));
        out.push_str(&absent(&undone.absent, "could not be put back"));
    }
    for note in &applied.notes {
        out.push_str(&self::note("", note));
    }
    if applied.pending > 0 {
        let text =
            format!("{}: the old CPU serves until the next interrupt", count(applied.pending, "vector"));
        out.push_str(&wrap("pending   ", &text));
    }
    out.push_str(&applied.proof.as_deref().map(proof).unwrap_or_default());
    if applied.proof_cut_short {
        let text = "the time of --try ends before that of --prove: nothing was watched for longer";
        out.push_str(&wrap("cut short ", text));
    }
    if let (Some(_), Some(left)) = (applied.trial, applied.left) {
        let text =
            format!("put back in {left} s, unless `nicpin confirm` (or Enter on this terminal) keeps it");
        out.push_str(&wrap("on trial  ", &text));
    }
    out.push_str(&format!(
        "plan {}: changed={} already={} managed={} refused={} vanished={} pending={}\n",
        applied.hash,
        applied.changed,
        applied.already,
        applied.managed,
        applied.refused,
        applied.vanished,
        applied.pending
    ));
    out
}

/// Where interrupts arrived: queues by interface and verdict, and every vector that was served elsewhere.
fn proof(vectors: &[VectorProof]) -> String {
    let mut out = String::new();
    for (verdict, words) in [(Evidence::Proven, "proven    "), (Evidence::NoTraffic, "untried   ")] {
        let mut interfaces: Vec<(&str, BTreeMap<Role, Vec<u32>>)> = Vec::new();
        for vector in vectors.iter().filter(|vector| vector.verdict == verdict) {
            if interfaces.last().is_none_or(|(name, _)| *name != vector.interface) {
                interfaces.push((&vector.interface, BTreeMap::new()));
            }
            if let Some((_, roles)) = interfaces.last_mut() {
                roles.entry(vector.role).or_default().extend(vector.queue);
            }
        }
        for (name, roles) in interfaces {
            let queues: Vec<String> = (roles.into_iter())
                .map(|(role, queues)| format!("{} {}", format!("{role:?}").to_lowercase(), ranges(&queues)))
                .collect();
            let what = if verdict == Evidence::Proven { "served where planned" } else { "no interrupt came" };
            out.push_str(&wrap(words, &format!("{name}: {}: {what}", queues.join(", "))));
        }
    }
    for vector in vectors {
        let what = match vector.verdict {
            Evidence::Proven | Evidence::NoTraffic => continue,
            Evidence::Elsewhere => format!("served by CPU {}", vector.others),
            Evidence::MovedAway => "something has allowed it other CPUs since".to_owned(),
            Evidence::Gone => "the vector is gone".to_owned(),
        };
        let VectorProof { interface, irq, cpus, .. } = vector;
        out.push_str(&wrap("disproved ", &format!("{interface}: IRQ {irq}, planned for CPU {cpus}: {what}")));
    }
    let of = |verdict| vectors.iter().filter(|vector| vector.verdict == verdict).count();
    let (proven, untried) = (of(Evidence::Proven), of(Evidence::NoTraffic));
    out.push_str(&format!(
        "proof: proven={proven} untried={untried} disproved={}\n",
        vectors.len() - proven - untried
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
    /// Vectors that may be served by their first CPUs again and that the kernel does not move back by itself.
    staying: usize,
    /// What was recorded and is not there now.
    absent: Vec<String>,
    /// Each change of channels.
    channels: Vec<ChannelOutcome>,
    /// What was undone about irqbalance, which counts like a write.
    irqbalance: Option<IrqbalanceOutcome>,
    /// Each write.
    results: Vec<WriteResult>,
}

impl Restored {
    /// Sums up what was put back.
    pub fn new(undone: RestoreOutcome) -> Self {
        let RestoreOutcome { channels, results, unchanged, absent, irqbalance, .. } = undone;
        let (refused, set): (Vec<_>, Vec<_>) = channels.iter().partition(|c| c.refused.is_some());
        let already = results.iter().filter(|result| result.outcome == Outcome::Already).count();
        let stays = |result: &&WriteResult| {
            result.outcome == Outcome::Changed && result.path.starts_with("/proc/irq/")
        };
        Self {
            schema: "nicpin.restore/1",
            changed: results.iter().filter(|result| result.changed()).count()
                + set.len()
                + usize::from(irqbalance.as_ref().is_some_and(|told| told.changed)),
            already: unchanged + already,
            refused: results.iter().filter(|result| result.failed()).count()
                + refused.len()
                + usize::from(irqbalance.as_ref().is_some_and(IrqbalanceOutcome::failed)),
            staying: results.iter().filter(stays).count(),
            absent,
            channels,
            irqbalance,
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
    if restored.changed + restored.already + restored.refused + restored.absent.len() == 0
        && restored.irqbalance.is_none()
    {
        return "nothing to restore: no apply has left a record\n".to_owned();
    }
    let mut out = channels(&restored.channels);
    out.push_str(&balanced(restored.irqbalance.as_ref()));
    out.push_str(&results(&restored.results));
    out.push_str(&absent(&restored.absent, "kept for the next restore"));
    if restored.staying > 0 {
        let text = format!(
            "{}: allowed where they were, and served where they are now: the kernel moves none back by itself",
            count(restored.staying, "vector")
        );
        out.push_str(&wrap("staying   ", &text));
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

/// What is not there now, a line for each port.
fn absent(keys: &[String], then: &str) -> String {
    let mut ports: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for key in keys {
        // `0000:41:00.0 port 0 rx-3 rps_cpus`
        let (port, value) =
            key.match_indices(' ').nth(2).map_or((key.as_str(), ""), |(at, _)| key.split_at(at));
        ports.entry(port).or_default().push(value.trim());
    }
    let line = |(port, values): (&str, Vec<&str>)| {
        let what = match values[..] {
            [value] if !value.is_empty() => value.to_owned(),
            _ => count(values.len(), "value"),
        };
        wrap("not there now  ", &format!("{port}: {what}; {then}"))
    };
    ports.into_iter().map(line).collect()
}

/// Why a trial was put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialEnd {
    /// Nobody confirmed it.
    InTime,
    /// The process that watched the time is gone.
    Unwatched,
}

/// How a trial has ended that nobody confirmed.
pub fn trial_over(trial: &Trial, ended: TrialEnd) -> String {
    let why = match ended {
        TrialEnd::InTime => "nobody confirmed it in time",
        TrialEnd::Unwatched => "the process that watched the time was killed",
    };
    match trial.not_back() {
        None => format!("put back: {why}\n"),
        Some(left) => wrap("put back  ", &format!("{why}; {left}")),
    }
}

/// How many values are not back, and when that is tried again.
fn not_back(undone: &RestoreOutcome, again: &str) -> String {
    match undone.not_back {
        0 => String::new(),
        1 => format!("; 1 value is not back: {again}"),
        many => format!("; {many} values are not back: {again}"),
    }
}

fn values_of(undone: &RestoreOutcome) -> String {
    count(undone.results.iter().filter(|result| result.changed()).count(), "value")
}

fn channels(outcomes: &[ChannelOutcome]) -> String {
    let line = |outcome: &ChannelOutcome| match &outcome.refused {
        None => format!("changed   {}: channels to {}\n", outcome.interface, outcome.wanted),
        Some(why) => {
            wrap("refused   ", &format!("ethtool -L {} {}: {why}", word(&outcome.interface), outcome.wanted))
        }
    };
    outcomes.iter().map(line).collect()
}

/// What was done about irqbalance.
fn balanced(balanced: Option<&IrqbalanceOutcome>) -> String {
    use irqbalance::IrqbalanceAction;
    let Some(balanced) = balanced else { return String::new() };
    let detail = balanced.detail.as_deref().unwrap_or_default();
    let irqs = count(balanced.irqs, "IRQ");
    let (what, text) = match balanced.done {
        IrqbalanceAction::Banned if balanced.changed => {
            ("changed   ", format!("irqbalance leaves {irqs} alone"))
        }
        IrqbalanceAction::Banned => ("already   ", format!("irqbalance leaves {irqs} alone")),
        IrqbalanceAction::Stopped => ("changed   ", "irqbalance is stopped".to_owned()),
        IrqbalanceAction::Unbanned if balanced.changed => {
            ("changed   ", format!("irqbalance may move {irqs} again"))
        }
        IrqbalanceAction::Unbanned => return String::new(),
        IrqbalanceAction::Started => ("changed   ", "irqbalance is started again".to_owned()),
        IrqbalanceAction::NotTold => ("not told  ", format!("irqbalance: {detail}")),
        IrqbalanceAction::Refused => ("refused   ", format!("irqbalance: {detail}")),
    };
    wrap(what, &text)
}
