//! The settings that are files of a queue (`net/core/net-sysfs.c`): what differs between them.

use super::kind::{Answer, Kind, Meaning, RecordName, Removed};
use super::value::{Held, ValueForm};
use crate::machine::Interface;
use crate::machine::files::queue_file;

/// A file of each receive or transmit queue.
pub(super) struct QueueFile {
    /// `rx` or `tx`.
    pub(super) direction: &'static str,
    pub(super) file: &'static str,
    pub(super) hashed: &'static str,
    pub(super) form: ValueForm,
    pub(super) is_of_flows: bool,
    pub(super) removed: Removed,
    /// Those of an interface, by queue.
    pub(super) of: for<'a> fn(&'a Interface) -> Vec<(u32, Held<'a>)>,
    /// `XPS` of `4 XPS`.
    pub(super) counted: &'static str,
    pub(super) meaning: fn(&Answer<'_>) -> Option<Meaning>,
}

impl Kind for QueueFile {
    fn recorded(&self) -> RecordName {
        RecordName::OfQueue(self.direction, self.file)
    }

    fn hashed(&self) -> &'static str {
        self.hashed
    }

    fn form(&self) -> ValueForm {
        self.form
    }

    fn of<'a>(&self, interface: &'a Interface) -> Vec<(u32, Held<'a>)> {
        (self.of)(interface)
    }

    fn path(&self, interface: &str, queue: u32) -> String {
        queue_file(interface, self.direction, queue, self.file)
    }

    fn counted(&self, many: usize) -> String {
        format!("{many} {}", self.counted)
    }

    fn is_of_flows(&self) -> bool {
        self.is_of_flows
    }

    fn meaning(&self, answer: &Answer<'_>) -> Option<Meaning> {
        (self.meaning)(answer)
    }

    fn removed(&self) -> Removed {
        self.removed
    }
}
