//! The first values ever seen, by device and queue, so that `restore` finds them whatever IRQ numbers and names
//! things have by then. Written durably before the first write and never overwritten by later runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::apply::STATE_DIR;
use crate::cpuset::CpuSet;
use crate::host::root::errno_words;
use crate::host::{Channels, FLOW_ENTRIES, FileError, Host, Interface, MaskFile, Root, Vector};
use crate::plan::{Plan, Write, WriteKind};

const SCHEMA: &str = "nicpin.state/1";

/// What was there before nicpin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    schema: String,
    /// The file's text at first sight, by what the file is about.
    first_seen: BTreeMap<String, String>,
}

/// The record could not be kept or is not one.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It holds something else.
    #[error("{}: is not a record of first-seen values ({reason}); nothing was written; move it away to start anew", path.display())]
    Content {
        /// The file, the root included.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// It could not be written.
    #[error("{}: {}; nothing was written, since it could not be undone", path.display(), errno_words(answer))]
    Save {
        /// The file, the root included.
        path: PathBuf,
        /// The kernel's answer.
        answer: std::io::Error,
    },
}

/// What has to be written to be back where things were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Back {
    /// Cards that had other channels, with those that they have and those that they had. They come first: queues
    /// and vectors are others afterwards.
    pub channels: Vec<(String, Channels, Channels)>,
    /// The writes.
    pub writes: Vec<Write>,
    /// How many values are as they were already.
    pub unchanged: usize,
    /// What the record knows and the machine does not have now.
    pub absent: Vec<String>,
}

/// A value of the machine that nicpin may change.
struct Value<'a> {
    key: String,
    kind: WriteKind,
    path: String,
    text: String,
    mask: Option<&'a MaskFile>,
    interface: &'a str,
}

impl Default for Record {
    fn default() -> Self {
        Self { schema: SCHEMA.to_owned(), first_seen: BTreeMap::new() }
    }
}

impl Record {
    fn path() -> String {
        format!("{STATE_DIR}/state.json")
    }

    /// Whether there is one.
    pub fn exists(root: &Root) -> bool {
        root.exists(&Self::path())
    }

    /// Reads the record; an empty one where there is none.
    pub fn load(root: &Root) -> Result<Self, RecordError> {
        let path = Self::path();
        let Some(text) = root.read_state(&path)? else { return Ok(Self::default()) };
        let error = |reason: String| RecordError::Content { path: root.outside(&path), reason };
        let record: Self = serde_json::from_str(&text).map_err(|e| error(e.to_string()))?;
        if record.schema == SCHEMA {
            Ok(record)
        } else {
            Err(error(format!("its schema is {}", record.schema)))
        }
    }

    /// Adds the present values of a plan's interfaces where none were seen before; whether there were any.
    pub fn add(&mut self, host: &Host, plan: &Plan) -> bool {
        let before = self.first_seen.len();
        let planned = |interface: &&Interface| plan.interfaces.iter().any(|p| p.name == interface.name);
        // What came with changed channels goes with them when they are put back.
        let own_channels = |interface: &&Interface| {
            let first = self.first_seen.get(&channels_key(interface)).and_then(|text| Channels::parse(text));
            first.is_none_or(|first| interface.channels.is_none_or(|now| first.difference(&now).is_empty()))
        };
        let interfaces: Vec<_> =
            host.interfaces.iter().filter(planned).filter(own_channels).flat_map(values).collect();
        let machine =
            host_values(host).filter(|value| plan.writes.iter().any(|write| write.path == value.path));
        for value in interfaces.into_iter().chain(machine) {
            self.first_seen.entry(value.key).or_insert(value.text);
        }
        for change in &plan.channels {
            if let Some(interface) = host.interfaces.iter().find(|i| i.name == change.interface) {
                self.first_seen.entry(channels_key(interface)).or_insert_with(|| change.current.to_text());
            }
        }
        self.first_seen.len() > before
    }

    /// What would bring the machine back to what was first seen.
    pub fn writes_back(&self, host: &Host) -> Back {
        let mut back = Back::default();
        let mut left: BTreeMap<&str, &str> =
            self.first_seen.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
        for value in host.interfaces.iter().flat_map(values).chain(host_values(host)) {
            let Some(first) = left.remove(value.key.as_str()) else { continue };
            let text = match value.mask {
                // As wide as the file is now, which is all that the kernel accepts.
                Some(now) => match CpuSet::parse_mask(first) {
                    Ok(cpus) if cpus == now.cpus => None,
                    Ok(cpus) => cpus.to_mask(now.width),
                    Err(_) => None,
                },
                None => (first != value.text).then(|| first.to_owned()),
            };
            match text {
                Some(text) => back.writes.push(Write {
                    kind: value.kind,
                    path: value.path,
                    value: text,
                    current: value.text,
                    interface: value.interface.to_owned(),
                    why: "as it was before the first apply".to_owned(),
                }),
                None => back.unchanged += 1,
            }
        }
        for interface in &host.interfaces {
            let Some(first) = left.remove(channels_key(interface).as_str()) else { continue };
            match (Channels::parse(first), interface.channels) {
                (Some(first), Some(now)) if !first.difference(&now).is_empty() => {
                    back.channels.push((interface.name.clone(), now, first));
                }
                _ => back.unchanged += 1,
            }
        }
        back.writes.sort_by_key(|write| write.kind);
        back.absent = left.into_keys().map(str::to_owned).collect();
        back
    }

    /// Forgets all but these.
    pub fn keep_only(&mut self, keys: &[String]) {
        self.first_seen.retain(|key, _| keys.contains(key));
    }

    /// Writes the record so that a crash leaves the old or the new one; an empty one is removed.
    pub fn save(&self, root: &Root) -> Result<(), RecordError> {
        let path = Self::path();
        let saved = if self.first_seen.is_empty() {
            root.remove_state(&path)
        } else {
            let text = serde_json::to_string_pretty(self).map_err(std::io::Error::from);
            text.and_then(|text| root.replace_state(&path, &(text + "\n")))
        };
        saved.map_err(|answer| RecordError::Save { path: root.outside(&path), answer })
    }
}

/// The values of one interface, by device, port and queue.
fn values(interface: &Interface) -> impl Iterator<Item = Value<'_>> {
    let owner = owner(interface);
    let name = &interface.name;
    let queues = format!("/sys/class/net/{name}/queues");
    let mut values = Vec::new();
    let mask = |key: String, kind, path, file: &'_ MaskFile| (key, kind, path, file.text.clone());
    let mut push = |(key, kind, path, text), mask| {
        values.push(Value { key, kind, path, text, mask, interface: name });
    };
    for vector in &interface.vectors {
        let path = format!("/proc/irq/{}/smp_affinity", vector.irq);
        let key = format!("{owner} {}", vector_key(interface, vector));
        push(mask(key, WriteKind::Vector, path, &vector.allowed), Some(&vector.allowed));
    }
    for rx in &interface.rx_queues {
        let file = |name: &str| {
            (format!("{owner} rx-{} {name}", rx.index), format!("{queues}/rx-{}/{name}", rx.index))
        };
        if let Some(cpus) = &rx.rps_cpus {
            let (key, path) = file("rps_cpus");
            push(mask(key, WriteKind::Rps, path, cpus), Some(cpus));
        }
        if let Some(count) = rx.rps_flow_cnt {
            let (key, path) = file("rps_flow_cnt");
            push((key, WriteKind::RpsFlow, path, count.to_string()), None);
        }
    }
    for tx in &interface.tx_queues {
        if let Some(cpus) = &tx.xps_cpus {
            let key = format!("{owner} tx-{} xps_cpus", tx.index);
            push(mask(key, WriteKind::Xps, format!("{queues}/tx-{}/xps_cpus", tx.index), cpus), Some(cpus));
        }
    }
    values.into_iter()
}

/// How the record names an interface: by what does not change when it is renamed.
fn owner(interface: &Interface) -> String {
    format!("{} port {}", interface.device.address, interface.port)
}

fn channels_key(interface: &Interface) -> String {
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
fn host_values(host: &Host) -> impl Iterator<Item = Value<'_>> {
    host.flow_entries.into_iter().map(|entries| Value {
        key: "machine rps_sock_flow_entries".to_owned(),
        kind: WriteKind::Sysctl,
        path: FLOW_ENTRIES.to_owned(),
        text: entries.to_string(),
        mask: None,
        interface: "",
    })
}
