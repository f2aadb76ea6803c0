//! What the command line gave that decides on the plan, for the commands that a screen names.

use std::iter::once;

use itertools::Itertools as _;

use crate::screen::unbroken;

/// The options and selectors of the command line that decide on the plan, as words of a shell.
#[derive(Clone, Default)]
pub struct Given {
    /// Each with its value, if it takes one: `--scope`, `0-3`.
    pub options: Vec<Vec<String>>,
    pub selectors: String,
}

impl Given {
    pub fn apply(&self) -> String {
        self.whole("nicpin apply")
    }

    /// The command with options and selectors, which no line breaks.
    pub fn whole(&self, command: &str) -> String {
        unbroken(&(self.added_to(command) + &self.selectors))
    }

    pub fn added_to(&self, command: &str) -> String {
        let words = self.options.iter().flatten().map(String::as_str);
        once(command).chain(words).join(" ")
    }

    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|option| option[0] == name)
    }

    pub fn without(&self, names: &[&str]) -> Self {
        let mut given = self.clone();
        given.options.retain(|option| !names.contains(&&*option[0]));
        given
    }
}
