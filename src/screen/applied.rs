//! The results of `apply` and `restore` as text.

use std::collections::BTreeMap;

use crate::screen::note::lines;
use crate::screen::page::Page;
use crate::screen::text::{count, ranges};
use nicpin::machine::Role;
use nicpin::machine::paths::shown;
use nicpin::machine::shell::word;
use nicpin::plan::stored::Change;
use nicpin::report::applied::{Applied, NoteAbout, Watched};
use nicpin::report::applied::{Evidence, VectorProof};
use nicpin::report::outcome::{ChannelOutcome, IrqbalanceAction, IrqbalanceOutcome, WriteResult};
use nicpin::report::restored::{Restored, ToRestore, TrialEnd};

use crate::screen::outcomes::{failures, results};

/// Why an apply failed, without what it did.
pub fn failed_apply(applied: &Applied) -> Page {
    let mut page = misfit(applied);
    page.add(refusals(
        &applied.channels,
        applied.irqbalance.as_ref(),
        &applied.results,
    ));
    if let Some(undone) = &applied.undone {
        let why = ", because not every setting could be written";
        page.add(self::undone(undone, why, "nicpin restore tries again"));
    }
    for unknown in &applied.unknown {
        let text = unknown.note.to_string();
        page.line(format!("{}: {text}", unknown.interface));
    }
    if applied.strict && applied.tally.managed > 0 {
        let vectors = count(applied.tally.managed, "vector");
        page.line(format!("{vectors} cannot be moved"));
    }
    page.add(mismatches(applied.proof.as_deref().unwrap_or_default()));
    page
}

/// Why a restore failed, without what it did.
pub fn failed_restore(restored: &Restored) -> Page {
    refusals(
        &restored.channels,
        restored.irqbalance.as_ref(),
        &restored.results,
    )
}

fn refusals(
    outcomes: &[ChannelOutcome],
    balancer: Option<&IrqbalanceOutcome>,
    results: &[WriteResult],
) -> Page {
    let refused = outcomes.iter().filter(|outcome| outcome.refused.is_some());
    let mut page = channels(refused);
    page.add(irqbalance(balancer.filter(|outcome| outcome.failed())));
    page.add(failures(results.iter().filter(|result| result.failed())));
    page
}

/// `apply` as text: failures line by line, the rest summed up by interface. The last line holds the counts.
pub fn applied(applied: &Applied) -> Page {
    let mut page = Page::default();
    if let Some(earlier) = &applied.earlier {
        page.add(undone(
            earlier,
            " of an unconfirmed apply --try",
            "the next apply tries again",
        ));
    }
    page.add(misfit(applied));
    page.add(channels(&applied.channels));
    page.add(irqbalance(applied.irqbalance.as_ref()));
    page.add(results(&applied.results));
    if let Some(undone) = &applied.undone {
        let why = ", because not every setting could be written";
        page.add(self::undone(undone, why, "nicpin restore tries again"));
    }
    for NoteAbout { interface, note } in &applied.notes {
        let about = if interface.is_empty() {
            String::new()
        } else {
            format!("{interface}: ")
        };
        page.add(lines("", &about, note));
    }
    if applied.tally.pending > 0 {
        let text = format!(
            "{}: moved by the kernel at the next interrupt",
            count(applied.tally.pending, "vector")
        );
        page.item("pending   ", &text);
    }
    page.add(applied.proof.as_deref().map(proof).unwrap_or_default());
    if applied.proof_cut_short {
        let text = "the time of --try ended before that of --prove";
        page.item("cut short ", text);
    }
    if applied.trial.is_some() && applied.watched == Some(Watched::WaitsForTrial) {
        page.item(
            "watcher   ",
            "nicpin watch writes nothing until the trial is confirmed or has ended",
        );
    } else if applied.watched == Some(Watched::Resumed) {
        page.item("watcher   ", "nicpin watch is no longer paused");
    }
    if let (Some(_), Some(left)) = (applied.trial, applied.left) {
        let text = format!(
            "restored in {left} s unless confirmed by `nicpin confirm` (or Enter on this terminal)"
        );
        page.item("on trial  ", &text);
    }
    page.line(format!(
        "plan {}: changed={} already={} managed={} refused={} vanished={} pending={}",
        applied.hash,
        applied.tally.changed,
        applied.tally.already,
        applied.tally.managed,
        applied.tally.refused,
        applied.tally.vanished,
        applied.tally.pending
    ));
    page
}

/// What has changed since a stored plan was made.
fn misfit(applied: &Applied) -> Page {
    let mut page = Page::default();
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
        page.item("differs   ", format!("{name}: {text}{left_out}"));
    }
    if applied.misfit {
        let text = "nothing was written: the machine has changed since the plan was made; fix: make a new plan, or write \
                    what still fits with --force";
        page.item("misfit    ", text);
    }
    page
}

/// Where interrupts arrived: queues by interface and verdict, and each vector with interrupts on other CPUs.
fn proof(vectors: &[VectorProof]) -> Page {
    let mut page = Page::default();
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
            page.item(words, format!("{name}: {}: {what}", queues.join(", ")));
        }
    }
    page.add(mismatches(vectors));
    let of = |verdict| {
        vectors
            .iter()
            .filter(|vector| vector.verdict == verdict)
            .count()
    };
    let (proven, untried) = (of(Evidence::Proven), of(Evidence::NoTraffic));
    page.line(format!(
        "proof: proven={proven} untried={untried} disproved={}",
        vectors.len() - proven - untried
    ));
    page
}

/// Vectors whose interrupts arrived elsewhere.
fn mismatches(vectors: &[VectorProof]) -> Page {
    let mut page = Page::default();
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
        page.item(
            "disproved ",
            format!(
                "{interface}: IRQ {irq}, planned for CPU {}: {what}",
                cpus.short()
            ),
        );
    }
    page
}

/// `restore` as text. The last line holds the counts.
pub fn restored(restored: &Restored) -> Page {
    if restored.changed + restored.already + restored.refused + restored.absent.len() == 0
        && restored.irqbalance.is_none()
    {
        let mut page = paused(restored.watcher_paused);
        page.line("nothing to restore: there is no record of an apply");
        return page;
    }
    let mut page = channels(&restored.channels);
    page.add(irqbalance(restored.irqbalance.as_ref()));
    page.add(results(&restored.results));
    page.add(absent(&restored.absent, "kept for the next restore"));
    if restored.staying > 0 {
        let text = format!(
            "{}: the affinity is restored, the effective CPU is not: the kernel moves a vector only when its effective CPU is not in its affinity",
            count(restored.staying, "vector")
        );
        page.item("staying   ", &text);
    }
    page.add(paused(restored.watcher_paused));
    page.line(format!(
        "restored: changed={} already={} refused={} absent={}",
        restored.changed,
        restored.already,
        restored.refused,
        restored.absent.len()
    ));
    page
}

/// `restore --dry-run` as text.
pub fn to_restore(to_restore: &ToRestore) -> Page {
    let mut page = Page::default();
    for (interface, channels) in &to_restore.channels {
        page.item("restore   ", format!("channels of {interface}: {channels}"));
    }
    for write in &to_restore.writes {
        let text = format!(
            "{} {} (now {})",
            shown(&write.path),
            write.value,
            write.current.trim()
        );
        page.item("restore   ", &text);
    }
    if to_restore.irqbalance {
        page.item("restore   ", "what irqbalance was asked to do");
    }
    page.add(absent(&to_restore.absent, "kept for the next restore"));
    page.line(format!(
        "would be restored: {}; already: {}",
        to_restore.channels.len() + to_restore.writes.len() + usize::from(to_restore.irqbalance),
        to_restore.unchanged
    ));
    page
}

fn paused(paused: bool) -> Page {
    let mut page = Page::default();
    if paused {
        page.item(
            "watcher   ",
            "nicpin watch is paused until the next nicpin apply",
        );
    }
    page
}

/// Settings whose files are absent now, a line for each port.
fn absent(keys: &[String], then: &str) -> Page {
    let mut ports: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for key in keys {
        // `0000:41:00.0 port 0 rx-3 rps_cpus`
        let (port, setting) = key
            .match_indices(' ')
            .nth(2)
            .map_or((key.as_str(), ""), |(at, _)| key.split_at(at));
        ports.entry(port).or_default().push(setting.trim());
    }
    let mut page = Page::default();
    for (port, settings) in ports {
        let what = match settings[..] {
            [setting] if !setting.is_empty() => setting.to_owned(),
            _ => count(settings.len(), "setting"),
        };
        page.item("absent    ", format!("{port}: {what}; {then}"));
    }
    page
}

/// How an unconfirmed trial has ended; `not_restored` says what could not be restored.
pub fn trial_over(not_restored: Option<&str>, ended: TrialEnd) -> Page {
    let why = match ended {
        TrialEnd::InTime => "the trial was not confirmed in time",
        TrialEnd::Unwatched => "the process that watched the trial was killed",
    };
    let mut page = Page::default();
    match not_restored {
        None => page.line(format!("restored: {why}")),
        Some(left) => page.item("restored  ", format!("{why}; {left}")),
    }
    page
}

/// What was restored and `why`, and what was not. `again`: when that is tried again.
fn undone(undone: &Restored, why: &str, again: &str) -> Page {
    let changed = undone.results.iter().filter(|result| result.changed());
    let changed = count(changed.count(), "setting");
    let left = match undone.not_restored {
        0 => String::new(),
        left => format!(
            "; {} could not be restored: {again}",
            count(left, "setting")
        ),
    };
    let mut page = Page::default();
    page.item("restored  ", format!("{changed}{why}{left}"));
    page.add(channels(&undone.channels));
    page.add(irqbalance(undone.irqbalance.as_ref()));
    page.add(failures(&undone.results));
    page.add(absent(&undone.absent, "could not be restored"));
    page
}

fn channels<'a>(outcomes: impl IntoIterator<Item = &'a ChannelOutcome>) -> Page {
    let mut page = Page::default();
    for outcome in outcomes {
        let ChannelOutcome {
            interface, wanted, ..
        } = outcome;
        match &outcome.refused {
            None => page.line(format!("changed   {interface}: channels set to {wanted}")),
            Some(why) => page.item(
                "refused   ",
                format!("ethtool -L {} {wanted}: {why}", word(interface)),
            ),
        }
    }
    page
}

fn irqbalance(outcome: Option<&IrqbalanceOutcome>) -> Page {
    let mut page = Page::default();
    let Some(outcome) = outcome else {
        return page;
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
        IrqbalanceAction::Unbanned => return page,
        IrqbalanceAction::Started => ("changed   ", "irqbalance is started again".to_owned()),
        IrqbalanceAction::NotRequested => ("skipped   ", format!("irqbalance: {detail}")),
        IrqbalanceAction::Refused => ("refused   ", format!("irqbalance: {detail}")),
    };
    page.item(what, text);
    page
}
