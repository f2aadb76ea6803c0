//! An interface of `status` in full: what differs from the plan, and a summary of the rest.

use crate::screen::page::Tone::{Alarm, Plain, Warning};
use crate::screen::page::{Cell, LEFT, Page};
use crate::screen::state::{having, why};
use crate::screen::{
    count, count_if_any, cpus, enclose, heading, join_nonempty, queue, ranges, rate, text_if,
    text_or, unbroken, with_prefix,
};
use nicpin::cpuset::CpuSet;
use nicpin::machine::Role;
use nicpin::plan::HostSummary;
use nicpin::report::interface::InterfaceState::{Crowded, Drifted};
use nicpin::report::interface::{InterfaceReport, Steering};
use nicpin::report::status::Status;
use nicpin::report::vectors::VectorState;
use nicpin::report::vectors::VectorState::{AsPlanned, Differs, Elsewhere, LeftAlone, Unmovable};

pub(super) fn interface(page: &mut Page, status: &Status, interface: &InterfaceReport, all: bool) {
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
    // The table has no such column.
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
