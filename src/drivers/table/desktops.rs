//! Drivers of small hosts.

use super::alike::{BARE, INTEL};
use crate::drivers::row::Driver;
use crate::drivers::row::OrderPart::{Others, Queues};
use crate::machine::Role::{Combined, Rx, Tx};

pub(super) const DRIVERS: &[Driver] = &[
    // A vector for each pair of queues; after them link, PTP and (the vendor's driver) GPIO.
    Driver {
        irqs: BARE,
        examples: &["eth0 = combined"],
        order: &[Queues(Combined), Others(0, 3)],
        page: [
            "all IRQs have one name: order",
            "kept (?)",
            "(?)",
            "unchanged",
        ],
        ..Driver::named("atlantic")
    },
    // The first vector serves all else.
    Driver {
        irqs: &["lan743x = combined if alone"],
        examples: &["lan743x = combined"],
        order: &[Others(1, 1), Queues(Tx), Queues(Rx)],
        page: [
            "all IRQs have one name: order",
            "kept (?)",
            "(?)",
            "unchanged",
        ],
        ..Driver::named("lan743x")
    },
    // The vendor's driver, from RTL8125B on; even a single vector has such a name. Without the chip's revision read as
    // RTL8125B; that of RTL8125D is known, of RTL8125BP and RTL8125CP it is not.
    Driver {
        irqs: &["{if} = combined if alone", "{if}-{n} = combined of r8125"],
        examples: &["eth0-16 = combined 16"],
        page: ["receive: queue; 16, 18 transmit", "(?)", "(?)", "unchanged"],
        ..Driver::named("r8125")
    },
    // The vendor's other drivers: which vectors transmit depends on the revision of RTL8126.
    Driver {
        irqs: &["{if} = combined if alone", "{if}-{n} = combined of r8126"],
        examples: &["enp3s0-0 = combined 0"],
        ..Driver::named("r8126 r8168")
    },
    Driver {
        irqs: &["{if} = combined if alone", "{if}-{n} = combined of r8127"],
        examples: &["enp3s0-8 = combined 8"],
        ..Driver::named("r8127")
    },
    Driver {
        irqs: BARE,
        examples: &["enp6s0 = combined"],
        page: ["mostly one IRQ", "kept (?)", "one queue", "one queue"],
        ..Driver::named("e1000 r8169")
    },
    // An IRQ for each queue, requested in their order (macb_main.c:4272).
    Driver {
        irqs: BARE,
        examples: &["eth0 = combined"],
        order: &[Queues(Combined)],
        page: ["mostly one IRQ", "kept (?)", "one queue", "one queue"],
        ..Driver::named("macb")
    },
    Driver {
        irqs: BARE,
        examples: &["eth0 = combined"],
        ..Driver::named("8139cp 8139too b44 bcmgenet bgmac-enet gem ibmveth tn40xx")
    },
    Driver {
        irqs: INTEL,
        examples: &["eth0-TxRx-0 = combined 0"],
        ..Driver::named("alx")
    },
    // The first vector has no number, and queue 0.
    Driver {
        irqs: &["{if}_int{n} = combined", "{if} = combined"],
        examples: &["eth0 = combined", "eth0_int1 = combined 1"],
        ..Driver::named("rtase")
    },
    Driver {
        irqs: &["sky2@pci:{pci} = combined"],
        examples: &["sky2@pci:0000:02:00.0 = combined"],
        ..Driver::named("sky2")
    },
    Driver {
        irqs: &["skge@pci:{pci} = combined"],
        examples: &["skge@pci:0000:05:00.0 = combined"],
        ..Driver::named("skge")
    },
];
