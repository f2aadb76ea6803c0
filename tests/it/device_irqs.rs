//! The IRQs of devices without a list of vectors: by names, the device tree and numbers; and devices that have none.

use snapbox::{assert_data_eq, str};

use crate::support::host::{codes, cpus, of, vectors};
use crate::support::machine::{Card, Port, card, two_nodes};
use crate::support::run::{MachineTree, note};

#[test]
fn hyper_v_channels_are_listed_and_left_alone() {
    let tree = MachineTree::build(&two_nodes([]));
    let guid = "f8b3781a-1e82-4818-a1c3-63d806ec15bb";
    let device = format!("sys/devices/LNXSYSTM:00/ACPI0004:00/VMBUS:00/{guid}");
    tree.add(&device, "vmbus", "hv_netvsc", "eth0", 2);
    for (channel, cpu) in [(14, 0), (20, 5)] {
        tree.put(
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
    let mut texts = String::new();
    for row in [
        "",
        " HYP:  1  1   Hypervisor callback interrupts\n",
        "   4:  9  9   GICv3  18 Level     Hyper-V VMbus\n",
    ] {
        let rows = format!("      CPU0  CPU1\n 9:  0  0  IO-APIC  9-fasteoi  acpi\n{row}");
        tree.put("proc/interrupts", rows.trim_end());
        let plan = tree.plan(&["eth0"]);
        let mut notes = of(&plan, "eth0").notes.iter();
        let note = notes.find(|note| note.code() == "vmbus-channels").unwrap();
        texts += &format!("{note}\n");
    }
    assert_data_eq!(
        texts,
        str![[r#"
packets arrive by Hyper-V's VMBus channels, which have no IRQs; nicpin does not move them. Channel -> CPU: 14 -> 0, 20 -> 5. To move a channel, write a CPU number to its `cpu` file
packets arrive by Hyper-V's VMBus channels, which have no IRQs of their own but HYP of each CPU; nicpin does not move them. Channel -> CPU: 14 -> 0, 20 -> 5. To move a channel, write a CPU number to its `cpu` file
packets arrive by Hyper-V's VMBus channels, which have no IRQs of their own but Hyper-V VMbus (IRQ 4) of each CPU; nicpin does not move them. Channel -> CPU: 14 -> 0, 20 -> 5. To move a channel, write a CPU number to its `cpu` file

"#]]
    );
    let fix = format!("echo CPU > /sys/bus/vmbus/devices/{guid}/channels/CHANNEL/cpu");
    assert_eq!(
        crate::support::host::fix_of(note).as_deref(),
        Some(fix.as_str())
    );
    assert!(plan.writes.is_empty());
    assert_eq!(tree.nicpin(&["plan", "eth0"]).code, 0);
}

/// Of a driver that nicpin does not know.
#[test]
fn irqs_that_begin_with_the_name_of_the_interface_are_its_own() {
    let tree = MachineTree::build(&two_nodes([]));
    let device = "sys/devices/platform/fe1c0000.gmac";
    tree.add(device, "platform", "acme-gmac", "eth0", 2);
    tree.interrupts(70, "GICv3", &["eth0-chan0", "eth0-chan1", "eth01-chan0"]);
    let plan = tree.plan(&["eth0"]);
    let irqs = of(&plan, "eth0").vectors.iter().map(|vector| vector.irq);
    assert_eq!(irqs.collect::<Vec<_>>(), [70, 71]);
}

#[test]
fn xen_queues_are_found_by_the_name_of_the_device() {
    let tree = MachineTree::build(&two_nodes([]));
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
    tree.put("sys/devices/vif-0/modalias", "xen:vif");
    assert_eq!(
        vectors(&tree.host().interfaces[1])[..2],
        ["67=rx 0 name", "66=tx 0 name"]
    );
}

/// `xennet_select_queue`, and mac80211 before Linux 6.2: the mask is never read.
#[test]
fn xps_is_not_planned_where_the_driver_picks_the_queue() {
    let tree = MachineTree::build(&two_nodes([]));
    tree.add("sys/devices/vif-0", "xen", "vif", "eth0", 2);
    tree.add("sys/devices/vif-1-0", "xen-backend", "vif", "vif1.0", 2);
    tree.add("sys/devices/wifi", "platform", "mt7915e", "wlan0", 2);
    tree.put("sys/devices/wifi/net/wlan0/uevent", "DEVTYPE=wlan");
    for name in ["eth0", "vif1.0", "wlan0"] {
        for queue in 0..2 {
            let file = format!("sys/class/net/{name}/queues/tx-{queue}/xps_cpus");
            tree.put(&file, "00");
            tree.put(&file.replace("xps_cpus", "xps_rxqs"), "0");
        }
    }
    let names = [
        "vif0-q0",
        "vif0-q1",
        "vif1.0-q0",
        "vif1.0-q1",
        "wlan0-TxRx-0",
        "wlan0-TxRx-1",
    ];
    tree.interrupts(66, "  xen-dyn    -event    ", &names);
    let plan = tree.plan(&[]);
    let has_xps = ["eth0", "vif1.0", "wlan0"].map(|name| {
        let mut queues = of(&plan, name).tx_queues.iter();
        queues.any(|queue| queue.xps_cpus.is_some())
    });
    assert_eq!(has_xps, [false, true, false]);
    assert_data_eq!(
        tree.fails(&["apply", "wlan0", "--xps", "rxqs"], 64),
        str![[r"
nicpin: --xps: xps_rxqs requested, but the driver picks the transmit queue and never reads XPS

"]]
    );
}

/// mvpp2 pins the vector of each CPU's queues; before Linux 6.12 the file can be written, and each write is refused.
#[test]
fn vectors_that_their_driver_keeps_in_place_are_not_planned() {
    let names = ["eth0"; 3];
    let keeps = card("mvpp2", Port::new("eth0", 10_000, 2, 2), 30, &names);
    let tree = MachineTree::build(&two_nodes([keeps]));
    let plan = tree.plan(&["eth0"]);
    let vectors = of(&plan, "eth0").vectors.iter();
    assert_eq!(
        vectors
            .map(|vector| (vector.irq, vector.movable))
            .collect::<Vec<_>>(),
        [(30, false), (31, false), (32, true)]
    );
    assert!(
        !plan
            .writes
            .iter()
            .any(|write| write.path.contains("/irq/3"))
    );
    // A card that got a single MSI keeps it, and of several it keeps none.
    let mhi = ["bhi, mhi, ce0, DP_EXT_IRQ", "DP_EXT_IRQ"];
    for (names, expected) in [(&mhi[..1], vec![false]), (&mhi[..], vec![true, true])] {
        let card = card("ath11k_pci", Port::new("wlan0", -1, 1, 4), 30, names);
        let plan = MachineTree::build(&two_nodes([card])).plan(&[]);
        let vectors = of(&plan, "wlan0").vectors.iter();
        let movable: Vec<bool> = vectors.map(|vector| vector.movable).collect();
        assert_eq!(movable, expected);
    }
}

/// The end that serves a guest names its IRQs by what the guest does: it receives what the guest sends.
#[test]
fn directions_at_the_other_end_of_xen() {
    let tree = MachineTree::build(&two_nodes([]));
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
    let tree = MachineTree::build(&two_nodes([]));
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
    tree.link("sys/class/net/eth1", &target);
    tree.link(&format!("{second}/device"), "../../../icssg1-eth");
    tree.put(&format!("{second}/operstate"), "up");
    tree.interrupts(70, "INTR", &names);
    let all = of_port();
    assert_eq!(all.len(), 6, "{all:?}");
    assert!(all.iter().all(|one| one.ends_with("=data")), "{all:?}");
    assert!(vectors(&tree.host().interfaces[1]).is_empty());
}

/// The rings of its engine are counted over all ports.
#[test]
fn the_irqs_of_an_engine_are_data_of_all_devices_of_its_driver() {
    let tree = MachineTree::build(&two_nodes([]));
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
    // Two of the four transmit rings of a CPU are those of a port.
    let tree = MachineTree::build(&two_nodes([]));
    let device = "sys/devices/platform/c080000.edma";
    tree.add(device, "platform", "ess_edma", "eth0", 2);
    let names = [
        "edma_eth_tx0",
        "edma_eth_tx4",
        "edma_eth_rx0",
        "edma_eth_rx2",
    ];
    tree.interrupts(40, "GIC-0", &names);
    let own = vectors(&tree.host().interfaces[0]);
    assert_eq!(own, ["40=data", "41=data", "42=rx 0 name", "43=rx 1 name"]);
}

/// The network device of a modem is a child of its port, which has no driver (`/sys/class/wwan`).
#[test]
fn the_driver_of_a_modem_is_above_its_port() {
    let tree = MachineTree::build(&two_nodes([]));
    let modem = "sys/devices/pci0000:00/0000:04:00.0";
    let port = format!("{modem}/mhi0/wwan/wwan0");
    tree.add(&port, "wwan", "none", "wwan0", 1);
    tree.remove(&format!("/{port}/driver"));
    let drivers = "../../../bus/pci/drivers";
    tree.link(
        &format!("{modem}/driver"),
        &format!("{drivers}/mhi-pci-generic"),
    );
    tree.interrupts(40, "PCI-MSI", &["bhi", "mhi", "mhi"]);
    for irq in 40..43 {
        tree.put(&format!("{modem}/msi_irqs/{irq}"), "msi");
    }
    let own = vectors(&tree.host().interfaces[0]);
    assert_eq!(own, ["41=data", "42=data", "40=control"]);
}

/// The names of a driver's row are its IRQs, if it has but one device.
#[test]
fn names_that_only_the_row_of_the_driver_has() {
    let tree = MachineTree::build(&two_nodes([]));
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
    let tree = MachineTree::build(&two_nodes([]));
    let device = "sys/devices/a003e00.virtio_mmio/virtio3";
    tree.add(device, "virtio", "virtio_net", "eth0", 1);
    tree.interrupts(40, "GICv2", &["virtio2", "virtio3"]);
    assert_eq!(vectors(&tree.host().interfaces[0]), ["41=combined 0 name"]);
}

#[test]
fn a_device_without_a_list_of_vectors_is_found_by_its_name() {
    let tree = MachineTree::build(&two_nodes([]));
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
        "sys/devices/platform/9c00000.ethernet",
        "platform",
        "brcm-asp2",
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
        "9c00000.ethernet",
        "9c00000.ethernet",
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

/// One IRQ for all that is sent, then one for what is received; on older chips one for both.
#[test]
fn the_order_tells_the_direction_of_irqs_with_the_name_of_the_device() {
    for (irqs, expected) in [
        (1, vec!["40=combined 0 name"]),
        (2, vec!["41=rx 0 order", "40=tx 0 order"]),
        (3, vec!["40=data", "41=data", "42=data"]),
    ] {
        let tree = MachineTree::build(&two_nodes([]));
        let device = "sys/devices/platform/1b100000.ethernet";
        tree.add(device, "platform", "mtk_soc_eth", "eth0", 1);
        tree.make_dir("sys/class/net/eth0/queues/tx-1");
        tree.interrupts(40, "MT_SYSIRQ 224 Level", &vec!["1b100000.ethernet"; irqs]);
        assert_eq!(vectors(&tree.host().interfaces[0]), expected);
    }
}

/// Phylib calls it `<device>-<bus>:<address>`: a board with a PHY whose interrupt is wired is planned as one without.
#[test]
fn the_interrupt_of_a_phy_carries_no_packets() {
    for (device, driver, names, phy, expected) in [
        (
            "1f00100000.ethernet",
            "macb",
            vec!["eth0"],
            "1f00100000.ethernet-ffffffff:01",
            vec!["40=combined 0 name"],
        ),
        (
            "30be0000.ethernet",
            "fec",
            vec!["30be0000.ethernet"],
            "30be0000.ethernet-1:00",
            vec!["40=combined 0 name"],
        ),
        (
            "e6800000.ethernet",
            "ravb",
            vec![
                "e6800000.ethernet:ch0:rx_be",
                "e6800000.ethernet:ch18:tx_be",
            ],
            "e6800000.ethernet-ffffffff:0a",
            vec!["40=rx 0 name", "41=tx 0 name"],
        ),
        // By the tree, where the number of the PHY's GPIO is that of the MAC's IRQ.
        (
            "3ef00000.ethernet",
            "newmac",
            vec!["newmac"],
            "3ef00000.ethernet-0:1f",
            vec!["40=combined 0 order"],
        ),
    ] {
        let build = || {
            let tree = MachineTree::build(&two_nodes([]));
            let path = format!("sys/devices/platform/{device}");
            tree.add(&path, "platform", driver, "eth0", 2);
            tree.put("sys/class/net/eth0/queues/tx-0/xps_cpus", "00");
            if driver == "newmac" {
                let node = tree.dir().join(path).join("of_node");
                std::fs::create_dir_all(&node).unwrap();
                std::fs::write(node.join("interrupts"), [0, 0, 0, 48]).unwrap();
            }
            tree.interrupts(40, "   INTC  48 Level    ", &names);
            tree
        };
        let (without, with) = (build(), build());
        let irq = 40 + u32::try_from(names.len()).unwrap();
        with.interrupts(irq, "   GPIO  48 Edge    ", &[phy]);
        let of_port = |tree: &MachineTree| vectors(&tree.host().interfaces[0]);
        assert_eq!(of_port(&without), expected, "{driver}");
        let control = format!("{irq}=control");
        assert_eq!(of_port(&with), [expected, vec![&control]].concat());
        assert_eq!(with.plan(&[]).writes, without.plan(&[]).writes, "{driver}");
    }
}

/// The IRQs of a platform device have names of the driver's own; the device tree tells whose they are, and what for.
#[test]
fn irqs_of_the_platform_bus_are_found_by_the_device_tree() {
    let tree = MachineTree::build(&two_nodes([]));
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
        tree.put(&format!("proc/irq/{irq}/smp_affinity"), "ff");
    }
    tree.put("proc/interrupts", &text);
    let host = tree.host();
    let of = |name: &str| vectors(host.interfaces.iter().find(|i| i.name == name).unwrap());
    assert_eq!(of("lan"), ["60=rx 0 name", "61=tx 0 name"]);
    assert_eq!(of("wlan0"), ["62=data", "63=data", "64=data"]);
    assert_eq!(of("wan"), ["65=combined 0 order", "66=control"]);
    assert_eq!(of("eth0"), ["68=combined 0 order", "69=combined 1 order"]);
    let capture = tree.dir().join("host.tar.gz");
    let path = capture.to_str().unwrap();
    assert_eq!(tree.nicpin(&["capture", "-o", path]).code, 0);
    let planned = |root: &str| crate::support::run::nicpin(&["plan", "-v", "--root", root]).stdout;
    assert_eq!(planned(path), planned(tree.dir().to_str().unwrap()));
}

/// Linux 5.17 to 5.19 on Xen, and kernels before 3.2: `irq` has the line that the card does not use, which is another
/// device's.
#[test]
fn msi_that_sysfs_does_not_list_is_found_by_names() {
    let names = ["eth0-Tx-Rx-0", "eth0-Tx-Rx-1", "ena-mgmnt@pci:0000:82:00.0"];
    let ena = card("ena", Port::new("eth0", 10_000, 2, 2), 30, &names);
    let mlx5 = Card::new(
        "mlx5_core",
        "pci0000:c0/0000:c0:02.0",
        "0000:c1:00.0",
        1,
        "8.0 GT/s PCIe",
        8,
    );
    let names = [
        "mlx5_async0@pci:0000:c1:00.0",
        "mlx5_comp0@pci:0000:c1:00.0",
    ];
    let mlx5 = mlx5.vectors(40, names, &[], &[0]);
    let tree = MachineTree::build(&two_nodes([
        ena,
        mlx5.port(Port::new("eth1", 25_000, 1, 1)),
    ]));
    let text = crate::support::tree::read(tree.dir(), "proc/interrupts");
    let others = format!(
        "\n 16: {}  IO-APIC  16-fasteoi  ehci_hcd:usb1",
        "0 ".repeat(8)
    );
    tree.put("proc/interrupts", &(text + &others));
    tree.put("proc/irq/16/smp_affinity", "ff");
    for (name, line) in [("eth0", "16"), ("eth1", "0")] {
        let device = format!("sys/class/net/{name}/device");
        std::fs::remove_dir_all(tree.dir().join(format!("{device}/msi_irqs"))).unwrap();
        tree.put(&format!("{device}/irq"), line);
    }
    let known = tree.host().interfaces;
    assert_eq!(
        known.iter().map(vectors).collect::<Vec<_>>(),
        [
            &["30=combined 0 name", "31=combined 1 name", "32=control"][..],
            &["41=combined 0 name", "40=control"]
        ]
    );
    let paths = tree.plan(&[]).writes.into_iter().map(|write| write.path);
    assert!(!paths.into_iter().any(|path| path.contains("/irq/16/")));
}

/// The number in the device tree is that at the controller, of which there may be several.
#[test]
fn irqs_of_controllers_with_one_cell_are_found_by_number_and_name() {
    let tree = MachineTree::build(&two_nodes([]));
    for (device, name, cells, names) in [
        (
            "16030000.ethernet",
            "end0",
            &[7_u8, 6, 5][..],
            "macirq\0eth_wake_irq\0eth_lpi\0",
        ),
        ("d0030000.ethernet", "eth1", &[8], ""),
        ("d0070000.ethernet", "eth2", &[10], ""),
    ] {
        let driver = if name == "end0" {
            "starfive-dwmac"
        } else {
            "mvneta"
        };
        let device = format!("sys/devices/platform/{device}");
        tree.add(&device, "platform", driver, name, 1);
        let node = tree.dir().join(format!("{device}/of_node"));
        std::fs::create_dir_all(&node).unwrap();
        let cells = cells.iter().flat_map(|&cell| [0, 0, 0, cell]);
        std::fs::write(node.join("interrupts"), cells.collect::<Vec<u8>>()).unwrap();
        std::fs::write(node.join("interrupt-names"), names).unwrap();
    }
    let rows = [
        ("SiFive PLIC   7 Edge", "end0"),
        ("SiFive PLIC   6 Edge", "end0"),
        ("SiFive PLIC   5 Edge", "end0"),
        ("MPIC   8 Level", "mvneta"),
        ("armada_370_xp_irq  10 Level", "mvneta"),
        ("gpio-mxc   8 Level", "card detect"),
    ];
    let mut text = crate::support::tree::read(tree.dir(), "proc/interrupts");
    for (irq, (chip, name)) in (60..).zip(rows) {
        text.push_str(&format!(
            "\n{irq:>3}: {}  {chip}     {name}",
            "0 ".repeat(8)
        ));
        tree.put(&format!("proc/irq/{irq}/smp_affinity"), "ff");
    }
    tree.put("proc/interrupts", &text);
    let known = tree.host().interfaces;
    assert_eq!(
        known.iter().map(vectors).collect::<Vec<_>>(),
        [
            &["60=combined 0 name", "61=control", "62=control"][..],
            &["63=combined 0 order"],
            &["64=combined 0 order"]
        ]
    );
    // Each CPU has the first of an MPIC of its own, whatever the kernel calls it.
    let movable = known.iter().map(|port| port.vectors[0].movable);
    assert_eq!(movable.collect::<Vec<_>>(), [true, false, false]);
}

/// No network driver asks for IRQs of which each CPU of a GIC has one: such a number behind the chip's name is another.
#[test]
fn a_small_number_at_a_gic_keeps_no_card_from_being_placed() {
    let tree = MachineTree::build(&two_nodes([]));
    let device = "sys/devices/platform/fd580000.ethernet";
    tree.add(device, "platform", "bcmgenet", "eth0", 5);
    tree.interrupts(29, "GICv3  29 Level", &["eth0", "eth0"]);
    assert_eq!(cpus(of(&tree.plan(&[]), "eth0")), ["1", "4"]);
}

/// mlxsw has one IRQ for all ports of the switch; older mlx4 named those of each port by its interface, here by old names.
#[test]
fn ports_whose_irqs_name_no_port_share_them() {
    for (driver, names) in [
        ("mlxsw_spectrum2", &["mlxsw_spectrum2"][..]),
        ("mlx4_core", &["eth0-0", "eth1-0"]),
    ] {
        let mut both = card(driver, Port::new("swp1", 100_000, 1, 1), 30, names);
        both = both.port(Port::new("swp2", 100_000, 1, 1));
        let tree = MachineTree::build(&two_nodes([both]));
        tree.put("sys/class/net/swp2/dev_port", "1");
        let plan = tree.plan(&[]);
        assert!(
            codes(of(&plan, "swp2")).contains(&"vectors-shared"),
            "{driver}"
        );
        // What arrives by the first one's IRQs is spread to other CPUs.
        let first: Vec<_> = of(&plan, "swp1").vectors.iter().collect();
        let taken = nicpin::cpuset::CpuSet::union_of(first.iter().flat_map(|v| &v.cpus));
        let rps = of(&plan, "swp2").rx_queues[0].rps_cpus.clone();
        assert!(rps.is_none_or(|rps| !rps.intersects(&taken)), "{driver}");
    }
}

/// tg3 and bnx2 free all IRQs of a function when its interface goes down.
#[test]
fn a_card_that_is_down_is_not_one_without_irqs() {
    let port = |name: &str| Port {
        state: "down".into(),
        ..Port::new(name, -1, 1, 1)
    };
    let tree = MachineTree::build(&two_nodes([card("tg3", port("eth0"), 30, &[])]));
    tree.add("sys/devices/usb1/1-1:1.0", "usb", "r8152", "eth1", 1);
    tree.put("sys/class/net/eth1/operstate", "down");
    tree.interrupts(9, "IO-APIC", &["acpi"]);
    for (name, why) in [("eth0", "while-down"), ("eth1", "of-device")] {
        let plan = tree.nicpin(&["plan", "--json", name]).json();
        let note = note(&plan["interfaces"][0], "no-vectors");
        assert_eq!(note["because"], why, "{name}");
    }
}

/// Of DPAA: packets arrive by the IRQs of portals, of which each CPU has one; DPAA2 has one of its own for the link.
#[test]
fn the_portals_by_which_packets_arrive_are_named() {
    let tree = MachineTree::build(&two_nodes([]));
    tree.add(
        "sys/devices/dprc.1/dpni.1",
        "fsl-mc",
        "fsl_dpaa2_eth",
        "eth0",
        2,
    );
    tree.interrupts(130, "ITS-fMSI", &["dpni.1", "dpio.1", "dpio.2"]);
    for port in 0..2 {
        let device = format!("sys/devices/platform/dpaa-ethernet.{port}");
        tree.add(&device, "platform", "fsl_dpa", &format!("mac{port}"), 2);
    }
    tree.interrupts(140, "GICv2", &["QMan portal 0", "QMan portal 1"]);
    let plan = tree.nicpin(&["plan", "--json"]).json();
    let interface =
        |name| (plan["interfaces"].as_array().unwrap().iter()).find(|i| i["name"] == name);
    let arrives = |name| {
        let note = note(interface(name).unwrap(), "no-vectors");
        [note["because"].clone(), note["controller"].clone()]
    };
    assert_eq!(arrives("eth0"), ["of-queues", "dpio (IRQs 131-132)"]);
    for port in ["mac0", "mac1"] {
        assert_eq!(arrives(port), ["of-device", "QMan portal (IRQs 140-141)"]);
    }
    let eth0 = interface("eth0").unwrap();
    let control = &eth0["vectors"][0];
    assert_eq!(
        (&control["irq"], &control["role"]),
        (&130.into(), &"control".into())
    );
}

/// Its host's IRQ may have a name of the driver's own (`dw-mci`): of several the device tree tells which.
#[test]
fn a_card_on_sdio_is_served_by_the_irq_of_its_host() {
    let tree = MachineTree::build(&two_nodes([]));
    tree.add("sys/devices/usb5/5-1:1.0", "usb", "r8152", "eth1", 1);
    let host = "sys/devices/platform/fe310000.mmc";
    let card = format!("{host}/mmc_host/mmc2/mmc2:0001/mmc2:0001:1");
    tree.add(&card, "sdio", "brcmfmac", "wlan0", 1);
    let controllers = || {
        let plan = tree.nicpin(&["plan", "--json"]).json();
        let interfaces = plan["interfaces"].as_array().unwrap().iter();
        let arrives = interfaces.map(|port| note(port, "no-vectors")["controller"].clone());
        arrives.collect::<Vec<_>>()
    };
    tree.interrupts(30, "GICv3 38 Level", &["xhci-hcd:usb4"]);
    tree.interrupts(31, "GICv3 39 Level", &["dw-mci"]);
    assert_eq!(controllers(), ["xhci-hcd (IRQ 30)", "dw-mci (IRQ 31)"]);
    tree.interrupts(40, "GICv3 40 Level", &["dw-mci"]);
    assert_eq!(controllers(), ["xhci-hcd (IRQ 30)", "its controller"]);
    let node = tree.path(&format!("{host}/of_node"));
    std::fs::create_dir_all(&node).unwrap();
    std::fs::write(
        node.join("interrupts"),
        [0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 4],
    )
    .unwrap();
    assert_eq!(controllers(), ["xhci-hcd (IRQ 30)", "dw-mci (IRQ 40)"]);
}

/// Where a CPU could not hold all IRQs of the machine, those of other devices are counted.
#[test]
fn vectors_that_other_devices_hold_are_counted_on_x86() {
    let names: Vec<String> = (0..4).map(|n| format!("eth0-TxRx-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let tree = MachineTree::build(&two_nodes([card(
        "ixgbe",
        Port::new("eth0", 10_000, 4, 4),
        31,
        &names,
    )]));
    assert_eq!(tree.host().vectors_held, None, "few IRQs");
    let disks = vec!["nvme0q1"; 200];
    tree.interrupts(300, "IR-PCI-MSI 512000-edge", &disks);
    for irq in 300..330 {
        tree.put(&format!("proc/irq/{irq}/effective_affinity_list"), "1");
    }
    assert_eq!(tree.host().vectors_held, Some([(1, 30)].into()));
    let text = crate::support::tree::read(tree.dir(), "proc/interrupts").replace("IR-", "");
    tree.put("proc/interrupts", &text.replace("PCI-MSI", "HV-PCI-MSI"));
    assert_eq!(tree.host().vectors_held, Some([(1, 30)].into()), "Hyper-V");
    tree.put("proc/interrupts", &text.replace("PCI-MSI", "ITS-MSI"));
    assert_eq!(tree.host().vectors_held, None, "Arm's CPUs have no vectors");
}

/// A number of the tree is one of the controller's that the tree names: MT7622's `sysirq` and the GPC of i.MX take a
/// GIC's cells without its offset, PLICs may have two cells, and `interrupts-extended` names a controller for each.
#[test]
fn numbers_of_the_device_tree_are_those_of_its_controller() {
    let tree = MachineTree::build(&two_nodes([]));
    let base = "sys/firmware/devicetree/base";
    let bytes = |path: &str, cells: &[u32]| {
        let path = tree.path(&format!("{base}/{path}"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let cells = cells.iter().flat_map(|cell| cell.to_be_bytes());
        std::fs::write(path, cells.collect::<Vec<u8>>()).unwrap();
    };
    for (node, phandle, cells, compatible) in [
        ("soc/interrupt-controller@10300000", 1, 3, "arm,gic-400\0"),
        (
            "sysirq@10200620",
            2,
            3,
            "mediatek,mt7622-sysirq\0mediatek,mt6577-sysirq\0",
        ),
        ("soc/exti@5000d000", 3, 2, "st,stm32mp1-exti\0"),
        (
            "soc/plic@7090000000",
            4,
            2,
            "thead,th1520-plic\0thead,c900-plic\0",
        ),
        ("soc/interrupt-controller@6", 5, 3, "arm,gic-v5\0"),
    ] {
        bytes(&format!("{node}/phandle"), &[phandle]);
        bytes(&format!("{node}/#interrupt-cells"), &[cells]);
        std::fs::write(tree.path(&format!("{base}/{node}/compatible")), compatible).unwrap();
    }
    bytes("interrupt-parent", &[2]);
    bytes("soc/wifi@5/interrupt-parent", &[1]);
    bytes("soc/mac@7/interrupt-parent", &[4]);
    for (device, driver, name, node, list, cells, names) in [
        (
            "1b100000.ethernet",
            "mtk_soc_eth",
            "eth0",
            "ethernet@1",
            "interrupts",
            &[0, 223, 8, 0, 224, 8, 0, 225, 8][..],
            "",
        ),
        (
            "5.wifi",
            "wifi",
            "wlan0",
            "wifi@5",
            "interrupts",
            &[0, 9, 4],
            "",
        ),
        (
            "5800a000.ethernet",
            "stm32-dwmac",
            "end0",
            "ethernet@6",
            "interrupts-extended",
            &[1, 0, 61, 4, 3, 70, 1],
            "macirq\0eth_wake_irq\0",
        ),
        (
            "7.mac",
            "newmac",
            "eth1",
            "mac@7",
            "interrupts",
            &[66, 4],
            "macirq\0",
        ),
        // An SPI of a GICv5, and one of the extended range of a GICv3.
        (
            "8.mac",
            "newmac",
            "eth2",
            "mac@8",
            "interrupts-extended",
            &[5, 3, 12, 4],
            "macirq\0",
        ),
        (
            "9.mac",
            "newmac",
            "eth3",
            "mac@9",
            "interrupts-extended",
            &[1, 2, 7, 4],
            "macirq\0",
        ),
    ] {
        let path = format!("sys/devices/platform/{device}");
        tree.add(&path, "platform", driver, name, 1);
        bytes(&format!("soc/{node}/{list}"), cells);
        std::fs::write(
            tree.path(&format!("{base}/soc/{node}/interrupt-names")),
            names,
        )
        .unwrap();
        let target = format!("../../../firmware/devicetree/base/soc/{node}");
        tree.link(&format!("{path}/of_node"), &target);
    }
    for (irq, chip, action) in [
        (40, "MT_SYSIRQ 224 Level", "1b100000.ethernet"),
        (41, "MT_SYSIRQ 225 Level", "1b100000.ethernet"),
        (42, "GIC-0 256 Level", "pmu"),
        (43, "GIC-0  41 Level", "copy-engine"),
        (44, "GIC-0  93 Level", "end0"),
        (45, "stm32-exti-h  70 Edge", "end0"),
        (46, "SiFive PLIC  66 Level", "newmac"),
        (47, "GIC-0 102 Level", "disk"),
        (48, "GICv5-SPI  12 Level", "newmac"),
        (49, "GIC-0 4103 Level", "eth"),
        (50, "GICP-ICU-NSR-f21e0000.icu  93 Level", "other"),
    ] {
        tree.interrupts(irq, chip, &[action]);
    }
    let check = |host: &nicpin::machine::Machine| {
        let of = |name: &str| vectors(host.interfaces.iter().find(|i| i.name == name).unwrap());
        assert_eq!(of("eth0"), ["41=rx 0 order", "40=tx 0 order"]);
        assert_eq!(of("wlan0"), ["43=combined 0 order"]);
        assert_eq!(of("end0"), ["44=combined 0 name", "45=control"]);
        assert_eq!(of("eth1"), ["46=combined 0 order"]);
        assert_eq!(of("eth2"), ["48=combined 0 order"]);
        assert_eq!(of("eth3"), ["49=combined 0 order"]);
        let last = host.interfaces.iter().find(|i| i.name == "eth2").unwrap();
        assert!(last.vectors[0].movable);
    };
    check(&tree.host());
    let capture = tree.dir().join("host.tar.gz");
    let path = capture.to_str().unwrap();
    assert_eq!(tree.nicpin(&["capture", "-o", path]).code, 0);
    let planned = |root: &str| crate::support::run::nicpin(&["plan", "-v", "--root", root]).stdout;
    assert_eq!(planned(path), planned(tree.dir().to_str().unwrap()));
}
