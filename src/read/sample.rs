//! Taking a sample of the kernel's counters.

mod text;

use std::collections::BTreeMap;
use std::time::Instant;

use crate::machine::Counts;
use crate::machine::sample::{CounterSelection, Counters, InterfaceCounts, Sample};
use crate::read::counts::counts;
use crate::read::threads;
use crate::root::{FileError, Root};

/// Takes a sample.
pub fn sample(root: &Root, wanted: &CounterSelection, since: Instant) -> Result<Sample, FileError> {
    let interrupts = if wanted.irqs.is_empty() {
        Counts::default()
    } else {
        counts(root, &wanted.irqs)?
    };
    let at = since.elapsed();
    let mut interfaces = BTreeMap::new();
    for name in &wanted.interfaces {
        interfaces.extend(read_interface(root, name)?.map(|counters| (name.clone(), counters)));
    }
    let threads = wanted
        .threads
        .iter()
        .filter_map(|&pid| Some((pid, threads::counts(root, pid)?)))
        .collect();
    let mut sample = Sample {
        at,
        interrupts,
        interfaces,
        threads,
        ..Sample::default()
    };
    if wanted.cpus {
        let read = |path: &str| Ok(root.read_opt(path)?.unwrap_or_default());
        sample.times = text::times(&read("/proc/stat")?);
        sample.softirqs = text::softirqs(&read("/proc/softirqs")?);
        let online: Vec<u32> = sample.times.keys().copied().collect();
        sample.softnet = text::softnet(&read("/proc/net/softnet_stat")?, &online);
    }
    Ok(sample)
}

/// An interface's counters; `None` if it is absent.
fn read_interface(root: &Root, name: &str) -> Result<Option<Counters>, FileError> {
    let path = format!("/sys/class/net/{name}");
    let number = |name: &str| -> Result<Option<u64>, FileError> {
        Ok(root
            .read_opt(&format!("{path}/{name}"))?
            .and_then(|text| text.trim().parse().ok()))
    };
    let count = |name: &str| Ok(number(&format!("statistics/{name}"))?.unwrap_or(0));
    // It may be absent in a tree, as counters may.
    let index = number("ifindex")?
        .and_then(|index| u32::try_from(index).ok())
        .unwrap_or(0);
    let values = InterfaceCounts {
        rx_bytes: count("rx_bytes")?,
        tx_bytes: count("tx_bytes")?,
        rx_packets: count("rx_packets")?,
        tx_packets: count("tx_packets")?,
        rx_dropped: count("rx_dropped")?.saturating_add(count("rx_missed_errors")?),
        tx_dropped: count("tx_dropped")?,
    };
    Ok(root.exists(&path).then_some(Counters { index, values }))
}
