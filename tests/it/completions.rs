//! Completions: they have every command and option, and the names that the machine has.

use std::os::unix::fs::symlink;
use std::process::Command as Process;

use crate::help::{commands, options};
use crate::support::run::{MachineTree, nicpin};
use crate::support::temporary;

/// What nicpin answers the script of fish, without the descriptions.
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
    let machine = MachineTree::of("dl980");
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
    let machine = MachineTree::of("two-node");
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
    // A program and its arguments are left to bash.
    for command in ["measure", "run", "compare"] {
        assert_eq!(
            answer("bash", &[&root, command, "nic0", "--", "n"]),
            "",
            "{command}"
        );
    }
}
