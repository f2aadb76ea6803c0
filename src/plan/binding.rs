//! Where a program that uses an interface should run: CPUs and memory of the interface's node, or of another.
//!
//! Chosen from a machine and its plan; [`crate::apply::bind`] binds a thread to it.

use serde::Serialize;

use crate::cpuset::{CpuSet, NodeSet};
use crate::machine::{Machine, Topology};
use crate::plan::{Plan, PlannedInterface};

/// Which node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NodeChoice {
    /// The interface's own.
    #[default]
    Near,
    /// The one that is farthest from it by distance; of several the one with the lowest id.
    Far,
    /// This one.
    Node(u32),
}

/// How firmly memory is bound to the node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum MemoryBinding {
    /// From the node and no other; what it does not have cannot be had
    #[default]
    Bind,
    /// From the node while it has some, then from others
    Preferred,
    /// From whichever node the program runs on at the time, then from others
    Local,
}

/// What was asked for.
#[derive(Debug, Clone, Default)]
pub struct BindingRequest {
    /// The node.
    pub place: NodeChoice,
    /// These CPUs, instead of the node's.
    pub cpus: Option<CpuSet>,
    /// The memory policy.
    pub memory: MemoryBinding,
}

/// CPUs and memory for a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Binding {
    /// The nodes whose CPUs and memory these are: one in nearly every case, several where a card is near to several.
    pub nodes: NodeSet,
    /// The CPUs that it may run on.
    pub cpus: CpuSet,
    /// Why it is these.
    pub why: String,
    /// Whether these are the very CPUs that were asked for.
    pub asked: bool,
    /// The memory policy.
    pub memory: MemoryBinding,
    /// The nodes of the policy; not used when it is local.
    pub memory_nodes: NodeSet,
    /// What else to know.
    pub notes: Vec<String>,
}

/// No binding can be chosen.
#[derive(Debug, thiserror::Error)]
pub enum BindingError {
    /// The selector stands for interfaces on several nodes.
    #[error(
        "`{selector}` stands for interfaces on different nodes ({found}): name one of them, or a node with --node"
    )]
    SeveralNodes {
        /// As it was typed.
        selector: String,
        /// The interfaces with their nodes, in words.
        found: String,
    },
    /// Nobody knows where the interface is.
    #[error("{interface}: the kernel does not know its node (numa_node -1); name one with --node N")]
    NodeUnknown {
        /// The interface.
        interface: String,
    },
    /// There is no other node.
    #[error("node {node} is the only one with CPUs: nothing is far from {interface}")]
    NoFarNode {
        /// The interface.
        interface: String,
        /// Its node.
        node: NodeSet,
    },
    /// There is no such node, or it has no CPU.
    #[error("node {node} {what}; nodes with CPUs: {with_cpus}")]
    NoSuchNode {
        /// As it was typed.
        node: u32,
        /// What is wrong with it.
        what: &'static str,
        /// Those that would do.
        with_cpus: NodeSet,
    },
    /// CPUs that do not run.
    #[error("CPUs {missing} are not online; online are {online}")]
    Offline {
        /// CPUs that were asked for.
        missing: CpuSet,
        /// CPUs that run.
        online: CpuSet,
    },
    /// No CPU was asked for.
    #[error("`--cpus` names no CPU")]
    NoCpu,
}

impl Binding {
    /// Chooses CPUs and memory for a program that uses what `selector` stands for.
    ///
    /// `names` are the interfaces; `plan` is the plan of every interface that takes interrupts, so that workers keep
    /// clear of all of them.
    pub fn new(
        machine: &Machine,
        plan: &Plan,
        selector: &str,
        names: &[String],
        wish: &BindingRequest,
    ) -> Result<Self, BindingError> {
        let interfaces: Vec<&PlannedInterface> =
            plan.interfaces.iter().filter(|interface| names.contains(&interface.name)).collect();
        let topology = &machine.topology;
        let near = match wish.place {
            NodeChoice::Node(node) => named(topology, node)?,
            NodeChoice::Near => near(machine, selector, &interfaces)?,
            NodeChoice::Far => far(machine, selector, &interfaces)?,
        };
        let mut notes = Vec::new();
        let (cpus, why) = match &wish.cpus {
            Some(cpus) => (asked(topology, cpus)?, "as asked for".to_owned()),
            None => workers(topology, plan, &near.cpus),
        };
        let memory_nodes = with_memory(machine, &near.nodes, &mut notes);
        let asked = wish.cpus.is_some();
        Ok(Self { nodes: near.nodes, cpus, why, asked, memory: wish.memory, memory_nodes, notes })
    }
}

/// Nodes and their CPUs.
struct NodeCpus {
    nodes: NodeSet,
    cpus: CpuSet,
}

impl NodeCpus {
    fn node(topology: &Topology, node: u32) -> Self {
        let cpus = topology.nodes.get(&node).map(|node| node.cpus.clone()).unwrap_or_default();
        Self { nodes: NodeSet::single(node), cpus }
    }
}

fn named(topology: &Topology, node: u32) -> Result<NodeCpus, BindingError> {
    let wrong = |what| BindingError::NoSuchNode { node, what, with_cpus: with_cpus(topology) };
    match topology.nodes.get(&node) {
        None => Err(wrong("is not a node of this machine")),
        Some(found) if found.cpus.is_empty() => Err(wrong("has no CPU that runs")),
        Some(_) => Ok(NodeCpus::node(topology, node)),
    }
}

/// The node that all of these interfaces are on, or the CPUs that the kernel says are near.
fn near(
    machine: &Machine,
    selector: &str,
    interfaces: &[&PlannedInterface],
) -> Result<NodeCpus, BindingError> {
    let topology = &machine.topology;
    if let Some((first, others)) = interfaces.split_first()
        && let Some(node) = first.node
        && others.iter().all(|other| other.node == Some(node))
    {
        return Ok(NodeCpus::node(topology, node));
    }
    let [interface] = interfaces else {
        let place = |interface: &&PlannedInterface| match interface.node {
            Some(node) => format!("{} on node {node}", interface.name),
            None => format!("{} on an unknown node", interface.name),
        };
        let found = interfaces.iter().map(place).collect::<Vec<_>>().join(", ");
        return Err(BindingError::SeveralNodes { selector: selector.to_owned(), found });
    };
    let told = machine.interfaces.iter().find(|told| told.name == interface.name);
    let local =
        told.and_then(|told| told.device.local_cpus.as_ref()).map(|l| l.intersection(&topology.online));
    match local {
        // All CPUs in `local_cpulist` is the kernel's way of not knowing.
        Some(cpus) if !cpus.is_empty() && cpus != topology.online => {
            let holds = topology.nodes.iter().filter(|(_, node)| node.cpus.intersects(&cpus));
            Ok(NodeCpus { nodes: holds.map(|(&id, _)| id).collect(), cpus })
        }
        _ => Err(BindingError::NodeUnknown { interface: interface.name.clone() }),
    }
}

/// The node that is farthest from these interfaces.
fn far(
    machine: &Machine,
    selector: &str,
    interfaces: &[&PlannedInterface],
) -> Result<NodeCpus, BindingError> {
    let topology = &machine.topology;
    let near = near(machine, selector, interfaces)?;
    // The card's own node, though it may have no CPU.
    let own = machine.interfaces.iter().find(|told| interfaces.iter().any(|i| i.name == told.name));
    let own = own.and_then(|told| told.device.node).filter(|node| topology.nodes.contains_key(node));
    let from = own.or(near.nodes.first()).unwrap_or_default();
    let others = with_cpus(topology).difference(&near.nodes);
    let farthest = others.iter().max_by_key(|&node| (topology.distance(from, node), std::cmp::Reverse(node)));
    match farthest {
        Some(node) => Ok(NodeCpus::node(topology, node)),
        None => Err(BindingError::NoFarNode { interface: selector.to_owned(), node: near.nodes }),
    }
}

fn with_cpus(topology: &Topology) -> NodeSet {
    topology.nodes.iter().filter(|(_, node)| !node.cpus.is_empty()).map(|(&id, _)| id).collect()
}

fn asked(topology: &Topology, cpus: &CpuSet) -> Result<CpuSet, BindingError> {
    let missing = cpus.difference(&topology.online);
    if cpus.is_empty() {
        Err(BindingError::NoCpu)
    } else if missing.is_empty() {
        Ok(cpus.clone())
    } else {
        Err(BindingError::Offline { missing, online: topology.online.clone() })
    }
}

/// The CPUs for a program, of those near it: the ones that take no interrupts when that is at least half of them,
/// else all; and none that is kept free of tasks, as long as there are others.
fn workers(topology: &Topology, plan: &Plan, near: &CpuSet) -> (CpuSet, String) {
    let usable = Some(near.difference(&topology.isolated_or_nohz())).filter(|usable| !usable.is_empty());
    let usable = usable.unwrap_or_else(|| near.clone());
    let free = plan.without_interrupts(&usable);
    let (taken, all) = (usable.difference(&free), usable.len());
    let (cpus, why) = if taken.is_empty() {
        (usable, "no interrupts go there".to_owned())
    } else if free.len() * 2 >= all {
        (free, format!("where no interrupts go; they go to {taken}"))
    } else {
        (usable, format!("interrupts go to {taken}, too, and fewer than half are without"))
    };
    let kept = near.difference(&topology.isolated_or_nohz());
    let left_out = near.difference(&kept);
    let isolated = if left_out.is_empty() || kept.is_empty() {
        String::new()
    } else {
        format!("; {left_out} left out: isolated or nohz_full")
    };
    (cpus, why + &isolated)
}

/// The nodes, each without memory replaced by the nearest that has some.
fn with_memory(machine: &Machine, near: &NodeSet, notes: &mut Vec<String>) -> NodeSet {
    let mut chosen = NodeSet::new();
    for node in near.iter() {
        let with = machine.memory_near(node);
        if with != node {
            notes.push(format!("node {node} has no memory; node {with} is the nearest that has"));
        }
        chosen.insert(with);
    }
    chosen
}
