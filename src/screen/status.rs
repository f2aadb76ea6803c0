//! The status: a verdict with the command that fixes it, a line for each interface, and what the plan gains. On request
//! the details of each interface. And the watcher's state, for systemd and the journal, too.

use std::iter::once;

use itertools::Itertools as _;

use crate::screen::page::Tone::{Alarm, Good, Plain, Warning};
use crate::screen::page::{Cell, LEFT, Page, Tone};
use crate::screen::plan::gains_nothing;
use crate::screen::{
    Given, count, counted, cpus, differ, heading, is, joined, moves, or, queue, ranges, rate,
    short_speed, some, time, unbroken, when, with, with_not_judged, within,
};
use nicpin::cpuset::CpuSet;
use nicpin::machine::Role;
use nicpin::machine::setting::shown;
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

/// How much is shown.
#[derive(Clone, Copy, PartialEq)]
pub enum StatusDetail {
    /// One screen: a line for each interface.
    Summary,
    /// Also each interface, with what is not as planned.
    Interfaces,
    /// Also all IRQs.
    Vectors,
}

/// Interfaces and notes on one screen.
pub(crate) const MOST_INTERFACES: usize = 24;
const MOST_NOTES: usize = 6;

/// `given`: what decides on the plan.
pub fn status(status: &Status, detail: StatusDetail, given: &Given) -> Page {
    let is_summary = detail == StatusDetail::Summary;
    let (mut page, apply) = (Page::of(given, !is_summary), unbroken(&given.apply()));
    let most = |most| if is_summary { most } else { usize::MAX };
    page.text(verdict(status, &apply));
    table(&mut page, status, most(MOST_INTERFACES), given);
    let changes = status.interfaces.iter().flat_map(|one| &one.changes);
    let is_told =
        status.differ > 0 && page.gain(&status.score_now, &status.score, &changes.collect_vec());
    if let Some(most) = status.shared_max_per_core().filter(|_| !is_told) {
        let queues = count(most, "queue");
        let planned = status.interfaces.iter().map(|one| one.max_per_core_planned);
        let planned = planned.max().filter(|planned| *planned != most);
        let planned = with(", with the plan ", planned);
        page.text(format!(
            "The busiest core takes {queues} of all interfaces{planned}."
        ));
    }
    page.line("");
    if !is_summary {
        for one in &status.interfaces {
            interface(&mut page, status, one, detail == StatusDetail::Vectors);
            page.line("");
        }
    }
    // What else is on the machine and may change the settings, or keeps them.
    let no_watch = " nicpin\u{a0}watch is not running.";
    page.text(irqbalance(&status.irqbalance, &apply) + when(status.watcher.is_none(), no_watch));
    if let Some(watcher) = &status.watcher {
        self::watcher(&mut page, watcher);
    }
    let listed = status
        .interfaces
        .iter()
        .filter(|_| is_summary)
        .map(|one| (&*one.name, &*one.notes));
    let notes = once(("", &*status.notes)).chain(listed);
    let more = page.first_notes("", notes, most(MOST_NOTES));
    page.text(some(more, "more note", ": nicpin status -v"));
    page
}

/// The worst state of all interfaces in a sentence, and the command that fixes it.
fn verdict(status: &Status, apply: &str) -> String {
    let Some(worst) = status.state else {
        return "There is no interface to report on.".into();
    };
    let all = status
        .interfaces
        .iter()
        .filter(|one| one.state != Unsupported)
        .collect_vec();
    let alike = all.iter().filter(|one| one.state == worst).count();
    let not_judged = &status.not_judged;
    let counted = counted(&status.interfaces, not_judged);
    let some = match all[..] {
        [one] if counted == 1 => one.name.clone(),
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
            let or_as_good = when(status.differ > 0, ", or as good");
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
    let own = status.interfaces.iter().map(|one| one.differ);
    let of_machine = status.differ.saturating_sub(own.sum());
    let settings = count(of_machine, "setting");
    let settings = format!(
        " {settings} of the machine {} from the plan.",
        differ(of_machine)
    );
    let text = text + when(of_machine > 0, &settings);
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

/// IRQs that the kernel has not moved yet.
pub(crate) fn moving(interface: &InterfaceReport) -> usize {
    let of = |state| having(interface, state).count();
    of(VectorState::Pending) + of(Elsewhere)
}

fn having(one: &InterfaceReport, state: VectorState) -> impl Iterator<Item = &VectorStatus> {
    one.vectors.iter().filter(move |row| row.state == state)
}

fn table(page: &mut Page, status: &Status, most: usize, given: &Given) {
    let is_shared = status.shared_max_per_core().is_some();
    let heads = [
        "INTERFACE",
        "LINK",
        "NODE",
        "QUEUES",
        "LOCAL",
        // What is the same for all is below the table.
        if is_shared { "OWN/CORE" } else { "MAX/CORE" },
        "IRQ/S",
        "STATE",
    ];
    let rows = status.interfaces.iter().take(most).map(|one| {
        let speed = one.speed_mbps.filter(|_| one.link == "up");
        let (now, planned) = if is_shared {
            (one.own_per_core, one.own_per_core_planned)
        } else {
            (one.max_per_core, one.max_per_core_planned)
        };
        let planned = Some(planned).filter(|planned| *planned != now);
        // Its queues are on some core, if it is not known on which.
        let now = or(Some(now).filter(|now| *now > 0 || one.queues == 0), "?");
        let why = why(one, false);
        let why = when(!is_shared || one.state != Crowded, &why);
        let mut cells = [
            one.name.clone(),
            or(speed.map(short_speed), &one.link),
            or(one.node, "?"),
            format!("{}{}", one.queues, with("/", one.max_queues)),
            or(
                one.local_percent()
                    .map(|share| format!("{:.0}%", share.floor())),
                "?",
            ),
            format!("{now}{}", with(" -> ", planned)),
            or(one.per_second.map(rate), "-"),
            joined(": ", [one.state.name(), why]),
        ]
        .map(Cell::from);
        cells[7].tone = tone(one.state);
        cells
    });
    page.columns(0, 4..7, heads, rows);
    if let Some(next) = status.interfaces.get(most) {
        more_rows(page, status.interfaces.len() - most, next.state, given);
    }
}

/// How many interfaces are not in a table, and the worst state of these.
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

/// What is behind the state of an interface, in a few words; empty where the state says all. `more`: with what a line of
/// `status` has in other columns.
pub(crate) fn why(interface: &InterfaceReport, more: bool) -> String {
    let (most, planned) = (interface.max_per_core, interface.max_per_core_planned);
    match interface.state {
        Isolated => {
            let irqs = count(interface.on_isolated, "IRQ");
            irqs + when(more, " on isolated CPUs")
        }
        Remote => {
            let remote = interface
                .vectors
                .iter()
                .filter(|row| row.is_active() && row.local == Some(false));
            let queues = remote.clone().map(VectorStatus::queue_id).unique().count();
            let on = match ranges(remote.filter_map(|row| row.node)) {
                // On CPUs of several nodes, or of none that is known.
                none if none.is_empty() => "elsewhere".into(),
                nodes if nodes.contains([',', '-']) => format!("on nodes {nodes}"),
                node => format!("on node {node}"),
            };
            let of_all = format!(" of {}", count(interface.queues, "queue"));
            format!("{queues}{} {on}", when(more, &of_all))
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
fn interface(page: &mut Page, status: &Status, one: &InterfaceReport, all: bool) {
    let (host, is_shared) = (&status.host, status.shared_max_per_core().is_some());
    page.text(heading(
        host,
        (&one.name, one.driver.as_deref(), &one.device),
        one.speed_mbps,
        (one.node, one.node_source),
        (&one.candidates, one.candidate_cores),
    ));
    let device = [
        &*with("driver version ", &one.driver_version),
        &with("firmware ", &one.firmware),
        &with("MTU ", one.mtu),
    ];
    page.item("  ", joined(", ", device));
    let (why, settings) = (why(one, true), count(one.differ, "setting"));
    let drifted = Some(one.drifted).filter(|&drifted| drifted > 0 && one.state != Drifted);
    let drifted = within(", ", drifted, " changed since apply");
    let differ = format!("{settings} not as planned{drifted}");
    let why = [when(why != settings, &why), when(one.differ > 0, &differ)];
    let state = joined(": ", [one.state.name(), &joined("; ", why)]);
    page.item(
        "  ",
        state + &with(". Fix: ", one.fix.as_deref().map(unbroken)),
    );
    // The table has its own queues in place of it.
    if is_shared && one.state != Crowded {
        let planned = Some(one.max_per_core_planned).filter(|most| *most != one.max_per_core);
        let queues = count(one.max_per_core, "queue");
        page.item(
            "  ",
            format!("busiest core: {queues}{}", with(" -> ", planned)),
        );
    }
    vectors(page, host, one, all);
    threads(page, host, one, all);
    page.item("  ", good(one));
    page.first_notes("  ", [("", &*one.notes)], usize::MAX);
}

fn vectors(page: &mut Page, host: &HostSummary, one: &InterfaceReport, all: bool) {
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
    let shown = one.vectors.iter().filter(|row| all || row.why.is_some());
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
        let cpus_of = |set: &Option<CpuSet>| or(set.as_ref().map(|set| cpus(host, set)), "-");
        let mut cells = [
            queue(row.role, row.queue),
            row.irq.to_string(),
            cpus(host, &row.affinity),
            cpus_of(&row.effective),
            cpus_of(&row.planned),
            or(row.node, "-"),
            or(row.per_second.map(rate), "-"),
            format!("{word}{}", with(": ", &row.why)),
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

/// The threads that poll queues: those that are not where planned, or all.
fn threads(page: &mut Page, host: &HostSummary, one: &InterfaceReport, all: bool) {
    let shown = one
        .threads
        .iter()
        .filter(|of| all || matches!(of.state, Differs | Elsewhere));
    let rows = shown.map(|thread| {
        let whose = thread.role.map(|role| queue(role, thread.queue));
        let planned = thread.planned.as_ref().map(|to| cpus(host, to));
        [
            format!("thread {}", or(whose, "unknown queue")),
            format!("process {}", thread.pid),
            format!("affinity {}", cpus(host, &thread.affinity)),
            format!("planned {}", or(planned, "-")),
            match (&thread.ran_on, thread.runs) {
                (Some(on), Some(runs @ 1..)) => format!("ran {runs} times, last on {}", on.short()),
                (_, Some(_)) => "did not run".into(),
                _ => String::new(),
            },
        ]
    });
    page.table(2, LEFT, rows);
}

/// What is as planned or unchanged, in short.
fn good(one: &InterfaceReport) -> String {
    let planned = having(one, AsPlanned).count();
    let proven = one.proven.filter(|_| planned > 0).map(|proven| {
        let all = one.queue_vectors;
        format!("interrupts arrived there on {proven} of {all} queue IRQs")
    });
    let threads = one.threads.iter();
    let placed = threads.clone().filter(|of| of.state == AsPlanned).count();
    let ran = threads.clone().filter(|of| of.is_proven()).count();
    let ran = format!(", {ran} of them ran there");
    let ran = when(threads.clone().any(|of| of.runs.is_some()), &ran);
    let rss = one.rss.as_ref().map(|rss| {
        let planned = rss.queues.as_ref().filter(|queues| **queues != rss.now);
        let planned = with(", planned ", planned.map(|queues| queues.len()));
        let (now, all) = (rss.now.len(), count(rss.possible.len(), "queue"));
        format!("RSS table reaches {now} of {all}{planned}")
    });
    let control = having(one, LeftAlone).filter(|row| row.role == Role::Control);
    let control = ranges(control.map(|row| row.irq));
    joined(
        "; ",
        [
            when(one.vectors.is_empty(), "no IRQs"),
            &some(planned, "IRQ", " as planned"),
            &or(proven, ""),
            &some(one.unmovable, "IRQ", " cannot be moved (kernel-managed)"),
            &some(placed, "thread", &format!(" as planned{ran}")),
            &steering("XPS", one.xps),
            &steering("RPS", one.rps),
            &or(rss, ""),
            &within("control IRQ ", [control], " unchanged"),
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
    let fix = within(" Fix: ", advice.map(|advice| advice.text), ".");
    let runs = format!("irqbalance runs (process {})", or(found.pid, "unknown"));
    let planned = count(found.irqs, "planned IRQ");
    match found.state {
        Absent => "irqbalance is not running.".into(),
        IrqbalanceState::Unknown => format!("irqbalance: {}.{fix}", or(&found.note, "")),
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

/// The state of the watcher.
fn watcher(page: &mut Page, watcher: &Watcher) {
    let text = format!(
        "{} since {} (process {}), {}{}",
        if watcher.observe { "observes" } else { "runs" },
        time(watcher.since),
        watcher.pid,
        count(usize::try_from(watcher.count).unwrap_or(usize::MAX), "run"),
        with("; ", watcher.waits_for.map(waits_for))
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
        let who = within(", perhaps ", who, ",");
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
                .map(|left| shown(&left.setting.path))
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

/// Why nothing is written.
pub fn waits_for(why: WaitsFor) -> &'static str {
    match why {
        WaitsFor::Apply => "paused by nicpin restore until the next nicpin apply",
        WaitsFor::Trial => "waits until apply --try is confirmed or has ended",
    }
}

/// The events of a run.
pub fn cause(run: &WatcherRun) -> String {
    match run.events {
        0 | 1 => run.event.clone(),
        events => format!("{} and {} more", run.event, events - 1),
    }
}

/// What a run did, and the first reason if something failed.
fn result_and_reason(run: &WatcherRun, observe: bool) -> String {
    result(run, observe) + &with(": ", &run.failure)
}

/// What a run did.
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
    changed + when(run.failed > 0, &failed)
}
