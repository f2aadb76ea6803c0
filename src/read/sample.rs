//! Taking a sample of the kernel's counters.

mod text;

use std::collections::BTreeMap;
use std::time::Instant;

use crate::machine::Counts;
use crate::machine::sample::{CounterSelection, Counters, InterfaceCounts, Sample};
use crate::read::counts::counts;
use crate::read::files::read_number;
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
    let mut threads = BTreeMap::new();
    for &pid in &wanted.threads {
        threads.extend(threads::counts(root, pid)?.map(|counts| (pid, counts)));
    }
    let mut sample = Sample {
        at,
        interrupts,
        interfaces,
        threads,
        ..Sample::default()
    };
    if wanted.cpus {
        sample.times = counters(root, "/proc/stat", text::times)?;
        sample.softirqs = counters(root, "/proc/softirqs", text::softirqs)?;
        let online: Vec<u32> = sample.times.keys().copied().collect();
        let softnet = |text: &str| text::softnet(text, &online);
        sample.softnet = counters(root, "/proc/net/softnet_stat", softnet)?;
    }
    Ok(sample)
}

/// The counters of each CPU in a file; none if it is absent.
fn counters<T>(
    root: &Root,
    path: &str,
    parse: impl Fn(&str) -> Option<BTreeMap<u32, T>>,
) -> Result<BTreeMap<u32, T>, FileError> {
    let unread = || root.content_error(path, "does not hold counters as the kernel prints them");
    let counters = root.parse_opt(path, |text| parse(text).ok_or_else(unread))?;
    Ok(counters.unwrap_or_default())
}

/// An interface's counters; `None` if it is absent.
fn read_interface(root: &Root, name: &str) -> Result<Option<Counters>, FileError> {
    let path = format!("/sys/class/net/{name}");
    // They may be absent in a tree.
    let count = |name: &str| -> Result<u64, FileError> {
        let file = format!("{path}/statistics/{name}");
        Ok(read_number(root, &file)?.unwrap_or_default())
    };
    let index = read_number(root, &format!("{path}/ifindex"))?.unwrap_or_default();
    let values = InterfaceCounts {
        rx_bytes: count("rx_bytes")?,
        tx_bytes: count("tx_bytes")?,
        rx_packets: count("rx_packets")?,
        tx_packets: count("tx_packets")?,
        rx_dropped: count("rx_dropped")?.saturating_add(count("rx_missed_errors")?),
        tx_dropped: count("tx_dropped")?,
    };
    Ok(root.is_there(&path)?.then_some(Counters { index, values }))
}
