//! Paths of the kernel files that hold settings.

/// The size of the global RFS table.
pub const FLOW_ENTRIES: &str = "/proc/sys/net/core/rps_sock_flow_entries";

/// The directory with a directory for each IRQ.
pub(crate) const IRQ_FILES: &str = "/proc/irq";

/// A vector's `smp_affinity`.
pub(crate) fn affinity_file(irq: u32) -> String {
    ["/proc/irq/", itoa::Buffer::new().format(irq), "/smp_affinity"].concat()
}

/// A file of a queue; `way` is `rx` or `tx`. Concatenated, not formatted, since there are thousands of them.
pub(crate) fn queue_file(interface: &str, way: &str, queue: u32, file: &str) -> String {
    let mut number = itoa::Buffer::new();
    ["/sys/class/net/", interface, "/queues/", way, "-", number.format(queue), "/", file].concat()
}
