use super::alike::{BARE, INTEL, ONE_IRQ};
use crate::drivers::row::Driver;
use crate::drivers::row::OrderPart::{Others, Queues};
use crate::machine::Role::{Combined, Rx, Tx};

const ONE_NAME: [&str; 4] = [
    "all IRQs have one name: order",
    "kept (?)",
    "(?)",
    "unchanged",
];

pub(super) const DRIVERS: &[Driver] = &[
    // A vector for each pair of queues; after them link, PTP and (the vendor's driver) GPIO.
    Driver::new("atlantic", BARE, &[])
        .order(&[Queues(Combined), Others(0, 3)])
        .page(ONE_NAME),
    // The first vector serves all else.
    Driver::new("lan743x", &["lan743x = combined if alone"], &[])
        .order(&[Others(1, 1), Queues(Tx), Queues(Rx)])
        .page(ONE_NAME),
    // The vendor's driver, from RTL8125B on; even a single vector has such a name. RTL8125B is assumed where the chip's
    // revision is not read; RTL8125D is known, RTL8125BP and RTL8125CP are not.
    Driver::new(
        "r8125",
        &["{if} = combined if alone", "{if}-{n} = combined of r8125"],
        &["eth0-16 = combined 16"],
    )
    .page(["receive: queue; 16, 18 transmit", "(?)", "(?)", "unchanged"]),
    // The vendor's other drivers: which vectors transmit depends on the revision of RTL8126.
    Driver::new(
        "r8126 r8168",
        &["{if} = combined if alone", "{if}-{n} = combined of r8126"],
        &["enp3s0-0 = combined 0"],
    ),
    Driver::new(
        "r8127",
        &["{if} = combined if alone", "{if}-{n} = combined of r8127"],
        &["enp3s0-8 = combined 8"],
    ),
    Driver::new("e1000 r8169", BARE, &[]).page(ONE_IRQ),
    // An IRQ for each queue, requested in their order (macb_main.c:4272).
    Driver::new("macb", BARE, &[])
        .order(&[Queues(Combined)])
        .page(ONE_IRQ),
    Driver::new(
        "8139cp 8139too b44 bcmgenet bgmac-enet gem ibmveth tn40xx",
        BARE,
        &[],
    ),
    Driver::new("alx", INTEL, &[]),
    // The first vector has no number, and queue 0.
    Driver::new(
        "rtase",
        &["{if}_int{n} = combined", "{if} = combined"],
        &["eth0 = combined", "eth0_int1 = combined 1"],
    ),
    Driver::new(
        "sky2",
        &["sky2@pci:{pci} = combined"],
        &["sky2@pci:0000:02:00.0 = combined"],
    ),
    Driver::new(
        "skge",
        &["skge@pci:{pci} = combined"],
        &["skge@pci:0000:05:00.0 = combined"],
    ),
];
