//! The machine's CPUs: which are online, which should get no interrupts, and how they share cores, L3 caches and NUMA
//! nodes.

use std::collections::BTreeMap;

use crate::cpuset::CpuSet;

/// CPUs, cores, caches and nodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topology {
    /// The online CPUs.
    pub online: CpuSet,
    /// The kernel's `nr_cpu_ids`: the highest possible CPU number plus one.
    pub possible: u32,
    /// CPUs taken out of scheduling by `isolcpus=` or by an isolated cpuset partition.
    pub isolated: CpuSet,
    /// CPUs that run without the timer tick (`nohz_full=`).
    pub nohz_full: CpuSet,
    /// CPUs that cgroup v2 gives to somebody alone (partitions of cpusets), if they were read. Partitions come and go
    /// while the machine runs.
    pub exclusive: CpuSet,
    /// Whether there are so many cgroups that some were not looked at for `exclusive`.
    pub exclusive_cut: bool,
    /// CPUs that the kernel removes from every `rps_cpus` that is written (`rps_cpumask_housekeeping` in
    /// `net/core/net-sysfs.c`): those of `isolcpus=` and `nohz_full=`. The boot CPU is among them if any is `nohz_full`:
    /// the kernel removes it if `nohz_full=` names it, and does not list it as `nohz_full` then.
    pub rps_filter: CpuSet,
    /// The online CPUs of each physical core (SMT siblings), by lowest CPU.
    pub cores: Vec<CpuSet>,
    /// The online CPUs that share each L3 cache, by lowest CPU. Empty if not reported.
    pub l3_domains: Vec<CpuSet>,
    /// The online CPUs of each package (socket), by lowest CPU. Empty if not reported.
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
    /// The online CPUs; empty for a node with memory only.
    pub cpus: CpuSet,
    /// Whether the kernel reports that it has no memory: such as when all of its DIMMs are missing.
    pub without_memory: bool,
    /// ACPI SLIT distance to each node, itself included (10 is itself). Empty if not reported.
    pub distances: BTreeMap<u32, u32>,
}

impl Topology {
    /// The CPUs that should get no interrupts.
    pub fn isolated_or_nohz(&self) -> CpuSet {
        self.isolated.union(&self.nohz_full)
    }

    /// The node of a CPU.
    pub fn node_of(&self, cpu: u32) -> Option<u32> {
        self.nodes
            .iter()
            .find(|(_, node)| node.cpus.contains(cpu))
            .map(|(&id, _)| id)
    }

    /// The distance from one node to another. If the kernel does not report it, its defaults: 10 for the node itself
    /// and 20 for any other (`LOCAL_DISTANCE`, `REMOTE_DISTANCE`).
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        let reported = self
            .nodes
            .get(&from)
            .and_then(|node| node.distances.get(&to))
            .copied();
        reported.unwrap_or(if from == to { 10 } else { 20 })
    }

    /// The other nodes by distance from one, nearest first, then by id.
    pub fn nearest_nodes(&self, from: u32) -> Vec<u32> {
        let mut others: Vec<u32> = self
            .nodes
            .keys()
            .copied()
            .filter(|&id| id != from)
            .collect();
        others.sort_by_key(|&id| (self.distance(from, id), id));
        others
    }
}
