//! The consequences of a run's result: messages, the state for `nicpin status`, and the vectors to watch.

use std::collections::BTreeSet;
use std::mem::replace;
use std::time::Duration;

use itertools::Itertools as _;

use crate::screen;
use crate::start::{children_cpu, seconds_since_1970};
use crate::watch::contended::{AT_ONCE, FIRST_WAIT, LONGEST_WAIT};
use crate::watch::journal;
use crate::watch::journal::Priority::{Info, Notice, Warning};
use crate::watch::report::{RestoredSetting, RunReport};
use crate::watch::watcher::Loop;
use nicpin::machine::files::affinity_file;
use nicpin::report::watcher::{WaitsFor, WatcherRun};

const LAST_RUNS: usize = 5;

impl Loop<'_> {
    pub fn finish_run(&mut self, mut run: WatcherRun, report: Result<RunReport, String>) {
        let now = self.now();
        let spent = children_cpu().unwrap_or_default();
        let cost = spent.saturating_sub(replace(&mut self.spent, spent));
        let moved = self.sources.files.moved_vectors(self.root);
        let ended = self
            .decisions
            .end_run(report.as_ref().ok(), moved, cost, now);
        match report {
            Ok(report) if report.paused => return self.wait_for(WaitsFor::Apply),
            Ok(report) => {
                (run.changed, run.failed) = (report.changed, report.failed);
                run.failure = report.failures.first().cloned();
                self.interfaces = report.interfaces;
                self.log_run(&run, &report);
                let is_restore = run.changed > 0 && ended.is_of_old_plan && !self.options.observe;
                self.state.restores += u64::from(is_restore);
                for (setting, wait) in &ended.contended {
                    self.log_contended(setting, *wait);
                }
                let contended = &self.decisions.contended;
                self.state.left_alone = contended.for_status(now, seconds_since_1970());
                self.state.contended = contended.count;
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
        // A process that still writes metrics writes almost the same.
        if self.options.metrics && self.metrics.is_none() {
            match self.child(["--metrics".to_owned()]) {
                Ok(child) => self.metrics = Some(child),
                Err(error) => self.warn(&format!("--metrics: {error}")),
            }
        }
    }

    fn log_run(&self, run: &WatcherRun, report: &RunReport) {
        let priority = match (run.failed, run.changed) {
            (0, 0) if !self.options.verbose => return,
            (0, 0) => Info,
            (0, _) => Notice,
            _ => Warning,
        };
        let observe = self.options.observe;
        let cause = screen::watcher::cause(run);
        let mut text = format!("{cause}: {}", screen::watcher::result(run, observe));
        if observe && run.changed > 0 {
            text += "; nicpin apply would change them";
        }
        for why in &report.failures {
            text += &format!("; {why}");
        }
        let mut interfaces = report
            .written
            .iter()
            .map(|written| &written.setting.interface)
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

    fn log_contended(&self, restored: &RestoredSetting, wait: Duration) {
        let (setting, writers) = (&restored.setting, &restored.writers);
        let who = match &writers[..] {
            [] => "no known program that writes it runs".to_owned(),
            writers => format!("perhaps {}", writers.join(" or ")),
        };
        let minutes = |time: Duration| time.as_secs() / 60;
        let (mut times, mut then) = ("again and again".to_owned(), String::new());
        if wait == FIRST_WAIT {
            times = format!("{AT_ONCE} times");
        }
        if wait < LONGEST_WAIT {
            let most = minutes(LONGEST_WAIT);
            then = format!(", then after twice as long each time, {most} min at most");
        }
        let text = format!(
            "{} of {} was restored {times}: another program writes it ({who}); from now on it is restored after {} \
             min{then}, and at once after an event about {}",
            setting.shown(),
            setting.interface,
            minutes(wait),
            setting.interface
        );
        let name = setting.name.to_string();
        let fields = [
            ("NICPIN_SETTING", name.as_str()),
            ("NICPIN_PATH", &setting.path),
            ("NICPIN_INTERFACES", &setting.interface),
            ("NICPIN_WRITERS", &writers.join(", ")),
        ];
        journal::log(self.root, Warning, &text, &fields);
    }

    fn guard(&mut self, report: &RunReport, now: Duration) {
        if !self.options.guard {
            return;
        }
        let left = self.decisions.contended.unrestored_settings(now);
        let left: BTreeSet<&str> = left.map(|(left, _)| &*left.setting.path).collect();
        let mut vectors = report.vectors.clone();
        vectors.retain(|(irq, _)| !left.contains(affinity_file(*irq).as_str()));
        if let Err(error) = self.sources.files.guard(self.root, &vectors) {
            self.warn(&format!(
                "--guard: cannot wait for changes of affinity: {error}"
            ));
        }
    }
}
