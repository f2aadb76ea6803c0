//! Ports of one function, representors and sub-functions: which vectors they have alone, and which they share.

use snapbox::str;

use super::{card, vectors};
use crate::support::host::{fix_of, of, plan_with};
use crate::support::machine::{Card, MachineSpec, Port, two_nodes};
use crate::support::run::{MachineTree, assert_line};
use nicpin::machine::Role;

/// With few vectors, the ports of mlx4 take those that the fewest use: which is known to netlink alone.
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

/// Of mana and its kin, a vector serves the queue of its number of every port: it moves for all of them.
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
    let tree = MachineTree::build(&machine);
    let [both, alone] = [&[][..], &["e1"]].map(|selectors| tree.plan(selectors));
    // Two queues on a core, those of its number of both.
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

/// No row knows what follows the name of the port.
#[test]
fn names_that_begin_with_the_port_s_are_that_port_s() {
    let names = [
        "enp5s0f4 ring 0",
        "enp5s0f4-1 ring 0",
        "enp5s0f4d1 ring 0",
        "enp5s0f4d1 ring 1",
    ];
    let port = |name: &str| Port::new(name, 10_000, 2, 2);
    let ports = |mut card: crate::support::machine::Card, others: &[&str]| {
        for name in others {
            card = card.port(port(name));
        }
        let mut machine = MachineSpec::new(&["0-3"]);
        machine.cards.push(card);
        machine.read()
    };
    let others = ["enp5s0f4-1", "enp5s0f4d1", "enp5s0f4d2"];
    let host = ports(card("newnic", "enp5s0f4", 2, 2, 30, &names), &others);
    let found = |name: &str| {
        let own = host.interfaces.iter().find(|own| own.name == name).unwrap();
        (own.shares_vectors_of.clone(), vectors(own))
    };
    for (name, expected) in [
        ("enp5s0f4", vec!["30=Data"]),
        ("enp5s0f4-1", vec!["31=Data"]),
        ("enp5s0f4d1", vec!["32=Data", "33=Data"]),
        // Its IRQs are freed, and none of the others' is its own.
        ("enp5s0f4d2", vec![]),
    ] {
        let expected = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(found(name), (None, expected), "{name}");
    }
    let plan = plan_with(&host, &[], &[]);
    let codes = crate::support::host::codes(of(&plan, "enp5s0f4"));
    assert_eq!(codes, ["data-vectors"]);
    // Chelsio's own driver.
    let names = [
        "e0-FWeventq",
        "e0 (queue 0)",
        "e0 (queue 1)",
        "e0d1 (queue 0)",
        "e0d1 (queue 1)",
    ];
    let host = ports(card("cxgb4", "e0", 2, 2, 30, &names), &["e0d1"]);
    assert_eq!(
        vectors(&host.interfaces[0]),
        ["31=Rx 0", "32=Rx 1", "30=Control"]
    );
    assert_eq!(vectors(&host.interfaces[1]), ["33=Rx 0", "34=Rx 1"]);
}

/// From names without an interface the port of a vector cannot be determined, and all vectors are in use.
#[test]
fn vectors_of_several_ports_are_planned_with_the_first() {
    let mut machine = MachineSpec::new(&["0-3", "4-7"]);
    let names: Vec<String> = (1..=6).map(|n| format!("mlx4-{n}@0000:82:00.0")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let others = ["eth'1", "eth2", "eth3", "eth4", "eth5"].into_iter();
    let card = card("mlx4_core", "eth0", 3, 3, 30, &names);
    let add = |card: Card, name| card.port(Port::new(name, 10_000, 3, 3));
    machine.cards.push(others.fold(card, add));
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
    assert_line(
        owners.to_string(),
        str![[r#"
its IRQs include those of eth'1, eth2, eth3 and 2 others: the names do not show which IRQ belongs to which, and all are planned here

"#]],
    );
    let sharing = note(&[], "eth'1");
    assert_eq!(
        (&*sharing.code(), fix_of(&sharing)),
        ("vectors-shared", None)
    );
    let alone = note(&["eth'1"], "eth'1");
    assert_line(
        alone.to_string(),
        str![[r#"
the device and IRQs are those of eth0, where they are planned

"#]],
    );
    assert_eq!(fix_of(&alone).as_deref(), Some("nicpin plan eth0"));
}

/// Queue N of each port uses the vector of that number: the second port's steering follows it.
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

/// Sub-functions share vectors with each other, and not with their parent function.
#[test]
fn the_vectors_of_sub_functions_are_the_first_one_s() {
    let tree = MachineTree::build(&two_nodes([card(
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
