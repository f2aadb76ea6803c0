//! The result of `check`, and its form for monitoring plugins: Nagios, Icinga, Naemon and others
//! (<https://www.monitoring-plugins.org/doc/guidelines.html>).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use itertools::{Itertools as _, chain};
use serde::{Deserialize, Serialize, Serializer};

use crate::machine::Machine;
use crate::machine::sample::Delta;
use crate::plan::{ChannelChange, HostSummary, Note, Plan};
use crate::report::check::CheckState::{CouldNotBeDetermined, Differs, Same};
use crate::report::check::PluginStatus::{Critical, Warning};
use crate::report::difference::{
    Difference, Differences, Fallback, NoteAbout, Reason, UnmovableVector, counts,
};
use crate::report::exit::Exit;
use crate::report::interface::{InterfaceReport, InterfaceState, interfaces, not_judged};

pub const SCHEMA: &str = "nicpin.check/1";

/// Settings that differ from the plan, with reasons; the JSON form is `nicpin.check/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    pub schema: &'static str,
    pub verdict: CheckState,
    /// `None` without interfaces.
    pub state: Option<InterfaceState>,
    /// The worst first; the JSON form has their summaries.
    #[serde(serialize_with = "summaries")]
    pub interfaces: Vec<InterfaceReport>,
    pub not_judged: Vec<String>,
    /// Whether there is a record of an apply since boot.
    pub applied: bool,
    /// A capture, or a tree without `/run`: what was applied is not known.
    #[serde(skip)]
    pub has_no_record: bool,
    pub hash: String,
    pub class: String,
    pub host: HostSummary,
    /// Settings that hold their planned value.
    pub same: usize,
    pub differs: Vec<Difference>,
    /// Vectors on a fallback CPU, which count as planned.
    pub fallbacks: Vec<Fallback>,
    pub channels: Vec<ChannelChange>,
    pub unknown: Vec<NoteAbout>,
    pub unmovable: Vec<UnmovableVector>,
    /// Tools that set affinity: `irqbalance`, unless it permanently ignores the planned IRQs, with its version if it
    /// may have moved a vector; `tuned`, `systemd-udevd` and scripts by their paths.
    pub other_tools: Vec<String>,
    /// Notes about selectors that match nothing, and about a machine without interfaces.
    pub notes: Vec<Note>,
    /// Interfaces with vectors that are not understood. An interface without other vectors is listed only if it is up
    /// and was not requested by name.
    pub left_alone: Vec<NoteAbout>,
    #[serde(skip)]
    differs_strictly: bool,
}

fn summaries<S: Serializer>(interfaces: &[InterfaceReport], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(interfaces.iter().map(|interface| &interface.summary))
}

/// The verdict follows from the states of the interfaces, not from the number of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// Every setting is as planned, or as good.
    Same,
    /// Some setting would be better as planned.
    Differs,
    /// Not every requested interface can be planned.
    CouldNotBeDetermined,
}

pub(crate) fn other_tools(plan: &Plan, irqbalance_version: Option<&str>) -> Vec<String> {
    let irqbalance = plan.irqbalance.iter().filter(|running| !running.lasts);
    let others = plan.notes.iter().filter_map(|note| match note {
        Note::TunedRunning { .. } => Some("tuned"),
        Note::LinkIrqAffinity { .. } | Note::LinkRps { .. } => Some("systemd-udevd"),
        Note::CloudScript { path, .. } => Some(path),
        _ => None,
    });
    irqbalance
        .map(|_| match irqbalance_version {
            Some(version) => format!("irqbalance {version}"),
            None => "irqbalance".to_owned(),
        })
        .chain(others.map(str::to_owned))
        .unique()
        .collect()
}

impl Check {
    pub fn exit(&self) -> Exit {
        match self.verdict {
            Same => Exit::Planned,
            Differs => Exit::Differs,
            CouldNotBeDetermined => Exit::Failed,
        }
    }

    #[doc(hidden)]
    pub fn new(
        machine: &Machine,
        plan: &Plan,
        found: Differences,
        unknown: Vec<NoteAbout>,
        watched: Option<&Delta>,
    ) -> Self {
        let interfaces = interfaces(machine, plan, &found, &unknown, watched);
        let not_judged = not_judged(plan, &interfaces);
        let Differences { differs, fallbacks } = found;
        let of_machine = differs.iter().any(|difference| difference.is_of(""));
        let verdict = if !unknown.is_empty() {
            CouldNotBeDetermined
        } else if of_machine || interfaces.iter().any(|interface| interface.state.differs()) {
            Differs
        } else {
            Same
        };
        let notes = plan.notes.iter().filter(|note| note.is_of_selection());
        Self {
            schema: SCHEMA,
            verdict,
            state: InterfaceState::worst(interfaces.iter().map(|interface| interface.state)),
            interfaces,
            applied: false,
            has_no_record: false,
            hash: plan.hash.clone(),
            class: plan.class.clone(),
            host: plan.host.clone(),
            same: plan.unchanged + fallbacks.len(),
            differs,
            fallbacks,
            channels: plan.channels.clone(),
            unknown,
            unmovable: UnmovableVector::of(plan),
            other_tools: other_tools(plan, None),
            notes: notes.cloned().collect(),
            left_alone: NoteAbout::left_alone(plan),
            not_judged,
            differs_strictly: false,
        }
    }

    /// Whether the kernel refused all that differs when apply wrote it: to write it again would change nothing.
    pub fn is_refused(&self) -> bool {
        let refused = |difference: &Difference| difference.reason == Reason::KernelRefused;
        self.channels.is_empty() && !self.differs.is_empty() && self.differs.iter().all(refused)
    }

    /// Settings that differ, channels included.
    pub fn differ(&self) -> usize {
        self.differs.len() + self.channels.len()
    }

    pub fn reasons(&self) -> BTreeMap<Reason, usize> {
        counts(self.differs.iter().map(|difference| difference.reason))
    }

    /// The settings of one interface, or of the whole machine if the name is empty. Channels have no reason.
    pub fn reasons_of(&self, interface: &str) -> BTreeMap<Reason, usize> {
        let differs = self.differs.iter();
        let own = differs.filter(|difference| difference.is_of(interface));
        counts(own.map(|difference| difference.reason))
    }

    /// Counts as differences: with `strict` vectors that cannot be moved, with `exact` settings that are as good as
    /// planned.
    #[must_use]
    pub fn counting(mut self, strict: bool, exact: bool) -> Self {
        if strict && !self.unmovable.is_empty() || exact && self.differ() > 0 {
            self.verdict = self.verdict.max(Differs);
            self.differs_strictly = true;
        }
        self
    }
}

/// The status of a monitoring plugin; the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PluginStatus {
    Ok,
    Unknown,
    Warning,
    Critical,
}

impl From<PluginStatus> for Exit {
    fn from(status: PluginStatus) -> Self {
        match status {
            PluginStatus::Ok => Self::Planned,
            Warning => Self::Failed,
            Critical => Self::Differs,
            PluginStatus::Unknown => Self::PluginUnknown,
        }
    }
}

/// A range that alerts for values outside of it, or inside with `@`: `10`, `10:`, `~:10`, `10:20`, `@10:20`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    start: f64,
    end: f64,
    inside: bool,
}

impl Range {
    pub fn alerts(self, value: f64) -> bool {
        (self.start <= value && value <= self.end) == self.inside
    }
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |number: &str| {
            number
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite())
                .ok_or_else(|| {
                    format!("`{text}` is not a range, such as `95:` for an alert below 95")
                })
        };
        let range = text.strip_prefix('@');
        let (inside, range) = (range.is_some(), range.unwrap_or(text));
        let (start, end) = range.split_once(':').unwrap_or(("0", range));
        let start = match start {
            "~" => f64::NEG_INFINITY,
            "" => 0.0,
            start => number(start)?,
        };
        let end = match end {
            "" if range.contains(':') => f64::INFINITY,
            end => number(end)?,
        };
        if start > end {
            return Err(format!("`{text}`: a range starts at the smaller number"));
        }
        Ok(Self { start, end, inside })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.inside { "@" } else { "" })?;
        match self.start {
            f64::NEG_INFINITY => f.write_str("~:")?,
            start => write!(f, "{start}:")?,
        }
        if self.end.is_finite() {
            write!(f, "{}", self.end)
        } else {
            Ok(())
        }
    }
}

/// The warning and the critical range for a figure.
pub type Ranges = [Option<Range>; 2];

#[derive(Debug, Clone, Copy, Default)]
pub struct Thresholds {
    /// For the percentage of an interface's queue vectors that are local.
    pub local: Ranges,
    /// For the number of interfaces that are up and cannot be judged.
    pub not_judged: Ranges,
}

impl Thresholds {
    pub fn judge(&self, check: &Check) -> PluginStatus {
        let least = match check.verdict {
            Same => PluginStatus::Ok,
            Differs => Warning,
            CouldNotBeDetermined => PluginStatus::Unknown,
        };
        let by_state = check
            .interfaces
            .iter()
            .map(|interface| match interface.state {
                InterfaceState::Unknown => PluginStatus::Unknown,
                state if state.is_alarming() => Critical,
                state if state.differs() => Warning,
                _ => PluginStatus::Ok,
            });
        let by_share = check.interfaces.iter();
        let by_share =
            by_share.filter_map(|interface| alert(self.local, interface.local_percent()));
        let not_judged = alert(self.not_judged, Some(check.not_judged.len() as f64));
        let alerts = by_share.chain(not_judged).map(|(status, _)| status);
        let strict = check.differs_strictly.then_some(Warning);
        chain!(by_state, alerts, strict).fold(least, PluginStatus::max)
    }
}

/// The worse of the alerts for a figure, with its range.
pub fn alert([warning, critical]: Ranges, figure: Option<f64>) -> Option<(PluginStatus, Range)> {
    let figure = figure?;
    [(Critical, critical), (Warning, warning)]
        .into_iter()
        .filter_map(|(status, range)| Some((status, range?)))
        .find(|(_, range)| range.alerts(figure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_alert_as_the_guidelines_say() {
        for (range, alerts, quiet) in [
            ("10", vec![-1.0, 10.1], vec![0.0, 10.0]),
            ("10:", vec![9.9, -1.0], vec![10.0, 1e9]),
            ("~:10", vec![10.1], vec![-1e9, 10.0]),
            ("10:20", vec![9.0, 21.0], vec![10.0, 20.0]),
            ("@10:20", vec![10.0, 20.0], vec![9.0, 21.0]),
            (":10", vec![-1.0, 11.0], vec![0.0]),
        ] {
            let parsed: Range = range.parse().unwrap();
            assert!(alerts.iter().all(|&value| parsed.alerts(value)), "{range}");
            assert!(!quiet.iter().any(|&value| parsed.alerts(value)), "{range}");
            assert_eq!(parsed.to_string().parse(), Ok(parsed), "{range}");
        }
        for bad in ["", "a", "20:10", "10:x", "@", "nan", "inf:", "~", "1:2:3"] {
            assert!(bad.parse::<Range>().is_err(), "{bad}");
        }
    }
}
