//! Which node an interface is on, for selectors, rules of the policy and the plan alike; and where vectors go that are
//! not the first port's queues: RDMA completion vectors, and those of a second port.

use std::collections::BTreeMap;

use crate::support::host::{add, codes, machine, mask, of, plan, plan_with, set, vector};
use crate::support::machine::{Card, MachineSpec, Port};
use crate::support::small::{Tree, card, two_nodes, vectors};
use crate::support::tree::{link, make_dir, put};
use nicpin::machine::{Machine, Role, Selection};
use nicpin::plan::{NodeSource, Plan, PlannedInterface, RdmaScore};
use nicpin::policy::Policy;

fn with_policy(host: &Machine, text: &str) -> Plan {
    let selection = Selection::new(host, &[], false).unwrap();
    nicpin::plan::plan(host, &Policy::parse(text).unwrap(), &selection)
}

/// The planned CPUs of the vectors of one role.
fn cpus(interface: &PlannedInterface, role: Role) -> Vec<String> {
    let of_role = interface
        .vectors
        .iter()
        .filter(|vector| vector.role == role);
    of_role
        .map(|vector| {
            vector
                .cpus
                .as_ref()
                .map_or("-".to_owned(), ToString::to_string)
        })
        .collect()
}

// Nodes.

/// Three nodes with CPUs, and a fourth with memory only, that is equally near to the first two. The first has a card.
fn tied() -> Machine {
    let mut host = machine(3, 4, 1, 4);
    let distances = BTreeMap::from([(0, 17), (1, 17), (2, 28), (3, 10)]);
    let memory = nicpin::machine::Node {
        distances,
        ..Default::default()
    };
    host.topology.nodes.insert(3, memory);
    add(&mut host, "eth0", Some(0), 4);
    add(&mut host, "eth1", Some(3), 4);
    host
}

#[test]
fn nodes_that_are_equally_near_share_the_vectors() {
    let plan = plan(&tied());
    let eth1 = of(&plan, "eth1");
    assert_eq!(
        (eth1.node, eth1.node_source, &eth1.candidates),
        (Some(0), NodeSource::Nearest, &set("0-7"))
    );
    // The cores of node 0 have a queue of eth0.
    assert_eq!(cpus(eth1, Role::Combined), ["4", "5", "6", "7"]);
    assert_eq!(
        (codes(eth1), plan.score.local),
        (vec!["node-without-cpus"], Some(1.0))
    );
    assert_eq!(
        &*eth1.vectors[0].why,
        "node 1, one of the nearest to the device's node"
    );
    let remote = plan_with(&tied(), &[("scope", "remote")], &[]);
    assert_eq!(of(&remote, "eth1").candidates, set("8-11"));
}

#[test]
fn selectors_and_rules_know_the_node_that_the_plan_prints() {
    let mut only = machine(1, 4, 1, 4);
    add(&mut only, "eth0", None, 2);
    let mut listed = machine(2, 4, 1, 4);
    add(&mut listed, "eth0", None, 2);
    listed.interfaces[0].device.local_cpus = Some(set("4-7"));
    for (host, name, node, other) in [
        (&only, "eth0", 0, 1),
        (&listed, "eth0", 1, 0),
        (&tied(), "eth1", 1, 2),
        (&tied(), "eth1", 0, 3),
    ] {
        let rule =
            |node: u32| format!("[[rule]]\nmatch = {{ node = {node} }}\nset = {{ skip = true }}\n");
        assert!(
            plan_with(host, &[], &[&format!("node:{node}")])
                .interfaces
                .iter()
                .any(|i| i.name == name)
        );
        assert_eq!(
            of(&with_policy(host, &rule(node)), name).rules,
            [1],
            "node {node}"
        );
        assert!(
            of(&with_policy(host, &rule(other)), name).rules.is_empty(),
            "node {other}"
        );
        let absent = Selection::new(host, &[format!("node:{other}")], true).unwrap();
        assert!(!absent.names.contains(name), "node {other}");
    }
}

#[test]
fn a_scope_may_name_nodes() {
    let mut host = machine(4, 4, 1, 4);
    add(&mut host, "eth0", Some(0), 4);
    for (scope, expected) in [
        ("node:2", ["8", "9", "10", "11"]),
        ("node:1,3", ["4", "12", "5", "13"]),
    ] {
        let plan = plan_with(&host, &[("scope", scope)], &[]);
        let mut placed = cpus(of(&plan, "eth0"), Role::Combined);
        let mut expected = expected.map(str::to_owned).to_vec();
        if scope.contains(',') {
            // Which node comes first is not the point.
            placed.sort();
            expected.sort();
        }
        assert_eq!(placed, expected, "{scope}");
    }
    let absent = plan_with(&host, &[("scope", "node:7")], &[]);
    assert_eq!(codes(of(&absent, "eth0")), ["scope-unusable"]);
    assert_eq!(absent.writes, [], "it stays as it is");
    let two = with_policy(&host, "[defaults]\nscope = 'node:2'\nirq-cores = 2\n");
    assert_eq!(of(&two, "eth0").candidates, set("8-9"));
    for wrong in ["node:", "node:x", "node:1-"] {
        assert!(
            nicpin::policy::Settings::of([("scope", wrong)]).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn a_virtual_function_without_a_node_has_its_parents() {
    let names = ["iavf-eth0v1-TxRx-0", "iavf-0000:82:02.0:mbx"];
    let mut vf = card("iavf", Port::new("eth0v1", 10_000, 1, 1), 30, &names);
    (vf.address, vf.node) = ("0000:82:02.0".to_owned(), -1);
    let tree = Tree::of(&two_nodes([vf]));
    let parent = "sys/devices/pci0000:00/0000:00:02.0/0000:82:00.0";
    put(tree.dir(), &format!("{parent}/numa_node"), "1\n");
    link(
        tree.dir(),
        "sys/devices/pci0000:00/0000:00:02.0/0000:82:02.0/physfn",
        "../0000:82:00.0",
    );
    let plan = tree.plan(&["node:1"]);
    let vf = of(&plan, "eth0v1");
    assert_eq!(
        (vf.node, vf.node_source, &vf.candidates),
        (Some(1), NodeSource::NumaNode, &set("4-7"))
    );
}

// RDMA completion vectors.

#[test]
fn rdma_vectors_are_spread_on_the_node_after_all_queues() {
    let mut host = machine(2, 4, 1, 4);
    add(&mut host, "eth0", Some(1), 2);
    add(&mut host, "eth1", Some(1), 1);
    let everywhere = mask(&host, &host.topology.online);
    let more = (0..6).map(|n| vector(90 + n, Role::Rdma, Some(n), &everywhere));
    host.interfaces[0].vectors.extend(more);
    let spread = plan(&host);
    assert_eq!(cpus(of(&spread, "eth1"), Role::Combined), ["4"]);
    assert_eq!(
        cpus(of(&spread, "eth0"), Role::Rdma),
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
    assert_eq!(
        &*of(&spread, "eth0").vectors[2].why,
        "local (node 1); for RDMA"
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
    assert_eq!(cpus(of(&kept, "eth0"), Role::Rdma), ["-"; 6]);
    assert_eq!(
        cpus(of(&kept, "eth0"), Role::Combined),
        cpus(of(&spread, "eth0"), Role::Combined)
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
    let host = Tree::of(&two_nodes([card(
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
    let host = Tree::of(&two_nodes([card(
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
    let tree = Tree::of(&two_nodes([card(
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

fn rdma_device(tree: &Tree) {
    make_dir(tree.dir(), "sys/class/infiniband/mlx_0");
    let device = "../../../devices/pci0000:00/0000:00:02.0/0000:82:00.0";
    link(tree.dir(), "sys/class/infiniband/mlx_0/device", device);
}

// The ports of an mlx4 function.

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
    let tree = Tree::of(&mlx4([port("eth0"), port("eth1")]));
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
    // What neither port uses is RDMA's.
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
    let tree = Tree::of(&mlx4([Port::new("eth0", 40_000, 4, 4)]));
    assert_eq!(tree.host().interfaces[0].queue_vectors().count(), 12);
    put(
        tree.dir(),
        "sys/devices/pci0000:00/0000:00:02.0/0000:82:00.0/mlx4_port1",
        "eth\n",
    );
    put(
        tree.dir(),
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
