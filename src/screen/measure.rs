//! A measurement, and a comparison of runs near an interface and far from it, as a sentence and tables.

use itertools::Itertools as _;

use crate::screen::page::{FIGURES, LEFT, Page};
use crate::screen::{count, or, queue, rate, some, with, within};
use nicpin::drivers::Taught;
use nicpin::report::compare::{Comparison, Figure, Stats};
use nicpin::report::flow::{ArrivingConnections, Connections};
use nicpin::report::measure::{CpuRates, InterfaceRates, MachineRates, Measurement, TrafficRates};

/// CPUs listed without `--all`.
const MOST_CPUS: usize = 16;

/// The tables. `all`: also vectors without interrupts and idle CPUs.
pub fn measure(measure: &Measurement, all: bool) -> Page {
    let mut page = Page::default();
    let most = if all { usize::MAX } else { MOST_CPUS };
    page.text(machine(&measure.machine, measure.seconds));
    let share = |one: &InterfaceRates| one.local.unwrap_or(1.0);
    let interfaces = measure
        .interfaces
        .iter()
        .sorted_by(|a, b| share(a).total_cmp(&share(b)));
    page.columns(
        0,
        2..usize::MAX,
        [
            "INTERFACE",
            "NODE",
            "RX",
            "RX PKT/S",
            "TX",
            "TX PKT/S",
            "DROPPED",
            "IRQ/S",
            "LOCAL",
        ],
        interfaces.clone().map(|one| {
            let (of, irqs) = (&one.subject, one.vectors.first());
            let traffic =
                |cell: fn(&TrafficRates) -> String| or(one.traffic.as_ref().map(cell), "-");
            [
                of.name.clone(),
                or(of.node, if of.kind.is_some() { "-" } else { "?" }),
                traffic(|of| bits(of.rx_gbit_per_second)),
                traffic(|of| rate(of.rx_packets_per_second)),
                traffic(|of| bits(of.tx_gbit_per_second)),
                traffic(|of| rate(of.tx_packets_per_second)),
                traffic(|of| of.rx_dropped.saturating_add(of.tx_dropped).to_string()),
                or(irqs.map(|_| rate(one.interrupts_per_second)), "-"),
                or(irqs.and(one.local).map(percent), "-"),
            ]
        }),
    );
    let learned = interfaces
        .clone()
        .filter_map(|one| Some((one, one.learned.as_ref()?)));
    let vectors = interfaces
        .flat_map(|one| one.vectors.iter().map(|of| (&one.subject.name, of)))
        .filter(|(_, vector)| all || vector.interrupts > 0);
    page.columns(
        0,
        2..5,
        ["INTERFACE", "QUEUE", "IRQ", "IRQ/S", "LOCAL", "BY CPU"],
        vectors.map(|(name, of)| {
            let cpus = of.cpus.iter();
            [
                name.clone(),
                queue(of.vector.role, of.vector.queue)
                    + &within(" (", [of.moved_with.join(", ")], ")"),
                of.vector.irq.to_string(),
                rate(of.per_second),
                or(of.local.map(percent), "-"),
                cpus.map(|on| format!("{}: {}", on.cpu, rate(on.per_second)))
                    .join("  "),
            ]
        }),
    );
    for (one, row) in learned {
        page.line("");
        page.text(format!(
            "{}: the queues of its IRQs, by packets that were counted when they fired. In the policy, /etc/nicpin.toml:",
            one.subject.name
        ));
        for line in policy(row) {
            page.line(format!("  {line}"));
        }
    }
    if let Some(connections) = measure.connections.as_ref().filter(|of| of.established > 0) {
        self::connections(&mut page, connections, most);
    }
    cpus(&mut page, &measure.cpus, most, all);
    let loopback = measure.machine.loopback_packets_per_second;
    page.text(within(
        "The packets of the CPUs include ",
        (loopback > 0.0).then(|| rate(loopback)),
        "/s of the loopback interface.",
    ));
    page.notes([("", &*measure.notes)]);
    page
}

/// A driver as the policy file teaches it.
fn policy(row: &Taught) -> Vec<String> {
    let irqs = row.irqs.iter().map(|of| format!("  {:?},", of.row()));
    let head = [
        "[[driver]]".to_owned(),
        format!("name = {:?}", row.name),
        "irqs = [".to_owned(),
    ];
    head.into_iter()
        .chain(irqs)
        .chain(["]".to_owned()])
        .collect()
}

/// CPUs that took interrupts or packets, the busiest ones if there are many.
fn cpus(page: &mut Page, cpus: &[CpuRates], most: usize, all: bool) {
    let work = |cpu: &CpuRates| cpu.interrupts_per_second + cpu.packets_per_second;
    let mut cpus = cpus
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
    }
    page.columns(
        0,
        FIGURES,
        [
            "CPU", "NODE", "BUSY", "IN IRQ", "IRQ/S", "NET_RX/S", "NET_TX/S", "PKT/S", "RPS/S",
            "DROPPED", "SQUEEZED",
        ],
        cpus.iter().map(|cpu| {
            [
                cpu.cpu.to_string(),
                or(cpu.node, "-"),
                percent(cpu.busy),
                percent(cpu.softirq),
                rate(cpu.interrupts_per_second),
                rate(cpu.net_rx_per_second),
                rate(cpu.net_tx_per_second),
                rate(cpu.packets_per_second),
                rate(cpu.rps_per_second),
                cpu.dropped.to_string(),
                cpu.squeezed.to_string(),
            ]
        }),
    );
    page.text(some(hidden, "less busy CPU", ": nicpin measure --all"));
}

/// The connections by the CPU that they are predicted to arrive on.
fn connections(page: &mut Page, connections: &Connections, most: usize) {
    let total = count(connections.established, "connection");
    let arrivals = &connections.arrivals[..];
    let sum = |is: fn(&&ArrivingConnections) -> bool| -> usize {
        arrivals.iter().filter(is).map(|of| of.connections).sum()
    };
    let near = sum(|of| of.node.is_some() && of.node == of.process_node);
    let far = sum(|of| of.node.zip(of.process_node).is_some_and(|(a, b)| a != b));
    page.line("");
    page.text(format!(
        "{total}: {near} arrive on the node of their process, {far} on another."
    ));
    let rows = arrivals.iter().take(most).map(|of| {
        [
            of.interface.clone(),
            of.cpu.to_string(),
            or(of.node, "-"),
            or(of.process_node, "-"),
            of.connections.to_string(),
        ]
    });
    let heads = ["INTERFACE", "CPU", "NODE", "PROCESS ON", "CONNECTIONS"];
    page.columns(2, LEFT, heads, rows);
    let hidden = arrivals.len().saturating_sub(most);
    page.text(some(hidden, "less used CPU", ": nicpin measure --all"));
    for unknown in &connections.unknown {
        let (many, missing) = (unknown.connections, &unknown.missing);
        page.item(
            "  ",
            format!("{}: {many} unknown: {missing}", unknown.interface),
        );
    }
}

fn machine(machine: &MachineRates, seconds: f64) -> String {
    let per_second = |of: f64| if seconds > 0.0 { of / seconds } else { 0.0 };
    let [local, remote] = [machine.local_interrupts, machine.remote_interrupts].map(|of| of as f64);
    let share = (local + remote > 0.0).then(|| percent(local / (local + remote)));
    let cost =
        |cost: Option<f64>, what| with("; ", cost.map(|cost| format!("{cost:.2} Gbit per {what}")));
    format!(
        "In {seconds:.2} s: {}{}; {:.2} CPUs busy, {:.2} of them in interrupts and softirqs{}{}; {} packets dropped, \
         {} polls ended with work left.",
        gbit(machine.gbit_per_second),
        within(
            "; ",
            share,
            " of the interrupts on the interfaces' own nodes"
        ),
        per_second(machine.busy_cpu_seconds),
        per_second(machine.softirq_cpu_seconds),
        cost(machine.gbit_per_busy_cpu_second, "CPU second"),
        cost(machine.gbit_per_softirq_cpu_second, "softirq CPU second"),
        machine.dropped,
        machine.squeezed
    )
}

/// `9.41 Gbit/s`, `1.20 Mbit/s`, `0 bit/s`.
fn gbit(gbit_per_second: f64) -> String {
    match gbit_per_second {
        0.0 => "0 bit/s".into(),
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
    let sides = [("near", &comparison.near), ("far", &comparison.far)];
    page.table(
        2,
        LEFT,
        sides.map(|(name, side)| {
            let (node, cpus) = (&side.nodes, side.cpus.short());
            [
                name.to_owned(),
                format!("node {node}"),
                format!("CPUs {cpus}"),
            ]
        }),
    );
    page.columns(0, LEFT, HEADER, comparison.figures.iter().flat_map(figure));
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
    let mut ratios = [
        ("Gbit/s", "gbit_per_second"),
        ("CPU time of the machine", "busy_cpu_seconds"),
    ]
    .iter()
    .filter_map(|(what, name)| {
        let figure = comparison.figures.iter().find(|of| of.name == *name)?;
        Some(format!("{:.2} times the {what}", figure.far_to_near?))
    });
    let verdict = format!("Far from {}: ", comparison.interface);
    let (near, far) = (comparison.near.runs.len(), comparison.far.runs.len());
    let runs = if near == far {
        "each".to_owned()
    } else {
        format!("near, {far} far")
    };
    let warmup = (comparison.warmup > 0).then_some(comparison.warmup);
    format!(
        "{}Ran {} near and far, {} {}{}, in alternating order.",
        within(&verdict, [ratios.join(", ")], ". "),
        comparison.command.join(" "),
        count(near, "run"),
        runs,
        within(" after ", warmup, " to warm up")
    )
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
    let number = |number: Option<f64>, digits| number.map(|number| format!("{number:.digits$}"));
    let mean = |mean, deviation, digits| {
        or(number(mean, digits), "-") + &with(" ± ", number(deviation, digits))
    };
    let row = |name: &str, side: &str, spread: Option<Stats>, ratio: String| {
        let cell = |of: fn(Stats) -> f64| or(number(spread.map(of), digits), "-");
        let deviation = spread.and_then(|spread| spread.stddev);
        [
            name.to_owned(),
            side.to_owned(),
            cell(|spread| spread.median),
            mean(spread.map(|spread| spread.mean), deviation, digits),
            cell(|spread| spread.min),
            cell(|spread| spread.max),
            ratio,
        ]
    };
    let ratio = mean(figure.far_to_near, figure.far_to_near_stddev, 2);
    [
        row(name, "near", figure.near, String::new()),
        row("", "far", figure.far, ratio),
    ]
}
