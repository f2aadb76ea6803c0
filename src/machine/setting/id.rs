//! The identity of a setting, which stays when IRQ numbers and names of interfaces change.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Setting, SettingKind};
use crate::machine::{Interface, NapiThread, Vector};

/// A setting's key in the record, such as `0000:82:00.0 port 0 rx-0 rps_cpus`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct SettingId {
    /// `None` for a setting of the whole machine.
    pub port: Option<PortId>,
    pub name: SettingName,
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingName {
    Channels,
    /// A kind, and which one of several: a queue's number; for a vector or thread its role and queue, or what else is
    /// known.
    Of(SettingKind, String),
    /// A name that another version has recorded.
    Other(String),
}

impl fmt::Display for SettingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, number) = match self {
            Self::Channels => return f.write_str("channels"),
            Self::Other(name) => return f.write_str(name),
            Self::Of(kind, number) => (*kind, number),
        };
        match kind.of_queue() {
            Some((way, file)) => write!(f, "{way}-{number} {file}"),
            None if number.is_empty() => f.write_str(kind.recorded()),
            None => write!(f, "{} {number}", kind.recorded()),
        }
    }
}

impl From<&str> for SettingName {
    fn from(name: &str) -> Self {
        let number = |kind: SettingKind| match (kind, kind.of_queue()) {
            (_, Some((way, file))) => {
                let queue = name.strip_suffix(file)?.strip_suffix(' ')?;
                queue.strip_prefix(way)?.strip_prefix('-')
            }
            (SettingKind::Vector | SettingKind::NapiThread, None) => {
                name.strip_prefix(kind.recorded())?.strip_prefix(' ')
            }
            (_, None) => (name == kind.recorded()).then_some(""),
        };
        let mut kinds = SettingKind::ALL.into_iter();
        match kinds.find_map(|kind| Some(Self::Of(kind, number(kind)?.to_owned()))) {
            _ if name == "channels" => Self::Channels,
            Some(known) => known,
            None => Self::Other(name.to_owned()),
        }
    }
}

impl SettingId {
    pub(crate) fn kind(&self) -> Option<SettingKind> {
        match self.name {
            SettingName::Of(kind, _) => Some(kind),
            _ => None,
        }
    }

    pub(crate) fn is_vector(&self) -> bool {
        self.kind() == Some(SettingKind::Vector)
    }
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
        let name = name.into();
        Self { port, name }
    }
}

impl From<SettingId> for String {
    fn from(id: SettingId) -> Self {
        id.to_string()
    }
}

impl Interface {
    /// Stays when the interface is renamed.
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

    pub(crate) fn port(&self) -> String {
        let name = self.port_name.clone();
        name.unwrap_or_else(|| self.port.to_string())
    }
}

impl Setting<'_> {
    pub fn id(&self) -> SettingId {
        let Some(interface) = self.owner else {
            let name = SettingName::Of(self.kind, String::new());
            return SettingId { port: None, name };
        };
        let number = match self.kind {
            SettingKind::Vector => vector_key(interface, self.number),
            SettingKind::NapiThread => thread_key(interface, self.number),
            kind if kind.of_queue().is_some() => self.number.to_string(),
            _ => String::new(),
        };
        interface.setting_id(SettingName::Of(self.kind, number))
    }
}

/// The key is role and queue. A vector without a queue, or with that of another (netlink and its name disagree), has
/// its position in the device's list of IRQs, since action names may contain the interface's and numbers change at each
/// boot; without a list, its action and a position among equal ones.
fn vector_key(interface: &Interface, irq: u32) -> String {
    let Some(vector) = interface.vector(irq) else {
        return irq.to_string();
    };
    let shown = vector.role.with_queue(vector.queue);
    let is_same = |other: &&Vector| (other.role, other.queue) == (vector.role, vector.queue);
    let position = interface.device.irqs.iter().position(|&other| other == irq);
    match position {
        _ if vector.queue.is_some() && interface.vectors.iter().filter(is_same).count() == 1 => {
            shown
        }
        Some(position) => format!("{shown} #{position}"),
        None => {
            let is_before = |other: &&Vector| other.action == vector.action && other.irq < irq;
            match interface.vectors.iter().filter(is_before).count() {
                0 => vector.action.clone(),
                before => format!("{} #{before}", vector.action),
            }
        }
    }
}

/// Role and queue of the vector that wakes the thread. Several that one vector wakes (to receive and to transmit), and
/// those of unknown queues, are numbered.
fn thread_key(interface: &Interface, pid: u32) -> String {
    let woken_by = |thread: &NapiThread| thread.woken_by.map(|(irq, _)| irq);
    let is_own = |thread: &&NapiThread| thread.pid == pid;
    let irq = interface.threads.iter().find(is_own).and_then(woken_by);
    let alike = interface.threads.iter();
    let alike = alike.filter(|thread| woken_by(thread) == irq);
    let is_only = alike.clone().count() == 1;
    let position = alike.clone().take_while(|thread| !is_own(thread)).count();
    let vector = irq.and_then(|irq| interface.vector(irq));
    match vector.map(|vector| vector.role.with_queue(vector.queue)) {
        Some(queue) if is_only => queue,
        Some(queue) => format!("{queue} #{position}"),
        None => format!("#{position}"),
    }
}

#[cfg(test)]
mod tests {
    use super::SettingName::{Channels, Of, Other};
    use super::*;

    #[test]
    fn an_id_is_the_same_text_again() {
        let of = |kind, number: &str| Some(Of(kind, number.to_owned()));
        for (text, name) in [
            ("0000:82:00.0 port p0 channels", Some(Channels)),
            ("0000:82:00.0 port 1 rss", of(SettingKind::Rss, "")),
            (
                "vmbus_0_7 port 0 vector combined 3 #2",
                of(SettingKind::Vector, "combined 3 #2"),
            ),
            (
                "0000:82:00.0 port 0 napi-thread #1",
                of(SettingKind::NapiThread, "#1"),
            ),
            (
                "0000:82:00.0 port 0 rx-12 rps_flow_cnt",
                of(SettingKind::RpsFlow, "12"),
            ),
            (
                "0000:82:00.0 port 0 tx-0 xps_rxqs",
                of(SettingKind::XpsRxqs, "0"),
            ),
            ("0000:82:00.0 port 0 ntuple", of(SettingKind::Ntuple, "")),
            ("machine rps_sock_flow_entries", of(SettingKind::Sysctl, "")),
            ("0000:82:00.0 port 0 rx-0 of_tomorrow", None),
            ("0000:82:00.0 port 0 tx-0 rps_cpus", None),
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
