//! The machine by node, for `nicpin nodes`: CPUs, memory, distances and interfaces. Only facts, no decisions.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use serde::Serialize;

use crate::cpuset::CpuSet;
use crate::machine::topology::{NodeUsage, Rate};
use crate::machine::wording::count;
use crate::machine::{Machine, Neighbour};
use crate::plan::Plan;

#[derive(Debug, Serialize)]
#[serde(tag = "schema", rename = "nicpin.nodes/1")]
pub struct Nodes {
    pub online: CpuSet,
    pub nodes: Vec<NodeReport>,
    pub unknown_cpus: CpuSet,
    pub unknown: Vec<NodeInterface>,
    pub unknown_neighbours: Vec<Neighbour>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Vec<Rate>>,
}

#[derive(Debug, Serialize)]
pub struct NodeReport {
    pub node: u32,
    pub cpus: CpuSet,
    /// Online CPUs that are isolated or `nohz_full`.
    pub isolated: CpuSet,
    pub exclusive: CpuSet,
    /// `None` if the kernel does not report it.
    pub memory_kib: Option<u64>,
    #[serde(flatten)]
    pub usage: NodeUsage,
    /// Distance to each node, itself included (10); empty if the kernel does not report it.
    pub distances: BTreeMap<u32, u32>,
    pub interfaces: Vec<NodeInterface>,
    pub neighbours: Vec<Neighbour>,
}

#[derive(Debug, Serialize)]
pub struct NodeInterface {
    pub name: String,
    pub driver: Option<String>,
}

impl Nodes {
    /// `plan` has all interfaces, with the node of those without `numa_node`; `usage` is by node.
    pub fn new(machine: &Machine, plan: &Plan, mut usage: BTreeMap<u32, NodeUsage>) -> Self {
        let topology = &machine.topology;
        let on = |node: Option<u32>| {
            machine
                .interfaces
                .iter()
                .filter(|interface| home(machine, plan, &interface.name) == node)
                .map(|i| NodeInterface {
                    name: i.name.clone(),
                    driver: i.driver.clone(),
                })
                .collect()
        };
        let nodes = topology.nodes.iter().map(|(&id, node)| NodeReport {
            node: id,
            cpus: node.cpus.clone(),
            isolated: topology.isolated_or_nohz().intersection(&node.cpus),
            exclusive: topology.exclusive.intersection(&node.cpus),
            memory_kib: machine.memory.get(&id).copied(),
            usage: usage.remove(&id).unwrap_or_default(),
            distances: node.distances.clone(),
            interfaces: on(Some(id)),
            neighbours: neighbours(machine, Some(id)),
        });
        let on_nodes = CpuSet::union_of(topology.nodes.values().map(|node| &node.cpus));
        Self {
            online: topology.online.clone(),
            nodes: nodes.collect(),
            unknown_cpus: topology.online.difference(&on_nodes),
            unknown: on(None),
            unknown_neighbours: neighbours(machine, None),
            bandwidth: None,
        }
    }
}

/// The devices on a node, or with `None` on no known one. A single node has them all.
pub fn neighbours(machine: &Machine, node: Option<u32>) -> Vec<Neighbour> {
    let nodes = &machine.topology.nodes;
    let only = nodes.keys().copied().exactly_one().ok();
    machine
        .neighbours
        .iter()
        .filter(|neighbour| {
            neighbour
                .node
                .filter(|node| nodes.contains_key(node))
                .or(only)
                == node
        })
        .cloned()
        .collect()
}

/// `2 GPUs, 1 RDMA device`.
pub fn counts(neighbours: &[Neighbour]) -> String {
    neighbours
        .chunk_by(|a, b| a.kind == b.kind)
        .map(|same| count(same.len(), same[0].kind.noun()))
        .join(", ")
}

/// The node of the interface's device, even one without CPUs; else the node in the plan.
pub fn home(machine: &Machine, plan: &Plan, name: &str) -> Option<u32> {
    machine
        .interface(name)
        .and_then(|interface| interface.device.node)
        .filter(|node| machine.topology.nodes.contains_key(node))
        .or_else(|| plan.interface(name)?.node)
}
