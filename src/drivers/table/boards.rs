//! Drivers of systems on a chip: boards, routers, switches.

use super::alike::{BARE, INTEL};
use crate::drivers::row::Driver;
use crate::drivers::row::Fact::{FixedChannels, OneEngine, PortsShareQueues};
use crate::drivers::row::OrderPart::{Others, Queues};
use crate::machine::Role::Rx;

pub(super) const DRIVERS: &[Driver] = &[
    // All vectors have the interface's name: one for each CPU, which has receive queue N and the transmit queues as that
    // CPU uses them, then the link's; with `queue_mode=0` there is one receive queue, on a vector after those of the CPUs
    // (mvpp2_main.c:4735, 5866).
    Driver {
        irqs: BARE,
        order: &[Queues(Rx), Others(0, 1)],
        examples: &["eth0 = combined"],
        page: ["per-CPU: cannot be moved", "", "", "set by the driver"],
        ..Driver::named("mvpp2")
    },
    Driver {
        irqs: BARE,
        examples: &["eth0 = combined"],
        page: ["per-CPU: cannot be moved", "", "", "set by the driver"],
        ..Driver::named("mvneta")
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
            "nicvf, fm10k set it",
        ],
        ..Driver::named("amd-xgbe")
    },
    Driver {
        irqs: INTEL,
        examples: &["eth0-TxRx-0 = combined 0"],
        facts: &[FixedChannels],
        ..Driver::named("dwc-xlgmac")
    },
    // stmmac, which has a driver name for each board.
    Driver {
        examples: &["eth0:rx-0 = rx 0", "eth0:mac = control", "eth0:tx-3 = tx 3"],
        page: [
            "queue or order",
            "**sets its own**",
            "the same",
            "nicvf, fm10k set it",
        ],
        ..Driver::named("dwc-eth-dwmac rk_gmac-dwmac stmmaceth intel-eth-pci")
    },
    Driver {
        irqs: &["{h}.ethernet = combined if alone"],
        examples: &["30be0000.ethernet = combined"],
        page: ["mostly one IRQ", "kept (?)", "one queue", "one queue"],
        ..Driver::named("fec")
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
    // Both ports use the same names, and the last name is also that of the time stamps (icssg_prueth.c:728, 753).
    Driver {
        irqs: &["{x}-eth-tx{n} = tx", "{x}-eth = rx"],
        examples: &["icssg1-eth-tx3 = tx 3", "icssg1-eth = rx"],
        ..Driver::named("icssg-prueth icssg-prueth-sr1")
    },
    // With one receive flow the vector has the device's bare name.
    Driver {
        irqs: &["{x}-{way}{n}", "{h}.ethernet = rx"],
        examples: &[
            "8000000.ethernet-rx0 = rx 0",
            "8000000.ethernet-tx7 = tx 7",
            "8000000.ethernet = rx",
        ],
        ..Driver::named("am65-cpsw-nuss")
    },
    // With DMA, or with registers.
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
    Driver {
        irqs: &["etop_{way}"],
        examples: &["etop_rx = rx", "etop_tx = tx"],
        ..Driver::named("ltq_etop")
    },
    Driver {
        irqs: &["xrx200_net_{way}"],
        examples: &["xrx200_net_rx = rx", "xrx200_net_tx = tx"],
        ..Driver::named("lantiq,xrx200-net")
    },
    // Data vectors are those of the DMA engine (ibm/emac/mal.c:667).
    Driver {
        irqs: &[
            "MAL {way} EOB",
            "MAL {x} DE = control",
            "MAL SERR = control",
            "EMAC = control",
        ],
        examples: &[
            "MAL TX EOB = tx",
            "MAL RX EOB = rx",
            "MAL TX DE = control",
            "MAL SERR = control",
            "EMAC = control",
        ],
        facts: &[OneEngine],
        ..Driver::named("emac")
    },
    Driver {
        irqs: &["BMAC-{way}dma", "BMAC-misc = control"],
        examples: &["BMAC-txdma = tx", "BMAC-rxdma = rx", "BMAC-misc = control"],
        ..Driver::named("bmac")
    },
    // The first vector reports sent packets; the handler of the second does nothing (apple/mace.c:655, 872).
    Driver {
        irqs: &["MACE = tx", "MACE-txdma = control", "MACE-rxdma = rx"],
        examples: &["MACE = tx", "MACE-txdma = control", "MACE-rxdma = rx"],
        ..Driver::named("mace")
    },
    Driver {
        irqs: &["lance = combined", "lance error = control"],
        examples: &["lance = combined", "lance error = control"],
        ..Driver::named("declance")
    },
    // The second vector wakes the machine (davicom/dm9000.c:1517).
    Driver {
        irqs: &[
            "{if} = combined if alone",
            "dm9000.{h} = control",
            "{h}.ethernet = control",
        ],
        examples: &[
            "eth0 = combined",
            "dm9000.0 = control",
            "88000000.ethernet = control",
        ],
        ..Driver::named("dm9000")
    },
    // Qualcomm's SDK for routers: rings are numbered over all ports; one name is of older chips.
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
        facts: &[OneEngine],
        ..Driver::named("nss-dp")
    },
    Driver {
        irqs: &["dpio.{h} = control", "dpni.{h} = control"],
        examples: &["dpio.7 = control", "dpni.1 = control"],
        facts: &[FixedChannels],
        ..Driver::named("fsl_dpaa2_eth")
    },
    // Packets come by the control vectors, too (dpaa2-switch.c:1611).
    Driver {
        irqs: &["dpio.{h} = control", "dpsw.{h} = control"],
        examples: &["dpio.7 = control", "dpsw.0 = control"],
        ..Driver::named("fsl_dpaa2_switch")
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
    Driver {
        irqs: &["rswitch: gwca{h}_rxts{h} = control"],
        examples: &["rswitch: gwca0_rxts0 = control"],
        ..Driver::named("renesas_eth_sw")
    },
    Driver {
        examples: &[],
        facts: &[FixedChannels],
        ..Driver::named("sam_sxgbeeth")
    },
];
