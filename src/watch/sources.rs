//! The sources of events: four netlink groups, a timer that ends when the clock is set, signals, and files.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use itertools::Itertools as _;
use nix::errno::Errno;
use nix::libc::{RTNLGRP_LINK, RTNLGRP_TC};
use nix::net::if_::if_indextoname;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use nix::sys::time::{TimeSpec, TimeValLike as _};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::start::not_ignored;
use crate::watch::event::EventKind::{Bind, Link, Lost, Qdisc, Resume};
use crate::watch::event::{Event, EventKind, Woken};
use crate::watch::files::Files;
use crate::watch::messages;
use nicpin::read::netlink::Client;
use nicpin::root::{Root, errno_words, sys};

/// Bytes of the kernel's longest message.
const LONGEST: usize = 32 << 10;
/// Messages to read before other sources have their turn.
const AT_ONCE: usize = 256;
/// A time that does not come, in seconds since 1970: in 2242, or the last that 32 bits hold.
const NEVER: i64 = if cfg!(target_pointer_width = "64") {
    1 << 33
} else {
    i32::MAX as i64
};

/// Unless the watcher's caller ignores them (`nohup`).
const SIGNALS: [Signal; 4] = [SIGHUP, SIGUSR1, SIGTERM, SIGINT];

pub struct Sources {
    signals: SignalFd,
    clock: TimerFd,
    pub files: Files,
    netlink: Vec<(OwnedFd, Read)>,
    pub missing: Vec<String>,
    buffer: Vec<u8>,
}

type Read = fn(&Root, &[u8]) -> io::Result<Vec<Event>>;

/// In words, by protocol and number: the kernel has its own group of uevents, and ethtool's has another number at each
/// boot.
const GROUPS: [(&str, SockProtocol, Option<u32>, Read); 4] = [
    (
        "changes of links (rtnetlink)",
        SockProtocol::NetlinkRoute,
        Some(RTNLGRP_LINK),
        |_, bytes| Ok(named_events(Link, messages::links(bytes)?)),
    ),
    (
        "devices and CPUs (uevents)",
        SockProtocol::NetlinkKObjectUEvent,
        Some(1),
        |root, bytes| {
            let event = messages::uevent(bytes).and_then(|event| of_interfaces(root, event));
            Ok(Vec::from_iter(event))
        },
    ),
    (
        "changes of channels (ethtool netlink, Linux 5.6 or later)",
        SockProtocol::NetlinkGeneric,
        None,
        |_, bytes| messages::channels(bytes),
    ),
    (
        "queueing disciplines (rtnetlink)",
        SockProtocol::NetlinkRoute,
        Some(RTNLGRP_TC),
        |root, bytes| {
            let indexes = messages::qdiscs(bytes)?.into_iter();
            let names = indexes.filter_map(|index| with_device(root, index));
            Ok(named_events(Qdisc, names))
        },
    ),
];

fn named_events(kind: EventKind, names: impl IntoIterator<Item = String>) -> Vec<Event> {
    names
        .into_iter()
        .map(|name| Event::new(kind, name))
        .collect()
}

impl Sources {
    /// Also blocks the signals that the sources read. A tree has files only. What the kernel does not have is missing,
    /// and no error.
    pub fn open(root: &Root, policy: &str) -> io::Result<Self> {
        // The end of a run is always waited for, even if the caller ignores the ends of its own children.
        let signals: SigSet = not_ignored(&SIGNALS).chain([SIGCHLD]).collect();
        signals.thread_block()?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let signals = SignalFd::with_flags(&signals, flags)?;
        let clock = TimerFd::new(
            ClockId::CLOCK_REALTIME,
            TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK,
        )?;
        let (mut netlink, mut missing) = (Vec::new(), Vec::new());
        for (words, protocol, group, read) in GROUPS.into_iter().filter(|_| root.is_real()) {
            match open(protocol, group) {
                Ok(opened) => netlink.push((opened, read)),
                Err(error) => missing.push(format!("{words}: {}", errno_words(&error))),
            }
        }
        let files = Files::open(root, policy)?;
        if files.is_full {
            let limit = "some files: fs.inotify.max_user_instances or max_user_watches is reached";
            missing.push(limit.to_owned());
        }
        let sources = Self {
            signals,
            clock,
            files,
            netlink,
            missing,
            buffer: vec![0; LONGEST],
        };
        sources.arm_clock()?;
        Ok(sources)
    }

    fn arm_clock(&self) -> io::Result<()> {
        let never = Expiration::OneShot(TimeSpec::seconds(NEVER));
        let flags =
            TimerSetTimeFlags::TFD_TIMER_ABSTIME | TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET;
        Ok(self.clock.set(never, flags)?)
    }

    pub fn wait(
        &mut self,
        root: &Root,
        time: Duration,
        output: &[BorrowedFd<'_>],
    ) -> io::Result<Woken> {
        let mut woken = Woken::default();
        // Rounded up: a rest below a millisecond would be waited for in a loop.
        let time =
            PollTimeout::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(PollTimeout::MAX);
        let own = [self.signals.as_fd(), self.clock.as_fd()];
        let own = own.into_iter().chain(self.files.as_fd());
        let netlink = self.netlink.iter().map(|(socket, _)| socket.as_fd());
        let mut fds = own
            .chain(netlink)
            .chain(output.iter().copied())
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect_vec();
        match poll(&mut fds, time) {
            Ok(0) | Err(Errno::EINTR) => return Ok(woken),
            ready => ready?,
        };
        // Reads do not block.
        while let Some(signal) = self.signals.read_signal()? {
            let number = i32::try_from(signal.ssi_signo).ok();
            woken
                .signals
                .extend(number.and_then(|number| Signal::try_from(number).ok()));
        }
        if self.clock.wait() != Err(Errno::EAGAIN) {
            woken.events.push(Event::of_machine(Resume));
            self.arm_clock()?;
        }
        self.files.read(root, &mut woken)?;
        for (socket, read) in &self.netlink {
            for _ in 0..AT_ONCE {
                // MSG_TRUNC returns the real length of a message longer than the buffer.
                match recv(socket.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_TRUNC) {
                    Ok(length) => {
                        let bytes = self.buffer.get(..length);
                        woken
                            .events
                            .extend(match bytes.map(|bytes| read(root, bytes)) {
                                Some(Ok(events)) => events,
                                _ => vec![Event::of_machine(Lost)],
                            });
                    }
                    Err(Errno::ENOBUFS) => woken.events.push(Event::of_machine(Lost)),
                    Err(Errno::EINTR) => {}
                    Err(Errno::EAGAIN) => break,
                    Err(errno) => return Err(errno.into()),
                }
            }
        }
        Ok(woken)
    }
}

/// Only the kernel and processes with `CAP_NET_ADMIN` can send to the group.
fn open(protocol: SockProtocol, group: Option<u32>) -> io::Result<OwnedFd> {
    let number = match group {
        Some(group) => group,
        None => Client::group(c"ethtool", c"monitor")?,
    };
    let opened = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        protocol,
    )?;
    bind(opened.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
    if group == Some(RTNLGRP_TC) {
        // Each class and filter is sent to this group, too, and there may be thousands.
        sys::filter_netlink(&opened, messages::QDISC_MESSAGES)?;
    }
    sys::join_netlink_group(&opened, number)?;
    Ok(opened)
}

fn with_device(root: &Root, index: u32) -> Option<String> {
    let name = if_indextoname(index).ok()?.into_string().ok()?;
    root.exists(&format!("/sys/class/net/{name}/device"))
        .then_some(name)
}

/// A bind event is about the device's address, not its path; `None` if it has no interfaces.
fn of_interfaces(root: &Root, event: Event) -> Option<Event> {
    if event.kind != Bind {
        return Some(event);
    }
    let path = event.about;
    let name = path.rsplit('/').next()?;
    root.exists(&format!("/sys{path}/net"))
        .then(|| Event::new(Bind, name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn the_kernel_drops_the_messages_of_filters_and_classes() {
        let (from, to) = UnixDatagram::pair().unwrap();
        sys::filter_netlink(&to, messages::QDISC_MESSAGES).unwrap();
        for kind in [36_u16, 40, 44, 37, 16, 0x2400, 36] {
            let length = 16_u32.to_ne_bytes();
            let bytes = [&length[..], &kind.to_ne_bytes(), &[0; 10]].concat();
            from.send(&bytes).unwrap();
        }
        to.set_nonblocking(true).unwrap();
        let mut seen = Vec::new();
        let mut bytes = [0; 32];
        while let Ok(16) = to.recv(&mut bytes) {
            seen.push(u16::from_ne_bytes([bytes[4], bytes[5]]));
        }
        assert_eq!(seen, [36, 37, 36]);
    }
}
