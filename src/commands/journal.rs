//! Messages of a process without a terminal, in the journal or the log of the system.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::net::UnixDatagram;

use crate::root::Root;

/// The socket of syslog and journald.
const SOCKET: &str = "/dev/log";
/// The log of the kernel, which journald reads too.
const KERNEL: &str = "/dev/kmsg";
/// Facility `daemon` with severity `warning`, and with `notice` (RFC 5424).
const WARNING: u8 = 3 << 3 | 4;
const NOTICE: u8 = 3 << 3 | 5;

/// Sends a warning.
pub(super) fn warn(root: &Root, message: &str) {
    send(root, WARNING, message);
}

/// Sends a message that needs no action.
pub(super) fn note(root: &Root, message: &str) {
    send(root, NOTICE, message);
}

/// Sends a message. A log that is absent or full must not keep the process from its work.
fn send(root: &Root, priority: u8, message: &str) {
    let line =
        format!("<{priority}>nicpin[{}]: {}", std::process::id(), message.replace(char::is_control, " "));
    let sent = root.canonical(SOCKET).is_some_and(|path| {
        let socket = UnixDatagram::unbound().and_then(|socket| {
            socket.set_nonblocking(true)?;
            socket.send_to(line.as_bytes(), root.outside(&path))
        });
        socket.is_ok()
    });
    if !sent && root.is_real() {
        // One write is one message.
        let _ =
            OpenOptions::new().write(true).open(KERNEL).and_then(|mut log| log.write_all(line.as_bytes()));
    }
}
