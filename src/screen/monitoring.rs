//! Output for monitoring systems: metrics in the text format of Prometheus, for `node_exporter`'s textfile collector
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>), and the line of a monitoring plugin, `NICPIN
//! STATUS: text | performance data` (<https://www.monitoring-plugins.org/doc/guidelines.html>).

use std::fmt::Display;

use itertools::Itertools as _;

use crate::screen::{
    count, count_if_any, enclose, few, group_sorted, interface_or_machine, join_nonempty, message,
    printable, skipped, text_if, text_or, unjudged, with_prefix,
};
use nicpin::kinds::{SettingKind, SettingName};
use nicpin::report::check::CheckState::{CouldNotBeDetermined, Same};
use nicpin::report::check::{Check, PluginStatus, Ranges, Thresholds, alert};
use nicpin::report::difference::Reason;
use nicpin::report::interface::InterfaceState as State;
use nicpin::report::watcher::Watcher;

const LAST_SUCCESS: &str = "nicpin_last_success_timestamp_seconds";

/// Prints at most ten series for each interface. `last_success`: when the machine was last in the planned state, in
/// seconds since 1970.
pub fn metrics(check: &Check, watcher: Option<&Watcher>, last_success: Option<u64>) -> String {
    let states = State::ROWS.map(|row| format!("{} {}", row.number, row.name));
    let state = format!(
        "The state of the interface, a higher number is worse: {}.",
        states.join(", ")
    );
    let interfaces = check
        .interfaces
        .iter()
        .sorted_unstable_by_key(|row| &row.name);
    // The label of `node_exporter`'s `node_network_*`.
    let device = |name| ("device", name);
    // An unknown reason makes the state unknown, for which alerts exist.
    let known = Reason::ALL
        .into_iter()
        .filter(|reason| *reason != Reason::Unknown);
    let of_each = interfaces.clone().flat_map(|row| {
        let reasons = check.reasons_of(&row.name);
        let number = move |reason| *reasons.get(&reason).unwrap_or(&0);
        (known.clone()).map(move |reason| (&*row.name, reason, number(reason)))
    });
    let of_machine = check.reasons_of("").into_iter();
    let of_machine = of_machine.map(|(reason, many)| ("", reason, many));
    let contended = watcher.map(|watcher| {
        let none = interfaces.clone().map(|row| (&*row.name, 0));
        let left = watcher.left_alone.iter().map(|left| {
            let setting = &left.setting;
            let is_vector = matches!(setting.name.name, SettingName::Of(SettingKind::Vector, _));
            (&*setting.interface, u32::from(is_vector))
        });
        group_sorted(none.chain(left))
            .into_iter()
            .map(|(name, vectors)| ([device(name)], vectors.iter().sum::<u32>()))
    });
    [
        family(
            "nicpin_build_info",
            "The version of nicpin.",
            [([("version", env!("CARGO_PKG_VERSION"))], 1)],
        ),
        family(
            "nicpin_plan_info",
            "The hardware class of the machine and the hash of its plan.",
            [([("class", &*check.class), ("hash", &check.hash)], 1)],
        ),
        family(
            "nicpin_check_success",
            "Whether the state of all interfaces could be determined (1) or not (0).",
            [([], u8::from(check.verdict != CouldNotBeDetermined))],
        ),
        family(
            "nicpin_as_planned",
            "Whether the machine is in the planned state (1) or not (0).",
            [([], u8::from(check.verdict == Same))],
        ),
        family(
            "nicpin_not_judged_interfaces",
            "Interfaces that are up and cannot be judged.",
            [([], check.not_judged.len())],
        ),
        family(
            "nicpin_different_channels",
            "Interfaces whose number of channels is not as planned.",
            [([], check.channels.len())],
        ),
        family(
            "nicpin_interface_state",
            &state,
            interfaces
                .clone()
                .map(|row| ([device(&row.name)], row.state.number())),
        ),
        family(
            "nicpin_interface_local_ratio",
            "The share of the interface's queue IRQs that interrupt CPUs of its own node.",
            interfaces.filter_map(|row| Some(([device(&row.name)], row.local_share()?))),
        ),
        family(
            "nicpin_different_settings",
            "Settings that differ from the plan, by reason; without device: settings of the whole machine.",
            of_each
                .chain(of_machine)
                .map(|(name, reason, many)| ([device(name), ("reason", reason.name())], many)),
        ),
        family(
            "nicpin_interface_contended_vectors",
            "IRQs that nicpin watch waits to restore, because another program writes them again and again.",
            contended.into_iter().flatten(),
        ),
        family(
            "nicpin_restores_total",
            "How often nicpin watch has restored the planned state since it started.",
            watcher.map(|watcher| ([], watcher.restores)),
        ),
        family(
            LAST_SUCCESS,
            "When the machine was last found in the planned state, in seconds since 1970.",
            last_success.map(|seconds| ([], seconds)),
        ),
    ]
    .concat()
}

/// A gauge, or a counter, whose name ends in `_total`. Prints nothing without samples, and leaves out labels without a
/// value.
fn family<'a, const N: usize>(
    name: &str,
    help: &str,
    samples: impl IntoIterator<Item = ([(&'a str, &'a str); N], impl Display)>,
) -> String {
    let kind = if name.ends_with("_total") {
        "counter"
    } else {
        "gauge"
    };
    let samples = samples.into_iter().map(|(labels, value)| {
        let mut labels = labels
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(label, value)| format!("{label}=\"{}\"", escape_label(value)));
        format!("{name}{} {value}\n", enclose("{", [labels.join(",")], "}"))
    });
    with_prefix(
        &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"),
        samples,
    )
}

pub fn last_success(text: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(LAST_SUCCESS)?.trim().parse().ok())
}

fn escape_label(value: &str) -> String {
    printable(value)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// Interfaces that the line names at most; all have performance data.
const MOST: usize = 8;

pub fn line(check: Result<&Check, &str>, thresholds: Thresholds) -> String {
    // `|` begins the performance data.
    let plain = |text: &str| message(text).replace('|', "/");
    let (status, text) = match check {
        Ok(check) => {
            let (text, data) = (text(check, thresholds), performance_data(check, thresholds));
            (
                thresholds.judge(check),
                format!("{} | {data}", plain(&text)),
            )
        }
        Err(error) => (PluginStatus::Unknown, plain(error)),
    };
    format!("NICPIN {}: {text}\n", format!("{status:?}").to_uppercase())
}

fn text(check: &Check, thresholds: Thresholds) -> String {
    let wrong = check.interfaces.iter().filter_map(|interface| {
        let share = interface.local_percent();
        let outside = share
            .zip(alert(thresholds.local, share))
            .map(|(share, (_, range))| format!(", {} % local (range {range})", round_share(share)));
        let is_alarming = interface.state.is_alarming() && interface.state != State::Unknown;
        let is_wrong = is_alarming || outside.is_some();
        is_wrong.then(|| {
            format!(
                "{} is {}{}",
                interface.name,
                interface.state.name(),
                text_or(outside, "")
            )
        })
    });
    let more = wrong.clone().count().saturating_sub(MOST);
    let differ = check.differ();
    let mut reasons = check
        .reasons()
        .into_iter()
        .map(|(reason, many)| format!("{} {many}", reason.name()));
    let settings = if differ > 0 {
        format!(
            "{differ} of {} not as planned{}{}",
            count(check.same + differ, "setting"),
            text_if(check.verdict == Same, ", but as good"),
            enclose(" (", [reasons.join(", ")], ")")
        )
    } else if check.same == 0 {
        "nothing is planned".to_owned()
    } else {
        count(check.same, "setting") + " as planned"
    };
    let skipped = skipped(&check.interfaces);
    let skipped = (!skipped.is_empty()).then(|| few(", ", &skipped, false));
    let unknown = check
        .unknown
        .iter()
        .map(|note| interface_or_machine(&note.interface));
    let reason = check
        .unknown
        .first()
        .map(|about| message(&about.note.to_string()));
    let undetermined = format!(" could not be determined{}", enclose(" (", reason, ")"));
    join_nonempty(
        ", ",
        [
            &wrong.take(MOST).join(", "),
            &enclose("+", (more > 0).then_some(more), " more interfaces"),
            &enclose("", [unknown.unique().join(", ")], &undetermined),
            &settings,
            &count_if_any(check.unmovable.len(), "IRQ", " cannot be moved"),
            &unjudged(&check.not_judged),
            &with_prefix("the policy skips ", skipped),
        ],
    )
}

/// Prints `'label'=value[UOM];warning;critical;minimum;maximum`, separated by spaces.
fn performance_data(check: &Check, thresholds: Thresholds) -> String {
    let texts = |ranges: Ranges| ranges.map(|range| with_prefix("", range));
    let [warning, critical] = texts(thresholds.local);
    let mut data = String::new();
    // The order does not depend on the states.
    for interface in check
        .interfaces
        .iter()
        .sorted_unstable_by_key(|interface| &interface.name)
    {
        // These have a meaning in performance data.
        let label = message(&interface.name).replace(['\'', '=', '|', ' '], "_");
        if let Some(share) = interface.local_percent().map(round_share) {
            data += &format!("'{label}_local'={share}%;{warning};{critical};0;100 ");
        }
    }
    let (differ, all) = (check.differ(), check.same + check.differ());
    let [warning, critical] = texts(thresholds.not_judged);
    let (not_judged, interfaces) = (check.not_judged.len(), check.interfaces.len());
    format!(
        "{data}settings_differ={differ};;;0;{all} not_judged={not_judged};{warning};{critical};0;{interfaces}"
    )
}

fn round_share(share: f64) -> f64 {
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
            assert_eq!(escape_label(value), expected);
        }
    }

    #[test]
    fn what_is_unknown_is_not_printed_and_the_last_success_is_read_back() {
        let check = Check::new(
            &nicpin::machine::Machine::default(),
            &nicpin::plan::Plan::default(),
            nicpin::report::difference::Differences::default(),
            vec![],
            None,
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
