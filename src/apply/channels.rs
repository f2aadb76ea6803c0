//! Changes an interface's channels before any other write: queues, vectors and their masks come and go with them.

use std::thread::sleep;
use std::time::{Duration, Instant};

use itertools::Itertools as _;

use crate::apply::access::{self, refusal, why_not_writable};
use crate::apply::lock::stop_reason;
use crate::apply::settings;
use crate::apply::write::not_performed;
use crate::cpuset::QueueSet;
use crate::kinds::SettingKind;
use crate::machine::files::queue_files;
use crate::machine::{Channels, Machine};
use crate::plan::{ChannelChange, Plan, Write};
use crate::read::ethtool;
use crate::report::outcome::ChannelOutcome;
use crate::root::{Root, errno_of};

const PATIENCE: Duration = Duration::from_secs(10);

/// Changes nothing unless all later writes are possible: otherwise new queues would stay without their settings.
pub(crate) fn change_planned_channels(
    root: &Root,
    machine: &Machine,
    plan: &Plan,
) -> Vec<ChannelOutcome> {
    let is_changed = |name: &str| plan.channels.iter().any(|change| change.interface == name);
    let planned = settings::planned_settings(machine, plan).into_iter();
    let mut changed = planned.filter(|(setting, _)| is_changed(setting.interface()));
    let obstacle = changed.find_map(|(setting, _)| {
        let path = setting.path();
        let why = why_not_writable(root, setting.kind, &path)?;
        Some(format!(
            "not changed, since {path} cannot be written: {why}"
        ))
    });
    let change = |change: &ChannelChange| {
        let table = plan
            .interface(&change.interface)
            .and_then(|interface| interface.rss.as_ref());
        let write = Write {
            kind: SettingKind::Channels,
            path: SettingKind::Channels.path(&change.interface, 0),
            value: change.wanted.to_text(),
            current: change.current.to_text().into(),
            interface: (&*change.interface).into(),
            number: 0,
            why: change.why.clone(),
        };
        let resets_rss = table.is_some_and(|rss| rss.queues.is_some());
        let obstacle = obstacle.clone();
        let obstacle = obstacle.or_else(|| stop_reason().map(not_performed));
        change_channels(root, &write, resets_rss, obstacle)
    };
    plan.channels.iter().map(change).collect()
}

/// `resets_rss`: the RSS table is set afterwards, and may be reset before.
pub(crate) fn change_channels(
    root: &Root,
    write: &Write,
    resets_rss: bool,
    obstacle: Option<String>,
) -> ChannelOutcome {
    outcome(
        write,
        obstacle.or_else(|| set(root, write, resets_rss).err()),
    )
}

pub(crate) fn outcome(write: &Write, refused: Option<String>) -> ChannelOutcome {
    let wanted = Channels::parse(&write.value).zip(Channels::parse(&write.current));
    ChannelOutcome {
        interface: write.interface.to_string(),
        wanted: wanted.map_or_else(
            || write.value.split_whitespace().join(" "),
            |(wanted, now)| wanted.difference(&now),
        ),
        refused,
    }
}

/// Returns when the queues are there.
fn set(root: &Root, write: &Write, resets_rss: bool) -> Result<(), String> {
    let wanted = Channels::parse(&write.value).unwrap_or_default();
    if resets_rss {
        reset_rss(root, &write.interface, &wanted);
    }
    access::set(root, write, &write.value).map_err(|error| match errno_of(&error) {
        None => error.to_string(),
        Some(_) => refusal(root, write.kind, &write.path, &write.value, &error).1,
    })?;
    let start = Instant::now();
    // A tree has no driver that creates queues.
    while root.is_real() {
        let queues = root
            .list(&queue_files(&write.interface))
            .map_err(|error| error.to_string())?
            .into_iter()
            .flatten();
        let receiving = queues.filter(|name| name.starts_with("rx-")).count();
        if receiving == wanted.receiving() as usize {
            break;
        }
        if start.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            return Err(format!(
                "accepted, but the interface has {receiving} receive queues after {seconds} s"
            ));
        }
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The kernel refuses to remove a queue that an RSS table names, unless the table is the default. The change of
/// channels reports the errors of both.
fn reset_rss(root: &Root, interface: &str, wanted: &Channels) {
    let Ok(Some(rss)) = ethtool::rss(root, interface) else {
        return;
    };
    if rss.reached().last() >= Some(&wanted.receiving()) {
        let default = rss.spread_over(&QueueSet::below(rss.queues));
        let _ = ethtool::set_rss(root, interface, &default);
    }
}
