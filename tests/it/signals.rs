//! SIGTERM and SIGINT during apply and restore: the current write ends, no other begins, the record is as the machine
//! is, and the report says so. A request to stop holds for the rest of the process: each test has one of its own.

use std::fs::File;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::host::read_and_plan;
use crate::support::kernel::default_signals;
use crate::support::run::{MachineTree, in_its_own_process};
use nicpin::apply::{self, Options};
use nicpin::report::applied::Applied;
use nicpin::report::outcome::{ChannelOutcome, WriteResult};
use nicpin::root::Root;
use nicpin::root::faults::{FileAction, InjectedAnswer};

/// Asks to stop during the third write.
fn stopping_root(machine: &MachineTree) -> Root {
    let writes = AtomicUsize::new(0);
    Root::open_with_faults(machine.dir(), move |access| {
        if access.action == FileAction::Write && writes.fetch_add(1, Ordering::Relaxed) == 2 {
            apply::stop("ended by SIGTERM".to_owned());
        }
        InjectedAnswer::Done
    })
    .unwrap()
}

fn apply_to(root: &Root, atomic: bool) -> Applied {
    let options = Options {
        atomic,
        ..Options::default()
    };
    apply::apply(root, options, |root| read_and_plan(root, &[], &[])).unwrap()
}

fn changed(results: &[WriteResult]) -> usize {
    let left_out = results.iter().filter(|result| !result.changed());
    for result in left_out {
        let why = result.detail.as_deref().unwrap();
        assert!(why.contains("ended by SIGTERM"), "{why}");
    }
    results.iter().filter(|result| result.changed()).count()
}

#[test]
fn an_apply_ends_after_the_current_write() {
    if !in_its_own_process("signals::an_apply_ends_after_the_current_write") {
        return;
    }
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    let done = apply_to(&stopping_root(&machine), false);
    assert_eq!(
        (
            changed(&done.results),
            done.results.len() > 3,
            done.failed()
        ),
        (3, true, true)
    );
    assert_ne!(machine.texts(), before);
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.texts(), before);
}

#[test]
fn an_atomic_apply_restores_what_it_has_written() {
    if !in_its_own_process("signals::an_atomic_apply_restores_what_it_has_written") {
        return;
    }
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    let done = apply_to(&stopping_root(&machine), true);
    assert_eq!(changed(&done.results), 3);
    assert!(done.undone.is_some_and(|undone| undone.complete()));
    assert_eq!(machine.texts(), before);
    assert!(!machine.path("/run/nicpin/state.json").exists());
}

#[test]
fn a_restore_ends_after_the_current_write_and_can_be_repeated() {
    if !in_its_own_process("signals::a_restore_ends_after_the_current_write_and_can_be_repeated") {
        return;
    }
    let machine = MachineTree::of("two-node");
    let before = machine.texts();
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let restored = apply::restore(&stopping_root(&machine), Duration::from_secs(1))
        .unwrap()
        .unwrap();
    assert_eq!(
        (
            changed(&restored.results),
            restored.failed(),
            restored.results.len() > 3
        ),
        (3, true, true)
    );
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(machine.texts(), before);
}

#[test]
fn channels_are_not_changed_after_a_request() {
    if !in_its_own_process("signals::channels_are_not_changed_after_a_request") {
        return;
    }
    let machine = MachineTree::of("dl980");
    let args = &["apply", "eth0", "--channels", "8"];
    let root = Root::open(machine.dir()).unwrap();
    let channels = || {
        machine
            .read("/nicpin/ethtool/eth0/channels")
            .trim()
            .to_owned()
    };
    let before = channels();
    apply::stop("ended by SIGTERM".to_owned());
    let left_out = |channels: &[ChannelOutcome]| {
        channels[0].refused.as_deref() == Some("not written: ended by SIGTERM; fix: run again")
    };
    let done = apply::apply(&root, Options::default(), |root| {
        read_and_plan(root, &[("channels", "8")], &["eth0"])
    });
    assert!(left_out(&done.unwrap().channels));
    assert_eq!(channels(), before);
    assert_eq!(machine.nicpin(args).code, 0);
    let applied = channels();
    assert_ne!(applied, before);
    let restored = apply::restore(&root, Duration::from_secs(1));
    assert!(left_out(&restored.unwrap().unwrap().channels));
    assert_eq!(channels(), applied);
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    assert_eq!(channels(), before);
}

/// Tries again if the program had written everything when the signal came.
#[test]
fn a_signal_to_the_program_is_such_a_request() {
    for attempt in 0.. {
        let machine = MachineTree::of("wide");
        let before = machine.texts();
        let mut command = Command::new(env!("CARGO_BIN_EXE_nicpin"));
        command
            .args(["apply", "--atomic", "--root"])
            .arg(machine.path("/"));
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while !machine.path("/run/nicpin/state.json").exists() {
            std::thread::yield_now();
        }
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        while !catches(pid) {
            std::thread::yield_now();
        }
        kill(pid, Signal::SIGTERM).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        if output.status.code() != Some(1) && attempt < 50 {
            continue;
        }
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("SIGTERM"), "{said}");
        assert_eq!(machine.texts(), before);
        break;
    }
}

/// Whether the process has ended or has blocked SIGTERM to wait for it.
fn catches(pid: Pid) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else {
        return true;
    };
    let Some(mask) = status.lines().find_map(|line| line.strip_prefix("SigBlk:")) else {
        return true;
    };
    status.contains("State:\tZ") || u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << 14) != 0
}

#[test]
fn a_restore_that_waits_for_another_nicpin_ends() {
    let machine = MachineTree::of("two-node");
    assert_eq!(machine.nicpin(&["apply"]).code, 0);
    let lock = File::options()
        .write(true)
        .open(machine.path("/run/nicpin/lock"))
        .unwrap();
    assert!(nicpin::root::sys::try_lock(&lock).unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_nicpin"));
    command
        .args(["restore", "--wait", "3600", "--root"])
        .arg(machine.path("/"));
    default_signals();
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    while !catches(pid) {
        std::thread::yield_now();
    }
    kill(pid, Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(1) && said.contains("locked by"),
        "{said}"
    );
}
