//! What ethtool reports of an interface: its channels and their maximums, its RSS indirection table, and its driver.
//!
//! On a live machine through an ioctl (`SIOCETHTOOL`, `include/uapi/linux/ethtool.h`). In a tree from
//! `/nicpin/ethtool/INTERFACE`: `channels` has a name and a number per line, and is empty if the driver has no channels;
//! `driver` has lines such as `version 6.12.0` and `firmware 16.35.2000`; `rss` has the RSS indirection table (the form
//! is that of [`Rss`]), and is empty if there is none; `features` has the line `rx-ntuple-filter on`, `off` or `off fixed`.
//!
//! An ioctl is about the interface of a name in the network namespace of this process, and so is netlink; `/sys` shows
//! the interfaces of the namespace in which it was mounted. `is_same` tells them apart.

use std::io;

use crate::machine::paths::{ETHTOOL, features_file, on_or_off, rss_file};
use crate::machine::{Channels, Rss};
use crate::read::device::device_path;
use crate::read::files::name_of;
use crate::root::sys::ethtool as ioctls;
use crate::root::{FileError, Root};

/// Whether ioctls and netlink are about the interface that `/sys` has under this name: it has the same index, and the
/// same bus address or hardware address. A tree has recorded answers, and a file if there were none for this reason.
pub(crate) fn is_same(root: &Root, interface: &str) -> Result<bool, FileError> {
    let path = format!("{ETHTOOL}/{interface}/other-namespace");
    if !root.is_real() {
        return Ok(!root.exists(&path));
    }
    let shown = |file: &str| -> Result<String, FileError> {
        let text = root
            .read_opt(&format!("/sys/class/net/{interface}/{file}"))?
            .unwrap_or_default();
        Ok(text.trim().to_ascii_lowercase())
    };
    let same = match ioctls::get_identity(interface) {
        Ok((index, _)) if shown("ifindex")? != index.to_string() => false,
        Ok((_, address)) => {
            let [_, _, bus] = ioctls::get_driver(interface).unwrap_or_default();
            let device = root.canonical(&format!("/sys/class/net/{interface}/device"));
            let device = device.map(|link| device_path(root, &link));
            device.is_some_and(|device| name_of(&device) == bus)
                || shown("address")? == address.map(|byte| format!("{byte:02x}")).join(":")
        }
        Err(_) => false,
    };
    if !same && root.exists(&format!("/sys/class/net/{interface}")) {
        root.remember(&path, String::new);
    }
    Ok(same)
}

/// The versions of an interface's driver and firmware, where the driver reports them.
pub(crate) fn versions(
    root: &Root,
    interface: &str,
) -> Result<(Option<String>, Option<String>), FileError> {
    let path = format!("{ETHTOOL}/{interface}/driver");
    let text = if root.is_real() {
        let [version, firmware, _] = ioctls::get_driver(interface).unwrap_or_default();
        let text = format!(
            "version {}\nfirmware {}\n",
            one_line(&version),
            one_line(&firmware)
        );
        root.remember(&path, || text.clone());
        text
    } else {
        root.read_opt(&path)?.unwrap_or_default()
    };
    let field = |name: &str| {
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?
            .trim();
        (!value.is_empty() && value != "N/A").then(|| value.to_owned())
    };
    Ok((field("version"), field("firmware")))
}

fn one_line(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

/// The channels of an interface, and whether the driver was asked; a tree made by hand has no answer. Needs no
/// privilege.
pub(crate) fn channels(
    root: &Root,
    interface: &str,
) -> Result<(Option<Channels>, bool), FileError> {
    let path = format!("{ETHTOOL}/{interface}/channels");
    if root.is_real() {
        let channels = ioctls::get_channels(interface)
            .ok()
            .map(Channels::from_numbers);
        root.remember(&path, || {
            channels
                .map(|channels| channels.to_text())
                .unwrap_or_default()
        });
        return Ok((channels, true));
    }
    let Some(text) = root.read_opt(&path)? else {
        return Ok((None, false));
    };
    let channels = Channels::parse(&text).ok_or_else(|| {
        root.content_error(
            &path,
            "not a list of channels; expected lines such as `max_combined 8`",
        )
    })?;
    Ok((Some(channels).filter(|_| !text.trim().is_empty()), true))
}

/// Sets the channels of an interface. Needs `CAP_NET_ADMIN`; takes the link down for a moment with most drivers. In a
/// tree the recorded answer changes, and nothing else.
pub(crate) fn set_channels(root: &Root, interface: &str, channels: &Channels) -> io::Result<()> {
    if root.is_real() {
        require_same(root, interface)?;
        return Ok(ioctls::set_channels(interface, channels.to_numbers())?);
    }
    root.write(
        &format!("{ETHTOOL}/{interface}/channels"),
        &channels.to_text(),
    )
}

/// The RSS indirection table of an interface. Needs no privilege.
pub(crate) fn rss(root: &Root, interface: &str) -> Result<Option<Rss>, FileError> {
    let path = rss_file(interface);
    if root.is_real() {
        let answer = ioctls::get_rss(interface).ok();
        let rss = answer.map(|(table, queues, function)| Rss {
            table,
            queues,
            function,
        });
        root.remember(&path, || rss.as_ref().map(Rss::to_text).unwrap_or_default());
        return Ok(rss);
    }
    let text = root.read_opt(&path)?.filter(|text| !text.trim().is_empty());
    let parse = |text: String| {
        Rss::parse(&text).ok_or_else(|| {
            let expected =
                "not an RSS table; expected lines `queues 4`, `entries 128` and `table 0 1 2 3`";
            root.content_error(&path, expected)
        })
    };
    text.map(parse).transpose()
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
    let path = rss_file(interface);
    let now = self::rss(root, interface).map_err(io::Error::other)?;
    let function = now.map_or(0, |now| now.function);
    root.write(
        &path,
        &Rss {
            function,
            ..rss.clone()
        }
        .to_text(),
    )
}

/// The feature of ntuple filters, by the kernel's name (`netdev_features_strings`); ethtool calls it `ntuple`.
const NTUPLE: &str = "rx-ntuple-filter";

/// Whether ntuple filters are on; `None` where they cannot be turned on and off. Needs no privilege.
pub(crate) fn ntuple(root: &Root, interface: &str) -> Result<Option<bool>, FileError> {
    let path = features_file(interface);
    let text = if root.is_real() {
        let answer = ioctls::get_feature(interface, NTUPLE);
        let text = answer.ok().map(|(on, changeable)| {
            format!(
                "{NTUPLE} {}{}\n",
                on_or_off(on),
                if changeable { "" } else { " fixed" }
            )
        });
        let text = text.unwrap_or_default();
        root.remember(&path, || text.clone());
        text
    } else {
        root.read_opt(&path)?.unwrap_or_default()
    };
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(NTUPLE))
        .map(str::trim);
    Ok(value.and_then(|value| [false, true].into_iter().find(|&on| on_or_off(on) == value)))
}

/// Turns ntuple filters on or off. Needs `CAP_NET_ADMIN`.
pub(crate) fn set_ntuple(root: &Root, interface: &str, on: bool) -> io::Result<()> {
    if root.is_real() {
        require_same(root, interface)?;
        return Ok(ioctls::set_feature(interface, NTUPLE, on)?);
    }
    root.write(
        &features_file(interface),
        &format!("{NTUPLE} {}\n", on_or_off(on)),
    )
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
