//! Selectors: how the command line names interfaces.

use std::collections::{BTreeMap, BTreeSet};

use glob::Pattern;

use crate::machine::Machine;
use crate::machine::interface::is_pci_address;

/// Which interfaces a command is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Names of interfaces with a device behind them.
    pub names: BTreeSet<String>,
    /// Whether selectors were given; otherwise these are all interfaces that are up or have queue vectors.
    pub explicit: bool,
    /// The selected bond or RDMA device that each interface stands for, by interface.
    pub via: BTreeMap<String, Vec<String>>,
    /// Selectors that matched nothing, if that is allowed.
    pub missing: Vec<String>,
    /// What those selectors name instead of an interface with a device.
    pub reasons: BTreeMap<String, String>,
}

/// A selector without an interface.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The syntax is wrong.
    #[error("`{selector}` is not a selector: {reason}")]
    Malformed {
        /// The selector as it was given.
        selector: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It names something that has no vectors to plan.
    #[error("`{selector}` {what}")]
    NoDevice {
        /// The selector as it was given.
        selector: String,
        /// What it is, as in "is the loopback interface".
        what: String,
    },
    /// Nothing on this machine matches.
    #[error("no interface matches `{selector}`; {candidates}")]
    Nothing {
        /// The selector as it was given.
        selector: String,
        /// The nearest names, in words.
        candidates: String,
    },
}

impl Selection {
    /// Resolves selectors. Without any, selects every interface that is up or has queue vectors.
    pub fn new(
        machine: &Machine,
        selectors: &[String],
        if_present: bool,
    ) -> Result<Self, SelectError> {
        if selectors.is_empty() {
            let names = machine
                .interfaces
                .iter()
                .filter(|i| {
                    i.link == "up"
                        || i.vectors
                            .iter()
                            .any(crate::machine::Vector::is_queue_vector)
                })
                .map(|i| i.name.clone())
                .collect();
            return Ok(Self {
                names,
                ..Self::default()
            });
        }
        let mut selection = Self {
            explicit: true,
            ..Self::default()
        };
        for selector in selectors {
            let found = matching(machine, selector)?;
            let what = if found.is_empty() {
                explain(machine, selector)
            } else {
                None
            };
            if found.is_empty() && !if_present {
                let selector = selector.clone();
                return Err(match what {
                    Some(what) => SelectError::NoDevice { selector, what },
                    None => SelectError::Nothing {
                        candidates: nearest(machine, &selector),
                        selector,
                    },
                });
            }
            if found.is_empty() {
                selection.missing.push(selector.clone());
                selection
                    .reasons
                    .extend(what.map(|what| (selector.clone(), what)));
            }
            for Selected { name, via } in found {
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

/// An interface that a selector matched.
struct Selected {
    name: String,
    /// The matched name, if it is not the interface's own.
    via: Option<String>,
}

impl Selected {
    fn itself(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            via: None,
        }
    }
}

fn matching(machine: &Machine, selector: &str) -> Result<Vec<Selected>, SelectError> {
    let malformed = |reason| {
        Err(SelectError::Malformed {
            selector: selector.to_owned(),
            reason,
        })
    };
    let of = |holds: &dyn Fn(&crate::machine::Interface) -> bool| {
        Ok(machine
            .interfaces
            .iter()
            .filter(|i| holds(i))
            .map(|i| Selected::itself(&i.name))
            .collect())
    };
    if let Some(address) = pci_address(selector) {
        return of(&|i| i.device.address.eq_ignore_ascii_case(&address));
    }
    // Names may hold `*`, `?` and `[`, which the kernel allows.
    let named = by_name(machine, |name| name == selector);
    if !named.is_empty() {
        return Ok(named);
    }
    match selector.split_once(':') {
        Some(("pci", _)) => malformed("expected an address such as pci:0000:3b:00.0"),
        Some(("driver", driver)) if !driver.is_empty() => match Pattern::new(driver) {
            Ok(wanted) => of(&|i| i.driver.as_deref().is_some_and(|name| wanted.matches(name))),
            Err(error) => malformed(error.msg),
        },
        Some(("node", node)) => match node.parse::<u32>() {
            Ok(node) => of(&|i| machine.nodes_of(i).contains(node)),
            Err(_) => malformed("expected a node number such as node:1"),
        },
        Some(("driver", _)) => malformed("expected a driver name such as driver:mlx5_core"),
        _ if selector.is_empty() => malformed("it is empty"),
        _ => match Pattern::new(selector) {
            Ok(wanted) => Ok(by_name(machine, |name| wanted.matches(name))),
            Err(error) => malformed(error.msg),
        },
    }
}

/// The full address in `pci:0000:3b:00.0`, or without `pci:` as lspci(8) prints it; `3b:00.0` is short for
/// `0000:3b:00.0`.
fn pci_address(selector: &str) -> Option<String> {
    let address = selector.strip_prefix("pci:").unwrap_or(selector);
    let domain = if address.matches(':').count() == 1 {
        "0000:"
    } else {
        ""
    };
    Some(format!("{domain}{address}")).filter(|full| is_pci_address(full))
}

/// By name or glob. What stands on others stands for the interfaces below it, and an RDMA device for those of
/// its function.
fn by_name(machine: &Machine, is: impl Fn(&str) -> bool) -> Vec<Selected> {
    let altnames = |name: &str| machine.altnames.get(name).into_iter().flatten();
    let is = |name: &str| is(name) || altnames(name).any(|other| is(other));
    let interfaces = machine.interfaces.iter().map(|i| i.name.as_str());
    let mut found: Vec<Selected> = interfaces
        .filter(|name| is(name))
        .map(Selected::itself)
        .collect();
    for stacked in machine.stacked.iter().filter(|stacked| is(&stacked.name)) {
        for name in below(machine, &stacked.name) {
            if !is(name) {
                found.push(Selected {
                    name: name.to_owned(),
                    via: Some(stacked.name.clone()),
                });
            }
        }
    }
    if found.is_empty() {
        for rdma in machine.others.rdma.iter().filter(|rdma| is(&rdma.name)) {
            let own = machine
                .interfaces
                .iter()
                .filter(|i| Some(&i.device.address) == rdma.device.as_ref());
            found.extend(own.map(|i| Selected {
                name: i.name.clone(),
                via: Some(rdma.name.clone()),
            }));
        }
    }
    found
}

/// The interfaces with a device at any depth below one.
fn below<'a>(machine: &'a Machine, top: &'a str) -> Vec<&'a str> {
    let (mut todo, mut seen, mut names) = (vec![top], BTreeSet::new(), Vec::new());
    while let Some(name) = todo.pop() {
        if !seen.insert(name) {
            continue;
        }
        if name != top && machine.interfaces.iter().any(|i| i.name == name) {
            names.push(name);
        }
        let stacked = machine
            .stacked
            .iter()
            .filter(|stacked| stacked.name == name);
        todo.extend(stacked.flat_map(|stacked| stacked.lowers.iter().map(String::as_str)));
    }
    names
}

/// Kinds of interfaces that wrap packets in others, or encrypt them, by the kernel's words (`DEVTYPE`).
const WRAPPING: [&str; 6] = ["vxlan", "geneve", "gtp", "bareudp", "wireguard", "macsec"];

impl Machine {
    /// The interface that wraps packets in others, among that of this name and those below it.
    pub(crate) fn tunnel(&self, name: &str) -> Option<String> {
        let (mut todo, mut seen) = (vec![name], BTreeSet::new());
        while let Some(name) = todo.pop() {
            let wraps = |kind: &str| WRAPPING.contains(&kind);
            let alone = self.others.virtuals.iter().find(|one| one.name == name);
            let stacked = self.stacked.iter().find(|stacked| stacked.name == name);
            let kind = stacked.and_then(|stacked| stacked.kind.as_deref());
            if kind.is_some_and(wraps)
                || alone.is_some_and(|one| {
                    WRAPPING
                        .iter()
                        .any(|kind| one.kind.contains(&format!("({kind})")))
                })
            {
                return Some(name.to_owned());
            }
            if seen.insert(name) {
                todo.extend(
                    stacked
                        .iter()
                        .flat_map(|stacked| &stacked.lowers)
                        .map(String::as_str),
                );
            }
        }
        None
    }
}

/// What an interface without a device is, to follow "it is"; `None` for any other name.
pub fn without_device(machine: &Machine, name: &str) -> Option<String> {
    if let Some(known) = machine
        .others
        .virtuals
        .iter()
        .find(|known| known.name == name)
    {
        return Some(known.kind.clone());
    }
    let stacked = machine
        .stacked
        .iter()
        .find(|stacked| stacked.name == name)?;
    let has_device =
        machine.interfaces.iter().any(|i| i.name == name) || !below(machine, name).is_empty();
    (!has_device).then(|| format!("a virtual interface on {}", stacked.lowers.join(", ")))
}

/// What a selector names, if it is not an interface with a device.
fn explain(machine: &Machine, selector: &str) -> Option<String> {
    match pci_address(selector) {
        Some(address) => machine.others.explain_pci(&address),
        None => machine.others.explain(selector),
    }
}

/// Selectors of one kind, each of which matches an interface: `pci`, `driver`, `node`, or, as an empty string, names of
/// interfaces and of what stands for them.
pub fn selectors(machine: &Machine, kind: &str) -> Vec<String> {
    let of = |i: &crate::machine::Interface| match kind {
        "pci" => vec![format!("pci:{}", i.device.address)],
        "driver" => i
            .driver
            .iter()
            .map(|driver| format!("driver:{driver}"))
            .collect(),
        "node" => machine
            .nodes_of(i)
            .iter()
            .map(|node| format!("node:{node}"))
            .collect(),
        _ => {
            let altnames = machine.altnames.get(&i.name).into_iter().flatten();
            altnames.chain([&i.name]).cloned().collect()
        }
    };
    let mut names: Vec<String> = machine.interfaces.iter().flat_map(of).collect();
    if kind.is_empty() {
        let stacked = machine
            .stacked
            .iter()
            .filter(|stacked| !below(machine, &stacked.name).is_empty());
        names.extend(stacked.map(|stacked| stacked.name.clone()));
        let of_one = |device: &String| {
            machine
                .interfaces
                .iter()
                .any(|i| i.device.address == *device)
        };
        let rdma = machine
            .others
            .rdma
            .iter()
            .filter(|rdma| rdma.device.as_ref().is_some_and(of_one));
        names.extend(rdma.map(|rdma| rdma.name.clone()));
    }
    names.sort();
    names.dedup();
    names
}

/// The names most similar to a selector, best first.
fn nearest(machine: &Machine, selector: &str) -> String {
    if let Some(stacked) = machine
        .stacked
        .iter()
        .find(|stacked| stacked.name == selector)
    {
        let lowers = stacked.lowers.join(", ");
        return format!("it is above {lowers}, and no interface below it has a device");
    }
    let (kind, typed) = match selector.split_once(':') {
        _ if pci_address(selector).is_some() => ("pci", selector),
        Some((kind @ ("pci" | "driver" | "node"), rest)) => (kind, rest),
        _ => ("", selector),
    };
    let mut names = selectors(machine, kind);
    let bare = |name: &str| {
        name.strip_prefix(kind)
            .unwrap_or(name)
            .trim_start_matches(':')
            .to_owned()
    };
    let likeness = |name: &String| strsim::jaro_winkler(&bare(name), typed);
    names.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)).then_with(|| a.cmp(b)));
    let total = names.len();
    let listed: Vec<String> = names.into_iter().take(5).collect();
    match total {
        0 => "this machine has no interface with a device".to_owned(),
        1..=5 => format!("there is {}", listed.join(", ")),
        _ => format!("nearest are {} (of {total})", listed.join(", ")),
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
                online: crate::cpuset::CpuSet::below(2),
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
        // Without this order the first and the last match nothing, and the second all three.
        for name in ["eth[12]", "eth*", "eth[0"] {
            assert_eq!(selected(&machine, name), [name]);
        }
        assert_eq!(selected(&machine, "et?*").len(), 3);
        // The same of an altname and of what stands on others.
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
            // Names without an interface are not listed.
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
                (vec![selector.to_owned()], true)
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
