//! The manual: a page for nicpin and one for each command, from the definitions of the command line.
//!
//! What stands after the options in `--help` becomes two sections of a page: what comes before the line `Examples:` is
//! part of the description, what comes after it is kept line by line.

use std::io;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

/// A page of section 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The command that it is about; `None`: nicpin itself.
    pub command: Option<String>,
    /// What its file is called: `nicpin-plan.1`.
    pub file: String,
    /// The page, as `man` reads it.
    pub text: String,
}

/// Files that all pages name.
const FILES: [(&str, &str); 2] = [
    ("/etc/nicpin.toml", "The policy; see dist/nicpin.toml in the sources for every key, with its default."),
    (
        "/run/nicpin/state.json",
        "What the first apply found, for restore. Gone after a boot, as the settings are.",
    ),
];

/// All pages, that of nicpin itself first.
pub fn pages(command: Command) -> io::Result<Vec<Page>> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let statuses = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let statuses = parts(&statuses).0.to_owned();
    let all: Vec<&Command> = command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    let names: Vec<String> = all.iter().map(|command| page_name(command)).collect();
    let others = |own: &str| -> Vec<String> {
        let every = std::iter::once(page_name(&command)).chain(names.iter().cloned());
        every.filter(|name| name != own).collect()
    };
    let mut pages = vec![page(&command, None, &statuses, &others(&page_name(&command)))?];
    for (command, name) in all.iter().zip(&names) {
        pages.push(page(command, Some(command.get_name().to_owned()), &statuses, &others(name))?);
    }
    Ok(pages)
}

fn page_name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn page(command: &Command, about: Option<String>, statuses: &str, others: &[String]) -> io::Result<Page> {
    let name = page_name(command);
    let man = Man::new(command.clone());
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (prose, examples) = parts(&after);
    // No date: the same nicpin gives the same page.
    let version = env!("CARGO_PKG_VERSION");
    let mut text =
        format!(".TH {} 1 \"\" \"nicpin {version}\" \"nicpin manual\"\n", name.to_uppercase()).into_bytes();
    man.render_name_section(&mut text)?;
    synopsis(command).to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    if about.is_some() && !prose.is_empty() {
        Roff::new().control("PP", []).to_writer(&mut text)?;
        paragraphs(prose).to_writer(&mut text)?;
    }
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let mut rest = Roff::new();
    if !examples.is_empty() {
        rest.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in examples.lines() {
            rest.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        rest.control("fi", []);
    }
    rest.control("SH", ["EXIT STATUS"]);
    rest.extend([paragraphs(statuses.strip_prefix("Exit codes: ").unwrap_or(statuses))]);
    rest.control("SH", ["FILES"]);
    for (file, what) in FILES {
        rest.control("TP", []).text([roman(file)]).text([roman(what)]);
    }
    rest.control("SH", ["SEE ALSO"]);
    rest.text([roman(others.iter().map(|other| format!("{other}(1)")).collect::<Vec<_>>().join(", "))]);
    rest.to_writer(&mut text)?;
    let text = String::from_utf8(text).map_err(io::Error::other)?;
    Ok(Page { command: about, file: format!("{name}.1"), text })
}

/// What comes before the line `Examples:`, and what comes after it.
fn parts(after: &str) -> (&str, &str) {
    match after.split_once("Examples:\n") {
        Some((prose, examples)) => (prose.trim_end(), examples),
        None => (after.trim_end(), ""),
    }
}

/// The same as the usage line of `--help`.
fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]).control("nf", []);
    for line in usage.lines() {
        let line = line.trim_start().strip_prefix("Usage: ").unwrap_or(line.trim_start());
        let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
        match line.strip_prefix(name) {
            Some(rest) => roff.text([bold(name), roman(rest)]),
            None => roff.text([roman(line)]),
        };
    }
    roff.control("fi", []);
    roff
}

/// Text of which empty lines part paragraphs.
fn paragraphs(text: &str) -> Roff {
    let mut roff = Roff::new();
    for (at, paragraph) in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()).enumerate() {
        if at > 0 {
            roff.control("PP", []);
        }
        for line in paragraph.lines() {
            roff.text([roman(line)]);
        }
    }
    roff
}
