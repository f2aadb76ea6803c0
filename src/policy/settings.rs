//! The settings that one place gives: a file's defaults, a rule, or the command line.

use std::collections::BTreeMap;

use crate::policy::setting::{
    Entry, ImpossibleCpu, NoEffect, Setting, SettingError, Value, possible_cpus,
};
use crate::policy::table::{
    GROUP, Group, IRQ_CORES, NEAR, PER, Per, SCOPE, SETTINGS, Scope, WIDEN, Widen,
};

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
        let mut settings = Self::default();
        for (key, text) in given {
            let entry =
                named(key).ok_or_else(|| SettingError(format!("there is no setting `{key}`")))?;
            let value = entry
                .read(text)
                .map_err(|error| SettingError(format!("{key}: {error}")))?;
            settings.set(entry, value);
        }
        Ok(settings)
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
        match self.without_effect(self) {
            None => Ok(()),
            Some((setting, beside)) => Err(NoEffect(format!(
                "{place}{dashes}{setting} has no effect beside {dashes}{beside}; fix: leave one of them out"
            ))),
        }
    }

    /// A setting given here that has no effect where `all` holds, and what takes its effect, with its value.
    pub(crate) fn without_effect(&self, all: &Self) -> Option<(&'static str, String)> {
        let scope = (SCOPE.key, self.get(&SCOPE).is_some());
        let irq_cores = (IRQ_CORES.key, self.get(&IRQ_CORES).flatten().is_some());
        let per = (PER.key, self.get(&PER) == Some(Per::L3));
        let near = (NEAR.key, self.get(&NEAR).flatten().is_some());
        let widen = (WIDEN.key, self.get(&WIDEN) == Some(Widen::Package));
        let (without, beside) = match (
            all.get(&GROUP).flatten(),
            all.get(&SCOPE).unwrap_or(Scope::Local),
        ) {
            (Some(Group::Cpus(cpus)), _) => (
                vec![scope, near, irq_cores, per, widen],
                format!("group {cpus}"),
            ),
            (_, Scope::Cpus(cpus)) => (vec![near, irq_cores, per, widen], format!("scope {cpus}")),
            (_, Scope::Nodes(nodes)) => (vec![widen], format!("scope node:{nodes}")),
            (_, Scope::All) => (vec![widen], "scope all".to_owned()),
            (_, Scope::Remote) => (vec![widen], "scope remote".to_owned()),
            (_, Scope::Local | Scope::Hint) => return None,
        };
        without
            .into_iter()
            .find(|(_, given)| *given)
            .map(|(key, _)| (key, beside))
    }

    /// Whether nothing is given here.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes over what is given in `other`.
    pub(crate) fn override_with(&mut self, other: &Self) {
        self.0
            .extend(other.0.iter().map(|(key, value)| (*key, value.clone())));
    }

    /// Refuses CPU lists with a CPU beyond `possible`, the kernel's `nr_cpu_ids`.
    pub fn check(&self, possible: u32) -> Result<(), ImpossibleCpu> {
        self.0.iter().try_for_each(|(key, value)| match value {
            Value::Cpus(cpus) => possible_cpus(key, cpus, possible),
            _ => Ok(()),
        })
    }
}
