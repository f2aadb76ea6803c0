//! What only ethtool knows: how many channels a card has and could have.
//!
//! On a live machine asked by ioctl (`SIOCETHTOOL`, `include/uapi/linux/ethtool.h`); in a tree read from
//! the answer recorded in `/nicpin/ethtool/INTERFACE/channels`, a name and a number a line; nothing in it where the
//! driver had none.

use std::io;

use crate::machine::Channels;
use crate::root::{FileError, Root};
use crate::sys::{self, RawChannels};

/// Where a tree keeps what ethtool answered.
const RECORDED: &str = "/nicpin/ethtool";

/// What a driver answers when it is asked for its channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChannelsAnswer {
    /// These.
    Channels(Channels),
    /// That it has no such thing to tell of.
    Nothing,
    /// It was not asked: a tree that somebody made by hand.
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
            Err(root.content_error(&path, "is no list of channels; expected lines such as `max_combined 8`"))
        }
    }
}

/// Gives an interface other channels. Needs `CAP_NET_ADMIN`; takes the link down for a moment on most cards. In a
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
