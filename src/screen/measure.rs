//! A measurement as tables: interfaces with their vectors, CPUs, and the machine.

use crate::screen::note::note;
use crate::screen::page::Page;
use crate::screen::text::{count, queue, rate};
use nicpin::report::connections::{ArrivingConnections, Connections};
use nicpin::report::measure::{CpuRates, InterfaceRates, MachineRates, Measure, VectorRates};

/// CPUs listed without `--all`.
const MOST_CPUS: usize = 16;

/// The tables. `all`: also vectors without interrupts and idle CPUs.
pub fn measure(measure: &Measure, all: bool) -> Page {
    let mut page = Page::default();
    page.line(format!("in {:.2} s", measure.seconds));
    for interface in &measure.interfaces {
        page.line("");
        page.add(self::interface(interface, all));
    }
    if let Some(connections) = &measure.connections
        && connections.established > 0
    {
        page.line("");
        page.add(self::connections(connections, all));
    }
    page.line("");
    page.add(cpus(&measure.cpus, all));
    if measure.machine.loopback_packets_per_second > 0.0 {
        let packets = rate(measure.machine.loopback_packets_per_second);
        page.line(format!(
            "loopback's {packets} packets/s are among those of the CPUs"
        ));
    }
    for note in &measure.notes {
        page.add(self::note("", note));
    }
    page.add(machine(&measure.machine, measure.seconds));
    page
}

fn interface(interface: &InterfaceRates, all: bool) -> Page {
    let what = interface
        .driver
        .as_deref()
        .or(interface.kind.as_deref())
        .unwrap_or("(no driver)");
    let node = match (interface.node, &interface.kind) {
        (Some(node), _) => format!("node {node}"),
        (None, Some(_)) => "no node".to_owned(),
        (None, None) => "node unknown".to_owned(),
    };
    let traffic = match &interface.traffic {
        None => "no counters".to_owned(),
        Some(traffic) => {
            let dropped = match (traffic.rx_dropped, traffic.tx_dropped) {
                (0, 0) => "none dropped".to_owned(),
                (rx, tx) => format!("dropped rx {rx} tx {tx}"),
            };
            format!(
                "rx {} {} packets/s, tx {} {} packets/s, {dropped}",
                gbit(traffic.rx_gbit_per_second),
                rate(traffic.rx_packets_per_second),
                gbit(traffic.tx_gbit_per_second),
                rate(traffic.tx_packets_per_second),
            )
        }
    };
    let mut page = Page::default();
    page.item(
        format!("{}  ", interface.name),
        format!("{what}; {node}; {traffic}"),
    );
    if interface.vectors.is_empty() {
        return page;
    }
    let local = match (interface.local, interface.node) {
        (Some(local), Some(node)) => format!(", {} on node {node}", percent(local)),
        _ => String::new(),
    };
    page.line(format!(
        "  {} interrupts/s{local}",
        rate(interface.interrupts_per_second)
    ));
    let shown: Vec<&VectorRates> = interface
        .vectors
        .iter()
        .filter(|vector| all || vector.interrupts > 0)
        .collect();
    if shown.is_empty() {
        return page;
    }
    let mut rows = vec![
        ["queue", "IRQ", "irq/s", "local", "by CPU"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(shown.into_iter().map(vector));
    page.table(2, rows);
    page
}

fn vector(vector: &VectorRates) -> Vec<String> {
    let on: Vec<String> = vector
        .cpus
        .iter()
        .map(|on| format!("{}: {}", on.cpu, rate(on.per_second)))
        .collect();
    vec![
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
        format!("{total}: {near} arrive on the node of their process, {far} on another"),
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
    let head = ["interface", "CPU", "node", "process on", "connections"].map(str::to_owned);
    let most = if all { usize::MAX } else { MOST_CPUS };
    if !connections.arrivals.is_empty() {
        let rows = connections.arrivals.iter().take(most).map(row);
        page.table(2, std::iter::once(head.to_vec()).chain(rows));
    }
    if connections.arrivals.len() > most {
        page.line(format!(
            "+{} less used CPUs, --all",
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
    ("node", |cpu| {
        cpu.node.map_or("-".to_owned(), |node| node.to_string())
    }),
    ("busy", |cpu| percent(cpu.busy)),
    ("soft", |cpu| percent(cpu.softirq)),
    ("irq/s", |cpu| rate(cpu.interrupts_per_second)),
    ("rx/s", |cpu| rate(cpu.net_rx_per_second)),
    ("tx/s", |cpu| rate(cpu.net_tx_per_second)),
    ("pkt/s", |cpu| rate(cpu.packets_per_second)),
    ("rps/s", |cpu| rate(cpu.rps_per_second)),
    ("dropped", |cpu| cpu.dropped.to_string()),
    ("squeeze", |cpu| cpu.squeezed.to_string()),
];

fn cpus(cpus: &[CpuRates], all: bool) -> Page {
    let mut page = Page::default();
    let work = |cpu: &CpuRates| cpu.interrupts_per_second + cpu.packets_per_second;
    let mut shown: Vec<&CpuRates> = cpus.iter().filter(|cpu| all || work(cpu) > 0.0).collect();
    let mut hidden = 0;
    if !all && shown.len() > MOST_CPUS {
        shown.sort_by(|a, b| work(b).total_cmp(&work(a)));
        hidden = shown.len() - MOST_CPUS;
        shown.truncate(MOST_CPUS);
        shown.sort_by_key(|cpu| cpu.cpu);
    }
    if shown.is_empty() {
        page.line("no CPU took interrupts or packets");
        return page;
    }
    let mut rows = vec![COLUMNS.map(|(head, _)| head.to_owned()).to_vec()];
    rows.extend(
        shown
            .into_iter()
            .map(|cpu| COLUMNS.map(|(_, cell)| cell(cpu)).to_vec()),
    );
    let legend = "soft: time in interrupts and softirqs; rx, tx: NET_RX and NET_TX softirqs; pkt: packets taken; rps: wakeups \
                  by RPS; dropped: packets, because the backlog was full; squeeze: polls that ended with work left";
    page.table(0, rows);
    page.item("", legend);
    if hidden > 0 {
        page.line(format!("+{hidden} less busy CPUs, --all"));
    }
    page
}

fn machine(machine: &MachineRates, seconds: f64) -> Page {
    let cpus = |cpu_seconds: f64| {
        if seconds > 0.0 {
            cpu_seconds / seconds
        } else {
            0.0
        }
    };
    let mut text = format!(
        "{} in total; {:.2} CPUs busy, {:.2} of them in interrupts and softirqs",
        gbit(machine.gbit_per_second),
        cpus(machine.busy_cpu_seconds),
        cpus(machine.softirq_cpu_seconds)
    );
    let mut per = |value: Option<f64>, what: &str| {
        if let Some(value) = value {
            text.push_str(&format!("; {value:.2} Gbit per {what}"));
        }
    };
    per(machine.gbit_per_busy_cpu_second, "CPU second");
    per(machine.gbit_per_softirq_cpu_second, "softirq CPU second");
    text.push_str(&format!(
        "; dropped {}, squeezed {}",
        machine.dropped, machine.squeezed
    ));
    let mut page = Page::default();
    page.item("machine  ", text);
    page
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
