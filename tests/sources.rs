//! Whose vector is which queue's, by netlink, names and order, on trees; and what has no vectors to place.

#![allow(clippy::unwrap_used)] // a failed step fails the test

mod support;

use std::path::Path;

use nicpin::host::{Host, Interface, Root, Source};
use nicpin::plan::Plan;
use nicpin::policy::Policy;
use nicpin::select::Selection;
use support::host::{codes, cpus as planned, of};
use support::machine::{Card, Machine, Port, cpus};
use support::run::{Run, nicpin};
use support::tree::{link, make_dir, put};

/// A machine's tree, to which a test can add what the builder does not know.
struct Tree(tempfile::TempDir);

impl Tree {
    fn of(machine: &Machine) -> Self {
        let dir = tempfile::tempdir().unwrap();
        machine.write(dir.path());
        Self(dir)
    }

    fn dir(&self) -> &Path {
        self.0.path()
    }

    fn host(&self) -> Host {
        Host::read(&Root::open(self.dir()).unwrap()).unwrap()
    }

    fn plan(&self, selectors: &[&str]) -> Plan {
        let host = self.host();
        let selectors: Vec<String> = selectors.iter().map(|&s| s.to_owned()).collect();
        let selection = Selection::new(&host, &selectors, false).unwrap();
        nicpin::plan::plan(&host, &Policy::default(), &selection)
    }

    /// Adds an interface on a device of another bus than PCI, which has no list of IRQs.
    fn add(&self, device: &str, bus: &str, driver: &str, interface: &str, queues: u32) {
        let up = "../".repeat(device.matches('/').count());
        link(self.dir(), &format!("{device}/subsystem"), &format!("{up}bus/{bus}"));
        link(self.dir(), &format!("{device}/driver"), &format!("{up}bus/{bus}/drivers/{driver}"));
        let path = format!("{device}/net/{interface}");
        let target = format!("../../{}", path.trim_start_matches("sys/"));
        link(self.dir(), &format!("sys/class/net/{interface}"), &target);
        link(
            self.dir(),
            &format!("{path}/device"),
            &format!("../../../{}", device.rsplit('/').next().unwrap()),
        );
        put(self.dir(), &format!("{path}/operstate"), "up");
        for queue in 0..queues {
            make_dir(self.dir(), &format!("{path}/queues/rx-{queue}"));
            make_dir(self.dir(), &format!("{path}/queues/tx-{queue}"));
        }
    }

    /// Adds rows to `/proc/interrupts` of handlers with these names, and their files.
    fn interrupts(&self, first: u32, chip: &str, actions: &[&str]) {
        let mut text = support::tree::read(self.dir(), "proc/interrupts");
        for (irq, action) in (first..).zip(actions) {
            let counts = "          0 ".repeat(8);
            text.push_str(&format!("\n{irq:>3}: {counts} {chip}  {action}"));
            put(self.dir(), &format!("proc/irq/{irq}/smp_affinity"), "ff");
        }
        put(self.dir(), "proc/interrupts", &text);
    }

    /// Adds an interface without a device.
    fn add_virtual(&self, name: &str, files: &[(&str, &str)]) {
        let path = format!("sys/devices/virtual/net/{name}");
        link(self.dir(), &format!("sys/class/net/{name}"), &format!("../../devices/virtual/net/{name}"));
        for (file, text) in [("type", "1"), ("ifindex", "9"), ("iflink", "9")].iter().chain(files) {
            put(self.dir(), &format!("{path}/{file}"), text);
        }
    }

    /// The one line that the program says when it plans for a selector and cannot.
    fn refuses(&self, selector: &str) -> String {
        let run = self.run(&["plan", selector]);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{selector}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        // The same is a note where things may be missing.
        let run_if = self.run(&["plan", "--if-present", selector]);
        assert_eq!(run_if.code, 0, "{}", run_if.stderr);
        assert!(run_if.stdout.contains(&format!("`{selector}`")), "{}", run_if.stdout);
        run.stderr
    }

    fn run(&self, args: &[&str]) -> Run {
        nicpin(&[args, &["--root", self.dir().to_str().unwrap()]].concat())
    }
}

/// A card on node 0 with as many queues each way, its vectors from an IRQ on.
fn card(driver: &str, port: Port, first: u32, actions: &[&str]) -> Card {
    Card::new(driver, "pci0000:00/0000:00:02.0", "0000:82:00.0", 0, "8.0 GT/s PCIe", 8).port(port).vectors(
        first,
        actions.iter().copied(),
        &cpus("0-3"),
        &[0],
    )
}

fn two_nodes(cards: impl IntoIterator<Item = Card>) -> Machine {
    let mut machine = Machine::new(&["0-3", "4-7"]);
    machine.cards.extend(cards);
    machine
}

/// `irq=role queue source` of each vector, in the plan's order.
fn vectors(interface: &Interface) -> Vec<String> {
    let text = |v: &nicpin::host::Vector| match v.queue {
        Some(queue) => format!("{}={:?} {queue} {:?}", v.irq, v.role, v.source).to_lowercase(),
        None => format!("{}=control", v.irq),
    };
    interface.vectors.iter().map(text).collect()
}

// Netlink.

#[test]
fn netlink_tells_of_vectors_whose_names_say_nothing() {
    let port = Port::new("eth0", 10_000, 2, 2).netlink(&[
        ("rx", 0, 31),
        ("tx", 0, 31),
        ("rx", 1, 30),
        ("tx", 1, 30),
    ]);
    let tree = Tree::of(&two_nodes([card("newdriver", port, 30, &["nd:a", "nd:b", "nd:c"])]));
    let eth0 = &tree.host().interfaces[0];
    assert_eq!(vectors(eth0), ["31=combined 0 netlink", "30=combined 1 netlink"]);
    assert_eq!(eth0.unknown_vectors.len(), 1);
    let plan = tree.plan(&["eth0"]);
    assert_eq!(planned(of(&plan, "eth0")), ["1", "2"]);
    assert_eq!(codes(of(&plan, "eth0")), ["unknown-vectors"]);
}

#[test]
fn netlink_wins_over_a_name_and_the_plan_says_so() {
    let told = [("rx", 0, 31), ("tx", 0, 31), ("rx", 1, 30), ("tx", 1, 30)];
    let port = Port::new("eth0", 10_000, 2, 2).netlink(&told);
    let tree = Tree::of(&two_nodes([card("ixgbe", port, 30, &["eth0-TxRx-0", "eth0-TxRx-1", "eth0"])]));
    let eth0 = &tree.host().interfaces[0];
    assert_eq!(vectors(eth0), ["31=combined 0 netlink", "30=combined 1 netlink", "32=control"]);
    assert_eq!(eth0.contradictions.len(), 2);
    let plan = tree.plan(&["eth0"]);
    let notes = &of(&plan, "eth0").notes;
    let note = notes.iter().find(|note| note.code == "sources-disagree").unwrap();
    for part in ["IRQ 30 (eth0-TxRx-0) is combined 1 by netlink and combined 0 by its name", "IRQ 31"] {
        assert!(note.text.contains(part), "{}", note.text);
    }
    let run = tree.run(&["plan", "eth0", "--format", "json"]);
    assert!(run.stdout.contains(r#""source": "netlink""#) && run.stdout.contains("sources-disagree"));
}

#[test]
fn a_driver_that_names_no_irq_over_netlink_is_read_by_its_names() {
    let mut port = Port::new("eth0", -1, 2, 2);
    port.netlink = "queue rx 0 napi 8193\nqueue rx 1 napi 8194\nqueue tx 0\nqueue tx 1\n\
                    napi 8193\nnapi 8194"
        .to_owned();
    let names =
        ["config", "input.0", "output.0", "input.1", "output.1"].map(|what| format!("virtio0-{what}"));
    let mut card = card("virtio_net", port, 30, &names.each_ref().map(String::as_str));
    card.virtio = Some(0);
    let tree = Tree::of(&two_nodes([card]));
    let eth0 = &tree.host().interfaces[0];
    assert_eq!(vectors(eth0), ["31=rx 0 name", "32=tx 0 name", "33=rx 1 name", "34=tx 1 name", "30=control"]);
    assert_eq!(eth0.netlink.as_ref().unwrap().queues.len(), 4);
    assert!(eth0.contradictions.is_empty());
}

/// Each port of an mlx4 card answers for itself; names give all vectors to the first.
#[test]
fn ports_of_one_function_are_told_apart_by_netlink() {
    let names = ["mlx4-async@pci:0000:82:00.0", "mlx4-1@0000:82:00.0", "mlx4-2@0000:82:00.0"];
    let both = |irq: u32| [("rx", 0, irq), ("tx", 0, irq)];
    let card = card("mlx4_core", Port::new("eth0", 10_000, 1, 1).netlink(&both(31)), 30, &names)
        .port(Port::new("eth1", 10_000, 1, 1).netlink(&both(32)));
    let host = Tree::of(&two_nodes([card.clone()])).host();
    assert_eq!(vectors(&host.interfaces[0]), ["31=combined 0 netlink", "30=control"]);
    assert_eq!(vectors(&host.interfaces[1]), ["32=combined 0 netlink"]);
    // On one vector both are listed, and the plan says that it is one line.
    let mut card = card;
    card.ports[1] = Port::new("eth1", 10_000, 1, 1).netlink(&both(31));
    let plan = Tree::of(&two_nodes([card])).plan(&[]);
    assert_eq!(planned(of(&plan, "eth1")), ["-"]);
    assert_eq!(codes(of(&plan, "eth1")), ["line-shared"]);
}

/// One interface over two functions, one on each node: every vector goes to the node of its own function.
#[test]
fn an_interface_over_two_functions_uses_both_nodes() {
    let told: Vec<(&str, u32, u32)> = [(0, 31), (1, 41), (2, 32), (3, 42)]
        .iter()
        .flat_map(|&(q, irq)| [("rx", q, irq), ("tx", q, irq)])
        .collect();
    let comp = |n: u32, bus: &str| format!("mlx5_comp{n}@pci:0000:{bus}:00.0");
    let names = ["mlx5_async0@pci:0000:82:00.0".to_owned(), comp(0, "82"), comp(1, "82")];
    let first = card(
        "mlx5_core",
        Port::new("eth0", 100_000, 4, 4).netlink(&told),
        30,
        &names.each_ref().map(String::as_str),
    );
    let mut second = Card::new("mlx5_core", "pci0000:c0/0000:c0:02.0", "0000:c1:00.0", 1, "8.0 GT/s PCIe", 8);
    second = second.vectors(41, [comp(0, "c1"), comp(1, "c1")], &cpus("0-7"), &[0]);
    let tree = Tree::of(&two_nodes([first, second]));
    for (irq, node) in [(31, 0), (32, 0), (41, 1), (42, 1)] {
        put(tree.dir(), &format!("proc/irq/{irq}/node"), &node.to_string());
    }
    let eth0 = &tree.host().interfaces[0];
    let nodes: Vec<_> = eth0.vectors.iter().map(|v| (v.irq, v.queue, v.node)).collect();
    let expected = [(31, Some(0), None), (41, Some(1), Some(1)), (32, Some(2), None), (42, Some(3), Some(1))];
    assert_eq!(nodes, [&expected[..], &[(30, None, None)]].concat());
    let plan = tree.plan(&["eth0"]);
    let eth0 = of(&plan, "eth0");
    assert_eq!(planned(eth0), ["1", "4", "2", "5"]);
    assert_eq!((eth0.candidates.to_string(), plan.score.local), ("0-7".to_owned(), Some(1.0)));
    assert_eq!(&*eth0.vectors[1].why, "node 1, that of the device which raises it");
    assert!(!codes(eth0).contains(&"queues-exceed-cores"));
}

/// Queues that share a vector are sent on where netlink says that they complete.
#[test]
fn queues_beyond_the_vectors_are_where_netlink_says() {
    let told = [("rx", 0, 30), ("tx", 0, 30), ("tx", 1, 30), ("rx", 1, 31), ("tx", 2, 31), ("tx", 3, 31)];
    let tree = Tree::of(&two_nodes([card(
        "newdriver",
        Port::new("eth0", 10_000, 2, 4).netlink(&told),
        30,
        &["nd:a", "nd:b"],
    )]));
    assert_eq!(vectors(&tree.host().interfaces[0]), ["30=combined 0 netlink", "31=rx 1 netlink"]);
    let plan = tree.plan(&["eth0"]);
    let xps: Vec<_> = of(&plan, "eth0").tx_queues.iter().map(|tx| tx.xps_cpus.clone().unwrap()).collect();
    let has = |queue: usize| xps[queue].iter().find(|cpu| [1, 2].contains(cpu));
    assert_eq!(planned(of(&plan, "eth0")), ["1", "2"]);
    assert_eq!([0, 1, 2, 3].map(has).iter().flatten().count(), 2);
    assert!(has(0).or(has(1)) == Some(1) && has(2).or(has(3)) == Some(2), "{xps:?}");
}

#[test]
fn an_irq_that_netlink_names_and_nobody_handles_is_no_vector() {
    let port = Port::new("eth0", 10_000, 2, 2).netlink(&[("rx", 0, 30), ("tx", 0, 30), ("rx", 1, 77)]);
    let tree = Tree::of(&two_nodes([card("ixgbe", port, 30, &["eth0-TxRx-0"])]));
    assert_eq!(vectors(&tree.host().interfaces[0]), ["30=combined 0 netlink"]);
}

#[test]
fn a_recorded_answer_that_is_none_is_named_with_its_line() {
    let mut port = Port::new("eth0", 10_000, 1, 1);
    port.netlink = "queue rx 0 napi 8193\nnapi 8193 irq none".to_owned();
    let tree = Tree::of(&two_nodes([card("igb", port, 30, &["eth0-TxRx-0"])]));
    let run = tree.run(&["plan"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(run.stderr.contains("/nicpin/netlink/eth0: line 2: `napi 8193 irq none`"), "{}", run.stderr);
}

// Order.

#[test]
fn vectors_that_are_all_named_alike_are_planned_by_their_order() {
    let atlantic = card("atlantic", Port::new("eth0", 10_000, 4, 4), 97, &["eth0"; 5]);
    let mut lan743x = card("lan743x", Port::new("eth1", 1000, 4, 1), 50, &["lan743x"; 6]);
    lan743x.address = "0000:83:00.0".to_owned();
    let tree = Tree::of(&two_nodes([atlantic, lan743x]));
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
        ["52=rx 0 order", "51=tx 0 order", "53=rx 1 order", "54=rx 2 order", "55=rx 3 order", "50=control"]
    );
    let plan = tree.plan(&["eth0"]);
    assert_eq!(planned(of(&plan, "eth0")), ["1", "2", "3", "0"]);
}

#[test]
fn one_vector_too_many_among_those_named_alike_leaves_all_unknown() {
    let tree = Tree::of(&two_nodes([card("atlantic", Port::new("eth0", 10_000, 4, 4), 97, &["eth0"; 6])]));
    let host = tree.host();
    assert_eq!((host.interfaces[0].vectors.len(), host.interfaces[0].unknown_vectors.len()), (0, 6));
    let run = tree.run(&["plan", "eth0"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
}

// Names.

#[test]
fn twelve_queues_across_irq_100_and_two_cards_of_one_driver() {
    let names = |name: &str| -> Vec<String> { (0..12).map(|n| format!("{name}-TxRx-{n}")).collect() };
    let one = |name: &str, address: &str, first: u32| {
        let names = names(name);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut card = card("ixgbe", Port::new(name, 10_000, 12, 12), first, &names);
        card.address = address.to_owned();
        card
    };
    let tree = Tree::of(&two_nodes([one("eth1", "0000:82:00.0", 94), one("eth10", "0000:82:00.1", 106)]));
    let host = tree.host();
    for (interface, first) in host.interfaces.iter().zip([94, 106]) {
        let irqs: Vec<_> = interface.vectors.iter().map(|v| (v.irq, v.queue, v.source)).collect();
        let expected: Vec<_> = (0..12).map(|n| (first + n, Some(n), Source::Name)).collect();
        assert_eq!(irqs, expected, "{}", interface.name);
    }
}

/// Drivers that wrote the old name into their vectors keep it; netlink does not care.
#[test]
fn a_renamed_interface_keeps_its_vectors() {
    let names = ["eth4-TxRx-0", "eth4-TxRx-1"];
    let tree = Tree::of(&two_nodes([card("ixgbe", Port::new("ens1f0", 10_000, 2, 2), 30, &names)]));
    assert_eq!(vectors(&tree.host().interfaces[0]), ["30=combined 0 name", "31=combined 1 name"]);
    let told = [("rx", 0, 30), ("tx", 0, 30), ("rx", 1, 31), ("tx", 1, 31)];
    let port = Port::new("ens1f0", 10_000, 2, 2).netlink(&told);
    let host = Tree::of(&two_nodes([card("ixgbe", port, 30, &names)])).host();
    assert_eq!(vectors(&host.interfaces[0]), ["30=combined 0 netlink", "31=combined 1 netlink"]);
    assert!(host.interfaces[0].contradictions.is_empty());
}

#[test]
fn an_interface_that_is_down_has_what_its_driver_still_holds() {
    let mut port = Port::new("eth0", 10_000, 2, 2);
    port.state = "down".to_owned();
    port.speed = None;
    // Allocated and not requested.
    let tree = Tree::of(&two_nodes([card("ixgbe", port, 30, &["", "", ""])]));
    assert!(tree.host().interfaces[0].vectors.is_empty());
    let plan = tree.plan(&["eth0"]);
    assert_eq!(codes(of(&plan, "eth0")), ["no-vectors"]);
    assert!(tree.plan(&[]).interfaces.is_empty());
}

#[test]
fn an_interface_that_goes_away_while_it_is_read_is_not_there() {
    let names = ["eth0-TxRx-0", "eth0-TxRx-1"];
    let port = Port::new("eth0", 10_000, 2, 2).netlink(&[("rx", 0, 30), ("tx", 0, 30)]);
    let mut gone = card("ixgbe", Port::new("eth1", 10_000, 1, 1), 40, &["eth1-TxRx-0"]);
    gone.address = "0000:83:00.0".to_owned();
    let tree = Tree::of(&two_nodes([card("ixgbe", port, 30, &names), gone]));
    // The class lists it still, but it leads nowhere; a vector of the other has lost its directory.
    std::fs::remove_dir_all(tree.dir().join("sys/devices/pci0000:00/0000:00:02.0/0000:83:00.0")).unwrap();
    std::fs::remove_dir_all(tree.dir().join("proc/irq/31")).unwrap();
    let host = tree.host();
    let names: Vec<&str> = host.interfaces.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["eth0"]);
    assert_eq!(vectors(&host.interfaces[0]), ["30=combined 0 netlink"]);
}

// Devices without a list of vectors.

#[test]
fn hyper_v_channels_are_listed_and_left_alone() {
    let tree = Tree::of(&two_nodes([]));
    let guid = "f8b3781a-1e82-4818-a1c3-63d806ec15bb";
    let device = format!("sys/devices/LNXSYSTM:00/ACPI0004:00/VMBUS:00/{guid}");
    tree.add(&device, "vmbus", "hv_netvsc", "eth0", 2);
    for (channel, cpu) in [(14, 0), (20, 5)] {
        put(tree.dir(), &format!("{device}/channels/{channel}/cpu"), &cpu.to_string());
    }
    let plan = tree.plan(&["eth0"]);
    let notes = &of(&plan, "eth0").notes;
    let note = notes.iter().find(|note| note.code == "vmbus-channels").unwrap();
    assert!(note.text.contains("14 -> 0, 20 -> 5"), "{}", note.text);
    let cure = format!("echo CPU > /sys/bus/vmbus/devices/{guid}/channels/CHANNEL/cpu");
    assert_eq!(note.cure.as_deref(), Some(cure.as_str()));
    assert!(plan.writes.is_empty());
    assert_eq!(tree.run(&["plan", "eth0"]).code, 0);
}

/// Accelerated networking: the virtual function below carries the traffic, and is planned once.
#[test]
fn a_hyper_v_card_stands_for_the_virtual_function_below_it() {
    let names =
        ["mlx5_async0@pci:0000:82:00.0", "mlx5_comp0@pci:0000:82:00.0", "mlx5_comp1@pci:0000:82:00.0"];
    let tree = Tree::of(&two_nodes([card("mlx5_core", Port::new("enP1s1", 50_000, 2, 2), 30, &names)]));
    let device = "sys/devices/VMBUS:00/f8b3781a-1e82-4818-a1c3-63d806ec15bb";
    tree.add(device, "vmbus", "hv_netvsc", "eth0", 2);
    link(tree.dir(), &format!("{device}/net/eth0/lower_enP1s1"), "../../../../../class/net/enP1s1");
    let plan = tree.plan(&["eth0", "enP1s1"]);
    let listed: Vec<_> = plan.interfaces.iter().map(|i| (i.name.as_str(), i.via.join(","))).collect();
    assert_eq!(listed, [("enP1s1", "eth0".to_owned()), ("eth0", String::new())]);
    assert_eq!(planned(of(&plan, "enP1s1")), ["1", "2"]);
}

#[test]
fn xen_queues_are_known_by_the_devices_name() {
    let tree = Tree::of(&two_nodes([]));
    tree.add("sys/devices/vif-0", "xen", "vif", "eth0", 2);
    tree.add("sys/devices/vif-10", "xen", "vif", "ens4", 1);
    let names = ["vif0-q0-tx", "vif0-q0-rx", "vif0-q1-tx", "vif0-q1-rx", "vif10-q0-tx", "vif10-q0-rx"];
    tree.interrupts(66, "  xen-dyn    -event    ", &names);
    let host = tree.host();
    let of = |name: &str| vectors(host.interfaces.iter().find(|i| i.name == name).unwrap());
    assert_eq!(of("eth0"), ["67=rx 0 name", "66=tx 0 name", "69=rx 1 name", "68=tx 1 name"]);
    assert_eq!(of("ens4"), ["71=rx 0 name", "70=tx 0 name"]);
    // A dump without links.
    std::fs::remove_file(tree.dir().join("sys/devices/vif-0/driver")).unwrap();
    assert_eq!(tree.host().interfaces[1].driver, None);
    put(tree.dir(), "sys/devices/vif-0/modalias", "xen:vif");
    assert_eq!(vectors(&tree.host().interfaces[1])[..2], ["67=rx 0 name", "66=tx 0 name"]);
}

#[test]
fn a_device_without_a_list_of_vectors_is_found_by_its_name() {
    let tree = Tree::of(&two_nodes([]));
    tree.add("sys/devices/vio/30000003", "vio", "ibmvnic", "env3", 2);
    tree.add("sys/devices/vio/3000000", "vio", "ibmvnic", "env4", 1);
    tree.add("sys/devices/platform/30be0000.ethernet", "platform", "fec", "end0", 1);
    tree.add("sys/devices/platform/8000000.ethernet", "platform", "am65-cpsw-nuss", "eth0", 1);
    tree.add("sys/devices/platform/1b100000.ethernet", "platform", "mtk_soc_eth", "wan", 1);
    let names = [
        "ibmvnic-30000003-tx0",
        "ibmvnic-30000003-tx1",
        "ibmvnic-30000003-rx0",
        "ibmvnic-30000003-rx1",
        "30be0000.ethernet",
        "8000000.ethernet-tx0",
        "8000000.ethernet-rx0",
        "1b100000.ethernet",
        "1b100000.ethernet",
        "18000000.ethernet-rx0",
    ];
    tree.interrupts(60, "   GICv3  48 Level    ", &names);
    let host = tree.host();
    let of = |name: &str| host.interfaces.iter().find(|i| i.name == name).unwrap();
    assert_eq!(vectors(of("env3")), ["62=rx 0 name", "60=tx 0 name", "63=rx 1 name", "61=tx 1 name"]);
    assert!(vectors(of("env4")).is_empty());
    assert_eq!(vectors(of("end0")), ["64=combined 0 name"]);
    assert_eq!(vectors(of("eth0")), ["66=rx 0 name", "65=tx 0 name"]);
    // Two alike, and nothing says which is which: named, and left alone.
    assert_eq!((of("wan").vectors.len(), of("wan").unknown_vectors.len()), (0, 2));
}

#[test]
fn what_has_no_device_is_called_what_it_is() {
    let tree = Tree::of(&two_nodes([]));
    tree.add_virtual("lo", &[("type", "772")]);
    tree.add_virtual("dummy0", &[]);
    tree.add_virtual("veth1", &[("iflink", "8")]);
    tree.add_virtual("tap0", &[("tun_flags", "0x1002")]);
    tree.add_virtual("vxlan0", &[("uevent", "DEVTYPE=vxlan\nINTERFACE=vxlan0")]);
    tree.add_virtual("br0", &[("bridge/stp_state", "0")]);
    for (name, what) in [
        ("lo", "the loopback interface"),
        ("dummy0", "a virtual interface (dummy or the like)"),
        ("veth1", "a veth or a tunnel"),
        ("tap0", "a TUN/TAP interface"),
        ("vxlan0", "a virtual interface (vxlan)"),
        ("br0", "a bridge without ports"),
    ] {
        let said = tree.refuses(name);
        let expected = format!("`{name}` is {what}: it has no device behind it and no vectors");
        assert!(said.contains(&expected), "{said}");
    }
    assert!(tree.plan(&[]).interfaces.is_empty());
}

#[test]
fn a_card_without_an_interface_says_who_has_it() {
    let tree = Tree::of(&two_nodes([]));
    let functions = [
        ("0000:3b:00.0", "vfio-pci", "0x020000"),
        ("0000:3b:00.1", "ixgbe", "0x020000"),
        ("0000:3b:00.2", "", "0x020700"),
    ];
    for (address, driver, class) in functions.iter().chain(&[("0000:01:00.0", "nvme", "0x010802")]) {
        let device = format!("sys/devices/pci0000:3a/{address}");
        put(tree.dir(), &format!("{device}/class"), class);
        if !driver.is_empty() {
            link(tree.dir(), &format!("{device}/driver"), &format!("../../../bus/pci/drivers/{driver}"));
        }
        link(
            tree.dir(),
            &format!("sys/bus/pci/devices/{address}"),
            &format!("../../../devices/pci0000:3a/{address}"),
        );
    }
    for (selector, expected) in [
        ("pci:0000:3b:00.0", "`pci:0000:3b:00.0` is a network card that is given to vfio-pci"),
        ("pci:3b:00.1", "ixgbe has it, and has made none or has it in another network namespace"),
        ("pci:3b:00.2", "no driver has it"),
        ("pci:01:00.0", "no interface matches `pci:01:00.0`"),
    ] {
        let said = tree.refuses(selector);
        assert!(said.contains(expected), "{selector}: {said}");
    }
}

// Names for what is below or beside.

#[test]
fn rdma_devices_stand_for_the_interfaces_of_their_function() {
    let names = ["mlx5_comp0@pci:0000:82:00.0", "mlx5_comp1@pci:0000:82:00.0"];
    let card =
        card("mlx5_core", Port::new("eth0", 100_000, 2, 2), 30, &names).port(Port::new("ib0", 100_000, 2, 2));
    let tree = Tree::of(&two_nodes([card]));
    for (name, device) in [("mlx5_0", "0000:00:02.0/0000:82:00.0"), ("mlx5_1", "0000:00:02.0/0000:82:00.7")] {
        make_dir(tree.dir(), &format!("sys/devices/pci0000:00/{device}"));
        link(
            tree.dir(),
            &format!("sys/class/infiniband/{name}/device"),
            &format!("../../../devices/pci0000:00/{device}"),
        );
    }
    make_dir(tree.dir(), "sys/class/infiniband/rxe0");
    let plan = tree.plan(&["mlx5_0", "eth0"]);
    let listed: Vec<_> = plan.interfaces.iter().map(|i| (i.name.as_str(), i.via.join(","))).collect();
    assert_eq!(listed, [("eth0", "mlx5_0".to_owned()), ("ib0", "mlx5_0".to_owned())]);
    assert_eq!(planned(of(&plan, "eth0")), ["1", "2"]);
    assert_eq!(codes(of(&plan, "ib0")), ["vectors-shared"]);
    assert_eq!(tree.plan(&["mlx5_?"]).interfaces.len(), 2);
    let said = tree.refuses("mlx5_1");
    assert!(
        said.contains("`mlx5_1` is an RDMA device on 0000:82:00.7, which has no network interface"),
        "{said}"
    );
    assert!(tree.refuses("rxe0").contains("`rxe0` is an RDMA device in software"));
}

#[test]
fn bonds_teams_vlans_bridges_and_macvlans_stand_for_what_is_below_and_the_plan_says_so() {
    let one = |name: &str, address: &str, first: u32| {
        let names = [format!("{name}-TxRx-0"), format!("{name}-TxRx-1")];
        let mut card =
            card("ixgbe", Port::new(name, 10_000, 2, 2), first, &names.each_ref().map(String::as_str));
        card.address = address.to_owned();
        card
    };
    let mut machine = two_nodes([one("eth0", "0000:82:00.0", 30), one("eth1", "0000:82:00.1", 40)]);
    for (upper, lowers) in [
        ("bond0", &["eth0", "eth1"][..]),
        ("team0", &["eth1"]),
        ("bond0.5", &["bond0"]),
        ("br0", &["bond0.5", "tap0"]),
        ("macvlan0", &["eth1"]),
        ("br1", &["tap0"]),
    ] {
        machine.stacked.push((upper.to_owned(), lowers.iter().map(|&lower| lower.to_owned()).collect()));
    }
    let tree = Tree::of(&machine);
    tree.add_virtual("tap0", &[("tun_flags", "0x1002")]);
    for (selectors, expected) in [
        (&["bond0"][..], &[("eth0", "bond0"), ("eth1", "bond0")][..]),
        (&["team0"], &[("eth1", "team0")]),
        (&["bond0.5"], &[("eth0", "bond0.5"), ("eth1", "bond0.5")]),
        (&["br0"], &[("eth0", "br0"), ("eth1", "br0")]),
        (&["macvlan0"], &[("eth1", "macvlan0")]),
        (&["eth0", "team0", "br0"], &[("eth0", "br0"), ("eth1", "team0,br0")]),
        (&["eth*"], &[("eth0", ""), ("eth1", "")]),
    ] {
        let plan = tree.plan(selectors);
        let listed: Vec<_> = plan.interfaces.iter().map(|i| (i.name.as_str(), i.via.join(","))).collect();
        let expected: Vec<_> = expected.iter().map(|&(name, via)| (name, via.to_owned())).collect();
        assert_eq!(listed, expected, "{selectors:?}");
    }
    let run = tree.run(&["plan", "bond0"]);
    assert!(run.stdout.contains("CPUs 0-3 via bond0\n"), "{}", run.stdout);
    assert!(tree.refuses("br1").contains("it stands on tap0, and no interface below it has a device"));
}

#[test]
fn a_virtual_function_knows_its_parent() {
    let names = ["iavf-eth0v1-TxRx-0", "iavf-0000:82:02.0:mbx"];
    let mut vf = card("iavf", Port::new("eth0v1", 10_000, 1, 1), 30, &names);
    vf.address = "0000:82:02.0".to_owned();
    let tree = Tree::of(&two_nodes([vf]));
    let function = "sys/devices/pci0000:00/0000:00:02.0/0000:82:02.0";
    make_dir(tree.dir(), "sys/devices/pci0000:00/0000:00:02.0/0000:82:00.0");
    link(tree.dir(), &format!("{function}/physfn"), "../0000:82:00.0");
    assert_eq!(of(&tree.plan(&["eth0v1"]), "eth0v1").parent.as_deref(), Some("0000:82:00.0"));
    let run = tree.run(&["plan", "eth0v1"]);
    assert!(run.stdout.contains("0000:82:02.0 (VF of 0000:82:00.0)"), "{}", run.stdout);
}

const TWO_QUEUES: [&str; 2] = ["eth0-TxRx-0", "eth0-TxRx-1"];

#[test]
fn the_file_of_an_irq_s_handlers_goes_before_the_list_of_all() {
    let tree = Tree::of(&two_nodes([card("ixgbe", Port::new("eth0", 10_000, 2, 2), 98, &TWO_QUEUES)]));
    put(tree.dir(), "proc/interrupts", "not what a kernel prints");
    for (irq, actions) in [(98, "eth0-TxRx-0"), (99, "PCIe PME,eth0-TxRx-1")] {
        put(tree.dir(), &format!("sys/kernel/irq/{irq}/actions"), actions);
    }
    assert_eq!(vectors(&tree.host().interfaces[0]), ["98=combined 0 name", "99=combined 1 name"]);
    put(tree.dir(), "sys/kernel/irq/99/actions", "");
    assert_eq!(vectors(&tree.host().interfaces[0]), ["98=combined 0 name"], "nobody has requested 99");
}

#[test]
fn an_irq_without_such_a_file_is_looked_up_in_the_list_of_all() {
    let tree = Tree::of(&two_nodes([card("ixgbe", Port::new("eth0", 10_000, 2, 2), 98, &TWO_QUEUES)]));
    put(tree.dir(), "sys/kernel/irq/98/actions", "eth0");
    assert_eq!(vectors(&tree.host().interfaces[0]), ["99=combined 1 name", "98=control"]);
}
