//! The rows: what is known of each driver, in the order of the table in `docs/kernels-and-drivers.md`. Read in the sources of
//! Linux 6.1 to 6.19 and of vendors' drivers, and tried in virtual machines as far as the page says.

use super::row::Driver;
use super::row::Fact::{
    AcceleratedRfs, ChannelVectors, ChannelsAlternate, FixedChannels, FixedRss, HintsAnywhere,
    MarksL4, PortsSharePool, PortsShareQueues, QueuesAndRdma, SteersTcp, SystemKey,
};
use super::row::Run::{Others, Queues};
use crate::machine::Role::{Combined, Rx, Tx};

/// The bare interface name, always or with but one vector.
const BARE: &[&str] = &["{if} = combined if alone"];

/// igb and its kin number queues, ixgbe and its kin vectors; the two differ where a vector has several.
const INTEL: &[&str] = &[
    "{if} = combined if alone",
    "{if}-{way}-{n}",
    "{if}-unused = control",
];

/// AEQCEQ also signals asynchronous events. Linux 6.1 and older give no number.
const IRDMA: &[&str] = &[
    "irdma{x} = control",
    "irdma-{x}-CEQ-{n} = rdma",
    "irdma-{x}-AEQCEQ-{n} = rdma",
    "CEQ{n} = rdma, cut 3",
    "AEQCEQ{n} = rdma, cut 6",
];

pub(super) static DRIVERS: &[Driver] = &[
    // The vectors that a function lends to its sub-functions (or has itself, as seen from there) carry queues, but none of
    // this interface.
    Driver {
        irqs: &[
            "mlx5_comp{n}@pci:{pci} = combined",
            "mlx5_combined{h}@pci:{pci} = combined",
            "mlx5_async{x}@pci:{pci} = control",
            "mlx5_{x}_eq@pci:{pci} = control",
            "mlx5_sf_{x}@pci:{pci} = control",
        ],
        examples: &[
            "mlx5_comp7@pci:0000:17:00.0 = combined 7",
            "mlx5_combined0@pci:0000:82:00.0 = combined",
            "mlx5_async63@pci:0000:82:00.0 = control",
            "mlx5_pages_eq@pci:0000:82:00.0 = control",
            "mlx5_sf_comp8@pci:0000:82:00.0 = control",
        ],
        page: [
            "channel",
            "kept",
            "kept (IRQs live until unload or devlink reload)",
            "rewritten at every change of channels",
        ],
        facts: &[
            AcceleratedRfs,
            QueuesAndRdma,
            ChannelVectors,
            ChannelsAlternate,
            MarksL4,
        ],
        // It has always had its devices make the hash symmetric, and reports that since 6.15.
        doubt: Some((
            Some((6, 15)),
            "before Linux 6.15, mlx5_core does not report how the device changes the hash's input",
        )),
        ..Driver::named("mlx5_core")
    },
    // The last of its names has a port, and a number of the port.
    Driver {
        irqs: &[
            "mlx4-{n}@{pci} = combined of mlx4",
            "{if}-{n} = combined",
            "{if}-rx-{n} = rx",
            "mlx4_core@pci:{pci} = combined",
            "mlx4-async@pci:{pci} = control",
            "mlx4-comp-{n}@pci:{pci} = rdma",
            "mlx4-ib-{h}-{n}@{x} = rdma by order",
        ],
        examples: &[
            "mlx4-3@0000:82:00.0 = combined 3",
            "eth2-0 = combined 0",
            "eth2-rx-0 = rx 0",
            "mlx4_core@pci:0000:82:00.0 = combined",
            "mlx4-async@pci:0000:07:00.0 = control",
            "mlx4-comp-0@pci:0000:07:00.0 = rdma 0",
            "mlx4-ib-1-0@0000:07:00.0 = rdma 0",
        ],
        page: [
            "from 1, divided among the ports",
            "kept",
            "kept (?)",
            "set by the driver",
        ],
        facts: &[AcceleratedRfs, QueuesAndRdma, PortsSharePool],
        on_bus: Some("mlx4_core"),
        ..Driver::named("mlx4_en")
    },
    // After the address: misc, and the vectors of the flow director, which look like queues.
    Driver {
        irqs: &["i40e-{if}-{way}-{n}", "i40e-{pci}:{x} = control"],
        rdma: IRDMA,
        examples: &[
            "i40e-ens1f0-TxRx-103 = combined 103",
            "i40e-ens1f0-rx-0 = rx 0",
            "i40e-ens1f0-tx-0 = tx 0",
            "i40e-0000:86:00.0:misc = control",
            "CEQ = rdma",
        ],
        page: [
            "queue",
            "kept (its hint spreads over all nodes)",
            "kept",
            "set once, again after reset",
        ],
        facts: &[HintsAnywhere, SteersTcp],
        ..Driver::named("i40e")
    },
    Driver {
        irqs: &["iavf-{if}-{way}-{n}", "iavf-{pci}:{x} = control"],
        rdma: IRDMA,
        examples: &[
            "iavf-ens3f0v13-TxRx-3 = combined 3",
            "iavf-eth0-rx-1 = rx 1",
            "iavf-eth0-tx-1 = tx 1",
            "iavf-0000:d8:03.5:mbx = control",
        ],
        page: [
            "queue (idpf: order)",
            "restored by the kernel from 6.15 (?); ice in 6.1 sets its own",
            "restored from 6.15 (?), before lost",
            "ice sets it once",
        ],
        facts: &[HintsAnywhere],
        ..Driver::named("iavf")
    },
    // With two numbers a vector has two queues; the first counts.
    Driver {
        irqs: &[
            "ice-{if}-TxRx-{n}-{h} = combined",
            "ice-{if}-{way}-{n}",
            "ice-{pci}:{x} = control",
        ],
        rdma: IRDMA,
        examples: &[
            "ice-ens2f1-TxRx-12 = combined 12",
            "ice-ens2f1-TxRx-0-1 = combined 0",
            "ice-eth0-rx-2 = rx 2",
            "ice-eth0-tx-2 = tx 2",
            "ice-0000:82:00.0:ll_ts = control",
            "irdma-0000:4b:00.0-CEQ-3 = rdma 3",
            "irdma-0000:4b:00.0-AEQ = control",
            "AEQCEQ = rdma",
        ],
        page: [
            "queue (idpf: order)",
            "restored by the kernel from 6.15 (?); ice in 6.1 sets its own",
            "restored from 6.15 (?), before lost",
            "ice sets it once",
        ],
        facts: &[AcceleratedRfs, HintsAnywhere],
        ..Driver::named("ice")
    },
    Driver {
        irqs: &[
            "idpf-{if}-{way}-{n} = by order",
            "idpf-Mailbox-{h} = control",
        ],
        rdma: IRDMA,
        examples: &[
            "idpf-eth0-TxRx-1 = combined 1",
            "idpf-eth0-Rx-4 = rx 4",
            "idpf-eth0-Tx-9 = tx 9",
            "idpf-Mailbox-0 = control",
            "irdma-0000:4b:00.0-AEQCEQ-0 = rdma 0",
        ],
        page: [
            "queue (idpf: order)",
            "restored by the kernel from 6.15 (?); ice in 6.1 sets its own",
            "restored from 6.15 (?), before lost",
            "ice sets it once",
        ],
        facts: &[HintsAnywhere],
        ..Driver::named("idpf")
    },
    Driver {
        irqs: INTEL,
        examples: &["eth2 = combined"],
        page: [
            "queue",
            "kept",
            "**lost** (ixgbevf: ?)",
            "ixgbe sets it once",
        ],
        facts: &[MarksL4, SteersTcp],
        ..Driver::named("ixgbe")
    },
    Driver {
        irqs: INTEL,
        examples: &["eth0-TxRx-0 = combined 0"],
        page: [
            "queue",
            "kept",
            "**lost** (ixgbevf: ?)",
            "ixgbe sets it once",
        ],
        facts: &[FixedRss],
        ..Driver::named("ixgbevf")
    },
    Driver {
        irqs: INTEL,
        examples: &["eth0-TxRx-7 = combined 7", "eth3-tx-3 = tx 3"],
        page: [
            "queue",
            "kept (igb: vm)",
            "**lost** (igb: vm; igc: ?)",
            "unchanged",
        ],
        facts: &[SystemKey],
        ..Driver::named("igb")
    },
    Driver {
        irqs: INTEL,
        examples: &["eno2-rx-0 = rx 0", "eth0-unused = control"],
        page: [
            "queue",
            "kept (igb: vm)",
            "**lost** (igb: vm; igc: ?)",
            "unchanged",
        ],
        ..Driver::named("igc")
    },
    Driver {
        irqs: &[
            "{if}-TxRx-{n} = combined, cut 17",
            "{if}-rx-{n} = rx by order, cut 17",
            "{if}-tx-{n} = tx by order, cut 17",
            "bnxt_re-nq-{n}@pci:{pci} = rdma",
            "bnxt_re-{x}@pci:{pci} = control",
            "bnxt_qplib_nq-{n} = rdma",
            "bnxt_qplib_{x} = control",
        ],
        examples: &[
            "eth0-TxRx-0 = combined 0",
            "eth0-rx-0 = rx 0",
            "eth0-tx-4 = tx 4",
            "bnxt_re-nq-0@pci:0000:65:00.0 = rdma 0",
            "bnxt_re-creq@pci:0000:65:00.0 = control",
            "bnxt_qplib_nq-1 = rdma 1",
            "bnxt_qplib_creq = control",
        ],
        page: [
            "receive: queue; transmit: order",
            "up to 6.12 sets its own; 6.18 only the hint",
            "lost if IRQs are replaced",
            "rewritten at every open",
        ],
        facts: &[AcceleratedRfs],
        ..Driver::named("bnxt_en")
    },
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "{if}-{way}-{n} = by order, cut 15",
            "{if}-{n} = combined of tg3",
        ],
        examples: &[
            "eth0-txrx-1 = combined 1",
            "eth0-rx-4 = rx 4",
            "eth0-tx-0 = tx 0",
            "eth0-0 = combined 0",
        ],
        page: [
            "from 1, IRQ 0 is link and transmit",
            "**lost**",
            "lost",
            "unchanged",
        ],
        ..Driver::named("tg3")
    },
    Driver {
        irqs: &["{if} = combined if alone", "{if}-{n} = combined"],
        examples: &["em1-3 = combined 3"],
        page: ["queue", "**lost**", "lost (?)", "unchanged"],
        ..Driver::named("bnx2")
    },
    Driver {
        irqs: &["{if} = combined if alone", "{if}-fp-{n} = combined"],
        examples: &["eth0-fp-0 = combined 0"],
        page: ["queue", "kept", "lost (?)", "unchanged"],
        ..Driver::named("bnx2x")
    },
    Driver {
        irqs: &[
            "{if}-fp-{n} = combined",
            "{h}:{h}.{h} = combined",
            "sp-{h}-{h}:{h}.{h} = control",
            "qedr{n}@pci:{pci} = rdma",
        ],
        examples: &[
            "eth0-fp-0 = combined 0",
            "82:00.01 = combined",
            "sp-0-82:00.00 = control",
            "qedr3@pci:0000:65:00.0 = rdma 3",
        ],
        page: ["queue", "kept", "lost (?)", "unchanged"],
        facts: &[AcceleratedRfs],
        ..Driver::named("qede")
    },
    Driver {
        irqs: &[
            "{if}-Tx-Rx-{n} = combined",
            "ena-mgmnt@pci:{pci} = control",
            "efa-comp{n}@pci:{pci} = rdma",
            "efa-{x}@pci:{pci} = control",
        ],
        examples: &[
            "ens5-Tx-Rx-3 = combined 3",
            "ena-mgmnt@pci:0000:00:05.0 = control",
        ],
        page: [
            "queue",
            "**sets its own** (`i % online CPUs`)",
            "the same",
            "unchanged",
        ],
        facts: &[HintsAnywhere],
        // They begin with another value and the other end of the key.
        doubt: Some((
            None,
            "devices of ena compute Toeplitz otherwise than it is defined",
        )),
        ..Driver::named("ena")
    },
    Driver {
        irqs: &[
            "gve-ntfy-blk{n}@pci:{pci} = combined of gve",
            "{if}-ntfy-block.{n} = combined of gve",
            "gve-mgmnt@pci:{pci} = control",
            "{if}-mgmnt = control",
        ],
        examples: &[
            "gve-ntfy-blk3@pci:0000:00:04.0 = combined 3",
            "eth0-ntfy-block.3 = combined 3",
            "gve-mgmnt@pci:0000:00:04.0 = control",
            "eth0-mgmnt = control",
        ],
        page: [
            "first half transmit, second half receive",
            "kept; sets its own when IRQs are allocated",
            "set again (?)",
            "set by the driver",
        ],
        ..Driver::named("gve gvnic")
    },
    // By MSI index, of which 0 is that of mana_hwc (series of 2026).
    Driver {
        irqs: &[
            "mana_q{n}@pci:{pci} = combined",
            "mana_msi{n}@pci:{pci} = combined by order",
            "mana_intr = combined if alone",
            "mana_hwc@pci:{pci} = control",
        ],
        examples: &[
            "mana_q0@pci:7870:00:00.0 = combined 0",
            "mana_msi16@pci:7870:00:00.0 = combined 16",
            "mana_intr = combined",
            "mana_hwc@pci:7870:00:00.0 = control",
        ],
        page: [
            "queue",
            "kept; sets its own when IRQs are allocated",
            "set again (?)",
            "unchanged",
        ],
        facts: &[PortsShareQueues],
        ..Driver::named("mana")
    },
    // The dot distinguishes a network queue from `virtio5-input`, a random number generator.
    Driver {
        irqs: &[
            "virtio{h}-input.{n} = rx",
            "virtio{h}-output.{n} = tx",
            "virtio{h}-virtqueues = combined",
            "virtio{h} = combined",
            "virtio{h}-config = control",
            "virtio{h}-control = control",
        ],
        examples: &[
            "virtio0-input.0 = rx 0",
            "virtio12-output.11 = tx 11",
            "virtio1-virtqueues = combined",
            "virtio3 = combined",
            "virtio0-config = control",
            "virtio0-control = control",
        ],
        page: [
            "input and output of a queue",
            "kept (vm)",
            "**lost**: IRQs, XPS and RPS of new queues (vm)",
            "rewritten with the affinities",
        ],
        facts: &[MarksL4],
        // It sends its key one byte late from 6.15 to 6.18, and in some releases of 6.12, too: the structure that it
        // sends has a byte of padding before it.
        doubt: Some((
            Some((6, 19)),
            "before Linux 6.19, virtio_net may give the device another RSS key than it reports",
        )),
        on_bus: Some("virtio-pci"),
        ..Driver::named("virtio_net")
    },
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "{if}-{way}-{n} = by order",
            "{if}-event-{h} = control",
        ],
        examples: &[
            "eth0-rxtx-0 = combined 0",
            "eth0-rx-4 = rx 4",
            "eth0-tx-0 = tx 0",
            "eth0-event-8 = control",
        ],
        page: ["order", "kept (vm)", "unsupported", "unchanged"],
        facts: &[FixedChannels],
        ..Driver::named("vmxnet3")
    },
    // Interface names of 11 characters and more leave no room for the queue.
    Driver {
        irqs: INTEL,
        examples: &["eth0-rx-0 = rx 0"],
        order: &[Queues(Rx), Queues(Tx), Others(1, 1)],
        page: ["receive, transmit", "kept (vm)", "one queue", "one queue"],
        facts: &[SystemKey],
        ..Driver::named("e1000e")
    },
    Driver {
        irqs: &[
            "hns3-{pci}-{way}-{n} = by order",
            "{if}-TxRx-{n} = combined by order",
            "hclge-misc-{pci} = control",
            "hclgevf-misc-{pci} = control",
            "hns-{pci}-ceq-{n} = rdma",
            "hns-ceq-{n} = rdma",
            "hns-{x} = control",
        ],
        examples: &[
            "hns3-0000:7d:00.0-TxRx-14 = combined 14",
            "hns3-0000:7d:00.0-Rx-0 = rx 0",
            "hns3-0000:7d:00.0-Tx-0 = tx 0",
            "eth0-TxRx-2 = combined 2",
            "hclge-misc-0000:7d:00.0 = control",
            "hclgevf-misc-0000:7d:01.0 = control",
            "hns-0000:7d:00.0-ceq-3 = rdma 3",
            "hns-ceq-2 = rdma 2",
            "hns-0000:7d:00.0-aeq-0 = control",
        ],
        page: [
            "order: counts by two",
            "kept; sets its own at reset",
            "set again",
            "set by the driver",
        ],
        facts: &[AcceleratedRfs],
        ..Driver::named("hns3")
    },
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "{if}-Rx{n} = rx",
            "{if}-FWeventq = control",
            "{if}-mirrorrxq{h} = control",
            "{if}-eorxq{h} = control",
            "{if}-iw_cxgb4{n} = rdma",
            "{if}-cxgb4i{h} = control",
        ],
        examples: &[
            "eth0-Rx0 = rx 0",
            "eth0-FWeventq = control",
            "eth0-mirrorrxq0 = control",
            "eth0-eorxq0 = control",
            "eth0-iw_cxgb40 = rdma 0",
            "eth0-cxgb4i3 = control",
        ],
        page: [
            "queue",
            "kept; set at probe or first open",
            "(?)",
            "liquidio sets it",
        ],
        ..Driver::named("cxgb4")
    },
    // Each XDP channel belongs to a CPU and is no queue of the interface.
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "{if}-{n} = combined",
            "{if}-{way}-{n}",
            "{if}-xdp-{h} = control",
            "{if}-ptp = control",
            "{if}-mae = control",
            "{if}-iov = control",
        ],
        examples: &[
            "eth0-0 = combined 0",
            "eth0-rx-0 = rx 0",
            "eth0-tx-0 = tx 0",
            "eth0-xdp-0 = control",
            "eth0-ptp = control",
            "eth0-iov = control",
        ],
        page: [
            "queue",
            "kept; set at probe or first open",
            "(?)",
            "liquidio sets it",
        ],
        facts: &[AcceleratedRfs],
        ..Driver::named("sfc sfc_falcon sfc_siena")
    },
    Driver {
        irqs: &[
            "LiquidIO{h}-{x}-rxtx-{n} = combined",
            "LiquidIO{h}-{x}-aux = control",
        ],
        examples: &[
            "LiquidIO0-pf0-rxtx-3 = combined 3",
            "LiquidIO0-pf0-aux = control",
        ],
        page: [
            "queue",
            "kept; set at probe or first open",
            "(?)",
            "liquidio sets it",
        ],
        ..Driver::named("LiquidIO LiquidIO_VF")
    },
    Driver {
        irqs: &["{if}-rxtx{n} = combined", "{if}-vfmsg{x} = control"],
        examples: &[
            "eth0-rxtx0 = combined 0",
            "eth0-vfmsg = control",
            "eth0-rxtx0 = combined 0",
        ],
        page: [
            "queue",
            "kept; set at probe or first open",
            "(?)",
            "liquidio sets it",
        ],
        ..Driver::named("fsl_enetc fsl_enetc_vf nxp_enetc4")
    },
    Driver {
        irqs: BARE,
        examples: &["eth0 = combined"],
        page: [
            "queue or order",
            "**sets its own**",
            "the same",
            "nicvf, mvpp2, fm10k set it",
        ],
        ..Driver::named("mvpp2")
    },
    Driver {
        irqs: INTEL,
        examples: &["eth0-TxRx-3 = combined 3"],
        page: [
            "queue or order",
            "**sets its own**",
            "the same",
            "nicvf, mvpp2, fm10k set it",
        ],
        ..Driver::named("fm10k")
    },
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "{if}-{way}-{n}",
            "{if}-unused = control",
            "{if}-pcs = control",
            "{if}-ecc = control",
            "{if}-i2c = control",
        ],
        examples: &[
            "eth0-TxRx-1 = combined 1",
            "eth0-pcs = control",
            "eth0-ecc = control",
            "eth0-i2c = control",
        ],
        page: [
            "queue or order",
            "**sets its own**",
            "the same",
            "nicvf, mvpp2, fm10k set it",
        ],
        ..Driver::named("amd-xgbe")
    },
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "{if}-{n} = combined",
            "{if}-{way}-{n}",
            "{if}-xdp-{h} = control",
            "{if}-ptp = control",
            "{if}-mae = control",
            "{if}-iov = control",
        ],
        examples: &["eth0-mae = control"],
        page: [
            "queue or order",
            "**sets its own**",
            "the same",
            "nicvf, mvpp2, fm10k set it",
        ],
        facts: &[AcceleratedRfs],
        ..Driver::named("sfc_ef100")
    },
    Driver {
        irqs: &[
            "{if}-TxRx-{n} = combined, cut 17",
            "{if}-rx-{n} = rx by order, cut 17",
            "{if}-tx-{n} = tx by order, cut 17",
            "bnxt_re-nq-{n}@pci:{pci} = rdma",
            "bnxt_re-{x}@pci:{pci} = control",
            "bnxt_qplib_nq-{n} = rdma",
            "bnxt_qplib_{x} = control",
        ],
        examples: &["eth0-TxRx-0 = combined 0"],
        page: [
            "queue or order",
            "**sets its own**",
            "the same",
            "nicvf, mvpp2, fm10k set it",
        ],
        ..Driver::named("bnge")
    },
    Driver {
        irqs: &[
            "{if}_{way}q{n}",
            "{if}_qp{n} = combined",
            "hinic{x}_aeq{h}@pci:{pci} = control",
            "hinic{x}_ceq{h}@pci:{pci} = control",
        ],
        examples: &[
            "eth0_rxq0 = rx 0",
            "eth0_txq0 = tx 0",
            "hinic_ceq0@pci:0000:82:00.0 = control",
            "eth0_qp0 = combined 0",
            "hinic3_aeq1@pci:0000:82:00.0 = control",
        ],
        page: [
            "queue or order",
            "**sets its own**",
            "the same",
            "nicvf, mvpp2, fm10k set it",
        ],
        ..Driver::named("hinic hinic3")
    },
    Driver {
        irqs: &[
            "{if}-rxtx-{n} = combined",
            "{if}-sq-{h} = control",
            "{if}-rbdr-{h} = control",
            "{if}-qset-err-{h} = control",
            "NICVF Mbox = control",
        ],
        examples: &[
            "eth0-rxtx-0 = combined 0",
            "eth0-sq-0 = control",
            "eth0-rbdr-0 = control",
            "eth0-qset-err-0 = control",
            "NICVF Mbox = control",
        ],
        page: [
            "queue or order",
            "**sets its own**",
            "the same",
            "nicvf, mvpp2, fm10k set it",
        ],
        ..Driver::named("nicvf thunder-nicvf")
    },
    Driver {
        irqs: &[
            "{if}-rxtx-{n} = combined",
            "{if}-qerr = control",
            "RVU{x} = control",
        ],
        examples: &[
            "eth0-rxtx-7 = combined 7",
            "RVUPF0 AFPF Mbox = control",
            "eth0-qerr = control",
        ],
        page: [
            "queue or order",
            "**sets its own**",
            "the same",
            "nicvf, mvpp2, fm10k set it",
        ],
        ..Driver::named("rvu_nicpf rvu_nicvf")
    },
    Driver {
        irqs: &["{if}-q{n} = combined", "{if}-epf_{x} = control"],
        examples: &["eth0-q2 = combined 2", "eth0-epf_mbox_rint0 = control"],
        page: [
            "queue or order",
            "**sets its own**",
            "the same",
            "nicvf, mvpp2, fm10k set it",
        ],
        ..Driver::named("octeon_ep octeon_ep_vf")
    },
    Driver {
        irqs: &[
            "ionic-{if}-L{h}-rx{n} = combined or rx",
            "ionic-{if}-L{h}-tx{n} = tx",
            "ionic-{x}-L{h}-admin{x} = control",
            "ionic-{x}-L{h}-notif{x} = control",
            "ionic-{x}-L{h}-hwst{x} = control",
            "pds_core-{x} = control",
        ],
        examples: &[
            "ionic-eth0-L0-rx0 = combined 0",
            "ionic-eth0-L0-tx15 = tx 15",
            "ionic-0000:b5:00.0-L0-admin = control",
            "ionic-0000:b5:00.0-L0-notif = control",
            "ionic-eth0-L0-hwsta = control",
            "pds_core-0-adminq = control",
        ],
        page: [
            "queue or order",
            "**sets its own**",
            "the same",
            "nicvf, mvpp2, fm10k set it",
        ],
        ..Driver::named("ionic")
    },
    Driver {
        irqs: &[
            "{if}-{way}-{n}",
            "{pci}-adminq = control",
            "{pci}-q[{h}] = control",
        ],
        examples: &[
            "eth0-rx-0 = rx 0",
            "eth0-tx-0 = tx 0",
            "0000:01:00.0-adminq = control",
            "0000:01:00.0-q[2] = control",
        ],
        page: [
            "queue or order",
            "**sets its own**",
            "the same",
            "nicvf, mvpp2, fm10k set it",
        ],
        ..Driver::named("funeth")
    },
    // stmmac, with a driver name a board.
    Driver {
        examples: &["eth0:rx-0 = rx 0", "eth0:mac = control", "eth0:tx-3 = tx 3"],
        page: [
            "queue or order",
            "**sets its own**",
            "the same",
            "nicvf, mvpp2, fm10k set it",
        ],
        ..Driver::named("dwc-eth-dwmac rk_gmac-dwmac stmmaceth intel-eth-pci")
    },
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "{if}-q{n} = combined",
            "ocrdma{h}-{n} = rdma",
        ],
        examples: &["eth0-q5 = combined 5", "ocrdma0-1 = rdma 1"],
        page: [
            "queue",
            "kept; only a hint",
            "(?); enic: unsupported",
            "set by the driver",
        ],
        ..Driver::named("be2net")
    },
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "{if}-{way}-{n}",
            "{if}-err = control",
            "{if}-notify = control",
        ],
        examples: &[
            "eth0-rx-0 = rx 0",
            "eth0-tx-0 = tx 0",
            "eth0-err = control",
            "eth0-notify = control",
        ],
        page: [
            "queue",
            "kept; only a hint",
            "(?); enic: unsupported",
            "set by the driver",
        ],
        facts: &[AcceleratedRfs, FixedChannels],
        ..Driver::named("enic")
    },
    Driver {
        irqs: &[
            "{if}-rxtx-{n} = combined",
            "{if}-lsc = control",
            "{if}-exn = control",
        ],
        examples: &[
            "eth0-rxtx-0 = combined 0",
            "eth0-lsc = control",
            "eth0-exn = control",
        ],
        page: [
            "queue",
            "kept; only a hint",
            "(?); enic: unsupported",
            "set by the driver",
        ],
        ..Driver::named("nfp nfp_netvf")
    },
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
    // The first for all else.
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
    // The vendor's driver, from RTL8125B on; it names even a single vector so.
    Driver {
        irqs: &["{if} = combined if alone", "{if}-{n} = combined of r8125"],
        examples: &["eth0-16 = combined 16"],
        page: ["receive: queue; 16, 18 transmit", "(?)", "(?)", "unchanged"],
        ..Driver::named("r8125")
    },
    Driver {
        irqs: BARE,
        examples: &["enp6s0 = combined"],
        page: ["mostly one IRQ", "kept (?)", "one queue", "one queue"],
        ..Driver::named("e1000 macb r8169")
    },
    Driver {
        irqs: &["{h}.ethernet = combined if alone"],
        examples: &["30be0000.ethernet = combined"],
        page: ["mostly one IRQ", "kept (?)", "one queue", "one queue"],
        ..Driver::named("fec")
    },
    Driver {
        irqs: BARE,
        examples: &["eth0 = combined"],
        page: [
            "per-CPU interrupts: cannot be moved",
            "",
            "",
            "set by the driver",
        ],
        ..Driver::named("mvneta")
    },
    Driver {
        examples: &[],
        page: ["no IRQs: VMBus channels, unchanged", "", "", ""],
        ..Driver::named("hv_netvsc")
    },
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "{if}-TxRx-{n} = combined by order",
            "txgbe-link-irq = control",
        ],
        examples: &["eth0-TxRx-1 = combined 1"],
        page: [
            "order",
            "kernel-managed in 6.18: cannot be moved",
            "",
            "unchanged",
        ],
        ..Driver::named("ngbe ngbevf txgbevf")
    },
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "{if}-TxRx-{n} = combined by order",
            "txgbe-link-irq = control",
        ],
        examples: &["eth0-TxRx-5 = combined 5", "txgbe-link-irq = control"],
        page: [
            "order",
            "kernel-managed in 6.18: cannot be moved",
            "",
            "unchanged",
        ],
        facts: &[SteersTcp],
        ..Driver::named("txgbe")
    },
    Driver {
        irqs: BARE,
        examples: &["eth0 = combined"],
        ..Driver::named("8139cp 8139too b44 bcmgenet bgmac-enet gem ibmveth tn40xx")
    },
    // The vendor's others: what transmits depends on the revision of RTL8126.
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
        irqs: &["{if} = combined if alone", "{if}:slice-{n} = combined"],
        examples: &["eth0 = combined", "eth0:slice-3 = combined 3"],
        ..Driver::named("myri10ge")
    },
    // The first vector has all transmit queues, and alarms.
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "{if}:MSI-X-{n}-RX = rx by order",
            "{if}:MSI-X-{h}-TX = tx",
        ],
        examples: &[
            "eth0 = combined",
            "eth0:MSI-X-1-RX = rx 1",
            "eth0:MSI-X-0-TX = tx",
        ],
        ..Driver::named("S2IO")
    },
    Driver {
        irqs: &["hibmcge-{pci}-{way}", "hibmcge-{pci}-err = control"],
        examples: &[
            "hibmcge-0000:84:00.0-tx = tx",
            "hibmcge-0000:84:00.0-rx = rx",
            "hibmcge-0000:84:00.0-err = control",
        ],
        ..Driver::named("hibmcge")
    },
    // Best effort is queue 0, network control queue 1.
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "{x}:ch{n}:rx_be = rx by order",
            "{x}:ch{n}:rx_nc = rx by order",
            "{x}:ch{n}:tx_be = tx by order",
            "{x}:ch{n}:tx_nc = tx by order",
            "{x}:ch{h}:multi = control",
            "{x}:ch{h}:emac = control",
            "{x}:err_a = control",
            "{x}:mgmt_a = control",
        ],
        examples: &[
            "eth0 = combined",
            "e6800000.ethernet:ch0:rx_be = rx 0",
            "e6800000.ethernet:ch1:rx_nc = rx 1",
            "e6800000.ethernet:ch18:tx_be = tx 18",
            "e6800000.ethernet:ch19:tx_nc = tx 19",
            "e6800000.ethernet:ch22:multi = control",
            "e6800000.ethernet:ch24:emac = control",
            "e6800000.ethernet:err_a = control",
            "e6800000.ethernet:mgmt_a = control",
        ],
        ..Driver::named("ravb")
    },
    Driver {
        irqs: &["{x}-eth-tx{n} = tx", "{x}-eth = rx"],
        examples: &["icssg1-eth-tx3 = tx 3", "icssg1-eth = rx"],
        ..Driver::named("icssg-prueth icssg-prueth-sr1")
    },
    // The handler of the last one does nothing.
    Driver {
        irqs: &[
            "mlxbf_gige_rx = rx",
            "mlxbf_gige_error = control",
            "mlxbf_gige_llu_plu = control",
        ],
        examples: &[
            "mlxbf_gige_rx = rx",
            "mlxbf_gige_error = control",
            "mlxbf_gige_llu_plu = control",
        ],
        ..Driver::named("mlxbf_gige")
    },
    // By DMA or, without it, by registers.
    Driver {
        irqs: &[
            "fdma irq = combined",
            "frame extraction = rx",
            "ana irq = control",
            "ptp irq = control",
            "ptp-ext irq = control",
        ],
        examples: &[
            "fdma irq = combined",
            "frame extraction = rx",
            "ana irq = control",
            "ptp irq = control",
            "ptp-ext irq = control",
        ],
        ..Driver::named("lan966x-switch")
    },
    Driver {
        irqs: &["fs_enet-mac = combined"],
        examples: &["fs_enet-mac = combined"],
        ..Driver::named("fs_enet")
    },
    Driver {
        irqs: &["Korina ethernet {way}"],
        examples: &["Korina ethernet Rx = rx", "Korina ethernet Tx = tx"],
        ..Driver::named("korina")
    },
    // Qualcomm's SDK for routers: rings are numbered over all ports, and one name is of older chips.
    Driver {
        irqs: &[
            "edma_rxdesc_{n} = rx by order",
            "edma_rxdesc{n} = rx by order",
            "edma_rxdesc = rx",
            "edma_txcmpl_{n} = tx by order",
            "edma_txcmpl{n} = tx by order",
            "edma_txcmpl = tx",
            "edma_rxfill{x} = control",
            "edma_misc = control",
        ],
        examples: &[
            "edma_rxdesc_20 = rx 20",
            "edma_rxdesc15 = rx 15",
            "edma_rxdesc = rx",
            "edma_txcmpl_8 = tx 8",
            "edma_txcmpl23 = tx 23",
            "edma_txcmpl = tx",
            "edma_rxfill = control",
            "edma_misc = control",
        ],
        ..Driver::named("nss-dp")
    },
    // Queues of Wi-Fi are none of the stack's.
    Driver {
        irqs: &[
            "iwlwifi = combined if alone",
            "iwlwifi:exception = control",
            "iwlwifi:{x} = data",
        ],
        examples: &[
            "iwlwifi = combined",
            "iwlwifi:exception = control",
            "iwlwifi:queue_2 = data",
        ],
        ..Driver::named("iwlwifi")
    },
    // The words of others' control vectors are in its names.
    Driver {
        irqs: &["ppdu-end-interrupts-mac{h} = data"],
        examples: &["ppdu-end-interrupts-mac1 = data"],
        ..Driver::named("ath11k")
    },
    Driver {
        irqs: INTEL,
        examples: &["eth0-TxRx-0 = combined 0"],
        ..Driver::named("alx")
    },
    Driver {
        irqs: INTEL,
        examples: &["eth0-TxRx-0 = combined 0"],
        facts: &[FixedChannels],
        ..Driver::named("dwc-xlgmac")
    },
    Driver {
        irqs: INTEL,
        examples: &["eth0-tx-0 = tx 0"],
        order: &[Queues(Tx), Queues(Rx), Others(1, 1)],
        ..Driver::named("igbvf")
    },
    Driver {
        irqs: &["{if} = combined if alone", "{if}-{n} = combined by order"],
        examples: &["eth1-4 = combined 4"],
        ..Driver::named("cxgb3")
    },
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "{if}-TxRx-{n} = combined",
            "{if}-Tx-{n} = tx",
            "{pci} = control",
        ],
        examples: &[
            "eth0-TxRx-2 = combined 2",
            "eth0-Tx-9 = tx 9",
            "0000:01:00.0 = control",
        ],
        ..Driver::named("fbnic")
    },
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "{if}-{way}-{n}",
            "{if}:MAC = control",
            "{if}:MIF = control",
            "{if}:SYSERR = control",
        ],
        examples: &[
            "eth0-rx-0 = rx 0",
            "eth0-tx-0 = tx 0",
            "eth0:MAC = control",
            "eth0:MIF = control",
            "eth0:SYSERR = control",
        ],
        ..Driver::named("niu")
    },
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "vif{h}-q{n}-{way}",
            "{if}-q{n}-{way}",
            "{if}-{way}",
        ],
        examples: &[
            "vif0-q1-rx = rx 1",
            "vif0-q1-tx = tx 1",
            "eth0-q3-rx = rx 3",
            "eth0-q3-tx = tx 3",
            "eth0-rx = rx",
            "eth0-tx = tx",
        ],
        ..Driver::named("vif")
    },
    // The name of iavf before Linux 4.20.
    Driver {
        irqs: &["i40evf-{if}-{way}-{n}", "i40evf-{pci}:{x} = control"],
        examples: &[
            "i40evf-enp94s2f1-TxRx-3 = combined 3",
            "i40evf-eth0-rx-1 = rx 1",
            "i40evf-eth0-tx-1 = tx 1",
            "i40evf-0000:5e:0a.1:mbx = control",
        ],
        facts: &[HintsAnywhere],
        ..Driver::named("i40evf")
    },
    Driver {
        irqs: &[
            "ice-{if}-TxRx-{n}-{h} = combined",
            "ice-{if}-{way}-{n}",
            "ice-{pci}:{x} = control",
        ],
        examples: &["ice-eth0-TxRx-0 = combined 0"],
        ..Driver::named("ice.sf")
    },
    Driver {
        irqs: &[
            "mlx5_sf_comp{n}@pci:{pci} = combined by order",
            "mlx5_sf_ctrl{h}@pci:{pci} = control",
            "mlx5_comp{h}@pci:{pci} = control",
            "mlx5_async{x}@pci:{pci} = control",
        ],
        examples: &[
            "mlx5_sf_comp8@pci:0000:82:00.0 = combined 8",
            "mlx5_sf_ctrl0@pci:0000:82:00.0 = control",
            "mlx5_comp7@pci:0000:82:00.0 = control",
            "mlx5_async0@pci:0000:82:00.0 = control",
        ],
        ..Driver::named("mlx5_core.sf")
    },
    Driver {
        irqs: &[
            "efa-comp{n}@pci:{pci} = rdma",
            "efa-{x}@pci:{pci} = control",
        ],
        examples: &[
            "efa-comp0@pci:0000:00:06.0 = rdma 0",
            "efa-mgmnt@pci:0000:00:06.0 = control",
        ],
        ..Driver::named("efa")
    },
    Driver {
        irqs: &[
            "erdma-ceq{n}@pci:{pci} = rdma",
            "erdma-common@pci:{pci} = control",
        ],
        examples: &[
            "erdma-ceq7@pci:0000:00:07.0 = rdma 7",
            "erdma-common@pci:0000:00:07.0 = control",
        ],
        ..Driver::named("erdma")
    },
    Driver {
        irqs: &["ibmvnic-{h}-{way}{n}", "ibmvnic-{h} = control"],
        examples: &[
            "ibmvnic-30000003-rx0 = rx 0",
            "ibmvnic-3000000a-tx1 = tx 1",
            "ibmvnic-30000003 = control",
        ],
        ..Driver::named("ibmvnic")
    },
    Driver {
        irqs: &["{if}-{way}{n}"],
        examples: &["eth0-rx15 = rx 15", "eth0-tx0 = tx 0"],
        facts: &[FixedChannels],
        ..Driver::named("hns-nic")
    },
    Driver {
        irqs: &["{if}-{n} = combined", "{if}-FWeventq = control"],
        examples: &["eth0-1 = combined 1"],
        ..Driver::named("cxgb4vf")
    },
    // The last receive ring shares its vector with transmit ring 0.
    Driver {
        irqs: &[
            "{if}-rx-{n} = rx",
            "{if}-tx-0-rx-{n} = rx",
            "{if}-tx-{n} = tx",
            "qlcnic = combined",
            "qlcnic-MB = control",
        ],
        examples: &[
            "eth0-rx-0 = rx 0",
            "eth0-tx-0-rx-3 = rx 3",
            "eth0-tx-1 = tx 1",
            "qlcnic = combined",
            "qlcnic-MB = control",
        ],
        ..Driver::named("qlcnic")
    },
    Driver {
        irqs: &["{if}[{n}] = combined"],
        examples: &["eth0[0] = combined 0"],
        ..Driver::named("netxen_nic")
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
    Driver {
        irqs: &["pds_core-{x} = control"],
        examples: &["pds_core-0-adminq = control"],
        ..Driver::named("pds_core")
    },
    Driver {
        irqs: &["dpio.{h} = control", "dpni.{h} = control"],
        examples: &["dpio.7 = control", "dpni.1 = control"],
        facts: &[FixedChannels],
        ..Driver::named("fsl_dpaa2_eth")
    },
    // A portal belongs to a CPU and serves every interface there.
    Driver {
        irqs: &["QMan portal {h} = control"],
        examples: &["QMan portal 0 = control"],
        ..Driver::named("fsl_dpa")
    },
    Driver {
        irqs: &["{if}_g{n}_{way}", "{if}_g{h}_er = control"],
        examples: &[
            "eth0_g0_rx = rx 0",
            "eth0_g1_tx = tx 1",
            "eth0_g0_er = control",
        ],
        ..Driver::named("fsl-gianfar")
    },
    Driver {
        irqs: &["{h}.ethernet = combined if alone"],
        examples: &["15100000.ethernet = combined"],
        facts: &[PortsShareQueues],
        ..Driver::named("mtk_soc_eth")
    },
    Driver {
        irqs: &["{h}.ethernet = combined if alone"],
        examples: &["9c00000.ethernet = combined"],
        ..Driver::named("brcm-asp2")
    },
    Driver {
        irqs: &["netsec = combined"],
        examples: &["netsec = combined"],
        ..Driver::named("netsec")
    },
    // With one receive flow it has the device's bare name.
    Driver {
        irqs: &["{x}-{way}{n}", "{h}.ethernet = rx"],
        examples: &[
            "8000000.ethernet-rx0 = rx 0",
            "8000000.ethernet-tx7 = tx 7",
            "8000000.ethernet = rx",
        ],
        ..Driver::named("am65-cpsw-nuss")
    },
    Driver {
        irqs: &[
            "{if}-rx-{n} = rx",
            "{if}-txc-{n} = tx",
            "{if}-rx-txc = combined",
        ],
        examples: &[
            "eth0-rx-0 = rx 0",
            "eth0-txc-0 = tx 0",
            "eth0-rx-txc = combined",
        ],
        ..Driver::named("xgene-enet")
    },
    // The vector of the MAC also has queue 0.
    Driver {
        irqs: &["{if}-txrx-{n} = combined", "{if}-mac = combined"],
        examples: &["eth0-txrx-1 = combined 1", "eth0-mac = combined"],
        facts: &[FixedChannels],
        ..Driver::named("tsnep")
    },
    // The first vector has no number, and queue 0.
    Driver {
        irqs: &["{if}_int{n} = combined", "{if} = combined"],
        examples: &["eth0 = combined", "eth0_int1 = combined 1"],
        ..Driver::named("rtase")
    },
    Driver {
        irqs: &["rswitch: gwca{h}_rxts{h} = control"],
        examples: &["rswitch: gwca0_rxts0 = control"],
        ..Driver::named("renesas_eth_sw")
    },
    Driver {
        irqs: &["{if}-queue{n} = combined", "{if}-aff = control"],
        examples: &["eth0-queue0 = combined 0", "eth0-aff = control"],
        ..Driver::named("ehea")
    },
    Driver {
        irqs: &[
            "{if} CQ {n} = rx by order",
            "{if} TXQ {n} = tx by order",
            "bna = control",
        ],
        examples: &["eth0 CQ 0 = rx 0", "eth0 TXQ 0 = tx 0", "bna = control"],
        ..Driver::named("bna")
    },
    Driver {
        examples: &[],
        facts: &[FixedChannels],
        ..Driver::named("sam_sxgbeeth")
    },
    // Drivers that no other row names: their numbers may begin anywhere. After the interface's, the names of platform devices.
    Driver {
        irqs: &[
            "{if}{sep}{way}{sep}{n} = by order",
            "{if}{sep}{way}{n} = by order",
            "{if}{sep}{way}q{n} = by order",
            "{if}{sep}{way}",
            "{h}.{x}{sep}{way}{sep}{n} = by order",
            "{h}.{x}{sep}{way}{n} = by order",
            "{h}.{x}{sep}{way}q{n} = by order",
            "{h}.{x}{sep}{way}",
            "{if} = combined if alone",
            "{ctl} = control",
        ],
        examples: &[
            "eth0-rx = rx",
            "eth0 tx = tx",
            "eth0-other = control",
            "c080000.ethernet:rxq4 = rx 4",
            "c080000.ethernet:txq12 = tx 12",
            "c080000.ethernet-rx2 = rx 2",
            "c080000.ethernet-tx2 = tx 2",
            "c080000.ethernet-rx-2 = rx 2",
            "c080000.ethernet-tx-2 = tx 2",
            "c080000.ethernet-rx = rx",
            "c080000.ethernet-tx = tx",
            "eth0-rxq1 = rx 1",
            "eth0-txq1 = tx 1",
            "eth0_rxtxq1 = combined 1",
            "eth0:rx3 = rx 3",
            "eth0.tx3 = tx 3",
            "eth0_rxtx3 = combined 3",
            "eth0-TxRx-0 = combined 0",
            "ens5-Tx-Rx-0 = combined 0",
            "eth0-rxtx-2 = combined 2",
            "eth0-txrx-2 = combined 2",
            "eth0-rx-1 = rx 1",
            "eth0-tx-1 = tx 1",
            "enp1s0 = combined",
        ],
        ..Driver::named("")
    },
];
