//! Samples of the kernel's counters, and the difference between two. Counters may wrap at 2^32. CPUs, vectors and
//! interfaces that are in one sample only, or were replaced under the same name, are listed and not counted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use itertools::{Either, Itertools as _};

use crate::cpuset::{CpuSet, Inserted as _};
use crate::machine::netdev::Direction;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CounterSelection {
    pub irqs: BTreeSet<u32>,
    pub interfaces: BTreeSet<String>,
    pub threads: BTreeSet<u32>,
    pub queues: BTreeSet<String>,
    pub cpus: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// Since a moment that all compared samples share.
    pub at: Duration,
    pub interrupts: Counts,
    /// Online CPUs.
    pub cpus: BTreeMap<u32, CpuCounts>,
    pub interfaces: BTreeMap<String, Counters>,
    pub threads: BTreeMap<u32, ThreadCounts>,
    /// Packets. Read before `interrupts`: a packet's interrupt precedes it.
    pub queues: BTreeMap<QueueOf, u64>,
}

pub type QueueOf = (String, Direction, u32);

/// Steps in which packets of a queue were counted, and how many of them each IRQ fired in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Together {
    pub steps: u64,
    pub fired: BTreeMap<u32, u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadCounts {
    pub switches: u64,
    pub cpu: u32,
}

/// An interface's counters (`/sys/class/net/INTERFACE/statistics`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// `ifindex`: another number is another interface of the same name.
    pub index: u32,
    pub values: InterfaceCounts,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InterfaceCounts {
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_packets: u64,
    pub tx_packets: u64,
    /// Received and dropped, for lack of room in the device or in the kernel.
    pub rx_dropped: u64,
    pub tx_dropped: u64,
}

/// Counts since boot or between two samples; 0 if not read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuCounts {
    /// Ticks of 1/100 s (`USER_HZ`, the same on every architecture with NUMA nodes): all but idle, waiting for I/O and
    /// stolen by a hypervisor (`/proc/stat`, `Documentation/filesystems/proc.rst`).
    pub busy: u64,
    pub irq: u64,
    pub softirq: u64,
    /// `NET_RX` softirqs: polls of receive queues.
    pub net_rx: u64,
    /// `NET_TX` softirqs: completions and queues that were kicked.
    pub net_tx: u64,
    /// Packets taken from the backlog and the queues (`/proc/net/softnet_stat`). The kernel counts these, and softirqs,
    /// in 32 bits.
    pub processed: u64,
    /// Packets dropped because the backlog was full.
    pub dropped: u64,
    /// Polls that ran out of budget or time with work left.
    pub squeezed: u64,
    /// How often another CPU handed packets over by RPS.
    pub rps: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// The online CPUs, in the order of their columns.
    pub cpus: Vec<u32>,
    pub rows: BTreeMap<u32, CountRow>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountRow {
    /// One for each of [`Counts::cpus`], in 32 bits, which wrap.
    pub counts: Vec<u32>,
    /// The text after the counts, chip and handlers: another text is another use of the number.
    pub whose: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta {
    pub elapsed: Duration,
    /// By IRQ and CPU, without CPUs that have none; all watched IRQs are listed.
    pub interrupts: BTreeMap<u32, BTreeMap<u32, u64>>,
    pub cpus: BTreeMap<u32, CpuCounts>,
    pub interfaces: BTreeMap<String, InterfaceCounts>,
    pub threads: BTreeMap<u32, ThreadGrowth>,
    pub queues: BTreeMap<QueueOf, Together>,
    /// Went online or offline; not counted.
    pub cpus_changed: CpuSet,
    /// Freed, allocated or reused; not counted.
    pub irqs_changed: BTreeSet<u32>,
    /// Removed, added or reset; not counted.
    pub interfaces_changed: BTreeSet<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadGrowth {
    pub runs: u64,
    pub on: CpuSet,
}

impl Delta {
    pub fn seconds(&self) -> f64 {
        self.elapsed.as_secs_f64()
    }

    pub fn between(from: &Sample, to: &Sample) -> Self {
        let column: BTreeMap<u32, usize> = from.interrupts.cpus.iter().copied().zip(0..).inserted();
        let fired = |was: &CountRow, now: &CountRow| {
            let mut on = BTreeMap::new();
            for (cpu, now) in to.interrupts.cpus.iter().zip(&now.counts) {
                if let Some(&was) = column.get(cpu).and_then(|at| was.counts.get(*at)) {
                    on.insert(*cpu, growth(was.into(), (*now).into())?);
                }
            }
            on.retain(|_, count| *count > 0);
            (was.whose == now.whose).then_some(on)
        };
        let (interrupts, irqs_changed) = compare(&from.interrupts.rows, &to.interrupts.rows, fired);
        let traffic = |was: &Counters, now: &Counters| {
            let (values, go_on) = now.values.since(was.values);
            (go_on && was.index == now.index).then_some(values)
        };
        let (interfaces, interfaces_changed) = compare(&from.interfaces, &to.interfaces, traffic);
        let (cpus, cpus_changed) = compare(&from.cpus, &to.cpus, |was, now| {
            let (grown, _) = now.since(*was);
            Some(grown)
        });
        let [before, after] =
            [from, to].map(|sample| sample.interrupts.cpus.iter().copied().collect::<CpuSet>());
        let columns_changed = before.difference(&after).union(&after.difference(&before));
        let runs = |(&pid, now): (&u32, &ThreadCounts)| {
            // A smaller count is that of another thread with this process id.
            let runs = (now.switches).saturating_sub(from.threads.get(&pid)?.switches);
            (runs > 0).then_some((
                pid,
                ThreadGrowth {
                    runs,
                    on: CpuSet::single(now.cpu),
                },
            ))
        };
        let fired = interrupts.iter().filter(|(_, on)| !on.is_empty());
        let fired: BTreeMap<u32, u64> = fired.map(|(&irq, _)| (irq, 1)).inserted();
        let moved = to.queues.iter().filter(|(queue, now)| {
            let was = from.queues.get(*queue);
            was.is_some_and(|was| growth(*was, **now).is_some_and(|grown| grown > 0))
        });
        let together = |(queue, _): (&QueueOf, &u64)| {
            let fired = fired.clone();
            (queue.clone(), Together { steps: 1, fired })
        };
        Self {
            elapsed: to.at.saturating_sub(from.at),
            queues: moved.map(together).inserted(),
            interrupts,
            cpus,
            interfaces,
            threads: to.threads.iter().filter_map(runs).inserted(),
            cpus_changed: columns_changed.iter().chain(cpus_changed).collect(),
            irqs_changed,
            interfaces_changed,
        }
    }

    pub fn add(&mut self, next: &Self) {
        self.elapsed = self.elapsed.saturating_add(next.elapsed);
        for (&pid, thread) in &next.threads {
            let all = self.threads.entry(pid).or_default();
            all.runs = all.runs.saturating_add(thread.runs);
            all.on.add(&thread.on);
        }
        for (irq, on) in &next.interrupts {
            let all = self.interrupts.entry(*irq).or_default();
            for (cpu, count) in on {
                let sum = all.entry(*cpu).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
        for (queue, more) in &next.queues {
            let all = self.queues.entry(queue.clone()).or_default();
            all.steps += more.steps;
            for (&irq, steps) in &more.fired {
                *all.fired.entry(irq).or_default() += steps;
            }
        }
        for (cpu, more) in &next.cpus {
            self.cpus.entry(*cpu).or_default().add(*more);
        }
        for (name, more) in &next.interfaces {
            self.interfaces.entry(name.clone()).or_default().add(*more);
        }
        self.cpus_changed.add(&next.cpus_changed);
        self.irqs_changed.extend(&next.irqs_changed);
        self.interfaces_changed
            .extend(next.interfaces_changed.iter().cloned());
        // A count for part of the time would give too low a rate.
        let is_gone = |cpu: &u32| self.cpus_changed.contains(*cpu);
        self.cpus.retain(|cpu, _| !is_gone(cpu));
        for on in self.interrupts.values_mut() {
            on.retain(|cpu, _| !is_gone(cpu));
        }
        self.interrupts
            .retain(|irq, _| !self.irqs_changed.contains(irq));
        self.interfaces
            .retain(|name, _| !self.interfaces_changed.contains(name));
    }
}

pub(crate) trait Row: Copy {
    fn all(&mut self) -> Vec<&mut u64>;

    fn add(&mut self, mut more: Self) {
        for (sum, more) in self.all().into_iter().zip(more.all()) {
            *sum = sum.saturating_add(*more);
        }
    }

    /// Growth of each counter; `false` if one began anew, so that none counts.
    fn since(mut self, mut before: Self) -> (Self, bool) {
        let mut go_on = true;
        for (count, was) in self.all().into_iter().zip(before.all()) {
            let grown = growth(*was, *count);
            go_on &= grown.is_some();
            *count = grown.unwrap_or(0);
        }
        (self, go_on)
    }
}

impl Row for CpuCounts {
    fn all(&mut self) -> Vec<&mut u64> {
        vec![
            &mut self.busy,
            &mut self.irq,
            &mut self.softirq,
            &mut self.net_rx,
            &mut self.net_tx,
            &mut self.processed,
            &mut self.dropped,
            &mut self.squeezed,
            &mut self.rps,
        ]
    }
}

impl Row for InterfaceCounts {
    fn all(&mut self) -> Vec<&mut u64> {
        vec![
            &mut self.rx_bytes,
            &mut self.tx_bytes,
            &mut self.rx_packets,
            &mut self.tx_packets,
            &mut self.rx_dropped,
            &mut self.tx_dropped,
        ]
    }
}

/// Differences of rows that are in both, and the keys of all others and of those that cannot be compared.
fn compare<K: Ord + Clone, V, G>(
    from: &BTreeMap<K, V>,
    to: &BTreeMap<K, V>,
    grown: impl Fn(&V, &V) -> Option<G>,
) -> (BTreeMap<K, G>, BTreeSet<K>) {
    from.keys()
        .merge(to.keys())
        .dedup()
        .cloned()
        .partition_map(|key| {
            match from
                .get(&key)
                .zip(to.get(&key))
                .and_then(|(was, now)| grown(was, now))
            {
                Some(grown) => Either::Left((key, grown)),
                None => Either::Right(key),
            }
        })
}

/// The counter may have wrapped at 32 bits. More than half of the range means that it began anew: at two million
/// interrupts a second, a quarter of an hour between samples.
pub(crate) fn growth(was: u64, now: u64) -> Option<u64> {
    now.checked_sub(was).or_else(|| {
        let grown = u32::try_from(now).ok()?.wrapping_sub(was.try_into().ok()?);
        (grown < 1 << 31).then_some(grown.into())
    })
}
