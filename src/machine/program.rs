//! Programs that a policy names, and where they may run; sockets and where their programs run.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;

/// A program that interrupts are to be near.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// The process with this number.
    Pid(u32),
    /// All processes of a systemd unit, with the end of its name: `nginx.service`.
    Unit(String),
}

impl Program {
    /// The name of the unit, if it is one.
    pub fn unit(&self) -> Option<&str> {
        match self {
            Self::Pid(_) => None,
            Self::Unit(name) => Some(name),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pid(pid) => write!(f, "pid:{pid}"),
            Self::Unit(name) => write!(f, "unit:{name}"),
        }
    }
}

impl FromStr for Program {
    type Err = ();

    /// Reads `pid:N` or `unit:NAME`; as with systemctl, a name without an end is that of a service.
    fn from_str(text: &str) -> Result<Self, ()> {
        if let Some(pid) = text.strip_prefix("pid:") {
            return pid
                .parse()
                .ok()
                .filter(|&pid| pid > 0)
                .map(Self::Pid)
                .ok_or(());
        }
        // The characters of unit names (systemd.unit(5)).
        let is_part = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
        let name = text.strip_prefix("unit:").ok_or(())?;
        if !(1..=255).contains(&name.len()) || !name.chars().all(is_part) {
            return Err(());
        }
        let mut ends = [".service", ".scope", ".slice"].into_iter();
        let has_end = ends.any(|end| name.ends_with(end));
        let end = if has_end { "" } else { ".service" };
        Ok(Self::Unit(format!("{name}{end}")))
    }
}

/// Where a program may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramCpus {
    /// The CPUs to plan by: those that its threads may use, or those that they might use at an earlier apply.
    pub cpus: CpuSet,
    /// Those that its threads may use; `None` where it does not run.
    pub now: Option<CpuSet>,
}

/// A TCP connection, or a UDP socket that is connected, as the kernel lists them (`sock_diag`,
/// `include/uapi/linux/inet_diag.h`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectedSocket {
    /// Of UDP, otherwise of TCP.
    pub udp: bool,
    /// IPv4 in IPv6 is IPv4.
    pub local: SocketAddr,
    pub peer: SocketAddr,
    /// The interface to which it is bound, else that which has the local address.
    pub interface: Option<String>,
    /// The node of the processes that have it open: of the CPUs that they may use, else of the CPU where their first
    /// thread last ran. `None` if they are on several, or hidden from this user.
    pub node: Option<u32>,
}
