//! Why a value differs from the plan, as far as the record of the last apply tells.

use std::collections::{BTreeMap, BTreeSet};

use crate::apply::record::{Irq, LastSet, Record};
use crate::apply::settings;
use crate::apply::settings::{KernelSetting, owner};
use crate::apply::write::means_same;
use crate::cpuset::CpuSet;
use crate::machine::Machine;
use crate::plan::{Plan, Write};
use crate::report::difference::Difference;
use crate::report::difference::Fallback;
use crate::report::difference::Reason;
use crate::root::Root;

/// What differs from a plan and why, and what was put elsewhere because it had to be.
pub fn differences(root: &Root, machine: &Machine, plan: &Plan) -> (Vec<Difference>, Vec<Fallback>) {
    if plan.writes.is_empty() {
        return (Vec::new(), Vec::new());
    }
    // Whether anything differs does not depend on the record; without one that can be believed no reason is known.
    let record = Record::load(root).unwrap_or_default();
    let values: Vec<(KernelSetting<'_>, String)> = settings::planned(machine, plan);
    let by_path: BTreeMap<&str, &KernelSetting<'_>> =
        values.iter().map(|(value, _)| (value.path.as_str(), value)).collect();
    let recreated = values.iter().filter(|(value, _)| {
        let then = record.last_set.get(&value.key).and_then(|set| set.irq);
        value.irq.is_some_and(|irq| made_anew(then, Irq::now(root, irq)).is_some())
    });
    // A card whose vectors are new has new queues, too.
    let recreated: BTreeSet<&str> = recreated.map(|(value, _)| value.interface).collect();
    let (mut differences, mut instead) = (Vec::new(), Vec::new());
    for write in &plan.writes {
        let set = by_path.get(write.path.as_str()).and_then(|value| record.last_set.get(&value.key));
        let same = |text: &str, other: &str| means_same(write.kind, text, other);
        if let Some(LastSet { value, instead: Some(other), .. }) = set
            && same(value, &write.value.text())
            && same(other, &write.current)
        {
            let (planned, holds) = (write.value.to_string(), write.current.to_string());
            instead.push(Fallback { path: write.path.clone(), planned, holds });
            continue;
        }
        let anew = match by_path.get(write.path.as_str()).and_then(|value| value.irq) {
            Some(irq) => set.and_then(|set| made_anew(set.irq, Irq::now(root, irq))),
            None => recreated.contains(&*write.interface).then(|| "with its vectors".to_owned()),
        };
        let (reason, detail) = reason(&record, machine, write, set, anew);
        differences.push(Difference { write: write.clone(), reason, detail });
    }
    (differences, instead)
}

/// How an IRQ is another than then, in words; `None` when it is the same.
fn made_anew(then: Option<Irq>, now: Irq) -> Option<String> {
    let then = then.filter(|then| *then != now)?;
    Some(if then.number == now.number {
        format!("IRQ {} was given up and allocated anew", now.number)
    } else {
        format!("was IRQ {}, is {}", then.number, now.number)
    })
}

fn reason(
    record: &Record,
    machine: &Machine,
    write: &Write,
    set: Option<&LastSet>,
    anew: Option<String>,
) -> (Reason, Option<String>) {
    let interface = machine.interfaces.iter().find(|interface| *interface.name == *write.interface);
    let now = interface.map(|interface| (interface.rx_queues.len(), interface.tx_queues.len()));
    let then = interface.and_then(|interface| record.queues.get(&owner(interface)).copied());
    if let (Some((rx, tx)), Some((then_rx, then_tx))) = (now, then)
        && (rx, tx) != (then_rx, then_tx)
    {
        let detail = format!("{then_rx} rx and {then_tx} tx queues at the last apply, {rx} and {tx} now");
        return (Reason::QueueCountChanged, Some(detail));
    }
    let Some(set) = set else { return (Reason::NotApplied, None) };
    if let Some(detail) = anew {
        return (Reason::IrqRecreated, Some(detail));
    }
    let held = set.instead.as_ref().unwrap_or(&set.value);
    let offline = CpuSet::parse_kernel_mask(held).unwrap_or_default().difference(&machine.topology.online);
    if write.kind.is_mask() && !offline.is_empty() {
        return (Reason::CpuOffline, Some(format!("apply had set CPU {offline}")));
    }
    if means_same(write.kind, held, &write.current) {
        return (Reason::PlanChanged, Some("it is as the last apply has set it".to_owned()));
    }
    if let Some(answer) = &set.refused {
        return (Reason::KernelRefused, Some(answer.clone()));
    }
    (Reason::MovedByOther, Some(format!("apply had set {held}")))
}
