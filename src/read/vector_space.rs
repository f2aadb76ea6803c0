//! The interrupt vectors of x86 CPUs: of 256, the 32 of exceptions and those of the kernel's own interrupts leave some
//! 200 for devices (`arch/x86/include/asm/irq_vectors.h`, `kernel/irq/matrix.c`). An IRQ on a CPU holds one.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::Interface;
use crate::machine::files::IRQ_FILES;
use crate::machine::topology::VECTORS_OF_CPU;
use crate::read::files::read_effective;
use crate::read::handlers::Handlers;
use crate::root::{Result, Root};

/// Vectors by CPU that IRQs of others than the interfaces hold; `None` if a CPU can hold all IRQs of the machine.
pub(super) fn held_vectors(
    root: &Root,
    handlers: &Handlers<'_>,
    interfaces: &[Interface],
) -> Result<Option<BTreeMap<u32, usize>>> {
    // A capture has only the files of the interfaces' IRQs.
    let mut read = Ok(None);
    let held = root.gist("/nicpin/vectors-held", || {
        read = count(root, handlers, interfaces);
        read.as_ref().ok().cloned().flatten()
    })?;
    read.map(|_| held)
}

fn count(
    root: &Root,
    handlers: &Handlers<'_>,
    interfaces: &[Interface],
) -> Result<Option<BTreeMap<u32, usize>>> {
    let names = root.read_names(IRQ_FILES)?;
    let irqs: BTreeSet<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    let vectors = interfaces.iter().flat_map(|interface| &interface.vectors);
    let own: BTreeSet<u32> = vectors.map(|vector| vector.irq).collect();
    let first = own.first().filter(|_| irqs.len() > VECTORS_OF_CPU);
    if !first.map_or(Ok(false), |&irq| handlers.is_of_x86(irq))? {
        return Ok(None);
    }
    let mut held = BTreeMap::new();
    for irq in irqs.difference(&own) {
        let cpus = read_effective(root, *irq)?;
        if let Some(cpu) = cpus.and_then(|cpus| cpus.only()) {
            *held.entry(cpu).or_default() += 1;
        }
    }
    Ok(Some(held))
}
