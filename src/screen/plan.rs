//! A plan as text: a line for each run of queues whose CPUs follow one pattern, or for each queue.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use serde::Serialize;

use crate::screen::page::{LEFT, Page, Screen};
use crate::screen::placement::PlanDetail::{Queues, Reasons, Runs};
use crate::screen::placement::{lines, pending};
use crate::screen::{
    Given, count, enclose, heading, moves_later, text_or, value_change, with_prefix,
};
use nicpin::cpuset::Inserted as _;
use nicpin::plan::NodeSource::{LocalCpulist, Nearest, NumaNode, Policy, SingleNode, Unknown};
use nicpin::plan::{ChannelChange, LeftOut, Plan, PlannedInterface};
use nicpin::report::difference::MeasureChange;

pub use crate::screen::placement::PlanDetail;

/// `needless`: IRQs that the plan moves without a gain. `masks`: also each file with its current and planned mask.
pub fn plan(
    plan: &Plan,
    (changes, needless): (&[MeasureChange], usize),
    detail: PlanDetail,
    masks: bool,
    given: &Given,
) -> Page {
    let mut page = Page::of(given, detail != Runs);
    let would_change = plan.writes.len() + plan.channels.len();
    let all = count(would_change + plan.unchanged, "setting");
    page.text(match would_change {
        0 if plan.unchanged == 0 => "There is no setting to plan.".into(),
        0 => format!("{all} as planned; none would change.") + &moves_later(pending(plan)),
        _ => format!(
            "{would_change} of {all} would change{}. Apply: {}",
            gains_nothing(needless),
            given.apply()
        ),
    });
    for ChannelChange { command, why, .. } in &plan.channels {
        page.item("Channels: ", format!("{command}: {why}"));
    }
    if !plan.channels.is_empty() {
        page.line("The rest is planned again for the new queues.");
    }
    for interface in &plan.interfaces {
        page.line("");
        add_interface(&mut page, plan, interface, detail);
    }
    page.line("");
    let writes = plan.writes.iter();
    if masks && !plan.writes.is_empty() {
        page.table(
            0,
            LEFT,
            writes
                .clone()
                .map(|write| value_change(write.shown(), &write.current, &write.value)),
        );
        page.line("");
    }
    for write in writes.filter(|write| write.interface.is_empty()) {
        let [file, change] = value_change(write.shown(), &write.current, &write.value);
        page.text(format!("{file}: {change} ({}).", write.why));
    }
    if would_change > 0 {
        page.gain(&plan.score_now, &plan.score, &Vec::from_iter(changes));
    }
    let of_interfaces = plan
        .interfaces
        .iter()
        .map(|interface| (&*interface.name, &*interface.notes));
    page.notes(of_interfaces.chain([("", &*plan.notes)]));
    let [each, reasons] = [
        ("; each queue: ", "nicpin plan -v"),
        ("; the reasons: ", "nicpin plan --explain"),
    ]
    .map(|(what, command)| what.to_owned() + &given.whole(command));
    let more = match detail {
        // `nicpin plan` takes no stored plan.
        _ if given.has("--plan") => String::new(),
        Runs => each + &reasons,
        Queues => reasons,
        Reasons => String::new(),
    };
    page.text(format!("Plan {}{more}", plan.hash));
    page
}

pub(super) fn gains_nothing(needless: usize) -> String {
    let irqs = (needless > 0).then(|| count(needless, "IRQ"));
    enclose("; moving ", irqs, " gains nothing (see --gain)")
}

#[derive(Serialize)]
pub struct PlanDocument<'a> {
    #[serde(flatten)]
    pub plan: &'a Plan,
    pub gains: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation<'a>>,
}

pub type Explanation<'a> = BTreeMap<&'a str, Vec<String>>;

pub fn explanation(plan: &Plan) -> Explanation<'_> {
    plan.interfaces
        .iter()
        .map(|interface| {
            let mut page = Page::default();
            add_interface(&mut page, plan, interface, Reasons);
            let text = page.show(Screen::UNBROKEN);
            (
                &*interface.name,
                text.lines()
                    .map(|line| line.split_whitespace().join(" "))
                    .collect(),
            )
        })
        .inserted()
}

fn add_interface(page: &mut Page, plan: &Plan, interface: &PlannedInterface, detail: PlanDetail) {
    let device = interface.device.clone() + &enclose(" (VF of ", &interface.parent, ")");
    let head = heading(
        &plan.host,
        (&interface.name, interface.driver.as_deref(), &device),
        interface.speed_mbps,
        (interface.node, interface.node_source),
        (&interface.candidates, interface.candidate_cores),
    );
    let link = with_prefix(
        "; link ",
        Some(&interface.link).filter(|link| *link != "up" && interface.name != interface.device),
    );
    let via = with_prefix("; via ", Some(interface.via.join(", ")));
    let rules = with_prefix("; by rule ", Some(interface.rules.iter().join(", ")));
    page.text(head + &link + &via + &rules);
    if detail == Reasons {
        page.item("  ", format!("node {}", node(interface)));
        for LeftOut { cpus, why } in &interface.left_out {
            page.item("  ", format!("CPUs {} left out: {why}", cpus.short()));
        }
    }
    page.table(2, LEFT, lines(plan, interface, detail));
}

fn node(interface: &PlannedInterface) -> String {
    let (device, node) = (&interface.device, text_or(interface.node, "unknown"));
    match interface.node_source {
        NumaNode => format!("{node}: numa_node of {device}"),
        LocalCpulist if interface.node.is_some() => {
            format!(
                "{node}: it has all CPUs of local_cpulist of {device}, whose numa_node is not set"
            )
        }
        LocalCpulist => format!("{node}; local_cpulist of {device} names the local CPUs"),
        Nearest => format!("{node}: nearest to the node of {device}, which has no usable CPU"),
        SingleNode => format!("{node}: it has all CPUs"),
        Policy => format!("{node}: it has all CPUs that the policy names"),
        Unknown => format!(
            "unknown: numa_node of {device} is no node of this machine, and local_cpulist is all CPUs"
        ),
    }
}
