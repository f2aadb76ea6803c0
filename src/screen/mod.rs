//! Renders reports and plans as text, SVG or JSON. Nothing is decided or computed here.

pub mod applied;
pub mod check;
pub mod fleet;
pub mod flow;
pub mod measure;
pub mod monitoring;
pub mod nodes;
pub mod page;
pub mod plan;
mod printable;
pub mod sh;
pub mod status;
mod text;
pub mod watch;
pub mod workers;

pub use printable::{message, printable};

/// A report as indented JSON with a final newline.
pub fn json<T: serde::Serialize>(value: &T) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
