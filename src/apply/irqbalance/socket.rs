//! Requests on irqbalance's socket (irqbalance(1), section API), each on a new connection; a list of banned IRQs
//! replaces the earlier list. A tree has `/nicpin/irqbalance` instead.

use std::collections::BTreeSet;
use std::io::ErrorKind::{
    BrokenPipe, ConnectionReset, Interrupted, NotFound, TimedOut, WouldBlock, WriteZero,
};
use std::io::{self, IoSlice, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use itertools::Itertools as _;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, UnixCredentials,
    connect, getsockopt, sendmsg, socket,
};
use nix::unistd::geteuid;

use crate::read::files::read_best_effort;
use crate::read::tools;
use crate::root::{FileError, Root, errno_words};

pub(super) const RECORDED: &str = "/nicpin/irqbalance";

/// For all requests of one conversation. irqbalance up to 1.9.2 sleeps for one interval (10 seconds by default) when it
/// scans the machine again, and does not answer then.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// For an apply that is repeated when it fails: vectors must not wait for irqbalance.
pub(super) const SHORT_TIMEOUT: Duration = Duration::from_millis(500);
/// Bytes; each banned IRQ takes about 40.
const LONGEST_ANSWER: usize = 1 << 20;
/// Bytes that irqbalance up to 1.9.4 reads of a request.
const LONGEST_REQUEST: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// Seconds between two balancing runs.
    interval: u64,
    /// Banned by arguments or on the socket; bans by a policy script or module are not listed.
    pub banned: BTreeSet<u32>,
    cpus: String,
}

impl Setup {
    /// Parses `SLEEP 10 IRQ 71 LOAD 0 DIFF 0 CLASS 0 BANNED 000`.
    pub fn parse(text: &str) -> Option<Self> {
        let words = text.split_ascii_whitespace().collect_vec();
        let end = words.iter().position(|word| *word == "BANNED")?;
        let (["SLEEP", interval, irqs @ ..], [_, cpus @ ..]) = words.split_at(end) else {
            return None;
        };
        let number = |word: &str| word.parse::<u64>().ok();
        let mut banned = BTreeSet::new();
        for irq in irqs.chunks(8) {
            let ["IRQ", irq, "LOAD", load, "DIFF", diff, "CLASS", class] = irq else {
                return None;
            };
            number(load).and(number(diff)).and(number(class))?;
            banned.insert(irq.parse().ok()?);
        }
        let cpus = match cpus {
            // Older versions print nothing here if they use all CPUs.
            [] => String::new(),
            [cpus] => (*cpus).to_owned(),
            _ => return None,
        };
        Some(Self {
            interval: number(interval)?,
            banned,
            cpus,
        })
    }

    pub fn to_text(&self) -> String {
        let irqs = self.banned.iter().format_with("", |irq, f| {
            f(&format_args!("IRQ {irq} LOAD 0 DIFF 0 CLASS 0 "))
        });
        format!("SLEEP {} {irqs}BANNED {}", self.interval, self.cpus)
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum BanError {
    /// No request was made, and none is needed.
    #[error("{0}")]
    NotRequested(String),
    #[error(
        "process {pid} did not answer within {} s: it is stopped, or scans the machine; fix: run again, or restart irqbalance",
        time.as_secs_f64()
    )]
    Silent { pid: i32, time: Duration },
    #[error("{0}")]
    Socket(String),
    /// A failure of the service, of the record, or of the bans themselves.
    #[error("{0}")]
    Other(String),
}

impl BanError {
    pub(super) fn of_copy() -> Self {
        Self::NotRequested("this is a copy of a machine, without a running irqbalance".to_owned())
    }
}

impl From<FileError> for BanError {
    fn from(error: FileError) -> Self {
        Self::Other(error.to_string())
    }
}

#[derive(Debug)]
pub(super) struct Daemon<'a> {
    root: &'a Root,
    pid: i32,
    time: Duration,
    deadline: Instant,
}

impl<'a> Daemon<'a> {
    pub(super) fn with_timeout(time: Duration, root: &'a Root, pid: i32) -> Self {
        Self {
            root,
            pid,
            time,
            deadline: Instant::now() + time,
        }
    }

    pub(super) fn banned_irqs(&self) -> Result<BTreeSet<u32>, BanError> {
        Ok(self.setup(&BTreeSet::new())?.banned)
    }

    /// An error if a request that bans the IRQs in `room_for` would be too long.
    pub(super) fn setup(&self, room_for: &BTreeSet<u32>) -> Result<Setup, BanError> {
        // irqbalance compares only the beginning of a request, so trailing blanks do no harm. If it closes the
        // connection with bytes unread, the kernel resets it: then a request of this length is too long.
        let request = format!("{:<width$}", "setup", width = ban_request(room_for).len());
        let (text, unread) = if self.root.is_real() {
            self.ask(&request)?
        } else {
            // Only tests have it.
            let recorded = read_best_effort(self.root, RECORDED);
            (recorded.ok_or_else(BanError::of_copy)?, false)
        };
        if self.root.is_real() && text.is_empty() {
            return Err(self.closed_error());
        }
        let Some(setup) = Setup::parse(&text) else {
            let cut: String = text.trim().chars().take(60).collect();
            return Err(self.no_answer(&format!("`{cut}`")));
        };
        if unread && request.len() > LONGEST_REQUEST {
            let count = room_for.len();
            return Err(self.failure(&format!(
                "cannot read a request with {count} IRQs ({LONGEST_REQUEST} bytes up to version 1.9.4) and would ban only \
                 some of them; fix: use `nicpin irqbalance-policy` as its policy script, or --irqbalance stop"
            )));
        }
        Ok(setup)
    }

    pub(super) fn ban(&self, irqs: &BTreeSet<u32>) -> Result<(), BanError> {
        if self.root.is_real() {
            return self.ask(&ban_request(irqs)).map(drop);
        }
        let mut changed = self.setup(irqs)?;
        changed.banned.clone_from(irqs);
        self.root
            .write(RECORDED, &changed.to_text())
            .map_err(|error| self.failed(&error))
    }

    fn ask(&self, request: &str) -> Result<(String, bool), BanError> {
        ask(&mut self.connect()?, request, self.deadline).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> BanError {
        match error.kind() {
            WouldBlock | TimedOut => {
                let (pid, time) = (self.pid, self.time);
                BanError::Silent { pid, time }
            }
            BrokenPipe => self.closed_error(),
            _ => self.no_answer(&errno_words(error)),
        }
    }

    fn failure(&self, what: &str) -> BanError {
        BanError::Socket(format!("process {} {what}", self.pid))
    }

    fn no_answer(&self, reason: &str) -> BanError {
        self.failure(&format!("does not answer as irqbalance does ({reason})"))
    }

    fn closed_error(&self) -> BanError {
        let because = match (self.has_ended(), geteuid().is_root()) {
            (true, _) => "it has ended",
            (false, true) => "it closed the connection; fix: run again",
            (false, false) => "it closed the connection, and only root can use its socket",
        };
        self.failure(&format!("does not answer: {because}"))
    }

    fn has_ended(&self) -> bool {
        tools::irqbalance::process_start(self.root, self.pid).is_none()
    }

    fn connect(&self) -> Result<UnixStream, BanError> {
        let pid = self.pid;
        let name = format!("irqbalance{pid}.sock");
        // By version: 1.6 and later, 1.5, before 1.5, and the unnamed socket as a fallback since 1.5.
        let addresses = [
            UnixAddr::new(&*format!("/run/irqbalance/{name}")),
            UnixAddr::new(&*format!("/run/{name}")),
            UnixAddr::new_abstract(name.as_bytes()),
            UnixAddr::new_abstract(&[0; 107]),
        ];
        let (mut failure, mut answer) = (None, io::Error::from(NotFound));
        for address in addresses.into_iter().flatten() {
            match connect_to(&address, self.deadline) {
                Ok((stream, peer)) if peer.pid() == pid && peer.uid() == 0 => return Ok(stream),
                // Any process can bind a name without a file.
                Ok((_, peer)) => {
                    let (peer, user) = (peer.pid(), peer.uid());
                    failure = Some(BanError::Socket(format!(
                        "the socket of process {pid} belongs to process {peer} of user {user}, which is not asked"
                    )));
                }
                Err(error) if matches!(error.kind(), WouldBlock | TimedOut) => {
                    failure = Some(self.failed(&error));
                }
                Err(error) => answer = error,
            }
        }
        Err(match failure {
            Some(failure) => failure,
            None if self.has_ended() => self.closed_error(),
            None => self.failure(&format!(
                "has no socket ({}): it may be built without one; fix: use `nicpin irqbalance-policy` as its policy \
                 script, or --irqbalance stop or ignore",
                errno_words(&answer)
            )),
        })
    }
}

/// Also returns the listening process's credentials. Waits while the queue of connections is full.
fn connect_to(address: &UnixAddr, deadline: Instant) -> io::Result<(UnixStream, UnixCredentials)> {
    let (unix, kind) = (AddressFamily::Unix, SockType::Stream);
    let stream = UnixStream::from(socket(unix, kind, SockFlag::SOCK_CLOEXEC, None)?);
    stream.set_write_timeout(Some(time_left(deadline)?))?;
    connect(stream.as_raw_fd(), address)?;
    let peer = getsockopt(&stream, PeerCredentials)?;
    Ok((stream, peer))
}

fn time_left(deadline: Instant) -> io::Result<Duration> {
    match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(TimedOut.into()),
        left => Ok(left),
    }
}

fn ban_request(irqs: &BTreeSet<u32>) -> String {
    let irqs = match irqs.iter().join(" ") {
        none if none.is_empty() => "NONE".to_owned(),
        irqs => irqs,
    };
    format!("settings ban irqs {irqs}")
}

/// Sends request and credentials in one message; returns the answer, and whether irqbalance left bytes unread.
fn ask(stream: &mut UnixStream, request: &str, deadline: Instant) -> io::Result<(String, bool)> {
    let credentials = UnixCredentials::new();
    let control = [ControlMessage::ScmCredentials(&credentials)];
    let bytes = [IoSlice::new(request.as_bytes())];
    stream.set_write_timeout(Some(time_left(deadline)?))?;
    let (socket, flags) = (stream.as_raw_fd(), MsgFlags::MSG_NOSIGNAL);
    if sendmsg::<()>(socket, &bytes, &control, flags, None)? < request.len() {
        return Err(WriteZero.into());
    }
    let (mut answer, mut part) = (Vec::new(), [0; 4096]);
    let unread = loop {
        stream.set_read_timeout(Some(time_left(deadline)?))?;
        match stream.read(&mut part) {
            Ok(0) => break false,
            Ok(length) => answer.extend_from_slice(part.get(..length).unwrap_or_default()),
            // Bytes received before remain.
            Err(error) if error.kind() == ConnectionReset => break true,
            Err(error) if error.kind() == Interrupted => {}
            Err(error) => return Err(error),
        }
        if answer.len() > LONGEST_ANSWER {
            let limit = LONGEST_ANSWER >> 20;
            return Err(io::Error::other(format!("more than {limit} MiB")));
        }
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
            (
                "SLEEP 3 IRQ 71 LOAD 0 DIFF 17 CLASS 4 IRQ 9 LOAD 5 DIFF 0 CLASS 0 BANNED 00",
                set(&[9, 71]),
            ),
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
            let deadline = Instant::now() + TIMEOUT;
            let answer = ask(&mut ours, &format!("{:<length$}", "setup"), deadline).unwrap();
            assert_eq!(answer, ("SLEEP 10 BANNED 0".to_owned(), unread), "{length}");
            assert_eq!(peer.join().unwrap(), length.min(500));
        }
    }

    #[test]
    fn a_conversation_has_an_end() {
        let ends = |error: &io::Error| matches!(error.kind(), WouldBlock | TimedOut);
        let soon = || Instant::now() + Duration::from_millis(200);
        let (mut ours, _silent) = UnixStream::pair().unwrap();
        let error = ask(&mut ours, "setup", soon()).unwrap_err();
        assert!(ends(&error), "{error}");
        for (part, seconds) in [(&b"S"[..], 0), (&[b'1'; 16_384], 60)] {
            let (mut ours, mut theirs) = UnixStream::pair().unwrap();
            let peer = std::thread::spawn(move || {
                while theirs.write_all(part).is_ok() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let error = ask(&mut ours, "setup", soon() + Duration::from_secs(seconds)).unwrap_err();
            assert!(
                ends(&error) || seconds > 0 && error.to_string() == "more than 1 MiB",
                "{error}"
            );
            drop(ours);
            peer.join().unwrap();
        }
    }

    #[test]
    fn a_tree_has_its_own_irqbalance_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let daemon = Daemon::with_timeout(TIMEOUT, &root, 1);
        assert!(matches!(
            daemon.setup(&set(&[])),
            Err(BanError::NotRequested(_))
        ));
        assert!(matches!(
            daemon.ban(&set(&[7])),
            Err(BanError::NotRequested(_))
        ));
    }
}
