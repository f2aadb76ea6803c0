//! Where flows arrive, as text.

use itertools::Itertools as _;

use crate::screen::page::{LEFT, Page};
use crate::screen::{
    count, count_if_any, enclose, join_nonempty, one_or, text_if, text_or, with_prefix,
};
use nicpin::flow::Arrival;
use nicpin::report::flow::{Flows, Ports};

pub fn flows(flows: &Flows) -> Page {
    let mut page = Page::default();
    if !flows.ports.is_empty() {
        flows.ports.iter().for_each(|found| page.text(ports(found)));
        return page;
    }
    let named = flows.interfaces.len() > 1;
    // Each flow is listed once for each interface.
    let total = flows.arrivals.len() / flows.interfaces.len().max(1);
    if total == 1 && flows.local == 0 {
        for arrival in &flows.arrivals {
            let name = text_if(named, &arrival.interface);
            page.line(join_nonempty(": ", [name, &place(arrival)]));
        }
    } else {
        spread(flows, total, &mut page);
    }
    if flows.bonded {
        page.line(
            "Which of these ports a packet arrives on is the sender's choice, or the switch's.",
        );
    }
    page
}

/// Says, for example, `queue 3, IRQ 74, CPU 9 (node 1, cache of 8-11); then RPS: CPU 10`.
fn place(arrival: &Arrival) -> String {
    let taken = join_nonempty(
        ", ",
        [
            &with_prefix("ntuple filter ", arrival.filter),
            &with_prefix("queue ", arrival.queue),
            &with_prefix("IRQ ", arrival.irq),
            &with_prefix("CPU ", arrival.irq_cpu),
        ],
    );
    let around = join_nonempty(
        ", ",
        [
            &with_prefix("node ", arrival.node),
            &with_prefix("cache of ", [&arrival.l3]),
        ],
    );
    let then = match (arrival.cpu, arrival.rps_cpu) {
        (Some(_), Some(rps)) => format!("; then RPS: CPU {rps}"),
        (Some(cpu), None) if arrival.irq_cpu != Some(cpu) => {
            format!("; then the NAPI thread: CPU {cpu}")
        }
        _ => String::new(),
    };
    let known = taken + &then + &enclose(" (", [around], ")");
    join_nonempty(
        "; then ",
        [&known, &with_prefix("unknown: ", &arrival.missing)],
    )
}

fn spread(flows: &Flows, total: usize, page: &mut Page) {
    let (total, arrivals) = (count(total, "flow"), flows.arrivals.iter());
    page.line(match flows.spread.first() {
        Some(most) => format!(
            "{} of {total} {} on CPU {}, queue {} of {}.",
            most.flows,
            one_or(most.flows, "arrives", "arrive"),
            most.cpu,
            most.queue,
            most.interface
        ),
        None => format!("{total}: none of their CPUs is known."),
    });
    let unknown = arrivals
        .clone()
        .filter(|arrival| arrival.missing.is_some())
        .count();
    page.text(count_if_any(unknown, "arrival", " unknown: see below."));
    let itself = " of this machine with itself left out.";
    page.text(count_if_any(flows.local, "connection", itself));
    let heads = ["INTERFACE", "QUEUE", "IRQ", "CPU", "NODE", "FLOWS"];
    let shares = flows.spread.iter().map(|share| {
        [
            share.interface.clone(),
            share.queue.to_string(),
            share.irq.to_string(),
            share.cpu.to_string(),
            text_or(share.node, "-"),
            share.flows.to_string(),
        ]
    });
    page.columns(0, LEFT, heads, shares);
    let heads = [
        "PROTOCOL",
        "SOURCE",
        "DESTINATION",
        "INTERFACE",
        "QUEUE",
        "CPU",
        "",
    ];
    let each = arrivals.map(|arrival| {
        [
            format!("{:?}", arrival.flow.protocol).to_ascii_lowercase(),
            arrival.flow.source.to_string(),
            arrival.flow.destination.to_string(),
            arrival.interface.clone(),
            text_or(arrival.queue, "-"),
            text_or(arrival.cpu, "-"),
            text_or(&arrival.missing, ""),
        ]
    });
    page.columns(0, LEFT, heads, each);
}

fn ports(found: &Ports) -> String {
    let Ports {
        interface,
        cpu,
        ports,
        missing,
    } = found;
    let ports = ports.iter().join(", ");
    match missing {
        Some(missing) => format!("{interface}: unknown: {missing}"),
        None if ports.is_empty() => format!("{interface}: no source port arrives on CPU {cpu}"),
        None => format!("{interface}: source ports that arrive on CPU {cpu}: {ports}"),
    }
}
