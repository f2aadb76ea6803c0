//! A run of `nicpin watch`. It writes nothing while the watcher is paused, leaves the settings alone that another program
//! contended for, and prints a [`RunReport`].

use crate::commands::apply::planned;
use crate::commands::args::General;
use crate::commands::args::SelectArgs;
use crate::commands::args::WAIT;
use crate::commands::check::CheckArgs;
use crate::commands::inputs::{
    Purpose, as_watched, open_to_write, read_and_plan, require_interfaces,
};
use crate::commands::watch::WatchArgs;
use crate::commands::{check, interrupt};
use crate::screen;
use crate::watch::RunReport;
use crate::watch::state::PAUSE;
use anyhow::Result;
use clap::Args;
use nicpin::apply::{self, Options, apply_when_safe};
use nicpin::machine::Machine;
use nicpin::machine::others::{OtherTool, OtherTools};
use nicpin::machine::setting::shown;
use nicpin::plan::Plan;
use nicpin::read::Wants;
use nicpin::report::applied::Applied;
use nicpin::report::difference::Unplannable;
use nicpin::report::exit::Exit;
use nicpin::report::outcome::WriteResult;
use nicpin::report::run::ChangedSetting;
use nicpin::root::Root;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::time::Duration;

/// A run of the watcher.
#[derive(Debug, Args)]
pub struct WatchRunArgs {
    /// Write the metrics, and nothing else
    #[arg(long)]
    pub metrics: bool,

    /// Leave out CPUs that cgroups have alone
    #[arg(long)]
    pub avoid_exclusive: bool,

    /// Leave this setting alone, by its name in the record
    #[arg(long, value_name = "SETTING")]
    pub leave: Vec<String>,

    /// The command line of the watcher
    #[arg(last = true, value_name = "ARGUMENT")]
    pub watcher: Vec<OsString>,
}

/// Reasons of failures that are reported.
const MOST_FAILURES: usize = 3;

pub(super) fn run(
    cli: &General,
    args: &WatchArgs,
    run: &WatchRunArgs,
    out: &mut String,
) -> Result<Exit> {
    let select = SelectArgs {
        selectors: args.select.selectors.clone(),
        if_present: true,
    };
    let policy = as_watched(&args.policy, run.avoid_exclusive);
    if let Some(file) = args.metrics.clone().filter(|_| run.metrics) {
        return check::run(cli, &CheckArgs::metrics(select, policy, file), out);
    }
    let report = if args.observe {
        let root = Root::open(&cli.root)?;
        let wants = Wants::default();
        let (machine, plan) = read_and_plan(Purpose::Look, cli, &root, &select, &policy, wants)?;
        require_interfaces(&root, &machine, &plan, &select)?;
        let check = apply::check(&root, &machine, &plan, select.is_given());
        RunReport {
            interfaces: check.interfaces.len(),
            changed: check.differs.len() + check.channels.len(),
            failed: check.unknown.len(),
            ..RunReport::default()
        }
    } else {
        let plan = |root: &Root| planned(cli, &select, &policy, root);
        match applied(&open_to_write(cli)?, &run.leave, plan) {
            Ok(done) => {
                let unknown = Unplannable::unknown(&done.plan, select.is_given());
                report(&Applied { unknown, ..done })
            }
            Err(error) if error.is::<Paused>() => RunReport {
                paused: true,
                ..RunReport::default()
            },
            Err(error) => return Err(error),
        }
    };
    out.push_str(&screen::json(&report)?);
    Ok(Exit::Planned)
}

/// Ends an apply before it reads the machine.
#[derive(Debug, thiserror::Error)]
#[error("nicpin restore has paused the watcher until the next nicpin apply")]
struct Paused;

fn applied(
    root: &Root,
    leave: &[String],
    mut plan: impl FnMut(&Root) -> Result<(Machine, Plan)>,
) -> Result<Applied> {
    let options = Options {
        wait: Duration::from_secs(WAIT),
        atomic: false,
        trial: None,
        repeats: true,
    };
    let plan = |root: &Root| {
        // Under the lock: a restore pauses the watcher before it takes the lock.
        if PAUSE.exists(root) {
            return Err(Paused.into());
        }
        let (machine, mut plan) = plan(root)?;
        let left: BTreeSet<String> = (apply::planned(&machine, &plan).into_iter())
            .filter(|(setting, _)| leave.contains(&setting.key()))
            .map(|(setting, _)| setting.path())
            .collect();
        plan.writes.retain(|write| !left.contains(&*write.path));
        Ok((machine, plan))
    };
    apply_when_safe(root, options, plan, || {
        interrupt::catch(|signal| apply::stop(format!("ended by {signal}")))
    })
}

fn report(done: &Applied) -> RunReport {
    let settings = apply::planned(&done.machine, &done.plan);
    let names: BTreeMap<String, String> = settings
        .iter()
        .map(|(setting, _)| (setting.path(), setting.key()))
        .collect();
    let written = |result: &WriteResult| {
        let path = &result.path;
        let setting = ChangedSetting {
            name: names.get(path).unwrap_or(path).clone(),
            interface: result.interface.clone(),
            path: path.clone(),
        };
        (setting, result.value.clone())
    };
    let failure = |what: &str, why: &Option<String>| {
        format!("{what}: {}", why.as_deref().unwrap_or_default())
    };
    let irqbalance = done.irqbalance.iter().filter(|outcome| outcome.failed());
    let channels = done.channels.iter().filter(|of| of.refused.is_some());
    let refused = done.results.iter().filter(|result| result.failed());
    let failures = irqbalance
        .map(|outcome| failure("irqbalance", &outcome.detail))
        .chain(channels.map(|of| failure(&format!("channels of {}", of.interface), &of.refused)))
        .chain(refused.map(|result| failure(&shown(&result.path), &result.detail)))
        .chain(
            done.unknown
                .iter()
                .map(|of| format!("{}: cannot be planned", of.interface)),
        );
    let fallbacks: BTreeMap<&str, &String> = done
        .results
        .iter()
        .filter_map(|result| Some((result.path.as_str(), result.fallback.as_ref()?)))
        .collect();
    let vectors = settings.iter().filter_map(|(setting, text)| {
        let text = fallbacks.get(&*setting.path()).unwrap_or(&text);
        Some((setting.irq()?, text.trim().to_owned()))
    });
    RunReport {
        paused: false,
        interfaces: done.plan.interfaces.len(),
        changed: done.tally.changed,
        failed: done.tally.failed() + done.unknown.len(),
        failures: failures.take(MOST_FAILURES).collect(),
        channels: done.channels.iter().any(|change| change.refused.is_none()),
        irqbalance: done.irqbalance.as_ref().is_some_and(|of| of.changed),
        written: done
            .results
            .iter()
            .filter(|result| result.changed())
            .map(written)
            .collect(),
        vectors: vectors.collect(),
        writers: writers(&done.machine.other_tools),
    }
}

/// The programs on this machine that may write affinities.
fn writers(tools: &OtherTools) -> Vec<String> {
    let irqbalance = tools
        .irqbalance
        .as_ref()
        .map(|daemon| format!("irqbalance (process {})", daemon.pid));
    let others = tools.others.iter().filter_map(|tool| match tool {
        OtherTool::Tuned { profile, .. } => Some(format!("tuned (profile {profile})")),
        OtherTool::CloudScript { path, .. } => Some(path.clone()),
        // systemd-udevd writes when a device is added, which is an event of the kernel.
        OtherTool::LinkFile { .. } => None,
    });
    irqbalance.into_iter().chain(others).collect()
}
