//! Pages of the manual, and those of topics, which several commands have in common.

use clap_mangen::roff::{Inline, bold};

use self::ManPart::{Example, Heading, Item, Text, Value};
use crate::commands::help::HelpText;
use crate::screen::text_if;
use nicpin::drivers::PLACEHOLDERS;
use nicpin::policy::{CONDITIONS, SETTINGS};
use nicpin::report::interface::{InterfaceState, StateRow};

pub struct ManPage {
    /// The word for `nicpin help` and `nicpin man`; `None` for nicpin(8).
    pub about: Option<String>,
    pub name: String,
    pub section: u8,
    pub what: String,
    pub synopsis: String,
    pub parts: Vec<ManPart>,
}

pub enum ManPart {
    Heading(&'static str),
    /// Paragraphs, separated by empty lines.
    Text(String),
    Item(Inline, String),
    /// A value of the preceding word, and its meaning.
    Value(Inline, String),
    Example(String),
    Roff(String),
}

pub fn topics() -> [ManPage; 3] {
    let topic = |about: &str, (name, section): (&str, u8), what: &str, parts| ManPage {
        about: Some(about.into()),
        name: name.into(),
        section,
        what: what.into(),
        synopsis: String::new(),
        parts,
    };
    [
        topic(
            "states",
            ("nicpin-states", 7),
            "the states of interfaces",
            states(),
        ),
        topic(
            "selectors",
            ("nicpin-selectors", 7),
            "how to name interfaces",
            selectors(),
        ),
        topic(
            "policy",
            ("nicpin.toml", 5),
            "the policy of nicpin",
            policy(),
        ),
    ]
}

fn states() -> Vec<ManPart> {
    let item = |row: &StateRow| {
        let StateRow { means, check, .. } = row;
        Item(bold(row.name), format!("{means}. check ends with {check}."))
    };
    let mut parts = vec![
        Text(HelpText::of("states").text.clone()),
        Heading("States, worst first"),
    ];
    parts.extend(InterfaceState::ROWS.iter().rev().map(item));
    parts
}

fn selectors() -> Vec<ManPart> {
    let help = HelpText::of("selectors");
    let forms = help.forms.iter();
    let mut parts = vec![Text(help.text.clone()), Heading("Forms")];
    parts.extend(forms.map(|(form, means)| Item(bold(form), format!("{means}."))));
    parts.extend([Heading("Examples"), Example(help.examples.clone())]);
    parts
}

fn policy() -> Vec<ManPart> {
    let help = HelpText::of("policy");
    let mut parts = vec![Text(help.text.clone()), Text(help.more.clone())];
    for (title, for_interfaces) in [
        ("Settings of interfaces", true),
        ("Settings of the machine", false),
    ] {
        parts.push(Heading(title));
        for entry in SETTINGS
            .iter()
            .filter(|entry| entry.is_for_interfaces() == for_interfaces)
        {
            let about = format!("{}. {}", entry.help, entry.note);
            parts.push(Item(bold(entry.key), about.trim_end().into()));
            for (at, (value, means)) in entry.in_file().into_iter().enumerate() {
                parts.push(Value(
                    bold(value),
                    means + text_if(at == 0, " (the default)"),
                ));
            }
        }
    }
    parts.push(Heading("Conditions of a rule"));
    parts.extend(CONDITIONS.map(|(name, what)| Item(bold(name), what.into())));
    let driver = HelpText::of("driver");
    parts.extend([Heading("Drivers"), Text(driver.text.clone())]);
    let places = PLACEHOLDERS.map(|(name, what)| Item(bold(format!("{{{name}}}")), what.into()));
    parts.extend(places);
    parts.push(Example(driver.examples.clone()));
    parts.extend([Heading("Examples"), Example(help.examples.clone())]);
    parts
}
