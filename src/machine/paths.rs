//! Paths of the kernel files that hold settings.

use std::borrow::Cow;

use crate::machine::shell::word;

/// The size of the global RFS table.
pub const FLOW_ENTRIES: &str = "/proc/sys/net/core/rps_sock_flow_entries";

/// The directory with a directory for each IRQ.
pub const IRQ_FILES: &str = "/proc/irq";

/// A vector's `smp_affinity`.
pub fn affinity_file(irq: u32) -> String {
    [IRQ_FILES, "/", &irq.to_string(), "/smp_affinity"].concat()
}

/// Where a tree keeps answers to ethtool ioctls.
pub(crate) const ETHTOOL: &str = "/nicpin/ethtool";

/// What a person acts on for a setting: its file, or in words or by a command what has no file.
pub fn shown(path: &str) -> Cow<'_, str> {
    let answer = path
        .strip_prefix(ETHTOOL)
        .and_then(|rest| rest.strip_prefix('/')?.split_once('/'));
    match answer {
        Some((interface, "rss")) => format!("ethtool -X {}", word(interface)).into(),
        Some((interface, "features")) => format!("ethtool -K {} ntuple", word(interface)).into(),
        _ => match thread_of(path) {
            Some(pid) => format!("affinity of thread {pid}").into(),
            None => path.into(),
        },
    }
}

/// The id in the directory of a thread.
pub fn thread_of(directory: &str) -> Option<u32> {
    directory.strip_prefix("/proc/")?.parse().ok()
}

/// An interface's RSS indirection table.
pub(crate) fn rss_file(interface: &str) -> String {
    format!("{ETHTOOL}/{interface}/rss")
}

/// An interface's features.
pub(crate) fn features_file(interface: &str) -> String {
    format!("{ETHTOOL}/{interface}/features")
}

/// A feature as ethtool writes it.
pub fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// The directory of a thread, by which a plan names it: `/proc/PID`.
pub(crate) fn thread_directory(pid: u32) -> String {
    format!("/proc/{pid}")
}

/// The directory with a directory for each queue of an interface.
pub fn queue_files(interface: &str) -> String {
    format!("/sys/class/net/{interface}/queues")
}

/// A file of a queue; `way` is `rx` or `tx`.
pub fn queue_file(interface: &str, way: &str, queue: u32, file: &str) -> String {
    [
        "/sys/class/net/",
        interface,
        "/queues/",
        way,
        "-",
        &queue.to_string(),
        "/",
        file,
    ]
    .concat()
}
