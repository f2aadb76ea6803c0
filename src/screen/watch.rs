//! The watcher's state in words.

use std::time::{Duration, UNIX_EPOCH};

use crate::screen::page::Page;
use crate::screen::text::count;
use nicpin::machine::setting::shown;
use nicpin::report::run::{WaitsFor, Watcher, WatcherRun};

/// The lines of `nicpin status`.
pub(super) fn watcher(watcher: &Watcher) -> Page {
    let mut page = Page::default();
    let what = if watcher.observe { "observes" } else { "runs" };
    let since = time(watcher.since);
    let waits = watcher
        .waits_for
        .map(|why| format!("; {}", waits_for(why)))
        .unwrap_or_default();
    let runs = count(usize::try_from(watcher.count).unwrap_or(usize::MAX), "run");
    let text = format!(
        "{what} since {since} (process {}), {runs}{waits}",
        watcher.pid
    );
    page.item("watcher     ", text);
    let rows = watcher.runs.iter().map(|run| {
        vec![
            time(run.at),
            cause(run),
            result_and_reason(run, watcher.observe),
        ]
    });
    page.table(12, rows);
    if !watcher.left_alone.is_empty() {
        let settings = count(watcher.left_alone.len(), "setting");
        let until = watcher
            .left_alone
            .iter()
            .map(|left| left.until)
            .max()
            .unwrap_or_default();
        let names: Vec<_> = watcher
            .left_alone
            .iter()
            .take(3)
            .map(|left| shown(&left.setting.path))
            .collect();
        let text = format!(
            "{settings} not restored until {} at the latest, because another program writes them again and again: {}",
            time(until),
            names.join(", ")
        );
        page.item("            ", text);
    }
    page
}

/// The line that systemd shows (`STATUS=`). `next`: the time of the next check, in seconds since 1970.
pub fn line(watcher: &Watcher, interfaces: usize, next: u64) -> String {
    let Some(run) = watcher.runs.first() else {
        return "starting".to_owned();
    };
    let state = match (watcher.waits_for, run) {
        (Some(why), _) => waits_for(why).to_owned(),
        (None, WatcherRun { error: Some(_), .. }) => "the last run failed".to_owned(),
        (
            None,
            WatcherRun {
                failed: 0, changed, ..
            },
        ) if !watcher.observe || *changed == 0 => "as planned".to_owned(),
        (
            None,
            WatcherRun {
                failed: 0, changed, ..
            },
        ) => {
            format!("{} not as planned", count(*changed, "setting"))
        }
        (None, WatcherRun { failed, .. }) => format!("{} failed", count(*failed, "change")),
    };
    let interfaces = count(interfaces, "interface");
    let last = format!(
        "last run {} ({}): {}",
        time(run.at),
        cause(run),
        result_and_reason(run, watcher.observe)
    );
    format!("{interfaces}, {state}; {last}; next check {}", time(next))
}

/// Why nothing is written.
pub fn waits_for(why: WaitsFor) -> &'static str {
    match why {
        WaitsFor::Apply => "paused by nicpin restore until the next nicpin apply",
        WaitsFor::Trial => "waits until apply --try is confirmed or has ended",
    }
}

/// The events of a run.
pub fn cause(run: &WatcherRun) -> String {
    match run.events {
        0 | 1 => run.event.clone(),
        events => format!("{} and {} more", run.event, events - 1),
    }
}

/// What a run did, and the first reason if something failed.
fn result_and_reason(run: &WatcherRun, observe: bool) -> String {
    let why = run
        .failure
        .as_ref()
        .map(|why| format!(": {why}"))
        .unwrap_or_default();
    result(run, observe) + &why
}

/// What a run did.
pub fn result(run: &WatcherRun, observe: bool) -> String {
    if let Some(error) = &run.error {
        return format!("failed: {error}");
    }
    let what = if observe { "not as planned" } else { "changed" };
    let changed = match run.changed {
        0 if observe => "as planned".to_owned(),
        0 => "nothing changed".to_owned(),
        changed => format!("{} {what}", count(changed, "setting")),
    };
    let failed = match run.failed {
        0 => String::new(),
        failed if observe => format!(", {failed} could not be determined"),
        failed => format!(", {failed} failed"),
    };
    format!("{changed}{failed}")
}

/// A time in UTC: `2026-11-22T13:20:00Z`.
fn time(seconds: u64) -> String {
    let time = UNIX_EPOCH
        .checked_add(Duration::from_secs(seconds))
        .unwrap_or(UNIX_EPOCH);
    humantime::format_rfc3339_seconds(time).to_string()
}
