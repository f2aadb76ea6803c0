//! Values into text. Nothing is computed here that the value does not hold.

pub mod applied;
pub mod binding;
pub mod check;
pub mod compare;
pub mod explain;
pub mod measure;
pub mod nodes;
pub mod note;
mod outcomes;
pub mod sh;
pub mod status;
pub mod style;
pub mod svg;
pub mod table;
mod text;
pub mod workers;

/// A value as JSON, for programs.
pub fn json<T: serde::Serialize>(value: &T) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
