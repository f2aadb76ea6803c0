//! Where a program that uses an interface should run: CPUs and memory of the local node, or of a remote one.
//!
//! Chosen from a machine and its plan; [`crate::apply::bind`] binds a thread to it.

use itertools::Itertools as _;
use serde::Serialize;

use crate::cpuset::{CpuSet, NodeSet};
use crate::machine::{Machine, Topology};
use crate::plan::{Plan, PlannedInterface};

/// The node to run on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NodeChoice {
    /// The interface's node.
    #[default]
    Near,
    /// The node with the greatest distance from it; of several, the one with the lowest id.
    Far,
    /// The node with this id.
    Node(u32),
}

/// How firmly memory is bound to the node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryBinding {
    /// From this node only; allocation fails when it is full
    #[default]
    Bind,
    /// From this node while it has free memory, then from others
    Preferred,
    /// From the node of the CPU that the program runs on, then from others
    Local,
}

/// A request for a binding.
#[derive(Debug, Clone, Default)]
pub struct BindingRequest {
    pub place: NodeChoice,
    /// CPUs to use in place of the node's.
    pub cpus: Option<CpuSet>,
    pub memory: MemoryBinding,
}

/// CPUs and memory for a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Binding {
    /// The nodes of the CPUs and the memory: usually one; several when `local_cpulist` spans several.
    pub nodes: NodeSet,
    pub cpus: CpuSet,
    /// The reason for these CPUs.
    pub why: String,
    /// Whether the CPUs were requested by number.
    pub requested: bool,
    pub memory: MemoryBinding,
    /// The nodes of the memory policy; unused with [`MemoryBinding::Local`].
    pub memory_nodes: NodeSet,
    pub notes: Vec<String>,
}

/// No binding could be chosen.
#[derive(Debug, thiserror::Error)]
pub enum BindingError {
    /// The selector stands for interfaces on several nodes.
    #[error(
        "`{selector}` stands for interfaces on different nodes ({found}); fix: name one of them, or a node with --node"
    )]
    SeveralNodes {
        /// As it was typed.
        selector: String,
        /// The interfaces with their nodes, in words.
        found: String,
    },
    /// The interface's node is unknown.
    #[error("{interface}: its node is unknown (numa_node is -1); fix: choose one with --node N")]
    NodeUnknown { interface: String },
    /// There is no other node.
    #[error("node {node} is the only node with CPUs: no node is remote from {interface}")]
    NoFarNode { interface: String, node: NodeSet },
    /// The node does not exist, or has no online CPU.
    #[error("node {node} {what}; nodes with CPUs: {with_cpus}")]
    NoSuchNode {
        /// As it was typed.
        node: u32,
        /// What is wrong with it.
        what: &'static str,
        /// Nodes with online CPUs.
        with_cpus: NodeSet,
    },
    /// Requested CPUs are offline.
    #[error("CPUs {missing} are not online; online CPUs are {online}")]
    Offline { missing: CpuSet, online: CpuSet },
    /// The requested CPU list is empty.
    #[error("`--cpus` names no CPU")]
    NoCpu,
}

impl Binding {
    /// Chooses CPUs and memory for a program that uses the interfaces `names`, which `selector` matched. `plan` is the
    /// plan of all interfaces that take interrupts, so that the program avoids all of their CPUs.
    pub fn new(
        machine: &Machine,
        plan: &Plan,
        selector: &str,
        names: &[String],
        request: &BindingRequest,
    ) -> Result<Self, BindingError> {
        let interfaces: Vec<&PlannedInterface> = plan
            .interfaces
            .iter()
            .filter(|interface| names.contains(&interface.name))
            .collect();
        let topology = &machine.topology;
        let (near_nodes, near_cpus) = match request.place {
            NodeChoice::Node(node) => named(topology, node)?,
            NodeChoice::Near => near(machine, selector, &interfaces)?,
            NodeChoice::Far => far(machine, selector, &interfaces)?,
        };
        let mut notes = Vec::new();
        let (cpus, why) = match &request.cpus {
            Some(cpus) => (requested_cpus(topology, cpus)?, "as requested".to_owned()),
            None => workers(topology, plan, &near_cpus),
        };
        let memory_nodes = with_memory(machine, &near_nodes, &mut notes);
        let requested = request.cpus.is_some();
        Ok(Self {
            nodes: near_nodes,
            cpus,
            why,
            requested,
            memory: request.memory,
            memory_nodes,
            notes,
        })
    }
}

/// Nodes and their CPUs.
type NodeCpus = (NodeSet, CpuSet);

fn named(topology: &Topology, node: u32) -> Result<NodeCpus, BindingError> {
    let wrong = |what| BindingError::NoSuchNode {
        node,
        what,
        with_cpus: with_cpus(topology),
    };
    match topology.nodes.get(&node) {
        None => Err(wrong("does not exist")),
        Some(node) if node.cpus.is_empty() => Err(wrong("has no online CPU")),
        Some(found) => Ok((NodeSet::single(node), found.cpus.clone())),
    }
}

/// The node of all of these interfaces, or the CPUs in `local_cpulist`.
fn near(
    machine: &Machine,
    selector: &str,
    interfaces: &[&PlannedInterface],
) -> Result<NodeCpus, BindingError> {
    let topology = &machine.topology;
    let first = interfaces.first().copied();
    let all_on = |node: &u32| interfaces.iter().all(|other| other.node == Some(*node));
    let node = first.and_then(|first| first.node).filter(all_on);
    if let (Some(first), Some(node)) = (first, node) {
        // Several nodes may be equally near to that of the device.
        let tied = first
            .unused_node
            .and_then(|_| machine.interface(&first.name));
        let tied = tied.map(|interface| machine.topology.home(&interface.device, &topology.online));
        return match tied.filter(|home| home.nodes.len() > 1) {
            Some(home) => Ok((home.nodes, home.cpus)),
            None => named(topology, node),
        };
    }
    let [interface] = interfaces else {
        let place = |interface: &&PlannedInterface| match interface.node {
            Some(node) => format!("{} on node {node}", interface.name),
            None => format!("{} on an unknown node", interface.name),
        };
        let found = interfaces.iter().map(place).join(", ");
        return Err(BindingError::SeveralNodes {
            selector: selector.to_owned(),
            found,
        });
    };
    let with_device = machine.interface(&interface.name);
    let local = with_device.and_then(|with_device| with_device.device.local_cpus.as_ref());
    let local = local.map(|local| local.intersection(&topology.online));
    match local {
        // When the node is unknown, `local_cpulist` holds all CPUs.
        Some(cpus) if !cpus.is_empty() && cpus != topology.online => {
            let holds = topology
                .nodes
                .iter()
                .filter(|(_, node)| node.cpus.intersects(&cpus));
            Ok((holds.map(|(&id, _)| id).collect(), cpus))
        }
        _ => Err(BindingError::NodeUnknown {
            interface: interface.name.clone(),
        }),
    }
}

/// The node that is farthest from these interfaces.
fn far(
    machine: &Machine,
    selector: &str,
    interfaces: &[&PlannedInterface],
) -> Result<NodeCpus, BindingError> {
    let topology = &machine.topology;
    let (near, _) = near(machine, selector, interfaces)?;
    // The device's node, even if it has no CPU.
    let own = machine
        .interfaces
        .iter()
        .find(|other| interfaces.iter().any(|i| i.name == other.name));
    let own = own
        .and_then(|interface| interface.device.node)
        .filter(|node| topology.nodes.contains_key(node));
    let from = own.or(near.first()).unwrap_or_default();
    let others = with_cpus(topology).difference(&near);
    let farthest = others
        .iter()
        .max_by_key(|&node| (topology.distance(from, node), std::cmp::Reverse(node)));
    match farthest {
        Some(node) => named(topology, node),
        None => Err(BindingError::NoFarNode {
            interface: selector.to_owned(),
            node: near,
        }),
    }
}

fn with_cpus(topology: &Topology) -> NodeSet {
    topology
        .nodes
        .iter()
        .filter(|(_, node)| !node.cpus.is_empty())
        .map(|(&id, _)| id)
        .collect()
}

fn requested_cpus(topology: &Topology, cpus: &CpuSet) -> Result<CpuSet, BindingError> {
    let missing = cpus.difference(&topology.online);
    if cpus.is_empty() {
        Err(BindingError::NoCpu)
    } else if missing.is_empty() {
        Ok(cpus.clone())
    } else {
        Err(BindingError::Offline {
            missing,
            online: topology.online.clone(),
        })
    }
}

/// The CPUs for a program, from local ones: cores on which nothing of the network lands if they are at least half of
/// them, else CPUs without interrupts if these are, else all.
/// Isolated and `nohz_full` CPUs, and exclusive ones that the policy leaves out, only when there are no others.
fn workers(topology: &Topology, plan: &Plan, near: &CpuSet) -> (CpuSet, String) {
    let exclusive = CpuSet::union_of(plan.interfaces.iter().map(|interface| &interface.exclusive));
    let without = near.difference(&topology.isolated_or_nohz());
    let usable = [without.difference(&exclusive), near.difference(&exclusive)]
        .into_iter()
        .find(|usable| !usable.is_empty());
    let usable = usable.unwrap_or_else(|| near.clone());
    let left_out = near.difference(&usable);
    let free = plan.without_interrupts(&usable);
    let quiet = plan.without_network(topology, &usable);
    let (taken, all) = (usable.difference(&free), usable.len());
    let (cpus, why) = if quiet.len() * 2 >= all && quiet != free {
        let why = "on their cores nothing of the network is processed".to_owned();
        (quiet, why)
    } else if taken.is_empty() {
        (usable, "they take no interrupts".to_owned())
    } else if free.len() * 2 >= all {
        (free, format!("they take no interrupts, CPUs {taken} do"))
    } else {
        (
            usable,
            format!("CPUs {taken} of them take interrupts: fewer than half take none"),
        )
    };
    if left_out.is_empty() {
        (cpus, why)
    } else {
        let exclusive = left_out.intersects(&exclusive);
        let or_exclusive = if exclusive {
            ", or in an exclusive cpuset partition"
        } else {
            ""
        };
        (
            cpus,
            format!("{why}; {left_out} left out: isolated or nohz_full{or_exclusive}"),
        )
    }
}

/// The nodes; one without memory is replaced by the nearest node with memory.
fn with_memory(machine: &Machine, near: &NodeSet, notes: &mut Vec<String>) -> NodeSet {
    let mut chosen = NodeSet::new();
    for node in near.iter() {
        let with = machine.memory_near(node);
        if with != node {
            notes.push(format!(
                "node {node} has no memory; node {with} is the nearest with memory"
            ));
        }
        chosen.insert(with);
    }
    chosen
}
