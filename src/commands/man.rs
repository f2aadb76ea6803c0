//! `nicpin man`: manual pages.

use anyhow::Result;
use clap::CommandFactory as _;

use crate::cli::manual::{POLICY_PAGE, Page, pages, policy_page};
use crate::cli::{Cli, ManArgs};
use crate::commands::output;
use crate::report::exit::Exit;

pub(super) fn run(args: &ManArgs, out: &mut String) -> Result<Exit> {
    let pages = pages(Cli::command())?;
    if let Some(directory) = &args.into {
        for page in &pages {
            output::write_file(&directory.join(&page.file), page.text.as_bytes(), true)?;
        }
        return Ok(Exit::Planned);
    }
    if args.command.as_deref() == Some(POLICY_PAGE) {
        out.push_str(&policy_page().text);
        return Ok(Exit::Planned);
    }
    let page = pages.iter().find(|page| page.command.as_deref() == args.command.as_deref());
    let page = page.ok_or_else(|| NoSuchCommand::new(args.command.as_deref(), &pages))?;
    out.push_str(&page.text);
    Ok(Exit::Planned)
}

#[derive(Debug, thiserror::Error)]
#[error("there is no page about `{requested}`; there are pages about {commands}")]
pub(super) struct NoSuchCommand {
    requested: String,
    commands: String,
}

impl NoSuchCommand {
    fn new(requested: Option<&str>, pages: &[Page]) -> Self {
        let commands: Vec<&str> = pages.iter().filter_map(|page| page.command.as_deref()).collect();
        Self { requested: requested.unwrap_or_default().to_owned(), commands: commands.join(", ") }
    }
}
