//! Questions to the kernel's `netdev` family and its answers, as bytes. One socket, one question at a time; the
//! kernel answers while it is asked, so nothing here waits for anything else.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage,
    NetlinkPayload, NetlinkSerializable, NlasIterator,
};
use netlink_sys::protocols::NETLINK_GENERIC;
use netlink_sys::{Socket, SocketAddr};
use nix::sys::socket::{setsockopt, sockopt::ReceiveTimeout};
use nix::sys::time::{TimeVal, TimeValLike as _};

use crate::machine::netdev::{Direction, Napi, Netdev, NetdevQueue};

/// The family that knows the others (`include/uapi/linux/genetlink.h`).
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// The `netdev` family (`include/uapi/linux/netdev.h`).
const NETDEV: &str = "netdev";
const QUEUE_GET: u8 = 10;
const NAPI_GET: u8 = 11;

/// `NETDEV_A_QUEUE_*`.
mod queue {
    pub(super) const ID: u16 = 1;
    pub(super) const IFINDEX: u16 = 2;
    pub(super) const TYPE: u16 = 3;
    pub(super) const NAPI_ID: u16 = 4;
}

/// `NETDEV_A_NAPI_*`.
mod napi {
    pub(super) const IFINDEX: u16 = 1;
    pub(super) const ID: u16 = 2;
    pub(super) const IRQ: u16 = 3;
    pub(super) const PID: u16 = 4;
}

/// A socket to the kernel, and where it has the `netdev` family.
#[derive(Debug)]
pub(super) struct Client {
    socket: Socket,
    family: u16,
    sequence: u32,
}

impl Client {
    /// Fails where there is no generic netlink, and before Linux 6.3, which has no such family.
    pub(super) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_GENERIC)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // The kernel answers at once; what only looks like one shall not hold nicpin up.
        setsockopt(&socket, ReceiveTimeout, &TimeVal::seconds(2))?;
        let mut client = Self { socket, family: CONTROL, sequence: 0 };
        let name = attribute(FAMILY_NAME, format!("{NETDEV}\0").as_bytes());
        let replies = client.request(GET_FAMILY, NLM_F_ACK, name)?;
        let id = replies.iter().find_map(|reply| {
            NlasIterator::new(reply.as_slice()).filter_map(Result::ok).find_map(|attribute| {
                let value: [u8; 2] = attribute.value().try_into().ok()?;
                (attribute.kind() == FAMILY_ID).then_some(u16::from_ne_bytes(value))
            })
        });
        client.family = id.ok_or(io::ErrorKind::NotFound)?;
        Ok(client)
    }

    /// All that is told of an interface by its index; less where the kernel knows only one of the commands.
    pub(super) fn ask(&mut self, ifindex: u32) -> Netdev {
        let index = ifindex.to_ne_bytes();
        let queues = self.request(QUEUE_GET, NLM_F_DUMP, attribute(queue::IFINDEX, &index));
        let napis = self.request(NAPI_GET, NLM_F_DUMP, attribute(napi::IFINDEX, &index));
        let queue = |reply: &Vec<u8>| {
            let direction = match number(reply, queue::TYPE)? {
                0 => Direction::Rx,
                1 => Direction::Tx,
                _ => return None,
            };
            let own = number(reply, queue::IFINDEX)? == ifindex;
            let queue =
                NetdevQueue { direction, id: number(reply, queue::ID)?, napi: number(reply, queue::NAPI_ID) };
            own.then_some(queue)
        };
        let napi = |reply: &Vec<u8>| {
            let own = number(reply, napi::IFINDEX)? == ifindex;
            let id = number(reply, napi::ID)?;
            own.then(|| Napi::new(id, number(reply, napi::IRQ), number(reply, napi::PID)))
        };
        Netdev {
            queues: queues.unwrap_or_default().iter().filter_map(queue).collect(),
            napis: napis.unwrap_or_default().iter().filter_map(napi).collect(),
        }
    }

    /// Asks; the attributes of each message of the answer.
    fn request(&mut self, command: u8, flags: u16, attributes: Vec<u8>) -> io::Result<Vec<Vec<u8>>> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let request = Request { family: self.family, command, attributes };
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(request));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut replies = Vec::new();
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            if take(&bytes, self.sequence, &mut replies)? {
                return Ok(replies);
            }
        }
    }
}

/// Adds the messages of a datagram that answer the question; whether the answer ends with it.
fn take(mut bytes: &[u8], sequence: u32, replies: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    let torn = || io::Error::from(io::ErrorKind::InvalidData);
    while !bytes.is_empty() {
        let message = NetlinkMessage::<Reply>::deserialize(bytes).map_err(|_| torn())?;
        if message.header.sequence_number == sequence {
            match message.payload {
                NetlinkPayload::InnerMessage(Reply(attributes)) => replies.push(attributes),
                NetlinkPayload::Done(done) if done.code < 0 => {
                    return Err(io::Error::from_raw_os_error(-done.code));
                }
                NetlinkPayload::Done(_) => return Ok(true),
                // An acknowledgement, or the kernel's refusal.
                NetlinkPayload::Error(error) if error.code.is_none() => return Ok(true),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::Overrun(_) => return Err(torn()),
                _ => {}
            }
        }
        let length = (message.header.length as usize).max(16).next_multiple_of(4);
        bytes = bytes.get(length..).unwrap_or_default();
    }
    Ok(false)
}

/// An attribute as it is sent, padded to four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The value of an attribute that is a 32-bit number.
fn number(attributes: &[u8], kind: u16) -> Option<u32> {
    let mut all = NlasIterator::new(attributes).map_while(Result::ok);
    let value = all.find(|attribute| attribute.kind() == kind)?;
    Some(u32::from_ne_bytes(value.value().try_into().ok()?))
}

/// `struct genlmsghdr` (command, version, two bytes of nothing) and attributes.
struct Request {
    family: u16,
    command: u8,
    attributes: Vec<u8>,
}

impl NetlinkSerializable for Request {
    fn message_type(&self) -> u16 {
        self.family
    }

    fn buffer_len(&self) -> usize {
        4 + self.attributes.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        let (header, attributes) = buffer.split_at_mut(4);
        header.copy_from_slice(&[self.command, 1, 0, 0]);
        attributes.copy_from_slice(&self.attributes);
    }
}

/// The attributes of an answer.
struct Reply(Vec<u8>);

impl NetlinkDeserializable for Reply {
    type Error = io::Error;

    fn deserialize(_: &NetlinkHeader, payload: &[u8]) -> io::Result<Self> {
        payload.get(4..).map(|attributes| Self(attributes.to_vec())).ok_or(io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(16 + payload.len()).unwrap();
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0, 0]);
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn several_messages_in_a_datagram_and_the_end() {
        let attributes = [attribute(1, &7_u32.to_ne_bytes()), attribute(4, &8193_u32.to_ne_bytes())].concat();
        let payload = [vec![10, 1, 0, 0], attributes].concat();
        let datagram = [message(0x14, 1, &[0; 4]), message(0x14, 2, &payload), message(3, 2, &[0; 4])];
        let mut replies = Vec::new();
        assert!(take(&datagram.concat(), 2, &mut replies).unwrap());
        assert_eq!(replies.len(), 1);
        assert_eq!((number(&replies[0], 1), number(&replies[0], 4)), (Some(7), Some(8193)));
        assert_eq!((number(&replies[0], 3), number(&[1, 2, 3], 1)), (None, None));
        assert!(!take(&datagram[1], 2, &mut replies).unwrap());
    }

    #[test]
    fn refusals_and_torn_messages_are_errors() {
        let refusal = [(-95_i32).to_ne_bytes().to_vec(), vec![0; 16]].concat();
        let error = take(&message(2, 5, &refusal), 5, &mut Vec::new()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(95));
        let failed = message(3, 5, &(-19_i32).to_ne_bytes());
        assert_eq!(take(&failed, 5, &mut Vec::new()).unwrap_err().raw_os_error(), Some(19));
        for torn in [&message(0x14, 5, &[10, 1])[..18], &[1, 2, 3], &message(0x14, 5, &[0; 8])[..20]] {
            assert!(take(torn, 5, &mut Vec::new()).is_err(), "{torn:?}");
        }
    }

    /// Whatever this kernel is: an answer or none, and never a hang.
    #[test]
    fn an_interface_that_is_not_there_has_no_queues() {
        if let Ok(mut client) = Client::open() {
            let answer = client.ask(u32::MAX >> 1);
            assert!(answer.queues.is_empty() && answer.napis.is_empty(), "{answer:?}");
        }
    }
}
