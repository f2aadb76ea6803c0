//! The results of `apply` and `restore` as text: a sentence, the settings by interface, what failed, and a line with the
//! counts for scripts.

use std::collections::BTreeSet;
use std::slice::from_ref;

use itertools::Itertools as _;

use crate::screen::nodes::runs;
use crate::screen::page::{LEFT, Page};
use crate::screen::plan::moving;
use crate::screen::status::MOST_INTERFACES;
use crate::screen::{
    Given, QUOTED, count, cut, grouped, machine_or, moves, of_kind, or, ranges, role_word, some,
    sorted, unjudged, when, with, within, written,
};
use nicpin::machine::Role;
use nicpin::machine::interface::natural;
use nicpin::machine::setting::{SettingId, shown};
use nicpin::machine::wording::word;
use nicpin::plan::WriteKind::{NapiThread, Vector};
use nicpin::report::applied::Evidence::{Elsewhere, Gone, MovedAway, NoTraffic, Proven};
use nicpin::report::applied::Watched::{Resumed, WaitsForTrial};
use nicpin::report::applied::{Applied, VectorProof};
use nicpin::report::outcome::IrqbalanceAction::{
    Banned, NotRequested, Refused, Started, Stopped, Unbanned,
};
use nicpin::report::outcome::{ChannelOutcome, IrqbalanceOutcome, Outcome, WriteResult};
use nicpin::report::restored::{Refusals, Restored, ToRestore, TrialEnd};

/// `apply` as text; `all`: each setting. `given`: what decides on the plan. The last line holds the counts.
pub fn applied(applied: &Applied, all: bool, given: &Given) -> Page {
    let tally = &applied.tally;
    let mut page = Page::of(given, all);
    if let Some(earlier) = &applied.earlier {
        let why = " of an unconfirmed apply --try";
        undone(&mut page, earlier, why, "the next apply tries again");
    }
    if applied.misfit {
        page.failure(
            "",
            "The plan does not match this machine; nothing was written. Make a new plan, or use --force to apply the \
             part that still matches.",
        );
    } else {
        let rest = could_not(tally.failed(), "written") + &not_judged(Some(&applied.not_judged));
        let pending = match tally.changed {
            0 => moving(&applied.plan),
            _ if tally.pending == 0 => String::new(),
            _ => format!(" {} at the next interrupt.", moves(tally.pending)),
        };
        let settings = |many| count(many, "setting");
        let text = match tally.changed {
            0 if tally.failed() > 0 => format!("Nothing was written{rest}."),
            0 => format!(
                "Nothing was written: {} already as planned{rest}.",
                settings(tally.already)
            ),
            changed => format!("{} written and read back{rest}.", settings(changed)),
        };
        page.text(text + &pending);
    }
    for change in &applied.changes {
        let left_out = when(change.left_out && !applied.misfit, "; left out");
        let on = machine_or(&change.interface);
        page.failure("differs   ", format!("{on}: {}{left_out}", change.text));
    }
    settings(&mut page, &applied.results, all);
    outcomes(
        &mut page,
        &applied.channels,
        &applied.irqbalance,
        &applied.results,
    );
    if let Some(all) = &applied.undone {
        let why = ", because not every setting could be written";
        undone(&mut page, all, why, "nicpin restore tries again");
    }
    // What one may also do is for status and plan.
    let notes = applied.notes.iter();
    let notes = notes.filter(|one| !one.note.advice().is_some_and(|advice| advice.optional));
    page.notes(notes.map(|one| (&*one.interface, from_ref(&one.note))));
    // The notes and the last line have them.
    for unknown in &applied.unknown {
        page.failures
            .push(format!("{}: {}", unknown.interface, unknown.note));
    }
    if applied.strict && tally.managed > 0 {
        page.failures
            .push(count(tally.managed, "IRQ") + " cannot be moved");
    }
    if let Some(vectors) = &applied.proof {
        proof(&mut page, vectors);
    }
    if let Some(error) = &applied.proof_error {
        page.failure("no proof    ", error);
    }
    if applied.proof_cut_short {
        page.line("The proof ended early, because the time of --try ended before that of --prove.");
    }
    match applied.watched {
        Some(WaitsForTrial) if applied.trial.is_some() => {
            page.text("nicpin watch writes nothing until the trial is confirmed or has ended.");
        }
        Some(Resumed) => page.line("nicpin watch is no longer paused."),
        _ => {}
    }
    if let Some(left) = applied.left {
        let confirm = "nicpin\u{a0}confirm (or Enter, on a terminal)";
        page.text(format!(
            "Trial: restored in {left} s unless confirmed: {confirm}"
        ));
    } else if applied.trial.is_some() {
        page.line("Trial: nothing was changed, and nothing will be restored.");
    } else if tally.changed > 0 {
        page.line("Undo: nicpin restore");
    }
    page.line(format!(
        "plan {}: changed={} already={} managed={} refused={} vanished={} pending={}",
        applied.hash,
        tally.changed,
        tally.already,
        tally.managed,
        tally.refused,
        tally.vanished,
        tally.pending
    ));
    page
}

/// How many could not be; empty if all could.
fn could_not(failed: usize, be: &str) -> String {
    within(
        "; ",
        (failed > 0).then_some(failed),
        &format!(" could not be {be}"),
    )
}

/// Interfaces that cannot be judged; empty if there are none, or if that is not known.
fn not_judged(names: Option<&Vec<String>>) -> String {
    with("; ", names.map(|names| unjudged(names)))
}

/// Where interrupts arrived: queues by interface and verdict, and each IRQ with interrupts on other CPUs.
fn proof(page: &mut Page, vectors: &[VectorProof]) {
    let of = |verdict| vectors.iter().filter(move |of| of.verdict == verdict);
    for (verdict, label, what) in [
        (Proven, "proven      ", "interrupts arrived where planned"),
        (NoTraffic, "no traffic  ", "no interrupts seen"),
    ] {
        for (name, vectors) in sorted(of(verdict).map(|of| (&of.interface, of))) {
            let mut queues = sorted(vectors.iter().map(|of| (of.role, of.queue)))
                .into_iter()
                .map(|(role, queues)| {
                    if role == Role::Data {
                        return count(queues.len(), "IRQ") + " of unknown queues";
                    }
                    let s = when(role == Role::Combined && queues.len() > 1, "s");
                    format!(
                        "{}{s} {}",
                        role_word(role),
                        ranges(queues.into_iter().flatten())
                    )
                });
            page.item(label, format!("{name} {}: {what}", queues.join(", ")));
        }
    }
    let mut mismatch = 0;
    for vector in vectors {
        let what = match vector.verdict {
            Proven | NoTraffic => continue,
            Elsewhere => format!("interrupts seen on CPU {}", vector.others.short()),
            MovedAway => "its affinity was changed after apply".into(),
            Gone => "the IRQ is gone".into(),
        };
        mismatch += 1;
        let (name, irq, cpus) = (&vector.interface, vector.irq, vector.cpus.short());
        page.failure(
            "mismatch    ",
            format!("{name} IRQ {irq}: planned CPU {cpus}, {what}"),
        );
    }
    let (proven, no_traffic) = (of(Proven).count(), of(NoTraffic).count());
    page.line(format!(
        "proof: proven={proven} no-traffic={no_traffic} mismatch={mismatch}"
    ));
}

/// `restore` as text; `all`: each setting. The last line holds the counts.
pub fn restored(restored: &Restored, all: bool) -> Page {
    let (changed, already) = (restored.changed, restored.already);
    let (refused, absent) = (restored.refused, restored.absent.len());
    let mut page = Page::default();
    let is_empty = changed + already + refused + absent == 0 && restored.irqbalance.is_none();
    let others = not_judged(restored.not_judged.as_ref());
    if !is_empty {
        let rest = could_not(refused + absent, "restored") + &others;
        let settings = |many| count(many, "setting");
        page.text(match changed {
            0 => format!(
                "Nothing was written: {} already as recorded{rest}.",
                settings(already)
            ),
            _ => format!("{} restored and read back{rest}.", settings(changed)),
        });
        self::settings(&mut page, &restored.results, all);
        outcomes(
            &mut page,
            &restored.channels,
            &restored.irqbalance,
            &restored.results,
        );
        self::absent(&mut page, &restored.absent, "kept for the next restore");
    }
    if restored.staying > 0 {
        page.line(format!(
            "IRQs that keep their current CPU, because the restored affinity allows it: {}",
            restored.staying
        ));
    }
    if restored.watcher_paused {
        page.line("nicpin watch is paused until the next nicpin apply.");
    }
    page.line(if is_empty {
        nothing_recorded(restored.not_judged.as_ref())
    } else {
        format!("restored: changed={changed} already={already} refused={refused} absent={absent}")
    });
    page
}

fn nothing_recorded(not_judged: Option<&Vec<String>>) -> String {
    "nothing to restore: there is no record of an apply".to_owned() + &self::not_judged(not_judged)
}

/// `restore --dry-run` as text.
pub fn to_restore(to_restore: &ToRestore) -> Page {
    let mut page = Page::default();
    if to_restore.is_empty() {
        page.line(nothing_recorded(to_restore.not_judged.as_ref()));
        return page;
    }
    let (channels, writes) = (to_restore.channels.iter(), to_restore.writes.iter());
    let all = channels.len() + writes.len() + usize::from(to_restore.irqbalance);
    page.text(format!(
        "{} would be restored{}; {} already as recorded{}.",
        count(all, "setting"),
        could_not(to_restore.refused(), "restored"),
        to_restore.unchanged,
        not_judged(to_restore.not_judged.as_ref())
    ));
    let channels = channels.map(|(name, to)| [format!("channels of {name}"), to.clone()]);
    let writes = writes.map(|of| written(&of.path, of.current.trim(), &of.value));
    page.table(2, LEFT, channels.chain(writes));
    if to_restore.irqbalance {
        page.line("  what irqbalance was asked to do");
    }
    let Refusals { channels, results } = &to_restore.refusals;
    outcomes(&mut page, channels, None, results);
    absent(&mut page, &to_restore.absent, "kept for the next restore");
    page
}

/// Settings whose files are absent now, a line for each port.
fn absent(page: &mut Page, ids: &BTreeSet<SettingId>, then: &str) {
    let ports = sorted(ids.iter().map(|id| match &id.port {
        Some(port) => (port.to_string(), id.name.to_string()),
        None => (id.to_string(), String::new()),
    }));
    for (port, settings) in ports {
        let what = match &settings[..] {
            [setting] if !setting.is_empty() => cut(setting, QUOTED),
            _ => count(settings.len(), "setting"),
        };
        let of = cut(&port, QUOTED);
        page.failure("absent    ", format!("{of}: {what}; {then}"));
    }
}

/// How an unconfirmed trial has ended; `not_restored` says what could not be restored.
pub fn trial_over(not_restored: Option<&str>, ended: TrialEnd) -> String {
    let why = match ended {
        TrialEnd::InTime => "the trial was not confirmed in time",
        TrialEnd::Unwatched => "the process that watched the trial was killed",
    };
    format!("restored: {why}{}", with("; ", not_restored))
}

/// What was restored and `why`, and what was not. `again`: when that is tried again.
fn undone(page: &mut Page, undone: &Restored, why: &str, again: &str) {
    let changed = undone.results.iter().filter(|result| result.changed());
    let changed = count(changed.count(), "setting");
    let then = format!(" could not be restored: {again}");
    let left = with("; ", [some(undone.not_restored, "setting", &then)]);
    page.failure("restored  ", format!("{changed}{why}{left}"));
    outcomes(page, &undone.channels, &undone.irqbalance, &undone.results);
    absent(page, &undone.absent, "could not be restored");
}

/// What came of channels, irqbalance and settings.
fn outcomes<'a>(
    page: &mut Page,
    channels: &[ChannelOutcome],
    balancer: impl IntoIterator<Item = &'a IrqbalanceOutcome>,
    results: &[WriteResult],
) {
    for ChannelOutcome {
        interface,
        wanted,
        refused,
    } in channels
    {
        let wanted = cut(wanted, QUOTED);
        match refused {
            None => page.line(format!("  {interface}  channels set to {wanted}")),
            Some(why) => page.failure(
                "refused   ",
                format!("ethtool -L {} {wanted}: {why}", word(interface)),
            ),
        }
    }
    for outcome in balancer {
        let (irqs, detail) = (count(outcome.irqs, "IRQ"), or(&outcome.detail, ""));
        let text = match (outcome.done, outcome.changed) {
            (Refused, _) => {
                page.failure("refused   ", format!("irqbalance: {detail}"));
                continue;
            }
            (Unbanned, false) => continue,
            (Banned, true) => format!("{irqs} banned"),
            (Banned, false) => format!("{irqs} already banned"),
            (Stopped, _) => "stopped".into(),
            (Unbanned, true) => format!("{irqs} no longer banned"),
            (Started, _) => "started again".into(),
            (NotRequested, _) => format!("not asked: {detail}"),
        };
        page.item("  irqbalance  ", text);
    }
    // One message for those with the same outcome and detail: thousands of files may have the same one.
    let told = results
        .iter()
        .filter(|of| !of.changed() || of.detail.is_some() && of.fallback.is_none())
        .filter(|of| of.outcome != Outcome::Already);
    for ((outcome, detail), group) in grouped(told.map(|of| ((of.outcome, &of.detail), of))) {
        let what = match group[..] {
            [WriteResult { path, value, .. }] => {
                format!("{} <- {}", shown(path), cut(value, QUOTED))
            }
            ref group => files(group),
        };
        let outcome = format!("{outcome:?}").to_lowercase();
        let (label, text) = (
            format!("{outcome:<10}"),
            format!("{what}: {}", or(detail, "")),
        );
        if group[0].failed() {
            page.failure(&label, text);
        } else {
            page.item(label, text);
        }
    }
    for result in results {
        if let (Some(_), Some(detail)) = (&result.fallback, &result.detail) {
            page.item("fallback  ", format!("{}: {detail}", result.path));
        }
    }
}

/// The settings that were written, by interface and kind.
fn settings(page: &mut Page, results: &[WriteResult], all: bool) {
    let changed = results.iter().filter(|result| result.changed());
    if all {
        let rows = changed.map(|one| {
            let now = one.fallback.as_ref().unwrap_or(&one.value);
            written(&one.path, one.was.as_deref().unwrap_or("unknown"), now)
        });
        return page.table(2, LEFT, rows);
    }
    let changed = grouped(changed.map(|one| (&one.interface, one.kind))).into_iter();
    let changed = changed.sorted_by_key(|(name, _)| natural(name));
    let rows = changed.map(|(name, kinds)| {
        let mut kinds = kinds
            .into_iter()
            .sorted()
            .dedup_with_count()
            .map(|(many, kind)| of_kind(many, kind));
        (machine_or(name), kinds.join(", "))
    });
    let rows = rows.collect_vec();
    if rows.len() <= MOST_INTERFACES {
        return page.table(2, LEFT, rows.into_iter().map(|(name, kinds)| [name, kinds]));
    }
    // Most of many are alike.
    let alike = grouped(rows.iter().map(|(name, kinds)| (kinds.clone(), &**name)));
    page.table(
        2,
        LEFT,
        alike
            .into_iter()
            .map(|(kinds, names)| [kinds, runs(&names)]),
    );
}

/// Files in short: `IRQs 71-76; eth2 xps_cpus of tx 0-5`.
fn files(results: &[&WriteResult]) -> String {
    let files = grouped(
        results
            .iter()
            .map(|of| match (of.kind, of.kind.of_queue()) {
                (Vector, _) => ("IRQs".to_owned(), Some(of.number)),
                (NapiThread, _) => ("affinity of threads".to_owned(), Some(of.number)),
                (_, Some((way, file))) => {
                    let name = format!("{} {file} of {way}", of.interface);
                    (name, Some(of.number))
                }
                _ => (shown(&of.path).into_owned(), None),
            }),
    );
    let mut files = files.into_iter().map(|(name, numbers)| {
        let numbers = ranges(numbers.into_iter().flatten());
        name + &with(" ", [numbers])
    });
    files.join("; ")
}
