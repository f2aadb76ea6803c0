//! Selectors, commands and options that are wrong, and what is meant in their place.

use crate::support::run::{Copy, nicpin};

#[test]
fn an_unknown_interface_names_the_nearest() {
    let machine = Copy::of("dl980");
    for command in ["plan", "check", "apply"] {
        machine.fails(
            &[command, "eth22"],
            1,
            &["no interface matches `eth22`", "eth2"],
        );
    }
    machine.fails(&["plan", "driver:mlx4_en"], 1, &["driver:mlx5_core"]);
    let run = machine.nicpin(&["apply", "--if-present", "eth22", "--json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let report = run.json();
    let note = &report["notes"][0];
    assert_eq!(
        (&note["code"], &note["selector"]),
        (&"not-present".into(), &"eth22".into())
    );
    assert_eq!(report["changed"], 0);
}

#[test]
fn a_malformed_selector_is_a_usage_error() {
    let machine = Copy::of("two-node");
    for selector in ["pci:21", "node:first", "driver:"] {
        machine.fails(&["plan", selector], 64, &[selector, "is not a selector"]);
    }
}

#[test]
fn other_programs_words_point_to_commands() {
    let machine = Copy::of("two-node");
    for (args, command) in [
        (&["show"][..], "status"),
        (&["list", "nic0"], "status"),
        (&["undo"], "restore"),
        (&["-q", "topology"], "nodes"),
    ] {
        let has =
            format!("is neither a command nor an interface; did you mean `nicpin {command}`?");
        machine.fails(args, 64, &[&has]);
    }
    for (args, line) in [
        (&["explain"][..], "plan --explain"),
        (&["plan", "explain"], "plan --explain"),
        (&["check", "nic0", "explain"], "plan --explain"),
        (&["apply", "dry-run"], "apply --dry-run"),
        (&["plan", "json"], "plan --json"),
    ] {
        let has = format!("did you mean `nicpin {line}`?");
        machine.fails(args, 64, &[&has]);
    }
    // A script may name an interface that is not there.
    for name in ["undo", "lan", "check"] {
        machine.fails(&["apply", name], 1, &["no interface matches"]);
    }
    for args in [&["-a", "plan"], &["nic0", "plan"]] {
        machine.fails(
            args,
            64,
            &["`plan` is a command, which comes before its options"],
        );
    }
    let named = machine.nicpin(&["plan", "--format", "sh", "0000:21:00.0"]);
    assert_eq!((named.code, named.stderr.as_str()), (0, ""));
    assert_eq!(
        named.stdout,
        machine
            .nicpin(&["plan", "--format", "sh", "21:00.0"])
            .stdout
    );
    assert_eq!(
        named.stdout,
        machine
            .nicpin(&["plan", "--format", "sh", "pci:21:00.0"])
            .stdout
    );
    machine.fails(
        &["plan", "21:00.7"],
        1,
        &["no interface matches `21:00.7`", "pci:0000:21:00.0"],
    );
}

#[test]
fn a_dry_run_is_the_plan() {
    let machine = Copy::of("two-node");
    let before = machine.snapshot();
    for format in ["json", "table"] {
        let (plan, dry) = (
            machine.nicpin(&["plan", "--format", format, "nic0"]),
            machine.nicpin(&["apply", "--dry-run", "--format", format, "nic0"]),
        );
        assert_eq!(
            (dry.code, dry.stderr.as_str(), dry.stdout),
            (0, "", plan.stdout),
            "{format}"
        );
    }
    assert_eq!(
        machine
            .nicpin(&["apply", "--dry-run", "--detailed-exitcode"])
            .code,
        2
    );
    for effect in [&["--try", "9"][..], &["--prove", "1"], &["--atomic"]] {
        assert_eq!(
            machine
                .nicpin(&[&["apply", "--dry-run"], effect].concat())
                .code,
            64,
            "{effect:?}"
        );
    }
    let stored = machine.path("/plan.json");
    std::fs::write(&stored, machine.nicpin(&["plan", "-j"]).stdout).unwrap();
    let before_stored = machine.snapshot();
    let run = machine.nicpin(&[
        "apply",
        "--dry-run",
        "-j",
        "--plan",
        stored.to_str().unwrap(),
    ]);
    assert_eq!((run.code, run.stdout), (0, machine.read("/plan.json")));
    assert_eq!(machine.snapshot(), before_stored);
    assert_eq!(before_stored.len(), before.len() + 1);
}

#[test]
fn an_interface_name_is_exact() {
    let machine = Copy::of("dl980");
    machine.fails(&["plan", "eth"], 1, &["no interface matches `eth`"]);
    machine.fails(&["plan", "eth11"], 1, &["no interface matches `eth11`"]);
}

#[test]
fn usage_errors_exit_64_and_help_exits_0() {
    for args in [
        &["plan", "--format", "xml"][..],
        &["--frobnicate"],
        &["plan", "--scope", "near"],
        &["plan", "--rfs", "0"],
        &["plan", "--exclude", "3-1"],
        &["plan", "--irq-cores", "0"],
        &["check", "--format", "sh"],
        &["restore", "eth0"],
        &["apply", "--wait", "long"],
    ] {
        let run = nicpin(args);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (64, ""),
            "{args:?}: {}",
            run.stderr
        );
        assert!(!run.stderr.is_empty());
    }
    for args in [
        &["--help"][..],
        &["--version"],
        &["plan", "--help"],
        &["help", "apply"],
        &["check", "-h"],
        &["stop", "-h"],
    ] {
        let run = nicpin(args);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{args:?}");
    }
    assert!(nicpin(&["--help"]).stdout.contains("64   usage"));
}
