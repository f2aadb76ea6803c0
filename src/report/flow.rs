//! Where flows arrive, for `nicpin flow`: each of them, and how they spread over queues and CPUs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::flow::{Arrival, Flow, Missing, Through, arrivals, ports_to};
use crate::machine::Machine;
use crate::report::exit::Exit;

/// The name and version of the JSON form.
pub const SCHEMA: &str = "nicpin.flow/1";

/// Where flows arrive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flows {
    pub schema: &'static str,
    /// The interfaces: one, or the ports of a bond, among which the sender or the switch chooses; none for a tunnel.
    pub interfaces: Vec<String>,
    /// Each flow on each interface.
    pub arrivals: Vec<Arrival>,
    /// How many flows each queue and CPU takes, most first; those of which the CPU is unknown are left out.
    pub spread: Vec<Share>,
    /// Connections of this machine with itself, which pass no interface.
    pub local: usize,
    /// The source ports that arrive on the CPU that was asked for, on each interface in turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Ports>,
}

/// The flows that one queue takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    pub interface: String,
    pub queue: u32,
    pub irq: u32,
    pub cpu: u32,
    pub node: Option<u32>,
    pub flows: usize,
}

/// The source ports that arrive on a CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ports {
    pub interface: String,
    pub cpu: u32,
    pub ports: Vec<u16>,
    /// Why they are not known.
    pub missing: Option<Missing>,
}

impl Flows {
    /// Where these connections arrive; `None` for one within this machine.
    pub fn new(machine: &Machine, through: &Through<'_>, connections: &[Option<Flow>]) -> Self {
        let flows = connections.iter().flatten();
        let arrivals: Vec<Arrival> = flows
            .flat_map(|flow| arrivals(machine, through, flow))
            .collect();
        Self {
            schema: SCHEMA,
            interfaces: (through.ports.iter())
                .map(|interface| interface.name.clone())
                .collect(),
            spread: spread(&arrivals),
            local: connections.iter().filter(|flow| flow.is_none()).count(),
            arrivals,
            ports: Vec::new(),
        }
    }

    /// The source ports with which a flow arrives on a CPU, at most so many on each interface.
    pub fn to_cpu(
        machine: &Machine,
        through: &Through<'_>,
        flow: &Flow,
        cpu: u32,
        most: usize,
    ) -> Self {
        let ports = |interface: &str, found: Result<Vec<u16>, Missing>| {
            let (mut ports, missing) = match found {
                Ok(ports) => (ports, None),
                Err(missing) => (Vec::new(), Some(missing)),
            };
            ports.truncate(most);
            Ports {
                interface: interface.to_owned(),
                cpu,
                ports,
                missing,
            }
        };
        let on_port = (through.ports.iter())
            .map(|port| ports(&port.name, ports_to(machine, port, flow, cpu)));
        let tunnel = (through.tunnel.iter()).map(|name| ports(name, Err(Missing::in_tunnel(name))));
        Self {
            ports: on_port.chain(tunnel).collect(),
            ..Self::new(machine, through, &[])
        }
    }

    /// Whether everything is known, and there is a port where one was looked for.
    pub fn exit(&self) -> Exit {
        let is_known = self
            .arrivals
            .iter()
            .all(|arrival| arrival.missing.is_none());
        let has_ports = self.ports.iter().all(|found| !found.ports.is_empty());
        if is_known && has_ports {
            Exit::Planned
        } else {
            Exit::Failed
        }
    }
}

/// Interface, queue, IRQ, CPU.
type Place<'a> = (&'a str, u32, u32, u32);

fn spread(arrivals: &[Arrival]) -> Vec<Share> {
    let mut counts: BTreeMap<Place<'_>, (usize, Option<u32>)> = BTreeMap::new();
    for arrival in arrivals {
        if let (Some(queue), Some(irq), Some(cpu)) = (arrival.queue, arrival.irq, arrival.cpu) {
            let of = counts.entry((&arrival.interface, queue, irq, cpu));
            of.or_insert((0, arrival.node)).0 += 1;
        }
    }
    let share = |(at, counted)| {
        let ((interface, queue, irq, cpu), (flows, node)): (Place<'_>, (usize, Option<u32>)) =
            (at, counted);
        Share {
            interface: interface.to_owned(),
            queue,
            irq,
            cpu,
            node,
            flows,
        }
    };
    let mut shares: Vec<Share> = counts.into_iter().map(share).collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.flows));
    shares
}
