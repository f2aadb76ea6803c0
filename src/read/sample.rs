//! Reads a sample of the kernel's counters.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::cpuset::MAX_CPUS;
use crate::machine::Counts;
use crate::machine::files::NET;
use crate::machine::sample::{
    CounterSelection, Counters, CpuCounts, InterfaceCounts, Row as _, Sample,
};
use crate::read::files::{number, number_after};
use crate::read::interrupts::{columns, counts, numbers};
use crate::read::{queue_counts, threads};
use crate::root::{Result, Root};

pub fn sample(root: &Root, wanted: &CounterSelection, since: Instant) -> Result<Sample> {
    let queues = queue_counts::read(root, &wanted.queues)?;
    let interrupts = if wanted.irqs.is_empty() {
        Counts::default()
    } else {
        counts(root, &wanted.irqs)?
    };
    let mut sample = Sample {
        at: since.elapsed(),
        interrupts,
        queues,
        ..Sample::default()
    };
    for name in &wanted.interfaces {
        sample
            .interfaces
            .extend(read_interface(root, name)?.map(|counters| (name.clone(), counters)));
    }
    for &pid in &wanted.threads {
        sample
            .threads
            .extend(threads::counts(root, pid)?.map(|counts| (pid, counts)));
    }
    if wanted.cpus {
        let times = counters(root, "/proc/stat", times)?;
        let online: Vec<u32> = times.keys().copied().collect();
        let softnet = |text: &str| softnet(text, &online);
        sample.cpus = counts_of_online_cpus(&[
            times,
            counters(root, "/proc/softirqs", softirqs)?,
            counters(root, "/proc/net/softnet_stat", softnet)?,
        ]);
    }
    Ok(sample)
}

fn read_interface(root: &Root, name: &str) -> Result<Option<Counters>> {
    let net = root.dir(format!("{NET}/{name}"));
    let statistics = net.dir("statistics");
    // A tree may lack them.
    let count = |name| -> Result<u64> { Ok(statistics.read_as(name, number)?.unwrap_or_default()) };
    let index = net.read_as("ifindex", number)?.unwrap_or_default();
    let values = InterfaceCounts {
        rx_bytes: count("rx_bytes")?,
        tx_bytes: count("tx_bytes")?,
        rx_packets: count("rx_packets")?,
        tx_packets: count("tx_packets")?,
        rx_dropped: count("rx_dropped")?.saturating_add(count("rx_missed_errors")?),
        tx_dropped: count("tx_dropped")?,
    };
    Ok(root
        .is_there(&net.path)?
        .then_some(Counters { index, values }))
}

/// An offline CPU still has a column in `/proc/softirqs`. A tree may lack files.
fn counts_of_online_cpus(files: &[BTreeMap<u32, CpuCounts>; 3]) -> BTreeMap<u32, CpuCounts> {
    let is_online = |cpu: &u32| {
        let mut files = files.iter().filter(|file| !file.is_empty());
        files.all(|file| file.contains_key(cpu))
    };
    let mut cpus: BTreeMap<u32, CpuCounts> = BTreeMap::new();
    for (cpu, counts) in files.iter().flatten().filter(|(cpu, _)| is_online(cpu)) {
        cpus.entry(*cpu).or_default().add(*counts);
    }
    cpus
}

/// `None` if a needed line has not the kernel's format.
type ByCpu = Option<BTreeMap<u32, CpuCounts>>;

fn counters(
    root: &Root,
    path: &str,
    parse: impl Fn(&str) -> ByCpu,
) -> Result<BTreeMap<u32, CpuCounts>> {
    Ok(root
        .read_as(path, |text| {
            parse(text).ok_or("does not hold counters as the kernel prints them")
        })?
        .unwrap_or_default())
}

fn times(stat: &str) -> ByCpu {
    let line = |line: &str| {
        let (cpu, ticks) = line.split_once(' ')?;
        let ticks = numbers(ticks.split_ascii_whitespace())?;
        let [user, nice, system, _idle, _iowait, irq, softirq, ..] = ticks[..] else {
            return None;
        };
        Some((
            number_after(cpu, "", MAX_CPUS)?,
            CpuCounts {
                busy: [user, nice, system, irq, softirq]
                    .into_iter()
                    .fold(0, u64::saturating_add),
                irq,
                softirq,
                ..CpuCounts::default()
            },
        ))
    };
    // `cpu` without a number is the sum of all CPUs.
    stat.lines()
        .filter_map(|line| line.strip_prefix("cpu"))
        .filter(|line| !line.starts_with(' '))
        .map(line)
        .collect()
}

fn softirqs(text: &str) -> ByCpu {
    let row = |name: &str| -> Option<Vec<u32>> {
        let line = text
            .lines()
            .map(str::trim_start)
            .find_map(|line| line.strip_prefix(name))?;
        numbers(line.split_ascii_whitespace())
    };
    let (rx, tx) = (row("NET_RX:")?, row("NET_TX:")?);
    // A column for each possible CPU, online or not.
    let cpus: Vec<u32> = columns(text).collect();
    let is_whole = cpus.len() == rx.len() && cpus.len() == tx.len();
    let both = rx.into_iter().zip(tx).map(|(rx, tx)| CpuCounts {
        net_rx: rx.into(),
        net_tx: tx.into(),
        ..CpuCounts::default()
    });
    is_whole.then(|| cpus.into_iter().zip(both).collect())
}

/// `online` gives the CPU of each line on kernels before 5.10, which do not print it.
fn softnet(text: &str, online: &[u32]) -> ByCpu {
    let line = |(at, line): (usize, &str)| {
        let words = line
            .split_ascii_whitespace()
            .map(|word| u32::from_str_radix(word, 16).ok());
        let words: Vec<u32> = words.collect::<Option<_>>()?;
        let [processed, dropped, squeezed, ..] = words[..] else {
            return None;
        };
        let cpu = *words.get(12).or_else(|| online.get(at))?;
        (cpu < MAX_CPUS).then_some((
            cpu,
            CpuCounts {
                processed: processed.into(),
                dropped: dropped.into(),
                squeezed: squeezed.into(),
                // Absent before Linux 2.6.35.
                rps: words.get(9).copied().unwrap_or_default().into(),
                ..CpuCounts::default()
            },
        ))
    };
    text.lines().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn time_by_cpu() {
        let text = "cpu  10 20 30 40 50 60 70 80 0 0\ncpu0 1 2 3 400 5 6 7 8 1 0\ncpu12 1 1 1 1 1 1 1\n\
                    intr 9 9\nctxt 5\n";
        let expected = [
            (
                0,
                CpuCounts {
                    busy: 19,
                    irq: 6,
                    softirq: 7,
                    ..CpuCounts::default()
                },
            ),
            (
                12,
                CpuCounts {
                    busy: 5,
                    irq: 1,
                    softirq: 1,
                    ..CpuCounts::default()
                },
            ),
        ];
        assert_eq!(times(text), Some(BTreeMap::from(expected)));
        for bad in [
            "cpu13 1 2 3\n",
            "cpux 1 1 1 1 1 1 1\n",
            "cpu1 1 1 1 1 1 1 x\n",
        ] {
            assert_eq!(times(&format!("{text}{bad}")), None, "{bad}");
        }
    }

    #[test]
    fn softirqs_by_cpu() {
        let text = "                    CPU0       CPU1       \n          HI:          0          1\n      NET_TX:          3          4\n      NET_RX: 4294967295          6\n";
        let expected = [
            (
                0,
                CpuCounts {
                    net_rx: u32::MAX.into(),
                    net_tx: 3,
                    ..CpuCounts::default()
                },
            ),
            (
                1,
                CpuCounts {
                    net_rx: 6,
                    net_tx: 4,
                    ..CpuCounts::default()
                },
            ),
        ];
        assert_eq!(softirqs(text), Some(BTreeMap::from(expected)));
        for bad in [
            "",
            &text.replace("4294967295", "4294967296"),
            &text.replace(" 6", ""),
        ] {
            assert_eq!(softirqs(bad), None, "{bad}");
        }
    }

    #[test]
    fn backlogs_by_cpu_in_both_dialects() {
        let new = "0000000a 00000001 00000002 0 0 0 0 0 0 00000004 00000000 00000000 00000000 0 0\n\
                   ffffffff 00000000 00000000 0 0 0 0 0 0 00000000 00000000 00000000 00000007 0 0\n";
        let first = CpuCounts {
            processed: 10,
            dropped: 1,
            squeezed: 2,
            rps: 4,
            ..CpuCounts::default()
        };
        let second = CpuCounts {
            processed: u32::MAX.into(),
            ..CpuCounts::default()
        };
        assert_eq!(
            softnet(new, &[0, 1]),
            Some(BTreeMap::from([(0, first), (7, second)]))
        );
        let old = "0000000a 00000001 00000002 0 0 0 0 0 0 00000004 00000000\nffffffff 00000000 00000000 0 0 0 0 0 0 0 0\n";
        assert_eq!(
            softnet(old, &[0, 5]),
            Some(BTreeMap::from([(0, first), (5, second)]))
        );
        for bad in ["garbage\n", "1 2\n", "1 2 3\n1 2 3\n"] {
            assert_eq!(softnet(bad, &[0]), None, "{bad}");
        }
    }

    #[test]
    fn cpus_that_some_file_leaves_out_are_offline() {
        let busy = CpuCounts {
            busy: 3,
            ..CpuCounts::default()
        };
        let polls = CpuCounts {
            net_rx: 5,
            ..CpuCounts::default()
        };
        let both = CpuCounts { busy: 3, ..polls };
        let by_cpu = |counts, cpus: &[u32]| cpus.iter().map(|&cpu| (cpu, counts)).collect();
        let (times, softirqs) = (by_cpu(busy, &[0, 2]), by_cpu(polls, &[0, 1, 2, 3]));
        let softnet = BTreeMap::new();
        let expected: BTreeMap<u32, CpuCounts> = by_cpu(both, &[0, 2]);
        assert_eq!(counts_of_online_cpus(&[times, softirqs, softnet]), expected);
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "(cpu[0-9]{0,11}( [0-9]{1,22}){0,9}\n|NET_RX:|CPU[0-9]| |[0-9a-f]{1,12}|\n|\\PC){0,40}") {
            times(&text);
            softirqs(&text);
            softnet(&text, &[0, 1]);
        }
    }
}
