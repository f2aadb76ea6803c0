//! Putting back: what the first apply found, or what there was before a trial.

use std::time::Duration;

use crate::apply::error::ApplyError;
use crate::apply::irqbalance::{self, IrqbalanceRecord};
use crate::apply::lock::Lock;
use crate::apply::put_back::put_back;
use crate::apply::record::Record;
use crate::apply::settings::Texts;
use crate::apply::state::StateError;
use crate::apply::trial::Trial;
use crate::report::outcome::RestoreOutcome;
use crate::root::Root;

/// Puts back what the first apply found, as far as it is there; `None` where no apply has left a record. What is not
/// there now is kept for the next time.
pub fn restore(root: &Root, wait: Duration) -> Result<Option<RestoreOutcome>, ApplyError> {
    let is_something = || Record::exists(root) || irqbalance::has_done_something(root);
    // A first apply may be about to save the record. Where nicpin never ran, no lock is made.
    if !Lock::exists(root) && !is_something() {
        return Ok(None);
    }
    let _lock = Lock::take(root, "restore", wait)?;
    if !is_something() {
        return Ok(None);
    }
    let (_, undone) = restore_first(root, || Trial::forget(root))?;
    Ok(Some(undone))
}

/// Puts back what the record has, under the lock; also what it is, of what was not put back. No trial ends before the
/// values are back: until `end` has been called, whoever watches one still has it put back.
fn restore_first(
    root: &Root,
    end: impl FnOnce() -> Result<(), StateError>,
) -> Result<(Texts, RestoreOutcome), ApplyError> {
    let mut record = Record::load(root)?;
    let mut undone = put_back(root, record.first_seen(), "as it was before the first apply")?;
    undone.irqbalance = irqbalance::back_to(root, &IrqbalanceRecord::default());
    end()?;
    let left = record.first_seen().iter();
    let left = left.filter(|(key, _)| undone.refused.contains(key) || undone.absent.contains(key));
    let left: Texts = left.map(|(key, text)| (key.clone(), text.clone())).collect();
    // What was refused may be put back later; what is not there now may come back.
    if undone.failed() {
        let keys: Vec<String> = record.first_seen().keys().cloned().collect();
        let back = keys.iter().filter(|key| !undone.refused.contains(key));
        record.are_back(back, &Record::default());
    } else {
        record.keep_only(&undone.absent);
    }
    record.save(root)?;
    Ok((left, undone.counted()))
}

/// Keeps what [`Options::trial`] has put on trial.
pub fn confirm(root: &Root, wait: Duration) -> Result<(), ApplyError> {
    let nothing = ApplyError::Confirm("there is nothing to confirm: no apply --try is waiting".to_owned());
    if !Lock::exists(root) && Trial::load(root)?.is_none() {
        return Err(nothing);
    }
    let _lock = Lock::take(root, "confirm", wait)?;
    match Trial::load(root)? {
        None => Err(nothing),
        Some(trial) if trial.over => {
            let left = trial.not_back().map(|left| format!(", but {left}")).unwrap_or_default();
            let late = "too late: nobody confirmed apply --try in time, and it was put back";
            Err(ApplyError::Confirm(format!("{late}{left}")))
        }
        Some(trial) => {
            let set = trial.has_set_something(root);
            Trial::forget(root)?;
            let nothing = "there is nothing to confirm: what apply --try was to set is as it was before it";
            if set { Ok(()) } else { Err(ApplyError::Confirm(nothing.to_owned())) }
        }
    }
}

/// Puts back what is on trial, if it still is; `None` if it was confirmed or ended meanwhile.
///
/// A trial that cannot be read was not confirmed. What there was right before it is not known then, so the machine goes
/// back to what the first apply found, as by [`restore`].
pub fn end_trial(root: &Root, wait: Duration) -> Result<Option<RestoreOutcome>, ApplyError> {
    let _lock = Lock::take(root, "apply --try", wait)?;
    match Trial::load(root) {
        Ok(Some(trial)) if !trial.over => trial.put_back(root).map(Some),
        Ok(_) => Ok(None),
        Err(_) => {
            let (left, undone) = restore_first(root, || Ok(()))?;
            Trial::ended(left, &undone).save(root)?;
            Ok(Some(undone))
        }
    }
}
