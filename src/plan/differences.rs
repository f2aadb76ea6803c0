//! The writes that a plan takes on the machine as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::machine::{Interface, Machine, Setting, WriteKind};
use crate::plan::data::PlannedInterface;
use crate::plan::write::{Planned, Target, Write};

/// Collects a write for each setting that differs, and counts the others.
#[derive(Default)]
pub(crate) struct WriteList {
    /// Grouped by kind, the order in which they are performed.
    writes: BTreeMap<WriteKind, Vec<Write>>,
    unchanged: usize,
}

impl WriteList {
    /// Adds the settings of an interface. Vectors and queues that it does not have are left out.
    pub(crate) fn gather(
        &mut self,
        machine: &Machine,
        interface: &Interface,
        plan: &PlannedInterface,
    ) {
        let name: Arc<str> = interface.name.as_str().into();
        let now: BTreeMap<_, _> = interface
            .settings()
            .map(|setting| ((setting.kind, setting.number), setting))
            .collect();
        for planned in plan.wanted() {
            if let Some(setting) = now.get(&(planned.kind, planned.number)) {
                self.add(machine, setting, &planned, &name);
            }
        }
    }

    /// Adds the number of entries of the machine's flow table.
    pub(crate) fn flow_entries(&mut self, machine: &Machine, entries: u32, why: &Arc<str>) {
        for setting in machine.own_settings() {
            let planned = Planned {
                kind: setting.kind,
                number: setting.number,
                target: Target::Count(entries),
                why: Some(why),
            };
            self.add(machine, &setting, &planned, &"".into());
        }
    }

    /// The writes in the order in which they are performed, and the number of settings that need none.
    pub(crate) fn in_order(self) -> (Vec<Write>, usize) {
        let mut writes = Vec::with_capacity(self.writes.values().map(Vec::len).sum());
        for mut of_kind in self.writes.into_values() {
            writes.append(&mut of_kind);
        }
        (writes, self.unchanged)
    }

    /// Adds a write, or counts a setting that is as planned.
    fn add(
        &mut self,
        machine: &Machine,
        setting: &Setting<'_>,
        planned: &Planned<'_>,
        interface: &Arc<str>,
    ) {
        let possible = machine.topology.possible;
        let Some(value) = planned.target.to_write(setting.value, possible) else {
            self.unchanged += 1;
            return;
        };
        let kind = setting.kind;
        self.writes.entry(kind).or_default().push(Write {
            kind,
            path: setting.path(),
            value,
            current: setting.text(),
            interface: Arc::clone(interface),
            why: planned.why(),
        });
    }
}
