//! The candidate CPUs of an interface's vectors, and its node.

use std::collections::BTreeMap;

use itertools::Itertools as _;

use crate::cpuset::{CpuSet, NodeSet};
use crate::machine::topology::{Home, KeptOff, NodeSource};
use crate::machine::{Interface, Machine, Program, RxQueue, Topology, TxQueue};
use crate::plan::data::{LeftOut, PlannedNear};
use crate::plan::note::{Found, Note, UsedFor};
use crate::policy::{
    AVOID_CPU0, AVOID_EXCLUSIVE, CHANNELS, ChannelCount, Choice, EXCLUDE, GROUP, Group, IRQ_CORES,
    NEAR, Near, ONE_PER_L3, PACK_L3, RFS, RPS, Rfs, RpsMode, SCOPE, SIBLINGS, Scope, WIDEN, XPS,
    Xps,
};

pub(crate) struct Candidates {
    pub(crate) node: Option<u32>,
    pub(crate) source: NodeSource,
    /// Whether other nodes are as near as `node`, and share its work.
    pub(crate) tied: bool,
    /// The candidate CPUs; never empty on a machine with an online CPU.
    pub(crate) cpus: CpuSet,
    /// `cpus` in tiers of increasing distance, if the policy widens; else empty.
    pub(crate) tiers: Vec<CpuSet>,
    pub(crate) named: bool,
    /// The local online CPUs, whatever the policy: those of the node, those in `local_cpulist`, or all.
    pub(crate) near: CpuSet,
    /// The program or CPUs to which the policy wants interrupts to be near.
    pub(crate) near_to: Option<PlannedNear>,
    /// Local CPUs that are not candidates, with the reason.
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) notes: Vec<Note>,
}

pub(crate) fn candidates(machine: &Machine, interface: &Interface, choice: &Choice) -> Candidates {
    let topology = &machine.topology;
    let mut notes = Vec::new();
    let usable = usable_cpus(topology, choice, &mut notes);
    let mut home = topology.home(&interface.device, &usable);
    add_node_notes(topology, interface, &home, &mut notes);
    let mut source = home.source;
    let (mut tiers, mut near_to) = (Vec::new(), None);
    let named = named_cpus(topology, interface, choice, &mut notes);
    let is_named = named.is_some();
    let cpus = if let Some(cpus) = named {
        cpus
    } else {
        tiers = candidates_in_scope(topology, choice, &home, &usable, interface, &mut notes);
        let mut cpus = CpuSet::union_of(&tiers);
        if let Some(wanted) = choice.get(&NEAR) {
            (cpus, near_to) = near_program(machine, wanted, cpus, &mut notes);
        }
        match (choice.get(&IRQ_CORES), choice.get(&ONE_PER_L3)) {
            (None, false) => cpus,
            _ => first_cores(topology, &cpus, choice),
        }
    };
    // A policy that names the CPUs or their node makes the interface's node known.
    let is_known = is_named || matches!(choice.get(&SCOPE), Scope::Nodes(_));
    let on = topology
        .nodes
        .iter()
        .find(|(_, node)| is_known && home.nodes.is_empty() && cpus.is_subset(&node.cpus));
    if let Some((&node, _)) = on {
        (home.nodes, source) = (NodeSet::single(node), NodeSource::Policy);
        notes.retain(|note| !matches!(note, Note::NodeUnknown { .. }));
    }
    if tiers.len() < 2 {
        tiers.clear();
    }
    if !is_named {
        notes.extend(kept_off_note(topology, choice, &cpus));
    }
    for tier in &mut tiers {
        *tier = tier.intersection(&cpus);
    }
    let near = match &interface.device.local_cpus {
        Some(local) if home.source == NodeSource::LocalCpulist => {
            local.intersection(&topology.online)
        }
        _ if home.nodes.is_empty() => topology.online.clone(),
        _ => topology.cpus_of(home.nodes.iter()),
    };
    Candidates {
        left_out: cpus_left_out(topology, choice, &near, near_to.is_some(), &cpus),
        node: home.nodes.first(),
        source,
        tied: home.nodes.len() > 1,
        cpus,
        tiers,
        named: is_named,
        near,
        near_to,
        notes,
    }
}

/// Restricts `cpus` to the L3 domains of a program, without the program's own cores if others are left; also returns
/// the program's CPUs. Returns all of `cpus` if none is in those domains, or the program's CPUs are unknown.
fn near_program(
    machine: &Machine,
    wanted: Near,
    cpus: CpuSet,
    notes: &mut Vec<Note>,
) -> (CpuSet, Option<PlannedNear>) {
    let topology = &machine.topology;
    let (own, now, program) = match wanted {
        Near::Cpus(own) => (own.clone(), Some(own), None),
        Near::Program(wanted) => {
            let program = Some(wanted.to_string());
            let Some(known) = machine.programs.get(&wanted) else {
                notes.push(Note::Near {
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
    let mut there = cpus.clone();
    if !topology.l3_domains.is_empty() {
        let domains = topology.l3_domains.iter();
        there = CpuSet::union_of(domains.filter(|l3| l3.intersects(&own))).intersection(&cpus);
    }
    let taken = [&topology.whole_cores(&own), &own, &CpuSet::new()]
        .map(|own| there.difference(own))
        .into_iter()
        .find(|left| !left.is_empty());
    notes.push(Note::Near {
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

/// The usable CPUs of those that the policy names; within a scope, the local ones if there are any. `None` if none is
/// usable.
fn named_cpus(
    topology: &Topology,
    interface: &Interface,
    choice: &Choice,
    notes: &mut Vec<Note>,
) -> Option<CpuSet> {
    let ((Some(Group::Cpus(wanted)), _) | (_, Scope::Cpus(wanted))) =
        (choice.get(&GROUP), choice.get(&SCOPE))
    else {
        return None;
    };
    let cpus = wanted
        .intersection(&topology.online)
        .difference(&choice.get(&EXCLUDE));
    notes.extend(note_of_unusable(&wanted, &cpus, UsedFor::Interrupts));
    let home = topology.home(&interface.device, &topology.online);
    let local = topology.cpus_of(home.nodes.iter()).intersection(&cpus);
    let is_scope = choice.get(&GROUP).is_none();
    [Some(local).filter(|_| is_scope), Some(cpus)]
        .into_iter()
        .flatten()
        .find(|cpus| !cpus.is_empty())
}

/// A note if some of the CPUs that the policy names cannot be used.
pub(crate) fn note_of_unusable(
    wanted: &CpuSet,
    usable: &CpuSet,
    used_for: UsedFor,
) -> Option<Note> {
    let missing = wanted.difference(usable);
    (!missing.is_empty()).then(|| Note::CpusUnusable {
        wanted: wanted.clone(),
        missing,
        used_for,
    })
}

/// A note if RPS of an interface can use none of the CPUs that the policy names for it.
pub(crate) fn unmet_rps(machine: &Machine, interface: &Interface, choice: &Choice) -> Option<Note> {
    let RpsMode::Cpus(wanted) = choice.get(&RPS) else {
        return None;
    };
    let cpus = usable_rps_cpus(machine, choice, &wanted);
    let kept = cpus_kept_by_kernel(&machine.topology, interface);
    let mut queues = interface.rx_queues.iter();
    let is_unmet = queues.any(|queue| kept(queue, &cpus).is_empty());
    is_unmet.then(|| Note::CpusUnusable {
        missing: wanted.clone(),
        wanted: wanted.clone(),
        used_for: UsedFor::Rps,
    })
}

/// A note if the policy requests a number of channels that the device is not known to support. Functions whose
/// interface is elsewhere cannot be asked.
pub(crate) fn unmet_channels(interface: &Interface, choice: &Choice) -> Option<Note> {
    let ChannelCount::Count(requested) = choice.get(&CHANNELS) else {
        return None;
    };
    let fixed = interface.channels_fixed;
    if let Some(known) = interface.channels.filter(|_| !fixed) {
        let most = known.max_receiving();
        return (requested > most).then_some(Note::ChannelsAtMost { requested, most });
    }
    let stays = !interface.is_elsewhere() && !interface.receives_by(requested);
    let requested = Some(requested);
    stays.then_some(Note::ChannelsUnchanged { requested, fixed })
}

/// A note if the policy requests steering for which the kernel has no file of some queue.
pub(crate) fn unmet_files(interface: &Interface, choice: &Choice) -> Option<Note> {
    let (rx, tx) = (&interface.rx_queues, &interface.tx_queues);
    // A single transmit queue takes all flows; one in no traffic class has neither file.
    let has_rps = rx.iter().all(|rx| rx.rps_cpus.is_some());
    let has_flows = rx.iter().all(|rx| rx.rps_flow_cnt.is_some());
    let is_complete = |tx: &TxQueue| tx.xps_rxqs.is_some() || tx.xps_cpus.is_none();
    let has_none = tx.iter().all(|tx| tx.xps_rxqs.is_none());
    let has_rxqs = tx.len() <= 1 || !has_none && tx.iter().all(is_complete);
    let missing = match (choice.get(&RPS), choice.get(&RFS), choice.get(&XPS)) {
        (RpsMode::Cpus(_), ..) if !has_rps => Some((RPS.key, "rps_cpus")),
        (_, Rfs::Entries(_), _) if !has_flows => Some((RFS.key, "rps_flow_cnt")),
        (_, _, Xps::ReceiveQueues) if !has_rxqs => Some((XPS.key, "xps_rxqs")),
        _ => None,
    };
    missing.map(|(setting, file)| Note::QueueFilesMissing {
        setting: setting.to_owned(),
        file: file.to_owned(),
    })
}

pub(crate) fn usable_rps_cpus(machine: &Machine, choice: &Choice, wanted: &CpuSet) -> CpuSet {
    wanted
        .intersection(&machine.topology.online)
        .difference(&choice.get(&EXCLUDE))
}

/// A function that restricts a queue's RPS CPUs to those that the kernel keeps. Whether the kernel removes the boot CPU
/// shows only in the file, and before Linux 5.9 it removes none: then some queue may already have a CPU that would be
/// removed.
pub(crate) fn cpus_kept_by_kernel(
    topology: &Topology,
    interface: &Interface,
) -> impl Fn(&RxQueue, &CpuSet) -> CpuSet {
    let filter = &topology.rps_filter;
    let removed = filter.intersection(&topology.isolated_or_nohz());
    let mut now = interface.rx_queues.iter().flat_map(|rx| &rx.rps_cpus);
    let keeps_all = now.any(|now| now.cpus.intersects(&removed));
    move |queue, wanted| {
        if keeps_all {
            return wanted.clone();
        }
        let kept = wanted.difference(&removed);
        let now = queue.rps_cpus.as_ref().map(|now| &now.cpus);
        let as_now = now.filter(|now| {
            !now.is_empty() && now.is_subset(&kept) && kept.difference(now).is_subset(filter)
        });
        as_now.unwrap_or(&kept).clone()
    }
}

fn candidates_in_scope(
    topology: &Topology,
    choice: &Choice,
    home: &Home,
    usable: &CpuSet,
    interface: &Interface,
    notes: &mut Vec<Note>,
) -> Vec<CpuSet> {
    let (cpus, otherwise) = match choice.get(&SCOPE) {
        Scope::All => return vec![usable.clone()],
        Scope::Remote => {
            let own = topology.cpus_of(home.nodes.iter());
            let others = if own.is_empty() {
                own
            } else {
                usable.difference(&own)
            };
            (others, Note::NoRemoteNode)
        }
        Scope::Nodes(named) => {
            let is_absent = |node: &u32| !topology.nodes.contains_key(node);
            let absent: NodeSet = named.iter().filter(is_absent).collect();
            if absent.is_empty() {
                let cpus = topology.cpus_of(named.iter()).intersection(usable);
                (cpus, Note::ScopeUnusable { nodes: named })
            } else {
                (CpuSet::new(), Note::ScopeUnusable { nodes: absent })
            }
        }
        Scope::Local | Scope::Hint | Scope::Cpus(_) => {
            return widened_tiers(topology, choice, home, usable, interface, notes);
        }
    };
    if cpus.is_empty() {
        notes.push(otherwise);
        return vec![home.cpus.clone()];
    }
    vec![cpus]
}

/// The node's CPUs and, if the policy widens and while there are fewer cores than queues, those of the other nodes of
/// its package in tiers of increasing distance. Nodes of equal distance are one tier, so that none is preferred by its
/// number.
fn widened_tiers(
    topology: &Topology,
    choice: &Choice,
    home: &Home,
    usable: &CpuSet,
    interface: &Interface,
    notes: &mut Vec<Note>,
) -> Vec<CpuSet> {
    let cores = |cpus: &CpuSet| core_count(topology, choice, cpus);
    let mut tiers = vec![home.cpus.clone()];
    let mut packages = topology.packages.iter();
    let package = packages.find(|package| package.intersects(&home.cpus));
    let (Some(node), Some(package), true) = (home.nodes.first(), package, choice.get(&WIDEN))
    else {
        return tiers;
    };
    let queues = interface.active_queues();
    let mut others = topology.nearest_nodes(node);
    let usable = package.intersection(usable);
    others.retain(|other| {
        !home.nodes.contains(*other) && topology.nodes[other].cpus.intersects(&usable)
    });
    let mut to = Vec::new();
    for tier in others.chunk_by(|a, b| topology.distance(node, *a) == topology.distance(node, *b)) {
        if tiers.iter().map(cores).sum::<usize>() >= queues {
            break;
        }
        tiers.push(topology.cpus_of(tier.iter().copied()).intersection(&usable));
        to.extend(tier);
    }
    if !to.is_empty() {
        notes.push(Note::Widened {
            queues,
            cores: cores(&home.cpus),
            node,
            to,
        });
    }
    tiers
}

/// The local CPUs that are not candidates, with the reason.
fn cpus_left_out(
    topology: &Topology,
    choice: &Choice,
    near: &CpuSet,
    is_near_program: bool,
    cpus: &CpuSet,
) -> Vec<LeftOut> {
    let mut left = near.difference(cpus);
    let by_policy = if is_near_program {
        "not near what the policy wants its IRQs to be near"
    } else {
        "not in the scope or number of cores that the policy sets"
    };
    let exclusive = exclusive(topology, choice);
    let reasons = [
        (&choice.get(&EXCLUDE), "excluded by the policy"),
        (&topology.isolated, "isolated"),
        (&topology.nohz_full, "nohz_full"),
        (&exclusive, "in an exclusive cpuset partition"),
    ];
    let kept_off = topology.kept_off.iter().map(|kept| {
        let why = format!("not for IRQs, by {}", kept.by);
        (&kept.cpus, why)
    });
    let reasons = reasons.into_iter().map(|(set, why)| (set, why.to_owned()));
    let mut left_out = Vec::new();
    for (set, why) in reasons
        .chain(kept_off)
        .chain([(near, by_policy.to_owned())])
    {
        let cpus = left.intersection(set);
        if !cpus.is_empty() {
            left = left.difference(&cpus);
            left_out.push(LeftOut { cpus, why });
        }
    }
    left_out
}

/// The CPUs of exclusive cpuset partitions, if the policy leaves them out.
pub(crate) fn exclusive(topology: &Topology, choice: &Choice) -> CpuSet {
    if choice.get(&AVOID_EXCLUSIVE) {
        topology.exclusive.clone()
    } else {
        CpuSet::new()
    }
}

/// The CPUs that get no interrupts unless the policy names them or there are no others: isolated and `nohz_full` ones,
/// and those of exclusive cpuset partitions.
pub(crate) fn isolated_or_exclusive(topology: &Topology, choice: &Choice) -> CpuSet {
    topology
        .isolated_or_nohz()
        .union(&exclusive(topology, choice))
}

/// The online CPUs that are not isolated, exclusive or excluded; also without those that the administrator keeps
/// interrupts off, while others are left.
pub(crate) fn unreserved(topology: &Topology, choice: &Choice) -> CpuSet {
    let unreserved = not_isolated(topology, choice);
    let kept_off = topology.kept_off.iter().map(|kept| &kept.cpus);
    let for_irqs = unreserved.difference(&CpuSet::union_of(kept_off));
    if for_irqs.is_empty() {
        unreserved
    } else {
        for_irqs
    }
}

fn not_isolated(topology: &Topology, choice: &Choice) -> CpuSet {
    topology
        .online
        .difference(&isolated_or_exclusive(topology, choice))
        .difference(&choice.get(&EXCLUDE))
}

/// A note if the candidates lack CPUs only because of the administrator's lists, or these cannot be followed.
fn kept_off_note(topology: &Topology, choice: &Choice, candidates: &CpuSet) -> Option<Note> {
    let free = not_isolated(topology, choice);
    let all = CpuSet::union_of(topology.kept_off.iter().map(|kept| &kept.cpus));
    if !free.is_empty() && free.is_subset(&all) {
        let lists = topology.kept_off.iter();
        let lists = lists.filter(|kept| kept.cpus.intersects(&free));
        let by = lists.map(|kept| kept.by.clone()).collect();
        return Some(Note::ListNotFollowed { by });
    }
    let others = isolated_or_exclusive(topology, choice);
    let bind = |kept: &&KeptOff| {
        !kept.cpus.is_subset(&others) && !kept.cpus.difference(&others).intersects(candidates)
    };
    let binding = topology.kept_off.iter().filter(bind).collect_vec();
    let kept = CpuSet::union_of(binding.iter().map(|kept| &kept.cpus));
    (!binding.is_empty()).then(|| Note::KeptOff {
        cpus: topology.online.difference(&kept),
        by: binding.iter().map(|kept| kept.by.clone()).collect(),
    })
}

/// The unreserved CPUs; if every CPU is isolated or exclusive, all that are not excluded.
fn usable_cpus(topology: &Topology, choice: &Choice, notes: &mut Vec<Note>) -> CpuSet {
    let usable = unreserved(topology, choice);
    if !usable.is_empty() {
        return usable;
    }
    let excluded = choice.get(&EXCLUDE);
    let online = topology.online.difference(&excluded);
    let are_kept_free = topology
        .online
        .is_subset(&isolated_or_exclusive(topology, choice));
    if !are_kept_free || online.is_empty() {
        notes.push(Note::NoCpuLeft { excluded });
        return topology.online.clone();
    }
    notes.push(Note::NoUsableCpu {
        online: online.clone(),
    });
    online
}

/// Counts the cores in a set; if siblings count as cores, the CPUs.
pub(crate) fn core_count(topology: &Topology, choice: &Choice, cpus: &CpuSet) -> usize {
    if choice.get(&SIBLINGS) {
        cpus.len()
    } else {
        topology.cores_with(cpus).count()
    }
}

fn add_node_notes(topology: &Topology, interface: &Interface, home: &Home, notes: &mut Vec<Note>) {
    let own = interface.device.node;
    match (own, home.source) {
        (_, NodeSource::NumaNode) | (None, _) => {}
        (Some(node), NodeSource::Nearest) => {
            let nearest = home.nodes.first();
            notes.push(Note::NodeWithoutCpus {
                node,
                nearest: home.nodes.clone(),
                distance: nearest.map_or(0, |nearest| topology.distance(node, nearest)),
            });
        }
        (Some(node), _) => notes.push(Note::NodeMissing { node }),
    }
    if home.source == NodeSource::Unknown {
        let named = own.is_some();
        notes.push(Note::NodeUnknown { named });
    }
}

/// Returns at most `most` cores of each node, and of the CPUs without a node, distributed over the node's L3 domains or
/// in as few as possible, or one core of each; fast cores first, the core of CPU 0 last.
fn first_cores(topology: &Topology, cpus: &CpuSet, choice: &Choice) -> CpuSet {
    let (avoid_cpu0, packs) = (choice.get(&AVOID_CPU0), choice.get(&PACK_L3));
    let one_per_l3 = choice.get(&ONE_PER_L3);
    let most = choice.get(&IRQ_CORES).unwrap_or(usize::MAX);
    let mut chosen = CpuSet::new();
    // By CPU: a search for each core in each set would take seconds on a machine with 1,024 nodes.
    let nodes = numbers(topology.nodes.values().map(|node| &node.cpus), cpus);
    let classes = numbers(&topology.speed_classes, cpus);
    let domains = numbers(&topology.l3_domains, cpus);
    let mut by_node: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for core in topology.cores_with(cpus) {
        let core = core.intersection(cpus);
        let place = |indices: &BTreeMap<_, _>| {
            core.iter()
                .filter_map(|cpu| indices.get(&cpu).copied())
                .min()
        };
        let class: usize = place(&classes).unwrap_or(0);
        let rank = (avoid_cpu0 && core.contains(0), class);
        let on = by_node.entry(place(&nodes)).or_default();
        on.push((rank, place(&domains), core));
    }
    for ranked in by_node.into_values() {
        let mut in_domain: BTreeMap<_, usize> = BTreeMap::new();
        // The k-th core of every domain precedes the k+1-th of any.
        let ordered = ranked
            .into_iter()
            .sorted_by_key(|(rank, domain, core)| (*rank, *domain, core.first()))
            .map(|(rank, domain, core)| {
                let turn = in_domain.entry(domain).or_default();
                *turn += 1;
                (rank, *turn, core)
            })
            .filter(|(_, turn, _)| !one_per_l3 || *turn == 1)
            .sorted_by_key(|(rank, turn, _)| (*rank, if packs { 0 } else { *turn }));
        for (.., core) in ordered.take(most) {
            chosen.add(&core);
        }
    }
    chosen
}

/// Maps each CPU to the index of the first set that has it.
fn numbers<'a>(sets: impl IntoIterator<Item = &'a CpuSet>, cpus: &CpuSet) -> BTreeMap<u32, usize> {
    let mut numbers = BTreeMap::new();
    for (number, set) in sets.into_iter().enumerate() {
        for cpu in set.iter().filter(|cpu| cpus.contains(*cpu)) {
            numbers.entry(cpu).or_insert(number);
        }
    }
    numbers
}
