//! The writes that a plan takes on the machine as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cpuset::{CpuSet, MaskWidth};
use crate::machine::paths::{
    FLOW_ENTRIES, affinity_file, features_file, on_or_off, queue_file, rss_file, thread_directory,
};
use crate::machine::{Interface, Machine, MaskFile};
use crate::plan::data::PlannedInterface;
use crate::plan::write::{Write, WriteKind, WriteValue};

/// The item with these properties; usually at the same index, because the plan is of this machine.
fn like<T>(items: &[T], at: usize, is: impl Fn(&T) -> bool) -> Option<&T> {
    items
        .get(at)
        .filter(|item| is(item))
        .or_else(|| items.iter().find(|item| is(item)))
}

/// Collects a write for each setting that differs, and counts the others.
#[derive(Default)]
pub(crate) struct WriteList {
    /// Grouped by kind, the order in which they are performed.
    writes: BTreeMap<WriteKind, Vec<Write>>,
    unchanged: usize,
}

impl WriteList {
    /// Adds the settings of an interface. Vectors and queues that it does not have are left out.
    #[allow(clippy::too_many_lines)] // a table, or a story in one piece
    pub(crate) fn gather(
        &mut self,
        machine: &Machine,
        interface: &Interface,
        plan: &PlannedInterface,
    ) {
        let name: Arc<str> = interface.name.as_str().into();
        for (at, plan) in plan.vectors.iter().enumerate() {
            let now = like(&interface.vectors, at, |now| now.irq == plan.irq);
            if let (Some(cpus), Some(now)) = (&plan.cpus, now) {
                let path = || affinity_file(plan.irq);
                self.mask(
                    WriteKind::Vector,
                    path,
                    cpus,
                    &now.affinity,
                    machine,
                    &name,
                    &plan.why,
                );
            }
        }
        let planned = plan
            .rss
            .as_ref()
            .and_then(|plan| Some((plan.queues.as_ref()?, &plan.why)));
        if let (Some((queues, why)), Some(now)) = (planned, &interface.rss) {
            let value = (!now.is_spread_over(queues))
                .then(|| WriteValue::Text(now.spread_over(queues).to_setting()));
            let current = || now.to_setting().into();
            self.add(
                WriteKind::Rss,
                || rss_file(&name),
                value,
                current,
                &name,
                why,
            );
        }
        for (at, plan) in plan.threads.iter().enumerate() {
            let now = like(&interface.threads, at, |now| now.pid == plan.pid);
            if let (Some(cpus), Some(now)) = (&plan.cpus, now) {
                let path = || thread_directory(plan.pid);
                self.mask(
                    WriteKind::NapiThread,
                    path,
                    cpus,
                    &now.affinity,
                    machine,
                    &name,
                    &plan.why,
                );
            }
        }
        let flow_why: Arc<str> = "its share of the flow table".into();
        for (at, plan) in plan.rx_queues.iter().enumerate() {
            let now = like(&interface.rx_queues, at, |now| now.index == plan.queue);
            let Some(now) = now else { continue };
            let file = |file: &str| queue_file(&name, "rx", plan.queue, file);
            if let (Some(cpus), Some(current)) = (&plan.rps_cpus, &now.rps_cpus) {
                self.mask(
                    WriteKind::Rps,
                    || file("rps_cpus"),
                    cpus,
                    current,
                    machine,
                    &name,
                    &plan.why,
                );
            }
            if let Some(share) = plan.rps_flow_cnt {
                let path = || file("rps_flow_cnt");
                self.number(
                    WriteKind::RpsFlow,
                    path,
                    share,
                    now.rps_flow_cnt,
                    &name,
                    &flow_why,
                );
            }
        }
        let rxqs_why: Arc<str> = "flows of this receive queue".into();
        for (at, plan) in plan.tx_queues.iter().enumerate() {
            let now = like(&interface.tx_queues, at, |now| now.index == plan.queue);
            if let (Some(cpus), Some(current)) =
                (&plan.xps_cpus, now.and_then(|now| now.xps_cpus.as_ref()))
            {
                let path = || queue_file(&name, "tx", plan.queue, "xps_cpus");
                self.mask(
                    WriteKind::Xps,
                    path,
                    cpus,
                    current,
                    machine,
                    &name,
                    &plan.why,
                );
            }
            if let (Some(rxqs), Some(current)) =
                (&plan.xps_rxqs, now.and_then(|now| now.xps_rxqs.as_ref()))
            {
                let path = || queue_file(&name, "tx", plan.queue, "xps_rxqs");
                self.mask(
                    WriteKind::XpsRxqs,
                    path,
                    rxqs,
                    current,
                    machine,
                    &name,
                    &rxqs_why,
                );
            }
        }
        if let (Some(on), Some(now)) = (plan.ntuple, interface.ntuple) {
            let value = (on != now).then(|| WriteValue::Text(on_or_off(on).to_owned()));
            let (path, why) = (|| features_file(&name), "accelerated RFS".into());
            self.add(
                WriteKind::Ntuple,
                path,
                value,
                || on_or_off(now).into(),
                &name,
                &why,
            );
        }
    }

    /// Adds the number of entries of the machine's flow table.
    pub(crate) fn flow_entries(&mut self, machine: &Machine, entries: u32, why: &Arc<str>) {
        let path = || FLOW_ENTRIES.to_owned();
        self.number(
            WriteKind::Sysctl,
            path,
            entries,
            machine.flow_entries,
            &"".into(),
            why,
        );
    }

    /// The writes in the order in which they are performed, and the number of settings that need none.
    pub(crate) fn in_order(self) -> (Vec<Write>, usize) {
        let mut writes = Vec::with_capacity(self.writes.values().map(Vec::len).sum());
        for mut of_kind in self.writes.into_values() {
            writes.append(&mut of_kind);
        }
        (writes, self.unchanged)
    }

    #[allow(clippy::too_many_arguments)]
    fn mask(
        &mut self,
        kind: WriteKind,
        path: impl FnOnce() -> String,
        cpus: &CpuSet,
        current: &MaskFile,
        machine: &Machine,
        interface: &Arc<str>,
        why: &Arc<str>,
    ) {
        // The file's own width. A file that is too narrow for its planned CPU comes from a damaged copy; then the
        // machine's width is used.
        let widths = [
            current.width,
            MaskWidth::for_cpus(machine.topology.possible),
        ];
        let width = widths
            .into_iter()
            .find(|width| cpus.fits(*width))
            .filter(|_| *cpus != current.cpus);
        let value = width.map(|width| WriteValue::Mask(cpus.clone(), width));
        self.add(kind, path, value, || current.text.clone(), interface, why);
    }

    fn number(
        &mut self,
        kind: WriteKind,
        path: impl FnOnce() -> String,
        value: u32,
        current: Option<u32>,
        interface: &Arc<str>,
        why: &Arc<str>,
    ) {
        if let Some(current) = current {
            let value = (current != value).then(|| WriteValue::Text(value.to_string()));
            self.add(
                kind,
                path,
                value,
                || current.to_string().into(),
                interface,
                why,
            );
        }
    }

    /// Adds a write; without a value, counts an unchanged setting.
    fn add(
        &mut self,
        kind: WriteKind,
        path: impl FnOnce() -> String,
        value: Option<WriteValue>,
        current: impl FnOnce() -> Arc<str>,
        interface: &Arc<str>,
        why: &Arc<str>,
    ) {
        let Some(value) = value else {
            self.unchanged += 1;
            return;
        };
        let (path, current) = (path(), current());
        let (interface, why) = (Arc::clone(interface), Arc::clone(why));
        self.writes.entry(kind).or_default().push(Write {
            kind,
            path,
            value,
            current,
            interface,
            why,
        });
    }
}
