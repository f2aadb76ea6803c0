//! How a device assigns arriving flows to its receive queues, as ethtool reports it: ntuple filters first, then RSS
//! (`include/uapi/linux/ethtool.h`, `Documentation/networking/scaling.rst`).

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// What decides on the receive queue of a flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RxHash {
    /// RSS contexts by number: 0 takes all flows that no filter sends to another. Absent where the driver has none.
    pub contexts: BTreeMap<u32, RssContext>,
    /// The fields that are hashed, by kind of flow; absent where the driver does not report them (`ETHTOOL_GRXFH`).
    pub fields: BTreeMap<FlowKind, u32>,
    /// Whether the device's hash is given to the stack (`receive-hashing`); `None` if that is not reported.
    pub to_stack: Option<bool>,
    /// The number of ntuple filters; `None` if it could not be read.
    pub filter_count: Option<u32>,
    /// The filters, in the order in which they are tried. They hold addresses, so captures have their number only.
    #[serde(skip)]
    pub filters: Vec<Filter>,
    /// The kernel's release: major and minor number.
    pub release: Option<(u32, u32)>,
    /// `net.core.netdev_rss_key`, from which some drivers take their key without reporting it.
    pub system_key: Key,
}

/// What RSS does in one of its contexts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RssContext {
    /// The hash function (`ETH_RSS_HASH_*`); 0 where the driver does not report it.
    pub function: u8,
    /// The transformation of the input (`RXH_XFRM_*`), from Linux 6.8 on.
    pub transform: u8,
    /// Empty where the driver does not report it.
    pub key: Key,
    /// The receive queue for each value of the hash's low bits.
    pub table: Vec<u32>,
}

/// The key of a hash function. Recorded as numbers: of pairs of hex digits with colons, captures keep none, since those may
/// be hardware addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(pub Vec<u8>);

impl Key {
    /// The most bytes of a key that are accepted; the longest of a driver has 52 (`NETDEV_RSS_KEY_LEN` is 256).
    pub const MAX: usize = 256;

    /// Parses pairs of hex digits with colons between them; empty text is no key.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.trim().split(':').filter(|pair| !pair.is_empty());
        let bytes = bytes.map(|pair| {
            u8::from_str_radix(pair, 16)
                .ok()
                .filter(|_| pair.len() == 2)
        });
        bytes
            .collect::<Option<Vec<u8>>>()
            .filter(|bytes| bytes.len() <= Self::MAX)
            .map(Self)
    }

    /// Whether there is no key, or only the zeros of one that nobody has asked for yet.
    pub fn is_unset(&self) -> bool {
        self.0.iter().all(|&byte| byte == 0)
    }
}

/// A protocol that RSS can hash by ports, over IPv4 or IPv6, by the kernel's names of flow types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowKind {
    Tcp4,
    Udp4,
    Tcp6,
    Udp6,
}

impl FlowKind {
    /// All kinds, each with its `*_FLOW` number.
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
    /// Its place: of the filters that match, the one with the lowest number decides.
    pub location: u32,
    /// The kinds of flows that it can match.
    pub kinds: Vec<FlowKind>,
    /// The source and destination address that it compares, each with a mask of the bits that count.
    pub addresses: [(IpAddr, IpAddr); 2],
    /// The source and destination port that it compares, each with a mask of the bits that count.
    pub ports: [(u16, u16); 2],
    /// Whether it also compares what a flow's addresses and ports do not say: a VLAN, a hardware address, the type of
    /// service.
    pub compares_more: bool,
    pub to: FilterTarget,
}

/// Where a filter sends what it matches.
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
    /// The packet is dropped.
    Dropped,
}

/// `*_FLOW` of filters by the protocol of IP, and by that of Ethernet.
const IPV4_USER: u32 = 0x0d;
const IPV6_USER: u32 = 0x0e;
const ETHER: u32 = 0x12;
/// Flags of a flow type: further fields are compared, the queue is one of an RSS context.
const WITH_EXT: u32 = 0x8000_0000;
const WITH_MAC: u32 = 0x4000_0000;
const WITH_CONTEXT: u32 = 0x2000_0000;

impl Filter {
    /// The size of `struct ethtool_rx_flow_spec` in bytes.
    pub const SIZE: usize = 168;

    /// Takes a filter apart as the kernel gives it; `context` is the RSS context beside it.
    pub fn parse(spec: &[u8; Self::SIZE], context: u32) -> Self {
        let u32_at = |at: usize| u32::from_ne_bytes(bytes(spec, at));
        let (flow_type, cookie, location) =
            (u32_at(0), u64::from_ne_bytes(bytes(spec, 152)), u32_at(160));
        let (values, masks) = (&spec[4..56], &spec[76..128]);
        let kind = flow_type & !(WITH_EXT | WITH_MAC | WITH_CONTEXT);
        let extended = flow_type & (WITH_EXT | WITH_MAC) != 0;
        let mut filter = Self {
            location,
            kinds: kinds(kind, values, masks),
            addresses: [(IpAddr::from([0; 4]), IpAddr::from([0; 4])); 2],
            ports: [(0, 0); 2],
            compares_more: extended && spec[128..148].iter().any(|&byte| byte != 0),
            to: target(cookie, (flow_type & WITH_CONTEXT != 0).then_some(context)),
        };
        let is_v4 = matches!(kind, 0x01 | 0x02 | IPV4_USER);
        let is_v6 = matches!(kind, 0x05 | 0x06 | IPV6_USER);
        let address = |of: &[u8], at: usize| -> IpAddr {
            if is_v4 {
                IpAddr::from(bytes::<4>(of, at))
            } else {
                IpAddr::from(bytes::<16>(of, at))
            }
        };
        if is_v4 || is_v6 {
            let width = if is_v4 { 4 } else { 16 };
            filter.addresses = [0, width].map(|at| (address(values, at), address(masks, at)));
            let port = |of: &[u8], at: usize| u16::from_be_bytes(bytes(of, at));
            filter.ports = [2 * width, 2 * width + 2].map(|at| (port(values, at), port(masks, at)));
            // The type of service, and the version of IP.
            let is_user = matches!(kind, IPV4_USER | IPV6_USER);
            let version = usize::from(is_user && is_v4);
            filter.compares_more |= masks[2 * width + 4..=2 * width + 4 + version]
                .iter()
                .any(|&byte| byte != 0);
        } else {
            // Hardware addresses.
            filter.compares_more |= masks[..12].iter().any(|&byte| byte != 0);
        }
        filter
    }
}

fn bytes<const N: usize>(of: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|n| of[at + n])
}

/// The kinds of flows that a filter of this type matches.
fn kinds(kind: u32, values: &[u8], masks: &[u8]) -> Vec<FlowKind> {
    let all = || FlowKind::ALL.iter().map(|(kind, _)| *kind);
    let is_v4 = |kind: &FlowKind| matches!(kind, FlowKind::Tcp4 | FlowKind::Udp4);
    let protocol = |kind: &FlowKind| match kind {
        FlowKind::Tcp4 | FlowKind::Tcp6 => 6,
        FlowKind::Udp4 | FlowKind::Udp6 => 17,
    };
    match kind {
        IPV4_USER => all()
            .filter(|kind| is_v4(kind) && (protocol(kind) ^ values[14]) & masks[14] == 0)
            .collect(),
        IPV6_USER => all()
            .filter(|kind| !is_v4(kind) && (protocol(kind) ^ values[37]) & masks[37] == 0)
            .collect(),
        ETHER => {
            let proto = |of: &[u8]| u16::from_be_bytes(bytes(of, 12));
            let of = |kind: &FlowKind| if is_v4(kind) { 0x0800 } else { 0x86dd };
            all()
                .filter(|kind| (of(kind) ^ proto(values)) & proto(masks) == 0)
                .collect()
        }
        number => {
            let named = FlowKind::ALL.iter().find(|(_, known)| *known == number);
            named.map(|(kind, _)| *kind).into_iter().collect()
        }
    }
}

/// Where a filter's cookie sends (`ETHTOOL_RX_FLOW_SPEC_RING`).
fn target(cookie: u64, context: Option<u32>) -> FilterTarget {
    let [queue, function] = [cookie & 0xffff_ffff, cookie >> 32 & 0xff]
        .map(|number| u32::try_from(number).unwrap_or(0));
    match (cookie, context) {
        (u64::MAX, _) => FilterTarget::Dropped,
        _ if function > 0 => FilterTarget::Function(function - 1),
        (_, Some(context)) => FilterTarget::Context {
            context,
            base: queue,
        },
        _ => FilterTarget::Queue(queue),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter from its parts at their offsets.
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
        assert_eq!(
            filter.addresses[1],
            ([10, 0, 0, 2].into(), [255, 255, 255, 0].into())
        );
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

        let vlan = spec(&[(0, &(ETHER | WITH_EXT).to_ne_bytes()), (130, &[15, 255])]);
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
