//! A write of a plan.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::kinds::{Place, SettingKind, place};
use crate::plan::why::Why;

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
    /// Empty for a setting of the whole machine.
    pub interface: Arc<str>,
    /// The number of the [`Setting`](crate::kinds::Setting).
    #[serde(skip)]
    pub number: u32,
    pub why: Why,
}

impl Write {
    /// The setting as people see it.
    pub fn shown(&self) -> String {
        self.kind.shown(&self.interface, self.number)
    }

    pub(crate) fn place(&self) -> Place<'_> {
        place(self.kind, self.number, &self.interface)
    }
}
