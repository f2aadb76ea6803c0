//! The kernel's messages as bytes: links and queueing disciplines of rtnetlink, notifications of ethtool, uevents. A
//! torn message is an error, an unknown one is left out.

use std::ffi::CStr;
use std::io;

use netlink_bindings::rt_link::OpGetlinkDump;
use nix::libc::ARPHRD_LOOPBACK;

use crate::watch::event::Event;
use crate::watch::event::EventKind::{Added, Bind, Channels, Cpu, Device, Rss};
use nicpin::read::netlink::{attribute, messages};

/// `RTM_NEWLINK`, `RTM_DELLINK` (`include/uapi/linux/rtnetlink.h`).
const LINK_MESSAGES: [u16; 2] = [16, 17];
const AF_UNSPEC: u8 = 0;

pub fn links(datagram: &[u8]) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for message in messages(datagram) {
        let (header, payload) = message?;
        // A bridge reports its ports in messages of its own family, without the kind of the interface.
        if !LINK_MESSAGES.contains(&header.r#type) || payload.first() != Some(&AF_UNSPEC) {
            continue;
        }
        let (head, link) = OpGetlinkDump::decode_request(payload);
        // A port of a bond or bridge has information without a kind of its own.
        let has_kind = link
            .get_linkinfo()
            .is_ok_and(|info| info.get_kind().is_ok());
        let is_virtual = head.ifi_type == ARPHRD_LOOPBACK || has_kind;
        if !is_virtual || link.get_parent_dev_name().is_ok() {
            names.push(word(link.get_ifname().ok())?);
        }
    }
    Ok(names)
}

/// `RTM_NEWQDISC`, `RTM_DELQDISC`.
pub const QDISC_MESSAGES: [u16; 2] = [36, 37];

/// Indexes of interfaces (`struct tcmsg`).
pub fn qdiscs(datagram: &[u8]) -> io::Result<Vec<u32>> {
    let mut indexes = Vec::new();
    for message in messages(datagram) {
        let (header, payload) = message?;
        if QDISC_MESSAGES.contains(&header.r#type) {
            let index = payload.get(4..8).and_then(<[u8]>::first_chunk);
            indexes.push(u32::from_ne_bytes(*index.ok_or_else(torn)?));
        }
    }
    indexes.dedup();
    Ok(indexes)
}

/// `ETHTOOL_MSG_PRIVFLAGS_NTF`, `ETHTOOL_MSG_RINGS_NTF`, `ETHTOOL_MSG_CHANNELS_NTF`: many drivers then request new IRQs
/// (`include/uapi/linux/ethtool_netlink_generated.h`).
const CHANGES: [u8; 3] = [15, 17, 19];
/// `ETHTOOL_MSG_RSS_NTF`, of newer kernels: a planned table may have changed.
const RSS_CHANGE: u8 = 50;
const GENLMSGHDR: usize = 4;
/// The header of each notification, and in it the interface's name (`ETHTOOL_A_HEADER_DEV_NAME`).
const HEADER: u16 = 1;
const DEVICE_NAME: u16 = 2;

pub fn channels(datagram: &[u8]) -> io::Result<Vec<Event>> {
    let mut events = Vec::new();
    for message in messages(datagram) {
        let (_, payload) = message?;
        let kind = match payload.first() {
            Some(&RSS_CHANGE) => Some(Rss),
            Some(command) if CHANGES.contains(command) => Some(Channels),
            _ => None,
        };
        if let Some(kind) = kind {
            let name = attribute(payload.get(GENLMSGHDR..).ok_or_else(torn)?, HEADER)
                .and_then(|header| attribute(header, DEVICE_NAME));
            let name = word(name.and_then(|name| CStr::from_bytes_until_nul(name).ok()))?;
            events.push(Event::new(kind, name));
        }
    }
    Ok(events)
}

/// Parses `ACTION@DEVPATH`, then `KEY=VALUE`, with a NUL after each. `None` if the uevent is no reason to look at the
/// machine. [`Bind`] is about the device's path below `/sys`.
pub fn uevent(datagram: &[u8]) -> Option<Event> {
    let text = String::from_utf8_lossy(datagram);
    let mut fields = text.split('\0');
    let (action, path) = fields.next()?.split_once('@')?;
    let subsystem = fields.find_map(|field| field.strip_prefix("SUBSYSTEM="));
    let mut names = path.rsplit('/');
    let last = names.next().unwrap_or_default();
    let (kind, about) = match subsystem {
        Some("net" | "queues") if path.starts_with("/devices/virtual/") => return None,
        Some("net") if action == "add" => (Added, last),
        Some("net") => (Device, last),
        // /devices/pci0000:80/0000:82:00.0/net/eth2/queues/rx-0
        Some("queues") => (Device, names.nth(1).unwrap_or_default()),
        Some("cpu") if ["online", "offline", "add", "remove"].contains(&action) => {
            (Cpu, last.trim_start_matches("cpu"))
        }
        _ if action == "bind" => (Bind, path),
        _ => return None,
    };
    Some(Event::new(kind, about))
}

fn word(name: Option<&CStr>) -> io::Result<String> {
    let name = name.ok_or_else(torn)?.to_string_lossy();
    Ok(name.replace(char::is_control, "?"))
}

fn torn() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::watch::event::EventKind;

    fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(4 + payload.len()).unwrap();
        let mut bytes = [&length.to_ne_bytes(), &kind.to_ne_bytes(), payload].concat();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(16 + payload.len()).unwrap();
        [
            &length.to_ne_bytes()[..],
            &kind.to_ne_bytes(),
            &[0; 10],
            payload,
        ]
        .concat()
    }

    fn link(kind: u16, hardware: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
        let head = [&[0, 0][..], &hardware.to_ne_bytes(), &[0; 12]].concat();
        message(kind, &[head, attributes.concat()].concat())
    }

    const ETHER: u16 = 1;

    #[test]
    fn links_without_hardware_are_left_out() {
        // IFLA_IFNAME, IFLA_LINKINFO with IFLA_INFO_KIND, IFLA_PARENT_DEV_NAME.
        let name = |name: &str| attribute(3, format!("{name}\0").as_bytes());
        let of_kind = |kind: &str| attribute(0x8012, &attribute(1, kind.as_bytes()));
        // IFLA_INFO_SLAVE_KIND.
        let port_of = |kind: &str| attribute(18, &attribute(4, kind.as_bytes()));
        let datagram = [
            link(16, ETHER, &[name("eth0"), attribute(7, &[1])]),
            link(16, ETHER, &[name("veth3"), of_kind("veth\0")]),
            link(17, ETHER, &[port_of("bond\0"), name("eth1")]),
            link(16, ARPHRD_LOOPBACK, &[name("lo")]),
            link(
                16,
                ETHER,
                &[
                    name("ib0"),
                    of_kind("ipoib\0"),
                    attribute(56, b"0000:3b:00.0\0"),
                ],
            ),
            // RTM_NEWADDR and the end of a dump.
            link(20, ETHER, &[name("eth4")]),
            message(3, &[0; 4]),
            // AF_BRIDGE.
            message(16, &[&[7; 16][..], &name("eth5")].concat()),
        ];
        assert_eq!(links(&datagram.concat()).unwrap(), ["eth0", "eth1", "ib0"]);
        assert_eq!(links(&[]).unwrap(), [""; 0]);
        let whole = link(16, ETHER, &[name("eth0")]);
        for end in 1..whole.len() {
            assert!(links(&whole[..end]).is_err(), "{end} bytes");
        }
    }

    #[test]
    fn channels_rings_and_private_flags_are_events() {
        let header = attribute(
            HEADER | 0x8000,
            &[attribute(1, &[7, 0, 0, 0]), attribute(2, b"eth2\0")].concat(),
        );
        // Coalescing and pause settings free no IRQ.
        let about_eth2 = |kind| vec![Event::new(kind, "eth2")];
        for (command, expected) in [
            (15, about_eth2(Channels)),
            (17, about_eth2(Channels)),
            (19, about_eth2(Channels)),
            (50, about_eth2(Rss)),
            (21, vec![]),
            (23, vec![]),
            (2, vec![]),
        ] {
            let datagram = message(
                0x15,
                &[
                    &[command, 1, 0, 0],
                    &header[..],
                    &attribute(9, &[4, 0, 0, 0]),
                ]
                .concat(),
            );
            assert_eq!(channels(&datagram).unwrap(), expected, "{command}");
        }
    }

    #[test]
    fn queueing_disciplines_are_events() {
        let tcmsg = |index: u32| [&[0; 4][..], &index.to_ne_bytes(), &[0; 12]].concat();
        let datagram = [
            // A class and a filter.
            message(40, &tcmsg(7)),
            message(44, &tcmsg(8)),
            message(37, &tcmsg(3)),
            message(36, &[tcmsg(3), attribute(1, b"mqprio\0")].concat()),
        ];
        assert_eq!(qdiscs(&datagram.concat()).unwrap(), [3]);
        assert!(qdiscs(&message(36, &[0; 4])).is_err());
    }

    #[test]
    fn uevents_of_interfaces_cpus_and_drivers() {
        let read = |text: &str| uevent(text.replace('|', "\0").as_bytes());
        let nic = "/devices/pci0000:80/0000:82:00.0/net/eth2";
        for (text, expected) in [
            (
                format!("add@{nic}|ACTION=add|SUBSYSTEM=net|INTERFACE=eth2|"),
                Some(Event::new(EventKind::Added, "eth2")),
            ),
            (
                format!("add@{nic}/queues/rx-3|SUBSYSTEM=queues|"),
                Some(Event::new(EventKind::Device, "eth2")),
            ),
            (
                format!("move@{nic}|SUBSYSTEM=net|"),
                Some(Event::new(EventKind::Device, "eth2")),
            ),
            (
                format!("remove@{nic}/queues/rx-3|SUBSYSTEM=queues|"),
                Some(Event::new(EventKind::Device, "eth2")),
            ),
            ("add@/devices/virtual/net/veth1|SUBSYSTEM=net|".into(), None),
            (
                "add@/devices/virtual/net/veth1/queues/tx-0|SUBSYSTEM=queues|".into(),
                None,
            ),
            (
                "offline@/devices/system/cpu/cpu3|SUBSYSTEM=cpu|".into(),
                Some(Event::new(EventKind::Cpu, "3")),
            ),
            (
                "change@/devices/system/cpu/cpu3|SUBSYSTEM=cpu|".into(),
                None,
            ),
            (
                "bind@/devices/pci0000:00/0000:00:03.0/virtio0|SUBSYSTEM=virtio|".into(),
                Some(Event::new(
                    EventKind::Bind,
                    "/devices/pci0000:00/0000:00:03.0/virtio0",
                )),
            ),
            (
                "unbind@/devices/pci0000:00/0000:00:03.0|SUBSYSTEM=pci|".into(),
                None,
            ),
            ("change@/devices/x|SUBSYSTEM=block|".into(), None),
            // As udev sends it to its own group.
            ("libudev|SUBSYSTEM=net|".into(), None),
            (String::new(), None),
        ] {
            assert_eq!(read(&text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_message_is_too_odd(bytes: Vec<u8>) {
            let _ = (links(&bytes), channels(&bytes), uevent(&bytes), qdiscs(&bytes));
            let _ = links(&link(16, ETHER, std::slice::from_ref(&bytes)));
            let _ = channels(&message(0x15, &[&[19, 1, 0, 0], &bytes[..]].concat()));
        }
    }
}
