//! `nicpin man`: manual pages.

use anyhow::{Result, bail};
use clap::CommandFactory as _;

use crate::cli::manual::{POLICY_PAGE, pages, policy_page};
use crate::cli::{Cli, ManArgs};
use crate::commands::inputs::UsageError;
use crate::commands::output;
use nicpin::report::exit::Exit;

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
    let page = pages
        .iter()
        .find(|page| page.command.as_deref() == args.command.as_deref());
    let Some(page) = page else {
        let word = args.command.as_deref().unwrap_or_default();
        let commands: Vec<&str> = pages
            .iter()
            .filter_map(|page| page.command.as_deref())
            .collect();
        let commands = commands.join(", ");
        bail!(UsageError::new(format!(
            "there is no page about `{word}`; there are pages about {commands}"
        )));
    };
    out.push_str(&page.text);
    Ok(Exit::Planned)
}
