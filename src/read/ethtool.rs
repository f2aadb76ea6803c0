//! Questions and changes to an interface by ioctl (`SIOCETHTOOL`, `include/uapi/linux/ethtool.h`); in a tree, the
//! answers recorded below `/nicpin/ethtool/INTERFACE`. Questions need no privilege, changes `CAP_NET_ADMIN`.
//!
//! Ioctls and netlink are about this process's network namespace, `/sys` about the one in which it was mounted:
//! `is_same` tells them apart.

use std::io;
use std::iter::once;

use nix::errno::Errno::{EAGAIN, EBUSY, ENETDOWN, EOPNOTSUPP};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cpuset::Inserted as _;
use crate::machine::files::{NET, ethtool_file as file};
use crate::machine::rx_hash::{Filter, FilterTarget, FlowKind, Key, RssContext, RxHash};
use crate::machine::{Channels, Rss};
use crate::read::files::name_in;
use crate::read::others::bus_device;
use crate::root::sys::ethtool as ioctls;
use crate::root::{Result, Root, is_absent};

/// The key that `netdev_rss_key_fill` gives to drivers (`Documentation/admin-guide/sysctl/net.rst`).
const SYSTEM_KEY: &str = "/proc/sys/net/core/netdev_rss_key";
const RELEASE: &str = "/proc/sys/kernel/osrelease";
/// By the kernel's name (`netdev_features_strings`); ethtool calls it `ntuple`.
const NTUPLE: &str = "rx-ntuple-filter";

/// Passes the device's hash to the stack; ethtool calls it `receive-hashing`.
const RX_HASH: &str = "rx-hashing";

#[derive(Serialize, Deserialize)]
struct RecordedRss {
    function: u8,
    table: String,
}

#[derive(Serialize, Deserialize)]
struct DriverInfo {
    /// Empty in older captures.
    #[serde(default)]
    name: String,
    version: String,
    firmware: String,
}

#[derive(Serialize, Deserialize)]
struct LinkModes {
    supported: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Features {
    ntuple: Option<bool>,
}

/// `None` if the driver has no answer or is not ready, like some interfaces that are down.
fn optional_answer<T>(answer: nix::Result<T>) -> io::Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(EBUSY | EAGAIN | ENETDOWN) => Ok(None),
        Err(errno) if is_absent(&errno.into()) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn ask_or_recorded<T: Serialize + DeserializeOwned>(
    root: &Root,
    interface: &str,
    question: &str,
    ask: impl FnOnce() -> nix::Result<T>,
) -> Result<Option<T>> {
    root.answer(&file(interface, question), || optional_answer(ask()))
}

/// Whether ioctls and netlink are about the interface that `/sys` has under this name: same index, and same bus or
/// hardware address.
pub(crate) fn is_same(root: &Root, interface: &str) -> Result<bool> {
    let path = file(interface, "other-namespace");
    if !root.is_real() {
        return Ok(!root.is_there(&path)?);
    }
    let net = root.dir(format!("{NET}/{interface}"));
    let shown =
        |file: &str| -> Result<String> { Ok(net.read_text(file)?.trim().to_ascii_lowercase()) };
    let unread = |error| root.io_error(&path, error);
    let same = match optional_answer(ioctls::get_identity(interface)).map_err(unread)? {
        Some((index, address)) if shown("ifindex")? == index.to_string() => {
            let device = bus_device(&net)?;
            optional_answer(ioctls::get_driver(interface))
                .map_err(unread)?
                .is_some_and(|[_, _, _, bus]| device.is_some_and(|device| device.name() == bus))
                || shown("address")? == address.map(|byte| format!("{byte:02x}")).join(":")
        }
        _ => false,
    };
    if !same && root.is_there(&net.path)? {
        root.remember(&path, String::new);
    }
    Ok(same)
}

fn driver(root: &Root, interface: &str) -> Result<Option<DriverInfo>> {
    ask_or_recorded(root, interface, "driver", || {
        let [name, version, firmware, _] = ioctls::get_driver(interface)?;
        Ok(DriverInfo {
            name,
            version,
            firmware,
        })
    })
}

pub(crate) fn driver_name(root: &Root, interface: &str) -> Result<Option<String>> {
    Ok(driver(root, interface)?.map(|driver| driver.name))
}

pub(crate) fn statistics(root: &Root, interface: &str) -> Result<Vec<(String, u64)>> {
    let counters = || ioctls::get_statistics(interface);
    Ok(ask_or_recorded(root, interface, "statistics", counters)?.unwrap_or_default())
}

pub(crate) fn versions(root: &Root, interface: &str) -> Result<(Option<String>, Option<String>)> {
    let driver = driver(root, interface)?;
    let shown = |text: &str| {
        let text = name_in(text);
        (!text.is_empty() && text != "N/A").then(|| text.replace(char::is_control, " "))
    };
    Ok(driver.map_or((None, None), |driver| {
        (shown(&driver.version), shown(&driver.firmware))
    }))
}

/// In Mbit/s; `None` if the driver lists no modes, or the kernel has no names for them (before Linux 5.6).
pub(crate) fn fastest_mode(root: &Root, interface: &str) -> Result<Option<u32>> {
    let modes = ask_or_recorded(root, interface, "link-modes", || {
        Ok(LinkModes {
            supported: ioctls::get_link_modes(interface)?,
        })
    })?;
    // Other bits, such as `Autoneg` and `FIBRE`, have no speed.
    Ok(modes
        .into_iter()
        .flat_map(|modes| modes.supported)
        .filter_map(|mode| mode.split_once("base")?.0.parse().ok())
        .max())
}

/// Also returns whether the driver was asked: a tree made by hand has no answer.
pub(crate) fn channels(root: &Root, interface: &str) -> Result<(Option<Channels>, bool)> {
    // A driver that is not ready may have channels, so its refusal is not "none".
    let answer = ask_or_recorded(root, interface, "channels", || {
        match ioctls::get_channels(interface) {
            Err(errno) if is_absent(&errno.into()) => Ok(None),
            numbers => Ok(Some(Channels::from_numbers(numbers?))),
        }
    })?;
    Ok((answer.flatten(), answer.is_some()))
}

/// Takes the link down for a moment with most drivers.
pub(crate) fn set_channels(root: &Root, interface: &str, channels: &Channels) -> io::Result<()> {
    change(
        root,
        interface,
        "channels",
        || ioctls::set_channels(interface, channels.to_numbers()),
        || Ok(channels),
    )
}

fn change<T: Serialize>(
    root: &Root,
    interface: &str,
    question: &str,
    set: impl FnOnce() -> nix::Result<()>,
    recorded: impl FnOnce() -> Result<T>,
) -> io::Result<()> {
    if !root.is_real() {
        return root.write_answer(&file(interface, question), &recorded()?);
    }
    if is_same(root, interface)? {
        return Ok(set()?);
    }
    Err(io::Error::other(
        "/sys shows it from another network namespace than that of nicpin, where its name means another interface or \
         none",
    ))
}

pub(crate) fn rss(root: &Root, interface: &str) -> Result<Option<Rss>> {
    let answer = ask_or_recorded(root, interface, "rss", || {
        let (table, queues, function) = ioctls::get_rss(interface)?;
        let table = Rss {
            table,
            queues,
            function,
        }
        .to_setting();
        // A table that nicpin could not write again is not changed.
        Rss::parse(&table).ok_or(EOPNOTSUPP)?;
        Ok(RecordedRss { function, table })
    })?;
    let Some(RecordedRss { function, table }) = answer else {
        return Ok(None);
    };
    let rss = Rss::parse(&table).ok_or_else(|| {
        root.content_error(
            &file(interface, "rss"),
            "not an RSS table; expected `queues 4, entries 128, table 0 1 2 3`",
        )
    })?;
    Ok(Some(Rss { function, ..rss }))
}

/// A table that is the kernel's default is set as such, and follows later changes of channels. Hash function and key
/// stay.
pub(crate) fn set_rss(root: &Root, interface: &str, rss: &Rss) -> io::Result<()> {
    change(
        root,
        interface,
        "rss",
        || ioctls::set_rss(interface, if rss.is_default() { &[] } else { &rss.table }),
        || {
            let now = self::rss(root, interface)?;
            Ok(RecordedRss {
                function: now.map_or(0, |now| now.function),
                table: rss.to_setting(),
            })
        },
    )
}

pub(crate) fn ntuple(root: &Root, interface: &str) -> Result<Option<bool>> {
    let features = ask_or_recorded(root, interface, "features", || {
        let (on, changeable) = ioctls::get_feature(interface, NTUPLE)?;
        Ok(Features {
            ntuple: changeable.then_some(on),
        })
    })?;
    Ok(features.and_then(|features| features.ntuple))
}

pub(crate) fn set_ntuple(root: &Root, interface: &str, on: bool) -> io::Result<()> {
    change(
        root,
        interface,
        "features",
        || ioctls::set_feature(interface, NTUPLE, on),
        || Ok(Features { ntuple: Some(on) }),
    )
}

pub(crate) fn rx_hash(root: &Root, interface: &str) -> Result<Option<RxHash>> {
    let mut found = RxHash::default();
    if root.is_real() {
        found.system_key = root
            .read_as(SYSTEM_KEY, |text: &str| {
                Key::parse(text).ok_or("is not a key")
            })?
            .unwrap_or_default();
        found.release = release(&root.read_text(RELEASE)?);
    }
    root.answer(&file(interface, "rx-hash"), || {
        Ok(Some(ask(interface, found)))
    })
}

/// `6.12.95-amd64` is (6, 12).
fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn ask(interface: &str, found: RxHash) -> RxHash {
    let filters = match ioctls::get_filters(interface) {
        Err(EOPNOTSUPP) => Some(Vec::new()),
        filters => filters.ok(),
    };
    let filter_count = filters
        .as_ref()
        .and_then(|found| u32::try_from(found.len()).ok());
    let filters: Vec<Filter> = filters
        .into_iter()
        .flatten()
        .map(|(spec, context)| Filter::parse(&spec, context))
        .collect();
    let named = filters.iter().filter_map(|filter| match filter.to {
        FilterTarget::Context { context, .. } => Some(context),
        _ => None,
    });
    let context = |number| {
        let (function, transform, key, table) = ioctls::get_context(interface, number).ok()?;
        let context = RssContext {
            function,
            transform,
            key: Key(key),
            table,
        };
        (!context.table.is_empty()).then_some((number, context))
    };
    let is_on = |feature| {
        let (on, _) = ioctls::get_feature(interface, feature).ok()?;
        Some(on)
    };
    RxHash {
        contexts: once(0).chain(named).filter_map(context).inserted(),
        fields: FlowKind::ALL
            .iter()
            .filter_map(|&(kind, number)| Some((kind, ioctls::get_fields(interface, number).ok()?)))
            .inserted(),
        to_stack: is_on(RX_HASH),
        ntuple: is_on(NTUPLE),
        filter_count,
        filters,
        ..found
    }
}
