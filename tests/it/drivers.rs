//! The queue of each vector, driver by driver, read from trees.

mod kernel_files;
mod ports;

use crate::support::machine::{Card, MachineSpec, Port};
use crate::support::run::MachineTree;
use nicpin::machine::{Interface, Role};

fn card(driver: &str, name: &str, rx: usize, tx: usize, first: u32, actions: &[&str]) -> Card {
    crate::support::machine::card(driver, Port::new(name, 10_000, rx, tx), first, actions)
}

/// `irq=role queue` of each vector, in the plan's order.
fn vectors(interface: &Interface) -> Vec<String> {
    let text = |v: &nicpin::machine::Vector| match v.queue {
        Some(queue) => format!("{}={:?} {queue}", v.irq, v.role),
        None => format!("{}={:?}", v.irq, v.role),
    };
    interface.vectors.iter().map(text).collect()
}

#[test]
#[allow(clippy::too_many_lines)] // a table
fn every_driver_by_its_names() {
    for (driver, rx, tx, names, expected) in [
        (
            "ixgbe",
            2,
            2,
            vec!["e0-TxRx-0", "e0-TxRx-1", "e0"],
            vec!["98=Combined 0", "99=Combined 1", "100=Control"],
        ),
        // What sends is known of RTL8127, and not of RTL8126.
        (
            "r8127",
            2,
            1,
            vec!["e0-0", "e0-1", "e0-8", "e0-9", "e0-29"],
            vec![
                "98=Rx 0",
                "100=Tx 0",
                "99=Rx 1",
                "101=Control",
                "102=Control",
            ],
        ),
        (
            "r8126",
            2,
            1,
            vec!["e0-0", "e0-1", "e0-16", "e0-21"],
            vec!["100=Data", "98=Rx 0", "99=Rx 1", "101=Control"],
        ),
        // Beside what a row calls data, what is not understood is data, too.
        (
            "iwlwifi",
            1,
            1,
            vec!["iwlwifi:queue_1", "odd", "iwlwifi:exception"],
            vec!["98=Data", "99=Data", "100=Control"],
        ),
        // With a single MSI, one IRQ has the names of all.
        (
            "ath11k_pci",
            1,
            4,
            vec!["bhi", "mhi", "ce0", "DP_EXT_IRQ", "DP_EXT_IRQ"],
            vec![
                "101=Data",
                "102=Data",
                "98=Control",
                "99=Control",
                "100=Control",
            ],
        ),
        (
            "ath11k_pci",
            1,
            4,
            vec!["bhi, mhi, ce0, DP_EXT_IRQ"],
            vec!["98=Combined 0"],
        ),
        // A modem's rings of packets and of commands have one name.
        (
            "mhi_net",
            1,
            1,
            vec!["bhi", "mhi", "mhi"],
            vec!["99=Data", "100=Data", "98=Control"],
        ),
        (
            "mhi-pci-generic",
            1,
            1,
            vec!["bhi, mhi, mhi"],
            vec!["98=Combined 0"],
        ),
        (
            "mtk_t7xx",
            1,
            1,
            vec!["mtk_t7xx_0", "mtk_t7xx_1", "mtk_t7xx_5"],
            vec!["98=Data", "100=Data", "99=Control"],
        ),
        // Over mlx5's vDPA.
        (
            "virtio_net",
            2,
            2,
            vec!["vdpa0-vq-0", "vdpa0-vq-1", "vdpa0-vq-2", "vdpa0-vq-3"],
            vec!["98=Rx 0", "99=Tx 0", "100=Rx 1", "101=Tx 1"],
        ),
        (
            "al_eth",
            2,
            2,
            vec![
                "al-eth-msix-mgmt@pci:0000:82:00.0",
                "al-eth-rx-comp-0@pci:0000:82:00.0",
                "al-eth-rx-comp-1@pci:0000:82:00.0",
                "al-eth-tx-comp-0@pci:0000:82:00.0",
                "al-eth-tx-comp-1@pci:0000:82:00.0",
            ],
            vec!["99=Rx 0", "101=Tx 0", "100=Rx 1", "102=Tx 1", "98=Control"],
        ),
        // The first vector, named otherwise, has queue 0.
        (
            "rtase",
            2,
            2,
            vec!["e0", "e0_int1"],
            vec!["98=Combined 0", "99=Combined 1"],
        ),
        (
            "forcedeth",
            1,
            1,
            vec!["e0-rx", "e0-tx", "e0-other"],
            vec!["98=Rx 0", "99=Tx 0", "100=Control"],
        ),
        // Rings, then link and PTP.
        (
            "atlantic",
            2,
            2,
            vec!["e0"; 4],
            vec![
                "98=Combined 0",
                "99=Combined 1",
                "100=Control",
                "101=Control",
            ],
        ),
        (
            "mana",
            2,
            2,
            vec![
                "mana_hwc@pci:0000:82:00.0",
                "mana_msi1@pci:0000:82:00.0",
                "mana_msi2@pci:0000:82:00.0",
            ],
            vec!["99=Combined 0", "100=Combined 1", "98=Control"],
        ),
        // The only IRQ of a device serves all of its queues, whatever its name.
        (
            "ath10k_pci",
            1,
            4,
            vec!["ath10k_pci"],
            vec!["98=Combined 0"],
        ),
        (
            "brcmfmac",
            1,
            1,
            vec!["brcmf_pcie_intr"],
            vec!["98=Combined 0"],
        ),
        (
            "tsnep",
            2,
            2,
            vec!["e0-mac", "e0-txrx-1"],
            vec!["98=Combined 0", "99=Combined 1"],
        ),
        (
            "igb",
            2,
            2,
            vec!["e0", "e0-rx-0", "e0-rx-1", "e0-tx-0", "e0-tx-1"],
            vec!["99=Rx 0", "101=Tx 0", "100=Rx 1", "102=Tx 1", "98=Control"],
        ),
        (
            "i40e",
            2,
            2,
            vec![
                "i40e-0000:82:00.0:misc",
                "i40e-e0-TxRx-0",
                "i40e-e0-TxRx-1",
                "i40e-0000:82:00.0:fdir-TxRx-0",
            ],
            vec![
                "99=Combined 0",
                "100=Combined 1",
                "98=Control",
                "101=Control",
            ],
        ),
        (
            "ice",
            2,
            2,
            vec!["ice-0000:82:00.0:misc", "ice-e0-TxRx-0", "ice-e0-TxRx-1"],
            vec!["99=Combined 0", "100=Combined 1", "98=Control"],
        ),
        (
            "mlx5_core",
            2,
            2,
            vec![
                "mlx5_async0@pci:0000:82:00.0",
                "mlx5_comp0@pci:0000:82:00.0",
                "mlx5_comp1@pci:0000:82:00.0",
            ],
            vec!["99=Combined 0", "100=Combined 1", "98=Control"],
        ),
        (
            "mlx5_core",
            1,
            1,
            vec![
                "mlx5_pages_eq@pci:0000:82:00.0",
                "mlx5_cmd_eq@pci:0000:82:00.0",
                "mlx5_comp0@pci:0000:82:00.0",
            ],
            vec!["100=Combined 0", "98=Control", "99=Control"],
        ),
        (
            "mlx4_core",
            2,
            2,
            vec![
                "mlx4-async@pci:0000:82:00.0",
                "mlx4-1@0000:82:00.0",
                "mlx4-2@0000:82:00.0",
            ],
            vec!["99=Combined 0", "100=Combined 1", "98=Control"],
        ),
        (
            "bnxt_en",
            2,
            2,
            vec!["e0-TxRx-0", "e0-TxRx-1"],
            vec!["98=Combined 0", "99=Combined 1"],
        ),
        (
            "bnx2",
            2,
            2,
            vec!["e0-0", "e0-1"],
            vec!["98=Combined 0", "99=Combined 1"],
        ),
        (
            "tg3",
            2,
            1,
            vec!["e0-tx-0", "e0-rx-1", "e0-rx-2"],
            vec!["99=Rx 0", "98=Tx 0", "100=Rx 1"],
        ),
        (
            "ena",
            2,
            2,
            vec!["ena-mgmnt@pci:0000:82:00.0", "e0-Tx-Rx-0", "e0-Tx-Rx-1"],
            vec!["99=Combined 0", "100=Combined 1", "98=Control"],
        ),
        (
            "gve",
            2,
            2,
            vec![
                "gve-ntfy-blk0@pci:0000:82:00.0",
                "gve-ntfy-blk1@pci:0000:82:00.0",
                "gve-ntfy-blk2@pci:0000:82:00.0",
                "gve-ntfy-blk3@pci:0000:82:00.0",
                "gve-mgmnt@pci:0000:82:00.0",
            ],
            vec!["100=Rx 0", "98=Tx 0", "101=Rx 1", "99=Tx 1", "102=Control"],
        ),
        (
            "gve",
            1,
            1,
            vec!["e0-ntfy-block.0", "e0-ntfy-block.1", "e0-mgmnt"],
            vec!["99=Rx 0", "98=Tx 0", "100=Control"],
        ),
        // One for each CPU, with its receive queue, and the link's.
        (
            "mvpp2",
            2,
            8,
            vec!["e0"; 3],
            vec!["98=Rx 0", "99=Rx 1", "100=Control"],
        ),
        // Receive-only vectors come first, transmit-only ones last.
        (
            "qede",
            2,
            2,
            vec!["e0-fp-0", "e0-fp-1", "e0-fp-2", "e0-fp-3"],
            vec!["98=Rx 0", "100=Tx 0", "99=Rx 1", "101=Tx 1"],
        ),
        (
            "qede",
            2,
            3,
            vec!["e0-fp-0", "e0-fp-1", "e0-fp-2"],
            vec!["98=Combined 0", "99=Combined 1", "100=Tx 2"],
        ),
        // The last two also send, from their queues 0 and 1.
        (
            "qede",
            3,
            2,
            vec!["e0-fp-0", "e0-fp-1", "e0-fp-2"],
            vec!["98=Rx 0", "99=Rx 1", "100=Rx 2"],
        ),
        (
            "vmxnet3",
            2,
            2,
            vec!["e0-rxtx-0", "e0-rxtx-1", "e0-event-2"],
            vec!["98=Combined 0", "99=Combined 1", "100=Control"],
        ),
        (
            "vmxnet3",
            2,
            1,
            vec!["e0-tx-0", "e0-rx-1", "e0-rx-2", "e0-event-3"],
            vec!["99=Rx 0", "98=Tx 0", "100=Rx 1", "101=Control"],
        ),
        (
            "e1000e",
            1,
            1,
            vec!["e0-rx-0", "e0-tx-0", "e0"],
            vec!["98=Rx 0", "99=Tx 0", "100=Control"],
        ),
        // Of an interface whose name leaves no room for more.
        (
            "e1000e",
            1,
            1,
            vec!["e0"; 3],
            vec!["98=Rx 0", "99=Tx 0", "100=Control"],
        ),
        (
            "igbvf",
            1,
            1,
            vec!["e0"; 3],
            vec!["99=Rx 0", "98=Tx 0", "100=Control"],
        ),
        // The interface's name with the driver's in front would be too long for one.
        (
            "i40evf",
            2,
            2,
            vec![
                "i40evf-0000:82:00.0:mbx",
                "i40evf-enp94s2f1-TxRx-0",
                "i40evf-enp94s2f1-TxRx-1",
            ],
            vec!["99=Combined 0", "100=Combined 1", "98=Control"],
        ),
        // Vectors of both directions and of one are numbered together.
        (
            "idpf",
            1,
            2,
            vec!["idpf-Mailbox-0", "idpf-e0-TxRx-0", "idpf-e0-Tx-1"],
            vec!["99=Combined 0", "100=Tx 1", "98=Control"],
        ),
        // Vectors of one direction, whose names say both.
        (
            "fbnic",
            2,
            2,
            vec!["e0", "e0-Tx-0", "e0-Tx-1", "e0-TxRx-2", "e0-TxRx-3"],
            vec!["101=Rx 0", "99=Tx 0", "102=Rx 1", "100=Tx 1", "98=Control"],
        ),
        (
            "fbnic",
            2,
            2,
            vec!["e0-TxRx-0", "e0-TxRx-1", "e0-TxRx-2", "e0-TxRx-3"],
            vec!["100=Rx 0", "98=Tx 0", "101=Rx 1", "99=Tx 1"],
        ),
        // What is not a queue's.
        (
            "ixgbevf",
            1,
            1,
            vec!["e0-TxRx-0", "e0:mbx"],
            vec!["98=Combined 0", "99=Control"],
        ),
        (
            "enic",
            1,
            1,
            vec!["e0-rx-0", "e0-tx-0", "0000:3b:00.0-admin"],
            vec!["98=Rx 0", "99=Tx 0", "100=Control"],
        ),
        (
            "habanalabs",
            1,
            1,
            vec![
                "gaudi2 cpu eq",
                "gaudi2 cn0 qpc1 EQ",
                "gaudi2 user completion",
            ],
            vec!["99=Data", "98=Control", "100=Control"],
        ),
        (
            "ipa",
            1,
            1,
            vec!["gsi", "ipa"],
            vec!["98=Combined 0", "99=Control"],
        ),
        // Without the vectors of its queues that of the MAC has all.
        ("niu", 4, 4, vec!["e0:MAC"], vec!["98=Combined 0"]),
        (
            "niu",
            1,
            1,
            vec!["e0:MAC", "e0-rx-0", "e0-tx-0"],
            vec!["99=Rx 0", "100=Tx 0", "98=Control"],
        ),
        (
            "bnx2x",
            1,
            1,
            vec!["e0", "cnic", "e0-fp-0"],
            vec!["100=Combined 0", "98=Control", "99=Control"],
        ),
    ] {
        let mut machine = MachineSpec::new(&["0-3"]);
        machine.cards.push(card(driver, "e0", rx, tx, 98, &names));
        let host = machine.read();
        assert_eq!(vectors(&host.interfaces[0]), expected, "{driver}");
        assert!(host.interfaces[0].unknown_vectors.is_empty(), "{driver}");
    }
}

#[test]
fn virtio_through_its_pci_parent() {
    let mut machine = MachineSpec::new(&["0-1", "2-3"]);
    let names = [
        "virtio7-config",
        "virtio7-input.0",
        "virtio7-output.0",
        "virtio7-input.1",
        "virtio7-output.1",
    ];
    let mut virtio = card("virtio_net", "ens3", 2, 2, 40, &names);
    (virtio.virtio, virtio.node) = (Some(7), 1);
    machine.cards.push(virtio);
    let host = machine.read();
    let ens3 = &host.interfaces[0];
    assert_eq!(
        vectors(ens3),
        ["41=Rx 0", "42=Tx 0", "43=Rx 1", "44=Tx 1", "40=Control"]
    );
    assert_eq!(
        (ens3.device.address.as_str(), ens3.device.node),
        ("0000:82:00.0", Some(1))
    );
    assert_eq!(ens3.driver.as_deref(), Some("virtio_net"));
}

/// Other tools look for `eth1` in the text of /proc/interrupts and take eth10's vectors, too.
#[test]
fn eth1_is_not_eth10() {
    let mut machine = MachineSpec::new(&["0-3"]);
    for (at, name) in ["eth1", "eth10", "eth1.5"].into_iter().enumerate() {
        let at = u32::try_from(at).unwrap();
        let mut card = card("r8169", name, 1, 1, 50 + at, &[name]);
        card.address = format!("0000:82:0{at}.0");
        card.msi = false;
        machine.cards.push(card);
    }
    let host = machine.read();
    let all: Vec<_> = host
        .interfaces
        .iter()
        .map(|i| (i.name.as_str(), vectors(i)))
        .collect();
    let one = |irq: u32| vec![format!("{irq}=Combined 0")];
    assert_eq!(
        all,
        [("eth1", one(50)), ("eth1.5", one(52)), ("eth10", one(51))]
    );
}

#[test]
fn a_line_shared_with_others_is_found_by_the_interfaces_own_name() {
    let mut machine = MachineSpec::new(&["0-3"]);
    let mut card = card("e1000", "eth1", 1, 1, 19, &["uhci_hcd:usb5, eth1"]);
    card.msi = false;
    machine.cards.push(card);
    let host = machine.read();
    assert_eq!(vectors(&host.interfaces[0]), ["19=Combined 0"]);
    assert_eq!(host.interfaces[0].vectors[0].action.to_string(), "eth1");
}

#[test]
fn names_from_before_a_rename_belong_to_the_device() {
    let mut machine = MachineSpec::new(&["0-3"]);
    machine.cards.push(card(
        "ixgbe",
        "ens1f0",
        2,
        2,
        30,
        &["eth4-TxRx-0", "eth4-TxRx-1"],
    ));
    assert_eq!(
        vectors(&machine.read().interfaces[0]),
        ["30=Combined 0", "31=Combined 1"]
    );
}

/// An interface may be named like a vector of another one.
#[test]
fn an_interface_that_is_named_like_a_queue() {
    let mut machine = MachineSpec::new(&["0-3"]);
    let names = ["e-TxRx-1", "e-TxRx-1-TxRx-0", "e-TxRx-1-TxRx-1"];
    let own = card("igb", "e-TxRx-1", 2, 2, 30, &names);
    machine.cards.push(own);
    assert_eq!(
        vectors(&machine.read().interfaces[0]),
        ["31=Combined 0", "32=Combined 1", "30=Control"]
    );
}

/// The vendor's driver of RTL8125 sends by other vectors on each chip, and only the chip's revision tells which.
#[test]
fn the_revision_of_a_realtek_chip_tells_which_vectors_send() {
    let names: Vec<String> = (0..20).map(|n| format!("e0-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (revision, sends) in [
        (None, vec!["46=Tx 0", "48=Tx 1"]),
        (Some("0x05"), vec!["46=Tx 0", "48=Tx 1"]),
        (Some("0x0c"), vec!["46=Tx 0", "47=Tx 1"]),
        (Some("0x0b"), vec!["46=Data", "48=Data"]),
    ] {
        let mut machine = MachineSpec::new(&["0-3"]);
        machine.cards.push(card("r8125", "e0", 4, 2, 30, &names));
        let tree = MachineTree::build(&machine);
        if let Some(revision) = revision {
            tree.put("sys/class/net/e0/device/revision", revision);
        }
        let host = tree.host();
        let found = vectors(&host.interfaces[0]);
        let is_sender = |text: &&String| text.contains("Tx") || text.contains("Data");
        let found: Vec<&String> = found.iter().filter(is_sender).collect();
        assert_eq!(found, sends, "{revision:?}");
    }
}

#[test]
fn vectors_whose_queues_are_not_known_are_data() {
    let mut machine = MachineSpec::new(&["0-3"]);
    machine.cards.push(card(
        "atlantic",
        "eth0",
        4,
        4,
        30,
        &["eth0", "eth0", "eth0"],
    ));
    let mut other = card(
        "newdriver",
        "eth1",
        2,
        2,
        40,
        &["newdriver:queue_0", "newdriver:queue_1"],
    );
    other.address = "0000:83:00.0".to_owned();
    machine.cards.push(other);
    let host = machine.read();
    for (interface, names) in host.interfaces.iter().zip([
        &["eth0", "eth0", "eth0"][..],
        &["newdriver:queue_0", "newdriver:queue_1"],
    ]) {
        let vectors = interface.vectors.iter();
        let found: Vec<_> = vectors
            .map(|v| (v.role, v.queue, v.action.to_string()))
            .collect();
        let data = names
            .iter()
            .map(|name| (Role::Data, None, (*name).to_owned()));
        assert_eq!(found, data.collect::<Vec<_>>());
    }
}

#[test]
fn an_irq_without_a_handler_is_not_a_vector() {
    let mut machine = MachineSpec::new(&["0-3"]);
    machine
        .cards
        .push(card("igb", "eth0", 2, 2, 30, &["", "", ""]));
    let host = machine.read();
    assert!(host.interfaces[0].vectors.is_empty() && host.interfaces[0].unknown_vectors.is_empty());
}

#[test]
fn vectors_beyond_the_queues_in_use_are_idle() {
    let mut machine = MachineSpec::new(&["0-3"]);
    let names = [
        "mlx5_comp0@pci:0000:82:00.0",
        "mlx5_comp1@pci:0000:82:00.0",
        "mlx5_comp2@pci:0000:82:00.0",
    ];
    machine
        .cards
        .push(card("mlx5_core", "eth0", 2, 2, 30, &names));
    let host = machine.read();
    let idle: Vec<bool> = host.interfaces[0]
        .vectors
        .iter()
        .map(|v| host.interfaces[0].is_idle(v))
        .collect();
    assert_eq!(idle, [false, false, true]);
}

/// Dumps often lack the driver's link; some drivers have two names.
#[test]
fn the_driver_is_known_from_the_names_of_its_vectors() {
    for (driver, names, expected) in [
        (
            "",
            vec![
                "mlx5_async0@pci:0000:82:00.0",
                "mlx5_comp0@pci:0000:82:00.0",
                "mlx5_comp1@pci:0000:82:00.0",
            ],
            vec!["99=Combined 0", "100=Combined 1", "98=Control"],
        ),
        (
            "",
            vec!["virtio1-config", "virtio1-input.0", "virtio1-output.0"],
            vec!["99=Rx 0", "100=Tx 0", "98=Control"],
        ),
        (
            "gvnic",
            vec![
                "gve-ntfy-blk0@pci:0000:82:00.0",
                "gve-ntfy-blk1@pci:0000:82:00.0",
            ],
            vec!["99=Rx 0", "98=Tx 0"],
        ),
    ] {
        let mut machine = MachineSpec::new(&["0-3"]);
        machine.cards.push(card(driver, "e0", 2, 2, 98, &names));
        assert_eq!(
            vectors(&machine.read().interfaces[0]),
            expected,
            "{driver} {names:?}"
        );
    }
}
