//! `nicpin completions`: what a shell needs to complete nicpin's command lines.

use anyhow::Result;
use clap::{Command, CommandFactory as _};

use crate::cli::{Cli, CompletionsArgs};
use crate::report::exit::Exit;

pub(super) fn run(args: &CompletionsArgs, out: &mut String) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut for_people(&Cli::command()), "nicpin", &mut script);
    out.push_str(&String::from_utf8(script)?);
    Ok(Exit::Planned)
}

/// The program without the commands that it only gives to itself.
fn for_people(whole: &Command) -> Command {
    Command::new("nicpin")
        .version(env!("CARGO_PKG_VERSION"))
        .about(whole.get_about().cloned().unwrap_or_default())
        .args(whole.get_arguments())
        .subcommands(whole.get_subcommands().filter(|command| !command.is_hide_set()))
}
