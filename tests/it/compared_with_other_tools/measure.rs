//! Measures of a state, computed from the machine and the state, not from nicpin's score.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::{CpuSet, Facts, Interface, Role, State, Topology, Vector, serving};

/// The last one is not shown: a tool may pay it for fewer siblings.
pub const COLUMNS: [&str; 11] = [
    "queues", "local", "caches", "per core", "siblings", "overlap", "isolated", "control", "xps",
    "once", "per CPU",
];

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// More is better. The whole is 0 if there is nothing to measure.
    Share(usize, usize),
    /// Less is better.
    Fewest(usize),
    /// More is better.
    Most(usize),
}

impl Value {
    pub fn is_better(self, other: Self) -> bool {
        match (self, other) {
            (Self::Share(a, of_a), Self::Share(b, of_b)) => a * of_b > b * of_a,
            (Self::Fewest(a), Self::Fewest(b)) => a < b,
            (Self::Most(a), Self::Most(b)) => a > b,
            _ => panic!("{self:?} and {other:?} are of two columns"),
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Share(_, 0) => f.pad("n/a"),
            Self::Share(part, whole) => f.pad(&format!("{}%", part * 100 / whole)),
            Self::Fewest(count) | Self::Most(count) => f.pad(&count.to_string()),
        }
    }
}

pub fn measure(facts: &Facts, state: &State) -> [Value; COLUMNS.len()] {
    let topology = &facts.host.topology;
    let mut queues = 0;
    let (mut local, mut known) = (0, 0);
    let (mut caches, mut in_reach) = (0, 0);
    let (mut isolated, mut control) = (0, 0);
    let isolated_cpus = topology.isolated_or_nohz();
    let mut on_cpu: BTreeMap<u32, BTreeSet<(usize, u32)>> = BTreeMap::new();
    // The queues that each core serves, by interface, and the threads that do.
    let mut work: Vec<BTreeSet<(usize, u32)>> = vec![BTreeSet::new(); topology.cores.len()];
    let mut threads: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); topology.cores.len()];
    let (mut aligned, mut steered, mut once, mut all) = (0, 0, 0, 0);
    for (at, interface) in facts.interfaces().enumerate() {
        queues += state.queues[&interface.name].0 as usize;
        let home = home(topology, interface);
        let near = home
            .as_ref()
            .map(|home| caches_of(topology, home))
            .unwrap_or_default();
        let (mut used, mut numbers) = (BTreeSet::new(), BTreeSet::new());
        for vector in &interface.vectors {
            let cpu = state.cpus[&vector.irq];
            isolated += usize::from(isolated_cpus.contains(cpu));
            let kept = cpu == serving(vector) || isolated_cpus.contains(serving(vector));
            control += usize::from(vector.role == Role::Control && !kept);
            if !state.is_active(interface, vector) {
                continue;
            }
            if let Some(home) = &home {
                known += 1;
                local += usize::from(home.contains(cpu));
            }
            used.extend(near.iter().position(|cache| cache.contains(cpu)));
            numbers.extend(vector.queue);
            let core = topology
                .cores
                .iter()
                .position(|core| core.contains(cpu))
                .unwrap();
            work[core].insert((at, vector.queue.unwrap()));
            threads[core].insert(cpu);
            on_cpu
                .entry(cpu)
                .or_default()
                .insert((at, vector.queue.unwrap()));
        }
        caches += used.len();
        in_reach += near.len().min(numbers.len());
        if let Some(steering) = steering(topology, interface, state) {
            aligned += steering.aligned;
            steered += steering.queues;
            once += steering.once;
            all += topology.online.len();
        }
    }
    [
        Value::Most(queues),
        Value::Share(local, known),
        Value::Share(caches, in_reach),
        Value::Fewest(work.iter().map(BTreeSet::len).max().unwrap_or(0)),
        Value::Fewest(threads.iter().filter(|threads| threads.len() > 1).count()),
        Value::Fewest(overlaps(facts, &work)),
        Value::Fewest(isolated),
        Value::Fewest(control),
        Value::Share(aligned, steered),
        Value::Share(once, all),
        Value::Fewest(on_cpu.values().map(BTreeSet::len).max().unwrap_or(0)),
    ]
}

/// Cores with queues of two interfaces while a core that one of these could use has none.
fn overlaps(facts: &Facts, work: &[BTreeSet<(usize, u32)>]) -> usize {
    let topology = &facts.host.topology;
    let candidates: Vec<CpuSet> = facts
        .interfaces()
        .map(|interface| {
            let home = home(topology, interface).unwrap_or_else(|| topology.online.clone());
            home.difference(&topology.isolated_or_nohz())
        })
        .collect();
    let idle: Vec<&CpuSet> = topology
        .cores
        .iter()
        .zip(work)
        .filter(|(_, q)| q.is_empty())
        .map(|(core, _)| core)
        .collect();
    work.iter()
        .filter(|queues| {
            let owners: BTreeSet<usize> = queues.iter().map(|&(owner, _)| owner).collect();
            let could =
                |owner: &usize| idle.iter().any(|core| core.intersects(&candidates[*owner]));
            owners.len() > 1 && owners.iter().any(could)
        })
        .count()
}

/// Its node's CPUs, those of the nearest node if it has none, or those of `local_cpulist` if the node is unknown;
/// `None` if nothing tells.
fn home(topology: &Topology, interface: &Interface) -> Option<CpuSet> {
    let cpus_of =
        |node: &u32| Some(topology.nodes.get(node)?.cpus.clone()).filter(|cpus| !cpus.is_empty());
    if let Some(node) = interface.device.node {
        return cpus_of(&node).or_else(|| topology.nearest_nodes(node).iter().find_map(cpus_of));
    }
    let reported = interface
        .device
        .local_cpus
        .clone()
        .filter(|cpus| !topology.online.is_subset(cpus));
    let mut with_cpus = topology.nodes.keys().filter_map(cpus_of);
    let only = with_cpus.next().filter(|_| with_cpus.next().is_none());
    reported.or(only)
}

/// The L3 domains of the card's own CPUs, without isolated CPUs.
fn caches_of(topology: &Topology, home: &CpuSet) -> Vec<CpuSet> {
    let usable = home.difference(&topology.isolated_or_nohz());
    let own = topology
        .l3_domains
        .iter()
        .map(|domain| domain.intersection(&usable));
    own.filter(|domain| !domain.is_empty()).collect()
}

struct Steering {
    /// Transmit queues that are sent on from the CPU where they complete, or from CPUs that no queue completes
    /// nearer to.
    aligned: usize,
    queues: usize,
    /// Online CPUs that send on exactly one queue.
    once: usize,
}

/// Returns `None` if the kernel steers nothing, or no vector is known to complete the queues.
fn steering(topology: &Topology, interface: &Interface, state: &State) -> Option<Steering> {
    let completes =
        |v: &&Vector| matches!(v.role, Role::Tx | Role::Combined) && state.is_active(interface, v);
    let vectors: Vec<&Vector> = interface.vectors.iter().filter(completes).collect();
    let masks: BTreeMap<u32, &CpuSet> = (0..state.queues[&interface.name].1)
        .filter_map(|queue| Some((queue, state.xps.get(&(interface.name.clone(), queue))?)))
        .collect();
    if vectors.is_empty() || masks.is_empty() {
        return None;
    }
    let cpu = |queue: &u32| {
        let own = vectors.iter().find(|vector| vector.queue == Some(*queue));
        state.cpus[&own.unwrap_or(&vectors[*queue as usize % vectors.len()]).irq]
    };
    let completions: Vec<u32> = masks.keys().map(cpu).collect();
    let seats = Seats::of(topology);
    let is_aligned = |(mask, &own): (&&CpuSet, &u32)| {
        let nearest = |from| {
            let nearest = completions.iter().map(|&to| seats.distance(from, to)).min();
            nearest == Some(seats.distance(from, own))
        };
        !mask.is_empty() && (mask.contains(own) || mask.iter().all(nearest))
    };
    let times = |cpu: u32| masks.values().filter(|mask| mask.contains(cpu)).count();
    Some(Steering {
        aligned: masks
            .values()
            .zip(&completions)
            .filter(|&pair| is_aligned(pair))
            .count(),
        queues: masks.len(),
        once: topology
            .online
            .iter()
            .filter(|&cpu| times(cpu) == 1)
            .count(),
    })
}

struct Seats<'a> {
    topology: &'a Topology,
    by_cpu: BTreeMap<u32, Seat>,
}

struct Seat {
    core: Option<usize>,
    l3: Option<usize>,
    node: Option<u32>,
}

impl<'a> Seats<'a> {
    fn of(topology: &'a Topology) -> Self {
        let among = |groups: &[CpuSet], cpu| groups.iter().position(|group| group.contains(cpu));
        let seat = |cpu| Seat {
            core: among(&topology.cores, cpu),
            l3: among(&topology.l3_domains, cpu),
            node: topology.node_of(cpu),
        };
        Self {
            topology,
            by_cpu: topology.online.iter().map(|cpu| (cpu, seat(cpu))).collect(),
        }
    }

    /// The same CPU, core, L3 domain or node, then by the distance of nodes.
    fn distance(&self, from: u32, to: u32) -> u32 {
        let (Some(a), Some(b)) = (self.by_cpu.get(&from), self.by_cpu.get(&to)) else {
            return u32::MAX;
        };
        match (a.node, b.node) {
            _ if from == to => 0,
            _ if a.core == b.core => 1,
            _ if a.l3.is_some() && a.l3 == b.l3 => 2,
            (from, to) if from == to => 3,
            (Some(from), Some(to)) => 4 + self.topology.distance(from, to),
            _ => u32::MAX,
        }
    }
}
