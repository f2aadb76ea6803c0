use super::alike::SETS_ITS_OWN;
use crate::drivers::row::Driver;
use crate::drivers::row::Fact::{
    AcceleratedRfs, FixedChannels, ManagedIrqs, QueuesOnFunctions, QueuesWrap, SteersTcp,
};

const SFC: &[&str] = &[
    "{if} = combined if alone",
    "{if}-{n} = combined",
    "{if}-{way}-{n}",
    "{if}-xdp-{h} = control",
    "{if}-ptp = control",
    "{if}-mae = control",
    "{if}-iov = control",
];
const TXGBE: &[&str] = &[
    "{if} = combined if alone",
    "{if}-TxRx-{n} = combined by order",
    "txgbe-{x} = control",
];

const SETS_AT_PROBE: [&str; 4] = [
    "queue",
    "kept; set at probe or first open",
    "(?)",
    "liquidio sets it",
];
const ONLY_A_HINT: [&str; 4] = [
    "queue",
    "kept; only a hint",
    "(?); enic: unsupported",
    "set by the driver",
];
const MANAGED: [&str; 4] = [
    "order",
    "kernel-managed in 6.18: cannot be moved",
    "",
    "unchanged",
];

pub(super) const DRIVERS: &[Driver] = &[
    Driver::new(
        "hns3",
        &[
            "hns3-{pci}-{way}-{n} = by order",
            "{if}-TxRx-{n} = combined by order",
            "hclge-misc-{pci} = control",
            "hclgevf-misc-{pci} = control",
            "hns-{pci}-ceq-{n} = rdma",
            "hns-ceq-{n} = rdma",
            "hns-{x} = control",
        ],
        &["hns3-0000:7d:00.0-TxRx-14 = combined 14"],
    )
    .page([
        "order: counts by two",
        "kept; sets its own at reset",
        "set again",
        "set by the driver",
    ])
    .facts(&[AcceleratedRfs, QueuesWrap]),
    Driver::new("hns-nic", &["{if}-{way}{n}"], &["eth0-rx15 = rx 15"]).facts(&[FixedChannels]),
    // The second form of names is that of vendors' and distributions' kernels.
    Driver::new(
        "nbl nbl_core",
        &[
            "nbl_txrx{n}@pci:{pci} = combined",
            "NBL{h}-TxRx-{n} = combined",
            "nbl_mailbox@pci:{pci} = control",
            "nbl_abnormal@pci:{pci} = control",
            "nbl_adminq@pci:{pci} = control",
        ],
        &[
            "nbl_txrx3@pci:0000:17:00.0 = combined 3",
            "NBL012-TxRx-07 = combined 7",
        ],
    ),
    Driver::new(
        "xsc-pci",
        &[
            "xsc_comp{n}@pci:{pci} = combined",
            "xsc_cmd@pci:{pci} = control",
            "xsc_async_eq@pci:{pci} = control",
            "xsc_eth_event@pci:{pci} = control",
        ],
        &["xsc_comp7@pci:0000:b3:00.0 = combined 7"],
    ),
    Driver::new(
        "hibmcge",
        &["hibmcge-{pci}-{way}", "hibmcge-{pci}-err = control"],
        &["hibmcge-0000:84:00.0-tx = tx"],
    ),
    Driver::new(
        "cxgb4",
        &[
            "{if} = combined if alone",
            "{if}-Rx{n} = rx",
            "{if} (queue {n}) = rx",
            "{if}-FWeventq = control",
            "{if}-traceq{h} = control",
            "{if}-ma-failoverq = control",
            "{if}-mirrorrxq{h} = control",
            "{if}-eorxq{h} = control",
            "{if}-iw_cxgb4{n} = rdma",
            "{if}-rdma{n} = rdma",
            "{if}-rdma-ciq{n} = rdma",
            "{if}-cxgb4i{h} = control",
            "{if}-iscsi{h} = control",
            "{if}-ofld{h} = control",
            "{if}-cxgbit{h} = control",
            "{if}-ch{x} = control",
        ],
        &[
            "eth0-Rx0 = rx 0",
            "eth0 (queue 3) = rx 3",
            "eth0-iw_cxgb40 = rdma 0",
        ],
    )
    .page(SETS_AT_PROBE),
    Driver::new(
        "cxgb4vf",
        &["{if}-{n} = combined", "{if}-FWeventq = control"],
        &["eth0-1 = combined 1"],
    ),
    // The receive contexts of IPoIB, then those of verbs (hfi1/msix.c).
    Driver::new(
        "hfi1",
        &["hfi1_{h} nd kctxt{n} = rx by order", "hfi1_{h} = control"],
        &["hfi1_0 nd kctxt1 = rx 1", "hfi1_0 kctxt2 = rdma"],
    )
    .rdma(&["hfi1_{h} sdma{h} = rdma", "hfi1_{h} kctxt{h} = rdma"]),
    Driver::new(
        "cxgb3",
        &["{if} = combined if alone", "{if}-{n} = combined by order"],
        &["eth1-4 = combined 4"],
    ),
    // Each XDP channel belongs to a CPU and is no queue of the interface.
    Driver::new("sfc sfc_falcon sfc_siena", SFC, &["eth0-0 = combined 0"])
        .page(SETS_AT_PROBE)
        .facts(&[AcceleratedRfs]),
    Driver::new("sfc_ef100", SFC, &["eth0-mae = control"])
        .page(SETS_ITS_OWN)
        .facts(&[AcceleratedRfs]),
    Driver::new(
        "LiquidIO LiquidIO_VF",
        &[
            "LiquidIO{h}-{x}-rxtx-{n} = combined",
            "LiquidIO{h}-{x}-aux = control",
        ],
        &["LiquidIO0-pf0-rxtx-3 = combined 3"],
    )
    .page(SETS_AT_PROBE),
    Driver::new(
        "fsl_enetc fsl_enetc_vf nxp_enetc4",
        &["{if}-rxtx{n} = combined", "{if}-vfmsg{x} = control"],
        &["eth0-rxtx0 = combined 0"],
    )
    .page(SETS_AT_PROBE),
    Driver::new(
        "hinic hinic3",
        &[
            "{if}_{way}q{n}",
            "{if}_qp{n} = combined",
            "hinic{x}_aeq{h}@pci:{pci} = control",
            "hinic{x}_ceq{h}@pci:{pci} = control",
        ],
        &["eth0_rxq0 = rx 0"],
    )
    .page(SETS_ITS_OWN),
    Driver::new(
        "nicvf thunder-nicvf",
        &[
            "{if}-rxtx-{n} = combined",
            "{if}-sq-{h} = control",
            "{if}-rbdr-{h} = control",
            "{if}-qset-err-{h} = control",
            "NICVF Mbox = control",
        ],
        &["eth0-rxtx-0 = combined 0"],
    )
    .page(SETS_ITS_OWN)
    .facts(&[QueuesOnFunctions]),
    Driver::new(
        "rvu_nicpf rvu_nicvf",
        &[
            "{if}-rxtx-{n} = combined",
            "{if}-qerr = control",
            "RVU{x} = control",
        ],
        &["eth0-rxtx-7 = combined 7", "RVUPF0 AFPF Mbox = control"],
    )
    .page(SETS_ITS_OWN),
    Driver::new(
        "octeon_ep octeon_ep_vf",
        &["{if}-q{n} = combined", "{if}-epf_{x} = control"],
        &["eth0-q2 = combined 2"],
    )
    .page(SETS_ITS_OWN),
    Driver::new(
        "be2net",
        &[
            "{if} = combined if alone",
            "{if}-q{n} = combined",
            "ocrdma{h}-{n} = rdma",
            // Linux 2.6.37 to 3.2.
            "{if}-tx = tx",
            "{if}-rxq{n} = rx",
        ],
        &["eth0-q5 = combined 5"],
    )
    .page(ONLY_A_HINT)
    .facts(&[QueuesWrap]),
    Driver::new(
        "enic",
        &[
            "{if} = combined if alone",
            "{if}-{way}-{n}",
            "{if}-err = control",
            "{if}-notify = control",
            "{pci}-admin = control",
        ],
        &["eth0-rx-0 = rx 0"],
    )
    .page(ONLY_A_HINT)
    .facts(&[AcceleratedRfs, FixedChannels]),
    Driver::new(
        "nfp nfp_netvf",
        &[
            "{if}-rxtx-{n} = combined",
            "{if}-lsc = control",
            "{if}-exn = control",
        ],
        &["eth0-rxtx-0 = combined 0"],
    )
    .page(ONLY_A_HINT),
    Driver::new("ngbe ngbevf txgbevf", TXGBE, &[])
        .page(MANAGED)
        .facts(&[ManagedIrqs]),
    Driver::new("txgbe", TXGBE, &["eth0-TxRx-5 = combined 5"])
        .page(MANAGED)
        .facts(&[ManagedIrqs, SteersTcp]),
    Driver::new(
        "niu",
        &[
            "{if} = combined if alone",
            "{if}-{way}-{n}",
            "{if}:MAC = combined if alone",
            "{if}:MIF = control",
            "{if}:SYSERR = control",
        ],
        &["eth0-rx-0 = rx 0"],
    ),
    Driver::new(
        "myri10ge",
        &["{if} = combined if alone", "{if}:slice-{n} = combined"],
        &["eth0 = combined"],
    ),
    // The first vector has all transmit queues, and alarms.
    Driver::new(
        "S2IO",
        &[
            "{if} = combined if alone",
            "{if}:MSI-X-{n}-RX = rx by order",
            "{if}:MSI-X-{h}-TX = tx",
        ],
        &["eth0 = combined"],
    ),
    // Gaudi 2: each port has an event queue for what it sent and received, and for its link; the rest is the accelerator's
    // (gaudi2_irq_name; hbl_cn, gaudi2_cn_eq_irq_name).
    Driver::new(
        "habanalabs",
        &[
            "gaudi2 cn{h} qpc{h} EQ = data",
            "gaudi2 vdec {x} = control",
            "gaudi2 {x}completion = control",
            "gaudi2 cpu eq = control",
            "gaudi2 eq error = control",
            "gaudi2 tpc assert = control",
            "gaudi2 unexpected error = control",
        ],
        &[
            "gaudi2 cn11 qpc1 EQ = data",
            "gaudi2 completion = control",
            "gaudi2 user completion = control",
        ],
    ),
    // The MAC's vector also has queue 0.
    Driver::new(
        "tsnep",
        &["{if}-txrx-{n} = combined", "{if}-mac = combined"],
        &["eth0-txrx-1 = combined 1"],
    )
    .facts(&[FixedChannels]),
];
