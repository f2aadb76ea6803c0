//! The writes of a plan: the file, its kind, and what it is to hold.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cpuset::{CpuSet, MaskWidth, QueueSet};
use crate::machine::Rss;
use crate::machine::paths::on_or_off;

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

/// The kinds of settings, in the order in which they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteKind {
    /// `smp_affinity` of a vector.
    Vector,
    /// The RSS indirection table (`ethtool -X`): after the vectors, so that no flow moves to a queue whose vector is not
    /// yet where it is planned.
    Rss,
    /// The affinity of a thread that polls queues (`sched_setaffinity(2)`).
    NapiThread,
    /// `rps_cpus` of a receive queue.
    Rps,
    /// `rps_flow_cnt` of a receive queue.
    RpsFlow,
    /// `xps_cpus` of a transmit queue.
    Xps,
    /// `xps_rxqs` of a transmit queue.
    XpsRxqs,
    /// `net.core.rps_sock_flow_entries`.
    Sysctl,
    /// Ntuple filters (`ethtool -K`): the last, when RFS has its tables.
    Ntuple,
}

impl WriteKind {
    /// Whether the file holds a CPU mask.
    pub fn is_cpus(self) -> bool {
        matches!(
            self,
            Self::Vector | Self::NapiThread | Self::Rps | Self::Xps
        )
    }

    /// Whether the file holds a mask, of CPUs or of queues.
    pub fn is_mask(self) -> bool {
        self.is_cpus() || self == Self::XpsRxqs
    }
}

/// The planned content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannedValue<'a> {
    Cpus(&'a CpuSet),
    Count(u32),
    /// The queues of an RSS indirection table.
    Spread(&'a QueueSet),
    On(bool),
}

impl PlannedValue<'_> {
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
}
