//! Requests to netlink, among them which queue has which IRQ (the generic family `netdev`). The kernel answers within
//! the request.
//!
//! The socket is not that of `netlink_bindings` because it needs a timeout, and because no answer may end the program.
//!
//! A missing family, command or IRQ is common and counts as absence; any other failure is an error. A tree has answers
//! in `/nicpin/netlink/INTERFACE`.

use std::ffi::CStr;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd as _, OwnedFd};

use netlink_bindings::builtin::Nlmsghdr;
use netlink_bindings::netdev::{self, NapiThreaded, QstatsScope, QueueType};
use netlink_bindings::nlctrl::{self, IterableCtrlAttrs};
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

use crate::machine::files::NET;
use crate::machine::netdev::QueueUser::{AfXdp, DeviceMemory, IoUring};
use crate::machine::netdev::{Direction, Napi, Netdev, NetdevQueue};
use crate::read::files::number;
use crate::root::{Result, Root, is_absent};

const RECORDED: &str = "/nicpin/netlink";
/// Bytes of the longest datagram that the kernel makes for a dump (`netlink_recvmsg`, `net/netlink/af_netlink.c`).
const LONGEST: usize = 32 << 10;
/// `NLM_F_REQUEST` and `NLM_F_ACK` (`include/uapi/linux/netlink.h`), without which a single answer has no end.
const REQUEST: u16 = 1 | 4;

pub(crate) fn open(root: &Root) -> Result<Option<Client>> {
    match root.is_real().then(Client::open).transpose() {
        Err(error) if is_absent(&error) => Ok(None),
        client => client.map_err(|error| root.io_error(RECORDED, error)),
    }
}

/// `threaded`: `/sys` reports threaded NAPI.
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

pub fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    let mut all = IterableChunks::new(bytes);
    all.find_map(|(header, value)| (header.r#type == kind).then_some(value))
}

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

    /// The number of a multicast group, which differs from boot to boot.
    pub fn group(family: &CStr, name: &CStr) -> io::Result<u32> {
        let (_, group) = Self::of_family(family, |reply| {
            reply
                .get_mcast_groups()
                .ok()?
                .find_map(|group| (group.get_name().ok()? == name).then(|| group.get_id().ok())?)
        })?;
        Ok(group)
    }

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

    /// Incomplete if the kernel has only one of the commands.
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

    /// Needs Linux 6.10; empty if the driver does not count.
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

/// Returns whether the answer ends with these bytes.
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

/// The messages of a datagram; an error where one is not complete.
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
        for length in 0..16_u32 {
            assert!(
                queues(&[&length.to_ne_bytes(), &whole[4..]].concat()).is_err(),
                "{length}"
            );
        }
        assert!(queues(&message(3, 0, 5, &[0; 3])).is_err());
    }

    /// Attribute 8 reports whether NAPI is threaded, on kernels that have it.
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
