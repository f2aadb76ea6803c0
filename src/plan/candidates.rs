//! The candidate CPUs of an interface's vectors, and its node.

use std::collections::BTreeMap;

use crate::cpuset::CpuSet;
use crate::machine::topology::{Home, NodeSource};
use crate::machine::{Interface, Machine, Program, Topology};
use crate::plan::data::{LeftOut, PlannedNear};
use crate::plan::note::{Found, Note, UsedFor};
use crate::policy::{
    AVOID_CPU0, AVOID_EXCLUSIVE, Choice, Domains, EXCLUDE, GROUP, Group, IRQ_CORES, L3, NEAR, Near,
    PER, Per, SCOPE, Scope, WIDEN, Widen,
};

/// An interface's node and candidate CPUs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidates {
    /// The local node.
    pub(crate) node: Option<u32>,
    /// How the node was determined.
    pub(crate) source: NodeSource,
    /// Whether other nodes are as near as `node`, and share its work.
    pub(crate) tied: bool,
    /// The candidate CPUs; never empty on a machine with an online CPU.
    pub(crate) cpus: CpuSet,
    /// The same by increasing distance, where the policy widens; else empty.
    pub(crate) tiers: Vec<CpuSet>,
    /// Whether the policy names these CPUs.
    pub(crate) named: bool,
    /// The local online CPUs, whatever the policy: those of its node, those in `local_cpulist`, or all.
    pub(crate) near: CpuSet,
    /// What the policy wants them to be near.
    pub(crate) near_to: Option<PlannedNear>,
    /// Local CPUs that are not candidates, with the reason.
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) notes: Vec<Note>,
}

/// The candidate CPUs of an interface under a policy. `queues`: the number of active queues.
pub(crate) fn candidates(
    machine: &Machine,
    interface: &Interface,
    choice: &Choice,
    queues: usize,
) -> Candidates {
    let topology = &machine.topology;
    let (usable, mut notes) = usable(topology, choice);
    let (home, mut of_node) = home(topology, interface, &usable);
    let (mut node, mut source) = (home.nodes.first(), home.source);
    notes.append(&mut of_node);
    let named = explicit(topology, choice, &mut notes);
    let is_named = named.is_some();
    let mut tiers = Vec::new();
    let mut near_to = None;
    let cpus = if let Some(cpus) = named {
        let mut all = topology.nodes.iter();
        let on = all.find(|(_, of)| node.is_none() && cpus.is_subset(&of.cpus));
        if let Some((&named, _)) = on {
            (node, source) = (Some(named), NodeSource::Policy);
            notes.retain(|note| !matches!(note, Note::NodeUnknown { .. }));
        }
        cpus
    } else {
        tiers = scoped(topology, choice, &home, &usable, queues, &mut notes);
        let cpus = CpuSet::union_of(&tiers);
        let cpus = match choice.get(&NEAR) {
            None => cpus,
            Some(wanted) => near_program(machine, wanted, cpus, &mut near_to, &mut notes),
        };
        match (choice.get(&IRQ_CORES), choice.get(&PER)) {
            (None, Per::Core) => cpus,
            (most, per) => first_cores(topology, &cpus, most, per, choice),
        }
    };
    if tiers.len() < 2 {
        tiers.clear();
    }
    for tier in &mut tiers {
        *tier = tier.intersection(&cpus);
    }
    let near = near(topology, interface, &home, node);
    let left_out = left_out(topology, choice, &near, near_to.as_ref(), &cpus);
    Candidates {
        node,
        source,
        tied: home.nodes.len() > 1,
        cpus,
        tiers,
        named: is_named,
        near,
        near_to,
        left_out,
        notes,
    }
}

/// Those of `cpus` in the L3 domains of a program, less its own cores while others are left; all of them where none is
/// there, or where the program's CPUs are not known. `near_to` gets these CPUs.
fn near_program(
    machine: &Machine,
    wanted: Near,
    cpus: CpuSet,
    near_to: &mut Option<PlannedNear>,
    notes: &mut Vec<Note>,
) -> CpuSet {
    let topology = &machine.topology;
    let mut note = |program: Option<&Program>, own: &CpuSet, now: Option<CpuSet>, found| {
        notes.push(Note::Near {
            program: program.map(ToString::to_string),
            cpus: own.clone(),
            now: now.map(Box::new),
            found,
        });
    };
    let (program, own, now) = match wanted {
        Near::Cpus(own) => (None, own.clone(), Some(own)),
        Near::Program(program) => {
            let Some(known) = machine.programs.get(&program) else {
                let found = match program {
                    Program::Pid(_) => Found::NoProcess,
                    Program::Unit(_) => Found::NotRunning,
                };
                note(Some(&program), &CpuSet::new(), None, found);
                return cpus;
            };
            (Some(program), known.cpus.clone(), known.now.clone())
        }
    };
    let within = |sets: &[CpuSet]| CpuSet::union_of(sets.iter().filter(|set| set.intersects(&own)));
    let there = if topology.l3_domains.is_empty() {
        cpus.clone()
    } else {
        within(&topology.l3_domains).intersection(&cpus)
    };
    let its_cores = within(&topology.cores);
    let without = [&its_cores, &own, &CpuSet::new()].map(|own| there.difference(own));
    let taken = without.into_iter().find(|left| !left.is_empty());
    let found = match &taken {
        None => Found::Nowhere,
        Some(taken) if *taken == cpus => Found::Everywhere,
        Some(_) => Found::There,
    };
    note(program.as_ref(), &own, now, found);
    *near_to = Some(PlannedNear {
        program: program.map(|program| program.to_string()),
        cpus: own,
    });
    taken.unwrap_or(cpus)
}

/// The usable ones of the CPUs that the policy names; `None` without any.
fn explicit(topology: &Topology, choice: &Choice, notes: &mut Vec<Note>) -> Option<CpuSet> {
    let ((Some(Group::Cpus(wanted)), _) | (_, Scope::Cpus(wanted))) =
        (choice.get(&GROUP), choice.get(&SCOPE))
    else {
        return None;
    };
    let cpus = wanted
        .intersection(&topology.online)
        .difference(&choice.get(&EXCLUDE));
    if !cpus.is_empty() {
        notes.extend(not_all(&wanted, &cpus, UsedFor::Interrupts));
    }
    if cpus.is_empty() {
        let (wanted, used_for) = (wanted.clone(), UsedFor::Interrupts);
        notes.push(Note::CpusUnusable {
            missing: wanted.clone(),
            wanted,
            used_for,
        });
        return None;
    }
    Some(cpus)
}

/// A note that some of the CPUs that the policy names cannot be used.
pub(crate) fn not_all(wanted: &CpuSet, usable: &CpuSet, used_for: UsedFor) -> Option<Note> {
    let missing = wanted.difference(usable);
    (!missing.is_empty()).then(|| Note::CpusUnusable {
        wanted: wanted.clone(),
        missing,
        used_for,
    })
}

/// The candidates in the policy's scope, by increasing distance.
fn scoped(
    topology: &Topology,
    choice: &Choice,
    home: &Home,
    usable: &CpuSet,
    queues: usize,
    notes: &mut Vec<Note>,
) -> Vec<CpuSet> {
    let cpus = match choice.get(&SCOPE) {
        Scope::All => usable.clone(),
        Scope::Remote => {
            let own = nodes_cpus(topology, home.nodes.iter());
            let others =
                Some(usable.difference(&own)).filter(|rest| !own.is_empty() && !rest.is_empty());
            others.unwrap_or_else(|| {
                notes.push(Note::NoRemoteNode);
                home.cpus.clone()
            })
        }
        Scope::Nodes(named) => {
            let cpus = nodes_cpus(topology, named.iter()).intersection(usable);
            if cpus.is_empty() {
                notes.push(Note::ScopeUnusable { nodes: named });
                home.cpus.clone()
            } else {
                cpus
            }
        }
        Scope::Local | Scope::Hint | Scope::Cpus(_) => {
            match (choice.get(&WIDEN), home.nodes.first()) {
                (Widen::Package, Some(node)) => {
                    return widened(topology, node, home, usable, queues, notes);
                }
                _ => home.cpus.clone(),
            }
        }
    };
    vec![cpus]
}

/// The node's CPUs and, while there are fewer cores than queues, those of the other nodes of its package by increasing
/// distance. Nodes of equal distance are one tier, so that none is preferred by its number.
fn widened(
    topology: &Topology,
    node: u32,
    home: &Home,
    usable: &CpuSet,
    queues: usize,
    notes: &mut Vec<Note>,
) -> Vec<CpuSet> {
    let own = &home.cpus;
    let cores = |cpus: &CpuSet| {
        topology
            .cores
            .iter()
            .filter(|core| core.intersects(cpus))
            .count()
    };
    let package = topology
        .packages
        .iter()
        .find(|package| package.intersects(own));
    let mut tiers = vec![own.clone()];
    let Some(package) = package else { return tiers };
    let mut others = topology.nearest_nodes(node);
    others.retain(|&other| {
        !home.nodes.contains(other) && topology.nodes[&other].cpus.intersects(package)
    });
    let mut taken = Vec::new();
    for tier in others.chunk_by(|a, b| topology.distance(node, *a) == topology.distance(node, *b)) {
        if tiers.iter().map(cores).sum::<usize>() >= queues {
            break;
        }
        let mut cpus = CpuSet::new();
        for other in tier {
            cpus.add(
                &topology.nodes[other]
                    .cpus
                    .intersection(package)
                    .intersection(usable),
            );
            taken.push(*other);
        }
        tiers.push(cpus);
    }
    if !taken.is_empty() {
        notes.push(Note::Widened {
            queues,
            cores: cores(own),
            node,
            to: taken,
        });
    }
    tiers
}

/// The local online CPUs of an interface, whatever the policy.
fn near(topology: &Topology, interface: &Interface, home: &Home, node: Option<u32>) -> CpuSet {
    let local = interface
        .device
        .local_cpus
        .as_ref()
        .filter(|_| home.source == NodeSource::LocalCpulist);
    let own = match node {
        Some(node) if home.nodes.is_empty() => nodes_cpus(topology, std::iter::once(node)),
        Some(_) => nodes_cpus(topology, home.nodes.iter()),
        None => topology.online.clone(),
    };
    local.map_or(own, |local| local.intersection(&topology.online))
}

/// The online CPUs of some nodes.
fn nodes_cpus(topology: &Topology, nodes: impl Iterator<Item = u32>) -> CpuSet {
    CpuSet::union_of(
        nodes
            .filter_map(|node| topology.nodes.get(&node))
            .map(|node| &node.cpus),
    )
}

/// The local CPUs that are not candidates, with the reason.
fn left_out(
    topology: &Topology,
    choice: &Choice,
    near: &CpuSet,
    near_to: Option<&PlannedNear>,
    cpus: &CpuSet,
) -> Vec<LeftOut> {
    let mut left = near.difference(cpus);
    let mut reasons = Vec::new();
    let mut reason = |set: &CpuSet, why: &str| {
        let cpus = left.intersection(set);
        if !cpus.is_empty() {
            left = left.difference(&cpus);
            reasons.push(LeftOut {
                cpus,
                why: why.to_owned(),
            });
        }
    };
    reason(&choice.get(&EXCLUDE), "excluded by the policy");
    reason(&topology.isolated, "isolated");
    reason(&topology.nohz_full, "nohz_full");
    reason(
        &exclusive(topology, choice),
        "in an exclusive cpuset partition",
    );
    if near_to.is_some() {
        reason(near, "not near what the policy wants its IRQs to be near");
    }
    reason(
        near,
        "not in the scope or number of cores that the policy sets",
    );
    reasons
}

/// The CPUs that a cgroup has alone, if the policy leaves them out; else none.
pub(crate) fn exclusive(topology: &Topology, choice: &Choice) -> CpuSet {
    if choice.get(&AVOID_EXCLUSIVE) {
        topology.exclusive.clone()
    } else {
        CpuSet::new()
    }
}

/// The CPUs that get no interrupts unless the policy names them or there are no others: isolated and `nohz_full` ones, and
/// those that a cgroup has alone.
pub(crate) fn isolated_or_exclusive(topology: &Topology, choice: &Choice) -> CpuSet {
    topology
        .isolated_or_nohz()
        .union(&exclusive(topology, choice))
}

/// Online CPUs that are not kept free or excluded; those that are not excluded if all are kept free.
fn usable(topology: &Topology, choice: &Choice) -> (CpuSet, Vec<Note>) {
    let isolated_or_exclusive = isolated_or_exclusive(topology, choice);
    let excluded = choice.get(&EXCLUDE);
    let plain = topology.online.difference(&isolated_or_exclusive);
    let usable = plain.difference(&excluded);
    if !usable.is_empty() {
        return (usable, Vec::new());
    }
    let online = topology.online.difference(&excluded);
    if !plain.is_empty() || online.is_empty() {
        return (topology.online.clone(), vec![Note::NoCpuLeft { excluded }]);
    }
    (online.clone(), vec![Note::NoUsableCpu { online }])
}

/// The node of an interface, and notes about it.
fn home(topology: &Topology, interface: &Interface, usable: &CpuSet) -> (Home, Vec<Note>) {
    let home = topology.home(&interface.device, usable);
    let mut notes = Vec::new();
    match (interface.device.node, home.source) {
        (_, NodeSource::NumaNode) | (None, _) => {}
        (Some(node), NodeSource::Nearest) => {
            let distance = home
                .nodes
                .first()
                .map_or(0, |nearest| topology.distance(node, nearest));
            notes.push(Note::NodeWithoutCpus {
                node,
                nearest: home.nodes.clone(),
                distance,
            });
        }
        (Some(node), _) => notes.push(Note::NodeMissing { node }),
    }
    if home.source == NodeSource::Unknown {
        notes.push(Note::NodeUnknown {
            named: interface.device.node.is_some(),
        });
    }
    (home, notes)
}

/// A core with its sort keys.
struct Ranked {
    /// Whether it is the core of CPU 0, which is used last.
    last: bool,
    /// Index of its speed class; 0 is the fastest.
    class: usize,
    /// The number of cores of its L3 domain that come before it.
    turn: usize,
    domain: Option<usize>,
    core: CpuSet,
}

/// At most `most` cores of each node, distributed over the node's L3 domains or of as few as possible, or one core of each; fast cores
/// first, the core of CPU 0 last.
fn first_cores(
    topology: &Topology,
    cpus: &CpuSet,
    most: Option<usize>,
    per: Per,
    choice: &Choice,
) -> CpuSet {
    let mut chosen = CpuSet::new();
    let containing =
        |groups: &[CpuSet], core: &CpuSet| groups.iter().position(|group| group.intersects(core));
    for node in topology.nodes.values() {
        let own = cpus.intersection(&node.cpus);
        let cores = topology
            .cores
            .iter()
            .map(|core| core.intersection(&own))
            .filter(|core| !core.is_empty());
        let mut ranked: Vec<Ranked> = cores
            .map(|core| Ranked {
                last: choice.get(&AVOID_CPU0) && core.contains(0),
                class: containing(&topology.speed_classes, &core).unwrap_or(0),
                turn: 0,
                domain: containing(&topology.l3_domains, &core),
                core,
            })
            .collect();
        ranked.sort_by_key(|r| (r.last, r.class, r.domain, r.core.first()));
        let mut in_domain: BTreeMap<Option<usize>, usize> = BTreeMap::new();
        for r in &mut ranked {
            let turns = in_domain.entry(r.domain).or_default();
            r.turn = *turns;
            *turns += 1;
        }
        ranked.retain(|r| per == Per::Core || r.turn == 0);
        if choice.get(&L3) == Domains::Pack {
            for r in &mut ranked {
                r.turn = 0;
            }
        }
        // The k-th core of every domain comes before the k+1-th of any.
        ranked.sort_by_key(|r| (r.last, r.class, r.turn, r.domain, r.core.first()));
        for r in ranked.into_iter().take(most.unwrap_or(usize::MAX)) {
            chosen = chosen.union(&r.core);
        }
    }
    chosen
}
