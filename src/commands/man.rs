//! `nicpin man` and `nicpin help`: pages about commands and topics.

use anyhow::{Result, bail};
use clap::CommandFactory as _;
use itertools::Itertools as _;

use crate::cli::manual::{Page, pages};
use crate::cli::topics::{Part, Topic, topics};
use crate::cli::{Cli, HelpArgs, ManArgs};
use crate::commands::inputs::UsageError;
use crate::commands::output;
use crate::screen;
use nicpin::report::exit::Exit;

pub(super) fn run(args: &ManArgs, out: &mut String) -> Result<Exit> {
    let pages = pages(Cli::command())?;
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

pub(super) fn help(args: &HelpArgs, out: &mut String) -> Result<Exit> {
    let word = args.about.as_deref();
    if let Some(topic) = topics().iter().find(|topic| Some(topic.name) == word) {
        *out += &shown(topic).show(output::screen());
        return Ok(Exit::Planned);
    }
    let is_command = |word: &str| Cli::command().find_subcommand(word).is_some();
    if let Some(word) = word.filter(|word| !is_command(word)) {
        bail!(no_page(word, &pages(Cli::command())?));
    }
    let words = ["nicpin"].into_iter().chain(word).chain(["--help"]);
    if let Err(help) = Cli::of(words.map(Into::into)) {
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
