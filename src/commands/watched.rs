//! A run of `nicpin watch`. It writes nothing while the watcher is paused, does not write contended settings, and
//! prints a [`RunReport`].

use std::collections::BTreeSet;
use std::ffi::OsString;

use anyhow::{Result, ensure};
use clap::Args;
use thiserror::Error;

use crate::commands::args::{General, TargetArgs};
use crate::commands::check::write_metrics;
use crate::commands::inputs::{Purpose, open_to_write, read_and_plan};
use crate::commands::watch::WatchArgs;
use crate::watch::state::PAUSE;
use crate::watch::{RestoredSetting, RunReport};
use crate::{screen, start};
use nicpin::apply::{self, Options, apply_when_safe};
use nicpin::read::ReadOptions;
use nicpin::report::applied::Applied;
use nicpin::report::difference::NoteAbout;
use nicpin::report::exit::Exit;
use nicpin::root::Root;

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

pub fn run(cli: &General, args: &WatchArgs, run: &WatchRunArgs, out: &mut String) -> Result<Exit> {
    let target = args.target.as_watched(run.avoid_exclusive);
    if let (Some(file), true) = (&args.metrics, run.metrics) {
        return write_metrics(cli, &target, file);
    }
    let report = if args.observe {
        let root = Root::open(&cli.root)?;
        let (machine, plan) =
            read_and_plan(Purpose::Look, cli, &root, &target, ReadOptions::default())?;
        let check = nicpin::check(&root, &machine, &plan);
        RunReport::observed(&check)
    } else {
        match apply_run(cli, &target, &run.leave) {
            Ok(done) => RunReport::of(&done, &NoteAbout::unknown(&done.plan)),
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
        let (machine, mut plan) =
            read_and_plan(Purpose::Write, cli, root, target, ReadOptions::default())?;
        if !leave.is_empty() {
            let planned = apply::planned_settings(&machine, &plan).into_iter();
            let planned = planned.map(|(setting, value)| RestoredSetting::new(&setting, value));
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
