//! Names that several drivers give.

/// The bare interface name, always or if there is one vector.
pub(super) const BARE: &[&str] = &["{if} = combined if alone"];

/// igb and its relatives number queues, ixgbe and its relatives vectors, which may have several queues. Linux 2.6 has a
/// word behind the interface's name (`ixgbe_msix_lsc`, `ixgbevf_msix_mbx`).
pub(super) const INTEL: &[&str] = &[
    "{if} = combined if alone",
    "{if}-{way}-{n}",
    "{if}-unused = control",
    "{if}:lsc = control",
    "{if}:mbx = control",
];

/// AEQCEQ also signals asynchronous events. Linux 6.1 and older give no number.
pub(super) const IRDMA: &[&str] = &[
    "irdma{x} = control",
    "irdma-{x}-CEQ-{n} = rdma",
    "irdma-{x}-AEQCEQ-{n} = rdma",
    "CEQ{n} = rdma, cut 3",
    "AEQCEQ{n} = rdma, cut 6",
];

/// Columns of `Driver::page`.
pub(super) const SETS_ITS_OWN: [&str; 4] = [
    "queue or order",
    "**sets its own**",
    "the same",
    "nicvf, fm10k set it",
];
pub(super) const ONE_IRQ: [&str; 4] = ["mostly one IRQ", "kept (?)", "one queue", "one queue"];
