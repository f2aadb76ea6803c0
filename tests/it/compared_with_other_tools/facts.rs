//! A machine of the comparison, and its state after a tool was run.

use std::collections::BTreeMap;
use std::path::Path;

pub use nicpin::cpuset::CpuSet;
use nicpin::machine::Selection;
pub use nicpin::machine::{Interface, Machine, Role, Topology, Vector};
use nicpin::policy::Policy;
pub use nicpin::root::Root;

pub struct Facts {
    pub name: &'static str,
    pub host: Machine,
}

impl Facts {
    pub fn read(name: &'static str, dir: &Path) -> Self {
        let host = nicpin::read::machine(
            &Root::open(dir).unwrap(),
            nicpin::read::ReadOptions::default(),
        )
        .unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name, host }
    }

    /// Those for which every tool is run: they have queue vectors.
    pub fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.host
            .interfaces
            .iter()
            .filter(|interface| interface.queue_vectors().next().is_some())
    }
}

#[derive(Clone)]
pub struct State {
    pub cpus: BTreeMap<u32, u32>,
    /// The CPUs by transmit queue; none if the kernel has no XPS there.
    pub xps: BTreeMap<(String, u32), CpuSet>,
    pub queues: BTreeMap<String, (u32, u32)>,
    /// Vectors to which the tool has given a CPU.
    pub placed: usize,
    online: CpuSet,
}

impl State {
    pub fn found(facts: &Facts) -> Self {
        let vectors = facts
            .host
            .interfaces
            .iter()
            .flat_map(|interface| &interface.vectors);
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
            (
                interface.name.clone(),
                (
                    count(interface.rx_queues.len()),
                    count(interface.tx_queues.len()),
                ),
            )
        };
        Self {
            cpus: vectors
                .map(|vector| (vector.irq, serving(vector)))
                .collect(),
            xps,
            queues: facts.host.interfaces.iter().map(queues).collect(),
            placed: 0,
            online: facts.host.topology.online.clone(),
        }
    }

    pub fn planned(facts: &Facts) -> Self {
        let mut state = Self::found(facts);
        let selection = Selection::new(&facts.host, &[], false).unwrap();
        for interface in nicpin::plan::plan(&facts.host, &Policy::default(), &selection).interfaces
        {
            for vector in interface.vectors {
                if let Some(cpus) = vector.cpus {
                    state.put(vector.irq, &cpus);
                }
            }
            for queue in interface.tx_queues {
                if let Some(cpus) = queue.xps_cpus {
                    state.put_xps(&interface.name, queue.queue, cpus);
                }
            }
        }
        state
    }

    /// Writes to `smp_affinity`. The kernel refuses a set without an online CPU.
    pub fn put(&mut self, irq: u32, cpus: &CpuSet) {
        if let Some(cpu) = cpus.intersection(&self.online).first() {
            self.cpus.insert(irq, cpu);
            self.placed += 1;
        }
    }

    pub fn put_xps(&mut self, interface: &str, queue: u32, cpus: CpuSet) {
        if let Some(mask) = self.xps.get_mut(&(interface.to_owned(), queue)) {
            *mask = cpus;
        }
    }

    pub fn is_active(&self, interface: &Interface, vector: &Vector) -> bool {
        let (rx, tx) = self.queues[&interface.name];
        let queues = match vector.role {
            Role::Combined => rx.max(tx),
            Role::Rx => rx,
            Role::Tx => tx,
            _ => return false,
        };
        vector.queue.is_some_and(|queue| queue < queues)
    }
}

/// The effective CPU of a vector before any tool was run.
pub fn serving(vector: &Vector) -> u32 {
    vector
        .effective
        .as_ref()
        .unwrap_or(&vector.affinity.cpus)
        .first()
        .unwrap()
}
