//! The report about a fleet as text. Lists of hosts are folded as clush and nodeset take them.

use itertools::Itertools as _;

use crate::fleet::fold::fold;
use crate::fleet::{Class, Deviation, Fleet, Shape};
use crate::screen::{count, differ, enclose, few, group_sorted, one_or, text_if, text_or};

/// `all`: also the hosts of each class and plan that do not deviate.
pub fn fleet(fleet: &Fleet<'_>, all: bool) -> String {
    let is_alone = fleet.drift.is_empty() && fleet.not_judged.is_empty();
    let mut out = headline(fleet) + text_if(!is_alone, "\n");
    for drift in &fleet.drift {
        // A plan has no state.
        let of_plan = match drift.cause.reason {
            "could-not-be-determined" => "unknown",
            _ => "differs",
        };
        out += &format!(
            "{}: {}, {}{}\n{}",
            drift.state.map_or(of_plan, |state| state.name()),
            hosts(drift.count),
            drift.cause.reason,
            enclose(" (", [drift.cause.by.join(", ")], ")"),
            list(&drift.hosts, all)
        );
    }
    for group in &fleet.not_judged {
        let names = few(", ", group.interfaces, all);
        let (count, hosts) = (hosts(group.count), list(&group.hosts, all));
        out += &format!("cannot be judged: {count}, {names}\n{hosts}");
    }
    for class in &fleet.classes {
        out += &class_text(class, all);
    }
    if !fleet.repeated.is_empty() {
        let (hosts, names) = (hosts(fleet.repeated.len()), list(&fleet.repeated, all));
        out += &format!("\nread more than once: {hosts}\n{names}");
    }
    out
}

fn headline(fleet: &Fleet<'_>) -> String {
    let plans: usize = fleet.classes.iter().map(|class| class.plans.len()).sum();
    let differ = differ(fleet.differ).to_owned() + " from the plan";
    let not_judged = fleet.not_judged.iter();
    let not_judged = not_judged.map(|group| group.interfaces.len() * group.count);
    let not_judged = not_judged.sum();
    let s = one_or(not_judged, "", "s");
    let interfaces = format!("interface{s} cannot be judged");
    let parts = [
        (fleet.differ, &*differ),
        (fleet.undetermined, "could not be determined"),
        (not_judged, &interfaces),
        (fleet.failed.len(), "could not be read"),
    ]
    .into_iter()
    .filter(|(many, _)| *many > 0)
    .map(|(many, what)| format!("; {} {what}", thousands(many)));
    let classes = fleet.classes.len();
    let classes = thousands(classes) + one_or(classes, " class", " classes");
    format!(
        "{}, {classes}, {}: {} as planned{}\n",
        hosts(fleet.hosts),
        count(plans, "plan"),
        thousands(fleet.planned),
        parts.collect::<String>()
    )
}

fn class_text(class: &Class<'_>, all: bool) -> String {
    let mut out = format!(
        "\nclass {}: {}, {}\n",
        class.class,
        hosts(class.count),
        describe_machine(class.machine)
    );
    if let Some(like) = class.like {
        let unlike = texts(
            &class.deviations,
            "other caches, distances, mask width or numbers of IRQs",
        );
        out += &format!("  unlike class {like}: {unlike}\n");
    }
    for (at, plan) in class.plans.iter().enumerate() {
        if class.plans.len() > 1 {
            let why = texts(&plan.deviations, "other planned settings");
            let unlike = format!(", unlike the first: {why}");
            let (hosts, unlike) = (hosts(plan.count), text_if(at > 0, &unlike));
            out += &format!("  plan {}: {hosts}{unlike}\n", plan.hash);
        }
        if all || at > 0 || class.like.is_some() || class.count == 1 {
            out += &list(&plan.hosts, all);
        }
    }
    out
}

fn texts(deviations: &[Deviation], other: &str) -> String {
    text_or(
        [deviations
            .iter()
            .map(|deviation| &deviation.text)
            .join("; ")],
        other,
    )
}

const MOST_DRIVERS: usize = 8;

fn describe_machine(shape: &Shape) -> String {
    let host = &shape.host;
    let drivers = shape
        .interfaces
        .iter()
        .map(|interface| interface.driver.as_deref());
    let drivers = group_sorted(drivers.map(|driver| (driver.unwrap_or("unknown"), ())));
    let more = drivers.len().saturating_sub(MOST_DRIVERS);
    let mut drivers = drivers
        .iter()
        .take(MOST_DRIVERS)
        .map(|(driver, cards)| format!("{} {driver}", cards.len()))
        .chain((more > 0).then(|| format!("{more} more")));
    format!(
        "{}, {}, {}; {}",
        count(host.online.len(), "CPU"),
        count(host.cores, "core"),
        count(host.nodes.len(), "node"),
        drivers.join(", ")
    )
}

fn hosts(many: usize) -> String {
    thousands(many) + one_or(many, " host", " hosts")
}

/// Characters of a list without `all`.
const LONGEST_LIST: usize = 800;

/// Of a long list it prints a part, and how many names are left out.
fn list(names: &[&str], all: bool) -> String {
    let whole = fold(names).join(",");
    if all || whole.len() <= LONGEST_LIST {
        return format!("    {whole}\n");
    }
    // The printed part must be a list that nodeset takes.
    let (mut most, mut few) = (names.len(), whole);
    while few.len() > LONGEST_LIST && most > 1 {
        most /= 2;
        few = fold(&names[..most]).join(",");
    }
    let others = thousands(names.len() - most);
    format!("    {few}\n    and {others} others: nicpin fleet -v\n")
}

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
