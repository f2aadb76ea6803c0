use super::alike::{INTEL, IRDMA, SETS_ITS_OWN};
use crate::drivers::row::Driver;
use crate::drivers::row::Fact::{
    AcceleratedRfs, FixedRss, HintsAnywhere, MarksL4, QueuesWrap, SteersTcp, SystemKey,
};
use crate::drivers::row::OrderPart::{Others, Queues};
use crate::machine::Role::{Rx, Tx};

const ICE: &[&str] = &[
    "ice-{if}-TxRx-{n}-{h} = combined",
    "ice-{if}-{way}-{n}",
    "ice-{pci}:{x} = control",
];

const RESTORED: [&str; 4] = [
    "queue (idpf: order)",
    "restored by the kernel from 6.15 (?); ice in 6.1 sets its own",
    "restored from 6.15 (?), before lost",
    "ice sets it once",
];
const IXGBE: [&str; 4] = [
    "queue",
    "kept",
    "**lost** (ixgbevf: ?)",
    "ixgbe sets it once",
];
const IGB: [&str; 4] = [
    "queue",
    "kept (igb: vm)",
    "**lost** (igb: vm; igc: ?)",
    "unchanged",
];

pub(super) const DRIVERS: &[Driver] = &[
    // After the address: misc, and the vectors of the flow director, whose names look like those of queues.
    Driver::new(
        "i40e",
        &["i40e-{if}-{way}-{n}", "i40e-{pci}:{x} = control"],
        &["i40e-ens1f0-TxRx-103 = combined 103", "CEQ = rdma"],
    )
    .rdma(IRDMA)
    .page([
        "queue",
        "kept (its hint spreads over all nodes)",
        "kept",
        "set once, again after reset",
    ])
    .facts(&[HintsAnywhere, SteersTcp]),
    Driver::new(
        "iavf",
        &["iavf-{if}-{way}-{n}", "iavf-{pci}:{x} = control"],
        &["iavf-ens3f0v13-TxRx-3 = combined 3"],
    )
    .rdma(IRDMA)
    .page(RESTORED)
    .facts(&[HintsAnywhere]),
    // With two numbers, a vector has two queues; the first counts.
    Driver::new(
        "ice",
        ICE,
        &[
            "ice-ens2f1-TxRx-12 = combined 12",
            "ice-ens2f1-TxRx-0-1 = combined 0",
            "AEQCEQ = rdma",
        ],
    )
    .rdma(IRDMA)
    .page(RESTORED)
    .facts(&[AcceleratedRfs, HintsAnywhere]),
    Driver::new(
        "idpf",
        &[
            "idpf-{if}-{way}-{n} = by order",
            "idpf-Mailbox-{h} = control",
        ],
        &["idpf-eth0-TxRx-1 = combined 1", "idpf-eth0-Rx-4 = rx 4"],
    )
    .rdma(IRDMA)
    .page(RESTORED)
    .facts(&[HintsAnywhere]),
    Driver::new("ixgbe", INTEL, &["eth2 = combined"])
        .page(IXGBE)
        .facts(&[MarksL4, QueuesWrap, SteersTcp]),
    Driver::new("ixgbevf", INTEL, &[])
        .page(IXGBE)
        .facts(&[FixedRss]),
    Driver::new("igb", INTEL, &["eth0-TxRx-7 = combined 7"])
        .page(IGB)
        .facts(&[SystemKey]),
    Driver::new("igc", INTEL, &["eno2-rx-0 = rx 0"]).page(IGB),
    // Interface names of 11 characters and more leave no room for the queue.
    Driver::new("e1000e", INTEL, &[])
        .order(&[Queues(Rx), Queues(Tx), Others(1, 1)])
        .page(["receive, transmit", "kept (vm)", "one queue", "one queue"])
        .facts(&[SystemKey]),
    Driver::new("fm10k", INTEL, &[]).page(SETS_ITS_OWN),
    Driver::new("igbvf", INTEL, &[]).order(&[Queues(Tx), Queues(Rx), Others(1, 1)]),
    // The name of iavf before Linux 4.20.
    Driver::new(
        "i40evf",
        &["i40evf-{if}-{way}-{n}", "i40evf-{pci}:{x} = control"],
        &["i40evf-enp94s2f1-TxRx-3 = combined 3"],
    )
    .facts(&[HintsAnywhere]),
    Driver::new("ice.sf", ICE, &[]),
];
