//! What is to know of one kind of setting.

use nix::errno::Errno;

use super::value::{Held, Value, ValueForm};
use crate::cpuset::CpuSet;
use crate::machine::{Interface, Machine};

/// How the kernel is asked for a setting, and told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
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
pub enum Removed {
    /// The kernel takes a mask as it is, or not at all.
    Never,
    Offline,
    OfflineAndIsolated,
}

/// The error of a write, with the facts on which its meaning may depend: they are read only if it does.
pub struct Answer<'a> {
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
pub enum Meaning {
    /// The IRQ is managed by the kernel.
    Unmovable(&'static str),
    Refused(&'static str),
    Vanished(&'static str),
}

/// The form of a setting's name in the record, which must not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordName {
    /// `rss`: a port has one.
    Only(&'static str),
    /// `vector combined 3`: a word, and which one of several.
    Each(&'static str),
    /// `rx-3 rps_cpus`: direction and file of a queue.
    OfQueue(&'static str, &'static str),
}

impl RecordName {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Only(name) | Self::Each(name) | Self::OfQueue(_, name) => name,
        }
    }

    pub(super) fn with(self, key: &str) -> String {
        match self {
            Self::Only(name) => name.to_owned(),
            Self::Each(word) => format!("{word} {key}"),
            Self::OfQueue(direction, file) => format!("{direction}-{key} {file}"),
        }
    }

    /// Which one of several the name is of; `None` if it is one of another kind.
    pub(super) fn key(self, name: &str) -> Option<&str> {
        match self {
            Self::Only(only) => (name == only).then_some(""),
            Self::Each(word) => name.strip_prefix(word)?.strip_prefix(' '),
            Self::OfQueue(direction, file) => {
                let queue = name.strip_suffix(file)?.strip_suffix(' ')?;
                queue.strip_prefix(direction)?.strip_prefix('-')
            }
        }
    }
}

/// One kind of setting.
pub trait Kind: Sync {
    /// Its name in the record.
    fn recorded(&self) -> RecordName;

    /// Direction (`rx`, `tx`) and file of a queue's setting.
    fn of_queue(&self) -> Option<(&'static str, &'static str)> {
        match self.recorded() {
            RecordName::OfQueue(direction, file) => Some((direction, file)),
            _ => None,
        }
    }

    /// Its name in the hash of a plan, which must not change.
    fn hashed(&self) -> &'static str {
        self.recorded().name()
    }

    /// The form of its values.
    fn form(&self) -> ValueForm;

    fn is_cpus(&self) -> bool {
        self.form() == ValueForm::Cpus
    }

    fn is_mask(&self) -> bool {
        matches!(self.form(), ValueForm::Cpus | ValueForm::Queues)
    }

    /// Those of an interface, by number: a vector's IRQ, a thread's process id or a queue's number, else 0.
    fn of<'a>(&self, _interface: &'a Interface) -> Vec<(u32, Held<'a>)> {
        Vec::new()
    }

    /// That of the whole machine.
    fn of_machine(&self, _machine: &Machine) -> Option<Value<'static>> {
        None
    }

    /// Which one of several of its port it is in the record; empty if it is the only one.
    fn key(&self, _interface: &Interface, number: u32) -> String {
        match self.of_queue() {
            Some(_) => number.to_string(),
            None => String::new(),
        }
    }

    /// The absolute path without the root; without a file, the name in plans.
    fn path(&self, interface: &str, number: u32) -> String;

    /// The file, else words or a command.
    fn shown(&self, interface: &str, number: u32) -> String {
        self.path(interface, number)
    }

    /// `None` for what no kernel prints.
    fn parse(&self, text: &str) -> Option<Value<'static>> {
        self.form().parse(text)
    }

    /// Compares masks as sets, numbers as numbers, RSS tables as tables.
    fn same(&self, a: &str, b: &str) -> bool {
        let [a, b] = [a, b].map(|text| self.parse(text));
        a.zip(b).is_some_and(|(a, b)| a.is_same(&b))
    }

    /// `6 IRQs`, `4 XPS`.
    fn counted(&self, many: usize) -> String;

    /// How the kernel is asked for it, and told.
    fn access(&self) -> Access {
        Access::File
    }

    /// Whether `echo` can write it into a file.
    fn is_file(&self) -> bool {
        matches!(self.access(), Access::File | Access::AffinityFile)
    }

    /// Whether it decides which queue a flow uses: the driver changes it with the channels.
    fn is_of_flows(&self) -> bool {
        false
    }

    /// What an error of the kernel means; `None` if it means what it does for any file.
    fn meaning(&self, _answer: &Answer<'_>) -> Option<Meaning> {
        None
    }

    /// What the kernel removes from a written mask.
    fn removed(&self) -> Removed {
        Removed::Never
    }
}
