//! The report about a fleet as text. Lists of hosts are not folded, so that other programs take them.

use itertools::Itertools as _;

use crate::fleet::{Class, Deviation, Fleet, Shape};
use crate::screen::{bracketed, count, sorted, when};

/// `all`: also the hosts of each class and plan that are not odd.
pub fn fleet(fleet: &Fleet<'_>, all: bool) -> String {
    let mut out = headline(fleet) + when(!fleet.drift.is_empty(), "\n");
    for drift in &fleet.drift {
        let state = drift.state.map_or("differs", |state| state.name());
        let (hosts, reason) = (hosts(drift.count), drift.cause.reason);
        let (by, names) = (bracketed(&drift.cause.by.join(", ")), list(&drift.hosts));
        out += &format!("{state}: {hosts}, {reason}{by}\n{names}");
    }
    for class in &fleet.classes {
        out += &of_class(class, all);
    }
    if !fleet.repeated.is_empty() {
        let (hosts, names) = (hosts(fleet.repeated.len()), list(&fleet.repeated));
        out += &format!("\nread more than once: {hosts}\n{names}");
    }
    out
}

fn headline(fleet: &Fleet<'_>) -> String {
    let plans: usize = fleet.classes.iter().map(|class| class.plans.len()).sum();
    let is_one = fleet.differ == 1;
    let parts = [
        (
            fleet.differ,
            if is_one {
                "differs from the plan"
            } else {
                "differ from the plan"
            },
        ),
        (fleet.undetermined, "could not be determined"),
        (fleet.failed.len(), "could not be read"),
    ];
    let parts = parts.iter().filter(|(many, _)| *many > 0);
    let parts = parts.map(|(many, what)| format!("; {} {what}", thousands(*many)));
    let classes = match fleet.classes.len() {
        1 => "1 class".to_owned(),
        classes => thousands(classes) + " classes",
    };
    let (hosts, planned) = (hosts(fleet.hosts), thousands(fleet.planned));
    let (plans, parts) = (count(plans, "plan"), parts.collect::<String>());
    format!("{hosts}, {classes}, {plans}: {planned} as planned{parts}\n")
}

fn of_class(class: &Class<'_>, all: bool) -> String {
    let (hosts, machine) = (hosts(class.count), machine(class.machine));
    let mut out = format!("\nclass {}: {hosts}, {machine}\n", class.class);
    if let Some(like) = class.like {
        let unlike = texts(&class.deviations, "other caches, distances or mask width");
        out += &format!("  unlike class {like}: {unlike}\n");
    }
    for (at, plan) in class.plans.iter().enumerate() {
        if class.plans.len() > 1 {
            let why = texts(&plan.deviations, "other CPUs or queues by the policy");
            let unlike = format!(", unlike the first: {why}");
            let (hash, hosts) = (&plan.hash, self::hosts(plan.count));
            out += &format!("  plan {hash}: {hosts}{}\n", when(at > 0, &unlike));
        }
        if all || at > 0 || class.like.is_some() || class.count == 1 {
            out += &list(&plan.hosts);
        }
    }
    out
}

/// How machines differ, `other` if nothing of what is compared does.
fn texts(deviations: &[Deviation], other: &str) -> String {
    match deviations {
        [] => other.to_owned(),
        deviations => deviations.iter().map(|one| &one.text).join("; "),
    }
}

/// The most drivers that a machine is described by.
const MOST_DRIVERS: usize = 8;

/// `64 CPUs, 32 cores, 2 nodes; 1 igb, 2 mlx5_core`.
fn machine(shape: &Shape) -> String {
    let host = &shape.host;
    let drivers = shape.interfaces.iter().map(|of| of.driver.as_deref());
    let drivers = sorted(drivers.map(|driver| (driver.unwrap_or("unknown"), ())));
    let more = drivers.len().saturating_sub(MOST_DRIVERS);
    let mut drivers = drivers
        .iter()
        .take(MOST_DRIVERS)
        .map(|(driver, of)| format!("{} {driver}", of.len()))
        .chain((more > 0).then(|| format!("{more} more")));
    let (cpus, cores) = (count(host.online.len(), "CPU"), count(host.cores, "core"));
    let (nodes, drivers) = (count(host.nodes.len(), "node"), drivers.join(", "));
    format!("{cpus}, {cores}, {nodes}; {drivers}")
}

fn hosts(many: usize) -> String {
    thousands(many) + if many == 1 { " host" } else { " hosts" }
}

/// Names in one line, as nodeset takes them.
fn list(names: &[&str]) -> String {
    format!("    {}\n", names.join(","))
}

/// 10,000.
fn thousands(number: usize) -> String {
    number
        .to_string()
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(String::from_utf8_lossy)
        .collect_vec()
        .join(",")
}
