//! What a setting is: its key, the values that it takes, and where it can be given. `table.rs` lists them.
//!
//! A value is a word, a number, a list of CPUs or nodes, or a program. That is all that a file, an option, their checks and their
//! documentation have to know of a setting ([`Entry`]); the type that the planner reads is known to its [`Setting`].

use crate::cpuset::{CpuSet, NodeSet};
use crate::machine::Program;

/// A setting that the planner reads as a `T`.
pub struct Setting<T: 'static> {
    /// Its key in the file, and the name of its option.
    pub key: &'static str,
    help: &'static str,
    note: &'static str,
    words: &'static [Word<T>],
    forms: &'static [Form<T>],
    given: Given,
}

/// A word, the value that it stands for, and what it means. Where the words are `true` and `false`, the file has a
/// boolean and the option, which takes no value, stands for the one that is not the default.
pub(crate) type Word<T> = (&'static str, T, &'static str);

/// Values other than words, what they mean, and what the planner reads for one.
pub(crate) enum Form<T> {
    /// A number from 1 to the first; of what, in the plural; an example.
    Number(u32, &'static str, &'static str, fn(u32) -> T),
    /// A list of CPUs.
    Cpus(&'static str, fn(CpuSet) -> T),
    /// A list of nodes.
    Nodes(&'static str, fn(NodeSet) -> T),
    /// A program.
    Program(&'static str, fn(Program) -> T),
}

/// Where a setting can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// For interfaces: in `[defaults]`, in the `set` of a rule, and as an option.
    Anywhere,
    /// For interfaces, in the file only.
    InFile,
    /// For the machine: at the top of the file, and as an option.
    ForMachine,
}

/// A [`Setting`] as the file and the command line see it, without the type that the planner reads.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its key in the file, and the name of its option.
    pub key: &'static str,
    /// What it decides, as a phrase.
    pub help: &'static str,
    /// Further sentences; may be empty.
    pub note: &'static str,
    /// Its words and what they mean. The first is the default.
    pub words: Vec<(&'static str, &'static str)>,
    /// What else it takes.
    pub shapes: Vec<Shape>,
    given: Given,
}

/// Values other than words, as texts show them.
#[derive(Debug, Clone)]
pub struct Shape {
    kind: Kind,
    /// `a CPU list`.
    what: String,
    /// One of them.
    example: &'static str,
    /// What stands for them in help texts.
    pub holder: &'static str,
    /// What they mean.
    pub means: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number { most: u32 },
    Cpus,
    Nodes,
    Program,
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

impl<T: Clone> Setting<T> {
    /// A setting for interfaces that can be given anywhere. `help` says what it decides; the first word is the default.
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
            given: Given::Anywhere,
        }
    }

    /// With further sentences on what it decides.
    pub(crate) const fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    /// With what it takes beside words.
    pub(crate) const fn forms(self, forms: &'static [Form<T>]) -> Self {
        Self { forms, ..self }
    }

    pub(crate) const fn given(self, given: Given) -> Self {
        Self { given, ..self }
    }

    /// What the file and the command line have to know.
    pub fn entry(&self) -> Entry {
        let shape = |form: &Form<T>| {
            let (kind, what, example, holder, means) = match *form {
                Form::Number(most, of, example, _) => {
                    let mut what = format!("a number of {of} from 1");
                    if most < u32::MAX {
                        what += &format!(" to {most}");
                    }
                    (Kind::Number { most }, what, example, "N", of)
                }
                Form::Cpus(means, _) => {
                    (Kind::Cpus, "a CPU list".into(), "0-3,8", "CPULIST", means)
                }
                Form::Nodes(means, _) => (Kind::Nodes, "a node".into(), "node:1", "node:N", means),
                Form::Program(means, _) => {
                    let what = "a program".into();
                    (
                        Kind::Program,
                        what,
                        "unit:nginx.service",
                        "pid:N|unit:NAME",
                        means,
                    )
                }
            };
            Shape {
                kind,
                what,
                example,
                holder,
                means,
            }
        };
        Entry {
            key: self.key,
            help: self.help,
            note: self.note,
            words: self.words.iter().map(|word| (word.0, word.2)).collect(),
            shapes: self.forms.iter().map(shape).collect(),
            given: self.given,
        }
    }

    pub(crate) fn default_value(&self) -> T {
        self.words[0].1.clone()
    }

    /// What a value stands for; `None` for one of another setting.
    pub(crate) fn meaning(&self, value: &Value) -> Option<T> {
        if let Value::Word(text) = value {
            let word = self.words.iter().find(|word| word.0 == *text);
            return word.map(|word| word.1.clone());
        }
        self.forms.iter().find_map(|form| match (form, value) {
            (Form::Number(.., meaning), Value::Number(number)) => Some(meaning(*number)),
            (Form::Cpus(_, meaning), Value::Cpus(cpus)) => Some(meaning(cpus.clone())),
            (Form::Nodes(_, meaning), Value::Nodes(nodes)) => Some(meaning(nodes.clone())),
            (Form::Program(_, meaning), Value::Program(program)) => Some(meaning(program.clone())),
            _ => None,
        })
    }
}

impl Kind {
    fn read(self, text: &str) -> Option<Value> {
        match self {
            Self::Number { most } => {
                let number = text.parse().ok()?;
                (1..=most)
                    .contains(&number)
                    .then_some(Value::Number(number))
            }
            Self::Cpus => {
                let cpus = CpuSet::parse_list(text).ok()?;
                (!cpus.is_empty()).then_some(Value::Cpus(cpus))
            }
            Self::Nodes => {
                let nodes = NodeSet::parse_list(text.strip_prefix("node:")?).ok()?;
                (!nodes.is_empty()).then_some(Value::Nodes(nodes))
            }
            Self::Program => Some(Value::Program(text.parse().ok()?)),
        }
    }
}

impl Entry {
    /// The value that a text stands for.
    pub fn read(&self, text: &str) -> Result<Value, SettingError> {
        let text = text.trim();
        let word = self.words.iter().find(|(word, _)| *word == text);
        let read = |shape: &Shape| shape.kind.read(text);
        word.map(|(word, _)| Value::Word(word))
            .or_else(|| self.shapes.iter().find_map(read))
            .ok_or_else(|| {
                // The text looks like a list, so the error is that of the list.
                let looks = self.takes_cpus() && text.starts_with(|c: char| c.is_ascii_digit());
                let of_list = CpuSet::parse_list(text).err().filter(|_| looks);
                SettingError(match of_list {
                    Some(error) => error.to_string(),
                    None => format!("`{text}` is not one of {}", self.expected()),
                })
            })
    }

    /// The values that it takes, as an error lists them: `auto, off, or a CPU list such as 0-3,8`.
    pub(crate) fn expected(&self) -> String {
        let words = self.shown_words().map(|(word, _)| word.to_owned());
        let shapes = self.shapes.iter();
        let mut all: Vec<_> = words
            .chain(shapes.map(|shape| format!("{} such as {}", shape.what, shape.example)))
            .collect();
        if let ([_, .., last], false) = (&mut all[..], self.shapes.is_empty()) {
            last.insert_str(0, "or ");
        }
        all.join(", ")
    }

    /// Its words and what they mean, less the empty one.
    pub fn shown_words(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let words = self.words.iter().copied();
        words.filter(|(word, _)| !word.is_empty())
    }

    /// The values that it takes, as a line of the file has them, and what each means; the default first.
    pub fn in_file(&self) -> Vec<(String, String)> {
        let words = self.words.iter().map(|&(word, means)| match self.switch() {
            Some(_) => (word.to_owned(), means.to_owned()),
            None => (format!("\"{word}\""), means.to_owned()),
        });
        let shapes = self.shapes.iter().map(|shape| match shape.kind {
            Kind::Number { .. } => (shape.example.to_owned(), shape.what.clone()),
            _ => (format!("\"{}\"", shape.example), shape.means.to_owned()),
        });
        words.chain(shapes).collect()
    }

    /// Where it is a boolean, the word that is not the default, and what that means.
    pub fn switch(&self) -> Option<(&'static str, &'static str)> {
        let is_boolean = self.words.iter().any(|(word, _)| *word == "true");
        self.words.get(1).copied().filter(|_| is_boolean)
    }

    pub(crate) fn takes_numbers(&self) -> bool {
        let mut shapes = self.shapes.iter();
        shapes.any(|shape| matches!(shape.kind, Kind::Number { .. }))
    }

    pub(crate) fn takes_cpus(&self) -> bool {
        self.shapes.iter().any(|shape| shape.kind == Kind::Cpus)
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
