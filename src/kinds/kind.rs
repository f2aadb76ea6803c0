//! What is to know of one kind of setting.

use nix::errno::Errno;

use super::value::{Held, Value, ValueForm};
use crate::cpuset::CpuSet;
use crate::machine::Interface;
use crate::machine::files::queue_file;
use crate::machine::wording::word;

/// How the kernel is asked for a setting, and told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// The file of its path.
    File,
    /// That file, which is absent or empty for some IRQs.
    AffinityFile,
    /// `sched_setaffinity(2)`.
    Thread,
    /// `ethtool -X`.
    RssTable,
    /// `ethtool -K`.
    Ntuple,
    /// `ethtool -L`.
    Channels,
}

/// CPUs, besides offline ones, that the kernel removes from a written mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removed {
    /// The kernel takes a mask as it is, or not at all.
    Never,
    Offline,
    OfflineAndIsolated,
}

/// The error of a write, with the facts on which its meaning may depend: they are read only if it does.
pub(crate) struct Answer<'a> {
    pub(crate) errno: Errno,
    /// The text that was written.
    pub(crate) text: &'a str,
    /// Whether the file is there after the error.
    pub(crate) exists: &'a dyn Fn() -> bool,
    pub(crate) has_write_bits: &'a dyn Fn() -> bool,
    /// Whether the file does not take even what it holds; writes it.
    pub(crate) refuses_same: &'a dyn Fn() -> bool,
    /// `None` if they cannot be read.
    pub(crate) online: &'a dyn Fn() -> Option<CpuSet>,
}

/// The meaning of an error, in words that follow those of the error, with the fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The IRQ is managed by the kernel.
    Unmovable(&'static str),
    Refused(&'static str),
    Vanished(&'static str),
}

/// How the settings of a kind are told apart: by their names in the record, which must not change, and their paths.
pub(super) enum Names {
    /// `rss`: a port, or the machine, has one.
    Only {
        recorded: &'static str,
        path: fn(&str) -> String,
    },
    /// `vector combined 3`: a word, and which one of several.
    Each {
        recorded: &'static str,
        key: fn(&Interface, u32) -> String,
        path: fn(u32) -> String,
    },
    /// `rx-3 rps_cpus`: a file of each queue of this direction, `rx` or `tx`.
    OfQueue {
        direction: &'static str,
        file: &'static str,
    },
}

impl Names {
    pub(super) fn with(&self, key: &str) -> String {
        match self {
            Self::Only { recorded, .. } => (*recorded).to_owned(),
            Self::Each { recorded, .. } => format!("{recorded} {key}"),
            Self::OfQueue { direction, file } => format!("{direction}-{key} {file}"),
        }
    }

    /// Which one of several the name is of; `None` if it is one of another kind.
    pub(super) fn key_in<'a>(&self, name: &'a str) -> Option<&'a str> {
        match self {
            Self::Only { recorded, .. } => (name == *recorded).then_some(""),
            Self::Each { recorded, .. } => name.strip_prefix(recorded)?.strip_prefix(' '),
            Self::OfQueue { direction, file } => {
                let queue = name.strip_suffix(file)?.strip_suffix(' ')?;
                queue.strip_prefix(direction)?.strip_prefix('-')
            }
        }
    }
}

/// One kind of setting.
pub struct Kind {
    pub(super) names: Names,
    /// Its name in the hash of a plan, which must not change.
    pub(crate) hashed: &'static str,
    /// The form of its values.
    pub(crate) form: ValueForm,
    /// Those of an interface, by number: a vector's IRQ, a thread's process id or a queue's number, else 0.
    pub(super) of: for<'a> fn(&'a Interface) -> Vec<(u32, Held<'a>)>,
    pub(super) counted: fn(usize) -> String,
    /// How the kernel is asked for it, and told.
    pub(crate) access: Access,
    /// Whether it decides which queue a flow uses: the driver changes it with the channels.
    pub(crate) is_of_flows: bool,
    /// What an error of the kernel means; `None` if it means what it does for any file.
    pub(crate) meaning: fn(&Answer<'_>) -> Option<Meaning>,
    /// What the kernel removes from a written mask.
    pub(crate) removed: Removed,
}

impl Kind {
    /// Direction (`rx`, `tx`) and file of a queue's setting.
    pub fn of_queue(&self) -> Option<(&'static str, &'static str)> {
        match self.names {
            Names::OfQueue { direction, file } => Some((direction, file)),
            _ => None,
        }
    }

    pub fn is_cpus(&self) -> bool {
        self.form == ValueForm::Cpus
    }

    pub fn is_mask(&self) -> bool {
        matches!(self.form, ValueForm::Cpus | ValueForm::Queues)
    }

    /// Which one of several of its port it is in the record; empty if it is the only one.
    pub(super) fn key(&self, interface: &Interface, number: u32) -> String {
        match self.names {
            Names::Only { .. } => String::new(),
            Names::Each { key, .. } => key(interface, number),
            Names::OfQueue { .. } => number.to_string(),
        }
    }

    /// The absolute path without the root; without a file, the name in plans.
    pub fn path(&self, interface: &str, number: u32) -> String {
        match self.names {
            Names::Only { path, .. } => path(interface),
            Names::Each { path, .. } => path(number),
            Names::OfQueue { direction, file } => queue_file(interface, direction, number, file),
        }
    }

    /// The file, else words or a command.
    pub fn shown(&self, interface: &str, number: u32) -> String {
        match self.access {
            Access::File | Access::AffinityFile => self.path(interface, number),
            Access::Thread => format!("affinity of thread {number}"),
            Access::RssTable => format!("ethtool -X {}", word(interface)),
            Access::Ntuple => format!("ethtool -K {} ntuple", word(interface)),
            Access::Channels => format!("ethtool -L {}", word(interface)),
        }
    }

    /// `None` for what no kernel prints.
    pub fn parse(&self, text: &str) -> Option<Value<'static>> {
        self.form.parse(text)
    }

    /// Compares masks as sets, numbers as numbers, RSS tables as tables.
    pub fn same(&self, a: &str, b: &str) -> bool {
        let [a, b] = [a, b].map(|text| self.parse(text));
        a.zip(b).is_some_and(|(a, b)| a.is_same(&b))
    }

    /// `6 IRQs`, `4 XPS`.
    pub fn counted(&self, many: usize) -> String {
        (self.counted)(many)
    }

    /// Whether `echo` can write it into a file.
    pub fn is_file(&self) -> bool {
        matches!(self.access, Access::File | Access::AffinityFile)
    }
}
