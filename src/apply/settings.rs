//! The values of a machine that nicpin may change, each under a name that stays the same: device, port and queue,
//! whatever IRQ numbers and interface names things have by then.

use std::collections::{BTreeMap, BTreeSet};

use crate::apply::write::means_same;
use crate::cpuset::CpuSet;
use crate::machine::paths::FLOW_ENTRIES;
use crate::machine::paths::{affinity_file, queue_file};
use crate::machine::{Channels, Interface, Machine, MaskFile, Vector};
use crate::plan::{Plan, Write, WriteKind, WriteValue};

/// The texts of files by the names of their values.
pub(crate) type Texts = BTreeMap<String, String>;

/// A value of the machine that nicpin may change.
#[derive(Debug)]
pub(crate) struct KernelSetting<'a> {
    /// Its name.
    pub(crate) key: String,
    pub(crate) kind: WriteKind,
    /// Its file now.
    pub(crate) path: String,
    /// What that holds.
    pub(crate) text: String,
    pub(crate) mask: Option<&'a MaskFile>,
    /// The interface's name now; empty for a setting of the whole machine.
    pub(crate) interface: &'a str,
    /// The vector's IRQ number now.
    pub(crate) irq: Option<u32>,
}

impl KernelSetting<'_> {
    /// A recorded text as it is written now; what it should be, where it cannot be written.
    fn written_as(&self, first: &str) -> Result<String, &'static str> {
        let Some(now) = self.mask else {
            let number = first.trim().parse::<u32>();
            return number.map(|number| number.to_string()).map_err(|_| "a number");
        };
        let cpus = CpuSet::parse_mask(first).map_err(|_| "a mask of CPUs")?;
        // As wide as the file is now, which is all that the kernel accepts.
        cpus.to_mask(now.width).ok_or("a mask of CPUs that this machine can have")
    }
}

/// What has to be written to be back where things were.
#[derive(Debug, Default)]
pub(crate) struct RestorePlan {
    /// Cards that had other channels. They come first: queues and vectors are others afterwards.
    pub(crate) channels: Vec<OtherChannels>,
    /// The writes, by the names of their values.
    pub(crate) writes: Vec<(String, Write)>,
    /// Texts that cannot be what was there.
    pub(crate) wrong: Vec<UnusableText>,
    /// How many values are as they were already.
    pub(crate) unchanged: usize,
    /// What was there and the machine does not have now.
    pub(crate) absent: Vec<String>,
}

/// A card that had other channels.
#[derive(Debug)]
pub(crate) struct OtherChannels {
    pub(crate) key: String,
    pub(crate) interface: String,
    /// Those that it has.
    pub(crate) now: Channels,
    /// Those that it had.
    pub(crate) first: Channels,
}

/// A text that is none for its value, or does not fit it.
#[derive(Debug)]
pub(crate) struct UnusableText {
    pub(crate) key: String,
    /// The value's file; `None` for channels.
    pub(crate) path: Option<String>,
    pub(crate) interface: String,
    pub(crate) text: String,
    /// What it should be, in words.
    expected: &'static str,
}

impl UnusableText {
    /// Why nothing can be put back from it, and the fix.
    pub(crate) fn words(&self) -> String {
        let Self { key, expected, .. } = self;
        format!("recorded of {key}, and not {expected}: correct it in the record, or set the value by hand")
    }
}

impl RestorePlan {
    /// Whether the machine is back already.
    pub(crate) fn is_there(&self) -> bool {
        self.channels.is_empty() && self.writes.is_empty() && self.wrong.is_empty() && self.absent.is_empty()
    }
}

/// The present texts of a plan's interfaces, those of the machine that the plan writes, and of the cards whose
/// channels it changes.
pub(crate) fn texts(machine: &Machine, plan: &Plan) -> Texts {
    let planned = |interface: &&Interface| plan.interfaces.iter().any(|p| p.name == interface.name);
    let interfaces = machine.interfaces.iter().filter(planned).flat_map(interface_settings);
    let whole =
        machine_settings(machine).filter(|value| plan.writes.iter().any(|write| write.path == value.path));
    let mut texts: Texts = interfaces.chain(whole).map(|value| (value.key, value.text)).collect();
    for change in &plan.channels {
        let interface = machine.interfaces.iter().find(|interface| interface.name == change.interface);
        texts.extend(interface.map(|interface| (channels_key(interface), change.current.to_text())));
    }
    texts
}

/// The present texts of what a plan's writes change, and nothing else.
pub(crate) fn written(machine: &Machine, plan: &Plan) -> Texts {
    let paths: BTreeSet<&str> = plan.writes.iter().map(|write| write.path.as_str()).collect();
    let values = machine.interfaces.iter().flat_map(interface_settings).chain(machine_settings(machine));
    let written = values.filter(|value| paths.contains(value.path.as_str()));
    written.map(|value| (value.key, value.text)).collect()
}

/// The values that a plan has an opinion on, with the text that it wants in each.
pub(crate) fn planned<'a>(machine: &'a Machine, plan: &Plan) -> Vec<(KernelSetting<'a>, String)> {
    let mut paths: BTreeSet<String> = plan.writes.iter().map(|write| write.path.clone()).collect();
    for interface in &plan.interfaces {
        paths.extend(interface.wanted().into_iter().map(|(_, path, _)| path));
    }
    let writes: BTreeMap<&str, &WriteValue> =
        plan.writes.iter().map(|write| (write.path.as_str(), &write.value)).collect();
    let named = |interface: &&Interface| plan.interfaces.iter().any(|p| p.name == interface.name);
    let values =
        machine.interfaces.iter().filter(named).flat_map(interface_settings).chain(machine_settings(machine));
    let wanted = |value: KernelSetting<'a>| {
        let text = writes.get(value.path.as_str()).map_or_else(|| value.text.clone(), ToString::to_string);
        (value, text)
    };
    values.filter(|value| paths.contains(&value.path)).map(wanted).collect()
}

/// What would bring the machine back to these texts.
pub(crate) fn back_to(texts: &Texts, machine: &Machine, why: &str) -> RestorePlan {
    let mut back = RestorePlan::default();
    let mut left: BTreeMap<&str, &str> = texts.iter().map(|(k, text)| (k.as_str(), text.as_str())).collect();
    for value in machine.interfaces.iter().flat_map(interface_settings).chain(machine_settings(machine)) {
        let Some(first) = left.remove(value.key.as_str()) else { continue };
        match value.written_as(first) {
            Ok(text) if means_same(value.kind, &text, &value.text) => back.unchanged += 1,
            Ok(text) => {
                let write = Write {
                    kind: value.kind,
                    path: value.path,
                    value: text.into(),
                    current: value.text.into(),
                    interface: value.interface.into(),
                    why: why.into(),
                };
                back.writes.push((value.key, write));
            }
            Err(expected) => back.wrong.push(UnusableText {
                key: value.key,
                path: Some(value.path),
                interface: value.interface.to_owned(),
                text: first.to_owned(),
                expected,
            }),
        }
    }
    for interface in &machine.interfaces {
        // What is not told now may be told later.
        let (key, Some(now)) = (channels_key(interface), interface.channels) else { continue };
        let Some(text) = left.remove(key.as_str()) else { continue };
        let interface = interface.name.clone();
        match Channels::parse(text) {
            Some(first) if first.difference(&now).is_empty() => back.unchanged += 1,
            Some(first) => back.channels.push(OtherChannels { key, interface, now, first }),
            None => {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                back.wrong.push(UnusableText { key, path: None, interface, text, expected: "channels" });
            }
        }
    }
    back.writes.sort_by_key(|(_, write)| write.kind);
    back.absent = left.into_keys().map(str::to_owned).collect();
    back
}

/// The values of one interface, by device, port and queue.
pub(crate) fn interface_settings(interface: &Interface) -> impl Iterator<Item = KernelSetting<'_>> {
    let owner = owner(interface);
    let name = &interface.name;
    let mut values = Vec::new();
    let mask = |key: String, kind, path: String, file: &'_ MaskFile| KernelSetting {
        key: format!("{owner} {key}"),
        kind,
        path,
        text: file.text.to_string(),
        mask: None,
        interface: name,
        irq: None,
    };
    for vector in &interface.vectors {
        let path = affinity_file(vector.irq);
        let value = mask(vector_key(interface, vector), WriteKind::Vector, path, &vector.affinity);
        values.push(KernelSetting { mask: Some(&vector.affinity), irq: Some(vector.irq), ..value });
    }
    for rx in &interface.rx_queues {
        let queue = format!("rx-{}", rx.index);
        let path = |file: &str| queue_file(name, "rx", rx.index, file);
        if let Some(cpus) = &rx.rps_cpus {
            let value = mask(format!("{queue} rps_cpus"), WriteKind::Rps, path("rps_cpus"), cpus);
            values.push(KernelSetting { mask: Some(cpus), ..value });
        }
        if let Some(count) = rx.rps_flow_cnt {
            values.push(KernelSetting {
                key: format!("{owner} {queue} rps_flow_cnt"),
                kind: WriteKind::RpsFlow,
                path: path("rps_flow_cnt"),
                text: count.to_string(),
                mask: None,
                interface: name,
                irq: None,
            });
        }
    }
    for tx in &interface.tx_queues {
        if let Some(cpus) = &tx.xps_cpus {
            let path = queue_file(name, "tx", tx.index, "xps_cpus");
            let value = mask(format!("tx-{} xps_cpus", tx.index), WriteKind::Xps, path, cpus);
            values.push(KernelSetting { mask: Some(cpus), ..value });
        }
    }
    values.into_iter()
}

/// How the record names an interface: by what does not change when it is renamed.
pub(crate) fn owner(interface: &Interface) -> String {
    format!("{} port {}", interface.device.address, interface.port)
}

pub(crate) fn channels_key(interface: &Interface) -> String {
    format!("{} channels", owner(interface))
}

/// How the record names a vector: by its queue; one without a queue by its place in the device's list, since its
/// name may follow the interface's and its number the boot.
fn vector_key(interface: &Interface, vector: &Vector) -> String {
    let place = || interface.device.irqs.iter().position(|&irq| irq == vector.irq);
    match vector.queue {
        Some(queue) => format!("vector {:?} {queue}", vector.role).to_lowercase(),
        None => place()
            .map_or_else(|| format!("vector {}", vector.action), |place| format!("vector control #{place}")),
    }
}

/// The values of the machine as a whole.
pub(crate) fn machine_settings(machine: &Machine) -> impl Iterator<Item = KernelSetting<'_>> {
    machine.flow_entries.into_iter().map(|entries| KernelSetting {
        key: "machine rps_sock_flow_entries".to_owned(),
        kind: WriteKind::Sysctl,
        path: FLOW_ENTRIES.to_owned(),
        text: entries.to_string(),
        mask: None,
        interface: "",
        irq: None,
    })
}
