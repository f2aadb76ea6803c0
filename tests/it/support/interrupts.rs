//! The text of `/proc/interrupts`, in the format of each kernel (`show_interrupts` in `kernel/irq/proc.c`).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::machine::{Card, Kernel, MachineSpec};

impl MachineSpec {
    /// The cards' rows among a few that every machine has.
    pub fn interrupts(&self) -> String {
        let width = self.irq_digits;
        let mut text = " ".repeat(width + 8);
        for cpu in &self.online {
            write!(text, "CPU{cpu:<8}").unwrap();
        }
        text.push('\n');
        let first = self.online[0];
        let chip = if self.remapping {
            "IR-IO-APIC"
        } else {
            "IO-APIC"
        };
        let mut rows = BTreeMap::from([
            (
                0,
                self.row(0, first, 46, &self.chip(chip, 2, "edge"), "timer"),
            ),
            (
                9,
                self.row(9, first, 0, &self.chip(chip, 9, "fasteoi"), "acpi"),
            ),
        ]);
        for (card, vector) in self
            .cards
            .iter()
            .flat_map(|card| card.vectors.iter().map(move |v| (card, v)))
        {
            if vector.action.is_empty() {
                continue;
            }
            let chip = self.chip_of(card, vector.entry);
            let serving = vector.serving.unwrap_or(first);
            rows.entry(vector.irq)
                .and_modify(|row: &mut String| write!(row, ", {}", vector.action).unwrap())
                .or_insert_with(|| {
                    self.row(vector.irq, serving, vector.count, &chip, &vector.action)
                });
        }
        text.extend(rows.into_values().map(|row| row + "\n"));
        for (label, count, meaning) in [
            ("NMI", 12, "Non-maskable interrupts"),
            ("LOC", 282_584, "Local timer interrupts"),
        ] {
            let counts = format!("{count:10} ").repeat(self.online.len());
            let meaning = if self.kernel == Kernel::V2_6 {
                ""
            } else {
                meaning
            };
            let gap = if meaning.is_empty() { "" } else { "  " };
            writeln!(text, "{label:>width$}: {counts}{gap}{meaning}").unwrap();
        }
        for label in ["ERR", "MIS"] {
            writeln!(text, "{label:>width$}: {:10}", 0).unwrap();
        }
        text
    }

    fn row(&self, irq: u32, serving: u32, count: u32, chip: &str, action: &str) -> String {
        let width = self.irq_digits;
        let count = |cpu: &u32| format!("{:10} ", if *cpu == serving { count } else { 0 });
        let counts: String = self.online.iter().map(count).collect();
        format!("{irq:>width$}: {counts}{chip}  {action}")
    }

    /// The text before the handler's name.
    fn chip_of(&self, card: &Card, entry: u32) -> String {
        let remapped = if self.remapping { "IR-" } else { "" };
        if !card.msi {
            return self.chip(&format!("{remapped}IO-APIC"), entry, "fasteoi");
        }
        if self.kernel >= Kernel::V6_2 {
            return self.chip(
                &format!("{remapped}PCI-MSIX-{}", card.address),
                entry,
                "edge",
            );
        }
        let numbers = card
            .address
            .split([':', '.'])
            .map(|part| u32::from_str_radix(part, 16).unwrap());
        let [domain, bus, slot, function] = numbers.collect::<Vec<_>>()[..] else {
            panic!("{}", card.address)
        };
        let function = domain << 27 | (bus << 8 | slot << 3 | function) << 11;
        self.chip(&format!("{remapped}PCI-MSI"), function | entry, "edge")
    }

    fn chip(&self, chip: &str, hwirq: u32, trigger: &str) -> String {
        let width = self.irq_digits;
        match self.kernel {
            Kernel::V2_6 => {
                let trigger = if trigger == "fasteoi" {
                    "level"
                } else {
                    trigger
                };
                format!(" {:>14}", format!("{chip}-{trigger}"))
            }
            Kernel::V3 => format!(" {chip:>8}-{trigger:<8}"),
            Kernel::V4_2 | Kernel::V6_2 => format!(" {chip:>8} {hwirq:>width$}-{trigger:<8}"),
            Kernel::V6_14 => format!("{chip:>8} {hwirq:>width$}-{trigger:<8}"),
        }
    }
}
