//! Interrupt counts by CPU, from `/proc/interrupts`. Only the requested rows are parsed: on large machines the text has
//! tens of MB, and an interface has a few rows of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::machine::{CountRow, Counts};
use crate::read::files::read_list;
use crate::read::interrupts::{INTERRUPTS, IRQS, InterruptsError, read_rows, untorn};
use crate::root::{FileError, Root};

/// The CPUs in `per_cpu_count`.
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

/// The counts of these IRQs since boot.
pub fn counts(root: &Root, irqs: &BTreeSet<u32>) -> Result<Counts, FileError> {
    untorn(root, || {
        root.read_in_parts(INTERRUPTS, |source| read(source, irqs))
    })
}

/// The counts of these IRQs since boot by possible CPU, from `/sys/kernel/irq/N/per_cpu_count` where the kernel has these
/// files (`Documentation/ABI/testing/sysfs-kernel-irq`): `/proc/interrupts` has all IRQs of the machine.
pub fn counts_of(root: &Root, irqs: &BTreeSet<u32>) -> Result<Counts, FileError> {
    let file = |irq: u32, name: &str| root.read_opt(&format!("{IRQS}/{irq}/{name}"));
    let mut cpus: Vec<u32> = Vec::new();
    let mut rows = BTreeMap::new();
    for &irq in irqs {
        let Some(text) = file(irq, "per_cpu_count")? else {
            continue;
        };
        let counts: Option<Vec<u32>> = text.trim_end().split(',').map(count).collect();
        let counts = counts.ok_or_else(|| {
            root.content_error(
                &format!("{IRQS}/{irq}/per_cpu_count"),
                "is not a list of counts",
            )
        })?;
        if cpus.is_empty() {
            let possible = read_list(root, POSSIBLE)?;
            cpus = possible.map_or_else(
                || (0..).take(counts.len()).collect(),
                |cpus| cpus.iter().collect(),
            );
        }
        if counts.len() != cpus.len() {
            let path = format!("{IRQS}/{irq}/per_cpu_count");
            let (found, expected) = (counts.len(), cpus.len());
            return Err(root.content_error(
                &path,
                format!("has {found} counts for {expected} possible CPUs"),
            ));
        }
        let whose: Result<Vec<_>, _> = ["chip_name", "hwirq", "actions"]
            .map(|name| file(irq, name))
            .into_iter()
            .collect();
        let whose: Vec<String> = whose?
            .into_iter()
            .flatten()
            .map(|text| text.trim_end().to_owned())
            .collect();
        rows.insert(
            irq,
            CountRow {
                counts,
                whose: whose.join(" "),
            },
        );
    }
    if rows.is_empty() {
        counts(root, irqs)
    } else {
        Ok(Counts { cpus, rows })
    }
}

/// Reads the counts of these IRQs and skips all other rows.
pub fn read(
    source: &mut dyn io::Read,
    irqs: &BTreeSet<u32>,
) -> io::Result<Result<Counts, InterruptsError>> {
    let (mut rows, mut is_count) = (BTreeMap::new(), true);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let cpus = read_rows(source, &|irq| irqs.contains(&irq), |row| {
        let counts = text(row.counts);
        let counts: Option<Vec<u32>> = counts.split_ascii_whitespace().map(count).collect();
        is_count &= counts.is_some();
        let whose = text(row.tail);
        rows.extend(counts.map(|counts| (row.irq, CountRow { counts, whose })));
    })?;
    Ok(match cpus {
        Ok(_) if !is_count => Err(InterruptsError::NoCount),
        cpus => cpus.map(|cpus| Counts { cpus, rows }),
    })
}

/// A count, which the kernel keeps in 32 bits.
fn count(digits: &str) -> Option<u32> {
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, irqs: &BTreeSet<u32>) -> Result<Counts, InterruptsError> {
        read(&mut text.as_bytes(), irqs).unwrap()
    }

    #[test]
    fn counts_of_the_rows_that_were_asked_for() {
        let text = "           CPU0       CPU2       CPU7\n  9:         17 4294967295          3  PCI-MSI 0-edge      eth0\n\
                    10:  1  2\n 11:          0          5 10000000000  chip  a, b\nNMI:  1  2  3  Non\nERR:  4\n";
        // More than 32 bits are no count of any kernel.
        let irqs = BTreeSet::from([9, 11, 12]);
        assert_eq!(parse(text, &irqs), Err(InterruptsError::NoCount));
        let counts = parse(&text.replace("10000000000", "         10"), &irqs).unwrap();
        assert_eq!(counts.cpus, [0, 2, 7]);
        let rows: Vec<_> = counts
            .rows
            .iter()
            .map(|(irq, row)| (*irq, &row.counts[..], &row.whose[..]))
            .collect();
        let expected: [(u32, &[u32], &str); 2] = [
            (9, &[17, u32::MAX, 3], "PCI-MSI 0-edge      eth0"),
            (11, &[0, 5, 10], "chip  a, b"),
        ];
        assert_eq!(rows, expected);
        assert_eq!(
            parse(text, &BTreeSet::from([10])),
            Err(InterruptsError::Torn {
                line: 3,
                found: 2,
                expected: 3
            })
        );
        let cut = text.trim_end();
        assert_eq!(
            parse(cut, &BTreeSet::new()),
            Err(InterruptsError::CutOff { line: 6 })
        );
        assert_eq!(parse("", &BTreeSet::new()), Err(InterruptsError::NoHeader));
    }
}
