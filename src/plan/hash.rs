//! Two hashes that must not change between releases or architectures: that of a plan, equal for plans with the same
//! targets, and the hardware class of a machine.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;

use crate::cpuset::CpuSet;
use crate::machine::{Interface, Machine, Role};
use crate::plan::data::{HostSummary, PlannedInterface};

/// The hash of the planned targets, without what differs between boots: IRQ numbers, current settings, link states and
/// speeds.
pub(crate) fn hash(machine: &HostSummary, interfaces: &[PlannedInterface]) -> String {
    let mut hash = PlanHasher::default();
    hash.sets([&machine.online, &machine.isolated, &machine.nohz_full]);
    hash.numbers([machine.possible]);
    for node in &machine.nodes {
        hash.text("node");
        hash.numbers([node.node]);
        hash.sets([&node.cpus]);
    }
    for interface in interfaces {
        hash.text("interface");
        for text in [
            &interface.name,
            interface.driver.as_deref().unwrap_or("-"),
            &interface.device,
        ] {
            hash.text(text);
        }
        hash.sets([&interface.candidates]);
        for vector in &interface.vectors {
            hash.text(vector.role.name());
            hash.numbers(vector.queue);
            hash.sets(&vector.cpus);
        }
        for thread in &interface.threads {
            hash.text("thread");
            hash.text(thread.role.map_or("-", Role::name));
            hash.numbers(thread.queue);
            hash.sets(&thread.cpus);
        }
        for rx in &interface.rx_queues {
            hash.text("rps");
            hash.numbers([rx.queue]);
            hash.sets(&rx.rps_cpus);
            hash.numbers(rx.rps_flow_cnt);
        }
        for tx in &interface.tx_queues {
            hash.text("xps");
            hash.numbers([tx.queue]);
            hash.sets(&tx.xps_cpus);
        }
        if let Some(queues) = interface.rss.as_ref().and_then(|rss| rss.queues.as_ref()) {
            hash.text("rss");
            hash.numbers(queues.iter().copied());
        }
        if interface.tx_queues.iter().any(|tx| tx.xps_rxqs.is_some()) {
            hash.text("rxqs");
            hash.sets(interface.tx_queues.iter().flat_map(|tx| &tx.xps_rxqs));
        }
        if let Some(on) = interface.ntuple {
            hash.text("ntuple");
            hash.numbers([u32::from(on)]);
        }
    }
    hash.finish()
}

/// The hardware class of a machine: CPUs, cores, caches, nodes, the width of its masks, and of each interface PCI id,
/// driver, node, and role and number of queues. Names, addresses, slots, IRQ numbers, current settings and the policy do
/// not count, nor do SR-IOV virtual functions of this machine, which come and go.
pub(crate) fn class(machine: &Machine) -> String {
    let topology = &machine.topology;
    let mut hash = PlanHasher::default();
    hash.numbers([topology.possible]);
    let masks = machine
        .interfaces
        .iter()
        .flat_map(|interface| &interface.vectors);
    hash.numbers(masks.map(|vector| vector.affinity.width.digits()).max());
    for groups in [
        &topology.cores,
        &topology.l3_domains,
        &topology.packages,
        &topology.speed_classes,
    ] {
        hash.text("groups");
        hash.sets(groups);
    }
    for (&id, node) in &topology.nodes {
        hash.text("node");
        hash.numbers([id, u32::from(node.without_memory)]);
        hash.sets([&node.cpus]);
        hash.numbers(
            node.distances
                .iter()
                .flat_map(|(&to, &distance)| [to, distance]),
        );
    }
    let physical = machine
        .interfaces
        .iter()
        .filter(|interface| interface.device.parent.is_none());
    let mut interfaces: Vec<_> = physical
        .map(|interface| of_interface(machine, interface))
        .collect();
    interfaces.sort();
    for (texts, nodes, counts) in interfaces {
        hash.text("interface");
        for text in texts {
            hash.text(text);
        }
        hash.numbers(nodes);
        hash.numbers(counts);
    }
    hash.finish()
}

/// What an interface adds to the class: texts, nodes, and the numbers of its queues and of its vectors of each role.
fn of_interface<'a>(
    machine: &Machine,
    interface: &'a Interface,
) -> ([&'a str; 2], Vec<u32>, Vec<u32>) {
    let of_role = |role| {
        interface
            .vectors
            .iter()
            .filter(|vector| vector.role == role)
            .count()
    };
    let roles = [Role::Combined, Role::Rx, Role::Tx, Role::Rdma].map(of_role);
    let queues = [interface.rx_queues.len(), interface.tx_queues.len()];
    let counts = queues
        .into_iter()
        .chain(roles)
        .map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let text = |text: &'a Option<String>| text.as_deref().unwrap_or("-");
    let texts = [text(&interface.device.pci_id), text(&interface.driver)];
    (
        texts,
        machine.nodes_of(interface).iter().collect(),
        counts.collect(),
    )
}

/// Hashes values one after another so that different sequences have different bytes, independent of byte order.
#[derive(Default)]
struct PlanHasher {
    hasher: SipHasher13,
    /// Bytes not hashed yet: thousands at a time are hashed faster than a few.
    bytes: Vec<u8>,
}

impl PlanHasher {
    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.end();
    }

    fn numbers(&mut self, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            self.bytes.push(1);
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
        self.end();
    }

    fn sets<'a>(&mut self, sets: impl IntoIterator<Item = &'a CpuSet>) {
        for cpus in sets {
            for (index, word) in cpus.used_words() {
                let mut bytes = [1; 13];
                bytes[1..5].copy_from_slice(&index.to_le_bytes());
                bytes[5..].copy_from_slice(&word.to_le_bytes());
                self.bytes.extend_from_slice(&bytes);
            }
            self.bytes.push(2);
        }
        self.end();
    }

    fn end(&mut self) {
        self.bytes.push(0);
        if self.bytes.len() >= 4096 {
            self.hasher.write(&self.bytes);
            self.bytes.clear();
        }
    }

    fn finish(mut self) -> String {
        self.hasher.write(&self.bytes);
        format!("{:016x}", self.hasher.finish())
    }
}
