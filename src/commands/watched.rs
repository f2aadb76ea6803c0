//! `nicpin apply --watched`: a run of `nicpin watch`. It writes nothing while the watcher is paused, leaves the settings
//! alone that another program fights for, and prints a [`RunReport`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Result;

use crate::cli::{ApplyArgs, Cli};
use crate::commands::inputs::open_to_write;
use crate::commands::interrupt;
use crate::screen;
use crate::watch::state::is_paused;
use nicpin::apply::{self, Options, apply_when_safe, planned};
use nicpin::machine::Machine;
use nicpin::machine::paths::shown;
use nicpin::machine::tools::{OtherTool, OtherTools};
use nicpin::plan::Plan;
use nicpin::report::applied::Applied;
use nicpin::report::difference::Unplannable;
use nicpin::report::exit::Exit;
use nicpin::report::run::{ChangedSetting, RunReport};
use nicpin::root::Root;

/// Reasons of failures that are reported.
const MOST_FAILURES: usize = 3;

pub(super) fn run(
    cli: &Cli,
    args: &ApplyArgs,
    mut plan: impl FnMut(&Root) -> Result<(Machine, Plan)>,
    out: &mut String,
) -> Result<Exit> {
    let root = open_to_write(cli)?;
    let wait = Duration::from_secs(args.lock.wait);
    let options = Options {
        wait,
        atomic: args.atomic,
        trial: None,
        repeats: true,
    };
    let leave: BTreeSet<&str> = args.leave.iter().map(String::as_str).collect();
    let plan = |root: &Root| {
        // Under the lock: a restore pauses the watcher before it takes the lock.
        if is_paused(root) {
            return Err(Paused.into());
        }
        let (machine, mut plan) = plan(root)?;
        let names: BTreeSet<String> = (planned(&machine, &plan).into_iter())
            .filter(|(setting, _)| leave.contains(setting.key.as_str()))
            .map(|(setting, _)| setting.path)
            .collect();
        plan.writes.retain(|write| !names.contains(&*write.path));
        Ok((machine, plan))
    };
    let done = apply_when_safe(&root, options, plan, || {
        interrupt::catch(|signal| apply::stop(format!("ended by {signal}")))
    });
    let (report, exit) = match done {
        Ok(done) => {
            let unknown = Unplannable::unknown(&done.plan, args.select.is_given());
            let applied = Applied { unknown, ..done };
            (report(&applied), applied.exit(false))
        }
        Err(error) if error.is::<Paused>() => (
            RunReport {
                paused: true,
                ..RunReport::default()
            },
            Exit::Planned,
        ),
        Err(error) => return Err(error),
    };
    out.push_str(&screen::json(&report)?);
    Ok(exit)
}

/// Ends an apply before it reads the machine.
#[derive(Debug, thiserror::Error)]
#[error("nicpin restore has paused the watcher until the next nicpin apply")]
struct Paused;

fn report(done: &Applied) -> RunReport {
    let settings = planned(&done.machine, &done.plan);
    let names: BTreeMap<&str, &str> = settings
        .iter()
        .map(|(setting, _)| (setting.path.as_str(), setting.key.as_str()))
        .collect();
    let written = done
        .results
        .iter()
        .filter(|result| result.changed())
        .map(|result| ChangedSetting {
            name: names
                .get(result.path.as_str())
                .map_or_else(|| result.path.clone(), |name| (*name).to_owned()),
            interface: result.interface.clone(),
            path: result.path.clone(),
        });
    let refused = (done.results.iter().filter(|result| result.failed())).map(|result| {
        format!(
            "{}: {}",
            shown(&result.path),
            result.detail.as_deref().unwrap_or_default()
        )
    });
    let channels = done.channels.iter().filter_map(|change| {
        let why = change.refused.as_ref()?;
        Some(format!("channels of {}: {why}", change.interface))
    });
    let irqbalance = done.irqbalance.iter().filter(|outcome| outcome.failed());
    let irqbalance = irqbalance.map(|outcome| {
        format!(
            "irqbalance: {}",
            outcome.detail.as_deref().unwrap_or_default()
        )
    });
    let unknown = done
        .unknown
        .iter()
        .map(|unknown| format!("{}: cannot be planned", unknown.interface));
    let fallbacks: BTreeMap<&str, &str> = done
        .results
        .iter()
        .filter_map(|result| Some((result.path.as_str(), result.fallback.as_deref()?)))
        .collect();
    let vector = |(setting, text): &(_, String)| -> Option<(u32, String)> {
        let setting: &apply::KernelSetting<'_> = setting;
        let text = fallbacks
            .get(setting.path.as_str())
            .map_or_else(|| text.clone(), |text| (*text).to_owned());
        Some((setting.irq?, text.trim().to_owned()))
    };
    RunReport {
        paused: false,
        interfaces: done.plan.interfaces.len(),
        changed: done.tally.changed,
        failed: done.tally.failed() + done.unknown.len(),
        failures: irqbalance
            .chain(channels)
            .chain(refused)
            .chain(unknown)
            .take(MOST_FAILURES)
            .collect(),
        channels: done.channels.iter().any(|change| change.refused.is_none()),
        irqbalance: done
            .irqbalance
            .as_ref()
            .is_some_and(|outcome| outcome.changed),
        written: written.collect(),
        vectors: settings.iter().filter_map(vector).collect(),
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
