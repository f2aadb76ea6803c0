//! Vectors that are no queues of the first port: RDMA completion vectors, and those of an mlx4 function's second port.

use snapbox::{assert_data_eq, str};

use crate::support::host::{
    add, codes, cpus_of, machine, mask, of, plan, plan_with, vector, vectors,
};
use crate::support::machine::{Card, MachineSpec, Port, card, two_nodes};
use crate::support::run::MachineTree;
use nicpin::machine::{Machine, Role};
use nicpin::plan::RdmaScore;

#[test]
fn rdma_vectors_are_spread_on_the_node_after_all_queues() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", Some(1), 2);
    add(&mut host, "eth1", Some(1), 1);
    let everywhere = mask(&host, &host.topology.online);
    let more = (0..6).map(|n| vector(90 + n, Role::Rdma, Some(n), &everywhere));
    host.interfaces[0].vectors.extend(more);
    let spread = plan(&host);
    assert_eq!(
        cpus_of(of(&spread, "eth1"), |role| role == Role::Combined),
        ["4"]
    );
    assert_eq!(
        cpus_of(of(&spread, "eth0"), |role| role == Role::Rdma),
        ["7", "4", "5", "6", "7", "4"]
    );
    assert_eq!(spread.score.max_vectors_per_core, 1);
    let score = |vectors, local, max_per_core| {
        let mut score = RdmaScore::default();
        (score.vectors, score.local, score.max_per_core) = (vectors, local, max_per_core);
        Some(score)
    };
    assert_eq!(
        (spread.score.rdma.clone(), spread.score_now.rdma.clone()),
        (score(6, 6, 2), score(6, 0, 6))
    );
    assert_data_eq!(
        of(&spread, "eth0").vectors[2].why.to_string(),
        str!["local (node 1); for RDMA"]
    );
    assert_eq!(
        spread
            .writes
            .iter()
            .filter(|write| write.path.starts_with("/proc/irq/9"))
            .count(),
        6
    );
    let kept = plan_with(&host, &[("rdma", "keep")], &[]);
    assert_eq!(
        cpus_of(of(&kept, "eth0"), |role| role == Role::Rdma),
        ["-"; 6]
    );
    assert_eq!(
        cpus_of(of(&kept, "eth0"), |role| role == Role::Combined),
        cpus_of(of(&spread, "eth0"), |role| role == Role::Combined)
    );
}

#[test]
fn rdma_vectors_are_told_from_queues_and_control_vectors() {
    let names = [
        "ice-0000:82:00.0:misc",
        "ice-eth0-TxRx-0",
        "ice-eth0-TxRx-1",
        "irdma-0000:82:00.0-AEQ",
        "irdma-0000:82:00.0-CEQ-1",
        "irdma-0000:82:00.0-CEQ-0",
    ];
    let host = MachineTree::build(&two_nodes([card(
        "ice",
        Port::new("eth0", 100_000, 2, 2),
        30,
        &names,
    )]))
    .host();
    assert_eq!(
        vectors(&host.interfaces[0]),
        [
            "31=combined 0 name",
            "32=combined 1 name",
            "35=rdma 0 name",
            "34=rdma 1 name",
            "30=control",
            "33=control"
        ]
    );
    // Linux 6.1 gives no numbers.
    let names = ["ice-eth0-TxRx-0", "AEQCEQ", "CEQ", "CEQ"];
    let host = MachineTree::build(&two_nodes([card(
        "ice",
        Port::new("eth0", 100_000, 1, 1),
        30,
        &names,
    )]))
    .host();
    assert_eq!(
        vectors(&host.interfaces[0]),
        [
            "30=combined 0 name",
            "31=rdma 0 order",
            "32=rdma 1 order",
            "33=rdma 2 order"
        ]
    );
}

/// mlx5 has one vector for channel N and for RDMA completion vector N.
#[test]
fn vectors_beyond_the_channels_are_rdmas_where_there_is_an_rdma_device() {
    let names = ["mlx5_async0@pci:0000:82:00.0".to_owned()].into_iter();
    let names: Vec<String> = names
        .chain((0..4).map(|n| format!("mlx5_comp{n}@pci:0000:82:00.0")))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let tree = MachineTree::build(&two_nodes([card(
        "mlx5_core",
        Port::new("eth0", 100_000, 2, 2),
        30,
        &names,
    )]));
    let idle = |host: &Machine| {
        let eth0 = &host.interfaces[0];
        eth0.vectors
            .iter()
            .filter(|vector| eth0.is_idle(vector))
            .count()
    };
    assert_eq!(idle(&tree.host()), 2);
    rdma_device(&tree);
    let host = tree.host();
    assert_eq!(idle(&host), 0);
    assert_eq!(
        vectors(&host.interfaces[0]),
        [
            "31=combined 0 name",
            "32=combined 1 name",
            "33=rdma 2 name",
            "34=rdma 3 name",
            "30=control"
        ]
    );
}

fn rdma_device(tree: &MachineTree) {
    tree.make_dir("sys/class/infiniband/mlx_0");
    let device = "../../../devices/pci0000:00/0000:00:02.0/0000:82:00.0";
    tree.link("sys/class/infiniband/mlx_0/device", device);
}

/// A function with twelve completion event queues.
fn mlx4(ports: impl IntoIterator<Item = Port>) -> MachineSpec {
    let mut names = vec!["mlx4-async@pci:0000:82:00.0".to_owned()];
    names.extend((1..=12).map(|n| format!("mlx4-{n}@0000:82:00.0")));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut ports = ports.into_iter();
    let first = card("mlx4_core", ports.next().unwrap(), 30, &names);
    two_nodes([ports.fold(first, Card::port)])
}

#[test]
fn each_port_of_an_mlx4_function_has_its_part_of_the_vectors() {
    let port = |name| Port::new(name, 40_000, 4, 4);
    let tree = MachineTree::build(&mlx4([port("eth0"), port("eth1")]));
    let host = tree.host();
    let used = |at: usize| {
        let interface: &nicpin::machine::Interface = &host.interfaces[at];
        let used = interface.queue_vectors().filter(|v| !interface.is_idle(v));
        used.map(|vector| (vector.irq, vector.queue.unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(used(0), [(31, 0), (32, 1), (33, 2), (34, 3)]);
    assert_eq!(used(1), [(37, 0), (38, 1), (39, 2), (40, 3)]);
    assert!(
        host.interfaces
            .iter()
            .all(|i| i.sharing.is_empty() && i.shares_vectors_of.is_none())
    );
    let plan = tree.plan(&[]);
    let eth1 = of(&plan, "eth1");
    assert!(codes(eth1).is_empty(), "{:?}", codes(eth1));
    assert!(eth1.tx_queues.iter().all(|queue| queue.xps_cpus.is_some()));
    // Vectors that neither port uses are RDMA's.
    rdma_device(&tree);
    let host = tree.host();
    let rdma = |at: usize| {
        let of_rdma = host.interfaces[at]
            .vectors
            .iter()
            .filter(|vector| vector.role == Role::Rdma);
        of_rdma
            .map(|vector| (vector.irq, vector.queue.unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (rdma(0), rdma(1)),
        (vec![(35, 4), (36, 5)], vec![(41, 10), (42, 11)])
    );
}

#[test]
fn an_mlx4_port_of_another_type_keeps_its_part() {
    let tree = MachineTree::build(&mlx4([Port::new("eth0", 40_000, 4, 4)]));
    assert_eq!(tree.host().interfaces[0].queue_vectors().count(), 12);
    tree.put(
        "sys/devices/pci0000:00/0000:00:02.0/0000:82:00.0/mlx4_port1",
        "eth\n",
    );
    tree.put(
        "sys/devices/pci0000:00/0000:00:02.0/0000:82:00.0/mlx4_port2",
        "ib\n",
    );
    rdma_device(&tree);
    let host = tree.host();
    let count = |role: Role| {
        host.interfaces[0]
            .vectors
            .iter()
            .filter(|v| v.role == role)
            .count()
    };
    assert_eq!(
        (
            count(Role::Combined),
            count(Role::Rdma),
            count(Role::Control)
        ),
        (4, 8, 1)
    );
    let numbers: Vec<Option<u32>> = host.interfaces[0]
        .vectors
        .iter()
        .filter(|v| v.role == Role::Rdma)
        .map(|v| v.queue)
        .collect();
    assert_eq!(numbers, (4..12).map(Some).collect::<Vec<_>>());
}
