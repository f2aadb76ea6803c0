//! Sockets with a connection, as the kernel lists them (`sock_diag`, `include/uapi/linux/inet_diag.h`).

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A TCP connection, or a UDP socket that is connected.
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
