//! The hash that is equal for plans with the same targets. It must not change between releases or architectures.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;

use crate::cpuset::CpuSet;
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
        for text in [&interface.name, interface.driver.as_deref().unwrap_or("-"), &interface.device] {
            hash.text(text);
        }
        hash.sets([&interface.candidates]);
        for vector in &interface.vectors {
            hash.text(vector.role.name());
            hash.numbers(vector.queue);
            hash.sets(&vector.cpus);
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
    }
    format!("{:016x}", hash.finish())
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

    fn finish(mut self) -> u64 {
        self.hasher.write(&self.bytes);
        self.hasher.finish()
    }
}
