//! The settings: each is one value in one kernel file or kernel answer, and each kind of them is one file here: where it
//! is, what it holds, how the kernel is asked for it, its key in the record, and what the kernel's errors mean. Plans,
//! writes, the record and `restore` are made from these.

mod affinity;
mod channels;
mod flow_cnt;
mod flow_table;
mod id;
mod kind;
mod ntuple;
mod rps;
mod rss;
mod setting;
mod threads;
mod value;
mod xps;
mod xps_rxqs;

use std::ops::Deref;

use serde::{Deserialize, Serialize};

pub use self::id::{PortId, SettingId, SettingName};
pub use self::kind::Kind;
pub(crate) use self::kind::{Access, Answer, Meaning, Removed};
pub use self::setting::Setting;
pub(crate) use self::setting::{Place, place};
pub use self::value::{Held, Value, on_or_off};

/// The kinds of settings, in the order of writing. What there is to know of each is in its [`Kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingKind {
    /// `ethtool -L`: first, since the others come and go with it. A [`Plan`](crate::plan::Plan) has it apart.
    Channels,
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
    pub(crate) const ALL: [Self; 10] = [
        Self::Channels,
        Self::Vector,
        Self::Rss,
        Self::NapiThread,
        Self::Rps,
        Self::RpsFlow,
        Self::Xps,
        Self::XpsRxqs,
        Self::Sysctl,
        Self::Ntuple,
    ];
}

impl Deref for SettingKind {
    type Target = Kind;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Channels => &channels::CHANNEL_NUMBERS,
            Self::Vector => &affinity::AFFINITY,
            Self::Rss => &rss::RSS_TABLE,
            Self::NapiThread => &threads::THREAD,
            Self::Rps => &rps::RPS_CPUS,
            Self::RpsFlow => &flow_cnt::RPS_FLOW_CNT,
            Self::Xps => &xps::XPS_CPUS,
            Self::XpsRxqs => &xps_rxqs::XPS_RXQS,
            Self::Sysctl => &flow_table::FLOW_TABLE,
            Self::Ntuple => &ntuple::NTUPLE,
        }
    }
}
