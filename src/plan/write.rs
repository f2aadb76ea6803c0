//! The writes of a plan: the file, its kind, and what it is to hold.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cpuset::{CpuSet, MaskWidth, QueueSet};
use crate::machine::paths::on_or_off;
use crate::machine::{Rss, SettingValue, WriteKind};

/// One write to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    pub kind: WriteKind,
    /// The absolute path, without the root; `/proc/PID` for a thread, whose affinity is no file.
    pub path: String,
    pub value: WriteValue,
    /// What the file holds now.
    pub current: Arc<str>,
    /// The interface; empty for a setting of the whole machine.
    pub interface: Arc<str>,
    /// The reason.
    pub why: Arc<str>,
}

/// The bytes to write, without a newline; [`fmt::Display`] makes the text, in JSON it is a string.
#[derive(Debug, Clone)]
pub enum WriteValue {
    /// A mask as wide as the current one. Its text is made where it is needed: with 4,096 CPUs it has a kilobyte.
    Mask(CpuSet, MaskWidth),
    /// A number, a word, or an RSS table in the form of [`Rss`].
    Text(String),
}

impl WriteValue {
    /// The CPUs of a mask and its width; `None` for any other text.
    pub(crate) fn mask(&self) -> Option<(CpuSet, MaskWidth)> {
        match self {
            Self::Mask(cpus, width) => Some((cpus.clone(), *width)),
            Self::Text(text) => Some((CpuSet::parse_mask(text).ok()?, MaskWidth::of_valid(text)?)),
        }
    }
}

impl fmt::Display for WriteValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mask(cpus, width) => f.write_str(&cpus.to_mask(*width).unwrap_or_default()),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Values with the same text are equal.
impl PartialEq for WriteValue {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for WriteValue {}

impl Serialize for WriteValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WriteValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::Text)
    }
}

/// The plan for a setting.
#[derive(Debug, Clone, Copy)]
pub struct Planned<'a> {
    pub kind: WriteKind,
    /// As in [`Setting`](crate::machine::Setting).
    pub number: u32,
    pub target: Target<'a>,
    /// The reason; `None` where all settings of this kind have the same.
    pub(crate) why: Option<&'a Arc<str>>,
}

impl Planned<'_> {
    pub(crate) fn why(&self) -> Arc<str> {
        let same = match self.kind {
            WriteKind::RpsFlow => "its share of the flow table",
            WriteKind::XpsRxqs => "flows of this receive queue",
            WriteKind::Ntuple => "accelerated RFS",
            _ => "",
        };
        self.why.map_or_else(|| same.into(), Arc::clone)
    }
}

/// What a setting is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    Cpus(&'a CpuSet),
    Count(u32),
    /// The queues of an RSS indirection table.
    Spread(&'a QueueSet),
    On(bool),
}

impl Target<'_> {
    /// Whether the text of a file is equal to this.
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

    /// Whether a setting holds this.
    pub(crate) fn is_held(self, now: SettingValue<'_>) -> bool {
        match (self, now) {
            (Self::Cpus(cpus), SettingValue::Mask(file)) => *cpus == file.cpus,
            (Self::Count(count), SettingValue::Count(now)) => count == now,
            (Self::Spread(queues), SettingValue::Table(now)) => now.is_spread_over(queues),
            (Self::On(on), SettingValue::On(now)) => on == now,
            _ => false,
        }
    }

    /// What has to be written where a setting holds `now`; `None` if it holds this, or cannot. `possible`: the
    /// machine's `nr_cpu_ids`.
    pub(crate) fn to_write(self, now: SettingValue<'_>, possible: u32) -> Option<WriteValue> {
        if self.is_held(now) {
            return None;
        }
        match (self, now) {
            (Self::Cpus(cpus), SettingValue::Mask(file)) => {
                // The file's own width. A file that is too narrow for its planned CPU comes from a damaged copy; then
                // the machine's width is used.
                let widths = [file.width, MaskWidth::for_cpus(possible)];
                let width = widths.into_iter().find(|width| cpus.fits(*width))?;
                Some(WriteValue::Mask(cpus.clone(), width))
            }
            (Self::Count(count), SettingValue::Count(_)) => {
                Some(WriteValue::Text(count.to_string()))
            }
            (Self::Spread(queues), SettingValue::Table(now)) => {
                Some(WriteValue::Text(now.spread_over(queues).to_setting()))
            }
            (Self::On(on), SettingValue::On(_)) => Some(WriteValue::Text(on_or_off(on).to_owned())),
            _ => None,
        }
    }
}
