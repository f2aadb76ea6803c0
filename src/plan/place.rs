//! Places queues on CPUs.
//!
//! A queue is placed as a whole: its receive and transmit vectors share a CPU. Each queue takes, of its interface's
//! candidate cores, the one with the fewest queues of all interfaces. Between equal cores the default policy decides: the
//! core of CPU 0 last, fast cores first, the L3 domain with the fewest queues first, then by number. The threads of a core
//! take turns.

use std::collections::BTreeMap;

use crate::cpuset::CpuSet;
use crate::machine::Topology;
use crate::plan::data::Placement;

/// Core, L3 domain and node of each CPU, as indices for quick comparison.
#[derive(Debug)]
pub(crate) struct Locations {
    /// By CPU id; `None` for CPUs that are not online.
    by_cpu: Vec<Option<CpuLocation>>,
    /// The number of cores; 1 where none is known, for all CPUs.
    pub(crate) cores: usize,
    domain_sizes: Vec<usize>,
    nodes: BTreeMap<Option<u32>, NodeCores>,
}

/// The cores and CPUs of a node.
#[derive(Debug, Default)]
pub(crate) struct NodeCores {
    /// Indices into the topology's cores.
    pub(crate) cores: Vec<usize>,
    /// CPUs, core by core.
    pub(crate) cpus: Vec<u32>,
}

/// Core, L3 domain and node of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuLocation {
    /// Index into the topology's cores.
    pub(crate) core: usize,
    /// Index of the L3 domain; without L3 domains, the node is one.
    pub(crate) domain: usize,
    pub(crate) node: Option<u32>,
    /// Index of its speed class; 0 is the fastest.
    pub(crate) class: usize,
}

impl Locations {
    pub(crate) fn new(topology: &Topology) -> Self {
        let end = topology.online.last().map_or(0, |last| last as usize + 1);
        let mut by_cpu: Vec<Option<CpuLocation>> = vec![None; end];
        for cpu in topology.online.iter() {
            by_cpu[cpu as usize] = Some(CpuLocation {
                core: 0,
                domain: 0,
                node: None,
                class: 0,
            });
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
        let nodes = topology.nodes.iter().map(|(&id, node)| (id, &node.cpus));
        for (at, (node, cpus)) in nodes.enumerate() {
            each(cpus, &|place| (place.node, place.domain) = (Some(node), at));
        }
        for (domain, cpus) in (topology.nodes.len()..).zip(&topology.l3_domains) {
            each(cpus, &|place| place.domain = domain);
        }
        let mut domain_sizes = vec![0; topology.nodes.len() + topology.l3_domains.len() + 1];
        for place in by_cpu.iter().flatten() {
            domain_sizes[place.domain] += 1;
        }
        let mut nodes: BTreeMap<Option<u32>, NodeCores> = BTreeMap::new();
        for (core, cpus) in topology.cores.iter().enumerate() {
            let place = cpus
                .first()
                .and_then(|first| by_cpu.get(first as usize)?.as_ref());
            if let Some(place) = place {
                let node = nodes.entry(place.node).or_default();
                node.cores.push(core);
                node.cpus.extend(cpus.iter());
            }
        }
        Self {
            by_cpu,
            cores: topology.cores.len().max(1),
            domain_sizes,
            nodes,
        }
    }

    /// The cores of each node.
    pub(crate) fn cores_by_node(&self) -> &BTreeMap<Option<u32>, NodeCores> {
        &self.nodes
    }

    /// The number of cores with a CPU in the set.
    pub(crate) fn cores_in(&self, cpus: &CpuSet) -> usize {
        let mut has_cpu = vec![false; self.cores];
        for place in cpus.iter().filter_map(|cpu| self.of(cpu)) {
            has_cpu[place.core] = true;
        }
        has_cpu.into_iter().filter(|has| *has).count()
    }

    /// The location of a CPU; `None` when it is not online.
    pub(crate) fn of(&self, cpu: u32) -> Option<CpuLocation> {
        self.by_cpu.get(cpu as usize).copied().flatten()
    }

    /// The CPUs of a CPU's core; `None` when it is not online.
    pub(crate) fn core_of<'a>(&self, topology: &'a Topology, cpu: u32) -> Option<&'a CpuSet> {
        topology.cores.get(self.of(cpu)?.core)
    }

    /// The CPUs of a CPU's L3 domain, if it has one.
    pub(crate) fn l3_of<'a>(&self, topology: &'a Topology, cpu: u32) -> Option<&'a CpuSet> {
        topology
            .l3_domains
            .get(self.of(cpu)?.domain.checked_sub(topology.nodes.len())?)
    }
}

/// The queues of all interfaces on each CPU, core and L3 domain so far.
#[derive(Debug)]
pub(crate) struct Load<'a> {
    topology: &'a Topology,
    locations: &'a Locations,
    cpus: Vec<usize>,
    cores: Vec<usize>,
    domains: Vec<Domain>,
    /// A cache of the last candidates: the queues of an interface, and often those of the next, have the same.
    last: Ranked,
}

/// Candidate CPUs and their current ranks.
#[derive(Debug, Default)]
struct Ranked {
    candidates: CpuSet,
    rules: Option<PlacementRules>,
    /// In ascending order.
    cpus: Vec<(u32, CpuLocation)>,
    /// In the order of the CPUs; the lowest is the best.
    ranks: Vec<u64>,
}

/// The queues on an L3 domain so far.
#[derive(Debug, Clone, Copy, Default)]
struct Domain {
    queues: usize,
    /// Queues per CPU, in units of 1/4096 queue; domains are compared by this.
    density: usize,
}

/// The policy's rules for the placement of an interface's queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlacementRules {
    /// Each thread counts as a core.
    pub(crate) siblings: bool,
    /// The core of CPU 0 is used last.
    pub(crate) avoid_cpu0: bool,
}

impl<'a> Load<'a> {
    pub(crate) fn new(topology: &'a Topology, locations: &'a Locations) -> Self {
        let (cpus, domains) = (
            vec![0; locations.by_cpu.len()],
            vec![Domain::default(); locations.domain_sizes.len()],
        );
        Self {
            topology,
            locations,
            cpus,
            cores: vec![0; locations.cores],
            domains,
            last: Ranked::default(),
        }
    }

    /// Places a queue on the best CPU of the candidates, and counts it.
    pub(crate) fn take(&mut self, candidates: &CpuSet, rules: PlacementRules) -> Option<Placement> {
        if self.last.rules != Some(rules) || self.last.candidates != *candidates {
            let cpus: Vec<(u32, CpuLocation)> = candidates
                .iter()
                .filter_map(|cpu| Some((cpu, self.locations.of(cpu)?)))
                .collect();
            let ranks = cpus
                .iter()
                .map(|&(cpu, place)| self.rank(cpu, place, rules))
                .collect();
            self.last = Ranked {
                candidates: candidates.clone(),
                rules: Some(rules),
                cpus,
                ranks,
            };
        }
        // Of equal ranks, the lowest CPU is the first.
        let least = self.last.ranks.iter().min()?;
        let at = self.last.ranks.iter().position(|rank| rank == least)?;
        let &(best, _) = self.last.cpus.get(at)?;
        let taken = self.placement(best)?;
        self.add(best);
        Some(taken)
    }

    /// The first set of candidates with a core that has no more queues than any core of the other sets.
    pub(crate) fn first_with_room<'t>(
        &self,
        tiers: &'t [CpuSet],
        rules: PlacementRules,
    ) -> Option<&'t CpuSet> {
        let least = |tier: &&CpuSet| {
            let queues = |cpu| {
                if rules.siblings {
                    self.on_cpu(cpu)
                } else {
                    self.queues_beside(cpu)
                }
            };
            tier.iter().map(queues).min().unwrap_or(usize::MAX)
        };
        tiers.iter().min_by_key(least)
    }

    /// Queues on a CPU's core.
    fn queues_beside(&self, cpu: u32) -> usize {
        self.locations
            .of(cpu)
            .map_or(usize::MAX, |place| self.on_core(place.core))
    }

    /// The rank of a CPU for one more queue; the lowest is the best. All criteria in one number, the most important in
    /// the highest bits: each queue compares the ranks of all its candidates, which took a tenth of the planning.
    fn rank(&self, cpu: u32, place: CpuLocation, rules: PlacementRules) -> u64 {
        let (on_cpu, on_core) = (self.on_cpu(cpu), self.on_core(place.core));
        let (first, second) = if rules.siblings {
            (on_cpu, on_core)
        } else {
            (on_core, on_cpu)
        };
        let last =
            rules.avoid_cpu0 && self.locations.of(0).map(|place| place.core) == Some(place.core);
        let density = self.domains[place.domain].density;
        let criteria = [
            (first, 16),
            (usize::from(last), 1),
            (place.class, 7),
            (density, 28),
            (second, 12),
        ];
        criteria.iter().fold(0, |rank, &(value, bits)| {
            rank << bits | (value as u64).min((1 << bits) - 1)
        })
    }

    /// The placement on a CPU, with the queues on its core and L3 domain now.
    pub(crate) fn placement(&self, cpu: u32) -> Option<Placement> {
        let place = self.locations.of(cpu)?;
        Some(Placement {
            cpu,
            core: self
                .locations
                .core_of(self.topology, cpu)
                .cloned()
                .unwrap_or_else(|| CpuSet::single(cpu)),
            queues_on_core: self.on_core(place.core),
            l3: self
                .locations
                .l3_of(self.topology, cpu)
                .cloned()
                .unwrap_or_default(),
            queues_on_l3: self.domains[place.domain].queues,
            decided_by: None,
        })
    }

    /// Counts a queue on a CPU.
    pub(crate) fn add(&mut self, cpu: u32) {
        if let Some(place) = self.locations.of(cpu) {
            self.cpus[cpu as usize] += 1;
            self.cores[place.core] += 1;
            let domain = &mut self.domains[place.domain];
            domain.queues += 1;
            domain.density =
                domain.queues * 4096 / self.locations.domain_sizes[place.domain].max(1);
            self.rank_anew(place);
        }
    }

    /// Updates the ranks of candidates on a core or domain that has taken a queue.
    fn rank_anew(&mut self, changed: CpuLocation) {
        let Some(rules) = self.last.rules else { return };
        let mut ranks = std::mem::take(&mut self.last.ranks);
        for (rank, &(cpu, place)) in ranks.iter_mut().zip(&self.last.cpus) {
            if place.core == changed.core || place.domain == changed.domain {
                *rank = self.rank(cpu, place, rules);
            }
        }
        self.last.ranks = ranks;
    }

    pub(crate) fn on_core(&self, core: usize) -> usize {
        self.cores.get(core).copied().unwrap_or(0)
    }

    /// Queues on a CPU.
    pub(crate) fn on_cpu(&self, cpu: u32) -> usize {
        self.cpus.get(cpu as usize).copied().unwrap_or(0)
    }
}
