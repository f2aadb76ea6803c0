//! The handlers of IRQs, read on demand: of one IRQ from `/sys/kernel/irq`, of all from `/proc/interrupts`.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::read::interrupts::{
    INTERRUPTS, IRQS, Interrupts, counts, names, parse, read_rows, read_untorn,
};
use crate::root::{Result, Root};

#[derive(Debug)]
pub struct Handlers<'a> {
    root: &'a Root,
    listed: OnceCell<Interrupts>,
}

impl<'a> Handlers<'a> {
    pub fn new(root: &'a Root) -> Self {
        let listed = OnceCell::new();
        Self { root, listed }
    }

    pub fn of(&self, irq: u32) -> Result<Vec<String>> {
        match self.of_file(irq)? {
            Some(handlers) => Ok(handlers),
            None => Ok(self.listed()?.get(&irq).cloned().unwrap_or_default()),
        }
    }

    /// `None` without `/sys/kernel/irq`.
    pub(crate) fn of_file(&self, irq: u32) -> Result<Option<Vec<String>>> {
        let actions = self.root.read_opt(&format!("{IRQS}/{irq}/actions"))?;
        Ok(actions.map(|actions| names(actions.lines().next().unwrap_or_default(), ",")))
    }

    pub(crate) fn listed(&self) -> Result<&Interrupts> {
        if let Some(listed) = self.listed.get() {
            return Ok(listed);
        }
        let listed = read_untorn(self.root, parse)?;
        Ok(self.listed.get_or_init(|| listed))
    }

    pub(crate) fn has_row(&self, label: &str) -> Result<bool> {
        let text = self.root.read_text(INTERRUPTS)?;
        let mut labels = text.lines().filter_map(|line| line.split_once(':'));
        Ok(labels.any(|(row_label, _)| row_label.trim_start() == label))
    }

    pub(crate) fn is_of_x86(&self, irq: u32) -> Result<bool> {
        const CHIPS: [&str; 3] = ["PCI-MSI", "IO-APIC", "Hyper-V PCIe MSI"];
        let chip = match self.root.read_opt(&format!("{IRQS}/{irq}/chip_name"))? {
            None => counts(self.root, &[irq].into())?
                .rows
                .remove(&irq)
                .map(|row| row.whose),
            chip => chip,
        };
        let chip = chip.unwrap_or_default();
        // Prefixes of interrupt remapping, and of Hyper-V in newer kernels (`HV-PCI-MSIX-0002:00:02.0`).
        let chip = chip.strip_prefix("IR-").unwrap_or(&chip);
        let chip = chip.strip_prefix("HV-").unwrap_or(chip);
        Ok(CHIPS.iter().any(|known| chip.starts_with(known)))
    }

    /// Without [`Self::per_cpu`] and the first of a GIC: timers and counters of each CPU, which serve no device.
    pub(crate) fn of_devices(&self) -> Result<BTreeSet<u32>> {
        let is_other = |chip: &str, number: Option<u32>| {
            let is_first = number.is_some_and(|number| number < 32);
            is_per_cpu(chip, number) || counts_from_sgi(chip) && is_first
        };
        let others = self.of_chips(is_other)?;
        let listed = self.listed()?.iter();
        let devices = listed.filter(|(irq, actions)| !actions.is_empty() && !others.contains(irq));
        Ok(devices.map(|(irq, _)| *irq).collect())
    }

    /// The IRQs that each CPU has of its own, which cannot be moved: Xen's, the PPIs of a `GICv5`, and the first of Marvell's
    /// MPIC (mvneta; `mpic_is_percpu_irq`), which has its driver's name in older kernels.
    pub(crate) fn per_cpu(&self) -> Result<BTreeSet<u32>> {
        self.of_chips(is_per_cpu)
    }

    fn of_chips(&self, is_wanted: impl Fn(&str, Option<u32>) -> bool) -> Result<BTreeSet<u32>> {
        let irqs = self.chips()?.into_iter();
        let irqs = irqs.filter(|(_, (chip, number))| is_wanted(chip, *number));
        Ok(irqs.map(|(irq, _)| irq).collect())
    }

    /// IRQs with their numbers at interrupt controllers: Arm's GIC before `GICv5`, or others.
    pub(crate) fn numbered(&self, of_gic: bool) -> Result<impl Iterator<Item = (u32, u32)>> {
        let irqs = self.chips()?.into_iter();
        let irqs = irqs.filter(move |(_, (chip, _))| counts_from_sgi(chip) == of_gic);
        Ok(irqs.filter_map(|(irq, (_, number))| Some((irq, number?))))
    }

    /// The chip of each IRQ, by its first word, and the number behind it in `/proc/interrupts`, if any. Names of chips
    /// but GICs may have a second word (`SiFive PLIC`).
    fn chips(&self) -> Result<BTreeMap<u32, (String, Option<u32>)>> {
        read_untorn(self.root, |source| {
            let mut chips = BTreeMap::new();
            read_rows(source, &|_| true, |irq, _, tail| {
                let mut words = tail.split_ascii_whitespace();
                let chip = words.next().unwrap_or_default().to_owned();
                let second = usize::from(!chip.starts_with("GIC"));
                let number = words.take(1 + second).find_map(|word| word.parse().ok());
                chips.insert(irq, (chip, number));
                Ok(())
            })?;
            Ok(chips)
        })
    }
}

fn is_per_cpu(chip: &str, number: Option<u32>) -> bool {
    match chip {
        "xen-percpu" | "GICv5-PPI" => true,
        "MPIC" | "armada_370_xp_irq" => number.is_some_and(|number| number <= 28),
        _ => false,
    }
}

/// Whether the numbers of a chip begin with 32 IRQs of each CPU: of Arm's GICs, those before `GICv5`. Names of domains above
/// them may begin alike, and count by device or from 0: `GICv2m-PCI-MSIX-0000:01:00.0`, `GICP-ICU-NSR-...`.
fn counts_from_sgi(chip: &str) -> bool {
    matches!(chip, "GIC" | "GICv2" | "GICv3") || chip.starts_with("GIC-")
}
