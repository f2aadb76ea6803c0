//! The settings that one place gives: a file's defaults, a rule, or the command line.

use std::collections::BTreeMap;

use crate::cpuset::CpuSet;
use crate::policy::setting::{Entry, Setting, SettingError, Value};
use crate::policy::table::{
    GROUP, Group, IRQ_CORES, NEAR, PER, Per, SCOPE, SETTINGS, Scope, WIDEN, Widen,
};

/// A setting that has no effect beside another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoEffect(pub(crate) String);

/// A CPU list with a CPU that the machine cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} names CPU {cpu}, and this machine has no CPU above {last}")]
pub struct ImpossibleCpu {
    /// The option.
    pub setting: String,
    /// The highest CPU in the list.
    pub cpu: u32,
    /// The highest possible CPU of the machine.
    pub last: u32,
}

/// Refuses a set with a CPU beyond `possible`, the kernel's `nr_cpu_ids`.
pub fn possible_cpus(option: &str, cpus: &CpuSet, possible: u32) -> Result<(), ImpossibleCpu> {
    match cpus.last() {
        Some(cpu) if cpu >= possible => Err(ImpossibleCpu {
            setting: format!("--{option}"),
            cpu,
            last: possible.saturating_sub(1),
        }),
        _ => Ok(()),
    }
}

/// The setting with this key.
pub(crate) fn named(key: &str) -> Option<&'static Entry> {
    SETTINGS.iter().find(|entry| entry.key == key)
}

/// Settings that were given in one place, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<&'static str, Value>);

impl Settings {
    /// Settings from keys and values as they are typed: `[("scope", "all"), ("rfs", "32768")]`.
    pub fn of<'a>(
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, SettingError> {
        let read = |(key, text): (&str, &str)| {
            let entry =
                named(key).ok_or_else(|| SettingError(format!("there is no setting `{key}`")))?;
            let value = entry.read(text);
            value
                .map_err(|error| SettingError(format!("{key}: {error}")))
                .map(|value| (entry.key, value))
        };
        given
            .into_iter()
            .map(read)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub fn set(&mut self, entry: &Entry, value: Value) {
        self.0.insert(entry.key, value);
    }

    /// A setting, if it is given here.
    #[doc(hidden)]
    pub fn get<T: Clone>(&self, setting: &Setting<T>) -> Option<T> {
        setting.meaning(self.0.get(setting.key)?)
    }

    /// Refuses a setting without effect beside another one given here. `place` begins the message, `dashes` each setting.
    pub(crate) fn check_effects(&self, place: &str, dashes: &str) -> Result<(), NoEffect> {
        self.without_effect(self).map_or(Ok(()), |(setting, beside)| {
            Err(NoEffect(format!(
                "{place}{dashes}{setting} has no effect beside {dashes}{beside}; fix: leave one of them out"
            )))
        })
    }

    /// A setting given here that has no effect where `all` holds, and what takes its effect, with its value.
    pub(crate) fn without_effect(&self, all: &Self) -> Option<(&'static str, String)> {
        let given = [
            (SCOPE.key, self.get(&SCOPE).is_some()),
            (NEAR.key, self.get(&NEAR).flatten().is_some()),
            (IRQ_CORES.key, self.get(&IRQ_CORES).flatten().is_some()),
            (PER.key, self.get(&PER) == Some(Per::L3)),
            (WIDEN.key, self.get(&WIDEN) == Some(Widen::Package)),
        ];
        let (without, beside) = match (all.get(&GROUP).flatten(), all.get(&SCOPE)) {
            (Some(Group::Cpus(cpus)), _) => (&given[..], format!("group {cpus}")),
            (_, Some(Scope::Cpus(cpus))) => (&given[1..], format!("scope {cpus}")),
            (_, Some(Scope::Nodes(nodes))) => (&given[4..], format!("scope node:{nodes}")),
            (_, Some(Scope::All)) => (&given[4..], "scope all".to_owned()),
            (_, Some(Scope::Remote)) => (&given[4..], "scope remote".to_owned()),
            (_, None | Some(Scope::Local | Scope::Hint)) => return None,
        };
        let (key, _) = without.iter().find(|(_, given)| *given)?;
        Some((key, beside))
    }

    /// Whether nothing is given here.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes over what is given in `other`.
    pub(crate) fn override_with(&mut self, other: &Self) {
        self.0.extend(other.0.clone());
    }

    /// Refuses CPU lists with a CPU beyond `possible`, the kernel's `nr_cpu_ids`.
    pub fn check(&self, possible: u32) -> Result<(), ImpossibleCpu> {
        self.0.iter().try_for_each(|(key, value)| match value {
            Value::Cpus(cpus) => possible_cpus(key, cpus, possible),
            _ => Ok(()),
        })
    }
}
