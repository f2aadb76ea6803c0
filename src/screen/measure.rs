//! A measurement, and a comparison of runs near an interface and far from it, as a sentence and tables.

use itertools::Itertools as _;

use crate::screen::page::{Column, FIGURES, Page};
use crate::screen::{count, or, queue, rate, when, with};
use nicpin::report::compare::{Comparison, Figure, Spread};
use nicpin::report::flow::{ArrivingConnections, Connections};
use nicpin::report::measure::{CpuRates, InterfaceRates, MachineRates, Measure, TrafficRates};

/// CPUs listed without `--all`.
const MOST_CPUS: usize = 16;

/// The tables. `all`: also vectors without interrupts and idle CPUs.
pub fn measure(measure: &Measure, all: bool) -> Page {
    let mut page = Page::default();
    let most = if all { usize::MAX } else { MOST_CPUS };
    page.text(machine(&measure.machine, measure.seconds));
    let interfaces = measure.interfaces.iter();
    let share = |one: &InterfaceRates| one.local.unwrap_or(1.0);
    let interfaces = interfaces.sorted_by(|a, b| share(a).total_cmp(&share(b)));
    page.list(0, 2..usize::MAX, INTERFACES, interfaces.clone());
    let rows = interfaces
        .flat_map(|one| one.vectors.iter().map(|of| (&one.subject.name, of)))
        .filter(|(_, vector)| all || vector.interrupts > 0)
        .map(|(name, vector)| {
            let mut on = vector
                .cpus
                .iter()
                .map(|on| format!("{}: {}", on.cpu, rate(on.per_second)));
            [
                name.clone(),
                queue(vector.vector.role, vector.vector.queue),
                vector.vector.irq.to_string(),
                rate(vector.per_second),
                or(vector.local.map(percent), "-"),
                on.join("  "),
            ]
        })
        .collect_vec();
    if !rows.is_empty() {
        let heads = ["INTERFACE", "QUEUE", "IRQ", "IRQ/S", "LOCAL", "BY CPU"];
        page.columns(0, 2..5, heads, rows);
    }
    if let Some(connections) = measure.connections.as_ref().filter(|of| of.established > 0) {
        self::connections(&mut page, connections, most);
    }
    // CPUs that took interrupts or packets, the busiest ones if there are many.
    let work = |cpu: &CpuRates| cpu.interrupts_per_second + cpu.packets_per_second;
    let mut cpus = measure
        .cpus
        .iter()
        .filter(|cpu| all || work(cpu) > 0.0)
        .sorted_by(|a, b| work(b).total_cmp(&work(a)))
        .collect_vec();
    let hidden = cpus.len().saturating_sub(most);
    cpus.truncate(most);
    cpus.sort_by_key(|cpu| cpu.cpu);
    if cpus.is_empty() {
        page.line("");
        page.line("No CPU took interrupts or packets.");
    } else {
        page.list(0, FIGURES, CPUS, cpus);
    }
    if hidden > 0 {
        page.line(format!("{hidden} less busy CPUs: nicpin measure --all"));
    }
    if measure.machine.loopback_packets_per_second > 0.0 {
        let packets = rate(measure.machine.loopback_packets_per_second);
        page.line(format!(
            "The packets of the CPUs include {packets}/s of the loopback interface."
        ));
    }
    page.notes([("", &*measure.notes)]);
    page
}

const INTERFACES: [Column<InterfaceRates>; 9] = [
    ("INTERFACE", |one| one.subject.name.clone()),
    ("NODE", |one| {
        let of = &one.subject;
        or(of.node, if of.kind.is_some() { "-" } else { "?" })
    }),
    ("RX", |one| traffic(one, |of| bits(of.rx_gbit_per_second))),
    ("RX PKT/S", |one| {
        traffic(one, |of| rate(of.rx_packets_per_second))
    }),
    ("TX", |one| traffic(one, |of| bits(of.tx_gbit_per_second))),
    ("TX PKT/S", |one| {
        traffic(one, |of| rate(of.tx_packets_per_second))
    }),
    ("DROPPED", |one| {
        traffic(one, |of| {
            of.rx_dropped.saturating_add(of.tx_dropped).to_string()
        })
    }),
    ("IRQ/S", |one| {
        or(
            one.vectors.first().map(|_| rate(one.interrupts_per_second)),
            "-",
        )
    }),
    ("LOCAL", |one| {
        or(one.vectors.first().and(one.local).map(percent), "-")
    }),
];

fn traffic(one: &InterfaceRates, cell: fn(&TrafficRates) -> String) -> String {
    or(one.traffic.as_ref().map(cell), "-")
}

/// The connections by the CPU that they are predicted to arrive on.
fn connections(page: &mut Page, connections: &Connections, most: usize) {
    let total = count(connections.established, "connection");
    let arrivals = &connections.arrivals;
    let sum = |is: fn(&&ArrivingConnections) -> bool| -> usize {
        arrivals.iter().filter(is).map(|of| of.connections).sum()
    };
    let near = sum(|of| of.node.is_some() && of.node == of.process_node);
    let far = sum(|of| of.node.zip(of.process_node).is_some_and(|(a, b)| a != b));
    page.line("");
    page.text(format!(
        "{total}: {near} arrive on the node of their process, {far} on another."
    ));
    if !arrivals.is_empty() {
        let rows = arrivals.iter().take(most);
        page.list(2, 0..0, ARRIVALS, rows);
    }
    if arrivals.len() > most {
        let hidden = arrivals.len() - most;
        page.line(format!("{hidden} less used CPUs: nicpin measure --all"));
    }
    for unknown in &connections.unknown {
        let (name, number, missing) = (&unknown.interface, unknown.connections, &unknown.missing);
        page.item("  ", format!("{name}: {number} unknown: {missing}"));
    }
}

const ARRIVALS: [Column<ArrivingConnections>; 5] = [
    ("INTERFACE", |of| of.interface.clone()),
    ("CPU", |of| of.cpu.to_string()),
    ("NODE", |of| or(of.node, "-")),
    ("PROCESS ON", |of| or(of.process_node, "-")),
    ("CONNECTIONS", |of| of.connections.to_string()),
];

const CPUS: [Column<CpuRates>; 11] = [
    ("CPU", |cpu| cpu.cpu.to_string()),
    ("NODE", |cpu| or(cpu.node, "-")),
    ("BUSY", |cpu| percent(cpu.busy)),
    ("IN IRQ", |cpu| percent(cpu.softirq)),
    ("IRQ/S", |cpu| rate(cpu.interrupts_per_second)),
    ("NET_RX/S", |cpu| rate(cpu.net_rx_per_second)),
    ("NET_TX/S", |cpu| rate(cpu.net_tx_per_second)),
    ("PKT/S", |cpu| rate(cpu.packets_per_second)),
    ("RPS/S", |cpu| rate(cpu.rps_per_second)),
    ("DROPPED", |cpu| cpu.dropped.to_string()),
    ("SQUEEZED", |cpu| cpu.squeezed.to_string()),
];

fn machine(machine: &MachineRates, seconds: f64) -> String {
    let [busy, in_softirqs] = [machine.busy_cpu_seconds, machine.softirq_cpu_seconds]
        .map(|of| if seconds > 0.0 { of / seconds } else { 0.0 });
    let (local, remote) = (machine.local_interrupts, machine.remote_interrupts);
    #[allow(clippy::cast_precision_loss)] // counts beyond 2^53 are shares well enough
    let share = percent(local as f64 / (local as f64 + remote as f64));
    let local = format!("; {share} of the interrupts on the interfaces' own nodes");
    let local = when(machine.local_interrupts > 0 || remote > 0, &local);
    let costs = [
        (machine.gbit_per_busy_cpu_second, "CPU second"),
        (machine.gbit_per_softirq_cpu_second, "softirq CPU second"),
    ]
    .map(|(cost, what)| with("; ", cost.map(|cost| format!("{cost:.2} Gbit per {what}"))));
    let (gbit, costs) = (gbit(machine.gbit_per_second), costs.concat());
    let (dropped, squeezed) = (machine.dropped, machine.squeezed);
    format!(
        "In {seconds:.2} s: {gbit}{local}; {busy:.2} CPUs busy, {in_softirqs:.2} of them in interrupts and \
         softirqs{costs}; {dropped} packets dropped, {squeezed} polls ended with work left."
    )
}

/// `9.41 Gbit/s`, `1.20 Mbit/s`, `0 bit/s`.
fn gbit(gbit_per_second: f64) -> String {
    match gbit_per_second {
        0.0 => "0 bit/s".to_owned(),
        giga if giga >= 1.0 => format!("{giga:.2} Gbit/s"),
        mega if mega >= 1e-3 => format!("{:.2} Mbit/s", mega * 1e3),
        kilo => format!("{:.2} kbit/s", kilo * 1e6),
    }
}

/// The same in a column: `9.41G`, `0`.
fn bits(gbit_per_second: f64) -> String {
    gbit(gbit_per_second).replace("bit/s", "").replace(' ', "")
}

/// A share in percent, rounded; 100% only for the whole.
fn percent(share: f64) -> String {
    let whole = (share * 100.0).round();
    let least = if share < 1.0 { 99.0 } else { whole };
    format!("{:.0}%", whole.min(least))
}

/// Near and far one below the other.
pub fn compare(comparison: &Comparison) -> Page {
    let mut page = Page::default();
    page.text(what(comparison));
    let sides = [("near", &comparison.near), ("far", &comparison.far)].map(|(name, side)| {
        let (nodes, cpus) = (&side.nodes, side.cpus.short());
        [
            name.to_owned(),
            format!("node {nodes}"),
            format!("CPUs {cpus}"),
        ]
    });
    page.table(2, sides);
    page.columns(0, 0..0, HEADER, comparison.figures.iter().flat_map(figure));
    page.notes([("", &*comparison.notes)]);
    page
}

/// The comparison as a section of a Markdown document.
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = what(comparison).replace('`', "'") + "\n\n";
    for (name, side) in [("near", &comparison.near), ("far", &comparison.far)] {
        out += &format!("* {name}: node {}, CPUs {}\n", side.nodes, side.cpus);
    }
    let header = HEADER.join(" | ");
    out += &format!("\n| {header} |\n|:---|:---|---:|---:|---:|---:|---:|\n");
    for row in comparison.figures.iter().flat_map(figure) {
        out += &format!("| {} |\n", row.join(" | "));
    }
    for note in &comparison.notes {
        out += &format!("\nNote: {note}\n");
    }
    out
}

const HEADER: [&str; 7] = [
    "FIGURE",
    "SIDE",
    "MEDIAN",
    "MEAN ± DEVIATION",
    "MIN",
    "MAX",
    "FAR/NEAR",
];

/// What came of it in throughput and CPU time, the command, and how often it ran.
fn what(comparison: &Comparison) -> String {
    let ratios = [
        ("Gbit/s", "gbit_per_second"),
        ("CPU time of the machine", "busy_cpu_seconds"),
    ];
    let mut ratios = ratios.iter().filter_map(|(what, name)| {
        let figure = comparison.figures.iter().find(|of| of.name == *name)?;
        Some(format!("{:.2} times the {what}", figure.far_to_near?))
    });
    let (ratios, interface) = (ratios.join(", "), &comparison.interface);
    let verdict = format!("Far from {interface}: {ratios}. ");
    let verdict = when(!ratios.is_empty(), &verdict);
    let (near, far) = (comparison.near.runs.len(), comparison.far.runs.len());
    let (runs, far) = (
        count(near, "run"),
        if near == far {
            "each"
        } else {
            &format!("near, {far} far")
        },
    );
    let warmup = Some(comparison.warmup)
        .filter(|&warmup| warmup > 0)
        .map(|runs| format!(" after {runs} to warm up"));
    let (command, warmup) = (comparison.command.join(" "), with("", warmup));
    format!("{verdict}Ran {command} near and far, {runs} {far}{warmup}, in alternating order.")
}

/// Two rows, near and far.
fn figure(figure: &Figure) -> [[String; 7]; 2] {
    let (name, digits) = match figure.name {
        "wall_seconds" => ("wall s", 2),
        "cpu_seconds" => ("CPU s of the command", 2),
        "busy_cpu_seconds" => ("CPU s of the machine", 2),
        "softirq_cpu_seconds" => ("CPU s in softirqs", 2),
        "gbit_per_second" => ("Gbit/s", 3),
        "gbit_per_busy_cpu_second" => ("Gbit per CPU s", 3),
        "local_interrupts" => ("interrupts local", 0),
        "remote_interrupts" => ("interrupts remote", 0),
        other => (other, 0),
    };
    let by = |deviation: Option<f64>, digits| {
        with(
            " ± ",
            deviation.map(|deviation| format!("{deviation:.digits$}")),
        )
    };
    let row = |name: &str, side: &str, spread: Option<Spread>, ratio: String| {
        let cell = |of: fn(Spread) -> f64| {
            or(spread.map(|spread| format!("{:.digits$}", of(spread))), "-")
        };
        let deviation = by(spread.and_then(|spread| spread.stddev), digits);
        [
            name.to_owned(),
            side.to_owned(),
            cell(|spread| spread.median),
            cell(|spread| spread.mean) + &deviation,
            cell(|spread| spread.min),
            cell(|spread| spread.max),
            ratio,
        ]
    };
    let deviation = by(figure.far_to_near_stddev, 2);
    let ratio = figure
        .far_to_near
        .map(|ratio| format!("{ratio:.2}{deviation}"));
    [
        row(name, "near", figure.near, String::new()),
        row("", "far", figure.far, or(ratio, "-")),
    ]
}
