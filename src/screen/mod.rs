//! Renders reports and plans as text, SVG or JSON. Nothing is decided or computed here.

pub mod applied;
pub mod binding;
pub mod check;
pub mod compare;
pub mod explain;
pub mod fleet;
pub mod flow;
pub mod measure;
pub mod monitoring;
pub mod nodes;
pub mod note;
mod outcomes;
pub mod page;
mod printable;
mod score;
pub mod sh;
pub mod status;
pub mod table;
mod text;
pub mod watch;
pub mod workers;

pub use printable::{message, printable};

/// A report as indented JSON with a final newline.
pub fn json<T: serde::Serialize>(value: &T) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
