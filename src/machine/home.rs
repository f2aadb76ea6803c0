//! The node of a device. Selectors, rules of the policy and the plan have this one answer.

use serde::{Deserialize, Serialize};

use crate::cpuset::{CpuSet, NodeSet};
use crate::machine::interface::Device;
use crate::machine::topology::Topology;

/// How an interface's node was determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeSource {
    /// The device's `numa_node`.
    NumaNode,
    /// The device's `local_cpulist`, when it does not hold all CPUs.
    LocalCpulist,
    /// The node nearest to the device's node, which has no usable CPU.
    Nearest,
    /// Only one node has CPUs.
    #[serde(rename = "single-node")]
    SingleNode,
    /// The policy names CPUs that are all on one node.
    Policy,
    /// The node is unknown.
    Unknown,
}

/// The node of a device, and the CPUs near it.
#[derive(Debug, Clone, PartialEq)]
pub struct Home {
    /// Usually one. Several that are equally near to the device's own node, which has no usable CPU; none where the
    /// node is unknown, or `local_cpulist` spans several.
    pub nodes: NodeSet,
    /// How they were determined.
    pub source: NodeSource,
    /// The usable CPUs on them, or in `local_cpulist`; all usable CPUs where the node is unknown.
    pub cpus: CpuSet,
}

impl Topology {
    /// The node of a device, of the nodes that have usable CPUs.
    pub fn home(&self, device: &Device, usable: &CpuSet) -> Home {
        let on = |node: u32| {
            self.nodes
                .get(&node)
                .map(|n| n.cpus.intersection(usable))
                .unwrap_or_default()
        };
        let home = |nodes: NodeSet, source| {
            let cpus = CpuSet::union_of(nodes.iter().map(on));
            Home {
                nodes,
                source,
                cpus,
            }
        };
        if let Some(node) = device.node.filter(|node| self.nodes.contains_key(node)) {
            if !on(node).is_empty() {
                return home(NodeSet::single(node), NodeSource::NumaNode);
            }
            let nearest = self.nearest_of(node, |other| !on(other).is_empty());
            if !nearest.is_empty() {
                return home(nearest, NodeSource::Nearest);
            }
        }
        let mut with_cpus = self
            .nodes
            .iter()
            .filter(|(_, node)| !node.cpus.is_empty())
            .map(|(&id, _)| id);
        let only = with_cpus
            .next()
            .filter(|only| with_cpus.next().is_none() && !on(*only).is_empty());
        if let Some(only) = only {
            return home(NodeSet::single(only), NodeSource::SingleNode);
        }
        // When the node is unknown, `local_cpulist` holds all CPUs.
        let local = device.local_cpus.as_ref();
        let is_part = |local: &&CpuSet| !self.online.is_subset(local) && local.intersects(usable);
        if let Some(local) = local.filter(is_part) {
            let node = self
                .nodes
                .iter()
                .find(|(_, node)| local.is_subset(&node.cpus))
                .map(|(&id, _)| id);
            let nodes = node.into_iter().collect();
            return Home {
                nodes,
                source: NodeSource::LocalCpulist,
                cpus: local.intersection(usable),
            };
        }
        Home {
            nodes: NodeSet::new(),
            source: NodeSource::Unknown,
            cpus: usable.clone(),
        }
    }

    /// The online CPUs of a node; of the nodes nearest to it, where it has none.
    pub fn cpus_near(&self, node: u32) -> CpuSet {
        let on = |node: u32| {
            self.nodes
                .get(&node)
                .map(|node| &node.cpus)
                .filter(|cpus| !cpus.is_empty())
        };
        if let Some(cpus) = on(node) {
            return cpus.clone();
        }
        let nearest = self.nearest_of(node, |other| on(other).is_some());
        CpuSet::union_of(nearest.iter().filter_map(on))
    }

    /// Of the other nodes for which something holds, the nearest, and all that are as near.
    fn nearest_of(&self, node: u32, holds: impl Fn(u32) -> bool) -> NodeSet {
        let others: Vec<u32> = self
            .nearest_nodes(node)
            .into_iter()
            .filter(|&other| holds(other))
            .collect();
        let least = others.first().map(|&first| self.distance(node, first));
        others
            .into_iter()
            .filter(|&other| Some(self.distance(node, other)) == least)
            .collect()
    }
}
