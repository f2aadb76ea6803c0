//! Which queue each vector of an interface serves, by netlink and by the names of the vectors. Reads no file.
//!
//! Drivers number queues, vectors, or both, and some truncate the name before the end of its number; then only the
//! order of the vectors is left. Netlink takes precedence; names fill in what it does not report.

use std::collections::{BTreeMap, BTreeSet};

use crate::drivers::Numbering::{
    self, Mlx4, Paired, PairedRank, Plain, Queue, Rank, Realtek, Shared, Tg3, TxThenRx,
};
use crate::drivers::{ActionName, Driver, Told};
use crate::machine::Role::{self, Combined, Control, Data, Rdma, Rx, Tx};
use crate::machine::Source::{self, Name, Netlink, Order};
use crate::machine::netdev::IrqQueues;
use crate::machine::{Interface, UnknownVector};
use crate::root::Result;

/// A vector with a known name, before its queue is determined.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedVector<'a> {
    pub(crate) irq: u32,
    pub(crate) action: &'a str,
    pub(crate) named: ActionName<'a>,
    /// The use of the vector by its name; `None` if the name does not distinguish it from others.
    pub(crate) placed: Option<VectorUse<'a>>,
}

/// The role and queue of a vector, and how they were determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VectorUse<'a> {
    pub(crate) serves: (Role, Option<u32>),
    pub(crate) source: Source,
    /// The row that told the meaning of the name.
    pub(crate) told: Option<Told<'a>>,
}

impl VectorUse<'_> {
    /// In words: `rx 3`, `control`.
    fn shown(self) -> String {
        let (role, queue) = self.serves;
        role.with_queue(queue)
    }
}

/// Determines by name the use of each vector of one interface with `rx` receive and `tx` transmit queues. `found` is in
/// the order of the MSI-X entries, which is that of the IRQs. `are_all`: all vectors of the device are understood;
/// otherwise no vector can be known by its rank among the others, nor by being the only one. `is_alone`: the device has
/// no other interface, whose vectors may be among these if their names contain none.
pub(crate) fn place<'v>(
    driver: Option<&'static Driver>,
    found: &mut [NamedVector<'v>],
    (rx, tx): (usize, usize),
    (are_all, is_alone): (bool, bool),
) {
    let [receive, send] = [Rx, Tx].map(|role| found.iter().any(|vector| vector.named.role == role));
    for NamedVector { named, .. } in &mut *found {
        match named.numbering {
            // The driver truncated the name within `TxRx` or `tx`.
            Rank if receive && named.role == Combined && named.number.is_none() => named.role = Tx,
            Paired | PairedRank if send => named.role = Rx,
            _ => {}
        }
    }
    let count = |is: &dyn Fn(&ActionName) -> bool| found.iter().filter(|v| is(&v.named)).count();
    let plain = count(&|name| name.numbering == Plain);
    if plain > 1 && plain == found.len() {
        let driver = driver.filter(|_| are_all);
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
    let groups = group_by_role(found);
    let data = count(&|name| name.role.is_queue());
    let tg3_vectors = count(&|name| name.numbering == Tg3);
    let numbers = |role| {
        groups
            .get(&(role, Rank))
            .into_iter()
            .flatten()
            .filter_map(|peer| peer.0)
    };
    let both: BTreeSet<u32> = numbers(Combined).collect();
    let are_apart = |role: &Role| numbers(*role).any(|own| both.contains(&own));
    let roles = groups.keys().map(|(role, _)| *role);
    let numbered_together: BTreeSet<Role> = roles.filter(|role| !are_apart(role)).collect();
    // Counts the vectors of both directions that come before one of a single direction, if they are numbered together.
    let before = |role, number: Option<u32>| match number {
        Some(number) if numbered_together.contains(&role) => both.range(..number).count(),
        _ => 0,
    };
    let place = |NamedVector { irq, named, .. }: &NamedVector<'v>| {
        let (role, numbering) = (named.role, named.numbering);
        let peers = groups.get(&(role, numbering))?;
        let (rank, (number, _)) = (0..).zip(peers).find(|(_, peer)| peer.1 == *irq)?;
        let is_counted = !matches!(numbering, Numbering::None | Shared | Plain);
        let source = match number {
            None if is_counted => Order,
            _ => Name,
        };
        let number = number.unwrap_or(rank);
        let serves = match numbering {
            Numbering::None => (role, None),
            // Several vectors of one role cannot be told apart.
            Shared if peers.len() > 1 => (Data, None),
            Shared => (role, Some(0)),
            Plain if data > plain => (Control, None),
            Plain if plain == 1 => (Combined, Some(0)),
            Plain => return None,
            Realtek(_) if peers.len() == 1 => (Combined, Some(0)),
            Realtek(_) if (number as usize) < rx => (Rx, Some(number)),
            Realtek(None) if [16, 18].contains(&number) => (Data, None),
            Realtek(Some([first, _])) if number == first => (Tx, Some(0)),
            Realtek(Some([_, second])) if number == second && tx > 1 => (Tx, Some(1)),
            Realtek(_) => (Control, None),
            Queue | Paired | Mlx4 => (role, Some(number)),
            Rank => (
                role,
                Some(rank + u32::try_from(before(role, named.number)).ok()?),
            ),
            PairedRank => (role, Some(rank)),
            // The first half of the blocks transmits, the second receives.
            TxThenRx => {
                let last = peers.last()?.0;
                let blocks = last.map_or(peers.len(), |last| last as usize + 1);
                match number.checked_sub(u32::try_from(blocks / 2).ok()?) {
                    None => (Tx, Some(number)),
                    receives => (Rx, receives),
                }
            }
            Tg3 => match number.checked_sub(1) {
                // Vector 0 takes link events, and transmits while there is one transmit queue.
                None if data > tg3_vectors => (Control, None),
                None if tg3_vectors == 1 => (Combined, Some(0)),
                None if tx > 1 => (Control, None),
                None => (Tx, Some(0)),
                queue => (if tx > 1 { Combined } else { Rx }, queue),
            },
        };
        let is_only = peers.len() == 1 || numbering == Tg3 && tg3_vectors == 1;
        let is_relative = is_relative(numbering, source, is_only);
        // Numbers that occur twice belong to several ports, and so may numbers that only order.
        let is_of_ports = named.interface.is_none()
            && (source == Order || !is_alone && matches!(numbering, Rank | PairedRank));
        let is_doubtful = serves.0.is_queue() && (!are_all && is_relative || is_of_ports);
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

/// Vectors of one role whose numbers count the same thing: number and IRQ of each, ascending.
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

/// Whether a vector's queue follows from other vectors: from its rank among them, or from their absence.
fn is_relative(numbering: Numbering, source: Source, is_only: bool) -> bool {
    match numbering {
        Shared | Rank | PairedRank | TxThenRx => true,
        Plain | Realtek(_) | Tg3 => is_only,
        Numbering::None | Queue | Paired | Mlx4 => source == Order,
    }
}

/// The queues of each IRQ as netlink reports them.
pub(crate) type Reported = BTreeMap<u32, IrqQueues>;
/// IRQ, handler's name and use of a vector.
pub(crate) type KnownVector<'a> = (u32, String, VectorUse<'a>);

/// Determines the vectors of one interface. Returns those with a known use; records in `interface` those without, and
/// in words where netlink and a name disagree. `named` are placed by name; `action` returns the handlers' names of an
/// IRQ, if it has any.
pub(crate) fn settle<'v>(
    interface: &mut Interface,
    named: &[NamedVector<'v>],
    reported: &Reported,
    action: impl Fn(u32) -> Result<Option<String>>,
) -> Result<Vec<KnownVector<'v>>> {
    let mut named: BTreeMap<u32, NamedVector> =
        named.iter().map(|vector| (vector.irq, *vector)).collect();
    let (mut vectors, mut halves) = (Vec::new(), Vec::new());
    for (&irq, queues) in reported {
        let by_name = named.remove(&irq);
        let placed = by_name.and_then(|found| found.placed);
        let name = match by_name {
            Some(found) => Some(found.action.to_owned()),
            None => action(irq)?,
        };
        let known = by_netlink(queues, placed, reported);
        let Some((name, mut known)) = name.zip(known) else {
            continue;
        };
        if let Some(placed) = placed {
            // e1000e has one NAPI instance for its receive and its transmit vector, and reports it for one of them.
            if let Some(other) = other_half(placed, known, &named, reported) {
                known.serves = placed.serves;
                halves.push(other);
            }
            if placed.serves.0 != Data && placed.serves != known.serves {
                let [netlink, by_name] = [known, placed].map(VectorUse::shown);
                interface.contradictions.push(format!(
                    "IRQ {irq} ({name}) is {netlink} by netlink and {by_name} by its name"
                ));
            }
        }
        vectors.push((irq, name, known));
    }
    for (irq, found) in named {
        let (action, named) = (found.action.to_owned(), found.named);
        let Some(placed) = found.placed else {
            interface
                .unknown_vectors
                .push(UnknownVector { irq, action });
            continue;
        };
        // Netlink does not report vectors for control, idle queues and XDP. The transmit queue with a channel's number
        // may be that of another channel's traffic class.
        let serves = match placed.serves {
            (Combined, queue) if interface.channel_vectors => (Rx, queue),
            serves => serves,
        };
        let other = owner(serves, reported);
        if let Some(other) = other.filter(|_| !halves.contains(&irq)) {
            // Whether the name alone shows that this is a data vector of the interface, and its queue. Other names
            // belong to a function, of which another interface or RDMA may have some vectors.
            let stays = named.interface.is_some()
                && matches!(named.numbering, Queue | Rank)
                && placed.source == Name;
            let what = if stays {
                "placed with that queue"
            } else {
                "unchanged"
            };
            let by_name = placed.shown();
            interface.contradictions.push(format!(
                "IRQ {irq} ({action}) is {by_name} by its name, which is IRQ {other} by netlink; it is {what}"
            ));
            if !stays {
                continue;
            }
        }
        vectors.push((irq, action, placed));
    }
    // With vectors of a second function, names count those of one function, netlink the queues of the interface.
    if reported.keys().any(|&irq| !interface.device.may_have(irq)) {
        interface.contradictions.clear();
    }
    Ok(vectors)
}

/// For a vector with both directions of a queue by netlink and one by its name, returns the unreported IRQ that has the
/// other direction by its name.
fn other_half(
    placed: VectorUse,
    known: VectorUse,
    named: &BTreeMap<u32, NamedVector>,
    reported: &Reported,
) -> Option<u32> {
    let (role, queue) = placed.serves;
    let other = match role {
        Rx => Tx,
        Tx => Rx,
        _ => return None,
    };
    let is_other = |(irq, vector): &(&u32, &NamedVector)| {
        vector.placed.map(|placed| placed.serves) == Some((other, queue))
            && !reported.contains_key(irq)
    };
    let (&irq, _) = named.iter().find(is_other)?;
    (known.serves == (Combined, queue)).then_some(irq)
}

/// A vector's use by the queues on its IRQ; the lowest stands for all that share it. If a driver reports one direction
/// only, the vector's name decides on the other.
fn by_netlink<'v>(
    queues: &IrqQueues,
    named: Option<VectorUse>,
    reported: &Reported,
) -> Option<VectorUse<'v>> {
    let both = queues.rx.intersection(&queues.tx).min();
    let (role, queue, other) = match (both, queues.rx.first(), queues.tx.first()) {
        (Some(both), ..) => (Combined, both, Combined),
        (None, Some(rx), _) => (Rx, rx, Tx),
        (None, None, Some(tx)) => (Tx, tx, Rx),
        (None, None, None) => return None,
    };
    let (queue, whole) = (Some(*queue), (Combined, Some(*queue)));
    let is_whole = named.is_some_and(|named| named.serves == whole)
        && owner((other, queue), reported).is_none();
    Some(VectorUse {
        serves: if is_whole { whole } else { (role, queue) },
        source: Netlink,
        told: None,
    })
}

/// The IRQ that has a queue by netlink, in a direction of this role.
fn owner((role, queue): (Role, Option<u32>), reported: &Reported) -> Option<u32> {
    let queue = queue?;
    let rx = reported
        .iter()
        .find(|(_, queues)| queues.rx.contains(&queue));
    let tx = reported
        .iter()
        .find(|(_, queues)| queues.tx.contains(&queue));
    let owner = match role {
        Rx => rx,
        Tx => tx,
        Combined => rx.or(tx),
        Data | Rdma | Control => None,
    };
    owner.map(|(&irq, _)| irq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::classify;

    fn named(driver: &str, irq: u32, action: &'static str) -> Option<NamedVector<'static>> {
        let named = classify(Some(driver), action, &[])?;
        Some(NamedVector {
            irq,
            action,
            named,
            placed: None,
        })
    }

    /// Places vectors with these names on consecutive IRQs and returns their uses.
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
        place(
            None,
            &mut found,
            (1, 1 + usize::from(several_tx)),
            (true, true),
        );
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
            ("mvpp2", "eth0", 2, 2, 2, ""),
            ("e1000e", "enp195s0f0np0", 3, 1, 1, "rx 0, tx 0, control"),
            ("igbvf", "enp195s0f0v12", 3, 1, 1, "tx 0, rx 0, control"),
            ("igbvf", "enp195s0f0v12", 2, 1, 1, ""),
        ] {
            let mut found: Vec<NamedVector> = (98..)
                .take(vectors)
                .map(|irq| named(driver, irq, name).unwrap())
                .collect();
            place(Driver::of(Some(driver)), &mut found, (rx, tx), (true, true));
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

    /// An IRQ and its receive and transmit queues by netlink.
    type OfIrq = (u32, &'static [u32], &'static [u32]);

    /// The vectors, then the contradictions, for names on consecutive IRQs from 98 and netlink's answer.
    fn settled(driver: &str, names: &[&'static str], reported: &[OfIrq]) -> Vec<String> {
        let mut found: Vec<NamedVector> = (98..)
            .zip(names)
            .filter_map(|(irq, name)| named(driver, irq, name))
            .collect();
        place(None, &mut found, (1, 2), (true, true));
        let queues = |&(irq, rx, tx): &OfIrq| {
            let [rx, tx] = [rx, tx].map(|ids| ids.iter().copied().collect());
            (irq, IrqQueues { rx, tx })
        };
        let reported = reported.iter().map(queues).collect();
        let action = |irq: u32| {
            let name = (irq as usize).checked_sub(98).and_then(|at| names.get(at));
            Ok(name.map(|&name| name.to_owned()))
        };
        let mut interface = Interface::default();
        let vectors = settle(&mut interface, &found, &reported, action).unwrap();
        let mut lines: Vec<String> = vectors
            .iter()
            .map(|(irq, _, placed)| format!("{irq} {} {:?}", placed.shown(), placed.source))
            .collect();
        lines.sort();
        lines.extend(
            interface
                .unknown_vectors
                .iter()
                .map(|unknown| format!("{} ?", unknown.irq)),
        );
        lines.extend(interface.contradictions);
        lines
    }

    #[test]
    fn netlink_and_names_that_agree() {
        let reported: &[OfIrq] = &[(99, &[0], &[0]), (98, &[1], &[1])];
        assert_eq!(
            settled("ixgbe", &["e0-TxRx-1", "e0-TxRx-0"], reported),
            ["98 combined 1 Netlink", "99 combined 0 Netlink"]
        );
    }

    #[test]
    fn several_queues_on_one_napi_are_known_by_the_lowest() {
        let reported: &[OfIrq] = &[(98, &[0, 2], &[0, 4]), (99, &[1], &[]), (97, &[], &[5])];
        assert_eq!(
            settled("new", &["?", "?"], reported),
            ["98 combined 0 Netlink", "99 rx 1 Netlink"]
        );
    }

    #[test]
    fn netlink_wins_and_both_answers_are_kept() {
        let reported: &[OfIrq] = &[(98, &[1], &[1])];
        assert_eq!(
            settled("ixgbe", &["e0-TxRx-0", "e0-TxRx-1"], reported),
            [
                "98 combined 1 Netlink",
                "99 combined 1 Name",
                "IRQ 98 (e0-TxRx-0) is combined 1 by netlink and combined 0 by its name",
                "IRQ 99 (e0-TxRx-1) is combined 1 by its name, which is IRQ 98 by netlink; it is placed with that queue",
            ]
        );
    }

    #[test]
    fn a_vector_that_netlink_leaves_out_stays_what_its_name_tells() {
        let reported: &[OfIrq] = &[(98, &[0], &[0])];
        assert_eq!(
            settled("e1000e", &["e0-rx-0", "e0-tx-0", "e0"], reported),
            ["100 control Name", "98 rx 0 Netlink", "99 tx 0 Name",]
        );
        // Vectors beyond the queues in use; the flow director's, whose name looks like a queue's.
        assert_eq!(
            settled(
                "ice",
                &[
                    "ice-e0-TxRx-0",
                    "ice-e0-TxRx-1",
                    "ice-0000:82:00.0:ctrl-TxRx-0"
                ],
                reported
            ),
            [
                "100 control Name",
                "98 combined 0 Netlink",
                "99 combined 1 Name"
            ]
        );
        // Vectors of a function without a queue of this interface belong to RDMA, or to another interface.
        assert_eq!(
            settled(
                "mlx5_core",
                &["mlx5_comp1@pci:0000:82:00.0", "mlx5_comp0@pci:0000:82:00.0"],
                reported
            ),
            [
                "98 combined 0 Netlink",
                "IRQ 98 (mlx5_comp1@pci:0000:82:00.0) is combined 0 by netlink and combined 1 by its name",
                "IRQ 99 (mlx5_comp0@pci:0000:82:00.0) is combined 0 by its name, which is IRQ 98 by netlink; \
                 it is unchanged",
            ]
        );
        // Truncated names give only an order.
        assert_eq!(
            settled(
                "bnxt_en",
                &["eno12399np0-TxRx-", "eno12399np0-TxRx-"],
                &[(99, &[0], &[0])]
            ),
            [
                "99 combined 0 Netlink",
                "IRQ 99 (eno12399np0-TxRx-) is combined 0 by netlink and combined 1 by its name",
                "IRQ 98 (eno12399np0-TxRx-) is combined 0 by its name, which is IRQ 99 by netlink; it is unchanged",
            ]
        );
    }

    #[test]
    fn names_fill_in_what_netlink_leaves_out() {
        // No IRQ, as from virtio_net; one direction only; vectors beyond the queues.
        assert_eq!(
            settled("virtio_net", &["virtio2-input.0", "virtio2-output.0"], &[]),
            ["98 rx 0 Name", "99 tx 0 Name"]
        );
        let one_way: &[OfIrq] = &[(98, &[0], &[])];
        assert_eq!(
            settled("ixgbe", &["e0-TxRx-0", "e0-TxRx-1", "e0"], one_way),
            [
                "100 control Name",
                "98 combined 0 Netlink",
                "99 combined 1 Name"
            ]
        );
    }

    #[test]
    fn netlink_knows_vectors_whose_names_say_nothing() {
        let reported: &[OfIrq] = &[(99, &[0], &[0])];
        assert_eq!(
            settled("atlantic", &["e0", "e0", "e0"], reported),
            ["99 combined 0 Netlink", "98 ?", "100 ?"]
        );
    }
}
