//! Changes an interface's channels before any other write: queues, vectors and their masks come and go with them.

use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno::{EACCES, EBUSY, EINVAL, EPERM};

use crate::apply::lock::stop_reason;
use crate::apply::settings;
use crate::apply::write::not_performed;
use crate::cpuset::QueueSet;
use crate::kinds::why_not_writable;
use crate::machine::setting::queue_files;
use crate::machine::{Channels, Machine};
use crate::plan::{ChannelChange, Plan};
use crate::read::ethtool::{self, set_channels};
use crate::report::outcome::ChannelOutcome;
use crate::root::{Root, errno_of, errno_words};

const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct ChangedChannels {
    pub(crate) channels: Channels,
    /// The RSS table is set afterwards, and may be reset before.
    pub(crate) resets_rss: bool,
    pub(crate) outcome: ChannelOutcome,
}

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
        let change = ChangedChannels {
            channels: change.wanted,
            resets_rss: table.is_some_and(|rss| rss.queues.is_some()),
            outcome: ChannelOutcome {
                interface: change.interface.clone(),
                wanted: change.wanted.difference(&change.current),
                refused: None,
            },
        };
        let obstacle = obstacle.clone();
        change.perform(root, obstacle.or_else(|| stop_reason().map(not_performed)))
    };
    plan.channels.iter().map(change).collect()
}

impl ChangedChannels {
    pub(crate) fn perform(mut self, root: &Root, obstacle: Option<String>) -> ChannelOutcome {
        self.outcome.refused = obstacle.or_else(|| self.set(root).err());
        self.outcome
    }

    fn set(&self, root: &Root) -> Result<(), String> {
        let (interface, wanted) = (&self.outcome.interface, self.channels);
        if self.resets_rss {
            reset_rss(root, interface, wanted);
        }
        set_channels(root, interface, &wanted).map_err(|error| {
            let fix = match errno_of(&error) {
                None => return error.to_string(),
                Some(EPERM | EACCES) => "run as root",
                Some(EINVAL) => {
                    "the RSS table, a flow rule or XDP may use a queue that this removes; `ethtool -X INTERFACE default` resets the table"
                }
                Some(EBUSY) => "the device is busy; fix: run again",
                _ => "the driver does not accept this number of channels",
            };
            format!("{}: {fix}", errno_words(&error))
        })?;
        let start = Instant::now();
        // A tree has no driver that creates queues.
        while root.is_real() {
            let queues = root
                .list(&queue_files(interface))
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
}

/// The kernel refuses to remove a queue that an RSS table names, unless the table is the default. The change of
/// channels reports the errors of both.
fn reset_rss(root: &Root, interface: &str, wanted: Channels) {
    let Ok(Some(rss)) = ethtool::rss(root, interface) else {
        return;
    };
    if rss.reached().last() >= Some(&wanted.receiving()) {
        let default = rss.spread_over(&QueueSet::below(rss.queues));
        let _ = ethtool::set_rss(root, interface, &default);
    }
}
