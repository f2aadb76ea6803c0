//! The texts of `help.toml`, for `--help` and the manual pages.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use itertools::Itertools as _;
use serde::Deserialize;

use crate::screen::{join_nonempty, with_prefix};

/// The exit code of a refused command line, for all commands.
pub const USAGE: (u8, &str) = (64, "usage error");

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HelpText {
    /// Paragraphs for the manual page only.
    pub manual: String,
    pub text: String,
    /// Exit codes of the command's own, without [`USAGE`].
    pub codes: Vec<(u8, String)>,
    /// Further text; for a command, about its exit codes.
    pub more: String,
    pub forms: Vec<(String, String)>,
    /// Lines, each with a command and its effect.
    pub examples: String,
}

/// The tests read all of it.
static HELP: LazyLock<BTreeMap<String, HelpText>> =
    LazyLock::new(|| toml::from_str(include_str!("help.toml")).unwrap_or_default());

static NOTHING: LazyLock<HelpText> = LazyLock::new(HelpText::default);

impl HelpText {
    pub fn of(word: &str) -> &'static Self {
        HELP.get(word).unwrap_or(&NOTHING)
    }

    pub fn exit_codes(&self) -> impl Iterator<Item = (u8, &str)> {
        let usage = (!self.codes.is_empty()).then_some(USAGE);
        let own = self.codes.iter().map(|(code, means)| (*code, &**means));
        own.chain(usage)
    }

    pub fn after_options(&self) -> String {
        let codes = self
            .exit_codes()
            .map(|(code, means)| format!("\n  {code:<4} {means}"));
        let codes = with_prefix("Exit codes:", [codes.collect::<String>()]);
        let examples = with_prefix("Examples:\n", [&self.examples]);
        let [text, more] = [&self.text, &self.more].map(|text| paragraphs(text).join("\n\n"));
        join_nonempty("\n\n", [&text, &codes, &more, &examples])
    }
}

/// Joins the lines of each paragraph: the screen breaks them itself.
pub fn paragraphs(text: &str) -> impl Iterator<Item = String> {
    let paragraphs = text.trim_end().split("\n\n");
    paragraphs.map(|paragraph| paragraph.replace('\n', " "))
}
