//! A command that is run to be measured. Its standard output goes to standard error, so that standard output holds
//! nothing but the report.

use std::ffi::OsString;
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::root::errno_words;

/// A command that runs.
pub(super) struct Running {
    ended: Receiver<(io::Result<ExitStatus>, Duration)>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChildExit {
    pub(super) status: ExitStatus,
    /// How long it ran.
    pub(super) wall: Duration,
}

impl Running {
    /// Waits, at most so long; `None` while it goes on running.
    pub(super) fn wait(&self, time: Duration) -> Result<Option<ChildExit>> {
        match self.ended.recv_timeout(time) {
            Ok((status, wall)) => Ok(Some(ChildExit { status: status?, wall })),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(error @ RecvTimeoutError::Disconnected) => Err(error.into()),
        }
    }
}

/// Starts a command from a thread of its own, which `bind` may bind before: the command inherits that, and this
/// process goes on as it was.
pub(super) fn start(command: &[OsString], bind: impl FnOnce() -> Result<()> + Send) -> Result<Running> {
    let (name, args) = command.split_first().context("there is no command to run")?;
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
    // Told the moment that it ends, whatever else is done meanwhile.
    std::thread::spawn(move || {
        let status = child.wait();
        // Nobody may wait for it any more.
        let _ = send.send((status, began.elapsed()));
    });
    Ok(Running { ended })
}

/// What is wrong with a command's end; `None` for a good one.
pub(super) fn failure(command: &[OsString], status: ExitStatus) -> Option<String> {
    let name = command.first().map(|name| name.display().to_string()).unwrap_or_default();
    // `exit status: 3`, `signal: 9 (SIGKILL)`
    (!status.success()).then(|| format!("{name}: {status}"))
}
