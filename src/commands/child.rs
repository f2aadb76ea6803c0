//! A command that is measured while it runs. Its standard output goes to standard error, so that standard output holds
//! the report only.

use std::ffi::OsString;
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::root::errno_words;

pub(super) struct Running {
    ended: Receiver<(io::Result<ExitStatus>, Duration)>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ChildExit {
    pub(super) status: ExitStatus,
    /// Wall-clock time from start to end.
    pub(super) wall: Duration,
}

impl Running {
    /// Waits for the end of the command for up to `time`; `None` if it still runs.
    pub(super) fn wait(&self, time: Duration) -> Result<Option<ChildExit>> {
        match self.ended.recv_timeout(time) {
            Ok((status, wall)) => Ok(Some(ChildExit { status: status?, wall })),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(error @ RecvTimeoutError::Disconnected) => Err(error.into()),
        }
    }
}

/// Starts a command from a thread of its own, after `bind` has run on that thread: the command inherits the CPU
/// affinity and
/// the memory policy set there, and this process keeps its own.
pub(super) fn start(command: &[OsString], bind: impl FnOnce() -> Result<()> + Send) -> Result<Running> {
    let (name, args) = command.split_first().context("no command to run")?;
    let mut builder = Command::new(name);
    builder.args(args).stdout(Stdio::from(io::stderr()));
    let began = Instant::now();
    let started = std::thread::scope(|scope| {
        let spawn = || -> Result<Child> {
            bind()?;
            let named = |error: io::Error| anyhow::anyhow!("{}: {}", name.display(), errno_words(&error));
            builder.spawn().map_err(named)
        };
        scope.spawn(spawn).join()
    });
    let mut child = match started {
        Ok(child) => child?,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    let (send, ended) = channel();
    // A thread that only waits measures the end exactly, whatever the caller does meanwhile.
    std::thread::spawn(move || {
        let status = child.wait();
        // The receiver may be gone.
        let _ = send.send((status, began.elapsed()));
    });
    Ok(Running { ended })
}

/// The error text of a command that failed; `None` for exit status 0.
pub(super) fn failure(command: &[OsString], status: ExitStatus) -> Option<String> {
    let name = command.first().map(|name| name.display().to_string()).unwrap_or_default();
    // `exit status: 3`, `signal: 9 (SIGKILL)`
    (!status.success()).then(|| format!("{name}: {status}"))
}
