//! Where flows arrive: for `nicpin flow` their spread over queues and CPUs; for `measure` the established connections,
//! by CPU and node of arrival, and by the node of the process that has them open.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;

use itertools::Itertools as _;
use serde::Serialize;

use crate::flow::{Arrival, Flow, Missing, Protocol, Through, arrivals, ports_to};
use crate::machine::Machine;
use crate::machine::others::ConnectedSocket;
use crate::report::exit::Exit;

#[derive(Debug, Serialize)]
#[serde(tag = "schema", rename = "nicpin.flow/1")]
pub struct Flows {
    /// One interface, the ports of a bond, or those that a selector matches; none for a tunnel.
    pub interfaces: Vec<String>,
    /// Whether the sender or the switch chooses among the interfaces, as ports of one bond or team.
    #[serde(skip)]
    pub bonded: bool,
    pub arrivals: Vec<Arrival>,
    /// Flows by queue and CPU, most first, without those whose CPU is unknown.
    pub spread: Vec<Share>,
    /// Connections of this machine with itself, which pass no interface.
    pub local: usize,
    /// Source ports that arrive on the requested CPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Ports>,
}

#[derive(Debug, Serialize)]
pub struct Share {
    pub interface: String,
    pub queue: u32,
    pub irq: u32,
    pub cpu: u32,
    pub node: Option<u32>,
    pub flows: usize,
}

#[derive(Debug, Serialize)]
pub struct Ports {
    pub interface: String,
    pub cpu: u32,
    pub ports: Vec<u16>,
    pub missing: Option<Missing>,
}

impl Flows {
    /// `None` stands for a connection within this machine.
    pub fn new(machine: &Machine, through: &Through<'_>, connections: &[Option<Flow>]) -> Self {
        let arrivals = connections
            .iter()
            .flatten()
            .flat_map(|flow| arrivals(machine, through, flow))
            .collect_vec();
        Self {
            interfaces: (through.ports.iter())
                .map(|interface| interface.name.clone())
                .collect(),
            bonded: through.bonded,
            spread: spread(&arrivals),
            local: connections.iter().filter(|flow| flow.is_none()).count(),
            arrivals,
            ports: Vec::new(),
        }
    }

    /// At most `most` ports for each interface.
    pub fn to_cpu(
        machine: &Machine,
        through: &Through<'_>,
        flow: &Flow,
        cpu: u32,
        most: usize,
    ) -> Self {
        let ports = |interface: &str, found: Result<Vec<u16>, Missing>| Ports {
            interface: interface.to_owned(),
            cpu,
            ports: found.iter().flatten().copied().take(most).collect(),
            missing: found.err(),
        };
        let on_port = (through.ports.iter())
            .map(|port| ports(&port.name, ports_to(machine, port, flow, cpu)));
        let tunnel = (through.tunnel.iter()).map(|name| ports(name, Err(Missing::in_tunnel(name))));
        Self {
            ports: on_port.chain(tunnel).collect(),
            ..Self::new(machine, through, &[])
        }
    }

    /// Success if all arrivals are known, and each interface has a requested source port.
    pub fn exit(&self) -> Exit {
        let is_known = self
            .arrivals
            .iter()
            .all(|arrival| arrival.missing.is_none());
        let has_ports = self.ports.iter().all(|found| !found.ports.is_empty());
        Exit::of(!is_known || !has_ports)
    }
}

fn spread(arrivals: &[Arrival]) -> Vec<Share> {
    let known = arrivals.iter().filter_map(|arrival| {
        Some((
            &arrival.interface,
            arrival.queue?,
            arrival.irq?,
            arrival.cpu?,
            arrival.node,
        ))
    });
    most_first(known)
        .map(|((interface, queue, irq, cpu, node), flows)| Share {
            interface: interface.clone(),
            queue,
            irq,
            cpu,
            node,
            flows,
        })
        .collect()
}

fn most_first<T: Hash + Ord + Clone>(
    all: impl Iterator<Item = T>,
) -> impl Iterator<Item = (T, usize)> {
    all.counts()
        .into_iter()
        .sorted_unstable_by_key(|(element, count)| (Reverse(*count), element.clone()))
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct Connections {
    /// Connections with other machines over the measured interfaces: TCP, and connected UDP.
    pub established: usize,
    pub local: usize,
    pub elsewhere: usize,
    /// Connections whose CPU is known, most first.
    pub arrivals: Vec<ArrivingConnections>,
    /// Connections whose CPU is unknown, most first.
    pub unknown: Vec<UnknownConnections>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ArrivingConnections {
    pub interface: String,
    pub cpu: u32,
    pub node: Option<u32>,
    /// Node of the process that has them open; `None` if unknown.
    pub process_node: Option<u32>,
    pub connections: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct UnknownConnections {
    pub interface: String,
    pub missing: Missing,
    pub connections: usize,
}

impl Connections {
    pub fn new(machine: &Machine, measured: &BTreeSet<&str>, sockets: &[ConnectedSocket]) -> Self {
        let mut counted = Self::default();
        let mut throughs: BTreeMap<&str, Through<'_>> = BTreeMap::new();
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for socket in sockets {
            let protocol = if socket.udp {
                Protocol::Udp
            } else {
                Protocol::Tcp
            };
            let Some(flow) = Flow::arriving(protocol, socket.local, socket.peer) else {
                counted.local += 1;
                continue;
            };
            let through = socket.interface.as_deref().map(|name| {
                let new = || Through::new(machine, name).unwrap_or_default();
                (name, &*throughs.entry(name).or_insert_with(new))
            });
            let through = through.filter(|(name, through)| {
                through
                    .ports
                    .iter()
                    .map(|port| &*port.name)
                    .chain([*name])
                    .any(|name| measured.contains(name))
            });
            let Some((interface, through)) = through else {
                counted.elsewhere += 1;
                continue;
            };
            counted.established += 1;
            match common_arrival(arrivals(machine, through, &flow)) {
                Ok(arrival) => {
                    let cpu = arrival.cpu.unwrap_or_default();
                    known.push((arrival.interface, cpu, arrival.node, socket.node));
                }
                Err(missing) => unknown.push((interface, missing)),
            }
        }
        counted.arrivals = most_first(known.into_iter())
            .map(
                |((interface, cpu, node, process_node), connections)| ArrivingConnections {
                    interface,
                    cpu,
                    node,
                    process_node,
                    connections,
                },
            )
            .collect();
        counted.unknown = most_first(unknown.into_iter())
            .map(|((interface, missing), connections)| UnknownConnections {
                interface: interface.to_owned(),
                missing,
                connections,
            })
            .collect();
        counted
    }
}

/// The arrival on the only port, or that on which all ports agree.
fn common_arrival(mut arrivals: Vec<Arrival>) -> Result<Arrival, Missing> {
    if let Some(missing) = arrivals
        .iter_mut()
        .find_map(|arrival| arrival.missing.take())
    {
        return Err(missing);
    }
    let names = arrivals.iter().map(|arrival| &arrival.interface).join(", ");
    let agree = arrivals.iter().map(|arrival| arrival.cpu).all_equal();
    arrivals.into_iter().next().filter(|_| agree).ok_or_else(|| {
        Missing::new(format!(
            "which of the ports {names} a packet arrives on is the sender's choice, or the switch's"
        ))
    })
}
