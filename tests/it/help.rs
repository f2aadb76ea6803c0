//! Help with examples that run, errors for typing mistakes, and what the options of all commands do: complete for any
//! command, since all of it is made from the definitions.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command as Process;

use clap::{Command, Parser as _};

use crate::commands::Cli;
use crate::support::run::{MachineTree, fixture, nicpin};
use crate::support::temporary;

pub fn defined() -> Command {
    let mut command = crate::commands::defined().disable_help_subcommand(true);
    command.build();
    command
}

pub fn commands() -> Vec<Command> {
    defined()
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned()
        .collect()
}

pub fn options(command: &Command) -> Vec<String> {
    let shown = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set());
    shown
        .filter_map(|argument| argument.get_long())
        .map(|long| format!("--{long}"))
        .collect()
}

pub fn examples(command: &Command) -> Vec<String> {
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

/// Returns the command line of an example without the explanation and without other programs.
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

/// Also those that `-h` leaves out.
#[test]
fn each_option_of_a_manual_page_has_a_text() {
    for command in ["plan", "apply", "watch", "draw"] {
        let page = nicpin(&["man", command]).stdout;
        let lines: Vec<&str> = page.lines().collect();
        let bare: Vec<_> = lines
            .windows(2)
            .filter(|pair| pair[0].starts_with(r"\fB\-") && pair[1].starts_with('.'))
            .collect();
        assert!(page.contains(r"\-\-siblings"), "{page}");
        assert!(bare.is_empty(), "{command}: {bare:?}");
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
    let machine = MachineTree::of("dl980");
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
            // Nobody waits for a sample here.
            for (option, least) in [("--seconds", "0.1"), ("--prove", "1")] {
                if let Some(at) = words.iter().position(|word| word == option) {
                    least.clone_into(&mut words[at + 1]);
                }
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

pub fn bond(machine: &MachineTree, lower: &str) {
    std::fs::create_dir(machine.path("/sys/class/net/bond0")).unwrap();
    symlink(
        format!("../{lower}"),
        machine.path(&format!("/sys/class/net/bond0/lower_{lower}")),
    )
    .unwrap();
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
        let said = |options: &[&str]| MachineTree::of("two-node").nicpin(&[args, options].concat());
        let (short, long) = (said(&["-j"]), said(&["--format", "json"]));
        let json = short.json();
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
    let capture = |options: &[&str]| {
        let dir = temporary();
        let file = dir.path().join("capture.tar.gz");
        let run = MachineTree::of("two-node")
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
    for args in [&["completions", "bash"][..], &["man"], &["draw"]] {
        let run = nicpin(&[&["-q"], args].concat());
        assert!(run.code == 64 && run.stdout.is_empty(), "{run:?}");
        assert!(run.stderr.starts_with("nicpin: --quiet "), "{run:?}");
    }
    let missing = MachineTree::of("two-node").nicpin(&["-q", "plan", "eth9"]);
    assert!(
        missing.code == 1 && missing.stderr.lines().count() == 1,
        "{}",
        missing.stderr
    );
}

#[test]
fn colours_are_a_choice() {
    let machine = MachineTree::of("two-node");
    let coloured = |args: &[&str]| machine.nicpin(args).stdout.contains('\x1b');
    assert!(coloured(&["--color", "always"]) && coloured(&["status", "--color=always"]));
    assert!(
        !coloured(&["--color", "never"]) && !coloured(&["--color", "auto"]) && !coloured(&["-v"])
    );
    assert_eq!(machine.nicpin(&["--color", "sometimes", "status"]).code, 64);
    let machine = MachineTree::of("two-socket-mlx4");
    for command in ["status", "check"] {
        let text = machine.nicpin(&[command, "--color", "always"]).stdout;
        assert!(text.contains("\x1b[1m\x1b[31mremote"), "{text}");
        let plain = text.replace("\x1b[1m", "").replace("\x1b[31m", "");
        let plain = plain.replace("\x1b[33m", "").replace("\x1b[0m", "");
        assert_eq!(plain, machine.nicpin(&[command]).stdout);
    }
}

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

/// The first word of the next line has no room on the line.
#[test]
fn paragraphs_of_help_fill_the_screen() {
    for command in commands() {
        let help =
            MachineTree::of("two-node").nicpin_on_terminal(&[command.get_name(), "--help"], 80);
        let lines: Vec<&str> = help.lines().collect();
        for pair in lines.windows(2) {
            let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ');
            if !pair.iter().all(|line| is_text(line)) {
                continue;
            }
            let word = pair[1].split(' ').next().unwrap_or_default();
            let length = pair[0].chars().count() + 1 + word.chars().count();
            assert!(length > 80, "{}: {pair:?}", command.get_name());
        }
    }
}
