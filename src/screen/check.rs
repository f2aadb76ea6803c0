//! The result of `check` as text.

use itertools::Itertools as _;

use crate::screen::page::{Cell, Page};
use crate::screen::status::{tone, why};
use crate::screen::{
    bracketed, count, cpus, is, kinds, machine_or, or, sorted, unbroken, when, with,
};
use nicpin::cpuset::{CpuSet, IrqSet};
use nicpin::machine::Rss;
use nicpin::machine::setting::shown;
use nicpin::plan::WriteKind::{Rps, RpsFlow, Vector, Xps, XpsRxqs};
use nicpin::plan::{HostSummary, Write, WriteKind};
use nicpin::report::check::Check;
use nicpin::report::check::CheckState::{CouldNotBeDetermined, Differs, Same};
use nicpin::report::difference::Reason;
use nicpin::report::difference::Reason::{
    CpuOffline, IrqRecreated, KernelRefused, MovedByOther, NotApplied, PlanChanged,
    QueueCountChanged, Unknown,
};
use nicpin::report::interface::InterfaceState::{Unsupported, Untuned};
use nicpin::report::interface::{InterfaceReport, InterfaceState};

/// `all`: each setting. `apply`: the command that makes everything as planned.
pub fn check(check: &Check, all: bool, apply: &str) -> Page {
    let mut page = Page::default();
    page.text(verdict(check, apply));
    let has_details = all || check.verdict != Same;
    let differs = &check.differs;
    if !all && has_details {
        by_interface(check, &mut page);
    } else if all && !differs.is_empty() {
        let rows = differs.iter().map(|one| {
            let on = machine_or(&one.write.interface).to_owned();
            [on, setting(&one.write), difference(&check.host, &one.write)]
        });
        page.columns(0, 0..0, ["INTERFACE", "SETTING", "NOW -> PLANNED"], rows);
    }
    if has_details {
        reasons(check, &mut page);
    }
    if !differs.is_empty() && has_details && !all {
        let is_new = differs.iter().all(|one| one.reason == NotApplied);
        let never = when(is_new, "Never applied since boot. ");
        page.line(format!("{never}Each setting: nicpin check -v"));
    }
    for fallback in &check.fallbacks {
        let (path, holds, planned) = (&fallback.path, &fallback.holds, &fallback.planned);
        let why = "the planned CPU had no free interrupt vector";
        page.text(format!("{path}: {holds} in place of {planned}: {why}."));
    }
    for (name, irqs) in sorted(check.unmovable.iter().map(|of| (&of.interface, of.irq))) {
        let irqs = IrqSet::from_iter(irqs);
        page.text(format!(
            "{name}: IRQs {irqs} are kernel-managed and cannot be moved."
        ));
    }
    for change in &check.channels {
        let (name, command) = (&change.interface, &change.command);
        page.text(format!("{name}: channels differ. Planned: {command}"));
    }
    for one in &check.unknown {
        let (name, note, code) = (&one.interface, &one.note, one.note.code());
        page.text(format!("{name}: unknown: {note} ({code})."));
    }
    page.notes([("", &*check.notes)]);
    for one in &check.left_alone {
        page.text(format!("{}: {}.", one.interface, one.note));
    }
    page
}

/// The verdict in a sentence, and the command that fixes it.
fn verdict(check: &Check, apply: &str) -> String {
    let (differs, apply) = (check.differ(), unbroken(apply));
    let settings = count(differs, "setting");
    let counted = check
        .interfaces
        .iter()
        .filter(|one| one.state != Unsupported)
        .count();
    let all = count(counted, "interface");
    match check.verdict {
        Same if check.interfaces.is_empty() => "There is no interface to check.".to_owned(),
        Same if counted == 0 => "No interface has an IRQ that can be placed.".to_owned(),
        Same => {
            let but = format!(", or as good: {settings} differ (--exact)");
            let but = when(differs > 0, &but);
            format!("{counted} of {all} {} as planned{but}.", is(counted))
        }
        Differs if differs == 0 => {
            let many = check.unmovable.len();
            let (irqs, are) = (count(many, "IRQ"), is(many));
            format!("{irqs} {are} kernel-managed and cannot be moved.")
        }
        Differs => {
            let worst = check.state.map(InterfaceState::name);
            let worst = bracketed(&with("worst: ", worst));
            let mut reasons = check.differs.iter().map(|one| one.reason);
            let is_refused =
                reasons.all(|reason| reason == KernelRefused) && check.channels.is_empty();
            let fix = format!("Fix: {apply}");
            let refused = "The kernel refused what apply wrote.";
            let fix = if is_refused { refused } else { &fix };
            match rows(check).count() {
                0 => format!("{settings} of the machine differ from the plan. {fix}"),
                1 => format!("1 of {all} differs from the plan{worst}. {fix}"),
                many => format!("{many} of {all} differ from the plan{worst}. {fix}"),
            }
        }
        CouldNotBeDetermined => {
            let others = format!(" The others: {apply}");
            let (unknown, others) = (check.unknown.len(), when(differs > 0, &others));
            format!("The state of {unknown} of {all} is unknown.{others}")
        }
    }
}

/// The interfaces that would be better as planned; if there are none, those that are only as good.
fn rows(check: &Check) -> impl Iterator<Item = &InterfaceReport> {
    let is_worse = check.interfaces.iter().any(|one| one.state.differs());
    check
        .interfaces
        .iter()
        .filter(move |one| one.differ > 0 && (one.state.differs() || !is_worse))
}

/// A line for each interface that differs.
fn by_interface(check: &Check, page: &mut Page) {
    let rows = rows(check).map(|one| {
        let has_channels = check
            .channels
            .iter()
            .any(|change| change.interface == one.name);
        let is_more = one.max_per_core > one.max_per_core_planned;
        let why = match one.changes.iter().find(|change| change.is_better()) {
            Some(change) if one.state == Untuned && !is_more => {
                format!("{} {} -> {}", change.measure, change.now, change.planned)
            }
            _ => why(one, true),
        };
        let kinds = kinds(&one.kinds, has_channels);
        let mut cells = [&*one.name, one.state.name(), &kinds, &why].map(Cell::from);
        cells[1].tone = tone(one.state);
        cells
    });
    let of_machine = check.reasons_of("").values().sum();
    let settings = count(of_machine, "setting");
    let of_machine = (of_machine > 0).then(|| ["machine", "-", &settings, ""].map(Cell::from));
    let rows = rows.chain(of_machine).collect_vec();
    if !rows.is_empty() {
        page.columns(0, 0..0, ["INTERFACE", "STATE", "DIFFERS", "WHY"], rows);
    }
}

/// Why settings differ that apply has set, with the interfaces and how many settings there are.
fn reasons(check: &Check, page: &mut Page) {
    let old = check.differs.iter().filter(|one| one.reason != NotApplied);
    for (reason, differs) in sorted(old.map(|one| (one.reason, one))) {
        let mut on = differs.iter().map(|one| &one.write.interface).dedup();
        let on = or([on.join(", ")], "the machine");
        let detail = differs[0].detail.as_ref();
        let detail = detail.filter(|_| differs.iter().map(|one| &one.detail).all_equal());
        let (settings, detail) = (count(differs.len(), "setting"), with("; ", detail));
        page.text(format!("{settings} of {on}: {}{detail}.", meaning(reason)));
    }
}

/// The file of a setting in short: `IRQ 71 smp_affinity`, `tx-0 xps_cpus`.
fn setting(write: &Write) -> String {
    let parts = write.path.rsplitn(3, '/').collect_vec();
    match (write.kind, &parts[..]) {
        (Vector, [file, irq, ..]) => format!("IRQ {irq} {file}"),
        (Rps | RpsFlow | Xps | XpsRxqs, [file, queue, ..]) => format!("{queue} {file}"),
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
            let is_even = table.is_spread_over(&queues);
            let evenly = if is_even { "evenly" } else { "unevenly" };
            format!("flows to queues {queues} {evenly}")
        }
        _ => value.to_owned(),
    };
    let (now, planned) = (shown(&write.current), shown(&write.value));
    format!("{now} -> {planned}")
}

fn meaning(reason: Reason) -> &'static str {
    match reason {
        NotApplied => "not applied yet",
        MovedByOther => "changed since apply, by another program, the driver or the kernel",
        QueueCountChanged => "the number of queues has changed since apply",
        KernelRefused => "the kernel refused it at the last apply",
        CpuOffline => "its CPU went offline",
        IrqRecreated => "the driver has allocated its IRQs again",
        PlanChanged => "the plan has changed since apply",
        Unknown => "the record of the last apply cannot be read",
    }
}
