//! RFS, by the policy: the flow table, the share of each receive queue in it, and filters in hardware
//! (`Documentation/networking/scaling.rst`).

use crate::plan::ports::PlacedPort;
use crate::policy::{RFS, Rfs};

/// Ntuple filters are on with RFS, if the driver steers its flows in hardware; `None`: unchanged.
pub(crate) fn ntuple(port: &PlacedPort<'_>) -> Option<bool> {
    let has_rfs = matches!(port.choice.get(&RFS), Rfs::Entries(_)) && port.has_placed_queues();
    port.interface.ntuple.and(has_rfs.then_some(true))
}

/// The interfaces that share the flow table: those that are up or have queue vectors, selected or not.
pub(crate) fn with_flows<'w, 'a>(
    ports: &'w [PlacedPort<'a>],
) -> impl Iterator<Item = &'w PlacedPort<'a>> + Clone {
    let has_flows = |port: &&PlacedPort<'_>| {
        !port.interface.is_down || port.interface.queue_vectors().next().is_some()
    };
    ports.iter().filter(has_flows)
}

/// Entries of the flow table, the most that any interface's policy requests; 0 if all are off. `None`: unchanged. An
/// interface that keeps its flows, by its policy, because it is not selected, stays as it is or is in another network
/// namespace, keeps the table, too.
pub(crate) fn flow_table(ports: &[PlacedPort<'_>]) -> Option<u32> {
    let entries = |port: &PlacedPort<'_>| {
        let is_kept = port.skip || port.interface.is_elsewhere();
        flow_entries(port.choice.get(&RFS)).filter(|_| !is_kept)
    };
    let choices = with_flows(ports).map(|port| (port, entries(port)));
    let is_kept = (choices.clone()).any(|(port, entries)| !port.selected || entries.is_none());
    let entries = choices.filter_map(|(_, entries)| entries).max()?;
    if !is_kept {
        return Some(entries);
    }
    let now = ports.first()?.machine.flow_entries.unwrap_or(0);
    (entries > now).then_some(entries)
}

/// The number of entries as the kernel rounds it: up to a power of two. `None`: unchanged.
pub(crate) fn flow_entries(rfs: Rfs) -> Option<u32> {
    match rfs {
        Rfs::Entries(entries) => Some(entries.next_power_of_two()),
        Rfs::Off => Some(0),
        Rfs::Keep => None,
    }
}

/// The `rps_flow_cnt` of each of `queues` receive queues for a flow table of `entries`: the largest power of two that
/// fits, because the kernel rounds up.
pub(crate) fn flow_share(entries: u32, queues: usize) -> u32 {
    let share = entries / u32::try_from(queues.max(1)).unwrap_or(u32::MAX);
    match entries {
        0 => 0,
        _ => 1 << share.max(1).ilog2(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_shares_never_add_up_to_more_than_the_table() {
        for (entries, queues, expected) in [
            (32768, 16, 2048),
            (32768, 12, 2048),
            (32768, 1, 32768),
            (4, 8, 1),
        ] {
            assert_eq!(flow_share(entries, queues), expected, "{entries}/{queues}");
        }
    }
}
