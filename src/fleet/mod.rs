//! `nicpin fleet`: many machines at once, from their captures, plans and checks.

pub mod host;
pub mod inputs;
pub mod report;
pub mod shape;

pub use host::Host;
pub use shape::{Deviation, Shape};
