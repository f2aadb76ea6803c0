//! The candidate CPUs of an interface's vectors, and its node.

use std::collections::BTreeMap;

use itertools::Itertools as _;

use crate::cpuset::{CpuSet, NodeSet};
use crate::machine::topology::{Home, KeptOff, NodeSource};
use crate::machine::{Interface, Machine, Program, Topology};
use crate::plan::allowed::Allowed;
use crate::plan::data::{LeftOut, PlannedNear};
use crate::plan::note::{Found, Note, UsedFor};
use crate::plan::place::Locations;
use crate::plan::requests::note_of_unusable;
use crate::plan::why::{Cause, Why};
use crate::policy::{
    AVOID_CPU0, Choice, GROUP, Group, IRQ_CORES, NEAR, Near, ONE_PER_L3, PACK_L3, SCOPE, SIBLINGS,
    Scope, WIDEN,
};

pub(crate) struct Candidates {
    pub(crate) node: Option<u32>,
    pub(crate) source: NodeSource,
    /// Whether other nodes are as near as `node`, and share its work.
    pub(crate) tied: bool,
    /// Never empty on a machine with an online CPU.
    pub(crate) cpus: CpuSet,
    /// `cpus` in tiers of increasing distance, if the policy widens; else empty.
    pub(crate) tiers: Vec<CpuSet>,
    pub(crate) named: bool,
    /// Local online CPUs, whatever the policy: of the node, else of `local_cpulist`, else all.
    pub(crate) near: CpuSet,
    pub(crate) near_to: Option<PlannedNear>,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) allowed: Allowed,
    pub(crate) notes: Vec<Note>,
}

impl Candidates {
    /// Without what the policy has widened to.
    pub(crate) fn nearest(&self) -> &CpuSet {
        self.tiers.first().unwrap_or(&self.cpus)
    }
}

pub(crate) fn candidates(
    machine: &Machine,
    locations: &Locations<'_>,
    interface: &Interface,
    choice: &Choice,
) -> Candidates {
    let topology = &machine.topology;
    let allowed = Allowed::new(topology, choice);
    let (usable, about) = usable_cpus(topology, &allowed);
    let mut search = Search {
        machine,
        topology,
        interface,
        choice,
        allowed,
        home: topology.home(&interface.device, &usable),
        usable,
        notes: Vec::from_iter(about),
    };
    search.add_node_notes();
    let named = search.named_cpus();
    let is_named = named.is_some();
    let (mut tiers, mut near_to) = (Vec::new(), None);
    let cpus = named.unwrap_or_else(|| {
        tiers = search.cpus_in_scope();
        let cpus;
        (cpus, near_to) = search.near_program(CpuSet::union_of(&tiers));
        first_cores(locations, cpus, choice)
    });
    let Search {
        home,
        allowed,
        mut notes,
        ..
    } = search;
    // A policy that names the CPUs or their node makes the interface's node known.
    let is_known = is_named || matches!(choice.get(&SCOPE), Scope::Nodes(_));
    let on = topology
        .nodes
        .iter()
        .find(|(_, node)| is_known && home.nodes.is_empty() && cpus.is_subset(&node.cpus));
    let (own, source) = match on {
        Some((&node, _)) => {
            notes.retain(|note| !matches!(note, Note::NodeUnknown { .. }));
            (NodeSet::single(node), NodeSource::Policy)
        }
        None => (home.nodes, home.source),
    };
    if tiers.len() < 2 {
        tiers.clear();
    }
    for tier in &mut tiers {
        *tier = tier.intersection(&cpus);
    }
    if !is_named {
        notes.extend(kept_off_note(topology, &allowed, &cpus));
    }
    let near = match &interface.device.local_cpus {
        Some(local) if home.source == NodeSource::LocalCpulist => {
            local.intersection(&topology.online)
        }
        _ if own.is_empty() => topology.online.clone(),
        _ => topology.cpus_of(own.iter()),
    };
    let not_in_scope = if near_to.is_some() {
        Cause::NotNear
    } else {
        Cause::NotInScope
    };
    Candidates {
        left_out: cpus_left_out(topology, &allowed, &near, &cpus, not_in_scope),
        node: own.first(),
        source,
        tied: own.len() > 1,
        cpus,
        tiers,
        named: is_named,
        near,
        near_to,
        allowed,
        notes,
    }
}

struct Search<'a> {
    machine: &'a Machine,
    topology: &'a Topology,
    interface: &'a Interface,
    choice: &'a Choice,
    allowed: Allowed,
    usable: CpuSet,
    home: Home,
    notes: Vec<Note>,
}

impl Search<'_> {
    fn add_node_notes(&mut self) {
        let (own, home) = (self.interface.device.node, &self.home);
        let named = own.is_some();
        self.notes.extend(match (own, home.source) {
            (_, NodeSource::NumaNode) | (None, _) => None,
            (Some(node), NodeSource::Nearest) => Some(Note::NodeWithoutCpus {
                node,
                nearest: home.nodes.clone(),
                distance: (home.nodes.first())
                    .map_or(0, |nearest| self.topology.distance(node, nearest)),
            }),
            (Some(node), _) => Some(Note::NodeMissing { node }),
        });
        let is_unknown = home.source == NodeSource::Unknown;
        self.notes
            .extend(is_unknown.then_some(Note::NodeUnknown { named }));
    }

    /// The usable ones of the CPUs that the policy names; of a scope, the local ones if there are any. `None` if none
    /// is usable.
    fn named_cpus(&mut self) -> Option<CpuSet> {
        let (wanted, is_scope) = match (self.choice.get(&GROUP), self.choice.get(&SCOPE)) {
            (Some(Group::Cpus(wanted)), _) => (wanted, false),
            (group, Scope::Cpus(wanted)) => (wanted, group.is_none()),
            _ => return None,
        };
        let topology = self.topology;
        let cpus = wanted
            .intersection(&topology.online)
            .difference(&self.allowed.excluded);
        self.notes
            .extend(note_of_unusable(&wanted, &cpus, UsedFor::Interrupts));
        let local = self.local_cpus().intersection(&cpus);
        if is_scope && !local.is_empty() {
            return Some(local);
        }
        (!cpus.is_empty()).then_some(cpus)
    }

    /// CPUs near the device, usable or not; empty if its node is unknown.
    fn local_cpus(&self) -> CpuSet {
        let home = (self.topology).home(&self.interface.device, &self.topology.online);
        match home.source {
            NodeSource::Unknown => CpuSet::new(),
            _ => home.cpus,
        }
    }

    fn cpus_in_scope(&mut self) -> Vec<CpuSet> {
        let (topology, usable) = (self.topology, &self.usable);
        let (cpus, otherwise) = match self.choice.get(&SCOPE) {
            Scope::All => return vec![usable.clone()],
            Scope::Remote => {
                let own = self.local_cpus();
                let others = if own.is_empty() {
                    own
                } else {
                    usable.difference(&own)
                };
                (others, Note::NoRemoteNode)
            }
            Scope::Nodes(named) => {
                let absent: NodeSet = named
                    .iter()
                    .filter(|node| !topology.nodes.contains_key(node))
                    .collect();
                if absent.is_empty() {
                    let cpus = topology.cpus_of(named.iter()).intersection(usable);
                    (cpus, Note::ScopeUnusable { nodes: named })
                } else {
                    (CpuSet::new(), Note::ScopeUnusable { nodes: absent })
                }
            }
            Scope::Local | Scope::Hint | Scope::Cpus(_) => return self.widened_tiers(),
        };
        if cpus.is_empty() {
            self.notes.push(otherwise);
            return vec![self.home.cpus.clone()];
        }
        vec![cpus]
    }

    /// The node's CPUs and, if the policy widens and while there are fewer cores than queues, those of the other nodes
    /// of its package. Nodes of equal distance are one tier, so that none is preferred by its number.
    fn widened_tiers(&mut self) -> Vec<CpuSet> {
        let (topology, home) = (self.topology, &self.home);
        let cores = |cpus: &CpuSet| core_count(topology, self.choice, cpus);
        let mut tiers = vec![home.cpus.clone()];
        let package = topology
            .packages
            .iter()
            .find(|package| package.intersects(&home.cpus));
        let (Some(node), Some(package), true) =
            (home.nodes.first(), package, self.choice.get(&WIDEN))
        else {
            return tiers;
        };
        let queues = self.interface.active_queues();
        let usable = package.intersection(&self.usable);
        let mut others = topology.nearest_nodes(node);
        others.retain(|other| {
            !home.nodes.contains(*other) && topology.nodes[other].cpus.intersects(&usable)
        });
        let mut to = Vec::new();
        for tier in
            others.chunk_by(|a, b| topology.distance(node, *a) == topology.distance(node, *b))
        {
            if tiers.iter().map(cores).sum::<usize>() >= queues {
                break;
            }
            tiers.push(topology.cpus_of(tier.iter().copied()).intersection(&usable));
            to.extend(tier);
        }
        if !to.is_empty() {
            let cores = cores(&home.cpus);
            self.notes.push(Note::Widened {
                queues,
                cores,
                node,
                to,
            });
        }
        tiers
    }

    /// Restricts `cpus` to the L3 domains of the program that the policy names, without its own cores if others are
    /// left. Returns all of `cpus` if that leaves none, or the program's CPUs are unknown.
    fn near_program(&mut self, cpus: CpuSet) -> (CpuSet, Option<PlannedNear>) {
        let (own, now, program) = match self.choice.get(&NEAR) {
            None => return (cpus, None),
            Some(Near::Cpus(own)) => (own.clone(), Some(own), None),
            Some(Near::Program(wanted)) => {
                let program = Some(wanted.to_string());
                let Some(known) = self.machine.programs.get(&wanted) else {
                    self.notes.push(Note::Near {
                        program,
                        cpus: CpuSet::new(),
                        now: None,
                        found: match wanted {
                            Program::Pid(_) => Found::NoProcess,
                            Program::Unit(_) => Found::NotRunning,
                        },
                    });
                    return (cpus, None);
                };
                (known.cpus.clone(), known.now.clone(), program)
            }
        };
        let domains = &self.topology.l3_domains;
        let there = if domains.is_empty() {
            cpus.clone()
        } else {
            CpuSet::union_of(domains.iter().filter(|l3| l3.intersects(&own))).intersection(&cpus)
        };
        let taken = [&self.topology.whole_cores(&own), &own, &CpuSet::new()]
            .map(|own| there.difference(own))
            .into_iter()
            .find(|left| !left.is_empty());
        self.notes.push(Note::Near {
            program: program.clone(),
            cpus: own.clone(),
            now: now.map(Box::new),
            found: match &taken {
                None => Found::Nowhere,
                Some(taken) if *taken == cpus => Found::Everywhere,
                Some(_) => Found::There,
            },
        });
        let near_to = PlannedNear { program, cpus: own };
        (taken.unwrap_or(cpus), Some(near_to))
    }
}

fn usable_cpus(topology: &Topology, allowed: &Allowed) -> (CpuSet, Option<Note>) {
    if !allowed.unreserved.is_empty() {
        return (allowed.unreserved.clone(), None);
    }
    let online = topology.online.difference(&allowed.excluded);
    if online.is_empty() || !topology.online.is_subset(&allowed.apart) {
        let excluded = allowed.excluded.clone();
        return (topology.online.clone(), Some(Note::NoCpuLeft { excluded }));
    }
    (online.clone(), Some(Note::NoUsableCpu { online }))
}

/// `not_in_scope`: the reason for CPUs that could be candidates.
fn cpus_left_out(
    topology: &Topology,
    allowed: &Allowed,
    near: &CpuSet,
    candidates: &CpuSet,
    not_in_scope: Cause,
) -> Vec<LeftOut> {
    let kept_off = topology
        .kept_off
        .iter()
        .map(|kept| (&kept.cpus, Cause::KeptFree(kept.by.clone())));
    let reasons = [
        (&allowed.excluded, Cause::Excluded),
        (&topology.isolated, Cause::Isolated),
        (&topology.nohz_full, Cause::NohzFull),
        (&allowed.exclusive, Cause::Exclusive),
    ];
    let mut left = near.difference(candidates);
    (reasons.into_iter())
        .chain(kept_off)
        .chain([(near, not_in_scope)])
        .filter_map(|(cpus, cause)| {
            let cpus = left.intersection(cpus);
            left = left.difference(&cpus);
            let why = Why::because(cause);
            (!cpus.is_empty()).then_some(LeftOut { cpus, why })
        })
        .collect()
}

fn kept_off_note(topology: &Topology, allowed: &Allowed, candidates: &CpuSet) -> Option<Note> {
    let lists = |is_meant: &dyn Fn(&KeptOff) -> bool| {
        let (cpus, by): (Vec<_>, Vec<_>) = topology
            .kept_off
            .iter()
            .filter(|list| is_meant(list))
            .map(|list| (&list.cpus, list.by.clone()))
            .unzip();
        (!by.is_empty()).then(|| (CpuSet::union_of(cpus), by))
    };
    if let Some((_, by)) = lists(&|list| list.cpus.intersects(&allowed.unreserved)) {
        return Some(Note::ListNotFollowed { by });
    }
    let (kept, by) = lists(&|list| {
        let cpus = list.cpus.difference(&allowed.apart);
        !cpus.is_empty() && !cpus.intersects(candidates)
    })?;
    let cpus = topology.online.difference(&kept);
    Some(Note::KeptOff { cpus, by })
}

pub(crate) fn core_count(topology: &Topology, choice: &Choice, cpus: &CpuSet) -> usize {
    if choice.get(&SIBLINGS) {
        cpus.len()
    } else {
        topology.cores_with(cpus).count()
    }
}

/// Restricts `cpus` to the policy's number of cores for each node, and for the CPUs without one: spread over L3
/// domains, packed into few, or one of each; fast cores first, the core of CPU 0 last.
fn first_cores(locations: &Locations<'_>, cpus: CpuSet, choice: &Choice) -> CpuSet {
    let (most, one_per_l3) = (choice.get(&IRQ_CORES), choice.get(&ONE_PER_L3));
    if most.is_none() && !one_per_l3 {
        return cpus;
    }
    let (avoid_cpu0, packs) = (choice.get(&AVOID_CPU0), choice.get(&PACK_L3));
    let mut by_node: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for core in locations.topology.cores_with(&cpus) {
        let core = core.intersection(&cpus);
        let place = core
            .first()
            .and_then(|cpu| locations.of(cpu))
            .unwrap_or_default();
        let rank = (place.class, avoid_cpu0 && core.contains(0));
        by_node
            .entry(place.node)
            .or_default()
            .push((rank, place.domain, core));
    }
    let l3_domains = &locations.topology.l3_domains;
    let mut chosen = CpuSet::new();
    for mut cores in by_node.into_values() {
        // Low-power cores may have no L3.
        let has_l3 = |core: &CpuSet| l3_domains.iter().any(|l3| l3.intersects(core));
        if one_per_l3 && cores.iter().any(|(.., core)| has_l3(core)) {
            cores.retain(|(.., core)| has_l3(core));
        }
        let mut in_domain: BTreeMap<_, usize> = BTreeMap::new();
        // The k-th core of every domain precedes the k+1-th of any.
        let ordered = cores
            .into_iter()
            .sorted_unstable_by_key(|(rank, domain, core)| (*rank, *domain, core.first()))
            .map(|(rank, domain, core)| {
                let turn = in_domain.entry(domain).or_default();
                *turn += 1;
                (rank, *turn, core)
            })
            .filter(|(_, turn, _)| !one_per_l3 || *turn == 1)
            .sorted_by_key(|(rank, turn, _)| (*rank, if packs { 0 } else { *turn }));
        for (.., core) in ordered.take(most.unwrap_or(usize::MAX)) {
            chosen.add(&core);
        }
    }
    chosen
}
