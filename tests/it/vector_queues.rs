//! The queue of each vector, from netlink, from names, from the order of vectors and from the files of the IRQ; on
//! trees.

use itertools::Itertools as _;
use snapbox::{assert_data_eq, str};

use crate::support::host::{codes, cpus as planned, of, vectors};
use crate::support::machine::{Card, MachineSpec, Port, card, cpus, two_nodes};
use crate::support::run::{MachineTree, assert_line, document, nicpin};
use nicpin::cpuset::CpuSet;
use nicpin::machine::Source;
use nicpin::plan::Measure;
use nicpin::root::Root;

// Netlink.

#[test]
fn netlink_reports_vectors_whose_names_have_no_queue() {
    let port = Port::new("eth0", 10_000, 2, 2).netlink(&[
        ("rx", 0, 31),
        ("tx", 0, 31),
        ("rx", 1, 30),
        ("tx", 1, 30),
    ]);
    let tree = MachineTree::build(&two_nodes([card(
        "newdriver",
        port,
        30,
        &["nd:a", "nd:b", "nd:c"],
    )]));
    let eth0 = &tree.host().interfaces[0];
    assert_eq!(
        vectors(eth0),
        ["31=combined 0 netlink", "30=combined 1 netlink"]
    );
    assert_eq!(eth0.unknown_vectors.len(), 1);
    let plan = tree.plan(&["eth0"]);
    assert_eq!(planned(of(&plan, "eth0")), ["1", "2"]);
    assert_eq!(codes(of(&plan, "eth0")), ["unknown-vectors"]);
}

#[test]
fn netlink_is_trusted_over_a_name_and_the_plan_has_a_note() {
    let reported = [("rx", 0, 31), ("tx", 0, 31), ("rx", 1, 30), ("tx", 1, 30)];
    let port = Port::new("eth0", 10_000, 2, 2).netlink(&reported);
    let tree = MachineTree::build(&two_nodes([card(
        "ixgbe",
        port,
        30,
        &["eth0-TxRx-0", "eth0-TxRx-1", "eth0"],
    )]));
    let eth0 = &tree.host().interfaces[0];
    assert_eq!(
        vectors(eth0),
        [
            "31=combined 0 netlink",
            "30=combined 1 netlink",
            "32=control"
        ]
    );
    assert_eq!(eth0.contradictions.len(), 2);
    let plan = tree.plan(&["eth0"]);
    let notes = &of(&plan, "eth0").notes;
    let note = notes
        .iter()
        .find(|note| note.code() == "sources-disagree")
        .unwrap();
    assert_line(
        note.to_string(),
        str![[r"
netlink and the IRQ names disagree; netlink is used: IRQ 30 (eth0-TxRx-0) is combined 1 by netlink and combined 0 by its name; IRQ 31 (eth0-TxRx-1) is combined 0 by netlink and combined 1 by its name

"]],
    );
    let plan = document(&tree, &["plan", "eth0"]);
    assert_eq!(plan["interfaces"][0]["vectors"][0]["source"], "netlink");
}

/// e1000e has one NAPI instance for both vectors, and reports it for the receive vector.
#[test]
fn a_data_vector_that_netlink_leaves_out_is_planned_and_checked() {
    let machine = MachineTree::of("four-node");
    let reported = Port::new("nic3", -1, 1, 1).netlink(&[("rx", 0, 76), ("tx", 0, 76)]);
    machine.put("nicpin/netlink/nic3", &reported.netlink);
    machine.write("/proc/irq/77/smp_affinity", "0001\n");
    let host = nicpin::read::machine(
        &Root::open(machine.dir()).unwrap(),
        nicpin::read::ReadOptions::default(),
    )
    .unwrap();
    let nic3 = host
        .interfaces
        .iter()
        .find(|interface| interface.name == "nic3")
        .unwrap();
    assert_eq!(
        vectors(nic3),
        ["76=rx 0 netlink", "77=tx 0 name", "78=control"]
    );
    assert_eq!(machine.nicpin(&["apply", "nic3"]).code, 0);
    assert_eq!(
        machine.read("/proc/irq/77/smp_affinity"),
        machine.read("/proc/irq/76/smp_affinity")
    );
    assert_eq!(machine.nicpin(&["check", "nic3"]).code, 0);
    machine.write("/proc/irq/77/smp_affinity", "0001\n");
    let run = machine.nicpin(&["check", "--json", "nic3"]);
    let check = run.json();
    assert_eq!(
        (run.code, &check["interfaces"][0]["state"]),
        (2, &"remote".into())
    );
    let [of] = check["differs"].as_array().unwrap().as_slice() else {
        panic!("{check}");
    };
    assert_eq!(of["path"], "/proc/irq/77/smp_affinity");
}

#[test]
fn without_irqs_over_netlink_the_names_are_used() {
    let mut port = Port::new("eth0", -1, 2, 2);
    port.netlink = r#"{"queues":[
        {"direction":"rx","id":0,"napi":8193},{"direction":"rx","id":1,"napi":8194},
        {"direction":"tx","id":0},{"direction":"tx","id":1}],"napis":[{"id":8193},{"id":8194}]}"#
        .to_owned();
    let names = ["config", "input.0", "output.0", "input.1", "output.1"]
        .map(|what| format!("virtio0-{what}"));
    let mut card = card(
        "virtio_net",
        port,
        30,
        &names.each_ref().map(String::as_str),
    );
    card.virtio = Some(0);
    let tree = MachineTree::build(&two_nodes([card]));
    let eth0 = &tree.host().interfaces[0];
    assert_eq!(
        vectors(eth0),
        [
            "31=rx 0 name",
            "32=tx 0 name",
            "33=rx 1 name",
            "34=tx 1 name",
            "30=control"
        ]
    );
    assert_eq!(eth0.netdev.as_ref().unwrap().queues.len(), 4);
    assert!(eth0.contradictions.is_empty());
}

/// Netlink reports each port of an mlx4 card; by their names, all vectors belong to the first.
#[test]
fn ports_of_one_function_are_distinguished_by_netlink() {
    let names = [
        "mlx4-async@pci:0000:82:00.0",
        "mlx4-1@0000:82:00.0",
        "mlx4-2@0000:82:00.0",
    ];
    let both = |irq: u32| [("rx", 0, irq), ("tx", 0, irq)];
    let card = card(
        "mlx4_core",
        Port::new("eth0", 10_000, 1, 1).netlink(&both(31)),
        30,
        &names,
    )
    .port(Port::new("eth1", 10_000, 1, 1).netlink(&both(32)));
    let host = MachineTree::build(&two_nodes([card.clone()])).host();
    assert_eq!(
        vectors(&host.interfaces[0]),
        ["31=combined 0 netlink", "30=control"]
    );
    assert_eq!(vectors(&host.interfaces[1]), ["32=combined 0 netlink"]);
    // Both queues of a shared vector are listed.
    let mut card = card;
    card.ports[1] = Port::new("eth1", 10_000, 1, 1).netlink(&both(31));
    let plan = MachineTree::build(&two_nodes([card])).plan(&[]);
    assert_eq!(planned(of(&plan, "eth1")), ["-"]);
    assert_eq!(codes(of(&plan, "eth1")), ["line-shared"]);
}

/// e1000e with MSI-X (Linux 6.18) reports its unused line, whose number a vector of another card has by now.
#[test]
fn a_reported_irq_of_another_device_is_no_vector_of_the_interface() {
    let own = ["eth0-rx-0", "eth0-tx-0", "eth0"];
    let port = Port::new("eth0", 1000, 1, 1).netlink(&[("rx", 0, 41), ("tx", 0, 41)]);
    let other = Card::new(
        "igb",
        "pci0000:c0/0000:c0:02.0",
        "0000:c1:00.0",
        1,
        "5.0 GT/s PCIe",
        4,
    );
    let names = ["eth1", "eth1-TxRx-0", "eth1-TxRx-1"];
    let elsewhere = other.vectors(40, names, &cpus("0-7"), &[0]);
    let other = elsewhere.clone().port(Port::new("eth1", 1000, 2, 2));
    let first = card("e1000e", port, 30, &own);
    let tree = MachineTree::build(&two_nodes([first.clone(), other]));
    let known = tree.host();
    let known = known.interfaces.iter().map(vectors);
    assert_eq!(
        known.collect::<Vec<_>>(),
        [
            ["30=rx 0 name", "31=tx 0 name", "32=control"],
            ["41=combined 0 name", "42=combined 1 name", "40=control"]
        ]
    );
    let plan = tree.plan(&[]);
    assert_eq!(codes(of(&plan, "eth0")), [""; 0]);
    assert_eq!(planned(of(&plan, "eth1")), ["4", "5"]);
    // The other card's interface is in another network namespace: its function is no second one of eth0.
    let tree = MachineTree::build(&two_nodes([first, elsewhere]));
    tree.list_function("pci0000:c0/0000:c0:02.0", "0000:c1:00.0", "0x020000");
    assert_eq!(tree.plan(&[]).interfaces.len(), 2);
}

/// The two functions of eth0, one on each node. The second has no interface of its own.
fn two_functions() -> [Card; 2] {
    let reported: Vec<(&str, u32, u32)> = [(0, 31), (1, 41), (2, 32), (3, 42)]
        .iter()
        .flat_map(|&(q, irq)| [("rx", q, irq), ("tx", q, irq)])
        .collect();
    let comp = |n: u32, bus: &str| format!("mlx5_comp{n}@pci:0000:{bus}:00.0");
    let names = [
        "mlx5_async0@pci:0000:82:00.0".to_owned(),
        comp(0, "82"),
        comp(1, "82"),
    ];
    let first = card(
        "mlx5_core",
        Port::new("eth0", 100_000, 4, 4).netlink(&reported),
        30,
        &names.each_ref().map(String::as_str),
    );
    let second = Card::new(
        "mlx5_core",
        "pci0000:c0/0000:c0:02.0",
        "0000:c1:00.0",
        1,
        "8.0 GT/s PCIe",
        8,
    );
    let names = [comp(0, "c1"), comp(1, "c1")];
    [first, second.vectors(41, names, &cpus("0-7"), &[0])]
}

/// An interface of e1000e, the first by name, reports the number of one of the second function's IRQs.
#[test]
fn a_second_function_belongs_to_the_interface_of_its_driver() {
    let [first, second] = two_functions();
    let reporter = Card::new(
        "e1000e",
        "pci0000:00/0000:00:03.0",
        "0000:83:00.0",
        0,
        "2.5 GT/s PCIe",
        1,
    );
    let names = ["eno1-rx-0", "eno1-tx-0", "eno1"];
    let port = Port::new("eno1", 1000, 1, 1).netlink(&[("rx", 0, 41), ("tx", 0, 41)]);
    let reporter = reporter.vectors(50, names, &cpus("0-7"), &[0]).port(port);
    let tree = MachineTree::build(&two_nodes([reporter, first, second]));
    tree.list_function("pci0000:c0/0000:c0:02.0", "0000:c1:00.0", "0x020000");
    let host = tree.host();
    let known: Vec<_> = host.interfaces.iter().map(vectors).collect();
    let of_two = [
        "31=combined 0 netlink",
        "41=combined 1 netlink",
        "32=combined 2 netlink",
        "42=combined 3 netlink",
        "30=control",
    ];
    let of_reporter = ["50=rx 0 name", "51=tx 0 name", "52=control"];
    assert_eq!(known, [&of_reporter[..], &of_two]);
}

/// One interface over two functions: every vector goes to the node of its function.
#[test]
fn an_interface_over_two_functions_uses_both_nodes() {
    let tree = MachineTree::build(&two_nodes(two_functions()));
    for (irq, node) in [(31, 0), (32, 0), (41, 1), (42, 1)] {
        tree.put(&format!("proc/irq/{irq}/node"), &node.to_string());
    }
    // Nor has the second function an interface in another network namespace.
    tree.list_function("pci0000:c0/0000:c0:02.0", "0000:c1:00.0", "0x020000");
    let host = tree.host();
    assert_eq!(
        (host.interfaces.len(), &host.others.cards[..]),
        (1, &[][..])
    );
    let eth0 = &host.interfaces[0];
    let nodes: Vec<_> = eth0
        .vectors
        .iter()
        .map(|v| (v.irq, v.queue, v.node))
        .collect();
    let expected = [
        (31, Some(0), None),
        (41, Some(1), Some(1)),
        (32, Some(2), None),
        (42, Some(3), Some(1)),
    ];
    assert_eq!(nodes, [&expected[..], &[(30, None, None)]].concat());
    let plan = tree.plan(&["eth0"]);
    let eth0 = of(&plan, "eth0");
    assert_eq!(planned(eth0), ["1", "4", "2", "5"]);
    assert_eq!(
        (eth0.candidates.to_string(), plan.score.local),
        ("0-7".to_owned(), Some(1.0))
    );
    assert_data_eq!(
        eth0.vectors[1].why.to_string(),
        str!["node 1, where the IRQ's device is"]
    );
    // The address of either function selects it.
    for address in ["0000:82:00.0", "pci:0000:C1:00.0"] {
        assert_eq!(of(&tree.plan(&[address]), "eth0").vectors.len(), 5);
    }
    // All of them are on CPU 0 now, which is remote for those of the other device.
    let own = eth0.vectors[1].candidates.as_ref();
    assert_eq!(own.map(ToString::to_string).as_deref(), Some("4-7"));
    assert_eq!((plan.score_now.outside, plan.score.outside), (2, 0));
    let root = tree.dir().to_str().unwrap();
    let check = nicpin(&["check", "eth0", "--json", "--root", root]);
    let state = &check.json()["interfaces"][0]["state"];
    assert_eq!((check.code, state), (2, &"remote".into()));
    // The names count the vectors of each function: they cannot disagree with netlink.
    assert_eq!(codes(eth0), [""; 0]);
    let far = tree.fails(&["run", "--far", "--dry-run", "eth0"], 1);
    assert_data_eq!(
        far,
        str![[r"
nicpin: no node with CPUs is remote from eth0: nodes 0-1 are near

"]]
    );
    // Without netlink nothing tells the queues: the second channel is the first of the other function.
    std::fs::remove_file(tree.dir().join("nicpin/netlink/eth0")).unwrap();
    let host = tree.host();
    let known: Vec<_> = host.interfaces.iter().map(vectors).collect();
    assert_eq!(
        known,
        [
            ["31=data", "32=data", "30=control"],
            ["41=data", "42=data", ""]
        ]
        .map(|of| {
            let known = of.into_iter().filter(|one| !one.is_empty());
            known.map(str::to_owned).collect::<Vec<_>>()
        })
    );
    // A second port in the same slot is another one's.
    let device = "sys/devices/pci0000:c0/0000:c0:02.0/0000:c1:00";
    let (from, to) = (
        format!("{device}.0"),
        "sys/devices/pci0000:00/0000:00:02.0/0000:82:00.1",
    );
    std::fs::rename(tree.dir().join(from), tree.dir().join(to)).unwrap();
    std::fs::remove_file(tree.dir().join("sys/bus/pci/devices/0000:c1:00.0")).unwrap();
    let up = "../../../devices/pci0000:00/0000:00:02.0/0000:82:00.1";
    tree.link("sys/bus/pci/devices/0000:82:00.1", up);
    let known = tree
        .host()
        .interfaces
        .iter()
        .map(vectors)
        .collect::<Vec<_>>();
    assert_eq!(
        known[0],
        ["31=combined 0 name", "32=combined 1 name", "30=control"]
    );
}

/// XPS of queues that share a vector follows the CPU where netlink reports that they complete.
#[test]
fn queues_beyond_the_vectors_are_where_netlink_says() {
    let reported = [
        ("rx", 0, 30),
        ("tx", 0, 30),
        ("tx", 1, 30),
        ("rx", 1, 31),
        ("tx", 2, 31),
        ("tx", 3, 31),
    ];
    let tree = MachineTree::build(&two_nodes([card(
        "newdriver",
        Port::new("eth0", 10_000, 2, 4).netlink(&reported),
        30,
        &["nd:a", "nd:b"],
    )]));
    assert_eq!(
        vectors(&tree.host().interfaces[0]),
        ["30=combined 0 netlink", "31=rx 1 netlink"]
    );
    let plan = tree.plan(&["eth0"]);
    let xps: Vec<_> = of(&plan, "eth0")
        .tx_queues
        .iter()
        .map(|tx| tx.xps_cpus.clone().unwrap())
        .collect();
    let has = |queue: usize| xps[queue].iter().find(|cpu| [1, 2].contains(cpu));
    assert_eq!(planned(of(&plan, "eth0")), ["1", "2"]);
    assert_eq!([0, 1, 2, 3].map(has).iter().flatten().count(), 2);
    assert!(
        has(0).or(has(1)) == Some(1) && has(2).or(has(3)) == Some(2),
        "{xps:?}"
    );
}

/// So it does where the name of each vector has the first and the last of its queues.
#[test]
fn queues_on_a_vector_of_ice_follow_each_other() {
    let names = ["0-1", "2-3", "4-5", "6-7"].map(|of| format!("ice-eth0-TxRx-{of}"));
    let names = names.each_ref().map(String::as_str);
    let tree = MachineTree::build(&two_nodes([card(
        "ice",
        Port::new("eth0", 10_000, 8, 8),
        30,
        &names,
    )]));
    let plan = tree.plan(&["eth0"]);
    let eth0 = of(&plan, "eth0");
    let xps: Vec<_> = eth0
        .tx_queues
        .iter()
        .map(|tx| tx.xps_cpus.clone().unwrap())
        .collect();
    for (at, cpu) in planned(eth0).iter().enumerate() {
        let own = &xps[2 * at..2 * at + 2];
        let has = |cpus: &CpuSet| cpus.contains(cpu.parse().unwrap());
        assert!(own.iter().any(has), "{cpu}: {xps:?}");
    }
    assert_eq!(plan.score.far_senders, 0);
}

#[test]
fn an_irq_from_netlink_without_a_handler_is_not_a_vector() {
    let port =
        Port::new("eth0", 10_000, 2, 2).netlink(&[("rx", 0, 30), ("tx", 0, 30), ("rx", 1, 77)]);
    let tree = MachineTree::build(&two_nodes([card("ixgbe", port, 30, &["eth0-TxRx-0"])]));
    assert_eq!(
        vectors(&tree.host().interfaces[0]),
        ["30=combined 0 netlink"]
    );
}

#[test]
fn a_malformed_recorded_answer_is_reported_with_its_place() {
    let mut port = Port::new("eth0", 10_000, 1, 1);
    port.netlink = "{\"queues\":[],\n\"napis\":[{\"id\":8193,\"irq\":\"none\"}]}".to_owned();
    let tree = MachineTree::build(&two_nodes([card("igb", port, 30, &["eth0-TxRx-0"])]));
    assert_data_eq!(
        tree.fails(&["plan"], 1),
        str![[r#"
nicpin: ROOT/nicpin/netlink/eth0: not a recorded answer: invalid type: string "none", expected u32 at line 2 column 32; fix: capture the machine again with this version of nicpin

"#]]
    );
}

// Order.

#[test]
fn vectors_that_are_all_named_alike_are_planned_by_their_order() {
    let atlantic = card(
        "atlantic",
        Port::new("eth0", 10_000, 4, 4),
        97,
        &["eth0"; 5],
    );
    let mut lan743x = card(
        "lan743x",
        Port::new("eth1", 1000, 4, 1),
        50,
        &["lan743x"; 6],
    );
    lan743x.address = "0000:83:00.0".to_owned();
    let tree = MachineTree::build(&two_nodes([atlantic, lan743x]));
    let host = tree.host();
    assert_eq!(
        vectors(&host.interfaces[0]),
        [
            "97=combined 0 order",
            "98=combined 1 order",
            "99=combined 2 order",
            "100=combined 3 order",
            "101=control"
        ]
    );
    assert_eq!(
        vectors(&host.interfaces[1]),
        [
            "52=rx 0 order",
            "51=tx 0 order",
            "53=rx 1 order",
            "54=rx 2 order",
            "55=rx 3 order",
            "50=control"
        ]
    );
    let plan = tree.plan(&["eth0"]);
    assert_eq!(planned(of(&plan, "eth0")), ["1", "2", "3", "0"]);
}

#[test]
fn more_vectors_of_one_name_than_the_driver_requests_are_all_data() {
    let tree = MachineTree::build(&two_nodes([card(
        "atlantic",
        Port::new("eth0", 10_000, 4, 4),
        97,
        &["eth0"; 8],
    )]));
    let host = tree.host();
    let shown = vectors(&host.interfaces[0]);
    assert_eq!(shown.len(), 8);
    assert!(shown.iter().all(|one| one.contains("=data")), "{shown:?}");
}

// Names.

#[test]
fn twelve_queues_across_irq_100_and_two_cards_of_one_driver() {
    let names =
        |name: &str| -> Vec<String> { (0..12).map(|n| format!("{name}-TxRx-{n}")).collect() };
    let one = |name: &str, address: &str, first: u32| {
        let names = names(name);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut card = card("ixgbe", Port::new(name, 10_000, 12, 12), first, &names);
        card.address = address.to_owned();
        card
    };
    let tree = MachineTree::build(&two_nodes([
        one("eth1", "0000:82:00.0", 94),
        one("eth10", "0000:82:00.1", 106),
    ]));
    let host = tree.host();
    for (interface, first) in host.interfaces.iter().zip([94, 106]) {
        let irqs: Vec<_> = interface
            .vectors
            .iter()
            .map(|v| (v.irq, v.queue, v.source))
            .collect();
        let expected: Vec<_> = (0..12)
            .map(|n| (first + n, Some(n), Source::Name))
            .collect();
        assert_eq!(irqs, expected, "{}", interface.name);
    }
}

/// After a rename, drivers keep the old name in the names of their vectors; netlink does not depend on it.
#[test]
fn a_renamed_interface_keeps_its_vectors() {
    let names = ["eth4-TxRx-0", "eth4-TxRx-1"];
    let tree = MachineTree::build(&two_nodes([card(
        "ixgbe",
        Port::new("ens1f0", 10_000, 2, 2),
        30,
        &names,
    )]));
    assert_eq!(
        vectors(&tree.host().interfaces[0]),
        ["30=combined 0 name", "31=combined 1 name"]
    );
    let reported = [("rx", 0, 30), ("tx", 0, 30), ("rx", 1, 31), ("tx", 1, 31)];
    let port = Port::new("ens1f0", 10_000, 2, 2).netlink(&reported);
    let host = MachineTree::build(&two_nodes([card("ixgbe", port, 30, &names)])).host();
    assert_eq!(
        vectors(&host.interfaces[0]),
        ["30=combined 0 netlink", "31=combined 1 netlink"]
    );
    assert!(host.interfaces[0].contradictions.is_empty());
}

#[test]
fn an_interface_that_is_down_has_what_its_driver_still_holds() {
    let mut port = Port::new("eth0", 10_000, 2, 2);
    port.state = "down".to_owned();
    port.speed = None;
    // Allocated and not requested.
    let tree = MachineTree::build(&two_nodes([card("ixgbe", port, 30, &["", "", ""])]));
    tree.make_dir("proc/irq/0");
    assert!(tree.host().interfaces[0].vectors.is_empty());
    let plan = tree.plan(&["eth0"]);
    assert_eq!(codes(of(&plan, "eth0")), ["no-vectors"]);
    assert!(tree.plan(&[]).interfaces.is_empty());
}

/// mlx5 requests a channel's IRQ when it is first opened: until then its only IRQ is that of one queue of four. Of an
/// interface that is up, the only IRQ serves them all.
#[test]
fn a_queue_of_an_interface_that_was_never_up_weighs_as_one_of_all_its_queues() {
    let function = |function: u32, name: &str, state: &str, irqs: &[&str]| {
        let at = format!("82:00.{function}");
        let names = irqs.iter().map(|irq| format!("mlx5_{irq}@pci:0000:{at}"));
        let mut port = Port::new(name, 25_000, 4, 4).channels([0, 0, 0, 4], [0, 0, 0, 4]);
        port.state = state.to_owned();
        let (parent, address) = ("pci0000:80/0000:80:02.0", format!("0000:{at}"));
        Card::new("mlx5_core", parent, &address, 0, "8.0 GT/s PCIe", 8)
            .port(port)
            .vectors(30 + 10 * function, names, &[0, 1, 2, 3], &[0])
    };
    let plan = |state: &str| {
        let mut host = MachineSpec::even(1, 4, 1, 4);
        let all = ["async0", "comp0", "comp1", "comp2", "comp3"];
        host.cards = vec![
            function(0, "eth0", "up", &all),
            function(1, "eth1", state, &all[..2]),
        ];
        let plan = MachineTree::build(&host).plan(&[]);
        let cores = planned(of(&plan, "eth0")).iter().unique().count();
        let of_plan = |measure| plan.score.of(measure);
        (
            cores,
            of_plan(Measure::BusiestLoad),
            of_plan(Measure::BusiestShare),
        )
    };
    // Of 25 Gbit/s of each port.
    assert_eq!(plan("down"), (4, 12_500, 25));
    assert_eq!(plan("up"), (3, 25_000, 50));
}

/// Its driver has freed the line, so that the handlers there are those of others.
#[test]
fn a_line_belongs_to_a_card_that_is_down_only_by_a_handler_of_its_own() {
    for (driver, action, expected) in [
        ("e1000", "ehci_hcd:usb1", ["no-vectors"].as_slice()),
        ("e1000", "eth1", &["no-vectors"]),
        ("sky2", "sky2@pci:0000:83:00.0", &["no-vectors"]),
        ("sky2", "sky2@pci:0000:82:00.0", &[]),
    ] {
        let mut port = Port::new("eth0", 1000, 1, 1);
        port.state = "down".to_owned();
        let mut line = card(driver, port, 30, &[action]);
        line.msi = false;
        let plan = MachineTree::build(&two_nodes([line.clone()])).plan(&["eth0"]);
        assert_eq!(codes(of(&plan, "eth0")), expected, "{driver}: {action}");
        line.ports[0].state = "up".to_owned();
        let plan = MachineTree::build(&two_nodes([line])).plan(&["eth0"]);
        assert!(
            !codes(of(&plan, "eth0")).contains(&"no-vectors"),
            "{driver}: {action}"
        );
    }
}

#[test]
fn an_interface_that_goes_away_while_it_is_read_is_not_there() {
    let names = ["eth0-TxRx-0", "eth0-TxRx-1"];
    let port = Port::new("eth0", 10_000, 2, 2).netlink(&[("rx", 0, 30), ("tx", 0, 30)]);
    let mut gone = card(
        "ixgbe",
        Port::new("eth1", 10_000, 1, 1),
        40,
        &["eth1-TxRx-0"],
    );
    gone.address = "0000:83:00.0".to_owned();
    let tree = MachineTree::build(&two_nodes([card("ixgbe", port, 30, &names), gone]));
    // /sys/class/net still lists it, as a broken link; a vector of the other interface has lost its directory.
    std::fs::remove_dir_all(
        tree.dir()
            .join("sys/devices/pci0000:00/0000:00:02.0/0000:83:00.0"),
    )
    .unwrap();
    std::fs::remove_dir_all(tree.dir().join("proc/irq/31")).unwrap();
    let host = tree.host();
    let names: Vec<&str> = host.interfaces.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["eth0"]);
    assert_eq!(vectors(&host.interfaces[0]), ["30=combined 0 netlink"]);
}

// The files of an IRQ.

const TWO_QUEUES: [&str; 2] = ["eth0-TxRx-0", "eth0-TxRx-1"];

#[test]
fn the_file_of_an_irq_s_handlers_goes_before_the_list_of_all() {
    let tree = MachineTree::build(&two_nodes([card(
        "ixgbe",
        Port::new("eth0", 10_000, 2, 2),
        98,
        &TWO_QUEUES,
    )]));
    tree.put("proc/interrupts", "not what a kernel prints");
    for (irq, actions) in [(98, "eth0-TxRx-0"), (99, "PCIe PME,eth0-TxRx-1")] {
        tree.put(&format!("sys/kernel/irq/{irq}/actions"), actions);
    }
    assert_eq!(
        vectors(&tree.host().interfaces[0]),
        ["98=combined 0 name", "99=combined 1 name"]
    );
    tree.put("sys/kernel/irq/99/actions", "");
    assert_eq!(
        vectors(&tree.host().interfaces[0]),
        ["98=combined 0 name"],
        "nobody has requested 99"
    );
}

#[test]
fn an_irq_without_such_a_file_is_looked_up_in_the_list_of_all() {
    let tree = MachineTree::build(&two_nodes([card(
        "ixgbe",
        Port::new("eth0", 10_000, 2, 2),
        98,
        &TWO_QUEUES,
    )]));
    tree.put("sys/kernel/irq/98/actions", "eth0");
    assert_eq!(
        vectors(&tree.host().interfaces[0]),
        ["99=combined 1 name", "98=control"]
    );
}
