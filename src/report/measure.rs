//! Rates of interrupts, traffic and CPU time from counters. The JSON form is `nicpin.measure/1`.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use itertools::Itertools as _;
use serde::Serialize;

use crate::cpuset::CpuSet;
use crate::drivers::learn::{self, Seen};
use crate::drivers::{Pattern, Taught};
use crate::machine::netdev::Direction;
use crate::machine::sample::{CounterSelection, CpuCounts, Delta};
use crate::machine::{Machine, Role, Topology};
use crate::plan::{Note, PlannedInterface};
use crate::report::flow::Connections;

/// Minimum number of steps with packets: in fewer, a queue may have moved with an IRQ by chance.
const LEAST_STEPS: u64 = 3;

/// Minimum time for shares of CPU time: ticks are too coarse for less.
const SHORT: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Default, Serialize)]
pub struct MeasuredInterface {
    pub name: String,
    pub driver: Option<String>,
    /// The kind of an interface without a device, such as `bond`; it has no node and no vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    pub node: Option<u32>,
    #[serde(skip)]
    pub vectors: Vec<MeasuredVector>,
    #[serde(skip)]
    pub device: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct MeasuredVector {
    pub irq: u32,
    pub role: Role,
    pub queue: Option<u32>,
    /// The CPUs that are local to it; `None` if unknown.
    #[serde(skip)]
    pub local: Option<CpuSet>,
    #[serde(skip)]
    pub action: String,
}

impl MeasuredInterface {
    pub fn planned(interface: &PlannedInterface, machine: &Machine) -> Self {
        let vectors = interface.vectors.iter().map(|vector| MeasuredVector {
            irq: vector.irq,
            role: vector.role,
            queue: vector.queue,
            local: interface.local_to(vector, machine),
            action: vector.action.to_string(),
        });
        Self {
            name: interface.name.clone(),
            driver: interface.driver.clone(),
            node: interface.local_node(),
            vectors: vectors.collect(),
            device: interface.device.clone(),
            ..Self::default()
        }
    }

    pub fn without_device(name: &str, kind: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: Some(kind.to_owned()),
            ..Self::default()
        }
    }

    /// Vectors whose queues are not known.
    fn data_vectors(&self) -> impl Iterator<Item = &MeasuredVector> {
        let vectors = self.vectors.iter();
        vectors.filter(|vector| vector.role == Role::Data)
    }

    pub fn wanted(subjects: &[Self]) -> CounterSelection {
        let vectors = subjects.iter().flat_map(|subject| &subject.vectors);
        let names = subjects.iter().map(|subject| &*subject.name);
        CounterSelection {
            irqs: vectors.map(|vector| vector.irq).collect(),
            interfaces: names.chain([LOOPBACK]).map(str::to_owned).collect(),
            threads: BTreeSet::new(),
            queues: (subjects.iter())
                .filter(|subject| subject.data_vectors().next().is_some())
                .map(|subject| subject.name.clone())
                .collect(),
            cpus: true,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "schema", rename = "nicpin.measure/1")]
pub struct Measurement {
    pub seconds: f64,
    /// Whether it covers the whole run of a command.
    pub whole: bool,
    pub interfaces: Vec<InterfaceRates>,
    pub cpus: Vec<CpuRates>,
    pub machine: MachineRates,
    /// `None` if the kernel does not list them.
    pub connections: Option<Connections>,
    pub notes: Vec<Note>,
}

#[derive(Debug, Serialize)]
pub struct InterfaceRates {
    #[serde(flatten)]
    pub subject: MeasuredInterface,
    pub traffic: Option<TrafficRates>,
    pub interrupts_per_second: f64,
    /// Share of interrupts on local CPUs, 0 to 1; `None` without interrupts, or if the node is unknown.
    pub local: Option<f64>,
    pub vectors: Vec<VectorRates>,
    /// Rows for an unknown driver, in the policy's form; `None` if the traffic is ambiguous.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learned: Option<Taught>,
}

/// Counters of the interface itself. Drivers differ in the bytes that they count; most leave out the frame check
/// sequence.
#[derive(Debug, PartialEq, Serialize)]
pub struct TrafficRates {
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_gbit_per_second: f64,
    pub tx_gbit_per_second: f64,
    pub rx_packets_per_second: f64,
    pub tx_packets_per_second: f64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
}

#[derive(Debug, Serialize)]
pub struct VectorRates {
    #[serde(flatten)]
    pub vector: MeasuredVector,
    pub interrupts: u64,
    /// Interrupts on local CPUs, total; `None` if the vector's node is unknown.
    #[serde(skip)]
    here: Option<u64>,
    pub per_second: f64,
    pub local: Option<f64>,
    pub cpus: Vec<OnCpu>,
    /// The queues (`rx 3`) whose packets were counted when this data vector fired, and when no other did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved_with: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct OnCpu {
    pub cpu: u32,
    pub node: Option<u32>,
    pub interrupts: u64,
    pub per_second: f64,
}

#[derive(Debug, Serialize)]
pub struct CpuRates {
    pub cpu: u32,
    pub node: Option<u32>,
    pub interrupts_per_second: f64,
    /// Non-idle share of the CPU's time, 0 to 1.
    pub busy: f64,
    /// Share of the CPU's time in interrupts and softirqs, 0 to 1.
    pub softirq: f64,
    pub net_rx_per_second: f64,
    pub net_tx_per_second: f64,
    /// Packets processed (`/proc/net/softnet_stat`).
    pub packets_per_second: f64,
    pub rps_per_second: f64,
    /// Packets dropped because the CPU's backlog was full, total.
    pub dropped: u64,
    /// Polls that ended with work left (`time_squeeze`), total.
    pub squeezed: u64,
}

/// Totals of all measured interfaces and all CPUs.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct MachineRates {
    /// Traffic received and sent.
    pub gbit_per_second: f64,
    /// Non-idle time of all CPUs.
    pub busy_cpu_seconds: f64,
    /// Time of all CPUs in interrupts and softirqs.
    pub softirq_cpu_seconds: f64,
    /// `None` if CPUs were busy for less than 10 ms.
    pub gbit_per_busy_cpu_second: Option<f64>,
    /// `None` if interrupts and softirqs took less than 10 ms.
    pub gbit_per_softirq_cpu_second: Option<f64>,
    /// Interrupts of the measured vectors on local CPUs.
    pub local_interrupts: u64,
    /// Interrupts of the measured vectors on remote CPUs.
    pub remote_interrupts: u64,
    pub dropped: u64,
    /// Polls that ended with work left (`time_squeeze`).
    pub squeezed: u64,
    /// Packets of the loopback interface, which the CPUs' figures include.
    pub loopback_packets_per_second: f64,
}

/// The kernel counts the loopback interface's packets with those of all others on a CPU.
const LOOPBACK: &str = "lo";

/// Counters may be arbitrarily large in a damaged file.
fn total(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

/// The interrupts on local CPUs, and all interrupts, of vectors whose local CPUs are known.
fn local_interrupts<'a>(vectors: impl Iterator<Item = &'a VectorRates>) -> (u64, u64) {
    let known = vectors.filter_map(|vector| Some((vector.here?, vector.interrupts)));
    let (local, all): (Vec<u64>, Vec<u64>) = known.unzip();
    (total(local), total(all))
}

/// The queues whose packets were counted when a vector fired, and when no other did, by its IRQ.
type MovedQueues = HashMap<u32, Vec<(Direction, u32)>>;

struct Rates<'a> {
    topology: &'a Topology,
    delta: &'a Delta,
}

impl Measurement {
    pub fn new(topology: &Topology, subjects: &[MeasuredInterface], delta: &Delta) -> Self {
        let rates = Rates { topology, delta };
        let interfaces = subjects
            .iter()
            .map(|subject| rates.interface(subject))
            .collect_vec();
        let taken = delta
            .interrupts
            .values()
            .flatten()
            .into_grouping_map()
            .fold(0_u64, |sum, _, count| sum.saturating_add(*count));
        let cpu = |(&cpu, delta): (&u32, &CpuCounts)| CpuRates {
            cpu,
            node: topology.node_of(cpu),
            interrupts_per_second: rates.per_second(taken.get(&cpu).copied().unwrap_or(0)),
            busy: rates.per_second(delta.busy) / 100.0,
            softirq: rates.per_second(delta.irq.saturating_add(delta.softirq)) / 100.0,
            net_rx_per_second: rates.per_second(delta.net_rx),
            net_tx_per_second: rates.per_second(delta.net_tx),
            packets_per_second: rates.per_second(delta.processed),
            rps_per_second: rates.per_second(delta.rps),
            dropped: delta.dropped,
            squeezed: delta.squeezed,
        };
        Self {
            seconds: delta.seconds(),
            whole: false,
            cpus: delta.cpus.iter().map(cpu).collect(),
            machine: rates.machine(&interfaces),
            connections: None,
            notes: notes(delta),
            interfaces,
        }
    }
}

impl Rates<'_> {
    fn per_second(&self, count: u64) -> f64 {
        match self.delta.seconds() {
            time if time > 0.0 => count as f64 / time,
            _ => 0.0,
        }
    }

    fn interface(&self, subject: &MeasuredInterface) -> InterfaceRates {
        let gbit = |bytes| self.per_second(bytes) * 8.0 / 1e9;
        let traffic = self.delta.interfaces.get(&subject.name);
        let traffic = traffic.map(|traffic| TrafficRates {
            rx_bytes: traffic.rx_bytes,
            tx_bytes: traffic.tx_bytes,
            rx_gbit_per_second: gbit(traffic.rx_bytes),
            tx_gbit_per_second: gbit(traffic.tx_bytes),
            rx_packets_per_second: self.per_second(traffic.rx_packets),
            tx_packets_per_second: self.per_second(traffic.tx_packets),
            rx_dropped: traffic.rx_dropped,
            tx_dropped: traffic.tx_dropped,
        });
        let moved = self.queues_moved_with(subject);
        let vectors = subject
            .vectors
            .iter()
            .filter_map(|vector| self.vector(vector, moved.get(&vector.irq)))
            .collect_vec();
        let (local, known) = local_interrupts(vectors.iter());
        InterfaceRates {
            learned: learn(subject, &moved),
            subject: subject.clone(),
            traffic,
            interrupts_per_second: self
                .per_second(total(vectors.iter().map(|vector| vector.interrupts))),
            local: share(local, known),
            vectors,
        }
    }

    /// By IRQ, the queues that came with one data vector only: it fired in nearly each step in which their packets were
    /// counted, and each other vector in half of these at most.
    fn queues_moved_with(&self, subject: &MeasuredInterface) -> MovedQueues {
        self.delta
            .queues
            .iter()
            .filter(|((name, ..), _)| *name == subject.name)
            .filter_map(|((_, direction, queue), together)| {
                let fired =
                    |vector: &MeasuredVector| together.fired.get(&vector.irq).copied().unwrap_or(0);
                let only = subject
                    .data_vectors()
                    .filter(|vector| fired(vector) * 2 > together.steps)
                    .exactly_one()
                    .ok()?;
                let is_plain =
                    together.steps >= LEAST_STEPS && fired(only) * 5 >= together.steps * 4;
                is_plain.then_some((only.irq, (*direction, *queue)))
            })
            .into_group_map()
    }

    /// `None` if the vector was not counted all the time.
    fn vector(
        &self,
        vector: &MeasuredVector,
        moved: Option<&Vec<(Direction, u32)>>,
    ) -> Option<VectorRates> {
        let on = self.delta.interrupts.get(&vector.irq)?;
        let interrupts = total(on.values().copied());
        let here = vector.local.as_ref().map(|local| {
            total(
                on.iter()
                    .filter(|(cpu, _)| local.contains(**cpu))
                    .map(|(_, count)| *count),
            )
        });
        let cpus = on.iter().map(|(&cpu, &interrupts)| OnCpu {
            cpu,
            node: self.topology.node_of(cpu),
            interrupts,
            per_second: self.per_second(interrupts),
        });
        Some(VectorRates {
            vector: vector.clone(),
            interrupts,
            here,
            per_second: self.per_second(interrupts),
            local: here.and_then(|here| share(here, interrupts)),
            cpus: cpus.collect(),
            moved_with: (moved.into_iter().flatten())
                .map(|(direction, queue)| format!("{} {queue}", direction.name()))
                .collect(),
        })
    }

    fn machine(&self, interfaces: &[InterfaceRates]) -> MachineRates {
        let of_cpus = |count: fn(&CpuCounts) -> u64| total(self.delta.cpus.values().map(count));
        let traffic = interfaces
            .iter()
            .filter_map(|interface| interface.traffic.as_ref());
        let of_traffic =
            |counts: fn(&TrafficRates) -> [u64; 2]| total(traffic.clone().flat_map(counts));
        let bytes = of_traffic(|traffic| [traffic.rx_bytes, traffic.tx_bytes]);
        let lost = of_traffic(|traffic| [traffic.rx_dropped, traffic.tx_dropped]);
        let (local, known) =
            local_interrupts(interfaces.iter().flat_map(|interface| &interface.vectors));
        // The kernel's ticks are 1/100 s.
        let busy = of_cpus(|cpu| cpu.busy) as f64 / 100.0;
        let softirq = of_cpus(|cpu| cpu.irq.saturating_add(cpu.softirq)) as f64 / 100.0;
        let gbit_per = |time: f64| (time > 0.0).then(|| bytes as f64 * 8.0 / 1e9 / time);
        let loopback = self.delta.interfaces.get(LOOPBACK);
        MachineRates {
            gbit_per_second: gbit_per(self.delta.seconds()).unwrap_or(0.0),
            busy_cpu_seconds: busy,
            softirq_cpu_seconds: softirq,
            gbit_per_busy_cpu_second: gbit_per(busy),
            gbit_per_softirq_cpu_second: gbit_per(softirq),
            local_interrupts: local,
            remote_interrupts: known.saturating_sub(local),
            dropped: of_cpus(|cpu| cpu.dropped).saturating_add(lost),
            squeezed: of_cpus(|cpu| cpu.squeezed),
            loopback_packets_per_second: self
                .per_second(loopback.map_or(0, |traffic| traffic.rx_packets)),
        }
    }
}

fn learn(subject: &MeasuredInterface, moved: &MovedQueues) -> Option<Taught> {
    let seen = subject.data_vectors().map(|vector| {
        let only = |way: Direction| {
            let queues = moved.get(&vector.irq).into_iter().flatten();
            let (_, queue) = queues.filter(|(to, _)| *to == way).exactly_one().ok()?;
            Some(*queue)
        };
        Seen {
            irq: vector.irq,
            action: &vector.action,
            rx: only(Direction::Rx),
            tx: only(Direction::Tx),
        }
    });
    let name = subject.driver.clone()?;
    let irqs = learn::rows(&name, &subject.name, &subject.device, &seen.collect_vec())
        .iter()
        .filter_map(|row| Pattern::taught(row).ok())
        .collect_vec();
    (!irqs.is_empty()).then_some(Taught { name, irqs })
}

fn notes(delta: &Delta) -> Vec<Note> {
    [
        (delta.elapsed < SHORT).then_some(Note::Short),
        (!delta.cpus_changed.is_empty()).then(|| Note::CpusChanged {
            cpus: delta.cpus_changed.clone(),
        }),
        (!delta.irqs_changed.is_empty()).then(|| Note::VectorsChanged {
            irqs: delta.irqs_changed.iter().copied().collect(),
        }),
        (!delta.interfaces_changed.is_empty()).then(|| Note::InterfacesChanged {
            interfaces: delta.interfaces_changed.iter().cloned().collect(),
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}
