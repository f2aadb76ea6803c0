//! What `nicpin draw` shows: the machine by node, cache, core and CPU, its interfaces at their nodes, and the CPU of each
//! queue, now and as planned. Pure; where on the paper things go is the renderer's.

use std::collections::{BTreeMap, BTreeSet};

use crate::cpuset::CpuSet;
use crate::machine::{Machine, Role, Topology};
use crate::plan::{Plan, PlannedInterface, PlannedVector, Score};
use crate::report::nodes::home;
use crate::report::wording::{count, speed};

/// A machine to be drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// What machine it is, in short.
    pub title: String,
    /// The hash of the plan.
    pub hash: String,
    /// Its nodes by id.
    pub nodes: Vec<NodePicture>,
    /// The interfaces of the plan.
    pub cards: Vec<InterfacePicture>,
    /// CPUs that are isolated or `nohz_full`.
    pub kept_free: CpuSet,
    /// Now and planned; one of them where there is no difference.
    pub scenes: Vec<Scene>,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodePicture {
    /// Its id.
    pub id: u32,
    /// Its cores by the cache that they share.
    pub groups: Vec<CacheGroup>,
}

/// Cores that share an L3 cache.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheGroup {
    /// Whether the machine says that they do; else they are what is left of a node.
    pub is_l3: bool,
    /// The CPUs of each core.
    pub cores: Vec<CpuSet>,
}

/// An interface.
#[derive(Debug, Clone, PartialEq)]
pub struct InterfacePicture {
    /// A letter that stands for it: A, B, and so on.
    pub key: String,
    /// Its name.
    pub name: String,
    /// Driver and speed.
    pub what: String,
    /// The node that it is drawn at.
    pub node: Option<u32>,
    /// Its queues that are in use and have a vector.
    pub queues: Vec<u32>,
}

/// Where the queues are.
#[derive(Debug, Clone, PartialEq)]
pub struct Scene {
    /// Now, or planned.
    pub title: &'static str,
    /// How good that is, in words.
    pub score: String,
    /// A place for each vector and CPU.
    pub places: BTreeSet<QueueMark>,
}

/// A queue's vector on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueMark {
    /// The CPU.
    pub cpu: u32,
    /// The interface, as an index into the cards.
    pub card: usize,
    /// The queue's number.
    pub queue: u32,
    /// What of the queue it is.
    pub role: Role,
    /// Whether the CPU is on another node than the one that counts as the interface's own.
    pub remote: bool,
}

impl Picture {
    /// Puts together what is to be drawn.
    pub fn new(machine: &Machine, plan: &Plan) -> Self {
        let topology = &machine.topology;
        let cards: Vec<InterfacePicture> = plan
            .interfaces
            .iter()
            .enumerate()
            .map(|(at, interface)| card(machine, plan, at, interface))
            .collect();
        let now = places(topology, plan, now);
        let planned = places(topology, plan, planned);
        let scene = |title, score: &Score, places| Scene { title, score: words(score), places };
        let scenes = if now == planned {
            vec![scene("Now, and as planned", &plan.score, planned)]
        } else {
            vec![scene("Now", &plan.score_now, now), scene("Planned", &plan.score, planned)]
        };
        Self {
            title: format!(
                "{}, {}, {}",
                count(topology.online.len(), "CPU"),
                count(topology.nodes.len(), "node"),
                count(cards.len(), "interface")
            ),
            hash: plan.hash.clone(),
            nodes: nodes(machine),
            cards,
            kept_free: topology.isolated_or_nohz(),
            scenes,
        }
    }
}

fn nodes(machine: &Machine) -> Vec<NodePicture> {
    let topology = &machine.topology;
    let of = |(&id, node): (&u32, &crate::machine::Node)| {
        let mut left = node.cpus.clone();
        let mut groups = Vec::new();
        for domain in &topology.l3_domains {
            let cpus = domain.intersection(&left);
            left = left.difference(&cpus);
            groups.push(CacheGroup { is_l3: true, cores: cores(topology, &cpus) });
        }
        groups.push(CacheGroup { is_l3: false, cores: cores(topology, &left) });
        groups.retain(|group| !group.cores.is_empty());
        NodePicture { id, groups }
    };
    topology.nodes.iter().map(of).collect()
}

fn cores(topology: &Topology, cpus: &CpuSet) -> Vec<CpuSet> {
    let cores = topology.cores.iter().map(|core| core.intersection(cpus));
    cores.filter(|core| !core.is_empty()).collect()
}

fn card(machine: &Machine, plan: &Plan, at: usize, interface: &PlannedInterface) -> InterfacePicture {
    let speed = interface.speed_mbps.map(speed);
    let words = [interface.driver.clone(), speed, (interface.link != "up").then(|| interface.link.clone())];
    let queues: BTreeSet<u32> = active(interface).filter_map(|vector| vector.queue).collect();
    InterfacePicture {
        key: key(at),
        name: interface.name.clone(),
        what: words.into_iter().flatten().collect::<Vec<_>>().join(", "),
        node: home(machine, plan, &interface.name),
        queues: queues.into_iter().collect(),
    }
}

/// A to Z, then AA, AB and so on.
fn key(at: usize) -> String {
    let letter = |n: usize| char::from(b'A' + u8::try_from(n % 26).unwrap_or(0)).to_string();
    if at < 26 { letter(at) } else { key(at / 26 - 1) + &letter(at) }
}

fn active(interface: &PlannedInterface) -> impl Iterator<Item = &PlannedVector> {
    interface.vectors.iter().filter(|vector| vector.queue.is_some() && !vector.idle)
}

/// Where a vector is served, as far as the kernel tells.
fn now(vector: &PlannedVector) -> CpuSet {
    match &vector.effective {
        Some(cpus) => cpus.clone(),
        None if vector.affinity.len() == 1 => vector.affinity.clone(),
        None => CpuSet::new(),
    }
}

/// Where it will be: a vector that is left alone stays.
fn planned(vector: &PlannedVector) -> CpuSet {
    vector.cpus.clone().unwrap_or_else(|| now(vector))
}

fn places(topology: &Topology, plan: &Plan, cpus: fn(&PlannedVector) -> CpuSet) -> BTreeSet<QueueMark> {
    let mut places = BTreeSet::new();
    for (card, interface) in plan.interfaces.iter().enumerate() {
        for vector in active(interface) {
            let own = vector.node.or(interface.local_node());
            for cpu in cpus(vector).iter() {
                let remote = own.is_some() && topology.node_of(cpu) != own;
                let Some(queue) = vector.queue else { continue };
                places.insert(QueueMark { cpu, card, queue, role: vector.role, remote });
            }
        }
    }
    places
}

fn words(score: &Score) -> String {
    let local = score.local.map_or(String::new(), |local| {
        format!("{:.0}% of the queue vectors on their card's node, ", (local * 100.0).floor())
    });
    let queues = count(score.max_vectors_per_core, "queue");
    let isolated = match score.on_isolated {
        0 => String::new(),
        count => format!(", {count} on isolated CPUs"),
    };
    format!("{local}at most {queues} on a core{isolated}")
}

/// The queues of a card on one CPU, as short words: `3` for a queue, `3r` and `3t` for a vector of it when the other is
/// elsewhere.
pub fn labels<'a>(places: impl Iterator<Item = &'a QueueMark>) -> Vec<String> {
    let mut roles: BTreeMap<u32, BTreeSet<Role>> = BTreeMap::new();
    for place in places {
        roles.entry(place.queue).or_default().insert(place.role);
    }
    let label = |(queue, roles): (u32, BTreeSet<Role>)| {
        let only = (roles.len() == 1).then(|| roles.first().copied()).flatten();
        match only {
            Some(Role::Rx) => format!("{queue}r"),
            Some(Role::Tx) => format!("{queue}t"),
            _ => queue.to_string(),
        }
    };
    roles.into_iter().map(label).collect()
}
