//! The process that watches a trial.

use std::fs::File;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::run::MachineTree;
use super::wait_until;

pub fn watched_to_the_end(machine: &MachineTree) {
    let file = File::open(machine.path("/run/nicpin/try.lock")).unwrap();
    // Unlocked at once: after a mere close, a process that another test has just started would still hold the lock.
    drop(Flock::lock(file, FlockArg::LockExclusive).unwrap());
}

/// Waits until a process waits for the lock that the test holds.
pub fn waits_for_the_lock(machine: &MachineTree, process: u32) {
    let lock = machine.path("/run/nicpin/lock").canonicalize().unwrap();
    let is_open = || {
        let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
        let mut files = descriptors.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        files.any(|file| file == lock)
    };
    wait_until("waiting for the lock", is_open);
}

/// The process is no child of the tests.
pub fn ended(process: Pid) {
    let stat = format!("/proc/{process}/stat");
    let has_ended = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    wait_until("at its end", has_ended);
}

pub fn watcher(machine: &MachineTree) -> Pid {
    Pid::from_raw(machine.read("/run/nicpin/try.lock").trim().parse().unwrap())
}

pub fn kill_watcher(machine: &MachineTree) {
    kill(watcher(machine), Signal::SIGKILL).unwrap();
    watched_to_the_end(machine);
}
