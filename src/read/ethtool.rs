//! The channels of an interface and their maximums, from ethtool.
//!
//! On a live machine through an ioctl (`SIOCETHTOOL`, `include/uapi/linux/ethtool.h`). In a tree from
//! `/nicpin/ethtool/INTERFACE/channels`, a name and a number per line; the file is empty if the driver has no channels.

use std::io;

use crate::machine::Channels;
use crate::root::{FileError, Root};
use crate::sys;

/// Where a tree keeps answers to ethtool ioctls.
const RECORDED: &str = "/nicpin/ethtool";

/// The channels of an interface, and whether the driver was asked; a tree made by hand has no answer. Needs no
/// privilege.
pub(crate) fn channels(root: &Root, interface: &str) -> Result<(Option<Channels>, bool), FileError> {
    let path = format!("{RECORDED}/{interface}/channels");
    if root.is_real() {
        let channels = sys::get_channels(interface).ok().map(Channels::from_numbers);
        root.remember(&path, || channels.map(|channels| channels.to_text()).unwrap_or_default());
        return Ok((channels, true));
    }
    let Some(text) = root.read_opt(&path)? else { return Ok((None, false)) };
    let channels = Channels::parse(&text).ok_or_else(|| {
        root.content_error(&path, "not a list of channels; expected lines such as `max_combined 8`")
    })?;
    Ok((Some(channels).filter(|_| !text.trim().is_empty()), true))
}

/// Sets the channels of an interface. Needs `CAP_NET_ADMIN`; takes the link down for a moment with most drivers. In a
/// tree the recorded answer changes, and nothing else.
pub(crate) fn set_channels(root: &Root, interface: &str, channels: &Channels) -> io::Result<()> {
    if root.is_real() {
        return Ok(sys::set_channels(interface, channels.to_numbers())?);
    }
    root.write(&format!("{RECORDED}/{interface}/channels"), &channels.to_text())
}
