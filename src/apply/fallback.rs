//! Where a vector goes when its CPU has no room for another: the next core of the same L3 domain, then of the same
//! node, among the interface's candidates. A reader of the plan can tell from the plan and the machine alone.

use crate::cpuset::{CpuSet, MaskWidth};
use crate::machine::Topology;
use crate::plan::{Plan, Write};

/// What is needed to tell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fallbacks<'a> {
    topology: &'a Topology,
    plan: &'a Plan,
}

/// Another CPU for a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FallbackCpu {
    /// The CPU that it should be on.
    pub(crate) wanted: u32,
    /// The other one.
    pub(crate) cpu: u32,
    /// What both share.
    pub(crate) domain: &'static str,
    /// What to write.
    pub(crate) mask: String,
}

impl<'a> Fallbacks<'a> {
    /// For the writes of a plan.
    pub(crate) fn new(topology: &'a Topology, plan: &'a Plan) -> Self {
        Self { topology, plan }
    }

    /// The CPUs to try for a vector that should be on one CPU, best first. None for one that may be on several:
    /// the kernel has tried them all.
    pub(crate) fn of(&self, write: &Write) -> Vec<FallbackCpu> {
        let Ok(wanted) = CpuSet::parse_mask(&write.value.text()) else { return Vec::new() };
        let (Some(wanted), 1) = (wanted.first(), wanted.len()) else { return Vec::new() };
        let interface = self.plan.interfaces.iter().find(|interface| *interface.name == *write.interface);
        let Some(interface) = interface else { return Vec::new() };
        let of = |groups: &[CpuSet], cpu| groups.iter().find(|group| group.contains(cpu)).cloned();
        let node = self.topology.node_of(wanted).and_then(|node| self.topology.nodes.get(&node));
        let node = node.map_or(&self.topology.online, |node| &node.cpus);
        let l3 = of(&self.topology.l3_domains, wanted).unwrap_or_default();
        let mut near: Vec<u32> = interface.candidates.intersection(node).iter().collect();
        near.retain(|&cpu| cpu != wanted);
        // First threads before siblings; then by number, from the wanted CPU on and around.
        near.sort_by_key(|&cpu| {
            let sibling = of(&self.topology.cores, cpu).and_then(|core| core.first()) != Some(cpu);
            (!l3.contains(cpu), sibling, cpu < wanted, cpu)
        });
        let other = |cpu: u32| {
            let width = MaskWidth::of(&write.value.text())?;
            let domain = if l3.contains(cpu) { "L3 domain" } else { "node" };
            Some(FallbackCpu { wanted, cpu, domain, mask: CpuSet::single(cpu).to_mask(width)? })
        };
        near.into_iter().filter_map(other).collect()
    }
}
