//! The planned value of each setting, and the writes that it takes on the machine now.

use std::borrow::Cow;
use std::sync::Arc;

use foldhash::HashMap;

use crate::cpuset::{CpuSet, MaskWidth};
use crate::machine::setting::{Place, Value, place};
use crate::machine::{Machine, Setting, SettingKind};
use crate::plan::data::PlannedInterface;
use crate::plan::write::Write;

/// A setting for which the plan has a value.
#[derive(Debug, Clone)]
pub struct WantedSetting<'a> {
    /// Empty for a setting of the whole machine.
    pub interface: &'a str,
    pub kind: SettingKind,
    /// The number of the [`Setting`](crate::machine::Setting).
    pub number: u32,
    pub value: Value<'a>,
    pub(crate) why: &'a str,
}

impl<'a> WantedSetting<'a> {
    pub(crate) fn place(&self) -> Place<'a> {
        place(self.kind, self.number, self.interface)
    }

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
    #[doc(hidden)]
    pub fn wanted<'a>(&'a self) -> impl Iterator<Item = WantedSetting<'a>> {
        use SettingKind::{NapiThread, Ntuple, Rps, RpsFlow, Rss, Vector, Xps, XpsRxqs};
        use Value::{Count, Mask, On, Spread};
        let mut all = Vec::new();
        let mut add = |kind, number, value: Option<Value<'a>>, why: &'a str| {
            all.extend(value.map(|value| WantedSetting {
                interface: &self.name,
                kind,
                number,
                value,
                why,
            }));
        };
        let cpus = |cpus: &'a Option<CpuSet>| cpus.as_ref().map(|cpus| Mask(Cow::Borrowed(cpus)));
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
            add(RpsFlow, queue.queue, flows, "its share of the flow table");
        }
        for queue in &self.tx_queues {
            let rxqs = cpus(&queue.xps_rxqs);
            add(Xps, queue.queue, cpus(&queue.xps_cpus), &queue.why);
            add(XpsRxqs, queue.queue, rxqs, "flows of this receive queue");
        }
        add(Ntuple, 0, self.ntuple.map(On), "accelerated RFS");
        all.into_iter()
    }

    pub(crate) fn cpus_mut(&mut self) -> impl Iterator<Item = &mut Option<CpuSet>> {
        let vectors = self.vectors.iter_mut().map(|vector| &mut vector.cpus);
        let threads = self.threads.iter_mut().map(|thread| &mut thread.cpus);
        let rx = self.rx_queues.iter_mut().map(|rx| &mut rx.rps_cpus);
        let tx = self.tx_queues.iter_mut().map(|tx| &mut tx.xps_cpus);
        vectors.chain(threads).chain(rx).chain(tx)
    }
}

/// The writes in the order of execution, and the number of settings that need none; settings that the machine lacks are
/// left out. `flow_entries`: the size of the flow table, and the reason.
pub(crate) fn writes<'a>(
    machine: &'a Machine,
    wanted: impl Iterator<Item = WantedSetting<'a>>,
    flow_entries: Option<(u32, &'a str)>,
) -> (Vec<Write>, usize) {
    let now: HashMap<_, _> = machine
        .settings()
        .map(|setting| (setting.place(), setting))
        .collect();
    let flow_table = flow_entries.map(|(entries, why)| WantedSetting {
        interface: "",
        kind: SettingKind::Sysctl,
        number: 0,
        value: Value::Count(entries),
        why,
    });
    let (mut writes, mut unchanged) = (Vec::new(), 0);
    let [mut owner, mut reason] = [""; 2].map(Arc::from);
    for planned in wanted.chain(flow_table) {
        let Some(setting) = now.get(&planned.place()) else {
            continue;
        };
        let possible = machine.topology.possible;
        let is_held = planned.value.is_same(&setting.value);
        let value = (!is_held).then(|| planned.to_write(setting, possible));
        match value.flatten() {
            None => unchanged += 1,
            Some(value) => writes.push(Write {
                kind: planned.kind,
                path: setting.path(),
                value,
                current: setting.text(),
                interface: share_text(&mut owner, planned.interface),
                number: planned.number,
                why: share_text(&mut reason, planned.why),
            }),
        }
    }
    writes.sort_by_key(|write| write.kind);
    (writes, unchanged)
}

fn share_text(last: &mut Arc<str>, text: &str) -> Arc<str> {
    if **last != *text {
        *last = text.into();
    }
    Arc::clone(last)
}
