//! Changes an interface's channels before any other write: queues, vectors and their masks come and go with them.

use crate::apply::lock::stop_reason;
use crate::apply::settings;
use crate::apply::write::not_performed;
use crate::kinds::{channels, why_not_writable};
use crate::machine::{Channels, Machine};
use crate::plan::{ChannelChange, Plan};
use crate::report::outcome::ChannelOutcome;
use crate::root::Root;

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
        let (interface, wanted) = (&self.outcome.interface, &self.channels);
        let set = || channels::set(root, interface, wanted, self.resets_rss);
        self.outcome.refused = obstacle.or_else(|| set().err());
        self.outcome
    }
}
