//! Interrupts of platform devices by the device tree, as sysfs does not list their IRQs.
//!
//! `interrupts` has a few cells for each interrupt, by the binding of its controller (`interrupt-parent`, of the node or
//! one above), `interrupts-extended` names a controller before each; `interrupt-names` has a text for each in the same
//! order (`Documentation/devicetree/bindings/interrupt-controller`). Arm's GIC has type (0: shared, SPI; 1: of a CPU,
//! PPI), number, flags, and for some GICs one more cell. Controllers in front of it (`sysirq` of MT7622, the GPC of i.MX,
//! TI's crossbar) take the same cells and count without the GIC's offset. Others begin with the number, as RISC-V's PLIC.
//! Without the controller's node the cells show the binding: a GIC's, or as many numbers as names.

use crate::machine::TreeInterrupt;
use crate::read::files::Dir;
use crate::root::Result;
use crate::root::tree::Entry;

const BEFORE_SPI: u32 = 32;
const BEFORE_PPI: u32 = 16;
const BEFORE_ESPI: u32 = 4096;

pub(super) fn read(device: &Dir) -> Result<Vec<TreeInterrupt>> {
    let at = format!("/nicpin/device-tree/{}", device.name());
    device.root.gist(&at, || {
        let node = device.canonical("of_node").ok().flatten();
        node.map_or_else(Vec::new, |node| {
            let names = bytes(&node, "interrupt-names").unwrap_or_default();
            let numbers = of_controllers(&node).unwrap_or_else(|| {
                guessed(
                    &cells(&bytes(&node, "interrupts").unwrap_or_default()),
                    &names,
                )
            });
            named(numbers, &names)
        })
    })
}

fn bytes(node: &Dir, name: &str) -> Option<Vec<u8>> {
    node.root.read_bytes(&node.file(name)).ok().flatten()
}

fn cells(bytes: &[u8]) -> Vec<u32> {
    let cell = |cell: &[u8]| {
        let next = |number: u32, byte: &u8| number << 8 | u32::from(*byte);
        cell.iter().fold(0, next)
    };
    bytes.chunks_exact(4).map(cell).collect()
}

/// A number, and whether it is at a controller that is no GIC of Arm's.
type Number = (u32, bool);

fn named(numbers: Vec<Number>, names: &[u8]) -> Vec<TreeInterrupt> {
    let mut names = names_in(names);
    let numbers = numbers.into_iter();
    numbers
        .map(|(hwirq, of_one_cell)| TreeInterrupt {
            hwirq,
            of_one_cell,
            name: names
                .next()
                .map(|name| String::from_utf8_lossy(name).into()),
        })
        .collect()
}

fn names_in(names: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let names = names.split(|&byte| byte == 0);
    names.filter(|name| !name.is_empty())
}

/// `None` if a controller's node is not found, or its binding is none of these.
fn of_controllers(node: &Dir) -> Option<Vec<Number>> {
    let mut found = Vec::new();
    if let Some(extended) = bytes(node, "interrupts-extended") {
        let mut rest = &*cells(&extended);
        while let [controller, after @ ..] = rest {
            let controller = Controller::find(node, *controller)?;
            let (own, after) = after.split_at_checked(controller.cells)?;
            found.push((controller.number)(own)?);
            rest = after;
        }
        return Some(found);
    }
    let mut above = node.and_above();
    let parent = above.find_map(|node| bytes(&node, "interrupt-parent"))?;
    let controller = Controller::find(node, *cells(&parent).first()?)?;
    let cells = cells(&bytes(node, "interrupts")?);
    let numbers = cells.chunks(controller.cells);
    numbers.map(|own| (controller.number)(own)).collect()
}

struct Controller {
    cells: usize,
    number: fn(&[u32]) -> Option<Number>,
}

impl Controller {
    /// By its number, `phandle`; most are near the top of the tree.
    fn find(node: &Dir, phandle: u32) -> Option<Self> {
        let (top, _) = node.path.split_once("/base/")?;
        let mut level = vec![node.root.dir(format!("{top}/base"))];
        while !level.is_empty() {
            let is_it = |node: &&Dir| bytes(node, "phandle") == Some(phandle.to_be_bytes().into());
            if let Some(node) = level.iter().find(is_it) {
                let compatible = bytes(node, "compatible")?;
                let is_arms = |name: &[u8]| {
                    let name = String::from_utf8_lossy(name);
                    (name.contains("gic") || name.contains("pl390")) && name != "mti,gic"
                };
                let count = *cells(&bytes(node, "#interrupt-cells")?).first()?;
                return Some(Self {
                    cells: usize::try_from(count)
                        .ok()
                        .filter(|count| (1..=4).contains(count))?,
                    number: if names_in(&compatible).any(|name| name == b"arm,gic-v5") {
                        of_gic_v5
                    } else if names_in(&compatible).any(is_arms) {
                        of_gic
                    } else {
                        of_another
                    },
                });
            }
            let below = level.iter().flat_map(|node| {
                let names = node.names().unwrap_or_default();
                names.into_iter().map(|name| node.dir(&name))
            });
            let is_node = |below: &Dir| {
                let entry = below.root.look(&below.path);
                matches!(entry, Some(Entry::Directory(_)))
            };
            level = below.filter(is_node).collect();
        }
        None
    }
}

fn of_gic(cells: &[u32]) -> Option<Number> {
    Some((gic(cells)?, false))
}

fn of_gic_v5(cells: &[u32]) -> Option<Number> {
    Some((*cells.get(1)?, true))
}

fn of_another(cells: &[u32]) -> Option<Number> {
    match cells {
        [0 | 1, number, _, ..] | [number, ..] => Some((*number, true)),
        [] => None,
    }
}

fn guessed(cells: &[u32], names: &[u8]) -> Vec<Number> {
    if cells.len() == names_in(names).count().max(1) {
        return cells.iter().map(|&number| (number, true)).collect();
    }
    let of_width = |width: usize| {
        let whole = cells.len() % width == 0;
        let numbers = cells.chunks(width).map(of_gic);
        whole.then(|| numbers.collect::<Option<_>>())?
    };
    [3, 4].into_iter().find_map(of_width).unwrap_or_default()
}

fn gic(cells: &[u32]) -> Option<u32> {
    match cells {
        // A GIC distinguishes edge and level by one bit of four; a PPI has its CPUs in the bits above.
        [0, number @ 0..=987, 1 | 2 | 4 | 8, ..] => Some(number + BEFORE_SPI),
        [1, number @ 0..=15, _, ..] => Some(number + BEFORE_PPI),
        [2, number @ 0..=1023, 1 | 2 | 4 | 8, ..] => Some(number + BEFORE_ESPI),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_gic_are_read_and_others_are_not() {
        let parsed = |cells: &[u32], names: &str| {
            let found = named(guessed(cells, names.as_bytes()), names.as_bytes()).into_iter();
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
        assert!(cells(&[0, 0, 1]).is_empty());
    }
}
