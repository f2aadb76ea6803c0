//! Selectors, commands and options that are wrong, and what is meant in their place.

use snapbox::{assert_data_eq, str};

use crate::support::run::{MachineTree, document, expect, nicpin};

#[test]
fn an_unknown_interface_names_the_nearest() {
    let machine = MachineTree::of("dl980");
    for command in ["plan", "check", "apply"] {
        assert_data_eq!(
            machine.fails(&[command, "eth22"], 1),
            str![[r"
nicpin: no interface matches `eth22`; there is eth2, eth0, eth1, eth3, eth4

"]]
        );
    }
    assert_data_eq!(
        machine.fails(&["plan", "driver:mlx4_en"], 1),
        str![[r"
nicpin: no interface matches `driver:mlx4_en`; there is driver:mlx5_core, driver:i40e, driver:ixgbe, driver:bnx2x

"]]
    );
    let report = document(&machine, &["apply", "--if-present", "eth22"]);
    let note = &report["notes"][0];
    assert_eq!(
        (&note["code"], &note["selector"]),
        (&"not-present".into(), &"eth22".into())
    );
    assert_eq!(report["changed"], 0);
}

#[test]
fn a_malformed_selector_is_a_usage_error() {
    let machine = MachineTree::of("two-node");
    let selectors = ["pci:21", "node:first", "driver:"];
    let said = selectors.map(|selector| machine.fails(&["plan", selector], 64));
    assert_data_eq!(
        said.concat(),
        str![[r"
nicpin: `pci:21` is not a selector: expected an address such as pci:0000:3b:00.0
nicpin: `node:first` is not a selector: expected a node number such as node:1
nicpin: `driver:` is not a selector: expected a driver name such as driver:mlx5_core

"]]
    );
}

#[test]
fn other_programs_words_point_to_commands() {
    let machine = MachineTree::of("two-node");
    let fails = |args: &[&str], code| {
        let said = machine.fails(args, code);
        format!("$ nicpin {}\n{said}", args.join(" "))
    };
    let meant = [
        &["show"][..],
        &["list", "nic0"],
        &["undo"],
        &["-q", "topology"],
        &["explain"],
        &["irqbalance"],
        &["plan", "explain"],
        &["check", "nic0", "explain"],
        &["apply", "dry-run"],
        &["plan", "json"],
        &["-a", "plan"],
        &["nic0", "plan"],
    ];
    // A script may name an interface that is not there.
    let absent = ["undo", "lan", "check"].map(|name| fails(&["apply", name], 1));
    let said = meant.map(|args| fails(args, 64)).concat() + &absent.concat();
    expect("commands-of-others.errors.txt", said);
    for (args, tip) in [
        (["check", "--nagios"], "nicpin check --format nagios"),
        (["status", "--masks"], "nicpin plan --masks"),
    ] {
        let run = nicpin(&args);
        assert!(run.code == 64 && run.stderr.contains(tip), "{run:?}");
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
    assert_data_eq!(
        machine.fails(&["plan", "21:00.7"], 1),
        str![[r"
nicpin: no interface matches `21:00.7`; there is pci:0000:21:00.0, pci:0000:41:00.0

"]]
    );
}

#[test]
fn a_dry_run_is_the_plan() {
    let machine = MachineTree::of("two-node");
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
    let machine = MachineTree::of("dl980");
    let said = ["eth", "eth11"].map(|name| machine.fails(&["plan", name], 1));
    assert_data_eq!(
        said.concat(),
        str![[r"
nicpin: no interface matches `eth`; there is eth0, eth1, eth2, eth3, eth4
nicpin: no interface matches `eth11`; there is eth1, eth0, eth2, eth3, eth4

"]]
    );
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
    let help = nicpin(&["--help"]).stdout;
    let mut lines = help.lines().map(str::trim_start);
    assert!(lines.any(|line| line.starts_with("64 ")), "{help}");
}
