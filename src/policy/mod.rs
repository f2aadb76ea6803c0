//! The policy: the policy file (TOML), and the command-line options that override it.
//!
//! A file has `[defaults]` and any number of `[[rule]]`s. Every rule that matches an interface applies, in
//! the file's order, each over the ones before it; options from the command line come last. A setting that is given
//! in a later place replaces the same setting of an earlier one.

mod choice;
pub mod example;
mod file;
mod rule;
mod setting;
mod settings;
mod table;

pub(crate) use choice::Choice;
pub use choice::Policy;
pub use file::{PolicyError, without_comments};
pub use rule::Rule;
pub use setting::{
    Entry, Form, Given, ImpossibleCpu, NoEffect, Number, Setting, SettingError, Value, Word,
    possible_cpus,
};
pub use settings::Settings;
pub use table::*;
