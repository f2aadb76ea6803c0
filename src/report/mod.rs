//! What a command found out, as values: every verdict, count and exit code.

pub mod applied;
pub mod check;
pub mod compare;
pub mod difference;
pub mod exit;
pub mod flow;
pub mod measure;
pub mod metrics;
pub mod nodes;
pub mod outcome;
pub mod plugin;
pub mod proof;
pub mod restored;
pub mod run;
pub mod state;
pub mod status;
