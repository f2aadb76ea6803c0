//! Manual pages: one for nicpin and one for each command, made from the definitions of the command line, and one for
//! the
//! policy file, made from the table of settings.
//!
//! The text after the options in `--help` goes to two sections of a page: the part before the line `Examples:` to
//! DESCRIPTION, the lines after it to EXAMPLES.

use std::io;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::policy::SETTINGS;
use crate::policy::example::{CONDITIONS, POLICY, RULES};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The command or the file that the page describes; `None` for nicpin(1).
    pub command: Option<String>,
    /// File name: `nicpin-plan.1`.
    pub file: String,
    /// roff source.
    pub text: String,
}

/// The section FILES of all pages.
const FILES: [(&str, &str); 2] = [
    ("/etc/nicpin.toml", "The policy; see nicpin.toml(5)."),
    (
        "/run/nicpin/state.json",
        "The settings that the first apply found, for restore. Lost at reboot, like the settings themselves.",
    ),
];

/// All pages of section 1, nicpin(1) first.
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

/// Name of the page of section 5.
pub const POLICY_PAGE: &str = "nicpin.toml";

/// nicpin.toml(5).
pub fn policy_page() -> Page {
    let mut roff = Roff::new();
    roff.control("SH", ["NAME"]).text([roman(format!("{POLICY_PAGE} - the policy of nicpin"))]);
    roff.control("SH", ["SYNOPSIS"]).text([roman("/etc/nicpin.toml")]);
    roff.control("SH", ["DESCRIPTION"]);
    roff.extend([paragraphs(POLICY)]);
    for (title, for_interfaces) in [("SETTINGS OF INTERFACES", true), ("SETTINGS OF THE MACHINE", false)] {
        roff.control("SH", [title]);
        for entry in SETTINGS.iter().filter(|entry| entry.is_for_interfaces() == for_interfaces) {
            roff.control("TP", []).text([bold(entry.key)]);
            roff.text([roman(format!("{}. {}", entry.help, entry.note).trim_end())]);
            roff.control("RS", []);
            for (at, (value, means)) in entry.in_file().into_iter().enumerate() {
                let default = if at == 0 { " (the default)" } else { "" };
                roff.control("TP", []).text([bold(value)]).text([roman(means + default)]);
            }
            roff.control("RE", []);
        }
    }
    roff.control("SH", ["CONDITIONS OF A RULE"]);
    for (name, what) in CONDITIONS {
        roff.control("TP", []).text([bold(name)]).text([roman(what)]);
    }
    roff.control("SH", ["EXAMPLES"]).control("nf", []);
    for line in RULES.lines() {
        roff.text([roman(line.trim_start_matches(['#', ' ']))]);
    }
    roff.control("fi", []);
    roff.control("SH", ["SEE ALSO"]).text([roman("nicpin(1), nicpin-plan(1), nicpin-apply(1)")]);
    let text = title(POLICY_PAGE, 5) + &roff.to_roff();
    Page { command: Some(POLICY_PAGE.to_owned()), file: format!("{POLICY_PAGE}.5"), text }
}

/// Without a date, so that each build of a version gives the same bytes.
fn title(name: &str, section: u8) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(".TH {} {section} \"\" \"nicpin {version}\" \"nicpin manual\"\n", name.to_uppercase())
}

fn page_name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn page(command: &Command, about: Option<String>, statuses: &str, others: &[String]) -> io::Result<Page> {
    let name = page_name(command);
    let man = Man::new(command.clone());
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (prose, examples) = parts(&after);
    let mut text = title(&name, 1).into_bytes();
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
    let mut others: Vec<String> = others.iter().map(|other| format!("{other}(1)")).collect();
    others.push(format!("{POLICY_PAGE}(5)"));
    rest.text([roman(others.join(", "))]);
    rest.to_writer(&mut text)?;
    let text = String::from_utf8(text).map_err(io::Error::other)?;
    Ok(Page { command: about, file: format!("{name}.1"), text })
}

/// The text before and after the line `Examples:`.
fn parts(after: &str) -> (&str, &str) {
    match after.split_once("Examples:\n") {
        Some((prose, examples)) => (prose.trim_end(), examples),
        None => (after.trim_end(), ""),
    }
}

/// SYNOPSIS: the usage line of `--help`.
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

/// Paragraphs are separated by empty lines.
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
