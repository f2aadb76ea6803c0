//! Metrics in the text format of Prometheus, as `node_exporter`'s textfile collector reads it
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use std::fmt::Display;

use crate::screen::printable;
use nicpin::report::check::CheckState;
use nicpin::report::difference::Reason;
use nicpin::report::metrics::Metrics;
use nicpin::report::state::InterfaceState;

/// The metric of [`Metrics::last_success`].
const LAST_SUCCESS: &str = "nicpin_last_success_timestamp_seconds";

/// Labels of a sample.
type Labels<'a> = Vec<(&'static str, &'a str)>;

/// Metrics as text, at most ten series for each interface.
pub fn metrics(metrics: &Metrics) -> String {
    let mut out = Families(String::new());
    let version = vec![("version", env!("CARGO_PKG_VERSION"))];
    out.gauge(
        "nicpin_build_info",
        "The version of nicpin.",
        [(version, 1)],
    );
    let plan = metrics
        .plan
        .iter()
        .map(|(class, hash)| (vec![("class", class.as_str()), ("hash", hash)], 1));
    out.gauge(
        "nicpin_plan_info",
        "The hardware class of the machine and the hash of its plan.",
        plan,
    );
    let verdict = |holds: fn(CheckState) -> bool| {
        metrics
            .verdict
            .map(|verdict| (Labels::new(), u8::from(holds(verdict))))
    };
    out.gauge(
        "nicpin_check_success",
        "Whether the state of all interfaces could be determined (1) or not (0).",
        verdict(|verdict| verdict != CheckState::CouldNotBeDetermined),
    );
    out.gauge(
        "nicpin_as_planned",
        "Whether the machine is in the planned state (1) or not (0).",
        verdict(|verdict| verdict == CheckState::Same),
    );
    out.gauge(
        "nicpin_different_channels",
        "Interfaces whose number of channels is not as planned.",
        metrics.channels.map(|channels| (Labels::new(), channels)),
    );
    interfaces(metrics, &mut out);
    out.add(
        ("nicpin_restores_total", "counter"),
        "How often nicpin watch has restored the planned state since it started.",
        metrics.restores.map(|restores| (Labels::new(), restores)),
    );
    out.gauge(
        LAST_SUCCESS,
        "When the machine was last found in the planned state, in seconds since 1970.",
        metrics.last_success.map(|seconds| (Labels::new(), seconds)),
    );
    out.0
}

/// The families with a label `device`, as `node_exporter`'s `node_network_*` have it.
fn interfaces(metrics: &Metrics, out: &mut Families) {
    let states: Vec<String> = InterfaceState::ALL
        .iter()
        .map(|&state| format!("{} {}", state as u8, state.name()))
        .collect();
    let all = || {
        metrics
            .interfaces
            .iter()
            .map(|(name, interface)| (name.as_str(), interface))
    };
    out.gauge(
        "nicpin_interface_state",
        &format!(
            "The state of the interface, a higher number is worse: {}.",
            states.join(", ")
        ),
        all().map(|(device, interface)| (vec![("device", device)], interface.state as u8)),
    );
    out.gauge(
        "nicpin_interface_local_ratio",
        "The share of the interface's queue vectors that interrupt CPUs of its own node.",
        all().filter_map(|(device, interface)| Some((vec![("device", device)], interface.local?))),
    );
    let mut differ: Vec<(Labels<'_>, usize)> = Vec::new();
    for (device, interface) in all() {
        differ.extend(Reason::ALL.into_iter().map(|reason| {
            let count = interface.differ.get(&reason).copied().unwrap_or_default();
            (vec![("device", device), ("reason", reason.name())], count)
        }));
    }
    let of_machine = metrics.differ.iter();
    differ.extend(of_machine.map(|(reason, &count)| (vec![("reason", reason.name())], count)));
    out.gauge(
        "nicpin_different_settings",
        "Settings that differ from the plan, by reason; without device: settings of the whole machine.",
        differ,
    );
    out.gauge(
        "nicpin_interface_contended_vectors",
        "Vectors that nicpin watch leaves alone, because something else moved them again and again.",
        metrics.contended.iter().map(|(device, &count)| (vec![("device", device.as_str())], count)),
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
        let none = metrics(&Metrics::default());
        assert!(
            none.lines().all(|line| line.contains("nicpin_build_info")),
            "{none}"
        );
        assert_eq!(last_success(&none), None);
        let some = metrics(&Metrics {
            restores: Some(3),
            last_success: Some(1_700_000_000),
            contended: [("eth0".to_owned(), 2)].into(),
            ..Metrics::default()
        });
        assert_eq!(last_success(&some), Some(1_700_000_000));
        for line in [
            "nicpin_restores_total 3",
            "nicpin_interface_contended_vectors{device=\"eth0\"} 2",
        ] {
            assert!(some.lines().any(|printed| printed == line), "{some}");
        }
    }
}
