//! Core, L3 domain and node of each CPU, as indices for quick comparison.

use crate::cpuset::CpuSet;
use crate::machine::Topology;

#[derive(Debug)]
pub(crate) struct Locations<'a> {
    pub(crate) topology: &'a Topology,
    /// By CPU id; `None` for CPUs that are not online.
    pub(crate) by_cpu: Vec<Option<CpuLocation>>,
    /// The number of cores; 1 if none is known.
    pub(crate) cores: usize,
    pub(crate) domain_sizes: Vec<usize>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuLocation {
    pub(crate) core: usize,
    /// Index of the L3 domain; without L3 domains, of the node.
    pub(crate) domain: usize,
    pub(crate) node: Option<u32>,
    /// Index of the speed class; 0 is the fastest.
    pub(crate) class: usize,
}

impl CpuLocation {
    /// The distance to another CPU: 0 on the same core, 1 in the same L3 domain, 2 on the same node, 3 on another.
    pub(crate) fn steps(self, to: Self) -> usize {
        if self.core == to.core {
            0
        } else if self.node != to.node {
            3
        } else if self.domain == to.domain {
            1
        } else {
            2
        }
    }

    /// Returns keys for the node, its L3 domain and the core, each with the steps to CPUs of the same key.
    pub(crate) fn around(self) -> [(usize, Option<u32>, usize); 3] {
        [
            (2, self.node, 0),
            (1, self.node, self.domain),
            (0, self.node, self.core),
        ]
    }
}

impl<'a> Locations<'a> {
    pub(crate) fn new(topology: &'a Topology) -> Self {
        let end = topology.online.last().map_or(0, |last| last as usize + 1);
        let mut by_cpu: Vec<Option<CpuLocation>> = vec![None; end];
        for cpu in topology.online.iter() {
            by_cpu[cpu as usize] = Some(CpuLocation::default());
        }
        let mut each = |cpus: &CpuSet, change: &dyn Fn(&mut CpuLocation)| {
            for cpu in cpus.iter() {
                if let Some(Some(place)) = by_cpu.get_mut(cpu as usize) {
                    change(place);
                }
            }
        };
        for (core, cpus) in topology.cores.iter().enumerate() {
            each(cpus, &|place| place.core = core);
        }
        for (class, cpus) in topology.speed_classes.iter().enumerate() {
            each(cpus, &|place| place.class = class);
        }
        for (domain, (&id, node)) in topology.nodes.iter().enumerate() {
            each(&node.cpus, &|place| {
                (place.node, place.domain) = (Some(id), domain);
            });
        }
        for (domain, cpus) in (topology.nodes.len()..).zip(&topology.l3_domains) {
            each(cpus, &|place| place.domain = domain);
        }
        let mut domain_sizes = vec![0; topology.nodes.len() + topology.l3_domains.len() + 1];
        for place in by_cpu.iter().flatten() {
            domain_sizes[place.domain] += 1;
        }
        Self {
            topology,
            by_cpu,
            cores: topology.cores.len().max(1),
            domain_sizes,
        }
    }

    pub(crate) fn of(&self, cpu: u32) -> Option<CpuLocation> {
        *self.by_cpu.get(cpu as usize)?
    }

    pub(crate) fn core_of(&self, cpu: u32) -> Option<&'a CpuSet> {
        self.topology.cores.get(self.of(cpu)?.core)
    }

    pub(crate) fn l3_of(&self, cpu: u32) -> Option<&'a CpuSet> {
        let before = self.topology.nodes.len();
        let domain = self.of(cpu)?.domain.checked_sub(before)?;
        self.topology.l3_domains.get(domain)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::machine::Node;

    /// Two nodes of four cores, two threads each: CPUs n and n+8 are siblings, node 0 has 0-3 and 8-11.
    pub(crate) fn two_nodes() -> Topology {
        let set = |text: &str| CpuSet::parse_list(text).unwrap();
        let node = |cpus: &str| Node {
            cpus: set(cpus),
            ..Node::default()
        };
        Topology {
            online: set("0-15"),
            possible: 16,
            cores: (0..8).map(|n| [n, n + 8].into_iter().collect()).collect(),
            l3_domains: ["0-1,8-9", "2-3,10-11", "4-7,12-15"].map(set).to_vec(),
            nodes: [(0, node("0-3,8-11")), (1, node("4-7,12-15"))].into(),
            ..Topology::default()
        }
    }
}
