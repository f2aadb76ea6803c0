//! The result of a check as a monitoring plugin returns it: Nagios, Icinga, Naemon and others
//! (<https://www.monitoring-plugins.org/doc/guidelines.html>).

use std::fmt;
use std::str::FromStr;

use crate::report::check::{Check, CheckState};
use crate::report::exit::Exit;
use crate::report::interface::{InterfaceReport, InterfaceState};

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
        let of_interface = |interface: &InterfaceReport| {
            let by_share = self.judge_share(interface.local_percent());
            match check.verdict {
                CheckState::Same => by_share,
                _ => by_share.max(of_state(interface.state)),
            }
        };
        let interfaces = check.interfaces.iter().map(of_interface);
        interfaces.fold(least, PluginStatus::max)
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
