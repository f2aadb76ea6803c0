//! The policy: the policy file (TOML), and the command-line options that override it.
//!
//! A file has `[defaults]` and `[[rule]]`s. Every rule that matches an interface applies, in the file's order, each
//! over the ones before it; options come last. A later setting replaces the same earlier one.

mod file;
mod setting;
mod table;

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

pub use file::{PolicyError, without_comments};
use glob::Pattern;
pub use setting::{PolicyEntry, PolicySetting, SettingError, Value};
pub use table::*;

use crate::cpuset::CpuSet;
use crate::drivers::Taught;
use crate::machine::{Interface, Machine, Program};

/// A policy: the file's settings and the command line's.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Policy {
    /// The file's settings for the machine.
    pub machine: Settings,
    /// The file's settings for every interface.
    pub defaults: Settings,
    /// The file's rules, in order.
    pub rules: Vec<Rule>,
    /// Drivers that the file teaches.
    pub drivers: Vec<Taught>,
    /// The command line's settings, which override the file's.
    pub options: Settings,
}

/// Settings for the interfaces for which all conditions hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rule {
    conditions: Vec<Condition>,
    /// The conditions as text: `name = "ens*", node = 1`.
    pub(crate) text: String,
    set: Settings,
}

/// The keys of `match` in a rule, with their meaning.
pub const CONDITIONS: [(&str, &str); 6] = [
    (
        "name",
        "the interface's name, a pattern: \"ens*\", \"eth[02]\"",
    ),
    ("driver", "the driver's name, a pattern"),
    ("device", "the bus address, a pattern: \"0000:3b:00.?\""),
    ("node", "the interface's node, a number"),
    (
        "pci",
        "PCI vendor and device in hex, a pattern: \"15b3:1017\", \"15b3:*\"",
    ),
    (
        "speed",
        "what the port can carry in Mbit/s, else its speed: 10000, \">=25000\"; unknown matches none",
    ),
];

/// A condition on an interface ([`CONDITIONS`]).
#[derive(Debug, Clone, PartialEq)]
enum Condition {
    Name(Pattern),
    Driver(Pattern),
    Device(Pattern),
    Node(u32),
    Pci(Pattern),
    /// In Mbit/s.
    Speed(RangeInclusive<u32>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    settings: Settings,
    /// The rules that matched, counted from 1 in the file's order.
    pub(crate) rules: Vec<usize>,
}

impl Policy {
    /// Whether any scope is `hint`.
    pub fn wants_hints(&self) -> bool {
        self.given(&SCOPE).any(|scope| scope == Scope::Hint)
    }

    /// Whether CPUs of exclusive cpuset partitions are left out anywhere.
    pub fn wants_exclusive(&self) -> bool {
        self.given(&AVOID_EXCLUSIVE).any(|avoid| avoid)
    }

    /// Whether RFS is planned or turned off anywhere.
    pub fn wants_flow_counts(&self) -> bool {
        self.given(&RFS).any(|rfs| rfs != Rfs::Keep)
    }

    /// Whether any setting says what to do about CPUs of exclusive cpuset partitions.
    pub fn decides_on_exclusive(&self) -> bool {
        self.given(&AVOID_EXCLUSIVE).next().is_some()
    }

    pub fn programs(&self) -> BTreeSet<Program> {
        let near = self.given(&NEAR).flatten();
        near.filter_map(|near| match near {
            Near::Program(program) => Some(program),
            Near::Cpus(_) => None,
        })
        .collect()
    }

    /// Returns all values of a setting, in the file and on the command line.
    fn given<T: Clone>(&self, setting: &'static PolicySetting<T>) -> impl Iterator<Item = T> {
        self.rules
            .iter()
            .map(|rule| &rule.set)
            .chain([&self.defaults, &self.options])
            .filter_map(|settings| settings.get(setting))
    }

    /// Refuses options without effect beside others; [`Policy::parse`] refuses such settings of a file.
    pub fn check_effects(&self) -> Result<(), SettingError> {
        self.options.check_effects("--")
    }

    /// Refuses an option that has no effect on any of these interfaces beside the file's settings.
    pub fn check_options<'a>(
        &self,
        machine: &Machine,
        interfaces: impl IntoIterator<Item = &'a Interface>,
    ) -> Result<(), SettingError> {
        let mut found = Ok(());
        for interface in interfaces {
            let all = self.choice(machine, interface).settings;
            let Some((setting, beside)) = self.options.without_effect(&all) else {
                return Ok(());
            };
            found = Err(SettingError(format!(
                "--{setting} has no effect on {} beside {beside} of the policy file; fix: leave it out",
                interface.name
            )));
        }
        found
    }

    /// Returns a setting of the machine.
    pub(crate) fn get<T: Clone>(&self, setting: &PolicySetting<T>) -> T {
        self.options
            .get(setting)
            .or_else(|| self.machine.get(setting))
            .unwrap_or_else(|| setting.default_value())
    }

    /// Returns the settings that apply to an interface.
    pub(crate) fn choice(&self, machine: &Machine, interface: &Interface) -> Choice {
        let names = LazyCell::new(|| machine.names());
        let is_name = |name: &str| names.contains(name);
        let (rules, matched): (_, Vec<_>) = (1..)
            .zip(&self.rules)
            .filter(|(_, rule)| rule.matches(machine, is_name, interface))
            .unzip();
        let mut settings = self.options.clone();
        for rule in matched.into_iter().rev() {
            settings.complete_with(&rule.set);
        }
        settings.complete_with(&self.defaults);
        Choice { settings, rules }
    }
}

impl Rule {
    /// Whether all conditions hold. `is_name`: whether an interface of the machine has this name.
    pub(crate) fn matches(
        &self,
        machine: &Machine,
        is_name: impl Fn(&str) -> bool,
        interface: &Interface,
    ) -> bool {
        let Interface { name, device, .. } = interface;
        let fits = |pattern: &Pattern, text: &Option<String>| {
            pattern.matches(text.as_deref().unwrap_or_default())
        };
        self.conditions.iter().all(|condition| match condition {
            // As with selectors, the interface of that very name comes before those that match.
            Condition::Name(pattern) => {
                let wanted = pattern.as_str();
                name == wanted || pattern.matches(name) && !is_name(wanted)
            }
            Condition::Driver(pattern) => fits(pattern, &interface.driver),
            Condition::Device(pattern) => pattern.matches(&device.address),
            Condition::Node(node) => machine.nodes_of(interface).contains(*node),
            Condition::Pci(pattern) => fits(pattern, &device.pci_id),
            // Whichever carriers are there.
            Condition::Speed(speeds) => interface
                .supported_mbps
                .or(interface.speed_mbps)
                .is_some_and(|mbps| speeds.contains(&mbps)),
        })
    }
}

impl Choice {
    pub(crate) fn get<T: Clone>(&self, setting: &PolicySetting<T>) -> T {
        self.settings
            .get(setting)
            .unwrap_or_else(|| setting.default_value())
    }
}

/// Refuses a set without a CPU, and one with a CPU beyond `possible`, the kernel's `nr_cpu_ids`.
pub fn possible_cpus(option: &str, cpus: &CpuSet, possible: u32) -> Result<(), SettingError> {
    let wrong = match cpus.last() {
        None => format!("`--{option}` names no CPU"),
        Some(cpu) if cpu < possible => return Ok(()),
        Some(cpu) => format!(
            "--{option} names CPU {cpu}, and this machine has no CPU above {}",
            possible.saturating_sub(1)
        ),
    };
    Err(SettingError(wrong))
}

pub(crate) fn find_entry(key: &str) -> Option<&'static PolicyEntry> {
    SETTINGS.iter().find(|entry| entry.key == key)
}

/// Settings that were given in one place, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<&'static str, Value>);

impl Settings {
    /// Parses keys and values as typed: `[("scope", "all"), ("rfs", "32768")]`.
    pub fn of<'a>(
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, SettingError> {
        let mut settings = Self::default();
        for (key, text) in given {
            let unknown = || SettingError(format!("there is no setting `{key}`"));
            let entry = find_entry(key).ok_or_else(unknown)?;
            let value = entry.read(text);
            let value = value.map_err(|error| SettingError(format!("{key}: {error}")))?;
            settings.set(entry, value);
        }
        Ok(settings)
    }

    pub fn set(&mut self, entry: &PolicyEntry, value: Value) {
        self.0.insert(entry.key, value);
    }

    /// Returns a setting that is given here.
    #[doc(hidden)]
    pub fn get<T: Clone>(&self, setting: &PolicySetting<T>) -> Option<T> {
        setting.meaning(self.0.get(setting.key)?)
    }

    /// Refuses a setting without effect beside another one given here. `dashes` begins the name of each.
    pub(crate) fn check_effects(&self, dashes: &str) -> Result<(), SettingError> {
        self.without_effect(self).map_or(Ok(()), |(setting, beside)| {
            Err(SettingError(format!(
                "{dashes}{setting} has no effect beside {dashes}{beside}; fix: leave one of them out"
            )))
        })
    }

    /// Returns a setting given here that has no effect under `all`, and the one that takes its effect, with its value.
    pub(crate) fn without_effect(&self, all: &Self) -> Option<(&'static str, String)> {
        let given = [
            (PACK_L3.key, self.get(&PACK_L3) == Some(true)),
            (SCOPE.key, self.get(&SCOPE).is_some()),
            (NEAR.key, self.get(&NEAR).flatten().is_some()),
            (IRQ_CORES.key, self.get(&IRQ_CORES).flatten().is_some()),
            (ONE_PER_L3.key, self.get(&ONE_PER_L3) == Some(true)),
            (WIDEN.key, self.get(&WIDEN) == Some(true)),
        ];
        let group = match all.get(&GROUP).flatten() {
            Some(Group::Cpus(cpus)) => Some((&given[..], format!("group {cpus}"))),
            _ => None,
        };
        let scope = match all.get(&SCOPE) {
            Some(Scope::Cpus(cpus)) => Some((&given[2..], format!("scope {cpus}"))),
            Some(Scope::Nodes(nodes)) => Some((&given[5..], format!("scope node:{nodes}"))),
            Some(Scope::All) => Some((&given[5..], "scope all".to_owned())),
            Some(Scope::Remote) => Some((&given[5..], "scope remote".to_owned())),
            None | Some(Scope::Local | Scope::Hint) => None,
        };
        let per_l3 = all.get(&ONE_PER_L3) == Some(true);
        let per_l3 = per_l3.then(|| (&given[..1], "per l3".to_owned()));
        let mut beside = [group, scope, per_l3].into_iter().flatten();
        beside.find_map(|(without, beside)| {
            let (key, _) = without.iter().find(|(_, given)| *given)?;
            Some((*key, beside))
        })
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the settings of `other` that are not given here.
    fn complete_with(&mut self, other: &Self) {
        for (key, value) in &other.0 {
            self.0.entry(key).or_insert_with(|| value.clone());
        }
    }

    /// Refuses CPU lists with a CPU beyond `possible`, the kernel's `nr_cpu_ids`.
    pub fn check(&self, possible: u32) -> Result<(), SettingError> {
        self.0.iter().try_for_each(|(key, value)| match value {
            Value::Cpus(cpus) => possible_cpus(key, cpus, possible),
            _ => Ok(()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, driver: &str) -> Interface {
        Interface {
            name: name.into(),
            driver: Some(driver.into()),
            ..Interface::default()
        }
    }

    #[test]
    fn later_rules_and_options_override() {
        let mut policy = Policy::parse(
            "[defaults]\nscope = 'all'\nrps = 'off'\n\
             [[rule]]\nmatch = { driver = 'mlx5*' }\nset = { scope = 'local', exclude = '0-1' }\n\
             [[rule]]\nmatch = { name = 'ens1*', driver = 'mlx5_core' }\nset = { scope = '4-7' }\n",
        )
        .unwrap();
        let choice = policy.choice(&Machine::default(), &interface("ens1f0", "mlx5_core"));
        assert_eq!(
            choice.get(&SCOPE),
            Scope::Cpus(CpuSet::parse_list("4-7").unwrap())
        );
        assert_eq!(
            (choice.get(&RPS), choice.get(&EXCLUDE).to_string()),
            (RpsMode::Off, "0-1".to_owned())
        );
        assert_eq!(choice.rules, [1, 2]);
        assert_eq!(
            policy
                .choice(&Machine::default(), &interface("ens2f0", "mlx5_core"))
                .get(&SCOPE),
            Scope::Local
        );
        assert_eq!(
            policy
                .choice(&Machine::default(), &interface("ens1f0", "igb"))
                .get(&SCOPE),
            Scope::All
        );
        policy.options = Settings::of([("scope", "remote")]).unwrap();
        assert_eq!(
            policy
                .choice(&Machine::default(), &interface("ens1f0", "mlx5_core"))
                .get(&SCOPE),
            Scope::Remote
        );
    }

    #[test]
    fn every_setting_is_read() {
        let text = "[defaults]\nscope = 'hint'\nexclude = '0'\nirq-cores = 2\nper = 'l3'\nwiden = 'package'\n\
                    siblings = true\navoid-cpu0 = false\nrps = '1-3'\nxps = 'keep'\nrfs = 32768\nchannels = 6\n\
                    group = 'l3'\nskip = true\n";
        let policy = Policy::parse(text);
        let choice = policy
            .unwrap()
            .choice(&Machine::default(), &interface("eth0", "igb"));
        assert_eq!(choice.get(&SCOPE), Scope::Hint);
        assert_eq!(choice.get(&EXCLUDE), CpuSet::single(0));
        assert_eq!(choice.get(&IRQ_CORES), Some(2));
        assert!(choice.get(&ONE_PER_L3) && choice.get(&WIDEN));
        assert!(choice.get(&SIBLINGS) && !choice.get(&AVOID_CPU0) && choice.get(&SKIP));
        assert_eq!(
            choice.get(&RPS),
            RpsMode::Cpus(CpuSet::parse_list("1-3").unwrap())
        );
        assert_eq!(choice.get(&XPS), Xps::Keep);
        assert_eq!(choice.get(&RFS), Rfs::Entries(32768));
        assert_eq!(choice.get(&CHANNELS), ChannelCount::Count(6));
        assert_eq!(choice.get(&GROUP), Some(Group::L3));
    }

    #[test]
    fn a_default_can_be_given_over_what_came_before() {
        for entry in SETTINGS.iter().filter(|entry| entry.is_for_interfaces()) {
            let values = entry.in_file();
            for (other, _) in &values[1..] {
                let text = format!(
                    "[defaults]\n{key} = {other}\n[[rule]]\nmatch = {{}}\nset = {{ {key} = {default} }}\n",
                    key = entry.key,
                    default = values[0].0
                );
                let policy = Policy::parse(&text).unwrap();
                let default =
                    Policy::parse(&format!("[defaults]\n{} = {}\n", entry.key, values[0].0))
                        .unwrap();
                assert_ne!(policy.defaults, default.defaults, "{text}");
                let eth0 = interface("eth0", "igb");
                assert_eq!(
                    policy.choice(&Machine::default(), &eth0).settings,
                    default.choice(&Machine::default(), &eth0).settings,
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn settings_of_the_machine() {
        let mut policy = Policy::parse("irqbalance = 'stop'\n").unwrap();
        assert_eq!(
            (policy.get(&IRQBALANCE), Policy::default().get(&IRQBALANCE)),
            (Balancer::Stop, Balancer::Ban)
        );
        policy.options = Settings::of([("irqbalance", "ignore")]).unwrap();
        assert_eq!(policy.get(&IRQBALANCE), Balancer::Ignore);
    }

    #[test]
    fn patterns_have_brackets() {
        let text = "[[rule]]\nmatch = { name = 'eth[02]', driver = 'i[!x]*' }\nset = {}\n";
        let policy = Policy::parse(text).unwrap();
        let rules = |name, driver| {
            policy
                .choice(&Machine::default(), &interface(name, driver))
                .rules
        };
        assert_eq!(
            (rules("eth0", "igb"), rules("eth2", "igb")),
            (vec![1], vec![1])
        );
        assert!(rules("eth1", "igb").is_empty() && rules("eth0", "ixgbe").is_empty());
    }

    #[test]
    fn groups() {
        for (given, expected) in [
            ("{ cpus = '4-7' }", "4-7"),
            ("{ mask = '00000000,000000f0' }", "4-7"),
            ("'4,5-7'", "4-7"),
        ] {
            let policy = Policy::parse(&format!("[defaults]\ngroup = {given}\n")).unwrap();
            let group = policy.defaults.get(&GROUP).unwrap();
            assert_eq!(
                group,
                Some(Group::Cpus(CpuSet::parse_list(expected).unwrap()))
            );
        }
        for bad in [
            "'l2'",
            "{ cpus = '' }",
            "{ mask = 'zz' }",
            "3",
            "{ cpu = '1' }",
        ] {
            assert!(
                Policy::parse(&format!("[defaults]\ngroup = {bad}\n")).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn errors_have_a_line_and_a_column() {
        for (text, expected) in [
            (
                "[defaults]\nscope = 'near'\n",
                "line 2, column 9: `near` is not one of local, all, remote, hint, a node such as node:1, or a CPU list",
            ),
            (
                "[defaults]\nscoop = 'local'\n",
                "line 2, column 1: unknown setting `scoop`; did you mean `scope`?",
            ),
            (
                "[defaults]\nspeed = 'local'\n",
                "unknown setting `speed`; expected one of scope, near, exclude, irq-cores,",
            ),
            (
                "[default]\n",
                "line 1, column 2: unknown key `default`; did you mean `defaults`?",
            ),
            (
                "x = 1\n",
                "unknown key `x`; expected one of defaults, rule, driver, only-gain, irqbalance",
            ),
            (
                "scope = 'all'\n",
                "line 1, column 1: `scope` belongs in [defaults], or in the `set` of a rule",
            ),
            (
                "[defaults]\nirqbalance = 'ban'\n",
                "line 2, column 1: `irqbalance` is a setting of the machine",
            ),
            (
                "[[rule]]\nmatch = { nam = 'x' }\nset = {}\n",
                "line 2, column 11: unknown condition `nam`; did you mean",
            ),
            (
                "[[rule]]\nmatch = { name = 'eth[0' }\nset = {}\n",
                "line 2, column 18: `eth[0` is not a pattern: ",
            ),
            (
                "[[rule]]\nmatch = { speed = 'fast' }\nset = {}\n",
                "`fast` is not a speed in Mbit/s such as 10000",
            ),
            (
                "[[rule]]\nmatch = { node = -1 }\nset = {}\n",
                "line 2, column 18: expected the number of a node",
            ),
            (
                "[[rule]]\nmatch = {}\n",
                "line 1, column 1: the rule has no `set`",
            ),
            (
                "[rule]\nmatch = {}\n",
                "expected rules, each headed by [[rule]]",
            ),
            (
                "[defaults]\nxps = 'of'\nexclude = ''\nscope = 'x'\n",
                "line 2, column 7",
            ),
            ("[defaults]\nexclude = '3-1'\n", "runs downwards"),
            (
                "[defaults]\nexclude = 'all'\n",
                "`all` is not a CPU list such as 0-3,8",
            ),
            (
                "[defaults]\nrfs = 99999999999999999999\n",
                "`99999999999999999999` is not one of keep, off, or a number of flows",
            ),
            (
                "[defaults]\nexclude = 3\n",
                "expected a string: a CPU list such as 0-3,8",
            ),
            ("[defaults]\nsiblings = 'yes'\n", "expected a boolean"),
            ("[defaults]\nrfs = 0\n", "a number of flows"),
            (
                "[defaults]\nrfs = -5\n",
                "`-5` is not one of keep, off, or a number of flows",
            ),
            ("[defaults]\nirq-cores = 0\n", "line 2, column 13"),
            (
                "[defaults]\ngroup = { cpus = '1', mask = '2' }\n",
                "line 2, column 9",
            ),
            (
                "[defaults]\ngroup = { cpu = '1' }\n",
                "line 2, column 11: unknown key `cpu`",
            ),
            (
                "[defaults]\ngroup = { mask = 'zz' }\n",
                "line 2, column 18: `zz` is not a CPU mask",
            ),
        ] {
            let error = Policy::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?} gave {error}");
        }
    }
}
