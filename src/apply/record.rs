//! The first values ever seen, by device and queue, so that `restore` finds them whatever IRQ numbers and names
//! things have by then; and what apply last set, so that `check` can tell why something differs. WriteResult durably
//! before the first write; the first values are never overwritten by later runs.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::apply::settings;
use crate::apply::settings::{Texts, channels_key, owner};
use crate::apply::state::{StateError, StateFile};
use crate::report::outcome::Outcome;
use crate::report::outcome::WriteResult;

use crate::machine::{Channels, Interface, Machine};
use crate::plan::Plan;
use crate::root::Root;

const FILE: StateFile = StateFile {
    name: "state.json",
    schema: "nicpin.state/1",
    what: "a record of first-seen values",
    not_done: "nothing was written, since it could not be undone",
};

/// What was there before nicpin, and what nicpin has set since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    schema: String,
    /// The file's text at first sight, by what the file is about.
    first_seen: Texts,
    /// What apply last set, by the same names.
    #[serde(default)]
    pub(crate) last_set: BTreeMap<String, LastSet>,
    /// How many receive and transmit queues an interface had when it was last planned.
    #[serde(default)]
    pub(crate) queues: BTreeMap<String, (usize, usize)>,
}

/// What apply last wanted of a value, and got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastSet {
    /// What the plan wanted.
    pub(crate) value: String,
    /// What the file was given instead, the kernel having no room for that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) instead: Option<String>,
    /// What the kernel answered, where it did not take it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) refused: Option<String>,
    /// The vector's IRQ.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) irq: Option<Irq>,
}

/// An IRQ: its number, and what tells it from another of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Irq {
    pub(crate) number: u32,
    /// The inode of `/sys/kernel/irq/N`, which the kernel makes anew with each IRQ; `None` in a tree, where inodes
    /// say nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) made: Option<u64>,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            schema: FILE.schema.to_owned(),
            first_seen: BTreeMap::new(),
            last_set: BTreeMap::new(),
            queues: BTreeMap::new(),
        }
    }
}

impl Irq {
    /// The IRQ of this number as it is now.
    pub(crate) fn now(root: &Root, number: u32) -> Self {
        Self { number, made: root.inode(&format!("/sys/kernel/irq/{number}")) }
    }
}

impl Record {
    /// Whether there is one.
    pub fn exists(root: &Root) -> bool {
        FILE.exists(root)
    }

    /// Reads the record; an empty one where there is none.
    pub fn load(root: &Root) -> Result<Self, StateError> {
        Ok(FILE.load(root)?.unwrap_or_default())
    }

    /// Adds the present values of a plan's interfaces where none were seen before, and what the plan is going to set.
    pub fn add(&mut self, root: &Root, machine: &Machine, plan: &Plan) {
        // What came with changed channels goes with them when they are put back.
        let other_channels: BTreeSet<String> = (machine.interfaces.iter())
            .filter(|interface| !self.has_first_channels(interface))
            .map(|interface| owner(interface) + " ")
            .collect();
        for (key, text) in settings::texts(machine, plan) {
            if !other_channels.iter().any(|owner| key.starts_with(owner)) || key.ends_with(" channels") {
                self.first_seen.entry(key).or_insert(text);
            }
        }
        for (value, wanted) in settings::planned(machine, plan) {
            let irq = value.irq.map(|irq| Irq::now(root, irq));
            match self.last_set.get_mut(&value.key) {
                // The same as before; what became of it stands until it is written anew.
                Some(set) if set.value == wanted => set.irq = irq,
                _ => {
                    let set = LastSet { value: wanted, instead: None, refused: None, irq };
                    self.last_set.insert(value.key, set);
                }
            }
        }
        for planned in &plan.interfaces {
            let interface = machine.interfaces.iter().find(|interface| interface.name == planned.name);
            self.queues.extend(interface.map(|i| (owner(i), (i.rx_queues.len(), i.tx_queues.len()))));
        }
    }

    fn has_first_channels(&self, interface: &Interface) -> bool {
        let first = self.first_seen.get(&channels_key(interface)).and_then(|text| Channels::parse(text));
        first.is_none_or(|first| interface.channels.is_none_or(|now| first.difference(&now).is_empty()))
    }

    /// Notes what became of a plan's writes.
    pub fn settle(&mut self, machine: &Machine, plan: &Plan, written: &[WriteResult]) {
        let by_path: BTreeMap<&str, &WriteResult> =
            written.iter().map(|written| (written.path.as_str(), written)).collect();
        for (value, _) in settings::planned(machine, plan) {
            let Some(set) = self.last_set.get_mut(&value.key) else { continue };
            let written = by_path.get(value.path.as_str());
            set.instead = written.and_then(|written| written.instead.clone());
            set.refused = written
                .filter(|written| written.failed() || written.outcome == Outcome::Managed)
                .and_then(|written| written.detail.clone());
        }
    }

    /// Whether apply has set vectors of an interface.
    pub(crate) fn has_vectors_of(&self, interface: &Interface) -> bool {
        let start = format!("{} vector ", owner(interface));
        self.last_set.keys().any(|key| key.starts_with(&start))
    }

    /// The first values.
    pub(crate) fn first_seen(&self) -> &Texts {
        &self.first_seen
    }

    /// Forgets what was set of these values: they are as they were when the record was this one.
    pub(crate) fn are_back<'a>(&mut self, keys: impl IntoIterator<Item = &'a String>, then: &Self) {
        for key in keys {
            match then.last_set.get(key) {
                Some(set) => _ = self.last_set.insert(key.clone(), set.clone()),
                None => _ = self.last_set.remove(key),
            }
            // Queues come and go with channels.
            if let Some(owner) = key.strip_suffix(" channels") {
                self.queues.remove(owner);
                self.queues
                    .extend(then.queues.get_key_value(owner).map(|(owner, queues)| (owner.clone(), *queues)));
            }
        }
        let is_of =
            |owner: &str, key: &String| key.strip_prefix(owner).is_some_and(|rest| rest.starts_with(' '));
        self.queues.retain(|owner, _| self.last_set.keys().any(|key| is_of(owner, key)));
    }

    /// Forgets all but these first values, and everything that was set since.
    pub fn keep_only(&mut self, keys: &[String]) {
        self.first_seen.retain(|key, _| keys.contains(key));
        self.last_set.clear();
        self.queues.clear();
    }

    /// Writes the record so that a crash leaves the old or the new one; one without first values is removed.
    pub fn save(&self, root: &Root) -> Result<(), StateError> {
        if self.first_seen.is_empty() { FILE.remove(root) } else { FILE.save(root, self) }
    }
}
