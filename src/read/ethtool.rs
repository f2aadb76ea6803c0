//! The channels of an interface and their maximums, from ethtool.
//!
//! On a live machine through an ioctl (`SIOCETHTOOL`, `include/uapi/linux/ethtool.h`). In a tree from
//! `/nicpin/ethtool/INTERFACE/channels`, a name and a number per line; the file is empty if the driver has no channels.

use std::io;

use crate::machine::Channels;
use crate::root::{FileError, Root};
use crate::sys::{self, RawChannels};

/// Where a tree keeps answers to ethtool ioctls.
const RECORDED: &str = "/nicpin/ethtool";

/// A driver's answer about its channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChannelsAnswer {
    /// These.
    Channels(Channels),
    /// The driver does not support channels.
    Nothing,
    /// There is no answer, as in a tree made by hand.
    NotAsked,
}

/// The channels of an interface. Needs no privilege.
pub(crate) fn channels(root: &Root, interface: &str) -> Result<ChannelsAnswer, FileError> {
    let path = format!("{RECORDED}/{interface}/channels");
    if root.is_real() {
        let channels = sys::get_channels(interface).ok().map(from_raw);
        root.remember(&path, || channels.map(|channels| channels.to_text()).unwrap_or_default());
        return Ok(channels.map_or(ChannelsAnswer::Nothing, ChannelsAnswer::Channels));
    }
    let Some(text) = root.read_opt(&path)? else { return Ok(ChannelsAnswer::NotAsked) };
    match Channels::parse(&text) {
        Some(_) if text.trim().is_empty() => Ok(ChannelsAnswer::Nothing),
        Some(channels) => Ok(ChannelsAnswer::Channels(channels)),
        None => {
            Err(root.content_error(&path, "not a list of channels; expected lines such as `max_combined 8`"))
        }
    }
}

/// Sets the channels of an interface. Needs `CAP_NET_ADMIN`; takes the link down for a moment with most drivers. In a
/// tree the recorded answer changes, and nothing else.
pub(crate) fn set_channels(root: &Root, interface: &str, channels: &Channels) -> io::Result<()> {
    if root.is_real() {
        return Ok(sys::set_channels(interface, to_raw(channels))?);
    }
    root.write(&format!("{RECORDED}/{interface}/channels"), &channels.to_text())
}

fn from_raw(raw: RawChannels) -> Channels {
    let ([max_rx, max_tx, max_other, max_combined], [rx, tx, other, combined]) = (raw.max, raw.now);
    Channels { max_rx, max_tx, max_other, max_combined, rx, tx, other, combined }
}

fn to_raw(channels: &Channels) -> RawChannels {
    RawChannels {
        max: [channels.max_rx, channels.max_tx, channels.max_other, channels.max_combined],
        now: [channels.rx, channels.tx, channels.other, channels.combined],
    }
}
