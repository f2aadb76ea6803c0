//! The planned value of each setting, and the writes that it takes on the machine now.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cpuset::{CpuSet, Inserted as _, MaskWidth};
use crate::kinds::SettingKind::{
    NapiThread, Ntuple, Rps, RpsFlow, Rss, Sysctl, Vector, Xps, XpsRxqs,
};
use crate::kinds::Value::{self, Count, On, Spread};
use crate::kinds::{Place, Setting, SettingKind, place};
use crate::machine::Machine;
use crate::plan::data::{Plan, PlannedInterface};
use crate::plan::why::{Cause, Why};
use crate::plan::write::Write;

/// A planned value, and the reason.
#[derive(Debug, Clone)]
pub(crate) struct Wanted<'a> {
    /// Empty for a setting of the whole machine.
    pub(crate) interface: &'a str,
    pub(crate) value: Value<'a>,
    why: &'a Why,
}

impl Wanted<'_> {
    /// `None` if the setting cannot have the value. `possible`: the machine's `nr_cpu_ids`.
    fn to_write(&self, setting: &Setting<'_>, possible: u32) -> Option<String> {
        setting.text_of(&self.value).or_else(|| match &self.value {
            // A file that is too narrow for its planned CPU comes from a damaged copy.
            Value::Mask(cpus) => cpus.to_mask(MaskWidth::for_cpus(possible)),
            _ => None,
        })
    }
}

impl PlannedInterface {
    pub(crate) fn wanted<'a>(&'a self) -> impl Iterator<Item = (Place<'a>, Wanted<'a>)> {
        const FLOW_SHARE: &Why = &Why::because(Cause::FlowShare);
        const OF_RECEIVE_QUEUE: &Why = &Why::because(Cause::OfReceiveQueue);
        const ACCELERATED_RFS: &Why = &Why::because(Cause::AcceleratedRfs);
        let mut all = Vec::new();
        let mut add = |kind, number, value, why| {
            all.extend(wanted(&self.name, kind, number, value, why));
        };
        let cpus = |cpus: &'a Option<CpuSet>| cpus.as_ref().map(Value::from);
        for vector in &self.vectors {
            add(Vector, vector.irq, cpus(&vector.cpus), &vector.why);
        }
        if let Some(rss) = &self.rss {
            add(Rss, 0, rss.queues.as_ref().map(Spread), &rss.why);
        }
        for thread in &self.threads {
            add(NapiThread, thread.pid, cpus(&thread.cpus), &thread.why);
        }
        for queue in &self.rx_queues {
            let flows = queue.rps_flow_cnt.map(Count);
            add(Rps, queue.queue, cpus(&queue.rps_cpus), &queue.why);
            add(RpsFlow, queue.queue, flows, FLOW_SHARE);
        }
        for queue in &self.tx_queues {
            let rxqs = cpus(&queue.xps_rxqs);
            add(Xps, queue.queue, cpus(&queue.xps_cpus), &queue.why);
            add(XpsRxqs, queue.queue, rxqs, OF_RECEIVE_QUEUE);
        }
        add(Ntuple, 0, self.ntuple.map(On), ACCELERATED_RFS);
        all.into_iter()
    }
}

impl Plan {
    /// The planned state: a value for each setting that the plan concerns, changed or not.
    pub(crate) fn wanted(&self) -> BTreeMap<Place<'_>, Wanted<'_>> {
        const FLOW_TABLE: &Why = &Why::because(Cause::FlowTable);
        let interfaces = self.interfaces.iter().flat_map(PlannedInterface::wanted);
        let flow_table = wanted("", Sysctl, 0, self.flow_entries.map(Count), FLOW_TABLE);
        interfaces.chain(flow_table).inserted()
    }

    /// Lists the writes in the order of execution, and counts the settings that need none; those that the machine lacks
    /// are left out.
    pub(crate) fn compare(&mut self, machine: &Machine) {
        let wanted = self.wanted();
        let (mut writes, mut unchanged) = (Vec::new(), 0);
        let mut owner: Arc<str> = "".into();
        for setting in machine.settings() {
            // An IRQ that interfaces share is planned for one of them.
            let wanted = wanted.get(&setting.place());
            let Some(wanted) = wanted.filter(|wanted| wanted.interface == setting.interface())
            else {
                continue;
            };
            let possible = machine.topology.possible;
            let is_held = wanted.value.is_same(&setting.held.value);
            let Some(value) = (!is_held)
                .then(|| wanted.to_write(&setting, possible))
                .flatten()
            else {
                unchanged += 1;
                continue;
            };
            if *owner != *wanted.interface {
                owner = wanted.interface.into();
            }
            writes.push(Write {
                kind: setting.kind,
                path: setting.path(),
                value,
                current: setting.text(),
                interface: Arc::clone(&owner),
                number: setting.number,
                why: wanted.why.clone(),
            });
        }
        writes.sort_by_key(|write| write.kind);
        (self.writes, self.unchanged) = (writes, unchanged);
    }
}

fn wanted<'a>(
    interface: &'a str,
    kind: SettingKind,
    number: u32,
    value: Option<Value<'a>>,
    why: &'a Why,
) -> Option<(Place<'a>, Wanted<'a>)> {
    let wanted = |value| Wanted {
        interface,
        value,
        why,
    };
    Some((place(kind, number, interface), wanted(value?)))
}
