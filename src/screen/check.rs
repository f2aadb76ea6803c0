//! The result of `check` as text.

use std::collections::BTreeMap;

use crate::screen::page::{Cell, Page};
use crate::screen::status::{tone, why};
use crate::screen::text::{count, cpus, kinds, notes};
use nicpin::cpuset::{CpuSet, IrqSet};
use nicpin::machine::Rss;
use nicpin::machine::setting::shown;
use nicpin::plan::{HostSummary, Write, WriteKind};
use nicpin::report::check::{Check, CheckState};
use nicpin::report::difference::{Difference, Reason};
use nicpin::report::interface::{InterfaceReport, InterfaceState};

/// `all`: each setting. `apply`: the command that makes everything as planned.
pub fn check(check: &Check, all: bool, apply: &str) -> Page {
    let mut page = Page::default();
    page.item("", verdict(check, apply));
    let has_details = all || check.verdict != CheckState::Same;
    if all {
        each(check, &mut page);
    } else if has_details {
        by_interface(check, &mut page);
    }
    if has_details {
        page.add(reasons(check));
    }
    if !check.differs.is_empty() && has_details && !all {
        let is_new = check
            .differs
            .iter()
            .all(|one| one.reason == Reason::NotApplied);
        let never = if is_new {
            "Never applied since boot. "
        } else {
            ""
        };
        page.line(format!("{never}Each setting: nicpin check -v"));
    }
    for fallback in &check.fallbacks {
        let (path, holds, planned) = (&fallback.path, &fallback.holds, &fallback.planned);
        let why = "the planned CPU had no free interrupt vector";
        page.item("", format!("{path}: {holds} in place of {planned}: {why}."));
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
            "",
            format!("{interface}: IRQs {irqs} are kernel-managed and cannot be moved."),
        );
    }
    for change in &check.channels {
        page.item(
            "",
            format!(
                "{}: channels differ. Planned: {}",
                change.interface, change.command
            ),
        );
    }
    for one in &check.unknown {
        let code = one.note.code();
        page.item(
            "",
            format!("{}: unknown: {} ({code}).", one.interface, one.note),
        );
    }
    page.add(notes(
        "",
        check.notes.iter().map(|note| ("", note)),
        (usize::MAX, ""),
    ));
    for one in &check.left_alone {
        page.item("", format!("{}: {}.", one.interface, one.note));
    }
    page
}

/// The verdict in a sentence, and the command that fixes it.
fn verdict(check: &Check, apply: &str) -> String {
    let differs = check.differ();
    let apply = apply.replace(' ', "\u{a0}");
    let is = |many| if many == 1 { "is" } else { "are" };
    let is_counted = |one: &&InterfaceReport| one.state != InterfaceState::Unsupported;
    let counted: Vec<_> = check.interfaces.iter().filter(is_counted).collect();
    let all = count(counted.len(), "interface");
    match check.verdict {
        CheckState::Same if check.interfaces.is_empty() => {
            "There is no interface to check.".to_owned()
        }
        CheckState::Same if counted.is_empty() => {
            "No interface has an IRQ that can be placed.".to_owned()
        }
        CheckState::Same => {
            let many = counted.len();
            let but = if differs > 0 {
                format!(
                    ", or as good: {} differ (--exact)",
                    count(differs, "setting")
                )
            } else {
                String::new()
            };
            format!("{many} of {all} {} as planned{but}.", is(many))
        }
        CheckState::Differs if differs == 0 => {
            let irqs = count(check.unmovable.len(), "IRQ");
            format!(
                "{irqs} {} kernel-managed and cannot be moved.",
                is(check.unmovable.len())
            )
        }
        CheckState::Differs => {
            let differ = rows(check).count();
            let worst = check
                .state
                .map_or(String::new(), |state| format!(" (worst: {})", state.name()));
            let is_refused = check
                .differs
                .iter()
                .all(|one| one.reason == Reason::KernelRefused);
            let fix = if is_refused && check.channels.is_empty() {
                "The kernel refused what apply wrote.".to_owned()
            } else {
                format!("Fix: {apply}")
            };
            match differ {
                0 => format!(
                    "{} of the machine differ from the plan. {fix}",
                    count(differs, "setting")
                ),
                1 => format!("1 of {all} differs from the plan{worst}. {fix}"),
                _ => format!("{differ} of {all} differ from the plan{worst}. {fix}"),
            }
        }
        CheckState::CouldNotBeDetermined => {
            let unknown = check.unknown.len();
            let others = if differs > 0 {
                format!(" The others: {apply}")
            } else {
                String::new()
            };
            format!("The state of {unknown} of {all} is unknown.{others}")
        }
    }
}

/// The interfaces that would be better as planned; if there are none, those that are only as good.
fn rows(check: &Check) -> impl Iterator<Item = &InterfaceReport> {
    let is_worse = check.interfaces.iter().any(|one| one.state.differs());
    let is_one = move |one: &&InterfaceReport| one.differ > 0 && (one.state.differs() || !is_worse);
    check.interfaces.iter().filter(is_one)
}

/// A line for each interface that differs.
fn by_interface(check: &Check, page: &mut Page) {
    let rows = rows(check).map(|one| {
        let has_channels = check
            .channels
            .iter()
            .any(|change| change.interface == one.name);
        let is_more = one.max_per_core > one.max_per_core_planned;
        let better = one.changes.iter().find(|change| change.is_better());
        let why = match (one.state, better) {
            (InterfaceState::Untuned, Some(change)) if !is_more => {
                format!("{} {} -> {}", change.measure, change.now, change.planned)
            }
            _ => why(one, true),
        };
        vec![
            one.name.as_str().into(),
            Cell::new(one.state.name(), tone(one.state)),
            kinds(&one.kinds, has_channels).into(),
            why.into(),
        ]
    });
    let mut rows: Vec<Vec<Cell>> = rows.collect();
    let of_machine = check
        .differs
        .iter()
        .filter(|one| one.write.interface.is_empty())
        .count();
    if of_machine > 0 {
        let cells = [
            "machine".to_owned(),
            "-".to_owned(),
            count(of_machine, "setting"),
            String::new(),
        ];
        rows.push(cells.map(Cell::from).to_vec());
    }
    if !rows.is_empty() {
        page.line("");
        let heads = ["INTERFACE", "STATE", "DIFFERS", "WHY"]
            .map(Cell::from)
            .to_vec();
        page.table(0, std::iter::once(heads).chain(rows));
    }
}

/// A line for each setting.
fn each(check: &Check, page: &mut Page) {
    if check.differs.is_empty() {
        return;
    }
    let row = |one: &Difference| {
        let name = if one.write.interface.is_empty() {
            "machine"
        } else {
            &one.write.interface
        };
        vec![
            name.to_owned(),
            setting(&one.write),
            difference(&check.host, &one.write),
        ]
    };
    page.line("");
    let heads = ["INTERFACE", "SETTING", "NOW -> PLANNED"]
        .map(str::to_owned)
        .to_vec();
    page.table(
        0,
        std::iter::once(heads).chain(check.differs.iter().map(row)),
    );
}

/// Why settings differ that apply has set, with the interfaces and how many settings there are.
fn reasons(check: &Check) -> Page {
    let mut found: BTreeMap<Reason, Vec<&Difference>> = BTreeMap::new();
    let is_old = |one: &&Difference| one.reason != Reason::NotApplied;
    for one in check.differs.iter().filter(is_old) {
        found.entry(one.reason).or_default().push(one);
    }
    let mut page = Page::default();
    for (reason, differs) in found {
        let mut interfaces: Vec<&str> = differs.iter().map(|one| &*one.write.interface).collect();
        interfaces.dedup();
        let interfaces = interfaces.join(", ");
        let on = if interfaces.is_empty() {
            "the machine"
        } else {
            &interfaces
        };
        let detail = differs[0].detail.as_deref();
        let detail = detail.filter(|_| differs.iter().all(|one| one.detail.as_deref() == detail));
        let detail = detail.map_or(String::new(), |detail| format!("; {detail}"));
        let settings = count(differs.len(), "setting");
        page.item(
            "",
            format!("{settings} of {on}: {}{detail}.", meaning(reason)),
        );
    }
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
    format!("{} -> {}", shown(&write.current), shown(&write.value))
}

fn meaning(reason: Reason) -> &'static str {
    match reason {
        Reason::NotApplied => "not applied yet",
        Reason::MovedByOther => "changed since apply, by another program, the driver or the kernel",
        Reason::QueueCountChanged => "the number of queues has changed since apply",
        Reason::KernelRefused => "the kernel refused it at the last apply",
        Reason::CpuOffline => "its CPU went offline",
        Reason::IrqRecreated => "the driver has allocated its IRQs again",
        Reason::PlanChanged => "the plan has changed since apply",
        Reason::Unknown => "the record of the last apply cannot be read",
    }
}
