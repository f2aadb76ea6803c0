//! The state of `nicpin watch` and its last runs.

use serde::{Deserialize, Serialize};

use crate::kinds::SettingId;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedSetting {
    /// The name in the record, which outlives IRQ numbers: `0000:82:00.0 port 0 vector combined 3`.
    pub name: SettingId,
    pub interface: String,
    pub path: String,
}

impl ChangedSetting {
    /// The setting as people see it: its file, else its name.
    pub fn shown(&self) -> String {
        match self.name.kind() {
            Some(kind) if !kind.is_file() => self.name.to_string(),
            _ => self.path.clone(),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watcher {
    pub pid: i32,
    /// The start of the process in ticks since boot, which tells it from a later process with this id.
    pub started: u64,
    /// The start, in seconds since 1970.
    pub since: u64,
    pub observe: bool,
    /// Whether the watcher leaves out exclusive cpuset partitions although the policy says nothing about them.
    #[serde(default)]
    pub avoids_exclusive: bool,
    /// Why the watcher writes nothing at present; `None` if it writes.
    pub waits_for: Option<WaitsFor>,
    /// Runs since the start, and those that have restored the planned state.
    pub count: u64,
    pub restores: u64,
    pub runs: Vec<WatcherRun>,
    pub left_alone: Vec<LeftAlone>,
    /// How often a setting was not written for a time.
    pub contended: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitsFor {
    /// `nicpin restore` has paused the watcher until the next `nicpin apply`.
    Apply,
    /// The trial of `nicpin apply --try` has to be confirmed or to end.
    Trial,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatcherRun {
    /// The start, in seconds since 1970.
    pub at: u64,
    /// The first event that caused the run: `link eth2`.
    pub event: String,
    pub events: usize,
    pub milliseconds: u64,
    /// Settings that were changed; with `--observe`, that differ.
    pub changed: usize,
    pub failed: usize,
    /// The error of the first setting that could not be changed, without the fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A setting that is not written for a time, because another program writes it again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftAlone {
    #[serde(flatten)]
    pub setting: ChangedSetting,
    /// The end, in seconds since 1970; an event about the interface ends it earlier.
    pub until: u64,
    /// Programs that may write the setting; empty if none is known.
    #[serde(default)]
    pub writers: Vec<String>,
}
