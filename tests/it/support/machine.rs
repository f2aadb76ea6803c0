//! A machine as a value that tests can build and change.
//!
//! CPU lists and masks are made here a second time on purpose: a mistake in `nicpin::cpuset` must not agree with
//! itself.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use serde_json::json;

use nicpin::machine::Channels;

/// CPUs, ascending.
pub type Cpus = Vec<u32>;

#[derive(Debug, Clone)]
pub struct MachineSpec {
    /// Format of `/proc/interrupts`.
    pub kernel: Kernel,
    /// An IOMMU remaps interrupts: chip names begin with `IR-`.
    pub remapping: bool,
    /// Width of the first column of `/proc/interrupts`: 3, or more with `nr_irqs` above 1000.
    pub irq_digits: usize,
    /// `nr_cpu_ids`: one more than the highest possible CPU.
    pub possible: u32,
    /// Bits of printed masks: `possible`, on some old kernels more.
    pub mask_bits: u32,
    pub online: Cpus,
    /// `isolcpus=`.
    pub isolated: Cpus,
    /// `nohz_full=`; `None` for a kernel without it, empty if not set.
    pub nohz_full: Option<Cpus>,
    /// Siblings; each CPU is in exactly one set.
    pub cores: Vec<Cpus>,
    /// L3 domains; empty if the machine reports none.
    pub l3: Vec<Cpus>,
    /// NUMA nodes; none for a kernel without NUMA.
    pub nodes: Vec<Node>,
    pub cards: Vec<Card>,
    /// Bonds, VLANs and bridges, each with the interfaces directly below it.
    pub stacked: Vec<(String, Vec<String>)>,
    /// `rps_sock_flow_entries`; `None`: the kernel does not have it.
    pub flow_entries: Option<u32>,
    /// Whether there is `/sys/kernel/irq` (Linux 4.9 and later), which nicpin prefers to `/proc/interrupts`.
    pub irq_files: bool,
}

/// The format of `/proc/interrupts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kernel {
    /// `   IO-APIC-level  eth0`, and summary rows without a description.
    V2_6,
    /// To 4.1: `   PCI-MSI-edge      eth0`.
    V3,
    /// 4.2 to 6.1: `   PCI-MSI 1572864-edge      eth0`; the number is domain, bus address and entry.
    V4_2,
    /// 6.2 to 6.13: `  PCI-MSIX-0000:31:00.0   1-edge      eth0`.
    V6_2,
    /// 6.14 on: as before, with one blank before the chip.
    V6_14,
}

#[derive(Debug, Clone)]
pub struct Node {
    pub id: u32,
    /// CPUs, online or not; empty for a node with memory only.
    pub cpus: Cpus,
    /// Distances to all nodes, in their order.
    pub distances: Vec<u32>,
    /// KiB; `None`: the tree has no file.
    pub memory: Option<u64>,
}

/// A PCI function.
#[derive(Debug, Clone)]
pub struct Card {
    /// The name of the driver in sysfs.
    pub driver: String,
    /// The PCI address, such as `0000:82:00.0`.
    pub address: String,
    /// The path below `/sys/devices`, such as `pci0000:80/0000:80:02.0`.
    pub parent: String,
    /// `numa_node`; -1 if the firmware does not report it.
    pub node: i32,
    /// `local_cpulist`; `None`: the CPUs of `node`.
    pub local_cpus: Option<Cpus>,
    /// `max_link_speed` and `max_link_width`; `None` for a card that is not PCI Express.
    pub max_link: Option<(String, u32)>,
    /// The physical function's address, for a virtual one on the same bridge.
    pub physical: Option<String>,
    /// N of the `virtioN` between the function and its interface.
    pub virtio: Option<u32>,
    /// MSI-X vectors; otherwise one line of an I/O APIC.
    pub msi: bool,
    pub ports: Vec<Port>,
    pub vectors: Vec<Vector>,
}

#[derive(Debug, Clone)]
pub struct Port {
    pub name: String,
    /// `operstate`; anything but `down` has the interface's `IFF_UP` set.
    pub state: String,
    /// Mbit/s, -1 if the driver does not report it; `None` if the file cannot be read.
    pub speed: Option<i32>,
    /// `rps_cpus` of each receive queue.
    pub rx: Vec<Cpus>,
    /// `xps_cpus` of each transmit queue.
    pub tx: Vec<Cpus>,
    /// The kernel has RPS and XPS.
    pub steering: bool,
    /// ethtool's recorded answer; `None`: absent.
    pub channels: Option<Channels>,
    /// Netlink's recorded answer; may be empty.
    pub netlink: String,
}

#[derive(Debug, Clone)]
pub struct Vector {
    pub irq: u32,
    /// The name of the handler; empty if the vector is allocated and not requested.
    pub action: String,
    /// Its MSI-X entry, or the pin of the I/O APIC.
    pub entry: u32,
    /// `smp_affinity`.
    pub allowed: Cpus,
    /// `effective_affinity_list`; `None`: the kernel has no such file.
    pub serving: Option<u32>,
    /// Number of interrupts, all on the effective CPU.
    pub count: u32,
}

impl MachineSpec {
    /// Nodes with these CPU lists: all CPUs online, no SMT, one L3 cache per node, distance 10 from a node to itself
    /// and 20 to any other, and a recent kernel.
    pub fn new(nodes: &[&str]) -> Self {
        let cpu_lists: Vec<Cpus> = nodes.iter().map(|list| cpus(list)).collect();
        let mut online = cpu_lists.concat();
        online.sort_unstable();
        let possible = online.last().unwrap() + 1;
        let nodes = (0..).zip(&cpu_lists).map(|(id, cpus)| Node {
            id,
            cpus: cpus.clone(),
            distances: vec![],
            memory: None,
        });
        let mut machine = Self {
            kernel: Kernel::V6_14,
            remapping: false,
            irq_digits: 3,
            possible,
            mask_bits: possible,
            isolated: vec![],
            nohz_full: None,
            cores: online.iter().map(|&cpu| vec![cpu]).collect(),
            l3: cpu_lists
                .iter()
                .filter(|cpus| !cpus.is_empty())
                .cloned()
                .collect(),
            nodes: nodes.collect(),
            cards: vec![],
            stacked: vec![],
            flow_entries: Some(0),
            irq_files: false,
            online,
        };
        machine.set_distances(|from, to| if from == to { 10 } else { 20 });
        machine
    }

    /// Makes `nodes` nodes of `cores` cores with `threads` threads each; all first threads are numbered before the
    /// second ones; an L3 domain has `per_l3` cores.
    pub fn even(nodes: u32, cores: u32, threads: u32, per_l3: u32) -> Self {
        let total = nodes * cores;
        let cpus_of = |node: u32| {
            let firsts = (0..threads).map(|thread| thread * total + node * cores);
            firsts
                .map(|first| format!("{first}-{}", first + cores - 1))
                .join(",")
        };
        let lists: Vec<String> = (0..nodes).map(cpus_of).collect();
        let mut machine = Self::new(&lists.iter().map(String::as_str).collect::<Vec<_>>());
        machine.cores = machine.groups(|cpu| cpu % total);
        machine.l3 = machine.groups(|cpu| {
            let core = cpu % total;
            core / cores * cores + core % cores / per_l3
        });
        machine
    }

    /// CPUs with the same key are a group: `|cpu| cpu / 2` for siblings next to each other.
    pub fn groups(&self, key: impl Fn(u32) -> u32) -> Vec<Cpus> {
        let mut groups: BTreeMap<u32, Cpus> = BTreeMap::new();
        for &cpu in &self.online {
            groups.entry(key(cpu)).or_default().push(cpu);
        }
        groups.into_values().collect()
    }

    /// Sets the distance from one node to another by their ids.
    pub fn set_distances(&mut self, rule: impl Fn(u32, u32) -> u32) {
        let ids: Vec<u32> = self.nodes.iter().map(|node| node.id).collect();
        for node in &mut self.nodes {
            node.distances = ids.iter().map(|&to| rule(node.id, to)).collect();
        }
    }
}

impl Card {
    /// PCI Express with MSI-X, without interfaces and vectors.
    pub fn new(
        driver: &str,
        parent: &str,
        address: &str,
        node: i32,
        speed: &str,
        width: u32,
    ) -> Self {
        Self {
            driver: driver.to_owned(),
            address: address.to_owned(),
            parent: parent.to_owned(),
            node,
            local_cpus: None,
            max_link: Some((speed.to_owned(), width)),
            physical: None,
            virtio: None,
            msi: true,
            ports: vec![],
            vectors: vec![],
        }
    }

    #[must_use]
    pub fn port(mut self, port: Port) -> Self {
        self.ports.push(port);
        self
    }

    /// Adds vectors with these names: IRQs from `first` on, with the CPUs of `serving` in turn as effective CPUs and
    /// `allowed` as affinity; if `allowed` is empty, the affinity is the effective CPU.
    #[must_use]
    pub fn vectors<S: Into<String>>(
        mut self,
        first: u32,
        actions: impl IntoIterator<Item = S>,
        allowed: &[u32],
        serving: &[u32],
    ) -> Self {
        let entries = u32::try_from(self.vectors.len()).unwrap();
        self.vectors
            .extend(
                (0..)
                    .zip(actions)
                    .zip(serving.iter().cycle())
                    .map(|((k, action), &cpu)| Vector {
                        irq: first + k,
                        action: action.into(),
                        entry: entries + k,
                        allowed: if allowed.is_empty() {
                            vec![cpu]
                        } else {
                            allowed.to_vec()
                        },
                        serving: Some(cpu),
                        count: (first + k) * 7_919,
                    }),
            );
        self
    }
}

impl Port {
    /// Makes an interface that is up, with RPS and XPS off.
    pub fn new(name: &str, speed: i32, rx: usize, tx: usize) -> Self {
        Self {
            name: name.to_owned(),
            state: "up".to_owned(),
            speed: Some(speed),
            rx: vec![vec![]; rx],
            tx: vec![vec![]; tx],
            steering: true,
            channels: None,
            netlink: String::new(),
        }
    }

    /// Queues by direction and number, each with its IRQ; one NAPI instance per IRQ.
    #[must_use]
    pub fn netlink(mut self, queues: &[(&str, u32, u32)]) -> Self {
        let mut irqs: Vec<u32> = queues.iter().map(|&(_, _, irq)| irq).collect();
        irqs.sort_unstable();
        irqs.dedup();
        let napi = |irq: u32| 8193 + irqs.iter().position(|&one| one == irq).unwrap();
        let queues: Vec<_> = queues
            .iter()
            .map(|&(way, id, irq)| json!({ "direction": way, "id": id, "napi": napi(irq) }))
            .collect();
        let napis: Vec<_> = irqs
            .iter()
            .map(|&irq| json!({ "id": napi(irq), "irq": irq }))
            .collect();
        self.netlink = json!({ "queues": queues, "napis": napis }).to_string();
        self
    }

    #[must_use]
    pub fn xps(mut self, tx: impl IntoIterator<Item = Cpus>) -> Self {
        self.tx = tx.into_iter().collect();
        self
    }

    /// Sets ethtool's answer: receive, transmit, other, combined.
    #[must_use]
    pub fn channels(mut self, max: [u32; 4], now: [u32; 4]) -> Self {
        self.channels = Some(channels(max, now));
        self
    }
}

/// Two nodes of four CPUs each.
pub fn two_nodes(cards: impl IntoIterator<Item = Card>) -> MachineSpec {
    let mut machine = MachineSpec::new(&["0-3", "4-7"]);
    machine.cards.extend(cards);
    machine
}

/// Puts a card on node 0 of [`two_nodes`], with vectors from an IRQ on.
pub fn card(driver: &str, port: Port, first: u32, actions: &[&str]) -> Card {
    let (parent, address) = ("pci0000:00/0000:00:02.0", "0000:82:00.0");
    Card::new(driver, parent, address, 0, "8.0 GT/s PCIe", 8)
        .port(port)
        .vectors(first, actions.iter().copied(), &cpus("0-3"), &[0])
}

/// The numbers are of receive, transmit, other and combined channels.
pub fn channels(max: [u32; 4], now: [u32; 4]) -> Channels {
    let ([max_rx, max_tx, max_other, max_combined], [rx, tx, other, combined]) = (max, now);
    Channels {
        max_rx,
        max_tx,
        max_other,
        max_combined,
        rx,
        tx,
        other,
        combined,
    }
}

/// Parses a list such as `0-7,64`, or an empty one.
pub fn cpus(text: &str) -> Cpus {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse::<u32>().unwrap()..=last.parse().unwrap()
    };
    text.split(',')
        .filter(|part| !part.is_empty())
        .flat_map(range)
        .collect()
}

/// Prints ascending CPUs as the kernel does (`%*pbl`).
pub fn list(cpus: &[u32]) -> String {
    let runs = cpus.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [only] => only.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// Prints a mask of this many bits as the kernel does (`%*pb`).
pub fn mask(cpus: &[u32], bits: u32) -> String {
    let group = |group: u32| {
        let bit = |cpu: &u32| {
            if cpu / 32 == group {
                1_u32 << (cpu % 32)
            } else {
                0
            }
        };
        let digits = (bits - group * 32).min(32).div_ceil(4) as usize;
        format!(
            "{:0digits$x}",
            cpus.iter().map(bit).fold(0, |mask, bit| mask | bit)
        )
    };
    (0..bits.div_ceil(32))
        .rev()
        .map(group)
        .collect::<Vec<_>>()
        .join(",")
}
