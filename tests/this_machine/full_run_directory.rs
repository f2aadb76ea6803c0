//! `restore` on a machine whose `/run` is full, by mounts in a namespace of its own.

use std::process::Command;

use crate::support::run::MachineTree;

/// Mounts a tmpfs of 64 kB on `/run` of the machine, in a mount namespace of its own; `fill` fills it.
fn with_small_run(machine: &MachineTree, script: &str) {
    let root = machine.path("/");
    let setup = "mkdir -p $ROOT/run && mount -t tmpfs -o size=64k none $ROOT/run || exit 1
        fill() { dd if=/dev/zero of=$ROOT/run/full bs=1k count=64 2>/dev/null; ! dd if=/dev/zero of=$ROOT/run/more bs=1k count=1 2>/dev/null; }
        nicpin() { $NICPIN \"$@\" --root $ROOT; }
        expect() { code=$1; shift; nicpin \"$@\"; got=$?; [ $got = $code ] || { echo \"$* ends with $got\"; exit 1; }; }
        ";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-uc", &format!("{setup}{script}")]);
    command
        .env("ROOT", root.to_str().unwrap().trim_end_matches('/'))
        .env("NICPIN", env!("CARGO_BIN_EXE_nicpin"));
    let output = command.output().unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(0), "{said}");
}

pub fn a_full_run_keeps_nothing_from_being_restored() {
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    let script =
        "expect 0 apply --scope remote; fill; expect 0 apply --scope remote; expect 0 restore";
    with_small_run(&machine, script);
    assert_eq!(machine.texts(), before);
    // The record of an earlier apply has to be written again.
    let script = "expect 0 apply --scope remote; expect 0 apply --try 1; fill; flock $ROOT/run/nicpin/try.lock true";
    with_small_run(
        &machine,
        &format!("{script}; expect 1 confirm; cp $ROOT/proc/irq/27/smp_affinity $ROOT/remote"),
    );
    let remote = machine.read("/remote");
    machine.remove("/remote");
    with_small_run(&machine, "expect 0 apply --scope remote");
    assert_eq!(
        machine.texts()["/proc/irq/27/smp_affinity"],
        format!("File({:?})", remote.trim())
    );
    with_small_run(
        &machine,
        "expect 0 apply --try 3600; fill; expect 0 confirm; expect 0 restore",
    );
}
