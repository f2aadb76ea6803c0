//! What a command line means beside the definitions of its options: one that names no command is `nicpin status`, and
//! options that change nothing beside others are refused, so that nobody relies on them.

use clap::ArgAction;
use clap::ArgMatches;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, Command, Error};
use nicpin::machine::wording::word;
use std::ffi::OsString;

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
        letters.is_some_and(|letters| letters.split('o').next().unwrap_or_default().contains('j'))
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
pub fn nearest_command(command: &Command, word: &str) -> Option<String> {
    if let Some((_, command)) = OTHER_NAMES.iter().find(|(names, _)| names.contains(&word)) {
        return Some((*command).to_owned());
    }
    let names = command
        .get_subcommands()
        .flat_map(Command::get_name_and_visible_aliases);
    let near = names.map(|name| (strsim::damerau_levenshtein(word, name), name));
    let (distance, name) = near.min()?;
    (distance <= 2 && distance * 2 < word.len()).then(|| name.to_owned())
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

/// An error if an option is given that has no effect beside the others.
pub fn refuse(command: &mut Command, matches: &ArgMatches) -> Result<(), Error> {
    let Some((name, matches)) = matches.subcommand() else {
        return Ok(());
    };
    let given = |id: &str| {
        matches.try_contains_id(id).is_ok()
            && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let is = |names: &[&str]| names.contains(&name);
    let format = if given("json") {
        "json".to_owned()
    } else {
        let given = matches.try_get_raw("format").ok().flatten();
        given
            .and_then(|mut words| words.next())
            .map_or("table".to_owned(), |word| {
                word.to_string_lossy().into_owned()
            })
    };
    let has_format = |names: &[&str]| names.contains(&&*format);
    let of_command = format!("nicpin {name}");
    let of_format = format!("--format {format}");
    let prints_itself = ["draw", "completions", "man", "help", "irqbalance-policy"];
    let plans_nothing = ["restore", "confirm", "capture", "measure", "flow"];
    let is_brief = ["confirm", "run", "compare", "nodes", "flow", "capture"];
    let not_drawn = [
        "xps",
        "rps",
        "rfs",
        "napi-threads",
        "channels",
        "irqbalance",
    ];
    let is_document = has_format(&["json", "sh", "prometheus", "nagios"]);
    let no_file = !given("output");
    let no_export = !given("export_json") && !given("export_markdown");
    let rules: [(bool, &str, &[&str]); 19] = [
        (
            is(&["completions", "man", "help"]),
            &of_command,
            &["root", "config"],
        ),
        (is(&prints_itself), &of_command, &["quiet", "verbose"]),
        (is(&plans_nothing), &of_command, &["config"]),
        (is(&is_brief), &of_command, &["verbose"]),
        (is(&["watch"]), &of_command, &["quiet"]),
        (
            is_document,
            &of_format,
            &["verbose", "all", "masks", "workers"],
        ),
        (has_format(&["sh"]), &of_format, &["explain", "irqbalance"]),
        (
            has_format(&["sh", "prometheus"]) && no_file,
            &of_format,
            &["quiet"],
        ),
        (
            has_format(&["prometheus", "nagios"]),
            &of_format,
            &["irqbalance"],
        ),
        (
            is(&["check"]) && !has_format(&["prometheus"]),
            &of_format,
            &["output"],
        ),
        (
            is(&["check"]) && !has_format(&["nagios"]),
            &of_format,
            &["warning", "critical"],
        ),
        (is(&["draw"]), &of_command, &not_drawn),
        (is(&["fleet"]), &of_command, &["root"]),
        (given("all"), "--all", &["verbose"]),
        (given("explain"), "--explain", &["all", "verbose"]),
        (given("workers"), "--workers", &["all", "verbose"]),
        (given("dry_run"), "--dry-run", &["wait", "strict"]),
        (is(&["draw"]) && no_file, "standard output", &["force"]),
        (is(&["compare"]) && no_export, "standard output", &["force"]),
    ];
    for (applies, beside, options) in rules {
        if let Some(option) = options.iter().find(|id| applies && given(id)) {
            let option = option.replace('_', "-");
            let text = format!("--{option} has no effect with {beside}");
            let command = command.find_subcommand_mut(name);
            return Err(command.map_or_else(
                || Error::raw(ErrorKind::ArgumentConflict, &text),
                |command| command.error(ErrorKind::ArgumentConflict, &text),
            ));
        }
    }
    Ok(())
}

/// The command that makes everything as planned: `nicpin apply` with the selectors and the options of this command line
/// that decide on the plan.
pub fn apply_command(defined: &Command, matches: &ArgMatches) -> String {
    /// About this output, the place of a copy, or machines without interfaces.
    const NOT_APPLIES: [&str; 9] = [
        "if_present",
        "quiet",
        "verbose",
        "json",
        "format",
        "root",
        "color",
        "dry_run",
        "detailed_exitcode",
    ];
    let mut command = "nicpin apply".to_owned();
    let (Some((_, given)), Some(apply)) = (matches.subcommand(), defined.find_subcommand("apply"))
    else {
        return command;
    };
    let mut selectors = String::new();
    for arg in apply.get_arguments() {
        let id = arg.get_id().as_str();
        if NOT_APPLIES.contains(&id)
            || given.try_contains_id(id).is_err()
            || given.value_source(id) != Some(ValueSource::CommandLine)
        {
            continue;
        }
        let name = format!(" --{}", arg.get_long().unwrap_or_default());
        if matches!(arg.get_action(), ArgAction::SetTrue) {
            command += &name;
            continue;
        }
        for value in given.get_raw(id).into_iter().flatten() {
            let value = word(&value.to_string_lossy()).to_string();
            if arg.is_positional() {
                selectors += &format!(" {value}");
            } else {
                command += &format!("{name} {value}");
            }
        }
    }
    command + &selectors
}

#[cfg(test)]
mod tests {
    use itertools::Itertools as _;

    use clap::CommandFactory as _;

    use crate::commands::Cli;

    use super::*;

    fn complete(line: &str) -> String {
        let words = super::complete(&Cli::command(), line.split(' ').map(OsString::from));
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
            assert_eq!(nearest_command(&Cli::command(), word).as_deref(), command);
        }
        for (word, command) in [
            ("show", "status"),
            ("list", "status"),
            ("undo", "restore"),
            ("topo", "nodes"),
        ] {
            assert_eq!(
                nearest_command(&Cli::command(), word).as_deref(),
                Some(command)
            );
        }
        for (_, command) in OTHER_NAMES {
            assert!(
                Cli::command().find_subcommand(command).is_some(),
                "{command}"
            );
        }
        for word in ["eth0", "ens1f0", "bond0", "p", ""] {
            assert_eq!(nearest_command(&Cli::command(), word), None, "{word}");
        }
    }
}
