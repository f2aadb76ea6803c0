//! The results of `apply` and `restore` as text; the last line has the counts, for scripts.

use std::collections::BTreeSet;
use std::slice::from_ref;

use itertools::Itertools as _;

use crate::screen::nodes::runs;
use crate::screen::page::{LEFT, Page};
use crate::screen::placement::pending;
use crate::screen::status::MOST_INTERFACES;
use crate::screen::{
    Given, QUOTED, count, count_if_any, cut, enclose, group_by_key, group_sorted,
    interface_or_machine, moves, moves_later, ranges, role_word, text_if, text_or, unjudged,
    value_change, with_prefix,
};
use nicpin::kinds::SettingId;
use nicpin::machine::Role;
use nicpin::machine::interface::natural;
use nicpin::machine::wording::word;
use nicpin::plan::SettingKind::{NapiThread, Vector};
use nicpin::report::applied::Evidence::{Elsewhere, Gone, MovedAway, NoTraffic, Proven};
use nicpin::report::applied::Watched::{Resumed, WaitsForTrial};
use nicpin::report::applied::{Applied, VectorProof};
use nicpin::report::outcome::IrqbalanceAction::{
    Banned, NotRequested, Refused, Started, Stopped, Unbanned,
};
use nicpin::report::outcome::{ChannelOutcome, IrqbalanceOutcome, Outcome, WriteResult};
use nicpin::report::restored::{Refusals, Restored, ToRestore, TrialEnd};

/// Whether an atomic apply has restored all that it wrote.
fn is_undone(applied: &Applied) -> bool {
    applied.undone.as_ref().is_some_and(Restored::complete)
}

fn verdict(applied: &Applied) -> String {
    let tally = &applied.tally;
    let rest = could_not(tally.failed(), "written") + &not_judged([&applied.not_judged]);
    let settings = |many| count(many, "setting");
    match tally.changed {
        0 => {
            let text = if is_undone(applied) {
                "Nothing stays changed".to_owned()
            } else if tally.failed() > 0 || tally.already == 0 && !applied.unknown.is_empty() {
                "Nothing was written".to_owned()
            } else if tally.already + tally.managed == 0 {
                "Nothing was written: there is no setting to plan".to_owned()
            } else {
                let already = settings(tally.already);
                format!("Nothing was written: {already} already as planned")
            };
            let earlier = Some(pending(&applied.plan)).filter(|irqs| *irqs > 0);
            let earlier = enclose(
                " From an earlier apply, ",
                earlier.map(moves),
                " at the next interrupt.",
            );
            format!("{text}{rest}.{earlier}")
        }
        changed => {
            let later = moves_later(tally.pending);
            format!("{} written and read back{rest}.{later}", settings(changed))
        }
    }
}

/// Shows each setting with `all`. `given`: the options that decide on the plan.
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
        page.text(verdict(applied));
    }
    for change in &applied.changes {
        let left_out = text_if(change.left_out && !applied.misfit, "; left out");
        let on = interface_or_machine(&change.interface);
        page.failure("differs   ", format!("{on}: {}{left_out}", change.text));
    }
    if !is_undone(applied) {
        settings(&mut page, &applied.results, all);
    }
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
    // Optional advice is shown by status and plan only.
    let notes = applied.notes.iter();
    let notes = notes.filter(|note| !note.note.advice().is_some_and(|advice| advice.optional));
    page.notes(notes.map(|note| (&*note.interface, from_ref(&note.note))));
    // The notes and the last line contain them.
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

fn could_not(failed: usize, be: &str) -> String {
    enclose(
        "; ",
        (failed > 0).then_some(failed),
        &format!(" could not be {be}"),
    )
}

fn not_judged<'a>(names: impl IntoIterator<Item = &'a Vec<String>>) -> String {
    with_prefix("; ", names.into_iter().map(|names| unjudged(names)))
}

fn proof(page: &mut Page, vectors: &[VectorProof]) {
    let with_verdict = |verdict| {
        vectors
            .iter()
            .filter(move |vector| vector.verdict == verdict)
    };
    for (verdict, label, what) in [
        (Proven, "proven      ", "interrupts arrived where planned"),
        (NoTraffic, "no traffic  ", "no interrupts seen"),
    ] {
        for (name, vectors) in
            group_sorted(with_verdict(verdict).map(|vector| (&vector.interface, vector)))
        {
            let mut queues = group_sorted(vectors.iter().map(|vector| (vector.role, vector.queue)))
                .into_iter()
                .map(|(role, queues)| {
                    if role == Role::Data {
                        return count(queues.len(), "IRQ") + " of unknown queues";
                    }
                    let s = text_if(role == Role::Combined && queues.len() > 1, "s");
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
    let (proven, no_traffic) = (
        with_verdict(Proven).count(),
        with_verdict(NoTraffic).count(),
    );
    page.line(format!(
        "proof: proven={proven} no-traffic={no_traffic} mismatch={mismatch}"
    ));
}

pub fn restored(restored: &Restored, all: bool) -> Page {
    let (changed, already) = (restored.changed, restored.already);
    let (refused, absent) = (restored.refused, restored.absent.len());
    let mut page = Page::default();
    let is_empty = changed + already + refused + absent == 0 && restored.irqbalance.is_none();
    let others = not_judged(&restored.not_judged);
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
        nothing_recorded(&others)
    } else {
        format!("restored: changed={changed} already={already} refused={refused} absent={absent}")
    });
    page
}

fn nothing_recorded(others: &str) -> String {
    format!("Nothing to restore: there is no record of an apply{others}")
}

pub fn to_restore(to_restore: &ToRestore) -> Page {
    let mut page = Page::default();
    let others = not_judged(&to_restore.not_judged);
    if to_restore.is_empty() {
        page.line(nothing_recorded(&others));
        return page;
    }
    let (channels, writes) = (to_restore.channels.iter(), to_restore.writes.iter());
    let all = channels.len() + writes.len() + usize::from(to_restore.irqbalance);
    page.text(format!(
        "{} would be restored{}; {} already as recorded{others}.",
        count(all, "setting"),
        could_not(to_restore.refused(), "restored"),
        to_restore.unchanged
    ));
    let channels = channels.map(|(name, to)| [format!("channels of {name}"), to.clone()]);
    let writes =
        writes.map(|write| value_change(write.shown(), write.current.trim(), &write.value));
    page.table(2, LEFT, channels.chain(writes));
    if to_restore.irqbalance {
        page.line("  what irqbalance was asked to do");
    }
    let Refusals { channels, results } = &to_restore.refusals;
    outcomes(&mut page, channels, None, results);
    absent(&mut page, &to_restore.absent, "kept for the next restore");
    page
}

fn absent(page: &mut Page, ids: &BTreeSet<SettingId>, then: &str) {
    let ports = group_sorted(ids.iter().map(|id| match &id.port {
        Some(port) => (port.to_string(), id.name.to_string()),
        None => (id.to_string(), String::new()),
    }));
    for (port, settings) in ports {
        let what = match &settings[..] {
            [setting] if !setting.is_empty() => cut(setting, QUOTED),
            _ => count(settings.len(), "setting"),
        };
        let port = cut(&port, QUOTED);
        page.failure("absent    ", format!("{port}: {what}; {then}"));
    }
}

pub fn trial_over(not_restored: Option<&str>, ended: TrialEnd) -> String {
    let why = match ended {
        TrialEnd::InTime => "the trial was not confirmed in time",
        TrialEnd::Unwatched => "the process that watched the trial was killed",
    };
    format!("restored: {why}{}", with_prefix("; ", not_restored))
}

/// `again`: when the rest is tried again.
fn undone(page: &mut Page, undone: &Restored, why: &str, again: &str) {
    let changed = undone.results.iter().filter(|result| result.changed());
    let changed = count(changed.count(), "setting");
    let then = format!(" could not be restored: {again}");
    let left = with_prefix("; ", [count_if_any(undone.not_restored, "setting", &then)]);
    page.failure("restored  ", format!("{changed}{why}{left}"));
    outcomes(page, &undone.channels, &undone.irqbalance, &undone.results);
    absent(page, &undone.absent, "could not be restored");
}

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
        let (irqs, detail) = (count(outcome.irqs, "IRQ"), text_or(&outcome.detail, ""));
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
    // Thousands of files may have the same outcome and detail: one message for all of them.
    let told = results
        .iter()
        .filter(|result| !result.changed() || result.detail.is_some() && result.fallback.is_none())
        .filter(|result| result.outcome != Outcome::Already);
    for ((outcome, detail), group) in
        group_by_key(told.map(|result| ((result.outcome, &result.detail), result)))
    {
        let what = match group[..] {
            [result] => format!("{} <- {}", result.shown(), cut(&result.value, QUOTED)),
            ref group => files(group),
        };
        let outcome = format!("{outcome:?}").to_lowercase();
        let (label, text) = (
            format!("{outcome:<10}"),
            format!("{what}: {}", text_or(detail, "")),
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

fn settings(page: &mut Page, results: &[WriteResult], all: bool) {
    let changed = results.iter().filter(|result| result.changed());
    if all {
        let rows = changed.map(|result| {
            let now = result.fallback.as_ref().unwrap_or(&result.value);
            value_change(
                result.shown(),
                result.was.as_deref().unwrap_or("unknown"),
                now,
            )
        });
        return page.table(2, LEFT, rows);
    }
    let changed = group_by_key(changed.map(|result| (&result.interface, result.kind))).into_iter();
    let changed = changed.sorted_unstable_by_key(|(name, _)| natural(name));
    let rows = changed.map(|(name, kinds)| {
        let mut kinds = kinds
            .into_iter()
            .sorted_unstable()
            .dedup_with_count()
            .map(|(many, kind)| kind.counted(many));
        (interface_or_machine(name), kinds.join(", "))
    });
    let rows = rows.collect_vec();
    if rows.len() <= MOST_INTERFACES {
        return page.table(2, LEFT, rows.into_iter().map(|(name, kinds)| [name, kinds]));
    }
    let alike = group_by_key(rows.iter().map(|(name, kinds)| (kinds.clone(), &**name)));
    page.table(
        2,
        LEFT,
        alike
            .into_iter()
            .map(|(kinds, names)| [kinds, runs(&names)]),
    );
}

/// Names files in short, such as `IRQs 71-76; eth2 xps_cpus of tx 0-5`.
fn files(results: &[&WriteResult]) -> String {
    let files =
        group_by_key(
            results
                .iter()
                .map(|result| match (result.kind, result.kind.of_queue()) {
                    (Vector, _) => ("IRQs".to_owned(), Some(result.number)),
                    (NapiThread, _) => ("affinity of threads".to_owned(), Some(result.number)),
                    (_, Some((way, file))) => {
                        let name = format!("{} {file} of {way}", result.interface);
                        (name, Some(result.number))
                    }
                    _ => (result.shown(), None),
                }),
        );
    let mut files = files.into_iter().map(|(name, numbers)| {
        let numbers = ranges(numbers.into_iter().flatten());
        name + &with_prefix(" ", [numbers])
    });
    files.join("; ")
}
