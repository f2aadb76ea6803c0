//! The planned value of each setting, and the writes that it takes on the machine now.

use std::sync::Arc;

use foldhash::HashMap;
use serde::{Deserialize, Serialize};

use crate::cpuset::{CpuSet, MaskWidth, QueueSet};
use crate::machine::setting::on_or_off;
use crate::machine::{Machine, Rss, Setting, SettingValue, WriteKind};

/// A write to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    pub kind: WriteKind,
    /// The absolute path, without the root; `/proc/PID` for a thread, whose affinity is no file.
    pub path: String,
    /// The bytes to write, without a newline: a mask as wide as the current one, a number, a word, or an RSS table in
    /// the form of [`Rss`].
    pub value: String,
    pub current: Arc<str>,
    /// The interface; empty for a setting of the whole machine.
    pub interface: Arc<str>,
    /// The number of the [`Setting`].
    #[serde(skip)]
    pub number: u32,
    pub why: Arc<str>,
}

#[derive(Debug, Clone, Copy)]
pub struct Planned<'a> {
    /// Empty for a setting of the whole machine.
    pub interface: &'a str,
    pub kind: WriteKind,
    /// The number of the [`Setting`](crate::machine::Setting).
    pub number: u32,
    pub target: Target<'a>,
    pub(crate) why: &'a str,
}

/// The planned value of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    Cpus(&'a CpuSet),
    Count(u32),
    /// The queues of an RSS indirection table.
    Spread(&'a QueueSet),
    On(bool),
}

impl Target<'_> {
    /// Whether the text of a file has this value.
    pub(crate) fn is(self, text: &str) -> bool {
        match self {
            Self::Cpus(cpus) => CpuSet::parse_kernel_mask(text).is_ok_and(|held| held == *cpus),
            Self::Count(count) => text.trim().parse() == Ok(count),
            Self::On(on) => text.trim() == on_or_off(on),
            Self::Spread(queues) => {
                Rss::parse(text).is_some_and(|table| table.is_spread_over(queues))
            }
        }
    }

    pub(crate) fn is_held(self, now: SettingValue<'_>) -> bool {
        match (self, now) {
            (Self::Cpus(cpus), SettingValue::Mask(file)) => *cpus == file.cpus,
            (Self::Count(count), SettingValue::Count(now)) => count == now,
            (Self::Spread(queues), SettingValue::Table(now)) => now.is_spread_over(queues),
            (Self::On(on), SettingValue::On(now)) => on == now,
            _ => false,
        }
    }

    /// The text to write to a setting that holds `now`; `None` if it has this value already, or cannot. `possible`: the
    /// machine's `nr_cpu_ids`.
    fn to_write(self, now: SettingValue<'_>, possible: u32) -> Option<String> {
        match (self, now) {
            _ if self.is_held(now) => None,
            (Self::Cpus(cpus), SettingValue::Mask(file)) => {
                // The file's own width. A file that is too narrow for its planned CPU comes from a damaged copy; then
                // the machine's width is used.
                [file.width, MaskWidth::for_cpus(possible)]
                    .into_iter()
                    .find_map(|width| cpus.to_mask(width))
            }
            (Self::Count(count), SettingValue::Count(_)) => Some(count.to_string()),
            (Self::Spread(queues), SettingValue::Table(now)) => {
                Some(now.spread_over(queues).to_setting())
            }
            (Self::On(on), SettingValue::On(_)) => Some(on_or_off(on).to_owned()),
            _ => None,
        }
    }
}

/// The writes of a plan in the order of execution, and the number of settings that need none. Leaves out settings that
/// the machine does not have. `flow_entries`: the size of the flow table, and the reason.
pub(crate) fn writes<'a>(
    machine: &'a Machine,
    wanted: impl Iterator<Item = Planned<'a>>,
    flow_entries: Option<(u32, &'a str)>,
) -> (Vec<Write>, usize) {
    let key = |setting: &Setting<'a>| (setting.kind, setting.number, setting.interface());
    let now = machine.settings().map(|setting| (key(&setting), setting));
    let now: HashMap<_, _> = now.collect();
    let flow_table = flow_entries.map(|(entries, why)| Planned {
        interface: "",
        kind: WriteKind::Sysctl,
        number: 0,
        target: Target::Count(entries),
        why,
    });
    let (mut writes, mut unchanged) = (Vec::new(), 0);
    let [mut owner, mut reason] = [""; 2].map(Arc::from);
    for planned in wanted.chain(flow_table) {
        let Some(setting) = now.get(&(planned.kind, planned.number, planned.interface)) else {
            continue;
        };
        let possible = machine.topology.possible;
        match planned.target.to_write(setting.value, possible) {
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
