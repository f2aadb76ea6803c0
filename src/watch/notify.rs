//! What is sent to systemd (`sd_notify(3)`): readiness, a line of status, and that the process is alive.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;
use std::{env, io};

use nix::time::{ClockId, clock_gettime};

/// The service manager that has started this process, if any.
#[derive(Debug, Default)]
pub struct Manager {
    socket: Option<UnixDatagram>,
    /// Within this time it has to get a message that the process is alive.
    pub watchdog: Option<Duration>,
}

impl Manager {
    /// By `NOTIFY_SOCKET` and `WATCHDOG_USEC`. A manager that cannot be reached is as good as none.
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
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC")
            .filter(|_| is_ours)
            .map(Duration::from_micros);
        Self {
            socket: connect().ok(),
            watchdog,
        }
    }

    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC)
            .map(Duration::from)
            .unwrap_or_default();
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.as_micros()));
    }

    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    pub fn alive(&self) {
        if self.watchdog.is_some() {
            self.send("WATCHDOG=1");
        }
    }

    /// What it does not take is lost: nothing depends on it.
    fn send(&self, state: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(state.as_bytes());
        }
    }
}
