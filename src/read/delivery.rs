//! CPUs on which IRQs interrupt, by their counts since boot, where the kernel does not report them (powerpc, s390, x86
//! before Linux 4.14).

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;

use crate::cpuset::{CpuSet, Inserted as _};
use crate::machine::files::affinity_file;
use crate::machine::{Interface, Vector};
use crate::read::device::irqs_of;
use crate::read::files::{read_affinity, read_effective};
use crate::read::handlers::Handlers;
use crate::read::interrupts::{INTERRUPTS, counts};
use crate::read::others::PCI;
use crate::root::{Result, Root};

/// Adds the counted CPUs to vectors whose affinity has several, and to interfaces the CPUs of IRQs that are not
/// understood. Returns the CPUs of `without_interface`, the IRQs of functions without an interface, and lent ones.
pub(super) fn read(
    root: &Root,
    handlers: &Handlers<'_>,
    mut interfaces: Vec<&mut Interface>,
    without_interface: &[u32],
) -> Result<CpuSet> {
    let unclaimed = unclaimed_irqs(root, handlers, &interfaces, without_interface)?;
    let not_understood = |interface: &Interface| {
        let unknown = interface.unknown_vectors.iter().map(|vector| vector.irq);
        let unclaimed = unclaimed.iter().filter(|_| interface.may_have_any());
        let controller = interface.device.by_controller();
        unknown
            .chain(unclaimed.chain(controller).copied())
            .collect_vec()
    };
    let of_interfaces = interfaces
        .iter()
        .flat_map(|interface| not_understood(interface));
    let others: BTreeSet<u32> = (of_interfaces.chain(without_interface.iter().copied())).collect();
    let (mut cpus, mut untold) = (BTreeMap::new(), BTreeSet::new());
    for irq in others {
        match told_cpus(root, irq)? {
            Some(told) => _ = cpus.insert(irq, told),
            None => _ = untold.insert(irq),
        }
    }
    let is_untold =
        |vector: &&mut Vector| vector.effective.is_none() && vector.affinity.cpus.len() > 1;
    let vectors = interfaces
        .iter_mut()
        .flat_map(|interface| &mut interface.vectors);
    let vectors = vectors.filter(is_untold).collect_vec();
    untold.extend(vectors.iter().map(|vector| vector.irq));
    cpus.extend(counted_cpus(root, &untold)?);
    for vector in vectors {
        let counted = cpus.get(&vector.irq);
        let counted = counted.map(|cpus| cpus.intersection(&vector.affinity.cpus));
        vector.counted = counted.filter(|cpus| !cpus.is_empty());
    }
    let cpus_of = |irqs: &[u32]| CpuSet::union_of(irqs.iter().filter_map(|irq| cpus.get(irq)));
    for interface in interfaces {
        interface.unknown_vector_cpus = cpus_of(&not_understood(interface));
    }
    Ok(cpus_of(without_interface))
}

/// Empty unless some interface has no known IRQ.
fn unclaimed_irqs(
    root: &Root,
    handlers: &Handlers<'_>,
    interfaces: &[&mut Interface],
    without_interface: &[u32],
) -> Result<BTreeSet<u32>> {
    if !interfaces.iter().any(|interface| interface.may_have_any()) {
        return Ok(BTreeSet::new());
    }
    let mut irqs = handlers.of_devices()?;
    let known = interfaces.iter().flat_map(|interface| {
        let vectors = interface.vectors.iter().map(|vector| vector.irq);
        vectors.chain(interface.unknown_vectors.iter().map(|vector| vector.irq))
    });
    let mut known: BTreeSet<u32> = known.chain(without_interface.iter().copied()).collect();
    for address in root.read_names(PCI)? {
        known.extend(irqs_of(root, &address)?);
    }
    irqs.retain(|irq| !known.contains(irq) && root.exists(&affinity_file(*irq)));
    Ok(irqs)
}

fn told_cpus(root: &Root, irq: u32) -> Result<Option<CpuSet>> {
    let effective = read_effective(root, irq)?;
    if effective.is_some() {
        return Ok(effective);
    }
    let affinity = read_affinity(root, &affinity_file(irq))?;
    let affinity = affinity.and_then(|file| CpuSet::parse_kernel_mask(&file.text).ok());
    Ok(affinity.filter(|cpus| cpus.len() == 1))
}

fn counted_cpus(root: &Root, irqs: &BTreeSet<u32>) -> Result<BTreeMap<u32, CpuSet>> {
    if irqs.is_empty() || !root.exists(INTERRUPTS) {
        return Ok(BTreeMap::new());
    }
    // A capture keeps no counts.
    root.gist("/nicpin/counted", || {
        // Unreadable counts count as unknown.
        let counts = counts(root, irqs).unwrap_or_default();
        let cpus_of = |row: Vec<u32>| {
            // The first interrupts after boot may have come elsewhere.
            let least = row.iter().max().map_or(0, |most| most / 20);
            let counted = counts.cpus.iter().zip(row);
            let counted = counted.filter(|(_, count)| *count > least);
            counted.map(|(cpu, _)| *cpu).collect::<CpuSet>()
        };
        let rows = counts.rows.into_iter();
        rows.map(|(irq, row)| (irq, cpus_of(row.counts)))
            .inserted::<BTreeMap<_, _>>()
    })
}
