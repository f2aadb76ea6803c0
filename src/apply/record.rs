//! Original settings by device and queue, which `restore` finds although IRQ numbers and names change, and what the
//! last apply set, by which `check` says why something differs. On disk before the first write; later runs never
//! overwrite original settings.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;
use serde::{Deserialize, Serialize};

use crate::apply::settings::{self, Texts};
use crate::apply::state::StateFile;
use crate::cpuset::{CpuSet, Inserted as _};
use crate::drivers::Taught;
use crate::kinds::{Place, PortId, Setting, SettingId, SettingKind, SettingName};
use crate::machine::{Channels, Interface, Machine, Program, Rss, Vector};
use crate::plan::Plan;
use crate::read::handlers::Handlers;
use crate::report::outcome::{Outcome, WriteResult};
use crate::report::restored::Restored;
use crate::root::{FileError, Root};

const FILE: StateFile = StateFile {
    path: "/run/nicpin/state.json",
    schema: "nicpin.state/1",
    what: "a record of original settings",
    not_done: "nothing was written, because it could not be restored",
};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub(crate) first_seen: Texts,
    #[serde(default)]
    pub(crate) last_set: BTreeMap<SettingId, LastSet>,
    /// Numbers of receive and transmit queues by interface, when last planned.
    #[serde(default)]
    pub(crate) queues: BTreeMap<String, (usize, usize)>,
    /// Mbit/s that each port can carry: unreadable while the interface is in another network namespace.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub(crate) carries: BTreeMap<String, u32>,
    /// CPUs of programs (`unit:NAME`) by which the last apply planned.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub(crate) near: BTreeMap<String, CpuSet>,
    /// The policy's rows of drivers when last planned: keys have the queues by these rows.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) drivers: Vec<Taught>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastSet {
    pub(crate) value: String,
    /// Written because the planned CPU had no free interrupt vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fallback: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
    /// The kernel's error was that the vector cannot be moved.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(crate) managed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) irq: Option<Irq>,
}

/// An IRQ: its number, and what distinguishes it from a later IRQ with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Irq {
    pub(crate) number: u32,
    /// Inode of `/sys/kernel/irq/N`, which the kernel creates with each IRQ; `None` in a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) inode: Option<u64>,
}

impl Irq {
    pub(crate) fn now(root: &Root, number: u32) -> Self {
        Self {
            number,
            inode: root.inode(&format!("/sys/kernel/irq/{number}")),
        }
    }

    /// `None` if the number has another IRQ than when the vector was read: its driver made its IRQs anew.
    fn of(root: &Root, handlers: &Handlers<'_>, vector: &Vector) -> Option<Self> {
        let now = Self::now(root, vector.irq);
        let named = handlers.of(vector.irq).unwrap_or_default();
        // A shared line has handlers of others, too.
        let mut own = vector.action.iter();
        own.all(|own| named.iter().any(|name| name == own))
            .then_some(now)
    }
}

impl Record {
    pub fn exists(root: &Root) -> bool {
        FILE.exists(root)
    }

    pub fn load(root: &Root) -> Result<Self, FileError> {
        const READ: StateFile = StateFile {
            not_done: "what apply found and set is unknown",
            ..FILE
        };
        Ok(READ.load(root)?.unwrap_or_default())
    }

    pub(crate) fn load_to_write(root: &Root) -> Result<Self, FileError> {
        Ok(FILE.load(root)?.unwrap_or_default())
    }

    /// None if no record can be read.
    pub(crate) fn drivers(root: &Root) -> Vec<Taught> {
        Self::load(root).unwrap_or_default().drivers
    }

    /// Adds settings of a plan's interfaces that are not recorded yet, and what the plan is going to set.
    pub fn add(&mut self, root: &Root, machine: &Machine, plan: &Plan) {
        self.rename(root, machine, plan);
        // Queues that came with changed channels go away when the channels are restored.
        let others: BTreeSet<_> = machine
            .interfaces
            .iter()
            .filter(|interface| !self.has_first_channels(interface))
            .map(|interface| Some(interface.port_id()))
            .inserted();
        let mut shared = self.first_seen_by_others(root, machine, plan);
        for (id, text) in settings::texts(machine, plan) {
            let is_of_any_channels = match id.name {
                SettingName::Of(SettingKind::Channels, _) => true,
                // A default table is one for whatever channels are restored.
                SettingName::Of(SettingKind::Rss, _) => {
                    Rss::parse(&text).is_some_and(|table| table.is_default())
                }
                _ => false,
            };
            if is_of_any_channels || !others.contains(&id.port) {
                let text = shared.remove(&id).unwrap_or(text);
                self.first_seen.entry(id).or_insert(text);
            }
        }
        let handlers = Handlers::new(root);
        for (setting, value) in settings::planned_settings(machine, plan) {
            let set = self.last_set.entry(setting.id()).or_default();
            let vector = setting.vector();
            let irq = vector.and_then(|vector| Irq::of(root, &handlers, vector));
            // For the same plan as before, keep the outcome of the last write.
            if set.value != value || set.irq != irq {
                *set = LastSet {
                    value,
                    irq,
                    ..LastSet::default()
                };
            }
        }
        for planned in &plan.interfaces {
            let near = planned.near.clone();
            self.near
                .extend(near.and_then(|near| Some((near.program?, near.cpus))));
            if let Some(now) = machine.interface(&planned.name) {
                if !now.is_elsewhere() {
                    let queues = (now.rx_queues.len(), now.tx_queues.len());
                    self.queues.insert(now.port_id().to_string(), queues);
                }
                let carries = now.supported_mbps;
                self.carries
                    .extend(carries.map(|carries| (now.port_id().to_string(), carries)));
            }
        }
    }

    /// IRQs may be understood otherwise now, as with another row of the policy; an IRQ has one original setting.
    fn rename(&mut self, root: &Root, machine: &Machine, plan: &Plan) {
        // While a driver makes its queues anew, netlink and names are of different moments.
        let is_clear = |setting: &Setting<'_>| {
            let interface = setting.owner;
            interface.is_some_and(|interface| interface.contradictions.is_empty())
        };
        let settings = settings::of_plan(machine, plan).filter(is_clear);
        let renamed = settings.filter_map(|setting| {
            let (id, irq) = (setting.id(), Irq::now(root, setting.irq()?));
            let other = self
                .ids_of(irq)
                .find(|other| other.port == id.port)?
                .clone();
            (other != id).then_some((other, id))
        });
        // Two IRQs may have changed places, so none is entered before all are taken out.
        let renamed = renamed.collect_vec();
        let taken = renamed.into_iter().map(|(other, id)| {
            (
                id,
                self.first_seen.remove(&other),
                self.last_set.remove(&other),
            )
        });
        for (id, text, set) in taken.collect_vec() {
            if let Some(text) = text {
                self.first_seen.entry(id.clone()).or_insert(text);
            }
            self.last_set.extend(set.map(|set| (id, set)));
        }
        let is_known = |row: &Taught| {
            let mut planned = plan.interfaces.iter();
            let mut taught = plan.drivers.iter();
            planned.any(|interface| interface.driver.as_ref() == Some(&row.name))
                || taught.any(|other| other.name == row.name)
        };
        self.drivers.retain(|row| !is_known(row));
        self.drivers.extend_from_slice(&plan.drivers);
    }

    fn ids_of(&self, irq: Irq) -> impl Iterator<Item = &SettingId> {
        let sets = self.last_set.iter();
        sets.filter(move |(_, set)| set.irq == Some(irq))
            .map(|(id, _)| id)
    }

    /// Original settings of IRQs that are recorded for another interface, which has them, too: the current ones may be
    /// those of the last apply.
    fn first_seen_by_others(&self, root: &Root, machine: &Machine, plan: &Plan) -> Texts {
        let new = settings::of_plan(machine, plan)
            .filter(|setting| !self.first_seen.contains_key(&setting.id()));
        let shared = new.filter_map(|setting| {
            let irq = Irq::now(root, setting.irq()?);
            let text = self.ids_of(irq).find_map(|id| self.first_seen.get(id))?;
            Some((setting.id(), text.clone()))
        });
        shared.inserted()
    }

    fn has_first_channels(&self, interface: &Interface) -> bool {
        let first = self
            .first_seen
            .get(&interface.only_id(SettingKind::Channels));
        first
            .and_then(|text| Channels::parse(text))
            .zip(interface.channels)
            .is_none_or(|(first, now)| first.difference(&now).is_empty())
    }

    pub fn settle(&mut self, machine: &Machine, plan: &Plan, written: &[WriteResult]) {
        let by_place: BTreeMap<Place<'_>, &WriteResult> = written
            .iter()
            .map(|written| (written.place(), written))
            .inserted();
        for (setting, _) in settings::planned_settings(machine, plan) {
            let Some(set) = self.last_set.get_mut(&setting.id()) else {
                continue;
            };
            let written = by_place.get(&setting.place());
            set.fallback = written.and_then(|written| written.fallback.clone());
            let refused =
                written.filter(|result| result.failed() || result.outcome == Outcome::Managed);
            set.refused = refused.and_then(|written| written.detail.clone());
            set.managed = written.is_some_and(|result| result.outcome == Outcome::Managed);
        }
    }

    /// Marks vectors that cannot be moved, if only a write shows it: before Linux 6.12.
    pub fn mark_unmovable(&self, root: &Root, machine: &mut Machine) {
        for (id, set) in self.last_set.iter().filter(|(_, set)| set.managed) {
            let device = id.port.as_ref().map(|port| &port.device);
            let interfaces = machine.interfaces.iter_mut();
            let interfaces =
                interfaces.filter(|interface| device == Some(&interface.device.address));
            for vector in interfaces.flat_map(|interface| &mut interface.vectors) {
                let is_same =
                    |irq: Irq| irq.number == vector.irq && irq == Irq::now(root, irq.number);
                vector.movable &= !set.irq.is_some_and(is_same);
            }
        }
    }

    /// For interfaces in another network namespace: which port each is, and what it can carry.
    pub fn complete(&self, machine: &mut Machine) {
        name_ports(machine, &self.first_seen);
        for interface in elsewhere(machine) {
            interface.supported_mbps = self.carries.get(&interface.port_id().to_string()).copied();
        }
    }

    pub fn near(&self, program: &Program) -> Option<&CpuSet> {
        self.near.get(&program.to_string())
    }

    pub(crate) fn has_vectors_of(&self, interface: &Interface) -> bool {
        let port = Some(interface.port_id());
        self.last_set
            .keys()
            .any(|id| id.port == port && id.is_vector())
    }

    /// Entries of restored settings become those of an earlier record, `then`.
    pub(crate) fn reset_to<'a>(
        &mut self,
        ids: impl IntoIterator<Item = &'a SettingId>,
        restored: &Restored,
        then: &Self,
    ) {
        for id in ids {
            if restored.refused_ids.contains(id) {
                continue;
            }
            take_over(&mut self.last_set, &then.last_set, id);
            // Queues come and go with channels.
            if let (Some(SettingKind::Channels), Some(port)) = (id.kind(), &id.port) {
                take_over(&mut self.queues, &then.queues, &port.to_string());
            }
        }
        let set: BTreeSet<_> = self
            .last_set
            .keys()
            .flat_map(|id| &id.port)
            .dedup()
            .map(PortId::to_string)
            .collect();
        self.queues.retain(|port, _| set.contains(port));
    }

    /// A record without original settings is removed.
    pub fn save(&self, root: &Root) -> Result<(), FileError> {
        if self.first_seen.is_empty() {
            FILE.remove(root)
        } else {
            FILE.save(root, self)
        }
    }
}

fn elsewhere(machine: &mut Machine) -> impl Iterator<Item = &mut Interface> {
    machine
        .interfaces
        .iter_mut()
        .filter(|interface| interface.is_elsewhere())
}

/// Names an interface in another network namespace by the only port of its device that has settings, and one that
/// shares its port number as it is recorded: an earlier version named it by the interface.
pub(crate) fn name_ports(machine: &mut Machine, texts: &Texts) {
    for interface in &mut machine.interfaces {
        let by_age = format!("{}.", interface.port);
        let mut name = interface.port_name.iter();
        let (device, port) = (&interface.device.address, &interface.name);
        let mut ports = texts.keys().flat_map(|id| &id.port);
        if name.any(|name| name.starts_with(&by_age))
            && ports.any(|id| (&id.device, &id.port) == (device, port))
        {
            interface.port_name = Some(interface.name.clone());
        }
    }
    for interface in elsewhere(machine) {
        let ports = texts
            .keys()
            .flat_map(|id| &id.port)
            .filter(|port| port.device == interface.device.address);
        if let [only] = ports.dedup().collect_vec()[..] {
            interface.port_name = Some(only.port.clone());
        }
    }
}

fn take_over<K: Ord + Clone, T: Clone>(now: &mut BTreeMap<K, T>, then: &BTreeMap<K, T>, key: &K) {
    now.remove(key);
    now.extend(then.get(key).map(|held| (key.clone(), held.clone())));
}
