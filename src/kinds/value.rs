//! The value of a setting, held, planned or recorded.

use std::borrow::Cow;

use self::Value::{Count, Mask, On, Spread, Table};
use crate::cpuset::{CpuSet, MaskFile, QueueSet};
use crate::machine::{self, Rss};

/// The form of the values of a kind of setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueForm {
    /// A mask of CPUs.
    Cpus,
    /// A mask of receive queues.
    Queues,
    Count,
    /// `on` or `off`.
    Switch,
    /// An RSS table in the form of [`Rss`].
    Table,
    /// In the form of [`Channels`](machine::Channels).
    Channels,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// CPUs; of `xps_rxqs`, receive queues.
    Mask(Cow<'a, CpuSet>),
    Count(u32),
    On(bool),
    Table(Cow<'a, Rss>),
    Channels(machine::Channels),
    /// An RSS table of any length with as many entries for each of these queues; only planned.
    Spread(&'a QueueSet),
}

impl<'a> From<&'a CpuSet> for Value<'a> {
    fn from(set: &'a CpuSet) -> Self {
        Mask(Cow::Borrowed(set))
    }
}

/// A value that the machine holds, and of a mask what its file prints.
#[derive(Debug, Clone)]
pub struct Held<'a> {
    pub value: Value<'a>,
    pub(super) file: Option<&'a MaskFile>,
}

impl<'a> From<&'a MaskFile> for Held<'a> {
    fn from(file: &'a MaskFile) -> Self {
        Self {
            value: (&file.cpus).into(),
            file: Some(file),
        }
    }
}

impl<'a> From<Value<'a>> for Held<'a> {
    fn from(value: Value<'a>) -> Self {
        Self { value, file: None }
    }
}

impl ValueForm {
    pub(super) fn parse(self, text: &str) -> Option<Value<'static>> {
        match self {
            Self::Cpus | Self::Queues => CpuSet::parse_kernel_mask(text)
                .ok()
                .map(|set| Mask(Cow::Owned(set))),
            Self::Count => text.trim().parse().ok().map(Count),
            Self::Switch => match text.trim() {
                word @ ("on" | "off") => Some(On(word == on_or_off(true))),
                _ => None,
            },
            Self::Table => Rss::parse(text).map(|table| Table(Cow::Owned(table))),
            Self::Channels => machine::Channels::parse(text).map(Value::Channels),
        }
    }

    /// The form of a text that can be written.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::Cpus | Self::Queues => "a CPU mask that fits this machine",
            Self::Count => "a number",
            Self::Switch => "`on` or `off`",
            Self::Table => "an RSS table that fits this device",
            Self::Channels => "a number of channels",
        }
    }
}

impl Value<'_> {
    pub(crate) fn is_same(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Mask(a), Mask(b)) => a == b,
            (Count(a), Count(b)) => a == b,
            (On(a), On(b)) => a == b,
            (Value::Channels(a), Value::Channels(b)) => a.difference(b).is_empty(),
            (Table(a), Table(b)) => a.means_same(b),
            (Table(table), Spread(queues)) | (Spread(queues), Table(table)) => {
                table.is_spread_over(queues)
            }
            _ => false,
        }
    }
}

pub fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
