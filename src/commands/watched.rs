//! A run of `nicpin watch`. It writes nothing while the watcher is paused, leaves the settings alone that another program
//! contended for, and prints a [`RunReport`].

use std::collections::BTreeMap;
use std::ffi::OsString;

use anyhow::{Result, ensure};
use clap::Args;
use thiserror::Error;

use crate::commands::apply::planned;
use crate::commands::args::{General, TargetArgs};
use crate::commands::check::write_metrics;
use crate::commands::inputs::{Purpose, open_to_write, read_and_plan};
use crate::commands::watch::WatchArgs;
use crate::watch::RunReport;
use crate::watch::state::PAUSE;
use crate::{screen, start};
use nicpin::apply::{self, Options, apply_when_safe};
use nicpin::machine::others::{OtherTool, OtherTools};
use nicpin::machine::setting::shown;
use nicpin::read::Wants;
use nicpin::report::applied::Applied;
use nicpin::report::difference::NoteAbout;
use nicpin::report::exit::Exit;
use nicpin::report::outcome::{Outcome, WriteResult};
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

    /// Leave this setting alone, by its name in the record
    #[arg(long, value_name = "SETTING")]
    leave: Vec<String>,

    /// The command line of the watcher
    #[arg(last = true, value_name = "ARGUMENT")]
    pub watcher: Vec<OsString>,
}

/// Reasons of failures that are reported.
const MOST_FAILURES: usize = 3;

pub fn run(cli: &General, args: &WatchArgs, run: &WatchRunArgs, out: &mut String) -> Result<Exit> {
    let target = args.target.as_watched(run.avoid_exclusive);
    if let (Some(file), true) = (&args.metrics, run.metrics) {
        return write_metrics(cli, &target, file);
    }
    let report = if args.observe {
        let root = Root::open(&cli.root)?;
        let (machine, plan) = read_and_plan(Purpose::Look, cli, &root, &target, Wants::default())?;
        let check = apply::check(&root, &machine, &plan, target.is_given());
        RunReport {
            interfaces: check.interfaces.len(),
            changed: check.differs.len() + check.channels.len(),
            failed: check.unknown.len(),
            ..RunReport::default()
        }
    } else {
        match applied(cli, &target, &run.leave) {
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

/// Ends an apply before it reads the machine.
#[derive(Debug, Error)]
#[error("nicpin restore has paused the watcher until the next nicpin apply")]
struct Paused;

fn applied(cli: &General, target: &TargetArgs, leave: &[String]) -> Result<Applied> {
    let options = Options {
        repeats: true,
        ..Options::default()
    };
    let plan = |root: &Root| {
        // Under the lock: a restore pauses the watcher before it takes the lock.
        ensure!(!PAUSE.exists(root), Paused);
        let (machine, mut plan) = planned(cli, target, root)?;
        for (setting, _) in apply::planned(&machine, &plan) {
            if leave.contains(&setting.key()) {
                let path = setting.path();
                plan.writes.retain(|write| *write.path != *path);
            }
        }
        Ok((machine, plan))
    };
    apply_when_safe(&open_to_write(cli)?, options, plan, start::stop_apply)
}

fn report(done: &Applied, unknown: &[NoteAbout]) -> RunReport {
    let results: BTreeMap<&str, &WriteResult> = done
        .results
        .iter()
        .map(|of| (of.path.as_str(), of))
        .collect();
    let (mut written, mut vectors) = (Vec::new(), Vec::new());
    for (setting, text) in apply::planned(&done.machine, &done.plan) {
        let path = setting.path();
        let result = results.get(path.as_str());
        let text = result
            .and_then(|of| of.fallback.as_ref())
            .unwrap_or(&text)
            .trim()
            .to_owned();
        // One that could not be moved would be found moved at each look.
        if result.is_none_or(|of| of.changed() || of.outcome == Outcome::Already) {
            vectors.extend(setting.irq().map(|irq| (irq, text)));
        }
        if let Some(result) = result.filter(|of| of.changed()) {
            let changed = ChangedSetting {
                name: setting.key(),
                interface: result.interface.clone(),
                path,
            };
            written.push((changed, result.value.clone()));
        }
    }
    let because = |what: &str, why: &Option<String>| {
        format!("{what}: {}", why.as_deref().unwrap_or_default())
    };
    let irqbalance = done.irqbalance.iter().filter(|outcome| outcome.failed());
    let channels = done.channels.iter().filter(|of| of.refused.is_some());
    let refused = done.results.iter().filter(|result| result.failed());
    let failures = irqbalance
        .map(|outcome| because("irqbalance", &outcome.detail))
        .chain(channels.map(|of| because(&format!("channels of {}", of.interface), &of.refused)))
        .chain(refused.map(|result| because(&shown(&result.path), &result.detail)));
    let unplanned = unknown
        .iter()
        .map(|of| format!("{}: cannot be planned", of.interface));
    RunReport {
        paused: false,
        interfaces: done.plan.interfaces.len(),
        changed: done.tally.changed,
        failed: done.tally.failed() + unknown.len(),
        failures: failures.chain(unplanned).take(MOST_FAILURES).collect(),
        channels: done.channels.iter().any(|change| change.refused.is_none()),
        irqbalance: done.irqbalance.as_ref().is_some_and(|of| of.changed),
        written,
        vectors,
        writers: writers(&done.machine.other_tools),
    }
}

/// The programs on this machine that may write affinities.
fn writers(tools: &OtherTools) -> Vec<String> {
    let irqbalance = tools.irqbalance.iter();
    let irqbalance = irqbalance.map(|daemon| format!("irqbalance (process {})", daemon.pid));
    let others = tools.others.iter().filter_map(|tool| match tool {
        OtherTool::Tuned { profile, .. } => Some(format!("tuned (profile {profile})")),
        OtherTool::CloudScript { path, .. } => Some(path.clone()),
        // systemd-udevd writes when a device is added, which is an event of the kernel.
        OtherTool::LinkFile { .. } => None,
    });
    irqbalance.chain(others).collect()
}
