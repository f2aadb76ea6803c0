//! Drivers of Wi-Fi. Most have a single IRQ, or names that the row for drivers without one reads.

use crate::drivers::row::Driver;

pub(super) const DRIVERS: &[Driver] = &[
    // Queues of Wi-Fi are not queues of the network stack.
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
    // Its names contain words that mark control vectors of other drivers (ath11k/ahb.c:46).
    Driver {
        irqs: &["ppdu-end-interrupts-mac{h} = data"],
        examples: &["ppdu-end-interrupts-mac1 = data"],
        ..Driver::named("ath11k ath12k_ahb ath12k_wifi7_ahb")
    },
];
