//! What follows from the result of a run: messages, settings that are left unchanged, and events that it has caused itself.

use std::collections::BTreeSet;
use std::mem::replace;
use std::time::Duration;

use itertools::Itertools as _;

use crate::commands::journal;
use crate::commands::journal::Priority::{Info, Notice, Warning};
use crate::commands::sampling::{children_cpu, seconds_since_1970};
use crate::commands::watch::Loop;
use crate::screen;
use crate::watch::{Events, RunReport};
use nicpin::machine::setting::{affinity_file, shown};
use nicpin::report::run::{LeftAlone, WaitsFor, WatcherRun};

/// Runs that `nicpin status` shows.
const LAST_RUNS: usize = 5;

impl Loop<'_> {
    /// Decides about the events during a run. Those that it may have caused itself are followed by one run at once;
    /// `true` if these came during that one: then it is tried again like a run that failed, less and less often.
    pub fn after(
        &mut self,
        mut during: Events,
        report: Option<&RunReport>,
        follows_up: bool,
    ) -> bool {
        if let Some(event) = self.sources.files.moved(self.root) {
            during.extend(event);
        }
        if during.is_empty() {
            return false;
        }
        self.follows_up = report.is_some_and(|of| during.may_be_own(of.channels, of.irqbalance));
        let again = self.follows_up && follows_up;
        if !again {
            self.schedule.add(during, self.start.elapsed());
        }
        again
    }

    /// Keeps and reports the result of a run.
    pub fn finished(
        &mut self,
        mut run: WatcherRun,
        report: Result<RunReport, String>,
        is_of_old_plan: bool,
        again: bool,
    ) {
        let now = self.now();
        let spent = children_cpu().unwrap_or_default();
        let cost = spent.saturating_sub(replace(&mut self.spent, spent));
        let failed = report.as_ref().map_or(true, |report| report.failed > 0);
        self.schedule.end(now, cost, again || failed);
        match report {
            Ok(report) if report.paused => return self.wait_for(WaitsFor::Apply),
            Ok(report) => {
                (run.changed, run.failed) = (report.changed, report.failed);
                run.failure = report.failures.first().cloned();
                self.interfaces = report.interfaces;
                self.log_run(&run, &report);
                let is_restore = run.changed > 0 && is_of_old_plan && !self.args.observe;
                self.state.restores += u64::from(is_restore);
                self.fight(is_of_old_plan, &report, now);
                self.guard(&report, now);
            }
            Err(error) => {
                let text = format!("{}: the run failed: {error}", run.event);
                let fields = [("NICPIN_EVENT", run.event.as_str())];
                journal::log(self.root, Warning, &text, &fields);
                run.error = Some(error);
            }
        }
        self.state.waits_for = None;
        self.state.count += 1;
        self.state.runs.insert(0, run);
        self.state.runs.truncate(LAST_RUNS);
        self.show();
        // One that still writes metrics writes almost the same.
        if self.args.metrics.is_some() && self.metrics.is_none() {
            match self.child(["--metrics"]) {
                Ok(child) => self.metrics = Some(child),
                Err(error) => self.warn(&format!("--metrics: {error}")),
            }
        }
    }

    fn log_run(&self, run: &WatcherRun, report: &RunReport) {
        let priority = match (run.failed, run.changed) {
            (0, 0) if !self.cli.verbose => return,
            (0, 0) => Info,
            (0, _) => Notice,
            _ => Warning,
        };
        let observe = self.args.observe;
        let cause = screen::status::cause(run);
        let mut text = format!("{cause}: {}", screen::status::result(run, observe));
        if observe && run.changed > 0 {
            text += "; nicpin apply would change them";
        }
        for why in &report.failures {
            text += &format!("; {why}");
        }
        let mut interfaces = report
            .written
            .iter()
            .map(|(setting, _)| &setting.interface)
            .dedup();
        let fields = [
            ("NICPIN_EVENT", run.event.as_str()),
            ("NICPIN_EVENTS", &run.events.to_string()),
            ("NICPIN_INTERFACES", &interfaces.join(" ")),
            ("NICPIN_CHANGED", &run.changed.to_string()),
            ("NICPIN_FAILED", &run.failed.to_string()),
            ("NICPIN_MILLISECONDS", &run.milliseconds.to_string()),
        ];
        journal::log(self.root, priority, &text, &fields);
    }

    /// Notes which settings were restored, and leaves those alone that another program writes again and again.
    fn fight(&mut self, is_of_old_plan: bool, report: &RunReport, now: Duration) {
        self.contended.forget(now);
        for (setting, value) in report.written.iter().filter(|_| is_of_old_plan) {
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
            journal::log(self.root, Warning, &text, &fields);
        }
        let wall = seconds_since_1970();
        self.state.left_alone = self
            .contended
            .left_alone(now)
            .map(|(setting, until)| LeftAlone {
                setting: setting.clone(),
                until: wall + until.saturating_sub(now).as_secs(),
            })
            .collect();
        self.state.contended = self.contended.count;
    }

    /// Watches the planned vectors that are not left unchanged.
    fn guard(&mut self, report: &RunReport, now: Duration) {
        if !self.args.guard {
            return;
        }
        let left: BTreeSet<&str> = self
            .contended
            .left_alone(now)
            .map(|(setting, _)| setting.path.as_str())
            .collect();
        let mut vectors = report.vectors.clone();
        vectors.retain(|(irq, _)| !left.contains(affinity_file(*irq).as_str()));
        if let Err(error) = self.sources.files.guard(self.root, &vectors) {
            self.warn(&format!(
                "--guard: cannot wait for changes of affinity: {error}"
            ));
        }
    }
}
