//! From a flow's addresses and ports to its receive queue, and on to the CPU that processes it.

use std::net::{IpAddr, SocketAddr};

use itertools::Itertools as _;
use serde::{Serialize, Serializer};

use crate::cpuset::CpuSet;
use crate::drivers::{Driver, Fact};
use crate::flow::ends::{Flow, Protocol};
use crate::flow::toeplitz::{OR_XOR, input, toeplitz};
use crate::machine::netdev::Direction;
use crate::machine::rx_hash::{Filter, FilterTarget, Key, RssContext, RxHash};
use crate::machine::{Interface, Machine, RxQueue, SelectError, Selection};

const TOEPLITZ: u8 = 1;

const ADDRESSES: u32 = 1 << 4 | 1 << 5;
const ADDRESSES_AND_PORTS: u32 = ADDRESSES | 1 << 6 | 1 << 7;

#[derive(Debug, Serialize)]
pub struct Arrival {
    #[serde(flatten)]
    pub flow: Flow,
    pub interface: String,
    /// The device's hash, eight hex digits in JSON; `None` if none decides or it is unknown.
    #[serde(serialize_with = "hex")]
    pub hash: Option<u32>,
    /// The location of the ntuple filter that decides.
    pub filter: Option<u32>,
    pub queue: Option<u32>,
    pub irq: Option<u32>,
    pub irq_cpu: Option<u32>,
    /// The CPU to which RPS hands the packets; `None` if RPS is off for the queue or leaves them, or the CPU is
    /// unknown.
    pub rps_cpu: Option<u32>,
    /// The CPU on which the stack processes the flow: that of RPS, of the NAPI thread, or of the IRQ.
    pub cpu: Option<u32>,
    pub node: Option<u32>,
    /// The CPUs that share the L3 cache of `cpu`; empty if not reported.
    pub l3: CpuSet,
    pub missing: Option<Missing>,
}

impl Arrival {
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
    hash.map(|hash| format!("{hash:08x}")).serialize(serializer)
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, thiserror::Error)]
#[serde(transparent)]
#[error("{why}")]
pub struct Missing {
    why: String,
    /// A filter takes the flow away from the interface's queues.
    #[serde(skip)]
    is_taken: bool,
}

impl Missing {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            is_taken: false,
        }
    }

    /// The answer for traffic inside a tunnel: unknown here; ask about the outer flow.
    pub(crate) fn in_tunnel(name: &str) -> Self {
        Self::new(format!(
            "{name} wraps what it carries in other packets: ask about the interface and the ends of those"
        ))
    }
}

fn unknown<T>(why: impl Into<String>) -> Result<T, Missing> {
    Err(Missing::new(why))
}

/// Where a flow arrives on each port. The card does not see what a tunnel carries: then its queue is unknown.
pub fn arrivals(machine: &Machine, through: &Through<'_>, flow: &Flow) -> Vec<Arrival> {
    match &through.tunnel {
        Some(tunnel) => vec![Arrival {
            missing: Some(Missing::in_tunnel(tunnel)),
            ..Arrival::begin(flow, tunnel)
        }],
        None => (through.ports.iter())
            .map(|port| arrival(machine, port, flow))
            .collect(),
    }
}

#[derive(Debug, Clone, Default)]
pub struct Through<'a> {
    /// The interfaces with a device on which the flow may arrive: one, the ports of a bond, or all that a selector
    /// matches.
    pub ports: Vec<&'a Interface>,
    pub bonded: bool,
    /// An interface on the way that wraps packets in others.
    pub tunnel: Option<String>,
}

impl<'a> Through<'a> {
    pub fn new(machine: &'a Machine, selector: &str) -> Result<Self, SelectError> {
        let tunnel = machine.tunnel(selector);
        let mut ports: Vec<&Interface> = Vec::new();
        if tunnel.is_none() {
            let selection = Selection::new(machine, &[selector.to_owned()], false)?;
            ports.extend(&machine.interfaces);
            ports.retain(|port| selection.names.contains(&port.name));
        }
        let bonded = ports.len() > 1 && machine.has_bond_of(&ports);
        Ok(Self {
            ports,
            bonded,
            tunnel,
        })
    }
}

/// The flow facts of the interface must have been read ([`ReadOptions::flows`](crate::read::ReadOptions)).
pub fn arrival(machine: &Machine, interface: &Interface, flow: &Flow) -> Arrival {
    let mut arrival = Arrival::begin(flow, &interface.name);
    arrival.missing = choose_queue(machine, interface, &mut arrival)
        .and_then(|queue| follow_queue(machine, interface, queue, &mut arrival))
        .err();
    if let Some(cpu) = arrival.cpu {
        arrival.node = machine.topology.node_of(cpu);
        arrival.l3 = machine
            .topology
            .l3_domains
            .iter()
            .find(|domain| domain.contains(cpu))
            .cloned()
            .unwrap_or_default();
    }
    arrival
}

/// The hash is always computed, since RPS uses it, too.
fn choose_queue(
    machine: &Machine,
    interface: &Interface,
    arrival: &mut Arrival,
) -> Result<u32, Missing> {
    let only = match &interface.rx_queues[..] {
        [only] => Some(only.index),
        _ => None,
    };
    let Some(facts) = &interface.rx_hash else {
        let name = &interface.name;
        return only.ok_or_else(|| {
            Missing::new(format!(
                "ethtool reports nothing about how {name} distributes flows"
            ))
        });
    };
    let (mut chosen, mut context, mut base) = (None, 0, 0);
    if let Some(filter) = filter(facts, &arrival.flow)? {
        let location = filter.location;
        arrival.filter = Some(location);
        let taken = |how: &str| {
            let why = format!("ntuple filter {location} {how}");
            let is_taken = true;
            Err(Missing { why, is_taken })
        };
        match filter.to {
            FilterTarget::Dropped => return taken("drops it"),
            FilterTarget::Function(function) => {
                return taken(&format!("sends it to virtual function {function}"));
            }
            FilterTarget::Queue(queue) => chosen = Some(queue),
            FilterTarget::Context {
                context: to,
                base: from,
            } => (context, base) = (to, from),
        }
    } else {
        chosen = only;
    }
    let rss = facts.contexts.get(&context).ok_or_else(|| {
        Missing::new(match arrival.filter {
            Some(location) => format!(
                "RSS context {context}, to which ntuple filter {location} sends it, is not known"
            ),
            None => format!(
                "the driver does not report its RSS table, and there are {} receive queues",
                interface.rx_queues.len()
            ),
        })
    });
    let flow = &arrival.flow;
    let hashed = rss
        .clone()
        .and_then(|rss| hash(interface, facts, rss, flow));
    arrival.hash = hashed.as_ref().ok().copied();
    if let Some(queue) = chosen {
        return Ok(queue);
    }
    let is_tcp = arrival.flow.protocol == Protocol::Tcp;
    if is_tcp && arrival.filter.is_none() && facts.ntuple != Some(true) {
        let driver = interface.driver.as_deref();
        if let Some(driver) = driver.filter(|_| interface.has_fact(Fact::SteersTcp)) {
            return unknown(format!(
                "{driver} sends a TCP flow to the queue that last sent for it, unless ntuple filters are on"
            ));
        }
    }
    // Reported only of drivers with accelerated RFS.
    let is_accelerated = interface.ntuple == Some(true) && arrival.filter.is_none();
    if is_accelerated && interface.rx_queues.iter().any(|rx| has_rfs(machine, rx)) {
        return unknown(
            "accelerated RFS sends it to the queue of the CPU where the application last read from it",
        );
    }
    let table = &rss?.table;
    // If every entry is the same, the hash does not matter.
    let entry = if let Ok(queue) = table.iter().all_equal_value() {
        queue
    } else {
        let hash = hashed?;
        let size = table.len();
        if !size.is_power_of_two() {
            return unknown(format!(
                "the RSS table has {size} entries, which is not a power of two"
            ));
        }
        &table[hash as usize & (size - 1)]
    };
    Ok(base.saturating_add(*entry))
}

fn has_rfs(machine: &Machine, rx: &RxQueue) -> bool {
    machine.flow_entries > Some(0) && rx.rps_flow_cnt > Some(0)
}

fn filter<'a>(facts: &'a RxHash, flow: &Flow) -> Result<Option<&'a Filter>, Missing> {
    let Some(count) = facts.filter_count else {
        return unknown("whether ntuple filters are set is not known");
    };
    if facts.filters.len() != count as usize {
        return unknown(format!(
            "{count} ntuple filters are set, and what they match is not known"
        ));
    }
    let matching = facts.filters.iter().filter(|filter| matches(filter, flow));
    match matching.min_by_key(|filter| filter.location) {
        Some(found) if found.compares_more || flow.fragment => unknown(format!(
            "ntuple filter {} also compares what addresses and ports do not say",
            found.location
        )),
        found => Ok(found),
    }
}

fn matches(filter: &Filter, flow: &Flow) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    };
    let ends = [flow.source, flow.destination];
    let same_address =
        |(end, (wanted, mask)): (&SocketAddr, &(u128, u128))| (bits(end.ip()) ^ wanted) & mask == 0;
    filter.kinds.contains(&flow.kind())
        && ends.iter().zip(&filter.addresses).all(same_address)
        && ends
            .iter()
            .zip(&filter.ports)
            .all(|(end, (wanted, mask))| (end.port() ^ wanted) & mask == 0 || flow.fragment)
}

fn hash(
    interface: &Interface,
    facts: &RxHash,
    rss: &RssContext,
    flow: &Flow,
) -> Result<u32, Missing> {
    match rss.function {
        TOEPLITZ => {}
        // Before hash functions could be chosen, it was Toeplitz; drivers that do not report it have no other.
        0 if interface.has_fact(Fact::SystemKey) => {}
        0 => return unknown("the driver does not report its hash function"),
        2 => return unknown("the hash function XOR is not publicly defined"),
        4 => return unknown("the hash function CRC32 is not publicly defined"),
        other => return unknown(format!("the hash function {other} is not publicly defined")),
    }
    let driver = Driver::of(interface.driver.as_deref());
    if let Some((until, why)) = driver.and_then(|driver| driver.doubt) {
        let known = until.zip(facts.release);
        if known.is_none_or(|(until, release)| release < until) {
            return unknown(why);
        }
    }
    if flow.fragment {
        return unknown(
            "a fragment has no ports, and how the device hashes fragments is not reported",
        );
    }
    let transform = rss.transform;
    if transform > OR_XOR {
        return unknown(format!(
            "the transformation {transform} of the hash's input is not known"
        ));
    }
    let kind = flow.kind().name();
    let with_ports = match facts.fields.get(&flow.kind()) {
        None => {
            return unknown(format!(
                "the driver does not report which fields it hashes of {kind}"
            ));
        }
        Some(&ADDRESSES) => false,
        Some(&ADDRESSES_AND_PORTS) => true,
        Some(fields) => {
            return unknown(format!(
                "the fields that are hashed of {kind} (RXH bits {fields:#x}) have no publicly defined order"
            ));
        }
    };
    let Some(Key(key)) = key(interface, facts, &rss.key) else {
        return unknown("the driver does not report its RSS key");
    };
    toeplitz(key, &input(flow, with_ports, transform)).ok_or_else(|| {
        Missing::new(format!(
            "the RSS key of {} bytes is too short for {kind}",
            key.len()
        ))
    })
}

/// The reported key, or the one that the driver is known to set.
fn key<'a>(interface: &Interface, facts: &'a RxHash, reported: &'a Key) -> Option<&'a Key> {
    let key = if reported.is_unset() && interface.has_fact(Fact::SystemKey) {
        &facts.system_key
    } else {
        reported
    };
    (!key.is_unset()).then_some(key)
}

fn follow_queue(
    machine: &Machine,
    interface: &Interface,
    queue: u32,
    arrival: &mut Arrival,
) -> Result<(), Missing> {
    arrival.queue = Some(queue);
    let Some(rx) = interface.rx_queue(queue) else {
        return unknown(format!("receive queue {queue} does not exist"));
    };
    let own = interface
        .vectors
        .iter()
        .find(|vector| vector.role.serves(Direction::Rx) && vector.queue == Some(queue));
    // A vector of several queues is known by the lowest.
    let Some(vector) = own.or_else(|| interface.reported_vector(Direction::Rx, queue)) else {
        return unknown(format!("the IRQ of receive queue {queue} is not known"));
    };
    arrival.irq = Some(vector.irq);
    // A vector whose CPU is no longer in its affinity moves at its next interrupt.
    let cpus = match &vector.effective {
        Some(effective) if effective.intersects(&vector.affinity.cpus) => effective,
        _ => &vector.affinity.cpus,
    };
    let online = &machine.topology.online;
    let only = |cpus: &CpuSet, what: &str| {
        let cpus = cpus.intersection(online);
        match cpus.first() {
            Some(cpu) if cpus.len() == 1 => Ok(cpu),
            Some(_) => unknown(format!("{what} on any of CPUs {cpus}")),
            None => unknown(format!("{what} on no online CPU")),
        }
    };
    let mut cpu = only(cpus, &format!("IRQ {} may arrive", vector.irq))?;
    arrival.irq_cpu = Some(cpu);
    let thread = interface
        .threads
        .iter()
        .find(|thread| thread.woken_by.is_some_and(|(irq, _)| irq == vector.irq));
    // Threads of single queues do not show in the interface's switch.
    if interface.polling.threaded || thread.is_some() {
        let what = format!("the NAPI thread of receive queue {queue}");
        let Some(thread) = thread else {
            return unknown(format!("{what} is not known"));
        };
        cpu = only(&thread.affinity.cpus, &format!("{what} may run"))?;
    }
    if has_rfs(machine, rx) {
        return unknown("RFS sends it to the CPU where the application last read from it");
    }
    if let Some(rps) = rx
        .rps_cpus
        .as_ref()
        .filter(|rps| rps.cpus.intersects(online))
    {
        let chosen = rps_cpu(interface, arrival, &rps.cpus)?;
        // RPS also counts offline CPUs; packets for these stay where they are.
        arrival.rps_cpu = chosen.filter(|&cpu| online.contains(cpu));
        cpu = arrival.rps_cpu.unwrap_or(cpu);
    }
    arrival.cpu = Some(cpu);
    Ok(())
}

/// Scales the hash to the number of CPUs, as `get_rps_cpu` in `net/core/dev.c` does. One CPU needs no hash; 0 means no
/// hash to the kernel, and packets stay where they are.
fn rps_cpu(
    interface: &Interface,
    arrival: &Arrival,
    cpus: &CpuSet,
) -> Result<Option<u32>, Missing> {
    let all = cpus.iter().collect_vec();
    let facts = interface.rx_hash.as_ref();
    let to_stack = facts.and_then(|facts| facts.to_stack);
    let fields = facts.and_then(|facts| facts.fields.get(&arrival.flow.kind()));
    let own = "a hash that the kernel computes with a secret key, since";
    let by = match arrival.hash {
        _ if to_stack == Some(false) => format!("{own} receive-hashing is off"),
        _ if !interface.has_fact(Fact::MarksL4) => {
            format!("{own} the driver is not known to give the stack a hash of ports")
        }
        _ if fields.is_some_and(|fields| *fields != ADDRESSES_AND_PORTS) => {
            format!("{own} the device does not hash its ports")
        }
        _ if to_stack.is_none() => {
            "the device's hash or the kernel's own: whether receive-hashing is on is not known"
                .to_owned()
        }
        None => "the device's hash, which is not known".to_owned(),
        Some(0) => return Ok(None),
        Some(hash) => {
            let at = (u64::from(hash) * all.len() as u64) >> 32;
            return Ok(all.get(usize::try_from(at).unwrap_or(0)).copied());
        }
    };
    match all[..] {
        [only] => Ok(Some(only)),
        _ => unknown(format!("RPS distributes by {by}")),
    }
}

/// Source ports from 32768 on, where Linux begins to choose them, then from 1024. The error says why a port's CPU is
/// not known.
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
            // A filter for some ports does not matter to the others.
            Some(missing) if !missing.is_taken => return Err(missing),
            None if arrival.cpu == Some(cpu) => found.push(port),
            _ => {}
        }
    }
    Ok(found)
}
