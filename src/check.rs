//! Whether the machine is as planned, and why settings differ, by the record of the last apply.

use std::collections::{BTreeMap, BTreeSet};

use crate::apply::{Irq, LastSet, Record, of_plan};
use crate::cpuset::{CpuSet, Inserted as _};
use crate::kinds::{Place, Setting};
use crate::machine::Machine;
use crate::machine::sample::Delta;
use crate::machine::wording::cpu_list;
use crate::plan::{Note, Plan, Write};
use crate::read::tools::irqbalance;
use crate::report::check::{Check, other_tools};
use crate::report::difference::Reason::{
    CpuOffline, IrqRecreated, KernelRefused, MovedByOther, NotApplied, PlanChanged,
    QueueCountChanged, Unknown,
};
use crate::report::difference::{Difference, Differences, Fallback, NoteAbout, Reason};
use crate::root::{FileError, Root};

/// Compares the machine with the plan; writes nothing. An interface that was selected by name and cannot be planned is
/// unknown.
pub fn check(root: &Root, machine: &Machine, plan: &Plan) -> Check {
    let mut check = compare(root, machine, plan, None);
    // Needed only to find out who moved a vector.
    let is_moved = |difference: &Difference| difference.reason == MovedByOther;
    if plan.irqbalance.is_some() && check.differs.iter().any(is_moved) {
        check.other_tools = other_tools(plan, irqbalance::version(root).as_deref());
    }
    check
}

/// A check that does not ask for irqbalance's version. `watched`: the interrupts since the plan was made.
pub fn compare(root: &Root, machine: &Machine, plan: &Plan, watched: Option<&Delta>) -> Check {
    let record = Record::load(root);
    let found = differences(root, machine, plan, &record);
    let unknown = unknown(machine, plan, &found, &record);
    let mut check = Check::new(machine, plan, found, unknown, watched);
    check.applied = Record::exists(root);
    check.has_no_record = root.is_capture() || !root.exists("/run");
    check
}

/// `record`: of the last apply, or why it cannot be read.
pub fn unknown(
    machine: &Machine,
    plan: &Plan,
    found: &Differences,
    record: &Result<Record, FileError>,
) -> Vec<NoteAbout> {
    let mut unknown = NoteAbout::unknown(plan);
    let mut without = NoteAbout::of(plan, |interface, note| {
        !plan.explicit && interface.link == "up" && matches!(note, Note::NoVectors { .. })
    });
    let mut names: BTreeSet<&str> = found
        .differs
        .iter()
        .filter(|difference| difference.reason == Unknown)
        .map(|difference| &*difference.write.interface)
        .collect();
    match record {
        // Interfaces that are up without vectors, although an earlier apply recorded some.
        Ok(record) => {
            without.retain(|note| {
                machine
                    .interface(&note.interface)
                    .is_some_and(|interface| record.has_vectors_of(interface))
            });
            unknown.extend(without);
        }
        Err(error) => {
            names.extend(without.iter().map(|note| &*note.interface));
            // Nothing differs, but what could be restored is unknown.
            if names.is_empty() {
                names.insert("");
            }
            unknown.extend(names.into_iter().map(|name| NoteAbout {
                interface: name.to_owned(),
                note: Note::RecordUnreadable {
                    error: error.to_string(),
                },
            }));
        }
    }
    unknown
}

pub fn differences(
    root: &Root,
    machine: &Machine,
    plan: &Plan,
    record: &Result<Record, FileError>,
) -> Differences {
    let mut found = Differences::default();
    if plan.writes.is_empty() {
        return found;
    }
    // Without a readable record the same settings differ; the reasons are unknown, and [`unknown`] says why.
    let unread = Record::default();
    let (record, is_read) = (record.as_ref()).map_or((&unread, false), |record| (record, true));
    let settings = of_plan(machine, plan).filter(|_| !record.last_set.is_empty());
    let by_place: BTreeMap<Place<'_>, Setting<'_>> = settings
        .map(|setting| (setting.place(), setting))
        .inserted();
    let set_last = |setting: &Setting<'_>| record.last_set.get(&setting.id());
    let change =
        |setting: &Setting<'_>| irq_change(set_last(setting)?.irq, Irq::now(root, setting.irq()?));
    // An interface with new vectors has new queues, too.
    let recreated: BTreeSet<&str> = (by_place.values())
        .filter(|setting| change(setting).is_some())
        .map(Setting::interface)
        .collect();
    for write in &plan.writes {
        let setting = by_place.get(&write.place());
        let set = setting.and_then(set_last);
        let same = |text: &str, other: &str| write.kind.same(text, other);
        let fallback = set
            .filter(|set| same(&set.value, &write.value))
            .and_then(|set| set.fallback.as_ref());
        if fallback.is_some_and(|cpu| same(cpu, &write.current)) {
            found.fallbacks.push(Fallback {
                irq: write.number,
                path: write.path.clone(),
                planned: write.value.clone(),
                holds: write.current.to_string(),
            });
            continue;
        }
        let recreated = match setting.filter(|setting| setting.irq().is_some()) {
            Some(setting) => change(setting),
            None => (recreated.contains(&*write.interface))
                .then(|| "together with the interface's vectors".to_owned()),
        };
        let (reason, detail) = if is_read {
            reason(record, machine, write, set, recreated)
        } else {
            (Unknown, None)
        };
        found.differs.push(Difference {
            write: write.clone(),
            reason,
            detail,
        });
    }
    found
}

fn irq_change(then: Option<Irq>, now: Irq) -> Option<String> {
    let then = then.filter(|then| *then != now)?.number;
    let now = now.number;
    Some(if then == now {
        format!("IRQ {now} was freed and allocated again")
    } else {
        format!("was IRQ {then}, is now IRQ {now}")
    })
}

fn reason(
    record: &Record,
    machine: &Machine,
    write: &Write,
    set: Option<&LastSet>,
    recreated: Option<String>,
) -> (Reason, Option<String>) {
    let because = |reason, detail: String| (reason, Some(detail));
    let interface = machine.interface(&write.interface);
    // Queues in another namespace are out of reach.
    if let Some(interface) = interface.filter(|interface| !interface.is_elsewhere()) {
        let now = (interface.rx_queues.len(), interface.tx_queues.len());
        let then = record.queues.get(&interface.port_id().to_string());
        if let Some((rx, tx)) = then.filter(|then| **then != now) {
            let (now_rx, now_tx) = now;
            let detail =
                format!("{rx} rx and {tx} tx queues at the last apply, {now_rx} and {now_tx} now");
            return because(QueueCountChanged, detail);
        }
    }
    let Some(set) = set else {
        return (NotApplied, None);
    };
    if recreated.is_some() {
        return (IrqRecreated, recreated);
    }
    let held = set.fallback.as_ref().unwrap_or(&set.value);
    let cpus = CpuSet::parse_kernel_mask(held).ok();
    let cpus = cpus.filter(|_| write.kind.is_cpus());
    let offline = (cpus.clone().unwrap_or_default()).difference(&machine.topology.online);
    if !offline.is_empty() {
        because(
            CpuOffline,
            format!("the last apply set {}", cpu_list(&offline)),
        )
    } else if write.kind.same(held, &write.current) {
        because(PlanChanged, "still as the last apply set".to_owned())
    } else if set.refused.is_some() {
        (KernelRefused, set.refused.clone())
    } else {
        let set = match &cpus {
            Some(none) if none.is_empty() => "no CPU".to_owned(),
            Some(cpus) => cpu_list(cpus),
            None => held.clone(),
        };
        because(MovedByOther, format!("the last apply set {set}"))
    }
}
