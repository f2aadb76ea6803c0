//! The settings that a plan concerns.

use std::collections::{BTreeMap, BTreeSet};

use crate::cpuset::Inserted as _;
use crate::kinds::{Place, Setting, SettingId, SettingKind};
use crate::machine::{Interface, Machine};
use crate::plan::{Plan, Write};

pub(crate) type Texts = BTreeMap<SettingId, String>;

/// Current settings of a plan's interfaces; the flow table and those of flows (channels, RSS, `xps_rxqs`, ntuple
/// filters) if the plan sets them or changes channels: later they could not be told from original ones.
pub(crate) fn texts(machine: &Machine, plan: &Plan) -> Texts {
    let wanted = plan.wanted();
    let settings = of_plan(machine, plan).filter(|setting| {
        let mut changes = plan.channels.iter();
        let is_on_request = setting.kind.is_of_flows || setting.kind == SettingKind::Sysctl;
        !is_on_request
            || wanted.contains_key(&setting.place())
            || changes.any(|change| change.interface == setting.interface())
    });
    by_id(settings)
}

pub(crate) fn written(machine: &Machine, plan: &Plan) -> Texts {
    let written = written_places(plan);
    by_id(of_plan(machine, plan).filter(|setting| written.contains(&setting.place())))
}

fn by_id<'a>(settings: impl Iterator<Item = Setting<'a>>) -> Texts {
    settings
        .map(|setting| (setting.id(), setting.text().to_string()))
        .inserted()
}

fn written_places(plan: &Plan) -> BTreeSet<Place<'_>> {
    plan.writes.iter().map(Write::place).inserted()
}

/// Settings with planned texts, without those that differ and whose writes were taken out of the plan.
pub fn planned_settings<'a>(machine: &'a Machine, plan: &Plan) -> Vec<(Setting<'a>, String)> {
    let wanted = plan.wanted();
    let writes = plan.writes.iter();
    let writes: BTreeMap<Place<'_>, &String> =
        writes.map(|write| (write.place(), &write.value)).inserted();
    let with_text = |setting: Setting<'a>| {
        let text = match writes.get(&setting.place()) {
            Some(value) => (*value).clone(),
            None if wanted
                .get(&setting.place())?
                .value
                .is_same(&setting.held.value) =>
            {
                setting.text().to_string()
            }
            None => return None,
        };
        Some((setting, text))
    };
    of_plan(machine, plan).filter_map(with_text).collect()
}

pub(crate) fn of_plan<'a>(machine: &'a Machine, plan: &Plan) -> impl Iterator<Item = Setting<'a>> {
    machine
        .interfaces
        .iter()
        .filter(|interface| plan.interface(&interface.name).is_some())
        .flat_map(Interface::settings)
        .chain(machine.own_settings())
}
