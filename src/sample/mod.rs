//! What the kernel's counters say at a moment: interrupts by CPU, softirq time, packets and bytes. Reading only;
//! what two samples mean together is [`Growth`].

mod growth;
mod text;

pub use growth::{CpuGrowth, Growth, Traffic};
pub use text::{Softirqs, Softnet, Times};

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::host::{Counts, FileError, Root};

/// Which counters are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
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
    pub values: Values,
}

/// What an interface counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Values {
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

impl Sample {
    /// Takes a sample.
    pub fn read(root: &Root, wanted: &Wanted, since: Instant) -> Result<Self, FileError> {
        let interrupts =
            if wanted.irqs.is_empty() { Counts::default() } else { Counts::read(root, &wanted.irqs)? };
        let at = since.elapsed();
        let mut interfaces = BTreeMap::new();
        for name in &wanted.interfaces {
            interfaces.extend(read_interface(root, name)?.map(|counters| (name.clone(), counters)));
        }
        let mut sample = Self { at, interrupts, interfaces, ..Self::default() };
        if wanted.cpus {
            let read = |path: &str| Ok(root.read_opt(path)?.unwrap_or_default());
            sample.times = text::times(&read("/proc/stat")?);
            sample.softirqs = text::softirqs(&read("/proc/softirqs")?);
            let online: Vec<u32> = sample.times.keys().copied().collect();
            sample.softnet = text::softnet(&read("/proc/net/softnet_stat")?, &online);
        }
        Ok(sample)
    }
}

/// An interface's counters; `None` when it is not there.
fn read_interface(root: &Root, name: &str) -> Result<Option<Counters>, FileError> {
    let path = format!("/sys/class/net/{name}");
    let number = |name: &str| -> Result<Option<u64>, FileError> {
        Ok(root.read_opt(&format!("{path}/{name}"))?.and_then(|text| text.trim().parse().ok()))
    };
    let count = |name: &str| Ok(number(&format!("statistics/{name}"))?.unwrap_or(0));
    // Trees may lack it, as they may lack counters.
    let index = number("ifindex")?.and_then(|index| u32::try_from(index).ok()).unwrap_or(0);
    let values = Values {
        rx_bytes: count("rx_bytes")?,
        tx_bytes: count("tx_bytes")?,
        rx_packets: count("rx_packets")?,
        tx_packets: count("tx_packets")?,
        rx_dropped: count("rx_dropped")?.saturating_add(count("rx_missed_errors")?),
        tx_dropped: count("tx_dropped")?,
    };
    Ok(root.exists(&path).then_some(Counters { index, values }))
}
