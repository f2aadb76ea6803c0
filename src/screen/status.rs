//! The status: a verdict with the command that fixes it, the interfaces, and the gain of the plan.

use std::iter::once;

use itertools::{Itertools as _, chain};

use crate::screen::details::interface;
use crate::screen::page::{Cell, Page};
use crate::screen::plan::gains_nothing;
use crate::screen::state::{moving, tone, why};
use crate::screen::watcher::watcher;
use crate::screen::{
    Given, REFUSED, count, count_if_any, differ, enclose, is, join_nonempty, judged_count, moves,
    none_judged, one_or, rate, set_apart, short_speed, text_if, text_or, with_prefix,
};
use nicpin::plan::Note;
use nicpin::report::interface::InterfaceState::{
    Crowded, Drifted, Equivalent, Isolated, Remote, Unknown, Unproven, Unsupported, Untuned,
};
use nicpin::report::interface::{InterfaceReport, InterfaceState as State};
use nicpin::report::status::IrqbalanceState::{Absent, AsksNicpin, Banned, Moves};
use nicpin::report::status::{IrqbalanceState, IrqbalanceStatus, Status};

#[derive(Clone, Copy, PartialEq)]
pub enum StatusDetail {
    Summary,
    Interfaces,
    Vectors,
}

pub(crate) const MOST_INTERFACES: usize = 24;
const MOST_NOTES: usize = 6;

pub fn status(status: &Status, detail: StatusDetail, given: &Given) -> Page {
    let is_summary = detail == StatusDetail::Summary;
    let (mut page, apply) = (Page::of(given, !is_summary), given.apply());
    let most = |most| if is_summary { most } else { usize::MAX };
    page.text(verdict(status, &apply));
    table(&mut page, status, most(MOST_INTERFACES));
    let changes = status
        .interfaces
        .iter()
        .flat_map(|interface| &interface.changes);
    let is_told =
        status.differ > 0 && page.gain(&status.score_now, &status.score, &changes.collect_vec());
    if let Some(most) = status.shared_max_per_core().filter(|_| !is_told) {
        let queues = count(most, "queue");
        let planned = status
            .interfaces
            .iter()
            .map(|interface| interface.max_per_core_planned);
        let planned = planned.max().filter(|planned| *planned != most);
        let planned = with_prefix(", with the plan ", planned);
        page.text(format!(
            "The busiest core takes {queues} of all interfaces{planned}."
        ));
    }
    page.line("");
    if !is_summary {
        for report in &status.interfaces {
            interface(&mut page, status, report, detail == StatusDetail::Vectors);
            page.line("");
        }
    }
    let no_watch = " nicpin\u{a0}watch is not running.";
    page.text(irqbalance(&status.irqbalance, &apply) + text_if(status.watcher.is_none(), no_watch));
    if let Some(running) = &status.watcher {
        watcher(&mut page, running);
    }
    let listed = status
        .interfaces
        .iter()
        .filter(|_| is_summary)
        .map(|report| (&*report.name, &*report.notes));
    let notes = once(("", &*status.notes)).chain(listed);
    let more = page.first_notes("", notes, most(MOST_NOTES));
    let all = with_prefix(": ", [given.whole("nicpin status -v")]);
    page.text(count_if_any(more, "more note", &all));
    page
}

fn verdict(status: &Status, apply: &str) -> String {
    let Some(worst) = status.state else {
        return "There is no interface to report on.".into();
    };
    let all = status
        .interfaces
        .iter()
        .filter(|interface| interface.state != Unsupported)
        .collect_vec();
    let alike = all
        .iter()
        .filter(|interface| interface.state == worst)
        .count();
    let not_judged = &status.not_judged;
    let counted = judged_count(&status.interfaces, not_judged);
    let some = match all[..] {
        [single] if counted == 1 => single.name.clone(),
        _ => format!("{alike} of {counted} interfaces"),
    };
    let every = match all.len() {
        judged if judged < counted => format!("{judged} of {counted} interfaces {}", is(judged)),
        1 => format!("{some} is"),
        2 => "Both interfaces are".into(),
        many => format!("All {many} interfaces are"),
    };
    let some_are = format!("{some} {}", is(alike));
    let text = match worst {
        Unknown => format!("The state of {some} is unknown"),
        Isolated => format!("{some_are} handled on isolated CPUs"),
        Remote => format!("{some_are} handled on another NUMA node"),
        Drifted => {
            format!(
                "{some} {} changed since the last apply",
                one_or(alike, "has", "have")
            )
        }
        Crowded => format!("{some_are} crowded: queues share cores needlessly"),
        Untuned => format!("{some_are} not tuned yet"),
        State::Pending => {
            let moving = moves(status.interfaces.iter().map(moving).sum());
            let or_as_good = text_if(status.differ > 0, ", or as good");
            format!("{every} set as planned{or_as_good}; {moving} at the next interrupt")
        }
        Unproven => match status.seconds {
            None => format!("{every} as planned; interrupts were not watched"),
            Some(seconds) => {
                let who = if all.len() == 1 { "it" } else { &some };
                format!("{every} as planned; {who} had no interrupt in {seconds:.1} s")
            }
        },
        Equivalent => {
            let settings = count(status.differ, "setting");
            format!(
                "{every} as good as planned; {settings} {}",
                differ(status.differ)
            )
        }
        Unsupported => none_judged(not_judged, &status.interfaces).into(),
        State::Ok => format!("{every} as planned; interrupts arrive where planned"),
    };
    let own = status.interfaces.iter().map(|interface| interface.differ);
    let of_machine = status.differ.saturating_sub(own.sum());
    let settings = count(of_machine, "setting");
    let settings = format!(
        " {settings} of the machine {} from the plan.",
        differ(of_machine)
    );
    let text = text
        + &set_apart(not_judged, &status.interfaces)
        + "."
        + text_if(of_machine > 0, &settings);
    // Without a record, apply writes nothing.
    let mut notes = status.notes.iter();
    let has_record = !notes.any(|note| matches!(note, Note::RecordUnreadable { .. }));
    if worst < Untuned && of_machine == 0 || status.differ == 0 || !has_record {
        return text;
    }
    if status.refused {
        return format!("{text} {REFUSED}");
    }
    let fix = if worst == Unknown {
        "What can be set"
    } else {
        "Fix"
    };
    let writes = count(status.differ, "write") + &gains_nothing(status.moves_without_gain);
    format!("{text} {fix}: {apply} ({writes})")
}

fn table(page: &mut Page, status: &Status, most: usize) {
    // A figure that all interfaces share is below the table.
    let has_most = status.shared_max_per_core().is_none();
    let heads = chain!(
        ["INTERFACE", "LINK", "NODE", "QUEUES", "LOCAL"],
        has_most.then_some("MAX/CORE"),
        ["IRQ/S", "STATE"],
    );
    let rows = status.interfaces.iter().take(most).map(|interface| {
        let speed = interface.speed_mbps.filter(|_| interface.link == "up");
        let per_core = || {
            let (now, planned) = (interface.max_per_core, interface.max_per_core_planned);
            let planned = Some(planned).filter(|planned| *planned != now);
            // The queues are on some core, even if it is unknown which.
            let now = text_or(
                Some(now).filter(|now| *now > 0 || interface.queues == 0),
                "?",
            );
            format!("{now}{}", with_prefix(" -> ", planned))
        };
        let words = [interface.state.name(), &why(interface, false)];
        let mut state = Cell::from(join_nonempty(": ", words));
        state.tone = tone(interface.state);
        let cells = chain!(
            [
                interface.name.clone(),
                text_or(speed.map(short_speed), &interface.link),
                text_or(interface.node, "?"),
                format!(
                    "{}{}",
                    interface.queues,
                    with_prefix("/", interface.max_queues)
                ),
                text_or(
                    interface
                        .local_percent()
                        .map(|share| format!("{:.0}%", share.floor())),
                    "?",
                ),
            ],
            has_most.then(per_core),
            [text_or(interface.per_second.map(rate), "-")],
        );
        cells.map(Cell::from).chain([state])
    });
    page.columns(0, 4..if has_most { 7 } else { 6 }, heads, rows);
    more_rows(page, status.interfaces.iter(), most);
}

/// Says how many interfaces, the worst first, come after those that are listed.
pub(crate) fn more_rows<'a>(
    page: &mut Page,
    interfaces: impl Iterator<Item = &'a InterfaceReport>,
    listed: usize,
) {
    let left = interfaces.skip(listed).collect_vec();
    if let Some(worst) = left.first() {
        let (more, worst) = (left.len(), worst.state.name());
        let all = page.given.whole("nicpin status -v");
        page.line(format!("{more} more, none worse than {worst}: {all}"));
    }
}

fn irqbalance(found: &IrqbalanceStatus, apply: &str) -> String {
    let advice = found.note.as_ref().and_then(Note::advice);
    let fix = enclose(" Fix: ", advice.map(|advice| advice.text), ".");
    let runs = format!(
        "irqbalance runs (process {})",
        text_or(found.pid, "unknown")
    );
    let planned = count(found.irqs, "planned IRQ");
    match found.state {
        Absent => "irqbalance is not running.".into(),
        IrqbalanceState::Unknown => format!("irqbalance: {}.{fix}", text_or(&found.note, "")),
        AsksNicpin => format!("{runs}; its policy script asks nicpin about each IRQ."),
        _ if found.irqs == 0 => format!("{runs}."),
        Banned => format!("{runs}; the {planned} are banned until it restarts.{fix}"),
        Moves { fixed_by_apply } => {
            let apply = format!(" Fix: {apply}.");
            let fix = if fixed_by_apply { &apply } else { &fix };
            format!("{runs} and moves the {planned}, by default every 10 s.{fix}")
        }
    }
}
