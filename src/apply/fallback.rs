//! Where a vector goes when its CPU has no free interrupt vector: to the next core of the same L3 domain, then of the
//! same node, among the interface's candidate CPUs. This depends on the plan and the machine alone.

use crate::cpuset::{CpuSet, MaskWidth};
use crate::machine::Topology;
use crate::plan::{Plan, Write};

/// The fallback CPUs for a plan's writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fallbacks<'a> {
    topology: &'a Topology,
    plan: &'a Plan,
}

/// A CPU for a vector that its planned CPU had no room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FallbackCpu {
    /// The CPU of the plan.
    pub(crate) planned: u32,
    pub(crate) cpu: u32,
    /// What both CPUs share: `L3 domain` or `node`.
    pub(crate) domain: &'static str,
    /// The text to write for `cpu`.
    pub(crate) mask: String,
}

impl<'a> Fallbacks<'a> {
    pub(crate) fn new(topology: &'a Topology, plan: &'a Plan) -> Self {
        Self { topology, plan }
    }

    /// The CPUs to try for a vector that is planned on one CPU, best first. Empty for a mask of several CPUs: the
    /// kernel has tried all of them.
    pub(crate) fn of(&self, write: &Write) -> Vec<FallbackCpu> {
        let planned = CpuSet::parse_mask(&write.value).ok();
        let Some((planned, width)) = planned.zip(MaskWidth::of(&write.value)) else {
            return Vec::new();
        };
        let (Some(planned), 1) = (planned.first(), planned.len()) else {
            return Vec::new();
        };
        let interface = self
            .plan
            .interfaces
            .iter()
            .find(|interface| *interface.name == *write.interface);
        let Some(interface) = interface else {
            return Vec::new();
        };
        let of = |groups: &[CpuSet], cpu| groups.iter().find(|group| group.contains(cpu)).cloned();
        let node = self
            .topology
            .node_of(planned)
            .and_then(|node| self.topology.nodes.get(&node));
        let node = node.map_or(&self.topology.online, |node| &node.cpus);
        let l3 = of(&self.topology.l3_domains, planned).unwrap_or_default();
        let mut cpus: Vec<u32> = interface.candidates.intersection(node).iter().collect();
        cpus.retain(|&cpu| cpu != planned);
        // First threads before siblings, then by number, starting after the planned CPU and wrapping around.
        cpus.sort_by_key(|&cpu| {
            let sibling = of(&self.topology.cores, cpu).and_then(|core| core.first()) != Some(cpu);
            (!l3.contains(cpu), sibling, cpu < planned, cpu)
        });
        let fallback = |cpu: u32| {
            let domain = if l3.contains(cpu) {
                "L3 domain"
            } else {
                "node"
            };
            Some(FallbackCpu {
                planned,
                cpu,
                domain,
                mask: CpuSet::single(cpu).to_mask(width)?,
            })
        };
        cpus.into_iter().filter_map(fallback).collect()
    }
}
