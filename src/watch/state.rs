//! State files of the watcher: lock, state for `nicpin status`, pause after a restore, and last valid policy.

use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Result, bail};
use nicpin::apply::{Lock, StateFile, Trial, TrialGuard};
use nicpin::read::tools::stat_of;
use nicpin::report::watcher::{WaitsFor, Watcher};
use nicpin::root::{FileError, Root};

pub const WATCHER: StateFile = StateFile {
    path: "/run/nicpin/watch.json",
    schema: "nicpin.watch/1",
    what: "the state of a watcher",
    not_done: "it cannot be shown",
};

pub const PAUSE: StateFile = StateFile {
    path: "/run/nicpin/watch-paused.json",
    schema: "nicpin.watch-paused/1",
    what: "the pause of the watcher",
    not_done: "the watcher would write again what is restored, so nothing was restored",
};

pub const RELEASES: [&str; 2] = ["/run/nicpin/try.json", PAUSE.path];
const LOCK: &str = "/run/nicpin/watch.lock";
const POLICY: &str = "/run/nicpin/watch-policy.toml";

/// The lock of the only watcher.
pub fn lock(root: &Root) -> Result<Lock> {
    let taken = Lock::take_at(root, LOCK, &process::id().to_string(), || false)?;
    taken.or_else(|pid| {
        let pid = if pid.is_empty() { "unknown" } else { &pid };
        bail!("another nicpin watch (pid {pid}) is already running")
    })
}

/// In the kernel's ticks since boot; `None` if the process does not exist, or this user may not see it.
pub fn start_of(pid: i32) -> Option<u64> {
    let top = Root::open(Path::new("/")).ok()?;
    Some(stat_of(&top, pid).ok()??.starttime)
}

/// `None` if no watcher runs, or this user may not see its process.
pub fn running(root: &Root) -> Result<Option<Watcher>> {
    let watcher: Option<Watcher> = WATCHER.load(root)?;
    Ok(watcher.filter(|watcher| start_of(watcher.pid) == Some(watcher.started)))
}

/// Pauses a watcher until [`resume`], also if its state cannot be read; `false` if none runs. Called before a restore:
/// a run that waits for the lock must find the pause.
pub fn pause(root: &Root) -> Result<bool> {
    if running(root).is_ok_and(|watcher| watcher.is_none()) {
        return Ok(false);
    }
    PAUSE.save(root, &())?;
    Ok(true)
}

pub fn resume(root: &Root) -> Result<bool> {
    let is_paused = PAUSE.exists(root);
    PAUSE.remove(root)?;
    Ok(is_paused)
}

/// A trial whose process has died does not count: the next apply ends it.
pub fn why_blocked(root: &Root) -> Option<WaitsFor> {
    if PAUSE.exists(root) {
        return Some(WaitsFor::Apply);
    }
    let waits = matches!(Trial::waiting(root), Ok(Some(_)));
    (waits && TrialGuard::open(root).is_ok_and(|watch| !watch.has_ended()))
        .then_some(WaitsFor::Trial)
}

/// Keeps the last valid policy beside a file that has become invalid; returns its path outside the root.
pub fn keep_policy(root: &Root, text: &str) -> Result<PathBuf, FileError> {
    root.replace_state(POLICY, text)?;
    Ok(root.outside(POLICY))
}
