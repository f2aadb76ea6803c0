//! The difference between two samples. Counters may wrap at 2^32; CPUs, vectors and interfaces that are not in both
//! samples, or were replaced under the same name, are left out and listed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::cpuset::CpuSet;
use crate::machine::sample::{Counters, InterfaceCounts, Sample};

/// The delta of each counter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta {
    /// The time between the samples.
    pub elapsed: Duration,
    /// Interrupts by IRQ and CPU; CPUs without any are not listed. An IRQ that was watched is.
    pub interrupts: BTreeMap<u32, BTreeMap<u32, u64>>,
    /// The CPUs that were watched.
    pub cpus: BTreeMap<u32, CpuGrowth>,
    /// What went through the interfaces that were watched.
    pub interfaces: BTreeMap<String, InterfaceCounts>,
    /// The threads that ran.
    pub threads: BTreeMap<u32, ThreadGrowth>,
    /// CPUs that went online or offline meanwhile; they are not counted for that time.
    pub cpus_changed: CpuSet,
    /// IRQs that were freed, allocated or reused meanwhile; they are not counted.
    pub irqs_changed: BTreeSet<u32>,
    /// Interfaces that were removed, added or reset meanwhile; they are not counted.
    pub interfaces_changed: BTreeSet<String>,
}

/// How a thread ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadGrowth {
    /// How often.
    pub runs: u64,
    /// The CPUs on which it had last run when a sample was taken.
    pub on: CpuSet,
}

/// What a CPU did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuGrowth {
    /// Ticks of 1/100 s in any program or in the kernel.
    pub busy: u64,
    /// Ticks in interrupt handlers.
    pub irq: u64,
    /// Ticks in softirqs.
    pub softirq: u64,
    /// `NET_RX` softirqs.
    pub net_rx: u64,
    /// `NET_TX` softirqs.
    pub net_tx: u64,
    /// Packets taken from its backlog and its queues.
    pub processed: u64,
    /// Packets that were dropped because the backlog was full.
    pub dropped: u64,
    /// Polls that ended with work left.
    pub squeezed: u64,
    /// Packets that RPS moved to this CPU.
    pub rps: u64,
}

impl Delta {
    /// For how many seconds was counted.
    pub fn seconds(&self) -> f64 {
        self.elapsed.as_secs_f64()
    }

    /// From one sample to a later one.
    pub fn between(from: &Sample, to: &Sample) -> Self {
        let mut delta = Self {
            elapsed: to.at.saturating_sub(from.at),
            ..Self::default()
        };
        delta.add_interrupts(from, to);
        delta.add_cpus(from, to);
        delta.add_threads(from, to);
        let names: BTreeSet<&String> = from.interfaces.keys().chain(to.interfaces.keys()).collect();
        for name in names {
            let both = from.interfaces.get(name).zip(to.interfaces.get(name));
            match both.and_then(|(from, to)| traffic(from, to)) {
                Some(traffic) => _ = delta.interfaces.insert(name.clone(), traffic),
                None => _ = delta.interfaces_changed.insert(name.clone()),
            }
        }
        delta
    }

    fn add_threads(&mut self, from: &Sample, to: &Sample) {
        for (&pid, now) in &to.threads {
            // A smaller count is that of another thread with this process id.
            let before = from
                .threads
                .get(&pid)
                .map_or(now.switches, |before| before.switches);
            let runs = now.switches.saturating_sub(before);
            if runs > 0 {
                self.threads.insert(
                    pid,
                    ThreadGrowth {
                        runs,
                        on: CpuSet::single(now.cpu),
                    },
                );
            }
        }
    }

    /// Adds what happened next.
    pub fn add(&mut self, next: &Self) {
        for (&pid, thread) in &next.threads {
            let all = self.threads.entry(pid).or_default();
            all.runs = all.runs.saturating_add(thread.runs);
            all.on.add(&thread.on);
        }
        self.elapsed = self.elapsed.saturating_add(next.elapsed);
        for (irq, on) in &next.interrupts {
            let all = self.interrupts.entry(*irq).or_default();
            for (cpu, count) in on {
                let sum = all.entry(*cpu).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
        for (cpu, more) in &next.cpus {
            self.cpus.entry(*cpu).or_default().add(more);
        }
        for (name, more) in &next.interfaces {
            let all = self.interfaces.entry(name.clone()).or_default();
            *all = all.with(*more, u64::saturating_add);
        }
        self.cpus_changed = self.cpus_changed.union(&next.cpus_changed);
        self.irqs_changed.extend(&next.irqs_changed);
        self.interfaces_changed
            .extend(next.interfaces_changed.iter().cloned());
    }

    fn add_interrupts(&mut self, from: &Sample, to: &Sample) {
        let (before, after) = (&from.interrupts, &to.interrupts);
        let column: BTreeMap<u32, usize> = before.cpus.iter().copied().zip(0..).collect();
        let set = |cpus: &[u32]| cpus.iter().copied().collect::<CpuSet>();
        self.note_cpus(&set(&before.cpus), &set(&after.cpus));
        let irqs: BTreeSet<u32> = before
            .rows
            .keys()
            .chain(after.rows.keys())
            .copied()
            .collect();
        for irq in irqs {
            let same = before
                .rows
                .get(&irq)
                .zip(after.rows.get(&irq))
                .filter(|(a, b)| a.whose == b.whose);
            let on = same.and_then(|(a, b)| {
                let both = after.cpus.iter().zip(&b.counts);
                let both = both
                    .filter_map(|(cpu, now)| Some((*cpu, *a.counts.get(*column.get(cpu)?)?, *now)));
                both.map(|(cpu, was, now)| Some((cpu, u64::from(delta(was, now)?))))
                    .collect::<Option<BTreeMap<u32, u64>>>()
            });
            match on {
                Some(mut on) => {
                    on.retain(|_, count| *count > 0);
                    self.interrupts.insert(irq, on);
                }
                None => _ = self.irqs_changed.insert(irq),
            }
        }
    }

    fn add_cpus(&mut self, from: &Sample, to: &Sample) {
        let keys = |sample: &Sample| sample.times.keys().copied().collect::<CpuSet>();
        self.note_cpus(&keys(from), &keys(to));
        // A CPU that is offline at either end still has rows in /proc/softirqs.
        let has_cpu =
            |sample: &Sample, cpu| sample.times.is_empty() || sample.times.contains_key(&cpu);
        let is_online = |cpu| has_cpu(from, cpu) && has_cpu(to, cpu);
        for (cpu, (was, now)) in both(&from.times, &to.times) {
            let on = self.cpus.entry(cpu).or_default();
            on.busy = now.busy.saturating_sub(was.busy);
            on.irq = now.irq.saturating_sub(was.irq);
            on.softirq = now.softirq.saturating_sub(was.softirq);
        }
        let delta = |was, now| u64::from(delta(was, now).unwrap_or(0));
        for (cpu, (was, now)) in
            both(&from.softirqs, &to.softirqs).filter(|(cpu, _)| is_online(*cpu))
        {
            let on = self.cpus.entry(cpu).or_default();
            on.net_rx = delta(was.net_rx, now.net_rx);
            on.net_tx = delta(was.net_tx, now.net_tx);
        }
        for (cpu, (was, now)) in both(&from.softnet, &to.softnet).filter(|(cpu, _)| is_online(*cpu))
        {
            let on = self.cpus.entry(cpu).or_default();
            on.processed = delta(was.processed, now.processed);
            on.dropped = delta(was.dropped, now.dropped);
            on.squeezed = delta(was.squeezed, now.squeezed);
            on.rps = delta(was.rps, now.rps);
        }
    }

    fn note_cpus(&mut self, before: &CpuSet, after: &CpuSet) {
        let changed = before.difference(after).union(&after.difference(before));
        self.cpus_changed = self.cpus_changed.union(&changed);
    }
}

impl CpuGrowth {
    fn add(&mut self, more: &Self) {
        for (sum, more) in [
            (&mut self.busy, more.busy),
            (&mut self.irq, more.irq),
            (&mut self.softirq, more.softirq),
            (&mut self.net_rx, more.net_rx),
            (&mut self.net_tx, more.net_tx),
            (&mut self.processed, more.processed),
            (&mut self.dropped, more.dropped),
            (&mut self.squeezed, more.squeezed),
            (&mut self.rps, more.rps),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

impl InterfaceCounts {
    /// Each counter of one with the same of another.
    fn with(self, other: Self, both: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            rx_bytes: both(self.rx_bytes, other.rx_bytes),
            tx_bytes: both(self.tx_bytes, other.tx_bytes),
            rx_packets: both(self.rx_packets, other.rx_packets),
            tx_packets: both(self.tx_packets, other.tx_packets),
            rx_dropped: both(self.rx_dropped, other.rx_dropped),
            tx_dropped: both(self.tx_dropped, other.tx_dropped),
        }
    }
}

/// The CPUs that both have.
fn both<'a, T>(
    from: &'a BTreeMap<u32, T>,
    to: &'a BTreeMap<u32, T>,
) -> impl Iterator<Item = (u32, (&'a T, &'a T))> {
    from.iter()
        .filter_map(|(cpu, was)| Some((*cpu, (was, to.get(cpu)?))))
}

/// How much a counter of 32 bits grew. More than half of its range is taken for a counter that began anew: at
/// two million interrupts a second that would be a quarter of an hour between two samples.
fn delta(was: u32, now: u32) -> Option<u32> {
    let delta = now.wrapping_sub(was);
    (delta < 1 << 31).then_some(delta)
}

/// `None` for an interface that is another one, or that counts anew.
fn traffic(from: &Counters, to: &Counters) -> Option<InterfaceCounts> {
    if from.index != to.index {
        return None;
    }
    let anew = std::cell::Cell::new(false);
    let traffic = to.values.with(from.values, |now, was| {
        // Some drivers count in 32 bits.
        let wrapped = || delta(u32::try_from(was).ok()?, u32::try_from(now).ok()?).map(u64::from);
        now.checked_sub(was).or_else(wrapped).unwrap_or_else(|| {
            anew.set(true);
            0
        })
    });
    (!anew.get()).then_some(traffic)
}
