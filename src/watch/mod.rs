//! When to apply again: events that undo affinity, quiet time, the cost of runs, and contention with other programs.
//!
//! One thread, one poll(2), no D-Bus. A run is the whole program as a child process.

mod child;
pub mod contended;
mod decisions;
mod event;
mod files;
pub mod journal;
mod messages;
mod outcome;
mod report;
pub mod run;
mod schedule;
mod sources;
pub mod state;
mod watcher;

pub use report::RestoredSetting;
pub use watcher::{Watch, watch};
