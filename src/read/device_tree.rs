//! Interrupts of platform devices by the device tree, as sysfs does not list their IRQs.
//!
//! `interrupts` has a few cells for each interrupt, by the controller's binding, `interrupt-names` a text for each in
//! the same order (`Documentation/devicetree/bindings/interrupt-controller`). Two kinds of bindings are read. Arm's GIC:
//! type (0: shared, SPI; 1: of a CPU, PPI), number, flags, and for some GICs one more cell. One cell, the number, such as
//! of RISC-V's PLIC and Marvell's MPIC: as many cells as names, or a single one.

use crate::machine::TreeInterrupt;
use crate::read::files::Dir;
use crate::root::Result;

const BEFORE_SPI: u32 = 32;
const BEFORE_PPI: u32 = 16;

pub(super) fn read(device: &Dir) -> Result<Vec<TreeInterrupt>> {
    let at = format!("/nicpin/device-tree/{}", device.name());
    let bytes = |name: &str| {
        let file = device.file(&format!("of_node/{name}"));
        device.root.read_bytes(&file).ok().flatten()
    };
    device.root.gist(&at, || {
        let names = bytes("interrupt-names").unwrap_or_default();
        parse(&bytes("interrupts").unwrap_or_default(), &names)
    })
}

fn parse(interrupts: &[u8], names: &[u8]) -> Vec<TreeInterrupt> {
    let cells = interrupts.chunks_exact(4).map(|cell| {
        let bytes = |number: u32, byte: &u8| number << 8 | u32::from(*byte);
        cell.iter().fold(0, bytes)
    });
    let cells: Vec<u32> = cells.collect();
    let names = names.split(|&byte| byte == 0);
    let mut names = names.filter(|name| !name.is_empty());
    let of_one_cell = cells.len() == names.clone().count().max(1);
    let numbers = if of_one_cell {
        Some(cells)
    } else {
        [3, 4].into_iter().find_map(|width| gic(&cells, width))
    };
    let numbers = numbers.unwrap_or_default().into_iter();
    numbers
        .map(|hwirq| TreeInterrupt {
            hwirq,
            of_one_cell,
            name: names
                .next()
                .map(|name| String::from_utf8_lossy(name).into()),
        })
        .collect()
}

fn gic(cells: &[u32], width: usize) -> Option<Vec<u32>> {
    let number = |cells: &[u32]| match cells {
        // A GIC distinguishes edge and level by one bit of four; a PPI has its CPUs in the bits above.
        [0, number @ 0..=987, 1 | 2 | 4 | 8, ..] => Some(number + BEFORE_SPI),
        [1, number @ 0..=15, _, ..] => Some(number + BEFORE_PPI),
        _ => None,
    };
    let whole = cells.len() % width == 0;
    whole.then(|| cells.chunks(width).map(number).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_gic_are_read_and_others_are_not() {
        let parsed = |cells: &[u32], names: &str| {
            let bytes: Vec<u8> = cells.iter().flat_map(|cell| cell.to_be_bytes()).collect();
            let found = parse(&bytes, names.as_bytes()).into_iter();
            let text = |interrupt: TreeInterrupt| {
                format!("{}{}", interrupt.hwirq, interrupt.name.unwrap_or_default())
            };
            found.map(text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(parsed(&[0, 32, 4, 0, 33, 1], "rx\0tx\0"), "64rx 65tx");
        assert_eq!(
            parsed(&[0, 12, 4, 0, 0, 200, 4, 0], "macirq\0"),
            "44macirq 232"
        );
        assert_eq!(parsed(&[1, 8, 0xf04], ""), "24");
        // The interrupts of a PLIC, and of an Arm intc with two cells.
        assert_eq!(parsed(&[7, 6, 5], "mac\0wake\0lpi\0"), "7mac 6wake 5lpi");
        assert_eq!(parsed(&[1, 2, 4], "mac\0wake\0lpi\0"), "1mac 2wake 4lpi");
        assert_eq!(parsed(&[8], ""), "8");
        assert_eq!(parsed(&[53, 54, 55], ""), "");
        assert_eq!(parsed(&[4, 7], ""), "");
        assert_eq!(parsed(&[], "rx\0"), "");
        assert!(parse(&[0, 0, 1], b"").is_empty());
    }
}
