//! The result of a check as the one line of a monitoring plugin: `NICPIN STATUS: text | performance data`
//! (<https://www.monitoring-plugins.org/doc/guidelines.html>).

use crate::screen::message;
use crate::screen::text::count;
use nicpin::report::plugin::{Found, Plugin, PluginState, PluginStatus, Range, Thresholds};

/// Interfaces that are named; all have performance data.
const MOST: usize = 8;

pub fn line(plugin: &Plugin) -> String {
    let status = match plugin.status {
        PluginStatus::Ok => "OK",
        PluginStatus::Warning => "WARNING",
        PluginStatus::Critical => "CRITICAL",
        PluginStatus::Unknown => "UNKNOWN",
    };
    match &plugin.found {
        Found::Error(error) => format!("NICPIN {status}: {}\n", plain(error)),
        Found::State(state) => {
            let data = performance_data(state, plugin.thresholds);
            format!(
                "NICPIN {status}: {} | {data}\n",
                plain(&text(state, plugin.thresholds))
            )
        }
    }
}

/// One line, without the character that begins the performance data.
fn plain(text: &str) -> String {
    message(text).replace('|', "/")
}

fn text(state: &PluginState, thresholds: Thresholds) -> String {
    let mut parts: Vec<String> = Vec::new();
    let named = state
        .interfaces
        .iter()
        .filter(|(_, state, _, status)| state.is_alarming() || *status != PluginStatus::Ok);
    for (name, state, share, status) in named.clone().take(MOST) {
        let share = match (share, status) {
            (Some(share), PluginStatus::Warning) => outside(*share, thresholds.warning),
            (Some(share), PluginStatus::Critical) => outside(*share, thresholds.critical),
            _ => String::new(),
        };
        parts.push(format!("{name} is {}{share}", state.name()));
    }
    let more = named.count().saturating_sub(MOST);
    if more > 0 {
        parts.push(format!("+{more} more interfaces"));
    }
    if !state.unknown.is_empty() {
        parts.push(format!(
            "{} could not be determined",
            state.unknown.join(", ")
        ));
    }
    if state.differ > 0 {
        let reasons: Vec<String> = state
            .reasons
            .iter()
            .map(|(reason, many)| format!("{} {many}", reason.name()))
            .collect();
        let reasons = if reasons.is_empty() {
            String::new()
        } else {
            format!(" ({})", reasons.join(", "))
        };
        let all = count(state.same + state.differ, "setting");
        parts.push(format!("{} of {all} not as planned{reasons}", state.differ));
    } else {
        parts.push(format!("{} as planned", count(state.same, "setting")));
    }
    if state.unmovable > 0 {
        parts.push(format!(
            "{} cannot be moved",
            count(state.unmovable, "vector")
        ));
    }
    parts.join(", ")
}

fn outside(share: f64, range: Option<Range>) -> String {
    range
        .map(|range| format!(", {} % local (range {range})", rounded(share)))
        .unwrap_or_default()
}

/// `'label'=value[UOM];warning;critical;minimum;maximum`, separated by spaces.
fn performance_data(state: &PluginState, thresholds: Thresholds) -> String {
    let text = |range: Option<Range>| range.map(|range| range.to_string()).unwrap_or_default();
    let (warning, critical) = (text(thresholds.warning), text(thresholds.critical));
    let shares = state
        .interfaces
        .iter()
        .filter_map(|(name, _, share, _)| Some((name, (*share)?)));
    let mut data: Vec<String> = shares
        .map(|(name, share)| {
            format!(
                "'{}_local'={}%;{warning};{critical};0;100",
                label(name),
                rounded(share)
            )
        })
        .collect();
    data.push(format!(
        "settings_differ={};;;0;{}",
        state.differ,
        state.same + state.differ
    ));
    data.join(" ")
}

/// The name of an interface without the characters that mean something in performance data.
fn label(name: &str) -> String {
    message(name).replace(['\'', '=', '|', ' '], "_")
}

/// At most one digit after the point.
fn rounded(share: f64) -> f64 {
    (share * 10.0).round() / 10.0
}
