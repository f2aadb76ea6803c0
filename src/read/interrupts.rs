//! The handlers of each IRQ, and its counts on each CPU.
//!
//! `/sys/kernel/irq/N` has the handlers of one IRQ; kernels before 4.9 have only `/proc/interrupts` (`show_interrupts` in
//! `kernel/irq/proc.c`): a header of the online CPUs, then a row for each IRQ: its number, a count for each of these
//! CPUs, and text in which names of chips and actions may contain blanks.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, ErrorKind, Read};
use std::str::FromStr;

use bstr::ByteSlice as _;
use bstr::io::BufReadExt as _;

use crate::cpuset::MAX_CPUS;
use crate::machine::{CountRow, Counts};
use crate::read::files::{name_in, number_after, read_again_while};
use crate::root::{EMPTY, FileError, Result, Root};

pub const INTERRUPTS: &str = "/proc/interrupts";
/// A directory for each IRQ (`Documentation/ABI/testing/sysfs-kernel-irq`).
pub(super) const IRQS: &str = "/sys/kernel/irq";

pub type Interrupts = BTreeMap<u32, Vec<String>>;

pub fn counts(root: &Root, irqs: &BTreeSet<u32>) -> Result<Counts> {
    read_untorn(root, |source| read_counts(source, irqs))
}

/// Reads `/proc/interrupts` again if it was torn, as the kernel prints it without holding CPU hotplug off; a copy once.
pub(super) fn read_untorn<T>(
    root: &Root,
    read: impl Fn(&mut dyn Read) -> io::Result<T>,
) -> Result<T> {
    read_again_while(
        |read| root.is_real() && matches!(read, Err(FileError::Content { .. })),
        || root.read_in_parts(INTERRUPTS, &read),
    )
}

pub fn parse(source: &mut dyn Read) -> io::Result<Interrupts> {
    let mut interrupts = Interrupts::new();
    read_rows(source, &|_| true, |irq, _, tail| {
        interrupts
            .entry(irq)
            .or_insert_with(|| names(names_in(tail), ", "));
        Ok(())
    })?;
    Ok(interrupts)
}

/// Skips all other rows: on large machines the text has tens of MB, an interface a few rows.
pub fn read_counts(source: &mut dyn Read, irqs: &BTreeSet<u32>) -> io::Result<Counts> {
    let mut rows = BTreeMap::new();
    let cpus = read_rows(source, &|irq| irqs.contains(&irq), |irq, counts, tail| {
        let counts = numbers(counts.to_str().unwrap_or("?").split_ascii_whitespace())
            .ok_or("has a row with something else than counts in it; fix: run again")?;
        rows.insert(
            irq,
            CountRow {
                counts,
                whose: tail.trim().to_owned(),
            },
        );
        Ok(())
    })?;
    Ok(Counts { cpus, rows })
}

/// Streams the rows of the wanted IRQs; `each` gets number, counts, and the text behind them. Returns the CPU of each
/// column.
pub(super) fn read_rows(
    source: &mut dyn Read,
    wanted: &dyn Fn(u32) -> bool,
    mut each: impl FnMut(u32, &[u8], &str) -> Result<(), &'static str>,
) -> io::Result<Vec<u32>> {
    let invalid = |reason: String| io::Error::new(ErrorKind::InvalidData, reason);
    let (mut cpus, mut has_row, mut number) = (Vec::new(), false, 0);
    BufReader::with_capacity(1 << 18, source).for_byte_line_with_terminator(|line| {
        number += 1;
        let Some(line) = line.strip_suffix(b"\n") else {
            return Err(invalid(format!(
                "ends within line {number}; fix: run again, or copy /proc again if it is a copy"
            )));
        };
        if number == 1 {
            cpus = columns(&line.to_str_lossy()).collect();
            return Ok(!cpus.is_empty());
        }
        let Some(colon) = line.find_byte(b':') else {
            return Ok(true);
        };
        let (label, rest) = (&line[..colon], &line[colon + 1..]);
        has_row = true;
        // NMI, LOC, ERR and similar rows have no number and no handler; some have a single count.
        let irq = label
            .trim_ascii_start()
            .to_str()
            .unwrap_or_default()
            .parse();
        let Some(irq) = irq.ok().filter(|&irq| wanted(irq)) else {
            return Ok(true);
        };
        let (found, length) = skip_counts(rest, cpus.len());
        if found < cpus.len() {
            return Err(invalid(format!(
                "line {number} has {found} counts for {} CPUs; a CPU changed state while the file was read; \
                 fix: run again",
                cpus.len()
            )));
        }
        let (counts, tail) = rest.split_at(length);
        each(irq, counts, &tail.to_str_lossy()).map_err(|reason| invalid(reason.to_owned()))?;
        Ok(true)
    })?;
    let missing = if number == 0 {
        return Err(invalid(EMPTY.to_owned()));
    } else if cpus.is_empty() {
        "header line with CPUs"
    } else if has_row {
        return Ok(cpus);
    } else {
        "row below its header"
    };
    Err(invalid(format!(
        "has no {missing}; is /proc an incomplete copy?"
    )))
}

pub fn columns(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.lines()
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .map_while(|word| number_after(word, "CPU", MAX_CPUS))
}

pub(super) fn numbers<'a, T: FromStr>(words: impl Iterator<Item = &'a str>) -> Option<Vec<T>> {
    words.map(|word| word.parse().ok()).collect()
}

/// Width of a count as the kernel prints it (` %10u`), unless it is larger.
const COLUMN: usize = 11;

/// Returns how many of `cpus` counts there are, and where they end.
fn skip_counts(bytes: &[u8], cpus: usize) -> (usize, usize) {
    let is_end = |at: usize| matches!(bytes.get(at), None | Some(b' ' | b'\n'));
    // A large machine's text has millions of counts, so few characters are read. Columns that begin with a blank are
    // counts if the last one is: a row with one column too few has the chip's name there.
    let columns = bytes.get(..cpus * COLUMN).unwrap_or_default();
    let last = columns.rchunks(COLUMN).next().unwrap_or_default();
    let last = last.trim_ascii_start();
    if !last.is_empty()
        && last.iter().all(u8::is_ascii_digit)
        && columns
            .iter()
            .step_by(COLUMN)
            .filter(|&&first| first == b' ')
            .count()
            == cpus
        && is_end(columns.len())
    {
        return (cpus, columns.len());
    }
    let mut at = 0;
    for found in 0..cpus {
        let count = at + bytes[at..].iter().take_while(|&&byte| byte == b' ').count();
        let end = count
            + bytes[count..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
        if end == count || !is_end(end) {
            return (found, at);
        }
        at = end;
    }
    (cpus, at)
}

/// Counts become 0 in the same columns, so that the text changes only with the machine.
pub fn without_counts(text: &str) -> String {
    let cpus = columns(text).count();
    let row = |line: &str| {
        let Some((label, rest)) = line.split_once(':') else {
            return line.to_owned();
        };
        let (counts, tail) = rest.split_at(skip_counts(rest.as_bytes(), cpus).1);
        // The last digit of each count stays as a zero.
        let zeros =
            counts
                .chars()
                .zip(counts.chars().skip(1).chain([' ']))
                .map(|pair| match pair {
                    (' ', _) | (_, '0'..='9') => ' ',
                    _ => '0',
                });
        format!("{label}:{}{tail}", zeros.collect::<String>())
    };
    text.split_inclusive('\n').map(row).collect()
}

pub(super) fn names(text: &str, separator: &str) -> Vec<String> {
    text.split(separator)
        .map(name_in)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The text behind the last two blanks of a row; a row that ends in blanks has no names.
fn names_in(tail: &str) -> &str {
    let names = tail
        .rsplit_once("  ")
        .map_or(tail, |(_, names)| names)
        .trim_start();
    if tail.ends_with(' ') || is_trigger(names) {
        ""
    } else {
        names
    }
}

/// Whether `text` is the last column before the names: then a row without names has lost its trailing blanks.
fn is_trigger(text: &str) -> bool {
    let Some((chip, "edge" | "fasteoi" | "level")) = text.rsplit_once('-') else {
        return false;
    };
    chip.bytes().all(|byte| byte.is_ascii_digit())
        || ["APIC", "MSI", "MSIX", "PIC"]
            .iter()
            .any(|end| chip.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handler_names(row: &str) -> Vec<String> {
        let text = format!("           CPU0       CPU2       \n{row}\n");
        parsed(&text).unwrap().into_values().next().unwrap()
    }

    fn parsed(text: &str) -> Result<Interrupts, String> {
        parse(&mut text.as_bytes()).map_err(|error| error.to_string())
    }

    fn counted(text: &str, irqs: &[u32]) -> Result<Counts, String> {
        let irqs = irqs.iter().copied().collect();
        read_counts(&mut text.as_bytes(), &irqs).map_err(|error| error.to_string())
    }

    const NO_HEADER: &str = "has no header line with CPUs; is /proc an incomplete copy?";
    const NO_ROW: &str = "has no row below its header; is /proc an incomplete copy?";

    fn torn(line: usize, found: usize, expected: usize) -> String {
        format!(
            "line {line} has {found} counts for {expected} CPUs; a CPU changed state while the file was read; \
             fix: run again"
        )
    }

    fn cut_off_in(line: usize) -> String {
        format!("ends within line {line}; fix: run again, or copy /proc again if it is a copy")
    }

    #[test]
    fn names_in_every_dialect() {
        for (row, expected) in [
            (
                "  0:        124          0   IO-APIC   2-edge      timer",
                vec!["timer"],
            ),
            (
                " 81:         12          0   PCI-MSI-edge      mlx4-comp-1@pci:0000:82:00.0",
                vec!["mlx4-comp-1@pci:0000:82:00.0"],
            ),
            (
                " 28:  4294967295 4294967295 IR-PCI-MSI 12091392-edge      PCIe PME",
                vec!["PCIe PME"],
            ),
            (
                "  24:          0          1  PCI-MSIX-0000:40:00.0   0-edge      PCIe PME, aerdrv, pciehp",
                vec!["PCIe PME", "aerdrv", "pciehp"],
            ),
            (
                " 24:          1          0  Hyper-V PCIe MSI 1073741824-edge      mlx5_async0@pci:0002:00:02.0",
                vec!["mlx5_async0@pci:0002:00:02.0"],
            ),
            (
                "  5:          0          0   PCI-MSI  mlx5_comp1@pci:0002:00:00.0",
                vec!["mlx5_comp1@pci:0002:00:00.0"],
            ),
            (
                " 17:          0          0     GICv3  48 Edge      ACPI:Ged",
                vec!["ACPI:Ged"],
            ),
            (
                " 66:          0          0   xen-dyn    -event     vif0-q0-rx",
                vec!["vif0-q0-rx"],
            ),
            (
                " 90:          0          0  ITS-MSI 1048576 Edge      NICVF Mbox",
                vec!["NICVF Mbox"],
            ),
            (
                "177:    3017313          0   IO-APIC-level  eth0",
                vec!["eth0"],
            ),
            ("  3:          0          0   IO-APIC-edge    ", vec![]),
            ("  3:          0          0   IO-APIC   3-fasteoi ", vec![]),
            ("  3:          0          0   IO-APIC   3-fasteoi", vec![]),
            ("  3:          0          0   IO-APIC-edge", vec![]),
        ] {
            assert_eq!(handler_names(row), expected, "{row:?}");
        }
    }

    #[test]
    fn rows_without_a_number_are_passed_over() {
        let text = "   CPU0   CPU1   \nNMI:  1  2  Non-maskable interrupts\nERR:          0\n 9:  1  2  chip  a\n";
        assert_eq!(
            parsed(text),
            Ok(Interrupts::from([(9, vec!["a".to_owned()])]))
        );
    }

    #[test]
    fn empty_and_torn() {
        assert_eq!(parsed(""), Err(EMPTY.to_owned()));
        for text in ["\n", "   \n 9: 1 2 chip  a\n", "garbage\n"] {
            assert_eq!(parsed(text), Err(NO_HEADER.to_owned()), "{text:?}");
        }
        for (row, found) in [
            ("  9:          1", 1),
            ("  9:", 0),
            ("  9:    1   2x  chip  a", 1),
            ("  9:  1  IO-APIC  a", 1),
        ] {
            let text = format!("   CPU0   CPU1   \n{row}\n");
            assert_eq!(parsed(&text), Err(torn(2, found, 2)), "{row:?}");
        }
    }

    #[test]
    fn cut_off() {
        for (text, line) in [
            ("   CPU0   CP", 1),
            ("   CPU0   CPU1   \n 9:  1  2  chip  eth0-rx", 2),
            ("   ", 1),
        ] {
            assert_eq!(parsed(text), Err(cut_off_in(line)), "{text:?}");
        }
        for text in ["   CPU0   CPU1   \n", "   CPU0   CPU1   \n\n"] {
            assert_eq!(parsed(text), Err(NO_ROW.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn counts_become_nothing_and_all_else_stays() {
        let text = "           CPU0       CPU2       \n  9:         17   12345678  IR-PCI-MSI 12091392-edge      eth0-rx-0\n\
                    LOC:     282584     282585   Local timer interrupts\nERR:         12\n 10:  4294967295  1\n";
        let zeros = "           CPU0       CPU2       \n  9:          0          0  IR-PCI-MSI 12091392-edge      eth0-rx-0\n\
                     LOC:          0          0   Local timer interrupts\nERR:          0\n 10:           0  0\n";
        assert_eq!(without_counts(text), zeros);
        assert_eq!(parsed(text), parsed(zeros));
        let torn = "   CPU0   CPU1   \n  9:          1\n";
        assert_eq!(parsed(&without_counts(torn)), parsed(torn));
        assert_eq!(without_counts(""), "");
    }

    #[test]
    fn an_irq_is_found_by_number() {
        let text = "  CPU0\n  9:  1  chip  a\n 10:  1  chip  b\n  7:  1  chip  c\n";
        let interrupts = parsed(text).unwrap();
        for (irq, expected) in [(10, vec!["b"]), (7, vec!["c"]), (8, vec![])] {
            assert_eq!(interrupts.get(&irq).cloned().unwrap_or_default(), expected);
        }
    }

    #[test]
    fn counts_of_the_rows_that_were_asked_for() {
        let text = "           CPU0       CPU2       CPU7\n  9:         17 4294967295          3  PCI-MSI 0-edge      eth0\n\
                    10:  1  2\n 11:          0          5 10000000000  chip  a, b\nNMI:  1  2  3  Non\nERR:  4\n";
        let irqs = [9, 11, 12];
        assert_eq!(
            counted(text, &irqs),
            Err("has a row with something else than counts in it; fix: run again".to_owned())
        );
        let counts = counted(&text.replace("10000000000", "         10"), &irqs).unwrap();
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
        assert_eq!(counted(text, &[10]), Err(torn(3, 2, 3)));
        let cut = text.trim_end();
        assert_eq!(counted(cut, &[]), Err(cut_off_in(6)));
        assert_eq!(counted("", &[]), Err(EMPTY.to_owned()));
    }
}
