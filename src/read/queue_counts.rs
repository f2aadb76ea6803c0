//! Packets of each queue, as drivers count them: by netlink (`qstats`, Linux 6.10) and by `ethtool -S`, where each
//! driver has its own names.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;

use crate::machine::files::NET;
use crate::machine::netdev::Direction::{self, Rx, Tx};
use crate::machine::sample::QueueOf;
use crate::read::files::number;
use crate::read::{ethtool, netlink};
use crate::root::{Result, Root};

pub(super) fn read(root: &Root, interfaces: &BTreeSet<String>) -> Result<BTreeMap<QueueOf, u64>> {
    let mut packets = BTreeMap::new();
    if interfaces.is_empty() {
        return Ok(packets);
    }
    let mut client = netlink::open(root)?;
    for interface in interfaces {
        for (name, count) in ethtool::statistics(root, interface)? {
            if let Some((direction, queue)) = queue_of(&name) {
                let all = packets.entry((interface.clone(), direction, queue));
                let all: &mut u64 = all.or_default();
                *all = all.saturating_add(count);
            }
        }
        let index = root.read_as(&format!("{NET}/{interface}/ifindex"), number)?;
        if let Some((client, index)) = client.as_mut().zip(index) {
            let found = client.packets(index);
            let found = found.map_err(|error| root.io_error(interface, error))?;
            packets.extend(
                found.into_iter().map(|(direction, queue, count)| {
                    ((interface.clone(), direction, queue), count)
                }),
            );
        }
    }
    Ok(packets)
}

const WORDS: [&str; 17] = [
    "rx", "tx", "rxq", "txq", "queue", "q", "ring", "ch", "rvec", "ucast", "mcast", "bcast", "n",
    "packets", "pkts", "pkt", "frames",
];

/// Parses the name of a packet counter: `rx_queue_0_packets`, `rx-0.packets`, `[0]: rx_ucast_packets`.
fn queue_of(name: &str) -> Option<(Direction, u32)> {
    let name = name.to_ascii_lowercase();
    // Names of ena and of atlantic.
    let name = name.replace("_cnt", "_packets");
    let name = name
        .replace("inpackets", "rx packets")
        .replace("outpackets", "tx packets");
    let runs = |is_part: fn(&char) -> bool| {
        let runs = name.split(move |c: char| !is_part(&c));
        runs.filter(|run| !run.is_empty()).collect_vec()
    };
    let (numbers, words) = (runs(char::is_ascii_digit), runs(char::is_ascii_alphabetic));
    let has = |start: &str| words.iter().any(|word| word.starts_with(start));
    let counts = ["packets", "pkts", "pkt", "frames"].into_iter().any(has);
    let known = words.iter().all(|word| WORDS.contains(word));
    let direction = match (has("rx"), has("tx")) {
        (true, false) => Rx,
        (false, true) => Tx,
        _ => return None,
    };
    let [number] = &numbers[..] else {
        return None;
    };
    let queue = number.parse().ok().filter(|_| counts && known)?;
    Some((direction, queue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_queues_are_told_from_others() {
        for (name, expected) in [
            ("rx_queue_0_packets", Some((Rx, 0))),
            ("tx_queue_12_packets", Some((Tx, 12))),
            ("rx0_packets", Some((Rx, 0))),
            ("rx-3.packets", Some((Rx, 3))),
            ("[2]: rx_ucast_packets", Some((Rx, 2))),
            ("queue_1_tx_cnt", Some((Tx, 1))),
            ("Queue[3] InPackets", Some((Rx, 3))),
            ("q0_rx_pkt_n", Some((Rx, 0))),
            ("Rx ring  1 frames", Some((Rx, 1))),
            ("rx_packets[5]", Some((Rx, 5))),
            ("rx_packets", None),
            ("rx_queue_0_drops", None),
            ("rx_queue_0_bytes", None),
            ("tx_queue_0_xdp_packets", None),
            ("rx_65_to_127_byte_packets", None),
            ("rx_1024_packets_2", None),
            ("tx_prio0_packets", None),
            ("", None),
        ] {
            assert_eq!(queue_of(name), expected, "{name}");
        }
    }
}
