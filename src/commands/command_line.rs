//! Without a command it is `nicpin status`; options without effect beside others are refused, so that nobody relies on
//! them.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use itertools::Itertools as _;

use crate::screen::Given;
use nicpin::machine::wording::{nearest, selector, word};

/// Inserts `status` where the command line names no command.
pub fn with_command(command: &Command, args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        let word = arg.to_string_lossy();
        let is_command = command.find_subcommand(word.as_ref()).is_some();
        if is_command || ["-h", "--help", "-V", "--version"].contains(&word.as_ref()) {
            return args;
        }
        match command
            .get_arguments()
            .find_map(|option| words_of(option, &word))
        {
            Some(words) => at += words,
            None => break,
        }
    }
    // Nothing is inserted after a `--root` without its value, so that clap reports the missing value.
    if at <= args.len() {
        args.insert(at, "status".into());
    }
    args
}

/// How many words the option takes if `word` is it.
fn words_of(option: &Arg, word: &str) -> Option<usize> {
    let is_short = |short| word.strip_prefix('-') == Some(&String::from(short));
    let long = option.get_long().unwrap_or_default();
    match word
        .strip_prefix("--")
        .and_then(|word| word.strip_prefix(long))
    {
        Some("") => Some(1 + usize::from(option.get_action().takes_values())),
        Some(value) if value.starts_with('=') => Some(1),
        _ => option.get_short().is_some_and(is_short).then_some(1),
    }
}

/// Whether a report, and so an error, is wanted as JSON. If the command line has mistakes, only its words can tell.
pub fn wants_json(args: &[OsString]) -> bool {
    let words = args
        .iter()
        .map(|arg| arg.to_string_lossy())
        .take_while(|word| word != "--")
        .collect_vec();
    let is_json = |word: &str| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        // The letters after -o are the name of a file.
        let mut letters = letters
            .chars()
            .take_while(|letter| !['-', 'o'].contains(letter));
        ["--json", "--format=json"].contains(&word) || letters.contains(&'j')
    };
    let mut pairs = words.iter().tuple_windows();
    words.iter().any(|word| is_json(word))
        || pairs.any(|(option, value)| option == "--format" && value == "json")
}

/// The option or format that `word` names, of the command `named` or of the only command with it, such as `plan --explain`.
pub fn nearest_option(command: &Command, named: &str, word: &str) -> Option<String> {
    let word = match word {
        "why" | "reason" | "reasons" => "explain",
        word => word,
    };
    let own = command.find_subcommand(named);
    own.and_then(|own| option_of(own, word)).or_else(|| {
        let others = command
            .get_subcommands()
            .filter(|other| !other.is_hide_set() && command.find_subcommand(word).is_none());
        let having = others.filter_map(|other| option_of(other, word));
        having.exactly_one().ok()
    })
}

fn option_of(command: &Command, word: &str) -> Option<String> {
    let name = command.get_name();
    let mut options = command.get_arguments();
    let Some(option) =
        options.find(|option| option.get_long() == Some(word) && !option.is_hide_set())
    else {
        let mut formats = command
            .get_arguments()
            .filter(|option| option.get_id() == "format");
        let formats = formats.next()?.get_possible_values();
        let is_format = formats.iter().any(|format| format.matches(word, false));
        return is_format.then(|| format!("{name} --format {word}"));
    };
    let takes_value = option.get_action().takes_values();
    let value = option.get_value_names().filter(|_| takes_value);
    let value = value.into_iter().flatten().map(|value| format!(" {value}"));
    Some(format!("{name} --{word}{}", value.format("")))
}

/// The command that another program calls so, that begins so, or of which the word may be a misspelling.
pub fn nearest_command<'c>(command: &'c Command, word: &str) -> Option<&'c str> {
    let is_called = |(names, _): &&(&str, _)| names.split(' ').contains(word);
    if let Some((_, command)) = OTHER_NAMES.iter().find(is_called) {
        return Some(command);
    }
    let mut begun = (command.get_subcommands().map(Command::get_name))
        .filter(|name| word.len() > 2 && name.starts_with(word));
    if let (Some(name), None) = (begun.next(), begun.next()) {
        return Some(name);
    }
    let commands = command.get_subcommands();
    nearest(
        word,
        commands.flat_map(Command::get_name_and_visible_aliases),
    )
}

/// Words of other programs, with the command that they mean.
const OTHER_NAMES: [(&str, &str); 13] = [
    ("show list ls info get query view", "status"),
    ("diff preview dry-run dryrun simulate", "plan"),
    ("version", "--version"),
    ("set enable tune fix pin write save", "apply"),
    ("verify test validate audit doctor", "check"),
    ("undo reset revert rollback disable unpin", "restore"),
    ("commit keep accept", "confirm"),
    ("stats top sample record", "measure"),
    ("monitor daemon follow", "watch"),
    ("bench benchmark", "compare"),
    ("exec", "run"),
    ("topology topo numa hardware", "nodes"),
    ("dump snapshot export", "capture"),
];

/// Options that have no effect with these commands, formats and options.
const NO_EFFECT: [(&str, &str); 16] = [
    ("completions man help", "root config"),
    (
        "draw completions man help irqbalance-policy",
        "quiet verbose",
    ),
    ("restore confirm capture measure flow", "config"),
    ("confirm run compare nodes flow capture", "verbose"),
    ("watch", "quiet"),
    ("draw", "xps rps rfs napi-threads channels irqbalance"),
    ("fleet", "root"),
    ("json sh prometheus nagios", "verbose all masks workers"),
    ("sh", "explain irqbalance quiet"),
    ("prometheus nagios", "irqbalance"),
    ("table json nagios", "output"),
    (
        "table json prometheus",
        "warning critical warning_not_judged critical_not_judged",
    ),
    ("all explain workers", "verbose"),
    ("explain workers", "all"),
    ("dry_run", "wait strict"),
    ("stdout", "force"),
];

pub fn hide_refused(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let of_command = |words: &str| words.split(' ').contains(&*name);
    command.mut_args(|option| {
        let is_refused = NO_EFFECT.iter().any(|(words, options)| {
            of_command(words) && options.split(' ').contains(option.get_id().as_str())
        });
        if is_refused {
            option.hide(true)
        } else {
            option
        }
    })
}

pub fn without_effect(matches: &ArgMatches) -> Option<String> {
    let (name, matches) = matches.subcommand()?;
    let given = |id: &str| is_given(matches, id);
    let raw = |id| {
        let words = matches.try_get_raw(id).ok().flatten();
        words.and_then(|mut words| words.next()).unwrap_or_default()
    };
    let format = raw("format").to_string_lossy();
    let mut beside = vec![
        (name, format!("nicpin {name}")),
        (&format, format!("--format {format}")),
    ];
    for option in ["all", "explain", "workers", "dry_run"] {
        if given(option) {
            beside.push((option, format!("--{}", option.replace('_', "-"))));
        }
    }
    let mut exports = ["output", "export_json", "export_markdown"].into_iter();
    let has_file = exports.any(|id| given(id) && raw(id) != "-");
    if ["capture", "draw", "compare"].contains(&name) && !has_file {
        beside.push(("stdout", "standard output".into()));
    }
    let of_table = NO_EFFECT.iter().find_map(|(words, options)| {
        let is_meant = |(word, _): &&(&str, String)| words.split(' ').contains(word);
        let (_, beside) = beside.iter().find(is_meant)?;
        let option = options.split(' ').find(|id| given(id))?;
        Some((option, &**beside))
    });
    let is_silent = format == "prometheus" && given("quiet") && !has_file;
    let (option, beside) = of_table.or(is_silent.then_some(("quiet", "--format prometheus")))?;
    let option = option.replace('_', "-");
    Some(format!("--{option} has no effect with {beside}"))
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.try_contains_id(id).is_ok()
        && matches.value_source(id) == Some(ValueSource::CommandLine)
}

const NOT_APPLIED: &str = "quiet verbose json format root color dry_run detailed_exitcode";

/// The options of `nicpin apply` on the command line that decide on the plan, and the selectors.
pub fn given(defined: &Command, matches: &ArgMatches) -> Given {
    let mut given = Given::default();
    let apply = defined.find_subcommand("apply");
    let (Some((_, matches)), Some(apply)) = (matches.subcommand(), apply) else {
        return given;
    };
    for arg in apply.get_arguments() {
        let id = arg.get_id().as_str();
        if NOT_APPLIED.split(' ').contains(id) || !is_given(matches, id) {
            continue;
        }
        let name = format!("--{}", arg.get_long().unwrap_or_default());
        if matches!(arg.get_action(), ArgAction::SetTrue) {
            given.options.push(vec![name]);
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            let value = value.to_string_lossy();
            if arg.is_positional() {
                given.selectors += &format!(" {}", selector(&value));
            } else {
                let value = word(&value).into_owned();
                given.options.push(vec![name.clone(), value]);
            }
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use itertools::Itertools as _;

    use super::*;
    use crate::commands::Cli;

    fn complete(line: &str) -> String {
        let words = with_command(&Cli::command(), line.split(' ').map(OsString::from));
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
        let defined = Cli::command();
        let nearest = |word| {
            let option = nearest_option(&defined, "", word);
            option.or_else(|| nearest_command(&defined, word).map(str::to_owned))
        };
        for (word, command) in [
            ("plam", "plan"),
            ("chekc", "check"),
            ("stauts", "status"),
            ("stat", "status"),
            ("explain", "plan --explain"),
            ("why", "plan --explain"),
            ("masks", "plan --masks"),
            ("nagios", "check --format nagios"),
            ("observe", "watch --observe"),
            ("bandwidth", "nodes --bandwidth"),
            ("show", "status"),
            ("list", "status"),
            ("undo", "restore"),
            ("topo", "nodes"),
        ] {
            assert_eq!(nearest(word).as_deref(), Some(command));
        }
        for (_, command) in OTHER_NAMES {
            if command == "--version" {
                continue;
            }
            assert!(
                Cli::command().find_subcommand(command).is_some(),
                "{command}"
            );
        }
        for word in ["eth0", "ens1f0", "bond0", "p", ""] {
            assert_eq!(nearest(word), None, "{word}");
        }
    }
}
