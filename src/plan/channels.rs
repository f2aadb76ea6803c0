//! The number of channels of a device, when the policy requests one.

use crate::machine::Channels;
use crate::machine::wording::word;
use crate::plan::data::ChannelChange;
use crate::plan::work::Work;
use crate::policy::{CHANNELS, ChannelCount};

/// The change of channels that the policy requests; `None` when there is none, or when the driver does not report its
/// maximum.
pub(crate) fn change(work: &Work<'_>) -> Option<ChannelChange> {
    let current = work.interface.channels.filter(|_| !work.skip)?;
    let most = current.max_receiving();
    let (count, why) = match work.choice.get(&CHANNELS) {
        ChannelCount::Keep => return None,
        ChannelCount::Auto if work.interface.channels_fixed => return None,
        ChannelCount::Auto => {
            let cores = work.core_count(&work.candidates.cpus);
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

/// The number of receiving channels to advise: one for each candidate core, as far as the device can have them. `None` for
/// virtual functions, and where the number is unknown or fixed.
pub(crate) fn advised(work: &Work<'_>) -> Option<u32> {
    let channels = work.interface.channels?;
    let cores = work.core_count(&work.candidates.cpus);
    let may_change = !work.interface.channels_fixed && !work.interface.is_virtual_function();
    let cores = u32::try_from(cores).unwrap_or(u32::MAX);
    may_change.then(|| cores.min(channels.max_receiving()).max(1))
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
