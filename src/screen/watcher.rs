//! The state and the runs of `nicpin watch` in words: for `status`, the journal and systemd.

use itertools::Itertools as _;

use crate::screen::page::{LEFT, Page};
use crate::screen::{count, enclose, text_if, time, with_prefix};
use nicpin::report::watcher::{WaitsFor, Watcher, WatcherRun};

pub(super) fn watcher(page: &mut Page, watcher: &Watcher) {
    let text = format!(
        "{} since {} (process {}), {}{}",
        if watcher.observe { "observes" } else { "runs" },
        time(watcher.since),
        watcher.pid,
        count(usize::try_from(watcher.count).unwrap_or(usize::MAX), "run"),
        with_prefix("; ", watcher.waits_for.map(waits_for))
    );
    page.item("watcher     ", text);
    let runs = watcher.runs.iter().map(|run| {
        let result = result_and_reason(run, watcher.observe);
        [time(run.at), cause(run), result]
    });
    page.table(12, LEFT, runs);
    let left = &watcher.left_alone;
    if let Some(until) = left.iter().map(|left| left.until).max() {
        let mut writers = left.iter().flat_map(|left| &left.writers).unique();
        let who = Some(writers.join(" or ")).filter(|writers| !writers.is_empty());
        let who = enclose(", perhaps ", who, ",");
        let text = format!(
            "{} not restored until {} at the latest, or an event about {}, because another program{who} writes them again \
             and again: {}",
            count(left.len(), "setting"),
            time(until),
            left.iter()
                .map(|left| &left.setting.interface)
                .unique()
                .join(", "),
            left.iter()
                .take(3)
                .map(|left| left.setting.shown())
                .join(", ")
        );
        page.item("            ", text);
    }
}

/// The line that systemd shows (`STATUS=`). `next`: the next check, in seconds since 1970.
pub fn line(watcher: &Watcher, interfaces: usize, next: u64) -> String {
    let Some(run) = watcher.runs.first() else {
        return watcher.waits_for.map_or("starting", waits_for).into();
    };
    let state = match (watcher.waits_for, run.failed) {
        (Some(why), _) => waits_for(why).to_owned(),
        _ if run.error.is_some() => "the last run failed".into(),
        (_, 0) if watcher.observe && run.changed > 0 => {
            count(run.changed, "setting") + " not as planned"
        }
        (_, 0) if !watcher.left_alone.is_empty() => {
            count(watcher.left_alone.len(), "setting") + " not restored"
        }
        (_, 0) => "as planned".into(),
        (_, failed) => count(failed, "change") + " failed",
    };
    format!(
        "{}, {state}; last run {} ({}): {}; next check {}",
        count(interfaces, "interface"),
        time(run.at),
        cause(run),
        result_and_reason(run, watcher.observe),
        time(next)
    )
}

pub fn waits_for(why: WaitsFor) -> &'static str {
    match why {
        WaitsFor::Apply => "paused by nicpin restore until the next nicpin apply",
        WaitsFor::Trial => "waits until apply --try is confirmed or has ended",
    }
}

pub fn cause(run: &WatcherRun) -> String {
    match run.events {
        0 | 1 => run.event.clone(),
        events => format!("{} and {} more", run.event, events - 1),
    }
}

fn result_and_reason(run: &WatcherRun, observe: bool) -> String {
    result(run, observe) + &with_prefix(": ", &run.failure)
}

pub fn result(run: &WatcherRun, observe: bool) -> String {
    if let Some(error) = &run.error {
        return format!("failed: {error}");
    }
    let [nothing, something, failed] = if observe {
        ["as planned", " not as planned", "could not be determined"]
    } else {
        ["nothing changed", " changed", "failed"]
    };
    let changed = match run.changed {
        0 => nothing.to_owned(),
        changed => count(changed, "setting") + something,
    };
    let failed = format!(", {} {failed}", run.failed);
    changed + text_if(run.failed > 0, &failed)
}
