//! From planned values to the writes that they take on the machine as it is.

use crate::cpuset::{CpuSet, MaskWidth};
use crate::host::{Host, Interface, MaskFile};
use crate::plan::plan::{InterfacePlan, Write, WriteKind};

/// The first item that is meant; in a plan of this machine it stands at the same place.
fn like<T>(items: &[T], at: usize, is: impl Fn(&T) -> bool) -> Option<&T> {
    items.get(at).filter(|item| is(item)).or_else(|| items.iter().find(|item| is(item)))
}

/// Gathers planned values: a write for each that differs, a count of the others.
#[derive(Default)]
pub(crate) struct Settings {
    writes: Vec<Write>,
    unchanged: usize,
}

impl Settings {
    /// What an interface has to be given to be as planned. Vectors and queues that it does not have are left out.
    pub(crate) fn gather(&mut self, host: &Host, interface: &Interface, plan: &InterfacePlan) {
        let name = &interface.name;
        for (at, plan) in plan.vectors.iter().enumerate() {
            let now = like(&interface.vectors, at, |now| now.irq == plan.irq);
            if let (Some(cpus), Some(now)) = (&plan.cpus, now) {
                let path = format!("/proc/irq/{}/smp_affinity", plan.irq);
                self.mask(WriteKind::Vector, path, cpus, &now.allowed, host, name, &plan.why);
            }
        }
        for (at, plan) in plan.rx_queues.iter().enumerate() {
            let now = like(&interface.rx_queues, at, |now| now.index == plan.queue);
            let Some(now) = now else { continue };
            let queue = format!("/sys/class/net/{name}/queues/rx-{}", plan.queue);
            if let (Some(cpus), Some(current)) = (&plan.rps_cpus, &now.rps_cpus) {
                self.mask(WriteKind::Rps, format!("{queue}/rps_cpus"), cpus, current, host, name, &plan.why);
            }
            if let Some(share) = plan.rps_flow_cnt {
                let why = "its share of the flow table";
                let path = format!("{queue}/rps_flow_cnt");
                self.number(WriteKind::RpsFlow, &path, share, now.rps_flow_cnt, name, why);
            }
        }
        for (at, plan) in plan.tx_queues.iter().enumerate() {
            let now = like(&interface.tx_queues, at, |now| now.index == plan.queue);
            if let (Some(cpus), Some(current)) = (&plan.xps_cpus, now.and_then(|now| now.xps_cpus.as_ref())) {
                let path = format!("/sys/class/net/{name}/queues/tx-{}/xps_cpus", plan.queue);
                self.mask(WriteKind::Xps, path, cpus, current, host, name, &plan.why);
            }
        }
    }

    /// The writes in the order in which they are performed, and how many values need none.
    pub(crate) fn in_order(mut self) -> (Vec<Write>, usize) {
        self.writes.sort_by_key(|write| write.kind);
        (self.writes, self.unchanged)
    }

    #[allow(clippy::too_many_arguments)]
    fn mask(
        &mut self,
        kind: WriteKind,
        path: String,
        cpus: &CpuSet,
        current: &MaskFile,
        host: &Host,
        interface: &str,
        why: &str,
    ) {
        // The file's own width; a file narrower than its planned CPU is a torn copy, and the machine's
        // width is what the kernel will take.
        let differs = *cpus != current.cpus;
        let value = differs.then(|| {
            cpus.to_mask(current.width).or_else(|| cpus.to_mask(MaskWidth::for_cpus(host.topology.possible)))
        });
        match value.flatten() {
            Some(value) => self.writes.push(Write {
                kind,
                path,
                value,
                current: current.text.clone(),
                interface: interface.to_owned(),
                why: why.to_owned(),
            }),
            None => self.unchanged += 1,
        }
    }

    pub(crate) fn number(
        &mut self,
        kind: WriteKind,
        path: &str,
        value: u32,
        current: Option<u32>,
        interface: &str,
        why: &str,
    ) {
        match current {
            Some(current) if current != value => self.writes.push(Write {
                kind,
                path: path.to_owned(),
                value: value.to_string(),
                current: current.to_string(),
                interface: interface.to_owned(),
                why: why.to_owned(),
            }),
            Some(_) => self.unchanged += 1,
            None => {}
        }
    }
}
