//! The value of a setting, held, planned or recorded.

use std::borrow::Cow;

use self::Value::{Count, Mask, On, Spread, Table};
use super::kind::SettingKind;
use crate::cpuset::{CpuSet, MaskFile, QueueSet};
use crate::machine::Rss;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// CPUs; of `xps_rxqs`, receive queues.
    Mask(Cow<'a, CpuSet>),
    Count(u32),
    On(bool),
    Table(Cow<'a, Rss>),
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

impl Value<'_> {
    /// `None` for what no kernel prints.
    pub(crate) fn parse(kind: SettingKind, text: &str) -> Option<Value<'static>> {
        match kind {
            SettingKind::Rss => Rss::parse(text).map(|table| Table(Cow::Owned(table))),
            SettingKind::Ntuple => match text.trim() {
                word @ ("on" | "off") => Some(On(word == on_or_off(true))),
                _ => None,
            },
            SettingKind::RpsFlow | SettingKind::Sysctl => text.trim().parse().ok().map(Count),
            SettingKind::Vector
            | SettingKind::NapiThread
            | SettingKind::Rps
            | SettingKind::Xps
            | SettingKind::XpsRxqs => CpuSet::parse_kernel_mask(text)
                .ok()
                .map(|set| Mask(Cow::Owned(set))),
        }
    }

    pub(crate) fn is_same(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Mask(a), Mask(b)) => a == b,
            (Count(a), Count(b)) => a == b,
            (On(a), On(b)) => a == b,
            (Table(a), Table(b)) => a.means_same(b),
            (Table(table), Spread(queues)) | (Spread(queues), Table(table)) => {
                table.is_spread_over(queues)
            }
            _ => false,
        }
    }
}

/// Compares masks as sets, numbers as numbers, RSS tables as tables.
pub(crate) fn means_same(kind: SettingKind, a: &str, b: &str) -> bool {
    let [a, b] = [a, b].map(|text| Value::parse(kind, text));
    a.zip(b).is_some_and(|(a, b)| a.is_same(&b))
}

pub fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
