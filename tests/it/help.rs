//! Help with examples that run, manual pages and completions with every command and option, and errors for typing
//! mistakes.
//! All of it is made from the definitions of the command line; these tests check that it is complete for any command.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command as Process;

use clap::{Command, Parser as _};

use crate::commands::Cli;
use crate::support::run::{self, Copy, fixture, nicpin};
use crate::support::temporary;
use nicpin::report::interface::InterfaceState;

/// The definition of the command line, with its commands built.
fn defined() -> Command {
    let mut command = crate::commands::defined().disable_help_subcommand(true);
    command.build();
    command
}

fn commands() -> Vec<Command> {
    defined()
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned()
        .collect()
}

/// The long options of a command.
fn options(command: &Command) -> Vec<String> {
    let shown = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set());
    shown
        .filter_map(|argument| argument.get_long())
        .map(|long| format!("--{long}"))
        .collect()
}

/// The examples in a command's help: each line below `Examples:`.
fn examples(command: &Command) -> Vec<String> {
    let after = command
        .get_after_long_help()
        .or(command.get_after_help())
        .map(ToString::to_string);
    let after = after.unwrap_or_default();
    let lines = after
        .split_once("Examples:\n")
        .map_or("", |(_, lines)| lines)
        .lines();
    lines
        .map(str::trim)
        .filter(|line| line.contains("nicpin "))
        .map(str::to_owned)
        .collect()
}

/// The nicpin command line of an example, without the explanation and without other programs.
fn words(example: &str) -> Vec<String> {
    let line = &example[example
        .find("nicpin")
        .unwrap_or_else(|| panic!("no nicpin: {example}"))..];
    let line = line.split("  ").next().unwrap().trim();
    let line = line.split([';', '|', '>', '<']).next().unwrap();
    line.split_whitespace()
        .map(|word| word.trim_matches('\'').to_owned())
        .collect()
}

/// Inserts `status` where no command is named.
fn spelled_out(mut words: Vec<String>, all: &[Command]) -> Vec<String> {
    let named = |word: &String| all.iter().any(|c| c.get_name() == word) || word == "--help";
    if all.iter().any(|command| command.get_name() == "status") && !words.iter().any(named) {
        words.insert(1, "status".to_owned());
    }
    words
}

#[test]
fn every_command_has_examples_that_parse() {
    let all = commands();
    assert!(all.len() >= 10, "{}", all.len());
    for command in all.iter().chain([&defined()]) {
        let name = command.get_name();
        assert!(command.get_about().is_some(), "{name}");
        let examples = examples(command);
        let own = |example: &&String| {
            spelled_out(words(example), &all)
                .iter()
                .any(|word| word == name)
        };
        assert!(
            examples.iter().any(|example| own(&example)),
            "{name} has no examples of its own"
        );
        for example in &examples {
            let parsed = Cli::try_parse_from(spelled_out(words(example), &all));
            let help = parsed
                .as_ref()
                .err()
                .is_some_and(|error| !error.use_stderr());
            let error = parsed.err().map(|error| error.to_string());
            assert!(error.is_none() || help, "{example}: {error:?}");
        }
    }
}

#[test]
fn help_fits_100_columns() {
    for command in commands() {
        let run = nicpin(&[command.get_name(), "--help"]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        let wide = run.stdout.lines().find(|line| line.chars().count() > 100);
        assert!(wide.is_none(), "{}: {wide:?}", command.get_name());
    }
}

/// The examples that end by themselves run on a copy of a machine, in a directory of their own.
#[test]
fn examples_run() {
    const RUN: [&str; 9] = [
        "plan",
        "apply",
        "check",
        "restore",
        "capture",
        "nodes",
        "draw",
        "completions",
        "status",
    ];
    let mut ran = BTreeSet::new();
    let machine = Copy::of("dl980");
    bond(&machine, "eth2");
    let root = machine.path("/").to_str().unwrap().to_owned();
    let here = temporary();
    symlink(fixture(""), here.path().join("fixtures")).unwrap();
    for command in commands() {
        let name = command.get_name();
        for example in examples(&command) {
            let mut words = words(&example);
            let has = |word: &str| words.iter().any(|one| one == word);
            if has("--bandwidth") || !(RUN.contains(&name) || has("--dry-run")) {
                continue;
            }
            // What an example writes elsewhere is written here.
            for word in words.iter_mut().filter(|word| word.starts_with("/var/")) {
                *word = Path::new(word)
                    .file_name()
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
            }
            if name != "completions" && !words.iter().any(|word| word == "--root") {
                words.extend(["--root".to_owned(), root.clone()]);
            }
            let mut run = Process::new(env!("CARGO_BIN_EXE_nicpin"));
            let run = run
                .args(&words[1..])
                .current_dir(here.path())
                .output()
                .unwrap();
            let good = if name == "check" {
                [0, 2].as_slice()
            } else {
                &[0]
            };
            let said = String::from_utf8_lossy(&run.stderr);
            assert!(
                run.status.code().is_some_and(|code| good.contains(&code)),
                "{example}: {said}"
            );
            ran.insert(name.to_owned());
        }
    }
    assert!(ran.len() >= 8, "{ran:?}");
}

/// A bond above an interface.
fn bond(machine: &Copy, lower: &str) {
    std::fs::create_dir(machine.path("/sys/class/net/bond0")).unwrap();
    symlink(
        format!("../{lower}"),
        machine.path(&format!("/sys/class/net/bond0/lower_{lower}")),
    )
    .unwrap();
}

/// The text of a page without the escapes of roff.
fn plain(page: &str) -> String {
    let marks = [
        ("\\-", "-"),
        ("\\fB", ""),
        ("\\fI", ""),
        ("\\fR", ""),
        ("\\*(Aq", "'"),
        ("\\&", ""),
    ];
    marks.iter().fold(page.to_owned(), |page, (mark, plain)| {
        page.replace(mark, plain)
    })
}

#[test]
fn pages_have_every_command_and_option() {
    let main = plain(&nicpin(&["man"]).stdout);
    for option in options(&defined()) {
        assert!(main.contains(&option), "nicpin(8) lacks {option}");
    }
    for command in commands() {
        let name = command.get_name();
        assert!(
            main.contains(&format!("nicpin-{name}(8)")),
            "nicpin(8) lacks {name}"
        );
        let run = nicpin(&["man", name]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{name}");
        let page = plain(&run.stdout);
        for option in options(&command) {
            assert!(page.contains(&option), "nicpin-{name}(8) lacks {option}");
        }
        for example in examples(&command) {
            assert!(page.contains(&example), "nicpin-{name}(8) lacks {example}");
        }
        for section in [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "OPTIONS",
            "EXAMPLES",
            "EXIT STATUS",
            "SEE ALSO",
        ] {
            assert!(
                page.replace('"', "").contains(&format!(".SH {section}\n")),
                "nicpin-{name}(8): {section}"
            );
        }
    }
    let policy = plain(&nicpin(&["man", "nicpin.toml"]).stdout);
    for setting in nicpin::policy::SETTINGS.iter() {
        assert!(
            policy.contains(&format!("\n{}\n", setting.key)),
            "nicpin.toml(5) lacks {}",
            setting.key
        );
    }
    let run = nicpin(&["man", "pln"]);
    assert_eq!((run.code, run.stdout.as_str()), (64, ""));
    assert!(
        run.stderr
            .starts_with("nicpin: there is no page about `pln`; there are pages about "),
        "{}",
        run.stderr
    );
}

#[test]
fn all_pages_at_once_are_the_same_pages() {
    let dir = temporary();
    let into = dir.path().to_str().unwrap();
    for _ in 0..2 {
        let run = nicpin(&["man", "--into", into]);
        assert_eq!(
            (run.code, run.stdout.as_str(), run.stderr.as_str()),
            (0, "", "")
        );
    }
    let page = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(page("man8/nicpin.8"), nicpin(&["man"]).stdout);
    let commands = commands();
    let of_commands = commands.iter().map(|command| {
        let name = command.get_name();
        (format!("man8/nicpin-{name}.8"), name)
    });
    let of_topics = [
        ("man7/nicpin-states.7".to_owned(), "states"),
        ("man7/nicpin-selectors.7".to_owned(), "selectors"),
        ("man5/nicpin.toml.5".to_owned(), "policy"),
    ];
    for (file, about) in of_commands.chain(of_topics) {
        assert_eq!(page(&file), nicpin(&["man", about]).stdout);
    }
    let files = glob::glob(&format!("{into}/man?/*")).unwrap().count();
    assert_eq!(files, commands.len() + 1 + 3);
    let run = nicpin(&["man", "--into", "/no/such/directory"]);
    assert_eq!(run.code, 1);
    assert!(
        run.stderr
            .contains("/no/such/directory/man8: no such file or directory (ENOENT)"),
        "{}",
        run.stderr
    );
}

/// The date is that of the sources, so that each build of a version gives the same pages.
#[test]
fn pages_have_the_date_of_the_sources() {
    for (seconds, date) in [
        ("1764000000", "2025-11-24"),
        ("253402300799", "9999-12-31"),
        ("253402300800", ""),
        ("18446744073709551615", ""),
        ("tomorrow", ""),
    ] {
        let mut run = Process::new(env!("CARGO_BIN_EXE_nicpin"));
        let run = run
            .args(["man", "states"])
            .env("SOURCE_DATE_EPOCH", seconds);
        let page = String::from_utf8(run.output().unwrap().stdout).unwrap();
        let title = format!(".TH NICPIN-STATES 7 \"{date}\" \"nicpin ");
        assert!(page.starts_with(&title), "{seconds}: {page}");
    }
}

#[test]
fn topics_are_explained() {
    let states = nicpin(&["help", "states"]);
    assert_eq!((states.code, states.stderr.as_str()), (0, ""));
    let states = run::words(&states);
    let reference = include_str!("../../docs/json.md");
    for (state, means, code) in crate::commands::topics::STATES {
        let name = state.name();
        let said = format!(" {name} {means}. check ends with {code}.");
        assert!(states.contains(&said), "{said}");
        let row = format!("| `{name}` | {means} | {code} |");
        assert!(reference.contains(&row), "docs/json.md: {row}");
    }
    let all = crate::commands::topics::STATES.map(|(state, ..)| state);
    let best_first: Vec<_> = all.into_iter().rev().collect();
    assert!(best_first.is_sorted() && best_first.len() == InterfaceState::ALL.len());
    let policy = nicpin(&["help", "policy"]).stdout;
    for setting in nicpin::policy::SETTINGS.iter() {
        assert!(
            policy.contains(&format!("\n  {} ", setting.key)),
            "{}",
            setting.key
        );
    }
    // Each form that the help names is one that is understood.
    let machine = Copy::of("two-socket-mlx4");
    bond(&machine, "eth2");
    let selectors = nicpin(&["help", "selectors"]).stdout;
    for (form, given) in [
        ("eth2", "eth2"),
        ("'ens*'", "et*2"),
        ("3b:00.0", "82:00.0"),
        ("driver:NAME", "driver:mlx4_*"),
        ("node:N", "node:1"),
        ("bond0", "bond0"),
    ] {
        assert!(selectors.contains(&format!("\n  {form} ")), "{selectors}");
        let run = machine.nicpin(&["plan", "--json", given]);
        let plan: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(plan["interfaces"][0]["name"], "eth2", "{given}");
        assert_eq!(plan["interfaces"].as_array().unwrap().len(), 1, "{given}");
    }
    for asked in [&["help"][..], &["help", "plan"]] {
        let flag = [&asked[1..], &["--help"]].concat();
        assert_eq!(nicpin(asked).stdout, nicpin(&flag).stdout);
    }
    let run = nicpin(&["help", "stats"]);
    assert_eq!((run.code, run.stdout.as_str()), (64, ""));
    assert!(
        run.stderr.contains("no page about `stats`"),
        "{}",
        run.stderr
    );
}

/// What nicpin answers the script of fish for these words, without the descriptions.
fn candidates(words: &[&str]) -> Vec<String> {
    let mut run = Process::new(env!("CARGO_BIN_EXE_nicpin"));
    let output = run
        .env("NICPIN_COMPLETE", "fish")
        .args(["--", "nicpin"])
        .args(words)
        .output()
        .unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{words:?}: {output:?}"
    );
    let lines = String::from_utf8(output.stdout).unwrap();
    lines
        .lines()
        .map(|line| line.split('\t').next().unwrap().to_owned())
        .collect()
}

#[test]
fn pages_are_completed_by_what_they_are_about() {
    for command in ["man", "help"] {
        let offered = candidates(&[command, ""]);
        for about in ["plan", "status", "states", "selectors", "policy"] {
            assert!(offered.iter().any(|word| word == about), "{offered:?}");
        }
    }
}

#[test]
fn completions_have_every_command_and_option() {
    let first = candidates(&[""]);
    assert!(
        !first.contains(&"await-confirm".to_owned()),
        "what nicpin only gives to itself is offered"
    );
    for command in commands() {
        assert!(
            first.iter().any(|word| word == command.get_name()),
            "{first:?}"
        );
        let offered = candidates(&[command.get_name(), "--"]);
        for option in options(&command) {
            assert!(
                offered.contains(&option),
                "no {option} of {}",
                command.get_name()
            );
        }
    }
    assert!(
        candidates(&["await-"]).contains(&"await-confirm".to_owned()),
        "it is there, only hidden"
    );
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = nicpin(&["completions", shell]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{shell}");
        assert!(
            run.stdout.contains("NICPIN_COMPLETE"),
            "{shell}: {}",
            run.stdout
        );
    }
    let run = nicpin(&["completions", "sh"]);
    assert_eq!(run.code, 64);
    assert!(
        run.stderr
            .contains("[possible values: bash, elvish, fish, powershell, zsh]"),
        "{}",
        run.stderr
    );
}

#[test]
fn completions_name_what_the_machine_has() {
    let machine = Copy::of("dl980");
    std::fs::create_dir_all(machine.path("/sys/class/infiniband/mlx5_0")).unwrap();
    symlink(
        "../../net/eth3/device",
        machine.path("/sys/class/infiniband/mlx5_0/device"),
    )
    .unwrap();
    let root = machine.path("/").to_str().unwrap().to_owned();
    let joined = format!("--root={root}");
    let all = ["eth0", "eth1", "eth2", "eth3", "eth4"];
    for (words, expected) in [
        (&["plan", "--root", &root, "eth"][..], &all[..]),
        (
            &[&joined, "plan", "driver:i"],
            &["driver:i40e", "driver:ixgbe"],
        ),
        (&[&joined, "check", "mlx"], &["mlx5_0"]),
        (
            &[&joined, "measure", "eth0", "node:"],
            &["node:0", "node:2", "node:5", "node:7"],
        ),
        (&[&joined, "apply", "0b:"], &["0b:00.0", "0b:00.1"]),
        (&[&joined, "status", "pci:0000:d"], &["pci:0000:d3:00.0"]),
        (
            &[&joined, "run", "--node", ""],
            &["0", "1", "2", "3", "4", "5", "6", "7"],
        ),
        (&[&joined, "compare", "--far", "7"], &["7"]),
        // Where no command is named.
        (&[&joined, "eth3"], &["eth3"]),
        (
            &[&joined, "eth3", "dri"],
            &[
                "driver:bnx2x",
                "driver:i40e",
                "driver:ixgbe",
                "driver:mlx5_core",
            ],
        ),
        (&[&joined, "eth3", "--all"], &["--all"]),
        (&["plan", "--root", "/no/such/machine", "eth"], &[]),
    ] {
        assert_eq!(candidates(words), expected, "{words:?}");
    }
    let first = candidates(&[&joined, ""]);
    assert!(
        ["eth0", "mlx5_0", "status", "plan"]
            .iter()
            .all(|word| first.iter().any(|w| w == word)),
        "{first:?}"
    );
}

/// bash inserts candidates as they are, so a name must not become a command.
#[test]
fn completions_leave_out_what_a_shell_would_not_take_literally() {
    let machine = Copy::of("two-node");
    let names = ["n$(id>pwn)", "n;id", "n`id`", "n|id", "n&id", "n'", "n*"];
    for name in names {
        symlink("nic0", machine.path(&format!("/sys/class/net/{name}"))).unwrap();
    }
    let files = temporary();
    for name in ["plain.tar.gz", "p$(id>pwn)"] {
        std::fs::write(files.path().join(name), "").unwrap();
    }
    let root = format!("--root={}", machine.path("/").to_str().unwrap());
    let known = machine.nicpin(&["plan", "--format", "json"]).stdout;
    assert!(
        known.contains("n$(id>pwn)"),
        "the name is not read: {known}"
    );
    let answer = |shell: &str, words: &[&str]| {
        let mut run = Process::new(env!("CARGO_BIN_EXE_nicpin"));
        run.env("NICPIN_COMPLETE", shell)
            .env("_CLAP_COMPLETE_INDEX", (words.len()).to_string())
            .env("_CLAP_IFS", "\n")
            .arg("--");
        if shell == "bash" {
            run.arg(words.last().unwrap());
        }
        let output = run.arg("nicpin").args(words).current_dir(files.path());
        String::from_utf8(output.output().unwrap().stdout).unwrap()
    };
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let answer = answer(shell, &[&root, "plan", "n"]);
        assert!(answer.contains("nic0"), "{shell}: {answer}");
        for name in names {
            assert!(!answer.contains(name), "{shell}: {answer}");
        }
    }
    assert_eq!(answer("bash", &["fleet", "p"]), "plain.tar.gz\n");
}

#[test]
fn usage_errors_name_the_nearest_option_or_the_allowed_values() {
    for (args, code, has) in [
        (
            &["plan", "--formt", "json"][..],
            64,
            "a similar argument exists: '--format'",
        ),
        (
            &["plan", "--format", "yaml"],
            64,
            "[possible values: table, json, sh]",
        ),
        (&["run"], 64, "<INTERFACE>"),
        (
            &["run", "eth2"],
            64,
            "Usage: nicpin run <INTERFACE> -- <CMD>...",
        ),
        (&["run", "eth2", "iperf3"], 64, "<INTERFACE> [-- <CMD>...]"),
        (
            &["run", "--node", "one", "eth2", "--", "true"],
            64,
            "invalid value 'one' for '--node <N>'",
        ),
        (
            &["draw", "-o"],
            64,
            "a value is required for '--output <FILE>'",
        ),
        (&["completions"], 64, "<SHELL>"),
        (
            &["plan", "--scope", "near"],
            64,
            "invalid value 'near' for '--scope <local|all|remote|hint|node:N|CPULIST>': `near` is not one of local, all, remote,",
        ),
        (
            &["plan", "--exclude", "3-1"],
            64,
            "`3-1` is not a CPU list such as 0-3,8: 3-1 runs downwards",
        ),
        (
            &["plan", "--rfs", "0"],
            64,
            "`0` is not one of keep, off, or a number of flows over all interfaces from 1 to",
        ),
        (
            &["plan", "--no-siblings"],
            64,
            "a similar argument exists: '--siblings'",
        ),
        (&["plan", "--help"], 0, ""),
        (&["--version"], 0, ""),
        (&["help"], 0, ""),
        (&["help", "draw"], 0, ""),
    ] {
        let run = nicpin(args);
        assert_eq!(run.code, code, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(has), "{args:?}: {}", run.stderr);
        assert!(
            code == 0 || run.stdout.is_empty(),
            "{args:?}: {}",
            run.stdout
        );
        assert!(
            code != 0 || run.stderr.is_empty() && !run.stdout.is_empty(),
            "{args:?}: {}",
            run.stderr
        );
    }
}

#[test]
fn reports_are_json_or_left_out_on_request() {
    for args in [
        &["plan"][..],
        &["status"],
        &["check"],
        &["apply"],
        &["restore"],
        &["nodes"],
        &["measure", "--seconds", "0.01", "nic0"],
    ] {
        let said = |options: &[&str]| Copy::of("two-node").nicpin(&[args, options].concat());
        let (short, long) = (said(&["-j"]), said(&["--format", "json"]));
        let json: serde_json::Value = serde_json::from_str(&short.stdout).unwrap();
        assert!(
            json["schema"].as_str().unwrap().starts_with("nicpin."),
            "{args:?}"
        );
        assert_eq!(
            (short.code, short.stderr.as_str()),
            (long.code, ""),
            "{args:?}"
        );
        if args[0] != "measure" {
            assert_eq!(short.stdout, long.stdout, "{args:?}");
        }
        assert_eq!(said(&["--json", "--format", "json"]).code, 64, "{args:?}");
        for quiet in ["-q", "--quiet"] {
            let run = said(&[quiet]);
            assert_eq!(
                (run.code, run.stdout.as_str(), run.stderr.as_str()),
                (long.code, "", ""),
                "{args:?}"
            );
        }
        let has_more = !["nodes"].contains(&args[0]);
        let verbose = if has_more { long.code } else { 64 };
        assert_eq!(said(&["-v"]).code, verbose, "{args:?}");
        assert_eq!(said(&["-v", "-q"]).code, 64, "{args:?}");
    }
    // A capture says how large it is, unless quiet.
    let capture = |options: &[&str]| {
        let dir = temporary();
        let file = dir.path().join("capture.tar.gz");
        let run = Copy::of("two-node")
            .nicpin(&[&["capture", "-o", file.to_str().unwrap()], options].concat());
        (
            run.code,
            run.stdout.is_empty(),
            run.stderr.is_empty(),
            file.exists(),
        )
    };
    assert_eq!(capture(&[]), (0, false, true, true));
    assert_eq!(capture(&["-q"]), (0, true, true, true));
    // A document that was asked for is printed.
    for args in [&["completions", "bash"][..], &["man"], &["draw"]] {
        let run = nicpin(&[&["-q"], args].concat());
        assert!(run.code == 64 && run.stdout.is_empty(), "{run:?}");
        assert!(
            run.stderr
                .starts_with("nicpin: --quiet has no effect with nicpin "),
            "{run:?}"
        );
    }
    let missing = Copy::of("two-node").nicpin(&["-q", "plan", "eth9"]);
    assert!(
        missing.code == 1 && missing.stderr.contains("no interface matches"),
        "{}",
        missing.stderr
    );
}

#[test]
fn colours_are_a_choice() {
    let machine = Copy::of("two-node");
    let coloured = |args: &[&str]| machine.nicpin(args).stdout.contains('\x1b');
    assert!(coloured(&["--color", "always"]) && coloured(&["status", "--color=always"]));
    assert!(
        !coloured(&["--color", "never"]) && !coloured(&["--color", "auto"]) && !coloured(&["-v"])
    );
    assert_eq!(machine.nicpin(&["--color", "sometimes", "status"]).code, 64);
}

/// The README names every command.
#[test]
fn the_readme_names_every_command() {
    let readme =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    for command in commands() {
        let name = command.get_name();
        assert!(
            readme.contains(&format!("nicpin {name}")),
            "README.md lacks nicpin {name}"
        );
    }
}
