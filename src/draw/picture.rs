//! The content of `nicpin draw`: the machine by node, cache, core and CPU, its interfaces, and the CPU of each queue, now
//! and as planned. The renderer decides on positions.

use itertools::Itertools as _;
use std::collections::{BTreeMap, BTreeSet};

use nicpin::cpuset::CpuSet;
use nicpin::machine::wording::{count, speed};
use nicpin::machine::{Machine, Role, Topology};
use nicpin::plan::{Plan, PlannedInterface, PlannedVector, Score};
use nicpin::report::nodes::{counts, home, neighbours};

/// With more queues than this, lines are a tangle.
const MOST_LINES: usize = 64;

/// The picture of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// The machine in short.
    pub title: String,
    /// Which machine it is, when it was read, and the release of its kernel, as far as known.
    pub origin: String,
    /// Whether each queue has a line to its CPU.
    pub lines: bool,
    /// Whether there are so many queues that only their number on each core is shown.
    pub is_map: bool,
    /// The plan's hash.
    pub hash: String,
    /// By id.
    pub nodes: Vec<NodePicture>,
    /// The interfaces of the plan.
    pub cards: Vec<InterfacePicture>,
    /// CPUs that are isolated or `nohz_full`.
    pub isolated: CpuSet,
    /// CPUs that a cgroup has alone.
    pub exclusive: CpuSet,
    /// The current and the planned scene; a single one when they are equal.
    pub scenes: Vec<Scene>,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodePicture {
    pub id: u32,
    /// The package that has all its CPUs, counted from 0; `None` where the machine has only one, or it is unknown.
    pub package: Option<usize>,
    /// `None` where it is unknown.
    pub memory_kib: Option<u64>,
    /// What else is on it, in words; may be empty.
    pub neighbours: String,
    /// Cores by the L3 cache that they share.
    pub groups: Vec<CacheGroup>,
}

/// Cores that share an L3 cache.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheGroup {
    /// Whether they share an L3 cache; else they are the other cores of a node.
    pub is_l3: bool,
    /// The CPUs of each core.
    pub cores: Vec<CpuSet>,
}

/// An interface.
#[derive(Debug, Clone, PartialEq)]
pub struct InterfacePicture {
    /// The letter that stands for it: A, B, and so on.
    pub key: String,
    pub name: String,
    /// Driver, speed, a link that is not up, and device.
    pub what: String,
    /// The node whose panel it is drawn in.
    pub node: Option<u32>,
    /// Queues that are in use and have a vector.
    pub queues: Vec<u32>,
}

impl InterfacePicture {
    /// How many queues it has, in words.
    pub(super) fn queues_text(&self) -> String {
        match self.queues.len() {
            0 => "no queue with a vector".to_owned(),
            queues => count(queues, "queue"),
        }
    }
}

/// The CPUs of all queues, now or planned.
#[derive(Debug, Clone, PartialEq)]
pub struct Scene {
    /// The heading.
    pub title: &'static str,
    /// The score in words.
    pub score: String,
    /// One mark for each vector and CPU.
    pub places: BTreeSet<QueueMark>,
}

/// A queue's vector on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueMark {
    pub cpu: u32,
    /// Index of the interface.
    pub card: usize,
    pub queue: u32,
    /// The vector's role.
    pub role: Role,
    /// Whether the CPU is not on the interface's node.
    pub remote: bool,
}

impl Picture {
    /// The picture of a plan's interfaces on a machine.
    pub fn new(machine: &Machine, plan: &Plan) -> Self {
        let topology = &machine.topology;
        let cards: Vec<InterfacePicture> = plan
            .interfaces
            .iter()
            .enumerate()
            .map(|(at, interface)| card(machine, plan, at, interface))
            .collect();
        let queues: usize = cards.iter().map(|card| card.queues.len()).sum();
        let now = places(topology, plan, now);
        let planned = places(topology, plan, planned);
        let scene = |title, score: &Score, places| Scene {
            title,
            score: words(score),
            places,
        };
        let scenes = if now == planned {
            vec![scene("Now, and as planned", &plan.score, planned)]
        } else {
            vec![
                scene("Now", &plan.score_now, now),
                scene("Planned", &plan.score, planned),
            ]
        };
        Self {
            origin: String::new(),
            lines: queues <= MOST_LINES,
            is_map: queues > MOST_LINES,
            title: format!(
                "{}, {}, {}",
                count(topology.online.len(), "CPU"),
                count(topology.nodes.len(), "node"),
                count(cards.len(), "interface")
            ),
            hash: plan.hash.clone(),
            nodes: nodes(machine),
            cards,
            isolated: topology.isolated_or_nohz(),
            exclusive: topology.exclusive.clone(),
            scenes,
        }
    }
}

impl Picture {
    /// The picture with one scene: where the queues are planned, or where they are now.
    #[must_use]
    pub fn with_one_scene(mut self, planned: bool) -> Self {
        let other = usize::from(!planned);
        if self.scenes.len() > 1 {
            self.scenes.remove(other);
        }
        self
    }
}

fn nodes(machine: &Machine) -> Vec<NodePicture> {
    let topology = &machine.topology;
    let of = |(&id, node): (&u32, &nicpin::machine::Node)| {
        let mut left = node.cpus.clone();
        let mut groups = Vec::new();
        for domain in &topology.l3_domains {
            let cpus = domain.intersection(&left);
            left = left.difference(&cpus);
            groups.push(CacheGroup {
                is_l3: true,
                cores: cores(topology, &cpus),
            });
        }
        groups.push(CacheGroup {
            is_l3: false,
            cores: cores(topology, &left),
        });
        groups.retain(|group| !group.cores.is_empty());
        let packages = || {
            topology
                .packages
                .iter()
                .position(|package| node.cpus.is_subset(package))
        };
        let has_package = topology.packages.len() > 1 && !node.cpus.is_empty();
        let package = has_package.then(packages).flatten();
        let neighbours = counts(&neighbours(machine, Some(id)));
        NodePicture {
            id,
            package,
            memory_kib: machine.memory.get(&id).copied(),
            neighbours,
            groups,
        }
    };
    topology.nodes.iter().map(of).collect()
}

fn cores(topology: &Topology, cpus: &CpuSet) -> Vec<CpuSet> {
    let cores = topology.cores.iter().map(|core| core.intersection(cpus));
    cores.filter(|core| !core.is_empty()).collect()
}

fn card(
    machine: &Machine,
    plan: &Plan,
    at: usize,
    interface: &PlannedInterface,
) -> InterfacePicture {
    let speed = interface.speed_mbps.map(speed);
    let link = (interface.link != "up").then(|| interface.link.clone());
    let device = (!interface.device.is_empty()).then(|| interface.device.clone());
    let words = [interface.driver.clone(), speed, link, device];
    let queues: BTreeSet<u32> = active(interface)
        .filter_map(|vector| vector.queue)
        .collect();
    InterfacePicture {
        key: key(at),
        name: interface.name.clone(),
        what: words.into_iter().flatten().join(", "),
        node: home(machine, plan, &interface.name),
        queues: queues.into_iter().collect(),
    }
}

/// A to Z, then AA, AB and so on.
fn key(at: usize) -> String {
    let letter = |n: usize| char::from(b'A' + u8::try_from(n % 26).unwrap_or(0)).to_string();
    if at < 26 {
        letter(at)
    } else {
        key(at / 26 - 1) + &letter(at)
    }
}

fn active(interface: &PlannedInterface) -> impl Iterator<Item = &PlannedVector> {
    interface
        .vectors
        .iter()
        .filter(|vector| vector.role.is_queue() && !vector.idle)
}

/// The effective CPUs of a vector, if the kernel reports them.
fn now(vector: &PlannedVector) -> CpuSet {
    match &vector.effective {
        Some(cpus) => cpus.clone(),
        None if vector.affinity.len() == 1 => vector.affinity.clone(),
        None => CpuSet::new(),
    }
}

/// The planned CPUs of a vector; the effective ones of a vector that is left unchanged.
fn planned(vector: &PlannedVector) -> CpuSet {
    vector.cpus.clone().unwrap_or_else(|| now(vector))
}

fn places(
    topology: &Topology,
    plan: &Plan,
    cpus: fn(&PlannedVector) -> CpuSet,
) -> BTreeSet<QueueMark> {
    let mut places = BTreeSet::new();
    for (card, interface) in plan.interfaces.iter().enumerate() {
        for vector in active(interface) {
            let own = vector.node.or(interface.local_node());
            let near = own.map(|own| topology.cpus_near(own));
            for cpu in cpus(vector).iter() {
                let remote = near.as_ref().is_some_and(|near| !near.contains(cpu));
                let Some(queue) = vector.queue else { continue };
                places.insert(QueueMark {
                    cpu,
                    card,
                    queue,
                    role: vector.role,
                    remote,
                });
            }
        }
    }
    places
}

fn words(score: &Score) -> String {
    let local = score.local.map_or(String::new(), |local| {
        format!(
            "{:.0}% of the queue vectors on the local node, ",
            (local * 100.0).floor()
        )
    });
    let queues = count(score.max_vectors_per_core, "queue");
    let isolated = match score.on_isolated {
        0 => String::new(),
        count => format!(", {count} on isolated CPUs"),
    };
    format!("{local}at most {queues} on a core{isolated}")
}

/// The queues of an interface on one CPU, in short: `3` for a queue, `3r` or `3t` for one of its vectors when the other is
/// on another CPU.
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
