//! What the tools see of a machine, and what they leave behind on it.

use std::collections::BTreeMap;
use std::path::Path;

use nicpin::cpuset::CpuSet;
use nicpin::machine::{Interface, Machine, Role, Vector};
use nicpin::read::interrupts::Interrupts;
use nicpin::root::Root;

/// A machine, and those of its files that other tools look at and nicpin's snapshot does not keep.
pub struct Facts {
    /// What it is called in the table.
    pub name: &'static str,
    pub host: Machine,
    /// The rows of `/proc/interrupts`: the IRQ and its handlers' names as they are printed.
    pub lines: Vec<(u32, String)>,
    /// The names in `/sys/class/net/IF/device/msi_irqs`, by interface; none behind virtio, whose PCI function is
    /// one step further up.
    pub msi: BTreeMap<String, Vec<u32>>,
}

impl Facts {
    /// Reads a tree.
    pub fn read(name: &'static str, dir: &Path) -> Self {
        let root = Root::open(dir).unwrap();
        let host = nicpin::read::machine(&root, nicpin::read::Wants::default())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let read = Interrupts::parse(&root.read("/proc/interrupts").unwrap()).unwrap();
        let msi = |interface: &Interface| {
            let entries = root.list(&format!("/sys/class/net/{}/device/msi_irqs", interface.name)).unwrap();
            let irqs = entries.unwrap_or_default().iter().map(|irq| irq.parse().unwrap()).collect();
            (interface.name.clone(), irqs)
        };
        Self {
            name,
            lines: read.rows().map(|row| (row.irq, row.actions().collect::<Vec<_>>().join(", "))).collect(),
            msi: host.interfaces.iter().map(msi).collect(),
            host,
        }
    }

    /// The interfaces that every tool is run for: those that have queue vectors.
    pub fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.host.interfaces.iter().filter(|interface| interface.vectors.iter().any(Vector::is_queue_vector))
    }

    /// `/sys/devices/system/node/nodeN/cpulist`.
    pub fn node_cpus(&self, node: u32) -> Option<&CpuSet> {
        self.host.topology.nodes.get(&node).map(|node| &node.cpus)
    }

    /// The rows that hold a text, as `grep` finds them.
    pub fn grep(&self, text: &str) -> Vec<u32> {
        self.lines.iter().filter(|(_, names)| names.contains(text)).map(|&(irq, _)| irq).collect()
    }

    /// The handlers' names of an IRQ; empty when nobody has requested it.
    pub fn names(&self, irq: u32) -> &str {
        self.lines.iter().find(|&&(line, _)| line == irq).map_or("", |(_, names)| names)
    }
}

/// A machine after a tool was run on it.
#[derive(Clone)]
pub struct State {
    /// The CPU that serves each vector.
    pub cpus: BTreeMap<u32, u32>,
    /// The CPUs of each transmit queue; none where the kernel steers nothing.
    pub xps: BTreeMap<(String, u32), CpuSet>,
    /// How many receive and transmit queues each interface has.
    pub queues: BTreeMap<String, (u32, u32)>,
    /// How many vectors the tool has put somewhere.
    pub placed: usize,
    online: CpuSet,
}

impl State {
    /// The machine as it was found.
    pub fn found(facts: &Facts) -> Self {
        let vectors = facts.host.interfaces.iter().flat_map(|interface| &interface.vectors);
        let serving =
            |vector: &Vector| vector.effective.as_ref().unwrap_or(&vector.affinity.cpus).first().unwrap();
        let count = |len: usize| u32::try_from(len).unwrap();
        let mut xps = BTreeMap::new();
        for interface in &facts.host.interfaces {
            for queue in &interface.tx_queues {
                if let Some(mask) = &queue.xps_cpus {
                    xps.insert((interface.name.clone(), queue.index), mask.cpus.clone());
                }
            }
        }
        let queues = |interface: &Interface| {
            (interface.name.clone(), (count(interface.rx_queues.len()), count(interface.tx_queues.len())))
        };
        Self {
            cpus: vectors.map(|vector| (vector.irq, serving(vector))).collect(),
            xps,
            queues: facts.host.interfaces.iter().map(queues).collect(),
            placed: 0,
            online: facts.host.topology.online.clone(),
        }
    }

    /// Writes one CPU to `smp_affinity`. The kernel refuses a CPU that is not online, and the answer is false.
    pub fn put(&mut self, irq: u32, cpu: u32) -> bool {
        let accepted = self.online.contains(cpu);
        if accepted {
            self.cpus.insert(irq, cpu);
            self.placed += 1;
        }
        accepted
    }

    /// Writes `xps_cpus`, where there is such a file.
    pub fn put_xps(&mut self, interface: &str, queue: u32, cpus: CpuSet) {
        if let Some(mask) = self.xps.get_mut(&(interface.to_owned(), queue)) {
            *mask = cpus;
        }
    }

    /// Whether a vector serves a queue that is in use.
    pub fn is_active(&self, interface: &Interface, vector: &Vector) -> bool {
        let (rx, tx) = self.queues[&interface.name];
        let queues = match vector.role {
            Role::Control => return false,
            Role::Combined => rx.max(tx),
            Role::Rx => rx,
            Role::Tx => tx,
        };
        vector.queue.is_some_and(|queue| queue < queues)
    }
}
