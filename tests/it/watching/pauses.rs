//! When the watcher writes nothing: after a restore until the next apply, and while a trial waits.

use std::fs::OpenOptions;
use std::process::Command;

use nix::sys::signal::Signal;

use super::{IRQ, Watching, affinity, texts_and_times};
use crate::support::run::Copy;
use crate::support::trial::watched_to_the_end;

#[test]
fn a_restore_pauses_the_watcher_until_the_next_apply() {
    let machine = Copy::of("two-node");
    let watching = Watching::start(&machine, &["--guard"]);
    watching.told("as planned");
    let restored = machine.nicpin(&["restore"]);
    assert_eq!(restored.code, 0);
    assert!(
        restored
            .words()
            .contains("nicpin watch is paused until the next nicpin apply"),
        "{restored:?}"
    );
    watching.told("paused by nicpin restore until the next nicpin apply");
    watching.logged("MESSAGE=paused by nicpin restore until the next nicpin apply");
    let before = texts_and_times(&machine);
    watching.signal(Signal::SIGUSR1);
    // A run that was about to begin when the pause came.
    let mut run = Command::new(env!("CARGO_BIN_EXE_nicpin"));
    run.args(["watch-run", "--", "watch", "--root"]);
    let run = run.arg(machine.path("/")).output().unwrap();
    let report = String::from_utf8(run.stdout).unwrap();
    assert!(
        run.status.success() && report.contains("\"paused\": true"),
        "{report}"
    );
    assert!(
        machine
            .nicpin(&["status"])
            .words()
            .contains("; paused by nicpin restore")
    );
    assert!(texts_and_times(&machine) == before);
    let applied = machine.nicpin(&["apply"]);
    assert!(
        applied.words().contains("nicpin watch is no longer paused"),
        "{}",
        applied.stdout
    );
    watching.told("): nothing changed");
    watching.disturb(IRQ);
    watching.end();
    // No watcher, no pause.
    assert!(!machine.nicpin(&["restore"]).stdout.contains("watch"));
    Watching::start(&machine, &[]).told("as planned");
    assert_eq!(machine.nicpin(&["check"]).code, 0);
}

/// A trial may yet be restored, and what fails leaves the pause as it was.
#[test]
fn only_what_is_to_stay_ends_the_pause() {
    const PAUSE: &str = "/run/nicpin/watch-paused.json";
    let machine = Copy::of("two-node");
    let watching = Watching::start(&machine, &[]);
    watching.told("as planned");
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    watching.told("paused by nicpin restore until the next nicpin apply");
    let before = machine.texts();
    assert_eq!(machine.nicpin(&["apply", "--try", "1"]).code, 0);
    watched_to_the_end(&machine);
    assert!(machine.path(PAUSE).exists());
    // The watcher of the trial cannot start.
    machine.remove("/run/nicpin/try.lock");
    std::fs::create_dir(machine.path("/run/nicpin/try.lock")).unwrap();
    assert_eq!(machine.nicpin(&["apply", "--try", "3600"]).code, 1);
    machine.remove("/run/nicpin/try.lock");
    assert!(machine.path(PAUSE).exists());
    let lock = OpenOptions::new()
        .write(true)
        .open(machine.path("/run/nicpin/lock"))
        .unwrap();
    assert!(nicpin::root::sys::try_lock(&lock).unwrap());
    assert_eq!(machine.nicpin(&["restore", "--wait", "0"]).code, 1);
    drop(lock);
    assert!(machine.path(PAUSE).exists());
    assert_eq!(machine.texts(), before);
    assert_eq!(machine.nicpin(&["apply", "--try", "3600"]).code, 0);
    let confirmed = machine.nicpin(&["confirm"]);
    assert!(
        confirmed.code == 0
            && confirmed
                .stdout
                .contains("nicpin watch is no longer paused"),
        "{confirmed:?}"
    );
    watching.told("): nothing changed");
    watching.end();
}

/// A trial of which nothing is left has not begun for the watcher.
#[test]
fn the_watcher_waits_for_no_trial_that_was_undone() {
    let machine = Copy::of("two-node");
    let watching = Watching::start(&machine, &["--observe"]);
    watching.told("not as planned");
    std::fs::hard_link(machine.path(IRQ), machine.path("/other")).unwrap();
    let run = machine.nicpin(&["apply", "--try", "3600", "--atomic", "--json"]);
    let report = run.json();
    assert_eq!(
        (run.code, &report["trial"], report.get("watcher")),
        (1, &serde_json::Value::Null, None)
    );
    watching.end();
}

#[test]
fn a_trial_is_not_corrected() {
    let machine = Copy::of("two-node");
    let watching = Watching::start(&machine, &["--guard"]);
    watching.told("as planned");
    let planned = affinity(&machine, IRQ);
    let trial = machine.nicpin(&["apply", "--try", "3600", "--scope", "remote"]);
    assert_eq!(trial.code, 0);
    assert!(
        trial
            .words()
            .contains("nicpin watch writes nothing until the trial is confirmed"),
        "{trial:?}"
    );
    watching.told("waits until apply --try is confirmed or has ended");
    let tried = affinity(&machine, IRQ);
    assert_ne!(tried, planned);
    watching.signal(Signal::SIGUSR1);
    assert_eq!(machine.nicpin(&["check", "--scope", "remote"]).code, 0);
    // What is confirmed is not the policy of the watcher, which applies its own again.
    assert_eq!(machine.nicpin(&["confirm"]).code, 0);
    while affinity(&machine, IRQ) != planned {
        watching.told("READY=1");
    }
    watching.end();
}
