//! What ethtool reports of an interface: its channels and their maximums, its link modes, its RSS indirection table, and its
//! driver.
//!
//! On a live machine through an ioctl (`SIOCETHTOOL`, `include/uapi/linux/ethtool.h`), in a tree from the answers that are
//! recorded below `/nicpin/ethtool/INTERFACE`. None of the questions needs a privilege.
//!
//! An ioctl is about the interface of a name in the network namespace of this process, and so is netlink; `/sys` shows
//! the interfaces of the namespace in which it was mounted. `is_same` tells them apart.

use std::io;

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use crate::machine::setting::{ETHTOOL, features_file, rss_file};
use crate::machine::{Channels, Rss};
use crate::read::files::{name_in, name_of};
use crate::read::others::device_path;
use crate::root::sys::ethtool as ioctls;
use crate::root::{FileError, Root, is_absent};

/// The recorded form of an RSS indirection table.
#[derive(Serialize, Deserialize)]
struct RecordedRss {
    /// `ETH_RSS_HASH_*`; 0 where the driver does not report it.
    function: u8,
    /// As a setting has it.
    table: String,
}

/// Versions as ethtool reports them.
#[derive(Serialize, Deserialize)]
struct Driver {
    version: String,
    firmware: String,
}

/// The link modes of an interface.
#[derive(Serialize, Deserialize)]
struct LinkModes {
    /// Those that the driver supports, by the kernel's names.
    supported: Vec<String>,
}

/// Features of an interface: whether they are on, `None` where they cannot be turned on and off.
#[derive(Serialize, Deserialize)]
struct Features {
    ntuple: Option<bool>,
}

/// An answer to an ioctl; `None` if the driver has none, or is not ready to give it, as of some interfaces that are down.
fn reported<T>(answer: nix::Result<T>) -> io::Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Errno::EBUSY | Errno::EAGAIN | Errno::ENETDOWN) => Ok(None),
        Err(errno) if is_absent(&errno.into()) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether ioctls and netlink are about the interface that `/sys` has under this name: it has the same index, and the
/// same bus address or hardware address. A tree has recorded answers, and a file if there were none for this reason.
pub(crate) fn is_same(root: &Root, interface: &str) -> Result<bool, FileError> {
    let path = format!("{ETHTOOL}/{interface}/other-namespace");
    if !root.is_real() {
        return Ok(!root.is_there(&path)?);
    }
    let shown = |file: &str| -> Result<String, FileError> {
        let text = root
            .read_opt(&format!("/sys/class/net/{interface}/{file}"))?
            .unwrap_or_default();
        Ok(text.trim().to_ascii_lowercase())
    };
    let unread = |error| root.io_error(&path, error);
    let same = match reported(ioctls::get_identity(interface)).map_err(unread)? {
        Some((index, _)) if shown("ifindex")? != index.to_string() => false,
        Some((_, address)) => {
            let driver = reported(ioctls::get_driver(interface)).map_err(unread)?;
            let link = root.canonical(&format!("/sys/class/net/{interface}/device"))?;
            let device = link.map(|link| device_path(root, &link)).transpose()?;
            let has_address = |bus: &str| device.is_some_and(|device| name_of(&device) == bus);
            driver.is_some_and(|[_, _, bus]| has_address(&bus))
                || shown("address")? == address.map(|byte| format!("{byte:02x}")).join(":")
        }
        None => false,
    };
    if !same && root.is_there(&format!("/sys/class/net/{interface}"))? {
        root.remember(&path, String::new);
    }
    Ok(same)
}

/// The versions of an interface's driver and firmware, where the driver reports them.
pub(crate) fn versions(
    root: &Root,
    interface: &str,
) -> Result<(Option<String>, Option<String>), FileError> {
    let driver = root.answer(&format!("{ETHTOOL}/{interface}/driver"), || {
        let driver = reported(ioctls::get_driver(interface))?;
        Ok(driver.map(|[version, firmware, _]| Driver { version, firmware }))
    })?;
    let shown = |text: &str| {
        let text = name_in(text);
        (!text.is_empty() && text != "N/A").then(|| text.replace(char::is_control, " "))
    };
    Ok(driver.map_or((None, None), |driver| {
        (shown(&driver.version), shown(&driver.firmware))
    }))
}

/// The fastest link mode that the driver of an interface supports, in Mbit/s. `None` if it lists none, as drivers of
/// virtual machines, or if the kernel has no names for them (before Linux 5.6).
pub(crate) fn fastest_mode(root: &Root, interface: &str) -> Result<Option<u32>, FileError> {
    let modes = root.answer(&format!("{ETHTOOL}/{interface}/link-modes"), || {
        let supported = reported(ioctls::get_link_modes(interface))?;
        Ok(supported.map(|supported| LinkModes { supported }))
    })?;
    let modes = modes.map_or(Vec::new(), |modes| modes.supported);
    Ok(modes.iter().filter_map(|mode| mbps(mode)).max())
}

/// The speed of a link mode; `None` for what else has a bit among them, such as `Autoneg` and `FIBRE`.
fn mbps(mode: &str) -> Option<u32> {
    mode.split_once("base")?.0.parse().ok()
}

/// The channels of an interface, and whether the driver was asked; a tree made by hand has no answer.
pub(crate) fn channels(
    root: &Root,
    interface: &str,
) -> Result<(Option<Channels>, bool), FileError> {
    let answer = root.answer(&channels_file(interface), || {
        match ioctls::get_channels(interface) {
            // A driver that is not ready may have channels.
            Err(Errno::EBUSY | Errno::EAGAIN | Errno::ENETDOWN) => Ok(None),
            numbers => Ok(Some(reported(numbers)?.map(Channels::from_numbers))),
        }
    })?;
    Ok((answer.flatten(), answer.is_some()))
}

/// Sets the channels of an interface. Needs `CAP_NET_ADMIN`; takes the link down for a moment with most drivers. In a
/// tree the recorded answer changes, and nothing else.
pub(crate) fn set_channels(root: &Root, interface: &str, channels: &Channels) -> io::Result<()> {
    if root.is_real() {
        require_same(root, interface)?;
        return Ok(ioctls::set_channels(interface, channels.to_numbers())?);
    }
    root.write_answer(&channels_file(interface), channels)
}

fn channels_file(interface: &str) -> String {
    format!("{ETHTOOL}/{interface}/channels")
}

/// The RSS indirection table of an interface.
pub(crate) fn rss(root: &Root, interface: &str) -> Result<Option<Rss>, FileError> {
    let path = rss_file(interface);
    let answer = root.answer(&path, || {
        let table = reported(ioctls::get_rss(interface))?;
        let rss = table.map(|(table, queues, function)| Rss {
            table,
            queues,
            function,
        });
        let recorded = rss.map(|rss| RecordedRss {
            function: rss.function,
            table: rss.to_setting(),
        });
        // One that nicpin could not write again stays as it is.
        Ok(recorded.filter(|recorded| Rss::parse(&recorded.table).is_some()))
    })?;
    let parse = |RecordedRss { function, table }| {
        let rss = Rss::parse(&table).map(|rss| Rss { function, ..rss });
        rss.ok_or_else(|| {
            let expected = "not an RSS table; expected `queues 4, entries 128, table 0 1 2 3`";
            root.content_error(&path, expected)
        })
    };
    answer.map(parse).transpose()
}

/// Sets the RSS indirection table of an interface; one that is the kernel's default becomes that again, which follows
/// later changes of channels. Hash function and key stay as they are. Needs `CAP_NET_ADMIN`.
pub(crate) fn set_rss(root: &Root, interface: &str, rss: &Rss) -> io::Result<()> {
    if root.is_real() {
        require_same(root, interface)?;
        let table = if rss.is_default() {
            &[]
        } else {
            rss.table.as_slice()
        };
        return Ok(ioctls::set_rss(interface, table)?);
    }
    let now = self::rss(root, interface).map_err(io::Error::other)?;
    let changed = RecordedRss {
        function: now.map_or(0, |now| now.function),
        table: rss.to_setting(),
    };
    root.write_answer(&rss_file(interface), &changed)
}

/// The feature of ntuple filters, by the kernel's name (`netdev_features_strings`); ethtool calls it `ntuple`.
const NTUPLE: &str = "rx-ntuple-filter";

/// Whether ntuple filters are on; `None` where they cannot be turned on and off.
pub(crate) fn ntuple(root: &Root, interface: &str) -> Result<Option<bool>, FileError> {
    let answer = root.answer(&features_file(interface), || {
        let feature = reported(ioctls::get_feature(interface, NTUPLE))?;
        Ok(feature.map(|(on, changeable)| Features {
            ntuple: changeable.then_some(on),
        }))
    })?;
    Ok(answer.and_then(|features| features.ntuple))
}

/// Turns ntuple filters on or off. Needs `CAP_NET_ADMIN`.
pub(crate) fn set_ntuple(root: &Root, interface: &str, on: bool) -> io::Result<()> {
    if root.is_real() {
        require_same(root, interface)?;
        return Ok(ioctls::set_feature(interface, NTUPLE, on)?);
    }
    let ntuple = Some(on);
    root.write_answer(&features_file(interface), &Features { ntuple })
}

/// Refuses to change an interface of another network namespace than that of `/sys`.
fn require_same(root: &Root, interface: &str) -> io::Result<()> {
    if is_same(root, interface).map_err(io::Error::other)? {
        return Ok(());
    }
    Err(io::Error::other(
        "/sys shows it from another network namespace than that of nicpin, where its name means another interface or \
         none",
    ))
}
