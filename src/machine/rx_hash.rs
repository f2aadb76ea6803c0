//! The assignment of arriving flows to receive queues, as ethtool reports it: ntuple filters first, then RSS
//! (`include/uapi/linux/ethtool.h`, `Documentation/networking/scaling.rst`).

use std::collections::BTreeMap;
use std::iter::repeat_n;

use itertools::Itertools as _;
use serde::{Deserialize, Serialize};

use self::FilterTarget::{Context, Dropped, Function, Queue};
use self::FlowKind::{Tcp4, Tcp6, Udp4};
use crate::cpuset::QueueSet;
use crate::machine::channels::MAX_QUEUES;

/// Drivers of Linux 6.12 have at most 2048.
const MAX_ENTRIES: usize = 4096;

/// RSS indirection table and hash function (`struct ethtool_rxfh`) of context 0, which takes all flows that no filter
/// sends elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rss {
    pub table: Vec<u32>,
    /// Receive queues that entries can name, from 0 (`ETHTOOL_GRXRINGS`).
    pub queues: u32,
    /// `ETH_RSS_HASH_*`; 0 if not reported.
    pub function: u8,
}

impl Rss {
    /// Parses `queues 4, entries 128, table 0 1 2 3`: the table is repeated until there are 128 entries; `0*32` stands
    /// for 32 entries with queue 0.
    #[doc(hidden)]
    pub fn parse(text: &str) -> Option<Self> {
        let (queues, rest) = text
            .trim()
            .strip_prefix("queues ")?
            .split_once(", entries ")?;
        let (entries, runs) = rest.split_once(", table ")?;
        let queues = queues.parse().ok().filter(|queues| *queues <= MAX_QUEUES)?;
        let entries: usize = entries
            .parse()
            .ok()
            .filter(|entries| *entries <= MAX_ENTRIES)?;
        let mut period = Vec::new();
        for run in runs.split_ascii_whitespace() {
            let (queue, times) = run.split_once('*').unwrap_or((run, "1"));
            let (queue, times): (u32, usize) = (queue.parse().ok()?, times.parse().ok()?);
            if queue >= MAX_QUEUES || !(1..=entries - period.len()).contains(&times) {
                return None;
            }
            period.extend(repeat_n(queue, times));
        }
        let table = period.iter().copied().cycle().take(entries).collect();
        (!period.is_empty()).then_some(Self {
            table,
            queues,
            function: 0,
        })
    }

    /// Without the function, which no write changes.
    pub(crate) fn to_setting(&self) -> String {
        let entries = self.table.len();
        // The shortest beginning of the table of which it is a repetition.
        let period = (1..entries)
            .find(|at| self.table[*at..] == self.table[..entries - at])
            .unwrap_or(entries);
        let runs = self.table[..period].chunk_by(|a, b| a == b);
        let runs: String = runs
            .map(|run| match run {
                [queue] => format!(" {queue}"),
                run => format!(" {}*{}", run[0], run.len()),
            })
            .collect();
        format!("queues {}, entries {entries}, table{runs}", self.queues)
    }

    /// The kernel's default for this number of queues (`ethtool_rxfh_indir_default`).
    pub fn is_default(&self) -> bool {
        (0..)
            .zip(&self.table)
            .all(|(at, queue): (u32, _)| at.checked_rem(self.queues) == Some(*queue))
    }

    pub(crate) fn means_same(&self, other: &Self) -> bool {
        self.table == other.table
            || self.table.len() == other.table.len() && self.is_default() && other.is_default()
    }

    pub fn reached(&self) -> QueueSet {
        self.table.iter().copied().collect()
    }

    /// Whether exactly these queues get flows, and their numbers of entries differ by at most one.
    pub fn is_spread_over(&self, queues: &QueueSet) -> bool {
        let counts = self
            .table
            .iter()
            .sorted_unstable()
            .dedup_with_count()
            .collect_vec();
        counts.iter().map(|(_, queue)| *queue).eq(queues.iter())
            && counts
                .iter()
                .map(|(count, _)| count)
                .minmax()
                .into_option()
                .is_none_or(|(least, most)| most - least <= 1)
    }

    #[must_use]
    pub fn spread_over(&self, queues: &QueueSet) -> Self {
        let dealt = queues.iter().copied().cycle().take(self.table.len());
        Self {
            table: dealt.collect(),
            ..*self
        }
    }

    /// The hash function is known to select an entry of the table, or is not reported.
    pub fn is_used(&self) -> bool {
        // Toeplitz, XOR and CRC32 (`ETH_RSS_HASH_*`).
        matches!(self.function, 0 | 1 | 2 | 4)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RxHash {
    /// 0 takes all flows that no filter sends to another.
    pub contexts: BTreeMap<u32, RssContext>,
    /// Absent if not reported (`ETHTOOL_GRXFH`).
    pub fields: BTreeMap<FlowKind, u32>,
    pub to_stack: Option<bool>,
    pub ntuple: Option<bool>,
    pub filter_count: Option<u32>,
    /// In the order of matching. Captures have only their number, since filters hold addresses.
    #[serde(skip)]
    pub filters: Vec<Filter>,
    pub release: Option<(u32, u32)>,
    /// `net.core.netdev_rss_key`, from which some drivers take a key that they do not report.
    pub system_key: Key,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RssContext {
    pub function: u8,
    /// Transformation of the input (`RXH_XFRM_*`), from Linux 6.8 on.
    pub transform: u8,
    pub key: Key,
    pub table: Vec<u32>,
}

/// A key, serialized as numbers: captures remove pairs of hex digits with colons, which may be hardware addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(pub Vec<u8>);

impl Key {
    /// In bytes; drivers have 52 at most (`NETDEV_RSS_KEY_LEN` is 256).
    pub const MAX: usize = 256;

    /// Parses pairs of hex digits with colons between them; empty text is no key.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: Vec<u8> = text
            .trim()
            .split(':')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                u8::from_str_radix(pair, 16)
                    .ok()
                    .filter(|_| pair.len() == 2)
            })
            .collect::<Option<_>>()?;
        (bytes.len() <= Self::MAX).then_some(Self(bytes))
    }

    /// Also true of the zeros of a key that nobody has asked for yet.
    pub fn is_unset(&self) -> bool {
        self.0.iter().all(|&byte| byte == 0)
    }
}

/// A protocol that RSS can hash by ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowKind {
    Tcp4,
    Udp4,
    Tcp6,
    Udp6,
}

impl FlowKind {
    /// Each with its `*_FLOW` number.
    pub const ALL: [(Self, u32); 4] = [
        (Self::Tcp4, 0x01),
        (Self::Udp4, 0x02),
        (Self::Tcp6, 0x05),
        (Self::Udp6, 0x06),
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp4 => "TCP over IPv4",
            Self::Udp4 => "UDP over IPv4",
            Self::Tcp6 => "TCP over IPv6",
            Self::Udp6 => "UDP over IPv6",
        }
    }
}

/// An ntuple filter (`struct ethtool_rx_flow_spec`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Of several filters that match, the lowest location decides.
    pub location: u32,
    pub kinds: Vec<FlowKind>,
    /// Source and destination as numbers, each with a mask of the bits that count.
    pub addresses: [(u128, u128); 2],
    pub ports: [(u16, u16); 2],
    /// Also compares other fields: a VLAN, a hardware address, the type of service.
    pub compares_more: bool,
    pub to: FilterTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterTarget {
    Queue(u32),
    /// The queue of an RSS context's table, counted from `base`.
    Context {
        context: u32,
        base: u32,
    },
    /// A virtual function, by its number from 0.
    Function(u32),
    Dropped,
}

/// `*_FLOW` of filters by the protocol of IP, and of Ethernet.
const IPV4_USER: u32 = 0x0d;
const IPV6_USER: u32 = 0x0e;
const ETHER: u32 = 0x12;
/// Flags of a flow type: further fields are compared, the queue is one of an RSS context.
const WITH_MORE: u32 = 0x8000_0000 | 0x4000_0000;
const WITH_CONTEXT: u32 = 0x2000_0000;

impl Filter {
    pub const SIZE: usize = 168;

    /// `spec` is the kernel's form; `context` is the RSS context beside it.
    pub fn parse(spec: &[u8; Self::SIZE], context: u32) -> Self {
        let u32_at = |at: usize| u32::from_ne_bytes(bytes(spec, at));
        let flow_type = u32_at(0);
        let (values, masks) = (&spec[4..56], &spec[76..128]);
        let is_any = |bytes: &[u8]| bytes.iter().any(|&byte| byte != 0);
        let kind = flow_type & !(WITH_MORE | WITH_CONTEXT);
        let mut filter = Self {
            location: u32_at(160),
            kinds: kinds(kind, values, masks),
            addresses: [(0, 0); 2],
            ports: [(0, 0); 2],
            compares_more: (flow_type & WITH_MORE != 0) && is_any(&spec[128..148]),
            to: target(
                u64::from_ne_bytes(bytes(spec, 152)),
                (flow_type & WITH_CONTEXT != 0).then_some(context),
            ),
        };
        // Bytes of an address; after addresses and ports, the type of service, and the version of IP.
        let (width, more) = match kind {
            0x01 | 0x02 => (4, 1),
            IPV4_USER => (4, 2),
            0x05 | 0x06 | IPV6_USER => (16, 1),
            _ => {
                // Hardware addresses.
                filter.compares_more |= is_any(&masks[..12]);
                return filter;
            }
        };
        let address = |field: &[u8], at: usize| {
            field[at..at + width]
                .iter()
                .fold(0, |number, byte| number << 8 | u128::from(*byte))
        };
        let port = |field: &[u8], at: usize| u16::from_be_bytes(bytes(field, at));
        let after = 2 * width;
        filter.addresses = [0, width].map(|at| (address(values, at), address(masks, at)));
        filter.ports = [after, after + 2].map(|at| (port(values, at), port(masks, at)));
        filter.compares_more |= is_any(&masks[after + 4..after + 4 + more]);
        filter
    }
}

fn bytes<const N: usize>(from: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|n| from[at + n])
}

fn kinds(kind: u32, values: &[u8], masks: &[u8]) -> Vec<FlowKind> {
    let same = |at: usize, wanted: u8| (wanted ^ values[at]) & masks[at] == 0;
    FlowKind::ALL
        .into_iter()
        .filter(|(flow, number)| {
            let is_v4 = matches!(flow, Tcp4 | Udp4);
            let protocol = if matches!(flow, Tcp4 | Tcp6) { 6 } else { 17 };
            let [high, low] = if is_v4 { [0x08, 0x00] } else { [0x86, 0xdd] };
            match kind {
                IPV4_USER => is_v4 && same(14, protocol),
                IPV6_USER => !is_v4 && same(37, protocol),
                ETHER => same(12, high) && same(13, low),
                _ => *number == kind,
            }
        })
        .map(|(kind, _)| kind)
        .collect()
}

/// The target in a filter's cookie (`ETHTOOL_RX_FLOW_SPEC_RING`).
fn target(cookie: u64, context: Option<u32>) -> FilterTarget {
    let [queue, function] = [cookie & 0xffff_ffff, cookie >> 32 & 0xff]
        .map(|number| u32::try_from(number).unwrap_or(0));
    match (cookie, context) {
        (u64::MAX, _) => Dropped,
        _ if function > 0 => Function(function - 1),
        (_, Some(context)) => Context {
            context,
            base: queue,
        },
        _ => Queue(queue),
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
        let default_table = |queues: u32| rss((0..128).map(|at| at % queues).collect(), queues);
        assert!(
            default_table(4).means_same(&default_table(8))
                && !default_table(4).means_same(&rss(vec![0; 128], 8))
        );
        assert!(rss(default_table(4).table, 8).means_same(&rss(default_table(4).table, 4)));
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

    fn spec(parts: &[(usize, &[u8])]) -> [u8; Filter::SIZE] {
        let mut spec = [0; Filter::SIZE];
        for (at, part) in parts {
            spec[*at..*at + part.len()].copy_from_slice(part);
        }
        spec
    }

    #[test]
    fn filters_are_taken_apart_as_the_kernel_gives_them() {
        let tcp = spec(&[
            (0, &1_u32.to_ne_bytes()),
            (8, &[10, 0, 0, 2]),
            (80, &[255, 255, 255, 0]),
            (14, &5201_u16.to_be_bytes()),
            (86, &[255, 255]),
            (152, &3_u64.to_ne_bytes()),
            (160, &7_u32.to_ne_bytes()),
        ]);
        let filter = Filter::parse(&tcp, 0);
        assert_eq!((filter.location, filter.to), (7, FilterTarget::Queue(3)));
        assert_eq!(filter.kinds, [FlowKind::Tcp4]);
        assert_eq!(filter.addresses[1], (0x0a00_0002, 0xffff_ff00));
        assert_eq!(filter.ports, [(0, 0), (5201, 0xffff)]);
        assert!(!filter.compares_more);

        let udp6 = spec(&[
            (0, &(IPV6_USER | WITH_CONTEXT).to_ne_bytes()),
            (41, &[17]),
            (113, &[255]),
            (152, &0_u64.to_ne_bytes()),
        ]);
        let filter = Filter::parse(&udp6, 2);
        assert_eq!(filter.kinds, [FlowKind::Udp6]);
        assert_eq!(
            filter.to,
            FilterTarget::Context {
                context: 2,
                base: 0
            }
        );

        let vlan = spec(&[(0, &(ETHER | 0x8000_0000).to_ne_bytes()), (130, &[15, 255])]);
        let filter = Filter::parse(&vlan, 0);
        assert!(filter.compares_more && filter.kinds.len() == 4);

        let dropped = spec(&[(0, &5_u32.to_ne_bytes()), (152, &u64::MAX.to_ne_bytes())]);
        assert_eq!(Filter::parse(&dropped, 0).to, FilterTarget::Dropped);
        let function = spec(&[
            (0, &6_u32.to_ne_bytes()),
            (152, &(2_u64 << 32).to_ne_bytes()),
        ]);
        assert_eq!(Filter::parse(&function, 0).to, FilterTarget::Function(1));
    }
}
