//! The results of `apply` and `restore` as text: a sentence, the settings by interface, what failed, and a line with the
//! counts for scripts.

use itertools::Itertools as _;
use std::collections::{BTreeMap, BTreeSet};

use crate::screen::page::Page;
use crate::screen::status::moves;
use crate::screen::text::{count, kinds, notes, ranges};
use nicpin::machine::Role;
use nicpin::machine::setting::{shown, thread_of};
use nicpin::machine::wording::word;
use nicpin::plan::note::advice::Advice;
use nicpin::plan::{Note, WriteKind};
use nicpin::report::applied::{Applied, Evidence, VectorProof, Watched};
use nicpin::report::outcome::{
    ChannelOutcome, IrqbalanceAction, IrqbalanceOutcome, Outcome, WriteResult,
};
use nicpin::report::restored::{Restored, ToRestore, TrialEnd};

/// Why an apply failed, without what it did.
pub fn failed_apply(applied: &Applied) -> Page {
    let mut page = changes(applied);
    page.add(refusals(
        &applied.channels,
        applied.irqbalance.as_ref(),
        &applied.results,
    ));
    page.add(applied.undone.as_ref().map(all_undone).unwrap_or_default());
    for unknown in &applied.unknown {
        page.line(format!("{}: {}", unknown.interface, unknown.note));
    }
    if applied.strict && applied.tally.managed > 0 {
        page.line(format!(
            "{} cannot be moved",
            count(applied.tally.managed, "IRQ")
        ));
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
    let mut page = channels(outcomes.iter().filter(|outcome| outcome.refused.is_some()));
    page.add(irqbalance(balancer.filter(|outcome| outcome.failed())));
    page.add(failures(results.iter().filter(|result| result.failed())));
    page
}

/// `apply` as text; `all`: each setting. The last line holds the counts.
pub fn applied(applied: &Applied, all: bool) -> Page {
    let tally = &applied.tally;
    let mut page = Page::default();
    if let Some(earlier) = &applied.earlier {
        let why = " of an unconfirmed apply --try";
        page.add(undone(earlier, why, "the next apply tries again"));
    }
    if !applied.misfit {
        let failed = match tally.failed() {
            0 => String::new(),
            failed => format!("; {failed} could not be written"),
        };
        let pending = match tally.pending {
            0 => String::new(),
            pending => format!(" {} at the next interrupt.", moves(pending)),
        };
        let already = count(tally.already, "setting");
        page.item(
            "",
            match tally.changed {
                0 if !failed.is_empty() => format!("Nothing was written{failed}."),
                0 => format!("Nothing was written: {already} already as planned."),
                changed => format!(
                    "{} written and read back{failed}.{pending}",
                    count(changed, "setting")
                ),
            },
        );
    }
    page.add(changes(applied));
    page.add(written(&applied.results, all));
    page.add(channels(&applied.channels));
    page.add(irqbalance(applied.irqbalance.as_ref()));
    page.add(results(&applied.results));
    page.add(applied.undone.as_ref().map(all_undone).unwrap_or_default());
    // What one may also do is for status and plan.
    let has_more = |note: &Note| !matches!(note.advice(), Some(Advice::Try(_)));
    let about = applied.notes.iter().filter(|one| has_more(&one.note));
    let about = about.map(|one| (&*one.interface, &one.note));
    page.add(notes("", about, (usize::MAX, "")));
    page.add(applied.proof.as_deref().map(proof).unwrap_or_default());
    if applied.proof_cut_short {
        page.line("The proof ended early, because the time of --try ended before that of --prove.");
    }
    match applied.watched {
        Some(Watched::WaitsForTrial) if applied.trial.is_some() => {
            page.item(
                "",
                "nicpin watch writes nothing until the trial is confirmed or has ended.",
            );
        }
        Some(Watched::Resumed) => page.line("nicpin watch is no longer paused."),
        _ => {}
    }
    if let (Some(_), Some(left)) = (applied.trial, applied.left) {
        let confirm = "nicpin\u{a0}confirm (or Enter on this terminal)";
        page.item(
            "",
            format!("Trial: restored in {left} s unless confirmed: {confirm}"),
        );
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

/// What has changed since a stored plan was made.
fn changes(applied: &Applied) -> Page {
    let mut page = Page::default();
    if applied.misfit {
        let text = "The plan does not match this machine; nothing was written. Make a new plan, or use --force to apply \
                    the part that still matches.";
        page.item("", text);
    }
    for change in &applied.changes {
        let left_out = if change.left_out && !applied.misfit {
            "; left out"
        } else {
            ""
        };
        page.item(
            "differs   ",
            format!(
                "{}: {}{left_out}",
                machine_or(&change.interface),
                change.text
            ),
        );
    }
    page
}

fn machine_or(interface: &str) -> &str {
    if interface.is_empty() {
        "machine"
    } else {
        interface
    }
}

/// Where interrupts arrived: queues by interface and verdict, and each IRQ with interrupts on other CPUs.
fn proof(vectors: &[VectorProof]) -> Page {
    let mut page = Page::default();
    let of = |verdict| {
        vectors
            .iter()
            .filter(move |vector| vector.verdict == verdict)
    };
    for (verdict, label, what) in [
        (
            Evidence::Proven,
            "proven      ",
            "interrupts arrived where planned",
        ),
        (Evidence::NoTraffic, "no traffic  ", "no interrupts seen"),
    ] {
        let mut interfaces: BTreeMap<&str, BTreeMap<Role, Vec<u32>>> = BTreeMap::new();
        for vector in of(verdict) {
            let roles = interfaces.entry(&vector.interface).or_default();
            roles.entry(vector.role).or_default().extend(vector.queue);
        }
        for (name, roles) in interfaces {
            let mut queues = roles.into_iter().map(|(role, queues)| {
                let role = match role {
                    Role::Combined => "queues".to_owned(),
                    role => format!("{role:?}").to_lowercase(),
                };
                format!("{role} {}", ranges(&queues))
            });
            let queues = queues.join(", ");
            page.item(label, format!("{name} {queues}: {what}"));
        }
    }
    page.add(mismatches(vectors));
    let (proven, no_traffic) = (
        of(Evidence::Proven).count(),
        of(Evidence::NoTraffic).count(),
    );
    let mismatch = vectors.len() - proven - no_traffic;
    page.line(format!(
        "proof: proven={proven} no-traffic={no_traffic} mismatch={mismatch}"
    ));
    page
}

/// Vectors whose interrupts arrived elsewhere.
fn mismatches(vectors: &[VectorProof]) -> Page {
    let mut page = Page::default();
    for VectorProof {
        interface,
        irq,
        cpus,
        verdict,
        others,
        ..
    } in vectors
    {
        let what = match verdict {
            Evidence::Proven | Evidence::NoTraffic => continue,
            Evidence::Elsewhere => format!("interrupts seen on CPU {}", others.short()),
            Evidence::MovedAway => "its affinity was changed after apply".to_owned(),
            Evidence::Gone => "the IRQ is gone".to_owned(),
        };
        page.item(
            "mismatch    ",
            format!(
                "{interface} IRQ {irq}: planned CPU {}, {what}",
                cpus.short()
            ),
        );
    }
    page
}

/// `restore` as text; `all`: each setting. The last line holds the counts.
pub fn restored(restored: &Restored, all: bool) -> Page {
    let Restored {
        changed,
        already,
        refused,
        ..
    } = restored;
    let absent = restored.absent.len();
    let mut page = Page::default();
    let is_empty = changed + already + refused + absent == 0 && restored.irqbalance.is_none();
    if !is_empty {
        let failed = match refused + absent {
            0 => String::new(),
            failed => format!("; {failed} could not be restored"),
        };
        page.item(
            "",
            match changed {
                0 => format!(
                    "Nothing was written: {} already as recorded{failed}.",
                    count(*already, "setting")
                ),
                _ => format!(
                    "{} restored and read back{failed}.",
                    count(*changed, "setting")
                ),
            },
        );
        page.add(written(&restored.results, all));
        page.add(channels(&restored.channels));
        page.add(irqbalance(restored.irqbalance.as_ref()));
        page.add(results(&restored.results));
        page.add(self::absent(&restored.absent, "kept for the next restore"));
    }
    if restored.staying > 0 {
        let why = "because the restored affinity allows it";
        page.line(format!(
            "IRQs that keep their current CPU, {why}: {}",
            restored.staying
        ));
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
    let all =
        to_restore.channels.len() + to_restore.writes.len() + usize::from(to_restore.irqbalance);
    let already = to_restore.unchanged;
    page.line(format!(
        "{} would be restored; {already} already as recorded.",
        count(all, "setting")
    ));
    let channels = to_restore.channels.iter();
    let channels = channels
        .map(|(interface, channels)| vec![format!("channels of {interface}"), channels.clone()]);
    let writes = to_restore.writes.iter().map(|write| {
        let change = format!("{} -> {}", write.current.trim(), write.value);
        vec![shown(&write.path).into_owned(), change]
    });
    page.table(2, channels.chain(writes));
    if to_restore.irqbalance {
        page.line("  what irqbalance was asked to do");
    }
    page.add(absent(&to_restore.absent, "kept for the next restore"));
    page
}

/// Settings whose files are absent now, a line for each port.
fn absent(keys: &BTreeSet<String>, then: &str) -> Page {
    let mut ports: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for key in keys {
        // `0000:41:00.0 port 0 rx-3 rps_cpus`
        let end = key.match_indices(' ').nth(2);
        let (port, setting) = end.map_or((key.as_str(), ""), |(at, _)| key.split_at(at));
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

fn all_undone(all: &Restored) -> Page {
    let why = ", because not every setting could be written";
    undone(all, why, "nicpin restore tries again")
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
    for ChannelOutcome {
        interface,
        wanted,
        refused,
    } in outcomes
    {
        match refused {
            None => page.line(format!("  {interface}  channels set to {wanted}")),
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
    let text = match outcome.done {
        IrqbalanceAction::Banned if outcome.changed => format!("{irqs} banned"),
        IrqbalanceAction::Banned => format!("{irqs} already banned"),
        IrqbalanceAction::Stopped => "stopped".to_owned(),
        IrqbalanceAction::Unbanned if outcome.changed => format!("{irqs} no longer banned"),
        IrqbalanceAction::Unbanned => return page,
        IrqbalanceAction::Started => "started again".to_owned(),
        IrqbalanceAction::NotRequested => format!("not asked: {detail}"),
        IrqbalanceAction::Refused => {
            page.item("refused   ", format!("irqbalance: {detail}"));
            return page;
        }
    };
    page.item("  irqbalance  ", text);
    page
}

/// The settings that were written, by interface and kind.
fn written(results: &[WriteResult], all: bool) -> Page {
    let mut page = Page::default();
    if all {
        let changed = results.iter().filter(|result| result.changed());
        page.table(
            2,
            changed.map(|one| {
                let now = one.fallback.as_ref().unwrap_or(&one.value);
                let was = one.was.as_deref().unwrap_or("unknown");
                vec![shown(&one.path).into_owned(), format!("{was} -> {now}")]
            }),
        );
        return page;
    }
    let mut changed: BTreeMap<&str, BTreeMap<WriteKind, usize>> = BTreeMap::new();
    for result in results.iter().filter(|result| result.changed()) {
        *changed
            .entry(&result.interface)
            .or_default()
            .entry(result.kind)
            .or_default() += 1;
    }
    let rows = changed
        .iter()
        .map(|(name, counts)| vec![machine_or(name).to_owned(), kinds(counts, false)]);
    page.table(2, rows);
    page
}

/// Failed writes with their reasons, and fallbacks.
fn results(results: &[WriteResult]) -> Page {
    let mut page = failures(results);
    for result in results {
        if let (Some(_), Some(detail)) = (&result.fallback, &result.detail) {
            page.item("fallback  ", format!("{}: {detail}", result.path));
        }
    }
    page
}

/// Failed writes, one message for those with the same outcome and detail: thousands of files may have the same one.
fn failures<'a>(results: impl IntoIterator<Item = &'a WriteResult>) -> Page {
    let mut groups: Vec<((Outcome, &str), Vec<&WriteResult>)> = Vec::new();
    let mut places: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for result in results {
        if result.changed() || result.outcome == Outcome::Already {
            continue;
        }
        let detail = result.detail.as_deref().unwrap_or_default();
        let at = *places
            .entry((format!("{:?}", result.outcome), detail))
            .or_insert(groups.len());
        if at == groups.len() {
            groups.push(((result.outcome, detail), Vec::new()));
        }
        groups[at].1.push(result);
    }
    let mut page = Page::default();
    for ((outcome, detail), group) in groups {
        let what = match group[..] {
            [WriteResult { path, value, .. }] => format!("{} <- {value}", shown(path)),
            ref group => files(group.iter().map(|result| result.path.as_str())),
        };
        let outcome = format!("{outcome:?}").to_lowercase();
        page.item(format!("{outcome:<10}"), format!("{what}: {detail}"));
    }
    page
}

/// Files in short: `IRQs 71-76; eth2 xps_cpus of tx 0-5`.
fn files<'a>(paths: impl Iterator<Item = &'a str>) -> String {
    let numbered = |path: &'a str| {
        if let Some(rest) = path.strip_prefix("/proc/irq/") {
            return Some((
                "IRQs".to_owned(),
                rest.strip_suffix("/smp_affinity")?.parse().ok()?,
            ));
        }
        if let Some(pid) = thread_of(path) {
            return Some(("affinity of threads".to_owned(), pid));
        }
        let (interface, queue) = path
            .strip_prefix("/sys/class/net/")?
            .split_once("/queues/")?;
        let (queue, file) = queue.split_once('/')?;
        let (direction, number) = queue.split_once('-')?;
        Some((
            format!("{interface} {file} of {direction}"),
            number.parse::<u32>().ok()?,
        ))
    };
    let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
    for path in paths {
        let (name, number) = numbered(path)
            .map_or((shown(path).into_owned(), None), |(name, number)| {
                (name, Some(number))
            });
        match groups.iter_mut().rev().find(|(other, _)| *other == name) {
            Some((_, numbers)) => numbers.extend(number),
            None => groups.push((name, number.into_iter().collect())),
        }
    }
    let mut words = groups
        .iter()
        .map(|(name, numbers)| format!("{name} {}", ranges(numbers)).trim_end().to_owned());
    words.join("; ")
}
