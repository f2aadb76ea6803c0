//! Why a setting differs from the plan, as far as the record of the last apply shows it.

use std::collections::{BTreeMap, BTreeSet};

use crate::apply::record::{Irq, LastSet, Record};
use crate::apply::settings;
use crate::apply::write::means_same;
use crate::cpuset::CpuSet;
use crate::machine::{Machine, Setting};
use crate::plan::{Plan, Write};
use crate::report::difference::{Difference, Differences, Fallback, Reason};
use crate::root::Root;

/// What differs from a plan and why, and the vectors that are on a fallback CPU.
pub fn differences(root: &Root, machine: &Machine, plan: &Plan) -> Differences {
    if plan.writes.is_empty() {
        return Differences::default();
    }
    // What differs does not depend on the record. Without one that can be read the reasons are unknown.
    let (record, is_read) = match Record::load(root) {
        Ok(record) => (record, true),
        // `apply::unknown` says why.
        Err(_) => (Record::default(), false),
    };
    let settings: Vec<Setting<'_>> = if record.last_set.is_empty() {
        Vec::new()
    } else {
        settings::of_plan(machine, plan).collect()
    };
    let by_path: BTreeMap<String, &Setting<'_>> = settings
        .iter()
        .map(|setting| (setting.path(), setting))
        .collect();
    let recreated = settings.iter().filter(|setting| {
        let then = record.last_set.get(&setting.key()).and_then(|set| set.irq);
        setting
            .irq()
            .is_some_and(|irq| irq_change(then, Irq::now(root, irq)).is_some())
    });
    // An interface with new vectors has new queues, too.
    let recreated: BTreeSet<&str> = recreated.map(Setting::interface).collect();
    let mut found = Differences::default();
    for write in &plan.writes {
        let set = by_path
            .get(&*write.path)
            .and_then(|setting| record.last_set.get(&setting.key()));
        let same = |text: &str, other: &str| means_same(write.kind, text, other);
        let is_fallback = |set: &LastSet| {
            same(&set.value, &write.value)
                && set
                    .fallback
                    .as_ref()
                    .is_some_and(|cpu| same(cpu, &write.current))
        };
        if set.is_some_and(is_fallback) {
            let (path, planned, holds) = (
                write.path.clone(),
                write.value.clone(),
                write.current.to_string(),
            );
            found.fallbacks.push(Fallback {
                path,
                planned,
                holds,
            });
            continue;
        }
        let recreated = match by_path.get(&*write.path).and_then(|setting| setting.irq()) {
            Some(irq) => set.and_then(|set| irq_change(set.irq, Irq::now(root, irq))),
            None => recreated
                .contains(&*write.interface)
                .then(|| "together with the interface's vectors".to_owned()),
        };
        let (reason, detail) = if is_read {
            reason(&record, machine, write, set, recreated)
        } else {
            (Reason::Unknown, None)
        };
        found.differs.push(Difference {
            write: write.clone(),
            reason,
            detail,
        });
    }
    found
}

/// How a vector's IRQ changed since the last apply, in words; `None` when it did not.
fn irq_change(then: Option<Irq>, now: Irq) -> Option<String> {
    let then = then.filter(|then| *then != now)?;
    Some(if then.number == now.number {
        format!("IRQ {} was freed and allocated again", now.number)
    } else {
        format!("was IRQ {}, is now IRQ {}", then.number, now.number)
    })
}

fn reason(
    record: &Record,
    machine: &Machine,
    write: &Write,
    set: Option<&LastSet>,
    recreated: Option<String>,
) -> (Reason, Option<String>) {
    let interface = machine
        .interfaces
        .iter()
        .find(|interface| *interface.name == *write.interface);
    let now = interface.map(|interface| (interface.rx_queues.len(), interface.tx_queues.len()));
    let then = interface.and_then(|interface| record.queues.get(&interface.key()).copied());
    let changed = now.zip(then).filter(|(now, then)| now != then);
    if let Some(((rx, tx), (then_rx, then_tx))) = changed {
        let detail =
            format!("{then_rx} rx and {then_tx} tx queues at the last apply, {rx} and {tx} now");
        return (Reason::QueueCountChanged, Some(detail));
    }
    let Some(set) = set else {
        return (Reason::NotApplied, None);
    };
    if let Some(detail) = recreated {
        return (Reason::IrqRecreated, Some(detail));
    }
    let held = set.fallback.as_ref().unwrap_or(&set.value);
    let offline = CpuSet::parse_kernel_mask(held)
        .unwrap_or_default()
        .difference(&machine.topology.online);
    if write.kind.is_cpus() && !offline.is_empty() {
        return (
            Reason::CpuOffline,
            Some(format!("the last apply set CPU {offline}")),
        );
    }
    if means_same(write.kind, held, &write.current) {
        return (
            Reason::PlanChanged,
            Some("it is as the last apply set it".to_owned()),
        );
    }
    if let Some(answer) = &set.refused {
        return (Reason::KernelRefused, Some(answer.clone()));
    }
    (
        Reason::MovedByOther,
        Some(format!("the last apply set {held}")),
    )
}
