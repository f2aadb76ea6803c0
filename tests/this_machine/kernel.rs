//! System calls and netlink on the running kernel.

use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;

use crate::bandwidth::BandwidthTest;
use nicpin::cpuset::{CpuSet, NodeSet};
use nicpin::machine::Machine;
use nicpin::machine::netdev::Netdev;
use nicpin::machine::others::ConnectedSocket;
use nicpin::read::netlink::Client;
use nicpin::read::{self, ReadOptions};
use nicpin::root::Root;
use nicpin::root::sys::{self, node_of, pages_of};

pub fn connected() -> Option<(Machine, Vec<ConnectedSocket>)> {
    let root = Root::open(Path::new("/")).unwrap();
    let machine = read::machine(&root, ReadOptions::default()).unwrap();
    let sockets = read::connected_sockets(&root, &machine.topology).unwrap()?;
    Some((machine, sockets))
}

/// Both ends are in this process.
pub fn a_connection_is_listed_with_its_interface_and_node() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    let far = server.accept().unwrap().0;
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.connect(server.local_addr().unwrap()).unwrap();
    let (machine, sockets) = connected().unwrap();
    let of = |local: SocketAddr| sockets.iter().find(|socket| socket.local == local);
    let here = sys::affinity().unwrap();
    let nodes: NodeSet = here
        .iter()
        .filter_map(|cpu| machine.topology.node_of(cpu))
        .collect();
    for end in [near.local_addr(), far.local_addr()] {
        let socket = of(end.unwrap()).unwrap();
        assert_eq!(
            (socket.udp, socket.interface.as_deref()),
            (false, Some("lo"))
        );
        assert!(
            socket.node.is_none_or(|node| nodes.contains(node)),
            "{socket:?}"
        );
        assert_eq!(socket.node.is_some(), !nodes.is_empty(), "{socket:?}");
    }
    // A kernel may list TCP only.
    let udp = of(udp.local_addr().unwrap());
    assert!(udp.is_none_or(|socket| socket.udp && socket.peer == server.local_addr().unwrap()));
    assert_eq!(
        of(near.local_addr().unwrap()).unwrap().peer,
        server.local_addr().unwrap()
    );
}

/// `EINVAL`.
const INVALID: Option<i32> = Some(22);

/// The kernel gives an answer, and no error nor a wait for more.
pub fn no_queues_without_an_interface() {
    let answer = ask_netdev(u32::MAX >> 1).unwrap();
    assert!(
        answer.queues.is_empty() && answer.napis.is_empty(),
        "{answer:?}"
    );
}

pub fn pages_are_of_the_node() {
    for node in sys::allowed_nodes().unwrap().iter() {
        let pages = pages_of(node, 3 << 20).unwrap();
        let words = || pages.iter().flat_map(|page| &page.0);
        assert_eq!(words().count(), (3 << 20) / 8);
        assert!(words().all(|&word| word == 1));
        assert!(
            words()
                .step_by(512)
                .all(|word| node_of(word).unwrap() == node)
        );
    }
    // 1023 is the last node of a mask.
    assert_eq!(pages_of(1023, 1).err().unwrap().raw_os_error(), INVALID);
}

/// A thread of its own binds no other test.
pub fn a_threads_memory_is_bound() {
    let policies = std::thread::spawn(|| {
        let one = NodeSet::single(sys::allowed_nodes().unwrap().first().unwrap());
        for (mode, nodes, shown) in [
            (sys::MPOL_BIND, &one, format!("bind:{one}")),
            (sys::MPOL_PREFERRED, &one, format!("prefer:{one}")),
            (sys::MPOL_LOCAL, &NodeSet::new(), "local".to_owned()),
        ] {
            sys::set_memory_policy(mode, nodes).unwrap();
            assert_eq!(memory_policy(), shown);
        }
    });
    policies.join().unwrap();
}

/// As the kernel shows it for this thread.
pub fn memory_policy() -> String {
    let maps = std::fs::read_to_string("/proc/thread-self/numa_maps").unwrap();
    maps.split_whitespace().nth(1).unwrap().to_owned()
}

pub fn a_rate_is_measured() {
    let node = sys::allowed_nodes().unwrap().first().unwrap();
    let cpus: CpuSet = sys::affinity().unwrap();
    let course = BandwidthTest {
        memory: vec![(node, 4 << 20)],
        readers: vec![(node, cpus.clone())],
    };
    let mut calls = Vec::new();
    let rates = course.run(|done| calls.push(done)).unwrap();
    assert_eq!(
        (rates.len(), rates[0].threads, rates[0].memory_of),
        (1, cpus.len(), node)
    );
    assert!(rates[0].bytes_per_second > 1_000_000, "{rates:?}");
    assert_eq!(calls, [0, 0]);
}

/// Asks the kernel's `netdev` family about an interface; an error without this family.
pub fn ask_netdev(ifindex: u32) -> std::io::Result<Netdev> {
    Client::open()?.ask(ifindex, false)
}
