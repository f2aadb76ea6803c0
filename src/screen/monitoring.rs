//! What monitoring systems read: metrics in the text format of Prometheus, as `node_exporter`'s textfile collector reads
//! it (<https://prometheus.io/docs/instrumenting/exposition_formats/>), and the one line of a monitoring plugin, `NICPIN
//! STATUS: text | performance data` (<https://www.monitoring-plugins.org/doc/guidelines.html>).

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::screen::text::count;
use crate::screen::{message, printable};
use nicpin::machine::setting::IRQ_FILES;
use nicpin::report::check::{Check, CheckState};
use nicpin::report::difference::Reason;
use nicpin::report::interface::InterfaceState;
use nicpin::report::plugin::{PluginStatus, Range, Thresholds};
use nicpin::report::run::Watcher;

/// When the machine was last found in the planned state.
const LAST_SUCCESS: &str = "nicpin_last_success_timestamp_seconds";

/// Labels of a sample.
type Labels<'a> = Vec<(&'static str, &'a str)>;

/// The result of a check and what a watcher counts, where there is one, as at most ten series for each interface.
/// `last_success`: when the machine was last found in the planned state, in seconds since 1970.
pub fn metrics(check: &Check, watcher: Option<&Watcher>, last_success: Option<u64>) -> String {
    let mut out = Families(String::new());
    let version = vec![("version", env!("CARGO_PKG_VERSION"))];
    out.gauge(
        "nicpin_build_info",
        "The version of nicpin.",
        [(version, 1)],
    );
    let plan = vec![("class", &*check.class), ("hash", &*check.hash)];
    out.gauge(
        "nicpin_plan_info",
        "The hardware class of the machine and the hash of its plan.",
        [(plan, 1)],
    );
    let flag = |holds: bool| [(Labels::new(), u8::from(holds))];
    out.gauge(
        "nicpin_check_success",
        "Whether the state of all interfaces could be determined (1) or not (0).",
        flag(check.verdict != CheckState::CouldNotBeDetermined),
    );
    out.gauge(
        "nicpin_as_planned",
        "Whether the machine is in the planned state (1) or not (0).",
        flag(check.verdict == CheckState::Same),
    );
    out.gauge(
        "nicpin_different_channels",
        "Interfaces whose number of channels is not as planned.",
        [(Labels::new(), check.channels.len())],
    );
    interfaces(check, watcher, &mut out);
    out.add(
        ("nicpin_restores_total", "counter"),
        "How often nicpin watch has restored the planned state since it started.",
        watcher.map(|watcher| (Labels::new(), watcher.restores)),
    );
    out.gauge(
        LAST_SUCCESS,
        "When the machine was last found in the planned state, in seconds since 1970.",
        last_success.map(|seconds| (Labels::new(), seconds)),
    );
    out.0
}

/// The families with a label `device`, as `node_exporter`'s `node_network_*` have it.
fn interfaces(check: &Check, watcher: Option<&Watcher>, out: &mut Families) {
    let states = InterfaceState::ALL.map(|state| format!("{} {}", state as u8, state.name()));
    let mut interfaces: Vec<_> = check.interfaces.iter().collect();
    interfaces.sort_by_key(|interface| &interface.name);
    let device = |name| vec![("device", name)];
    out.gauge(
        "nicpin_interface_state",
        &format!(
            "The state of the interface, a higher number is worse: {}.",
            states.join(", ")
        ),
        (interfaces.iter()).map(|one| (device(&*one.name), one.state as u8)),
    );
    out.gauge(
        "nicpin_interface_local_ratio",
        "The share of the interface's queue vectors that interrupt CPUs of its own node.",
        (interfaces.iter()).filter_map(|one| Some((device(&*one.name), one.local_share()?))),
    );
    let mut differ: Vec<(Labels<'_>, usize)> = Vec::new();
    for interface in &interfaces {
        // An unknown reason makes the state unknown, which is what alerts look at.
        let known = Reason::ALL.into_iter();
        let known = known.filter(|reason| *reason != Reason::Unknown);
        differ.extend(known.map(|reason| {
            let count = interface.reasons.get(&reason).copied().unwrap_or_default();
            let labels = vec![("device", &*interface.name), ("reason", reason.name())];
            (labels, count)
        }));
    }
    let of_machine = check.reasons_of("");
    differ.extend(
        of_machine
            .iter()
            .map(|(reason, &count)| (vec![("reason", reason.name())], count)),
    );
    out.gauge(
        "nicpin_different_settings",
        "Settings that differ from the plan, by reason; without device: settings of the whole machine.",
        differ,
    );
    let mut contended: BTreeMap<&str, usize> = BTreeMap::new();
    if let Some(watcher) = watcher {
        contended.extend(interfaces.iter().map(|interface| (&*interface.name, 0)));
        for left in &watcher.left_alone {
            *contended.entry(&left.setting.interface).or_default() +=
                usize::from(left.setting.path.starts_with(IRQ_FILES));
        }
    }
    out.gauge(
        "nicpin_interface_contended_vectors",
        "Vectors that nicpin watch does not restore for a while, because something else moved them again and again.",
        contended.into_iter().map(|(name, count)| (device(name), count)),
    );
}

/// The time of the last success in metrics that were printed before.
pub fn last_success(text: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(LAST_SUCCESS)?.trim().parse().ok())
}

/// The text so far.
struct Families(String);

impl Families {
    fn gauge<'a, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'a>, V)>,
    ) {
        self.add((name, "gauge"), help, samples);
    }

    /// Adds a family, unless it has no sample.
    fn add<'a, V: Display>(
        &mut self,
        (name, kind): (&str, &str),
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'a>, V)>,
    ) {
        let mut lines = String::new();
        for (labels, value) in samples {
            let labels: Vec<String> = labels
                .iter()
                .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
                .collect();
            let labels = if labels.is_empty() {
                String::new()
            } else {
                format!("{{{}}}", labels.join(","))
            };
            lines.push_str(&format!("{name}{labels} {value}\n"));
        }
        if !lines.is_empty() {
            self.0.push_str(&format!(
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{lines}"
            ));
        }
    }
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
    let (status, text) = match check {
        Ok(check) => {
            let data = performance_data(check, thresholds);
            let text = plain(&self::text(check, thresholds));
            (thresholds.judge(check), format!("{text} | {data}"))
        }
        Err(error) => (PluginStatus::Unknown, plain(error)),
    };
    let status = match status {
        PluginStatus::Ok => "OK",
        PluginStatus::Warning => "WARNING",
        PluginStatus::Critical => "CRITICAL",
        PluginStatus::Unknown => "UNKNOWN",
    };
    format!("NICPIN {status}: {text}\n")
}

/// One line, without the character that begins the performance data.
fn plain(text: &str) -> String {
    message(text).replace('|', "/")
}

fn text(check: &Check, thresholds: Thresholds) -> String {
    let outside = |share: f64, range: Option<Range>| {
        let text = |range| format!(", {} % local (range {range})", rounded(share));
        range.map(text).unwrap_or_default()
    };
    let mut named = Vec::new();
    for interface in &check.interfaces {
        let share = interface.local_percent();
        let status = thresholds.judge_share(share);
        let share = match (share, status) {
            (Some(share), PluginStatus::Warning) => outside(share, thresholds.warning),
            (Some(share), PluginStatus::Critical) => outside(share, thresholds.critical),
            _ => String::new(),
        };
        if interface.state.is_alarming() || status != PluginStatus::Ok {
            named.push(format!(
                "{} is {}{share}",
                interface.name,
                interface.state.name()
            ));
        }
    }
    let more = named.len().saturating_sub(MOST);
    named.truncate(MOST);
    let mut parts = named;
    if more > 0 {
        parts.push(format!("+{more} more interfaces"));
    }
    if !check.unknown.is_empty() {
        let unknown: Vec<&str> = check.unknown.iter().map(|one| &*one.interface).collect();
        parts.push(format!("{} could not be determined", unknown.join(", ")));
    }
    let differ = check.differ();
    if differ > 0 {
        let reasons: Vec<String> = check
            .reasons()
            .iter()
            .map(|(reason, many)| format!("{} {many}", reason.name()))
            .collect();
        let reasons = match reasons.as_slice() {
            [] => String::new(),
            reasons => format!(" ({})", reasons.join(", ")),
        };
        let all = count(check.same + differ, "setting");
        let but = if check.verdict == CheckState::Same {
            ", but as good"
        } else {
            ""
        };
        parts.push(format!("{differ} of {all} not as planned{but}{reasons}"));
    } else {
        parts.push(format!("{} as planned", count(check.same, "setting")));
    }
    if !check.unmovable.is_empty() {
        let vectors = count(check.unmovable.len(), "vector");
        parts.push(format!("{vectors} cannot be moved"));
    }
    parts.join(", ")
}

/// `'label'=value[UOM];warning;critical;minimum;maximum`, separated by spaces.
fn performance_data(check: &Check, thresholds: Thresholds) -> String {
    let text = |range: Option<Range>| range.map(|range| range.to_string()).unwrap_or_default();
    let (warning, critical) = (text(thresholds.warning), text(thresholds.critical));
    let mut data = String::new();
    for interface in &check.interfaces {
        // Without the characters that mean something in performance data.
        let label = message(&interface.name).replace(['\'', '=', '|', ' '], "_");
        if let Some(share) = interface.local_percent() {
            data += &format!(
                "'{label}_local'={}%;{warning};{critical};0;100 ",
                rounded(share)
            );
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
            &nicpin::plan::Plan::default(),
            nicpin::report::difference::Differences::default(),
            vec![],
            vec![],
            vec![],
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
