//! Command lines that name no command: they mean `nicpin status`.

use std::ffi::OsString;

use clap::{Arg, Command, CommandFactory as _, Error, FromArgMatches as _};

use crate::cli::{Cli, no_effect};

impl Cli {
    /// Parses arguments; the first one is the name of the program.
    pub fn of(args: impl IntoIterator<Item = OsString>) -> Result<Self, Error> {
        let mut command = Self::command();
        let args = Self::complete(&command, args);
        let matches = command.try_get_matches_from_mut(args)?;
        no_effect::refuse(&mut command, &matches)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut Self::command()))
    }

    /// Whether a report, and so an error, is wanted as JSON. Where the command line has mistakes, only its words can say so.
    pub fn wants_json(args: &[OsString]) -> bool {
        let words: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
        let mut words = words
            .iter()
            .map(AsRef::as_ref)
            .take_while(|word: &&str| *word != "--");
        let is_short = |word: &str| {
            let letters = word
                .strip_prefix('-')
                .filter(|letters| !letters.starts_with('-'));
            // What follows -o is the name of a file.
            letters
                .is_some_and(|letters| letters.split('o').next().unwrap_or_default().contains('j'))
        };
        while let Some(word) = words.next() {
            if word == "--json" || word == "--format=json" || is_short(word) {
                return true;
            }
            if word == "--format" && words.next() == Some("json") {
                return true;
            }
        }
        false
    }

    /// Inserts `status` where the command line names no command: `nicpin`, `nicpin eth2`, `nicpin --all`.
    pub fn complete(command: &Command, args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
        let mut args: Vec<OsString> = args.into_iter().collect();
        let mut at = 1;
        while let Some(arg) = args.get(at) {
            let word = arg.to_string_lossy();
            let is_command = command.find_subcommand(word.as_ref()).is_some();
            if is_command || ["-h", "--help", "-V", "--version"].contains(&word.as_ref()) {
                return args;
            }
            let Some(words) = command
                .get_arguments()
                .find_map(|option| words_of(option, &word))
            else {
                break;
            };
            at += words;
        }
        // After a `--root` without its value nothing is inserted, so that clap reports the missing value.
        if at <= args.len() {
            args.insert(at, "status".into());
        }
        args
    }

    /// The command that `word` means: one that other programs call so, or whose name differs in the fewest letters;
    /// `None` if more than two or half of them differ.
    pub fn nearest_command(word: &str) -> Option<String> {
        if let Some((_, command)) = OTHER_NAMES.iter().find(|(names, _)| names.contains(&word)) {
            return Some((*command).to_owned());
        }
        let command = Self::command();
        let names = command
            .get_subcommands()
            .flat_map(Command::get_name_and_visible_aliases);
        let near = names.map(|name| (strsim::damerau_levenshtein(word, name), name));
        let (distance, name) = near.min()?;
        (distance <= 2 && distance * 2 < word.len()).then(|| name.to_owned())
    }
}

/// What other programs call such commands.
const OTHER_NAMES: [(&[&str], &str); 12] = [
    (
        &["show", "list", "ls", "info", "get", "query", "view"],
        "status",
    ),
    (
        &["diff", "preview", "dry-run", "simulate", "explain"],
        "plan",
    ),
    (
        &["set", "enable", "tune", "fix", "pin", "write", "save"],
        "apply",
    ),
    (&["verify", "test", "validate", "audit", "doctor"], "check"),
    (
        &["undo", "reset", "revert", "rollback", "disable", "unpin"],
        "restore",
    ),
    (&["commit", "keep", "accept"], "confirm"),
    (&["stats", "top", "sample", "record"], "measure"),
    (&["monitor", "daemon", "follow"], "watch"),
    (&["bench", "benchmark"], "compare"),
    (&["exec"], "run"),
    (&["topology", "topo", "numa", "hardware"], "nodes"),
    (&["dump", "snapshot", "export"], "capture"),
];

/// How many words a global option takes on the command line; `None` if `word` is not this option.
fn words_of(option: &Arg, word: &str) -> Option<usize> {
    let is_short = option
        .get_short()
        .is_some_and(|short| word.strip_prefix('-') == Some(&short.to_string()));
    let rest = option
        .get_long()
        .and_then(|long| word.strip_prefix("--")?.strip_prefix(long));
    match rest {
        Some("") if option.get_action().takes_values() => Some(2),
        Some("") => Some(1),
        Some(value) if value.starts_with('=') => Some(1),
        _ => is_short.then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use itertools::Itertools as _;

    use super::*;

    fn complete(line: &str) -> String {
        let words = Cli::complete(&Cli::command(), line.split(' ').map(OsString::from));
        words.iter().map(|word| word.to_string_lossy()).join(" ")
    }

    #[test]
    fn status_is_inserted_where_no_command_is_named() {
        for (given, completed) in [
            ("nicpin", "nicpin status"),
            ("nicpin eth2", "nicpin status eth2"),
            (
                "nicpin --root t --config=c -a",
                "nicpin --root t --config=c status -a",
            ),
            (
                "nicpin --root=t eth2 plan",
                "nicpin --root=t status eth2 plan",
            ),
            ("nicpin -- eth2", "nicpin status -- eth2"),
            (
                "nicpin -q --color never eth2",
                "nicpin -q --color never status eth2",
            ),
            ("nicpin --rooted", "nicpin status --rooted"),
        ] {
            assert_eq!(complete(given), completed);
        }
        for line in [
            "nicpin plan",
            "nicpin --root t start eth2",
            "nicpin -v --color=never plan",
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
        for (word, command) in [
            ("plam", Some("plan")),
            ("chekc", Some("check")),
            ("stauts", Some("status")),
        ] {
            assert_eq!(Cli::nearest_command(word).as_deref(), command);
        }
        for (word, command) in [
            ("show", "status"),
            ("list", "status"),
            ("undo", "restore"),
            ("topo", "nodes"),
        ] {
            assert_eq!(Cli::nearest_command(word).as_deref(), Some(command));
        }
        for (_, command) in OTHER_NAMES {
            assert!(
                Cli::command().find_subcommand(command).is_some(),
                "{command}"
            );
        }
        for word in ["eth0", "ens1f0", "bond0", "p", ""] {
            assert_eq!(Cli::nearest_command(word), None, "{word}");
        }
    }
}
