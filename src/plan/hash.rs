//! Hashes that must not change between releases or architectures: of a plan's targets, and of a machine's hardware
//! class.

use itertools::Itertools as _;
use siphasher::sip::SipHasher13;

use crate::cpuset::CpuSet;
use crate::kinds::SettingKind::{NapiThread, Rps, RpsFlow, Vector, Xps};
use crate::kinds::Value;
use crate::machine::{Machine, Role};
use crate::plan::data::{ChannelChange, HostSummary, PlannedInterface};

/// Facts that differ between boots do not count: IRQ numbers, current settings, link states and speeds.
pub(crate) fn hash(
    machine: &HostSummary,
    interfaces: &[PlannedInterface],
    channels: &[ChannelChange],
) -> String {
    let mut hash = PlanHasher::default();
    hash.sets([&machine.online, &machine.isolated, &machine.nohz_full])
        .numbers([machine.possible]);
    for node in &machine.nodes {
        hash.text("node").numbers([node.node]).sets([&node.cpus]);
    }
    for interface in interfaces {
        hash.text("interface")
            .text(&interface.name)
            .text(interface.driver.as_deref().unwrap_or("-"))
            .text(&interface.device)
            .sets([&interface.candidates]);
        for vector in &interface.vectors {
            // A control vector has a target only while it is on an isolated CPU.
            let cpus = vector.cpus.iter().filter(|_| vector.role != Role::Control);
            hash.text(vector.role.name())
                .numbers(vector.queue)
                .sets(cpus);
        }
        for thread in &interface.threads {
            hash.text("thread")
                .text(thread.role.map_or("-", Role::name))
                .numbers(thread.queue)
                .sets(&thread.cpus);
        }
        for rx in &interface.rx_queues {
            hash.text("rps")
                .numbers([rx.queue])
                .sets(&rx.rps_cpus)
                .numbers(rx.rps_flow_cnt);
        }
        for tx in &interface.tx_queues {
            hash.text("xps").numbers([tx.queue]).sets(&tx.xps_cpus);
        }
        let is_above = |kind| matches!(kind, Vector | NapiThread | Rps | RpsFlow | Xps);
        let others = interface
            .wanted()
            .filter(|((kind, ..), _)| !is_above(*kind));
        let others = others.sorted_by_key(|((kind, ..), _)| *kind);
        for (kind, others) in &others.into_iter().chunk_by(|((kind, ..), _)| *kind) {
            hash.text(kind.hashed)
                .values(others.map(|(_, wanted)| wanted.value));
        }
    }
    for change in channels {
        hash.text("channels")
            .text(&change.interface)
            .numbers(change.wanted.to_numbers());
    }
    hash.finish()
}

/// The hardware class: CPUs, cores, caches, nodes, the width of masks, and for each interface PCI id, driver, node, and
/// role and number of queues. SR-IOV virtual functions do not count: they come and go.
pub(crate) fn class(machine: &Machine) -> String {
    let topology = &machine.topology;
    let vectors = machine.vectors();
    let mut hash = PlanHasher::default();
    hash.numbers([topology.possible])
        .numbers(vectors.map(|vector| vector.affinity.width.digits()).max());
    for groups in [
        &topology.cores,
        &topology.l3_domains,
        &topology.packages,
        &topology.speed_classes,
    ] {
        hash.text("groups").sets(groups);
    }
    for (&id, node) in &topology.nodes {
        let distances = node.distances.iter();
        hash.text("node")
            .numbers([id, u32::from(node.without_memory)])
            .sets([&node.cpus])
            .numbers(distances.flat_map(|(&to, &distance)| [to, distance]));
    }
    let physical = machine
        .interfaces
        .iter()
        .filter(|interface| interface.device.parent.is_none());
    let keys = physical.map(|interface| {
        let vectors = |role| interface.with_role(role).count();
        let mut counts = vec![interface.rx_queues.len(), interface.tx_queues.len()];
        counts.extend([Role::Combined, Role::Rx, Role::Tx, Role::Rdma].map(vectors));
        counts.extend(Some(vectors(Role::Data)).filter(|data| *data > 0));
        (
            [&interface.device.pci_id, &interface.driver]
                .map(|text| text.as_deref().unwrap_or("-")),
            machine.nodes_of(interface).iter().collect::<Vec<u32>>(),
            (counts.into_iter())
                .map(|count| u32::try_from(count).unwrap_or(u32::MAX))
                .collect_vec(),
        )
    });
    for ([pci_id, driver], nodes, counts) in keys.sorted_unstable() {
        hash.text("interface").text(pci_id).text(driver);
        hash.numbers(nodes).numbers(counts);
    }
    hash.finish()
}

/// Different sequences of values have different bytes, independent of byte order.
#[derive(Default)]
struct PlanHasher(Vec<u8>);

impl PlanHasher {
    fn text(&mut self, text: &str) -> &mut Self {
        self.0.extend(text.as_bytes());
        self.end()
    }

    fn numbers(&mut self, numbers: impl IntoIterator<Item = u32>) -> &mut Self {
        self.add_numbers(numbers);
        self.end()
    }

    fn sets<'a>(&mut self, sets: impl IntoIterator<Item = &'a CpuSet>) -> &mut Self {
        for set in sets {
            self.add_set(set);
        }
        self.end()
    }

    fn values<'a>(&mut self, values: impl Iterator<Item = Value<'a>>) -> &mut Self {
        for value in values {
            match value {
                Value::Mask(set) => self.add_set(&set),
                Value::Count(count) => self.add_numbers([count]),
                Value::On(on) => self.add_numbers([on.into()]),
                Value::Channels(channels) => self.add_numbers(channels.to_numbers()),
                Value::Spread(queues) => self.add_numbers(queues.iter().copied()),
                Value::Table(table) => self.add_numbers(table.table.iter().copied()),
            }
        }
        self.end()
    }

    fn add_numbers(&mut self, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            self.0.push(1);
            self.0.extend(number.to_le_bytes());
        }
    }

    fn add_set(&mut self, cpus: &CpuSet) {
        for (index, word) in cpus.used_words() {
            self.0.push(1);
            self.0.extend(index.to_le_bytes());
            self.0.extend(word.to_le_bytes());
        }
        self.0.push(2);
    }

    fn end(&mut self) -> &mut Self {
        self.0.push(0);
        self
    }

    fn finish(self) -> String {
        format!("{:016x}", SipHasher13::new().hash(&self.0))
    }
}
