//! Drivers of systems on a chip: boards, routers, switches.

use super::alike::{BARE, INTEL, ONE_IRQ, SETS_ITS_OWN};
use crate::drivers::row::Driver;
use crate::drivers::row::Fact::{
    FixedChannels, KeepsAffinity, OneEngine, PicksTxQueue, PortsShareQueues,
};
use crate::drivers::row::OrderPart::{All, Others, Queues};
use crate::machine::Role::{Rx, Tx};

const PER_CPU: [&str; 4] = ["per-CPU: cannot be moved", "", "", "set by the driver"];

pub(super) const DRIVERS: &[Driver] = &[
    // All vectors have the interface's name: one for each CPU, which has receive queue N and the transmit queues of
    // that CPU, then the link's; with `queue_mode=0` the one receive queue has a vector after those of the CPUs
    // (mvpp2_main.c:4735, 5866).
    Driver::new("mvpp2", BARE, &[])
        .order(&[Queues(Rx), Others(0, 1)])
        .page(PER_CPU)
        .facts(&[KeepsAffinity]),
    Driver::new("mvneta", BARE, &[]).page(PER_CPU),
    Driver::new(
        "amd-xgbe",
        &[
            "{if} = combined if alone",
            "{if}-{way}-{n}",
            "{if}-unused = control",
            "{if}-pcs = control",
            "{if}-ecc = control",
            "{if}-i2c = control",
        ],
        &["eth0-TxRx-1 = combined 1"],
    )
    .page(SETS_ITS_OWN),
    Driver::new("dwc-xlgmac", INTEL, &[]).facts(&[FixedChannels]),
    // stmmac, which has a driver name for each board.
    Driver::new(
        "dwc-eth-dwmac rk_gmac-dwmac stmmaceth intel-eth-pci",
        &[],
        &["eth0:rx-0 = rx 0"],
    )
    .page(SETS_ITS_OWN),
    Driver::new(
        "fec",
        &["{h}.ethernet = combined if alone"],
        &["30be0000.ethernet = combined"],
    )
    .page(ONE_IRQ),
    // Best effort is queue 0, network control queue 1.
    Driver::new(
        "ravb",
        &[
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
        &["eth0 = combined"],
    )
    .facts(&[PicksTxQueue]),
    // NVIDIA's own, for Jetson: each vector of a "virtual machine" has several channels, by the device tree
    // (ether_linux.c, ether_request_irqs).
    Driver::new(
        "nvethernet",
        &[
            "{if}.vm{h} = data",
            "{if}.{way}{n} = by order",
            "ether_common_irq = control",
        ],
        &["eth0.vm3 = data"],
    ),
    // Both ports use the same names, and the last name is also that of the time stamps (icssg_prueth.c:728, 753).
    Driver::new(
        "icssg-prueth icssg-prueth-sr1",
        &["{x}-eth-tx{n} = tx", "{x}-eth = rx"],
        &["icssg1-eth-tx3 = tx 3"],
    ),
    // With one receive flow the vector has the device's bare name.
    Driver::new(
        "am65-cpsw-nuss",
        &["{x}-{way}{n}", "{h}.ethernet = rx"],
        &["8000000.ethernet-rx0 = rx 0"],
    ),
    // With DMA, or with registers.
    Driver::new(
        "lan966x-switch",
        &[
            "fdma irq = combined",
            "frame extraction = rx",
            "ana irq = control",
            "ptp irq = control",
            "ptp-ext irq = control",
        ],
        &[],
    ),
    Driver::new("fs_enet", &["fs_enet-mac = combined"], &[]),
    Driver::new(
        "korina",
        &["Korina ethernet {way}"],
        &["Korina ethernet Rx = rx"],
    ),
    Driver::new("ltq_etop", &["etop_{way}"], &["etop_rx = rx"]),
    Driver::new(
        "lantiq,xrx200-net",
        &["xrx200_net_{way}"],
        &["xrx200_net_rx = rx"],
    ),
    // Data vectors are those of the DMA engine (ibm/emac/mal.c:667).
    Driver::new(
        "emac",
        &[
            "MAL {way} EOB",
            "MAL {x} DE = control",
            "MAL SERR = control",
            "EMAC = control",
        ],
        &["MAL TX EOB = tx"],
    )
    .facts(&[OneEngine]),
    Driver::new(
        "bmac",
        &["BMAC-{way}dma", "BMAC-misc = control"],
        &["BMAC-txdma = tx"],
    ),
    // The first vector reports sent packets; the handler of the second does nothing (apple/mace.c:655, 872).
    Driver::new(
        "mace",
        &["MACE = tx", "MACE-txdma = control", "MACE-rxdma = rx"],
        &[],
    ),
    Driver::new(
        "declance",
        &["lance = combined", "lance error = control"],
        &[],
    ),
    // The second vector wakes the machine (davicom/dm9000.c:1517).
    Driver::new(
        "dm9000",
        &[
            "{if} = combined if alone",
            "dm9000.{h} = control",
            "{h}.ethernet = control",
        ],
        &["eth0 = combined"],
    ),
    // Qualcomm's SDK for routers: rings are numbered over all ports; one name is of older chips.
    Driver::new(
        "nss-dp qcom_ppe",
        &[
            "edma_rxdesc_{n} = rx by order",
            "edma_rxdesc{n} = rx by order",
            "edma_rxdesc = rx",
            "edma_txcmpl_{n} = tx by order",
            "edma_txcmpl{n} = tx by order",
            "edma_txcmpl = tx",
            "edma_rxfill{x} = control",
            "edma_misc = control",
        ],
        &["edma_rxdesc_20 = rx 20"],
    )
    .facts(&[OneEngine]),
    // Of OpenWrt for IPQ4019: receive queue N has ring 2N, or N with eight of them; transmit queue N of each port is two of
    // the rings from 4N on (edma_axi.c).
    Driver::new(
        "ess_edma",
        &["edma_eth_rx{n} = rx by order", "edma_eth_tx{n} = data"],
        &["edma_eth_rx6 = rx 6"],
    ),
    // Each IRQ serves a bank of queues of all ports (airoha_eth.c, airoha_qdma_init_irq_banks).
    Driver::new(
        "airoha_eth",
        &["{h}.ethernet = combined if alone"],
        &["1fb50000.ethernet = combined"],
    )
    .facts(&[PicksTxQueue]),
    // Each IRQ serves a group of packets of all ports (ethernet-rx.c, cvm_oct_rx_initialize).
    Driver::new("octeon_ethernet", &["Ethernet = data"], &[]),
    // Annapurna's own (al_eth_main.c).
    Driver::new(
        "al_eth",
        &[
            "al-eth-{way}-comp-{n}@pci:{pci}",
            "al-eth-intx-all@pci:{pci} = combined",
            "al-eth-msix-mgmt@pci:{pci} = control",
        ],
        &["al-eth-rx-comp-0@pci:0000:00:01.0 = rx 0"],
    ),
    Driver::new(
        "fsl_dpaa2_eth",
        &["dpio.{h} = control", "dpni.{h} = control"],
        &["dpio.7 = control"],
    )
    .portals("dpio")
    .facts(&[FixedChannels]),
    // Packets come by the control vectors, too (dpaa2-switch.c:1611).
    Driver::new(
        "fsl_dpaa2_switch",
        &["dpio.{h} = control", "dpsw.{h} = control"],
        &["dpio.7 = control"],
    ),
    // A portal belongs to a CPU and serves every interface there.
    Driver::new(
        "fsl_dpa",
        &["QMan portal {h} = control"],
        &["QMan portal 0 = control"],
    )
    .portals("QMan portal"),
    Driver::new(
        "fsl-gianfar",
        &["{if}_g{n}_{way}", "{if}_g{h}_er = control"],
        &["eth0_g0_rx = rx 0"],
    ),
    // Where sending and receiving have an IRQ each, that of sending is mapped first (mtk_eth_soc.c, mtk_probe).
    Driver::new(
        "mtk_soc_eth",
        &["{h}.ethernet = combined if alone"],
        &["15100000.ethernet = combined"],
    )
    .order(&[All(Tx), All(Rx)])
    .facts(&[PicksTxQueue, PortsShareQueues]),
    Driver::new(
        "brcm-asp2",
        &["{h}.ethernet = combined if alone"],
        &["9c00000.ethernet = combined"],
    ),
    Driver::new("netsec", &["netsec = combined"], &[]),
    Driver::new(
        "xgene-enet",
        &[
            "{if}-rx-{n} = rx",
            "{if}-txc-{n} = tx",
            "{if}-rx-txc = combined",
        ],
        &["eth0-rx-0 = rx 0"],
    ),
    Driver::new(
        "renesas_eth_sw",
        &["rswitch: gwca{h}_rxts{h} = control"],
        &["rswitch: gwca0_rxts0 = control"],
    ),
    Driver::new("sam_sxgbeeth", &[], &[]).facts(&[FixedChannels]),
];
