//! Selectors that stand for other interfaces, or for none.

use nicpin::plan::{Note, Plan};
use snapbox::{assert_data_eq, str};

use crate::support::host::{codes, cpus as planned, of};
use crate::support::machine::{Port, card, two_nodes};
use crate::support::run::{MachineTree, assert_line, document, expect};

fn listed(plan: &Plan) -> Vec<(&str, String)> {
    plan.interfaces
        .iter()
        .map(|interface| (interface.name.as_str(), interface.via.join(",")))
        .collect()
}

/// Accelerated networking: the virtual function below carries the traffic, and is planned once.
#[test]
fn a_hyper_v_card_stands_for_the_virtual_function_below_it() {
    let names = [
        "mlx5_async0@pci:0000:82:00.0",
        "mlx5_comp0@pci:0000:82:00.0",
        "mlx5_comp1@pci:0000:82:00.0",
    ];
    let tree = MachineTree::build(&two_nodes([card(
        "mlx5_core",
        Port::new("enP1s1", 50_000, 2, 2),
        30,
        &names,
    )]));
    let device = "sys/devices/VMBUS:00/f8b3781a-1e82-4818-a1c3-63d806ec15bb";
    tree.add(device, "vmbus", "hv_netvsc", "eth0", 2);
    tree.link(
        &format!("{device}/net/eth0/lower_enP1s1"),
        "../../../../../class/net/enP1s1",
    );
    tree.put(&format!("{device}/numa_node"), "1\n");
    let channels = r#"{"max_rx":0,"max_tx":0,"max_other":0,"max_combined":64,"rx":0,"tx":0,"other":0,"combined":2}"#;
    tree.put("nicpin/ethtool/eth0/channels", channels);
    let plan = tree.plan(&["eth0", "enP1s1"]);
    let listed = listed(&plan);
    assert_eq!(
        listed,
        [("enP1s1", "eth0".to_owned()), ("eth0", String::new())]
    );
    assert_eq!(planned(of(&plan, "enP1s1")), ["1", "2"]);
    assert_eq!(of(&plan, "eth0").node, of(&plan, "enP1s1").node);
    let mut notes = of(&plan, "eth0").notes.iter();
    let note = notes.find(|note| note.code() == "vmbus-channels").unwrap();
    assert_line(
        note.to_string(),
        str![[r"
packets arrive on enP1s1 while it is there, else by Hyper-V's VMBus channels, which have no IRQs; nicpin does not move them. Channel -> CPU: unknown

"]],
    );
    let advice = of(&plan, "eth0").notes.iter().filter_map(Note::advice);
    assert_eq!(advice.count(), 0);
    assert_eq!(plan.not_judged, [""; 0]);
    document(&tree, &["plan"]);
}

/// A port of a switch (DSA) and the master of `net_failover`: both have a device, and their packets arrive by the
/// interface below.
#[test]
fn interfaces_whose_packets_arrive_by_others_stand_for_those() {
    let names = ["eth0", "eth0-TxRx-0"];
    let below = card("igb", Port::new("eth0", 1000, 1, 1), 30, &names);
    let tree = MachineTree::build(&two_nodes([below]));
    for (name, device, devtype) in [
        ("wan", "sys/devices/platform/switch", "DEVTYPE=dsa"),
        ("fo0", "sys/devices/virtio9", ""),
    ] {
        tree.add(device, "platform", "mt7530", name, 1);
        let net = format!("{device}/net/{name}");
        tree.put(&format!("{net}/uevent"), devtype);
        let lower = format!("{net}/lower_eth0");
        tree.link(&lower, "../../../../class/net/eth0");
    }
    let machine = tree.host();
    let known: Vec<_> = machine.interfaces.iter().map(|i| &*i.name).collect();
    assert_eq!(known, ["eth0"]);
    let kinds = machine
        .stacked
        .iter()
        .map(|stacked| stacked.kind.as_deref());
    assert_eq!(kinds.collect::<Vec<_>>(), [Some("failover"), Some("dsa")]);
    for name in ["wan", "fo0"] {
        assert_eq!(listed(&tree.plan(&[name])), [("eth0", name.to_owned())]);
    }
}

/// The IRQs of the function itself, whatever its sub-functions are called.
#[test]
fn a_sub_function_takes_no_irq_of_its_card() {
    let names = [
        "mlx5_async0@pci:0000:82:00.0",
        "mlx5_comp0@pci:0000:82:00.0",
    ];
    let port = Port::new("eth0", 50_000, 1, 1);
    let tree = MachineTree::build(&two_nodes([card("mlx5_core", port, 30, &names)]));
    let function = "sys/devices/pci0000:00/0000:00:02.0/0000:82:00.0/mlx5_core.sf.2";
    tree.add(function, "auxiliary", "mlx5_core.sf", "a0", 1);
    let plan = tree.plan(&[]);
    let irqs = |name| of(&plan, name).vectors.iter().map(|vector| vector.irq);
    assert_eq!(irqs("eth0").collect::<Vec<_>>(), [31, 30]);
    assert_eq!(irqs("a0").count(), 0);
}

/// A card whose driver hands functions on (switchdev) has an interface for each of them beside its own.
#[test]
fn representors_stand_for_the_interface_of_their_card() {
    let names = [
        "mlx5_async0@pci:0000:82:00.0",
        "mlx5_comp0@pci:0000:82:00.0",
    ];
    let port = |name: &str| Port::new(name, 100_000, 1, 1);
    let representors = [
        ("rep0", "pf0vf0"),
        ("rep1", "pf0sf88"),
        ("rep2", "c1pf0"),
        ("rep3", "c1pf0vf3"),
    ];
    let own = card("mlx5_core", port("eth0"), 30, &names);
    let all = representors
        .iter()
        .fold(own, |card, (name, _)| card.port(port(name)));
    let tree = MachineTree::build(&two_nodes([all]));
    let set =
        |name: &str, value: &str| tree.put(&format!("/sys/class/net/{name}/phys_port_name"), value);
    set("eth0", "p0");
    for (name, value) in representors {
        set(name, value);
    }
    let plan = tree.plan(&[]);
    assert_eq!(listed(&plan), [("eth0", String::new())]);
    assert!(plan.not_judged.is_empty());
    assert_eq!(listed(&tree.plan(&["rep3"])), [("eth0", "rep3".to_owned())]);
    // A second port, and a name that only begins like theirs.
    set("rep0", "p1");
    set("rep1", "pf0vfx");
    assert_eq!(tree.plan(&[]).interfaces.len(), 3);
    // With the flower firmware of nfp, the ports as well.
    set("eth0", "n0");
    set("rep1", "p0s1");
    assert_eq!(listed(&tree.plan(&["rep0"])), [("eth0", "rep0".to_owned())]);
    // Beside no interface of the card's own, they are all that is known.
    for name in ["eth0", "rep0", "rep1"] {
        tree.remove(&format!("/sys/class/net/{name}"));
    }
    assert_eq!(tree.plan(&[]).interfaces.len(), 2);
}

/// Of a representor with a name before that of the card's own interface; the names of the IRQs hold neither.
#[test]
fn what_was_written_for_a_card_with_representors_is_restored() {
    let names = [
        "mlx5_async0@pci:0000:82:00.0",
        "mlx5_comp0@pci:0000:82:00.0",
        "mlx5_comp1@pci:0000:82:00.0",
    ];
    let own = card("mlx5_core", Port::new("p0", 100_000, 2, 2), 30, &names);
    let tree = MachineTree::build(&two_nodes([own.port(Port::new(
        "en3f0pf0sf0",
        100_000,
        1,
        1,
    ))]));
    for (name, port) in [("p0", "p0"), ("en3f0pf0sf0", "pf0sf0")] {
        tree.put(&format!("/sys/class/net/{name}/phys_port_name"), port);
    }
    let affinities = || {
        [31, 32].map(|irq| {
            tree.read(&format!("/proc/irq/{irq}/smp_affinity"))
                .trim()
                .to_owned()
        })
    };
    let before = affinities();
    assert_eq!(tree.nicpin(&["apply"]).code, 0);
    assert_ne!(affinities(), before);
    assert_eq!(tree.nicpin(&["restore"]).code, 0);
    assert_eq!(affinities(), before);
    assert!(!tree.path("/run/nicpin/state.json").exists());
}

#[test]
fn interfaces_without_a_device_are_named_by_their_kind() {
    let tree = MachineTree::build(&two_nodes([]));
    tree.add_virtual("lo", &[("type", "772")]);
    tree.add_virtual("dummy0", &[]);
    tree.add_virtual("veth1", &[("iflink", "8")]);
    tree.add_virtual("tap0", &[("tun_flags", "0x1002")]);
    tree.add_virtual("vxlan0", &[("uevent", "DEVTYPE=vxlan\nINTERFACE=vxlan0")]);
    tree.add_virtual("br0", &[("bridge/stp_state", "0")]);
    // A CAN bus on a board, and a device that a program emulates (VDUSE).
    let devices = [
        (
            "sys/devices/platform/308c0000.can",
            "flexcan",
            "can0",
            "280",
        ),
        ("sys/devices/virtual/vduse/disk0", "virtio_net", "eth9", "1"),
    ];
    for (device, driver, name, kind) in devices {
        tree.add(device, "platform", driver, name, 1);
        tree.put(&format!("{device}/net/{name}/type"), kind);
    }
    let names = [
        "lo", "dummy0", "veth1", "tap0", "vxlan0", "br0", "can0", "eth9",
    ];
    let said = names.map(|name| tree.refuses(name));
    let all = tree.fails(&["status"], 1);
    expect("no-device.errors.txt", said.concat() + &all);
    assert!(tree.plan(&[]).interfaces.is_empty());
}

#[test]
fn rdma_devices_stand_for_the_interfaces_of_their_function() {
    let names = ["mlx5_comp0@pci:0000:82:00.0", "mlx5_comp1@pci:0000:82:00.0"];
    let card = card("mlx5_core", Port::new("eth0", 100_000, 2, 2), 30, &names)
        .port(Port::new("ib0", 100_000, 2, 2));
    let tree = MachineTree::build(&two_nodes([card]));
    for (name, device) in [
        ("mlx5_0", "0000:00:02.0/0000:82:00.0"),
        ("mlx5_1", "0000:00:02.0/0000:82:00.7"),
    ] {
        tree.make_dir(&format!("sys/devices/pci0000:00/{device}"));
        tree.link(
            &format!("sys/class/infiniband/{name}/device"),
            &format!("../../../devices/pci0000:00/{device}"),
        );
    }
    tree.make_dir("sys/class/infiniband/rxe0");
    let plan = tree.plan(&["mlx5_0", "eth0"]);
    let listed = listed(&plan);
    assert_eq!(
        listed,
        [("eth0", "mlx5_0".to_owned()), ("ib0", "mlx5_0".to_owned())]
    );
    assert_eq!(planned(of(&plan, "eth0")), ["1", "2"]);
    assert_eq!(codes(of(&plan, "ib0")), ["vectors-shared"]);
    assert_eq!(tree.plan(&["mlx5_?"]).interfaces.len(), 2);
    let said = ["mlx5_1", "rxe0"].map(|name| tree.refuses(name));
    assert_data_eq!(
        said.concat(),
        str![[r"
nicpin: `mlx5_1` is an RDMA device on 0000:82:00.7, which has no network interface, so there is nothing to plan
nicpin: `rxe0` is a software RDMA device: it has no IRQs, so there is nothing to plan

"]]
    );
}

#[test]
fn bonds_teams_vlans_bridges_and_macvlans_stand_for_the_interfaces_below() {
    let one = |name: &str, address: &str, first: u32| {
        let names = [format!("{name}-TxRx-0"), format!("{name}-TxRx-1")];
        let mut card = card(
            "ixgbe",
            Port::new(name, 10_000, 2, 2),
            first,
            &names.each_ref().map(String::as_str),
        );
        card.address = address.to_owned();
        card
    };
    let mut machine = two_nodes([
        one("eth0", "0000:82:00.0", 30),
        one("eth1", "0000:82:00.1", 40),
    ]);
    for (upper, lowers) in [
        ("bond0", &["eth0", "eth1"][..]),
        ("team0", &["eth1"]),
        ("bond0.5", &["bond0"]),
        ("br0", &["bond0.5", "tap0"]),
        ("macvlan0", &["eth1"]),
        ("br1", &["tap0"]),
    ] {
        machine.stacked.push((
            upper.to_owned(),
            lowers.iter().map(|&lower| lower.to_owned()).collect(),
        ));
    }
    let tree = MachineTree::build(&machine);
    tree.add_virtual("tap0", &[("tun_flags", "0x1002")]);
    for (selectors, expected) in [
        (&["bond0"][..], &[("eth0", "bond0"), ("eth1", "bond0")][..]),
        (&["team0"], &[("eth1", "team0")]),
        (&["bond0.5"], &[("eth0", "bond0.5"), ("eth1", "bond0.5")]),
        (&["br0"], &[("eth0", "br0"), ("eth1", "br0")]),
        (&["macvlan0"], &[("eth1", "macvlan0")]),
        (
            &["eth0", "team0", "br0"],
            &[("eth0", "br0"), ("eth1", "team0,br0")],
        ),
        (&["eth*"], &[("eth0", ""), ("eth1", "")]),
    ] {
        let plan = tree.plan(selectors);
        let listed = listed(&plan);
        let expected: Vec<_> = expected
            .iter()
            .map(|&(name, via)| (name, via.to_owned()))
            .collect();
        assert_eq!(listed, expected, "{selectors:?}");
    }
    expect("bond.txt", tree.nicpin(&["plan", "bond0"]).stdout);
    assert_data_eq!(
        tree.refuses("br1"),
        str![[r"
nicpin: no interface matches `br1`; it is above tap0, and no interface below it has a device

"]]
    );
}

#[test]
fn a_virtual_function_names_its_parent() {
    let names = ["iavf-eth0v1-TxRx-0", "iavf-0000:82:02.0:mbx"];
    let mut vf = card("iavf", Port::new("eth0v1", 10_000, 1, 1), 30, &names);
    vf.address = "0000:82:02.0".to_owned();
    let tree = MachineTree::build(&two_nodes([vf]));
    let function = "sys/devices/pci0000:00/0000:00:02.0/0000:82:02.0";
    tree.make_dir("sys/devices/pci0000:00/0000:00:02.0/0000:82:00.0");
    tree.link(&format!("{function}/physfn"), "../0000:82:00.0");
    assert_eq!(
        of(&tree.plan(&["eth0v1"]), "eth0v1").parent.as_deref(),
        Some("0000:82:00.0")
    );
    let plan = tree.nicpin(&["plan", "eth0v1"]).stdout;
    let mut lines = plan.lines();
    let heading = lines.find(|line| line.starts_with("eth0v1 "));
    assert_line(
        heading.unwrap(),
        str![[r"
eth0v1  iavf 0000:82:02.0 (VF of 0000:82:00.0), 10 Gbit/s, node 0: CPUs 0-3 (4 cores)

"]],
    );
}
