//! Requests on irqbalance's socket (irqbalance(1), section API), and its answer to `setup`. Every request needs a new
//! connection; a list of banned IRQs replaces the earlier list.
//!
//! In a tree the answer is in `/nicpin/irqbalance`, and a list of banned IRQs changes that file. The irqbalance of the
//! machine that nicpin runs on is not contacted.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, IoSlice, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::time::Duration;

use nix::sys::socket::{
    ControlMessage, MsgFlags, UnixCredentials, getsockopt, sendmsg, sockopt::PeerCredentials,
};

use crate::root::{Root, errno_words};

/// Where a tree keeps irqbalance's answer to `setup`.
pub(super) const RECORDED: &str = "/nicpin/irqbalance";

/// How long to wait for an answer. irqbalance up to 1.9.2 sleeps for one interval (10 seconds by default) when it scans
/// the machine again.
const TIMEOUT: Duration = Duration::from_secs(30);

/// irqbalance's answer to `setup`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// Seconds between two balancing runs.
    pub interval: u64,
    /// The IRQs that were banned by arguments or on the socket. Bans by a policy script or by a banned module are not
    /// listed.
    pub banned: BTreeSet<u32>,
    /// The mask of CPUs that irqbalance does not use.
    cpus: String,
}

impl Setup {
    /// Parses the answer: `SLEEP 10 IRQ 71 LOAD 0 DIFF 0 CLASS 0 BANNED 000`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let number = |word: &str, words: &mut std::str::SplitAsciiWhitespace<'_>| {
            (words.next()? == word).then(|| words.next()?.parse::<u64>().ok()).flatten()
        };
        let interval = number("SLEEP", &mut words)?;
        let mut banned = BTreeSet::new();
        loop {
            match words.next()? {
                "IRQ" => {
                    banned.insert(words.next()?.parse().ok()?);
                    for word in ["LOAD", "DIFF", "CLASS"] {
                        number(word, &mut words)?;
                    }
                }
                // Older versions print nothing here if they use all CPUs.
                "BANNED" => {
                    let cpus = words.next().unwrap_or_default().to_owned();
                    return words.next().is_none().then_some(Self { interval, banned, cpus });
                }
                _ => return None,
            }
        }
    }

    /// The answer in irqbalance's format.
    pub fn to_text(&self) -> String {
        let irqs = self.banned.iter().map(|irq| format!("IRQ {irq} LOAD 0 DIFF 0 CLASS 0 "));
        format!("SLEEP {} {}BANNED {}", self.interval, irqs.collect::<Vec<_>>().concat(), self.cpus)
    }
}

/// A request to irqbalance failed.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// A tree without a recorded answer.
    #[error("this is a copy of a machine, without a running irqbalance")]
    Copy,
    /// No socket of that process answers.
    #[error(
        "process {pid} has no socket that answers ({}): it may be built without one; use `nicpin irqbalance-policy` as \
         its policy script, or --irqbalance stop or ignore",
        errno_words(answer)
    )]
    NoSocket {
        /// The process id of irqbalance.
        pid: i32,
        /// The error of the last attempt.
        answer: io::Error,
    },
    /// irqbalance closed the connection, or its answer was not understood.
    #[error("process {pid} does not answer ({reason}): only root can use its socket; is it still running?")]
    NoAnswer {
        /// The process id of irqbalance.
        pid: i32,
        /// The error, or the beginning of the answer.
        reason: String,
    },
    /// The list of IRQs is longer than a request may be.
    #[error(
        "process {pid} cannot read a request with {count} IRQs (500 bytes up to version 1.9.4) and would ban only some \
         of them: use `nicpin irqbalance-policy` as its policy script, or --irqbalance stop"
    )]
    TooLong {
        /// The process id of irqbalance.
        pid: i32,
        count: usize,
    },
}

/// One running irqbalance.
#[derive(Debug)]
pub(super) struct Daemon<'a> {
    root: &'a Root,
    pid: i32,
}

impl<'a> Daemon<'a> {
    pub(super) fn new(root: &'a Root, pid: i32) -> Self {
        Self { root, pid }
    }

    /// Its answer to `setup`. An error if a request that bans the IRQs in `room_for` would be too long.
    pub(super) fn setup(&self, room_for: &BTreeSet<u32>) -> Result<Setup, SocketError> {
        let answer = |text: &str| {
            let cut: String = text.trim().chars().take(60).collect();
            Setup::parse(text)
                .ok_or_else(|| SocketError::NoAnswer { pid: self.pid, reason: format!("`{cut}`") })
        };
        if !self.root.is_real() {
            return answer(&self.root.read_opt(RECORDED).ok().flatten().ok_or(SocketError::Copy)?);
        }
        // irqbalance compares only the beginning of a request, so trailing blanks do no harm. If it closes the
        // connection with bytes unread, the kernel resets it: then a request of this length is too long.
        let request = format!("{:<width$}", "setup", width = ban_request(room_for).len());
        let mut stream = self.connect()?;
        let (text, unread) = ask(&mut stream, &request)
            .map_err(|error| SocketError::NoAnswer { pid: self.pid, reason: errno_words(&error) })?;
        if unread {
            return Err(SocketError::TooLong { pid: self.pid, count: room_for.len() });
        }
        answer(&text)
    }

    /// Bans exactly these IRQs.
    pub(super) fn ban(&self, irqs: &BTreeSet<u32>) -> Result<(), SocketError> {
        let failed = |error: io::Error| SocketError::NoAnswer { pid: self.pid, reason: errno_words(&error) };
        if self.root.is_real() {
            return ask(&mut self.connect()?, &ban_request(irqs)).map(drop).map_err(failed);
        }
        let now = self.setup(irqs)?;
        self.root.write(RECORDED, &Setup { banned: irqs.clone(), ..now }.to_text()).map_err(failed)
    }

    fn connect(&self) -> Result<UnixStream, SocketError> {
        let pid = self.pid;
        let name = format!("irqbalance{pid}.sock");
        let mut result = Err(ErrorKind::NotFound.into());
        // By version: 1.6 and later, 1.5, before 1.5, and the unnamed socket as a fallback since 1.5.
        for path in [format!("/run/irqbalance/{name}"), format!("/run/{name}")] {
            result = result.or_else(|_: io::Error| UnixStream::connect(Path::new(&path)));
        }
        for name in [name.as_bytes(), &[0; 107]] {
            let connected = |_| UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?);
            result = result.or_else(connected);
        }
        let trusted = result.and_then(|stream| {
            // Any process can bind an abstract name.
            let peer = getsockopt(&stream, PeerCredentials)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            stream.set_write_timeout(Some(TIMEOUT))?;
            if peer.pid() == pid { Ok(stream) } else { Err(ErrorKind::PermissionDenied.into()) }
        });
        trusted.map_err(|answer| SocketError::NoSocket { pid, answer })
    }
}

fn ban_request(irqs: &BTreeSet<u32>) -> String {
    let mut request = "settings ban irqs".to_owned();
    for irq in irqs {
        request += &format!(" {irq}");
    }
    if irqs.is_empty() { request + " NONE" } else { request }
}

/// Sends a request with the sender's credentials in one message. Returns the answer, and whether irqbalance left bytes
/// unread.
fn ask(stream: &mut UnixStream, request: &str) -> io::Result<(String, bool)> {
    let credentials = UnixCredentials::new();
    let control = [ControlMessage::ScmCredentials(&credentials)];
    let bytes = [IoSlice::new(request.as_bytes())];
    let sent = sendmsg::<()>(stream.as_raw_fd(), &bytes, &control, MsgFlags::MSG_NOSIGNAL, None)?;
    if sent < request.len() {
        return Err(ErrorKind::WriteZero.into());
    }
    let mut answer = Vec::new();
    let unread = match stream.read_to_end(&mut answer) {
        Ok(_) => false,
        // `answer` keeps what was received before.
        Err(error) if error.kind() == ErrorKind::ConnectionReset => true,
        Err(error) => return Err(error),
    };
    Ok((String::from_utf8_lossy(&answer).into_owned(), unread))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn set(irqs: &[u32]) -> BTreeSet<u32> {
        irqs.iter().copied().collect()
    }

    /// The answers of 1.9.2 and 1.9.5.
    #[test]
    fn answers_to_setup() {
        for (text, banned) in [
            ("SLEEP 10 BANNED 00000000,00000000", set(&[])),
            ("SLEEP 3 IRQ 71 LOAD 0 DIFF 17 CLASS 4 IRQ 9 LOAD 5 DIFF 0 CLASS 0 BANNED 00", set(&[9, 71])),
            ("SLEEP 10 BANNED ", set(&[])),
        ] {
            let setup = Setup::parse(text).unwrap();
            assert_eq!(setup.banned, banned, "{text}");
            assert_eq!(Setup::parse(&setup.to_text()), Some(setup));
        }
        for bad in [
            "",
            "SLEEP",
            "SLEEP x BANNED 0",
            "SLEEP 10",
            "SLEEP 10 IRQ 71 BANNED 0",
            "SLEEP 10 IRQ -1 LOAD 0 DIFF 0 CLASS 0 BANNED 0",
            "SLEEP 10 BANNED 0 more",
            "TYPE 4 NUMBER 0 LOAD 0 SAVE_MODE 0",
        ] {
            assert_eq!(Setup::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn requests_are_those_of_the_manual() {
        assert_eq!(ban_request(&set(&[72, 9, 71])), "settings ban irqs 9 71 72");
        assert_eq!(ban_request(&set(&[])), "settings ban irqs NONE");
    }

    /// A peer that reads at most 500 bytes and closes, like irqbalance up to 1.9.4.
    #[test]
    fn unread_bytes_are_noticed() {
        for (length, unread) in [(5, false), (500, false), (501, true), (4000, true)] {
            let (mut ours, mut theirs) = UnixStream::pair().unwrap();
            let peer = std::thread::spawn(move || {
                let mut buffer = [0; 500];
                let read = theirs.read(&mut buffer).unwrap();
                theirs.write_all(b"SLEEP 10 BANNED 0").unwrap();
                read
            });
            let answer = ask(&mut ours, &format!("{:<length$}", "setup")).unwrap();
            assert_eq!(answer, ("SLEEP 10 BANNED 0".to_owned(), unread), "{length}");
            assert_eq!(peer.join().unwrap(), length.min(500));
        }
    }

    /// For a tree no socket of the live machine is tried.
    #[test]
    fn a_tree_has_its_own_irqbalance_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let daemon = Daemon::new(&root, 1);
        assert!(matches!(daemon.setup(&set(&[])), Err(SocketError::Copy)));
        assert!(matches!(daemon.ban(&set(&[7])), Err(SocketError::Copy)));
    }
}
