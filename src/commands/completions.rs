//! `nicpin completions`: completion scripts for shells.

use anyhow::Result;
use clap::{Command, CommandFactory as _};

use crate::cli::{Cli, CompletionsArgs};
use crate::report::exit::Exit;

pub(super) fn run(args: &CompletionsArgs, out: &mut String) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut without_hidden(&Cli::command()), "nicpin", &mut script);
    out.push_str(&String::from_utf8(script)?);
    Ok(Exit::Planned)
}

/// The command line without hidden commands, which only nicpin itself runs.
fn without_hidden(whole: &Command) -> Command {
    Command::new("nicpin")
        .version(env!("CARGO_PKG_VERSION"))
        .about(whole.get_about().cloned().unwrap_or_default())
        .args(whole.get_arguments())
        .subcommands(whole.get_subcommands().filter(|command| !command.is_hide_set()))
}
