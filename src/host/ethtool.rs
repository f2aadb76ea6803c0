//! What only ethtool knows: how many channels a card has and could have.
//!
//! On a live machine asked by ioctl (`SIOCETHTOOL`, `include/uapi/linux/ethtool.h`); in a tree read from
//! the answer recorded in `/nicpin/ethtool/INTERFACE/channels`, a name and a number a line. This is the one
//! module with unsafe code.

use std::io;

use serde::{Deserialize, Serialize};

use crate::host::root::{FileError, Root};

/// Where a tree keeps what ethtool answered.
const RECORDED: &str = "/nicpin/ethtool";

/// `struct ethtool_channels`: a channel is a vector and the queues that it serves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    /// Most channels that only receive.
    pub max_rx: u32,
    /// Most channels that only transmit.
    pub max_tx: u32,
    /// Most channels for other uses (link events, SR-IOV).
    pub max_other: u32,
    /// Most channels that receive and transmit.
    pub max_combined: u32,
    /// Receive channels now.
    pub rx: u32,
    /// Transmit channels now.
    pub tx: u32,
    /// Other channels now.
    pub other: u32,
    /// Combined channels now.
    pub combined: u32,
}

impl Channels {
    /// Channels that receive, now.
    pub fn receiving(&self) -> u32 {
        self.rx + self.combined
    }

    /// Most channels that receive which the card can have at once.
    pub fn max_receiving(&self) -> u32 {
        self.max_rx.max(self.max_combined)
    }

    /// The arguments of `ethtool -L` after the interface for `count` receiving channels.
    pub fn set_arguments(&self, count: u32) -> String {
        if self.max_combined > 0 { format!("combined {count}") } else { format!("rx {count}") }
    }

    /// As many as there are, and no more to be had.
    #[must_use]
    pub fn without_more(self) -> Self {
        let (max_rx, max_tx, max_other, max_combined) = (self.rx, self.tx, self.other, self.combined);
        Self { max_rx, max_tx, max_other, max_combined, ..self }
    }

    /// The arguments of `ethtool -L` that lead here from `now`: `combined 6 rx 0`.
    pub fn difference(&self, now: &Self) -> String {
        let fields = [
            ("rx", self.rx, now.rx),
            ("tx", self.tx, now.tx),
            ("other", self.other, now.other),
            ("combined", self.combined, now.combined),
        ];
        let changed = fields.iter().filter(|(_, wanted, now)| wanted != now);
        let words: Vec<String> = changed.map(|(name, wanted, _)| format!("{name} {wanted}")).collect();
        words.join(" ")
    }

    /// The recorded form.
    pub fn to_text(&self) -> String {
        let fields = [
            ("max_rx", self.max_rx),
            ("max_tx", self.max_tx),
            ("max_other", self.max_other),
            ("max_combined", self.max_combined),
            ("rx", self.rx),
            ("tx", self.tx),
            ("other", self.other),
            ("combined", self.combined),
        ];
        fields.map(|(name, value)| format!("{name} {value}\n")).concat()
    }

    /// Reads the recorded form.
    pub fn parse(text: &str) -> Option<Self> {
        let mut channels = Self::default();
        for line in text.lines() {
            let (name, value) = line.split_once(' ')?;
            let value = value.trim().parse().ok()?;
            let field = match name {
                "max_rx" => &mut channels.max_rx,
                "max_tx" => &mut channels.max_tx,
                "max_other" => &mut channels.max_other,
                "max_combined" => &mut channels.max_combined,
                "rx" => &mut channels.rx,
                "tx" => &mut channels.tx,
                "other" => &mut channels.other,
                "combined" => &mut channels.combined,
                _ => return None,
            };
            *field = value;
        }
        Some(channels)
    }
}

/// The channels of an interface; `None` where the driver does not tell. Needs no privilege.
pub(crate) fn channels(root: &Root, interface: &str) -> Result<Option<Channels>, FileError> {
    let path = format!("{RECORDED}/{interface}/channels");
    if root.is_real() {
        let channels = ioctl::channels(interface).ok();
        if let Some(channels) = channels {
            root.remember(&path, || channels.to_text());
        }
        return Ok(channels);
    }
    let Some(text) = root.read_opt(&path)? else { return Ok(None) };
    match Channels::parse(&text) {
        Some(channels) => Ok(Some(channels)),
        None => {
            Err(root.content_error(&path, "is no list of channels; expected lines such as `max_combined 8`"))
        }
    }
}

/// Gives an interface other channels. Needs `CAP_NET_ADMIN`; takes the link down for a moment on most cards. In a
/// tree the recorded answer changes, and nothing else.
pub(crate) fn set_channels(root: &Root, interface: &str, channels: &Channels) -> io::Result<()> {
    if root.is_real() {
        return Ok(ioctl::set_channels(interface, channels)?);
    }
    root.write(&format!("{RECORDED}/{interface}/channels"), &channels.to_text())
}

#[allow(unsafe_code)]
mod ioctl {
    use std::os::fd::AsRawFd as _;

    use nix::errno::Errno;
    use nix::libc;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

    use super::Channels;

    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    const ETHTOOL_GCHANNELS: u32 = 0x3c;
    const ETHTOOL_SCHANNELS: u32 = 0x3d;

    /// `struct ethtool_channels`.
    #[repr(C)]
    #[derive(Default)]
    struct RawChannels {
        cmd: u32,
        max: [u32; 4],
        now: [u32; 4],
    }

    nix::ioctl_readwrite_bad!(siocethtool, SIOCETHTOOL, libc::ifreq);

    pub(super) fn channels(interface: &str) -> Result<Channels, Errno> {
        let mut raw = RawChannels { cmd: ETHTOOL_GCHANNELS, ..RawChannels::default() };
        call(interface, &mut raw)?;
        let ([max_rx, max_tx, max_other, max_combined], [rx, tx, other, combined]) = (raw.max, raw.now);
        Ok(Channels { max_rx, max_tx, max_other, max_combined, rx, tx, other, combined })
    }

    pub(super) fn set_channels(interface: &str, to: &Channels) -> Result<(), Errno> {
        let now = [to.rx, to.tx, to.other, to.combined];
        let max = [to.max_rx, to.max_tx, to.max_other, to.max_combined];
        call(interface, &mut RawChannels { cmd: ETHTOOL_SCHANNELS, max, now })
    }

    fn call(interface: &str, raw: &mut RawChannels) -> Result<(), Errno> {
        let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        // SAFETY: an ifreq is plain old data, for which all zeros is a valid value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if interface.len() >= request.ifr_name.len() {
            return Err(Errno::ENODEV);
        }
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        request.ifr_ifru.ifru_data = std::ptr::from_mut(raw).cast();
        // SAFETY: `request` and the `raw` that it points to live until the call returns, and
        // both commands read and write no more than the structure they are defined with.
        unsafe { siocethtool(socket.as_raw_fd(), &raw mut request) }?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_form_is_read_back() {
        let channels =
            Channels { max_other: 1, max_combined: 63, other: 1, combined: 8, ..Channels::default() };
        assert_eq!(Channels::parse(&channels.to_text()), Some(channels));
        assert_eq!((channels.receiving(), channels.max_receiving()), (8, 63));
        assert_eq!(channels.set_arguments(12), "combined 12");
        assert_eq!(Channels::parse("max_rx x\n"), None);
        assert_eq!(Channels::parse("speed 3\n"), None);
    }

    #[test]
    fn loopback_has_no_channels() {
        assert!(ioctl::channels("lo").is_err());
        assert!(ioctl::channels("a-name-that-is-too-long-for-an-interface").is_err());
    }
}
