//! CPUs, nodes and interfaces of a machine, as far as a plan depends on them, and how two machines differ.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use nicpin::cpuset::CpuSet;
use nicpin::plan::{HostSummary, Note};

#[derive(Serialize)]
pub struct Shape {
    #[serde(flatten)]
    pub host: HostSummary,
    pub interfaces: Vec<ShapeInterface>,
}

#[derive(Serialize, Deserialize)]
pub struct ShapeInterface {
    pub name: String,
    pub driver: Option<String>,
    pub pci_id: Option<String>,
    pub device: String,
    node: Option<u32>,
    #[serde(default, skip_serializing)]
    node_source: String,
    candidates: CpuSet,
    #[serde(deserialize_with = "count")]
    rx_queues: usize,
    #[serde(deserialize_with = "count")]
    tx_queues: usize,
    #[serde(
        rename = "notes",
        default,
        deserialize_with = "has_unknown",
        skip_serializing
    )]
    pub is_unknown: bool,
}

fn has_unknown<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    let notes = Vec::<Value>::deserialize(from)?.into_iter();
    Ok(notes
        .flat_map(Note::deserialize)
        .any(|note| note.is_unknown()))
}

pub fn count<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
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

#[derive(Serialize)]
pub struct Deviation {
    /// A fixed identifier, for programs.
    pub code: &'static str,
    /// `None` for the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<String>,
    pub text: String,
}

impl Shape {
    pub fn deviations(&self, ordinary: &Self) -> Vec<Deviation> {
        let mut found = Vec::new();
        of_machine(&self.host, &ordinary.host, &mut found);
        of_interfaces(&self.interfaces, &ordinary.interfaces, &mut found);
        found
    }
}

fn of_machine(this: &HostSummary, ordinary: &HostSummary, found: &mut Vec<Deviation>) {
    let mut add = |code, text| {
        found.push(Deviation {
            code,
            interface: None,
            text,
        });
    };
    let both = [this, ordinary];
    let [(cpus, cores), (other_cpus, other_cores)] =
        both.map(|host| (host.online.len(), host.cores));
    if (cpus, cores) != (other_cpus, other_cores) {
        let has_smt = |cpus, cores| cpus > cores && cores > 0;
        let (code, smt) = match (has_smt(cpus, cores), has_smt(other_cpus, other_cores)) {
            (false, true) => ("smt", "SMT is off: "),
            (true, false) => ("smt", "SMT is on: "),
            _ => ("cpus", ""),
        };
        add(
            code,
            format!("{smt}{cpus} CPUs on {cores} cores, not {other_cpus} on {other_cores}"),
        );
    }
    let [possible, others] = both.map(|host| host.possible);
    if possible != others {
        add(
            "possible",
            format!("{possible} possible CPUs, not {others}"),
        );
    }
    let isolated = both.map(|host| &host.isolated);
    let nohz_full = both.map(|host| &host.nohz_full);
    for (code, what, [this, ordinary]) in [
        ("isolated", "isolated", isolated),
        ("nohz-full", "nohz_full", nohz_full),
    ] {
        if this != ordinary {
            add(
                code,
                format!("{what} CPUs {}, not {}", list(this), list(ordinary)),
            );
        }
    }
    for there in &ordinary.nodes {
        let id = there.node;
        match this.nodes.iter().find(|node| node.node == id) {
            None => add("node-missing", format!("node {id} is missing")),
            Some(node) if node.without_memory && !there.without_memory => {
                add("node-without-memory", format!("node {id} has no memory"));
            }
            // Other numbers of CPUs are reported for the whole machine.
            Some(node) if node.cpus != there.cpus && cpus == other_cpus => {
                let (cpus, others) = (list(&node.cpus), list(&there.cpus));
                add(
                    "node-cpus",
                    format!("node {id} has CPUs {cpus}, not {others}"),
                );
            }
            Some(_) => {}
        }
    }
    for node in this.nodes.iter().map(|node| node.node) {
        if ordinary.nodes.iter().all(|there| there.node != node) {
            add("node-added", format!("node {node} is additional"));
        }
    }
}

type GroupKey = fn(&ShapeInterface) -> (&str, &str);

/// Pairs interfaces by name, else by slot, else by hardware.
fn of_interfaces(this: &[ShapeInterface], ordinary: &[ShapeInterface], found: &mut Vec<Deviation>) {
    let mut add = |interface: &ShapeInterface, code, text: &str| {
        found.push(Deviation {
            code,
            interface: Some(interface.name.clone()),
            text: format!("{} {text}", interface.name),
        });
    };
    let mut left: Vec<_> = this.iter().collect();
    let mut missing: Vec<_> = ordinary.iter().collect();
    let mut pairs = Vec::new();
    let keys: [GroupKey; 3] = [
        |interface| (&interface.name, ""),
        |interface| (&interface.device, ""),
        |interface| {
            (
                or_none(interface.pci_id.as_ref()),
                or_none(interface.driver.as_ref()),
            )
        },
    ];
    for key in keys {
        let mut by_key: BTreeMap<_, Vec<&ShapeInterface>> = BTreeMap::new();
        for interface in left.into_iter().rev() {
            by_key.entry(key(interface)).or_default().push(interface);
        }
        missing.retain(|there| {
            let interface = by_key.get_mut(&key(there)).and_then(Vec::pop);
            pairs.extend(interface.map(|interface| (interface, *there)));
            interface.is_none()
        });
        left = by_key.into_values().flatten().collect();
        left.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    }
    for (this, there) in pairs {
        if this.name != there.name {
            add(this, "name", &format!("is named {} elsewhere", there.name));
        }
        for ((code, has, own), (.., other)) in facts(this).into_iter().zip(facts(there)) {
            // The candidates of another node are other CPUs anyway.
            if own != other && (code != "candidates" || this.node == there.node) {
                add(this, code, &format!("{has} {own}, not {other}"));
            }
        }
    }
    for (interfaces, code, is) in [
        (missing, "interface-missing", "missing"),
        (left, "interface-added", "additional"),
    ] {
        for interface in interfaces {
            let what = interface
                .driver
                .as_ref()
                .or(interface.pci_id.as_ref())
                .unwrap_or(&interface.device);
            add(interface, code, &format!("({what}) is {is}"));
        }
    }
}

/// The facts that may differ: a code, the words before it, and the value.
fn facts(interface: &ShapeInterface) -> [(&'static str, &'static str, String); 6] {
    let node = match interface.node {
        None => "no known node".into(),
        Some(node) if interface.node_source == "nearest" => format!("a node near node {node}"),
        Some(node) => format!("node {node}"),
    };
    let (rx, tx) = (interface.rx_queues, interface.tx_queues);
    let queues = format!("{rx} receive and {tx} transmit queues");
    [
        (
            "driver",
            "has driver",
            or_none(interface.driver.as_ref()).into(),
        ),
        (
            "pci-id",
            "is PCI device",
            or_none(interface.pci_id.as_ref()).into(),
        ),
        ("node", "is on", node),
        ("slot", "is", interface.device.clone()),
        ("queues", "has", queues),
        (
            "candidates",
            "has candidate CPUs",
            list(&interface.candidates),
        ),
    ]
}

fn or_none(text: Option<&String>) -> &str {
    text.map_or("none", String::as_str)
}

fn list(cpus: &CpuSet) -> String {
    if cpus.is_empty() {
        "none".to_owned()
    } else {
        cpus.to_string()
    }
}
