//! Restores settings that were read before.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use nix::errno::Errno;

use crate::apply::channels::{self, change_channels};
use crate::apply::error::ApplyError;
use crate::apply::lock::stop_reason;
use crate::apply::record::{Record, name_ports};
use crate::apply::settings::Texts;
use crate::apply::write::{not_performed, write_one};
use crate::cpuset::Inserted as _;
use crate::kinds::{SettingId, SettingKind};
use crate::machine::Machine;
use crate::machine::files::{NET, queue_files};
use crate::plan::{Cause, Why, Write};
use crate::read;
use crate::report::outcome::WriteResult;
use crate::report::restored::{Refusals, Restored, ToRestore};
use crate::root::{FileError, Root, errno_of};

const TRIES: u32 = 10;

/// Channels come first, since queues and vectors come and go with them. Never writes to another interface that gets a
/// name; an error if interfaces are renamed again and again meanwhile. `may_stop`: a signal ends this before the next
/// write; the restore of a failed apply goes on.
pub(crate) fn restore_settings(
    root: &Root,
    texts: &Texts,
    why: &Why,
    may_stop: bool,
) -> Result<Restored, ApplyError> {
    let mut tries = 1..=TRIES;
    loop {
        // Only these have settings; of virtual interfaces there may be more than a process may have open files.
        let mut names = root.read_names(NET)?;
        names.retain(|name| root.exists(&format!("{NET}/{name}/device")));
        let restored = root.with_pinned(names.iter().map(|name| queue_files(name)), || {
            let machine = match read_pinned(root, texts) {
                Err(FileError::Io { answer, .. })
                    if errno_of(&answer) == Some(Errno::ESTALE) && tries.next().is_some() =>
                {
                    return Ok(None);
                }
                read => read?,
            };
            restore_pinned(root, texts, &machine, why, may_stop).map(Some)
        });
        if let Some(restored) = restored? {
            return Ok(restored);
        }
    }
}

fn restore_pinned(
    root: &Root,
    texts: &Texts,
    machine: &Machine,
    why: &Why,
    may_stop: bool,
) -> Result<Restored, ApplyError> {
    let mut planned = RestorePlan::new(texts, machine, why);
    let why_stop = || stop_reason().filter(|_| may_stop).map(not_performed);
    let resets_rss = |interface: &str| {
        let interface = machine.interface(interface);
        interface.is_some_and(|interface| texts.contains_key(&interface.only_id(SettingKind::Rss)))
    };
    let change = |(_, write): (_, Write)| {
        change_channels(root, &write, resets_rss(&write.interface), why_stop())
    };
    let channels = planned
        .take_channels()
        .into_iter()
        .map(change)
        .collect_vec();
    if !channels.is_empty() {
        planned = RestorePlan::new(texts, &read_pinned(root, texts)?, why);
    }
    // Channels that still differ were refused.
    let refused = planned.take_channels().into_iter().map(|(id, _)| id);
    planned.outcome.refused_ids.extend(refused);
    let mut outcome = planned.outcome;
    let set = channels
        .iter()
        .filter(|change| change.refused.is_none())
        .count();
    outcome.unchanged = outcome.unchanged.saturating_sub(set);
    for (id, write) in planned.writes {
        let written = match why_stop() {
            Some(why) => WriteResult::not_done(&write, why),
            None => write_one(root, &write, None).0,
        };
        outcome.refused_ids.extend(written.failed().then_some(id));
        outcome.results.push(written);
    }
    outcome.channels = [channels, outcome.channels].concat();
    Ok(outcome)
}

pub(crate) fn settings_to_restore(
    root: &Root,
    texts: &Texts,
    why: &Why,
) -> Result<ToRestore, ApplyError> {
    let mut planned = RestorePlan::new(texts, &read_settings(root, texts)?, why);
    let channels: BTreeMap<_, _> = planned
        .take_channels()
        .into_iter()
        .map(|(_, write)| channels::outcome(&write, None))
        .map(|change| (change.interface, change.wanted))
        .inserted();
    let mut results = planned.outcome.results;
    // A table may fit the channels that are restored before it.
    results.retain(|result| {
        result.kind != SettingKind::Rss || !channels.contains_key(&result.interface)
    });
    let all = planned.writes.len();
    let writes = planned.writes.into_iter().map(|(_, write)| write);
    // An IRQ that two interfaces share is written once.
    let writes = writes
        .unique_by(|write| (write.path.clone(), write.value.clone()))
        .collect_vec();
    Ok(ToRestore {
        channels,
        refusals: Refusals {
            channels: planned.outcome.channels,
            results,
        },
        unchanged: planned.outcome.unchanged + all - writes.len(),
        writes,
        absent: planned.outcome.absent,
        ..ToRestore::default()
    })
}

/// An error if whole directories of recorded settings are absent: that is a container or an unmounted file system, not
/// a removed device.
fn read_settings(root: &Root, texts: &Texts) -> Result<Machine, FileError> {
    let mut machine = read::settings(root, &Record::drivers(root))?;
    name_ports(&mut machine, texts);
    let has_vectors = texts.keys().any(SettingId::is_vector);
    let missing = machine.missing().filter(|_| has_vectors);
    let has_ports = texts.keys().any(|id| id.port.is_some());
    let no_interfaces = has_ports && !root.is_there(NET)?;
    match missing.or(no_interfaces.then_some(NET)) {
        Some(path) => Err(root.nothing_in(path)),
        None => Ok(machine),
    }
}

/// While queues are pinned; ESTALE if an interface's name belongs to another one, or had no interface when pinned.
fn read_pinned(root: &Root, texts: &Texts) -> Result<Machine, FileError> {
    let machine = read_settings(root, texts)?;
    for interface in &machine.interfaces {
        let queues = queue_files(&interface.name);
        let has_queues = interface.rx_queues.len() + interface.tx_queues.len() > 0;
        if has_queues && !root.is_pinned_in_place(&queues) {
            return Err(root.io_error(&queues, Errno::ESTALE));
        }
    }
    Ok(machine)
}

pub(crate) fn differs(texts: &Texts, machine: &Machine) -> bool {
    let planned = RestorePlan::new(texts, machine, &Why::because(Cause::BeforeTrial));
    !planned.writes.is_empty() || !planned.outcome.complete()
}

#[derive(Debug, Default)]
struct RestorePlan {
    /// Channels first.
    writes: Vec<(SettingId, Write)>,
    outcome: Restored,
}

impl RestorePlan {
    fn new(texts: &Texts, machine: &Machine, why: &Why) -> Self {
        let mut restore = Self::default();
        let (outcome, mut left) = (&mut restore.outcome, texts.clone());
        for setting in machine.settings() {
            let (kind, id) = (setting.kind, setting.id());
            let Some(first) = left.remove(&id) else {
                continue;
            };
            let (value, current) = (kind.parse(&first), setting.text());
            let text = value.and_then(|value| setting.text_of(&value));
            if (text.as_ref()).is_some_and(|text| kind.same(text, &current)) {
                outcome.unchanged += 1;
                continue;
            }
            let write = |value| Write {
                kind,
                path: setting.path(),
                value,
                current,
                interface: setting.interface().into(),
                number: setting.number,
                why: why.clone(),
            };
            if let Some(text) = text {
                restore.writes.push((id, write(text)));
                continue;
            }
            let why = format!(
                "recorded for {id}, but not {}; correct the record, or set it by hand",
                kind.form.expected()
            );
            match kind {
                SettingKind::Channels => {
                    let refused = channels::outcome(&write(first), Some(why));
                    outcome.channels.push(refused);
                }
                _ => outcome
                    .results
                    .push(WriteResult::not_done(&write(first), why)),
            }
            outcome.refused_ids.insert(id);
        }
        restore.writes.sort_by_key(|(_, write)| write.kind);
        // A driver may report channels again later.
        outcome.absent = left.into_keys().inserted();
        restore
    }

    fn take_channels(&mut self) -> Vec<(SettingId, Write)> {
        let is_channels = |(_, write): &(SettingId, Write)| write.kind == SettingKind::Channels;
        let many = self
            .writes
            .iter()
            .filter(|write| is_channels(write))
            .count();
        self.writes.drain(..many).collect()
    }
}
