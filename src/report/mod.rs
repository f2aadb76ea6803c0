//! What a command found out, as values: every verdict, count and exit code.

pub mod applied;
pub mod check;
#[cfg(feature = "cli")]
pub mod compare;
pub mod difference;
pub mod exit;
#[cfg(feature = "cli")]
pub mod fleet;
#[cfg(feature = "cli")]
pub mod measure;
#[cfg(feature = "cli")]
pub mod metrics;
#[cfg(feature = "cli")]
pub mod nodes;
pub mod outcome;
#[cfg(feature = "cli")]
pub mod picture;
#[cfg(feature = "cli")]
pub mod plugin;
pub mod proof;
pub mod restored;
#[cfg(feature = "cli")]
pub mod run;
pub mod state;
pub mod status;
pub(crate) mod wording;
