//! One host of a fleet, from what it printed or from a check of its copy.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fleet::shape::{Shape, ShapeInterface, count};
use nicpin::plan::{self, HostSummary};
use nicpin::report::check::{self, Check, CheckState};
use nicpin::report::difference::Reason;
use nicpin::report::interface::InterfaceState;

/// What is known of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    pub class: String,
    pub hash: String,
    pub outcome: Outcome,
    pub shape: Shape,
}

/// Whether a host is as planned, and the causes if not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outcome {
    pub verdict: CheckState,
    /// The worst state of its interfaces; `None` from a plan, which has none.
    pub state: Option<InterfaceState>,
    pub causes: Vec<Cause>,
}

/// Why a host is not as planned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Cause {
    /// The word of a [`Reason`]; `channels-differ`, `cannot-be-moved` (`check --strict`), `could-not-be-determined`; from
    /// a plan `not-known`.
    pub reason: &'static str,
    /// For `moved-by-other`: the tools on the host that set affinity.
    pub by: Vec<String>,
}

/// A plan or a check as JSON. Both have these keys.
#[derive(Deserialize)]
struct Document {
    schema: String,
    hash: String,
    #[serde(default)]
    class: String,
    host: HostSummary,
    interfaces: Vec<ShapeInterface>,
    /// Of a plan.
    #[serde(default, deserialize_with = "count")]
    writes: usize,
    #[serde(default, deserialize_with = "count")]
    channels: usize,
    /// Of a check.
    verdict: Option<CheckState>,
    state: Option<InterfaceState>,
    #[serde(default)]
    differs: Vec<DocumentDifference>,
    #[serde(default)]
    other_tools: Vec<String>,
}

#[derive(Deserialize)]
struct DocumentDifference {
    reason: Reason,
}

/// A host by its name, where that is known, or why nothing is known of it.
pub type ReadHost = (Option<String>, Result<Host, String>);

impl Host {
    /// Reads the JSON of a plan or a check, or what Ansible returns with such JSON in it.
    pub fn parse(text: &str) -> Result<Vec<ReadHost>, String> {
        match serde_json::from_str::<Document>(text) {
            Ok(document) if is_known(&document.schema) => Ok(vec![document.host()]),
            other => within(text).map_err(|reason| match other {
                Err(error) if reason.is_empty() => error.to_string(),
                _ => {
                    format!("{reason}; expected the output of `nicpin check --json` or `nicpin plan --json`")
                }
            }),
        }
    }

    /// The host of a check.
    pub fn of(check: &Check) -> Self {
        let interfaces = check.interfaces.iter().map(|interface| ShapeInterface {
            name: interface.name.clone(),
            driver: interface.driver.clone(),
            pci_id: interface.pci_id.clone(),
            device: interface.device.clone(),
            node: interface.node,
            candidates: interface.candidates.clone(),
            rx_queues: interface.rx_queues,
            tx_queues: interface.tx_queues,
        });
        let reasons = check.differs.iter().map(|difference| difference.reason);
        let causes = causes(
            reasons,
            check.channels.len(),
            check.verdict,
            &check.other_tools,
        );
        Self {
            class: check.class.clone(),
            hash: check.hash.clone(),
            outcome: Outcome {
                verdict: check.verdict,
                state: check.state,
                causes,
            },
            shape: shape(check.host.clone(), interfaces.collect()),
        }
    }
}

/// The hosts within other JSON; an error without any. It is empty for a document of nicpin that cannot be read.
fn within(text: &str) -> Result<Vec<ReadHost>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match value.get("schema").and_then(Value::as_str) {
        Some(schema) if is_known(schema) => return Err(String::new()),
        Some(schema) => return Err(format!("its schema is `{schema}`")),
        None => {}
    }
    let mut found = Vec::new();
    search(&value, None, &mut found);
    let message = || {
        value
            .get("msg")
            .and_then(Value::as_str)
            .map_or("it has no schema", |text| text)
            .to_owned()
    };
    if found.is_empty() {
        Err(message())
    } else {
        Ok(found)
    }
}

/// Ansible's results: of one host, or of many with their names below `hosts`. What a command printed is in `stdout`.
fn search(value: &Value, name: Option<&str>, found: &mut Vec<ReadHost>) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| search(value, name, found)),
        Value::Object(fields)
            if fields
                .get("schema")
                .and_then(Value::as_str)
                .is_some_and(is_known) =>
        {
            found.push(match Document::deserialize(value) {
                Ok(document) => {
                    let (named, host) = document.host();
                    (name.map(str::to_owned).or(named), host)
                }
                Err(error) => (name.map(str::to_owned), Err(error.to_string())),
            });
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("hosts", Value::Object(hosts)) => {
                        for (host, result) in hosts {
                            let before = found.len();
                            search(result, Some(host), found);
                            let failed = ["unreachable", "failed"]
                                .iter()
                                .any(|key| result[*key] == true);
                            if failed && found.len() == before {
                                let text = result["msg"].as_str().unwrap_or("failed").to_owned();
                                found.push((Some(host.clone()), Err(text)));
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
        _ => {}
    }
}

fn is_known(schema: &str) -> bool {
    [plan::SCHEMA, check::SCHEMA].contains(&schema)
}

impl Document {
    fn host(self) -> ReadHost {
        let verdict = self.verdict.unwrap_or(match (self.writes, self.channels) {
            (0, 0) => CheckState::Same,
            _ => CheckState::Differs,
        });
        let reasons = self.differs.iter().map(|difference| difference.reason);
        let causes = if self.verdict.is_none() && self.writes > 0 {
            vec![Cause {
                reason: "not-known",
                by: Vec::new(),
            }]
        } else {
            causes(reasons, self.channels, verdict, &self.other_tools)
        };
        let name = self.host.name.clone();
        let outcome = Outcome {
            verdict,
            state: self.state,
            causes,
        };
        let shape = shape(self.host, self.interfaces);
        (
            name,
            Ok(Host {
                class: self.class,
                hash: self.hash,
                outcome,
                shape,
            }),
        )
    }
}

/// The causes for which a host is not as planned.
fn causes(
    reasons: impl Iterator<Item = Reason>,
    channels: usize,
    verdict: CheckState,
    tools: &[String],
) -> Vec<Cause> {
    let mut causes = BTreeSet::new();
    let plain = |reason| Cause {
        reason,
        by: Vec::new(),
    };
    if verdict == CheckState::Same {
        return Vec::new();
    }
    for reason in reasons {
        let by = if reason == Reason::MovedByOther {
            tools.to_vec()
        } else {
            Vec::new()
        };
        causes.insert(Cause {
            reason: reason.name(),
            by,
        });
    }
    if channels > 0 {
        causes.insert(plain("channels-differ"));
    }
    match verdict {
        CheckState::CouldNotBeDetermined => _ = causes.insert(plain("could-not-be-determined")),
        CheckState::Differs if causes.is_empty() => _ = causes.insert(plain("cannot-be-moved")),
        _ => {}
    }
    causes.into_iter().collect()
}

fn shape(host: HostSummary, mut interfaces: Vec<ShapeInterface>) -> Shape {
    interfaces.sort_by(|a, b| a.name.cmp(&b.name));
    Shape {
        host: HostSummary { name: None, ..host },
        interfaces,
    }
}

/// The most characters of a name or an error that a host has given.
const LONGEST: usize = 200;

/// A text of a host as one line without control characters, so that it can print no line of another one.
pub(super) fn one_line(text: &str) -> String {
    let letters = text.chars().take(LONGEST);
    let is_odd = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    letters.map(|c| if is_odd(c) { '?' } else { c }).collect()
}

impl Host {
    /// With each text as [`one_line`].
    #[must_use]
    pub(super) fn cleaned(mut self) -> Self {
        let interfaces = self.shape.interfaces.iter_mut();
        let names = interfaces.flat_map(|one| {
            let always = [&mut one.name, &mut one.device].into_iter();
            always.chain(&mut one.driver).chain(&mut one.pci_id)
        });
        let tools = self
            .outcome
            .causes
            .iter_mut()
            .flat_map(|cause| &mut cause.by);
        for text in names.chain(tools).chain([&mut self.class, &mut self.hash]) {
            *text = one_line(text);
        }
        self
    }
}
