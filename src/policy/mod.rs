//! The policy: the policy file (TOML), and the command-line options that override it.
//!
//! Every `[[rule]]` that matches an interface applies, in the file's order: a later setting replaces the same earlier
//! one.

mod file;
mod setting;
mod settings;
mod table;

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

pub use file::{PolicyError, without_comments};
use glob::Pattern;
pub use setting::{PolicyEntry, PolicySetting, PolicyValue, SettingError};
pub(crate) use settings::find_entry;
pub use settings::{Settings, possible_cpus};
pub use table::*;

use crate::cpuset::Inserted as _;
use crate::drivers::Taught;
use crate::machine::{Interface, Machine, Program};

/// The settings of the file and of the command line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Policy {
    /// The file's settings for the machine.
    pub machine: Settings,
    /// The file's settings for every interface.
    pub defaults: Settings,
    pub rules: Vec<Rule>,
    pub drivers: Vec<Taught>,
    /// The command line's settings, which override the file's.
    pub options: Settings,
}

/// Settings for the interfaces for which all conditions hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rule {
    conditions: Vec<Condition>,
    /// As in the file: `name = "ens*", node = 1`.
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

#[derive(Debug, Clone, PartialEq)]
enum Condition {
    Name(Pattern),
    Driver(Pattern),
    Device(Pattern),
    Node(u32),
    Pci(Pattern),
    Speed(RangeInclusive<u32>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    settings: Settings,
    /// Rules that matched, counted from 1.
    pub(crate) rules: Vec<usize>,
}

impl Policy {
    /// Whether any scope is `hint`.
    pub fn wants_hints(&self) -> bool {
        self.given(&SCOPE).any(|scope| scope == Scope::Hint)
    }

    /// Whether exclusive cpuset partitions are left out anywhere.
    pub fn wants_exclusive(&self) -> bool {
        self.given(&AVOID_EXCLUSIVE).any(|avoid| avoid)
    }

    /// Whether RFS is planned or turned off anywhere.
    pub fn wants_flow_counts(&self) -> bool {
        self.given(&RFS).any(|rfs| rfs != Rfs::Keep)
    }

    /// Whether any setting decides on exclusive cpuset partitions.
    pub fn decides_on_exclusive(&self) -> bool {
        self.given(&AVOID_EXCLUSIVE).next().is_some()
    }

    pub fn programs(&self) -> BTreeSet<Program> {
        let near = self.given(&NEAR).flatten();
        near.filter_map(|near| match near {
            Near::Program(program) => Some(program),
            Near::Cpus(_) => None,
        })
        .inserted()
    }

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

    /// Refuses an option without effect on any of these interfaces beside the file's settings.
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

    pub(crate) fn get<T: Clone>(&self, setting: &PolicySetting<T>) -> T {
        self.options
            .get(setting)
            .or_else(|| self.machine.get(setting))
            .unwrap_or_else(|| setting.default_value())
    }

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

#[cfg(test)]
mod tests;
