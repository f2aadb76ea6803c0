//! Drivers of Wi-Fi and modems. Most have a single IRQ, or names that the row for drivers without one reads.

use crate::drivers::row::Driver;
use crate::drivers::row::Fact::KeepsAffinity;

pub(super) const DRIVERS: &[Driver] = &[
    // Queues of Wi-Fi are not queues of the network stack.
    Driver::new(
        "iwlwifi",
        &[
            "iwlwifi = combined if alone",
            "iwlwifi:exception = control",
            "iwlwifi:{x} = data",
        ],
        &["iwlwifi:queue_2 = data"],
    ),
    // Groups of rings have packets; MHI and the copy engines carry commands (ath11k/pcic.c, bus/mhi/host/init.c). With a
    // single MSI, one IRQ has all names, and the driver keeps it on CPU 0: the card has its message.
    Driver::new(
        "ath11k_pci ath12k_pci ath12k_wifi7_pci",
        &[
            "DP_EXT_IRQ = combined if alone",
            "ce{h} = control",
            "bhi = control",
            "mhi = control",
        ],
        &["ce5 = control"],
    )
    .facts(&[KeepsAffinity]),
    // Qualcomm's IP accelerator: its DMA engine interrupts for packets (ipa/gsi.c).
    Driver::new(
        "ipa",
        &[
            "gsi = combined",
            "ipa = control",
            "ipa-clock-query = control",
            "ipa-setup-ready = control",
        ],
        &[],
    ),
    // Modems: rings of packets and of commands have IRQs of one name (bus/mhi/host/init.c, mhi_init_irq_setup).
    Driver::new(
        "mhi_net mhi-pci-generic",
        &["mhi = combined if alone", "bhi = control"],
        &[],
    ),
    // The first one and the sixth are the data path's (t7xx_pcie_mac.h, enum t7xx_int).
    Driver::new(
        "mtk_t7xx",
        &[
            "mtk_t7xx_0 = data",
            "mtk_t7xx_5 = data",
            "mtk_t7xx_1 = control",
            "mtk_t7xx_2 = control",
            "mtk_t7xx_3 = control",
            "mtk_t7xx_4 = control",
            "mtk_t7xx_6 = control",
            "mtk_t7xx_7 = control",
        ],
        &[],
    ),
    // Rings without packets of the network stack are commands, errors, buffers and the monitor's (ath11k/ahb.c:46).
    Driver::new(
        "ath11k ath12k_ahb ath12k_wifi7_ahb",
        &[
            "reo2host-destination-ring{h} = data",
            "wbm2host-tx-completions-ring{h} = data",
            "ppdu-end-interrupts-mac{h} = data",
            "reo2host-status = control",
            "tcl2host-{x} = control",
            "wbm2host-rx-{x} = control",
            "rxdma2host-{x} = control",
            "reo2ost-{x} = control",
            "host2{x} = control",
            "ce{h} = control",
            "misc-{x} = control",
            "sw-exception = control",
            "watchdog = control",
            "UserPD{x} = control",
        ],
        &["reo2host-destination-ring4 = data"],
    ),
];
