//! Network interfaces: the bus device behind each, its queues and their steering masks.
//!
//! Only interfaces with a device are interfaces here; bonds, VLANs and bridges are kept as [`Stacked`]
//! (`Documentation/ABI/testing/sysfs-class-net`, `sysfs-class-net-queues`).

use std::borrow::Cow;
use std::fmt;

use itertools::Itertools as _;
use serde::{Deserialize, Serialize};

use self::Role::{Combined, Control, Data, Rdma, Rx, Tx};
use crate::cpuset::{CpuSet, MaskFile};
use crate::machine::channels::Channels;
use crate::machine::netdev::{Direction, Napi, Netdev};
use crate::machine::rx_hash::{Rss, RxHash};

/// A network interface with a device behind it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interface {
    pub name: String,
    /// The driver, as ethtool names it: `mlx4_en`, `virtio_net`.
    pub driver: Option<String>,
    /// Its name as ethtool reports it, where that was asked for and is another.
    pub ethtool_driver: Option<String>,
    /// The driver's version, as ethtool reports it; most drivers report the kernel's.
    pub driver_version: Option<String>,
    /// The firmware's version, as ethtool reports it.
    pub firmware: Option<String>,
    /// The most bytes of a packet (`mtu`).
    pub mtu: Option<u32>,
    /// Whether it is in another network namespace than the process. Ethtool and netlink would report another interface of
    /// its name, or none. Unless `/sys` shows it, it is known by its PCI address, which is then its name.
    pub in_other_namespace: bool,
    /// Whether it is a PCI function of which nothing shows that it has a network interface, here or in another namespace, as
    /// one for RDMA alone: its IRQs serve no queues that are known.
    pub without_netdev: bool,
    /// Whether its name is not UTF-8 text without white space and control characters: nothing of it can be read, and
    /// `name` has replacement characters.
    pub unreadable_name: bool,
    /// The bus device that owns its vectors.
    pub device: Device,
    /// Which port of the device it is (`dev_port`), from 0.
    pub port: u32,
    /// The port's name (`phys_port_name`), which tells representors of virtual functions and ports of a switch apart. Without
    /// one, the interface's own, where an older interface has that port of the device, too.
    pub port_name: Option<String>,
    /// `up`, `down`, `lowerlayerdown` and so on (`Documentation/networking/operstates.rst`); a driver that
    /// reports `unknown` counts as up while the interface is.
    pub link: String,
    /// Whether somebody has set it down (no `IFF_UP`); one without a carrier is up.
    pub is_down: bool,
    /// Link speed in Mbit/s; `None` while the link is down or the driver does not report it.
    pub speed_mbps: Option<u32>,
    /// The fastest link mode that the driver supports, in Mbit/s; a fact of the hardware, whatever the link does. `None`
    /// if the driver lists none.
    pub supported_mbps: Option<u32>,
    /// Receive queues in use (`real_num_rx_queues`), in order.
    pub rx_queues: Vec<RxQueue>,
    /// Transmit queues in use (`real_num_tx_queues`), in order.
    pub tx_queues: Vec<TxQueue>,
    /// The channels and their maximums, if the driver reports them.
    pub channels: Option<Channels>,
    /// Whether the driver is known to accept no other number of channels.
    pub channels_fixed: bool,
    /// Whether its vectors are numbered by channel, as those of mlx5: one has the receive queue of its number, and a
    /// transmit queue of each traffic class.
    pub channel_vectors: bool,
    /// The RSS indirection table; `None` where there is none, or it was not read.
    pub rss: Option<Rss>,
    /// What decides on the receive queue of a flow, if it was read and the driver reports any of it.
    pub rx_hash: Option<RxHash>,
    /// Whether ntuple filters are on, where the driver has accelerated RFS and they can be turned on and off.
    pub ntuple: Option<bool>,
    /// How the queues are polled.
    pub polling: Polling,
    /// The threads that poll its queues, as far as they could be found; empty unless NAPI is threaded.
    pub threads: Vec<NapiThread>,
    /// What netlink reports of the queues and their IRQs.
    pub netdev: Option<Netdev>,
    /// The `VMBus` channels; `None` for a device on another bus.
    pub vmbus: Option<Vec<VmbusChannel>>,
    /// The vectors that are understood: queue vectors by queue, then those for RDMA, then control vectors.
    pub vectors: Vec<Vector>,
    /// Vectors of the device with a handler whose name is not understood.
    pub unknown_vectors: Vec<UnknownVector>,
    /// The CPUs on which these interrupt; where none of its IRQs is known, also those of IRQs of no known device, or
    /// of its controller.
    pub unknown_vector_cpus: CpuSet,
    /// Vectors of the device without files in `/proc/irq`: they were freed while they were read.
    pub vanished_vectors: Vec<UnknownVector>,
    /// Where netlink and a vector's name disagree: both answers, in words. Netlink's is used.
    pub contradictions: Vec<String>,
    /// The interface under which the vectors of a shared device are listed, when it is not this one.
    pub shares_vectors_of: Option<String>,
    /// Interfaces whose vectors are listed here, since names do not show which vector belongs to which.
    pub sharing: Vec<Sharer>,
}

/// An interface whose vectors are listed under another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharer {
    pub name: String,
    /// The number of receive queues in use.
    pub rx: usize,
    /// The number of transmit queues in use.
    pub tx: usize,
}

/// The device on a bus that an interface belongs to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Device {
    /// The name on the bus: `0000:82:00.0` on PCI.
    pub address: String,
    /// PCI vendor and device in hex (`15b3:1017`); `None` off PCI.
    pub pci_id: Option<String>,
    /// The node (`numa_node`); `None` for -1 and without such a file.
    pub node: Option<u32>,
    /// `local_cpulist`: the CPUs near the device, or all CPUs if the node is unknown.
    pub local_cpus: Option<CpuSet>,
    /// `max_link_speed` times `max_link_width` in MT/s; 0 if unknown. A property of the device, not of its slot or
    /// cable.
    pub pcie_mtps: u64,
    /// The current link (`current_link_speed`, `current_link_width`), and what both the device and the port above it can
    /// do; `None` if any of that is unknown, and of virtual functions, which have no link.
    pub link: Option<(PcieLink, PcieLink)>,
    /// The physical function that it is a virtual function of (`physfn`).
    pub parent: Option<String>,
    /// IRQs allocated to it (`msi_irqs`, or its one `INTx` or MSI line), ascending.
    pub irqs: Vec<u32>,
    /// Its interrupts by the device tree, where sysfs lists no IRQs.
    pub tree: Vec<TreeInterrupt>,
    /// The controller whose interrupts are its own, too (USB, SDIO, VMBus): its driver, and its IRQs as far as sysfs lists
    /// them.
    pub controller: Option<(String, Vec<u32>)>,
}

/// An interrupt of a device by the device tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeInterrupt {
    /// Its number at the interrupt controller.
    pub hwirq: u32,
    /// What it is for (`interrupt-names`).
    pub name: Option<String>,
}

/// A receive queue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RxQueue {
    /// N of `rx-N`.
    pub index: u32,
    /// `rps_cpus`; `None` on a kernel without RPS.
    pub rps_cpus: Option<MaskFile>,
    /// `rps_flow_cnt`; `None` on a kernel without RFS.
    pub rps_flow_cnt: Option<u32>,
}

/// A transmit queue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TxQueue {
    /// N of `tx-N`.
    pub index: u32,
    /// `traffic_class`: `1`, or `0-1` of a subordinate interface; empty where all queues are of class 0.
    pub class: String,
    /// `xps_cpus`; `None` on a kernel without XPS, on an interface with one transmit queue, and of a queue in no class.
    pub xps_cpus: Option<MaskFile>,
    /// `xps_rxqs`, a mask of receive queues, for whose flows it takes precedence over `xps_cpus`; `None` on a kernel
    /// without it.
    pub xps_rxqs: Option<MaskFile>,
}

/// A `VMBus` channel, through which Hyper-V delivers a device's packets to one CPU; it has no IRQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmbusChannel {
    /// N of `channels/N`.
    pub id: u32,
    /// The CPU that the channel interrupts.
    pub cpu: u32,
}

/// An interface above others: a bond, team, VLAN or bridge, or a Hyper-V device above its virtual function.
#[derive(Debug, Clone, PartialEq)]
pub struct Stacked {
    pub name: String,
    /// The interfaces directly below it (`lower_*`).
    pub lowers: Vec<String>,
    /// The kernel's word for its kind (`DEVTYPE` in `uevent`): `vlan`, `bond`, `vxlan`; absent for some.
    pub kind: Option<String>,
}

impl Device {
    /// The IRQs of its controller, by which its packets arrive.
    pub(crate) fn by_controller(&self) -> &[u32] {
        self.controller.as_ref().map_or(&[], |(_, irqs)| irqs)
    }

    /// Whether an IRQ is one of its own; any may be where they are not listed.
    pub(crate) fn may_have(&self, irq: u32) -> bool {
        self.irqs.is_empty() || self.irqs.contains(&irq)
    }
}

impl Interface {
    /// The vector of an IRQ.
    pub(crate) fn vector(&self, irq: u32) -> Option<&Vector> {
        self.vectors.iter().find(|vector| vector.irq == irq)
    }

    /// The vector of a queue by netlink: several queues may share one.
    pub(crate) fn reported_vector(&self, direction: Direction, queue: u32) -> Option<&Vector> {
        self.vector(self.netdev.as_ref()?.irq_of(direction, queue)?)
    }

    /// The vector that wakes one of its threads, if it is known.
    pub(crate) fn vector_of(&self, thread: &NapiThread) -> Option<&Vector> {
        self.vector(thread.woken_by?.0)
    }

    /// Whether it has so many receiving channels; where they are not reported, each has a receive queue.
    pub(crate) fn receives_by(&self, channels: u32) -> bool {
        let queues = || u32::try_from(self.rx_queues.len()).unwrap_or(u32::MAX);
        self.channels.map_or_else(queues, |now| now.receiving()) == channels
    }

    /// Its vectors for packets.
    pub fn queue_vectors(&self) -> impl Iterator<Item = &Vector> {
        self.vectors.iter().filter(|vector| vector.role.is_queue())
    }

    /// Those of queues in use.
    pub(crate) fn active_vectors(&self) -> impl Iterator<Item = &Vector> {
        self.queue_vectors().filter(|vector| !self.is_idle(vector))
    }

    /// How many of its queues are in use and have a vector.
    pub(crate) fn active_queues(&self) -> usize {
        let queues = self.active_vectors().map(Vector::queue_id);
        queues.sorted_unstable().dedup().count()
    }

    /// Whether no IRQ is known to be its device's, on a bus of which sysfs lists none: USB, `VMBus`, platform.
    pub(crate) fn has_no_irqs(&self) -> bool {
        self.device.irqs.is_empty() && self.vectors.is_empty() && !self.is_pci()
    }

    /// Whether it has IRQs, or may have, and none is known: on a bus of which sysfs lists none, and beside no other's.
    pub(crate) fn may_have_any(&self) -> bool {
        let is_told = self.is_pci() || self.device.controller.is_some() || self.vmbus.is_some();
        let is_empty = self.vectors.is_empty() && self.unknown_vectors.is_empty();
        let none = self.device.irqs.is_empty() && is_empty && self.shares_vectors_of.is_none();
        self.link == "up" && none && !is_told
    }

    fn is_pci(&self) -> bool {
        is_pci_address(&self.device.address)
    }

    /// The NAPI instances that netlink reports.
    pub(crate) fn napis(&self) -> impl Iterator<Item = &Napi> {
        self.netdev.iter().flat_map(|answer| &answer.napis)
    }

    /// Whether its driver has this name in sysfs, or as ethtool reports it.
    pub(crate) fn has_driver(&self, name: &str) -> bool {
        let mut names = self.driver.iter().chain(&self.ethtool_driver);
        names.any(|of| of == name)
    }

    /// Whether it is known only by its PCI function, because its interface is in another network namespace or it has none.
    pub fn is_elsewhere(&self) -> bool {
        self.in_other_namespace && self.name == self.device.address
    }

    /// Whether it is a function without an interface here that has IRQs for RDMA alone, as one of EFA.
    pub(crate) fn is_for_rdma(&self) -> bool {
        let has = |role| self.vectors.iter().any(|vector| vector.role == role);
        self.is_elsewhere() && has(Rdma) && self.queue_vectors().next().is_none()
    }

    /// Whether the device is an SR-IOV virtual function. Inside a virtual machine only the driver's name shows it:
    /// `iavf`, `LiquidIO_VF`.
    pub fn is_virtual_function(&self) -> bool {
        let mut driver = self.driver.iter();
        self.device.parent.is_some() || driver.any(|name| name.to_ascii_lowercase().ends_with("vf"))
    }

    /// Whether a queue vector has no queue in use: drivers keep vectors beyond the active queues. Queues of sharing
    /// count too: a vector of mlx5 serves the channel of its number of each of them.
    pub fn is_idle(&self, vector: &Vector) -> bool {
        let by_channel = self.channel_vectors;
        let join = |all: usize, more| {
            if by_channel {
                all.max(more)
            } else {
                all + more
            }
        };
        let with = |own, of: fn(&Sharer) -> usize| self.sharing.iter().map(of).fold(own, join);
        // Older kernels give mlx5 two receive queues for each channel, one of them for AF_XDP.
        let channels = self.channels.as_ref().filter(|_| by_channel);
        let most = channels.map_or(usize::MAX, |channels| channels.receiving() as usize);
        let rx = with(self.rx_queues.len().min(most), |other| other.rx);
        let tx = with(self.tx_queues.len(), |other| other.tx);
        let queues = match vector.role {
            Data | Rdma | Control => return false,
            Combined if by_channel => rx,
            Combined => rx.max(tx),
            Rx => rx,
            Tx => tx,
        };
        // Without a `queues` directory the queues are unknown, and no vector counts as idle.
        rx + tx > 0 && vector.queue.is_some_and(|queue| queue as usize >= queues)
    }
}

/// One IRQ of an interface's device, with a known role.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// The IRQ number, which may change at each boot.
    pub irq: u32,
    /// The handler's name.
    pub action: String,
    pub role: Role,
    /// The number of the queue, or of the RDMA completion vector; `None` for a data or control vector.
    pub queue: Option<u32>,
    /// The source of role and queue.
    pub source: Source,
    /// The row of a driver that told the meaning of the name; `None` if netlink or nothing but the order told it.
    pub row: Option<String>,
    /// The node of the device that raises the IRQ, if that is not the interface's own device and its node is known.
    pub node: Option<u32>,
    /// `smp_affinity`: the CPUs that the kernel may deliver it to.
    pub affinity: MaskFile,
    /// `effective_affinity`: the CPUs that the kernel delivers it to now. `None` on architectures without this file
    /// (powerpc, s390).
    pub effective: Option<CpuSet>,
    /// Where it was delivered since boot, of the CPUs of its affinity, by `/proc/interrupts`; only where the kernel does not
    /// report the effective CPUs and the affinity holds several, `None` where it was never seen.
    pub counted: Option<CpuSet>,
    /// Whether the affinity can be changed (since 6.12 the file's mode shows it).
    pub movable: bool,
}

/// What a vector does for an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Receives and sends.
    Combined,
    /// Receives.
    Rx,
    /// Sends.
    Tx,
    /// Carries packets of the interface; which of its queues it serves is unknown.
    Data,
    /// Signals completions of RDMA work requests, and no packets of the interface.
    Rdma,
    /// Neither: link, mailbox, management.
    Control,
}

/// The source of a vector's role and queue, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The kernel's `netdev` family.
    Netlink,
    /// The driver's name for the vector.
    Name,
    /// The order of the MSI-X entries, or that nothing else of the device is left.
    Order,
}

/// An IRQ with a handler whose name does not show its role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownVector {
    pub irq: u32,
    /// The handlers' names.
    pub action: String,
}

impl Role {
    /// As in the plan's JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Combined => "combined",
            Self::Rx => "rx",
            Self::Tx => "tx",
            Self::Data => "data",
            Self::Rdma => "rdma",
            Self::Control => "control",
        }
    }

    /// With its queue, if there is one: `rx 3`, `control`.
    pub(crate) fn with_queue(self, queue: Option<u32>) -> String {
        self.name().to_owned() + &queue.map(|queue| format!(" {queue}")).unwrap_or_default()
    }

    /// Whether it is for packets of the interface.
    pub fn is_queue(self) -> bool {
        matches!(self, Self::Combined | Self::Rx | Self::Tx | Self::Data)
    }

    /// What a vector of this role serves; `None` if that is no queue.
    pub(crate) fn queue_id(self, queue: Option<u32>, irq: u32) -> Option<QueueId> {
        let id = queue.map_or(QueueId::OfIrq(irq), QueueId::Number);
        self.is_queue().then_some(id)
    }
}

/// A queue of an interface, whose vectors have one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueId {
    Number(u32),
    /// That of a data vector, by its IRQ: its number is unknown.
    OfIrq(u32),
}

impl Vector {
    /// What it serves; `None` if that is no queue.
    pub(crate) fn queue_id(&self) -> Option<QueueId> {
        self.role.queue_id(self.queue, self.irq)
    }

    /// The effective CPUs; those of the affinity that are online when the kernel does not report them.
    pub(crate) fn effective_cpus(&self, online: &CpuSet) -> Cow<'_, CpuSet> {
        effective(self.reported(), &self.affinity.cpus, online)
    }

    /// The same, if it is known which of them the IRQ is on.
    pub(crate) fn known_cpus(&self, online: &CpuSet) -> Option<Cow<'_, CpuSet>> {
        known(self.reported(), &self.affinity.cpus, online)
    }

    fn reported(&self) -> Option<&CpuSet> {
        self.effective.as_ref().or(self.counted.as_ref())
    }
}

/// The kernel keeps offline CPUs in an affinity, and delivers to the others if there are any.
pub(crate) fn effective<'a>(
    reported: Option<&'a CpuSet>,
    affinity: &'a CpuSet,
    online: &CpuSet,
) -> Cow<'a, CpuSet> {
    match reported {
        Some(cpus) => Cow::Borrowed(cpus),
        None if affinity.intersects(online) => Cow::Owned(affinity.intersection(online)),
        None => Cow::Borrowed(affinity),
    }
}

/// The same where the kernel reports it or it is a single CPU: of several, nobody knows which one an IRQ is on.
pub(crate) fn known<'a>(
    reported: Option<&'a CpuSet>,
    affinity: &'a CpuSet,
    online: &CpuSet,
) -> Option<Cow<'a, CpuSet>> {
    let cpus = effective(reported, affinity, online);
    (reported.is_some() || cpus.len() == 1).then_some(cpus)
}

/// How an interface's queues are polled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Polling {
    /// Whether each queue is polled by a kernel thread of its own (`threaded`).
    pub threaded: bool,
    /// Nanoseconds after the last packet until the kernel polls again by a timer (`gro_flush_timeout`).
    pub gro_flush_timeout: u64,
    /// The number of empty polls before the interrupt is enabled again (`napi_defer_hard_irqs`).
    pub napi_defer_hard_irqs: u32,
    /// Nanoseconds for which interrupts are off while a program polls, the most of all queues; 0 where the kernel does
    /// not report it (`irq-suspend-timeout`, Linux 6.13).
    pub irq_suspend_timeout: u32,
}

impl Polling {
    /// Whether interrupts are deferred while the queue is polled, which needs two settings, or suspended.
    pub fn defers_interrupts(self) -> bool {
        self.gro_flush_timeout > 0 && self.napi_defer_hard_irqs > 0 || self.irq_suspend_timeout > 0
    }

    /// Takes over what netlink reports of the queues, each of which may have settings of its own; the most of each.
    pub(crate) fn add(&mut self, napi: &Napi) {
        self.napi_defer_hard_irqs = self.napi_defer_hard_irqs.max(napi.defer_hard_irqs);
        self.gro_flush_timeout = self.gro_flush_timeout.max(napi.gro_flush_timeout.into());
        self.irq_suspend_timeout = self.irq_suspend_timeout.max(napi.irq_suspend_timeout);
    }
}

/// A kernel thread that polls an interface's queues where NAPI is threaded. The interrupt only wakes it; the packets are
/// processed on the CPU on which it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct NapiThread {
    /// Its process id, which changes whenever the kernel creates it again.
    pub pid: u32,
    /// The kernel's number of its NAPI instance; `None` for one without a number, such as one that only sends.
    pub napi: Option<u32>,
    /// The IRQ of the queue vector that wakes it, and how that was determined; `None` if it could not be.
    pub woken_by: Option<(u32, Source)>,
    /// Whether it polls all the time, so that its queue gets no interrupts (Linux 6.19).
    pub busy_polls: bool,
    /// The CPUs on which the scheduler may run it (`sched_setaffinity(2)`).
    pub affinity: MaskFile,
}

/// What a link can do, or does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PcieLink {
    /// MT/s of each lane.
    pub mtps: u64,
    pub lanes: u64,
}

impl PcieLink {
    /// Both, of two ends of one link.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        let (mtps, lanes) = (self.mtps.min(other.mtps), self.lanes.min(other.lanes));
        Self { mtps, lanes }
    }

    /// Whether it is slower or narrower.
    pub fn is_below(self, other: Self) -> bool {
        self.mtps < other.mtps || self.lanes < other.lanes
    }

    /// MT/s of all lanes.
    pub fn total(self) -> u64 {
        self.mtps.saturating_mul(self.lanes)
    }
}

impl fmt::Display for PcieLink {
    /// `8.0 GT/s x8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mtps, lanes } = self;
        write!(f, "{}.{} GT/s x{lanes}", mtps / 1000, mtps % 1000 / 100)
    }
}

/// `0000:82:00.0`: domain of four or more hex digits, bus, device, function.
pub(crate) fn is_pci_address(name: &str) -> bool {
    (12..=16).contains(&name.len())
        && name
            .replace(|c: char| c.is_ascii_hexdigit(), "0")
            .trim_start_matches('0')
            == ":00:00.0"
}

/// A key that sorts `eth2` before `eth10`: texts and numbers in turn.
pub fn natural(name: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    for (is_number, part) in &name.chars().chunk_by(char::is_ascii_digit) {
        let part: String = part.collect();
        key.push(if is_number {
            (String::new(), part.parse().unwrap_or(0))
        } else {
            (part, 0)
        });
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in ["0000:82:00.0", "10000:e1:00.3", "0002:00:1f.7"] {
            assert!(is_pci_address(good), "{good}");
        }
        for bad in [
            "82:00.0",
            "virtio2",
            "0000:82:00",
            "pci0000:80",
            "0000:82:00.0:x",
            "000g:82:00.0",
        ] {
            assert!(!is_pci_address(bad), "{bad}");
        }
    }

    #[test]
    fn virtual_functions_are_known_by_their_drivers() {
        for (driver, expected) in [("iavf", true), ("LiquidIO_VF", true), ("ixgbe", false)] {
            let interface = Interface {
                driver: Some(driver.to_owned()),
                ..Interface::default()
            };
            assert_eq!(interface.is_virtual_function(), expected, "{driver}");
        }
    }

    #[test]
    fn names_sort_as_people_count() {
        let mut names = ["eth10", "eth2", "ens1f1np1", "ens1f0np0", "eth1"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["ens1f0np0", "ens1f1np1", "eth1", "eth2", "eth10"]);
    }
}
