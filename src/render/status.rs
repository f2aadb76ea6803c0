//! The status as one screen: one line for each interface, then what differs from the plan, with the fix.

use crate::cpuset::CpuSet;
use crate::machine::Role;
use crate::plan::{NodeSource, Note};
use crate::render::note::{fix, text};
use crate::render::style::{Paint, Tone};
use crate::render::text::{columns, count, ranges, rate, short_speed, wrap};
use crate::report::status::{
    InterfaceState, InterfaceStatus, IrqbalanceState, IrqbalanceStatus, Status, Steering, VectorState,
    VectorStatus,
};

/// Rows listed without `--all`: of a single interface, and of each of several.
const MOST_ROWS: (usize, usize) = (8, 3);

/// The screen. `all`: every vector. `every`: also interfaces that have nothing to add to their line in the summary.
pub fn status(status: &Status, all: bool, every: bool, paint: Paint) -> String {
    let mut out = summary(status, paint);
    let only = status.interfaces.len() == 1;
    let most = match (all, only) {
        (true, _) => usize::MAX,
        (false, true) => MOST_ROWS.0,
        (false, false) => MOST_ROWS.1,
    };
    for interface in &status.interfaces {
        let quiet = interface.state <= InterfaceState::NotProven && interface.notes.is_empty();
        if all || every || only || !quiet {
            out.push('\n');
            out.push_str(&self::interface(interface, all, most, paint));
        }
    }
    if !status.interfaces.is_empty() {
        out.push('\n');
    }
    for note in &status.notes {
        out.push_str(&self::note("", note, paint));
    }
    out.push_str(&irqbalance(status, paint));
    out.push_str(&last_line(status, paint));
    out
}

/// One line for each interface.
fn summary(status: &Status, paint: Paint) -> String {
    if status.interfaces.is_empty() {
        return String::new();
    }
    let heads = [
        "interface",
        "state",
        "node",
        "link",
        "queues",
        "local",
        "cpu/core",
        "isolated",
        "drift",
        "fixed",
        "irq/s",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    let mut tones = vec![Tone::Plain];
    for interface in &status.interfaces {
        let link =
            interface.speed_mbps.map_or(String::new(), |mbps| short_speed(mbps) + " ") + &interface.link;
        let most = interface.max_queues.map_or(String::new(), |most| format!("/{most}"));
        let of_all = |number: usize| format!("{number}/{}", interface.queue_vectors);
        rows.push(vec![
            interface.name.clone(),
            word(interface.state).to_owned(),
            interface.node.map_or("?".to_owned(), |node| node.to_string()),
            link,
            format!("{}{most}", interface.queues),
            interface.local.map_or("?".to_owned(), of_all),
            format!("{}/{}", interface.max_per_cpu, interface.max_per_core),
            interface.on_isolated.to_string(),
            interface.drift.to_string(),
            interface.unmovable.to_string(),
            interface.per_second.map_or("-".to_owned(), rate),
        ]);
        tones.push(tone(interface.state));
    }
    paint.lines(&columns(0, &rows, &[15, 10, 4, 12, 8, 7, 8, 8, 5, 5, 6]), &tones)
}

fn word(verdict: InterfaceState) -> &'static str {
    match verdict {
        InterfaceState::Proven => "OK",
        InterfaceState::LeftAlone => "left alone",
        InterfaceState::NotProven => "not proven",
        InterfaceState::Unknown => "unknown",
        InterfaceState::Pending => "moving",
        InterfaceState::Elsewhere => "ELSEWHERE",
        InterfaceState::Drift => "DRIFT",
    }
}

fn tone(verdict: InterfaceState) -> Tone {
    match verdict {
        InterfaceState::Proven => Tone::Good,
        InterfaceState::LeftAlone => Tone::Plain,
        InterfaceState::NotProven | InterfaceState::Unknown | InterfaceState::Pending => Tone::Doubtful,
        InterfaceState::Elsewhere | InterfaceState::Drift => Tone::Bad,
    }
}

fn interface(interface: &InterfaceStatus, all: bool, most: usize, paint: Paint) -> String {
    let node = match (interface.node, interface.node_source) {
        (Some(node), NodeSource::NumaNode | NodeSource::SingleNode) => format!("node {node}"),
        (Some(node), NodeSource::Nearest) => format!("node {node} (nearest)"),
        (Some(node), NodeSource::LocalCpulist) => format!("node {node} (by local_cpulist)"),
        (Some(node), _) => format!("node {node} (by policy)"),
        (None, _) => "node unknown".to_owned(),
    };
    let driver = interface.driver.as_deref().unwrap_or("(no driver)");
    let text = format!("{driver} {}  {node}  CPUs {}", interface.device, interface.candidates);
    let mut out = wrap(&format!("{}  ", interface.name), &text);
    let versions = versions(interface);
    if all && !versions.is_empty() {
        out.push_str(&wrap("  ", &versions));
    }

    let is_bad = |row: &&VectorStatus| row.why.is_some();
    let bad = interface.vectors.iter().filter(is_bad).count();
    let mut shown: Vec<&VectorStatus> = interface.vectors.iter().filter(|row| all || is_bad(row)).collect();
    if !all {
        shown.sort_by_key(|row| row.local != Some(false));
        shown.truncate(most);
    }
    if !shown.is_empty() {
        out.push_str(&rows(&shown, paint));
    }
    let hidden = if all { 0 } else { bad - shown.len() };
    if hidden > 0 {
        out.push_str(&format!("  +{hidden} more like these (--all to list)\n"));
    }
    out.push_str(&wrap("  ", &good(interface, all)));
    if let Some(fix) = &interface.fix {
        out.push_str(&format!("  fix  {}\n", paint.paint(Tone::Fix, fix)));
    }
    for note in &interface.notes {
        out.push_str(&self::note("  ", note, paint));
    }
    out
}

/// Versions of driver and firmware, and the MTU, as far as they are known; empty without any.
fn versions(interface: &InterfaceStatus) -> String {
    let fields = [
        ("driver version", interface.driver_version.clone()),
        ("firmware", interface.firmware.clone()),
        ("MTU", interface.mtu.map(|mtu| mtu.to_string())),
    ];
    let known = fields.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value?)));
    known.collect::<Vec<_>>().join(", ")
}

fn rows(shown: &[&VectorStatus], paint: Paint) -> String {
    let heads = ["queue", "IRQ", "planned", "affinity", "effective", "node", "irq/s", ""];
    let mut cells = vec![heads.map(str::to_owned).to_vec()];
    let mut tones = vec![Tone::Plain];
    for row in shown {
        let (word, tone) = match row.state {
            VectorState::AsPlanned if row.is_proven() => ("OK", Tone::Plain),
            VectorState::AsPlanned if row.idle => ("as planned; not in use", Tone::Plain),
            VectorState::AsPlanned => ("as planned", Tone::Plain),
            VectorState::LeftAlone => ("left alone", Tone::Plain),
            VectorState::Unmovable => ("unmovable", Tone::Plain),
            VectorState::Pending => ("moving", Tone::Doubtful),
            VectorState::Elsewhere => ("ELSEWHERE", Tone::Bad),
            VectorState::Drift => ("DRIFT", Tone::Bad),
        };
        let why = row.why.as_ref().map_or(String::new(), |why| format!("  {why}"));
        cells.push(vec![
            queue(row),
            row.irq.to_string(),
            list(row.planned.as_ref()),
            row.affinity.to_string(),
            list(row.effective.as_ref()),
            row.node.map_or("-".to_owned(), |node| node.to_string()),
            row.per_second.map_or("-".to_owned(), rate),
            format!("{word}{why}"),
        ]);
        tones.push(tone);
    }
    paint.lines(&columns(2, &cells, &[7, 6, 12, 14, 9, 4, 6]), &tones)
}

fn queue(row: &VectorStatus) -> String {
    match (row.queue, row.role) {
        (Some(queue), Role::Rx) => format!("rx {queue}"),
        (Some(queue), Role::Tx) => format!("tx {queue}"),
        (Some(vector), Role::Rdma) => format!("rdma {vector}"),
        (Some(queue), _) => queue.to_string(),
        (None, _) => "control".to_owned(),
    }
}

fn list(cpus: Option<&CpuSet>) -> String {
    cpus.map_or("-".to_owned(), CpuSet::to_string)
}

/// What is as planned or left alone, in short.
fn good(interface: &InterfaceStatus, all: bool) -> String {
    let of = |state: VectorState| interface.vectors.iter().filter(move |row| row.state == state);
    let mut parts = Vec::new();
    let planned = of(VectorState::AsPlanned).count();
    if interface.vectors.is_empty() {
        parts.push("no vectors".to_owned());
    } else if planned > 0 {
        let hint = if all { "" } else { " (--all to list)" };
        parts.push(format!("{} as planned{hint}", count(planned, "vector")));
    }
    if let (Some(proven), true) = (interface.proven, planned > 0) {
        parts.push(format!(
            "interrupts arrived there on {proven} of {} queue vectors",
            interface.queue_vectors
        ));
    }
    if interface.unmovable > 0 {
        parts
            .push(format!("{} that the kernel does not allow to move", count(interface.unmovable, "vector")));
    }
    parts.push(steering("xps", interface.xps));
    parts.push(steering("rps", interface.rps));
    let control: Vec<u32> =
        of(VectorState::LeftAlone).filter(|row| row.role == Role::Control).map(|row| row.irq).collect();
    if !control.is_empty() {
        parts.push(format!("control IRQ {} left alone", ranges(&control)));
    }
    parts.join("; ")
}

fn steering(what: &str, steering: Steering) -> String {
    let queues = count(steering.planned, "queue");
    match steering {
        Steering { planned: 0, differ: 0, .. } => format!("{what} left alone"),
        Steering { on: 0, differ: 0, .. } => format!("{what} off as planned"),
        Steering { differ: 0, .. } => format!("{what} as planned on {queues}"),
        Steering { differ, .. } => format!("{what} differs on {differ} of {queues}"),
    }
}

fn note(indent: &str, note: &Note, paint: Paint) -> String {
    let mut out = wrap(&format!("{indent}note  "), &text(note));
    if let Some(fix) = fix(note) {
        out.push_str(&format!("{indent}      {}\n", paint.paint(Tone::Fix, &fix)));
    }
    out
}

fn irqbalance(status: &Status, paint: Paint) -> String {
    let indent = "irqbalance  ";
    let IrqbalanceStatus { pid, state, irqs, note } = &status.irqbalance;
    let who = pid.map(|pid| format!("runs (process {pid})")).unwrap_or_default();
    let lasting_fix = || note.as_ref().and_then(fix);
    let (what, fix) = match state {
        IrqbalanceState::Absent => ("is not running".to_owned(), None),
        IrqbalanceState::Unknown => (note.as_ref().map(text).unwrap_or_default(), lasting_fix()),
        IrqbalanceState::AsksNicpin => (format!("{who} and asks nicpin which IRQs to leave alone"), None),
        IrqbalanceState::Told => {
            (format!("{who} and leaves the {irqs} planned IRQs alone until it restarts"), lasting_fix())
        }
        IrqbalanceState::Moves { fixed_by_apply } => {
            let what = format!("{who} and moves the planned vectors, by default every 10 s");
            (what, if *fixed_by_apply { Some("nicpin apply".to_owned()) } else { lasting_fix() })
        }
    };
    let mut out = wrap(indent, &what);
    if let Some(fix) = fix {
        out.push_str(&format!(
            "{:width$}{}
",
            "",
            paint.paint(Tone::Fix, &fix),
            width = indent.len()
        ));
    }
    out
}

/// The worst state of all interfaces, in a sentence.
fn last_line(status: &Status, paint: Paint) -> String {
    let Some(verdict) = status.state else { return String::new() };
    let of = |verdict: InterfaceState| status.interfaces.iter().filter(move |i| i.state == verdict).count();
    let not_proven = |out: &mut String| match status.seconds {
        _ if of(InterfaceState::NotProven) == 0 => {}
        Some(seconds) => {
            let which = count(of(InterfaceState::NotProven), "interface");
            out.push_str(&format!("; {which} had no interrupt in {seconds:.1} s: not proven"));
        }
        None => out.push_str("; no interrupts were watched: not proven"),
    };
    let mut text = match verdict {
        InterfaceState::Drift => {
            let differ =
                format!("{} of {} settings are not as planned", status.differ, status.same + status.differ);
            let since =
                if status.applied { "changed since nicpin apply" } else { "nicpin apply has not run yet" };
            format!("{differ} ({since})")
        }
        InterfaceState::Elsewhere => "set as planned, but interrupts arrive elsewhere".to_owned(),
        InterfaceState::Pending => "set as planned; some vectors move at their next interrupt".to_owned(),
        InterfaceState::Unknown => "the queue vectors of some interfaces could not be determined".to_owned(),
        InterfaceState::NotProven | InterfaceState::Proven => "as planned".to_owned(),
        InterfaceState::LeftAlone => "nothing is planned for these interfaces".to_owned(),
    };
    not_proven(&mut text);
    if verdict == InterfaceState::Drift {
        text.push_str("; nicpin apply fixes them");
    }
    let head = format!("{}: ", word(verdict));
    let lines = wrap(&head, &text);
    paint.lines(&lines, &vec![tone(verdict); lines.lines().count()])
}
