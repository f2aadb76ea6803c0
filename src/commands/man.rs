//! `nicpin man` and `nicpin help`: pages about commands and topics.

use crate::commands::help;
use crate::commands::inputs::UsageError;
use crate::commands::manual::{Page, pages};
use crate::commands::output;
use crate::commands::topics::{Part, Topic, topics};
use crate::screen;
use anyhow::{Result, bail};
use clap::Args;
use clap::Command;
use itertools::Itertools as _;
use nicpin::report::exit::Exit;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = help::after("man"))]
pub struct ManArgs {
    /// A command or a topic (states, selectors, policy); by default nicpin itself
    #[arg(value_name = "COMMAND|TOPIC")]
    pub about: Option<String>,

    /// Write all pages to man5, man7 and man8 in this directory; existing ones are replaced
    #[arg(long, value_name = "DIR", conflicts_with = "about")]
    pub into: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = help::after("help"))]
pub struct HelpArgs {
    /// A command or a topic (states, selectors, policy); by default nicpin itself
    #[arg(value_name = "COMMAND|TOPIC")]
    pub about: Option<String>,
}

pub(super) fn run(command: Command, args: &ManArgs, out: &mut String) -> Result<Exit> {
    let pages = pages(command)?;
    if let Some(directory) = &args.into {
        for page in &pages {
            let directory = directory.join(format!("man{}", page.name.1));
            output::make_directory(&directory)?;
            output::write_file(&directory.join(page.file()), page.text.as_bytes(), true)?;
        }
        return Ok(Exit::Planned);
    }
    // The name of a page is accepted, too.
    let is_meant = |page: &&Page| {
        let asked = args.about.as_deref();
        page.about.as_deref() == asked || Some(&*page.name.0) == asked
    };
    let Some(page) = pages.iter().find(is_meant) else {
        bail!(no_page(args.about.as_deref().unwrap_or_default(), &pages));
    };
    out.push_str(&page.text);
    Ok(Exit::Planned)
}

pub(super) fn help(command: Command, args: &HelpArgs, out: &mut String) -> Result<Exit> {
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
            Part::Item(word, means) | Part::Value(word, means) => {
                let indent = if matches!(part, Part::Value(..)) {
                    4
                } else {
                    2
                };
                page.table(indent, [vec![format!("{word:<14}"), means.clone()]]);
            }
            Part::Example(lines) => {
                for line in lines.lines() {
                    page.line(format!("  {line}"));
                }
            }
        }
    }
    page
}

fn no_page(word: &str, pages: &[Page]) -> UsageError {
    let mut about = pages.iter().filter_map(|page| page.about.as_deref());
    let about = about.join(", ");
    UsageError::new(format!(
        "there is no page about `{word}`; there are pages about {about}"
    ))
}
