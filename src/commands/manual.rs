//! Manual pages: one for nicpin and one for each command, made from the definitions of the command line and the table of
//! what `--help` says beside them, and one for each topic.

use crate::commands::help::{Help, USAGE};
use crate::commands::topics::{Part, Topic, topics};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};
use itertools::Itertools as _;
use std::io;
use std::time::{Duration, UNIX_EPOCH};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The command or topic that the page describes; `None` for nicpin(8).
    pub about: Option<String>,
    /// The name of the page, such as `nicpin-plan`, and its section.
    pub name: (String, u8),
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

/// The exit codes of a command that has none of its own.
const CODES: [(u8, &str); 2] = [(0, "success"), (1, "failure")];

impl Page {
    /// File name: `nicpin-plan.8`.
    pub fn file(&self) -> String {
        format!("{}.{}", self.name.0, self.name.1)
    }
}

/// All pages, nicpin(8) first and topics last.
pub fn pages(command: Command) -> io::Result<Vec<Page>> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let shown = |command: &&Command| !command.is_hide_set();
    let mut all = vec![&command];
    all.extend(command.get_subcommands().filter(shown));
    let topics = topics();
    let commands = all.iter().map(|command| (page_name(command), SECTION));
    let about = topics
        .iter()
        .map(|topic| (topic.page.0.to_owned(), topic.page.1));
    let names: Vec<(String, u8)> = commands.chain(about).collect();
    let others = |own: &str| -> String {
        let others = names.iter().filter(|(name, _)| name != own);
        let mut others = others.map(|(name, section)| format!("{name}({section})"));
        others.join(", ")
    };
    let mut pages = Vec::new();
    for command in all {
        pages.push(page(command, &others(&page_name(command)))?);
    }
    pages.extend(
        topics
            .iter()
            .map(|topic| of_topic(topic, &others(topic.page.0))),
    );
    Ok(pages)
}

/// The page of a topic.
fn of_topic(topic: &Topic, others: &str) -> Page {
    let (name, section) = topic.page;
    let mut roff = Roff::new();
    roff.control("SH", ["NAME"])
        .text([roman(format!("{name} - {}", topic.about))]);
    roff.control("SH", ["DESCRIPTION"]);
    let mut is_inner = false;
    let mut follows_text = false;
    for part in &topic.parts {
        let is_value = matches!(part, Part::Value(..));
        if is_value != is_inner {
            roff.control(if is_value { "RS" } else { "RE" }, []);
            is_inner = is_value;
        }
        match part {
            Part::Heading(heading) => {
                roff.control("SH", [heading.to_uppercase().as_str()]);
            }
            Part::Text(text) => {
                if follows_text {
                    roff.control("PP", []);
                }
                roff.extend([paragraphs(text)]);
            }
            Part::Item(word, means) | Part::Value(word, means) => {
                roff.control("TP", [])
                    .text([bold(word.as_str())])
                    .text([roman(means.as_str())]);
            }
            Part::Example(lines) => {
                roff.control("nf", []);
                for line in lines.lines() {
                    roff.text([roman(line)]);
                }
                roff.control("fi", []);
            }
        }
        follows_text = !matches!(part, Part::Heading(_));
    }
    roff.control("SH", ["SEE ALSO"]).text([roman(others)]);
    Page {
        about: Some(topic.name.to_owned()),
        name: (name.to_owned(), section),
        text: title(name, section) + &roff.to_roff(),
    }
}

/// In seconds since 1970: from there on, a date has no four digits for its year.
const YEAR_10000: u64 = 253_402_300_800;

/// The title line. The date is that of the sources, which `dist/build` sets, so that each build gives the same bytes.
fn title(name: &str, section: u8) -> String {
    let seconds = std::env::var("SOURCE_DATE_EPOCH").ok();
    let seconds = seconds.as_deref().or(option_env!("SOURCE_DATE_EPOCH"));
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    let seconds = seconds.filter(|&seconds| seconds < YEAR_10000);
    let date = seconds.map_or(String::new(), |seconds| {
        let time = UNIX_EPOCH + Duration::from_secs(seconds);
        let time = humantime::format_rfc3339_seconds(time).to_string();
        time.split('T').next().unwrap_or_default().to_owned()
    });
    format!(
        ".TH {} {section} \"{date}\" \"nicpin {}\" \"nicpin manual\"\n",
        name.to_uppercase(),
        env!("CARGO_PKG_VERSION")
    )
}

fn page_name(command: &Command) -> String {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
        .to_owned()
}

fn page(command: &Command, others: &str) -> io::Result<Page> {
    let name = page_name(command);
    let help = Help::of(command.get_name());
    let mut prose = help.map_or("", |help| help.text).to_owned();
    let is_main = command.get_name() == name;
    if is_main {
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
    let own = help.map_or(&[][..], |help| help.codes);
    let codes = if own.is_empty() { &CODES } else { own };
    for (code, means) in codes.iter().chain([&USAGE]) {
        rest.control("TP", [])
            .text([bold(code.to_string())])
            .text([roman(format!("{means}."))]);
    }
    if let Some(help) = help.filter(|help| !help.more.is_empty()) {
        rest.control("PP", []);
        rest.extend([paragraphs(help.more)]);
    }
    if !["completions", "help", "man"].contains(&command.get_name()) {
        rest.control("SH", ["FILES"]);
        for (file, what) in FILES {
            rest.control("TP", [])
                .text([roman(file)])
                .text([roman(what)]);
        }
    }
    if let Some(help) = help {
        rest.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in help.examples.trim_start_matches('\n').lines() {
            rest.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        rest.control("fi", []);
    }
    rest.control("SH", ["SEE ALSO"]).text([roman(others)]);
    rest.to_writer(&mut text)?;
    let text = String::from_utf8(text).map_err(io::Error::other)?;
    Ok(Page {
        about: (!is_main).then(|| command.get_name().to_owned()),
        name: (name, SECTION),
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
