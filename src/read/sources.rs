//! Merges what netlink reports and what names show about an interface's vectors. Netlink takes precedence; names fill
//! in what it does not report. Nothing is read here.

use std::collections::BTreeMap;

use crate::machine::netdev::{Direction, IrqQueues};
use crate::machine::{Role, Source, UnknownVector};
use crate::read::numbering::{NamedVector, VectorUse};

/// An interface's vectors, known and unknown.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SettledVectors {
    /// IRQ, handler's name and use of each known vector.
    pub(crate) vectors: Vec<(u32, String, VectorUse)>,
    /// Vectors without a known use.
    pub(crate) unknown: Vec<UnknownVector>,
    /// Where netlink and a name disagree: both answers, in words.
    pub(crate) contradictions: Vec<String>,
}

/// Determines the vectors of one interface. `named` are their uses by name, `reported` the queues of each IRQ by
/// netlink; `action` gives the handlers' names of an IRQ that has any.
pub(crate) fn settle(
    named: Vec<(NamedVector, Option<VectorUse>)>,
    reported: &BTreeMap<u32, IrqQueues>,
    action: impl Fn(u32) -> Option<String>,
) -> SettledVectors {
    let mut settled = SettledVectors::default();
    let mut named: BTreeMap<u32, (NamedVector, Option<VectorUse>)> = named
        .into_iter()
        .map(|(found, placed)| (found.irq, (found, placed)))
        .collect();
    let mut halves = Vec::new();
    for (&irq, queues) in reported {
        let by_name = named.remove(&irq);
        let placed = by_name.as_ref().and_then(|(_, placed)| *placed);
        let Some(name) = by_name
            .map(|(found, _)| found.action)
            .or_else(|| action(irq))
        else {
            continue;
        };
        let Some(mut known) = by_netlink(queues, placed, reported) else {
            continue;
        };
        // e1000e has one NAPI instance for its receive and its transmit vector, and reports it for one of them.
        let pair = placed.and_then(|placed| other_half(placed, known, &named, reported));
        if let Some((role, other)) = pair {
            known.role = role;
            halves.push(other);
        }
        if let Some(placed) =
            placed.filter(|placed| (placed.role, placed.queue) != (known.role, known.queue))
        {
            let (netlink, by_name) = (words(known), words(placed));
            settled.contradictions.push(format!(
                "IRQ {irq} ({name}) is {netlink} by netlink and {by_name} by its name"
            ));
        }
        settled.vectors.push((irq, name, known));
    }
    for (irq, (found, placed)) in named {
        let Some(placed) = placed else {
            settled.unknown.push(UnknownVector {
                irq,
                action: found.action,
            });
            continue;
        };
        // Vectors that netlink does not report: control, idle, XDP.
        let other = taken(placed, reported).filter(|_| !halves.contains(&irq));
        let Some(other) = other else {
            settled.vectors.push((irq, found.action, placed));
            continue;
        };
        let stays = found.has_queue_number() && placed.source == Source::Name;
        settled.contradictions.push(format!(
            "IRQ {irq} ({}) is {} by its name, which is IRQ {other} by netlink; it is {}",
            found.action,
            words(placed),
            if stays {
                "placed with that queue"
            } else {
                "unchanged"
            }
        ));
        if stays {
            settled.vectors.push((irq, found.action, placed));
        }
    }
    settled
}

/// Of a vector that has both directions of a queue by netlink, and one by its name: that one, and the IRQ that has the
/// other by its name and is not reported.
fn other_half(
    placed: VectorUse,
    known: VectorUse,
    named: &BTreeMap<u32, (NamedVector, Option<VectorUse>)>,
    reported: &BTreeMap<u32, IrqQueues>,
) -> Option<(Role, u32)> {
    let other = match placed.role {
        Role::Rx => Role::Tx,
        Role::Tx => Role::Rx,
        _ => return None,
    };
    let is_pair = known.role == Role::Combined && known.queue == placed.queue;
    let has_other =
        |of: &Option<VectorUse>| of.is_some_and(|of| of.role == other && of.queue == placed.queue);
    let mut named = named.iter();
    let found = named.find(|(irq, (_, of))| has_other(of) && !reported.contains_key(irq));
    found
        .filter(|_| is_pair)
        .map(|(&irq, _)| (placed.role, irq))
}

/// A vector's use by the queues on its IRQ: the lowest stands for those that share it. A driver that reports
/// one direction only is taken at its vector's name for the other.
fn by_netlink(
    queues: &IrqQueues,
    named: Option<VectorUse>,
    reported: &BTreeMap<u32, IrqQueues>,
) -> Option<VectorUse> {
    let (role, queue) = match (
        queues.rx.intersection(&queues.tx).min(),
        queues.rx.first(),
        queues.tx.first(),
    ) {
        (Some(&both), ..) => (Role::Combined, both),
        (None, Some(&rx), _) => (Role::Rx, rx),
        (None, None, Some(&tx)) => (Role::Tx, tx),
        (None, None, None) => return None,
    };
    let combined = Some((Role::Combined, Some(queue)));
    let named_combined = named.map(|named| (named.role, named.queue)) == combined;
    let other = if role == Role::Rx {
        Direction::Tx
    } else {
        Direction::Rx
    };
    let role = if named_combined && owner(other, queue, reported).is_none() {
        Role::Combined
    } else {
        role
    };
    Some(VectorUse {
        role,
        queue: Some(queue),
        source: Source::Netlink,
    })
}

/// The IRQ that has a name's queue by netlink.
fn taken(placed: VectorUse, reported: &BTreeMap<u32, IrqQueues>) -> Option<u32> {
    let queue = placed.queue?;
    let directions: &[Direction] = match placed.role {
        Role::Rdma | Role::Control => &[],
        Role::Rx => &[Direction::Rx],
        Role::Tx => &[Direction::Tx],
        Role::Combined => &[Direction::Rx, Direction::Tx],
    };
    directions
        .iter()
        .find_map(|&direction| owner(direction, queue, reported))
}

fn owner(direction: Direction, queue: u32, reported: &BTreeMap<u32, IrqQueues>) -> Option<u32> {
    let has = |queues: &IrqQueues| match direction {
        Direction::Rx => queues.rx.contains(&queue),
        Direction::Tx => queues.tx.contains(&queue),
    };
    reported
        .iter()
        .find(|(_, queues)| has(queues))
        .map(|(&irq, _)| irq)
}

fn words(placed: VectorUse) -> String {
    let role = placed.role.name();
    placed
        .queue
        .map_or(role.to_owned(), |queue| format!("{role} {queue}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::names::classify;
    use crate::read::numbering;

    /// An IRQ and its receive and transmit queues by netlink.
    type Reported = (u32, &'static [u32], &'static [u32]);

    /// The vectors, then the contradictions, for names on consecutive IRQs from 98 and netlink's answer.
    fn settled(driver: &str, names: &[&str], reported: &[Reported]) -> Vec<String> {
        let found: Vec<NamedVector> = (98..)
            .zip(names)
            .filter_map(|(irq, name)| {
                Some(NamedVector::new(irq, name, classify(Some(driver), name)?))
            })
            .collect();
        let placed = numbering::place(&found, true);
        let queues = |&(irq, rx, tx): &Reported| {
            let [rx, tx] = [rx, tx].map(|ids| ids.iter().copied().collect());
            (irq, IrqQueues { rx, tx })
        };
        let reported = reported.iter().map(queues).collect();
        let action = |irq: u32| {
            names
                .get((irq as usize).checked_sub(98)?)
                .map(|&name| name.to_owned())
        };
        let settled = settle(found.into_iter().zip(placed).collect(), &reported, action);
        let mut lines: Vec<String> = settled
            .vectors
            .iter()
            .map(|(irq, _, placed)| format!("{irq} {} {:?}", words(*placed), placed.source))
            .collect();
        lines.sort();
        lines.extend(
            settled
                .unknown
                .iter()
                .map(|unknown| format!("{} ?", unknown.irq)),
        );
        lines.extend(settled.contradictions);
        lines
    }

    #[test]
    fn netlink_and_names_that_agree() {
        let reported: &[Reported] = &[(99, &[0], &[0]), (98, &[1], &[1])];
        assert_eq!(
            settled("ixgbe", &["e0-TxRx-1", "e0-TxRx-0"], reported),
            ["98 combined 1 Netlink", "99 combined 0 Netlink"]
        );
    }

    #[test]
    fn several_queues_on_one_napi_are_known_by_the_lowest() {
        let reported: &[Reported] = &[(98, &[0, 2], &[0, 4]), (99, &[1], &[]), (97, &[], &[5])];
        assert_eq!(
            settled("new", &["?", "?"], reported),
            ["98 combined 0 Netlink", "99 rx 1 Netlink"]
        );
    }

    #[test]
    fn netlink_wins_and_both_answers_are_kept() {
        let reported: &[Reported] = &[(98, &[1], &[1])];
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
        let reported: &[Reported] = &[(98, &[0], &[0])];
        assert_eq!(
            settled("e1000e", &["e0-rx-0", "e0-tx-0", "e0"], reported),
            ["100 control Name", "98 rx 0 Netlink", "99 tx 0 Name",]
        );
        // Beyond the queues in use; the flow director's, which looks like a queue's.
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
        // A function's vectors without a queue of this interface are RDMA's, or another interface's.
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
        let one_way: &[Reported] = &[(98, &[0], &[])];
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
        let reported: &[Reported] = &[(99, &[0], &[0])];
        assert_eq!(
            settled("atlantic", &["e0", "e0", "e0"], reported),
            ["99 combined 0 Netlink", "98 ?", "100 ?"]
        );
    }
}
