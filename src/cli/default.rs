//! Command lines that name no command: they mean `nicpin status`.

use std::ffi::OsString;

use clap::CommandFactory as _;

use crate::cli::Cli;

impl Cli {
    /// Inserts `status` where the command line names no command: `nicpin`, `nicpin eth2`, `nicpin --all`.
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
        // After a `--root` without its value nothing is inserted, so that clap reports the missing value.
        if at <= args.len() {
            args.insert(at, "status".into());
        }
        args
    }

    /// The command whose name differs from `word` in the fewest letters; `None` if more than two or half of them
    /// differ.
    pub fn nearest_command(word: &str) -> Option<String> {
        let command = Self::command();
        let names = command.get_subcommands().flat_map(clap::Command::get_name_and_visible_aliases);
        let near = names.map(|name| (strsim::damerau_levenshtein(word, name), name));
        let (distance, name) = near.min()?;
        (distance <= 2 && distance * 2 < word.len()).then(|| name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(line: &str) -> String {
        let words = Cli::complete(line.split(' ').map(OsString::from));
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn status_is_inserted_where_no_command_is_named() {
        for (given, completed) in [
            ("nicpin", "nicpin status"),
            ("nicpin eth2", "nicpin status eth2"),
            ("nicpin --root t --config=c -a", "nicpin --root t --config=c status -a"),
            ("nicpin --root=t eth2 plan", "nicpin --root=t status eth2 plan"),
            ("nicpin -- eth2", "nicpin status -- eth2"),
        ] {
            assert_eq!(complete(given), completed);
        }
        for line in [
            "nicpin plan",
            "nicpin --root t start eth2",
            "nicpin -h",
            "nicpin help",
            "nicpin --root",
            "nicpin -V",
        ] {
            assert_eq!(complete(line), line);
        }
    }

    #[test]
    fn the_nearest_command_differs_in_few_letters() {
        for (word, command) in [("plam", Some("plan")), ("chekc", Some("check")), ("stauts", Some("status"))]
        {
            assert_eq!(Cli::nearest_command(word).as_deref(), command);
        }
        for word in ["eth0", "ens1f0", "bond0", "p", ""] {
            assert_eq!(Cli::nearest_command(word), None, "{word}");
        }
    }
}
