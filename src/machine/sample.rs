//! A sample of the kernel's counters: interrupts by CPU, softirq time, packets and bytes. The difference of two samples
//! is a [`Delta`](crate::machine::delta::Delta).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Which counters are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CounterSelection {
    /// The IRQs whose interrupts are counted.
    pub irqs: BTreeSet<u32>,
    /// The interfaces whose bytes and packets are counted.
    pub interfaces: BTreeSet<String>,
    /// The threads that poll queues, by process id.
    pub threads: BTreeSet<u32>,
    /// Whether the CPUs' counters are read: time, softirqs, backlogs.
    pub cpus: bool,
}

/// All counters at one moment. Each is empty where the kernel does not report it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// The time of the sample, since a moment common to all samples that are compared.
    pub at: Duration,
    /// Interrupts, by IRQ and CPU.
    pub interrupts: Counts,
    /// How each CPU spent its time.
    pub times: BTreeMap<u32, Times>,
    /// Softirqs by CPU.
    pub softirqs: BTreeMap<u32, Softirqs>,
    /// Backlogs by CPU.
    pub softnet: BTreeMap<u32, Softnet>,
    /// Interfaces by name.
    pub interfaces: BTreeMap<String, Counters>,
    /// Threads by process id.
    pub threads: BTreeMap<u32, ThreadCounts>,
}

/// A thread's counts, `/proc/PID/status` and `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadCounts {
    /// How often it stopped running: each time it had run.
    pub switches: u64,
    /// The CPU on which it last ran.
    pub cpu: u32,
}

/// An interface's counters, `/sys/class/net/INTERFACE/statistics`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// The interface's `ifindex`: another number is another interface of the same name.
    pub index: u32,
    /// The counters, each 0 where the driver has none.
    pub values: InterfaceCounts,
}

/// Packets and bytes of an interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InterfaceCounts {
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets received and dropped, for lack of room in the device or in the kernel.
    pub rx_dropped: u64,
    /// Packets not sent.
    pub tx_dropped: u64,
}

/// How a CPU has spent its time since boot, in ticks of 1/100 s (`USER_HZ`, the same on every architecture that has
/// NUMA nodes today). `/proc/stat`, `Documentation/filesystems/proc.rst`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// In any program or in the kernel: all but idle, waiting for I/O and stolen by a hypervisor.
    pub busy: u64,
    /// In interrupt handlers.
    pub irq: u64,
    /// In softirqs, where packets are received.
    pub softirq: u64,
}

/// How often softirqs ran on a CPU. The kernel counts in 32 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Softirqs {
    /// `NET_RX`: polls of receive queues.
    pub net_rx: u32,
    /// `NET_TX`: completions and queues that were kicked.
    pub net_tx: u32,
}

/// A CPU's backlog of packets, `/proc/net/softnet_stat`. The kernel counts in 32 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Softnet {
    /// Packets taken.
    pub processed: u32,
    /// Packets dropped because the backlog was full.
    pub dropped: u32,
    /// Polls that ran out of budget or time with work left.
    pub squeezed: u32,
    /// Times that another CPU handed packets over by RPS.
    pub rps: u32,
}

/// How often some IRQs fired on each CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// The online CPUs, in the order of their columns.
    pub cpus: Vec<u32>,
    /// The requested IRQs that exist.
    pub rows: BTreeMap<u32, CountRow>,
}

/// How often one IRQ fired on each CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountRow {
    /// A count for each of [`Counts::cpus`]. The kernel counts in 32 bits and wraps.
    pub counts: Vec<u32>,
    /// The text after the counts: chip and handlers. Another text means that the number has another use.
    pub whose: String,
}
