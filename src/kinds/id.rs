//! The identity of a setting, which stays when IRQ numbers and names of interfaces change.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Setting, SettingKind};
use crate::machine::Interface;

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
    /// A kind, and which one of several: a queue's number; for a vector or thread its role and queue, or what else is
    /// known.
    Of(SettingKind, String),
    /// A name that another version has recorded.
    Other(String),
}

impl fmt::Display for SettingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(kind, key) => f.write_str(&kind.names.with(key)),
            Self::Other(name) => f.write_str(name),
        }
    }
}

impl From<&str> for SettingName {
    fn from(name: &str) -> Self {
        let of = |kind: SettingKind| Some(Self::Of(kind, kind.names.key_in(name)?.to_owned()));
        let known = SettingKind::ALL.into_iter().find_map(of);
        known.unwrap_or_else(|| Self::Other(name.to_owned()))
    }
}

impl SettingId {
    pub(crate) fn kind(&self) -> Option<SettingKind> {
        match self.name {
            SettingName::Of(kind, _) => Some(kind),
            SettingName::Other(_) => None,
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

    /// The setting of a kind of which a port has one.
    pub(crate) fn only_id(&self, kind: SettingKind) -> SettingId {
        let port = Some(self.port_id());
        let name = SettingName::Of(kind, String::new());
        SettingId { port, name }
    }

    pub(crate) fn port(&self) -> String {
        let name = self.port_name.clone();
        name.unwrap_or_else(|| self.port.to_string())
    }
}

impl Setting<'_> {
    pub fn id(&self) -> SettingId {
        let key = self
            .owner
            .map(|interface| self.kind.key(interface, self.number));
        SettingId {
            port: self.owner.map(Interface::port_id),
            name: SettingName::Of(self.kind, key.unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SettingName::{Of, Other};
    use super::*;

    #[test]
    fn an_id_is_the_same_text_again() {
        let of = |kind, number: &str| Some(Of(kind, number.to_owned()));
        for (text, name) in [
            (
                "0000:82:00.0 port p0 channels",
                of(SettingKind::Channels, ""),
            ),
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
