//! A run: this program as a child process, so that memory and faults stay outside of the watcher.

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
use serde::{Deserialize, Serialize};

use nicpin::report::exit::Exit;
use nicpin::report::run::ChangedSetting;
use nicpin::root::{errno_words, sys};

/// Bytes of a report and of error messages that are read. 65,536 changed settings need 8 MiB.
const MOST_OUTPUT: usize = 16 << 20;
const MOST_ERRORS: usize = 4 << 10;

pub struct Child {
    process: Process,
    output: Vec<u8>,
    errors: Vec<u8>,
}

impl Child {
    /// Starts the running program, even if its file was replaced or removed, with these arguments.
    pub fn start(arguments: &[OsString]) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        // The watcher waits for its signals by a descriptor and blocks them.
        sys::unblock_signals(&mut command);
        // They are the watcher's: systemd would take the child for the service.
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

    /// The descriptors that have its output.
    pub fn streams(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.process
            .stdout
            .iter()
            .map(AsFd::as_fd)
            .chain(self.process.stderr.iter().map(AsFd::as_fd))
    }

    /// Reads what it has written so far.
    pub fn read(&mut self) -> io::Result<()> {
        read_some(&mut self.process.stdout, &mut self.output, MOST_OUTPUT)?;
        read_some(&mut self.process.stderr, &mut self.errors, MOST_ERRORS)
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
            sleep(Duration::from_millis(10));
        }
        self.process.kill()?;
        self.process.wait().map(drop)
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.process.try_wait().map_or(true, |end| end.is_some())
    }

    /// Whether it has refused its command line.
    pub fn is_refused(&mut self) -> bool {
        let end = self.process.wait();
        end.is_ok_and(|end| end.code() == Some(Exit::Usage as i32))
    }

    /// The report of one that has ended, or the error in words.
    pub fn report(mut self) -> Result<RunReport, String> {
        let error = self.error();
        if self.output.len() > MOST_OUTPUT {
            return Err("the run wrote an endless report".to_owned());
        }
        let unreadable = |error| format!("the report of the run cannot be read: {error}");
        serde_json::from_slice(&self.output)
            .map_err(|unread| error.unwrap_or_else(|| unreadable(unread)))
    }

    /// The error message of one that has failed; `None` if it ended with a report.
    pub fn error(&mut self) -> Option<String> {
        let end = self.process.wait();
        match end.and_then(|end| self.read().map(|()| end.signal())) {
            Err(error) => return Some(errno_words(&error)),
            Ok(Some(signal)) => return Some(format!("the run was ended by signal {signal}")),
            Ok(None) => {}
        }
        let errors = String::from_utf8_lossy(&self.errors);
        let line = errors.lines().next()?;
        Some(line.strip_prefix("nicpin: ").unwrap_or(line).to_owned())
    }
}

/// Reads until there is no more for now. A stream that is closed or too long is dropped, which ends the child.
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

/// What a run did, as it prints it for the watcher.
#[derive(Default, Serialize, Deserialize)]
pub struct RunReport {
    /// Whether nothing was written because `restore` has paused the watcher.
    pub paused: bool,
    /// Planned interfaces.
    pub interfaces: usize,
    /// Settings that were changed, channels and irqbalance included; with `--observe`, that differ.
    pub changed: usize,
    /// Settings that could not be changed.
    pub failed: usize,
    /// The first reasons for that.
    pub failures: Vec<String>,
    /// Whether channels were changed, which causes events.
    pub channels: bool,
    /// Whether a request was made to irqbalance.
    pub irqbalance: bool,
    /// The process of an irqbalance that leaves the planned IRQs alone, or was stopped.
    pub irqbalance_answered: Option<i32>,
    /// The settings that were written.
    pub written: Vec<RestoredSetting>,
    /// The IRQ of each planned vector, and what its `smp_affinity` holds as planned.
    pub vectors: Vec<(u32, String)>,
}

/// A setting that was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredSetting {
    #[serde(flatten)]
    pub setting: ChangedSetting,
    /// What was written.
    pub value: String,
    /// Programs on this machine that may have written something else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writers: Vec<String>,
}

impl RestoredSetting {
    /// For the command line of a run, which leaves it as it is; [`RestoredSetting::parse`] reads it.
    pub fn as_argument(&self) -> String {
        let ChangedSetting {
            name,
            interface,
            path,
        } = &self.setting;
        [name, interface, path, &self.value]
            .map(String::as_str)
            .join("\t")
    }

    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let parts: Vec<String> = text.splitn(4, '\t').map(str::to_owned).collect();
        let parts = <[String; 4]>::try_from(parts);
        let [name, interface, path, value] = parts.map_err(|_| "no setting with its value")?;
        Ok(Self {
            setting: ChangedSetting {
                name,
                interface,
                path,
            },
            value,
            writers: Vec::new(),
        })
    }

    /// Whether it is the same value in the same file, of an interface with the same name.
    pub fn is_same(&self, other: &Self) -> bool {
        self.setting == other.setting && self.value == other.value
    }
}
