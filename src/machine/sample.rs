//! What the kernel's counters say at a moment: interrupts by CPU, softirq time, packets and bytes. What two samples mean
//! together is a [`Growth`](crate::machine::growth::Growth).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Which counters are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CounterSelection {
    /// The IRQs whose interrupts are counted.
    pub irqs: BTreeSet<u32>,
    /// The interfaces whose bytes and packets are counted.
    pub interfaces: BTreeSet<String>,
    /// Whether the CPUs' own counters are wanted: time, softirqs, backlogs.
    pub cpus: bool,
}

/// All of them at one moment. Each is absent where the kernel does not tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// When it was taken, since a moment that samples to be compared have in common.
    pub at: Duration,
    /// Interrupts, by IRQ and CPU.
    pub interrupts: Counts,
    /// How each CPU spent its time.
    pub times: BTreeMap<u32, Times>,
    /// Softirqs by CPU.
    pub softirqs: BTreeMap<u32, Softirqs>,
    /// Backlogs by CPU.
    pub softnet: BTreeMap<u32, Softnet>,
    /// The interfaces that are there.
    pub interfaces: BTreeMap<String, Counters>,
}

/// An interface's counters, `/sys/class/net/INTERFACE/statistics`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// The kernel's number for it: another one is another interface of the same name.
    pub index: u32,
    /// The counters, each 0 where the driver has none.
    pub values: InterfaceCounts,
}

/// What an interface counts.
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
    /// Packets received and thrown away, for want of room in the card or in the kernel.
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
    /// Packets thrown away because the backlog was full.
    pub dropped: u32,
    /// Polls that ran out of budget or time with work left.
    pub squeezed: u32,
    /// Times that another CPU handed packets over by RPS.
    pub rps: u32,
}

/// How often some IRQs fired on each CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// The CPUs that are counted, as their columns stand: those online.
    pub cpus: Vec<u32>,
    /// The IRQs that were asked for and are there.
    pub rows: BTreeMap<u32, CountRow>,
}

/// How often one IRQ fired on each CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountRow {
    /// A count for each of [`Counts::cpus`]. The kernel counts in 32 bits and begins anew at 2^32.
    pub counts: Vec<u32>,
    /// What follows the counts: chip and handlers. Another text is another use of the same number.
    pub whose: String,
}
