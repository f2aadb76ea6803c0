//! The RSS indirection table of an interface: the receive queue for each value of the hash's low bits
//! (`struct ethtool_rxfh`, `include/uapi/linux/ethtool.h`; `Documentation/networking/scaling.rst`). Only that of
//! context 0, which takes all flows that no filter sends elsewhere.
//!
//! A setting, a record and a tree have the table as one line, `queues 4, entries 128, table 0 1 2 3`: the queues of
//! `table` are repeated until it has all entries; `0*32` stands for 32 entries with queue 0.

use std::collections::BTreeMap;

use crate::cpuset::QueueSet;
use crate::machine::channels::MAX_QUEUES;

/// The limit of entries. Those of drivers in Linux 6.12 have 2048 at most.
const MAX_ENTRIES: u32 = 4096;

/// An indirection table, and the hash function that selects its entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rss {
    /// The receive queue of each entry.
    pub table: Vec<u32>,
    /// How many receive queues it can name (`ETHTOOL_GRXRINGS`): those from 0.
    pub queues: u32,
    /// The hash function (`ETH_RSS_HASH_*`); 0 where the driver does not report it.
    pub function: u8,
}

impl Rss {
    /// Parses the form of a setting; `None` if it is not one.
    #[doc(hidden)]
    pub fn parse(text: &str) -> Option<Self> {
        let (mut rss, mut entries, mut period) = (Self::default(), None, Vec::new());
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let (name, rest) = part.trim().split_once(' ')?;
            match name {
                "queues" => {
                    rss.queues = rest.parse().ok().filter(|queues| *queues <= MAX_QUEUES)?;
                }
                "entries" => {
                    entries = Some(
                        rest.parse()
                            .ok()
                            .filter(|n| (1..=MAX_ENTRIES).contains(n))?,
                    );
                }
                "table" => {
                    for run in rest.split_ascii_whitespace() {
                        let (queue, times) = run.split_once('*').unwrap_or((run, "1"));
                        let queue = queue.parse().ok().filter(|queue| *queue < MAX_QUEUES)?;
                        let left = MAX_ENTRIES as usize - period.len();
                        let times = times
                            .parse()
                            .ok()
                            .filter(|times| (1..=left).contains(times))?;
                        period.resize(period.len() + times, queue);
                    }
                }
                _ => return None,
            }
        }
        let entries = entries? as usize;
        if period.is_empty() || period.len() > entries {
            return None;
        }
        rss.table = period.into_iter().cycle().take(entries).collect();
        Some(rss)
    }

    /// The form of a setting: the table without the function, which no write changes.
    pub(crate) fn to_setting(&self) -> String {
        let runs = self.period().chunk_by(|a, b| a == b).map(|run| match run {
            [queue] => format!(" {queue}"),
            run => format!(" {}*{}", run[0], run.len()),
        });
        let runs: String = runs.collect();
        format!(
            "queues {}, entries {}, table{runs}",
            self.queues,
            self.table.len()
        )
    }

    /// The shortest beginning of the table of which it is a repetition.
    fn period(&self) -> &[u32] {
        let table = &self.table;
        // The length of the longest end of each beginning of the table that is also its beginning.
        let (mut borders, mut border) = (vec![0; table.len()], 0);
        for at in 1..table.len() {
            while border > 0 && table[at] != table[border] {
                border = borders[border - 1];
            }
            border += usize::from(table[at] == table[border]);
            borders[at] = border;
        }
        &table[..table.len() - borders.last().copied().unwrap_or(0)]
    }

    /// Whether it is the kernel's default for this number of queues (`ethtool_rxfh_indir_default`).
    pub fn is_default(&self) -> bool {
        (0..)
            .zip(&self.table)
            .all(|(at, queue): (u32, _)| at.checked_rem(self.queues) == Some(*queue))
    }

    /// Whether two tables mean the same: they are equal, or both the default of their number of queues.
    pub(crate) fn means_same(&self, other: &Self) -> bool {
        self.table == other.table
            || self.table.len() == other.table.len() && self.is_default() && other.is_default()
    }

    /// The queues that it sends flows to.
    pub fn reached(&self) -> QueueSet {
        self.table.iter().copied().collect()
    }

    /// Whether it sends flows to exactly these queues, evenly: their numbers of entries differ by at most one.
    pub fn is_spread_over(&self, queues: &QueueSet) -> bool {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        self.table
            .iter()
            .for_each(|queue| *counts.entry(*queue).or_default() += 1);
        counts.len() == queues.len()
            && counts.keys().all(|queue| queues.contains(queue))
            && counts
                .values()
                .max()
                .zip(counts.values().min())
                .is_none_or(|(most, least)| most - least <= 1)
    }

    /// The same table with its entries dealt to these queues in turn.
    #[must_use]
    pub fn spread_over(&self, queues: &QueueSet) -> Self {
        let table = queues
            .iter()
            .copied()
            .cycle()
            .take(self.table.len())
            .collect();
        Self {
            table,
            ..self.clone()
        }
    }

    /// Whether the hash function is known to select an entry of the table, or is not reported.
    pub fn is_used(&self) -> bool {
        // Toeplitz, XOR and CRC32 (`ETH_RSS_HASH_*`).
        matches!(self.function, 0 | 1 | 2 | 4)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rss(table: Vec<u32>, queues: u32) -> Rss {
        Rss {
            table,
            queues,
            function: 1,
        }
    }

    #[test]
    fn a_table_is_written_in_short() {
        let dealt = rss((0..128).map(|at| at % 4).collect(), 4);
        assert_eq!(dealt.to_setting(), "queues 4, entries 128, table 0 1 2 3");
        let blocks = rss((0..128).map(|at| at / 32).collect(), 4);
        assert_eq!(
            blocks.to_setting(),
            "queues 4, entries 128, table 0*32 1*32 2*32 3*32"
        );
        assert!(dealt.is_default() && !blocks.is_default());
        assert_eq!(
            rss(vec![0, 1, 2, 0, 1], 3).to_setting(),
            "queues 3, entries 5, table 0 1 2"
        );
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for bad in [
            "",
            "queues 4",
            "queues 4, entries 0, table 0",
            "queues 4, entries 4097, table 0",
            "queues 4, entries 2, table 0 1 2",
            "queues 4, entries 128, table",
            "queues 4, entries 128, table 65536",
            "queues 4, entries 128, table 0*0",
            "queues 4, entries 128, table 0*99999999999",
            "queues 65537, entries 128, table 0",
            "queues 4, entries 128, table 0, more 1",
            "function toeplitz, queues 4, entries 128, table 0",
        ] {
            assert_eq!(Rss::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_default_table_stays_one_for_other_queues() {
        let of = |queues: u32| rss((0..128).map(|at| at % queues).collect(), queues);
        assert!(of(4).means_same(&of(8)) && !of(4).means_same(&rss(vec![0; 128], 8)));
        // Half of the queues: the table of a device that has only these.
        assert!(rss(of(4).table, 8).means_same(&rss(of(4).table, 4)));
        assert!(!rss(vec![0; 8], 0).is_default());
    }

    #[test]
    fn functions_that_nobody_knows() {
        assert!([0, 1, 2, 4].iter().all(|&function| {
            Rss {
                function,
                ..Rss::default()
            }
            .is_used()
        }));
        assert!(
            !Rss {
                function: 8,
                ..Rss::default()
            }
            .is_used()
        );
    }

    proptest! {
        #[test]
        fn any_table_is_read_back(table in prop::collection::vec(0_u32..5, 1..60), repeat in 1_usize..5, function in 0_u8..9) {
            let rss = Rss { table: table.repeat(repeat), queues: 5, function };
            prop_assert_eq!(Rss::parse(&rss.to_setting()), Some(Rss { function: 0, ..rss }));
        }

        #[test]
        fn no_text_is_too_odd(text in "[a-z0-9* \n,]{0,80}|\\PC{0,60}") {
            if let Some(rss) = Rss::parse(&text) {
                prop_assert_eq!(Rss::parse(&rss.to_setting()), Some(rss));
            }
        }

        /// Only the wanted queues, evenly; and what is spread stays as it is.
        #[test]
        fn entries_are_dealt_evenly(entries in 1_usize..600, queues in prop::collection::btree_set(0_u32..64, 1..20)) {
            let queues: QueueSet = queues.into_iter().take(entries).collect();
            let spread = rss(vec![0; entries], 64).spread_over(&queues);
            prop_assert_eq!(spread.table.len(), entries);
            prop_assert!(spread.is_spread_over(&queues));
            prop_assert_eq!(spread.reached(), queues.clone());
            prop_assert_eq!(spread.spread_over(&queues), spread);
        }
    }
}
