//! The facts of each driver, read in the sources of Linux 6.1 to 6.19 and of vendors' drivers, and tried in virtual
//! machines as far as `docs/kernels-and-drivers.md` says, which has the same order.

mod alike;
mod boards;
mod broadcom;
mod clouds;
mod desktops;
mod intel;
mod nvidia;
mod servers;
mod wireless;

use std::sync::LazyLock;

use super::row::Driver;

pub(super) static DRIVERS: LazyLock<Vec<Driver>> = LazyLock::new(|| {
    let families = [
        nvidia::DRIVERS,
        intel::DRIVERS,
        broadcom::DRIVERS,
        clouds::DRIVERS,
        servers::DRIVERS,
        desktops::DRIVERS,
        boards::DRIVERS,
        wireless::DRIVERS,
        &[OTHERS],
    ];
    families.concat()
});

/// Drivers without a row: numbers may begin anywhere, and names begin with the interface or the platform device.
const OTHERS: Driver = Driver::new(
    "",
    &[
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
    &[
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
);
