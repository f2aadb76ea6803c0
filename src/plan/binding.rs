//! Chooses CPUs and memory for a program that uses an interface, on the local node or a remote one;
//! [`crate::apply::bind`] binds a thread to them.

use std::cmp::Reverse;

use itertools::Itertools as _;
use serde::Serialize;
use thiserror::Error;

use crate::cpuset::{CpuSet, NodeSet};
use crate::machine::wording::cpu_list;
use crate::machine::{Machine, Topology};
use crate::plan::{Plan, PlannedInterface};

#[derive(Debug, Clone, Copy, Default)]
pub enum NodeChoice {
    #[default]
    Near,
    /// The farthest node; of several, the one with the lowest id.
    Far,
    Node(u32),
}

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

#[derive(Debug, Clone, Default)]
pub struct BindingRequest {
    pub place: NodeChoice,
    pub cpus: Option<CpuSet>,
    pub memory: MemoryBinding,
}

#[derive(Debug)]
pub struct Binding {
    /// Several only if `local_cpulist` spans several.
    pub nodes: NodeSet,
    pub cpus: CpuSet,
    /// In words, as they follow the list of CPUs.
    pub why: String,
    pub requested: bool,
    pub memory: MemoryBinding,
    /// Unused with [`MemoryBinding::Local`].
    pub memory_nodes: NodeSet,
    pub notes: Vec<String>,
}

#[derive(Debug, Error)]
#[error("{0}")]
pub struct BindingError(pub(crate) String);

impl Binding {
    /// `names` are the interfaces that `selector` matched. `plan` has all that take interrupts, so that the program
    /// avoids all of their CPUs.
    pub fn new(
        machine: &Machine,
        plan: &Plan,
        selector: &str,
        names: &[String],
        request: &BindingRequest,
    ) -> Result<Self, BindingError> {
        let topology = &machine.topology;
        let interfaces = plan
            .interfaces
            .iter()
            .filter(|interface| names.contains(&interface.name))
            .collect_vec();
        let (near_nodes, near_cpus) = match request.place {
            NodeChoice::Node(node) => cpus_of_node(topology, node),
            NodeChoice::Near => near(machine, selector, &interfaces),
            NodeChoice::Far => far(machine, selector, &interfaces),
        }?;
        let (cpus, why) = match &request.cpus {
            None => workers(machine, plan, &near_cpus),
            Some(cpus) if cpus.is_subset(&topology.online) => {
                (cpus.clone(), "as requested".to_owned())
            }
            Some(cpus) => {
                return Err(BindingError(format!(
                    "not online: {}; online CPUs are {}",
                    cpu_list(&cpus.difference(&topology.online)),
                    topology.online
                )));
            }
        };
        let (mut memory_nodes, mut notes) = (NodeSet::new(), Vec::new());
        for node in near_nodes.iter() {
            let with = machine.memory_near(node);
            memory_nodes.insert(with);
            notes.extend((with != node).then(|| {
                format!("node {node} has no memory; node {with} is the nearest with memory")
            }));
        }
        Ok(Self {
            nodes: near_nodes,
            cpus,
            why,
            requested: request.cpus.is_some(),
            memory: request.memory,
            memory_nodes,
            notes,
        })
    }
}

type NodeCpus = Result<(NodeSet, CpuSet), BindingError>;

fn cpus_of_node(topology: &Topology, node: u32) -> NodeCpus {
    let what = match topology.nodes.get(&node) {
        Some(found) if !found.cpus.is_empty() => {
            return Ok((NodeSet::single(node), found.cpus.clone()));
        }
        Some(_) => "has no online CPU",
        None => "does not exist",
    };
    Err(BindingError(format!(
        "node {node} {what}; nodes with CPUs: {}",
        nodes_with(topology, &topology.online)
    )))
}

/// The node of all these interfaces, or the CPUs in `local_cpulist`.
fn near(machine: &Machine, selector: &str, interfaces: &[&PlannedInterface]) -> NodeCpus {
    let topology = &machine.topology;
    let device = |interface: &PlannedInterface| Some(&machine.interface(&interface.name)?.device);
    if let Ok(Some(node)) = interfaces
        .iter()
        .map(|interface| interface.node)
        .all_equal_value()
    {
        // Programs may run where IRQs may not. Several nodes may be equally near to a device's node without CPUs.
        let home = interfaces[0]
            .unused_node
            .and_then(|_| device(interfaces[0]))
            .map(|device| topology.home(device, &topology.online));
        return match home {
            Some(home) => Ok((home.nodes, home.cpus)),
            None => cpus_of_node(topology, node),
        };
    }
    let [interface] = interfaces else {
        let found = interfaces
            .iter()
            .map(|interface| match interface.node {
                Some(node) => format!("{} on node {node}", interface.name),
                None => format!("{} on an unknown node", interface.name),
            })
            .join(", ");
        return Err(BindingError(format!(
            "`{selector}` stands for interfaces on different nodes ({found}); fix: name one of them, or a node with --node"
        )));
    };
    // If the node is unknown, `local_cpulist` holds all CPUs.
    let cpus = device(interface)
        .and_then(|device| device.local_cpus.as_ref())
        .map(|local| local.intersection(&topology.online))
        .filter(|cpus| !cpus.is_empty() && *cpus != topology.online)
        .ok_or_else(|| {
            BindingError(format!(
                "{}: its node is unknown (numa_node is -1 or missing); fix: choose one with --node N",
                interface.name
            ))
        })?;
    Ok((nodes_with(topology, &cpus), cpus))
}

fn far(machine: &Machine, selector: &str, interfaces: &[&PlannedInterface]) -> NodeCpus {
    let topology = &machine.topology;
    let (mut near, _) = near(machine, selector, interfaces)?;
    // A second function of an interface may be on another node.
    let vectors = interfaces.iter().flat_map(|interface| &interface.vectors);
    near.extend(vectors.filter_map(|vector| vector.node));
    // The device's node, even if it has no CPU.
    let from = interfaces
        .first()
        .and_then(|first| machine.interface(&first.name)?.device.node)
        .filter(|node| topology.nodes.contains_key(node))
        .or(near.first())
        .unwrap_or_default();
    let farthest = nodes_with(topology, &topology.online)
        .difference(&near)
        .iter()
        .max_by_key(|&node| (topology.distance(from, node), Reverse(node)));
    if let Some(node) = farthest {
        return cpus_of_node(topology, node);
    }
    let near = match near.only() {
        Some(node) => format!("node {node} is"),
        None => format!("nodes {near} are"),
    };
    Err(BindingError(format!(
        "no node with CPUs is remote from {selector}: {near} near"
    )))
}

fn nodes_with(topology: &Topology, cpus: &CpuSet) -> NodeSet {
    topology
        .nodes
        .iter()
        .filter(|(_, node)| node.cpus.intersects(cpus))
        .map(|(&id, _)| id)
        .collect()
}

/// Prefers cores without network work, then CPUs without interrupts, each if they are at least half of the usable ones.
/// Isolated, `nohz_full` and exclusive CPUs are used only if there are no others.
fn workers(machine: &Machine, plan: &Plan, near: &CpuSet) -> (CpuSet, String) {
    let exclusive = CpuSet::union_of(plan.interfaces.iter().map(|interface| &interface.exclusive));
    let without = near.difference(&machine.topology.isolated_or_nohz());
    let usable = [&without, near]
        .map(|cpus| cpus.difference(&exclusive))
        .into_iter()
        .find(|usable| !usable.is_empty())
        .unwrap_or_else(|| near.clone());
    let left_out = near.difference(&usable);
    let free = plan.without_interrupts(&usable);
    let quiet = usable.difference(&plan.network_cpus);
    let (taken, all) = (usable.difference(&free), usable.len());
    let (cpus, mut why) = if machine.missing().is_some() {
        (usable, "where interrupts go is not known".to_owned())
    } else if quiet.len() * 2 >= all && quiet != free {
        let why = "on their cores nothing of the network is processed";
        (quiet, why.to_owned())
    } else if taken.is_empty() {
        (usable, "without interrupts".to_owned())
    } else if free.len() * 2 >= all {
        let why = format!("without interrupts, which go to {}", cpu_list(&taken));
        (free, why)
    } else {
        let taken = cpu_list(&taken);
        let why = format!("interrupts go to more than half of them: {taken}");
        (usable, why)
    };
    if !left_out.is_empty() {
        why += &format!("; {} left out: isolated or nohz_full", cpu_list(&left_out));
    }
    if left_out.intersects(&exclusive) {
        why += ", or in an exclusive cpuset partition";
    }
    (cpus, why)
}
