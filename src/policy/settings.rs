//! Settings given in one place.

use std::collections::BTreeMap;

use super::setting::{PolicyEntry, PolicySetting, PolicyValue, SettingError};
use super::table::{
    GROUP, Group, IRQ_CORES, NEAR, ONE_PER_L3, PACK_L3, SCOPE, SETTINGS, SKIP, Scope, WIDEN,
};
use crate::cpuset::CpuSet;

/// `possible`: the kernel's `nr_cpu_ids`.
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

/// Values by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<&'static str, PolicyValue>);

impl Settings {
    /// Parses `[("scope", "all"), ("rfs", "32768")]`.
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

    pub fn set(&mut self, entry: &PolicyEntry, value: PolicyValue) {
        self.0.insert(entry.key, value);
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.0.remove(key);
    }

    #[doc(hidden)]
    pub fn get<T: Clone>(&self, setting: &PolicySetting<T>) -> Option<T> {
        setting.meaning(self.0.get(setting.key)?)
    }

    pub(crate) fn check_effects(&self, dashes: &str) -> Result<(), SettingError> {
        self.without_effect(self).map_or(Ok(()), |(setting, beside)| {
            Err(SettingError(format!(
                "{dashes}{setting} has no effect beside {dashes}{beside}; fix: leave one of them out"
            )))
        })
    }

    /// The first setting given here that has no effect under `all`, and the one that takes its effect, with its value.
    pub(crate) fn without_effect(&self, all: &Self) -> Option<(&'static str, String)> {
        if all.get(&SKIP) == Some(true) {
            let mut entries = SETTINGS.iter().filter(|entry| entry.is_for_interfaces());
            let other = entries.find(|entry| entry.key != SKIP.key && self.has(entry.key));
            return other.map(|entry| (entry.key, SKIP.key.to_owned()));
        }
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

    #[doc(hidden)]
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub(super) fn complete_with(&mut self, other: &Self) {
        for (key, value) in &other.0 {
            self.0.entry(key).or_insert_with(|| value.clone());
        }
    }

    /// Refuses CPUs beyond `possible`, the kernel's `nr_cpu_ids`.
    pub fn check(&self, possible: u32) -> Result<(), SettingError> {
        self.0.iter().try_for_each(|(key, value)| match value {
            PolicyValue::Cpus(cpus) => possible_cpus(key, cpus, possible),
            _ => Ok(()),
        })
    }
}
