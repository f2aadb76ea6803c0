//! `nicpin man` and `nicpin help`: pages about nicpin and its commands, made from the definitions of the command line and
//! the table of what `--help` says beside them, and about topics.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Result, bail};
use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use itertools::Itertools as _;

use crate::commands::help::{Help, USAGE};
use crate::commands::inputs::UsageError;
use crate::commands::output;
use crate::commands::topics::{Part, Topic, topics};
use crate::screen;
use nicpin::report::exit::Exit;

#[derive(Debug, Args)]
pub struct ManArgs {
    #[command(flatten)]
    page: HelpArgs,

    /// Write all pages to man5, man7 and man8 in this directory; existing ones are replaced
    #[arg(long, value_name = "DIR", conflicts_with = "about")]
    into: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct HelpArgs {
    /// A command or a topic (states, selectors, policy); by default nicpin itself
    #[arg(value_name = "COMMAND|TOPIC")]
    about: Option<String>,
}

pub fn run(command: Command, args: &ManArgs, out: &mut String) -> Result<Exit> {
    let pages = pages(command)?;
    if let Some(directory) = &args.into {
        for page in &pages {
            let (name, section) = (&page.name, page.section);
            let directory = directory.join(format!("man{section}"));
            output::make_directory(&directory)?;
            let file = directory.join(format!("{name}.{section}"));
            output::write_file(&file, page.text.as_bytes(), true)?;
        }
        return Ok(Exit::Planned);
    }
    // The name of a page is accepted, too.
    let asked = args.page.about.as_deref();
    let is_meant = |page: &&Page| page.about.as_deref() == asked || Some(&*page.name) == asked;
    match pages.iter().find(is_meant) {
        Some(page) => *out += &page.text,
        None => bail!(no_page(asked.unwrap_or_default(), &pages)),
    }
    Ok(Exit::Planned)
}

pub fn help(command: Command, args: &HelpArgs, out: &mut String) -> Result<Exit> {
    let word = args.about.as_deref();
    if let Some(topic) = topics().iter().find(|topic| Some(topic.name) == word) {
        *out += &shown(topic).show(output::screen());
        return Ok(Exit::Planned);
    }
    if let Some(word) = word.filter(|word| command.find_subcommand(word).is_none()) {
        bail!(no_page(word, &pages(command)?));
    }
    let words = ["nicpin"].into_iter().chain(word).chain(["--help"]);
    if let Err(help) = command.try_get_matches_from(words) {
        *out += &help.to_string();
    }
    Ok(Exit::Planned)
}

fn no_page(word: &str, pages: &[Page]) -> UsageError {
    let about = pages
        .iter()
        .filter_map(|page| page.about.as_ref())
        .join(", ");
    UsageError::new(format!(
        "there is no page about `{word}`; there are pages about {about}"
    ))
}

/// A topic as text.
fn shown(topic: &Topic) -> screen::page::Page {
    let mut page = screen::page::Page::default();
    let mut is_text = false;
    for part in &topic.parts {
        if std::mem::replace(&mut is_text, matches!(part, Part::Text(_))) && is_text {
            page.line("");
        }
        match part {
            Part::Heading(heading) => {
                page.line("");
                page.line(*heading);
            }
            Part::Text(text) => {
                for (at, paragraph) in text.trim_end().split("\n\n").enumerate() {
                    if at > 0 {
                        page.line("");
                    }
                    page.item("", paragraph.replace('\n', " "));
                }
            }
            Part::Item(word, means) => page.table(2, [vec![format!("{word:<14}"), means.clone()]]),
            Part::Value(word, means) => page.table(4, [vec![format!("{word:<14}"), means.clone()]]),
            Part::Example(lines) => lines
                .lines()
                .for_each(|line| page.line(format!("  {line}"))),
        }
    }
    page
}

/// A page of the manual.
pub struct Page {
    /// The command or topic that the page describes; `None` for nicpin(8).
    pub about: Option<String>,
    /// Such as `nicpin-plan`.
    name: String,
    section: u8,
    /// roff source.
    text: String,
}

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

/// The section FILES of the pages of commands that read a machine.
const FILES: [(&str, &str); 2] = [
    ("/etc/nicpin.toml", "The policy; see nicpin.toml(5)."),
    (
        "/run/nicpin/state.json",
        "The settings that the first apply found, for restore. Lost at reboot, like the settings themselves.",
    ),
];

/// All pages, nicpin(8) first and topics last.
pub fn pages(command: Command) -> io::Result<Vec<Page>> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let shown = command.get_subcommands().filter(|of| !of.is_hide_set());
    let of_commands = [&command].into_iter().chain(shown).map(of_command);
    let mut pages: Vec<Page> = of_commands.collect::<io::Result<_>>()?;
    pages.extend(topics().iter().map(of_topic));
    let names = pages
        .iter()
        .map(|page| format!("{}({})", page.name, page.section));
    let names = names.collect_vec();
    for (page, own) in pages.iter_mut().zip(&names) {
        let mut end = Roff::new();
        section(&mut end, "SEE ALSO");
        line(
            &mut end,
            names.iter().filter(|name| *name != own).join(", "),
        );
        page.text = title(page) + &page.text + &end.to_roff();
    }
    Ok(pages)
}

/// In seconds since 1970: from there on, a date has no four digits for its year.
const YEAR_10000: u64 = 253_402_300_800;

/// The title line. The date is that of the sources, which `dist/build` sets, so that each build gives the same bytes.
fn title(page: &Page) -> String {
    let seconds = std::env::var("SOURCE_DATE_EPOCH").ok();
    let seconds = seconds.as_deref().or(option_env!("SOURCE_DATE_EPOCH"));
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    let date = seconds
        .filter(|&seconds| seconds < YEAR_10000)
        .map(|seconds| {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            humantime::format_rfc3339_seconds(time).to_string()[..10].to_owned()
        });
    format!(
        ".TH {} {} \"{}\" \"nicpin {}\" \"nicpin manual\"\n",
        page.name.to_uppercase(),
        page.section,
        date.unwrap_or_default(),
        env!("CARGO_PKG_VERSION")
    )
}

/// The page of a command, without its ends.
fn of_command(command: &Command) -> io::Result<Page> {
    let word = command.get_name();
    let name = command.get_display_name().unwrap_or(word).to_owned();
    let is_main = word == name;
    let help = Help::of(word);
    let does = command.get_about().map(ToString::to_string);
    let does = does.unwrap_or_default();
    let mut head = Roff::new();
    section(&mut head, "NAME");
    let (first, rest) = does.split_at(1);
    line(
        &mut head,
        format!("{name} - {}{rest}", first.to_lowercase()),
    );
    synopsis(&mut head, command);
    section(&mut head, "DESCRIPTION");
    line(&mut head, format!("{does}."));
    for text in [is_main.then_some(DESCRIPTION), help.map(|help| help.text)] {
        paragraphs(&mut head, text.unwrap_or_default(), true);
    }
    let arguments = command.get_positionals().filter(|arg| !arg.is_hide_set());
    let arguments = arguments.map(|arg| {
        let name = arg
            .get_value_names()
            .map_or(arg.get_id().as_str(), |names| &names[0]);
        let help = arg.get_long_help().or(arg.get_help());
        let help = help.map(ToString::to_string).unwrap_or_default();
        (italic(name), format!("{help}."))
    });
    items(&mut head, "ARGUMENTS", arguments);
    let mut text = Vec::new();
    head.to_writer(&mut text)?;
    // Arguments have a section of their own, before the options.
    let with_options = command.clone().mut_args(|arg| {
        let hides = arg.is_positional() || arg.is_hide_set();
        arg.hide(hides)
    });
    let man = Man::new(with_options).section("8");
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let mut rest = Roff::new();
    let codes = help.map_or(&[][..], |help| help.codes);
    let codes = if codes.is_empty() { &CODES } else { codes };
    let codes = codes.iter().chain([&USAGE]);
    let codes = codes.map(|(code, means)| (bold(code.to_string()), format!("{means}.")));
    items(&mut rest, "EXIT STATUS", codes);
    paragraphs(&mut rest, help.map_or("", |help| help.more), true);
    if !["completions", "help", "man"].contains(&word) {
        let files = FILES.map(|(file, what)| (roman(file), what.to_owned()));
        items(&mut rest, "FILES", files);
    }
    if let Some(help) = help {
        section(&mut rest, "EXAMPLES");
        let lines = help.examples.trim_start_matches('\n').lines();
        example(
            &mut rest,
            lines.map(|line| line.strip_prefix("  ").unwrap_or(line)),
        );
    }
    rest.to_writer(&mut text)?;
    Ok(Page {
        about: (!is_main).then(|| word.to_owned()),
        name,
        section: 8,
        text: String::from_utf8(text).map_err(io::Error::other)?,
    })
}

/// The page of a topic, without its ends.
fn of_topic(topic: &Topic) -> Page {
    let (name, number) = topic.page;
    let mut roff = Roff::new();
    section(&mut roff, "NAME");
    line(&mut roff, format!("{name} - {}", topic.about));
    section(&mut roff, "DESCRIPTION");
    let (mut is_inner, mut follows_text) = (false, false);
    for part in &topic.parts {
        let is_value = matches!(part, Part::Value(..));
        if std::mem::replace(&mut is_inner, is_value) != is_value {
            roff.control(if is_value { "RS" } else { "RE" }, []);
        }
        match part {
            Part::Heading(heading) => section(&mut roff, &heading.to_uppercase()),
            Part::Text(text) => paragraphs(&mut roff, text, follows_text),
            Part::Item(word, means) | Part::Value(word, means) => {
                item(&mut roff, bold(word), means);
            }
            Part::Example(lines) => example(&mut roff, lines.lines()),
        }
        follows_text = !matches!(part, Part::Heading(_));
    }
    Page {
        about: Some(topic.name.to_owned()),
        name: name.to_owned(),
        section: number,
        text: roff.to_roff(),
    }
}

/// SYNOPSIS: the usage line of `--help`.
fn synopsis(roff: &mut Roff, command: &Command) {
    section(roff, "SYNOPSIS");
    roff.control("nf", []);
    let usage = command.clone().render_usage().to_string();
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    for line in usage
        .trim_start_matches("Usage: ")
        .lines()
        .map(str::trim_start)
    {
        match line.strip_prefix(name) {
            Some(rest) => roff.text([bold(name), roman(rest)]),
            None => roff.text([roman(line)]),
        };
    }
    roff.control("fi", []);
}

fn section(roff: &mut Roff, title: &str) {
    roff.control("SH", [title]);
}

fn line(roff: &mut Roff, text: impl Into<String>) {
    roff.text([roman(text)]);
}

fn item(roff: &mut Roff, word: Inline, means: &str) {
    roff.control("TP", []).text([word]);
    line(roff, means);
}

fn items(roff: &mut Roff, title: &str, items: impl IntoIterator<Item = (Inline, String)>) {
    for (at, (word, means)) in items.into_iter().enumerate() {
        if at == 0 {
            section(roff, title);
        }
        item(roff, word, &means);
    }
}

/// Paragraphs are separated by empty lines.
fn paragraphs(roff: &mut Roff, text: &str, follows_text: bool) {
    let paragraphs = text.split("\n\n").filter(|paragraph| !paragraph.is_empty());
    for (at, paragraph) in paragraphs.enumerate() {
        if at > 0 || follows_text {
            roff.control("PP", []);
        }
        paragraph.lines().for_each(|text| line(roff, text));
    }
}

fn example<'a>(roff: &mut Roff, lines: impl Iterator<Item = &'a str>) {
    roff.control("nf", []);
    lines.for_each(|text| line(roff, text));
    roff.control("fi", []);
}
