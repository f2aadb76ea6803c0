//! `nicpin completions`: what a shell needs to complete nicpin's command lines.

use anyhow::Result;
use clap::CommandFactory as _;

use crate::cli::{Cli, CompletionsArgs};
use crate::commands::Exit;

pub(super) fn run(args: &CompletionsArgs, out: &mut String) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "nicpin", &mut script);
    out.push_str(&String::from_utf8(script)?);
    Ok(Exit::Planned)
}
