//! What a command line means that names no command.

use std::ffi::OsString;

use clap::CommandFactory as _;

use crate::cli::Cli;

impl Cli {
    /// The command line with `status` put in where it names no command: `nicpin`, `nicpin eth2`, `nicpin --all`.
    pub fn complete(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
        let mut args: Vec<OsString> = args.into_iter().collect();
        let mut at = 1;
        while let Some(arg) = args.get(at) {
            let text = arg.to_string_lossy();
            match text.as_ref() {
                "--root" | "--config" => at += 2,
                "-h" | "--help" | "-V" | "--version" | "help" => return args,
                option if option.starts_with("--root=") || option.starts_with("--config=") => at += 1,
                word if Self::command().find_subcommand(word).is_some() => return args,
                _ => break,
            }
        }
        args.insert(at.min(args.len()), "status".into());
        args
    }

    /// The command that a word was probably meant to be.
    pub fn nearest_command(word: &str) -> Option<String> {
        let command = Self::command();
        let names = command.get_subcommands().flat_map(clap::Command::get_name_and_visible_aliases);
        let near = names.map(|name| (strsim::damerau_levenshtein(word, name), name));
        let (distance, name) = near.min()?;
        (distance <= 2 && distance * 2 < word.len()).then(|| name.to_owned())
    }
}
