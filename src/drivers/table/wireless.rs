//! Drivers of Wi-Fi. Most have a single IRQ, or names that the row for drivers without one reads.

use crate::drivers::row::Driver;

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
        ],
        &[
            "reo2host-destination-ring4 = data",
            "wbm2host-tx-completions-ring1 = data",
            "ppdu-end-interrupts-mac1 = data",
            "reo2host-status = control",
            "tcl2host-status-ring = control",
            "wbm2host-rx-release = control",
            "rxdma2host-destination-ring-mac1 = control",
            "reo2ost-exception = control",
            "host2tcl-input-ring4 = control",
            "ce11 = control",
            "misc-pulse1 = control",
            "sw-exception = control",
            "watchdog = control",
        ],
    ),
];
