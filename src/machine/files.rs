//! The files of settings.

pub const FLOW_ENTRIES: &str = "/proc/sys/net/core/rps_sock_flow_entries";

pub const NET: &str = "/sys/class/net";

pub const IRQ_FILES: &str = "/proc/irq";

pub fn affinity_file(irq: u32) -> String {
    format!("{IRQ_FILES}/{irq}/smp_affinity")
}

const ETHTOOL: &str = "/nicpin/ethtool";

/// Where a tree has the answer to an ethtool ioctl: `rss`, `features`.
pub(crate) fn ethtool_file(interface: &str, name: &str) -> String {
    format!("{ETHTOOL}/{interface}/{name}")
}

pub fn queue_files(interface: &str) -> String {
    format!("{NET}/{interface}/queues")
}

/// `way` is `rx` or `tx`.
pub fn queue_file(interface: &str, way: &str, queue: u32, file: &str) -> String {
    format!("{NET}/{interface}/queues/{way}-{queue}/{file}")
}
