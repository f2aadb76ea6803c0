//! Events, and which of them a run may have caused itself.

use std::fmt;

use nix::sys::signal::Signal;
use thiserror::Error;

use self::EventKind::{
    Added, Affinity, Bind, Channels, Cpu, Device, Exclusive, IrqCpus, Irqbalance, Link, Lost, Near,
    Periodic, Policy, Qdisc, Released, Request, Resume, Retry, Rss, Start,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    /// The interface, CPU, device or IRQ; empty for the whole machine.
    pub about: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EventKind {
    #[error("start")]
    Start,
    /// An interface was opened, closed, changed or removed (rtnetlink, group `link`).
    #[error("link")]
    Link,
    #[error("new device")]
    Added,
    /// An interface was removed or renamed, or a queue was added or removed (uevents `net` and `queues`).
    #[error("device")]
    Device,
    /// A driver was bound to a device with interfaces (uevent `bind`).
    #[error("bind")]
    Bind,
    /// Channels, rings or private flags were set (ethtool netlink, group `monitor`).
    #[error("channels")]
    Channels,
    #[error("RSS")]
    Rss,
    /// A queueing discipline was set or removed (rtnetlink, group `tc`): mqprio takes XPS away.
    #[error("qdisc")]
    Qdisc,
    /// A CPU went online or offline (uevent `cpu`).
    #[error("cpu")]
    Cpu,
    /// The clock was set, as the kernel does at resume (`TFD_TIMER_CANCEL_ON_SET`).
    #[error("resume or clock change")]
    Resume,
    /// The kernel had no room for a message (ENOBUFS), or a message was torn.
    #[error("lost events")]
    Lost,
    /// irqbalance has made a socket: it has none of its bans.
    #[error("irqbalance started")]
    Irqbalance,
    #[error("exclusive CPUs")]
    Exclusive,
    /// `default_smp_affinity` was changed.
    #[error("CPUs for interrupts")]
    IrqCpus,
    /// A program that interrupts are to be near may use other CPUs, or has started or ended.
    #[error("CPUs of")]
    Near,
    #[error("policy")]
    Policy,
    /// Another program has written the affinity of a planned vector.
    #[error("affinity of IRQ")]
    Affinity,
    #[error("end of a trial or pause")]
    Released,
    #[error("SIGUSR1")]
    Request,
    #[error("periodic check")]
    Periodic,
    #[error("retry")]
    Retry,
}

impl Event {
    pub fn new(kind: EventKind, about: impl Into<String>) -> Self {
        let about = about.into();
        Self { kind, about }
    }

    /// The interface whose settings the event may change or reset, empty for all; `None` for events that only another
    /// program's write explains, and for irqbalance, which has to answer first.
    pub fn explains(&self) -> Option<&str> {
        match self.kind {
            Link | Added | Device | Channels | Qdisc => Some(&self.about),
            Start | Bind | Cpu | Resume | Lost | Exclusive | IrqCpus | Near | Policy | Released
            | Request => Some(""),
            Rss | Irqbalance | Affinity | Periodic | Retry => None,
        }
    }

    pub fn of_machine(kind: EventKind) -> Self {
        Self::new(kind, "")
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.about.is_empty() { "" } else { " " };
        write!(f, "{}{space}{}", self.kind, self.about)
    }
}

#[derive(Default)]
pub struct Woken {
    pub events: Vec<Event>,
    pub signals: Vec<Signal>,
    /// A trial, or the pause of a restore, may have begun or ended.
    pub state: bool,
}

/// Events of the next run: the first of each kind, of exclusive CPUs the last, and how many there were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Events {
    first: Vec<Event>,
    pub count: usize,
}

impl From<Event> for Events {
    fn from(event: Event) -> Self {
        let first = vec![event];
        Self { first, count: 1 }
    }
}

impl Events {
    pub fn extend(&mut self, more: impl Into<Self>) {
        let Self { first, count } = more.into();
        self.count += count;
        for event in first {
            let mut known = self.first.iter_mut();
            match known.find(|known| known.kind == event.kind) {
                Some(known) if event.kind == Exclusive => *known = event,
                Some(_) => {}
                None => self.first.push(event),
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    pub fn cause(&self) -> String {
        self.first.first().map(Event::to_string).unwrap_or_default()
    }

    /// A run for these events writes what was planned before, so that another program may have changed it.
    pub fn are_of_old_plan(&self) -> bool {
        let is_fresh_start = |event: &Event| {
            matches!(
                event.kind,
                Start | Policy | Released | Exclusive | IrqCpus | Near
            )
        };
        !self.first.iter().any(is_fresh_start)
    }

    /// `channels`: the run changed channels; `irqbalance`: it stopped or asked irqbalance.
    pub fn may_be_own(&self, channels: bool, irqbalance: bool) -> bool {
        self.first.iter().all(|event| match event.kind {
            Link | Device | Channels | Rss | Qdisc => channels,
            Irqbalance => irqbalance,
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_each_kind_is_kept_and_how_cpus_are_exclusive_last() {
        let mut events = Events::default();
        for (kind, about) in [
            (EventKind::Exclusive, "none"),
            (EventKind::Link, "eth0"),
            (EventKind::Exclusive, "1"),
            (EventKind::Link, "eth1"),
        ] {
            events.extend(Event::new(kind, about));
        }
        assert_eq!(events.cause(), "exclusive CPUs 1");
        assert_eq!(events.first[1], Event::new(EventKind::Link, "eth0"));
        assert_eq!((events.first.len(), events.count), (2, 4));
    }
}
