//! The result of `check` as text.

use itertools::Itertools as _;

use crate::screen::page::{Cell, LEFT, Page, change};
use crate::screen::state::{moving, tone, why};
use crate::screen::status::{MOST_INTERFACES, more_rows};
use crate::screen::{
    Given, REFUSED, count, cpus, differ, enclose, group_sorted, interface_or_machine, is,
    judged_count, moves_later, none_judged, one_or, set_apart, text_if, with_prefix,
};
use nicpin::cpuset::{CpuSet, IrqSet};
use nicpin::machine::Rss;
use nicpin::plan::SettingKind::Vector;
use nicpin::plan::{HostSummary, Note, SettingKind, Write};
use nicpin::report::check::Check;
use nicpin::report::check::CheckState::{CouldNotBeDetermined, Differs, Same};
use nicpin::report::difference::Reason::{
    CpuOffline, IrqRecreated, KernelRefused, MovedByOther, NotApplied, PlanChanged,
    QueueCountChanged, Unknown,
};
use nicpin::report::difference::{Fallback, NoteAbout, Reason};
use nicpin::report::interface::InterfaceState::{Unsupported, Untuned};
use nicpin::report::interface::{InterfaceReport, InterfaceState as State};

pub fn check(check: &Check, all: bool, given: &Given) -> Page {
    let mut page = Page::of(given, all);
    page.text(verdict(check, given));
    let differs = &check.differs;
    if all {
        let rows = differs.iter().map(|found| {
            let on = interface_or_machine(&found.write.interface);
            [
                on,
                setting(&found.write),
                difference(&check.host, &found.write),
            ]
        });
        page.columns(0, LEFT, ["INTERFACE", "SETTING", "NOW -> PLANNED"], rows);
        reasons(check, &mut page);
    } else if check.verdict != Same {
        by_interface(check, &mut page);
        reasons(check, &mut page);
        if !differs.is_empty() {
            let never = match (check.has_no_record, check.applied) {
                (true, _) => "What was applied is not recorded here. ",
                (_, false) => "Never applied since boot. ",
                _ => "",
            };
            let each = given.whole("nicpin check -v");
            page.text(format!("{never}Each setting: {each}"));
        }
    }
    for Fallback {
        path,
        planned,
        holds,
        ..
    } in &check.fallbacks
    {
        let why = "the planned CPU had no free interrupt vector";
        page.text(format!("{path}: {holds} in place of {planned}: {why}."));
    }
    let unmovable = check.unmovable.iter();
    let unmovable = unmovable.map(|vector| ((&vector.interface, vector.managed), vector.irq));
    for ((name, is_managed), irqs) in group_sorted(unmovable) {
        let irqs = IrqSet::from_iter(irqs);
        let s = one_or(irqs.len(), "", "s");
        let managed = text_if(is_managed, " (kernel-managed)");
        page.text(format!("{name}: IRQ{s} {irqs} cannot be moved{managed}."));
    }
    for change in &check.channels {
        page.text(format!(
            "{}: channels differ. Planned: {}",
            change.interface, change.command
        ));
    }
    for NoteAbout { interface, note } in &check.unknown {
        let code = note.code();
        let on = interface_or_machine(interface);
        let note = page.text_of(note);
        page.text(format!("{on}: unknown: {note} ({code})."));
    }
    page.notes([("", &*check.notes)]);
    for about in &check.left_alone {
        let note = page.text_of(&about.note);
        page.text(format!("{}: {note}.", about.interface));
    }
    page
}

fn verdict(check: &Check, given: &Given) -> String {
    // IRQs that cannot be moved would be reported again.
    let is_whole = check.unmovable.is_empty() || !given.has("--strict");
    let fixing = if is_whole {
        given
    } else {
        &given.without(&["--strict"])
    };
    let (differs, apply) = (check.differ(), fixing.apply());
    let settings = count(differs, "setting");
    let counted = check
        .interfaces
        .iter()
        .filter(|interface| interface.state != Unsupported)
        .count();
    let not_judged = &check.not_judged;
    let all = count(judged_count(&check.interfaces, not_judged), "interface");
    let apart = set_apart(not_judged, &check.interfaces);
    let named = |verdict: &str| format!("{verdict}{apart}.");
    match check.verdict {
        Same if check.interfaces.is_empty() => "There is no interface to check.".into(),
        Same if counted == 0 => named(none_judged(not_judged, &check.interfaces)),
        Same => {
            let but = format!(
                ", or as good: {settings} {} (--exact counts them)",
                differ(differs)
            );
            let (are, but) = (is(counted), text_if(differs > 0, &but));
            let moving = check.interfaces.iter().map(moving).sum();
            named(&format!("{counted} of {all} {are} as planned{but}")) + &moves_later(moving)
        }
        Differs if differs == 0 => {
            let irqs = count(check.unmovable.len(), "IRQ");
            named(&format!("{irqs} cannot be moved"))
        }
        Differs => {
            let states = rows(check).map(|interface| interface.state);
            let worst = enclose(" (worst: ", State::worst(states).map(State::name), ")");
            let fix = if is_whole { "Fix" } else { "What can be set" };
            let fix = format!("{fix}: {apply}");
            let fix = if check.is_refused() { REFUSED } else { &fix };
            let (what, many, worst) = match rows(check).count() {
                0 => (format!("{settings} of the machine"), differs, ""),
                many => (format!("{many} of {all}"), many, &*worst),
            };
            let text = format!("{what} {} from the plan{worst}", differ(many));
            format!("{} {fix}", named(&text))
        }
        CouldNotBeDetermined => {
            let states = check.interfaces.iter().map(|interface| interface.state);
            let what = match states.filter(|&state| state == State::Unknown).count() {
                0 => "the machine's settings".into(),
                unknown => format!("{unknown} of {all}"),
            };
            // Without a record, apply writes nothing.
            let mut unknown = check.unknown.iter();
            let has_record =
                !unknown.any(|about| matches!(about.note, Note::RecordUnreadable { .. }));
            let rest = format!(" What can be set: {apply}");
            let rest = text_if(differs > 0 && has_record, &rest);
            named(&format!("The state of {what} is unknown")) + rest
        }
    }
}

/// The interfaces that would be better as planned; if there are none, those that are only as good.
fn rows(check: &Check) -> impl Iterator<Item = &InterfaceReport> {
    let all = check.interfaces.iter();
    let is_worse = all.clone().any(|interface| interface.state.differs());
    all.filter(move |interface| interface.differ > 0 && (interface.state.differs() || !is_worse))
}

fn by_interface(check: &Check, page: &mut Page) {
    let rows = rows(check).take(MOST_INTERFACES).map(|interface| {
        let channels = check
            .channels
            .iter()
            .filter(|change| change.interface == interface.name);
        let kinds = interface
            .kinds
            .iter()
            .map(|(&kind, &many)| kind.counted(many))
            .chain(channels.map(|_| "channels".to_owned()))
            .join(", ");
        let why = match interface.changes.iter().find(|changed| changed.is_better()) {
            Some(changed) if interface.state == Untuned => change(changed),
            _ => why(interface, true),
        };
        let mut cells = [&*interface.name, interface.state.name(), &kinds, &why].map(Cell::from);
        cells[1].tone = tone(interface.state);
        cells
    });
    let of_machine = check.reasons_of("").values().sum();
    let settings = count(of_machine, "setting");
    let of_machine = (of_machine > 0).then(|| ["machine", "-", &settings, ""].map(Cell::from));
    let heads = ["INTERFACE", "STATE", "DIFFERS", "WHY"];
    page.columns(0, LEFT, heads, rows.chain(of_machine));
    more_rows(page, self::rows(check), MOST_INTERFACES);
}

fn reasons(check: &Check, page: &mut Page) {
    let differs = check.differs.iter();
    let told = differs.filter(|found| check.applied || found.reason != NotApplied);
    for (reason, differs) in group_sorted(told.map(|found| (found.reason, found))) {
        let on = differs.iter().map(|found| &*found.write.interface).unique();
        let on = on.map(|name| if name.is_empty() { "the machine" } else { name });
        let on = page.names(on);
        let detail = differs[0]
            .detail
            .as_ref()
            .filter(|_| differs.iter().map(|found| &found.detail).all_equal());
        let (settings, meaning) = (count(differs.len(), "setting"), meaning(reason));
        page.text(format!(
            "{settings} of {on}: {meaning}{}.",
            with_prefix("; ", detail)
        ));
    }
}

/// Names a setting in short, such as `IRQ 71 smp_affinity`, `tx-0 xps_cpus`.
fn setting(write: &Write) -> String {
    match (write.kind, write.kind.of_queue()) {
        (Vector, _) => format!("IRQ {} smp_affinity", write.number),
        (_, Some((way, file))) => format!("{way}-{} {file}", write.number),
        _ => write.shown(),
    }
}

fn difference(host: &HostSummary, write: &Write) -> String {
    let shown = |value: &str| match (CpuSet::parse_kernel_mask(value), Rss::parse(value)) {
        (Ok(set), _) if write.kind.is_cpus() => cpus(host, &set),
        (Ok(queues), _) if write.kind.is_mask() => format!("rx {queues}"),
        (_, Some(table)) if write.kind == SettingKind::Rss => {
            let queues = table.reached();
            let un = text_if(!table.is_spread_over(&queues), "un");
            format!("flows to queues {queues} {un}evenly")
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
        KernelRefused => "refused by the kernel at the last apply",
        CpuOffline => "a CPU that apply set is offline",
        IrqRecreated => "the driver has allocated its IRQs again",
        PlanChanged => "the plan has changed since apply",
        Unknown => "the record of the last apply cannot be read",
    }
}
