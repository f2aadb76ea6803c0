//! The parts of notes' texts that are more than a format.

use std::fmt::{self, Formatter};

use crate::cpuset::CpuSet;
use crate::machine::others::UnusedFunction;
use crate::machine::wording::{count, cpu_list, few};
use crate::machine::{UnknownVector, VmbusChannel};
use crate::plan::note::because::Found;
use crate::policy::Balancer;
use itertools::Itertools as _;

pub(super) const FLAP: &str = "a change takes the link down for a moment";

pub(super) fn cpus_unusable(wanted: &CpuSet, missing: &CpuSet, for_rps: bool) -> String {
    let (list, rps) = (wanted.short(), if for_rps { " for RPS" } else { "" });
    if wanted == missing {
        return format!("none of the policy's CPUs{rps} ({list}) can be used");
    }
    let missing = missing.short();
    format!("the policy names CPUs{rps} that are absent, offline or excluded: {missing} of {list}")
}

pub(super) fn near(
    program: Option<&str>,
    cpus: &CpuSet,
    now: Option<&CpuSet>,
    found: Found,
) -> String {
    let list = cpu_list(cpus);
    let (name, program) = match program {
        Some(program) => (program, format!("{program}, which may use {list}")),
        None => ("a program", list),
    };
    let text = match found {
        Found::There => format!("near {program}"),
        Found::Everywhere => {
            format!(
                "near {program}: these leave out no candidate CPU, so the plan is the same without"
            )
        }
        Found::Nowhere => format!("not near {program}: no candidate CPU is in the same L3 domain"),
        Found::NotRunning => {
            return format!(
                "{name} does not run, or its processes are hidden from this user: planned without it"
            );
        }
        Found::NoProcess => {
            return format!("{name} does not exist, or is hidden from this user");
        }
    };
    match now {
        None => text + "; it does not run now, these are those of an earlier apply",
        Some(now) if now != cpus => format!("{text}; now it may use {}", cpu_list(now)),
        Some(_) => text,
    }
}

#[allow(clippy::ref_option)] // as thiserror passes it
pub(super) fn vectors_unreadable(
    missing: &Option<String>,
    vectors: &[UnknownVector],
    out: &mut Formatter<'_>,
) -> fmt::Result {
    if let Some(missing) = missing {
        return write!(
            out,
            "the IRQs are unknown, because {missing} below this root is absent or empty"
        );
    }
    let begin = "none of its queue IRQs can be read: their files in /proc/irq are absent, for ";
    write_list(begin, vectors, out)
}

pub(super) fn data_vectors(vectors: &[UnknownVector], out: &mut Formatter<'_>) -> fmt::Result {
    let begin = "which queues its IRQs serve is not known; each counts as a queue: ";
    write_list(begin, vectors, out)
}

pub(super) fn unknown_vectors(vectors: &[UnknownVector], out: &mut Formatter<'_>) -> fmt::Result {
    let begin = "IRQs unchanged, because their names are not recognized: ";
    write_list(begin, vectors, out)
}

pub(super) fn vectors_vanished(vectors: &[UnknownVector], out: &mut Formatter<'_>) -> fmt::Result {
    let begin = "IRQs vanished while they were read, or have no files in /proc/irq: ";
    write_list(begin, vectors, out)
}

/// The list is in full in the alternate form.
fn write_list(begin: &str, vectors: &[UnknownVector], out: &mut Formatter<'_>) -> fmt::Result {
    let names = vectors
        .iter()
        .map(|vector| format!("{} ({})", vector.irq, vector.action));
    write!(out, "{begin}{}", few(", ", names, out.alternate()))
}

pub(super) fn sources_disagree(contradictions: &[String], out: &mut Formatter<'_>) -> fmt::Result {
    let some = few("; ", contradictions, out.alternate());
    write!(
        out,
        "netlink and the IRQ names disagree; netlink is used: {some}"
    )
}

pub(super) fn by_controller(controller: Option<&str>) -> String {
    controller.map_or(String::new(), |name| {
        format!(": its packets arrive by {name}")
    })
}

pub(super) fn queues_exceed_cores(
    queues: usize,
    cores: usize,
    advised: Option<u32>,
    unsure: bool,
    fixed: bool,
    by_rss: bool,
) -> String {
    let more = match advised {
        _ if by_rss => {
            ". The RSS table can limit flows to one queue per core, with the link up".to_owned()
        }
        _ if fixed => ". The driver has a fixed number of queues".to_owned(),
        Some(_) => {
            let able = if unsure { ", if the driver can" } else { "" };
            format!("; one queue for each core is enough{able}, and {FLAP}")
        }
        None => ": some cores get several".to_owned(),
    };
    format!("{queues} queues for {}{more}", count(cores, "core"))
}

pub(super) fn not_planned(
    down: &[String],
    functions: &[UnusedFunction],
    out: &mut Formatter<'_>,
) -> fmt::Result {
    let mut parts = Vec::new();
    if !down.is_empty() {
        let down = few(", ", down, out.alternate());
        parts.push(format!("{down} (down, no queue IRQs requested)"));
    }
    let by_driver = functions
        .iter()
        .map(|function| (&function.driver, &function.address))
        .into_group_map();
    for (driver, addresses) in by_driver.into_iter().sorted_unstable() {
        let addresses = few(", ", addresses, out.alternate());
        parts.push(match driver {
            Some(driver) => format!("{addresses} (driver {driver}, no interface here)"),
            None => format!("{addresses} (no driver)"),
        });
    }
    write!(out, "not planned: {}", parts.join(", "))
}

pub(super) fn irqbalance(
    action: Balancer,
    planned: usize,
    left_alone: usize,
    lasts: bool,
) -> String {
    let irqs = count(planned, "planned IRQ");
    match action {
        Balancer::Ban if lasts => format!(
            "its policy script asks nicpin, so that apply's ban of the {irqs} holds across restarts"
        ),
        Balancer::Ban => format!(
            "apply bans the {irqs} until irqbalance restarts; a policy script that asks nicpin makes the ban permanent"
        ),
        Balancer::Stop => format!(
            "it would move the {irqs}: apply stops its service until the next boot, and restore starts it again"
        ),
        Balancer::Ignore if left_alone == planned && planned > 0 => format!(
            "the policy ignores it: an earlier apply banned the {irqs}, until irqbalance restarts or restore runs"
        ),
        Balancer::Ignore if left_alone > 0 => format!(
            "the policy ignores it: an earlier apply banned {left_alone} of the {irqs}, until irqbalance restarts or \
             restore runs; it will move the other {}",
            planned - left_alone
        ),
        Balancer::Ignore => {
            format!("the policy ignores it: it will move the {irqs}, by default every 10 seconds")
        }
        Balancer::Refuse => {
            format!("it would move the {irqs}: apply refuses to write while it runs")
        }
    }
}

pub(super) fn channels(requested: Option<u32>) -> String {
    requested.map_or("one channel per core".to_owned(), |requested| {
        count(requested as usize, "channel")
    })
}

pub(super) fn vmbus(
    controller: Option<&str>,
    channels: &[VmbusChannel],
    below: &[String],
) -> String {
    let irqs = controller.map_or("have no IRQs".to_owned(), |name| {
        format!("have no IRQs of their own but {name} of each CPU")
    });
    let mut list = channels
        .iter()
        .map(|channel| format!("{} -> {}", channel.id, channel.cpu));
    let list = match channels {
        [] => "unknown".to_owned(),
        _ => list.join(", "),
    };
    let (on, to_move) = match below {
        [] => (
            String::new(),
            ". To move a channel, write a CPU number to its `cpu` file",
        ),
        _ => (
            format!("on {} while it is there, else ", below.join(", ")),
            "",
        ),
    };
    format!(
        "packets arrive {on}by Hyper-V's VMBus channels, which {irqs}; nicpin does not move them. Channel -> CPU: {list}{to_move}"
    )
}

/// Returns ` (pids 12, 13)`, or nothing.
pub(super) fn processes(pids: &[u32]) -> String {
    match pids {
        [] => String::new(),
        [pid] => format!(" (pid {pid})"),
        pids => format!(" (pids {})", pids.iter().join(", ")),
    }
}
