//! What `--help` and the manual pages say of a command beside its options, and of a topic: the texts of `help.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use itertools::Itertools as _;
use serde::Deserialize;

use crate::screen::{joined, with};

/// The exit code of a command line that is refused; the same for all commands.
pub const USAGE: (u8, &str) = (64, "usage error");

/// What is said of a command beside its options, or of a topic.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HelpText {
    /// Paragraphs that only the manual page has.
    pub manual: String,
    /// Paragraphs.
    pub text: String,
    /// The exit codes that mean something of their own, without [`USAGE`].
    pub codes: Vec<(u8, String)>,
    /// What else is to be said: of a command about its exit codes.
    pub more: String,
    /// Ways to write something, and what each means.
    pub forms: Vec<(String, String)>,
    /// Lines, each with a command and what it does.
    pub examples: String,
}

/// By command or topic. The tests read all of it.
static HELP: LazyLock<BTreeMap<String, HelpText>> =
    LazyLock::new(|| toml::from_str(include_str!("help.toml")).unwrap_or_default());

static NOTHING: LazyLock<HelpText> = LazyLock::new(HelpText::default);

impl HelpText {
    /// That of a command or a topic; empty for a hidden command.
    pub fn of(word: &str) -> &'static Self {
        HELP.get(word).unwrap_or(&NOTHING)
    }

    /// The exit codes and what they mean; none where it has none of its own.
    pub fn exit_codes(&self) -> impl Iterator<Item = (u8, &str)> {
        let usage = (!self.codes.is_empty()).then_some(USAGE);
        let own = self.codes.iter().map(|(code, means)| (*code, &**means));
        own.chain(usage)
    }

    /// What `--help` says after the options.
    pub fn after_options(&self) -> String {
        let codes = self
            .exit_codes()
            .map(|(code, means)| format!("\n  {code:<4} {means}"));
        let codes = with("Exit codes:", [codes.collect::<String>()]);
        let examples = with("Examples:\n", [&self.examples]);
        let [text, more] = [&self.text, &self.more].map(|text| paragraphs(text).join("\n\n"));
        joined("\n\n", [&text, &codes, &more, &examples])
    }
}

/// Paragraphs with a line each, as the screen breaks them where it ends.
pub fn paragraphs(text: &str) -> impl Iterator<Item = String> {
    let paragraphs = text.trim_end().split("\n\n");
    paragraphs.map(|paragraph| paragraph.replace('\n', " "))
}
