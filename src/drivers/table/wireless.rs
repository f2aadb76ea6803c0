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
    // Its names contain words that mark control vectors of other drivers (ath11k/ahb.c:46).
    Driver::new(
        "ath11k ath12k_ahb ath12k_wifi7_ahb",
        &["ppdu-end-interrupts-mac{h} = data"],
        &["ppdu-end-interrupts-mac1 = data"],
    ),
];
