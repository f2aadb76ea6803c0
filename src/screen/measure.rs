//! A measurement, and a comparison of runs near an interface and far from it, as text.

use itertools::Itertools as _;

use crate::screen::page::{FIGURES, LEFT, Page};
use crate::screen::{count, count_if_any, enclose, queue, rate, text_or, with_prefix};
use nicpin::drivers::Taught;
use nicpin::report::compare::{Comparison, Figure, Stats};
use nicpin::report::flow::{ArrivingConnections, Connections};
use nicpin::report::measure::{CpuRates, InterfaceRates, MachineRates, Measurement, TrafficRates};

const MOST_CPUS: usize = 16;

pub fn measure(measure: &Measurement, all: bool) -> Page {
    let mut page = Page::default();
    let most = if all { usize::MAX } else { MOST_CPUS };
    page.text(machine(&measure.machine, measure.seconds));
    let share = |interface: &InterfaceRates| interface.local.unwrap_or(1.0);
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
        interfaces.clone().map(|interface| {
            let (subject, irqs) = (&interface.subject, interface.vectors.first());
            let traffic = |cell: fn(&TrafficRates) -> String| {
                text_or(interface.traffic.as_ref().map(cell), "-")
            };
            [
                subject.name.clone(),
                text_or(subject.node, if subject.kind.is_some() { "-" } else { "?" }),
                traffic(|traffic| bits(traffic.rx_gbit_per_second)),
                traffic(|traffic| rate(traffic.rx_packets_per_second)),
                traffic(|traffic| bits(traffic.tx_gbit_per_second)),
                traffic(|traffic| rate(traffic.tx_packets_per_second)),
                traffic(|traffic| {
                    traffic
                        .rx_dropped
                        .saturating_add(traffic.tx_dropped)
                        .to_string()
                }),
                text_or(irqs.map(|_| rate(interface.interrupts_per_second)), "-"),
                text_or(irqs.and(interface.local).map(percent), "-"),
            ]
        }),
    );
    let learned = interfaces
        .clone()
        .filter_map(|interface| Some((interface, interface.learned.as_ref()?)));
    let vectors = interfaces
        .flat_map(|interface| {
            interface
                .vectors
                .iter()
                .map(|vector| (&interface.subject.name, vector))
        })
        .filter(|(_, vector)| all || vector.interrupts > 0);
    page.columns(
        0,
        2..5,
        ["INTERFACE", "QUEUE", "IRQ", "IRQ/S", "LOCAL", "BY CPU"],
        vectors.map(|(name, vector)| {
            let cpus = vector.cpus.iter();
            [
                name.clone(),
                queue(vector.vector.role, vector.vector.queue)
                    + &enclose(" (", [vector.moved_with.join(", ")], ")"),
                vector.vector.irq.to_string(),
                rate(vector.per_second),
                text_or(vector.local.map(percent), "-"),
                cpus.map(|on| format!("{}: {}", on.cpu, rate(on.per_second)))
                    .join("  "),
            ]
        }),
    );
    for (interface, row) in learned {
        self::learned(&mut page, &interface.subject.name, row);
    }
    if let Some(connections) = measure
        .connections
        .as_ref()
        .filter(|found| found.established > 0)
    {
        self::connections(&mut page, connections, most);
    }
    cpus(&mut page, &measure.cpus, most, all);
    let loopback = measure.machine.loopback_packets_per_second;
    page.text(enclose(
        "The packets of the CPUs include ",
        (loopback > 0.0).then(|| rate(loopback)),
        "/s of the loopback interface.",
    ));
    page.notes([("", &*measure.notes)]);
    page
}

fn learned(page: &mut Page, interface: &str, row: &Taught) {
    page.line("");
    page.text(format!(
        "{interface}: the queues of its IRQs, by packets that were counted when they fired. In the policy, \
         /etc/nicpin.toml:"
    ));
    page.line("  [[driver]]");
    page.line(format!("  name = {:?}", row.name));
    page.line("  irqs = [");
    for pattern in &row.irqs {
        page.line(format!("    {:?},", pattern.row()));
    }
    page.line("  ]");
}

fn cpus(page: &mut Page, cpus: &[CpuRates], most: usize, all: bool) {
    let work = |cpu: &CpuRates| cpu.interrupts_per_second + cpu.packets_per_second;
    let mut cpus = cpus
        .iter()
        .filter(|cpu| all || work(cpu) > 0.0)
        .sorted_by(|a, b| work(b).total_cmp(&work(a)))
        .collect_vec();
    let hidden = cpus.len().saturating_sub(most);
    cpus.truncate(most);
    cpus.sort_unstable_by_key(|cpu| cpu.cpu);
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
                text_or(cpu.node, "-"),
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
    page.text(count_if_any(
        hidden,
        "less busy CPU",
        ": nicpin measure --all",
    ));
}

fn connections(page: &mut Page, connections: &Connections, most: usize) {
    let total = count(connections.established, "connection");
    let arrivals = &connections.arrivals[..];
    let sum = |is: fn(&&ArrivingConnections) -> bool| -> usize {
        arrivals
            .iter()
            .filter(is)
            .map(|arrival| arrival.connections)
            .sum()
    };
    let near = sum(|arrival| arrival.node.is_some() && arrival.node == arrival.process_node);
    let far = sum(|arrival| {
        arrival
            .node
            .zip(arrival.process_node)
            .is_some_and(|(a, b)| a != b)
    });
    page.line("");
    page.text(format!(
        "{total}: {near} arrive on the node of their process, {far} on another."
    ));
    let rows = arrivals.iter().take(most).map(|arrival| {
        [
            arrival.interface.clone(),
            arrival.cpu.to_string(),
            text_or(arrival.node, "-"),
            text_or(arrival.process_node, "-"),
            arrival.connections.to_string(),
        ]
    });
    let heads = ["INTERFACE", "CPU", "NODE", "PROCESS ON", "CONNECTIONS"];
    page.columns(2, LEFT, heads, rows);
    let hidden = arrivals.len().saturating_sub(most);
    page.text(count_if_any(
        hidden,
        "less used CPU",
        ": nicpin measure --all",
    ));
    for unknown in &connections.unknown {
        let (many, missing) = (unknown.connections, &unknown.missing);
        page.item(
            "  ",
            format!("{}: {many} unknown: {missing}", unknown.interface),
        );
    }
}

fn machine(machine: &MachineRates, seconds: f64) -> String {
    let per_second = |number: f64| if seconds > 0.0 { number / seconds } else { 0.0 };
    let [local, remote] =
        [machine.local_interrupts, machine.remote_interrupts].map(|number| number as f64);
    let share = (local + remote > 0.0).then(|| percent(local / (local + remote)));
    let cost = |cost: Option<f64>, what| {
        with_prefix("; ", cost.map(|cost| format!("{cost:.2} Gbit per {what}")))
    };
    format!(
        "In {seconds:.2} s: {}{}; {:.2} CPUs busy, {:.2} of them in interrupts and softirqs{}{}; {} packets dropped, \
         {} polls ended with work left.",
        gbit(machine.gbit_per_second),
        enclose(
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

fn scaled(gbit_per_second: f64) -> (String, &'static str) {
    match gbit_per_second {
        0.0 => ("0".into(), ""),
        giga if giga >= 1.0 => (format!("{giga:.2}"), "G"),
        mega if mega >= 1e-3 => (format!("{:.2}", mega * 1e3), "M"),
        kilo => (format!("{:.2}", kilo * 1e6), "k"),
    }
}

/// `9.41 Gbit/s`, `1.20 Mbit/s`, `0 bit/s`.
fn gbit(gbit_per_second: f64) -> String {
    let (number, prefix) = scaled(gbit_per_second);
    format!("{number} {prefix}bit/s")
}

/// `9.41G`, `0`.
fn bits(gbit_per_second: f64) -> String {
    let (number, prefix) = scaled(gbit_per_second);
    number + prefix
}

/// Rounds a share; 100% is only the whole.
fn percent(share: f64) -> String {
    let whole = (share * 100.0).round();
    let least = if share < 1.0 { 99.0 } else { whole };
    format!("{:.0}%", whole.min(least))
}

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

fn what(comparison: &Comparison) -> String {
    let mut ratios = [
        ("Gbit/s", "gbit_per_second"),
        ("CPU time of the machine", "busy_cpu_seconds"),
    ]
    .iter()
    .filter_map(|(what, name)| {
        let figure = comparison
            .figures
            .iter()
            .find(|figure| figure.name == *name)?;
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
        enclose(&verdict, [ratios.join(", ")], ". "),
        comparison.command.join(" "),
        count(near, "run"),
        runs,
        enclose(" after ", warmup, " to warm up")
    )
}

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
        text_or(number(mean, digits), "-") + &with_prefix(" ± ", number(deviation, digits))
    };
    let row = |name: &str, side: &str, spread: Option<Stats>, ratio: String| {
        let cell =
            |statistic: fn(Stats) -> f64| text_or(number(spread.map(statistic), digits), "-");
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
