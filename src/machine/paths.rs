//! The kernel's files of settings.

/// The size of the global RFS table.
pub const FLOW_ENTRIES: &str = "/proc/sys/net/core/rps_sock_flow_entries";

/// Where each IRQ has its files.
pub(crate) const IRQ_FILES: &str = "/proc/irq";

/// A vector's `smp_affinity`.
pub(crate) fn affinity_file(irq: u32) -> String {
    ["/proc/irq/", itoa::Buffer::new().format(irq), "/smp_affinity"].concat()
}

/// A file of a queue, of which `way` is `rx` or `tx`. There are thousands of them: put together, not formatted.
pub(crate) fn queue_file(interface: &str, way: &str, queue: u32, file: &str) -> String {
    let mut number = itoa::Buffer::new();
    ["/sys/class/net/", interface, "/queues/", way, "-", number.format(queue), "/", file].concat()
}
