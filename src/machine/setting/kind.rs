//! The kinds of settings: the file, the form of the value and the words of each.

use serde::{Deserialize, Serialize};

use self::SettingKind::{NapiThread, Ntuple, Rps, RpsFlow, Rss, Sysctl, Vector, Xps, XpsRxqs};
use super::files::{FLOW_ENTRIES, affinity_file, ethtool_file, queue_file};
use crate::machine::wording::{count, word};

/// The kinds of settings, in the order of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingKind {
    /// `smp_affinity` of a vector.
    Vector,
    /// `ethtool -X`: after the vectors, so that no flow moves to a queue whose vector is not yet in place.
    Rss,
    /// Affinity of a thread that polls queues (`sched_setaffinity(2)`).
    NapiThread,
    Rps,
    RpsFlow,
    Xps,
    XpsRxqs,
    /// `net.core.rps_sock_flow_entries`.
    Sysctl,
    /// `ethtool -K`: last, when RFS has its tables.
    Ntuple,
}

impl SettingKind {
    pub(crate) const ALL: [Self; 9] = [
        Vector, Rss, NapiThread, Rps, RpsFlow, Xps, XpsRxqs, Sysctl, Ntuple,
    ];

    pub fn is_cpus(self) -> bool {
        matches!(self, Vector | NapiThread | Rps | Xps)
    }

    pub fn is_mask(self) -> bool {
        self.is_cpus() || self == XpsRxqs
    }

    /// Whether it decides which queue a flow uses: the driver changes it with the channels.
    pub(crate) fn is_of_flows(self) -> bool {
        matches!(self, Rss | XpsRxqs | Ntuple)
    }

    /// Direction (`rx`, `tx`) and file of a queue's setting.
    pub fn of_queue(self) -> Option<(&'static str, &'static str)> {
        match self {
            Rps => Some(("rx", "rps_cpus")),
            RpsFlow => Some(("rx", "rps_flow_cnt")),
            Xps => Some(("tx", "xps_cpus")),
            XpsRxqs => Some(("tx", "xps_rxqs")),
            Vector | Rss | NapiThread | Sysctl | Ntuple => None,
        }
    }

    /// `number` is a vector's IRQ, a thread's process id or a queue's number.
    pub(crate) fn path(self, interface: &str, number: u32) -> String {
        match (self, self.of_queue()) {
            (_, Some((way, file))) => queue_file(interface, way, number, file),
            (Vector, _) => affinity_file(number),
            (Rss, _) => ethtool_file(interface, "rss"),
            (NapiThread, _) => format!("/proc/{number}"),
            (Ntuple, _) => ethtool_file(interface, "features"),
            (Sysctl, _) => FLOW_ENTRIES.to_owned(),
            (Rps | RpsFlow | Xps | XpsRxqs, None) => unreachable!("a queue's file has a name"),
        }
    }

    /// Whether `echo` can write it into a file.
    pub fn is_file(self) -> bool {
        !matches!(self, Rss | NapiThread | Ntuple)
    }

    /// The file, else words or a command.
    pub fn shown(self, interface: &str, number: u32) -> String {
        match self {
            Rss => format!("ethtool -X {}", word(interface)),
            Ntuple => format!("ethtool -K {} ntuple", word(interface)),
            NapiThread => format!("affinity of thread {number}"),
            _ => self.path(interface, number),
        }
    }

    /// `6 IRQs`, `4 XPS`.
    pub fn counted(self, many: usize) -> String {
        match self {
            Vector => count(many, "IRQ"),
            NapiThread => count(many, "thread"),
            Rps => format!("{many} RPS"),
            RpsFlow => format!("{many} RFS"),
            Xps => format!("{many} XPS"),
            XpsRxqs => format!("{many} XPS by queue"),
            Rss => "RSS".into(),
            Sysctl => "flow table".into(),
            Ntuple => "ntuple".into(),
        }
    }

    /// With what its key in the record begins; that of a queue's file has the file's name. It must not change.
    pub(super) fn recorded(self) -> &'static str {
        match self {
            Vector => "vector",
            Rss => "rss",
            NapiThread => "napi-thread",
            Sysctl => "machine rps_sock_flow_entries",
            Ntuple => "ntuple",
            Rps | RpsFlow | Xps | XpsRxqs => "",
        }
    }

    /// Its name in the hash of a plan, which must not change.
    pub(crate) fn hashed(self) -> &'static str {
        match self {
            Vector => "vector",
            Rss => "rss",
            NapiThread => "thread",
            Rps => "rps",
            RpsFlow => "rps_flow_cnt",
            Xps => "xps",
            XpsRxqs => "rxqs",
            Sysctl => "flow_entries",
            Ntuple => "ntuple",
        }
    }

    /// The form of a text that can be written.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Rss => "an RSS table that fits this device",
            Ntuple => "`on` or `off`",
            RpsFlow | Sysctl => "a number",
            Vector | NapiThread | Rps | Xps | XpsRxqs => "a CPU mask that fits this machine",
        }
    }
}
