//! What nicpin has done about irqbalance, as it is kept.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::apply::state::{StateError, StateFile};
use crate::machine::Machine;
use crate::plan::Plan;
use crate::read::tools;
use crate::root::Root;

const FILE: StateFile = StateFile {
    name: "irqbalance.json",
    schema: "nicpin.irqbalance/1",
    what: "a record of what irqbalance was told",
    not_done: "irqbalance was not told, since that could not be undone",
};

/// What was done, so that it can be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IrqbalanceRecord {
    schema: String,
    /// The irqbalance that was told: process id and start time. One that was started later knows of nothing.
    told: Option<(i32, u64)>,
    /// IRQs that nicpin added to those that it leaves alone.
    pub banned: BTreeSet<u32>,
    /// Planned IRQs and what they are: a number alone is another vector's after the next boot.
    pub planned: BTreeMap<u32, RecordedIrq>,
    /// Whether nicpin stopped its service.
    pub stopped: bool,
}

/// A vector, by what stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedIrq {
    /// The bus device.
    pub device: String,
    /// The name of its handler.
    pub action: String,
}

impl Default for IrqbalanceRecord {
    fn default() -> Self {
        Self {
            schema: FILE.schema.to_owned(),
            told: None,
            banned: BTreeSet::new(),
            planned: BTreeMap::new(),
            stopped: false,
        }
    }
}

impl IrqbalanceRecord {
    /// Reads it; nothing done where there is none.
    pub fn load(root: &Root) -> Result<Self, StateError> {
        Ok(FILE.load(root)?.unwrap_or_default())
    }

    /// Writes it so that a crash leaves the old or the new one; nothing done leaves no file.
    pub(super) fn save(&self, root: &Root) -> Result<(), StateError> {
        if *self == Self::default() { FILE.remove(root) } else { FILE.save(root, self) }
    }

    /// From now on it is about this irqbalance: one that was told is another if it was started at another time.
    pub(super) fn is_about(&mut self, root: &Root, pid: i32) {
        if !self.knows(root, pid) {
            self.banned.clear();
        }
        self.told = started(root, pid);
    }

    /// Whether this irqbalance is the one that was told.
    pub(super) fn knows(&self, root: &Root, pid: i32) -> bool {
        self.told.is_some() && self.told == started(root, pid)
    }

    /// Forgets IRQs that are no longer what they were; those of them that irqbalance was told to leave alone.
    pub(super) fn forget_stale(&mut self, machine: &Machine) -> BTreeSet<u32> {
        let mut now: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
        for interface in &machine.interfaces {
            for vector in &interface.vectors {
                now.entry(vector.irq).or_default().insert(&interface.device.address);
            }
        }
        let stays = |irq: &u32, was: &RecordedIrq| {
            now.get(irq).is_some_and(|devices| devices.contains(was.device.as_str()))
        };
        self.planned.retain(|irq, was| stays(irq, was));
        let stale: BTreeSet<u32> =
            self.banned.iter().filter(|irq| !self.planned.contains_key(irq)).copied().collect();
        self.banned.retain(|irq| !stale.contains(irq));
        stale
    }

    /// Adds the IRQs of a plan. Interfaces that it is not about keep theirs.
    pub(super) fn plan(&mut self, plan: &Plan) {
        for interface in &plan.interfaces {
            for vector in interface.vectors.iter().filter(|vector| vector.cpus.is_some()) {
                let irq = RecordedIrq { device: interface.device.clone(), action: vector.action.clone() };
                self.planned.insert(vector.irq, irq);
            }
        }
    }
}

/// Process id and start time, in the kernel's ticks since boot.
fn started(root: &Root, pid: i32) -> Option<(i32, u64)> {
    let processes = tools::processes(root, &["irqbalance"]).ok()?;
    processes.iter().find(|process| process.pid == pid).map(|process| (pid, process.starttime))
}
