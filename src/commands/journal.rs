//! Messages of a process without a terminal, in the journal or the log of the system.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::net::UnixDatagram;

use crate::commands::output;
use nicpin::root::Root;

/// The socket of syslog and journald.
const SOCKET: &str = "/dev/log";
/// journald's own, which takes messages with fields.
const JOURNAL: &str = "/run/systemd/journal/socket";
/// The log of the kernel, which journald reads too.
const KERNEL: &str = "/dev/kmsg";
/// Facility `daemon` (RFC 5424).
const DAEMON: u8 = 3 << 3;

/// How urgent a message is (RFC 5424).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    Warning = 4,
    Notice = 5,
    Info = 6,
}

/// Sends a message to the log of the system. A log that is absent or full must not keep the process from its work.
pub fn send(root: &Root, priority: Priority, message: &str) {
    let line = format!(
        "<{}>nicpin[{}]: {}",
        DAEMON | priority as u8,
        std::process::id(),
        one_line(message)
    );
    if !send_to(root, SOCKET, &line) && root.is_real() {
        // One write is one message.
        let _ = OpenOptions::new()
            .write(true)
            .open(KERNEL)
            .and_then(|mut log| log.write_all(line.as_bytes()));
    }
}

/// Logs a message with fields, by journald's own protocol where standard error is the journal's; otherwise to standard
/// error, without the fields.
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
    let is_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    if !is_journal || !send_to(root, JOURNAL, &lines.collect::<String>()) {
        output::say(message);
    }
}

/// Sends a datagram to a socket below the root.
fn send_to(root: &Root, socket: &str, text: &str) -> bool {
    // Otherwise it is told standard error.
    root.canonical(socket).is_ok_and(|path| {
        let Some(path) = path else { return false };
        let sent = UnixDatagram::unbound().and_then(|socket| {
            socket.set_nonblocking(true)?;
            socket.send_to(text.as_bytes(), root.outside(&path))
        });
        sent.is_ok()
    })
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
