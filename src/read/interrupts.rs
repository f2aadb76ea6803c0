//! The names of each IRQ's handlers.
//!
//! `/sys/kernel/irq/N/actions` lists those of one IRQ and needs no interpretation. Kernels before 4.9 have only
//! `/proc/interrupts`, with a count for every CPU and every IRQ of the machine.
//!
//! The format of the latter is the kernel's (`show_interrupts` in `kernel/irq/proc.c`): a header of the online CPUs by
//! id, then a row an IRQ: its number, a count for each of those CPUs, and text in which chip names and action names may
//! both hold blanks.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io::{self, Read};

use crate::cpuset::{CpuSet, MAX_CPUS};
use crate::read::files::again_while;
use crate::read::files::{name_in, numbered};
use crate::root::{FileError, Root};

/// The counts and handlers of all IRQs.
pub const INTERRUPTS: &str = "/proc/interrupts";
/// The directories of single IRQs (`Documentation/ABI/testing/sysfs-kernel-irq`).
pub(super) const IRQS: &str = "/sys/kernel/irq";

/// The handlers of a machine's IRQs, read when they are asked for.
#[derive(Debug)]
pub struct Handlers<'a> {
    root: &'a Root,
    listed: OnceCell<Interrupts>,
}

/// The names of all handlers by IRQ, as `/proc/interrupts` has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interrupts(BTreeMap<u32, String>);

/// A text that the kernel does not print.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InterruptsError {
    /// No header line.
    #[error("has no header line with CPUs; is /proc an incomplete copy?")]
    NoHeader,
    /// No line after the header. Every kernel has some.
    #[error("has no row below its header; is /proc an incomplete copy?")]
    NoRow,
    /// The last line has no newline.
    #[error("ends within line {line}; fix: run again, or copy /proc again if it is a copy")]
    CutOff {
        /// The line number, from 1.
        line: usize,
    },
    /// A row has something else among its counts.
    #[error("has a row with something else than counts in it; fix: run again")]
    NoCount,
    /// A row ends within its counts, as after a read that raced with a CPU going on or offline.
    #[error(
        "line {line} has {found} counts for {expected} CPUs; a CPU changed state while the file was read; fix: run again"
    )]
    Torn {
        /// The line number, from 1.
        line: usize,
        /// Counts found in it.
        found: usize,
        /// CPUs in the header.
        expected: usize,
    },
}

impl<'a> Handlers<'a> {
    pub fn new(root: &'a Root) -> Self {
        Self {
            root,
            listed: OnceCell::new(),
        }
    }

    /// The names of an IRQ's handlers, as the drivers gave them; empty for an IRQ without a handler.
    pub fn of(&self, irq: u32) -> Result<Vec<String>, FileError> {
        let parse = |names: &str| {
            let names = names
                .lines()
                .next()
                .unwrap_or_default()
                .split(',')
                .filter(|name| !name.is_empty());
            Ok(names.map(|name| name_in(name).to_owned()).collect())
        };
        if let Some(names) = self
            .root
            .parse_opt(&format!("{IRQS}/{irq}/actions"), parse)?
        {
            return Ok(names);
        }
        Ok(self.listed()?.actions(irq).map(str::to_owned).collect())
    }

    /// All IRQs, by `/proc/interrupts`.
    pub(crate) fn listed(&self) -> Result<&Interrupts, FileError> {
        if let Some(listed) = self.listed.get() {
            return Ok(listed);
        }
        let listed = untorn(self.root, || {
            self.root.read_in_parts(INTERRUPTS, Interrupts::read)
        })?;
        Ok(self.listed.get_or_init(|| listed))
    }
}

/// Reads `/proc/interrupts`, again if it was torn.
pub(super) fn untorn<T>(
    root: &Root,
    read: impl Fn() -> Result<Result<T, InterruptsError>, FileError>,
) -> Result<T, FileError> {
    // The kernel prints the file without holding CPU hotplug off, so a live read can be torn. A copy can
    // not get better.
    let torn = |read: &Result<Result<T, InterruptsError>, FileError>| {
        root.is_real() && matches!(read, Ok(Err(_)))
    };
    again_while(torn, read)?.map_err(|error| root.content_error(INTERRUPTS, error.to_string()))
}

impl Interrupts {
    /// Parses the whole text.
    pub fn parse(text: &str) -> Result<Self, InterruptsError> {
        // A text in memory can be read.
        Self::read(&mut text.as_bytes()).unwrap_or(Err(InterruptsError::NoHeader))
    }

    fn read(source: &mut dyn Read) -> io::Result<Result<Self, InterruptsError>> {
        let mut names = BTreeMap::new();
        let read = read_rows(source, &|_| true, |row| {
            let text = String::from_utf8_lossy(names_in(row.tail)).into_owned();
            names.entry(row.irq).or_insert(text);
        });
        Ok(read?.map(|_| Self(names)))
    }

    /// The CPUs in the header of the text: those that were online. Empty without a header.
    pub fn cpus(text: &str) -> CpuSet {
        columns(text).collect()
    }

    /// The IRQs that have a number.
    pub fn irqs(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.keys().copied()
    }

    /// The names of an IRQ's handlers, as the drivers gave them; none for an IRQ without a handler.
    pub fn actions(&self, irq: u32) -> impl Iterator<Item = &str> {
        let names = self
            .0
            .get(&irq)
            .into_iter()
            .flat_map(|names| names.split(", "));
        names.map(name_in).filter(|name| !name.is_empty())
    }
}

/// A row of an IRQ with a number.
pub(super) struct Row<'a> {
    pub(super) irq: u32,
    /// Blanks, and a number for each CPU.
    pub(super) counts: &'a [u8],
    /// What is behind them.
    pub(super) tail: &'a [u8],
}

/// Reads the rows of the IRQs that are wanted, while the text comes: on a large machine it has a hundred megabytes and
/// more. Returns the CPU of each column.
pub(super) fn read_rows(
    source: &mut dyn Read,
    wanted: &dyn Fn(u32) -> bool,
    mut each: impl FnMut(Row<'_>),
) -> io::Result<Result<Vec<u32>, InterruptsError>> {
    let mut parser = Parser::default();
    let mut buffer = vec![0; 1 << 18];
    let mut filled = 0;
    loop {
        let read = match source.read(&mut buffer[filled..]) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        filled += read;
        let mut used = 0;
        for newline in memchr::memchr_iter(b'\n', &buffer[..filled]) {
            match parser.line(&buffer[used..newline], wanted) {
                Ok(row) => row.into_iter().for_each(&mut each),
                Err(error) => return Ok(Err(error)),
            }
            used = newline + 1;
        }
        if read == 0 {
            return Ok(parser.finish(used < filled));
        }
        buffer.copy_within(used..filled, 0);
        filled -= used;
        if filled == buffer.len() {
            buffer.resize(2 * filled, 0);
        }
    }
}

/// The CPU of each column, by the header.
pub(crate) fn columns(text: &str) -> impl Iterator<Item = u32> + '_ {
    let header = text.lines().next().unwrap_or_default();
    header
        .split_ascii_whitespace()
        .map_while(|word| numbered(word, "CPU", MAX_CPUS))
}

/// What is known of the text so far.
#[derive(Debug, Default)]
struct Parser {
    cpus: Vec<u32>,
    line: usize,
    has_row: bool,
}

impl Parser {
    fn line<'a>(
        &mut self,
        line: &'a [u8],
        wanted: &dyn Fn(u32) -> bool,
    ) -> Result<Option<Row<'a>>, InterruptsError> {
        self.line += 1;
        if self.line == 1 {
            self.cpus = columns(&String::from_utf8_lossy(line)).collect();
            return if self.cpus.is_empty() {
                Err(InterruptsError::NoHeader)
            } else {
                Ok(None)
            };
        }
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            return Ok(None);
        };
        self.has_row = true;
        // NMI, LOC, ERR and similar rows have no number and no handler; some have a single count.
        let label = std::str::from_utf8(line[..colon].trim_ascii_start()).unwrap_or_default();
        let Some(irq) = label.parse().ok().filter(|irq| wanted(*irq)) else {
            return Ok(None);
        };
        let (rest, expected) = (&line[colon + 1..], self.cpus.len());
        let (found, length) = match counts_in_columns(rest, expected) {
            Some(length) => (expected, length),
            None => skip_counts(rest, expected),
        };
        if found < expected {
            return Err(InterruptsError::Torn {
                line: self.line,
                found,
                expected,
            });
        }
        let (counts, tail) = rest.split_at(length);
        Ok(Some(Row { irq, counts, tail }))
    }

    /// The CPU of each column, at the end of the text; `cut`: within a line.
    fn finish(self, cut: bool) -> Result<Vec<u32>, InterruptsError> {
        let line = self.line + 1;
        match (self.cpus.is_empty(), self.has_row) {
            _ if cut => Err(InterruptsError::CutOff { line }),
            (true, _) => Err(InterruptsError::NoHeader),
            (_, false) => Err(InterruptsError::NoRow),
            _ => Ok(self.cpus),
        }
    }
}

/// How long the counts of a row are, where each is in the column that kernels of all ages print it in: a blank and
/// ten places. Then there is no need to look at every digit: columns that begin with a blank one after another are
/// counts up to the last, if that is one.
fn counts_in_columns(row: &[u8], cpus: usize) -> Option<usize> {
    const COLUMN: usize = 11;
    let counts = row.get(..cpus * COLUMN)?;
    // All of them, whatever is found: without a way out in between it takes half the time.
    let blanks = counts
        .iter()
        .step_by(COLUMN)
        .filter(|first| **first == b' ')
        .count()
        == cpus;
    // A row with one count too few has the name of a chip there.
    let last = counts
        .get(counts.len().checked_sub(COLUMN)?..)?
        .trim_ascii_start();
    let is_count = last.last().is_some() && last.iter().all(u8::is_ascii_digit);
    (blanks && is_count && row.get(counts.len()).is_none_or(|&after| after == b' '))
        .then_some(counts.len())
}

/// The text with every count 0, in the same columns: it parses to the same rows, and is the same text as long as
/// the machine is.
pub fn without_counts(text: &str) -> String {
    let mut lines = text.split_inclusive('\n');
    let header = lines.next().unwrap_or_default();
    let cpus = header
        .split_ascii_whitespace()
        .take_while(|word| word.starts_with("CPU"))
        .count();
    let row = |row: &str| {
        let Some((label, rest)) = row.split_once(':') else {
            return row.to_owned();
        };
        let (rest, end) = rest
            .strip_suffix('\n')
            .map_or((rest, ""), |rest| (rest, "\n"));
        let (_, length) = skip_counts(rest.as_bytes(), cpus);
        let (counts, tail) = rest.split_at(length);
        let counts: Vec<char> = counts.chars().collect();
        let zero = |(at, &c): (usize, &char)| match counts.get(at + 1) {
            _ if c == ' ' => ' ',
            Some('0'..='9') => ' ',
            _ => '0',
        };
        let zeros: String = counts.iter().enumerate().map(zero).collect();
        format!("{label}:{zeros}{tail}{end}")
    };
    header.to_owned() + &lines.map(row).collect::<String>()
}

/// Steps over at most `cpus` numbers; how many there were, and where they end.
fn skip_counts(bytes: &[u8], cpus: usize) -> (usize, usize) {
    let mut at = 0;
    for found in 0..cpus {
        let start = at + bytes[at..].iter().take_while(|&&b| b == b' ').count();
        let end = start
            + bytes[start..]
                .iter()
                .take_while(|b| b.is_ascii_digit())
                .count();
        let ends = bytes.get(end).is_none_or(|&b| b == b' ');
        if end == start || !ends {
            return (found, at);
        }
        at = end;
    }
    (cpus, at)
}

/// The handlers' names: what follows the last two blanks of a row. A row that ends in blanks has none.
fn names_in(tail: &[u8]) -> &[u8] {
    let blanks = tail.windows(2).rposition(|pair| pair == b"  ");
    let names = tail[blanks.unwrap_or(0)..].trim_ascii_start();
    if tail.ends_with(b" ") || is_trigger(names) {
        &[]
    } else {
        names
    }
}

/// `524288-edge`, `IO-APIC-fasteoi`: the last column before the names, which ends a row without any in
/// texts that have lost their trailing blanks.
fn is_trigger(text: &[u8]) -> bool {
    let triggers: [&[u8]; 3] = [b"-edge", b"-fasteoi", b"-level"];
    let chips: [&[u8]; 4] = [b"APIC", b"MSI", b"MSIX", b"PIC"];
    let chip = triggers
        .iter()
        .find_map(|trigger| text.strip_suffix(*trigger));
    chip.is_some_and(|chip| {
        chip.iter().all(u8::is_ascii_digit) || chips.iter().any(|end| chip.ends_with(end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(row: &str) -> Vec<String> {
        let text = format!("           CPU0       CPU2       \n{row}\n");
        let read = Interrupts::parse(&text).unwrap();
        let irq = read.irqs().next().unwrap();
        read.actions(irq).map(str::to_owned).collect()
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
            assert_eq!(one(row), expected, "{row:?}");
        }
    }

    #[test]
    fn rows_without_a_number_are_passed_over() {
        let text = "   CPU0   CPU1   \nNMI:  1  2  Non-maskable interrupts\nERR:          0\n 9:  1  2  chip  a\n";
        let read = Interrupts::parse(text).unwrap();
        assert_eq!(read, Interrupts(BTreeMap::from([(9, "a".to_owned())])));
    }

    #[test]
    fn empty_and_torn() {
        for text in ["", "\n", "   \n 9: 1 2 chip  a\n", "garbage\n"] {
            assert_eq!(
                Interrupts::parse(text),
                Err(InterruptsError::NoHeader),
                "{text:?}"
            );
        }
        for (row, found) in [
            ("  9:          1", 1),
            ("  9:", 0),
            ("  9:    1   2x  chip  a", 1),
            ("  9:  1  IO-APIC  a", 1),
        ] {
            let text = format!("   CPU0   CPU1   \n{row}\n");
            assert_eq!(
                Interrupts::parse(&text),
                Err(InterruptsError::Torn {
                    line: 2,
                    found,
                    expected: 2
                }),
                "{row:?}"
            );
        }
    }

    #[test]
    fn cut_off() {
        for (text, line) in [
            ("   CPU0   CP", 1),
            ("   CPU0   CPU1   \n 9:  1  2  chip  eth0-rx", 2),
            ("   ", 1),
        ] {
            assert_eq!(
                Interrupts::parse(text),
                Err(InterruptsError::CutOff { line }),
                "{text:?}"
            );
        }
        for text in ["   CPU0   CPU1   \n", "   CPU0   CPU1   \n\n"] {
            assert_eq!(
                Interrupts::parse(text),
                Err(InterruptsError::NoRow),
                "{text:?}"
            );
        }
    }

    #[test]
    fn counts_become_nothing_and_all_else_stays() {
        let text = "           CPU0       CPU2       \n  9:         17   12345678  IR-PCI-MSI 12091392-edge      eth0-rx-0\n\
                    LOC:     282584     282585   Local timer interrupts\nERR:         12\n 10:  4294967295  1\n";
        let zeros = "           CPU0       CPU2       \n  9:          0          0  IR-PCI-MSI 12091392-edge      eth0-rx-0\n\
                     LOC:          0          0   Local timer interrupts\nERR:          0\n 10:           0  0\n";
        assert_eq!(without_counts(text), zeros);
        assert_eq!(Interrupts::parse(text), Interrupts::parse(zeros));
        let torn = "   CPU0   CPU1   \n  9:          1\n";
        assert_eq!(
            Interrupts::parse(&without_counts(torn)),
            Interrupts::parse(torn)
        );
        assert_eq!(without_counts(""), "");
    }

    #[test]
    fn an_irq_is_found_by_number() {
        let text = "  CPU0\n  9:  1  chip  a\n 10:  1  chip  b\n  7:  1  chip  c\n";
        let interrupts = Interrupts::parse(text).unwrap();
        for (irq, expected) in [(10, vec!["b"]), (7, vec!["c"]), (8, vec![])] {
            assert_eq!(interrupts.actions(irq).collect::<Vec<_>>(), expected);
        }
    }
}
