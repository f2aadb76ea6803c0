//! A command that writes trusts only files that no user but root and the one who runs it may write.

use snapbox::{assert_data_eq, str};

use crate::support::run::MachineTree;
use crate::support::temporary;

#[test]
fn a_policy_that_other_users_may_write_is_not_applied() {
    let mut said = String::new();
    for mode in [0o666, 0o646] {
        let machine = MachineTree::with_policy(mode);
        let policy = machine.path("/etc/nicpin.toml");
        let refused = machine.fails(&["apply"], 1);
        let named = machine.fails(&["apply", "--config", policy.to_str().unwrap()], 1);
        assert_eq!(refused, named);
        said += &refused;
        let run = machine.nicpin(&["irqbalance-policy", "/sys", "1"]);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
        // Commands that only read use any policy.
        assert_eq!(machine.nicpin(&["plan"]).code, 0);
        machine.set_mode("/etc/nicpin.toml", 0o644);
        assert_eq!(machine.nicpin(&["apply"]).code, 0);
    }
    assert_data_eq!(
        said,
        str![[r"
nicpin: ROOT/etc/nicpin.toml: is writable by everybody (mode 0666), so nicpin does not trust it; fix: chmod go-w it
nicpin: ROOT/etc/nicpin.toml: is writable by everybody (mode 0646), so nicpin does not trust it; fix: chmod go-w it

"]]
    );
}

#[test]
fn a_policy_in_a_directory_that_other_users_may_write_is_not_applied_unless_it_is_sticky() {
    let machine = MachineTree::with_policy(0o644);
    machine.set_mode("/etc", 0o777);
    assert_data_eq!(
        machine.fails(&["apply"], 1),
        str![[r"
nicpin: ROOT/etc: is writable by everybody (mode 0777), so nicpin does not trust it; fix: chmod go-w it

"]]
    );
    machine.set_mode("/etc", 0o1777);
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
}

/// kubelet makes of a Secret a directory with the sticky bit, in which links lead to the newest content.
#[test]
fn a_policy_in_a_secret_of_kubernetes_is_applied() {
    let manifest = include_str!("../../dist/kubernetes/nicpin.yaml");
    assert!(manifest.contains("          secret:\n            secretName: nicpin\n"));
    let machine = MachineTree::with_policy(0o644);
    let (content, policy) = (
        machine.path("/etc/..2026"),
        machine.path("/etc/nicpin.toml"),
    );
    std::fs::create_dir(&content).unwrap();
    std::fs::rename(&policy, content.join("nicpin.toml")).unwrap();
    for (target, link) in [
        ("..2026", "/etc/..data"),
        ("..data/nicpin.toml", "/etc/nicpin.toml"),
    ] {
        std::os::unix::fs::symlink(target, machine.path(link)).unwrap();
    }
    machine.set_mode("/etc", 0o1777);
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
}

/// Whoever can write a directory on the way can put a link to any file into it.
#[test]
fn a_policy_behind_a_directory_that_other_users_may_write_is_not_applied() {
    let machine = MachineTree::with_policy(0o644);
    for directory in ["/open", "/open/inner", "/closed"] {
        std::fs::create_dir(machine.path(directory)).unwrap();
        machine.set_mode(directory, 0o755);
    }
    let policy = machine.path("/etc/nicpin.toml");
    let links = [
        ("/closed/policy", "../etc/policy"),
        ("/open/link", "/closed/policy"),
        ("/open/inner/x", "../link"),
    ];
    for (link, target) in links {
        std::os::unix::fs::symlink(target, machine.path(link)).unwrap();
    }
    std::fs::rename(&policy, machine.path("/etc/policy")).unwrap();
    std::fs::copy(
        machine.path("/etc/policy"),
        machine.path("/open/inner/policy"),
    )
    .unwrap();
    for target in [
        "/open/inner/policy",
        "../open/inner/policy",
        "/open/link",
        "../open/inner/x",
        "/closed/../open/link",
    ] {
        std::os::unix::fs::symlink(target, &policy).unwrap();
        machine.set_mode("/open", 0o777);
        let mut commands = vec![vec!["apply"]];
        if target == "../open/inner/policy" {
            commands.push(vec!["apply", "--config", policy.to_str().unwrap()]);
        }
        for command in commands {
            assert_data_eq!(
                machine.fails(&command, 1),
                str![[r"
nicpin: ROOT/open: is writable by everybody (mode 0777), so nicpin does not trust it; fix: chmod go-w it

"]]
            );
        }
        machine.set_mode("/open", 0o1777);
        let run = machine.nicpin(&["apply"]);
        assert_eq!(run.code, 0, "{target}: {}", run.stderr);
        std::fs::remove_file(&policy).unwrap();
    }
}

#[test]
fn state_files_that_other_users_may_write_are_not_used() {
    let mut said = String::new();
    for (path, mode) in [
        ("/run/nicpin", 0o777),
        ("/run/nicpin/lock", 0o666),
        ("/run/nicpin/state.json", 0o602),
    ] {
        let machine = MachineTree::of("two-node");
        assert_eq!(machine.nicpin(&["apply"]).code, 0);
        machine.set_mode(path, mode);
        said += &machine.fails_to_apply_and_restore();
    }
    assert_data_eq!(
        said,
        str![[r"
nicpin: ROOT/run/nicpin: is writable by everybody (mode 0777), so nicpin does not trust it; fix: chmod go-w it
nicpin: ROOT/run/nicpin/lock: is writable by everybody (mode 0666), so nicpin does not trust it; fix: chmod go-w it
nicpin: ROOT/run/nicpin/state.json: is writable by everybody (mode 0602), so nicpin does not trust it; fix: chmod go-w it

"]]
    );
}

/// Whoever can open a file can hold a lock on it. All may read the record: `check` names its reasons.
#[test]
fn only_their_owner_may_open_the_locks() {
    let machine = MachineTree::of("two-node");
    for _ in 0..2 {
        assert_eq!(machine.nicpin(&["apply", "--try", "3600"]).code, 0);
        assert_eq!(machine.nicpin(&["confirm"]).code, 0);
        for (path, expected) in [
            ("/run/nicpin/lock", 0o600),
            ("/run/nicpin/try.lock", 0o600),
            ("/run/nicpin/state.json", 0o644),
        ] {
            assert_eq!(machine.mode(path), expected, "{path}");
            machine.set_mode(path, 0o644);
        }
    }
}

#[test]
fn state_files_behind_a_link_are_not_used() {
    let machine = MachineTree::of("two-node");
    let outside = temporary();
    std::fs::create_dir(machine.path("/run")).unwrap();
    std::os::unix::fs::symlink(outside.path(), machine.path("/run/nicpin")).unwrap();
    assert_data_eq!(
        machine.fails(&["apply"], 1),
        str![[r"
nicpin: ROOT/run/nicpin: not a directory (ENOTDIR): nicpin keeps its lock and its state files there

"]]
    );
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn apply_creates_no_file_but_its_state_files() {
    let machine = MachineTree::of("four-node");
    let paths = || machine.snapshot().into_keys().collect::<Vec<_>>();
    let before = paths();
    assert_eq!(machine.nicpin(&["apply", "--rfs", "4096"]).code, 0);
    assert_eq!(paths(), before);
    let mut made: Vec<_> = crate::support::tree::names(&machine.path("/run/nicpin"));
    made.sort();
    assert_eq!(made, ["lock", "state.json"]);
}

#[test]
fn the_environment_changes_nothing() {
    let machine = MachineTree::of("two-node");
    let plan = machine.nicpin(&["plan", "--format", "json"]).stdout;
    let other = crate::support::run::fixture("wide");
    let elsewhere = temporary();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nicpin"));
    command
        .args(["plan", "--format", "json", "--root"])
        .arg(machine.path("/"))
        .env_clear();
    for name in [
        "NICPIN_ROOT",
        "NICPIN_CONFIG",
        "NICPIN_STATE",
        "ROOT",
        "HOME",
        "TMPDIR",
        "XDG_CONFIG_HOME",
        "PATH",
    ] {
        command.env(name, &other);
    }
    for name in [
        "RUNTIME_DIRECTORY",
        "STATE_DIRECTORY",
        "CONFIGURATION_DIRECTORY",
        "XDG_RUNTIME_DIR",
    ] {
        command.env(name, elsewhere.path());
    }
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), plan);
    let mut apply = std::process::Command::new(env!("CARGO_BIN_EXE_nicpin"));
    apply
        .args(["apply", "--root"])
        .arg(machine.path("/"))
        .env("RUNTIME_DIRECTORY", elsewhere.path());
    assert!(apply.output().unwrap().status.success());
    assert!(machine.path("/run/nicpin/state.json").exists());
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}
