//! The form of a setting: its key, the values that it takes, and where it can be given. The file, the options and their
//! documentation need only the [`PolicyEntry`]; a [`PolicySetting`] also knows the type that the planner reads.

use crate::cpuset::{CpuSet, NodeSet};
use crate::machine::Program;

pub struct PolicySetting<T: 'static> {
    pub key: &'static str,
    help: &'static str,
    note: &'static str,
    words: &'static [Word<T>],
    forms: &'static [Form],
    /// `None` for a value of another setting.
    read: fn(PolicyValue) -> Option<T>,
    given: AllowedIn,
}

/// A word, its value, and its meaning. A setting with the words `true` and `false` is a boolean in the file; as an
/// option it takes no value and means the word that is not the default.
pub(crate) type Word<T> = (&'static str, T, &'static str);

/// Values other than words; a text says what they mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A number from 1 to `most`.
    Number {
        most: u32,
        /// The noun that it counts, in the plural.
        counted: &'static str,
        example: &'static str,
    },
    Cpus(&'static str),
    Nodes(&'static str),
    Program(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedIn {
    /// For interfaces, in the file and as an option.
    Anywhere,
    /// For interfaces, in the file only.
    InFile,
    /// At the top of the file, and as an option.
    ForMachine,
}

/// A [`PolicySetting`] without the planner's type.
#[derive(Debug, Clone)]
pub struct PolicyEntry {
    /// The key in the file, and the name of the option.
    pub key: &'static str,
    /// The decision, as a phrase.
    pub help: &'static str,
    /// Further sentences; may be empty.
    pub note: &'static str,
    /// The words with their meanings; the first is the default.
    pub words: Vec<(&'static str, &'static str)>,
    pub forms: &'static [Form],
    given: AllowedIn,
}

/// A valid value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyValue {
    Word(&'static str),
    Number(u32),
    /// Not empty.
    Cpus(CpuSet),
    /// Not empty; written as `node:0` or `node:0-1`.
    Nodes(NodeSet),
    Program(Program),
}

/// An unknown key, a text that is no value of the setting, a CPU that the machine cannot have, or no effect beside
/// another setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingError(pub(crate) String);

impl<T: Clone> PolicySetting<T> {
    /// A setting for interfaces that can be given anywhere; the first word is the default.
    pub(crate) const fn new(
        key: &'static str,
        help: &'static str,
        words: &'static [Word<T>],
    ) -> Self {
        Self {
            key,
            help,
            note: "",
            words,
            forms: &[],
            read: |_| None,
            given: AllowedIn::Anywhere,
        }
    }

    pub(crate) const fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    pub(crate) const fn forms(
        self,
        forms: &'static [Form],
        read: fn(PolicyValue) -> Option<T>,
    ) -> Self {
        Self {
            forms,
            read,
            ..self
        }
    }

    pub(crate) const fn given(self, given: AllowedIn) -> Self {
        Self { given, ..self }
    }

    pub fn entry(&self) -> PolicyEntry {
        PolicyEntry {
            key: self.key,
            help: self.help,
            note: self.note,
            words: self.words.iter().map(|word| (word.0, word.2)).collect(),
            forms: self.forms,
            given: self.given,
        }
    }

    pub(crate) fn default_value(&self) -> T {
        self.words[0].1.clone()
    }

    /// `None` for a value of another setting.
    pub(crate) fn meaning(&self, value: &PolicyValue) -> Option<T> {
        let PolicyValue::Word(text) = value else {
            return (self.read)(value.clone());
        };
        let word = self.words.iter().find(|word| word.0 == *text);
        word.map(|word| word.1.clone())
    }
}

impl PolicyValue {
    pub(crate) fn number(self) -> Option<u32> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn cpus(self) -> Option<CpuSet> {
        match self {
            Self::Cpus(cpus) => Some(cpus),
            _ => None,
        }
    }
}

impl Form {
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Number { .. })
    }

    /// The placeholder in an option's help, with its meaning there.
    pub fn in_help(self) -> (&'static str, &'static str) {
        match self {
            Self::Number { counted, .. } => ("N", counted),
            Self::Cpus(means) => ("CPULIST", means),
            Self::Nodes(means) => ("node:N", means),
            Self::Program(means) => ("pid:N|unit:NAME", means),
        }
    }

    fn description(self) -> (String, &'static str) {
        match self {
            Self::Number {
                most,
                counted,
                example,
            } if most == u32::MAX => (format!("a number of {counted} from 1"), example),
            Self::Number {
                most,
                counted,
                example,
            } => (format!("a number of {counted} from 1 to {most}"), example),
            Self::Cpus(_) => ("a CPU list".into(), "0-3,8"),
            Self::Nodes(_) => ("a node".into(), "node:1"),
            Self::Program(_) => ("a program".into(), "unit:nginx.service"),
        }
    }

    fn read(self, text: &str) -> Option<PolicyValue> {
        let list = |text| CpuSet::parse_list(text).ok().filter(|set| !set.is_empty());
        match self {
            Self::Number { most, .. } => {
                let number = text.parse().ok();
                number
                    .filter(|number| (1..=most).contains(number))
                    .map(PolicyValue::Number)
            }
            Self::Cpus(_) => list(text).map(PolicyValue::Cpus),
            Self::Nodes(_) => list(text.strip_prefix("node:")?).map(PolicyValue::Nodes),
            Self::Program(_) => text.parse().ok().map(PolicyValue::Program),
        }
    }
}

impl PolicyEntry {
    pub fn read(&self, text: &str) -> Result<PolicyValue, SettingError> {
        let text = text.trim();
        if let Some((word, _)) = self.words.iter().find(|(word, _)| *word == text) {
            return Ok(PolicyValue::Word(word));
        }
        self.forms
            .iter()
            .find_map(|form| form.read(text))
            .ok_or_else(|| {
                // The text looks like a list, so the error is that of the list.
                let looks = self.takes_cpus() && text.starts_with(|c: char| c.is_ascii_digit());
                let of_list = CpuSet::parse_list(text).err().filter(|_| looks);
                let is_one = self.shown_words().count() + self.forms.len() == 1;
                let one_of = if is_one { "" } else { "one of " };
                SettingError(of_list.unwrap_or_else(|| {
                    format!("`{text}` is not {one_of}{}", self.expected_values())
                }))
            })
    }

    /// For an error: `auto, off, or a CPU list such as 0-3,8`.
    pub(crate) fn expected_values(&self) -> String {
        let words = self.shown_words().map(|(word, _)| word.to_owned());
        let forms = self.forms.iter().map(|form| {
            let (what, example) = form.description();
            format!("{what} such as {example}")
        });
        let mut all: Vec<_> = words.chain(forms).collect();
        if let ([_, .., last], false) = (&mut all[..], self.forms.is_empty()) {
            last.insert_str(0, "or ");
        }
        all.join(", ")
    }

    /// The words without the empty one.
    pub fn shown_words(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.words
            .iter()
            .copied()
            .filter(|(word, _)| !word.is_empty())
    }

    /// The values as the file has them, with their meanings; the default first.
    pub fn in_file(&self) -> Vec<(String, String)> {
        let words = self.words.iter().map(|&(word, means)| match self.switch() {
            Some(_) => (word.to_owned(), means.to_owned()),
            None => (format!("\"{word}\""), means.to_owned()),
        });
        words
            .chain(self.forms.iter().map(|form| match form.description() {
                (what, example) if form.is_number() => (example.to_owned(), what),
                (_, example) => (format!("\"{example}\""), form.in_help().1.to_owned()),
            }))
            .collect()
    }

    /// The word of a boolean that is not the default, with its meaning.
    pub fn switch(&self) -> Option<(&'static str, &'static str)> {
        let is_boolean = self.words.iter().any(|(word, _)| *word == "true");
        self.words.get(1).copied().filter(|_| is_boolean)
    }

    pub(crate) fn takes_cpus(&self) -> bool {
        self.forms.iter().any(|form| matches!(form, Form::Cpus(_)))
    }

    pub fn is_option(&self) -> bool {
        self.given != AllowedIn::InFile
    }

    /// Whether the setting can differ between interfaces.
    pub fn is_for_interfaces(&self) -> bool {
        self.given != AllowedIn::ForMachine
    }
}
