//! Rows for an unknown driver, learned from traffic: which queues' packets came with which IRQ.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry::{Occupied, Vacant};

use itertools::Itertools as _;

use super::pattern::{Pattern, platform_name};
use crate::machine::Role::{self, Combined, Rx, Tx};

/// An IRQ, and the only receive and transmit queue that it was seen to serve.
#[derive(Debug, Clone)]
pub struct Seen<'a> {
    pub irq: u32,
    pub action: &'a str,
    pub rx: Option<u32>,
    pub tx: Option<u32>,
}

/// Rows that also fit other cards of the driver. `device`: the device's address. Names that differ in one number get
/// one row. There is none if only one of several was seen, or the queues follow neither from numbers nor from the
/// order.
pub fn rows(driver: &str, interface: &str, device: &str, seen: &[Seen<'_>]) -> Vec<String> {
    let mut alike: BTreeMap<String, Vec<(Numbers, &Seen)>> = BTreeMap::new();
    for seen_irq in seen {
        let (text, numbers) = parts(interface, device, seen_irq.action);
        match alike.entry(text) {
            Occupied(mut entry) => entry.get_mut().push((numbers, seen_irq)),
            Vacant(entry) => drop(entry.insert(vec![(numbers, seen_irq)])),
        }
    }
    let rows = alike.into_iter().filter_map(|(text, irqs)| {
        let names = irqs.iter().map(|(_, irq)| irq.action).collect_vec();
        let row = row(driver, &text, irqs)?;
        let pattern = Pattern::taught(&row).ok()?;
        let fits = names.iter().all(|name| pattern.matches(name));
        fits.then_some(row)
    });
    rows.collect()
}

/// Numbers with their text.
type Numbers = Vec<(u32, String)>;

const NUMBER: char = '\0';

/// Replaces interface, address and numbers by placeholders ([`NUMBER`]); also returns the numbers.
fn parts(interface: &str, device: &str, action: &str) -> (String, Numbers) {
    let mut text = action.to_owned();
    let platform = platform_name(device).map(|name| format!("{{h}}.{name}"));
    let address = platform.as_deref().unwrap_or("{pci}");
    for (name, placeholder) in [(device, address), (interface, "{if}")] {
        let whole = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
        let found = text.match_indices(name).next();
        if let Some((at, _)) = found.filter(|(at, _)| whole(&text[at + name.len()..])) {
            text.replace_range(at..at + name.len(), placeholder);
        }
    }
    let (mut shape, mut numbers) = (String::new(), Vec::new());
    let runs = text.chars().chunk_by(char::is_ascii_digit);
    for (is_number, run) in &runs {
        let run: String = run.collect();
        match run.parse().ok().filter(|_| is_number) {
            Some(number) => {
                shape.push(NUMBER);
                numbers.push((number, run));
            }
            None => shape += &run,
        }
    }
    (shape, numbers)
}

fn row(driver: &str, text: &str, mut irqs: Vec<(Numbers, &Seen<'_>)>) -> Option<String> {
    irqs.sort_unstable_by_key(|(numbers, seen)| (numbers.clone(), seen.irq));
    let places = 0..irqs[0].0.len();
    let counts = |place: &usize| {
        !irqs
            .iter()
            .map(|(numbers, _)| numbers[*place].0)
            .all_equal()
    };
    let counting = places.clone().filter(counts).collect_vec();
    let known = irqs
        .iter()
        .zip(0_u32..)
        .filter_map(|((numbers, seen), rank)| {
            let queue = seen.rx.or(seen.tx)?;
            let number = counting.first().map(|place| numbers[*place].0);
            Some((queue, number, rank))
        });
    let known = known.collect_vec();
    let is_single = irqs.len() == 1;
    let agree = irqs
        .iter()
        .all(|(_, seen)| seen.rx.zip(seen.tx).is_none_or(|(rx, tx)| rx == tx));
    if counting.len() > 1 || known.len() < 2 && !is_single || known.is_empty() || !agree {
        return None;
    }
    let role = role(irqs.iter().map(|(_, seen)| *seen))?;
    let by = if is_single && known[0].0 == 0
        || known
            .iter()
            .all(|(queue, number, _)| Some(*queue) == *number)
    {
        ""
    } else if !is_single && known.iter().all(|(queue, _, rank)| queue == rank) {
        " by order"
    } else {
        return None;
    };
    let texts = text.split(NUMBER);
    let numbers = places.zip(texts.clone()).map(|(place, before)| {
        let number = &irqs[0].0[place].1;
        let word = before.rsplit(|c: char| !c.is_ascii_alphabetic()).next();
        if counting.contains(&place) {
            "{n}".to_owned()
        } else if word.is_some_and(|word| driver.contains(&format!("{word}{number}"))) {
            number.clone()
        } else {
            // The number counts devices: the driver's other cards have other numbers.
            "{h}".to_owned()
        }
    });
    let name = texts.map(str::to_owned);
    let name: String = name.interleave_shortest(numbers).collect();
    Some(format!("{name} = {}{by}", role.name()))
}

fn role<'a>(mut seen: impl Iterator<Item = &'a Seen<'a>> + Clone) -> Option<Role> {
    let (rx, tx) = (
        seen.clone().any(|irq| irq.rx.is_some()),
        seen.any(|irq| irq.tx.is_some()),
    );
    match (rx, tx) {
        (true, true) => Some(Combined),
        (true, false) => Some(Rx),
        (false, true) => Some(Tx),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_rows_where_traffic_leaves_no_doubt() {
        let learned = |seen: &[(&str, Option<u32>, Option<u32>)]| {
            let seen = (40..).zip(seen).map(|(irq, &(action, rx, tx))| Seen {
                irq,
                action,
                rx,
                tx,
            });
            rows("r81", "eth0", "0000:82:00.0", &seen.collect_vec()).join("; ")
        };
        let (no, is) = (None, Some);
        for (seen, expected) in [
            // Both directions, from 1; one direction of the first was not seen.
            (
                &[
                    ("acme-1@0000:82:00.0", is(0), no),
                    ("acme-2@0000:82:00.0", is(1), is(1)),
                    ("acme-3@0000:82:00.0", no, no),
                ][..],
                "acme-{n}@{pci} = combined by order",
            ),
            (
                &[
                    ("eth0:rx7-0", is(0), no),
                    ("eth0:rx7-1", is(1), no),
                    ("eth0:tx7-0", no, is(0)),
                    ("eth0:tx7-1", no, is(1)),
                ],
                "{if}:rx{h}-{n} = rx; {if}:tx{h}-{n} = tx",
            ),
            // The number of the card, and one that is in the driver's name.
            (
                &[
                    ("virtio3-input.0", is(0), no),
                    ("virtio3-input.1", is(1), no),
                    ("virtio3-output.0", no, is(0)),
                    ("virtio3-output.1", no, is(1)),
                ],
                "virtio{h}-input.{n} = rx; virtio{h}-output.{n} = tx",
            ),
            (
                &[("r81_rx0", is(0), no), ("r81_rx1", is(1), no)],
                "r81_rx{n} = rx",
            ),
            (
                &[("eth0", is(0), no), ("eth0", is(1), no), ("eth0", no, no)],
                "{if} = rx by order",
            ),
            (&[("acme01-rx", is(0), no)], "acme{h}-rx = rx"),
            // One name of several leaves open what the numbers count; contradictions; two numbers.
            (&[("a0", is(0), no), ("a1", no, no)], ""),
            (&[("a0", is(1), no), ("a1", is(0), no)], ""),
            (&[("a0", is(0), is(1)), ("a1", is(1), is(0))], ""),
            (&[("a0-0", is(0), no), ("a1-1", is(1), no)], ""),
            (
                &[("eth01", is(0), no), ("eth02", is(1), no)],
                "eth{n} = rx by order",
            ),
        ] {
            assert_eq!(learned(seen), expected, "{seen:?}");
        }
        // The address of a platform device.
        let seen = [0, 1].map(|queue| (format!("c080000.ethernet:rx{queue}"), queue));
        let seen = seen.iter().map(|(action, queue)| Seen {
            irq: 40 + queue,
            action,
            rx: is(*queue),
            tx: no,
        });
        let rows = rows("acme", "eth0", "c080000.ethernet", &seen.collect_vec());
        assert_eq!(rows, ["{h}.ethernet:rx{n} = rx"]);
    }
}
