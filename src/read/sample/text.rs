//! The texts of `/proc/stat`, `/proc/softirqs` and `/proc/net/softnet_stat`; `None` where a line that is needed is not as
//! the kernel prints it.

use std::collections::BTreeMap;

use crate::cpuset::MAX_CPUS;
use crate::machine::sample::CpuCounts;
use crate::read::files::numbered;
use crate::read::interrupts::columns;

pub(super) fn times(stat: &str) -> Option<BTreeMap<u32, CpuCounts>> {
    let line = |line: &str| {
        let (cpu, ticks) = line.split_once(' ')?;
        let ticks = ticks.split_ascii_whitespace().map(|word| word.parse().ok());
        let ticks: Vec<u64> = ticks.collect::<Option<_>>()?;
        let [user, nice, system, _idle, _iowait, irq, softirq, ..] = ticks[..] else {
            return None;
        };
        let busy = [user, nice, system, irq, softirq]
            .into_iter()
            .fold(0, u64::saturating_add);
        Some((
            numbered(cpu, "", MAX_CPUS)?,
            CpuCounts {
                busy,
                irq,
                softirq,
                ..CpuCounts::default()
            },
        ))
    };
    // `cpu` alone is the sum of all.
    let lines = stat.lines().filter_map(|line| line.strip_prefix("cpu"));
    lines
        .filter(|line| !line.starts_with(' '))
        .map(line)
        .collect()
}

pub(super) fn softirqs(text: &str) -> Option<BTreeMap<u32, CpuCounts>> {
    let row = |name: &str| -> Option<Vec<u32>> {
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'));
        let words = line?.split_ascii_whitespace();
        words.map(|word| word.parse().ok()).collect()
    };
    let (rx, tx) = (row("NET_RX")?, row("NET_TX")?);
    // A column for each possible CPU, online or not.
    let cpus: Vec<u32> = columns(text).collect();
    if cpus.len() != rx.len() || cpus.len() != tx.len() {
        return None;
    }
    let rows = cpus.into_iter().zip(rx.into_iter().zip(tx));
    let counts = |(net_rx, net_tx): (u32, u32)| CpuCounts {
        net_rx: net_rx.into(),
        net_tx: net_tx.into(),
        ..CpuCounts::default()
    };
    Some(rows.map(|(cpu, both)| (cpu, counts(both))).collect())
}

/// `online` gives the CPU of each line on kernels before 5.10, which do not print it.
pub(super) fn softnet(text: &str, online: &[u32]) -> Option<BTreeMap<u32, CpuCounts>> {
    let line = |(at, line): (usize, &str)| {
        let hex = |word| u32::from_str_radix(word, 16).ok();
        let words: Option<Vec<u32>> = line.split_ascii_whitespace().map(hex).collect();
        let words = words?;
        let [processed, dropped, squeezed, ..] = words[..] else {
            return None;
        };
        let cpu = words.get(12).or_else(|| online.get(at)).copied()?;
        Some((
            (cpu < MAX_CPUS).then_some(cpu)?,
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
        let one = CpuCounts {
            processed: 10,
            dropped: 1,
            squeezed: 2,
            rps: 4,
            ..CpuCounts::default()
        };
        let two = CpuCounts {
            processed: u32::MAX.into(),
            ..CpuCounts::default()
        };
        assert_eq!(
            softnet(new, &[0, 1]),
            Some(BTreeMap::from([(0, one), (7, two)]))
        );
        let old = "0000000a 00000001 00000002 0 0 0 0 0 0 00000004 00000000\nffffffff 00000000 00000000 0 0 0 0 0 0 0 0\n";
        assert_eq!(
            softnet(old, &[0, 5]),
            Some(BTreeMap::from([(0, one), (5, two)]))
        );
        for bad in ["garbage\n", "1 2\n", "1 2 3\n1 2 3\n"] {
            assert_eq!(softnet(bad, &[0]), None, "{bad}");
        }
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
