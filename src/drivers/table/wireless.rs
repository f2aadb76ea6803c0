//! Wi-Fi. Most has a single IRQ, or names that the row of drivers without a row reads.

use crate::drivers::row::Driver;

pub(super) const DRIVERS: &[Driver] = &[
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
    // The words of others' control vectors are in its names (ath11k/ahb.c:46).
    Driver {
        irqs: &["ppdu-end-interrupts-mac{h} = data"],
        examples: &["ppdu-end-interrupts-mac1 = data"],
        ..Driver::named("ath11k ath12k_ahb ath12k_wifi7_ahb")
    },
];
