//! Renders reports and plans as text or JSON. Nothing is decided or computed here. This file has what all screens have
//! in common: numbers, CPUs and queues in words, notes, and what a plan gains.
//!
//! Text is made safe to print: names and texts of drivers, trees and other programs may hold control characters: a
//! terminal would take them for commands, or show other text than there is.

pub mod applied;
pub mod check;
pub mod fleet;
pub mod flow;
pub mod measure;
pub mod monitoring;
pub mod nodes;
pub mod page;
pub mod plan;
pub mod shell;
pub mod status;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;
use std::iter::once;
use std::time::{Duration, UNIX_EPOCH};

use itertools::Itertools as _;

use nicpin::cpuset::{CpuSet, MAX_CPUS, NumberSet};
use nicpin::machine::Role;
use nicpin::machine::Role::Combined;
use nicpin::machine::setting::shown;
pub(crate) use nicpin::machine::wording::{count, few, speed};
use nicpin::plan::NodeSource::{LocalCpulist, Nearest, NumaNode, Policy, SingleNode, Unknown};
use nicpin::plan::WriteKind::{
    NapiThread, Ntuple, Rps, RpsFlow, Rss, Sysctl, Vector, Xps, XpsRxqs,
};
use nicpin::plan::{HostSummary, NodeSource, WriteKind};
use nicpin::report::interface::{InterfaceReport, InterfaceState};

/// A report as indented JSON with a final newline.
pub fn json<T: serde::Serialize>(value: &T) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// The limit of a message, in characters, and of a value in a table: the widest mask of any kernel has 2,303.
const MESSAGE: usize = 4000;
/// The limit of a value in a message.
pub(crate) const QUOTED: usize = 200;

/// The text with each control character as JSON escapes it, `\u001b`, so that JSON stays the same value; newlines and
/// tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return text.into();
    }
    let mut safe = String::new();
    for c in text.chars() {
        if is_unsafe(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                safe += &format!("\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    safe.into()
}

/// A message as one printable line of limited length.
pub fn message(text: &str) -> String {
    let line = text.replace(['\n', '\t'], " ");
    cut(&printable(&line), MESSAGE)
}

/// The text, or what it begins with, in characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Control characters, and characters that change the direction or the place of the text around them or that are
/// not seen.
fn is_unsafe(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// The value, or the other text where there is none or it is empty.
pub(crate) fn or(value: impl IntoIterator<Item: Display>, other: &str) -> String {
    let text = value.into_iter().join("");
    if text.is_empty() {
        other.to_owned()
    } else {
        text
    }
}

/// The value between two texts; nothing where there is none or it is empty.
pub(crate) fn within(before: &str, value: impl IntoIterator<Item: Display>, after: &str) -> String {
    let text = or(value, "");
    if text.is_empty() {
        text
    } else {
        format!("{before}{text}{after}")
    }
}

/// The same with a text before it.
pub(crate) fn with(before: &str, value: impl IntoIterator<Item: Display>) -> String {
    within(before, value, "")
}

/// The same in brackets.
pub(crate) fn bracketed(value: impl IntoIterator<Item: Display>) -> String {
    within(" (", value, ")")
}

/// The file of a setting, and how its value changes.
pub(crate) fn written(path: &str, was: &str, now: &str) -> [String; 2] {
    let [was, now] = [was, now].map(|value| cut(value, MESSAGE));
    [shown(path).into_owned(), format!("{was} -> {now}")]
}

/// The text where the condition holds, otherwise nothing.
pub(crate) fn when(holds: bool, text: &str) -> &str {
    if holds { text } else { "" }
}

/// How many of something there are, and what is with them; nothing where there are none.
pub(crate) fn some(many: usize, what: &str, then: &str) -> String {
    within("", (many > 0).then(|| count(many, what)), then)
}

/// The interface of a setting; `machine` where it is that of the whole machine.
pub(crate) fn machine_or(interface: &str) -> String {
    or([interface], "machine")
}

/// `is` or `are`.
pub(crate) fn is(many: usize) -> &'static str {
    if many == 1 { "is" } else { "are" }
}

/// `differs` or `differ`.
pub(crate) fn differ(many: usize) -> &'static str {
    if many == 1 { "differs" } else { "differ" }
}

/// The texts with `between` between them, without empty ones.
pub(crate) fn joined<const N: usize>(between: &str, texts: [&str; N]) -> String {
    texts.iter().filter(|text| !text.is_empty()).join(between)
}

/// What a command line gives that decides on the plan, as words of a shell.
#[derive(Clone, Default)]
pub struct Given {
    /// Each option, with its value.
    pub options: Vec<String>,
    /// Each after a blank.
    pub selectors: String,
}

impl Given {
    /// The command that makes everything as planned.
    pub fn apply(&self) -> String {
        self.whole("nicpin apply")
    }

    /// A command for the same plan.
    pub fn whole(&self, command: &str) -> String {
        self.added_to(command) + &self.selectors
    }

    /// A command with the options, but for those that it has itself.
    pub fn added_to(&self, command: &str) -> String {
        let options = self.options.iter().map(String::as_str);
        let others = options.filter(|option| {
            let name = option.split(' ').next();
            !command.split(' ').any(|word| Some(word) == name)
        });
        once(command).chain(others).join(" ")
    }
}

/// A command that is broken only where it is longer than a line, so that it can be copied.
pub(crate) fn unbroken(command: &str) -> String {
    command.replace(' ', "\u{a0}")
}

/// What has the same key, in the order in which the keys come.
pub(crate) fn grouped<K: Clone + Eq + Hash, V>(
    pairs: impl IntoIterator<Item = (K, V)>,
) -> Vec<(K, Vec<V>)> {
    let (mut groups, mut places) = (Vec::new(), HashMap::new());
    for (key, value) in pairs {
        let place = *places.entry(key).or_insert_with_key(|key| {
            groups.push((key.clone(), Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(value);
    }
    groups
}

/// What [`grouped`] finds, in the order of the keys.
pub(crate) fn sorted<K: Clone + Hash + Ord, V>(
    pairs: impl IntoIterator<Item = (K, V)>,
) -> Vec<(K, Vec<V>)> {
    grouped(pairs.into_iter().sorted_by(|(a, _), (b, _)| a.cmp(b)))
}

/// A verdict that also names the interfaces that cannot be judged.
pub(crate) fn with_not_judged(verdict: &str, names: &[String]) -> String {
    let Some(begin) = verdict.strip_suffix('.').filter(|_| !names.is_empty()) else {
        return verdict.to_owned();
    };
    format!(
        "{begin}; {} cannot be judged: {}.",
        names.len(),
        few(", ", names, false)
    )
}

/// The interfaces that cannot be judged, where the sentence before is about something else.
pub(crate) fn unjudged(names: &[String]) -> String {
    let those = format!(" cannot be judged: {}", few(", ", names, false));
    some(names.len(), "interface", &those)
}

/// Interfaces that count in a verdict: those that are judged, if only by their steering, and those that cannot be.
pub(crate) fn counted(interfaces: &[InterfaceReport], not_judged: &[String]) -> usize {
    let counts = |one: &&InterfaceReport| {
        one.state != InterfaceState::Unsupported || not_judged.contains(&one.name)
    };
    interfaces.iter().filter(counts).count()
}

/// CPUs for people: a whole node or the whole machine by its name, otherwise a short list.
pub(crate) fn cpus(host: &HostSummary, cpus: &CpuSet) -> String {
    match cpus.len() {
        0 => "none".into(),
        1 => cpus.to_string(),
        _ => named(host, cpus, ["all of node ", "all CPUs", ""]),
    }
}

/// CPUs as those of a node where there are several, as all, or by number.
fn named(host: &HostSummary, cpus: &CpuSet, [of_node, all, some]: [&str; 3]) -> String {
    let mut nodes = host.nodes.iter().filter(|_| host.nodes.len() > 1);
    match nodes.find(|node| node.cpus == *cpus) {
        Some(node) => format!("{of_node}{}", node.node),
        None if host.online.is_subset(cpus) => all.into(),
        None => format!("{some}{}", cpus.short()),
    }
}

/// Longer lists of numbers are counted.
const LONGEST: usize = 24;

/// Numbers in their order, or how many there are.
pub(crate) fn listed(numbers: &[u32]) -> String {
    // A set of CPUs holds no process ids and IRQs beyond its limit.
    let has_all = numbers.iter().all(|&number| number < MAX_CPUS);
    let run = |run: &[u32]| {
        let run = run.iter().copied();
        if has_all {
            run.collect::<CpuSet>().short()
        } else {
            ranges(run)
        }
    };
    let listed = numbers.chunk_by(|a, b| a < b).map(run).join(",");
    if listed.len() <= LONGEST {
        return listed;
    }
    let (first, last) = (or(numbers.iter().min(), ""), or(numbers.iter().max(), ""));
    format!("{first} to {last} ({})", numbers.len())
}

/// The CPUs of several vectors, in their order where that is short.
pub(crate) fn places(host: &HostSummary, sets: &[&CpuSet]) -> String {
    let single: Option<Vec<u32>> = sets
        .iter()
        .map(|set| set.first().filter(|_| set.len() == 1))
        .collect();
    let all = CpuSet::union_of(sets.iter().copied());
    match single {
        Some(_) if all.len() == 1 => format!("CPU {all}"),
        Some(cpus) => match (listed(&cpus), all.short()) {
            (listed, _) if !listed.contains(' ') => format!("CPUs {listed}"),
            (_, short) if short.len() <= LONGEST => format!("CPUs {short}"),
            _ => {
                let node = host.nodes.iter().find(|node| all.is_subset(&node.cpus));
                let node = with(" of node ", node.map(|node| node.node));
                format!("{} CPUs{node}", all.len())
            }
        },
        None if !sets.iter().all_equal() => sizes(sets),
        None if all.is_empty() => "none".into(),
        None => named(host, &all, ["any of node ", "any CPU", "CPUs "]),
    }
}

/// `2 CPUs each`, `1 to 3 CPUs each`.
pub(crate) fn sizes(sets: &[&CpuSet]) -> String {
    let ends = sets.iter().map(|set| set.len()).minmax().into_option();
    match ends.unwrap_or_default() {
        (least, most) if least == most => format!("{} each", count(most, "CPU")),
        (least, most) => format!("{least} to {most} CPUs each"),
    }
}

/// The queue of a vector: `3`, `rx 3`, `tx 3`, `rdma 3`, `?` where it is not known; its role where it has none.
pub(crate) fn queue(role: Role, queue: Option<u32>) -> String {
    if role == Role::Data {
        return "?".to_owned();
    }
    joined(
        " ",
        [when(role != Combined, role_word(role)), &with("", queue)],
    )
}

pub(crate) fn role_word(role: Role) -> &'static str {
    match role {
        Combined => "queue",
        Role::Data => "queue ?",
        other => other.name(),
    }
}

/// An interface, its device and its node, as the head of what is said about it.
pub(crate) fn heading(
    host: &HostSummary,
    (name, driver, device): (&str, Option<&str>, &str),
    mbps: Option<u32>,
    (node, source): (Option<u32>, NodeSource),
    (candidates, cores): (&CpuSet, usize),
) -> String {
    let speed = with(", ", mbps.map(speed));
    let by = match source {
        NumaNode | Unknown => "",
        SingleNode => " (the only one)",
        Nearest => " (the nearest)",
        LocalCpulist => " (by local_cpulist)",
        Policy => " (by the policy)",
    };
    let are_there = host
        .nodes
        .iter()
        .find(|one| Some(one.node) == node)
        .is_none_or(|one| candidates.is_subset(&one.cpus));
    let colon = if are_there { ":" } else { "; IRQs to" };
    let node = or(node, "unknown");
    let driver = driver.unwrap_or("(driver unknown)");
    let (cpus, cores) = (candidates.short(), count(cores, "core"));
    format!("{name}  {driver} {device}{speed}, node {node}{by}{colon} CPUs {cpus} ({cores})")
}

/// How many settings of a kind there are: `6 IRQs`, `4 XPS`.
pub(crate) fn of_kind(many: usize, kind: WriteKind) -> String {
    match kind {
        Vector => count(many, "IRQ"),
        NapiThread => count(many, "thread"),
        Rps => format!("{many} RPS"),
        RpsFlow => format!("{many} RFS"),
        Xps => format!("{many} XPS"),
        XpsRxqs => format!("{many} XPS by queue"),
        Rss => "RSS".into(),
        Sysctl => "flow table".into(),
        Ntuple => "ntuple".into(),
    }
}

/// A link's speed in few characters: `40G`, `2.5G`, `100M`.
pub(crate) fn short_speed(mbps: u32) -> String {
    speed(mbps).replace(" Gbit/s", "G").replace(" Mbit/s", "M")
}

/// A rate in few characters: `0`, `0.5`, `870`, `12.3k`, `4.1M`.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        0.0 => "0".into(),
        // Not "0.0": a few interrupts are more than none.
        few if few < 0.05 => "<0.1".into(),
        few if few < 9.95 => format!("{few:.1}"),
        some if some < 999.5 => format!("{some:.0}"),
        many if many < 999_950.0 => format!("{:.1}k", many / 1e3),
        many if many < 999_950_000.0 => format!("{:.1}M", many / 1e6),
        many => format!("{:.1}G", many / 1e9),
    }
}

/// `1 IRQ moves`, `2 IRQs move`.
pub(crate) fn moves(irqs: usize) -> String {
    count(irqs, "IRQ") + if irqs == 1 { " moves" } else { " move" }
}

/// A time in UTC: `2026-11-22T13:20:00Z`.
pub(crate) fn time(seconds: u64) -> String {
    or(date(seconds), "unknown")
}

/// The same; `None` from the year 10000 on, which a damaged file may say.
pub(crate) fn date(seconds: u64) -> Option<String> {
    let time = (seconds < YEAR_10000).then(|| UNIX_EPOCH + Duration::from_secs(seconds));
    Some(humantime::format_rfc3339_seconds(time?).to_string())
}

/// In seconds since 1970: from there on, a date has no four digits for its year.
const YEAR_10000: u64 = 253_402_300_800;

/// Numbers as a list of ranges.
pub(crate) fn ranges(numbers: impl IntoIterator<Item = u32>) -> String {
    numbers.into_iter().collect::<NumberSet>().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        for (text, expected) in [
            ("plain \t text\n", "plain \t text\n"),
            ("größe 网卡 😀", "größe 网卡 😀"),
            (
                "\u{1b}[31m\u{9b}\r\u{7f}",
                "\\u001b[31m\\u009b\\u000d\\u007f",
            ),
            ("eth\u{202e}0\u{2066}\u{200b}", "eth\\u202e0\\u2066\\u200b"),
            ("a\u{e0041}b", "a\\udb40\\udc41b"),
        ] {
            assert_eq!(printable(text), expected, "{text:?}");
            assert_eq!(printable(expected), expected);
        }
    }

    #[test]
    fn a_message_is_one_line_of_limited_length() {
        assert_eq!(message("eth0:\n\u{1b}c `x`"), "eth0: \\u001bc `x`");
        assert_eq!(message(&"ä".repeat(5000)).chars().count(), MESSAGE + 3);
    }

    #[test]
    fn numbers_are_ranges() {
        let numbers = [u32::MAX, 7, 9000, 5, 9001, 6, 7, 9];
        assert_eq!(ranges(numbers), "5-7,9,9000-9001,4294967295");
        assert_eq!((ranges([4]).as_str(), ranges([]).as_str()), ("4", ""));
    }

    #[test]
    fn times_beyond_the_year_9999_are_unknown() {
        assert_eq!(time(1_795_353_600), "2026-11-22T13:20:00Z");
        assert_eq!(time(YEAR_10000 - 1), "9999-12-31T23:59:59Z");
        assert_eq!(time(YEAR_10000), "unknown");
        assert_eq!(time(u64::MAX), "unknown");
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

    #[test]
    fn lists_keep_their_order_or_are_counted() {
        assert_eq!(listed(&[1, 2, 3, 0]), "1-3,0");
        assert_eq!(listed(&[36, 38, 40]), "36,38,40");
        assert_eq!(listed(&[36, 38, 40, 42, 1]), "36-42:2,1");
        let even: Vec<u32> = (0..40).map(|n| n * 2).collect();
        assert_eq!(listed(&even), "0-78:2");
        let many: Vec<u32> = (0..40).map(|n| n * n % 97).collect();
        assert_eq!(listed(&many), "0 to 96 (40)");
    }

    #[test]
    fn process_ids_beyond_the_limit_of_cpus_are_listed() {
        let pids = [20_101, 20_105, 20_112, 20_120, 20_133];
        assert_eq!(listed(&pids), "20101 to 20133 (5)");
        assert_eq!(listed(&pids[..3]), "20101,20105,20112");
    }

    proptest::proptest! {
        /// JSON says the same after it was made printable.
        #[test]
        fn json_keeps_its_meaning(text in "\\PC{0,9}|(\u{9b}|\u{202e}|\u{e0041}|[\\x00-\\x7f]){0,9}") {
            let json = serde_json::to_string(&text).unwrap();
            let back: String = serde_json::from_str(&printable(&json)).unwrap();
            proptest::prop_assert_eq!(back, text);
        }
    }
}
