//! From a flow's addresses and ports to its receive queue, and on to the CPU that processes it.

use std::net::{IpAddr, SocketAddr};

use itertools::Itertools as _;
use serde::{Serialize, Serializer};

use crate::cpuset::CpuSet;
use crate::flow::ends::Flow;
use crate::flow::toeplitz::{OR_XOR, input, toeplitz};
use crate::machine::rx_hash::{Filter, FilterTarget, Key, RssContext, RxHash};
use crate::machine::{Interface, Machine, MaskFile, Role, SelectError, Selection, Vector};

/// Toeplitz, of `ETH_RSS_HASH_*`.
const TOEPLITZ: u8 = 1;

/// Fields of `RXH_*`.
const ADDRESSES: u32 = 1 << 4 | 1 << 5;
const PORTS: u32 = 1 << 6 | 1 << 7;

/// Where a flow arrives, as far as it can be known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arrival {
    #[serde(flatten)]
    pub flow: Flow,
    pub interface: String,
    /// The device's hash, as eight hex digits in JSON; `None` where none decides or it is unknown.
    #[serde(serialize_with = "hex")]
    pub hash: Option<u32>,
    /// The location of the ntuple filter that decides.
    pub filter: Option<u32>,
    /// The receive queue.
    pub queue: Option<u32>,
    pub irq: Option<u32>,
    /// The CPU that takes the IRQ.
    pub irq_cpu: Option<u32>,
    /// The CPU that RPS hands the packets to; `None` if it is off for the queue or the CPU is unknown.
    pub rps_cpu: Option<u32>,
    /// The CPU on which the stack processes the flow: that of RPS, of the NAPI thread, or of the IRQ.
    pub cpu: Option<u32>,
    /// The node of that CPU.
    pub node: Option<u32>,
    /// The CPUs that share its L3 cache; empty if not reported.
    pub l3: CpuSet,
    /// What cannot be known, and why.
    pub missing: Option<Missing>,
}

impl Arrival {
    /// Of a flow of which nothing is known yet.
    fn begin(flow: &Flow, interface: &str) -> Self {
        Self {
            flow: *flow,
            interface: interface.to_owned(),
            hash: None,
            filter: None,
            queue: None,
            irq: None,
            irq_cpu: None,
            rps_cpu: None,
            cpu: None,
            node: None,
            l3: CpuSet::default(),
            missing: None,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, clippy::ref_option)] // serde's signature
fn hex<S: Serializer>(hash: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
    match hash {
        Some(hash) => serializer.serialize_str(&format!("{hash:08x}")),
        None => serializer.serialize_none(),
    }
}

/// Why a part of the answer is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    #[error("ethtool reports nothing about how {0} distributes flows")]
    NoAnswer(String),
    #[error("the driver does not report its RSS table, and there are {0} receive queues")]
    NoTable(usize),
    #[error("the RSS table has {0} entries, which is not a power of two")]
    TableSize(usize),
    #[error("the driver does not report its RSS key")]
    NoKey,
    #[error("before Linux {1}.{2}, {0} may give the device another RSS key than it reports")]
    WrongKey(&'static str, u32, u32),
    #[error("before Linux {1}.{2}, {0} does not report how the device changes the hash's input")]
    HiddenTransform(&'static str, u32, u32),
    #[error("devices of {0} compute Toeplitz otherwise than it is defined")]
    OtherToeplitz(&'static str),
    #[error("a fragment has no ports, and how the device hashes fragments is not reported")]
    Fragment,
    #[error(
        "{0} wraps what it carries in other packets: ask about the interface and the ends of those"
    )]
    Tunnel(String),
    #[error("which of the ports {0} a packet arrives on is the sender's choice, or the switch's")]
    PortChoice(String),
    #[error("the RSS key of {0} bytes is too short for {1}")]
    ShortKey(usize, &'static str),
    #[error("the driver does not report its hash function")]
    NoFunction,
    #[error("the hash function {0} is not publicly defined")]
    Function(String),
    #[error("the transformation {0} of the hash's input is not known")]
    Transform(u8),
    #[error("the driver does not report which fields it hashes of {0}")]
    NoFields(&'static str),
    #[error("the fields that are hashed of {0} (RXH bits {1:#x}) have no publicly defined order")]
    Fields(&'static str, u32),
    #[error("{0} ntuple filters are set, and what they match is not known")]
    Filters(u32),
    #[error("whether ntuple filters are set is not known")]
    FiltersUnreadable,
    #[error("ntuple filter {0} also compares what addresses and ports do not say")]
    FilterComparesMore(u32),
    #[error("RSS context {0}, to which ntuple filter {1} sends it, is not known")]
    NoContext(u32, u32),
    #[error("ntuple filter {0} drops it")]
    Dropped(u32),
    #[error("ntuple filter {0} sends it to virtual function {1}")]
    VirtualFunction(u32, u32),
    #[error("receive queue {0} does not exist")]
    NoQueue(u32),
    #[error("the IRQ of receive queue {0} is not known")]
    NoIrq(u32),
    #[error("IRQ {0} may arrive on any of CPUs {1}")]
    SeveralCpus(u32, CpuSet),
    #[error("the NAPI thread of receive queue {0} may run on any of CPUs {1}")]
    ThreadCpus(u32, CpuSet),
    #[error("the NAPI thread of receive queue {0} is not known")]
    NoThread(u32),
    #[error("RPS distributes by a hash that the kernel computes with a secret key, since {0}")]
    SoftwareHash(&'static str),
    #[error("RFS sends it to the CPU where the application last read from it")]
    Rfs,
}

impl Serialize for Missing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Where a flow arrives by the name of what it comes through: on the interface, or each port of a bond or VLAN. What a
/// tunnel carries is not what the card sees.
pub fn arrivals(machine: &Machine, through: &Through<'_>, flow: &Flow) -> Vec<Arrival> {
    match &through.tunnel {
        Some(tunnel) => vec![Arrival {
            missing: Some(Missing::Tunnel(tunnel.clone())),
            ..Arrival::begin(flow, tunnel)
        }],
        None => (through.ports.iter())
            .map(|port| arrival(machine, port, flow))
            .collect(),
    }
}

/// What a flow comes through.
#[derive(Debug, Clone, Default)]
pub struct Through<'a> {
    /// The interfaces with a device: one, or the ports of a bond.
    pub ports: Vec<&'a Interface>,
    /// An interface on the way that wraps packets in others.
    pub tunnel: Option<String>,
}

impl<'a> Through<'a> {
    /// By the name of an interface, or any other selector.
    pub fn new(machine: &'a Machine, selector: &str) -> Result<Self, SelectError> {
        let tunnel = machine.tunnel(selector);
        let mut ports: Vec<&Interface> = Vec::new();
        if tunnel.is_none() {
            let selection = Selection::new(machine, &[selector.to_owned()], false)?;
            ports.extend(&machine.interfaces);
            ports.retain(|port| selection.names.contains(&port.name));
        }
        Ok(Self { ports, tunnel })
    }
}

/// Where a flow arrives on an interface, by what was read of it ([`Wants::flows`](crate::read::Wants)).
pub fn arrival(machine: &Machine, interface: &Interface, flow: &Flow) -> Arrival {
    let facts = interface.rx_hash.as_ref();
    let mut arrival = Arrival::begin(flow, &interface.name);
    let found = choose_queue(interface, facts, &mut arrival)
        .and_then(|()| follow_queue(machine, interface, facts, &mut arrival));
    arrival.missing = found.err();
    let topology = &machine.topology;
    arrival.node = arrival.cpu.and_then(|cpu| topology.node_of(cpu));
    let mut domains = topology.l3_domains.iter();
    let domain = domains.find(|domain| arrival.cpu.is_some_and(|cpu| domain.contains(cpu)));
    arrival.l3 = domain.cloned().unwrap_or_default();
    arrival
}

/// The receive queue: by the first filter that matches, else by the hash, which is computed in any case, since RPS uses
/// it, too.
fn choose_queue(
    interface: &Interface,
    facts: Option<&RxHash>,
    arrival: &mut Arrival,
) -> Result<(), Missing> {
    let only = match &interface.rx_queues[..] {
        [only] => Some(only.index),
        _ => None,
    };
    let Some(facts) = facts else {
        arrival.queue = only;
        return match only {
            Some(_) => Ok(()),
            None => Err(Missing::NoAnswer(interface.name.clone())),
        };
    };
    let (mut context, mut base) = (0, 0);
    if let Some(filter) = filter(facts, &arrival.flow)? {
        arrival.filter = Some(filter.location);
        match filter.to {
            FilterTarget::Dropped => return Err(Missing::Dropped(filter.location)),
            FilterTarget::Function(function) => {
                return Err(Missing::VirtualFunction(filter.location, function));
            }
            FilterTarget::Queue(queue) => arrival.queue = Some(queue),
            FilterTarget::Context {
                context: to,
                base: from,
            } => (context, base) = (to, from),
        }
    } else {
        arrival.queue = only;
    }
    let hashed = hash(interface, facts, context, &arrival.flow);
    arrival.hash = hashed.as_ref().ok().copied();
    if arrival.queue.is_some() {
        return Ok(());
    }
    let Some(RssContext { table, .. }) = facts.contexts.get(&context) else {
        return Err(match arrival.filter {
            Some(location) => Missing::NoContext(context, location),
            None => Missing::NoTable(interface.rx_queues.len()),
        });
    };
    // Where every entry is the same, the hash does not matter.
    let entry = if let Ok(queue) = table.iter().all_equal_value() {
        queue
    } else {
        let hash = hashed?;
        if !table.len().is_power_of_two() {
            return Err(Missing::TableSize(table.len()));
        }
        &table[hash as usize & (table.len() - 1)]
    };
    arrival.queue = Some(base.saturating_add(*entry));
    Ok(())
}

/// The first filter that matches a flow.
fn filter<'a>(facts: &'a RxHash, flow: &Flow) -> Result<Option<&'a Filter>, Missing> {
    match facts.filter_count {
        None => return Err(Missing::FiltersUnreadable),
        Some(count) if facts.filters.len() != count as usize => {
            return Err(Missing::Filters(count));
        }
        Some(_) => {}
    }
    let matching = facts.filters.iter().filter(|filter| matches(filter, flow));
    match matching.min_by_key(|filter| filter.location) {
        Some(filter) if filter.compares_more || flow.fragment => {
            Err(Missing::FilterComparesMore(filter.location))
        }
        found => Ok(found),
    }
}

fn matches(filter: &Filter, flow: &Flow) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    let ends = [flow.source, flow.destination];
    let same_address = |(end, (wanted, mask)): (&SocketAddr, &(IpAddr, IpAddr))| {
        (bits(end.ip()) ^ bits(*wanted)) & bits(*mask) == 0
    };
    let same_port = |(end, (wanted, mask)): (&SocketAddr, &(u16, u16))| {
        (end.port() ^ wanted) & mask == 0 || flow.fragment
    };
    filter.kinds.contains(&flow.kind())
        && ends.iter().zip(&filter.addresses).all(same_address)
        && ends.iter().zip(&filter.ports).all(same_port)
}

/// The device's hash of a flow.
fn hash(interface: &Interface, facts: &RxHash, context: u32, flow: &Flow) -> Result<u32, Missing> {
    let rss = facts.contexts.get(&context);
    let rss = rss.ok_or(Missing::NoTable(interface.rx_queues.len()))?;
    match rss.function {
        TOEPLITZ => {}
        // Before hash functions could be chosen, it was Toeplitz; drivers that do not report it have no other.
        0 if is_among(interface, &SYSTEM_KEY) => {}
        0 => return Err(Missing::NoFunction),
        other => {
            return Err(Missing::Function(match other {
                2 => "XOR".to_owned(),
                4 => "CRC32".to_owned(),
                other => other.to_string(),
            }));
        }
    }
    let driver = interface.driver.as_deref();
    if let Some(doubt) = driver.and_then(|driver| doubt(driver, facts.release)) {
        return Err(doubt);
    }
    if flow.fragment {
        return Err(Missing::Fragment);
    }
    if rss.transform > OR_XOR {
        return Err(Missing::Transform(rss.transform));
    }
    let kind = flow.kind();
    let fields = *(facts.fields.get(&kind)).ok_or(Missing::NoFields(kind.name()))?;
    let with_ports = fields == ADDRESSES | PORTS;
    if !with_ports && fields != ADDRESSES {
        return Err(Missing::Fields(kind.name(), fields));
    }
    let key = key(interface, facts, &rss.key).ok_or(Missing::NoKey)?;
    toeplitz(&key.0, &input(flow, with_ports, rss.transform))
        .ok_or(Missing::ShortKey(key.0.len(), kind.name()))
}

/// The device's key: as it reports it, or as its driver is known to set it.
fn key<'a>(interface: &Interface, facts: &'a RxHash, reported: &'a Key) -> Option<&'a Key> {
    let key = if reported.is_unset() && is_among(interface, &SYSTEM_KEY) {
        &facts.system_key
    } else {
        reported
    };
    (!key.is_unset()).then_some(key)
}

// What is known of drivers beside what they report: by the sources of Linux 6.1 to 6.19 (`skb_set_hash`,
// `netdev_rss_key_fill` in `drivers/net`), and by flows sent in virtual machines.

/// Drivers that set the device's key from `netdev_rss_key_fill` and have no way to change it where they report none.
const SYSTEM_KEY: [&str; 2] = ["igb", "e1000e"];
/// Drivers that mark a hash of addresses and ports as such for the stack (`PKT_HASH_TYPE_L4`); otherwise the kernel
/// computes its own.
const MARKS_L4: [&str; 3] = ["ixgbe", "virtio_net", "mlx5_core"];

/// Why a driver's hash does not follow from what it reports. `virtio_net` sends its key one byte late from 6.15 to 6.18,
/// and in some releases of 6.12, too: the structure that it sends has a byte of padding before it. `mlx5_core` has always
/// had its devices make the hash symmetric, and reports that since 6.15. Those of `ena` begin with another value and the
/// other end of the key.
fn doubt(driver: &str, release: Option<(u32, u32)>) -> Option<Missing> {
    let before = |since| release.is_none_or(|release| release < since);
    match driver {
        "virtio_net" if before((6, 19)) => Some(Missing::WrongKey("virtio_net", 6, 19)),
        "mlx5_core" if before((6, 15)) => Some(Missing::HiddenTransform("mlx5_core", 6, 15)),
        "ena" => Some(Missing::OtherToeplitz("ena")),
        _ => None,
    }
}

fn is_among(interface: &Interface, drivers: &[&str]) -> bool {
    let mut driver = interface.driver.iter();
    driver.any(|driver| drivers.contains(&&**driver))
}

/// From the receive queue to the CPU that processes the flow.
fn follow_queue(
    machine: &Machine,
    interface: &Interface,
    facts: Option<&RxHash>,
    arrival: &mut Arrival,
) -> Result<(), Missing> {
    let Some(queue) = arrival.queue else {
        return Ok(());
    };
    let rx = interface.rx_queues.iter().find(|rx| rx.index == queue);
    let rx = rx.ok_or(Missing::NoQueue(queue))?;
    let serves = |vector: &&Vector| {
        matches!(vector.role, Role::Combined | Role::Rx) && vector.queue == Some(queue)
    };
    let vector = interface.vectors.iter().find(serves);
    let vector = vector.ok_or(Missing::NoIrq(queue))?;
    arrival.irq = Some(vector.irq);
    // A vector whose CPU is no longer among those it may have moves at its next interrupt.
    let cpus = match &vector.effective {
        Some(effective) if effective.intersects(&vector.affinity.cpus) => effective,
        _ => &vector.affinity.cpus,
    };
    let only = |cpus: &CpuSet| cpus.first().filter(|_| cpus.len() == 1);
    let mut cpu = only(cpus).ok_or_else(|| Missing::SeveralCpus(vector.irq, cpus.clone()))?;
    arrival.irq_cpu = Some(cpu);
    let online = |mask: &MaskFile| mask.cpus.intersection(&machine.topology.online);
    if interface.polling.threaded {
        let mut threads = interface.threads.iter();
        let thread = threads.find(|of| of.woken_by.is_some_and(|(irq, _)| irq == vector.irq));
        let cpus = online(&thread.ok_or(Missing::NoThread(queue))?.affinity);
        cpu = only(&cpus).ok_or(Missing::ThreadCpus(queue, cpus))?;
    }
    let rps = rx.rps_cpus.as_ref().map(online).unwrap_or_default();
    if machine.flow_entries.is_some_and(|entries| entries > 0) && rx.rps_flow_cnt.unwrap_or(0) > 0 {
        return Err(Missing::Rfs);
    }
    if !rps.is_empty() {
        cpu = rps_cpu(interface, facts, arrival, &rps)?;
        arrival.rps_cpu = Some(cpu);
    }
    arrival.cpu = Some(cpu);
    Ok(())
}

/// The CPU of RPS (`get_rps_cpu` in `net/core/dev.c`): the hash scaled to the number of CPUs. One CPU needs no hash.
fn rps_cpu(
    interface: &Interface,
    facts: Option<&RxHash>,
    arrival: &Arrival,
    cpus: &CpuSet,
) -> Result<u32, Missing> {
    let all: Vec<u32> = cpus.iter().collect();
    if let [only] = all[..] {
        return Ok(only);
    }
    let missing = Missing::SoftwareHash;
    let facts = facts.ok_or(missing("what the device reports is not known"))?;
    if facts.to_stack != Some(true) {
        return Err(missing("receive-hashing is off"));
    }
    if !is_among(interface, &MARKS_L4) {
        let why = "the driver is not known to give the stack a hash of ports";
        return Err(missing(why));
    }
    if facts.fields.get(&arrival.flow.kind()) != Some(&(ADDRESSES | PORTS)) {
        return Err(missing("the device does not hash its ports"));
    }
    let hash = arrival
        .hash
        .ok_or(missing("the device's hash is not known"))?;
    let at = (u64::from(hash) * all.len() as u64) >> 32;
    Ok(all[usize::try_from(at).unwrap_or(0)])
}

/// The source ports with which a flow arrives on a CPU, in order from 32768, where Linux begins to choose them, and then
/// from 1024. The error is why a port's CPU is not known.
pub fn ports_to(
    machine: &Machine,
    interface: &Interface,
    flow: &Flow,
    cpu: u32,
) -> Result<Vec<u16>, Missing> {
    let mut found = Vec::new();
    for port in (32_768..=u16::MAX).chain(1024..32_768) {
        let mut flow = *flow;
        flow.source.set_port(port);
        let arrival = arrival(machine, interface, &flow);
        match arrival.missing {
            // What a filter does to some ports does not matter to the others.
            Some(Missing::Dropped(_) | Missing::VirtualFunction(..)) => {}
            Some(missing) => return Err(missing),
            None if arrival.cpu == Some(cpu) => found.push(port),
            None => {}
        }
    }
    Ok(found)
}
