//! Which queue each vector of an interface serves: netlink takes precedence, names fill in what it leaves out. Reads no
//! file.

use std::collections::{BTreeMap, BTreeSet};

use crate::cpuset::Inserted as _;
use crate::drivers::Numbering::{Queue, Rank, RxThenTx};
use crate::machine::Role::{self, Combined, Control, Data, Rdma, Rx, Tx};
use crate::machine::Source::{Name, Netlink};
use crate::machine::netdev::IrqQueues;
use crate::machine::{HandlerNames, Interface, UnknownVector};
use crate::read::names::{NamedVector, VectorUse};
use crate::root::Result;

pub(crate) type Reported = BTreeMap<u32, IrqQueues>;
pub(crate) type KnownVector<'a> = (UnknownVector, VectorUse<'a>);

/// Returns the vectors with a known use; records in `interface` the others, and where netlink and a name disagree.
/// `named` are placed by name; `handlers` returns the names of an IRQ's handlers.
pub(crate) fn settle<'v>(
    interface: &mut Interface,
    named: &[NamedVector<'v>],
    reported: &Reported,
    handlers: impl Fn(u32) -> Result<Vec<String>>,
) -> Result<Vec<KnownVector<'v>>> {
    let mut named: BTreeMap<u32, NamedVector> =
        named.iter().map(|vector| (vector.irq, *vector)).inserted();
    let (mut vectors, mut halves) = (Vec::new(), Vec::new());
    for (&irq, queues) in reported {
        let by_name = named.remove(&irq);
        let placed = by_name.and_then(|found| found.placed);
        let actions = match by_name {
            Some(found) => vec![found.action.to_owned()],
            None => handlers(irq)?,
        };
        let known = by_netlink(queues, placed, reported);
        let Some(mut known) = known.filter(|_| !actions.is_empty()) else {
            continue;
        };
        let action = HandlerNames::new(actions);
        if let Some(placed) = placed {
            // e1000e has one NAPI instance for its receive and its transmit vector, and reports it for one of them.
            if let Some(other) = other_half(placed, known, &named, reported) {
                known.serves = placed.serves;
                halves.push(other);
            }
            if placed.serves.0 != Data && placed.serves != known.serves {
                let [netlink, by_name] = [known, placed].map(VectorUse::shown);
                interface.contradictions.push(format!(
                    "IRQ {irq} ({action}) is {netlink} by netlink and {by_name} by its name"
                ));
            }
        }
        vectors.push((UnknownVector { irq, action }, known));
    }
    for (irq, found) in named {
        let (action, named) = (
            HandlerNames::new(vec![found.action.to_owned()]),
            found.named,
        );
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
            // The name alone shows that this is a data vector of the interface, and its queue. Other names belong to a
            // function, of which another interface or RDMA may have some vectors.
            let stays = named.interface.is_some()
                && matches!(named.numbering, Queue | Rank | RxThenTx)
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
        vectors.push((UnknownVector { irq, action }, placed));
    }
    // With vectors of a second function, names count those of one function, netlink the queues of the interface.
    if reported.keys().any(|&irq| !interface.device.may_have(irq)) {
        interface.contradictions.clear();
    }
    Ok(vectors)
}

/// For a vector with both directions of a queue by netlink and one by name: the unreported IRQ with the other by name.
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

/// The lowest queue stands for all that share the IRQ. If a driver reports one direction only, the name decides on the
/// other.
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

/// The IRQ that has a queue by netlink.
fn owner((role, queue): (Role, Option<u32>), reported: &Reported) -> Option<u32> {
    let queue = queue?;
    let with = |serves: fn(&IrqQueues) -> &BTreeSet<u32>| {
        let mut irqs = reported.iter();
        let (irq, _) = irqs.find(|(_, queues)| serves(queues).contains(&queue))?;
        Some(*irq)
    };
    let (rx, tx) = (with(|queues| &queues.rx), with(|queues| &queues.tx));
    match role {
        Rx => rx,
        Tx => tx,
        Combined => rx.or(tx),
        Data | Rdma | Control => None,
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::names::place_by_name;
    use crate::read::names::tests::{alone, named};

    /// An IRQ and its receive and transmit queues by netlink.
    type OfIrq = (u32, &'static [u32], &'static [u32]);

    fn settled(driver: &str, names: &[&'static str], reported: &[OfIrq]) -> Vec<String> {
        let mut found: Vec<NamedVector> = (98..)
            .zip(names)
            .filter_map(|(irq, name)| named(driver, irq, name))
            .collect();
        place_by_name(alone(None, 1, 2), &mut found);
        let queues = |&(irq, rx, tx): &OfIrq| {
            let [rx, tx] = [rx, tx].map(|ids| ids.iter().copied().collect());
            (irq, IrqQueues { rx, tx })
        };
        let reported = reported.iter().map(queues).collect();
        let action = |irq: u32| {
            let name = (irq as usize).checked_sub(98).and_then(|at| names.get(at));
            Ok(name.map(|&name| name.to_owned()).into_iter().collect())
        };
        let mut interface = Interface::default();
        let vectors = settle(&mut interface, &found, &reported, action).unwrap();
        let mut lines: Vec<String> = vectors
            .iter()
            .map(|(found, placed)| format!("{} {} {:?}", found.irq, placed.shown(), placed.source))
            .collect();
        lines.sort_unstable();
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
