//! `nicpin man` and `nicpin help`: pages made from the definitions of the command line and the help texts.

use std::iter::once;
use std::mem::{replace, take};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use itertools::Itertools as _;

use crate::commands::help::{HelpText, USAGE, paragraphs};
use crate::commands::inputs::{UsageError, usage};
use crate::commands::output;
use crate::commands::topics::ManPart::{Example, Heading, Item, Text, Value};
use crate::commands::topics::{ManPage, ManPart, topics};
use crate::screen::{self, text_or};
use nicpin::report::exit::Exit;

#[derive(Args)]
pub struct ManArgs {
    #[command(flatten)]
    page: HelpArgs,

    /// Write all pages to man5, man7 and man8 in this directory; existing ones are replaced
    #[arg(long, value_name = "DIR", conflicts_with = "about")]
    into: Option<PathBuf>,
}

#[derive(Args)]
pub struct HelpArgs {
    /// A command or a topic (states, selectors, policy); by default nicpin itself
    #[arg(value_name = "COMMAND|TOPIC")]
    about: Option<String>,
}

pub fn run(command: &Command, args: &ManArgs, out: &mut String) -> Result<Exit> {
    // An alias stands for its command.
    let asked = args.page.about.as_deref().map(|word| {
        let command = command.find_subcommand(word);
        command.map_or(word, Command::get_name).to_owned()
    });
    let pages = pages(command)?;
    if let Some(directory) = &args.into {
        output::make_directory(directory)?;
        for page in &pages {
            let directory = directory.join(format!("man{}", page.section));
            output::make_directory(&directory)?;
            output::write_file(
                &directory.join(format!("{}.{}", page.name, page.section)),
                source(page, &pages).as_bytes(),
                true,
            )?;
        }
        return Ok(Exit::Planned);
    }
    // The name of a page is accepted, too.
    let is_meant = |page: &&ManPage| page.about == asked || Some(&page.name) == asked.as_ref();
    match pages.iter().find(is_meant) {
        Some(page) => *out += &source(page, &pages),
        None => bail!(no_page(&asked.unwrap_or_default(), &pages)),
    }
    Ok(Exit::Planned)
}

pub fn help(command: Command, args: &HelpArgs, out: &mut String) -> Result<Exit> {
    let word = args.about.as_deref();
    let is_meant = |topic: &&ManPage| topic.about.as_deref() == word || Some(&*topic.name) == word;
    if let Some(topic) = topics().iter().find(is_meant) {
        *out += &shown(topic).show(output::screen());
        return Ok(Exit::Planned);
    }
    if let Some(word) = word.filter(|word| command.find_subcommand(word).is_none()) {
        bail!(no_page(word, &pages(&command)?));
    }
    if let Err(help) =
        command.try_get_matches_from(["nicpin"].into_iter().chain(word).chain(["--help"]))
    {
        *out += &help.to_string();
    }
    Ok(Exit::Planned)
}

fn no_page(word: &str, pages: &[ManPage]) -> UsageError {
    let about = pages
        .iter()
        .filter_map(|page| page.about.as_ref())
        .join(", ");
    usage(format!(
        "there is no page about `{word}`; there are pages about {about}"
    ))
}

fn shown(topic: &ManPage) -> screen::page::Page {
    let mut page = screen::page::Page::default();
    let mut is_text = false;
    for part in &topic.parts {
        let follows_text = replace(&mut is_text, matches!(part, Text(_)));
        let mut item = |indent, word: &Inline, means: &String| {
            let (Inline::Bold(word) | Inline::Italic(word) | Inline::Roman(word)) = word else {
                return;
            };
            page.table(
                indent,
                screen::page::LEFT,
                [vec![format!("{word:<14}"), means.clone()]],
            );
        };
        match part {
            Heading(heading) => {
                page.line("");
                page.line(*heading);
            }
            Text(text) => {
                for (at, paragraph) in paragraphs(text).enumerate() {
                    if at > 0 || follows_text {
                        page.line("");
                    }
                    page.text(paragraph);
                }
            }
            Item(word, means) => item(2, word, means),
            Value(word, means) => item(4, word, means),
            Example(lines) | ManPart::Roff(lines) => lines
                .lines()
                .for_each(|line| page.line(format!("  {line}"))),
        }
    }
    page
}

const CODES: [(u8, &str); 3] = [(0, "success"), (1, "failure"), USAGE];

const FILES: [(&str, &str); 2] = [
    ("/etc/nicpin.toml", "The policy; see nicpin.toml(5)."),
    (
        "/run/nicpin/state.json",
        "The settings that the first apply found, for restore. Lost at reboot, like the settings themselves.",
    ),
];

pub fn pages(command: &Command) -> Result<Vec<ManPage>> {
    let shown = command.get_subcommands();
    let shown = shown.filter(|command| !command.is_hide_set());
    let command_pages = once(command).chain(shown).map(command_page);
    command_pages.chain(topics().map(Ok)).collect()
}

fn command_page(command: &Command) -> Result<ManPage> {
    let word = command.get_name();
    let name = command.get_display_name().unwrap_or(word).to_owned();
    let is_main = word == name;
    let what = text_or(command.get_about(), "");
    let help = HelpText::of(word);
    let mut parts = vec![Text(format!("{what}."))];
    let others = command.get_visible_aliases().join(", ");
    if !others.is_empty() {
        parts.push(Text(format!("Another name of the command is {others}.")));
    }
    parts.extend([&help.manual, &help.text].map(|text| Text(text.clone())));
    // clap_mangen gives arguments with a heading a section of their own.
    let with_heading = command.clone().mut_args(|arg| {
        if arg.is_positional() {
            arg.help_heading("Arguments")
        } else {
            arg
        }
    });
    let (man, mut options) = (Man::new(with_heading).section("8"), Vec::new());
    man.render_options_section(&mut options)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut options)?;
    }
    let mut codes = help.exit_codes().collect_vec();
    if codes.is_empty() {
        codes.extend(CODES);
    }
    parts.extend([
        ManPart::Roff(String::from_utf8(options)?),
        Heading("EXIT STATUS"),
    ]);
    parts.extend(
        codes
            .iter()
            .map(|(code, means)| Item(bold(code.to_string()), format!("{means}."))),
    );
    parts.push(Text(help.more.clone()));
    if !["completions", "help", "man"].contains(&word) {
        parts.push(Heading("FILES"));
        parts.extend(FILES.map(|(file, what)| Item(roman(file), what.into())));
    }
    let examples = help.examples.lines();
    let mut examples = examples.map(|line| line.strip_prefix("  ").unwrap_or(line));
    parts.extend([Heading("EXAMPLES"), Example(examples.join("\n"))]);
    let (first, rest) = what.split_at(1);
    Ok(ManPage {
        about: (!is_main).then(|| word.to_owned()),
        name,
        section: 8,
        what: first.to_lowercase() + rest,
        synopsis: command.clone().render_usage().to_string(),
        parts,
    })
}

/// The date is that of nicpin's sources, by `dist/build`: each build gives the same bytes.
fn source(page: &ManPage, pages: &[ManPage]) -> String {
    let seconds = std::env::var("SOURCE_DATE_EPOCH")
        .ok()
        .as_deref()
        .or(option_env!("SOURCE_DATE_EPOCH"))
        .and_then(|seconds| seconds.parse().ok());
    let date = seconds.and_then(screen::date);
    let (name, version) = (page.name.as_str(), env!("CARGO_PKG_VERSION"));
    let mut text = format!(
        ".TH {} {} \"{}\" \"nicpin {version}\" \"nicpin manual\"\n",
        name.to_uppercase(),
        page.section,
        date.as_ref().map_or("", |date| &date[..10]),
    );
    let mut roff = Roff::new();
    roff.control("SH", ["NAME"])
        .text([roman(format!("{name} - {}", page.what))]);
    if !page.synopsis.is_empty() {
        roff.control("SH", ["SYNOPSIS"]).control("nf", []);
        let command = name.replacen("nicpin-", "nicpin ", 1);
        for line in page.synopsis.trim_start_matches("Usage: ").lines() {
            let line = line.trim_start();
            match line.strip_prefix(&command) {
                Some(rest) => roff.text([bold(&command), roman(rest)]),
                None => roff.text([roman(line)]),
            };
        }
        roff.control("fi", []);
    }
    roff.control("SH", ["DESCRIPTION"]);
    let (mut is_value, mut is_after_heading) = (false, true);
    for part in &page.parts {
        if is_value != matches!(part, Value(..)) {
            is_value = !is_value;
            roff.control(if is_value { "RS" } else { "RE" }, []);
        }
        match part {
            Heading(heading) => _ = roff.control("SH", [&*heading.to_uppercase()]),
            Text(paragraphs) => {
                for paragraph in paragraphs.split("\n\n").filter(|text| !text.is_empty()) {
                    if !take(&mut is_after_heading) {
                        roff.control("PP", []);
                    }
                    lines(&mut roff, paragraph);
                }
            }
            Item(word, means) | Value(word, means) => {
                roff.control("TP", [])
                    .text([word.clone()])
                    .text([roman(means)]);
            }
            Example(text) => {
                roff.control("nf", []);
                lines(&mut roff, text);
                roff.control("fi", []);
            }
            ManPart::Roff(source) => {
                text += &take(&mut roff).render();
                text += source;
            }
        }
        is_after_heading = matches!(part, Heading(_));
    }
    let others = pages.iter().filter(|other| other.name != page.name);
    let mut others = others.map(|other| format!("{}({})", other.name, other.section));
    roff.control("SH", ["SEE ALSO"])
        .text([roman(others.join(", "))]);
    text + &roff.render()
}

fn lines(roff: &mut Roff, text: &str) {
    for line in text.lines() {
        roff.text([roman(line)]);
    }
}
