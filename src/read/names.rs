//! Which queue each vector of an interface serves, by the vectors' names. Reads no file.
//!
//! Drivers number queues, vectors, or both; some truncate the name within its number, which leaves only the order.

use std::collections::{BTreeMap, BTreeSet};

use crate::cpuset::Inserted as _;
use crate::drivers::Numbering::{
    self, Lent, Mlx4, Paired, PairedRank, Plain, Queue, Rank, Realtek, RxThenTx, Shared, Tg3,
    TxThenRx, Virtqueue,
};
use crate::drivers::{ActionName, Driver, Told};
use crate::machine::Role::{self, Combined, Control, Data, Rx, Tx};
use crate::machine::Source::{self, Name, Order};

#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedVector<'a> {
    pub(crate) irq: u32,
    pub(crate) action: &'a str,
    pub(crate) named: ActionName<'a>,
    /// `None` if the name does not distinguish the vector from others.
    pub(crate) placed: Option<VectorUse<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VectorUse<'a> {
    pub(crate) serves: (Role, Option<u32>),
    pub(crate) source: Source,
    pub(crate) told: Option<Told<'a>>,
}

impl VectorUse<'_> {
    /// In words: `rx 3`, `control`.
    pub(super) fn shown(self) -> String {
        let (role, queue) = self.serves;
        role.with_queue(queue)
    }
}

/// What is known of an interface besides its vectors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownInterface {
    pub(crate) driver: Option<&'static Driver>,
    pub(crate) rx_queues: usize,
    pub(crate) tx_queues: usize,
    /// All vectors of the device are understood; otherwise neither a vector's rank nor the absence of others tells its
    /// queue.
    pub(crate) are_all: bool,
    /// The vectors cannot be those of another interface of the device.
    pub(crate) is_alone: bool,
}

/// Determines by name the use of each vector of an interface. `found` is in the order of the MSI-X entries, which is
/// that of the IRQs.
pub(crate) fn place_by_name<'v>(interface: KnownInterface, found: &mut [NamedVector<'v>]) {
    let (rx, tx) = (interface.rx_queues, interface.tx_queues);
    let [receive, send] = [Rx, Tx].map(|role| found.iter().any(|vector| vector.named.role == role));
    for NamedVector { named, .. } in &mut *found {
        match named.numbering {
            // The driver truncated the name within `TxRx` or `tx`.
            Rank if receive && named.role == Combined && named.number.is_none() => named.role = Tx,
            Paired | PairedRank if send => named.role = Rx,
            _ => {}
        }
    }
    let is_plain = |vector: &&NamedVector| vector.named.numbering == Plain;
    let plain = found.iter().filter(is_plain).count();
    if plain > 1 && plain == found.len() {
        let driver = interface.driver.filter(|_| interface.are_all);
        let by_order = driver.and_then(|driver| driver.in_order(plain, rx, tx));
        for (vector, serves) in found.iter_mut().zip(by_order.unwrap_or_default()) {
            vector.placed = Some(VectorUse {
                serves,
                source: Order,
                told: Some(vector.named.told),
            });
        }
        return;
    }
    let names = Names::of(found, rx, tx);
    let place = |NamedVector { irq, named, .. }: &NamedVector<'v>| {
        let peers = names.peers.get(&(named.role, named.numbering))?;
        let (rank, (number, _)) = (0..).zip(peers).find(|(_, peer)| peer.1 == *irq)?;
        let is_counted = !matches!(named.numbering, Numbering::None | Lent | Shared | Plain);
        let source = match number {
            None if is_counted => Order,
            _ => Name,
        };
        let serves = names.serves(named, peers, rank, number.unwrap_or(rank))?;
        // Numbers that occur twice belong to several ports, and so may numbers that only order.
        let is_of_ports = named.interface.is_none()
            && (source == Order
                || !interface.is_alone && matches!(named.numbering, Rank | PairedRank));
        let is_relative = || names.is_relative(named.numbering, source, peers);
        let is_doubtful =
            serves.0.is_queue() && (is_of_ports || !interface.are_all && is_relative());
        Some(VectorUse {
            serves: if is_doubtful { (Data, None) } else { serves },
            source,
            told: Some(named.told),
        })
    };
    for vector in found {
        vector.placed = place(vector);
    }
}

struct Names {
    rx: usize,
    tx: usize,
    peers: BTreeMap<(Role, Numbering), NumberedPeers>,
    queues: usize,
    plain: usize,
    tg3: usize,
    /// Numbers of the vectors of both directions, and the roles that are numbered together with them.
    both: BTreeSet<u32>,
    numbered_together: BTreeSet<Role>,
}

impl Names {
    fn of(found: &[NamedVector], rx: usize, tx: usize) -> Self {
        let count = |is: &dyn Fn(&ActionName) -> bool| {
            found.iter().filter(|vector| is(&vector.named)).count()
        };
        let peers = group_by_role(found);
        let numbers = |role| {
            let peers = peers.get(&(role, Rank)).into_iter().flatten();
            peers.filter_map(|peer| peer.0)
        };
        let both: BTreeSet<u32> = numbers(Combined).collect();
        let are_apart = |role: &Role| numbers(*role).any(|own| both.contains(&own));
        let roles = peers.keys().map(|(role, _)| *role);
        Self {
            rx,
            tx,
            queues: count(&|name| name.role.is_queue()),
            plain: count(&|name| name.numbering == Plain),
            tg3: count(&|name| name.numbering == Tg3),
            numbered_together: roles.filter(|role| !are_apart(role)).inserted(),
            both,
            peers,
        }
    }

    /// `number` is that in the vector's name, or its rank among its peers.
    fn serves(
        &self,
        named: &ActionName,
        peers: &NumberedPeers,
        rank: u32,
        number: u32,
    ) -> Option<(Role, Option<u32>)> {
        let (role, is_received) = (named.role, (number as usize) < self.rx);
        Some(match named.numbering {
            Numbering::None | Lent => (role, None),
            Shared if peers.len() > 1 => (Data, None),
            Shared => (role, Some(0)),
            Plain if self.queues > self.plain => (Control, None),
            Plain if self.plain == 1 => (Combined, Some(0)),
            Plain => return None,
            Realtek(_) if peers.len() == 1 => (Combined, Some(0)),
            Realtek(_) if is_received => (Rx, Some(number)),
            Realtek(None) if [16, 18].contains(&number) => (Data, None),
            Realtek(Some([first, _])) if number == first => (Tx, Some(0)),
            Realtek(Some([_, second])) if number == second && self.tx > 1 => (Tx, Some(1)),
            Realtek(_) => (Control, None),
            Queue | Paired | Mlx4 => (role, Some(number)),
            Virtqueue if number % 2 == 0 => (Rx, Some(number / 2)),
            Virtqueue => (Tx, Some(number / 2)),
            Rank => (role, Some(rank + self.count_before(role, named.number)?)),
            // As many as queues of both directions: the first send.
            PairedRank if role == Combined && peers.len() == self.rx + self.tx => {
                match rank.checked_sub(u32::try_from(self.tx).ok()?) {
                    None => (Tx, Some(rank)),
                    receives => (Rx, receives),
                }
            }
            PairedRank => (role, Some(rank)),
            // The first half of the blocks transmits, the second receives.
            TxThenRx => match number.checked_sub(count_of(peers)? / 2) {
                None => (Tx, Some(number)),
                receives => (Rx, receives),
            },
            RxThenTx => {
                let first_tx = count_of(peers)?.saturating_sub(u32::try_from(self.tx).ok()?);
                match is_received {
                    true if first_tx == 0 => (Combined, Some(number)),
                    true => (Rx, Some(number)),
                    false => (Tx, number.checked_sub(first_tx)),
                }
            }
            Tg3 => match number.checked_sub(1) {
                // Vector 0 takes link events, and transmits while there is one transmit queue.
                None if self.queues > self.tg3 => (Control, None),
                None if self.tg3 == 1 => (Combined, Some(0)),
                None if self.tx > 1 => (Control, None),
                None => (Tx, Some(0)),
                queue => (if self.tx > 1 { Combined } else { Rx }, queue),
            },
        })
    }

    /// How many vectors of both directions come before one of a single direction that is numbered with them.
    fn count_before(&self, role: Role, number: Option<u32>) -> Option<u32> {
        let number = number.filter(|_| self.numbered_together.contains(&role));
        let before = number.map_or(0, |number| self.both.range(..number).count());
        u32::try_from(before).ok()
    }

    /// Whether the queue follows from other vectors: from the rank among them, or their absence.
    fn is_relative(&self, numbering: Numbering, source: Source, peers: &NumberedPeers) -> bool {
        match numbering {
            Shared | Rank | PairedRank | TxThenRx => true,
            // As many vectors as queues of each direction: none is of one direction.
            RxThenTx => source == Order || [self.rx, self.tx] != [peers.len(); 2],
            Plain | Realtek(_) => peers.len() == 1,
            Tg3 => peers.len() == 1 || self.tg3 == 1,
            Numbering::None | Lent | Queue | Paired | Mlx4 | Virtqueue => source == Order,
        }
    }
}

/// Number and IRQ, ascending, of vectors of one role whose numbers count the same thing.
type NumberedPeers = Vec<(Option<u32>, u32)>;

fn group_by_role(found: &[NamedVector]) -> BTreeMap<(Role, Numbering), NumberedPeers> {
    let mut groups: BTreeMap<_, NumberedPeers> = BTreeMap::new();
    for NamedVector { irq, named, .. } in found {
        groups
            .entry((named.role, named.numbering))
            .or_default()
            .push((named.number, *irq));
    }
    for peers in groups.values_mut() {
        peers.sort_unstable();
        // If numbers are missing or occur twice, only the order of IRQs counts.
        if peers.iter().any(|(number, _)| number.is_none())
            || peers.windows(2).any(|pair| pair[0].0 == pair[1].0)
        {
            for (number, _) in peers.iter_mut() {
                *number = None;
            }
            peers.sort_unstable();
        }
    }
    groups
}

fn count_of(peers: &NumberedPeers) -> Option<u32> {
    match peers.last()?.0 {
        Some(last) => last.checked_add(1),
        None => u32::try_from(peers.len()).ok(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::drivers::classify;

    pub(in crate::read) fn named(
        driver: &str,
        irq: u32,
        action: &'static str,
    ) -> Option<NamedVector<'static>> {
        let named = classify(Some(driver), action, &[])?;
        Some(NamedVector {
            irq,
            action,
            named,
            placed: None,
        })
    }

    pub(in crate::read) fn alone(
        driver: Option<&'static Driver>,
        rx_queues: usize,
        tx_queues: usize,
    ) -> KnownInterface {
        KnownInterface {
            driver,
            rx_queues,
            tx_queues,
            are_all: true,
            is_alone: true,
        }
    }

    fn placed(driver: &str, several_tx: bool, names: &[&'static str]) -> Vec<String> {
        let mut found: Vec<NamedVector> = (98..)
            .zip(names)
            .map(|(irq, name)| named(driver, irq, name).unwrap())
            .collect();
        let text = |placed: Option<VectorUse>| match placed {
            None => "?".to_owned(),
            Some(placed) => {
                let is_by_order = placed.source == Source::Order;
                placed.shown() + if is_by_order { " by order" } else { "" }
            }
        };
        place_by_name(alone(None, 1, 1 + usize::from(several_tx)), &mut found);
        found
            .into_iter()
            .map(|vector| text(vector.placed))
            .collect()
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
            (
                "atlantic",
                "eth0",
                5,
                2,
                2,
                "combined 0, combined 1, control, control, control",
            ),
            ("atlantic", "eth0", 6, 2, 2, ""),
            ("atlantic", "eth0", 3, 2, 3, ""),
            ("lan743x", "lan743x", 4, 2, 1, "control, tx 0, rx 0, rx 1"),
            ("lan743x", "lan743x", 3, 2, 1, ""),
            ("mvpp2", "eth0", 3, 2, 2, "rx 0, rx 1, control"),
            ("mvpp2", "eth0", 5, 1, 2, ""),
            ("e1000e", "enp195s0f0np0", 3, 1, 1, "rx 0, tx 0, control"),
            ("igbvf", "enp195s0f0v12", 3, 1, 1, "tx 0, rx 0, control"),
            ("igbvf", "enp195s0f0v12", 2, 1, 1, ""),
        ] {
            let mut found: Vec<NamedVector> = (98..)
                .take(vectors)
                .map(|irq| named(driver, irq, name).unwrap())
                .collect();
            place_by_name(alone(Driver::of(Some(driver)), rx, tx), &mut found);
            let text: Vec<String> = found
                .into_iter()
                .filter_map(|vector| vector.placed)
                .map(|placed| {
                    assert_eq!(placed.source, Source::Order);
                    placed.shown()
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
