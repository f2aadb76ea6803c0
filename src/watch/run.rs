//! A run of the watcher: applies the plan without contended settings, or only compares.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use thiserror::Error;

use crate::start;
use crate::watch::report::{RestoredSetting, RunReport};
use crate::watch::state::PAUSE;
use nicpin::apply::{self, Options, apply_when_safe};
use nicpin::machine::Machine;
use nicpin::plan::Plan;
use nicpin::report::difference::NoteAbout;
use nicpin::root::Root;

pub fn observe(root: &Root, machine: &Machine, plan: &Plan) -> RunReport {
    RunReport::observed(&nicpin::check(root, machine, plan))
}

/// Writes nothing while the watcher is paused, and no setting of `left_alone` while its planned value is the same.
pub fn apply(
    root: &Root,
    left_alone: &[RestoredSetting],
    mut read_and_plan: impl FnMut() -> Result<(Machine, Plan)>,
) -> Result<RunReport> {
    let options = Options {
        repeats: true,
        ..Options::default()
    };
    let plan = |root: &Root| {
        // Under the lock: a restore pauses the watcher before it takes the lock.
        ensure!(!PAUSE.exists(root), Paused);
        let (machine, mut plan) = read_and_plan()?;
        remove_writes(&mut plan, &machine, left_alone);
        Ok((machine, plan))
    };
    match apply_when_safe(root, options, plan, start::stop_apply) {
        Ok(done) => Ok(RunReport::of(&done, &NoteAbout::unknown(&done.plan))),
        Err(error) if error.is::<Paused>() => Ok(RunReport {
            paused: true,
            ..RunReport::default()
        }),
        Err(error) => Err(error),
    }
}

fn remove_writes(plan: &mut Plan, machine: &Machine, left_alone: &[RestoredSetting]) {
    if left_alone.is_empty() {
        return;
    }
    let paths: BTreeSet<String> = apply::planned_settings(machine, plan)
        .into_iter()
        .map(|(setting, value)| RestoredSetting::new(&setting, value))
        .filter(|planned| left_alone.iter().any(|left| left.is_same(planned)))
        .map(|planned| planned.setting.path)
        .collect();
    plan.writes.retain(|write| !paths.contains(&*write.path));
}

#[derive(Debug, Error)]
#[error("nicpin restore has paused the watcher until the next nicpin apply")]
struct Paused;
