//! When the watcher writes nothing: after a restore until the next apply, and while a trial waits.

use std::fs::OpenOptions;
use std::process::Command;

use nix::sys::signal::Signal;
use snapbox::{assert_data_eq, str};

use super::{IRQ, Watching, about_watch, affinity, message, texts_and_times, watcher};
use crate::support::run::{MachineTree, document};
use crate::support::trial::watched_to_the_end;

#[test]
fn a_restore_pauses_the_watcher_until_the_next_apply() {
    let machine = MachineTree::of("two-node");
    let watching = Watching::start(&machine, &["--guard"]);
    watching.ran("start");
    assert_eq!(document(&machine, &["restore"])["watcher_paused"], true);
    watching.waits_for("apply");
    let paused = watching.logged("paused");
    assert_data_eq!(
        message(&machine, &paused),
        str!["paused by nicpin restore until the next nicpin apply"]
    );
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
    assert_eq!(watcher(&machine)["waits_for"], "apply");
    let paused = machine.nicpin(&["status"]).stdout;
    assert!(texts_and_times(&machine) == before);
    assert_eq!(document(&machine, &["apply"])["watcher"], "resumed");
    assert_eq!(watching.ran("")["changed"], 0);
    watching.disturb(IRQ);
    let screens = ["restore", "apply"].map(|command| machine.nicpin(&[command]).stdout);
    let screens = [&paused, &screens[0], &screens[1]].map(|screen| about_watch(screen));
    assert_data_eq!(
        screens.concat(),
        str![[r"
watcher     runs since [..] (process [..]), 1 run; paused by nicpin [..]
nicpin watch is paused until the next nicpin apply.
nicpin watch is no longer paused.

"]]
    );
    watching.end();
    // No watcher, no pause.
    let restored = document(&machine, &["restore"]);
    assert_eq!(restored.get("watcher_paused"), None);
    Watching::start(&machine, &[]).ran("start");
    assert_eq!(machine.nicpin(&["check"]).code, 0);
}

/// A trial may yet be restored, and what fails leaves the pause as it was.
#[test]
fn only_what_is_to_stay_ends_the_pause() {
    const PAUSE: &str = "/run/nicpin/watch-paused.json";
    let machine = MachineTree::of("two-node");
    let watching = Watching::start(&machine, &[]);
    watching.ran("start");
    assert_eq!(machine.nicpin(&["restore"]).code, 0);
    watching.waits_for("apply");
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
    assert_eq!(confirmed.code, 0, "{confirmed:?}");
    assert_data_eq!(
        confirmed.stdout,
        str![[r"
Confirmed: the settings of apply --try are kept.
nicpin watch is no longer paused.

"]]
    );
    assert!(!machine.path(PAUSE).exists());
    assert_eq!(watching.ran("")["changed"], 0);
    watching.end();
}

/// A trial of which nothing is left has not begun for the watcher.
#[test]
fn the_watcher_waits_for_no_trial_that_was_undone() {
    let machine = MachineTree::of("two-node");
    let watching = Watching::start(&machine, &["--observe"]);
    watching.ran("start");
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
    let machine = MachineTree::of("two-node");
    let watching = Watching::start(&machine, &["--guard"]);
    watching.ran("start");
    let planned = affinity(&machine, IRQ);
    let trial = document(&machine, &["apply", "--try", "3600", "--scope", "remote"]);
    assert_eq!(trial["watcher"], "waits-for-trial");
    watching.waits_for("trial");
    let tried = affinity(&machine, IRQ);
    assert_ne!(tried, planned);
    assert_eq!(watcher(&machine)["waits_for"], "trial");
    watching.signal(Signal::SIGUSR1);
    assert_eq!(machine.nicpin(&["check", "--scope", "remote"]).code, 0);
    // What is confirmed is not the policy of the watcher, which applies its own again.
    assert_eq!(machine.nicpin(&["confirm"]).code, 0);
    while affinity(&machine, IRQ) != planned {
        watching.told("READY=1");
    }
    watching.end();
}

/// As when systemd starts it again.
#[test]
fn a_watcher_that_starts_during_a_trial_says_what_it_waits_for() {
    let machine = MachineTree::of("two-node");
    document(&machine, &["apply", "--try", "3600"]);
    let watching = Watching::start(&machine, &[]);
    assert_data_eq!(
        watching.told("until"),
        str![[r"
READY=1
STATUS=waits until apply --try is confirmed or has ended
"]]
    );
    assert_eq!(machine.nicpin(&["confirm"]).code, 0);
    watching.ran("");
    watching.end();
}
