//! Manual pages: one for nicpin and one for each command, made from the definitions of the command line, and one for
//! the policy file, made from the table of settings.
//!
//! The text after the options in `--help` goes to three sections of a page: the paragraph that begins with `Exit codes: `
//! to EXIT STATUS, the lines after `Examples:` to EXAMPLES, and the rest to DESCRIPTION.

use std::io;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};

use nicpin::policy::SETTINGS;
use nicpin::policy::example::{CONDITIONS, POLICY, RULES};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The command or the file that the page describes; `None` for nicpin(8).
    pub command: Option<String>,
    /// File name: `nicpin-plan.8`.
    pub file: String,
    /// roff source.
    pub text: String,
}

/// The section of the manual for commands of system administration.
const SECTION: u8 = 8;

/// The section FILES of the pages of commands that read a machine.
const FILES: [(&str, &str); 2] = [
    ("/etc/nicpin.toml", "The policy; see nicpin.toml(5)."),
    (
        "/run/nicpin/state.json",
        "The settings that the first apply found, for restore. Lost at reboot, like the settings themselves.",
    ),
];

/// What nicpin(8) says beside the text of `--help`.
const DESCRIPTION: &str = "\
nicpin reads the machine from /proc, /sys, netlink and ethtool, and plans where the interrupts of network interfaces
arrive: on the interface's own NUMA node, one queue for each core before any core takes a second, on no isolated CPU. RPS
and XPS follow. The same machine gives the same plan.

nicpin plan prints the plan. nicpin apply writes what differs from it, reads each setting back and reports the result.
nicpin check says whether the machine is still as planned, and why not. nicpin restore restores the settings that the
first apply found. Without a command, nicpin is nicpin status, which shows all of this on one screen.

Only apply, watch, restore and confirm write and need root. The plan does not survive a reboot, and other events undo
it: nicpin watch applies again after each. See nicpin-watch.service and nicpin.service in the distribution.";

/// The exit codes of a command that has none of its own in its `--help`.
const CODES: &str = "0 success; 1 failure; 64 usage error.";

/// All pages of section 8, nicpin(8) first.
pub fn pages(command: Command) -> io::Result<Vec<Page>> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let statuses = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let statuses = exit_codes(parts(&statuses).0)
        .0
        .unwrap_or_default()
        .to_owned();
    let all: Vec<&Command> = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .collect();
    let names: Vec<String> = all.iter().map(|command| page_name(command)).collect();
    let others = |own: &str| -> Vec<String> {
        let every = std::iter::once(page_name(&command)).chain(names.iter().cloned());
        every.filter(|name| name != own).collect()
    };
    let mut pages = vec![page(
        &command,
        None,
        &statuses,
        &others(&page_name(&command)),
    )?];
    for (command, name) in all.iter().zip(&names) {
        pages.push(page(
            command,
            Some(command.get_name().to_owned()),
            CODES,
            &others(name),
        )?);
    }
    Ok(pages)
}

/// Name of the page of section 5.
pub const POLICY_PAGE: &str = "nicpin.toml";

/// What nicpin.toml(5) says before the parts of a policy.
const ABOUT_POLICY: &str = "\
The policy says where the vectors, RPS and XPS of interfaces go. It is a TOML file, read by every command that plans:
from /etc/nicpin.toml if that exists, or from the file of --config. An unknown key or a wrong value is an error that names
line and column. apply and restore refuse a file that a user other than root and the one who runs nicpin may write or
replace.";

/// nicpin.toml(5).
pub fn policy_page() -> Page {
    let mut roff = Roff::new();
    roff.control("SH", ["NAME"])
        .text([roman(format!("{POLICY_PAGE} - the policy of nicpin"))]);
    roff.control("SH", ["SYNOPSIS"])
        .text([roman("/etc/nicpin.toml")]);
    roff.control("SH", ["DESCRIPTION"]);
    roff.extend([paragraphs(ABOUT_POLICY)]);
    roff.control("PP", []);
    roff.extend([paragraphs(POLICY)]);
    for (title, for_interfaces) in [
        ("SETTINGS OF INTERFACES", true),
        ("SETTINGS OF THE MACHINE", false),
    ] {
        roff.control("SH", [title]);
        for entry in SETTINGS
            .iter()
            .filter(|entry| entry.is_for_interfaces() == for_interfaces)
        {
            roff.control("TP", []).text([bold(entry.key)]);
            roff.text([roman(format!("{}. {}", entry.help, entry.note).trim_end())]);
            roff.control("RS", []);
            for (at, (value, means)) in entry.in_file().into_iter().enumerate() {
                let default = if at == 0 { " (the default)" } else { "" };
                roff.control("TP", [])
                    .text([bold(value)])
                    .text([roman(means + default)]);
            }
            roff.control("RE", []);
        }
    }
    roff.control("SH", ["CONDITIONS OF A RULE"]);
    for (name, what) in CONDITIONS {
        roff.control("TP", [])
            .text([bold(name)])
            .text([roman(what)]);
    }
    roff.control("SH", ["EXAMPLES"]).control("nf", []);
    for line in RULES.lines() {
        roff.text([roman(line.trim_start_matches(['#', ' ']))]);
    }
    roff.control("fi", []);
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(
        "nicpin(8), nicpin-plan(8), nicpin-apply(8), nicpin-check(8)",
    )]);
    let text = title(POLICY_PAGE, 5) + &roff.to_roff();
    Page {
        command: Some(POLICY_PAGE.to_owned()),
        file: format!("{POLICY_PAGE}.5"),
        text,
    }
}

/// Without a date, so that each build of a version gives the same bytes.
fn title(name: &str, section: u8) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        ".TH {} {section} \"\" \"nicpin {version}\" \"nicpin manual\"\n",
        name.to_uppercase()
    )
}

fn page_name(command: &Command) -> String {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
        .to_owned()
}

fn page(
    command: &Command,
    about: Option<String>,
    statuses: &str,
    others: &[String],
) -> io::Result<Page> {
    let name = page_name(command);
    let after = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let (prose, examples) = parts(&after);
    let (own_statuses, mut prose) = exit_codes(prose);
    if about.is_none() {
        prose = [DESCRIPTION, &prose].join("\n\n");
    }
    let does = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let mut text = title(&name, SECTION).into_bytes();
    let mut head = Roff::new();
    head.control("SH", ["NAME"])
        .text([roman(format!("{name} - {}", lower_first(&does)))]);
    head.extend([synopsis(command)]);
    head.control("SH", ["DESCRIPTION"]);
    head.text([roman(format!("{does}."))]);
    if !prose.is_empty() {
        head.control("PP", []);
        head.extend([paragraphs(&prose)]);
    }
    head.extend([positionals(command)]);
    head.to_writer(&mut text)?;
    // They have a section of their own, before the options.
    let with_options = command.clone().mut_args(|arg| {
        if arg.is_positional() {
            arg.hide(true)
        } else {
            arg
        }
    });
    let man = Man::new(with_options).section(SECTION.to_string());
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let mut rest = Roff::new();
    rest.control("SH", ["EXIT STATUS"]);
    rest.extend([list_of_codes(own_statuses.unwrap_or(statuses))]);
    if !["completions", "man"].contains(&command.get_name()) {
        rest.control("SH", ["FILES"]);
        for (file, what) in FILES {
            rest.control("TP", [])
                .text([roman(file)])
                .text([roman(what)]);
        }
    }
    if !examples.is_empty() {
        rest.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in examples.lines() {
            rest.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        rest.control("fi", []);
    }
    rest.control("SH", ["SEE ALSO"]);
    let mut others: Vec<String> = others
        .iter()
        .map(|other| format!("{other}({SECTION})"))
        .collect();
    others.push(format!("{POLICY_PAGE}(5)"));
    rest.text([roman(others.join(", "))]);
    rest.to_writer(&mut text)?;
    let text = String::from_utf8(text).map_err(io::Error::other)?;
    Ok(Page {
        command: about,
        file: format!("{name}.{SECTION}"),
        text,
    })
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(letters).collect()
    })
}

/// ARGUMENTS: what is not an option.
fn positionals(command: &Command) -> Roff {
    let mut roff = Roff::new();
    for arg in command.get_positionals().filter(|arg| !arg.is_hide_set()) {
        if roff == Roff::new() {
            roff.control("SH", ["ARGUMENTS"]);
        }
        let name = arg
            .get_value_names()
            .map_or_else(|| arg.get_id().as_str(), |names| names[0].as_str());
        let help = arg
            .get_long_help()
            .or(arg.get_help())
            .map(ToString::to_string)
            .unwrap_or_default();
        roff.control("TP", [])
            .text([italic(name)])
            .text([roman(format!("{help}."))]);
    }
    roff
}

/// The paragraph about exit codes of a text, without its first words, and the other paragraphs.
fn exit_codes(prose: &str) -> (Option<&str>, String) {
    let codes = prose
        .split("\n\n")
        .find_map(|paragraph| paragraph.strip_prefix("Exit codes: "));
    let others = prose
        .split("\n\n")
        .filter(|paragraph| !paragraph.starts_with("Exit codes: "));
    (codes, others.collect::<Vec<_>>().join("\n\n"))
}

/// `0 this; 1 that. And more.` as a list of codes, and a paragraph.
fn list_of_codes(text: &str) -> Roff {
    let text = text.replace('\n', " ");
    let (codes, more) = text
        .split_once(". ")
        .unwrap_or((text.trim_end_matches('.'), ""));
    let mut roff = Roff::new();
    for item in codes.split("; ") {
        match item
            .split_once(' ')
            .filter(|(code, _)| code.parse::<u8>().is_ok())
        {
            Some((code, means)) => roff
                .control("TP", [])
                .text([bold(code)])
                .text([roman(format!("{means}."))]),
            None => roff.text([roman(format!("{item}."))]),
        };
    }
    if !more.is_empty() {
        roff.control("PP", []).text([roman(more)]);
    }
    roff
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
        let line = line
            .trim_start()
            .strip_prefix("Usage: ")
            .unwrap_or(line.trim_start());
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
    for (at, paragraph) in text
        .split("\n\n")
        .filter(|paragraph| !paragraph.is_empty())
        .enumerate()
    {
        if at > 0 {
            roff.control("PP", []);
        }
        for line in paragraph.lines() {
            roff.text([roman(line)]);
        }
    }
    roff
}
