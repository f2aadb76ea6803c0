//! Policy files that change while the watcher runs, wherever they are.

use std::os::unix::fs::symlink;
use std::path::Path;

use nix::sys::signal::Signal;
use snapbox::{assert_data_eq, str};

use super::{IRQ, Watching, affinity, message};
use crate::support::run::{MachineTree, assert_line, text};

#[test]
fn a_policy_is_taken_when_it_is_valid() {
    let machine = MachineTree::with_policy(0o644);
    let watching = Watching::start(&machine, &[]);
    watching.ran("start");
    let first = machine.read("/etc/nicpin.toml");
    let planned = affinity(&machine, IRQ);
    // A new file in its place, as editors and provisioning write it.
    machine.write("/etc/new", "[defaults]\nexclude = \"1\"\n");
    std::fs::rename(machine.path("/etc/new"), machine.path("/etc/nicpin.toml")).unwrap();
    watching.logged("nicpin.toml: the policy is in force");
    watching.ran("policy");
    assert_eq!(machine.nicpin(&["check"]).code, 0);
    let second = machine.nicpin(&["plan", "--format", "sh"]).stdout;

    machine.write("/etc/nicpin.toml", "exlude = 1\n");
    let warning = watching.logged("the policy before stays in force");
    assert!(warning.contains("PRIORITY=4\n"), "{warning}");
    assert_line(
        message(&machine, &warning),
        str![[r"
ROOT/etc/nicpin.toml: line 1, column 1: unknown key `exlude`; expected one of defaults, rule, driver, only-gain, irqbalance; the policy before stays in force

"]],
    );
    watching.ran("policy");
    machine.write(IRQ, "ff\n");
    watching.signal(Signal::SIGUSR1);
    assert_eq!(watching.ran("SIGUSR1")["changed"], 1);
    machine.write("/etc/nicpin.toml", "[defaults]\nexclude = \"1\"\n");
    watching.logged("nicpin.toml: the policy is in force");
    assert_eq!(machine.nicpin(&["plan", "--format", "sh"]).stdout, second);
    assert_eq!(machine.nicpin(&["check"]).code, 0);

    machine.write("/etc/nicpin.toml", &first);
    watching.signal(Signal::SIGHUP);
    let reloading = watching.told("RELOADING=1");
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    while affinity(&machine, IRQ) != planned {
        watching.told("READY=1");
    }
    watching.end();
    // At the start there is none that could stay in force.
    machine.write("/etc/nicpin.toml", "exlude = 1\n");
    assert_data_eq!(
        machine.fails(&["watch"], 64),
        str![[r"
nicpin: ROOT/etc/nicpin.toml: line 1, column 1: unknown key `exlude`; expected one of defaults, rule, driver, only-gain, irqbalance

"]]
    );
}

#[test]
fn what_a_rule_asks_in_vain_is_said() {
    let machine = MachineTree::with_policy(0o644);
    let rule = "[[rule]]\nmatch = { name = \"nic0\" }\nset = { rss = 4 }\n";
    machine.write("/etc/nicpin.toml", rule);
    let messages = [&["--observe"][..], &[]].map(|options| {
        let watching = Watching::start(&machine, options);
        let logged = message(&machine, &watching.logged("not planned"));
        watching.end();
        logged + "\n"
    });
    assert_data_eq!(
        messages.concat(),
        str![[r"
start: 12 settings not as planned, 1 could not be determined; nicpin apply would change them; nic0 is not planned: RSS over 4 queues requested, but the driver reports no RSS table
start: 12 settings changed, 1 failed; nic0 is not planned: RSS over 4 queues requested, but the driver reports no RSS table

"]]
    );
}

/// A Secret of Kubernetes is changed by a link to its new directory, again and again, before the old one is removed.
#[test]
fn a_policy_behind_a_link_that_changes_is_followed() {
    let machine = MachineTree::with_policy(0o644);
    let lead = |version: &str, cpu: u32| {
        let directory = format!("/etc/{version}");
        std::fs::create_dir(machine.path(&directory)).unwrap();
        machine.set_mode(&directory, 0o755);
        let file = format!("{directory}/nicpin.toml");
        machine.write(&file, &format!("[defaults]\nexclude = \"{cpu}\"\n"));
        machine.set_mode(&file, 0o644);
        symlink(version, machine.path("/etc/new")).unwrap();
        std::fs::rename(machine.path("/etc/new"), machine.path("/etc/data")).unwrap();
    };
    lead("v1", 5);
    machine.remove("/etc/nicpin.toml");
    symlink("data/nicpin.toml", machine.path("/etc/nicpin.toml")).unwrap();
    let watching = Watching::start(&machine, &[]);
    watching.ran("start");
    for (version, cpu) in [("v2", 6), ("v3", 7)] {
        lead(version, cpu);
        watching.logged("nicpin.toml: the policy is in force");
        watching.ran("policy");
    }
    // In the directory that it leads to now.
    machine.write("/etc/v3/nicpin.toml", "[defaults]\nexclude = \"6\"\n");
    watching.logged("nicpin.toml: the policy is in force");
    watching.end();
}

/// Without irqbalance, its directory is waited for in `/run`, too.
#[test]
fn a_policy_in_run_of_a_relative_root_is_followed() {
    let machine = MachineTree::of("two-node");
    let write = |cpu: u32| {
        machine.write(
            "/run/new.toml",
            &format!("[defaults]\nexclude = \"{cpu}\"\n"),
        );
        machine.set_mode("/run/new.toml", 0o644);
        std::fs::rename(
            machine.path("/run/new.toml"),
            machine.path("/run/nicpin.toml"),
        )
        .unwrap();
    };
    std::fs::create_dir_all(machine.path("/run")).unwrap();
    machine.set_mode("/run", 0o755);
    write(5);
    let args = ["--config", "run/nicpin.toml"];
    let watching = Watching::start_with(&machine, Path::new("."), &args, &[]);
    watching.ran("start");
    write(6);
    watching.ran("policy");
    watching.end();
}

/// All kinds of programs write to /dev/null: it is a policy without a line, and no event.
#[test]
fn a_policy_that_is_no_file_is_not_waited_for() {
    let machine = MachineTree::of("two-node");
    let watching = Watching::start(&machine, &["--guard", "--config", "/dev/null"]);
    watching.ran("start");
    std::fs::write("/dev/null", "x").unwrap();
    // The first run since then is for what came after it.
    machine.write(IRQ, "ff\n");
    let run = watching.ran("");
    assert!(text(&run, "event").contains("IRQ 36"), "{run}");
    watching.end();
}
