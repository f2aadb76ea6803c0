//! Connected sockets of this network namespace, and the nodes of their processes; in a tree, from `/nicpin/sockets`.
//! Captures have none, since they hold the addresses of others.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use itertools::Itertools as _;
use netlink_bindings::inet_diag::{self, Msg, ReqV2};
use netlink_bindings::rt_addr::{self, Ifaddrmsg};
use nix::libc::{AF_INET, AF_INET6, IPPROTO_TCP, IPPROTO_UDP};
use nix::sys::socket::SockProtocol;

use crate::cpuset::{CpuSet, Inserted as _};
use crate::machine::Topology;
use crate::machine::files::NET;
use crate::machine::others::ConnectedSocket;
use crate::read::files::{line_of, number, read_best_effort};
use crate::read::netlink::Client;
use crate::read::tools::stat_of;
use crate::root::{Result, Root, is_absent};

const RECORDED: &str = "/nicpin/sockets";
/// `TCP_ESTABLISHED` (`include/net/tcp_states.h`), also the state of a connected UDP socket.
const ESTABLISHED: u32 = 1;

pub fn connected_sockets(root: &Root, topology: &Topology) -> Result<Option<Vec<ConnectedSocket>>> {
    root.answer(RECORDED, || {
        let (mut listed, names, addresses) = (list()?, names(root)?, addresses()?);
        let nodes = nodes(
            root,
            topology,
            &listed.iter().map(|socket| socket.inode).collect(),
        )?;
        for Listed {
            socket,
            bound,
            inode,
        } in &mut listed
        {
            let by_address = || names.get(addresses.get(&socket.local.ip())?);
            socket.interface = names.get(bound).or_else(by_address).cloned();
            socket.node = nodes.get(inode).copied().flatten();
        }
        Ok(Some(
            listed.into_iter().map(|socket| socket.socket).collect(),
        ))
    })
}

#[derive(Debug, PartialEq)]
struct Listed {
    /// Without interface and node.
    socket: ConnectedSocket,
    /// Index of an interface, or 0.
    bound: u32,
    inode: u32,
}

fn list() -> io::Result<Vec<Listed>> {
    let mut client = Client::connect(SockProtocol::NetlinkSockDiag)?;
    let mut all = Vec::new();
    for (family, protocol) in [
        (AF_INET, IPPROTO_TCP),
        (AF_INET, IPPROTO_UDP),
        (AF_INET6, IPPROTO_TCP),
        (AF_INET6, IPPROTO_UDP),
    ] {
        let mut request = ReqV2::new();
        [request.family, request.protocol] =
            [family, protocol].map(|number| u8::try_from(number).unwrap_or(0));
        request.states = 1 << ESTABLISHED;
        let udp = protocol == IPPROTO_UDP;
        match client.request(
            &inet_diag::Request::new().op_tcp_diag_dump(&request),
            |(socket, _)| listed(&socket, udp),
        ) {
            Ok(found) => all.extend(found),
            // A kernel without IPv6, or without the answer about UDP.
            Err(error) if is_absent(&error) && (udp || family == AF_INET6) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

fn listed(message: &Msg, udp: bool) -> Option<Listed> {
    let id = &message.sockid;
    let address = |bytes: [u8; 16]| match i32::from(message.family) {
        AF_INET => Some(IpAddr::V4(Ipv4Addr::from(*bytes.first_chunk::<4>()?))),
        AF_INET6 => Some(IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()),
        _ => None,
    };
    Some(Listed {
        socket: ConnectedSocket {
            udp,
            local: SocketAddr::new(address(id.src)?, id.sport()),
            peer: SocketAddr::new(address(id.dst)?, id.dport()),
            interface: None,
            node: None,
        },
        bound: id.r#if,
        inode: message.inode,
    })
}

fn addresses() -> io::Result<BTreeMap<IpAddr, u32>> {
    Ok(Client::connect(SockProtocol::NetlinkRoute)?
        .request(
            &rt_addr::Request::new().op_getaddr_dump(&Ifaddrmsg::new()),
            |(header, address)| {
                // On a point-to-point link the address attribute is the peer's.
                Some((
                    address
                        .get_local()
                        .or_else(|_| address.get_address())
                        .ok()?,
                    header.ifa_index,
                ))
            },
        )?
        .into_iter()
        .inserted())
}

fn names(root: &Root) -> Result<BTreeMap<u32, String>> {
    let mut names = BTreeMap::new();
    for name in root.read_names(NET)? {
        let index = root.read_as(&format!("{NET}/{name}/ifindex"), number)?;
        names.extend(index.map(|index| (index, name)));
    }
    Ok(names)
}

/// `None` for a socket of processes on several nodes.
fn nodes(
    root: &Root,
    topology: &Topology,
    inodes: &BTreeSet<u32>,
) -> Result<BTreeMap<u32, Option<u32>>> {
    let mut nodes = BTreeMap::new();
    for process in root.read_names("/proc")? {
        if process.contains(|c: char| !c.is_ascii_digit()) {
            continue;
        }
        let path = format!("/proc/{process}/fd");
        // Another user's process, or an ended one.
        let Ok(Some(files)) = root.list(&path) else {
            continue;
        };
        let mut here = None;
        for inode in files
            .iter()
            .filter_map(|file| inode(&root.link_name(&format!("{path}/{file}")).ok()??))
            .filter(|inode| inodes.contains(inode))
        {
            let here = *here.get_or_insert_with(|| node(root, topology, &process));
            let known = nodes.entry(inode).or_insert(here);
            *known = known.filter(|_| *known == here);
        }
    }
    Ok(nodes)
}

fn inode(link: &str) -> Option<u32> {
    link.strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

fn node(root: &Root, topology: &Topology, process: &str) -> Option<u32> {
    let status = read_best_effort(root, &format!("/proc/{process}/status"))?;
    let allowed: CpuSet = line_of(&status, "Cpus_allowed_list:")?.parse().ok()?;
    let cpus = allowed.intersection(&topology.online);
    let mut nodes = cpus.iter().filter_map(|cpu| topology.node_of(cpu));
    if let Ok(node) = nodes.all_equal_value() {
        return Some(node);
    }
    let last = stat_of(root, process).ok()??.processor?;
    topology.node_of(u32::try_from(last).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_taken_apart() {
        let mut socket = Msg::new();
        socket.family = 2;
        socket.sockid._sport_be = 5201_u16.to_be();
        socket.sockid._dport_be = 40_001_u16.to_be();
        socket.sockid.src[..4].copy_from_slice(&[10, 0, 0, 2]);
        socket.sockid.dst[..4].copy_from_slice(&[10, 0, 0, 1]);
        socket.inode = 7;
        let expected = |local: &str, peer: &str| Listed {
            socket: ConnectedSocket {
                udp: false,
                local: local.parse().unwrap(),
                peer: peer.parse().unwrap(),
                interface: None,
                node: None,
            },
            bound: 0,
            inode: 7,
        };
        assert_eq!(
            listed(&socket, false),
            Some(expected("10.0.0.2:5201", "10.0.0.1:40001"))
        );
        socket.family = 10;
        socket.sockid.src = "::ffff:10.0.0.2".parse::<Ipv6Addr>().unwrap().octets();
        socket.sockid.dst = "2001:db8::1".parse::<Ipv6Addr>().unwrap().octets();
        assert_eq!(
            listed(&socket, false),
            Some(expected("10.0.0.2:5201", "[2001:db8::1]:40001"))
        );
        socket.family = 1;
        assert_eq!(listed(&socket, false), None);
        assert_eq!(
            ["socket:[12345]", "pipe:[12345]", "socket:[]"].map(inode),
            [Some(12345), None, None]
        );
    }
}
