//! Known facts of drivers, a row for each ([`Driver`]): the names and order of their IRQs, and behaviour that no file
//! of the kernel reports. `[[driver]]` of the policy file teaches names in the same form ([`Taught`]).
//!
//! A name is one of three sources of an IRQ's queue, beside netlink and the order of a device's vectors. This module
//! considers one name alone. The name does not show to which interface the vector belongs: the caller knows the device
//! and all of its vectors.

pub mod learn;
mod pattern;
mod row;
mod table;

use std::fmt;
use std::iter::{repeat, repeat_n};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use self::pattern::Fit;
pub use self::pattern::{Numbering, PLACEHOLDERS, Pattern};
pub(crate) use self::pattern::{RTL8125B, RTL8125D};
pub use self::row::{Driver, Fact, OrderPart};
use crate::machine::{Interface, Role};

impl Interface {
    pub(crate) fn has_fact(&self, fact: Fact) -> bool {
        Driver::has(self.driver.as_deref(), fact)
    }
}

impl Driver {
    pub fn all() -> &'static [Self] {
        &table::DRIVERS
    }

    pub fn of(name: Option<&str>) -> Option<&'static Self> {
        Self::all().iter().find(|row| row.has_name(name))
    }

    fn has_name(&self, name: Option<&str>) -> bool {
        let mut names = self.names.split(' ').chain(self.on_bus);
        name.is_some_and(|name| !name.is_empty() && names.any(|known| known == name))
    }

    pub fn has(name: Option<&str>, fact: Fact) -> bool {
        Self::of(name).is_some_and(|row| row.facts.contains(&fact))
    }

    /// The name of the interfaces' driver, given that of the device's driver.
    pub fn on_bus(name: String) -> String {
        let mut rows = Self::all().iter();
        let row = rows.find(|row| row.on_bus == Some(&name));
        row.map_or(name, |row| row.names.to_owned())
    }

    /// Role and queue of each of `vectors` vectors with the same name; `None` if their number fits several orders or
    /// none.
    pub fn in_order(
        &self,
        vectors: usize,
        rx: usize,
        tx: usize,
    ) -> Option<Vec<(Role, Option<u32>)>> {
        let queues = |role| match role {
            Role::Combined if rx != tx => None,
            Role::Tx => Some(tx),
            _ => Some(rx),
        };
        let of_queues = self.order.iter().map(|part| match *part {
            OrderPart::Queues(role) => queues(role),
            OrderPart::All(_) => Some(1),
            OrderPart::Others(..) => Some(0),
        });
        let others = vectors.checked_sub(of_queues.sum::<Option<usize>>()?)?;
        let mut serve = Vec::new();
        for part in self.order {
            match *part {
                OrderPart::Queues(role) => {
                    serve.extend((0..).take(queues(role)?).map(|queue| (role, Some(queue))));
                }
                OrderPart::All(role) => serve.push((role, Some(0))),
                OrderPart::Others(least, most) if (least..=most).contains(&others) => {
                    serve.extend(repeat_n((Role::Control, None), others));
                }
                OrderPart::Others(..) => return None,
            }
        }
        (serve.len() == vectors).then_some(serve)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionName<'a> {
    pub role: Role,
    pub numbering: Numbering,
    /// `None` if the numbering needs none, or the driver truncated the name before it (tg3 keeps 15 characters, older
    /// bnxt 17). A truncated number cannot be seen in one name: two vectors of one role then have the same number.
    pub number: Option<u32>,
    /// As written; most drivers keep the old name after a rename.
    pub interface: Option<&'a str>,
    pub told: Told<'a>,
}

/// The row that told the meaning of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told<'a> {
    row: &'a str,
    /// The source of the row; empty for the table.
    place: &'static str,
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row)?;
        f.write_str(self.place)
    }
}

/// A driver that the policy file teaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taught {
    pub name: String,
    pub irqs: Vec<Pattern>,
}

impl Taught {
    pub(crate) fn has_name(&self, action: &str) -> bool {
        self.irqs.iter().any(|row| row.matches(action))
    }
}

/// The meaning of `action`, if a pattern matches. `driver`: the bus driver's name in sysfs (`mlx4_core`, `virtio_net`,
/// `ixgbe`).
///
/// Without a row the common patterns apply, and names that contain their driver (`mlx5_comp3@pci:...`) are read by that
/// driver's patterns.
pub fn classify<'a>(
    driver: Option<&str>,
    action: &'a str,
    taught: &'a [Taught],
) -> Option<ActionName<'a>> {
    let mut taught = taught.iter();
    let taught = taught.find(|row| Some(&*row.name) == driver);
    DriverPatterns::of(driver, taught).classify(action)
}

static PATTERNS: LazyLock<Vec<Vec<Pattern>>> = LazyLock::new(|| {
    let rows = Driver::all().iter();
    let row_patterns = |row: &Driver| parse_rows(row.irqs.iter().chain(row.rdma));
    rows.map(row_patterns).collect()
});

fn parse_rows<'r>(rows: impl Iterator<Item = &'r &'static str>) -> Vec<Pattern> {
    // A test parses each row.
    rows.filter_map(|row| Pattern::parse(*row).ok()).collect()
}

/// Names in `interrupt-names` of a device tree (`rx`, `tx3`, `rx_irq`, `pps`).
static IN_DEVICE_TREE: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    let rows = [
        "{way}",
        "{way}{sep}irq",
        "{way}{n} = by order",
        "{way}q{n} = by order",
        "{way}{sep}{n} = by order",
        "{control} = control",
    ];
    parse_rows(rows.iter())
});

/// Phylib requests a PHY's interrupt under `<MDIO bus>:<address>`, and Ethernet drivers name their bus
/// `<device>-<number>` (`1f00100000.ethernet-ffffffff:01`; `phy_request_interrupt`, `PHY_ID_FMT`).
static OF_A_PHY: LazyLock<Vec<Pattern>> =
    LazyLock::new(|| parse_rows(["{x}-{h}:{hh} = control"].iter()));

/// `None` for a name that does not tell its purpose (`macirq`, `int0`).
pub(crate) fn in_device_tree(name: &str) -> Option<ActionName<'_>> {
    best(IN_DEVICE_TREE.iter(), name, " (device tree)")
}

/// Whether some driver truncates names that begin with the interface's at this length.
pub fn may_be_cut(action: &str) -> bool {
    let mut patterns = PATTERNS.iter().flatten();
    patterns.any(|pattern| pattern.cut == action.len() && pattern.row().starts_with("{if}"))
}

#[derive(Debug)]
pub(crate) struct DriverPatterns<'a> {
    pub(crate) driver: Option<&'static Driver>,
    /// The policy's patterns, which come first.
    taught: &'a [Pattern],
    ours: Vec<&'static Pattern>,
}

impl<'a> DriverPatterns<'a> {
    /// `driver`: as in [`classify`].
    pub(crate) fn of(driver: Option<&str>, taught: Option<&'a Taught>) -> Self {
        let rows = || Driver::all().iter().zip(&*PATTERNS);
        let own = rows().find(|(row, _)| row.has_name(driver));
        let ours = match own {
            Some((_, own)) if !own.is_empty() => own.iter().collect(),
            // Names may begin with their driver's name. Sub-functions share the names of their parents.
            _ => {
                let is_telling = |(row, pattern): &(&Driver, &Pattern)| {
                    row.names.is_empty() || !pattern.row().starts_with('{')
                };
                let rows = rows().filter(|(row, _)| row.names != "mlx5_core.sf");
                let patterns = rows.flat_map(|(row, patterns)| repeat(row).zip(patterns));
                let patterns = patterns.filter(is_telling);
                patterns.map(|(_, pattern)| pattern).collect()
            }
        };
        Self {
            driver: own.map(|(row, _)| row),
            taught: taught.map_or(&[], |row| &row.irqs),
            ours,
        }
    }

    /// Whether `action` is the name of a PHY's interrupt, which begins with that of the PHY's bus.
    pub(crate) fn is_of_phy(action: &str) -> bool {
        OF_A_PHY.iter().any(|row| row.matches(action))
    }

    /// Whether `action` is a queue name of the driver's row, without a part that another device could also have.
    pub(crate) fn has_queue_name(&self, action: &str) -> bool {
        if self.driver.is_none_or(|row| row.irqs.is_empty()) {
            return false;
        }
        let is_whole = |pattern: &&&Pattern| {
            let mut others = ["{if}", "{h}", "{pci}", "{x}"].iter();
            others.all(|placeholder| !pattern.row().contains(placeholder))
        };
        let names = self.ours.iter().filter(is_whole);
        let mut fits = names.flat_map(|pattern| pattern.fits(action));
        fits.any(|(_, role, _)| role.is_queue())
    }

    pub(crate) fn classify(&self, action: &'a str) -> Option<ActionName<'a>> {
        let ours = || best(self.ours.iter().copied().chain(&*OF_A_PHY), action, "");
        best(self.taught.iter(), action, " (policy)").or_else(ours)
    }
}

/// The pattern that fits best: one of RDMA or control before one of a queue, then the one with more literal text.
fn best<'a>(
    patterns: impl DoubleEndedIterator<Item = &'a Pattern>,
    action: &'a str,
    place: &'static str,
) -> Option<ActionName<'a>> {
    let fits = patterns.flat_map(|pattern| pattern.fits(action));
    // A bare `{if}` fits every name that holds one.
    let is_bare = |found: &Fit<'_>| found.literals == 0 && found.interface == Some(action);
    // Reversed, because `max_by_key` returns the last of several: the first pattern wins.
    let (pattern, role, found) = fits
        .rev()
        .max_by_key(|(_, role, found)| (!role.is_queue() && !is_bare(found), found.literals))?;
    Some(ActionName {
        role,
        numbering: pattern.numbering,
        number: found.number,
        interface: found.interface,
        told: Told {
            row: pattern.row(),
            place,
        },
    })
}

#[cfg(test)]
mod tests;
