//! Where interrupts arrived after an apply, by the kernel's counters: a mask that reads back as written may take effect
//! only at the next interrupt, and an idle queue proves nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::cpuset::{CpuSet, Inserted as _};
use crate::machine::Counts;
use crate::machine::files::affinity_file;
use crate::machine::sample::growth;
use crate::read::files::{read_affinity, read_effective};
use crate::read::interrupts::counts;
use crate::report::applied::Evidence::{Elsewhere, Gone, MovedAway, NoTraffic, Proven};
use crate::report::applied::{Applied, VectorProof};
use crate::root::{Result, Root};

#[derive(Debug)]
pub struct Proof {
    watched: Vec<VectorProof>,
    irqs: BTreeSet<u32>,
    last: Counts,
}

impl Proof {
    /// Takes the first sample. Idle vectors get no interrupts and are left out.
    pub fn begin(root: &Root, done: &Applied) -> Result<Self> {
        let fallbacks: BTreeMap<&str, &str> = (done.results.iter())
            .filter_map(|written| Some((written.path.as_str(), written.fallback.as_deref()?)))
            .inserted();
        let mut watched = Vec::new();
        for interface in &done.plan.interfaces {
            for vector in interface.vectors.iter().filter(|vector| vector.is_active()) {
                let cpus = fallbacks
                    .get(&*affinity_file(vector.irq))
                    .and_then(|mask| CpuSet::parse_kernel_mask(mask).ok())
                    .or_else(|| vector.cpus.clone());
                watched.extend(cpus.map(|cpus| VectorProof {
                    interface: interface.name.clone(),
                    role: vector.role,
                    queue: vector.queue,
                    irq: vector.irq,
                    cpus,
                    verdict: NoTraffic,
                    interrupts: 0,
                    others: CpuSet::new(),
                }));
            }
        }
        let irqs = watched.iter().map(|vector| vector.irq).collect();
        let last = counts(root, &irqs)?;
        Ok(Self {
            watched,
            irqs,
            last,
        })
    }

    /// Returns whether every vector is proven.
    pub fn look(&mut self, root: &Root) -> Result<bool> {
        let now = counts(root, &self.irqs)?;
        for vector in &mut self.watched {
            vector.look(root, &self.last, &now)?;
        }
        self.last = now;
        Ok(self.watched.iter().all(|vector| vector.verdict == Proven))
    }

    /// Also judges whether each affinity is still as written.
    pub fn finish(mut self, root: &Root) -> Result<Vec<VectorProof>> {
        for vector in &mut self.watched {
            let path = affinity_file(vector.irq);
            let affinity = read_affinity(root, &path)?.map(|file| {
                CpuSet::parse_kernel_mask(&file.text)
                    .map_err(|reason| root.content_error(&path, reason))
            });
            match affinity.transpose()? {
                Some(cpus) if cpus == vector.cpus => {}
                // A vector that could not be moved; its interrupts arrive where they did before.
                Some(_) if vector.verdict == Elsewhere => {}
                Some(_) => vector.verdict = MovedAway,
                None => vector.verdict = Gone,
            }
        }
        Ok(self.watched)
    }
}

impl VectorProof {
    fn look(&mut self, root: &Root, last: &Counts, now: &Counts) -> Result<()> {
        let (Some(before), Some(after)) = (last.rows.get(&self.irq), now.rows.get(&self.irq))
        else {
            return Ok(());
        };
        if before.whose != after.whose {
            return Ok(());
        }
        let before: BTreeMap<&u32, &u32> = last.cpus.iter().zip(&before.counts).inserted();
        let (mut on_planned, mut others) = (0, CpuSet::new());
        for (&cpu, &count) in now.cpus.iter().zip(&after.counts) {
            // In /proc/interrupts, a CPU that came online since goes on from an unknown count.
            let before = before.get(&cpu).map(|before| u64::from(**before));
            match before.and_then(|before| growth(before, count.into())) {
                None | Some(0) => {}
                Some(grown) if self.cpus.contains(cpu) => on_planned += grown,
                Some(_) => others.insert(cpu),
            }
        }
        self.interrupts += on_planned;
        self.others = self.others.union(&others);
        self.verdict = match (on_planned > 0, others.is_empty()) {
            (false, true) => return Ok(()),
            (true, true) => Proven,
            // The IRQ moved to the planned CPUs between the samples.
            (true, false) if self.is_effective_as_planned(root)? => Proven,
            (_, false) => Elsewhere,
        };
        Ok(())
    }

    fn is_effective_as_planned(&self, root: &Root) -> Result<bool> {
        let effective = read_effective(root, self.irq)?;
        Ok(effective.is_some_and(|effective| effective.is_subset(&self.cpus)))
    }
}
