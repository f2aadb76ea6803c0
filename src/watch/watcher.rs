//! The watcher: waits for events, and starts a run when one is due.

use std::env::args_os;
use std::ffi::OsString;
use std::io;
use std::mem::replace;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use nix::sys::signal::Signal::{SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGUSR1};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::getpid;
use serde_json::json;

use crate::screen;
use crate::start::seconds_since_1970 as wall;
use crate::watch::child::Child;
use crate::watch::decisions::Decisions;
use crate::watch::event::Event;
use crate::watch::event::EventKind::{self, Released, Request, Start};
use crate::watch::journal::Priority::{Info, Notice, Warning};
use crate::watch::journal::{self, Manager};
use crate::watch::sources::Sources;
use crate::watch::state;
use nicpin::apply::Lock;
use nicpin::policy::Policy;
use nicpin::report::watcher::{WaitsFor, Watcher, WatcherRun};
use nicpin::root::{Root, sys};

/// A run is ended after this time; it is first asked to stop before its next write.
const LONGEST_RUN: Duration = Duration::from_secs(300);
const GRACE: Duration = Duration::from_secs(10);
/// Between looks at a trial or a pause whose end the watcher waits for.
const LOOK_AGAIN: Duration = Duration::from_secs(300);

pub struct Watch<'a> {
    pub root: &'a Root,
    pub policy_path: String,
    /// The policy, if it is valid on this machine, and the text of its file.
    pub read_policy: &'a dyn Fn() -> Result<(Policy, Option<String>)>,
    pub observe: bool,
    /// A write of a planned affinity by another program is an event.
    pub guard: bool,
    pub metrics: bool,
    pub verbose: bool,
}

/// Watches until a signal ends it. Returns the error of a first run that later ones would have, too: the command line
/// requests what this machine does not have.
pub fn watch(options: Watch<'_>) -> Result<Option<String>> {
    let Watch { root, observe, .. } = options;
    let lock = match state::lock(root) {
        Ok(lock) => Some(lock),
        // An observer needs no privilege; without this file `nicpin status` does not show it.
        Err(error) if observe => {
            let text = format!("{error}; nicpin status will not show this");
            journal::log(root, Info, &text, &[]);
            None
        }
        Err(error) => return Err(error),
    };
    let (policy, text) = (options.read_policy)()?;
    let sources = Sources::open(root, &options.policy_path).context("cannot wait for events")?;
    let pid = getpid().as_raw();
    let state = Watcher {
        pid,
        started: state::start_of(pid).unwrap_or_default(),
        since: wall(),
        observe,
        // The partitions of the machine may decide, because each change of them leads to a run.
        avoids_exclusive: !policy.decides_on_exclusive(),
        ..Watcher::default()
    };
    let watching = Loop {
        root,
        lock,
        policy: ValidPolicy {
            text,
            policy,
            copy: None,
            error: None,
        },
        sources,
        manager: Manager::find(),
        decisions: Decisions::new(Duration::ZERO),
        start: Instant::now(),
        run: None,
        metrics: None,
        spent: Duration::ZERO,
        interfaces: 0,
        state,
        look_again: Duration::ZERO,
        has_slept: true,
        options,
    };
    for missing in &watching.sources.missing {
        watching.warn(&format!(
            "cannot wait for {missing}; the check every 5 minutes is left"
        ));
    }
    watching.work()
}

/// Stays in force while the policy file is invalid.
struct ValidPolicy {
    text: Option<String>,
    policy: Policy,
    copy: Option<PathBuf>,
    error: Option<String>,
}

pub(super) struct Loop<'a> {
    pub(super) options: Watch<'a>,
    pub(super) root: &'a Root,
    /// Without the lock, the state is not saved for `nicpin status`.
    lock: Option<Lock>,
    policy: ValidPolicy,
    pub(super) sources: Sources,
    manager: Manager,
    pub(super) decisions: Decisions,
    start: Instant,
    run: Option<Run>,
    pub(super) metrics: Option<Child>,
    pub(super) spent: Duration,
    pub(super) interfaces: usize,
    pub(super) state: Watcher,
    look_again: Duration,
    has_slept: bool,
}

struct Run {
    child: Child,
    began: Duration,
    shown: WatcherRun,
    limit: (Duration, Signal),
}

impl Loop<'_> {
    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(super) fn warn(&self, text: &str) {
        journal::log(self.root, Warning, text, &[]);
    }

    fn work(mut self) -> Result<Option<String>> {
        self.take_event(Event::of_machine(Start));
        self.state.waits_for = state::why_blocked(self.root);
        self.show();
        loop {
            self.begin_if_due();
            let time = self.time_to_sleep();
            let children = self.run.iter().map(|run| &run.child).chain(&self.metrics);
            let streams: Vec<BorrowedFd<'_>> = children.flat_map(Child::streams).collect();
            if streams.is_empty() && !replace(&mut self.has_slept, true) {
                sys::unmap_program();
            }
            let woken = self.sources.wait(self.root, time, &streams)?;
            let run = self.run.iter_mut().map(|run| &mut run.child);
            for child in run.chain(&mut self.metrics) {
                child.read()?;
            }
            for event in woken.events {
                self.take_event(event);
            }
            if woken.state {
                self.look_at_state();
            }
            for signal in woken.signals {
                match signal {
                    SIGHUP => {
                        let now = clock_gettime(ClockId::CLOCK_MONOTONIC)
                            .map(Duration::from)
                            .unwrap_or_default()
                            .as_micros();
                        self.manager
                            .send(&format!("RELOADING=1\nMONOTONIC_USEC={now}"));
                        self.take_event(Event::of_machine(EventKind::Policy));
                        self.refresh_policy();
                        self.show();
                    }
                    SIGUSR1 => {
                        self.decisions.schedule.at_once = true;
                        self.take_event(Event::of_machine(Request));
                    }
                    SIGTERM | SIGINT => {
                        self.end()?;
                        return Ok(None);
                    }
                    _ => {
                        if let Some(error) = self.reap() {
                            self.end()?;
                            return Ok(Some(error));
                        }
                    }
                }
            }
            let now = self.now();
            if let Some(run) = self.run.as_mut().filter(|run| now >= run.limit.0) {
                run.child.signal(run.limit.1);
                run.limit = (now + GRACE, SIGKILL);
            }
            self.manager.alive(now);
        }
    }

    fn take_event(&mut self, event: Event) {
        self.decisions.take_event(event, self.start.elapsed());
    }

    fn refresh_policy(&mut self) {
        let (last, path) = (&mut self.policy, &self.options.policy_path);
        let report = |priority, text: &str| {
            let fields = [("NICPIN_POLICY", path.as_str())];
            journal::log(self.root, priority, text, &fields);
        };
        match (self.options.read_policy)() {
            Ok((policy, text)) => {
                if text != last.text || last.error.is_some() {
                    report(Notice, &format!("{path}: the policy is in force"));
                }
                (last.text, last.policy) = (text, policy);
                (last.copy, last.error) = (None, None);
            }
            Err(error) => {
                let error = format!("{error:#}");
                if last.error.as_ref() != Some(&error) {
                    report(
                        Warning,
                        &format!("{error}; the policy before stays in force"),
                    );
                    last.error = Some(error);
                }
                if last.copy.is_none() {
                    // Without the copy a run fails on the file, and reports it.
                    last.copy =
                        state::keep_policy(self.root, last.text.as_deref().unwrap_or_default())
                            .ok();
                }
            }
        }
    }

    fn begin_if_due(&mut self) {
        let now = self.now();
        let due = self.decisions.schedule.due();
        if self.run.is_some() || now < due || now < self.look_again {
            return;
        }
        if let Some(why) = state::why_blocked(self.root) {
            self.wait_for(why);
            self.look_again = now + LOOK_AGAIN;
            return;
        }
        let Some(events) = self.decisions.begin(now) else {
            return;
        };
        self.refresh_policy();
        self.state.avoids_exclusive = !self.policy.policy.decides_on_exclusive();
        let programs = self.policy.policy.programs();
        if let Err(error) = self.sources.files.near(self.root, programs) {
            self.warn(&format!(
                "cannot wait for changes of programs' CPUs: {error}"
            ));
        }
        let leave = self.decisions.contended.unrestored_settings(now);
        let leave = leave.flat_map(|(left, _)| ["--leave".to_owned(), json!(left).to_string()]);
        let started = self.child(leave);
        let shown = WatcherRun {
            at: wall(),
            event: events.cause(),
            events: events.count,
            ..WatcherRun::default()
        };
        match started {
            Ok(child) => {
                self.run = Some(Run {
                    child,
                    began: now,
                    shown,
                    limit: (now + LONGEST_RUN, SIGTERM),
                });
            }
            Err(error) => {
                let error = format!("the run cannot be started: {error}");
                self.finish_run(shown, Err(error));
            }
        }
    }

    /// Passes the command line of this process on, after arguments for the run alone.
    pub(super) fn child(&self, own: impl IntoIterator<Item = String>) -> io::Result<Child> {
        let mut arguments: Vec<OsString> = vec!["watch-run".into()];
        arguments.extend(own.into_iter().map(Into::into));
        if self.state.avoids_exclusive {
            arguments.push("--avoid-exclusive".into());
        }
        if let Some(copy) = &self.policy.copy {
            arguments.extend(["--config".into(), copy.into()]);
        }
        arguments.push("--".into());
        arguments.extend(args_os().skip(1));
        Child::start(&arguments)
    }

    fn time_to_sleep(&self) -> Duration {
        let next = match &self.run {
            Some(run) => run.limit.0,
            None => self.decisions.schedule.due().max(self.look_again),
        };
        next.min(self.manager.alive_at()).saturating_sub(self.now())
    }

    /// Reaps an ended run, and the process that writes metrics. The error is that of [`watch`].
    fn reap(&mut self) -> Option<String> {
        let metrics = self.metrics.take_if(Child::has_ended);
        if let Some(error) = metrics.and_then(|mut metrics| metrics.error()) {
            self.warn(&format!("--metrics: {error}"));
        }
        if let Some(mut run) = self.run.take_if(|run| run.child.has_ended()) {
            run.shown.milliseconds =
                u64::try_from(self.now().saturating_sub(run.began).as_millis()).unwrap_or(u64::MAX);
            let is_refused = self.state.count == 0 && run.child.is_refused();
            let report = run.child.report();
            if is_refused {
                return report.err();
            }
            self.finish_run(run.shown, report);
            self.has_slept = false;
        }
        None
    }

    pub(super) fn wait_for(&mut self, why: WaitsFor) {
        if self.state.waits_for.replace(why) != Some(why) {
            journal::log(self.root, Notice, screen::watcher::waits_for(why), &[]);
            self.show();
        }
    }

    fn look_at_state(&mut self) {
        self.look_again = Duration::ZERO;
        match (state::why_blocked(self.root), self.state.waits_for) {
            (Some(why), _) if self.run.is_none() => self.wait_for(why),
            (None, Some(_)) => {
                self.state.waits_for = None;
                self.take_event(Event::of_machine(Released));
                self.show();
            }
            _ => {}
        }
    }

    pub(super) fn show(&self) {
        if self.lock.is_some() {
            // `status` shows less without it; nothing else depends on it.
            let _ = state::WATCHER.save(self.root, &self.state);
        }
        let check_at = self.decisions.schedule.check_at;
        let next = check_at.saturating_sub(self.now());
        let next = wall() + next.as_secs();
        let line = screen::watcher::line(&self.state, self.interfaces, next);
        self.manager.send(&format!("READY=1\nSTATUS={line}"));
    }

    /// Ends without restoring. A run stops before its next write.
    fn end(self) -> Result<()> {
        self.manager.send("STOPPING=1");
        if let Some(run) = self.run {
            run.child.signal(if self.options.observe {
                SIGKILL
            } else {
                SIGTERM
            });
            run.child.wait(GRACE)?;
        }
        if self.lock.is_some() {
            let _ = state::WATCHER.remove(self.root);
        }
        Ok(())
    }
}
