//! A run: this program as a child process, so that its memory and faults stay outside of the watcher.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child as Process, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::watch::report::RunReport;
use nicpin::report::exit::Exit;
use nicpin::root::{errno_words, sys};

/// In bytes. The report of 65,536 changed settings has 8 MiB.
const MOST_OUTPUT: usize = 16 << 20;
const MOST_ERRORS: usize = 4 << 10;

pub struct Child {
    process: Process,
    output: Vec<u8>,
    errors: Vec<u8>,
}

impl Child {
    /// Starts the running program, even if its file was replaced or removed.
    pub fn start(arguments: &[OsString]) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        // The watcher blocks its signals and waits for them by a descriptor.
        sys::unblock_signals(&mut command);
        // systemd would take the child for the service.
        for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let child = Self {
            process: command.args(arguments).stderr(Stdio::piped()).spawn()?,
            output: Vec::new(),
            errors: Vec::new(),
        };
        for stream in child.streams() {
            fcntl(stream, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        Ok(child)
    }

    pub fn streams(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.process
            .stdout
            .iter()
            .map(AsFd::as_fd)
            .chain(self.process.stderr.iter().map(AsFd::as_fd))
    }

    pub fn read(&mut self) -> io::Result<()> {
        read_some(&mut self.process.stdout, &mut self.output, MOST_OUTPUT)?;
        read_some(&mut self.process.stderr, &mut self.errors, MOST_ERRORS)
    }

    pub fn signal(&self, signal: Signal) {
        if let Ok(pid) = i32::try_from(self.process.id()) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    pub fn wait(mut self, time: Duration) -> io::Result<()> {
        let end = Instant::now() + time;
        // Nobody reads the output any more; a full pipe must not keep the child.
        (self.process.stdout, self.process.stderr) = (None, None);
        while Instant::now() < end {
            if self.process.try_wait()?.is_some() {
                return Ok(());
            }
            sleep(Duration::from_millis(10));
        }
        self.process.kill()?;
        self.process.wait().map(drop)
    }

    pub fn has_ended(&mut self) -> bool {
        self.process.try_wait().map_or(true, |end| end.is_some())
    }

    pub fn is_refused(&mut self) -> bool {
        let end = self.process.wait();
        end.is_ok_and(|end| end.code() == Some(Exit::Usage as i32))
    }

    pub fn report(mut self) -> Result<RunReport, String> {
        let error = self.error();
        if self.output.len() > MOST_OUTPUT {
            return Err("the run wrote an endless report".to_owned());
        }
        let unreadable = |error| format!("the report of the run cannot be read: {error}");
        serde_json::from_str(&String::from_utf8_lossy(&self.output))
            .map_err(|unread| error.unwrap_or_else(|| unreadable(unread)))
    }

    /// Waits for the child; `None` if it left a report.
    pub fn error(&mut self) -> Option<String> {
        let end = self.process.wait();
        match end.and_then(|end| self.read().map(|()| end.signal())) {
            Err(error) => return Some(errno_words(&error)),
            Ok(Some(signal)) => return Some(format!("the run was ended by signal {signal}")),
            Ok(None) => {}
        }
        let errors = String::from_utf8_lossy(&self.errors);
        errors.lines().next().map(str::to_owned)
    }
}

/// Reads what there is now. Drops a stream that is closed or too long, which ends the child.
fn read_some(stream: &mut Option<impl io::Read>, to: &mut Vec<u8>, most: usize) -> io::Result<()> {
    let room = (most + 1).saturating_sub(to.len()) as u64;
    let read = (stream.as_mut()).map(|stream| stream.take(room).read_to_end(to));
    match read {
        Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
        Some(Err(error)) => return Err(error),
        _ => *stream = None,
    }
    Ok(())
}
