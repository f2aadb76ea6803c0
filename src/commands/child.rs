//! A command that is measured while it runs. Its standard output goes to standard error, so that standard output holds
//! the report only.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use std::{env, io};

use anyhow::{Context as _, Result};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::commands::interrupt::Interrupts;
use crate::start::as_of_caller;
use nicpin::root::errno_words;

pub struct Running<'a> {
    ended: Receiver<(io::Result<ExitStatus>, Duration)>,
    process: Pid,
    interrupts: &'a Interrupts,
    /// When the signal was seen that came to nicpin.
    interrupted: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
pub struct ChildExit {
    pub status: ExitStatus,
    /// Wall-clock time from start to end.
    pub wall: Duration,
}

/// How long a command may run on after an interrupt, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

impl Running<'_> {
    /// Waits for the end of the command for up to `time`; `None` if it still runs. Also ends a command that does not
    /// end by itself after an interrupt. Called at least once a second.
    pub fn wait(&mut self, time: Duration) -> Result<Option<ChildExit>> {
        if let Some(signal) = self.interrupts.within(Duration::ZERO) {
            let since = self.interrupted.get_or_insert_with(Instant::now).elapsed();
            // The terminal sends SIGINT to the command, too.
            let passed_on = match since {
                since if since >= 2 * GRACE => Some(Signal::SIGKILL),
                since if since >= GRACE || signal == Signal::SIGTERM => Some(Signal::SIGTERM),
                _ => None,
            };
            if let Some(signal) = passed_on {
                // It may have ended meanwhile.
                let _ = kill(self.process, signal);
            }
        }
        match self.ended.recv_timeout(time) {
            Ok((status, wall)) => Ok(Some(ChildExit {
                status: status?,
                wall,
            })),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(error @ RecvTimeoutError::Disconnected) => Err(error.into()),
        }
    }
}

/// Starts a command from a thread of its own, after `bind` has run on that thread: the command inherits the CPU
/// affinity and the memory policy set there, and this process keeps its own.
pub fn start<'a>(
    command: &[OsString],
    interrupts: &'a Interrupts,
    bind: impl FnOnce() -> Result<()> + Send,
) -> Result<Running<'a>> {
    let (name, args) = command.split_first().context("no command to run")?;
    let mut builder = Command::new(name);
    builder.args(args).stdout(Stdio::from(io::stderr()));
    as_of_caller(&mut builder);
    let began = Instant::now();
    let started = std::thread::scope(|scope| {
        let spawn = || -> Result<Child> {
            bind()?;
            Ok(builder
                .spawn()
                .map_err(|error| CommandError::not_started(name, &error))?)
        };
        scope.spawn(spawn).join()
    });
    let mut child = match started {
        Ok(child) => child?,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    let process = Pid::from_raw(i32::try_from(child.id())?);
    let (send, ended) = channel();
    // A thread that only waits measures the end exactly, whatever the caller does meanwhile.
    std::thread::spawn(move || {
        let status = child.wait();
        // The receiver may be gone.
        let _ = send.send((status, began.elapsed()));
    });
    Ok(Running {
        ended,
        process,
        interrupts,
        interrupted: None,
    })
}

/// A command that failed or could not be started, with the exit status that a shell has for it.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {reason}")]
pub struct CommandError {
    name: String,
    reason: String,
    pub status: u8,
}

impl CommandError {
    pub fn not_started(name: &OsStr, error: &io::Error) -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        let is_found =
            |name| env::split_paths(&path).any(|directory| directory.join(name).exists());
        // execvp(3) also reports directories of PATH that it may not search.
        let is_missing = error.kind() == io::ErrorKind::NotFound || !is_found(name);
        let (status, reason) = if is_missing {
            (127, errno_words(&Errno::ENOENT.into()))
        } else {
            (126, errno_words(error))
        };
        Self {
            name: name.to_string_lossy().into_owned(),
            reason,
            status,
        }
    }

    /// `None` for exit status 0.
    pub fn of(command: &[OsString], status: ExitStatus) -> Option<Self> {
        let name = command
            .first()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let code = status
            .code()
            .or_else(|| Some(128 + status.signal()?))
            .unwrap_or(1);
        // `exit status: 3`, `signal: 9 (SIGKILL)`
        let failed = || Self {
            name,
            reason: status.to_string(),
            status: u8::try_from(code).unwrap_or(1),
        };
        (!status.success()).then(failed)
    }
}
