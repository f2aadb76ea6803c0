//! A host of a fleet, from a JSON document or a check of its copy.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fleet::shape::{Shape, ShapeInterface, count};
use nicpin::plan::{self, HostSummary};
use nicpin::report::check::CheckState::{CouldNotBeDetermined, Differs, Same};
use nicpin::report::check::{self, Check, CheckState};
use nicpin::report::difference::Reason;
use nicpin::report::exit::ERROR_SCHEMA;
use nicpin::report::interface::InterfaceState;

pub struct Host {
    pub class: String,
    pub hash: String,
    pub outcome: HostOutcome,
    pub shape: Shape,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct HostOutcome {
    pub verdict: CheckState,
    /// The worst state; `None` from a plan, which has none.
    pub state: Option<InterfaceState>,
    pub causes: Vec<DriftCause>,
    pub not_judged: Vec<String>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DriftCause {
    /// The word of a [`Reason`], or `channels-differ`, `cannot-be-moved` (`check --strict`), `could-not-be-determined`;
    /// from a plan or a capture `not-known`.
    pub reason: &'static str,
    /// For `moved-by-other`: tools on the host that set affinity.
    pub by: Vec<String>,
}

#[derive(Deserialize)]
struct PlanOrCheck {
    schema: String,
    hash: String,
    #[serde(default)]
    class: String,
    host: HostSummary,
    interfaces: Vec<ShapeInterface>,
    #[serde(default, deserialize_with = "count")]
    writes: usize,
    #[serde(default, deserialize_with = "count")]
    channels: usize,
    gains: Option<bool>,
    #[serde(default)]
    not_judged: Vec<String>,
    verdict: Option<CheckState>,
    state: Option<InterfaceState>,
    #[serde(default)]
    differs: Vec<Differing>,
    #[serde(default)]
    other_tools: Vec<String>,
    /// Nothing tells what was applied.
    #[serde(skip)]
    is_capture: bool,
}

#[derive(Deserialize)]
struct Differing {
    reason: Reason,
}

const NOT_KNOWN: &str = "not-known";

pub type ReadHost = (Option<String>, Result<Host, String>);

impl Host {
    /// Parses a plan, a check, or Ansible's results with these in them.
    pub fn parse(text: &str) -> Vec<ReadHost> {
        let unreadable = match serde_json::from_str::<PlanOrCheck>(text) {
            Ok(document) if is_known(&document.schema) => return vec![document.host()],
            other => other.err(),
        };
        let mut found = Vec::new();
        let reason = match serde_json::from_str::<Value>(text) {
            Err(error) => error.to_string(),
            Ok(value) => match (value["schema"].as_str(), unreadable) {
                (Some(schema), Some(error)) if is_known(schema) => {
                    return vec![(None, Err(error.to_string()))];
                }
                (Some(schema), _) if error_of(&value).is_none() => {
                    format!("its schema is `{schema}`")
                }
                _ => {
                    search(&value, None, &mut found);
                    value["msg"]
                        .as_str()
                        .unwrap_or("it has no schema")
                        .to_owned()
                }
            },
        };
        if found.is_empty() {
            let text = "expected the output of `nicpin check --json` or `nicpin plan --json`";
            found.push((None, Err(format!("{reason}; {text}"))));
        }
        found
    }

    pub fn from_check(check: &Check) -> Result<ReadHost, serde_json::Error> {
        let text = serde_json::to_string_pretty(check)?;
        let mut document: PlanOrCheck = serde_json::from_str(&text)?;
        document.is_capture = check.has_no_record;
        Ok(document.host())
    }
}

/// Searches Ansible's results: of one host, or of many by name below `hosts`. The output of a command is in `stdout`.
fn search(value: &Value, name: Option<&str>, found: &mut Vec<ReadHost>) {
    let fields = match value {
        Value::Array(list) => return list.iter().for_each(|value| search(value, name, found)),
        Value::Object(fields) => fields,
        _ => return,
    };
    if value["schema"].as_str().is_some_and(is_known) {
        let (named, host) = match PlanOrCheck::deserialize(value) {
            Ok(document) => document.host(),
            Err(error) => (None, Err(error.to_string())),
        };
        return found.push((name.map(str::to_owned).or(named), host));
    }
    if let Some(error) = error_of(value) {
        return found.push((name.map(str::to_owned), Err(error.to_owned())));
    }
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("hosts", Value::Object(hosts)) => {
                for (host, result) in hosts {
                    let before = found.len();
                    search(result, Some(host), found);
                    let failed = result["unreachable"] == true || result["failed"] == true;
                    if failed && found.len() == before {
                        let text = result["msg"].as_str().unwrap_or("failed");
                        found.push((Some(host.clone()), Err(text.to_owned())));
                    }
                }
            }
            ("stdout", Value::String(text)) => {
                if let Ok(printed @ Value::Object(_)) = serde_json::from_str(text) {
                    search(&printed, name, found);
                }
            }
            _ => search(value, name, found),
        }
    }
}

fn error_of(value: &Value) -> Option<&str> {
    value["error"]
        .as_str()
        .filter(|_| value["schema"] == ERROR_SCHEMA)
}

fn is_known(schema: &str) -> bool {
    [plan::SCHEMA, check::SCHEMA].contains(&schema)
}

impl PlanOrCheck {
    /// Makes each text one line.
    fn host(mut self) -> ReadHost {
        let is_unknown = self.interfaces.iter().any(|interface| interface.is_unknown);
        let has_writes = self.writes + self.channels > 0;
        let is_equivalent = self.gains == Some(false) && self.channels == 0;
        let verdict = self.verdict.unwrap_or(match has_writes {
            _ if is_unknown => CouldNotBeDetermined,
            true if !is_equivalent => Differs,
            _ => Same,
        });
        if verdict == Same && has_writes && self.state.is_none() {
            self.state = Some(InterfaceState::Equivalent);
        }
        let causes = self.causes(verdict);
        for interface in &mut self.interfaces {
            let texts = [&mut interface.name, &mut interface.device].into_iter();
            for text in texts
                .chain(&mut interface.driver)
                .chain(&mut interface.pci_id)
            {
                *text = one_line(text);
            }
        }
        self.interfaces.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let name = self.host.name.take();
        let host = Host {
            class: one_line(&self.class),
            hash: one_line(&self.hash),
            outcome: HostOutcome {
                verdict,
                state: self.state,
                causes,
                not_judged: self.not_judged.iter().map(|name| one_line(name)).collect(),
            },
            shape: Shape {
                host: self.host,
                interfaces: self.interfaces,
            },
        };
        (name, Ok(host))
    }

    fn causes(&self, verdict: CheckState) -> Vec<DriftCause> {
        let mut causes: BTreeSet<&str> = BTreeSet::new();
        if verdict != Same {
            let differs = self.differs.iter().map(|difference| difference.reason);
            // An unreadable record leaves the state undetermined, which is said below.
            let reasons = differs.filter(|reason| *reason != Reason::Unknown);
            causes.extend(reasons.map(|reason| match reason {
                Reason::NotApplied if self.is_capture => NOT_KNOWN,
                reason => reason.name(),
            }));
            if self.verdict.is_none() && self.writes > 0 {
                causes.insert(NOT_KNOWN);
            } else if self.channels > 0 {
                causes.insert("channels-differ");
            }
        }
        match verdict {
            CouldNotBeDetermined => _ = causes.insert("could-not-be-determined"),
            Differs if causes.is_empty() => _ = causes.insert("cannot-be-moved"),
            _ => {}
        }
        let causes = causes.into_iter().map(|reason| {
            let is_by_tools = reason == Reason::MovedByOther.name();
            let tools = self.other_tools.iter().filter(|_| is_by_tools);
            DriftCause {
                reason,
                by: tools.map(|tool| one_line(tool)).collect(),
            }
        });
        causes.collect()
    }
}

/// Maximum characters of a name or an error from a host.
const LONGEST: usize = 200;

/// The text without control characters, so that a host can print no line of another one.
pub fn one_line(text: &str) -> String {
    let letters = text.chars().take(LONGEST);
    let is_odd = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    letters.map(|c| if is_odd(c) { '?' } else { c }).collect()
}
