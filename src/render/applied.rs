//! What `apply` and `restore` have done, as values for JSON and as text.

use std::collections::BTreeMap;

use crate::machine::Role;
use crate::machine::shell::word;
use crate::plan::stored::Change;
use crate::render::note::lines;
use crate::render::text::{count, ranges, wrap};
use crate::report::applied::Applied;
use crate::report::applied::NoteAbout;
use crate::report::outcome::ChannelOutcome;
use crate::report::outcome::IrqbalanceAction;
use crate::report::outcome::IrqbalanceOutcome;
use crate::report::outcome::RestoreOutcome;
use crate::report::proof::Evidence;
use crate::report::proof::VectorProof;
use crate::report::restored::Restored;
use crate::report::restored::TrialEnd;

use crate::render::outcomes::{failures, results};

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
    for NoteAbout { interface, note } in &applied.notes {
        let about = if interface.is_empty() { String::new() } else { format!("{interface}: ") };
        out.push_str(&lines("", &about, note));
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

/// How a trial has ended that nobody confirmed; `not_back` is what could not be put back, in words.
pub fn trial_over(not_back: Option<&str>, ended: TrialEnd) -> String {
    let why = match ended {
        TrialEnd::InTime => "nobody confirmed it in time",
        TrialEnd::Unwatched => "the process that watched the time was killed",
    };
    match not_back {
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
