//! What a command found out, as values: every verdict, count and exit code.

pub mod compare;
pub mod exit;
pub mod measure;
pub mod nodes;
pub mod picture;
pub(crate) mod shell;
pub mod status;
pub(crate) mod wording;
