//! The findings of commands as values: every verdict, count and exit code.

pub mod applied;
pub mod check;
pub mod compare;
pub mod difference;
pub mod exit;
pub mod flow;
pub mod interface;
pub mod measure;
pub mod nodes;
pub mod outcome;
pub mod restored;
pub mod state;
pub mod status;
pub mod vectors;
pub mod watcher;
