//! One setting, and the list of all of a machine.

use std::sync::Arc;

use super::SettingKind::{self, NapiThread, Sysctl, Vector};
use super::value::Held;
use super::value::Value::{self, Channels, Count, Mask, On, Spread, Table};
use super::value::on_or_off;
use crate::cpuset::QueueSet;
use crate::machine::{self, Interface, Machine, Rss};

#[derive(Debug, Clone)]
pub struct Setting<'a> {
    pub kind: SettingKind,
    /// IRQ of a vector, process id of a thread, number of a queue; else 0.
    pub number: u32,
    pub held: Held<'a>,
    /// `None` for a setting of the whole machine.
    pub(crate) owner: Option<&'a Interface>,
}

/// A write's kind, number and interface, which is empty for IRQs and threads: interfaces may share them.
pub(crate) type Place<'a> = (SettingKind, u32, &'a str);

pub(crate) fn place(kind: SettingKind, number: u32, interface: &str) -> Place<'_> {
    match kind {
        Vector | NapiThread => (kind, number, ""),
        _ => (kind, number, interface),
    }
}

impl Interface {
    pub(crate) fn settings(&self) -> impl Iterator<Item = Setting<'_>> {
        SettingKind::ALL.into_iter().flat_map(move |kind| {
            let all = (kind.of)(self).into_iter();
            all.map(move |(number, held)| Setting {
                kind,
                number,
                held,
                owner: Some(self),
            })
        })
    }
}

impl Machine {
    pub(crate) fn own_settings(&self) -> impl Iterator<Item = Setting<'_>> {
        let entries = self.flow_entries.into_iter();
        entries.map(|entries| Setting {
            kind: Sysctl,
            number: 0,
            held: Count(entries).into(),
            owner: None,
        })
    }

    pub(crate) fn settings(&self) -> impl Iterator<Item = Setting<'_>> {
        self.interfaces
            .iter()
            .flat_map(Interface::settings)
            .chain(self.own_settings())
    }
}

impl<'a> Setting<'a> {
    /// Empty for a setting of the whole machine.
    pub fn interface(&self) -> &'a str {
        self.owner.map_or("", |interface| &interface.name)
    }

    /// The absolute path without the root; without a file, the name in plans.
    pub fn path(&self) -> String {
        self.kind.path(self.interface(), self.number)
    }

    pub(crate) fn place(&self) -> Place<'a> {
        place(self.kind, self.number, self.interface())
    }

    pub(crate) fn vector(&self) -> Option<&'a machine::Vector> {
        self.irq().and_then(|irq| self.owner?.vector(irq))
    }

    pub fn irq(&self) -> Option<u32> {
        (self.kind == Vector).then_some(self.number)
    }
}

impl Setting<'_> {
    pub fn text(&self) -> Arc<str> {
        match (self.held.file, &self.held.value) {
            (Some(file), _) => Arc::clone(&file.text),
            (_, Table(table)) => table.to_setting().into(),
            (_, value) => self.text_of(value).unwrap_or_default().into(),
        }
    }

    /// `None` if the setting cannot have this value: the kernel accepts no mask that is wider than the file is now, and
    /// no RSS table of another length.
    pub(crate) fn text_of(&self, value: &Value<'_>) -> Option<String> {
        match (value, &self.held.value) {
            (Mask(cpus), _) => cpus.to_mask(self.held.file?.width),
            (Count(count), _) => Some(count.to_string()),
            (Channels(channels), _) => Some(channels.to_text()),
            (On(on), _) => Some(on_or_off(*on).to_owned()),
            (Spread(queues), Table(now)) => Some(now.spread_over(queues).to_setting()),
            (Table(table), Table(now)) => {
                let (queues, possible) = (now.queues, QueueSet::below(now.queues));
                // A default is that of the present queues.
                if table.is_default() {
                    return Some(now.spread_over(&possible).to_setting());
                }
                let fits =
                    table.table.len() == now.table.len() && table.reached().is_subset(&possible);
                let table = Rss::clone(table);
                fits.then(|| Rss { queues, ..table }.to_setting())
            }
            _ => None,
        }
    }
}
