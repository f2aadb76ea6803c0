//! Network interfaces: the bus device behind each, its queues and their steering masks.
//!
//! Only interfaces with a device are interfaces here; bonds, VLANs and bridges are kept as [`Stacked`]
//! (`Documentation/ABI/testing/sysfs-class-net`, `sysfs-class-net-queues`).

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;
use crate::machine::channels::Channels;
use crate::machine::link::PcieLink;
use crate::machine::mask::MaskFile;
use crate::machine::netdev::Netdev;
use crate::machine::polling::{NapiThread, Polling};
use crate::machine::rss::Rss;
use crate::machine::rx_hash::RxHash;
use crate::machine::vector::{Role, UnknownVector, Vector};

/// A network interface with a device behind it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interface {
    pub name: String,
    /// The driver, as ethtool names it: `mlx4_en`, `virtio_net`.
    pub driver: Option<String>,
    /// The driver's version, as ethtool reports it; most drivers report the kernel's.
    pub driver_version: Option<String>,
    /// The firmware's version, as ethtool reports it.
    pub firmware: Option<String>,
    /// The most bytes of a packet (`mtu`).
    pub mtu: Option<u32>,
    /// Whether it is in another network namespace than the process. Ethtool and netlink would report another interface of
    /// its name, or none. Unless `/sys` shows it, it is known by its PCI address, which is then its name.
    pub in_other_namespace: bool,
    /// Whether its name is not UTF-8 text: nothing of it can be read, and `name` has replacement characters.
    pub unreadable_name: bool,
    /// The bus device that owns its vectors.
    pub device: Device,
    /// Which port of the device it is (`dev_port`), from 0.
    pub port: u32,
    /// `up`, `down`, `lowerlayerdown` and so on (`Documentation/networking/operstates.rst`); a driver that
    /// reports `unknown` counts as up while the interface is.
    pub link: String,
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
    /// `xps_cpus`; `None` on a kernel without XPS and on an interface with one transmit queue.
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

impl Interface {
    /// Whether it is known only by its PCI function, because it is in another network namespace.
    pub fn is_elsewhere(&self) -> bool {
        self.in_other_namespace && self.name == self.device.address
    }

    /// Whether the device is an SR-IOV virtual function. Inside a virtual machine only the driver's name shows it:
    /// `iavf`, `ixgbevf`.
    pub fn is_virtual_function(&self) -> bool {
        let is_named_so = |name: &String| name.ends_with("vf");
        self.device.parent.is_some() || self.driver.as_ref().is_some_and(is_named_so)
    }

    /// Whether a queue vector has no queue in use: drivers keep vectors beyond the active queues. Queues of sharing
    /// count too.
    pub fn is_idle(&self, vector: &Vector) -> bool {
        let of = |own: usize, others: fn(&Sharer) -> usize| {
            own + self.sharing.iter().map(others).sum::<usize>()
        };
        let (rx, tx) = (
            of(self.rx_queues.len(), |o| o.rx),
            of(self.tx_queues.len(), |o| o.tx),
        );
        let queues = match vector.role {
            Role::Rdma | Role::Control => return false,
            Role::Combined => rx.max(tx),
            Role::Rx => rx,
            Role::Tx => tx,
        };
        // Without a `queues` directory the queues are unknown, and no vector counts as idle.
        rx + tx > 0 && vector.queue.is_some_and(|queue| queue as usize >= queues)
    }
}

/// `0000:82:00.0`: domain of four or more hex digits, bus, device, function.
pub(crate) fn is_pci_address(name: &str) -> bool {
    let hex = |text: &str, least: usize, most: usize| {
        (least..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let mut parts = name.split(':');
    let (Some(domain), Some(bus), Some(slot), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let (device, function) = slot.split_once('.').unwrap_or((slot, ""));
    hex(domain, 4, 8) && hex(bus, 2, 2) && hex(device, 2, 2) && hex(function, 1, 1)
}

/// A key that sorts `eth2` before `eth10`.
pub fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(text);
        let digits = after
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(after.len());
        let (number, after) = after.split_at(digits);
        parts.push((word.to_owned(), number.parse().unwrap_or(0)));
        rest = after;
    }
    parts
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
    fn names_sort_as_people_count() {
        let mut names = ["eth10", "eth2", "ens1f1np1", "ens1f0np0", "eth1"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["ens1f0np0", "ens1f1np1", "eth1", "eth2", "eth10"]);
    }
}
