//! The machine's CPUs, and how they share cores, L3 caches and NUMA nodes.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use serde::de::value::{self, MapDeserializer};
use serde::{Deserialize, Serialize};

use self::NodeSource::{LocalCpulist, Nearest, NumaNode, SingleNode, Unknown};
use crate::cpuset::{CpuSet, NodeSet};
use crate::machine::Device;

/// CPUs, cores, caches and nodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topology {
    pub online: CpuSet,
    /// `nr_cpu_ids`: the highest possible CPU number plus one.
    pub possible: u32,
    /// Taken out of scheduling by `isolcpus=` or an isolated cpuset partition.
    pub isolated: CpuSet,
    /// Without the timer tick (`nohz_full=`).
    pub nohz_full: CpuSet,
    pub kept_off: Vec<KeptOff>,
    /// CPUs of exclusive cpuset partitions (cgroup v2), if read; they come and go.
    pub exclusive: CpuSet,
    /// Some cgroups were not searched for `exclusive`, because there are too many.
    pub exclusive_cut: bool,
    /// CPUs that the kernel removes from every written `rps_cpus` (`rps_cpumask_housekeeping` in
    /// `net/core/net-sysfs.c`): those of `isolcpus=` and `nohz_full=`, and the boot CPU if any is `nohz_full`: if
    /// `nohz_full=` names it, the kernel removes it and does not list it.
    pub rps_filter: CpuSet,
    /// Online SMT siblings, by lowest CPU.
    pub cores: Vec<CpuSet>,
    /// Online CPUs that share an L3, by lowest CPU; without an L3, an L2, if some L2 has several cores. Empty if
    /// neither is reported.
    pub l3_domains: Vec<CpuSet>,
    /// Online CPUs of each socket, by lowest CPU. Empty if not reported.
    pub packages: Vec<CpuSet>,
    /// Kinds of cores, fastest first, if there are several (hybrid x86, big and little arm64).
    pub speed_classes: Vec<CpuSet>,
    /// By id; ids may be sparse. A kernel without NUMA has node 0.
    pub nodes: BTreeMap<u32, Node>,
}

/// Interrupt vectors of an x86 CPU for devices: 203 of the 256 on common kernels, fewer with some options.
pub const VECTORS_OF_CPU: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptOff {
    pub cpus: CpuSet,
    pub by: String,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Node {
    /// Online; empty for a node with memory only.
    pub cpus: CpuSet,
    /// The kernel reports no memory, as when all DIMMs are missing.
    pub without_memory: bool,
    /// ACPI SLIT distance to each node (10 to itself). Empty if not reported.
    pub distances: BTreeMap<u32, u32>,
}

impl Topology {
    pub fn isolated_or_nohz(&self) -> CpuSet {
        self.isolated.union(&self.nohz_full)
    }

    pub fn cores_with<'a>(&'a self, cpus: &'a CpuSet) -> impl Iterator<Item = &'a CpuSet> {
        self.cores.iter().filter(|core| core.intersects(cpus))
    }

    pub(crate) fn whole_cores(&self, cpus: &CpuSet) -> CpuSet {
        CpuSet::union_of(self.cores_with(cpus))
    }

    pub fn node_of(&self, cpu: u32) -> Option<u32> {
        self.nodes
            .iter()
            .find_map(|(&id, node)| node.cpus.contains(cpu).then_some(id))
    }

    /// If not reported, the kernel's default: 10 to itself, else 20 (`LOCAL_DISTANCE`, `REMOTE_DISTANCE`).
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        self.nodes
            .get(&from)
            .and_then(|node| node.distances.get(&to))
            .copied()
            .unwrap_or(if from == to { 10 } else { 20 })
    }

    /// Nearest first, then by id.
    pub fn nearest_nodes(&self, from: u32) -> Vec<u32> {
        self.nodes
            .keys()
            .copied()
            .filter(|&id| id != from)
            .sorted_by_key(|&id| self.distance(from, id))
            .collect()
    }

    /// The node of a device, of those with usable CPUs.
    pub fn home(&self, device: &Device, usable: &CpuSet) -> Home {
        let home = |nodes: NodeSet, source| Home {
            cpus: self.cpus_of(nodes.iter()).intersection(usable),
            nodes,
            source,
        };
        if let Some(own) = device.node.filter(|own| self.nodes.contains_key(own)) {
            let nodes = self.nearest_with(own, |node| node.cpus.intersects(usable));
            if !nodes.is_empty() {
                let is_own = nodes.contains(own);
                return home(nodes, if is_own { NumaNode } else { Nearest });
            }
        }
        let mut with_cpus = self.nodes.iter().filter(|(_, node)| !node.cpus.is_empty());
        if let Some((&first, node)) = with_cpus.next() {
            // Emulated nodes (`numa=fake`) divide the memory of one, and have all of its CPUs.
            let is_only = with_cpus.all(|(_, other)| other.cpus == node.cpus);
            if is_only && node.cpus.intersects(usable) {
                return home(NodeSet::single(first), SingleNode);
            }
        }
        // When the node is unknown, `local_cpulist` holds all CPUs.
        let local = device.local_cpus.as_ref();
        if let Some(local) = local.filter(|local| !self.online.is_subset(local)) {
            let mut nodes = self.nodes.iter();
            let own = nodes.find(|(_, node)| local.is_subset(&node.cpus));
            let own = own.map(|(&id, _)| id);
            if local.intersects(usable) {
                return Home {
                    nodes: own.into_iter().collect(),
                    source: LocalCpulist,
                    cpus: local.intersection(usable),
                };
            }
            if let Some(own) = own {
                let nodes = self.nearest_with(own, |node| node.cpus.intersects(usable));
                return home(nodes, Nearest);
            }
        }
        Home {
            nodes: NodeSet::new(),
            source: Unknown,
            cpus: usable.clone(),
        }
    }

    /// Online CPUs of a node; if it has none, of the nearest nodes.
    pub fn cpus_near(&self, node: u32) -> CpuSet {
        let nearest = self.nearest_with(node, |node| !node.cpus.is_empty());
        self.cpus_of(nearest.iter())
    }

    pub(crate) fn cpus_of(&self, nodes: impl IntoIterator<Item = u32>) -> CpuSet {
        let nodes = nodes.into_iter().filter_map(|id| self.nodes.get(&id));
        CpuSet::union_of(nodes.map(|node| &node.cpus))
    }

    /// `own` if `holds` is true of it, else all nearest nodes of which it is.
    fn nearest_with(&self, own: u32, holds: impl Fn(&Node) -> bool) -> NodeSet {
        let holds = |id: &u32| self.nodes.get(id).is_some_and(&holds);
        if holds(&own) {
            return NodeSet::single(own);
        }
        let nodes = self.nodes.keys().copied().filter(holds);
        nodes
            .min_set_by_key(|&other| self.distance(own, other))
            .into_iter()
            .collect()
    }
}

/// How an interface's node was determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeSource {
    NumaNode,
    /// The device's `local_cpulist`, if it does not hold all CPUs.
    LocalCpulist,
    /// The nearest node with usable CPUs; the device's own has none.
    Nearest,
    /// Only one node has CPUs, or all have the same.
    #[serde(rename = "single-node")]
    SingleNode,
    /// The policy names CPUs that are all on one node.
    Policy,
    Unknown,
}

impl NodeSource {
    /// Says why a queue is on the interface's own node.
    pub fn reason(self, node: Option<u32>) -> String {
        match node {
            None => "node unknown".to_owned(),
            Some(node) if self == Self::SingleNode => format!("node {node}, which has all CPUs"),
            Some(node) => format!("local (node {node})"),
        }
    }
}

#[derive(Debug)]
pub struct Home {
    /// Usually one. Several if equally near to the device's own node, which has no usable CPU; none if unknown.
    pub nodes: NodeSet,
    pub source: NodeSource,
    /// The usable CPUs on them, or in `local_cpulist`; all usable CPUs if the node is unknown.
    pub cpus: CpuSet,
}

/// A node's memory usage; `None` if not reported.
#[derive(Debug, Default, Serialize)]
pub struct NodeUsage {
    pub free_kib: Option<u64>,
    pub pages: Option<Pages>,
}

/// Pages allocated since boot (`Documentation/admin-guide/numastat.rst`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pages {
    #[serde(rename = "numa_hit")]
    pub hit: u64,
    #[serde(rename = "numa_miss")]
    pub miss: u64,
    #[serde(rename = "numa_foreign")]
    pub foreign: u64,
    pub interleave_hit: u64,
    #[serde(rename = "local_node")]
    pub local: u64,
    #[serde(rename = "other_node")]
    pub other: u64,
}

impl Pages {
    /// Parses the six lines of `numastat`; skips other names.
    pub fn parse(text: &str) -> Option<Self> {
        let mut counts = BTreeMap::new();
        for line in text.lines() {
            let (name, count) = line.split_once(' ')?;
            let count = count.trim().parse::<u64>().ok();
            counts.extend(count.map(|count| (name, count)));
        }
        Self::deserialize(MapDeserializer::<_, value::Error>::new(counts.into_iter())).ok()
    }
}

/// The rate at which the CPUs of one node read the memory of another.
#[derive(Debug, Serialize)]
pub struct Rate {
    pub cpus_of: u32,
    pub memory_of: u32,
    pub threads: usize,
    pub buffer: u64,
    pub bytes_per_second: u64,
}
