//! CPUs that a policy names and the machine cannot have.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::cpuset::CpuSet;
use crate::policy::{Group, Rps, Scope, Settings};

/// A CPU list that reaches beyond the machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} names CPU {cpu}, and this machine has no CPU above {last}")]
pub struct ImpossibleCpu {
    /// Where it is said.
    pub setting: &'static str,
    /// The highest CPU that is named.
    pub cpu: u32,
    /// The highest CPU that the machine could have.
    pub last: u32,
}

/// The first list of some settings that names a CPU beyond `possible`, the kernel's `nr_cpu_ids`.
pub fn settings(settings: &Settings, possible: u32) -> Result<(), ImpossibleCpu> {
    let scope = match &settings.scope {
        Some(Scope::Cpus(cpus)) => Some(cpus),
        _ => None,
    };
    let rps = match &settings.rps {
        Some(Rps::Cpus(cpus)) => Some(cpus),
        _ => None,
    };
    let group = match &settings.group {
        Some(Group::Cpus(cpus)) => Some(cpus),
        _ => None,
    };
    for (setting, cpus) in
        [("exclude", settings.exclude.as_ref()), ("scope", scope), ("rps", rps), ("group", group)]
    {
        if let Some(cpus) = cpus {
            possible_cpus(setting, cpus, possible)?;
        }
    }
    Ok(())
}

/// As [`settings`] for a policy file's text, with the place of the list in it.
pub fn file(text: &str, possible: u32) -> Result<(), (Range<usize>, ImpossibleCpu)> {
    let Ok(document) = DeTable::parse(text) else { return Ok(()) };
    let table = document.get_ref();
    let rules = table.get("rule").and_then(|rules| rules.get_ref().as_array());
    let sets = rules.into_iter().flat_map(|rules| rules.iter()).filter_map(|rule| rule.get_ref().get("set"));
    for settings in table.get("defaults").into_iter().chain(sets) {
        let Some(settings) = settings.get_ref().as_table() else { continue };
        for setting in ["exclude", "scope", "rps"] {
            list(settings.get(setting), setting, CpuSet::parse_list, possible)?;
        }
        if let Some(group) = settings.get("group").and_then(|group| group.get_ref().as_table()) {
            list(group.get("cpus"), "group", CpuSet::parse_list, possible)?;
            list(group.get("mask"), "group", CpuSet::parse_mask, possible)?;
        }
    }
    Ok(())
}

type Parse = fn(&str) -> Result<CpuSet, crate::cpuset::CpuSetError>;

/// One value of the file; words such as `local` are no lists and no mistakes.
fn list(
    value: Option<&Spanned<DeValue<'_>>>,
    setting: &'static str,
    parse: Parse,
    possible: u32,
) -> Result<(), (Range<usize>, ImpossibleCpu)> {
    let Some(value) = value else { return Ok(()) };
    let Some(Ok(cpus)) = value.get_ref().as_str().map(parse) else { return Ok(()) };
    possible_cpus(setting, &cpus, possible).map_err(|error| (value.span(), error))
}

/// Refuses a set with a CPU beyond `possible`.
pub fn possible_cpus(setting: &'static str, cpus: &CpuSet, possible: u32) -> Result<(), ImpossibleCpu> {
    match cpus.last() {
        Some(cpu) if cpu >= possible => Err(ImpossibleCpu { setting, cpu, last: possible.saturating_sub(1) }),
        _ => Ok(()),
    }
}
