//! The machines of `fixtures/` that are built.

use std::ops::Range;

use super::machine::{Card, Cpus, Kernel, MachineSpec, Port, cpus};

/// Each machine has the name of its directory.
pub fn all() -> Vec<(&'static str, MachineSpec)> {
    vec![
        ("dl980", dl980()),
        ("tg3-and-ixgbe", tg3_and_ixgbe()),
        ("two-socket-mlx4", two_socket_mlx4()),
        ("x460", x460()),
    ]
}

/// Two sockets of six cores without SMT. A 40 Gbit/s interface is on node 1 and all its interrupts arrive on node 0; a
/// gigabit interface of the board is on node 0.
pub fn two_socket_mlx4() -> MachineSpec {
    let mut machine = MachineSpec::new(&["0-5", "6-11"]);
    machine.kernel = Kernel::V4_2;
    machine.remapping = true;
    machine.irq_digits = 4;
    machine.set_distances(|from, to| if from == to { 10 } else { 21 });

    let onboard = Port::new("eth0", 1000, 4, 4).channels([0, 0, 1, 4], [0, 0, 1, 4]);
    machine.cards.push(
        Card::new(
            "igb",
            "pci0000:00/0000:00:1c.0",
            "0000:01:00.0",
            0,
            "2.5 GT/s PCIe",
            1,
        )
        .port(onboard)
        .vectors(64, ["eth0"], &cpus("0-5"), &[1])
        .vectors(
            65,
            numbered("eth0-TxRx-", 0..4, ""),
            &cpus("0-5"),
            &[2, 3, 4, 5],
        ),
    );

    // The driver sets XPS of each transmit queue to a CPU of the device's node.
    let fast = Port::new("eth2", 40_000, 6, 6)
        .xps((6..12).map(|cpu| vec![cpu]))
        .channels([12, 12, 0, 0], [6, 6, 0, 0]);
    machine.cards.push(
        Card::new(
            "mlx4_core",
            "pci0000:80/0000:80:02.0",
            "0000:82:00.0",
            1,
            "8.0 GT/s PCIe",
            8,
        )
        .port(fast)
        .vectors(70, ["mlx4-async@pci:0000:82:00.0"], &cpus("0-11"), &[0])
        .vectors(
            71,
            numbered("mlx4-", 1..7, "@0000:82:00.0"),
            &cpus("0-11"),
            &[0, 0, 3, 0, 0, 5],
        ),
    );
    machine
}

/// Four nodes of sixteen CPUs, siblings with adjacent numbers, two L3 domains per node. Two gigabit interfaces per
/// node,
/// each with one line of an I/O APIC; all interrupts arrive on node 0.
pub fn x460() -> MachineSpec {
    let mut machine = MachineSpec::new(&["0-15", "16-31", "32-47", "48-63"]);
    machine.kernel = Kernel::V2_6;
    machine.cores = machine.groups(|cpu| cpu / 2);
    machine.l3 = machine.groups(|cpu| cpu / 8);
    for port in 0..8 {
        let node = port / 2;
        let bus = 2 + 0x10 * node;
        let (parent, address) = (
            format!("pci0000:{bus:02x}"),
            format!("0000:{bus:02x}:01.{}", port % 2),
        );
        let name = format!("eth{port}");
        let node = i32::try_from(node).unwrap();
        let mut card = Card::new("tg3", &parent, &address, node, "", 0)
            .port(Port::new(&name, 1000, 1, 1))
            .vectors(177 + 8 * port, [name], &cpus("0-63"), &[2 * port]);
        // PCI-X, and a kernel that does not use MSI on it.
        card.max_link = None;
        card.msi = false;
        machine.cards.push(card);
    }
    machine
}

/// Twelve cores on one node: a gigabit card with four receive queues, one transmit queue and five vectors, and
/// a ten gigabit card with a queue for each core.
pub fn tg3_and_ixgbe() -> MachineSpec {
    let mut machine = MachineSpec::new(&["0-11"]);
    machine.kernel = Kernel::V3;
    machine.remapping = true;

    let slow = Port::new("em1", 1000, 4, 1).channels([4, 4, 0, 0], [4, 1, 0, 0]);
    machine.cards.push(
        Card::new(
            "tg3",
            "pci0000:00/0000:00:1c.4",
            "0000:02:00.0",
            0,
            "2.5 GT/s PCIe",
            2,
        )
        .port(slow)
        .vectors(48, numbered("em1-", 0..5, ""), &cpus("0-11"), &[0]),
    );

    // The driver sets XPS of transmit queue k to CPU k.
    let fast = Port::new("p6p1", 10_000, 12, 12)
        .xps((0..12).map(|cpu| vec![cpu]))
        .channels([0, 0, 1, 63], [0, 0, 1, 12]);
    machine.cards.push(
        Card::new(
            "ixgbe",
            "pci0000:00/0000:00:03.0",
            "0000:06:00.0",
            0,
            "5.0 GT/s PCIe",
            8,
        )
        .port(fast)
        .vectors(
            53,
            numbered("p6p1-TxRx-", 0..12, ""),
            &cpus("0-11"),
            &cpus("0-5"),
        )
        .vectors(65, ["p6p1"], &cpus("0-11"), &[0]),
    );
    machine
}

/// Eight sockets of eight cores with SMT, CPU n and n + 64 on one core, in pairs and quads by distance. Four
/// cards on four of the nodes, in four states: local but on both threads of its cores (ixgbe, two ports),
/// spread as its hint says, which heeds no node (i40e), placed well by its driver (mlx5), and all on the first
/// CPUs of node 0 (bnx2x).
#[allow(clippy::too_many_lines)] // a table, or a story in one piece
pub fn dl980() -> MachineSpec {
    let nodes: Vec<String> = (0..8)
        .map(|n| format!("{}-{},{}-{}", 8 * n, 8 * n + 7, 64 + 8 * n, 71 + 8 * n))
        .collect();
    let local = |node: usize| -> Cpus { cpus(&nodes[node]) };
    let mut machine = MachineSpec::new(&nodes.iter().map(String::as_str).collect::<Vec<_>>());
    machine.kernel = Kernel::V6_2;
    machine.remapping = true;
    machine.irq_digits = 4;
    machine.nohz_full = Some(vec![]);
    machine.cores = machine.groups(|cpu| cpu % 64);
    machine.set_distances(|from, to| match (from, to) {
        _ if from == to => 10,
        _ if from / 2 == to / 2 => 12,
        _ if from / 4 == to / 4 => 17,
        _ => 19,
    });

    for (port, first) in [(0, 85), (1, 102)] {
        let (name, address) = (format!("eth{port}"), format!("0000:0b:00.{port}"));
        let xps = (0..16).map(|cpu| vec![cpu]);
        let queues = numbered(&format!("{name}-TxRx-"), 0..16, "");
        machine.cards.push(
            Card::new(
                "ixgbe",
                "pci0000:00/0000:00:07.0",
                &address,
                0,
                "5.0 GT/s PCIe",
                8,
            )
            .port(
                Port::new(&name, 10_000, 16, 16)
                    .xps(xps)
                    .channels([0, 0, 1, 63], [0, 0, 1, 16]),
            )
            .vectors(first, queues, &local(0), &local(0))
            .vectors(first + 16, [name], &local(0), &[0]),
        );
    }

    let xps = (0..8).map(|cpu| vec![cpu]);
    machine.cards.push(
        Card::new(
            "i40e",
            "pci0000:50/0000:50:03.0",
            "0000:54:00.0",
            2,
            "8.0 GT/s PCIe",
            8,
        )
        .port(
            Port::new("eth2", 10_000, 8, 8)
                .xps(xps)
                .channels([0, 0, 1, 64], [0, 0, 1, 8]),
        )
        .vectors(120, ["i40e-0000:54:00.0:misc"], &cpus("0-127"), &[0])
        .vectors(
            121,
            numbered("i40e-eth2-TxRx-", 0..8, ""),
            &[],
            &cpus("0-7"),
        )
        .vectors(129, ["i40e-0000:54:00.0:fdir-TxRx-0"], &local(2), &[16]),
    );

    let xps = local(5).into_iter().map(|cpu| vec![cpu]);
    machine.cards.push(
        Card::new(
            "mlx5_core",
            "pci0000:90/0000:90:05.0",
            "0000:94:00.0",
            5,
            "8.0 GT/s PCIe",
            16,
        )
        .port(
            Port::new("eth3", 100_000, 16, 16)
                .xps(xps)
                .channels([0, 0, 0, 63], [0, 0, 0, 16]),
        )
        .vectors(130, ["mlx5_async0@pci:0000:94:00.0"], &cpus("0-127"), &[0])
        .vectors(
            131,
            numbered("mlx5_comp", 0..16, "@pci:0000:94:00.0"),
            &[],
            &local(5),
        ),
    );

    machine.cards.push(
        Card::new(
            "bnx2x",
            "pci0000:d0/0000:d0:07.0",
            "0000:d3:00.0",
            7,
            "5.0 GT/s PCIe",
            8,
        )
        .port(Port::new("eth4", 10_000, 4, 4).channels([0, 0, 0, 8], [0, 0, 0, 4]))
        .vectors(147, ["eth4"], &cpus("0-127"), &[0])
        .vectors(
            148,
            numbered("eth4-fp-", 0..4, ""),
            &cpus("0-127"),
            &cpus("1-4"),
        ),
    );
    machine
}

/// 112 CPUs dealt to two nodes by turns, CPU n and n + 56 on one core, and ten interfaces: four ports of ice, each with
/// 112 queues and RDMA, two of them with interrupts on both nodes; two ports of mlx5 with 63 queues; four virtual
/// functions. Shipped as `server.tar.gz`, since a tree would be thousands of files.
#[allow(clippy::too_many_lines)] // a table, or a story in one piece
pub fn server() -> MachineSpec {
    let list = |first: u32| {
        (first..112)
            .step_by(2)
            .map(|cpu| cpu.to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    let mut machine = MachineSpec::new(&[&list(0), &list(1)]);
    machine.kernel = Kernel::V4_2;
    machine.remapping = true;
    machine.irq_digits = 4;
    machine.cores = machine.groups(|cpu| cpu % 56);
    machine.set_distances(|from, to| if from == to { 10 } else { 21 });
    let local = |node: usize| cpus(&list(u32::try_from(node).unwrap()));
    let all = cpus("0-111");
    let mut first = 200;
    let mut next = |vectors: u32| {
        first += vectors;
        first - vectors
    };

    for (bus, root, node) in [("31", "30", 0), ("b1", "b0", 1)] {
        for port in 0..2 {
            let address = format!("0000:{bus}:00.{port}");
            let name = format!("ens{}f{port}", if node == 0 { 1 } else { 3 });
            let serving = if node == 0 { local(0) } else { all.clone() };
            let parent = format!("pci0000:{root}/0000:{root}:02.0");
            let netdev = Port::new(&name, 25_000, 112, 112)
                .xps((0..112).map(|cpu| vec![cpu]))
                .channels([112, 112, 1, 112], [0, 0, 1, 112]);
            machine.cards.push(
                Card::new(
                    "ice",
                    &parent,
                    &address,
                    i32::try_from(node).unwrap(),
                    "16.0 GT/s PCIe",
                    16,
                )
                .port(netdev)
                .vectors(
                    next(1),
                    [format!("ice-{address}:misc")],
                    &local(node),
                    &local(node)[..1],
                )
                .vectors(
                    next(112),
                    numbered(&format!("ice-{name}-TxRx-"), 0..112, ""),
                    &local(node),
                    &serving,
                )
                .vectors(next(1), [format!("irdma-{address}-AEQ")], &all, &[0])
                .vectors(
                    next(112),
                    numbered(&format!("irdma-{address}-CEQ-"), 0..112, ""),
                    &[],
                    &all,
                ),
            );
        }
    }
    for port in 0..2 {
        let address = format!("0000:19:00.{port}");
        let netdev = Port::new(&format!("enp25s0f{port}"), 100_000, 63, 63)
            .xps((0..63).map(|queue| vec![2 * queue % 112]))
            .channels([0, 0, 0, 63], [0, 0, 0, 63]);
        machine.cards.push(
            Card::new(
                "mlx5_core",
                "pci0000:17/0000:17:00.0",
                &address,
                0,
                "8.0 GT/s PCIe",
                16,
            )
            .port(netdev)
            .vectors(next(1), [format!("mlx5_async@pci:{address}")], &all, &[0])
            .vectors(
                next(63),
                numbered("mlx5_comp", 0..63, &format!("@pci:{address}")),
                &[],
                &local(0),
            ),
        );
    }
    for function in 0..4 {
        let address = format!("0000:31:02.{function}");
        let name = format!("ens1f0v{function}");
        let mut card = Card::new(
            "iavf",
            "pci0000:30/0000:30:02.0",
            &address,
            0,
            "16.0 GT/s PCIe",
            16,
        )
        .port(Port::new(&name, 25_000, 4, 4).channels([0, 0, 1, 4], [0, 0, 1, 4]))
        .vectors(next(1), [format!("iavf-{address}:mbx")], &local(0), &[2])
        .vectors(
            next(4),
            numbered(&format!("iavf-{name}-TxRx-"), 0..4, ""),
            &local(0),
            &local(0),
        );
        card.physical = Some("0000:31:00.0".to_owned());
        machine.cards.push(card);
    }
    machine
}

/// Makes names such as `eth0-TxRx-0`, `eth0-TxRx-1`.
fn numbered(before: &str, numbers: Range<u32>, after: &str) -> Vec<String> {
    numbers
        .map(|number| format!("{before}{number}{after}"))
        .collect()
}
