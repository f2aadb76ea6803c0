//! The settings that nicpin may change, each with a key that outlives IRQ numbers and interface names: device, port and
//! queue.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cpuset::MaskWidth;
use crate::machine::paths::{
    FLOW_ENTRIES, affinity_file, features_file, on_or_off, queue_file, rss_file, thread_directory,
};
use crate::machine::{Interface, Machine, MaskFile, NapiThread, Vector};
use crate::plan::{Plan, PlannedInterface, PlannedValue, WriteKind, WriteValue};

/// The texts of kernel files, by the keys of their settings.
pub(crate) type Texts = BTreeMap<String, String>;

/// A setting of the machine as it is now.
#[derive(Debug)]
pub struct KernelSetting<'a> {
    /// The key in the record: `DEVICE port N rx-0 rps_cpus`.
    pub key: String,
    pub(crate) kind: WriteKind,
    pub path: String,
    pub text: Arc<str>,
    /// `None` for a number.
    pub(crate) width: Option<MaskWidth>,
    /// Empty for a setting of the whole machine.
    pub(crate) interface: &'a str,
    /// `None` for anything but a vector.
    pub irq: Option<u32>,
}

/// The current settings of a plan's interfaces, of the machine where the plan writes them, of the channels that the plan
/// changes, and of flows (RSS, `xps_rxqs`, ntuple filters) where it has an opinion about them.
pub(crate) fn texts(machine: &Machine, plan: &Plan) -> Texts {
    let paths = written_paths(plan);
    let wanted: BTreeSet<String> = wanted(plan).map(|(_, path, _)| path).collect();
    let settings = of_plan(machine, plan).filter(|setting| match setting.kind {
        WriteKind::Sysctl => paths.contains(setting.path.as_str()),
        WriteKind::Rss | WriteKind::XpsRxqs | WriteKind::Ntuple => wanted.contains(&setting.path),
        _ => true,
    });
    let mut texts: Texts = settings
        .map(|setting| (setting.key, setting.text.to_string()))
        .collect();
    for change in &plan.channels {
        let interface = machine.interface(&change.interface);
        texts
            .extend(interface.map(|interface| (channels_key(interface), change.current.to_text())));
    }
    texts
}

/// The current texts of the files that a plan writes, and nothing else.
pub(crate) fn written(machine: &Machine, plan: &Plan) -> Texts {
    let paths = written_paths(plan);
    let written = of_plan(machine, plan).filter(|setting| paths.contains(setting.path.as_str()));
    written
        .map(|setting| (setting.key, setting.text.to_string()))
        .collect()
}

fn wanted(plan: &Plan) -> impl Iterator<Item = (WriteKind, String, PlannedValue<'_>)> {
    plan.interfaces.iter().flat_map(PlannedInterface::wanted)
}

fn written_paths(plan: &Plan) -> BTreeSet<&str> {
    plan.writes.iter().map(|write| &*write.path).collect()
}

/// The settings that a plan has an opinion about, with the text it plans for each. A setting that differs and whose
/// write was taken out of the plan is not among them.
pub fn planned<'a>(machine: &'a Machine, plan: &Plan) -> Vec<(KernelSetting<'a>, String)> {
    let wanted: BTreeMap<String, PlannedValue<'_>> =
        wanted(plan).map(|(_, path, value)| (path, value)).collect();
    let writes: BTreeMap<&str, &WriteValue> = plan
        .writes
        .iter()
        .map(|write| (&*write.path, &write.value))
        .collect();
    let with_text = |setting: KernelSetting<'a>| {
        let is_wanted = || {
            wanted
                .get(&setting.path)
                .is_some_and(|value| value.is(&setting.text))
        };
        let text = match writes.get(setting.path.as_str()) {
            Some(value) => value.to_string(),
            None => is_wanted().then(|| setting.text.to_string())?,
        };
        Some((setting, text))
    };
    of_plan(machine, plan).filter_map(with_text).collect()
}

/// The settings of a plan's interfaces and of the machine.
pub(crate) fn of_plan<'a>(
    machine: &'a Machine,
    plan: &Plan,
) -> impl Iterator<Item = KernelSetting<'a>> {
    let planned = |interface: &&Interface| plan.interfaces.iter().any(|p| p.name == interface.name);
    machine
        .interfaces
        .iter()
        .filter(planned)
        .flat_map(of_interface)
        .chain(of_machine(machine))
}

/// All settings.
pub(crate) fn all(machine: &Machine) -> impl Iterator<Item = KernelSetting<'_>> {
    machine
        .interfaces
        .iter()
        .flat_map(of_interface)
        .chain(of_machine(machine))
}

fn of_machine(machine: &Machine) -> Option<KernelSetting<'_>> {
    machine.flow_entries.map(|entries| KernelSetting {
        key: "machine rps_sock_flow_entries".to_owned(),
        kind: WriteKind::Sysctl,
        path: FLOW_ENTRIES.to_owned(),
        text: entries.to_string().into(),
        width: None,
        interface: "",
        irq: None,
    })
}

fn of_interface(interface: &Interface) -> Vec<KernelSetting<'_>> {
    let (owner, name) = (owner(interface), &interface.name);
    let new = |key: String, kind, path, text| KernelSetting {
        key: format!("{owner} {key}"),
        kind,
        path,
        text,
        width: None,
        interface: name,
        irq: None,
    };
    let mask = |key, kind, path, file: &MaskFile| KernelSetting {
        width: Some(file.width),
        ..new(key, kind, path, file.text.clone())
    };
    let mut settings = Vec::new();
    for vector in &interface.vectors {
        let (key, path) = (vector_key(interface, vector), affinity_file(vector.irq));
        let setting = mask(key, WriteKind::Vector, path, &vector.affinity);
        settings.push(KernelSetting {
            irq: Some(vector.irq),
            ..setting
        });
    }
    if let Some(rss) = &interface.rss {
        settings.push(new(
            "rss".to_owned(),
            WriteKind::Rss,
            rss_file(name),
            rss.to_setting().into(),
        ));
    }
    for thread in &interface.threads {
        let (key, path) = (thread_key(interface, thread), thread_directory(thread.pid));
        settings.push(mask(key, WriteKind::NapiThread, path, &thread.affinity));
    }
    for rx in &interface.rx_queues {
        let place = |file| {
            (
                format!("rx-{} {file}", rx.index),
                queue_file(name, "rx", rx.index, file),
            )
        };
        if let Some(cpus) = &rx.rps_cpus {
            let (key, path) = place("rps_cpus");
            settings.push(mask(key, WriteKind::Rps, path, cpus));
        }
        if let Some(count) = rx.rps_flow_cnt {
            let (key, path) = place("rps_flow_cnt");
            settings.push(new(key, WriteKind::RpsFlow, path, count.to_string().into()));
        }
    }
    for tx in &interface.tx_queues {
        if let Some(cpus) = &tx.xps_cpus {
            let path = queue_file(name, "tx", tx.index, "xps_cpus");
            settings.push(mask(
                format!("tx-{} xps_cpus", tx.index),
                WriteKind::Xps,
                path,
                cpus,
            ));
        }
        if let Some(rxqs) = &tx.xps_rxqs {
            let path = queue_file(name, "tx", tx.index, "xps_rxqs");
            settings.push(mask(
                format!("tx-{} xps_rxqs", tx.index),
                WriteKind::XpsRxqs,
                path,
                rxqs,
            ));
        }
    }
    if let Some(on) = interface.ntuple {
        let path = features_file(name);
        settings.push(new(
            "ntuple".to_owned(),
            WriteKind::Ntuple,
            path,
            on_or_off(on).into(),
        ));
    }
    settings
}

/// The key of an interface: device and port, which do not change when it is renamed.
pub(crate) fn owner(interface: &Interface) -> String {
    format!("{} port {}", interface.device.address, interface.port)
}

pub(crate) fn channels_key(interface: &Interface) -> String {
    format!("{} channels", owner(interface))
}

pub(crate) fn rss_key(interface: &Interface) -> String {
    format!("{} rss", owner(interface))
}

/// The key of a vector: its role and queue. A vector without a queue has its position in the device's list of IRQs,
/// since its name may contain the interface's and its number changes at each boot.
fn vector_key(interface: &Interface, vector: &Vector) -> String {
    let position = || {
        interface
            .device
            .irqs
            .iter()
            .position(|&irq| irq == vector.irq)
    };
    match vector.queue {
        Some(queue) => format!("vector {:?} {queue}", vector.role).to_lowercase(),
        None => position().map_or_else(
            || format!("vector {}", vector.action),
            |position| format!("vector control #{position}"),
        ),
    }
}

/// The key of a thread: the role and queue of the vector that wakes it. A thread of an unknown queue has its position
/// among those of the interface.
fn thread_key(interface: &Interface, thread: &NapiThread) -> String {
    let irq = thread.woken_by.map(|(irq, _)| irq);
    let vector = interface
        .vectors
        .iter()
        .find(|vector| Some(vector.irq) == irq);
    let unknown = || {
        interface
            .threads
            .iter()
            .filter(|other| other.woken_by.is_none())
    };
    let position = || {
        unknown()
            .position(|other| other.pid == thread.pid)
            .unwrap_or_default()
    };
    match vector.and_then(|vector| Some((vector.role, vector.queue?))) {
        Some((role, queue)) => format!("napi-thread {} {queue}", role.name()),
        None => format!("napi-thread #{}", position()),
    }
}
