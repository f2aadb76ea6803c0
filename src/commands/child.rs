//! A command that is measured while it runs. Its standard output goes to standard error: nicpin's contains only the
//! report.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt as _;
use std::panic::resume_unwind;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{scope, spawn};
use std::time::{Duration, Instant};
use std::{env, io};

use anyhow::{Context as _, Result};
use nix::errno::Errno;
use nix::sys::signal::Signal::{SIGKILL, SIGTERM};
use nix::sys::signal::kill;
use nix::unistd::Pid;
use thiserror::Error;

use crate::start::{Signals, as_of_caller};
use nicpin::root::errno_words;

/// A command has this time after an interrupt, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// Returns the exit status and the wall-clock time. The command is started on a thread of its own after `bind`, whose
/// CPU affinity and memory policy it inherits; this process keeps its own.
///
/// Calls `step` while the command runs, and once when it has ended, with whether it has ended; `step` returns the time
/// until the next call, at most a second, as is `pause`, the first. A command that does not end after an interrupt is
/// killed.
pub fn run(
    command: &[OsString],
    interrupts: &Signals,
    bind: impl FnOnce() -> Result<()> + Send,
    mut pause: Duration,
    mut step: impl FnMut(bool) -> Result<Duration>,
) -> Result<(ExitStatus, Duration)> {
    let (name, args) = command.split_first().context("no command to run")?;
    let mut builder = Command::new(name);
    builder.args(args).stdout(Stdio::from(io::stderr()));
    as_of_caller(&mut builder);
    let began = Instant::now();
    let started = scope(|scope| {
        let spawn = || -> Result<Child> {
            bind()?;
            Ok(builder
                .spawn()
                .map_err(|error| CommandError::not_started(name, &error))?)
        };
        scope.spawn(spawn).join()
    });
    let mut child = started.unwrap_or_else(|panic| resume_unwind(panic))?;
    let process = Pid::from_raw(i32::try_from(child.id())?);
    let (send, end) = channel();
    // A waiting thread measures the end exactly, whatever the caller does meanwhile.
    spawn(move || {
        let status = child.wait();
        // The receiver may be gone.
        let _ = send.send((status, began.elapsed()));
    });
    let mut interrupted = None;
    loop {
        if let Some(signal) = interrupts.within(Duration::ZERO) {
            let since = interrupted.get_or_insert_with(Instant::now).elapsed();
            // The terminal sends SIGINT to the command, too. It may have ended meanwhile.
            let _ = match since {
                since if since >= 2 * GRACE => kill(process, SIGKILL),
                since if since >= GRACE || signal == SIGTERM => kill(process, SIGTERM),
                _ => Ok(()),
            };
        }
        let ended = match end.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => None,
            ended => Some(ended?),
        };
        pause = step(ended.is_some())?;
        if let Some((status, wall)) = ended {
            return Ok((status?, wall));
        }
    }
}

/// A command that failed or did not start, with the exit status that a shell would have.
#[derive(Debug, Error)]
#[error("{name}: {reason}")]
pub struct CommandError {
    name: String,
    reason: String,
    pub status: u8,
}

impl CommandError {
    pub fn not_started(name: &OsStr, error: &io::Error) -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        let is_found = env::split_paths(&path).any(|directory| directory.join(name).exists());
        // execvp(3) also reports directories of PATH that it may not search.
        let (status, reason) = if error.kind() == io::ErrorKind::NotFound || !is_found {
            (127, errno_words(&Errno::ENOENT.into()))
        } else {
            (126, errno_words(error))
        };
        let name = name.to_string_lossy().into_owned();
        Self {
            name,
            reason,
            status,
        }
    }

    pub fn check(command: &[OsString], status: ExitStatus) -> Result<(), Self> {
        if status.success() {
            return Ok(());
        }
        let code = status.code().or_else(|| Some(128 + status.signal()?));
        Err(Self {
            name: command[0].to_string_lossy().into_owned(),
            // `exit status: 3`, `signal: 9 (SIGKILL)`
            reason: status.to_string(),
            status: code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
        })
    }
}
