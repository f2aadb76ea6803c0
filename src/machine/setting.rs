//! The settings of interfaces and of the machine: each is one value in one kernel file, or in an answer of the kernel. This
//! is their only list; plans, writes, the record and `restore` are made from it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::machine::paths::{
    FLOW_ENTRIES, affinity_file, features_file, on_or_off, queue_file, rss_file, thread_directory,
};
use crate::machine::{Interface, Machine, MaskFile, Rss};

/// The kinds of settings, in the order in which they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteKind {
    /// `smp_affinity` of a vector.
    Vector,
    /// The RSS indirection table (`ethtool -X`): after the vectors, so that no flow moves to a queue whose vector is not
    /// yet where it is planned.
    Rss,
    /// The affinity of a thread that polls queues (`sched_setaffinity(2)`).
    NapiThread,
    /// `rps_cpus` of a receive queue.
    Rps,
    /// `rps_flow_cnt` of a receive queue.
    RpsFlow,
    /// `xps_cpus` of a transmit queue.
    Xps,
    /// `xps_rxqs` of a transmit queue.
    XpsRxqs,
    /// `net.core.rps_sock_flow_entries`.
    Sysctl,
    /// Ntuple filters (`ethtool -K`): the last, when RFS has its tables.
    Ntuple,
}

impl WriteKind {
    /// Whether the file holds a CPU mask.
    pub fn is_cpus(self) -> bool {
        matches!(
            self,
            Self::Vector | Self::NapiThread | Self::Rps | Self::Xps
        )
    }

    /// Whether the file holds a mask, of CPUs or of queues.
    pub fn is_mask(self) -> bool {
        self.is_cpus() || self == Self::XpsRxqs
    }

    /// The file of a setting: `number` is a vector's IRQ, a thread's process id or a queue's number.
    pub(crate) fn path(self, interface: &str, number: u32) -> String {
        let queue = |way, file| queue_file(interface, way, number, file);
        match self {
            Self::Vector => affinity_file(number),
            Self::Rss => rss_file(interface),
            Self::NapiThread => thread_directory(number),
            Self::Rps => queue("rx", "rps_cpus"),
            Self::RpsFlow => queue("rx", "rps_flow_cnt"),
            Self::Xps => queue("tx", "xps_cpus"),
            Self::XpsRxqs => queue("tx", "xps_rxqs"),
            Self::Sysctl => FLOW_ENTRIES.to_owned(),
            Self::Ntuple => features_file(interface),
        }
    }
}

/// A setting as it is now.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    pub kind: WriteKind,
    /// The IRQ of a vector, the process id of a thread, the number of a queue; 0 for anything else.
    pub number: u32,
    pub value: SettingValue<'a>,
    /// `None` for a setting of the whole machine.
    owner: Option<&'a Interface>,
}

/// What a setting holds now.
#[derive(Debug, Clone, Copy)]
pub enum SettingValue<'a> {
    Mask(&'a MaskFile),
    Count(u32),
    Table(&'a Rss),
    On(bool),
}

impl Interface {
    /// All its settings.
    pub(crate) fn settings(&self) -> impl Iterator<Item = Setting<'_>> {
        use SettingValue::{Count, Mask, On, Table};
        let new = |kind, number, value| Setting {
            kind,
            number,
            value,
            owner: Some(self),
        };
        let vectors = self.vectors.iter();
        let vectors = vectors.map(move |of| new(WriteKind::Vector, of.irq, Mask(&of.affinity)));
        let rss = self.rss.iter();
        let rss = rss.map(move |table| new(WriteKind::Rss, 0, Table(table)));
        let threads = self.threads.iter();
        let threads = threads.map(move |of| new(WriteKind::NapiThread, of.pid, Mask(&of.affinity)));
        let rx = self.rx_queues.iter().flat_map(move |rx| {
            let cpus = rx.rps_cpus.as_ref();
            let flows = rx.rps_flow_cnt;
            let flows = flows.map(|count| new(WriteKind::RpsFlow, rx.index, Count(count)));
            let cpus = cpus.map(|cpus| new(WriteKind::Rps, rx.index, Mask(cpus)));
            cpus.into_iter().chain(flows)
        });
        let tx = self.tx_queues.iter().flat_map(move |tx| {
            let (cpus, rxqs) = (tx.xps_cpus.as_ref(), tx.xps_rxqs.as_ref());
            let cpus = cpus.map(|cpus| new(WriteKind::Xps, tx.index, Mask(cpus)));
            let rxqs = rxqs.map(|rxqs| new(WriteKind::XpsRxqs, tx.index, Mask(rxqs)));
            cpus.into_iter().chain(rxqs)
        });
        let ntuple = self.ntuple.map(|on| new(WriteKind::Ntuple, 0, On(on)));
        let first = vectors.chain(rss).chain(threads);
        first.chain(rx).chain(tx).chain(ntuple)
    }

    /// Device and port, which do not change when it is renamed.
    pub(crate) fn key(&self) -> String {
        format!("{} port {}", self.device.address, self.port)
    }
}

impl Machine {
    /// The settings of the whole machine.
    pub(crate) fn own_settings(&self) -> impl Iterator<Item = Setting<'_>> {
        let flow_entries = self.flow_entries.map(|entries| Setting {
            kind: WriteKind::Sysctl,
            number: 0,
            value: SettingValue::Count(entries),
            owner: None,
        });
        flow_entries.into_iter()
    }

    /// All settings.
    pub(crate) fn settings(&self) -> impl Iterator<Item = Setting<'_>> {
        let interfaces = self.interfaces.iter().flat_map(Interface::settings);
        interfaces.chain(self.own_settings())
    }
}

impl<'a> Setting<'a> {
    /// Empty for a setting of the whole machine.
    pub fn interface(&self) -> &'a str {
        self.owner.map_or("", |interface| &interface.name)
    }

    /// The absolute path of its file, without the root; of what has no file, the name by which plans know it.
    pub fn path(&self) -> String {
        self.kind.path(self.interface(), self.number)
    }

    /// The text of its file.
    pub fn text(&self) -> Arc<str> {
        match self.value {
            SettingValue::Mask(file) => Arc::clone(&file.text),
            SettingValue::Count(count) => count.to_string().into(),
            SettingValue::Table(table) => table.to_setting().into(),
            SettingValue::On(on) => on_or_off(on).into(),
        }
    }

    /// The IRQ of a vector.
    pub fn irq(&self) -> Option<u32> {
        (self.kind == WriteKind::Vector).then_some(self.number)
    }

    /// Its key in the record, which outlives IRQ numbers and names: `DEVICE port N rx-0 rps_cpus`.
    pub fn key(&self) -> String {
        let Some(interface) = self.owner else {
            return "machine rps_sock_flow_entries".to_owned();
        };
        let number = self.number;
        let key = match self.kind {
            WriteKind::Vector => vector_key(interface, number),
            WriteKind::NapiThread => thread_key(interface, number),
            WriteKind::Rps => format!("rx-{number} rps_cpus"),
            WriteKind::RpsFlow => format!("rx-{number} rps_flow_cnt"),
            WriteKind::Xps => format!("tx-{number} xps_cpus"),
            WriteKind::XpsRxqs => format!("tx-{number} xps_rxqs"),
            WriteKind::Rss => "rss".to_owned(),
            WriteKind::Ntuple => "ntuple".to_owned(),
            WriteKind::Sysctl => "rps_sock_flow_entries".to_owned(),
        };
        format!("{} {key}", interface.key())
    }
}

/// Role and queue. A vector without a queue has its position in the device's list of IRQs, since its name may contain the
/// interface's and its number changes at each boot.
fn vector_key(interface: &Interface, irq: u32) -> String {
    let vector = interface.vectors.iter().find(|vector| vector.irq == irq);
    let irqs = &interface.device.irqs;
    let Some(vector) = vector else {
        return format!("vector {irq}");
    };
    match (vector.queue, irqs.iter().position(|&other| other == irq)) {
        (Some(queue), _) => format!("vector {:?} {queue}", vector.role).to_lowercase(),
        (None, Some(position)) => format!("vector control #{position}"),
        (None, None) => format!("vector {}", vector.action),
    }
}

/// Role and queue of the vector that wakes the thread. A thread of an unknown queue has its position among those of the
/// interface.
fn thread_key(interface: &Interface, pid: u32) -> String {
    let thread = interface.threads.iter().find(|thread| thread.pid == pid);
    let irq = thread
        .and_then(|thread| thread.woken_by)
        .map(|(irq, _)| irq);
    let mut vectors = interface.vectors.iter();
    let vector = vectors.find(|vector| Some(vector.irq) == irq);
    if let Some((role, queue)) = vector.and_then(|vector| Some((vector.role, vector.queue?))) {
        return format!("napi-thread {} {queue}", role.name());
    }
    let mut unknown = interface
        .threads
        .iter()
        .filter(|other| other.woken_by.is_none());
    let position = unknown.position(|other| other.pid == pid);
    format!("napi-thread #{}", position.unwrap_or_default())
}
