//! Drivers of virtual machines: paravirtual ones, and functions that clouds and big machines lend.

use super::alike::SETS_ITS_OWN;
use crate::drivers::row::Driver;
use crate::drivers::row::Fact::{
    FixedChannels, HintsAnywhere, MarksL4, PicksTxQueue, PortsShareQueues,
};

const EFA: &[&str] = &[
    "efa-comp{n}@pci:{pci} = rdma",
    "efa-{x}@pci:{pci} = control",
];

pub(super) const DRIVERS: &[Driver] = &[
    Driver::new(
        "ena",
        &["{if}-Tx-Rx-{n} = combined", "ena-mgmnt@pci:{pci} = control"],
        &["ens5-Tx-Rx-3 = combined 3"],
    )
    .rdma(EFA)
    .page([
        "queue",
        "**sets its own** (`i % online CPUs`)",
        "the same",
        "unchanged",
    ])
    .facts(&[HintsAnywhere])
    // Its devices begin with another value and the other end of the key.
    .doubt(
        None,
        "devices of ena compute Toeplitz otherwise than it is defined",
    ),
    Driver::new(
        "gve gvnic",
        &[
            "gve-ntfy-blk{n}@pci:{pci} = combined of gve",
            "{if}-ntfy-block.{n} = combined of gve",
            "gve-mgmnt@pci:{pci} = control",
            "{if}-mgmnt = control",
        ],
        &["gve-ntfy-blk3@pci:0000:00:04.0 = combined 3"],
    )
    .page([
        "first half transmit, second half receive",
        "kept; sets its own when IRQs are allocated",
        "set again (?)",
        "set by the driver",
    ]),
    // Numbered by MSI index, of which 0 is mana_hwc (series of 2026); several ports then have vectors of their own, or
    // share them.
    Driver::new(
        "mana",
        &[
            "mana_q{n}@pci:{pci} = combined",
            "mana_msi{n}@pci:{pci} = combined by order",
            "mana_intr = combined if alone",
            "mana_hwc@pci:{pci} = control",
        ],
        &["mana_q0@pci:7870:00:00.0 = combined 0"],
    )
    .page([
        "queue",
        "kept; sets its own when IRQs are allocated",
        "set again (?)",
        "unchanged",
    ])
    .facts(&[PortsShareQueues]),
    // The dot distinguishes a network queue from `virtio5-input`, a random number generator.
    Driver::new(
        "virtio_net",
        &[
            "virtio{h}-input.{n} = rx",
            "virtio{h}-output.{n} = tx",
            "virtio{h}-virtqueues = combined",
            "virtio{h} = combined",
            "{x}-vq-{n} = combined of vdpa",
            "virtio{h}-config = control",
            "virtio{h}-control = control",
            "virtio{h}-avq.{h} = control",
        ],
        &["virtio0-input.0 = rx 0", "virtio3 = combined"],
    )
    .page([
        "input and output of a queue",
        "kept (vm)",
        "**lost**: IRQs, XPS and RPS of new queues (vm)",
        "rewritten with the affinities",
    ])
    .facts(&[MarksL4])
    // virtio_net sends its key one byte late from 6.15 to 6.18 and in some releases of 6.12: the structure has a
    // byte of padding before the key.
    .doubt(
        Some((6, 19)),
        "before Linux 6.19, virtio_net may give the device another RSS key than it reports",
    )
    .bus_driver("virtio-pci"),
    Driver::new(
        "vmxnet3",
        &[
            "{if} = combined if alone",
            "{if}-{way}-{n} = by order",
            "{if}-event-{h} = control",
        ],
        &["eth0-rxtx-0 = combined 0"],
    )
    .page(["order", "kept (vm)", "unsupported", "unchanged"])
    .facts(&[FixedChannels]),
    Driver::new("hv_netvsc", &[], &[]).page(["no IRQs: VMBus channels, unchanged", "", "", ""]),
    // Both ends; the end that serves a guest names its vectors by what the guest does (xen-netback/interface.c:758).
    Driver::new(
        "vif",
        &[
            "{if} = combined if alone",
            "vif{h}-q{n}-{way}",
            "vif{h}.{h}-q{n}-tx = rx",
            "vif{h}.{h}-q{n}-rx = tx",
            "xen-netback-ctrl = control",
            "{if}-q{n}-{way}",
            "{if}-q{n} = combined",
            "{if}-{way}",
        ],
        &["vif0-q1-rx = rx 1", "vif2.0-q1-tx = rx 1"],
    )
    .facts(&[PicksTxQueue]),
    Driver::new(
        "ionic",
        &[
            "ionic-{if}-L{h}-rx{n} = combined or rx",
            "ionic-{if}-L{h}-tx{n} = tx",
            "ionic-{x}-L{h}-admin{x} = control",
            "ionic-{x}-L{h}-notif{x} = control",
            "ionic-{x}-L{h}-hwst{x} = control",
            "ionr-{h}-{n}-eq = rdma by order",
            "pds_core-{x} = control",
        ],
        &["ionic-eth0-L0-rx0 = combined 0"],
    )
    .page(SETS_ITS_OWN),
    // The device has equal numbers of receive and transmit queues (`eea_pci_request_irq`).
    Driver::new(
        "alibaba_eea",
        &["eea-q{n}@{pci} = combined", "eea-ha@{pci} = control"],
        &["eea-q3@0000:00:05.0 = combined 3"],
    ),
    Driver::new(
        "pds_core",
        &["pds_core-{x} = control"],
        &["pds_core-0-adminq = control"],
    ),
    Driver::new(
        "ibmvnic",
        &["ibmvnic-{h}-{way}{n}", "ibmvnic-{h} = control"],
        &["ibmvnic-30000003-rx0 = rx 0"],
    ),
    Driver::new(
        "ehea",
        &["{if}-queue{n} = combined", "{if}-aff = control"],
        &["eth0-queue0 = combined 0"],
    ),
    // With vectors for one direction, receiving vectors have the higher numbers; in newer kernels (7.3) both have the same
    // name (`fbnic_napi_name_irqs`, `fbnic_alloc_napi_vectors`).
    Driver::new(
        "fbnic",
        &[
            "{if} = combined if alone",
            "{if}-TxRx-{n} = combined or rx by order",
            "{if}-Tx-{n} = tx by order",
            "{pci} = control",
        ],
        &["eth0-TxRx-2 = combined 2"],
    ),
    Driver::new(
        "funeth",
        &[
            "{if}-{way}-{n}",
            "{pci}-adminq = control",
            "{pci}-q[{h}] = control",
        ],
        &["eth0-rx-0 = rx 0"],
    )
    .page(SETS_ITS_OWN),
    Driver::new("efa", EFA, &["efa-comp0@pci:0000:00:06.0 = rdma 0"]),
    Driver::new(
        "erdma",
        &[
            "erdma-ceq{n}@pci:{pci} = rdma",
            "erdma-common@pci:{pci} = control",
        ],
        &["erdma-ceq7@pci:0000:00:07.0 = rdma 7"],
    ),
];
