//! The words of a policy, as they are typed in the file and on the command line.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::cpuset::CpuSet;

/// A condition on the link's speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speed {
    least: u32,
    most: u32,
}

impl Speed {
    /// Whether a link of this many Mbit/s meets it.
    pub fn holds(self, mbps: u32) -> bool {
        (self.least..=self.most).contains(&mbps)
    }
}

impl FromStr for Speed {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        let digits = text.trim_start_matches(['<', '>', '=']);
        let (sign, number) = text.split_at(text.len() - digits.len());
        let number: Option<u32> = number.trim().parse().ok();
        let bounds = number.and_then(|mbps| match sign {
            "" | "=" => Some((mbps, mbps)),
            ">=" => Some((mbps, u32::MAX)),
            ">" => Some((mbps.checked_add(1)?, u32::MAX)),
            "<=" => Some((0, mbps)),
            "<" => Some((0, mbps.checked_sub(1)?)),
            _ => None,
        });
        let error = || WordError {
            text: text.to_owned(),
            expected: "a speed in Mbit/s such as 10000, >=25000 or <10000",
        };
        bounds.map(|(least, most)| Self { least, most }).ok_or_else(error)
    }
}

/// Where an interface's vectors may go.
#[derive(Debug, Clone, PartialEq)]
pub enum Scope {
    /// The interface's own node.
    Local,
    /// Every node.
    All,
    /// Every node but the interface's own.
    Remote,
    /// Where the driver's hint says (`affinity_hint`).
    Hint,
    /// These CPUs.
    Cpus(CpuSet),
}

/// Which cores may take queue vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// Every core.
    Core,
    /// One core of each L3 domain.
    L3,
}

/// Where queues go that are more than their node's cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Widen {
    /// They share the node's cores.
    Never,
    /// To the nearest nodes of the same package, by distance, as far as it takes: for packages that are parted into
    /// several nodes (sub-NUMA clustering, NPS).
    Package,
}

/// Which CPUs receive packets that a queue hands on.
#[derive(Debug, Clone, PartialEq)]
pub enum Rps {
    /// Where hardware queues are missing.
    Auto,
    /// None.
    Off,
    /// These, for every queue.
    Cpus(CpuSet),
}

/// Which transmit queue a CPU sends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Xps {
    /// The one whose completions are nearest.
    Auto,
    /// Whatever the hash says.
    Off,
    /// As it is.
    Keep,
}

/// The size of the flow table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rfs {
    /// Entries over all interfaces.
    Entries(u32),
    /// None.
    Off,
    /// As it is.
    Keep,
}

/// How many channels a card should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelCount {
    /// As it is.
    Keep,
    /// One that receives for each candidate core, as far as the card goes.
    Auto,
    /// So many that receive.
    Count(u32),
}

/// What becomes of irqbalance, which would move planned vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Balancer {
    /// It is told to leave exactly the planned IRQs alone
    #[default]
    Ban,
    /// Its service is stopped; restore starts it again
    Stop,
    /// It goes on, and moves what was planned
    Ignore,
    /// Nothing is written while it runs
    Refuse,
}

/// A group of CPUs for a vector.
#[derive(Debug, Clone, PartialEq)]
pub enum Group {
    /// The L3 domain of the CPU that the vector would get.
    L3,
    /// These CPUs.
    Cpus(CpuSet),
}

/// A word where a choice or a CPU list was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is none of {expected}")]
pub struct WordError {
    text: String,
    expected: &'static str,
}

impl FromStr for Scope {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match text {
            "local" => Ok(Self::Local),
            "all" => Ok(Self::All),
            "remote" => Ok(Self::Remote),
            "hint" => Ok(Self::Hint),
            list => cpus(list, "local, all, remote, hint, or a CPU list such as 0-3,8").map(Self::Cpus),
        }
    }
}

impl FromStr for Rps {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            list => cpus(list, "auto, off, or a CPU list such as 0-3,8").map(Self::Cpus),
        }
    }
}

impl FromStr for Xps {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            "keep" => Ok(Self::Keep),
            _ => Err(WordError { text: text.to_owned(), expected: "auto, off, keep" }),
        }
    }
}

impl FromStr for Per {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match text {
            "core" => Ok(Self::Core),
            "l3" => Ok(Self::L3),
            _ => Err(WordError { text: text.to_owned(), expected: "core, l3" }),
        }
    }
}

impl FromStr for Widen {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match text {
            "never" => Ok(Self::Never),
            "package" => Ok(Self::Package),
            _ => Err(WordError { text: text.to_owned(), expected: "never, package" }),
        }
    }
}

impl FromStr for ChannelCount {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        let number = || text.parse().ok().filter(|&count| count > 0);
        match text {
            "keep" => Ok(Self::Keep),
            "auto" => Ok(Self::Auto),
            _ => number().map(Self::Count).ok_or_else(|| WordError {
                text: text.to_owned(),
                expected: "keep, auto, or a number of channels from 1",
            }),
        }
    }
}

impl FromStr for Rfs {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        // The kernel's own limit for the table (`net/core/sysctl_net_core.c`).
        let number = || text.parse().ok().filter(|entries| (1..=1 << 29).contains(entries));
        match text {
            "off" => Ok(Self::Off),
            "keep" => Ok(Self::Keep),
            _ => number().map(Self::Entries).ok_or_else(|| WordError {
                text: text.to_owned(),
                expected: "off, keep, or a number of flows from 1 to 536870912 such as 32768",
            }),
        }
    }
}

fn cpus(text: &str, expected: &'static str) -> Result<CpuSet, WordError> {
    let set = CpuSet::parse_list(text).ok().filter(|set| !set.is_empty());
    set.ok_or_else(|| WordError { text: text.to_owned(), expected })
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::All => f.write_str("all"),
            Self::Remote => f.write_str("remote"),
            Self::Hint => f.write_str("hint"),
            Self::Cpus(cpus) => cpus.fmt(f),
        }
    }
}

macro_rules! deserialize_word {
    ($($word:ty),*) => {$(
        impl<'de> Deserialize<'de> for $word {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    )*};
}
deserialize_word!(Scope, Per, Widen, Rps, Xps);

/// A number, or a word for which a type has its own reading.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number or a word")]
enum NumberOrWord {
    Number(i64),
    Word(String),
}

/// A number from 1.
pub(super) fn from_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    match usize::deserialize(deserializer)? {
        0 => Err(D::Error::custom("0 leaves no core to use; expected a number from 1")),
        number => Ok(Some(number)),
    }
}

macro_rules! deserialize_number_or_word {
    ($($word:ty),*) => {$(
        impl<'de> Deserialize<'de> for $word {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let said = match NumberOrWord::deserialize(deserializer)? {
                    NumberOrWord::Number(number) => number.to_string(),
                    NumberOrWord::Word(word) => word,
                };
                said.parse().map_err(D::Error::custom)
            }
        }
    )*};
}
deserialize_number_or_word!(Rfs, Speed, ChannelCount);

impl<'de> Deserialize<'de> for Group {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            deny_unknown_fields,
            expecting = "expected \"l3\", { cpus = \"4-7\" } or { mask = \"000000f0\" }"
        )]
        enum Said {
            Word(String),
            Cpus { cpus: CpuSet },
            Mask { mask: String },
        }
        let cpus = match Said::deserialize(deserializer)? {
            Said::Word(word) if word == "l3" => return Ok(Self::L3),
            Said::Word(word) => return Err(D::Error::custom(format!("`{word}` is not `l3`"))),
            Said::Cpus { cpus } => cpus,
            Said::Mask { mask } => CpuSet::parse_mask(&mask).map_err(D::Error::custom)?,
        };
        if cpus.is_empty() {
            return Err(D::Error::custom("a group needs at least one CPU"));
        }
        Ok(Self::Cpus(cpus))
    }
}
