//! The result of `check`: what differs from the plan, and why; and as a monitoring plugin returns it: Nagios, Icinga,
//! Naemon and others (<https://www.monitoring-plugins.org/doc/guidelines.html>).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};

use crate::plan::{ChannelChange, HostSummary, Note, Plan};
use crate::report::difference::{
    Difference, Differences, Fallback, Reason, UnmovableVector, Unplannable,
};
use crate::report::exit::Exit;
use crate::report::interface::{InterfaceReport, InterfaceState};

/// The name and version of the JSON form.
pub const SCHEMA: &str = "nicpin.check/1";

/// The result of `check`; its JSON form is `nicpin.check/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    pub schema: &'static str,
    pub verdict: CheckState,
    /// The worst state of all interfaces; `None` without interfaces.
    pub state: Option<InterfaceState>,
    /// Worst first; the JSON form has their summaries.
    #[serde(serialize_with = "summaries")]
    pub interfaces: Vec<InterfaceReport>,
    /// The plan's hash.
    pub hash: String,
    /// The hardware class of the machine.
    pub class: String,
    /// CPUs and nodes of the machine.
    pub host: HostSummary,
    /// The number of settings that are as planned.
    pub same: usize,
    /// Settings that are not as planned.
    pub differs: Vec<Difference>,
    /// Vectors that apply placed on another CPU because the planned one had no free interrupt vector; they count as planned.
    pub fallbacks: Vec<Fallback>,
    /// Planned changes of channels.
    pub channels: Vec<ChannelChange>,
    /// Requested interfaces whose state could not be determined.
    pub unknown: Vec<Unplannable>,
    /// Kernel-managed vectors of queues, which cannot be moved.
    pub unmovable: Vec<UnmovableVector>,
    /// Other tools on the machine that set affinity: `irqbalance`, unless it leaves the planned IRQs alone for good, with
    /// its version if it may have moved something; `tuned`, `systemd-udevd` and scripts by their paths.
    pub other_tools: Vec<String>,
    /// Notes about selectors that match nothing, and about a machine without interfaces.
    pub notes: Vec<Note>,
    /// Interfaces that are up, were not requested by name and cannot be planned.
    pub left_alone: Vec<Unplannable>,
}

fn summaries<S: Serializer>(interfaces: &[InterfaceReport], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(interfaces.iter().map(|interface| &interface.summary))
}

/// The verdicts of `check`. The state of its interfaces decides, not the number of settings: see [`InterfaceState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// Everything is as planned, or as good.
    Same,
    /// Something would be better as planned.
    Differs,
    /// Not every requested interface can be planned.
    CouldNotBeDetermined,
}

fn other_tools(plan: &Plan) -> Vec<String> {
    let irqbalance = plan
        .irqbalance
        .iter()
        .filter(|running| !running.lasts)
        .map(|_| "irqbalance".to_owned());
    let others = plan.notes.iter().filter_map(|note| match note {
        Note::TunedRunning { .. } => Some("tuned".to_owned()),
        Note::LinkIrqAffinity { .. } => Some("systemd-udevd".to_owned()),
        Note::CloudScript { path, .. } => Some(path.clone()),
        _ => None,
    });
    irqbalance.chain(others).collect()
}

impl Check {
    pub fn exit(&self) -> Exit {
        match self.verdict {
            CheckState::Same => Exit::Planned,
            CheckState::Differs => Exit::Differs,
            CheckState::CouldNotBeDetermined => Exit::Failed,
        }
    }

    /// The verdict on a plan, from the settings that differ, the interfaces that cannot be planned, and the states of
    /// the interfaces.
    #[doc(hidden)]
    pub fn new(
        plan: &Plan,
        Differences { differs, fallbacks }: Differences,
        unknown: Vec<Unplannable>,
        left_alone: Vec<Unplannable>,
        interfaces: Vec<InterfaceReport>,
    ) -> Self {
        let of_machine = differs.iter().any(|one| one.write.interface.is_empty());
        let verdict = if !unknown.is_empty() {
            CheckState::CouldNotBeDetermined
        } else if of_machine || interfaces.iter().any(|one| one.state.differs()) {
            CheckState::Differs
        } else {
            CheckState::Same
        };
        let notes = plan
            .notes
            .iter()
            .filter(|note| note.is_absent() || **note == Note::NothingToDo);
        Self {
            schema: SCHEMA,
            verdict,
            state: InterfaceState::worst(interfaces.iter().map(|one| one.state)),
            interfaces,
            hash: plan.hash.clone(),
            class: plan.class.clone(),
            host: plan.host.clone(),
            same: plan.unchanged + fallbacks.len(),
            differs,
            fallbacks,
            channels: plan.channels.clone(),
            unknown,
            unmovable: UnmovableVector::of(plan),
            other_tools: other_tools(plan),
            notes: notes.cloned().collect(),
            left_alone,
        }
    }

    /// The number of settings that are not as planned, channels included.
    pub fn differ(&self) -> usize {
        self.differs.len() + self.channels.len()
    }

    /// How many settings differ for each reason.
    pub fn reasons(&self) -> BTreeMap<Reason, usize> {
        self.reasons_if(|_| true)
    }

    /// The same of one interface, or of the whole machine where the name is empty.
    pub fn reasons_of(&self, interface: &str) -> BTreeMap<Reason, usize> {
        self.reasons_if(|one| *one.write.interface == *interface)
    }

    fn reasons_if(&self, is_meant: impl Fn(&&Difference) -> bool) -> BTreeMap<Reason, usize> {
        let mut counts = BTreeMap::new();
        for one in self.differs.iter().filter(is_meant) {
            *counts.entry(one.reason).or_default() += 1;
        }
        counts
    }

    /// The stricter verdict, by which vectors that cannot be moved are differences.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.differs_if(!self.unmovable.is_empty());
        self
    }

    /// The stricter verdict, by which settings that are as good as planned are differences.
    #[must_use]
    pub fn exact(mut self) -> Self {
        self.differs_if(self.differ() > 0);
        self
    }

    fn differs_if(&mut self, differs: bool) {
        if self.verdict == CheckState::Same && differs {
            self.verdict = CheckState::Differs;
        }
    }
}

/// The status of a plugin, which is its exit code, in the order of these systems: the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PluginStatus {
    Ok,
    Unknown,
    Warning,
    Critical,
}

impl From<PluginStatus> for Exit {
    /// The numbers of plugins are others than those of every other command.
    fn from(status: PluginStatus) -> Self {
        match status {
            PluginStatus::Ok => Self::Planned,
            PluginStatus::Warning => Self::Failed,
            PluginStatus::Critical => Self::Differs,
            PluginStatus::Unknown => Self::PluginUnknown,
        }
    }
}

/// A range of values, which alerts outside of it, or inside with `@`: `10`, `10:`, `~:10`, `10:20`, `@10:20`.
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
        let error = || format!("`{text}` is not a range, such as `95:` for an alert below 95");
        let number = |text: &str| {
            text.parse::<f64>()
                .ok()
                .filter(|number| number.is_finite())
                .ok_or_else(error)
        };
        let (inside, range) = text
            .strip_prefix('@')
            .map_or((false, text), |range| (true, range));
        let (start, end) = range.split_once(':').unwrap_or(("0", range));
        let start = match start {
            "~" => f64::NEG_INFINITY,
            "" => 0.0,
            start => number(start)?,
        };
        let end = if end.is_empty() && range.contains(':') {
            f64::INFINITY
        } else {
            number(end)?
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

/// For the local share of an interface, in percent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Thresholds {
    pub warning: Option<Range>,
    pub critical: Option<Range>,
}

impl Thresholds {
    /// The status of a local share in percent.
    pub fn judge_share(&self, share: Option<f64>) -> PluginStatus {
        let alerts = |range: Option<Range>| range.zip(share).is_some_and(|(r, s)| r.alerts(s));
        match (alerts(self.critical), alerts(self.warning)) {
            (true, _) => PluginStatus::Critical,
            (_, true) => PluginStatus::Warning,
            _ => PluginStatus::Ok,
        }
    }

    /// The status of a machine.
    pub fn judge(&self, check: &Check) -> PluginStatus {
        let least = match check.verdict {
            CheckState::Same => PluginStatus::Ok,
            CheckState::Differs => PluginStatus::Warning,
            CheckState::CouldNotBeDetermined => PluginStatus::Unknown,
        };
        check
            .interfaces
            .iter()
            .map(|interface| {
                let by_share = self.judge_share(interface.local_percent());
                match check.verdict {
                    CheckState::Same => by_share,
                    _ => by_share.max(of_state(interface.state)),
                }
            })
            .fold(least, PluginStatus::max)
    }
}

fn of_state(state: InterfaceState) -> PluginStatus {
    match state {
        InterfaceState::Unknown => PluginStatus::Unknown,
        state if state.is_alarming() => PluginStatus::Critical,
        InterfaceState::Crowded | InterfaceState::Untuned => PluginStatus::Warning,
        _ => PluginStatus::Ok,
    }
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
