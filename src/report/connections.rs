//! Established connections, counted by the CPU and node that they are predicted to arrive on, and by the node of the
//! process that has them open.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::flow::{Arrival, Flow, Missing, Protocol, Through, arrivals};
use crate::machine::Machine;
use crate::machine::program::ConnectedSocket;

/// Where the connections of this machine arrive.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Connections {
    /// Connections with other machines over the interfaces that are measured: TCP, and UDP that is connected.
    pub established: usize,
    /// Connections of this machine with itself.
    pub local: usize,
    /// Connections over other interfaces.
    pub elsewhere: usize,
    /// Those whose CPU is known, most first.
    pub arrivals: Vec<ArrivingConnections>,
    /// The others, most first.
    pub unknown: Vec<UnknownConnections>,
}

/// Connections that arrive on one CPU, of processes on one node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArrivingConnections {
    pub interface: String,
    pub cpu: u32,
    pub node: Option<u32>,
    /// The node of the processes that have them open; `None` if it is unknown.
    pub process_node: Option<u32>,
    pub connections: usize,
}

/// Connections whose CPU cannot be known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnknownConnections {
    pub interface: String,
    pub missing: Missing,
    pub connections: usize,
}

impl Connections {
    /// Of these sockets, those over the interfaces of these names.
    pub fn new(machine: &Machine, measured: &BTreeSet<&str>, sockets: &[ConnectedSocket]) -> Self {
        let mut counted = Self::default();
        let mut throughs: BTreeMap<&str, Through<'_>> = BTreeMap::new();
        let mut known: BTreeMap<_, usize> = BTreeMap::new();
        let mut unknown: BTreeMap<(String, String), UnknownConnections> = BTreeMap::new();
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
                let is_measured = |port: &str| measured.contains(port);
                is_measured(name) || through.ports.iter().any(|port| is_measured(&port.name))
            });
            let Some((interface, through)) = through else {
                counted.elsewhere += 1;
                continue;
            };
            counted.established += 1;
            match one(arrivals(machine, through, &flow)) {
                Ok(arrival) => {
                    let cpu = arrival.cpu.unwrap_or_default();
                    *known
                        .entry((arrival.interface, cpu, arrival.node, socket.node))
                        .or_default() += 1;
                }
                Err(missing) => {
                    let at = (interface.to_owned(), missing.to_string());
                    let of = unknown.entry(at).or_insert_with(|| UnknownConnections {
                        interface: interface.to_owned(),
                        missing,
                        connections: 0,
                    });
                    of.connections += 1;
                }
            }
        }
        let arriving = |((interface, cpu, node, process_node), connections)| ArrivingConnections {
            interface,
            cpu,
            node,
            process_node,
            connections,
        };
        counted.arrivals = known.into_iter().map(arriving).collect();
        counted
            .arrivals
            .sort_by_key(|arriving| std::cmp::Reverse(arriving.connections));
        counted.unknown = unknown.into_values().collect();
        counted
            .unknown
            .sort_by_key(|unknown| std::cmp::Reverse(unknown.connections));
        counted
    }
}

/// The arrival on the only port, or that on which all ports agree.
fn one(arrivals: Vec<Arrival>) -> Result<Arrival, Missing> {
    let names: Vec<&str> = arrivals
        .iter()
        .map(|arrival| arrival.interface.as_str())
        .collect();
    let choice = Missing::Unknown(format!(
        "which of the ports {} a packet arrives on is the sender's choice, or the switch's",
        names.join(", ")
    ));
    let mut one: Option<Arrival> = None;
    for mut arrival in arrivals {
        if let Some(missing) = arrival.missing.take() {
            return Err(missing);
        }
        match &one {
            Some(other) if other.cpu != arrival.cpu => return Err(choice),
            _ => one = one.or(Some(arrival)),
        }
    }
    one.ok_or(choice)
}
