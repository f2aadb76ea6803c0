//! Shapes on which tools differ in their placement, and five of the shipped machines. All are written as trees and read
//! back, so that every tool sees the names that kernels print.

use std::path::PathBuf;

use super::facts::Facts;
use crate::support::machine::{Card, Cpus, MachineSpec, Port, cpus};
use crate::support::run::fixture;
use crate::support::temporary;

/// The trees of the built machines stay in `$TREES`.
pub fn all() -> Vec<Facts> {
    let built = [
        ("two cards on one node, siblings n and n+32", two_cards()),
        ("siblings side by side", side_by_side()),
        ("node with 8 L3 domains of 8 CPUs", many_caches()),
        ("four nodes on two sockets", sub_numa()),
        ("node not known (-1)", node_unknown()),
        ("card on a node without CPUs", node_without_cpus()),
        ("half of the node isolated", isolated()),
        ("CPUs 2 and 4 offline", offline()),
        ("12 queues on 4 cores", more_queues_than_cores()),
        (
            "12 queues, IRQs 90 to 104, not in order",
            crossing_a_hundred(),
        ),
        ("card with two ports", two_ports()),
        ("virtio, rx and tx apart", virtio()),
        ("gve, rx and tx apart", gve()),
    ];
    let shipped = [
        "two-socket-mlx4",
        "dl980",
        "tg3-and-ixgbe",
        "four-node",
        "wide",
        "x460",
    ];
    let trees = temporary();
    let dir = std::env::var_os("TREES").map_or_else(|| trees.path().to_owned(), PathBuf::from);
    let built = built.into_iter().map(|(name, machine)| {
        let dir = dir.join(name);
        machine.write(&dir);
        Facts::read(name, &dir)
    });
    built
        .chain(
            shipped
                .into_iter()
                .map(|name| Facts::read(name, &fixture(name))),
        )
        .collect()
}

/// A card of 100 Gbit/s as its driver leaves it: vectors and transmit queues on the node's CPUs by number.
fn mlx5(name: &str, bus: &str, node: i32, first: u32, queues: u32, near: &[u32]) -> Card {
    let address = format!("0000:{bus}:00.0");
    let port = Port::new(name, 100_000, queues as usize, queues as usize)
        .xps(
            near.iter()
                .cycle()
                .take(queues as usize)
                .map(|&cpu| vec![cpu]),
        )
        .channels([0, 0, 0, 63], [0, 0, 0, queues]);
    let queues = (0..queues).map(|queue| format!("mlx5_comp{queue}@pci:{address}"));
    Card::new(
        "mlx5_core",
        &format!("pci0000:{bus}/0000:{bus}:01.0"),
        &address,
        node,
        "16.0 GT/s PCIe",
        16,
    )
    .vectors(
        first,
        [format!("mlx5_async0@pci:{address}")],
        near,
        &near[..1],
    )
    .vectors(first + 1, queues, &[], near)
    .port(port)
}

/// A card of 10 or 25 Gbit/s as its driver leaves it: transmit queue k on CPU k.
fn intel(driver: &str, name: &str, address: &str, node: i32, first: u32, queues: u32) -> Card {
    let prefix = if driver == "ixgbe" {
        name.to_owned()
    } else {
        format!("{driver}-{name}")
    };
    let misc = if driver == "ixgbe" {
        name.to_owned()
    } else {
        format!("{driver}-{address}:misc")
    };
    let port = Port::new(name, 25_000, queues as usize, queues as usize)
        .xps((0..queues).map(|cpu| vec![cpu]))
        .channels([0, 0, 1, 64], [0, 0, 1, queues]);
    let names = (0..queues).map(|queue| format!("{prefix}-TxRx-{queue}"));
    let parent = format!("pci{}/{}:01.0", &address[..7], &address[..7]);
    Card::new(driver, &parent, address, node, "8.0 GT/s PCIe", 8)
        .vectors(first, [misc], &[0], &[0])
        .vectors(first + 1, names, &[], &(0..queues).collect::<Cpus>())
        .port(port)
}

fn two_cards() -> MachineSpec {
    let mut machine = MachineSpec::even(2, 16, 2, 16);
    let near = cpus("16-31,48-63");
    machine.cards.push(mlx5("ens1f0np0", "81", 1, 60, 8, &near));
    machine.cards.push(mlx5("ens2f0np0", "a1", 1, 70, 8, &near));
    machine
}

fn side_by_side() -> MachineSpec {
    let mut machine = MachineSpec::new(&["0-15", "16-31"]);
    machine.cores = machine.groups(|cpu| cpu / 2);
    machine
        .cards
        .push(intel("ixgbe", "eth0", "0000:81:00.0", 1, 40, 8));
    machine
}

fn many_caches() -> MachineSpec {
    let mut machine = MachineSpec::even(2, 32, 2, 32);
    // Four cores, eight CPUs.
    machine.l3 = machine.groups(|cpu| cpu % 64 / 4);
    machine
        .cards
        .push(mlx5("ens1f0np0", "81", 1, 60, 16, &cpus("32-63,96-127")));
    machine
}

fn sub_numa() -> MachineSpec {
    let mut machine = MachineSpec::even(4, 8, 2, 8);
    machine.set_distances(|from, to| match (from, to) {
        _ if from == to => 10,
        _ if from / 2 == to / 2 => 12,
        _ => 21,
    });
    machine.l3 = machine.groups(|cpu| cpu % 32 / 16);
    machine
        .cards
        .push(intel("ice", "ens3f0", "0000:98:00.0", 2, 120, 8));
    machine
}

fn node_unknown() -> MachineSpec {
    let mut machine = MachineSpec::even(2, 8, 2, 8);
    machine
        .cards
        .push(mlx5("ens1f0np0", "17", -1, 60, 8, &cpus("0-15")));
    machine
}

/// Node 2 has memory and a card; its CPUs are those of node 1, which is nearer to it than node 0.
fn node_without_cpus() -> MachineSpec {
    let mut machine = MachineSpec::new(&["0-7", "8-15", ""]);
    machine.set_distances(|from, to| match (from.min(to), from.max(to)) {
        _ if from == to => 10,
        (1, 2) => 17,
        _ => 28,
    });
    machine
        .cards
        .push(mlx5("ens1f0np0", "a1", 2, 60, 8, &cpus("0-7")));
    machine
}

fn isolated() -> MachineSpec {
    let mut machine = MachineSpec::even(2, 8, 2, 8);
    machine.isolated = cpus("8-11,24-27");
    machine
        .cards
        .push(mlx5("ens1f0np0", "81", 1, 60, 4, &cpus("8-15,24-31")));
    machine
}

/// Node 0 has the CPUs 0-1,3,5-7 left.
fn offline() -> MachineSpec {
    let mut machine = MachineSpec::new(&["0-7", "8-15"]);
    machine.online.retain(|cpu| ![2, 4].contains(cpu));
    machine
        .cards
        .push(mlx5("ens1f0np0", "17", 0, 60, 6, &cpus("0-1,3,5-7")));
    let mut card = intel("ixgbe", "eth0", "0000:81:00.0", 1, 40, 8);
    for (vector, cpu) in card.vectors.iter_mut().zip((8..16).cycle()) {
        (vector.allowed, vector.serving) = (vec![cpu], Some(cpu));
    }
    machine.cards.push(card);
    machine
}

fn more_queues_than_cores() -> MachineSpec {
    let mut machine = MachineSpec::even(2, 4, 2, 4);
    machine
        .cards
        .push(mlx5("ens1f0np0", "81", 1, 60, 12, &cpus("4-7,12-15")));
    machine
}

/// The last four queues were added later, and drew IRQ numbers that had been given back in between.
fn crossing_a_hundred() -> MachineSpec {
    let mut machine = MachineSpec::even(2, 12, 2, 12);
    let near = cpus("12-23,36-47");
    let mut card = mlx5("ens1f0np0", "81", 1, 90, 12, &near);
    for (vector, irq) in card
        .vectors
        .iter_mut()
        .skip(1)
        .zip((97..=104).chain(91..=94))
    {
        vector.irq = irq;
    }
    machine.cards.push(card);
    machine
}

fn two_ports() -> MachineSpec {
    let mut machine = MachineSpec::even(2, 16, 2, 16);
    for (port, first) in [(0, 60), (1, 70)] {
        let (name, address) = (format!("ens4f{port}"), format!("0000:81:00.{port}"));
        machine
            .cards
            .push(intel("ice", &name, &address, 1, first, 8));
    }
    machine
}

fn virtio() -> MachineSpec {
    let mut machine = MachineSpec::even(2, 8, 2, 8);
    let near = cpus("8-15,24-31");
    let names =
        (0..8).flat_map(|queue| ["input", "output"].map(|way| format!("virtio3-{way}.{queue}")));
    let port = Port::new("ens4", -1, 8, 8)
        .xps((0..8).map(|queue| (queue * 4..queue * 4 + 4).collect()))
        .channels([0, 0, 0, 8], [0, 0, 0, 8]);
    let mut card = Card::new(
        "virtio_net",
        "pci0000:80/0000:80:01.0",
        "0000:81:00.0",
        1,
        "",
        0,
    )
    .vectors(40, ["virtio3-config"], &near, &[8])
    .vectors(41, names, &near, &near)
    .port(port);
    card.virtio = Some(3);
    card.max_link = None;
    machine.cards.push(card);
    machine
}

fn gve() -> MachineSpec {
    let mut machine = MachineSpec::even(2, 8, 2, 8);
    let near = cpus("8-15,24-31");
    let names = (0..16).map(|block| format!("gve-ntfy-blk{block}@pci:0000:81:00.0"));
    let port = Port::new("ens5", 32_000, 8, 8).channels([16, 16, 0, 0], [8, 8, 0, 0]);
    let card = Card::new("gve", "pci0000:80/0000:80:01.0", "0000:81:00.0", 1, "", 0)
        .vectors(40, names, &near, &near)
        .vectors(56, ["gve-mgmnt@pci:0000:81:00.0"], &near, &[8])
        .port(port);
    machine.cards.push(Card {
        max_link: None,
        ..card
    });
    machine
}
