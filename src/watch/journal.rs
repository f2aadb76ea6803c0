//! Messages of a process without a terminal: to the journal or the system log, and to the service manager
//! (`sd_notify(3)`).

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::time::Duration;
use std::{env, io};

use nix::sys::stat::fstat;

use nicpin::root::Root;

const SOCKET: &str = "/dev/log";
/// journald's, which takes messages with fields.
const JOURNAL: &str = "/run/systemd/journal/socket";
/// The kernel's log, which journald reads too.
const KERNEL: &str = "/dev/kmsg";
/// Facility `daemon` (RFC 5424).
const DAEMON: u8 = 3 << 3;

#[derive(Clone, Copy)]
pub enum Priority {
    Warning = 4,
    Notice = 5,
    Info = 6,
}

/// An absent or full log must not block the process.
pub fn send(root: &Root, priority: Priority, message: &str) {
    let line = format!(
        "<{}>nicpin[{}]: {}",
        DAEMON | priority as u8,
        process::id(),
        one_line(message)
    );
    if !send_to(root, SOCKET, &line) && root.is_real() {
        // An error cannot be reported; one write is one message.
        let _ = OpenOptions::new()
            .write(true)
            .open(KERNEL)
            .and_then(|mut log| log.write_all(line.as_bytes()));
    }
}

/// By journald's protocol if standard error is the journal's; otherwise to standard error, without the fields. Only the
/// message is lost if that is closed.
pub fn log(root: &Root, priority: Priority, message: &str, fields: &[(&str, &str)]) {
    let usual = [
        ("MESSAGE", message),
        ("PRIORITY", &(priority as u8).to_string()),
        ("SYSLOG_IDENTIFIER", "nicpin"),
    ];
    let lines = usual
        .iter()
        .chain(fields)
        .map(|(key, value)| format!("{key}={}\n", one_line(value)));
    if !is_journal() || !send_to(root, JOURNAL, &lines.collect::<String>()) {
        let _ = writeln!(io::stderr(), "nicpin: {}", one_line(message));
    }
}

/// Whether standard error is the stream that the manager named: the variable is inherited, the stream may be redirected
/// (systemd.exec(5)).
fn is_journal() -> bool {
    let stream = env::var("JOURNAL_STREAM").unwrap_or_default();
    let stderr = fstat(io::stderr());
    stderr.is_ok_and(|stderr| stream == format!("{}:{}", stderr.st_dev, stderr.st_ino))
}

fn send_to(root: &Root, socket: &str, text: &str) -> bool {
    let Ok(Some(path)) = root.canonical(socket) else {
        return false;
    };
    let sent = UnixDatagram::unbound().and_then(|socket| {
        socket.set_nonblocking(true)?;
        socket.send_to(text.as_bytes(), root.outside(&path))
    });
    sent.is_ok()
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[derive(Default)]
pub struct Manager {
    socket: Option<UnixDatagram>,
    /// Maximum time between messages that the process is alive.
    watchdog: Option<Duration>,
    alive: Duration,
}

impl Manager {
    /// By `NOTIFY_SOCKET` and `WATCHDOG_USEC`. A manager that cannot be reached counts as none.
    pub fn find() -> Self {
        let connect = || -> io::Result<UnixDatagram> {
            let name = env::var_os("NOTIFY_SOCKET").ok_or(io::ErrorKind::NotFound)?;
            let address = match name.as_bytes() {
                [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
                _ => SocketAddr::from_pathname(&name)?,
            };
            let socket = UnixDatagram::unbound()?;
            socket.connect_addr(&address)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok();
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|_| is_ours);
        Self {
            socket: connect().ok(),
            watchdog: watchdog.map(Duration::from_micros),
            alive: Duration::ZERO,
        }
    }

    pub fn alive(&mut self, now: Duration) {
        if self
            .watchdog
            .is_some_and(|within| now >= self.alive + within / 4)
        {
            self.send("WATCHDOG=1");
            self.alive = now;
        }
    }

    pub fn alive_at(&self) -> Duration {
        self.watchdog
            .map_or(Duration::MAX, |within| self.alive + within / 2)
    }

    /// Lost messages are ignored: nothing depends on them.
    pub fn send(&self, state: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(state.as_bytes());
        }
    }
}
