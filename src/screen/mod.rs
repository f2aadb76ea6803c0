//! Renders reports and plans as text or JSON; decides and computes nothing. This file has the parts that all screens
//! share.
//!
//! Text is made safe to print: names and texts of drivers, trees and other programs may hold control characters, which
//! a terminal would take for commands, or which show other text than there is.

pub mod applied;
mod cells;
pub mod check;
mod details;
pub mod fleet;
pub mod flow;
mod given;
pub mod measure;
pub mod monitoring;
pub mod nodes;
pub mod page;
mod placement;
pub mod plan;
pub mod shell;
mod state;
pub mod status;
pub mod watcher;
mod writer;

pub use given::Given;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::hash::Hash;
use std::time::{Duration, UNIX_EPOCH};

use itertools::Itertools as _;

use nicpin::cpuset::{CpuSet, NumberSet, short};
use nicpin::machine::Role;
use nicpin::machine::Role::Combined;
use nicpin::machine::wording::cpu_list;
pub(crate) use nicpin::machine::wording::{count, few, one_or, speed};
use nicpin::plan::NodeSource::{LocalCpulist, Nearest, NumaNode, Policy, SingleNode, Unknown};
use nicpin::plan::{HostSummary, NodeSource, Note};
use nicpin::report::interface::{InterfaceReport, InterfaceState};

pub fn json<T: serde::Serialize>(value: &T) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// Characters of a message, and of a value in a table: the widest mask of any kernel has 2,303.
const MESSAGE: usize = 4000;
pub(crate) const QUOTED: usize = 200;
/// Printed in place of the command that fixes it: apply would be refused again.
pub(crate) const REFUSED: &str = "The kernel refused what apply wrote.";

/// Escapes control characters as JSON does (`\u001b`), which keeps the value of JSON; newlines and tabs stay.
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

pub fn message(text: &str) -> String {
    let line = text.replace(['\n', '\t'], " ");
    cut(&printable(&line), MESSAGE)
}

pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Control characters, invisible ones, and those that change the direction or place of the text around them.
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

/// Returns `other` if there is no value, or its text is empty.
pub(crate) fn text_or(value: impl IntoIterator<Item: Display>, other: &str) -> String {
    let text = value.into_iter().join("");
    if text.is_empty() {
        other.to_owned()
    } else {
        text
    }
}

/// Returns an empty text if there is no value, or its text is empty.
pub(crate) fn enclose(
    before: &str,
    value: impl IntoIterator<Item: Display>,
    after: &str,
) -> String {
    let text = text_or(value, "");
    if text.is_empty() {
        text
    } else {
        format!("{before}{text}{after}")
    }
}

pub(crate) fn with_prefix(before: &str, value: impl IntoIterator<Item: Display>) -> String {
    enclose(before, value, "")
}

pub(crate) fn value_change(shown: String, was: &str, now: &str) -> [String; 2] {
    let [was, now] = [was, now].map(|value| cut(value, MESSAGE));
    [shown, format!("{was} -> {now}")]
}

pub(crate) fn text_if(holds: bool, text: &str) -> &str {
    if holds { text } else { "" }
}

/// Says, for example, `3 queues`, followed by `then`; nothing if there are none.
pub(crate) fn count_if_any(many: usize, what: &str, then: &str) -> String {
    enclose("", (many > 0).then(|| count(many, what)), then)
}

pub(crate) fn interface_or_machine(interface: &str) -> String {
    text_or([interface], "machine")
}

pub(crate) fn is(many: usize) -> &'static str {
    one_or(many, "is", "are")
}

pub(crate) fn differ(many: usize) -> &'static str {
    one_or(many, "differs", "differ")
}

pub(crate) fn join_nonempty<const N: usize>(between: &str, texts: [&str; N]) -> String {
    texts.iter().filter(|text| !text.is_empty()).join(between)
}

/// A command that is broken only if it is longer than a line, so that it can be copied.
pub(crate) fn unbroken(command: &str) -> String {
    command.replace(' ', "\u{a0}")
}

/// Keeps the order in which the keys first occur.
pub(crate) fn group_by_key<K: Clone + Eq + Hash, V>(
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

pub(crate) fn group_sorted<K: Ord, V>(
    pairs: impl IntoIterator<Item = (K, V)>,
) -> BTreeMap<K, Vec<V>> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for (key, value) in pairs {
        groups.entry(key).or_default().push(value);
    }
    groups
}

/// Ends a sentence about other interfaces; empty if all are judged.
pub(crate) fn set_apart(not_judged: &[String], interfaces: &[InterfaceReport]) -> String {
    let many = (!not_judged.is_empty()).then_some(not_judged.len());
    let skipped = skipped(interfaces);
    let skipped = (!skipped.is_empty()).then(|| few(", ", &skipped, false));
    enclose("; ", many, &cannot_be_judged(not_judged))
        + &with_prefix("; the policy skips ", skipped)
}

/// The verdict if no interface is judged.
pub(crate) fn none_judged(not_judged: &[String], interfaces: &[InterfaceReport]) -> &'static str {
    if !not_judged.is_empty() {
        "No interface is as planned"
    } else if skipped(interfaces).is_empty() {
        "No interface has an IRQ that can be placed"
    } else {
        "No interface is planned"
    }
}

pub(crate) fn skipped(interfaces: &[InterfaceReport]) -> Vec<&String> {
    let skipped = interfaces.iter().filter(|report| is_skipped(report));
    skipped.map(|report| &report.name).collect()
}

pub(crate) fn is_skipped(interface: &InterfaceReport) -> bool {
    interface.notes.contains(&Note::Skipped)
}

pub(crate) fn unjudged(names: &[String]) -> String {
    count_if_any(names.len(), "interface", &cannot_be_judged(names))
}

fn cannot_be_judged(names: &[String]) -> String {
    format!(" cannot be judged: {}", few(", ", names, false))
}

pub(crate) fn judged_count(interfaces: &[InterfaceReport], not_judged: &[String]) -> usize {
    let counts = |interface: &&InterfaceReport| {
        interface.state != InterfaceState::Unsupported || not_judged.contains(&interface.name)
    };
    interfaces.iter().filter(counts).count()
}

pub(crate) fn cpus(host: &HostSummary, cpus: &CpuSet) -> String {
    match cpus.len() {
        0 => "none".into(),
        1 => cpus.to_string(),
        _ => cpus_in_words(host, cpus, ["all of node ", "all CPUs", ""]),
    }
}

fn cpus_in_words(host: &HostSummary, cpus: &CpuSet, [of_node, all, some]: [&str; 3]) -> String {
    let mut nodes = host.nodes.iter().filter(|_| host.nodes.len() > 1);
    match nodes.find(|node| node.cpus == *cpus) {
        Some(node) => format!("{of_node}{}", node.node),
        None if host.online.is_subset(cpus) => all.into(),
        None => format!("{some}{}", cpus.short()),
    }
}

/// Maximum length of a list of numbers, in characters; of longer ones only the ends are shown.
const LONGEST: usize = 24;

pub(crate) fn list_numbers(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a < b);
    let listed = runs.map(|run| short(run.iter().copied())).join(",");
    match numbers.iter().minmax().into_option() {
        Some((first, last)) if listed.len() > LONGEST => {
            format!("{first} to {last} ({})", numbers.len())
        }
        _ => listed,
    }
}

pub(crate) fn places(host: &HostSummary, sets: &[&CpuSet]) -> String {
    let single: Option<Vec<u32>> = sets
        .iter()
        .map(|set| set.first().filter(|_| set.len() == 1))
        .collect();
    let all = CpuSet::union_of(sets.iter().copied());
    match single {
        Some(_) if all.len() == 1 => format!("CPU {all}"),
        Some(cpus) => match (list_numbers(&cpus), all.short()) {
            (listed, _) if !listed.contains(' ') => format!("CPUs {listed}"),
            // A list is read as in the order of the queues.
            (_, short) if short.len() <= LONGEST && all.len() == cpus.len() => {
                format!("CPUs {short} in another order")
            }
            (_, short) if short.len() <= LONGEST => format!("CPUs {short}"),
            _ => {
                let node = host.nodes.iter().find(|node| all.is_subset(&node.cpus));
                let node = with_prefix(" of node ", node.map(|node| node.node));
                format!("{} CPUs{node}", all.len())
            }
        },
        None if !sets.iter().all_equal() => sizes(sets, "CPU"),
        None if all.is_empty() => "none".into(),
        None => cpus_in_words(host, &all, ["any of node ", "any CPU", "CPUs "]),
    }
}

/// Says, for example, `2 CPUs each`, `1 to 3 CPUs each`.
pub(crate) fn sizes(sets: &[&CpuSet], what: &str) -> String {
    let ends = sets.iter().map(|set| set.len()).minmax().into_option();
    match ends.unwrap_or_default() {
        (least, most) if least == most => format!("{} each", count(most, what)),
        (least, most) => format!("{least} to {most} {what}s each"),
    }
}

/// Names a queue `3`, `rx 3`, `tx 3`, `rdma 3`; `?` if unknown, and by the role if it has none.
pub(crate) fn queue(role: Role, queue: Option<u32>) -> String {
    if role == Role::Data {
        return "?".to_owned();
    }
    join_nonempty(
        " ",
        [
            text_if(role != Combined, role_word(role)),
            &with_prefix("", queue),
        ],
    )
}

pub(crate) fn role_word(role: Role) -> &'static str {
    match role {
        Combined => "queue",
        Role::Data => "queue ?",
        other => other.name(),
    }
}

pub(crate) fn heading(
    host: &HostSummary,
    (name, driver, device): (&str, Option<&str>, &str),
    mbps: Option<u32>,
    (node, source): (Option<u32>, NodeSource),
    (candidates, cores): (&CpuSet, usize),
) -> String {
    let speed = with_prefix(", ", mbps.map(speed));
    let by = match source {
        NumaNode | Unknown => "",
        SingleNode => " (it has all CPUs)",
        Nearest => " (the nearest)",
        LocalCpulist => " (by local_cpulist)",
        Policy => " (by the policy)",
    };
    let are_there = host
        .nodes
        .iter()
        .find(|summary| Some(summary.node) == node)
        .is_none_or(|summary| candidates.is_subset(&summary.cpus));
    let colon = if are_there { ":" } else { "; IRQs to" };
    let node = text_or(node, "unknown");
    let driver = driver.unwrap_or("(driver unknown)");
    // A function without an interface here has the address as its name.
    let after_name = device
        .strip_prefix(name)
        .filter(|rest| rest.is_empty() || rest.starts_with(' '));
    let device = after_name.map_or_else(|| format!(" {device}"), str::to_owned);
    let (cpus, cores) = (cpu_list(candidates), count(cores, "core"));
    format!("{name}  {driver}{device}{speed}, node {node}{by}{colon} {cpus} ({cores})")
}

pub(crate) fn short_speed(mbps: u32) -> String {
    speed(mbps).replace(" Gbit/s", "G").replace(" Mbit/s", "M")
}

/// Formats a rate as `0`, `0.5`, `870`, `12.3k`, `4.1M`.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        0.0 => "0".into(),
        // Not "0.0", since a few interrupts are more than none.
        few if few < 0.05 => "<0.1".into(),
        few if few < 9.95 => format!("{few:.1}"),
        some if some < 999.5 => format!("{some:.0}"),
        many if many < 999_950.0 => format!("{:.1}k", many / 1e3),
        many if many < 999_950_000.0 => format!("{:.1}M", many / 1e6),
        many => format!("{:.1}G", many / 1e9),
    }
}

pub(crate) fn moves(irqs: usize) -> String {
    count(irqs, "IRQ") + one_or(irqs, " moves", " move")
}

/// Says, for example, ` 2 IRQs move at the next interrupt.`; nothing if none does.
pub(crate) fn moves_later(irqs: usize) -> String {
    let moves = (irqs > 0).then(|| moves(irqs));
    enclose(" ", moves, " at the next interrupt.")
}

pub(crate) fn time(seconds: u64) -> String {
    text_or(date(seconds), "unknown")
}

/// Formats a date in UTC; `None` from the year 10000 on, which a damaged file may contain.
pub(crate) fn date(seconds: u64) -> Option<String> {
    let time = (seconds < YEAR_10000).then(|| UNIX_EPOCH + Duration::from_secs(seconds));
    Some(humantime::format_rfc3339_seconds(time?).to_string())
}

/// Seconds from 1970 to the year 10000.
const YEAR_10000: u64 = 253_402_300_800;

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
        assert_eq!(list_numbers(&[1, 2, 3, 0]), "1-3,0");
        assert_eq!(list_numbers(&[36, 38, 40]), "36,38,40");
        assert_eq!(list_numbers(&[36, 38, 40, 42, 1]), "36-42:2,1");
        let even: Vec<u32> = (0..40).map(|n| n * 2).collect();
        assert_eq!(list_numbers(&even), "0-78:2");
        let many: Vec<u32> = (0..40).map(|n| n * n % 97).collect();
        assert_eq!(list_numbers(&many), "0 to 96 (40)");
    }

    #[test]
    fn process_ids_beyond_the_limit_of_cpus_are_listed() {
        let pids = [20_101, 20_105, 20_112, 20_120, 20_133];
        assert_eq!(list_numbers(&pids), "20101 to 20133 (5)");
        assert_eq!(list_numbers(&pids[..3]), "20101,20105,20112");
    }

    proptest::proptest! {
        #[test]
        fn json_keeps_its_meaning(text in "\\PC{0,9}|(\u{9b}|\u{202e}|\u{e0041}|[\\x00-\\x7f]){0,9}") {
            let json = serde_json::to_string(&text).unwrap();
            let back: String = serde_json::from_str(&printable(&json)).unwrap();
            proptest::prop_assert_eq!(back, text);
        }
    }
}
