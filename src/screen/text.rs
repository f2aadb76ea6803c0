//! What all screens have in common: numbers, CPUs and queues in words, notes, and what a plan gains.

use itertools::Itertools as _;
use std::collections::BTreeMap;

use crate::screen::page::Page;
use nicpin::cpuset::CpuSet;
use nicpin::machine::Role;
use nicpin::machine::wording::word;
pub(crate) use nicpin::machine::wording::{count, speed};
use nicpin::plan::note::advice::Advice;
use nicpin::plan::{HostSummary, MEASURES, NodeSource, Note, Score, WriteKind};

/// CPUs for people: a whole node or the whole machine by its name, otherwise a short list.
pub(crate) fn cpus(host: &HostSummary, cpus: &CpuSet) -> String {
    let node = host
        .nodes
        .iter()
        .find(|node| node.cpus == *cpus)
        .filter(|_| host.nodes.len() > 1);
    match (cpus.len(), node) {
        (0, _) => "none".to_owned(),
        (1, _) => cpus.to_string(),
        (_, Some(node)) => format!("all of node {}", node.node),
        _ if host.online.is_subset(cpus) => "all CPUs".to_owned(),
        _ => cpus.short(),
    }
}

/// The queue of a vector: `3`, `rx 3`, `tx 3`, `rdma 3`; its role where it has none.
pub(crate) fn queue(role: Role, queue: Option<u32>) -> String {
    let role = match role {
        Role::Combined => "",
        Role::Rx => "rx",
        Role::Tx => "tx",
        Role::Rdma => "rdma",
        Role::Control => "control",
    };
    let queue = queue.map(|queue| queue.to_string()).unwrap_or_default();
    format!("{role} {queue}").trim().to_owned()
}

/// An interface, its device and its node, as the head of what is said about it.
pub(crate) fn heading(
    host: &HostSummary,
    (name, driver, device): (&str, Option<&str>, &str),
    mbps: Option<u32>,
    (node, source): (Option<u32>, NodeSource),
    (candidates, cores): (&CpuSet, usize),
) -> String {
    let speed = mbps.map_or(String::new(), |mbps| format!(", {}", speed(mbps)));
    let by = match source {
        NodeSource::NumaNode | NodeSource::Unknown => "",
        NodeSource::SingleNode => " (the only one)",
        NodeSource::Nearest => " (the nearest)",
        NodeSource::LocalCpulist => " (by local_cpulist)",
        NodeSource::Policy => " (by the policy)",
    };
    let of_node = host.nodes.iter().find(|one| Some(one.node) == node);
    let are_there = of_node.is_none_or(|one| candidates.is_subset(&one.cpus));
    let colon = if are_there { ":" } else { "; IRQs to" };
    let node = node.map_or("unknown".to_owned(), |node| node.to_string());
    let driver = driver.unwrap_or("(no driver)");
    let cpus = candidates.short();
    let cores = count(cores, "core");
    format!("{name}  {driver} {device}{speed}, node {node}{by}{colon} CPUs {cpus} ({cores})")
}

/// Settings by kind: `6 IRQs, 4 XPS`.
pub(crate) fn kinds(counts: &BTreeMap<WriteKind, usize>, channels: bool) -> String {
    let kinds = counts.iter().map(|(kind, &many)| match kind {
        WriteKind::Vector => count(many, "IRQ"),
        WriteKind::NapiThread => count(many, "thread"),
        WriteKind::Rps => format!("{many} RPS"),
        WriteKind::RpsFlow => format!("{many} RFS"),
        WriteKind::Xps => format!("{many} XPS"),
        WriteKind::XpsRxqs => format!("{many} XPS by queue"),
        WriteKind::Rss => "RSS".to_owned(),
        WriteKind::Sysctl => "flow table".to_owned(),
        WriteKind::Ntuple => "ntuple".to_owned(),
    });
    let channels = channels.then(|| "channels".to_owned());
    kinds.chain(channels).join(", ")
}

/// Every measure that a plan changes: those of the objective in its order, then others. Empty if there is none.
pub(crate) fn gain(now: &Score, planned: &Score) -> String {
    let percent = |score: &Score| Some(format!("{:.0}%", (score.local? * 100.0).floor()));
    let is_less_local = planned.local < now.local;
    let mut rows = vec![("local queues", [now, planned].map(percent), is_less_local)];
    let mut add = |what, is_more_better: bool, of: &dyn Fn(&Score) -> Option<u64>| {
        let [before, after] = [now, planned].map(of);
        let is_worse = if is_more_better {
            after < before
        } else {
            after > before
        };
        rows.push((
            what,
            [before, after].map(|of| of.map(|of| of.to_string())),
            is_worse,
        ));
    };
    for measure in &MEASURES {
        add(measure.what, false, &|score| {
            Some((measure.of)(score) / measure.unit)
        });
    }
    add("IRQs on isolated CPUs", false, &|score| {
        Some(score.on_isolated as u64)
    });
    add("local RDMA IRQs", true, &|score| {
        Some(score.rdma.as_ref()?.local as u64)
    });
    add("RDMA IRQs on the busiest core", false, &|score| {
        Some(score.rdma.as_ref()?.max_per_core as u64)
    });
    let mut changes = rows
        .into_iter()
        .filter_map(|(what, [now, planned], is_worse)| {
            let (now, planned) = now.zip(planned).filter(|(now, planned)| now != planned)?;
            let worse = if is_worse { " (worse)" } else { "" };
            Some(format!("{what} {now}\u{a0}->\u{a0}{planned}{worse}"))
        });
    changes.join(", ")
}

/// A sentence on what the plan gains; none if no measure changes.
pub(crate) fn with_the_plan(now: &Score, planned: &Score) -> Page {
    let mut page = Page::default();
    let gain = gain(now, planned);
    if !gain.is_empty() {
        page.item("", format!("With the plan: {gain}."));
    }
    page
}

/// Notes, and what follows from them: one for all interfaces of which the same is to be said. After `most` the others
/// are counted; `command` lists them.
pub(crate) fn notes<'a>(
    indent: &str,
    notes: impl IntoIterator<Item = (&'a str, &'a Note)>,
    (most, command): (usize, &str),
) -> Page {
    /// Interfaces, and those that the command names, by text, kind of advice, and command.
    type Group<'a> = ((String, bool, String), Vec<&'a str>, Vec<String>);
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (about, note) in notes {
        let advice = note.advice();
        let is_advice = matches!(advice, Some(Advice::Try(_)));
        let (command, subject) = match note.command() {
            Some((command, interface)) => (command, Some(word(interface).into_owned())),
            None => (
                advice.map_or(String::new(), |advice| advice.text().to_owned()),
                None,
            ),
        };
        let key = (note.to_string(), is_advice, command);
        let at = groups.iter().position(|(other, ..)| *other == key);
        let at = at.unwrap_or(groups.len());
        if at == groups.len() {
            groups.push((key, Vec::new(), Vec::new()));
        }
        let group = &mut groups[at];
        group.1.extend((!about.is_empty()).then_some(about));
        group.2.extend(subject);
    }
    let mut page = Page::default();
    for ((text, is_advice, command), about, subjects) in groups.iter().take(most) {
        let about = if about.is_empty() {
            String::new()
        } else {
            format!("{}: ", about.join(", "))
        };
        let command = std::iter::once(command).chain(subjects);
        let command: Vec<&str> = command.map(String::as_str).collect();
        let then = match (command.join(" "), is_advice) {
            (command, _) if command.is_empty() => String::new(),
            (command, true) => format!(". Try: {command}"),
            (command, false) => format!(". Fix: {command}"),
        };
        let label = if *is_advice { "Advice: " } else { "Note: " };
        page.item(format!("{indent}{label}"), format!("{about}{text}{then}"));
    }
    if groups.len() > most {
        let more = count(groups.len() - most, "more note");
        page.line(format!("{more}: {command}"));
    }
    page
}

/// A link's speed in few characters: `40G`, `2.5G`, `100M`.
pub(crate) fn short_speed(mbps: u32) -> String {
    speed(mbps).replace(" Gbit/s", "G").replace(" Mbit/s", "M")
}

/// A rate in few characters: `0`, `0.5`, `870`, `12.3k`, `4.1M`.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        0.0 => "0".to_owned(),
        // Not "0.0": a few interrupts are more than none.
        few if few < 0.05 => "<0.1".to_owned(),
        few if few < 9.95 => format!("{few:.1}"),
        some if some < 999.5 => format!("{some:.0}"),
        many if many < 999_950.0 => format!("{:.1}k", many / 1e3),
        many if many < 999_950_000.0 => format!("{:.1}M", many / 1e6),
        many => format!("{:.1}G", many / 1e9),
    }
}

/// Numbers as a list of ranges.
pub(crate) fn ranges(numbers: &[u32]) -> String {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let mut ranges =
        numbers
            .chunk_by(|a, b| a.checked_add(1) == Some(*b))
            .map(|range| match range {
                [first, .., last] => format!("{first}-{last}"),
                numbers => numbers.iter().map(u32::to_string).collect(),
            });
    ranges.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ranges() {
        let numbers = [u32::MAX, 7, 9000, 5, 9001, 6, 7, 9];
        assert_eq!(ranges(&numbers), "5-7,9,9000-9001,4294967295");
        assert_eq!((ranges(&[4]).as_str(), ranges(&[]).as_str()), ("4", ""));
    }

    #[test]
    fn rates_are_short() {
        for (rate, text) in [
            (0.0, "0"),
            (0.01, "<0.1"),
            (0.5, "0.5"),
            (9.96, "10"),
            (870.2, "870"),
            (999.6, "1.0k"),
            (12_345.0, "12.3k"),
            (999_960.0, "1.0M"),
            (4.1e6, "4.1M"),
            (4.96e9, "5.0G"),
        ] {
            assert_eq!(super::rate(rate), text);
        }
        assert_eq!(
            [40_000, 2_500, 100].map(short_speed),
            ["40G", "2.5G", "100M"]
        );
    }
}
