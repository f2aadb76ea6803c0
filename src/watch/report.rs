//! The report of a run for the watcher.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use nicpin::apply;
use nicpin::cpuset::Inserted as _;
use nicpin::kinds::Setting;
use nicpin::machine::others::{OtherTool, OtherTools};
use nicpin::report::applied::Applied;
use nicpin::report::check::Check;
use nicpin::report::difference::NoteAbout;
use nicpin::report::outcome::IrqbalanceAction::Banned;
use nicpin::report::outcome::{Outcome, WriteResult};
use nicpin::report::watcher::ChangedSetting;

const MOST_FAILURES: usize = 3;

#[derive(Default, Serialize, Deserialize)]
pub struct RunReport {
    /// Nothing was written because `restore` has paused the watcher.
    pub paused: bool,
    pub interfaces: usize,
    /// Channels and irqbalance included; with `--observe`, settings that differ.
    pub changed: usize,
    pub failed: usize,
    pub failures: Vec<String>,
    /// Channels were changed, which causes events.
    pub channels: bool,
    pub irqbalance: bool,
    /// Process of an irqbalance that leaves the planned IRQs unchanged, or was stopped.
    pub irqbalance_answered: Option<i32>,
    pub irqbalance_silent: bool,
    pub written: Vec<RestoredSetting>,
    /// IRQ and planned `smp_affinity` of each planned vector.
    pub vectors: Vec<(u32, String)>,
}

impl RunReport {
    /// A look without a change.
    pub fn observed(check: &Check) -> Self {
        Self {
            interfaces: check.interfaces.len(),
            changed: check.differs.len() + check.channels.len(),
            failed: check.unknown.len(),
            failures: unplanned(&check.unknown).take(MOST_FAILURES).collect(),
            ..Self::default()
        }
    }

    pub fn of(done: &Applied, unknown: &[NoteAbout]) -> Self {
        let results: BTreeMap<&str, &WriteResult> = done
            .results
            .iter()
            .map(|result| (result.path.as_str(), result))
            .inserted();
        let (mut restored, mut vectors) = (Vec::new(), Vec::new());
        for (setting, text) in apply::planned_settings(&done.machine, &done.plan) {
            let result = results.get(setting.path().as_str());
            let fallback = result.and_then(|result| result.fallback.as_ref());
            let is_changed = result.is_some_and(|result| result.changed());
            // A vector that could not be moved would be found moved at each look.
            if is_changed || result.is_none_or(|result| result.outcome == Outcome::Already) {
                let held = fallback.unwrap_or(&text).trim();
                vectors.extend(setting.irq().map(|irq| (irq, held.to_owned())));
            }
            // A vector that is still on its fallback was not moved by anybody.
            let was = result.and_then(|result| result.was.as_ref());
            if is_changed && (fallback.is_none() || fallback != was) {
                restored.push(RestoredSetting {
                    writers: writers(done, setting.irq().is_some()),
                    ..RestoredSetting::new(&setting, text)
                });
            }
        }
        let because = |what: &str, why: &Option<String>| {
            format!("{what}: {}", why.as_deref().unwrap_or_default())
        };
        let irqbalance = done.irqbalance.as_ref();
        let silent = irqbalance.filter(|outcome| outcome.failed());
        let answered = irqbalance.filter(|outcome| !outcome.failed());
        let channels = done
            .channels
            .iter()
            .filter(|change| change.refused.is_some());
        let refused = done.results.iter().filter(|result| result.failed());
        let failures = silent
            .iter()
            .map(|outcome| because("irqbalance", &outcome.detail))
            .chain(channels.map(|change| {
                because(
                    &format!("channels of {}", change.interface),
                    &change.refused,
                )
            }))
            .chain(refused.map(|result| because(&result.shown(), &result.detail)));
        Self {
            paused: false,
            interfaces: done.plan.interfaces.len(),
            changed: done.tally.changed,
            failed: done.tally.failed() + unknown.len(),
            failures: failures
                .chain(unplanned(unknown))
                .take(MOST_FAILURES)
                .collect(),
            channels: done.channels.iter().any(|change| change.refused.is_none()),
            irqbalance: irqbalance.is_some_and(|outcome| outcome.changed),
            irqbalance_answered: answered.and_then(|outcome| outcome.pid),
            irqbalance_silent: silent.is_some(),
            written: restored,
            vectors,
        }
    }
}

fn unplanned(unknown: &[NoteAbout]) -> impl Iterator<Item = String> {
    unknown
        .iter()
        .map(|about| format!("{} is not planned: {}", about.interface, about.note))
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredSetting {
    #[serde(flatten)]
    pub setting: ChangedSetting,
    pub value: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writers: Vec<String>,
}

impl RestoredSetting {
    pub fn new(setting: &Setting<'_>, value: String) -> Self {
        Self {
            setting: ChangedSetting {
                name: setting.id(),
                interface: setting.interface().to_owned(),
                path: setting.path(),
            },
            value,
            writers: Vec::new(),
        }
    }

    pub fn is_same(&self, other: &Self) -> bool {
        self.setting == other.setting && self.value == other.value
    }
}

/// irqbalance writes only affinities, and no longer those that it has banned; tuned writes affinities, too.
fn writers(done: &Applied, is_affinity: bool) -> Vec<String> {
    let OtherTools {
        irqbalance, others, ..
    } = &done.machine.other_tools;
    let banned = done.irqbalance.as_ref();
    let banned = banned.filter(|outcome| outcome.done == Banned && !outcome.changed);
    let banned = banned.and_then(|outcome| outcome.pid);
    let irqbalance = irqbalance
        .iter()
        .filter(|daemon| is_affinity && banned != Some(daemon.pid))
        .map(|daemon| format!("irqbalance (process {})", daemon.pid));
    let others = others.iter().filter_map(|tool| match tool {
        OtherTool::Tuned { profile, .. } if is_affinity => {
            Some(format!("tuned (profile {profile})"))
        }
        OtherTool::CloudScript { path, .. } => Some(path.clone()),
        // systemd-udevd writes when a device is added, which is an event of the kernel.
        OtherTool::Tuned { .. } | OtherTool::LinkFile { .. } | OtherTool::LinkRps { .. } => None,
    });
    irqbalance.chain(others).collect()
}
