//! The process that watches a trial.

use std::fs::File;
use std::time::Duration;

use nicpin::root::sys::try_lock;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::run::Copy;

/// Waits until the watcher has ended.
pub fn watched_to_the_end(machine: &Copy) {
    let lock = File::open(machine.path("/run/nicpin/try.lock")).unwrap();
    while !try_lock(&lock).unwrap() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The watcher, while it runs.
pub fn watcher(machine: &Copy) -> Pid {
    Pid::from_raw(machine.read("/run/nicpin/try.lock").trim().parse().unwrap())
}

/// Kills the watcher, and waits for its end.
pub fn kill_watcher(machine: &Copy) {
    kill(watcher(machine), Signal::SIGKILL).unwrap();
    watched_to_the_end(machine);
}
