//! The machine by node: CPUs, memory, distances and the interfaces on each. Facts put together, for `nicpin nodes`; what
//! is decided about them is in the plan.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cpuset::{CpuSet, NodeSet};
use crate::machine::Machine;
use crate::machine::memory::NodeUsage;
use crate::machine::memory::Rate;
use crate::plan::Plan;

/// The name and version of the JSON form.
pub const SCHEMA: &str = "nicpin.nodes/1";

/// All nodes of a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Nodes {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// By id.
    pub nodes: Vec<NodeReport>,
    /// Interfaces whose node is not known.
    pub unknown: Vec<NodeInterface>,
    /// How fast memory is, where it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Vec<Rate>>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeReport {
    /// Its id.
    pub node: u32,
    /// Its online CPUs.
    pub cpus: CpuSet,
    /// Those of them that are isolated or `nohz_full`.
    pub kept_free: CpuSet,
    /// Its memory in KiB; `None` where the machine does not tell.
    pub memory_kib: Option<u64>,
    /// What its memory is used for now.
    #[serde(flatten)]
    pub usage: NodeUsage,
    /// Distance to each node, itself included (10 is itself); empty where the machine does not tell.
    pub distances: BTreeMap<u32, u32>,
    /// The interfaces on it.
    pub interfaces: Vec<NodeInterface>,
}

/// An interface on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeInterface {
    /// Its name.
    pub name: String,
    /// Its driver.
    pub driver: Option<String>,
}

impl Nodes {
    /// Puts together what a machine tells. `plan` is of all its interfaces: it knows the node of those whose own file
    /// does not tell. `usage` is by node.
    pub fn new(machine: &Machine, plan: &Plan, mut usage: BTreeMap<u32, NodeUsage>) -> Self {
        let topology = &machine.topology;
        let on = |node: Option<u32>| {
            let here =
                machine.interfaces.iter().filter(|interface| home(machine, plan, &interface.name) == node);
            here.map(|i| NodeInterface { name: i.name.clone(), driver: i.driver.clone() }).collect()
        };
        let nodes = topology.nodes.iter().map(|(&id, node)| NodeReport {
            node: id,
            cpus: node.cpus.clone(),
            kept_free: topology.isolated_or_nohz().intersection(&node.cpus),
            memory_kib: machine.memory.get(&id).copied(),
            usage: usage.remove(&id).unwrap_or_default(),
            distances: node.distances.clone(),
            interfaces: on(Some(id)),
        });
        Self { schema: SCHEMA, nodes: nodes.collect(), unknown: on(None), bandwidth: None }
    }

    /// The nodes' ids.
    pub fn ids(&self) -> NodeSet {
        self.nodes.iter().map(|node| node.node).collect()
    }
}

/// The node that an interface sits on: its device's own, CPUs or not; else the one that its plan knows of.
pub(crate) fn home(machine: &Machine, plan: &Plan, name: &str) -> Option<u32> {
    let own = machine.interfaces.iter().find(|told| told.name == name).and_then(|told| told.device.node);
    let planned = || plan.interfaces.iter().find(|told| told.name == name).and_then(|told| told.node);
    own.filter(|node| machine.topology.nodes.contains_key(node)).or_else(planned)
}
