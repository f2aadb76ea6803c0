//! Restores the settings before the first apply, or before a trial.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::apply::error::ApplyError;
use crate::apply::irqbalance::{self, IrqbalanceRecord};
use crate::apply::lock::{Lock, TrialGuard};
use crate::apply::record::Record;
use crate::apply::restore_settings::{restore_settings, settings_to_restore};
use crate::apply::settings::Texts;
use crate::apply::trial::Trial;
use crate::plan::{Cause, Why};
use crate::report::restored::{Restored, ToRestore};
use crate::root::Root;

/// Restores the settings before the first apply; `None` if there is no record of one. Settings whose device or queue is
/// absent now stay in the record.
pub fn restore(root: &Root, wait: Duration) -> Result<Option<Restored>, ApplyError> {
    let is_recorded = || Record::exists(root) || irqbalance::has_something_to_undo(root);
    // A first apply may be about to save the record. No lock file is created where nicpin never ran.
    if !Lock::exists(root) && !is_recorded() {
        return Ok(None);
    }
    let _lock = Lock::take(root, "restore", wait)?;
    if !is_recorded() {
        return Ok(None);
    }
    restore_original(root, true).map(|(_, restored)| Some(restored))
}

pub fn to_restore(root: &Root) -> Result<ToRestore, ApplyError> {
    // An unreadable record is an error, an absent one is not.
    let texts = Record::load(root)?.first_seen;
    let to_restore = if texts.is_empty() {
        ToRestore::default()
    } else {
        settings_to_restore(root, &texts, BEFORE)?
    };
    Ok(ToRestore {
        irqbalance: irqbalance::has_something_to_undo(root),
        ..to_restore
    })
}

const BEFORE: &Why = &Why::because(Cause::BeforeFirstApply);

/// Under the lock; also returns the original settings. `ends_trial`: ends any trial afterwards (if this process dies
/// earlier, the trial's own process does); if a write is refused or left out, the trial stays, to restore these
/// settings at its end.
fn restore_original(root: &Root, ends_trial: bool) -> Result<(Texts, Restored), ApplyError> {
    let mut record = Record::load_to_write(root)?;
    let first_seen = record.first_seen.clone();
    let mut restored = restore_settings(root, &first_seen, BEFORE, true)?;
    restored.irqbalance = irqbalance::undo_since(root, &IrqbalanceRecord::default());
    if ends_trial && !restored.has_refused() {
        Trial::remove(root)?;
    } else if ends_trial {
        Trial::replace_waiting(root, &first_seen);
    }
    // A refused setting may be restored later; an absent one may come back.
    if restored.failed() {
        record.reset_to(first_seen.keys(), &restored, &Record::default());
    } else {
        record = Record {
            first_seen: restored.left_of(first_seen.clone()),
            drivers: record.drivers,
            ..Record::default()
        };
    }
    let saved = record.save(root);
    if restored.complete() {
        saved?;
    }
    // Otherwise the record on disk has more original settings than are left, which does no harm.
    Ok((first_seen, restored.with_counts()))
}

/// Keeps the settings of an apply with [`Options::trial`](crate::apply::Options).
pub fn confirm(root: &Root, wait: Duration) -> Result<(), ApplyError> {
    let nothing = |why: &str| ApplyError::Confirm(format!("there is nothing to confirm: {why}"));
    let none = || nothing("no apply --try is waiting");
    if !Lock::exists(root) && Trial::load(root)?.is_none() {
        return Err(none());
    }
    let _lock = Lock::take(root, "confirm", wait)?;
    let trial = Trial::load(root)?.ok_or_else(none)?;
    if trial.over {
        let left = trial.not_restored().map(|left| format!(", but {left}"));
        let late = "too late: apply --try was not confirmed in time, and the earlier settings were restored";
        return Err(ApplyError::Confirm(
            late.to_owned() + &left.unwrap_or_default(),
        ));
    }
    let has_set = trial.has_set_something(root);
    Trial::remove(root)?;
    if has_set {
        return Ok(());
    }
    Err(nothing("every setting is as it was before apply --try"))
}

/// Restores the settings before a trial that was not confirmed; `None` if it was confirmed, has ended meanwhile, or has
/// nothing to restore.
///
/// A trial that cannot be read was not confirmed, and the settings right before it are unknown: those before the first
/// apply are restored.
pub fn end_trial(root: &Root, wait: Duration) -> Result<Option<Restored>, ApplyError> {
    let _lock = Lock::take(root, "apply --try", wait)?;
    restore_if_due(root, |trial| !trial.over)
}

/// [`end_trial`] for the process that watches the trial: waits for the lock for ever, tries again to restore what could
/// not be restored, and does not end a later trial.
pub fn end_watched_trial(root: &Root, watch: &TrialGuard) -> Result<Option<Restored>, ApplyError> {
    // Without a trial there is no need for the lock, which may be gone with all other files.
    if let Ok(None) = Trial::load(root) {
        return Ok(None);
    }
    let _lock = Lock::take(root, "apply --try", Duration::MAX)?;
    if !watch.is_current(root) {
        return Ok(None);
    }
    restore_if_due(root, Trial::is_due)
}

fn restore_if_due(
    root: &Root,
    is_due: impl FnOnce(&Trial) -> bool,
) -> Result<Option<Restored>, ApplyError> {
    match Trial::load(root) {
        Ok(Some(trial)) if trial.found_all_as_planned(root) => {
            Trial::remove(root)?;
            Ok(None)
        }
        Ok(Some(trial)) if is_due(&trial) => trial.restore(root, &BTreeSet::new()).map(Some),
        Ok(_) => Ok(None),
        Err(_) => {
            let (texts, restored) = restore_original(root, false)?;
            Trial::default().keep_unrestored(root, texts, Texts::new(), &restored)?;
            Ok(Some(restored))
        }
    }
}
