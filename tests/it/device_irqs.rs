//! Devices without a list of vectors, devices without an interface, interfaces without a device, and selectors that
//! stand for other interfaces; on trees.

use crate::support::host::{codes, cpus as planned, of};
use crate::support::machine::Port;
use crate::support::run::Copy;
use crate::support::small::{Tree, card, two_nodes, vectors};
use crate::support::tree::{link, make_dir, put};
use nicpin::root::Root;

// Devices without a list of vectors.

#[test]
fn hyper_v_channels_are_listed_and_left_alone() {
    let tree = Tree::of(&two_nodes([]));
    let guid = "f8b3781a-1e82-4818-a1c3-63d806ec15bb";
    let device = format!("sys/devices/LNXSYSTM:00/ACPI0004:00/VMBUS:00/{guid}");
    tree.add(&device, "vmbus", "hv_netvsc", "eth0", 2);
    for (channel, cpu) in [(14, 0), (20, 5)] {
        put(
            tree.dir(),
            &format!("{device}/channels/{channel}/cpu"),
            &cpu.to_string(),
        );
    }
    let plan = tree.plan(&["eth0"]);
    let notes = &of(&plan, "eth0").notes;
    let note = notes
        .iter()
        .find(|note| note.code() == "vmbus-channels")
        .unwrap();
    assert!(note.to_string().contains("14 -> 0, 20 -> 5"), "{note:?}");
    // On x86 a row without a number, elsewhere a per-CPU IRQ; without either nothing is said.
    for (row, irqs) in [
        ("", "have no IRQs; nicpin"),
        (
            " HYP:  1  1   Hypervisor callback interrupts\n",
            "have no IRQs of their own but HYP of each CPU; nicpin",
        ),
        (
            "   4:  9  9   GICv3  18 Level     Hyper-V VMbus\n",
            "have no IRQs of their own but Hyper-V VMbus (IRQ 4) of each CPU; nicpin",
        ),
    ] {
        let rows = format!("      CPU0  CPU1\n 9:  0  0  IO-APIC  9-fasteoi  acpi\n{row}");
        put(tree.dir(), "proc/interrupts", rows.trim_end());
        let plan = tree.plan(&["eth0"]);
        let mut notes = of(&plan, "eth0").notes.iter();
        let note = notes.find(|note| note.code() == "vmbus-channels").unwrap();
        assert!(note.to_string().contains(irqs), "{note}");
    }
    let fix = format!("echo CPU > /sys/bus/vmbus/devices/{guid}/channels/CHANNEL/cpu");
    assert_eq!(
        crate::support::host::fix_of(note).as_deref(),
        Some(fix.as_str())
    );
    assert!(plan.writes.is_empty());
    assert_eq!(tree.run(&["plan", "eth0"]).code, 0);
}

/// Accelerated networking: the virtual function below carries the traffic, and is planned once.
#[test]
fn a_hyper_v_card_stands_for_the_virtual_function_below_it() {
    let names = [
        "mlx5_async0@pci:0000:82:00.0",
        "mlx5_comp0@pci:0000:82:00.0",
        "mlx5_comp1@pci:0000:82:00.0",
    ];
    let tree = Tree::of(&two_nodes([card(
        "mlx5_core",
        Port::new("enP1s1", 50_000, 2, 2),
        30,
        &names,
    )]));
    let device = "sys/devices/VMBUS:00/f8b3781a-1e82-4818-a1c3-63d806ec15bb";
    tree.add(device, "vmbus", "hv_netvsc", "eth0", 2);
    link(
        tree.dir(),
        &format!("{device}/net/eth0/lower_enP1s1"),
        "../../../../../class/net/enP1s1",
    );
    let plan = tree.plan(&["eth0", "enP1s1"]);
    let listed: Vec<_> = plan
        .interfaces
        .iter()
        .map(|i| (i.name.as_str(), i.via.join(",")))
        .collect();
    assert_eq!(
        listed,
        [("enP1s1", "eth0".to_owned()), ("eth0", String::new())]
    );
    assert_eq!(planned(of(&plan, "enP1s1")), ["1", "2"]);
    let mut notes = of(&plan, "eth0").notes.iter();
    let note = notes.find(|note| note.code() == "vmbus-channels").unwrap();
    let said = note.to_string();
    let on = "packets arrive on enP1s1 while it is there, else by Hyper-V's VMBus channels";
    assert!(said.starts_with(on), "{said}");
    assert!(note.advice().is_none(), "{note:?}");
    assert!(!tree.run(&["plan"]).stdout.contains("echo CPU"));
    crate::support::schema::meets(&tree.run(&["plan", "--json"]).stdout);
}

#[test]
fn xen_queues_are_found_by_the_name_of_the_device() {
    let tree = Tree::of(&two_nodes([]));
    tree.add("sys/devices/vif-0", "xen", "vif", "eth0", 2);
    tree.add("sys/devices/vif-10", "xen", "vif", "ens4", 1);
    let names = [
        "vif0-q0-tx",
        "vif0-q0-rx",
        "vif0-q1-tx",
        "vif0-q1-rx",
        "vif10-q0-tx",
        "vif10-q0-rx",
    ];
    tree.interrupts(66, "  xen-dyn    -event    ", &names);
    let host = tree.host();
    let of = |name: &str| vectors(host.interfaces.iter().find(|i| i.name == name).unwrap());
    assert_eq!(
        of("eth0"),
        [
            "67=rx 0 name",
            "66=tx 0 name",
            "69=rx 1 name",
            "68=tx 1 name"
        ]
    );
    assert_eq!(of("ens4"), ["71=rx 0 name", "70=tx 0 name"]);
    // A tree without links.
    std::fs::remove_file(tree.dir().join("sys/devices/vif-0/driver")).unwrap();
    assert_eq!(tree.host().interfaces[1].driver, None);
    put(tree.dir(), "sys/devices/vif-0/modalias", "xen:vif");
    assert_eq!(
        vectors(&tree.host().interfaces[1])[..2],
        ["67=rx 0 name", "66=tx 0 name"]
    );
}

/// The end that serves a guest names its IRQs by what the guest does: it receives what the guest sends.
#[test]
fn directions_at_the_other_end_of_xen() {
    let tree = Tree::of(&two_nodes([]));
    tree.add("sys/devices/vif-1-0", "xen-backend", "vif", "vif1.0", 2);
    tree.add("sys/devices/vif-10-0", "xen-backend", "vif", "vif10.0", 1);
    let names = [
        "xen-netback-ctrl",
        "vif1.0-q0-tx",
        "vif1.0-q0-rx",
        "vif1.0-q1-tx",
        "vif1.0-q1-rx",
        "vif10.0-q0",
    ];
    tree.interrupts(65, "  xen-dyn    -event    ", &names);
    let host = tree.host();
    let of = |name: &str| vectors(host.interfaces.iter().find(|i| i.name == name).unwrap());
    assert_eq!(
        of("vif1.0"),
        [
            "66=rx 0 name",
            "67=tx 0 name",
            "68=rx 1 name",
            "69=tx 1 name"
        ]
    );
    assert_eq!(of("vif10.0"), ["70=combined 0 name"]);
}

/// Neither does the name of an IRQ tell which port has it, nor is one of several with the device's name told apart.
#[test]
fn numbers_that_occur_twice_without_an_interface_are_of_several_ports() {
    let tree = Tree::of(&two_nodes([]));
    let device = "sys/devices/platform/icssg1-eth";
    tree.add(device, "platform", "icssg-prueth", "eth0", 2);
    let names = ["icssg1-eth-tx0", "icssg1-eth-tx1"];
    tree.interrupts(66, "INTR", &names);
    tree.interrupts(68, "INTR", &["icssg1-eth"; 2]);
    let of_port = || vectors(&tree.host().interfaces[0]);
    assert_eq!(
        of_port(),
        ["68=data", "69=data", "66=tx 0 name", "67=tx 1 name"]
    );
    let second = format!("{device}/net/eth1");
    let target = format!("../../{}", second.trim_start_matches("sys/"));
    link(tree.dir(), "sys/class/net/eth1", &target);
    link(
        tree.dir(),
        &format!("{second}/device"),
        "../../../icssg1-eth",
    );
    put(tree.dir(), &format!("{second}/operstate"), "up");
    tree.interrupts(70, "INTR", &names);
    let all = of_port();
    assert_eq!(all.len(), 6, "{all:?}");
    assert!(all.iter().all(|one| one.ends_with("=data")), "{all:?}");
    assert!(vectors(&tree.host().interfaces[1]).is_empty());
}

/// The rings of its engine are counted over all ports.
#[test]
fn the_irqs_of_an_engine_are_data_of_all_devices_of_its_driver() {
    let tree = Tree::of(&two_nodes([]));
    tree.add(
        "sys/devices/platform/3a001000.dp1",
        "platform",
        "nss-dp",
        "eth0",
        2,
    );
    let names = [
        "edma_txcmpl_8",
        "edma_txcmpl_9",
        "edma_rxdesc_20",
        "edma_misc",
    ];
    tree.interrupts(40, "GICv2", &names);
    let of_port = |at: usize| vectors(&tree.host().interfaces[at]);
    assert_eq!(of_port(0), ["42=rx 0 name", "40=tx 0 name", "41=tx 1 name"]);
    tree.add(
        "sys/devices/platform/3a001200.dp2",
        "platform",
        "nss-dp",
        "eth1",
        2,
    );
    assert_eq!(of_port(0), ["40=data", "41=data", "42=data"]);
    assert!(of_port(1).is_empty());
    let codes = codes(of(&tree.plan(&["eth1"]), "eth1"));
    assert!(codes.contains(&"vectors-shared"), "{codes:?}");
}

/// The names of a driver's row are its IRQs, if it has but one device.
#[test]
fn names_that_only_the_row_of_the_driver_has() {
    let tree = Tree::of(&two_nodes([]));
    tree.add(
        "sys/devices/platform/korina.0",
        "platform",
        "korina",
        "eth0",
        1,
    );
    let names = ["Korina ethernet Rx", "Korina ethernet Tx", "timer"];
    tree.interrupts(40, "MIPS", &names);
    let first = || vectors(&tree.host().interfaces[0]);
    assert_eq!(first(), ["40=rx 0 name", "41=tx 0 name"]);
    tree.add(
        "sys/devices/platform/korina.1",
        "platform",
        "korina",
        "eth1",
        1,
    );
    assert!(first().is_empty());
    // A number that counts something else may be another device's, as of a disk.
    let tree = Tree::of(&two_nodes([]));
    let device = "sys/devices/a003e00.virtio_mmio/virtio3";
    tree.add(device, "virtio", "virtio_net", "eth0", 1);
    tree.interrupts(40, "GICv2", &["virtio2", "virtio3"]);
    assert_eq!(vectors(&tree.host().interfaces[0]), ["41=combined 0 name"]);
}

#[test]
fn a_device_without_a_list_of_vectors_is_found_by_its_name() {
    let tree = Tree::of(&two_nodes([]));
    tree.add("sys/devices/vio/30000003", "vio", "ibmvnic", "env3", 2);
    tree.add("sys/devices/vio/3000000", "vio", "ibmvnic", "env4", 1);
    tree.add(
        "sys/devices/platform/30be0000.ethernet",
        "platform",
        "fec",
        "end0",
        1,
    );
    tree.add(
        "sys/devices/platform/8000000.ethernet",
        "platform",
        "am65-cpsw-nuss",
        "eth0",
        1,
    );
    tree.add(
        "sys/devices/platform/1b100000.ethernet",
        "platform",
        "mtk_soc_eth",
        "wan",
        1,
    );
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
    assert_eq!(
        vectors(of("env3")),
        [
            "62=rx 0 name",
            "60=tx 0 name",
            "63=rx 1 name",
            "61=tx 1 name"
        ]
    );
    assert!(vectors(of("env4")).is_empty());
    assert_eq!(vectors(of("end0")), ["64=combined 0 name"]);
    assert_eq!(vectors(of("eth0")), ["66=rx 0 name", "65=tx 0 name"]);
    // Nothing tells two of one name apart: no number is made up.
    assert_eq!(vectors(of("wan")), ["67=data", "68=data"]);
}

/// The IRQs of a platform device have names of the driver's own; the device tree tells whose they are, and what for.
#[test]
fn irqs_of_the_platform_bus_are_found_by_the_device_tree() {
    let tree = Tree::of(&two_nodes([]));
    let of_node = |device: &str, numbers: &[u8], names: &str| {
        let node = tree.dir().join(format!("{device}/of_node"));
        std::fs::create_dir_all(&node).unwrap();
        let cells = numbers
            .iter()
            .flat_map(|&n| [0, 0, 0, 0, 0, 0, 0, n, 0, 0, 0, 4]);
        std::fs::write(node.join("interrupts"), cells.collect::<Vec<u8>>()).unwrap();
        std::fs::write(node.join("interrupt-names"), names).unwrap();
    };
    for (device, driver, name, numbers, names) in [
        (
            "1e10b308.eth",
            "xrx200",
            "lan",
            &[200_u8, 201][..],
            "rx\0tx\0",
        ),
        (
            "18000000.wifi",
            "ath10k_snoc",
            "wlan0",
            &[202, 203, 204],
            "",
        ),
        (
            "9c108000.ethernet",
            "new-mac",
            "wan",
            &[206, 205],
            "int0\0pps\0",
        ),
        ("ff0e0000.ethernet", "macb", "eth0", &[210, 211], ""),
    ] {
        let device = format!("sys/devices/platform/{device}");
        let queues = if driver == "macb" { 2 } else { 1 };
        tree.add(&device, "platform", driver, name, queues);
        of_node(&device, numbers, names);
    }
    let names = [
        "net_a", "net_b", "CE_0", "CE_1", "CE_2", "mac", "mac", "mmc0", "eth0", "eth0",
    ];
    let mut text = crate::support::tree::read(tree.dir(), "proc/interrupts");
    for ((irq, number), name) in (60..)
        .zip([232, 233, 234, 235, 236, 238, 237, 239, 242, 243])
        .zip(names)
    {
        let counts = "          0 ".repeat(8);
        text.push_str(&format!(
            "\n{irq:>3}: {counts}    GICv3 {number} Level     {name}"
        ));
        put(tree.dir(), &format!("proc/irq/{irq}/smp_affinity"), "ff");
    }
    put(tree.dir(), "proc/interrupts", &text);
    let host = tree.host();
    let of = |name: &str| vectors(host.interfaces.iter().find(|i| i.name == name).unwrap());
    assert_eq!(of("lan"), ["60=rx 0 name", "61=tx 0 name"]);
    assert_eq!(of("wlan0"), ["62=data", "63=data", "64=data"]);
    assert_eq!(of("wan"), ["65=combined 0 order", "66=control"]);
    assert_eq!(of("eth0"), ["68=combined 0 order", "69=combined 1 order"]);
    // A capture has what the device tree told.
    let capture = tree.dir().join("host.tar.gz");
    let path = capture.to_str().unwrap();
    assert_eq!(tree.run(&["capture", "-o", path]).code, 0);
    let planned = |root: &str| crate::support::run::nicpin(&["plan", "-v", "--root", root]).stdout;
    assert_eq!(planned(path), planned(tree.dir().to_str().unwrap()));
}

#[test]
fn interfaces_without_a_device_are_named_by_their_kind() {
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
        let expected = format!("`{name}` is {what}: it has no device and no vectors");
        assert!(said.contains(&expected), "{said}");
    }
    assert!(tree.plan(&[]).interfaces.is_empty());
}

#[test]
fn a_device_without_an_interface_names_its_driver() {
    let tree = Tree::of(&two_nodes([]));
    let functions = [
        ("0000:3b:00.0", "vfio-pci", "0x020000"),
        ("0000:3b:00.1", "ixgbe", "0x020000"),
        ("0000:3b:00.2", "", "0x020700"),
    ];
    for (address, driver, class) in functions
        .iter()
        .chain(&[("0000:01:00.0", "nvme", "0x010802")])
    {
        let device = format!("sys/devices/pci0000:3a/{address}");
        put(tree.dir(), &format!("{device}/class"), class);
        if !driver.is_empty() {
            link(
                tree.dir(),
                &format!("{device}/driver"),
                &format!("../../../bus/pci/drivers/{driver}"),
            );
        }
        link(
            tree.dir(),
            &format!("sys/bus/pci/devices/{address}"),
            &format!("../../../devices/pci0000:3a/{address}"),
        );
    }
    for (selector, expected) in [
        (
            "pci:0000:3b:00.0",
            "`pci:0000:3b:00.0` is a network card bound to vfio-pci",
        ),
        (
            "pci:3b:00.1",
            "ixgbe is bound to it, but has no interface or has it in another network namespace",
        ),
        ("pci:3b:00.2", "no driver is bound to it"),
        ("pci:01:00.0", "no interface matches `pci:01:00.0`"),
    ] {
        let said = tree.refuses(selector);
        assert!(said.contains(expected), "{selector}: {said}");
    }
}

/// tg3 and bnx2 free all IRQs of a function when its interface goes down.
#[test]
fn a_card_that_is_down_is_not_one_without_irqs() {
    let port = |name: &str| Port {
        state: "down".into(),
        ..Port::new(name, -1, 1, 1)
    };
    let tree = Tree::of(&two_nodes([card("tg3", port("eth0"), 30, &[])]));
    tree.add("sys/devices/usb1/1-1:1.0", "usb", "r8152", "eth1", 1);
    put(tree.dir(), "sys/class/net/eth1/operstate", "down");
    tree.interrupts(9, "IO-APIC", &["acpi"]);
    for (name, expected) in [
        (
            "eth0",
            "the driver requests no queue IRQ while the interface is down; there is nothing to place yet",
        ),
        (
            "eth1",
            "the device has no IRQs of its own: its packets arrive by its controller",
        ),
    ] {
        let plan = tree.plan(&[name]);
        let notes: Vec<_> = of(&plan, name)
            .notes
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(notes.iter().any(|note| note == expected), "{notes:?}");
    }
}

/// Of dpaa2-eth: packets arrive by the IRQs of other devices, and its own is for the link.
#[test]
fn a_device_with_a_control_irq_is_not_one_without_irqs() {
    let tree = Tree::of(&two_nodes([]));
    tree.add(
        "sys/devices/dprc.1/dpni.1",
        "fsl-mc",
        "fsl_dpaa2_eth",
        "eth0",
        2,
    );
    tree.interrupts(130, "ITS-fMSI", &["dpni.1", "dpio.1"]);
    let run = tree.run(&["plan", "eth0"]);
    let said = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("control IRQ 130 unchanged"), "{said}");
    assert!(
        said.contains(
            "no queue IRQ is known to be its device's: sysfs lists those of PCI devices only"
        ),
        "{said}"
    );
}

/// Of EFA: its completion vectors are planned when it is selected.
#[test]
fn a_function_for_rdma_alone_is_neither_down_nor_without_irqs() {
    let names = ["efa-mgmnt@pci:0000:82:00.0", "efa-comp0@pci:0000:82:00.0"];
    let mut function = card("efa", Port::new("eth0", 0, 0, 0), 30, &names);
    function.ports.clear();
    let tree = Tree::of(&two_nodes([function]));
    let device = "devices/pci0000:00/0000:00:02.0/0000:82:00.0";
    put(tree.dir(), &format!("sys/{device}/class"), "0x020000");
    link(
        tree.dir(),
        "sys/bus/pci/devices/0000:82:00.0",
        &format!("../../../{device}"),
    );
    make_dir(tree.dir(), "sys/class/net");
    let all = tree.plan(&[]);
    let notes: Vec<_> = all.notes.iter().map(ToString::to_string).collect();
    let expected = "not planned: 0000:82:00.0 (driver efa, no interface here)";
    assert!(notes.iter().any(|note| note == expected), "{notes:?}");
    let plan = tree.plan(&["0000:82:00.0"]);
    let efa = of(&plan, "0000:82:00.0");
    assert_eq!((codes(efa), planned(efa)), (vec![], vec!["1".to_owned()]));
    // It can be judged: its one vector is as good where it is.
    assert_eq!(tree.run(&["check", "0000:82:00.0"]).code, 0);
}

/// Where a CPU could not hold all IRQs of the machine, those of other devices are counted.
#[test]
fn vectors_that_other_devices_hold_are_counted_on_x86() {
    let names: Vec<String> = (0..4).map(|n| format!("eth0-TxRx-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let tree = Tree::of(&two_nodes([card(
        "ixgbe",
        Port::new("eth0", 10_000, 4, 4),
        31,
        &names,
    )]));
    assert_eq!(tree.host().vectors_held, None, "few IRQs");
    let disks = vec!["nvme0q1"; 200];
    tree.interrupts(300, "IR-PCI-MSI 512000-edge", &disks);
    for irq in 300..330 {
        put(
            tree.dir(),
            &format!("proc/irq/{irq}/effective_affinity_list"),
            "1",
        );
    }
    assert_eq!(tree.host().vectors_held, Some([(1, 30)].into()));
    let text = crate::support::tree::read(tree.dir(), "proc/interrupts");
    put(
        tree.dir(),
        "proc/interrupts",
        &text.replace("PCI-MSI", "ITS-MSI"),
    );
    assert_eq!(tree.host().vectors_held, None, "Arm's CPUs have no vectors");
}

// Selectors that stand for other interfaces.

/// nic1 of the fixture is an igb: its interface goes to a container.
#[test]
fn a_function_whose_interface_is_in_another_namespace_is_known_by_its_address() {
    let machine = Copy::of("four-node");
    let interface = machine.path("/sys/class/net/nic1").canonicalize().unwrap();
    let device = interface.parent().unwrap().parent().unwrap();
    std::fs::write(device.join("class"), "0x020000\n").unwrap();
    // Nobody tells this of it while it is away.
    std::fs::write(interface.join("phys_port_name"), "p0\n").unwrap();
    let top = machine.path("/").canonicalize().unwrap();
    let below_sys = device
        .strip_prefix(top.join("sys"))
        .unwrap()
        .display()
        .to_string();
    let address = device.file_name().unwrap().to_str().unwrap();
    let entry = format!("sys/bus/pci/devices/{address}");
    link(&top, &entry, &format!("../../../{below_sys}"));
    // A port that carries more than its link does.
    std::fs::create_dir_all(machine.path("/nicpin/ethtool/nic1")).unwrap();
    machine.write(
        "/nicpin/ethtool/nic1/link-modes",
        "{\"supported\": [\"100000baseSR4/Full\"]}\n",
    );
    let load = || {
        let plan: serde_json::Value =
            serde_json::from_str(&machine.nicpin(&["plan", "--json"]).stdout).unwrap();
        plan["score"]["max_load_kbps"].as_u64().unwrap()
    };
    let before = machine.texts();
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let load_here = load();
    assert!(load_here > 10_000_000, "{load_here}");
    let host = nicpin::read::machine(
        &Root::open(&machine.path("/")).unwrap(),
        nicpin::read::ReadOptions::default(),
    );
    let nic1 = host.unwrap().interface("nic1").unwrap().clone();
    let irq = nic1.vectors[0].irq;
    let file = format!("/proc/irq/{irq}/smp_affinity");
    let planned = machine.read(&file);
    let entry = machine.path("/sys/class/net/nic1");
    let to = std::fs::read_link(&entry).unwrap();
    let away = machine.path("/away");
    let leave = || {
        std::fs::remove_file(&entry).unwrap();
        // The directory `net` stays, as in the kernel.
        std::fs::rename(&interface, &away).unwrap();
    };
    let come_back = || {
        std::fs::rename(&away, &interface).unwrap();
        std::os::unix::fs::symlink(&to, &entry).unwrap();
    };
    leave();

    // Nothing of it has changed but that its queues are out of reach.
    let run = machine.nicpin(&["plan"]);
    assert!(run.stdout.contains(address), "{}", run.stdout);
    assert!(
        run.stdout
            .contains("its interface is in another network namespace"),
        "{}",
        run.stdout
    );
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    assert_eq!(load(), load_here);
    for selector in [address, &format!("pci:{address}"), "driver:igb"] {
        let run = machine.nicpin(&["plan", selector, "--json"]);
        assert!(
            run.code == 0 && run.stdout.contains(&format!("\"name\": \"{address}\"")),
            "{selector}"
        );
    }

    let status = machine.nicpin(&["status", address, "--json"]).stdout;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["interfaces"][0]["queues"], nic1.rx_queues.len());

    // Its owner moves a vector on its node, which is nobody else's business while it is not selected.
    machine.write(&file, "80\n");
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    assert_eq!(machine.nicpin(&["check", "--exact"]).code, 0);
    assert_eq!(machine.nicpin(&["check", "--exact", address]).code, 2);
    assert_eq!(machine.nicpin(&["apply", "-q"]).code, 0);
    assert_eq!(machine.read(&file), "80\n");

    // Somebody moves it off the node.
    machine.write(&file, "8000\n");
    let effective = format!("/proc/irq/{irq}/effective_affinity_list");
    let on = machine.read(&effective);
    machine.write(&effective, "15\n");
    let run = machine.nicpin(&["check"]);
    let row = format!("{address}  remote");
    assert!(run.code == 2 && run.stdout.contains(&row), "{}", run.stdout);
    assert_eq!(machine.nicpin(&["apply", "-q"]).code, 0);
    let again = u32::from_str_radix(machine.read(&file).trim(), 16).unwrap();
    assert!(again & 0xf0 == again, "{again:x}: CPUs of its node");
    machine.write(&effective, &again.trailing_zeros().to_string());
    let run = machine.nicpin(&["check", "-v"]);
    assert_eq!(run.code, 0, "{}", run.stdout);
    machine.write(&effective, &on);
    machine.write(&file, &planned);
    // Nothing shows that it has an interface.
    std::fs::remove_dir(interface.parent().unwrap()).unwrap();
    let run = machine.nicpin(&["plan"]);
    assert!(
        run.stdout
            .contains(&format!("{address}: no interface here")),
        "{}",
        run.stdout
    );
    let plan: serde_json::Value =
        serde_json::from_str(&machine.nicpin(&["plan", "--json"]).stdout).unwrap();
    let of = plan["interfaces"]
        .as_array()
        .unwrap()
        .iter()
        .find(|of| of["name"] == address)
        .unwrap();
    let data = of["vectors"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|vector| vector["role"] == "data");
    assert!(
        data.clone().count() == 8 && data.clone().all(|vector| vector["queue"].is_null()),
        "{of}"
    );
    std::fs::create_dir(interface.parent().unwrap()).unwrap();

    // It comes back, and is known by its name again.
    come_back();
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    machine.write(&file, "8000\n");
    let moved = machine.nicpin(&["check"]).stdout;
    assert!(moved.contains("changed since apply"), "{moved}");
    machine.write(&file, &planned);

    // Its IRQs get their original affinity while it is away, although it was applied again under its address.
    leave();
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.texts()[&file], before[&file]);
    come_back();
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.texts(), before);
}

#[test]
fn rdma_devices_stand_for_the_interfaces_of_their_function() {
    let names = ["mlx5_comp0@pci:0000:82:00.0", "mlx5_comp1@pci:0000:82:00.0"];
    let card = card("mlx5_core", Port::new("eth0", 100_000, 2, 2), 30, &names)
        .port(Port::new("ib0", 100_000, 2, 2));
    let tree = Tree::of(&two_nodes([card]));
    for (name, device) in [
        ("mlx5_0", "0000:00:02.0/0000:82:00.0"),
        ("mlx5_1", "0000:00:02.0/0000:82:00.7"),
    ] {
        make_dir(tree.dir(), &format!("sys/devices/pci0000:00/{device}"));
        link(
            tree.dir(),
            &format!("sys/class/infiniband/{name}/device"),
            &format!("../../../devices/pci0000:00/{device}"),
        );
    }
    make_dir(tree.dir(), "sys/class/infiniband/rxe0");
    let plan = tree.plan(&["mlx5_0", "eth0"]);
    let listed: Vec<_> = plan
        .interfaces
        .iter()
        .map(|i| (i.name.as_str(), i.via.join(",")))
        .collect();
    assert_eq!(
        listed,
        [("eth0", "mlx5_0".to_owned()), ("ib0", "mlx5_0".to_owned())]
    );
    assert_eq!(planned(of(&plan, "eth0")), ["1", "2"]);
    assert_eq!(codes(of(&plan, "ib0")), ["vectors-shared"]);
    assert_eq!(tree.plan(&["mlx5_?"]).interfaces.len(), 2);
    let said = tree.refuses("mlx5_1");
    assert!(
        said.contains("`mlx5_1` is an RDMA device on 0000:82:00.7, which has no network interface"),
        "{said}"
    );
    assert!(
        tree.refuses("rxe0")
            .contains("`rxe0` is a software RDMA device")
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
    let tree = Tree::of(&machine);
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
        let listed: Vec<_> = plan
            .interfaces
            .iter()
            .map(|i| (i.name.as_str(), i.via.join(",")))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|&(name, via)| (name, via.to_owned()))
            .collect();
        assert_eq!(listed, expected, "{selectors:?}");
    }
    let run = tree.run(&["plan", "bond0"]);
    let words = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(" node 0: CPUs 0-3 (4 cores); via bond0 "),
        "{}",
        run.stdout
    );
    assert!(
        tree.refuses("br1")
            .contains("it is above tap0, and no interface below it has a device")
    );
}

#[test]
fn a_virtual_function_names_its_parent() {
    let names = ["iavf-eth0v1-TxRx-0", "iavf-0000:82:02.0:mbx"];
    let mut vf = card("iavf", Port::new("eth0v1", 10_000, 1, 1), 30, &names);
    vf.address = "0000:82:02.0".to_owned();
    let tree = Tree::of(&two_nodes([vf]));
    let function = "sys/devices/pci0000:00/0000:00:02.0/0000:82:02.0";
    make_dir(
        tree.dir(),
        "sys/devices/pci0000:00/0000:00:02.0/0000:82:00.0",
    );
    link(tree.dir(), &format!("{function}/physfn"), "../0000:82:00.0");
    assert_eq!(
        of(&tree.plan(&["eth0v1"]), "eth0v1").parent.as_deref(),
        Some("0000:82:00.0")
    );
    let run = tree.run(&["plan", "eth0v1"]);
    assert!(
        run.stdout.contains("0000:82:02.0 (VF of 0000:82:00.0)"),
        "{}",
        run.stdout
    );
}

/// nic0 of the fixture is a virtio card: the device of its interface is below the PCI function.
#[test]
fn a_virtio_function_whose_interface_is_in_another_namespace_is_known_as_such() {
    let machine = Copy::of("four-node");
    let interface = machine.path("/sys/class/net/nic0").canonicalize().unwrap();
    let net = interface.parent().unwrap();
    let device = net.parent().unwrap().parent().unwrap();
    std::fs::write(device.join("class"), "0x020000\n").unwrap();
    let top = machine.path("/").canonicalize().unwrap();
    let below_sys = device.strip_prefix(top.join("sys")).unwrap().display();
    let address = device.file_name().unwrap().to_str().unwrap();
    let entry = format!("sys/bus/pci/devices/{address}");
    link(&top, &entry, &format!("../../../{below_sys}"));
    let driver = format!("sys/{below_sys}/driver");
    link(&top, &driver, "../../../../bus/pci/drivers/virtio-pci");
    std::fs::remove_file(machine.path("/sys/class/net/nic0")).unwrap();
    std::fs::remove_dir_all(&interface).unwrap();
    let plan = || {
        machine
            .nicpin(&["plan", address])
            .stdout
            .replace("\n      ", " ")
    };
    let text = plan();
    let elsewhere = format!("{address}: its interface is in another network namespace");
    assert!(text.contains(&elsewhere), "{text}");
    std::fs::remove_dir(net).unwrap();
    let text = plan();
    assert!(
        text.contains(&format!("{address}: no interface here")),
        "{text}"
    );
}

/// What is not understood is in the verdict, and its cores are not idle.
#[test]
fn interfaces_that_cannot_be_judged_are_named_in_each_verdict() {
    let names = ["eth0-TxRx-0", "eth0-TxRx-1", "eth0-TxRx-2", "eth0-TxRx-3"];
    let known = card("ixgbe", Port::new("eth0", 10_000, 4, 4), 31, &names);
    let mut half = card(
        "ixgbe",
        Port::new("eth2", 10_000, 2, 2),
        41,
        &["eth2-TxRx-0", "something"],
    );
    half.address = "0000:83:00.0".to_owned();
    let tree = Tree::of(&two_nodes([known, half]));
    tree.add(
        "sys/devices/platform/soc/1510.ethernet",
        "platform",
        "newsoc",
        "eth1",
        4,
    );
    put(tree.dir(), "proc/irq/42/effective_affinity_list", "2");
    let names = "; 2 interfaces cannot be judged: eth1, eth2";
    let first = |args: &[&str]| tree.run(args).stdout.lines().next().unwrap().to_owned();
    let nothing = format!("nothing to restore: there is no record of an apply{names}");
    assert_eq!(first(&["restore"]), nothing);
    let done = first(&["apply"]);
    assert!(done.contains(&format!(" read back{names}.")), "{done}");
    for args in [&["restore", "--dry-run"][..], &["restore"], &["apply"]] {
        let json = tree.run(&[args, &["--json"]].concat()).stdout;
        crate::support::schema::meets(&json);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let expected = serde_json::json!(["eth1", "eth2"]);
        assert_eq!(json["not_judged"], expected, "{args:?}");
    }
    for args in [&["restore", "--dry-run"][..], &["restore"], &["apply"]] {
        let said = first(args);
        assert!(said.contains(&format!("{names}.")), "{said}");
    }
    let who = "; 2 cannot be judged: eth1, eth2.";
    // The kernel has moved what apply has set.
    crate::support::tree::settle(tree.dir());
    let check = tree.run(&["check"]);
    assert_eq!(check.code, 0, "{}", check.stdout);
    let verdict = format!("1 of 3 interfaces is as planned{who}\n");
    assert!(check.stdout.starts_with(&verdict), "{}", check.stdout);
    let status = tree.run(&["status"]).stdout;
    let verdict = status.replace('\n', " ");
    assert!(
        verdict.starts_with("1 of 3 interfaces is as planned") && verdict.contains(who),
        "{status}"
    );
    let nagios = tree.run(&["check", "--format", "nagios"]);
    assert!(
        nagios.code == 0
            && nagios
                .stdout
                .contains("2 interfaces cannot be judged: eth1, eth2 |"),
        "{}",
        nagios.stdout
    );
    for (option, code) in [("--warning-not-judged", 1), ("--critical-not-judged", 2)] {
        let run = tree.run(&["check", "--format", "nagios", option, "1"]);
        assert_eq!(run.code, code, "{}", run.stdout);
    }
    let metrics = tree.run(&["check", "--format", "prometheus"]).stdout;
    assert!(
        metrics.contains("nicpin_not_judged_interfaces 2\n"),
        "{metrics}"
    );
    // Of many machines, from each kind of document, and from the tree.
    let dir = crate::support::temporary();
    for (name, command) in [("a1", "plan"), ("a2", "check")] {
        let json = tree.run(&[command, "--json"]).stdout;
        std::fs::write(dir.path().join(format!("{name}.json")), json).unwrap();
    }
    let (files, top) = (dir.path().display().to_string(), tree.dir().display());
    let run = crate::support::run::nicpin(&["fleet", &files, &top.to_string()]);
    assert!(
        run.stdout
            .starts_with("3 hosts, 1 class, 1 plan: 3 as planned; 6 interfaces cannot be judged\n")
            && run
                .stdout
                .contains("\ncannot be judged: 3 hosts, eth1, eth2\n"),
        "{}",
        run.stdout
    );
    let json = crate::support::run::nicpin(&["fleet", "--json", &files]).stdout;
    crate::support::schema::meets(&json);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        json["not_judged"],
        serde_json::json!([{"interfaces": ["eth1", "eth2"], "count": 2, "hosts": ["a1", "a2"]}])
    );
    // The queue whose IRQ is not known sends nowhere, and the CPU of that IRQ takes no other queue while there are idle ones.
    let plan = tree.plan(&["eth2"]);
    let eth2 = of(&plan, "eth2");
    assert!(eth2.tx_queues.iter().all(|queue| queue.xps_cpus.is_none()));
    let alone = Tree::of(&two_nodes([card(
        "ixgbe",
        Port::new("eth2", 10_000, 4, 4),
        41,
        &["eth2-TxRx-0", "something", "eth2-TxRx-1", "eth2-TxRx-2"],
    )]));
    put(alone.dir(), "proc/irq/42/effective_affinity_list", "2");
    assert_eq!(planned(of(&alone.plan(&[]), "eth2")), ["1", "3", "0"]);
}
