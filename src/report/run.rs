//! What `nicpin watch` shows: its state and its last runs.

use serde::{Deserialize, Serialize};

/// A setting that was changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedSetting {
    /// Its name in the record, which outlives IRQ numbers: `0000:82:00.0 port 0 vector combined 3`.
    pub name: String,
    pub interface: String,
    pub path: String,
}

/// The state of a watcher.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watcher {
    pub pid: i32,
    /// The start of its process in the kernel's ticks since boot, which tells it from a later process of this number.
    pub started: u64,
    /// When it started, in seconds since 1970.
    pub since: u64,
    /// Whether it only observes.
    pub observe: bool,
    /// Whether it leaves out CPUs of exclusive cpuset partitions although the policy says nothing about them.
    #[serde(default)]
    pub avoids_exclusive: bool,
    /// Why it writes nothing at present; `None` if it does.
    pub waits_for: Option<WaitsFor>,
    /// Runs since it started, and those of them that have restored the planned state.
    pub count: u64,
    pub restores: u64,
    /// The last runs, latest first.
    pub runs: Vec<WatcherRun>,
    /// Settings that it leaves alone, because another program writes them again and again.
    pub left_alone: Vec<LeftAlone>,
    /// How often it has left a setting alone for a time.
    pub contended: u64,
}

/// Why a watcher writes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitsFor {
    /// `nicpin restore` has paused it until the next `nicpin apply`.
    Apply,
    /// `nicpin apply --try` waits for its confirmation.
    Trial,
}

/// A run of a watcher.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatcherRun {
    /// When it started, in seconds since 1970.
    pub at: u64,
    /// The first event that caused it: `link eth2`.
    pub event: String,
    /// How many events there were.
    pub events: usize,
    pub milliseconds: u64,
    /// Settings that were changed; with `--observe`, that differ.
    pub changed: usize,
    /// Settings that could not be changed.
    pub failed: usize,
    /// Why the first of these could not be changed, without the fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Why the run failed as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A setting that a watcher leaves alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftAlone {
    #[serde(flatten)]
    pub setting: ChangedSetting,
    /// Until when, in seconds since 1970, unless an event about its interface comes before.
    pub until: u64,
    /// The programs that may write it; empty where none is known.
    #[serde(default)]
    pub writers: Vec<String>,
}
