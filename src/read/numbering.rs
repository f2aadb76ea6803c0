//! Finds queues from the numbers in vectors' names. Drivers number queues, vectors, or both, and some truncate the name
//! before the end of its number; then only the order of the vectors is left.

use crate::machine::{Role, Source};
use crate::read::names::{ActionName, Numbering};

/// A vector with a known name, before its queue is determined.
#[derive(Debug)]
pub(crate) struct NamedVector {
    pub(crate) irq: u32,
    /// The handler's name.
    pub(crate) action: String,
    /// The role by its name.
    pub(crate) role: Role,
    /// What the number in the name counts.
    pub(crate) numbering: Numbering,
    /// The number; `None` if it was truncated.
    pub(crate) number: Option<u32>,
    /// Whether the name contains the interface's name.
    pub(crate) names_interface: bool,
}

impl NamedVector {
    pub(crate) fn new(irq: u32, action: &str, named: ActionName<'_>) -> Self {
        let ActionName {
            role,
            numbering,
            number,
            interface,
            ..
        } = named;
        Self {
            irq,
            action: action.to_owned(),
            role,
            numbering,
            number,
            names_interface: interface.is_some(),
        }
    }

    /// Whether the name alone shows that this is a data vector of the interface, and its queue. Others are a
    /// function's, of which another interface or RDMA may have some.
    pub(crate) fn has_queue_number(&self) -> bool {
        self.names_interface && matches!(self.numbering, Numbering::Queue | Numbering::Rank)
    }
}

/// The role and queue of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VectorUse {
    pub(crate) role: Role,
    /// As in [`Vector`](crate::machine::Vector).
    pub(crate) queue: Option<u32>,
    /// The source of role and queue.
    pub(crate) source: Source,
}

/// Vectors of one role whose numbers count the same thing.
struct Peers {
    /// Number and IRQ of each, ascending.
    numbers: Vec<(u32, u32)>,
    /// Whether numbers are missing or occur twice, so that only the order of IRQs counts.
    cut: bool,
}

impl Peers {
    fn of(one: &NamedVector, all: &[NamedVector]) -> Self {
        let peers = all
            .iter()
            .filter(|f| f.role == one.role && f.numbering == one.numbering);
        let mut numbers: Vec<(u32, u32)> = peers
            .map(|f| (f.number.unwrap_or(u32::MAX), f.irq))
            .collect();
        numbers.sort_unstable();
        let twice = numbers.windows(2).any(|pair| pair[0].0 == pair[1].0);
        let cut = twice
            || numbers
                .last()
                .is_some_and(|&(number, _)| number == u32::MAX);
        if cut {
            numbers.sort_unstable_by_key(|&(_, irq)| irq);
        }
        Self { numbers, cut }
    }

    /// How many come before it.
    fn rank(&self, one: &NamedVector) -> Option<u32> {
        let rank = self.numbers.iter().position(|&(_, irq)| irq == one.irq)?;
        u32::try_from(rank).ok()
    }

    /// One more than the highest number.
    fn end(&self) -> Option<u32> {
        if self.cut {
            u32::try_from(self.numbers.len()).ok()
        } else {
            self.numbers.last()?.0.checked_add(1)
        }
    }
}

/// The use of each vector of one interface; `None` for a vector whose name does not distinguish it from others.
/// `several_tx`: the interface has more than one transmit queue.
pub(crate) fn place(found: &[NamedVector], several_tx: bool) -> Vec<Option<VectorUse>> {
    let mut groups: Vec<((Role, Numbering), Peers)> = Vec::new();
    for one in found {
        let key = (one.role, one.numbering);
        if !groups.iter().any(|(known, _)| *known == key) {
            groups.push((key, Peers::of(one, found)));
        }
    }
    let numbered = |wanted: Numbering| found.iter().filter(|f| f.numbering == wanted).count();
    let data = found.iter().filter(|f| f.role.is_queue()).count();
    let (plain, of_tg3) = (numbered(Numbering::Plain), numbered(Numbering::Tg3));
    let tg3 = |number: u32| match number.checked_sub(1) {
        // Vector 0 takes link events, and transmits while there is one transmit queue.
        None if data > of_tg3 => (Role::Control, None),
        None if of_tg3 == 1 => (Role::Combined, Some(0)),
        None if several_tx => (Role::Control, None),
        None => (Role::Tx, Some(0)),
        Some(queue) if several_tx => (Role::Combined, Some(queue)),
        Some(queue) => (Role::Rx, Some(queue)),
    };
    let settle = |one: &NamedVector| {
        let (_, peers) = groups
            .iter()
            .find(|(key, _)| *key == (one.role, one.numbering))?;
        let number = if peers.cut {
            peers.rank(one)?
        } else {
            one.number.unwrap_or(0)
        };
        let source = if peers.cut {
            Source::Order
        } else {
            Source::Name
        };
        let (role, queue, source) = match one.numbering {
            Numbering::None => (Role::Control, None, Source::Name),
            Numbering::Shared => (one.role, Some(0), Source::Name),
            Numbering::Plain if data > plain => (Role::Control, None, Source::Name),
            Numbering::Plain if plain == 1 => (Role::Combined, Some(0), Source::Name),
            Numbering::Plain => return None,
            Numbering::Queue | Numbering::Mlx4 => (one.role, Some(number), source),
            Numbering::Rank => (one.role, Some(peers.rank(one)?), source),
            // The first half of the blocks transmits, the second receives.
            Numbering::TxThenRx => match number.checked_sub(peers.end()? / 2) {
                None => (Role::Tx, Some(number), source),
                Some(queue) => (Role::Rx, Some(queue), source),
            },
            Numbering::Tg3 => {
                let (role, queue) = tg3(number);
                (role, queue, source)
            }
        };
        Some(VectorUse {
            role,
            queue,
            source,
        })
    };
    found.iter().map(settle).collect()
}

/// Determines by order the vectors that [`place`] could not: those of drivers that give all of them the same name, if
/// their number is unambiguous. `found` is in the order of the MSI-X entries, which is that of the IRQs.
pub(crate) fn by_order(
    driver: Option<&str>,
    found: &[NamedVector],
    placed: &mut [Option<VectorUse>],
    rx: usize,
    tx: usize,
) {
    if found.iter().any(|one| one.numbering != Numbering::Plain)
        || placed.iter().any(Option::is_some)
    {
        return;
    }
    let queues = |role: Role, count: usize| (0..).take(count).map(move |queue| (role, Some(queue)));
    let control = [(Role::Control, None)];
    let layout: Vec<(Role, Option<u32>)> = match driver {
        // A vector for each pair of queues; the last, if there is one more, is for the link.
        Some("atlantic") if rx == tx && found.len() == rx => queues(Role::Combined, rx).collect(),
        Some("atlantic") if rx == tx && found.len() == rx + 1 => {
            queues(Role::Combined, rx).chain(control).collect()
        }
        // The first for all else, then the transmit queues, then the receive queues.
        Some("lan743x") if found.len() == 1 + tx + rx => control
            .into_iter()
            .chain(queues(Role::Tx, tx))
            .chain(queues(Role::Rx, rx))
            .collect(),
        _ => return,
    };
    for (placed, (role, queue)) in placed.iter_mut().zip(layout) {
        *placed = Some(VectorUse {
            role,
            queue,
            source: Source::Order,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::names::classify;

    /// The uses of vectors with these names on consecutive IRQs.
    fn placed(driver: &str, several_tx: bool, names: &[&str]) -> Vec<String> {
        let found: Vec<NamedVector> = (98..)
            .zip(names)
            .map(|(irq, name)| NamedVector::new(irq, name, classify(Some(driver), name).unwrap()))
            .collect();
        let text = |placed: Option<VectorUse>| match placed {
            None => "?".to_owned(),
            Some(VectorUse {
                role: Role::Control,
                ..
            }) => "control".to_owned(),
            Some(VectorUse {
                role,
                queue,
                source,
            }) => {
                let order = if source == Source::Order {
                    " by order"
                } else {
                    ""
                };
                format!("{role:?} {}{order}", queue.unwrap()).to_lowercase()
            }
        };
        place(&found, several_tx).into_iter().map(text).collect()
    }

    #[test]
    fn vectors_that_are_named_alike_go_by_their_order_when_their_count_leaves_no_doubt() {
        for (driver, name, vectors, rx, tx, expected) in [
            ("atlantic", "eth0", 2, 2, 2, "combined 0, combined 1"),
            (
                "atlantic",
                "eth0",
                3,
                2,
                2,
                "combined 0, combined 1, control",
            ),
            ("atlantic", "eth0", 4, 2, 2, ""),
            ("atlantic", "eth0", 3, 2, 3, ""),
            ("lan743x", "lan743x", 4, 2, 1, "control, tx 0, rx 0, rx 1"),
            ("lan743x", "lan743x", 3, 2, 1, ""),
            ("mvpp2", "eth0", 2, 2, 2, ""),
        ] {
            let found: Vec<NamedVector> = (98..)
                .take(vectors)
                .map(|irq| NamedVector::new(irq, name, classify(Some(driver), name).unwrap()))
                .collect();
            let mut placed = place(&found, tx > 1);
            by_order(Some(driver), &found, &mut placed, rx, tx);
            let text: Vec<String> = placed
                .into_iter()
                .flatten()
                .map(|placed| {
                    assert_eq!(placed.source, Source::Order);
                    let role = format!("{:?}", placed.role).to_lowercase();
                    placed
                        .queue
                        .map_or(role.clone(), |queue| format!("{role} {queue}"))
                })
                .collect();
            assert_eq!(
                text.join(", "),
                expected,
                "{driver}: {vectors} vectors, {rx} rx, {tx} tx"
            );
        }
    }

    #[test]
    #[allow(clippy::too_many_lines)] // a table, or a story in one piece
    fn numbers_become_queues_as_each_driver_means_them() {
        for (driver, several_tx, names, expected) in [
            (
                "ixgbe",
                true,
                vec!["p1-TxRx-0", "p1-TxRx-1", "p1"],
                vec!["combined 0", "combined 1", "control"],
            ),
            ("igb", false, vec!["eth0"], vec!["combined 0"]),
            (
                "tg3",
                false,
                vec!["em1-0", "em1-1", "em1-2"],
                vec!["tx 0", "rx 0", "rx 1"],
            ),
            (
                "tg3",
                true,
                vec!["em1-0", "em1-1", "em1-2"],
                vec!["control", "combined 0", "combined 1"],
            ),
            (
                "tg3",
                false,
                vec!["em1-tx-0", "em1-rx-1", "em1-rx-2"],
                vec!["tx 0", "rx 0", "rx 1"],
            ),
            (
                "tg3",
                true,
                vec!["em1-0", "em1-txrx-1", "em1-txrx-2"],
                vec!["control", "combined 0", "combined 1"],
            ),
            ("tg3", false, vec!["em1"], vec!["combined 0"]),
            (
                "gve",
                true,
                vec![
                    "gve-ntfy-blk0@pci:0000:00:08.0",
                    "gve-ntfy-blk1@pci:0000:00:08.0",
                    "gve-ntfy-blk2@pci:0000:00:08.0",
                    "gve-ntfy-blk3@pci:0000:00:08.0",
                    "gve-mgmnt@pci:0000:00:08.0",
                ],
                vec!["tx 0", "tx 1", "rx 0", "rx 1", "control"],
            ),
            (
                "vmxnet3",
                true,
                vec![
                    "eth0-tx-0",
                    "eth0-tx-1",
                    "eth0-rx-2",
                    "eth0-rx-3",
                    "eth0-event-4",
                ],
                vec!["tx 0", "tx 1", "rx 0", "rx 1", "control"],
            ),
            (
                "hns3",
                true,
                vec![
                    "hns3-0000:7d:00.0-TxRx-0",
                    "hns3-0000:7d:00.0-TxRx-2",
                    "hns3-0000:7d:00.0-TxRx-4",
                ],
                vec!["combined 0", "combined 1", "combined 2"],
            ),
            (
                "bnxt_en",
                true,
                vec!["eno12399np0-TxRx-", "eno12399np0-TxRx-"],
                vec!["combined 0 by order", "combined 1 by order"],
            ),
            (
                "ixgbe",
                true,
                vec!["p1-TxRx-0", "p1-TxRx-1", "p1-TxRx-1"],
                vec![
                    "combined 0 by order",
                    "combined 1 by order",
                    "combined 2 by order",
                ],
            ),
            (
                "virtio_net",
                true,
                vec![
                    "virtio2-config",
                    "virtio2-input.0",
                    "virtio2-output.0",
                    "virtio2-input.1",
                ],
                vec!["control", "rx 0", "tx 0", "rx 1"],
            ),
            (
                "virtio_net",
                true,
                vec!["virtio2-virtqueues"],
                vec!["combined 0"],
            ),
            (
                "atlantic",
                true,
                vec!["eth0", "eth0", "eth0"],
                vec!["?", "?", "?"],
            ),
        ] {
            assert_eq!(
                placed(driver, several_tx, &names),
                expected,
                "{driver} {names:?}"
            );
        }
    }
}
