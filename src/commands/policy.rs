//! Options that override the policy file, made from the table of settings.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::Error;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, FromArgMatches};
use itertools::Itertools as _;

use nicpin::policy::{Entry, SETTINGS, Settings, Value};

/// Options that override the policy file.
#[derive(Debug, Clone, Default)]
pub struct PolicyArgs {
    pub settings: Settings,
}

impl Args for PolicyArgs {
    fn group_id() -> Option<clap::Id> {
        Some("PolicyArgs".into())
    }

    fn augment_args(command: Command) -> Command {
        let group = ArgGroup::new("PolicyArgs")
            .multiple(true)
            .args(options().map(|entry| entry.key));
        command.group(group).args(options().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PolicyArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut args = Self::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for entry in options() {
            let given = match entry.switch() {
                Some((word, _)) => matches.get_flag(entry.key).then_some(Value::Word(word)),
                None => matches.get_one(entry.key).cloned(),
            };
            if let Some(value) = given {
                self.settings.set(entry, value);
            }
        }
        Ok(())
    }
}

fn options() -> impl Iterator<Item = &'static Entry> {
    SETTINGS.iter().filter(|entry| entry.is_option())
}

/// The options that come first in the help.
const COMMON: [&str; 7] = [
    "scope",
    "near",
    "exclude",
    "irq-cores",
    "rps",
    "xps",
    "channels",
];

fn option(entry: &'static Entry) -> Arg {
    let is_common = COMMON.contains(&entry.key);
    let arg = Arg::new(entry.key)
        .help_heading(if is_common {
            "Placement"
        } else {
            "Placement, less often needed"
        })
        .hide_short_help(!is_common);
    match entry.switch() {
        Some((word, means)) => {
            let long = if word == "true" {
                entry.key.to_owned()
            } else {
                format!("no-{}", entry.key)
            };
            arg.long(long)
                .action(ArgAction::SetTrue)
                .help(capitalised(means))
        }
        None => arg
            .long(entry.key)
            .value_name(forms(entry).map(|(form, _)| form).join("|"))
            .value_parser(Values(entry))
            // The help text lists them with their meanings.
            .hide_possible_values(true)
            .help(help(entry)),
    }
}

/// The accepted forms, each with its meaning.
fn forms(entry: &Entry) -> impl Iterator<Item = (&'static str, &'static str)> {
    entry
        .shown_words()
        .chain(entry.forms.iter().map(|form| form.in_help()))
}

/// The help of the setting, with its values where there are several.
fn help(entry: &Entry) -> String {
    let mut text = entry.help.to_owned();
    if forms(entry).count() > 1 {
        let default = entry.words.first().map(|(word, _)| *word);
        let mut values = forms(entry).map(|(form, means)| match default {
            Some(default) if default == form => format!("{form} ({means}; the default)"),
            _ => format!("{form} ({means})"),
        });
        text = format!("{text}: {}", values.join(", "));
    }
    if !entry.note.is_empty() {
        text = format!("{text}. {}", entry.note.trim_end_matches('.'));
    }
    text
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// Parses the values of a setting; shells complete the words among them.
#[derive(Clone)]
struct Values(&'static Entry);

impl TypedValueParser for Values {
    type Value = Value;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Value, Error> {
        let Self(entry) = *self;
        StringValueParser::new()
            .try_map(|text| entry.read(&text))
            .parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            self.0
                .shown_words()
                .map(|(word, means)| PossibleValue::new(word).help(means)),
        ))
    }
}
