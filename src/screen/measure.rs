//! A measurement, and a comparison of runs near an interface and far from it, as a sentence and tables.

use crate::screen::page::Page;
use crate::screen::text::{count, notes, queue, rate};
use nicpin::report::compare::{Comparison, Figure, Spread};
use nicpin::report::connections::{ArrivingConnections, Connections};
use nicpin::report::measure::{CpuRates, InterfaceRates, MachineRates, Measure, VectorRates};

/// CPUs listed without `--all`.
const MOST_CPUS: usize = 16;

/// The tables. `all`: also vectors without interrupts and idle CPUs.
pub fn measure(measure: &Measure, all: bool) -> Page {
    let mut page = Page::default();
    page.item("", machine(&measure.machine, measure.seconds));
    let heads = [
        "INTERFACE",
        "NODE",
        "RX",
        "RX PKT/S",
        "TX",
        "TX PKT/S",
        "DROPPED",
        "IRQ/S",
        "LOCAL",
    ];
    let mut interfaces: Vec<&InterfaceRates> = measure.interfaces.iter().collect();
    let share = |one: &InterfaceRates| one.local.unwrap_or(1.0);
    interfaces.sort_by(|a, b| share(a).total_cmp(&share(b)));
    let rows = interfaces.iter().map(|one| interface(one).to_vec());
    page.line("");
    let right = (2, usize::MAX);
    page.aligned(0, right, titled(heads, rows));
    let of_queue = |one: &VectorRates| all || one.interrupts > 0;
    let queues = interfaces.iter().flat_map(|one| {
        let vectors = one.vectors.iter().filter(move |vector| of_queue(vector));
        vectors.map(|vector| self::vector(&one.name, vector))
    });
    let queues: Vec<Vec<String>> = queues.collect();
    if !queues.is_empty() {
        let heads = ["INTERFACE", "QUEUE", "IRQ", "IRQ/S", "LOCAL", "BY CPU"];
        page.line("");
        page.aligned(0, (2, 5), titled(heads, queues));
    }
    if let Some(connections) = &measure.connections {
        if connections.established > 0 {
            page.line("");
            page.add(self::connections(connections, all));
        }
    }
    page.line("");
    cpus(&measure.cpus, all, &mut page);
    if measure.machine.loopback_packets_per_second > 0.0 {
        let packets = rate(measure.machine.loopback_packets_per_second);
        page.line(format!(
            "The packets of the CPUs include {packets}/s of the loopback interface."
        ));
    }
    let all = measure.notes.iter().map(|note| ("", note));
    page.add(notes("", all, (usize::MAX, "")));
    page
}

/// Rows below their headings.
fn titled<const N: usize>(
    heads: [&str; N],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> impl Iterator<Item = Vec<String>> {
    std::iter::once(heads.map(str::to_owned).to_vec()).chain(rows)
}

fn interface(interface: &InterfaceRates) -> [String; 9] {
    let dash = || "-".to_owned();
    let node = match (interface.node, &interface.kind) {
        (Some(node), _) => node.to_string(),
        (None, Some(_)) => dash(),
        (None, None) => "?".to_owned(),
    };
    let [rx, rx_packets, tx, tx_packets, dropped] =
        interface
            .traffic
            .as_ref()
            .map_or([(); 5].map(|()| dash()), |traffic| {
                [
                    bits(traffic.rx_gbit_per_second),
                    rate(traffic.rx_packets_per_second),
                    bits(traffic.tx_gbit_per_second),
                    rate(traffic.tx_packets_per_second),
                    traffic
                        .rx_dropped
                        .saturating_add(traffic.tx_dropped)
                        .to_string(),
                ]
            });
    let (irqs, local) = if interface.vectors.is_empty() {
        (dash(), dash())
    } else {
        let local = interface.local.map_or(dash(), percent);
        (rate(interface.interrupts_per_second), local)
    };
    let name = interface.name.clone();
    [
        name, node, rx, rx_packets, tx, tx_packets, dropped, irqs, local,
    ]
}

fn vector(name: &str, vector: &VectorRates) -> Vec<String> {
    let on = vector.cpus.iter();
    let on: Vec<String> = on
        .map(|on| format!("{}: {}", on.cpu, rate(on.per_second)))
        .collect();
    vec![
        name.to_owned(),
        queue(vector.role, vector.queue),
        vector.irq.to_string(),
        rate(vector.per_second),
        vector.local.map_or("-".to_owned(), percent),
        on.join("  "),
    ]
}

/// The connections by the CPU that they are predicted to arrive on.
fn connections(connections: &Connections, all: bool) -> Page {
    let total = count(connections.established, "connection");
    let sum = |is: fn(&&ArrivingConnections) -> bool| -> usize {
        let arrivals = connections.arrivals.iter().filter(is);
        arrivals.map(|arriving| arriving.connections).sum()
    };
    let near = sum(|of| of.node.is_some() && of.node == of.process_node);
    let far = sum(|of| of.node.zip(of.process_node).is_some_and(|(a, b)| a != b));
    let mut page = Page::default();
    page.item(
        "",
        format!("{total}: {near} arrive on the node of their process, {far} on another."),
    );
    let or_dash = |node: Option<u32>| node.map_or("-".to_owned(), |node| node.to_string());
    let row = |of: &ArrivingConnections| {
        vec![
            of.interface.clone(),
            of.cpu.to_string(),
            or_dash(of.node),
            or_dash(of.process_node),
            of.connections.to_string(),
        ]
    };
    let head = ["INTERFACE", "CPU", "NODE", "PROCESS ON", "CONNECTIONS"].map(str::to_owned);
    let most = if all { usize::MAX } else { MOST_CPUS };
    if !connections.arrivals.is_empty() {
        let rows = connections.arrivals.iter().take(most).map(row);
        page.table(2, std::iter::once(head.to_vec()).chain(rows));
    }
    if connections.arrivals.len() > most {
        page.line(format!(
            "{} less used CPUs: nicpin measure --all",
            connections.arrivals.len() - most
        ));
    }
    for unknown in &connections.unknown {
        let number = unknown.connections;
        page.item(
            "  ",
            format!(
                "{}: {number} unknown: {}",
                unknown.interface, unknown.missing
            ),
        );
    }
    page
}

type Cell = fn(&CpuRates) -> String;

const COLUMNS: [(&str, Cell); 11] = [
    ("CPU", |cpu| cpu.cpu.to_string()),
    ("NODE", |cpu| {
        cpu.node.map_or("-".to_owned(), |node| node.to_string())
    }),
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

/// CPUs that took interrupts or packets, the busiest ones if there are many.
fn cpus(cpus: &[CpuRates], all: bool, page: &mut Page) {
    let work = |cpu: &CpuRates| cpu.interrupts_per_second + cpu.packets_per_second;
    let mut shown: Vec<&CpuRates> = cpus.iter().filter(|cpu| all || work(cpu) > 0.0).collect();
    if shown.is_empty() {
        return page.line("No CPU took interrupts or packets.");
    }
    let most = if all { usize::MAX } else { MOST_CPUS };
    let hidden = shown.len().saturating_sub(most);
    shown.sort_by(|a, b| work(b).total_cmp(&work(a)));
    shown.truncate(most);
    shown.sort_by_key(|cpu| cpu.cpu);
    let rows = shown
        .into_iter()
        .map(|cpu| COLUMNS.map(|(_, cell)| cell(cpu)).to_vec());
    page.aligned(
        0,
        (1, usize::MAX),
        titled(COLUMNS.map(|(head, _)| head), rows),
    );
    if hidden > 0 {
        page.line(format!("{hidden} less busy CPUs: nicpin measure --all"));
    }
}

fn machine(machine: &MachineRates, seconds: f64) -> String {
    let cpus = |cpu_seconds: f64| {
        if seconds > 0.0 {
            cpu_seconds / seconds
        } else {
            0.0
        }
    };
    let mut text = format!("In {seconds:.2} s: {}", gbit(machine.gbit_per_second));
    let (local, remote) = (machine.local_interrupts, machine.remote_interrupts);
    #[allow(clippy::cast_precision_loss)] // counts beyond 2^53 are shares well enough
    if local.saturating_add(remote) > 0 {
        let share = local as f64 / (local as f64 + remote as f64);
        text += &format!(
            "; {} of the interrupts on the interfaces' own nodes",
            percent(share)
        );
    }
    text += &format!(
        "; {:.2} CPUs busy, {:.2} of them in interrupts and softirqs",
        cpus(machine.busy_cpu_seconds),
        cpus(machine.softirq_cpu_seconds)
    );
    for (value, what) in [
        (machine.gbit_per_busy_cpu_second, "CPU second"),
        (machine.gbit_per_softirq_cpu_second, "softirq CPU second"),
    ] {
        text += &value.map_or(String::new(), |value| {
            format!("; {value:.2} Gbit per {what}")
        });
    }
    let (dropped, squeezed) = (machine.dropped, machine.squeezed);
    text + &format!("; {dropped} packets dropped, {squeezed} polls ended with work left.")
}

/// `9.41 Gbit/s`, `1.20 Mbit/s`, `0 bit/s`.
pub(crate) fn gbit(gbit_per_second: f64) -> String {
    match gbit_per_second {
        0.0 => "0 bit/s".to_owned(),
        giga if giga >= 1.0 => format!("{giga:.2} Gbit/s"),
        mega if mega >= 1e-3 => format!("{:.2} Mbit/s", mega * 1e3),
        kilo => format!("{:.2} kbit/s", kilo * 1e6),
    }
}

/// The same in a column: `9.41G`, `0`.
fn bits(gbit_per_second: f64) -> String {
    gbit(gbit_per_second)
        .replace(" bit/s", "")
        .replace("bit/s", "")
        .replace(' ', "")
}

/// A share in percent, rounded; 100% only for the whole.
fn percent(share: f64) -> String {
    let whole = (share * 100.0).round();
    let whole = if share < 1.0 && whole >= 100.0 {
        99.0
    } else {
        whole
    };
    format!("{whole:.0}%")
}

/// Near and far one below the other.
pub fn compare(comparison: &Comparison) -> Page {
    let mut page = Page::default();
    page.item("", what(comparison));
    let sides = [("near", &comparison.near), ("far", &comparison.far)];
    page.table(
        2,
        sides.map(|(name, side)| {
            vec![
                name.to_owned(),
                format!("node {}", side.nodes),
                format!("CPUs {}", side.cpus.short()),
            ]
        }),
    );
    page.line("");
    page.table(
        0,
        titled(HEADER, comparison.figures.iter().flat_map(figure)),
    );
    let all = comparison.notes.iter().map(|note| ("", note));
    page.add(notes("", all, (usize::MAX, "")));
    page
}

/// The comparison as a section of a Markdown document.
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = what(comparison).replace('`', "'") + "\n\n";
    for (name, side) in [("near", &comparison.near), ("far", &comparison.far)] {
        out += &format!("* {name}: node {}, CPUs {}\n", side.nodes, side.cpus);
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    out += &format!(
        "\n{}|:---|:---|---:|---:|---:|---:|---:|\n",
        line(&HEADER.map(str::to_owned))
    );
    out.extend(
        comparison
            .figures
            .iter()
            .flat_map(figure)
            .map(|row| line(&row)),
    );
    out.extend(
        comparison
            .notes
            .iter()
            .map(|note| format!("\nNote: {note}\n")),
    );
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
    let ratio = |name: &str| {
        let figure = comparison.figures.iter().find(|figure| figure.name == name);
        figure.and_then(|figure| figure.far_to_near)
    };
    let figures = [
        ("Gbit/s", "gbit_per_second"),
        ("CPU time of the machine", "busy_cpu_seconds"),
    ];
    let figures = figures
        .into_iter()
        .filter_map(|(what, name)| Some(format!("{:.2} times the {what}", ratio(name)?)));
    let figures: Vec<String> = figures.collect();
    let verdict = match &figures[..] {
        [] => String::new(),
        figures => format!(
            "Far from {}: {}. ",
            comparison.interface,
            figures.join(", ")
        ),
    };
    let (near, far) = (comparison.near.runs.len(), comparison.far.runs.len());
    let runs = match (count(near, "run"), near == far) {
        (runs, true) => format!("{runs} each"),
        (runs, false) => format!("{runs} near, {far} far"),
    };
    let warmup = match comparison.warmup {
        0 => String::new(),
        runs => format!(" after {runs} to warm up"),
    };
    let command = comparison.command.join(" ");
    format!("{verdict}Ran {command} near and far, {runs}{warmup}, in alternating order.")
}

/// Two rows, near and far.
fn figure(figure: &Figure) -> [Vec<String>; 2] {
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
    let row = |name: &str, side: &str, spread: Option<Spread>, ratio: String| {
        let cell = |of: fn(&Spread) -> f64| {
            spread
                .as_ref()
                .map_or("-".to_owned(), |spread| format!("{:.digits$}", of(spread)))
        };
        let deviation = spread.and_then(|spread| spread.stddev);
        let deviation = deviation.map_or(String::new(), |by| format!(" ± {by:.digits$}"));
        let mean = cell(|spread| spread.mean) + &deviation;
        let (least, most) = (cell(|spread| spread.min), cell(|spread| spread.max));
        vec![
            name.to_owned(),
            side.to_owned(),
            cell(|spread| spread.median),
            mean,
            least,
            most,
            ratio,
        ]
    };
    let deviation = figure.far_to_near_stddev;
    let deviation = deviation.map_or(String::new(), |by| format!(" ± {by:.2}"));
    let ratio = figure
        .far_to_near
        .map_or("-".to_owned(), |ratio| format!("{ratio:.2}{deviation}"));
    [
        row(name, "near", figure.near, String::new()),
        row("", "far", figure.far, ratio),
    ]
}
