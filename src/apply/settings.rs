//! The settings that a plan concerns.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::setting::SettingId;
use crate::machine::setting::SettingName::Channels;
use crate::machine::{Interface, Machine, Setting};
use crate::plan::{Plan, PlannedInterface, Target, WriteKind};

pub(crate) type Texts = BTreeMap<SettingId, String>;

/// Returns the current settings of a plan's interfaces, of the machine if the plan writes them, of changed channels,
/// and of flows (RSS, `xps_rxqs`, ntuple filters) if the plan sets them or changes channels: later they could not be
/// told from original ones.
pub(crate) fn texts(machine: &Machine, plan: &Plan) -> Texts {
    let paths = written_paths(plan);
    let wanted = targets(plan);
    let settings = of_plan(machine, plan).filter(|setting| match setting.kind {
        WriteKind::Sysctl => paths.contains(&*setting.path()),
        WriteKind::Rss | WriteKind::XpsRxqs | WriteKind::Ntuple => {
            let mut changes = plan.channels.iter();
            wanted.contains_key(&id(setting))
                || changes.any(|change| change.interface == setting.interface())
        }
        _ => true,
    });
    let mut texts = by_key(settings);
    for change in &plan.channels {
        let interface = machine.interface(&change.interface);
        texts.extend(
            interface.map(|interface| (interface.setting_id(Channels), change.current.to_text())),
        );
    }
    texts
}

/// Returns the current texts of the files that a plan writes, and nothing else.
pub(crate) fn written(machine: &Machine, plan: &Plan) -> Texts {
    let paths = written_paths(plan);
    by_key(of_plan(machine, plan).filter(|setting| paths.contains(&*setting.path())))
}

fn by_key<'a>(settings: impl Iterator<Item = Setting<'a>>) -> Texts {
    settings
        .map(|setting| (setting.id(), setting.text().to_string()))
        .collect()
}

fn targets(plan: &Plan) -> BTreeMap<(&str, WriteKind, u32), Target<'_>> {
    plan.interfaces
        .iter()
        .flat_map(PlannedInterface::wanted)
        .map(|wanted| {
            (
                (wanted.interface, wanted.kind, wanted.number),
                wanted.target,
            )
        })
        .collect()
}

fn id<'a>(setting: &Setting<'a>) -> (&'a str, WriteKind, u32) {
    (setting.interface(), setting.kind, setting.number)
}

fn written_paths(plan: &Plan) -> BTreeSet<&str> {
    plan.writes.iter().map(|write| &*write.path).collect()
}

/// Returns the settings that a plan has an opinion about, with their planned texts; not those that differ and whose
/// writes were taken out of the plan.
pub fn planned_settings<'a>(machine: &'a Machine, plan: &Plan) -> Vec<(Setting<'a>, String)> {
    let wanted = targets(plan);
    let writes: BTreeMap<&str, &String> = (plan.writes.iter())
        .map(|write| (&*write.path, &write.value))
        .collect();
    let with_text = |setting: Setting<'a>| {
        let text = match writes.get(&*setting.path()) {
            Some(value) => (*value).clone(),
            None if wanted.get(&id(&setting))?.is_held(setting.value) => setting.text().to_string(),
            None => return None,
        };
        Some((setting, text))
    };
    of_plan(machine, plan).filter_map(with_text).collect()
}

/// Returns the settings of a plan's interfaces and of the machine.
pub(crate) fn of_plan<'a>(machine: &'a Machine, plan: &Plan) -> impl Iterator<Item = Setting<'a>> {
    machine
        .interfaces
        .iter()
        .filter(|interface| plan.interface(&interface.name).is_some())
        .flat_map(Interface::settings)
        .chain(machine.own_settings())
}
