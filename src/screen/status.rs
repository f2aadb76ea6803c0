//! The status: a verdict with the command that fixes it, a line for each interface, and what the plan gains. On request
//! the details of each interface.

use itertools::Itertools as _;
use std::collections::BTreeSet;

use crate::screen::page::{Cell, Page, Tone};
use crate::screen::text::{
    count, cpus, heading, notes, queue, ranges, rate, short_speed, with_the_plan,
};
use crate::screen::watch;
use nicpin::cpuset::CpuSet;
use nicpin::machine::Role;
use nicpin::plan::Note;
use nicpin::report::interface::{InterfaceReport, InterfaceState, Steering};
use nicpin::report::status::{IrqbalanceState, IrqbalanceStatus, Status};
use nicpin::report::vectors::{ThreadStatus, VectorState, VectorStatus};

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// One screen: a line for each interface.
    Summary,
    /// Also each interface, with what is not as planned.
    Interfaces,
    /// Also all IRQs.
    Vectors,
}

/// Interfaces and notes on one screen.
const MOST_INTERFACES: usize = 24;
const MOST_NOTES: usize = 6;

/// `apply`: the command that makes everything as planned.
pub fn status(status: &Status, detail: Detail, apply: &str) -> Page {
    let mut page = Page::default();
    page.item("", verdict(status, apply));
    if !status.interfaces.is_empty() {
        page.line("");
        page.add(table(status, detail));
        if status.differ > 0 {
            page.add(with_the_plan(&status.score_now, &status.score));
        }
    }
    page.line("");
    if detail > Detail::Summary {
        for interface in &status.interfaces {
            page.add(self::interface(status, interface, detail));
            page.line("");
        }
    }
    page.add(surroundings(status));
    let of_interfaces = status
        .interfaces
        .iter()
        .filter(|_| detail == Detail::Summary);
    let of_interfaces =
        of_interfaces.flat_map(|one| one.notes.iter().map(|note| (&*one.name, note)));
    let of_machine = status.notes.iter().map(|note| ("", note));
    let most = if detail == Detail::Summary {
        MOST_NOTES
    } else {
        usize::MAX
    };
    page.add(notes(
        "",
        of_machine.chain(of_interfaces),
        (most, "nicpin status -v"),
    ));
    page
}

/// The worst state of all interfaces in a sentence, and the command that fixes it.
fn verdict(status: &Status, apply: &str) -> String {
    let Some(worst) = status.state else {
        return "There is no interface to report on.".to_owned();
    };
    let supported = status.interfaces.iter();
    let supported = supported.filter(|one| one.state != InterfaceState::Unsupported);
    let supported: Vec<&InterfaceReport> = supported.collect();
    let alike = supported.iter().filter(|one| one.state == worst).count();
    let is = if alike == 1 { "is" } else { "are" };
    let (of_all, every) = match &supported[..] {
        [one] => (one.name.clone(), format!("{} is", one.name)),
        [_, _] => (
            format!("{alike} of 2 interfaces"),
            "Both interfaces are".to_owned(),
        ),
        all => {
            let all = all.len();
            (
                format!("{alike} of {all} interfaces"),
                format!("All {all} interfaces are"),
            )
        }
    };
    let text = match worst {
        InterfaceState::Unknown => format!("{of_all} cannot be judged."),
        InterfaceState::Isolated => format!("{of_all} {is} handled on isolated CPUs."),
        InterfaceState::Remote => format!("{of_all} {is} handled on another NUMA node."),
        InterfaceState::Drifted => {
            let has = if alike == 1 { "has" } else { "have" };
            format!("{of_all} {has} changed since the last apply.")
        }
        InterfaceState::Crowded => format!("{of_all} {is} crowded: queues share cores needlessly."),
        InterfaceState::Untuned => format!("{of_all} {is} not tuned yet."),
        InterfaceState::Pending => {
            let moving =
                |one: &InterfaceReport| one.vectors.iter().filter(|row| is_moving(row)).count();
            let moving = status.interfaces.iter().map(moving).sum();
            format!(
                "{every} set as planned; {} at the next interrupt.",
                moves(moving)
            )
        }
        InterfaceState::Unproven => match status.seconds {
            None => format!("{every} as planned; interrupts were not watched."),
            Some(seconds) => {
                let who = if supported.len() == 1 { "it" } else { &of_all };
                format!("{every} as planned; {who} had no interrupt in {seconds:.1} s.")
            }
        },
        InterfaceState::Equivalent => {
            let settings = count(status.differ, "setting");
            format!("{every} as good as planned; {settings} may differ.")
        }
        InterfaceState::Unsupported => "No interface has an IRQ that can be placed.".to_owned(),
        InterfaceState::Ok => format!("{every} as planned; interrupts arrive where planned."),
    };
    if worst < InterfaceState::Untuned {
        return text;
    }
    let fix = if worst == InterfaceState::Unknown {
        "The others"
    } else {
        "Fix"
    };
    let writes = count(status.differ, "write");
    match status.differ {
        0 => text,
        // The command is not broken where it fits a line.
        _ => format!("{text} {fix}: {} ({writes})", apply.replace(' ', "\u{a0}")),
    }
}

/// `1 IRQ moves`, `2 IRQs move`.
pub(crate) fn moves(irqs: usize) -> String {
    format!(
        "{} {}",
        count(irqs, "IRQ"),
        if irqs == 1 { "moves" } else { "move" }
    )
}

fn is_moving(row: &VectorStatus) -> bool {
    matches!(row.state, VectorState::Pending | VectorState::Elsewhere)
}

fn table(status: &Status, detail: Detail) -> Page {
    let heads = [
        "INTERFACE",
        "LINK",
        "NODE",
        "QUEUES",
        "LOCAL",
        "MAX/CORE",
        "IRQ/S",
        "STATE",
    ];
    let most = if detail == Detail::Summary {
        MOST_INTERFACES
    } else {
        usize::MAX
    };
    let rows = status.interfaces.iter().take(most).map(|one| {
        let link = match (&*one.link, one.speed_mbps) {
            ("up", Some(mbps)) => short_speed(mbps),
            (link, _) => link.to_owned(),
        };
        let queues = one
            .max_queues
            .map_or(String::new(), |most| format!("/{most}"));
        let local = one
            .local_percent()
            .map_or("?".to_owned(), |share| format!("{:.0}%", share.floor()));
        let most = match (one.max_per_core, one.max_per_core_planned) {
            (now, planned) if now == planned => now.to_string(),
            (now, planned) => format!("{now} -> {planned}"),
        };
        let why = why(one, false);
        let state = [one.state.name(), &why].join(if why.is_empty() { "" } else { ": " });
        vec![
            one.name.as_str().into(),
            link.into(),
            one.node
                .map_or("?".to_owned(), |node| node.to_string())
                .into(),
            format!("{}{queues}", one.queues).into(),
            local.into(),
            most.into(),
            one.per_second.map_or("-".to_owned(), rate).into(),
            Cell::new(state, tone(one.state)),
        ]
    });
    let mut page = Page::default();
    page.aligned(
        0,
        (4, 7),
        std::iter::once(heads.map(Cell::from).to_vec()).chain(rows),
    );
    let hidden = status.interfaces.len().saturating_sub(most);
    if let Some(next) = status.interfaces.get(most) {
        page.line(format!(
            "{hidden} more, none worse than {}: nicpin status -v",
            next.state.name()
        ));
    }
    page
}

pub(crate) fn tone(state: InterfaceState) -> Tone {
    match state {
        InterfaceState::Ok => Tone::Good,
        InterfaceState::Crowded => Tone::Warning,
        state if state.is_alarming() => Tone::Alarm,
        _ => Tone::Plain,
    }
}

/// What is behind the state of an interface, in a few words; empty where the state says all. `more`: with what a line of
/// `status` has in other columns.
pub(crate) fn why(interface: &InterfaceReport, more: bool) -> String {
    let vectors = || interface.vectors.iter();
    let (most, planned) = (interface.max_per_core, interface.max_per_core_planned);
    match interface.state {
        InterfaceState::Isolated if more => {
            format!("{} on isolated CPUs", count(interface.on_isolated, "IRQ"))
        }
        InterfaceState::Isolated => count(interface.on_isolated, "IRQ"),
        InterfaceState::Remote => {
            let remote = || vectors().filter(|row| row.is_active() && row.local == Some(false));
            let queues = remote().map(|row| row.queue).collect::<BTreeSet<_>>().len();
            let nodes: Vec<u32> = remote().filter_map(|row| row.node).collect();
            let node = match &ranges(&nodes)[..] {
                "" => "any node".to_owned(),
                nodes if nodes.contains([',', '-']) => format!("nodes {nodes}"),
                node => format!("node {node}"),
            };
            let of_all = format!(" of {}", count(interface.queues, "queue"));
            format!("{queues}{} on {node}", if more { &of_all } else { "" })
        }
        InterfaceState::Drifted => format!("{} changed", interface.drifted),
        InterfaceState::Crowded | InterfaceState::Untuned if more && most > planned => {
            format!("{} on a core, {planned} planned", count(most, "queue"))
        }
        InterfaceState::Crowded => format!("{most} on a core"),
        InterfaceState::Untuned => count(interface.differ, "setting"),
        InterfaceState::Pending => {
            let moving = vectors().filter(|row| is_moving(row)).count();
            format!("{} to move", count(moving, "IRQ"))
        }
        InterfaceState::Equivalent => format!("{} differ", interface.differ),
        InterfaceState::Unsupported if interface.unmovable > 0 => "fixed IRQs".to_owned(),
        InterfaceState::Unsupported if interface.notes.is_empty() => "no IRQs".to_owned(),
        InterfaceState::Unsupported | InterfaceState::Unknown => "see the note".to_owned(),
        InterfaceState::Unproven if interface.proven.is_none() => "not watched".to_owned(),
        InterfaceState::Unproven => "no interrupt".to_owned(),
        InterfaceState::Ok => String::new(),
    }
}

fn interface(status: &Status, interface: &InterfaceReport, detail: Detail) -> Page {
    let mut page = Page::default();
    let who = (
        &*interface.name,
        interface.driver.as_deref(),
        &*interface.device,
    );
    let node = (interface.node, interface.node_source);
    page.item(
        "",
        heading(
            &status.host,
            who,
            interface.speed_mbps,
            node,
            (&interface.candidates, interface.candidate_cores),
        ),
    );
    let mtu = interface.mtu.map(|mtu| mtu.to_string());
    let versions = [
        ("driver version", &interface.driver_version),
        ("firmware", &interface.firmware),
        ("MTU", &mtu),
    ];
    let mut versions = versions
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)));
    let versions = versions.join(", ");
    if !versions.is_empty() {
        page.item("  ", versions);
    }
    let why = match (why(interface, true), interface.differ) {
        (why, 0) => why,
        (why, differ) => {
            let settings = count(differ, "setting");
            let drifted = match interface.drifted {
                0 => String::new(),
                _ if interface.state == InterfaceState::Drifted => String::new(),
                drifted => format!(", {drifted} changed since apply"),
            };
            let differ = format!("{settings} not as planned{drifted}");
            if why == settings || why.is_empty() {
                differ
            } else {
                format!("{why}; {differ}")
            }
        }
    };
    let fix = interface
        .fix
        .as_ref()
        .map_or(String::new(), |fix| format!(". Fix: {fix}"));
    page.item(
        "  ",
        [interface.state.name(), &why].join(if why.is_empty() { "" } else { ": " }) + &fix,
    );
    let all = detail == Detail::Vectors;
    let shown: Vec<&VectorStatus> = interface
        .vectors
        .iter()
        .filter(|row| all || row.why.is_some())
        .collect();
    if !shown.is_empty() {
        page.table(2, rows(status, &shown));
    }
    page.add(threads(status, interface, all));
    page.item("  ", good(interface));
    let about = interface.notes.iter().map(|note| ("", note));
    page.add(notes("  ", about, (usize::MAX, "")));
    page
}

fn rows(status: &Status, shown: &[&VectorStatus]) -> Vec<Vec<Cell>> {
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
    let row = |row: &&VectorStatus| {
        let (word, tone) = match row.state {
            VectorState::AsPlanned if row.is_proven() => ("ok", Tone::Plain),
            VectorState::AsPlanned if row.idle => ("as planned; not in use", Tone::Plain),
            VectorState::AsPlanned => ("as planned", Tone::Plain),
            VectorState::LeftAlone => ("unchanged", Tone::Plain),
            VectorState::Unmovable => ("cannot be moved", Tone::Plain),
            VectorState::Pending => ("pending", Tone::Plain),
            VectorState::Elsewhere => ("elsewhere", Tone::Warning),
            VectorState::Differs if row.on_isolated || row.local == Some(false) => {
                ("differs", Tone::Alarm)
            }
            VectorState::Differs => ("differs", Tone::Plain),
        };
        let why = row
            .why
            .as_ref()
            .map_or(String::new(), |why| format!(": {why}"));
        let list = |set: Option<&CpuSet>| set.map_or("-".to_owned(), |set| cpus(&status.host, set));
        vec![
            queue(row.role, row.queue).into(),
            row.irq.to_string().into(),
            list(Some(&row.affinity)).into(),
            list(row.effective.as_ref()).into(),
            list(row.planned.as_ref()).into(),
            row.node
                .map_or("-".to_owned(), |node| node.to_string())
                .into(),
            row.per_second.map_or("-".to_owned(), rate).into(),
            Cell::new(format!("{word}{why}"), tone),
        ]
    };
    std::iter::once(heads.map(Cell::from).to_vec())
        .chain(shown.iter().map(row))
        .collect()
}

/// The threads that poll queues: those that are not where planned, or all.
fn threads(status: &Status, interface: &InterfaceReport, all: bool) -> Page {
    let is_bad = |state| matches!(state, VectorState::Differs | VectorState::Elsewhere);
    let row = |thread: &ThreadStatus| {
        let whose = thread
            .role
            .map_or("unknown queue".to_owned(), |role| queue(role, thread.queue));
        let planned = thread
            .planned
            .as_ref()
            .map_or("-".to_owned(), |to| cpus(&status.host, to));
        let ran = match (&thread.ran_on, thread.runs) {
            (Some(on), Some(runs @ 1..)) => format!("ran {runs} times, last on {}", on.short()),
            (_, Some(_)) => "did not run".to_owned(),
            _ => String::new(),
        };
        vec![
            format!("thread {whose}"),
            format!("process {}", thread.pid),
            format!("affinity {}", cpus(&status.host, &thread.affinity)),
            format!("planned {planned}"),
            ran,
        ]
    };
    let shown = interface
        .threads
        .iter()
        .filter(|thread| all || is_bad(thread.state));
    let mut page = Page::default();
    page.table(2, shown.map(row));
    page
}

/// What is as planned or unchanged, in short.
fn good(interface: &InterfaceReport) -> String {
    let having = |state: VectorState| {
        interface
            .vectors
            .iter()
            .filter(move |row| row.state == state)
    };
    let mut parts = Vec::new();
    let planned = having(VectorState::AsPlanned).count();
    if interface.vectors.is_empty() {
        parts.push("no IRQs".to_owned());
    } else if planned > 0 {
        parts.push(format!("{} as planned", count(planned, "IRQ")));
    }
    if let (Some(proven), true) = (interface.proven, planned > 0) {
        let of_all = interface.queue_vectors;
        parts.push(format!(
            "interrupts arrived there on {proven} of {of_all} queue IRQs"
        ));
    }
    if interface.unmovable > 0 {
        parts.push(format!(
            "{} cannot be moved (kernel-managed)",
            count(interface.unmovable, "IRQ")
        ));
    }
    let threads = || interface.threads.iter();
    let as_planned =
        |thread: &&ThreadStatus| thread.planned.is_some() && thread.state == VectorState::AsPlanned;
    let placed = threads().filter(as_planned).count();
    if placed > 0 {
        let proven = threads().filter(|thread| thread.is_proven()).count();
        let watched = threads().any(|thread| thread.runs.is_some());
        let ran = if watched {
            format!(", {proven} of them ran there")
        } else {
            String::new()
        };
        parts.push(format!("{} as planned{ran}", count(placed, "thread")));
    }
    parts.push(steering("XPS", interface.xps));
    parts.push(steering("RPS", interface.rps));
    if let Some(rss) = &interface.rss {
        let (now, possible) = (rss.now.len(), count(rss.possible.len(), "queue"));
        let planned = rss.queues.as_ref().filter(|queues| **queues != rss.now);
        let planned = planned.map_or(String::new(), |queues| {
            format!(", planned {}", queues.len())
        });
        parts.push(format!("RSS table reaches {now} of {possible}{planned}"));
    }
    let control = having(VectorState::LeftAlone).filter(|row| row.role == Role::Control);
    let control: Vec<u32> = control.map(|row| row.irq).collect();
    if !control.is_empty() {
        parts.push(format!("control IRQ {} unchanged", ranges(&control)));
    }
    parts.join("; ")
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

/// What else is on the machine and may change the settings, or keeps them.
fn surroundings(status: &Status) -> Page {
    let mut page = Page::default();
    match &status.watcher {
        Some(watcher) => {
            page.item("", irqbalance(&status.irqbalance));
            page.add(watch::watcher(watcher));
        }
        None => page.item(
            "",
            irqbalance(&status.irqbalance) + " nicpin\u{a0}watch is not running.",
        ),
    }
    page
}

fn irqbalance(irqbalance: &IrqbalanceStatus) -> String {
    let IrqbalanceStatus {
        pid,
        state,
        irqs,
        note,
    } = irqbalance;
    let advice = note.as_ref().and_then(Note::advice);
    let fix = advice.map_or(String::new(), |advice| format!(" Fix: {}.", advice.text()));
    let runs = format!("irqbalance runs (process {})", pid.unwrap_or_default());
    let planned = count(*irqs, "planned IRQ");
    match state {
        IrqbalanceState::Absent => "irqbalance is not running.".to_owned(),
        IrqbalanceState::Banned | IrqbalanceState::Moves { .. } if *irqs == 0 => format!("{runs}."),
        IrqbalanceState::Unknown => {
            let text = note.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("irqbalance: {text}.{fix}")
        }
        IrqbalanceState::AsksNicpin => {
            format!("{runs}; its policy script asks nicpin about each IRQ.")
        }
        IrqbalanceState::Banned => {
            format!("{runs}; the {planned} are banned until it restarts.{fix}")
        }
        IrqbalanceState::Moves { fixed_by_apply } => {
            let fix = if *fixed_by_apply {
                " Fix: nicpin\u{a0}apply."
            } else {
                &fix
            };
            format!("{runs} and moves the {planned}, by default every 10 s.{fix}")
        }
    }
}
