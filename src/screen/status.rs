//! The status: a line for each interface, the worst ones in a sentence, and what applying would gain. On request the
//! details of each interface.

use crate::screen::note::lines;
use crate::screen::page::{Cell, Page, Tone};
use crate::screen::score::gain;
use crate::screen::text::{count, cpus, queue, ranges, rate, short_speed};
use crate::screen::watch;
use nicpin::machine::Role;
use nicpin::plan::{NodeSource, Note, PlannedRss};
use nicpin::report::interface::{InterfaceReport, InterfaceState, Steering};
use nicpin::report::status::{IrqbalanceState, IrqbalanceStatus, Status};
use nicpin::report::vectors::{ThreadStatus, VectorState, VectorStatus};

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// One screen: a line for each interface, and the worst.
    Summary,
    /// Also each interface, with vectors that are not as planned.
    Interfaces,
    /// Also all vectors.
    Vectors,
}

/// Interfaces, findings and notes on one screen.
const MOST_INTERFACES: usize = 12;
const MOST_FINDINGS: usize = 3;
const MOST_NOTES: usize = 2;

/// Vectors listed with the details of an interface.
const MOST_VECTORS: usize = 8;

pub fn status(status: &Status, detail: Detail) -> Page {
    let mut page = Page::default();
    if !status.interfaces.is_empty() {
        page.add(summary(status, detail));
        page.line("");
    }
    if detail == Detail::Summary {
        page.add(findings(status));
    } else {
        for interface in &status.interfaces {
            page.add(self::interface(status, interface, detail));
            page.line("");
        }
    }
    let mut notes: Vec<(&str, &Note)> = status.notes.iter().map(|note| ("", note)).collect();
    let mut shown = notes.len();
    if detail == Detail::Summary {
        for interface in &status.interfaces {
            notes.extend(
                interface
                    .notes
                    .iter()
                    .map(|note| (interface.name.as_str(), note)),
            );
        }
        shown = MOST_NOTES;
    }
    for (about, note) in notes.iter().take(shown) {
        page.add(self::note("", about, note));
    }
    if notes.len() > shown {
        page.line(format!("+{}, -v", count(notes.len() - shown, "more note")));
    }
    page.add(irqbalance(&status.irqbalance));
    page.add(
        status
            .watcher
            .as_ref()
            .map(watch::watcher)
            .unwrap_or_default(),
    );
    page.add(verdict(status, detail));
    page
}

type Cells = fn(&InterfaceReport) -> String;

/// The columns of the summary: the head, what it means if that is not obvious, and the cell.
const COLUMNS: [(&str, &str, Cells); 9] = [
    ("interface", "", |i| i.name.clone()),
    ("state", "", |i| i.state.name().to_owned()),
    ("node", "", |i| {
        i.node.map_or("?".to_owned(), |node| node.to_string())
    }),
    ("link", "", |i| {
        i.speed_mbps
            .map_or(String::new(), |mbps| short_speed(mbps) + " ")
            + &i.link
    }),
    ("queues", "in use/possible", |i| {
        i.queues.to_string()
            + &i.max_queues
                .map_or(String::new(), |most| format!("/{most}"))
    }),
    ("local", "vectors on the node/all", |i| {
        i.local.map_or("?".to_owned(), |local| {
            format!("{local}/{}", i.queue_vectors)
        })
    }),
    ("per core", "most queues", |i| i.max_per_core.to_string()),
    ("differ", "settings", |i| i.differ.to_string()),
    ("irq/s", "", |i| i.per_second.map_or("-".to_owned(), rate)),
];

fn summary(status: &Status, detail: Detail) -> Page {
    let shown = match status.interfaces.len() {
        many if detail == Detail::Summary && many > MOST_INTERFACES => MOST_INTERFACES,
        all => all,
    };
    let mut rows = vec![COLUMNS.map(|(head, ..)| Cell::from(head)).to_vec()];
    for interface in &status.interfaces[..shown] {
        let cell = |(head, _, cell): (&str, &str, Cells)| match head {
            "state" => Cell::new(cell(interface), tone(interface.state)),
            _ => cell(interface).into(),
        };
        rows.push(COLUMNS.map(cell).to_vec());
    }
    let mut page = Page::default();
    page.table(0, rows);
    let hidden = &status.interfaces[shown..];
    if !hidden.is_empty() {
        let by_state = hidden.chunk_by(|a, b| a.state == b.state);
        let each: Vec<String> = by_state
            .map(|alike| format!("{} {}", alike.len(), alike[0].state.name()))
            .collect();
        page.line(format!("+{} more ({}), -v", hidden.len(), each.join(", ")));
    }
    let legend = COLUMNS.iter().filter(|(_, meaning, _)| !meaning.is_empty());
    let legend: Vec<String> = legend
        .map(|(head, meaning, _)| format!("{head}: {meaning}"))
        .collect();
    page.item("", legend.join("; "));
    page
}

fn tone(state: InterfaceState) -> Tone {
    match state {
        InterfaceState::Ok => Tone::Good,
        InterfaceState::Crowded => Tone::Warning,
        state if state.is_alarming() => Tone::Alarm,
        _ => Tone::Plain,
    }
}

/// The worst interfaces, a sentence each.
fn findings(status: &Status) -> Page {
    let worth = status
        .interfaces
        .iter()
        .filter(|interface| interface.state >= InterfaceState::Untuned);
    let rows = worth
        .take(MOST_FINDINGS)
        .map(|i| vec![i.name.clone(), finding(i)]);
    let mut page = Page::default();
    page.table(0, rows);
    page
}

/// The state of an interface in a sentence.
fn finding(interface: &InterfaceReport) -> String {
    let what = match interface.state {
        InterfaceState::Unknown => {
            return "its queue vectors are not recognized or cannot be read".to_owned();
        }
        InterfaceState::Isolated => {
            format!(
                "{} on isolated CPUs; ",
                count(interface.on_isolated, "vector")
            )
        }
        InterfaceState::Remote => {
            let remote = interface.queue_vectors - interface.local.unwrap_or(0);
            format!(
                "{remote} of {} on another node; ",
                count(interface.queue_vectors, "queue vector")
            )
        }
        InterfaceState::Crowded => {
            let queues = count(interface.max_per_core, "queue");
            let planned = interface.max_per_core_planned;
            format!("{queues} on the busiest core, {planned} planned; ")
        }
        InterfaceState::Drifted | InterfaceState::Untuned => String::new(),
        InterfaceState::Pending => {
            return "set as planned; the kernel moves vectors at their next interrupt".to_owned();
        }
        InterfaceState::Equivalent => "as good as planned; ".to_owned(),
        InterfaceState::Unsupported => return "it has no queue IRQ that can be placed".to_owned(),
        InterfaceState::Unproven => return "as planned; no interrupt was seen".to_owned(),
        InterfaceState::Ok => return "as planned; interrupts arrive there".to_owned(),
    };
    let drifted = match interface.drifted {
        0 => String::new(),
        drifted => format!(", {drifted} of them changed since apply"),
    };
    format!(
        "{what}{} not as planned{drifted}",
        count(interface.differ, "setting")
    )
}

fn interface(status: &Status, interface: &InterfaceReport, detail: Detail) -> Page {
    let driver = interface.driver.as_deref().unwrap_or("(no driver)");
    let candidates = cpus(&status.host, &interface.candidates);
    let node = node(interface.node, interface.node_source);
    let mut page = Page::default();
    page.item(
        format!("{}  ", interface.name),
        format!(
            "{driver} {}  {node}  candidate CPUs: {candidates}",
            interface.device
        ),
    );
    let versions = versions(interface);
    if !versions.is_empty() {
        page.item("  ", &versions);
    }
    page.item(
        "  ",
        format!("{}: {}", interface.state.name(), finding(interface)),
    );
    let all = detail == Detail::Vectors;
    let is_bad = |row: &&VectorStatus| row.why.is_some();
    let bad = interface.vectors.iter().filter(is_bad).count();
    let mut shown: Vec<&VectorStatus> = interface
        .vectors
        .iter()
        .filter(|row| all || is_bad(row))
        .collect();
    if !all {
        shown.sort_by_key(|row| row.local != Some(false));
        shown.truncate(MOST_VECTORS);
    }
    if !shown.is_empty() {
        page.table(2, rows(status, &shown));
    }
    if !all && bad > shown.len() {
        page.line(format!("  +{} more, --all", bad - shown.len()));
    }
    page.add(threads(status, interface, all));
    page.item("  ", good(interface));
    if let Some(fix) = &interface.fix {
        page.line(format!("  fix: {fix}"));
    }
    for note in &interface.notes {
        page.add(self::note("  ", "", note));
    }
    page
}

/// Versions of driver and firmware, and the MTU, as far as they are known; empty without any.
fn versions(interface: &InterfaceReport) -> String {
    let fields = [
        ("driver version", interface.driver_version.clone()),
        ("firmware", interface.firmware.clone()),
        ("MTU", interface.mtu.map(|mtu| mtu.to_string())),
    ];
    let known = fields
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name} {}", value?)));
    known.collect::<Vec<_>>().join(", ")
}

/// The node of an interface, and how it was determined if not by `numa_node`.
pub(crate) fn node(node: Option<u32>, source: NodeSource) -> String {
    let Some(node) = node else {
        return "node unknown".to_owned();
    };
    let by = match source {
        NodeSource::NumaNode => "",
        NodeSource::SingleNode => " (the only node)",
        NodeSource::Nearest => " (nearest)",
        NodeSource::LocalCpulist => " (by local_cpulist)",
        _ => " (by policy)",
    };
    format!("node {node}{by}")
}

fn rows(status: &Status, shown: &[&VectorStatus]) -> Vec<Vec<Cell>> {
    let heads = [
        "queue",
        "IRQ",
        "affinity",
        "effective",
        "planned",
        "node",
        "irq/s",
        "",
    ];
    let mut cells = vec![heads.map(Cell::from).to_vec()];
    for row in shown {
        let (word, tone) = match row.state {
            VectorState::AsPlanned if row.is_proven() => ("ok", Tone::Plain),
            VectorState::AsPlanned if row.idle => ("as planned; not in use", Tone::Plain),
            VectorState::AsPlanned => ("as planned", Tone::Plain),
            VectorState::LeftAlone => ("left alone", Tone::Plain),
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
        let list = |set: Option<&_>| set.map_or("-".to_owned(), |set| cpus(&status.host, set));
        cells.push(vec![
            queue(row.role, row.queue).into(),
            row.irq.to_string().into(),
            cpus(&status.host, &row.affinity).into(),
            list(row.effective.as_ref()).into(),
            list(row.planned.as_ref()).into(),
            row.node
                .map_or("-".to_owned(), |node| node.to_string())
                .into(),
            row.per_second.map_or("-".to_owned(), rate).into(),
            Cell::new(format!("{word}{why}"), tone),
        ]);
    }
    cells
}

/// The threads that poll queues: those that are not where planned, or all.
fn threads(status: &Status, interface: &InterfaceReport, all: bool) -> Page {
    let is_bad = |thread: &&ThreadStatus| {
        matches!(thread.state, VectorState::Differs | VectorState::Elsewhere)
    };
    let shown = interface
        .threads
        .iter()
        .filter(|thread| all || is_bad(thread));
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
        let affinity = format!("affinity {}", cpus(&status.host, &thread.affinity));
        vec![
            format!("thread {whose}"),
            format!("process {}", thread.pid),
            affinity,
            format!("planned {planned}"),
            ran,
        ]
    };
    let mut rows: Vec<Vec<String>> = shown.map(row).collect();
    let hidden = rows
        .len()
        .saturating_sub(if all { rows.len() } else { MOST_VECTORS });
    rows.truncate(rows.len() - hidden);
    let mut page = Page::default();
    page.table(2, rows);
    if hidden > 0 {
        page.line(format!("  +{hidden} more threads, --all"));
    }
    page
}

/// What is as planned or left alone, in short.
fn good(interface: &InterfaceReport) -> String {
    let of = |state: VectorState| {
        interface
            .vectors
            .iter()
            .filter(move |row| row.state == state)
    };
    let mut parts = Vec::new();
    let planned = of(VectorState::AsPlanned).count();
    if interface.vectors.is_empty() {
        parts.push("no vectors".to_owned());
    } else if planned > 0 {
        parts.push(format!("{} as planned", count(planned, "vector")));
    }
    if let (Some(proven), true) = (interface.proven, planned > 0) {
        parts.push(format!(
            "interrupts arrived there on {proven} of {} queue vectors",
            interface.queue_vectors
        ));
    }
    if interface.unmovable > 0 {
        parts.push(format!(
            "{} that the kernel does not allow to move",
            count(interface.unmovable, "vector")
        ));
    }
    let placed = interface
        .threads
        .iter()
        .filter(|thread| thread.planned.is_some());
    let as_planned = placed
        .filter(|thread| thread.state == VectorState::AsPlanned)
        .count();
    if as_planned > 0 {
        let proven = interface
            .threads
            .iter()
            .filter(|thread| thread.is_proven())
            .count();
        let watched = interface.threads.iter().any(|thread| thread.runs.is_some());
        let ran = if watched {
            format!(", {proven} of them ran there")
        } else {
            String::new()
        };
        parts.push(format!("{} as planned{ran}", count(as_planned, "thread")));
    }
    parts.push(steering("xps", interface.xps));
    parts.push(steering("rps", interface.rps));
    parts.extend(interface.rss.as_ref().map(rss));
    let control: Vec<u32> = of(VectorState::LeftAlone)
        .filter(|row| row.role == Role::Control)
        .map(|row| row.irq)
        .collect();
    if !control.is_empty() {
        parts.push(format!("control IRQ {} left alone", ranges(&control)));
    }
    parts.join("; ")
}

fn rss(rss: &PlannedRss) -> String {
    let (now, possible) = (rss.now.len(), count(rss.possible.len(), "queue"));
    let planned = rss.queues.as_ref().filter(|queues| **queues != rss.now);
    let planned = planned
        .map(|queues| format!(", planned {}", queues.len()))
        .unwrap_or_default();
    format!("rss table reaches {now} of {possible}{planned}")
}

fn steering(what: &str, steering: Steering) -> String {
    let queues = count(steering.planned, "queue");
    match steering {
        Steering {
            planned: 0,
            differ: 0,
            ..
        } => format!("{what} left alone"),
        Steering {
            on: 0, differ: 0, ..
        } => format!("{what} off as planned"),
        Steering { differ: 0, .. } => format!("{what} as planned on {queues}"),
        Steering { differ, .. } => format!("{what} differs on {differ} of {queues}"),
    }
}

/// `about`: the name of an interface, or nothing.
fn note(indent: &str, about: &str, note: &Note) -> Page {
    let about = if about.is_empty() {
        String::new()
    } else {
        format!("{about}: ")
    };
    lines(indent, &about, note)
}

fn irqbalance(irqbalance: &IrqbalanceStatus) -> Page {
    let IrqbalanceStatus {
        pid,
        state,
        irqs,
        note,
    } = irqbalance;
    let who = pid
        .map(|pid| format!("runs (process {pid})"))
        .unwrap_or_default();
    let lasting_fix = || Some(note.as_ref()?.advice()?.text().to_owned());
    let (what, fix) = match state {
        IrqbalanceState::Absent => ("is not running".to_owned(), None),
        IrqbalanceState::Unknown => (
            note.as_ref().map(ToString::to_string).unwrap_or_default(),
            lasting_fix(),
        ),
        IrqbalanceState::AsksNicpin => (
            format!("{who} and asks nicpin which IRQs to leave alone"),
            None,
        ),
        IrqbalanceState::Banned => (
            format!("{who} and leaves the {irqs} planned IRQs alone until it restarts"),
            lasting_fix(),
        ),
        IrqbalanceState::Moves { fixed_by_apply } => {
            let what = format!("{who} and moves the planned vectors, by default every 10 s");
            (
                what,
                if *fixed_by_apply {
                    Some("nicpin apply".to_owned())
                } else {
                    lasting_fix()
                },
            )
        }
    };
    let mut page = Page::default();
    page.item("irqbalance  ", what);
    if let Some(fix) = fix {
        page.line(format!("            fix: {fix}"));
    }
    page
}

/// The worst state of all interfaces in a sentence, and what applying would gain.
fn verdict(status: &Status, detail: Detail) -> Page {
    let mut page = Page::default();
    let Some(worst) = status.state else {
        return page;
    };
    let alike = status
        .interfaces
        .iter()
        .filter(|interface| interface.state == worst)
        .count();
    let supported = status
        .interfaces
        .iter()
        .filter(|one| one.state != InterfaceState::Unsupported);
    let of_all = format!("{alike} of {}", count(supported.count(), "interface"));
    let text = match (worst, status.seconds) {
        (InterfaceState::Unproven, None) => "as planned; no interrupts were watched".to_owned(),
        (InterfaceState::Unproven, Some(seconds)) => {
            format!("as planned; {of_all} had no interrupt in {seconds:.1} s")
        }
        (InterfaceState::Unsupported, _) => {
            "no interface has a queue IRQ that can be placed".to_owned()
        }
        (InterfaceState::Equivalent, _) => "as good as planned".to_owned(),
        (InterfaceState::Ok, _) => "as planned, and interrupts arrive there".to_owned(),
        _ => of_all,
    };
    page.item(format!("{}: ", worst.name()), text);
    if status.differ > 0 {
        if detail == Detail::Summary {
            let kind = if worst >= InterfaceState::Crowded {
                "fix"
            } else {
                "try"
            };
            page.line(format!("{kind}: nicpin apply"));
        }
        let settings = count(status.differ, "setting");
        let gain = gain(&status.score_now, &status.score);
        page.item("", format!("applying changes {settings}{gain}"));
    }
    page
}
