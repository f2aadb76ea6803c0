//! Paths of the kernel files that hold settings.

/// The size of the global RFS table.
pub const FLOW_ENTRIES: &str = "/proc/sys/net/core/rps_sock_flow_entries";

/// The directory with a directory for each IRQ.
pub(crate) const IRQ_FILES: &str = "/proc/irq";

/// A vector's `smp_affinity`.
pub(crate) fn affinity_file(irq: u32) -> String {
    format!("{IRQ_FILES}/{irq}/smp_affinity")
}

/// The directory with a directory for each queue of an interface.
pub(crate) fn queue_files(interface: &str) -> String {
    format!("/sys/class/net/{interface}/queues")
}

/// A file of a queue; `way` is `rx` or `tx`.
pub(crate) fn queue_file(interface: &str, way: &str, queue: u32, file: &str) -> String {
    format!("/sys/class/net/{interface}/queues/{way}-{queue}/{file}")
}
