//! A plan as text: a line for each run of queues whose CPUs follow one pattern; on request one for each queue, with the
//! reasons.

use itertools::Itertools as _;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::screen::page::{Page, Screen};
use crate::screen::text::{count, heading, notes, ranges, with_the_plan};
use nicpin::cpuset::CpuSet;
use nicpin::machine::setting::{on_or_off, queue_file, shown};
use nicpin::machine::{Role, Source};
use nicpin::plan::{HostSummary, NodeSource, Plan, PlannedInterface, PlannedThread, PlannedVector};

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Runs of queues.
    Runs,
    /// Each queue.
    Queues,
    /// Each queue, with all reasons.
    Reasons,
}

/// More runs of one kind are one line: for a few interfaces, and for many.
const MOST_RUNS: [usize; 2] = [8, 4];
const FEW_INTERFACES: usize = 4;
/// Longer lists of numbers are counted.
const LONGEST: usize = 24;
/// The longest list of the CPUs where interrupts arrive now.
const SHORT: usize = 8;

/// `apply`: the command that writes it. `masks`: also each file with the mask to write and the current one.
pub fn plan(plan: &Plan, detail: Detail, masks: bool, apply: &str) -> Page {
    let mut page = Page::default();
    let all = count(plan.writes.len() + plan.unchanged, "setting");
    let apply = apply.replace(' ', "\u{a0}");
    page.item(
        "",
        match plan.writes.len() {
            0 if plan.unchanged == 0 => "There is no setting to plan.".to_owned(),
            0 => format!("{all} as planned; none would change."),
            writes => format!("{writes} of {all} would change. Apply: {apply}"),
        },
    );
    for change in &plan.channels {
        let then = "the rest is planned again for the new queues";
        page.item(
            "Channels: ",
            format!("{}: {}; {then}", change.command, change.why),
        );
    }
    for interface in &plan.interfaces {
        page.line("");
        page.add(self::interface(plan, interface, detail));
    }
    page.line("");
    if masks && !plan.writes.is_empty() {
        let mask = |write: &nicpin::plan::Write| {
            let change = format!("{} -> {}", write.current, write.value);
            vec![shown(&write.path).into_owned(), change]
        };
        page.table(0, plan.writes.iter().map(mask));
        page.line("");
    }
    for write in plan
        .writes
        .iter()
        .filter(|write| write.interface.is_empty())
    {
        let (now, planned, file) = (&write.current, &write.value, shown(&write.path));
        page.item("", format!("{file}: {now} -> {planned} ({}).", write.why));
    }
    page.add(with_the_plan(&plan.score_now, &plan.score));
    let of_interfaces = plan.interfaces.iter();
    let of_interfaces =
        of_interfaces.flat_map(|one| one.notes.iter().map(|note| (&*one.name, note)));
    let of_machine = plan.notes.iter().map(|note| ("", note));
    page.add(notes("", of_interfaces.chain(of_machine), (usize::MAX, "")));
    let more = match detail {
        Detail::Runs => "; each queue: nicpin plan -v; the reasons: nicpin plan --explain",
        Detail::Queues => "; the reasons: nicpin plan --explain",
        Detail::Reasons => "",
    };
    page.item("", format!("Plan {}{more}", plan.hash));
    page
}

/// A plan as JSON, with its explanation.
#[derive(Serialize)]
pub struct Explained<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    /// The lines of each interface.
    explanation: BTreeMap<&'a str, Vec<String>>,
}

impl<'a> Explained<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let unbroken = Screen {
            width: usize::MAX,
            colour: false,
        };
        let explained = |one: &'a PlannedInterface| {
            let text = interface(plan, one, Detail::Reasons).show(unbroken);
            let words = |line: &str| line.split_whitespace().join(" ");
            (one.name.as_str(), text.lines().map(words).collect())
        };
        Self {
            plan,
            explanation: plan.interfaces.iter().map(explained).collect(),
        }
    }
}

fn interface(plan: &Plan, interface: &PlannedInterface, detail: Detail) -> Page {
    let mut page = Page::default();
    let device = match &interface.parent {
        Some(parent) => format!("{} (VF of {parent})", interface.device),
        None => interface.device.clone(),
    };
    let mut head = heading(
        &plan.host,
        (&interface.name, interface.driver.as_deref(), &device),
        interface.speed_mbps,
        (interface.node, interface.node_source),
        (&interface.candidates, interface.candidate_cores),
    );
    if interface.link != "up" {
        head += &format!("; link {}", interface.link);
    }
    if !interface.via.is_empty() {
        head += &format!("; via {}", interface.via.join(", "));
    }
    let rules: Vec<String> = interface.rules.iter().map(usize::to_string).collect();
    if !rules.is_empty() {
        head += &format!("; by rule {}", rules.join(", "));
    }
    page.item("", head);
    if detail == Detail::Reasons {
        page.item("  ", format!("node {}", node(interface)));
        for left in &interface.left_out {
            page.item(
                "  ",
                format!("CPUs {} left out: {}", left.cpus.short(), left.why),
            );
        }
    }
    let mut rows = Rows {
        host: &plan.host,
        detail,
        most_runs: MOST_RUNS[usize::from(plan.interfaces.len() > FEW_INTERFACES)],
        lines: Vec::new(),
        // The head says it.
        reason: match (interface.node, interface.node_source) {
            (None, _) => "node unknown".to_owned(),
            (Some(node), NodeSource::SingleNode) => format!("node {node}, the only node"),
            (Some(node), _) => format!("local (node {node})"),
        },
    };
    let vectors = interface.vectors.iter().map(Item::from);
    rows.items("IRQ", vectors.collect());
    rows.items(
        "process",
        interface.threads.iter().map(Item::from).collect(),
    );
    rows.steering(plan, interface);
    page.table(2, rows.lines);
    page
}

fn node(interface: &PlannedInterface) -> String {
    let (device, node) = (
        &interface.device,
        interface
            .node
            .map_or(String::new(), |node| node.to_string()),
    );
    match interface.node_source {
        NodeSource::NumaNode => format!("{node}: numa_node of {device}"),
        NodeSource::LocalCpulist if interface.node.is_some() => {
            format!(
                "{node}: it has all CPUs of local_cpulist of {device}, whose numa_node is not set"
            )
        }
        NodeSource::LocalCpulist => {
            format!("unknown; local_cpulist of {device} names the local CPUs")
        }
        NodeSource::Nearest => {
            format!("{node}: nearest to the node of {device}, which has no usable CPU")
        }
        NodeSource::SingleNode => format!("{node}: the only node with CPUs"),
        NodeSource::Policy => format!("{node}: it has all CPUs that the policy names"),
        NodeSource::Unknown => {
            format!(
                "unknown: numa_node of {device} is no node of this machine, and local_cpulist is all CPUs"
            )
        }
    }
}

/// A vector or a thread, with its CPUs now and planned.
struct Item<'a> {
    label: &'static str,
    number: Option<u32>,
    /// The IRQ or the process.
    id: u32,
    now: &'a CpuSet,
    effective: Option<&'a CpuSet>,
    planned: Option<&'a CpuSet>,
    /// The core on which it is placed.
    core: Option<&'a CpuSet>,
    why: &'a str,
    /// What else decided, and how the queue is known.
    more: String,
}

impl Item<'_> {
    /// Why it is where it is, without the other queues there.
    fn reason(&self) -> &str {
        match self.label {
            "control" => self.why,
            _ => self.why.split("; ").next().unwrap_or_default(),
        }
    }

    fn continues(&self, before: &Self) -> bool {
        let follows = match (before.number, self.number) {
            (Some(before), Some(number)) => number == before + 1,
            (before, number) => before == number,
        };
        follows
            && self.planned.is_some() == before.planned.is_some()
            && self.reason() == before.reason()
    }
}

impl<'a> From<&'a PlannedVector> for Item<'a> {
    fn from(vector: &'a PlannedVector) -> Self {
        let source = match vector.source {
            Source::Netlink => "by netlink",
            Source::Name => "by its name",
            Source::Order => "by the order of IRQs",
        };
        let mut more = format!("{} {source}", vector.action);
        if let Some(placement) = &vector.placement {
            let queues = count(placement.queues_on_core, "queue");
            more += &format!("; core {} had {queues}", placement.core);
            if !placement.l3.is_empty() {
                let (l3, queues) = (placement.l3.short(), placement.queues_on_l3);
                more += &format!(", L3 domain {l3} had {queues}");
            }
        }
        Self {
            label: match vector.role {
                Role::Combined => "queue",
                Role::Rx => "rx",
                Role::Tx => "tx",
                Role::Rdma => "rdma",
                Role::Control => "control",
            },
            number: vector.queue,
            id: vector.irq,
            now: &vector.affinity,
            effective: vector.effective.as_ref(),
            planned: vector.cpus.as_ref(),
            core: vector.placement.as_ref().map(|placement| &placement.core),
            why: &vector.why,
            more,
        }
    }
}

impl<'a> From<&'a PlannedThread> for Item<'a> {
    fn from(thread: &'a PlannedThread) -> Self {
        Self {
            label: match thread.role {
                Some(Role::Rx) => "thread rx",
                Some(Role::Tx) => "thread tx",
                _ => "thread",
            },
            number: thread.queue,
            id: thread.pid,
            now: &thread.affinity,
            effective: None,
            planned: thread.cpus.as_ref(),
            core: None,
            why: &thread.why,
            more: match thread.source {
                Some(Source::Order) => "by the order of NAPI instances".to_owned(),
                Some(_) => "by netlink".to_owned(),
                None => "unknown queue".to_owned(),
            },
        }
    }
}

/// A queue with its steering, now and planned.
struct Steered<'a> {
    number: u32,
    now: Option<CpuSet>,
    planned: Option<&'a CpuSet>,
    why: &'a str,
}

/// The lines of an interface: what, which, its CPUs now and planned, and why.
struct Rows<'a> {
    host: &'a HostSummary,
    detail: Detail,
    most_runs: usize,
    lines: Vec<Vec<String>>,
    /// That of the last line.
    reason: String,
}

impl<'a> Rows<'a> {
    /// The reason is left out where it is that of the line above.
    fn add(&mut self, [what, which, change]: [String; 3], reason: &str, more: &str) {
        let is_new = self.detail == Detail::Reasons || self.reason != reason;
        reason.clone_into(&mut self.reason);
        let why = [if is_new { reason } else { "" }, more];
        let why: Vec<&str> = why.into_iter().filter(|why| !why.is_empty()).collect();
        self.lines.push(vec![what, which, change, why.join(", ")]);
    }

    /// A line for what is not placed: its reason follows in the same cell.
    fn add_setting(&mut self, what: &str, which: String, change: &str, why: &str) {
        self.lines
            .push(vec![what.to_owned(), which, format!("{change}; {why}")]);
    }

    fn items(&mut self, ids: &str, items: Vec<Item<'_>>) {
        let mut by_label: Vec<Vec<Item<'_>>> = Vec::new();
        for item in items {
            match by_label
                .iter_mut()
                .find(|alike| alike[0].label == item.label)
            {
                Some(alike) => alike.push(item),
                None => by_label.push(vec![item]),
            }
        }
        for alike in &by_label {
            let mut cores: Vec<&CpuSet> = Vec::new();
            let mut taken = CpuSet::new();
            for run in self.runs(alike) {
                let pass = pass(&run, &mut cores, &mut taken);
                let numbers: Vec<u32> = run.iter().filter_map(|item| item.number).collect();
                let several = if run[0].label == "queue" && numbers.len() > 1 {
                    "s"
                } else {
                    ""
                };
                let what = format!("{}{several} {}", run[0].label, ranges(&numbers));
                let ids = format!(
                    "{ids} {}",
                    listed(&run.iter().map(|item| item.id).collect::<Vec<_>>())
                );
                let change = self.change(&run);
                match self.detail {
                    // That it is unchanged says enough.
                    Detail::Runs if run[0].label == "control" && run[0].planned.is_none() => {
                        self.add([what, ids, change], "", "");
                    }
                    Detail::Runs => self.add([what, ids, change], run[0].reason(), &pass),
                    Detail::Queues => self.add([what, ids, change], run[0].why, ""),
                    Detail::Reasons => self.add([what, ids, change], run[0].why, &run[0].more),
                }
            }
        }
    }

    /// Consecutive queues for the same reason, none of which shares a core with another. If there are too many runs, all
    /// for the same reason are one.
    fn runs<'i>(&self, items: &'i [Item<'i>]) -> Vec<Vec<&'i Item<'i>>> {
        let mut runs: Vec<Vec<&Item<'_>>> = Vec::new();
        for item in items {
            let continued = runs.last_mut().filter(|run| {
                let is_new_core =
                    item.core.is_none() || run.iter().all(|other| other.core != item.core);
                self.detail == Detail::Runs
                    && is_new_core
                    && run.last().is_some_and(|last| item.continues(last))
            });
            match continued {
                Some(run) => run.push(item),
                None => runs.push(vec![item]),
            }
        }
        if self.detail == Detail::Runs && runs.len() > self.most_runs {
            let key = |item: &Item<'_>| (item.planned.is_some(), item.reason().to_owned());
            let mut alike: BTreeMap<(bool, String), Vec<&Item<'_>>> = BTreeMap::new();
            for item in items {
                alike.entry(key(item)).or_default().push(item);
            }
            runs = alike.into_values().collect();
            runs.sort_by_key(|run| run[0].number);
        }
        runs
    }

    /// The CPUs of a run, now and planned.
    fn change(&self, run: &[&Item<'_>]) -> String {
        let planned: Option<Vec<&CpuSet>> = run.iter().map(|item| item.planned).collect();
        let Some(planned) = planned else {
            return "unchanged".to_owned();
        };
        let now: Vec<&CpuSet> = run.iter().map(|item| item.now).collect();
        let effective: Option<Vec<&CpuSet>> = run.iter().map(|item| item.effective).collect();
        let on = effective
            .filter(|_| now.iter().any(|cpus| cpus.len() > 1))
            .map(CpuSet::union_of);
        let on = on.map(|on| on.short()).filter(|on| on.len() <= SHORT);
        let on = on.map_or(String::new(), |on| format!(" (on {on})"));
        change(&now, &planned, |sets| places(self.host, sets), &on)
    }

    fn steering(&mut self, plan: &Plan, interface: &'a PlannedInterface) {
        let writes = plan
            .writes
            .iter()
            .filter(|write| *write.interface == *interface.name);
        let current: BTreeMap<&str, &str> = writes
            .map(|write| (&*write.path, &*write.current))
            .collect();
        let now = |way: &str, queue: u32, file: &str| {
            let path = queue_file(&interface.name, way, queue, file);
            CpuSet::parse_kernel_mask(current.get(&*path)?).ok()
        };
        let tx = interface.tx_queues.iter();
        let xps = tx.clone().map(|tx| Steered {
            number: tx.queue,
            now: now("tx", tx.queue, "xps_cpus"),
            planned: tx.xps_cpus.as_ref(),
            why: &tx.why,
        });
        self.steered(("XPS", "tx", "none"), xps.collect());
        for tx in tx {
            if let Some(queues) = tx.xps_rxqs.as_ref().filter(|queues| !queues.is_empty()) {
                let change = format!("flows of rx {queues} first");
                self.add_setting("XPS", format!("tx {}", tx.queue), &change, "by the policy");
            }
        }
        let rx = interface.rx_queues.iter();
        let rps = rx.clone().map(|rx| Steered {
            number: rx.queue,
            now: now("rx", rx.queue, "rps_cpus"),
            planned: rx.rps_cpus.as_ref(),
            why: &rx.why,
        });
        self.steered(("RPS", "rx", "off"), rps.collect());
        let rfs: Vec<_> = rx
            .filter_map(|rx| Some((rx.queue, rx.rps_flow_cnt?)))
            .collect();
        for alike in rfs.chunk_by(|a, b| a.1 == b.1) {
            let queues: Vec<u32> = alike.iter().map(|(queue, _)| *queue).collect();
            let (change, why) = match alike[0].1 {
                0 => ("off".to_owned(), "by the policy"),
                flows => (format!("{flows} flows each"), "its share of the flow table"),
            };
            self.add_setting("RFS", format!("rx {}", ranges(&queues)), &change, why);
        }
        if let Some(rss) = &interface.rss {
            if rss.queues.is_some() || rss.now != rss.possible {
                let change = match &rss.queues {
                    None => format!("to {}", rss.now),
                    Some(queues) if *queues == rss.now => format!("to {queues}"),
                    Some(queues) => format!("to {} -> {queues}", rss.now),
                };
                self.add_setting("RSS", format!("rx {}", rss.possible), &change, &rss.why);
            }
        }
        if let Some(on) = interface.ntuple {
            let why = "accelerated RFS: the device sends flows to the CPUs of their programs";
            self.add_setting("ntuple", String::new(), on_or_off(on), why);
        }
    }

    /// Steering of one kind: a line for all queues with the same reason, or for each. `none`: the word for no CPU.
    fn steered(&mut self, (what, way, none): (&str, &str, &str), queues: Vec<Steered<'_>>) {
        let mut groups: Vec<Vec<Steered<'_>>> = Vec::new();
        for queue in queues {
            let is_alike = |group: &&mut Vec<Steered<'_>>| {
                self.detail == Detail::Runs
                    && (group[0].planned.is_some(), group[0].why)
                        == (queue.planned.is_some(), queue.why)
            };
            match groups.iter_mut().find(is_alike) {
                Some(group) => group.push(queue),
                None => groups.push(vec![queue]),
            }
        }
        for group in groups {
            let numbers: Vec<u32> = group.iter().map(|queue| queue.number).collect();
            let planned: Option<Vec<&CpuSet>> = group.iter().map(|queue| queue.planned).collect();
            let change = planned.map_or("unchanged".to_owned(), |planned| {
                let pairs = group.iter().zip(&planned);
                let now: Vec<&CpuSet> = pairs
                    .map(|(queue, planned)| queue.now.as_ref().unwrap_or(planned))
                    .collect();
                let sets = |sets: &[&CpuSet]| match sets.iter().all(|set| set.is_empty()) {
                    true => none.to_owned(),
                    false if sets.iter().all(|set| *set == sets[0]) => places(self.host, sets),
                    false => sizes(sets),
                };
                change(&now, &planned, sets, "")
            });
            // `off; off: why` says twice that it is off.
            let why = group[0].why;
            let why = why.strip_prefix(&format!("{change}: ")).unwrap_or(why);
            self.add_setting(what, format!("{way} {}", ranges(&numbers)), &change, why);
        }
    }
}

/// How the queues of a run follow those before it, of which `cores` and CPUs are `taken`.
fn pass<'a>(run: &[&Item<'a>], cores: &mut Vec<&'a CpuSet>, taken: &mut CpuSet) -> String {
    let of_run: Option<Vec<&CpuSet>> = run.iter().map(|item| item.core).collect();
    let planned = CpuSet::union_of(run.iter().filter_map(|item| item.planned));
    let Some(of_run) = of_run else {
        return String::new();
    };
    let known = of_run.iter().filter(|core| cores.contains(core)).count();
    let is_new = !planned.intersects(taken);
    let on_one = |core: &&CpuSet| of_run.iter().filter(|other| *other == core).count();
    let most = of_run.iter().map(on_one).max().unwrap_or(0);
    cores.extend(&of_run);
    taken.add(&planned);
    match (run.len(), known) {
        _ if most > 1 => format!("up to {most} on a core"),
        (1, 0) => String::new(),
        (_, 0) => "one per core".to_owned(),
        (1, _) if is_new => "its sibling".to_owned(),
        (many, _) if known == many && is_new => "their siblings".to_owned(),
        (many, _) if known == many => "one more per core".to_owned(),
        _ => String::new(),
    }
}

/// `now -> planned`, or one of them where they are the same. `on`: more about now.
fn change(
    now: &[&CpuSet],
    planned: &[&CpuSet],
    text: impl Fn(&[&CpuSet]) -> String,
    on: &str,
) -> String {
    let (before, after) = (text(now), text(planned));
    let are_single = |sets: &[&CpuSet]| sets.iter().all(|set| set.len() == 1);
    let after = match now == planned {
        true => return after,
        false if before != after => after,
        false if after.ends_with("each") => after.replace(" CPU", " other CPU"),
        false if are_single(planned) && !are_single(now) => "one of these each".to_owned(),
        false => "the same in another order".to_owned(),
    };
    format!("{before}{on} -> {after}")
}

/// Numbers in their order, or how many there are.
fn listed(numbers: &[u32]) -> String {
    let ascending = || numbers.chunk_by(|a, b| a < b);
    let text = ascending().map(ranges).join(",");
    let set = |numbers: &[u32]| numbers.iter().copied().collect::<CpuSet>();
    let short = || ascending().map(|numbers| set(numbers).short());
    match (numbers.iter().min(), numbers.iter().max()) {
        (Some(first), Some(last)) if text.len() > LONGEST => {
            let short = short().join(",");
            if short.len() > LONGEST {
                format!("{first} to {last} ({})", numbers.len())
            } else {
                short
            }
        }
        _ => text,
    }
}

/// The CPUs of several vectors, in their order where that is short.
fn places(host: &HostSummary, sets: &[&CpuSet]) -> String {
    let is_same = sets.iter().all(|set| *set == sets[0]);
    let single: Option<Vec<u32>> = sets
        .iter()
        .map(|set| set.first().filter(|_| set.len() == 1))
        .collect();
    match single {
        Some(cpus) if is_same => format!("CPU {}", cpus[0]),
        Some(cpus) => {
            let listed = listed(&cpus);
            let all = CpuSet::union_of(sets.iter().copied());
            match all.short() {
                _ if !listed.contains(' ') => format!("CPUs {listed}"),
                short if short.len() <= LONGEST => format!("CPUs {short}"),
                _ => {
                    let node = host.nodes.iter().find(|node| all.is_subset(&node.cpus));
                    let node = node.map_or(String::new(), |node| format!(" of node {}", node.node));
                    format!("{} CPUs{node}", all.len())
                }
            }
        }
        None if is_same => {
            let set = sets[0];
            let node = host.nodes.iter().find(|node| node.cpus == *set);
            match node.filter(|_| host.nodes.len() > 1) {
                _ if set.is_empty() => "none".to_owned(),
                Some(node) => format!("any of node {}", node.node),
                None if host.online.is_subset(set) => "any CPU".to_owned(),
                None => format!("CPUs {}", set.short()),
            }
        }
        None => sizes(sets),
    }
}

/// `2 CPUs each`, `1 to 3 CPUs each`.
fn sizes(sets: &[&CpuSet]) -> String {
    let sizes = || sets.iter().map(|set| set.len());
    match (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0)) {
        (least, most) if least == most => format!("{} each", count(most, "CPU")),
        (least, most) => format!("{least} to {most} CPUs each"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_their_order_or_are_counted() {
        assert_eq!(listed(&[1, 2, 3, 0]), "1-3,0");
        assert_eq!(listed(&[36, 38, 40, 42]), "36,38,40,42");
        let even: Vec<u32> = (0..40).map(|n| n * 2).collect();
        assert_eq!(listed(&even), "0-78:2");
        let many: Vec<u32> = (0..40).map(|n| n * n % 97).collect();
        assert_eq!(listed(&many), "0 to 96 (40)");
    }
}
