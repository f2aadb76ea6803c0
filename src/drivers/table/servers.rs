//! Drivers of other server cards.

use crate::drivers::row::Driver;
use crate::drivers::row::Fact::{AcceleratedRfs, FixedChannels, ManagedIrqs, SteersTcp};

pub(super) const DRIVERS: &[Driver] = &[
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
        irqs: &["{if}-{way}{n}"],
        examples: &["eth0-rx15 = rx 15", "eth0-tx0 = tx 0"],
        facts: &[FixedChannels],
        ..Driver::named("hns-nic")
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
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "{if}-Rx{n} = rx",
            "{if}-FWeventq = control",
            "{if}-mirrorrxq{h} = control",
            "{if}-eorxq{h} = control",
            "{if}-iw_cxgb4{n} = rdma",
            "{if}-cxgb4i{h} = control",
            "{if}-cxgbit{h} = control",
            "{if}-ch{x} = control",
        ],
        examples: &[
            "eth0-Rx0 = rx 0",
            "eth0-FWeventq = control",
            "eth0-mirrorrxq0 = control",
            "eth0-eorxq0 = control",
            "eth0-iw_cxgb40 = rdma 0",
            "eth0-cxgb4i3 = control",
            "eth0-cxgbit0 = control",
            "eth0-chcr0 = control",
        ],
        page: [
            "queue",
            "kept; set at probe or first open",
            "(?)",
            "liquidio sets it",
        ],
        ..Driver::named("cxgb4")
    },
    Driver {
        irqs: &["{if}-{n} = combined", "{if}-FWeventq = control"],
        examples: &["eth0-1 = combined 1"],
        ..Driver::named("cxgb4vf")
    },
    Driver {
        irqs: &["{if} = combined if alone", "{if}-{n} = combined by order"],
        examples: &["eth1-4 = combined 4"],
        ..Driver::named("cxgb3")
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
            "nicvf, fm10k set it",
        ],
        facts: &[AcceleratedRfs],
        ..Driver::named("sfc_ef100")
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
            "nicvf, fm10k set it",
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
            "nicvf, fm10k set it",
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
            "nicvf, fm10k set it",
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
            "nicvf, fm10k set it",
        ],
        ..Driver::named("octeon_ep octeon_ep_vf")
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
        facts: &[ManagedIrqs],
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
        facts: &[ManagedIrqs, SteersTcp],
        ..Driver::named("txgbe")
    },
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "{if}-{way}-{n}",
            "{if}:MAC = combined if alone",
            "{if}:MIF = control",
            "{if}:SYSERR = control",
        ],
        examples: &[
            "eth0-rx-0 = rx 0",
            "eth0-tx-0 = tx 0",
            "eth0:MAC = combined",
            "eth0:MIF = control",
            "eth0:SYSERR = control",
        ],
        ..Driver::named("niu")
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
    // The MAC's vector also has queue 0.
    Driver {
        irqs: &["{if}-txrx-{n} = combined", "{if}-mac = combined"],
        examples: &["eth0-txrx-1 = combined 1", "eth0-mac = combined"],
        facts: &[FixedChannels],
        ..Driver::named("tsnep")
    },
];
