//! The queue of each vector, driver by driver, read from trees.

use crate::support::host::{fix_of, of, plan_with};
use crate::support::machine::{Card, Kernel, MachineSpec, Port, cpus, two_nodes};
use crate::support::run::Copy;
use crate::support::temporary;
use nicpin::machine::{Interface, Role, Source};
use nicpin::root::Root;

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
        // The vectors that send are known of RTL8127, and not of RTL8126.
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
        // What is not understood is data, beside what the row calls data.
        (
            "iwlwifi",
            1,
            1,
            vec!["iwlwifi:queue_1", "odd", "iwlwifi:exception"],
            vec!["98=Data", "99=Data", "100=Control"],
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
    assert_eq!(host.interfaces[0].vectors[0].action, "eth1");
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

/// The vendor's driver of RTL8125 sends by other vectors on each chip.
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
        let tree = Copy::build(&machine);
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

/// With few vectors, the ports of mlx4 take those that the fewest use: only netlink knows which.
#[test]
fn ports_with_a_common_pool_of_vectors_have_no_known_queues() {
    let mut machine = MachineSpec::new(&["0-3"]);
    let names: Vec<String> = (1..=8).map(|n| format!("mlx4-{n}@0000:82:00.0")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let second = Port::new("eth1", 10_000, 4, 4);
    machine
        .cards
        .push(card("mlx4_core", "eth0", 4, 4, 30, &names).port(second));
    let host = machine.read();
    let roles = host.interfaces[0].vectors.iter().map(|vector| vector.role);
    assert!(roles.eq([Role::Data; 8]));
    assert!(host.interfaces[1].vectors.is_empty());
}

/// A vector of mana serves the queue of its number of every port.
#[test]
fn a_port_on_the_vectors_of_another_moves_both() {
    let names = [
        "mana_hwc@pci:0000:82:00.0",
        "mana_q0@pci:0000:82:00.0",
        "mana_q1@pci:0000:82:00.0",
    ];
    let mut machine = MachineSpec::new(&["0-3"]);
    let second = Port::new("e1", 10_000, 2, 2);
    machine
        .cards
        .push(card("mana", "e0", 2, 2, 30, &names).port(second));
    let tree = Copy::build(&machine);
    let [both, alone] = [&[][..], &["e1"]].map(|selectors| tree.plan(selectors));
    // Two queues on a core: those of its number of both ports.
    let busiest = |plan: &nicpin::plan::Plan| plan.score.max_vectors_per_core;
    assert_eq!((busiest(&both), busiest(&alone)), (2, 2));
    let irqs = |plan: &nicpin::plan::Plan| -> Vec<String> {
        let writes = plan.writes.iter();
        let irqs = writes.filter(|write| write.path.starts_with("/proc/irq/"));
        irqs.map(|write| format!("{} {}", write.path, write.value))
            .collect()
    };
    assert_eq!(irqs(&both), irqs(&alone));
    let notes = of(&alone, "e1").notes.iter();
    let codes: Vec<String> = notes.map(nicpin::plan::Note::code).collect();
    assert_eq!(codes, ["vectors-for-several"]);
}

#[test]
fn two_ports_of_one_function() {
    let mut machine = MachineSpec::new(&["0-3"]);
    // Names without an interface: the vectors belong to the first port, and the second has a note.
    let names = [
        "mlx4-async@pci:0000:82:00.0",
        "mlx4-1@0000:82:00.0",
        "mlx4-2@0000:82:00.0",
    ];
    machine
        .cards
        .push(card("mlx4_core", "eth0", 2, 2, 30, &names).port(Port::new("eth1", 10_000, 2, 2)));
    let host = machine.read();
    assert_eq!(vectors(&host.interfaces[0]).len(), 3);
    assert_eq!(
        host.interfaces[1].shares_vectors_of.as_deref(),
        Some("eth0")
    );
    // Names with an interface: each port has its own vectors.
    let mut machine = MachineSpec::new(&["0-3"]);
    let names = [
        "eth0",
        "eth0-Rx0",
        "eth1-Rx0",
        "eth0-FWeventq",
        "eth0-Rx1",
        "eth1-Rx1",
    ];
    machine
        .cards
        .push(card("cxgb4", "eth0", 2, 2, 30, &names).port(Port::new("eth1", 10_000, 2, 2)));
    let host = machine.read();
    assert_eq!(
        vectors(&host.interfaces[0]),
        ["31=Rx 0", "34=Rx 1", "30=Control", "33=Control"]
    );
    assert_eq!(vectors(&host.interfaces[1]), ["32=Rx 0", "35=Rx 1"]);
}

/// The names have no interface: the port of a vector cannot be determined.
#[test]
fn vectors_of_several_ports_are_planned_with_the_first() {
    let mut machine = MachineSpec::new(&["0-3", "4-7"]);
    let names: Vec<String> = (1..=6).map(|n| format!("mlx4-{n}@0000:82:00.0")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    machine
        .cards
        .push(card("mlx4_core", "eth0", 3, 3, 30, &names).port(Port::new("eth'1", 10_000, 3, 3)));
    let host = machine.read();
    let eth0 = &host.interfaces[0];
    assert!(eth0.vectors.iter().all(|vector| !eth0.is_idle(vector)));
    let note = |selectors: &[&str], name: &str| {
        let plan = plan_with(&host, &[], selectors);
        let planned = plan
            .interfaces
            .into_iter()
            .find(|planned| planned.name == name)
            .unwrap();
        planned
            .notes
            .into_iter()
            .find(|note| note.code().starts_with("vectors-"))
            .unwrap()
    };
    let owners = note(&[], "eth0");
    assert_eq!(
        (&*owners.code(), fix_of(&owners)),
        ("vectors-of-several", None)
    );
    assert!(
        owners.to_string().contains("those of eth'1"),
        "{}",
        owners.to_string()
    );
    let sharing = note(&[], "eth'1");
    assert_eq!(
        (&*sharing.code(), fix_of(&sharing)),
        ("vectors-shared", None)
    );
    let alone = note(&["eth'1"], "eth'1");
    assert!(
        alone.to_string().contains("IRQs with eth0")
            && alone.to_string().contains("where they are planned"),
        "{}",
        alone.to_string()
    );
    assert_eq!(fix_of(&alone).as_deref(), Some("nicpin plan eth0"));
}

/// Queue N of each port uses vector N: the second port's steering follows it.
#[test]
fn ports_that_share_the_queues_of_a_function_are_steered() {
    let mut machine = MachineSpec::new(&["0-3", "4-7"]);
    let names = [
        "mana_hwc@pci:0000:82:00.0",
        "mana_q0@pci:0000:82:00.0",
        "mana_q1@pci:0000:82:00.0",
        "mana_q2@pci:0000:82:00.0",
    ];
    let first = card("mana", "eth0", 3, 3, 30, &names);
    machine
        .cards
        .push(first.port(Port::new("eth1", 10_000, 2, 2)));
    let host = machine.read();
    let second = &host.interfaces[1];
    assert_eq!(second.shares_vectors_of.as_deref(), Some("eth0"));
    assert_eq!(vectors(second), ["31=Combined 0", "32=Combined 1"]);
    let plan = plan_with(&host, &[], &[]);
    let [first, second] = &plan.interfaces[..] else {
        panic!("two interfaces");
    };
    for tx in &second.tx_queues {
        let cpus = tx.xps_cpus.clone().unwrap();
        let of_first = &first.vectors[tx.queue as usize];
        assert!(of_first.cpus.as_ref().unwrap().intersects(&cpus), "{tx:?}");
    }
    assert!(second.vectors.iter().all(|vector| vector.cpus.is_none()));
    // By MSI number a port may have vectors of its own.
    let mut machine = MachineSpec::new(&["0-3"]);
    let names = ["mana_msi1@pci:0000:82:00.0", "mana_msi2@pci:0000:82:00.0"];
    let card = card("mana", "eth0", 2, 2, 30, &names);
    machine
        .cards
        .push(card.port(Port::new("eth1", 10_000, 2, 2)));
    let interfaces = machine.read().interfaces;
    assert_eq!(vectors(&interfaces[0]), ["30=Data", "31=Data"]);
    assert!(interfaces[1].vectors.is_empty());
    let codes: Vec<_> = second.notes.iter().map(nicpin::Note::code).collect();
    assert_eq!(codes, ["vectors-shared"]);
}

/// IRQ N serves channel N of the port, and of every representor.
#[test]
fn representors_add_no_vector_in_use_to_their_port_s() {
    let names: Vec<String> = (0..8)
        .map(|n| format!("mlx5_comp{n}@pci:0000:82:00.0"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut machine = MachineSpec::new(&["0-3", "4-7"]);
    let mut port = card("mlx5_core", "p0", 4, 4, 30, &names);
    for n in 0..6 {
        port = port.port(Port::new(&format!("rep{n}"), 10_000, 1, 1));
    }
    machine.cards.push(port);
    let host = machine.read();
    let p0 = &host.interfaces[0];
    assert_eq!((&*p0.name, p0.sharing.len()), ("p0", 6));
    let used = p0.vectors.iter().filter(|vector| !p0.is_idle(vector));
    assert_eq!(used.count(), 4);
    let plan = plan_with(&host, &[], &[]);
    assert_eq!(plan.score.max_vectors_per_core, 1);
}

/// Sub-functions share vectors with each other, and not with their parent.
#[test]
fn the_vectors_of_sub_functions_are_the_first_one_s() {
    let tree = Copy::build(&two_nodes([card(
        "mlx5_core",
        "eth0",
        1,
        1,
        30,
        &[
            "mlx5_async0@pci:0000:82:00.0",
            "mlx5_comp0@pci:0000:82:00.0",
        ],
    )]));
    let function = "sys/devices/pci0000:00/0000:00:02.0/0000:82:00.0";
    for n in [2, 3] {
        tree.add(
            &format!("{function}/mlx5_core.sf.{n}"),
            "auxiliary",
            "mlx5_core.sf",
            &format!("sf{n}"),
            1,
        );
    }
    let names = [0, 1].map(|n| format!("mlx5_sf_comp{n}@pci:0000:82:00.0"));
    tree.interrupts(
        40,
        "PCI-MSI 0-edge    ",
        &names.each_ref().map(String::as_str),
    );
    for irq in [40, 41] {
        tree.put(&format!("{function}/msi_irqs/{irq}"), "msix");
    }
    let host = tree.host();
    let of = |name: &str| {
        host.interfaces
            .iter()
            .find(|interface| interface.name == name)
            .unwrap()
    };
    assert_eq!(
        (vectors(of("eth0")).len(), vectors(of("sf2")).len()),
        (2, 2)
    );
    assert_eq!(of("sf3").shares_vectors_of.as_deref(), Some("sf2"));
    assert!(
        of("eth0").sharing.is_empty() && of("sf2").vectors.iter().all(|v| !of("sf2").is_idle(v))
    );
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
            .map(|v| (v.role, v.queue, v.action.as_str()))
            .collect();
        let data = names.iter().map(|name| (Role::Data, None, *name));
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

#[test]
fn every_format_of_proc_interrupts_gives_the_same_vectors() {
    for kernel in [Kernel::V2_6, Kernel::V4_2, Kernel::V6_2, Kernel::V6_14] {
        let mut machine = MachineSpec::new(&["0-3"]);
        machine.kernel = kernel;
        machine.cards.push(card(
            "ixgbe",
            "eth0",
            2,
            2,
            30,
            &["eth0-TxRx-0", "eth0-TxRx-1"],
        ));
        let host = machine.read();
        assert_eq!(
            vectors(&host.interfaces[0]),
            ["30=Combined 0", "31=Combined 1"],
            "{kernel:?}"
        );
        let first = &host.interfaces[0].vectors[0];
        assert_eq!(
            (first.role, first.source, first.affinity.cpus.to_string()),
            (Role::Combined, Source::Name, "0-3".into())
        );
    }
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

/// The bandwidth of PCI Express decides which interface chooses first; kernels before 5.7 print whole numbers without a
/// fraction.
#[test]
fn pcie_bandwidth_in_every_format() {
    for (speed, width, expected) in [
        ("8.0 GT/s PCIe", 8, 64_000),
        ("8 GT/s", 8, 64_000),
        ("2.5 GT/s", 1, 2_500),
        ("Unknown", 8, 0),
        ("16.0 GT/s PCIe", 255, 0),
    ] {
        let mut machine = MachineSpec::new(&["0-3"]);
        let mut card = card("igb", "eth0", 1, 1, 30, &["eth0"]);
        card.max_link = Some((speed.to_owned(), width));
        machine.cards.push(card);
        assert_eq!(
            machine.read().interfaces[0].device.pcie_mtps,
            expected,
            "{speed} x{width}"
        );
    }
}

#[test]
fn isolated_cpus_by_boot_option_and_by_cpuset_partition() {
    let dir = temporary();
    let mut machine = MachineSpec::new(&["0-7"]);
    machine.isolated = cpus("6");
    machine.write(dir.path());
    crate::support::tree::put(dir.path(), "/sys/fs/cgroup/cpuset.cpus.isolated", "2-3");
    let host = nicpin::read::machine(
        &Root::open(dir.path()).unwrap(),
        nicpin::read::ReadOptions::default(),
    )
    .unwrap();
    assert_eq!(host.topology.isolated.to_string(), "2-3,6");
}

#[test]
fn kinds_of_cores_by_pmu_and_by_capacity() {
    let classes = |files: &[(&str, &str)]| -> Vec<String> {
        let dir = temporary();
        MachineSpec::new(&["0-3"]).write(dir.path());
        for (path, text) in files {
            crate::support::tree::put(dir.path(), path, text);
        }
        let topology = nicpin::read::machine(
            &Root::open(dir.path()).unwrap(),
            nicpin::read::ReadOptions::default(),
        )
        .unwrap()
        .topology;
        topology
            .speed_classes
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(
        classes(&[
            ("/sys/devices/cpu_core/cpus", "0-1"),
            ("/sys/devices/cpu_atom/cpus", "2-3")
        ]),
        ["0-1", "2-3"]
    );
    // These CPUs are on neither cpu_core nor cpu_atom.
    assert_eq!(
        classes(&[
            ("/sys/devices/cpu_atom/cpus", "1-2"),
            ("/sys/devices/cpu_lowpower/cpus", "3")
        ]),
        ["0", "1-2", "3"]
    );
    let capacity = |of: [&'static str; 4]| {
        let path = |cpu: usize| format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity");
        let files: Vec<(String, &str)> = of
            .iter()
            .enumerate()
            .map(|(cpu, text)| (path(cpu), *text))
            .collect();
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), *text))
            .collect();
        classes(&files)
    };
    assert_eq!(capacity(["446", "446", "1024", "871"]), ["2", "3", "0-1"]);
    assert!(capacity(["1024", "1024", "1024", "1024"]).is_empty());
    assert!(classes(&[]).is_empty());
}
