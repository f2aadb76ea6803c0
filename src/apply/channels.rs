//! Changes an interface's channels, before any other write: queues, vectors and their masks are created and removed
//! with them.

use std::time::{Duration, Instant};

use crate::apply::settings;
use crate::apply::write::why_not_writable;
use crate::cpuset::QueueSet;
use crate::machine::setting::queue_files;
use crate::machine::{Channels, Machine};
use crate::plan::{ChannelChange, Plan};
use crate::read::ethtool::{self, set_channels};
use crate::report::outcome::ChannelOutcome;
use crate::root::{Root, errno_words};

/// How long a driver may take to create its new queues.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sets the channels of a plan if all that is written after them can be written: the new queues would stay without
/// their settings otherwise.
pub(crate) fn change_planned_channels(
    root: &Root,
    machine: &Machine,
    plan: &Plan,
) -> Vec<ChannelOutcome> {
    if plan.channels.is_empty() {
        return Vec::new();
    }
    let is_changed = |name: &str| plan.channels.iter().any(|change| change.interface == name);
    let obstacle = settings::planned(machine, plan)
        .into_iter()
        .find_map(|(setting, _)| {
            let refused = is_changed(setting.interface())
                .then(|| why_not_writable(root, setting.kind, &setting.path()));
            Some(format!(
                "not changed, since {} cannot be written: {}",
                setting.path(),
                refused??
            ))
        });
    let Some(obstacle) = obstacle else {
        // The table is planned again for the new queues.
        let has_table = |name: &str| {
            let planned = plan.interfaces.iter().find(|planned| planned.name == name);
            planned
                .is_some_and(|planned| planned.rss.as_ref().is_some_and(|rss| rss.queues.is_some()))
        };
        let changes = plan.channels.iter().map(|change| ChangedChannels {
            interface: &change.interface,
            now: change.current,
            wanted: change.wanted,
            resets_rss: has_table(&change.interface),
        });
        return change_channels(root, changes);
    };
    let refused = |change: &ChannelChange| ChannelOutcome {
        interface: change.interface.clone(),
        wanted: change.wanted.difference(&change.current),
        refused: Some(obstacle.clone()),
    };
    plan.channels.iter().map(refused).collect()
}

/// A change of an interface's channels.
pub(crate) struct ChangedChannels<'a> {
    pub(crate) interface: &'a str,
    pub(crate) now: Channels,
    pub(crate) wanted: Channels,
    /// Whether its RSS table is set afterwards, and may be reset before.
    pub(crate) resets_rss: bool,
}

/// Sets each interface's channels and waits for its queues.
pub(crate) fn change_channels<'a>(
    root: &Root,
    changes: impl IntoIterator<Item = ChangedChannels<'a>>,
) -> Vec<ChannelOutcome> {
    let change = |change: ChangedChannels<'_>| ChannelOutcome {
        interface: change.interface.to_owned(),
        wanted: change.wanted.difference(&change.now),
        refused: change_interface(root, &change).err(),
    };
    changes.into_iter().map(change).collect()
}

/// The kernel refuses to remove a queue that a table names, unless the table is the default. What a reset answers does
/// not matter: the change of channels answers for both.
fn reset_rss(root: &Root, interface: &str, wanted: Channels) {
    let Ok(Some(rss)) = ethtool::rss(root, interface) else {
        return;
    };
    if rss
        .reached()
        .last()
        .is_some_and(|last| *last >= wanted.receiving())
    {
        let _ = ethtool::set_rss(
            root,
            interface,
            &rss.spread_over(&QueueSet::below(rss.queues)),
        );
    }
}

fn change_interface(root: &Root, change: &ChangedChannels<'_>) -> Result<(), String> {
    let &ChangedChannels {
        interface,
        wanted,
        resets_rss,
        ..
    } = change;
    if resets_rss {
        reset_rss(root, interface, wanted);
    }
    set_channels(root, interface, &wanted).map_err(|error| {
        let Some(errno) = error.raw_os_error() else { return error.to_string() };
        let fix = match errno {
            nix::libc::EPERM | nix::libc::EACCES => "run as root",
            nix::libc::EINVAL => {
                "the RSS table, a flow rule or XDP may use a queue that this removes; `ethtool -X INTERFACE default` resets the table"
            }
            nix::libc::EBUSY => "the device is busy; fix: run again",
            _ => "the driver does not accept this number of channels",
        };
        format!("{}: {fix}", errno_words(&error))
    })?;
    // A tree has no driver that creates queues.
    if !root.is_real() {
        return Ok(());
    }
    let start = Instant::now();
    loop {
        let queues = root.list(&queue_files(interface));
        let queues = queues
            .map_err(|error| error.to_string())?
            .unwrap_or_default();
        let receiving = queues.iter().filter(|name| name.starts_with("rx-")).count();
        if receiving == wanted.receiving() as usize {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            return Err(format!(
                "accepted, but the interface has {receiving} receive queues after {seconds} s"
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
