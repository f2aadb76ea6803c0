//! The planned value of each setting, and the writes that it takes on the machine now.

use std::sync::Arc;

use foldhash::HashMap;
use serde::{Deserialize, Serialize};

use crate::cpuset::MaskWidth;
use crate::machine::setting::{Place, Value, place};
use crate::machine::{Machine, Setting, SettingKind};

/// A write to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    pub kind: SettingKind,
    /// The absolute path, without the root; `/proc/PID` for a thread, whose affinity is no file.
    pub path: String,
    /// The bytes to write, without a newline: a mask as wide as the current one, a number, a word, or an RSS table in
    /// the form of [`Rss`](crate::machine::Rss).
    pub value: String,
    pub current: Arc<str>,
    /// The interface; empty for a setting of the whole machine.
    pub interface: Arc<str>,
    /// The number of the [`Setting`].
    #[serde(skip)]
    pub number: u32,
    pub why: Arc<str>,
}

impl Write {
    /// Returns what a person sees of the setting.
    pub fn shown(&self) -> String {
        self.kind.shown(&self.interface, self.number)
    }

    pub(crate) fn place(&self) -> Place<'_> {
        place(self.kind, self.number, &self.interface)
    }
}

/// A setting for which the plan has a value.
#[derive(Debug, Clone)]
pub struct Planned<'a> {
    /// Empty for a setting of the whole machine.
    pub interface: &'a str,
    pub kind: SettingKind,
    /// The number of the [`Setting`](crate::machine::Setting).
    pub number: u32,
    pub value: Value<'a>,
    pub(crate) why: &'a str,
}

impl<'a> Planned<'a> {
    pub(crate) fn place(&self) -> Place<'a> {
        place(self.kind, self.number, self.interface)
    }

    /// The text to write to the setting; `None` if it cannot have the value. `possible`: the machine's `nr_cpu_ids`.
    fn to_write(&self, setting: &Setting<'_>, possible: u32) -> Option<String> {
        setting.text_of(&self.value).or_else(|| match &self.value {
            // A file that is too narrow for its planned CPU comes from a damaged copy.
            Value::Mask(cpus) => cpus.to_mask(MaskWidth::for_cpus(possible)),
            _ => None,
        })
    }
}

/// The writes of a plan in the order of execution, and the number of settings that need none. Leaves out settings that
/// the machine does not have. `flow_entries`: the size of the flow table, and the reason.
pub(crate) fn writes<'a>(
    machine: &'a Machine,
    wanted: impl Iterator<Item = Planned<'a>>,
    flow_entries: Option<(u32, &'a str)>,
) -> (Vec<Write>, usize) {
    let now: HashMap<_, _> = machine
        .settings()
        .map(|setting| (setting.place(), setting))
        .collect();
    let flow_table = flow_entries.map(|(entries, why)| Planned {
        interface: "",
        kind: SettingKind::Sysctl,
        number: 0,
        value: Value::Count(entries),
        why,
    });
    let (mut writes, mut unchanged) = (Vec::new(), 0);
    let [mut owner, mut reason] = [""; 2].map(Arc::from);
    for planned in wanted.chain(flow_table) {
        let Some(setting) = now.get(&planned.place()) else {
            continue;
        };
        let possible = machine.topology.possible;
        let is_held = planned.value.is_same(&setting.value);
        let value = (!is_held).then(|| planned.to_write(setting, possible));
        match value.flatten() {
            None => unchanged += 1,
            Some(value) => writes.push(Write {
                kind: planned.kind,
                path: setting.path(),
                value,
                current: setting.text(),
                interface: share_text(&mut owner, planned.interface),
                number: planned.number,
                why: share_text(&mut reason, planned.why),
            }),
        }
    }
    writes.sort_by_key(|write| write.kind);
    (writes, unchanged)
}

/// A text, shared with `last` if it is the same.
fn share_text(last: &mut Arc<str>, text: &str) -> Arc<str> {
    if **last != *text {
        *last = text.into();
    }
    Arc::clone(last)
}
