//! What a site wants: the policy file (TOML), and the command-line options that override it.
//!
//! A file has `[defaults]` and any number of `[[rule]]`s. Every rule that matches an interface applies, in
//! the file's order, each over the ones before it; options from the command line come last.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use wildmatch::WildMatch;

use crate::cpuset::CpuSet;
use crate::host::Interface;

/// A policy: the file's words and the command line's.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// What holds for every interface.
    #[serde(default)]
    pub defaults: Settings,
    /// What holds for some.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Rule>,
    /// The command line's options, which come over everything.
    #[serde(skip)]
    pub options: Settings,
}

/// Settings for the interfaces that match.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Which interfaces. All conditions that are given must hold.
    #[serde(rename = "match")]
    pub matches: Match,
    /// What holds for them.
    pub set: Settings,
}

/// Conditions on an interface; one that is not given holds for every interface.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Match {
    /// The interface's name, or a glob (`ens*`).
    pub name: Option<String>,
    /// The driver's name, or a glob.
    pub driver: Option<String>,
    /// The bus device's address, or a glob (`0000:3b:00.?`).
    pub device: Option<String>,
    /// The device's node.
    pub node: Option<u32>,
    /// PCI vendor and device, in hex: `15b3:1017`; a glob (`15b3:*`).
    pub pci: Option<String>,
    /// The link's speed in Mbit/s, or a bound: `10000`, `">=25000"`, `"<10000"`. A link whose speed is not known
    /// matches none.
    pub speed: Option<Speed>,
}

/// A condition on the link's speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speed {
    least: u32,
    most: u32,
}

impl FromStr for Speed {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        let digits = text.trim_start_matches(['<', '>', '=']);
        let (sign, number) = text.split_at(text.len() - digits.len());
        let number: Option<u32> = number.trim().parse().ok();
        let bounds = number.and_then(|mbps| match sign {
            "" | "=" => Some((mbps, mbps)),
            ">=" => Some((mbps, u32::MAX)),
            ">" => Some((mbps.checked_add(1)?, u32::MAX)),
            "<=" => Some((0, mbps)),
            "<" => Some((0, mbps.checked_sub(1)?)),
            _ => None,
        });
        let error = || WordError {
            text: text.to_owned(),
            expected: "a speed in Mbit/s such as 10000, >=25000 or <10000",
        };
        bounds.map(|(least, most)| Self { least, most }).ok_or_else(error)
    }
}

/// What can be set. `None`: not said here.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// Whose CPUs are candidates.
    pub scope: Option<Scope>,
    /// CPUs that take no interrupts and no RPS work.
    pub exclude: Option<CpuSet>,
    /// At most so many cores of a node take queue vectors.
    pub irq_cores: Option<usize>,
    /// How many cores may take queue vectors.
    pub per: Option<Per>,
    /// What to do when the node has fewer cores than the interface has queues.
    pub widen: Option<Widen>,
    /// Count SMT siblings as cores of their own.
    pub siblings: Option<bool>,
    /// Use the core of CPU 0 last.
    pub avoid_cpu0: Option<bool>,
    /// Receive packet steering.
    pub rps: Option<Rps>,
    /// Transmit packet steering.
    pub xps: Option<Xps>,
    /// Receive flow steering.
    pub rfs: Option<Rfs>,
    /// Let each vector go to a group of CPUs in place of one.
    pub group: Option<Group>,
    /// Leave the interface alone.
    pub skip: Option<bool>,
}

/// Where an interface's vectors may go.
#[derive(Debug, Clone, PartialEq)]
pub enum Scope {
    /// The interface's own node.
    Local,
    /// Every node.
    All,
    /// Every node but the interface's own.
    Remote,
    /// Where the driver's hint says (`affinity_hint`).
    Hint,
    /// These CPUs.
    Cpus(CpuSet),
}

/// Which cores may take queue vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// Every core.
    Core,
    /// One core of each L3 domain.
    L3,
}

/// Where queues go that are more than their node's cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Widen {
    /// They share the node's cores.
    Never,
    /// To the nearest nodes of the same package, by distance, as far as it takes: for packages that are parted into
    /// several nodes (sub-NUMA clustering, NPS).
    Package,
}

/// Which CPUs receive packets that a queue hands on.
#[derive(Debug, Clone, PartialEq)]
pub enum Rps {
    /// Where hardware queues are missing.
    Auto,
    /// None.
    Off,
    /// These, for every queue.
    Cpus(CpuSet),
}

/// Which transmit queue a CPU sends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Xps {
    /// The one whose completions are nearest.
    Auto,
    /// Whatever the hash says.
    Off,
    /// As it is.
    Keep,
}

/// The size of the flow table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rfs {
    /// Entries over all interfaces.
    Entries(u32),
    /// None.
    Off,
    /// As it is.
    Keep,
}

/// A group of CPUs for a vector.
#[derive(Debug, Clone, PartialEq)]
pub enum Group {
    /// The L3 domain of the CPU that the vector would get.
    L3,
    /// These CPUs.
    Cpus(CpuSet),
}

/// Everything that holds for one interface.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Whose CPUs are candidates.
    pub scope: Scope,
    /// CPUs kept free.
    pub exclude: CpuSet,
    /// Most cores of a node with queue vectors.
    pub irq_cores: Option<usize>,
    /// How many cores may take queue vectors.
    pub per: Per,
    /// What to do when the node is too small.
    pub widen: Widen,
    /// Whether siblings count as cores.
    pub siblings: bool,
    /// Whether the core of CPU 0 is used last.
    pub avoid_cpu0: bool,
    /// Receive packet steering.
    pub rps: Rps,
    /// Transmit packet steering.
    pub xps: Xps,
    /// Receive flow steering.
    pub rfs: Rfs,
    /// Groups in place of single CPUs.
    pub group: Option<Group>,
    /// Whether to leave the interface alone.
    pub skip: bool,
    /// The rules that matched, counted from 1 in the file's order.
    pub rules: Vec<usize>,
}

impl Policy {
    /// Parses a policy file. The error's text has the line, the column and the line itself.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Whether anything in it asks for the drivers' hints.
    pub fn wants_hints(&self) -> bool {
        let rules = self.rules.iter().map(|rule| &rule.set);
        rules.chain([&self.defaults, &self.options]).any(|settings| settings.scope == Some(Scope::Hint))
    }

    /// What holds for an interface.
    pub fn choice(&self, interface: &Interface) -> Choice {
        let matching = |(_, rule): &(usize, &Rule)| rule.matches.holds(interface);
        let rules: Vec<(usize, &Rule)> = (1..).zip(&self.rules).filter(matching).collect();
        let layers: Vec<&Settings> = std::iter::once(&self.options)
            .chain(rules.iter().rev().map(|(_, rule)| &rule.set))
            .chain(std::iter::once(&self.defaults))
            .collect();
        Choice {
            scope: first(&layers, |s| s.scope.clone()).unwrap_or(Scope::Local),
            exclude: first(&layers, |s| s.exclude.clone()).unwrap_or_default(),
            irq_cores: first(&layers, |s| s.irq_cores),
            per: first(&layers, |s| s.per).unwrap_or(Per::Core),
            widen: first(&layers, |s| s.widen).unwrap_or(Widen::Never),
            siblings: first(&layers, |s| s.siblings).unwrap_or(false),
            avoid_cpu0: first(&layers, |s| s.avoid_cpu0).unwrap_or(true),
            rps: first(&layers, |s| s.rps.clone()).unwrap_or(Rps::Auto),
            xps: first(&layers, |s| s.xps).unwrap_or(Xps::Auto),
            rfs: first(&layers, |s| s.rfs).unwrap_or(Rfs::Keep),
            group: first(&layers, |s| s.group.clone()),
            skip: first(&layers, |s| s.skip).unwrap_or(false),
            rules: rules.iter().map(|&(number, _)| number).collect(),
        }
    }
}

/// The first layer that says something.
fn first<T>(layers: &[&Settings], said: impl Fn(&Settings) -> Option<T>) -> Option<T> {
    layers.iter().find_map(|layer| said(layer))
}

impl Match {
    fn holds(&self, interface: &Interface) -> bool {
        let glob = |wanted: &Option<String>, text: &str| {
            wanted.as_ref().is_none_or(|wanted| WildMatch::new(wanted).matches(text))
        };
        glob(&self.name, &interface.name)
            && glob(&self.driver, interface.driver.as_deref().unwrap_or_default())
            && glob(&self.device, &interface.device.address)
            && glob(&self.pci, interface.device.pci_id.as_deref().unwrap_or_default())
            && self.node.is_none_or(|node| interface.device.node == Some(node))
            && self.speed.is_none_or(|Speed { least, most }| {
                interface.speed_mbps.is_some_and(|mbps| (least..=most).contains(&mbps))
            })
    }
}

/// A word where a choice or a CPU list was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is none of {expected}")]
pub struct WordError {
    text: String,
    expected: &'static str,
}

impl FromStr for Scope {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match text {
            "local" => Ok(Self::Local),
            "all" => Ok(Self::All),
            "remote" => Ok(Self::Remote),
            "hint" => Ok(Self::Hint),
            list => cpus(list, "local, all, remote, hint, or a CPU list such as 0-3,8").map(Self::Cpus),
        }
    }
}

impl FromStr for Rps {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            list => cpus(list, "auto, off, or a CPU list such as 0-3,8").map(Self::Cpus),
        }
    }
}

impl FromStr for Xps {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            "keep" => Ok(Self::Keep),
            _ => Err(WordError { text: text.to_owned(), expected: "auto, off, keep" }),
        }
    }
}

impl FromStr for Rfs {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        // The kernel's own limit for the table (`net/core/sysctl_net_core.c`).
        let number = || text.parse().ok().filter(|entries| (1..=1 << 29).contains(entries));
        match text {
            "off" => Ok(Self::Off),
            "keep" => Ok(Self::Keep),
            _ => number().map(Self::Entries).ok_or_else(|| WordError {
                text: text.to_owned(),
                expected: "off, keep, or a number of flows from 1 to 536870912 such as 32768",
            }),
        }
    }
}

fn cpus(text: &str, expected: &'static str) -> Result<CpuSet, WordError> {
    let set = CpuSet::parse_list(text).ok().filter(|set| !set.is_empty());
    set.ok_or_else(|| WordError { text: text.to_owned(), expected })
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::All => f.write_str("all"),
            Self::Remote => f.write_str("remote"),
            Self::Hint => f.write_str("hint"),
            Self::Cpus(cpus) => cpus.fmt(f),
        }
    }
}

macro_rules! deserialize_word {
    ($($word:ty),*) => {$(
        impl<'de> Deserialize<'de> for $word {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    )*};
}
deserialize_word!(Scope, Rps, Xps);

/// A number, or a word for which a type has its own reading.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number or a word")]
enum NumberOrWord {
    Number(u32),
    Word(String),
}

macro_rules! deserialize_number_or_word {
    ($($word:ty),*) => {$(
        impl<'de> Deserialize<'de> for $word {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let said = match NumberOrWord::deserialize(deserializer)? {
                    NumberOrWord::Number(number) => number.to_string(),
                    NumberOrWord::Word(word) => word,
                };
                said.parse().map_err(D::Error::custom)
            }
        }
    )*};
}
deserialize_number_or_word!(Rfs, Speed);

impl<'de> Deserialize<'de> for Group {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected \"l3\", { cpus = \"4-7\" } or { mask = \"000000f0\" }")]
        enum Said {
            Word(String),
            Cpus { cpus: CpuSet },
            Mask { mask: String },
        }
        let cpus = match Said::deserialize(deserializer)? {
            Said::Word(word) if word == "l3" => return Ok(Self::L3),
            Said::Word(word) => return Err(D::Error::custom(format!("`{word}` is not `l3`"))),
            Said::Cpus { cpus } => cpus,
            Said::Mask { mask } => CpuSet::parse_mask(&mask).map_err(D::Error::custom)?,
        };
        if cpus.is_empty() {
            return Err(D::Error::custom("a group needs at least one CPU"));
        }
        Ok(Self::Cpus(cpus))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, driver: &str) -> Interface {
        Interface { name: name.into(), driver: Some(driver.into()), ..Interface::default() }
    }

    #[test]
    fn later_rules_and_options_override() {
        let mut policy = Policy::parse(
            "[defaults]\nscope = 'all'\nrps = 'off'\n\
             [[rule]]\nmatch = { driver = 'mlx5*' }\nset = { scope = 'local', exclude = '0-1' }\n\
             [[rule]]\nmatch = { name = 'ens1*', driver = 'mlx5_core' }\nset = { scope = '4-7' }\n",
        )
        .unwrap();
        let choice = policy.choice(&interface("ens1f0", "mlx5_core"));
        assert_eq!(choice.scope, Scope::Cpus(CpuSet::parse_list("4-7").unwrap()));
        assert_eq!((choice.rps, choice.exclude.to_string()), (Rps::Off, "0-1".to_owned()));
        assert_eq!(choice.rules, [1, 2]);
        assert_eq!(policy.choice(&interface("ens2f0", "mlx5_core")).scope, Scope::Local);
        assert_eq!(policy.choice(&interface("ens1f0", "igb")).scope, Scope::All);
        policy.options.scope = Some(Scope::Remote);
        assert_eq!(policy.choice(&interface("ens1f0", "mlx5_core")).scope, Scope::Remote);
    }

    #[test]
    fn every_setting_is_read() {
        let policy = Policy::parse(
            "[defaults]\nscope = 'remote'\nexclude = '0'\nirq-cores = 2\nper = 'l3'\nwiden = 'package'\nsiblings = true\navoid-cpu0 = false\n\
             rps = '1-3'\nxps = 'keep'\nrfs = 32768\ngroup = 'l3'\nskip = true\n",
        );
        let choice = policy.unwrap().choice(&interface("eth0", "igb"));
        let expected = Choice {
            scope: Scope::Remote,
            exclude: CpuSet::single(0),
            irq_cores: Some(2),
            per: Per::L3,
            widen: Widen::Package,
            siblings: true,
            avoid_cpu0: false,
            rps: Rps::Cpus(CpuSet::parse_list("1-3").unwrap()),
            xps: Xps::Keep,
            rfs: Rfs::Entries(32768),
            group: Some(Group::L3),
            skip: true,
            rules: vec![],
        };
        assert_eq!(choice, expected);
    }

    #[test]
    fn groups() {
        for (given, expected) in [("{ cpus = '4-7' }", "4-7"), ("{ mask = '00000000,000000f0' }", "4-7")] {
            let policy = Policy::parse(&format!("[defaults]\ngroup = {given}\n")).unwrap();
            assert_eq!(policy.defaults.group, Some(Group::Cpus(CpuSet::parse_list(expected).unwrap())));
        }
        for bad in ["'l2'", "{ cpus = '' }", "{ mask = 'zz' }", "3", "{ cpu = '1' }"] {
            assert!(Policy::parse(&format!("[defaults]\ngroup = {bad}\n")).is_err(), "{bad}");
        }
    }

    #[test]
    fn errors_have_a_line_and_a_column() {
        for (text, expected) in [
            ("[defaults]\nscope = 'near'\n", "line 2, column 9"),
            ("[defaults]\nscoop = 'local'\n", "unknown field `scoop`"),
            ("[[rule]]\nmatch = { nam = 'x' }\nset = {}\n", "unknown field `nam`"),
            ("[defaults]\nexclude = '3-1'\n", "runs downwards"),
            ("[defaults]\nsiblings = 'yes'\n", "expected a boolean"),
            ("[defaults]\nrfs = 0\n", "a number of flows"),
        ] {
            let error = Policy::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?} gave {error}");
        }
    }
}
