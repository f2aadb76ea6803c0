//! The status: a verdict with the command that fixes it, a line for each interface, and the gain of the plan; on
//! request the details of each interface. Also the watcher's state, for systemd and the journal, too.

use std::iter::once;

use itertools::Itertools as _;

use crate::screen::page::Tone::{Alarm, Good, Plain, Warning};
use crate::screen::page::{Cell, LEFT, Page, Tone};
use crate::screen::plan::gains_nothing;
use crate::screen::{
    Given, count, count_if_any, cpus, differ, enclose, heading, is, join_nonempty, judged_count,
    moves, queue, ranges, rate, short_speed, text_if, text_or, time, unbroken, with_not_judged,
    with_prefix,
};
use nicpin::cpuset::CpuSet;
use nicpin::machine::Role;
use nicpin::plan::{HostSummary, Note};
use nicpin::report::interface::InterfaceState::{
    Crowded, Drifted, Equivalent, Isolated, Remote, Unknown, Unproven, Unsupported, Untuned,
};
use nicpin::report::interface::{InterfaceReport, InterfaceState as State, Steering};
use nicpin::report::run::{WaitsFor, Watcher, WatcherRun};
use nicpin::report::status::IrqbalanceState::{Absent, AsksNicpin, Banned, Moves};
use nicpin::report::status::{IrqbalanceState, IrqbalanceStatus, Status};
use nicpin::report::vectors::VectorState::{AsPlanned, Differs, Elsewhere, LeftAlone, Unmovable};
use nicpin::report::vectors::{VectorState, VectorStatus};

#[derive(Clone, Copy, PartialEq)]
pub enum StatusDetail {
    /// One screen: a line for each interface.
    Summary,
    /// Also each interface, with its differences from the plan.
    Interfaces,
    Vectors,
}

/// Maximum interfaces and notes on one screen.
pub(crate) const MOST_INTERFACES: usize = 24;
const MOST_NOTES: usize = 6;

/// `given`: the options that decide on the plan.
pub fn status(status: &Status, detail: StatusDetail, given: &Given) -> Page {
    let is_summary = detail == StatusDetail::Summary;
    let (mut page, apply) = (Page::of(given, !is_summary), unbroken(&given.apply()));
    let most = |most| if is_summary { most } else { usize::MAX };
    page.text(verdict(status, &apply));
    table(&mut page, status, most(MOST_INTERFACES), given);
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
    // Other tools that may change the settings, or keep them.
    let no_watch = " nicpin\u{a0}watch is not running.";
    page.text(irqbalance(&status.irqbalance, &apply) + text_if(status.watcher.is_none(), no_watch));
    if let Some(watcher) = &status.watcher {
        self::watcher(&mut page, watcher);
    }
    let listed = status
        .interfaces
        .iter()
        .filter(|_| is_summary)
        .map(|report| (&*report.name, &*report.notes));
    let notes = once(("", &*status.notes)).chain(listed);
    let more = page.first_notes("", notes, most(MOST_NOTES));
    page.text(count_if_any(more, "more note", ": nicpin status -v"));
    page
}

/// Says the worst state of all interfaces in a sentence, with the command that fixes it.
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
        Unknown => format!("{some} cannot be judged."),
        Isolated => format!("{some_are} handled on isolated CPUs."),
        Remote => format!("{some_are} handled on another NUMA node."),
        Drifted => {
            let have = if alike == 1 { "has" } else { "have" };
            format!("{some} {have} changed since the last apply.")
        }
        Crowded => format!("{some_are} crowded: queues share cores needlessly."),
        Untuned => format!("{some_are} not tuned yet."),
        State::Pending => {
            let moving = moves(status.interfaces.iter().map(moving).sum());
            let or_as_good = text_if(status.differ > 0, ", or as good");
            format!("{every} set as planned{or_as_good}; {moving} at the next interrupt.")
        }
        Unproven => match status.seconds {
            None => format!("{every} as planned; interrupts were not watched."),
            Some(seconds) => {
                let who = if all.len() == 1 { "it" } else { &some };
                format!("{every} as planned; {who} had no interrupt in {seconds:.1} s.")
            }
        },
        Equivalent => {
            let settings = count(status.differ, "setting");
            format!(
                "{every} as good as planned; {settings} {}.",
                differ(status.differ)
            )
        }
        Unsupported if not_judged.is_empty() => {
            "No interface has an IRQ that can be placed.".into()
        }
        Unsupported => "No interface is as planned.".into(),
        State::Ok => format!("{every} as planned; interrupts arrive where planned."),
    };
    let text = with_not_judged(&text, not_judged);
    let own = status.interfaces.iter().map(|interface| interface.differ);
    let of_machine = status.differ.saturating_sub(own.sum());
    let settings = count(of_machine, "setting");
    let settings = format!(
        " {settings} of the machine {} from the plan.",
        differ(of_machine)
    );
    let text = text + text_if(of_machine > 0, &settings);
    // Without a record, apply writes nothing.
    let mut notes = status.notes.iter();
    let has_record = !notes.any(|note| matches!(note, Note::RecordUnreadable { .. }));
    if worst < Untuned && of_machine == 0 || status.differ == 0 || !has_record {
        return text;
    }
    let fix = if worst == Unknown {
        "What can be set"
    } else {
        "Fix"
    };
    let writes = count(status.differ, "write") + &gains_nothing(status.moves_without_gain);
    format!("{text} {fix}: {apply} ({writes})")
}

pub(crate) fn moving(interface: &InterfaceReport) -> usize {
    let irqs = |state| having(interface, state).count();
    irqs(VectorState::Pending) + irqs(Elsewhere)
}

fn having(interface: &InterfaceReport, state: VectorState) -> impl Iterator<Item = &VectorStatus> {
    interface
        .vectors
        .iter()
        .filter(move |row| row.state == state)
}

fn table(page: &mut Page, status: &Status, most: usize, given: &Given) {
    let is_shared = status.shared_max_per_core().is_some();
    let heads = [
        "INTERFACE",
        "LINK",
        "NODE",
        "QUEUES",
        "LOCAL",
        // A figure that all interfaces share is below the table.
        if is_shared { "OWN/CORE" } else { "MAX/CORE" },
        "IRQ/S",
        "STATE",
    ];
    let rows = status.interfaces.iter().take(most).map(|interface| {
        let speed = interface.speed_mbps.filter(|_| interface.link == "up");
        let (now, planned) = if is_shared {
            (interface.own_per_core, interface.own_per_core_planned)
        } else {
            (interface.max_per_core, interface.max_per_core_planned)
        };
        let planned = Some(planned).filter(|planned| *planned != now);
        // The queues are on some core, even if it is unknown which.
        let now = text_or(
            Some(now).filter(|now| *now > 0 || interface.queues == 0),
            "?",
        );
        let why = why(interface, false);
        let why = text_if(!is_shared || interface.state != Crowded, &why);
        let mut cells = [
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
            format!("{now}{}", with_prefix(" -> ", planned)),
            text_or(interface.per_second.map(rate), "-"),
            join_nonempty(": ", [interface.state.name(), why]),
        ]
        .map(Cell::from);
        cells[7].tone = tone(interface.state);
        cells
    });
    page.columns(0, 4..7, heads, rows);
    if let Some(next) = status.interfaces.get(most) {
        more_rows(page, status.interfaces.len() - most, next.state, given);
    }
}

/// Says how many interfaces are left out of a table, and their worst state.
pub(crate) fn more_rows(page: &mut Page, more: usize, worst: State, given: &Given) {
    let all = given.whole("nicpin status -v");
    page.line(format!(
        "{more} more, none worse than {}: {all}",
        worst.name()
    ));
}

pub(crate) fn tone(state: State) -> Tone {
    match state {
        State::Ok => Good,
        Crowded => Warning,
        state if state.is_alarming() => Alarm,
        _ => Plain,
    }
}

/// Gives the reason for an interface's state in a few words; empty if the state says all. `more`: with the facts that a
/// line of `status` has in other columns.
pub(crate) fn why(interface: &InterfaceReport, more: bool) -> String {
    let (most, planned) = (interface.max_per_core, interface.max_per_core_planned);
    match interface.state {
        Isolated => {
            let irqs = count(interface.on_isolated, "IRQ");
            irqs + text_if(more, " on isolated CPUs")
        }
        Remote => {
            let active = interface.vectors.iter().filter(|row| row.is_active());
            let remote = active.clone().filter(|row| row.local == Some(false));
            let queues = remote.clone().map(VectorStatus::queue_id).unique().count();
            let all = active.map(VectorStatus::queue_id).unique().count();
            let on = match ranges(remote.filter_map(|row| row.node)) {
                // On CPUs of several nodes, or of none that is known.
                none if none.is_empty() => "elsewhere".into(),
                nodes if nodes.contains([',', '-']) => format!("on nodes {nodes}"),
                node => format!("on node {node}"),
            };
            // Of IRQs whose queues are not known, or that serve other interfaces, too, there may be more.
            let of_all = if all > interface.queues {
                format!(" of {}", count(all, "IRQ"))
            } else {
                format!(" of {}", count(interface.queues, "queue"))
            };
            format!("{queues}{} {on}", text_if(more, &of_all))
        }
        Drifted => format!("{} changed", interface.drifted),
        Crowded if more => format!("{} on a core, {planned} planned", count(most, "queue")),
        Crowded => format!("{most} on a core"),
        Untuned => count(interface.differ, "setting"),
        State::Pending => count(moving(interface), "IRQ") + " to move",
        Equivalent => format!("{} differ", interface.differ),
        Unsupported if interface.unmovable > 0 => "fixed IRQs".into(),
        Unsupported if interface.notes.is_empty() => "no IRQs".into(),
        Unsupported | Unknown => "see the note".into(),
        Unproven if interface.proven.is_none() => "not watched".into(),
        Unproven => "no interrupt".into(),
        State::Ok => String::new(),
    }
}

/// `all`: also the IRQs and threads that are as planned.
fn interface(page: &mut Page, status: &Status, interface: &InterfaceReport, all: bool) {
    let (host, is_shared) = (&status.host, status.shared_max_per_core().is_some());
    page.text(heading(
        host,
        (
            &interface.name,
            interface.driver.as_deref(),
            &interface.device,
        ),
        interface.speed_mbps,
        (interface.node, interface.node_source),
        (&interface.candidates, interface.candidate_cores),
    ));
    let device = [
        &*with_prefix("driver version ", &interface.driver_version),
        &with_prefix("firmware ", &interface.firmware),
        &with_prefix("MTU ", interface.mtu),
    ];
    page.item("  ", join_nonempty(", ", device));
    let (why, settings) = (why(interface, true), count(interface.differ, "setting"));
    let drifted =
        Some(interface.drifted).filter(|&drifted| drifted > 0 && interface.state != Drifted);
    let drifted = enclose(", ", drifted, " changed since apply");
    let differ = format!("{settings} not as planned{drifted}");
    let why = [
        text_if(why != settings, &why),
        text_if(interface.differ > 0, &differ),
    ];
    let state = join_nonempty(": ", [interface.state.name(), &join_nonempty("; ", why)]);
    page.item(
        "  ",
        state + &with_prefix(". Fix: ", interface.fix.as_deref().map(unbroken)),
    );
    // The table has the interface's own queues instead.
    if is_shared && interface.state != Crowded {
        let planned =
            Some(interface.max_per_core_planned).filter(|most| *most != interface.max_per_core);
        let queues = count(interface.max_per_core, "queue");
        page.item(
            "  ",
            format!("busiest core: {queues}{}", with_prefix(" -> ", planned)),
        );
    }
    vectors(page, host, interface, all);
    threads(page, host, interface, all);
    page.item("  ", good(interface));
    page.first_notes("  ", [("", &*interface.notes)], usize::MAX);
}

fn vectors(page: &mut Page, host: &HostSummary, interface: &InterfaceReport, all: bool) {
    let heads = [
        "QUEUE",
        "IRQ",
        "AFFINITY",
        "EFFECTIVE",
        "PLANNED",
        "NODE",
        "IRQ/S",
        "STATE",
    ];
    let shown = interface
        .vectors
        .iter()
        .filter(|row| all || row.why.is_some());
    let rows = shown.map(|row| {
        let word = match row.state {
            AsPlanned if row.is_proven() => "ok",
            AsPlanned if row.idle => "as planned; not in use",
            AsPlanned => "as planned",
            LeftAlone => "unchanged",
            Unmovable => "cannot be moved",
            VectorState::Pending => "pending",
            Elsewhere => "elsewhere",
            Differs => "differs",
        };
        let cpus_of = |set: &Option<CpuSet>| text_or(set.as_ref().map(|set| cpus(host, set)), "-");
        let mut cells = [
            queue(row.role, row.queue),
            row.irq.to_string(),
            cpus(host, &row.affinity),
            cpus_of(&row.effective),
            cpus_of(&row.planned),
            text_or(row.node, "-"),
            text_or(row.per_second.map(rate), "-"),
            format!("{word}{}", with_prefix(": ", &row.why)),
        ]
        .map(Cell::from);
        cells[7].tone = match row.state {
            Elsewhere => Warning,
            Differs if row.on_isolated || row.local == Some(false) => Alarm,
            _ => Plain,
        };
        cells
    });
    page.columns(2, LEFT, heads, rows);
}

/// Lists the threads that poll queues: those that are not on their planned CPUs, or all.
fn threads(page: &mut Page, host: &HostSummary, interface: &InterfaceReport, all: bool) {
    let shown = interface
        .threads
        .iter()
        .filter(|thread| all || matches!(thread.state, Differs | Elsewhere));
    let rows = shown.map(|thread| {
        let whose = thread.role.map(|role| queue(role, thread.queue));
        let planned = thread.planned.as_ref().map(|to| cpus(host, to));
        [
            format!("thread {}", text_or(whose, "unknown queue")),
            format!("process {}", thread.pid),
            format!("affinity {}", cpus(host, &thread.affinity)),
            format!("planned {}", text_or(planned, "-")),
            match (&thread.ran_on, thread.runs) {
                (Some(on), Some(runs @ 1..)) => format!("ran {runs} times, last on {}", on.short()),
                (_, Some(_)) => "did not run".into(),
                _ => String::new(),
            },
        ]
    });
    page.table(2, LEFT, rows);
}

/// Sums up the items that are as planned or unchanged.
fn good(interface: &InterfaceReport) -> String {
    let planned = having(interface, AsPlanned).count();
    let proven = interface.proven.filter(|_| planned > 0).map(|proven| {
        let all = interface.queue_vectors;
        format!("interrupts arrived there on {proven} of {all} queue IRQs")
    });
    let threads = interface.threads.iter();
    let placed = threads
        .clone()
        .filter(|thread| thread.state == AsPlanned)
        .count();
    let ran = threads.clone().filter(|thread| thread.is_proven()).count();
    let ran = format!(", {ran} of them ran there");
    let ran = text_if(threads.clone().any(|thread| thread.runs.is_some()), &ran);
    let rss = interface.rss.as_ref().map(|rss| {
        let planned = rss.queues.as_ref().filter(|queues| **queues != rss.now);
        let planned = with_prefix(", planned ", planned.map(|queues| queues.len()));
        let (now, all) = (rss.now.len(), count(rss.possible.len(), "queue"));
        format!("RSS table reaches {now} of {all}{planned}")
    });
    let control = having(interface, LeftAlone).filter(|row| row.role == Role::Control);
    let control = ranges(control.map(|row| row.irq));
    join_nonempty(
        "; ",
        [
            text_if(interface.vectors.is_empty(), "no IRQs"),
            &count_if_any(planned, "IRQ", " as planned"),
            &text_or(proven, ""),
            &count_if_any(interface.unmovable, "IRQ", " cannot be moved"),
            &count_if_any(placed, "thread", &format!(" as planned{ran}")),
            &steering("XPS", interface.xps),
            &steering("RPS", interface.rps),
            &text_or(rss, ""),
            &enclose("control IRQ ", [control], " unchanged"),
        ],
    )
}

fn steering(what: &str, steering: Steering) -> String {
    let queues = count(steering.planned, "queue");
    match (steering.planned, steering.on, steering.differ) {
        (0, _, 0) => format!("{what} unchanged"),
        (_, 0, 0) => format!("{what} off as planned"),
        (_, _, 0) => format!("{what} as planned on {queues}"),
        (_, _, differ) => format!("{what} differs on {differ} of {queues}"),
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

fn watcher(page: &mut Page, watcher: &Watcher) {
    let text = format!(
        "{} since {} (process {}), {}{}",
        if watcher.observe { "observes" } else { "runs" },
        time(watcher.since),
        watcher.pid,
        count(usize::try_from(watcher.count).unwrap_or(usize::MAX), "run"),
        with_prefix("; ", watcher.waits_for.map(waits_for))
    );
    page.item("watcher     ", text);
    let runs = watcher.runs.iter().map(|run| {
        let result = result_and_reason(run, watcher.observe);
        [time(run.at), cause(run), result]
    });
    page.table(12, LEFT, runs);
    let left = &watcher.left_alone;
    if let Some(until) = left.iter().map(|left| left.until).max() {
        let mut writers = left.iter().flat_map(|left| &left.writers).unique();
        let who = Some(writers.join(" or ")).filter(|writers| !writers.is_empty());
        let who = enclose(", perhaps ", who, ",");
        let text = format!(
            "{} not restored until {} at the latest, or an event about {}, because another program{who} writes them again \
             and again: {}",
            count(left.len(), "setting"),
            time(until),
            left.iter()
                .map(|left| &left.setting.interface)
                .unique()
                .join(", "),
            left.iter()
                .take(3)
                .map(|left| left.setting.shown())
                .join(", ")
        );
        page.item("            ", text);
    }
}

/// The line that systemd shows (`STATUS=`). `next`: the time of the next check, in seconds since 1970.
pub fn line(watcher: &Watcher, interfaces: usize, next: u64) -> String {
    let Some(run) = watcher.runs.first() else {
        return "starting".into();
    };
    let state = match (watcher.waits_for, run.failed) {
        (Some(why), _) => waits_for(why).to_owned(),
        _ if run.error.is_some() => "the last run failed".into(),
        (_, 0) if watcher.observe && run.changed > 0 => {
            count(run.changed, "setting") + " not as planned"
        }
        (_, 0) => "as planned".into(),
        (_, failed) => count(failed, "change") + " failed",
    };
    format!(
        "{}, {state}; last run {} ({}): {}; next check {}",
        count(interfaces, "interface"),
        time(run.at),
        cause(run),
        result_and_reason(run, watcher.observe),
        time(next)
    )
}

pub fn waits_for(why: WaitsFor) -> &'static str {
    match why {
        WaitsFor::Apply => "paused by nicpin restore until the next nicpin apply",
        WaitsFor::Trial => "waits until apply --try is confirmed or has ended",
    }
}

pub fn cause(run: &WatcherRun) -> String {
    match run.events {
        0 | 1 => run.event.clone(),
        events => format!("{} and {} more", run.event, events - 1),
    }
}

/// Says what a run did, and the first reason if something failed.
fn result_and_reason(run: &WatcherRun, observe: bool) -> String {
    result(run, observe) + &with_prefix(": ", &run.failure)
}

pub fn result(run: &WatcherRun, observe: bool) -> String {
    if let Some(error) = &run.error {
        return format!("failed: {error}");
    }
    let [nothing, something, failed] = if observe {
        ["as planned", " not as planned", "could not be determined"]
    } else {
        ["nothing changed", " changed", "failed"]
    };
    let changed = match run.changed {
        0 => nothing.to_owned(),
        changed => count(changed, "setting") + something,
    };
    let failed = format!(", {} {failed}", run.failed);
    changed + text_if(run.failed > 0, &failed)
}
