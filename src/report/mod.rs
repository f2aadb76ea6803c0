//! What a command found out, as values: every verdict, count and exit code.

pub mod applied;
pub mod check;
pub mod compare;
pub mod difference;
pub mod exit;
pub mod measure;
pub mod nodes;
pub mod outcome;
pub mod picture;
pub mod proof;
pub mod restored;
pub mod status;
pub(crate) mod wording;
