//! Rates from the delta of counters: interrupts by queue and CPU with their local share, throughput, and CPU time. The
//! JSON form is `nicpin.measure/1`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::cpuset::CpuSet;
use crate::machine::sample::{CounterSelection, CpuCounts, Delta, InterfaceCounts};
use crate::machine::{Role, Topology};
use crate::plan::{Note, PlannedInterface};
use crate::report::connections::Connections;

/// In less time than this, ticks are too coarse for shares of CPU time.
const SHORT: Duration = Duration::from_millis(100);

/// The name and version of the JSON form.
pub const SCHEMA: &str = "nicpin.measure/1";

/// An interface to be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredInterface {
    pub name: String,
    pub driver: Option<String>,
    /// The kind of an interface without a device, such as `bond`; it has no node and no vectors.
    pub kind: Option<String>,
    pub node: Option<u32>,
    pub vectors: Vec<MeasuredVector>,
}

/// A vector to be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredVector {
    pub irq: u32,
    pub role: Role,
    /// `None` for a control vector.
    pub queue: Option<u32>,
    /// The node on which it is local; `None` when unknown.
    pub node: Option<u32>,
}

impl MeasuredInterface {
    /// An interface with a device.
    pub fn planned(interface: &PlannedInterface) -> Self {
        let vectors = interface.vectors.iter().map(|vector| MeasuredVector {
            irq: vector.irq,
            role: vector.role,
            queue: vector.queue,
            node: vector.node.or(interface.local_node()),
        });
        Self {
            name: interface.name.clone(),
            driver: interface.driver.clone(),
            kind: None,
            node: interface.local_node(),
            vectors: vectors.collect(),
        }
    }

    /// An interface without one.
    pub fn without_device(name: &str, kind: &str) -> Self {
        Self {
            name: name.to_owned(),
            driver: None,
            kind: Some(kind.to_owned()),
            node: None,
            vectors: Vec::new(),
        }
    }

    /// The counters of these interfaces and of the CPUs.
    pub fn wanted(subjects: &[Self]) -> CounterSelection {
        CounterSelection {
            irqs: subjects
                .iter()
                .flat_map(|subject| &subject.vectors)
                .map(|vector| vector.irq)
                .collect(),
            interfaces: subjects
                .iter()
                .map(|subject| subject.name.as_str())
                .chain([LOOPBACK])
                .map(str::to_owned)
                .collect(),
            threads: std::collections::BTreeSet::new(),
            cpus: true,
        }
    }
}

/// A measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measure {
    schema: &'static str,
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InterfaceRates {
    pub name: String,
    pub driver: Option<String>,
    /// The kind of an interface without a device, such as `bond`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `None` when it has none or it is unknown.
    pub node: Option<u32>,
    /// `None` when it has no counters.
    pub traffic: Option<TrafficRates>,
    /// Interrupts of its vectors per second.
    pub interrupts_per_second: f64,
    /// The share of interrupts on local CPUs, 0 to 1; `None` without interrupts, or when the node is unknown.
    pub local: Option<f64>,
    pub vectors: Vec<VectorRates>,
}

/// The traffic of an interface by its own counters. Drivers differ in what they count as bytes; most do not count the
/// frame check sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VectorRates {
    pub irq: u32,
    pub role: Role,
    /// `None` for a control vector.
    pub queue: Option<u32>,
    /// Interrupts, total.
    pub interrupts: u64,
    /// Interrupts per second.
    pub per_second: f64,
    /// The share on local CPUs, 0 to 1.
    pub local: Option<f64>,
    /// Interrupts by CPU.
    pub cpus: Vec<OnCpu>,
}

/// A vector's interrupts on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OnCpu {
    pub cpu: u32,
    pub node: Option<u32>,
    /// Interrupts, total.
    pub interrupts: u64,
    /// Interrupts per second.
    pub per_second: f64,
}

/// The rates of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
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

#[allow(clippy::cast_precision_loss)] // beyond 2^53 the last digits of a rate do not matter
fn float(count: u64) -> f64 {
    count as f64
}

/// Ticks of the kernel as seconds.
fn seconds(ticks: u64) -> f64 {
    float(ticks) / 100.0
}

impl Measure {
    /// Computes rates from the delta of counters.
    pub fn new(topology: &Topology, subjects: &[MeasuredInterface], delta: &Delta) -> Self {
        let time = delta.elapsed.as_secs_f64();
        let per_second = |count: u64| if time > 0.0 { float(count) / time } else { 0.0 };
        let interfaces: Vec<InterfaceRates> = subjects
            .iter()
            .map(|subject| interface(topology, subject, delta, &per_second))
            .collect();
        let mut taken: BTreeMap<u32, u64> = BTreeMap::new();
        for (cpu, count) in delta.interrupts.values().flatten() {
            let sum = taken.entry(*cpu).or_default();
            *sum = sum.saturating_add(*count);
        }
        let cpu = |(&cpu, delta): (&u32, &CpuCounts)| CpuRates {
            cpu,
            node: topology.node_of(cpu),
            interrupts_per_second: per_second(taken.get(&cpu).copied().unwrap_or(0)),
            busy: per_second(delta.busy) / 100.0,
            softirq: per_second(delta.irq.saturating_add(delta.softirq)) / 100.0,
            net_rx_per_second: per_second(delta.net_rx),
            net_tx_per_second: per_second(delta.net_tx),
            packets_per_second: per_second(delta.processed),
            rps_per_second: per_second(delta.rps),
            dropped: delta.dropped,
            squeezed: delta.squeezed,
        };
        Self {
            schema: SCHEMA,
            seconds: time,
            whole: false,
            cpus: delta.cpus.iter().map(cpu).collect(),
            machine: machine(topology, subjects, delta),
            connections: None,
            notes: notes(delta),
            interfaces,
        }
    }
}

fn interface(
    topology: &Topology,
    subject: &MeasuredInterface,
    delta: &Delta,
    per_second: &dyn Fn(u64) -> f64,
) -> InterfaceRates {
    let gbit = |bytes: u64| per_second(bytes) * 8.0 / 1e9;
    let traffic = delta
        .interfaces
        .get(&subject.name)
        .map(|traffic| TrafficRates {
            rx_bytes: traffic.rx_bytes,
            tx_bytes: traffic.tx_bytes,
            rx_gbit_per_second: gbit(traffic.rx_bytes),
            tx_gbit_per_second: gbit(traffic.tx_bytes),
            rx_packets_per_second: per_second(traffic.rx_packets),
            tx_packets_per_second: per_second(traffic.tx_packets),
            rx_dropped: traffic.rx_dropped,
            tx_dropped: traffic.tx_dropped,
        });
    let vector = |vector: &MeasuredVector| {
        let on = delta.interrupts.get(&vector.irq)?;
        let (local, all) = shares(topology, vector, delta);
        let cpus = on.iter().map(|(&cpu, &interrupts)| OnCpu {
            cpu,
            node: topology.node_of(cpu),
            interrupts,
            per_second: per_second(interrupts),
        });
        Some(VectorRates {
            irq: vector.irq,
            role: vector.role,
            queue: vector.queue,
            interrupts: all,
            per_second: per_second(all),
            local: local
                .filter(|_| all > 0)
                .map(|local| float(local) / float(all)),
            cpus: cpus.collect(),
        })
    };
    let (mut local, mut known, mut all) = (0, 0, 0);
    for vector in &subject.vectors {
        let (here, of) = shares(topology, vector, delta);
        all = of.saturating_add(all);
        local = here.unwrap_or(0).saturating_add(local);
        known = here.map_or(0, |_| of).saturating_add(known);
    }
    InterfaceRates {
        name: subject.name.clone(),
        driver: subject.driver.clone(),
        kind: subject.kind.clone(),
        node: subject.node,
        traffic,
        interrupts_per_second: per_second(all),
        local: (known > 0).then(|| float(local) / float(known)),
        vectors: subject.vectors.iter().filter_map(vector).collect(),
    }
}

/// The interrupts of a vector on local CPUs, and all of them; `None` when its node is unknown.
fn shares(topology: &Topology, vector: &MeasuredVector, delta: &Delta) -> (Option<u64>, u64) {
    let Some(on) = delta.interrupts.get(&vector.irq) else {
        return (None, 0);
    };
    let own = vector.node.map(|node| topology.cpus_near(node));
    let here = |own: &CpuSet| {
        total(
            on.iter()
                .filter(|(cpu, _)| own.contains(**cpu))
                .map(|(_, count)| *count),
        )
    };
    (own.as_ref().map(here), total(on.values().copied()))
}

/// The sum of counters, which a damaged file may make as large as it likes.
fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

fn machine(topology: &Topology, subjects: &[MeasuredInterface], delta: &Delta) -> MachineRates {
    let time = delta.elapsed.as_secs_f64();
    let of_interfaces = |counts: fn(&InterfaceCounts) -> [u64; 2]| {
        total(
            subjects
                .iter()
                .filter_map(|subject| delta.interfaces.get(&subject.name))
                .flat_map(counts),
        )
    };
    let of_cpus = |count: fn(&CpuCounts) -> u64| total(delta.cpus.values().map(count));
    let bytes = of_interfaces(|traffic| [traffic.rx_bytes, traffic.tx_bytes]);
    let loopback = delta
        .interfaces
        .get(LOOPBACK)
        .map_or(0, |traffic| traffic.rx_packets);
    let gbit = float(bytes) * 8.0 / 1e9;
    let busy = seconds(of_cpus(|cpu| cpu.busy));
    let softirq = seconds(of_cpus(|cpu| cpu.irq.saturating_add(cpu.softirq)));
    let mut machine = MachineRates {
        gbit_per_second: if time > 0.0 { gbit / time } else { 0.0 },
        busy_cpu_seconds: busy,
        softirq_cpu_seconds: softirq,
        gbit_per_busy_cpu_second: (busy > 0.0).then(|| gbit / busy),
        gbit_per_softirq_cpu_second: (softirq > 0.0).then(|| gbit / softirq),
        dropped: of_cpus(|cpu| cpu.dropped).saturating_add(of_interfaces(|traffic| {
            [traffic.rx_dropped, traffic.tx_dropped]
        })),
        squeezed: of_cpus(|cpu| cpu.squeezed),
        loopback_packets_per_second: if time > 0.0 {
            float(loopback) / time
        } else {
            0.0
        },
        ..MachineRates::default()
    };
    for vector in subjects.iter().flat_map(|subject| &subject.vectors) {
        if let (Some(local), all) = shares(topology, vector, delta) {
            machine.local_interrupts = machine.local_interrupts.saturating_add(local);
            machine.remote_interrupts = machine.remote_interrupts.saturating_add(all - local);
        }
    }
    machine
}

fn notes(delta: &Delta) -> Vec<Note> {
    let mut notes = Vec::new();
    if delta.elapsed < SHORT {
        notes.push(Note::Short);
    }
    if !delta.cpus_changed.is_empty() {
        notes.push(Note::CpusChanged {
            cpus: delta.cpus_changed.clone(),
            left_out: true,
        });
    }
    if !delta.irqs_changed.is_empty() {
        notes.push(Note::VectorsChanged {
            irqs: delta.irqs_changed.iter().copied().collect(),
        });
    }
    if !delta.interfaces_changed.is_empty() {
        let interfaces = delta.interfaces_changed.iter().cloned().collect();
        notes.push(Note::InterfacesChanged { interfaces });
    }
    notes
}
