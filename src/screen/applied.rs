//! The results of `apply` and `restore` as text: a sentence, the settings by interface, what failed, and a line with the
//! counts for scripts.

use std::collections::{BTreeMap, BTreeSet};
use std::slice::from_ref;

use itertools::Itertools as _;

use crate::screen::page::Page;
use crate::screen::{
    count, grouped, kinds, machine_or, moves, or, ranges, role_word, sorted, when, with, written,
};
use nicpin::machine::Role;
use nicpin::machine::setting::{shown, thread_of};
use nicpin::machine::wording::word;
use nicpin::plan::{Note, WriteKind};
use nicpin::report::applied::Evidence::{Elsewhere, Gone, MovedAway, NoTraffic, Proven};
use nicpin::report::applied::Watched::{Resumed, WaitsForTrial};
use nicpin::report::applied::{Applied, VectorProof};
use nicpin::report::outcome::IrqbalanceAction::{
    Banned, NotRequested, Refused, Started, Stopped, Unbanned,
};
use nicpin::report::outcome::{ChannelOutcome, IrqbalanceOutcome, Outcome, WriteResult};
use nicpin::report::restored::{Restored, ToRestore, TrialEnd};

/// Why an apply failed, without what it did.
pub fn failed_apply(applied: &Applied) -> Page {
    let mut page = Page::default();
    changes(&mut page, applied);
    outcomes(
        &mut page,
        &applied.channels,
        &applied.irqbalance,
        &applied.results,
        true,
    );
    all_undone(&mut page, applied);
    for unknown in &applied.unknown {
        page.line(format!("{}: {}", unknown.interface, unknown.note));
    }
    if applied.strict && applied.tally.managed > 0 {
        page.line(count(applied.tally.managed, "IRQ") + " cannot be moved");
    }
    mismatches(&mut page, applied.proof.as_deref().unwrap_or_default());
    page
}

/// Why a restore failed, without what it did.
pub fn failed_restore(restored: &Restored) -> Page {
    let mut page = Page::default();
    outcomes(
        &mut page,
        &restored.channels,
        &restored.irqbalance,
        &restored.results,
        true,
    );
    page
}

/// `apply` as text; `all`: each setting. The last line holds the counts.
pub fn applied(applied: &Applied, all: bool) -> Page {
    let tally = &applied.tally;
    let mut page = Page::default();
    if let Some(earlier) = &applied.earlier {
        let why = " of an unconfirmed apply --try";
        undone(&mut page, earlier, why, "the next apply tries again");
    }
    if !applied.misfit {
        let failed = with("; ", could_not(tally.failed(), "written"));
        let pending = format!(" {} at the next interrupt.", moves(tally.pending));
        page.text(match tally.changed {
            0 if !failed.is_empty() => format!("Nothing was written{failed}."),
            0 => {
                let already = count(tally.already, "setting");
                format!("Nothing was written: {already} already as planned.")
            }
            changed => {
                let changed = count(changed, "setting");
                let pending = when(tally.pending > 0, &pending);
                format!("{changed} written and read back{failed}.{pending}")
            }
        });
    }
    changes(&mut page, applied);
    settings(&mut page, &applied.results, all);
    outcomes(
        &mut page,
        &applied.channels,
        &applied.irqbalance,
        &applied.results,
        false,
    );
    all_undone(&mut page, applied);
    // What one may also do is for status and plan.
    let has_more = |note: &Note| !note.advice().is_some_and(|advice| advice.optional);
    let about = applied.notes.iter().filter(|one| has_more(&one.note));
    page.notes(about.map(|one| (&*one.interface, from_ref(&one.note))));
    if let Some(vectors) = &applied.proof {
        proof(&mut page, vectors);
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
    if let (Some(_), Some(left)) = (applied.trial, applied.left) {
        let confirm = "nicpin\u{a0}confirm (or Enter on this terminal)";
        page.text(format!(
            "Trial: restored in {left} s unless confirmed: {confirm}"
        ));
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

/// How many could not be; none if all could.
fn could_not(failed: usize, be: &str) -> Option<String> {
    (failed > 0).then(|| format!("{failed} could not be {be}"))
}

/// What has changed since a stored plan was made.
fn changes(page: &mut Page, applied: &Applied) {
    if applied.misfit {
        page.text(
            "The plan does not match this machine; nothing was written. Make a new plan, or use --force to apply the \
             part that still matches.",
        );
    }
    for change in &applied.changes {
        let left_out = when(change.left_out && !applied.misfit, "; left out");
        let (on, text) = (machine_or(&change.interface), &change.text);
        page.item("differs   ", format!("{on}: {text}{left_out}"));
    }
}

/// Where interrupts arrived: queues by interface and verdict, and each IRQ with interrupts on other CPUs.
fn proof(page: &mut Page, vectors: &[VectorProof]) {
    let of = |verdict| vectors.iter().filter(move |of| of.verdict == verdict);
    let (proven, no_traffic) = (of(Proven), of(NoTraffic));
    for (vectors, label, what) in [
        (
            proven.clone(),
            "proven      ",
            "interrupts arrived where planned",
        ),
        (no_traffic.clone(), "no traffic  ", "no interrupts seen"),
    ] {
        for (name, vectors) in sorted(vectors.map(|of| (&of.interface, of))) {
            let mut queues = sorted(vectors.iter().map(|of| (of.role, of.queue)))
                .into_iter()
                .map(|(role, queues)| {
                    let (role, s) = (role_word(role), when(role == Role::Combined, "s"));
                    format!("{role}{s} {}", ranges(queues.into_iter().flatten()))
                });
            page.item(label, format!("{name} {}: {what}", queues.join(", ")));
        }
    }
    mismatches(page, vectors);
    let (proven, no_traffic) = (proven.count(), no_traffic.count());
    let mismatch = vectors.len() - proven - no_traffic;
    page.line(format!(
        "proof: proven={proven} no-traffic={no_traffic} mismatch={mismatch}"
    ));
}

fn lower(variant: impl std::fmt::Debug) -> String {
    format!("{variant:?}").to_lowercase()
}

/// Vectors whose interrupts arrived elsewhere.
fn mismatches(page: &mut Page, vectors: &[VectorProof]) {
    for vector in vectors {
        let what = match vector.verdict {
            Proven | NoTraffic => continue,
            Elsewhere => format!("interrupts seen on CPU {}", vector.others.short()),
            MovedAway => "its affinity was changed after apply".to_owned(),
            Gone => "the IRQ is gone".to_owned(),
        };
        let (name, irq, cpus) = (&vector.interface, vector.irq, vector.cpus.short());
        let text = format!("{name} IRQ {irq}: planned CPU {cpus}, {what}");
        page.item("mismatch    ", text);
    }
}

/// `restore` as text; `all`: each setting. The last line holds the counts.
pub fn restored(restored: &Restored, all: bool) -> Page {
    let (changed, already) = (restored.changed, restored.already);
    let (refused, absent) = (restored.refused, restored.absent.len());
    let mut page = Page::default();
    let is_empty = changed + already + refused + absent == 0 && restored.irqbalance.is_none();
    if !is_empty {
        let failed = with("; ", could_not(refused + absent, "restored"));
        let many = count(if changed == 0 { already } else { changed }, "setting");
        page.text(match changed {
            0 => format!("Nothing was written: {many} already as recorded{failed}."),
            _ => format!("{many} restored and read back{failed}."),
        });
        settings(&mut page, &restored.results, all);
        outcomes(
            &mut page,
            &restored.channels,
            &restored.irqbalance,
            &restored.results,
            false,
        );
        self::absent(&mut page, &restored.absent, "kept for the next restore");
    }
    if restored.staying > 0 {
        let many = restored.staying;
        let why = "because the restored affinity allows it";
        page.line(format!("IRQs that keep their current CPU, {why}: {many}"));
    }
    if restored.watcher_paused {
        page.line("nicpin watch is paused until the next nicpin apply.");
    }
    page.line(if is_empty {
        "nothing to restore: there is no record of an apply".to_owned()
    } else {
        format!("restored: changed={changed} already={already} refused={refused} absent={absent}")
    });
    page
}

/// `restore --dry-run` as text.
pub fn to_restore(to_restore: &ToRestore) -> Page {
    let mut page = Page::default();
    let (channels, writes) = (to_restore.channels.iter(), to_restore.writes.iter());
    let all = channels.len() + writes.len() + usize::from(to_restore.irqbalance);
    let (all, already) = (count(all, "setting"), to_restore.unchanged);
    page.line(format!(
        "{all} would be restored; {already} already as recorded."
    ));
    let channels = channels.map(|(name, to)| [format!("channels of {name}"), to.clone()]);
    let writes = writes.map(|of| written(&of.path, of.current.trim(), &of.value));
    page.table(2, channels.chain(writes));
    if to_restore.irqbalance {
        page.line("  what irqbalance was asked to do");
    }
    absent(&mut page, &to_restore.absent, "kept for the next restore");
    page
}

/// Settings whose files are absent now, a line for each port.
fn absent(page: &mut Page, keys: &BTreeSet<String>, then: &str) {
    let ports = sorted(keys.iter().map(|key| {
        // `0000:41:00.0 port 0 rx-3 rps_cpus`
        let end = key.match_indices(' ').nth(2);
        key.split_at(end.map_or(key.len(), |(at, _)| at))
    }));
    for (port, settings) in ports {
        let what = match settings[..] {
            [setting] if !setting.is_empty() => setting.trim().to_owned(),
            _ => count(settings.len(), "setting"),
        };
        page.item("absent    ", format!("{port}: {what}; {then}"));
    }
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

fn all_undone(page: &mut Page, applied: &Applied) {
    if let Some(all) = &applied.undone {
        let why = ", because not every setting could be written";
        undone(page, all, why, "nicpin restore tries again");
    }
}

/// What was restored and `why`, and what was not. `again`: when that is tried again.
fn undone(page: &mut Page, undone: &Restored, why: &str, again: &str) {
    let changed = undone.results.iter().filter(|result| result.changed());
    let changed = count(changed.count(), "setting");
    let left = count(undone.not_restored, "setting");
    let left = format!("; {left} could not be restored: {again}");
    let left = when(undone.not_restored > 0, &left);
    page.item("restored  ", format!("{changed}{why}{left}"));
    outcomes(
        page,
        &undone.channels,
        &undone.irqbalance,
        &undone.results,
        false,
    );
    absent(page, &undone.absent, "could not be restored");
}

/// What came of channels, irqbalance and settings; `failed`: only what failed.
fn outcomes<'a>(
    page: &mut Page,
    channels: &[ChannelOutcome],
    balancer: impl IntoIterator<Item = &'a IrqbalanceOutcome>,
    results: &[WriteResult],
    failed: bool,
) {
    for outcome in channels {
        let (name, wanted) = (&outcome.interface, &outcome.wanted);
        match &outcome.refused {
            Some(why) => {
                let text = format!("ethtool -L {} {wanted}: {why}", word(name));
                page.item("refused   ", text);
            }
            None if failed => {}
            None => page.line(format!("  {name}  channels set to {wanted}")),
        }
    }
    for outcome in balancer {
        let (irqs, detail) = (count(outcome.irqs, "IRQ"), or(&outcome.detail, ""));
        let text = match (outcome.done, outcome.changed) {
            (Refused, _) => {
                page.item("refused   ", format!("irqbalance: {detail}"));
                continue;
            }
            (Unbanned, false) => continue,
            _ if failed => continue,
            (Banned, true) => format!("{irqs} banned"),
            (Banned, false) => format!("{irqs} already banned"),
            (Stopped, _) => "stopped".to_owned(),
            (Unbanned, true) => format!("{irqs} no longer banned"),
            (Started, _) => "started again".to_owned(),
            (NotRequested, _) => format!("not asked: {detail}"),
        };
        page.item("  irqbalance  ", text);
    }
    // One message for those with the same outcome and detail: thousands of files may have the same one.
    let shown_results = results
        .iter()
        .filter(|of| of.failed() || !failed && !of.changed() && of.outcome != Outcome::Already);
    for ((outcome, detail), group) in
        grouped(shown_results.map(|of| ((of.outcome, &of.detail), of)))
    {
        let what = match group[..] {
            [WriteResult { path, value, .. }] => format!("{} <- {value}", shown(path)),
            ref group => files(group.iter().map(|result| &*result.path)),
        };
        let text = format!("{what}: {}", or(detail, ""));
        page.item(format!("{:<10}", lower(outcome)), text);
    }
    for result in results.iter().filter(|_| !failed) {
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
        return page.table(2, rows);
    }
    let rows = sorted(changed.map(|one| (&one.interface, one.kind)))
        .into_iter()
        .map(|(name, each)| {
            let mut counts: BTreeMap<WriteKind, usize> = BTreeMap::new();
            for kind in each {
                *counts.entry(kind).or_default() += 1;
            }
            [machine_or(name).to_owned(), kinds(&counts, false)]
        });
    page.table(2, rows);
}

/// Files in short: `IRQs 71-76; eth2 xps_cpus of tx 0-5`.
fn files<'a>(paths: impl Iterator<Item = &'a str>) -> String {
    let numbered = |path: &'a str| {
        if let Some(irq) = path.strip_prefix("/proc/irq/") {
            return Some((
                "IRQs".to_owned(),
                irq.strip_suffix("/smp_affinity")?.parse().ok()?,
            ));
        }
        if let Some(pid) = thread_of(path) {
            return Some(("affinity of threads".to_owned(), pid));
        }
        let queue = path.strip_prefix("/sys/class/net/")?;
        let (interface, queue) = queue.split_once("/queues/")?;
        let (queue, file) = queue.split_once('/')?;
        let (direction, number) = queue.split_once('-')?;
        Some((
            format!("{interface} {file} of {direction}"),
            number.parse().ok()?,
        ))
    };
    grouped(paths.map(|path| match numbered(path) {
        Some((name, number)) => (name, Some(number)),
        None => (shown(path).into_owned(), None),
    }))
    .into_iter()
    .map(|(name, numbers)| {
        let numbers = ranges(numbers.into_iter().flatten());
        name + &with(" ", Some(numbers))
    })
    .join("; ")
}
