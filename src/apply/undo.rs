//! Putting back: what the first apply found, or what there was before a trial.

use std::time::Duration;

use crate::apply::channels::{ChannelOutcome, change_channels};
use crate::apply::irqbalance::{self, IrqbalanceOutcome, IrqbalanceRecord};
use crate::apply::lock::Lock;
use crate::apply::record::Record;
use crate::apply::session::ApplyError;
use crate::apply::settings;
use crate::apply::settings::{RestorePlan, Texts, UnusableText};
use crate::apply::state::StateError;
use crate::apply::trial::Trial;
use crate::apply::write::{WriteResult, write_each};
use crate::plan::Write;
use crate::read;
use crate::read::Wants;
use crate::root::Root;

/// What was put back.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct RestoreOutcome {
    /// Each change of channels.
    pub channels: Vec<ChannelOutcome>,
    /// Each write, in the order in which it was done.
    pub results: Vec<WriteResult>,
    /// How many values were as before without a write.
    pub unchanged: usize,
    /// Values that the machine does not have now.
    pub absent: Vec<String>,
    /// Values that are there and were not put back, by the names of the record; the reasons are with `channels` and
    /// `results`.
    #[serde(skip)]
    pub(crate) refused: Vec<String>,
    /// How many values are not as they were: refused, or not there now.
    pub not_back: usize,
    /// What was undone about irqbalance; `None` where there was nothing to undo.
    pub irqbalance: Option<IrqbalanceOutcome>,
}

impl RestoreOutcome {
    /// Whether everything is as it was.
    pub fn complete(&self) -> bool {
        self.absent.is_empty() && !self.failed()
    }

    pub(crate) fn counted(mut self) -> Self {
        let channels = self.channels.iter().filter(|channel| channel.refused.is_some()).count();
        let irqbalance = usize::from(self.irqbalance.as_ref().is_some_and(IrqbalanceOutcome::failed));
        let results = self.results.iter().filter(|result| result.failed()).count();
        self.not_back = results + channels + irqbalance + self.absent.len();
        self
    }

    /// Whether all was as it was before that.
    pub(crate) fn had_nothing_to_do(&self) -> bool {
        self.complete() && !any_changed(&self.channels, self.irqbalance.as_ref(), &self.results)
    }

    /// Whether something is there and was not put back.
    pub fn failed(&self) -> bool {
        any_failed(&self.channels, self.irqbalance.as_ref(), &self.results)
    }
}

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

/// Brings the machine back to these texts: channels first, since queues and vectors come and go with them.
pub(crate) fn put_back(root: &Root, texts: &Texts, why: &str) -> Result<RestoreOutcome, ApplyError> {
    let mut back = settings::back_to(texts, &read::machine(root, Wants::default())?, why);
    let changes = back.channels.iter().map(|other| (other.interface.as_str(), other.now, other.first));
    let mut channels = change_channels(root, changes);
    let refused = channels.iter().zip(&back.channels).filter(|(done, _)| done.refused.is_some());
    let mut refused: Vec<String> = refused.map(|(_, other)| other.key.clone()).collect();
    if !channels.is_empty() {
        back = settings::back_to(texts, &read::machine(root, Wants::default())?, why);
    }
    let (keys, writes): (Vec<String>, Vec<Write>) = back.writes.into_iter().unzip();
    let mut results = write_each(root, &writes);
    refused.extend(keys.into_iter().zip(&results).filter(|(_, done)| done.failed()).map(|(key, _)| key));
    for wrong in back.wrong {
        let (why, UnusableText { key, path, interface, text, .. }) = (wrong.words(), wrong);
        refused.push(key);
        match path {
            Some(path) => results.push(WriteResult::not_done(path, text, interface, why)),
            None => channels.push(ChannelOutcome { interface, wanted: text, refused: Some(why) }),
        }
    }
    let RestorePlan { unchanged, absent, .. } = back;
    Ok(RestoreOutcome { channels, results, unchanged, absent, refused, not_back: 0, irqbalance: None })
}

pub(crate) fn any_changed(
    channels: &[ChannelOutcome],
    irqbalance: Option<&IrqbalanceOutcome>,
    results: &[WriteResult],
) -> bool {
    channels.iter().any(|channel| channel.refused.is_none())
        || irqbalance.is_some_and(|told| told.changed)
        || results.iter().any(WriteResult::changed)
}

pub(crate) fn any_failed(
    channels: &[ChannelOutcome],
    irqbalance: Option<&IrqbalanceOutcome>,
    results: &[WriteResult],
) -> bool {
    channels.iter().any(|channel| channel.refused.is_some())
        || irqbalance.is_some_and(IrqbalanceOutcome::failed)
        || results.iter().any(WriteResult::failed)
}
