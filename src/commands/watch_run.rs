//! A run of `nicpin watch`, which prints its report as JSON for the watcher.

use std::ffi::OsString;

use anyhow::Result;
use clap::Args;

use crate::commands::args::General;
use crate::commands::check::write_metrics;
use crate::commands::inputs::{Purpose, open_to_write, read_and_plan};
use crate::commands::watch::WatchArgs;
use crate::screen;
use crate::watch::{RestoredSetting, run};
use nicpin::read::ReadOptions;
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

    /// Leave this setting unchanged while it is planned so
    #[arg(long, value_name = "JSON", value_parser = |text: &str| serde_json::from_str::<RestoredSetting>(text))]
    leave: Vec<RestoredSetting>,

    /// The command line of the watcher
    #[arg(last = true, value_name = "ARGUMENT")]
    pub watcher: Vec<OsString>,
}

pub fn run(
    cli: &General,
    watch_args: &WatchArgs,
    args: &WatchRunArgs,
    out: &mut String,
) -> Result<Exit> {
    let target = watch_args.target.as_watched(args.avoid_exclusive);
    if let (Some(file), true) = (&watch_args.metrics, args.metrics) {
        return write_metrics(cli, &target, file);
    }
    let plan = |purpose, root: &Root| {
        let options = ReadOptions::default();
        read_and_plan(purpose, cli, root, &target, options)
    };
    let report = if watch_args.observe {
        let root = Root::open(&cli.root)?;
        let (machine, plan) = plan(Purpose::Look, &root)?;
        run::observe(&root, &machine, &plan)
    } else {
        let root = open_to_write(cli)?;
        run::apply(&root, &args.leave, || plan(Purpose::Write, &root))?
    };
    *out += &screen::json(&report)?;
    Ok(Exit::Planned)
}
