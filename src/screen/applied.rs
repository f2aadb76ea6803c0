//! The results of `apply` and `restore` as text.

use std::collections::BTreeMap;

use crate::screen::note::lines;
use crate::screen::text::{count, ranges, wrap};
use nicpin::machine::Role;
use nicpin::machine::paths::shown;
use nicpin::machine::shell::word;
use nicpin::plan::stored::Change;
use nicpin::report::applied::{Applied, NoteAbout, Watched};
use nicpin::report::outcome::{
    ChannelOutcome, IrqbalanceAction, IrqbalanceOutcome, RestoreOutcome,
};
use nicpin::report::proof::{Evidence, VectorProof};
use nicpin::report::restored::{Restored, ToRestore, TrialEnd};

use crate::screen::outcomes::{failures, results};

/// `apply` as text: failures line by line, the rest summed up by interface. The last line holds the counts.
pub fn applied(applied: &Applied) -> String {
    let mut out = String::new();
    if let Some(earlier) = &applied.earlier {
        out.push_str(&undone(
            earlier,
            " of an unconfirmed apply --try",
            "the next apply tries again",
        ));
    }
    for Change {
        interface,
        text,
        left_out,
        ..
    } in &applied.changes
    {
        let name = if interface.is_empty() {
            "machine"
        } else {
            interface
        };
        let left_out = if *left_out && !applied.misfit {
            "; left out"
        } else {
            ""
        };
        out.push_str(&wrap("differs   ", &format!("{name}: {text}{left_out}")));
    }
    if applied.misfit {
        let text = "nothing was written: the machine has changed since the plan was made; fix: make a new plan, or write \
                    what still fits with --force";
        out.push_str(&wrap("misfit    ", text));
    }
    out.push_str(&channels(&applied.channels));
    out.push_str(&irqbalance(applied.irqbalance.as_ref()));
    out.push_str(&results(&applied.results));
    if let Some(undone) = &applied.undone {
        let why = ", because not every setting could be written";
        out.push_str(&self::undone(undone, why, "nicpin restore tries again"));
    }
    for NoteAbout { interface, note } in &applied.notes {
        let about = if interface.is_empty() {
            String::new()
        } else {
            format!("{interface}: ")
        };
        out.push_str(&lines("", &about, note));
    }
    if applied.pending > 0 {
        let text = format!(
            "{}: moved by the kernel at the next interrupt",
            count(applied.pending, "vector")
        );
        out.push_str(&wrap("pending   ", &text));
    }
    out.push_str(&applied.proof.as_deref().map(proof).unwrap_or_default());
    if applied.proof_cut_short {
        let text = "the time of --try ended before that of --prove";
        out.push_str(&wrap("cut short ", text));
    }
    if applied.trial.is_some() && applied.watched == Some(Watched::WaitsForTrial) {
        out.push_str(&wrap(
            "watcher   ",
            "nicpin watch writes nothing until the trial is confirmed or has ended",
        ));
    } else if applied.watched == Some(Watched::Resumed) {
        out.push_str(&wrap("watcher   ", "nicpin watch is no longer paused"));
    }
    if let (Some(_), Some(left)) = (applied.trial, applied.left) {
        let text = format!(
            "restored in {left} s unless confirmed by `nicpin confirm` (or Enter on this terminal)"
        );
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

/// Where interrupts arrived: queues by interface and verdict, and each vector with interrupts on other CPUs.
fn proof(vectors: &[VectorProof]) -> String {
    let mut out = String::new();
    for (verdict, words) in [
        (Evidence::Proven, "proven    "),
        (Evidence::NoTraffic, "untried   "),
    ] {
        let mut interfaces: Vec<(&str, BTreeMap<Role, Vec<u32>>)> = Vec::new();
        for vector in vectors.iter().filter(|vector| vector.verdict == verdict) {
            if interfaces
                .last()
                .is_none_or(|(name, _)| *name != vector.interface)
            {
                interfaces.push((&vector.interface, BTreeMap::new()));
            }
            if let Some((_, roles)) = interfaces.last_mut() {
                roles.entry(vector.role).or_default().extend(vector.queue);
            }
        }
        for (name, roles) in interfaces {
            let queues: Vec<String> = (roles.into_iter())
                .map(|(role, queues)| {
                    format!("{} {}", format!("{role:?}").to_lowercase(), ranges(&queues))
                })
                .collect();
            let what = if verdict == Evidence::Proven {
                "interrupts arrived where planned"
            } else {
                "no interrupt arrived"
            };
            out.push_str(&wrap(
                words,
                &format!("{name}: {}: {what}", queues.join(", ")),
            ));
        }
    }
    for vector in vectors {
        let what = match vector.verdict {
            Evidence::Proven | Evidence::NoTraffic => continue,
            Evidence::Elsewhere => format!("interrupts arrived on CPU {}", vector.others.short()),
            Evidence::MovedAway => "its affinity was changed after apply".to_owned(),
            Evidence::Gone => "the vector is gone".to_owned(),
        };
        let VectorProof {
            interface,
            irq,
            cpus,
            ..
        } = vector;
        out.push_str(&wrap(
            "disproved ",
            &format!(
                "{interface}: IRQ {irq}, planned for CPU {}: {what}",
                cpus.short()
            ),
        ));
    }
    let of = |verdict| {
        vectors
            .iter()
            .filter(|vector| vector.verdict == verdict)
            .count()
    };
    let (proven, untried) = (of(Evidence::Proven), of(Evidence::NoTraffic));
    out.push_str(&format!(
        "proof: proven={proven} untried={untried} disproved={}\n",
        vectors.len() - proven - untried
    ));
    out
}

/// `restore` as text. The last line holds the counts.
pub fn restored(restored: &Restored) -> String {
    if restored.changed + restored.already + restored.refused + restored.absent.len() == 0
        && restored.irqbalance.is_none()
    {
        let nothing = "nothing to restore: there is no record of an apply\n";
        return paused(restored.watcher_paused) + nothing;
    }
    let mut out = channels(&restored.channels);
    out.push_str(&irqbalance(restored.irqbalance.as_ref()));
    out.push_str(&results(&restored.results));
    out.push_str(&absent(&restored.absent, "kept for the next restore"));
    if restored.staying > 0 {
        let text = format!(
            "{}: the affinity is restored, the effective CPU is not: the kernel moves a vector only when its effective CPU is not in its affinity",
            count(restored.staying, "vector")
        );
        out.push_str(&wrap("staying   ", &text));
    }
    out.push_str(&paused(restored.watcher_paused));
    out.push_str(&format!(
        "restored: changed={} already={} refused={} absent={}\n",
        restored.changed,
        restored.already,
        restored.refused,
        restored.absent.len()
    ));
    out
}

/// `restore --dry-run` as text.
pub fn to_restore(to_restore: &ToRestore) -> String {
    let mut out = String::new();
    for (interface, channels) in &to_restore.channels {
        out.push_str(&wrap(
            "restore   ",
            &format!("channels of {interface}: {channels}"),
        ));
    }
    for write in &to_restore.writes {
        let text = format!(
            "{} {} (now {})",
            shown(&write.path),
            write.value,
            write.current.trim()
        );
        out.push_str(&wrap("restore   ", &text));
    }
    if to_restore.irqbalance {
        out.push_str(&wrap("restore   ", "what irqbalance was asked to do"));
    }
    out.push_str(&absent(&to_restore.absent, "kept for the next restore"));
    out.push_str(&format!(
        "would be restored: {}; already: {}\n",
        to_restore.channels.len() + to_restore.writes.len() + usize::from(to_restore.irqbalance),
        to_restore.unchanged
    ));
    out
}

fn paused(paused: bool) -> String {
    let text = "nicpin watch is paused until the next nicpin apply";
    if paused {
        wrap("watcher   ", text)
    } else {
        String::new()
    }
}

/// Settings whose files are absent now, a line for each port.
fn absent(keys: &[String], then: &str) -> String {
    let mut ports: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for key in keys {
        // `0000:41:00.0 port 0 rx-3 rps_cpus`
        let (port, setting) = key
            .match_indices(' ')
            .nth(2)
            .map_or((key.as_str(), ""), |(at, _)| key.split_at(at));
        ports.entry(port).or_default().push(setting.trim());
    }
    let line = |(port, settings): (&str, Vec<&str>)| {
        let what = match settings[..] {
            [setting] if !setting.is_empty() => setting.to_owned(),
            _ => count(settings.len(), "setting"),
        };
        wrap("absent    ", &format!("{port}: {what}; {then}"))
    };
    ports.into_iter().map(line).collect()
}

/// How an unconfirmed trial has ended; `not_restored` says what could not be restored.
pub fn trial_over(not_restored: Option<&str>, ended: TrialEnd) -> String {
    let why = match ended {
        TrialEnd::InTime => "the trial was not confirmed in time",
        TrialEnd::Unwatched => "the process that watched the trial was killed",
    };
    match not_restored {
        None => format!("restored: {why}\n"),
        Some(left) => wrap("restored  ", &format!("{why}; {left}")),
    }
}

/// What was restored and `why`, and what was not. `again`: when that is tried again.
fn undone(undone: &RestoreOutcome, why: &str, again: &str) -> String {
    let changed = count(
        undone
            .results
            .iter()
            .filter(|result| result.changed())
            .count(),
        "setting",
    );
    let left = match undone.not_restored {
        0 => String::new(),
        left => format!(
            "; {} could not be restored: {again}",
            count(left, "setting")
        ),
    };
    [
        wrap("restored  ", &format!("{changed}{why}{left}")),
        channels(&undone.channels),
        irqbalance(undone.irqbalance.as_ref()),
        failures(&undone.results),
        absent(&undone.absent, "could not be restored"),
    ]
    .concat()
}

fn channels(outcomes: &[ChannelOutcome]) -> String {
    let line = |outcome: &ChannelOutcome| match &outcome.refused {
        None => format!(
            "changed   {}: channels set to {}\n",
            outcome.interface, outcome.wanted
        ),
        Some(why) => wrap(
            "refused   ",
            &format!(
                "ethtool -L {} {}: {why}",
                word(&outcome.interface),
                outcome.wanted
            ),
        ),
    };
    outcomes.iter().map(line).collect()
}

fn irqbalance(outcome: Option<&IrqbalanceOutcome>) -> String {
    let Some(outcome) = outcome else {
        return String::new();
    };
    let detail = outcome.detail.as_deref().unwrap_or_default();
    let irqs = count(outcome.irqs, "IRQ");
    let (what, text) = match outcome.done {
        IrqbalanceAction::Banned if outcome.changed => {
            ("changed   ", format!("irqbalance leaves {irqs} alone"))
        }
        IrqbalanceAction::Banned => ("already   ", format!("irqbalance leaves {irqs} alone")),
        IrqbalanceAction::Stopped => ("changed   ", "irqbalance is stopped".to_owned()),
        IrqbalanceAction::Unbanned if outcome.changed => {
            ("changed   ", format!("irqbalance may move {irqs} again"))
        }
        IrqbalanceAction::Unbanned => return String::new(),
        IrqbalanceAction::Started => ("changed   ", "irqbalance is started again".to_owned()),
        IrqbalanceAction::NotRequested => ("skipped   ", format!("irqbalance: {detail}")),
        IrqbalanceAction::Refused => ("refused   ", format!("irqbalance: {detail}")),
    };
    wrap(what, &text)
}
