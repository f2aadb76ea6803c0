//! Network interfaces with a device, their queues and steering masks (`Documentation/ABI/testing/sysfs-class-net`).
//! Bonds, VLANs and bridges are [`Stacked`].

use itertools::Itertools as _;
use serde::{Deserialize, Serialize};

use crate::cpuset::{CpuSet, MaskFile};
use crate::machine::channels::Channels;
use crate::machine::netdev::{Direction, Napi, Netdev};
use crate::machine::rx_hash::{Rss, RxHash};
use crate::machine::vector::Role::{Combined, Control, Data, Rdma, Rx, Tx};
use crate::machine::{Device, Role, Source, UnknownVector, Vector};

/// A network interface with a device behind it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interface {
    pub name: String,
    /// The sysfs name: `mlx4_en`, `virtio_net`.
    pub driver: Option<String>,
    /// By ethtool, if asked for and another.
    pub ethtool_driver: Option<String>,
    /// By ethtool; usually the kernel's.
    pub driver_version: Option<String>,
    pub firmware: Option<String>,
    pub mtu: Option<u32>,
    /// In another network namespace than this process: ethtool and netlink would report another interface of this name,
    /// or none. Unless `/sys` shows it, its name is the PCI address.
    pub in_other_namespace: bool,
    /// A PCI function without a known network interface, such as one for RDMA alone; its IRQs serve no known queues.
    pub without_netdev: bool,
    /// The name has white space, control characters or bytes that are not UTF-8 (replaced in `name`): nothing else can
    /// be read.
    pub unreadable_name: bool,
    pub device: Device,
    /// `dev_port`, from 0.
    pub port: u32,
    /// `phys_port_name`, which tells representors and ports of a switch apart; else, if older interfaces have the same
    /// port number, it and how many there are: `0.1`.
    pub port_name: Option<String>,
    /// `up`, `down`, `lowerlayerdown` and so on (`Documentation/networking/operstates.rst`).
    pub link: String,
    /// Set down (no `IFF_UP`). Without a carrier it is still up.
    pub is_down: bool,
    /// Mbit/s; `None` if the link is down, or not reported.
    pub speed_mbps: Option<u32>,
    /// Mbit/s of the fastest link mode that the driver supports.
    pub supported_mbps: Option<u32>,
    /// In use (`real_num_rx_queues`).
    pub rx_queues: Vec<RxQueue>,
    /// In use (`real_num_tx_queues`).
    pub tx_queues: Vec<TxQueue>,
    /// The driver, or mac80211 before Linux 6.2, picks the transmit queue, and never reads XPS.
    pub picks_tx_queue: bool,
    pub channels: Option<Channels>,
    /// The driver is known to accept no other number of channels.
    pub channels_fixed: bool,
    /// Vectors are numbered by channel, as mlx5's: vector N has receive queue N and a transmit queue of each traffic
    /// class.
    pub channel_vectors: bool,
    /// `None` if absent or not read.
    pub rss: Option<Rss>,
    /// `None` if not read or not reported.
    pub rx_hash: Option<RxHash>,
    /// `None` unless the driver has accelerated RFS and ntuple filters can be switched.
    pub ntuple: Option<bool>,
    pub polling: Polling,
    /// Empty unless NAPI is threaded.
    pub threads: Vec<NapiThread>,
    /// `None` if netlink reports nothing.
    pub netdev: Option<Netdev>,
    /// `None` on another bus.
    pub vmbus: Option<Vec<VmbusChannel>>,
    /// Understood vectors: for queues by queue, then for RDMA, then control.
    pub vectors: Vec<Vector>,
    /// Vectors whose handlers' names are not understood.
    pub unknown_vectors: Vec<UnknownVector>,
    /// CPUs on which `unknown_vectors` interrupt; without a known IRQ, also those of IRQs of no known device, or of the
    /// controller.
    pub unknown_vector_cpus: CpuSet,
    /// Vectors without files in `/proc/irq`: freed while they were read.
    pub vanished_vectors: Vec<UnknownVector>,
    /// Disagreements of netlink, which is believed, and names.
    pub contradictions: Vec<String>,
    /// The interface under which the vectors of a shared device are listed.
    pub shares_vectors_of: Option<String>,
    /// Interfaces whose vectors are listed here, since names do not tell them apart.
    pub sharing: Vec<Sharer>,
}

/// An interface whose vectors are listed under another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharer {
    pub name: String,
    pub rx: usize,
    pub tx: usize,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct RxQueue {
    /// N of `rx-N`.
    pub index: u32,
    /// `None` on a kernel without RPS.
    pub rps_cpus: Option<MaskFile>,
    /// `None` on a kernel without RFS.
    pub rps_flow_cnt: Option<u32>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct TxQueue {
    /// N of `tx-N`.
    pub index: u32,
    /// `traffic_class`: `1`, or `0-1` of a subordinate interface; empty if all queues are of class 0.
    pub class: String,
    /// `None` on a kernel without XPS, on an interface with one transmit queue, and for a queue in no class.
    pub xps_cpus: Option<MaskFile>,
    /// Receive queues, whose flows ignore `xps_cpus`.
    pub xps_rxqs: Option<MaskFile>,
}

/// A `VMBus` channel: Hyper-V delivers packets of a device to one CPU, without an IRQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmbusChannel {
    /// N of `channels/N`.
    pub id: u32,
    pub cpu: u32,
}

/// An interface above others: a bond, team, VLAN or bridge, a Hyper-V device above its virtual function, or a
/// representor beside the interface of its card.
#[derive(Debug, Clone, PartialEq)]
pub struct Stacked {
    pub name: String,
    /// Directly below (`lower_*`).
    pub lowers: Vec<String>,
    /// `DEVTYPE` in `uevent` (`vlan`, `bond`, `vxlan`), `vrf`, `failover` or `representor`; absent for some kinds.
    pub kind: Option<String>,
}

impl Interface {
    pub(crate) fn vector(&self, irq: u32) -> Option<&Vector> {
        self.vectors.iter().find(|vector| vector.irq == irq)
    }

    pub(crate) fn reported_vector(&self, direction: Direction, queue: u32) -> Option<&Vector> {
        self.vector(self.netdev.as_ref()?.irq_of(direction, queue)?)
    }

    pub(crate) fn vector_of(&self, thread: &NapiThread) -> Option<&Vector> {
        self.vector(thread.woken_by?.0)
    }

    /// Counts receive queues if channels are not reported.
    pub(crate) fn receives_by(&self, channels: u32) -> bool {
        let queues = || u32::try_from(self.rx_queues.len()).unwrap_or(u32::MAX);
        self.channels.map_or_else(queues, |now| now.receiving()) == channels
    }

    pub(crate) fn masks(&self) -> usize {
        self.vectors.len() + self.rx_queues.len() + self.tx_queues.len()
    }

    pub(crate) fn rx_queue(&self, index: u32) -> Option<&RxQueue> {
        self.rx_queues.iter().find(|rx| rx.index == index)
    }

    pub fn queue_vectors(&self) -> impl Iterator<Item = &Vector> {
        self.vectors.iter().filter(|vector| vector.role.is_queue())
    }

    pub(crate) fn with_role(&self, role: Role) -> impl Iterator<Item = &Vector> {
        self.vectors
            .iter()
            .filter(move |vector| vector.role == role)
    }

    pub(crate) fn active_vectors(&self) -> impl Iterator<Item = &Vector> {
        self.queue_vectors().filter(|vector| !self.is_idle(vector))
    }

    pub(crate) fn active_queues(&self) -> usize {
        let queues = self.active_vectors().map(Vector::queue_id);
        queues.sorted_unstable().dedup().count()
    }

    /// Active queues, with those whose IRQs exist once the interface comes up: mlx5 requests a channel's IRQ when the
    /// channel is first opened. Other drivers have all of them or none while the interface is down.
    pub(crate) fn queues_when_up(&self) -> usize {
        match self.active_queues() {
            known if known > 0 && self.is_down && self.channel_vectors => {
                known.max(self.receive_channels())
            }
            known => known,
        }
    }

    /// Whether queues have no IRQ because the interface was not yet up with them.
    pub(crate) fn has_more_when_up(&self) -> bool {
        self.queues_when_up() > self.active_queues()
    }

    /// Older kernels give mlx5 two receive queues for each channel, one of them for `AF_XDP`.
    fn receive_channels(&self) -> usize {
        let channels = self.channels.as_ref().filter(|_| self.channel_vectors);
        let most = channels.map_or(usize::MAX, |channels| channels.receiving() as usize);
        self.rx_queues.len().min(most)
    }

    /// No IRQ is known, on a bus without IRQs in sysfs: USB, `VMBus`, platform.
    pub(crate) fn has_no_irqs(&self) -> bool {
        self.device.irqs.is_empty() && self.vectors.is_empty() && !self.is_pci()
    }

    /// Queue IRQs may exist though none is known: sysfs lists none on this bus, and no other interface lists the
    /// vectors.
    pub(crate) fn may_have_any(&self) -> bool {
        let is_told = self.is_pci() || self.device.controller.is_some() || self.vmbus.is_some();
        let is_empty = self.queue_vectors().next().is_none() && self.unknown_vectors.is_empty();
        let none = self.device.irqs.is_empty() && is_empty && self.shares_vectors_of.is_none();
        self.link == "up" && none && !is_told
    }

    fn is_pci(&self) -> bool {
        is_pci_address(&self.device.address)
    }

    pub(crate) fn napis(&self) -> impl Iterator<Item = &Napi> {
        self.netdev.iter().flat_map(|answer| &answer.napis)
    }

    pub(crate) fn has_driver(&self, name: &str) -> bool {
        let mut names = self.driver.iter().chain(&self.ethtool_driver);
        names.any(|driver| driver == name)
    }

    /// Only the PCI function is known: the interface is in another network namespace, or there is none.
    pub fn is_elsewhere(&self) -> bool {
        self.in_other_namespace && self.name == self.device.address
    }

    /// A function without an interface here whose IRQs are for RDMA alone, such as EFA's.
    pub(crate) fn is_for_rdma(&self) -> bool {
        self.is_elsewhere()
            && self.with_role(Rdma).next().is_some()
            && self.queue_vectors().next().is_none()
    }

    /// Inside a virtual machine only the driver's name shows a virtual function: `iavf`, `LiquidIO_VF`.
    pub fn is_virtual_function(&self) -> bool {
        let mut driver = self.driver.iter();
        self.device.parent.is_some() || driver.any(|name| name.to_ascii_lowercase().ends_with("vf"))
    }

    /// Whether a vector is one that the driver keeps beyond the queues in use. Queues of `sharing` count, too: a vector
    /// of mlx5 serves the channel of its number of each interface.
    pub fn is_idle(&self, vector: &Vector) -> bool {
        let by_channel = self.channel_vectors;
        let join = |all: usize, more| {
            if by_channel {
                all.max(more)
            } else {
                all + more
            }
        };
        let with_sharing =
            |own, count: fn(&Sharer) -> usize| self.sharing.iter().map(count).fold(own, join);
        let rx = with_sharing(self.receive_channels(), |other| other.rx);
        let tx = with_sharing(self.tx_queues.len(), |other| other.tx);
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

/// The polling of an interface's queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Polling {
    /// Each queue is polled by its own kernel thread.
    pub threaded: bool,
    /// Nanoseconds from the last packet to the kernel's next poll.
    pub gro_flush_timeout: u64,
    /// Empty polls before the interrupt is enabled again.
    pub napi_defer_hard_irqs: u32,
    /// Nanoseconds without interrupts while a program polls (Linux 6.13).
    pub irq_suspend_timeout: u32,
}

impl Polling {
    /// Whether interrupts are suspended, or deferred while a queue is polled, which takes two settings.
    pub fn defers_interrupts(self) -> bool {
        self.gro_flush_timeout > 0 && self.napi_defer_hard_irqs > 0 || self.irq_suspend_timeout > 0
    }

    /// The higher values count: a NAPI instance may have its own.
    pub(crate) fn add(&mut self, napi: &Napi) {
        self.napi_defer_hard_irqs = self.napi_defer_hard_irqs.max(napi.defer_hard_irqs);
        self.gro_flush_timeout = self.gro_flush_timeout.max(napi.gro_flush_timeout.into());
        self.irq_suspend_timeout = self.irq_suspend_timeout.max(napi.irq_suspend_timeout);
    }
}

/// A kernel thread that polls queues (threaded NAPI): the interrupt only wakes it, and its CPU processes the packets.
#[derive(Debug, Clone, PartialEq)]
pub struct NapiThread {
    /// Another one whenever the kernel creates the thread again.
    pub pid: u32,
    /// Some NAPI instances, such as one that only transmits, have no number.
    pub napi: Option<u32>,
    /// IRQ of the queue vector that wakes the thread, and how that was determined.
    pub woken_by: Option<(u32, Source)>,
    /// It polls all the time, so that its queue gets no interrupts (Linux 6.19).
    pub busy_polls: bool,
    /// Where the scheduler may run it (`sched_setaffinity(2)`).
    pub affinity: MaskFile,
}

/// `0000:82:00.0`: domain of four or more hex digits, bus, device, function.
pub(crate) fn is_pci_address(name: &str) -> bool {
    (12..=16).contains(&name.len())
        && name
            .replace(|c: char| c.is_ascii_hexdigit(), "0")
            .trim_start_matches('0')
            == ":00:00.0"
}

/// A key that sorts `eth2` before `eth10`.
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
