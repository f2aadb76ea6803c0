//! The record of what nicpin has done about irqbalance.

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
    what: "a record of bans for irqbalance",
    not_done: "irqbalance was not asked to ban IRQs, because that could not be undone",
};

/// What was done about irqbalance, so that it can be undone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IrqbalanceRecord {
    /// The irqbalance that has the bans: process id and start time, since a restarted irqbalance has none.
    process: Option<(i32, u64)>,
    /// The IRQs that nicpin banned.
    pub banned: BTreeSet<u32>,
    /// The planned IRQs with their devices: the same number may be another vector after channels change.
    pub planned: BTreeMap<u32, RecordedIrq>,
    /// Whether nicpin stopped irqbalance's service.
    pub stopped: bool,
}

/// The vector behind an IRQ number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedIrq {
    /// The bus device's address.
    pub device: String,
    /// The handler's name in `/proc/interrupts`.
    pub action: String,
}

impl IrqbalanceRecord {
    /// Reads the record; an empty one if there is none.
    pub fn load(root: &Root) -> Result<Self, StateError> {
        Ok(FILE.load(root)?.unwrap_or_default())
    }

    /// Writes the record; a crash leaves either the old or the new one. An empty record is removed.
    pub(super) fn save(&self, root: &Root) -> Result<(), StateError> {
        if *self == Self::default() {
            FILE.remove(root)
        } else {
            FILE.save(root, self)
        }
    }

    /// Makes this the record of a running irqbalance. Bans of an earlier process are dropped.
    pub(super) fn set_process(&mut self, root: &Root, pid: i32) {
        if !self.is_of(root, pid) {
            self.banned.clear();
        }
        self.process = started(root, pid);
    }

    /// Whether the bans were given to this irqbalance.
    pub(super) fn is_of(&self, root: &Root, pid: i32) -> bool {
        self.process.is_some() && self.process == started(root, pid)
    }

    /// Removes IRQs that belong to another device by now, and returns the banned ones among them.
    pub(super) fn remove_stale(&mut self, machine: &Machine) -> BTreeSet<u32> {
        let interfaces = machine.interfaces.iter();
        let now: BTreeSet<(u32, &str)> = interfaces
            .flat_map(|of| {
                of.vectors
                    .iter()
                    .map(|vector| (vector.irq, &*of.device.address))
            })
            .collect();
        self.planned
            .retain(|irq, was| now.contains(&(*irq, &was.device)));
        let stale = self.banned.iter().copied();
        let stale = stale
            .filter(|irq| !self.planned.contains_key(irq))
            .collect();
        self.banned = &self.banned - &stale;
        stale
    }

    /// Adds the IRQs of a plan. Those of other interfaces stay.
    pub(super) fn add_plan(&mut self, plan: &Plan) {
        for interface in &plan.interfaces {
            let vectors = interface.vectors.iter();
            self.planned.extend(
                vectors
                    .filter(|vector| vector.cpus.is_some())
                    .map(|vector| {
                        let irq = RecordedIrq {
                            device: interface.device.clone(),
                            action: vector.action.clone(),
                        };
                        (vector.irq, irq)
                    }),
            );
        }
    }
}

/// Process id and start time, in the kernel's ticks since boot.
fn started(root: &Root, pid: i32) -> Option<(i32, u64)> {
    Some((pid, tools::irqbalance::started(root, pid)?))
}
