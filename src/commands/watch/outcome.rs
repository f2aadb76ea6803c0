//! What follows from the result of a run: messages, settings that are left unchanged, and events that it has caused itself.

use crate::commands::journal::{self, Priority};
use crate::commands::watch::{LAST_RUNS, Loop, spent, wall};
use crate::screen;
use crate::watch::{Ended, Events, Kind, RunReport};
use nicpin::machine::setting::{affinity_file, shown};
use nicpin::report::run::{ChangedSetting, LeftAlone, WaitsFor, WatcherRun};
use std::collections::BTreeSet;
use std::time::Duration;

impl Loop<'_> {
    /// Decides about the events during a run. Those that it may have caused itself are followed by one run at once;
    /// `true` if these came during that one: then it is tried again like a run that failed, less and less often.
    pub(super) fn after(
        &mut self,
        during: Events,
        report: Option<&RunReport>,
        follows_up: bool,
    ) -> bool {
        let moved = self.sources.files.moved(self.root);
        let mut during = during.without(Kind::Affinity);
        if let Some(event) = moved {
            during.add(event);
        }
        let is_own = report.is_some_and(|of| during.may_be_own(of.channels, of.irqbalance));
        if during.is_empty() {
            return false;
        }
        self.follows_up = is_own;
        if !(is_own && follows_up) {
            self.schedule.event(self.start.elapsed());
            self.events = during;
        }
        is_own && follows_up
    }

    /// Keeps and reports the result of a run.
    pub(super) fn finished(
        &mut self,
        mut run: WatcherRun,
        report: Result<RunReport, String>,
        events: &Events,
        again: bool,
    ) {
        let now = self.now();
        let spent = spent();
        let cost = spent.saturating_sub(std::mem::replace(&mut self.spent, spent));
        match report {
            Ok(report) if report.paused => {
                self.wait_for(WaitsFor::Apply);
                self.schedule.end(now, cost, again);
                return;
            }
            Ok(report) => {
                (run.changed, run.failed) = (report.changed, report.failed);
                run.failure = report.failures.first().cloned();
                self.interfaces = report.interfaces;
                self.schedule.end(now, cost, again || report.failed > 0);
                self.log_run(&run, &report);
                self.state.restores +=
                    u64::from(run.changed > 0 && events.are_of_old_plan() && !self.args.observe);
                self.fight(events.are_of_old_plan(), &report, now);
                self.guard(&report, now);
            }
            Err(error) => {
                self.schedule.end(now, cost, true);
                let text = format!("{}: the run failed: {error}", events.cause());
                journal::log(
                    self.root,
                    Priority::Warning,
                    &text,
                    &[("NICPIN_EVENT", &events.cause())],
                );
                run.error = Some(error);
            }
        }
        self.state.waits_for = None;
        self.state.count += 1;
        self.state.runs.insert(0, run);
        self.state.runs.truncate(LAST_RUNS);
        self.show();
        self.begin_metrics();
    }

    fn log_run(&self, run: &WatcherRun, report: &RunReport) {
        let observe = self.args.observe;
        let cause = screen::status::cause(run);
        let mut text = format!("{cause}: {}", screen::status::result(run, observe));
        if observe && run.changed > 0 {
            text.push_str("; nicpin apply would change them");
        }
        for why in &report.failures {
            text.push_str("; ");
            text.push_str(why);
        }
        let mut interfaces: Vec<&str> = report
            .written
            .iter()
            .map(|(setting, _)| setting.interface.as_str())
            .collect();
        interfaces.dedup();
        let fields = [
            ("NICPIN_EVENT", run.event.as_str()),
            ("NICPIN_EVENTS", &run.events.to_string()),
            ("NICPIN_INTERFACES", &interfaces.join(" ")),
            ("NICPIN_CHANGED", &run.changed.to_string()),
            ("NICPIN_FAILED", &run.failed.to_string()),
            ("NICPIN_MILLISECONDS", &run.milliseconds.to_string()),
        ];
        let priority = match (run.failed, run.changed) {
            (0, 0) if !self.cli.verbose => return,
            (0, 0) => Priority::Info,
            (0, _) => Priority::Notice,
            _ => Priority::Warning,
        };
        journal::log(self.root, priority, &text, &fields);
    }

    /// Notes which settings were restored, and leaves those alone that another program writes again and again.
    fn fight(&mut self, is_old_plan: bool, report: &RunReport, now: Duration) {
        self.contended.forget(now);
        for (setting, value) in report.written.iter().filter(|_| is_old_plan) {
            let Some(lasts) = self.contended.written(setting, value, now) else {
                continue;
            };
            let hours = lasts.as_secs() / 3600;
            let who = match &report.writers[..] {
                [] => "no known program that moves interrupts runs".to_owned(),
                writers => format!("perhaps {}", writers.join(" or ")),
            };
            let text = format!(
                "{} of {} was restored 3 times in 10 minutes: another program writes it ({who}); it is not restored for {hours} h",
                shown(&setting.path),
                setting.interface
            );
            let fields = [
                ("NICPIN_SETTING", setting.name.as_str()),
                ("NICPIN_PATH", &setting.path),
                ("NICPIN_INTERFACES", &setting.interface),
                ("NICPIN_WRITERS", &report.writers.join(", ")),
            ];
            journal::log(self.root, Priority::Warning, &text, &fields);
        }
        let wall = wall();
        let left = |(setting, until): (&ChangedSetting, Duration)| LeftAlone {
            setting: setting.clone(),
            until: wall + until.saturating_sub(now).as_secs(),
        };
        self.state.left_alone = self.contended.left_alone(now).map(left).collect();
        self.state.contended = self.contended.count;
    }

    /// Watches the planned vectors that are not left unchanged.
    fn guard(&mut self, report: &RunReport, now: Duration) {
        if !self.args.guard {
            return;
        }
        let left = self.contended.left_alone(now);
        let left: BTreeSet<&str> = left.map(|(setting, _)| setting.path.as_str()).collect();
        let mut vectors = report.vectors.clone();
        vectors.retain(|(irq, _)| !left.contains(affinity_file(*irq).as_str()));
        if let Err(error) = self.sources.files.guard(self.root, &vectors) {
            let text = format!("--guard: cannot wait for changes of affinity: {error}");
            journal::log(self.root, Priority::Warning, &text, &[]);
        }
    }

    /// Starts the process that writes `--metrics`. One that still runs writes almost the same.
    fn begin_metrics(&mut self) {
        if self.args.metrics.is_none() || self.metrics.is_some() {
            return;
        }
        match self.child(vec!["--metrics".into()]) {
            Ok(child) => self.metrics = Some(child),
            Err(error) => self.metrics_failed(&error.to_string()),
        }
    }

    pub(super) fn metrics_written(&self, ended: &Ended) {
        if let Some(error) = ended.error() {
            self.metrics_failed(&error);
        }
    }

    fn metrics_failed(&self, error: &str) {
        let text = format!("--metrics: {error}");
        journal::log(self.root, Priority::Warning, &text, &[]);
    }
}
