//! A plan as text: a line for each run of queues whose CPUs follow one pattern; on request one for each queue, with the
//! reasons.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use serde::Serialize;

use self::PlanDetail::{Queues, Reasons, Runs};
use crate::screen::page::{LEFT, Page, Screen};
use crate::screen::{
    Given, count, enclose, group_by_key, heading, join_nonempty, list_numbers, moves, places,
    ranges, role_word, sizes, text_if, text_or, unbroken, value_change, with_prefix,
};
use nicpin::cpuset::CpuSet;
use nicpin::machine::Role::{Rx, Tx};
use nicpin::machine::Source::{Name, Netlink, Order};
use nicpin::machine::setting::on_or_off;
use nicpin::plan::NodeSource::{LocalCpulist, Nearest, NumaNode, Policy, SingleNode, Unknown};
use nicpin::plan::{
    ChannelChange, HostSummary, LeftOut, Plan, PlannedInterface, PlannedThread, PlannedVector,
    SettingKind,
};
use nicpin::report::difference::MeasureChange;

#[derive(Clone, Copy, PartialEq)]
pub enum PlanDetail {
    Runs,
    Queues,
    Reasons,
}

/// Maximum number of runs of one kind, for a few interfaces and for many; more become one line.
const MOST_RUNS: [usize; 2] = [8, 4];
const FEW_INTERFACES: usize = 4;
/// Maximum length of the list of CPUs on which interrupts arrive now.
const SHORT: usize = 8;

/// `changes`: the measures that the plan changes for interfaces. `needless`: the number of IRQs that it moves without a
/// gain. `masks`: also each file with the mask to write and the current one. `given`: the options that decide on the
/// plan.
pub fn plan(
    plan: &Plan,
    (changes, needless): (&[MeasureChange], usize),
    detail: PlanDetail,
    masks: bool,
    given: &Given,
) -> Page {
    let mut page = Page::of(given, detail != Runs);
    let would_change = plan.writes.len() + plan.channels.len();
    let all = count(would_change + plan.unchanged, "setting");
    let moves = moving(plan);
    page.text(match would_change {
        0 if plan.unchanged == 0 => "There is no setting to plan.".into(),
        0 => format!("{all} as planned; none would change.") + &moves,
        _ => format!(
            "{would_change} of {all} would change{}. Apply: {}",
            gains_nothing(needless),
            unbroken(&given.apply())
        ),
    });
    for ChannelChange { command, why, .. } in &plan.channels {
        page.item("Channels: ", format!("{command}: {why}"));
    }
    if !plan.channels.is_empty() {
        page.line("The rest is planned again for the new queues.");
    }
    for planned in &plan.interfaces {
        page.line("");
        interface(&mut page, plan, planned, detail);
    }
    page.line("");
    let writes = plan.writes.iter();
    if masks && !plan.writes.is_empty() {
        page.table(
            0,
            LEFT,
            writes
                .clone()
                .map(|write| value_change(write.shown(), &write.current, &write.value)),
        );
        page.line("");
    }
    for write in writes.filter(|write| write.interface.is_empty()) {
        let [file, change] = value_change(write.shown(), &write.current, &write.value);
        page.text(format!("{file}: {change} ({}).", write.why));
    }
    if would_change > 0 {
        page.gain(&plan.score_now, &plan.score, &Vec::from_iter(changes));
    }
    let of_interfaces = plan
        .interfaces
        .iter()
        .map(|planned| (&*planned.name, &*planned.notes));
    page.notes(of_interfaces.chain([("", &*plan.notes)]));
    let [each, reasons] = [
        ("; each queue: ", "nicpin plan -v"),
        ("; the reasons: ", "nicpin plan --explain"),
    ]
    .map(|(what, command)| what.to_owned() + &unbroken(&given.whole(command)));
    let more = match detail {
        Runs => each + &reasons,
        Queues => reasons,
        Reasons => String::new(),
    };
    page.text(format!("Plan {}{more}", plan.hash));
    page
}

/// Says how many IRQs set as planned the kernel has not moved yet; empty if none.
pub(super) fn moving(plan: &Plan) -> String {
    let vectors = plan
        .interfaces
        .iter()
        .flat_map(|interface| &interface.vectors);
    let pending = vectors.map(Item::vector).filter(Item::is_pending).count();
    let moves = format!(" {} at the next interrupt.", moves(pending));
    text_if(pending > 0, &moves).to_owned()
}

pub(super) fn gains_nothing(needless: usize) -> String {
    let irqs = count(needless, "IRQ");
    let text = format!("; moving {irqs} gains nothing (see --gain)");
    text_if(needless > 0, &text).to_owned()
}

#[derive(Serialize)]
pub struct PlanDocument<'a> {
    #[serde(flatten)]
    pub plan: &'a Plan,
    pub gains: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation<'a>>,
}

pub type Explanation<'a> = BTreeMap<&'a str, Vec<String>>;

pub fn explanation(plan: &Plan) -> Explanation<'_> {
    plan.interfaces
        .iter()
        .map(|planned| {
            let mut page = Page::default();
            interface(&mut page, plan, planned, Reasons);
            let text = page.show(Screen::UNBROKEN);
            (
                &*planned.name,
                text.lines()
                    .map(|line| line.split_whitespace().join(" "))
                    .collect(),
            )
        })
        .collect()
}

fn interface(page: &mut Page, plan: &Plan, planned: &PlannedInterface, detail: PlanDetail) {
    let device = planned.device.clone() + &enclose(" (VF of ", &planned.parent, ")");
    let head = heading(
        &plan.host,
        (&planned.name, planned.driver.as_deref(), &device),
        planned.speed_mbps,
        (planned.node, planned.node_source),
        (&planned.candidates, planned.candidate_cores),
    );
    let link = with_prefix("; link ", Some(&planned.link).filter(|link| *link != "up"));
    let via = with_prefix("; via ", Some(planned.via.join(", ")));
    let rules = with_prefix("; by rule ", Some(planned.rules.iter().join(", ")));
    page.text(head + &link + &via + &rules);
    if detail == Reasons {
        page.item("  ", format!("node {}", node(planned)));
        for LeftOut { cpus, why } in &planned.left_out {
            page.item("  ", format!("CPUs {} left out: {why}", cpus.short()));
        }
    }
    let mut rows = Rows {
        host: &plan.host,
        detail,
        most_runs: MOST_RUNS[usize::from(plan.interfaces.len() > FEW_INTERFACES)],
        lines: Vec::new(),
        // The head contains the reason.
        reason: planned.node_source.reason(planned.node),
    };
    rows.items("IRQ", planned.vectors.iter().map(Item::vector));
    rows.items("process", planned.threads.iter().map(Item::thread));
    rows.steering(plan, planned);
    page.table(2, LEFT, rows.lines);
}

fn node(interface: &PlannedInterface) -> String {
    let (device, node) = (&interface.device, text_or(interface.node, "unknown"));
    match interface.node_source {
        NumaNode => format!("{node}: numa_node of {device}"),
        LocalCpulist if interface.node.is_some() => {
            format!(
                "{node}: it has all CPUs of local_cpulist of {device}, whose numa_node is not set"
            )
        }
        LocalCpulist => format!("{node}; local_cpulist of {device} names the local CPUs"),
        Nearest => format!("{node}: nearest to the node of {device}, which has no usable CPU"),
        SingleNode => format!("{node}: the only node with CPUs"),
        Policy => format!("{node}: it has all CPUs that the policy names"),
        Unknown => format!(
            "unknown: numa_node of {device} is no node of this machine, and local_cpulist is all CPUs"
        ),
    }
}

/// A vector, a thread, or the steering of a queue, with its CPUs now and planned.
#[derive(Default)]
struct Item<'a> {
    label: &'static str,
    number: Option<u32>,
    id: u32,
    now: CpuSet,
    effective: Option<&'a CpuSet>,
    planned: Option<&'a CpuSet>,
    core: Option<&'a CpuSet>,
    idle: bool,
    why: &'a str,
    reason: &'a str,
    vector: Option<&'a PlannedVector>,
    /// How the queue is known.
    source: &'static str,
}

impl<'a> Item<'a> {
    fn vector(vector: &'a PlannedVector) -> Self {
        let source = match vector.source {
            Netlink => "by netlink",
            Name => "by its name",
            Order => "by the order of IRQs",
        };
        let why = &*vector.why;
        Self {
            label: role_word(vector.role),
            number: vector.queue,
            id: vector.irq,
            now: vector.affinity.clone(),
            effective: vector.effective.as_ref(),
            planned: vector.cpus.as_ref(),
            core: vector.placement.as_ref().map(|placement| &placement.core),
            idle: vector.idle,
            why,
            reason: vector.why.decided(),
            vector: Some(vector),
            source,
        }
    }

    fn thread(thread: &'a PlannedThread) -> Self {
        let source = match thread.source {
            Some(Order) => "by the order of NAPI instances",
            Some(_) => "by netlink",
            None => "unknown queue",
        };
        let label = match thread.role {
            Some(Rx) => "thread rx",
            Some(Tx) => "thread tx",
            _ => "thread",
        };
        Self {
            label,
            number: thread.queue,
            id: thread.pid,
            now: thread.affinity.clone(),
            planned: thread.cpus.as_ref(),
            why: &thread.why,
            reason: &thread.why,
            source,
            ..Self::default()
        }
    }

    /// How the queue is known, and other deciding facts.
    fn more(&self) -> String {
        let source = self.source.to_owned();
        let Some(vector) = self.vector else {
            return source;
        };
        let row = with_prefix(", as ", vector.row.as_ref());
        let placed = vector.placement.as_ref().map(|placement| {
            let on_l3 = format!(" had {}", placement.queues_on_l3);
            let on_l3 = enclose(", the cache of CPUs ", [placement.l3.short()], &on_l3);
            let on_core = count(placement.queues_on_core, "queue");
            format!("; core {} had {on_core}{on_l3}", placement.core)
        });
        format!("{} {source}{row}{}", vector.action, text_or(placed, ""))
    }

    /// Whether the item is the next queue, for the same reason, on a core that the run does not have.
    fn continues(&self, run: &[&Self]) -> bool {
        let before = run[run.len() - 1];
        self.number == before.number.map(|before| before + 1)
            && self.is_like() == before.is_like()
            && (self.core.is_none() || run.iter().all(|item| item.core != self.core))
    }

    /// Whether the IRQ is set as planned, and the kernel moves it at its next interrupt.
    fn is_pending(&self) -> bool {
        let planned = self.planned.filter(|planned| **planned == self.now);
        let on = self.effective.zip(planned);
        on.is_some_and(|(on, planned)| !on.is_subset(planned))
    }

    fn is_like(&self) -> (bool, bool, &str) {
        (self.planned.is_some(), self.idle, self.reason)
    }
}

/// The lines of an interface: kind, numbers, CPUs now and planned, and reason.
struct Rows<'a> {
    host: &'a HostSummary,
    detail: PlanDetail,
    most_runs: usize,
    lines: Vec<Vec<String>>,
    reason: String,
}

impl Rows<'_> {
    /// Adds a line for items without a placement: the reason follows in the same cell.
    fn add(&mut self, what: &str, which: String, change: &str, why: &str) {
        let change = format!("{change}; {why}");
        self.lines.push(vec![what.to_owned(), which, change]);
    }

    fn items<'i>(&mut self, ids: &str, items: impl Iterator<Item = Item<'i>>) {
        for (label, alike) in group_by_key(items.map(|item| (item.label, item))) {
            let (mut cores, mut taken) = (Vec::new(), CpuSet::new());
            for run in self.runs(&alike, self.most_runs) {
                let pass = pass(&run, &mut cores, &mut taken);
                let numbers = run.iter().filter_map(|item| item.number).collect_vec();
                let s = text_if(label == "queue" && numbers.len() > 1, "s");
                let which = list_numbers(&run.iter().map(|item| item.id).collect_vec());
                let first = run[0];
                let facts = match self.detail {
                    Reasons => first.more(),
                    _ => String::new(),
                };
                let (reason, more) = match self.detail {
                    // The word "unchanged" is reason enough.
                    Runs if label == "control" && first.planned.is_none() => ("", ""),
                    Runs => (first.reason, &*pass),
                    Queues => (first.why, ""),
                    Reasons => (first.why, &*facts),
                };
                // A reason is left out if it is that of the line above.
                let is_new = self.detail == Reasons || self.reason != reason;
                let why = join_nonempty(", ", [text_if(is_new, reason), more]);
                reason.clone_into(&mut self.reason);
                self.lines.push(vec![
                    format!("{label}{s} {}", ranges(numbers)),
                    format!("{ids} {which}"),
                    change(&run, |sets| places(self.host, sets)),
                    why,
                ]);
            }
        }
    }

    /// Returns runs of consecutive queues with the same reason, none of which shares a core with another. If there are
    /// more than `most`, all with the same reason are one.
    fn runs<'i, 'a>(&self, items: &'i [Item<'a>], most: usize) -> Vec<Vec<&'i Item<'a>>> {
        let mut runs: Vec<Vec<&Item<'_>>> = Vec::new();
        for item in items {
            match runs.last_mut() {
                Some(run) if self.detail == Runs && item.continues(run) => run.push(item),
                _ => runs.push(vec![item]),
            }
        }
        if self.detail != Runs || runs.len() <= most {
            return runs;
        }
        group_by_key(items.iter().map(|item| (item.is_like(), item)))
            .into_iter()
            .map(|(_, run)| run)
            .sorted_by_key(|run| run[0].number)
            .collect()
    }

    fn steering<'i>(&mut self, plan: &Plan, interface: &'i PlannedInterface) {
        let writes = plan.writes.iter();
        let writes = writes.filter(|write| *write.interface == *interface.name);
        let writes: BTreeMap<_, _> = writes
            .map(|write| ((write.kind, write.number), write))
            .collect();
        let item = |way, kind, queue, planned: &'i Option<CpuSet>, why: &'i str| {
            let write = writes.get(&(kind, queue));
            let now = write.and_then(|write| CpuSet::parse_kernel_mask(&write.current).ok());
            // Without a planned value, the setting is unchanged, whatever it is now.
            Item {
                label: way,
                number: Some(queue),
                now: now.or(planned.clone()).unwrap_or_default(),
                planned: planned.as_ref(),
                why,
                reason: why,
                ..Item::default()
            }
        };
        let (rx, tx) = (interface.rx_queues.iter(), interface.tx_queues.iter());
        let xps = tx
            .clone()
            .map(|tx| item("tx", SettingKind::Xps, tx.queue, &tx.xps_cpus, &tx.why));
        self.add_steering("XPS", "none", xps);
        for tx in tx {
            if let Some(queues) = tx.xps_rxqs.as_ref().filter(|queues| !queues.is_empty()) {
                let change = format!("flows of rx {queues} first");
                self.add("XPS", format!("tx {}", tx.queue), &change, "by the policy");
            }
        }
        let rps = rx
            .clone()
            .map(|rx| item("rx", SettingKind::Rps, rx.queue, &rx.rps_cpus, &rx.why));
        self.add_steering("RPS", "off", rps);
        for (flows, queues) in group_by_key(rx.filter_map(|rx| Some((rx.rps_flow_cnt?, rx.queue))))
        {
            let (change, why) = match flows {
                0 => ("off".to_owned(), "by the policy"),
                _ => (format!("{flows} flows each"), "its share of the flow table"),
            };
            self.add("RFS", format!("rx {}", ranges(queues)), &change, why);
        }
        let rss = interface.rss.as_ref();
        if let Some(rss) = rss.filter(|rss| rss.queues.is_some() || rss.now != rss.possible) {
            let planned = rss.queues.as_ref().filter(|queues| **queues != rss.now);
            let change = format!("to {}{}", rss.now, with_prefix(" -> ", planned));
            self.add("RSS", format!("rx {}", rss.possible), &change, &rss.why);
        }
        if let Some(on) = interface.ntuple {
            let why = "accelerated RFS: the device sends flows to the CPUs of their programs";
            self.add("ntuple", String::new(), on_or_off(on), why);
        }
    }

    /// Adds lines for steering of one kind: one for all queues with the same reason, or one for each. `none`: the word
    /// for no CPU.
    fn add_steering<'i>(&mut self, what: &str, none: &str, items: impl Iterator<Item = Item<'i>>) {
        for group in self.runs(&items.collect_vec(), 0) {
            let sets = |sets: &[&CpuSet]| match sets.iter().all(|set| set.is_empty()) {
                true => none.to_owned(),
                false if sets.iter().all_equal() => places(self.host, sets),
                false => sizes(sets),
            };
            let change = change(&group, sets);
            let numbers = ranges(group.iter().filter_map(|item| item.number));
            let queues = format!("{} {numbers}", group[0].label);
            self.add(what, queues, &change, group[0].why);
        }
    }
}

/// Says how the queues of a run follow earlier ones, which have `taken` CPUs on `cores`.
fn pass<'a>(run: &[&Item<'a>], cores: &mut Vec<&'a CpuSet>, taken: &mut CpuSet) -> String {
    if run[0].idle {
        return "not in use".into();
    }
    let Some(of_run) = run.iter().map(|item| item.core).collect::<Option<Vec<_>>>() else {
        return String::new();
    };
    let planned = CpuSet::union_of(run.iter().filter_map(|item| item.planned));
    let known = of_run.iter().filter(|core| cores.contains(core)).count();
    let is_new = !planned.intersects(taken);
    let most = of_run.iter().counts().into_values().max().unwrap_or(0);
    cores.extend(&of_run);
    taken.add(&planned);
    let words = match (run.len(), known) {
        _ if most > 1 => return format!("up to {most} on a core"),
        (1, 0) => "",
        (_, 0) => "one per core",
        (1, _) if is_new => "its sibling",
        (many, _) if known == many && is_new => "their siblings",
        (many, _) if known == many => "one more per core",
        _ => "",
    };
    words.to_owned()
}

/// Says `now -> planned`, or only one of them if they are the same; for IRQs that may arrive anywhere, with the CPUs on
/// which they do.
fn change(items: &[&Item<'_>], text: impl Fn(&[&CpuSet]) -> String) -> String {
    let Some(planned) = items
        .iter()
        .map(|item| item.planned)
        .collect::<Option<Vec<_>>>()
    else {
        return "unchanged".into();
    };
    let now = items.iter().map(|item| &item.now).collect_vec();
    let (before, after) = (text(&now), text(&planned));
    let are_single = |sets: &[&CpuSet]| sets.iter().all(|set| set.len() == 1);
    let on = |items: &[&Item<'_>]| {
        let on = CpuSet::union_of(items.iter().filter_map(|item| item.effective)).short();
        Some(format!("on {on}")).filter(|_| on.len() <= SHORT)
    };
    let pending = items.iter().copied().filter(|item| item.is_pending());
    let pending = pending.collect_vec();
    let after = match now == planned {
        true if pending.is_empty() => return after,
        true => {
            let still = on(&pending).unwrap_or_else(|| format!("{} elsewhere", pending.len()));
            return format!("{after} (still {still})");
        }
        false if before != after => after,
        false if after == sizes(&planned) => after.replace(" CPU", " other CPU"),
        false if are_single(&planned) && !are_single(&now) => "one of these each".into(),
        false => "the same in another order".into(),
    };
    let are_known = items.iter().all(|item| item.effective.is_some());
    let on = (are_known && !are_single(&now))
        .then(|| on(items))
        .flatten();
    format!("{before}{} -> {after}", enclose(" (", on, ")"))
}
