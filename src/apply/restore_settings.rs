//! Restores settings that were read before.

use itertools::Itertools as _;
use std::collections::BTreeMap;

use nix::errno::Errno;

use crate::apply::channels::{ChangedChannels, change_channels};
use crate::apply::error::ApplyError;
use crate::apply::settings::{Texts, channels_key, rss_key};
use crate::apply::stop::stopped;
use crate::apply::write::{left_out, means_same, write_one};
use crate::cpuset::{CpuSet, QueueSet};
use crate::machine::setting::{on_or_off, queue_files};
use crate::machine::{Channels, Machine, Rss, Setting, SettingValue};
use crate::plan::Write;
use crate::read::{self, Wants};
use crate::report::outcome::{ChannelOutcome, WriteResult};
use crate::report::restored::{Restored, ToRestore};
use crate::root::{FileError, Root};

const NET: &str = "/sys/class/net";

/// How often the settings are read again because an interface was renamed meanwhile.
const TRIES: u32 = 10;

/// Restores these texts: channels first, since queues and vectors are created and removed with them. If interfaces are
/// renamed again and again meanwhile, this is an error, and nothing is written to another interface that gets a name.
/// `may_stop`: whether a signal ends this before the next write; the restore of a failed apply goes on.
pub(crate) fn restore_settings(
    root: &Root,
    texts: &Texts,
    why: &str,
    may_stop: bool,
) -> Result<Restored, ApplyError> {
    let mut tries = 1..=TRIES;
    loop {
        let names = root.list(NET)?.unwrap_or_default();
        let restored = root.with_pinned(names.iter().map(|name| queue_files(name)), || {
            let read = read_pinned(root, texts);
            let stale = Some(Errno::ESTALE as i32);
            let renamed =
                matches!(&read, Err(FileError::Io { answer, .. }) if answer.raw_os_error() == stale);
            if renamed && tries.next().is_some() {
                return Ok(None);
            }
            restore_pinned(root, texts, &read?, why, may_stop).map(Some)
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
    why: &str,
    may_stop: bool,
) -> Result<Restored, ApplyError> {
    let mut planned = RestorePlan::new(texts, machine, why);
    let mut channels = change_channels(root, planned.channels.iter().map(RecordedChannels::change));
    if !channels.is_empty() {
        planned = RestorePlan::new(texts, &read_pinned(root, texts)?, why);
    }
    let RestorePlan {
        writes,
        mut outcome,
        ..
    } = planned;
    outcome
        .refused_keys
        .extend(planned.channels.into_iter().map(|change| change.key));
    for (key, write) in writes {
        let written = match stopped().filter(|_| may_stop) {
            Some(why) => WriteResult::not_done(&write, left_out(why)),
            None => write_one(root, &write, None).0,
        };
        outcome.refused_keys.extend(written.failed().then_some(key));
        outcome.results.push(written);
    }
    channels.append(&mut outcome.channels);
    Ok(Restored {
        channels,
        ..outcome
    })
}

/// What [`restore_settings`] would write.
pub(crate) fn settings_to_restore(
    root: &Root,
    texts: &Texts,
    why: &str,
) -> Result<ToRestore, ApplyError> {
    let RestorePlan {
        channels,
        writes,
        outcome,
    } = RestorePlan::new(texts, &read_settings(root, texts)?, why);
    Ok(ToRestore {
        channels: channels
            .into_iter()
            .map(|c| (c.interface, c.recorded.difference(&c.now)))
            .collect(),
        writes: writes.into_iter().map(|(_, write)| write).collect(),
        unchanged: outcome.unchanged,
        absent: outcome.absent,
        ..ToRestore::default()
    })
}

/// The current settings; an error if the directories that should have recorded ones are absent as a whole. That is a
/// container or an unmounted file system, not a device that was removed.
fn read_settings(root: &Root, texts: &Texts) -> Result<Machine, FileError> {
    let machine = read::settings(root, Wants::default())?;
    let has_interfaces = texts.keys().any(|key| key.contains(" port "));
    let has_vectors = texts.keys().any(|key| key.contains(" vector "));
    let missing = machine.missing().filter(|_| has_vectors);
    let no_interfaces = has_interfaces && !root.is_there(NET)?;
    match missing.or(no_interfaces.then_some(NET)) {
        Some(path) => Err(FileError::Io {
            path: root.outside(path),
            answer: Errno::ENOENT.into(),
        }),
        None => Ok(machine),
    }
}

/// As [`read_settings`], while queues are pinned; ESTALE if the name of an interface is another's now.
fn read_pinned(root: &Root, texts: &Texts) -> Result<Machine, FileError> {
    let machine = read_settings(root, texts)?;
    let queues = machine
        .interfaces
        .iter()
        .map(|interface| queue_files(&interface.name));
    match queues
        .into_iter()
        .find(|queues| root.exists(queues) && !root.is_pinned_in_place(queues))
    {
        Some(renamed) => Err(root.io_error(&renamed, Errno::ESTALE)),
        None => Ok(machine),
    }
}

/// Whether any of these texts differs from that of its setting.
pub(crate) fn differs(texts: &Texts, machine: &Machine) -> bool {
    let RestorePlan {
        channels,
        writes,
        outcome,
    } = RestorePlan::new(texts, machine, "");
    !channels.is_empty() || !writes.is_empty() || !outcome.complete()
}

/// What has to be written to restore recorded settings.
#[derive(Debug, Default)]
struct RestorePlan {
    /// They come first, since queues and vectors are new afterwards.
    channels: Vec<RecordedChannels>,
    /// The writes with their keys.
    writes: Vec<(String, Write)>,
    /// The outcome for settings that need no write or cannot be written.
    outcome: Restored,
}

/// An interface whose channels differ from the recorded ones.
#[derive(Debug)]
struct RecordedChannels {
    key: String,
    interface: String,
    now: Channels,
    recorded: Channels,
    /// Whether its RSS table is recorded, too.
    has_rss: bool,
}

impl RecordedChannels {
    fn change(&self) -> ChangedChannels<'_> {
        let &Self {
            ref interface,
            now,
            recorded: wanted,
            has_rss: resets_rss,
            ..
        } = self;
        ChangedChannels {
            interface,
            now,
            wanted,
            resets_rss,
        }
    }
}

impl RestorePlan {
    fn new(texts: &Texts, machine: &Machine, why: &str) -> Self {
        let mut restore = Self::default();
        let outcome = &mut restore.outcome;
        let mut left: BTreeMap<&str, &str> = texts
            .iter()
            .map(|(k, text)| (k.as_str(), text.as_str()))
            .collect();
        for setting in machine.settings() {
            let key = setting.key();
            let Some(first) = left.remove(&*key) else {
                continue;
            };
            let (text, current) = (to_written(&setting, first), setting.text());
            if (text.as_ref()).is_ok_and(|text| means_same(setting.kind, text, &current)) {
                outcome.unchanged += 1;
                continue;
            }
            let write = Write {
                kind: setting.kind,
                path: setting.path(),
                value: text.as_deref().unwrap_or(first).to_owned(),
                current,
                interface: setting.interface().into(),
                why: why.into(),
            };
            match text {
                Ok(_) => restore.writes.push((key, write)),
                Err(expected) => {
                    let why = unusable(&key, expected);
                    outcome.results.push(WriteResult::not_done(&write, why));
                    outcome.refused_keys.insert(key);
                }
            }
        }
        for interface in &machine.interfaces {
            // Channels that the driver does not report now may be reported later.
            let (key, Some(now)) = (channels_key(interface), interface.channels) else {
                continue;
            };
            let Some(text) = left.remove(key.as_str()) else {
                continue;
            };
            let has_rss = texts.contains_key(&rss_key(interface));
            let interface = interface.name.clone();
            match Channels::parse(text) {
                Some(recorded) if recorded.difference(&now).is_empty() => outcome.unchanged += 1,
                Some(recorded) => {
                    restore.channels.push(RecordedChannels {
                        key,
                        interface,
                        now,
                        recorded,
                        has_rss,
                    });
                }
                None => {
                    let wanted = text.split_whitespace().join(" ");
                    let refused = Some(unusable(&key, "a number of channels"));
                    outcome.channels.push(ChannelOutcome {
                        interface,
                        wanted,
                        refused,
                    });
                    outcome.refused_keys.insert(key);
                }
            }
        }
        restore.writes.sort_by_key(|(_, write)| write.kind);
        outcome.absent = left.into_keys().map(str::to_owned).collect();
        restore
    }
}

/// The bytes to write for a recorded text; an error names what was expected.
fn to_written(setting: &Setting<'_>, first: &str) -> Result<String, &'static str> {
    match setting.value {
        SettingValue::Mask(file) => {
            let cpus = CpuSet::parse_mask(first).map_err(|_| "a CPU mask")?;
            // The kernel accepts no mask that is wider than the file is now.
            cpus.to_mask(file.width)
                .ok_or("a CPU mask that fits this machine")
        }
        SettingValue::Count(_) => {
            let number = first.trim().parse::<u32>();
            number
                .map(|number| number.to_string())
                .map_err(|_| "a number")
        }
        SettingValue::Table(now) => {
            rss_to_write(now, first).ok_or("an RSS table that fits this device")
        }
        SettingValue::On(_) => {
            let is = |on: &bool| on_or_off(*on) == first.trim();
            let on = [false, true].into_iter().find(is);
            on.map(|on| on_or_off(on).to_owned()).ok_or("`on` or `off`")
        }
    }
}

/// The RSS table to write for a recorded one. A default is restored as that of the device's queues now.
fn rss_to_write(now: &Rss, first: &str) -> Option<String> {
    let (first, possible) = (Rss::parse(first)?, QueueSet::below(now.queues));
    if first.is_default() {
        return Some(now.spread_over(&possible).to_setting());
    }
    let fits = first.table.len() == now.table.len() && first.reached().is_subset(&possible);
    let queues = now.queues;
    fits.then(|| Rss { queues, ..first }.to_setting())
}

/// Why a recorded text cannot be written, and the fix.
fn unusable(key: &str, expected: &str) -> String {
    format!("recorded for {key}, but not {expected}; correct the record, or set it by hand")
}
