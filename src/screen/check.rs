//! The result of `check` as text.

use std::collections::BTreeMap;

use crate::screen::page::Page;
use crate::screen::text::{count, cpus};
use nicpin::cpuset::{CpuSet, IrqSet};
use nicpin::machine::Rss;
use nicpin::machine::paths::shown;
use nicpin::plan::{HostSummary, Write, WriteKind};
use nicpin::report::check::{Check, CheckState};
use nicpin::report::difference::{Difference, Fallback, Reason, Unplannable};

/// Settings of a kind that are listed for an interface.
const MOST_ALIKE: usize = 3;

/// `all`: every setting.
#[allow(clippy::too_many_lines)] // a table, or a story in one piece
pub fn check(check: &Check, all: bool) -> Page {
    let mut page = Page::default();
    let mut reasons: BTreeMap<(&str, Reason), (usize, Option<&str>)> = BTreeMap::new();
    let mut alike: BTreeMap<(&str, WriteKind), usize> = BTreeMap::new();
    let mut rows = Vec::new();
    for Difference {
        write,
        reason,
        detail,
    } in &check.differs
    {
        let listed = alike.entry((&write.interface, write.kind)).or_default();
        *listed += 1;
        if all || *listed <= MOST_ALIKE {
            rows.push(vec![
                write.interface.to_string(),
                setting(write),
                difference(&check.host, write),
            ]);
        }
        let (many, first) = reasons
            .entry((&write.interface, *reason))
            .or_insert((0, detail.as_deref()));
        *many += 1;
        *first = (*first).filter(|first| Some(*first) == detail.as_deref());
    }
    page.table(0, rows);
    let hidden: usize = if all {
        0
    } else {
        alike.values().map(|n| n.saturating_sub(MOST_ALIKE)).sum()
    };
    if hidden > 0 {
        page.line(format!("+{hidden} more, -v"));
    }
    for ((interface, reason), (many, detail)) in reasons {
        let name = if interface.is_empty() {
            "machine"
        } else {
            interface
        };
        let found = check
            .interfaces
            .iter()
            .find(|found| found.name == interface);
        let state = found.map(|found| format!(" ({})", found.state.name()));
        let detail = detail
            .map(|detail| format!("; {detail}"))
            .unwrap_or_default();
        let state = state.unwrap_or_default();
        let text = format!(
            "{name}{state}: {}: {}: {}{detail}",
            count(many, "setting"),
            reason.name(),
            meaning(reason)
        );
        page.item("because  ", &text);
    }
    let affected = check.interfaces.iter();
    let affected: Vec<_> = affected.filter(|one| !one.changes.is_empty()).collect();
    let shown = if all { affected.len() } else { MOST_ALIKE };
    for interface in affected.iter().take(shown) {
        let changes = interface.changes.iter();
        let changes = changes.map(|one| format!("{} {} to {}", one.measure, one.now, one.planned));
        let changes: Vec<String> = changes.collect();
        let text = format!("{}: {}", interface.name, changes.join(", "));
        page.item("applying changes  ", text);
    }
    if affected.len() > shown {
        let more = count(affected.len() - shown, "more interface");
        page.item("applying changes  ", format!("{more}, -v"));
    }
    for Fallback {
        path,
        planned,
        holds,
    } in &check.fallbacks
    {
        let text = format!(
            "{path}: {holds}, planned {planned}: the planned CPU had no free interrupt vector"
        );
        page.item("fallback  ", &text);
    }
    let mut unmovable: BTreeMap<&str, IrqSet> = BTreeMap::new();
    for vector in &check.unmovable {
        unmovable
            .entry(&vector.interface)
            .or_default()
            .insert(vector.irq);
    }
    for (interface, irqs) in unmovable {
        page.item(
            "cannot be moved  ",
            format!("{interface}: IRQs {irqs}, which the kernel manages"),
        );
    }
    for change in &check.channels {
        page.item(
            format!("{}  channels, planned  ", change.interface),
            &change.command,
        );
    }
    for Unplannable { interface, note } in &check.unknown {
        page.item(
            "could not be determined  ",
            format!("{interface}: {note} ({})", note.code()),
        );
    }
    for note in &check.notes {
        page.item("note  ", note.to_string());
    }
    for Unplannable { interface, note } in &check.left_alone {
        page.item("left alone  ", format!("{interface}: {note}"));
    }
    let differs = check.differs.len() + check.channels.len();
    let worst = check
        .state
        .map(|worst| format!(", the worst interface is {}", worst.name()))
        .unwrap_or_default();
    let refused = check
        .differs
        .iter()
        .all(|difference| difference.reason == Reason::KernelRefused);
    let (word, text) = match check.verdict {
        CheckState::Same => {
            let as_planned = format!("{} as planned", count(check.same, "setting"));
            let others = if differs > 0 {
                format!(", {differs} as good (--exact counts them)")
            } else {
                String::new()
            };
            ("same: ", as_planned + &others)
        }
        CheckState::Differs if differs == 0 => {
            let unmovable = count(check.unmovable.len(), "vector");
            (
                "differs: ",
                format!(
                    "{unmovable} cannot be moved; {} as planned",
                    count(check.same, "setting")
                ),
            )
        }
        CheckState::Differs => {
            let fix = if refused && check.channels.is_empty() {
                "the kernel refused what apply wrote"
            } else {
                "fix: nicpin apply"
            };
            (
                "differs: ",
                format!(
                    "{differs} of {} settings{worst}; {fix}",
                    check.same + differs
                ),
            )
        }
        CheckState::CouldNotBeDetermined => (
            "could not be determined: ",
            "not every requested interface can be planned".to_owned(),
        ),
    };
    page.item(word, text);
    page
}

/// The file of a setting in short: `IRQ 71 smp_affinity`, `tx-0 xps_cpus`.
fn setting(write: &Write) -> String {
    let parts: Vec<&str> = write.path.rsplitn(3, '/').collect();
    match (write.kind, parts.as_slice()) {
        (WriteKind::Vector, [file, irq, ..]) => format!("IRQ {irq} {file}"),
        (
            WriteKind::Rps | WriteKind::RpsFlow | WriteKind::Xps | WriteKind::XpsRxqs,
            [file, queue, ..],
        ) => {
            format!("{queue} {file}")
        }
        _ => shown(&write.path).into_owned(),
    }
}

/// A setting as it is and as it is planned: CPUs as lists.
fn difference(host: &HostSummary, write: &Write) -> String {
    let shown = |value: &str| match (CpuSet::parse_kernel_mask(value), Rss::parse(value)) {
        (Ok(set), _) if write.kind.is_cpus() => cpus(host, &set),
        (Ok(queues), _) if write.kind.is_mask() => format!("rx {queues}"),
        (_, Some(table)) if write.kind == WriteKind::Rss => {
            let queues = table.reached();
            let evenly = if table.is_spread_over(&queues) {
                "evenly"
            } else {
                "unevenly"
            };
            format!("flows to queues {queues} {evenly}")
        }
        _ => value.to_owned(),
    };
    format!(
        "is {}, planned {}",
        shown(&write.current),
        shown(&write.value.to_string())
    )
}

fn meaning(reason: Reason) -> &'static str {
    match reason {
        Reason::NotApplied => "no apply has set it yet",
        Reason::MovedByOther => {
            "changed since the last apply by another program, the driver or the kernel"
        }
        Reason::QueueCountChanged => "the number of queues has changed since the last apply",
        Reason::KernelRefused => "the kernel refused it at the last apply",
        Reason::CpuOffline => "its CPU went offline",
        Reason::IrqRecreated => "the driver has allocated its vectors again",
        Reason::PlanChanged => "the machine or the policy has changed since the last apply",
    }
}
