//! A run: this program as a child process, so that memory and faults stay outside of the watcher.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child as Process, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use nicpin::report::run::RunReport;
use nicpin::root::sys;

/// Bytes of a report and of error messages that are read. 65,536 changed settings need 8 MiB.
const MOST_OUTPUT: usize = 16 << 20;
const MOST_ERRORS: usize = 4 << 10;

#[derive(Debug)]
pub struct Child {
    process: Process,
    output: Vec<u8>,
    errors: Vec<u8>,
}

/// A run that gave no report, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ChildError(String);

impl Child {
    /// Starts the running program, even if its file was replaced or removed, with these arguments.
    pub fn start(arguments: &[OsString]) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        // The watcher waits for its signals by a descriptor and blocks them.
        sys::unblock_signals(&mut command);
        let mut process = command
            .args(arguments)
            // They are the watcher's: systemd would take the child for the service.
            .env_remove("NOTIFY_SOCKET")
            .env_remove("WATCHDOG_USEC")
            .env_remove("WATCHDOG_PID")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let streams = [
            process.stdout.as_ref().map(AsFd::as_fd),
            process.stderr.as_ref().map(AsFd::as_fd),
        ];
        let unblocked: nix::Result<()> = streams
            .into_iter()
            .flatten()
            .try_for_each(|fd| fcntl(fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map(drop));
        if let Err(errno) = unblocked {
            process.kill()?;
            process.wait()?;
            return Err(errno.into());
        }
        Ok(Self {
            process,
            output: Vec::new(),
            errors: Vec::new(),
        })
    }

    /// The descriptors that have its output.
    pub fn streams(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let streams = [
            self.process.stdout.as_ref().map(AsFd::as_fd),
            self.process.stderr.as_ref().map(AsFd::as_fd),
        ];
        streams.into_iter().flatten()
    }

    /// Reads what it has written so far. A stream that is closed or too long is dropped, which ends the child.
    pub fn read(&mut self) -> io::Result<()> {
        if let Some(stream) = &mut self.process.stdout
            && !read_some(stream, &mut self.output, MOST_OUTPUT)?
        {
            self.process.stdout = None;
        }
        if let Some(stream) = &mut self.process.stderr
            && !read_some(stream, &mut self.errors, MOST_ERRORS)?
        {
            self.process.stderr = None;
        }
        Ok(())
    }

    /// Sends a signal. It may have ended meanwhile.
    pub fn signal(&self, signal: Signal) {
        if let Ok(pid) = i32::try_from(self.process.id()) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Waits for its end, and kills it after this time.
    pub fn wait(mut self, time: Duration) -> io::Result<()> {
        let end = Instant::now() + time;
        // Its output is not read any more; a full pipe must not keep it.
        (self.process.stdout, self.process.stderr) = (None, None);
        while Instant::now() < end {
            if self.process.try_wait()?.is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.process.kill()?;
        self.process.wait().map(drop)
    }

    /// Its end, if it has ended; otherwise itself.
    pub fn ended(mut self) -> io::Result<Result<Ended, Self>> {
        let Some(status) = self.process.try_wait()? else {
            return Ok(Err(self));
        };
        self.read()?;
        Ok(Ok(Ended {
            status,
            output: self.output,
            errors: self.errors,
        }))
    }
}

/// Reads until there is no more for now; `false` at the end or when there is too much.
fn read_some(stream: &mut impl io::Read, to: &mut Vec<u8>, most: usize) -> io::Result<bool> {
    let mut buffer = [0; 16 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(length) => to.extend(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if to.len() > most {
            return Ok(false);
        }
    }
}

/// What is read of `nicpin.check/1`.
#[derive(Deserialize)]
struct Checked {
    interfaces: Vec<IgnoredAny>,
    differs: Vec<IgnoredAny>,
    channels: Vec<IgnoredAny>,
    unknown: Vec<IgnoredAny>,
}

/// What a child has left.
#[derive(Debug)]
pub struct Ended {
    status: ExitStatus,
    output: Vec<u8>,
    errors: Vec<u8>,
}

impl Ended {
    /// Its report.
    pub fn report(&self) -> Result<RunReport, ChildError> {
        self.parse()
    }

    /// The report of a run that only checks.
    pub fn checked(&self) -> Result<RunReport, ChildError> {
        let check: Checked = self.parse()?;
        let (interfaces, changed) = (
            check.interfaces.len(),
            check.differs.len() + check.channels.len(),
        );
        Ok(RunReport {
            interfaces,
            changed,
            failed: check.unknown.len(),
            ..RunReport::default()
        })
    }

    /// The error message of a command that has failed; `None` if it ended with a report.
    pub fn error(&self) -> Option<String> {
        if let Some(signal) = self.status.signal() {
            return Some(format!("ended by signal {signal}"));
        }
        self.message()
    }

    fn message(&self) -> Option<String> {
        let errors = String::from_utf8_lossy(&self.errors);
        let line = errors.lines().next()?;
        Some(line.strip_prefix("nicpin: ").unwrap_or(line).to_owned())
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, ChildError> {
        if let Some(signal) = self.status.signal() {
            return Err(ChildError(format!("the run was ended by signal {signal}")));
        }
        if self.output.len() > MOST_OUTPUT {
            return Err(ChildError("the run wrote an endless report".to_owned()));
        }
        serde_json::from_slice(&self.output).map_err(|error| {
            let unreadable = || format!("the report of the run cannot be read: {error}");
            ChildError(self.message().unwrap_or_else(unreadable))
        })
    }
}
