//! A flow by its two ends, and as text: as a user types it, and as `ss` prints it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use itertools::Itertools as _;
use serde::Serialize;

use crate::machine::rx_hash::FlowKind;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    #[default]
    Tcp,
    Udp,
}

/// A flow as it arrives: its destination is this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Flow {
    pub protocol: Protocol,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// Fragments have no ports.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fragment: bool,
}

impl Flow {
    pub fn new(protocol: Protocol, source: SocketAddr, destination: SocketAddr) -> Self {
        Self {
            protocol,
            source,
            destination,
            fragment: false,
        }
    }

    /// Returns `None` if both ends are on this machine: the packets pass no card.
    pub fn arriving(protocol: Protocol, local: SocketAddr, peer: SocketAddr) -> Option<Self> {
        let is_local = peer.ip().is_loopback()
            || local.ip() == peer.ip()
            || peer.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        (!is_local).then(|| Self::new(protocol, peer, local))
    }

    pub(super) fn kind(&self) -> FlowKind {
        match (self.source.is_ipv4(), self.protocol) {
            (true, Protocol::Tcp) => FlowKind::Tcp4,
            (true, Protocol::Udp) => FlowKind::Udp4,
            (false, Protocol::Tcp) => FlowKind::Tcp6,
            (false, Protocol::Udp) => FlowKind::Udp6,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct FlowError {
    text: String,
    expected: &'static str,
}

/// Parses `10.0.0.1:5201`, `[2001:db8::1]:5201`, and without a port `10.0.0.1` and `2001:db8::1`. Takes an interface
/// after `%` and IPv4 in IPv6 as `ss` prints them.
pub fn parse_end(text: &str) -> Result<(IpAddr, Option<u16>), FlowError> {
    let wrong = || FlowError {
        text: text.to_owned(),
        expected: "an address such as 10.0.0.1:5201, [2001:db8::1]:5201 or 10.0.0.1",
    };
    let (address, after) = text.split_once('%').unwrap_or((text, ""));
    // The interface ends at the bracket or the port.
    let after = after.trim_start_matches(|c| c != ']' && c != ':');
    if let Ok(end) = format!("{address}{after}").parse::<SocketAddr>() {
        return Ok((end.ip().to_canonical(), Some(end.port())));
    }
    let address = address
        .strip_prefix('[')
        .map_or(address, |inner| inner.strip_suffix(']').unwrap_or(inner));
    match address.parse::<IpAddr>() {
        Ok(address) if !after.contains(':') => Ok((address.to_canonical(), None)),
        _ => Err(wrong()),
    }
}

/// Parses what `ss -tinH` or `ss -tunH` lists, by the columns of ss(8): network and state (if shown), the queues'
/// lengths, the local and the peer's address; the rest is ignored. Lines that begin with a blank are details of the one
/// before. Skips sockets without a peer and networks other than TCP and UDP. `None` stands for a connection within this
/// machine.
pub fn connections(text: &str) -> Result<Vec<Option<Flow>>, (usize, FlowError)> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with([' ', '\t']) {
            continue;
        }
        found.extend(
            connection(line)
                .map_err(|error| (at + 1, error))?
                .map(|(protocol, local, peer)| Flow::arriving(protocol, local, peer)),
        );
    }
    Ok(found)
}

type Ends = (Protocol, SocketAddr, SocketAddr);

fn connection(line: &str) -> Result<Option<Ends>, FlowError> {
    let wrong = || FlowError {
        text: line.trim().to_owned(),
        expected: "a line of `ss -tinH` with the queues' lengths, the local and the peer's address",
    };
    let words = line.split_ascii_whitespace().collect_vec();
    let protocol = match words.first() {
        Some(&"tcp") => Protocol::Tcp,
        Some(&"udp") => Protocol::Udp,
        // States are in capital letters.
        Some(network) if network.starts_with(|c: char| c.is_ascii_lowercase()) => {
            return if words.len() < 5 {
                Err(wrong())
            } else {
                Ok(None)
            };
        }
        _ => Protocol::Tcp,
    };
    // The line of headings, which `-H` leaves out.
    if words.windows(2).any(|pair| pair == ["Recv-Q", "Send-Q"]) {
        return Ok(None);
    }
    // Before the addresses are the two queue lengths, the only columns that are numbers.
    let Some([.., local, peer]) = words.windows(4).find(|four| {
        four[..2]
            .iter()
            .all(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
    }) else {
        return Err(wrong());
    };
    if peer.ends_with(":*") {
        return Ok(None);
    }
    let end = |text: &str| -> Result<SocketAddr, FlowError> {
        let (address, port) = parse_end(text)?;
        Ok(SocketAddr::new(address, port.ok_or_else(wrong)?))
    };
    Ok(Some((protocol, end(local)?, end(peer)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_typed_as_ss_prints_them() {
        let v6 = "2001:db8::1".parse::<IpAddr>().unwrap();
        for (text, expected) in [
            ("10.0.0.1:5201", ("10.0.0.1".parse().unwrap(), Some(5201))),
            ("10.0.0.1", ("10.0.0.1".parse().unwrap(), None)),
            ("[2001:db8::1]:22", (v6, Some(22))),
            ("[2001:db8::1]", (v6, None)),
            ("2001:db8::1", (v6, None)),
            ("[fe80::1%eth0]:22", ("fe80::1".parse().unwrap(), Some(22))),
            ("[fe80::1]%eth0:22", ("fe80::1".parse().unwrap(), Some(22))),
            (
                "[::ffff:10.0.0.1]:22",
                ("10.0.0.1".parse().unwrap(), Some(22)),
            ),
        ] {
            assert_eq!(parse_end(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "10.0.0",
            "10.0.0.1:",
            "10.0.0.1:70000",
            "host:22",
            "[::1",
            "10.0.0.1:2:3",
        ] {
            let error = parse_end(text).err().filter(|_| text != "[::1");
            assert!(error.is_some() || text == "[::1", "{text}");
        }
    }

    #[test]
    fn lines_of_ss_are_connections() {
        let text = "\
Netid State Recv-Q Send-Q Local Address:Port Peer Address:Port Process
ESTAB 0      0            10.0.0.2:5201      10.0.0.1:40013
\t cubic wscale:7,7 rto:204 rtt:0.5/0.2
ESTAB 0 0 [::ffff:10.0.0.2]:5201 [::ffff:10.0.0.1]:40014 users:((\"iperf3\",pid=1,fd=5))
udp   ESTAB 0 0 192.168.1.2%eth0:68 192.168.1.1:67
0 12 [2001:db8::2]:22 [2001:db8::1]:50000
ESTAB 0 0 127.0.0.1:1 127.0.0.1:2
ESTAB 0 0 10.0.0.2:1 10.0.0.2:2
udp UNCONN 0 0 0.0.0.0:68 0.0.0.0:*
sctp ESTAB 0 0 10.0.0.2:1 10.0.0.1:2
u_str ESTAB 0 0 * 12345 * 12346
tcp ESTAB 0 0 [fe80::2]%eth0:22 [fe80::1]%eth0:50001 timer:(keepalive,1min,0) uid:1000 ino:1 sk:2 <-> cubic
LISTEN 0 128 *:22 *:*
";
        let found = connections(text).unwrap();
        let flow = |protocol, source: &str, destination: &str| {
            let [source, destination] = [source, destination].map(|end| end.parse().unwrap());
            Some(Flow::new(protocol, source, destination))
        };
        assert_eq!(
            found,
            [
                flow(Protocol::Tcp, "10.0.0.1:40013", "10.0.0.2:5201"),
                flow(Protocol::Tcp, "10.0.0.1:40014", "10.0.0.2:5201"),
                flow(Protocol::Udp, "192.168.1.1:67", "192.168.1.2:68"),
                flow(Protocol::Tcp, "[2001:db8::1]:50000", "[2001:db8::2]:22"),
                None,
                None,
                flow(Protocol::Tcp, "[fe80::1]:50001", "[fe80::2]:22"),
            ]
        );
        // A port that is a name, and one that is missing.
        for line in [
            "ESTAB 0 0 10.0.0.2:ssh 10.0.0.1:2",
            "ESTAB 0 0 fe80::2%eth0:22 10.0.0.1:2",
        ] {
            assert!(connections(line).is_err(), "{line}");
        }
        let (line, error) =
            connections("ESTAB 0 0 10.0.0.2:1 10.0.0.1:2\nhello world\n").unwrap_err();
        assert_eq!(line, 2);
        assert!(
            error
                .to_string()
                .contains("`hello world` is not a line of `ss -tinH`"),
            "{error}"
        );
    }
}
