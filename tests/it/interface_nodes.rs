//! Which node an interface is on, for selectors, rules of the policy and the plan alike.

use std::collections::BTreeMap;

use snapbox::{assert_data_eq, str};

use crate::support::host::{add, codes, cpus_of, machine, of, plan, plan_by, plan_with, set};
use crate::support::machine::{Port, card, two_nodes};
use crate::support::run::MachineTree;
use nicpin::machine::{Machine, Role, Selection};
use nicpin::plan::NodeSource;
use nicpin::report::measure::MeasuredInterface;

/// Three nodes with CPUs, and a fourth with memory only, equally near to the first two. The first has a card.
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
    assert_eq!(
        cpus_of(eth1, |role| role == Role::Combined),
        ["4", "5", "6", "7"]
    );
    assert_eq!(
        (codes(eth1), plan.score.local),
        (vec!["node-without-cpus"], Some(1.0))
    );
    assert_data_eq!(
        eth1.vectors[0].why.to_string(),
        str!["node 1, one of the nearest to the device's node"]
    );
    let remote = plan_with(&tied(), &[("scope", "remote")], &[]);
    assert_eq!(of(&remote, "eth1").candidates, set("8-11"));
}

/// All CPUs of its node are isolated, whether `numa_node` tells the node or `local_cpulist`.
#[test]
fn the_nearest_node_takes_over_from_one_without_usable_cpus() {
    let mut host = machine(3, 4, 1, 4);
    add(&mut host, "eth0", Some(1), 4);
    host.topology.isolated = set("4-7");
    let distances = BTreeMap::from([(0, 32), (1, 10), (2, 12)]);
    host.topology.nodes.get_mut(&1).unwrap().distances = distances;
    let near = |host: &Machine, scope| {
        let plan = plan_with(host, &[("scope", scope)], &[]);
        let eth0 = of(&plan, "eth0");
        (eth0.node_source, eth0.candidates.to_string())
    };
    let nearest = (NodeSource::Nearest, "8-11".to_owned());
    assert_eq!(near(&host, "local"), nearest);
    let remote = (NodeSource::Nearest, "0-3,8-11".to_owned());
    assert_eq!(near(&host, "remote"), remote);
    host.interfaces[0].device.node = None;
    host.interfaces[0].device.local_cpus = Some(set("4-7"));
    assert_eq!(near(&host, "local"), nearest);
    assert_eq!(near(&host, "remote"), remote);
    // The CPUs of a package with two nodes.
    host.topology.isolated = set("");
    host.interfaces[0].device.local_cpus = Some(set("4-11"));
    assert_eq!(near(&host, "remote").1, "0-3");
    assert_eq!(near(&host, "0,4-5").1, "4-5");
    let plan = plan(&host);
    assert_eq!((plan.score_now.remote, plan.score.remote), (4, 0));
    let measured = MeasuredInterface::planned(&plan.interfaces[0], &host);
    assert_eq!(measured.vectors[0].local, Some(set("4-11")));
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
            of(&plan_by(host, &rule(node)), name).rules,
            [1],
            "node {node}"
        );
        assert!(
            of(&plan_by(host, &rule(other)), name).rules.is_empty(),
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
        let mut placed = cpus_of(of(&plan, "eth0"), |role| role == Role::Combined);
        let mut expected = expected.map(str::to_owned).to_vec();
        if scope.contains(',') {
            placed.sort();
            expected.sort();
        }
        assert_eq!(placed, expected, "{scope}");
    }
    let absent = plan_with(&host, &[("scope", "node:7")], &[]);
    assert_eq!(codes(of(&absent, "eth0")), ["scope-unusable"]);
    assert_eq!(absent.writes, [], "it stays as it is");
    let two = plan_by(&host, "[defaults]\nscope = 'node:2'\nirq-cores = 2\n");
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
    let tree = MachineTree::build(&two_nodes([vf]));
    let parent = "sys/devices/pci0000:00/0000:00:02.0/0000:82:00.0";
    tree.put(&format!("{parent}/numa_node"), "1\n");
    tree.link(
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

/// As a Raspberry Pi 5 is started by its firmware (`numa=fake=8`): each node has all CPUs, so all are local.
#[test]
fn emulated_nodes_divide_memory_alone() {
    let mut host = machine(1, 4, 1, 4);
    let node = host.topology.nodes[&0].clone();
    host.topology.nodes = (0..8).map(|id| (id, node.clone())).collect();
    add(&mut host, "eth0", None, 1);
    let plan = plan(&host);
    let eth0 = of(&plan, "eth0");
    assert_eq!(
        (eth0.node, eth0.node_source, &eth0.candidates),
        (Some(0), NodeSource::SingleNode, &set("0-3"))
    );
    assert!(codes(eth0).is_empty());
    assert_eq!(plan.score.local, Some(1.0));
}
