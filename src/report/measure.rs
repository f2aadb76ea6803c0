//! Rates from the delta of counters: interrupts by queue and CPU with their local share, throughput, and CPU time. The
//! JSON form is `nicpin.measure/1`.

use std::collections::BTreeSet;
use std::time::Duration;

use itertools::Itertools as _;
use serde::Serialize;

use crate::drivers::learn::{self, Seen};
use crate::drivers::{Pattern, Taught};
use crate::machine::netdev::Direction;
use crate::machine::sample::{CounterSelection, CpuCounts, Delta};
use crate::machine::{Role, Topology};
use crate::plan::{Note, PlannedInterface};
use crate::report::flow::Connections;

/// In fewer steps with packets, a queue may have moved with an IRQ by chance.
const LEAST_STEPS: u64 = 3;

/// In less time than this, ticks are too coarse for shares of CPU time.
const SHORT: Duration = Duration::from_millis(100);

/// An interface to be measured.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MeasuredInterface {
    pub name: String,
    pub driver: Option<String>,
    /// The kind of an interface without a device, such as `bond`; it has no node and no vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `None` when it has none or it is unknown.
    pub node: Option<u32>,
    #[serde(skip)]
    pub vectors: Vec<MeasuredVector>,
    /// The device's name on its bus.
    #[serde(skip)]
    pub device: String,
}

/// A vector to be measured.
#[derive(Debug, Clone, Serialize)]
pub struct MeasuredVector {
    pub irq: u32,
    pub role: Role,
    /// `None` for a control vector.
    pub queue: Option<u32>,
    /// The node on which it is local; `None` when unknown.
    #[serde(skip)]
    pub node: Option<u32>,
    /// The handler's name.
    #[serde(skip)]
    pub action: String,
}

impl MeasuredInterface {
    /// An interface with a device.
    pub fn planned(interface: &PlannedInterface) -> Self {
        let node = interface.local_node();
        let vectors = interface.vectors.iter().map(|vector| MeasuredVector {
            irq: vector.irq,
            role: vector.role,
            queue: vector.queue,
            node: vector.node.or(node),
            action: vector.action.clone(),
        });
        Self {
            name: interface.name.clone(),
            driver: interface.driver.clone(),
            node,
            vectors: vectors.collect(),
            device: interface.device.clone(),
            ..Self::default()
        }
    }

    /// An interface without one.
    pub fn without_device(name: &str, kind: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: Some(kind.to_owned()),
            ..Self::default()
        }
    }

    /// The counters of these interfaces and of the CPUs.
    pub fn wanted(subjects: &[Self]) -> CounterSelection {
        let vectors = subjects.iter().flat_map(|subject| &subject.vectors);
        let names = subjects.iter().map(|subject| &*subject.name);
        CounterSelection {
            irqs: vectors.map(|vector| vector.irq).collect(),
            interfaces: names.chain([LOOPBACK]).map(str::to_owned).collect(),
            threads: BTreeSet::new(),
            queues: (subjects.iter())
                .filter(|of| of.vectors.iter().any(|vector| vector.role == Role::Data))
                .map(|of| of.name.clone())
                .collect(),
            cpus: true,
        }
    }
}

/// A measurement.
#[derive(Debug, Serialize)]
#[serde(tag = "schema", rename = "nicpin.measure/1")]
pub struct Measure {
    pub seconds: f64,
    /// Whether it covers the whole run of a command.
    pub whole: bool,
    pub interfaces: Vec<InterfaceRates>,
    /// By CPU number.
    pub cpus: Vec<CpuRates>,
    pub machine: MachineRates,
    /// Where established connections arrive; `None` where the kernel does not list them.
    pub connections: Option<Connections>,
    pub notes: Vec<Note>,
}

/// The rates of an interface.
#[derive(Debug, Serialize)]
pub struct InterfaceRates {
    #[serde(flatten)]
    pub subject: MeasuredInterface,
    /// `None` when it has no counters.
    pub traffic: Option<TrafficRates>,
    /// Interrupts of its vectors per second.
    pub interrupts_per_second: f64,
    /// The share of interrupts on local CPUs, 0 to 1; `None` without interrupts, or when the node is unknown.
    pub local: Option<f64>,
    pub vectors: Vec<VectorRates>,
    /// What the traffic tells of a driver that is not known, as in the policy; `None` where that is not plain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learned: Option<Taught>,
}

/// The traffic of an interface by its own counters. Drivers differ in what they count as bytes; most do not count the
/// frame check sequence.
#[derive(Debug, PartialEq, Serialize)]
pub struct TrafficRates {
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_gbit_per_second: f64,
    pub tx_gbit_per_second: f64,
    pub rx_packets_per_second: f64,
    pub tx_packets_per_second: f64,
    /// Packets dropped on receive, total.
    pub rx_dropped: u64,
    /// Packets dropped on transmit, total.
    pub tx_dropped: u64,
}

/// The rates of a vector.
#[derive(Debug, Serialize)]
pub struct VectorRates {
    #[serde(flatten)]
    pub vector: MeasuredVector,
    /// Interrupts, total.
    pub interrupts: u64,
    /// Those on local CPUs; `None` when its node is unknown.
    #[serde(skip)]
    here: Option<u64>,
    /// Interrupts per second.
    pub per_second: f64,
    /// The share on local CPUs, 0 to 1.
    pub local: Option<f64>,
    /// Interrupts by CPU.
    pub cpus: Vec<OnCpu>,
    /// Of a data vector: the queues whose packets were counted when it fired, and when no other data vector did. Each is a
    /// receive or a transmit queue: `rx 3`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved_with: Vec<String>,
}

/// A vector's interrupts on one CPU.
#[derive(Debug, Serialize)]
pub struct OnCpu {
    pub cpu: u32,
    pub node: Option<u32>,
    /// Interrupts, total.
    pub interrupts: u64,
    /// Interrupts per second.
    pub per_second: f64,
}

/// The rates of a CPU.
#[derive(Debug, Serialize)]
pub struct CpuRates {
    pub cpu: u32,
    pub node: Option<u32>,
    /// Interrupts of the measured vectors per second.
    pub interrupts_per_second: f64,
    /// The non-idle share of its time, 0 to 1.
    pub busy: f64,
    /// The share of its time in interrupts and softirqs, 0 to 1.
    pub softirq: f64,
    /// `NET_RX` softirqs per second.
    pub net_rx_per_second: f64,
    /// `NET_TX` softirqs per second.
    pub net_tx_per_second: f64,
    /// Packets processed per second (`/proc/net/softnet_stat`).
    pub packets_per_second: f64,
    /// Wakeups by RPS per second.
    pub rps_per_second: f64,
    /// Packets dropped because its backlog was full, total.
    pub dropped: u64,
    /// Polls that ended with work left (`time_squeeze`), total.
    pub squeezed: u64,
}

/// Totals of all measured interfaces and all CPUs.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct MachineRates {
    /// Received and sent.
    pub gbit_per_second: f64,
    /// Non-idle time of all CPUs.
    pub busy_cpu_seconds: f64,
    /// Time of all CPUs in interrupts and softirqs.
    pub softirq_cpu_seconds: f64,
    /// `None` when CPUs were busy for less than 10 ms.
    pub gbit_per_busy_cpu_second: Option<f64>,
    /// `None` when CPUs were in interrupts and softirqs for less than 10 ms.
    pub gbit_per_softirq_cpu_second: Option<f64>,
    /// Interrupts of the measured vectors on local CPUs.
    pub local_interrupts: u64,
    /// Interrupts of the measured vectors on remote CPUs.
    pub remote_interrupts: u64,
    /// Packets dropped by interfaces and backlogs.
    pub dropped: u64,
    /// Polls that ended with work left (`time_squeeze`).
    pub squeezed: u64,
    /// Packets of the loopback interface, which the CPUs' figures include.
    pub loopback_packets_per_second: f64,
}

/// The loopback interface: the kernel counts its packets with those of all others on a CPU.
const LOOPBACK: &str = "lo";

/// The sum of counters, which a damaged file may make as large as it likes.
fn total(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// `None` of nothing.
fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

/// Interrupts of vectors on local CPUs, and all of those whose node is known.
fn local<'a>(vectors: impl Iterator<Item = &'a VectorRates>) -> (u64, u64) {
    let known = vectors.filter_map(|vector| Some((vector.here?, vector.interrupts)));
    known.fold((0_u64, 0_u64), |(local, all), (here, count)| {
        (local.saturating_add(here), all.saturating_add(count))
    })
}

/// A delta as rates.
struct Rates<'a> {
    topology: &'a Topology,
    delta: &'a Delta,
}

impl Measure {
    /// Computes rates from the delta of counters.
    pub fn new(topology: &Topology, subjects: &[MeasuredInterface], delta: &Delta) -> Self {
        let rates = Rates { topology, delta };
        let interfaces = subjects
            .iter()
            .map(|subject| rates.interface(subject))
            .collect_vec();
        let interrupts = delta.interrupts.values().flatten().into_grouping_map();
        let taken = interrupts.fold(0_u64, |sum, _, count| sum.saturating_add(*count));
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
        let vectors = subject
            .vectors
            .iter()
            .filter_map(|one| self.vector(subject, one))
            .collect_vec();
        let (local, known) = local(vectors.iter());
        let learned = self.learn(subject);
        InterfaceRates {
            learned,
            subject: subject.clone(),
            traffic,
            interrupts_per_second: self.per_second(total(vectors.iter().map(|one| one.interrupts))),
            local: share(local, known),
            vectors,
        }
    }

    /// The queues that came with each data vector of an interface, where that is plain: in nearly each step in which packets
    /// were counted it fired, and each other one in half of these at most.
    fn moved<'s>(
        &'s self,
        subject: &'s MeasuredInterface,
    ) -> impl Iterator<Item = (u32, Direction, u32)> + 's {
        let of_interface = self.delta.queues.iter();
        let of_interface = of_interface.filter(|((name, ..), _)| *name == subject.name);
        of_interface.filter_map(|((_, direction, queue), together)| {
            let data = subject.vectors.iter().filter(|of| of.role == Role::Data);
            let fired = |of: &MeasuredVector| together.fired.get(&of.irq).copied().unwrap_or(0);
            let often = data.clone().filter(|of| fired(of) * 2 > together.steps);
            let only = often.exactly_one().ok()?;
            let is_plain = together.steps >= LEAST_STEPS && fired(only) * 5 >= together.steps * 4;
            is_plain.then_some((only.irq, *direction, *queue))
        })
    }

    /// What the traffic of an interface tells of its driver.
    fn learn(&self, subject: &MeasuredInterface) -> Option<Taught> {
        let moved = self.moved(subject).collect_vec();
        let data = subject.vectors.iter().filter(|of| of.role == Role::Data);
        let seen = data.map(|of| {
            let only = |way: Direction| {
                let mut queues = moved
                    .iter()
                    .filter(|(irq, to, _)| (*irq, *to) == (of.irq, way));
                let first = queues.next().map(|(.., queue)| *queue);
                first.filter(|_| queues.next().is_none())
            };
            Seen {
                irq: of.irq,
                action: &of.action,
                rx: only(Direction::Rx),
                tx: only(Direction::Tx),
            }
        });
        let name = subject.driver.clone()?;
        let rows = learn::rows(&name, &subject.name, &subject.device, &seen.collect_vec());
        let irqs = rows
            .iter()
            .filter_map(|row| Pattern::taught(row).ok())
            .collect_vec();
        (!irqs.is_empty()).then_some(Taught { name, irqs })
    }

    /// `None` for one that was not counted all the time.
    fn vector(&self, subject: &MeasuredInterface, vector: &MeasuredVector) -> Option<VectorRates> {
        let on = self.delta.interrupts.get(&vector.irq)?;
        let interrupts = total(on.values().copied());
        let here = vector.node.map(|node| {
            let near = self.topology.cpus_near(node);
            let here = on.iter().filter(|(cpu, _)| near.contains(**cpu));
            total(here.map(|(_, count)| *count))
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
            moved_with: self
                .moved(subject)
                .filter(|(irq, ..)| *irq == vector.irq)
                .map(|(_, direction, queue)| format!("{} {queue}", direction.name()))
                .collect(),
        })
    }

    fn machine(&self, interfaces: &[InterfaceRates]) -> MachineRates {
        let of_cpus = |count: fn(&CpuCounts) -> u64| total(self.delta.cpus.values().map(count));
        let traffic = interfaces.iter().filter_map(|one| one.traffic.as_ref());
        let of_traffic =
            |counts: fn(&TrafficRates) -> [u64; 2]| total(traffic.clone().flat_map(counts));
        let bytes = of_traffic(|traffic| [traffic.rx_bytes, traffic.tx_bytes]);
        let lost = of_traffic(|traffic| [traffic.rx_dropped, traffic.tx_dropped]);
        let (local, known) = local(interfaces.iter().flat_map(|one| &one.vectors));
        // Ticks of the kernel are of 1/100 s.
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
