//! `nicpin draw`: the nodes, caches, cores and CPUs of the machine, its interfaces, and the CPU of each queue, now and
//! as planned; and the sizes of caches and cores in the picture.

mod svg;

use std::borrow::Cow;
use std::collections::BTreeSet;

use itertools::Itertools as _;

use crate::screen::nodes::size;
use crate::screen::{count, enclose, join_nonempty, speed, text_if, text_or, with_prefix};
use nicpin::cpuset::{CpuSet, Inserted as _};
use nicpin::machine::{Machine, Node, QueueId, Role, Topology};
use nicpin::plan::{Plan, PlannedInterface, PlannedVector, Score};
use nicpin::report::nodes::{counts, home, neighbours};

/// With more queues, lines are a tangle: only the number of queues on each core is shown.
const MOST_LINES: usize = 64;

/// Width and height of a CPU, and the width of a core.
const CELL: (usize, usize) = (38, 29);
const CORE: usize = 42;
/// Between cores, around those of a cache, and above them.
const CORE_GAP: usize = 4;
const GROUP_PAD: usize = 7;
const GROUP_HEAD: usize = 8;
/// Between caches, and between interfaces.
const GAP: usize = 8;

pub struct Picture {
    /// The machine, when it was read, and its kernel's release, as far as known.
    pub origin: String,
    pub lines: bool,
    title: String,
    is_map: bool,
    /// By node; last the panel of interfaces and CPUs whose node is unknown, if any.
    panels: Vec<Panel>,
    cards: Vec<Card>,
    isolated: CpuSet,
    exclusive: CpuSet,
    /// The current and the planned scene; a single one if equal.
    scenes: Vec<Scene>,
}

#[derive(Default)]
struct Panel {
    name: String,
    /// Package and memory.
    about: String,
    neighbours: String,
    /// Cores, and whether they share an L3 cache.
    groups: Vec<(bool, Vec<CpuSet>)>,
    cards: Vec<usize>,
}

struct Card {
    key: String,
    name: String,
    size: String,
    /// Driver, speed, a link that is not up, and device.
    what: String,
    queues: BTreeSet<QueueId>,
}

struct Scene {
    title: &'static str,
    score: String,
    marks: BTreeSet<Mark>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    cpu: u32,
    card: usize,
    queue: QueueId,
    role: Role,
    /// The CPU is not on the interface's node.
    remote: bool,
}

impl Picture {
    pub fn new(machine: &Machine, plan: &Plan) -> Self {
        let topology = &machine.topology;
        let cards = plan.interfaces.iter().enumerate().map(card).collect_vec();
        let [now, planned] = [effective_cpus, planned_cpus].map(|cpus| marks(machine, plan, cpus));
        let scene = |title, score: &Score, marks| Scene {
            title,
            score: words(score),
            marks,
        };
        let scenes = if now == planned {
            vec![scene("Now, and as planned", &plan.score, planned)]
        } else {
            let now = scene("Now", &plan.score_now, now);
            vec![now, scene("Planned", &plan.score, planned)]
        };
        let is_map = cards.iter().map(|card| card.queues.len()).sum::<usize>() > MOST_LINES;
        let title = [
            count(topology.online.len(), "CPU"),
            count(topology.nodes.len(), "node"),
            count(cards.len(), "interface"),
        ];
        Self {
            origin: String::new(),
            lines: !is_map,
            title: title.join(", "),
            is_map,
            panels: panels(machine, plan),
            cards,
            isolated: topology.isolated_or_nohz(),
            exclusive: topology.exclusive.clone(),
            scenes,
        }
    }

    /// Keeps the planned state, or the one now.
    pub fn keep_state(&mut self, planned: bool) {
        if self.scenes.len() > 1 {
            self.scenes.remove(usize::from(!planned));
        }
    }
}

fn panels(machine: &Machine, plan: &Plan) -> Vec<Panel> {
    let topology = &machine.topology;
    let on = |node: Option<u32>| {
        plan.interfaces
            .iter()
            .positions(|interface| home(machine, plan, &interface.name) == node)
            .collect_vec()
    };
    let panel = |(&id, node): (&u32, &Node)| {
        let package = topology
            .packages
            .iter()
            .position(|package| node.cpus.is_subset(package))
            .filter(|_| topology.packages.len() > 1 && !node.cpus.is_empty());
        let memory = machine.memory.get(&id).map(|&memory| match memory {
            0 => "no memory".to_owned(),
            kib => size(Some(kib)),
        });
        let about = [
            &with_prefix("package ", package),
            &text_or(memory, ""),
            text_if(node.cpus.is_empty(), "no CPUs"),
        ];
        Panel {
            name: format!("node {id}"),
            about: join_nonempty(", ", about),
            neighbours: counts(&neighbours(machine, Some(id))),
            groups: groups(topology, &node.cpus),
            cards: on(Some(id)),
        }
    };
    let without_node = topology
        .online
        .iter()
        .filter(|cpu| topology.node_of(*cpu).is_none());
    let unknown = Panel {
        name: "node unknown".to_owned(),
        groups: groups(topology, &without_node.collect()),
        cards: on(None),
        ..Panel::default()
    };
    topology
        .nodes
        .iter()
        .map(panel)
        .chain(Some(unknown).filter(|panel| !panel.groups.is_empty() || !panel.cards.is_empty()))
        .collect()
}

fn groups(topology: &Topology, cpus: &CpuSet) -> Vec<(bool, Vec<CpuSet>)> {
    let (mut left, mut groups) = (cpus.clone(), Vec::new());
    for (is_l3, cpus) in topology
        .l3_domains
        .iter()
        .map(|domain| (true, domain))
        .chain([(false, cpus)])
    {
        let cpus = cpus.intersection(&left);
        left = left.difference(&cpus);
        let cores = topology
            .cores_with(&cpus)
            .map(|core| core.intersection(&cpus))
            .collect_vec();
        if !cores.is_empty() {
            groups.push((is_l3, cores));
        }
    }
    groups
}

fn card((at, interface): (usize, &PlannedInterface)) -> Card {
    let queues: BTreeSet<_> = active(interface)
        .filter_map(PlannedVector::queue_id)
        .inserted();
    let what = [
        &*text_or(&interface.driver, ""),
        &text_or(interface.speed_mbps.map(speed), ""),
        text_if(interface.link != "up", &interface.link),
        &interface.device,
    ];
    // A to Z, then AA, BB and so on.
    let letter = String::from_iter(('A'..='Z').cycle().nth(at));
    Card {
        key: letter.repeat(at / 26 + 1),
        name: interface.name.clone(),
        size: match queues.len() {
            0 => "no queue with an IRQ".to_owned(),
            queues => count(queues, "queue"),
        },
        what: join_nonempty(", ", what),
        queues,
    }
}

fn active(interface: &PlannedInterface) -> impl Iterator<Item = &PlannedVector> {
    interface.vectors.iter().filter(|vector| vector.is_active())
}

fn effective_cpus(vector: &PlannedVector, online: &CpuSet) -> CpuSet {
    let known = vector.known_cpus(online).map(Cow::into_owned);
    known
        .or_else(|| vector.effective.clone())
        .unwrap_or_default()
}

/// The effective CPUs of a vector that is left unchanged.
fn planned_cpus(vector: &PlannedVector, online: &CpuSet) -> CpuSet {
    (vector.cpus.clone()).unwrap_or_else(|| effective_cpus(vector, online))
}

fn marks(
    machine: &Machine,
    plan: &Plan,
    cpus: fn(&PlannedVector, &CpuSet) -> CpuSet,
) -> BTreeSet<Mark> {
    let mut marks = BTreeSet::new();
    for (card, interface) in plan.interfaces.iter().enumerate() {
        for vector in active(interface) {
            let near = interface.local_to(vector, machine);
            let Some(queue) = vector.queue_id() else {
                continue;
            };
            for cpu in cpus(vector, &machine.topology.online).iter() {
                marks.insert(Mark {
                    cpu,
                    card,
                    queue,
                    role: vector.role,
                    remote: near.as_ref().is_some_and(|near| !near.contains(cpu)),
                });
            }
        }
    }
    marks
}

fn words(score: &Score) -> String {
    let percent = score.local.map(|local| (local * 100.0).floor());
    let most = count(score.max_vectors_per_core, "queue");
    let isolated = Some(score.on_isolated).filter(|isolated| *isolated > 0);
    join_nonempty(
        ", ",
        [
            &enclose("", percent, "% of the queue IRQs on the local node"),
            &format!("at most {most} on a core"),
            &enclose("", isolated, " on isolated CPUs"),
        ],
    )
}

/// `3` for a queue, `3r` or `3t` for one of its vectors when the other is on another CPU, `i60` for IRQ 60 of an
/// unknown queue.
fn labels(marks: &[&Mark]) -> Vec<String> {
    marks
        .chunk_by(|a, b| a.queue == b.queue)
        .map(|marks| {
            let letter = match marks.iter().map(|mark| mark.role).exactly_one() {
                Ok(Role::Rx) => "r",
                Ok(Role::Tx) => "t",
                _ => "",
            };
            match marks[0].queue {
                QueueId::Number(number) => format!("{number}{letter}"),
                QueueId::OfIrq(irq) => format!("i{irq}"),
            }
        })
        .collect()
}

fn core_height(core: &CpuSet) -> usize {
    core.len() * CELL.1 + CORE - CELL.0
}

/// Cores in a row, the height of one, and the width and height of the box. Up to 8 cores are in one row, more in a
/// number that fills the rows.
fn grid(cores: &[CpuSet]) -> (usize, usize, usize, usize) {
    let count = cores.len();
    let mut full = (6..=16).rev().filter(|columns| count % columns == 0);
    let columns = match count {
        0..=8 => count,
        _ => full.next().unwrap_or(12),
    };
    let high = cores.iter().map(core_height).max().unwrap_or(0) + CORE_GAP;
    let pads = 2 * GROUP_PAD - CORE_GAP;
    let h = count.div_ceil(columns) * high + pads + GROUP_HEAD;
    (columns, high, columns * (CORE + CORE_GAP) + pads, h)
}

/// Makes the node about twice as wide as high.
fn widest_row(panel: &Panel) -> usize {
    let sizes = panel.groups.iter().map(|(_, cores)| grid(cores));
    let widest = sizes.clone().map(|(.., w, _)| w + GAP).max().unwrap_or(GAP);
    let highest = sizes.map(|(.., h)| h).max().unwrap_or(0);
    let count = panel.groups.len();
    (1..=count)
        .find(|across| across * widest >= 3 * count.div_ceil(*across) * highest / 2)
        .unwrap_or(count.max(1))
        * widest
        - GAP
}
