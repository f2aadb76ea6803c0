//! Where flows arrive, as text.

use nicpin::flow::Arrival;
use nicpin::report::flow::{Flows, Ports, Share};

use crate::screen::page::Page;
use crate::screen::text::count;

/// One flow is a sentence; several are a table of how they spread, and then each of them.
pub fn flows(flows: &Flows) -> Page {
    let mut page = Page::default();
    if !flows.ports.is_empty() {
        flows
            .ports
            .iter()
            .for_each(|found| page.item("", ports(found)));
        return page;
    }
    let named = flows.interfaces.len() > 1;
    let is_one = flows.arrivals.len() == flows.interfaces.len().max(1);
    if is_one && flows.local == 0 {
        for arrival in &flows.arrivals {
            let name = if named {
                format!("{}: ", arrival.interface)
            } else {
                String::new()
            };
            page.line(format!("{name}{}", place(arrival)));
        }
    } else {
        spread(flows, &mut page);
    }
    if named {
        page.line(
            "Which of these ports a packet arrives on is the sender's choice, or the switch's.",
        );
    }
    page
}

/// `queue 3, IRQ 74, CPU 9 (node 1, L3 of 8-11); then RPS: CPU 10`.
fn place(arrival: &Arrival) -> String {
    let mut parts = Vec::new();
    if let Some(filter) = arrival.filter {
        parts.push(format!("ntuple filter {filter}"));
    }
    parts.extend(arrival.queue.map(|queue| format!("queue {queue}")));
    parts.extend(arrival.irq.map(|irq| format!("IRQ {irq}")));
    parts.extend(arrival.irq_cpu.map(|cpu| format!("CPU {cpu}")));
    let mut out = parts.join(", ");
    let where_ = around(arrival);
    match (arrival.cpu, arrival.rps_cpu) {
        (Some(_), Some(rps)) => out.push_str(&format!("; then RPS: CPU {rps}{where_}")),
        (Some(cpu), None) if arrival.irq_cpu != Some(cpu) => {
            out.push_str(&format!("; then the NAPI thread: CPU {cpu}{where_}"));
        }
        _ => out.push_str(&where_),
    }
    if let Some(missing) = &arrival.missing {
        let before = if out.is_empty() {
            "unknown"
        } else {
            "; then unknown"
        };
        out.push_str(&format!("{before}: {missing}"));
    }
    out
}

/// ` (node 1, L3 of 8-11)`.
fn around(arrival: &Arrival) -> String {
    let node = arrival.node.map(|node| format!("node {node}"));
    let l3 = (!arrival.l3.is_empty()).then(|| format!("L3 of {}", arrival.l3));
    let both: Vec<String> = node.into_iter().chain(l3).collect();
    if both.is_empty() {
        String::new()
    } else {
        format!(" ({})", both.join(", "))
    }
}

fn spread(flows: &Flows, page: &mut Page) {
    let total = flows.arrivals.len();
    let unknown = flows
        .arrivals
        .iter()
        .filter(|arrival| arrival.missing.is_some())
        .count();
    page.line(match flows.spread.first() {
        Some(most) => format!(
            "{} of {} arrive on CPU {}, queue {} of {}.",
            most.flows,
            count(total, "flow"),
            most.cpu,
            most.queue,
            most.interface
        ),
        None => format!("{}: none of their CPUs is known.", count(total, "flow")),
    });
    if unknown > 0 {
        page.line(format!("{} unknown: see below.", count(unknown, "arrival")));
    }
    if flows.local > 0 {
        page.line(format!(
            "{} of this machine with itself left out.",
            count(flows.local, "connection")
        ));
    }
    let row = |cells: [&str; 6]| cells.map(str::to_owned).to_vec();
    page.line("");
    let head = row(["INTERFACE", "QUEUE", "IRQ", "CPU", "NODE", "FLOWS"]);
    let shares = flows.spread.iter().map(share);
    page.table(0, std::iter::once(head).chain(shares));
    page.line("");
    let head = row(["PROTOCOL", "SOURCE", "DESTINATION", "QUEUE", "CPU", ""]);
    page.table(
        0,
        std::iter::once(head).chain(flows.arrivals.iter().map(each)),
    );
}

fn share(share: &Share) -> Vec<String> {
    vec![
        share.interface.clone(),
        share.queue.to_string(),
        share.irq.to_string(),
        share.cpu.to_string(),
        or_dash(share.node),
        share.flows.to_string(),
    ]
}

fn each(arrival: &Arrival) -> Vec<String> {
    let flow = &arrival.flow;
    vec![
        format!("{:?}", flow.protocol).to_ascii_lowercase(),
        flow.source.to_string(),
        flow.destination.to_string(),
        or_dash(arrival.queue),
        or_dash(arrival.cpu),
        arrival
            .missing
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
    ]
}

fn or_dash(number: Option<u32>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

fn ports(found: &Ports) -> String {
    let Ports {
        interface,
        cpu,
        ports,
        missing,
    } = found;
    if let Some(missing) = missing {
        return format!("{interface}: unknown: {missing}");
    }
    if ports.is_empty() {
        return format!("{interface}: no source port arrives on CPU {cpu}");
    }
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    format!(
        "{interface}: source ports that arrive on CPU {cpu}: {}",
        ports.join(", ")
    )
}
