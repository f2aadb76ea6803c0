//! The result of a check as a monitoring plugin returns it: Nagios, Icinga, Naemon and others
//! (<https://www.monitoring-plugins.org/doc/guidelines.html>).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::report::check::{Check, CheckState};
use crate::report::difference::Reason;
use crate::report::exit::Exit;
use crate::report::state::InterfaceState;

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

/// What the plugin returns.
#[derive(Debug, Clone, PartialEq)]
pub struct Plugin {
    pub status: PluginStatus,
    pub thresholds: Thresholds,
    pub found: Found,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// The check failed, with this error.
    Error(String),
    State(PluginState),
}

/// The state of the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginState {
    /// Settings as planned.
    pub same: usize,
    /// Settings that are not, changes of channels included.
    pub differ: usize,
    pub reasons: BTreeMap<Reason, usize>,
    /// Vectors that the kernel does not allow to move.
    pub unmovable: usize,
    /// Requested interfaces whose state could not be determined.
    pub unknown: Vec<String>,
    /// Worst first: name, state, local share in percent, and its status by the thresholds.
    pub interfaces: Vec<(String, InterfaceState, Option<f64>, PluginStatus)>,
}

impl Plugin {
    pub fn failed(error: String) -> Self {
        Self {
            status: PluginStatus::Unknown,
            thresholds: Thresholds::default(),
            found: Found::Error(error),
        }
    }

    pub fn new(check: &Check, thresholds: Thresholds) -> Self {
        let by_share = |share: Option<f64>| match share {
            Some(share) if thresholds.critical.is_some_and(|range| range.alerts(share)) => {
                PluginStatus::Critical
            }
            Some(share) if thresholds.warning.is_some_and(|range| range.alerts(share)) => {
                PluginStatus::Warning
            }
            _ => PluginStatus::Ok,
        };
        let interfaces: Vec<_> = check
            .interfaces
            .iter()
            .map(|interface| {
                let share = interface.local_share().map(|share| share * 100.0);
                (
                    interface.name.clone(),
                    interface.state,
                    share,
                    by_share(share),
                )
            })
            .collect();
        let of_check = match check.verdict {
            CheckState::Same => PluginStatus::Ok,
            CheckState::Differs | CheckState::CouldNotBeDetermined => {
                let of_states = check
                    .interfaces
                    .iter()
                    .map(|interface| of_state(interface.state))
                    .max();
                let undetermined = check.verdict == CheckState::CouldNotBeDetermined;
                let least = if undetermined {
                    PluginStatus::Unknown
                } else {
                    PluginStatus::Warning
                };
                of_states.unwrap_or(least).max(least)
            }
        };
        let by_shares = interfaces
            .iter()
            .map(|(.., status)| *status)
            .max()
            .unwrap_or(PluginStatus::Ok);
        let mut reasons = BTreeMap::new();
        for difference in &check.differs {
            *reasons.entry(difference.reason).or_default() += 1;
        }
        let state = PluginState {
            same: check.same,
            differ: check.differs.len() + check.channels.len(),
            reasons,
            unmovable: check.unmovable.len(),
            unknown: check
                .unknown
                .iter()
                .map(|unknown| unknown.interface.clone())
                .collect(),
            interfaces,
        };
        Self {
            status: of_check.max(by_shares),
            thresholds,
            found: Found::State(state),
        }
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
