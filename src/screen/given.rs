//! What the command line gave that decides on the plan, for the commands that a screen names.

use std::iter::once;

use itertools::Itertools as _;

/// The options and selectors of the command line that decide on the plan, as words of a shell.
#[derive(Clone, Default)]
pub struct Given {
    pub options: Vec<GivenOption>,
    pub selectors: String,
}

/// An option, such as `--scope`, and its words: `--scope 0-3`.
#[derive(Clone)]
pub struct GivenOption {
    pub name: String,
    pub words: String,
}

impl GivenOption {
    /// An option without a value.
    pub fn switch(name: &str) -> Self {
        let [name, words] = [name; 2].map(str::to_owned);
        Self { name, words }
    }
}

impl Given {
    pub fn apply(&self) -> String {
        self.whole("nicpin apply")
    }

    pub fn whole(&self, command: &str) -> String {
        self.added_to(command) + &self.selectors
    }

    pub fn added_to(&self, command: &str) -> String {
        let options = self.options.iter().map(|option| &*option.words);
        once(command).chain(options).join(" ")
    }

    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|option| option.name == name)
    }

    pub fn without(&self, names: &[&str]) -> Self {
        let mut given = self.clone();
        given
            .options
            .retain(|option| !names.contains(&&*option.name));
        given
    }
}
