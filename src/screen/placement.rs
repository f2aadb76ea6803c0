//! The lines of an interface in a plan: its IRQs, threads and steering, by runs of queues or by queue.

use std::collections::BTreeMap;
use std::fmt::Display;

use itertools::Itertools as _;

use self::PlanDetail::{Queues, Reasons, Runs};
use crate::screen::{
    count, enclose, group_by_key, join_nonempty, list_numbers, places, ranges, role_word, sizes,
    text_if, text_or, with_prefix,
};
use nicpin::cpuset::{CpuSet, Inserted as _};
use nicpin::kinds::on_or_off;
use nicpin::machine::Role::{self, Combined, Control, Rx, Tx};
use nicpin::machine::Source::{Name, Netlink, Order};
use nicpin::plan::{
    Cause, HostSummary, Plan, PlannedInterface, PlannedThread, PlannedVector, SettingKind, Why,
};

#[derive(Clone, Copy, PartialEq)]
pub enum PlanDetail {
    Runs,
    Queues,
    Reasons,
}

/// Runs of one kind, for a few interfaces and for many; more become one line.
const MOST_RUNS: [usize; 2] = [8, 4];
const FEW_INTERFACES: usize = 4;
/// Maximum length of the list of CPUs on which interrupts arrive now, in characters.
const SHORT: usize = 8;

pub(super) fn lines(
    plan: &Plan,
    interface: &PlannedInterface,
    detail: PlanDetail,
) -> Vec<Vec<String>> {
    let mut rows = Rows {
        host: &plan.host,
        detail,
        most_runs: MOST_RUNS[usize::from(plan.interfaces.len() > FEW_INTERFACES)],
        lines: Vec::new(),
        reason: interface.node_source.reason(interface.node),
    };
    rows.items("IRQ", interface.vectors.iter().map(Item::vector));
    rows.items("process", interface.threads.iter().map(Item::thread));
    rows.steering(plan, interface);
    rows.lines
}

pub(super) fn pending(plan: &Plan) -> usize {
    let items = plan.vectors().map(Item::vector);
    items.filter(Item::is_pending).count()
}

struct Item<'a> {
    /// Of a vector.
    role: Option<Role>,
    label: &'static str,
    number: Option<u32>,
    id: u32,
    now: CpuSet,
    effective: Option<&'a CpuSet>,
    planned: Option<&'a CpuSet>,
    core: Option<&'a CpuSet>,
    idle: bool,
    why: &'a Why,
    /// For `--explain`: what told the queue, and the load of core and L3 domain when the CPU was chosen.
    more: String,
}

impl<'a> Item<'a> {
    fn vector(vector: &'a PlannedVector) -> Self {
        let source = match vector.source {
            Netlink => "by netlink",
            Name => "by its name",
            Order => "by the order of IRQs",
        };
        let row = with_prefix(", as ", vector.row.as_ref());
        let placed = vector.placement.as_ref().map(|placement| {
            let on_l3 = format!(" had {}", placement.queues_on_l3);
            let on_l3 = enclose(", the cache of CPUs ", [placement.l3.short()], &on_l3);
            let on_core = count(placement.queues_on_core, "queue");
            format!("; core {} had {on_core}{on_l3}", placement.core)
        });
        let placed = text_or(placed, "");
        Self {
            role: Some(vector.role),
            label: role_word(vector.role),
            number: vector.queue,
            id: vector.irq,
            now: vector.affinity.clone(),
            effective: vector.effective.as_ref(),
            planned: vector.cpus.as_ref(),
            core: vector.placement.as_ref().map(|placement| &placement.core),
            idle: vector.idle,
            why: &vector.why,
            more: format!("{} {source}{row}{placed}", vector.action),
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
            role: None,
            label,
            number: thread.queue,
            id: thread.pid,
            now: thread.affinity.clone(),
            effective: None,
            planned: thread.cpus.as_ref(),
            core: None,
            idle: false,
            why: &thread.why,
            more: source.to_owned(),
        }
    }

    /// Whether the item is the next queue, for the same reason, on a core that the run does not have, or on the only one.
    fn continues(&self, run: &[&Self], one_core: bool) -> bool {
        let before = run[run.len() - 1];
        self.number == before.number.map(|before| before + 1)
            && self.is_like() == before.is_like()
            && (one_core || self.core.is_none() || run.iter().all(|item| item.core != self.core))
    }

    fn is_pending(&self) -> bool {
        let planned = self.planned.filter(|planned| **planned == self.now);
        let on = self.effective.zip(planned);
        on.is_some_and(|(on, planned)| !on.is_subset(planned))
    }

    fn is_like(&self) -> (bool, bool, &'a Cause) {
        (self.planned.is_some(), self.idle, &self.why.cause)
    }
}

struct Rows<'a> {
    host: &'a HostSummary,
    detail: PlanDetail,
    most_runs: usize,
    lines: Vec<Vec<String>>,
    /// The words printed last, which the next line does not repeat.
    reason: String,
}

impl Rows<'_> {
    fn add(&mut self, what: &str, which: String, change: &str, why: &dyn Display) {
        let change = format!("{change}; {why}");
        self.lines.push(vec![what.to_owned(), which, change]);
    }

    fn items<'i>(&mut self, ids: &str, items: impl Iterator<Item = Item<'i>>) {
        for (label, alike) in group_by_key(items.map(|item| (item.label, item))) {
            let (mut cores, mut taken) = (Vec::new(), CpuSet::new());
            for run in self.runs(&alike, self.most_runs) {
                let pass = pass(&run, &mut cores, &mut taken);
                let numbers = run.iter().filter_map(|item| item.number).collect_vec();
                let which = list_numbers(&run.iter().map(|item| item.id).collect_vec());
                let first = run[0];
                let s = text_if(first.role == Some(Combined) && numbers.len() > 1, "s");
                let (reason, more) = match self.detail {
                    // The word "unchanged" is reason enough.
                    Runs if first.role == Some(Control) && first.planned.is_none() => {
                        (String::new(), "")
                    }
                    Runs => (first.why.cause.to_string(), &*pass),
                    Queues => (first.why.to_string(), ""),
                    Reasons => (first.why.to_string(), &*first.more),
                };
                let is_new = self.detail == Reasons || self.reason != reason;
                let why = join_nonempty(", ", [text_if(is_new, &reason), more]);
                self.reason = reason;
                self.lines.push(vec![
                    format!("{label}{s} {}", list_numbers(&numbers)),
                    format!("{ids} {which}"),
                    change(&run, |sets| places(self.host, sets)),
                    why,
                ]);
            }
        }
    }

    /// Runs of consecutive queues with the same reason, no two of which share a core unless there is only one. If there are
    /// more than `most`, all queues with the same reason are one run.
    fn runs<'i, 'a>(&self, items: &'i [Item<'a>], most: usize) -> Vec<Vec<&'i Item<'a>>> {
        let mut runs: Vec<Vec<&Item<'_>>> = Vec::new();
        let one_core = items.iter().map(|item| item.core).all_equal();
        for item in items {
            match runs.last_mut() {
                Some(run) if self.detail == Runs && item.continues(run, one_core) => run.push(item),
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
            .inserted();
        let item = |way, kind, queue, planned: &'i Option<CpuSet>, why: &'i Why| {
            let write = writes.get(&(kind, queue));
            let now = write.and_then(|write| CpuSet::parse_kernel_mask(&write.current).ok());
            Item {
                role: None,
                label: way,
                number: Some(queue),
                id: queue,
                now: now.or(planned.clone()).unwrap_or_default(),
                effective: None,
                planned: planned.as_ref(),
                core: None,
                idle: false,
                why,
                more: String::new(),
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
                self.add("XPS", format!("tx {}", tx.queue), &change, &"by the policy");
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
            self.add("RFS", format!("rx {}", ranges(queues)), &change, &why);
        }
        let rss = interface.rss.as_ref();
        if let Some(rss) = rss.filter(|rss| rss.queues.is_some() || rss.now != rss.possible) {
            let planned = rss.queues.as_ref().filter(|queues| **queues != rss.now);
            let change = format!("to {}{}", rss.now, with_prefix(" -> ", planned));
            self.add("RSS", format!("rx {}", rss.possible), &change, &rss.why);
        }
        if let Some(on) = interface.ntuple {
            let why = "accelerated RFS: the device sends flows to the CPUs of their programs";
            self.add("ntuple", String::new(), on_or_off(on), &why);
        }
    }

    /// Adds one line for all queues with the same reason, or one for each. `none`: the word for no CPU.
    fn add_steering<'i>(&mut self, what: &str, none: &str, items: impl Iterator<Item = Item<'i>>) {
        for group in self.runs(&items.collect_vec(), 0) {
            let sets = |sets: &[&CpuSet]| match sets.iter().all(|set| set.is_empty()) {
                true => none.to_owned(),
                false if sets.iter().all_equal() => places(self.host, sets),
                false => sizes(sets, "CPU"),
            };
            let change = change(&group, sets);
            let numbers = ranges(group.iter().filter_map(|item| item.number));
            let queues = format!("{} {numbers}", group[0].label);
            self.add(what, queues, &change, group[0].why);
        }
    }
}

/// Says how a run follows earlier ones, which have the CPUs `taken` on `cores`.
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
        (many, _) if many > 1 && most == many => "all on one core",
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
        false if after == sizes(&planned, "CPU") => sizes(&planned, "other CPU"),
        false if are_single(&planned) && !are_single(&now) => "one of these each".into(),
        false => "the same in another order".into(),
    };
    let are_known = items.iter().all(|item| item.effective.is_some());
    let on = (are_known && !are_single(&now))
        .then(|| on(items))
        .flatten();
    format!("{before}{} -> {after}", enclose(" (", on, ")"))
}
