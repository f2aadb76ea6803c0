//! The settings of interfaces and of the machine: each is one value in one kernel file or kernel answer. The only list
//! of them; plans, writes, the record and `restore` are made from it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::SettingName::{Channels, Other};
use self::SettingValue::{Count, Mask, On, Table};
use self::WriteKind::{NapiThread, Ntuple, Rps, RpsFlow, Sysctl, Vector, Xps, XpsRxqs};
use crate::cpuset::MaskFile;
use crate::machine::wording::word;
use crate::machine::{Interface, Machine, Rss};

pub const FLOW_ENTRIES: &str = "/proc/sys/net/core/rps_sock_flow_entries";

pub const NET: &str = "/sys/class/net";

pub const IRQ_FILES: &str = "/proc/irq";

/// The kinds of settings, in the order of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteKind {
    /// `smp_affinity` of a vector.
    Vector,
    /// The RSS indirection table (`ethtool -X`): after the vectors, so that no flow moves to a queue whose vector is
    /// not yet in place.
    Rss,
    /// The affinity of a thread that polls queues (`sched_setaffinity(2)`).
    NapiThread,
    Rps,
    RpsFlow,
    Xps,
    XpsRxqs,
    /// `net.core.rps_sock_flow_entries`.
    Sysctl,
    /// Ntuple filters (`ethtool -K`): last, when RFS has its tables.
    Ntuple,
}

impl WriteKind {
    pub fn is_cpus(self) -> bool {
        matches!(
            self,
            Self::Vector | Self::NapiThread | Self::Rps | Self::Xps
        )
    }

    pub fn is_mask(self) -> bool {
        self.is_cpus() || self == Self::XpsRxqs
    }

    /// Returns the file in a queue's directory, and the direction (`rx`, `tx`) of such queues.
    pub fn of_queue(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Rps => Some(("rx", "rps_cpus")),
            Self::RpsFlow => Some(("rx", "rps_flow_cnt")),
            Self::Xps => Some(("tx", "xps_cpus")),
            Self::XpsRxqs => Some(("tx", "xps_rxqs")),
            _ => None,
        }
    }

    /// Returns the file of a setting: `number` is a vector's IRQ, a thread's process id or a queue's number.
    pub(crate) fn path(self, interface: &str, number: u32) -> String {
        match (self, self.of_queue()) {
            (_, Some((way, file))) => queue_file(interface, way, number, file),
            (Self::Vector, _) => affinity_file(number),
            (Self::Rss, _) => ethtool_file(interface, "rss"),
            (Self::NapiThread, _) => format!("/proc/{number}"),
            (Self::Ntuple, _) => ethtool_file(interface, "features"),
            _ => FLOW_ENTRIES.to_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    pub kind: WriteKind,
    /// The IRQ of a vector, the process id of a thread, the number of a queue; else 0.
    pub number: u32,
    pub value: SettingValue<'a>,
    /// `None` for a setting of the whole machine.
    owner: Option<&'a Interface>,
}

#[derive(Debug, Clone, Copy)]
pub enum SettingValue<'a> {
    Mask(&'a MaskFile),
    Count(u32),
    Table(&'a Rss),
    On(bool),
}

impl Interface {
    pub(crate) fn settings<'a>(&'a self) -> impl Iterator<Item = Setting<'a>> {
        let mut all = Vec::new();
        let mut add = |kind, number, value: Option<SettingValue<'a>>| {
            all.extend(value.map(|value| Setting {
                kind,
                number,
                value,
                owner: Some(self),
            }));
        };
        for vector in &self.vectors {
            add(Vector, vector.irq, Some(Mask(&vector.affinity)));
        }
        add(WriteKind::Rss, 0, self.rss.as_ref().map(Table));
        for thread in &self.threads {
            add(NapiThread, thread.pid, Some(Mask(&thread.affinity)));
        }
        for rx in &self.rx_queues {
            add(Rps, rx.index, rx.rps_cpus.as_ref().map(Mask));
            add(RpsFlow, rx.index, rx.rps_flow_cnt.map(Count));
        }
        for tx in &self.tx_queues {
            add(Xps, tx.index, tx.xps_cpus.as_ref().map(Mask));
            add(XpsRxqs, tx.index, tx.xps_rxqs.as_ref().map(Mask));
        }
        add(Ntuple, 0, self.ntuple.map(On));
        all.into_iter()
    }

    /// Returns device and port, which stay when the interface is renamed.
    pub(crate) fn port_id(&self) -> PortId {
        PortId {
            device: self.device.address.clone(),
            port: self.port(),
        }
    }

    pub(crate) fn setting_id(&self, name: SettingName) -> SettingId {
        let port = Some(self.port_id());
        SettingId { port, name }
    }

    /// Returns the name of the port, else its number.
    pub(crate) fn port(&self) -> String {
        let name = self.port_name.clone();
        name.unwrap_or_else(|| self.port.to_string())
    }
}

impl Machine {
    /// Returns the settings of the whole machine.
    pub(crate) fn own_settings(&self) -> impl Iterator<Item = Setting<'_>> {
        self.flow_entries.into_iter().map(|entries| Setting {
            kind: Sysctl,
            number: 0,
            value: Count(entries),
            owner: None,
        })
    }

    pub(crate) fn settings(&self) -> impl Iterator<Item = Setting<'_>> {
        self.interfaces
            .iter()
            .flat_map(Interface::settings)
            .chain(self.own_settings())
    }
}

impl<'a> Setting<'a> {
    /// Empty for a setting of the whole machine.
    pub fn interface(&self) -> &'a str {
        self.owner.map_or("", |interface| &interface.name)
    }

    /// The absolute path of its file, without the root; without a file, its name in plans.
    pub fn path(&self) -> String {
        self.kind.path(self.interface(), self.number)
    }

    /// The text of its file.
    pub fn text(&self) -> Arc<str> {
        match self.value {
            Mask(file) => Arc::clone(&file.text),
            Count(count) => count.to_string().into(),
            Table(table) => table.to_setting().into(),
            On(on) => on_or_off(on).into(),
        }
    }

    pub fn irq(&self) -> Option<u32> {
        (self.kind == Vector).then_some(self.number)
    }

    pub(crate) fn id(&self) -> SettingId {
        let Some(interface) = self.owner else {
            let name = Other("machine rps_sock_flow_entries".to_owned());
            return SettingId { port: None, name };
        };
        let number = self.number;
        interface.setting_id(match (self.kind, self.kind.of_queue()) {
            (_, Some((way, file))) => Other(format!("{way}-{number} {file}")),
            (Vector, _) => SettingName::Vector(vector_key(interface, number)),
            (NapiThread, _) => Other(thread_key(interface, number)),
            (WriteKind::Rss, _) => SettingName::Rss,
            _ => Other("ntuple".to_owned()),
        })
    }

    /// The text of its [`SettingId`].
    pub fn key(&self) -> String {
        self.id().to_string()
    }
}

/// The identity of a setting, whatever the IRQ numbers and interface names. A key of the record; its text is like
/// `0000:82:00.0 port 0 rx-0 rps_cpus`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct SettingId {
    /// `None` for a setting of the whole machine.
    pub port: Option<PortId>,
    pub name: SettingName,
}

impl SettingId {
    pub(crate) fn is_vector(&self) -> bool {
        matches!(self.name, SettingName::Vector(_))
    }
}

/// A port of a device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Error)]
#[error("{device} port {port}")]
pub struct PortId {
    pub device: String,
    /// Its name, else its number.
    pub port: String,
}

/// The name of a setting within its port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum SettingName {
    #[error("channels")]
    Channels,
    #[error("rss")]
    Rss,
    /// By role and queue, or what else is known.
    #[error("vector {0}")]
    Vector(String),
    /// Any other name of the record, also of other versions.
    #[error("{0}")]
    Other(String),
}

impl fmt::Display for SettingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(port) = &self.port {
            write!(f, "{port} ")?;
        }
        self.name.fmt(f)
    }
}

impl From<String> for SettingId {
    fn from(text: String) -> Self {
        let of_port = text.split_once(" port ").and_then(|(device, rest)| {
            let (port, name) = rest.split_once(' ')?;
            let [device, port] = [device, port].map(str::to_owned);
            Some((PortId { device, port }, name))
        });
        let (port, name) = of_port.map_or((None, &*text), |(port, name)| (Some(port), name));
        let name = match (name, name.strip_prefix("vector ")) {
            ("channels", _) => Channels,
            ("rss", _) => SettingName::Rss,
            (_, Some(vector)) => SettingName::Vector(vector.to_owned()),
            _ => Other(name.to_owned()),
        };
        Self { port, name }
    }
}

impl From<SettingId> for String {
    fn from(id: SettingId) -> Self {
        id.to_string()
    }
}

/// Names a vector by role and queue. A vector without a queue, or with that of another (netlink and its name disagree),
/// gets its position in the device's list of IRQs, since action names may contain the interface's and numbers change at
/// each boot. Without a list it has its action, and a position among the equal ones.
fn vector_key(interface: &Interface, irq: u32) -> String {
    let Some(vector) = interface.vector(irq) else {
        return irq.to_string();
    };
    let shown = vector.role.with_queue(vector.queue);
    let is_same = |other: &&super::Vector| (other.role, other.queue) == (vector.role, vector.queue);
    let position = interface.device.irqs.iter().position(|&other| other == irq);
    match position {
        _ if vector.queue.is_some() && interface.vectors.iter().filter(is_same).count() == 1 => {
            shown
        }
        Some(position) => format!("{shown} #{position}"),
        None => {
            let is_before =
                |other: &&super::Vector| other.action == vector.action && other.irq < irq;
            match interface.vectors.iter().filter(is_before).count() {
                0 => vector.action.clone(),
                before => format!("{} #{before}", vector.action),
            }
        }
    }
}

/// Names a thread by role and queue of the vector that wakes it. Several that one vector wakes (to receive and to
/// transmit), and those of unknown queues, are numbered.
fn thread_key(interface: &Interface, pid: u32) -> String {
    let threads = interface.threads.iter();
    let woken_by = |thread: &super::NapiThread| thread.woken_by.map(|(irq, _)| irq);
    let irq = threads
        .clone()
        .find(|thread| thread.pid == pid)
        .and_then(woken_by);
    let mut alike = threads.filter(|thread| woken_by(thread) == irq);
    let is_only = alike.clone().count() == 1;
    let position = alike
        .position(|thread| thread.pid == pid)
        .unwrap_or_default();
    let vector = irq.and_then(|irq| interface.vector(irq));
    match vector.map(|vector| vector.role.with_queue(vector.queue)) {
        Some(queue) if is_only => format!("napi-thread {queue}"),
        Some(queue) => format!("napi-thread {queue} #{position}"),
        None => format!("napi-thread #{position}"),
    }
}

pub fn affinity_file(irq: u32) -> String {
    [IRQ_FILES, "/", &irq.to_string(), "/smp_affinity"].concat()
}

/// Where a tree keeps answers to ethtool ioctls.
const ETHTOOL: &str = "/nicpin/ethtool";

/// Returns where a tree has an ethtool answer: `rss` for the RSS indirection table, `features`.
pub(crate) fn ethtool_file(interface: &str, name: &str) -> String {
    format!("{ETHTOOL}/{interface}/{name}")
}

/// The directory with a directory for each queue of an interface.
pub fn queue_files(interface: &str) -> String {
    format!("{NET}/{interface}/queues")
}

/// A file of a queue; `way` is `rx` or `tx`.
pub fn queue_file(interface: &str, way: &str, queue: u32, file: &str) -> String {
    let queue = queue.to_string();
    [NET, "/", interface, "/queues/", way, "-", &queue, "/", file].concat()
}

/// Returns what a person sees of a setting: its file, else words or a command.
pub fn shown(path: &str) -> Cow<'_, str> {
    let answer = || {
        let (interface, name) = path
            .strip_prefix(ETHTOOL)?
            .strip_prefix('/')?
            .split_once('/')?;
        match name {
            "rss" => Some(format!("ethtool -X {}", word(interface))),
            "features" => Some(format!("ethtool -K {} ntuple", word(interface))),
            _ => None,
        }
    };
    answer()
        .or_else(|| {
            let thread: u32 = path.strip_prefix("/proc/")?.parse().ok()?;
            Some(format!("affinity of thread {thread}"))
        })
        .map_or(path.into(), Cow::Owned)
}

pub fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_same_text_again() {
        for (text, name) in [
            ("0000:82:00.0 port p0 channels", Some(Channels)),
            ("0000:82:00.0 port 1 rss", Some(SettingName::Rss)),
            (
                "vmbus_0_7 port 0 vector combined 3 #2",
                Some(SettingName::Vector("combined 3 #2".to_owned())),
            ),
            ("0000:82:00.0 port 0 rx-0 of_tomorrow", None),
            ("machine rps_sock_flow_entries", None),
            ("0000:82:00.0 port 0", None),
            ("", None),
        ] {
            let id = SettingId::from(text.to_owned());
            assert_eq!(id.to_string(), text);
            assert_eq!(name.is_none(), matches!(id.name, Other(_)), "{text}");
            assert!(name.is_none_or(|name| id.name == name), "{text}");
        }
    }
}
