//! Machines of any size, as values and as trees.

use std::path::Path;

use crate::support::machine::{Card, Kernel, MachineSpec, Port};
use crate::support::tree::put;

/// How large a machine is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Logical CPUs, two threads a core as far as each node still gets a core: 2 to 4,096.
    pub(crate) cpus: u32,
    /// NUMA nodes, the first ones with a core more where they cannot be shared out, the last ones with memory only
    /// where there are more nodes than CPUs: 1 to 32.
    pub(crate) nodes: u32,
    /// Network cards, dealt over the nodes: 1 to 32.
    pub(crate) cards: u32,
    /// Queues of each card: 1 to 256.
    pub(crate) queues: u32,
    /// Whether the kernel has `/sys/kernel/irq` (4.9 and later), beside which `/proc/interrupts` is not read.
    pub(crate) irq_files: bool,
}

/// The first IRQ of a card; below it are the machine's own.
const FIRST_IRQ: u32 = 128;
/// Processes of each machine.
const PROCESSES: u32 = 4000;

impl Size {
    pub(crate) fn new((cpus, nodes, cards, queues): (u32, u32, u32, u32), irq_files: bool) -> Self {
        Self {
            cpus,
            nodes,
            cards,
            queues,
            irq_files,
        }
    }

    /// What a plan is made of: a CPU for each vector, an RPS set for each receive queue, and a transmit queue for each
    /// CPU and card.
    pub(crate) fn decisions(self) -> f64 {
        f64::from(2 * self.vectors() + self.cards * self.cpus)
    }

    /// Writes the machine as a tree, with the processes of a busy one: nicpin's time must not depend on them.
    pub(crate) fn write(self, dir: &Path) {
        self.machine().write(dir);
        for pid in 1..=PROCESSES {
            let stat = format!("{pid} (worker) S 1{}", " 0".repeat(48));
            put(dir, &format!("/proc/{pid}/stat"), &stat);
        }
    }

    /// The machine: siblings half the CPUs apart, an L3 domain for every eight cores of a node, every vector allowed
    /// everywhere and served by the first node, as drivers and the kernel leave it.
    pub(crate) fn machine(self) -> MachineSpec {
        let Self {
            cpus,
            nodes,
            cards,
            queues,
            irq_files,
        } = self;
        let cores = cpus.div_ceil(2).max(cpus.min(nodes));
        let first_core = |node: u32| node * (cores / nodes) + node.min(cores % nodes);
        let share = first_core(1);
        let lists: Vec<String> = (0..nodes)
            .map(|node| {
                let own = first_core(node)..first_core(node + 1);
                let siblings = own.start + cores..(own.end + cores).min(cpus);
                let ranges = [own, siblings]
                    .into_iter()
                    .filter(|range| !range.is_empty());
                let texts = ranges.map(|range| format!("{}-{}", range.start, range.end - 1));
                texts.collect::<Vec<_>>().join(",")
            })
            .collect();
        let mut machine = MachineSpec::new(&lists.iter().map(String::as_str).collect::<Vec<_>>());
        machine.kernel = Kernel::V6_14;
        machine.irq_digits = 5;
        machine.irq_files = irq_files;
        machine.nohz_full = Some(vec![]);
        machine.cores = machine.groups(|cpu| cpu % cores);
        machine.l3 = machine.groups(|cpu| {
            let core = cpu % cores;
            let node = (0..nodes)
                .rev()
                .find(|&node| first_core(node) <= core)
                .unwrap();
            node * cores + (core - first_core(node)) / 8
        });
        machine.set_distances(|from, to| {
            if from == to {
                10
            } else {
                20 + from.abs_diff(to)
            }
        });
        let everywhere: Vec<u32> = (0..cpus).collect();
        let serving: Vec<u32> = (0..share).collect();
        for card in 0..cards {
            let name = format!("eth{card}");
            let count = queues as usize;
            let actions = (0..queues)
                .map(|queue| format!("{name}-TxRx-{queue}"))
                .chain([name.clone()]);
            let address = format!("0000:{:02x}:{:02x}.0", 1 + card / 8, card % 8);
            let parent = format!("pci0000:00/0000:00:{:02x}.{}", 1 + card / 8, card % 8);
            let node = i32::try_from(card % nodes).unwrap();
            let first = FIRST_IRQ + card * (queues + 1);
            let built = Card::new("ixgbe", &parent, &address, node, "16.0 GT/s PCIe", 16)
                .port(
                    Port::new(&name, 100_000, count, count)
                        .channels([0, 0, 1, 256], [0, 0, 1, queues]),
                )
                .vectors(first, actions, &everywhere, &serving);
            machine.cards.push(built);
        }
        machine
    }

    /// How many queue vectors it has.
    pub(crate) fn vectors(self) -> u32 {
        self.cards * self.queues
    }
}
