//! The process that watches a trial.

use std::fs::File;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::run::Copy;

/// Waits until the watcher has ended.
pub fn watched_to_the_end(machine: &Copy) {
    let mut file = File::open(machine.path("/run/nicpin/try.lock")).unwrap();
    // The value unlocks it at once. By closing alone, a process that another test starts just now would still have it.
    while let Err((locked, errno)) = Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        assert_eq!(errno, Errno::EWOULDBLOCK);
        file = locked;
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
