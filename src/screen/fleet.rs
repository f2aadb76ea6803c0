//! The report about a fleet as text. Lists of hosts are not folded, so that other programs take them.

use itertools::Itertools as _;
use std::collections::BTreeMap;

use crate::fleet::report::{Class, Drift, Fleet, PlanGroup};
use crate::fleet::{Deviation, Shape};
use crate::screen::text::count;

/// `all`: also the hosts of each class and plan that are not odd.
pub fn fleet(fleet: &Fleet<'_>, all: bool) -> String {
    let mut out = headline(fleet);
    if !fleet.drift.is_empty() {
        out.push('\n');
    }
    for Drift {
        state,
        cause,
        count,
        hosts,
    } in &fleet.drift
    {
        let state = state.map_or("differs", |state| state.name());
        let by = if cause.by.is_empty() {
            String::new()
        } else {
            format!(" ({})", cause.by.join(", "))
        };
        out.push_str(&format!(
            "{state}: {}, {}{by}\n",
            self::hosts(*count),
            cause.reason
        ));
        out.push_str(&list(hosts));
    }
    for class in &fleet.classes {
        out.push_str(&of_class(class, all));
    }
    if !fleet.repeated.is_empty() {
        out.push_str(&format!(
            "\nread more than once: {}\n",
            hosts(fleet.repeated.len())
        ));
        out.push_str(&list(&fleet.repeated));
    }
    out
}

fn headline(fleet: &Fleet<'_>) -> String {
    let plans: usize = fleet.classes.iter().map(|class| class.plans.len()).sum();
    let mut parts = vec![format!("{} as planned", thousands(fleet.planned))];
    for (many, what) in [
        (
            fleet.differ,
            if fleet.differ == 1 {
                "differs from the plan"
            } else {
                "differ from the plan"
            },
        ),
        (fleet.undetermined, "could not be determined"),
        (fleet.failed.len(), "could not be read"),
    ] {
        if many > 0 {
            parts.push(format!("{} {what}", thousands(many)));
        }
    }
    let classes = match fleet.classes.len() {
        1 => "1 class".to_owned(),
        classes => format!("{} classes", thousands(classes)),
    };
    format!(
        "{}, {classes}, {}: {}\n",
        hosts(fleet.hosts),
        count(plans, "plan"),
        parts.join("; ")
    )
}

fn of_class(class: &Class<'_>, all: bool) -> String {
    let mut out = format!(
        "\nclass {}: {}, {}\n",
        class.class,
        hosts(class.count),
        machine(class.machine)
    );
    if let Some(like) = class.like {
        out.push_str(&format!(
            "  unlike class {like}: {}\n",
            texts(&class.deviations)
        ));
    }
    for (
        at,
        PlanGroup {
            hash,
            count,
            deviations,
            hosts,
        },
    ) in class.plans.iter().enumerate()
    {
        if class.plans.len() > 1 {
            let unlike = match (at, deviations.as_slice()) {
                (0, _) => String::new(),
                (_, []) => ", unlike the first: other CPUs or queues by the policy".to_owned(),
                (_, deviations) => format!(", unlike the first: {}", texts(deviations)),
            };
            out.push_str(&format!("  plan {hash}: {}{unlike}\n", self::hosts(*count)));
        }
        if all || at > 0 || class.like.is_some() || class.count == 1 {
            out.push_str(&list(hosts));
        }
    }
    out
}

fn texts(deviations: &[Deviation]) -> String {
    match deviations {
        [] => "other caches, distances or mask width".to_owned(),
        deviations => deviations.iter().map(|one| one.text.as_str()).join("; "),
    }
}

/// The most drivers that a machine is described by.
const MOST_DRIVERS: usize = 8;

/// `64 CPUs, 32 cores, 2 nodes; 1 igb, 2 mlx5_core`.
fn machine(shape: &Shape) -> String {
    let host = &shape.host;
    let mut drivers: BTreeMap<&str, usize> = BTreeMap::new();
    for interface in &shape.interfaces {
        let driver = interface.driver.as_deref().unwrap_or("unknown");
        *drivers.entry(driver).or_default() += 1;
    }
    let more = drivers.len().saturating_sub(MOST_DRIVERS);
    let mut drivers: Vec<String> = drivers
        .iter()
        .take(MOST_DRIVERS)
        .map(|(driver, many)| format!("{many} {driver}"))
        .collect();
    drivers.extend((more > 0).then(|| format!("{more} more")));
    let (cpus, cores) = (count(host.online.len(), "CPU"), count(host.cores, "core"));
    format!(
        "{cpus}, {cores}, {}; {}",
        count(host.nodes.len(), "node"),
        drivers.join(", ")
    )
}

fn hosts(many: usize) -> String {
    format!(
        "{} {}",
        thousands(many),
        if many == 1 { "host" } else { "hosts" }
    )
}

/// Names in one line, as nodeset takes them.
fn list(names: &[&str]) -> String {
    format!("    {}\n", names.join(","))
}

/// 10,000.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}
