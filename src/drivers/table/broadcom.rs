//! Drivers of Broadcom and related ones: qlogic, netxen, brocade.

use super::alike::SETS_ITS_OWN;
use crate::drivers::row::Driver;
use crate::drivers::row::Fact::AcceleratedRfs;

const BNXT: &[&str] = &[
    "{if}-TxRx-{n} = combined, cut 17",
    "{if}-rx-{n} = rx by order, cut 17",
    "{if}-tx-{n} = tx by order, cut 17",
    "bnxt_re-nq-{n}@pci:{pci} = rdma",
    "bnxt_re-{x}@pci:{pci} = control",
    "bng_re-{x}@pci:{pci} = control",
    "bnxt_qplib_nq-{n} = rdma",
    "bnxt_qplib_{x} = control",
];

const KEPT: [&str; 4] = ["queue", "kept", "lost (?)", "unchanged"];

pub(super) const DRIVERS: &[Driver] = &[
    Driver::new("bnxt_en", BNXT, &["eth0-TxRx-0 = combined 0"])
        .page([
            "receive: queue; transmit: order",
            "up to 6.12 sets its own; 6.18 only the hint",
            "lost if IRQs are replaced",
            "rewritten at every open",
        ])
        .facts(&[AcceleratedRfs]),
    Driver::new("bnge bng_en", BNXT, &[]).page(SETS_ITS_OWN),
    Driver::new(
        "tg3",
        &[
            "{if} = combined if alone",
            "{if}-{way}-{n} = by order, cut 15",
            "{if}-{n} = combined of tg3",
        ],
        &["eth0-txrx-1 = combined 1"],
    )
    .page([
        "from 1, IRQ 0 is link and transmit",
        "**lost**",
        "lost",
        "unchanged",
    ]),
    Driver::new(
        "bnx2",
        &[
            "{if} = combined if alone",
            "{if}-{n} = combined",
            "cnic = control",
        ],
        &["em1-3 = combined 3"],
    )
    .page(["queue", "**lost**", "lost (?)", "unchanged"]),
    Driver::new(
        "bnx2x",
        &[
            "{if} = combined if alone",
            "{if}-fp-{n} = combined",
            "cnic = control",
        ],
        &["eth0-fp-0 = combined 0"],
    )
    .page(KEPT),
    Driver::new(
        "qede",
        &[
            "{if}-fp-{n} = combined of qede",
            "{h}:{h}.{h} = combined",
            "sp-{h}-{h}:{h}.{h} = control",
            "qedr{n}@pci:{pci} = rdma",
        ],
        &[
            "eth0-fp-0 = combined 0",
            "82:00.01 = combined",
            "sp-0-82:00.00 = control",
        ],
    )
    .page(KEPT)
    .facts(&[AcceleratedRfs]),
    // The last receive ring shares its vector with transmit ring 0.
    Driver::new(
        "qlcnic",
        &[
            "{if}-rx-{n} = rx",
            "{if}-tx-0-rx-{n} = rx",
            "{if}-tx-{n} = tx",
            "qlcnic = combined",
            "qlcnic-MB = control",
        ],
        &["eth0-rx-0 = rx 0", "eth0-tx-0-rx-3 = rx 3"],
    ),
    Driver::new(
        "netxen_nic",
        &["{if}[{n}] = combined"],
        &["eth0[0] = combined 0"],
    ),
    Driver::new(
        "bna",
        &[
            "{if} CQ {n} = rx by order",
            "{if} TXQ {n} = tx by order",
            "bna = control",
        ],
        &["eth0 CQ 0 = rx 0"],
    ),
];
