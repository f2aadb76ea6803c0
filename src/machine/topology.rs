//! The machine's CPUs: which are online, which are kept free of interrupts, how they share cores, L3 caches and NUMA
//! nodes.

use std::collections::BTreeMap;

use crate::cpuset::CpuSet;

/// CPUs, cores, caches and nodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topology {
    /// CPUs that run now.
    pub online: CpuSet,
    /// One more than the highest CPU that could ever be there: the kernel's `nr_cpu_ids`, in which masks
    /// are printed.
    pub possible: u32,
    /// CPUs taken out of scheduling by `isolcpus=` or by an isolated cpuset partition.
    pub isolated: CpuSet,
    /// CPUs that run without the timer tick (`nohz_full=`).
    pub nohz_full: CpuSet,
    /// The online CPUs of each physical core (SMT siblings), by lowest CPU.
    pub cores: Vec<CpuSet>,
    /// The online CPUs that share each L3 cache, by lowest CPU. Empty where the machine tells of none.
    pub l3_domains: Vec<CpuSet>,
    /// The online CPUs of each package (socket), by lowest CPU. Empty where the machine does not tell.
    pub packages: Vec<CpuSet>,
    /// Kinds of cores, fastest first, on machines that have several (hybrid x86, big and little arm64); empty on
    /// others.
    pub speed_classes: Vec<CpuSet>,
    /// NUMA nodes by id; ids may be sparse. A kernel without NUMA has the one node 0.
    pub nodes: BTreeMap<u32, Node>,
}

/// A NUMA node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Node {
    /// Its online CPUs; none for a node that only has memory.
    pub cpus: CpuSet,
    /// ACPI SLIT distance to each node, itself included (10 is itself). Empty where not told.
    pub distances: BTreeMap<u32, u32>,
}

impl Topology {
    /// The CPUs that interrupts should stay away from.
    pub fn isolated_or_nohz(&self) -> CpuSet {
        self.isolated.union(&self.nohz_full)
    }

    /// The node of a CPU.
    pub fn node_of(&self, cpu: u32) -> Option<u32> {
        self.nodes.iter().find(|(_, node)| node.cpus.contains(cpu)).map(|(&id, _)| id)
    }

    /// Distance from one node to another: the kernel's where it tells one, else 10 for itself and 20 for
    /// any other, the kernel's own defaults (`LOCAL_DISTANCE`, `REMOTE_DISTANCE`).
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        let told = self.nodes.get(&from).and_then(|node| node.distances.get(&to)).copied();
        told.unwrap_or(if from == to { 10 } else { 20 })
    }

    /// The other nodes by distance from one, nearest first, then by id.
    pub fn nearest_nodes(&self, from: u32) -> Vec<u32> {
        let mut others: Vec<u32> = self.nodes.keys().copied().filter(|&id| id != from).collect();
        others.sort_by_key(|&id| (self.distance(from, id), id));
        others
    }
}
