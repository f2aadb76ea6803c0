//! `nicpin watch`: apply again after every event that undoes affinity.

use crate::commands::args::General;
use crate::commands::args::SelectArgs;
use crate::commands::help;
use crate::commands::inputs::open_to_write;
use crate::commands::journal::{self, Priority};
use crate::commands::policy::PolicyArgs;
use crate::commands::watch::policy::ValidPolicy;
use crate::screen;
use crate::watch::state::{self, Lock};
use crate::watch::{
    Child, ContendedSettings, Demand, Event, Events, Kind, Manager, Schedule, Sources,
};
use anyhow::{Context as _, Result};
use clap::Args;
use nicpin::report::exit::Exit;
use nicpin::report::run::{WaitsFor, Watcher, WatcherRun};
use nicpin::root::Root;
use nicpin::root::sys;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::Signal;
use nix::sys::time::{TimeVal, TimeValLike as _};
use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

mod outcome;
mod policy;

#[derive(Debug, Args)]
#[command(after_help = help::after("watch"))]
pub struct WatchArgs {
    #[command(flatten)]
    pub select: SelectArgs,

    /// Write no setting: report what apply would change
    #[arg(long)]
    pub observe: bool,

    /// Also run when another program writes the affinity of a planned vector
    #[arg(long, conflicts_with = "observe")]
    pub guard: bool,

    /// After each run, write metrics for Prometheus to this file, as `nicpin check --format prometheus --output`
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// A run that takes longer is ended: first it is asked to stop before its next write.
const LONGEST_RUN: Duration = Duration::from_secs(300);
const GRACE: Duration = Duration::from_secs(10);
/// While the watcher waits for the end of a trial or a pause, it looks again after this time.
const LOOK_AGAIN: Duration = Duration::from_secs(300);
/// Runs that `nicpin status` shows.
const LAST_RUNS: usize = 5;

pub(super) fn run(cli: &General, args: &WatchArgs) -> Result<Exit> {
    let root = open_to_write(cli)?;
    let lock = match Lock::take(&root) {
        Ok(lock) => Some(lock),
        // An observer needs no privilege; without this file `nicpin status` does not show it.
        Err(error) if args.observe => {
            journal::log(
                &root,
                Priority::Info,
                &format!("{error}; nicpin status will not show this"),
                &[],
            );
            None
        }
        Err(error) => return Err(error.into()),
    };
    let policy = ValidPolicy::read(cli, &args.policy, args.observe, &root)?;
    let sources = Sources::open(&root, &policy.path).context("cannot wait for events")?;
    for missing in &sources.missing {
        let text = format!("cannot wait for {missing}; the check every 5 minutes is left");
        journal::log(&root, Priority::Warning, &text, &[]);
    }
    let pid = i32::try_from(std::process::id()).unwrap_or_default();
    let watching = Loop {
        cli,
        args,
        root: &root,
        policy,
        sources,
        manager: Manager::find(),
        schedule: Schedule::new(Duration::ZERO),
        contended: ContendedSettings::default(),
        start: Instant::now(),
        alive: Duration::ZERO,
        events: Events::default(),
        follows_up: false,
        run: None,
        metrics: None,
        spent: Duration::ZERO,
        interfaces: 0,
        state: Watcher {
            pid,
            started: state::start_of(pid).unwrap_or_default(),
            since: wall(),
            observe: args.observe,
            ..Watcher::default()
        },
        is_shown: lock.is_some(),
        look_again: Duration::ZERO,
        has_slept: true,
    };
    watching.work()
}

/// The watcher.
struct Loop<'a> {
    cli: &'a General,
    args: &'a WatchArgs,
    root: &'a Root,
    policy: ValidPolicy<'a>,
    sources: Sources,
    manager: Manager,
    schedule: Schedule,
    contended: ContendedSettings,
    start: Instant,
    /// When systemd last got a message that this process is alive.
    alive: Duration,
    /// The events that the next run is for.
    events: Events,
    /// Whether an earlier run may have caused all of them.
    follows_up: bool,
    run: Option<Run>,
    /// The process that writes metrics.
    metrics: Option<Child>,
    /// The CPU time of all children that have ended.
    spent: Duration,
    /// Planned interfaces at the last run.
    interfaces: usize,
    state: Watcher,
    /// Whether the state is saved for `nicpin status`.
    is_shown: bool,
    /// While something is waited for: when to look again.
    look_again: Duration,
    /// Whether it has waited for events since the last run.
    has_slept: bool,
}

/// A run that has not ended.
struct Run {
    child: Child,
    began: Duration,
    at: u64,
    events: Events,
    /// The events since it began.
    during: Events,
    follows_up: bool,
    /// The signal that it was sent because it takes too long.
    signalled: Option<Signal>,
}

impl Loop<'_> {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn work(mut self) -> Result<Exit> {
        self.happened(Event::of(Kind::Start));
        self.state.waits_for = state::blocked(self.root);
        self.show();
        loop {
            self.begin_if_due();
            let time = self.time_to_sleep();
            let children = self.run.iter().map(|run| &run.child).chain(&self.metrics);
            let streams: Vec<BorrowedFd<'_>> = children.flat_map(Child::streams).collect();
            if streams.is_empty() && !std::mem::replace(&mut self.has_slept, true) {
                sys::unmap_program();
            }
            let woken = self.sources.wait(self.root, time, &streams)?;
            for child in self
                .run
                .iter_mut()
                .map(|run| &mut run.child)
                .chain(&mut self.metrics)
            {
                child.read()?;
            }
            for event in woken.events {
                self.happened(event);
            }
            if woken.state {
                self.look_at_state();
            }
            for signal in woken.signals {
                match signal {
                    Signal::SIGHUP => self.reload(),
                    Signal::SIGUSR1 => {
                        let now = self.now();
                        self.schedule.at_once(now);
                        self.happened(Event::of(Kind::Request));
                    }
                    Signal::SIGTERM | Signal::SIGINT => return self.end(),
                    _ => self.reap()?,
                }
            }
            self.limit_run();
            self.stay_alive();
        }
    }

    /// Takes note of an event. While a run lasts, it is decided at its end what to do about it.
    fn happened(&mut self, event: Event) {
        if let Some(interface) = event.explains() {
            self.contended.kernel_event(interface);
        }
        if let Some(run) = &mut self.run {
            run.during.add(event);
        } else {
            self.schedule.event(self.start.elapsed());
            self.follows_up = false;
            self.events.add(event);
        }
    }

    fn begin_if_due(&mut self) {
        let now = self.now();
        if self.run.is_some() || now < self.schedule.due() || now < self.look_again {
            return;
        }
        if let Some(why) = state::blocked(self.root) {
            self.wait_for(why);
            self.look_again = now + LOOK_AGAIN;
            return;
        }
        if let Some(demand) = self.schedule.begin(now) {
            self.begin(demand, now);
        }
    }

    fn begin(&mut self, demand: Demand, now: Duration) {
        match demand {
            Demand::Events => {}
            Demand::Periodic => self.events.add(Event::of(Kind::Periodic)),
            Demand::Retry => self.events.add(Event::of(Kind::Retry)),
        }
        self.policy.refresh(self.root);
        self.state.avoids_exclusive = self.policy.avoids_exclusive();
        let watched = self.sources.files.near(self.root, self.policy.programs());
        if let Err(error) = watched {
            let text = format!("cannot wait for changes of programs' CPUs: {error}");
            journal::log(self.root, Priority::Warning, &text, &[]);
        }
        let events = std::mem::take(&mut self.events);
        let follows_up = std::mem::take(&mut self.follows_up);
        let left_alone = self.contended.left_alone(now);
        let leave =
            left_alone.flat_map(|(setting, _)| ["--leave".into(), setting.name.clone().into()]);
        let started = self.child(leave.collect());
        match started {
            Ok(child) => {
                let (during, signalled, at) = (Events::default(), None, wall());
                self.run = Some(Run {
                    child,
                    began: now,
                    at,
                    events,
                    during,
                    follows_up,
                    signalled,
                });
            }
            Err(error) => {
                let run = WatcherRun {
                    at: wall(),
                    event: events.cause(),
                    events: events.count,
                    ..WatcherRun::default()
                };
                let error = format!("the run cannot be started: {error}");
                self.finished(run, Err(error), &events, false);
            }
        }
    }

    /// Starts a run: the command line of this process, and before it what is only for the run.
    fn child(&self, mut arguments: Vec<OsString>) -> io::Result<Child> {
        arguments.insert(0, "watch-run".into());
        if self.policy.avoids_exclusive() {
            arguments.push("--avoid-exclusive".into());
        }
        if let Some(copy) = self.policy.copy() {
            arguments.extend(["--config".into(), copy.into()]);
        }
        arguments.push("--".into());
        arguments.extend(std::env::args_os().skip(1));
        Child::start(&arguments)
    }

    fn time_to_sleep(&self) -> Duration {
        let now = self.now();
        let next = match &self.run {
            Some(run) => {
                run.began
                    + LONGEST_RUN
                    + if run.signalled.is_some() {
                        GRACE
                    } else {
                        Duration::ZERO
                    }
            }
            None => self.schedule.due().max(self.look_again),
        };
        let alive = self
            .manager
            .watchdog
            .map_or(Duration::MAX, |within| self.alive + within / 2);
        next.min(alive).saturating_sub(now)
    }

    /// Tells systemd that this process is alive. An idle watcher does so at its periodic check, not more often.
    fn stay_alive(&mut self) {
        let now = self.now();
        if self
            .manager
            .watchdog
            .is_some_and(|within| now >= self.alive + within / 4)
        {
            self.manager.alive();
            self.alive = now;
        }
    }

    fn limit_run(&mut self) {
        let now = self.now();
        let Some(run) = &mut self.run else { return };
        let signal = match run.signalled {
            None if now >= run.began + LONGEST_RUN => Signal::SIGTERM,
            Some(Signal::SIGTERM) if now >= run.began + LONGEST_RUN + GRACE => Signal::SIGKILL,
            _ => return,
        };
        run.child.signal(signal);
        run.signalled = Some(signal);
    }

    /// Ends the run whose process has ended.
    fn reap(&mut self) -> Result<()> {
        match self.metrics.take().map(Child::ended).transpose()? {
            Some(Err(child)) => self.metrics = Some(child),
            Some(Ok(ended)) => self.metrics_written(&ended),
            None => {}
        }
        let Some(run) = self.run.take() else {
            return Ok(());
        };
        match run.child.ended()? {
            Err(child) => self.run = Some(Run { child, ..run }),
            Ok(ended) => {
                let milliseconds = self.now().saturating_sub(run.began).as_millis();
                let milliseconds = u64::try_from(milliseconds).unwrap_or(u64::MAX);
                let (event, events) = (run.events.cause(), run.events.count);
                let done = WatcherRun {
                    at: run.at,
                    event,
                    events,
                    milliseconds,
                    ..WatcherRun::default()
                };
                let report = ended.report();
                let again = self.after(run.during, report.as_ref().ok(), run.follows_up);
                self.finished(done, report, &run.events, again);
            }
        }
        self.has_slept = false;
        Ok(())
    }

    /// Nothing is written until a trial or the pause of a restore has ended.
    fn wait_for(&mut self, why: WaitsFor) {
        if self.state.waits_for == Some(why) {
            return;
        }
        self.state.waits_for = Some(why);
        let text = screen::status::waits_for(why);
        journal::log(self.root, Priority::Notice, text, &[]);
        self.show();
    }

    /// A trial or a pause may have begun or ended.
    fn look_at_state(&mut self) {
        self.look_again = Duration::ZERO;
        match (state::blocked(self.root), self.state.waits_for) {
            (Some(why), _) if self.run.is_none() => self.wait_for(why),
            (None, Some(_)) => {
                self.state.waits_for = None;
                self.happened(Event::of(Kind::Released));
                self.show();
            }
            _ => {}
        }
    }

    fn reload(&mut self) {
        self.manager.reloading();
        self.happened(Event::of(Kind::Policy));
        self.policy.refresh(self.root);
        self.show();
    }

    /// Saves the state for `nicpin status`, and tells systemd.
    fn show(&self) {
        // `status` shows less without it; nothing else depends on it.
        let _ = self
            .is_shown
            .then(|| state::WATCHER.save(self.root, &self.state));
        let next = self
            .schedule
            .next_check()
            .saturating_sub(self.now())
            .as_secs();
        self.manager.ready(&screen::status::line(
            &self.state,
            self.interfaces,
            wall() + next,
        ));
    }

    /// Ends without restoring. A run stops before its next write.
    fn end(mut self) -> Result<Exit> {
        self.manager.stopping();
        if let Some(run) = self.run.take() {
            run.child.signal(if self.args.observe {
                Signal::SIGKILL
            } else {
                Signal::SIGTERM
            });
            run.child.wait(GRACE)?;
        }
        let _ = self.is_shown.then(|| state::WATCHER.remove(self.root));
        Ok(Exit::Planned)
    }
}

/// The CPU time of all children that have ended.
fn spent() -> Duration {
    let time = |time: TimeVal| {
        let microseconds = time.num_microseconds();
        Duration::from_micros(u64::try_from(microseconds).unwrap_or_default())
    };
    getrusage(UsageWho::RUSAGE_CHILDREN)
        .map(|usage| time(usage.user_time()) + time(usage.system_time()))
        .unwrap_or_default()
}

/// Seconds since 1970.
fn wall() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}
