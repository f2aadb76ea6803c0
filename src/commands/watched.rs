//! A run of `nicpin watch`. It writes nothing while the watcher is paused, does not write contended settings, and
//! prints a [`RunReport`].

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use anyhow::{Result, ensure};
use clap::Args;
use thiserror::Error;

use crate::commands::apply::planned;
use crate::commands::args::{General, TargetArgs};
use crate::commands::check::write_metrics;
use crate::commands::inputs::{Purpose, open_to_write, read_and_plan};
use crate::commands::watch::WatchArgs;
use crate::watch::state::PAUSE;
use crate::watch::{RestoredSetting, RunReport};
use crate::{screen, start};
use nicpin::apply::{self, Options, apply_when_safe};
use nicpin::machine::Setting;
use nicpin::machine::others::{OtherTool, OtherTools};
use nicpin::read::ReadOptions;
use nicpin::report::applied::Applied;
use nicpin::report::difference::NoteAbout;
use nicpin::report::exit::Exit;
use nicpin::report::outcome::IrqbalanceAction::Banned;
use nicpin::report::outcome::{IrqbalanceOutcome, Outcome, WriteResult};
use nicpin::report::run::ChangedSetting;
use nicpin::root::Root;

/// A run of the watcher.
#[derive(Args)]
pub struct WatchRunArgs {
    /// Write the metrics, and nothing else
    #[arg(long)]
    metrics: bool,

    /// Leave out CPUs of exclusive cpuset partitions
    #[arg(long)]
    avoid_exclusive: bool,

    /// Leave this setting alone while it is planned so
    #[arg(long, value_name = "SETTING", value_parser = RestoredSetting::parse)]
    leave: Vec<RestoredSetting>,

    /// The command line of the watcher
    #[arg(last = true, value_name = "ARGUMENT")]
    pub watcher: Vec<OsString>,
}

/// Maximum number of reasons for failures in the report.
const MOST_FAILURES: usize = 3;

pub fn run(cli: &General, args: &WatchArgs, run: &WatchRunArgs, out: &mut String) -> Result<Exit> {
    let target = args.target.as_watched(run.avoid_exclusive);
    if let (Some(file), true) = (&args.metrics, run.metrics) {
        return write_metrics(cli, &target, file);
    }
    let report = if args.observe {
        let root = Root::open(&cli.root)?;
        let (machine, plan) =
            read_and_plan(Purpose::Look, cli, &root, &target, ReadOptions::default())?;
        let check = apply::check(&root, &machine, &plan, target.is_given());
        RunReport {
            interfaces: check.interfaces.len(),
            changed: check.differs.len() + check.channels.len(),
            failed: check.unknown.len(),
            ..RunReport::default()
        }
    } else {
        match apply_run(cli, &target, &run.leave) {
            Ok(done) => report(&done, &NoteAbout::unknown(&done.plan, target.is_given())),
            Err(error) if error.is::<Paused>() => RunReport {
                paused: true,
                ..RunReport::default()
            },
            Err(error) => return Err(error),
        }
    };
    *out += &screen::json(&report)?;
    Ok(Exit::Planned)
}

/// The error that ends an apply before it reads the machine.
#[derive(Debug, Error)]
#[error("nicpin restore has paused the watcher until the next nicpin apply")]
struct Paused;

fn apply_run(cli: &General, target: &TargetArgs, leave: &[RestoredSetting]) -> Result<Applied> {
    let options = Options {
        repeats: true,
        ..Options::default()
    };
    let plan = |root: &Root| {
        // Under the lock: a restore pauses the watcher before it takes the lock.
        ensure!(!PAUSE.exists(root), Paused);
        let (machine, mut plan) = planned(cli, target, root)?;
        if !leave.is_empty() {
            let planned = apply::planned_settings(&machine, &plan).into_iter();
            let planned = planned.map(|(setting, value)| written(&setting, value));
            let left: BTreeSet<String> = planned
                .filter(|planned| leave.iter().any(|left| left.is_same(planned)))
                .map(|planned| planned.setting.path)
                .collect();
            plan.writes.retain(|write| !left.contains(&*write.path));
        }
        Ok((machine, plan))
    };
    apply_when_safe(&open_to_write(cli)?, options, plan, start::stop_apply)
}

/// Describes a setting and its value, without writers, which are not known yet.
fn written(setting: &Setting<'_>, value: String) -> RestoredSetting {
    RestoredSetting {
        setting: ChangedSetting {
            name: setting.id(),
            interface: setting.interface().to_owned(),
            path: setting.path(),
        },
        value,
        writers: Vec::new(),
    }
}

fn report(done: &Applied, unknown: &[NoteAbout]) -> RunReport {
    let results: BTreeMap<&str, &WriteResult> = done
        .results
        .iter()
        .map(|result| (result.path.as_str(), result))
        .collect();
    let (mut restored, mut vectors) = (Vec::new(), Vec::new());
    for (setting, text) in apply::planned_settings(&done.machine, &done.plan) {
        let result = results.get(setting.path().as_str());
        let fallback = result.and_then(|result| result.fallback.as_ref());
        let held = fallback.unwrap_or(&text).trim().to_owned();
        // A vector that could not be moved would be found moved at each look.
        if result.is_none_or(|result| result.changed() || result.outcome == Outcome::Already) {
            vectors.extend(setting.irq().map(|irq| (irq, held)));
        }
        // A vector that is still on its fallback was not moved by anybody.
        if result.is_some_and(|result| {
            result.changed() && (fallback.is_none() || fallback != result.was.as_ref())
        }) {
            let who = writers(
                &done.machine.other_tools,
                done.irqbalance.as_ref(),
                setting.irq().is_some(),
            );
            restored.push(RestoredSetting {
                writers: who,
                ..written(&setting, text)
            });
        }
    }
    let because = |what: &str, why: &Option<String>| {
        format!("{what}: {}", why.as_deref().unwrap_or_default())
    };
    let irqbalance = done.irqbalance.iter().filter(|outcome| outcome.failed());
    let answered = done.irqbalance.as_ref().filter(|outcome| !outcome.failed());
    let channels = done
        .channels
        .iter()
        .filter(|change| change.refused.is_some());
    let refused = done.results.iter().filter(|result| result.failed());
    let failures = irqbalance
        .map(|outcome| because("irqbalance", &outcome.detail))
        .chain(channels.map(|change| {
            because(
                &format!("channels of {}", change.interface),
                &change.refused,
            )
        }))
        .chain(refused.map(|result| because(&result.shown(), &result.detail)));
    let unplanned = unknown
        .iter()
        .map(|about| format!("{}: cannot be planned", about.interface));
    RunReport {
        paused: false,
        interfaces: done.plan.interfaces.len(),
        changed: done.tally.changed,
        failed: done.tally.failed() + unknown.len(),
        failures: failures.chain(unplanned).take(MOST_FAILURES).collect(),
        channels: done.channels.iter().any(|change| change.refused.is_none()),
        irqbalance: done
            .irqbalance
            .as_ref()
            .is_some_and(|outcome| outcome.changed),
        irqbalance_answered: answered.and_then(|outcome| outcome.pid),
        written: restored,
        vectors,
    }
}

/// The programs on this machine that may write a setting. irqbalance writes only affinities, and no longer those that
/// it has banned; tuned writes affinities, too.
fn writers(
    tools: &OtherTools,
    asked: Option<&IrqbalanceOutcome>,
    is_affinity: bool,
) -> Vec<String> {
    let is_kept = |pid| {
        asked.is_some_and(|outcome| {
            outcome.done == Banned && !outcome.changed && outcome.pid == Some(pid)
        })
    };
    let irqbalance = tools
        .irqbalance
        .iter()
        .filter(|daemon| is_affinity && !is_kept(daemon.pid));
    let irqbalance = irqbalance.map(|daemon| format!("irqbalance (process {})", daemon.pid));
    let others = tools.others.iter().filter_map(|tool| match tool {
        OtherTool::Tuned { profile, .. } if is_affinity => {
            Some(format!("tuned (profile {profile})"))
        }
        OtherTool::CloudScript { path, .. } => Some(path.clone()),
        // systemd-udevd writes when a device is added, which is an event of the kernel.
        OtherTool::Tuned { .. } | OtherTool::LinkFile { .. } => None,
    });
    irqbalance.chain(others).collect()
}
