//! What a machine is made of, as far as a plan depends on it, and how two machines differ in it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use nicpin::cpuset::CpuSet;
use nicpin::plan::HostSummary;

/// CPUs, nodes and interfaces of a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shape {
    #[serde(flatten)]
    pub host: HostSummary,
    /// By name.
    pub interfaces: Vec<ShapeInterface>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// A number, or the length of a list.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    struct Count;

    impl<'de> Visitor<'de> for Count {
        type Value = usize;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number or a list")
        }

        fn visit_u64<E: serde::de::Error>(self, count: u64) -> Result<usize, E> {
            usize::try_from(count).map_err(E::custom)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<usize, A::Error> {
            let mut count = 0;
            while list.next_element::<IgnoredAny>()?.is_some() {
                count += 1;
            }
            Ok(count)
        }
    }

    deserializer.deserialize_any(Count)
}

/// Something in which a machine differs from an ordinary one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Deviation {
    /// A fixed identifier, for programs.
    pub code: &'static str,
    /// The interface; absent for the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// What differs, in words, with the name of the interface.
    pub text: String,
}

/// What two interfaces have in common.
type Key = fn(&ShapeInterface) -> (&str, &str);

impl Shape {
    /// How this machine differs from an ordinary one of its kind.
    pub fn deviations(&self, ordinary: &Self) -> Vec<Deviation> {
        let mut found = Deviations(Vec::new());
        found.of_machine(&self.host, &ordinary.host);
        found.of_interfaces(&self.interfaces, &ordinary.interfaces);
        found.0
    }
}

struct Deviations(Vec<Deviation>);

impl Deviations {
    fn add(&mut self, code: &'static str, text: String) {
        self.0.push(Deviation {
            code,
            interface: None,
            text,
        });
    }

    fn of_machine(&mut self, this: &HostSummary, ordinary: &HostSummary) {
        let cpus = (this.online.len(), ordinary.online.len());
        if (this.cores, cpus) != (ordinary.cores, (cpus.0, cpus.0)) {
            let siblings = |cpus: usize, cores: usize| cpus > cores && cores > 0;
            let smt = (
                siblings(cpus.0, this.cores),
                siblings(cpus.1, ordinary.cores),
            );
            let numbers = format!(
                "{} CPUs on {} cores, not {} on {}",
                cpus.0, this.cores, cpus.1, ordinary.cores
            );
            match smt {
                (false, true) => self.add("smt", format!("SMT is off: {numbers}")),
                (true, false) => self.add("smt", format!("SMT is on: {numbers}")),
                _ => self.add("cpus", numbers),
            }
        }
        if this.possible != ordinary.possible {
            self.add(
                "possible",
                format!("{} possible CPUs, not {}", this.possible, ordinary.possible),
            );
        }
        let sets = [
            (
                "isolated",
                "isolated CPUs",
                &this.isolated,
                &ordinary.isolated,
            ),
            (
                "nohz-full",
                "nohz_full CPUs",
                &this.nohz_full,
                &ordinary.nohz_full,
            ),
        ];
        for (code, what, this, ordinary) in sets
            .into_iter()
            .filter(|(.., this, ordinary)| this != ordinary)
        {
            self.add(
                code,
                format!("{what} {}, not {}", list(this), list(ordinary)),
            );
        }
        for there in &ordinary.nodes {
            match this.nodes.iter().find(|node| node.node == there.node) {
                None => self.add("node-missing", format!("node {} is missing", there.node)),
                Some(node) if node.without_memory && !there.without_memory => {
                    self.add(
                        "node-without-memory",
                        format!("node {} has no memory", node.node),
                    );
                }
                // Other numbers of CPUs are reported for the whole machine.
                Some(node) if node.cpus != there.cpus && cpus.0 == cpus.1 => {
                    let text = format!(
                        "node {} has CPUs {}, not {}",
                        node.node,
                        list(&node.cpus),
                        list(&there.cpus)
                    );
                    self.add("node-cpus", text);
                }
                Some(_) => {}
            }
        }
        for node in &this.nodes {
            if ordinary.nodes.iter().all(|there| there.node != node.node) {
                self.add("node-added", format!("node {} is additional", node.node));
            }
        }
    }

    /// Interfaces are the same by name, else by slot, else by what they are.
    fn of_interfaces(&mut self, this: &[ShapeInterface], ordinary: &[ShapeInterface]) {
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
        for (interface, there) in pairs {
            self.of_interface(interface, there);
        }
        for there in missing {
            self.add_to(
                there,
                "interface-missing",
                format!("{} ({}) is missing", there.name, what(there)),
            );
        }
        for interface in left {
            let text = format!("{} ({}) is additional", interface.name, what(interface));
            self.add_to(interface, "interface-added", text);
        }
    }

    fn add_to(&mut self, interface: &ShapeInterface, code: &'static str, text: String) {
        self.0.push(Deviation {
            code,
            interface: Some(interface.name.clone()),
            text,
        });
    }

    fn of_interface(&mut self, this: &ShapeInterface, there: &ShapeInterface) {
        let name = &this.name;
        let node = |node: Option<u32>| {
            node.map_or("no known node".to_owned(), |node| format!("node {node}"))
        };
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        let mut differs = |code, differs: bool, text: String| {
            if differs {
                self.add_to(this, code, format!("{name} {text}"));
            }
        };
        differs(
            "name",
            *name != there.name,
            format!("is named {} elsewhere", there.name),
        );
        let driver = format!(
            "has driver {}, not {}",
            text(&this.driver),
            text(&there.driver)
        );
        differs("driver", this.driver != there.driver, driver);
        let id = format!(
            "is PCI device {}, not {}",
            text(&this.pci_id),
            text(&there.pci_id)
        );
        differs("pci-id", this.pci_id != there.pci_id, id);
        let moved = this.node != there.node;
        differs(
            "node",
            moved,
            format!("is on {}, not {}", node(this.node), node(there.node)),
        );
        differs(
            "slot",
            this.device != there.device,
            format!("is {}, not {}", this.device, there.device),
        );
        let queues = (this.rx_queues, this.tx_queues) != (there.rx_queues, there.tx_queues);
        let text = format!(
            "has {} receive and {} transmit queues, not {} and {}",
            this.rx_queues, this.tx_queues, there.rx_queues, there.tx_queues
        );
        differs("queues", queues, text);
        // Those of another node are other CPUs anyway.
        let other = !moved && this.candidates != there.candidates;
        let text = format!(
            "has candidate CPUs {}, not {}",
            list(&this.candidates),
            list(&there.candidates)
        );
        differs("candidates", other, text);
    }
}

fn what(interface: &ShapeInterface) -> String {
    interface
        .driver
        .clone()
        .or_else(|| interface.pci_id.clone())
        .unwrap_or_else(|| interface.device.clone())
}

fn list(cpus: &CpuSet) -> String {
    if cpus.is_empty() {
        "none".to_owned()
    } else {
        cpus.to_string()
    }
}
