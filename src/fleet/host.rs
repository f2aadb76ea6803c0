//! One host of a fleet, from what it printed or from a check of its copy, and how two machines differ in what a plan
//! depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use itertools::Itertools as _;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use nicpin::cpuset::CpuSet;
use nicpin::plan::{self, HostSummary, NodeSummary};
use nicpin::report::check::{self, Check, CheckState};
use nicpin::report::difference::Reason;
use nicpin::report::interface::InterfaceState;

/// What is known of a host.
pub struct Host {
    pub class: String,
    pub hash: String,
    pub outcome: Outcome,
    pub shape: Shape,
}

/// Whether a host is as planned, and the causes if not.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Outcome {
    pub verdict: CheckState,
    /// The worst state of its interfaces; `None` from a plan, which has none.
    pub state: Option<InterfaceState>,
    pub causes: Vec<Cause>,
}

/// Why a host is not as planned.
#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Cause {
    /// The word of a [`Reason`]; `channels-differ`, `cannot-be-moved` (`check --strict`), `could-not-be-determined`; from
    /// a plan `not-known`.
    pub reason: &'static str,
    /// For `moved-by-other`: the tools on the host that set affinity.
    pub by: Vec<String>,
}

/// What a machine is made of, as far as a plan depends on it: CPUs, nodes and interfaces.
#[derive(Serialize)]
pub struct Shape {
    #[serde(flatten)]
    pub host: HostSummary,
    /// By name.
    pub interfaces: Vec<ShapeInterface>,
}

#[derive(Serialize, Deserialize)]
pub struct ShapeInterface {
    pub name: String,
    pub driver: Option<String>,
    pub pci_id: Option<String>,
    pub device: String,
    pub node: Option<u32>,
    pub candidates: CpuSet,
    #[serde(deserialize_with = "count")]
    pub rx_queues: usize,
    #[serde(deserialize_with = "count")]
    pub tx_queues: usize,
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
    differs: Vec<Differing>,
    #[serde(default)]
    other_tools: Vec<String>,
}

#[derive(Deserialize)]
struct Differing {
    reason: Reason,
}

/// A number, or the length of a list.
fn count<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a number or a list")]
    enum Count {
        Number(usize),
        List(Vec<IgnoredAny>),
    }
    Ok(match Count::deserialize(from)? {
        Count::Number(number) => number,
        Count::List(list) => list.len(),
    })
}

/// A host by its name, where that is known, or why nothing is known of it.
pub type ReadHost = (Option<String>, Result<Host, String>);

impl Host {
    /// Reads the JSON of a plan or a check, or what Ansible returns with such JSON in it.
    pub fn parse(text: &str) -> Result<Vec<ReadHost>, String> {
        let unreadable = match serde_json::from_str::<Document>(text) {
            Ok(document) if is_known(&document.schema) => {
                let (name, host) = document.host();
                return Ok(vec![(name, Ok(host))]);
            }
            other => other.err(),
        };
        let reason = match serde_json::from_str::<Value>(text) {
            Err(error) => error.to_string(),
            Ok(value) => match (value["schema"].as_str(), unreadable) {
                (Some(schema), Some(error)) if is_known(schema) => return Err(error.to_string()),
                (Some(schema), _) => match error_of(&value) {
                    Some(error) => return Err(error.to_owned()),
                    None => format!("its schema is `{schema}`"),
                },
                (None, _) => {
                    let mut found = Vec::new();
                    search(&value, None, &mut found);
                    if !found.is_empty() {
                        return Ok(found);
                    }
                    value["msg"]
                        .as_str()
                        .unwrap_or("it has no schema")
                        .to_owned()
                }
            },
        };
        Err(format!(
            "{reason}; expected the output of `nicpin check --json` or `nicpin plan --json`"
        ))
    }

    /// The host of a check, and its name.
    pub fn of(check: &Check) -> (Option<String>, Self) {
        let interfaces = check.interfaces.iter().map(|one| ShapeInterface {
            name: one.name.clone(),
            driver: one.driver.clone(),
            pci_id: one.pci_id.clone(),
            device: one.device.clone(),
            node: one.node,
            candidates: one.candidates.clone(),
            rx_queues: one.rx_queues,
            tx_queues: one.tx_queues,
        });
        let differs = check.differs.iter();
        Document {
            schema: check.schema.to_owned(),
            hash: check.hash.clone(),
            class: check.class.clone(),
            host: check.host.clone(),
            interfaces: interfaces.collect(),
            writes: 0,
            channels: check.channels.len(),
            verdict: Some(check.verdict),
            state: check.state,
            differs: differs
                .map(|one| Differing { reason: one.reason })
                .collect(),
            other_tools: check.other_tools.clone(),
        }
        .host()
    }
}

/// Ansible's results: of one host, or of many with their names below `hosts`. What a command printed is in `stdout`.
fn search(value: &Value, name: Option<&str>, found: &mut Vec<ReadHost>) {
    let fields = match value {
        Value::Array(list) => return list.iter().for_each(|value| search(value, name, found)),
        Value::Object(fields) => fields,
        _ => return,
    };
    if value["schema"].as_str().is_some_and(is_known) {
        let name = name.map(str::to_owned);
        return found.push(match Document::deserialize(value) {
            Ok(document) => {
                let (named, host) = document.host();
                (name.or(named), Ok(host))
            }
            Err(error) => (name, Err(error.to_string())),
        });
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

/// Why a command of nicpin failed, from what it printed.
fn error_of(value: &Value) -> Option<&str> {
    let is_error = value["schema"] == "nicpin.error/1";
    value["error"].as_str().filter(|_| is_error)
}

fn is_known(schema: &str) -> bool {
    [plan::SCHEMA, check::SCHEMA].contains(&schema)
}

impl Document {
    /// The host and its name, with each text as [`one_line`].
    fn host(mut self) -> (Option<String>, Host) {
        let verdict = self.verdict.unwrap_or(match (self.writes, self.channels) {
            (0, 0) => CheckState::Same,
            _ => CheckState::Differs,
        });
        for one in &mut self.interfaces {
            let texts = [&mut one.name, &mut one.device].into_iter();
            for text in texts.chain(&mut one.driver).chain(&mut one.pci_id) {
                *text = one_line(text);
            }
        }
        self.interfaces.sort_by(|a, b| a.name.cmp(&b.name));
        let outcome = Outcome {
            verdict,
            state: self.state,
            causes: self.causes(verdict),
        };
        let host = Host {
            class: one_line(&self.class),
            hash: one_line(&self.hash),
            outcome,
            shape: Shape {
                host: HostSummary {
                    name: None,
                    ..self.host
                },
                interfaces: self.interfaces,
            },
        };
        (self.host.name, host)
    }

    fn causes(&self, verdict: CheckState) -> Vec<Cause> {
        let mut causes: BTreeSet<&str> = BTreeSet::new();
        if verdict != CheckState::Same {
            causes.extend(self.differs.iter().map(|one| one.reason.name()));
            if self.verdict.is_none() && self.writes > 0 {
                causes.insert("not-known");
            } else if self.channels > 0 {
                causes.insert("channels-differ");
            }
        }
        match verdict {
            CheckState::CouldNotBeDetermined => _ = causes.insert("could-not-be-determined"),
            CheckState::Differs if causes.is_empty() => _ = causes.insert("cannot-be-moved"),
            _ => {}
        }
        let tools = self
            .other_tools
            .iter()
            .map(|tool| one_line(tool))
            .collect_vec();
        causes
            .into_iter()
            .map(|reason| Cause {
                reason,
                by: if reason == Reason::MovedByOther.name() {
                    tools.clone()
                } else {
                    Vec::new()
                },
            })
            .collect()
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

/// Something in which a machine differs from an ordinary one.
#[derive(Serialize)]
pub struct Deviation {
    /// A fixed identifier, for programs.
    pub code: &'static str,
    /// The interface; absent for the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// What differs, in words, with the name of the interface.
    pub text: String,
}

impl Shape {
    /// How this machine differs from an ordinary one of its kind.
    pub fn deviations(&self, ordinary: &Self) -> Vec<Deviation> {
        let mut found = of_machine(&self.host, &ordinary.host);
        of_interfaces(&self.interfaces, &ordinary.interfaces, &mut found);
        found
    }
}

fn of_machine(this: &HostSummary, ordinary: &HostSummary) -> Vec<Deviation> {
    let mut found = Vec::new();
    let mut add = |differs: bool, code, text| {
        found.extend(differs.then_some(Deviation {
            code,
            interface: None,
            text,
        }));
    };
    let [(cpus, cores), (other_cpus, other_cores)] =
        [this, ordinary].map(|host| (host.online.len(), host.cores));
    let has_smt = |cpus, cores| cpus > cores && cores > 0;
    let (code, smt) = match (has_smt(cpus, cores), has_smt(other_cpus, other_cores)) {
        (false, true) => ("smt", "SMT is off: "),
        (true, false) => ("smt", "SMT is on: "),
        _ => ("cpus", ""),
    };
    let text = format!("{smt}{cpus} CPUs on {cores} cores, not {other_cpus} on {other_cores}");
    add((cpus, cores) != (other_cpus, other_cores), code, text);
    let (possible, others) = (this.possible, ordinary.possible);
    let text = format!("{possible} possible CPUs, not {others}");
    add(possible != others, "possible", text);
    for (code, what, this, ordinary) in [
        ("isolated", "isolated", &this.isolated, &ordinary.isolated),
        (
            "nohz-full",
            "nohz_full",
            &this.nohz_full,
            &ordinary.nohz_full,
        ),
    ] {
        let text = format!("{what} CPUs {}, not {}", list(this), list(ordinary));
        add(this != ordinary, code, text);
    }
    for there in &ordinary.nodes {
        let id = there.node;
        let (code, what) = match this.nodes.iter().find(|node| node.node == id) {
            None => ("node-missing", "is missing".to_owned()),
            Some(node) if node.without_memory && !there.without_memory => {
                ("node-without-memory", "has no memory".to_owned())
            }
            // Other numbers of CPUs are reported for the whole machine.
            Some(node) if node.cpus != there.cpus && cpus == other_cpus => {
                let (cpus, others) = (list(&node.cpus), list(&there.cpus));
                ("node-cpus", format!("has CPUs {cpus}, not {others}"))
            }
            Some(_) => continue,
        };
        add(true, code, format!("node {id} {what}"));
    }
    for &NodeSummary { node, .. } in &this.nodes {
        let is_added = ordinary.nodes.iter().all(|there| there.node != node);
        add(is_added, "node-added", format!("node {node} is additional"));
    }
    found
}

/// What two interfaces have in common.
type Key = fn(&ShapeInterface) -> (&str, &str);

/// Interfaces are the same by name, else by slot, else by what they are.
fn of_interfaces(this: &[ShapeInterface], ordinary: &[ShapeInterface], found: &mut Vec<Deviation>) {
    let (mut left, mut missing): (Vec<_>, Vec<_>) =
        (this.iter().collect(), ordinary.iter().collect());
    let mut pairs = Vec::new();
    let keys: [Key; 3] = [
        |one| (&one.name, ""),
        |one| (&one.device, ""),
        |one| {
            let (id, driver) = (one.pci_id.as_deref(), one.driver.as_deref());
            (id.unwrap_or_default(), driver.unwrap_or_default())
        },
    ];
    for key in keys {
        let mut by_key: BTreeMap<_, Vec<&ShapeInterface>> = BTreeMap::new();
        for one in left.into_iter().rev() {
            by_key.entry(key(one)).or_default().push(one);
        }
        missing.retain(|there| {
            let one = by_key.get_mut(&key(there)).and_then(Vec::pop);
            pairs.extend(one.map(|one| (one, *there)));
            one.is_none()
        });
        left = by_key.into_values().flatten().collect();
        left.sort_by(|a, b| a.name.cmp(&b.name));
    }
    let mut add = |interface: &ShapeInterface, code, text: &dyn Display| {
        let name = &interface.name;
        found.push(Deviation {
            code,
            interface: Some(name.clone()),
            text: format!("{name} {text}"),
        });
    };
    for (interface, there) in pairs {
        for (code, text) in of_interface(interface, there) {
            add(interface, code, &text);
        }
    }
    for (interfaces, code, is) in [
        (missing, "interface-missing", "missing"),
        (left, "interface-added", "additional"),
    ] {
        for one in interfaces {
            let what = one.driver.as_ref().or(one.pci_id.as_ref());
            add(
                one,
                code,
                &format!("({}) is {is}", what.unwrap_or(&one.device)),
            );
        }
    }
}

/// The code and the text of each deviation of an interface.
fn of_interface(
    this: &ShapeInterface,
    there: &ShapeInterface,
) -> impl Iterator<Item = (&'static str, String)> {
    let node = |one: &ShapeInterface| match one.node {
        None => "no known node".to_owned(),
        Some(node) => format!("node {node}"),
    };
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    let differs = |code, has: &str, of: &dyn Fn(&ShapeInterface) -> String| {
        let (now, other) = (of(this), of(there));
        (now != other).then(|| (code, format!("{has} {now}, not {other}")))
    };
    let name =
        (this.name != there.name).then(|| ("name", format!("is named {} elsewhere", there.name)));
    let queues =
        ((this.rx_queues, this.tx_queues) != (there.rx_queues, there.tx_queues)).then(|| {
            let text = format!(
                "has {} receive and {} transmit queues, not {} and {}",
                this.rx_queues, this.tx_queues, there.rx_queues, there.tx_queues
            );
            ("queues", text)
        });
    // Those of another node are other CPUs anyway.
    let candidates = differs("candidates", "has candidate CPUs", &|one| {
        list(&one.candidates)
    });
    [
        name,
        differs("driver", "has driver", &|one| or_none(&one.driver)),
        differs("pci-id", "is PCI device", &|one| or_none(&one.pci_id)),
        differs("node", "is on", &node),
        differs("slot", "is", &|one| one.device.clone()),
        queues,
        candidates.filter(|_| this.node == there.node),
    ]
    .into_iter()
    .flatten()
}

fn list(cpus: &CpuSet) -> String {
    if cpus.is_empty() {
        "none".to_owned()
    } else {
        cpus.to_string()
    }
}
