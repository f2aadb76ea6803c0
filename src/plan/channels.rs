//! The number of channels of a device, when the policy requests one.

use crate::machine::Channels;
use crate::machine::shell::word;
use crate::plan::data::ChannelChange;
use crate::plan::place::Locations;
use crate::plan::work::{Context, Work};
use crate::policy::{CHANNELS, ChannelCount};

/// The change of channels that the policy requests; `None` when there is none, or when the driver does not report its
/// maximum.
pub(crate) fn change(locations: &Locations, work: &Work<'_>) -> Option<ChannelChange> {
    let current = work.interface.channels.filter(|_| !work.skip)?;
    let most = current.max_receiving();
    let (count, why) = match work.choice.get(&CHANNELS) {
        ChannelCount::Keep => return None,
        ChannelCount::Auto if work.interface.channels_fixed => return None,
        ChannelCount::Auto => {
            let cores = work.core_count(locations, &work.candidates.cpus);
            match u32::try_from(cores) {
                Ok(count) if count <= most => (
                    count,
                    format!("a receive queue for each of {cores} candidate cores"),
                ),
                _ => (
                    most,
                    format!("as many as the device can have, for {cores} candidate cores"),
                ),
            }
        }
        ChannelCount::Count(count) if count > most => (
            most,
            format!("the policy requests {count}, and the device can have {most}"),
        ),
        ChannelCount::Count(count) => (count, "as the policy requests".to_owned()),
    };
    let wanted = with_receiving(current, count);
    (count > 0 && count != current.receiving()).then(|| ChannelChange {
        interface: work.interface.name.clone(),
        current,
        wanted,
        command: format!(
            "ethtool -L {} {}",
            word(&work.interface.name),
            wanted.difference(&current)
        ),
        why,
    })
}

/// The number of receiving channels with which an interface takes its share of the cores: interfaces with candidate
/// cores in common divide them evenly, and none takes more than its device can have. An interface that has all these
/// candidates and more is not counted.
pub(crate) fn share(context: &Context<'_>, work: &Work<'_>) -> u32 {
    let most = |work: &Work<'_>| match work.interface.channels {
        Some(channels) if !work.skip && !work.interface.channels_fixed => {
            channels.max_receiving() as usize
        }
        _ => work.active_queues,
    };
    let own_cpus = &work.candidates.cpus;
    // An interface with more candidates than these, such as one whose node is unknown, has other cores to take.
    let takes_part = |other: &&Work<'_>| {
        let cpus = &other.candidates.cpus;
        other.active_queues > 0
            && cpus.intersects(own_cpus)
            && (cpus == own_cpus || !own_cpus.is_subset(cpus))
    };
    let sharers: Vec<(usize, usize)> = context
        .works
        .iter()
        .filter(takes_part)
        .map(|other| (other.turn, most(other)))
        .collect();
    // Each takes a core in turn, in the order in which they choose CPUs, while there are cores and some can take more.
    let mut left = work.core_count(context.locations, &work.candidates.cpus);
    let mut own = 0;
    for round in 0.. {
        let takers = || sharers.iter().filter(|(_, most)| *most > round);
        let before = takers().filter(|(turn, _)| *turn < work.turn).count();
        own += u32::from(most(work) > round && before < left);
        let taken = takers().count();
        if taken == 0 || taken >= left {
            break;
        }
        left -= taken;
    }
    own.max(1)
}

/// Channels with `count` receiving ones, in the form that the device has now: combined, or separate ones with as many
/// transmitting channels as it can have, up to the same number.
fn with_receiving(now: Channels, count: u32) -> Channels {
    if now.max_combined > 0 && (now.combined > 0 || now.max_rx == 0) {
        Channels {
            combined: count,
            rx: 0,
            tx: 0,
            ..now
        }
    } else {
        Channels {
            rx: count,
            tx: count.min(now.max_tx),
            ..now
        }
    }
}
