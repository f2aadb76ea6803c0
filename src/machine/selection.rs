//! Selectors: how the command line names interfaces.

use std::collections::{BTreeMap, BTreeSet};

use glob::Pattern;
use itertools::Itertools as _;

use self::SelectError::{Malformed, NoDevice, Nothing};
use crate::machine::interface::is_pci_address;
use crate::machine::{Interface, Machine, Stacked};

/// The interfaces of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Interfaces with a device behind them.
    pub names: BTreeSet<String>,
    /// Selectors were given.
    pub explicit: bool,
    /// The selected bond or RDMA device that each interface stands for, by interface.
    pub via: BTreeMap<String, Vec<String>>,
    /// Selectors that matched no interface with a device, if that is allowed, and what each names.
    pub missing: Vec<(String, Option<String>)>,
}

/// A selector without an interface.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    #[error("`{selector}` is not a selector: {reason}")]
    Malformed {
        selector: String,
        reason: &'static str,
    },
    /// The selector names something without vectors to plan.
    #[error("`{selector}` {what}")]
    NoDevice {
        selector: String,
        /// As in "is the loopback interface".
        what: String,
    },
    #[error("no interface matches `{selector}`; {candidates}")]
    Nothing {
        selector: String,
        /// The nearest names, in words.
        candidates: String,
    },
}

impl Selection {
    /// Without selectors, selects every interface that is up or has queue vectors.
    pub fn new(
        machine: &Machine,
        selectors: &[String],
        if_present: bool,
    ) -> Result<Self, SelectError> {
        let mut selection = Self {
            explicit: !selectors.is_empty(),
            ..Self::default()
        };
        if selectors.is_empty() {
            selection.names = machine
                .interfaces
                .iter()
                .filter(|interface| {
                    interface.link == "up" || interface.queue_vectors().next().is_some()
                })
                .map(|interface| interface.name.clone())
                .collect();
        }
        for selector in selectors {
            let found = matching(machine, selector)?;
            if found.is_empty() {
                let what = match nothing(machine, selector.clone()) {
                    error if !if_present => return Err(error),
                    NoDevice { what, .. } => Some(what),
                    _ => None,
                };
                selection.missing.push((selector.clone(), what));
            }
            for (name, via) in found {
                selection.names.insert(name.clone());
                if let Some(via) = via {
                    let all = selection.via.entry(name).or_default();
                    if !all.contains(&via) {
                        all.push(via);
                    }
                }
            }
        }
        Ok(selection)
    }
}

/// A matched interface, and the matched name if it is another.
type Selected = (String, Option<String>);

fn matching(machine: &Machine, selector: &str) -> Result<Vec<Selected>, SelectError> {
    let malformed = |reason| Malformed {
        selector: selector.to_owned(),
        reason,
    };
    let pattern = |text: &str| Pattern::new(text).map_err(|error| malformed(error.msg));
    let selected = |holds: &dyn Fn(&Interface) -> bool| {
        Ok(machine
            .interfaces
            .iter()
            .filter(|interface| holds(interface))
            .map(|interface| (interface.name.clone(), None))
            .collect())
    };
    if let Some(address) = pci_address(selector) {
        let address = address.to_ascii_lowercase();
        let second = machine.others.seconds.get(&address);
        return Ok(match second {
            Some(name) => vec![(name.clone(), Some(address))],
            None => selected(&|interface| interface.device.address.eq_ignore_ascii_case(&address))?,
        });
    }
    // Names may hold `*`, `?` and `[`, which the kernel allows.
    let named = by_name(machine, |name| name == selector);
    if !named.is_empty() {
        return Ok(named);
    }
    let expected = match selector.split_once(':') {
        Some(("pci", _)) => "expected an address such as pci:0000:3b:00.0",
        Some(("driver", "")) => "expected a driver name such as driver:mlx5_core",
        Some(("driver", driver)) => {
            let wanted = pattern(driver)?;
            return selected(&|interface| interface.driver.iter().any(|name| wanted.matches(name)));
        }
        Some(("node", node)) => match node.parse() {
            Ok(node) => return selected(&|interface| machine.nodes_of(interface).contains(node)),
            Err(_) => "expected a node number such as node:1",
        },
        _ if selector.is_empty() => "it is empty",
        _ => {
            let wanted = pattern(selector)?;
            return Ok(by_name(machine, |name| wanted.matches(name)));
        }
    };
    Err(malformed(expected))
}

/// Parses `pci:0000:3b:00.0`, or without `pci:` as lspci(8) prints it; `3b:00.0` is short for `0000:3b:00.0`.
fn pci_address(selector: &str) -> Option<String> {
    let address = selector.strip_prefix("pci:").unwrap_or(selector);
    let mut full = [address.to_owned(), format!("0000:{address}")].into_iter();
    full.find(|full| is_pci_address(full))
}

/// An interface above others stands for those below it, and an RDMA device for those on its function.
fn by_name(machine: &Machine, matches: impl Fn(&str) -> bool) -> Vec<Selected> {
    let is_named = |name: &str| machine.names_of(name).any(&matches);
    let mut found: Vec<Selected> = Vec::new();
    for Interface { name, .. } in &machine.interfaces {
        found.extend(is_named(name).then(|| (name.clone(), None)));
    }
    for Stacked { name: via, .. } in &machine.stacked {
        if is_named(via) {
            let below = machine.below(via).filter(|name| !is_named(name));
            found.extend(below.map(|name| (name.to_owned(), Some(via.clone()))));
        }
    }
    if found.is_empty() {
        let rdma = machine.others.rdma.iter();
        for rdma in rdma.filter(|rdma| is_named(&rdma.name)) {
            let on_function = machine.of_rdma(rdma);
            found.extend(
                on_function.map(|interface| (interface.name.clone(), Some(rdma.name.clone()))),
            );
        }
    }
    found
}

/// Describes an interface without a device, to follow "it is"; `None` for any other name.
pub fn without_device(machine: &Machine, name: &str) -> Option<String> {
    if let Some(known) = machine.others.virtual_interface(name) {
        return Some(known.kind.clone());
    }
    let stacked = machine.stacked(name)?;
    let has_device = machine.interface(name).is_some() || machine.below(name).next().is_some();
    (!has_device).then(|| format!("a virtual interface on {}", stacked.lowers.join(", ")))
}

/// Selectors that match interfaces, of the kind `pci`, `driver` or `node`, or, for an empty string, names.
pub fn selectors(machine: &Machine, kind: &str) -> Vec<String> {
    let selectors_of = |interface: &Interface| match kind {
        "pci" => vec![interface.device.address.clone()],
        "driver" => interface.driver.iter().cloned().collect(),
        "node" => machine
            .nodes_of(interface)
            .iter()
            .map(|node| node.to_string())
            .collect(),
        _ => machine
            .names_of(&interface.name)
            .map(str::to_owned)
            .collect(),
    };
    let named = machine.interfaces.iter().flat_map(selectors_of);
    if !kind.is_empty() {
        let selectors = named.map(|name| format!("{kind}:{name}"));
        return selectors.sorted_unstable().dedup().collect();
    }
    let mut stacked = machine
        .stacked
        .iter()
        .map(|stacked| &stacked.name)
        .collect_vec();
    stacked.retain(|name| machine.below(name).next().is_some());
    let rdma = machine.others.rdma.iter();
    let rdma = rdma.filter(|rdma| machine.of_rdma(rdma).next().is_some());
    let others = stacked.into_iter().chain(rdma.map(|rdma| &rdma.name));
    named
        .chain(others.cloned())
        .sorted_unstable()
        .dedup()
        .collect()
}

fn nothing(machine: &Machine, selector: String) -> SelectError {
    let what = match pci_address(&selector) {
        Some(address) => machine.others.explain_pci(&address),
        None => machine.others.explain(&selector),
    };
    if let Some(what) = what {
        return NoDevice { selector, what };
    }
    let candidates = match machine.stacked(&selector) {
        Some(Stacked { lowers, .. }) => {
            let lowers = lowers.join(", ");
            format!("it is above {lowers}, and no interface below it has a device")
        }
        None if selector.contains(',') => "blanks separate selectors".to_owned(),
        None => nearest(machine, &selector),
    };
    Nothing {
        selector,
        candidates,
    }
}

fn nearest(machine: &Machine, selector: &str) -> String {
    let (kind, typed) = match selector.split_once(':') {
        _ if pci_address(selector).is_some() => ("pci", selector),
        Some((kind @ ("pci" | "driver" | "node"), rest)) => (kind, rest),
        _ => ("", selector),
    };
    let likeness = |name: &String| {
        let bare = name.strip_prefix(kind).unwrap_or(name);
        strsim::jaro_winkler(bare.trim_start_matches(':'), typed)
    };
    let mut names = selectors(machine, kind);
    names.sort_unstable_by(|a, b| likeness(b).total_cmp(&likeness(a)).then_with(|| a.cmp(b)));
    let listed = names.iter().take(5).join(", ");
    match names.len() {
        0 => "this machine has no interface with a device".to_owned(),
        1..=5 => format!("there is {listed}"),
        total => format!("nearest are {listed} (of {total})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::others::Rdma;
    use crate::machine::{Device, Interface, Node, Others, Stacked, Topology};

    fn machine() -> Machine {
        let interface = |name: &str, address: &str, driver: &str, node| Interface {
            name: name.into(),
            driver: Some(driver.into()),
            link: "up".into(),
            device: Device {
                address: address.into(),
                node,
                ..Device::default()
            },
            ..Interface::default()
        };
        let stacked = |name: &str, lowers: &[&str]| Stacked {
            name: name.into(),
            lowers: lowers.iter().map(|&l| l.to_owned()).collect(),
            kind: None,
        };
        let node = |id: u32| {
            (
                id,
                Node {
                    cpus: crate::cpuset::CpuSet::single(id),
                    ..Node::default()
                },
            )
        };
        Machine {
            topology: Topology {
                online: (0..2).collect(),
                nodes: [node(0), node(1)].into(),
                ..Topology::default()
            },
            interfaces: vec![
                interface("eth1", "0000:3b:00.0", "mlx5_core", Some(0)),
                interface("eth2", "0000:3b:00.1", "mlx5_core", Some(0)),
                interface("eth10", "0000:af:00.0", "igb", Some(1)),
            ],
            stacked: vec![
                stacked("bond0", &["eth1", "eth2"]),
                stacked("bond0.5", &["bond0"]),
                stacked("br0", &["veth0"]),
            ],
            others: Others {
                rdma: [
                    ("mlx5_0", Some("0000:3b:00.0")),
                    ("mlx5_1", Some("0000:5e:00.0")),
                    ("rxe0", None),
                ]
                .map(|(name, device)| Rdma {
                    name: name.into(),
                    device: device.map(str::to_owned),
                })
                .into(),
                ..Others::default()
            },
            ..Machine::default()
        }
    }

    fn names(selectors: &[&str]) -> Vec<String> {
        let selectors: Vec<String> = selectors.iter().map(|&s| s.to_owned()).collect();
        Selection::new(&machine(), &selectors, false)
            .unwrap()
            .names
            .into_iter()
            .collect()
    }

    #[test]
    fn names_are_exact_and_globs_are_globs() {
        assert_eq!(names(&["eth1"]), ["eth1"]);
        assert_eq!(names(&["eth1*"]), ["eth1", "eth10"]);
        assert_eq!(names(&["eth?"]), ["eth1", "eth2"]);
        assert_eq!(names(&["eth[02-9]"]), ["eth2"]);
        assert_eq!(names(&["eth[!2]*"]), ["eth1", "eth10"]);
        assert_eq!(names(&["mlx5_[0-9]"]), ["eth1"]);
        assert_eq!(names(&["driver:i[gx]b"]), ["eth10"]);
        assert_eq!(names(&[]), ["eth1", "eth10", "eth2"]);
    }

    #[test]
    fn an_exact_name_comes_before_a_pattern() {
        let mut machine = machine();
        let selected = |machine: &Machine, selector: &str| {
            let selection = Selection::new(machine, &[selector.to_owned()], false);
            Vec::from_iter(selection.unwrap().names)
        };
        for (at, name) in ["eth[12]", "eth*", "eth[0"].into_iter().enumerate() {
            machine.interfaces[at].name = name.into();
        }
        for name in ["eth[12]", "eth*", "eth[0"] {
            assert_eq!(selected(&machine, name), [name]);
        }
        assert_eq!(selected(&machine, "et?*").len(), 3);
        machine.altnames = [("eth*".to_owned(), vec!["up[link]".to_owned()])].into();
        machine.stacked[0].name = "bond?".into();
        machine.stacked[0].lowers = vec!["eth[12]".into()];
        assert_eq!(selected(&machine, "up[link]"), ["eth*"]);
        assert_eq!(selected(&machine, "bond?"), ["eth[12]"]);
    }

    #[test]
    fn devices_drivers_and_nodes() {
        assert_eq!(names(&["pci:0000:3B:00.1"]), ["eth2"]);
        assert_eq!(names(&["pci:af:00.0"]), ["eth10"]);
        assert_eq!(names(&["3b:00.1", "0000:AF:00.0"]), ["eth10", "eth2"]);
        assert_eq!(names(&["driver:mlx5_core"]), ["eth1", "eth2"]);
        assert_eq!(names(&["node:1", "eth1"]), ["eth1", "eth10"]);
    }

    #[test]
    fn stacked_interfaces_stand_for_what_is_below() {
        assert_eq!(names(&["bond0.5", "eth1"]), ["eth1", "eth2"]);
    }

    #[test]
    fn names_that_stand_for_interfaces_are_among_the_nearest() {
        for (typed, nearest) in [
            ("mlx5_9", "nearest are mlx5_0, "),
            ("bond1", "nearest are bond0, bond0.5, "),
        ] {
            let error = Selection::new(&machine(), &[typed.to_owned()], false)
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(nearest) && error.ends_with(" (of 6)"),
                "{error}"
            );
            assert!(
                ["mlx5_1", "rxe0", "br0"]
                    .iter()
                    .all(|none| !error.contains(none)),
                "{error}"
            );
        }
    }

    #[test]
    fn what_matches_nothing_names_the_nearest() {
        for (selector, expected) in [
            (
                "eht1",
                "no interface matches `eht1`; there is eth1, eth10, eth2, bond0, bond0.5, mlx5_0",
            ),
            (
                "driver:mlx4_core",
                "no interface matches `driver:mlx4_core`; there is driver:mlx5_core, driver:igb",
            ),
            (
                "node:7",
                "no interface matches `node:7`; there is node:0, node:1",
            ),
            (
                "af:00.1",
                "no interface matches `af:00.1`; there is pci:0000:af:00.0, pci:0000:3b:00.",
            ),
            (
                "eth1,eth2",
                "no interface matches `eth1,eth2`; blanks separate selectors",
            ),
            ("br0", "no interface matches `br0`"),
        ] {
            let error = Selection::new(&machine(), &[selector.to_owned()], false)
                .unwrap_err()
                .to_string();
            let expected = expected.split(", eth2").next().unwrap();
            assert!(
                error.starts_with(&expected.replace("there is eth1", "nearest are eth1")),
                "{error}"
            );
            let selection = Selection::new(&machine(), &[selector.to_owned()], true).unwrap();
            assert_eq!(
                (selection.missing, selection.explicit),
                (vec![(selector.to_owned(), None)], true)
            );
        }
        for bad in ["pci:3b", "node:x", "driver:", "driver:[", "eth[0", ""] {
            let error = Selection::new(&machine(), &[bad.to_owned()], true).unwrap_err();
            assert!(
                matches!(error, SelectError::Malformed { .. }),
                "{bad}: {error}"
            );
        }
    }
}
