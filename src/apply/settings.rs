//! The settings that nicpin may change, each with a key that outlives IRQ numbers and interface names: device, port and
//! queue.

use std::collections::{BTreeMap, BTreeSet};

use crate::apply::write::means_same;
use crate::cpuset::CpuSet;
use crate::machine::paths::{FLOW_ENTRIES, affinity_file, queue_file};
use crate::machine::{Channels, Interface, Machine, MaskFile, Vector};
use crate::plan::{Plan, Write, WriteKind};

/// The texts of kernel files, by the keys of their settings.
pub(crate) type Texts = BTreeMap<String, String>;

/// A setting of the machine as it is now.
#[derive(Debug)]
pub(crate) struct KernelSetting<'a> {
    /// The key in the record: `DEVICE port N rx-0 rps_cpus`.
    pub(crate) key: String,
    pub(crate) kind: WriteKind,
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) mask: Option<&'a MaskFile>,
    /// Empty for a setting of the whole machine.
    pub(crate) interface: &'a str,
    /// `None` for anything but a vector.
    pub(crate) irq: Option<u32>,
}

impl KernelSetting<'_> {
    /// The bytes to write for a recorded text; an error names what was expected.
    fn to_written(&self, first: &str) -> Result<String, &'static str> {
        let Some(now) = self.mask else {
            let number = first.trim().parse::<u32>();
            return number.map(|number| number.to_string()).map_err(|_| "a number");
        };
        let cpus = CpuSet::parse_mask(first).map_err(|_| "a CPU mask")?;
        // The kernel accepts no mask that is wider than the file is now.
        cpus.to_mask(now.width).ok_or("a CPU mask that fits this machine")
    }
}

/// What has to be written to restore recorded settings.
#[derive(Debug, Default)]
pub(crate) struct RestorePlan {
    /// Interfaces whose channels differ. They come first, since queues and vectors are new afterwards.
    pub(crate) channels: Vec<ChangedChannels>,
    /// The writes with their keys.
    pub(crate) writes: Vec<(String, Write)>,
    pub(crate) unusable: Vec<UnusableText>,
    /// How many settings are already as recorded.
    pub(crate) unchanged: usize,
    /// The keys of recorded settings that the machine does not have now.
    pub(crate) absent: Vec<String>,
}

/// An interface whose channels differ from the recorded ones.
#[derive(Debug)]
pub(crate) struct ChangedChannels {
    pub(crate) key: String,
    pub(crate) interface: String,
    pub(crate) now: Channels,
    pub(crate) recorded: Channels,
}

/// A recorded text that cannot be written to its file.
#[derive(Debug)]
pub(crate) struct UnusableText {
    pub(crate) key: String,
    /// `None` for channels.
    pub(crate) path: Option<String>,
    pub(crate) interface: String,
    pub(crate) text: String,
    /// What the text should be, in words.
    expected: &'static str,
}

impl UnusableText {
    /// Why the setting cannot be restored, and the fix.
    pub(crate) fn reason(&self) -> String {
        let Self { key, expected, .. } = self;
        format!("recorded for {key}, but not {expected}; correct the record, or set it by hand")
    }
}

impl RestorePlan {
    /// Whether the machine is already as recorded.
    pub(crate) fn is_empty(&self) -> bool {
        self.channels.is_empty()
            && self.writes.is_empty()
            && self.unusable.is_empty()
            && self.absent.is_empty()
    }
}

/// The current settings of a plan's interfaces, of the machine where the plan writes them, and of the channels that the
/// plan changes.
pub(crate) fn texts(machine: &Machine, plan: &Plan) -> Texts {
    let planned = |interface: &&Interface| plan.interfaces.iter().any(|p| p.name == interface.name);
    let interfaces = machine.interfaces.iter().filter(planned).flat_map(interface_settings);
    let whole = machine_settings(machine)
        .filter(|setting| plan.writes.iter().any(|write| write.path == setting.path));
    let mut texts: Texts = interfaces.chain(whole).map(|setting| (setting.key, setting.text)).collect();
    for change in &plan.channels {
        let interface = machine.interface(&change.interface);
        texts.extend(interface.map(|interface| (channels_key(interface), change.current.to_text())));
    }
    texts
}

/// The current texts of the files that a plan writes, and nothing else.
pub(crate) fn written(machine: &Machine, plan: &Plan) -> Texts {
    let paths: BTreeSet<&str> = plan.writes.iter().map(|write| write.path.as_str()).collect();
    let settings = machine.interfaces.iter().flat_map(interface_settings).chain(machine_settings(machine));
    let written = settings.filter(|setting| paths.contains(setting.path.as_str()));
    written.map(|setting| (setting.key, setting.text)).collect()
}

/// The settings that a plan has an opinion about, with the text it plans for each.
pub(crate) fn planned<'a>(machine: &'a Machine, plan: &Plan) -> Vec<(KernelSetting<'a>, String)> {
    let mut paths: BTreeSet<String> = plan.writes.iter().map(|write| write.path.clone()).collect();
    for interface in &plan.interfaces {
        paths.extend(interface.wanted().into_iter().map(|(_, path, _)| path));
    }
    let writes: BTreeMap<&str, &String> =
        plan.writes.iter().map(|write| (write.path.as_str(), &write.value)).collect();
    let named = |interface: &&Interface| plan.interfaces.iter().any(|p| p.name == interface.name);
    let settings =
        machine.interfaces.iter().filter(named).flat_map(interface_settings).chain(machine_settings(machine));
    let wanted = |setting: KernelSetting<'a>| {
        let text =
            writes.get(setting.path.as_str()).map_or_else(|| setting.text.clone(), ToString::to_string);
        (setting, text)
    };
    settings.filter(|setting| paths.contains(&setting.path)).map(wanted).collect()
}

/// What has to be written to restore these texts.
pub(crate) fn plan_restore(texts: &Texts, machine: &Machine, why: &str) -> RestorePlan {
    let mut restore = RestorePlan::default();
    let mut left: BTreeMap<&str, &str> = texts.iter().map(|(k, text)| (k.as_str(), text.as_str())).collect();
    for setting in machine.interfaces.iter().flat_map(interface_settings).chain(machine_settings(machine)) {
        let Some(first) = left.remove(setting.key.as_str()) else { continue };
        match setting.to_written(first) {
            Ok(text) if means_same(setting.kind, &text, &setting.text) => restore.unchanged += 1,
            Ok(text) => {
                let write = Write {
                    kind: setting.kind,
                    path: setting.path,
                    value: text,
                    current: setting.text.into(),
                    interface: setting.interface.into(),
                    why: why.into(),
                };
                restore.writes.push((setting.key, write));
            }
            Err(expected) => restore.unusable.push(UnusableText {
                key: setting.key,
                path: Some(setting.path),
                interface: setting.interface.to_owned(),
                text: first.to_owned(),
                expected,
            }),
        }
    }
    for interface in &machine.interfaces {
        // Channels that the driver does not report now may be reported later.
        let (key, Some(now)) = (channels_key(interface), interface.channels) else { continue };
        let Some(text) = left.remove(key.as_str()) else { continue };
        let interface = interface.name.clone();
        match Channels::parse(text) {
            Some(recorded) if recorded.difference(&now).is_empty() => restore.unchanged += 1,
            Some(recorded) => restore.channels.push(ChangedChannels { key, interface, now, recorded }),
            None => {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                restore.unusable.push(UnusableText {
                    key,
                    path: None,
                    interface,
                    text,
                    expected: "a number of channels",
                });
            }
        }
    }
    restore.writes.sort_by_key(|(_, write)| write.kind);
    restore.absent = left.into_keys().map(str::to_owned).collect();
    restore
}

/// The settings of one interface.
pub(crate) fn interface_settings(interface: &Interface) -> impl Iterator<Item = KernelSetting<'_>> {
    let owner = owner(interface);
    let name = &interface.name;
    let mut settings = Vec::new();
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
        let setting = mask(vector_key(interface, vector), WriteKind::Vector, path, &vector.affinity);
        settings.push(KernelSetting { mask: Some(&vector.affinity), irq: Some(vector.irq), ..setting });
    }
    for rx in &interface.rx_queues {
        let queue = format!("rx-{}", rx.index);
        let path = |file: &str| queue_file(name, "rx", rx.index, file);
        if let Some(cpus) = &rx.rps_cpus {
            let setting = mask(format!("{queue} rps_cpus"), WriteKind::Rps, path("rps_cpus"), cpus);
            settings.push(KernelSetting { mask: Some(cpus), ..setting });
        }
        if let Some(count) = rx.rps_flow_cnt {
            settings.push(KernelSetting {
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
            let setting = mask(format!("tx-{} xps_cpus", tx.index), WriteKind::Xps, path, cpus);
            settings.push(KernelSetting { mask: Some(cpus), ..setting });
        }
    }
    settings.into_iter()
}

/// The key of an interface: device and port, which do not change when it is renamed.
pub(crate) fn owner(interface: &Interface) -> String {
    format!("{} port {}", interface.device.address, interface.port)
}

pub(crate) fn channels_key(interface: &Interface) -> String {
    format!("{} channels", owner(interface))
}

/// The key of a vector: its role and queue. A vector without a queue has its position in the device's list of IRQs,
/// since its name may contain the interface's and its number changes at each boot.
fn vector_key(interface: &Interface, vector: &Vector) -> String {
    let position = || interface.device.irqs.iter().position(|&irq| irq == vector.irq);
    match vector.queue {
        Some(queue) => format!("vector {:?} {queue}", vector.role).to_lowercase(),
        None => position().map_or_else(
            || format!("vector {}", vector.action),
            |position| format!("vector control #{position}"),
        ),
    }
}

/// The settings of the machine as a whole.
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
