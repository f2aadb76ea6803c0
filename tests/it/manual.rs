//! The manual pages and topics: they have every command, option, setting and state.

use std::process::Command as Process;

use crate::help::{bond, commands, defined, examples, options};
use crate::support::run::{MachineTree, nicpin};
use crate::support::temporary;
use nicpin::report::interface::InterfaceState;

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
    for (command, same) in [
        ("man", ["start", "apply"]),
        ("help", ["nicpin.toml", "policy"]),
    ] {
        let [alias, name] = same.map(|word| nicpin(&[command, word]).stdout);
        assert_eq!(alias, name);
        assert!(!name.is_empty());
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
            .contains("/no/such/directory: no such file or directory (ENOENT)"),
        "{}",
        run.stderr
    );
}

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
    let states = states.words();
    for row in InterfaceState::ROWS {
        let (name, means, code) = (row.name, row.means, row.check);
        let said = format!(" {name} {means}. check ends with {code}.");
        assert!(states.contains(&said), "{said}");
    }
    assert!(InterfaceState::ROWS.map(|row| row.state).is_sorted());
    let policy = nicpin(&["help", "policy"]).stdout;
    for setting in nicpin::policy::SETTINGS.iter() {
        assert!(
            policy.contains(&format!("\n  {} ", setting.key)),
            "{}",
            setting.key
        );
    }
    let machine = MachineTree::of("two-socket-mlx4");
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
        let plan = run.json();
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

#[test]
fn the_help_of_man_names_the_pages_of_topics() {
    let help = nicpin(&["man", "--help"]).stdout;
    for page in ["nicpin-states(7)", "nicpin-selectors(7)", "nicpin.toml(5)"] {
        assert!(help.contains(page), "{page}: {help}");
    }
}
