//! Where events come from: four netlink groups, a timer that ends when the clock is set, signals, and files.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::start::not_ignored;
use nix::errno::Errno;
use nix::net::if_::if_indextoname;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use nix::sys::time::{TimeSpec, TimeValLike as _};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::watch::event::{Event, Kind, Woken};
use crate::watch::files::Files;
use crate::watch::messages::{self, Uevent};
use nicpin::read::netlink::Client;
use nicpin::root::sys;
use nicpin::root::{Root, errno_words};

/// Group of rtnetlink with all changes of links (`RTNLGRP_LINK`), and the kernel's own group of uevents.
const LINK_GROUP: u32 = 1;
const UEVENT_GROUP: u32 = 1;
/// Group of rtnetlink with queueing disciplines, their classes and filters (`RTNLGRP_TC`).
const TC_GROUP: u32 = 4;
/// Bytes of the longest message; the kernel makes none that is longer.
const LONGEST: usize = 32 << 10;
/// Messages that are read before other sources have their turn.
const AT_ONCE: usize = 256;
/// A time that does not come, in seconds since 1970.
const NEVER: i64 = i32::MAX as i64;

/// The signals that are waited for.
const SIGNALS: [Signal; 5] = [
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGCHLD,
];

/// All sources.
#[derive(Debug)]
pub struct Sources {
    signals: SignalFd,
    clock: TimerFd,
    pub files: Files,
    netlink: Vec<(Group, OwnedFd)>,
    /// What could not be opened, in words.
    pub missing: Vec<String>,
    buffer: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Links,
    Uevents,
    Ethtool,
    Qdiscs,
}

impl Sources {
    /// Opens them, and blocks the signals that they read. A tree has files only. What the kernel does not have is
    /// missing, and no error.
    pub fn open(root: &Root, policy: &str) -> io::Result<Self> {
        let signals: SigSet = not_ignored(&SIGNALS).collect();
        signals.thread_block()?;
        let signals =
            SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let clock = TimerFd::new(
            ClockId::CLOCK_REALTIME,
            TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK,
        )?;
        let (mut netlink, mut missing) = (Vec::new(), Vec::new());
        for group in [Group::Links, Group::Uevents, Group::Ethtool, Group::Qdiscs] {
            match root.is_real().then(|| group.open()) {
                Some(Ok(opened)) => netlink.push((group, opened)),
                Some(Err(error)) => {
                    missing.push(format!("{}: {}", group.words(), errno_words(&error)));
                }
                None => {}
            }
        }
        let files = Files::open(root, policy)?;
        if files.is_full {
            missing
                .push("all cpuset partitions: fs.inotify.max_user_watches is reached".to_owned());
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
        let flags =
            TimerSetTimeFlags::TFD_TIMER_ABSTIME | TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET;
        Ok(self
            .clock
            .set(Expiration::OneShot(TimeSpec::seconds(NEVER)), flags)?)
    }

    /// Waits for events, for output of a child, or for this time at most.
    pub fn wait(
        &mut self,
        root: &Root,
        time: Duration,
        output: &[BorrowedFd<'_>],
    ) -> io::Result<Woken> {
        // Rounded up: otherwise the end of the time would be waited for in a loop.
        let milliseconds = time.as_nanos().div_ceil(1_000_000);
        let time = PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX);
        let fds = [self.signals.as_fd(), self.clock.as_fd(), self.files.as_fd()];
        let fds = fds
            .into_iter()
            .chain(self.netlink.iter().map(|(_, socket)| socket.as_fd()));
        let fds = fds.chain(output.iter().copied());
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        match poll(&mut fds, time) {
            Ok(0) | Err(Errno::EINTR) => return Ok(Woken::default()),
            woken => woken?,
        };
        let is_ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(true)).collect();
        self.read(root, &is_ready)
    }

    fn read(&mut self, root: &Root, is_ready: &[bool]) -> io::Result<Woken> {
        let mut woken = Woken::default();
        if is_ready[0] {
            while let Some(signal) = self.signals.read_signal()? {
                let signal = i32::try_from(signal.ssi_signo)
                    .ok()
                    .and_then(|signal| signal.try_into().ok());
                woken.signals.extend::<Option<Signal>>(signal);
            }
        }
        if is_ready[1] && self.clock.wait() != Err(Errno::EAGAIN) {
            woken.events.push(Event::of(Kind::Resume));
            self.arm_clock()?;
        }
        if is_ready[2] {
            self.files.read(root, &mut woken)?;
        }
        for ((group, socket), _) in self
            .netlink
            .iter()
            .zip(&is_ready[3..])
            .filter(|(_, ready)| **ready)
        {
            for _ in 0..AT_ONCE {
                let Some(length) = receive(socket, &mut self.buffer, &mut woken.events)? else {
                    break;
                };
                group.read(root, self.buffer.get(..length), &mut woken.events);
            }
        }
        Ok(woken)
    }
}

/// Receives a datagram; `None` if there is no more.
fn receive(
    socket: &OwnedFd,
    buffer: &mut [u8],
    events: &mut Vec<Event>,
) -> io::Result<Option<usize>> {
    // The real length also of a message that is longer than the buffer.
    match recv(socket.as_raw_fd(), buffer, MsgFlags::MSG_TRUNC) {
        Ok(length) => Ok(Some(length)),
        Err(Errno::EAGAIN) => Ok(None),
        Err(Errno::ENOBUFS) => {
            events.push(Event::of(Kind::Lost));
            Ok(Some(0))
        }
        Err(Errno::EINTR) => Ok(Some(0)),
        Err(errno) => Err(errno.into()),
    }
}

impl Group {
    /// A socket in this group. Beside the kernel, only who has `CAP_NET_ADMIN` can send to it.
    fn open(self) -> io::Result<OwnedFd> {
        let protocol = match self {
            Self::Links | Self::Qdiscs => SockProtocol::NetlinkRoute,
            Self::Uevents => SockProtocol::NetlinkKObjectUEvent,
            Self::Ethtool => SockProtocol::NetlinkGeneric,
        };
        let group = match self {
            Self::Links => LINK_GROUP,
            Self::Uevents => UEVENT_GROUP,
            Self::Qdiscs => TC_GROUP,
            Self::Ethtool => Client::group(c"ethtool", c"monitor")?,
        };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let opened = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        bind(opened.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        if self == Self::Qdiscs {
            // Each class and filter is sent to this group, too, and there may be thousands.
            sys::filter_netlink(&opened, &messages::QDISC_MESSAGES)?;
        }
        sys::join_netlink_group(&opened, group)?;
        Ok(opened)
    }

    fn words(self) -> &'static str {
        match self {
            Self::Links => "changes of links (rtnetlink)",
            Self::Uevents => "devices and CPUs (uevents)",
            Self::Ethtool => "changes of channels (ethtool netlink, Linux 5.6 or later)",
            Self::Qdiscs => "queueing disciplines (rtnetlink)",
        }
    }

    /// Reads a datagram; `None` for one that was longer than the buffer.
    fn read(self, root: &Root, datagram: Option<&[u8]>, events: &mut Vec<Event>) {
        let named = |kind| {
            move |names: Vec<String>| names.into_iter().map(move |name| Event::new(kind, name))
        };
        let read = datagram
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
            .and_then(|bytes| match self {
                Self::Links => {
                    messages::links(bytes).map(|names| named(Kind::Link)(names).collect())
                }
                Self::Ethtool => {
                    messages::channels(bytes).map(|names| named(Kind::Channels)(names).collect())
                }
                Self::Qdiscs => messages::qdiscs(bytes).map(|indexes| {
                    let hardware = indexes
                        .into_iter()
                        .filter_map(|index| with_device(root, index));
                    named(Kind::Qdisc)(hardware.collect()).collect()
                }),
                Self::Uevents => Ok(messages::uevent(bytes)
                    .and_then(|uevent| event(root, uevent))
                    .into_iter()
                    .collect()),
            });
        events
            .extend::<Vec<Event>>(read.unwrap_or_else(|_: io::Error| vec![Event::of(Kind::Lost)]));
    }
}

/// The name of an interface if it has a device.
fn with_device(root: &Root, index: u32) -> Option<String> {
    let name = if_indextoname(index).ok()?.into_string().ok()?;
    root.exists(&format!("/sys/class/net/{name}/device"))
        .then_some(name)
}

/// The event of a uevent; `None` for a driver that was bound to a device without interfaces.
fn event(root: &Root, uevent: Uevent) -> Option<Event> {
    match uevent {
        Uevent::Added(name) => Some(Event::new(Kind::Added, name)),
        Uevent::Interface(name) => Some(Event::new(Kind::Device, name)),
        Uevent::Cpu(cpu) => Some(Event::new(Kind::Cpu, cpu)),
        Uevent::Bound(device) => {
            let name = device.rsplit('/').next().unwrap_or_default().to_owned();
            root.exists(&format!("/sys{device}/net"))
                .then(|| Event::new(Kind::Bind, name))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn the_kernel_drops_the_messages_of_filters_and_classes() {
        let (from, to) = UnixDatagram::pair().unwrap();
        sys::filter_netlink(&to, &messages::QDISC_MESSAGES).unwrap();
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
