//! Requests to netlink, as bytes: which queue has which IRQ (the generic family `netdev`), and other names and lower
//! interfaces of interfaces. One socket, one request at a time; the kernel answers within the request.
//!
//! Messages and attributes are those of `netlink_bindings`, made from the kernel's own description of the family. The
//! socket is here because it needs a timeout, and because no answer, whatever its content, may end the program.
//!
//! Incomplete answers are common: the family or a command is missing, the driver reports no IRQ, an interface that is
//! down has none. They count as absence; a request that fails for another reason is an error. A tree has answers in
//! `/nicpin/netlink/INTERFACE`, `/nicpin/altnames` and `/nicpin/lowers`.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd as _, OwnedFd};

use netlink_bindings::builtin::Nlmsghdr;
use netlink_bindings::netdev::{self, NapiThreaded, QstatsScope, QueueType};
use netlink_bindings::nlctrl::{self, IterableCtrlAttrs};
use netlink_bindings::rt_link::{Ifinfomsg, IterableLinkAttrs, Request};
use netlink_bindings::traits::{NetlinkRequest, Protocol};
use netlink_bindings::utils::IterableChunks;
use nix::errno::Errno;
use nix::libc::{NLMSG_DONE, NLMSG_ERROR, NLMSG_MIN_TYPE};
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, connect, recv, send,
    setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike as _};
use serde::{Deserialize, Serialize};

use crate::machine::netdev::QueueUser::{AfXdp, DeviceMemory, IoUring};
use crate::machine::netdev::{Direction, Napi, Netdev, NetdevQueue};
use crate::machine::setting::NET;
use crate::read::files::number;
use crate::root::{Result, Root, is_absent};

/// Directory of answers of the family `netdev` in a tree.
const RECORDED: &str = "/nicpin/netlink";
/// Other names of interfaces in a tree.
pub const ALTNAMES: &str = "/nicpin/altnames";
/// Lower interfaces in a tree.
pub const LOWERS: &str = "/nicpin/lowers";
/// `RTEXT_FILTER_SKIP_STATS` (`include/uapi/linux/rtnetlink.h`).
const WITHOUT_COUNTERS: u32 = 1 << 3;
/// Size of the longest datagram that the kernel makes for a dump, in bytes (`netlink_recvmsg`,
/// `net/netlink/af_netlink.c`).
const LONGEST: usize = 32 << 10;
/// `NLM_F_REQUEST` and `NLM_F_ACK` (`include/uapi/linux/netlink.h`), without which a single answer has no end.
const REQUEST: u16 = 1 | 4;

#[derive(Debug, Default)]
pub(crate) struct Links {
    /// The other names of each interface that has any (`ip link property`, Linux 5.5 and later).
    pub(crate) altnames: BTreeMap<String, Vec<String>>,
    /// Lower interfaces: `/sys` has no `lower_*` for tunnels with `dev`, nor for a vxlan before Linux 5.4.
    pub(crate) lowers: BTreeMap<String, Lower>,
}

/// The interface that another, upper one is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lower {
    pub(crate) on: String,
    /// The kernel's word for the kind of the upper interface (`IFLA_INFO_KIND`).
    pub(crate) kind: String,
}

struct Link {
    index: u32,
    name: String,
    altnames: Vec<String>,
    /// The index of the lower interface, and the kind of this one.
    lower: Option<(u32, String)>,
}

pub(crate) fn links(root: &Root) -> Result<Links> {
    let mut asked = None;
    let altnames = root.answer(ALTNAMES, || {
        let named = asked.insert(all_links()?).iter();
        let named = named.filter(|link| !link.altnames.is_empty());
        let named: BTreeMap<_, _> = named
            .map(|link| (link.name.clone(), link.altnames.clone()))
            .collect();
        Ok((!named.is_empty()).then_some(named))
    })?;
    let lowers = root.answer(LOWERS, || {
        let links = asked.unwrap_or_default();
        let lowers = lowers(&links);
        Ok((!lowers.is_empty()).then_some(lowers))
    })?;
    Ok(Links {
        altnames: altnames.unwrap_or_default(),
        lowers: lowers.unwrap_or_default(),
    })
}

fn lowers(links: &[Link]) -> BTreeMap<String, Lower> {
    let names: BTreeMap<u32, &String> = links.iter().map(|link| (link.index, &link.name)).collect();
    let on = |link: &Link| {
        let (index, kind) = link.lower.clone()?;
        let on = (*names.get(&index)?).clone();
        Some((link.name.clone(), Lower { on, kind }))
    };
    links.iter().filter_map(on).collect()
}

/// Kinds of interfaces whose link is their peer, not a lower interface.
const PAIRS: [&CStr; 3] = [c"veth", c"vxcan", c"netkit"];
/// `IFLA_INFO_DATA`, and in it `IFLA_VXLAN_LINK` (`include/uapi/linux/if_link.h`).
const INFO_DATA: u16 = 2;
const VXLAN_LINK: u16 = 3;

fn all_links() -> io::Result<Vec<Link>> {
    let mut request = Request::new().op_getlink_dump(&Ifinfomsg::new());
    request.encode().push_ext_mask(WITHOUT_COUNTERS);
    Client::connect(SockProtocol::NetlinkRoute)?.request(&request, |(head, link)| {
        let text = |name: &CStr| name.to_string_lossy().into_owned();
        // The getter fails if the attribute is absent.
        let altnames = link
            .get_prop_list()
            .map(|list| list.get_alt_ifname().map(text).collect());
        let index = u32::try_from(head.ifi_index).ok()?;
        Some(Link {
            index,
            name: text(link.get_ifname().ok()?),
            altnames: altnames.unwrap_or_default(),
            lower: lower(&link).filter(|(lower, _)| *lower != index),
        })
    })
}

/// The index of the lower interface in this network namespace, and the kind of the upper one.
fn lower(link: &IterableLinkAttrs<'_>) -> Option<(u32, String)> {
    let info = link.get_linkinfo().ok()?;
    let kind = info.get_kind().ok().filter(|kind| !PAIRS.contains(kind))?;
    let number = |bytes: &[u8]| Some(u32::from_ne_bytes(*bytes.first_chunk()?));
    let of_vxlan = || {
        let data = attribute(info.get_buf(), INFO_DATA).filter(|_| kind == c"vxlan")?;
        number(attribute(data, VXLAN_LINK)?)
    };
    let is_elsewhere = link.get_link_netnsid().is_ok();
    let index = of_vxlan().or_else(|| link.get_link().ok().filter(|_| !is_elsewhere))?;
    // Index 0 stands for none.
    (index != 0).then(|| (index, kind.to_string_lossy().into_owned()))
}

pub fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    let mut all = IterableChunks::new(bytes);
    all.find_map(|(header, value)| (header.r#type == kind).then_some(value))
}

/// Opens the kernel's netlink on a live machine; `None` in a tree, and on a kernel without the family.
pub(crate) fn open(root: &Root) -> Result<Option<Client>> {
    match root.is_real().then(Client::open).transpose() {
        Err(error) if is_absent(&error) => Ok(None),
        client => client.map_err(|error| root.io_error(RECORDED, error)),
    }
}

/// The answer about an interface; `None` if there is none. `threaded`: `/sys` reports threaded NAPI.
pub(crate) fn netdev(
    root: &Root,
    client: Option<&mut Client>,
    interface: &str,
    threaded: bool,
) -> Result<Option<Netdev>> {
    let index = match &client {
        Some(_) => root.read_as(&format!("{NET}/{interface}/ifindex"), number)?,
        None => None,
    };
    let answer = root
        .answer(&format!("{RECORDED}/{interface}"), || {
            let Some((client, index)) = client.zip(index) else {
                return Ok(None);
            };
            let answer = client.ask(index, threaded)?;
            Ok(Some(answer).filter(|answer| !answer.is_empty()))
        })?
        .map(Netdev::in_order);
    Ok(answer.filter(|answer| !answer.is_empty()))
}

/// A socket to the kernel, and the number of its `netdev` family.
#[derive(Debug)]
pub struct Client {
    socket: OwnedFd,
    family: u16,
    sequence: u32,
}

impl Client {
    /// Fails without generic netlink, and before Linux 6.3, which has no such family.
    pub fn open() -> io::Result<Self> {
        let (mut client, family) =
            Self::of_family(netdev::PROTONAME_CSTR, |reply| reply.get_family_id().ok())?;
        client.family = family;
        Ok(client)
    }

    /// The number of a multicast group of a generic netlink family; it differs from boot to boot.
    pub fn group(family: &CStr, name: &CStr) -> io::Result<u32> {
        let (_, group) = Self::of_family(family, |reply| {
            reply
                .get_mcast_groups()
                .ok()?
                .find_map(|group| (group.get_name().ok()? == name).then(|| group.get_id().ok())?)
        })?;
        Ok(group)
    }

    /// Opens a generic netlink socket, and reads the attributes of a family.
    fn of_family<T>(
        name: &CStr,
        read: impl Fn(IterableCtrlAttrs<'_>) -> Option<T>,
    ) -> io::Result<(Self, T)> {
        let mut client = Self::connect(SockProtocol::NetlinkGeneric)?;
        // The family of families has a fixed number, not that of this socket.
        let mut request = nlctrl::Request::new().op_getfamily_do();
        request.encode().push_family_name(name);
        let found = client.request(&request, read)?.into_iter().next();
        Ok((client, found.ok_or(Errno::ENOENT)?))
    }

    /// Opens a socket of a protocol without families.
    pub(crate) fn connect(protocol: SockProtocol) -> io::Result<Self> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            protocol,
        )?;
        // To the kernel: messages of other processes are refused.
        connect(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        // The kernel answers at once; anything else must not make nicpin wait.
        setsockopt(&socket, ReceiveTimeout, &TimeVal::seconds(2))?;
        Ok(Self {
            socket,
            family: 0,
            sequence: 0,
        })
    }

    /// Asks about an interface by its index; the answer is incomplete if the kernel has only one of the commands.
    /// `threaded`: `/sys` reports threaded NAPI.
    pub fn ask(&mut self, ifindex: u32, threaded: bool) -> io::Result<Netdev> {
        let mut queues = netdev::Request::new().op_queue_get_dump();
        queues.encode().push_ifindex(ifindex);
        let mut napis = netdev::Request::new().op_napi_get_dump();
        napis.encode().push_ifindex(ifindex);
        Ok(Netdev {
            queues: empty_if_absent(self.request(&queues, |reply| queue(&reply, ifindex)))?,
            napis: empty_if_absent(self.request(&napis, |reply| napi(&reply, ifindex, threaded)))?,
        })
    }

    /// Reads the packets of each queue of an interface (Linux 6.10); empty if the driver does not report them.
    pub(crate) fn packets(&mut self, ifindex: u32) -> io::Result<Vec<(Direction, u32, u64)>> {
        let mut request = netdev::Request::new().op_qstats_get_dump();
        let encoder = request.encode();
        encoder
            .push_ifindex(ifindex)
            .push_scope(QstatsScope::Queue as u32);
        empty_if_absent(self.request(&request, |reply| {
            let id = reply.get_queue_id().ok()?;
            let packets = match QueueType::from_value(reply.get_queue_type().ok()?.into())? {
                QueueType::Rx => (Direction::Rx, id, reply.get_rx_packets().ok()?.into()),
                QueueType::Tx => (Direction::Tx, id, reply.get_tx_packets().ok()?.into()),
            };
            (reply.get_ifindex().ok()? == ifindex).then_some(packets)
        }))
    }

    /// Sends a request and returns the facts that `read` takes from the messages of the answer.
    pub(crate) fn request<R: NetlinkRequest, T>(
        &mut self,
        request: &R,
        read: impl Fn(R::ReplyType<'_>) -> Option<T>,
    ) -> io::Result<Vec<T>> {
        self.sequence = self.sequence.wrapping_add(1);
        let family = match request.protocol() {
            Protocol::Raw { request_type, .. } => request_type,
            Protocol::Generic(_) => self.family,
        };
        let message = message(
            family,
            request.flags() | REQUEST,
            self.sequence,
            request.payload(),
        );
        let socket = self.socket.as_raw_fd();
        send(socket, &message, MsgFlags::empty())?;
        let (mut buffer, mut facts) = (vec![0; LONGEST], Vec::new());
        loop {
            let length = recv(socket, &mut buffer, MsgFlags::MSG_TRUNC)?;
            let each = |payload: &[u8]| facts.extend(read(R::decode_reply(payload)));
            if take(buffer.get(..length).ok_or_else(torn)?, self.sequence, each)? {
                return Ok(facts);
            }
        }
    }
}

/// Turns the error for a missing command or interface into an empty answer.
fn empty_if_absent<T>(answer: io::Result<Vec<T>>) -> io::Result<Vec<T>> {
    match answer {
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        answer => answer,
    }
}

fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let header = Nlmsghdr {
        len: u32::try_from(Nlmsghdr::len() + payload.len()).unwrap_or(u32::MAX),
        r#type: kind,
        flags,
        seq: sequence,
        pid: 0,
    };
    [header.as_slice(), payload].concat()
}

/// Passes the messages of a datagram that answer the request to `each`; returns whether the answer ends with it.
fn take(bytes: &[u8], sequence: u32, mut each: impl FnMut(&[u8])) -> io::Result<bool> {
    for message in messages(bytes) {
        let (header, payload) = message?;
        match i32::from(header.r#type) {
            _ if header.seq != sequence => {}
            // 0 in an acknowledgement and at the end of a dump, a negative errno in an error.
            NLMSG_DONE | NLMSG_ERROR => {
                return match i32::from_ne_bytes(*payload.first_chunk().ok_or_else(torn)?) {
                    0 => Ok(true),
                    code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
                };
            }
            kind if kind >= NLMSG_MIN_TYPE => each(payload),
            _ => {}
        }
    }
    Ok(false)
}

/// Splits a datagram into messages with their headers; an error after the last complete one.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = io::Result<(Nlmsghdr, &[u8])>> {
    std::iter::from_fn(move || {
        let rest = std::mem::take(&mut bytes);
        if rest.is_empty() {
            return None;
        }
        Some(
            rest.first_chunk()
                .and_then(|header| {
                    let header = Nlmsghdr::new_from_array(*header);
                    let length = header.len as usize;
                    let payload = rest.get(Nlmsghdr::len()..length)?;
                    bytes = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
                    Some((header, payload))
                })
                .ok_or_else(torn),
        )
    })
}

fn torn() -> io::Error {
    ErrorKind::InvalidData.into()
}

fn queue(reply: &netdev::IterableQueue, ifindex: u32) -> Option<NetdevQueue> {
    (reply.get_ifindex().ok()? == ifindex).then_some(NetdevQueue {
        direction: match QueueType::from_value(reply.get_type().ok()?.into())? {
            QueueType::Rx => Direction::Rx,
            QueueType::Tx => Direction::Tx,
        },
        id: reply.get_id().ok()?,
        napi: reply.get_napi_id().ok(),
        user: if reply.get_xsk().is_ok() {
            Some(AfXdp)
        } else if reply.get_io_uring().is_ok() {
            Some(IoUring)
        } else {
            reply.get_dmabuf().ok().map(|_| DeviceMemory)
        },
    })
}

fn napi(reply: &netdev::IterableNapi, ifindex: u32, threaded: bool) -> Option<Napi> {
    // Linux 6.8 to 6.16 keep the thread, and report it, when NAPI is no longer threaded; later kernels report for each
    // instance whether it is threaded.
    let own = reply.get_threaded().ok();
    (reply.get_ifindex().ok()? == ifindex).then_some(Napi {
        id: reply.get_id().ok()?,
        irq: reply.get_irq().ok(),
        pid: reply
            .get_pid()
            .ok()
            .filter(|_| own.map_or(threaded, |own| own != 0)),
        busy_polls: own == Some(NapiThreaded::BusyPoll as u32),
        defer_hard_irqs: reply.get_defer_hard_irqs().unwrap_or(0),
        gro_flush_timeout: reply.get_gro_flush_timeout().unwrap_or(0),
        irq_suspend_timeout: reply.get_irq_suspend_timeout().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message of 32-bit attributes after the common `struct genlmsghdr`.
    fn reply(sequence: u32, attributes: &[(u16, u32)]) -> Vec<u8> {
        let mut payload = vec![10, 1, 0, 0];
        for (kind, value) in attributes {
            payload.extend([8_u16.to_ne_bytes(), kind.to_ne_bytes()].concat());
            payload.extend(value.to_ne_bytes());
        }
        message(0x14, 0, sequence, &payload)
    }

    fn end(kind: i32, sequence: u32, code: i32) -> Vec<u8> {
        message(
            u16::try_from(kind).unwrap(),
            0,
            sequence,
            &code.to_ne_bytes(),
        )
    }

    /// The queues of interface 7 in a datagram, and whether the answer ends with it.
    fn queues(datagram: &[u8]) -> io::Result<(Vec<NetdevQueue>, bool)> {
        let mut queues = Vec::new();
        let read = |payload: &[u8]| queue(&netdev::OpQueueGetDump::decode_request(payload), 7);
        let ended = take(datagram, 5, |payload| queues.extend(read(payload)))?;
        Ok((queues, ended))
    }

    #[test]
    fn several_messages_in_a_datagram_and_the_end() {
        let rx = reply(5, &[(1, 3), (2, 7), (3, 0), (4, 8193)]);
        let tx = reply(5, &[(1, 0), (2, 7), (3, 1)]);
        let expected = [
            NetdevQueue {
                direction: Direction::Rx,
                id: 3,
                napi: Some(8193),
                user: None,
            },
            NetdevQueue {
                direction: Direction::Tx,
                id: 0,
                napi: None,
                user: None,
            },
        ];
        let datagram = [rx, tx].concat();
        assert_eq!(queues(&datagram).unwrap(), (expected.to_vec(), false));
        for kind in [NLMSG_DONE, NLMSG_ERROR] {
            assert!(
                queues(&[datagram.clone(), end(kind, 5, 0)].concat())
                    .unwrap()
                    .1
            );
        }
        let strange = [
            reply(4, &[(1, 3), (2, 7), (3, 0)]),
            end(NLMSG_DONE, 4, 0),
            reply(5, &[(1, 3), (2, 8), (3, 0)]),
            reply(5, &[(1, 3), (2, 7), (3, 2)]),
            reply(5, &[(2, 7), (3, 0)]),
            reply(5, &[]),
            message(0x14, 0, 5, &[]),
            // `NLMSG_NOOP`.
            message(1, 0, 5, &[]),
        ];
        assert_eq!(queues(&strange.concat()).unwrap(), (vec![], false));
    }

    /// Links as the kernel sends them: a tunnel, a vxlan, a pair, a macvlan whose link is in another network namespace, a card.
    #[test]
    fn what_a_link_is_on_is_read_from_its_own_attributes() {
        let attribute = |kind: u16, value: &[u8]| {
            let length = u16::try_from(4 + value.len()).unwrap();
            let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let number = |kind: u16, value: u32| attribute(kind, &value.to_ne_bytes());
        // `IFLA_LINKINFO` with `IFLA_INFO_KIND` and `IFLA_INFO_DATA`.
        let info = |kind: &str, data: &[u8]| {
            let kind = attribute(1, format!("{kind}\0").as_bytes());
            attribute(18, &[kind, attribute(2, data)].concat())
        };
        let read = |attributes: &[Vec<u8>]| {
            let bytes = [&[0; 16][..], &attributes.concat()].concat();
            let (_, link) = netlink_bindings::rt_link::OpGetlinkDump::decode_request(&bytes);
            lower(&link)
        };
        // `IFLA_LINK`, `IFLA_LINK_NETNSID`, `IFLA_VXLAN_LINK`.
        let (link, netnsid, vxlan) = (5, 37, 3);
        assert_eq!(
            read(&[number(link, 4), info("ip6gre", &[])]),
            Some((4, "ip6gre".to_owned()))
        );
        assert_eq!(
            read(&[number(link, 9), info("vxlan", &number(vxlan, 4))]),
            Some((4, "vxlan".to_owned()))
        );
        assert_eq!(read(&[number(link, 4), info("veth", &[])]), None);
        assert_eq!(
            read(&[number(link, 4), number(netnsid, 0), info("macvlan", &[])]),
            None
        );
        assert_eq!(read(&[number(link, 0), info("sit", &[])]), None);
        assert_eq!(read(&[number(link, 4)]), None);
        let list = [
            ("tunnel0", 7, Some(4)),
            ("nic1", 4, None),
            ("gone", 8, Some(3)),
        ];
        let links = list.map(|(name, index, on)| Link {
            index,
            name: name.to_owned(),
            altnames: Vec::new(),
            lower: on.map(|on| (on, "gre".to_owned())),
        });
        let (on, kind) = ("nic1".to_owned(), "gre".to_owned());
        assert_eq!(
            lowers(&links),
            BTreeMap::from([("tunnel0".to_owned(), Lower { on, kind })])
        );
    }

    #[test]
    fn refusals_and_torn_messages_are_errors() {
        for (kind, errno) in [(NLMSG_ERROR, 95), (NLMSG_DONE, 19)] {
            assert_eq!(
                queues(&end(kind, 5, -errno)).unwrap_err().raw_os_error(),
                Some(errno)
            );
        }
        let whole = reply(5, &[(1, 3), (2, 7), (3, 0)]);
        for end in 1..whole.len() {
            assert!(queues(&whole[..end]).is_err(), "{end} bytes");
        }
        // Messages shorter than their own header, and ends without a code.
        for length in 0..16_u32 {
            assert!(
                queues(&[&length.to_ne_bytes(), &whole[4..]].concat()).is_err(),
                "{length}"
            );
        }
        assert!(queues(&message(3, 0, 5, &[0; 3])).is_err());
    }

    /// Interface 7, NAPI 2, process 612; attribute 8 reports whether NAPI is threaded, on kernels that have it.
    #[test]
    fn a_thread_that_polls_no_more_is_none() {
        for (of_instance, of_interface, pid) in [
            (None, true, Some(612)),
            (None, false, None),
            (Some(0), true, None),
            (Some(1), false, Some(612)),
        ] {
            let threaded = of_instance.map(|threaded| (8, threaded));
            let attributes: Vec<(u16, u32)> = [(1, 7), (2, 2), (4, 612)]
                .into_iter()
                .chain(threaded)
                .collect();
            let message = reply(5, &attributes);
            let reply = netdev::OpNapiGetDump::decode_request(&message[Nlmsghdr::len()..]);
            assert_eq!(
                napi(&reply, 7, of_interface).unwrap().pid,
                pid,
                "{attributes:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_answer_is_too_odd(attributes: Vec<u8>, bytes: Vec<u8>) {
            let _ = queues(&bytes);
            let odd = [&[10, 1, 0, 0][..], &attributes].concat();
            let _ = queues(&message(0x14, 0, 5, &odd));
            let _ = napi(&netdev::OpNapiGetDump::decode_request(&odd), 7, true);
            let _ = nlctrl::OpGetfamilyDo::decode_request(&odd).get_family_id();
        }
    }
}
