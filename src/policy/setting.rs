//! What a setting is: its key, the values that it takes, and where it can be given. `table.rs` lists them.
//!
//! A value is a word, a number, a list of CPUs or nodes, or a program. That is all that a file, an option, their checks and their
//! documentation have to know of a setting ([`Entry`]); the type that the planner reads is known to its [`Setting`].

use std::fmt;
use std::ops::RangeInclusive;

use crate::cpuset::{CpuSet, NodeSet};
use crate::machine::Program;

/// A setting that the planner reads as a `T`.
pub struct Setting<T: 'static> {
    /// Its key in the file, and the name of its option.
    pub key: &'static str,
    /// What it decides, as a phrase.
    pub help: &'static str,
    /// Further sentences; may be empty.
    pub note: &'static str,
    /// The default.
    pub default: Word<T>,
    /// The other words that it takes.
    pub words: &'static [Word<T>],
    /// What else it takes.
    pub forms: &'static [Form<T>],
    /// Where it can be given.
    pub given: Given,
}

/// Values other than words, in words, and what the planner reads for one.
pub enum Form<T> {
    /// A number.
    Number(Number, fn(u32) -> T),
    /// A list of CPUs.
    Cpus(&'static str, fn(CpuSet) -> T),
    /// A list of nodes.
    Nodes(&'static str, fn(NodeSet) -> T),
    /// A program.
    Program(&'static str, fn(Program) -> T),
}

/// A word, the value that it stands for, and what it means. Where the words are `true` and `false`, the file has a
/// boolean and the option, which takes no value, stands for the one that is not the default.
pub struct Word<T>(pub &'static str, pub T, pub &'static str);

/// Numbers that a setting takes.
#[derive(Debug, Clone)]
pub struct Number {
    /// From the least to the most.
    pub range: RangeInclusive<u32>,
    /// What they count, in the plural.
    pub of: &'static str,
    /// One of them.
    pub example: u32,
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number of {} from {}", self.of, self.range.start())?;
        if *self.range.end() == u32::MAX {
            Ok(())
        } else {
            write!(f, " to {}", self.range.end())
        }
    }
}

/// Where a setting can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// For interfaces: in `[defaults]`, in the `set` of a rule, and as an option.
    Anywhere,
    /// For interfaces, in the file only.
    InFile,
    /// For the machine: at the top of the file, and as an option.
    ForMachine,
}

/// A [`Setting`] as the file and the command line see it: the same fields, without the type that the planner reads.
/// The default is the first of `words`.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Entry {
    pub key: &'static str,
    pub help: &'static str,
    pub note: &'static str,
    pub words: Vec<(&'static str, &'static str)>,
    pub number: Option<Number>,
    pub cpus: Option<&'static str>,
    pub nodes: Option<&'static str>,
    pub program: Option<&'static str>,
    pub given: Given,
}

/// A valid value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// One of its words.
    Word(&'static str),
    /// A number in its range.
    Number(u32),
    /// A set of CPUs that is not empty.
    Cpus(CpuSet),
    /// A set of nodes that is not empty; written as `node:0` or `node:0-1`.
    Nodes(NodeSet),
    /// A program.
    Program(Program),
}

/// An unknown key, or a text that is not a value of the setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingError(pub(crate) String);

/// A setting that has no effect beside another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoEffect(pub(crate) String);

/// A CPU list with a CPU that the machine cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} names CPU {cpu}, and this machine has no CPU above {last}")]
pub struct ImpossibleCpu {
    /// The option.
    pub setting: String,
    /// The highest CPU in the list.
    pub cpu: u32,
    /// The highest possible CPU of the machine.
    pub last: u32,
}

impl<T: Clone> Setting<T> {
    /// What the file and the command line have to know.
    pub fn entry(&self) -> Entry {
        let mut entry = Entry {
            key: self.key,
            help: self.help,
            note: self.note,
            words: self.all_words().map(|word| (word.0, word.2)).collect(),
            number: None,
            cpus: None,
            nodes: None,
            program: None,
            given: self.given,
        };
        for form in self.forms {
            match form {
                Form::Number(number, _) => entry.number = Some(number.clone()),
                Form::Cpus(means, _) => entry.cpus = Some(means),
                Form::Nodes(means, _) => entry.nodes = Some(means),
                Form::Program(means, _) => entry.program = Some(means),
            }
        }
        entry
    }

    /// The default.
    pub(crate) fn default_value(&self) -> T {
        self.default.1.clone()
    }

    fn all_words(&self) -> impl Iterator<Item = &Word<T>> {
        std::iter::once(&self.default).chain(self.words)
    }

    /// What a value stands for; `None` for one of another setting.
    pub(crate) fn meaning(&self, value: &Value) -> Option<T> {
        if let Value::Word(text) = value {
            let mut words = self.all_words();
            return words
                .find(|word| word.0 == *text)
                .map(|word| word.1.clone());
        }
        self.forms.iter().find_map(|form| match (form, value) {
            (Form::Number(_, meaning), Value::Number(number)) => Some(meaning(*number)),
            (Form::Cpus(_, meaning), Value::Cpus(cpus)) => Some(meaning(cpus.clone())),
            (Form::Nodes(_, meaning), Value::Nodes(nodes)) => Some(meaning(nodes.clone())),
            (Form::Program(_, meaning), Value::Program(program)) => Some(meaning(program.clone())),
            _ => None,
        })
    }
}

impl Entry {
    /// The value that a text stands for.
    pub fn read(&self, text: &str) -> Result<Value, SettingError> {
        let text = text.trim();
        if let Some((word, _)) = self.words.iter().find(|(word, _)| *word == text) {
            return Ok(Value::Word(word));
        }
        let number = self.number.as_ref().and_then(|number| {
            let given = text.parse().ok()?;
            number.range.contains(&given).then_some(given)
        });
        if let Some(given) = number {
            return Ok(Value::Number(given));
        }
        let nodes = self.nodes.and_then(|_| {
            let nodes = NodeSet::parse_list(text.strip_prefix("node:")?).ok()?;
            (!nodes.is_empty()).then_some(nodes)
        });
        if let Some(nodes) = nodes {
            return Ok(Value::Nodes(nodes));
        }
        if let Some(program) = self.program.and_then(|_| text.parse().ok()) {
            return Ok(Value::Program(program));
        }
        let list = self.cpus.map(|_| CpuSet::parse_list(text));
        match list {
            Some(Ok(cpus)) if !cpus.is_empty() => Ok(Value::Cpus(cpus)),
            // The text looks like a list, so the error is that of the list.
            Some(Err(error)) if text.starts_with(|c: char| c.is_ascii_digit()) => {
                Err(SettingError(error.to_string()))
            }
            _ => Err(SettingError(format!(
                "`{text}` is not one of {}",
                self.expected()
            ))),
        }
    }

    /// The values that it takes, as an error lists them: `auto, off, or a CPU list such as 0-3,8`.
    pub(crate) fn expected(&self) -> String {
        let words = self.shown_words().map(|(word, _)| word.to_owned());
        let number = self
            .number
            .iter()
            .map(|number| format!("or {number} such as {}", number.example));
        let nodes = self
            .nodes
            .iter()
            .map(|_| "a node such as node:1".to_owned());
        let list = self
            .cpus
            .iter()
            .map(|_| "or a CPU list such as 0-3,8".to_owned());
        let program = self
            .program
            .iter()
            .map(|_| "or a program such as unit:nginx.service".to_owned());
        let all: Vec<String> = (words.chain(number).chain(nodes).chain(list))
            .chain(program)
            .collect();
        let text = all.join(", ");
        text.strip_prefix("or ").map(str::to_owned).unwrap_or(text)
    }

    /// Its words and what they mean, less the empty one.
    pub fn shown_words(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.words
            .iter()
            .copied()
            .filter(|(word, _)| !word.is_empty())
    }

    /// The values that it takes, as a line of the file has them, and what each means; the default first.
    pub fn in_file(&self) -> Vec<(String, String)> {
        let quoted = |word: &str| {
            if self.switch().is_some() {
                word.to_owned()
            } else {
                format!("\"{word}\"")
            }
        };
        let words = self
            .words
            .iter()
            .map(|&(word, means)| (quoted(word), means.to_owned()));
        let number = self
            .number
            .iter()
            .map(|number| (number.example.to_string(), number.to_string()));
        let nodes = self
            .nodes
            .iter()
            .map(|&means| ("\"node:1\"".to_owned(), means.to_owned()));
        let cpus = self
            .cpus
            .iter()
            .map(|&means| ("\"0-3,8\"".to_owned(), means.to_owned()));
        let program = self
            .program
            .iter()
            .map(|&means| ("\"unit:nginx.service\"".to_owned(), means.to_owned()));
        (words.chain(number).chain(nodes).chain(cpus))
            .chain(program)
            .collect()
    }

    /// Where it is a boolean, the word that is not the default, and what that means.
    pub fn switch(&self) -> Option<(&'static str, &'static str)> {
        let is_boolean = self.words.iter().any(|(word, _)| *word == "true");
        self.words.get(1).copied().filter(|_| is_boolean)
    }

    /// Whether there is an option for it.
    pub fn is_option(&self) -> bool {
        self.given != Given::InFile
    }

    /// Whether it can differ from interface to interface.
    pub fn is_for_interfaces(&self) -> bool {
        self.given != Given::ForMachine
    }
}

/// Refuses a set with a CPU beyond `possible`, the kernel's `nr_cpu_ids`.
pub fn possible_cpus(option: &str, cpus: &CpuSet, possible: u32) -> Result<(), ImpossibleCpu> {
    match cpus.last() {
        Some(cpu) if cpu >= possible => Err(ImpossibleCpu {
            setting: format!("--{option}"),
            cpu,
            last: possible.saturating_sub(1),
        }),
        _ => Ok(()),
    }
}
