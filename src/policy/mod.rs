//! What a site wants: the policy file (TOML), and the command-line options that override it.
//!
//! A file has `[defaults]` and any number of `[[rule]]`s. Every rule that matches an interface applies, in
//! the file's order, each over the ones before it; options from the command line come last.

pub mod check;
mod words;

use serde::Deserialize;
use wildmatch::WildMatch;

use crate::cpuset::CpuSet;
use crate::machine::Interface;

pub use words::{Balancer, ChannelCount, Group, Per, Rfs, Rps, Scope, Speed, Widen, WordError, Xps};

/// A policy: the file's words and the command line's.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// What becomes of irqbalance; the command line's word goes in here, too.
    pub irqbalance: Option<Balancer>,
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

/// What can be set. `None`: not said here.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// Whose CPUs are candidates.
    pub scope: Option<Scope>,
    /// CPUs that take no interrupts and no RPS work.
    pub exclude: Option<CpuSet>,
    /// At most so many cores of a node take queue vectors.
    #[serde(default, deserialize_with = "words::from_one")]
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
    /// How many channels the card should have.
    pub channels: Option<ChannelCount>,
    /// Let each vector go to a group of CPUs in place of one.
    pub group: Option<Group>,
    /// Leave the interface alone.
    pub skip: Option<bool>,
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
    /// How many channels the card should have.
    pub channels: ChannelCount,
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
            channels: first(&layers, |s| s.channels).unwrap_or(ChannelCount::Keep),
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
            && self.speed.is_none_or(|speed| interface.speed_mbps.is_some_and(|mbps| speed.holds(mbps)))
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
             rps = '1-3'\nxps = 'keep'\nrfs = 32768\nchannels = 6\ngroup = 'l3'\nskip = true\n",
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
            channels: ChannelCount::Count(6),
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
            ("[defaults]\nrfs = -5\n", "`-5` is none of off, keep, or a number of flows"),
            ("[defaults]\nirq-cores = 0\n", "line 2, column 13"),
            ("[defaults]\ngroup = { cpus = '1', mask = '2' }\n", "line 2, column 9"),
        ] {
            let error = Policy::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?} gave {error}");
        }
    }
}
