//! The planned value of each setting, and the writes that it takes on the machine now.

use std::sync::Arc;

use foldhash::HashMap;

use crate::cpuset::MaskWidth;
use crate::kinds::{Place, Setting, SettingKind, Value, place};
use crate::machine::Machine;
use crate::plan::why::Why;
use crate::plan::write::Write;

/// A setting for which the plan has a value.
#[derive(Debug, Clone)]
pub struct WantedSetting<'a> {
    /// Empty for a setting of the whole machine.
    pub interface: &'a str,
    pub kind: SettingKind,
    /// The number of the [`Setting`](crate::kinds::Setting).
    pub number: u32,
    pub value: Value<'a>,
    pub(crate) why: &'a Why,
}

impl<'a> WantedSetting<'a> {
    pub(crate) fn place(&self) -> Place<'a> {
        place(self.kind, self.number, self.interface)
    }

    /// `None` if the setting cannot have the value. `possible`: the machine's `nr_cpu_ids`.
    fn to_write(&self, setting: &Setting<'_>, possible: u32) -> Option<String> {
        setting.text_of(&self.value).or_else(|| match &self.value {
            // A file that is too narrow for its planned CPU comes from a damaged copy.
            Value::Mask(cpus) => cpus.to_mask(MaskWidth::for_cpus(possible)),
            _ => None,
        })
    }
}

/// The writes in the order of execution, and the number of settings that need none; settings that the machine lacks are
/// left out. `flow_entries`: the size of the flow table, and the reason.
pub(crate) fn writes<'a>(
    machine: &'a Machine,
    wanted: impl Iterator<Item = WantedSetting<'a>>,
    flow_entries: Option<(u32, &'a Why)>,
) -> (Vec<Write>, usize) {
    let now: HashMap<_, _> = machine
        .settings()
        .map(|setting| (setting.place(), setting))
        .collect();
    let flow_table = flow_entries.map(|(entries, why)| WantedSetting {
        interface: "",
        kind: SettingKind::Sysctl,
        number: 0,
        value: Value::Count(entries),
        why,
    });
    let (mut writes, mut unchanged) = (Vec::new(), 0);
    let mut owner: Arc<str> = "".into();
    for wanted in wanted.chain(flow_table) {
        let Some(setting) = now.get(&wanted.place()) else {
            continue;
        };
        if *owner != *wanted.interface {
            owner = wanted.interface.into();
        }
        let possible = machine.topology.possible;
        let is_held = wanted.value.is_same(&setting.held.value);
        let value = (!is_held).then(|| wanted.to_write(setting, possible));
        match value.flatten() {
            None => unchanged += 1,
            Some(value) => writes.push(Write {
                kind: wanted.kind,
                path: setting.path(),
                value,
                current: setting.text(),
                interface: Arc::clone(&owner),
                number: wanted.number,
                why: wanted.why.clone(),
            }),
        }
    }
    writes.sort_by_key(|write| write.kind);
    (writes, unchanged)
}
