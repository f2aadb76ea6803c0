//! What monitoring systems read: metrics in the text format of Prometheus, as `node_exporter`'s textfile collector reads
//! it (<https://prometheus.io/docs/instrumenting/exposition_formats/>), and the one line of a monitoring plugin, `NICPIN
//! STATUS: text | performance data` (<https://www.monitoring-plugins.org/doc/guidelines.html>).

use std::fmt::Display;

use itertools::Itertools as _;

use crate::screen::{bracketed, count, message, printable, sorted, when, with};
use nicpin::machine::setting::IRQ_FILES;
use nicpin::report::check::CheckState::{CouldNotBeDetermined, Same};
use nicpin::report::check::PluginStatus::{Critical, Warning};
use nicpin::report::check::{Check, PluginStatus, Thresholds};
use nicpin::report::difference::Reason;
use nicpin::report::interface::{InterfaceReport, InterfaceState};
use nicpin::report::run::Watcher;

/// When the machine was last found in the planned state.
const LAST_SUCCESS: &str = "nicpin_last_success_timestamp_seconds";

/// The result of a check and what a watcher counts, where there is one, as at most ten series for each interface.
/// `last_success`: when the machine was last found in the planned state, in seconds since 1970.
pub fn metrics(check: &Check, watcher: Option<&Watcher>, last_success: Option<u64>) -> String {
    let states = InterfaceState::ALL.map(|state| format!("{} {}", state as u8, state.name()));
    let state = format!(
        "The state of the interface, a higher number is worse: {}.",
        states.join(", ")
    );
    let interfaces = check.interfaces.iter().sorted_by_key(|one| &one.name);
    // The label that `node_exporter`'s `node_network_*` have.
    let of_states = interfaces
        .clone()
        .map(|one| sample(&[("device", &one.name)], one.state as u8));
    let shares = interfaces
        .clone()
        .filter_map(|one| Some(sample(&[("device", &one.name)], one.local_share()?)));
    let is = |holds: bool| vec![sample(&[], u8::from(holds))];
    let families = [
        (
            "nicpin_build_info",
            "The version of nicpin.",
            vec![sample(&[("version", env!("CARGO_PKG_VERSION"))], 1)],
        ),
        (
            "nicpin_plan_info",
            "The hardware class of the machine and the hash of its plan.",
            vec![sample(&[("class", &check.class), ("hash", &check.hash)], 1)],
        ),
        (
            "nicpin_check_success",
            "Whether the state of all interfaces could be determined (1) or not (0).",
            is(check.verdict != CouldNotBeDetermined),
        ),
        (
            "nicpin_as_planned",
            "Whether the machine is in the planned state (1) or not (0).",
            is(check.verdict == Same),
        ),
        (
            "nicpin_different_channels",
            "Interfaces whose number of channels is not as planned.",
            vec![sample(&[], check.channels.len())],
        ),
        ("nicpin_interface_state", &state, of_states.collect()),
        (
            "nicpin_interface_local_ratio",
            "The share of the interface's queue vectors that interrupt CPUs of its own node.",
            shares.collect(),
        ),
        (
            "nicpin_different_settings",
            "Settings that differ from the plan, by reason; without device: settings of the whole machine.",
            differences(check, interfaces.clone()),
        ),
        (
            "nicpin_interface_contended_vectors",
            "Vectors that nicpin watch does not restore for a while, because something else moved them again and again.",
            watcher.map_or(Vec::new(), |watcher| contended(watcher, interfaces)),
        ),
        (
            "nicpin_restores_total",
            "How often nicpin watch has restored the planned state since it started.",
            watcher
                .iter()
                .map(|watcher| sample(&[], watcher.restores))
                .collect(),
        ),
        (
            LAST_SUCCESS,
            "When the machine was last found in the planned state, in seconds since 1970.",
            last_success
                .iter()
                .map(|seconds| sample(&[], seconds))
                .collect(),
        ),
    ];
    let mut out = String::new();
    for (name, help, samples) in families {
        if !samples.is_empty() {
            let kind = if name.ends_with("_total") {
                "counter"
            } else {
                "gauge"
            };
            out += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        }
        for sample in samples {
            out += &format!("{name}{sample}\n");
        }
    }
    out
}

/// The labels and the value of a sample, after the name of its family.
fn sample(labels: &[(&str, &str)], value: impl Display) -> String {
    let labels = labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    let labels = with("{", Some(labels.collect_vec().join(",")));
    format!("{labels}{} {value}", when(!labels.is_empty(), "}"))
}

fn differences<'a>(
    check: &Check,
    interfaces: impl Iterator<Item = &'a InterfaceReport>,
) -> Vec<String> {
    // An unknown reason makes the state unknown, which is what alerts look at.
    let known = Reason::ALL
        .into_iter()
        .filter(|reason| *reason != Reason::Unknown);
    let each = interfaces.cartesian_product(known).map(|(one, reason)| {
        let labels = [("device", &*one.name), ("reason", reason.name())];
        sample(
            &labels,
            one.reasons.get(&reason).copied().unwrap_or_default(),
        )
    });
    let of_machine = check
        .reasons_of("")
        .into_iter()
        .map(|(reason, many)| sample(&[("reason", reason.name())], many));
    each.chain(of_machine).collect()
}

fn contended<'a>(
    watcher: &Watcher,
    interfaces: impl Iterator<Item = &'a InterfaceReport>,
) -> Vec<String> {
    let none = interfaces.map(|one| (&one.name, false));
    let left = watcher
        .left_alone
        .iter()
        .map(|left| &left.setting)
        .map(|of| (&of.interface, of.path.starts_with(IRQ_FILES)));
    sorted(none.chain(left))
        .into_iter()
        .map(|(name, are_vectors)| {
            let vectors = are_vectors.into_iter().filter(|is_vector| *is_vector);
            sample(&[("device", name)], vectors.count())
        })
        .collect()
}

/// The time of the last success in metrics that were printed before.
pub fn last_success(text: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(LAST_SUCCESS)?.trim().parse().ok())
}

/// The value of a label: without control characters, and with what the format wants escaped.
fn escaped(value: &str) -> String {
    printable(value)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// Interfaces that are named; all have performance data.
const MOST: usize = 8;

/// The line of a monitoring plugin about a check, or about the error of one that failed.
pub fn line(check: Result<&Check, &str>, thresholds: Thresholds) -> String {
    // One line, without the character that begins the performance data.
    let plain = |text: &str| message(text).replace('|', "/");
    let (status, text) = match check {
        Ok(check) => {
            let (text, data) = (
                plain(&text(check, thresholds)),
                performance_data(check, thresholds),
            );
            (thresholds.judge(check), format!("{text} | {data}"))
        }
        Err(error) => (PluginStatus::Unknown, plain(error)),
    };
    format!("NICPIN {}: {text}\n", format!("{status:?}").to_uppercase())
}

fn text(check: &Check, thresholds: Thresholds) -> String {
    let mut parts = Vec::new();
    for one in &check.interfaces {
        let share = one.local_percent();
        let status = thresholds.judge_share(share);
        let range = match status {
            Warning => thresholds.warning,
            Critical => thresholds.critical,
            _ => None,
        };
        let outside = share.zip(range);
        let outside =
            outside.map(|(share, range)| format!("{} % local (range {range})", rounded(share)));
        if one.state.is_alarming() || status != PluginStatus::Ok {
            let (name, state) = (&one.name, one.state.name());
            parts.push(format!("{name} is {state}{}", with(", ", outside)));
        }
    }
    let more = parts.len().saturating_sub(MOST);
    parts.truncate(MOST);
    parts.extend((more > 0).then(|| format!("+{more} more interfaces")));
    if !check.unknown.is_empty() {
        let unknown = check.unknown.iter().map(|one| &one.interface).join(", ");
        parts.push(unknown + " could not be determined");
    }
    let differ = check.differ();
    if differ > 0 {
        let reasons = check.reasons();
        let reasons = reasons
            .iter()
            .map(|(reason, many)| format!("{} {many}", reason.name()))
            .join(", ");
        let all = count(check.same + differ, "setting");
        let but = when(check.verdict == Same, ", but as good");
        let reasons = bracketed(&reasons);
        parts.push(format!("{differ} of {all} not as planned{but}{reasons}"));
    } else {
        parts.push(count(check.same, "setting") + " as planned");
    }
    if !check.unmovable.is_empty() {
        parts.push(count(check.unmovable.len(), "vector") + " cannot be moved");
    }
    parts.join(", ")
}

/// `'label'=value[UOM];warning;critical;minimum;maximum`, separated by spaces.
fn performance_data(check: &Check, thresholds: Thresholds) -> String {
    let (warning, critical) = (with("", thresholds.warning), with("", thresholds.critical));
    let mut data = String::new();
    for interface in &check.interfaces {
        // Without the characters that mean something in performance data.
        let label = message(&interface.name).replace(['\'', '=', '|', ' '], "_");
        if let Some(share) = interface.local_percent().map(rounded) {
            data += &format!("'{label}_local'={share}%;{warning};{critical};0;100 ");
        }
    }
    let (differ, all) = (check.differ(), check.same + check.differ());
    format!("{data}settings_differ={differ};;;0;{all}")
}

/// At most one digit after the point.
fn rounded(share: f64) -> f64 {
    (share * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_are_escaped() {
        for (value, expected) in [
            ("eth0", "eth0"),
            (r#"a"b\c"#, r#"a\"b\\c"#),
            ("a\nb", r"a\nb"),
            ("a\u{1b}[2Jb", r"a\\u001b[2Jb"),
            ("größe", "größe"),
        ] {
            assert_eq!(escaped(value), expected);
        }
    }

    #[test]
    fn what_is_unknown_is_not_printed_and_the_last_success_is_read_back() {
        let check = Check::new(
            &nicpin::machine::Machine::default(),
            &nicpin::plan::Plan::default(),
            nicpin::report::difference::Differences::default(),
            vec![],
            false,
        );
        let none = metrics(&check, None, None);
        for unknown in ["nicpin_interface", "nicpin_restores", LAST_SUCCESS] {
            assert!(!none.contains(unknown), "{none}");
        }
        assert_eq!(last_success(&none), None);
        let watcher = Watcher {
            restores: 3,
            ..Watcher::default()
        };
        let some = metrics(&check, Some(&watcher), Some(1_700_000_000));
        assert_eq!(last_success(&some), Some(1_700_000_000));
        let line = "nicpin_restores_total 3";
        assert!(some.lines().any(|printed| printed == line), "{some}");
    }
}
